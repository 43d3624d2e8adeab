# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""Structures of graph operators, which the library makes from lists of edges: rows of receivers, and tiles
of pairs (relation, receiver).  Each is made once for a graph and kept as long as it lives."""

from __future__ import annotations

import ctypes
import re
import weakref
from contextlib import contextmanager
from ctypes import byref
from typing import Any, Dict, Iterator, NamedTuple, Optional, Tuple, Union

import numpy as np

from . import _check, _lib, _sparse
from ._array import type_code
from ._graph import Graph, is_edge_index
from ._lib import check, lib
from ._sparse import bad, describe, is_torch

TILE = 16  # pairs in a tile, as the program of rgms has it


class Rows(NamedTuple):
    """Entries by receiver.  edge: of each the number of its edge in the list; None: they are in that
    order.  bin: whether a row more has the entries that are left out."""

    start: Any
    sender: Any
    edge: Any
    receivers: int
    senders: int
    edges: int  # rows of operands of edges
    bin: bool = False


def _address(x: np.ndarray) -> int:
    return x.ctypes.data


def _list_of(receiver: np.ndarray, sender: np.ndarray, receivers: int, senders: int) -> _lib.EdgeList:
    return _lib.EdgeList(receivers, senders, len(receiver), type_code(f"i{8 * receiver.itemsize}"),
                         _address(receiver), _address(sender))


_END = re.compile(r"^(receiver|sender)\[(\d+)\] is (-?\d+), but there are (\d+) rows$")
_TYPE = re.compile(r"^type\[(\d+)\] is (-?\d+), but there are (\d+) rows$")


@contextmanager
def _about_edges() -> Iterator[None]:
    """The library names its arrays of receivers and senders, which are rows of the caller's edge_index."""
    try:
        yield
    except _lib.BindError as e:
        why = _END.sub(r"edge_index: the \1 of edge \2 is \3, but there are \4 nodes", str(e))
        why = _TYPE.sub(r"edge_type: that of edge \1 is \2, but there are \3 relations", why)
        raise _lib.BindError(why) from None


