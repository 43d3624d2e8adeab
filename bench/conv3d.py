#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""Sparse convolution of a point cloud, 3 x 3 x 3, submanifold, f32: weft.conv3d by name, untuned, beside
gather, matmul and scatter in torch over the same pairs, and spconv's CPU path where it is installed (forward
alone: its backward asks torch for CUDA).  Kernel
maps beside NumPy's sort: keys of all places, np.unique, np.searchsorted for each offset.  All contenders run in
turns in one process, results are compared first; figures are medians in ms, and ratios peer / Weft.

    .venv/bin/python bench/conv3d.py --points cloud.npz --threads 1,2

Points: an .npz whose first array is (n, 3) positions in metres; without it a scene is generated.
"""

import argparse
import time

import numpy as np
import torch

import weft

try:
    import spconv.pytorch as spconv
except Exception:  # missing, or not for this version of torch
    spconv = None


def options():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    numbers = lambda s: [int(w) for w in s.split(",")]
    p.add_argument("--points", help="an .npz of positions")
    p.add_argument("--voxel", type=float, default=0.1, help="size of a voxel")
    p.add_argument("--channels", type=numbers, default=[32, 64, 128])
    p.add_argument("--threads", type=numbers, default=[1, 2])
    p.add_argument("--turns", type=int, default=9)
    p.add_argument("--cpu", action="store_true", help="CPU time of the process, not wall time")
    return p.parse_args()


def scene(n=200_000, seed=0):
    """A plain with hills and walls, as a sensor on a car sees them: dense near by, sparse far away."""
    rng = np.random.default_rng(seed)
    r, a = 3 + 60 * rng.random(n) ** 2, 2 * np.pi * rng.random(n)
    x, y = r * np.cos(a), r * np.sin(a)
    z = 0.3 * np.sin(x / 7) * np.cos(y / 9) + np.where(rng.random(n) < 0.4, 4 * rng.random(n), 0)
    return np.stack([x, y, z], 1)


def voxels(o):
    points = np.load(o.points) if o.points else None
    points = scene() if points is None else points[points.files[0]][:, :3].astype(float)
    places = np.floor(points / o.voxel).astype(np.int64)
    places = np.unique(places - places.min(0), axis=0)
    return np.concatenate([np.zeros((len(places), 1), np.int32), places.astype(np.int32)], 1)


def sorted_map(coords):
    """All pairs by offset, with NumPy."""
    size = coords[:, 1:].max(0).astype(np.int64) + 3
    flat = lambda c: ((c[..., 0] + 1) * size[1] + c[..., 1] + 1) * size[2] + c[..., 2] + 1
    key, number = np.unique(flat(coords[:, 1:].astype(np.int64)), return_index=True)
    mine, pairs = flat(coords[:, 1:].astype(np.int64)), []
    for z, y, x in np.ndindex(3, 3, 3):
        wanted = mine + ((z - 1) * size[1] + y - 1) * size[2] + x - 1
        at = np.minimum(np.searchsorted(key, wanted), len(key) - 1)
        out = np.nonzero(key[at] == wanted)[0]
        pairs.append((number[at[out]], out))
    return pairs


def by_torch(x, w, pairs):
    y = x.new_zeros(len(x), w.shape[0])
    for d, (i, o) in enumerate(pairs):
        y.index_add_(0, o, x.index_select(0, i) @ w[:, d].T)
    return y


def back_by_torch(x, w, dy, pairs):
    dx, dw = torch.zeros_like(x), torch.empty_like(w)
    for d, (i, o) in enumerate(pairs):
        g = dy.index_select(0, o)
        dx.index_add_(0, i, g @ w[:, d])
        dw[:, d] = g.T @ x.index_select(0, i)
    return dx, dw


def turns(contenders, o):
    """Medians in ms of all, in turns."""
    clock = time.process_time if o.cpu else time.perf_counter
    times = {name: [] for name in contenders}
    for _ in range(o.turns):
        for name, run in contenders.items():
            start = clock()
            run()
            times[name].append(1e3 * (clock() - start))
    return {name: float(np.median(t)) for name, t in times.items()}


def tell(what, threads, ms):
    ours = ms["weft"]
    rest = "  ".join(f"{n} {t:8.1f} ({t / ours:5.2f}x)" for n, t in ms.items() if n != "weft")
    print(f"{what:22} {threads} threads  weft {ours:8.1f}  {rest}", flush=True)


def maps(coords, threads, o):
    ours, theirs = weft.kernel_map(coords, 3).table(), sorted_map(coords)
    ours = ours[np.lexsort((ours[:, 2], ours[:, 0]))]
    want = np.concatenate([np.stack([np.full(len(i), d), i, p], 1) for d, (i, p) in enumerate(theirs)])
    assert np.array_equal(ours, want)
    tell("kernel map", threads, turns({"weft": lambda: weft.kernel_map(coords, 3),
                                       "numpy": lambda: sorted_map(coords)}, o))


def peer(x, w, coords, c):
    """spconv's layer, its map made before, and a tensor for it."""
    layer = spconv.SubMConv3d(c, c, 3, bias=False, indice_key="k")
    layer.weight.data.copy_(w.detach().reshape(c, 3, 3, 3, c))
    start = spconv.SparseConvTensor(x, torch.from_numpy(coords), (coords[:, 1:].max(0) + 1).tolist(), 1)
    layer(start)
    return layer, start


def convolutions(coords, c, threads, o):
    m = weft.kernel_map(coords, 3)
    pairs = [(torch.from_numpy(i), torch.from_numpy(p)) for i, p in sorted_map(coords)]
    x = torch.randn(len(coords), c).requires_grad_()
    w = (torch.randn(c, 27, c) / (6 * c) ** 0.5).requires_grad_()
    dy = torch.randn(len(coords), c)
    with torch.no_grad():
        want, y = by_torch(x, w, pairs), weft.conv3d(x, w, m)
        assert (y - want).abs().max() < 1e-5 * want.abs().max()
        runs = {"weft": lambda: weft.conv3d(x, w, m), "torch": lambda: by_torch(x, w, pairs)}
        if spconv is not None:
            layer, start = peer(x.detach(), w, coords, c)
            wrong = ((layer(start).features - want).abs().max() / want.abs().max()).item()
            if wrong > 1e-4:  # seen with two threads
                print(f"spconv's result differs by {wrong:.1e} of the largest element")
            runs["spconv"] = lambda: layer(start)
        tell(f"forward C = {c}", threads, turns(runs, o))
    y = weft.conv3d(x, w, m)
    runs = {"weft": lambda: torch.autograd.grad(y, (x, w), dy, retain_graph=True),
            "torch": lambda: back_by_torch(x.detach(), w.detach(), dy, pairs)}
    for a, b in zip(runs["weft"](), runs["torch"]()):
        assert (a - b).abs().max() < 1e-4 * b.abs().max()
    tell(f"backward C = {c}", threads, turns(runs, o))


def main():
    o = options()
    torch.manual_seed(0)
    coords = voxels(o)
    print(weft.kernel_map(coords, 3), "" if spconv else "; spconv is not installed")
    for threads in o.threads:
        torch.set_num_threads(threads)
        weft.set_threads(threads)
        maps(coords, threads, o)
        for c in o.channels:
            convolutions(coords, c, threads, o)


if __name__ == "__main__":
    main()
