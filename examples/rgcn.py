# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""A relational graph convolution network on a generated knowledge graph: inference and training, with weft.nn
and, where it is installed, with PyTorch Geometric: the same results, time and peak memory side by side.
Usage: python examples/rgcn.py [--nodes 5000] [--relations 40] [--edges 30000] [--steps 10]"""

import argparse
import resource
import sys
import time

import torch

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


def memory():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def run(name, conv, data, args):
    x, index, types, label = data
    torch.manual_seed(0)
    model = Net(conv, args.relations)
    with torch.no_grad():
        first = model(x, index, types)
        begin = time.perf_counter()
        for _ in range(args.steps):
            model(x, index, types)
        inference = (time.perf_counter() - begin) / args.steps
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    losses, spent = [], 0.0
    for step in range(args.steps):
        begin = time.perf_counter()
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x, index, types), label)
        loss.backward()
        optimizer.step()
        spent += (time.perf_counter() - begin) * (step > 0)  # the first one compiles
        losses.append(float(loss))
        bar = "#" * (30 * (step + 1) // args.steps)
        print(f"\r{name:5} [{bar:30}] {step + 1}/{args.steps}  loss {losses[-1]:.5f}", end="", file=sys.stderr)
    print(file=sys.stderr)
    print(f"{name:5} inference {1e3 * inference:8.2f} ms  training step {1e3 * spent / max(args.steps - 1, 1):8.2f} ms"
          f"  loss {losses[0]:.4f} -> {losses[-1]:.4f}  peak memory of the process so far {memory():.0f} MB")
    return first, losses


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--relations", type=int, default=40)
    parser.add_argument("--edges", type=int, default=30000)
    parser.add_argument("--steps", type=int, default=10)
    args = parser.parse_args()
    g = torch.Generator().manual_seed(0)
    label = torch.randint(0, CLASSES, (args.nodes,), generator=g)
    index = torch.randint(0, args.nodes, (2, args.edges), generator=g)
    types = (torch.randint(0, args.relations, (args.edges,), generator=g) + label[index[0]]) % args.relations
    x = torch.randn(args.nodes, CHANNELS, generator=g)
    first, losses = run("weft", nn.RGCNConv, (x, index, types, label), args)
    if pyg is None:
        print("PyTorch Geometric is not installed: pip install torch_geometric")
        return
    other, theirs = run("PyG", pyg.RGCNConv, (x, index, types, label), args)
    print(f"largest difference of results {float((first - other).abs().max()):.1e}, of losses "
          f"{max(abs(a - b) for a, b in zip(losses, theirs)):.1e}")


if __name__ == "__main__":
    main()
