# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""Neighbours of atoms, and atoms from files and generators, as NumPy arrays."""

from __future__ import annotations

from ctypes import POINTER, byref, c_double, c_int32, c_int64, cast
from typing import NamedTuple, Sequence

import numpy as np

from . import _check, _lib
from ._lib import ArgumentError, check, lib


class Atoms(NamedTuple):
    """Atoms in a cell; lengths in Angstrom."""

    positions: np.ndarray  # (n, 3)
    cell: np.ndarray  # (3, 3): a vector a row
    pbc: np.ndarray  # (3,) of bool
    names: list  # "Si", by atom


class Neighbours(NamedTuple):
    """Pairs in order of receiver, sender and shift: see weft_neighbours in weft.h."""

    start: np.ndarray  # (n + 1,): the pairs of receiver i are start[i]:start[i + 1]
    receiver: np.ndarray
    sender: np.ndarray
    shift: np.ndarray  # (pairs, 3), int32
    vectors: np.ndarray  # (pairs, 3): positions[sender] + shift @ cell - positions[receiver]
    distances: np.ndarray


# What may be asked for: the field of weft_neighbours, and its type where that is not the indices'.
_ARRAYS = {"start": ("start", None), "receiver": ("receiver", None), "sender": ("sender", None),
           "shift": ("shift", np.int32), "vectors": ("vec", np.float64),
           "distances": ("dist", np.float64)}
_INDEX = {np.dtype(np.int32): 0, np.dtype(np.int64): 1}


def atoms(source: str) -> Atoms:
    """Atoms from an .xyz file, or by a generator: "crystal:silicon:repeat=4", "water:molecules=64";
    `weft neighbours --help` has the others."""
    out, given = _lib.Atoms(), _check.text("source", source)
    with _lib.lock:
        check(lib.weft_atoms_make(_lib.context(), given, byref(out)))
        n, pos = out.n, np.empty((out.n, 3))
        if n > 0:
            pos[:] = np.ctypeslib.as_array(cast(out.pos, POINTER(c_double)), (n, 3))
        kinds = [out.name[k].decode(errors="replace") for k in range(out.kinds)]
        kind = np.ctypeslib.as_array(cast(out.kind, POINTER(c_int32)), (n,)) if n > 0 else []
        names = [kinds[k] for k in kind]
    return Atoms(pos, np.array(out.cell).reshape(3, 3), np.array(out.pbc, bool), names)


def _real(name: str, value, shape) -> np.ndarray:
    try:
        array = np.ascontiguousarray(_check.plain(name, value), np.float64)
    except (TypeError, ValueError) as e:
        raise ArgumentError(f"{name}: {e}") from None
    if array.ndim != len(shape) or any(s >= 0 and s != t for s, t in zip(shape, array.shape)):
        raise ArgumentError(f"{name}: expected the shape {shape}, got {array.shape}; -1 is any")
    return array


def _periods(pbc) -> np.ndarray:
    periods = _check.array("pbc", pbc)
    if periods.shape not in ((), (3,)) or periods.dtype.kind not in "biu":
        raise ArgumentError(f"pbc: expected one or three of True and False, got {pbc!r}")
    return np.broadcast_to(periods, 3).astype(bool)


def neighbours(positions, cell=None, pbc=None, cutoff: float = 5.0, *, index=np.int32,
               want: Sequence[str] = tuple(_ARRAYS)) -> Neighbours:
    """All pairs nearer than the cutoff, periodic images among them.

    `cell` has a vector a row, or is None for none; `pbc` is one or three of True and False, and
    without a word all True with a cell.  Arrays that are not in `want` are None in the result."""
    pos = _real("positions", positions, (-1, 3))
    box = np.zeros((3, 3)) if cell is None else _real("cell", cell, (3, 3))
    periods = _periods(cell is not None if pbc is None else pbc)
    code = _INDEX.get(np.dtype(index))
    if code is None or not set(want) <= set(_ARRAYS):
        raise ArgumentError("index is int32 or int64, and want some of " + ", ".join(_ARRAYS))
    radius = _check.real("cutoff", cutoff)
    given = _lib.Atoms(n=len(pos), pos=pos.ctypes.data)
    given.cell[:] = box.ravel().tolist()
    given.pbc[:] = periods.tolist()
    nnz, to, out = c_int64(), _lib.Neighbours(type=code), dict.fromkeys(_ARRAYS)
    with _lib.lock:
        check(lib.weft_neighbours_find(_lib.context(), byref(given), radius, byref(nnz)))
        for name in want:
            field, dtype = _ARRAYS[name]
            n = len(pos) + 1 if name == "start" else nnz.value
            shape = (n, 3) if name in ("shift", "vectors") else (n,)
            out[name] = np.empty(shape, index if dtype is None else dtype)
            setattr(to, field, out[name].ctypes.data)
        check(lib.weft_neighbours_get(_lib.context(), byref(to)))
    return Neighbours(**out)
