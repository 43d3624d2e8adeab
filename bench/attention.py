# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""Attention over a band and over a butterfly of blocks, beside torch: compiled FlexAttention, SDPA with a dense
mask, and a loop over rows of blocks.  Forward, and forward with backward (FlexAttention has none on CPUs).
All in one process and in turns; medians of CPU time with one thread, of wall time with several.

Usage: python bench/attention.py [--threads 1] [--tokens 4096] [--heads 12] [--dim 64] [--repeats 7]
                                 [--masks band,butterfly]"""

import argparse
import time

import numpy as np
import torch
import torch.nn.functional as F
import weft
from weft import masks


def rows_of_blocks(q, k, v, block, columns, cuts):
    """Each block of queries with the keys of its blocks; cuts: the dense mask of those keys, or None."""
    out = []
    for a, (cols, cut) in enumerate(zip(columns, cuts)):
        at = slice(cols[0] * block, (cols[-1] + 1) * block)
        if len(cols) == cols[-1] - cols[0] + 1:
            keys, values = k[..., at, :], v[..., at, :]
        else:
            keys, values = (torch.cat([x[..., c * block:(c + 1) * block, :] for c in cols], -2) for x in (k, v))
        s = q[..., a * block:(a + 1) * block, :] @ keys.transpose(-1, -2) * q.shape[-1] ** -0.5
        if cut is not None:
            s = s.masked_fill(cut, -torch.inf)
        out.append(torch.softmax(s, -1) @ values)
    return torch.cat(out, -2)


def problem(name, n):
    i = torch.arange(n)
    if name == "band":
        return masks.band(n, 256), lambda b, h, i, j: (i - j).abs() <= 256, (i[:, None] - i).abs() <= 256

    def pair(b, h, i, j):
        x = (i // 64) ^ (j // 64)
        return (x & (x - 1)) == 0

    return masks.butterfly(n), pair, pair(0, 0, i[:, None], i)


def peers(name, n, q, k, v):
    """Functions of q, k, v: by name, and whether they have a backward."""
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    mask, pair, dense = problem(name, n)
    blocks = dense.view(n // 64, 64, n // 64, 64)
    there, whole = blocks.any(3).any(1), blocks.all(3).all(1)
    columns = [torch.nonzero(row).flatten().tolist() for row in there]
    cuts = [None if whole[a][cols].all() else ~blocks[a][:, cols].flatten(1) for a, cols in enumerate(columns)]
    flex, flex_mask = torch.compile(flex_attention), create_block_mask(pair, None, None, n, n, device="cpu")
    return {
        "weft": (lambda q, k, v: weft.attention(q, k, v, mask), True),
        "flex": (lambda q, k, v: flex(q, k, v, block_mask=flex_mask), False),
        "rows": (lambda q, k, v: rows_of_blocks(q, k, v, 64, columns, cuts), True),
        "sdpa": (lambda q, k, v: F.scaled_dot_product_attention(q, k, v, attn_mask=dense), True),
    }


def turns(runs, repeats, clock):
    """Medians, each run once in every turn."""
    times = {name: [] for name in runs}
    for name, run in runs.items():
        run()
    for _ in range(repeats):
        for name, run in runs.items():
            begin = clock()
            run()
            times[name].append(clock() - begin)
    return {name: float(np.median(t)) for name, t in times.items()}


def report(what, times):
    for name, t in times.items():
        print(f"{what:24} {name:5} {1e3 * t:9.1f} ms   {t / times['weft']:6.2f} x weft", flush=True)


def main():
    parse = argparse.ArgumentParser()
    for option, value in (("threads", 1), ("tokens", 4096), ("heads", 12), ("dim", 64), ("repeats", 7)):
        parse.add_argument(f"--{option}", type=int, default=value)
    parse.add_argument("--masks", default="band,butterfly")
    args = parse.parse_args()
    torch.set_num_threads(args.threads)
    clock = time.process_time if args.threads == 1 else time.perf_counter
    torch.manual_seed(0)
    q, k, v = (torch.randn(1, args.heads, args.tokens, args.dim) for _ in range(3))
    g = torch.randn_like(q)
    print(f"torch {torch.__version__}, {args.threads} threads, {args.tokens} x {args.heads} x {args.dim}, f32")
    for name in args.masks.split(","):
        of = peers(name, args.tokens, q, k, v)
        with torch.no_grad():
            want = of["sdpa"][0](q, k, v)
            for peer, (f, _) in of.items():
                torch.testing.assert_close(f(q, k, v), want, rtol=1e-4, atol=1e-5, msg=lambda m: f"{peer}: {m}")
            report(f"{name}, forward", turns({p: lambda f=f: f(q, k, v) for p, (f, _) in of.items()},
                                             args.repeats, clock))
        x = [t.clone().requires_grad_() for t in (q, k, v)]
        report(f"{name}, with backward", turns(
            {p: lambda f=f: torch.autograd.grad(f(*x), x, g) for p, (f, has) in of.items() if has},
            max(3, args.repeats // 2), clock))


if __name__ == "__main__":
    main()
