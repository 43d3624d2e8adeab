# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""Kernels that build an axis: products of sparse matrices against SciPy, structure and values."""

import numpy as np
import pytest

import weft

sp = pytest.importorskip("scipy.sparse")

SPGEMM = """
program spgemm(m, l, n)
axis I = m, E(I) = seg : j < l, J = l, F(J) = seg : k < n, U(I) = built : load < n
f64 A[E], B[F], C[I, U]
sym: for i, e, f in F(j(e)): U(i) |= k(f)
num: for i, e, f in F(j(e)): C[i, k(f)] += A[e] * B[f]
"""

UNION = """
program union(m, n)
axis I = m, J = compressed(I, n) sorted unique, L = compressed(I, n) sorted unique
axis U(I) = built : load < n
f64 A[I, J], B[I, L], C[I, U]
u1: U(i) |= j
u2: U(i) |= l
c: C[i, u] = A[i, u] + B[i, u]
"""


def random(m, n, entries, seed):
    """Small positive integers, so that sums are exact and SciPy has no zero to drop."""
    rng = np.random.default_rng(seed)
    at = rng.integers(0, m, entries), rng.integers(0, n, entries)
    a = sp.csr_matrix((np.ones(entries), at), shape=(m, n))
    a.sum_duplicates()
    a.data = rng.integers(1, 9, a.nnz).astype(float)
    return a


def same(got, want):
    want.sort_indices()
    assert np.array_equal(got["U.start"], want.indptr)
    assert np.array_equal(got["U.coord"], want.indices)
    assert np.array_equal(got["C"], want.data)


@pytest.mark.parametrize("m, l, n, entries", [
    (1, 1, 1, 1), (5, 3, 7, 0), (40, 30, 50, 200), (3, 1000, 70000, 2000),
    (100000, 100000, 100000, 1000000),
])
def test_spgemm(m, l, n, entries):
    kernel = weft.Program(SPGEMM).compile()
    assert kernel.info.target == "c"
    for seed in (1, 2):  # the second structure with the memory of the first
        a, b = random(m, l, entries, seed), random(l, n, entries, seed + 10)
        same(kernel(A=a, B=b, m=m, l=l, n=n), a @ b)


def test_one_row_has_everything():
    a = sp.csr_matrix((np.ones(3000), (np.full(3000, 7), np.arange(3000))), shape=(20, 3000))
    b = random(3000, 100000, 50000, 3)
    same(weft.Program(SPGEMM).compile()(A=a, B=b, m=20, l=3000, n=100000), a @ b)


def test_union():
    a, b = random(300, 200, 5000, 4), random(300, 200, 4000, 5)
    same(weft.Program(UNION).compile()(A=a, B=b, m=300, n=200), a + b)


def test_masked():
    """A product, only where a mask has an entry."""
    text = SPGEMM.replace("sym:", "axis Q(I) = seg : load < n sorted unique\nf64 Z[I, Q]\nsym:")
    text = text.replace("U(i) |= k(f)", "U(i) |= k(f) if stored(Z[i, k(f)])")
    text = text.replace("B[f]\n", "B[f] if stored(Z[i, k(f)])\n")
    a, mask = random(500, 500, 4000, 6), random(500, 500, 20000, 7)
    mask.data[:] = 1
    same(weft.Program(text).compile()(A=a, B=a, Z=mask, l=500, n=500), (a @ a).multiply(mask).tocsr())
