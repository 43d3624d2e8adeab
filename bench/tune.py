# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
#
# How good is tuning?  For each problem the whole space of schedules is compiled and timed; then
# the tuner gets a tenth of that time, but not less than compiling a few kernels takes; then the
# best of the space, the tuner's choice, what runs without tuning, the default schedule and plain
# loops over rows take turns, on the same arrays.
#
#     python bench/tune.py [--only NAME,...] [--share 0.1] [--least 1] [--most SECONDS]
#                           [--json FILE]
#
# Each search is a process of its own with an empty cache.  Programs are operators, and two of
# bench/ that no operator knows; graphs are made here.  Use a machine that does nothing else.
import argparse
import ctypes
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python"))
os.environ.setdefault("WEFT_LIBRARY", str(ROOT / "build/release/libweft.so"))
PLAIN = "tile 0; ahead 0; jam 0"  # rows are shared by threads; nothing else is arranged
ROUNDS = 100


def from_pairs(n, row, col):
    """The rows of a graph, each column once and in order."""
    key = np.unique(row.astype(np.int64) * n + col)
    start = np.searchsorted(key // n, np.arange(n + 1)).astype(np.int32)
    return start, (key % n).astype(np.int32)


def uniform(rng, n, nnz):
    return rng.integers(0, n, nnz), rng.integers(0, n, nnz)


def power(rng, n, nnz):
    weight = np.minimum(rng.pareto(1.1, n) + 1, n / 20)
    weight /= weight.sum()
    return rng.choice(n, nnz, p=weight), rng.choice(n, nnz, p=weight)


def band(rng, n, nnz):
    wide = nnz // n // 2
    row = np.repeat(np.arange(n), 2 * wide + 1)
    col = row + np.tile(np.arange(-wide, wide + 1), n)
    inside = (col >= 0) & (col < n)
    return row[inside], col[inside]


def block(rng, n, nnz, size=8):
    r, c = rng.integers(0, n // size, (2, nnz // size**2))
    i, j = np.divmod(np.arange(size * size), size)
    return (r[:, None] * size + i).ravel(), (c[:, None] * size + j).ravel()


def both(first):
    """Three quarters of the entries of a kind, the others anywhere."""
    def make(rng, n, nnz):
        a, b = first(rng, n, nnz * 3 // 4), uniform(rng, n, nnz // 4)
        return tuple(np.concatenate(x) for x in zip(a, b))
    return make


GRAPHS = {"uniform": uniform, "power": power, "band": band, "block": block,
          "block+": both(block), "band+": both(band)}

# program: the shape of each array, by letters of sizes; e is the number of entries
SHAPES = {
    "spmm": {"A": "e", "B": "nf", "C": "nf"},
    "sddmm": {"X": "nf", "Y": "nf", "Z": "e"},
    "softmax": {"S": "e", "P": "e"},
    "segment_sum": {"X": "ef", "Y": "nf"},
    "gated": {"L": "ed", "W": "dh", "V": "h", "X": "nf", "Y": "nf"},
    "two_hop": {"A": "e", "X": "nf", "Y": "nf"},
}

# name: program, graph, rows, entries, sizes
PROBLEMS = {
    "spmm-uniform": ("spmm", "uniform", 10000, 100000, dict(f=64)),
    "spmm-power": ("spmm", "power", 10000, 200000, dict(f=128)),
    "spmm-band": ("spmm", "band", 10000, 110000, dict(f=32)),
    "spmm-block": ("spmm", "block", 4096, 200000, dict(f=64)),
    "spmm-block+": ("spmm", "block+", 4096, 200000, dict(f=64)),
    "sddmm-uniform": ("sddmm", "uniform", 20000, 100000, dict(f=128)),
    "sddmm-power": ("sddmm", "power", 10000, 150000, dict(f=64)),
    "sddmm-block": ("sddmm", "block", 4096, 100000, dict(f=256)),
    "softmax-power": ("softmax", "power", 20000, 200000, {}),
    "segment-sum": ("segment_sum", "power", 10000, 100000, dict(f=64)),
    "gated": ("gated", "block", 8192, 100000, dict(d=16, h=16, f=64)),
    "two-hop": ("two_hop", "block", 8192, 200000, dict(f=64)),
}


class Problem:
    """A program and its arrays, which all schedules run on: where they lie counts, too."""

    def __init__(self, name):
        import weft
        from weft import _array, _lib
        self.lib, self.context = _lib.lib, _lib.context
        program, graph, n, nnz, sizes = PROBLEMS[name]
        rng = np.random.default_rng(7)
        start, col = from_pairs(n, *GRAPHS[graph](rng, n, nnz))
        own = ROOT / "bench" / (program + ".weft")
        self.program = weft.Program.read(own) if own.exists() else weft.Program.op(program + ":f32")
        size = dict(sizes, n=n, e=len(col))
        arrays = {a: rng.random([size[d] for d in s], np.float32) for a, s in SHAPES[program].items()}
        arrays.update({a.name: start if a.name.endswith(".start") else col
                       for a in self.program.args if a.structure})
        self.arrays = [(a, *_array.as_tensor(x, a, True)) for a, x in arrays.items()]

    def ok(self, status):
        if status:
            raise RuntimeError(self.lib.weft_message(self.context()).decode())

    def run_of(self, schedule):
        """A function that runs by this schedule; None: by what the library chooses."""
        kernel, args = self.program.compile(), ctypes.c_void_p()
        self.ok(self.lib.weft_args_new(self.program._handle, ctypes.byref(args)))
        for name, tensor, _ in self.arrays:
            self.ok(self.lib.weft_args_bind(args, name.encode(), ctypes.byref(tensor)))
        if schedule is not None:
            self.ok(self.lib.weft_kernel_schedule(kernel._handle, schedule.encode()))

        def run():
            self.ok(self.lib.weft_kernel_run(kernel._handle, args))
        run.kernel, run.args = kernel, args
        return run


def heat(run):
    """A kernel is compiled for its sizes when it has run for a tenth of a second."""
    run()
    until = time.perf_counter() + 0.15
    while time.perf_counter() < until:
        run()


def search(o):
    """One search of a kernel that is in use; how long it took, and what it found."""
    from weft import _lib
    p = Problem(o.only)
    run = p.run_of(None)
    opt, out = _lib.Tune(o.most, o.top, _lib.TUNE_FN(), None), _lib.Tuned()
    heat(run)
    began = time.perf_counter()
    p.ok(p.lib.weft_kernel_tune(run.kernel._handle, run.args, ctypes.byref(opt), ctypes.byref(out)))
    return dict(seconds=time.perf_counter() - began, schedule=out.schedule.decode(), points=out.points,
                timed=out.timed, wrong=out.wrong)


def compare(o):
    """Milliseconds of each schedule, in turns."""
    p = Problem(o.only)
    runs = {name: p.run_of(s) for name, s in json.loads(o.schedules).items()}
    times = {name: [] for name in runs}
    for run in runs.values():
        heat(run)
    for _ in range(ROUNDS):
        for name, run in runs.items():
            began, many = time.perf_counter(), 0
            while time.perf_counter() - began < 2e-3:
                run()
                many += 1
            times[name].append((time.perf_counter() - began) / many)
    return {name: float(np.quantile(t, 0.25)) * 1e3 for name, t in times.items()}


def child(what, name, machine, **options):
    """One step in a process of its own, with a cache that has nothing but the machine's figures."""
    with tempfile.TemporaryDirectory() as cache:
        for f in machine.glob("machine-*.txt"):
            shutil.copy(f, cache)
        words = [w for k, v in options.items() for w in ("--" + k, str(v))]
        done = subprocess.run([sys.executable, __file__, "--step", what, "--only", name, *words], check=True,
                              stdout=subprocess.PIPE, env=dict(os.environ, WEFT_CACHE_DIR=cache))
    return json.loads(done.stdout)


def measure(name, machine, o):
    whole = child("search", name, machine, top=4096, most=o.most)
    tuned = child("search", name, machine, most=max(o.least, o.share * whole["seconds"]))
    ms = child("compare", name, machine, schedules=json.dumps(
        dict(best=whole["schedule"], tuned=tuned["schedule"], untuned=None, default="", plain=PLAIN)))
    return dict(name=name, whole=whole, tuned=tuned, ms=ms)


HEAD = "%-14s %7s %7s %6s %6s %8s %8s %8s %8s   %s" % (
    "problem", "points", "all s", "tune s", "timed", "best ms", "tuned", "untuned", "plain", "tuner's choice")


def put(r):
    best = min(r["ms"]["best"], r["ms"]["tuned"])  # of two that are alike, either may win by chance
    print("%-14s %7d %7.1f %6.1f %6d %8.4f %7.2fx %7.2fx %7.2fx   %s" % (
        r["name"], r["whole"]["points"], r["whole"]["seconds"], r["tuned"]["seconds"], r["tuned"]["timed"],
        best, r["ms"]["tuned"] / best, r["ms"]["untuned"] / best, r["ms"]["plain"] / best,
        r["tuned"]["schedule"] or "default"), flush=True)


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--only", default=",".join(PROBLEMS))
    a.add_argument("--share", type=float, default=0.1, help="of the time that the whole space takes")
    a.add_argument("--least", type=float, default=1, help="seconds that the tuner has in any case")
    a.add_argument("--most", type=float, default=1e5, help="seconds for the whole space")
    a.add_argument("--json", help="also write records to this file")
    a.add_argument("--top", type=int, default=0, help=argparse.SUPPRESS)
    a.add_argument("--step", help=argparse.SUPPRESS)
    a.add_argument("--schedules", help=argparse.SUPPRESS)
    o = a.parse_args()
    if o.step:
        print(json.dumps({"search": search, "compare": compare}[o.step](o)))
        return
    weft = Path(os.environ["WEFT_LIBRARY"]).with_name("weft")
    with tempfile.TemporaryDirectory() as machine:
        subprocess.run([weft, "bench", "machine"], check=True, stdout=subprocess.DEVNULL,
                       env=dict(os.environ, WEFT_CACHE_DIR=machine))
        print(HEAD)
        for name in o.only.split(","):
            r = measure(name, Path(machine), o)
            put(r)
            if o.json:
                with open(o.json, "a") as f:
                    f.write(json.dumps(r) + "\n")


if __name__ == "__main__":
    main()
