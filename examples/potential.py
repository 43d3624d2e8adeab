#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""A potential of a PyPI package made faster by one line: SevenNet-0 on a crystal of silicon, as it comes
and accelerated, side by side; then molecular dynamics, whose total energy has to stay.

Run by `make demo`, or with torch, sevenn and weft installed: python examples/potential.py"""

import argparse
import statistics
import sys
import time
import warnings

warnings.simplefilter("ignore")

import numpy as np  # noqa: E402
from ase import units  # noqa: E402
from ase.build import bulk  # noqa: E402
from ase.md.velocitydistribution import MaxwellBoltzmannDistribution  # noqa: E402
from ase.md.verlet import VelocityVerlet  # noqa: E402
from sevenn.calculator import SevenNetCalculator  # noqa: E402

import weft  # noqa: E402

LINE = "  {:<24}{:>16}{:>16}{:>14}"


def results(calc, atoms):
    """Energy, forces, stress and the seconds they took."""
    begin = time.perf_counter()
    calc.calculate(atoms)
    seconds = time.perf_counter() - begin
    return {**{k: np.array(calc.results[k], float) for k in ("energy", "forces", "stress")}, "seconds": seconds}


def compare(stock, fast, atoms, turns):
    """Both in turns; prints them side by side, and returns whether they agree."""
    for calc in (stock, fast):  # compiles kernels, and lets torch warm up
        results(calc, atoms)
    pairs = [(results(stock, atoms), results(fast, atoms)) for _ in range(turns)]
    a, b = pairs[-1]
    ms = [1e3 * statistics.median(p[i]["seconds"] for p in pairs) for i in (0, 1)]
    far = {k: float(np.abs(a[k] - b[k]).max()) for k in ("energy", "forces", "stress")}
    size = [np.sqrt((r["forces"] ** 2).mean()) for r in (a, b)]
    print(f"\n{len(atoms)} atoms of silicon, off their places; energy, forces and stress:\n")
    print(LINE.format("", "stock", "accelerated", "difference"))
    print(LINE.format("energy, eV", f"{a['energy']:.5f}", f"{b['energy']:.5f}", f"{far['energy']:.1e}"))
    print(LINE.format("forces (rms), eV/A", f"{size[0]:.6f}", f"{size[1]:.6f}", f"{far['forces']:.1e}"))
    print(LINE.format("stress (xx), eV/A^3", f"{a['stress'][0]:.6f}", f"{b['stress'][0]:.6f}",
                      f"{far['stress']:.1e}"))
    print(LINE.format("time, ms", f"{ms[0]:.0f}", f"{ms[1]:.0f}", f"{ms[0] / ms[1]:.1f} x"), flush=True)
    return far["energy"] <= 1e-5 * len(atoms) and far["forces"] <= 1e-4 and far["stress"] <= 1e-5


def dynamics(calc, atoms, steps):
    """Molecular dynamics at constant energy; prints it, and returns whether it stays."""
    atoms = atoms.copy()
    atoms.calc = calc
    MaxwellBoltzmannDistribution(atoms, temperature_K=600, rng=np.random.default_rng(1))
    md = VelocityVerlet(atoms, timestep=1 * units.fs)
    first, far, begin = atoms.get_total_energy(), 0.0, time.perf_counter()
    print(f"\nMolecular dynamics at constant energy, {steps} steps of 1 fs, accelerated:\n")
    print("      fs   potential, eV     kinetic, eV   total - first, meV/atom")
    for k in range(0, steps + 1, max(1, steps // 5)):
        md.run(k - md.nsteps)
        drift = (atoms.get_total_energy() - first) / len(atoms) * 1e3
        far = max(far, abs(drift))
        print(f"  {k:6} {atoms.get_potential_energy():15.4f} {atoms.get_kinetic_energy():15.4f} "
              f"{drift:25.4f}", flush=True)
    rate = (time.perf_counter() - begin) / max(1, md.nsteps)
    print(f"\n  {rate * 1e3:.0f} ms a step; the total energy stays within {far:.3f} meV/atom")
    return far <= 2.0


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--model", default="7net-0", help="a name or checkpoint of SevenNet (7net-0)")
    p.add_argument("--cells", type=int, default=3, help="cubic cells of 8 atoms in each direction (3)")
    p.add_argument("--turns", type=int, default=3, help="how often each is timed (3)")
    p.add_argument("--steps", type=int, default=50, help="of molecular dynamics (50)")
    o = p.parse_args()
    stock, fast = (SevenNetCalculator(o.model, device="cpu") for _ in range(2))
    report = weft.accelerate(fast)
    print(f"weft.accelerate(calculator)\n{report}")
    if not report:
        return 1
    atoms = bulk("Si", cubic=True) * (o.cells, o.cells, o.cells)
    atoms.rattle(0.05, seed=1)
    same = compare(stock, fast, atoms, o.turns)
    stays = dynamics(fast, bulk("Si", cubic=True) * (2, 2, 2), o.steps)
    if not same or not stays:
        print("WRONG: " + ("results differ" if not same else "the energy drifts"))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
