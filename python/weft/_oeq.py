# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""TensorProduct and TensorProductConv: modules of torch with the names and arguments of
OpenEquivariance, on Weft's operators."""

from __future__ import annotations

from typing import Any, List, Optional, Sequence

import torch

from ._irreps import Irreps
from ._peers import Mismatch, Unfit
from ._problem import TPProblem
from ._script import Unscripted, no_tensor
from ._sparse import bad
from ._torch import _DTYPES, _native, run
from ._torch_ad import is_traced
from ._torch_conv import conv
from ._uses import hold


def torch_to_oeq_dtype(dtype: torch.dtype) -> type:
    """The NumPy type of a dtype of torch, for irrep_dtype and weight_dtype."""
    return TPProblem("0e", "0e", "0e", [(0, 0, 0, "uuu", False)], irrep_dtype=dtype).irrep_dtype


def torch_ext_so_path() -> str:
    """The library with Weft's operators of torch, for programs without Python (docs/torch.md)."""
    return _native._name


def transpose_irreps(array: torch.Tensor, irreps: Any, src_layout: str, dst_layout: str) -> torch.Tensor:
    """Features (..., irreps.dim) in another layout, of "mul_ir" and "ir_mul"; the same layout is a copy."""
    for name, layout in (("src_layout", src_layout), ("dst_layout", dst_layout)):
        if layout not in ("mul_ir", "ir_mul"):
            raise bad(name, "mul_ir or ir_mul", repr(layout))
    if not isinstance(array, torch.Tensor):
        raise TypeError(f"array: expected a tensor of torch, got {type(array).__name__}")
    irreps = Irreps(irreps)
    if array.shape[-1:] != (irreps.dim,):
        raise _unlike("array", f"(..., {irreps.dim})", array)
    if src_layout == dst_layout or not irreps:
        return array.clone()
    inner = [(mul, ir.dim) if src_layout == "mul_ir" else (ir.dim, mul) for mul, ir in irreps]
    parts = array.split([slot.dim for slot in irreps], -1)
    return torch.cat([part.unflatten(-1, shape).transpose(-1, -2).flatten(-2)
                      for part, shape in zip(parts, inner)], -1)


def _unlike(name: str, shape: str, x: torch.Tensor) -> Mismatch:
    return Mismatch(f"Shape mismatch: {name}: expected {shape}, got {tuple(x.shape)}")


def _operand(name: str, x: Any, rows: Any, width: int, dtype: torch.dtype) -> torch.Tensor:
    """A tensor (rows, width), or without rows (width,).  Autocast may have left another type of floats."""
    if not isinstance(x, torch.Tensor):
        raise no_tensor(name, x)
    if x.ndim != (1 if rows is None else 2) or x.shape[-1] != width or (
            rows is not None and not is_traced() and x.shape[0] != rows):
        raise _unlike(name, f"{width} elements in the last dimension"
                      + (" and no other" if rows is None else f" of {rows} rows"), x)
    if x.dtype != dtype and not (x.is_floating_point() and torch.is_autocast_enabled("cpu")):
        raise Mismatch(f"Dtype mismatch: {name}: expected elements of {dtype}, got {x.dtype}; "
                       f"{name}.to({dtype}) converts them")
    return x if x.dtype == dtype else x.to(dtype)


def _edges(name: str, x: Any, rows: torch.Tensor) -> None:
    """A list of indices, one for each edge, as many as `rows`, which is checked first."""
    if not isinstance(x, torch.Tensor):
        raise no_tensor(name, x)
    if x.ndim != 1:
        raise _unlike(name, "one dimension, an index for each edge", x)
    if not is_traced() and x.shape[0] != rows.shape[0]:
        raise _unlike(name, f"the shape ({rows.shape[0]},) of rows", x)
    if x.dtype not in (torch.int32, torch.int64):
        raise Mismatch(f"Dtype mismatch: {name}: expected elements of torch.int32 or torch.int64, got "
                       f"{x.dtype}")


def _on_one_device(names: Sequence[str], tensors: List[torch.Tensor]) -> None:
    """All on the CPU, or all on "meta", which has shapes alone."""
    where = {x.device.type for x in tensors}
    if where not in ({"cpu"}, {"meta"}):
        name, x = next((n, x) for n, x in zip(names, tensors) if x.device.type != "cpu")
        raise Mismatch(f"Device mismatch: {name} is not on the CPU but on {x.device}")


def _check_problem(problem: TPProblem) -> None:
    """Refuses problems that OpenEquivariance refuses and that are mistakes more often than not."""
    modes = [path[3] for path in problem.instructions_raw]
    if not modes:
        raise Unfit("problem: expected instructions with at least one path, got none: the result would be 0 "
                    "everywhere")
    if problem.layout == "ir_mul" and set(modes) != {"uvu"}:
        k = next(k for k, mode in enumerate(modes) if mode != "uvu")
        raise Unfit(f"problem: layout='ir_mul' is for paths of the mode uvu alone, as in OpenEquivariance, and "
                    f"path {k} has {modes[k]}; weft.Product(..., layout='ir_mul') computes other modes")


