# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""A relational graph convolution network on a knowledge graph, generated or from a file: inference and training,
with weft.nn and, where it is installed, with PyTorch Geometric: the same results, time and peak memory side by side.
Usage: python examples/rgcn.py [--nodes 5000] [--relations 40] [--edges 30000] [--steps 10] [--data FILE]
--data: an .npz with n, nrel, head, rel, tail; each relation then has its reverse as one more."""

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

CLASSES, CHANNELS = 4, 32


class Net(torch.nn.Module):
    def __init__(self, conv, relations):
        super().__init__()
        self.a, self.b = conv(CHANNELS, CHANNELS, relations), conv(CHANNELS, CLASSES, relations)

    def forward(self, x, index, types):
        return self.b(self.a(x, index, types).relu(), index, types)


def generated(args, g):
    label = torch.randint(0, CLASSES, (args.nodes,), generator=g)
    index = torch.randint(0, args.nodes, (2, args.edges), generator=g)
    types = (torch.randint(0, args.relations, (args.edges,), generator=g) + label[index[0]]) % args.relations
    return args.nodes, args.relations, index, types, label


def triples(path, g):
    """Labels are drawn: the files have none."""
    z = np.load(path)
    n, relations = int(z["n"]), int(z["nrel"])
    index = torch.from_numpy(np.stack([z["head"], z["tail"]]).astype(np.int64))
    types = torch.from_numpy(z["rel"].astype(np.int64))
    return (n, 2 * relations, torch.cat([index, index.flip(0)], 1), torch.cat([types, types + relations]),
            torch.randint(0, CLASSES, (n,), generator=g))


def run(name, conv, data, relations, args):
    x, index, types, label = data
    torch.manual_seed(0)
    model, peak = Net(conv, relations), Peak()
    with torch.no_grad():
        first = model(x, index, types)
        inference = []
        for _ in range(args.steps):
            begin = time.perf_counter()
            model(x, index, types)
            inference.append(time.perf_counter() - begin)
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    losses, times = [], []
    for step in range(args.steps):
        begin = time.perf_counter()
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x, index, types), label)
        loss.backward()
        optimizer.step()
        times.append(time.perf_counter() - begin)
        losses.append(loss.item())
        progress(name, step + 1, args.steps, losses[-1])
    print(f"{name:5} inference {1e3 * statistics.median(inference):8.2f} ms  training step "
          f"{1e3 * statistics.median(times):8.2f} ms"
          f"  loss {losses[0]:.4f} -> {losses[-1]:.4f}  {peak}")
    return first, losses


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--relations", type=int, default=40)
    parser.add_argument("--edges", type=int, default=30000)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--data", type=Path)
    args = parser.parse_args()
    g = torch.Generator().manual_seed(0)
    n, relations, index, types, label = triples(args.data, g) if args.data else generated(args, g)
    data = (torch.randn(n, CHANNELS, generator=g), index, types, label)
    first, losses = run("weft", nn.RGCNConv, data, relations, args)
    if pyg is None:
        print("PyTorch Geometric is not installed: pip install torch_geometric")
        return
    other, theirs = run("PyG", pyg.RGCNConv, data, relations, args)
    print(f"largest difference of results {float((first - other).abs().max()):.1e}, of losses "
          f"{max(abs(a - b) for a, b in zip(losses, theirs)):.1e}")


if __name__ == "__main__":
    main()
