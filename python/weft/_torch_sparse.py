# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""Operators of sparse matrices on torch tensors: each is weft::run of a program, which has derivatives, tangents
and shapes for tracing.  Shapes are checked by the same functions as for NumPy arrays (_ops)."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple

import numpy as np
import torch

from . import _ops, _sparse
from ._function import constant
from ._operand import Parts, parts_of, tensor_of
from ._sparse import bad, describe, is_torch, type_of
from ._torch import run
from ._torch_ad import is_traced, is_watched


# Blocks R x C of a matrix in BSR, by operator and whether the matrix is transposed.
_BLOCKS = """program {name}(mb, nb, h, w, f)
axis I = mb, E(I) = seg : j < nb, R = h, C = w, K = f
{type} A[E, R, C], {buffers}
{statement}
"""
_BLOCK_OPS = {
    ("spmm", False): ("B[nb, C, K], Y[I, R, K]", "Y[i, r, k] += A[e, r, c] * B[j(e), c, k]"),
    ("spmm", True): ("B[I, R, K], Y[nb, C, K]", "Y[j(e), c, k] += A[e, r, c] * B[i, r, k]"),
}


def _operand(name: str, x: Any) -> torch.Tensor:
    x = tensor_of(x, name)
    type_of(name, x)
    if x.layout is not torch.strided or (x.device.type != "cpu" and not is_traced()):
        raise bad(name, "a dense tensor on the CPU", f"{x.layout} on {x.device}")
    return x


def _promote(*tensors: torch.Tensor) -> Tuple[str, List[torch.Tensor]]:
    """All in the type that torch promotes them to, and its name."""
    dtype = tensors[0].dtype
    for x in tensors[1:]:
        dtype = torch.promote_types(dtype, x.dtype)
    made = [x.to(dtype) for x in tensors]
    return type_of("operands", made[0]), made


def _matrix(A: Any, rows: Optional[int] = None, cols: Optional[int] = None) -> Parts:
    if is_torch(A) and A.layout is torch.strided or isinstance(A, np.ndarray):
        return parts_of("edge_index", A, (rows, cols))
    return parts_of("A", A)


def _segments(A: Any, rows: Optional[int] = None, alone: bool = True) -> Parts:
    """The same, or from the starts of rows alone."""
    if not isinstance(A, np.ndarray) and not is_torch(A) or len(A.shape) != 1:
        return _matrix(A, rows, rows)
    start = tensor_of(A, "A")
    if start.dtype not in (torch.int32, torch.int64) or start.shape[0] == 0:
        raise bad("A", "a vector of int32 or int64 that begins with 0", describe(A))
    if not alone:
        raise bad("A", *_ops.NEEDS_MATRIX)
    return Parts("csr", start, start.new_empty(0), None, (start.shape[0] - 1, 0), "ragged")


def _call(text: str, arrays: Dict[str, Any], sizes: Dict[str, int]) -> List[torch.Tensor]:
    f = constant(text)
    return run(text, [arrays[a.name] for a in f.inputs], [sizes.get(s, -1) for s in f.symbols] if f.missing else [])


def _op(op: str, type: str, p: Parts, transpose: bool, form: _ops.Form,
        arrays: Dict[str, torch.Tensor]) -> List[torch.Tensor]:
    """The results of an operator, of the shapes that users see."""
    words = [op, type, p.format, *["t"] * transpose, *[o for o, wanted in form.options.items() if wanted]]
    at = {name: x.reshape(form.shapes[name]) for name, x in arrays.items()}
    at.update(zip(_sparse.ARRAYS[p.format], (p.first, p.index)))
    got = _call("op " + ":".join(words), at, dict(zip("mn", p.shape)))
    return [z.reshape(form.result) for z in got]


def _give(out: Any, z: torch.Tensor, *operands: Any) -> Any:
    if out is None:
        return z
    if any(is_watched(x) for x in operands):
        raise bad("out", "None, as torch records", "an array")
    _sparse.target(out, tuple(z.shape), type_of("out", z))
    tensor_of(out).copy_(z)
    return out


def _values(p: Parts, like: torch.Tensor) -> torch.Tensor:
    if p.values is not None:
        return _operand("A", p.values)
    return like.new_ones(p.index.shape[0])


