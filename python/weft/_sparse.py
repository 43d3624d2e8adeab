# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""What users have, as what operators take: sparse matrices of SciPy and torch as structures that are
kept between calls, dense arrays of NumPy and torch as pointers."""

from __future__ import annotations

import sys
import weakref
from typing import Any, Callable, Dict, Optional, Tuple

import numpy as np

from . import _check
from ._lib import ArgumentError

_INDEX = (np.dtype(np.int32), np.dtype(np.int64))
_TYPES = {np.dtype(np.float16): "f16", np.dtype(np.float32): "f32", np.dtype(np.float64): "f64"}
_WORDS = {"float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64"}
_KNOWN = "float16, bfloat16, float32 or float64"

# Of each format the arrays of the program, in the order in which users give them.
ARRAYS = {"csr": ("E.start", "E.j"), "csc": ("E.start", "E.i"), "coo": ("E.i", "E.j"),
          "ragged": ("E.start",)}


def bad(name: str, expected: Any, got: Any) -> ArgumentError:
    return ArgumentError(f"{name}: expected {expected}, got {got}")


class Structure:
    """The places of the entries of a sparse matrix, with all that was worked out for them.  The
    library has copies of the arrays and compares them in each call, unless nobody can have changed
    them: they are read-only, or torch counts their changes."""

    __slots__ = ("format", "shape", "nnz", "version", "counted", "arrays", "alive", "sites")

    def __init__(self, format: str, shape: Tuple[int, int], nnz: int):
        self.format = format
        self.shape = shape
        self.nnz = nnz  # -1: not known
        self.version: Any = None  # of torch: where the indices are and how often they were changed
        self.counted = False  # ... if it knows
        self.arrays: Tuple[Callable[[], np.ndarray], ...] = ()
        self.alive: Any = None  # weak references to what the user has
        self.sites: Dict[Any, Any] = {}  # of _ops, by operator, types and shapes

    def changes(self) -> bool:
        """May elements have changed since the last call?"""
        if self.counted:
            return False
        for array in self.arrays:
            if array().flags.writeable:
                return True
        return False


_known: Dict[Any, Structure] = {}  # by the ids of what it was made of, as long as that lives


def _remember(key, structure: Structure, parts) -> Structure:
    def drop(_ref, key=key):
        _known.pop(key, None)

    structure.alive = tuple(weakref.ref(p, drop) for p in parts)
    structure.arrays = structure.arrays or structure.alive
    _known[key] = structure
    return structure


def _check_index(name: str, array: Any) -> None:
    _check.plain(name, array)
    if not isinstance(array, np.ndarray) or array.ndim != 1 or array.dtype not in _INDEX:
        raise bad(name, "a vector of int32 or int64", describe(array))
    if array.strides[0] % array.itemsize:
        raise bad(name, "a step of whole elements", f"one of {array.strides[0]} bytes")


def _of_arrays(format: str, one, two, m: int, n: int) -> Structure:
    key = (id(one), id(two), m, n, format)
    found = _known.get(key)
    if found is not None:
        return found
    names = {"csr": ("indptr", "indices"), "csc": ("indptr", "indices"), "coo": ("row", "col")}[format]
    _check_index(f"A: {names[0]}", one)
    _check_index(f"A: {names[1]}", two)
    want = len(two) if format == "coo" else (m if format == "csr" else n) + 1
    if len(one) != want:
        raise bad(f"A: {names[0]}", f"{want} elements", len(one))
    return _remember(key, Structure(format, (m, n), len(two)), (one, two))


def _of_starts(start: np.ndarray) -> Structure:
    """Only the rows, as segments of what lies in order."""
    key = (id(start), "ragged")
    found = _known.get(key)
    if found is not None:
        return found
    _check_index("A", start)
    if len(start) == 0:
        raise bad("A", "a vector that begins with 0", "an empty one")
    return _remember(key, Structure("ragged", (len(start) - 1, 0), -1), (start,))


def untransformed() -> Any:
    """Inside of it, torch lets read the memory of a tensor while a transform of functions is active."""
    return sys.modules["torch"]._C._DisableFuncTorch()


def keep(store: Dict[Any, Any], key: Any, make: Callable[[], Any]) -> Any:
    """The tensors that a store has under a key; if it has none, those that make() gives, which it keeps.
    Later calls may use them for anything: they are not of inference mode, which gradients refuse, and no
    transform of functions that is active wraps them.  Tensors of a trace are not kept."""
    found = store.get(key)
    if found is None:
        from ._torch_ad import is_traced

        if is_traced():
            return make()
        torch = sys.modules["torch"]
        if not torch.is_inference_mode_enabled() and not torch._C._are_functorch_transforms_active():
            found = store[key] = make()
            return found
        with torch.inference_mode(False), untransformed():
            found = store[key] = make()
    return found


def tensors_of(arrays: Dict[str, np.ndarray]) -> Dict[str, Any]:
    """Copies as tensors."""
    return {name: sys.modules["torch"].tensor(a) for name, a in arrays.items()}


def _of_torch(tensor: Any) -> Structure:
    torch = sys.modules["torch"]
    if tensor.layout is torch.sparse_csr:
        format, one, two = "csr", tensor.crow_indices(), tensor.col_indices()
    elif tensor.layout is torch.sparse_csc:
        format, one, two = "csc", tensor.ccol_indices(), tensor.row_indices()
    else:
        raise bad("A", "a torch tensor of layout sparse_csr or sparse_csc", tensor.layout)
    counted = not tensor.is_inference()
    version = (one.data_ptr(), two.data_ptr(), *((one._version, two._version) if counted else ()))
    key = (id(tensor), "torch")
    found = _known.get(key)
    if found is not None and found.version == version:
        return found
    if tensor.device.type != "cpu":
        raise bad("A", "a tensor on the CPU", tensor.device)
    if tensor.ndim != 2:
        raise bad("A", "2 dimensions", tensor.ndim)
    structure = Structure(format, tuple(tensor.shape), two.shape[0])
    structure.version, structure.counted = version, counted
    views = (one.numpy(), two.numpy())  # the memory of the indices, which the tensor has too
    structure.arrays = tuple(lambda view=view: view for view in views)
    return _remember(key, structure, (tensor,))


class With:
    """The structure of a matrix with other values."""

    __slots__ = ("of", "values")

    def __init__(self, of: Any, values: Any):
        self.of, self.values = of, values


def sparse(A: Any) -> Tuple[Structure, Any]:
    """The structure of a sparse matrix, and its values (None when it has none)."""
    if isinstance(A, With):
        return segments(A.of)[0], A.values
    if isinstance(A, tuple):
        if len(A) != 4:
            raise bad("A", "(indptr, indices, data, shape)", f"a tuple of {len(A)}")
        return _of_arrays("csr", A[0], A[1], *_shape_of(A[3])), A[2]
    format = getattr(A, "format", None)
    if format == "csr" or format == "csc":
        m, n = A.shape
        return _of_arrays(format, A.indptr, A.indices, m, n), A.data
    if format == "coo":
        m, n = A.shape
        return _of_arrays("coo", A.row, A.col, m, n), A.data
    if is_torch(A):
        with untransformed():
            return _of_torch(A), A.values()
    if isinstance(format, str):
        raise bad("A", "a matrix in format csr, csc or coo", f"{format}; convert it with A.tocsr()")
    raise bad("A", "a weft.Graph, an edge_index, a SciPy matrix, a sparse tensor of torch or "
              "(indptr, indices, data, shape)", describe(A))


def segments(A: Any) -> Tuple[Structure, Any]:
    """The same, or from the starts of the rows alone."""
    return (_of_starts(A), None) if isinstance(A, np.ndarray) else sparse(A)


def _shape_of(shape: Any) -> Tuple[int, int]:
    try:
        m, n = shape
    except (TypeError, ValueError):
        raise bad("A: shape", "two sizes", repr(shape)) from None
    return _check.size("A: shape", m), _check.size("A: shape", n)


def arrays_of(structure: Structure) -> Tuple[np.ndarray, ...]:
    """The arrays of a structure that is alive."""
    return tuple(array() for array in structure.arrays)


def freeze(A: Any) -> Any:
    """Makes the structure arrays of A read-only and returns A.  Then calls need not compare them
    with those of the call before."""
    if not is_torch(A):
        structure, _ = segments(A)
        for array in arrays_of(structure):
            array.flags.writeable = False
    return A


def forget(A: Any) -> None:
    """Frees what is kept for the structure of A.  That happens by itself when its arrays go."""
    if is_torch(A):
        _known.pop((id(A), "torch"), None)
        return
    structure, _ = segments(A)
    for key in [k for k, s in _known.items() if s is structure]:
        del _known[key]


def is_torch(x: Any) -> bool:
    """Is it a torch tensor?  torch is not imported to find out."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(x, torch.Tensor)


