# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""Irreps of O(3), 3j symbols and D matrices.  All of it is asked of the library: see
docs/tensor-products.md for the conventions, which are those of e3nn."""

from __future__ import annotations

from typing import Any, Iterator, List, NamedTuple, Optional, Tuple, Union

import numpy as np

from . import _check, _lib
from ._lib import ArgumentError


def tell(question: str) -> str:
    """The answer of weft_o3_tell."""
    asked = _check.text("problem", question)
    with _lib.lock:
        return _lib.text(_lib.lib.weft_o3_tell, _lib.context(), asked)


class Slot(NamedTuple):
    """So many copies of an irrep, side by side."""

    mul: int
    l: int
    p: int  # 1 is even, -1 odd

    @property
    def dim(self) -> int:
        return self.mul * (2 * self.l + 1)

    def __str__(self) -> str:
        return f"{self.mul}x{self.l}{'e' if self.p == 1 else 'o'}"


class Sorted(NamedTuple):
    """Sorted irreps: slot i went to p[i], slot k of the result was inv[k]."""

    irreps: "Irreps"
    p: Tuple[int, ...]
    inv: Tuple[int, ...]


class Irreps(tuple):
    """A direct sum of irreps, from text as e3nn has it, "128x0e + 64x1o", from irreps of e3nn, or from
    slots (mul, l, p).  It is a tuple of slots.

    >>> weft.Irreps("2x1o + 0e").sort().irreps
    1x0e+2x1o
    """

    __slots__ = ()

    def __new__(cls, irreps: Any = "") -> "Irreps":
        if isinstance(irreps, Irreps):
            return irreps
        if not isinstance(irreps, str):
            irreps = _text_of(irreps)
        _check.text("irreps", irreps)
        if ";" in irreps:
            raise ArgumentError(f"irreps: expected text as in '8x0e + 4x1o', got {irreps!r}")
        text = tell(f"irreps; of={irreps}").strip()
        return super().__new__(cls, [_slot(word) for word in text.split("+") if word])

    @classmethod
    def spherical_harmonics(cls, lmax: int, p: int = -1) -> "Irreps":
        """One of each degree up to lmax; p is the parity of degree 1."""
        return cls([Slot(1, l, p ** l) for l in range(lmax + 1)])

    @property
    def dim(self) -> int:
        return int(self._ask("dim"))

    @property
    def num_irreps(self) -> int:
        return int(self._ask("num"))

    @property
    def lmax(self) -> int:
        if not self:
            raise ArgumentError("irreps: expected at least one for a largest degree, got none")
        return int(self._ask("lmax"))

    def slices(self) -> List[slice]:
        """Where each slot is in a row of features."""
        return [slice(*map(int, line.split())) for line in self._ask("slices").splitlines() if line]

    def sort(self) -> Sorted:
        """By degree, then parity, odd first; equals keep their order."""
        irreps, to, back = self._ask("sort").split("\n")[:3]
        return Sorted(Irreps(irreps), *(tuple(map(int, row.split()[1:])) for row in (to, back)))

    def simplify(self) -> "Irreps":
        """Neighbours of one irrep become one slot; slots of multiplicity 0 go."""
        return Irreps(self._ask("simplify").strip())

    def regroup(self) -> "Irreps":
        """Sorted, then simplified."""
        return Irreps(self._ask("regroup").strip())

    def filter(self, keep: Any = None, *, drop: Any = None) -> "Irreps":
        """The slots whose irrep is in `keep`, or is not in `drop`."""
        if (keep is None) == (drop is None):
            raise ArgumentError("filter: expected one of keep and drop, got "
                                + ("none" if keep is None else "both"))
        word, which = ("keep", keep) if drop is None else ("drop", drop)
        return Irreps(self._ask(f"filter; {word}={Irreps(which)}").strip())

    def __add__(self, other: Any) -> "Irreps":
        return Irreps([*self, *Irreps(other)])

    def __mul__(self, n: int) -> "Irreps":
        return Irreps(list(self) * n)

    __rmul__ = __mul__

    def __getitem__(self, i: Any) -> Any:
        item = super().__getitem__(i)
        return Irreps(item) if isinstance(i, slice) else item

    def __iter__(self) -> Iterator[Slot]:
        return super().__iter__()

    def __str__(self) -> str:
        return "+".join(map(str, super().__iter__()))

    __repr__ = __str__

    def __reduce__(self) -> tuple:
        return Irreps, (str(self),)

    def _ask(self, what: str) -> str:
        return tell(f"irreps; of={self}; do={what}")


def _slot(word: str) -> Slot:
    mul, _, irrep = word.partition("x")
    return Slot(int(mul), int(irrep[:-1]), 1 if irrep[-1] == "e" else -1)


def _text_of(irreps: Any) -> str:
    """Of slots, (mul, l, p) or (mul, (l, p)) or (mul, "1o") or "2x1o"; of irreps of e3nn, which print as
    text that reads back."""
    if type(irreps).__module__.split(".")[0] == "e3nn":
        return str(irreps)
    try:
        return "+".join(map(_slot_text, irreps))
    except (TypeError, ValueError):
        raise ArgumentError("irreps: expected text as in '8x0e + 4x1o', or slots (mul, l, p), got "
                            f"{irreps!r}") from None


def _slot_text(slot: Any) -> str:
    if isinstance(slot, str) or type(slot).__module__.split(".")[0] == "e3nn":
        return str(slot)
    mul, *irrep = slot
    if len(irrep) == 1:
        irrep = irrep[0] if isinstance(irrep[0], tuple) else [irrep[0]]
    if len(irrep) == 1:
        return f"{mul:d}x{irrep[0]}"
    l, p = irrep
    if p not in (1, -1):
        raise ValueError(p)
    return f"{mul:d}x{l:d}{'e' if p == 1 else 'o'}"


def wigner_3j(l1: int, l2: int, l3: int, *, signs: str = "e3nn") -> np.ndarray:
    """The 3j symbol in the real basis, (2 l1 + 1, 2 l2 + 1, 2 l3 + 1) in float64, each element the
    nearest double.  signs: "e3nn", as of its releases from 0.5 on, or "e3nn-0.4"."""
    l1, l2, l3 = (_check.integer(name, l) for name, l in (("l1", l1), ("l2", l2), ("l3", l3)))
    out = np.zeros((2 * l1 + 1, 2 * l2 + 1, 2 * l3 + 1)) if min(l1, l2, l3) >= 0 else None
    for line in tell(f"wigner; l={l1} {l2} {l3}; signs={signs}").splitlines():
        m1, m2, m3, value = line.split()
        out[int(m1), int(m2), int(m3)] = float(value)
    return out


def wigner_D(irreps: Union[str, Irreps], *, matrix: Any = None, angles: Any = None,
             quaternion: Optional[Any] = None) -> np.ndarray:
    """How features of these irreps turn: (dim, dim) in float64, for a matrix (3, 3) of O(3), for
    angles (alpha, beta, gamma) as e3nn has them, or for a quaternion, its real part first."""
    given = {"matrix": (matrix, 9), "angles": (angles, 3), "quaternion": (quaternion, 4)}
    rotation = [(word, np.asarray(_check.plain(word, v), float).ravel(), n) for word, (v, n) in given.items()
                if v is not None]
    if len(rotation) != 1:
        raise ArgumentError(f"wigner_D: expected one of {', '.join(given)}, got {len(rotation)}")
    (word, numbers, n), = rotation
    if numbers.size != n:
        raise ArgumentError(f"{word}: expected {n} numbers, got {numbers.size}")
    irreps = Irreps(irreps)
    text = tell(f"D; of={irreps}; {word}={' '.join(map(repr, numbers.tolist()))}")
    return np.array(text.split(), float).reshape(irreps.dim, irreps.dim)
