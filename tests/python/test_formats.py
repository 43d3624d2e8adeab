# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""Every format of the catalogue against NumPy and SciPy.  Data are small integers, so that every
order of a sum gives the same result: comparisons are exact unless exp or division come in."""

import numpy as np
import pytest
import scipy.sparse as sp

M, N, F = 97, 83, 21


def whole(rng, *shape, dtype=np.float64):
    return rng.integers(-4, 5, shape).astype(dtype)


def matrix(rng, m=M, n=N, density=0.1, dtype=np.float64):
    a = whole(rng, m, n, dtype=dtype) * (rng.random((m, n)) < density)
    a[m // 3] = 0  # an empty row, and one that is full
    a[m // 2] = 1
    return a


def same(got, want):
    assert got.shape == want.shape and got.dtype == want.dtype
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("name", ["spmm", "spmm_edges"])
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_csr(example, rng, name, index):
    a, b = sp.csr_matrix(matrix(rng, dtype=np.float32)), whole(rng, N, F, dtype=np.float32)
    a.indptr, a.indices = a.indptr.astype(index), a.indices.astype(index)
    same(example(name)(A=a, B=b), a @ b)
    same(example(name)(A=sp.coo_matrix(a), B=b), a @ b)  # converted
    same(example(name)(A=sp.csr_array(a), B=b), a @ b)


def test_csc(example, rng):
    a, b = sp.csc_matrix(matrix(rng)), whole(rng, N, F)
    same(example("spmm_csc")(A=a, B=b, m=M), a @ b)


def test_coo_with_duplicates(example, rng):
    k = 3000
    i, j = rng.integers(0, M, k), rng.integers(0, N, k)
    a, x = sp.coo_matrix((whole(rng, k), (i, j)), shape=(M, N)), whole(rng, N)
    same(example("spmv_coo")(A=a, X=x, m=M), a @ x)
    same(example("spmv_coo2")({"I.coord": i, "J.coord": j}, A=a.data, X=x, m=M), a @ x)


def test_dcsr(example, rng):
    dense = matrix(rng) * (np.arange(M) % 3 == 0)[:, None]
    rows = np.flatnonzero(dense.any(axis=1))
    a, x = sp.csr_matrix(dense[rows]), whole(rng, N)
    got = example("spmv_dcsr")(A=a.data, I_coord=rows, J_start=a.indptr, J_coord=a.indices, X=x, m=M)
    same(got, dense @ x)


def ell(dense, pad):
    """Columns and values of each row, filled up with a column that does not exist."""
    width = max(1, (dense != 0).sum(axis=1).max())
    col, val = np.full((len(dense), width), pad), np.full((len(dense), width), np.nan)
    for i, row in enumerate(dense):
        at = np.flatnonzero(row)
        col[i, : len(at)], val[i, : len(at)] = at, row[at]
    return col, val


@pytest.mark.parametrize("pad", [-1, N, 10**9])
def test_ell_never_touches_padding(example, rng, pad):
    dense, x = matrix(rng), whole(rng, N)
    col, val = ell(dense, pad)
    same(example("spmv_ell")(A=val, L_coord=col, X=x), dense @ x)


def test_band(example, rng):
    dense, x = np.triu(np.tril(whole(rng, M, M), 2), -2), whole(rng, M)
    bands = np.full((M, 5), np.nan)
    for d in range(-2, 3):
        i = np.arange(max(0, -d), min(M, M - d))
        bands[i, d + 2] = dense[i, i + d]
    same(example("spmv_band")(A=bands, X=x), dense @ x)


def test_dia(example, rng):
    off = np.array([-7, 0, 3, 40])
    dense, a, x = np.zeros((M, M)), np.full((4, M), np.nan), whole(rng, M)
    for d, o in enumerate(off):
        i = np.arange(max(0, -o), min(M, M - o))
        a[d, i] = dense[i, i + o] = whole(rng, len(i))
    same(example("spmv_dia")(A=a, D_off=off, X=x, m=M), dense @ x)


def test_two_of_four(example, rng):
    groups = 20
    o = np.sort(np.argsort(rng.random((M, groups, 4)), axis=2)[:, :, :2], axis=2)
    a, b = whole(rng, M, groups, 2), whole(rng, 4 * groups, F)
    dense = np.zeros((M, groups, 4))
    np.put_along_axis(dense, o, a, axis=2)
    same(example("spmm_nm")(A=a, L_o=o, B=b), dense.reshape(M, -1) @ b)


def test_bsr(example, rng):
    dense = np.kron(rng.random((40, 30)) < 0.2, np.ones((2, 2))) * whole(rng, 80, 60)
    a, x = sp.bsr_matrix(dense, blocksize=(2, 2)), whole(rng, 60, F)
    a.sort_indices()
    arrays = {"A": a.data, "JB.start": a.indptr, "JB.coord": a.indices}
    same(example("spmm_bsr")(arrays, X=x.reshape(30, 2, F)).reshape(80, F), dense @ x)
    same(example("spmv_bsr_rows")(arrays, X=x[:, 0]), dense @ x[:, 0])


def test_srbcrs(example, rng):
    strips, dense = 30, None
    dense = np.repeat(rng.random((strips, N)) < 0.2, 2, axis=0) * whole(rng, 2 * strips, N)
    start, col, val = [0], [], []
    for s in range(strips):
        at = np.flatnonzero(dense[2 * s : 2 * s + 2].any(axis=0))
        at = np.pad(at, (0, -len(at) % 3), constant_values=-1).reshape(-1, 3)
        start.append(start[-1] + len(at))
        col.append(at)
        tile = dense[2 * s : 2 * s + 2][:, at].transpose(1, 0, 2).copy()
        tile[np.repeat(at[:, None] < 0, 2, axis=1)] = np.nan
        val.append(tile)
    b = whole(rng, N, F)
    got = example("spmm_srbcrs")(
        {"G.start": np.array(start), "C.j": np.concatenate(col)}, A=np.concatenate(val), B=b)
    same(got.reshape(2 * strips, F), dense @ b)


def test_sell(example, rng):
    dense, x, slices = matrix(rng, 40), whole(rng, N), 20
    order = np.argsort(-(dense != 0).sum(axis=1), kind="stable").reshape(slices, 2)
    start, col, val = [0], [], []
    for rows in order:
        c, v = ell(dense[rows], -1)
        start.append(start[-1] + c.shape[1])
        col.append(c.T)
        val.append(v.T)
    got = example("spmv_sell")({"W.start": np.array(start), "L.j": np.concatenate(col)},
                               A=np.concatenate(val), row=order, X=x, m=40)
    same(got, dense @ x)


def test_hyb(example, rng):
    dense = matrix(rng, density=0.03)
    dense[M // 2, 4:] = 0
    a, b = sp.csr_matrix(dense), whole(rng, N, F)
    arrays = {}
    for bucket, width in (("1", 2), ("2", 4)):
        rows, cols, where = [], [], []
        for i in range(M):
            at = np.arange(a.indptr[i], a.indptr[i + 1])
            if (len(at) <= 2) != (width == 2):
                continue
            for part in np.split(at, range(width, len(at), width)):
                rows.append(i)
                cols.append(np.pad(a.indices[part], (0, width - len(part)), constant_values=-1))
                where.append(np.pad(part, (0, width - len(part))))
        arrays.update({f"R{bucket}.i": np.array(rows), f"L{bucket}.j": np.array(cols),
                       f"P{bucket}": np.array(where, dtype=np.int64)})
    same(example("spmm_hyb")(arrays, A=a.data, B=b, m=M), dense @ b)


def test_sddmm(example, rng):
    s = sp.csr_matrix(matrix(rng, dtype=np.float32))
    p, q = whole(rng, M, F, dtype=np.float32), whole(rng, N, F, dtype=np.float32)
    want = s.multiply(p @ q.T).tocsr()
    got = example("sddmm")(S=s, P=p, Q=q)
    same(got, np.asarray((p @ q.T)[s.nonzero()] * s.data))
    assert want.shape == (M, N)


def test_csf(example, rng):
    a, b, c = 11, 13, 17
    t = whole(rng, a, b, c) * (rng.random((a, b, c)) < 0.05)
    t[3] = 0
    fibres, values = np.nonzero(t.any(axis=2)), []
    j_start = np.searchsorted(fibres[0], np.arange(a + 1))
    k_start, k = [0], []
    for i, j in zip(*fibres):
        at = np.flatnonzero(t[i, j])
        k_start.append(k_start[-1] + len(at))
        k.extend(at)
        values.extend(t[i, j, at])
    bb, cc = whole(rng, b, F), whole(rng, c, F)
    got = example("mttkrp_csf")(
        {"J.start": j_start, "J.coord": fibres[1], "K.start": np.array(k_start),
         "K.coord": np.array(k)}, T=np.array(values), B=bb, C=cc)
    same(got, np.einsum("ijk,jr,kr->ir", t, bb, cc))


def test_segments(example, rng):
    count = rng.integers(0, 9, 50)
    count[[0, 7, 49]] = 0
    start = np.concatenate([[0], np.cumsum(count)])
    x = whole(rng, start[-1], F)
    got = example("segment_max")(X=x, E_start=start)
    want, at = np.zeros((50, F)), np.full((50, F), -1)
    for g in range(50):
        if count[g]:
            part = x[start[g] : start[g + 1]]
            want[g], at[g] = part.max(axis=0), start[g] + part.argmax(axis=0)
    same(got["M"], want)
    same(got["W"], at)
    got = example("segment_sum")(X=x, E_start=start)
    total = np.add.reduceat(np.vstack([x, np.zeros((1, F))]), start[:-1]) * (count > 0)[:, None]
    same(got["S"], total)
    np.testing.assert_allclose(got["M"], total / np.maximum(count, 1)[:, None], rtol=1e-15)


def test_rgms(example, rng):
    relations, m, n, ci, co = 3, 20, 25, 4, 5
    parts = [sp.csr_matrix(matrix(rng, m, n)) for _ in range(relations)]
    start = np.concatenate([[0]] + [p.indptr[1:] + sum(q.nnz for q in parts[:r])
                                    for r, p in enumerate(parts)])
    x, w = whole(rng, n, ci), whole(rng, relations, ci, co)
    got = example("rgms")({"J.start": start, "J.coord": np.concatenate([p.indices for p in parts])},
                          A=np.concatenate([p.data for p in parts]), X=x, W=w, m=m)
    same(got, sum(p @ x @ w[r] for r, p in enumerate(parts)))


def test_kernel_map_convolution(example, rng):
    count = rng.integers(0, 30, 27)
    start = np.concatenate([[0], np.cumsum(count)])
    a, b = rng.integers(0, 40, start[-1]), rng.integers(0, 33, start[-1])
    x, w = whole(rng, 40, 4), whole(rng, 27, 4, 6)
    want = np.zeros((33, 6))
    np.add.at(want, b, np.einsum("ec,eco->eo", x[a], w[np.repeat(np.arange(27), count)]))
    same(example("conv3d")({"E.start": start, "E.a": a, "E.b": b}, X=x, W=w, vout=33), want)


def test_attention(example, rng):
    nodes, heads, f = 40, 3, 8
    g = sp.csr_matrix(matrix(rng, nodes, nodes))
    left, right = rng.standard_normal((2, nodes, heads))
    x = rng.standard_normal((nodes, heads, f))
    got = example("attention")(E_start=g.indptr, E_j=g.indices, L=left, R=right, X=x)
    want = np.zeros((nodes, heads, f))
    for i in range(nodes):
        j = g.indices[g.indptr[i] : g.indptr[i + 1]]
        if len(j):
            s = left[i] + right[j]
            t = np.exp(np.where(s > 0, s, 0.2 * s))
            want[i] = np.einsum("eh,ehk->hk", t / t.sum(axis=0), x[j])
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-14)


def built(got, m, n):
    """A result on a built axis as a SciPy matrix."""
    return sp.csr_matrix((got["C"], got["U.coord"], got["U.start"]), shape=(m, n))


def test_built_structures(example, rng):
    a, b = (sp.csr_matrix(matrix(rng, 30, 20)) for _ in range(2))
    arrays = {"J.start": a.indptr, "J.coord": a.indices, "A": a.data,
              "L.start": b.indptr, "L.coord": b.indices, "B": b.data}
    got = example("intersection")(arrays, n=20)
    same(built(got, 30, 20).toarray(), a.multiply(b).toarray())
    stored = (a.toarray() != 0) | (b.toarray() != 0)
    fill = [np.where(m.toarray() != 0, m.toarray(), -1) for m in (a, b)]
    got = example("union")(arrays, n=20)
    same(built(got, 30, 20).toarray(), np.where(stored, np.maximum(*fill), 0))
    c = sp.csr_matrix(matrix(rng, 20, 25))
    got = example("spgemm")(A=a, F_start=c.indptr, F_k=c.indices, B=c.data, n=25)
    same(built(got, 30, 25).toarray(), (a @ c).toarray())


@pytest.mark.parametrize("m, n, f", [(0, 5, 3), (5, 0, 3), (5, 4, 0), (1, 1, 1), (3, 2, 17)])
def test_edges_of_size(example, rng, m, n, f):
    a = sp.csr_matrix((rng.random((m, n)) < 0.5) * whole(rng, m, n, dtype=np.float32))
    b = whole(rng, n, f, dtype=np.float32)
    same(example("spmm")(A=a, B=b), (a @ b).reshape(m, f).astype(np.float32))
