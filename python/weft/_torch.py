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

from . import _lib
from ._lib import check, lib
from ._program import Program

SMALL = 4096  # elements of all operands
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


def is_traced() -> bool:
    return torch.compiler.is_compiling() or torch._C._len_torch_dispatch_stack() > 0


def operator(name: str, fake: Callable, gradients: Callable, batch: Callable) -> Callable:
    """Makes weft::NAME differentiable, and returns how to call it: call(arrays, *rest).

    fake(arrays, *rest) gives the shapes; gradients(arrays, rest, grads, wanted) those of the arrays
    that are wanted, given those of results (None: 0), by calls of operators again, and so to any
    order; batch(call, arrays, dims, n, *rest) runs a batch, by call, of arrays with such a dimension."""
    raw, public = getattr(torch.ops.weft, name + "_raw").default, getattr(torch.ops.weft, name)

    def split(ctx, inputs, arrays):
        """Keeps what backward needs: tensors as torch wants it, the rest as it is."""
        tensors = [x for x in inputs if isinstance(x, torch.Tensor)]
        ctx.rest = [None if isinstance(x, torch.Tensor) else x for x in inputs]
        ctx.narrays = len(arrays)
        ctx.save_for_backward(*arrays, *tensors)
        ctx.set_materialize_grads(False)

    def back(ctx, grads, wanted):
        saved = ctx.saved_tensors
        tensors = iter(saved[ctx.narrays:])
        rest = [next(tensors) if x is None else x for x in ctx.rest]
        return gradients(saved[:ctx.narrays], rest, grads, wanted)

    class Quick(torch.autograd.Function):
        """The quick way to a derivative, outside of compiled code."""

        @staticmethod
        def forward(ctx, n, *inputs):
            ctx.n = n
            split(ctx, inputs[:n], inputs[n:])
            return tuple(raw(list(inputs[n:]), *inputs[:n]))

        @staticmethod
        def backward(ctx, *grads):
            wanted = ctx.needs_input_grad[ctx.n + 1:]
            # A single one is asked for, or this would not run; where all are small, to ask takes longer.
            if wanted.count(True) > 1 and sum([a.numel() for a in ctx.saved_tensors]) > SMALL:
                nodes = ctx.next_functions[-ctx.narrays:]  # which has tensors only
                wanted = [w and asked(node) for w, (node, _) in zip(wanted, nodes)]
            return (*[None] * (ctx.n + 1), *back(ctx, grads, wanted))

    class Transformed(Quick):
        """The same for transforms of functions, which ask for more and take longer."""

        @staticmethod
        def forward(n, *inputs):
            return tuple(raw(list(inputs[n:]), *inputs[:n]))

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.n, *inputs = inputs
            split(ctx, inputs[:ctx.n], inputs[ctx.n:])

        @staticmethod
        def vmap(info, in_dims, n, *inputs):
            if any(d is not None for d in in_dims[1:n + 1]):
                raise NotImplementedError(f"weft::{name}: vmap over indices of edges")
            out = batch(call, inputs[n:], in_dims[n + 1:], info.batch_size, *inputs[:n])
            return tuple(out), tuple(0 for _ in out)

    def call(arrays, *rest):
        if is_traced():
            return public(list(arrays), *rest)
        if torch._C._are_functorch_transforms_active():
            return Transformed.apply(len(rest), *rest, *arrays)
        if torch.is_grad_enabled() and any([a.requires_grad for a in arrays]):
            return Quick.apply(len(rest), *rest, *arrays)
        return raw(list(arrays), *rest)

    def vmap(info, in_dims, arrays, *rest):  # inside of it nothing is recorded any more
        out = batch(lambda arrays, *rest: raw(list(arrays), *rest), arrays, in_dims[0],
                    info.batch_size, *rest)
        return out, [0 for _ in out]

    for each in (name, name + "_raw"):
        torch.library.register_fake(f"weft::{each}", fake)
        torch.library.register_vmap(f"weft::{each}", vmap)
    torch.library.register_autograd(
        f"weft::{name}", lambda ctx, grads: (back(ctx, grads, ctx.needs_input_grad[0]),
                                             *[None] * len(ctx.rest)),
        setup_context=lambda ctx, inputs, output: split(ctx, inputs[1:], inputs[0]))
    return call


def asked(node: Any) -> bool:
    """Is a gradient that could be given asked for in this backward?  In torch.autograd.grad it is not
    when no path goes from there to the inputs."""
    try:
        return torch._C._will_engine_execute_node(node)
    except RuntimeError:  # of a leaf that is an input of autograd.grad, and outside of the engine
        return True


def one_by_one(call: Callable, arrays, dims, n: int, *rest) -> List[torch.Tensor]:
    """The runs of a batch, one after the other."""
    each = [call([x if d is None else x.select(d, i) for x, d in zip(arrays, dims)], *rest)
            for i in range(n)]
    return [torch.stack(z) for z in zip(*each)]


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
        self.order = len(lines) - 1
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

    def derive(self, of: Tuple[str, ...], wrt: Tuple[str, ...]) -> Optional["Function"]:
        """The gradient by these inputs; None: it is 0."""
        out = function(f"{self.text}\ngrad of={','.join(of)} wrt={','.join(wrt)}")
        return out if out.is_runnable else None

    def cotangent(self, name: str) -> str:
        """What the gradient calls that of an array."""
        return f"d{self.order + 1 if self.order else ''}_{name}"


@lru_cache(maxsize=1024)
def function(text: str) -> Function:
    return Function(text)


def _open(lines: List[str]) -> Program:
    kind, _, spec = lines[0].partition(" ")
    program = {"o3": Program.o3, "op": Program.op}[kind](spec)
    for line in lines[1:]:
        of, _, wrt = line[len("grad of="):].partition(" wrt=")
        program = program.grad(of=of.split(","), wrt=wrt.split(","))
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
    """A program of gradients: which of the arrays and then of the gradients of results it takes, and
    which of its results each array gets; -1: none."""

    text: str
    take: List[int]
    give: List[int]


@lru_cache(maxsize=1024)
def _derivative(text: str, there: Tuple[bool, ...], wanted: Tuple[bool, ...]) -> Optional[Derivative]:
    """By the inputs that are wanted, where these results have gradients; None: it is 0."""
    f = function(text)
    of = [a.name for a, t in zip(f.outputs, there) if t]
    wrt = [a.name for a, w in zip(f.inputs, wanted) if w and a.dtype.is_floating_point]
    d = f.derive(tuple(of), tuple(wrt)) if of and wrt else None
    if d is None:
        return None
    given = [a.name for a in f.inputs] + [f.cotangent(a.name) for a in f.outputs]
    out = [a.name for a in d.outputs]
    give = [f.cotangent(a.name) if a.name in wrt else "" for a in f.inputs]
    return Derivative(d.text, [given.index(a.name) for a in d.inputs],
                      [out.index(name) if name in out else -1 for name in give])


def _gradients(arrays, rest, grads, wanted):
    d = _derivative(rest[0], tuple([g is not None for g in grads]), tuple(wanted))
    if d is None:
        return [None] * len(arrays)
    given = (*arrays, *grads)
    got = _run([given[k] for k in d.take], d.text)
    return [None if k < 0 else got[k] for k in d.give]


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


_run = operator("run", _fake, _gradients, _batch)


def run(program: str, arrays: Sequence[torch.Tensor]) -> Sequence[torch.Tensor]:
    """The outputs of a program, with derivatives where they are asked for."""
    return _run(arrays, program)
