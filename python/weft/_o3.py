# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""Tensor products, linear layers, spherical harmonics and symmetric contractions on NumPy arrays, each
with its first and second derivatives.  What they compute is a program of the library
(docs/tensor-products.md); here shapes and types are checked and kernels kept."""

from __future__ import annotations

from typing import Any, Dict, Iterable, List, Optional, Sequence, Tuple, Union

import numpy as np

from . import _array, _check
from ._irreps import Irreps, tell
from ._program import Kernel, Names, Program
from ._sparse import bad

_TYPES = ("f16", "bf16", "f32", "f64")
_NAMES = {"x": "X", "y": "Y", "weight": "Wt", "bias": "Bias"}  # of operands: here, in programs


def _type(name: str, dtype: Any) -> str:
    """f32, ..., of its name or of a NumPy dtype."""
    if isinstance(dtype, str) and dtype in _TYPES:
        return dtype
    try:
        of = np.dtype(dtype)
    except TypeError:
        raise bad(name, f"one of {', '.join(_TYPES)} or a NumPy dtype", repr(dtype)) from None
    if of.name == "bfloat16":
        return "bf16"
    for type in ("f16", "f32", "f64"):
        if _array.dtype_of(type) == of:
            return type
    raise bad(name, f"one of {', '.join(_TYPES)} or a NumPy dtype of them", of)


def _word(value: Any) -> str:
    if isinstance(value, (bool, np.bool_)):
        return "yes" if value else "no"
    if isinstance(value, np.generic):  # its repr has the name of the type
        value = value.item()
    if isinstance(value, (str, Irreps)):
        return str(value)
    if isinstance(value, Iterable):
        return " ".join(map(_word, value))
    return repr(value)


def _spec(form: str, settings: Dict[str, Any]) -> str:
    words = {key: _word(v) for key, v in settings.items() if v is not None}
    for key, word in words.items():
        _check.text(key, word)
        if ";" in word:
            raise bad(key, "no ; in it", repr(word))
    return "; ".join([form, *(f"{key}={word}" for key, word in words.items())])


class _Layer:
    """A problem, of the settings in `spec`.  Arrays have a row for each item: (..., dim) where ... are
    the same dimensions for all of them.  Each kernel is compiled when it is first called for."""

    _result = "Z"

    def __init__(self, spec: str):
        self.spec = spec
        self.program = Program.o3(spec)
        self.irreps: Dict[str, Irreps] = {}  # by in1, in2, out
        self.paths: List[tuple] = []  # in the order of the weights
        self.weight_numel = self.bias_numel = 0
        for line in tell(spec).splitlines():
            what, *words = line.split()
            if what == "path":
                self.paths.append(tuple(words))
            elif what == "weights":
                self.weight_numel = int(words[0])
            elif what == "bias":
                self.bias_numel = int(words[0])
            else:
                self.irreps[what] = Irreps(" ".join(words))
        self._args = {a.name: a for a in self.program.args}
        self._kernels: Dict[Any, Optional[Kernel]] = {}

    @property
    def irreps_out(self) -> Irreps:
        return self.irreps["out"]

    def __reduce__(self) -> tuple:
        return _made, (type(self), self.spec)

    def __repr__(self) -> str:
        return f"<weft.{type(self).__name__} {self.spec}>"

    def _shape(self, name: str) -> Tuple[Tuple[int, ...], bool]:
        """Of an operand: the dimensions that it has itself, and whether each item has one."""
        if name in ("x", "y"):
            return (self.irreps["in1" if name == "x" else "in2"].dim,), True
        if name == "weight":
            return (self.weight_numel,), self._args["Wt"].ndim == 2
        if name == "bias":
            return (self.bias_numel,), False
        return (self.irreps_out.dim,), True

    def _take(self, name: str, value: Any, lead: Optional[tuple], like: str = "") -> tuple:
        """An operand as an array with one dimension for the items; the dimensions before."""
        operand = like or name
        buffer = _NAMES.get(operand, self._result)
        own, each = self._shape(operand)
        array = _array.as_input(value, self._args[buffer].type, False, name)
        dtype = _array.dtype_of(self._args[buffer].type)
        if array.dtype != dtype:
            raise bad(name, f"elements of {dtype}", array.dtype)
        n = array.ndim - len(own)
        before = array.shape[:n] if n >= 0 else None
        if before is None or array.shape[n:] != own or (not each and before) or (
                each and lead is not None and before != lead):
            want = own if not each else ("...", *own) if lead is None else (*lead, *own)
            raise bad(name, f"the shape ({', '.join(map(str, want))}{',' * (len(want) == 1)})",
                      array.shape)
        if not each:
            return array, lead
        rows = int(np.prod(before, dtype=np.int64))
        return array.reshape(rows, *own), before

    def _given(self, values: Dict[str, Any]) -> Tuple[Dict[str, np.ndarray], tuple]:
        arrays: Dict[str, np.ndarray] = {}
        lead: Optional[tuple] = None
        for name, value in values.items():
            has = _NAMES[name] in self._args
            if has != (value is not None):
                raise bad(name, "an array" if has else "None, as the problem does not have this operand",
                          "None" if has else f"{type(value).__name__}")
            if has:
                arrays[_NAMES[name]], lead = self._take(name, value, lead)
        assert lead is not None
        return arrays, lead

    def _kernel(self, key: Any, make: Any) -> Optional[Kernel]:
        if key not in self._kernels:
            program = make()
            self._kernels[key] = None if program is None else program.compile()
        return self._kernels[key]

    def _run(self, kernel: Optional[Kernel], given: Dict[str, np.ndarray], out: Any = None) -> Any:
        if kernel is None:
            return {}
        args = {a.name: a for a in kernel.program.args}
        takes: Dict[str, Any] = {name: array for name, array in given.items() if name in args}
        if not takes:
            takes["n"] = len(given["X"])  # gradients that are 0: nothing else tells it
        got = kernel(takes, out=out)
        if isinstance(got, dict):
            return got
        return {next(n for n, a in args.items() if a.role in ("output", "inout")): got}

    def _forward(self, values: Dict[str, Any], out: Any) -> np.ndarray:
        given, lead = self._given(values)
        rows = None
        if out is not None:
            if not isinstance(out, np.ndarray):
                raise bad("out", "a NumPy array", type(out).__name__)
            rows, _ = self._take("out", out, lead, "out")
            if not np.shares_memory(rows, out) and out.size:
                raise bad("out", "an array whose rows are one after the other", "other strides")
        z = self._run(self._kernel("forward", lambda: self.program), given, rows)[self._result]
        return z.reshape(*lead, self.irreps_out.dim) if out is None else out

    def _wanted(self, wrt: Names, values: Dict[str, Any], *more: str) -> List[str]:
        known = [n for n, v in values.items() if v is not None] + list(more)
        names = known if wrt is None else [wrt] if isinstance(wrt, str) else list(wrt)
        for name in names:
            if name not in known:
                raise bad("wrt", f"some of {', '.join(known)}", repr(name))
        return names

    def _derive(self, program: Program, names: Iterable[str]) -> Optional[Program]:
        """The gradient by these; None where the program has none of them."""
        has = {a.name for a in program.args}
        wrt = [n for n in names if n in has]
        return program.grad(wrt) if wrt else None

    def _give(self, got: Dict[str, np.ndarray], prefix: str, names: List[str],
              given: Dict[str, np.ndarray], lead: tuple) -> Dict[str, np.ndarray]:
        """The gradients by their names here; zeros where nothing depends on an operand."""
        out = {}
        for name in names:
            buffer = _NAMES.get(name, "d_" + self._result)
            array = got.get(prefix + buffer)
            if array is None:
                array = np.zeros_like(given[buffer])
            own, each = self._shape(name)
            out[name] = array.reshape(*lead, *own) if each else array
        return out

    def _backward(self, values: Dict[str, Any], dz: Any, wrt: Names) -> Dict[str, np.ndarray]:
        names = self._wanted(wrt, values)
        given, lead = self._given(values)
        given["d_" + self._result], _ = self._take("dz", dz, lead, "dz")
        buffers = tuple(_NAMES[n] for n in names)
        kernel = self._kernel(("backward", buffers), lambda: self._derive(self.program, buffers))
        return self._give(self._run(kernel, given), "d_", names, given, lead)

    def _double_backward(self, values: Dict[str, Any], dz: Any, along: Dict[str, Any],
                         wrt: Names) -> Dict[str, np.ndarray]:
        names = self._wanted(wrt, values, "dz")
        given, lead = self._given(values)
        given["d_" + self._result], _ = self._take("dz", dz, lead, "dz")
        first = []
        for name, value in along.items():
            if value is None:
                continue
            if _NAMES[name] not in given:
                raise bad("dd" + name, "None, as the problem does not have this operand", "an array")
            given["d2_d_" + _NAMES[name]], _ = self._take("dd" + name, value, lead, name)
            first.append(_NAMES[name])
        buffers = tuple(_NAMES.get(n, "d_" + self._result) for n in names)

        def make() -> Optional[Program]:
            program = self._derive(self.program, first)
            return None if program is None else self._derive(program, buffers)

        kernel = self._kernel(("double", tuple(first), buffers), make)
        return self._give(self._run(kernel, given), "d2_", names, given, lead)


def _made(cls: type, spec: str) -> _Layer:
    self = cls.__new__(cls)
    _Layer.__init__(self, spec)
    return self


Path = Union[Tuple[int, int, int, str], Tuple[int, int, int, str, bool],
             Tuple[int, int, int, str, bool, float]]


def _paths(paths: Union[str, Sequence[Path], None]) -> Optional[str]:
    """Text, or tuples as e3nn's instructions: slots, mode, whether there are weights, path weight."""
    if paths is None or isinstance(paths, str):
        return paths
    try:
        return ", ".join(" ".join([*(f"{i:d}" for i in p[:3]), *map(_word, p[3:])]) for p in paths)
    except (TypeError, ValueError):
        raise bad("paths", "tuples (in1, in2, out, mode, weights, path weight)", repr(paths)) from None


