# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""Operators of sparse matrices that torch records.  Each gradient is made of such operators again, and
so has gradients itself: that of a product by its values is an sddmm, and that of an sddmm a product."""

from __future__ import annotations

from typing import Any, Callable, List

import numpy as np
import torch

from . import _ops
from ._sparse import With, arrays_of, segments
from ._torch_ad import Rules, add, differentiable, one_by_one


def _ends(A: Any) -> tuple:
    """The row and the column of each entry, in the order in which A stores them."""
    s, _ = segments(A)
    arrays = arrays_of(s)
    if s.format == "coo":
        return tuple(torch.from_numpy(np.asarray(a, np.int64)) for a in arrays)
    major = torch.from_numpy(np.repeat(np.arange(len(arrays[0]) - 1), np.diff(arrays[0])))
    minor = torch.from_numpy(np.asarray(arrays[1], np.int64)) if len(arrays) > 1 else None
    return (minor, major) if s.format == "csc" else (major, minor)


def _flat(x: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """(batch, n, ..., f) as (n, ..., batch f)."""
    if x.dim() == values.dim() + 1:
        return x
    return x.movedim(0, -2).flatten(-2)


def _bilinear(f: Callable, arrays, tangents, *rest) -> List[Any]:
    """The tangent of f(a, b), which is linear in both."""
    (a, b), (da, db) = arrays, tangents
    return [add(None if da is None else f(da, b, *rest), None if db is None else f(a, db, *rest))]


def _spmm_gradients(arrays, rest, grads, wanted):
    (values, B), (A, transpose), (g,) = arrays, rest, grads
    return [sddmm(A, _flat(g, values), _flat(B, values), transpose) if wanted[0] else None,
            spmm(A, values, g, not transpose) if wanted[1] else None]


_spmm = differentiable(Rules(
    "spmm", lambda arrays, A, transpose: [_ops.spmm(With(A, arrays[0]), arrays[1], transpose=transpose)],
    _spmm_gradients,
    lambda arrays, rest, tangents: _bilinear(lambda v, B: spmm(rest[0], v, B, rest[1]), arrays, tangents),
    one_by_one))


def _sddmm_gradients(arrays, rest, grads, wanted):
    (X, Y), (A, transpose), (g,) = arrays, rest, grads
    return [spmm(A, g, Y, transpose) if wanted[0] else None,
            spmm(A, g, X, not transpose) if wanted[1] else None]


_sddmm = differentiable(Rules(
    "sddmm", lambda arrays, A, transpose: [_ops.sddmm(With(A, None), *arrays, transpose=transpose)],
    _sddmm_gradients,
    lambda arrays, rest, tangents: _bilinear(lambda X, Y: sddmm(rest[0], X, Y, rest[1]), arrays, tangents),
    one_by_one))


def _spread(x: torch.Tensor, A: Any, transpose: bool) -> torch.Tensor:
    """A row for each row of A, as one for each entry."""
    return x.index_select(0, _ends(A)[transpose])


# Over the entries of each row; the gradient goes to each of them.
_sum = differentiable(Rules(
    "segment_sum",
    lambda arrays, A, transpose: [_ops.segment_reduce(With(A, None), *arrays, transpose=transpose)],
    lambda kept, rest, grads, wanted: [_spread(grads[0], *rest)],
    lambda kept, rest, tangents: _sum(tangents, *rest), one_by_one, lambda arrays, results, *rest: []))


# The entries that have the largest or smallest values: integers, so they have no derivative.
_winners = differentiable(Rules(
    "segment_arg",
    lambda arrays, A, reduce, nodes, transpose: [_ops.segment_reduce(
        With(A, None), *arrays, reduce, nodes=nodes, arg=True, transpose=transpose)[1]],
    lambda kept, rest, grads, wanted: [None], lambda kept, rest, tangents: [None], one_by_one,
    lambda arrays, results, *rest: []))


def _softmax_change(kept, rest, changes, *_):
    """Of the scores by that of the result, or of the result by that of the scores: it is the same, as
    the matrix of derivatives, diag(P) - P P^T in each row, is symmetric."""
    (P,), (dP,) = kept, changes
    sums, = _sum([dP * P], *rest)
    return [P * (dP - _spread(sums, *rest))]


_softmax = differentiable(Rules(
    "softmax", lambda arrays, A, transpose: [_ops.softmax(With(A, None), *arrays, transpose=transpose)],
    _softmax_change, _softmax_change, one_by_one, lambda arrays, results, *rest: results))


def spmm(A: Any, values: Any, B: Any, transpose: bool) -> torch.Tensor:
    """values and B may be NumPy's, not both."""
    return _spmm([torch.as_tensor(values), torch.as_tensor(B)], _hidden(A), transpose)[0]


def spmv(A: Any, values: Any, X: Any, transpose: bool) -> torch.Tensor:
    return spmm(A, values, torch.as_tensor(X).unsqueeze(-1), transpose).squeeze(-1)


def sddmm(A: Any, X: Any, Y: Any, transpose: bool, values: Any = None) -> torch.Tensor:
    z, = _sddmm([torch.as_tensor(X), torch.as_tensor(Y)], _hidden(A), transpose)
    return z if values is None else z * torch.as_tensor(values)


def softmax(A: Any, S: torch.Tensor, transpose: bool) -> torch.Tensor:
    return _softmax([S], _hidden(A), transpose)[0]


def _hidden(A: Any) -> With:
    """The structure of A alone: a sparse tensor would be an operand to torch."""
    return A if isinstance(A, With) else With(A, None)


def segment_reduce(A: Any, X: torch.Tensor, reduce: str, nodes: bool, arg: bool,
                   transpose: bool) -> Any:
    rows, cols = _ends(A)[::-1] if transpose else _ends(A)
    if reduce in ("sum", "mean"):
        y, = _sum([X.index_select(0, cols) if nodes else X], _hidden(A), transpose)
        if reduce == "sum":
            return y
        count = torch.bincount(rows, minlength=y.shape[0]).clamp(min=1).to(y.dtype)
        return y / count.reshape(-1, *[1] * (y.dim() - 1))
    which, = _winners([X.detach()], _hidden(A), reduce, nodes, transpose)
    at = which.clamp(min=0)
    if rows.numel() == 0:
        y = X.sum() * 0 + X.new_zeros(which.shape)
    else:
        y = X.gather(0, cols[at] if nodes else at) * (which >= 0)
    return (y, which) if arg else y
