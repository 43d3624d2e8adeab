# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""`python -m weft accelerate MODEL`: what would be replaced in a model, how far its results change on a
test structure, and time and memory before and after."""

from __future__ import annotations

import argparse
import os
import resource
import sys
import time
import warnings
from contextlib import contextmanager
from typing import Any, Callable, Dict, Iterator, List

import numpy as np


def _sevennet(name: str) -> Any:
    from sevenn.calculator import SevenNetCalculator

    return SevenNetCalculator(name, device="cpu")


def _mace(name: str) -> Any:
    from mace.calculators import MACECalculator

    return MACECalculator(model_paths=name, device="cpu")


def _nequip(name: str) -> Any:
    from nequip.ase import NequIPCalculator

    return NequIPCalculator.from_checkpoint_model(name, device="cpu")


_KINDS: Dict[str, Callable[[str], Any]] = {"sevennet": _sevennet, "mace": _mace, "nequip": _nequip}


class _Failed(Exception):
    """What the command cannot do, in a line."""


@contextmanager
def _about(doing: str, remedy: str = "") -> Iterator[None]:
    """Turns whatever another package raises while `doing` this into a line."""
    try:
        yield
    except ModuleNotFoundError as e:
        raise _Failed(f"{doing}: Python has no package {e.name}; pip install "
                      f"{_PIP.get(e.name or '', e.name)}") from e
    except _Failed:
        raise
    except Exception as e:
        what = str(e).strip().split("\n")[0]
        raise _Failed(f"{doing}: {type(e).__name__}{': ' + what if what else ''}{remedy}") from e


_PIP = {"sevenn": "sevenn", "mace": "mace-torch", "nequip": "nequip", "ase": "ase", "torch": "torch"}


def _load(kind: str, name: str) -> Any:
    """The calculator of a model, by a name that the package knows or from a file."""
    looks_like_file = os.sep in name or name.endswith((".pth", ".pt", ".model", ".ckpt"))
    if looks_like_file and not os.path.isfile(name):
        raise _Failed(f"{name}: file not found")
    with _about(f"{name}: {kind} cannot load it", f"; is it a model of {kind}? see --kind"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _KINDS[kind](name)


def _structure(source: str) -> Any:
    """Atoms from a file, or silicon."""
    if source != "silicon":
        if not os.path.isfile(source):
            raise _Failed(f"{source}: file not found")
        with _about(f"{source}: ASE cannot read it"):
            from ase.io import read

            return read(source)
    from ase.build import bulk

    atoms = bulk("Si", cubic=True) * (2, 2, 2)
    atoms.rattle(0.05, seed=1)
    return atoms


def _measure(calc: Any, atoms: Any, repeat: int) -> Dict[str, Any]:
    """Results, the median of seconds, and how much memory the runs added at most."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    calc.calculate(atoms)
    times: List[float] = []
    for _ in range(repeat):
        begin = time.perf_counter()
        calc.calculate(atoms)
        times.append(time.perf_counter() - begin)
    out = {k: np.array(calc.results[k], float) for k in ("energy", "forces", "stress")
           if k in calc.results}
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {**out, "seconds": float(np.median(times)), "mb": (peak - before) / 1024}


def _accelerate(args: argparse.Namespace) -> int:
    with _about("weft.accelerate"):
        import torch  # noqa: F401

        import weft
    if args.repeat < 1:
        raise _Failed(f"--repeat {args.repeat}: expected a number of at least 1")
    atoms = _structure(args.structure) if args.report else None
    stock, fast = (_load(args.kind, args.model) for _ in range(2))
    report = weft.accelerate(fast)
    print(report)
    if not report:
        return 1
    if args.report:
        with _about(f"the model cannot compute {args.structure}",
                    "; --structure FILE gives another structure"):
            after = _measure(fast, atoms, args.repeat)  # first: memory only ever grows
            before = _measure(stock, atoms, args.repeat)
        print(f"{len(atoms)} atoms, {args.structure}")
        for key in ("energy", "forces", "stress"):
            if key in before:
                print(f"  {key}: largest difference {np.abs(after[key] - before[key]).max():.3g}")
        print(f"  time: {before['seconds'] * 1e3:.1f} ms before, {after['seconds'] * 1e3:.1f} ms after, "
              f"{before['seconds'] / after['seconds']:.2f}x")
        print(f"  memory: {after['mb']:.0f} MB after; {before['mb']:.0f} MB more before")
    return 0


def main(argv: List[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m weft", description=__doc__)
    commands = parser.add_subparsers(required=True)
    sub = commands.add_parser("accelerate", help="a model of SevenNet, MACE or NequIP")
    sub.add_argument("model", metavar="MODEL", help="a checkpoint, or a name that the package knows")
    sub.add_argument("--kind", choices=sorted(_KINDS), default="sevennet")
    sub.add_argument("--report", action="store_true", help="errors, time and memory on a structure")
    sub.add_argument("--structure", default="silicon", help="a file that ASE reads (64 atoms of silicon)")
    sub.add_argument("--repeat", type=int, default=5)
    sub.set_defaults(run=_accelerate)
    args = parser.parse_args(argv)
    try:
        return args.run(args)
    except _Failed as e:
        print(f"weft: error: {e}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
