# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""MACE: the convolution of each interaction, with gather and sum, and each symmetric contraction become
one operator.  Modules keep their parameters and buffers, and so their state dicts; only classes change.

MACE is made for e3nn 0.4, whose 3j symbols have other signs than those of later releases."""

from __future__ import annotations

from typing import List, Optional, Sequence, Tuple

import e3nn
import torch
from e3nn.o3 import TensorProduct
from mace.modules.blocks import InteractionBlock
from mace.modules.symmetric_contraction import SymmetricContraction
from mace.tools.scatter import scatter_sum
from torch.autograd.forward_ad import unpack_dual

from ._radial import take_last
from ._specs import Specs, has_forward_of
from ._swap import Swapped, swap
from .._irreps import tell
from .._o3 import _spec
from .._torch import function, is_traced, run
from ..o3 import _typed

SIGNS = "e3nn-0.4" if e3nn.__version__.startswith(("0.1", "0.2", "0.3", "0.4")) else "e3nn"


class Convolution(Specs, TensorProduct):
    """conv_tp of an interaction that has conv_fusion: senders, receivers and the sum are in it."""

    weft_stock = TensorProduct
    weft_options = {"signs": SIGNS, "irrep_normalization": "none", "path_normalization": "none"}
    weft_block: Sequence[InteractionBlock] = ()  # whose it is

    def forward(self, x, y, weight, edge_index):
        return super().forward(x, y, weight, edge_index)

    def weft_problem(self) -> tuple:
        """Path weights of e3nn's own instructions have all normalisation in them."""
        paths = [(*tuple(i)[:5], float(i.path_weight) ** 2) for i in self.instructions]
        return self.irreps_in1, self.irreps_in2, self.irreps_out, paths

    def weft_run(self, x, y, weight, edge_index):
        return self.weft_conv(x, y, weight, edge_index[1], edge_index[0])

    def weft_stock_run(self, x, y, weight, edge_index):
        edges = super().weft_stock_run(x[edge_index[0]], y, self.weft_weights(weight))
        return scatter_sum(edges, edge_index[1], dim=0, dim_size=x.shape[0])

    def weft_restore(self) -> None:
        for block in self.weft_block:
            block.__dict__.pop("conv_fusion", None)
        super().weft_restore()


def _elements(y: torch.Tensor) -> Optional[torch.Tensor]:
    """The element of each item if every row of y is one-hot and no derivative by y can be asked for;
    otherwise None.  Values cannot be looked at while code is traced or transformed."""
    if is_traced() or torch._C._are_functorch_transforms_active():
        return None
    if (y.requires_grad and torch.is_grad_enabled()) or unpack_dual(y).tangent is not None:
        return None
    largest, where = y.max(1)
    one_hot = bool((largest == 1).all()) and int(y.count_nonzero()) == len(y)
    return where if one_hot else None


class Contraction(Swapped, SymmetricContraction):
    """All outputs of a symmetric contraction at once.  Results are linear in the attributes y of items,
    whose products with the weights of elements are the weights of an item.  A one-hot row selects the
    weights of one element, so that no product is needed."""

    weft_stock = SymmetricContraction

    def forward(self, x, y):
        return super().forward(x, y)

    def weft_setup(self) -> None:
        """Its problem, and which parameter each block of its weights is."""
        correlation = self.contractions[0].correlation
        self._weft_spec = _spec("contraction", {
            "in1": str(self.irreps_in), "out": str(self.irreps_out), "correlation": correlation,
            "layout_in1": "ir_mul", "layout_out": "mul_ir", "signs": SIGNS})
        paths = [tuple(line.split()[1:]) for line in tell(self._weft_spec).splitlines()
                 if line.startswith("path ")]
        self._weft_blocks: List[Tuple[int, int]] = []  # output slot; place in weights, -1: weights_max
        for k, part in enumerate(self.contractions):
            if part.correlation != correlation:
                raise ValueError("contractions of different correlations")
            for d in range(1, correlation + 1):
                if (str(k), str(d)) in paths:
                    self._weft_blocks.append((k, correlation - 1 - d))

    def weft_weights(self) -> torch.Tensor:
        parts = [self.contractions[k] for k, _ in self._weft_blocks]
        return torch.cat([part.weights_max if at < 0 else part.weights[at]
                          for part, (_, at) in zip(parts, self._weft_blocks)], 1)

    def weft_run(self, x, y):
        given = {"X": x.transpose(1, 2).reshape(x.shape[0], -1),
                 "Wt": self.weft_weights().to(x.dtype), "el": _elements(y)}
        text = _typed(self._weft_spec, x.dtype)
        if given["el"] is None:
            text += "; weights=item"
            mixed = y.to(x.dtype) @ given["Wt"].flatten(1)
            given["Wt"] = mixed.unflatten(1, given["Wt"].shape[1:])
        names = ["X", "Wt"] if torch.compiler.is_compiling() else [
            a.name for a in function(text).inputs]
        return run(text, [given[name] for name in names])[0]


def _fuse(block: InteractionBlock) -> bool:
    """Only in blocks of MACE itself: others may do more with the weights of edges, or know nothing of
    conv_fusion."""
    tp = getattr(block, "conv_tp", None)
    if type(tp) is not TensorProduct or hasattr(block, "conv_fusion") or not has_forward_of(block, "mace"):
        return False
    swap(tp, Convolution)
    tp.weft_block = [block]
    block.conv_fusion = "weft"
    return True


def _contract(module: SymmetricContraction) -> bool:
    """Replaced only if it gives the same: reduced bases of other packages do not.  Weights are random,
    as the module's own may be zero, and a state dict can bring others."""
    parts = module.contractions
    w = parts[0].weights_max
    n, ell = 3, parts[0].U_tensors(1).shape[-2]
    g = torch.Generator().manual_seed(0)
    weights = {name: torch.randn(p.shape, generator=g, dtype=p.dtype)
               for name, p in module.named_parameters()}
    x = torch.randn(n, w.shape[2], ell, generator=g, dtype=w.dtype)
    items = (torch.eye(w.shape[0], dtype=w.dtype)[torch.arange(n) % w.shape[0]],
             torch.randn(n, w.shape[0], generator=g, dtype=w.dtype))
    with torch.no_grad():
        want = [torch.func.functional_call(module, weights, (x, y)) for y in items]
        swap(module, Contraction)
        try:
            module.weft_setup()
            got = [torch.func.functional_call(module, weights, (x, y)) for y in items]
        except (ValueError, RuntimeError):
            got = []
    if got and all(a.shape == b.shape and bool((a - b).abs().max() <= 1e-4 * b.abs().max())
                   for a, b in zip(got, want)):
        return True
    module.weft_restore()
    return False


def replace(model: torch.nn.Module, fuse: Optional[bool]) -> List[Tuple[str, str]]:
    out = []
    for name, module in model.named_modules():
        if isinstance(module, InteractionBlock) and _fuse(module):
            radial = take_last(module.conv_tp, module.conv_tp_weights, fuse)
            out.append((name + ".conv_tp", f"convolution over edges, {module.conv_tp.irreps_in1} -> "
                                           f"{module.conv_tp.irreps_out}{radial}"))
        elif type(module) is SymmetricContraction and _contract(module):
            out.append((name, f"symmetric contraction, {module.irreps_in} -> {module.irreps_out}"))
    return out
