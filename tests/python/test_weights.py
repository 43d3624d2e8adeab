# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""Pruned weights in every format, groups of rows and sparse results against dense products."""

import numpy as np
import pytest

import weft

sp = pytest.importorskip("scipy.sparse")

FORMATS = ["csr", "bsr(4, 8)", "bsr", "dbsr(8, 4)", "sr_bcrs(4, 3)", "sr_bcrs", "n_m(2, 4)", "n_m(1, 8)"]
EXACT = {"float64": 1e-13, "float32": 2e-6}


def weight(format, seed=0, shape=(32, 48), type="float64"):
    """A weight and a mask that fits the format: a third of the entries, some rows and blocks empty."""
    rng = np.random.default_rng(seed)
    w = rng.standard_normal(shape).astype(type)
    mask = rng.random(shape) < 0.3
    mask[:16] &= np.arange(shape[1]) % 3 == 0
    mask[16:] = mask[16:] if "dbsr" not in format else False
    if format.startswith("n_m"):
        k, g = (int(c) for c in format[4:-1].split(","))
        order = np.argsort(rng.random((shape[0], shape[1] // g, g)), axis=2)
        mask &= (order < k).reshape(shape)
    return w, mask


@pytest.mark.parametrize("type", list(EXACT))
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("format", FORMATS)
def test_linear(format, bias, type):
    w, mask = weight(format, type=type)
    rng = np.random.default_rng(1)
    b = rng.standard_normal(len(w)).astype(type) if bias else None
    s = weft.SparseWeight.from_dense(w, mask, format)
    assert np.array_equal(s.to_dense(), w * mask)
    for shape in [(5,), (2, 3), (), (0,), (33,)]:
        x = rng.standard_normal((*shape, 48)).astype(type)
        want = x @ (w * mask).T + (0 if b is None else b)
        got = weft.sparse_linear(x, s, b)
        assert got.shape == want.shape and got.dtype == want.dtype
        assert np.abs(got - want).max(initial=0) <= EXACT[type] * 10


def test_elements_outside_the_mask_are_zero():
    w, mask = weight("bsr(4, 8)")
    s = weft.SparseWeight.from_dense(w, mask, "bsr(4, 8)")
    assert s.keep is not None and s.nnz == mask.sum()
    full = s.with_values(np.ones_like(s.values))
    assert np.array_equal(full.to_dense(), mask)
    x = np.eye(48)
    assert np.array_equal(weft.sparse_linear(x, full).T, mask)


def test_the_cost_model_chooses_a_format():
    """The one with the shortest predicted time; rows where blocks would be nearly empty."""
    rng = np.random.default_rng(5)
    w = rng.standard_normal((96, 64)).astype("f4")
    blocks = np.kron(rng.random((6, 4)) < 0.4, np.ones((16, 16))) > 0
    times = {f: weft.SparseWeight.from_dense(w, blocks, f).predicted()
             for f in ("csr", "bsr(32, 32)", "bsr(32, 16)", "bsr(32, 1)", "bsr(16, 32)", "bsr(16, 16)", "bsr(16, 1)")}
    assert times[weft.SparseWeight.from_dense(w, blocks, "auto").format] == min(times.values())
    assert weft.SparseWeight.from_dense(w, rng.random(w.shape) < 0.01, "auto").format == "csr"
    s = weft.SparseWeight.from_dense(w, blocks, "bsr(16, 16)")
    assert 0 < s.predicted(64) < s.predicted(1024)
    assert np.array_equal(s.mask(), blocks)


def test_matrices_of_scipy_as_they_are():
    w, mask = weight("csr")
    m = sp.csr_matrix(w * mask)
    x = np.random.default_rng(2).standard_normal((7, 48))
    assert np.allclose(weft.sparse_linear(x, m), x @ (w * mask).T, rtol=0, atol=1e-13)


@pytest.mark.parametrize("name, call", [
    ("format", lambda w: weft.SparseWeight.from_dense(w, None, "blocks")),
    ("format", lambda w: weft.SparseWeight.from_dense(w, None, "bsr(4)")),
    ("weight", lambda w: weft.SparseWeight.from_dense(w, None, "bsr(5, 8)")),
    ("weight", lambda w: weft.SparseWeight.from_dense(w[0])),
    ("weight", lambda w: weft.SparseWeight.from_dense(w.astype(int))),
    ("mask", lambda w: weft.SparseWeight.from_dense(w, w[:, 1:] > 0)),
    ("mask", lambda w: weft.SparseWeight.from_dense(w, None, "n_m(2, 4)")),
    ("weight", lambda w: weft.sparse_linear(w, w)),
    ("x", lambda w: weft.sparse_linear(w[:, 1:], weft.SparseWeight.from_dense(w))),
    ("weight", lambda w: weft.sparse_linear(w.astype("f4"), weft.SparseWeight.from_dense(w))),
    ("bias", lambda w: weft.sparse_linear(w, weft.SparseWeight.from_dense(w), np.zeros(3))),
    ("values", lambda w: weft.SparseWeight.from_dense(w).with_values(np.zeros(3))),
])
def test_bad_weights_are_named(name, call):
    with pytest.raises(weft.ArgumentError, match=f"^{name}: expected"):
        call(weight("csr")[0])


@pytest.mark.parametrize("ends", [[3, 3, 8], [0, 0, 0], [8, 8, 8]])
def test_groups(ends):
    rng = np.random.default_rng(3)
    x, w = rng.standard_normal((ends[-1], 6)), rng.standard_normal((3, 6, 5))
    begins = [0, *ends[:-1]]
    want = np.concatenate([x[a:b] @ w[g] for g, (a, b) in enumerate(zip(begins, ends))])
    got = weft.grouped_mm(x, w, ends)
    assert got.shape == want.shape and np.allclose(got, want, rtol=0, atol=1e-13)
    tokens = rng.standard_normal((4, 6))
    index, gates = rng.integers(0, 4, ends[-1]), rng.standard_normal(ends[-1])
    each = np.concatenate([tokens[index[a:b]] @ w[g] for g, (a, b) in enumerate(zip(begins, ends))])
    assert np.allclose(weft.grouped_mm(tokens, w, ends, index=index), each, rtol=0, atol=1e-13)
    summed = np.zeros((4, 5))
    np.add.at(summed, index, gates[:, None] * each)
    assert np.allclose(weft.grouped_mm(tokens, w, ends, index=index, gates=gates), summed, rtol=0, atol=1e-13)


@pytest.mark.parametrize("name, change", [
    ("offsets", dict(offsets=[3, 2, 8])), ("offsets", dict(offsets=[3, 8])), ("x", dict(offsets=[3, 4, 9])),
    ("x", dict(x=np.zeros((8, 7)))), ("weight", dict(weight=np.zeros((6, 5)))),
    ("weight", dict(weight=np.zeros((3, 6, 5), "f4"))), ("index", dict(index=[0] * 7 + [8])),
    ("offsets", dict(offsets=[3.0, 3.5, 8.0])), ("index", dict(index=[0.5] * 8)), ("index", dict(gates=np.zeros(8))), ("gates", dict(index=[0] * 8, gates=np.zeros(7))),
])
def test_bad_groups_are_named(name, change):
    given = {"x": np.zeros((8, 6)), "weight": np.zeros((3, 6, 5)), "offsets": [3, 3, 8], **change}
    with pytest.raises(weft.ArgumentError, match=f"^{name}: expected"):
        weft.grouped_mm(given.pop("x"), given.pop("weight"), given.pop("offsets"), **given)


def matrix(m, n, seed, density=0.2):
    """Small integers, no zero among them, so that sums are exact and SciPy drops none."""
    a = sp.random(m, n, density, "csr", random_state=seed)
    a.data = np.random.default_rng(seed).integers(1, 5, a.nnz).astype(float)
    return a


@pytest.mark.parametrize("shape", [(1, 1, 1), (7, 5, 9), (40, 30, 50)])
def test_sparse_results(shape):
    m, l, n = shape
    for density in (0, 0.2, 1):
        a, b, c = matrix(m, l, 1, density), matrix(l, n, 2, density), matrix(m, l, 3, 0.5)
        for got, want in [(weft.spgemm(a, b), a @ b), (weft.sparse_add(a, c), a + c),
                          (weft.sparse_mul(a, c), a.multiply(c).tocsr())]:
            want.sort_indices()
            assert got.shape == want.shape and type(got) is type(a)
            for part in ("indptr", "indices", "data"):
                assert np.array_equal(getattr(got, part), getattr(want, part)), part


@pytest.mark.parametrize("format", ["csr", "csc", "coo", "bsr", "lil", "dok", "dia"])
def test_sparse_results_are_of_the_kind_of_the_first(format):
    for kind in (sp.csr_matrix, sp.csr_array):
        a, b = kind(matrix(6, 4, 1, 0.5)).asformat(format), kind(matrix(4, 5, 2, 0.5))
        got = weft.spgemm(a, b)
        assert type(got) is type(a) and np.array_equal(got.toarray(), a.toarray() @ b.toarray())


@pytest.mark.parametrize("shape", [(0, 0, 0), (0, 3, 4), (3, 0, 4), (3, 4, 0)])
def test_sparse_results_of_empty_matrices(shape):
    m, l, n = shape
    got = weft.spgemm(matrix(m, l, 1, 0.5), matrix(l, n, 2, 0.5))
    assert got.shape == (m, n) and got.nnz == 0
    for call in (weft.sparse_add, weft.sparse_mul):
        assert call(sp.csr_matrix((m, n)), sp.csr_matrix((m, n))).shape == (m, n)


def test_unsorted_rows_and_duplicates_are_put_in_order():
    a = sp.csr_matrix((np.array([1.0, 2.0, 3.0]), np.array([2, 0, 2]), np.array([0, 3])), shape=(1, 3))
    assert np.array_equal(weft.sparse_add(a, a).toarray(), [[4, 0, 8]])


@pytest.mark.parametrize("call, name", [
    (lambda a: weft.spgemm(a, matrix(4, 4, 1)), "B"), (lambda a: weft.sparse_add(a, matrix(4, 4, 1)), "B"),
    (lambda a: weft.spgemm(np.eye(3), a), "A"), (lambda a: weft.sparse_mul(a, a.astype("f4")), "B"),
])
def test_bad_matrices_are_named(call, name):
    with pytest.raises(weft.ArgumentError, match=f"^{name}: expected"):
        call(matrix(5, 6, 1))
