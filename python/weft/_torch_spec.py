# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""Operators of the library on tensors, by spec, in traced code too: a trace has the text and the names."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Dict, Tuple

import torch

from ._function import function
from ._torch import run

Names = Tuple[str, Tuple[str, ...], Tuple[str, ...], Tuple[str, ...]]


@lru_cache(maxsize=1024)
def _read(spec: str) -> Names:
    f = function("op " + spec)
    return f.text, tuple(a.name for a in f.inputs), tuple(f.symbols), tuple(a.name for a in f.outputs)


@torch.compiler.assume_constant_result
def _names(spec: str) -> Names:
    """The text of an operator, its inputs, its sizes and its outputs."""
    return _read(spec)


def call(spec: str, arrays: Dict[str, Any], **sizes: Any) -> Any:
    """The result of an operator, or a dict of several, for tensors and sizes by name whose shapes were checked."""
    text, inputs, symbols, outputs = _names(spec)
    results = run(text, [arrays[name] for name in inputs], [sizes.get(name, -1) for name in symbols] if sizes else [])
    return results[0] if len(outputs) == 1 else dict(zip(outputs, results))
