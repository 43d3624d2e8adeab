# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""Layers of attention over masks."""

from __future__ import annotations

from typing import Any, Optional

import torch
from torch import Tensor, nn

from .. import _check, masks
from .._attention import attention
from .._sparse import bad

__all__ = ["SparseAttention"]


class SparseAttention(nn.Module):
    """Self-attention of several heads at the pairs of a mask: [batch, tokens, embed_dim] or [tokens, embed_dim]
    to the same.  Parameters have the names and shapes of torch.nn.MultiheadAttention, whose state dict it loads
    when num_kv_heads is not given.

        layer = weft.nn.SparseAttention(768, 12, weft.masks.longformer(4096, 256, 1))

    mask: of weft.masks, or what weft.attention takes; None: given to each call, or all pairs.
    num_kv_heads: heads of keys and values, when fewer than num_heads.
    dropout: of weights, while training, by a seed from torch's generator."""

    def __init__(self, embed_dim: int, num_heads: int, mask: Any = None, *, num_kv_heads: Optional[int] = None,
                 dropout: float = 0.0, bias: bool = True, scale: Optional[float] = None, device: Any = None,
                 dtype: Optional[torch.dtype] = None):
        super().__init__()
        self.embed_dim, self.num_heads = (_check.integer(name, x, 1) for name, x in
                                          (("embed_dim", embed_dim), ("num_heads", num_heads)))
        self.num_kv_heads = num_heads if num_kv_heads is None else \
            _check.integer("num_kv_heads", num_kv_heads, 1)
        if embed_dim % num_heads:
            raise bad("num_heads", f"a number that divides embed_dim, {embed_dim}", num_heads)
        if num_heads % self.num_kv_heads:
            raise bad("num_kv_heads", f"a number that divides num_heads, {num_heads}", num_kv_heads)
        self.mask = None if mask is None else masks.of(mask)
        self.dropout, self.scale = _check.real("dropout", dropout), scale
        if not 0 <= self.dropout < 1:
            raise bad("dropout", "a probability from 0 to less than 1", dropout)
        rows = (num_heads + 2 * self.num_kv_heads) * (embed_dim // num_heads)
        like = {"device": device, "dtype": dtype}
        self.in_proj_weight = nn.Parameter(torch.empty(rows, embed_dim, **like))
        self.in_proj_bias = nn.Parameter(torch.empty(rows, **like)) if bias else None
        self.out_proj = nn.Linear(embed_dim, embed_dim, bias=bias, **like)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """As torch.nn.MultiheadAttention begins."""
        nn.init.xavier_uniform_(self.in_proj_weight)
        self.out_proj.reset_parameters()
        if self.in_proj_bias is not None:
            nn.init.zeros_(self.in_proj_bias)
            nn.init.zeros_(self.out_proj.bias)

    def forward(self, x: Tensor, mask: Any = None, lengths: Any = None) -> Tensor:
        if x.dim() not in (2, 3) or x.shape[-1] != self.embed_dim:
            raise bad("x", f"[batch, tokens, {self.embed_dim}] or [tokens, {self.embed_dim}]", tuple(x.shape))
        rows = nn.functional.linear(x, self.in_proj_weight, self.in_proj_bias)
        heads = rows.unflatten(-1, (-1, self.embed_dim // self.num_heads)).transpose(-2, -3)
        q, k, v = heads.split([self.num_heads, self.num_kv_heads, self.num_kv_heads], -3)
        p = self.dropout if self.training else 0.0
        seed = torch.randint(2 ** 62, ()) if p else 0
        z = attention(q, k, v, self.mask if mask is None else mask, scale=self.scale, dropout=p, seed=seed,
                      lengths=lengths, enable_gqa=True)
        return self.out_proj(z.transpose(-2, -3).flatten(-2))

    def extra_repr(self) -> str:
        return f"{self.embed_dim}, {self.num_heads}, mask={self.mask!r}"
