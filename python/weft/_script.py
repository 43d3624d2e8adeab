# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""TorchScript compiles the source of modules, and cannot compile calls of Weft's kernels."""

from __future__ import annotations

from typing import Any

_WHAT = ("script or trace what weft.restore(model) gives back, or build the model with the classes of e3nn, "
         "or deploy it with torch.export")


class Unscripted:
    """A base of modules that call kernels: torch.jit.script of a model with one of them says what to do.
    Torch calls __prepare_scriptable__ for every module of a model before it compiles any of them."""

    def __prepare_scriptable__(self) -> Any:
        raise RuntimeError(f"{type(self).__module__}.{type(self).__name__} calls kernels of Weft, which "
                           f"torch.jit.script cannot compile: {_WHAT}")


def no_tensor(name: str, x: Any) -> Exception:
    """Why something that is no tensor cannot be an operand."""
    if type(x).__module__ == "torch.fx.proxy":
        return RuntimeError(f"{name}: kernels of Weft need tensors, which torch.fx.symbolic_trace does not "
                            f"have: {_WHAT}")
    return TypeError(f"{name}: expected a tensor of torch, got {type(x).__name__}")
