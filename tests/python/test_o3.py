# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""Irreps, products, layers, harmonics and contractions on NumPy arrays: shapes, derivatives against
differences (all are polynomials), what is refused and how.  test_o3_e3nn.py compares with e3nn."""

import copy
import pickle

import numpy as np
import pytest

import weft

RNG = np.random.default_rng(0)


def test_irreps_are_a_tuple_of_slots():
    irreps = weft.Irreps("2x1o + 0e + 0x2e")
    assert str(irreps) == "2x1o+1x0e+0x2e" and len(irreps) == 3 and irreps[0] == (2, (1, -1))
    assert (irreps.dim, irreps.num_irreps, irreps.lmax) == (7, 3, 1)
    assert [(s.start, s.stop) for s in irreps.slices()] == [(0, 6), (6, 7), (7, 7)]
    assert [s.dim for s in irreps] == [6, 1, 0]
    assert str(irreps.sort().irreps) == "1x0e+2x1o+0x2e" and irreps.sort().p == (1, 0, 2)
    assert str(irreps.simplify()) == "2x1o+1x0e" and str((irreps + "1o").regroup()) == "1x0e+3x1o"
    assert str(irreps.filter("0e")) == "1x0e" and str(irreps.filter(drop="0e+2e")) == "2x1o"
    assert str(irreps[:1] * 2) == "2x1o+2x1o" and irreps == weft.Irreps([(2, 1, -1), "0e", (0, "2e")])
    assert weft.Irreps.spherical_harmonics(2) == weft.Irreps("0e+1o+2e")
    assert weft.Irreps() == weft.Irreps("") and weft.Irreps("").dim == 0
    assert pickle.loads(pickle.dumps(irreps)) == irreps == weft.Irreps([(2, (1, -1)), (1, 0, 1), "0x2e"])


@pytest.mark.parametrize("wrong", ["1q", "0e; do=dim", [(1, 0, 3)], 5, [(1,)]])
def test_what_is_no_irreps_is_refused(wrong):
    with pytest.raises(weft.Error):
        weft.Irreps(wrong)


def test_symbols_and_rotations():
    assert weft.wigner_3j(1, 1, 0) == pytest.approx(np.eye(3)[:, :, None] / 3 ** 0.5, abs=1e-15)
    now, before = weft.wigner_3j(1, 2, 2), weft.wigner_3j(1, 2, 2, signs="e3nn-0.4")
    assert (now == -before).all() and now.any()
    turn = weft.wigner_D("1o", angles=(0.1, 0.2, 0.3))
    np.testing.assert_allclose(weft.wigner_D("0o + 1e", matrix=-turn), [
        [-1, 0, 0, 0], *np.c_[np.zeros(3), turn]], atol=1e-15)
    np.testing.assert_allclose(weft.wigner_D("1o", quaternion=[1, 0, 0, 0]), np.eye(3), atol=0)
    with pytest.raises(weft.ArgumentError, match="expected one of matrix, angles, quaternion, got 0"):
        weft.wigner_D("1o")
    with pytest.raises(weft.ArgumentError, match="angles: expected 3 numbers, got 2"):
        weft.wigner_D("1o", angles=(1, 2))
    with pytest.raises(weft.Error):
        weft.wigner_3j(-1, 1, 0)
    with pytest.raises(weft.Error):
        weft.wigner_3j(1, 1, 3)


def layers():
    """Of each class one, and its operands with three items."""
    product = weft.Product("2x0e + 1o", "0e + 1o", "0e + 1o", mode="uvu", weights="item", dtype="f64")
    yield product, {"x": (3, 5), "y": (3, 4), "weight": (3, product.weight_numel)}
    shared = weft.Product("2x1o", "2x1o", "3x0e + 1e", paths=[(0, 0, 0, "uvw", True, 0.5),
                                                               (0, 0, 1, "uuw", False)],
                          dtype=np.float64, layout="ir_mul", norm="norm", var1=[0.5])
    yield shared, {"x": (3, 6), "y": (3, 6), "weight": (12,)}
    yield weft.Product("2x1o", form="square", weights="none", dtype="f64"), {"x": (3, 6)}
    linear = weft.Linear("2x0e + 1o", "3x0e + 2x1o", bias=True, dtype="f64", path_norm="path")
    yield linear, {"x": (3, 5), "weight": (8,), "bias": (3,)}
    yield weft.SphericalHarmonics([0, 2, 1], dtype="f64", norm="integral"), {"x": (3, 3)}
    contraction = weft.Contraction("2x0e + 2x1o", "2x0e + 2x1o", 2, dtype="f64", signs="e3nn-0.4")
    yield contraction, {"x": (3, 8), "elements": (3,), "weight": (2, contraction.weight_numel, 2)}


def operands(shapes):
    return {n: RNG.integers(0, 2, s) if n == "elements" else RNG.standard_normal(s)
            for n, s in shapes.items()}


def slope(f, step=1e-3):
    """The derivative at 0, exact for polynomials to the fourth degree."""
    return (8 * (f(step) - f(-step)) - (f(2 * step) - f(-2 * step))) / (12 * step)


@pytest.mark.parametrize("layer, shapes", list(layers()), ids=lambda a: type(a).__name__)
def test_derivatives_are_those_of_differences(layer, shapes):
    given = operands(shapes)
    z = layer(**given)
    assert z.shape == (3, layer.irreps_out.dim)
    real = [n for n in given if n != "elements"]
    dz = RNG.standard_normal(z.shape)
    along = {n: RNG.standard_normal(shapes[n]) for n in real}
    back = layer.backward(dz, **given)
    assert list(back) and set(back) == set(real)
    for name in real:
        assert back[name].shape == shapes[name]
        moved = lambda t: {**given, name: given[name] + t * along[name]}
        want = slope(lambda t: (layer(**moved(t)) * dz).sum())
        assert (back[name] * along[name]).sum() == pytest.approx(want, rel=1e-9, abs=1e-9)
    twice = layer.double_backward(dz, **given, **{"dd" + n: along[n] for n in real})
    assert set(twice) == {*real, "dz"}
    number = lambda dz=dz, **more: sum((v * along[n]).sum() for n, v in
                                       layer.backward(dz, **{**given, **more}).items())
    for name in real:
        step = RNG.standard_normal(shapes[name])
        want = slope(lambda t: number(**{name: given[name] + t * step}))
        assert (twice[name] * step).sum() == pytest.approx(want, rel=1e-8, abs=1e-8)
    step = RNG.standard_normal(z.shape)
    assert (twice["dz"] * step).sum() == pytest.approx(slope(lambda t: number(dz + t * step)), rel=1e-8)


@pytest.mark.parametrize("layer, shapes", list(layers()), ids=lambda a: type(a).__name__)
def test_items_have_any_dimensions(layer, shapes):
    given = operands(shapes)
    z = layer(**given)
    each = [n for n in shapes if shapes[n][:1] == (3,) and (n != "bias")]
    wide = {n: v.reshape(1, 3, 1, *v.shape[1:]) if n in each else v for n, v in given.items()}
    np.testing.assert_array_equal(layer(**wide), z.reshape(1, 3, 1, -1))
    back = layer.backward(z.reshape(1, 3, 1, -1), **wide)
    np.testing.assert_array_equal(back["x"].reshape(given["x"].shape), layer.backward(z, **given)["x"])
    none = {n: v[:0] if n in each else v for n, v in given.items()}
    assert layer(**none).shape == (0, z.shape[1])
    assert not any(v.any() for n, v in layer.backward(z[:0], **none).items() if n not in each)
    out = np.empty_like(z)
    assert layer(**given, out=out) is out and (out == z).all()
    again = pickle.loads(pickle.dumps(layer))
    assert again.spec == layer.spec and (copy.deepcopy(again)(**given) == z).all()
    assert type(layer).__name__ in repr(layer)


def test_only_what_is_wanted_is_computed():
    layer, shapes = next(layers())
    given = operands(shapes)
    z = layer(**given)
    assert list(layer.backward(z, **given, wrt="y")) == ["y"]
    one = layer.double_backward(z, **given, ddx=given["x"], wrt=["x", "dz"])
    assert list(one) == ["x", "dz"] and not one["x"].any() and one["dz"].any()  # linear in x
    assert not layer.double_backward(z, **given, wrt="dz")["dz"].any()
    with pytest.raises(weft.ArgumentError, match="wrt: expected some of x, y, weight, got 'z'"):
        layer.backward(z, **given, wrt="z")


def test_a_product_without_paths_is_0():
    layer = weft.Product("2x0e", "0e", "0o", mode="uvw", weights="shared", empty="zeros")
    x, y, w = (np.ones(s, np.float32) for s in ((3, 2), (3, 1), 0))
    given = (x, y) if layer.weight_numel == 0 and "Wt" not in layer._args else (x, y, w)
    z = layer(*given)
    assert z.shape == (3, 1) and not z.any()
    for d in (layer.backward(z, *given), layer.double_backward(z, *given, ddx=x)):
        assert d["x"].shape == (3, 2) and not any(v.any() for v in d.values())


def test_facts_of_a_problem():
    layer = weft.Product("2x0e + 1o", "0e + 1o", "1o", mode="uvu")
    assert str(layer.irreps_out) == "2x1o+1x1o" and layer.weight_numel == 3
    assert layer.paths == [("0", "1", "0", "uvu", "yes", "1"), ("1", "0", "1", "uvu", "yes", "1")]
    assert str(layer.irreps_in1) == "2x0e+1x1o" and str(layer.irreps_in2) == "1x0e+1x1o"
    assert weft.Product("2x1o", form="norm", squared=True).irreps_in2 is None
    linear = weft.Linear("2x0e", "3x0e", bias=True, paths=[(0, 0)])
    assert (linear.weight_numel, linear.bias_numel, str(linear.irreps_in)) == (6, 3, "2x0e")
    assert weft.SphericalHarmonics(2).irreps_out == weft.Irreps("0e+1o+2e")
    some = weft.Contraction("4x0e+4x1o", "4x1o", 2)
    assert some.paths == [("0", "1"), ("0", "2"), ("0", "2")] and some.channels == 4
    assert str(some.irreps_in) == "4x0e+4x1o"


def test_half_precision():
    product = weft.Product("2x1o", "1o", "0e", mode="uvu", weights="none", dtype=np.float16)
    x, y = np.float16(RNG.standard_normal((2, 6))), np.float16(RNG.standard_normal((2, 3)))
    want = np.einsum("nui,ni->nu", x.reshape(2, 2, 3).astype(np.float32), y) / np.sqrt(3)
    np.testing.assert_allclose(product(x, y), want, rtol=2e-3, atol=1e-3)


X, Y, W = np.zeros((3, 5), np.float32), np.zeros((3, 4), np.float32), np.zeros((3, 6), np.float32)


@pytest.mark.parametrize("call, message", [
    (lambda p: p(X.astype(float), Y, W), "x: expected elements of float32, got float64"),
    (lambda p: p(X[:, :4], Y, W), r"x: expected the shape \(\.\.\., 5\), got \(3, 4\)"),
    (lambda p: p(X, Y[:2], W), r"y: expected the shape \(3, 4\), got \(2, 4\)"),
    (lambda p: p(X, Y, W[0]), r"weight: expected the shape \(3, 6\), got \(6,\)"),
    (lambda p: p(X, Y), "weight: expected an array, got None"),
    (lambda p: p(X, Y, W, out=W), r"out: expected the shape \(3, 12\), got \(3, 6\)"),
    (lambda p: p(X, Y, W, out=[1]), "out: expected a NumPy array, got list"),
    (lambda p: p(*(a.reshape(3, 1, -1).repeat(2, 1) for a in (X, Y, W)),
                 out=np.zeros((2, 3, 12), np.float32).swapaxes(0, 1)),
     "out: expected an array whose rows are one after the other, got other strides"),
    (lambda p: p.backward(X, X, Y, W), r"dz: expected the shape \(3, 12\), got \(3, 5\)"),
    (lambda p: p.double_backward(np.zeros((3, 12), np.float32), X, Y, W, ddx=Y),
     r"ddx: expected the shape \(3, 5\), got \(3, 4\)"),
    (lambda p: weft.Product("0e", "0e", "0e", dtype="f8x"), "dtype: expected one of f16, bf16"),
    (lambda p: weft.Product("0e", "0e", "0e", dtype=np.int32), "dtype: expected one of f16, bf16"),
    (lambda p: weft.Product("0e", "0e", "0e", paths=[3]), "paths: expected tuples"),
    (lambda p: weft.Product("0e", "0e", "0e", mode="uvu; type=f64"), "mode: expected no ; in it"),
    (lambda p: weft.Product("0e", "0e", "0e", mode="uvx"), "there is no mode \"uvx\""),
    (lambda p: weft.Product("0e", form="square", weights="none")(X[:, :1], X[:, :1]),
     "y: expected None, as the problem does not have this operand, got ndarray"),
    (lambda p: weft.Contraction("0e", "0e", 1)(X[:, :1], [0.5] * 3, np.zeros((1, 1, 1), "f")),
     "elements: expected integers, got float64"),
    (lambda p: weft.Contraction("0e", "0e", 1)(X[:, :1], [0], np.zeros((1, 1, 1), "f")),
     r"elements: expected the shape \(3,\), got \(1,\)"),
    (lambda p: weft.Contraction("0e", "0e", 1)(X[:, :1], [0] * 3, np.zeros((1, 1), "f")),
     r"weight: expected the shape \(elements, 1, 1\), got \(1, 1\)"),
    (lambda p: weft.Contraction("0e", "0e", 1)(X[:, :1], [0] * 3, np.zeros((1, 1, 1))),
     "weight: expected elements of float32, got float64"),
])
def test_what_does_not_fit_is_refused_by_name(call, message):
    product = weft.Product("2x0e + 1o", "0e + 1o", "0e + 1o", mode="uvu", weights="item")
    with pytest.raises(weft.Error, match=message):
        call(product)
