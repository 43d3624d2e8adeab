# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""Weft: sparse and equivariant kernels from small programs.

    import weft
    spmm = weft.Program(text).compile()
    C = spmm(A=A, B=B)

The language of programs is described in docs/ir.md, kernels in docs/running.md.  This package holds
no algorithm: it passes arrays to libweft.  All calls of a process share one context: calls from
several threads wait for each other, and each uses all threads of the pool.
"""

from importlib import import_module
from typing import Any, List

from . import _check, _lib, masks
from ._lib import (
    ArgumentError,
    BindError,
    CheckError,
    Error,
    FileError,
    LimitError,
    OutOfMemory,
    ParseError,
    RunError,
)
from ._attention import attention, paged_attention
from ._conv import Convolution, Edges
from ._edges import Tiles
from ._conv3d import KernelMap, conv3d, kernel_map
from ._graph import Graph
from ._irreps import Irrep, Irreps, wigner_3j, wigner_D
from ._matrix import sparse_add, sparse_mul, spgemm
from ._message import gat, gatv2, message, rgms
from ._neighbours import Atoms, Neighbours, atoms, neighbours
from ._o3 import Contraction, Linear, Product, SphericalHarmonics
from ._ops import sddmm, segment_reduce, softmax, spmm, spmv
from ._problem import Instruction, TPProblem
from ._program import Argument, Info, Kernel, Program
from ._sparse import forget, freeze
from ._tune import Progress, Tuned, tune
from ._weights import SparseWeight, grouped_mm, sparse_linear

__version__ = _lib.lib.weft_version().decode()

__all__ = [
    "Argument", "ArgumentError", "Atoms", "BindError", "CheckError", "Contraction", "Convolution", "Edges",
    "Error", "FileError", "Graph", "Info", "Instruction", "Irrep", "Irreps", "Kernel", "KernelMap",
    "LimitError", "Linear", "Neighbours", "OutOfMemory", "ParseError", "Product", "Program", "Progress",
    "RunError", "SparseWeight", "SphericalHarmonics", "TPProblem", "Tiles", "Tuned", "atoms", "attention",
    "conv3d", "forget", "freeze", "gat", "gatv2", "grouped_mm", "kernel_map", "masks", "message",
    "neighbours", "paged_attention", "rgms", "sddmm", "segment_reduce", "set_threads", "softmax", "sparse_add",
    "sparse_linear", "sparse_mul", "spgemm", "spmm", "spmv", "tune", "wigner_3j", "wigner_D",
]

# What needs torch, which is imported when one of these is first asked for.
_TORCH = {"TensorProduct": "_oeq", "TensorProductConv": "_oeq", "torch_to_oeq_dtype": "_oeq",
          "torch_ext_so_path": "_oeq", "transpose_irreps": "_oeq", "accelerate": "models",
          "restore": "models"}
_TORCH_MODULES = ("models", "nn", "o3", "torch")


def __getattr__(name: str) -> Any:
    if name not in _TORCH and name not in _TORCH_MODULES:
        raise AttributeError(f"module 'weft' has no attribute {name!r}")
    try:
        import_module("torch")
    except ImportError:
        raise ImportError(f"weft.{name} needs torch, 2.10 or later: pip install torch") from None
    if name in _TORCH_MODULES:
        return import_module("." + name, __name__)
    return getattr(import_module("." + _TORCH[name], __name__), name)


def __dir__() -> List[str]:
    hidden = ("__doc__", "__file__", "__name__", "__path__", "__version__")
    return sorted([*__all__, *_TORCH, *_TORCH_MODULES, *hidden])


def set_threads(n: int) -> None:
    """How many threads kernels run on; 0: as WEFT_NUM_THREADS says, else one for each CPU."""
    number = _check.integer("threads", n, 0, _check.INT_MAX)
    with _lib.lock:
        _lib.check(_lib.lib.weft_ctx_threads(_lib.context(), number))