def records(*arrays: Any) -> bool:
    """Must torch see what is done to one of them: for a gradient, a tangent or a transform?"""
    if "torch" not in sys.modules or not any(is_torch(x) for x in arrays):
        return False
    from ._torch_ad import is_watched

    return any(is_watched(x) for x in arrays)


def describe(x: Any) -> str:
    if is_torch(x):
        return f"a torch tensor of {x.dtype} {tuple(x.shape)}"
    if isinstance(x, np.ndarray):
        return f"an array of {x.dtype} {x.shape}"
    return type(x).__name__


def array_of(name: str, x: Any) -> np.ndarray:
    """A dense operand whose elements Python looks at, as an array."""
    if not is_torch(x):
        return _check.array(name, x)
    if x.device.type != "cpu" or str(x.layout) != "torch.strided":
        raise bad(name, "a dense tensor on the CPU", f"{x.layout} on {x.device}")
    return x.detach().numpy()


def type_name(x: Any) -> Optional[str]:
    """What programs call the elements of an array or a tensor; None: operators take no such elements."""
    if isinstance(x, np.ndarray) and x.dtype in _TYPES:
        return _TYPES[x.dtype]
    return _WORDS.get(str(x.dtype).rpartition(".")[2])


def type_of(name: str, x: Any) -> str:
    """The same, of an argument that must have one."""
    if not isinstance(x, np.ndarray) and not is_torch(x):
        raise bad(name, "a NumPy array or a torch tensor", describe(x))
    found = type_name(x)
    if found is None:
        raise bad(name, f"elements of {_KNOWN}", x.dtype)
    return found


