#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""One format or several: SpMM (f32) on matrices that are mostly regular.  What weft_kernel_tune finds is
timed in turns beside torch, MKL and the best of all formats that store all entries alike: of those that
the tuner sees for the matrix, each is timed by itself and the best two with a few other steps.  Values
are held (docs/running.md), so that formats bring them into order once; converting stands apart.

    WEFT_LIBRARY=build/release/libweft.so .venv/bin/python bench/decompose.py --threads 1,2
"""

import argparse
import ctypes
import re
import sys
import time
import warnings

import peers

SPLITS = ("band_rest", "blocks_rest", "hyb")
STEPS = ("", "ahead 0", "panel 64", "panel 128")


class Plan(ctypes.Structure):
    _fields_ = [("made", ctypes.c_int64), ("ms", ctypes.c_double), ("transpose_ms", ctypes.c_double),
                ("transposes", ctypes.c_int), ("bytes", ctypes.c_int64), ("format_ms", ctypes.c_double),
                ("formats", ctypes.c_int)]


class Point(ctypes.Structure):
    _fields_ = [("schedule", ctypes.c_char_p), ("seconds", ctypes.c_double)]


def options():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    numbers = lambda s: [int(w) for w in s.split(",")]
    p.add_argument("--kinds", type=lambda s: s.split(","), default=list(KINDS))
    p.add_argument("--features", type=numbers, default=[32, 64, 128, 256])
    p.add_argument("--threads", type=numbers, default=[1, 2])
    p.add_argument("--seconds", type=float, default=0.5, help="of timing for each contender")
    p.add_argument("--tune", type=float, default=10, help="seconds that the tuner has")
    return p.parse_args()


def join(n, *parts):
    """Rows and columns of all parts, each place once, as CSR."""
    key = np.unique(np.concatenate([i.astype(np.int64) * n + j for i, j in parts]))
    start = np.zeros(n + 1, np.int64)
    np.cumsum(np.bincount(key // n, minlength=n), out=start[1:])
    return n, start.astype(np.int32), (key % n).astype(np.int32)


def window(n, w):
    i = np.repeat(np.arange(n), 2 * w + 1)
    j = i + np.tile(np.arange(-w, w + 1), n)
    inside = (j >= 0) & (j < n)
    return i[inside], j[inside]


def scatter(n, each, rng):
    return rng.integers(0, n, n * each), rng.integers(0, n, n * each)


def band(rng, n=4096, w=48, each=12):
    """A band and entries anywhere: windows of attention with random keys, meshes with far links."""
    return join(n, window(n, w), scatter(n, each, rng))


def blocks(rng, n=4096, b=16, part=32, each=20):
    """Dense blocks and outliers: weights that were pruned by blocks, but for the largest."""
    at = np.argwhere(rng.random((n // b, n // b)) < 1 / part) * b
    inner = np.arange(b)
    i = at[:, 0, None, None] + inner[:, None] + 0 * inner
    j = at[:, 1, None, None] + inner + 0 * inner[:, None]
    return join(n, (i.ravel(), j.ravel()), scatter(n, each, rng))


def longformer(rng, n=4096, w=128, tokens=32):
    """A window and tokens that see all others and are seen by them."""
    g, all = rng.choice(n, tokens, replace=False), np.arange(n)
    return join(n, window(n, w), (np.repeat(g, n), np.tile(all, tokens)),
                (np.tile(all, tokens), np.repeat(g, n)))


def powerlaw(rng, n=20000, nnz=400000):
    """Few long rows and many short ones, columns alike."""
    weight = 1 / np.arange(1, n + 1) ** 0.7
    draw = lambda: rng.permutation(n)[rng.choice(n, nnz, p=weight / weight.sum())]
    return join(n, (draw(), draw()))


KINDS = {f.__name__: f for f in (band, blocks, longformer, powerlaw)}


class Case:
    def __init__(self, weft, matrix, f, threads, rng):
        self.weft, self.threads, self.f = weft, threads, f
        self.n, self.start, self.col = matrix
        self.value = rng.random(len(self.col), dtype=np.float32)
        self.b = rng.random((self.n, f), dtype=np.float32)
        self.c = np.zeros((self.n, f), np.float32)
        self.want, self.converted = None, {}

    def arrays(self):
        return {"E.start": self.start, "E.j": self.col, "A": self.value, "B": self.b, "C": self.c}

    def formats(self):
        """Those that the tuner would try."""
        w, points, n = self.weft, ctypes.POINTER(Point)(), ctypes.c_int()
        prog, kernel = w.kernel(op="spmm")
        args = w.bind(prog, self.arrays())
        w.call("weft_kernel_space", kernel, args, ctypes.byref(points), ctypes.byref(n))
        text = "\n".join(points[i].schedule.decode() for i in range(n.value))
        w.lib.weft_args_free(args)
        return sorted(set(re.findall(r"format E (\w+\([^)]*\))", text)))

    def by_weft(self, schedule):
        w, plan = self.weft, Plan()
        prog, kernel = w.kernel(op="spmm")
        w.call("weft_kernel_schedule", kernel, schedule.encode())
        args = w.bind(prog, self.arrays())
        w.call("weft_args_hold", args, b"A", 1)
        run = w.lib.weft_kernel_run
        run.argtypes = [ctypes.c_void_p] * 2
        w.call("weft_kernel_run", kernel, args)
        w.call("weft_args_plan", args, ctypes.byref(plan))
        self.converted[schedule] = plan.format_ms
        began = time.perf_counter()
        while time.perf_counter() - began < peers.HOT:
            w.call("weft_kernel_run", kernel, args)
        return lambda: run(kernel, args)

    def tuned(self, seconds):
        """What the tuner finds in so many seconds."""
        w = self.weft
        prog, kernel = w.kernel(op="spmm")
        args = w.bind(prog, self.arrays())
        w.call("weft_args_hold", args, b"A", 1)
        schedule = w.tune(kernel, args, seconds)
        w.lib.weft_args_free(args)
        return schedule, self.by_weft(schedule)

    def verify(self, name, run):
        self.c.fill(np.nan)
        run()
        if self.want is None:
            csr = scipy.sparse.csr_matrix((self.value, self.col, self.start), (self.n, self.n))
            self.want = csr.astype(np.float64) @ self.b
        worst = np.abs(self.c - self.want).max() / np.abs(self.want).max()
        if not worst < 1e-4:
            sys.exit(f"{name} is wrong by {worst}")

    def best(self, formats):
        """The fastest of these formats with the steps beside it; first by a short look."""
        runs = {}
        for name in formats:
            text = f"format E {name}" if name else ""
            try:
                runs[text] = self.by_weft(text)
            except RuntimeError as e:
                print(f"  {name}: {e}", file=sys.stderr)
        found = peers.time_all(runs, 0.1)
        for text in sorted(found, key=found.get)[:2]:
            more = [s for s in STEPS if s and not (s[:5] == "panel" and int(s[6:]) >= self.f)]
            for full in ("; ".join(filter(None, (text, s))) for s in more):
                runs[full] = self.by_weft(full)
        found = peers.time_all(runs, 0.1)
        text = min(found, key=found.get)
        self.verify(text, runs[text])
        return text, runs[text]


def measure(case, mkl, seconds, tune):
    torch.set_num_threads(case.threads)
    case.weft.threads(case.threads)
    one, run_one = case.best([""] + [n for n in case.formats() if not n.startswith(SPLITS)])
    several, run_several = case.tuned(tune)
    csr = torch.sparse_csr_tensor(torch.from_numpy(case.start), torch.from_numpy(case.col),
                                  torch.from_numpy(case.value), size=(case.n, case.n))
    tb, tc = torch.from_numpy(case.b), torch.from_numpy(case.c)
    runs = {"tuned": run_several, "one": run_one, "torch": lambda: torch.mm(csr, tb, out=tc)}
    if mkl is not None:
        runs["mkl"] = mkl.spmm(case.n, case.n, case.start, case.col, case.value, case.b, case.c,
                               case.threads)
    for name, run in runs.items():
        case.verify(name, run)
    ms = {k: v * 1e3 for k, v in peers.time_all(runs, seconds).items()}
    ratio = min(v for k, v in ms.items() if k != "tuned") / ms["tuned"]
    return several, one or "csr", ms, ratio, case.converted[several]


def main():
    o = options()
    global np, torch, scipy
    import numpy as np
    import scipy.sparse
    import torch

    peers.np = np
    warnings.filterwarnings("ignore", message="Sparse", category=UserWarning)
    weft = peers.Weft()
    try:
        mkl = peers.Mkl()
    except (StopIteration, OSError) as e:
        mkl = print(f"MKL is left out: {e or 'libmkl_rt is not installed'}", file=sys.stderr)
    print("| matrix | F | threads | tuned | ms | one format | ms | torch ms | MKL ms | ratio | "
          "converted ms |")
    print("|---" * 11 + "|")
    for kind in o.kinds:
        matrix = KINDS[kind](np.random.default_rng(1))
        for f in o.features:
            for threads in o.threads:
                case = Case(weft, matrix, f, threads, np.random.default_rng(2))
                several, one, ms, ratio, converted = measure(case, mkl, o.seconds, o.tune)
                print(f"| {kind} | {f} | {threads} | `{several.replace('format E ', '') or 'csr'}` | "
                      f"{ms['tuned']:.2f} | "
                      f"`{one.replace('format E ', '')}` | {ms['one']:.2f} | {ms['torch']:.2f} | "
                      f"{ms.get('mkl', float('nan')):.2f} | {ratio:.2f} | {converted:.1f} |", flush=True)


if __name__ == "__main__":
    main()
