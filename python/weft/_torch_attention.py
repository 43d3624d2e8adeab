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

from . import _attention, _edges, _torch_spec, masks
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


@lru_cache(maxsize=64)
def _by_source(source: str, n: int, m: int, causal: bool) -> masks.Mask:
    return masks.Mask(n, m, source, causal=causal)


def _mask_of(entries: Sequence[Tensor], source: str, n: int, m: int, block: int, causal: bool) -> masks.Mask:
    if not entries:
        return _by_source(source, n, m, causal)
    kept = _edges.kept.get(entries[0])
    key = ("mask", id(entries[1]), entries[1]._version, n, m, block, causal)
    if key not in kept:
        start, col = (e.contiguous().numpy() for e in entries)
        kept[key] = masks.Mask(n, m, None, start=start, col=col, block=block, causal=causal), entries[1]
    return kept[key][0]


@torch.library.custom_op("weft::mask_blocks", mutates_args=())
def _blocks(entries: Sequence[Tensor], lengths: Sequence[Tensor], source: str, n: int, m: int, block: int,
            causal: bool, type: str, copies: int, w: int, split: bool, pieces: int, patterns: int) -> List[Tensor]:
    """L.j, L.pat, X and, with split, P.row and E.start.  entries: starts and columns of a mask that has no source;
    lengths: queries and keys of each copy; w, split, pieces, patterns: of the mask without lengths, which the
    shapes of results follow from."""
    mask = _mask_of(entries, source, n, m, block, causal)
    lq, lk = (x.contiguous().numpy() for x in lengths) if lengths else (None, None)
    plan = mask.plan(copies, type, lq, lk)
    made = dict(plan.arrays)
    for name in ("L.j", "L.pat"):  # with lengths, tiles may see fewer blocks
        made[name] = np.pad(made[name], ((0, 0), (0, w - made[name].shape[1])), constant_values=-1)
    if split and not plan.split:
        rows = copies * plan.tiles
        made["P.row"], made["E.start"] = np.arange(rows), np.arange(rows + 1)
    return [torch.tensor(a) for a in made.values()]  # copies: who traces may write into what is read no more


@_blocks.register_fake
def _(entries, lengths, source, n, m, block, causal, type, copies, w, split, pieces, patterns):
    tiles = -(-n // masks.TILE)
    if lengths:
        patterns = torch.library.get_ctx().new_dynamic_size()
    rows = torch.library.get_ctx().new_dynamic_size() if lengths and split else copies * pieces
    like = torch.empty(0)
    ints = [(rows, w), (rows, w)] + ([(rows,), (copies * tiles + 1,)] if split else [])
    out = [like.new_empty(s, dtype=torch.int64) for s in ints]
    dtype = torch.float64 if type == "f64" else torch.float32
    return [*out[:2], like.new_empty((patterns, masks.TILE, masks.BLOCK), dtype=dtype), *out[2:]]


@torch.library.custom_op("weft::mask_random", mutates_args=())
def _random(seed: Tensor, second: bool, n: int) -> Tensor:
    """n random numbers below 2^31, by a seed; of each seed there are two lists."""
    return torch.from_numpy(_attention.hashes(2 * int(seed) + second, (n,)))


@_random.register_fake
def _(seed, second, n):
    return torch.empty(n, dtype=torch.int64)


def _traced_blocks(mask: Optional[masks.Mask], s: Any, lengths: List[Tensor]) -> Tuple[Facts, Dict[str, Tensor]]:
    f = Facts(*_facts(-1 if mask is None else mask.number, s.n, s.m, s.type))
    entries = [] if mask is None else mask.tensors()
    source = "full" if mask is None else mask.source or ""
    block, causal = (1, False) if mask is None else (mask.block, mask.causal)
    copies = s.batch * s.heads
    made = _blocks(entries, lengths, source, s.n, s.m, block, causal, s.type, copies, f.w, f.split, f.pieces,
                   f.patterns)
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
    q = _random(seed, False, rows * masks.TILE)
    k = _random(seed, True, cols[0] * cols[1] * cols[2])
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


@torch.library.custom_op("weft::mask_pages", mutates_args=())
def _pages(block_table: Tensor, lengths: Tensor, npages: int, page: int) -> List[Tensor]:
    """P.start, P.where and T.start of weft.paged_attention."""
    made = _attention.pages(block_table, lengths, lengths.shape[0], npages, page)
    return [torch.from_numpy(a) for a in made.values()]


@_pages.register_fake
def _(block_table, lengths, npages, page):
    used = torch.library.get_ctx().new_dynamic_size()
    return [lengths.new_empty(n, dtype=torch.int64) for n in (lengths.shape[0] + 1, used, used + 1)]


def paged(spec: str, arrays: Dict[str, Tensor], sizes: Dict[str, int], block_table: Any, lengths: Any, page: int,
          factor: float, type: str) -> Tensor:
    if is_traced():
        made = _pages(torch.as_tensor(block_table), torch.as_tensor(lengths), sizes["npages"], page)
    else:
        got = _attention.pages(block_table, lengths, sizes["nseq"], sizes["npages"], page)
        made = [torch.from_numpy(a) for a in got.values()]
    return _torch_spec.call(spec, {**arrays, **dict(zip(("P.start", "P.where", "T.start"), made)),
                                   "C": torch.tensor(factor, dtype=_dtype(type))}, **sizes)
