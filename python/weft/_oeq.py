# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""TensorProduct and TensorProductConv: modules of torch with the names and arguments of
OpenEquivariance, on Weft's operators."""

from __future__ import annotations

from typing import Any, Dict, Optional

import torch

from ._problem import TPProblem, type_of
from ._sparse import bad
from ._torch import _DTYPES, _native, run
from ._torch_conv import conv
from ._uses import hold


def torch_to_oeq_dtype(dtype: torch.dtype) -> type:
    """The NumPy type of a dtype of torch, for irrep_dtype and weight_dtype."""
    return TPProblem("0e", "0e", "0e", [(0, 0, 0, "uuu", False)], irrep_dtype=dtype).irrep_dtype


def torch_ext_so_path() -> str:
    """The library with Weft's operators of torch, for programs without Python (docs/torch.md)."""
    return _native._name


def as_type(x: torch.Tensor, dtype: torch.dtype, name: str, width: int) -> torch.Tensor:
    """An operand in the dtype of the problem: autocast may have left another."""
    if x.shape[-1:] != (width,):
        raise bad(name, f"{width} elements in the last dimension", tuple(x.shape))
    return x if x.dtype == dtype else x.to(dtype)


class _Problem(torch.nn.Module):
    """A problem, and the dtypes of its operands.  There are no parameters and no buffers; a change of
    dtype, as by double(), is one of the problem."""

    def __init__(self, problem: TPProblem, form: str):
        super().__init__()
        if not isinstance(problem, TPProblem):
            raise bad("problem", "a weft.TPProblem", type(problem).__name__)
        self._form = form
        self._take(problem)
        hold(self, self._spec)

    def _take(self, problem: TPProblem) -> None:
        self._spec = problem.spec(self._form)
        self.config = self.input_args = problem
        self._dtype, self._weight_dtype = _DTYPES[problem.type], _DTYPES[problem.weight_type]
        self.weight_numel = problem.weight_numel
        self._dims = problem.irreps_in1.dim, problem.irreps_in2.dim
        self._has_weights = problem.weights != "none"

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

    def _operands(self, x, y, w):
        out = [as_type(x, self._dtype, "X", self._dims[0]), as_type(y, self._dtype, "Y", self._dims[1])]
        if self._has_weights:
            out.append(as_type(w, self._weight_dtype, "W", self.weight_numel))
        return out

    def extra_repr(self) -> str:
        return repr(self.config)


class TensorProduct(_Problem):
    """Z = X x Y by weights W, a row for each item; W is one row for all where weights are shared."""

    def __init__(self, problem: TPProblem, torch_op: bool = True, use_opaque: bool = False):
        super().__init__(problem, "tp")

    def forward(self, x: torch.Tensor, y: torch.Tensor, W: Optional[torch.Tensor] = None) -> torch.Tensor:
        return run("o3 " + self._spec, self._operands(x, y, W))[0]


class TensorProductConv(_Problem):
    """Z[row] = the sum over edges k with rows[k] == row of X[cols[k]] x Y[k] by weights W[k].

    Results have the same bits for any number of threads, with `deterministic` or without; sums are
    in the order of the senders.  With `kahan` sums over edges are compensated, in gradients too.  `rows` and `cols` may be in any order and of int32
    or int64; num_rows is the number of rows of Z (as many as X has)."""

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
        nodes = X.shape[0] if num_rows is None else num_rows
        return conv(self._spec, self._operands(X, Y, W), rows, cols, nodes)


torch.serialization.add_safe_globals([TPProblem, TensorProduct, TensorProductConv])
