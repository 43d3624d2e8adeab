#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""Models as they come and after weft.accelerate, side by side: time of energy, forces and stress, peak
memory, and errors against the stock model in f64.

Times of a case are taken in turns in one process, and are medians; memory is what one calculation adds
to a process of its own that has loaded the model, at its peak; errors are root mean squares over rattled
structures.  A model whose package is not installed is left out.  MACE needs an environment of its own
(docs/models.md).  The rows of the table appear as they are done."""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
import warnings

KEYS = ("energy", "forces", "stress")
MODELS = ("7net-0", "7net-l3i5", "mace", "nequip")
CASES = [  # a model, and the structures it runs on
    ("7net-0", "si8"), ("7net-0", "si64"), ("7net-0", "si216"), ("7net-0", "si512"), ("7net-0", "oxide135"),
    ("7net-l3i5", "si64"), ("mace", "si64"), ("nequip", "si64"),
]


def options():
    words = lambda s: [w for w in s.split(",") if w]
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--models", type=words, default=list(MODELS), help=",".join(MODELS))
    p.add_argument("--structures", type=words, help="siN, N = 8 n^3; oxideN, N = 5 n^3; instead of each "
                                                    "model's own")
    p.add_argument("--threads", type=lambda s: [int(w) for w in words(s)], default=[1, 2])
    p.add_argument("--seconds", type=float, default=10, help="of timing for each case")
    p.add_argument("--turns", type=int, default=5, help="of timing for each case, at least")
    p.add_argument("--rattled", type=int, default=10, help="structures for the errors; 0: no errors")
    p.add_argument("--training", action="store_true", help="time a step on a force loss too (mace, nequip)")
    p.add_argument("--no-memory", action="store_true")
    p.add_argument("--no-stock", action="store_true", help="Weft's alone, on structures that are too large for stock")
    p.add_argument("--json", metavar="FILE", help="all results, a line each")
    p.add_argument("--quick", action="store_true", help="short, small: does it work at all?")
    p.add_argument("--child", help=argparse.SUPPRESS)
    o = p.parse_args()
    if o.quick:
        o.structures, o.seconds, o.turns, o.rattled = o.structures or ["si8"], 0.5, 2, 2
    return o


def structure(name, seed=1):
    """Atoms of silicon or SrTiO3, off their places by 0.05 A."""
    from ase.build import bulk
    from ase.spacegroup import crystal

    kind, n = name.rstrip("0123456789"), int(name.lstrip("siloxde"))
    if kind == "si":
        cell = bulk("Si", cubic=True)
    else:
        cell = crystal(["Sr", "Ti", "O"], [(0.5, 0.5, 0.5), (0, 0, 0), (0.5, 0, 0)], spacegroup=221,
                       cellpar=[3.905] * 3 + [90] * 3)
    side = round((n / len(cell)) ** (1 / 3))
    if side ** 3 * len(cell) != n:
        raise SystemExit(f"{name}: {n} is not {len(cell)} n^3")
    atoms = cell * (side, side, side)
    atoms.rattle(0.05, seed=seed)
    return atoms


class SevenNet:
    """Its own weights, by its own way from atoms to results."""

    def __init__(self, name, double=False):
        import torch
        from sevenn.calculator import SevenNetCalculator

        torch.set_default_dtype(torch.float32)
        self.calc = SevenNetCalculator(name, device="cpu")
        self.dtype = torch.float64 if double else torch.float32
        self.model = self._double() if double else self.calc.model

    def _double(self):
        """The same again: constants of e3nn's code are of the type that was the default when it was made."""
        import torch
        from sevenn.model_build import build_E3_equivariant_model

        torch.set_default_dtype(torch.float64)
        model = build_E3_equivariant_model(self.calc.sevennet_config).double()
        model.load_state_dict(self.calc.model.state_dict())
        model.set_is_batch_data(False)
        model.onehot_idx_to_onehot.register_forward_hook(self._widen)
        return model.eval()

    @staticmethod
    def _widen(module, given, data):
        """It makes f32 whatever the model is."""
        for key in (module.key_output, module.key_additional_output):
            if key is not None:
                data[key] = data[key].double()
        return data

    def data(self, atoms):
        import torch
        from sevenn.atom_graph_data import AtomGraphData
        from sevenn.train.dataload import unlabeled_atoms_to_graph

        torch.set_default_dtype(self.dtype)
        data = AtomGraphData.from_numpy_dict(
            unlabeled_atoms_to_graph(atoms, self.calc.cutoff, with_shift=False))
        for key, value in data.to_dict().items():  # vectors of edges come in f32, the same to all
            if torch.is_tensor(value) and value.is_floating_point():
                data[key] = value.to(self.dtype)
        return data

    def results(self, atoms):
        out = self.model(self.data(atoms))
        return {k: out["inferred_" + n].detach() for k, n in zip(KEYS, ("total_energy", "force", "stress"))}


