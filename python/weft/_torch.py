# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""Operators of torch: how they are loaded from libweft_torch, which has their kernels, and what they
have in common; then weft::run, which runs a program of the library, with its shapes, its derivatives
to any order and its rule for vmap.  Of all of them the derivatives are programs too, made by the library."""

from __future__ import annotations

import ctypes
from ctypes import c_char_p
from functools import lru_cache
from pathlib import Path
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

import torch
from torch._library.autograd import Info, make_autograd_impl
from torch._library.utils import fill_defaults

from ._function import DTYPES as _DTYPES  # noqa: F401
from ._function import Array, Function, function
from ._lib import lib
from ._torch_ad import Rules, differentiable, has_tangent, is_traced, keep_arrays, save, saved


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
             batch: Callable, keep: Callable = keep_arrays) -> Callable:
    """Makes weft::NAME differentiable, and returns how to call it: call(arrays, *rest).

    fake(arrays, *rest) gives the shapes; the others are rules of _torch_ad."""
    raw, public = getattr(torch.ops.weft, name + "_raw").default, getattr(torch.ops.weft, name).default
    rules = Rules(name, raw, gradients, tangents, batch, keep)
    plain = differentiable(rules)

    def call(arrays, *rest):
        return public(list(arrays), *rest) if is_traced() else plain(arrays, *rest)

    def call_raw(arrays, *rest):
        return raw(list(arrays), *rest)

    call_raw.is_raw = True

    def vmap(info, in_dims, arrays, *rest):  # inside of it nothing is recorded any more
        out = batch(call_raw, arrays, in_dims[0], info.batch_size, *rest)
        return out, [0 for _ in out]

    for each in (name, name + "_raw"):
        torch.library.register_fake(f"weft::{each}", fake)
        torch.library.register_vmap(f"weft::{each}", vmap)

    def back(ctx, grads):
        none = [[] if x == [] else None for x in ctx.rest]  # torch takes an empty list for one of tensors
        return (rules.gradients(*saved(ctx), grads, ctx.needs_input_grad[0]), *none)

    def setup(ctx, inputs, output):
        save(ctx, rules, inputs[1:], inputs[0], output)

    recorded = make_autograd_impl(public, Info(back, setup))  # as torch.library.register_autograd does

    def record(keys, arrays, *rest):
        """What torch.library knows of derivatives are gradients only: it would drop tangents."""
        if any([has_tangent(a) for a in arrays]):
            if torch._C._are_functorch_transforms_active():
                raise NotImplementedError(f"torch.ops.weft.{name} in forward mode inside of torch.func: "
                                          "call the functions and modules of weft instead")
            return list(plain(arrays, *rest))
        return recorded(keys, *fill_defaults(public._schema, (arrays, *rest), {})[0])

    _library.impl(name, record, "Autograd", with_keyset=True)
    return call


def _fake(arrays, program, sizes=()):
    f = function(program)
    at = f.solve(arrays, sizes)
    return [arrays[0].new_empty(a.shape(at), dtype=a.dtype) for a in f.outputs]


class Derivative(NamedTuple):
    """A program of gradients or tangents: which of the given arrays it takes, and which of its results
    each array gets; -1: none."""

    of: Function
    text: str
    take: List[int]
    give: List[int]

    def run(self, f: Function, arrays, sizes, added) -> Sequence[torch.Tensor]:
        """added: gradients or tangents, behind what f takes."""
        given = (*arrays, *added)
        rest = []
        if self.of.missing:
            at = f.solve(arrays, sizes)
            rest = [at.get(s, -1) for s in self.of.symbols]
        return _run([given[k] for k in self.take], self.text, rest)


def _match(f: Function, kind: str, d: Function, added: Sequence[Array],
           results: Sequence[Array]) -> Optional[Derivative]:
    """added: the arrays whose gradients or tangents are given behind what f keeps; results: the arrays
    whose gradients or tangents are asked for.  None: nothing depends on anything."""
    if not d.inputs:
        return None
    mark = d.mark(kind)
    given = [a.name for a in f.kept] + [mark + a.name for a in added]
    out = {a.name: k for k, a in enumerate(d.outputs)}
    return Derivative(d, d.text, [given.index(a.name) for a in d.inputs],
                      [out.get(mark + a.name, -1) for a in results])


@lru_cache(maxsize=1024)
def _gradient(text: str, there: Tuple[bool, ...], wanted: Tuple[bool, ...]) -> Optional[Derivative]:
    """By the inputs that are wanted, where these results have gradients; None: it is 0."""
    f = function(text)
    of = [a.name for a, t in zip(f.outputs, there) if t and a.dtype.is_floating_point]
    wrt = [a.name for a, w in zip(f.inputs, wanted) if w and a.dtype.is_floating_point]
    return _match(f, "grad", f.derive("grad", of, wrt), f.outputs, f.inputs) if of and wrt else None


def _gradients(kept, rest, grads, wanted):
    text, *sizes = rest
    f = function(text)
    d = _gradient(text, tuple([g is not None for g in grads]), tuple(wanted))
    if d is None:
        return [None] * len(f.inputs)
    got = d.run(f, kept, sizes[0] if sizes else (), grads)
    return [got[k] if k >= 0 and w else None for k, w in zip(d.give, wanted)]


@lru_cache(maxsize=1024)
def _tangent(text: str, there: Tuple[bool, ...]) -> Optional[Derivative]:
    """Where these inputs have tangents; None: they are 0."""
    f = function(text)
    of = [a.name for a in f.outputs if a.dtype.is_floating_point]
    wrt = [a.name for a, t in zip(f.inputs, there) if t and a.dtype.is_floating_point]
    return _match(f, "jvp", f.derive("jvp", of, wrt), f.inputs, f.outputs) if of and wrt else None


def _tangents(kept, rest, tangents):
    text, *sizes = rest
    sizes = sizes[0] if sizes else ()
    f, d = function(text), _tangent(text, tuple([t is not None for t in tangents]))
    got = d.run(f, kept, sizes, tangents) if d is not None else []
    give = d.give if d is not None else [-1] * len(f.outputs)

    def zero(a):  # integers have no tangent
        return kept[0].new_zeros(a.shape(f.solve(kept, sizes)), dtype=a.dtype) \
            if a.dtype.is_floating_point else None

    return [got[k] if k >= 0 else zero(a) for k, a in zip(give, f.outputs)]


def _copies(call, f, arrays, at, n, sizes):
    """The program with a batch axis; results that depend on no operand with copies are the same for all."""
    names = [a.name for a, b in zip(f.inputs, at) if b is not None]
    for a in f.inputs:
        if a.structure and a.name in names:
            raise NotImplementedError(f"weft::run: vmap over {a.name}, which is structure; call it for each "
                                      "structure, or join them to one")
    g = f.batch(names)
    known = dict(zip(f.symbols, sizes))
    results = call([x if b is None else b for x, b in zip(arrays, at)], g.text,
                   [known.get(s, -1) for s in g.symbols] if sizes else [])
    return [z if len(b.extents) > len(a.extents) else z.unsqueeze(0).expand(n, *z.shape)
            for z, a, b in zip(results, f.outputs, g.outputs)]


def _batch(call, arrays, dims, n, program, sizes=()):
    """A batch of items is more items; other programs get an axis of copies."""
    f = function(program)
    at = [None if d is None else x.movedim(d, 0) for x, d in zip(arrays, dims)]
    if len(f.symbols) != 1 or not all(a.has_items or b is None for a, b in zip(f.inputs, at)) or not all(
            a.has_items for a in f.outputs):
        return _copies(call, f, arrays, at, n, sizes)
    whole = [x if not a.has_items else
             (x.unsqueeze(0).expand(n, *x.shape) if b is None else b).flatten(0, 1)
             for a, x, b in zip(f.inputs, arrays, at)]
    items = f.solve([x if b is None else b[0] for x, b in zip(arrays, at)], sizes)[f.symbols[0]]
    return [z.unflatten(0, (n, items)) for z in call(whole, program, sizes)]


def _keep(arrays, results, program, sizes=()):
    """Inputs, and the structure that a program has built."""
    f = function(program)
    return [*arrays, *[z for z, a in zip(results, f.outputs) if a.structure]]


def run_raw(arrays: Sequence[torch.Tensor], program: str, sizes: Sequence[int] = ()) -> Sequence[torch.Tensor]:
    """The outputs of a program, where nothing is recorded."""
    return torch.ops.weft.run_raw.default(list(arrays), program, sizes)


_operator = operator("run", _fake, _gradients, _tangents, _batch, _keep)


def _run(arrays, program, sizes=()):
    if not sizes and is_traced():
        sizes = [-1]  # as good as none; AOTInductor passes an empty list of integers as None
    return _operator(arrays, program, sizes)


def run(program: str, arrays: Sequence[torch.Tensor], sizes: Sequence[int] = ()) -> Sequence[torch.Tensor]:
    """The outputs of a program, with derivatives where they are asked for."""
    return _run(arrays, program, sizes)
