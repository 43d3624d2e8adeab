# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""libweft through ctypes: its structs, its functions, its statuses as exceptions, one context."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from ctypes import (POINTER, Structure, byref, c_char_p, c_double, c_int, c_int64, c_size_t, c_uint64,
                    c_void_p)
from pathlib import Path


class Error(Exception):
    """What the library refuses; the message is the library's own, with the remedy."""


class ArgumentError(Error, ValueError):
    """A call that makes no sense: an unknown name, a wrong type."""


class ParseError(Error, ValueError):
    """A text or a file that does not read."""


class CheckError(Error, ValueError):
    """A program that reads but has no meaning."""


class BindError(Error, ValueError):
    """Sizes, shapes or structure that do not fit the program."""


class RunError(Error, ArithmeticError):
    """Data that a run cannot go on with: an index out of range, integer overflow."""


class FileError(Error, OSError):
    """The system refused a file."""


class LimitError(Error):
    """Larger than a stated limit, or not possible so far."""


class OutOfMemory(Error, MemoryError):
    """There is not enough memory."""


_ERRORS = [
    Error, ArgumentError, ParseError, CheckError, BindError, RunError, FileError, LimitError,
    OutOfMemory,
]  # by status

SIZE, INPUT, OUTPUT, INOUT = range(4)  # weft_role
SOURCE, HEADER = range(2)  # weft_part


class Tensor(Structure):
    _fields_ = [("data", c_void_p), ("type", c_int), ("ndim", c_int),
                ("shape", POINTER(c_int64)), ("stride", POINTER(c_int64))]


class Arg(Structure):
    _fields_ = [("name", c_char_p), ("role", c_int), ("type", c_int), ("ndim", c_int),
                ("structure", c_int)]


class Matrix(Structure):
    _fields_ = [("start", c_char_p), ("row", c_char_p), ("col", c_char_p)]


class Grad(Structure):
    _fields_ = [("wrt", POINTER(c_char_p)), ("of", POINTER(c_char_p)), ("save", POINTER(c_char_p)),
                ("nwrt", c_int), ("nof", c_int), ("nsave", c_int), ("forward", c_int)]


class Info(Structure):
    _fields_ = [("target", c_char_p), ("isa", c_char_p), ("how", c_char_p), ("key", c_char_p),
                ("why", c_char_p), ("phases", c_int), ("parallel", c_int)]


class Cost(Structure):
    _fields_ = [(name, c_double) for name in (
        "flops", "read", "written", "gathered", "loads", "stores", "compute_s", "ports_s", "stream_s",
        "gather_s", "limit_s", "predicted_s")]


class Machine(Structure):
    _fields_ = [("text", c_char_p), ("threads", c_int), ("measured", c_int), ("cache", c_int64 * 3),
                ("fma_f32", c_double * 2), ("fma_f64", c_double * 2), ("triad", (c_double * 2) * 4)]


class Tuning(Structure):
    _fields_ = [("what", c_char_p), ("schedule", c_char_p), ("why", c_char_p), ("done", c_int),
                ("of", c_int), ("elapsed_s", c_double), ("budget_s", c_double), ("best", c_char_p),
                ("best_s", c_double), ("default_s", c_double)]


TUNE_FN = ctypes.CFUNCTYPE(c_int, c_void_p, POINTER(Tuning))


class Tune(Structure):
    _fields_ = [("seconds", c_double), ("top", c_int), ("tell", TUNE_FN), ("user", c_void_p)]


class Tuned(Structure):
    _fields_ = [("schedule", c_char_p), ("seconds", c_double), ("default_s", c_double),
                ("pick_s", c_double), ("points", c_int), ("compiled", c_int), ("timed", c_int),
                ("wrong", c_int), ("stopped", c_int), ("turns", c_int), ("spread", c_double)]


class Atoms(Structure):
    _fields_ = [("n", c_int64), ("pos", c_void_p), ("cell", c_double * 9), ("pbc", c_int * 3),
                ("kind", c_void_p), ("kinds", c_int), ("name", POINTER(c_char_p))]


class Neighbours(Structure):
    _fields_ = [("n", c_int64), ("nnz", c_int64), ("type", c_int), ("start", c_void_p),
                ("receiver", c_void_p), ("sender", c_void_p), ("shift", c_void_p),
                ("vec", c_void_p), ("dist", c_void_p)]


class MaskIn(Structure):
    _fields_ = [("source", c_char_p), ("start", c_void_p), ("col", c_void_p), ("block", c_int64),
                ("n", c_int64), ("m", c_int64), ("copies", c_int64), ("lq", c_void_p), ("lk", c_void_p),
                ("bi", c_int), ("bj", c_int), ("w", c_int64), ("causal", c_int), ("type", c_int)]


class Mask(Structure):
    _fields_ = [("nnz", c_int64), ("tiles", c_int64), ("blocks", c_int64), ("pieces", c_int64),
                ("w", c_int64), ("most", c_int64), ("patterns", c_int64), ("split", c_int),
                ("start", c_void_p), ("row", c_void_p), ("j", c_void_p), ("pat", c_void_p),
                ("x", c_void_p)]


