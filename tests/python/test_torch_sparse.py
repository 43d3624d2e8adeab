# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""Operators of sparse matrices that torch records: gradients and gradients of gradients."""

import os
import subprocess
import sys

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
    check(spmm, rand(6), rand(n, 2, 3))
    check(spmm, rand(6), rand(n))
    check(lambda v, b: weft.spmm((START, COL, v, SHAPE), b, transpose=transpose, batch=True), rand(6), rand(2, n, 3))
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


INDEX = np.stack([COL, np.repeat(np.arange(4), np.diff(START))])  # senders, receivers


def test_every_form_of_matrix():
    start, col, data, B = torch.from_numpy(START), torch.from_numpy(COL), rand(6), rand(5, 3)
    D = torch.sparse_csr_tensor(start, col, data.detach(), SHAPE).to_dense()
    for A in ((start, col, data, SHAPE), (start.int(), col.int(), data, SHAPE), D.to_sparse_coo(), D.to_sparse_csc(),
              D.to_sparse_bsr((2, 5)), D.to_sparse_bsr((1, 1)), weft.Graph(INDEX, SHAPE, data)):
        torch.testing.assert_close(weft.spmm(A, B), D @ B)
        torch.testing.assert_close(weft.spmm(A, B[:, 0]), D @ B[:, 0])
        torch.testing.assert_close(weft.spmm(A, B[:4], transpose=True), D.t() @ B[:4])
    check(lambda v, b: weft.spmm((start, col, v, SHAPE), b), data, B)
    blocks = D.to_sparse_bsr((2, 5))
    check(lambda b: weft.spmm(blocks, b), B)
    check(lambda x: weft.segment_reduce(start, x), rand(6, 2))
    check(lambda x: weft.softmax(start, x), rand(6, 2))


def test_types_are_promoted():
    data, B = rand(6).float(), rand(5, 3)
    A = (START, COL, data, SHAPE)
    assert weft.spmm(A, B.bfloat16()).dtype == torch.float32
    assert weft.spmm(A, B).dtype == torch.float64
    assert weft.spmm(weft.Graph(INDEX, SHAPE), B.bfloat16()).dtype == torch.bfloat16
    with torch.autocast("cpu", torch.bfloat16):
        x = torch.nn.Linear(3, 2)(B.float())
        y = weft.spmm(A, x)
        assert x.dtype == torch.bfloat16 and y.dtype == torch.float32
        y.sum().backward()


def test_transforms_tracing_and_export():
    data, B = rand(6), rand(5, 3)
    graph = weft.Graph(INDEX, SHAPE)
    D = torch.sparse_csr_tensor(torch.from_numpy(START), torch.from_numpy(COL), data.detach(), SHAPE).to_dense()

    def f(v, b):
        return weft.spmm(graph.with_data(v), b)

    torch.testing.assert_close(torch.func.vmap(f, (None, 0))(data, torch.stack([B, 2 * B])),
                               torch.stack([D @ B, 2 * D @ B]))
    assert torch.func.jacrev(f, 1)(data, B).shape == (4, 3, 5, 3)
    assert torch.func.jacfwd(f)(data, B).shape == (4, 3, 6)

    def layer(v, b):
        p = weft.softmax(graph, v)
        return weft.segment_reduce(graph, weft.spmm(graph.with_data(p), b).tanh()[:0].new_ones(6, 2)) + \
            weft.spmm(graph.with_data(p), b)[:, :2]

    torch.testing.assert_close(torch.compile(layer, fullgraph=True)(data, B), layer(data, B))

    class Layer(torch.nn.Module):
        def forward(self, v, b):
            return layer(v, b)

    exported = torch.export.export(Layer(), (data.detach(), B.detach()))
    torch.testing.assert_close(exported.module()(data, B), layer(data, B))
    with torch._subclasses.FakeTensorMode(allow_non_fake_inputs=True) as mode:
        assert weft.spmm(graph, mode.from_tensor(B.detach())).shape == (4, 3)


def test_data_of_a_graph_shares_its_plan():
    from test_torch_operator import plans

    graph, B = weft.Graph(INDEX, SHAPE), rand(5, 3).detach()
    weft.spmm(graph.with_data(rand(6).detach()), B)
    before = plans()
    for k in range(3):
        v = rand(6).detach() + k
        torch.testing.assert_close(weft.spmm(graph.with_data(v), B), weft.spmm(weft.Graph(INDEX, SHAPE, v), B))
    assert plans() == before
    v, b = np.ones(6), np.ones((5, 3))
    np.testing.assert_array_equal(weft.spmm(graph.with_data(v), b), weft.spmm(graph, b))
    assert graph.with_data(v).row is graph.row and graph.data is None


