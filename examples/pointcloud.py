#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""Segmentation of point clouds by a small U-Net of sparse convolutions (submanifold, strided, inverse), trained
on generated scenes: a ground, boxes, spheres and poles, a class for each voxel.  The same network, with the
same first weights, is trained three times on the same scenes: by weft.nn, by gather, matmul and scatter in
torch over the same pairs, and by spconv where it is installed and can train.  Printed are losses, accuracy on
a scene that was not trained on, seconds for each step (kernel maps included) and peak memory.

    python examples/pointcloud.py --steps 30
"""

import argparse
import resource
import sys
import time

import numpy as np
import torch
from torch import nn

import weft
import weft.nn

CLASSES, SIZE = 4, 48  # ground, box, sphere, pole; places of the grid along each side


def scene(seed, points=20_000):
    """Voxels (n, 4) and their classes."""
    rng = np.random.default_rng(seed)
    parts = []
    ground = rng.random((points // 2, 3)) * (SIZE, SIZE, 1.5)
    parts.append((ground, 0))
    for _ in range(6):
        low, size = rng.random(3) * (SIZE - 12, SIZE - 12, 4), 4 + 6 * rng.random(3)
        box = rng.random((points // 20, 3))
        box[np.arange(len(box)), rng.integers(0, 3, len(box))] = rng.integers(0, 2, len(box))
        parts.append((low + size * box, 1))
        way = rng.standard_normal((points // 20, 3))
        middle = 8 + rng.random(3) * (SIZE - 16, SIZE - 16, 10)
        parts.append((middle + (2 + 3 * rng.random()) * way / np.linalg.norm(way, axis=1, keepdims=True), 2))
        pole = rng.random((points // 60, 3)) * (0.8, 0.8, 20) + rng.random(3) * (SIZE - 2, SIZE - 2, 0)
        parts.append((pole, 3))
    place = np.concatenate([p for p, _ in parts])
    kind = np.concatenate([np.full(len(p), c) for p, c in parts])
    place = np.clip(np.floor(place), 0, SIZE - 1).astype(np.int32)
    place, first = np.unique(place, axis=0, return_index=True)
    return place, kind[first]


def batch(seeds):
    """Several scenes: indices with the batch index, features (height and ones), classes."""
    scenes = [scene(s) for s in seeds]
    indices = np.concatenate([np.insert(p, 0, i, axis=1) for i, (p, _) in enumerate(scenes)]).astype(np.int32)
    height = indices[:, 3:].astype(np.float32) / SIZE
    features = np.concatenate([height, np.ones_like(height)], 1)
    kinds = np.concatenate([k for _, k in scenes])
    return torch.from_numpy(indices), torch.from_numpy(features), torch.from_numpy(kinds)


class GatherConv(nn.Module):
    """A layer of weft.nn with its product written in torch: gather, matmul, scatter for each offset."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, input):
        m, w = self.layer._map(input), self.layer.weight.flatten(1, 3)
        pairs = getattr(m, "by_offset", None)
        if pairs is None:  # once for each map
            table = torch.from_numpy(m.table()).long()
            table = table[table[:, 0].argsort(stable=True)]
            pairs = m.by_offset = table[:, 1:].split(torch.bincount(table[:, 0], minlength=m.offsets).tolist())
        y = input.features.new_zeros(m.n_out, w.shape[0])
        for d, p in enumerate(pairs):
            y = y.index_add(0, p[:, 1], input.features.index_select(0, p[:, 0]) @ w[:, d].T)
        return weft.nn.SparseConvTensor(y + self.layer.bias, m.coords, m.shape or input.spatial_shape,
                                        input.batch_size, indice_dict=input.indice_dict)


