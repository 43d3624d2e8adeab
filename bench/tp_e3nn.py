#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""The tensor product of tp64.weft against e3nn: verifies, then times both in turn.

    python bench/tp_e3nn.py [ROWS [ROUNDS]]        # 10000 rows, 30 rounds, one thread

Prints one CSV line: medians in microseconds a row, and how many times as fast Weft is.  Weft's
arrays have components before channels; e3nn's the other way round, as its users have them."""

import platform
import statistics
import sys
import time
from pathlib import Path

import numpy as np

IN1, IN2, OUT = [(64, 1), (32, 3)], [(1, 1), (1, 3)], [(64, 1), (32, 1), (64, 3), (32, 3), (32, 3)]
PROGRAM = Path(__file__).with_name("tp64.weft")


def e3nn_product():
    from e3nn import o3

    paths = [(0, 0, 0), (1, 1, 1), (0, 1, 2), (1, 0, 3), (1, 1, 4)]
    return o3.TensorProduct("64x0e + 32x1o", "0e + 1o", "64x0e + 32x0e + 64x1o + 32x1o + 32x1e",
                            [(i, j, k, "uvu", True) for i, j, k in paths],
                            shared_weights=False, internal_weights=False)


def swapped(x, slots, channels_first):
    """Each slot's block transposed: (channels, components) to (components, channels) or back."""
    parts, at = [], 0
    for mul, dim in slots:
        part = x[:, at : at + mul * dim]
        shape = (mul, dim) if channels_first else (dim, mul)
        parts.append(part.reshape(len(x), *shape).transpose(0, 2, 1).reshape(len(x), mul * dim))
        at += mul * dim
    return np.ascontiguousarray(np.concatenate(parts, axis=1))


def data(rows, seed=1):
    rng = np.random.default_rng(seed)
    return [rng.standard_normal((rows, width)).astype(np.float32) for width in (160, 4, 224)]


def relative(got, want):
    return np.abs(got - want).max() / np.abs(want).max()


def main():
    import torch

    import weft

    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 10000
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 30
    torch.set_num_threads(1)
    weft.set_threads(1)
    product = e3nn_product()
    x, y, wt = data(rows)
    tx, ty, tw = (torch.from_numpy(a) for a in (x, y, wt))
    began = time.perf_counter()
    kernel = weft.Program.read(PROGRAM).compile()
    compiled = time.perf_counter() - began
    xs, z = swapped(x, IN1, True), np.empty((rows, 480), np.float32)
    times = {"weft": [], "e3nn": []}
    with torch.no_grad():
        for _ in range(rounds + 3):
            began = time.perf_counter()
            kernel(X=xs, Y=y, Wt=wt, out=z)
            middle = time.perf_counter()
            want = product(tx, ty, tw)
            times["weft"].append(middle - began)
            times["e3nn"].append(time.perf_counter() - middle)
    error = relative(swapped(z, OUT, False), want.numpy())
    assert error <= 1e-6, error
    ours, theirs = (statistics.median(t[3:]) * 1e6 / rows for t in times.values())
    info = kernel.info
    print("bench,rows,threads,isa,weft_us_row,e3nn_us_row,ratio,error,compile_s,how,torch,machine")
    print(f"tp64,{rows},1,{info.isa},{ours:.4f},{theirs:.4f},{theirs / ours:.2f},{error:.2e},"
          f"{compiled:.3f},{info.how},{torch.__version__},{platform.processor() or platform.machine()}")


if __name__ == "__main__":
    main()
