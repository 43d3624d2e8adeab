# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""TorchScript compiles the source of modules, and cannot compile calls of Weft's kernels.  It gets stock
modules instead, those of e3nn or of the package of a model, where there is one."""

from __future__ import annotations

import warnings
from typing import Any

_WHAT = ("call weft.restore(model) first, which gives classes of e3nn back, or build the model with them, or "
         "deploy it with torch.export")


class Unscripted:
    """A base of modules that call kernels.  Torch calls __prepare_scriptable__ for every module of a model
    before it compiles any of them, and compiles what that returns."""

    __e3nn_compile_mode__ = "script"  # e3nn.util.jit.script gives such modules to torch.jit.script

    def stock(self) -> Any:
        """A module that computes the same without Weft, with the same parameters."""
        raise RuntimeError(f"{type(self).__module__}.{type(self).__name__} calls kernels of Weft, which "
                           f"TorchScript cannot compile: {_WHAT}")

    def __prepare_scriptable__(self) -> Any:
        theirs = self.stock()
        from e3nn.util.jit import compile

        for name, child in theirs.named_children():
            setattr(theirs, name, compile(child))
        warn_of_stock("weft.o3")
        return theirs


def warn_of_stock(again: str) -> None:
    warnings.warn("weft: TorchScript takes stock modules: those of this model are restored, as by "
                  f"weft.restore(model); {again} has Weft's again", RuntimeWarning, stacklevel=3)


def no_tensor(name: str, x: Any) -> Exception:
    """Why something that is no tensor cannot be an operand."""
    if type(x).__module__ == "torch.fx.proxy":
        return RuntimeError(f"{name}: kernels of Weft need tensors, which torch.fx.symbolic_trace does not "
                            f"have: {_WHAT}")
    return TypeError(f"{name}: expected a tensor of torch, got {type(x).__name__}")
