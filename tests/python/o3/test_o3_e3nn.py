# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""The programs of o3/ against e3nn, where it is installed (tests/python/run.sh full): 3j symbols,
tensor products of every mode, layout, type and normalisation, named forms, linear layers, spherical
harmonics, D matrices.  WEFT_TEST_SCALE is a percentage of the number of random products."""

import itertools
import math
import random
import warnings
from fractions import Fraction

import numpy as np
import pytest

import weft
from weft._irreps import tell

from o3_bed import (MANY_PATHS, PRODUCTS, SEED, Compiled, Trial, close, covering, doubles, in_layout,
                    interpret, make, o3, run_both, torch, triples, turned)


def test_symbols_are_those_of_e3nn():
    for l in triples(6):
        np.testing.assert_allclose(weft.wigner_3j(*l), o3.wigner_3j(*l).numpy(), rtol=0, atol=4e-16)
    for l in ((4, 8, 11), (1, 11, 11)):
        np.testing.assert_allclose(weft.wigner_3j(*l), o3.wigner_3j(*l).numpy(), rtol=0, atol=4e-16)


def test_symbols_of_e3nn_04_differ_by_these_signs():
    # read off e3nn 0.4.4, which does not install beside 0.6; of ascending degrees up to 6
    turned = {(1, 2, 2), (1, 3, 3), (1, 4, 4), (1, 5, 5), (1, 6, 6), (3, 4, 6), (4, 4, 5), (4, 5, 6),
              (5, 5, 5), (5, 6, 6)}
    for l in triples(6):
        sign = -1 if tuple(sorted(l)) in turned else 1
        np.testing.assert_array_equal(weft.wigner_3j(*l, signs="e3nn-0.4"), sign * weft.wigner_3j(*l))


def squared(l1, l2, l3, m1, m2, m3):
    """The square of the complex symbol, as a fraction."""
    f = math.factorial
    total = Fraction(0)
    for k in range(l1 + l2 + l3 + 1):
        below = [k, l1 + l2 - l3 - k, l1 - m1 - k, l2 + m2 - k, l3 - l2 + m1 + k, l3 - l1 - m2 + k]
        if min(below) >= 0:
            total += Fraction((-1) ** k, math.prod(map(f, below)))
    norm = Fraction(f(l1 + l2 - l3) * f(l1 - l2 + l3) * f(l2 + l3 - l1), f(l1 + l2 + l3 + 1))
    ends = math.prod(f(l + m) * f(l - m) for l, m in ((l1, m1), (l2, m2), (l3, m3)))
    return norm * ends * total * total


def test_symbols_are_the_nearest_doubles():
    for l in triples(8):
        c = weft.wigner_3j(*l)
        for m in zip(*np.nonzero(c)):
            r = [abs(int(k) - n) for k, n in zip(m, l)]
            # the one complex triple of these magnitudes with m1 + m2 = m3
            m1, m2 = next((s * r[0], t * r[1]) for s in (1, -1) for t in (1, -1)
                          if abs(s * r[0] + t * r[1]) == r[2])
            exact = squared(*l, m1, m2, m1 + m2)
            exact *= Fraction(1, 2) if all(r) else 1
            v = abs(c[m])
            low = (Fraction(v) + Fraction(np.nextafter(v, 0.0))) / 2
            high = (Fraction(v) + Fraction(np.nextafter(v, 2.0))) / 2
            assert low * low <= exact <= high * high, (l, m)


def test_rotations_are_those_of_e3nn():
    rng = np.random.default_rng(3)
    for l in range(12):
        angles = rng.uniform(0, 2 * np.pi, 3)
        for parity in "eo":
            rotation = o3.angles_to_matrix(*map(torch.tensor, angles)) * -1
            want = o3.Irrep(f"{l}{parity}").D_from_matrix(rotation).numpy()
            numbers = " ".join(map(repr, rotation.numpy().ravel().tolist()))
            got = np.array(tell(f"D; of={l}{parity}; matrix={numbers}").split(), float)
            np.testing.assert_allclose(got.reshape(want.shape), want, rtol=0, atol=1e-11)
            want = o3.Irrep(f"{l}{parity}").D_from_angles(*map(torch.tensor, angles)).numpy()
            got = np.array(tell(f"D; of={l}{parity}; angles={' '.join(map(repr, angles.tolist()))}")
                           .split(), float)
            np.testing.assert_allclose(got.reshape(want.shape), want, rtol=0, atol=1e-11)


def test_irreps_are_read_and_sorted_as_by_e3nn():
    rng = random.Random(4)
    for _ in range(100):
        slots = [f"{rng.choice(['', '0x', '2x', '17x'])}{rng.randrange(4)}{rng.choice('eo')}"
                 for _ in range(rng.randrange(7))]
        text = rng.choice(["+", " + "]).join(slots)
        irreps, ask = o3.Irreps(text), lambda what: tell(f"irreps; of={text}; do={what}")[:-1]
        order = irreps.sort()
        assert ask("print") == str(irreps)
        assert ask("dim") == str(irreps.dim) and ask("num") == str(irreps.num_irreps)
        assert ask("simplify") == str(irreps.simplify())
        assert ask("regroup") == str(irreps.regroup())
        assert ask("sort").split("\n") == [str(order.irreps), " ".join(["to", *map(str, order.p)]),
                                           " ".join(["from", *map(str, order.inv)])]
        assert ask("slices").split() == [str(n) for s in irreps.slices() for n in (s.start, s.stop)]
        assert tell(f"irreps; of={text}; do=filter; keep=1o+0e").strip() == str(irreps.filter(["1o", "0e"]))
        assert tell(f"irreps; of={text}; do=filter; drop=1o").strip() == str(irreps.filter(drop=["1o"]))


def check_product(product, again):
    """Both programs of a product against one module of e3nn; what is left to be compiled."""
    settings = product.settings
    trial = Trial(weft.Program.o3(product.spec), product.module(), product.irreps, settings, rows=2,
                  summands=product.summands, kinds=[again["type"]])
    interpret(trial)
    product.settings = again
    trial.set(weft.Program.o3(product.spec), again)
    interpret(trial)
    return trial


def test_products_are_those_of_e3nn():
    rng = random.Random(5 + SEED)
    compiled = Compiled(every=10)
    for count, case in covering(7, PRODUCTS):
        product = make({**case, "most": 100 if count % MANY_PATHS == 0 else 3}, rng)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                compiled.add(check_product(product, turned(product.settings, rng)))
        except BaseException:
            print(case, product.spec)
            raise
    compiled.end()


IRREPS = ["3x0e + 2x1o", "0o+1e+2x2o", "4x1o", "2x1e+3x2e", "1x0e", "", "0x1o+2x0e"]


def test_named_forms_are_those_of_e3nn():
    for a, b in itertools.product(IRREPS, repeat=2):
        for keep in (None, "0e+1o+1e"):
            for name, cls in (("full", o3.FullTensorProduct), ("elementwise", o3.ElementwiseTensorProduct)):
                if name == "elementwise" and o3.Irreps(a).num_irreps != o3.Irreps(b).num_irreps:
                    continue
                module = cls(a, b, None if keep is None else [ir for _, ir in o3.Irreps(keep)])
                program = weft.Program.o3(f"{name}; in1={a}; in2={b}; type=f64; empty=zeros" +
                                          (f"; keep={keep}" if keep else ""))
                run_both(program, module,
                         [module.irreps_in1, module.irreps_in2, module.irreps_out],
                         {"type": "f64", "weights": "shared"})
        out = "2x0e+3x1o+1e+2o"
        for norm in ("component", "norm"):
            module = o3.FullyConnectedTensorProduct(a, b, out, internal_weights=False,
                                                    irrep_normalization=norm)
            program = weft.Program.o3(f"connected; in1={a}; in2={b}; out={out}; type=f64; norm={norm}; empty=zeros")
            run_both(program, module, [o3.Irreps(i) for i in (a, b, out)],
                     {"type": "f64", "weights": "shared"})


@pytest.mark.parametrize("norm", ["component", "norm", "none"])
def test_squares_are_those_of_e3nn(norm):
    for a in IRREPS:
        for out in (None, "2x0e+3x1o+1e+2e"):
            options = {"irrep_normalization": norm}
            if out:
                options["internal_weights"] = False
            module = o3.TensorSquare(a, out, **options)
            program = weft.Program.o3(f"square; in1={a}; type=f64; norm={norm}; empty=zeros" +
                                      (f"; out={out}" if out else ""))
            run_both(program, module, [module.irreps_in1, module.irreps_in2, module.irreps_out],
                     {"type": "f64", "weights": "shared"}, inputs=1)


def test_norms_are_those_of_e3nn():
    for a in IRREPS:
        for squared_ in (False, True):
            module = o3.Norm(a, squared=squared_)
            program = weft.Program.o3(f"norm; in1={a}; type=f64; squared={'yes' if squared_ else 'no'}")
            run_both(program, module, [module.irreps_in, None, module.irreps_out],
                     {"type": "f64", "weights": "shared"}, inputs=1)


def test_linear_layers_are_those_of_e3nn():
    rng = np.random.default_rng(11)
    for a, b in itertools.product([*IRREPS, "3x0e+2x1o+4x0e+1o", "123x0e+33x1o"], repeat=2):
        for norm, bias, item, layout in (("element", True, False, "mul_ir"),
                                         ("path", False, True, "ir_mul"),
                                         ("element", True, False, "ir_mul")):
            irreps = [o3.Irreps(a), o3.Irreps(b)]
            bias = bias and irreps[0].count("0e") > 0  # e3nn fails where a bias stands alone
            module = o3.Linear(a, b, biases=bias, path_normalization=norm, internal_weights=False,
                               shared_weights=not item)
            program = weft.Program.o3(
                f"linear; in1={a}; out={b}; type=f64; bias={'yes' if bias else 'no'}; layout={layout};"
                f" path_norm={norm}; weights={'item' if item else 'shared'}; empty=zeros")
            rows = (3,) if item else ()
            x = rng.standard_normal((3, irreps[0].dim))
            wt = rng.standard_normal((*rows, module.weight_numel))
            given = {"X": in_layout(x, irreps[0], layout), "Wt": wt}
            more = {}
            if module.bias_numel:
                given["Bias"] = rng.standard_normal(module.bias_numel)
                more["bias"] = torch.from_numpy(given["Bias"])
            want = module(torch.from_numpy(x), torch.from_numpy(wt), **more).numpy()
            got = in_layout(program.run(given), irreps[1], layout, back=True)
            close(got, want, "f64")


@pytest.mark.parametrize("norm", ["component", "norm", "integral"])
def test_spherical_harmonics_are_those_of_e3nn(norm):
    rng = np.random.default_rng(12)
    for degrees in (range(12), [0], [1, 3], [2, 2, 0], [5]):
        for normalize in (False, True):
            program = weft.Program.o3(f"sh; l={' '.join(map(str, degrees))}; norm={norm}; type=f64; "
                                      f"normalize={'yes' if normalize else 'no'}")
            x = rng.standard_normal((20, 3))
            x[:3] = [[0, 0, 0], [0, 1, 0], [1, 0, 0]]
            tensor = torch.from_numpy(x).requires_grad_()
            want = o3.spherical_harmonics(list(degrees), tensor, normalize, norm)
            got = program.run(X=x)
            for l in set(degrees):  # each degree by its own size
                at = np.concatenate([np.full(2 * k + 1, k) for k in degrees]) == l
                close(got[:, at], want.detach().numpy()[:, at], "f64")
            if not want.requires_grad:
                continue
            d_y = rng.standard_normal(want.shape)
            want[1:].backward(torch.from_numpy(d_y[1:]))
            d_x = program.grad().run(X=x, d_Y=d_y)
            assert np.isfinite(d_x).all()
            limit = 1e-13 * max(np.abs(tensor.grad.numpy()).max(), 1)
            assert np.abs(d_x[1:] - tensor.grad.numpy()[1:]).max() <= limit


def couplings(irreps, degree, out):
    """The tensors U[m, i1, ..., in] of MACE's symmetric contraction, from their definition: inputs
    are coupled from left to right, and results of two and more sorted by irrep."""
    slots = list(zip(irreps.slices(), (ir for _, ir in irreps)))
    eye = np.eye(irreps.dim)
    found = [(ir, eye[s]) for s, ir in slots]
    for _ in range(degree - 1):
        more = []
        for left, u in found:
            for s, ir in slots:
                for result in left * ir:
                    c = weft.wigner_3j(result.l, left.l, ir.l) * result.dim ** 0.5
                    wide = np.zeros((result.dim, *u.shape[1:], irreps.dim))
                    wide[..., s] = np.einsum("abc,b...->a...c", c, u)
                    more.append((result, wide))
        found = sorted(more, key=lambda c: c[0])
    return [u for ir, u in found if ir == out]


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_contractions_are_their_definition(degree):
    rng = np.random.default_rng(13)
    mul, rows, elements = 2, 4, 3
    for slots, outs in ((["0e", "1o"], ["0e", "1o"]), (["0e", "1o", "2e"], ["1o", "2e", "0e"]),
                        (["1e", "0e", "0o", "1o"], ["0o", "1e"])):
        irreps = o3.Irreps("+".join(slots))
        program = weft.Program.o3(
            f"contraction; in1={'+'.join(f'{mul}x{s}' for s in slots)}; correlation={degree}; type=f64; "
            f"out={'+'.join(f'{mul}x{s}' for s in outs)}; layout=ir_mul")
        x = rng.standard_normal((rows, irreps.dim, mul))
        el = rng.integers(0, elements, rows)
        per_slot = [[u for d in range(1, degree + 1) for u in couplings(irreps, d, o3.Irrep(out))]
                    for out in outs]
        wt = rng.standard_normal((elements, sum(map(len, per_slot)), mul))
        want, k = [], 0
        for tensors, out in zip(per_slot, outs):
            z = np.zeros((rows, o3.Irrep(out).dim, mul))
            for u in tensors:
                term = np.broadcast_to(u[None, ..., None], (rows, *u.shape, mul))
                for _ in range(u.ndim - 1):
                    term = np.einsum("n...iu,niu->n...u", term, x)
                z += term * wt[el, k][:, None]
                k += 1
            want.append(z.reshape(rows, -1))
        got = program.run(X=x.reshape(rows, -1), el=el, Wt=wt)
        close(got, np.concatenate(want, axis=1), "f64")
