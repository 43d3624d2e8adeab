# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""Programs, kernels and calls of them.  What they compute is all in the library."""

from __future__ import annotations

import itertools
import os
import warnings
import weakref
from collections import OrderedDict
from collections.abc import Iterable
from ctypes import byref, c_int, cast, POINTER, c_char_p
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Set, Tuple, Union

import numpy as np

from . import _array, _check, _graph, _lib
from ._check import text as c_text
from ._lib import check, lib

Names = Union[str, "Iterable[str]", None]
Result = Union[np.ndarray, Dict[str, np.ndarray]]


class Argument(NamedTuple):
    """What a program wants bound, or gives: see weft_arg in weft.h."""

    name: str
    role: str  # "size", "input", "output" or "inout"
    type: str  # "f32", ...
    ndim: int
    structure: bool


class Info(NamedTuple):
    """How a kernel came to be: see weft_info in weft.h."""

    target: str
    isa: str
    how: str
    key: str
    why: str
    phases: int
    parallel: int


class Program:
    """A program, from its text.

    >>> spmm = weft.Program('''
    ... program spmm(m, n, f)
    ... axis I = dense(m), J = compressed(I, n), K = dense(f)
    ... f32 A[I, J], B[n, K], C[I, K]
    ... C[i, k] += A[i, j] * B[j, k]
    ... ''').compile()
    >>> C = spmm(A=scipy_csr_matrix, B=array)
    """

    def __init__(self, text: str, file: str = "program"):
        data, name = c_text("program", text), c_text("file", file)
        with _lib.lock:
            self._own(_lib.new(lib.weft_prog_parse, _lib.context(), name, data, len(data)))

    def _own(self, handle) -> None:
        self._handle = handle
        weakref.finalize(self, _free, lib.weft_prog_free, handle)
        self.args = _list_args(handle)
        self._kernel: Optional[Kernel] = None  # of calls

    @classmethod
    def _of(cls, handle) -> "Program":
        self = cls.__new__(cls)
        self._own(handle)
        return self

    @classmethod
    def read(cls, path: Union[str, "os.PathLike[str]"]) -> "Program":
        """The program in a file."""
        if not isinstance(path, (str, bytes, os.PathLike)):
            raise _lib.ArgumentError(f"path: expected the path of a file, got {path!r} of type "
                                     f"{type(path).__name__}")
        with open(path, encoding="utf-8") as f:
            return cls(f.read(), os.fsdecode(path))

    @classmethod
    def op(cls, spec: str) -> "Program":
        """The program of an operator, "spmm:f64:csc:heads": see docs/operators.md."""
        line = c_text("operator", spec)
        with _lib.lock:
            return cls._of(_lib.new(lib.weft_prog_op, _lib.context(), line))

    @classmethod
    def o3(cls, spec: str) -> "Program":
        """The program of a tensor product, a linear layer or spherical harmonics, "tp; in1=4x1o;
        in2=1o; out=0e+1e; mode=uvu": see docs/tensor-products.md."""
        line = c_text("problem", spec)
        with _lib.lock:
            return cls._of(_lib.new(lib.weft_prog_o3, _lib.context(), line))

    @property
    def text(self) -> str:
        """The program in its plain form, which reads back to the same program."""
        with _lib.lock:
            return _lib.text(lib.weft_prog_print, self._handle)

    @property
    def source(self) -> str:
        """The program as C that needs no library, as `weft emit` prints it."""
        with _lib.lock:
            return _lib.text(lib.weft_prog_emit, self._handle, b"c", _lib.SOURCE)

    def grad(self, wrt: Names = None, of: Names = None, save: Names = None,
             forward: bool = False) -> "Program":
        """The program of the gradient: it takes d_Z for each output Z (of) and gives d_X for each
        input X (wrt); what is in `save` it takes as an input instead of computing it again.
        forward: it takes t_X and gives t_Z."""
        lists = [_names(*given) for given in (("wrt", wrt), ("of", of), ("save", save))]
        opt = _lib.Grad(*[cast(array, POINTER(c_char_p)) for array, n in lists],
                        *[n for array, n in lists], int(forward))
        with _lib.lock:
            return Program._of(_lib.new(lib.weft_prog_grad, self._handle, byref(opt)))

    def batch(self, names: Names) -> "Program":
        """The program of a batch: these inputs, and all that depends on them, have a new first dimension, of
        a size `copies`."""
        array, n = _names("names", names)
        with _lib.lock:
            return Program._of(_lib.new(lib.weft_prog_batch, self._handle, cast(array, POINTER(c_char_p)), n))

    def compile(self) -> "Kernel":
        """The program as machine code; interpreted, with a warning, where there is no way to it."""
        return Kernel(self)

    def __call__(self, arrays: Optional[Mapping[str, Any]] = None, /, out: Any = None, **more: Any) -> Result:
        """Calls the program as a kernel, which the first call compiles."""
        if self._kernel is None:
            self._kernel = self.compile()
        return self._kernel(arrays, out, **more)

    def run(self, arrays: Optional[Mapping[str, Any]] = None, /, out: Any = None, **more: Any) -> Result:
        """Runs the program with the interpreter, however long that takes; as a kernel is called."""
        with _lib.lock:
            return Caller(self, lib.weft_run).run(_check.named(arrays, more), out)

    def __repr__(self) -> str:
        return f"<weft.Program {', '.join(a.name for a in self.args)}>"


