# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""TPProblem: a tensor product by its irreps and instructions, under the names that users of
OpenEquivariance and e3nn know.  It holds no kernel, so it can be copied and pickled."""

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Optional, Sequence

import numpy as np

from . import _check
from ._irreps import Irreps, tell
from ._o3 import _spec, _type
from ._sparse import bad

_NUMPY = {"f16": np.float16, "f32": np.float32, "f64": np.float64}


class Instruction(NamedTuple):
    """One path: slots of the operands, which channels meet, whether it has weights, its weight."""

    i_in1: int
    i_in2: int
    i_out: int
    connection_mode: str
    has_weight: bool
    path_weight: float = 1.0


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
    all items unless shared_weights is False."""

    def __init__(self, irreps_in1: Any, irreps_in2: Any, irreps_out: Any,
                 instructions: Sequence[Any], in1_var: Optional[Sequence[float]] = None,
                 in2_var: Optional[Sequence[float]] = None,
                 out_var: Optional[Sequence[float]] = None,
                 irrep_normalization: Optional[str] = "component",
                 path_normalization: Optional[str] = "element",
                 internal_weights: Optional[bool] = None, shared_weights: Optional[bool] = None,
                 label: Optional[str] = None, irrep_dtype: Any = np.float32,
                 weight_dtype: Any = np.float32, layout: str = "mul_ir", signs: str = "e3nn"):
        self.irreps_in1, self.irreps_in2 = Irreps(irreps_in1), Irreps(irreps_in2)
        self.irreps_out = Irreps(irreps_out)
        self.instructions: List[Instruction] = [_instruction(i) for i in instructions]
        if internal_weights:
            raise bad("internal_weights", "False: weights are arguments; weft.o3.TensorProduct has "
                      "them inside", repr(internal_weights))
        self.shared_weights = shared_weights is None or bool(shared_weights)
        self.internal_weights = False
        self.in1_var, self.in2_var, self.out_var = in1_var, in2_var, out_var
        self.irrep_normalization = irrep_normalization
        self.path_normalization = path_normalization
        self.label, self.layout, self.signs = label or "tensor product", layout, signs
        self.type = type_of("irrep_dtype", irrep_dtype)
        self.weight_type = type_of("weight_dtype", weight_dtype)
        self.irrep_dtype = _NUMPY.get(self.type, self.type)
        self.weight_dtype = _NUMPY.get(self.weight_type, self.weight_type)
        facts = dict(line.split(None, 1) for line in tell(self.spec("tp")).splitlines())
        self.weight_numel = int(facts.get("weights", 0))

    @property
    def weights(self) -> str:
        """none, shared or item."""
        if not any(i.has_weight for i in self.instructions):
            return "none"
        return "shared" if self.shared_weights else "item"

    def spec(self, form: str, **more: Any) -> str:
        """The problem as a line of text for the library, in the form "tp" or "conv"."""
        paths = ", ".join(f"{a} {b} {c} {mode} {'yes' if has else 'no'} {float(weight)!r}"
                          for a, b, c, mode, has, weight in self.instructions)
        weights = None if form == "conv" and self.weights == "item" else self.weights
        return _spec(form, {
            "in1": self.irreps_in1, "in2": self.irreps_in2, "out": self.irreps_out, "paths": paths,
            "weights": weights, "type": self.type, "weight_type": self.weight_type,
            "layout": self.layout, "norm": _norm("irrep_normalization", self.irrep_normalization),
            "path_norm": _norm("path_normalization", self.path_normalization),
            "var1": self.in1_var, "var2": self.in2_var, "var_out": self.out_var,
            "signs": self.signs, **more})

    def __getstate__(self) -> Dict[str, Any]:
        """Arguments, as text and lists: what torch.load takes without trust."""
        state = {name: getattr(self, name) for name in (
            "in1_var", "in2_var", "out_var", "irrep_normalization", "path_normalization", "shared_weights",
            "label", "layout", "signs")}
        for name in ("irreps_in1", "irreps_in2", "irreps_out"):
            state[name] = str(getattr(self, name))
        return {**state, "instructions": [tuple(i) for i in self.instructions],
                "irrep_dtype": self.type, "weight_dtype": self.weight_type}

    def __setstate__(self, state: Dict[str, Any]) -> None:
        self.__init__(**state)

    def clone(self, **changes: Any) -> "TPProblem":
        """The same problem, with some arguments changed."""
        return TPProblem(**{**self.__getstate__(), **changes})

    def __repr__(self) -> str:
        return (f"TPProblem({self.irreps_in1} x {self.irreps_in2} -> {self.irreps_out}, "
                f"{len(self.instructions)} paths, {self.weight_numel} weights, {self.type})")


def _norm(name: str, value: Optional[str]) -> str:
    known = ("component", "norm") if name == "irrep_normalization" else ("element", "path")
    if value is None or value == "none":
        return "none"
    if value not in known:
        raise bad(name, f"one of {', '.join(known)} and none", repr(value))
    return value


def _instruction(i: Any) -> Instruction:
    words = tuple(i)
    if not 5 <= len(words) <= 6:
        raise bad("instructions", "(i_in1, i_in2, i_out, mode, has_weight[, path_weight])", repr(i))
    a, b, c, mode, has, *weight = words
    slots = [_check.size("instructions", k) for k in (a, b, c)]
    return Instruction(*slots, str(mode), bool(has),
                       _check.real("instructions", weight[0] if weight else 1))