class _Problem(Unscripted, torch.nn.Module):
    """A problem, and the dtypes of its operands.  There are no parameters and no buffers; a change of
    dtype, as by double(), is one of the problem, of which the module has a copy."""

    def __init__(self, problem: TPProblem, form: str):
        super().__init__()
        if not isinstance(problem, TPProblem):
            raise bad("problem", "a weft.TPProblem", type(problem).__name__)
        _check_problem(problem)
        self._form = form
        self._take(problem.clone())
        hold(self, self._spec)

    def _take(self, problem: TPProblem) -> None:
        self._spec = problem.spec(self._form)
        self.config = problem
        self._dtype, self._weight_dtype = _DTYPES[problem.type], _DTYPES[problem.weight_type]
        self.weight_numel = problem.weight_numel
        self._dims = problem.irreps_in1.dim, problem.irreps_in2.dim
        self._weights = problem.weights

    @property
    def input_args(self) -> dict:
        return {"problem": self.config}

    @property
    def signs(self) -> str:
        """The convention of 3j symbols."""
        return self.config.signs

    def _apply(self, fn, recurse=True):
        dtype = fn(torch.empty(0, dtype=self._dtype)).dtype
        if dtype != self._dtype:
            self._take(self.config.clone(irrep_dtype=dtype, weight_dtype=dtype))
            hold(self, self._spec)
        return super()._apply(fn, recurse)

    def reorder_weights_from_e3nn(self, weights: torch.Tensor, has_batch_dim: bool = True) -> torch.Tensor:
        """Weights are in e3nn's order here."""
        return weights

    def reorder_weights_to_e3nn(self, weights: torch.Tensor, has_batch_dim: bool = True) -> torch.Tensor:
        return weights

    def _operands(self, x: Any, y: Any, w: Any, rows: Any, items: Any) -> List[torch.Tensor]:
        out = [_operand("X", x, rows, self._dims[0], self._dtype),
               _operand("Y", y, items, self._dims[1], self._dtype)]
        if self._weights != "none":
            out.append(_operand("W", w, None if self._weights == "shared" else items, self.weight_numel,
                                self._weight_dtype))
        return out

    def extra_repr(self) -> str:
        return repr(self.config)


def _rows_of(x: Any) -> Any:
    return x.shape[0] if isinstance(x, torch.Tensor) and x.ndim else 0


class TensorProduct(_Problem):
    """Z = X x Y by weights W, a row for each item; W is one row for all where weights are shared."""

    def __init__(self, problem: TPProblem, torch_op: bool = True, use_opaque: bool = False):
        super().__init__(problem, "tp")

    def forward(self, x: torch.Tensor, y: torch.Tensor, W: Optional[torch.Tensor] = None) -> torch.Tensor:
        operands = self._operands(x, y, W, _rows_of(x), _rows_of(x))
        _on_one_device("XYW", operands)
        return run("o3 " + self._spec, operands)[0]


class TensorProductConv(_Problem):
    """Z[row] = the sum over edges k with rows[k] == row of X[cols[k]] x Y[k] by weights W[k].

    Results have the same bits for any number of threads, with `deterministic` or without; sums are
    in the order of the senders.  With `kahan` sums over edges are compensated, in gradients too.  `rows`
    and `cols` may be in any order and of int32 or int64; num_rows is the number of rows of Z (as many as X
    has)."""

    def __init__(self, problem: TPProblem, torch_op: bool = True, deterministic: bool = False,
                 kahan: bool = False, use_opaque: bool = False):
        self.__dict__["kahan"] = kahan
        super().__init__(problem, "conv")
        self.deterministic = deterministic

    def _take(self, problem: TPProblem) -> None:
        super()._take(problem)
        if self.kahan:
            self._spec += "; sums=compensated"

    def forward(self, X: torch.Tensor, Y: torch.Tensor, W: Optional[torch.Tensor], rows: torch.Tensor,
                cols: torch.Tensor, sender_perm: Optional[torch.Tensor] = None,
                num_rows: Optional[int] = None) -> torch.Tensor:
        indices = {"rows": rows, "cols": cols}
        if sender_perm is not None:  # accepted, checked, and not needed
            indices["sender_perm"] = sender_perm
        for name, x in indices.items():
            _edges(name, x, rows)
        operands = self._operands(X, Y, W, _rows_of(X), rows.shape[0])
        names = ["X", "Y", "W"][:len(operands)]
        _on_one_device([*names, *indices], [*operands, *indices.values()])
        nodes = X.shape[0] if num_rows is None else num_rows
        return conv(self._spec, operands, rows, cols, nodes)


torch.serialization.add_safe_globals([TPProblem, TensorProduct, TensorProductConv])
