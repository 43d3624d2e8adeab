#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""SpMM and SDDMM of Weft beside torch, MKL (inspector-executor) and SciPy: each case is verified,
then timed in turns in this process.  Writes bench/out/NAME.md and .jsonl; bench/run starts it.

A ratio is the time of the best peer over Weft's: above 1, Weft is faster."""

import os

# The peers' threads spin for a while after a call, up to 0.2 s: on the cores that are the next one's
# turn to use.  So long that their own next call finds them awake, and no longer.
os.environ.setdefault("KMP_BLOCKTIME", "1")
os.environ.setdefault("GOMP_SPINCOUNT", "100000")

import argparse
import ctypes
import json
import math
import platform
import statistics
import sys
import time
import warnings
from ctypes import POINTER, byref, c_char_p, c_double, c_float, c_int, c_int64, c_void_p
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
GENERATED = {
    "powerlaw-169k": "powerlaw:n=169000:nnz=2300000:a=2.1:seed=1",
    "powerlaw-233k": "powerlaw:n=233000:nnz=11000000:a=2.1:seed=1",
}
HOT = 0.2  # seconds after which Weft has code for a problem's sizes
WARM = 0.3  # seconds of a run that needs no other before it
SCIPY = 1e9  # multiply-adds that it is given to do
TINY = {"tiny": "powerlaw:n=2000:nnz=20000:a=2.1:seed=1"}


def options():
    p = argparse.ArgumentParser(prog="bench/run", description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    words = lambda s: [w for w in s.split(",") if w]
    numbers = lambda s: [int(w) for w in words(s)]
    p.add_argument("--ops", type=words, default=["spmm", "sddmm"])
    p.add_argument("--graphs", type=words, help="parts of names; or SPECS of weft gen, or files")
    p.add_argument("--features", type=numbers, default=[32, 64, 128, 256, 512])
    p.add_argument("--threads", type=numbers, default=[1, 2])
    p.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data",
                   help="a folder of graphs as .npz; left out when it is not there")
    p.add_argument("--seconds", type=float, default=0.6, help="of timing for each case and run")
    p.add_argument("--runs", type=int, default=1, help="each case this often; the lowest counts too")
    p.add_argument("--renamed", action="store_true",
                   help="time the programs of bench/*.weft too, which are the same with other names")
    p.add_argument("--name", default="peers", help="of the files in bench/out")
    p.add_argument("--quick", action="store_true", help="few cases, short: does it work at all?")
    o = p.parse_args()
    if o.quick:
        o.features, o.seconds = [32, 128], 0.1
        o.graphs = o.graphs or ["tiny", "cora", "pubmed"]
    return o


class Tensor(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("type", c_int), ("ndim", c_int),
                ("shape", POINTER(c_int64)), ("stride", POINTER(c_int64))]


class Graph(ctypes.Structure):
    _fields_ = [("m", c_int64), ("n", c_int64), ("nnz", c_int64), ("type", c_int),
                ("start", c_void_p), ("col", c_void_p)]


class CostOf(ctypes.Structure):
    _fields_ = [(name, c_double) for name in
                ("flops", "read", "written", "gathered", "loads", "stores", "compute_s", "ports_s",
                 "stream_s", "gather_s", "limit_s", "predicted_s")]


class PlanOf(ctypes.Structure):
    _fields_ = [("made", c_int64), ("ms", c_double), ("more", c_int64 * 16)]


class Tune(ctypes.Structure):
    _fields_ = [("seconds", c_double), ("top", c_int), ("tell", c_void_p), ("user", c_void_p)]


class Tuned(ctypes.Structure):
    _fields_ = [("schedule", c_char_p), ("seconds", c_double * 3), ("counts", c_int * 5)]


