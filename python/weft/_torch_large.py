# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""A linear map whose result is large: torch's own product, into memory of large pages."""

from __future__ import annotations

from typing import Optional

import torch
from torch import Tensor
from torch.nn import functional

from ._torch import _native
from ._torch_ad import asked, has_tangent, is_traced

_LARGE = 1 << 22  # bytes; torch's allocator reuses the memory of smaller results


def _empty(x: Tensor, rows: int, columns: int) -> Tensor:
    out = x.new_empty(rows, columns)
    _native.weft_torch_large(out.data_ptr(), out.nbytes)
    return out


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, m, bias):
        ctx.save_for_backward(x, m)
        out = _empty(x, x.shape[0], m.shape[1])
        return torch.mm(x, m, out=out) if bias is None else torch.addmm(bias, x, m, out=out)

    @staticmethod
    def backward(ctx, g):
        x, m = ctx.saved_tensors
        wanted = [w and asked(node) for w, (node, _) in zip(ctx.needs_input_grad, ctx.next_functions)]
        return (product(g, m.t()) if wanted[0] else None, x.t() @ g if wanted[1] else None,
                g.sum(0) if wanted[2:] == [True] else None)


def _is_large(x: Tensor, m: Tensor, bias: Optional[Tensor]) -> bool:
    """Is x @ m + bias a large matrix in a type that torch would give it, which only autograd looks at?"""
    if x.dim() != 2 or is_traced() or x.shape[0] * m.shape[1] * x.itemsize < _LARGE:
        return False
    given = [x, m] if bias is None else [x, m, bias]
    return (all([a.dtype == x.dtype and a.device.type == "cpu" and not has_tangent(a) for a in given])
            and x.shape[1] == m.shape[0] and not torch._C._are_functorch_transforms_active()
            and not torch.is_autocast_enabled("cpu"))


def product(x: Tensor, m: Tensor) -> Tensor:
    """x @ m, with derivatives to any order."""
    return _Linear.apply(x, m, None) if _is_large(x, m, None) else x @ m


def linear(x: Tensor, weight: Tensor, bias: Optional[Tensor] = None) -> Tensor:
    """torch.nn.functional.linear, with derivatives to any order."""
    m = weight.t()
    return _Linear.apply(x, m, bias) if _is_large(x, m, bias) else functional.linear(x, weight, bias)
