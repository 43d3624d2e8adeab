# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""Operators whose result is a sparse matrix: products and sums of sparse matrices (docs/weights.md)."""

from __future__ import annotations

import sys
from typing import Any, Dict, NamedTuple, Tuple

import numpy as np

from ._program import kernel_of
from ._sparse import bad, describe, is_torch, type_of
from ._weights import _run


class _Csr(NamedTuple):
    """A matrix with sorted rows without duplicates."""

    start: Any
    col: Any
    values: Any
    shape: Tuple[int, int]


def _csr(name: str, x: Any) -> _Csr:
    if is_torch(x):
        torch = sys.modules["torch"]
        if x.layout not in (torch.sparse_csr, torch.sparse_coo) or x.dim() != 2 or x.device.type != "cpu":
            raise bad(name, "a sparse tensor of layout sparse_csr or sparse_coo on the CPU", describe(x))
        if x.layout is torch.sparse_coo:
            x = x.coalesce()
            row, col = x.indices()
            start = torch.zeros(x.shape[0] + 1, dtype=torch.int64)
            start[1:] = torch.bincount(row, minlength=x.shape[0]).cumsum(0)
            return _Csr(start, col, x.values(), tuple(x.shape))
        start, col, values = x.crow_indices(), x.col_indices(), x.values()
        order = _order(start.numpy(), col.numpy(), x.shape[1], name)
        if order is not None:
            if values.requires_grad:  # torch gives the gradient of unsorted rows in another order
                raise bad(name, "sorted columns in each row, as a gradient is wanted",
                          "unsorted ones; sort them by to_sparse_coo().coalesce().to_sparse_csr()")
            at = torch.from_numpy(order)
            col, values = col[at], values[at]
        return _Csr(start, col, values, tuple(x.shape))
    if not hasattr(x, "tocsr"):
        raise bad(name, "a matrix of SciPy, or a sparse tensor of torch", describe(x))
    m = x.tocsr()
    if not m.has_canonical_format:
        m = m.copy()
        m.sum_duplicates()
    return _Csr(m.indptr, m.indices, m.data, m.shape)


def _order(start: np.ndarray, col: np.ndarray, n: int, name: str) -> Any:
    """The order that sorts the columns of each row; None: they are sorted."""
    row = np.repeat(np.arange(len(start) - 1), np.diff(start))
    key = row * np.int64(n) + col
    step = np.diff(key)
    if np.all(step > 0):
        return None
    order = np.argsort(key, kind="stable")
    if np.any(np.diff(key[order]) == 0):
        raise bad(name, "each entry once", "an entry that is stored twice; add them up by to_sparse_coo().coalesce()")
    return order


def _structure(name: str, m: _Csr, axis: str, coord: str) -> Dict[str, Any]:
    return {f"{axis}.start": m.start, f"{axis}.{coord}": m.col}


def _result(op: str, arrays: Dict[str, Any], a: _Csr, b: _Csr, sizes: Dict[str, int], like: Any) -> Any:
    kind = type_of("A", a.values)
    if type_of("B", b.values) != kind:
        raise bad("B", f"elements of {a.values.dtype}, as A has", b.values.dtype)
    shape = (sizes["m"], sizes["n"])
    if not is_torch(like):
        got = kernel_of(f"{op}:{kind}")({"A": a.values, "B": b.values, **arrays}, **sizes)
        made = type(like.tocsr())((got["C"], got["U.coord"], got["U.start"]), shape=shape)
        return made.asformat(like.format)
    torch = sys.modules["torch"]
    places = {k: v.numpy() for k, v in arrays.items()}
    if op == "sparse_mul":
        places["B"] = np.ones(len(b.col), np.float32)
    made = kernel_of(f"{op}:structure")(places, **sizes)
    start, col = (torch.from_numpy(made[k].astype(np.int64)) for k in ("U.start", "U.coord"))
    values = _run(f"{op}:{kind}:values", {"A": a.values, "B": b.values, **arrays, "U.start": start,
                                          "U.coord": col}, **sizes)
    if like.layout is torch.sparse_coo:
        row = torch.repeat_interleave(torch.arange(shape[0]), start.diff())
        return torch.sparse_coo_tensor(torch.stack([row, col]), values, shape, is_coalesced=True)
    return torch.sparse_csr_tensor(start, col, values, shape)


def _of_one_kind(A: Any, b: _Csr) -> _Csr:
    """b in arrays of the kind of A."""
    if is_torch(A) == is_torch(b.values):
        return b
    if is_torch(A):
        torch = sys.modules["torch"]
        start, col = (torch.from_numpy(x.astype(np.int64)) for x in (b.start, b.col))
        return _Csr(start, col, torch.from_numpy(b.values), b.shape)
    if b.values.requires_grad:
        raise bad("A", "a sparse tensor of torch, as B is one that needs a gradient", describe(A))
    return _Csr(*(x.numpy() for x in (b.start, b.col, b.values)), b.shape)


def spgemm(A: Any, B: Any) -> Any:
    """A B of two sparse matrices, as a sparse matrix of the kind of A: SciPy's, or torch's in CSR or COO.  It has an
    entry wherever a product of entries goes, in sorted rows.  In COO of torch, gradients by the values of both."""
    a, b = _csr("A", A), _csr("B", B)
    b = _of_one_kind(A, b)
    if a.shape[1] != b.shape[0]:
        raise bad("B", f"{a.shape[1]} rows, as A has columns", b.shape)
    arrays = {**_structure("A", a, "E", "j"), **_structure("B", b, "F", "k")}
    return _result("spgemm", arrays, a, b, {"m": a.shape[0], "l": a.shape[1], "n": b.shape[1]}, A)


def _elementwise(op: str, A: Any, B: Any) -> Any:
    a, b = _csr("A", A), _csr("B", B)
    b = _of_one_kind(A, b)
    if a.shape != b.shape:
        raise bad("B", f"shape {a.shape}, as A has", b.shape)
    arrays = {**_structure("A", a, "J", "coord"), **_structure("B", b, "L", "coord")}
    return _result(op, arrays, a, b, {"m": a.shape[0], "n": a.shape[1]}, A)


def sparse_add(A: Any, B: Any) -> Any:
    """A + B of two sparse matrices: an entry wherever one of them has one."""
    return _elementwise("sparse_add", A, B)


def sparse_mul(A: Any, B: Any) -> Any:
    """A * B by elements of two sparse matrices: an entry wherever both have one."""
    return _elementwise("sparse_mul", A, B)
