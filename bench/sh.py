#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""Spherical harmonics up to a degree, forward and backward, beside e3nn's: verifies against it, then
times in turn, round by round.

    python bench/sh.py [LMAX ...] [--items 10000] [--rounds 15] [--threads 1] [--type f32]
                       [--normalize] [--norm component] [--isa avx2] [--fresh] [--json FILE]

Prints a line a degree: medians in nanoseconds an item of the forward kernel, of the backward kernel
and of e3nn's forward and forward with backward; how many times faster; what the compulsory bytes take
at --gbs, and the seconds that both kernels took to compile (with an empty cache: --fresh)."""

import argparse
import json
import os
import tempfile
import time

from tp import aligned, medians, relative


def kernels(weft, lmax, options):
    program = weft.Program.o3(f"sh; lmax={lmax}; norm={options.norm}; type={options.type}; "
                              f"normalize={'yes' if options.normalize else 'no'}")
    began = time.perf_counter()
    both = program, program.grad()
    return both, [p.compile() for p in both], time.perf_counter() - began


def measure(lmax, options):
    import numpy as np
    import torch
    from e3nn import o3

    import weft

    real = np.float64 if options.type == "f64" else np.float32
    torch.set_num_threads(options.threads)
    torch.set_default_dtype(torch.float64 if options.type == "f64" else torch.float32)
    rng = np.random.default_rng(1)
    n, dim, degrees = options.items, (lmax + 1) ** 2, list(range(lmax + 1))
    data = {k: aligned(np, shape, real, rng.standard_normal(shape))
            for k, shape in (("X", (n, 3)), ("d_Y", (n, dim)))}
    y, d_x = aligned(np, (n, dim), real), aligned(np, (n, 3), real)
    programs, (fwd, bwd), compiled = kernels(weft, lmax, options)
    given = {a.name: data[a.name] for a in programs[1].args if a.name in data}
    x, d_y = torch.from_numpy(data["X"]).requires_grad_(), torch.from_numpy(data["d_Y"])

    def peer():
        return o3.spherical_harmonics(degrees, x, options.normalize, options.norm)

    def peer_forward():
        with torch.no_grad():
            peer()

    runs = {"fwd": lambda: fwd({"X": data["X"]}, out=y), "bwd": lambda: bwd(given, out=d_x),
            "e3nn_fwd": peer_forward, "e3nn_f+b": lambda: torch.autograd.grad(peer(), x, d_y)}
    for run in runs.values():
        for _ in range(3): # TorchScript compiles in the first calls
            run()
    limit = 1e-12 if options.type == "f64" else 1e-5
    want = peer()
    assert relative(np, y, want.detach().numpy()) <= limit
    assert relative(np, d_x, torch.autograd.grad(want, x, d_y)[0].numpy()) <= limit
    ns = {k: v * 1e9 / n for k, v in medians(runs, options.rounds, []).items()}
    size = data["X"].itemsize
    return {"lmax": lmax, "items": n, "type": options.type, "threads": options.threads,
            "normalize": options.normalize, **ns, "x_fwd": ns["e3nn_fwd"] / ns["fwd"],
            "x_f+b": ns["e3nn_f+b"] / (ns["fwd"] + ns["bwd"]),
            "limit_fwd": (3 + dim) * size / options.gbs, "limit_bwd": (6 + dim) * size / options.gbs,
            "compile_s": compiled}


def main():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("lmax", nargs="*", type=int)
    p.add_argument("--items", type=int, default=10000)
    p.add_argument("--rounds", type=int, default=15)
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--type", default="f32")
    p.add_argument("--norm", default="component")
    p.add_argument("--normalize", action="store_true", help="the vectors first")
    p.add_argument("--gbs", type=float, default=19.0, help="of memory, for the limit")
    p.add_argument("--isa", help="the widest vector registers to use")
    p.add_argument("--fresh", action="store_true", help="with an empty cache")
    p.add_argument("--json", help="a file for all figures")
    options = p.parse_args()
    if options.isa:
        os.environ["WEFT_MAX_ISA"] = options.isa
    if options.fresh:
        os.environ["WEFT_CACHE_DIR"] = tempfile.mkdtemp(prefix="weft-sh-")
    os.environ["WEFT_NUM_THREADS"] = str(options.threads)
    rows = [measure(lmax, options) for lmax in options.lmax or (1, 2, 3, 4, 6)]
    for row in rows:
        print("; ".join(f"{k} {v:.3g}" if isinstance(v, float) else f"{k} {v}"
                        for k, v in row.items()))
    if options.json:
        with open(options.json, "w") as out:
            json.dump(rows, out, indent=1)


if __name__ == "__main__":
    main()
