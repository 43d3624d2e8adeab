# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""weft.nn: layers of graph networks are those of PyTorch Geometric, in results, gradients and state dicts."""

import copy

import pytest

torch = pytest.importorskip("torch")
import weft  # noqa: E402
from weft import _torch_large, nn  # noqa: E402

try:
    import torch_geometric.nn as pyg
except ImportError:
    pyg = None
needs_pyg = pytest.mark.skipif(pyg is None, reason="torch_geometric is not installed")

N, EDGES, CHANNELS, RELATIONS = 9, 30, 4, 5
LIMIT = {torch.float32: 1e-6, torch.float64: 1e-12}


def edges(kind="plain", n=N):
    g = torch.Generator().manual_seed(3)
    if kind == "empty":
        return torch.zeros(2, 0, dtype=torch.long)
    index = torch.randint(0, n - 2, (2, EDGES), generator=g)  # two nodes have no edge
    index[:, 5] = index[:, 4]  # an edge twice
    index[:, 7:9] = torch.tensor([[3, 3], [3, 3]])  # a loop, twice
    return index if kind == "plain" else index[:, index[0] != index[1]]


def make(name, module, dtype=torch.float64, *args, **kwargs):
    torch.manual_seed(11)
    return getattr(module, name)(*args, **kwargs).to(dtype)


def pair(name, *args, dtype=torch.float64, **kwargs):
    """The layer and PyG's, with its parameters."""
    theirs = make(name, pyg, dtype, *args, **kwargs)
    with torch.no_grad():
        for p in theirs.parameters():
            if not isinstance(p, torch.nn.UninitializedParameter):
                p.uniform_(-1, 1)
    ours = make(name, nn, dtype, *args, **kwargs)
    ours.load_state_dict(theirs.state_dict())
    return ours, theirs


def error(a, b):
    """The largest difference, relative to the largest element of b, or to 1, the size of operands: sums that
    cancel to less have the rounding of their terms."""
    assert a.shape == b.shape
    if not a.numel():
        return 0.0
    scale = max(1.0, float(b.detach().abs().max()))
    return float((a.detach().to(b.dtype) - b.detach()).abs().max()) / scale


def close(a, b, dtype, exact=None):
    """Equal to 1e-6 in f32 and 1e-12 in f64.  exact: PyG's result in f64, for f32: where PyG's own rounding is
    larger than 1e-6, ours is no larger than it."""
    if error(a, b) <= LIMIT[dtype]:
        return
    assert exact is not None and error(a, exact) <= max(LIMIT[dtype], error(b, exact)), error(a, b)


def double(x):
    return x.double() if isinstance(x, torch.Tensor) and x.is_floating_point() else x


def outcome(layer, inputs, rest, more):
    """The result, and gradients by inputs and parameters."""
    given = [x.detach().clone().requires_grad_() if isinstance(x, torch.Tensor) and x.is_floating_point() else x
             for x in inputs]
    x = given[0] if len(given) == 1 else tuple(given)
    y = layer(x, *rest, **more)
    y = y[0] if isinstance(y, tuple) else y
    factor = torch.randn(y.shape, generator=torch.Generator().manual_seed(5), dtype=torch.float32)
    (y * factor.to(y.dtype)).sum().backward()
    parameters = dict(layer.named_parameters())
    found = [y, *[x.grad for x in given if isinstance(x, torch.Tensor) and x.requires_grad],
             *[parameters[k].grad for k in sorted(parameters)]]
    layer.zero_grad()
    return found


def compare(ours, theirs, inputs, *rest, dtype=torch.float64, **more):
    """Results, and gradients by inputs and parameters, are those of PyG."""
    wide = copy.deepcopy(theirs).double()  # before it caches anything
    found, wanted = (outcome(layer, inputs, rest, more) for layer in (ours, theirs))
    exact = [None] * len(wanted)
    if dtype is torch.float32:
        exact = outcome(wide, [double(x) for x in inputs], [double(x) for x in rest],
                        {k: double(v) for k, v in more.items()})
    for a, b, c in zip(found, wanted, exact):
        if b is not None:
            close(torch.zeros_like(b) if a is None else a, b, dtype, c)