class Weft:
    """libweft, by its C interface: a call is one call, without what a package adds to it."""

    def __init__(self):
        self.lib = ctypes.CDLL(os.environ["WEFT_LIBRARY"])
        self.lib.weft_ctx_new.restype = c_void_p
        self.lib.weft_message.restype = self.lib.weft_version.restype = c_char_p
        self.lib.weft_message.argtypes = [c_void_p]
        for name in ("weft_prog_free", "weft_args_free", "weft_kernel_free"):
            getattr(self.lib, name).argtypes = [c_void_p]
            getattr(self.lib, name).restype = None
        self.ctx = c_void_p(self.lib.weft_ctx_new())

    def call(self, name, *arguments):
        if getattr(self.lib, name)(*arguments) != 0:
            raise RuntimeError(f"{name}: {self.lib.weft_message(self.ctx).decode()}")

    def graph(self, source):
        """start and col, as 32-bit arrays of our own."""
        g = Graph()
        self.call("weft_graph_make", self.ctx, source.encode(), 0, byref(g))
        take = lambda p, n: np.ctypeslib.as_array(ctypes.cast(p, POINTER(ctypes.c_int32)),
                                                  (max(n, 1),))[:n].copy()
        return g.m, g.n, take(g.start, g.m + 1), take(g.col, g.nnz)

    def threads(self, n):
        self.call("weft_ctx_threads", self.ctx, c_int(n))

    def tune(self, kernel, args, seconds):
        """The schedule that the library's tuner finds in this time."""
        found = Tuned()
        self.call("weft_kernel_tune", kernel, args, byref(Tune(seconds)), byref(found))
        return found.schedule.decode()

    def kernel(self, op=None, file=None):
        prog, kernel = c_void_p(), c_void_p()
        if file is None:
            self.call("weft_prog_op", self.ctx, op.encode(), byref(prog))
        else:
            self.call("weft_prog_read", self.ctx, str(file).encode(), byref(prog))
        self.call("weft_kernel_compile", prog, byref(kernel))
        return prog, kernel

    def bind(self, prog, arrays):
        args = c_void_p()
        self.call("weft_args_new", prog, byref(args))
        for name, a in arrays.items():
            shape = (c_int64 * a.ndim)(*a.shape)
            t = Tensor(a.ctypes.data, {"int32": 0, "float32": 4}[a.dtype.name], a.ndim, shape, None)
            self.call("weft_args_bind", args, name.encode(), byref(t))
        return args

    def cost(self, args, threads):
        c = CostOf()
        self.call("weft_args_cost", args, c_int(threads), byref(c))
        return c


class Mkl:
    """The inspector-executor of mkl_rt: hint, optimize, then calls."""

    class Descr(ctypes.Structure):
        _fields_ = [("type", c_int), ("mode", c_int), ("diag", c_int)]

    def __init__(self):
        lib = next(p for d in sys.path for p in sorted(Path(d).glob("../../libmkl_rt.so*")))
        self.lib = ctypes.CDLL(str(lib), mode=ctypes.RTLD_LOCAL)
        self.descr = self.Descr(20, 0, 0)
        text = ctypes.create_string_buffer(200)
        self.lib.mkl_get_version_string(text, 200)
        self.version = text.value.decode().split("-Product")[0].split("(R) ")[-1]

    def spmm(self, m, n, start, col, a, b, c, threads):
        lib, handle, f = self.lib, c_void_p(), b.shape[1]
        lib.MKL_Set_Num_Threads(threads)
        ptr = lambda x: c_void_p(x.ctypes.data)
        good = lambda status: status == 0 or sys.exit(f"MKL says {status}")
        good(lib.mkl_sparse_s_create_csr(byref(handle), 0, m, n, ptr(start),
                                         c_void_p(start.ctypes.data + 4), ptr(col), ptr(a)))
        good(lib.mkl_sparse_set_mm_hint(handle, 10, self.descr, 101, f, 1000))
        good(lib.mkl_sparse_optimize(handle))
        run = lib.mkl_sparse_s_mm
        arguments = (10, c_float(1), handle, self.descr, 101, ptr(b), f, f, c_float(0), ptr(c), f)
        return lambda: run(*arguments)


