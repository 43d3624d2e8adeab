# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""What replaced convolutions have in common: their problem as text, by the dtype of features."""

from __future__ import annotations

from typing import Any, Dict

import torch

from .._problem import TPProblem
from ..o3 import _TYPE_OF


class Specs:
    """A base of modules that have weft_problem(): irreps of the operands, and instructions."""

    weft_options: Dict[str, Any] = {}  # of TPProblem

    def weft_spec(self, dtype: torch.dtype) -> str:
        """The problem for features of this type, made once."""
        specs = self.__dict__.setdefault("_weft_specs", {})
        if dtype not in specs:
            problem = TPProblem(*self.weft_problem(), irrep_dtype=_TYPE_OF[dtype],
                                weight_dtype=_TYPE_OF[dtype], **self.weft_options)
            specs[dtype] = problem.spec("conv")
        return specs[dtype]