def features(n=N, channels=CHANNELS, dtype=torch.float64):
    return torch.randn(n, channels, generator=torch.Generator().manual_seed(n + channels), dtype=dtype)


GCN = [dict(), dict(improved=True), dict(add_self_loops=False), dict(normalize=False), dict(bias=False),
       dict(cached=True), dict(aggr="mean"), dict(aggr="max"), dict(flow="target_to_source")]
SAGE = [dict(), dict(aggr="max"), dict(aggr="min"), dict(aggr="add"), dict(aggr="sum"), dict(aggr=["mean", "max"]),
        dict(normalize=True), dict(root_weight=False), dict(project=True), dict(bias=False),
        dict(flow="target_to_source")]
GAT = [dict(), dict(heads=3), dict(heads=3, concat=False), dict(negative_slope=0.7), dict(add_self_loops=False),
       dict(bias=False), dict(residual=True, heads=2)]
EDGE = [dict(edge_dim=3, heads=2, fill_value=f) for f in (0.5, "mean", "add", "min", "max", "mul")]
RGCN = [dict(), dict(num_bases=2), dict(num_blocks=2), dict(aggr="add"), dict(aggr="max"), dict(root_weight=False),
        dict(bias=False), dict(is_sorted=True), dict(aggr="max", num_blocks=2)]


@needs_pyg
@pytest.mark.parametrize("dtype", LIMIT)
@pytest.mark.parametrize("kind", ["plain", "empty"])
@pytest.mark.parametrize("options", GCN, ids=str)
def test_gcn_is_that_of_pyg(options, kind, dtype):
    index = edges(kind)
    ours, theirs = pair("GCNConv", CHANNELS, 3, dtype=dtype, **options)
    compare(ours, theirs, [features(dtype=dtype)], index, dtype=dtype)
    if not options.get("cached"):
        weight = torch.rand(index.shape[1], dtype=dtype) + 0.1
        compare(ours, theirs, [features(dtype=dtype)], index, weight, dtype=dtype)


@needs_pyg
def test_gcn_differentiates_weights_of_edges():
    index = edges("simple")
    ours, theirs = pair("GCNConv", CHANNELS, 3)
    got = []
    for layer in (ours, theirs):
        weight = torch.linspace(0.5, 2, index.shape[1], dtype=torch.float64).requires_grad_()
        layer(features(), index, weight).square().sum().backward()
        got.append(weight.grad)
    close(*got, torch.float64)


@needs_pyg
@pytest.mark.parametrize("dtype", LIMIT)
@pytest.mark.parametrize("kind", ["plain", "empty"])
@pytest.mark.parametrize("options", SAGE, ids=str)
def test_sage_is_that_of_pyg(options, kind, dtype):
    ours, theirs = pair("SAGEConv", CHANNELS, 3, dtype=dtype, **options)
    compare(ours, theirs, [features(dtype=dtype)], edges(kind), dtype=dtype)


@needs_pyg
@pytest.mark.parametrize("name", ["SAGEConv", "GATConv", "GATv2Conv"])
def test_bipartite_pairs(name):
    index = edges()
    ours, theirs = pair(name, (CHANNELS, 3), 5)
    compare(ours, theirs, [features(N), features(N + 3, 3)], index)
    compare(ours, theirs, [features(N + 3), features(N, 3)], index)


@needs_pyg
def test_receivers_without_features():
    index = edges()
    ours, theirs = pair("SAGEConv", CHANNELS, 3, root_weight=False)
    close(ours((features(), None), index, size=(N, N)), theirs((features(), None), index, size=(N, N)), torch.float64)
    ours, theirs = pair("GATConv", CHANNELS, 3)
    close(ours((features(), None), index, size=(N, N)), theirs((features(), None), index, size=(N, N)), torch.float64)


