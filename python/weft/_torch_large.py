# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""A product of matrices whose result is large: torch's own, into memory of large pages."""

from __future__ import annotations

import torch

from ._torch import _native
from ._torch_ad import asked, has_tangent, is_traced


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, m):
        ctx.save_for_backward(x, m)
        out = x.new_empty(x.shape[0], m.shape[1])
        _native.weft_torch_large(out.data_ptr(), out.nbytes)
        return torch.mm(x, m, out=out)

    @staticmethod
    def backward(ctx, g):
        x, m = ctx.saved_tensors
        wanted = [w and asked(node) for w, (node, _) in zip(ctx.needs_input_grad, ctx.next_functions)]
        return g @ m.t() if wanted[0] else None, x.t() @ g if wanted[1] else None


def product(x: torch.Tensor, m: torch.Tensor) -> torch.Tensor:
    """x @ m, with derivatives to any order."""
    if (is_traced() or torch._C._are_functorch_transforms_active() or x.dtype != m.dtype
            or has_tangent(x) or has_tangent(m)):
        return x @ m
    return _Product.apply(x, m)
