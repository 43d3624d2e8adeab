# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""Operators of sparse matrices that torch records: gradients and gradients of gradients."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import weft  # noqa: E402

START = np.array([0, 2, 2, 5, 6])
COL = np.array([1, 4, 0, 2, 4, 3])
SHAPE = (4, 5)


def rand(*shape):
    g = torch.Generator().manual_seed(7 + sum(shape))
    return torch.randn(*shape, generator=g, dtype=torch.float64).requires_grad_()


def check(f, *operands):
    assert torch.autograd.gradcheck(f, operands)
    assert torch.autograd.gradgradcheck(f, operands)


@pytest.mark.parametrize("transpose", [False, True])
def test_products(transpose):
    n, m = SHAPE if transpose else SHAPE[::-1]

    def spmm(values, B):
        return weft.spmm((START, COL, values, SHAPE), B, transpose=transpose)

    check(spmm, rand(6), rand(n, 3))
    check(spmm, rand(6, 2), rand(n, 2, 3))
    check(spmm, rand(6), rand(2, n, 3))
    check(lambda v, x: weft.spmv((START, COL, v, SHAPE), x, transpose=transpose), rand(6), rand(n))
    A = (START, COL, np.ones(6), SHAPE)
    check(lambda x, y: weft.sddmm(A, x, y, transpose=transpose), rand(m, 3), rand(n, 3))
    check(lambda v, x, y: weft.sddmm((START, COL, v, SHAPE), x, y, values=True, transpose=transpose),
          rand(6), rand(m, 3), rand(n, 3))


def test_matrices_of_torch_and_scipy():
    sp = pytest.importorskip("scipy.sparse")
    A = torch.sparse_csr_tensor(torch.from_numpy(START), torch.from_numpy(COL), rand(6).detach(), SHAPE)
    B = rand(5, 3)
    got, = torch.autograd.grad(weft.spmm(A, B).sum(), B)
    torch.testing.assert_close(got, A.to_dense().t() @ torch.ones(4, 3, dtype=torch.float64))
    dense = A.to_dense().numpy()
    for form in (sp.csc_array, sp.coo_array):
        a = form(dense)
        check(lambda x: weft.segment_reduce(a, x), rand(6, 2))
        check(lambda x: weft.spmm(a, x), rand(5, 2))
        check(lambda x, y: weft.sddmm(a, x, y, values=True), rand(4, 2), rand(5, 2))


@pytest.mark.parametrize("nodes", [False, True])
@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("reduce", ["sum", "mean", "max", "min"])
def test_reductions(reduce, nodes, transpose):
    A = (START, COL, np.ones(6), SHAPE)
    n = (SHAPE[0] if transpose else SHAPE[1]) if nodes else 6

    def f(x):
        return weft.segment_reduce(A, x, reduce, nodes=nodes, transpose=transpose)

    x = rand(n, 2)
    check(f, x)
    with torch.no_grad():
        want = f(x)
    torch.testing.assert_close(f(x), want)


def test_starts_alone_and_nothing_at_all():
    check(lambda x: weft.segment_reduce(START, x), rand(6, 2))
    check(lambda x: weft.softmax(START, x), rand(6, 2))
    none = np.zeros(4, np.int64)
    x = rand(0, 2)
    y = weft.segment_reduce(none, x, "max")
    assert y.shape == (3, 2) and not y.any()
    y.sum().backward()
    assert x.grad.shape == (0, 2)


@pytest.mark.parametrize("transpose", [False, True])
def test_softmax(transpose):
    A = (START, COL, np.ones(6), SHAPE)
    check(lambda s: weft.softmax(A, s, transpose=transpose), rand(6, 2))
    check(lambda s: weft.softmax((START, COL, s, SHAPE), transpose=transpose), rand(6))


def test_out_is_not_recorded():
    with pytest.raises(ValueError, match="out: expected None, as torch records"):
        weft.spmm((START, COL, rand(6), SHAPE), rand(5, 3), out=torch.zeros(4, 3, dtype=torch.float64))