class Places(Structure):
    _fields_ = [("n", c_int64), ("starts", c_int64), ("indices", c_int64), ("stored", c_int64),
                ("at", c_void_p), ("start", c_void_p), ("index", c_void_p), ("row", c_void_p)]


class Voxels(Structure):
    _fields_ = [("n", c_int64), ("type", c_int), ("coord", c_void_p), ("batch", c_int64),
                ("shape", c_int64 * 3), ("kind", c_int), ("kernel", c_int64 * 3),
                ("stride", c_int64 * 3), ("padding", c_int64 * 3), ("dilation", c_int64 * 3),
                ("extra", c_int64 * 3), ("strip", c_int64)]


class KernelMap(Structure):
    _fields_ = [(n, c_int64) for n in ("n_in", "n_out", "offsets", "strip", "strips", "groups", "pairs")] + \
        [("shape", c_int64 * 3)] + \
        [(n, c_void_p) for n in ("coord", "group_start", "offset", "pair_start", "row", "input")]


class EdgeList(Structure):
    _fields_ = [("nodes", c_int64), ("senders", c_int64), ("n", c_int64), ("type", c_int),
                ("receiver", c_void_p), ("sender", c_void_p)]


class Tiles(Structure):
    _fields_ = [("tiles", c_int64), ("pairs", c_int64), ("relation", c_void_p), ("start", c_void_p),
                ("sender", c_void_p), ("at", c_void_p), ("first", c_void_p), ("place", c_void_p)]


class ConvInfo(Structure):
    _fields_ = [("x", c_int64), ("y", c_int64), ("w", c_int64), ("z", c_int64), ("hidden", c_int64),
                ("shared", c_int), ("type", c_int), ("weight_type", c_int)]


class ConvArrays(Structure):  # weft_conv_in and weft_conv_out
    _fields_ = [("x", c_void_p), ("y", c_void_p), ("w", c_void_p), ("m", c_void_p)]


_VERBOSE = ctypes.CFUNCTYPE(None, c_void_p, c_char_p)

# Of each function what it takes; all of these return a status.
_FUNCTIONS = {
    "weft_ctx_threads": [c_void_p, c_int],
    "weft_ctx_compiler": [c_void_p],
    "weft_ctx_verbose": [c_void_p, _VERBOSE, c_void_p],
    "weft_prog_parse": [c_void_p, c_char_p, c_char_p, c_size_t, POINTER(c_void_p)],
    "weft_prog_op": [c_void_p, c_char_p, POINTER(c_void_p)],
    "weft_prog_o3": [c_void_p, c_char_p, POINTER(c_void_p)],
    "weft_o3_tell": [c_void_p, c_char_p, POINTER(c_char_p)],
    "weft_prog_print": [c_void_p, POINTER(c_char_p)],
    "weft_prog_emit": [c_void_p, c_char_p, c_int, POINTER(c_char_p)],
    "weft_prog_nargs": [c_void_p, POINTER(c_int)],
    "weft_prog_arg": [c_void_p, c_int, POINTER(Arg)],
    "weft_prog_extent": [c_void_p, c_char_p, c_int, POINTER(c_char_p)],
    "weft_prog_bound": [c_void_p, c_char_p, POINTER(c_char_p)],
    "weft_prog_matrix": [c_void_p, c_char_p, POINTER(Matrix)],
    "weft_prog_batch": [c_void_p, POINTER(c_char_p), c_int, POINTER(c_void_p)],
    "weft_prog_grad": [c_void_p, POINTER(Grad), POINTER(c_void_p)],
    "weft_args_new": [c_void_p, POINTER(c_void_p)],
    "weft_args_size": [c_void_p, c_char_p, c_int64],
    "weft_args_bind": [c_void_p, c_char_p, POINTER(Tensor)],
    "weft_args_hold": [c_void_p, c_char_p, c_int],
    "weft_args_changed": [c_void_p, c_char_p],
    "weft_args_get": [c_void_p, c_char_p, POINTER(Tensor)],
    "weft_args_shape": [c_void_p, c_char_p, POINTER(c_int64)],
    "weft_machine_get": [c_void_p, c_int, POINTER(Machine)],
    "weft_args_cost": [c_void_p, c_int, POINTER(Cost)],
    "weft_run": [c_void_p],
    "weft_kernel_compile": [c_void_p, POINTER(c_void_p)],
    "weft_kernel_run": [c_void_p, c_void_p],
    "weft_kernel_schedule": [c_void_p, c_char_p],
    "weft_kernel_tune": [c_void_p, c_void_p, POINTER(Tune), POINTER(Tuned)],
    "weft_kernel_info": [c_void_p, POINTER(Info)],
    "weft_kernel_source": [c_void_p, POINTER(c_char_p)],
    "weft_atoms_make": [c_void_p, c_char_p, POINTER(Atoms)],
    "weft_neighbours_find": [c_void_p, POINTER(Atoms), c_double, POINTER(c_int64)],
    "weft_neighbours_get": [c_void_p, POINTER(Neighbours)],
    "weft_mask_make": [c_void_p, POINTER(MaskIn), POINTER(Mask)],
    "weft_mask_random": [c_void_p, c_uint64, c_int64, c_void_p],
    "weft_pages_make": [c_void_p, c_void_p, c_void_p, c_int64, c_int64, c_int64, c_int64, c_void_p, c_void_p, c_void_p],
    "weft_places_make": [c_void_p, c_char_p, c_void_p, c_int64, c_int64, POINTER(Places)],
    "weft_kernel_map_make": [c_void_p, POINTER(Voxels), POINTER(KernelMap)],
    "weft_kernel_map_turn": [c_void_p, POINTER(KernelMap), POINTER(KernelMap)],
    "weft_edges_new": [c_void_p, POINTER(EdgeList), POINTER(c_void_p)],
    "weft_rows_make": [c_void_p, POINTER(EdgeList), c_int, c_void_p, c_void_p, c_void_p],
    "weft_tiles_make": [c_void_p, POINTER(EdgeList), c_void_p, c_int64, c_int64, POINTER(Tiles)],
    "weft_conv_new": [c_void_p, c_char_p, POINTER(c_void_p)],
    "weft_conv_get": [c_void_p, POINTER(ConvInfo)],
    "weft_conv_forward": [c_void_p, c_void_p, POINTER(ConvArrays), c_void_p],
    "weft_conv_backward": [c_void_p, c_void_p, POINTER(ConvArrays), c_void_p, POINTER(ConvArrays)],
    "weft_conv_double_backward": [c_void_p, c_void_p, POINTER(ConvArrays), c_void_p,
                                  POINTER(ConvArrays), POINTER(ConvArrays), c_void_p],
}


