#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""Equivariant convolutions over neighbours of atoms, beside e3nn as models run it (gather, product,
index_add) and beside cuEquivariance's products in chunks of edges, where that is installed: verifies,
then times in turn.

    python bench/conv.py [NAME ...] [--system silicon water oxide] [--atoms 64 512] [--type f32]
                         [--threads 1] [--rounds 7] [--layout mul_ir] [--hidden 64] [--double]
                         [--no-peers] [--most 20000] [--json]
    python bench/conv.py 'IN1*IN2>OUT'                # any other product, mode uvu
    python bench/conv.py --grid [NAME ...]            # all systems, 64 to 5,000 atoms, both types, 1 and 2
                                                      # threads; then how figures grow with the atoms

One line a case: medians in microseconds an edge of forward, backward and both; of double backward with
--double; the same of the peers (forward, and forward with backward) and how many times longer that is;
peak memory beyond operands and results, in MB, of forward and backward.  Peers stay out above --most
edges.

With --hidden, too: weights by torch into a new array and then Weft's convolution (mm_f), by Weft into one
that is there (two_f, and with gradients by torch's products into arrays that are there two_b), and how many
times longer that is (mm_f_x, two_f_x, two_b_x)."""

import argparse
import itertools
import json
import statistics
import subprocess
import sys
import time

SIX = "+".join(f"32x{l}{p}" for l in range(3) for p in "oe")
PROBLEMS = {
    "sevennet0-main": "128x0e+64x1e+32x2e*0e+1e+2e>0e+1e+2e",
    "l3i5-main": "128x0e+64x1e+32x2e+32x3e*0e+1e+2e+3e>0e+1e+2e+3e",
    "mace-medium": "128x0e+128x1o*0e+1o+2e+3o>0e+1o+2e",
    "mace-large": "128x0e+128x1o+128x2e*0e+1o+2e+3o>0e+1o+2e+3o",
    "nequip-lips": f"{SIX}*0e+1o+2e>0o+0e+1o+1e+2o+2e",
}
SYSTEMS = {"silicon": ("silicon", 8), "oxide": ("srtio3", 5)}
CHUNK = 512
OPERANDS = ("x", "y", "weight", "matrix")
OWN = "48x0e+24x1o+12x2e*0e+1o+2e>0e+1o+2e"  # of no model
HIDDEN = ["mm_f", "two_f", "two_b"]
COLUMNS = ["fwd", "bwd", "f+b", "double", "e3nn_f", "e3nn_fb", "chunk_f", "chunk_fb", "e3nn_f_x",
           "e3nn_fb_x", "chunk_f_x", "chunk_fb_x", "mb", "e3nn_mb", "plan_ms", "error",
           *HIDDEN, *(f"{n}_x" for n in HIDDEN)]


def irreps_of(spec):
    ins, out = spec.split(">")
    return (*ins.split("*"), out)


def graph_of(weft, system, atoms, cutoff):
    if system == "water":
        source = f"water:molecules={max(atoms // 3, 1)}"
    else:
        name, cube = SYSTEMS.get(system, (system, 8))
        side = max(round((atoms / cube) ** (1 / 3)), 1)
        rest = max(round(atoms / cube / side ** 2), 1)
        source = f"crystal:{name}:n1={side}:n2={side}:n3={rest}:rattle=0.05"
    made = weft.atoms(source)
    found = weft.neighbours(made.positions, made.cell, made.pbc, cutoff,
                            want=("receiver", "sender", "vectors"))
    return len(made.positions), found


class Peak:
    """The most memory that the process had at a time, beyond what it had before, in MB."""

    def __enter__(self):
        with open("/proc/self/clear_refs", "w") as f:
            f.write("5")
        self.before = self.read("VmRSS")
        return self

    def __exit__(self, *_):
        self.mb = (self.read("VmHWM") - self.before) / 1024

    @staticmethod
    def read(key):
        with open("/proc/self/status") as f:
            return next(int(line.split()[1]) for line in f if line.startswith(key + ":"))


class Weft:
    def __init__(self, weft, spec, options, arrays, nodes, ends):
        import numpy as np

        self.conv = weft.Convolution(*irreps_of(spec), mode="uvu", dtype=options.type,
                                     layout=options.layout, hidden=options.hidden)
        began = time.perf_counter()
        self.edges = weft.Edges(*ends, nodes)
        self.plan_ms = (time.perf_counter() - began) * 1e3
        self.at = arrays
        self.dz = arrays["dz"]
        self.out = aligned(np, self.dz.shape, self.dz.dtype)
        self.names = [n for n in OPERANDS if n in arrays]
        self.grads = {n: aligned(np, arrays[n].shape, self.dz.dtype) for n in self.names}
        self.more = {n: aligned(np, arrays[n].shape, self.dz.dtype)
                     for n in ["dz", *self.names] if options.double}
        for array in (self.out, *self.grads.values(), *self.more.values()):
            array.fill(0)  # so that memory is there before anything is measured
        one = weft.Edges([0], [0], 1)  # and the code
        row = {n: a if n == "matrix" else a[:1] for n, a in self.operands().items()}
        self.conv(one, **row)
        self.conv.backward(one, self.dz[:1], **row)

    def operands(self):
        return {n: self.at[n] for n in self.names}

    def forward(self):
        return self.conv(self.edges, **self.operands(), out=self.out)

    def backward(self):
        return self.conv.backward(self.edges, self.dz, **self.operands(), out=self.grads)

    def double(self):
        along = {f"dd{n}": self.at[n] for n in self.names}
        return self.conv.double_backward(self.edges, self.dz, **self.operands(), **along,
                                         out=self.more)


class TwoKernels:
    """Weights in an array of edges x weights: by torch's product and by Weft's, then a convolution."""

    def __init__(self, weft, torch, spec, options, arrays, edges):
        import numpy as np

        self.torch, self.at, self.edges = torch, arrays, edges
        self.plain = weft.Convolution(*irreps_of(spec), mode="uvu", dtype=options.type,
                                      layout=options.layout)
        self.product = weft.Program(
            "program weights(edges)\n"
            f"axis E = edges, L = {options.hidden}, U = {arrays['matrix'].shape[1]}\n"
            f"{options.type} H[E, L], M[L, U], W[E, U]\n"
            "w: W[e, u] += H[e, l] * M[l, u]\n").compile()
        self.h, self.m = (torch.from_numpy(arrays[n]) for n in ("weight", "matrix"))
        self.w = np.zeros((len(arrays["weight"]), arrays["matrix"].shape[1]), arrays["x"].dtype)
        self.z = np.zeros_like(arrays["dz"])
        self.d = {"x": np.zeros_like(arrays["x"]), "y": np.zeros_like(arrays["y"]),
                  "weight": np.zeros_like(self.w)}
        self.dh, self.dm = torch.zeros_like(self.h), torch.zeros_like(self.m)

    def run(self, w):
        return self.plain(self.edges, self.at["x"], self.at["y"], w, out=self.z)

    def fresh(self):
        return self.run((self.h @ self.m).numpy())

    def reused(self):
        self.product(H=self.at["weight"], M=self.at["matrix"], out={"W": self.w})
        return self.run(self.w)

    def backward(self):
        torch = self.torch
        torch.mm(self.h, self.m, out=torch.from_numpy(self.w))
        self.plain.backward(self.edges, self.at["dz"], self.at["x"], self.at["y"], self.w, out=self.d)
        dw = torch.from_numpy(self.d["weight"])
        torch.mm(dw, self.m.T, out=self.dh)
        torch.mm(self.h.T, dw, out=self.dm)
        return {**self.d, "weight": self.dh.numpy(), "matrix": self.dm.numpy()}


class Peer:
    """torch tensors of the same arrays; the product of each peer is in `product`."""

    def __init__(self, torch, arrays, ends, nodes):
        self.torch = torch
        self.t = {n: torch.from_numpy(a) for n, a in arrays.items()}
        self.receiver, self.sender = (torch.from_numpy(e.astype("int64")) for e in ends)
        self.nodes = nodes
        self.names = [n for n in OPERANDS if n in arrays]


class E3nn(Peer):
    """As models run it: every edge at once."""

    def __init__(self, conv, *more):
        super().__init__(*more)
        from e3nn import o3

        paths = [(int(a), int(b), int(c), mode, True) for a, b, c, mode, *_ in conv.paths]
        self.product = o3.TensorProduct(*(str(conv.irreps[k]) for k in ("in1", "in2", "out")), paths,
                                        shared_weights=False, internal_weights=False)

    def run(self, x, y, w, m=None):
        message = self.product(x[self.sender], y, w if m is None else w @ m)
        return message.new_zeros(self.nodes, message.shape[1]).index_add(0, self.receiver, message)

    def forward(self):
        with self.torch.no_grad():
            return self.run(*(self.t[n] for n in self.names))

    def both(self):
        leaf = [self.t[n].detach().requires_grad_() for n in self.names]
        z = self.run(*leaf)
        return z, self.torch.autograd.grad(z, leaf, self.t["dz"])


class Chunks(Peer):
    """cuEquivariance's naive products, 512 edges at a time, so that messages stay in the caches."""

    def __init__(self, conv, layout, *more):
        super().__init__(*more)
        import cuequivariance as cue
        import cuequivariance_torch as cuet

        irreps = [cue.Irreps("O3", str(conv.irreps[k])) for k in ("in1", "in2")]
        keep = cue.Irreps("O3", "+".join(sorted({str(s).split("x")[1] for s in
                                                 str(conv.irreps_out).split("+")})))
        self.product = cuet.ChannelWiseTensorProduct(
            *irreps, [ir for _, ir in keep], shared_weights=False, internal_weights=False,
            layout=getattr(cue, layout), method="naive", dtype=self.t["x"].dtype)
        self.z = self.t["dz"].new_empty(self.nodes, self.product.irreps_out.dim)
        self.grads = [self.torch.empty_like(self.t[n]) for n in self.names]

    def cut(self, k):
        s = slice(k, k + CHUNK)
        return s, self.sender[s], self.receiver[s]

    def message(self, x, y, w, m=None):
        return self.product(x, y, w if m is None else w @ m)

    def forward(self):
        self.z.zero_()
        with self.torch.no_grad():
            for k in range(0, len(self.sender), CHUNK):
                s, sender, receiver = self.cut(k)
                part = self.message(self.t["x"][sender], self.t["y"][s], self.t["weight"][s],
                                    self.t.get("matrix"))
                self.z.index_add_(0, receiver, part)
        return self.z

    def both(self):
        grads = self.grads
        grads[0].zero_()
        if "matrix" in self.t:
            grads[3].zero_()
        self.z.zero_()
        for k in range(0, len(self.sender), CHUNK):
            s, sender, receiver = self.cut(k)
            leaf = [a.detach().requires_grad_() for a in
                    (self.t["x"][sender], self.t["y"][s], self.t["weight"][s])]
            if "matrix" in self.t:
                leaf.append(self.t["matrix"].detach().requires_grad_())
            message = self.message(*leaf)
            self.z.index_add_(0, receiver, message.detach())
            d = self.torch.autograd.grad(message, leaf, self.t["dz"][receiver])
            grads[0].index_add_(0, sender, d[0])
            grads[1][s], grads[2][s] = d[1], d[2]
            if "matrix" in self.t:
                grads[3] += d[3]
        return self.z, grads


def relative(np, got, want):
    want = np.asarray(want)
    return float(np.abs(got - want).max() / max(np.abs(want).max(), 1e-30))


def time_in_turn(runs, rounds):
    """Medians by name, in seconds; each run is warmed up first."""
    times = {name: [] for name in runs}
    for run in runs.values():
        run()
    for _ in range(rounds):
        for name, run in runs.items():
            began = time.perf_counter()
            run()
            times[name].append(time.perf_counter() - began)
    return {name: statistics.median(t) for name, t in times.items()}


def arrays_of(np, conv_dims, nodes, edges, real, hidden):
    rng = np.random.default_rng(1)
    x, y, w, z = conv_dims
    shapes = {"x": (nodes, x), "y": (edges, y), "weight": (edges, hidden or w), "dz": (nodes, z)}
    if hidden:
        shapes["matrix"] = (hidden, w)
    made = {n: aligned(np, s, real) for n, s in shapes.items()}
    for array in made.values():
        array[...] = rng.standard_normal(array.shape, dtype=np.float32)
    return made


def aligned(np, shape, dtype):
    """At a line of the caches, as arrays of torch and of Weft are: NumPy's own are at 16 bytes."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    room = np.empty(size + 64, np.uint8)
    return room[-room.ctypes.data % 64:][:size].view(dtype).reshape(shape)


def measure(name, system, atoms, options):
    import numpy as np
    import torch

    import weft

    spec = PROBLEMS.get(name, name)
    real = np.float64 if options.type == "f64" else np.float32
    torch.set_default_dtype(torch.float64 if options.type == "f64" else torch.float32)
    nodes, found = graph_of(weft, system, atoms, options.cutoff)
    ends, edges = (found.receiver, found.sender), len(found.receiver)
    shape = weft.Convolution(*irreps_of(spec), mode="uvu")
    dims = [shape.irreps["in1"].dim, shape.irreps["in2"].dim, shape.weight_numel, shape.irreps["out"].dim]
    if 2 * edges * (options.hidden or dims[2]) * np.dtype(real).itemsize > options.gb * 1e9:
        return None
    arrays = arrays_of(np, dims, nodes, edges, real, options.hidden)
    ours = Weft(weft, spec, options, arrays, nodes, ends)
    runs = {"fwd": ours.forward, "bwd": ours.backward}
    if options.double:
        runs["double"] = ours.double
    row = {"problem": name, "system": system, "atoms": nodes, "edges": edges, "type": options.type,
           "threads": options.threads, "plan_ms": ours.plan_ms}
    with Peak() as peak:
        ours.forward()
        grads = ours.backward()
    row["mb"] = peak.mb
    if options.peers and edges <= options.most:
        one = {n: a if n == "matrix" else a[:1] for n, a in arrays.items()}
        E3nn(ours.conv, torch, one, [np.zeros(1, int)] * 2, 1).both()  # its code
        e3nn = E3nn(ours.conv, torch, arrays, ends, nodes)
        with Peak() as peak:
            z, d = e3nn.both()
        row["e3nn_mb"] = peak.mb - sum(a.nbytes for a in arrays.values()) / 1e6
        if options.layout == "mul_ir":
            row["error"] = max([relative(np, ours.forward(), z.detach())] + [
                relative(np, grads[n], a) for n, a in zip(ours.names, d)])
            assert row["error"] <= (1e-12 if options.type == "f64" else 1e-5), row
        del z, d
        runs.update(e3nn_f=e3nn.forward, e3nn_fb=e3nn.both)
        try:
            chunks = Chunks(ours.conv, options.layout, torch, arrays, ends, nodes)
            runs.update(chunk_f=chunks.forward, chunk_fb=chunks.both)
        except ImportError:
            pass
    if options.hidden:
        two = TwoKernels(weft, torch, spec, options, arrays, ours.edges)
        bound = 1e-12 if options.type == "f64" else 1e-5
        assert max(relative(np, ours.forward(), two.reused()), relative(np, ours.out, two.fresh())) <= bound
        both = two.backward()
        assert max(relative(np, a, both[n]) for n, a in ours.backward().items()) <= bound
        runs.update(mm_f=two.fresh, two_f=two.reused, two_b=two.backward)
    took = time_in_turn(runs, options.rounds)
    row.update({k: v * 1e6 / max(edges, 1) for k, v in took.items()})
    row["f+b"] = row["fwd"] + row["bwd"]
    for peer in ("e3nn", "chunk"):
        if f"{peer}_f" in row:
            row[f"{peer}_f_x"] = row[f"{peer}_f"] / row["fwd"]
            row[f"{peer}_fb_x"] = row[f"{peer}_fb"] / row["f+b"]
    for name, of in zip(HIDDEN, ("fwd", "fwd", "bwd")):
        if name in row:
            row[f"{name}_x"] = row[name] / row[of]
    return row


def run_alone(name, system, atoms, type, threads, options):
    """One case in a process of its own, so that memory is that of the case; None: it does not fit."""
    words = [sys.executable, __file__, name, "--system", system, "--atoms", str(atoms), "--type", type,
             "--threads", str(threads), "--rounds", str(options.rounds), "--layout", options.layout,
             "--most", str(options.most), "--gb", str(options.gb), "--json"]
    words += ["--double"] * options.double + ["--no-peers"] * (not options.peers)
    words += ["--hidden", str(options.hidden)] if options.hidden else []
    out = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout
    return json.loads(out) if out.strip() else None


def grid(problems, options):
    """Every case, and of each problem, system, type and number of threads how figures grow."""
    cases = {}
    for of in itertools.product(problems, options.system, ("f32", "f64"), (1, 2)):
        for atoms in options.atoms:
            row = run_alone(of[0], of[1], atoms, *of[2:], options)
            if row is not None:
                put(row, options)
                cases.setdefault(of, []).append(row)
    for of, rows in cases.items():
        first, last = rows[0], rows[-1]
        share = max((r["mb"] / r["e3nn_mb"] for r in rows if r.get("e3nn_mb", 0) > 0), default=float("nan"))
        print("# " + ",".join(map(str, of)) + f": from {first['atoms']} to {last['atoms']} atoms forward"
              f" x{last['fwd'] / first['fwd']:.2f}, backward x{last['bwd'] / first['bwd']:.2f} an edge;"
              f" memory at most {100 * share:.1f} % of e3nn's", flush=True)


def set_threads(n):
    import torch

    import weft

    weft.set_threads(n)
    torch.set_num_threads(n)


def put(row, options):
    if row is None:
        return
    if options.json:
        print(json.dumps(row), flush=True)
        return
    cells = [f"{row[c]:.3g}" if c in row else "" for c in COLUMNS]
    head = [str(row[c]) for c in ("problem", "system", "atoms", "edges", "type", "threads")]
    print(",".join(head + cells), flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("problems", nargs="*")
    p.add_argument("--system", nargs="+")
    p.add_argument("--atoms", nargs="+", type=int)
    p.add_argument("--cutoff", type=float, default=5.0)
    p.add_argument("--type", default="f32", choices=["f32", "f64"])
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--rounds", type=int, default=7)
    p.add_argument("--layout", default="mul_ir", choices=["mul_ir", "ir_mul"])
    p.add_argument("--hidden", type=int, help="features that weights are made of")
    p.add_argument("--double", action="store_true", help="double backward, too")
    p.add_argument("--no-peers", dest="peers", action="store_false")
    p.add_argument("--most", type=int, default=20000, help="edges up to which peers run")
    p.add_argument("--grid", action="store_true", help="all systems, sizes, types and 1 and 2 threads")
    p.add_argument("--gb", type=float, default=6, help="cases stay out whose weights and gradients take more")
    p.add_argument("--json", action="store_true")
    options = p.parse_args()
    options.system = options.system or (["silicon", "water", "oxide"] if options.grid else ["silicon"])
    options.atoms = options.atoms or ([64, 512, 5000] if options.grid else [64, 512])
    set_threads(options.threads)
    if not options.json:
        print("problem,system,atoms,edges,type,threads," + ",".join(COLUMNS))
    if options.grid:
        return grid(options.problems or [*PROBLEMS, OWN], options)
    for name in options.problems or PROBLEMS:
        for system in options.system:
            for atoms in options.atoms:
                put(measure(name, system, atoms, options), options)


if __name__ == "__main__":
    main()
