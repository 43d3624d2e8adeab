# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""Operators of graph networks by name, beside torch and PyTorch Geometric: one process, calls in turns,
medians.  Each line has the time of each peer and, in brackets, peer / Weft.
Usage: bench/graphs.py [gat|rgcn|sage|all] [--threads 1] [--seconds 2] [--cpu] [--data FOLDER]
--cpu: CPU time of the process, not wall time: for one thread on a busy machine.
--data: a folder with cora.npz, aifb.npz, mutag.npz and fb15k-237.npz; without it graphs are generated."""

import argparse
import time
from pathlib import Path

import numpy as np
import torch

import weft
from weft import nn

try:
    import torch_geometric.nn as pyg
except ImportError:
    pyg = None


clock = time.perf_counter


def medians(calls, seconds):
    """Of each call the median of its times, in turns after one round that does not count."""
    times = {name: [] for name in calls}
    for f in calls.values():
        f()
        f()
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or min(map(len, times.values())) < 5:
        for name, f in calls.items():
            begin = clock()
            f()
            times[name].append(clock() - begin)
    return {name: float(np.median(t)) for name, t in times.items()}


def tell(what, times):
    ours = times["weft"]
    rest = "  ".join(f"{k} {t * 1e3:.2f} ms ({k} / weft {t / ours:.2f}x)" for k, t in times.items() if k != "weft")
    print(f"{what}: weft {ours * 1e3:.2f} ms  {rest}", flush=True)


def power_law(n, edges, seed=1):
    """Edges between nodes of power-law degrees; few have none."""
    rng = np.random.default_rng(seed)
    weight = rng.pareto(1.5, n) + 0.2
    ends = [rng.choice(n, edges, p=weight / weight.sum()) for _ in (0, 1)]
    ends[1][:n] = rng.permutation(n)[:min(n, edges)]
    return torch.from_numpy(np.stack(ends))


def relational(n, relations, edges, seed=1):
    rng = np.random.default_rng(seed)
    share = 1 / np.arange(1, relations + 1)
    return power_law(n, edges, seed), torch.from_numpy(rng.choice(relations, edges, p=share / share.sum()))


def symmetric(folder, name, n, edges):
    path = folder / f"{name}.npz" if folder else None
    if path and path.exists():
        z = np.load(path)
        return int(z["n"]), torch.from_numpy(np.stack([z["col"], z["row"]]).astype(np.int64))
    return n, power_law(n, edges)


def triples(folder, name, n, relations, edges):
    """With the reverse of each edge as a relation more."""
    path = folder / f"{name}.npz" if folder else None
    if path and path.exists():
        z = np.load(path)
        n, relations = int(z["n"]), int(z["nrel"])
        index = torch.from_numpy(np.stack([z["head"], z["tail"]]).astype(np.int64))
        types = torch.from_numpy(z["rel"].astype(np.int64))
    else:
        index, types = relational(n, relations, edges)
    return n, 2 * relations, torch.cat([index, index.flip(0)], 1), torch.cat([types, types + relations])


def gat(args):
    for name, n, edges, heads, f in (("cora", 2708, 10556, 8, 8), ("pubmed", 19717, 88651, 8, 8),
                                     ("arxiv-size", 169343, 1166243, 8, 8), ("arxiv-size", 169343, 1166243, 8, 32)):
        n, index = symmetric(args.data, name, n, edges)
        x = torch.randn(n, heads, f)
        left, right = torch.randn(n, heads), torch.randn(n, heads)
        order = torch.argsort(index[1], stable=True)
        col = index[0][order].contiguous()
        start = torch.zeros(n + 1, dtype=torch.long)
        start[1:] = torch.bincount(index[1], minlength=n).cumsum(0)
        to = index[1][order]
        parts = [x[:, h].contiguous() for h in range(heads)]

        def prepared():
            s = torch.nn.functional.leaky_relu(left[to] + right[col], 0.2)
            top = torch.full((n, heads), -torch.inf).scatter_reduce(0, to[:, None].expand_as(s), s, "amax")
            t = torch.exp(s - top[to])
            t = t / torch.zeros(n, heads).index_add(0, to, t)[to]
            return torch.stack([torch.sparse_csr_tensor(start, col, t[:, h].contiguous(), (n, n)) @ parts[h]
                                for h in range(heads)], 1)

        graph = weft.Graph(index, n)
        calls = {"weft": lambda: weft.gat(graph, left, right, x), "torch CSR by head": prepared}
        assert torch.allclose(calls["weft"](), prepared(), atol=1e-4)
        if pyg:
            layer = pyg.GATConv(4, f, heads, add_self_loops=False, bias=False)

            def theirs():
                alpha = layer.edge_updater(index, alpha=(right, left), edge_attr=None, size=None)
                return layer.propagate(index, x=(x, x), alpha=alpha, size=None)

            assert torch.allclose(theirs(), prepared(), atol=1e-4)
            calls["PyG"] = theirs
        with torch.no_grad():
            tell(f"gat {name} {heads}x{f}", medians(calls, args.seconds))


def rgcn(args):
    for name, n, r, edges in (("aifb", 8285, 45, 29043), ("mutag", 23644, 23, 74227),
                              ("fb15k-237", 14505, 237, 272115)):
        n, r, index, types = triples(args.data, name, n, r, edges)
        tiles = weft.Tiles(index, types, r, n)
        for f in (32, 128):
            x, w = torch.randn(n, f), torch.randn(r, f, f) / f
            of = []  # of each relation its matrix
            for k in range(r):
                e = index[:, types == k]
                a = torch.sparse_coo_tensor(e.flip(0), torch.ones(e.shape[1]), (n, n)).coalesce().to_sparse_csr()
                of.append(a)

            def prepared():
                y = torch.zeros(n, f)
                for a, m in zip(of, w):
                    y += (a @ x) @ m
                return y

            calls = {"weft": lambda: weft.rgms(tiles, x, w), "torch loop": prepared, "torch rows": None}
            rows = [(torch.unique(index[1][types == k]), k) for k in range(r)]
            small = [(u, torch.sparse_coo_tensor(
                torch.stack([torch.searchsorted(u, index[1][types == k]), index[0][types == k]]),
                torch.ones(int((types == k).sum())), (len(u), n)).coalesce().to_sparse_csr(), k) for u, k in rows]

            def compact():
                y = torch.zeros(n, f)
                for u, a, k in small:
                    y.index_add_(0, u, (a @ x) @ w[k])
                return y

            calls["torch rows"] = compact
            assert torch.allclose(calls["weft"](), prepared(), atol=1e-3)
            if pyg:
                layer = pyg.RGCNConv(f, f, r, aggr="add", root_weight=False, bias=False)
                layer.weight.data.copy_(w)
                calls["PyG"] = lambda: layer(x, index, types)
            with torch.no_grad():
                tell(f"rgcn {name} F={f}", medians(calls, args.seconds))
            if pyg:
                mine = nn.RGCNConv(f, f, r, aggr="add", root_weight=False, bias=False)
                mine.load_state_dict(layer.state_dict())

                def step(model):
                    y = x.clone().requires_grad_()
                    model(y, index, types).square().sum().backward()

                tell(f"rgcn {name} F={f} forward + backward",
                     medians({"weft": lambda: step(mine), "PyG": lambda: step(layer)}, args.seconds))


class Sage(torch.nn.Module):
    def __init__(self, conv, channels, hidden, classes):
        super().__init__()
        self.layers = torch.nn.ModuleList([conv(channels, hidden), conv(hidden, classes)])

    def forward(self, x, index):
        return self.layers[1](self.layers[0](x, index).relu(), index)


class TorchSage(torch.nn.Module):
    """The mean over neighbours as a product with a prepared CSR matrix."""

    def __init__(self, channels, out):
        super().__init__()
        self.lin_l, self.lin_r = torch.nn.Linear(channels, out), torch.nn.Linear(channels, out, bias=False)

    def forward(self, x, index):
        if self.lin_l.out_features < self.lin_l.in_features:
            return index @ torch.nn.functional.linear(x, self.lin_l.weight) + self.lin_l.bias + self.lin_r(x)
        return self.lin_l(index @ x) + self.lin_r(x)


def sage(args):
    for name, n, edges, channels, hidden, classes in (("cora", 2708, 10556, 1433, 64, 7),
                                                      ("arxiv-size", 169343, 1166243, 128, 128, 40)):
        n, index = symmetric(args.data, name, n, edges)
        x, y = torch.randn(n, channels), torch.randint(0, classes, (n,))
        degree = torch.bincount(index[1], minlength=n).clamp(min=1)
        mean = torch.sparse_coo_tensor(index.flip(0), 1 / degree[index[1]].float(), (n, n)).coalesce().to_sparse_csr()
        models = {"weft": (Sage(nn.SAGEConv, channels, hidden, classes), index),
                  "torch CSR": (Sage(TorchSage, channels, hidden, classes), mean)}
        if pyg:
            models["PyG"] = (Sage(pyg.SAGEConv, channels, hidden, classes), index)
        calls, loss = {}, {}
        for key, (model, graph) in models.items():
            model.load_state_dict(models["weft"][0].state_dict())
            optimizer = torch.optim.Adam(model.parameters(), 0.01)

            def step(model=model, graph=graph, optimizer=optimizer, key=key):
                optimizer.zero_grad()
                out = torch.nn.functional.cross_entropy(model(x, graph), y)
                out.backward()
                optimizer.step()
                loss.setdefault(key, float(out))

            calls[key] = step
        tell(f"sage step {name} {channels}-{hidden}-{classes}", medians(calls, args.seconds))
        assert max(loss.values()) - min(loss.values()) < 1e-4, loss


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", nargs="?", default="all", choices=("all", "gat", "rgcn", "sage"))
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--data", type=Path)
    args = parser.parse_args()
    if args.cpu:
        global clock
        clock = time.process_time
    torch.manual_seed(0)
    torch.set_num_threads(args.threads)
    weft.set_threads(args.threads)
    for f in (gat, rgcn, sage):
        if args.what in ("all", f.__name__):
            f(args)


if __name__ == "__main__":
    main()
