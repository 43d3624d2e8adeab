# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""weft::conv as an operator of torch: shapes, and derivatives to any order.

The convolution, its gradient and the gradient of that are kernels of weft_conv.  All further derivatives, and
those in forward mode, are of the program that a convolution stands for, by weft::run."""

from __future__ import annotations

from ctypes import byref
from functools import lru_cache
from typing import Dict, List, NamedTuple, Sequence

import torch

from . import _check, _lib, _torch
from ._function import Function, function
from ._lib import check, lib
from ._operand import Parts, sort
from ._torch import operator


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


class Chain(NamedTuple):
    """The program of a task: what it calls the arrays of the task, and its results."""

    f: Function
    names: Dict[str, str]
    results: List[str]


@lru_cache(maxsize=1024)
def _chain(text: str) -> Chain:
    t = task(text)
    f = function(f"o3 {t.spec}; edges=any")
    names = {"x": "X", "y": "Y", "w": "H" if info(t.spec).hidden else "Wt", "m": "M"}
    results = {"z": "Z"}
    if t.order > 0:
        first = t.along if t.order == 2 else t.wrt
        f = f.derive("grad", ["Z"], [names[o] for o in first])
        results = {o: f.mark("grad") + names[o] for o in first}
        names["z"] = f.mark("grad") + "Z"
    if t.order == 2:
        f = f.derive("grad", list(results.values()), [names[o] for o in t.wrt])
        names.update({"d" + o: f.mark("grad") + results[o] for o in t.along})
        results = {o: f.mark("grad") + names[o] for o in t.wrt}
    return Chain(f, names, [results[o] for o in t.wrt])


def _as_program(arrays, rest, batched: bool = False) -> tuple:
    """The program, what it takes, with the names in the task, and sizes.  batched: x has a dimension more."""
    rows, cols, nodes, text = rest
    c, given = _chain(text), task(text).name(arrays)
    shape = (nodes, given["x"].shape[int(batched)])
    start, index, order = sort(Parts("coo", rows, cols, None, shape), False)
    at = {c.names[o]: x for o, x in given.items()}
    at.update({"E.start": start, "E.j": index,
               "E.edge": torch.arange(rows.shape[0]) if order is None else order})
    sizes = {"nodes": nodes, "senders": shape[1], "edges": rows.shape[0]}
    task_name = {name: o for o, name in c.names.items()}
    return (c, [at[a.name] for a in c.f.inputs], [task_name.get(a.name) for a in c.f.inputs],
            [sizes.get(s, -1) for s in c.f.symbols])


def _tangents(arrays, rest, tangents):
    c, inputs, names, sizes = _as_program(arrays, rest)
    along = dict(zip(task(rest[-1]).name(arrays), tangents))
    got = _torch._tangents(inputs, (c.f.text, sizes), [along.get(o) for o in names])
    by_name = {a.name: z for a, z in zip(c.f.outputs, got)}
    return [by_name[name] for name in c.results]


def _third(arrays, rest, grads) -> Dict[str, torch.Tensor]:
    """The gradients of the second derivative, by all that it takes."""
    c, inputs, names, sizes = _as_program(arrays, rest)
    by_name = dict(zip(c.results, grads))
    got = _torch._gradients(inputs, (c.f.text, sizes), [by_name.get(a.name) for a in c.f.outputs],
                            [o is not None for o in names])
    return {o: g for o, g in zip(names, got) if o is not None and g is not None}


def _gradients(arrays, rest, grads, wanted):
    at, text = rest[:-1], rest[-1]
    t = task(text)
    given = t.name(arrays)
    some = {o: g for o, g in zip(t.wrt, grads) if g is not None}
    want = [name for name, w in zip(given, wanted) if w]
    out: Dict[str, torch.Tensor] = {}
    wrt = _sorted(want)
    if some and t.order == 0 and wrt:
        got = _conv([*arrays, some["z"]], *at, f"{text}\nback wrt={wrt}")
        out = dict(zip(wrt, got))
    elif some and t.order == 1 and wrt:
        along = _sorted(some)
        got = _conv([*arrays, *(some[o] for o in along)], *at,
                    f"{text}\nback along={along} wrt={wrt}")
        out = dict(zip(wrt, got))
    elif some and t.order == 2 and want:
        out = _third(arrays, rest, grads)
    return [out.get(name) if name in want else None for name in given]


def _batch(call, arrays, dims, n, *rest):
    """The program of the task with an axis of copies, in one run."""
    at = [x if d is None else x.movedim(d, 0) for x, d in zip(arrays, dims)]
    c, inputs, names, sizes = _as_program(at, rest, dims[0] is not None)
    has = {name for name, d in zip(task(rest[-1]).name(at), dims) if d is not None}
    run = _torch.run_raw if getattr(call, "is_raw", False) else _torch._run
    got = _torch._batch(run, inputs, [0 if name in has else None for name in names], n, c.f.text, sizes)
    by_name = {a.name: z for a, z in zip(c.f.outputs, got)}
    return [by_name[name] for name in c.results]


_conv = operator("conv", _fake, _gradients, _tangents, _batch)


def conv(spec: str, arrays: Sequence[torch.Tensor], rows: torch.Tensor, cols: torch.Tensor,
         nodes: int) -> torch.Tensor:
    """The convolution of x, y, w (and m) over the edges from `cols` to `rows`: (nodes, dim)."""
    if not isinstance(nodes, torch.SymInt):
        nodes = _check.size("num_rows", nodes)
    return _conv(arrays, rows, cols, nodes, spec)[0]
