# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""weft.conv3d on tensors: the operator conv3d through weft.torch.operator, which has its gradients."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import torch

from . import _conv3d
from ._sparse import _torch_type, bad, describe
from .torch import Operator, operator


@lru_cache(maxsize=256)
def _operator(spec: str) -> Operator:
    return operator(spec)


def conv3d(x: Any, weight: Any, kernel_map: _conv3d.KernelMap, bias: Any) -> torch.Tensor:
    tensors = [torch.as_tensor(a) for a in (x, weight, bias) if a is not None]
    types = tuple(_torch_type(t) for t in tensors)
    for name, t, type in zip(("x", "weight", "bias"), tensors, types):
        if type is None:
            raise bad(name, "float16, bfloat16, float32 or float64", describe(t))
        if t.device.type not in ("cpu", "meta"):
            raise bad(name, "a tensor on the CPU", t.device)
    x, weight = tensors[:2]
    m = kernel_map
    _conv3d._check_operands(x.shape, weight.shape, m, tensors[2].shape if len(tensors) > 2 else None, types)
    co, ci = weight.shape[0], weight.shape[-1]
    spec = _conv3d._spec(types[0], m.offsets, ci, co, len(tensors) > 2, m.strip)
    more = {"B": tensors[2]} if len(tensors) > 2 else {}
    y = _operator(spec)(X=x, W=weight.reshape(co, m.offsets, ci), strips=m.strips, vin=m.n_in,
                        **m.tensors(), **more)
    return y.reshape(-1, co)[:m.n_out]
