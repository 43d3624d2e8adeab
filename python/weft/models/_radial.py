# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""The last layer of e3nn's FullyConnectedNet, which SevenNet and MACE have for a radial network."""

from __future__ import annotations

from typing import Optional

import torch
from e3nn.nn import FullyConnectedNet
from e3nn.nn._fc import _Layer

from ._specs import Last, Specs


class Layer(Last, _Layer):
    weft_stock = _Layer

    def weft_matrix(self) -> torch.Tensor:
        return self.weight / (self.h_in * self.var_in / self.var_out) ** 0.5


def take_last(conv: Specs, net: torch.nn.Module, fuse: Optional[bool]) -> str:
    """Lets the convolution have the last layer of `net` inside; a word on it for the report."""
    if type(net) is not FullyConnectedNet:
        return ""
    return conv.weft_take(list(net.children())[-1], Layer, fuse)
