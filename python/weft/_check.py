# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""What users give, checked before it goes to C: ctypes takes integers modulo 2^64 and ends texts at a
NUL, and NumPy drops the masks of masked arrays and the fractions of numbers, all without an error."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any, Dict, Optional

import numpy as np

from ._lib import ArgumentError

INT_MAX = 2 ** 31 - 1  # of a C int
INT64_MAX = 2 ** 63 - 1


def integer(name: str, value: Any, least: int = -INT64_MAX - 1, most: int = INT64_MAX) -> int:
    """An integer of Python, NumPy or torch, in the range.  Not a bool, a float or text."""
    is_bool = isinstance(value, bool) or str(getattr(value, "dtype", "")).endswith("bool")
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    if is_bool or number is None:
        raise ArgumentError(f"{name}: expected an integer, got {value!r} of type {type(value).__name__}")
    if not least <= number <= most:
        upto = "on" if most == INT64_MAX else f"to {most}"
        raise ArgumentError(f"{name}: expected an integer from {least} {upto}, got {number}")
    return number


def size(name: str, value: Any) -> int:
    """A number of elements."""
    return integer(name, value, 0)


def real(name: str, value: Any) -> float:
    """A number of Python or NumPy as a float; not text."""
    try:
        if isinstance(value, (str, bytes, bytearray)):
            raise TypeError
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise ArgumentError(f"{name}: expected a number, got {value!r} of type "
                            f"{type(value).__name__}") from None


def text(name: str, value: Any) -> bytes:
    """A text as C has it, which ends at its first NUL: so there must be none inside."""
    if not isinstance(value, str):
        raise ArgumentError(f"{name}: expected text, got {value!r} of type {type(value).__name__}")
    at = value.find("\0")
    if at >= 0:
        raise ArgumentError(f"{name}: the text has a NUL character at position {at}; remove it, as what "
                            "follows would be ignored")
    try:
        return value.encode()
    except UnicodeEncodeError as e:
        raise ArgumentError(f"{name}: the text has no form in UTF-8: {e.reason} at position "
                            f"{e.start}") from None


def plain(name: str, value: Any) -> Any:
    """A masked array without masked elements as a plain one, in the same memory; all else as it is."""
    if isinstance(value, (list, tuple)) and any(isinstance(v, np.ma.MaskedArray) for v in value):
        value = np.ma.asarray(value)
    if not isinstance(value, np.ma.MaskedArray):
        return value
    masked = int(np.ma.count_masked(value))
    if masked:
        raise ArgumentError(f"{name}: {masked} of {value.size} elements are masked, and masks are not "
                            "known here; give .filled(0), or only the elements that count")
    return value.view(np.ndarray)


def array(name: str, value: Any, dtype: Optional[np.dtype] = None) -> np.ndarray:
    """np.asarray, with the errors of this package.  dtype: what numbers and lists become when all of
    them keep their values; floats may be rounded, but integers may not wrap."""
    value = plain(name, value)
    if isinstance(value, np.ndarray):
        return value
    try:
        given = np.asarray(value)
    except Exception as e:
        raise ArgumentError(f"{name}: not an array: {e}") from None
    if dtype is None or given.dtype == dtype:
        return given
    try:
        out = given.astype(dtype, casting="unsafe" if given.size == 0 else "same_kind")
    except TypeError:
        raise ArgumentError(f"{name}: expected elements of {dtype}, got {given.dtype}") from None
    if dtype.kind in "iu" and not np.array_equal(out, given):
        raise ArgumentError(f"{name}: expected integers that {dtype} holds, got {given.min()} to "
                            f"{given.max()}")
    return out


def named(value: Any, more: Mapping[str, Any]) -> Dict[str, Any]:
    """Arrays by name, as a call gives them: a mapping or nothing, and keywords."""
    if value is not None and not hasattr(value, "keys"):
        raise ArgumentError(f"arrays: expected a mapping of names to arrays, or keywords, got {value!r:.60} of "
                            f"type {type(value).__name__}")
    return {**(value or {}), **more}
