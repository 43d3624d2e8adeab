# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""Lists of edges in place of sparse matrices: weft.Graph and edge_index, of NumPy and of torch."""

import numpy as np
import pytest

import weft

SENDERS = np.array([1, 0, 4, 2, 2, 0, 1])
RECEIVERS = np.array([0, 3, 0, 1, 3, 3, 0])  # in no order, one edge twice, node 2 receives nothing
EDGES = np.stack([SENDERS, RECEIVERS])
NODES = 6  # and node 5 has no edge


def matrix(values, shape=(NODES, NODES)):
    out = np.zeros(shape)
    np.add.at(out, (RECEIVERS, SENDERS), values)
    return out


@pytest.fixture(params=["numpy", "torch", "graph", "int32", "strided"])
def edges(request):
    if request.param == "torch":
        return pytest.importorskip("torch").from_numpy(EDGES.copy())
    if request.param == "int32":
        return EDGES.astype(np.int32)
    if request.param == "strided":
        return np.ascontiguousarray(EDGES.T).T
    return weft.Graph(EDGES, NODES) if request.param == "graph" else EDGES.copy()


def test_products(edges, rng):
    B = rng.standard_normal((NODES, 3))
    np.testing.assert_allclose(weft.spmm(edges, B), matrix(1.0) @ B, atol=1e-12)
    np.testing.assert_allclose(weft.spmm(edges, B, transpose=True), matrix(1.0).T @ B, atol=1e-12)
    np.testing.assert_allclose(weft.spmv(edges, B[:, 0]), matrix(1.0) @ B[:, 0], atol=1e-12)
    batch = rng.standard_normal((2, NODES, 3))
    np.testing.assert_allclose(weft.spmm(edges, batch, batch=True), matrix(1.0) @ batch, atol=1e-12)
    out = np.empty((NODES, 3))
    assert weft.spmm(edges, B, out=out) is out
    np.testing.assert_allclose(out, matrix(1.0) @ B, atol=1e-12)


def test_edges_of_nodes(edges, rng):
    X, Y = rng.standard_normal((2, NODES, 3))
    np.testing.assert_allclose(weft.sddmm(edges, X, Y), (X[RECEIVERS] * Y[SENDERS]).sum(1), atol=1e-12)
    np.testing.assert_allclose(weft.sddmm(edges, X, Y, transpose=True),
                               (X[SENDERS] * Y[RECEIVERS]).sum(1), atol=1e-12)


def test_segments(edges, rng):
    X = rng.standard_normal((len(SENDERS), 2))
    got = weft.segment_reduce(edges, X, "max")
    for i in set(RECEIVERS):
        np.testing.assert_array_equal(got[i], X[RECEIVERS == i].max(0))
    assert not got[2].any()
    P = weft.softmax(edges, X)
    want = np.exp(X) / np.stack([np.exp(X[RECEIVERS == i]).sum(0) for i in RECEIVERS])
    np.testing.assert_allclose(P, want, rtol=1e-12)
    B = rng.standard_normal((NODES, 2))
    got = weft.segment_reduce(edges, B, "mean", nodes=True)
    np.testing.assert_allclose(got[3], B[SENDERS[RECEIVERS == 3]].mean(0), rtol=1e-12)


def test_values_and_two_kinds_of_nodes(rng):
    w, B = rng.standard_normal(7), rng.standard_normal((5, 3))
    graph = weft.Graph(EDGES, (4, 5), data=w)
    assert graph.num_edges == 7 and "4 receivers, 5 senders, 7 edges" in repr(graph)
    np.testing.assert_allclose(weft.spmm(graph, B), matrix(w, (4, 5)) @ B, atol=1e-12)
    assert weft.Graph(EDGES.tolist()).shape == (5, 5)
    assert weft.Graph(np.zeros((2, 0), np.int64)).shape == (0, 0)
    heads = weft.Graph(EDGES, (4, 5), data=np.stack([w, 2 * w], 1))
    got = weft.spmm(heads, np.stack([B, B], 1))
    np.testing.assert_allclose(got[:, 1], 2 * got[:, 0], rtol=1e-12)


def test_a_list_may_change_between_calls_and_a_graph_not(rng):
    edges, B = EDGES.copy(), np.eye(NODES)
    graph = weft.Graph(edges, NODES)
    X = rng.standard_normal((7, 1))
    for call in (weft.spmm, lambda e, _: weft.segment_reduce(e, X)):
        before = call(edges, B)
        edges[1, 3] = 5
        assert not np.array_equal(call(edges, B), before)
        edges[1, 3] = 1
        np.testing.assert_array_equal(call(edges, B)[:4], before[:4])
    edges[:] = 0
    np.testing.assert_array_equal(weft.spmm(graph, B), matrix(1.0))


def test_many_lists(rng):
    B = rng.standard_normal((NODES, 2))
    for k in range(20):
        edges = np.stack([SENDERS, (RECEIVERS + k) % NODES])
        want = np.roll(matrix(1.0) @ B, k, 0)
        np.testing.assert_allclose(weft.spmm(edges, B), want, atol=1e-12)


def test_gradients():
    torch = pytest.importorskip("torch")
    edges = torch.from_numpy(EDGES.copy())
    rand = lambda *s: torch.randn(*s, dtype=torch.float64, requires_grad=True)
    B, X, w = rand(NODES, 2), rand(7, 2), rand(7)
    check = torch.autograd.gradcheck
    assert check(lambda b: weft.spmm(edges, b), B)
    assert check(lambda b, v: weft.spmm(weft.Graph(edges, NODES, data=v), b), (B, w))
    assert check(lambda x: weft.sddmm(edges, x, x), B)
    assert check(lambda x: weft.softmax(edges, x), X)
    assert check(lambda x: weft.segment_reduce(edges, x, "mean"), X)
    assert check(lambda x: weft.segment_reduce(edges, x, nodes=True), B)


@pytest.mark.parametrize("edges", [np.zeros((3, 4), np.int64), np.zeros((2, 4)), "no", np.zeros(4, np.int64)])
def test_what_is_no_list(edges):
    with pytest.raises(weft.ArgumentError, match="edge_index: expected int32 or int64 of shape"):
        weft.Graph(edges)


def test_nodes_that_are_not_there():
    with pytest.raises((weft.Error, ValueError)):
        weft.spmm(weft.Graph(EDGES, 3), np.ones((3, 2)))
    with pytest.raises((weft.Error, ValueError)):
        weft.spmm(EDGES, np.ones((3, 2)))


def test_a_program_is_called_with_graphs(rng):
    order = np.argsort(RECEIVERS, kind="stable")
    graph, B = weft.Graph(EDGES, NODES), rng.standard_normal((NODES, 3))
    spmm = weft.Program.op("spmm:f64:coo")
    np.testing.assert_allclose(spmm(A=graph, B=B, m=NODES), matrix(1.0) @ B, atol=1e-12)
    assert spmm._kernel is not None and spmm(A=graph, B=B, m=NODES).shape == (NODES, 3)
    by_row = weft.Program.op("spmm:f64")
    w = rng.standard_normal(7)
    got = by_row(A=weft.Graph(EDGES[:, order], NODES, data=w[order]), B=B)
    np.testing.assert_allclose(got, matrix(w) @ B, atol=1e-12)
    with pytest.raises(weft.ArgumentError, match="A: the program stores entries by row"):
        by_row(A=weft.Graph(EDGES[:, order[::-1]], NODES), B=B)
