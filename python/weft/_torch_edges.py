# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""Structures of graph operators as operators of torch, so that traced functions make them of the edges that
they are given.  Output shapes depend on argument shapes alone.  Outside of a trace, the structure of an
edge list is kept as long as the list lives."""

from __future__ import annotations

from contextlib import contextmanager
from typing import Any, Iterator, Sequence, Tuple

import numpy as np
import torch

from . import _edges, _torch  # noqa: F401: _torch has libweft_torch loaded
from ._graph import Graph
from ._lib import BindError
from ._sparse import keep
from ._torch_ad import is_traced

Tensor = torch.Tensor
_MOST = torch.iinfo(torch.int32).max  # kernels read half as much where all numbers fit into 32 bits


def tensors(arrays: Sequence[np.ndarray]) -> Tuple[Tensor, ...]:
    return tuple(torch.from_numpy(a) for a in arrays)


@contextmanager
def _named() -> Iterator[None]:
    """Operators of torch raise RuntimeError; who calls them here is told of a wrong argument as elsewhere."""
    try:
        yield
    except RuntimeError as e:
        raise BindError(str(e)) from None


@torch.library.register_fake("weft::edge_rows")
def _(edge_index, receivers, senders, loops, bits):
    n = edge_index.shape[1]
    if loops:
        n = n + (receivers if receivers is senders or receivers == senders else torch.sym_min(receivers, senders))
    starts, dtype = receivers + 1 + (1 if loops else 0), torch.int32 if bits == 32 else torch.int64
    return [edge_index.new_empty((size,), dtype=dtype) for size in (starts, n, n)]


@torch.library.register_fake("weft::coo_rows")
def _(row, col, rows):
    return [row.new_empty((n,), dtype=torch.int64) for n in (rows + 1, row.shape[0], row.shape[0])]


def by_row(row: Tensor, col: Tensor, rows: int) -> Sequence[Tensor]:
    """Entries in the order of rows: starts of rows, columns, and the places that they had."""
    pair = (row, col) if row.dtype == col.dtype else (row.long(), col.long())
    return torch.ops.weft.coo_rows.default(*pair, rows)


@torch.library.register_fake("weft::edge_tiles")
def _(edge_index, edge_type, receivers, senders, relations, most):
    n = edge_index.shape[1]
    shapes = [(most,), (most * _edges.TILE + 1,), (n,), (n,), (receivers + 2,), (n,)]
    return [edge_index.new_empty(s, dtype=torch.int64) for s in shapes]


def rows(graph: Any, receivers: int, senders: int, loops: int) -> Sequence[Tensor]:
    op = torch.ops.weft.edge_rows.default
    if is_traced():
        return op(index_of(graph), receivers, senders, loops, 64)

    def make() -> Sequence[Tensor]:
        index = index_of(graph)
        bits = 32 if index.shape[1] + 2 * (receivers + senders) <= _MOST else 64
        with _named():
            return op(index, receivers, senders, loops, bits)

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
    op = torch.ops.weft.edge_tiles.default
    if is_traced():
        most = (edge_index.shape[1] + (_edges.TILE - 1) * relations) // _edges.TILE + 1
        return op(edge_index, edge_type.to(edge_index.dtype), receivers, senders, relations, most), True

    def make() -> Tuple[Sequence[Tensor], Tensor]:
        index = index_of(edge_index)
        with _named():
            made = op(index, edge_type.to(index.dtype), receivers, senders, relations, 0)
        fits = made[1].shape[0] + made[2].shape[0] + senders + relations <= _MOST
        return tuple(a.int() for a in made) if fits else tuple(made), edge_type

    if edge_type.is_inference():  # torch counts no changes of it
        return make()[0], False
    key = ("tiles", receivers, senders, relations, id(edge_type), edge_type._version)
    return keep(_edges.kept.get(edge_index), key, make)[0], False  # the id is nobody else's while edge_type is kept
