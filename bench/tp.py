#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""Batched tensor products, forward, backward and double backward, beside e3nn and, where it is
installed, cuEquivariance (its `naive` method, the one that it has for CPUs): verifies against e3nn,
then times in turn, round by round.

    python bench/tp.py [NAME ...] [--items 4000] [--rounds 9] [--threads 1] [--type f32] [--double]
                       [--layout mul_ir] [--isa avx2] [--alone] [--schedule TEXT] [--json FILE]
    python bench/tp.py 'IN1*IN2>OUT:uvu'           # any other product, item weights
    python bench/tp.py 'IN1*IN2>OUT:uvw:shared'

Prints a line a problem: medians in microseconds an item of the forward kernel, of forward with
backward and, with --double, of the double backward; the same of the peers (whose double backward is
timed with all it needs: forward, backward, and the gradient of that); how many times faster than the
better peer; what the compulsory bytes take at --gbs, and the seconds of the first compile (with an
empty cache: --fresh). The last line has geometric means."""

import argparse
import json
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


class Peer:
    """A product of torch: times(kind) runs it once."""

    def __init__(self, torch, product, tensors):
        self.torch, self.product, self.t = torch, product, tensors
        self.inputs = [tensors[k] for k in ("X", "Y", "Wt")]

    def forward(self):
        with self.torch.no_grad():
            self.product(*self.inputs)

    def both(self):
        self.torch.autograd.grad(self.product(*self.inputs), self.inputs, self.t["d_Z"])

    def double(self):
        grad, d_z = self.torch.autograd.grad, self.t["d_Z"].detach().requires_grad_()
        first = grad(self.product(*self.inputs), self.inputs, d_z, create_graph=True)
        grad(first, self.inputs + [d_z], [self.t["u_" + k] for k in ("X", "Y", "Wt")])


def cue_product(spec, dtype):
    import cuequivariance as cue
    import cuequivariance_torch as cuet

    in1, in2, out, mode, weights = parse(spec)
    in1, in2, out = (cue.Irreps("O3", i) for i in (in1, in2, out))
    how = dict(shared_weights=weights == "shared", internal_weights=False, layout=cue.mul_ir,
               method="naive", dtype=dtype)
    if mode == "uvw":
        return cuet.FullyConnectedTensorProduct(in1, in2, out, **how)
    return cuet.ChannelWiseTensorProduct(in1, in2, [ir for _, ir in out], **how)


def peers_of(torch, spec, product, tensors):
    peers = {"e3nn": Peer(torch, product, tensors)}
    try:
        cue = cue_product(spec, tensors["X"].dtype)
    except ImportError:
        return peers
    t = dict(tensors)
    if parse(spec)[4] == "shared": # which has a row of weights for all items
        t["Wt"] = t["Wt"].detach().reshape(1, -1).requires_grad_()
        t["u_Wt"] = t["u_Wt"].reshape(1, -1)
    peers["cue"] = Peer(torch, cue, t)
    return peers


clock = time.perf_counter


def medians(runs, rounds, slow):
    """Of functions by name, in turns; those in `slow` in few of them."""
    times = {k: [] for k in runs}
    for r in range(rounds + 1):
        for k, run in runs.items():
            if k in slow and r > 3:
                continue
            began = clock()
            run()
            times[k].append(clock() - began)
    return {k: statistics.median(v[1:]) for k, v in times.items()}


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


def arrays(np, product, spec, options):
    rng = np.random.default_rng(1)
    real = np.float64 if options.type == "f64" else np.float32
    items, shared = options.items, parse(spec)[4] == "shared"
    shapes = {"X": (items, product.irreps_in1.dim), "Y": (items, product.irreps_in2.dim),
              "Wt": (product.weight_numel,) if shared else (items, product.weight_numel),
              "d_Z": (items, product.irreps_out.dim)}
    shapes.update({"u_" + k: shapes[k] for k in ("X", "Y", "Wt")})
    return {k: aligned(np, v, real, rng.standard_normal(v)) for k, v in shapes.items()}


def run_of(np, kernel, prog, data):
    """A run of a kernel with these data, outputs in arrays of their own.  d_X is like X; of a double
    backward d2_X and d2_d_Z are gradients, and d2_d_X, here u_X, is what d_X is multiplied by."""
    given, outs = {}, {}
    for a in prog.args:
        name = a.name
        if name in ("d2_d_X", "d2_d_Y", "d2_d_Wt"):
            given[name] = data["u" + name[4:]]
        elif name in data:
            given[name] = data[name]
        elif name != "n":
            like = {"Z": "d_Z", "d2_d_Z": "d_Z"}.get(name, name[name.find("_") + 1:])
            outs[name] = aligned(np, data[like].shape, data[like].dtype)
    return (lambda: kernel(given, out=outs if len(outs) > 1 else outs["Z"])), outs


def verify(np, torch, name, product, t, outs, options):
    inputs, d_z = [t[k] for k in ("X", "Y", "Wt")], t["d_Z"].detach().requires_grad_()
    z = product(*inputs)
    first = torch.autograd.grad(z, inputs, d_z, create_graph=options.double)
    want = {"Z": z, "d_X": first[0], "d_Y": first[1], "d_Wt": first[2]}
    if options.double:
        further = torch.autograd.grad(first, inputs + [d_z], [t["u_" + k] for k in ("X", "Y", "Wt")])
        want.update(zip(("d2_X", "d2_Y", "d2_Wt", "d2_d_Z"), further))
    limit = 1e-12 if options.type == "f64" else 1e-5
    for part in outs.values():
        for k, v in part.items():
            error = relative(np, v, want[k].detach().numpy())
            assert error <= limit, (name, k, error)


def measure(name, spec, options):
    import numpy as np
    import torch

    import weft

    torch.set_num_threads(options.threads)
    torch.set_default_dtype(torch.float64 if options.type == "f64" else torch.float32)
    product = e3nn_product(spec)
    data = arrays(np, product, spec, options)
    tensors = {k: torch.from_numpy(v).requires_grad_(k in ("X", "Y", "Wt"))
               for k, v in data.items()}
    programs = {"fwd": program(weft, spec, options)}
    programs["bwd"] = programs["fwd"].grad()
    if options.double:
        programs["double"] = programs["bwd"].grad()
    began = time.perf_counter()
    kernels = {k: p.compile() for k, p in programs.items()}
    compiled = time.perf_counter() - began
    runs, outs = {}, {}
    for k, kernel in kernels.items():
        if options.schedule is not None:
            kernel.schedule(options.schedule)
        runs[k], outs[k] = run_of(np, kernel, programs[k], data)
        runs[k]()
    if options.layout == "mul_ir":
        verify(np, torch, name, product, tensors, outs, options)
    if not options.alone:
        for who, peer in peers_of(torch, spec, product, tensors).items():
            runs.update({(who, "fwd"): peer.forward, (who, "f+b"): peer.both})
            if options.double:
                runs[who, "double"] = peer.double
    us = {k: v * 1e6 / options.items
          for k, v in medians(runs, options.rounds, [k for k in runs if len(k) == 2]).items()}
    report(name, us, data, compiled, options)


def report(name, us, data, compiled, options):
    size = data["X"].itemsize
    reads = sum(data[k].size for k in ("X", "Y", "Wt"))
    limits = [(r * reads + data["d_Z"].size) * size / options.gbs / 1e3 / options.items for r in (1, 2)]
    ours = {"fwd": us["fwd"], "f+b": us["fwd"] + us["bwd"]}
    if options.double:
        ours["double"] = sum(us[k] for k in ("fwd", "bwd", "double"))
    row = {"problem": name, "items": options.items, "type": options.type,
           "threads": options.threads, "fwd": us["fwd"], "bwd": us["bwd"], "double": us.get("double"),
           "limit_fwd": limits[0], "limit_bwd": limits[1], "compile_s": compiled}
    for kind, mine in ours.items():
        times = {k[0]: v for k, v in us.items() if isinstance(k, tuple) and k[1] == kind}
        row.update({f"{who}_{kind}": v for who, v in times.items()})
        if times:
            row[f"x_{kind}"] = min(times.values()) / mine
    text = [f"{k} {v:.3g}" if isinstance(v, float) else f"{k} {v}" for k, v in row.items()
            if v is not None]
    print("; ".join(text), flush=True)
    ROWS.append(row)


def means(options):
    """Geometric means of how many times faster: of forward and forward with backward together, and
    of the double backward; how far they are above the limit."""
    def mean(values):
        return statistics.geometric_mean(values) if values else float("nan")

    both = [r[k] for r in ROWS for k in ("x_fwd", "x_f+b") if k in r]
    above = [v for r in ROWS for v in (r["fwd"] / r["limit_fwd"], (r["fwd"] + r["bwd"]) /
                                       (r["limit_fwd"] + r["limit_bwd"]))]
    print(f"means: {mean(both):.3g} times the better peer; double backward "
          f"{mean([r['x_double'] for r in ROWS if 'x_double' in r]):.3g}; "
          f"{mean(above):.3g} times the limit")
    if options.json:
        with open(options.json, "w") as out:
            json.dump(ROWS, out, indent=1)


ROWS = []


def main():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("problems", nargs="*")
    p.add_argument("--items", type=int, default=4000)
    p.add_argument("--rounds", type=int, default=9)
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--type", default="f32")
    p.add_argument("--layout", default="mul_ir")
    p.add_argument("--gbs", type=float, default=19.0, help="of memory, for the limit")
    p.add_argument("--double", action="store_true", help="the double backward too")
    p.add_argument("--json", help="a file for all figures")
    p.add_argument("--alone", action="store_true", help="without timing peers")
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
    # threads of a peer would else wait for more of its work on the CPUs of the next in turn
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    for name in options.problems or PROBLEMS:
        measure(name, PROBLEMS.get(name, name), options)
    means(options)


if __name__ == "__main__":
    main()
