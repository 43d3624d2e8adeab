# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""Sparse convolution in three dimensions: kernel maps, which the library makes by hashing
(weft_kernel_map_make in weft.h), and the operator conv3d over them.  docs/conv3d.md."""

from __future__ import annotations

from ctypes import POINTER, byref, c_int32, c_int64, cast
from typing import Any, NamedTuple, Optional, Sequence, Tuple, Union

import numpy as np

from . import _array, _check, _lib
from ._lib import check, lib
from ._program import kernel_of, new_number
from ._sparse import bad, dense, describe, is_torch, keep, tensors_of, untransformed

Three = Union[int, Sequence[int]]
_STRUCTURE = {"G.start": "group_start", "G.d": "offset", "E.start": "pair_start", "E.r": "row",
              "E.v": "input"}  # the operator's arrays, and the fields of weft_kernel_map


def triple(name: str, value: Three, least: int = 0) -> Tuple[int, int, int]:
    """One integer for all dimensions, or three."""
    if isinstance(value, (str, bytes)) or not hasattr(value, "__len__"):
        return (_check.integer(name, value, least),) * 3
    if len(value) != 3:
        raise bad(name, "one integer or three", value)
    a, b, c = (_check.integer(name, v, least) for v in value)
    return a, b, c


class KernelMap:
    """Which input voxel goes to which output voxel, by which offset of the kernel.  It depends on places
    alone, so any number of convolutions share one.

    n_in, n_out: voxels; pairs: how many (offset, input, output) there are; kernel_size; shape: of the
    output grid, or None; coords: (n_out, 4), those of the outputs; in_coords: those of the inputs."""

    def __init__(self, arrays: Any, n_in: int, n_out: int, strip: int, kernel_size: Tuple[int, int, int],
                 in_coords: Any, coords: Any, shape: Optional[tuple], in_shape: Optional[tuple], traced: bool = False):
        """arrays: by the names of the operator, of NumPy; traced: tensors of code that torch traces."""
        self.n_in, self.n_out, self.pairs = n_in, n_out, arrays["E.v"].shape[0]
        self.strip, self.strips, self.groups = strip, arrays["G.start"].shape[0] - 1, arrays["G.d"].shape[0]
        self.kernel_size, self.offsets = kernel_size, kernel_size[0] * kernel_size[1] * kernel_size[2]
        self.in_coords, self.coords, self.shape, self.in_shape = in_coords, coords, shape, in_shape
        self.arrays, self._tensors = (None, {"all": arrays}) if traced else (arrays, {})
        self.number = 0 if traced else new_number()
        self._inverse: Optional[KernelMap] = None

    def _turned(self, arrays: Any, traced: bool) -> "KernelMap":
        return KernelMap(arrays, self.n_out, self.n_in, self.strip, self.kernel_size, self.coords, self.in_coords,
                         self.in_shape, self.shape, traced)

    def inverse(self) -> "KernelMap":
        """The same pairs from outputs to inputs, at the same offsets of the kernel."""
        if self._inverse is None:
            if self.arrays is None:
                from . import _torch_conv3d

                self._inverse = self._turned(_torch_conv3d.turned(self), True)
            else:
                self._inverse = self._turned(turn(self.arrays, self.n_in, self.n_out, self.offsets, self.strip), False)
            self._inverse._inverse = self
        return self._inverse

    def table(self) -> np.ndarray:
        """All pairs as rows (offset, input, output), by strips of outputs."""
        a = self.arrays
        group = np.repeat(np.arange(self.groups), np.diff(a["E.start"]))
        strip = np.repeat(np.arange(self.strips), np.diff(a["G.start"]))[group]
        return np.stack([a["G.d"][group], a["E.v"], strip * self.strip + a["E.r"]], 1)

    def tensors(self) -> dict:
        """The structure arrays as tensors of torch, made once; in a trace they are those of the trace."""
        return keep(self._tensors, "all", lambda: tensors_of(self.arrays))

    def __getstate__(self) -> dict:
        return {**self.__dict__, "_tensors": {}, "_inverse": None, "number": 0}

    def __setstate__(self, state: dict) -> None:
        self.__dict__.update(state, number=new_number())

    def __deepcopy__(self, memo: Any) -> "KernelMap":
        return self  # nothing in it changes

    def __repr__(self) -> str:
        k = "x".join(map(str, self.kernel_size))
        return f"<weft.KernelMap {k}: {self.n_in} to {self.n_out} voxels, {self.pairs} pairs>"


def turn(arrays: Any, n_in: int, n_out: int, offsets: int, strip: int) -> dict:
    """weft_kernel_map_turn: the structure arrays from outputs to inputs."""
    given = _lib.KernelMap(n_in, n_out, offsets, strip, len(arrays["G.start"]) - 1, len(arrays["G.d"]),
                           len(arrays["E.v"]))
    made = _lib.KernelMap()
    for name, field in _STRUCTURE.items():
        setattr(given, field, arrays[name].ctypes.data)
    with _lib.lock:
        check(lib.weft_kernel_map_turn(_lib.context(), byref(given), byref(made)))
        return _arrays(made)


def _arrays(made: _lib.KernelMap) -> dict:
    sizes = (made.strips + 1, made.groups, made.groups + 1, made.pairs, made.pairs)
    return {name: _copy(getattr(made, field), n, c_int32) for (name, field), n in zip(_STRUCTURE.items(), sizes)}


def _copy(address: Optional[int], n: int, ctype: Any) -> np.ndarray:
    """The library's array as a read-only one of ours."""
    out = np.empty(n, ctype)
    if n > 0:
        out[:] = np.ctypeslib.as_array(cast(address, POINTER(ctype)), (n,))
    out.flags.writeable = False
    return out