def spmm(case, weft, mkl):
    """Contenders by name, all of which write case.out."""
    m, n, start, col, f, threads = case.m, case.n, case.start, case.col, case.f, case.threads
    a, b, c = case.array(len(col)), case.array(n, f), case.output(m, f)
    csr = torch.sparse_csr_tensor(torch.from_numpy(start), torch.from_numpy(col),
                                  torch.from_numpy(a), size=(m, n))
    tb, tc = torch.from_numpy(b), torch.from_numpy(c)
    make = {"weft": case.weft(weft, "spmm", {"E.start": start, "E.j": col, "A": a, "B": b, "C": c})}
    if case.renamed:
        make["renamed"] = case.weft(weft, ROOT / "bench" / "neighbours.weft",
                                    {"Edge.start": start, "Edge.other": col, "Weight": a,
                                     "Before": b, "After": c})
    make["torch"] = lambda: torch.mm(csr, tb, out=tc)
    if mkl is not None:
        make["mkl"] = mkl.spmm(m, n, start, col, a, b, c, threads)
    if threads == 1 and len(col) * f <= SCIPY:
        sparse = scipy.sparse.csr_matrix((a, col, start), shape=(m, n))

        def by_scipy():
            c[:] = sparse @ b

        make["scipy"] = by_scipy
    return make


def sddmm(case, weft, _mkl):
    m, n, start, col, f = case.m, case.n, case.start, case.col, case.f
    x, y, z = case.array(m, f), case.array(n, f), case.output(len(col))
    zeros = np.zeros(len(col), np.float32)
    csr = lambda v: torch.sparse_csr_tensor(torch.from_numpy(start), torch.from_numpy(col),
                                            torch.from_numpy(v), size=(m, n))
    pattern, out = csr(zeros), csr(z)
    tx, ty = torch.from_numpy(x), torch.from_numpy(y).t()
    make = {"weft": case.weft(weft, "sddmm", {"E.start": start, "E.j": col, "X": x, "Y": y, "Z": z})}
    if case.renamed:
        make["renamed"] = case.weft(weft, ROOT / "bench" / "edges.weft",
                                    {"Edge.start": start, "Edge.other": col, "Left": x, "Right": y,
                                     "Score": z})
    make["torch"] = lambda: torch.sparse.sampled_addmm(pattern, tx, ty, beta=0, out=out)
    case.also = out.values  # torch may have put its result elsewhere
    return make


class Case:
    def __init__(self, op, name, graph, f, threads, renamed):
        self.op, self.name, self.f, self.threads, self.renamed = op, name, f, threads, renamed
        self.m, self.n, self.start, self.col = graph
        self.rng = np.random.default_rng(1)
        self.also, self.plan_ms, self.cost, self.held = None, 0, None, []

    def array(self, *shape):
        return self.rng.random(shape, dtype=np.float32) - np.float32(0.5)

    def output(self, *shape):
        self.out = np.zeros(shape, np.float32)
        return self.out

    def weft(self, weft, what, arrays):
        prog, kernel = weft.kernel(op=what) if isinstance(what, str) else weft.kernel(file=what)
        args = weft.bind(prog, arrays)
        run = weft.lib.weft_kernel_run
        run.argtypes = [c_void_p, c_void_p]
        began = time.perf_counter()
        while time.perf_counter() - began < HOT:  # so long that it has compiled all that it will
            weft.call("weft_kernel_run", kernel, args)
        if self.cost is None:
            self.plan_ms = statistics.median(self.plan(weft, prog, kernel, arrays)
                                             for _ in range(3))
            self.cost = weft.cost(args, self.threads)
        self.held += [(weft, prog, kernel, args, arrays)]
        return lambda: run(kernel, args)

    def plan(self, weft, prog, kernel, arrays):
        """Milliseconds that a plan for new structure takes."""
        args, plan = weft.bind(prog, arrays), PlanOf()
        weft.call("weft_kernel_run", kernel, args)
        weft.call("weft_args_plan", args, byref(plan))
        weft.lib.weft_args_free(args)
        return plan.ms

    def free(self):
        for weft, prog, kernel, args, _ in self.held:
            weft.lib.weft_args_free(args)
            weft.lib.weft_kernel_free(kernel)
            weft.lib.weft_prog_free(prog)
        self.held = []

    def verify(self, runs):
        """Every contender against SciPy (in f64 where that is small), else against the first."""
        want = None
        for name, run in runs.items():
            self.out.fill(np.nan)
            run()
            got = self.out
            if self.also is not None and name == "torch":
                got = self.also().numpy()
            if want is None:
                want, scale = got.copy(), np.abs(got).max(initial=1e-30)
                self.check_rows(want)
                continue
            for i in range(0, len(got), 65536):  # without copies of the whole
                worst = np.abs(got[i : i + 65536] - want[i : i + 65536]).max(initial=0)
                if not worst <= 1e-4 * scale:
                    sys.exit(f"{self}: {name} differs by {worst} of {scale}")

    def check_rows(self, got):
        """Some rows of the first result against a plain product in f64."""
        arrays = self.held[0][4]
        for i in np.unique(np.linspace(0, self.m - 1, 200).astype(int)):
            s, e = self.start[i], self.start[i + 1]
            if self.op == "spmm":
                a, b = arrays["A"][s:e].astype(float), arrays["B"][self.col[s:e]].astype(float)
                want, have = a @ b, got[i]
            else:
                want = arrays["Y"][self.col[s:e]].astype(float) @ arrays["X"][i].astype(float)
                have = got[s:e]
            if not np.abs(have - want).max(initial=0) <= 1e-5 * max(1, np.abs(want).max(initial=0)):
                sys.exit(f"{self}: row {i} is wrong")

    def __str__(self):
        return f"{self.op} {self.name} F={self.f} t={self.threads}"


