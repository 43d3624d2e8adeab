# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""NumPy arrays as tensors of the library, and back."""

from __future__ import annotations

import ctypes
import weakref
from ctypes import c_int64
from typing import List

import numpy as np

from . import _check, _lib

_TYPES = ["i32", "i64", "f16", "bf16", "f32", "f64"]  # weft_type
_DTYPES = {
    "i32": np.dtype(np.int32), "i64": np.dtype(np.int64), "f16": np.dtype(np.float16),
    "bf16": np.dtype(np.uint16), "f32": np.dtype(np.float32), "f64": np.dtype(np.float64),
}
_LINE = 64  # bytes
_TYPE_OF = {dtype: i for i, dtype in enumerate(_DTYPES.values())}


def type_name(code: int) -> str:
    return _TYPES[code]


# Blocks of results that are gone, the last one last: fresh memory costs a page fault for each page.
pool: List[np.ndarray] = []
POOL_BLOCKS = 16
POOL_BYTES = 1 << 29  # of each block, at most; small arrays NumPy's allocator reuses itself
_SMALL = 1 << 20


def _room(size: int) -> np.ndarray:
    """Bytes: a block of about that size that nobody has any more, or a new one."""
    for i in range(len(pool) - 1, -1, -1):
        try:
            if size <= pool[i].nbytes <= size + size // 4:
                return pool.pop(i)
        except IndexError:  # another thread was faster
            break
    return np.empty(size, np.uint8)


def _give_back(room: np.ndarray) -> None:
    if room.nbytes <= POOL_BYTES:
        pool.append(room)
        del pool[:-POOL_BLOCKS]


def empty(shape: tuple, dtype: np.dtype) -> np.ndarray:
    """An array whose rows may begin at a line of the caches: kernels store past them by whole lines.
    The memory of a large one is used again when it and all views of it are gone."""
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    room = np.empty(size + _LINE, np.uint8) if size < _SMALL else _room(size + _LINE)
    begin = -room.ctypes.data % _LINE
    if size < _SMALL:
        return room[begin:begin + size].view(dtype).reshape(shape)
    owner = (ctypes.c_char * size).from_address(room.ctypes.data + begin)  # all views refer to it
    weakref.finalize(owner, _give_back, room).atexit = False
    return np.frombuffer(owner, dtype).reshape(shape)


def type_code(type: str) -> int:
    return _TYPES.index(type)


def dtype_of(type: str) -> np.dtype:
    """How NumPy holds the type; bf16, which it does not know, as the bits in uint16."""
    return _DTYPES[type]


def as_input(value, type: str, structure: bool, name: str) -> np.ndarray:
    """The array itself where that is possible.  Lists and numbers take the argument's type; arrays
    of another type are not converted, as that may lose digits (but integers of structure are)."""
    value = _check.array(name, value, dtype_of(type))
    if structure and value.dtype.kind in "iu" and value.dtype not in (np.int32, np.int64):
        value = as_int64(value, name)
    if type == "bf16" and value.dtype.name == "bfloat16":  # of ml_dtypes
        value = value.view(np.uint16)
    return value


def as_int64(array: np.ndarray, name: str) -> np.ndarray:
    """Integers of any type in int64; those that it does not hold are refused."""
    if array.dtype == np.uint64 and array.size and array.max() > _check.INT64_MAX:
        raise _lib.ArgumentError(f"{name}: expected integers below 2^63, got {array.max()}")
    return array.astype(np.int64, copy=False)


def as_tensor(array: np.ndarray, name: str, writes: bool) -> tuple:
    """The tensor of an array, and the array that it is of: a copy when strides are no multiples of
    the element, which the library does not know."""
    code = _TYPE_OF.get(array.dtype)
    if code is None:
        raise _lib.ArgumentError(f"{name}: arrays of {array.dtype} are not known; "
                                 f"convert it to one of {', '.join(map(str, _TYPE_OF))}")
    if writes and not array.flags.writeable:
        raise _lib.ArgumentError(f"{name} is written, but the array given is read-only")
    n, size, stride = array.ndim, array.itemsize, None
    if not array.flags.c_contiguous:
        if any(s % size for s in array.strides):
            if writes:
                raise _lib.ArgumentError(f"{name}: strides that are no multiple of the element")
            array = np.ascontiguousarray(array)
        else:
            stride = (c_int64 * n)(*[s // size for s in array.strides])
    shape = (c_int64 * n)(*array.shape)
    return _lib.Tensor(array.ctypes.data, code, n, shape, stride), array


def bf16_type(tensor: _lib.Tensor, type: str) -> None:
    """uint16 stands for bf16 where the argument is."""
    if type == "bf16" and tensor.type == _TYPE_OF[_DTYPES["bf16"]]:
        tensor.type = _TYPES.index("bf16")


def copy_of(tensor: _lib.Tensor) -> np.ndarray:
    """A new array with the elements of one of the library's."""
    shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
    out = np.empty(shape, dtype_of(_TYPES[tensor.type]))
    if out.size > 0:
        ctypes.memmove(out.ctypes.data, tensor.data, out.nbytes)
    return out
