# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""Attention at the pairs of a mask, and over pages.  The operators are programs of the library; here shapes
are checked, and operands seen as blocks."""

from __future__ import annotations

import math
from typing import Any, Dict, NamedTuple, Optional, Tuple

import numpy as np

from . import _check, _lib, masks
from ._lib import check, lib
from ._program import kernel_of
from ._sparse import array_of, bad, cast, describe, is_torch, type_of


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
    else:
        x = _check.array(name, x)
    if like is not None and is_torch(x) != is_torch(like):
        raise bad(name, "a tensor, as q is" if is_torch(like) else "an array, as q is", describe(x))
    kind = type_of(name, x)
    if x.ndim not in (3, 4):
        raise bad(name, "[batch, heads, tokens, dim] or [heads, tokens, dim]",
                  f"{x.ndim} dimensions, {tuple(x.shape)}")
    return x, kind


def _shape(q: Any, k: Any, v: Any, enable_gqa: bool) -> Tuple[Any, Any, Any, _Shape]:
    q, k, v = cast(q, k, v)
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


def lengths_of(lengths: Any, s: _Shape) -> Tuple[Optional[np.ndarray], Optional[np.ndarray]]:
    """Queries and keys of each batch."""
    if lengths is None:
        return None, None
    pair = lengths if isinstance(lengths, tuple) else (lengths, lengths)
    if len(pair) != 2:
        raise bad("lengths", "tokens of each batch, or a pair, of queries and of keys", f"{len(pair)} of them")
    made = []
    for x, most in zip(pair, (s.n, s.m)):
        x = array_of("lengths", x)
        if x.shape != (s.batch,) or x.dtype.kind not in "iu":
            raise bad("lengths", f"{s.batch} integers, one for each batch", describe(x))
        if x.size and (x.min() < 0 or x.max() > most):
            raise bad("lengths", f"0 to {most} tokens", int(x.max()) if x.max() > most else int(x.min()))
        made.append(x.astype(np.int64))
    return made[0], made[1]


def hashes(seed: int, shape: Tuple[int, ...]) -> np.ndarray:
    made = np.empty(shape, np.int64)
    with _lib.lock:
        check(lib.weft_mask_random(_lib.context(), seed, made.size, made.ctypes.data))
    return made


def _probability(dropout: Any) -> float:
    p = _check.real("dropout", dropout)
    if not 0 <= p < 1:
        raise bad("dropout", "a probability from 0 to less than 1", p)
    return p


def _dropout(p: float, seed: Any, s: _Shape, plan: masks.Plan) -> Dict[str, Any]:
    number = _check.integer("seed", seed, 0)
    if p == 0:
        return {}
    rows, cols = s.batch * s.heads * plan.tiles, (s.batch * s.kv, plan.blocks, masks.BLOCK)
    return {"HQ": hashes(2 * number, (rows, masks.TILE)), "HK": hashes(2 * number + 1, cols),
            "limit": np.array(round((1 - p) * (1 << 31)), np.int64),
            "keep": np.array(1 / (1 - p), masks.dtype(s.type))}


def spec_of(s: _Shape, plan: Any, ragged: bool, dropout: bool) -> str:
    words = [f"attention:{s.type}:w={plan.w}:d={s.d}:dv={s.dv}"]
    words += ["ragged"] if ragged else []
    words += ["split"] if plan.split else []
    words += [f"gqa:g={s.heads // s.kv}"] if s.kv != s.heads else []
    words += ["dropout"] if dropout else []
    return ":".join(words)


class Form(NamedTuple):
    """How the program has operands: whether in tokens instead of whole blocks, shapes of q, k and v, and sizes."""

    ragged: bool
    q: Tuple[int, ...]
    k: Tuple[int, ...]
    v: Tuple[int, ...]
    sizes: Dict[str, int]


def form_of(s: _Shape, plan: Any, lengths: bool) -> Form:
    copies, keys = s.batch * s.heads, s.batch * s.kv
    if lengths or s.n % masks.TILE != 0 or s.m % masks.BLOCK != 0:
        cols: Tuple[int, ...] = (keys, s.m)
        return Form(True, (copies, s.n, s.d), (*cols, s.d), (*cols, s.dv), {"heads": copies, "n": s.n, "m": s.m})
    cols = (keys, plan.blocks, masks.BLOCK)
    return Form(False, (copies * plan.tiles, masks.TILE, s.d), (*cols, s.d), (*cols, s.dv),
                {"heads": copies, "nq": plan.tiles, "nk": plan.blocks})


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
    mask = None if mask is None else masks.of(mask)
    if mask is not None and mask.shape != (s.n, s.m):
        raise bad("mask", f"{s.n} x {s.m}, as q and k have tokens", f"{mask.shape[0]} x {mask.shape[1]}")
    factor = 1 / math.sqrt(s.d) if scale is None else _check.real("scale", scale)
    p = _probability(dropout)
    if s.batch * s.heads == 0 or s.n == 0:
        return q.new_zeros(s.out) if is_torch(q) else np.zeros(s.out, q.dtype)
    if is_torch(q):
        from . import _torch_attention

        seed = seed if is_torch(seed) else _check.integer("seed", seed, 0)
        return _torch_attention.attention(q, k, v, s, mask, factor, p, seed, lengths)
    return _on_arrays(q, k, v, s, masks.full(s.n, s.m) if mask is None else mask, factor, p, seed, lengths)


def _on_arrays(q: Any, k: Any, v: Any, s: _Shape, mask: masks.Mask, factor: float, p: float, seed: Any,
               lengths: Any) -> np.ndarray:
    lq, lk = lengths_of(lengths, s)
    plan = mask.plan(s.batch * s.heads, s.type, *(None if x is None else np.repeat(x, s.heads) for x in (lq, lk)))
    form = form_of(s, plan, lq is not None)
    arrays = {**_dropout(p, seed, s, plan), "C": np.array(factor, masks.dtype(s.type)), **form.sizes,
              "np": plan.arrays["X"].shape[0]}
    if form.ragged:
        full = (np.full(s.batch, s.n), np.full(s.batch, s.m))
        arrays["lq"] = np.repeat(full[0] if lq is None else lq, s.heads)
        arrays["lk"] = np.repeat(full[1] if lk is None else lk, s.kv)
    if plan.split:
        arrays["pieces"] = plan.arrays["P.row"].shape[0]
    arrays.update(Q=q.reshape(form.q), Kk=k.reshape(form.k), V=v.reshape(form.v), **plan.arrays)
    return kernel_of(spec_of(s, plan, form.ragged, p > 0), mask.number)(arrays).reshape(s.out)


def pages(table: Any, lengths: Any, batch: int, npages: int, page: int) -> Dict[str, np.ndarray]:
    """The pages of each sequence up to its length, and the tokens of each page, as rows."""
    table, lengths = array_of("block_table", table), array_of("lengths", lengths)
    if table.ndim != 2 or len(table) != batch or table.dtype.kind not in "iu":
        raise bad("block_table", f"integers [{batch}, pages], a row for each sequence", describe(table))
    if lengths.shape != (batch,) or lengths.dtype.kind not in "iu":
        raise bad("lengths", f"{batch} integers, one for each sequence", describe(lengths))
    table, lengths = (np.ascontiguousarray(x, np.int64) for x in (table, lengths))
    start, where = np.empty(batch + 1, np.int64), np.empty(table.size, np.int64)
    tokens = np.empty(table.size + 1, np.int64)
    with _lib.lock:
        check(lib.weft_pages_make(_lib.context(), *(x.ctypes.data for x in (table, lengths)), *table.shape, npages, page,
                                  *(x.ctypes.data for x in (start, where, tokens))))
    return {"P.start": start, "P.where": where[:start[-1]], "T.start": tokens[:start[-1] + 1]}


def paged_attention(q: Any, k_cache: Any, v_cache: Any, block_table: Any, lengths: Any, *,
                    scale: Optional[float] = None) -> Any:
    """Attention of one query a sequence over keys and values in pages, as when a model decodes.

    q: [batch, heads, dim].  k_cache, v_cache: [pages, kv heads, page, dim]; kv heads divide heads.
    block_table: [batch, most pages] integers, the pages of each sequence in order.
    lengths: [batch] integers, tokens of each sequence; places behind them are not looked at.
    Returns [batch, heads, dim]; zeros for a sequence without tokens."""
    if getattr(q, "ndim", 0) != 3:
        raise bad("q", "[batch, heads, dim]", describe(q))
    q, type_name = _operand("q", q)
    k_cache, k_type = _operand("k_cache", k_cache, q)
    v_cache, v_type = _operand("v_cache", v_cache, q)
    batch, heads, d = q.shape
    for name, x, t in (("k_cache", k_cache, k_type), ("v_cache", v_cache, v_type)):
        if t != type_name:
            raise bad(name, f"{type_name}, as q is", t)
        if x.ndim != 4:
            raise bad(name, "[pages, kv heads, page, dim]", f"{x.ndim} dimensions, {tuple(x.shape)}")
    npages, kv, page = k_cache.shape[:3]
    if k_cache.shape[3] != d:
        raise bad("k_cache", f"the dim of q, {d}", k_cache.shape[3])
    if tuple(v_cache.shape[:3]) != tuple(k_cache.shape[:3]):
        raise bad("v_cache", f"the pages of k_cache, {tuple(k_cache.shape[:3])}", tuple(v_cache.shape[:3]))
    if kv == 0 or heads % kv or page == 0:
        raise bad("k_cache", f"a number of heads that divides the {heads} of q, and pages of 1 token or more",
                  f"{kv} heads, pages of {page}")
    dv, factor = v_cache.shape[3], 1 / math.sqrt(d) if scale is None else _check.real("scale", scale)
    spec = f"paged_attention:{type_name}:heads={kv}:groups={heads // kv}:d={d}:dv={dv}:page={page}"
    arrays = {"Q": q.reshape(batch, kv, heads // kv, d), "Kc": k_cache, "Vc": v_cache}
    sizes = {"nseq": batch, "npages": npages}
    if is_torch(q):
        from . import _torch_attention

        z = _torch_attention.paged(spec, arrays, sizes, block_table, lengths, page, factor, type_name)
    else:
        z = kernel_of(spec)({**arrays, **sizes, **pages(block_table, lengths, batch, npages, page),
                             "C": np.array(factor, masks.dtype(type_name))})
    return z.reshape(batch, heads, dv)