class Kernel:
    """A program that was compiled.  To call it, give sizes, buffers and structure arrays by name:

    - a buffer is a NumPy array of its type, or anything that np.asarray makes one of; a SciPy CSR,
      CSC or COO matrix gives the values and, as it is stored, the structure of a buffer on such axes, and
      so does a weft.Graph (by row if its edges come in the order of receivers);
    - a structure array is named as in the program, **{"J.start": start}, or J_start=start;
    - sizes that shapes tell can be left out.

    The result is the array of the one output, or a dict of all of them: new arrays, or those given as
    out= (an array or a dict).  An inout that is an array of the right type is changed in place."""

    def __init__(self, program: Program):
        self.program = program
        with _lib.lock:
            self._handle = _lib.new(lib.weft_kernel_compile, program._handle)
            weakref.finalize(self, _free, lib.weft_kernel_free, self._handle)
            warning = lib.weft_warning(_lib.context()).decode()
            self._caller = Caller(program, lib.weft_kernel_run, self._handle)
        if warning:
            warnings.warn(warning, RuntimeWarning, stacklevel=3)

    def __call__(self, arrays: Optional[Mapping[str, Any]] = None, /, out: Any = None,
                 **more: Any) -> Result:
        with _lib.lock:
            return self._caller.run(more if arrays is None else _check.named(arrays, more), out)

    def schedule(self, text: Optional[str]) -> None:
        """How loops are arranged from the next call on, "tile 8; ahead 0": see docs/running.md.
        None: the default."""
        given = None if text is None else c_text("schedule", text)
        with _lib.lock:
            check(lib.weft_kernel_schedule(self._handle, given))

    def hold(self, *names: str) -> None:
        """Promises that these inputs keep their elements from call to call, as long as calls give the
        same arrays: what the kernel makes of them alone, such as values in the order of a format, it
        makes once.  Another array is read anew; for other elements in the same one call changed()."""
        with _lib.lock:
            self._caller.hold(names)

    def changed(self, *names: str) -> None:
        """The elements of these inputs, which are held, have changed."""
        with _lib.lock:
            self._caller.changed(names)

    def release(self, *names: str) -> None:
        """These inputs are held no longer: every call reads them anew."""
        with _lib.lock:
            self._caller.release(names)

    def tune(self, arrays: Optional[Mapping[str, Any]] = None, /, seconds: float = 30, top: int = 0,
             progress: Any = None, **more: Any) -> Any:
        """Searches for the fastest schedule of the kernel for these arguments, given as in a call, and
        keeps it for later calls, here and in other processes: weft.tune has more.  Returns a Tuned."""
        from ._tune import Search

        search = Search(seconds, top, progress)
        with _lib.lock:
            self._caller.run({**arrays, **more} if arrays else more, None, search)
        return search.found

    @property
    def info(self) -> Info:
        info = _lib.Info()
        with _lib.lock:
            check(lib.weft_kernel_info(self._handle, byref(info)))
            texts = [getattr(info, f).decode() for f in ("target", "isa", "how", "key", "why")]
        return Info(*texts, info.phases, info.parallel)

    @property
    def source(self) -> str:
        """The C text of the kernel."""
        with _lib.lock:
            return _lib.text(lib.weft_kernel_source, self._handle)

    def __repr__(self) -> str:
        info = self.info
        return f"<weft.Kernel {info.target} {info.isa or info.why}>"


