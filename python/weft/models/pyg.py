# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""Layers of PyTorch Geometric, replaced by those of weft.nn with the same parameters.  A replacement has
the attributes of its layer, so it computes by the forward of weft.nn on them."""

from __future__ import annotations

import math
from ctypes import byref
from functools import lru_cache
from typing import Any, Dict, List, Optional, Tuple

import numpy as np
import torch
import torch_geometric.nn as stock

from .. import _edges, _lib, nn
from .._weights import _predict
from ._swap import Swapped, no_compiler, swap

_AGGRS = {"add": "", "sum": "", "mean": ":mean", "max": ":max", "min": ":min"}
_KINDS = (stock.GCNConv, stock.SAGEConv, stock.GATConv, stock.GATv2Conv, stock.RGCNConv)
_NODES, _DEGREE = 4096, 4  # of the graph that a gain is predicted for
_LEAST = 1.0  # of a predicted gain


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


def _seconds(spec: str, arrays: Dict[str, Any], **sizes: int) -> float:
    """What the cost model predicts for an operator of the library, one thread."""
    return _predict(1)(spec, arrays, **sizes)


@lru_cache(maxsize=None)
def _sample() -> Tuple[np.ndarray, np.ndarray, np.ndarray, Dict[str, np.ndarray]]:
    """A graph to predict for: receivers and senders, types of edges, and rows as operators have them."""
    ends = np.random.default_rng(0).integers(0, _NODES, (3, _DEGREE * _NODES))
    start, sender, _ = _edges.make_rows(ends[0], ends[1], _NODES, _NODES, 0)
    return ends[0], ends[1], ends[2], {"E.start": start, "E.j": sender}


def _zeros(*shape: int) -> np.ndarray:
    return np.zeros(shape, np.float32)


def _messages(f: int, reduce: str, edges: Optional[int] = None) -> float:
    """A row of features for each edge, then their reduction: how the stock layers aggregate."""
    rows = _sample()[3]
    if edges is not None:  # of one relation
        start = np.minimum(rows["E.start"], edges)
        rows = {"E.start": start, "E.j": rows["E.j"][:edges]}
    n = len(rows["E.j"])
    return (_seconds(f"copy_u:edges:f={f}", {**rows, "U": _zeros(_NODES, f)})
            + _seconds(f"copy_e{reduce}:f={f}", {"E.start": rows["E.start"], "A": _zeros(n, f)}))


def _dense(*sizes: int) -> float:
    machine = _lib.Machine()
    with _lib.lock:
        _lib.check(_lib.lib.weft_machine_get(_lib.context(), 0, byref(machine)))
    return 2.0 * _NODES * math.prod(sizes) / (machine.fma_f32[0] * 1e9)


def _aggregate(inside: int, out: int, reduces: Tuple[str, ...], gathered: int) -> Tuple[float, float]:
    ours = sum(_seconds(f"copy_u{r}:f={gathered}", {**_sample()[3], "U": _zeros(_NODES, gathered)}) for r in reduces)
    return ours + _dense(inside, out), sum(_messages(gathered, r) for r in reduces) + _dense(inside, out)


def _attend(op: str, inside: int, heads: int, f: int) -> Tuple[float, float]:
    rows, n = _sample()[3], len(_sample()[1])
    each, wide = _zeros(_NODES, heads), _zeros(_NODES, heads, f)
    ours = {"L": each, "R": each} if op == "gat" else {"Q": _zeros(heads, f), "L": wide}
    scored = heads if op == "gat" else heads * f
    table = _zeros(_NODES, scored)
    theirs = (_seconds(f"u_add_v:edges:f={scored}", {**rows, "U": table, "V": table})
              + _seconds(f"softmax:heads:heads={heads}", {"E.start": rows["E.start"], "S": _zeros(n, heads)})
              + _seconds(f"copy_u:edges:f={heads * f}", {**rows, "U": wide.reshape(_NODES, -1)})  # times attention
              + _messages(heads * f, ""))
    dense = _dense(inside, heads * f)
    slope = np.float32(0.2).reshape(())
    return _seconds(f"{op}:heads={heads}:f={f}", {**rows, **ours, "X": wide, "slope": slope}) + dense, theirs + dense


def _relate(inside: int, out: int, relations: int, reduce: str) -> Tuple[float, float]:
    receiver, sender, type, _ = _sample()
    made = _edges.make_tiles(receiver, sender, type % relations, _NODES, _NODES, relations, 0)
    names = ("G.r", "E.start", "E.j", None, "Q.start", "Q.p")
    tiles = {name: a for name, a in zip(names, made) if name is not None}
    ours = _seconds(f"rgms{reduce}:ci={inside}:co={out}",
                    {**tiles, "X": _zeros(_NODES, inside), "W": _zeros(relations, inside, out)})
    each = _messages(inside, reduce, max(1, len(sender) // relations)) + _dense(inside, out)
    return ours, relations * each


@lru_cache(maxsize=256)
def _predicted(kind: str, inside: int, out: int, heads: int, relations: int, reduces: Tuple[str, ...]) -> float:
    if kind == "RGCNConv":
        ours, theirs = _relate(inside, out, relations, reduces[0])
    elif kind in ("GATConv", "GATv2Conv"):
        ours, theirs = _attend("gat" if kind == "GATConv" else "gatv2", inside, heads, out)
    else:
        ours, theirs = _aggregate(inside, out, reduces, inside if kind == "SAGEConv" else out)
    return theirs / ours


def gain(module: Any) -> float:
    """The time that the cost model predicts for the steps of the stock layer, each as an operator of the
    library, over that of Weft's layer, on a random graph of 4 edges a node.  Neither has the overhead of
    calls.  The stock layers write a message for each edge, and RGCNConv a result of all nodes for each
    relation."""
    kind = next(c.__name__ for c in type(module).__mro__ if c in _KINDS)
    first = module.in_channels if isinstance(module.in_channels, int) else module.in_channels[0]
    names = module.aggr if isinstance(module.aggr, (list, tuple)) else [module.aggr]
    return _predicted(kind, max(first, 1), module.out_channels, getattr(module, "heads", 1),
                      getattr(module, "num_relations", 1), tuple(_AGGRS[a] for a in names))


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
    out = []
    for name, module in model.named_modules():
        if type(module) in _KINDS and not _why_not(module):
            swap(module, _class_of(type(module)))
            out.append((name, f"weft.nn.{type(module).__name__}, {gain(module):.1f}x predicted"))
    return out
