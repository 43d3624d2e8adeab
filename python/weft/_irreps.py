# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""Irreps of O(3), under the names of e3nn and with its rules; neither e3nn nor torch is needed.  3j
symbols and D matrices are asked of the library: see docs/tensor-products.md for the conventions."""

from __future__ import annotations

import itertools
import operator
import re
from typing import Any, Callable, Iterator, List, NamedTuple, Optional, Tuple, Union

import numpy as np

from . import _check, _lib
from ._lib import ArgumentError

_IRREP = re.compile(r"\s*(\d+)\s*([eoy])\s*", re.ASCII)
_SLOT = re.compile(r"(?:\s*(\d+)\s*x)?\s*(\d+)\s*([eoy])\s*", re.ASCII)


def tell(question: str) -> str:
    """The answer of weft_o3_tell."""
    asked = _check.text("problem", question)
    with _lib.lock:
        return _lib.text(_lib.lib.weft_o3_tell, _lib.context(), asked)


def _parity(l: int, letter: str) -> int:
    return {"e": 1, "o": -1, "y": (-1) ** l}[letter]


def _index(value: Any) -> Optional[int]:
    """An integer of Python or NumPy; None where it is none."""
    try:
        return None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        return None


class _Rotated:
    """What irreps have in common: matrices of rotations, as tensors of torch."""

    __slots__ = ()

    def D_from_angles(self, alpha: Any, beta: Any, gamma: Any, k: Any = None) -> Any:
        """How features turn: (..., dim, dim), for a rotation by gamma about y, then by beta about x, then
        by alpha about y, and k inversions.  Angles and k are tensors (...) of torch."""
        from . import _rotation
        return _rotation.of_angles(self._slots(), alpha, beta, gamma, k)

    def D_from_quaternion(self, q: Any, k: Any = None) -> Any:
        """The same for quaternions (..., 4), their real part first."""
        from . import _rotation
        return _rotation.of_quaternion(self._slots(), q, k)

    def D_from_matrix(self, R: Any) -> Any:
        """The same for matrices (..., 3, 3) of O(3): one of determinant -1 is an inversion too."""
        from . import _rotation
        return _rotation.of_matrix(self._slots(), R)

    def D_from_axis_angle(self, axis: Any, angle: Any) -> Any:
        """The same for rotations by angles (...) about axes (..., 3) of any length."""
        from . import _rotation
        return _rotation.of_axis_angle(self._slots(), axis, angle)


class Irrep(_Rotated, tuple):
    """An irrep of O(3): its degree l and its parity p, 1 or -1.  It is the tuple (l, p).

    >>> weft.Irrep("1o"), weft.Irrep(2, 1), weft.Irrep("1y").p
    (1o, 2e, -1)
    """

    __slots__ = ()

    def __new__(cls, l: Any, p: Optional[int] = None) -> "Irrep":
        given = l if p is None else (l, p)
        if p is None:
            if isinstance(l, Irrep):
                return l
            if isinstance(l, Slot):
                return l.ir
            match = _IRREP.fullmatch(l) if isinstance(l, str) else None
            if match:
                l = int(match[1])
                p = _parity(l, match[2])
            elif isinstance(l, tuple) and tuple.__len__(l) == 2:
                l, p = l
        degree, parity = _index(l), _index(p)
        if degree is None or degree < 0 or parity not in (1, -1):
            raise ArgumentError("irrep: expected text as in '1o', or a degree from 0 on and a parity 1 or "
                                f"-1, got {given!r}")
        return super().__new__(cls, (degree, parity))

    @property
    def l(self) -> int:  # noqa: E743
        return tuple.__getitem__(self, 0)

    @property
    def p(self) -> int:
        return tuple.__getitem__(self, 1)

    @property
    def dim(self) -> int:
        return 2 * self.l + 1

    def is_scalar(self) -> bool:
        """Is it 0e?"""
        return self == (0, 1)

    @classmethod
    def iterator(cls, lmax: Optional[int] = None) -> Iterator["Irrep"]:
        """All irreps, to the degree lmax: 0e, 0o, 1o, 1e, 2e, ..."""
        for l in itertools.count() if lmax is None else range(lmax + 1):
            yield cls(l, (-1) ** l)
            yield cls(l, -((-1) ** l))

    def __mul__(self, other: Any) -> Iterator["Irrep"]:
        """The irreps in the product of two."""
        other = Irrep(other)
        for l in range(abs(self.l - other.l), self.l + other.l + 1):
            yield Irrep(l, self.p * other.p)

    def __rmul__(self, n: int) -> "Irreps":
        return Irreps([(n, self)])

    def __add__(self, other: Any) -> "Irreps":
        return Irreps(self) + other

    def __radd__(self, other: Any) -> "Irreps":
        return Irreps(other) + self

    def __eq__(self, other: Any) -> bool:
        return tuple.__eq__(self, _read(Irrep, other))

    def __ne__(self, other: Any) -> bool:
        return not self == other

    __hash__ = tuple.__hash__

    def __repr__(self) -> str:
        return f"{self.l}{'e' if self.p == 1 else 'o'}"

    __str__ = __repr__

    def __getnewargs__(self) -> Tuple[int, int]:
        return self.l, self.p

    def _slots(self) -> List["Slot"]:
        return [Slot(1, self)]

    def _no_tuple(self, *_: Any) -> Any:
        raise NotImplementedError("an irrep is no list: it has a degree, .l, and a parity, .p")

    count = index = __contains__ = _no_tuple


class Slot(tuple):
    """So many copies of an irrep, side by side: the tuple (mul, ir)."""

    __slots__ = ()

    def __new__(cls, mul: Any, ir: Any = None) -> "Slot":
        if ir is None:
            mul, ir = mul
        number = _index(mul)
        if number is None or number < 0:
            raise ArgumentError(f"irreps: expected a multiplicity from 0 on, got {mul!r}")
        return super().__new__(cls, (number, Irrep(ir)))

    @property
    def mul(self) -> int:
        return self[0]

    @property
    def ir(self) -> Irrep:
        return self[1]

    @property
    def l(self) -> int:  # noqa: E743
        return self[1].l

    @property
    def p(self) -> int:
        return self[1].p

    @property
    def dim(self) -> int:
        return self[0] * self[1].dim

    def __repr__(self) -> str:
        return f"{self.mul}x{self.ir}"

    __str__ = __repr__

    def __getnewargs__(self) -> Tuple[int, Irrep]:
        return self.mul, self.ir


class Sorted(NamedTuple):
    """Sorted irreps: slot i went to p[i], slot k of the result was inv[k]."""

    irreps: "Irreps"
    p: Tuple[int, ...]
    inv: Tuple[int, ...]


class Irreps(_Rotated, tuple):
    """A direct sum of irreps: of text, "128x0e + 64x1o", of an irrep, or of a list of slots (mul, ir),
    (mul, l, p) or text.  Irreps of e3nn are taken, and e3nn takes these.  It is a tuple of slots, each with
    .mul and .ir; it equals irreps of e3nn and text that say the same.

    >>> weft.Irreps("2x1o + 0e").sort().irreps
    1x0e+2x1o
    >>> [(mul, ir.l) for mul, ir in weft.Irreps("2x1o + 0e")]
    [(2, 1), (1, 0)]
    """

    __slots__ = ()
    _e3nn_irreps_marker = True  # by which e3nn knows irreps of another class

    def __new__(cls, irreps: Any = None) -> "Irreps":
        if type(irreps) is cls:
            return irreps
        if irreps is None:
            slots: List[Slot] = []
        elif isinstance(irreps, str):
            slots = _slots_of_text(irreps)
        elif _is_irrep(irreps):
            slots = [Slot(1, irreps)]
        else:
            slots = _slots_of(irreps)
        return super().__new__(cls, slots)

    @classmethod
    def spherical_harmonics(cls, lmax: int, p: int = -1) -> "Irreps":
        """One of each degree up to lmax; p is the parity of degree 1."""
        return cls([(1, l, p ** l) for l in range(lmax + 1)])

    @property
    def dim(self) -> int:
        return sum(slot.dim for slot in self)

    @property
    def num_irreps(self) -> int:
        return sum(slot.mul for slot in self)

    @property
    def ls(self) -> List[int]:
        """The degree of each copy of an irrep."""
        return [ir.l for mul, ir in self for _ in range(mul)]

    @property
    def lmax(self) -> int:
        """The largest degree, of slots whose multiplicity is not 0."""
        largest = max((ir.l for mul, ir in self if mul), default=None)
        if largest is None:
            raise ArgumentError("irreps: expected at least one for a largest degree, got none")
        return largest

    def slices(self) -> List[slice]:
        """Where each slot is in a row of features."""
        ends = list(itertools.accumulate((slot.dim for slot in self), initial=0))
        return [slice(*ends[k:k + 2]) for k in range(len(self))]

    @property
    def slice_by_mul(self) -> "_Copies":
        """Some of the copies, counted over all slots: irreps.slice_by_mul[5:15]."""
        return _Copies(self)

    def randn(self, *size: int, normalization: str = "component", requires_grad: bool = False,
              dtype: Any = None, device: Any = None) -> Any:
        """A tensor of torch with random features in the dimension of size -1.  Each component has the
        variance 1, or with "norm" each irrep the length 1."""
        from . import _rotation
        return _rotation.randn(self, size, normalization, requires_grad, dtype, device)

    def sort(self) -> Sorted:
        """By degree, then parity, odd first; equals keep their order."""
        inv = tuple(sorted(range(len(self)), key=lambda i: (*self[i].ir, i)))
        return Sorted(Irreps([self[i] for i in inv]), tuple(np.argsort(inv).tolist()), inv)

    def simplify(self) -> "Irreps":
        """Neighbours of one irrep become one slot; slots of multiplicity 0 go."""
        some = self.remove_zero_multiplicities()
        return Irreps([(sum(slot.mul for slot in group), ir)
                       for ir, group in itertools.groupby(some, key=lambda slot: slot.ir)])

    def remove_zero_multiplicities(self) -> "Irreps":
        return Irreps([slot for slot in self if slot.mul])

    def regroup(self) -> "Irreps":
        """Sorted, then simplified."""
        return self.sort().irreps.simplify()

    def filter(self, keep: Any = None, *, drop: Any = None, lmax: Optional[int] = None) -> "Irreps":
        """The slots whose irrep is in `keep`, or is not in `drop`, or has a degree up to lmax.  keep and
        drop are irreps, a list of them, or a function of a slot."""
        given = [name for name, v in (("keep", keep), ("drop", drop), ("lmax", lmax)) if v is not None]
        if len(given) > 1:
            raise ArgumentError(f"filter: expected one of keep, drop and lmax, got {' and '.join(given)}")
        if lmax is not None:
            return Irreps([slot for slot in self if slot.l <= lmax])
        if keep is not None:
            return Irreps([slot for slot in self if _chooses(keep)(slot)])
        if drop is not None:
            return Irreps([slot for slot in self if not _chooses(drop)(slot)])
        return self

    def count(self, ir: Any) -> int:
        """How many copies there are of an irrep."""
        ir = Irrep(ir)
        return sum(slot.mul for slot in self if slot.ir == ir)

    def index(self, _: Any) -> int:
        raise NotImplementedError("an irrep can be in several slots: look at each")

    def __contains__(self, ir: Any) -> bool:
        return Irrep(ir) in [slot.ir for slot in self]

    def __add__(self, other: Any) -> "Irreps":
        return Irreps([*self, *Irreps(other)])

    def __radd__(self, other: Any) -> "Irreps":
        return Irreps(other) + self

    def __mul__(self, n: int) -> "Irreps":
        if _index(n) is None:
            kind = NotImplementedError if hasattr(n, "_e3nn_irreps_marker") else TypeError
            raise kind(f"irreps times {n!r}: irreps are repeated by an integer; products of irreps are made by "
                       "weft.o3.TensorProduct")
        return Irreps(list(self) * n)

    __rmul__ = __mul__

    def __getitem__(self, i: Any) -> Any:
        item = super().__getitem__(i)
        return Irreps(item) if isinstance(i, slice) else item

    def __iter__(self) -> Iterator[Slot]:
        return super().__iter__()

    def __eq__(self, other: Any) -> bool:
        return tuple.__eq__(self, _read(Irreps, other))

    def __ne__(self, other: Any) -> bool:
        return not self == other

    __hash__ = tuple.__hash__

    def __repr__(self) -> str:
        return "+".join(map(repr, self))

    __str__ = __repr__

    def __reduce__(self) -> tuple:
        return Irreps, (str(self),)

    def _slots(self) -> Iterator[Slot]:
        return iter(self)


class _Copies:
    """irreps.slice_by_mul."""

    def __init__(self, irreps: Irreps):
        self._irreps = irreps

    def __getitem__(self, which: slice) -> Irreps:
        if not isinstance(which, slice):
            raise IndexError(f"slice_by_mul: expected a slice, got {which!r}")
        start, stop, step = which.indices(self._irreps.num_irreps)
        if step != 1:
            raise NotImplementedError(f"slice_by_mul: expected steps of 1, got {step}")
        out, at, stop = [], 0, max(start, stop)
        for mul, ir in self._irreps:
            if (start <= at and at + mul <= stop) or (start < at + mul and at < stop):
                out.append((min(stop, at + mul) - max(start, at), ir))
            at += mul
        return Irreps(out)


def _read(cls: type, other: Any) -> Any:
    """What is compared with irreps: text as what it says, all else as it is."""
    if not isinstance(other, str):
        return other
    try:
        return cls(other)
    except ArgumentError:
        return other


def _is_irrep(x: Any) -> bool:
    """Of this package, or of e3nn: those are tuples whose degree is .l."""
    return isinstance(x, Irrep) or (isinstance(x, tuple) and hasattr(x, "l") and not hasattr(x, "mul"))


def _chooses(which: Any) -> Callable[[Slot], bool]:
    if callable(which):
        return which
    if isinstance(which, str) or not isinstance(which, (list, set, frozenset)):
        which = [slot.ir for slot in Irreps([which] if hasattr(which, "mul") else which)]
    some = {Irrep(ir[1] if hasattr(ir, "mul") else ir) for ir in which}
    return lambda slot: slot.ir in some


class NoIrreps(ArgumentError, TypeError):
    """Something of another type than text or a list of slots: a TypeError in e3nn."""


def _refused(irreps: Any, kind: type = ArgumentError) -> ArgumentError:
    return kind("irreps: expected text as in '8x0e + 4x1o', or slots (mul, ir) or (mul, l, p), "
                f"got {irreps!r}")


def _slots_of_text(text: str) -> List[Slot]:
    _check.text("irreps", text)
    if not text.strip():
        return []
    matches = [_SLOT.fullmatch(word) for word in text.split("+")]
    if None in matches:
        raise _refused(text)
    return [Slot(int(m[1] or 1), (int(m[2]), _parity(int(m[2]), m[3]))) for m in matches]


def _slots_of(irreps: Any) -> List[Slot]:
    """Of a list of slots, each (mul, ir), (mul, l, p), text or one irrep; of irreps of e3nn, which are such
    a list."""
    out: List[Slot] = []
    try:
        for slot in irreps:
            if isinstance(slot, str):
                out += _slots_of_text(slot)
            elif _is_irrep(slot):
                out.append(Slot(1, slot))
            else:
                mul, *ir = slot
                out.append(Slot(mul, tuple(ir) if len(ir) == 2 else ir[0]))
    except (ValueError, IndexError):
        raise _refused(irreps) from None
    except TypeError:
        raise _refused(irreps, NoIrreps) from None
    return out


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