class Caller:
    """Arguments of the library, bound anew for each call.  They are kept between calls, so that calls
    with the same shapes are quick."""

    def __init__(self, program: Program, run, *handle):
        self._program = program
        self._args = {a.name: a for a in program.args}
        self._plain = {a.name.replace(".", "_"): a.name for a in program.args if "." in a.name}
        self._outputs = [a for a in program.args if a.role in ("output", "inout")]
        self._run = run
        self._kernel = handle
        self._shapes: Dict[Any, Dict[str, tuple]] = {}  # of outputs, by those of all else
        self._held: Dict[str, Any] = {}  # what was given last, and the array that was bound for it
        self._fixed: Dict[str, Any] = {}  # structure arrays that nobody can write to, as bound
        self._end = None
        self._begin()

    def hold(self, names: Iterable[str]) -> None:
        for name in names:
            check(lib.weft_args_hold(self._handle, c_text("name", name), 1))
            self._held[name] = None

    def changed(self, names: Iterable[str]) -> None:
        for name in names:
            check(lib.weft_args_changed(self._handle, c_text("name", name)))

    def release(self, names: Iterable[str]) -> None:
        for name in names:
            check(lib.weft_args_hold(self._handle, c_text("name", name), 0))
            self._held.pop(name, None)

    def _begin(self) -> None:
        """Arguments to which nothing is bound."""
        if self._end is not None:
            self._end()
        self._handle = _lib.new(lib.weft_args_new, self._program._handle)
        self._end = weakref.finalize(self, _free, lib.weft_args_free, self._handle)
        self._with = (*self._kernel, self._handle)
        self._bound: Set[str] = set()
        self._fixed.clear()
        self.hold(list(self._held))

    def run(self, given: Mapping[str, Any], out: Any, instead: Any = None) -> Result:
        """instead: what takes the place of a run."""
        run = instead or self._run
        arrays = self._name_all(given)  # keeps what is bound alive until the run is over
        results = self._bind_inputs(arrays)
        results.update(self._bind_given(self._name_out(out)))
        key = tuple((n, getattr(a, "shape", a)) for n, a in arrays.items())
        known = self._shapes.get(key)
        free = [a for a in self._outputs if a.name not in results]
        if known is not None and free:
            try:  # where they will be: no copy
                made = self._bind_given({a.name: _array.empty(known[a.name], _array.dtype_of(a.type))
                                         for a in free})
                check(run(*self._with))
                return self._results({**results, **made})
            except _lib.BindError:  # the structure tells other shapes this time
                pass
        for a in free:
            self._unbind(a.name)
        check(run(*self._with))
        results.update({a.name: self._get(a.name) for a in free})
        if len(self._shapes) >= 64:
            self._shapes.clear()
        self._shapes[key] = {name: array.shape for name, array in results.items()}
        return self._results(results)

    def _results(self, results: Dict[str, np.ndarray]) -> Result:
        if len(self._outputs) == 1:
            return results[self._outputs[0].name]
        return {a.name: results[a.name] for a in self._outputs}

    def _name_all(self, given: Mapping[str, Any]) -> Dict[str, Any]:
        """The values by the names of the program, matrices taken apart."""
        arrays: Dict[str, Any] = {}
        for name, value in given.items():
            if name not in self._args:
                name = self._plain.get(name, name)
            if isinstance(value, _graph.Graph) and name in self._args:
                arrays.update(self._take_graph(name, value))
            elif hasattr(value, "tocsr") and name in self._args:
                arrays.update(self._take_apart(name, value))
            else:
                arrays[name] = value
        return arrays

    def _parts(self, name: str) -> tuple:
        """The structure arrays of the matrix whose values this buffer has."""
        parts = _lib.Matrix()
        check(lib.weft_prog_matrix(self._program._handle, name.encode(), byref(parts)))
        return tuple(p.decode() if p else None for p in (parts.start, parts.row, parts.col))

    def _take_graph(self, name: str, graph: _graph.Graph) -> Dict[str, Any]:
        """A graph likewise; without data, its values are 1."""
        start, row, col = self._parts(name)
        dtype = _array.dtype_of(self._args[name].type)
        data = np.ones(graph.num_edges, dtype) if graph.data is None else graph.data
        if row and not start:
            return {name: data, row: graph.row, col: graph.col}
        if not start or row:
            raise _lib.BindError(f"{name} is not stored as CSR or COO; give its arrays")
        if np.any(graph.row[1:] < graph.row[:-1]):
            raise _lib.ArgumentError(f"{name}: the program stores entries by row, and the edges of the graph do not "
                                     "come in the order of receivers; sort them, or store entries as COO "
                                     "(E = edges : i < m, j < n)")
        starts = np.searchsorted(graph.row, np.arange(graph.shape[0] + 1))
        return {name: data, start: starts, col: graph.col}

    def _take_apart(self, name: str, matrix) -> Dict[str, Any]:
        """A SciPy matrix as the arrays that hold it in the program."""
        start, row, col = self._parts(name)
        if start and not row:
            if matrix.format not in ("csr", "csc"):
                matrix = matrix.tocsr()
            return {name: matrix.data, start: matrix.indptr, col: matrix.indices}
        if row and not start:
            matrix = matrix.tocoo()
            return {name: matrix.data, row: matrix.row, col: matrix.col}
        raise _lib.BindError(f"{name} is not stored as CSR, CSC or COO; give its arrays "
                             f"({', '.join(n for n in (start, row, col, name) if n)})")

    def _name_out(self, out: Any) -> Mapping[str, Any]:
        if out is None:
            return {}
        if isinstance(out, Mapping):
            out = {n if n in self._args else self._plain.get(n, n): a for n, a in out.items()}
        elif len(self._outputs) == 1:
            out = {self._outputs[0].name: out}
        else:
            raise _lib.ArgumentError("out is an array, but there are several outputs; give a dict of "
                                     + ", ".join(a.name for a in self._outputs))
        for name, array in out.items():
            if not isinstance(array, np.ndarray):
                raise _lib.ArgumentError(f"out: {name} is no NumPy array")
            _check.plain(f"out: {name}", array)
        return out

    def _bind_inputs(self, arrays: Dict[str, Any]) -> Dict[str, np.ndarray]:
        """Binds all that is given, each made an array, and takes back what is not given.  Returns
        the inouts, which are results too."""
        results = {}
        left = [self._args[n] for n in self._bound if n not in arrays]
        if any(a.role == "size" for a in left):
            self._begin()  # a size that was set cannot be taken back
        for a in left:
            if a.role in ("input", "inout"):
                self._unbind(a.name)
        for name, value in arrays.items():
            a = self._args.get(name)
            if a is not None and a.role == "size":
                check(lib.weft_args_size(self._handle, name.encode(), _check.size(name, value)))
                self._bound.add(name)
                continue
            if a is not None and a.role == "output":
                raise _lib.ArgumentError(f"{name} is an output: give it as out=")
            had = self._held.get(name)
            if had is not None and had[0] is value and name in self._bound:
                arrays[name] = had[1]  # binding it again would be a change
                continue
            if name in self._bound and self._fixed.get(name) is value:
                continue
            given = value
            if a is not None:
                value = _array.as_input(value, a.type, a.structure, name)
            arrays[name] = self._bind(name, _check.array(name, value), a is not None and a.role == "inout")
            if name in self._held:
                self._held[name] = given, arrays[name]
            if a is not None and a.structure:
                self._fixed[name] = given if _is_fixed(given) else None
            if a is not None and a.role == "inout":
                results[name] = arrays[name]
        return results

    def _bind_given(self, arrays: Mapping[str, np.ndarray]) -> Dict[str, np.ndarray]:
        return {name: self._bind(name, array, True) for name, array in arrays.items()}

    def _bind(self, name: str, array: np.ndarray, writes: bool) -> np.ndarray:
        tensor, array = _array.as_tensor(array, name, writes)
        if name in self._args:
            _array.bf16_type(tensor, self._args[name].type)
        check(lib.weft_args_bind(self._handle, c_text("name", name), byref(tensor)))
        self._bound.add(name)
        return array

    def _unbind(self, name: str) -> None:
        if name in self._bound:
            check(lib.weft_args_bind(self._handle, name.encode(), None))
            self._bound.remove(name)

    def _get(self, name: str) -> np.ndarray:
        tensor = _lib.Tensor()
        check(lib.weft_args_get(self._handle, name.encode(), byref(tensor)))
        return _array.copy_of(tensor)


