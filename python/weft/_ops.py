# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""Operators of sparse matrices and graphs.  Each checks types and shapes and passes pointers to the
kernel of a program (docs/operators.md), which is compiled once in a process.  What was worked out
for a structure is kept as long as its arrays live.

In all of them A is a SciPy matrix or array in CSR, CSC or COO, a torch sparse tensor (CSR, CSC, COO, BSR) on
the CPU, (indptr, indices, data, shape), a weft.Graph, or an edge_index (2, edges), senders then receivers.
Dense operands are NumPy arrays or torch tensors of float16, bfloat16, float32 or float64, all of one
type (torch tensors of several types become what torch makes of them); the result is of the kind of the first
of them, a new array or the one given as out.  The first dimension of a dense operand is that of nodes.
transpose=True takes A as its transpose.  On torch tensors they are operators of torch (_torch_sparse): results
have gradients, to any order; where torch records, out is not for use."""

from __future__ import annotations

import math
import weakref
from ctypes import byref, c_int64
from typing import Any, Dict, NamedTuple, Tuple

from . import _graph, _lib, _sparse
from ._array import type_code
from ._lib import check, lib
from ._program import _free, kernel_of
from ._sparse import Structure, bad, dense, records

Shape = Tuple[int, ...]

_MOST_SITES = 16  # kept for each structure
run_kernel = lib.weft_kernel_run  # or, while _tune.tune holds the lock, what searches instead


class _Site:
    """One operator on one structure, with operands of given types and shapes: arguments of the
    library, in which a call changes pointers only."""

    def __init__(self, s: Structure, spec: str, type: str, shapes: Dict[str, Shape], result: Shape):
        """shapes: of all buffers by name, outputs last; result: the first output's as users see it."""
        kernel = kernel_of(spec)
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


def _on_torch(*arrays: Any) -> Any:
    """The same operators on tensors, where they are to run there; None: here.  arrays: the dense operand
    that says of what kind the result is, then others, which count if torch must see them."""
    if run_kernel is not lib.weft_kernel_run or not (_sparse.is_torch(arrays[0]) or records(*arrays)):
        return None
    from . import _torch_sparse

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


class Form(NamedTuple):
    """How an operator sees its operands: its options, the shapes of its buffers, outputs last, and the
    shape of its first result as users see it."""

    options: Dict[str, Any]
    shapes: Dict[str, Shape]
    result: Shape


class Reduce(NamedTuple):
    """How spmm puts the products of a row together, and whether it tells which entries they came from."""

    word: str = "sum"
    arg: bool = False


def product_form(name: str, k: int, batch: bool, m: int, n: int, nnz: int, vshape: Shape, shape: Shape,
                 reduce: Reduce = Reduce()) -> Form:
    """Of spmv (k = 0) and spmm (k = 1).  What follows nodes and heads are features, of any shape."""
    if len(vshape) not in (1, 2) or vshape[0] != nnz:
        raise bad("A: data", f"{nnz} values, or rows of values", vshape)
    b, heads = int(batch), vshape[1:]
    nodes, rest = (n, *heads), shape[b + 1 + len(heads):]
    if shape[b:len(shape) - len(rest)] != nodes or (k == 0 and rest):
        words = ", ".join(map(str, [*nodes, *["f"] * k]))
        raise bad(name, f"shape (batch, {words})" if b else
                  f"shape ({words}), or (batch, {words}) with batch=True", shape)
    f, lead = (math.prod(rest),) * k, shape[:b]
    shapes = {"A": vshape, name: (*lead, *nodes, *f), "C" if k else "Y": (*lead, m, *heads, *f)}
    if reduce.arg:
        shapes["W"] = shapes["C"]
    return Form({"heads": bool(heads), "batch": batch, reduce.word: reduce.word != "sum", "arg": reduce.arg}, shapes,
                (*lead, m, *heads, *rest))


