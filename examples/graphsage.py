# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""Trains GraphSAGE on a generated graph of communities, with weft.nn and, where it is installed, with PyTorch
Geometric: the same loss and accuracy, time and peak memory side by side.
Usage: python examples/graphsage.py [--nodes 20000] [--degree 8] [--steps 20] [--minibatch] [--data FOLDER]
--minibatch: every step takes a new graph, the neighbourhood of some nodes.
--data: a folder with cora.npz (n, row, col) and cora-features.npz (CSR; label; split 1 train, 3 test)."""

import argparse
import statistics
import time
from pathlib import Path

import numpy as np
import torch
from watch import Peak, progress

from weft import nn

try:
    import torch_geometric.nn as pyg
except ImportError:
    pyg = None

CLASSES, CHANNELS, HIDDEN = 8, 64, 64  # of the generated graph; of both, features inside


def communities(n, degree, generator):
    """Nodes of some classes, of which edges stay mostly inside; features that tell the class a little."""
    label = torch.randint(0, CLASSES, (n,), generator=generator)
    order = label.argsort()
    place = torch.empty_like(order)
    place[order] = torch.arange(n)
    send = torch.randint(0, n, (n * degree,), generator=generator)
    near = order[(place[send] + torch.randint(-n // 20, n // 20, (n * degree,), generator=generator)) % n]
    x = torch.randn(n, CHANNELS, generator=generator)
    x[torch.arange(n), label] += 1
    part = torch.rand(n, generator=generator)
    return x, torch.stack([send, near]), label, part < 0.5, part >= 0.5


def cora(folder):
    """The citation graph: features of each paper sum to 1."""
    graph, z = np.load(folder / "cora.npz"), np.load(folder / "cora-features.npz")
    shape = tuple(z["shape"])
    x = torch.sparse_csr_tensor(*(torch.from_numpy(z[k].astype(t)) for k, t in
                                  (("indptr", "i8"), ("indices", "i8"), ("data", "f4"))), shape).to_dense()
    index = torch.from_numpy(np.stack([graph["col"], graph["row"]]).astype(np.int64))
    split = torch.from_numpy(z["split"].astype(np.int64))
    return (x / x.sum(1, keepdim=True).clamp(min=1), index, torch.from_numpy(z["label"].astype(np.int64)), split == 1,
            split == 3)


def neighbourhood(index, n, among, size, generator):
    """Some of the nodes, those that send to them, and the edges between, numbered anew."""
    seeds = among[torch.randperm(len(among), generator=generator)[:size]]
    here = torch.zeros(n, dtype=torch.bool)
    here[seeds] = True
    here[index[0][here[index[1]]]] = True
    nodes = here.nonzero().flatten()
    number = torch.full((n,), -1)
    number[nodes] = torch.arange(len(nodes))
    kept = index[:, here[index[0]] & here[index[1]]]
    return nodes, number[kept], number[seeds]


class Sage(torch.nn.Module):
    def __init__(self, conv, channels, classes):
        super().__init__()
        self.a, self.b = conv(channels, HIDDEN), conv(HIDDEN, classes)

    def forward(self, x, index):
        return self.b(self.a(x, index).relu(), index)


def train(name, conv, data, args):
    """Losses, and the accuracy on the nodes that were left out."""
    x, index, label, train, test = data
    torch.manual_seed(0)
    model = Sage(conv, x.shape[1], int(label.max()) + 1)
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    batches = torch.Generator().manual_seed(1)
    among = train.nonzero().flatten()
    losses, times, peak = [], [], Peak()
    for step in range(args.steps):
        nodes, edges, seeds = slice(None), index, among
        if args.minibatch:
            nodes, edges, seeds = neighbourhood(index, len(x), among, max(len(among) // 10, 1), batches)
        begin = time.perf_counter()
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x[nodes], edges)[seeds], label[nodes][seeds])
        loss.backward()
        optimizer.step()
        times.append(time.perf_counter() - begin)
        losses.append(loss.item())
        progress(name, step + 1, args.steps, losses[-1])
    with torch.no_grad():
        right = (model(x, index).argmax(1) == label)[test].float().mean().item()
    print(f"{name:5} {1e3 * statistics.median(times):8.2f} ms a step  loss {losses[0]:.4f} -> {losses[-1]:.4f}"
          f"  test accuracy {right:.4f}  {peak}")
    return losses, right


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=20000)
    parser.add_argument("--degree", type=int, default=8)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--minibatch", action="store_true")
    parser.add_argument("--data", type=Path)
    args = parser.parse_args()
    data = cora(args.data) if args.data else communities(args.nodes, args.degree, torch.Generator().manual_seed(0))
    ours, right = train("weft", nn.SAGEConv, data, args)
    if pyg is None:
        print("PyTorch Geometric is not installed: pip install torch_geometric")
        return
    theirs, other = train("PyG", pyg.SAGEConv, data, args)
    print(f"largest difference of losses {max(abs(a - b) for a, b in zip(ours, theirs)):.1e}, of accuracy "
          f"{abs(right - other):.1e}")


if __name__ == "__main__":
    main()