def time_all(runs, seconds):
    """Medians, in seconds.  In turns: a rest, in which threads of the last one go to sleep, one run
    to warm up, then runs for some milliseconds."""
    once, inner, times = {}, {}, {name: [] for name in runs}
    for name, run in runs.items():
        began = time.perf_counter()
        run()
        once[name] = time.perf_counter() - began
        inner[name] = max(1, int(2e-3 / max(once[name], 1e-6)))
    began, rounds = time.perf_counter(), 0
    while rounds < 3 or (time.perf_counter() - began < seconds * len(runs) and rounds < 200):
        for name, run in runs.items():
            time.sleep(0.005)
            if once[name] < WARM:
                run()
            start = time.perf_counter()
            for _ in range(inner[name]):
                run()
            times[name].append((time.perf_counter() - start) / inner[name])
        rounds += 1
    return {name: statistics.median(t) for name, t in times.items()}


def measure(case, weft, mkl, o):
    torch.set_num_threads(case.threads)
    weft.threads(case.threads)
    runs = {"spmm": spmm, "sddmm": sddmm}[case.op](case, weft, mkl)
    case.verify(runs)
    tries = [time_all(runs, o.seconds) for _ in range(o.runs)]
    peers = [name for name in runs if name not in ("weft", "renamed")]
    ratios = [min(t[p] for p in peers) / t["weft"] for t in tries]
    times = {name: statistics.median(t[name] for t in tries) for name in runs}
    case.free()
    return {"op": case.op, "graph": case.name, "m": case.m, "nnz": len(case.col), "F": case.f,
            "threads": case.threads, "ms": {k: v * 1e3 for k, v in times.items()},
            "best": min(peers, key=lambda p: times[p]), "ratio": statistics.median(ratios),
            "lowest": min(ratios), "share": case.cost.limit_s / times["weft"],
            "limit_ms": case.cost.limit_s * 1e3, "predicted_ms": case.cost.predicted_s * 1e3,
            "plan_ms": case.plan_ms}


def mean(values):
    values = list(values)
    return math.exp(statistics.fmean(map(math.log, values))) if values else math.nan


