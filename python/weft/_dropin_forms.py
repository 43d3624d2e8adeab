# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""Drop-ins for the tensor products of e3nn.o3 that find their paths themselves, and for Norm.  The library
lists the paths: docs/tensor-products.md, section 7."""

from __future__ import annotations

from typing import Any, Dict, Iterable, Optional, Sequence, Tuple

import torch

from ._dropin import Dropin, TensorProduct, _rows, _typed, as_type
from ._irreps import Irrep, Irreps, tell
from ._lib import ArgumentError
from ._o3 import _spec
from ._peers import Unfit
from ._torch import run
from ._uses import hold


def _form(form: str, **settings: Any) -> tuple:
    """The irreps of the operands of a named form, and its paths; there may be none, as in e3nn."""
    try:
        lines = tell(_spec(form, {**settings, "empty": "zeros"})).splitlines()
    except ArgumentError as e:
        raise Unfit(str(e)) from None
    irreps, paths = {}, []
    for what, *words in map(str.split, lines):
        if what == "path":
            i, j, k, mode, has, weight = words
            paths.append((int(i), int(j), int(k), mode, has == "yes", float(weight)))
        elif what != "weights":
            irreps[what] = Irreps(" ".join(words))
    one = irreps["in1"]
    return one, irreps.get("in2", one), irreps["out"], paths


def _kept(irreps: Optional[Iterable[Any]]) -> Optional[Irreps]:
    return None if irreps is None else Irreps([(1, Irrep(ir)) for ir in irreps])


class FullyConnectedTensorProduct(TensorProduct):
    """e3nn.o3.FullyConnectedTensorProduct: every path that the irreps allow, uvw."""

    def __init__(self, irreps_in1: Any, irreps_in2: Any, irreps_out: Any,
                 irrep_normalization: Optional[str] = None, path_normalization: Optional[str] = None,
                 **kwargs: Any):
        super().__init__(*_form("connected", in1=Irreps(irreps_in1), in2=Irreps(irreps_in2),
                                out=Irreps(irreps_out)), irrep_normalization=irrep_normalization,
                         path_normalization=path_normalization, **kwargs)


class _Chosen(TensorProduct):
    """A product without weights whose output slots are those that its form makes."""

    _form_name = ""

    def __init__(self, irreps_in1: Any, irreps_in2: Any, filter_ir_out: Optional[Iterable[Any]] = None,
                 irrep_normalization: Optional[str] = None, **kwargs: Any):
        keep = _kept(filter_ir_out)
        one, two, out, paths = _form(self._form_name, in1=Irreps(irreps_in1), in2=Irreps(irreps_in2),
                                     keep=keep or None, weights="none")
        if keep is not None and not keep:
            out, paths = Irreps(), []
        super().__init__(one, two, out, paths, irrep_normalization=irrep_normalization, **kwargs)


class FullTensorProduct(_Chosen):
    """e3nn.o3.FullTensorProduct: every channel of x times every channel of y, uvuv without weights."""

    _form_name = "full"


class ElementwiseTensorProduct(_Chosen):
    """e3nn.o3.ElementwiseTensorProduct: channel u of x times channel u of y, uuu without weights."""

    _form_name = "elementwise"


class TensorSquare(TensorProduct):
    """e3nn.o3.TensorSquare: the product of x with itself; with irreps_out fully connected, with weights."""

    def __init__(self, irreps_in: Any, irreps_out: Any = None, filter_ir_out: Optional[Iterable[Any]] = None,
                 irrep_normalization: Optional[str] = None, **kwargs: Any):
        keep = _kept(filter_ir_out)
        if irreps_out is not None and keep is not None:
            raise ArgumentError("irreps_out, filter_ir_out: expected one of them, got both")
        norm = irrep_normalization or "component"
        if norm not in ("component", "norm", "none"):
            raise Unfit(f"irrep_normalization: expected one of component, norm and none, got {norm!r}")
        one, two, out, paths = _form(
            "square", in1=Irreps(irreps_in).simplify(), keep=keep or None, norm=norm,
            out=None if irreps_out is None else Irreps(irreps_out).simplify())
        if keep is not None and not keep:
            out, paths = Irreps(), []
        super().__init__(one, two, out, paths, irrep_normalization="none", **kwargs)
        self.irreps_in = one
        self._asked = [str(Irreps(irreps_in)), None if irreps_out is None else str(Irreps(irreps_out)),
                       None if keep is None else [str(slot.ir) for slot in keep], norm]

    def _theirs(self) -> Tuple[str, str, Sequence[Any], Dict[str, Any]]:
        return "_tensor_product._sub", "TensorSquare", self._asked, {
            "internal_weights": self.internal_weights, "shared_weights": self.shared_weights}

    def forward(self, x: torch.Tensor, weight: Any = None) -> torch.Tensor:
        return super().forward(x, x, weight)

    def _names(self) -> str:
        return str(self.irreps_in1)


class Norm(Dropin):
    """e3nn.o3.Norm: the length of each irrep, or with `squared` its square.  Its derivative at 0 is 0."""

    def __init__(self, irreps_in: Any, squared: bool = False):
        super().__init__()
        self.irreps_in, self.squared = Irreps(irreps_in).simplify(), bool(squared)
        self.irreps_out = Irreps([(self.irreps_in.num_irreps, "0e")]).simplify()
        self._spec = _spec("norm", {"in1": self.irreps_in, "squared": self.squared})
        if self.irreps_in.dim:
            hold(self, self._spec)

    def _theirs(self) -> Tuple[str, str, Sequence[Any], Dict[str, Any]]:
        return "_norm", "Norm", (str(self.irreps_in), self.squared), {}

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        x = as_type(features, None, "features", self.irreps_in.dim)
        lead = x.shape[:-1]
        if not self.irreps_in.dim:
            return x.new_zeros(*lead, 0)
        z = run(_typed(self._spec, x.dtype), [_rows(x, lead)])[0]
        return z if len(lead) == 1 else z.reshape(*lead, self.irreps_out.dim)

    def _load_from_state_dict(self, state_dict, prefix, *more):
        """e3nn's has a product inside, with a mask."""
        for key in [k for k in state_dict if k.startswith(prefix + "tp.")]:
            del state_dict[key]
        super()._load_from_state_dict(state_dict, prefix, *more)

    def extra_repr(self) -> str:
        return str(self.irreps_in)
