# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""What is kept for a structure between calls, and where it was made: in inference mode, in a trace, from a
graph that traced code makes.  Later calls have to be able to use it for anything."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch._subclasses.fake_tensor import FakeTensor  # noqa: E402

import weft.nn  # noqa: E402
import weft.torch  # noqa: E402

N, EDGES, F = 30, 200, 8
torch.manual_seed(0)
LIST = torch.randint(0, N, (2, EDGES))
X = torch.randn(N, F)
ONES = torch.ones(EDGES)


def attend(graph, x):
    return weft.spmm(graph.with_data(weft.softmax(graph, weft.sddmm(graph, x, x))), x)


def on_graph(make):
    """A call with a graph of its own."""
    graph = weft.Graph(LIST.clone(), N)
    call = make()
    return lambda x: call(x, graph)


def on_list(make):
    edges = LIST.clone()
    call = make()
    return lambda x: call(x, edges)


def operator():
    spmm = weft.torch.operator("spmm")
    return lambda x, graph: spmm(E=graph, A=ONES, B=x)


def relations():
    layer, kinds = weft.nn.RGCNConv(F, F, 3), torch.arange(EDGES) % 3
    return lambda x, edges: layer(x, edges, kinds)


def sparse_layer():
    dense = torch.nn.Linear(F, 16)
    with torch.no_grad():
        dense.weight[torch.rand(16, F) < 0.7] = 0
    return weft.nn.SparseLinear.from_dense(dense, format="csr")


def attention(mask):
    q = torch.randn(1, 2, 64, 8)
    return lambda x: weft.attention(q + x.sum(), q, q, mask)


def voxels():
    coords = torch.unique(torch.randint(0, 6, (60, 4)) * torch.tensor([0, 1, 1, 1]), dim=0).int()
    where, weight = weft.kernel_map(coords, 3), torch.randn(F, 3, 3, 3, F)
    return lambda x: weft.conv3d(x.sum() * torch.ones(len(coords), F), weight, where)


def convolution():
    problem = weft.TPProblem(f"{F}x0e", "0e", f"{F}x0e", [(0, 0, 0, "uvu", True)], shared_weights=False)
    conv = weft.TensorProductConv(problem)
    return lambda x, edges: conv(x, ONES[:, None], torch.ones(EDGES, F), edges[1], edges[0])


CALLS = {
    "operator of a graph": lambda: on_graph(operator),
    "attention over edges": lambda: on_graph(lambda: lambda x, graph: attend(graph, x)),
    "spmm of a list": lambda: on_list(lambda: lambda x, edges: weft.spmm(edges, x)),
    "message of a list": lambda: on_list(lambda: lambda x, edges: weft.message(edges, "copy_u", u=x)),
    "message of a graph": lambda: on_graph(lambda: lambda x, graph: weft.message(graph, "copy_u", "mean", u=x)),
    "GCNConv": lambda: on_list(lambda: weft.nn.GCNConv(F, F)),
    "GATConv of a graph": lambda: on_graph(lambda: weft.nn.GATConv(F, F)),
    "RGCNConv": lambda: on_list(relations),
    "convolution": lambda: on_list(convolution),
    "pruned weight": sparse_layer,
    "band": lambda: attention(weft.masks.band(64, 8)),
    "mask of entries": lambda: attention(weft.masks.of(np.tril(np.ones((64, 64), bool)))),
    "voxels": voxels,
}


def gradient(call):
    x = X.clone().requires_grad_()
    out = call(x)
    out.sum().backward()
    assert not isinstance(out, FakeTensor) and not isinstance(x.grad, FakeTensor)
    return out.detach()


@pytest.mark.parametrize("name", CALLS)
def test_a_first_call_in_inference_mode(name):
    call = CALLS[name]()
    with torch.inference_mode():
        first = call(X)
    torch.testing.assert_close(gradient(call), first.clone())


@pytest.mark.parametrize("name", CALLS)
def test_a_first_call_in_a_trace(name):
    call = CALLS[name]()

    class Module(torch.nn.Module):
        def forward(self, x):
            return call(x)

    exported = torch.export.export(Module(), (X,), strict=False).module()(X)
    torch.testing.assert_close(gradient(call), exported.detach())


@pytest.mark.parametrize("make", [lambda: weft.nn.GCNConv(F, F), lambda: weft.nn.GATConv(F, F), relations])
def test_lists_of_inference_mode(make):
    """Torch counts no changes of them, so that nothing is kept for them."""
    layer = make()
    with torch.inference_mode():
        edges = LIST.clone()
        torch.testing.assert_close(layer(X, edges), layer(X, LIST))
        edges[0] = edges[0].flip(0)
        torch.testing.assert_close(layer(X, edges), layer(X, edges.clone()))


TRACED = {"attention": lambda: lambda x, graph: attend(graph, x), "operator": operator,
          "GCNConv": lambda: weft.nn.GCNConv(F, F), "GATConv": lambda: weft.nn.GATConv(F, F),
          "message": lambda: lambda x, graph: weft.message(graph, "copy_u", u=x)}


class OfList(torch.nn.Module):
    """Makes a graph of each list that it is given."""

    def __init__(self, call, num_nodes=lambda x: x.shape[0]):
        super().__init__()
        self.call, self.num_nodes = call, num_nodes

    def forward(self, edges, x):
        return self.call(x, weft.Graph(edges, self.num_nodes(x)))


@pytest.mark.parametrize("name", TRACED)
@pytest.mark.parametrize("trace", ["export", "fullgraph", "compile"])
def test_traced_code_makes_graphs(name, trace):
    module = OfList(TRACED[name]())
    if trace == "export":
        traced = torch.export.export(module, (LIST, X), strict=False).module()
    else:
        torch._dynamo.reset()
        traced = torch.compile(module, backend="aot_eager", fullgraph=trace == "fullgraph")
    for edges in (LIST, LIST.flip(0)):  # nothing of the first list is in the code
        torch.testing.assert_close(traced(edges, X), module(edges, X))


def test_traced_graphs_need_a_number_of_nodes_and_check_edges():
    def call(x, graph):
        return weft.spmm(graph, x)

    with pytest.raises(ValueError, match="num_nodes: expected a number, as torch traces this code"):
        torch.export.export(OfList(call, lambda x: None), (LIST, X), strict=False)
    traced = torch.export.export(OfList(call), (LIST, X), strict=False).module()
    beyond = LIST.clone()
    beyond[0, 3] = 99
    with pytest.raises(RuntimeError, match="E.j is 99 at position"):
        traced(beyond, X)
