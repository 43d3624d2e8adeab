# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""Any program as an operator of torch: weft.torch.operator.  docs/torch.md, "Any program"."""

from __future__ import annotations

from collections.abc import Mapping
from ctypes import byref
from typing import Any, Dict, List, Optional, Tuple, Union

import torch as _torch_package

from . import _check, _lib, _operand, _uses
from ._function import Array, Function, function
from ._lib import ArgumentError
from ._program import Program
from ._sparse import bad, describe, is_torch
from ._torch import run

__all__ = ["Operator", "operator"]

Tensor = _torch_package.Tensor
Result = Union[Tensor, Dict[str, Tensor]]


def __dir__() -> List[str]:
    return [*__all__, "__doc__", "__file__", "__name__"]


def operator(program: Union[Program, str]) -> "Operator":
    """The operator of a program: a weft.Program, its text, or the spec of an operator ("spmm:f64:heads").

    >>> spmm = weft.torch.operator("spmm")
    >>> C = spmm(A=sparse_tensor, B=B)          # or a weft.Graph, an edge_index, a SciPy matrix
    >>> C = spmm(A=values, E_start=start, E_j=col, B=B)
    """
    if isinstance(program, Program):
        return Operator(program.text)
    text = _check.text("program", program).decode()
    if "\n" in text or text.lstrip().startswith("program"):
        return Operator(Program(text).text)
    return Operator("op " + text)


class Operator:
    """A callable on tensors.  Arguments are given by name:

    - a buffer is a tensor, or anything that torch.as_tensor makes one of.  A floating-point tensor of
      another type is converted to the buffer's, as autocast leaves tensors of several types;
    - a matrix (weft.Graph, torch CSR, CSC, COO or BSR, SciPy, (indptr, indices, data, shape), edge_index)
      stands for a buffer of values and the structure arrays of its axis, or, under the name of an axis,
      for these arrays alone;
    - a structure array is E_start or **{"E.start": ...}, an integer tensor;
    - a size is an integer, and may be left out where a shape tells it.

    One output is given as a tensor, several as a dict by name.  Results are differentiable by all inputs of
    floating-point numbers, to any order, in reverse and forward mode."""

    def __init__(self, text: str):
        self._open(text)

    def _open(self, text: str) -> None:
        self._text = text
        self._function = function(text)
        for a in self._function.program.args:
            if a.role == "inout":
                raise ArgumentError(f"program: {a.name} is inout, and operators of torch change no operand; "
                                    "declare an input and an output in its place")
        self._names = _Names(self._function)
        _uses.hold(self, text)

    def __getstate__(self) -> str:
        return self._text

    def __setstate__(self, text: str) -> None:
        self._open(text)

    def __deepcopy__(self, memo: Any) -> "Operator":
        return Operator(self._text)

    @property
    def program(self) -> Program:
        return self._function.program

    def __call__(self, arrays: Optional[Mapping] = None, /, **more: Any) -> Result:
        given = more if arrays is None else _check.named(arrays, more)
        tensors, sizes, orders = self._names.place(given)
        results = run(self._text, tensors, sizes)
        outputs = self._function.outputs
        if orders:
            results = [_restore(z, a, orders) for z, a in zip(results, outputs)]
        if len(outputs) == 1:
            return results[0]
        return {a.name: z for a, z in zip(outputs, results)}

    def __repr__(self) -> str:
        inputs, outputs = ([a.name for a in of] for of in (self._function.inputs, self._function.outputs))
        return f"<weft.torch.Operator {', '.join(inputs)} -> {', '.join(outputs)}>"


Orders = Dict[str, Tensor]  # of axes by "size(E)": where each entry of the program is in the caller's order