class Mace:
    """The shape of the medium model of mace-mp-0, with random weights."""

    ELEMENTS = (8, 14, 22, 38)

    def __init__(self, name, double=False):
        import numpy as np
        import torch

        torch.serialization.add_safe_globals([slice])  # which e3nn 0.4 has in its constants
        from e3nn import o3
        from mace import modules

        torch.set_default_dtype(torch.float64)  # so that weights are the same in both precisions
        block = modules.interaction_classes["RealAgnosticResidualInteractionBlock"]
        torch.manual_seed(0)
        n = len(self.ELEMENTS)
        self.model = modules.ScaleShiftMACE(
            r_max=6.0, num_bessel=10, num_polynomial_cutoff=5, max_ell=3, interaction_cls=block,
            interaction_cls_first=block, num_interactions=2, num_elements=n,
            hidden_irreps=o3.Irreps("128x0e + 128x1o"), MLP_irreps=o3.Irreps("16x0e"),
            gate=torch.nn.functional.silu, atomic_energies=np.zeros(n), avg_num_neighbors=60,
            atomic_numbers=list(self.ELEMENTS), correlation=3, radial_type="bessel",
            atomic_inter_scale=0.8, atomic_inter_shift=0.1)
        self.dtype = torch.float64 if double else torch.float32
        self.model.to(self.dtype)
        for p in self.model.parameters():
            p.requires_grad_(True)

    def data(self, atoms):
        import torch
        from mace import data, tools
        from mace.tools import torch_geometric

        torch.set_default_dtype(self.dtype)
        one = data.AtomicData.from_config(data.config_from_atoms(atoms), cutoff=6.0,
                                          z_table=tools.AtomicNumberTable(list(self.ELEMENTS)))
        return next(iter(torch_geometric.dataloader.DataLoader([one], batch_size=1))).to_dict()

    def results(self, atoms, training=False):
        out = self.model(self.data(atoms), training=training, compute_stress=True)
        return {k: out[k] if training else out[k].detach() for k in KEYS}


class Nequip:
    """A model of the size of its tutorial's, with random weights."""

    def __init__(self, name, double=False):
        import torch
        from nequip.model import NequIPGNNModel
        from nequip.utils.global_state import set_global_state

        set_global_state()
        self.model, wide = (NequIPGNNModel(
            seed=1, model_dtype=dtype, type_names=["Si", "O", "Ti", "Sr"], r_max=5.0, num_layers=4, l_max=2,
            parity=True, num_features=32, radial_mlp_depth=2, radial_mlp_width=64, avg_num_neighbors=30.0)
            for dtype in ("float64" if double else "float32", "float64"))
        with torch.no_grad():  # the same weights in both precisions
            for p, q in zip(self.model.parameters(), wide.parameters()):
                p.copy_(q)

    def data(self, atoms):
        import torch
        from nequip.data import AtomicDataDict, compute_neighborlist_, from_ase

        out = compute_neighborlist_(from_ase(atoms), r_max=5.0)
        out[AtomicDataDict.ATOM_TYPE_KEY] = torch.tensor([[14, 8, 22, 38].index(z) for z in atoms.numbers])
        return out

    def results(self, atoms, training=False):
        self.model.train(training)
        out = self.model(self.data(atoms))
        return {k: out[n] if training else out[n].detach()
                for k, n in zip(KEYS, ("total_energy", "forces", "stress"))}


def make(name, fast, double=False):
    kind = {"mace": Mace, "nequip": Nequip}.get(name, SevenNet)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        out = kind(name, double)
    if fast:
        import weft

        report = weft.accelerate(out.model)
        if not report:
            raise SystemExit(str(report))
    return out


def step(model, atoms):
    """The gradients of a loss of forces."""
    out = model.results(atoms, training=True)
    model.model.zero_grad()
    (out["forces"] ** 2).mean().backward()


def child_time(job):
    """Medians of both, taken in turns."""
    import torch

    torch.set_num_threads(job["threads"])
    both = [make(job["model"], fast) for fast in ((False, True) if job["stock"] else (True,))]
    atoms = structure(job["structure"])
    run = step if job["training"] else (lambda m, a: m.results(a))
    times = [[] for _ in both]
    for m in both:
        for _ in range(2):
            run(m, atoms)
    end = time.perf_counter() + job["seconds"]
    while len(times[0]) < job["turns"] or time.perf_counter() < end:
        for m, t in zip(both, times):
            begin = time.perf_counter()
            run(m, atoms)
            t.append(time.perf_counter() - begin)
    median = lambda t: statistics.median(t) * 1e3
    return {"stock_ms": median(times[0]) if job["stock"] else None, "weft_ms": median(times[-1]),
            "turns": len(times[0])}


def status(key):
    with open("/proc/self/status") as f:
        return next(int(line.split()[1]) for line in f if line.startswith(key + ":")) / 1024


def child_memory(job):
    """MB that one calculation adds at its peak.  Kernels were compiled by the process before."""
    import torch

    torch.set_num_threads(1)
    model = make(job["model"], job["fast"])
    model.results(structure(job["small"]))  # what is loaded and allocated once
    atoms = structure(job["structure"])
    try:
        with open("/proc/self/clear_refs", "w") as f:  # the peak starts again from what is there now
            f.write("5")
    except OSError:
        pass
    before = status("VmRSS")
    model.results(atoms)
    return {"mb": status("VmHWM") - before}