def _is_fixed(array: Any) -> bool:
    """An array that owns its elements and is read-only: they stay as they are."""
    return isinstance(array, np.ndarray) and array.base is None and not array.flags.writeable


def _names(what: str, words: Names) -> tuple:
    """An array of C strings, and how many."""
    if words is not None and not isinstance(words, Iterable):
        raise _lib.ArgumentError(f"{what}: expected a name or a list of names, got {words!r} of type "
                                 f"{type(words).__name__}")
    texts = [c_text(what, w) for w in ([words] if isinstance(words, str) else words or [])]
    return (c_char_p * max(len(texts), 1))(*texts), len(texts)


def _list_args(handle) -> List[Argument]:
    n, a = c_int(), _lib.Arg()
    check(lib.weft_prog_nargs(handle, byref(n)))
    out = []
    for i in range(n.value):
        check(lib.weft_prog_arg(handle, i, byref(a)))
        role = ("size", "input", "output", "inout")[a.role]
        out.append(Argument(a.name.decode(), role, _array.type_name(a.type), a.ndim, bool(a.structure)))
    return out


def _free(function, handle) -> None:
    with _lib.lock:
        function(handle)


MOST_KERNELS = 256
kernels: "OrderedDict[Tuple[str, int], Kernel]" = OrderedDict()  # of operators, the one used last at the end
_numbers = itertools.count(1)


def new_number() -> int:
    """For a structure that has kernels of its own."""
    return next(_numbers)


def kernel_of(spec: str, structure: int = 0) -> Kernel:
    """The kernel of an operator by its spec.  structure: the number of what it is called for, so that a kernel is
    not planned anew when calls alternate between several; 0: none."""
    with _lib.lock:
        kernel = kernels.pop((spec, structure), None)
        kernels[spec, structure] = kernel = kernel if kernel is not None else Program.op(spec).compile()
        if len(kernels) > MOST_KERNELS:
            kernels.popitem(last=False)
        return kernel
