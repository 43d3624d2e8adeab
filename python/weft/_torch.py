# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""Operators of torch: how they are loaded from libweft_torch, which has their kernels, and what they
have in common; then weft::run, which runs a program of the library, with its shapes, its derivatives
to any order and its rule for vmap."""

from __future__ import annotations

import ctypes
from ctypes import c_char_p, c_int64
from functools import lru_cache
from pathlib import Path
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

import torch
from torch._library.autograd import Info, make_autograd_impl

from . import _lib
from ._lib import check, lib
from ._program import Program
from ._torch_ad import Rules, differentiable, has_tangent, is_traced, one_by_one, save, saved

_LETTERS = {"grad": "d", "jvp": "t"}  # before names
_DTYPES = {"i32": torch.int32, "i64": torch.int64, "f16": torch.float16, "bf16": torch.bfloat16,
           "f32": torch.float32, "f64": torch.float64}


def _load() -> ctypes.CDLL:
    """Registers the operators with torch, from the library beside libweft."""
    path = Path(lib._name).resolve().with_name("libweft_torch.so")
    native = ctypes.CDLL(str(path))
    native.weft_torch_load.restype = c_char_p
    fault = native.weft_torch_load()
    if fault is not None:
        raise ImportError(f"weft: this torch ({torch.__version__}) does not fit, 2.10 or later is "
                          f"needed: {fault.decode()}")
    native.weft_torch_large.argtypes = [ctypes.c_void_p, ctypes.c_uint64]
    native.weft_torch_large.restype = None
    return native


_native = _load()


_library = torch.library.Library("weft", "FRAGMENT")  # lives as long as the process, with its kernels


def operator(name: str, fake: Callable, gradients: Callable, tangents: Callable,
             batch: Callable) -> Callable:
    """Makes weft::NAME differentiable, and returns how to call it: call(arrays, *rest).

    fake(arrays, *rest) gives the shapes; the others are rules of _torch_ad."""
    raw, public = getattr(torch.ops.weft, name + "_raw").default, getattr(torch.ops.weft, name).default
    rules = Rules(name, raw, gradients, tangents, batch)
    plain = differentiable(rules)

    def call(arrays, *rest):
        return public(list(arrays), *rest) if is_traced() else plain(arrays, *rest)

    def vmap(info, in_dims, arrays, *rest):  # inside of it nothing is recorded any more
        out = batch(lambda arrays, *rest: raw(list(arrays), *rest), arrays, in_dims[0],
                    info.batch_size, *rest)
        return out, [0 for _ in out]

    for each in (name, name + "_raw"):
        torch.library.register_fake(f"weft::{each}", fake)
        torch.library.register_vmap(f"weft::{each}", vmap)

    def back(ctx, grads):
        return (rules.gradients(*saved(ctx), grads, ctx.needs_input_grad[0]), *[None] * len(ctx.rest))

    def keep(ctx, inputs, output):
        save(ctx, rules, inputs[1:], inputs[0], output)

    recorded = make_autograd_impl(public, Info(back, keep))  # as torch.library.register_autograd does

    def record(keys, arrays, *rest):
        """What torch.library knows of derivatives are gradients only: it would drop tangents."""
        if any([has_tangent(a) for a in arrays]):
            if torch._C._are_functorch_transforms_active():
                raise NotImplementedError(f"torch.ops.weft.{name} in forward mode inside of torch.func: "
                                          "call the functions and modules of weft instead")
            return list(plain(arrays, *rest))
        return recorded(keys, arrays, *rest)

    _library.impl(name, record, "Autograd", with_keyset=True)
    return call


class Array(NamedTuple):
    """An argument of a program.  Each extent is a constant and a multiple of each size."""

    name: str
    dtype: torch.dtype
    extents: Tuple[Tuple[int, Tuple[int, ...]], ...]

    def shape(self, sizes: Sequence[Any]) -> List[Any]:
        return [const + sum(f * s for f, s in zip(factors, sizes) if f) if any(factors) else const
                for const, factors in self.extents]

    @property
    def has_items(self) -> bool:
        """Does its first extent count items, and is there no other size in it?"""
        return bool(self.extents) and self.extents[0] == (0, (1,)) and not any(
            any(factors) for _, factors in self.extents[1:])


class Function:
    """A program as text (see run.c): its arrays, and its derivatives, which are such texts again."""

    def __init__(self, text: str):
        self.text = text
        lines = text.split("\n")
        self._kinds = [line.partition(" ")[0] for line in lines[1:]]  # of derivatives
        program = _open(lines)  # which is not kept: its shapes are all that is asked for
        args = program.args
        self.sizes = [a.name for a in args if a.role == "size"]
        shapes = _extents(program, self.sizes)
        arrays = {a.name: Array(a.name, _DTYPES[a.type], shapes[a.name]) for a in args
                  if a.role != "size"}
        self.inputs = [arrays[a.name] for a in args if a.role == "input"]
        self.outputs = [arrays[a.name] for a in args if a.role == "output"]
        self._where = [self._find_size(k) for k in range(len(self.sizes))]

    def _find_size(self, k: int) -> Optional[Tuple[int, int]]:
        want = (0, tuple(int(i == k) for i in range(len(self.sizes))))
        for i, array in enumerate(self.inputs):
            if want in array.extents:
                return i, array.extents.index(want)
        return None

    def sizes_of(self, arrays: Sequence[torch.Tensor]) -> List[Any]:
        return [arrays[at[0]].shape[at[1]] for at in self._where]

    @property
    def is_runnable(self) -> bool:
        """Do the shapes of inputs tell all sizes?  Not where nothing depends on anything."""
        return bool(self.inputs) and None not in self._where

    def derive(self, kind: str, of: Sequence[str], wrt: Sequence[str]) -> Optional["Function"]:
        """grad: the gradient by these inputs; jvp: the tangents of these outputs.  None: the shapes of
        its inputs do not tell all sizes, as where nothing depends on anything."""
        out = function(f"{self.text}\n{kind} of={','.join(of)} wrt={','.join(wrt)}")
        return out if out.is_runnable else None

    def name_in(self, kind: str, name: str) -> str:
        """What such a derivative calls the gradient or the tangent of an array."""
        n = self._kinds.count(kind)
        return f"{_LETTERS[kind]}{n + 1 if n else ''}_{name}"


@lru_cache(maxsize=1024)
def function(text: str) -> Function:
    return Function(text)


def _open(lines: List[str]) -> Program:
    kind, _, spec = lines[0].partition(" ")
    program = {"o3": Program.o3, "op": Program.op}[kind](spec)
    for line in lines[1:]:
        kind, of, wrt = line.split(" ")
        program = program.grad(of=of[len("of="):].split(","), wrt=wrt[len("wrt="):].split(","),
                               forward=kind == "jvp")
    return program


def _shapes(program: Program, sizes: Dict[str, int]) -> Dict[str, List[int]]:
    """Of all arrays, when the sizes are these."""
    with _lib.lock:
        args = _lib.new(lib.weft_args_new, program._handle)
        try:
            for name, value in sizes.items():
                check(lib.weft_args_size(args, name.encode(), value))
            out = {}
            for a in program.args:
                if a.role != "size":
                    shape = (c_int64 * max(a.ndim, 1))()
                    check(lib.weft_args_shape(args, a.name.encode(), shape))
                    out[a.name] = list(shape[:a.ndim])
            return out
        finally:
            lib.weft_args_free(args)


def _extents(program: Program, sizes: List[str]) -> Dict[str, tuple]:
    """How each extent grows with each size."""
    base = _shapes(program, {s: 0 for s in sizes})
    one = [_shapes(program, {t: int(t == s) for t in sizes}) for s in sizes]
    return {name: tuple((at, tuple(o[name][k] - at for o in one)) for k, at in enumerate(shape))
            for name, shape in base.items()}


def _fake(arrays, program):
    f = function(program)
    sizes = f.sizes_of(arrays)
    return [arrays[0].new_empty(a.shape(sizes), dtype=a.dtype) for a in f.outputs]


class Derivative(NamedTuple):
    """A program of gradients or tangents: which of the given arrays it takes, and which of its results
    each array gets; -1: none."""

    text: str
    take: List[int]
    give: List[int]


def _match(f: Function, kind: str, d: Optional[Function], added: Sequence[Array],
           results: Sequence[Array]) -> Optional[Derivative]:
    """added: the arrays whose gradients or tangents are given behind the inputs of f; results: the
    arrays whose gradients or tangents are asked for."""
    if d is None:
        return None
    given = [a.name for a in f.inputs] + [f.name_in(kind, a.name) for a in added]
    out = {a.name: k for k, a in enumerate(d.outputs)}
    return Derivative(d.text, [given.index(a.name) for a in d.inputs],
                      [out.get(f.name_in(kind, a.name), -1) for a in results])


@lru_cache(maxsize=1024)
def _gradient(text: str, there: Tuple[bool, ...], wanted: Tuple[bool, ...]) -> Optional[Derivative]:
    """By the inputs that are wanted, where these results have gradients; None: it is 0."""
    f = function(text)
    of = [a.name for a, t in zip(f.outputs, there) if t]
    wrt = [a.name for a, w in zip(f.inputs, wanted) if w and a.dtype.is_floating_point]
    d = f.derive("grad", of, wrt) if of and wrt else None
    return _match(f, "grad", d, f.outputs, f.inputs)


def _gradients(arrays, rest, grads, wanted):
    d = _gradient(rest[0], tuple([g is not None for g in grads]), tuple(wanted))
    if d is None:
        return [None] * len(arrays)
    given = (*arrays, *grads)
    got = _run([given[k] for k in d.take], d.text)
    return [got[k] if k >= 0 and w else None for k, w in zip(d.give, wanted)]


@lru_cache(maxsize=1024)
def _tangent(text: str, there: Tuple[bool, ...]) -> Optional[Derivative]:
    """Where these inputs have tangents; None: not all sizes are known from them."""
    f = function(text)
    wrt = [a.name for a, t in zip(f.inputs, there) if t]
    d = f.derive("jvp", [a.name for a in f.outputs], wrt)
    return _match(f, "jvp", d, f.inputs, f.outputs)


def _tangents(arrays, rest, tangents):
    text = rest[0]
    f, d = function(text), _tangent(text, tuple([t is not None for t in tangents]))
    if d is None:  # that of all inputs knows them: zeros in place of what is not there
        tangents = [torch.zeros_like(a) if t is None and a.is_floating_point() else t
                    for a, t in zip(arrays, tangents)]
        d = _tangent(text, tuple([t is not None for t in tangents]))
    given = (*arrays, *tangents)
    got = _run([given[k] for k in d.take], d.text) if d is not None else []
    give = d.give if d is not None else [-1] * len(f.outputs)
    return [got[k] if k >= 0 else arrays[0].new_zeros(a.shape(f.sizes_of(arrays)), dtype=a.dtype)
            for k, a in zip(give, f.outputs)]


def _batch(call, arrays, dims, n, program):
    """A batch of items is more items; where an array has none, one run after the other."""
    f = function(program)
    at = [None if d is None else x.movedim(d, 0) for x, d in zip(arrays, dims)]
    if not all(a.has_items or b is None for a, b in zip(f.inputs, at)) or not all(
            a.has_items for a in f.outputs):
        return one_by_one(call, arrays, dims, n, program)
    whole = [x if not a.has_items else
             (x.unsqueeze(0).expand(n, *x.shape) if b is None else b).flatten(0, 1)
             for a, x, b in zip(f.inputs, arrays, at)]
    items = f.sizes_of([x if b is None else b[0] for x, b in zip(arrays, at)])[0]
    return [z.unflatten(0, (n, items)) for z in call(whole, program)]


_run = operator("run", _fake, _gradients, _tangents, _batch)


def run(program: str, arrays: Sequence[torch.Tensor]) -> Sequence[torch.Tensor]:
    """The outputs of a program, with derivatives where they are asked for."""
    return _run(arrays, program)
