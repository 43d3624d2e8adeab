# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""SevenNet: its convolution, with gather and sum, becomes one operator.  A module keeps its parameters
and what it had for a tensor product, and so its state dict; only its class changes."""

from __future__ import annotations

from typing import List, Optional, Tuple

import torch
from e3nn.o3 import TensorProduct
from sevenn import _keys as KEY
from sevenn.nn.convolution import IrrepsConvolution

from ._radial import take_last
from ._specs import Specs
from ._swap import swap


class Convolution(Specs, IrrepsConvolution):
    """IrrepsConvolution of which no edge has features in memory."""

    weft_stock = IrrepsConvolution

    def forward(self, data):
        return super().forward(data)

    def weft_problem(self) -> tuple:
        k = self.convolution_kwargs
        return k["irreps_in1"], k["irreps_in2"], k["irreps_out"], k["instructions"]

    def weft_tensors(self, inputs):
        return [inputs[0][self.key_x]]

    def weft_run(self, data):
        x = data[self.key_x]
        if self.is_parallel:
            x = torch.cat([x, data[KEY.NODE_FEATURE_GHOST]])
        weight = self.weight_nn(data[self.key_weight_input])
        edges = data[self.key_edge_idx]
        x = self.weft_conv(x, data[self.key_filter], weight, edges[0], edges[1])
        x = x.div(self.denominator)
        if self.is_parallel:
            x = torch.tensor_split(x, data[KEY.NLOCAL])[0]
        data[self.key_x] = x
        return data

    def weft_stock_run(self, data):
        for layer in self.weft_last:
            layer.weft_fuse = False  # the stock forward wants the weights of edges
        return super().weft_stock_run(data)


def replace(model: torch.nn.Module, fuse: Optional[bool]) -> List[Tuple[str, str]]:
    out = []
    for name, module in model.named_modules():
        if type(module) is IrrepsConvolution and type(module.convolution) is TensorProduct:
            swap(module, Convolution)
            radial = take_last(module, module.weight_nn, fuse)
            out.append((name, f"convolution over edges, {module.convolution_kwargs['irreps_in1']} -> "
                              f"{module.convolution_kwargs['irreps_out']}{radial}"))
    return out
