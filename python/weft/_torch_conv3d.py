# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""weft.conv3d on tensors: the operator conv3d through weft::run, which has its gradients; and kernel maps in code that
torch traces, which are made by operators of torch, so that a compiled or exported network makes those of the voxels
that it is given."""

from __future__ import annotations

from typing import Any, Dict, List, Sequence, Tuple

import torch

from . import _conv3d
from ._check import array
from ._operand import tensor_of
from ._sparse import bad, cast, is_torch, type_of
from ._torch import run
from ._torch_ad import is_traced

_NAMES = tuple(_conv3d._STRUCTURE)


def _triples(settings: Sequence[int]) -> List[Tuple[int, ...]]:
    return [tuple(settings[k:k + 3]) for k in range(0, len(settings), 3)]


def _shapes(pairs: Any = None) -> List[torch.Tensor]:
    """pairs: how many; None: the run tells.  The starts of strips are a size of its own: torch cannot prove that n
    outputs fit into n / STRIP strips, rounded up."""
    ctx = torch.library.get_ctx()
    starts, groups = ctx.new_dynamic_size(min=1), ctx.new_dynamic_size()
    pairs = ctx.new_dynamic_size() if pairs is None else pairs
    return [torch.empty(n, dtype=torch.int32) for n in (starts, groups, groups + 1, pairs, pairs)]


@torch.library.register_fake("weft::kernel_map")
def _(coords, kind, settings, batch):
    places = 0 if kind == 0 else torch.library.get_ctx().new_dynamic_size()
    return [*_shapes(), coords.new_empty((places, 4))]


@torch.library.register_fake("weft::kernel_map_turn")
def _(arrays, n_in, n_out, offsets, strip):
    return _shapes(arrays[4].shape[0])


def turned(m: _conv3d.KernelMap) -> Dict[str, torch.Tensor]:
    t = m.tensors()
    arrays = [t[name] for name in _NAMES]
    return dict(zip(_NAMES, torch.ops.weft.kernel_map_turn.default(arrays, m.n_in, m.n_out, m.offsets, m.strip)))


@torch.compiler.assume_constant_result
def _grid(kind: int, settings: Tuple[int, ...]) -> Tuple[int, ...]:
    """The grid of outputs, which does not depend on voxels."""
    return _conv3d.make(_conv3d.np.empty((0, 4), _conv3d.np.int32), kind, _triples(settings), 1).shape


def traced_map(coords: torch.Tensor, kind: int, settings: Sequence[Sequence[int]], batch: int) -> _conv3d.KernelMap:
    if coords.dim() != 2 or coords.shape[1] != 4 or coords.dtype not in (torch.int32, torch.int64):
        raise bad("coords", "integers (n, 4): batch index and three coordinates", tuple(coords.shape))
    flat = tuple(v for triple in settings for v in triple)
    *arrays, places = torch.ops.weft.kernel_map.default(coords, kind, flat, batch)
    places = coords if kind == 0 else places
    grids = (None, None) if settings[0] == (0, 0, 0) else (tuple(_grid(kind, flat)), settings[0])
    return _conv3d.KernelMap(dict(zip(_NAMES, arrays)), coords.shape[0], places.shape[0], _conv3d.STRIP, settings[1],
                             coords, places, *grids, traced=True)


def conv3d(x: Any, weight: Any, kernel_map: _conv3d.KernelMap, bias: Any) -> torch.Tensor:
    given = zip(("x", "weight", "bias"), (x, weight, bias))
    tensors = cast(*(a if is_torch(a) else tensor_of(array(name, a), name) for name, a in given if a is not None))
    types = tuple(type_of(name, t) for name, t in zip(("x", "weight", "bias"), tensors))
    for name, t in zip(("x", "weight", "bias"), tensors):
        if t.device.type not in ("cpu", "meta") or t.layout is not torch.strided:
            raise bad(name, "a dense tensor on the CPU", f"{t.layout} on {t.device}")
    x, weight = tensors[:2]
    m = kernel_map
    _conv3d._check_operands(x.shape, weight.shape, m, tensors[2].shape if len(tensors) > 2 else None, types)
    co, ci = weight.shape[0], weight.shape[-1]
    spec = _conv3d._spec(types[0], m.offsets, ci, co, len(tensors) > 2, m.strip)
    t = m.tensors()
    # As the program declares them: structure by axis, then buffers.  Shapes tell all sizes.
    arguments = [t["G.start"], t["G.d"], t["E.start"], t["E.r"], t["E.v"], x, weight.reshape(co, m.offsets, ci),
                 *tensors[2:]]
    y, = run("op " + spec, arguments, [])
    return y.flatten(0, -2).narrow(0, 0, m.n_out)
