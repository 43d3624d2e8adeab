# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""weft.conv3d on tensors: the operator conv3d through weft.torch.operator, which has its gradients."""

from __future__ import annotations

from typing import Any

import torch

from . import _conv3d
from ._sparse import _torch_type, bad, describe
from ._torch import run


def conv3d(x: Any, weight: Any, kernel_map: _conv3d.KernelMap, bias: Any) -> torch.Tensor:
    tensors = [torch.as_tensor(a) for a in (x, weight, bias) if a is not None]
    types = tuple(_torch_type(t) for t in tensors)
    for name, t, type in zip(("x", "weight", "bias"), tensors, types):
        if type is None:
            raise bad(name, "float16, bfloat16, float32 or float64", describe(t))
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
    return y.reshape(-1, co)[:m.n_out]