def table(rows, versions):
    """The result as Markdown."""
    names = ["weft", "renamed", "torch", "mkl", "scipy"]
    names = [n for n in names if any(n in r["ms"] for r in rows)]
    out = ["# SpMM and SDDMM beside peers", "", versions, "",
           "Milliseconds, medians. Ratio: best peer / Weft. Limit: see docs/bench.md.", "",
           "| op | graph | F | threads | " + " | ".join(names) +
           " | ratio | lowest | % of limit | model ms | plan ms |",
           "|---" * (9 + len(names)) + "|"]
    for r in rows:
        cells = [f"{r['ms'][n]:.3g}" if n in r["ms"] else "" for n in names]
        out.append(f"| {r['op']} | {r['graph']} | {r['F']} | {r['threads']} | " + " | ".join(cells) +
                   f" | {r['ratio']:.2f} | {r['lowest']:.2f} | {100 * r['share']:.0f} |"
                   f" {r['predicted_ms']:.3g} | {r['plan_ms']:.3g} |")
    out += ["", "| op | threads | cases | mean ratio | lowest ratio | mean % of limit | lowest |",
            "|---" * 7 + "|"]
    for op in sorted({r["op"] for r in rows}, reverse=True):
        for t in sorted({r["threads"] for r in rows}) + [0]:
            part = [r for r in rows if r["op"] == op and t in (0, r["threads"])]
            if part:
                out.append(f"| {op} | {t or 'all'} | {len(part)} | "
                           f"{mean(r['ratio'] for r in part):.2f} | "
                           f"{min(r['lowest'] for r in part):.2f} | "
                           f"{100 * mean(r['share'] for r in part):.0f} | "
                           f"{100 * min(r['share'] for r in part):.0f} |")
    for op in sorted({r["op"] for r in rows if "renamed" in r["ms"]}, reverse=True):
        part = [r["ms"]["renamed"] / r["ms"]["weft"] for r in rows if r["op"] == op]
        out += ["", f"The same {op} from a file, with other names: {mean(part):.3f} of the time."]
    return "\n".join(out) + "\n"


def sources(o):
    found = dict(GENERATED)
    if o.data.is_dir():
        for p in sorted(o.data.glob("*.npz")):
            if {"n"} <= set(np.load(p).files) and {"row", "head"} & set(np.load(p).files):
                found[p.stem] = str(p)
    if not o.graphs:
        return found
    found.update(TINY)
    chosen = {}
    for word in o.graphs:
        hits = {k: v for k, v in found.items() if word in k}
        chosen.update(hits or {word: word})
    return chosen


def main():
    o = options()
    global np, torch, scipy
    import numpy as np
    import scipy.sparse
    import torch

    warnings.filterwarnings("ignore", message="Sparse", category=UserWarning)
    weft = Weft()
    try:
        mkl = Mkl()
    except (StopIteration, OSError) as e:
        mkl = print(f"MKL is left out: {e or 'libmkl_rt is not installed'}", file=sys.stderr)
    versions = (f"weft {weft.lib.weft_version().decode()}, torch {torch.__version__}, "
                f"{mkl.version if mkl else 'no MKL'}, SciPy {scipy.__version__}; "
                f"{platform.machine()}, {os.cpu_count()} CPUs")
    print(versions)
    out, rows = ROOT / "bench" / "out", []
    out.mkdir(exist_ok=True)
    with open(out / f"{o.name}.jsonl", "w") as lines:
        for name, source in sources(o).items():
            graph = weft.graph(source)
            for threads in o.threads:
                for op in o.ops:
                    for f in o.features:
                        r = measure(Case(op, name, graph, f, threads, o.renamed), weft, mkl, o)
                        rows.append(r)
                        print(json.dumps(r), file=lines, flush=True)
                        print(f"{op:5} {name:14} F={f:<3} t={threads}  " +
                              "  ".join(f"{k} {v:.3g}" for k, v in r["ms"].items()) +
                              f" ms  ratio {r['ratio']:.2f}  {100 * r['share']:.0f} % of the limit",
                              flush=True)
    text = table(rows, versions)
    (out / f"{o.name}.md").write_text(text)
    print("\n" + text[text.index("| op | threads | cases"):], end="")
    print(f"written to {out / o.name}.md")


if __name__ == "__main__":
    main()