def child_errors(job):
    """Root mean squares over structures, of energy per atom, forces and stress, against stock in f64."""
    import torch

    cases = {"stock": (False, False), "weft": (True, False), "f64": (False, True)}
    found = {}
    for who, (fast, double) in cases.items():
        model = make(job["model"], fast, double)
        found[who] = [model.results(structure(job["structure"], seed)) for seed in range(job["rattled"])]
    n = len(structure(job["structure"]))
    out = {}
    for who in ("stock", "weft"):
        for key in KEYS:
            d = torch.cat([(a[key].double() - b[key].double()).reshape(-1)
                           for a, b in zip(found[who], found["f64"])])
            out[f"{who}_{key}"] = float(d.pow(2).mean().sqrt()) / (n if key == "energy" else 1)
    return out


def ask(kind, **job):
    """Runs a part of the work in a process of its own; None when it fails."""
    p = subprocess.run([sys.executable, __file__, "--child", json.dumps({"kind": kind, **job})],
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    lines = [line for line in p.stdout.splitlines() if line.startswith("RESULT ")]
    if p.returncode or not lines:
        print(f"{kind} of {job['model']}, {job['structure']} failed: "
              f"{(p.stderr.strip() or p.stdout.strip()).splitlines()[-1:]}", file=sys.stderr)
        return None
    return json.loads(lines[-1][len("RESULT "):])


def installed(name):
    package = {"mace": "mace", "nequip": "nequip"}.get(name, "sevenn")
    if name in ("mace", "nequip"):  # MACE's environment sees the others, with an e3nn that is too old
        code = ("import e3nn, torch; torch.serialization.add_safe_globals([slice]); "
                f"import {package}; old = e3nn.__version__.startswith('0.4'); "
                f"raise SystemExit(old != {name == 'mace'})")
    else:
        code = "import e3nn, sevenn.calculator; raise SystemExit(e3nn.__version__.startswith('0.4'))"
    return subprocess.run([sys.executable, "-W", "ignore", "-c", code], stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL).returncode == 0


def measure(o, model, name):
    """The results of one model on one structure, a dict for each number of threads."""
    out = []
    for threads in o.threads:
        for training in ([False, True] if o.training and not model.startswith("7net") else [False]):
            row = {"model": model, "structure": name, "threads": threads, "training": training}
            times = ask("time", model=model, structure=name, threads=threads, training=training,
                        seconds=o.seconds, turns=o.turns, stock=not o.no_stock)
            if times is None:
                return out
            out.append({**row, **times})
    if not o.no_memory:
        small = "oxide5" if name.startswith("oxide") else "si8"
        for who, fast in (("stock", False), ("weft", True))[o.no_stock:]:
            got = ask("memory", model=model, structure=name, small=small, fast=fast)
            for row in out:
                row[who + "_mb"] = got and got["mb"]
    if o.rattled:
        got = ask("errors", model=model, structure=name, rattled=o.rattled)
        for row in out:
            row.update(got or {})
    return out


HEAD = ("| model | atoms | threads | stock ms | weft ms | ratio | MB stock | MB weft | energy, meV/atom | "
        "forces, meV/A |\n|---|---|---|---|---|---|---|---|---|---|")


def line(r):
    mb = lambda k: "–" if r.get(k) is None else f"{r[k]:.0f}"
    errors = lambda k: f"{r['stock_' + k] * 1e3:.2g} / {r['weft_' + k] * 1e3:.2g}" if "weft_" + k in r else "–"
    name = r["model"] + (", training step" if r["training"] else "")
    alone = r["stock_ms"] is None
    times = (f"– | {r['weft_ms']:.1f} | –" if alone else
             f"{r['stock_ms']:.1f} | {r['weft_ms']:.1f} | {r['stock_ms'] / r['weft_ms']:.2f}")
    return (f"| {name} | {r['structure']} | {r['threads']} | {times} | {mb('stock_mb')} | {mb('weft_mb')} | "
            f"{errors('energy')} | {errors('forces')} |")


def main():
    o = options()
    if o.child:
        job = json.loads(o.child)
        run = {"time": child_time, "memory": child_memory, "errors": child_errors}[job.pop("kind")]
        warnings.simplefilter("ignore")
        print("RESULT " + json.dumps(run(job)))
        return 0
    print(f"{platform.machine()}, {os.cpu_count()} CPUs; ratio is stock over Weft; errors are stock's / Weft's")
    print(HEAD, flush=True)
    rows = []
    for model in o.models:
        if not installed(model):
            print(f"skipped: {model}: its package is not installed here, or not with the e3nn it needs",
                  file=sys.stderr)
            continue
        for name in o.structures or [s for m, s in CASES if m == model]:
            for row in measure(o, model, name):
                rows.append(row)
                print(line(row), flush=True)
                if o.json:
                    with open(o.json, "a" if len(rows) > 1 else "w") as f:
                        f.write(json.dumps(row) + "\n")
    return 0 if rows else 1


if __name__ == "__main__":
    sys.exit(main())
