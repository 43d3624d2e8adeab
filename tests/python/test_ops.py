# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""Operators against SciPy and NumPy: formats, types, shapes, structure that changes, errors.  Sums
are compared by the bound of n terms, (n + 4) u times the sum of their magnitudes, or bit for bit
where data are small integers."""

import gc
import subprocess
import sys
import threading

import numpy as np
import pytest
import scipy.sparse as sp

import weft
from weft import _ops, _program, _sparse

UNIT = {np.float32: 2.0**-24, np.float64: 2.0**-53}
FORMATS = ["csr", "csc", "coo"]


def matrix(m, n, density, format, dtype=np.float32, seed=1, index=np.int32, exact=False):
    """Random, with an empty row, a full one, and, but for CSC, entries that are not in order."""
    rng = np.random.default_rng(seed)
    a = sp.random(m, n, density, format="lil", dtype=np.float64, random_state=seed)
    if m > 2:
        a[m // 2] = 0
        a[m // 3] = rng.standard_normal(n)
    a = a.tocsr()
    a.eliminate_zeros()
    a.data[:] = rng.integers(-4, 5, a.nnz) if exact else rng.standard_normal(a.nnz)
    a = a.asformat(format).astype(dtype)
    if format == "coo":
        order = rng.permutation(a.nnz)
        a = sp.coo_matrix((a.data[order], (a.row[order].astype(index), a.col[order].astype(index))), (m, n))
        a.row, a.col = a.row.astype(index), a.col.astype(index)
    else:
        a.indices, a.indptr = a.indices.astype(index), a.indptr.astype(index)
    return a


def dense(rng, shape, dtype=np.float32, exact=False):
    x = rng.integers(-4, 5, shape) if exact else rng.standard_normal(shape)
    return x.astype(dtype)


def check_sum(got, want, magnitude, terms, dtype):
    """want and magnitude in 64 bits or more; terms: the longest sum."""
    assert got.dtype == dtype and got.shape == want.shape
    bound = (terms + 4) * UNIT[dtype] * magnitude
    assert (np.abs(got.astype(np.longdouble) - want) <= bound + 1e-300).all()


def rows_of(a):
    return (a.row, a.col) if a.format == "coo" else (
        np.repeat(np.arange(a.shape[0]), np.diff(a.indptr)) if a.format == "csr" else a.indices,
        a.indices if a.format == "csr" else np.repeat(np.arange(a.shape[1]), np.diff(a.indptr)))


@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("f", [1, 7, 32])
def test_spmm(rng, format, dtype, transpose, f):
    a = matrix(40, 30, 0.15, format, dtype)
    b = dense(rng, (40 if transpose else 30, f), dtype)
    wide = (a.T if transpose else a).toarray().astype(np.longdouble)
    got = weft.spmm(a, b, transpose=transpose)
    check_sum(got, wide @ b, np.abs(wide) @ np.abs(b), 40, dtype)


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_all_in_exact_numbers(rng, format, index):
    a = matrix(50, 37, 0.2, format, index=index, exact=True)
    b, x, y = dense(rng, (37, 9), exact=True), dense(rng, (50, 5), exact=True), dense(rng, (37, 5), exact=True)
    i, j = rows_of(a)
    np.testing.assert_array_equal(weft.spmm(a, b), a @ b)
    np.testing.assert_array_equal(weft.spmm(a, x, transpose=True), a.T @ x)
    np.testing.assert_array_equal(weft.spmv(a, b[:, 0]), a @ b[:, 0])
    np.testing.assert_array_equal(weft.spmv(a, x[:, 0], transpose=True), a.T @ x[:, 0])
    dot = (x[i] * y[j]).sum(1)
    np.testing.assert_array_equal(weft.sddmm(a, x, y), dot)
    np.testing.assert_array_equal(weft.sddmm(a, x, y, values=True), dot * a.data)
    np.testing.assert_array_equal(weft.sddmm(a, y, x, transpose=True), dot)


@pytest.mark.parametrize("format", FORMATS)
def test_heads_and_batches(rng, format):
    a = matrix(20, 15, 0.3, format, exact=True)
    i, j = rows_of(a)
    parts = [np.array(p) for p in ((a.row, a.col) if format == "coo" else (a.indptr, a.indices))]
    b = dense(rng, (3, 15, 4), exact=True)
    np.testing.assert_array_equal(weft.spmm(a, b, batch=True), np.stack([a @ x for x in b]))
    nodes_first = np.ascontiguousarray(b.transpose(1, 0, 2))  # without being asked for there is no batch
    np.testing.assert_array_equal(weft.spmm(a, nodes_first), np.stack([a @ x for x in b], 1))
    np.testing.assert_array_equal(weft.spmm(a, b[0, :, 0].copy()), a @ b[0, :, 0])
    np.testing.assert_array_equal(weft.spmv(a, b[:, :, 0], batch=True), np.stack([a @ x for x in b[:, :, 0]]))
    if format != "csr":
        return
    w = dense(rng, (a.nnz, 2), exact=True)
    many = (parts[0], parts[1], w, a.shape)
    b = dense(rng, (15, 2, 4), exact=True)
    want = np.stack([sp.csr_matrix((w[:, h].copy(), *parts[::-1]), a.shape) @ b[:, h] for h in range(2)], 1)
    np.testing.assert_array_equal(weft.spmm(many, b), want)
    np.testing.assert_array_equal(weft.spmv(many, b[:, :, 1]), want[:, :, 1])
    batch = np.stack([b, 2 * b, b - 1])
    np.testing.assert_array_equal(weft.spmm(many, batch, batch=True)[:2], np.stack([want, 2 * want]))
    x, y = dense(rng, (20, 2, 5), exact=True), dense(rng, (15, 2, 5), exact=True)
    dot = (x[i] * y[j]).sum(2)
    np.testing.assert_array_equal(weft.sddmm(many, x, y), dot)
    np.testing.assert_array_equal(weft.sddmm(many, x, y, values=True), dot * w)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("format", FORMATS)
def test_sddmm(rng, format, dtype):
    a = matrix(40, 30, 0.15, format, dtype)
    i, j = rows_of(a)
    x, y = dense(rng, (40, 33), dtype), dense(rng, (30, 33), dtype)
    terms = x.astype(np.longdouble)[i] * y[j]
    check_sum(weft.sddmm(a, x, y), terms.sum(1), np.abs(terms).sum(1), 33, dtype)
    terms *= a.data[:, None]
    check_sum(weft.sddmm(a, x, y, values=True), terms.sum(1), np.abs(terms).sum(1), 34, dtype)


def reduced(i, m, x, reduce):
    out = np.zeros((m, *x.shape[1:]), x.dtype)
    which = np.full(out.shape, -1)
    for r in range(m):
        mine = np.flatnonzero(i == r)
        if len(mine) == 0:
            continue
        out[r] = getattr(np, reduce)(x[mine], axis=0)
        if reduce in ("max", "min"):
            which[r] = mine[getattr(np, "arg" + reduce)(x[mine], axis=0)]
    return out, which


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("reduce", ["sum", "mean", "max", "min"])
@pytest.mark.parametrize("transpose", [False, True])
def test_segment_reduce(rng, format, reduce, transpose):
    a = matrix(30, 25, 0.15, format)
    i, j = rows_of(a)
    if transpose:
        i, j = j, i
    m, n = a.shape[::-1] if transpose else a.shape
    x, nodes = dense(rng, (a.nnz, 3, 2), exact=True), dense(rng, (n, 6), exact=True)
    want, which = reduced(i, m, x, reduce)
    np.testing.assert_array_equal(weft.segment_reduce(a, x, reduce, transpose=transpose), want)
    np.testing.assert_array_equal(
        weft.segment_reduce(a, x[:, 1, 1], reduce, transpose=transpose), want[:, 1, 1])
    gathered, _ = reduced(i, m, nodes[j], reduce)
    np.testing.assert_array_equal(
        weft.segment_reduce(a, nodes, reduce, nodes=True, transpose=transpose), gathered)
    if reduce in ("max", "min"):
        got = weft.segment_reduce(a, x, reduce, arg=True, transpose=transpose)
        np.testing.assert_array_equal(got[0], want)
        np.testing.assert_array_equal(got[1], which)


def test_segments_by_their_starts(rng):
    start = np.array([0, 3, 3, 10])
    x = dense(rng, (10, 4))
    want = np.stack([x[:3].max(0), np.zeros(4, np.float32), x[3:].max(0)])
    np.testing.assert_array_equal(weft.segment_reduce(start, x, "max"), want)
    p = weft.softmax(start.astype(np.int32), x)
    np.testing.assert_allclose(p[3:].sum(0), 1, rtol=1e-6)
    with pytest.raises(weft.ArgumentError, match="A: expected a matrix, when nodes"):
        weft.segment_reduce(start, x, nodes=True)
    with pytest.raises(weft.BindError):
        weft.segment_reduce(start, x[:9])


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_softmax(rng, format, dtype):
    a = matrix(30, 25, 0.15, format, dtype)
    i, j = rows_of(a)
    s = (10 * dense(rng, (a.nnz, 3))).astype(dtype)
    s[:5] = 1e4  # without the shift, exp leaves the range
    for group, m, transpose in ((i, 30, False), (j, 25, True)):
        wide = s.astype(np.longdouble)
        want = np.zeros_like(wide)
        for r in range(m):
            mine = group == r
            if mine.any():
                e = np.exp(wide[mine] - wide[mine].max(0))
                want[mine] = e / e.sum(0)
        got = weft.softmax(a, s, transpose=transpose)
        assert got.dtype == dtype
        # the shift is rounded, and exp makes of that an error of |s - max| units
        np.testing.assert_allclose(got, want, rtol=200 * UNIT[dtype], atol=1e-40)
    np.testing.assert_array_equal(weft.softmax(a), weft.softmax(a, a.data))
    np.testing.assert_allclose(weft.softmax(a, s)[:, 1], weft.softmax(a, s[:, 1]), rtol=20 * UNIT[dtype])


@pytest.mark.parametrize("format", FORMATS)
def test_half_precision_is_the_f32_kernel_rounded_once(rng, format):
    a = matrix(30, 25, 0.2, format)
    wide = a.copy()
    a.data = a.data.astype(np.float16)  # which SciPy holds, but does not compute with
    wide.data = a.data.astype(np.float32)
    b, x = dense(rng, (25, 19), np.float16), dense(rng, (30, 19), np.float16)
    e = dense(rng, (a.nnz, 3), np.float16)
    with np.errstate(over="ignore"):
        for got, want in (
                (weft.spmm(a, b), weft.spmm(wide, b.astype(np.float32))),
                (weft.spmm(a, x, transpose=True), weft.spmm(wide, x.astype(np.float32), transpose=True)),
                (weft.segment_reduce(a, e), weft.segment_reduce(a, e.astype(np.float32))),
                (weft.segment_reduce(a, e, "mean"), weft.segment_reduce(a, e.astype(np.float32), "mean")),
                (weft.segment_reduce(a, e, "min"), weft.segment_reduce(a, e.astype(np.float32), "min"))):
            assert got.dtype == np.float16
            np.testing.assert_array_equal(got, want.astype(np.float16))
        for got, want in (  # sums that vectors form in another order: the rounding may fall elsewhere
                (weft.sddmm(a, x, b), weft.sddmm(wide, x.astype(np.float32), b.astype(np.float32))),
                (weft.softmax(a, e), weft.softmax(a, e.astype(np.float32)))):
            assert got.dtype == np.float16 and (got == want.astype(np.float16)).mean() > 0.98
            np.testing.assert_allclose(got.astype(np.float32), want, rtol=2.0**-10, atol=1e-6)


def test_bfloat16_of_ml_dtypes(rng):
    bfloat16 = pytest.importorskip("ml_dtypes").bfloat16
    a = matrix(30, 25, 0.2, "csr")
    b = dense(rng, (25, 8)).astype(bfloat16)
    values = a.data.astype(bfloat16)
    got = weft.spmm((a.indptr, a.indices, values, a.shape), b)
    want = weft.spmm((a.indptr, a.indices, values.astype(np.float32), a.shape), b.astype(np.float32))
    assert got.dtype == bfloat16 and (got == want.astype(bfloat16)).all()


@pytest.mark.parametrize("m,n,f", [(0, 5, 3), (5, 0, 3), (5, 4, 0), (0, 0, 0), (1, 1, 1)])
@pytest.mark.parametrize("format", FORMATS)
def test_zero_sizes(m, n, f, format):
    a = sp.csr_matrix((m, n), dtype=np.float32).asformat(format)
    b, x = np.ones((n, f), np.float32), np.ones((m, f), np.float32)
    assert weft.spmm(a, b).tolist() == np.zeros((m, f)).tolist()
    assert weft.sddmm(a, x, b).shape == (0,)
    assert weft.spmv(a, np.ones(n, np.float32)).tolist() == [0] * m
    assert weft.segment_reduce(a, np.ones((0, 2), np.float32), "mean").tolist() == [[0, 0]] * m
    assert weft.softmax(a, np.ones((0, 2), np.float32)).shape == (0, 2)


def test_duplicates_add_up_and_order_does_not_matter(rng):
    start, cols = np.array([0, 4, 4, 7]), np.array([2, 0, 2, 2, 1, 1, 0])
    data = dense(rng, 7, exact=True)
    b = dense(rng, (3, 5), exact=True)
    a = sp.csr_array((data, cols, start), shape=(3, 3))
    np.testing.assert_array_equal(weft.spmm(a, b), a.toarray() @ b)
    assert a.nnz == 7  # nothing was summed in place
    np.testing.assert_array_equal(weft.sddmm(a, b, b), (b[[0, 0, 0, 0, 2, 2, 2]] * b[cols]).sum(1))
    np.testing.assert_array_equal(weft.spmm(a, b, transpose=True), a.toarray().T @ b)


@pytest.mark.parametrize("change", [
    np.asfortranarray, lambda b: np.repeat(b, 3, axis=1)[:, ::3], lambda b: b[::-1].copy()[::-1],
    lambda b: np.frombuffer(b"x" + b.tobytes(), np.uint8)[1:].view(np.float32).reshape(b.shape),
    lambda b: np.broadcast_to(b[:1], b.shape),
])
def test_operands_of_any_layout(rng, change):
    a = matrix(30, 25, 0.2, "csr", exact=True)
    b, x = change(dense(rng, (25, 6), exact=True)), change(dense(rng, (30, 6), exact=True))
    i, j = rows_of(a)
    np.testing.assert_array_equal(weft.spmm(a, b), a @ np.ascontiguousarray(b))
    np.testing.assert_array_equal(weft.sddmm(a, x, b), (x[i] * b[j]).sum(1))


def test_out(rng):
    a = matrix(30, 25, 0.2, "csr", exact=True)
    b = dense(rng, (25, 6), exact=True)
    want = a @ b
    out = np.full((30, 6), np.nan, np.float32)
    assert weft.spmm(a, b, out) is out
    np.testing.assert_array_equal(out, want)
    big = np.full((60, 12), np.nan, np.float32)
    view = big[58::-2, ::2]
    assert weft.spmm(a, b, out=view) is view
    np.testing.assert_array_equal(view, want)
    assert np.isnan(big[1::2]).all() and np.isnan(big[:, 1::2]).all()
    z = np.empty(2 * a.nnz, np.float32)[::2]
    x = dense(rng, (30, 6), exact=True)
    assert weft.sddmm(a, x, b, out=z) is z
    np.testing.assert_array_equal(z, weft.sddmm(a, x, b))
    square = sp.csr_matrix(np.eye(25, dtype=np.float32))
    with pytest.raises(weft.BindError, match="shares memory"):
        weft.spmm(square, b, out=b)
    p = dense(rng, a.nnz)
    with pytest.raises(weft.BindError, match="shares memory"):
        weft.softmax(a, p, out=p)


def test_results_are_arrays_of_their_own(rng):
    a = matrix(30, 25, 0.2, "csr", exact=True)
    b = dense(rng, (25, 6), exact=True)
    first = weft.spmm(a, b)
    kept = first.copy()
    np.testing.assert_array_equal(weft.spmm(a, 2 * b), 2 * kept)
    np.testing.assert_array_equal(first, kept)


def test_structure_that_changes_in_place_is_noticed(rng):
    a = matrix(30, 25, 0.2, "csr", exact=True)
    b = dense(rng, (25, 6), exact=True)
    for call in range(4):
        np.testing.assert_array_equal(weft.spmm(a, b), sp.csr_matrix(
            (a.data, a.indices, a.indptr), a.shape) @ b)
        a.indices[:] = rng.permutation(a.indices)
        a.data[:] = rng.integers(-4, 5, a.nnz)
    a.indices[3] = 25
    with pytest.raises(weft.BindError, match="E.j"):
        weft.spmm(a, b)
    a.indices[3] = 24
    a.indices = a.indices.copy()  # another array
    a.indices[:5] = 1
    np.testing.assert_array_equal(weft.spmm(a, b), sp.csr_matrix(
        (a.data, a.indices, a.indptr), a.shape) @ b)


def test_frozen_structure_is_not_looked_at(rng):
    a = matrix(30, 25, 0.2, "csr", exact=True)
    b = dense(rng, (25, 6), exact=True)
    structure, _ = _sparse.sparse(a)
    assert structure.changes()
    assert weft.freeze(a) is a and not structure.changes()
    np.testing.assert_array_equal(weft.spmm(a, b), a @ b)
    with pytest.raises(ValueError):
        a.indices[0] = 1
    a.data *= 2  # values may change
    np.testing.assert_array_equal(weft.spmm(a, b), a @ b)


def test_nothing_is_kept_of_structures_that_are_gone(rng):
    b = dense(rng, (25, 6))
    gc.collect()
    before = len(_sparse._known)
    for seed in range(3):
        weft.spmm(matrix(30, 25, 0.2, "csr", seed=seed), b)
    gc.collect()
    assert len(_sparse._known) == before
    a = matrix(30, 25, 0.2, "csr")
    for f in range(1, 40):
        weft.spmm(a, b[:, :1].repeat(f, 1))
    structure, _ = _sparse.sparse(a)
    assert len(structure.sites) == _ops._MOST_SITES
    weft.forget(a)
    assert len(_sparse._known) == before
    np.testing.assert_allclose(weft.spmm(a, b), a @ b, rtol=1e-5, atol=1e-5)


def test_kernels_are_compiled_once(rng):
    a, b = matrix(30, 25, 0.2, "csr"), dense(rng, (25, 6))
    weft.spmm(a, b)
    kernel = _program.kernels["spmm:f32:csr", 0]
    weft.spmm(matrix(20, 25, 0.2, "csr"), dense(rng, (25, 9)))
    assert _program.kernels["spmm:f32:csr", 0] is kernel and kernel.info.target == "c"
    for kernel in _program.kernels.values():
        assert kernel.info.target == "c", kernel.program.text


def test_kernels_that_were_not_used_for_longest_go(rng, monkeypatch):
    monkeypatch.setattr(_program, "MOST_KERNELS", 3)
    monkeypatch.setattr(_program, "kernels", type(_program.kernels)())
    a, b, x = matrix(30, 25, 0.2, "csr"), dense(rng, (25, 6)), dense(rng, (30, 6))
    want = weft.spmm(a, b)
    for call in (lambda: weft.sddmm(a, x, b), lambda: weft.softmax(a), lambda: weft.segment_reduce(a, b, nodes=True)):
        call()
        weft.spmm(matrix(20, 25, 0.2, "csr"), b)
    assert len(_program.kernels) == 3 and list(_program.kernels)[-1] == ("spmm:f32:csr", 0)
    weft.spmv(a, b[:, 0].copy())
    np.testing.assert_array_equal(weft.spmm(a, b), want)


@pytest.mark.parametrize("threads", [1, 2, 3, 7, 16])
def test_same_bits_on_any_number_of_threads(threads):
    rng = np.random.default_rng(3)
    a = matrix(300, 200, 0.1, "csr")
    b, x = dense(rng, (200, 24)), dense(rng, (300, 24))

    def all_of_it():
        return [weft.spmm(a, b), weft.spmm(a, x, transpose=True), weft.sddmm(a, x, b), weft.softmax(a),
                weft.segment_reduce(a, b, "mean", nodes=True)]

    weft.set_threads(1)
    want = all_of_it()
    weft.set_threads(threads)
    try:
        for one, other in zip(want, all_of_it()):
            assert one.tobytes() == other.tobytes()
    finally:
        weft.set_threads(0)


def test_calls_from_several_threads(rng):
    a, b = matrix(30, 25, 0.2, "csr", exact=True), dense(rng, (25, 6), exact=True)
    want, wrong = a @ b, []

    def work():
        for k in range(50):
            if not np.array_equal(weft.spmm(a, b * k), want * k):
                wrong.append(k)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert wrong == []


A = matrix(30, 25, 0.2, "csr")
ONES = {"b": np.ones((25, 6), np.float32), "x": np.ones((30, 6), np.float32)}


@pytest.mark.parametrize("call,message", [
    (lambda: weft.spmm(A, ONES["x"]), r"B: expected shape \(25, f\), or \(batch, 25, f\) with batch=True, got \(30, 6\)"),
    (lambda: weft.spmm(A, np.ones((2, 25, 6), np.float32)), r"B: expected shape"),
    (lambda: weft.spmm(A, ONES["b"], batch=True), r"B: expected shape \(batch, 25, f\), got \(25, 6\)"),
    (lambda: weft.spmm(A, np.ones((1, 1, 25, 6), np.float32)), r"B: expected shape"),
    (lambda: weft.spmm(A, ONES["b"].astype(np.float64)), r"B: expected elements of f32, as A has, got f64"),
    (lambda: weft.spmm(A, ONES["b"].astype(np.int32)), r"B: expected elements of float16.*got int32"),
    (lambda: weft.spmm(A.astype(np.int64), ONES["b"]), r"A: expected elements of float16.*got int64"),
    (lambda: weft.spmv(A, ONES["b"]), r"X: expected shape \(25\), or \(batch, 25\) with batch=True, got \(25, 6\)"),
    (lambda: weft.spmm(A.tolil(), ONES["b"]), r"A: expected a matrix in format csr, csc or coo, got lil"),
    (lambda: weft.spmm(A.toarray(), ONES["b"]), r"A: expected a weft.Graph, .*a SciPy matrix.*got an array of float32"),
    (lambda: weft.spmm((A.indptr, A.indices), ONES["b"]), r"A: expected \(indptr, indices, data, shape\)"),
    (lambda: weft.spmm((A.indptr, A.indices, None, A.shape), ONES["b"]), r"A: expected values, got none"),
    (lambda: weft.spmm((A.indptr, A.indices, A.data, 30), ONES["b"]), r"A: shape: expected two sizes, got 30"),
    (lambda: weft.spmm((A.indptr[1:], A.indices, A.data, A.shape), ONES["b"]),
     r"A: indptr: expected 31 elements, got 30"),
    (lambda: weft.spmm((A.indptr.astype(float), A.indices, A.data, A.shape), ONES["b"]),
     r"A: indptr: expected a vector of int32 or int64, got an array of float64"),
    (lambda: weft.spmm((A.indptr, A.indices, A.data[1:], A.shape), ONES["b"]), r"A: data: expected"),
    (lambda: weft.spmm((np.zeros(31, "i4,i2")["f0"], A.indices, A.data, A.shape), ONES["b"]),
     r"A: indptr: expected a step of whole elements, got one of 6 bytes"),
    (lambda: weft.sddmm(A, ONES["b"], ONES["b"]), r"X: expected shape \(30, f\) or \(30, h, f\), got \(25, 6\)"),
    (lambda: weft.sddmm(A, ONES["x"], ONES["b"][:, :5]), r"Y: expected shape \(25, 6\), got \(25, 5\)"),
    (lambda: weft.sddmm(A, ONES["x"], ONES["b"].astype(np.float64)), r"Y: expected elements of f32"),
    (lambda: weft.sddmm(A.astype(np.float64), ONES["x"], ONES["b"], values=True), r"A: expected elements of f32"),
    (lambda: weft.segment_reduce(A, ONES["x"]), r"X: expected shape \(\d+, ...\), got \(30, 6\)"),
    (lambda: weft.segment_reduce(A, ONES["b"], "median", nodes=True), r"reduce: expected sum or mean or max"),
    (lambda: weft.segment_reduce(A, ONES["b"], arg=True, nodes=True), r"arg: expected it with max or min only"),
    (lambda: weft.softmax(A, ONES["x"]), r"S: expected shape"),
    (lambda: weft.softmax(A.indptr), r"A: expected values, got none"),
    (lambda: weft.spmm(A, ONES["b"], out=np.ones((30, 5), np.float32)),
     r"out: expected f32 of shape \(30, 6\), got f32 of shape \(30, 5\)"),
    (lambda: weft.spmm(A, ONES["b"], out=np.ones((30, 6))), r"out: expected f32 of shape.*got f64"),
    (lambda: weft.spmm(A, ONES["b"], out=[1]), r"out: expected an array to write to, got list"),
    (lambda: weft.spmm(A, ONES["b"], out=np.broadcast_to(np.float32(1), (30, 6))), r"out: expected an array that"),
    (lambda: weft.Program.op("spmm:f8"), r"spmm has no option f8; it takes f32"),
])
def test_errors_name_argument_expected_and_got(call, message):
    with pytest.raises(weft.ArgumentError, match=message):
        call()


def test_structure_with_steps(rng):
    a = matrix(30, 25, 0.2, "csr", exact=True)
    b = dense(rng, (25, 6), exact=True)
    start, cols = np.repeat(a.indptr, 2)[::2], a.indices[::-1].copy()[::-1]
    for _ in range(2):
        np.testing.assert_array_equal(weft.spmm((start, cols, a.data, a.shape), b), a @ b)


def test_lists_are_arrays():
    a = sp.csr_matrix(np.array([[1.0, 0], [2, 3]]))
    assert weft.spmm(a, [[1.0], [2]]).tolist() == [[1], [8]]


def test_torch_is_not_imported():
    code = ("import sys, numpy as np, scipy.sparse as sp, weft\n"
            "weft.spmm(sp.eye(3, format='csr', dtype='f'), np.ones((3, 2), 'f'))\n"
            "assert 'torch' not in sys.modules")
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("call", [
    lambda edges, x: weft.spmm(edges, x), lambda edges, x: weft.sddmm(edges, x, x),
    lambda edges, x: weft.segment_reduce(edges, x, nodes=True)])
@pytest.mark.parametrize("end, value", [(0, 9), (0, -1), (1, 3)])
def test_edges_beyond_the_nodes_are_named(call, end, value):
    edges, x = np.array([[0, 2, 1, 0], [1, 1, 0, 2]]), np.ones((3, 4), np.float32)
    edges[end, 2] = value
    which = "receiver" if end else "sender"
    words = f"^edge_index: the {which} of edge 2 is {value}, but there are 3 nodes$"
    with pytest.raises(ValueError, match=words):
        call(edges, x)
    torch = sys.modules.get("torch")
    if torch is not None:
        with pytest.raises(ValueError, match=words):
            call(torch.from_numpy(edges), torch.from_numpy(x))


@pytest.mark.parametrize("given, got", [(None, "NoneType"), ("text", "str"), ([None], "list")])
def test_operands_that_are_no_arrays_are_named(given, got):
    with pytest.raises(ValueError, match=f"B: expected an array or a tensor, got {got}"):
        weft.spmm(np.array([[0], [0]]), given)