def _coordinates(coords: Any) -> np.ndarray:
    array = _check.array("coords", coords)
    if array.ndim != 2 or array.shape[1] != 4:
        raise bad("coords", "a row for each voxel: batch index and three coordinates, shape (n, 4)",
                  f"shape {array.shape}")
    if array.size == 0:
        array = array.astype(np.int32)
    if array.dtype.kind not in "iu":
        raise bad("coords", "integers; divide positions by the size of a voxel and round down",
                  array.dtype)
    return np.ascontiguousarray(array if array.dtype == np.int32 else _array.as_int64(array, "coords"))


def kernel_map(coords: Any, kernel_size: Three = 3, stride: Three = 1, padding: Three = 0,
               dilation: Three = 1, subm: bool = True, *, transposed: bool = False,
               output_padding: Three = 0, shape: Optional[Sequence[int]] = None,
               batch_size: Optional[int] = None) -> KernelMap:
    """The kernel map of a convolution over voxels at `coords`, integers (n, 4): batch index and three
    coordinates, each place once.

    subm=True: outputs are the inputs, kernel_size and dilation alone count.  Otherwise outputs are all
    places that an input reaches, in order of batch index and coordinates; transposed=True exchanges the
    roles of the two.  shape: of the grid; without it there is no border, and coordinates may be negative."""
    if subm and transposed:
        raise bad("subm", "False with transposed=True", "True")
    if subm and triple("stride", stride, 1) != (1, 1, 1):
        raise bad("stride", "1 for a submanifold convolution; give subm=False", stride)
    extra = triple("output_padding", output_padding)
    if extra != (0, 0, 0) and not transposed:
        raise bad("output_padding", "0 without transposed=True", output_padding)
    for e, s, d in zip(extra, triple("stride", stride, 1), triple("dilation", dilation, 1)):
        if e >= max(s, d, e == 0):
            raise bad("output_padding", "less than stride or dilation", output_padding)
    size = triple("kernel_size", kernel_size, 1)
    grid = (0, 0, 0) if shape is None else triple("shape", shape, 1)
    settings = (grid, size, triple("stride", stride, 1), triple("padding", padding), triple("dilation", dilation, 1),
                extra)
    kind = 0 if subm else 2 if transposed else 1
    batch = 0 if batch_size is None else _check.integer("batch_size", batch_size, 1)
    if is_torch(coords) and (coords.device.type != "cpu" or str(coords.layout) != "torch.strided"):
        raise bad("coords", "a dense tensor on the CPU", f"{coords.layout} on {coords.device}")
    if is_torch(coords):
        from . import _torch_conv3d

        if _torch_conv3d.is_traced():
            return _torch_conv3d.traced_map(coords, kind, settings, batch)
        with untransformed():
            made = make(_coordinates(coords.detach().cpu().numpy()), kind, settings, batch)
            places = coords if subm else coords.new_tensor(made.coords)
    else:
        made = make(_coordinates(coords), kind, settings, batch)
        places = coords if subm else made.coords
    grids = (None, None) if shape is None else (made.shape, grid)
    return KernelMap(made.arrays, len(coords), len(places), STRIP, size, coords, places, *grids)


