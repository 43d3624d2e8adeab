# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""Matrices of rotations for irreps, as tensors of torch with gradients: D = exp of generators.  The
generators of a degree come from its 3j symbols with 1, so both have one convention, which is e3nn's."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Iterable, Optional, Sequence, Tuple

import numpy as np
import torch

from ._irreps import Irreps, Slot, wigner_3j
from ._lib import ArgumentError


@lru_cache(maxsize=64)
def _generators(l: int) -> np.ndarray:
    """Of rotations about x, y and z: (3, 2l + 1, 2l + 1).  The symbol (l, 1, l) is the same tensor but for
    a factor; its length is known, and its sign is that for which X Y - Y X = Z."""
    if l == 0:
        return np.zeros((3, 1, 1))
    out = wigner_3j(l, 1, l).transpose(1, 0, 2) * np.sqrt(l * (l + 1) * (2 * l + 1))
    turned = out[0] @ out[1] - out[1] @ out[0]
    return out if (turned * out[2]).sum() > 0 else -out


def generators(l: int, like: torch.Tensor) -> torch.Tensor:
    return torch.as_tensor(_generators(l), dtype=like.dtype, device=like.device)


def wigner_D(l: int, alpha: torch.Tensor, beta: torch.Tensor, gamma: torch.Tensor) -> torch.Tensor:
    """How degree l turns: (..., 2l + 1, 2l + 1), for a rotation by gamma about y, then by beta about x,
    then by alpha about y."""
    alpha, beta, gamma = torch.broadcast_tensors(*_real(alpha, beta, gamma))
    about = generators(l, alpha)

    def turn(angle: torch.Tensor, axis: int) -> torch.Tensor:
        return torch.matrix_exp((angle % (2 * np.pi))[..., None, None] * about[axis])

    return turn(alpha, 1) @ turn(beta, 0) @ turn(gamma, 1)


def _real(*values: Any) -> Tuple[torch.Tensor, ...]:
    """Tensors of one floating type."""
    given = [torch.as_tensor(v) for v in values]
    dtype = given[0].dtype
    for v in given[1:]:
        dtype = torch.promote_types(dtype, v.dtype)
    if not dtype.is_floating_point:
        dtype = torch.get_default_dtype()
    return tuple(v.to(dtype) for v in given)


def _whole(slots: Iterable[Slot], blocks: Any, k: Optional[torch.Tensor], like: torch.Tensor,
           lead: Sequence[int]) -> torch.Tensor:
    """The blocks of the degrees, each as often as its slot says and times its parity for each inversion."""
    slots = list(slots)
    of = {l: blocks(l) for l in {slot.l for slot in slots if slot.mul}}
    dim = sum(slot.dim for slot in slots)
    rows, at = [], 0
    for mul, ir in slots:
        block = of.get(ir.l)
        if block is not None and k is not None and ir.p == -1:
            block = block * ir.p ** k[..., None, None]
        for _ in range(mul):
            rows.append(torch.nn.functional.pad(block.expand(*lead, ir.dim, ir.dim),
                                                (at, dim - at - ir.dim)))
            at += ir.dim
    return torch.cat(rows, -2) if rows else like.new_zeros(*lead, 0, 0)


def of_angles(slots: Iterable[Slot], alpha: Any, beta: Any, gamma: Any, k: Any = None) -> torch.Tensor:
    alpha, beta, gamma = torch.broadcast_tensors(*_real(alpha, beta, gamma))
    lead = alpha.shape
    if k is not None:
        k = torch.as_tensor(k, device=alpha.device)
        lead = torch.broadcast_shapes(lead, k.shape)
    return _whole(slots, lambda l: wigner_D(l, alpha, beta, gamma), k, alpha, lead)


def of_axis_angle(slots: Iterable[Slot], axis: Any, angle: Any) -> torch.Tensor:
    axis, angle = _real(axis, angle)
    axis = torch.nn.functional.normalize(axis, dim=-1) * angle[..., None]
    return _whole(slots, lambda l: torch.matrix_exp(
        torch.einsum("...a,aij->...ij", axis, generators(l, axis))), None, axis, axis.shape[:-1])


def of_quaternion(slots: Iterable[Slot], q: Any, k: Any = None) -> torch.Tensor:
    q, = _real(q)
    return of_angles(slots, *angles_of_matrix(_matrix_of_quaternion(q)), k)


def of_matrix(slots: Iterable[Slot], R: Any) -> torch.Tensor:
    R, = _real(R)
    if R.shape[-2:] != (3, 3):
        raise ArgumentError(f"R: expected matrices (..., 3, 3), got the shape {tuple(R.shape)}")
    sign = torch.det(R).sign()
    return of_angles(slots, *angles_of_matrix(sign[..., None, None] * R), (1 - sign) / 2)


def _matrix_of_quaternion(q: torch.Tensor) -> torch.Tensor:
    w, x, y, z = torch.nn.functional.normalize(q, dim=-1).unbind(-1)
    rows = [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y),
            2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x),
            2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)]
    return torch.stack(rows, -1).unflatten(-1, (3, 3))


def angles_of_matrix(R: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """alpha, beta, gamma of rotations (..., 3, 3).  The y axis goes to the direction of alpha and beta;
    what is left is a rotation about it, which gamma is."""
    x, y, z = R[..., 1].unbind(-1)
    alpha, beta = torch.atan2(x, z), torch.acos(y.clamp(-1, 1))
    c, s, zero = torch.cos(alpha), torch.sin(alpha), torch.zeros_like(alpha)
    back = torch.stack([c, zero, -s], -1)  # the x axis by alpha: beta does not move it
    row = (back[..., :, None] * R).sum(-2)
    return alpha, beta, torch.atan2(row[..., 2], row[..., 0])


def randn(irreps: Irreps, size: Sequence[int], normalization: str, requires_grad: bool, dtype: Any,
          device: Any) -> torch.Tensor:
    if list(size).count(-1) != 1:
        raise ArgumentError(f"size: expected one -1 for the features, got {tuple(size)}")
    if normalization not in ("component", "norm"):
        raise ArgumentError(f"normalization: expected component or norm, got {normalization!r}")
    at = list(size).index(-1)
    out = torch.randn(*size[:at], irreps.dim, *size[at + 1:], dtype=dtype, device=device)
    if normalization == "norm" and irreps.dim:
        parts = [part.unflatten(at, (mul, ir.dim)) for (mul, ir), part in
                 zip(irreps, out.split([slot.dim for slot in irreps], at))]
        out = torch.cat([(part / part.norm(dim=at + 1, keepdim=True)).flatten(at, at + 1)
                         for part in parts], at)
    return out.requires_grad_(requires_grad)
