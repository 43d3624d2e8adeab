# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""How a module of another package is replaced and given back.  A replacement is the same object with
another class, derived from its own, so its parameters, buffers and submodules stay where they are.

A call that Weft cannot take goes the stock way, by the forward that the module had: on another device,
without a C compiler, and where torch traces the code (torch.jit, torch.fx)."""

from __future__ import annotations

import warnings
from functools import lru_cache
from typing import Any, List

import torch

from .. import _lib
from .._dropin import Dropin
from .._program import Program
from .._script import warn_of_stock

_PROBE = "program p(n)\naxis I = n\nf32 A[I], B[I]\nB[i] = 2 * A[i]\n"


@lru_cache(maxsize=None)
def no_compiler() -> str:
    """Why kernels cannot be compiled; "": they can.  A kernel that is in the cache proves nothing, as the
    next structure may need another one."""
    try:
        with _lib.lock:
            _lib.check(_lib.lib.weft_ctx_compiler(_lib.context()))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            info = Program(_PROBE).compile().info
    except _lib.Error as e:
        return str(e)
    return "" if info.target == "c" else info.why


def _warn(why: str) -> None:
    warnings.warn(f"weft: modules run their stock forward: {why}", RuntimeWarning, stacklevel=4)


class Swapped:
    """A base of replacements.  weft_run is their forward; weft_stock_run computes the same by the class
    that the module had, weft_stock.  A class defines forward with the names of its inputs and passes them on
    by place, as callers may give them by name and torch.fx traces neither *inputs nor **names."""

    weft_stock: type
    weft_off = ""  # why the stock forward runs from now on

    def forward(self, *inputs):
        if torch.compiler.is_compiling():
            return self.weft_run(*inputs)
        if self.weft_is_traced(inputs):
            return self.weft_stock_run(*inputs)
        why = self.weft_off or no_compiler() or self.weft_elsewhere(inputs)
        if not why:
            try:
                return self.weft_run(*inputs)
            except RuntimeError as e:  # the compiler failed on this kernel
                if "would be interpreted" not in str(e):
                    raise
                why = self.weft_off = str(e)
        _warn(why)
        return self.weft_stock_run(*inputs)

    def weft_tensors(self, inputs) -> List[Any]:
        """The tensors among the inputs that tell where the call is."""
        return [inputs[0]]

    def weft_is_traced(self, inputs) -> bool:
        return torch.jit.is_tracing() or any(
            isinstance(x, torch.fx.Proxy) for x in self.weft_tensors(inputs))

    def weft_elsewhere(self, inputs) -> str:
        for x in self.weft_tensors(inputs):
            if x.device.type != "cpu":
                return f"the input is on {x.device}, and kernels run on the CPU"
        return ""

    def weft_stock_run(self, *inputs):
        return self.weft_stock.forward(self, *inputs)

    def weft_restore(self) -> None:
        """Gives the module back as it was."""
        for name in [n for n in self.__dict__ if n.lstrip("_").startswith("weft_")]:
            del self.__dict__[name]
        self.__class__ = self.weft_stock

    def __prepare_scriptable__(self):
        """What torch.jit.script calls first.  TorchScript is for programs without Python, which Weft's
        derivatives need, so it gets the stock module."""
        warn_of_stock("weft.accelerate(model)")
        self.weft_restore()
        return self


def swap(module: torch.nn.Module, to: type) -> None:
    """Replaces a module in place; `to` is derived from its class."""
    assert to.weft_stock is type(module)
    module.__class__ = to


def restore(model: torch.nn.Module) -> List[str]:
    """Restores every replaced module, and has classes of e3nn in the place of those of weft.o3; their
    names."""
    out, stock = [], {}
    for name, module in list(model.named_modules()):
        if isinstance(module, Swapped):
            module.weft_restore()
            out.append(name)
        for key, child in module._modules.items():
            if isinstance(child, Dropin):
                if id(child) not in stock:  # it can be in two places
                    stock[id(child)] = child.stock()
                    out.append(f"{name}.{key}".lstrip("."))
                module._modules[key] = stock[id(child)]
    return out