class _Axis:
    """An axis of entries: the names of its structure arrays, how many entries it has, and of how many rows
    and columns it is, as texts of extents; None: there is no such array, or no bound."""

    def __init__(self, f: Function, start: Optional[str], row: Optional[str], col: Optional[str]):
        self.start, self.row, self.col = start, row, col
        extents = {a.name: a.extents[0].text for a in f.inputs if a.structure}
        axis = str(start or col).partition(".")[0]
        self.count = extents[col] if col else f"size({axis})"
        rows = extents[start][:-len(" + 1")] if start else _bound(f.program, row)
        self.shape = (rows, _bound(f.program, col))

    def take(self, name: str, p: _operand.Parts, columns: bool) -> Tuple[Dict[str, Tensor], Any]:
        """The structure arrays of a matrix, and where its entries were if they came into another order."""
        order = None
        if self.start and not self.row:
            p, order = _operand.by_row(p, columns)
            arrays = {self.start: p.first, self.col: p.index}
        elif self.row and not self.start:
            arrays = dict(zip((self.row, self.col), _operand.ends(p)))
        else:
            raise bad(name, "values and structure arrays, as the program stores neither CSR, CSC nor COO",
                      "a matrix")
        return {k: v for k, v in arrays.items() if k is not None}, order


def _bound(program: Program, name: Optional[str]) -> Optional[str]:
    if name is None:
        return None
    with _lib.lock:
        return _lib.text(_lib.lib.weft_prog_bound, program._handle, name.encode()) or None


def _axes_of(f: Function) -> Dict[str, _Axis]:
    """Those that a matrix can stand for: with starts and one coordinate at most, or with two coordinates."""
    axes = {}
    for axis in dict.fromkeys(a.name.partition(".")[0] for a in f.inputs if a.structure):
        names = [a.name for a in f.inputs if a.structure and a.name.startswith(axis + ".")]
        start = next((n for n in names if n.endswith(".start")), None)
        coords = [n for n in names if n != start]
        if start and len(coords) <= 1:
            axes[axis] = _Axis(f, start, None, coords[0] if coords else None)
        elif not start and len(coords) == 2:
            axes[axis] = _Axis(f, None, *coords)
    return axes


def _axis_of(f: Function, a: Array, axes: Dict[str, _Axis]) -> Optional[_Axis]:
    """The axis of the entries whose values a buffer has."""
    parts = _lib.Matrix()
    with _lib.lock:
        status = _lib.lib.weft_prog_matrix(f.program._handle, a.name.encode(), byref(parts))
    names = [p.decode() if p else None for p in (parts.start, parts.row, parts.col)] if status == 0 else []
    if any(names):
        return _Axis(f, *names)
    over = [x for x in axes.values() if a.extents and a.extents[0].text == x.count]
    return over[0] if len(over) == 1 else None


