# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""The drop-in for e3nn.o3.TensorProduct, and what it shares with those for other classes: rows of items,
weights that are inside or given, state dicts, and the convention of signs."""

from __future__ import annotations

import re
import warnings
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec, module_from_spec
from math import prod
from types import ModuleType
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple, Union

import torch

from ._irreps import Irreps, wigner_3j
from ._peers import SIGNS, Instruction, Mismatch, Unfit, default_signs, weights_of
from ._problem import TPProblem, paths_of
from ._script import Unscripted, no_tensor
from ._sparse import bad
from ._torch import run
from ._uses import hold

_TYPE_OF = {torch.float16: "f16", torch.bfloat16: "bf16", torch.float32: "f32", torch.float64: "f64"}
_SYMBOL = re.compile(r"_compiled_.*_w3j_(\d+)_(\d+)_(\d+)$")


def _typed(spec: str, dtype: torch.dtype) -> str:
    if dtype not in _TYPE_OF:
        raise bad("x", "elements of float16, bfloat16, float32 or float64", dtype)
    return f"o3 {spec}; type={_TYPE_OF[dtype]}"


def as_type(x: torch.Tensor, dtype: Optional[torch.dtype], name: str,
            width: Optional[int]) -> torch.Tensor:
    """An operand in the dtype of the others: autocast may have left another.  None: any."""
    if not isinstance(x, torch.Tensor):
        raise no_tensor(name, x)
    if width is not None and x.shape[-1:] != (width,):
        raise Mismatch(f"{name}: expected {width} elements in the last dimension, got {tuple(x.shape)}")
    return x if dtype in (None, x.dtype) else x.to(dtype)


def _broadcast(a: torch.Size, b: torch.Size) -> torch.Size:
    return a if a == b else torch.broadcast_shapes(a, b)


def _rows(x: torch.Tensor, lead: torch.Size) -> torch.Tensor:
    """(..., dim) as (items, dim)."""
    if x.shape[:-1] != lead:
        x = x.expand(*lead, x.shape[-1])
    return x if len(lead) == 1 else x.reshape(-1, x.shape[-1])


def _mask(irreps: Irreps, reached) -> torch.Tensor:
    """1 where a path writes, as e3nn keeps it."""
    parts = [torch.full((slot.dim,), float(k in reached)) for k, slot in enumerate(irreps)]
    return torch.cat(parts) if parts else torch.ones(0)


@lru_cache(maxsize=None)
def _copy_of(where: str) -> ModuleType:
    """A module of e3nn, loaded once more and kept apart."""
    spec = find_spec(where)
    if spec is None or spec.loader is None:
        raise ImportError(f"there is no module {where}")
    copy = module_from_spec(spec)
    spec.loader.exec_module(copy)
    return copy


def _class_of_e3nn(where: str, name: str) -> type:
    """The class of e3nn, also when the module that defines it has Weft's under its name."""
    cls = getattr(import_module(where), name)
    return getattr(_copy_of(where), name) if issubclass(cls, Dropin) else cls


class Dropin(Unscripted, torch.nn.Module):
    """Loads state dicts of e3nn, which have constants of generated code that are not needed here.  `signs`
    is the convention of 3j symbols where results depend on it; state dicts tell it in their metadata."""

    signs: Optional[str] = None

    def _theirs(self) -> Tuple[str, str, Sequence[Any], Dict[str, Any]]:
        """Of e3nn's class: the module that defines it, its name, and the arguments that make this one."""
        raise NotImplementedError

    def stock(self) -> torch.nn.Module:
        """The module of e3nn that computes the same, with the same parameters."""
        where, name, args, more = self._theirs()
        try:
            cls = _class_of_e3nn("e3nn.o3." + where, name)
        except ImportError:
            return super().stock()
        if self.signs not in (None, default_signs()):
            raise RuntimeError(f"{name} has the 3j symbols of {self.signs}, and the installed e3nn has those of "
                               f"{default_signs()}: no class of e3nn computes the same here")
        out = cls(*args, **more).train(self.training)
        if "output_mask" in self._buffers:  # which has the dtype of the module
            out.to(self.output_mask.dtype)
        for key, parameter in self.named_parameters():
            setattr(out, key, parameter)
        return out

    def _share(self, internal: Optional[bool], shared: Optional[bool], has: bool) -> None:
        """Whether weights are inside, and whether all items share them; None: e3nn's default."""
        if shared is False and internal is None:
            internal = False
        self.shared_weights = True if shared is None else bool(shared)
        self.internal_weights = self.shared_weights and has if internal is None else bool(internal)
        if self.internal_weights and not self.shared_weights:
            raise Unfit("shared_weights: expected True, as internal weights are shared, got False")

    def _weights_inside(self, name: str, shape: Tuple[int, ...], value: Any) -> None:
        if self.internal_weights and prod(shape):
            setattr(self, name, torch.nn.Parameter(value(*shape)))
        else:
            self.register_buffer(name, torch.Tensor())

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        super()._save_to_state_dict(destination, prefix, keep_vars)
        if self.signs is not None and hasattr(destination, "_metadata"):
            destination._metadata.setdefault(prefix[:-1], {})["signs"] = self.signs

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, *more):
        symbols = {key: state_dict.pop(key) for key in list(state_dict)
                   if key.startswith(prefix + "_compiled_")}
        if self.signs is not None:
            self._compare(local_metadata.get("signs") or _signs_in(symbols, prefix))
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *more)

    def _compare(self, theirs: Optional[str]) -> None:
        if theirs not in (None, self.signs):
            warnings.warn(f"this state dict comes from a module with the 3j symbols of {theirs}, and "
                          f"{type(self).__name__} has those of {self.signs}: results differ by the signs of "
                          f"some paths; build the module with signs={theirs!r}", stacklevel=2)