class Product(_Layer):
    """A tensor product of irreps: x of irreps in1 times y of irreps in2, to irreps out.

    >>> product = weft.Product("8x0e + 8x1o", "0e + 1o", "0e + 1o", mode="uvu", weights="item")
    >>> z = product(x, y, weight)
    >>> d = product.backward(dz, x, y, weight)   # d["x"], d["y"], d["weight"]

    mode, paths, order: which slots meet, and how: docs/tensor-products.md, section 4.  paths may be
    e3nn's instructions.  weights: "shared" is one set for all items, (weight_numel,); "item" a set
    for each, (..., weight_numel); "none" leaves them out.  norm, path_norm, var1, var2, var_out: the
    normalisation, section 5.  signs: "e3nn", or "e3nn-0.4" as MACE has them.  form: "tp", or a named
    form of section 7, with `keep`; "square" and "norm" have no in2.  Irreps that allow no path are refused;
    with empty="zeros" the result is 0.

    irreps_out tells the slots of z, paths (words) and weight_numel the weights in e3nn's order."""

    def __init__(self, in1: Any, in2: Any = None, out: Any = None, *, mode: Optional[str] = None,
                 paths: Union[str, Sequence[Path], None] = None, weights: str = "shared",
                 dtype: Any = "f32", weight_dtype: Any = None, layout: str = "mul_ir",
                 layout_in1: Optional[str] = None, layout_in2: Optional[str] = None,
                 layout_out: Optional[str] = None, norm: Optional[str] = None,
                 path_norm: Optional[str] = None, var1: Optional[Sequence[float]] = None,
                 var2: Optional[Sequence[float]] = None, var_out: Optional[Sequence[float]] = None,
                 signs: Optional[str] = None, order: Optional[str] = None, form: str = "tp",
                 keep: Any = None, squared: Optional[bool] = None, empty: Optional[str] = None):
        irreps = {name: None if v is None else Irreps(v)
                  for name, v in (("in1", in1), ("in2", in2), ("out", out), ("keep", keep))}
        super().__init__(_spec(form, {
            **irreps, "mode": mode, "paths": _paths(paths), "order": order,
            "weights": None if form == "norm" else weights, "type": _type("dtype", dtype),
            "weight_type": None if weight_dtype is None else _type("weight_dtype", weight_dtype),
            "layout": layout, "layout_in1": layout_in1, "layout_in2": layout_in2,
            "layout_out": layout_out, "norm": norm, "path_norm": path_norm, "var1": var1,
            "var2": var2, "var_out": var_out, "signs": signs, "squared": squared, "empty": empty}))

    @property
    def irreps_in1(self) -> Irreps:
        return self.irreps["in1"]

    @property
    def irreps_in2(self) -> Optional[Irreps]:
        return self.irreps.get("in2")

    def forward(self, x: Any, y: Any = None, weight: Any = None, *,
                out: Optional[np.ndarray] = None) -> np.ndarray:
        """z, of shape (..., irreps_out.dim), or `out` with it."""
        return self._forward({"x": x, "y": y, "weight": weight}, out)

    __call__ = forward

    def backward(self, dz: Any, x: Any, y: Any = None, weight: Any = None, *,
                 wrt: Names = None) -> Dict[str, np.ndarray]:
        """Given dz, the gradient of some number by z: its gradients by "x", "y" and "weight", or by
        those in `wrt`."""
        return self._backward({"x": x, "y": y, "weight": weight}, dz, wrt)

    def double_backward(self, dz: Any, x: Any, y: Any = None, weight: Any = None, *,
                        ddx: Any = None, ddy: Any = None, ddweight: Any = None,
                        wrt: Names = None) -> Dict[str, np.ndarray]:
        """Given ddx, ddy and ddweight, the gradients of some number by what `backward` gives (None is
        0): its gradients by what `backward` takes, "x", "y", "weight" and "dz", or by those in `wrt`."""
        return self._double_backward({"x": x, "y": y, "weight": weight}, dz,
                                     {"x": ddx, "y": ddy, "weight": ddweight}, wrt)


