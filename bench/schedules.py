# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
#
# Does the cost model rank schedules?  Times a dozen or more of them for SpMM and SDDMM on several
# graphs, interleaved, and compares with what the model predicts: Spearman's rank correlation for
# each problem, and the median over all.
#
#     python bench/schedules.py [--graphs SPEC,...] [--features 32,128] [--threads 2] [--rounds 5]
import argparse
import ctypes
import os
import sys
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python"))
os.environ.setdefault("WEFT_LIBRARY", str(ROOT / "build/release/libweft.so"))

TILE = ["tile 1", "tile 2", "tile 4", "tile 8"]
PANEL = ["", "panel 32", "panel 64; pack 1", "panel 128; pack 1"]
AHEAD = ["ahead 0", "ahead 4096"]


def schedules(f):
    wide = [p for p in PANEL if not p or int(p.split()[1].rstrip(";")) < f]
    return ["; ".join(s for s in (t, a, p) if s) for t in TILE for a in AHEAD for p in wide]


def ranks(x):
    order = np.argsort(x, kind="stable")
    r = np.empty(len(x))
    r[order] = np.arange(len(x))
    return r


def spearman(a, b):
    return float(np.corrcoef(ranks(np.asarray(a)), ranks(np.asarray(b)))[0, 1])


def graph(spec, seed=1):
    """uniform:N:NNZ or power:N:NNZ, or a .npz file with n, row, col."""
    kind, *rest = spec.split(":")
    rng = np.random.default_rng(seed)
    if kind in ("uniform", "power"):
        n, nnz = int(rest[0]), int(rest[1])
        weight = np.ones(n) if kind == "uniform" else np.minimum(rng.pareto(1.1, n) + 1, n / 20)
        degree = np.maximum(1, weight * (nnz / weight.sum())).astype(np.int64)
        col = rng.choice(n, size=degree.sum(), p=weight / weight.sum()).astype(np.int32)
        start = np.zeros(n + 1, np.int32)
        np.cumsum(degree, out=start[1:])
        return n, start, col
    z = np.load(spec)
    n = int(z["n"])
    row, col = (z["row"], z["col"]) if "row" in z else (z["head"], z["tail"])
    order = np.lexsort((col, row))
    start = np.searchsorted(row[order], np.arange(n + 1)).astype(np.int32)
    return n, start, col[order].astype(np.int32)


class Problem:
    """One operator on one graph, through the C interface."""

    def __init__(self, weft, lib, op, n, start, col, f, threads):
        rng = np.random.default_rng(0)
        self.lib, self.threads = lib, threads
        dense = [rng.random((n, f), np.float32) for _ in range(2)]
        value = rng.random(len(col), np.float32)
        self.arrays = {"E.start": start, "E.j": col}
        if op == "spmm":
            self.arrays.update(A=value, B=dense[0], C=np.empty((n, f), np.float32))
        else:
            self.arrays.update(X=dense[0], Y=dense[1], Z=np.empty(len(col), np.float32))
        self.program = weft.Program.op(op + ":f32")
        self.kernel = self.program.compile()
        self.args = ctypes.c_void_p()
        self.ok(lib.weft_args_new(self.program._handle, ctypes.byref(self.args)))
        self.keep = []
        for name, a in self.arrays.items():
            self.bind(name, a)
        for name, size in zip("mnf", (n, n, f)):
            self.ok(lib.weft_args_size(self.args, name.encode(), size))

    def ok(self, status):
        if status:
            from weft import _lib
            raise RuntimeError(self.lib.weft_message(_lib.context()).decode())

    def bind(self, name, a):
        from weft import _array
        tensor, more = _array.as_tensor(a, name, True)
        self.keep.append((tensor, more))
        self.ok(self.lib.weft_args_bind(self.args, name.encode(), ctypes.byref(tensor)))

    def use(self, schedule):
        self.ok(self.lib.weft_kernel_schedule(self.kernel._handle, schedule.encode()))
        self.run()

    def run(self):
        self.ok(self.lib.weft_kernel_run(self.kernel._handle, self.args))

    def predict(self, schedule):
        seconds = ctypes.c_double()
        self.ok(self.lib.weft_args_predict(self.args, schedule.encode(), self.threads,
                                           ctypes.byref(seconds)))
        return seconds.value


def measure(p, names, rounds):
    times = {s: [] for s in names}
    for _ in range(rounds):
        for s in names:
            p.use(s)
            began = time.perf_counter()
            p.run()
            many = max(1, int(1e-3 / (time.perf_counter() - began)))
            for _ in range(3):
                t = time.perf_counter()
                for _ in range(many):
                    p.run()
                times[s].append((time.perf_counter() - t) / many)
    return [float(np.median(times[s])) for s in names]


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--graphs", default="uniform:20000:100000,power:20000:600000,"
                   "uniform:100000:1000000,power:169000:2300000")
    a.add_argument("--features", default="64,256")
    a.add_argument("--ops", default="spmm")
    a.add_argument("--threads", type=int, default=2)
    a.add_argument("--rounds", type=int, default=5)
    a.add_argument("-v", action="store_true")
    o = a.parse_args()
    os.environ["WEFT_NUM_THREADS"] = str(o.threads)
    import weft
    from weft import _lib
    lib = _lib.lib
    lib.weft_kernel_schedule.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
    lib.weft_args_predict.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int,
                                      ctypes.POINTER(ctypes.c_double)]
    found = []
    for spec in o.graphs.split(","):
        n, start, col = graph(spec)
        for op in o.ops.split(","):
            for f in map(int, o.features.split(",")):
                p = Problem(weft, lib, op, n, start, col, f, o.threads)
                names = schedules(f)
                took = measure(p, names, o.rounds)
                said = [p.predict(s) for s in names]
                found.append(spearman(took, said))
                best = took[int(np.argmin(said))] / min(took)
                print(f"{op} {spec} F={f} t={o.threads}: {len(names)} schedules, rank correlation "
                      f"{found[-1]:.2f}, the model's pick takes {best:.2f} of the best", flush=True)
                for i in np.argsort(took) if o.v else []:
                    print(f"    {took[i] * 1e3:9.3f} ms, predicted {said[i] * 1e3:9.3f}  {names[i]}")
    print(f"median rank correlation {np.median(found):.2f} over {len(found)} problems")


if __name__ == "__main__":
    main()
