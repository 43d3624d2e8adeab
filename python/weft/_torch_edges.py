# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""Structures of graph operators as operators of torch, so that traced functions make them of the edges that
they are given.  Output shapes depend on argument shapes alone.  Outside of a trace, the structure of an
edge list is kept as long as the list lives."""

from __future__ import annotations

from typing import Any, List, Sequence, Tuple

import numpy as np
import torch

from . import _edges, _torch  # noqa: F401: _torch has libweft_torch loaded
from ._graph import Graph
from ._sparse import bad, keep, untransformed
from ._torch_ad import is_traced

Tensor = torch.Tensor


def tensors(arrays: Sequence[np.ndarray]) -> Tuple[Tensor, ...]:
    return tuple(torch.from_numpy(a) for a in arrays)


def _narrow(arrays: Sequence[Tensor], most: int) -> Tuple[Tensor, ...]:
    """In 32 bits where all numbers, of which none is above `most`, fit: kernels then read half as much."""
    return tuple(a.int() for a in arrays) if most <= torch.iinfo(torch.int32).max else tuple(arrays)


def _numpy(x: Tensor) -> np.ndarray:
    if x.device.type != "cpu":
        raise bad("edge_index", "a tensor on the CPU", x.device)
    return x.detach().contiguous().numpy()


def _made(edge_index: Tensor, receivers: int, senders: int, loops: int) -> List[Tensor]:
    with untransformed():
        ends = _numpy(edge_index)
        return list(tensors(_edges.make_rows(ends[1], ends[0], receivers, senders, loops)))


_rows = torch.library.custom_op("weft::edge_rows", _made, mutates_args=())  # for traces: a call takes longer


@_rows.register_fake
def _(edge_index, receivers, senders, loops):
    n = edge_index.shape[1]
    if loops:
        n = n + (receivers if receivers is senders or receivers == senders else torch.sym_min(receivers, senders))
    start = edge_index.new_empty((receivers + 1 + (1 if loops else 0),), dtype=torch.int64)
    return [start, edge_index.new_empty((n,), dtype=torch.int64), edge_index.new_empty((n,), dtype=torch.int64)]


@torch.library.register_fake("weft::coo_rows")
def _(row, col, rows):
    return [row.new_empty((n,), dtype=torch.int64) for n in (rows + 1, row.shape[0], row.shape[0])]


def by_row(row: Tensor, col: Tensor, rows: int) -> Sequence[Tensor]:
    """Entries in the order of rows: starts of rows, columns, and the places that they had."""
    pair = (row, col) if row.dtype == col.dtype else (row.long(), col.long())
    return torch.ops.weft.coo_rows.default(*pair, rows)


@torch.library.custom_op("weft::edge_tiles", mutates_args=())
def _tiles(edge_index: Tensor, edge_type: Tensor, receivers: int, senders: int, relations: int,
           most: int) -> List[Tensor]:
    """most: of tiles, as many as edges and relations can need, so that shapes are known; a row more has
    places that no pair has.  0: as many as there are."""
    made = _edges.make_tiles(*(_numpy(e) for e in (edge_index[1], edge_index[0], edge_type.to(edge_index.dtype))),
                             receivers, senders, relations, most)
    if most:
        made = (*made[:4], *_fill(*made[4:], edge_index.shape[1], most * _edges.TILE))
    return list(tensors(made))


def _fill(first: np.ndarray, place: np.ndarray, n: int, places: int) -> Tuple[np.ndarray, np.ndarray]:
    free = np.ones(places, bool)
    free[place] = False
    return np.append(first, n), np.append(place, np.flatnonzero(free)[:n - len(place)])


@_tiles.register_fake
def _(edge_index, edge_type, receivers, senders, relations, most):
    n = edge_index.shape[1]
    shapes = [(most,), (most * _edges.TILE + 1,), (n,), (n,), (receivers + 2,), (n,)]
    return [edge_index.new_empty(s, dtype=torch.int64) for s in shapes]


def rows(graph: Any, receivers: int, senders: int, loops: int) -> Sequence[Tensor]:
    if is_traced():
        return _rows(index_of(graph), receivers, senders, loops)

    def make() -> Sequence[Tensor]:
        made = _made(index_of(graph), receivers, senders, loops)
        return _narrow(made, made[1].shape[0] + receivers + senders)

    return keep(_edges.kept.get(graph), ("torch rows", receivers, senders, loops), make)


def index_of(graph: Any) -> Tensor:
    """Senders and receivers."""
    if isinstance(graph, Graph):
        ends = graph.col, graph.row
        return torch.stack(ends) if isinstance(graph.row, Tensor) else torch.from_numpy(np.stack(ends))
    return graph if isinstance(graph, Tensor) else torch.from_numpy(np.ascontiguousarray(graph))


def tiles(edge_index: Any, edge_type: Tensor, receivers: int, senders: int,
          relations: int) -> Tuple[Sequence[Tensor], bool]:
    """The arrays, and whether a row more has what no pair has."""
    if is_traced():
        most = (edge_index.shape[1] + (_edges.TILE - 1) * relations) // _edges.TILE + 1
        return _tiles(edge_index, edge_type, receivers, senders, relations, most), True

    def make() -> Tuple[Sequence[Tensor], Tensor]:
        made = _tiles(index_of(edge_index), edge_type, receivers, senders, relations, 0)
        return _narrow(made, made[1].shape[0] + made[2].shape[0] + senders + relations), edge_type

    if edge_type.is_inference():  # torch counts no changes of it
        return make()[0], False
    key = ("tiles", receivers, senders, relations, id(edge_type), edge_type._version)
    return keep(_edges.kept.get(edge_index), key, make)[0], False  # the id is nobody else's while edge_type is kept