def cast(*operands: Any) -> Tuple[Any, ...]:
    """Operands as they are; in a region of torch.autocast, which leaves tensors of several types, all in the type that
    torch promotes them to.  None stays."""
    types = {x.dtype for x in operands if is_torch(x) and x.is_floating_point()}
    if len(types) < 2 or not sys.modules["torch"].is_autocast_enabled("cpu"):
        return operands
    dtype, *others = types
    for other in others:
        dtype = sys.modules["torch"].promote_types(dtype, other)
    return tuple(x.to(dtype) if is_torch(x) and x.is_floating_point() else x for x in operands)


def dense(x: Any, name: str) -> Tuple[Any, str, Tuple[int, ...], int]:
    """A dense operand without gaps: it, or a copy; its type, shape and address."""
    if type(x) is not np.ndarray:
        if is_torch(x):
            return _dense_torch(x, name)
        given, x = x, _check.array(name, x)
        if x.dtype.kind in "OUS":
            raise bad(name, "an array or a tensor", describe(given))
    kind = type_of(name, x)
    flags = x.flags
    if not (flags.c_contiguous and flags.aligned):
        x = x.copy(order="C")
    return x, kind, x.shape, x.ctypes.data


def _dense_torch(x: Any, name: str) -> Tuple[Any, str, Tuple[int, ...], int]:
    torch = sys.modules["torch"]
    kind = type_of(name, x)
    if x.device.type != "cpu" or x.layout is not torch.strided:
        raise bad(name, "a dense tensor on the CPU", f"{x.layout} on {x.device}")
    if not x.is_contiguous() or x.is_neg():
        x = x.resolve_neg().contiguous()
    return x, kind, tuple(x.shape), x.data_ptr()


def empty(shape: Tuple[int, ...], like: Any, integer: bool = False) -> Tuple[Any, int]:
    """A new array of the kind and type of another one, and its address."""
    if isinstance(like, np.ndarray):
        x = np.empty(shape, np.int64 if integer else like.dtype)
        return x, x.ctypes.data
    torch = sys.modules["torch"]
    x = torch.empty(shape, dtype=torch.int64 if integer else like.dtype)
    return x, x.data_ptr()


def target(out: Any, shape: Tuple[int, ...], kind: str) -> Tuple[Any, int]:
    """Where to compute what goes to `out`: there if it has no gaps, else in a new array."""
    if isinstance(out, np.ndarray):
        _check.plain("out", out)
        got = type_name(out) or str(out.dtype)
        flags = out.flags
        plain, writeable = flags.c_contiguous and flags.aligned, flags.writeable
    elif is_torch(out):
        torch = sys.modules["torch"]
        got = type_name(out) or str(out.dtype)
        if out.device.type != "cpu" or out.layout is not torch.strided:
            raise bad("out", "a dense tensor on the CPU", f"{out.layout} on {out.device}")
        if out.requires_grad and torch.is_grad_enabled():
            raise bad("out", "a tensor without requires_grad", "one that records operations")
        plain, writeable = out.is_contiguous(), True
    else:
        raise bad("out", "an array to write to", describe(out))
    if got != kind or tuple(out.shape) != shape:
        raise bad("out", f"{kind} of shape {shape}", f"{got} of shape {tuple(out.shape)}")
    if not writeable:
        raise bad("out", "an array that can be written", "a read-only one")
    if not plain:
        return empty(shape, out)
    return out, out.ctypes.data if isinstance(out, np.ndarray) else out.data_ptr()
