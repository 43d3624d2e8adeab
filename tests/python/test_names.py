# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""Each call in the table of docs/names.md runs as it is written, and gives what plain torch gives."""

import re
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
import weft  # noqa: E402
from weft import nn  # noqa: E402

PAGE = Path(__file__).resolve().parents[2] / "docs" / "names.md"
N, EDGES, F, RELATIONS = 6, 12, 4, 3


def calls():
    """The code spans of the right column that are calls with arguments, and the names of layers."""
    rows = [line.split("|") for line in PAGE.read_text().splitlines() if line.startswith("|")][2:]
    spans = [s for row in rows for s in re.findall(r"`([^`]+)`", row[-2])]
    return list(dict.fromkeys(spans))


@pytest.fixture(scope="module")
def given():
    g = torch.Generator().manual_seed(2)
    rand = lambda *shape: torch.rand(*shape, generator=g)  # noqa: E731
    index = torch.randint(0, N, (2, EDGES), generator=g)
    index = index[:, index[1].argsort(stable=True)]
    start = torch.cat([torch.zeros(1, dtype=torch.long), torch.bincount(index[1], minlength=N).cumsum(0)])
    w = rand(EDGES)
    A = torch.sparse_csr_tensor(start, index[0].clone(), w, (N, N))
    coords = torch.tensor([[0, i, i % 3, i % 2] for i in range(8)], dtype=torch.int32)
    tiles = weft.Tiles(index, torch.arange(EDGES) % RELATIONS, RELATIONS, N)
    return {"weft": weft, "graph": weft.Graph(index, N), "index": index, "src": rand(EDGES, F), "s": rand(EDGES),
            "x": rand(N, F), "y": rand(N, F), "w": w, "reduce": "mean", "A": A, "adj_t": A, "tiles": tiles,
            "W": rand(2, F, F), "comp": rand(RELATIONS, 2), "indptr": start, "indices": index[0].clone(),
            "value": w, "m": N, "n": N, "q": rand(2, 3, N, F), "k": rand(2, 3, N, F), "v": rand(2, 3, N, F),
            "mask": torch.eye(N).bool() | torch.eye(N).bool().roll(1, 0), "lengths": torch.tensor([4, N]),
            "coords": coords, "kernel_map": weft.kernel_map(coords, 3), "features": rand(8, F),
            "kernel": rand(5, 3, 3, 3, F)}


def of_receivers(given, each, reduce):
    how = {"sum": "sum", "mean": "mean", "max": "amax"}[reduce]
    to = given["index"][1].unsqueeze(-1).expand_as(each)
    return torch.zeros(N, each.shape[1]).scatter_reduce(0, to, each, how, include_self=False)


def softmax(given, s):
    e = s.exp()
    return e / of_receivers(given, e, "sum")[given["index"][1]]


def attention(given, mask):
    return torch.nn.functional.scaled_dot_product_attention(*(given[k] for k in "qkv"), attn_mask=mask)


def of_lengths(given):
    inside = torch.arange(N) < given["lengths"].unsqueeze(-1)
    pairs = (inside.unsqueeze(1) & inside.unsqueeze(2)).unsqueeze(1)
    return attention(given, pairs).nan_to_num() * inside[:, None, :, None]


def dense_conv(given):
    grid = torch.zeros(1, F, 8, 3, 2)
    at = given["coords"].long()
    grid[0, :, at[:, 1], at[:, 2], at[:, 3]] = given["features"].t()
    out = torch.nn.functional.conv3d(grid, given["kernel"].permute(0, 4, 1, 2, 3), padding=1)
    return out[0, :, at[:, 1], at[:, 2], at[:, 3]].t()


def wanted(given):
    send, to = given["index"]
    x, y, w, src = (given[k] for k in ("x", "y", "w", "src"))
    each = w.unsqueeze(-1) * x[send]
    return {
        "weft.softmax(graph, src)": lambda: softmax(given, src),
        "weft.softmax(graph, s)": lambda: softmax(given, given["s"].unsqueeze(-1)).squeeze(-1),
        'weft.message(graph, "copy_e", reduce, e=src)': lambda: of_receivers(given, src, "mean"),
        'weft.message(adj_t, "copy_u", reduce, u=x)': lambda: of_receivers(given, x[send], "mean"),
        'weft.message(graph, "copy_u", "sum", u=x)': lambda: of_receivers(given, x[send], "sum"),
        'weft.message(graph, "u_mul_e", "max", u=x, e=w)': lambda: of_receivers(given, each, "max"),
        'weft.message(graph, "u_mul_e", "sum", u=x, e=w)': lambda: of_receivers(given, each, "sum"),
        'weft.message(graph, "u_dot_v", None, u=x, v=y)': lambda: (x[send] * y[to]).sum(-1),
        'weft.message(graph, "u_add_v", None, u=x, v=y)': lambda: x[send] + y[to],
        "weft.spmm((indptr, indices, value, (m, n)), x)": lambda: of_receivers(given, each, "sum"),
        'weft.spmm(A, x, reduce="mean")': lambda: of_receivers(given, each, "mean"),
        'weft.spmm(A, x, reduce="max")': lambda: of_receivers(given, each, "max"),
        "weft.segment_reduce(indptr, src, reduce)": lambda: of_receivers(given, src, "mean"),
        'weft.message(graph, "copy_e", "max", e=src, arg=True)': lambda: of_receivers(given, src, "max"),
        "weft.attention(q, k, v, mask)": lambda: attention(given, given["mask"]),
        "weft.attention(q, k, v, lengths=lengths)": lambda: of_lengths(given),
        "weft.conv3d(features, kernel, kernel_map)": lambda: dense_conv(given),
        "weft.spmm(A, x)": lambda: given["A"].to_dense() @ x,
    }


@pytest.mark.parametrize("text", calls())
def test_calls_of_the_table_run(given, text):
    if "(" not in text:
        name = text.rpartition(".")[2]
        assert hasattr(nn, name) or hasattr(weft, name), f"{text} is neither in weft nor in weft.nn"
        return
    got = eval(text, dict(given))
    want = wanted(given).get(text)
    got = got[0] if isinstance(got, tuple) else got
    if want is not None:
        torch.testing.assert_close(got, want(), atol=1e-5, rtol=1e-5)


def test_calls_without_a_reference_are_few():
    texts = [t for t in calls() if "(" in t]
    known = wanted({k: torch.zeros(2, 1, dtype=torch.long) if k == "index" else torch.zeros(1, 1)
                    for k in ("index", "x", "y", "w", "src", "s")})
    assert len(texts) >= 21
    assert {t for t in texts if t not in known} == {"weft.rgms(tiles, x, W, comp=comp)", "weft.masks.causal(n)",
                                                    "weft.masks.band(n, 2)", "weft.kernel_map(coords, 3)"}
