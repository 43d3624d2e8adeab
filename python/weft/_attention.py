# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""Attention at the pairs of a mask, and over pages.  The operators are programs of the library; here shapes
are checked, and operands seen as blocks."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, Dict, NamedTuple, Optional, Tuple

import numpy as np

from . import _check, _lib, masks
from ._lib import check, lib
from ._program import Kernel, Program
from ._sparse import _numpy_type, _torch_type, bad, describe, is_torch

_KNOWN = "float16, bfloat16, float32 or float64"


class _Shape(NamedTuple):
    """Of a call: batches, heads of queries and of keys, queries, keys, their dim, that of values; elements;
    the result."""

    batch: int
    heads: int
    kv: int
    n: int
    m: int
    d: int
    dv: int
    type: str
    out: Tuple[int, ...]


def _operand(name: str, x: Any, like: Any = None) -> Tuple[Any, str]:
    if is_torch(x):
        if x.device.type != "cpu":
            raise bad(name, "a tensor on the CPU", f"one on {x.device}")
        if str(x.layout) != "torch.strided":
            raise bad(name, "a dense tensor", f"one of {x.layout}")
        type_name = _torch_type(x)
    else:
        x = _check.array(name, x)
        type_name = _numpy_type(x)
    if like is not None and is_torch(x) != is_torch(like):
        raise bad(name, "a tensor, as q is" if is_torch(like) else "an array, as q is", describe(x))
    if type_name is None:
        raise bad(name, f"elements of {_KNOWN}", x.dtype)
    if x.ndim not in (3, 4):
        raise bad(name, "[batch, heads, tokens, dim] or [heads, tokens, dim]",
                  f"{x.ndim} dimensions, {tuple(x.shape)}")
    return x, type_name


def _shape(q: Any, k: Any, v: Any, enable_gqa: bool) -> Tuple[Any, Any, Any, _Shape]:
    q, type_name = _operand("q", q)
    k, k_type = _operand("k", k, q)
    v, v_type = _operand("v", v, q)
    for name, x, t in (("k", k, k_type), ("v", v, v_type)):
        if t != type_name:
            raise bad(name, f"{type_name}, as q is", t)
        if x.ndim != q.ndim:
            raise bad(name, f"{q.ndim} dimensions, as q has", x.ndim)
    batch = tuple(q.shape[:-3])
    (heads, n, d), (kv, m) = q.shape[-3:], k.shape[-3:-1]
    if tuple(k.shape) != (*batch, kv, m, d):
        raise bad("k", f"the batch and dim of q, {(*batch, kv, m, d)}", tuple(k.shape))
    dv = v.shape[-1]
    if tuple(v.shape[:-1]) != tuple(k.shape[:-1]):
        raise bad("v", f"the heads and tokens of k, {(*k.shape[:-1], dv)}", tuple(v.shape))
    if kv != heads and not (enable_gqa and kv > 0 and heads % kv == 0):
        remedy = f"a number of heads that divides the {heads} of q" if enable_gqa else \
            f"the {heads} heads of q, or enable_gqa=True"
        raise bad("k", remedy, f"{kv} heads")
    for name, dim in (("q", d), ("v", dv)):
        if dim == 0:
            raise bad(name, "a dim of 1 or more", 0)
    return q, k, v, _Shape(math.prod(batch), heads, kv, n, m, d, dv, type_name, (*batch, heads, n, dv))


def _lengths(lengths: Any, s: _Shape) -> Tuple[Optional[np.ndarray], Optional[np.ndarray]]:
    """Queries and keys of each batch."""
    if lengths is None:
        return None, None
    pair = lengths if isinstance(lengths, tuple) else (lengths, lengths)
    if len(pair) != 2:
        raise bad("lengths", "tokens of each batch, or a pair, of queries and of keys", f"{len(pair)} of them")
    made = []
    for x, most in zip(pair, (s.n, s.m)):
        x = np.asarray(x.detach().numpy() if is_torch(x) else x)
        if x.shape != (s.batch,) or x.dtype.kind not in "iu":
            raise bad("lengths", f"{s.batch} integers, one for each batch", describe(x))
        if x.size and (x.min() < 0 or x.max() > most):
            raise bad("lengths", f"0 to {most} tokens", int(x.max()) if x.max() > most else int(x.min()))
        made.append(x.astype(np.int64))
    return made[0], made[1]


def _hashes(seed: int, shape: Tuple[int, ...]) -> np.ndarray:
    made = np.empty(shape, np.int64)
    with _lib.lock:
        check(lib.weft_mask_random(_lib.context(), seed, made.size, made.ctypes.data))
    return made