@needs_pyg
@pytest.mark.parametrize("dtype", LIMIT)
@pytest.mark.parametrize("kind", ["plain", "empty"])
@pytest.mark.parametrize("options", GAT, ids=str)
@pytest.mark.parametrize("name", ["GATConv", "GATv2Conv"])
def test_gat_is_that_of_pyg(name, options, kind, dtype):
    ours, theirs = pair(name, CHANNELS, 3, dtype=dtype, **options)
    compare(ours, theirs, [features(dtype=dtype)], edges(kind), dtype=dtype)


@needs_pyg
@pytest.mark.parametrize("options", EDGE, ids=str)
@pytest.mark.parametrize("name", ["GATConv", "GATv2Conv"])
def test_gat_takes_features_of_edges(name, options):
    index = edges()
    attr = features(index.shape[1], 3)
    ours, theirs = pair(name, CHANNELS, 3, **options)
    compare(ours, theirs, [features()], index, attr)
    ours, theirs = pair(name, CHANNELS, 3, add_self_loops=False, **options)
    compare(ours, theirs, [features()], index, attr)


@needs_pyg
def test_gatv2_shares_weights():
    ours, theirs = pair("GATv2Conv", CHANNELS, 3, heads=2, share_weights=True)
    compare(ours, theirs, [features()], edges())


@needs_pyg
@pytest.mark.parametrize("loops", [True, False])
@pytest.mark.parametrize("name", ["GATConv", "GATv2Conv"])
def test_weights_of_attention_are_returned(name, loops):
    index = edges()
    ours, theirs = pair(name, CHANNELS, 3, heads=2, add_self_loops=loops)
    got, want = (f(features(), index, return_attention_weights=True) for f in (ours, theirs))
    close(got[0], want[0], torch.float64)
    assert torch.equal(got[1][0], want[1][0])
    close(got[1][1], want[1][1], torch.float64)


@needs_pyg
@pytest.mark.parametrize("name", ["GATConv", "GATv2Conv"])
def test_dropout_draws_what_pyg_draws(name):
    index = edges("simple")
    ours, theirs = pair(name, CHANNELS, 3, heads=2, dropout=0.5)
    got = []
    for layer in (ours, theirs):
        torch.manual_seed(2)
        got.append(layer(features(), index))
    close(*got, torch.float64)
    assert not torch.equal(got[0], ours.eval()(features(), index))


@needs_pyg
@pytest.mark.parametrize("dtype", LIMIT)
@pytest.mark.parametrize("kind", ["plain", "empty"])
@pytest.mark.parametrize("options", RGCN, ids=str)
def test_rgcn_is_that_of_pyg(options, kind, dtype):
    index = edges(kind)
    types = torch.arange(index.shape[1]) % (RELATIONS - 1)  # one relation has no edge
    types, order = types.sort()
    ours, theirs = pair("RGCNConv", CHANNELS, 6, RELATIONS, dtype=dtype, **options)
    compare(ours, theirs, [features(dtype=dtype)], index[:, order], types, dtype=dtype)


@needs_pyg
@pytest.mark.parametrize("options", [dict(), dict(num_bases=2), dict(aggr="add")], ids=str)
def test_rgcn_takes_numbers_of_nodes(options):
    index = edges()
    types = torch.arange(EDGES) % RELATIONS
    ours, theirs = pair("RGCNConv", N, 6, RELATIONS, dtype=torch.float32, **options)
    compare(ours, theirs, [None], index, types, dtype=torch.float32)
    compare(ours, theirs, [torch.arange(N).flip(0)], index, types, dtype=torch.float32)


@needs_pyg
def test_rgcn_takes_pairs():
    index, types = edges(), torch.arange(EDGES) % RELATIONS
    ours, theirs = pair("RGCNConv", (CHANNELS, 3), 6, RELATIONS, dtype=torch.float32)
    compare(ours, theirs, [features(N, dtype=torch.float32), features(N + 2, 3, dtype=torch.float32)], index, types,
            dtype=torch.float32)