def _product(op: str, A: Any, name: str, B: Any, out: Any, transpose: bool, batch: bool, k: int,
             reduce: Reduce = Reduce()) -> Any:
    """spmv and spmm, whose operands have k dimensions for each node."""
    there = _on_torch(B, _graph.values_of(A))
    if there is not None:
        return there.product(op, A, name, B, out, transpose, batch, k, reduce)
    nodes = _graph.rows_of(B, int(batch))
    A = _graph.graph(A, nodes, nodes)
    s, values = _sparse.sparse(A)
    b, type, shape, data = dense(B, name)
    v, vtype, vshape, vdata = _values(A, _graph.ones(A, B) if _graph.has_ones(A) else values)
    key = (op, type, shape, vtype, vshape, transpose, batch, reduce)
    site = s.sites.get(key)
    if site is None:
        _same_type(name, vtype, type, "A")
        m, n = s.shape[::-1] if transpose else s.shape
        form = product_form(name, k, batch, m, n, s.nnz, vshape, shape, reduce)
        spec = _spec(op, type, s, transpose, **form.options)
        site = _keep(s, key, _Site(s, spec, type, form.shapes, form.result))
    made, address = _place(out, site, b)
    if not reduce.arg:
        site.run(s, vdata, data, address)
        return _give(out, made)
    which, where = _sparse.empty(site.result, b, integer=True)
    site.run(s, vdata, data, address, where)
    return _give(out, made), which


@_graph.named_ends
def spmv(A: Any, X: Any, out: Any = None, *, transpose: bool = False, batch: bool = False) -> Any:
    """A X for a vector X (n).  With several values an entry, A.data (nnz, h), X is (n, h).  batch=True: X
    has a first dimension more, (b, n)."""
    return _product("spmv", A, "X", X, out, transpose, batch, 0)


@_graph.named_ends
def spmm(A: Any, B: Any, out: Any = None, *, transpose: bool = False, batch: bool = False, reduce: str = "sum",
         arg: bool = False) -> Any:
    """A B for a dense matrix B (n, f), or (n, ...) for features of any shape.  With several values an
    entry, A.data (nnz, h), B is (n, h, f).  batch=True: B has a first dimension more, (b, n, f).
    reduce: "mean", "max" or "min" of the products of a row, in place of their sum; 0 for a row without entries.
    arg=True, of max and min: a pair, the result and the numbers of the entries it came from, -1 for none; of
    equals the first."""
    _check_reduce(reduce, arg)
    return _product("spmm", A, "B", B, out, transpose, batch, 1, Reduce(reduce, bool(arg)))


def _check_reduce(reduce: Any, arg: Any) -> None:
    if reduce not in _REDUCTIONS:
        raise bad("reduce", " or ".join(_REDUCTIONS), repr(reduce))
    if arg and reduce not in ("max", "min"):
        raise bad("arg", "it with max or min only", reduce)


def sddmm_form(m: int, n: int, nnz: int, shape: Shape, yshape: Shape, vshape: Any) -> Form:
    """vshape: of the values of A, where it is times these."""
    if len(shape) not in (2, 3) or shape[0] != m:
        raise bad("X", f"shape ({m}, f) or ({m}, h, f)", shape)
    if yshape != (n, *shape[1:]):
        raise bad("Y", f"shape {(n, *shape[1:])}", yshape)
    result = (nnz, *shape[1:-1])
    if vshape is not None and vshape != result:
        raise bad("A: data", f"shape {result}", vshape)
    shapes = {"X": shape, "Y": yshape, "Z": result}
    return Form({"heads": len(shape) == 3, "values": vshape is not None},
                shapes if vshape is None else {"A": vshape, **shapes}, result)


@_graph.named_ends
def sddmm(A: Any, X: Any, Y: Any, out: Any = None, *, values: bool = False,
          transpose: bool = False) -> Any:
    """X_i . Y_j at the entries (i, j) of A, in the order in which A stores them: X is (m, f), Y is
    (n, f), the result (nnz).  Heads: X (m, h, f), Y (n, h, f), the result (nnz, h).
    values=True: times the value of the entry."""
    there = _on_torch(X, Y, _graph.values_of(A) if values else None)
    if there is not None:
        return there.sddmm(A, X, Y, out, values, transpose)
    ends = (Y, X) if transpose else (X, Y)
    A = _graph.graph(A, *(_graph.rows_of(x, 0) for x in ends))
    s, v = _sparse.sparse(A)
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
        _same_type("Y", type, ytype, "X")
        if values:
            _same_type("A", type, vtype, "X")
        form = sddmm_form(m, n, s.nnz, shape, yshape, vshape if values else None)
        spec = _spec("sddmm", type, s, transpose, **form.options)
        site = _keep(s, key, _Site(s, spec, type, form.shapes, form.result))
    made, address = _place(out, site, x)
    if values:
        site.run(s, vdata, data, ydata, address)
    else:
        site.run(s, data, ydata, address)
    return _give(out, made)