def _dropout(dropout: Any, seed: Any, s: _Shape, plan: masks.Plan) -> Dict[str, Any]:
    p, number = _check.real("dropout", dropout), _check.integer("seed", seed, 0)
    if not 0 <= p < 1:
        raise bad("dropout", "a probability from 0 to less than 1", p)
    if p == 0:
        return {}
    rows, cols = s.batch * s.heads * plan.tiles, (s.batch * s.kv, plan.blocks, masks.BLOCK)
    return {"HQ": _hashes(2 * number, (rows, masks.tile(s.type))), "HK": _hashes(2 * number + 1, cols),
            "limit": np.array(round((1 - p) * (1 << 31)), np.int64),
            "keep": np.array(1 / (1 - p), masks.dtype(s.type))}


def _spec(s: _Shape, plan: masks.Plan, ragged: bool, dropout: bool) -> str:
    words = [f"attention:{s.type}:bi={masks.tile(s.type)}:bj={masks.BLOCK}:w={plan.w}:d={s.d}:dv={s.dv}"]
    words += ["ragged"] if ragged else []
    words += ["split"] if plan.split else []
    words += [f"grouped:g={s.heads // s.kv}"] if s.kv != s.heads else []
    words += ["dropout"] if dropout else []
    return ":".join(words)


@lru_cache(maxsize=64)
def _kernel(spec: str) -> Kernel:
    return Program.op(spec).compile()


@lru_cache(maxsize=64)
def _operator(spec: str) -> Any:
    from .torch import operator

    return operator(spec)


def _tensors(arrays: Dict[str, Any]) -> Dict[str, Any]:
    import torch

    return {k: torch.from_numpy(np.ascontiguousarray(a)) if a.ndim else torch.tensor(a.item(),
            dtype=getattr(torch, a.dtype.name)) for k, a in arrays.items()}


def _run(spec: str, q: Any, arrays: Dict[str, Any]) -> Any:
    """Of what `arrays` holds for q, k and v, and the rest as NumPy arrays."""
    if not is_torch(q):
        return _kernel(spec)(arrays)
    others = {k: x for k, x in arrays.items() if isinstance(x, np.ndarray)}
    return _operator(spec)({**arrays, **_tensors(others)})


def attention(q: Any, k: Any, v: Any, mask: Any = None, *, scale: Optional[float] = None,
              dropout: float = 0.0, seed: int = 0, lengths: Any = None, enable_gqa: bool = False) -> Any:
    """softmax(q k' scale) v over the pairs of a mask: tensors or NumPy arrays [batch, heads, tokens, dim] or
    [heads, tokens, dim], as for torch.nn.functional.scaled_dot_product_attention.

    mask: of weft.masks, a weft.Graph, a sparse matrix, a dense one of bool; None: all pairs.  A query without
    any key gives zeros.
    scale: 1 / sqrt(dim) without it.
    dropout: the probability with which a weight is left out, by `seed`: one seed, one choice.
    lengths: how many tokens each batch has, or a pair, of queries and of keys; what is behind them is not
    looked at, and results there are zeros.
    enable_gqa: k and v may have fewer heads, which divide those of q."""
    q, k, v, s = _shape(q, k, v, enable_gqa)
    mask = masks.full(s.n, s.m) if mask is None else masks.of(mask)
    if mask.shape != (s.n, s.m):
        raise bad("mask", f"{s.n} x {s.m}, as q and k have tokens", f"{mask.shape[0]} x {mask.shape[1]}")
    factor = 1 / math.sqrt(s.d) if scale is None else _check.real("scale", scale)
    lq, lk = _lengths(lengths, s)
    copies, bi = s.batch * s.heads, masks.tile(s.type)
    if copies == 0 or s.n == 0:
        return q.new_zeros(s.out) if is_torch(q) else np.zeros(s.out, q.dtype)
    ragged = lq is not None or s.n % bi != 0 or s.m % masks.BLOCK != 0
    plan = mask.plan(copies, s.type, *(None if x is None else np.repeat(x, s.heads) for x in (lq, lk)))
    arrays: Dict[str, Any] = {**plan.arrays, **_dropout(dropout, seed, s, plan),
                              "C": np.array(factor, masks.dtype(s.type))}
    rows, cols = (s.batch * s.heads, s.n), (s.batch * s.kv, s.m)
    if ragged:
        full = (np.full(s.batch, s.n), np.full(s.batch, s.m))
        arrays["lq"] = np.repeat(full[0] if lq is None else lq, s.heads)
        arrays["lk"] = np.repeat(full[1] if lk is None else lk, s.kv)
    else:
        rows, cols = (s.batch * s.heads * plan.tiles, bi), (s.batch * s.kv, plan.blocks, masks.BLOCK)
    arrays.update(heads=copies, Q=q.reshape(*rows, s.d), Kk=k.reshape(*cols, s.d), V=v.reshape(*cols, s.dv))
    return _run(_spec(s, plan, ragged, "HQ" in arrays), q, arrays).reshape(s.out)
