# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""Trains an encoder layer with the attention of Longformer, a band and a global token, by Weft and by torch with
a dense mask: the same data, the same first weights, both losses and times in one run.

The task is made up: the class of a sequence is that of a marked token far from the first one, so it has to
travel to the global token.

Usage: python examples/longformer.py [--tokens 2048] [--steps 20]"""

import argparse
import copy
import resource
import sys
import time

import torch
import weft
from torch import nn
from weft import masks


class Dense(nn.Module):
    """torch's own layer, called with a dense mask."""

    def __init__(self, dim, heads, mask):
        super().__init__()
        self.layer = nn.MultiheadAttention(dim, heads, batch_first=True)
        self.register_buffer("hidden", ~torch.from_numpy(mask.to_dense()))

    def forward(self, x):
        return self.layer(x, x, x, attn_mask=self.hidden, need_weights=False)[0]


class Encoder(nn.Module):
    def __init__(self, vocabulary, tokens, dim, attention):
        super().__init__()
        self.embed, self.place = nn.Embedding(vocabulary, dim), nn.Parameter(torch.randn(tokens, dim) * 0.02)
        self.attention, self.first, self.second = attention, nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))
        self.out = nn.Linear(dim, 4)

    def forward(self, ids):
        x = self.embed(ids) + self.place
        x = x + self.attention(self.first(x))
        x = x + self.mlp(self.second(x))
        return self.out(x[:, 0])


def batch(size, tokens, step):
    """Tokens 8 and up are noise; one of 4 to 7 stands somewhere, and its number is the class."""
    torch.manual_seed(1000 + step)
    ids, classes = torch.randint(8, 64, (size, tokens)), torch.randint(4, (size,))
    ids[torch.arange(size), torch.randint(1, tokens, (size,))] = 4 + classes
    ids[:, 0] = 0
    return ids, classes


def train(name, model, args):
    """The losses, and seconds of the steps after the first, which compiles."""
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    losses, times = [], []
    for step in range(args.steps):
        ids, classes = batch(args.batch, args.tokens, step)
        begin = time.perf_counter()
        loss = nn.functional.cross_entropy(model(ids), classes)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        times.append(time.perf_counter() - begin)
        losses.append(float(loss.detach()))
        done = 30 * (step + 1) // args.steps
        print(f"\r{name:6} [{'#' * done:30}] step {step + 1}, loss {losses[-1]:.4f}", end="", file=sys.stderr)
    print(file=sys.stderr)
    return losses, sorted(times[1:] or times)[len(times[1:]) // 2]


def main():
    parse = argparse.ArgumentParser()
    for option, value in (("tokens", 2048), ("window", 128), ("dim", 256), ("heads", 4), ("batch", 2), ("steps", 20)):
        parse.add_argument(f"--{option}", type=int, default=value)
    args = parse.parse_args()
    mask = masks.longformer(args.tokens, args.window, 1)
    torch.manual_seed(0)
    ours = Encoder(64, args.tokens, args.dim, weft.nn.SparseAttention(args.dim, args.heads, mask))
    theirs = copy.deepcopy(ours)
    theirs.attention = Dense(args.dim, args.heads, mask)
    theirs.attention.layer.load_state_dict(ours.attention.state_dict())
    peak = {}
    result = {}
    for name, model in (("weft", ours), ("torch", theirs)):  # the peak of a process only grows: weft is first
        result[name] = train(name, model, args)
        peak[name] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{args.tokens} tokens, window {args.window}, {mask.nnz / args.tokens ** 2:.1%} of all pairs")
    for name, (losses, seconds) in result.items():
        print(f"{name:6} loss {losses[0]:.4f} -> {losses[-1]:.4f}   {1e3 * seconds:8.1f} ms a step   "
              f"peak {peak[name]:.0f} MB")
    apart = max(abs(a - b) for a, b in zip(result["weft"][0], result["torch"][0]))
    print(f"losses differ by {apart:.1e} at most")
    return 0 if apart < 1e-2 else 1


if __name__ == "__main__":
    sys.exit(main())
