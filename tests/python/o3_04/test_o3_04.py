# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""Signs of e3nn 0.4, and MACE's symmetric contraction, against the packages themselves.  They live in an
environment of their own (tests/python/run.sh o3_04)."""

import functools
import importlib.util
import random
import sys
import types

import numpy as np
import pytest

from conftest import ROOT

torch = pytest.importorskip("torch", reason="e3nn 0.4: torch is not installed")
torch.serialization.add_safe_globals([slice])  # which e3nn 0.4 has in its constants
sys.path.insert(0, str(ROOT / "tests" / "python" / "o3"))

import weft  # noqa: E402
from o3_bed import (FEWER, SCALE, Compiled, Derivatives, covering, doubles, e3nn,  # noqa: E402
                    interpret, make, o3, stored, triples, turned)

if not e3nn.__version__.startswith("0.4."):
    pytest.skip(f"e3nn 0.4: this is {e3nn.__version__}", allow_module_level=True)


def test_symbols_are_those_of_e3nn_04():
    for l in [*triples(6), (1, 11, 11), (4, 8, 11), (5, 11, 11), (7, 9, 11), (11, 11, 11)]:
        got = weft.wigner_3j(*l, signs="e3nn-0.4")
        np.testing.assert_allclose(got, o3.wigner_3j(*l).numpy(), rtol=0, atol=1e-14, err_msg=str(l))


def test_products_and_gradients_are_those_of_e3nn_04():
    rng = random.Random(14)
    compiled = Compiled(every=20)
    for _, case in covering(15, 200 * SCALE // 100):
        product = make({**case, "most": 3, "sizes": FEWER}, rng)
        product.settings["signs"] = "e3nn-0.4"
        for trials in product.gradients(2, turned(product.settings, rng)):
            for trial in trials:
                interpret(trial)
            if trials:
                compiled.add(trials[0])
    compiled.end()


@functools.lru_cache(None)
def mace():
    """MACE's symmetric contraction: the two modules that make it, without the rest of the package."""
    root = importlib.util.find_spec("mace").submodule_search_locations[0]
    for name in ("mace", "mace.tools", "mace.modules"):
        module = types.ModuleType(name)
        module.__path__ = [root + name[len("mace"):].replace(".", "/")]
        sys.modules[name] = module
    return importlib.import_module("mace.modules.symmetric_contraction").SymmetricContraction


class Contraction:
    """Of MACE, and how its weights are ours: it has the degrees from the highest down, and weights of 0
    for a degree without couplings."""

    def __init__(self, irreps, out, degree, elements):
        self.module = mace()(irreps, out, degree, num_elements=elements)
        self.degree, self.out, self.channels = degree, out, irreps[0].mul
        self.elements, self.dim = elements, sum(ir.dim for _, ir in irreps)

    def blocks(self, paths):
        """Of each output slot and degree the parameter of MACE, and how many of our weights it has."""
        for k, part in enumerate(self.module.contractions):
            for d in range(1, self.degree + 1):
                n = sum(path == (str(k), str(d)) for path in paths)
                name = "weights_max" if d == self.degree else f"weights.{self.degree - 1 - d}"
                assert n in (0, dict(part.named_parameters())[name].shape[1])
                yield k, name, n

    def function(self, paths, which):
        onehot = torch.eye(self.elements)[torch.from_numpy(which)]

        def f(x, wt):
            at, values = 0, {}
            for k, name, n in self.blocks(paths):
                own = dict(self.module.contractions[k].named_parameters())[name]
                values[f"contractions.{k}.{name}"] = wt[:, at:at + n] if n else torch.zeros_like(own)
                at += n
            x = x.reshape(len(x), self.channels, self.dim)
            return torch.func.functional_call(self.module, values, (x, onehot))

        return f


@pytest.mark.parametrize("kind", ["f32", "f64"])
@pytest.mark.parametrize("slots, outs, degree", [
    ("0e+1o", "0e", 3), ("0e+1o+2e", "0e+1o", 3), ("0e+1o+2e+3o", "0e+1o+2e", 2), ("0e+1o+2e", "1o+2e", 1),
    ("0e+1o+2e+3o", "0e", 3), ("0e+0o+1o+1e", "0o+1e", 3), ("0e+2e", "2e+0e", 3)])
def test_contractions_are_those_of_mace(slots, outs, degree, kind):
    mul, elements, rows = 2, 3, 4
    irreps, out = (o3.Irreps([(mul, ir) for _, ir in o3.Irreps(text)]) for text in (slots, outs))
    ours = weft.Contraction(irreps, out, degree, dtype=kind, signs="e3nn-0.4")
    peer = Contraction(irreps, out, degree, elements)
    which = np.random.default_rng(3).integers(0, elements, rows)
    f = peer.function(ours.paths, which)

    def features(x, wt):
        """MACE has channels before all components of an item; here, slots one after the other."""
        parts = [x[:, s].reshape(rows, mul, -1) for s in irreps.slices()]
        return f(torch.cat(parts, 2), wt)

    shapes = {"X": (rows, irreps.dim), "Wt": (elements, ours.weight_numel, mul)}
    derivatives = Derivatives(features, shapes, {kind}, 3)
    given, *_ = derivatives.order[0]
    x, wt = (stored(given[n].detach(), kind) for n in ("X", "Wt"))
    z = features(given["X"], given["Wt"]).detach().numpy()
    limit = {"f32": 1e-6, "f64": 1e-14}[kind]
    assert np.abs(ours(x, which, wt) - z).max() <= limit * np.abs(z).max()
    parts = {"X": (irreps, "mul_ir"), "Z": (out, "mul_ir"), "Wt": [slice(None)]}
    for trial in derivatives.trials(ours.program, parts, kind, more={"el": which}):
        interpret(trial)