STRIP = 512  # outputs of a strip: the library's default


class Made(NamedTuple):
    arrays: dict
    coords: Optional[np.ndarray]  # of outputs, where they are not the inputs
    shape: Tuple[int, int, int]


def make(coords: np.ndarray, kind: int, settings: Sequence[Sequence[int]], batch: int) -> Made:
    """weft_kernel_map_make.  settings: triples, in the order of `fields`."""
    fields = ("shape", "kernel", "stride", "padding", "dilation", "extra")
    given = _lib.Voxels(n=len(coords), type=_array.type_code("i64" if coords.dtype == np.int64 else "i32"),
                        coord=coords.ctypes.data, kind=kind, batch=batch)
    for field, value in zip(fields, settings):
        getattr(given, field)[:] = value
    made = _lib.KernelMap()
    with _lib.lock:
        check(lib.weft_kernel_map_make(_lib.context(), byref(given), byref(made)))
        places = None if kind == 0 else \
            _copy(made.coord, 4 * made.n_out, c_int64).reshape(-1, 4).astype(coords.dtype)
        return Made(_arrays(made), places, tuple(made.shape))


def _spec(type: str, offsets: int, ci: int, co: int, bias: bool, strip: int) -> str:
    words = ["conv3d", type, f"k={offsets}", f"ci={ci}", f"co={co}"] + ["bias"] * bias
    return ":".join(words + ([f"strip={strip}"] if strip != 512 else []))


def _check_operands(x: Any, weight: Any, map: Any, bias: Any, types: tuple) -> None:
    if not isinstance(map, KernelMap):
        raise bad("kernel_map", "a map that weft.kernel_map made", describe(map))
    if len(x) != 2 or x[0] != map.n_in:
        raise bad("x", f"a row for each of the map's {map.n_in} input voxels, shape ({map.n_in}, channels)",
                  f"shape {tuple(x)}")
    if len(weight) not in (3, 5) or tuple(weight[1:-1]) not in (map.kernel_size, (map.offsets,)):
        raise bad("weight", f"shape (out channels, {', '.join(str(k) for k in map.kernel_size)}, in channels)",
                  f"shape {tuple(weight)}")
    if weight[-1] != x[1]:
        raise bad("weight", f"{x[1]} input channels, as x has, in its last dimension", weight[-1])
    if bias is not None and tuple(bias) != (weight[0],):
        raise bad("bias", f"shape ({weight[0]},)", f"shape {tuple(bias)}")
    for name, type in zip(("weight", "bias"), types[1:]):
        if type != types[0]:
            raise bad(name, f"elements of {types[0]}, as x has; convert one of them", type)
    if 0 in weight:
        raise bad("weight", "one channel at least", f"shape {tuple(weight)}")


def conv3d(x: Any, weight: Any, kernel_map: KernelMap, bias: Any = None) -> Any:
    """The sparse convolution of the rows of x (n_in, in channels) over a kernel map:

        y[out] = bias + sum of weight[:, offset, :] @ x[in] over the pairs (offset, in, out)

    weight: (out channels, *kernel_size, in channels), or with all offsets in one dimension.  x, weight and
    bias are NumPy arrays or torch tensors of one type, float16, bfloat16, float32 or float64; the result
    is (n_out, out channels).  Of tensors it has gradients, to any order."""
    given = [x, weight] + ([] if bias is None else [bias])
    names = ("x", "weight", "bias")
    for name, a in zip(names, given):
        if a is None:
            raise bad(name, "an array of NumPy or a tensor of torch", "None")
    if any(is_torch(a) for a in given):
        from . import _torch_conv3d

        return _torch_conv3d.conv3d(x, weight, kernel_map, bias)
    parts = [dense(a, name) for a, name in zip(given, names)]
    shapes = [p[2] for p in parts]
    _check_operands(shapes[0], shapes[1], kernel_map, shapes[2] if bias is not None else None,
                    tuple(p[1] for p in parts))
    m, (co, ci) = kernel_map, (shapes[1][0], shapes[1][-1])
    spec = _spec(parts[0][1], m.offsets, ci, co, bias is not None, m.strip)
    arrays = {"X": parts[0][0], "W": parts[1][0].reshape(co, m.offsets, ci), **m.arrays}
    if bias is not None:
        arrays["B"] = parts[2][0]
    return kernel_of(spec, m.number)(arrays, strips=m.strips, vin=m.n_in).reshape(-1, co)[:m.n_out]
