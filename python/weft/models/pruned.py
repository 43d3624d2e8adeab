# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""Linear layers whose weight was pruned.  A layer keeps its dense weight, and so its state dict; a call reads
the entries that were not 0 when the layer was replaced, in the format for which the cost model predicts the
shortest time.  Entries that were 0 stay 0, and get no gradient."""

from __future__ import annotations

from ctypes import byref
from typing import Any, List, Tuple

import torch
from torch import nn

from .. import _lib
from .._weights import SparseWeight, sparse_linear
from ._swap import Swapped, swap

_LEAST = 64  # rows and columns: smaller layers take no time
_TOKENS = 512


class Pruned(Swapped, nn.Linear):
    """A linear layer that reads only the entries of its weight that are not 0."""

    weft_stock = nn.Linear
    _weft_weight: SparseWeight
    _weft_values: Any = None  # of the weight at its last version, when no gradient is asked for

    def forward(self, input):
        return super().forward(input)

    def weft_values(self) -> torch.Tensor:
        weight = self.weight
        if torch.is_grad_enabled() and weight.requires_grad or torch.compiler.is_compiling():
            return self._weft_weight.values_of(weight)
        key = (weight.data_ptr(), weight._version, weight.dtype)
        if self._weft_values is None or self._weft_values[0] != key:
            self._weft_values = key, self._weft_weight.values_of(weight.detach())
        return self._weft_values[1]

    def weft_run(self, input):
        return sparse_linear(input, self._weft_weight.with_values(self.weft_values()), self.bias)


def _dense_seconds(rows: int, columns: int) -> float:
    """What a dense product of 512 tokens takes at the machine's peak, one thread."""
    machine = _lib.Machine()
    with _lib.lock:
        _lib.check(_lib.lib.weft_machine_get(_lib.context(), 0, byref(machine)))
    return 2.0 * rows * columns * _TOKENS / (machine.fma_f32[0] * 1e9)


def replace(model: nn.Module) -> List[Tuple[str, str]]:
    out = []
    for name, module in model.named_modules():
        if type(module) is not nn.Linear or module.weight.dtype not in (torch.float32, torch.float64):
            continue
        rows, columns = module.weight.shape
        stored = torch.count_nonzero(module.weight.detach()).item() / max(1, rows * columns)
        if min(rows, columns) < _LEAST or stored > 0.75:
            continue
        weight = SparseWeight.from_dense(module.weight.detach(), None, "auto")
        gain = _dense_seconds(rows, columns) / weight.predicted(_TOKENS)
        if gain <= 1:
            continue
        swap(module, Pruned)
        module._weft_weight = weight
        out.append((name, f"pruned linear layer, {columns} -> {rows}, {stored:.1%} stored as {weight.format}, "
                          f"{gain:.1f}x predicted"))
    return out
