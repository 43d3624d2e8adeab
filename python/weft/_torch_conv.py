# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""weft::conv as an operator of torch: shapes, and derivatives to any order.

A convolution is linear in each of its operands, so there is one form L(x, y, w, m, z) in all of it: the
convolution is the gradient of L by z, and the first derivative gives those by x, y, w and m.  The second
is a kernel of its own; all further ones are sums of first ones in which operands are replaced."""

from __future__ import annotations

from ctypes import byref
from functools import lru_cache
from typing import Dict, Sequence

import torch

from . import _check, _lib
from ._lib import check, lib
from ._torch import operator
from ._torch_ad import add, one_by_one


@lru_cache(maxsize=1024)
def info(spec: str) -> _lib.ConvInfo:
    """Of a problem, weft_conv_info."""
    out = _lib.ConvInfo()
    with _lib.lock:
        conv = _lib.new(lib.weft_conv_new, _lib.context(), _check.text("problem", spec))
        try:
            check(lib.weft_conv_get(conv, byref(out)))
        finally:
            lib.weft_conv_free(conv)
    return out


class Task:
    """The text of a task (see conv.c): what it takes and what it gives."""

    def __init__(self, text: str):
        self.spec, *lines = text.split("\n")
        of = info(self.spec)
        self.order, self.width = len(lines), of.z
        self.operands = "xy" + "w" * (of.w > 0) + "m" * (of.hidden > 0)
        words = dict(word.split("=") for word in lines[-1].split()[1:]) if lines else {}
        self.along = words.get("along", "")
        self.wrt = words.get("wrt", "z")

    def name(self, arrays: Sequence[torch.Tensor]) -> Dict[str, torch.Tensor]:
        """x, y, ..., then z for the gradient by it, then dx, dy, ... for those along which it goes."""
        names = [*self.operands, *"z"[:self.order], *("d" + o for o in self.along)]
        return dict(zip(names, arrays))


@lru_cache(maxsize=1024)
def task(text: str) -> Task:
    return Task(text)


def _fake(arrays, rows, cols, nodes, text):
    t = task(text)
    at = t.name(arrays)
    shape = {o: at[o].shape for o in t.operands}
    shape["z"] = (nodes, t.width)
    return [at["x" if o == "z" else o].new_empty(shape[o]) for o in t.wrt]


def _sorted(letters) -> str:
    return "".join(o for o in "xywmz" if o in letters)


def _form(spec: str, at: Dict[str, torch.Tensor], wrt: str, rest) -> Dict[str, torch.Tensor]:
    """The gradients of L by these, at these operands and this z."""
    operands = [at[o] for o in at if o != "z"]
    out = {}
    if "z" in wrt:
        out["z"] = _conv(operands, *rest, spec)[0]
    inner = wrt.replace("z", "")
    if inner:
        got = _conv([*operands, at["z"]], *rest, f"{spec}\nback wrt={inner}")
        out.update(zip(inner, got))
    return out


def _third(t: Task, given, grads: Dict[str, torch.Tensor], rest) -> Dict[str, torch.Tensor]:
    """The gradient of the second derivative.  That is the gradient of the sum of L with one operand a
    replaced by da; along the cotangents, another one, b, is replaced too."""
    at = {o: given[o] for o in [*t.operands, "z"]}
    out: Dict[str, torch.Tensor] = {}
    for a in t.along:
        for b, cotangent in grads.items():
            if a == b:
                continue
            point = {**at, a: given["d" + a], b: cotangent}
            for o, g in _form(t.spec, point, _sorted(set(at) - {b}), rest).items():
                name = "d" + o if o == a else o
                out[name] = add(out.get(name), g)
    return out


def _along(t: Task, at: Dict[str, torch.Tensor], along: Dict[str, torch.Tensor], wrt: str,
           rest) -> Dict[str, torch.Tensor]:
    """The change of the gradients of L by these when operands change along these tangents: each operand
    is replaced in its turn, as L is linear in it.  L does not change its gradient by the operand itself."""
    out: Dict[str, torch.Tensor] = {}
    for a, tangent in along.items():
        others = wrt.replace(a, "")
        for o, g in (_form(t.spec, {**at, a: tangent}, others, rest) if others else {}).items():
            out[o] = add(out.get(o), g)
    return out


def _tangents(arrays, rest, tangents):
    """A first derivative is one of L, as the convolution is; the second is a sum of those in which an
    operand a is replaced by da, and changes with both."""
    *rest, text = rest
    t = task(text)
    given = t.name(arrays)
    along = {name: x for name, x in zip(given, tangents) if x is not None}
    points = [(given, {o: x for o, x in along.items() if len(o) == 1}, "")]
    if t.order == 2:
        points = [({**given, a: given["d" + a]},
                   {**{o: x for o, x in along.items() if len(o) == 1 and o != a},
                    **({a: along["d" + a]} if "d" + a in along else {})}, a) for a in t.along]
    out: Dict[str, torch.Tensor] = {}
    for at, replaced, without in points:
        at = {o: at[o] for o in [*t.operands, *"z"[:t.order]]}
        for o, x in _along(t, at, replaced, t.wrt.replace(without, "") if without else t.wrt,
                           rest).items():
            out[o] = add(out.get(o), x)
    return [out[o] if o in out else torch.zeros_like(z)
            for o, z in zip(t.wrt, _fake(arrays, *rest, text))]


def _gradients(arrays, rest, grads, wanted):
    *rest, text = rest
    t = task(text)
    given = t.name(arrays)
    some = {o: g for o, g in zip(t.wrt, grads) if g is not None}
    want = [name for name, w in zip(given, wanted) if w]
    out: Dict[str, torch.Tensor] = {}
    wrt = _sorted(want)
    if some and t.order == 0 and wrt:
        got = _conv([*arrays, some["z"]], *rest, f"{text}\nback wrt={wrt}")
        out = dict(zip(wrt, got))
    elif some and t.order == 1 and wrt:
        along = _sorted(some)
        got = _conv([*arrays, *(some[o] for o in along)], *rest,
                    f"{text}\nback along={along} wrt={wrt}")
        out = dict(zip(wrt, got))
    elif some and t.order == 2 and want:
        out = _third(t, given, some, rest)
    return [out.get(name) if name in want else None for name in given]


_conv = operator("conv", _fake, _gradients, _tangents, one_by_one)


def conv(spec: str, arrays: Sequence[torch.Tensor], rows: torch.Tensor, cols: torch.Tensor,
         nodes: int) -> torch.Tensor:
    """The convolution of x, y, w (and m) over the edges from `cols` to `rows`: (nodes, dim)."""
    if not isinstance(nodes, torch.SymInt):
        nodes = _check.size("num_rows", nodes)
    return _conv(arrays, rows, cols, nodes, spec)[0]
