# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""Tuning: a call of an operator or a kernel in which the library searches for the fastest schedule."""

from __future__ import annotations

from ctypes import byref
from typing import Any, Callable, NamedTuple, Optional

from . import _check, _lib, _ops
from ._lib import check, lib


class Tuned(NamedTuple):
    """What a search has found: see weft_tuned in weft.h.  Seconds are those of a run; 0: not timed."""

    schedule: str  # "" is the default
    seconds: float
    default_seconds: float
    pick_seconds: float
    points: int
    compiled: int
    timed: int
    wrong: int
    stopped: bool
    turns: int = 0  # that it and the default had at the end, in which it won; 0: it is the default
    spread: float = 0.0  # of the times of these turns, by their median


class Progress(NamedTuple):
    """Where a search is: see weft_tuning in weft.h."""

    what: str  # "compile", "time" or "wrong"
    schedule: str
    why: str
    done: int
    of: int
    elapsed: float
    budget: float
    best: Optional[str]
    best_seconds: float
    default_seconds: float


def _text(s: Optional[bytes]) -> Optional[str]:
    return None if s is None else s.decode(errors="replace")


class Search:
    """Takes the place of weft_kernel_run for one call."""

    def __init__(self, seconds: float, top: int, progress: Optional[Callable[[Progress], Any]]):
        self._seconds, self._progress = _check.real("seconds", seconds), progress
        self._top = _check.integer("top", top, 0, _check.INT_MAX)
        if not self._seconds >= 0:
            raise _lib.ArgumentError(f"seconds: expected a number that is not negative, got {seconds}")
        self._raised: Optional[BaseException] = None
        self.found: Optional[Tuned] = None

    def _tell(self, _user, at) -> int:
        """Ctrl-C ends the search with what was found; what else `progress` raises ends it, too."""
        try:
            t = at.contents
            if self._progress is None:
                return 0
            texts = [_text(s) for s in (t.what, t.schedule, t.why)]
            return int(bool(self._progress(Progress(
                *texts, t.done, t.of, t.elapsed_s, t.budget_s, _text(t.best), t.best_s, t.default_s))))
        except KeyboardInterrupt:
            return 1
        except BaseException as e:
            self._raised = e
            return 1

    def __call__(self, kernel, args) -> int:
        tell = _lib.TUNE_FN(self._tell)
        opt, out = _lib.Tune(self._seconds, self._top, tell, None), _lib.Tuned()
        status = lib.weft_kernel_tune(kernel, args, byref(opt), byref(out))
        if self._raised is not None:
            raise self._raised
        if status == 0:
            self.found = Tuned(out.schedule.decode(), out.seconds, out.default_s, out.pick_s, out.points,
                               out.compiled, out.timed, out.wrong, bool(out.stopped), out.turns, out.spread)
        return status


def tune(op: Callable[..., Any], *arguments: Any, seconds: float = 30, top: int = 0,
         progress: Optional[Callable[[Progress], Any]] = None, **options: Any) -> Tuned:
    """Searches for the fastest schedule of an operator for these arguments, and keeps it: later calls
    with this structure, or one of its kind, use it.

    >>> weft.tune(weft.spmm, A, B, seconds=10)

    top: how many candidates begin (0: 24).  progress is called with a Progress now and then; the search
    ends when it returns something true.  Ctrl-C ends it, too, with the best so far."""
    if not callable(op):
        raise _lib.ArgumentError(f"op: expected an operator, as weft.spmm, got {op!r} of type "
                                 f"{type(op).__name__}")
    search = Search(seconds, top, progress)
    with _lib.lock:
        before, _ops.run_kernel = _ops.run_kernel, search
        try:
            op(*arguments, **options)
        finally:
            _ops.run_kernel = before
    if search.found is None:
        raise _lib.ArgumentError(f"{getattr(op, '__name__', op)} is no operator of this package")
    return search.found
