# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""Trains GraphSAGE on a generated graph of communities, with weft.nn and, where it is installed, with PyTorch
Geometric: the same loss, time and peak memory side by side.
Usage: python examples/graphsage.py [--nodes 20000] [--degree 8] [--steps 20] [--minibatch]
--minibatch: every step takes a new graph, the neighbourhood of some nodes."""

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

CLASSES, CHANNELS, HIDDEN = 8, 64, 64


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
    return x, torch.stack([send, near]), label


def neighbourhood(index, n, size, generator):
    """Some nodes, those that send to them, and the edges between, numbered anew."""
    seeds = torch.randperm(n, generator=generator)[:size]
    here = torch.zeros(n, dtype=torch.bool)
    here[seeds] = True
    here[index[0][here[index[1]]]] = True
    nodes = here.nonzero().flatten()
    number = torch.full((n,), -1)
    number[nodes] = torch.arange(len(nodes))
    kept = index[:, here[index[0]] & here[index[1]]]
    return nodes, number[kept], number[seeds]


class Sage(torch.nn.Module):
    def __init__(self, conv):
        super().__init__()
        self.a, self.b = conv(CHANNELS, HIDDEN), conv(HIDDEN, CLASSES)

    def forward(self, x, index):
        return self.b(self.a(x, index).relu(), index)


def progress(name, step, steps, loss):
    bar = "#" * (30 * step // steps)
    print(f"\r{name:5} [{bar:30}] {step}/{steps}  loss {loss:.5f}", end="", file=sys.stderr, flush=True)


def train(name, conv, data, args):
    x, index, label = data
    torch.manual_seed(0)
    model = Sage(conv)
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    batches = torch.Generator().manual_seed(1)
    losses, spent = [], 0.0
    for step in range(args.steps):
        nodes, edges, seeds = slice(None), index, slice(None)
        if args.minibatch:
            nodes, edges, seeds = neighbourhood(index, len(x), max(len(x) // 20, 1), batches)
        begin = time.perf_counter()
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x[nodes], edges)[seeds], label[nodes][seeds])
        loss.backward()
        optimizer.step()
        spent += (time.perf_counter() - begin) * (step > 0)  # the first one compiles
        losses.append(float(loss))
        progress(name, step + 1, args.steps, losses[-1])
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(file=sys.stderr)
    print(f"{name:5} {1e3 * spent / max(args.steps - 1, 1):8.2f} ms a step  loss {losses[0]:.4f} -> {losses[-1]:.4f}"
          f"  peak memory of the process so far {memory:.0f} MB")
    return losses


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=20000)
    parser.add_argument("--degree", type=int, default=8)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--minibatch", action="store_true")
    args = parser.parse_args()
    data = communities(args.nodes, args.degree, torch.Generator().manual_seed(0))
    ours = train("weft", nn.SAGEConv, data, args)
    if pyg is None:
        print("PyTorch Geometric is not installed: pip install torch_geometric")
        return
    theirs = train("PyG", pyg.SAGEConv, data, args)
    print(f"largest difference of losses {max(abs(a - b) for a, b in zip(ours, theirs)):.1e}")


if __name__ == "__main__":
    main()
