# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""Sparse operands as the tensors that a program takes: structure arrays, and values in their order."""

from __future__ import annotations

from typing import Any, NamedTuple, Optional, Tuple

import numpy as np
import torch

from . import _graph, _torch_edges
from ._sparse import bad, describe, is_torch, keep, untransformed
from ._torch_ad import is_traced


class Parts(NamedTuple):
    """A matrix in CSR (start, index), CSC (likewise, by columns) or COO (row, index)."""

    format: str
    first: torch.Tensor
    index: torch.Tensor
    values: Any  # None: it has none
    shape: Tuple[int, int]
    kept: Any = None  # by format, what was worked out for the structure: of a graph, which has it


class _Memory:
    """The memory of a NumPy array, read-only or not, for torch, which only reads it."""

    def __init__(self, array: np.ndarray):
        self._array = array
        self.__array_interface__ = {**array.__array_interface__, "data": (array.ctypes.data, False)}


def tensor_of(array: Any, name: str = "operand") -> torch.Tensor:
    """A tensor on the memory of an array; of a type that torch does not have, on a copy."""
    if is_torch(array):
        return array
    array = np.asarray(array)
    if array.dtype.kind in "iu" and array.dtype not in (np.int32, np.int64):
        array = array.astype(np.int64)
    if array.dtype.name == "bfloat16":  # of ml_dtypes
        return tensor_of(array.view(np.int16).astype(np.int32)).to(torch.int16).view(torch.bfloat16)
    if array.dtype.kind not in "biufc":
        raise bad(name, "numbers", describe(array))
    if any(s < 0 or s % array.itemsize for s in array.strides):
        array = np.ascontiguousarray(array)
    return torch.from_numpy(array if array.flags.writeable else np.asarray(_Memory(array)))


def is_sparse(x: Any) -> bool:
    """Is it a matrix or a graph?"""
    if is_torch(x):
        return x.layout is not torch.strided
    return isinstance(x, (_graph.Graph, tuple)) or hasattr(x, "tocsr")


def parts_of(name: str, x: Any, shape: Any = None) -> Parts:
    """A matrix as it is stored.  shape: of an edge_index, whose rows are senders and receivers; what is
    not known of it is as many as the edges name."""
    if isinstance(x, _graph.Graph):
        ends = keep(x._parts, "coo", lambda: (tensor_of(x.row), tensor_of(x.col)))
        return Parts("coo", *ends, x.data, x.shape, x._parts)
    if isinstance(x, tuple):
        if len(x) != 4:
            raise bad(name, "(indptr, indices, data, shape)", f"a tuple of {len(x)}")
        return Parts("csr", tensor_of(x[0], name), tensor_of(x[1], name), x[2], tuple(x[3]))
    if is_torch(x):
        return _of_torch(name, x) if x.layout is not torch.strided else _of_edges(name, x, shape)
    if isinstance(x, np.ndarray):
        return _of_edges(name, tensor_of(x, name), shape)
    if not hasattr(x, "tocsr"):
        raise bad(name, "a sparse matrix, a weft.Graph or an edge_index", describe(x))
    if x.format not in ("csr", "csc", "coo"):
        x = x.tocsr()
    if x.format == "coo":
        return Parts("coo", tensor_of(x.row), tensor_of(x.col), x.data, tuple(x.shape))
    return Parts(x.format, tensor_of(x.indptr), tensor_of(x.indices), x.data, tuple(x.shape))


def _of_torch(name: str, x: torch.Tensor) -> Parts:
    if not is_traced() and torch._C._are_functorch_transforms_active() and \
            not torch._C._functorch.is_functorch_wrapped_tensor(x):
        with untransformed():  # to transforms, tensors have strides
            return _parts_of_torch(name, x)
    return _parts_of_torch(name, x)


def _parts_of_torch(name: str, x: torch.Tensor) -> Parts:
    shape = tuple(x.shape[:2])
    if x.layout is torch.sparse_csr:
        return Parts("csr", x.crow_indices(), x.col_indices(), x.values(), shape)
    if x.layout is torch.sparse_csc:
        return Parts("csc", x.ccol_indices(), x.row_indices(), x.values(), shape)
    if x.layout is torch.sparse_coo and x.sparse_dim() == 2:
        at = x._indices()
        return Parts("coo", at[0], at[1], x.values() if x.is_coalesced() else x._values(), shape)
    if x.layout is torch.sparse_bsr:
        high, wide = x.values().shape[1:3]
        return Parts("csr", x.crow_indices(), x.col_indices(), x.values(),
                     (shape[0] // high, shape[1] // wide))
    raise bad(name, "a matrix in CSR, CSC, COO or BSR", f"{x.layout} {tuple(x.shape)}")


def _of_edges(name: str, x: torch.Tensor, shape: Any) -> Parts:
    if x.dim() != 2 or x.shape[0] != 2 or x.dtype not in (torch.int32, torch.int64):
        raise bad(name, "a sparse matrix, or an edge_index: int32 or int64 of shape (2, edges)", describe(x))
    if x.device.type != "cpu" and not is_traced():
        raise bad(name, "a tensor on the CPU", x.device)
    m, n = shape or (None, None)
    if m is None or n is None:
        most = max(int(x.max()) + 1, 0) if x.shape[1] else 0
        m, n = most if m is None else m, most if n is None else n
    return Parts("coo", x[1], x[0], None, (m, n))


def by_row(p: Parts, columns: bool = False) -> Tuple[Parts, Optional[torch.Tensor]]:
    """The matrix in CSR, or by columns in CSC, and the places that its entries had; None: the same."""
    want = "csc" if columns else "csr"
    if p.format == want:
        return p, None
    start, index, order = keep({} if p.kept is None else p.kept, want, lambda: sort(p, columns))
    return Parts(want, start, index, p.values, p.shape), order


def sort(p: Parts, columns: bool) -> Tuple[torch.Tensor, torch.Tensor, Optional[torch.Tensor]]:
    """Starts of rows, columns, and the places that entries had; None: the same."""
    row, col = ends(p)
    major, minor = (col, row) if columns else (row, col)
    start, index, order = _torch_edges.by_row(major, minor, p.shape[columns])
    if not is_traced() and bool((major[1:] >= major[:-1]).all()):
        return start, minor, None
    return start, index, order


def ends(p: Parts) -> Tuple[torch.Tensor, torch.Tensor]:
    """The row and the column of each entry."""
    if p.format == "coo":
        return p.first, p.index
    n = p.first.shape[0] - 1
    major = torch.repeat_interleave(torch.arange(n), p.first.diff(), output_size=p.index.shape[0])
    return (p.index, major) if p.format == "csc" else (major, p.index)