def _signs_in(constants: Dict[str, Any], prefix: str) -> Optional[str]:
    """The convention of the 3j symbols in constants of e3nn; None where both agree."""
    for key, value in constants.items():
        match = _SYMBOL.match(key[len(prefix):])
        if match and isinstance(value, torch.Tensor):
            now, before = (torch.from_numpy(wigner_3j(*map(int, match.groups()), signs=s)) for s in SIGNS)
            if not torch.equal(now, before) and value.shape == now.shape:
                return SIGNS[int((value.to(now) * now).sum() < 0)]
    return None


class Views:
    """Of modules whose weights are in the order of their instructions."""

    instructions: List[Any]

    def _weighted(self) -> List[int]:
        """The instructions with weights."""
        raise NotImplementedError

    def weight_view_for_instruction(self, instruction: int,
                                    weight: Optional[torch.Tensor] = None) -> torch.Tensor:
        """The weights of one path, a view of `weight` or of those inside: (..., *path_shape)."""
        for i, _, view in self.weight_views(weight, yield_instruction=True):
            if i == range(len(self.instructions))[instruction]:
                return view
        raise bad("instruction", "a path with weights", f"path {instruction}, which has none")

    def weight_views(self, weight: Optional[torch.Tensor] = None,
                     yield_instruction: bool = False) -> Iterator[Any]:
        """The weights of each path that has some; with yield_instruction (index, instruction, weights)."""
        weight = self._given_weights(weight)
        shapes = [self.instructions[i].path_shape for i in self._weighted()]
        for i, shape, (start, n) in zip(self._weighted(), shapes, weights_of(shapes)):
            view = weight.narrow(-1, start, n).view(weight.shape[:-1] + shape)
            yield (i, self.instructions[i], view) if yield_instruction else view


