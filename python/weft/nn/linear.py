# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""A linear layer whose weight is pruned (docs/weights.md)."""

from __future__ import annotations

from typing import Any, Dict, Optional

import torch
from torch import nn

from .._sparse import bad, describe
from .._weights import SparseWeight, sparse_linear


class SparseLinear(nn.Module):
    """y = x W' + bias, of which W has only the entries of a mask:

        layer = weft.nn.SparseLinear.from_dense(linear, mask, "bsr(16, 16)")

    values: the stored entries, in the order of the format (docs/weights.md); elements that only fill a block
    count as 0 and get no gradient.  The state dict has `values`, `bias` and, as extra state, the mask."""

    def __init__(self, weight: SparseWeight, bias: Optional[torch.Tensor] = None):
        super().__init__()
        if not isinstance(weight, SparseWeight):
            raise bad("weight", "a weft.SparseWeight; SparseLinear.from_dense takes a linear layer", describe(weight))
        self._take(weight)
        self.values = nn.Parameter(torch.as_tensor(weight.values).detach().clone())
        self.bias = None if bias is None else nn.Parameter(bias.detach().clone())

    def _take(self, weight: SparseWeight) -> None:
        self._weight = weight
        self.out_features, self.in_features = weight.shape
        self.format = weight.format

    @classmethod
    def from_dense(cls, linear: nn.Module, mask: Any = None, format: str = "auto") -> "SparseLinear":
        """linear: a torch.nn.Linear.  mask (out, in): which entries stay; default: those that are not 0.
        format: "csr", "bsr(b, c)", "dbsr(b, c)", "sr_bcrs(b, g)", "n_m(k, g)"; "auto": the one for which the
        cost model predicts the shortest time."""
        if not isinstance(linear, nn.Linear):
            raise bad("linear", "a torch.nn.Linear", type(linear).__name__)
        weight = SparseWeight.from_dense(linear.weight.detach(), mask, format)
        layer = cls(weight, linear.bias)
        layer.train(linear.training)
        for new, old in ((layer.values, linear.weight), (layer.bias, linear.bias)):
            if new is not None:
                new.requires_grad_(old.requires_grad)
        return layer

    @property
    def weight(self) -> torch.Tensor:
        """The dense weight."""
        return self._weight.with_values(self.values).to_dense()

    def to_dense(self) -> nn.Linear:
        """A torch.nn.Linear with the same weight."""
        linear = nn.Linear(self.in_features, self.out_features, self.bias is not None, dtype=self.values.dtype)
        with torch.no_grad():
            linear.weight.copy_(self.weight)
            if self.bias is not None:
                linear.bias.copy_(self.bias)
        return linear

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return sparse_linear(x, self._weight.with_values(self.values), self.bias)

    def _apply(self, fn: Any, recurse: bool = True) -> "SparseLinear":
        super()._apply(fn, recurse)
        if self._weight.keep is not None:
            self._weight = SparseWeight(self._weight.shape, self._weight._format, self._weight._places,
                                        self.values, self._weight.keep.to(self.values.dtype))
        return self

    def get_extra_state(self) -> Dict[str, Any]:
        return {"format": self.format, "mask": self._weight.mask()}

    def set_extra_state(self, state: Dict[str, Any]) -> None:
        mask = state["mask"]
        weight = SparseWeight.from_dense(mask.to(self.values.dtype), mask, state["format"])
        if weight.shape != self._weight.shape:
            raise bad("state dict", f"a weight of shape {self._weight.shape}", weight.shape)
        self._take(weight)
        if self.values.shape != weight.values.shape:
            raise bad("state dict", f"{weight.values.numel()} stored elements, as its mask has", self.values.numel())

    def extra_repr(self) -> str:
        return (f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}, "
                f"format={self.format}, stored={self._weight.nnz / max(1, self.in_features * self.out_features):.1%}")
