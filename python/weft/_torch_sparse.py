# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""Operators of sparse matrices that torch records.  Each gradient is made of such operators again, and
so has gradients itself: that of a product by its values is an sddmm, and that of an sddmm a product."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from . import _ops
from ._sparse import With, arrays_of, segments


def _ends(A: Any) -> tuple:
    """The row and the column of each entry, in the order in which A stores them."""
    s, _ = segments(A)
    arrays = arrays_of(s)
    if s.format == "coo":
        return tuple(torch.from_numpy(np.asarray(a, np.int64)) for a in arrays)
    major = torch.from_numpy(np.repeat(np.arange(len(arrays[0]) - 1), np.diff(arrays[0])))
    minor = torch.from_numpy(np.asarray(arrays[1], np.int64)) if len(arrays) > 1 else None
    return (minor, major) if s.format == "csc" else (major, minor)


class _Spmm(torch.autograd.Function):
    @staticmethod
    def forward(A, transpose, values, B):
        return _ops.spmm(With(A, values), B, transpose=transpose)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.A, ctx.transpose = inputs[:2]
        ctx.save_for_backward(*inputs[2:])

    @staticmethod
    def backward(ctx, g):
        values, B = ctx.saved_tensors
        dvalues = dB = None
        if ctx.needs_input_grad[2]:
            dvalues = sddmm(ctx.A, _flat(g, values), _flat(B, values), ctx.transpose)
        if ctx.needs_input_grad[3]:
            dB = spmm(ctx.A, values, g, not ctx.transpose)
        return None, None, dvalues, dB


def _flat(x: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """(batch, n, ..., f) as (n, ..., batch f)."""
    if x.dim() == values.dim() + 1:
        return x
    return x.movedim(0, -2).flatten(-2)


class _Sddmm(torch.autograd.Function):
    @staticmethod
    def forward(A, transpose, X, Y):
        return _ops.sddmm(With(A, None), X, Y, transpose=transpose)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.A, ctx.transpose = inputs[:2]
        ctx.save_for_backward(*inputs[2:])

    @staticmethod
    def backward(ctx, g):
        X, Y = ctx.saved_tensors
        dX = spmm(ctx.A, g, Y, ctx.transpose) if ctx.needs_input_grad[2] else None
        dY = spmm(ctx.A, g, X, not ctx.transpose) if ctx.needs_input_grad[3] else None
        return None, None, dX, dY


class _Sum(torch.autograd.Function):
    """Over the entries of each row; the gradient goes to each of them."""

    @staticmethod
    def forward(A, transpose, X):
        return _ops.segment_reduce(With(A, None), X, transpose=transpose)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.A, ctx.transpose = inputs[:2]

    @staticmethod
    def backward(ctx, g):
        return None, None, g.index_select(0, _ends(ctx.A)[ctx.transpose])


class _Softmax(torch.autograd.Function):
    @staticmethod
    def forward(A, transpose, S):
        return _ops.softmax(With(A, None), S, transpose=transpose)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.A, ctx.transpose = inputs[:2]
        ctx.save_for_backward(output)

    @staticmethod
    def backward(ctx, g):
        P, = ctx.saved_tensors
        sums = _Sum.apply(ctx.A, ctx.transpose, g * P)
        return None, None, P * (g - sums.index_select(0, _ends(ctx.A)[ctx.transpose]))


def spmm(A: Any, values: Any, B: Any, transpose: bool) -> torch.Tensor:
    """values and B may be NumPy's, not both."""
    return _Spmm.apply(A, transpose, torch.as_tensor(values), torch.as_tensor(B))


def spmv(A: Any, values: Any, X: Any, transpose: bool) -> torch.Tensor:
    return spmm(A, values, torch.as_tensor(X).unsqueeze(-1), transpose).squeeze(-1)


def sddmm(A: Any, X: Any, Y: Any, transpose: bool, values: Any = None) -> torch.Tensor:
    z = _Sddmm.apply(A, transpose, torch.as_tensor(X), torch.as_tensor(Y))
    return z if values is None else z * torch.as_tensor(values)


def softmax(A: Any, S: torch.Tensor, transpose: bool) -> torch.Tensor:
    return _Softmax.apply(A, transpose, S)


def segment_reduce(A: Any, X: torch.Tensor, reduce: str, nodes: bool, arg: bool,
                   transpose: bool) -> Any:
    rows, cols = _ends(A)[::-1] if transpose else _ends(A)
    if reduce in ("sum", "mean"):
        y = _Sum.apply(A, transpose, X.index_select(0, cols) if nodes else X)
        if reduce == "sum":
            return y
        count = torch.bincount(rows, minlength=y.shape[0]).clamp(min=1).to(y.dtype)
        return y / count.reshape(-1, *[1] * (y.dim() - 1))
    with torch.no_grad():
        _, which = _ops.segment_reduce(With(A, None), X, reduce, nodes=nodes, arg=True,
                                       transpose=transpose)
    at = which.clamp(min=0)
    if rows.numel() == 0:
        y = X.sum() * 0 + X.new_zeros(which.shape)
    else:
        y = X.gather(0, cols[at] if nodes else at) * (which >= 0)
    return (y, which) if arg else y
