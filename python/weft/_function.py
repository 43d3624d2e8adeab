# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""A program as the text that weft::run takes (python/native/run.c): its arrays, with shapes that hold for
symbols of torch too, and its derivatives, which are such texts again."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Dict, List, NamedTuple, Sequence, Tuple

import torch

from . import _lib
from ._lib import lib
from ._program import Program

DTYPES = {"i32": torch.int32, "i64": torch.int64, "f16": torch.float16, "bf16": torch.bfloat16,
          "f32": torch.float32, "f64": torch.float64}
_MARK = {"grad": re.compile(r"d\d*_"), "jvp": re.compile(r"t\d*_")}  # before names
_DERIVATIVE = re.compile(r"(grad|jvp|batch) of=")
_SYMBOL = re.compile(r"size\(\w+\)|[A-Za-z_]\w*")


class Extent:
    """An expression of weft_prog_extent: of sizes, and of size(E) for entries of an axis."""

    def __init__(self, text: str):
        self.text = text
        self.symbols = list(dict.fromkeys(_SYMBOL.findall(text)))
        names = {s: f"v{k}" for k, s in enumerate(self.symbols)}
        code = _SYMBOL.sub(lambda m: names[m.group()], text).replace("/", "//")
        self._value = eval(f"lambda {', '.join(names.values())}: {code}") if text else None

    @property
    def is_linear(self) -> bool:
        return bool(self.text) and not set(self.text) & set("/%") and self.text.count("*") <= 1

    def value(self, at: Dict[str, Any]) -> Any:
        return self._value(*[at[s] for s in self.symbols])

    def solve(self, at: Dict[str, Any], symbol: str, value: Any) -> Any:
        """What the symbol is when all others are known and this is the value."""
        zero = self.value({**at, symbol: 0})
        return (value - zero) // (self.value({**at, symbol: 1}) - zero)


class Array(NamedTuple):
    """An argument of a program, other than a size."""

    name: str
    dtype: torch.dtype
    structure: bool
    extents: Tuple[Extent, ...]

    def shape(self, at: Dict[str, Any]) -> List[Any]:
        for e in self.extents:
            if not e.text or any(s not in at for s in e.symbols):
                return [_unknown() if not x.text or any(s not in at for s in x.symbols) else x.value(at)
                        for x in self.extents]
        return [e.value(at) for e in self.extents]

    @property
    def has_items(self) -> bool:
        """Does its first extent count items, and is there no other size in it?"""
        return bool(self.extents) and re.fullmatch(r"[a-z_]\w*", self.extents[0].text) is not None \
            and not any(e.symbols for e in self.extents[1:])


def _unknown() -> Any:
    """An extent that only a run tells."""
    return torch.library.get_ctx().new_dynamic_size()


class Function:
    """symbols: sizes, then the numbers of entries size(E) that shapes depend on, in the order in which
    weft::run takes values for them.  missing: those that no shape of an input tells."""

    def __init__(self, text: str):
        self.text = text
        self.program = open_text(text)
        args = self.program.args
        arrays = {a.name: Array(a.name, DTYPES[a.type], a.structure,
                                tuple(_extent(self.program, a.name, k) for k in range(a.ndim)))
                  for a in args if a.role != "size"}
        self.sizes = [a.name for a in args if a.role == "size"]
        counts = [s for a in arrays.values() for e in a.extents for s in e.symbols]
        self.symbols = list(dict.fromkeys([*self.sizes, *counts]))
        self.inputs = [arrays[a.name] for a in args if a.role == "input"]
        self.outputs = [arrays[a.name] for a in args if a.role == "output"]
        self.kept = [*self.inputs, *[a for a in self.outputs if a.structure]]  # what derivatives may take
        self._known = self._order()
        self.missing = [s for s in self.symbols if s not in {k[0] for k in self._known}]

    def _order(self) -> List[Tuple[str, int, int]]:
        """Which dimension of which input tells a size, when those before it are known."""
        known: Dict[str, Tuple[str, int, int]] = {}
        more = True
        while more:
            more = False
            for i, array in enumerate(self.inputs):
                for k, e in enumerate(array.extents):
                    unknown = [s for s in e.symbols if s not in known]
                    if len(unknown) == 1 and e.is_linear:
                        known[unknown[0]] = (unknown[0], i, k)
                        more = True
        return list(known.values())

    def solve(self, arrays: Sequence[torch.Tensor], sizes: Sequence[Any] = ()) -> Dict[str, Any]:
        """The values of symbols, from the shapes of the inputs and what was given."""
        at: Dict[str, Any] = {}
        for symbol, i, k in self._known:
            at[symbol] = self.inputs[i].extents[k].solve(at, symbol, arrays[i].shape[k])
        for symbol, value in zip(self.symbols, sizes):
            if symbol not in at and not (isinstance(value, int) and value < 0):
                at[symbol] = value
        return at

    def derive(self, kind: str, of: Sequence[str], wrt: Sequence[str]) -> "Function":
        """grad: the gradient by these inputs; jvp: the tangents of these outputs."""
        return function(f"{self.text}\n{kind} of={','.join(of)} wrt={','.join(wrt)}")

    def batch(self, names: Sequence[str]) -> "Function":
        """For a batch of these inputs."""
        return function(f"{self.text}\nbatch of={','.join(names)}")

    def mark(self, kind: str) -> str:
        """What this derivative puts before names of arrays, for their gradients or tangents."""
        found = _MARK[kind].match(self.outputs[0].name)
        assert found is not None
        return found.group()


def _extent(program: Program, name: str, dim: int) -> Extent:
    with _lib.lock:
        return Extent(_lib.text(lib.weft_prog_extent, program._handle, name.encode(), dim))


@lru_cache(maxsize=1024)
def function(text: str) -> Function:
    return Function(text)


def open_text(text: str) -> Program:
    """The program that a text of weft::run stands for."""
    lines = text.split("\n")
    first = 1
    if text.startswith("program "):
        first = next((k for k, line in enumerate(lines) if _DERIVATIVE.match(line)), len(lines))
    kind, _, spec = "\n".join(lines[:first]).partition(" ")
    program = {"o3": Program.o3, "op": Program.op}[kind](spec) if kind != "program" else \
        Program("\n".join(lines[:first]))
    for line in lines[first:]:
        kind, of, *wrt = line.split(" ")
        if kind == "batch":
            program = program.batch(of[len("of="):].split(","))
            continue
        program = program.grad(of=of[len("of="):].split(","), wrt=wrt[0][len("wrt="):].split(","),
                               forward=kind == "jvp")
    return program


@torch.compiler.assume_constant_result
def constant(text: str) -> Function:
    """The same, for code that torch traces."""
    return function(text)
