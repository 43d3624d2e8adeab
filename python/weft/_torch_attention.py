# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""weft.attention on tensors.  In code that torch traces, the blocks of a mask and the random numbers of dropout are
made by operators of their own, so that a compiled or exported function makes them for the batch that it is given;
elsewhere they are kept with the mask."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np
import torch

from . import _attention, _torch_spec, masks
from ._sparse import bad
from ._torch_ad import is_traced

Tensor = torch.Tensor


class Facts(NamedTuple):
    """Of a mask as blocks, what does not depend on the number of copies."""

    number: int
    tiles: int
    blocks: int
    w: int
    split: bool
    pieces: int  # of a copy
    patterns: int
    names: Tuple[str, ...]


@lru_cache(maxsize=64)
def _full(n: int, m: int) -> masks.Mask:
    return masks.full(n, m)


@torch.compiler.assume_constant_result
def _facts(number: int, n: int, m: int, type: str) -> Tuple[Any, ...]:
    """number: of a mask that somebody has; -1: all pairs of n queries and m keys."""
    mask = _full(n, m) if number < 0 else masks.by_number[number]
    p = mask.plan(1, type)
    return tuple(Facts(mask.number, p.tiles, p.blocks, p.w, p.split, p.arrays["L.j"].shape[0],
                       p.arrays["X"].shape[0], tuple(p.arrays)))


@torch.library.register_fake("weft::mask_blocks")
def _(start, col, lq, lk, source, n, m, block, causal, wide, copies, most, w, split, pieces, patterns):
    """L.j, L.pat, X and, with split, P.row and E.start.  start, col: a mask that has no source; lq, lk: queries and
    keys of each copy; w, split, pieces, patterns: of the mask without lengths, which the shapes of results follow
    from.  Tensors without elements: none."""
    lengths = lq.shape[0] != 0
    tiles = -(-n // masks.TILE)
    if lengths:
        patterns = torch.library.get_ctx().new_dynamic_size()
    rows = torch.library.get_ctx().new_dynamic_size() if lengths and split else copies * pieces
    like = torch.empty(0)
    ints = [(rows, w), (rows, w)] + ([(rows,), (copies * tiles + 1,)] if split else [])
    out = [like.new_empty(s, dtype=torch.int64) for s in ints]
    dtype = torch.float64 if wide else torch.float32
    return [*out[:2], like.new_empty((patterns, masks.TILE, masks.BLOCK), dtype=dtype), *out[2:]]


@torch.library.register_fake("weft::mask_random")
def _(seed, second, n):
    return [torch.empty(n, dtype=torch.int64)]


def _traced_blocks(mask: Optional[masks.Mask], s: Any, lengths: List[Tensor]) -> Tuple[Facts, Dict[str, Tensor]]:
    f = Facts(*_facts(-1 if mask is None else mask.number, s.n, s.m, s.type))
    none = [torch.empty(0, dtype=torch.int64)] * 2
    entries = none if mask is None else mask.tensors() or none
    source = "full" if mask is None else mask.source or ""
    block, causal = (1, False) if mask is None else (mask.block, mask.causal)
    made = torch.ops.weft.mask_blocks.default(*entries, *(lengths or none), source, s.n, s.m, block, causal,
                                              s.type == "f64", s.batch * s.heads, masks.most(s.type), f.w, f.split,
                                              f.pieces, f.patterns)
    return f, dict(zip(f.names, made))


def _lengths(lengths: Any, s: Any) -> List[Tensor]:
    """Queries and keys of each batch, whose values the operator checks."""
    if lengths is None:
        return []
    pair = lengths if isinstance(lengths, tuple) else (lengths, lengths)
    made = [torch.as_tensor(x) for x in pair]
    for x in made:
        if tuple(x.shape) != (s.batch,) or x.dtype not in (torch.int32, torch.int64):
            raise bad("lengths", f"{s.batch} integers, one for each batch", tuple(x.shape))
    return [x.long() for x in made]


def _dropout(p: float, seed: Any, s: Any, plan: Any) -> Dict[str, Tensor]:
    if p == 0:
        return {}
    rows, cols = s.batch * s.heads * plan.tiles, (s.batch * s.kv, plan.blocks, masks.BLOCK)
    seed = torch.as_tensor(seed)
    random = torch.ops.weft.mask_random.default
    (q,), (k,) = random(seed, False, rows * masks.TILE), random(seed, True, cols[0] * cols[1] * cols[2])
    return {"HQ": q.reshape(rows, masks.TILE), "HK": k.reshape(cols), "limit": torch.tensor(round((1 - p) * (1 << 31))),
            "keep": torch.tensor(1 / (1 - p), dtype=_dtype(s.type))}


def _dtype(type: str) -> torch.dtype:
    return torch.float64 if type == "f64" else torch.float32


def attention(q: Tensor, k: Tensor, v: Tensor, s: Any, mask: Optional[masks.Mask], factor: float, p: float, seed: Any,
              lengths: Any) -> Tensor:
    if is_traced():
        n, m = (int(s.n), int(s.m)) if mask is None else mask.shape  # masks are of fixed sizes, so code is
        s = s._replace(n=n, m=m, d=int(s.d), dv=int(s.dv))
        given = _lengths(lengths, s)
        each = [x.repeat_interleave(s.heads) for x in given]
        plan, kept = _traced_blocks(mask, s, each)
    else:
        mask = _full(s.n, s.m) if mask is None else mask
        pair = _attention.lengths_of(lengths, s)
        plan = mask.plan(s.batch * s.heads, s.type, *(None if x is None else np.repeat(x, s.heads) for x in pair))
        kept, given = plan.tensors(), [] if pair[0] is None else [torch.from_numpy(x) for x in pair]
    form = _attention.form_of(s, plan, bool(given))
    arrays = {**kept, **_dropout(p, seed, s, plan), "C": torch.tensor(factor, dtype=_dtype(s.type)),
              "Q": q.reshape(form.q), "Kk": k.reshape(form.k), "V": v.reshape(form.v)}
    if form.ragged:
        lq, lk = given or (torch.full((s.batch,), n) for n in (s.n, s.m))
        arrays.update(lq=lq.repeat_interleave(s.heads), lk=lk.repeat_interleave(s.kv))
    sizes = {"np": kept["X"].shape[0], **form.sizes, **({"pieces": kept["P.row"].shape[0]} if plan.split else {})}
    return _torch_spec.call(_attention.spec_of(s, plan, form.ragged, p > 0), arrays, **sizes).reshape(s.out)


@torch.library.register_fake("weft::mask_pages")
def _(block_table, lengths, npages, page):
    used = torch.library.get_ctx().new_dynamic_size()
    return [lengths.new_empty(n, dtype=torch.int64) for n in (lengths.shape[0] + 1, used, used + 1)]


def paged(spec: str, arrays: Dict[str, Tensor], sizes: Dict[str, int], block_table: Any, lengths: Any, page: int,
          factor: float, type: str) -> Tensor:
    if is_traced():
        table, lengths = (torch.as_tensor(x).long() for x in (block_table, lengths))
        made = torch.ops.weft.mask_pages.default(table, lengths, sizes["npages"], page)
    else:
        got = _attention.pages(block_table, lengths, sizes["nseq"], sizes["npages"], page)
        made = [torch.from_numpy(a) for a in got.values()]
    return _torch_spec.call(spec, {**arrays, **dict(zip(("P.start", "P.where", "T.start"), made)),
                                   "C": torch.tensor(factor, dtype=_dtype(type))}, **sizes)