def make_rows(receiver: np.ndarray, sender: np.ndarray, receivers: int, senders: int,
              loops: int) -> Tuple[np.ndarray, np.ndarray, np.ndarray]:
    """weft_rows_make: starts, senders and numbers of edges."""
    n = len(receiver) + (min(receivers, senders) if loops else 0)
    start, from_, of = np.empty(receivers + 1 + bool(loops), np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    with _lib.lock, _about_edges():
        check(lib.weft_rows_make(_lib.context(), byref(_list_of(receiver, sender, receivers, senders)), loops,
                                 _address(start), _address(from_), _address(of)))
    return start, from_, of


def make_tiles(receiver: np.ndarray, sender: np.ndarray, type: np.ndarray, receivers: int, senders: int,
               relations: int, least: int) -> Tuple[np.ndarray, ...]:
    """weft_tiles_make: G.r, E.start, E.j, E.of, Q.start, Q.p."""
    out = _lib.Tiles()
    with _lib.lock, _about_edges():
        check(lib.weft_tiles_make(_lib.context(), byref(_list_of(receiver, sender, receivers, senders)),
                                  _address(type), relations, least, byref(out)))
        places, n = TILE * out.tiles, len(receiver)
        return (_copy(out.relation, out.tiles), _copy(out.start, places + 1), _copy(out.sender, n),
                _copy(out.at, n), _copy(out.first, receivers + 1), _copy(out.place, out.pairs))


def _copy(address: Optional[int], n: int) -> np.ndarray:
    out = np.empty(n, np.int64)
    if n:
        ctypes.memmove(_address(out), address, 8 * n)
    return out


class Kept:
    """What was made of tensors and arrays, as long as these live and torch counts no change of them."""

    def __init__(self) -> None:
        self._of: Dict[int, Tuple[Any, tuple, Dict[Any, Any]]] = {}

    def get(self, x: Any) -> Dict[Any, Any]:
        """Of an object, by any keys; a new dict where it may have changed."""
        if is_torch(x) and x.is_inference():  # torch counts no changes of it
            return {}
        mark = (x.data_ptr(), tuple(x.shape), x._version) if is_torch(x) else ()
        found = self._of.get(id(x))
        if found is not None and found[0]() is x and found[1] == mark:
            return found[2]
        key = id(x)
        self._of[key] = (weakref.ref(x, lambda _: self._of.pop(key, None)), mark, {})
        return self._of[key][2]


kept = Kept()


def index_of(graph: Any, name: str = "graph") -> Tuple[Any, Any]:
    """Receivers and senders of a list of edges."""
    if isinstance(graph, Graph):
        return graph.row, graph.col
    if not is_edge_index(graph):
        raise bad(name, "a weft.Graph, an edge_index of int32 or int64 (2, edges), or a sparse matrix",
                  describe(graph))
    return graph[1], graph[0]


def count(given: Optional[int], graph: Any, axis: int, *operands: Any) -> int:
    """How many nodes receive (0) or send (1): as operands have rows, as the graph says, as edges name."""
    if given is not None:
        return given
    if isinstance(graph, Graph):
        return graph.shape[axis]
    for x in operands:
        if x is not None:
            return x.shape[0]
    end = index_of(graph)[axis]
    return max(int(end.max()) + 1, 0) if end.shape[0] else 0


def _of_matrix(A: Any) -> Optional[Rows]:
    """Of a matrix in CSR, whose entries are edges in that order."""
    if isinstance(A, Graph) or is_edge_index(A):
        return None
    if isinstance(A, np.ndarray) or is_torch(A) and str(A.layout) == "torch.strided":
        index_of(A)  # says what is wrong
    s, _ = _sparse.sparse(A)
    if s.format != "csr":
        raise bad("graph", "a matrix in CSR, a weft.Graph or an edge_index", f"{s.format}; convert it to CSR")
    if is_torch(A):
        return Rows(A.crow_indices(), A.col_indices(), None, *s.shape, s.nnz)
    return Rows(*_sparse.arrays_of(s), None, *s.shape, s.nnz)


def rows(graph: Any, receivers: int, senders: int, loops: int = 0, torch: bool = False) -> Rows:
    """The rows of a graph, as arrays or as tensors."""
    matrix = _of_matrix(graph)
    if matrix is not None:
        if (matrix.receivers, matrix.senders) != (receivers, senders):
            raise bad("graph", f"{receivers} rows and {senders} columns, as operands have rows",
                      f"{matrix.receivers} and {matrix.senders}")
        if loops:
            raise bad("graph", "a list of edges, where loops are added", "a matrix")
        return matrix
    edges = graph.num_edges if isinstance(graph, Graph) else graph.shape[1]
    both = min(receivers, senders) if loops else 0
    if torch:
        from . import _torch_edges

        arrays = _torch_edges.rows(graph, receivers, senders, loops)
    else:
        key = ("rows", receivers, senders, loops)
        known = kept.get(graph) if isinstance(graph, Graph) else {}
        arrays = known.get(key)
        if arrays is None:
            ends = [np.ascontiguousarray(e) for e in index_of(graph)]
            arrays = known[key] = make_rows(*ends, receivers, senders, loops)
    return Rows(*arrays, receivers, senders, edges + both, bool(loops))


def _number(name: str, n: Any, least: int) -> Any:
    """A count, which in traced code may be a symbol."""
    return n if type(n).__name__ == "SymInt" or (type(n) is int and least <= n < 2 ** 31) else \
        _check.integer(name, n, least, 2 ** 40)


def _check_types(edge_type: Any) -> None:
    if not is_torch(edge_type):
        is_integer = edge_type.dtype.kind in "iu"
    elif edge_type.device.type != "cpu" or str(edge_type.layout) != "torch.strided":
        raise bad("edge_type", "a dense tensor on the CPU", f"{edge_type.layout} on {edge_type.device}")
    else:
        is_integer = str(edge_type.dtype).partition(".")[2] in ("int8", "int16", "int32", "int64", "uint8")
    if not is_integer:
        raise bad("edge_type", "integers, the relation of each edge", describe(edge_type))


class Tiles:
    """The structure of weft.rgms: edges with their relations, in tiles of pairs (relation, receiver), made once
    and shared by all layers over the graph:

        tiles = weft.Tiles(edge_index, edge_type, num_relations, num_nodes)
        Y = weft.rgms(tiles, X, W, "mean")

    edge_index: (2, edges), senders then receivers, or a weft.Graph; edge_type: the relation of each edge;
    num_nodes: of all nodes, or a pair, receivers and senders."""

    def __init__(self, edge_index: Any, edge_type: Any, num_relations: int,
                 num_nodes: Union[int, Tuple[int, int], None] = None):
        if isinstance(edge_index, (list, tuple)):
            edge_index = _check.array("edge_index", edge_index, np.dtype(np.int64))
        receiver, sender = index_of(edge_index, "edge_index")
        if not is_torch(edge_type):
            edge_type = _check.array("edge_type", edge_type, np.dtype(np.int64))
        _check_types(edge_type)
        if is_torch(receiver) and not is_torch(edge_type):
            from ._operand import tensor_of

            edge_type = tensor_of(edge_type, "edge_type")
        if tuple(edge_type.shape) != tuple(receiver.shape):
            raise bad("edge_type", f"a relation for each of the {receiver.shape[0]} edges", describe(edge_type))
        pair = num_nodes if isinstance(num_nodes, (tuple, list)) else (num_nodes, num_nodes)
        if num_nodes is None:
            most = max(count(None, edge_index, 0), count(None, edge_index, 1))
            pair = (most, most)
        if len(pair) != 2:
            raise bad("num_nodes", "a number of nodes, or a pair of receivers and senders", repr(num_nodes))
        self.receivers, self.senders = (_number("num_nodes", n, 0) for n in pair)
        self.relations = _number("num_relations", num_relations, 1)
        self.edges = receiver.shape[0]
        self.bin = False  # whether a row more has places that no pair has
        if is_torch(receiver):
            from . import _torch_edges

            self.arrays, self.bin = _torch_edges.tiles(edge_index, edge_type, self.receivers, self.senders,
                                                          self.relations)
        else:
            ends = [np.ascontiguousarray(e, np.int64) for e in (receiver, sender, edge_type)]
            self.arrays = make_tiles(*ends, self.receivers, self.senders, self.relations, 0)

    def named(self, torch: bool, edges: bool) -> Dict[str, Any]:
        """By the names of the program; edges: with the numbers of edges."""
        arrays = dict(zip(("G.r", "E.start", "E.j", "E.of", "Q.start", "Q.p"), self.arrays))
        if not edges:
            del arrays["E.of"]
        if torch and not is_torch(self.arrays[0]):
            from . import _torch_edges

            self.arrays = _torch_edges.tensors(self.arrays)
            return self.named(torch, edges)
        if not torch and is_torch(self.arrays[0]):
            return {k: v.numpy() for k, v in arrays.items()}
        return arrays

    def __repr__(self) -> str:
        return (f"weft.Tiles({self.receivers} receivers, {self.senders} senders, {self.relations} relations, "
                f"{self.edges} edges)")
