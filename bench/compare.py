#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""Is a build of Weft slower than an earlier one?  Times the same problems with two `weft` commands in
turns, and prints old time / new time of each: above 1, the new build is faster.  Ends with the geometric
mean, the worst problem and the same for the time that compilers took.  Exits with 1 when a case is below
--worst or the mean below --mean.

    python3 bench/compare.py OLD/weft build/release/weft
    python3 bench/compare.py OLD/weft build/release/weft --only conv tp --threads 1 --rounds 8
    python3 bench/compare.py --list

Each build starts with an empty cache of kernels.  The first run of each problem compiles, and compares the
results of the new build with the interpreter's.  Then the two builds take turns, and the order changes in
each round.
A problem's figure is the median of the ratios of its rounds.  `busy` is the processor time of a run by its
wall time: far below the number of threads, the machine had something else to do."""

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

POWER = "powerlaw:n=20000:nnz=300000:a=2.1:seed=1"
EVEN = "uniform:n=4000:nnz=200000"
TALL = "powerlaw:n=169000:nnz=1200000:a=2.1:seed=1"
TP = ["sevennet0-main", "l3i5-main", "mace-large", "nequip-lips", "diffdock-l1", "tetris-1"]
CONV = ["sevennet0-main", "mace-large", "nequip-lips"]


def matrices():
    """SpMM, SDDMM, and operators on graphs."""
    for k in (32, 128):
        yield "spmm", f"spmm:{POWER}:k={k}"
        yield "sddmm", f"sddmm:{POWER}:k={k}"
    yield "spmm", f"spmm:{TALL}:k=64"
    yield "spmm", f"spmm:{EVEN}:k=64:f64"
    yield "spmm", f"spmm:csc:{EVEN}:k=64"
    yield "spmm", f"spmm:coo:{EVEN}:k=64"
    yield "sddmm", f"sddmm:{EVEN}:k=64"
    for op in ("softmax", "u_mul_e", "u_dot_v", "segment_max"):
        yield "graph", f"{op}:{POWER}:f=64"
    yield "graph", f"gat:{POWER}:heads=4:f=16"
    yield "graph", f"gatv2:{POWER}:heads=4:f=16"
    yield "graph", f"sage:{POWER}:f=64"


def products():
    """Tensor products and convolutions, with gradients, and gradients of these."""
    for order in ("", ":backward", ":double"):
        for name in TP if order != ":double" else TP[:3]:
            yield "tp", f"tp:{name}:n=1000{order}"
        for name in CONV:
            yield "conv", f"conv:{name}:system=silicon:atoms=216{order}"
    yield "conv", "conv:sevennet0-main:system=silicon:atoms=216:hidden=64"
    yield "conv", "conv:sevennet0-main:system=silicon:atoms=216:hidden=64:backward"


def csr(rng, rows, cols, part):
    mask = rng.random((rows, cols)) < part
    start = np.concatenate([[0], np.cumsum(mask.sum(1))]).astype(np.int32)
    return start, np.nonzero(mask)[1].astype(np.int32)


class Files:
    """Programs and structures that are no graph, written into a folder."""

    def __init__(self, weft, folder):
        self.weft, self.folder, self.rng = weft, Path(folder), np.random.default_rng(1)

    def program(self, name, *args, grad=False):
        text = subprocess.run([self.weft, *args], check=True, capture_output=True, text=True).stdout
        if grad:
            text = subprocess.run([self.weft, "grad"], check=True, input=text, capture_output=True,
                                  text=True).stdout
        path = self.folder / f"{name}.weft"
        path.write_text(text)
        return path

    def arrays(self, name, **arrays):
        path = self.folder / f"{name}.npz"
        np.savez(path, **{k.replace("_", "."): v for k, v in arrays.items()})
        return path

    def problem(self, name, sizes, arrays, *args, grad=False):
        program = self.program(name, *args, grad=grad)
        return f"file:{program}:data={self.arrays(name, **arrays)}:{sizes}"

    def pruned(self):
        start, j = csr(self.rng, 768, 768, 1 / 8)
        sizes = "nout=768:nin=768:tokens=512"
        yield "pruned", self.problem("linear", sizes, dict(E_start=start, E_j=j), "op", "sparse_linear")
        start, j = csr(self.rng, 48, 48, 1 / 8)
        for grad in (False, True):
            name = "linear_bsr" + ("_grad" if grad else "")
            yield "pruned", self.problem(name, "ob=48:ib=48:tokens=512", dict(E_start=start, E_j=j),
                                         "op", "sparse_linear:bsr", grad=grad)

    def attention(self):
        heads, n, w = 4, 16, 3
        j = np.full((heads * n, w), -1, np.int32)
        for q in range(heads * n):  # queries in tiles of 16, keys in blocks of 64
            near = [b for b in range(n // 4) if abs(b - q % n // 4) <= 1]
            j[q, : len(near)] = near
        arrays = dict(L_j=j, L_pat=np.where(j < 0, -1, 0).astype(np.int32))
        sizes = f"heads={heads}:nq={n}:nk={n // 4}:np=1:d=64:dv=64"
        for grad in (False, True):
            name = "attention" + ("_grad" if grad else "")
            yield "attention", self.problem(name, sizes, arrays, "op", f"attention:w={w}", grad=grad)

    def conv3d(self):
        strips, k, of = 64, 27, 64
        sites = strips * of
        d = np.tile(np.arange(k, dtype=np.int32), strips)
        near = self.rng.random((strips * k, of)) < 1 / 3
        start = np.concatenate([[0], np.cumsum(near.sum(1))]).astype(np.int32)
        r = np.nonzero(near)[1].astype(np.int32)
        v = self.rng.integers(0, sites, len(r)).astype(np.int32)
        arrays = dict(G_start=(np.arange(strips + 1) * k).astype(np.int32), G_d=d, E_start=start,
                      E_r=r, E_v=v)
        sizes = f"strips={strips}:vin={sites}:k={k}:ci=32:co=32"
        for grad in (False, True):
            name = "conv3d" + ("_grad" if grad else "")
            yield "conv3d", self.problem(name, sizes, arrays, "op", f"conv3d:strip={of}", grad=grad)

    def harmonics(self):
        for l in (2, 4):
            for grad in (False, True):
                name = f"sh{l}" + ("_grad" if grad else "")
                yield "sh", self.problem(name, "n=100000", {}, "sh", str(l), grad=grad)

    def contraction(self):
        for grad in (False, True):
            name = "contraction" + ("_grad" if grad else "")
            yield "contraction", self.problem(
                name, "n=10000:ne=4", {}, "tp", "--form", "contraction", "--in1", "32x0e+32x1o",
                "--out", "32x0e", "--correlation", "3", grad=grad)

    def all(self):
        for family in (self.pruned, self.attention, self.conv3d, self.harmonics, self.contraction):
            yield from family()


def spread(problems):
    """One of each family after the other, so that a run that is cut short has seen all of them."""
    families = {}
    for family, problem in problems:
        families.setdefault(family, []).append((family, problem))
    lists = list(families.values())
    for i in range(max(map(len, lists), default=0)):
        for one in lists:
            yield from one[i : i + 1]


def label(problem):
    """The problem without the folder of its files."""
    words = [w for w in problem.split(":") if not w.startswith("data=")]
    return ":".join(Path(w).name if "/" in w else w for w in words)


class Build:
    def __init__(self, weft, folder):
        self.weft = weft
        self.env = {**os.environ, "WEFT_CACHE_DIR": str(folder)}

    def bench(self, problem, seconds, verify=False):
        """The record of a run, with its processor and wall time; None: it failed, and said why."""
        cmd = [self.weft, "bench", "--json", "--seconds", str(seconds), problem]
        begin = time.perf_counter()
        p = subprocess.Popen(cmd + ([] if verify else ["--no-verify"]), env=self.env, text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        out, err = p.stdout.read(), p.stderr.read()
        _, status, used = os.wait4(p.pid, 0)
        p.returncode = os.waitstatus_to_exitcode(status)
        if p.returncode != 0 or not out.strip():
            lines = err.strip().splitlines() or [f"exit code {p.returncode}"]
            return None, lines[-1][:100]
        record = json.loads(out.strip().splitlines()[-1])
        record["cpu"] = used.ru_utime + used.ru_stime
        record["wall"] = time.perf_counter() - begin
        return record, None


def geometric(ratios):
    return math.exp(statistics.fmean(map(math.log, ratios)))


def compare(problem, builds, options):
    """Times of the two builds, ratio old / new, its lowest and highest, that of compiling, and busy."""
    cold = []
    for build in builds:
        record, why = build.bench(problem, 0, verify=build is builds[1] and not options.no_verify)
        if record is None:
            return None, f"{build.weft}: {why}"
        cold.append(record["compile_ms"])
    times, busy = ([], []), []
    for turn in range(options.rounds):
        for i in (0, 1) if turn % 2 == 0 else (1, 0):
            record, why = builds[i].bench(problem, options.seconds)
            if record is None:
                return None, f"{builds[i].weft}: {why}"
            times[i].append(record["ms"])
            busy.append(record["cpu"] / record["wall"])
    ratio = sorted(a / b for a, b in zip(*times))
    return dict(problem=label(problem), old_ms=statistics.median(times[0]),
                new_ms=statistics.median(times[1]), ratio=statistics.median(ratio), low=ratio[0],
                high=ratio[-1], compile_old_ms=cold[0], compile_new_ms=cold[1],
                busy=statistics.median(busy)), None


def show(case, as_json):
    if as_json:
        print(json.dumps(case), flush=True)
        return
    print("{ratio:6.3f}  {low:5.2f}-{high:5.2f} {old_ms:10.4f} {new_ms:10.4f} {compile_old_ms:8.0f} "
          "{compile_new_ms:8.0f} {busy:5.2f}  {problem}".format(**case), flush=True)


def options():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("old", nargs="?", help="the earlier weft command")
    p.add_argument("new", nargs="?", help="the one in question")
    p.add_argument("--only", nargs="+", metavar="WORD", default=[],
                   help="families, or parts of problems, of which one is enough")
    p.add_argument("--problem", nargs="+", default=[], help="these problems of `weft bench` instead")
    p.add_argument("--threads", type=lambda s: [int(w) for w in s.split(",")], default=[1])
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--seconds", type=float, default=0.2, help="of timing in each round")
    p.add_argument("--minutes", type=float, default=10, help="begin no problem after so long")
    p.add_argument("--mean", type=float, default=1.0, help="the least geometric mean")
    p.add_argument("--worst", type=float, default=0.95, help="the least ratio of a problem")
    p.add_argument("--no-verify", action="store_true", help="do not compare results")
    p.add_argument("--json", action="store_true", help="an object a line")
    p.add_argument("--list", action="store_true", help="the problems, and nothing else")
    o = p.parse_args()
    if not o.list and o.new is None:
        p.error("two weft commands are needed; --list shows the problems")
    return o


def chosen(o, folder):
    if o.problem:
        every = [("given", problem) for problem in o.problem]
    else:
        weft = o.new or o.old or str(Path(__file__).resolve().parent.parent / "build/release/weft")
        every = [*matrices(), *products(), *Files(weft, folder).all()]
    for family, problem in spread(every):
        if not o.only or any(w == family or w in label(problem) for w in o.only):
            yield from ((family, f"{problem}:t={t}") for t in o.threads)


def main():
    o = options()
    with tempfile.TemporaryDirectory() as folder:
        problems = list(chosen(o, folder))
        if o.list:
            print("\n".join(f"{family:12} {label(problem)}" for family, problem in problems))
            return 0
        builds = [Build(w, Path(folder) / name) for w, name in ((o.old, "old"), (o.new, "new"))]
        if not o.json:
            print("ratio   of rounds       old ms     new ms compile:old    new  busy  problem")
        begin, cases, left = time.monotonic(), [], []
        for _, problem in problems:
            if time.monotonic() - begin > 60 * o.minutes:
                left.append(label(problem))
                continue
            case, why = compare(problem, builds, o)
            if case is None:
                left.append(f"{label(problem)} ({why})")
            else:
                cases.append(case)
                show(case, o.json)
    for name in left:
        print(f"left out: {name}", file=sys.stderr)
    if not cases:
        return 1
    mean, worst = geometric([c["ratio"] for c in cases]), min(cases, key=lambda c: c["ratio"])
    compiling = geometric([c["compile_old_ms"] / c["compile_new_ms"] for c in cases])
    print(f"{len(cases)} problems: geometric mean {mean:.3f}, worst {worst['ratio']:.3f} "
          f"({worst['problem']}); compile time old / new {compiling:.3f}; {len(left)} left out")
    return int(mean < o.mean or worst["ratio"] < o.worst)


if __name__ == "__main__":
    sys.exit(main())
