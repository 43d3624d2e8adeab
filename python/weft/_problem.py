# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""TPProblem: a tensor product by its irreps and instructions, under the names that users of
OpenEquivariance and e3nn know.  It holds no kernel, so it can be copied and pickled."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Sequence, Tuple

import numpy as np

from . import _check
from ._irreps import Irreps, tell
from ._lib import ArgumentError
from ._o3 import _spec, _type
from ._peers import (MODES, Instruction, Unfit, normalised, path_shape, signs_of, slot_at, weights_of)
from ._sparse import bad

__all__ = ["Instruction", "TPProblem", "type_of"]

_NUMPY = {"f16": np.float16, "f32": np.float32, "f64": np.float64}


def type_of(name: str, dtype: Any) -> str:
    """f32, ..., of a NumPy or torch dtype or of its name."""
    text = str(dtype)
    if text.startswith("torch."):
        dtype = "bf16" if text == "torch.bfloat16" else text[len("torch."):]
    return _type(name, dtype)


class TPProblem:
    """A tensor product of irreps_in1 and irreps_in2 to irreps_out.

    instructions: (slot of in1, slot of in2, slot of out, mode, has weights[, path weight]), as e3nn has
    them; irreps are text, weft.Irreps or e3nn's.  Arithmetic is that of irrep_dtype and weight_dtype:
    NumPy or torch dtypes, or their names.  layout: "mul_ir", as in e3nn, or "ir_mul".  Weights are shared by
    all items unless shared_weights is False.  signs: of 3j symbols, "e3nn" or "e3nn-0.4"; without it those
    of the installed e3nn.

    Attributes can be changed until a module is made of the problem, which keeps a copy.  `instructions` has
    the paths with all normalisation in their weights, and the shapes of their weights."""

    def __init__(self, irreps_in1: Any, irreps_in2: Any, irreps_out: Any,
                 instructions: Sequence[Any], in1_var: Optional[Sequence[float]] = None,
                 in2_var: Optional[Sequence[float]] = None,
                 out_var: Optional[Sequence[float]] = None,
                 irrep_normalization: Optional[str] = "component",
                 path_normalization: Optional[str] = "element",
                 internal_weights: Optional[bool] = None, shared_weights: Optional[bool] = None,
                 label: Optional[str] = None, irrep_dtype: Any = np.float32,
                 weight_dtype: Any = np.float32, layout: str = "mul_ir", signs: Optional[str] = None):
        self.irreps_in1, self.irreps_in2 = Irreps(irreps_in1), Irreps(irreps_in2)
        self.irreps_out = Irreps(irreps_out)
        if internal_weights:
            raise bad("internal_weights", "False: weights are arguments; weft.o3.TensorProduct has "
                      "them inside", repr(internal_weights))
        self.shared_weights = shared_weights is None or bool(shared_weights)
        self.internal_weights = False
        self.in1_var = _variances("in1_var", in1_var, self.irreps_in1)
        self.in2_var = _variances("in2_var", in2_var, self.irreps_in2)
        self.out_var = _variances("out_var", out_var, self.irreps_out)
        self.irrep_normalization = irrep_normalization
        self.path_normalization = path_normalization
        self.label, self.layout, self.signs = label or "tensor product", layout, signs_of(signs)
        self.irrep_dtype, self.weight_dtype = irrep_dtype, weight_dtype
        self.instructions_raw = paths_of(instructions)
        self._check()

    def _check(self) -> None:
        """Refuses what cannot be computed."""
        irreps = ("irreps_in1", "irreps_in2", "irreps_out")
        for k, path in enumerate(self.instructions_raw):
            for name, i in zip(irreps, path):
                slot_at(name, getattr(self, name), i, k)
            if path[3] not in MODES:
                raise Unfit(f"instructions: path {k}: expected a mode of {', '.join(MODES)}, got "
                            f"{path[3]!r}")
        try:
            tell(self.spec("tp"))
        except ArgumentError as e:
            raise e if isinstance(e, Unfit) else Unfit(str(e)) from None

    @property
    def irrep_dtype(self) -> Any:
        """The NumPy type of features; for bf16, which NumPy does not have, its name."""
        return _NUMPY.get(self.type, self.type)

    @irrep_dtype.setter
    def irrep_dtype(self, dtype: Any) -> None:
        self.type = type_of("irrep_dtype", dtype)

    @property
    def weight_dtype(self) -> Any:
        return _NUMPY.get(self.weight_type, self.weight_type)

    @weight_dtype.setter
    def weight_dtype(self, dtype: Any) -> None:
        self.weight_type = type_of("weight_dtype", dtype)

    @property
    def instructions(self) -> List[Instruction]:
        return normalised((self.irreps_in1, self.irreps_in2, self.irreps_out), self.instructions_raw,
                          _norm("irrep_normalization", self.irrep_normalization),
                          _norm("path_normalization", self.path_normalization),
                          (self.in1_var, self.in2_var, self.out_var))

    @property
    def weight_numel(self) -> int:
        return sum(n for _, n in weights_of(self._weight_shapes()))

    def _weight_shapes(self) -> List[Tuple[int, ...]]:
        """Of each path; that of a path without weights is (0,)."""
        return [path_shape(mode, self.irreps_in1[i].mul, self.irreps_in2[j].mul, self.irreps_out[k].mul)
                if has else (0,) for i, j, k, mode, has, _ in self.instructions_raw]

    def weight_range_and_shape_for_instruction(self, instruction: int) -> Tuple[int, int, tuple]:
        """Where the weights of a path start and end in a row of all, and their shape."""
        if not self.instructions_raw[instruction][4]:
            raise bad("instruction", "a path with weights", f"path {instruction}, which has none")
        shapes = self._weight_shapes()
        start, n = weights_of(shapes)[instruction]
        return start, start + n, shapes[instruction]

    @property
    def weights(self) -> str:
        """none, shared or item."""
        if not any(i[4] for i in self.instructions_raw):
            return "none"
        return "shared" if self.shared_weights else "item"

    def spec(self, form: str, **more: Any) -> str:
        """The problem as a line of text for the library, in the form "tp" or "conv"."""
        paths = ", ".join(f"{a} {b} {c} {mode} {'yes' if has else 'no'} {float(weight)!r}"
                          for a, b, c, mode, has, weight in self.instructions_raw)
        weights = None if form == "conv" and self.weights == "item" else self.weights
        return _spec(form, {
            "in1": self.irreps_in1, "in2": self.irreps_in2, "out": self.irreps_out, "paths": paths,
            "weights": weights, "type": self.type, "weight_type": self.weight_type,
            "layout": self.layout, "norm": _norm("irrep_normalization", self.irrep_normalization),
            "path_norm": _norm("path_normalization", self.path_normalization),
            "var1": self.in1_var, "var2": self.in2_var, "var_out": self.out_var,
            "signs": self.signs, "empty": None if self.instructions_raw else "zeros", **more})

    def __getstate__(self) -> Dict[str, Any]:
        """Arguments, as text and lists: what torch.load takes without trust."""
        state = {name: getattr(self, name) for name in (
            "in1_var", "in2_var", "out_var", "irrep_normalization", "path_normalization", "shared_weights",
            "label", "layout", "signs")}
        for name in ("irreps_in1", "irreps_in2", "irreps_out"):
            state[name] = str(getattr(self, name))
        return {**state, "instructions": list(self.instructions_raw),
                "irrep_dtype": self.type, "weight_dtype": self.weight_type}

    def __setstate__(self, state: Dict[str, Any]) -> None:
        TPProblem.__init__(self, **state)

    def clone(self, **changes: Any) -> "TPProblem":
        """The same problem, with some arguments changed."""
        return TPProblem(**{**self.__getstate__(), **changes})

    def __repr__(self) -> str:
        return (f"TPProblem({self.irreps_in1} x {self.irreps_in2} -> {self.irreps_out}, "
                f"{len(self.instructions_raw)} paths, {self.weight_numel} weights, {self.type}, "
                f"signs of {self.signs})")


