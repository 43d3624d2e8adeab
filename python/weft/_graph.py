# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""Graphs as lists of edges: what operators take in place of a sparse matrix.  Edge k goes from node
edge_index[0][k] to node edge_index[1][k], as in PyTorch Geometric, and is the entry (receiver, sender) of a
matrix in COO, in the order of the list."""

from __future__ import annotations

import sys
from collections import OrderedDict
from typing import Any, Optional, Tuple, Union

import numpy as np

from . import _check
from ._sparse import bad, describe, is_torch, untransformed

_MOST = 8  # lists that are kept
_recent: "OrderedDict[tuple, tuple]" = OrderedDict()


def _ends(edge_index: Any) -> Tuple[np.ndarray, np.ndarray]:
    """Receivers and senders, in the memory of the list."""
    if is_torch(edge_index):
        if edge_index.device.type != "cpu":
            raise bad("edge_index", "a tensor on the CPU", edge_index.device)
        with untransformed():
            senders, receivers = (edge_index[k].numpy() for k in (0, 1))
    else:
        senders, receivers = _check.plain("edge_index", edge_index)
    return receivers, senders


def _is_traced() -> bool:
    """Is this code that torch traces, in which tensors have no values?"""
    from ._torch_ad import is_traced

    return is_traced()


def is_edge_index(A: Any) -> bool:
    """Is it a dense integer array of 2 rows?"""
    if isinstance(A, np.ndarray):
        return A.ndim == 2 and len(A) == 2 and A.dtype.kind == "i" and A.itemsize >= 4
    if not is_torch(A) or A.dim() != 2 or len(A) != 2:
        return False
    return str(A.layout) == "torch.strided" and str(A.dtype) in ("torch.int32", "torch.int64")


def _count(*ends: np.ndarray) -> int:
    return max([0, *[int(e.max()) + 1 for e in ends if e.size]])


class Graph:
    """A list of edges whose structure is worked out once, in place of a sparse matrix A:

        graph = weft.Graph(edge_index, num_nodes)
        C = weft.spmm(graph, B)              # of each node, the sum over its senders
        P = weft.softmax(graph, scores)      # over the edges to each node

    num_nodes: of all nodes, or a pair, receivers and senders; without it, as many as the edges name.
    data: a value, or a row of values, for each edge; without it, 1.  The list is copied."""

    format = "coo"

    def __init__(self, edge_index: Any, num_nodes: Union[int, Tuple[int, int], None] = None,
                 data: Any = None):
        if isinstance(edge_index, (list, tuple)):
            edge_index = _check.array("edge_index", edge_index, np.dtype(np.int64))
        if not is_edge_index(edge_index):
            raise bad("edge_index", "int32 or int64 of shape (2, edges)", describe(edge_index))
        traced = is_torch(edge_index) and _is_traced()
        if traced:  # values are not known, and operators check them when they run
            self.row, self.col = edge_index[1].clone(), edge_index[0].clone()
        else:
            self.row, self.col = (np.array(e) for e in _ends(edge_index))
            for end in (self.row, self.col):
                end.flags.writeable = False  # so calls need not compare it with that of the call before
        if num_nodes is None:
            if traced:
                raise bad("num_nodes", "a number, as torch traces this code and values of edges are not known "
                          "(x.shape[0], say)", "None")
            num_nodes = _count(self.row, self.col)
        pair = num_nodes if isinstance(num_nodes, (tuple, list)) else (num_nodes, num_nodes)
        if len(pair) != 2:
            raise bad("num_nodes", "a number of nodes, or a pair of receivers and senders", repr(num_nodes))
        if traced:
            self.shape = tuple(pair)
        else:
            self.shape = (_check.size("num_nodes", pair[0]), _check.size("num_nodes", pair[1]))
            self._check_ends()
        self.data = data
        self._ones: dict = {}  # by type
        self._parts: dict = {}  # for torch, by format: see _operand
        if "torch" in sys.modules:
            from ._operand import parts_of

            parts_of("edge_index", self)  # now, and not while torch traces

    def _check_ends(self) -> None:
        for what, end, n in (("receivers", self.row, self.shape[0]), ("senders", self.col, self.shape[1])):
            if end.size and not 0 <= end.min() <= end.max() < n:
                raise bad("edge_index", f"{what} from 0 to {n - 1}, as num_nodes is {n}",
                          f"{end.min()} to {end.max()}")

    def with_data(self, data: Any) -> "Graph":
        """The same graph with other values of edges.  It shares the list and all that was worked out for it,
        so a call with it is as quick as one with this graph."""
        out = Graph.__new__(Graph)
        out.row, out.col, out.shape, out.data = self.row, self.col, self.shape, data
        out._ones, out._parts = self._ones, self._parts
        return out

    @property
    def num_edges(self) -> int:
        return len(self.row)

    def __repr__(self) -> str:
        return f"weft.Graph({self.shape[0]} receivers, {self.shape[1]} senders, {self.num_edges} edges)"


class _Raw:
    """A list of edges as given: its memory, not a copy, which calls compare."""

    format, data = "coo", None

    def __init__(self, ends: Tuple[np.ndarray, np.ndarray], shape: Tuple[int, int]):
        (self.row, self.col), self.shape = ends, shape


def graph(A: Any, receivers: Optional[int] = None, senders: Optional[int] = None) -> Any:
    """A list of edges as a matrix of that shape, the same one for the same list; all else as it is."""
    if not is_edge_index(A):
        return A
    at = A.data_ptr() if is_torch(A) else A.ctypes.data
    key = (id(A), at, tuple(A.shape), receivers, senders)
    found = _recent.get(key)
    if found is None:
        ends = _ends(A)
        most = _count(*ends) if receivers is None or senders is None else 0
        shape = (most if receivers is None else receivers, most if senders is None else senders)
        found = _recent[key] = (_Raw(ends, shape), A)  # A: its id is nobody else's while it is kept
        if len(_recent) > _MOST:
            _recent.popitem(last=False)
    elif receivers is None and _count(*_ends(A)) > found[0].shape[0]:  # changed in place
        del _recent[key]
        return graph(A, receivers, senders)
    _recent.move_to_end(key)
    return found[0]


def ones(A: Any, like: Any) -> Any:
    """The values of a graph that has none, in the type of a dense operand; made once."""
    kept = A.__dict__.setdefault("_ones", {})
    if not is_torch(like):
        like = np.asarray(like)
    key = str(like.dtype)
    if key not in kept:
        n = len(A.row)
        kept[key] = like.new_ones(n) if is_torch(like) else np.ones(n, like.dtype)
    return kept[key]


def values_of(A: Any) -> Any:
    """The values of a matrix, as far as torch may have to see them; None: there are none."""
    if isinstance(A, tuple):
        return A[2] if len(A) == 4 else None
    if is_torch(A):
        return A if str(A.layout) != "torch.strided" else None
    return getattr(A, "data", None) if hasattr(A, "format") else None


def has_ones(A: Any) -> bool:
    return isinstance(A, (Graph, _Raw)) and A.data is None


def rows_of(x: Any, axis: int) -> Optional[int]:
    """How many nodes an operand is of; None: that is not known."""
    shape = getattr(x, "shape", None)
    return int(shape[axis]) if shape is not None and len(shape) >= max(axis + 1, -axis) else None
