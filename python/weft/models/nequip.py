# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""NequIP: its tensor product with gather and sum becomes one operator.  A module keeps its e3nn product,
and so its state dict; only its class changes."""

from __future__ import annotations

from typing import List, Tuple

import torch
from nequip.nn._tp_scatter_base import TensorProductScatter

from ._specs import Specs
from .._torch_conv import conv


class Scatter(Specs, TensorProductScatter):
    """TensorProductScatter of which no edge has features in memory."""

    def weft_problem(self) -> tuple:
        return self.feature_irreps_in, self.irreps_edge_attr, self.irreps_mid, self.instructions

    def forward(self, x, edge_attr, edge_weight, edge_dst, edge_src):
        return conv(self.weft_spec(x.dtype), [x, edge_attr.to(x.dtype), edge_weight.to(x.dtype)],
                    edge_dst, edge_src, x.shape[0])


def replace(model: torch.nn.Module) -> List[Tuple[str, str]]:
    out = []
    for name, module in model.named_modules():
        if type(module) is TensorProductScatter:
            module.__class__ = Scatter
            out.append((name, f"convolution over edges, {module.feature_irreps_in} -> "
                              f"{module.irreps_mid}"))
    return out