def _norm(name: str, value: Optional[str]) -> str:
    known = ("component", "norm") if name == "irrep_normalization" else ("element", "path")
    if value is None or value == "none":
        return "none"
    if value not in known:
        raise Unfit(f"{name}: expected one of {', '.join(known)} and none, got {value!r}")
    return value


def _variances(name: str, value: Optional[Sequence[float]], irreps: Irreps) -> Optional[List[float]]:
    """A number for each slot, from a list or a tensor."""
    if value is None:
        return None
    numbers = [_check.real(name, v) for v in value]
    if len(numbers) != len(irreps):
        raise Unfit(f"{name}: expected {len(irreps)} numbers, one for each slot, got {len(numbers)}")
    return numbers


def paths_of(instructions: Any) -> List[Tuple[int, int, int, str, bool, float]]:
    if not hasattr(instructions, "__iter__"):
        raise bad("instructions", "a list of paths", repr(instructions))
    return [_instruction(i) for i in instructions]


def _instruction(i: Any) -> Tuple[int, int, int, str, bool, float]:
    words = tuple(i) if isinstance(i, (tuple, list)) else ()
    if not 5 <= len(words) <= 6:
        raise bad("instructions", "(i_in1, i_in2, i_out, mode, has_weight[, path_weight])", repr(i))
    a, b, c, mode, has, *weight = words
    slots = [_check.size("instructions", k) for k in (a, b, c)]
    return (*slots, str(mode), bool(has), _check.real("instructions", weight[0] if weight else 1))
