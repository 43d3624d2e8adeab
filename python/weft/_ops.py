# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""Operators of sparse matrices and graphs.  Each checks types and shapes and passes pointers to the
kernel of a program (docs/operators.md), which is compiled once in a process.  What was worked out
for a structure is kept as long as its arrays live.

In all of them A is a SciPy matrix or array in CSR, CSC or COO, a torch sparse CSR or CSC tensor on the
CPU, (indptr, indices, data, shape), a weft.Graph, or an edge_index (2, edges), senders then receivers.
Dense operands are NumPy arrays or torch tensors of float16, bfloat16, float32 or float64, all of one
type; the result is of the kind of the first of them, a new array or the one given as out.
transpose=True takes A as its transpose.  Where torch records, results have gradients, to any order; out
is then not for use."""

from __future__ import annotations

import math
import weakref
from ctypes import byref, c_int64
from typing import Any, Dict, Tuple

from . import _graph, _lib, _sparse
from ._array import type_code
from ._lib import check, lib
from ._program import Kernel, Program, _free
from ._sparse import Structure, bad, dense, records

Shape = Tuple[int, ...]

_MOST_SITES = 16  # kept for each structure
_kernels: Dict[str, Kernel] = {}
run_kernel = lib.weft_kernel_run  # or, while _tune.tune holds the lock, what searches instead


def _kernel(spec: str) -> Kernel:
    kernel = _kernels.get(spec)
    if kernel is None:
        kernel = _kernels[spec] = Program.op(spec).compile()
    return kernel


class _Site:
    """One operator on one structure, with operands of given types and shapes: arguments of the
    library, in which a call changes pointers only."""

    def __init__(self, s: Structure, spec: str, type: str, shapes: Dict[str, Shape], result: Shape):
        """shapes: of all buffers by name, outputs last; result: the first output's as users see it."""
        kernel = _kernel(spec)
        args = {a.name: a for a in kernel.program.args}
        self.type, self.result = type, result
        with _lib.lock:
            handle = _lib.new(lib.weft_args_new, kernel.program._handle)
            weakref.finalize(self, _free, lib.weft_args_free, handle)
            for name, size in zip("mn", s.shape):
                if name in args:
                    check(lib.weft_args_size(handle, name.encode(), size))
            self._structure = []
            for name, array in zip(_sparse.ARRAYS[s.format], _sparse.arrays_of(s)):
                if name in args:
                    step = array.strides[0] // array.itemsize
                    self._structure.append(_argument(name, f"i{8 * array.itemsize}", array.shape,
                                                     array.ctypes.data, step))
            self._operands = [_argument(name, args[name].type, shape) for name, shape in shapes.items()]
            self._handle = handle
            self._bind(self._structure)
        self._run = (kernel._handle, handle)
        self._kernel = kernel

    def _bind(self, arguments) -> None:
        bind, handle = lib.weft_args_bind, self._handle
        for _, name, ref in arguments:
            status = bind(handle, name, ref)
            if status:
                check(status)

    def run(self, s: Structure, *data: int) -> None:
        """data: addresses of the operands, in the order of the shapes."""
        with _lib.lock:
            if s.changes():
                self._bind(self._structure)
            for (tensor, _, _), address in zip(self._operands, data):
                tensor.data = address
            self._bind(self._operands)
            status = run_kernel(*self._run)
            if status:
                check(status)


def _argument(name: str, type: str, shape: Shape, data: int = 0, step: int = 1) -> tuple:
    n = len(shape)
    stride = (c_int64 * 1)(step) if step != 1 and n == 1 else None
    tensor = _lib.Tensor(data, type_code(type), n, (c_int64 * n)(*shape), stride)
    return tensor, name.encode(), byref(tensor)


def _keep(s: Structure, key: tuple, site: _Site) -> _Site:
    if len(s.sites) >= _MOST_SITES:
        del s.sites[next(iter(s.sites))]
    s.sites[key] = site
    return site


def _spec(op: str, type: str, s: Structure, transpose: bool, **more: Any) -> str:
    words = [op, type, "csr" if s.format == "ragged" else s.format]
    words += ["t"] if transpose else []
    return ":".join(words + [option for option, wanted in more.items() if wanted])


def _recorded(out: Any) -> Any:
    """The same operators as torch records them."""
    from . import _torch_sparse

    if out is not None:
        raise bad("out", "None, as torch records", "an array")
    return _torch_sparse


