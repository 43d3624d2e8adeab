# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""Which problems the modules of a process use.  Operators of torch find kernels by the text of a problem;
when the last module that has a problem is gone, its kernels are freed.  A call by its text alone, as from
an exported program or a copy of a module, makes them again."""

from __future__ import annotations

import ctypes
import threading
import weakref
from typing import Any, Dict

from ._torch import _native

_native.weft_torch_drop.argtypes = [ctypes.c_char_p]
_native.weft_torch_drop.restype = None

_lock = threading.RLock()  # a garbage collection in hold() may call _drop
_users: Dict[str, int] = {}


def _drop(spec: str) -> None:
    with _lock:
        _users[spec] -= 1
        if _users[spec] > 0:
            return
        del _users[spec]
    _native.weft_torch_drop(spec.encode())


def hold(owner: Any, spec: str) -> None:
    """Keeps the kernels of a problem at least as long as this object."""
    with _lock:
        _users[spec] = _users.get(spec, 0) + 1
    weakref.finalize(owner, _drop, spec).atexit = False
