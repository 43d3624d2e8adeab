# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""What the classes under names of e3nn and OpenEquivariance have in common: errors of the kinds that
these packages raise, the convention of signs of the installed e3nn, and shapes of weights."""

from __future__ import annotations

import sys
from functools import lru_cache
from importlib import metadata
from math import prod, sqrt
from typing import Any, List, NamedTuple, Optional, Sequence, Tuple

from ._irreps import Irreps
from ._lib import ArgumentError

SIGNS = ("e3nn", "e3nn-0.4")
MODES = ("uvw", "uvu", "uvv", "uuw", "uuu", "uvuv", "uvu<v", "u<vw")


class Unfit(ArgumentError, AssertionError):
    """Arguments of a constructor that do not fit each other: an AssertionError in both packages."""


class NoSlot(ArgumentError, IndexError):
    """A slot that irreps do not have."""


class Mismatch(ArgumentError, AssertionError, RuntimeError):
    """An operand of the wrong shape, dtype or device, or none: AssertionError in e3nn, RuntimeError in
    OpenEquivariance."""


@lru_cache(maxsize=None)
def _installed() -> Optional[str]:
    try:
        return metadata.version("e3nn")
    except metadata.PackageNotFoundError:
        return None


def default_signs() -> str:
    """The signs of 3j symbols of the installed e3nn, which changed with 0.5; without it, the later ones."""
    loaded = sys.modules.get("e3nn")
    version = getattr(loaded, "__version__", None) or _installed()
    return "e3nn-0.4" if version and version.startswith(("0.1.", "0.2.", "0.3.", "0.4.")) else "e3nn"


def signs_of(signs: Optional[str]) -> str:
    """`signs` as given, or the default."""
    if signs is None:
        return default_signs()
    if signs not in SIGNS:
        raise ArgumentError(f"signs: expected one of {', '.join(SIGNS)}, or None for those of the "
                            f"installed e3nn, got {signs!r}")
    return signs


class Instruction(NamedTuple):
    """One path: slots of the operands, which channels meet, whether it has weights, the factor of its
    products, and the shape of its weights."""

    i_in1: int
    i_in2: int
    i_out: int
    connection_mode: str
    has_weight: bool
    path_weight: float = 1.0
    path_shape: Tuple[int, ...] = ()


def slot_at(name: str, irreps: Irreps, i: int, path: int) -> Any:
    if not i < len(irreps):
        raise NoSlot(f"instructions: path {path}: {name} has {len(irreps)} slots, got the index {i}")
    return irreps[i]


def path_shape(mode: str, u: int, v: int, w: int) -> Tuple[int, ...]:
    """The shape of the weights of a path whose slots have these multiplicities."""
    pairs = u * (v - 1) // 2
    return {"uvw": (u, v, w), "uvu": (u, v), "uvv": (u, v), "uuw": (u, w), "uuu": (u,), "uvuv": (u, v),
            "uvu<v": (pairs,), "u<vw": (pairs, w)}[mode]


def _products(mode: str, u: int, v: int) -> int:
    """How many products are summed up in one channel of the output."""
    return {"uvw": u * v, "uvu": v, "uvv": u, "uuw": u, "u<vw": u * (v - 1) // 2}.get(mode, 1)


def normalised(irreps: Sequence[Irreps], paths: Sequence[tuple], norm: str, path_norm: str,
               variances: Sequence[Optional[Sequence[float]]]) -> List[Instruction]:
    """Paths (slots, mode, weights, path weight) with their shapes and factors, as e3nn has them in
    `instructions`.  The library computes the same factors, exactly: docs/tensor-products.md, section 5."""
    var = [[1.0] * len(of) if v is None else v for of, v in zip(irreps, variances)]
    slots = [[of[i] for of, i in zip(irreps, p)] for p in paths]
    sums = [var[0][p[0]] * var[1][p[1]] * _products(p[3], s[0].mul, s[1].mul)
            for p, s in zip(paths, slots)]
    out = []
    for p, (a, b, c), own in zip(paths, slots, sums):
        same = [s for q, s in zip(paths, sums) if q[2] == p[2]]
        x = {"element": sum(same), "path": own * len(same), "none": 1}[path_norm]
        square = {"component": c.ir.dim, "norm": a.ir.dim * b.ir.dim, "none": 1}[norm]
        square = square / (x if x > 0 else 1) * var[2][p[2]] * p[5]
        out.append(Instruction(*p[:5], sqrt(square), path_shape(p[3], a.mul, b.mul, c.mul)))
    return out


def weights_of(shapes: Sequence[Tuple[int, ...]]) -> List[Tuple[int, int]]:
    """Where the weights of each of these shapes are in a row of all: the start and the length."""
    out, at = [], 0
    for shape in shapes:
        out.append((at, prod(shape)))
        at += prod(shape)
    return out
