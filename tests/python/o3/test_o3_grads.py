# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""Derivatives to the third order against autograd through e3nn, where it is installed: each slot of each
operand and the weights of each path by their own size.  Then what needs no other package: features turn
with their inputs, and results do not depend on the number of threads."""

import itertools
import random

import numpy as np
import pytest

import weft
from o3_bed import (FEWER, LONG, MODES, PRODUCTS, TYPES, Compiled, Derivatives, Product, covering,
                    doubles, interpret, make, o3, outputs, stored, torch, triples, turned, widened)


def test_gradients_are_those_of_e3nn():
    rng = random.Random(8)
    compiled = [Compiled(every=40), Compiled(every=100), Compiled(every=400, at_once=4)]
    for _, case in covering(9, PRODUCTS):
        product = make({**case, "most": 2, "sizes": FEWER}, rng)
        try:
            for trials in product.gradients(3, turned(product.settings, rng)):
                for some, trial in zip(compiled, trials):
                    interpret(trial)
                    some.add(trial)
        except BaseException:
            print(case, product.spec)
            raise
    for some in compiled:
        some.end()


@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_gradients_of_many_channels(kind):
    """As many as models have, compiled."""
    paths = [(0, 0, 0, "uvu", True, 1.0), (1, 1, 1, "uvu", True, 1.0), (1, 0, 2, "uvw", True, 1.0)]
    for weights, layout in (("item", "mul_ir"), ("shared", "ir_mul")):
        product = Product("123x1o + 33x2e", "0e + 2x1o", "123x1o + 33x3o + 5x2e", paths, type=kind,
                          weights=weights, **{f"layout_{n}": layout for n in ("in1", "in2", "out")})
        for trials in product.gradients(2):
            some = Compiled(every=1, at_once=2)
            for trial in trials:
                some.add(trial)
            some.end()


def every_instruction(l1, lmax, settings):
    """Each mode and each two degrees that couple with l1, each in slots of its own."""
    slots, paths = [[], [], []], []
    for mode, (_, l2, l3) in itertools.product(MODES, (t for t in triples(lmax) if t[0] == l1)):
        u, v = (3, 3) if mode in ("uuw", "uuu", "uvu<v", "u<vw") else (3, 2)
        w = {"uvu": u, "uvv": v, "uuu": u, "uvuv": u * v, "uvu<v": 3}.get(mode, 2)
        for irreps, mul, l in zip(slots, (u, v, w), (l1, l2, l3)):
            irreps.append((mul, (l, 1)))
        paths.append((*[len(paths)] * 3, mode, True, 1.0))
    return Product(*slots, paths, **settings)


@pytest.mark.parametrize("l1", range(6))
def test_gradients_of_each_instruction(l1):
    """Alone in its slots, so that no other path hides it."""
    settings = {"weights": "item", "type": "f32", "layout_in1": "mul_ir", "layout_in2": "ir_mul",
                "layout_out": "mul_ir"}
    product = every_instruction(l1, 5 if LONG else 4 if l1 < 5 else 5, settings)
    if l1 == 5 and not LONG:
        product.paths = product.paths[::3]
    for trials in product.gradients(3, {**settings, "type": "f64", "layout_in1": "ir_mul"}):
        for trial in trials:
            interpret(trial)


def test_gradients_of_linear_layers():
    irreps = [o3.Irreps("5x0e + 3x1o + 2x1o + 2x0e"), o3.Irreps("4x1o + 3x0e + 2e")]
    compiled = Compiled(every=1, at_once=12)
    for bias, item, norm, layout, kind in (
            (True, False, "element", "mul_ir", "f64"), (False, True, "path", "ir_mul", "f32"),
            (True, False, "path", "ir_mul", "f32"), (False, True, "element", "mul_ir", "f64")):
        module = o3.Linear(*irreps, biases=bias, path_normalization=norm, internal_weights=False,
                           shared_weights=not item)
        rows = (2,) if item else ()
        shapes = {"X": (2, irreps[0].dim), "Wt": (*rows, module.weight_numel)}
        shapes.update({"Bias": (module.bias_numel,)} if bias else {})
        muls = [irreps[0][i.i_in].mul * irreps[1][i.i_out].mul for i in module.instructions if i.i_in >= 0]
        starts = np.cumsum([0, *muls])
        parts = {"X": (irreps[0], layout), "Z": (irreps[1], layout), "Bias": [slice(None)],
                 "Wt": [slice(a, b) for a, b in zip(starts, starts[1:])]}
        program = weft.Program.o3(
            f"linear; in1={irreps[0]}; out={irreps[1]}; type={kind}; bias={'yes' if bias else 'no'}; "
            f"layout={layout}; path_norm={norm}; weights={'item' if item else 'shared'}")
        for trial in Derivatives(module, shapes, {kind}, 3).trials(program, parts, kind):
            interpret(trial)
            compiled.add(trial)
    compiled.end()


@pytest.mark.parametrize("lmax, order, normalize, kind, norm", [
    (11, 3, False, "f64", "component"), (11, 2, False, "f32", "integral"), (11, 2, True, "f64", "norm"),
    (11, 1, True, "f32", "component"), (11, 3, True, "f64", "integral"), (4, 3, True, "f32", "component")])
def test_gradients_of_spherical_harmonics(lmax, order, normalize, kind, norm):
    degrees = list(range(lmax + 1))
    starts = np.cumsum([0, *(2 * l + 1 for l in degrees)])
    parts = {"X": [slice(None)], "Y": [slice(a, b) for a, b in zip(starts, starts[1:])]}
    f = lambda x: o3.spherical_harmonics(degrees, x, normalize, norm)
    program = weft.Program.o3(f"sh; lmax={lmax}; norm={norm}; type={kind}; "
                              f"normalize={'yes' if normalize else 'no'}")
    derivatives = Derivatives(f, {"X": (5, 3)}, {kind}, order, "Y")
    for trial in derivatives.trials(program, parts, kind):
        interpret(trial)


TURNED = [  # a layer, its operands that turn, and others with their shapes
    *[(f"tp; in1=4x0e+3x1o+2x2e; in2=0e+2x1o+3o; out=0e+1o+1e+2e+3o; mode={mode}; weights=item", "XY")
      for mode in ("uvu", "uvv", "uvuv")],
    ("tp; in1=4x0e+3x1o+2x2e; in2=0e+2x1o+3o; out=2x0e+3x1o+2e+3o+2x5e; mode=uvw", "XY"),
    *[(f"tp; in1=3x0o+3x1o+3x2e; in2=3x0e+3x1o+3x4e; {out}; mode={mode}", "XY")
      for mode, out in (("uuw", "out=2x0e+3x1o+2e"), ("uuu", "out=1o+2e"), ("uvu<v", "out=0e+1o+4o"),
                        ("u<vw", "out=2x1o+2e"))],
    ("full; in1=2x1o+2e; in2=1o+0o", "XY"), ("elementwise; in1=2x1o+2e; in2=2x1o+0o", "XY"),
    ("square; in1=2x1o+2e", "X"), ("norm; in1=2x1o+3x2e", "X"),
    ("linear; in1=4x0e+3x1o+2x2e; out=2x0e+5x1o+2e; bias=yes", "X"),
    ("contraction; in1=3x0e+3x1o+3x2e; out=3x0e+3x1o; correlation=3", "X"),
    ("sh; lmax=11", "X"),
]


@pytest.mark.parametrize("kind, limit", [("f32", 2e-6), ("f64", 1e-12)])
def test_features_turn_with_their_inputs(kind, limit):
    """Twenty elements of O(3), half of them with the inversion."""
    rng = np.random.default_rng(21)
    dtype = np.float32 if kind == "f32" else np.float64
    for spec, turning in TURNED:
        facts = dict(line.split(" ", 1) for line in weft._irreps.tell(spec).splitlines()
                     if line.split()[0] in ("in1", "in2", "out"))
        irreps = {n: weft.Irreps(facts.get(w, "1o")) for n, w in (("X", "in1"), ("Y", "in2"))}
        program = weft.Program.o3(f"{spec}; type={kind}")
        sizes = {"X": irreps["X"].dim, "Y": irreps["Y"].dim}
        given = {n: rng.standard_normal((3, sizes[n])).astype(dtype) for n in turning}
        args = {a.name: a for a in program.args}
        for name in set(args) & {"Wt", "Bias"}:
            given[name] = weights_of(program, spec, name, rng).astype(dtype)
        if "el" in args:
            given["el"] = np.array([0, 1, 0])
        kernel = program.compile()
        want = kernel(given)
        for i in range(20):
            q, _ = np.linalg.qr(rng.standard_normal((3, 3)))
            q *= np.linalg.det(q) * (-1) ** i
            D = {n: weft.wigner_D(irreps[n], matrix=q) for n in turning}
            out = weft.wigner_D(facts["out"], matrix=q)
            got = kernel({**given, **{n: (given[n] @ D[n].T).astype(dtype) for n in turning}})
            for s in weft.Irreps(facts["out"]).slices():
                error, size = (np.abs(v[:, s]).max(initial=0) for v in (got - want @ out.T, want))
                assert error <= limit * size, (spec, s, error / size)


def weights_of(program, spec, name, rng):
    facts = dict(line.split(" ", 1) for line in weft._irreps.tell(spec).splitlines())
    n = int(facts["weights" if name == "Wt" else "bias"])
    if spec.startswith("contraction"):
        return rng.standard_normal((2, n, weft.Irreps(facts["in1"])[0].mul))
    ndim = next(a.ndim for a in program.args if a.name == name)
    return rng.standard_normal((3, n) if ndim == 2 else n)


@pytest.mark.parametrize("spec", [spec for spec, _ in TURNED if "sh;" not in spec][::3] + [TURNED[3][0]])
@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_threads_do_not_change_a_bit(spec, kind):
    rng = np.random.default_rng(22)
    dtype, n = (np.float32 if kind == "f32" else np.float64), 1003
    program = weft.Program.o3(f"{spec}; type={kind}")
    facts = {w: weft.Irreps(i).dim for w, i in
             (line.split(" ", 1) for line in weft._irreps.tell(spec).splitlines())
             if w in ("in1", "in2", "out")}
    given = {"X": (n, facts["in1"]), "Y": (n, facts.get("in2", 0)), "d_Z": (n, facts["out"])}
    given = {name: rng.standard_normal(shape).astype(dtype) for name, shape in given.items()}
    for name in {a.name for a in program.args} & {"Wt", "Bias"}:
        w = weights_of(program, spec, name, rng).astype(dtype)
        given[name] = np.resize(w, (n, w.shape[1])) if w.shape[0] == 3 and w.ndim == 2 else w
    given["el"] = rng.integers(0, 2, n)
    try:
        for p in (program, program.grad()):
            kernel, names = p.compile(), {a.name for a in p.args}
            results = []
            for threads in (1, 2, 3, 7):
                weft.set_threads(threads)
                got = kernel({k: v for k, v in given.items() if k in names})
                results.append(list(got.values()) if isinstance(got, dict) else [got])
            for other in results[1:]:
                for a, b in zip(results[0], other):
                    np.testing.assert_array_equal(a, b)
    finally:
        weft.set_threads(0)


HALVES = [
    ("tp; in1=16x0e+16x1o+8x2e; in2=0e+1o+2e; out=8x0e+8x1o+4x2e; mode=uvw", False),
    ("tp; in1=33x0e+33x1o; in2=0e+1o; out=0e+1o; mode=uvu; weights=item", True),
    ("tp; in1=5x0e+5x1o; in2=0e+1o; out=5x1o; paths=0 1 0 uvu, 1 0 0 uvu, 0 1 0 uvu no 2", False),
    ("linear; in1=64x0e+32x1o; out=16x0e+8x1o", False),
]


@pytest.mark.parametrize("kind", ["f16", "bf16"])
@pytest.mark.parametrize("spec, item", HALVES)
def test_halves_are_computed_in_f32_and_rounded_once(spec, item, kind):
    """To the bit what f32 gives of the same numbers; compiled, sums may be in another order, and a number
    between two halves may go to either."""
    facts = dict(line.split(" ", 1) for line in weft._irreps.tell(spec).splitlines())
    rows, dim = 7, {n: weft.Irreps(facts[n]).dim for n in ("in1", "in2", "out") if n in facts}
    shapes = {"X": (rows, dim["in1"]), "Y": (rows, dim.get("in2", 0)), "d_Z": (rows, dim["out"]),
              "Wt": (*([rows] if item else []), int(facts["weights"]))}
    rng = np.random.default_rng(23)
    data = {n: torch.from_numpy(rng.standard_normal(s)).to(TYPES[kind]) for n, s in shapes.items()}
    programs = [weft.Program.o3(f"{spec}; type={t}") for t in (kind, "f32")]
    for half, single in (programs, [p.grad() for p in programs]):
        names = {a.name for a in half.args if a.role == "input"}
        narrow = {n: stored(x, kind) for n, x in data.items() if n in names}
        wide = {n: x.float().numpy() for n, x in data.items() if n in names}
        want = outputs(single, single.run(wide))
        want = {n: stored(torch.from_numpy(z), kind) for n, z in want.items()}
        for n, z in outputs(half, half.run(narrow)).items():
            np.testing.assert_array_equal(z, want[n], err_msg=n)
        for n, z in outputs(half, half.compile()(narrow)).items():
            z, w = widened(z), widened(want[n])
            unit = {"f16": 2.0 ** -10, "bf16": 2.0 ** -7}[kind]
            assert (np.abs(z - w) <= unit * np.abs(w) + 1e-5 * np.abs(w).max()).all(), n
            assert (z != w).mean() <= 0.02, n
