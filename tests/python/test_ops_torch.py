# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""Operators on torch tensors, and the gradients of their programs against torch's own."""

import gc
import warnings

import numpy as np
import pytest

import weft
from weft import _sparse

torch = pytest.importorskip("torch")

TOLERANCE = {"f32": 5e-6, "f64": 1e-13}  # of the largest element
DTYPE = {"f32": torch.float32, "f64": torch.float64}


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*Sparse.*")
        yield


@pytest.fixture(scope="module")
def edges():
    """Rows and columns of entries by row: an empty row, a full one, duplicates."""
    gen = torch.Generator().manual_seed(5)
    i = torch.cat([torch.randint(0, 20, (90,), generator=gen), torch.full((15,), 3), torch.tensor([7, 7])])
    j = torch.cat([torch.randint(0, 15, (90,), generator=gen), torch.arange(15), torch.tensor([2, 2])])
    keep = i != 11
    i, j = i[keep], j[keep]
    order = torch.argsort(i, stable=True)
    return i[order], j[order]


def starts(i, m):
    return torch.cat([torch.zeros(1, dtype=torch.int64), torch.bincount(i, minlength=m).cumsum(0)])


def csr(edges, dtype=torch.float32, index=torch.int64, seed=0):
    i, j = edges
    values = torch.randn(len(i), generator=torch.Generator().manual_seed(seed)).to(dtype)
    return torch.sparse_csr_tensor(starts(i, 20).to(index), j.to(index), values, (20, 15),
                                   check_invariants=False)


def randn(*shape, dtype=torch.float32, seed=1):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def close(got, want, type):
    want = want.detach().numpy() if isinstance(want, torch.Tensor) else want
    assert got.shape == want.shape
    assert np.abs(np.asarray(got) - want).max() <= TOLERANCE[type] * max(np.abs(want).max(), 1e-30)


@pytest.mark.parametrize("index", [torch.int32, torch.int64])
@pytest.mark.parametrize("type", ["f32", "f64"])
def test_torch_in_torch_out(edges, type, index):
    a = csr(edges, DTYPE[type], index)
    i, j = edges
    b, x = randn(15, 9, dtype=DTYPE[type]), randn(20, 9, dtype=DTYPE[type])
    got = weft.spmm(a, b)
    assert isinstance(got, torch.Tensor) and got.dtype == b.dtype
    close(got, a.to_dense() @ b, type)
    close(weft.spmm(a, x, transpose=True), a.to_dense().T @ x, type)
    close(weft.spmm(a, b.T.contiguous().T), a.to_dense() @ b, type)
    close(weft.sddmm(a, x, b), (x[i] * b[j]).sum(1), type)
    close(weft.sddmm(a, x, b, values=True), (x[i] * b[j]).sum(1) * a.values(), type)
    close(weft.spmv(a, b[:, 0]), a.to_dense() @ b[:, 0], type)
    out = torch.full((20, 18), float("nan"), dtype=DTYPE[type])
    assert weft.spmm(a, b, out=out[:, ::2]).data_ptr() == out.data_ptr()
    close(out[:, ::2], a.to_dense() @ b, type)
    assert out[:, 1::2].isnan().all()
    mixed = weft.spmm(a, b.numpy())
    assert isinstance(mixed, np.ndarray)
    close(mixed, got, type)
    close(weft.segment_reduce(a, a.values(), "max"), torch.zeros(20, dtype=DTYPE[type]).scatter_reduce(
        0, i, a.values(), "amax", include_self=False), type)


def test_csc(edges):
    a = csr(edges)
    b = randn(15, 4)
    close(weft.spmm(a.to_sparse_csc(), b), a.to_dense() @ b, "f32")


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_the_f32_kernel_rounded_once(edges, dtype):
    a = csr(edges, dtype)
    wide = torch.sparse_csr_tensor(a.crow_indices(), a.col_indices(), a.values().float(), a.shape,
                                   check_invariants=False)
    b, x = randn(15, 9, dtype=dtype), randn(20, 9, dtype=dtype)
    for got, want in ((weft.spmm(a, b), weft.spmm(wide, b.float())),
                      (weft.segment_reduce(a, b, "mean", nodes=True),
                       weft.segment_reduce(wide, b.float(), "mean", nodes=True))):
        assert got.dtype == dtype and torch.equal(got, want.to(dtype))
    for got, want in ((weft.sddmm(a, x, b), weft.sddmm(wide, x.float(), b.float())),
                      (weft.softmax(a), weft.softmax(wide))):  # sums may have another order
        assert got.dtype == dtype
        torch.testing.assert_close(got, want.to(dtype), rtol=torch.finfo(dtype).eps, atol=1e-6)


def test_changed_structure_is_noticed(edges):
    a, b = csr(edges), randn(15, 4)
    for call in range(3):
        close(weft.spmm(a, b), a.to_dense() @ b, "f32")
        a.col_indices()[:5] = call + 3
    with torch.inference_mode():
        a = csr(edges)
        for call in range(3):
            close(weft.spmm(a, b), a.to_dense() @ b, "f32")
            a.col_indices()[:5] = call + 3


def test_structure_is_kept_as_long_as_it_lives(edges):
    a, b = csr(edges), randn(15, 4).numpy()
    weft.spmm(a, b)
    assert not _sparse.sparse(a)[0].changes()
    gc.collect()
    weft.forget(a)
    before = len(_sparse._known)
    a = csr(edges)
    weft.spmm(a, b)
    assert len(_sparse._known) == before + 1
    del a
    gc.collect()
    assert len(_sparse._known) == before