def test_large_linear_maps_are_those_of_torch(monkeypatch):
    """Results in large pages, and their derivatives to the second order."""
    monkeypatch.setattr(_torch_large, "_LARGE", 0)
    x, w, b = (torch.randn(s, dtype=torch.float64, requires_grad=True) for s in ((5, 4), (3, 4), (3,)))
    for bias in (b, None):
        got, want = (f(x, w, bias) for f in (_torch_large.linear, torch.nn.functional.linear))
        assert type(got.grad_fn).__name__ == "_LinearBackward" and torch.equal(got, want)
        wanted = [x, w] if bias is None else [x, w, b]
        assert torch.autograd.gradcheck(lambda *given: _torch_large.linear(*given), wanted)
        assert torch.autograd.gradgradcheck(lambda *given: _torch_large.linear(*given), wanted)
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        _torch_large.linear(x, w[:, 1:])


LAYERS = [("GCNConv", (CHANNELS, 3), {}), ("SAGEConv", (CHANNELS, 3), {}),
          ("SAGEConv", (CHANNELS, 3), dict(aggr="max")), ("GATConv", (CHANNELS, 3), dict(heads=2)),
          ("GATv2Conv", (CHANNELS, 3), dict(heads=2)), ("RGCNConv", (CHANNELS, 6, RELATIONS), {}),
          ("RGCNConv", (CHANNELS, 6, RELATIONS), dict(num_blocks=2))]


def given(name, dtype=torch.float32):
    more = (torch.arange(EDGES) % RELATIONS,) if name == "RGCNConv" else ()
    return (features(dtype=dtype), edges(), *more)


@needs_pyg
@pytest.mark.parametrize("name, args, options", LAYERS, ids=str)
def test_state_dicts_load_both_ways_and_layers_begin_alike(name, args, options):
    ours, theirs = make(name, nn, torch.float32, *args, **options), make(name, pyg, torch.float32, *args, **options)
    assert list(ours.state_dict()) == list(theirs.state_dict()) or set(ours.state_dict()) == set(theirs.state_dict())
    theirs.load_state_dict(ours.state_dict())
    for k, v in theirs.state_dict().items():
        assert torch.equal(v, ours.state_dict()[k])
    torch.manual_seed(4)
    ours.reset_parameters()
    torch.manual_seed(4)
    theirs.reset_parameters()
    for k, v in theirs.state_dict().items():
        bound = float(v.abs().max())
        assert float(ours.state_dict()[k].abs().max()) <= 3 * bound + 1e-12


@needs_pyg
def test_channels_may_be_those_of_the_first_input():
    for name in ("GCNConv", "SAGEConv", "GATConv"):
        layer = make(name, nn, torch.float32, -1, 3)
        assert layer(features(dtype=torch.float32), edges()).shape == (N, 3)


@pytest.mark.parametrize("name, args, options", LAYERS, ids=str)
def test_layers_compile_whole(name, args, options):
    layer, arrays = make(name, nn, torch.float32, *args, **options), given(name)
    torch._dynamo.reset()
    compiled = torch.compile(copy.deepcopy(layer), fullgraph=True, backend="aot_eager")
    x = arrays[0].clone().requires_grad_()
    y = compiled(x, *arrays[1:])
    want = layer(*arrays)
    assert torch.allclose(y, want, atol=1e-5)
    y.square().sum().backward()
    z = arrays[0].clone().requires_grad_()
    layer(z, *arrays[1:]).square().sum().backward()
    assert torch.allclose(x.grad, z.grad, atol=1e-4)


@pytest.mark.parametrize("name, args, options", LAYERS, ids=str)
def test_layers_export(name, args, options):
    layer, arrays = make(name, nn, torch.float32, *args, **options), given(name)
    program = torch.export.export(layer, arrays)
    assert torch.allclose(program.module()(*arrays), layer(*arrays), atol=1e-5)