class TensorProduct(Views, Dropin):
    """e3nn.o3.TensorProduct: z = x y by weights, which are inside or given with each call.

    signs: of 3j symbols, "e3nn" or "e3nn-0.4"; without it those of the installed e3nn.  Arguments of e3nn
    that are about the code that it generates are taken and have no effect but in TorchScript."""

    def __init__(self, irreps_in1: Any, irreps_in2: Any, irreps_out: Any, instructions: Sequence[Any],
                 in1_var: Optional[Sequence[float]] = None, in2_var: Optional[Sequence[float]] = None,
                 out_var: Optional[Sequence[float]] = None, irrep_normalization: Optional[str] = None,
                 path_normalization: Optional[str] = None, internal_weights: Optional[bool] = None,
                 shared_weights: Optional[bool] = None, compile_left_right: bool = True,
                 compile_right: bool = False, normalization: Optional[str] = None,
                 _specialized_code: Optional[bool] = None, _optimize_einsums: Optional[bool] = None,
                 signs: Optional[str] = None):
        super().__init__()
        if normalization is not None:
            warnings.warn("normalization: irrep_normalization is its name now", DeprecationWarning,
                          stacklevel=2)
            irrep_normalization = normalization
        instructions = paths_of(instructions)
        self._share(internal_weights, shared_weights, any(i[4] for i in instructions))
        p = TPProblem(irreps_in1, irreps_in2, irreps_out, instructions, in1_var=in1_var,
                      in2_var=in2_var, out_var=out_var, shared_weights=self.shared_weights,
                      irrep_normalization=irrep_normalization or "component",
                      path_normalization=path_normalization or "element", signs=signs)
        self._specialized_code, self._optimize_einsums = _specialized_code, _optimize_einsums
        self._for_stock = {"compile_left_right": compile_left_right, "compile_right": compile_right}
        self._keep(p)

    def _keep(self, p: TPProblem) -> None:
        self.problem, self.weight_numel, self.signs = p, p.weight_numel, p.signs
        self.irreps_in1, self.irreps_in2, self.irreps_out = p.irreps_in1, p.irreps_in2, p.irreps_out
        self._dims = p.irreps_in1.dim, p.irreps_in2.dim, p.irreps_out.dim
        self.instructions: List[Instruction] = p.instructions
        reached = {i.i_out for i in self.instructions if i.path_weight and prod(i.path_shape)}
        self._weighs, self._is_zero = p.weights != "none", not any(prod(i.path_shape) for i in self.instructions)
        spec = p.spec("tp").split("; ")
        self._spec = "; ".join(s for s in spec if not s.startswith(("type=", "weight_type=")))
        hold(self, self._spec)
        self._weights_inside("weight", (self.weight_numel,), torch.randn)
        self.register_buffer("output_mask", _mask(p.irreps_out, reached))

    def _theirs(self) -> Tuple[str, str, Sequence[Any], Dict[str, Any]]:
        p = self.problem
        return "_tensor_product._tensor_product", "TensorProduct", (
            str(p.irreps_in1), str(p.irreps_in2), str(p.irreps_out), p.instructions_raw), {
            "in1_var": p.in1_var, "in2_var": p.in2_var, "out_var": p.out_var,
            "irrep_normalization": p.irrep_normalization, "path_normalization": p.path_normalization,
            "internal_weights": self.internal_weights, "shared_weights": self.shared_weights,
            **self._for_stock}

    def forward(self, x: torch.Tensor, y: torch.Tensor,
                weight: Union[torch.Tensor, Sequence[torch.Tensor], None] = None) -> torch.Tensor:
        x, y = as_type(x, None, "x", self._dims[0]), as_type(y, None, "y", self._dims[1])
        dtype = torch.promote_types(x.dtype, y.dtype)
        x, y = (a if a.dtype == dtype else a.to(dtype) for a in (x, y))
        lead = _broadcast(x.shape[:-1], y.shape[:-1])
        w = self._given_weights(weight) if self._weighs or weight is not None else None
        if w is not None and not self.shared_weights:
            lead = _broadcast(lead, w.shape[:-1])
        if self._is_zero:
            return x.new_zeros(*lead, self._dims[2])
        operands = [_rows(x, lead), _rows(y, lead)]
        if self._weighs:
            w = w if w.dtype == dtype else w.to(dtype)
            operands.append(w if self.shared_weights else _rows(w, lead))
        z = run(_typed(self._spec, dtype), operands)[0]
        return z if len(lead) == 1 else z.reshape(*lead, self._dims[2])

    def right(self, y: torch.Tensor, weight: Any = None) -> torch.Tensor:
        """The product as a matrix that acts on x: (..., irreps_in1.dim, irreps_out.dim).  It is computed
        as the products of all unit vectors x."""
        y = as_type(y, None, "y", self._dims[1])
        if self._weighs:
            weight = self._given_weights(weight)
            weight = weight if self.shared_weights else weight.unsqueeze(-2)
        unit = torch.eye(self._dims[0], dtype=y.dtype, device=y.device)
        return self.forward(unit, y.unsqueeze(-2), weight)

    def visualize(self, *args: Any, **more: Any) -> Any:
        """The plot of e3nn's class, which needs e3nn and matplotlib."""
        return self.stock().visualize(*args, **more)

    def _given_weights(self, weight: Any) -> torch.Tensor:
        """Those of a call, or those inside."""
        if weight is None:
            if self.weight_numel and not self.internal_weights:
                raise Mismatch(f"weight: expected weights ({self.weight_numel},), as there are none inside, "
                               "got None")
            return self.weight if self.shared_weights else self.weight.new_zeros(1, 0)
        if not isinstance(weight, torch.Tensor):  # a list, one for each path
            sizes = [self.instructions[i].path_shape for i in self._weighted()]
            weight = torch.cat([w.reshape(*(() if self.shared_weights else w.shape[:w.ndim - len(s)]),
                                          prod(s)) for w, s in zip(weight, sizes)], dim=-1)
        if self.shared_weights and weight.shape != (self.weight_numel,):
            raise Mismatch(f"weight: expected the shape ({self.weight_numel},), as all items share weights, "
                           f"got {tuple(weight.shape)}")
        if not self.shared_weights and (weight.ndim < 2 or weight.shape[-1] != self.weight_numel):
            raise Mismatch(f"weight: expected the shape (..., {self.weight_numel}) with dimensions for the "
                           f"items, got {tuple(weight.shape)}")
        return weight

    def _weighted(self) -> List[int]:
        return [i for i, ins in enumerate(self.instructions) if ins.has_weight]

    def _names(self) -> str:
        return f"{self.irreps_in1.simplify()} x {self.irreps_in2.simplify()}"

    def extra_repr(self) -> str:
        paths = sum(prod(i.path_shape) for i in self.instructions)
        return (f"{self._names()} -> {self.irreps_out.simplify()} | {paths} paths | "
                f"{self.weight_numel} weights | signs of {self.signs}")
