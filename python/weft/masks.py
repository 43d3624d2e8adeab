# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""Masks of attention: which keys each query sees.  docs/attention.md lists them.

    mask = weft.masks.band(4096, 256)
    z = weft.attention(q, k, v, mask)

A mask is made into blocks by the library when it is first used; that is kept with the mask."""

from __future__ import annotations

import ctypes
import weakref
from ctypes import byref, c_int64
from typing import Any, Dict, List, Optional, Tuple

import numpy as np

from . import _array, _check, _lib
from ._lib import check, lib
from ._program import new_number
from ._sparse import bad, describe, is_torch, keep, tensors_of

__all__ = ["Mask", "band", "bigbird", "blocks", "butterfly", "causal", "full", "longformer", "of"]


def __dir__() -> List[str]:
    return [*__all__, "__doc__", "__file__", "__name__"]


class Plan:
    """A mask as blocks: see weft_mask in weft.h."""

    def __init__(self, arrays: Dict[str, np.ndarray], out: _lib.Mask, w: int):
        self.arrays = arrays  # by the names of the program
        self.tiles, self.blocks, self.w = out.tiles, out.blocks, w
        self.split, self.nnz = bool(out.split), out.nnz
        self._tensors: Dict[str, Any] = {}

    def tensors(self) -> Dict[str, Any]:
        """The arrays as tensors, always the same ones."""
        return keep(self._tensors, "all", lambda: tensors_of(self.arrays))


by_number: "weakref.WeakValueDictionary[int, Mask]" = weakref.WeakValueDictionary()  # code that torch traces has numbers


class Mask:
    """Which of m keys each of n queries sees; made by the functions of weft.masks."""

    def __init__(self, n: int, m: int, source: Optional[str], *, start: Any = None, col: Any = None,
                 block: int = 1, causal: bool = False):
        self.shape = (_check.size("n", n), _check.size("m", m))
        self.source, self._start, self._col, self.block = source, start, col, block
        self.causal = bool(causal)
        self._plans: Dict[tuple, Plan] = {}
        self._tensors: Dict[str, Any] = {}
        self._enter()
        self._name = f"{source or 'entries'}{':causal' if causal else ''}"
        self.plan(1, "f32")  # what is wrong with it is said where it is made

    def _enter(self) -> None:
        self.number = new_number()
        by_number[self.number] = self

    def __getstate__(self) -> Dict[str, Any]:
        return {**self.__dict__, "_plans": {}, "_tensors": {}}

    def __setstate__(self, state: Dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._enter()

    def __repr__(self) -> str:
        return f"<weft.masks.Mask {self._name} {self.shape[0]} x {self.shape[1]}>"

    def __deepcopy__(self, memo: Any) -> "Mask":
        return self  # it never changes

    @property
    def nnz(self) -> int:
        """How many pairs of a query and a key there are."""
        return self.plan(1, "f32").nnz

    def to_dense(self) -> np.ndarray:
        """A bool for each pair: for small masks, to look at."""
        p = self.plan(1, "f32")
        j, pat, x = (p.arrays[k] for k in ("L.j", "L.pat", "X"))
        tiles = p.arrays["P.row"] if p.split else np.arange(p.tiles)
        bi, bj = x.shape[1:]
        dense = np.zeros((p.tiles, bi, p.blocks, bj), bool)
        for t, blocks, patterns in zip(tiles, j, pat):
            there = blocks >= 0
            dense[t][:, blocks[there]] = np.moveaxis(x[patterns[there]] == 0, 0, 1)
        return dense.reshape(p.tiles * bi, p.blocks * bj)[:self.shape[0], :self.shape[1]]

    def tensors(self) -> List[Any]:
        """Starts and columns of its entries, always the same tensors; none where a source tells them."""
        if self._start is None:
            return []
        arrays = {"start": self._start, "col": self._col}
        return keep(self._tensors, "all", lambda: list(tensors_of(arrays).values()))

    def plan(self, copies: int, type: str, lq: Optional[np.ndarray] = None,
             lk: Optional[np.ndarray] = None) -> Plan:
        """The blocks for so many heads, of which each has lq queries and lk keys."""
        lengths = tuple(None if x is None else x.tobytes() for x in (lq, lk))
        key = (copies, type, *lengths)
        plan = self._plans.get(key)
        if plan is None:
            plan = self._make(copies, type, lq, lk)
            if len(self._plans) >= 8:
                self._plans.clear()
            self._plans[key] = plan
        return plan

    def _make(self, copies: int, type: str, lq: Any, lk: Any) -> Plan:
        bi, size = TILE, np.dtype(dtype(type)).itemsize
        given = _lib.MaskIn(
            None if self.source is None else self.source.encode(), _address(self._start),
            _address(self._col), self.block, *self.shape, copies, _address(lq), _address(lk), bi, BLOCK,
            most(type), int(self.causal), _array.type_code("f64" if size == 8 else "f32"))
        out = _lib.Mask()
        with _lib.lock:
            check(lib.weft_mask_make(_lib.context(), byref(given), byref(out)))
            w = out.w if out.split else max(out.most, 1)
            arrays = {"L.j": _ints(out.j, (out.pieces, out.w))[:, :w],
                      "L.pat": _ints(out.pat, (out.pieces, out.w))[:, :w],
                      "X": _copy(out.x, (out.patterns, bi, BLOCK), dtype(type))}
            if out.split:
                arrays["P.row"] = _ints(out.row, (out.pieces,))
                arrays["E.start"] = _ints(out.start, (copies * out.tiles + 1,))
        arrays = {k: np.ascontiguousarray(a) for k, a in arrays.items()}
        for a in arrays.values():
            a.flags.writeable = False
        return Plan(arrays, out, w)


TILE, BLOCK = 16, 64  # queries and keys of a block
WORK = 1 << 16  # bytes of scores that an iteration of a kernel holds


def dtype(type: str) -> type:
    """Of patterns."""
    return np.float64 if type == "f64" else np.float32


def most(type: str) -> int:
    """Blocks of a piece, whose scores an iteration of a kernel holds."""
    return WORK // (TILE * BLOCK * np.dtype(dtype(type)).itemsize)


def _address(array: Optional[np.ndarray]) -> Optional[int]:
    return None if array is None else array.ctypes.data


def _copy(address: int, shape: Tuple[int, ...], dtype: Any) -> np.ndarray:
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    made = _array.empty(shape, np.dtype(dtype))
    if size:
        ctypes.memmove(made.ctypes.data, address, size)
    return made


def _ints(address: int, shape: Tuple[int, ...]) -> np.ndarray:
    return _copy(address, shape, np.int64)


def full(n: int, m: Optional[int] = None) -> Mask:
    """All keys."""
    return Mask(n, n if m is None else m, "full")


def causal(n: int, m: Optional[int] = None) -> Mask:
    """Key j for query i where j <= i."""
    return Mask(n, n if m is None else m, "full", causal=True)


def band(n: int, w: int, *, causal: bool = False) -> Mask:
    """Tokens i and j where |i - j| <= w; causal: and j <= i."""
    return Mask(n, n, f"band:w={_check.size('w', w)}", causal=causal)


def longformer(n: int, w: int, tokens: int = 1) -> Mask:
    """A band of w on each side; the first `tokens` see all others and are seen by them."""
    return Mask(n, n, f"longformer:w={_check.size('w', w)}:global={_check.size('tokens', tokens)}")


def butterfly(n: int, block: int = 64) -> Mask:
    """Blocks of tokens whose numbers differ in one bit at most."""
    return Mask(n, n, f"butterfly:block={_check.integer('block', block, 1)}")


def bigbird(n: int, block: int = 64, w: int = 1, tokens: int = 1, random: int = 3, seed: int = 0) -> Mask:
    """Blocks of tokens: w on each side, the first `tokens` blocks both ways, and `random` by chance."""
    sizes = {"block": _check.integer("block", block, 1), "w": _check.size("w", w),
             "global": _check.size("tokens", tokens), "random": _check.size("random", random),
             "seed": _check.size("seed", seed)}
    return Mask(n, n, "bigbird:" + ":".join(f"{k}={v}" for k, v in sizes.items()))


def blocks(layout: Any, block: int, n: Optional[int] = None, m: Optional[int] = None) -> Mask:
    """Whole blocks of `block` x `block` tokens: where a matrix of blocks, dense or sparse, has entries."""
    size = _check.integer("block", block, 1)
    start, col, rows, cols = _entries("layout", layout)
    shape = [count * size if given is None else _check.integer(name, given, 0, count * size)
             for name, given, count in (("n", n, rows), ("m", m, cols))]
    for name, count, given in (("n", rows, shape[0]), ("m", cols, shape[1])):
        if -(-given // size) != count:
            raise bad(name, f"as many tokens as {count} blocks of {size} have", given)
    return Mask(*shape, None, start=start, col=col, block=size)


def of(A: Any, name: str = "mask") -> Mask:
    """The entries of a matrix: a weft.Graph, a SciPy matrix, a torch sparse tensor, a dense array of bool."""
    if isinstance(A, Mask):
        return A
    start, col, n, m = _entries(name, A)
    return Mask(n, m, None, start=start, col=col)


def _entries(name: str, A: Any) -> Tuple[np.ndarray, np.ndarray, int, int]:
    """A matrix as CSR, the columns of each row in order."""
    row, col, (n, m) = _pairs(name, A)
    row, col = (np.ascontiguousarray(x, np.int64) for x in (row, col))
    order = np.lexsort((col, row))
    start = np.zeros(n + 1, np.int64)
    np.cumsum(np.bincount(row, minlength=n), out=start[1:])
    return start, col[order], int(n), int(m)


def _pairs(name: str, A: Any) -> Tuple[Any, Any, Tuple[int, int]]:
    if is_torch(A):
        if A.device.type != "cpu" or A.dim() != 2:
            raise bad(name, "a matrix on the CPU", describe(A))
        dense = str(A.layout) == "torch.strided"
        if dense and str(A.dtype) != "torch.bool":
            raise bad(name, "a sparse matrix, or a dense one of bool", describe(A))
        at = A.nonzero().T if dense else A.to_sparse_coo().coalesce().indices()
        return at[0].numpy(), at[1].numpy(), tuple(A.shape)
    if hasattr(A, "tocoo"):
        coo = A.tocoo()
        return coo.row, coo.col, coo.shape
    if all(hasattr(A, x) for x in ("row", "col", "shape")):  # weft.Graph
        return A.row, A.col, A.shape
    if isinstance(A, np.ndarray) and A.ndim == 2 and A.dtype == bool:
        return (*np.nonzero(A), A.shape)
    raise bad(name, "a mask of weft.masks, a weft.Graph, a sparse matrix or a dense one of bool",
              describe(A))
