# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""Equivariant convolutions on NumPy arrays: a tensor product on each edge of a graph, summed into the
edges' receivers, with first and second derivatives.  weft_conv of the library does it
(docs/convolution.md); here shapes and types are checked."""

from __future__ import annotations

import ctypes
import warnings
import weakref
from typing import Any, Dict, Optional, Sequence, Tuple, Union

import numpy as np

from . import _array, _check, _lib
from ._irreps import Irreps
from ._lib import check, lib
from ._o3 import Path, _Layer, _paths, _spec, _type
from ._program import Names, _free
from ._sparse import bad

_OPERANDS = ("x", "y", "weight", "matrix")  # as weft_conv_in has them


def _ends(name: str, value: Any) -> np.ndarray:
    ends = _check.array(name, value)
    if ends.ndim != 1 or (ends.dtype.kind not in "iu" and ends.size):
        raise bad(name, "integers, one for each edge", f"{ends.dtype} of shape {ends.shape}")
    if ends.size == 0:
        ends = ends.astype(np.int64)
    return np.ascontiguousarray(ends if ends.dtype == np.int32 else _array.as_int64(ends, name))


class Edges:
    """The edges of a graph, from row sender[k] of x to row receiver[k] of z, in any order.

    nodes: rows of z, all that receive when it is not given; senders: rows of x, otherwise as many as
    nodes.  Sorted once; any number of convolutions may use them."""

    def __init__(self, receiver: Any, sender: Any, nodes: Optional[int] = None,
                 senders: Optional[int] = None):
        ends = [_ends("receiver", receiver), _ends("sender", sender)]
        if ends[0].shape != ends[1].shape:
            raise bad("sender", f"the shape {ends[0].shape} of receiver", ends[1].shape)
        if ends[0].dtype != ends[1].dtype:
            ends = [e.astype(np.int64) for e in ends]
        self.n = len(ends[0])
        if senders is None and nodes is None:
            senders = int(max(e.max(initial=-1) for e in ends)) + 1
        self.nodes = int(ends[0].max(initial=-1)) + 1 if nodes is None else _check.size("nodes", nodes)
        self.senders = self.nodes if senders is None else _check.size("senders", senders)
        given = _lib.EdgeList(self.nodes, self.senders, self.n,
                              _array.type_code("i64" if ends[0].dtype == np.int64 else "i32"),
                              ends[0].ctypes.data, ends[1].ctypes.data)
        with _lib.lock:
            self._handle = _lib.new(lib.weft_edges_new, _lib.context(), ctypes.byref(given))
        weakref.finalize(self, _free, lib.weft_edges_free, self._handle)

    def __len__(self) -> int:
        return self.n

    def __repr__(self) -> str:
        return f"<weft.Edges {self.n} from {self.senders} to {self.nodes}>"


class Convolution(_Layer):
    """The product of x of each edge's sender, irreps in1, and y of the edge, irreps in2, by weights,
    summed over the edges of each receiver.

    >>> conv = weft.Convolution("8x0e + 8x1o", "0e + 1o", "0e + 1o", mode="uvu")
    >>> edges = weft.Edges(receiver, sender, nodes=len(x))
    >>> z = conv(edges, x, y, weight)
    >>> d = conv.backward(edges, dz, x, y, weight)   # d["x"], d["y"], d["weight"]

    x is (senders, irreps_in1.dim), y (edges, irreps_in2.dim), z (nodes, irreps_out.dim).  weights:
    "item" is a set for each edge, (edges, weight_numel); "shared" one for all, (weight_numel,); "none"
    leaves them out.  With hidden=64 they are made in the kernel: `weight` is then (edges, 64), the
    features of the edges, and `matrix` (64, weight_numel) what turns them into weights.  With
    sums="compensated" sums over edges add up what rounding takes from them, too.  Other settings
    (layout, norm, path_norm, signs, empty, ...) are those of Product."""

    def __init__(self, in1: Any, in2: Any, out: Any = None, *, mode: Optional[str] = None,
                 paths: Union[str, Sequence[Path], None] = None, weights: str = "item",
                 hidden: Optional[int] = None, dtype: Any = "f32", weight_dtype: Any = None,
                 **settings: Any):
        super().__init__(_spec("conv", {
            "in1": Irreps(in1), "in2": Irreps(in2), "out": None if out is None else Irreps(out),
            "mode": mode, "paths": _paths(paths), "weights": weights, "hidden": hidden,
            "type": _type("dtype", dtype),
            "weight_type": None if weight_dtype is None else _type("weight_dtype", weight_dtype),
            **settings}))
        self._open()

    def _open(self) -> None:
        self._info = _lib.ConvInfo()
        with _lib.lock:
            self._handle = _lib.new(lib.weft_conv_new, _lib.context(), _check.text("problem", self.spec))
            weakref.finalize(self, _free, lib.weft_conv_free, self._handle)
            check(lib.weft_conv_get(self._handle, ctypes.byref(self._info)))

    def __reduce__(self) -> tuple:
        return _made, (self.spec,)

    @property
    def irreps_in1(self) -> Irreps:
        return self.irreps["in1"]

    @property
    def irreps_in2(self) -> Irreps:
        return self.irreps["in2"]

    def _rows(self, edges: Edges, name: str) -> Tuple[Tuple[int, ...], str]:
        """The shape of an operand, and its type; () where there is none."""
        info = self._info
        type, weight_type = map(_array.type_name, (info.type, info.weight_type))
        if name == "x":
            return (edges.senders, info.x), type
        if name == "y":
            return (edges.n, info.y), type
        if name == "z":
            return (edges.nodes, info.z), type
        if name == "matrix":
            return ((info.hidden, info.w) if info.hidden else ()), weight_type
        if info.w == 0:
            return (), weight_type
        each = info.hidden or info.w
        return ((info.w,) if info.shared else (edges.n, each)), weight_type

    def _array(self, edges: Edges, name: str, value: Any, like: str, write: bool = False) -> np.ndarray:
        shape, type = self._rows(edges, like)
        array = _array.as_input(value, type, False, name)
        if array.dtype != _array.dtype_of(type):
            raise bad(name, f"elements of {_array.dtype_of(type)}", array.dtype)
        if array.shape != shape:
            raise bad(name, f"the shape {shape}", array.shape)
        if write and not (array.flags.c_contiguous and array.flags.writeable
                          and isinstance(value, np.ndarray)):  # then it is no copy
            raise bad(name, "an array that is written to, in C order", "another")
        return np.ascontiguousarray(array)

    def _in(self, edges: Edges, values: Sequence[Any], prefix: str = "") -> Tuple[Any, list]:
        """The operands for a call, and what has to live as long."""
        if not isinstance(edges, Edges):
            raise bad("edges", "weft.Edges", type(edges).__name__)
        given = _lib.ConvArrays()
        keep = []
        for (field, _), name, value in zip(_lib.ConvArrays._fields_, _OPERANDS, values):
            has = self._rows(edges, name)[0] != ()
            if value is None and has and not prefix:
                raise bad(name, "an array", "None")
            if value is None:
                continue
            if not has:
                raise bad(prefix + name, "None, as the problem does not have this operand", "an array")
            array = self._array(edges, prefix + name, value, name)
            keep.append(array)
            setattr(given, field, array.ctypes.data)
        return given, keep

    def _out(self, edges: Edges, wrt: Names, given: Optional[Dict[str, np.ndarray]],
             *more: str) -> Tuple[Any, Dict[str, np.ndarray]]:
        known = [n for n in _OPERANDS if self._rows(edges, n)[0] != ()] + list(more)
        if wrt is None and given is not None:
            wrt = list(given)
        names = known if wrt is None else [wrt] if isinstance(wrt, str) else list(wrt)
        to, out = _lib.ConvArrays(), {}
        for name in names:
            if name not in known:
                raise bad("wrt", f"some of {', '.join(known)}", repr(name))
            like = "z" if name == "dz" else name
            shape, type = self._rows(edges, like)
            if given is not None and name in given:
                out[name] = self._array(edges, f"out[{name!r}]", given[name], like, True)
            else:
                out[name] = _array.empty(shape, _array.dtype_of(type))
            if name != "dz":
                setattr(to, _lib.ConvArrays._fields_[_OPERANDS.index(name)][0],
                        out[name].ctypes.data)
        return to, out

    def _call(self, function: Any, edges: Edges, *arguments: Any) -> None:
        with _lib.lock:
            check(function(self._handle, edges._handle, *arguments))
            warning = lib.weft_warning(_lib.context()).decode()
        if warning:
            warnings.warn(warning, RuntimeWarning, stacklevel=4)

    def forward(self, edges: Edges, x: Any, y: Any, weight: Any = None, matrix: Any = None, *,
                out: Optional[np.ndarray] = None) -> np.ndarray:
        """z, of shape (nodes, irreps_out.dim), or `out` with it."""
        given, _keep = self._in(edges, (x, y, weight, matrix))
        shape, type = self._rows(edges, "z")
        z = _array.empty(shape, _array.dtype_of(type)) if out is None else self._array(
            edges, "out", out, "z", True)
        self._call(lib.weft_conv_forward, edges, ctypes.byref(given), z.ctypes.data)
        return z

    __call__ = forward

    def backward(self, edges: Edges, dz: Any, x: Any, y: Any, weight: Any = None,
                 matrix: Any = None, *, wrt: Names = None,
                 out: Optional[Dict[str, np.ndarray]] = None) -> Dict[str, np.ndarray]:
        """Given dz, the gradient of some number by z: its gradients by "x", "y", "weight" and
        "matrix", or by those in `wrt`; into the arrays of `out` where these are there."""
        given, _keep = self._in(edges, (x, y, weight, matrix))
        rows = self._array(edges, "dz", dz, "z")
        to, made = self._out(edges, wrt, out)
        self._call(lib.weft_conv_backward, edges, ctypes.byref(given), rows.ctypes.data,
                   ctypes.byref(to))
        return made

    def double_backward(self, edges: Edges, dz: Any, x: Any, y: Any, weight: Any = None,
                        matrix: Any = None, *, ddx: Any = None, ddy: Any = None,
                        ddweight: Any = None, ddmatrix: Any = None, wrt: Names = None,
                        out: Optional[Dict[str, np.ndarray]] = None) -> Dict[str, np.ndarray]:
        """Given ddx, ddy, ddweight and ddmatrix, the gradients of some number by what `backward` gives
        (None is 0): its gradients by what `backward` takes, the operands and "dz", or by those in
        `wrt`; `out` as there."""
        given, _keep = self._in(edges, (x, y, weight, matrix))
        along, _keep2 = self._in(edges, (ddx, ddy, ddweight, ddmatrix), "dd")
        rows = self._array(edges, "dz", dz, "z")
        to, made = self._out(edges, wrt, out, "dz")
        self._call(lib.weft_conv_double_backward, edges, ctypes.byref(given), rows.ctypes.data,
                   ctypes.byref(along), ctypes.byref(to),
                   made["dz"].ctypes.data if "dz" in made else None)
        return made


def _made(spec: str) -> Convolution:
    self = Convolution.__new__(Convolution)
    _Layer.__init__(self, spec)
    self._open()
    return self
