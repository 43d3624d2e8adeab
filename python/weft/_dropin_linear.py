# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""The drop-in for e3nn.o3.Linear."""

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple, Union

import torch

from ._check import integer, size
from ._dropin import Dropin, Views, _broadcast, _mask, _rows, _typed, as_type
from ._irreps import Irreps
from ._o3 import _spec
from ._peers import Mismatch, Unfit, slot_at, weights_of
from ._sparse import bad
from ._torch import run
from ._uses import hold


class LinearInstruction(NamedTuple):
    """One path of a linear layer, or with i_in -1 the bias of an output slot."""

    i_in: int
    i_out: int
    path_shape: Tuple[int, ...]
    path_weight: float


class LinearSlices(NamedTuple):
    """Where the weights of a path are in a row of all, and their shape."""

    slice_1D: slice
    shape_2D: Tuple[int, ...]


class Linear(Views, Dropin):
    """e3nn.o3.Linear: mixes the channels of each irrep; weights and biases are inside, or given.

    With f_in and f_out, features are (..., f_in, irreps_in.dim) and results (..., f_out, irreps_out.dim):
    all f_in copies reach each of the f_out, by weights (f_in, f_out, weight_numel)."""

    def __init__(self, irreps_in: Any, irreps_out: Any, *, f_in: Optional[int] = None,
                 f_out: Optional[int] = None, internal_weights: Optional[bool] = None,
                 shared_weights: Optional[bool] = None,
                 instructions: Optional[Sequence[Tuple[int, int]]] = None,
                 biases: Union[bool, Sequence[bool], None] = False, path_normalization: str = "element",
                 _optimize_einsums: Optional[bool] = None):
        super().__init__()
        self.irreps_in, self.irreps_out = Irreps(irreps_in), Irreps(irreps_out)
        if (f_in is None) != (f_out is None):
            raise Unfit("f_in, f_out: expected both or none, got one")
        self._copies = None if f_in is None else (size("f_in", f_in), size("f_out", f_out))
        if path_normalization not in ("element", "path"):
            raise Unfit(f"path_normalization: expected element or path, got {path_normalization!r}")
        self._share(internal_weights, shared_weights, True)
        pairs = self._pairs(instructions)
        self._biased = self._biases(biases)
        self.weight_numel = sum(self.irreps_in[i].mul * self.irreps_out[k].mul for i, k in pairs)
        self.bias_numel = sum(self.irreps_out[k].mul for k in self._biased)
        self.instructions = self._paths(pairs, path_normalization)
        self._path_norm = path_normalization
        self._keep(pairs, path_normalization)

    def _theirs(self) -> Tuple[str, str, Sequence[Any], Dict[str, Any]]:
        f_in, f_out = self._copies or (None, None)
        return "_linear", "Linear", (str(self.irreps_in), str(self.irreps_out)), {
            "f_in": f_in, "f_out": f_out, "internal_weights": self.internal_weights,
            "shared_weights": self.shared_weights, "path_normalization": self._path_norm,
            "instructions": [(i.i_in, i.i_out) for i in self.instructions if i.i_in >= 0],
            "biases": [k in self._biased for k in range(len(self.irreps_out))]}

    def _pairs(self, instructions: Optional[Sequence[Any]]) -> List[Tuple[int, int]]:
        if instructions is None:
            return [(i, k) for i, a in enumerate(self.irreps_in) for k, b in enumerate(self.irreps_out)
                    if a.ir == b.ir]
        pairs = []
        for n, pair in enumerate(instructions):
            i, k = (integer("instructions", v, 0) for v in tuple(pair)[:2])
            a = slot_at("irreps_in", self.irreps_in, i, n)
            b = slot_at("irreps_out", self.irreps_out, k, n)
            if a.ir != b.ir:
                raise bad("instructions", "pairs of slots with the same irrep",
                          f"path {n} from slot {i}, {a}, to slot {k}, {b}")
            pairs.append((i, k))
        return pairs

    def _biases(self, biases: Any) -> List[int]:
        """The output slots with biases."""
        if biases is None or isinstance(biases, bool):
            return [k for k, slot in enumerate(self.irreps_out) if biases and slot.ir.is_scalar()]
        wanted = [bool(b) for b in biases]
        if len(wanted) != len(self.irreps_out):
            raise Unfit(f"biases: expected True or False, or one of them for each of "
                        f"{len(self.irreps_out)} slots, got {len(wanted)}")
        for slot, b in zip(self.irreps_out, wanted):
            if b and not slot.ir.is_scalar():
                raise Unfit(f"biases: expected them for slots of 0e only, got one for {slot}")
        return [k for k, b in enumerate(wanted) if b]

    def _paths(self, pairs: Sequence[Tuple[int, int]], norm: str) -> List[LinearInstruction]:
        f = self._copies[0] if self._copies else 1

        def reaching(i: int, k: int) -> int:
            """How many channels are summed up, as the normalisation counts them."""
            return f * sum(self.irreps_in[j if norm == "element" else i].mul for j, m in pairs if m == k)

        out = [LinearInstruction(i, k, (self.irreps_in[i].mul, self.irreps_out[k].mul),
                                 (reaching(i, k) or 1) ** -0.5) for i, k in pairs]
        return out + [LinearInstruction(-1, k, (self.irreps_out[k].mul,), 1.0) for k in self._biased]

    def _keep(self, pairs: Sequence[Tuple[int, int]], norm: str) -> None:
        """With copies, these are channels of the slots: copy f of channel u is channel (f, u)."""
        f, g = self._copies or (1, 1)
        one, out = ([(n * slot.mul, slot.ir) for slot in of]
                    for n, of in ((f, self.irreps_in), (g, self.irreps_out)))
        weights = "shared" if self.shared_weights else "item"
        self._spec = _spec("linear", {
            "in1": Irreps(one), "out": Irreps(out), "paths": ", ".join(f"{i} {k}" for i, k in pairs),
            "weights": weights, "bias": bool(self.bias_numel), "path_norm": norm})
        self._is_zero = f * g * self.weight_numel == 0
        if not self._is_zero:
            hold(self, self._spec)
        lead = () if self._copies is None else self._copies
        self._weights_inside("weight", (*lead, self.weight_numel), torch.randn)
        self._weights_inside("bias", (*lead[1:], self.bias_numel), torch.zeros)
        reached = {i.i_out for i in self.instructions if 0 not in i.path_shape}
        self.register_buffer("output_mask", _mask(self.irreps_out, reached))

    def forward(self, features: torch.Tensor, weight: Optional[torch.Tensor] = None,
                bias: Optional[torch.Tensor] = None) -> torch.Tensor:
        # Without paths nothing is read, so any width will do, as in e3nn: MACE has such layers.
        x = as_type(features, None, "features", None if self._is_zero else self.irreps_in.dim)
        dtype = x.dtype
        if self._copies is not None and x.shape[-2:-1] != self._copies[:1]:
            raise Mismatch(f"features: expected the shape (..., {self._copies[0]}, {self.irreps_in.dim}), got "
                           f"{tuple(x.shape)}")
        lead = x.shape[:-1] if self._copies is None else x.shape[:-2]
        w = self._given("weight", weight, self.weight_numel).to(dtype)
        bias = self._given("bias", bias, self.bias_numel).to(dtype) if self.bias_numel else None
        if not self.shared_weights:
            lead = _broadcast(lead, w.shape[:-1 if self._copies is None else -3])
        if self._is_zero:
            return self._without_weights(x, lead, bias)
        if self._copies is not None:
            x, w = self._by_slots(x, self.irreps_in), self._by_channels(w)
        operands = [_rows(x, lead), w if self.shared_weights else _rows(w, lead)]
        if bias is not None:
            operands.append(self._all_biases(bias).flatten())
        z = run(_typed(self._spec, dtype), operands)[0]
        if self._copies is not None:
            return self._by_copies(z, lead)
        return z if len(lead) == 1 else z.reshape(*lead, self.irreps_out.dim)

    def _given(self, name: str, value: Optional[torch.Tensor], n: int) -> torch.Tensor:
        lead = () if self._copies is None else self._copies[name == "bias":]
        if value is None:
            if n and not self.internal_weights:
                raise Mismatch(f"{name}: expected {(*lead, n)} numbers, as there are none inside, got None")
            value = getattr(self, name)
            return value if n else value.new_zeros(*lead, 0)
        shape = (*lead, n)
        if tuple(value.shape[-len(shape):]) != shape:
            raise Mismatch(f"{name}: expected the shape {shape}, got {tuple(value.shape)}")
        return value

    def _all_biases(self, bias: torch.Tensor) -> torch.Tensor:
        """Of all slots of 0e, zeros for those without, one after the other: with copies, those of a slot
        are together."""
        own = iter(bias.split([self.irreps_out[k].mul for k in self._biased], -1))
        return torch.cat([(next(own) if k in self._biased else bias.new_zeros(*bias.shape[:-1], slot.mul)
                           ).reshape(-1) for k, slot in enumerate(self.irreps_out) if slot.ir.is_scalar()])

    def _without_weights(self, x: torch.Tensor, lead: torch.Size,
                         bias: Optional[torch.Tensor]) -> torch.Tensor:
        copies = () if self._copies is None else self._copies[1:]
        if bias is None:
            return x.new_zeros(*lead, *copies, self.irreps_out.dim)
        own = iter(bias.split([self.irreps_out[k].mul for k in self._biased], -1))
        row = torch.cat([next(own) if k in self._biased else bias.new_zeros(*copies, slot.dim)
                         for k, slot in enumerate(self.irreps_out)], -1)
        return row.expand(*lead, *row.shape)

    def _by_slots(self, x: torch.Tensor, irreps: Irreps) -> torch.Tensor:
        """(..., copies, dim) to (..., copies * dim), where the copies of a slot are together."""
        return torch.cat([part.flatten(-2) for part in x.split([s.dim for s in irreps], -1)], -1)

    def _by_copies(self, z: torch.Tensor, lead: torch.Size) -> torch.Tensor:
        """The inverse, for results."""
        g = self._copies[1]
        parts = z.split([g * s.dim for s in self.irreps_out], -1)
        return torch.cat([part.unflatten(-1, (g, s.dim)) for part, s in zip(parts, self.irreps_out)],
                         -1).reshape(*lead, g, self.irreps_out.dim)

    def _by_channels(self, w: torch.Tensor) -> torch.Tensor:
        """Weights (..., f, g, path, u, w) to (..., path, f, u, g, w)."""
        shapes = [i.path_shape for i in self.instructions if i.i_in >= 0]
        parts = w.split([a * b for a, b in shapes], -1)
        return torch.cat([p.unflatten(-1, s).transpose(-3, -2).flatten(-4)
                          for p, s in zip(parts, shapes)], -1)

    def _given_weights(self, weight: Optional[torch.Tensor]) -> torch.Tensor:
        return self._given("weight", weight, self.weight_numel)

    def _weighted(self) -> List[int]:
        return [i for i, ins in enumerate(self.instructions) if ins.i_in >= 0]

    @property
    def weight_index_slices(self) -> List[LinearSlices]:
        """Of each instruction; biases are counted on from the end of the weights."""
        shapes = [i.path_shape for i in self.instructions]
        return [LinearSlices(slice(start, start + n), shape)
                for shape, (start, n) in zip(shapes, weights_of(shapes))]

    def extra_repr(self) -> str:
        return f"{self.irreps_in} -> {self.irreps_out} | {self.weight_numel} weights"
