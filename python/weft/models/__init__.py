# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""Models of others, made faster in place.  There is a file for each package; it is imported when a
model of that package is met."""

from __future__ import annotations

from importlib import import_module
from itertools import chain
from typing import Any, List, NamedTuple, Optional

import torch

from .. import _lib
from .._program import Program

_PACKAGES = {"sevenn": "sevennet", "nequip": "nequip", "mace": "mace"}


class Replaced(NamedTuple):
    """A module of the model and what it is now."""

    name: str
    what: str


class Report:
    """What accelerate has done: `model`, the name of its kind; `replaced`, a list; `why`, when nothing
    was replaced."""

    def __init__(self, model: str, replaced: List[Replaced], why: str = ""):
        self.model, self.replaced, self.why = model, replaced, why

    def __bool__(self) -> bool:
        return bool(self.replaced)

    def __str__(self) -> str:
        if not self.replaced:
            return f"{self.model}: nothing replaced: {self.why}"
        lines = [f"{self.model}: {len(self.replaced)} modules replaced"]
        return "\n".join(lines + [f"  {r.name}: {r.what}" for r in self.replaced])

    __repr__ = __str__


def _no_compiler() -> Optional[str]:
    """Why kernels would be interpreted; None: they are compiled."""
    import warnings

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            info = Program("program p(n)\naxis I = n\nf32 A[I], B[I]\nB[i] = 2 * A[i]\n").compile().info
    except _lib.Error as e:
        return str(e)
    return None if info.target == "c" else info.why


def _package_of(model: torch.nn.Module) -> Optional[str]:
    for module in model.modules():
        for cls in type(module).__mro__:
            package = cls.__module__.split(".")[0]
            if package in _PACKAGES:
                return package
    return None


def _other_device(model: torch.nn.Module) -> Optional[str]:
    """Where a part of the model is, if not on the CPU."""
    for t in chain(model.parameters(), model.buffers()):
        if t.device.type != "cpu":
            return str(t.device)
    return None


def accelerate(model: Any, *, fuse_radial: Optional[bool] = None) -> Report:
    """Replaces the slow modules of a SevenNet, NequIP or MACE model, or of the model of an ASE
    calculator, by ones that use Weft: in place, with the same parameters and the same state dict.
    Returns a report of it.  Without a C compiler, or if the model is not on the CPU, nothing changes,
    and the report says so.

    fuse_radial: should convolutions have the last layer of the radial network inside?  None: in calls
    without gradients, and where the weights of all edges would take more than 32 MB."""
    if fuse_radial not in (None, True, False):
        raise TypeError(f"fuse_radial: expected True, False or None, got {fuse_radial!r}")
    models = [model] if isinstance(model, torch.nn.Module) else (
        getattr(model, "models", None) or [getattr(model, "model", None)])
    if not all(isinstance(m, torch.nn.Module) for m in models):
        raise TypeError("model: expected a torch module or a calculator that has one as .model, got "
                        f"{type(model).__name__}")
    replaced: List[Replaced] = []
    kind, why = type(models[0]).__name__, ""
    for m in models:
        package = _package_of(m)
        if package is None:
            why = f"no model of {', '.join(_PACKAGES)}"
            continue
        device = _other_device(m)
        if device is not None:
            why = f"the model is on {device}, and kernels run on the CPU"
            continue
        why = _no_compiler() or ""
        if not why:
            found = import_module("." + _PACKAGES[package], __name__).replace(m, fuse_radial)
            replaced += [Replaced(*r) for r in found]
            why = "no module that Weft makes faster, or all of them are replaced already"
    return Report(kind, replaced, why)