class Linear(_Layer):
    """The linear layer of e3nn: the channels of each irrep of x are mixed.

    weights: "shared" (weight_numel,), or "item" (..., weight_numel).  bias: one value for each channel of
    the slots of 0e, (bias_numel,).  paths: pairs of slots, (in, out), otherwise all that fit; where there are
    none and no biases, empty="zeros" has to allow that the result is 0."""

    def __init__(self, in1: Any, out: Any, *, bias: bool = False, weights: str = "shared",
                 paths: Union[str, Sequence[Tuple[int, int]], None] = None,
                 path_norm: Optional[str] = None, dtype: Any = "f32", layout: str = "mul_ir",
                 layout_in: Optional[str] = None, layout_out: Optional[str] = None,
                 empty: Optional[str] = None):
        super().__init__(_spec("linear", {
            "in1": Irreps(in1), "out": Irreps(out), "bias": bool(bias), "weights": weights,
            "paths": _paths(paths), "path_norm": path_norm, "type": _type("dtype", dtype),
            "layout": layout, "layout_in1": layout_in, "layout_out": layout_out, "empty": empty}))

    @property
    def irreps_in(self) -> Irreps:
        return self.irreps["in1"]

    def forward(self, x: Any, weight: Any = None, bias: Any = None, *,
                out: Optional[np.ndarray] = None) -> np.ndarray:
        """z, of shape (..., irreps_out.dim), or `out` with it."""
        return self._forward({"x": x, "weight": weight, "bias": bias}, out)

    __call__ = forward

    def backward(self, dz: Any, x: Any, weight: Any = None, bias: Any = None, *,
                 wrt: Names = None) -> Dict[str, np.ndarray]:
        """As Product.backward, by "x", "weight" and "bias"."""
        return self._backward({"x": x, "weight": weight, "bias": bias}, dz, wrt)

    def double_backward(self, dz: Any, x: Any, weight: Any = None, bias: Any = None, *,
                        ddx: Any = None, ddweight: Any = None, ddbias: Any = None,
                        wrt: Names = None) -> Dict[str, np.ndarray]:
        """As Product.double_backward."""
        return self._double_backward({"x": x, "weight": weight, "bias": bias}, dz,
                                     {"x": ddx, "weight": ddweight, "bias": ddbias}, wrt)


