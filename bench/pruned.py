#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""Pruned weights: a sparse matrix times 512 tokens, f32.  Weft's CSR and block kernels, and for entries
anywhere what its tuner finds, beside torch's dense product and BSR and MKL's CSR, in turns in one
process; medians, then the time of each peer over Weft's.  Weights are held (docs/running.md): they are
put into blocks once.

    WEFT_LIBRARY=build/release/libweft.so .venv/bin/python bench/pruned.py --threads 1,2
"""

import argparse
import ctypes
import statistics
import time
import warnings

import peers

SHAPES = "768x768,768x3072,3072x768"


def options():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    numbers = lambda s: [int(w) for w in s.split(",")]
    p.add_argument("--shapes", default=SHAPES)
    p.add_argument("--blocks", type=numbers, default=[1, 16, 32, 64], help="1: entries anywhere")
    p.add_argument("--parts", type=numbers, default=[2, 4, 8, 16, 64], help="densities, 1 / N")
    p.add_argument("--threads", type=numbers, default=[1, 2])
    p.add_argument("--tokens", type=int, default=512)
    p.add_argument("--seconds", type=float, default=0.5)
    p.add_argument("--tune", type=float, default=3, help="seconds that the tuner has")
    p.add_argument("--cpu", action="store_true", help="CPU time, not wall time: for one thread on a busy machine")
    return p.parse_args()


def matrix(m, n, block, part, rng):
    """A dense array with blocks of ones."""
    keep = rng.random((m // block, n // block)) < 1 / part
    return np.kron(keep, np.ones((block, block), np.float32))


class Case:
    def __init__(self, weft, mask, f, threads, rng):
        self.weft, self.threads, self.f = weft, threads, f
        self.m, self.n = mask.shape
        csr = scipy.sparse.csr_matrix(mask)
        self.start, self.col = csr.indptr.astype(np.int32), csr.indices.astype(np.int32)
        self.value = rng.random(len(self.col), dtype=np.float32)
        self.b = rng.random((self.n, f), dtype=np.float32)
        self.c = np.zeros((self.m, f), np.float32)
        self.flops = 2 * len(self.col) * f
        self.dense = scipy.sparse.csr_matrix((self.value, self.col, self.start),
                                             shape=mask.shape).toarray()

    def by_weft(self, schedule, tune=0):
        """A run by this schedule, or what the tuner finds, after what it takes to compile and convert."""
        w = self.weft
        prog, kernel = w.kernel(op="spmm")
        args = w.bind(prog, {"E.start": self.start, "E.j": self.col, "A": self.value, "B": self.b,
                             "C": self.c})
        w.call("weft_args_hold", args, b"A", 1)
        if tune:
            schedule = w.tune(kernel, args, tune)
        w.call("weft_kernel_schedule", kernel, schedule.encode())
        run = w.lib.weft_kernel_run
        run.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
        began = time.perf_counter()
        while time.perf_counter() - began < peers.HOT:
            w.call("weft_kernel_run", kernel, args)
        want = self.dense @ self.b
        if not np.allclose(self.c, want, rtol=1e-4, atol=1e-4):
            raise SystemExit(f"{schedule or 'csr'}: wrong by {np.abs(self.c - want).max()}")
        return lambda: run(kernel, args)

    def contenders(self, mkl, block, tune):
        runs = {"csr": self.by_weft("")}
        if block > 1:
            runs["bsr"] = self.by_weft(f"format E bsr({block}, {block})")
        else:
            runs["tuned"] = self.by_weft("", tune)
        runs["mkl"] = mkl.spmm(self.m, self.n, self.start, self.col, self.value, self.b, self.c,
                               self.threads)
        dense, b = torch.from_numpy(self.dense), torch.from_numpy(self.b)
        out = torch.empty(self.m, self.f)
        runs["torch dense"] = lambda: torch.mm(dense, b, out=out)
        if block > 1:
            blocks = dense.to_sparse_bsr((block, block))
            runs["torch bsr"] = lambda: torch.mm(blocks, b)
        return runs


def turns(runs, seconds, clock):
    took = {name: [] for name in runs}
    began = time.perf_counter()
    while time.perf_counter() - began < seconds * len(runs) or len(took["csr"]) < 5:
        for name, run in runs.items():
            time.sleep(0.003)
            run()
            start = clock()
            run()
            took[name].append(clock() - start)
    return {name: statistics.median(t) for name, t in took.items()}


def main():
    o = options()
    global np, torch, scipy
    import numpy as np
    import scipy.sparse
    import torch

    warnings.filterwarnings("ignore", category=UserWarning)
    peers.np = np
    weft, mkl = peers.Weft(), peers.Mkl()
    print("ms (GFLOP/s of the entries)")
    for threads in o.threads:
        weft.threads(threads)
        torch.set_num_threads(threads)
        for shape in o.shapes.split(","):
            m, n = map(int, shape.split("x"))
            for block in o.blocks:
                for part in o.parts:
                    rng = np.random.default_rng(1)
                    case = Case(weft, matrix(m, n, block, part, rng), o.tokens, threads, rng)
                    took = turns(case.contenders(mkl, block, o.tune), o.seconds,
                                 time.process_time if o.cpu else time.perf_counter)
                    print(f"{shape:9} block {block:2} density 1/{part:<2} t={threads}  " +
                          "  ".join(f"{k} {v * 1e3:.3g} ({case.flops / v / 1e9:.0f})"
                                    for k, v in took.items()), flush=True)
                    for own in ("csr", "tuned", "bsr"):
                        ratios = [f"{k} / {own} {v / took[own]:.2f}x" for k, v in took.items()
                                  if own in took and k not in ("csr", "tuned", "bsr")]
                        if ratios:
                            print("          peer / weft:  " + "  ".join(ratios), flush=True)


if __name__ == "__main__":
    main()
