# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""Wrong arguments, drawn at random: a call computes, or refuses with an error of this package that names an argument
as the caller wrote it.  WEFT_TEST_SEED draws others."""

import os
import random

import numpy as np
import pytest

torch = pytest.importorskip("torch")
import weft  # noqa: E402
from weft import masks, nn  # noqa: E402

SEED = int(os.environ.get("WEFT_TEST_SEED", "1"))
DRAWS = 400 if os.environ.get("WEFT_TEST_LONG") else 40
N, EDGES = 6, 10


def rand(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


def cases():
    g = torch.Generator().manual_seed(SEED)
    index = torch.randint(0, N, (2, EDGES), generator=g)
    types = torch.randint(0, 3, (EDGES,), generator=g)
    places = torch.tensor([[0, i, i % 3, i % 2] for i in range(8)], dtype=torch.int32)
    voxels = dict(features=rand(8, 4), indices=places, spatial_shape=[8, 8, 8], batch_size=1)
    eye = torch.eye(N).to_sparse_csr()

    def subm(**given):
        return nn.SubMConv3d(4, 5, 3)(nn.SparseConvTensor(**given))

    return {
        "message": (weft.message, dict(graph=index, message="u_mul_e", reduce="sum", u=rand(N, 3), e=rand(EDGES, 3))),
        "message_max": (weft.message, dict(graph=index, message="u_add_v", reduce="max", u=rand(N, 3), v=rand(N, 3),
                                           arg=True)),
        "gat": (weft.gat, dict(graph=index, L=rand(N, 2), R=rand(N, 2), X=rand(N, 2, 3))),
        "gatv2": (weft.gatv2, dict(graph=index, Q=rand(2, 3), L=rand(N, 2, 3), X=rand(N, 2, 3),
                                   G=rand(EDGES, 2, 3))),
        "spmm": (weft.spmm, dict(A=index, B=rand(N, 3))),
        "spmm_csr": (weft.spmm, dict(A=eye, B=rand(N, 3), reduce="max")),
        "spmv": (weft.spmv, dict(A=index, X=rand(N))),
        "sddmm": (weft.sddmm, dict(A=index, X=rand(N, 3), Y=rand(N, 3))),
        "softmax": (weft.softmax, dict(A=index, S=rand(EDGES))),
        "tiles": (weft.Tiles, dict(edge_index=index, edge_type=types, num_relations=3, num_nodes=N)),
        "rgms": (weft.rgms, dict(tiles=weft.Tiles(index, types, 3, N), X=rand(N, 4), W=rand(3, 4, 5))),
        "attention": (weft.attention, dict(q=rand(2, 6, 4), k=rand(2, 6, 4), v=rand(2, 6, 4),
                                           mask=torch.eye(6).bool())),
        "attention_lengths": (weft.attention, dict(q=rand(1, 2, 6, 4), k=rand(1, 2, 6, 4), v=rand(1, 2, 6, 4),
                                                   mask=masks.band(6, 2), lengths=torch.tensor([5]))),
        "paged_attention": (weft.paged_attention, dict(
            q=rand(2, 4, 8), k_cache=rand(3, 2, 4, 8), v_cache=rand(3, 2, 4, 8),
            block_table=torch.tensor([[0, 1], [2, 0]]), lengths=torch.tensor([5, 3]))),
        "band": (masks.band, dict(n=6, w=2)),
        "kernel_map": (weft.kernel_map, dict(coords=places, kernel_size=2, stride=2, subm=False, shape=[8, 8, 8])),
        "conv3d": (weft.conv3d, dict(x=rand(8, 4), weight=rand(5, 3, 3, 3, 4), bias=rand(5),
                                     kernel_map=weft.kernel_map(places, 3))),
        "spgemm": (weft.spgemm, dict(A=eye, B=eye)),
        "sparse_add": (weft.sparse_add, dict(A=eye, B=eye)),
        "sparse_mul": (weft.sparse_mul, dict(A=eye, B=eye)),
        "grouped_mm": (weft.grouped_mm, dict(x=rand(6, 4), weight=rand(2, 4, 3), offsets=torch.tensor([2, 6]))),
        "Graph": (weft.Graph, dict(edge_index=index, num_nodes=N)),
        "GCNConv": (nn.GCNConv(4, 3), dict(x=rand(N, 4), edge_index=index, edge_weight=rand(EDGES).abs())),
        "SAGEConv": (nn.SAGEConv(4, 3), dict(x=rand(N, 4), edge_index=index)),
        "SAGEConv_max": (nn.SAGEConv(3, 4, aggr="max"), dict(x=rand(N, 3), edge_index=index)),
        "GATConv": (nn.GATConv(4, 3, 2, edge_dim=2), dict(x=rand(N, 4), edge_index=index, edge_attr=rand(EDGES, 2))),
        "GATv2Conv": (nn.GATv2Conv(4, 3, 2, edge_dim=2),
                      dict(x=rand(N, 4), edge_index=index, edge_attr=rand(EDGES, 2))),
        "RGCNConv": (nn.RGCNConv(4, 3, 3), dict(x=rand(N, 4), edge_index=index, edge_type=types)),
        "SubMConv3d": (subm, voxels),
    }


CASES = cases()


def of_tensors(x):
    """What may stand for a tensor by mistake."""
    return [x[:0], x[:-1], x.unsqueeze(0), x.double(), x.half(), x.bool(), x.long(), x.to(torch.int8),
            x.to(torch.uint8), x.to(torch.int32), x.to(torch.complex64), x.float(), x.to("meta"), x.float().to_sparse(), x.flatten(),
            x.transpose(0, -1), torch.full_like(x, float("nan")) if x.is_floating_point() else x.long() - 100,
            x.long() + 1000, x.numpy(), x.tolist(), torch.cat([x, x]), x.expand(2, *x.shape), torch.tensor(1.0),
            torch.tensor([]), x.new_empty((0,) * x.dim()), x.flip(0), x.numpy().astype(object),
            x.numpy().astype("U3")]


def wrong(draw, value):
    other = [None, "text", 3.5, -1, [], object(), {}, float("nan"), 10 ** 30, True, b"x", [[1, 2], [3, 4]], (1, 2)]
    if isinstance(value, torch.Tensor) and value.layout is torch.strided:
        other += 2 * of_tensors(value)
    return draw.choice(other)


def tell(x):
    return f"{x.dtype} {tuple(x.shape)} {x.device if isinstance(x, torch.Tensor) else 'array'}" \
        if isinstance(x, (torch.Tensor, np.ndarray)) else repr(x)[:40]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CASES)
def test_wrong_arguments_are_named(name):
    f, right = CASES[name]
    f(**right)
    draw, known = random.Random(f"{SEED} {name}"), [*right, "A:", "edge_index", "row[", "col["]
    for _ in range(DRAWS):
        given = dict(right)
        for key in draw.sample(list(given), min(len(given), draw.choice([1, 1, 1, 2]))):
            given[key] = wrong(draw, given[key])
        try:
            f(**given)
        except weft.Error as e:
            if not any(word in str(e) for word in known):
                pytest.fail(f"{ {k: tell(v) for k, v in given.items() if v is not right[k]} }: {e}")
        except Exception as e:
            pytest.fail(f"{ {k: tell(v) for k, v in given.items() if v is not right[k]} }: {type(e).__name__}: {e}")