class SphericalHarmonics(_Layer):
    """Real spherical harmonics of vectors x (..., 3), of the degrees to lmax or in a list of degrees.

    norm: "component", "norm" or "integral"; normalize: the vectors are first divided by their length."""

    _result = "Y"

    def __init__(self, l: Union[int, Sequence[int]], *, norm: Optional[str] = None,
                 normalize: bool = False, dtype: Any = "f32"):
        degrees = ({"lmax": _check.size("l", l)} if np.ndim(l) == 0
                   else {"l": [_check.size("l", k) for k in l]})
        super().__init__(_spec("sh", {**degrees, "norm": norm, "normalize": bool(normalize),
                                      "type": _type("dtype", dtype)}))

    def _shape(self, name: str) -> Tuple[Tuple[int, ...], bool]:
        return ((3,) if name == "x" else (self.irreps_out.dim,)), True

    def forward(self, x: Any, *, out: Optional[np.ndarray] = None) -> np.ndarray:
        """The harmonics, of shape (..., irreps_out.dim), or `out` with them."""
        return self._forward({"x": x}, out)

    __call__ = forward

    def backward(self, dz: Any, x: Any) -> Dict[str, np.ndarray]:
        """Given dz, the gradient of some number by the harmonics: its gradient by "x"."""
        return self._backward({"x": x}, dz, None)

    def double_backward(self, dz: Any, x: Any, *, ddx: Any = None,
                        wrt: Names = None) -> Dict[str, np.ndarray]:
        """As Product.double_backward, by "x" and "dz"."""
        return self._double_backward({"x": x}, dz, {"x": ddx}, wrt)


