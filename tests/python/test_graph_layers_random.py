# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""Layers of weft.nn with arguments and graphs drawn at random against PyTorch Geometric's, in f64, and their
gradients of both orders.  WEFT_TEST_SEED draws others."""

import os
import random

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch_geometric")
from test_graph_layers import compare, pair  # noqa: E402

SEED = int(os.environ.get("WEFT_TEST_SEED", "1"))
DRAWS = 200 if os.environ.get("WEFT_TEST_LONG") else 5
AGGREGATIONS = ["add", "sum", "mean", "max", "min", ["mean", "max"], ["min", "sum", "max"]]


def graph(draw, receivers, senders):
    """Edges with loops, doubles and isolated nodes, or none at all."""
    edges = draw.choice([0, 1, 5, 40])
    ends = [[draw.randrange(max(1, n - draw.choice([0, 2]))) for _ in range(edges)] for n in (senders, receivers)]
    return torch.tensor(ends, dtype=torch.long).reshape(2, edges)


def rand(draw, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(draw.randrange(1 << 30)), dtype=torch.float64)


def nodes(draw, bipartite):
    """Channels, features and a graph, of a pair if bipartite."""
    if not bipartite:
        n, c = draw.randint(1, 12), draw.randint(1, 9)
        return c, [rand(draw, n, c)], graph(draw, n, n)
    (n, m), c = (draw.randint(1, 12), draw.randint(1, 12)), (draw.randint(1, 9), draw.randint(1, 9))
    return c, [rand(draw, n, c[0]), rand(draw, m, c[1])], graph(draw, m, n)


def flip(draw):
    return draw.choice([True, False])


def gcn(draw):
    c, x, index = nodes(draw, False)
    normalize = flip(draw)
    options = dict(improved=flip(draw), normalize=normalize, bias=flip(draw), add_self_loops=normalize and flip(draw),
                   flow=draw.choice(["source_to_target", "target_to_source"]))
    weight = [rand(draw, index.shape[1]).abs() + 0.1] if flip(draw) else []
    return (c, draw.randint(1, 9)), options, x, [index, *weight], {}


def sage(draw):
    bipartite = flip(draw)
    c, x, index = nodes(draw, bipartite)
    options = dict(aggr=draw.choice(AGGREGATIONS), normalize=flip(draw), root_weight=flip(draw), project=flip(draw),
                   bias=flip(draw))
    return (c, draw.randint(1, 9)), options, x, [index], {}


def attention(draw, v2=False):
    bipartite = flip(draw)
    c, x, index = nodes(draw, bipartite)
    edge_dim = draw.choice([None, 1, 3])
    options = dict(heads=draw.randint(1, 4), concat=flip(draw), negative_slope=draw.choice([0.0, 0.2, 1.5]),
                   add_self_loops=not bipartite and flip(draw), bias=flip(draw), residual=flip(draw),
                   edge_dim=edge_dim, fill_value=draw.choice([0.5, "mean", "add", "min", "max", "mul"]))
    if v2:
        options["share_weights"] = not bipartite and flip(draw)
    more = {} if edge_dim is None else {"edge_attr": rand(draw, index.shape[1], edge_dim)}
    return (c, draw.randint(1, 6)), options, x, [index], more


def rgcn(draw):
    bipartite = flip(draw)
    c, x, index = nodes(draw, bipartite)
    relations, kind = draw.randint(1, 5), draw.choice(["full", "bases", "blocks"])
    options = dict(aggr=draw.choice(["add", "mean", "max"]), root_weight=flip(draw), bias=flip(draw))
    out = draw.randint(1, 9)
    if kind == "bases":
        options["num_bases"] = draw.randint(1, 4)
    elif kind == "blocks":
        wide = c if isinstance(c, int) else c[0]
        options["num_blocks"], out = wide, wide * draw.randint(1, 2)
    types = torch.tensor([draw.randrange(relations) for _ in range(index.shape[1])], dtype=torch.long)
    types, order = types.sort()
    return (c, out, relations), options, x, [index[:, order], types], {}


LAYERS = {"GCNConv": gcn, "SAGEConv": sage, "GATConv": attention, "GATv2Conv": lambda d: attention(d, True),
          "RGCNConv": rgcn}


@pytest.mark.parametrize("number", range(DRAWS))
@pytest.mark.parametrize("name", LAYERS)
def test_any_arguments_give_what_pyg_gives(name, number):
    args, options, x, rest, more = LAYERS[name](random.Random(f"{SEED} {name} {number}"))
    ours, theirs = pair(name, *args, **options)
    compare(ours, theirs, x, *rest, **more)
    theirs.load_state_dict(ours.state_dict())


@pytest.mark.parametrize("number", range(2))
@pytest.mark.parametrize("name", LAYERS)
def test_gradients_of_both_orders(name, number):
    """By features and weights, with sums in place of maxima, which have corners."""
    draw = random.Random(f"{SEED} gradients {name} {number}")
    args, options, x, rest, more = LAYERS[name](draw)
    options = {k: v for k, v in options.items() if k not in ("aggr", "project", "negative_slope", "normalize")}
    options.update({"add_self_loops": False} if name == "GCNConv" else {})
    layer, _ = pair(name, *args, **options)
    given = [a.clone().requires_grad_() for a in x]

    def call(*arrays):
        y = layer(arrays[0] if len(arrays) == 1 else tuple(arrays), *rest, **more)
        return y[0] if isinstance(y, tuple) else y

    assert torch.autograd.gradcheck(call, given, fast_mode=True)
    assert torch.autograd.gradgradcheck(call, given, fast_mode=True)
