#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""A pruned encoder of BERT's size: weights of linear layers in blocks, of which one in eight is left.  The same
model stock and after weft.accelerate: outputs, time of inference and of training steps, losses, peak memory.

    python examples/pruned.py                        # 12 layers, 768 features, 512 tokens
    python examples/pruned.py --layers 2 --block 32 --density 0.25
"""

import argparse
import copy
import resource
import statistics
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

import weft


class Layer(nn.Module):
    def __init__(self, width, heads, inner):
        super().__init__()
        self.heads = heads
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, inner), nn.Linear(inner, width)

    def forward(self, x):
        q, k, v = self.qkv(self.first(x)).unflatten(-1, (3, self.heads, -1)).movedim(-3, 0).transpose(-2, -3)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v).transpose(-2, -3).flatten(-2))
        return x + self.down(F.gelu(self.up(self.second(x))))


def prune(model, block, density, seed):
    """Sets blocks of the linear layers to 0."""
    generator = torch.Generator().manual_seed(seed)
    for module in model.modules():
        if isinstance(module, nn.Linear):
            rows, columns = (n // block for n in module.weight.shape)
            keep = torch.rand(rows, columns, generator=generator) < density
            with torch.no_grad():
                module.weight *= torch.kron(keep, torch.ones(block, block))


def bar(done, of, text):
    if sys.stderr.isatty():
        width = 30 * done // of
        print(f"\r[{'#' * width}{'.' * (30 - width)}] {text:<40}", end="\n" if done == of else "", file=sys.stderr)


def turns(models, call, rounds, text):
    """Median seconds of each, in turns."""
    times = [[] for _ in models]
    for r in range(rounds + 1):  # the first one compiles
        for model, out in zip(models, times):
            begin = time.perf_counter()
            call(model)
            out.append(time.perf_counter() - begin)
        bar(r + 1, rounds + 1, text)
    return [statistics.median(t[1:]) for t in times]


def step(model, optimizers, x, target, losses):
    """A training step; pruned entries stay 0, as their gradients are masked."""
    optimizer = optimizers[model]
    optimizer.zero_grad()
    loss = F.mse_loss(model(x), target)
    loss.backward()
    for module in model.modules():
        if isinstance(module, nn.Linear):
            module.weight.grad *= module.weight != 0
    optimizer.step()
    losses[model].append(loss.item())


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    for name, value in dict(layers=12, width=768, heads=12, inner=3072, tokens=512, block=16, rounds=5, steps=3,
                            threads=torch.get_num_threads()).items():
        p.add_argument("--" + name, type=int, default=value)
    p.add_argument("--density", type=float, default=1 / 8)
    o = p.parse_args()
    torch.set_num_threads(o.threads)
    torch.manual_seed(0)
    stock = nn.Sequential(*[Layer(o.width, o.heads, o.inner) for _ in range(o.layers)])
    prune(stock, o.block, o.density, 1)
    fast = copy.deepcopy(stock)
    report = weft.accelerate(fast)
    print(str(report).split("\n")[0])
    x, target = torch.randn(1, o.tokens, o.width), torch.randn(1, o.tokens, o.width)
    with torch.no_grad():
        a, b = stock(x), fast(x)
        print(f"largest difference {(a - b).abs().max():.2e} of {a.abs().max():.2f}")
        before, after = turns([stock, fast], lambda m: m(x), o.rounds, "inference")
    print(f"inference     {before * 1e3:8.1f} ms stock  {after * 1e3:8.1f} ms Weft  {before / after:5.2f}x")
    optimizers = {m: torch.optim.SGD(m.parameters(), 1e-2) for m in (stock, fast)}
    losses = {stock: [], fast: []}
    before, after = turns([stock, fast], lambda m: step(m, optimizers, x, target, losses), o.steps, "training")
    print(f"training step {before * 1e3:8.1f} ms stock  {after * 1e3:8.1f} ms Weft  {before / after:5.2f}x")
    for s, f in zip(losses[stock], losses[fast]):
        print(f"loss          {s:.6f} stock  {f:.6f} Weft")
    print(f"peak memory   {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB, both models")


if __name__ == "__main__":
    main()