class Contraction(_Layer):
    """MACE's symmetric contraction: polynomials of an item's features x, channel by channel, up to the
    degree `correlation`, with weights (number of elements, weight_numel, channels) of which item b uses
    those of its element, elements[b].  paths tells of each of the weight_numel the output slot and the
    degree.  signs="e3nn-0.4" is for weights that were trained by MACE."""

    def __init__(self, in1: Any, out: Any, correlation: int = 3, *, dtype: Any = "f32",
                 layout: str = "mul_ir", layout_in: Optional[str] = None,
                 layout_out: Optional[str] = None, signs: Optional[str] = None):
        super().__init__(_spec("contraction", {
            "in1": Irreps(in1), "out": Irreps(out), "correlation": _check.size("correlation", correlation),
            "type": _type("dtype", dtype), "layout": layout, "layout_in1": layout_in,
            "layout_out": layout_out, "signs": signs}))

    @property
    def irreps_in(self) -> Irreps:
        return self.irreps["in1"]

    @property
    def channels(self) -> int:
        return self.irreps["in1"][0].mul if self.irreps["in1"] else 0

    def _shape(self, name: str) -> Tuple[Tuple[int, ...], bool]:
        if name == "weight":
            return (self.weight_numel, self.channels), False
        return super()._shape(name)

    def _take(self, name: str, value: Any, lead: Optional[tuple], like: str = "") -> tuple:
        if (like or name) != "weight":
            return super()._take(name, value, lead, like)
        array = _array.as_input(value, self._args["Wt"].type, False, name)
        dtype, own = _array.dtype_of(self._args["Wt"].type), self._shape("weight")[0]
        if array.dtype != dtype:
            raise bad(name, f"elements of {dtype}", array.dtype)
        if array.ndim != 3 or array.shape[1:] != own:
            raise bad(name, f"the shape (elements, {own[0]}, {own[1]})", array.shape)
        return array, lead

    def _values(self, x: Any, elements: Any, weight: Any) -> Dict[str, Any]:
        return {"x": x, "weight": weight, "elements": elements}

    def _given(self, values: Dict[str, Any]) -> Tuple[Dict[str, np.ndarray], tuple]:
        values = dict(values)
        elements = _check.array("elements", values.pop("elements"))
        given, lead = super()._given(values)
        if elements.dtype.kind not in "iu" and elements.size:
            raise bad("elements", "integers", elements.dtype)
        if elements.shape != lead:
            raise bad("elements", f"the shape {lead}", elements.shape)
        given["el"] = _array.as_int64(elements.reshape(-1), "elements")
        return given, lead

    def _wanted(self, wrt: Names, values: Dict[str, Any], *more: str) -> List[str]:
        return super()._wanted(wrt, {n: v for n, v in values.items() if n != "elements"}, *more)

    def forward(self, x: Any, elements: Any, weight: Any, *,
                out: Optional[np.ndarray] = None) -> np.ndarray:
        """z, of shape (..., irreps_out.dim), or `out` with it.  elements: integers (...)."""
        return self._forward(self._values(x, elements, weight), out)

    __call__ = forward

    def backward(self, dz: Any, x: Any, elements: Any, weight: Any, *,
                 wrt: Names = None) -> Dict[str, np.ndarray]:
        """As Product.backward, by "x" and "weight"."""
        return self._backward(self._values(x, elements, weight), dz, wrt)

    def double_backward(self, dz: Any, x: Any, elements: Any, weight: Any, *, ddx: Any = None,
                        ddweight: Any = None, wrt: Names = None) -> Dict[str, np.ndarray]:
        """As Product.double_backward, by "x", "weight" and "dz"."""
        return self._double_backward(self._values(x, elements, weight), dz,
                                     {"x": ddx, "weight": ddweight}, wrt)
