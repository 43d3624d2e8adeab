# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""Operators of graph networks: messages, attention over edges, relational convolution.  Each passes arrays,
or tensors, which then have gradients to any order, to a program of src/ops (docs/graphs.md)."""

from __future__ import annotations

import math
from typing import Any, Dict, Optional, Tuple

import numpy as np

from . import _check, _edges, _lib
from ._edges import Rows, Tiles
from ._program import kernel_of
from ._sparse import bad, cast, describe, is_torch, type_of

_BINARY = ("add", "sub", "mul", "div", "dot")
MESSAGES = ("copy_u", "copy_e", *[f"{a}_{op}_{b}" for a in "uve" for op in _BINARY for b in "uve" if a != b])
_REDUCES = {"sum": "", "add": "", "mean": ":mean", "max": ":max", "min": ":min", None: ":edges"}


def _types(operands: Dict[str, Any]) -> Tuple[str, bool]:
    """The type of all operands, and whether they are tensors."""
    given = {name: x for name, x in operands.items() if x is not None}
    kinds = {name: type_of(name, x) for name, x in given.items()}
    first = next(iter(kinds))
    torch = is_torch(given[first])
    for name, x in given.items():
        if kinds[name] != kinds[first]:
            raise bad(name, f"elements of {kinds[first]}, as {first} has", kinds[name])
        if is_torch(x) != torch:
            raise bad(name, f"{'a tensor' if torch else 'an array'}, as {first} is", describe(x))
        if torch and str(x.layout) != "torch.strided":
            raise bad(name, "a dense tensor", x.layout)
        if x.ndim == 0:
            raise bad(name, "a dimension of nodes or edges at least", describe(x))
    return kinds[first], torch


def _all_given(**operands: Any) -> None:
    for name, x in operands.items():
        if x is None:
            raise bad(name, "an array or a tensor", "None")


def _is_word(x: Any, words: Any) -> bool:
    return (x is None or isinstance(x, str)) and x in words


def _run(spec: str, arrays: Dict[str, Any], torch: bool) -> Any:
    if torch:
        from ._torch_spec import call

        return call(spec, arrays, **{k: v for k, v in arrays.items() if k == "ne"})
    with _lib.lock:
        return kernel_of(spec)(**{name: x for name, x in arrays.items()})


def _structure(r: Rows) -> Dict[str, Any]:
    arrays = {"E.start": r.start, "E.j": r.sender}
    if r.edge is not None:
        arrays["E.of"] = r.edge
    return arrays


def _rows_must(name: str, x: Any, n: Any, what: str) -> None:
    if x is not None and x.shape[0] != n:
        raise bad(name, f"{n} rows, one for each of the {what}", describe(x))


def _rows(graph: Any, u: Any, v: Any, e: Any, num_nodes: Any, torch: bool, loops: int = 0) -> Rows:
    if isinstance(graph, Rows):
        return graph
    pair = num_nodes if isinstance(num_nodes, (tuple, list)) else (num_nodes, num_nodes)
    if len(pair) != 2:
        raise bad("num_nodes", "a number or a pair, receivers and senders", repr(num_nodes))
    matrix = _edges._of_matrix(graph)
    if matrix is not None:
        receivers, senders = matrix.receivers, matrix.senders
    else:
        receivers = _edges.count(pair[0], graph, 0, v, u)
        senders = _edges.count(pair[1], graph, 1, u, v)
    _rows_must("u", u, senders, "senders")
    _rows_must("v", v, receivers, "receivers")
    r = _edges.rows(graph, receivers, senders, loops, torch)
    _rows_must("e", e, r.edges, "edges")
    return r


def message(graph: Any, message: str, reduce: Optional[str] = "sum", *, u: Any = None, v: Any = None,
            e: Any = None, arg: bool = False, num_nodes: Any = None) -> Any:
    """Of each receiver, the messages of its edges reduced: "sum", "mean", "max" or "min"; 0 for a node without
    edges.  reduce=None: the messages themselves, in the order of the edges.

    message: "copy_u", "copy_e", or two operands and what is done with them, "u_mul_e": u (senders, ...) is
    of senders, v (receivers, ...) of receivers, e (edges, ...) of edges; "add", "sub", "mul", "div", or
    "dot", which sums over the last dimension.  e may have fewer dimensions: (edges) or (edges, heads).
    arg=True, of max and min: a pair, the result and the edges that it came from, -1 for none.
    num_nodes: of all nodes, or a pair, receivers and senders, where operands do not tell."""
    if not _is_word(message, MESSAGES):
        raise bad("message", "copy_u, copy_e or one such as u_mul_e", repr(message))
    if not _is_word(reduce, _REDUCES):
        raise bad("reduce", "sum, mean, max, min or None", repr(reduce))
    if arg and reduce not in ("max", "min"):
        raise bad("arg", "it with max or min only", reduce)
    u, v, e = cast(u, v, e)
    given = {"u": u, "v": v, "e": e}
    wanted = [c for c in message.split("_") if c in given]
    for name, x in given.items():
        if (x is not None) != (name in wanted):
            raise bad(name, f"{'an' if name in wanted else 'no'} operand for {message}",
                      "None" if x is None else describe(x))
    type, torch = _types(given)
    r = _rows(graph, u, v, e, num_nodes, torch)
    shape, heads, scalar, arrays = _features(message, given)
    words = f"{message}:{type}{_REDUCES[reduce]}{':list' if r.edge is not None else ''}"
    words += (":heads" if heads else "") + (":scalar" if scalar else "") + (":arg" if arg else "")
    structure = _structure(r)
    if "u" not in wanted:
        del structure["E.j"]
    if "e" not in wanted and reduce is not None and not arg and r.edge is not None:
        del structure["E.of"]  # no operand of edges
        words = words.replace(":list", "")
    elif r.edge is not None:
        arrays["ne"] = r.edges
    out = _run(words, {**structure, **arrays}, torch)
    if not isinstance(out, dict):
        out = out[:r.receivers] if r.bin and reduce is not None else out
        return out.reshape((out.shape[0], *shape))
    y = out["Y"]
    return y.reshape((y.shape[0], *shape)), out["W"].reshape((y.shape[0], *shape))


def _features(message: str, given: Dict[str, Any]) -> Tuple[tuple, bool, bool, Dict[str, Any]]:
    """The shape of a result without its rows; whether there are heads and one value an edge and head; the
    operands as the program has them."""
    names = {"u": "U", "v": "V", "e": "A"}
    there = {k: x for k, x in given.items() if x is not None}
    full: tuple = ()
    for x in there.values():
        full = tuple(x.shape[1:]) if x.ndim - 1 > len(full) else full
    dot = "_dot_" in message
    scalar, heads = False, dot and len(full) > 1
    for name, x in there.items():
        own = tuple(x.shape[1:])
        if own == full:
            continue
        if name == "e" and not dot and own in ((), (1,) * len(full)):
            scalar = True
        elif name == "e" and not dot and len(full) >= 2 and own in (full[:1], (*full[:1], *[1] * (len(full) - 1))):
            scalar = heads = True
        else:
            raise bad(name, f"features {full}" + (", or (), or those of heads" if name == "e" else ""), own)
    if not full and dot:
        raise bad("message", "features to sum over", "operands of one dimension")
    lead = full[:-1] if dot else full[:1]
    inner = full[len(lead):] if heads else full
    arrays = {}
    for name, x in there.items():
        n = x.shape[0]
        if name == "e" and scalar:
            arrays["A"] = x.reshape((n, full[0]) if heads else (n,))
        elif heads:
            arrays[names[name]] = x.reshape((n, math.prod(lead), math.prod(inner)))
        else:
            arrays[names[name]] = x.reshape((n, math.prod(full)))
    return (full[:-1] if dot else full), heads, scalar, arrays


def _slope(slope: float, like: Any) -> Any:
    return like.new_tensor(slope) if is_torch(like) else np.asarray(slope, like.dtype)


def _attend(op: str, graph: Any, operands: Dict[str, Any], slope: float, G: Any, F: Any, weights: bool,
            loops: int) -> Any:
    _all_given(**operands)
    loops = _check.integer("loops", loops, 0, 2)
    *values, G, F = cast(*operands.values(), G, F)
    operands = dict(zip(operands, values))
    X, L = operands["X"], operands["L"]
    type, torch = _types({**operands, "G": G, "F": F})
    if X.ndim != 3:
        raise bad("X", "3 dimensions (senders, heads, features)", describe(X))
    heads, f = X.shape[1:]
    r = _rows(graph, X, L, None, (L.shape[0], X.shape[0]), torch, loops)
    want = {"L": (r.receivers, heads), "R": (r.senders, heads), "Q": (heads, f),
            "G": (r.edges, heads), "F": (r.edges, heads)}
    if op == "gatv2":
        want.update(L=(r.receivers, heads, f), G=(r.edges, heads, f))
    arrays = {**operands, **({"G": G} if G is not None else {}), **({"F": F} if F is not None else {})}
    for name, x in arrays.items():
        if name != "X" and tuple(x.shape) != want[name]:
            raise bad(name, f"shape {want[name]}", describe(x))
    if r.bin:
        arrays["L"] = _one_more(arrays["L"])
    structure = _structure(r)
    uses_edges = G is not None or F is not None or weights
    if not uses_edges:
        structure.pop("E.of", None)
    elif "E.of" in structure:
        arrays["ne"] = r.edges
    spec = f"{op}:{type}:heads={heads}:f={f}"
    for word, wanted in (("list", "E.of" in structure), ("scores", G is not None), ("mask", F is not None),
                         ("weights", weights)):
        spec += f":{word}" if wanted else ""
    out = _run(spec, {**structure, **arrays, "slope": _slope(slope, X)}, torch)
    if not weights:
        return out[:r.receivers] if r.bin else out
    return (out["Y"][:r.receivers] if r.bin else out["Y"]), out["P"]


def _one_more(x: Any) -> Any:
    """With a row of zeros more."""
    if is_torch(x):
        import torch

        return torch.cat([x, x.new_zeros((1, *x.shape[1:]))])
    return np.concatenate([x, np.zeros((1, *x.shape[1:]), x.dtype)])


def gat(graph: Any, L: Any, R: Any, X: Any, slope: float = 0.2, *, G: Any = None, F: Any = None,
        weights: bool = False, loops: int = 0) -> Any:
    """Attention over the edges of each receiver i: the sum over senders j of softmax(leaky_relu(L_i + R_j +
    G_ij)) F_ij X_j.  L is (receivers, heads), R (senders, heads), X (senders, heads, features), the result
    (receivers, heads, features).  G and F, (edges, heads), may be left out: scores of edges, and what
    weights are multiplied by, as dropout does.  weights=True: a pair, with the weights (edges, heads).
    loops=1: each node has one edge from itself, after all edges of the list; others of the list do not
    count.  2: as 1, but the last such edge of the list stays."""
    return _attend("gat", graph, {"L": L, "R": R, "X": X}, slope, G, F, weights, loops)


def gatv2(graph: Any, Q: Any, L: Any, X: Any, slope: float = 0.2, *, G: Any = None, F: Any = None,
          weights: bool = False, loops: int = 0) -> Any:
    """As weft.gat, with scores Q . leaky_relu(L_i + X_j + G_ij): Q is (heads, features), L (receivers, heads,
    features), G (edges, heads, features)."""
    return _attend("gatv2", graph, {"Q": Q, "L": L, "X": X}, slope, G, F, weights, loops)


def neighbours(op: str, rows: Rows, name: str, x: Any, reduce: str) -> Any:
    """For layers, which have checked rows without loops and features: "copy_u", features U of senders reduced; or
    "sage", H[:, 0] of senders reduced, + H[:, 1] of the receiver, of H (nodes, 2, features)."""
    spec = f"{op}:{type_of(name, x)}{_REDUCES[reduce]}"
    return _run(spec, {"E.start": rows.start, "E.j": rows.sender, name: x}, is_torch(x))


def rgms(tiles: Tiles, X: Any, W: Any, reduce: str = "sum", *, comp: Any = None, weights: Any = None) -> Any:
    """Relational gather, matrix product and scatter: of each receiver, the sum over relations r of the
    features of its senders by edges of r, reduced ("sum", "mean" or "max"), times W_r.

    X is (senders, c), W (relations, c, o), the result (receivers, o).  W of four dimensions, (relations,
    blocks, c / blocks, o / blocks), is block-diagonal.  With comp (relations, bases), W is (bases, c, o), and
    W_r the sum over bases of comp[r] W.  weights: of edges, in the order of the list."""
    if not isinstance(tiles, Tiles):
        raise bad("tiles", "weft.Tiles(edge_index, edge_type, num_relations, num_nodes)", describe(tiles))
    words = {"sum": "", "add": "", "mean": ":mean", "max": ":max"}
    if not _is_word(reduce, words):
        raise bad("reduce", "sum, mean or max", repr(reduce))
    _all_given(X=X, W=W)
    X, W, comp, weights = cast(X, W, comp, weights)
    type, torch = _types({"X": X, "W": W, "comp": comp, "weights": weights})
    if W.ndim not in (3, 4):
        raise bad("W", "3 dimensions, or 4 where it is block-diagonal", describe(W))
    blocks = W.ndim == 4
    nb, ci, co = W.shape[1:] if blocks else (1, *W.shape[-2:])
    nr = tiles.relations
    _must("X", X, (tiles.senders, nb * ci))
    if comp is not None:
        _must("comp", comp, (nr, W.shape[0]))
        _must("W", W, (W.shape[0], ci, co))
    else:
        _must("W", W, (nr, nb, ci, co) if blocks else (nr, ci, co))
    if weights is not None:
        _must("weights", weights, (tiles.edges,))
    spec = f"rgms:{type}{words[reduce]}:ci={ci}:co={co}" + (f":blocks:nb={nb}" if blocks else "")
    spec += (":basis" if comp is not None else "") + (":weights" if weights is not None else "")
    arrays = tiles.named(torch, weights is not None)
    arrays.update({"X": X.reshape((X.shape[0], nb, ci)) if blocks else X})
    arrays.update({"W": W} if comp is None else {"M": comp, "V": W})
    if weights is not None:
        arrays["A"] = weights
    y = _run(spec, arrays, torch)
    if tiles.bin:
        y = y[:tiles.receivers]
    return y.reshape((y.shape[0], nb * co))


def _must(name: str, x: Any, shape: tuple) -> None:
    if tuple(x.shape) != shape:
        raise bad(name, f"shape {shape}", describe(x))
