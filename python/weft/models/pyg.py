# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""Layers of PyTorch Geometric, replaced by those of weft.nn with the same parameters.  A replacement has
the attributes of its layer, so it computes by the forward of weft.nn on them."""

from __future__ import annotations

from typing import Any, Dict, List, Tuple

import torch
import torch_geometric.nn as stock

from .. import nn
from ._swap import Swapped, no_compiler, swap

_AGGRS = ("add", "sum", "mean", "max", "min")
_LEAST = 1.2  # of a predicted gain


class _Layer(Swapped):
    weft_layer: type

    def forward(self, *inputs: Any, **named: Any) -> Any:
        tensors = [x for x in (*inputs, *named.values()) if isinstance(x, torch.Tensor)]
        known = all(x is None or isinstance(x, (torch.Tensor, tuple, list, bool, int)) for x in (*inputs, *named.values()))
        if not known or no_compiler() or torch.jit.is_tracing() or any(x.device.type != "cpu" for x in tensors):
            return self.weft_stock.forward(self, *inputs, **named)  # such as a SparseTensor
        layer = self.weft_layer.__new__(self.weft_layer)
        layer.__dict__ = self.__dict__
        return self.weft_layer.forward(layer, *inputs, **named)

    def reset_parameters(self) -> None:
        self.__dict__.pop("weft_cached", None)
        self.weft_stock.reset_parameters(self)


_CLASSES: Dict[type, type] = {}


def _class_of(kind: type) -> type:
    if kind not in _CLASSES:
        _CLASSES[kind] = type(kind.__name__, (_Layer, kind),
                              {"weft_stock": kind, "weft_layer": getattr(nn, kind.__name__)})
    return _CLASSES[kind]


def _features(module: Any) -> Tuple[float, float]:
    """Features that are gathered for each edge, and those that are computed for each node."""
    out = module.out_channels * getattr(module, "heads", 1)
    first = module.in_channels if isinstance(module.in_channels, int) else module.in_channels[0]
    return (max(first, 1), out) if isinstance(module, (stock.SAGEConv, stock.RGCNConv)) else (out, out)


def gain(module: Any, edges: float = 4.0) -> float:
    """The bytes that the stock layer moves over those of Weft's, for this many edges a node: it writes a
    message for each edge, reads it, and adds it to a result, where Weft reads the features of senders."""
    gathered, computed = _features(module)
    dense = gathered + computed
    ours = edges * gathered + dense
    theirs = 5 * edges * gathered + dense
    if isinstance(module, stock.RGCNConv):  # a result of all nodes for each relation
        theirs += module.num_relations * (2 * gathered + 3 * computed)
    return theirs / ours


def _why_not(module: Any) -> str:
    names = module.aggr if isinstance(module.aggr, (list, tuple)) else [module.aggr]
    if not all(a in _AGGRS for a in names) or (isinstance(module, stock.RGCNConv) and module.aggr == "min"):
        return f"aggr={module.aggr!r} is not known"
    if isinstance(module, (stock.GATConv, stock.GATv2Conv)) and module.aggr not in ("add", "sum"):
        return f"aggr={module.aggr!r} is not known"
    if getattr(module, "decomposed_layers", 1) != 1:
        return "decomposed_layers"
    return "" if gain(module) >= _LEAST else "no gain is predicted"


def replace(model: torch.nn.Module, _fuse_radial: Any = None) -> List[Tuple[str, str]]:
    """Every layer that is known; its name and what it is now."""
    kinds = (stock.GCNConv, stock.SAGEConv, stock.GATConv, stock.GATv2Conv, stock.RGCNConv)
    out = []
    for name, module in model.named_modules():
        if type(module) in kinds and not _why_not(module):
            swap(module, _class_of(type(module)))
            out.append((name, f"weft.nn.{type(module).__name__}, {gain(module):.1f}x fewer bytes predicted"))
    return out
