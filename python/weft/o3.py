# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""Drop-ins for e3nn.o3, on Weft's operators: the same arguments, the same weights in the same order, the
same names in state dicts.  Derivatives exist to any order.  What is not defined here is e3nn's own, where
e3nn is installed: `from weft import o3` can take the place of `from e3nn import o3`."""

from __future__ import annotations

import sys
from functools import lru_cache
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from types import ModuleType
from typing import Any, Dict, List, Optional, Sequence, Tuple

import torch

from . import _oeq  # noqa: F401: torch.load takes its classes and TPProblem too
from ._dropin import _TYPE_OF, Dropin, TensorProduct, _rows, _typed, as_type
from ._dropin_forms import (ElementwiseTensorProduct, FullTensorProduct, FullyConnectedTensorProduct, Norm,
                            TensorSquare)
from ._dropin_linear import Linear, LinearInstruction
from ._irreps import Irrep, Irreps, Slot, tell
from ._irreps import wigner_3j as _symbol
from ._lib import ArgumentError
from ._o3 import _spec
from ._peers import Instruction, Unfit, signs_of
from ._rotation import wigner_D
from ._sparse import bad
from ._torch import run
from ._uses import hold

__all__ = ["ElementwiseTensorProduct", "FullTensorProduct", "FullyConnectedTensorProduct", "Instruction",
           "Irrep", "Irreps", "Linear", "Norm", "SphericalHarmonics", "TensorProduct", "TensorSquare",
           "spherical_harmonics", "wigner_3j", "wigner_D"]


def __dir__() -> List[str]:
    return [*__all__, "__doc__", "__file__", "__name__"]


def __getattr__(name: str) -> Any:
    swapped = sys.modules.get("e3nn.o3") is sys.modules[__name__]
    if name.startswith("_") and not (swapped and (name == "__path__" or not name.startswith("__"))):
        raise AttributeError(f"module 'weft.o3' has no attribute {name!r}")
    try:
        theirs = _own_of_e3nn() if swapped else import_module("e3nn.o3")
    except ImportError:
        raise AttributeError(f"module 'weft.o3' has no attribute {name!r}; names of e3nn.o3 that Weft does "
                             "not have need e3nn: pip install e3nn") from None
    return getattr(theirs, name)


@lru_cache(maxsize=None)
def _own_of_e3nn() -> ModuleType:
    """e3nn's own e3nn.o3 while sys.modules has this module under that name.  Its files that are loaded
    already are not loaded again, so that its classes stay the same."""
    spec = PathFinder.find_spec("e3nn.o3", import_module("e3nn").__path__)
    if spec is None or spec.loader is None:
        raise ImportError("e3nn has no o3")
    own, ours = module_from_spec(spec), sys.modules["e3nn.o3"]
    sys.modules["e3nn.o3"] = own
    try:
        spec.loader.exec_module(own)
    finally:
        sys.modules["e3nn.o3"] = ours
    for name, module in list(sys.modules.items()):
        package, _, part = name.rpartition(".")
        if package == "e3nn.o3" and not hasattr(own, part):
            setattr(own, part, module)
    return own


def _degrees(irreps_out: Any) -> Optional[List[int]]:
    """Of an integer or a list of them; None of irreps."""
    if isinstance(irreps_out, int):
        return [irreps_out]
    if isinstance(irreps_out, (str, Irreps, Irrep)) or hasattr(type(irreps_out), "_e3nn_irreps_marker"):
        return None
    given = list(irreps_out) if hasattr(irreps_out, "__iter__") else [irreps_out]
    return given if all(isinstance(l, int) for l in given) else None


class SphericalHarmonics(Dropin):
    """e3nn.o3.SphericalHarmonics: of vectors (..., 3); irreps_out is a degree, a list of them or irreps.
    irreps_in: 1o, or 1e where all results are even; without it, what fits irreps_out."""

    def __init__(self, irreps_out: Any, normalize: bool, normalization: str = "integral",
                 irreps_in: Any = None):
        super().__init__()
        if normalization not in ("integral", "component", "norm"):
            raise Unfit(f"normalization: expected one of integral, component and norm, got "
                        f"{normalization!r}")
        degrees = _degrees(irreps_out)
        wanted = Irreps() if degrees is not None else Irreps(irreps_out)
        even = any(slot.l % 2 == 1 and slot.p == 1 for slot in wanted)
        self.irreps_in = Irreps(("1e" if even else "1o") if irreps_in is None else irreps_in)
        if self.irreps_in not in ("1x1o", "1x1e"):
            raise bad("irreps_in", "1o, vectors, or 1e, pseudovectors", self.irreps_in)
        p = self.irreps_in[0].p
        for slot in wanted:
            if slot.p != p ** slot.l:
                raise bad("irreps_out", f"the parities of harmonics of {self.irreps_in[0].ir}", wanted)
        degrees = wanted.ls if degrees is None else degrees
        if not degrees:
            raise bad("irreps_out", "at least one degree", "none")
        self.irreps_out = Irreps([(1, l, p ** l) for l in degrees]).simplify()
        self.normalize, self.normalization = bool(normalize), normalization
        self._spec = _spec("sh", {"l": degrees, "norm": normalization, "normalize": self.normalize})
        tell(self._spec)
        hold(self, self._spec)

    def _theirs(self) -> Tuple[str, str, Sequence[Any], Dict[str, Any]]:
        return "_spherical_harmonics", "SphericalHarmonics", (
            str(self.irreps_out), self.normalize, self.normalization, str(self.irreps_in)), {}

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        lead = as_type(x, None, "x", 3).shape[:-1]
        z = run(_typed(self._spec, x.dtype), [_rows(x, lead)])[0]
        return z if len(lead) == 1 else z.reshape(*lead, self.irreps_out.dim)

    def extra_repr(self) -> str:
        return f"{self.irreps_out}"


@lru_cache(maxsize=64)
def _harmonics(irreps: Any, normalize: bool, normalization: str) -> SphericalHarmonics:
    """Kept, as its kernels are freed with it."""
    return SphericalHarmonics(list(irreps) if type(irreps) is tuple else irreps, normalize, normalization)


def spherical_harmonics(l: Any, x: torch.Tensor, normalize: bool,
                        normalization: str = "integral") -> torch.Tensor:
    """e3nn.o3.spherical_harmonics."""
    degrees = _degrees(l)
    which = Irreps(l) if degrees is None else tuple(degrees)
    return _harmonics(which, bool(normalize), normalization)(x)


def wigner_3j(l1: int, l2: int, l3: int, dtype: Optional[torch.dtype] = None,
              device: Optional[torch.device] = None, *, signs: Optional[str] = None) -> torch.Tensor:
    """The 3j symbol as a tensor (2 l1 + 1, 2 l2 + 1, 2 l3 + 1); weft.wigner_3j gives a NumPy array."""
    try:
        symbol = _symbol(l1, l2, l3, signs=signs_of(signs))
    except ArgumentError as e:
        raise Unfit(str(e)) from None
    return torch.tensor(symbol, dtype=dtype or torch.get_default_dtype(), device=device)


torch.serialization.add_safe_globals([
    ElementwiseTensorProduct, FullTensorProduct, FullyConnectedTensorProduct, Instruction, Irrep, Irreps,
    Linear, LinearInstruction, Norm, Slot, SphericalHarmonics, TensorProduct, TensorSquare])
