#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""Batched tensor products, forward and backward, beside e3nn: verifies, then times in turn.

    python bench/tp.py [NAME ...] [--items 4000] [--rounds 15] [--threads 1] [--type f32]
                       [--layout mul_ir] [--isa avx2] [--alone] [--schedule TEXT] [--cpu]
    python bench/tp.py 'IN1*IN2>OUT:uvu'           # any other product, item weights
    python bench/tp.py 'IN1*IN2>OUT:uvw:shared'

Prints one CSV line a problem: medians in microseconds an item of the forward and the backward
kernel, the same of e3nn (forward alone, and forward with backward), what the compulsory bytes take
at --gbs, and the seconds of the first compile when the cache is empty (--fresh)."""

import argparse
import os
import statistics
import tempfile
import time

SIX = "+".join(f"32x{l}{p}" for l in range(3) for p in "oe")
OUT_TETRIS = "64x0e+24x1e+24x1o+16x2e+16x2o"
DOCK = "10x1o+10x1e+48x0e+48x0o"
PROBLEMS = {
    "sevennet0-main": "128x0e+64x1e+32x2e*0e+1e+2e>0e+1e+2e:uvu",
    "nequip-lips": f"{SIX}*0e+1o+2e>0o+0e+1o+1e+2o+2e:uvu",
    "mace-medium": "128x0e+128x1o*0e+1o+2e+3o>0e+1o+2e:uvu",
    "mace-large": "128x0e+128x1o+128x2e*0e+1o+2e+3o>0e+1o+2e+3o:uvu",
    "l3i5-main": "128x0e+64x1e+32x2e+32x3e*0e+1e+2e+3e>0e+1e+2e+3e:uvu",
    "tetris-1": f"0e+1o+2e+3o*0e+1o+2e+3o>{OUT_TETRIS}:uvw:shared",
    "diffdock-l1": f"{DOCK}*0e+1o>{DOCK}:uvw",
}


def parse(spec):
    product, mode, *rest = spec.split(":")
    ins, out = product.split(">")
    in1, in2 = ins.split("*")
    return in1, in2, out, mode, "shared" if rest == ["shared"] else "item"


def program(weft, spec, options):
    in1, in2, out, mode, weights = parse(spec)
    return weft.Program.o3(f"tp; in1={in1}; in2={in2}; out={out}; mode={mode}; weights={weights}; "
                           f"type={options.type}; layout={options.layout}")


def e3nn_product(spec):
    from e3nn import o3

    in1, in2, out, mode, weights = parse(spec)
    in1, in2, keep = o3.Irreps(in1), o3.Irreps(in2), o3.Irreps(out)
    if mode == "uvw":
        return o3.FullyConnectedTensorProduct(in1, in2, keep, shared_weights=weights == "shared",
                                              internal_weights=False)
    allowed = {ir for _, ir in keep}
    slots, paths = [], []
    for i, (mul, a) in enumerate(in1):
        for j, (_, b) in enumerate(in2):
            for c in a * b:
                if c in allowed:
                    paths.append((i, j, len(slots), mode, True))
                    slots.append((mul, c))
    slots, order, _ = o3.Irreps(slots).sort()
    paths = sorted([(i, j, order[k], m, t) for i, j, k, m, t in paths], key=lambda x: x[2])
    return o3.TensorProduct(in1, in2, slots, paths, shared_weights=weights == "shared",
                            internal_weights=False)


clock = time.perf_counter


def median_of(run, rounds):
    times = []
    for _ in range(rounds + 2):
        began = clock()
        run()
        times.append(clock() - began)
    return statistics.median(times[2:])


def aligned(np, shape, real, fill=None):
    """An array that begins at a cache line, as those of torch do and those of NumPy need not."""
    n = int(np.prod(shape)) * np.dtype(real).itemsize
    block = np.empty(n + 64, np.uint8)
    start = -block.ctypes.data % 64
    out = block[start:start + n].view(real).reshape(shape)
    if fill is not None:
        out[...] = fill
    return out


def relative(np, got, want):
    got, want = (np.asarray(a, np.float64).reshape(-1) for a in (got, want))
    return float(np.abs(got - want).max() / max(np.abs(want).max(), 1e-30))


def measure(name, spec, options):
    import numpy as np

    import weft

    rng = np.random.default_rng(1)
    double = options.type == "f64"
    real = np.float64 if double else np.float32
    forward = program(weft, spec, options)
    backward = forward.grad()
    began = time.perf_counter()
    kernels = forward.compile(), backward.compile()
    compiled = time.perf_counter() - began
    for kernel in kernels:
        if options.schedule is not None:
            kernel.schedule(options.schedule)
    product, items = None, options.items
    import torch

    torch.set_num_threads(options.threads)
    torch.set_default_dtype(torch.float64 if double else torch.float32)
    product = e3nn_product(spec)
    shared = parse(spec)[4] == "shared"
    shapes = {"X": (items, product.irreps_in1.dim), "Y": (items, product.irreps_in2.dim),
              "Wt": (product.weight_numel,) if shared else (items, product.weight_numel)}
    data = {k: aligned(np, v, real, rng.standard_normal(v)) for k, v in shapes.items()}
    outs = {"Z": aligned(np, (items, product.irreps_out.dim), real)}

    def inputs(prog):
        return {a.name: data[a.name] for a in prog.args if a.name in data}

    outs["d_X"], outs["d_Y"], outs["d_Wt"] = (aligned(np, shapes[k], real) for k in ("X", "Y", "Wt"))
    shape = outs["Z"].shape
    data["d_Z"] = aligned(np, shape, real, rng.standard_normal(shape))
    given = inputs(forward)
    run_f = lambda: kernels[0](given, out=outs["Z"])
    both = inputs(backward)
    grads = {k: outs[k] for k in ("d_X", "d_Y", "d_Wt")}
    run_b = lambda: kernels[1](both, out=grads)
    run_f()
    run_b()
    if options.layout == "mul_ir":
        tensors = {k: torch.from_numpy(v).requires_grad_(k != "d_Z") for k, v in data.items()}
        z = product(tensors["X"], tensors["Y"], tensors["Wt"])
        z.backward(tensors["d_Z"])
        errors = [relative(np, outs["Z"], z.detach().numpy())]
        errors += [relative(np, outs["d_" + k], tensors[k].grad.numpy()) for k in ("X", "Y", "Wt")]
        limit = 1e-12 if double else 1e-5
        assert max(errors) <= limit, (name, errors)
    ours = [median_of(run, options.rounds) * 1e6 / items for run in (run_f, run_b)]
    peer = [float("nan"), float("nan")]
    if not options.alone:
        def e3nn_f():
            with torch.no_grad():
                product(tensors["X"], tensors["Y"], tensors["Wt"])

        def e3nn_fb():
            for k in ("X", "Y", "Wt"):
                tensors[k].grad = None
            product(tensors["X"], tensors["Y"], tensors["Wt"]).backward(tensors["d_Z"])

        peer = [median_of(run, 3) * 1e6 / items for run in (e3nn_f, e3nn_fb)]
    size = data["X"].itemsize
    reads = sum(data[k].size for k in ("X", "Y", "Wt"))
    bytes_f, bytes_b = (reads + outs["Z"].size) * size, (2 * reads + outs["Z"].size) * size
    limit_f, limit_b = (b / options.gbs / 1e3 / items for b in (bytes_f, bytes_b))
    print(f"{name},{items},{ours[0]:.2f},{ours[1]:.2f},{sum(ours):.2f},{peer[0]:.1f},{peer[1]:.1f},"
          f"{limit_f:.2f},{limit_b:.2f},{peer[0] / ours[0]:.1f},{peer[1] / sum(ours):.1f},"
          f"{compiled:.2f}", flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("problems", nargs="*")
    p.add_argument("--items", type=int, default=4000)
    p.add_argument("--rounds", type=int, default=15)
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--type", default="f32")
    p.add_argument("--layout", default="mul_ir")
    p.add_argument("--gbs", type=float, default=19.0, help="of memory, for the limit")
    p.add_argument("--alone", action="store_true", help="without timing e3nn")
    p.add_argument("--fresh", action="store_true", help="with an empty cache")
    p.add_argument("--schedule")
    p.add_argument("--cpu", action="store_true", help="the process' own time: for busy machines")
    p.add_argument("--isa", help="the widest vector registers to use")
    options = p.parse_args()
    if options.cpu:
        global clock
        clock = time.process_time
    if options.isa:
        os.environ["WEFT_MAX_ISA"] = options.isa
    if options.fresh:
        os.environ["WEFT_CACHE_DIR"] = tempfile.mkdtemp(prefix="weft-tp-")
    os.environ["WEFT_NUM_THREADS"] = str(options.threads)
    print("problem,items,fwd_us,bwd_us,f+b_us,e3nn_fwd,e3nn_f+b,limit_fwd,limit_bwd,fwd_x,f+b_x,compile_s")
    for name in options.problems or PROBLEMS:
        measure(name, PROBLEMS.get(name, name), options)


if __name__ == "__main__":
    main()
