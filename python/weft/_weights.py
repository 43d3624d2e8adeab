# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""Pruned weights, experts and products of sparse matrices, on NumPy arrays and torch tensors.  Each function
checks its arguments and runs the program of an operator (docs/weights.md)."""

from __future__ import annotations

import math
import re
import sys
from ctypes import byref, memmove
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

import numpy as np

from . import _check, _lib
from ._program import Caller, Program, kernel_of
from ._sparse import array_of, bad, cast, describe, is_torch, keep, tensors_of, type_of


def _dense(name: str, x: Any) -> Any:
    if is_torch(x):
        if x.device.type not in ("cpu", "meta") or str(x.layout) != "torch.strided":
            raise bad(name, "a dense tensor on the CPU", f"{x.layout} on {x.device}")
        return x
    return _check.array(name, x)


def _run(spec: str, arrays: Dict[str, Any], **sizes: int) -> Any:
    """The result of an operator: by torch if an array is a tensor, else by NumPy."""
    if any(is_torch(a) for a in arrays.values()):
        from ._torch_spec import call

        return call(spec, {k: a if is_torch(a) else sys.modules["torch"].as_tensor(a) for k, a in arrays.items()},
                    **sizes)
    return kernel_of(spec)(arrays, **sizes)


def _to_numpy(x: Any) -> np.ndarray:
    return x.detach().cpu().numpy() if is_torch(x) else np.asarray(x)


def _index(at: np.ndarray, like: Any) -> Any:
    return sys.modules["torch"].from_numpy(np.ascontiguousarray(at)) if is_torch(like) else at


def _like(x: np.ndarray, like: Any) -> Any:
    """An array in the kind and type of another one."""
    if is_torch(like):
        return sys.modules["torch"].from_numpy(np.ascontiguousarray(x)).to(like.dtype)
    return x.astype(like.dtype)


# ---- weights

_BLOCKS = ("bsr", "dbsr", "sr_bcrs")
_FORMATS = {"csr": (), "bsr": ("b", "c"), "dbsr": ("b", "c"), "sr_bcrs": ("b", "g"), "n_m": ("k", "g")}
_DEFAULTS = {"b": 16, "c": 16, "g": 4, "k": 2}


class _Format(NamedTuple):
    name: str
    sizes: Dict[str, int]

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.sizes.values()))})" if self.sizes else self.name

    @property
    def words(self) -> str:
        return ":".join([self.name, *(f"{k}={v}" for k, v in self.sizes.items())])


def _format(text: Any) -> _Format:
    match = re.fullmatch(r"\s*(\w+)\s*(?:\(\s*([\d\s,]*)\))?\s*", text) if isinstance(text, str) else None
    if match is None or match[1] not in _FORMATS:
        raise bad("format", "csr, bsr(b, c), dbsr(b, c), sr_bcrs(b, g) or n_m(k, g)", repr(text))
    names = _FORMATS[match[1]]
    given = [int(w) for w in (match[2] or "").replace(" ", "").split(",") if w]
    if given and (len(given) != len(names) or 0 in given):
        raise bad("format", f"{match[1]}({', '.join(names)}) with numbers above 0", repr(text))
    return _Format(match[1], dict(zip(names, given or [_DEFAULTS[n] for n in names])))


def _starts(counts: np.ndarray) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


class _Places:
    """Where the values of a format are: structure arrays by the names of the program, and the element
    row * columns + column of the dense weight that each value is; -1: padding."""

    def __init__(self, arrays: Dict[str, np.ndarray], at: np.ndarray):
        self.arrays = {k: np.ascontiguousarray(a, np.int64) for k, a in arrays.items()}
        self.at = at
        self._tensors: Dict[str, Any] = {}

    def of_kind(self, like: Any) -> Dict[str, Any]:
        """The structure arrays as arrays of NumPy or tensors, the same ones in each call."""
        if not is_torch(like):
            return self.arrays
        return keep(self._tensors, "all", lambda: tensors_of(self.arrays))


_NAMES = {"csr": ("E.start", "E.j"), "bsr": ("E.start", "E.j"), "dbsr": ("E.start", "E.j"),
          "sr_bcrs": ("G.start", "C.j"), "n_m": (None, "L.o")}


def _places(mask: np.ndarray, f: _Format) -> _Places:
    """The structure that the library makes of a mask (weft_places_make in weft.h)."""
    mask, made = np.ascontiguousarray(mask, bool), _lib.Places()
    rows, columns = mask.shape
    with _lib.lock:
        _lib.check(_lib.lib.weft_places_make(_lib.context(), str(f).encode(), mask.ctypes.data, rows, columns,
                                             byref(made)))
        at, start, index, row = (_copied(address, n) for address, n in (
            (made.at, made.n), (made.start, made.starts), (made.index, made.indices), (made.row, made.stored)))
    s = f.sizes
    shape = {"csr": (-1,), "bsr": (-1, s.get("c"), s.get("b")), "dbsr": (-1, s.get("c"), s.get("b")),
             "sr_bcrs": (-1, s.get("g"), s.get("b")), "n_m": (rows, columns // s.get("g", 1), s.get("k"))}[f.name]
    names = _NAMES[f.name]
    inner = {"sr_bcrs": shape[:2], "n_m": shape}.get(f.name, (-1,))
    arrays = {names[1]: index.reshape(inner if index.size else _no_rows(inner))}
    if names[0] is not None:
        arrays[names[0]] = start
    if f.name == "dbsr":
        arrays["D.i"] = row
    return _Places(arrays, at.reshape(shape if at.size else _no_rows(shape)))


def _no_rows(shape: Tuple[Any, ...]) -> Tuple[int, ...]:
    return tuple(0 if n == -1 else n for n in shape)


def _copied(address: Optional[int], n: int) -> np.ndarray:
    out = np.empty(n, np.int64)
    if n:
        memmove(out.ctypes.data, address, out.nbytes)
    return out


class SparseWeight:
    """A weight (out, in) of which only the entries of a mask are stored, for weft.sparse_linear:

        w = weft.SparseWeight.from_dense(weight, mask, "bsr(16, 16)")
        y = weft.sparse_linear(x, w, bias)

    values: the stored elements, in the order of the format; keep: 1 for those of the mask and 0 for those
    that only fill a block (None: all are of the mask).  Elements outside the mask count as 0."""

    def __init__(self, shape: Tuple[int, int], format: _Format, places: _Places, values: Any, keep: Any):
        self.shape, self._format, self._places = shape, format, places
        self.values, self.keep = values, keep

    @classmethod
    def from_dense(cls, weight: Any, mask: Any = None, format: str = "csr") -> "SparseWeight":
        """mask: which elements are stored; default: those that are not 0.  format: as in weft.sparse_linear;
        "auto": the one for which the cost model predicts the shortest time, for 512 tokens and one thread."""
        weight = _dense("weight", weight)
        type_of("weight", weight)
        if weight.ndim != 2:
            raise bad("weight", "2 dimensions (out, in)", describe(weight))
        shape = tuple(int(n) for n in weight.shape)
        plain = weight.detach().float().numpy() if is_torch(weight) else weight
        kept = np.asarray(_to_numpy(mask) if mask is not None else plain != 0).astype(bool)
        if kept.shape != shape:
            raise bad("mask", f"shape {shape}, as the weight has", kept.shape)
        if format == "auto":
            return min((cls.from_dense(weight, kept, f) for f in _candidates(shape)), key=cls.predicted)
        f = _format(format)
        places = _places(kept, f)
        keep = (places.at >= 0) & kept.reshape(-1)[np.maximum(places.at, 0)] if kept.size else places.at >= 0
        new = cls(shape, f, places, None, None if keep.all() else _like(keep, weight))
        new.values = new.values_of(weight)
        return new

    @property
    def format(self) -> str:
        return str(self._format)

    @property
    def nnz(self) -> int:
        """Stored elements of the mask."""
        return int(self._places.at.size if self.keep is None else self.keep.sum())

    def mask(self) -> Any:
        """Which elements of the dense weight are stored, of those that the mask had."""
        flat = np.zeros(self.shape[0] * self.shape[1], bool)
        flat[self._places.at if self.keep is None else self._places.at[_to_numpy(self.keep) != 0]] = True
        return _index(flat.reshape(self.shape), self.values)

    def predicted(self, tokens: int = 512, threads: int = 1) -> float:
        """Seconds that the cost model predicts for this many tokens."""
        values = np.zeros(self.values.shape, np.float32)
        plain = SparseWeight(self.shape, self._format, self._places, values, None)
        return _linear(np.zeros((tokens, self.shape[1]), np.float32), plain, None, _predict(threads))

    def with_values(self, values: Any) -> "SparseWeight":
        """The same places with other values; what is computed for the structure is shared."""
        values = _dense("values", values)
        if tuple(values.shape) != self._places.at.shape:
            raise bad("values", f"shape {self._places.at.shape}", describe(values))
        return SparseWeight(self.shape, self._format, self._places, values, self.keep)

    def values_of(self, weight: Any) -> Any:
        """The stored elements of a dense weight, 0 where they only fill a block; with a gradient, of torch."""
        values = weight.reshape(-1)[_index(np.maximum(self._places.at, 0), weight)]
        return values if self.keep is None else values * self.keep

    def to_dense(self) -> Any:
        """The weight with zeros in between."""
        values = self.values if self.keep is None else self.values * self.keep
        flat = np.maximum(self._places.at, 0).reshape(-1)
        n = self.shape[0] * self.shape[1]
        if is_torch(values):
            at = _index(flat, values)
            return values.new_zeros(n).index_add(0, at, values.reshape(-1)).reshape(self.shape)
        dense = np.zeros(n, values.dtype)
        np.add.at(dense, flat, values.reshape(-1))
        return dense.reshape(self.shape)

    def __repr__(self) -> str:
        share = self.nnz / max(1, self.shape[0] * self.shape[1])
        return f"weft.SparseWeight({self.shape[0]} x {self.shape[1]}, {self.format}, {share:.1%} stored)"


def _weight_of(weight: Any) -> SparseWeight:
    """A matrix of SciPy or torch in CSR, or of torch in BSR, as it is stored."""
    if isinstance(weight, SparseWeight):
        return weight
    if is_torch(weight) and str(weight.layout) == "torch.sparse_csr":
        shape, values = tuple(weight.shape), weight.values()
        arrays = {"E.start": weight.crow_indices(), "E.j": weight.col_indices()}
    elif is_torch(weight) and str(weight.layout) == "torch.sparse_bsr":
        return _of_blocks(weight)
    elif getattr(weight, "format", None) == "csr":
        shape, values = tuple(weight.shape), weight.data
        arrays = {"E.start": weight.indptr, "E.j": weight.indices}
    else:
        got = f"{weight.layout}, {describe(weight)}" if is_torch(weight) else describe(weight)
        raise bad("weight", "a weft.SparseWeight (from_dense makes one of a weight and a mask), or a matrix in CSR "
                  "or, of torch, in BSR; convert it by tocsr() or to_sparse_csr()", got)
    arrays = {k: _to_numpy(a) for k, a in arrays.items()}
    row = np.repeat(np.arange(shape[0]), np.diff(arrays["E.start"]))
    return SparseWeight(shape, _format("csr"), _Places(arrays, row * shape[1] + arrays["E.j"]), values, None)


def _of_blocks(weight: Any) -> SparseWeight:
    b, c = (int(n) for n in weight.values().shape[1:])
    start, j = (_to_numpy(a()) for a in (weight.crow_indices, weight.col_indices))
    i = np.repeat(np.arange(len(start) - 1), np.diff(start))
    row = i[:, None, None] * b + np.arange(b)[None, None, :]
    col = j[:, None, None] * c + np.arange(c)[None, :, None]
    places = _Places({"E.start": start, "E.j": j}, row * weight.shape[1] + col)
    values = weight.values().transpose(1, 2)
    return SparseWeight(tuple(weight.shape), _format(f"bsr({b}, {c})"), places, values, None)


def _candidates(shape: Tuple[int, int]) -> List[str]:
    """Formats that a weight of this shape can have."""
    blocks = [f"bsr({b}, {c})" for b in (32, 16) for c in (32, 16, 1) if shape[0] % b == 0 == shape[1] % c]
    return ["csr", *blocks]


def _predict(threads: int) -> Callable:
    """In place of a run: the seconds that the cost model predicts."""

    def run(spec: str, arrays: Dict[str, Any], **sizes: int) -> float:
        cost, caller = _lib.Cost(), Caller(Program.op(spec), None)
        with _lib.lock:
            caller._bind_inputs(caller._name_all({**arrays, **sizes}))
            _lib.check(_lib.lib.weft_args_cost(caller._handle, threads, byref(cost)))
        return cost.predicted_s

    return run


def sparse_linear(x: Any, weight: Any, bias: Any = None) -> Any:
    """x W' + bias for x (..., in), a sparse weight (out, in) and bias (out): a weft.SparseWeight, a matrix of
    SciPy or torch in CSR, or of torch in BSR.  The result is (..., out).  Gradients by x, the values of the
    weight and bias, to any order, where these are torch tensors."""
    return _linear(_dense("x", x), _weight_of(weight), bias, _run)


def _linear(x: Any, w: SparseWeight, bias: Any, run: Callable) -> Any:
    x, values, bias = cast(x, w.values if w.keep is None else w.values * w.keep, bias)
    kind = type_of("x", x)
    rows, columns = w.shape
    if x.ndim == 0 or x.shape[-1] != columns:
        raise bad("x", f"shape (..., {columns}), as the weight has {columns} columns", describe(x))
    if type_of("weight", values) != kind:
        raise bad("weight", f"elements of {x.dtype}, as x has", values.dtype)
    spec = f"sparse_linear:{kind}:{w._format.words}"
    arrays = {"W": values, **w._places.of_kind(x)}
    if bias is not None:
        bias = _dense("bias", bias)
        if tuple(bias.shape) != (rows,) or type_of("bias", bias) != kind:
            raise bad("bias", f"shape ({rows},) of {x.dtype}, as x has", describe(bias))
        arrays["B"] = bias.reshape(-1, w._format.sizes["b"]) if w._format.name in _BLOCKS else bias
        spec += ":bias"
    arrays["X"], sizes = _tokens(w, x.reshape(math.prod(x.shape[:-1]), columns))
    y = run(spec, arrays, **sizes)
    if run is not _run:
        return y
    return (y if w._format.name in _BLOCKS else y.T).reshape(*x.shape[:-1], rows)


def _tokens(w: SparseWeight, x: Any) -> Tuple[Any, Dict[str, int]]:
    """x as the program of a format has it, and sizes.  Where entries stand alone, tokens are innermost."""
    rows, columns, f = *w.shape, w._format
    sizes = {"tokens": x.shape[0]}
    if f.name == "sr_bcrs":
        return x, {**sizes, "ns": rows // f.sizes["b"], "nin": columns}
    if f.name in _BLOCKS:
        stored = {"nd": len(w._places.arrays["D.i"])} if f.name == "dbsr" else {}
        shape = (x.shape[0], columns // f.sizes["c"], f.sizes["c"])
        return x.reshape(shape), {**sizes, **stored, "ob": rows // f.sizes["b"], "ib": shape[1]}
    inner = {"ng": columns // f.sizes["g"]} if f.name == "n_m" else {"nin": columns}
    return (x.T.contiguous() if is_torch(x) else np.ascontiguousarray(x.T)), {**sizes, **inner, "nout": rows}


# ---- groups of rows

def _integers(name: str, x: Any) -> np.ndarray:
    given = array_of(name, x)
    if given.dtype.kind not in "iu" and given.size:
        raise bad(name, "integers", f"elements of {given.dtype}")
    return given.astype(np.int64)


def grouped_mm(x: Any, weight: Any, offsets: Any, *, index: Any = None, gates: Any = None) -> Any:
    """Each group of rows times its own matrix, as of a mixture of experts: row t of the result is
    x[t] @ weight[g], where group g has the rows offsets[g - 1] to offsets[g] (0 to offsets[0] for the first), as
    torch's grouped_mm has them.  weight is (groups, in, out).

    index: (total) a row of x for each row of the groups, so that x is (n, in): tokens of experts.  gates: (total) a
    factor for each row; the result is then (n, out), with the rows of the groups summed at `index`."""
    x, weight, gates = cast(_dense("x", x), _dense("weight", weight), gates)
    kind, ends = type_of("x", x), _integers("offsets", offsets)
    if weight.ndim != 3 or type_of("weight", weight) != kind:
        raise bad("weight", f"shape (groups, in, out) of {x.dtype}, as x has", describe(weight))
    if ends.shape != (weight.shape[0],) or np.any(np.diff(ends, prepend=0) < 0):
        raise bad("offsets", f"the ends of {weight.shape[0]} groups, in ascending order", repr(offsets))
    if x.ndim != 2 or x.shape[1] != weight.shape[1]:
        raise bad("x", f"shape (rows, {weight.shape[1]}), as the weight has", describe(x))
    total = int(ends[-1]) if len(ends) else 0
    arrays = {"X": x, "W": weight, "T.start": _index(_starts(np.diff(ends, prepend=0)), x)}
    spec, sizes = f"grouped_mm:{kind}", {"groups": weight.shape[0], "nin": weight.shape[1], "nout": weight.shape[2]}
    if gates is not None and index is None:
        raise bad("index", "the row of each result, when gates are given", "None")
    if index is None:
        if x.shape[0] != total:
            raise bad("x", f"{total} rows, as offsets ends with", x.shape[0])
        return _run(spec, arrays, **sizes)
    at = _integers("index", index)
    if at.shape != (total,) or (total and (at.min() < 0 or at.max() >= x.shape[0])):
        raise bad("index", f"{total} rows of x, from 0 to {x.shape[0] - 1}", describe(index))
    arrays["T.j"] = _index(at, x)
    spec += ":gather"
    if gates is not None:
        gates = _dense("gates", gates)
        if tuple(gates.shape) != (total,) or type_of("gates", gates) != kind:
            raise bad("gates", f"shape ({total},) of {x.dtype}, as x has", describe(gates))
        arrays["A"], spec = gates, spec + ":gates"
    return _run(spec, arrays, n=x.shape[0], **sizes)
