# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""Drop-ins for classes of e3nn.o3, on Weft's operators: the same arguments, the same weights in the same
order, the same names in state dicts.  Derivatives exist to any order."""

from __future__ import annotations

from typing import Any, List, Optional, Sequence, Tuple, Union

import torch

from ._irreps import Irreps
from ._o3 import _spec
from ._oeq import as_type
from ._problem import Instruction, TPProblem
from ._sparse import bad
from ._torch import run
from ._uses import hold

__all__ = ["FullyConnectedTensorProduct", "Irreps", "Linear", "SphericalHarmonics", "TensorProduct",
           "spherical_harmonics"]

_TYPE_OF = {torch.float16: "f16", torch.bfloat16: "bf16", torch.float32: "f32", torch.float64: "f64"}


def _typed(spec: str, dtype: torch.dtype) -> str:
    if dtype not in _TYPE_OF:
        raise bad("x", "elements of float16, bfloat16, float32 or float64", dtype)
    return f"o3 {spec}; type={_TYPE_OF[dtype]}"


def _broadcast(a: torch.Size, b: torch.Size) -> torch.Size:
    return a if a == b else torch.broadcast_shapes(a, b)


def _rows(x: torch.Tensor, lead: torch.Size) -> torch.Tensor:
    """(..., dim) as (items, dim)."""
    if x.shape[:-1] != lead:
        x = x.expand(*lead, x.shape[-1])
    return x if len(lead) == 1 else x.reshape(-1, x.shape[-1])


class _Dropin(torch.nn.Module):
    """Loads state dicts of e3nn, which have constants of generated code that are not needed here."""

    def _load_from_state_dict(self, state_dict, prefix, *more):
        for key in [k for k in state_dict if k.startswith(prefix + "_compiled_")]:
            del state_dict[key]
        super()._load_from_state_dict(state_dict, prefix, *more)


class TensorProduct(_Dropin):
    """e3nn.o3.TensorProduct: z = x y by weights, which are inside or given with each call."""

    def __init__(self, irreps_in1: Any, irreps_in2: Any, irreps_out: Any, instructions: Sequence[Any],
                 in1_var: Optional[Sequence[float]] = None, in2_var: Optional[Sequence[float]] = None,
                 out_var: Optional[Sequence[float]] = None, irrep_normalization: Optional[str] = None,
                 path_normalization: Optional[str] = None, internal_weights: Optional[bool] = None,
                 shared_weights: Optional[bool] = None, compile_left_right: bool = True,
                 compile_right: bool = False, signs: str = "e3nn"):
        super().__init__()
        has = any(tuple(i)[4] for i in instructions)
        if shared_weights is False and internal_weights is None:
            internal_weights = False
        self.shared_weights = True if shared_weights is None else bool(shared_weights)
        self.internal_weights = (self.shared_weights and has if internal_weights is None
                                 else bool(internal_weights))
        if self.internal_weights and not self.shared_weights:
            raise bad("shared_weights", "True, as internal weights are shared", "False")
        p = TPProblem(irreps_in1, irreps_in2, irreps_out, instructions, in1_var=in1_var,
                      in2_var=in2_var, out_var=out_var, shared_weights=self.shared_weights,
                      irrep_normalization=irrep_normalization or "component",
                      path_normalization=path_normalization or "element", signs=signs)
        self._keep(p)

    def _keep(self, p: TPProblem) -> None:
        self.problem, self.weight_numel = p, p.weight_numel
        self.irreps_in1, self.irreps_in2, self.irreps_out = p.irreps_in1, p.irreps_in2, p.irreps_out
        self._dims = p.irreps_in1.dim, p.irreps_in2.dim, p.irreps_out.dim
        self.instructions: List[Instruction] = p.instructions
        spec = p.spec("tp").split("; ")
        self._spec = "; ".join(s for s in spec if not s.startswith(("type=", "weight_type=")))
        hold(self, self._spec)
        if self.internal_weights:
            self.weight = torch.nn.Parameter(torch.randn(self.weight_numel))
        else:
            self.register_buffer("weight", torch.Tensor())
        self.register_buffer("output_mask", _mask(p.irreps_out, {i.i_out for i in p.instructions}))

    def forward(self, x: torch.Tensor, y: torch.Tensor,
                weight: Union[torch.Tensor, Sequence[torch.Tensor], None] = None) -> torch.Tensor:
        dtype = torch.promote_types(x.dtype, y.dtype)
        x = as_type(x, dtype, "x", self._dims[0])
        y = as_type(y, dtype, "y", self._dims[1])
        lead = _broadcast(x.shape[:-1], y.shape[:-1])
        operands = [_rows(x, lead), _rows(y, lead)]
        if self.problem.weights != "none":
            w = self._weights(weight, dtype)
            if not self.shared_weights:
                lead2 = _broadcast(lead, w.shape[:-1])
                if lead2 != lead:
                    lead, operands = lead2, [_rows(x, lead2), _rows(y, lead2)]
                w = _rows(w, lead)
            operands.append(w)
        z = run(_typed(self._spec, dtype), operands)[0]
        return z if len(lead) == 1 else z.reshape(*lead, self._dims[2])

    def _weights(self, weight: Any, dtype: torch.dtype) -> torch.Tensor:
        if weight is None:
            if not self.internal_weights:
                raise bad("weight", f"weights ({self.weight_numel},), as there are none inside", "None")
            weight = self.weight
        elif not isinstance(weight, torch.Tensor):  # a list, one for each path
            lead = weight[0].shape[:0] if self.shared_weights else weight[0].shape[:1]
            weight = torch.cat([w.reshape(*lead, -1) for w in weight], dim=-1)
        return as_type(weight, dtype, "weight", self.weight_numel)

    def extra_repr(self) -> str:
        return (f"{self.irreps_in1} x {self.irreps_in2} -> {self.irreps_out} | "
                f"{len(self.instructions)} paths | {self.weight_numel} weights")


class FullyConnectedTensorProduct(TensorProduct):
    """e3nn.o3.FullyConnectedTensorProduct: every path that the irreps allow, uvw."""

    def __init__(self, irreps_in1: Any, irreps_in2: Any, irreps_out: Any,
                 irrep_normalization: Optional[str] = None, path_normalization: Optional[str] = None,
                 **kwargs: Any):
        one, two, out = Irreps(irreps_in1), Irreps(irreps_in2), Irreps(irreps_out)
        paths = [(i, j, k, "uvw", True, 1.0) for i, a in enumerate(one) for j, b in enumerate(two)
                 for k, c in enumerate(out)
                 if a.p * b.p == c.p and abs(a.l - b.l) <= c.l <= a.l + b.l]
        super().__init__(one, two, out, paths, irrep_normalization=irrep_normalization,
                         path_normalization=path_normalization, **kwargs)


def _mask(irreps: Irreps, reached) -> torch.Tensor:
    """1 where a path writes, as e3nn keeps it."""
    parts = [torch.full((slot.dim,), float(k in reached)) for k, slot in enumerate(irreps)]
    return torch.cat(parts) if parts else torch.ones(0)


class Linear(_Dropin):
    """e3nn.o3.Linear: mixes the channels of each irrep; weights and biases are inside, or given."""

    def __init__(self, irreps_in: Any, irreps_out: Any, *, internal_weights: Optional[bool] = None,
                 shared_weights: Optional[bool] = None,
                 instructions: Optional[Sequence[Tuple[int, int]]] = None,
                 biases: Union[bool, Sequence[bool]] = False, path_normalization: str = "element"):
        super().__init__()
        self.irreps_in, self.irreps_out = Irreps(irreps_in), Irreps(irreps_out)
        if shared_weights is False and internal_weights is None:
            internal_weights = False
        self.shared_weights = True if shared_weights is None else bool(shared_weights)
        self.internal_weights = (self.shared_weights if internal_weights is None
                                 else bool(internal_weights))
        scalars = [(slot.l, slot.p) == (0, 1) for slot in self.irreps_out]
        wanted = [biases and s for s in scalars] if isinstance(biases, bool) else list(biases)
        if any(wanted) and wanted != scalars:
            raise bad("biases", "none, or one for each slot of 0e", wanted)
        pairs = [(i, k) for i, a in enumerate(self.irreps_in) for k, b in enumerate(self.irreps_out)
                 if a[1:] == b[1:]] if instructions is None else [tuple(p)[:2] for p in instructions]
        self.instructions = pairs
        self._bias = any(wanted)
        self._spec = _spec("linear", {
            "in1": self.irreps_in, "out": self.irreps_out, "paths": ", ".join(f"{i} {k}" for i, k in pairs) or None,
            "weights": ("shared" if self.shared_weights else "item") if pairs else "none",
            "bias": self._bias, "path_norm": path_normalization})
        hold(self, self._spec)
        self.weight_numel = sum(self.irreps_in[i].mul * self.irreps_out[k].mul for i, k in pairs)
        self.bias_numel = sum(s.mul for s, w in zip(self.irreps_out, wanted) if w)
        self._dims = self.irreps_in.dim, self.irreps_out.dim
        self._parameters_of()

    def _parameters_of(self) -> None:
        for name, n, value in (("weight", self.weight_numel, torch.randn),
                               ("bias", self.bias_numel, torch.zeros)):
            if self.internal_weights and n > 0:
                setattr(self, name, torch.nn.Parameter(value(n)))
            else:
                self.register_buffer(name, torch.Tensor())
        reached = {k for _, k in self.instructions}
        if self._bias:
            reached |= {k for k, s in enumerate(self.irreps_out) if (s.l, s.p) == (0, 1)}
        self.register_buffer("output_mask", _mask(self.irreps_out, reached))

    def forward(self, features: torch.Tensor, weight: Optional[torch.Tensor] = None,
                bias: Optional[torch.Tensor] = None) -> torch.Tensor:
        x, dtype = features, features.dtype
        as_type(x, dtype, "features", self._dims[0])
        lead = x.shape[:-1]
        operands = [_rows(x, lead)]
        if self.weight_numel > 0:
            w = as_type(self.weight if weight is None else weight, dtype, "weight", self.weight_numel)
            operands.append(w if self.shared_weights else _rows(w, lead))
        if self._bias:
            operands.append(as_type(self.bias if bias is None else bias, dtype, "bias", self.bias_numel))
        z = run(_typed(self._spec, dtype), operands)[0]
        return z if len(lead) == 1 else z.reshape(*lead, self._dims[1])

    def extra_repr(self) -> str:
        return f"{self.irreps_in} -> {self.irreps_out} | {self.weight_numel} weights"


class SphericalHarmonics(torch.nn.Module):
    """e3nn.o3.SphericalHarmonics: of vectors (..., 3); irreps_out is a degree, a list of them or irreps."""

    def __init__(self, irreps_out: Any, normalize: bool, normalization: str = "integral",
                 irreps_in: Any = None):
        super().__init__()
        if isinstance(irreps_out, int):
            degrees = [irreps_out]
        elif isinstance(irreps_out, (list, tuple)) and not isinstance(irreps_out, Irreps) and all(
                isinstance(l, int) for l in irreps_out):
            degrees = list(irreps_out)
        else:
            degrees = [s.l for s in Irreps(irreps_out) for _ in range(s.mul)]
        odd = Irreps(irreps_in)[0].p == -1 if irreps_in is not None else True
        self.irreps_out = (Irreps(irreps_out) if not isinstance(irreps_out, (int, list, tuple))
                           or isinstance(irreps_out, Irreps)
                           else Irreps([(1, l, -1 if odd and l % 2 else 1) for l in degrees]))
        self.normalize, self.normalization = normalize, normalization
        self._spec = _spec("sh", {"l": degrees, "norm": normalization, "normalize": bool(normalize)})
        hold(self, self._spec)
        self._dim = sum(2 * l + 1 for l in degrees)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        lead = as_type(x, x.dtype, "x", 3).shape[:-1]
        z = run(_typed(self._spec, x.dtype), [_rows(x, lead)])[0]
        return z if len(lead) == 1 else z.reshape(*lead, self._dim)

    def extra_repr(self) -> str:
        return f"{self.irreps_out}"


def spherical_harmonics(l: Any, x: torch.Tensor, normalize: bool,
                        normalization: str = "integral") -> torch.Tensor:
    """e3nn.o3.spherical_harmonics."""
    return SphericalHarmonics(l, normalize, normalization)(x)