class _Names:
    """The arguments of a program by name, and what a matrix stands for."""

    def __init__(self, f: Function):
        self.f = f
        self.inputs = {a.name: a for a in f.inputs}
        self.outputs = {a.name for a in f.outputs}
        self.plain = {a.name.replace(".", "_"): a.name for a in f.inputs if "." in a.name}
        self.columns = f.text.startswith("op ") and "csc" in f.text.partition("\n")[0].split(":")
        self.axes = _axes_of(f)
        self.matrices = {a.name: _axis_of(f, a, self.axes) for a in f.inputs if not a.structure}

    def place(self, given: Mapping) -> Tuple[List[Tensor], List[Any], Orders]:
        """The tensors of weft::run, its sizes, and the orders of entries that were changed."""
        at: Dict[str, Any] = {}
        sizes: Dict[str, Any] = {}
        sparse: Dict[str, Any] = {}
        for name, value in given.items():
            name = self.plain.get(name, name) if name not in self.inputs else name
            if name in self.f.sizes:
                sizes[name] = value if isinstance(value, _torch_package.SymInt) else _check.size(name, value)
            elif self._is_matrix(name, value):
                sparse[name] = value
            elif name in self.inputs:
                at[name] = value
            else:
                raise self._unknown(name)
        orders: Orders = {}
        for name, value in sparse.items():
            self._take_apart(name, value, at, sizes, orders)
        tensors = [self._tensor(a, at, orders) for a in self.f.inputs]
        return tensors, self._sizes(sizes), orders

    def _is_matrix(self, name: str, value: Any) -> bool:
        if name in self.axes:
            return True
        if self.matrices.get(name) is None:
            return False
        if _operand.is_sparse(value):
            return True
        # The type first: a traced function would be bound to values of other than 2 rows.
        return self.inputs[name].dtype.is_floating_point and is_torch(value) and \
            value.dtype in (_torch_package.int32, _torch_package.int64) and value.dim() == 2 and value.shape[0] == 2

    def _unknown(self, name: str) -> ArgumentError:
        if name in self.outputs:
            return ArgumentError(f"{name} is an output: the call returns it")
        known = [*self.f.sizes, *[a.name for a in self.f.inputs], *self.axes]
        return ArgumentError(f"{name}: the program has no argument of this name; it takes {', '.join(known)}")

    def _take_apart(self, name: str, value: Any, at: Dict[str, Any], sizes: Dict[str, Any],
                    orders: Orders) -> None:
        axis = self.axes[name] if name in self.axes else self.matrices[name]
        assert axis is not None
        p = _operand.parts_of(name, value, self._shape(axis, at, sizes))
        arrays, order = axis.take(name, p, self.columns)
        at.update(arrays)
        if order is not None:
            orders[axis.count] = order
        shape = p.shape[::-1] if self.columns else p.shape
        sizes.update({s: n for s, n in zip(axis.shape, shape) if s in self.f.sizes and s not in sizes})
        if name not in self.axes:
            ones = p.values is None
            at[name] = p.index.new_ones(p.index.shape, dtype=self.inputs[name].dtype) if ones else p.values

    def _shape(self, axis: "_Axis", at: Dict[str, Any], sizes: Dict[str, Any]) -> Any:
        """Of how many rows and columns an edge_index is: as sizes and dense operands tell; where they tell
        one of both, it is of as many nodes."""
        known = dict(sizes)
        for a in self.f.inputs:
            shape = getattr(at.get(a.name), "shape", None)
            for e, n in zip(a.extents, shape if shape is not None else ()):
                if e.text in self.f.sizes:
                    known.setdefault(e.text, n)
        m, n = (known.get(s) for s in axis.shape)
        return (n if m is None else m), (m if n is None else n)

    def _tensor(self, a: Array, at: Dict[str, Any], orders: Orders) -> Tensor:
        if a.name not in at:
            raise ArgumentError(f"{a.name} is not given: the program reads it")
        x = at[a.name]
        x = x if is_torch(x) else _operand.tensor_of(_check.array(a.name, x))
        if x.device.type not in ("cpu", "meta"):
            raise bad(a.name, "a tensor on the CPU", x.device)
        if x.layout is not _torch_package.strided:
            raise bad(a.name, "a dense tensor", f"{x.layout}; it is not the values of a matrix here")
        if x.dim() != len(a.extents):
            raise bad(a.name, f"{len(a.extents)} dimensions ({', '.join(e.text for e in a.extents)})",
                      describe(x))
        if a.structure:
            if x.dtype not in (_torch_package.int32, _torch_package.int64):
                raise bad(a.name, "int32 or int64", describe(x))
            return x
        if x.dtype != a.dtype:
            if not (x.is_floating_point() and a.dtype.is_floating_point):
                raise bad(a.name, f"elements of {a.dtype}", describe(x))
            x = x.to(a.dtype)
        order = orders.get(a.extents[0].text) if orders and a.extents else None
        return x if order is None else x.index_select(0, order)

    def _sizes(self, sizes: Dict[str, Any]) -> List[Any]:
        if not sizes and not self.f.missing:
            return []
        for s in self.f.missing:
            if s not in sizes and s in self.f.sizes:
                raise ArgumentError(f"the size {s} is not known: give {s}=, or an array whose shape contains it")
        return [sizes.get(s, -1) for s in self.f.symbols]


def _restore(z: Tensor, a: Array, orders: Orders) -> Tensor:
    """Results over entries in the caller's order."""
    order = orders.get(a.extents[0].text) if a.extents else None
    if order is None:
        return z
    return _torch_package.empty_like(z).index_copy(0, order, z)