def _place(out: Any, site: _Site, like: Any) -> tuple:
    if out is None:
        return _sparse.empty(site.result, like)
    return _sparse.target(out, site.result, site.type)


def _give(out: Any, made: Any) -> Any:
    if out is None or out is made:
        return made
    out[...] = made
    return out


def _values(A: Any, values: Any) -> tuple:
    if values is None:
        raise bad("A", "values", "none: they are needed here")
    return dense(values, "A")


def _same_type(name: str, type: str, got: str, of: str) -> None:
    if got != type:
        raise bad(name, f"elements of {type}, as {of} has", got)


def _product(op: str, A: Any, name: str, B: Any, out: Any, transpose: bool, k: int) -> Any:
    """spmv and spmm, whose operands have k dimensions for each node."""
    nodes = _graph.rows_of(B, -1 - k)
    A = _graph.graph(A, nodes, nodes)
    s, values = _sparse.sparse(A)
    if _graph.has_ones(A):
        values = _graph.ones(A, B)
    if records(values, B):
        return getattr(_recorded(out), op)(A, values, B, transpose)
    v, vtype, vshape, vdata = _values(A, values)
    b, type, shape, data = dense(B, name)
    key = (op, type, shape, vtype, vshape, transpose)
    site = s.sites.get(key)
    if site is None:
        _same_type(name, vtype, type, "A")
        m, n = s.shape[::-1] if transpose else s.shape
        heads, batch = len(vshape) == 2, len(shape) - 1 - k - (len(vshape) == 2)
        if len(vshape) > 2 or vshape[0] != s.nnz:
            raise bad("A: data", f"{s.nnz} values, or rows of values", vshape)
        want = (n, *vshape[1:], *shape[len(shape) - k:])
        if batch not in (0, 1) or shape[batch:] != want:
            words = ", ".join(map(str, (n, *vshape[1:], *["f"] * k)))
            raise bad(name, f"shape ({words}) or (batch, {words})", shape)
        result = (*shape[:batch], m, *want[1:])
        spec = _spec(op, type, s, transpose, heads=heads, batch=batch)
        shapes = {"A": vshape, name: shape, "C" if k else "Y": result}
        site = _keep(s, key, _Site(s, spec, type, shapes, result))
    made, address = _place(out, site, b)
    site.run(s, vdata, data, address)
    return _give(out, made)


def spmv(A: Any, X: Any, out: Any = None, *, transpose: bool = False) -> Any:
    """A X for a vector X (n).  With several values an entry, A.data (nnz, h), X is (n, h).  A first
    dimension more is a batch: X (b, n)."""
    return _product("spmv", A, "X", X, out, transpose, 0)


def spmm(A: Any, B: Any, out: Any = None, *, transpose: bool = False) -> Any:
    """A B for a dense matrix B (n, f).  With several values an entry, A.data (nnz, h), B is (n, h, f).
    A first dimension more is a batch: B (b, n, f)."""
    return _product("spmm", A, "B", B, out, transpose, 1)


def sddmm(A: Any, X: Any, Y: Any, out: Any = None, *, values: bool = False,
          transpose: bool = False) -> Any:
    """X_i . Y_j at the entries (i, j) of A, in the order in which A stores them: X is (m, f), Y is
    (n, f), the result (nnz).  Heads: X (m, h, f), Y (n, h, f), the result (nnz, h).
    values=True: times the value of the entry."""
    ends = (Y, X) if transpose else (X, Y)
    A = _graph.graph(A, *(_graph.rows_of(x, 0) for x in ends))
    s, v = _sparse.sparse(A)
    if records(X, Y, v if values else None):
        return _recorded(out).sddmm(A, X, Y, transpose, v if values else None)
    x, type, shape, data = dense(X, "X")
    y, ytype, yshape, ydata = dense(Y, "Y")
    if values:
        v, vtype, vshape, vdata = _values(A, v)
        key = ("sddmm", type, shape, ytype, yshape, transpose, vtype, vshape)
    else:
        key = ("sddmm", type, shape, ytype, yshape, transpose)
    site = s.sites.get(key)
    if site is None:
        m, n = s.shape[::-1] if transpose else s.shape
        if len(shape) not in (2, 3) or shape[0] != m:
            raise bad("X", f"shape ({m}, f) or ({m}, h, f)", shape)
        _same_type("Y", type, ytype, "X")
        if yshape != (n, *shape[1:]):
            raise bad("Y", f"shape {(n, *shape[1:])}", yshape)
        result = (s.nnz, *shape[1:-1])
        shapes = {"X": shape, "Y": yshape, "Z": result}
        if values:
            _same_type("A", type, vtype, "X")
            if vshape != result:
                raise bad("A: data", f"shape {result}", vshape)
            shapes = {"A": vshape, **shapes}
        spec = _spec("sddmm", type, s, transpose, heads=len(shape) == 3, values=values)
        site = _keep(s, key, _Site(s, spec, type, shapes, result))
    made, address = _place(out, site, x)
    if values:
        site.run(s, vdata, data, ydata, address)
    else:
        site.run(s, data, ydata, address)
    return _give(out, made)