_REDUCTIONS = ("sum", "mean", "max", "min")
NEEDS_MATRIX = ("a matrix, when nodes or transpose is asked for", "starts of rows alone")


def segment_form(m: int, want: int, shape: Shape, nodes: bool, arg: bool) -> Form:
    """want: how many rows X has; -1: not known."""
    if len(shape) == 0 or (want >= 0 and shape[0] != want):
        raise bad("X", f"shape ({want}, ...)", shape)
    f = math.prod(shape[1:])
    return Form({"nodes": nodes, "arg": arg},
                {"X": (shape[0], f), "Y": (m, f), **({"W": (m, f)} if arg else {})}, (m, *shape[1:]))


@_graph.named_ends
def segment_reduce(A: Any, X: Any, reduce: str = "sum", out: Any = None, *, nodes: bool = False,
                   arg: bool = False, transpose: bool = False) -> Any:
    """Of each row of A the sum, mean, max or min of X over its entries; 0 where it has none.
    X is (nnz, ...), one row for each entry in the order in which A stores them; with nodes=True it is
    (n, ...), and an entry (i, j) takes row j.  The result is (m, ...).  A may also be the starts of
    the rows alone, a vector of m + 1 integers.
    arg=True, of max and min: a pair, the result and the numbers of the entries it came from, -1 for
    none; of equals the first."""
    _check_reduce(reduce, arg)
    there = _on_torch(X)
    if there is not None:
        return there.segment_reduce(A, X, reduce, out, nodes, arg, transpose)
    n = _graph.rows_of(X, 0) if nodes else None
    A = _graph.graph(A, n, n)
    s, _ = _sparse.segments(A)
    if s.format == "ragged" and (nodes or transpose):
        raise bad("A", *NEEDS_MATRIX)
    x, type, shape, data = dense(X, "X")
    key = (reduce, type, shape, nodes, arg, transpose)
    site = s.sites.get(key)
    if site is None:
        m, n = s.shape[::-1] if transpose else s.shape
        form = segment_form(m, n if nodes else s.nnz, shape, nodes, arg)
        spec = _spec("segment_" + reduce, type, s, transpose, **form.options)
        site = _keep(s, key, _Site(s, spec, type, form.shapes, form.result))
    made, address = _place(out, site, x)
    if not arg:
        site.run(s, data, address)
        return _give(out, made)
    which, where = _sparse.empty(site.result, x, integer=True)
    site.run(s, data, address, where)
    return _give(out, made), which


def softmax_form(nnz: int, shape: Shape) -> Form:
    if len(shape) == 0 or (nnz >= 0 and shape[0] != nnz):
        raise bad("S", f"shape ({nnz}, ...)", shape)
    flat = (shape[0], math.prod(shape[1:])) if len(shape) > 1 else shape
    return Form({"heads": len(shape) > 1}, {"S": flat, "P": flat}, shape)


@_graph.named_ends
def softmax(A: Any, S: Any = None, out: Any = None, *, transpose: bool = False) -> Any:
    """Of each row of A the softmax over its entries of S (nnz, ...), one for each entry in the order in
    which A stores them; each of the further dimensions is one of its own.  Without S: of the values
    of A.  A may also be the starts of the rows alone."""
    there = _on_torch(_graph.values_of(A) if S is None else S)
    if there is not None:
        return there.softmax(A, S, out, transpose)
    A = _graph.graph(A)
    s, values = _sparse.segments(A)
    if s.format == "ragged" and transpose:
        raise bad("A", *NEEDS_MATRIX)
    x, type, shape, data = dense(S, "S") if S is not None else _values(A, values)
    key = ("softmax", type, shape, transpose)
    site = s.sites.get(key)
    if site is None:
        form = softmax_form(s.nnz, shape)
        spec = _spec("softmax", type, s, transpose, **form.options)
        site = _keep(s, key, _Site(s, spec, type, form.shapes, form.result))
    made, address = _place(out, site, x)
    site.run(s, data, address)
    return _give(out, made)
