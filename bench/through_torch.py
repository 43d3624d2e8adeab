#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""What a call through torch costs beside the kernel: tensor products and convolutions, forward and
backward, with fresh operands and fresh results in every round, and the functions of weft.h on the same
operands and on result arrays that are there.  They take turns in one process, and turns at going first.

    python bench/through_torch.py [--items 20000] [--edges 28000] [--threads 1 2] [--rounds 16]
                                  [--type f32] [--only tp|conv]

Prints a line a case: microseconds an item or edge of the kernel and through torch (medians), and the
ratio of the two.  `sum` is a backward from z.sum(), whose gradient is one number in all places; `rows` has
operands that are columns of wider tensors.  Both are held against the kernel with packed arrays.  torch's
time of a backward is that of torch.autograd.grad alone."""

import argparse
import ctypes
import gc
import statistics
import time

import numpy as np
import torch

import weft
from weft import _lib

TP = "128x0e+64x1e+32x2e", "0e+1e+2e", "0e+1e+2e"  # sevennet0-main
CONV = "48x0e+24x1o+16x2e", "0e+1o+2e", "0e+1o+2e"
REST = 0.005  # seconds, in which threads of the last one go to sleep
P, N = ctypes.c_void_p, ctypes.c_int64


def problem_of(in1, in2, out, dtype):
    """All paths to irreps that are wanted, mode uvu, a set of weights for each item."""
    in1, in2, keep = weft.Irreps(in1), weft.Irreps(in2), {str(s.ir) for s in weft.Irreps(out)}
    slots, paths = [], []
    for i, (mul, a) in enumerate(in1):
        for j, (_, b) in enumerate(in2):
            for c in a * b:
                if str(c) in keep:
                    paths.append((i, j, len(slots), "uvu", True))
                    slots.append((mul, c))
    return weft.TPProblem(in1, in2, slots, paths, shared_weights=False, irrep_dtype=dtype,
                          weight_dtype=dtype)


def data_of(tensors):
    return [None if t is None else t.data_ptr() for t in tensors]


class Product:
    """Through torch, and weft_tp of weft.h."""

    unit = "item"

    def __init__(self, options, dtype):
        self.n, self.problem = options.items, problem_of(*TP, dtype)
        self.module = weft.TensorProduct(self.problem)
        self.rows = [self.n] * 3
        self.results = self.n
        lib = _lib.lib
        lib.weft_tp_new.argtypes = [P, ctypes.c_char_p, P]
        lib.weft_tp_forward.argtypes = [P, N, P, P, P, P]
        lib.weft_tp_backward.argtypes = [P, N, P, P, P, P, P, P, P]
        self.handle = P()
        check(lib.weft_tp_new(_lib.context(), self.problem.spec("tp").encode(),
                              ctypes.byref(self.handle)))

    def through_torch(self, operands):
        return self.module(*operands)

    def kernel(self, operands, z):
        check(_lib.lib.weft_tp_forward(self.handle, self.n, *data_of(operands), z.data_ptr()))

    def kernel_backward(self, operands, dz, results):
        check(_lib.lib.weft_tp_backward(self.handle, self.n, *data_of(operands), dz.data_ptr(),
                                        *data_of(results)))


class Convolution:
    """Through torch, and weft_conv of weft.h, with edges in random order."""

    unit = "edge"

    def __init__(self, options, dtype):
        self.n, self.problem = options.edges, problem_of(*CONV, dtype)
        nodes = max(self.n // 28, 1)
        self.module = weft.TensorProductConv(self.problem)
        self.rows = [nodes, self.n, self.n]
        self.results = nodes
        lib = _lib.lib
        self.index = torch.randint(0, nodes, (2, self.n))
        receiver, sender = self.index.numpy()
        self.edges = weft.Edges(receiver, sender, nodes=nodes)
        self.handle = P()
        check(lib.weft_conv_new(_lib.context(), self.problem.spec("conv").encode(),
                                ctypes.byref(self.handle)))

    def through_torch(self, operands):
        return self.module(*operands, *self.index)

    def arrays(self, tensors):
        return ctypes.byref(_lib.ConvArrays(*data_of([*tensors, None])))

    def kernel(self, operands, z):
        check(_lib.lib.weft_conv_forward(self.handle, self.edges._handle, self.arrays(operands),
                                         z.data_ptr()))

    def kernel_backward(self, operands, dz, results):
        check(_lib.lib.weft_conv_backward(self.handle, self.edges._handle, self.arrays(operands),
                                          dz.data_ptr(), self.arrays(results)))


def check(status):
    if status != 0:
        raise RuntimeError(_lib.lib.weft_message(_lib.context()).decode())


def fresh(case, dtype, wide):
    """Operands that nobody has seen; columns of wider tensors, where that is wanted."""
    p = case.problem
    out = []
    for n, width in zip(case.rows, (p.irreps_in1.dim, p.irreps_in2.dim, p.weight_numel)):
        x = torch.randn(n, width + 16 * wide, dtype=dtype)
        out.append(x[:, :width].requires_grad_())
    return out


def timed(run):
    time.sleep(REST)
    began = time.perf_counter()
    out = run()
    return time.perf_counter() - began, out


def in_turn(first, second, swap):
    """Both, timed; with swap the second one goes first, as the caches are warmer for whoever follows."""
    if not swap:
        return timed(first), timed(second)
    late = timed(second)
    return timed(first), late


def round_of(case, kind, dtype, arrays, swap):
    """Seconds of the kernel and through torch, in one round."""
    operands = fresh(case, dtype, kind == "rows")
    packed = [x.detach().contiguous() for x in operands]
    if kind in ("forward", "rows"):
        with torch.no_grad():
            (own, _), (seconds, z) = in_turn(lambda: case.kernel(packed, arrays["z"]),
                                             lambda: case.through_torch(operands), swap)
        return own, seconds, torch.allclose(z, arrays["z"], rtol=1e-4, atol=1e-4)
    z = case.through_torch(operands)
    dz = torch.ones_like(z) if kind == "sum" else torch.randn_like(z)
    value = z.sum() if kind == "sum" else z
    (own, _), (seconds, got) = in_turn(
        lambda: case.kernel_backward(packed, dz, arrays["d"]),
        lambda: torch.autograd.grad(value, operands, None if kind == "sum" else dz), swap)
    return own, seconds, all(torch.allclose(a, b, rtol=1e-4, atol=1e-3)
                             for a, b in zip(got, arrays["d"]))


def measure(case, kind, dtype, rounds):
    p = case.problem
    arrays = {"z": torch.zeros(case.results, p.irreps_out.dim, dtype=dtype),
              "d": [torch.zeros_like(x) for x in fresh(case, dtype, 0)]}
    times = []
    for r in range(rounds + 3):
        gc.collect()
        *pair, good = round_of(case, kind, dtype, arrays, r % 2 == 1)
        if not good:
            raise RuntimeError(f"{type(case).__name__} {kind}: torch and the kernel differ")
        if r >= 3:
            times.append(pair)
    return [statistics.median(t) / case.n * 1e6 for t in zip(*times)]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=20000)
    parser.add_argument("--edges", type=int, default=28000)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=16)
    parser.add_argument("--type", choices=["f32", "f64"], default="f32")
    parser.add_argument("--only", choices=["tp", "conv"])
    parser.add_argument("--kinds", nargs="+", default=["forward", "rows", "backward", "sum"])
    options = parser.parse_args()
    dtype = {"f32": torch.float32, "f64": torch.float64}[options.type]
    cases = {"tp": Product, "conv": Convolution}
    print(f"{'case':24} {'threads':>7} {'kernel':>9} {'torch':>9} {'ratio':>6}")
    for name, make in cases.items():
        if options.only in (None, name):
            case = make(options, dtype)
            for kind in options.kinds:
                for threads in options.threads:
                    torch.set_num_threads(threads)
                    weft.set_threads(threads)
                    own, seconds = measure(case, kind, dtype, options.rounds)
                    print(f"{name + ' ' + kind:24} {threads:7} {own:9.4f} {seconds:9.4f} "
                          f"{seconds / own:6.2f}  us an {case.unit}", flush=True)


if __name__ == "__main__":
    main()