class UNet(nn.Module):
    """Two levels.  of: the module that has the layers, weft.nn or spconv.pytorch."""

    def __init__(self, of, wide):
        super().__init__()
        self.first = of.SubMConv3d(2, wide, 3, indice_key="fine")
        self.fine = of.SubMConv3d(wide, wide, 3, indice_key="fine")
        self.down = of.SparseConv3d(wide, 2 * wide, 2, 2, indice_key="down")
        self.coarse = of.SubMConv3d(2 * wide, 2 * wide, 3, indice_key="coarse")
        self.up = of.SparseInverseConv3d(2 * wide, wide, 2, indice_key="down")
        self.last = of.SubMConv3d(2 * wide, wide, 3, indice_key="fine")
        self.classes = nn.Linear(wide, CLASSES)

    def forward(self, x):
        then = lambda layer, t: (lambda out: out.replace_feature(torch.relu(out.features)))(layer(t))
        fine = then(self.fine, then(self.first, x))
        up = then(self.up, then(self.coarse, then(self.down, fine)))
        both = up.replace_feature(torch.cat([fine.features, up.features], 1))
        return self.classes(then(self.last, both).features)


def bar(name, done, of, loss):
    if sys.stderr.isatty() or done == of:
        fill = "#" * (30 * done // of)
        print(f"\r{name:7} [{fill:30}] {done}/{of}  loss {loss:.4f}", end="\n" if done == of else "", file=sys.stderr)


def memory(begin=False):
    """The peak of the process in MB, from where this was last called with begin=True if Linux allows that."""
    try:
        if begin:
            with open("/proc/self/clear_refs", "w") as f:
                f.write("5")
        with open("/proc/self/status") as f:
            return next(int(line.split()[1]) for line in f if line.startswith("VmHWM")) / 1024
    except (OSError, StopIteration):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def train(name, net, tensor, o):
    """Losses by step, accuracy on another scene, and the median of a step in seconds."""
    adam, losses, times = torch.optim.Adam(net.parameters(), 3e-3), [], []
    for step in range(o.steps):
        indices, features, kinds = batch(range(2 * step, 2 * step + 2))
        start = time.perf_counter()
        loss = nn.functional.cross_entropy(net(tensor(features, indices, [SIZE] * 3, 2)), kinds)
        adam.zero_grad()
        loss.backward()
        adam.step()
        times.append(time.perf_counter() - start)
        losses.append(loss.item())
        bar(name, step + 1, o.steps, losses[-1])
    indices, features, kinds = batch([10 ** 6, 10 ** 6 + 1])
    with torch.no_grad():
        right = (net(tensor(features, indices, [SIZE] * 3, 2)).argmax(1) == kinds).float().mean().item()
    return losses, right, float(np.median(times[1:] or times))


def contenders(o):
    """By name: a network with the first weights, and the class of its tensors."""
    torch.manual_seed(0)
    ours = UNet(weft.nn, o.wide)
    state = {k: v.clone() for k, v in ours.state_dict().items()}
    plain = UNet(weft.nn, o.wide)
    plain.load_state_dict(state)
    for name, layer in list(plain.named_children()):
        if name != "classes":
            setattr(plain, name, GatherConv(layer))
    out = {"weft": (ours, weft.nn.SparseConvTensor), "torch": (plain, weft.nn.SparseConvTensor)}
    try:
        import spconv.pytorch as spconv

        theirs = UNet(spconv, o.wide)
        theirs.load_state_dict(state)
        out["spconv"] = (theirs, spconv.SparseConvTensor)
    except ImportError:
        print("spconv is not installed")
    return out


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    p.add_argument("--steps", type=int, default=30)
    p.add_argument("--wide", type=int, default=32, help="channels of the first level")
    p.add_argument("--threads", type=int, default=0, help="0: one for each CPU")
    o = p.parse_args()
    if o.threads:
        torch.set_num_threads(o.threads)
        weft.set_threads(o.threads)
    first = None
    batch([0])  # what NumPy takes counts for nobody
    for name, (net, tensor) in contenders(o).items():
        before = memory(begin=True)
        try:
            losses, right, seconds = train(name, net, tensor, o)
        except (AssertionError, RuntimeError) as e:  # spconv's backward asks torch for CUDA
            print(f"{name:7} cannot train here: {str(e).splitlines()[0]}")
            continue
        first = first or seconds
        peak = memory()
        print(f"{name:7} loss {losses[0]:.4f} -> {losses[-1]:.4f}  accuracy {100 * right:.1f} %  "
              f"{1e3 * seconds:.0f} ms a step ({seconds / first:.2f}x weft)  peak memory {peak:.0f} MB, {peak - before:.0f} of them new")


if __name__ == "__main__":
    main()