def _open() -> ctypes.CDLL:
    """The library beside this file, as a wheel has it, or the one that WEFT_LIBRARY names."""
    path = os.environ.get("WEFT_LIBRARY") or str(Path(__file__).with_name("libweft.so"))
    try:
        lib = ctypes.CDLL(path)
    except OSError as e:
        raise ImportError(f"weft: {e}; install the package with `pip install .`, or set "
                          "WEFT_LIBRARY to the path of libweft.so") from None
    for name, takes in _FUNCTIONS.items():
        getattr(lib, name).argtypes = takes
        getattr(lib, name).restype = c_int
    for name in ("weft_prog_free", "weft_args_free", "weft_kernel_free", "weft_edges_free",
                 "weft_conv_free", "weft_ctx_free"):
        getattr(lib, name).argtypes = [c_void_p]
        getattr(lib, name).restype = None
    for name in ("weft_message", "weft_warning"):
        getattr(lib, name).argtypes = [c_void_p]
        getattr(lib, name).restype = c_char_p
    lib.weft_version.restype = c_char_p
    lib.weft_ctx_new.restype = c_void_p
    return lib


lib = _open()
# A context belongs to one thread at a time: whoever makes calls holds the lock, from the call to
# the end of its use of what the call gave.
lock = threading.RLock()
_context = None


def _before_fork() -> None:
    """Waits until no other thread is inside a call.  A child has a copy of the context, and of the
    threads only the one that forked: a call that another thread had begun would stay half done.
    What a hook raises is printed and the fork goes on, so an interrupt must not end the wait."""
    nested = lock._is_owned()  # a fork from a callback, or from a signal handler
    while True:
        try:
            lock.acquire()
            return
        except KeyboardInterrupt:
            if nested or lock._is_owned():  # it came when the lock was ours
                return


os.register_at_fork(before=_before_fork, after_in_parent=lock.release, after_in_child=lock.release)


@_VERBOSE
def _put_line(_user, line):
    print(line.decode(), file=sys.stderr, flush=True)


def context() -> int:
    """The one context of the process, made when it is first needed."""
    global _context
    if _context is None:
        _context = lib.weft_ctx_new()
        if _context is None:
            raise OutOfMemory("out of memory: no room for a context")
        if os.environ.get("WEFT_VERBOSE") == "1":
            check(lib.weft_ctx_verbose(_context, _put_line, None))
    return _context


def check(status: int) -> None:
    """Raises what a status other than 0 stands for."""
    if status != 0:
        text = lib.weft_message(_context).decode(errors="replace")
        raise _ERRORS[status if status < len(_ERRORS) else 0](text)


def new(function, *arguments) -> c_void_p:
    """The handle that a function gives by its last parameter."""
    out = c_void_p()
    check(function(*arguments, byref(out)))
    return out


def text(function, *arguments) -> str:
    """The text that a function gives by its last parameter."""
    out = c_char_p()
    check(function(*arguments, byref(out)))
    return out.value.decode()