THREADS = """
import os, torch, weft
torch.set_num_threads(1)
graph, x = weft.Graph(torch.randint(0, 3000, (2, 300000)), 3000), torch.randn(3000, 32)
scores = torch.randn(300000)
calls = [lambda: weft.spmm(graph, x), lambda: weft.sddmm(graph, x, x), lambda: weft.softmax(graph, scores),
         lambda: weft.segment_reduce(graph, x, nodes=True)]
torch.randn(10) + 1
before = len(os.listdir("/proc/self/task"))
results = [call() for call in calls]
assert len(os.listdir("/proc/self/task")) == before, "threads were started"
torch.set_num_threads(2)
assert all(torch.equal(call(), z) for call, z in zip(calls, results))
"""


def test_threads_are_torchs():
    """Kernels run on torch's threads, as many as torch says: none is started for one."""
    done = subprocess.run([sys.executable, "-c", THREADS], env={**os.environ, "WEFT_NUM_THREADS": "4"},
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_wrong_argument_is_named():
    edges, B = torch.from_numpy(INDEX), rand(5, 3)
    for call, message in ((lambda: weft.spmm(edges, B.long()), "B: expected elements of float16"),
                          (lambda: weft.spmm(edges.double(), B), "edge_index: expected"),
                          (lambda: weft.spmm(edges[:1], B), "edge_index: expected"),
                          (lambda: weft.spmm(edges + 1, B), r"edge_index: the sender of edge \d+ is 5, but there are 5 nodes$"),
                          (lambda: weft.softmax(edges, B.long()), "S: expected elements of float16")):
        with pytest.raises(weft.ArgumentError, match=message):
            call()


@pytest.mark.parametrize("kind", ["numpy", "torch"])
@pytest.mark.parametrize("reduce", ["sum", "mean", "max", "min"])
def test_spmm_with_other_reductions(kind, reduce):
    """Against a loop over rows, for all formats, heads, batches and transposes; rows without entries are 0."""
    sp = pytest.importorskip("scipy.sparse")
    g = torch.Generator().manual_seed(4)
    D = torch.randn(7, 5, generator=g, dtype=torch.float64) * (torch.rand(7, 5, generator=g) < 0.4)
    D[2] = D[:, 3] = 0
    S = D.numpy()
    for transpose, matrix in ((False, S), (True, S.T)):
        B = torch.randn(2, matrix.shape[1], 3, generator=g, dtype=torch.float64)
        rows = [[matrix[i, j] * B[:, j] for j in np.flatnonzero(matrix[i])] for i in range(matrix.shape[0])]
        full = {"sum": lambda t: t.sum(0), "mean": lambda t: t.mean(0), "max": lambda t: t.amax(0),
                "min": lambda t: t.amin(0)}[reduce]
        want = torch.stack([full(torch.stack(r)) if r else torch.zeros(2, 3, dtype=B.dtype) for r in rows], 1)
        for form in (sp.csr_array(S), sp.csc_array(S), sp.coo_array(S)):
            for b, w, batch in ((B, want, True), (B[0], want[0], False)):
                got = weft.spmm(form, b if kind == "torch" else b.numpy(), reduce=reduce, batch=batch,
                                transpose=transpose)
                torch.testing.assert_close(torch.as_tensor(got), w)
        if reduce in ("max", "min"):
            csr = sp.csr_array(S)
            z, which = weft.spmm(csr, B[0] if kind == "torch" else B[0].numpy(), reduce=reduce, arg=True,
                                 transpose=transpose)
            which = torch.as_tensor(which)
            assert torch.equal(which < 0, torch.as_tensor(z) == 0)
            row, col = csr.nonzero()
            ends = torch.from_numpy((row if transpose else col).astype(np.int64))
            values = torch.from_numpy(csr.data)
            for k in range(3):
                there = which[:, k] >= 0
                e = which[there, k]
                torch.testing.assert_close(values[e] * B[0][ends[e], k], torch.as_tensor(z)[there, k])
    with pytest.raises(weft.ArgumentError, match="reduce: expected sum or mean"):
        weft.spmm(form, b.numpy(), reduce="prod")
    with pytest.raises(weft.ArgumentError, match="arg: expected it with max or min only"):
        weft.spmm(form, b.numpy(), arg=True)


@pytest.mark.parametrize("reduce", ["mean", "max", "min"])
def test_derivatives_of_other_reductions(reduce):
    index = torch.randint(0, 5, (2, 12), generator=torch.Generator().manual_seed(5))
    v, b = (torch.rand(*s, dtype=torch.float64).add(0.2).requires_grad_() for s in ((12,), (5, 2)))

    def f(v, b):
        return weft.spmm(weft.Graph(index, 5, data=v), b, reduce=reduce)

    assert torch.autograd.gradcheck(f, (v, b), check_forward_ad=True)
    assert torch.autograd.gradgradcheck(f, (v, b))