def product(op: str, A: Any, name: str, B: Any, out: Any, transpose: bool, batch: bool, k: int,
            reduce: _ops.Reduce) -> Any:
    b = _operand(name, B)
    nodes = b.shape[int(batch)] if b.dim() > int(batch) else None
    p = _matrix(A, nodes, nodes)
    type, (v, b) = _promote(_values(p, b), b)
    if v.dim() == 3 and is_torch(A):
        if reduce.word != "sum":
            raise bad("reduce", "sum, as A is in BSR; convert it to CSR", repr(reduce.word))
        return _give(out, _blocks(type, p, v, name, b, transpose, batch), v, b)
    m, n = p.shape[::-1] if transpose else p.shape
    form = _ops.product_form(name, k, batch, m, n, p.index.shape[0], tuple(v.shape), tuple(b.shape),
                             reduce)
    z, *which = _op(op, type, p, transpose, form, {"A": v, name: b})
    z = _give(out, z, v, b)
    return (z, *which) if reduce.arg else z


def _blocks(type: str, p: Parts, v: torch.Tensor, name: str, b: torch.Tensor, transpose: bool,
            batch: bool) -> torch.Tensor:
    """A matrix in BSR times a dense one, (n) or (n, f)."""
    _, h, w = v.shape
    (m, high), (n, wide) = ((p.shape[1], w), (p.shape[0], h)) if transpose else ((p.shape[0], h), (p.shape[1], w))
    if batch or b.dim() not in (1, 2) or b.shape[0] != n * wide:
        raise bad(name, f"shape ({n * wide}) or ({n * wide}, f), as A is in BSR", tuple(b.shape))
    buffers, statement = _BLOCK_OPS["spmm", transpose]
    text = _BLOCKS.format(name="spmm_bsr", type=type, buffers=buffers, statement=statement)
    z, = _call(text, {"A": v, "E.start": p.first, "E.j": p.index, "B": b.reshape(n, wide, -1)},
               {"mb": p.shape[0], "nb": p.shape[1], "h": h, "w": w})
    return z.reshape(m * high, *b.shape[1:])


def sddmm(A: Any, X: Any, Y: Any, out: Any, values: bool, transpose: bool) -> Any:
    x, y = _operand("X", X), _operand("Y", Y)
    ends = (y, x) if transpose else (x, y)
    p = _matrix(A, *(e.shape[0] if e.dim() else None for e in ends))
    type, (x, y, *v) = _promote(x, y, *([_values(p, x)] if values else []))
    m, n = p.shape[::-1] if transpose else p.shape
    form = _ops.sddmm_form(m, n, p.index.shape[0], tuple(x.shape), tuple(y.shape), tuple(v[0].shape) if v else None)
    z, = _op("sddmm", type, p, transpose, form, {"X": x, "Y": y, **({"A": v[0]} if v else {})})
    return _give(out, z, x, y, *v)


def segment_reduce(A: Any, X: Any, reduce: str, out: Any, nodes: bool, arg: bool, transpose: bool) -> Any:
    x = _operand("X", X)
    p = _segments(A, x.shape[0] if nodes and x.dim() else None, not (nodes or transpose))
    m, n = p.shape[::-1] if transpose else p.shape
    want = n if nodes else -1 if p.kept == "ragged" else p.index.shape[0]
    form = _ops.segment_form(m, want, tuple(x.shape), nodes, arg)
    z, *which = _op("segment_" + reduce, type_of("X", x), p, transpose, form, {"X": x})
    z = _give(out, z, x)
    return (z, *which) if arg else z


def softmax(A: Any, S: Any, out: Any, transpose: bool) -> Any:
    p = _segments(A, None, not transpose)
    if S is None and p.values is None:
        raise bad("A", "values", "none: they are needed here")
    s = _operand("A" if S is None else "S", p.values if S is None else S)
    form = _ops.softmax_form(-1 if p.kept == "ragged" else p.index.shape[0], tuple(s.shape))
    z, = _op("softmax", type_of("S", s), p, transpose, form, {"S": s})
    return _give(out, z, s)