@pytest.mark.parametrize("name, args, options", LAYERS, ids=str)
def test_layers_vmap(name, args, options):
    layer, (x, *rest) = make(name, nn, torch.float64, *args, **options), given(name, torch.float64)
    many = torch.stack([x, 2 * x, x + 1])
    got = torch.vmap(lambda one: layer(one, *rest))(many)
    assert torch.allclose(got, torch.stack([layer(one, *rest) for one in many]))


@pytest.mark.parametrize("name, args, options", LAYERS, ids=str)
def test_layers_in_autocast(name, args, options):
    """What torch leaves in several types is computed in the widest; results are near those without it."""
    layer, arrays = make(name, nn, torch.float32, *args, **options), given(name)
    want = layer(*arrays)
    with torch.autocast("cpu", torch.bfloat16):
        got = layer(*arrays)
    assert got.dtype in (torch.float32, torch.bfloat16)
    assert torch.allclose(got.float(), want, atol=0.05)
    got.float().sum().backward()
    assert all(p.grad is None or p.grad.dtype == torch.float32 for p in layer.parameters())


@pytest.mark.parametrize("name, args, options", LAYERS, ids=str)
def test_layers_have_the_same_bits_for_any_number_of_threads(name, args, options):
    layer, arrays = make(name, nn, torch.float32, *args, **options), given(name)
    got, before = [], torch.get_num_threads()
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            weft.set_threads(threads)
            x = arrays[0].clone().requires_grad_()
            y = layer(x, *arrays[1:])
            y.square().sum().backward()
            got.append((y.detach(), x.grad))
    finally:
        torch.set_num_threads(before)
        weft.set_threads(0)
    for y, g in got[1:]:
        assert torch.equal(y, got[0][0]) and torch.equal(g, got[0][1])


def test_graphs_and_sparse_tensors_stand_for_lists():
    index, x = edges("simple"), features()
    layer = make("SAGEConv", nn, torch.float64, CHANNELS, 3)
    want = layer(x, index)
    assert torch.equal(layer(x, weft.Graph(index, N)), want)
    matrix = torch.sparse_coo_tensor(index.flip(0), torch.ones(index.shape[1], dtype=torch.float64), (N, N))
    unique = index.unique(dim=1)
    matrix = torch.sparse_coo_tensor(unique.flip(0), torch.ones(unique.shape[1], dtype=torch.float64), (N, N))
    assert torch.allclose(layer(x, matrix), layer(x, unique))
    assert torch.allclose(layer(x, matrix.to_sparse_csr()), layer(x, unique))


@pytest.mark.parametrize("call, words", [
    (lambda x, e: nn.SAGEConv(4, 3, aggr="lstm"), "aggr"),
    (lambda x, e: nn.GCNConv(4, 3)((x, x), e), "x"),
    (lambda x, e: nn.SAGEConv(4, 3)(x.float(), e.double()), "edge_index"),
    (lambda x, e: nn.SAGEConv(4, 3)(x.float(), e + N),
     r"^edge_index: the receiver of edge 0 is \d+, but there are 9 nodes$"),
    (lambda x, e: nn.RGCNConv(4, 3, 2)(x.float(), torch.tensor([[-1], [0]]), torch.zeros(1, dtype=torch.long)),
     "^edge_index: the sender of edge 0 is -1, but there are 9 nodes$"),
    (lambda x, e: nn.GCNConv("4", 3), "in_channels: expected an integer, got '4'"),
    (lambda x, e: nn.GATConv(4, 2.5), "out_channels: expected an integer"),
    (lambda x, e: nn.RGCNConv(4, 3, 2)(x.float(), e), "edge_type"),
    (lambda x, e: nn.RGCNConv(4, 3, 2)(x.float(), e, torch.full((EDGES,), 7)), "type"),
    (lambda x, e: nn.RGCNConv(4, 3, 2, num_bases=1, num_blocks=1), "num_bases"),
    (lambda x, e: nn.GATConv(4, 3, flow="up"), "flow"),
])
def test_what_is_wrong_is_named(call, words):
    with pytest.raises((ValueError, weft.Error), match=words):
        call(features(), edges())
