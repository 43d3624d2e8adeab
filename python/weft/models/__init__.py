# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""Models of others, made faster in place.  There is a file for each package; it is imported when a
model of that package is met."""

from __future__ import annotations

from importlib import import_module
from itertools import chain
from typing import Any, Iterator, List, NamedTuple, Optional

import torch

from . import _swap, pruned

_PACKAGES = {"sevenn": "sevennet", "nequip": "nequip", "mace": "mace",
             "torch_geometric": "pyg"}
# What calculators call what they have inside: models, and in wrappers and sums other calculators.
_INSIDE = ("models", "model", "calc", "calcs", "calculator", "calculators", "mixer")


class Replaced(NamedTuple):
    """A module of the model and what it is now."""

    name: str
    what: str


class Report:
    """What accelerate has done: `model`, the name of its kind; `replaced`, a list; `why`, when nothing
    was replaced.  That of restore says what was restored."""

    def __init__(self, model: str, replaced: List[Replaced], why: str = "", done: str = "replaced"):
        self.model, self.replaced, self.why, self._done = model, replaced, why, done

    def __bool__(self) -> bool:
        return bool(self.replaced)

    def __str__(self) -> str:
        if not self.replaced:
            return f"{self.model}: nothing {self._done}: {self.why}"
        lines = [f"{self.model}: {len(self.replaced)} modules {self._done}"]
        return "\n".join(lines + [f"  {r.name}: {r.what}" for r in self.replaced])

    __repr__ = __str__


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


def _find(thing: Any, seen: List[Any]) -> Iterator[torch.nn.Module]:
    """The models of a calculator, of those that it wraps or sums, and of atoms with a calculator."""
    if any(thing is s for s in seen):
        return
    seen.append(thing)
    if isinstance(thing, torch.nn.Module):
        yield thing
    elif isinstance(thing, (list, tuple)):
        for part in thing:
            yield from _find(part, seen)
    elif hasattr(thing, "__dict__"):
        for name in _INSIDE:
            yield from _find(getattr(thing, name, None), seen)


def _models(model: Any) -> List[torch.nn.Module]:
    seen: List[Any] = []
    found = list(_find(model, seen))
    if not found:
        inside = [type(s).__name__ for s in seen[1:] if hasattr(s, "__dict__")]
        raise TypeError(
            "model: expected a torch module, or a calculator that has one as .model, .calc or "
            f".calculators; got {type(model).__name__}"
            + (f", which has {', '.join(inside)} and no torch module" if inside else ""))
    return found


def _refusal(model: torch.nn.Module) -> str:
    """Why nothing in the model can be replaced; "": it is to be tried."""
    if isinstance(model, torch.jit.ScriptModule):
        return "the model is TorchScript, whose modules are fixed; accelerate the model it was made of"
    device = _other_device(model)
    if device is not None:
        return f"the model is on {device}, and kernels run on the CPU"
    return _swap.no_compiler()


def accelerate(model: Any, *, fuse_radial: Optional[bool] = None) -> Report:
    """Replaces the slow modules of a SevenNet, NequIP or MACE model, or of the models inside an ASE
    calculator, layers of PyTorch Geometric, and linear layers whose weight is pruned, by ones that use Weft:
    in place, with the same parameters and the same state dict.
    Returns a report of it.  Without a C compiler, or if the model is not on the CPU, nothing changes,
    and the report says so.  `restore` undoes it.

    fuse_radial: should convolutions have the last layer of the radial network inside?  None: in calls
    without gradients, and where the weights of all edges would take more than 32 MB."""
    if fuse_radial not in (None, True, False):
        raise TypeError(f"fuse_radial: expected True, False or None, got {fuse_radial!r}")
    models = _models(model)
    replaced: List[Replaced] = []
    whys: List[str] = []
    for m in models:
        why = _refusal(m)
        if not why:
            package = _package_of(m)
            found = [] if package is None else import_module("." + _PACKAGES[package], __name__).replace(
                m, fuse_radial)
            replaced += [Replaced(*r) for r in [*found, *pruned.replace(m)]]
            why = (f"no model of {', '.join(_PACKAGES)}, and no pruned linear layer that would gain"
                   if package is None else
                   "no module that Weft makes faster, or all of them are replaced already")
        whys.append(why)
    return Report(type(models[0]).__name__, replaced, whys[0])


def restore(model: Any) -> Report:
    """Undoes `accelerate`: every replaced module, of a model or of the models inside a calculator, is what
    it was, with the parameters that it has now.  Modules of weft.o3 inside the model become those of e3nn.
    To be called before a model is scripted, traced or pickled for a place without Weft.  Returns a report
    of it."""
    models = _models(model)
    names = [name for m in models for name in _swap.restore(m)]
    return Report(type(models[0]).__name__, [Replaced(n, "as before") for n in names],
                  "no module is replaced", "restored")
