# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""What replaced convolutions have in common: their problem as text, by the dtype of features, and the
last layer of the radial network, which a convolution can have inside.

That layer is a product H @ M without a bias, H of (edges, hidden).  Where it is fused it gives its input on
as it is, and the convolution, which sees the width of what comes, makes the weights of edges from H and M
in its kernel.  The layer stays where it was, with its parameter."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Sequence

import torch

from ._swap import Swapped, swap
from .._problem import TPProblem
from .._torch_conv import conv
from .._torch_large import product
from ..o3 import _TYPE_OF

# Bytes of edges x weights.  glibc gives larger arrays back to the system when they are freed, so that the
# pages of each are new; from there on to make weights twice takes no longer than to keep them.
LARGE = 32 << 20


def has_forward_of(module: torch.nn.Module, package: str) -> bool:
    """Is its forward the package's own?  That of a class derived elsewhere may differ."""
    return type(module).forward.__module__.split(".")[0] == package


class Last(Swapped):
    """A base of last layers: weft_run gives on what a convolution will multiply by weft_matrix().

    Without a gradient to come, the convolution makes the weights faster than a product and reads nothing.
    With one it has to make them twice: that takes less memory, and longer while arrays are small."""

    weft_fuse: Optional[bool] = None  # None: without a gradient, and where the array would be LARGE

    def forward(self, x):
        return super().forward(x)

    def weft_fuses(self, x: torch.Tensor) -> bool:
        if self.weft_fuse is not None:
            return self.weft_fuse
        if torch.compiler.is_compiling():
            return False
        if not (torch.is_grad_enabled() and (x.requires_grad or self.weight.requires_grad)):
            return True
        return x.shape[0] * self.weight.shape[1] * x.element_size() > LARGE

    def weft_run(self, x):
        return x if self.weft_fuses(x) else product(x, self.weft_matrix())


class Specs(Swapped):
    """A base of modules that have weft_problem(): irreps of the operands, and instructions."""

    weft_options: Dict[str, Any] = {}  # of TPProblem
    weft_last: Sequence[Last] = ()  # a list, so that the layer is no submodule of this one

    def weft_spec(self, dtype: torch.dtype, hidden: Optional[int] = None) -> str:
        """The problem for features of this type, made once."""
        specs = self.__dict__.setdefault("_weft_specs", {})
        if (dtype, hidden) not in specs:
            problem = TPProblem(*self.weft_problem(), shared_weights=False, irrep_dtype=_TYPE_OF[dtype],
                                weight_dtype=_TYPE_OF[dtype], **self.weft_options)
            specs[dtype, hidden] = problem.spec("conv", hidden=hidden)
        return specs[dtype, hidden]

    def weft_is_hidden(self, weight: torch.Tensor) -> bool:
        """Is this what goes into the last layer of the radial network, and not what comes out?"""
        return bool(self.weft_last) and weight.shape[1] == self.weft_last[0].weight.shape[0]

    def weft_weights(self, weight: torch.Tensor) -> torch.Tensor:
        """The weights of edges, for the stock way; from now on the last layer makes them itself."""
        if isinstance(weight, torch.fx.Proxy) or not self.weft_is_hidden(weight):
            return weight
        self.weft_last[0].weft_fuse = False
        return weight @ self.weft_last[0].weft_matrix()

    def weft_conv(self, x, y, weight, rows, cols) -> torch.Tensor:
        """`weight` has those of edges, or what the last layer of the radial network has left."""
        given: List[torch.Tensor] = [x, y.to(x.dtype), weight.to(x.dtype)]
        hidden = None
        if self.weft_is_hidden(weight):
            hidden = weight.shape[1]
            given.append(self.weft_last[0].weft_matrix().to(x.dtype))
        return conv(self.weft_spec(x.dtype, hidden), given, rows, cols, x.shape[0])

    def weft_take(self, layer: torch.nn.Module, to: type, fuse: Optional[bool]) -> str:
        """Takes the last layer of the radial network in, if it is one of this kind; a word on it."""
        if type(layer) is not to.weft_stock or len(set(layer.weight.shape)) == 1 or (
                getattr(layer, "act", None) is not None or getattr(layer, "bias", None) is not None):
            return ""
        swap(layer, to)
        layer.weft_fuse = fuse
        self.weft_last = [layer]
        where = {None: "fused where that is better", True: "fused", False: "beside it"}[fuse]
        return f"; radial layer {layer.weight.shape[0]} -> {layer.weight.shape[1]} {where}"

    def weft_restore(self) -> None:
        for layer in self.weft_last:
            if isinstance(layer, Swapped):
                layer.weft_restore()
        super().weft_restore()
