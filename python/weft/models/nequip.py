# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""NequIP: its tensor product with gather and sum becomes one operator.  A module keeps its e3nn product,
and so its state dict; only its class changes."""

from __future__ import annotations

from typing import List, Optional, Tuple

import torch
from nequip.nn._tp_scatter_base import TensorProductScatter
from nequip.nn.interaction_block import InteractionBlock
from nequip.nn.mlp import ScalarLinearLayer

from ._specs import Last, Specs, has_forward_of
from ._swap import swap


class Scatter(Specs, TensorProductScatter):
    """TensorProductScatter of which no edge has features in memory."""

    weft_stock = TensorProductScatter

    def forward(self, x, edge_attr, edge_weight, edge_dst, edge_src):
        return super().forward(x, edge_attr, edge_weight, edge_dst, edge_src)

    def weft_problem(self) -> tuple:
        return self.feature_irreps_in, self.irreps_edge_attr, self.irreps_mid, self.instructions

    def weft_run(self, x, edge_attr, edge_weight, edge_dst, edge_src):
        return self.weft_conv(x, edge_attr, edge_weight, edge_dst, edge_src)

    def weft_stock_run(self, x, edge_attr, edge_weight, edge_dst, edge_src):
        return super().weft_stock_run(x, edge_attr, self.weft_weights(edge_weight), edge_dst, edge_src)


class Layer(Last, ScalarLinearLayer):
    """The last layer of the radial network."""

    weft_stock = ScalarLinearLayer

    def weft_matrix(self) -> torch.Tensor:
        return self.weight * self.alpha


def _take_last(block: InteractionBlock, fuse: Optional[bool]) -> str:
    layers = list(block.edge_mlp.mlp.children())
    return block.tp_scatter.weft_take(layers[-1], Layer, fuse) if layers else ""


def replace(model: torch.nn.Module, fuse: Optional[bool]) -> List[Tuple[str, str]]:
    out = []
    for name, module in model.named_modules():
        tp = getattr(module, "tp_scatter", None)
        if isinstance(module, InteractionBlock) and type(tp) is TensorProductScatter and (
                has_forward_of(module, "nequip")):
            swap(tp, Scatter)
            radial = _take_last(module, fuse)
            out.append((name + ".tp_scatter", f"convolution over edges, {tp.feature_irreps_in} -> "
                                              f"{tp.irreps_mid}{radial}"))
    return out