_REDUCTIONS = ("sum", "mean", "max", "min")


def segment_reduce(A: Any, X: Any, reduce: str = "sum", out: Any = None, *, nodes: bool = False,
                   arg: bool = False, transpose: bool = False) -> Any:
    """Of each row of A the sum, mean, max or min of X over its entries; 0 where it has none.
    X is (nnz, ...), one row for each entry in the order in which A stores them; with nodes=True it is
    (n, ...), and an entry (i, j) takes row j.  The result is (m, ...).  A may also be the starts of
    the rows alone, a vector of m + 1 integers.
    arg=True, of max and min: a pair, the result and the numbers of the entries it came from, -1 for
    none; of equals the first."""
    if reduce not in _REDUCTIONS:
        raise bad("reduce", " or ".join(_REDUCTIONS), repr(reduce))
    if arg and reduce not in ("max", "min"):
        raise bad("arg", "it with max or min only", reduce)
    n = _graph.rows_of(X, 0) if nodes else None
    A = _graph.graph(A, n, n)
    s, _ = _sparse.segments(A)
    if s.format == "ragged" and (nodes or transpose):
        raise bad("A", "a matrix, when nodes or transpose is asked for", "starts of rows alone")
    if records(X):
        return _recorded(out).segment_reduce(A, X, reduce, nodes, arg, transpose)
    x, type, shape, data = dense(X, "X")
    key = (reduce, type, shape, nodes, arg, transpose)
    site = s.sites.get(key)
    if site is None:
        m, n = s.shape[::-1] if transpose else s.shape
        want = n if nodes else s.nnz
        if len(shape) == 0 or (want >= 0 and shape[0] != want):
            raise bad("X", f"shape ({want}, ...)", shape)
        f = math.prod(shape[1:])
        shapes = {"X": (shape[0], f), "Y": (m, f)}
        if arg:
            shapes["W"] = (m, f)
        spec = _spec("segment_" + reduce, type, s, transpose, nodes=nodes, arg=arg)
        site = _keep(s, key, _Site(s, spec, type, shapes, (m, *shape[1:])))
    made, address = _place(out, site, x)
    if not arg:
        site.run(s, data, address)
        return _give(out, made)
    which, where = _sparse.empty(site.result, x, integer=True)
    site.run(s, data, address, where)
    return _give(out, made), which


def softmax(A: Any, S: Any = None, out: Any = None, *, transpose: bool = False) -> Any:
    """Of each row of A the softmax over its entries of S (nnz, ...), one for each entry in the order in
    which A stores them; each of the further dimensions is one of its own.  Without S: of the values
    of A.  A may also be the starts of the rows alone."""
    A = _graph.graph(A)
    s, values = _sparse.segments(A)
    if s.format == "ragged" and transpose:
        raise bad("A", "a matrix, when transpose is asked for", "starts of rows alone")
    if records(values if S is None else S):
        return _recorded(out).softmax(A, values if S is None else S, transpose)
    x, type, shape, data = dense(S, "S") if S is not None else _values(A, values)
    key = ("softmax", type, shape, transpose)
    site = s.sites.get(key)
    if site is None:
        if len(shape) == 0 or (s.nnz >= 0 and shape[0] != s.nnz):
            raise bad("S", f"shape ({s.nnz}, ...)", shape)
        flat = (shape[0], math.prod(shape[1:])) if len(shape) > 1 else shape
        spec = _spec("softmax", type, s, transpose, heads=len(shape) > 1)
        site = _keep(s, key, _Site(s, spec, type, {"S": flat, "P": flat}, shape))
    made, address = _place(out, site, x)
    site.run(s, data, address)
    return _give(out, made)
