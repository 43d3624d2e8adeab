# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""Kernel maps against a dictionary of places, and convolutions of NumPy arrays over them."""

import itertools

import numpy as np
import pytest

import weft

SHAPE = (7, 6, 8)


def voxels(n, seed=0, batch=2, shape=SHAPE, dtype=np.int32):
    """n distinct places in any order."""
    rng = np.random.default_rng(seed)
    every = np.array(list(itertools.product(range(batch), *map(range, shape))))
    return rng.permutation(every)[:n].astype(dtype)


def three(v):
    return (v,) * 3 if np.isscalar(v) else tuple(v)


def brute(coords, kernel, stride, padding, dilation, subm, transposed, out_shape):
    """The outputs and the set of pairs, by a dictionary."""
    at = {tuple(c): i for i, c in enumerate(coords.tolist())}
    k, s, p, d = map(three, (kernel, stride, padding, dilation))
    if subm:
        p, s = tuple(a * (b // 2) for a, b in zip(d, k)), (1, 1, 1)
    ends = []
    for c, i in at.items():
        for n, o in enumerate(itertools.product(*map(range, k))):
            if transposed:
                q = [c[1 + a] * s[a] + o[a] * d[a] - p[a] for a in range(3)]
            else:
                q = [c[1 + a] + p[a] - o[a] * d[a] for a in range(3)]
                if any(x % t for x, t in zip(q, s)):
                    continue
                q = [x // t for x, t in zip(q, s)]
            place = (c[0], *q)
            if subm and place not in at:
                continue
            if not subm and out_shape and not all(0 <= x < t for x, t in zip(q, out_shape)):
                continue
            ends.append((n, i, place))
    outputs = coords.tolist() if subm else sorted({e[2] for e in ends})
    number = {tuple(c): i for i, c in enumerate(outputs)}
    return np.array(outputs).reshape(-1, 4), {(n, i, number[q]) for n, i, q in ends}


CASES = [
    dict(kernel_size=3), dict(kernel_size=(1, 3, 5)), dict(kernel_size=3, dilation=(1, 2, 3)),
    dict(kernel_size=2), dict(kernel_size=1),
    dict(kernel_size=3, stride=2, padding=1, subm=False), dict(kernel_size=2, stride=2, subm=False),
    dict(kernel_size=(3, 1, 2), stride=(2, 1, 3), padding=(1, 0, 0), subm=False),
    dict(kernel_size=3, stride=1, padding=1, dilation=2, subm=False),
    dict(kernel_size=3, stride=2, padding=1, subm=False, transposed=True),
    dict(kernel_size=2, stride=(2, 3, 1), subm=False, transposed=True),
]


def out_shape(shape, kernel_size, stride=1, padding=0, dilation=1, subm=True, transposed=False):
    k, s, p, d = map(three, (kernel_size, stride, padding, dilation))
    if subm:
        return tuple(shape)
    if transposed:
        return tuple((shape[a] - 1) * s[a] - 2 * p[a] + d[a] * (k[a] - 1) + 1 for a in range(3))
    return tuple((shape[a] + 2 * p[a] - d[a] * (k[a] - 1) - 1) // s[a] + 1 for a in range(3))


@pytest.mark.parametrize("bounded", [True, False])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("n", [0, 1, 90, 600])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_maps_are_those_of_a_dictionary(case, n, dtype, bounded):
    coords = voxels(n, dtype=dtype)
    grid = None
    if bounded:
        grid = out_shape(SHAPE, **case)
    else:
        coords[:, 1:] -= 4  # without a grid places may be negative
    m = weft.kernel_map(coords, **case, shape=SHAPE if bounded else None)
    places, pairs = brute(coords, case["kernel_size"], case.get("stride", 1), case.get("padding", 0),
                          case.get("dilation", 1), case.get("subm", True), case.get("transposed", False), grid)
    assert m.shape == grid
    np.testing.assert_array_equal(m.coords, places)
    table = m.table()
    assert len(table) == m.pairs == len(pairs)
    assert set(map(tuple, table.tolist())) == pairs
    back = m.inverse()
    assert (back.n_in, back.n_out, back.coords is coords) == (m.n_out, m.n_in, True)
    assert set(map(tuple, back.table()[:, [0, 2, 1]].tolist())) == pairs
    assert back.inverse() is m


def test_pairs_are_in_order_and_the_same_for_any_number_of_threads():
    coords = voxels(6000, batch=1, shape=(40, 30, 20))
    try:
        maps = []
        for threads in (1, 2, 3):
            weft.set_threads(threads)
            maps.append(weft.kernel_map(coords, 3, 2, 1, subm=False, shape=(40, 30, 20)))
    finally:
        weft.set_threads(0)
    for m in maps[1:]:
        for name, array in m.arrays.items():
            np.testing.assert_array_equal(array, maps[0].arrays[name])
        np.testing.assert_array_equal(m.coords, maps[0].coords)
    d, _, out = maps[0].table().T
    key = (out // 512 * 27 + d) * 10 ** 6 + out  # strips, then offsets, then outputs
    assert (np.diff(key) > 0).all() and maps[0].strips > 2


@pytest.mark.parametrize("change, words", [
    (lambda c: np.concatenate([c, c[3:4], c[2:3]]), r"coords: voxels 3 and 20 repeat the place"),
    (lambda c: np.concatenate([c, [[0, 0, -1, 0]]]).astype(np.int32), r"second coordinate of voxel 20 is -1"),
    (lambda c: np.concatenate([c, [[0, 0, 0, 8]]]).astype(np.int32), r"third coordinate of voxel 20 is 8, but the size"),
    (lambda c: np.concatenate([c, [[2, 0, 0, 0]]]).astype(np.int32), r"batch index of voxel 20 is 2"),
    (lambda c: np.concatenate([c, [[-1, 0, 0, 0]]]).astype(np.int32), r"batch index of voxel 20 is -1"),
    (lambda c: c[:, 1:], r"coords: expected .*shape \(n, 4\)"),
    (lambda c: c.astype(np.float32), r"coords: expected integers; divide"),
])
def test_bad_coordinates_are_named(change, words):
    with pytest.raises(weft.ArgumentError, match=words):
        weft.kernel_map(change(voxels(20)), 3, shape=SHAPE, batch_size=2)


@pytest.mark.parametrize("settings, words", [
    (dict(kernel_size=65), "kernel_size: 65 in dimension 0; give a number from 1 to 64"),
    (dict(kernel_size=0), "kernel_size: expected an integer from 1"),
    (dict(kernel_size=(3, 3)), "kernel_size: expected one integer or three"),
    (dict(kernel_size=3, stride=2), "stride: expected 1 for a submanifold"),
    (dict(kernel_size=3, subm=True, transposed=True), "subm: expected False"),
    (dict(kernel_size=9, subm=False, shape=SHAPE), "shape: dimension 0 of the output would have"),
    (dict(kernel_size=3, padding=-1, subm=False), "padding"),
])
def test_bad_settings_are_named(settings, words):
    with pytest.raises(weft.ArgumentError, match=words):
        weft.kernel_map(voxels(20), **settings)


def test_a_box_that_is_too_large_is_refused():
    far = np.array([[0, 0, 0, 0], [0, 2 ** 39, 2 ** 39, 2 ** 39]])
    with pytest.raises(weft.LimitError, match="bring the coordinates closer"):
        weft.kernel_map(far, 3)


TOLERANCE = {np.float64: 1e-12, np.float32: 1e-6, np.float16: 2e-3}


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_convolution_is_the_sum_over_pairs(case, dtype, bias):
    rng = np.random.default_rng(1)
    m = weft.kernel_map(voxels(300), **case)
    x = rng.standard_normal((m.n_in, 5)).astype(dtype)
    w = rng.standard_normal((7, *m.kernel_size, 5)).astype(dtype)
    b = rng.standard_normal(7).astype(dtype) if bias else None
    y = weft.conv3d(x, w, m, b)
    want = np.zeros((m.n_out, 7)) + (0 if b is None else b.astype(float))
    for d, i, o in m.table():
        want[o] += w.reshape(7, -1, 5)[:, d].astype(float) @ x[i].astype(float)
    assert y.shape == want.shape and y.dtype == dtype
    np.testing.assert_allclose(y, want, rtol=0, atol=TOLERANCE[dtype] * max(1, np.abs(want).max()))


def test_several_strips_and_threads_have_the_same_bits():
    rng = np.random.default_rng(2)
    m = weft.kernel_map(voxels(3000, batch=1, shape=(30, 20, 10)), 3)
    assert m.strips == 6
    x, w = rng.standard_normal((3000, 16), np.float32), rng.standard_normal((8, 27, 16), np.float32)
    results = []
    try:
        for threads in (1, 2, 3):
            weft.set_threads(threads)
            results.append(weft.conv3d(x, w, m))
    finally:
        weft.set_threads(0)
    assert all(np.array_equal(r, results[0]) for r in results)
    x[:] = rng.standard_normal(x.shape)  # new features on the same map
    table = m.table()
    want = np.zeros((3000, 8))
    np.add.at(want, table[:, 2], np.einsum("poc,pc->po", w.astype(float).transpose(1, 0, 2)[table[:, 0]],
                                           x[table[:, 1]].astype(float)))
    np.testing.assert_allclose(weft.conv3d(x, w, m), want, rtol=0, atol=1e-6 * np.abs(want).max())


def test_an_empty_cloud_has_an_empty_result():
    m = weft.kernel_map(np.empty((0, 4), np.int32), 3, 2, subm=False)
    y = weft.conv3d(np.empty((0, 4), np.float32), np.ones((2, 3, 3, 3, 4), np.float32), m)
    assert (m.n_out, m.pairs, y.shape) == (0, 0, (0, 2))


@pytest.mark.parametrize("change, words", [
    (dict(x=np.ones((9, 4), np.float32)), r"x: expected a row for each of the map's 20 input voxels"),
    (dict(x=np.ones((20, 4), int)), r"x: expected elements of"),
    (dict(weight=np.ones((2, 3, 3, 4), np.float32)), r"weight: expected shape \(out channels, 3, 3, 3, in"),
    (dict(weight=np.ones((2, 3, 3, 3, 5), np.float32)), r"weight: expected 4 input channels"),
    (dict(weight=np.ones((2, 3, 3, 3, 4))), r"weight: expected elements of f32"),
    (dict(bias=np.ones(3, np.float32)), r"bias: expected shape \(2,\)"),
    (dict(kernel_map=3), r"kernel_map: expected a map that weft.kernel_map made"),
])
def test_bad_operands_are_named(change, words):
    given = dict(x=np.ones((20, 4), np.float32), weight=np.ones((2, 3, 3, 3, 4), np.float32),
                 kernel_map=weft.kernel_map(voxels(20), 3), bias=None)
    with pytest.raises(weft.ArgumentError, match=words):
        weft.conv3d(**{**given, **change})