def test_errors(edges):
    a, b = csr(edges), randn(15, 4)
    with torch.no_grad():
        assert not weft.spmm(a, b.clone().requires_grad_()).requires_grad
    with pytest.raises(weft.ArgumentError, match="edge_index: expected a sparse matrix, or an edge_index"):
        weft.spmm(a.to_dense(), b)
    with pytest.raises(weft.ArgumentError, match="B: expected elements of float16.*got torch.int64"):
        weft.spmm(a, b.long())
    with pytest.raises(weft.ArgumentError, match="out: expected f32 of shape"):
        weft.spmm(a, b, out=torch.zeros(20, 4, dtype=torch.float64))
    with pytest.raises(weft.ArgumentError, match="B: expected a dense tensor on the CPU"):
        weft.spmm(a, b.to("meta"))


class Gradient:
    """The gradient of an operator's program, called with torch tensors."""

    def __init__(self, spec, edges):
        i, j = edges
        self.program = weft.Program.op(spec)
        self.kernel = self.program.grad().compile()
        self.arrays = {"E.start": starts(i, 20).numpy(), "E.j": j.numpy()}

    def __call__(self, **tensors):
        known = {a.name for a in self.kernel.program.args}
        given = {n: t.detach().numpy() for n, t in tensors.items() if n in known}
        given.update({n: a for n, a in self.arrays.items() if n in known})
        sizes = {n: v for n, v in (("m", 20), ("n", 15)) if n in known}
        got = self.kernel(given, **sizes)
        return got if isinstance(got, dict) else {a.name: got for a in self.kernel.program.args
                                                  if a.role == "output"}


def leaf(*shape, dtype, seed):
    return randn(*shape, dtype=dtype, seed=seed).requires_grad_()


@pytest.mark.parametrize("type", ["f32", "f64"])
@pytest.mark.parametrize("heads", ["", ":heads"])
def test_gradients_of_spmm(edges, type, heads):
    i, j = edges
    d, h = DTYPE[type], (2,) if heads else ()
    a, b, w = (leaf(*s, dtype=d, seed=k) for k, s in enumerate([(len(i), *h), (15, *h, 7), (20, *h, 7)]))
    c = torch.zeros(20, *h, 7, dtype=d).index_add(0, i, a[..., None] * b[j])
    want = torch.autograd.grad(c, (a, b), w)
    got = Gradient(f"spmm:{type}{heads}", edges)(A=a, B=b, d_C=w)
    close(got["d_A"], want[0], type)
    close(got["d_B"], want[1], type)


@pytest.mark.parametrize("type", ["f32", "f64"])
@pytest.mark.parametrize("values", ["", ":values"])
def test_gradients_of_sddmm(edges, type, values):
    i, j = edges
    d = DTYPE[type]
    a, x, y, w = (leaf(*s, dtype=d, seed=k) for k, s in enumerate([(len(i),), (20, 7), (15, 7), (len(i),)]))
    z = (x[i] * y[j]).sum(1) * (a if values else 1)
    of = (a, x, y) if values else (x, y)
    got = Gradient(f"sddmm:{type}{values}", edges)(A=a, X=x, Y=y, d_Z=w)
    for name, want in zip(("d_A", "d_X", "d_Y") if values else ("d_X", "d_Y"), torch.autograd.grad(z, of, w)):
        close(got[name], want, type)


@pytest.mark.parametrize("type", ["f32", "f64"])
def test_gradient_of_softmax(edges, type):
    i, j = edges
    s, w = (leaf(len(i), 3, dtype=DTYPE[type], seed=k) for k in range(2))
    p = torch.cat([torch.softmax(s[i == r], 0) for r in range(20)])
    got = Gradient(f"softmax:{type}:heads", edges)(S=s, d_P=w)
    close(got["d_S"], torch.autograd.grad(p, s, w)[0], type)


@pytest.mark.parametrize("reduce", ["sum", "mean", "max", "min"])
@pytest.mark.parametrize("nodes", ["", ":nodes"])
def test_gradients_of_segment_reductions(edges, reduce, nodes):
    i, j = edges
    x, w = leaf(15 if nodes else len(i), 5, dtype=torch.float64, seed=0), leaf(20, 5, dtype=torch.float64, seed=1)
    rows = x[j] if nodes else x
    parts = []
    for r in range(20):
        mine = rows[i == r]
        if len(mine) == 0:
            parts.append(torch.zeros(5, dtype=torch.float64))
        elif reduce in ("max", "min"):
            parts.append(getattr(mine, reduce)(0).values)  # one winner, as ours
        else:
            parts.append(getattr(mine, reduce)(0))
    want = torch.autograd.grad(torch.stack(parts), x, w)[0]
    got = Gradient(f"segment_{reduce}:f64{nodes}", edges)(X=x, d_Y=w)
    close(got["d_X"], want, "f64")


def test_second_derivative_of_spmm(edges):
    i, j = edges
    d = torch.float64
    a, b, w = (leaf(*s, dtype=d, seed=k) for k, s in enumerate([(len(i),), (15, 4), (20, 4)]))
    va, vb = randn(len(i), dtype=d, seed=8), randn(15, 4, dtype=d, seed=9)
    c = torch.zeros(20, 4, dtype=d).index_add(0, i, a[:, None] * b[j])
    first = torch.autograd.grad(c, (a, b), w, create_graph=True)
    want = torch.autograd.grad(first, (a, b, w), (va, vb))
    kernel = weft.Program.op("spmm:f64").grad().grad().compile()
    got = kernel({"E.start": starts(i, 20).numpy(), "E.j": j.numpy()}, A=a.detach().numpy(),
                 B=b.detach().numpy(), d_C=w.detach().numpy(), d2_d_A=va.numpy(), d2_d_B=vb.numpy())
    for name, g in zip(("d2_A", "d2_B", "d2_d_C"), want):
        close(got[name], g, "f64")
