# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""Layers of sparse convolution, with the arguments, parameter names and weights of spconv 2: `weight` is
(out channels, *kernel_size, in channels), `bias` (out channels), so that state dicts go both ways.
docs/conv3d.md."""

from __future__ import annotations

import math
from contextlib import contextmanager
from typing import Any, Dict, Iterator, NamedTuple, Optional, Sequence

import torch
from torch import Tensor, nn

from .._check import integer
from .._conv3d import KernelMap, Three, conv3d, kernel_map, triple
from .._lib import ArgumentError
from .._sparse import bad


class _Kept(NamedTuple):
    """A map under its key, with what it was made for."""

    map: KernelMap
    settings: tuple


class SparseConvTensor:
    """Voxels with features: features (n, channels), indices (n, 4) of batch index and three coordinates,
    spatial_shape the size of the grid, batch_size the number of samples.  indice_dict: the kernel maps made
    so far, by indice_key; tensors that layers make of one another share it."""

    def __init__(self, features: Tensor, indices: Tensor, spatial_shape: Sequence[int], batch_size: int,
                 grid: Any = None, voxel_num: Any = None, indice_dict: Optional[Dict[Any, _Kept]] = None,
                 benchmark: bool = False, permanent_thrust_allocator: bool = False, enable_timer: bool = False,
                 force_algo: Any = None):
        if not isinstance(features, Tensor) or features.dim() != 2 or not features.is_floating_point():
            raise bad("features", "a floating-point tensor (voxels, channels)", _what(features))
        if not isinstance(indices, Tensor) or indices.dim() != 2 or indices.shape[1] != 4 or \
                indices.dtype not in (torch.int32, torch.int64):
            raise bad("indices", "an integer tensor (voxels, 4): batch index and three coordinates",
                      _what(indices))
        if features.shape[0] != indices.shape[0]:
            raise bad("features", f"a row for each of the {indices.shape[0]} voxels of indices",
                      f"{features.shape[0]} rows")
        self.features, self.indices = features, indices
        self.spatial_shape = list(triple("spatial_shape", spatial_shape, 1))
        self.batch_size = integer("batch_size", batch_size, 1)
        self.indice_dict: Dict[Any, _Kept] = {} if indice_dict is None else indice_dict

    def replace_feature(self, feature: Tensor) -> "SparseConvTensor":
        """The same voxels and maps with other features."""
        return SparseConvTensor(feature, self.indices, self.spatial_shape, self.batch_size,
                                indice_dict=self.indice_dict)

    def minus(self) -> "SparseConvTensor":
        return self.replace_feature(-self.features)

    def shadow_copy(self) -> "SparseConvTensor":
        """Another tensor with the same features, voxels and maps."""
        return self.replace_feature(self.features)

    def select_by_index(self, valid_indices: Tensor) -> "SparseConvTensor":
        """These voxels alone, which have maps of their own."""
        return SparseConvTensor(self.features[valid_indices], self.indices[valid_indices], self.spatial_shape,
                                self.batch_size)

    @classmethod
    def from_dense(cls, x: Tensor) -> "SparseConvTensor":
        """Of a dense tensor (batch, *shape, channels), the places with a feature that is not 0."""
        if not isinstance(x, Tensor) or x.dim() != 5 or not x.is_floating_point():
            raise bad("x", "a floating-point tensor (batch, three dimensions, channels)", _what(x))
        indices = (x.detach() != 0).any(-1).nonzero()
        return cls(x[tuple(indices.unbind(1))], indices.int(), x.shape[1:4], x.shape[0])

    def find_indice_pair(self, key: Any) -> Optional[KernelMap]:
        kept = self.indice_dict.get(key) if key is not None else None
        return None if kept is None else kept.map

    def dense(self, channels_first: bool = True) -> Tensor:
        """The whole grid, 0 where there is no voxel: (batch, channels, *shape), or channels last."""
        shape = (self.batch_size, *self.spatial_shape, self.features.shape[1])
        out = self.features.new_zeros(shape).index_put(tuple(self.indices.long().unbind(1)), self.features)
        return out.movedim(-1, 1) if channels_first else out

    @property
    def spatial_size(self) -> int:
        return math.prod(self.spatial_shape)

    @property
    def sparity(self) -> float:  # as spconv spells it
        return len(self.indices) / self.spatial_size / self.batch_size

    def __repr__(self) -> str:
        return f"SparseConvTensor[shape={tuple(self.features.shape)}]"


def _what(x: Any) -> str:
    return f"{x.dtype} of shape {tuple(x.shape)}" if isinstance(x, Tensor) else type(x).__name__


@contextmanager
def _named_as_here() -> Iterator[None]:
    """What weft.kernel_map says of its arguments, by the names of SparseConvTensor."""
    try:
        yield
    except ArgumentError as e:
        name, _, rest = str(e).partition(":")
        own = {"coords": "indices", "shape": "spatial_shape"}.get(name)
        if own is None:
            raise
        raise ArgumentError(f"{own}:{rest}".replace("larger shape, or leave it out", "larger spatial_shape")
                            .replace("larger batch size", "larger batch_size")) from None


class _Convolution(nn.Module):
    """What all of them share: parameters, and the product over a map that the class finds."""

    def __init__(self, in_channels: int, out_channels: int, kernel_size: Three, stride: Three = 1,
                 padding: Three = 0, dilation: Three = 1, groups: int = 1, bias: bool = True,
                 indice_key: Optional[str] = None, output_padding: Three = 0):
        super().__init__()
        if groups != 1:
            raise bad("groups", "1; split the channels into several layers instead", groups)
        self.in_channels = integer("in_channels", in_channels, 1)
        self.out_channels = integer("out_channels", out_channels, 1)
        self.kernel_size = list(triple("kernel_size", kernel_size, 1))
        self.stride, self.dilation = list(triple("stride", stride, 1)), list(triple("dilation", dilation, 1))
        self.padding = list(triple("padding", padding))
        self.output_padding = list(triple("output_padding", output_padding))
        self.groups, self.indice_key = groups, indice_key
        self.weight = nn.Parameter(torch.empty(out_channels, *self.kernel_size, in_channels))
        if bias:
            self.bias = nn.Parameter(torch.empty(out_channels))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Uniform in +-1 / sqrt(in channels * offsets), as dense convolutions of torch begin."""
        bound = 1 / math.sqrt(self.in_channels * math.prod(self.kernel_size))
        nn.init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            nn.init.uniform_(self.bias, -bound, bound)

    def _settings(self) -> tuple:
        return (type(self).__name__, tuple(self.kernel_size), tuple(self.stride), tuple(self.padding),
                tuple(self.dilation), tuple(self.output_padding))

    def _make(self, input: SparseConvTensor) -> KernelMap:
        raise NotImplementedError

    def _map(self, input: SparseConvTensor) -> KernelMap:
        """The map under the layer's key, or a new one, which is kept there."""
        kept = input.indice_dict.get(self.indice_key) if self.indice_key is not None else None
        if kept is None:
            with _named_as_here():
                kept = _Kept(self._make(input), self._settings())
            if self.indice_key is not None:
                input.indice_dict[self.indice_key] = kept
        if kept.settings != self._settings() or not _is_of(kept.map, input):
            raise ArgumentError(f"indice_key: {self.indice_key!r} names a map of another kernel or of other "
                                "voxels; give this layer a key of its own")
        return kept.map

    def forward(self, input: SparseConvTensor) -> SparseConvTensor:
        if not isinstance(input, SparseConvTensor):
            raise bad("input", "a weft.nn.SparseConvTensor", type(input).__name__)
        if input.features.shape[1] != self.in_channels:
            raise bad("input", f"{self.in_channels} channels, as the layer takes", input.features.shape[1])
        map = self._map(input)
        if input.features.dtype != self.weight.dtype and not torch.is_autocast_enabled("cpu"):
            raise bad("input", f"features of {self.weight.dtype}, as the layer's weight has; convert one of them",
                      input.features.dtype)
        features = conv3d(input.features, self.weight, map, self.bias)
        return SparseConvTensor(features, map.coords, map.shape or input.spatial_shape, input.batch_size,
                                indice_dict=input.indice_dict)

    def extra_repr(self) -> str:
        text = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        return text + f", padding={self.padding}, dilation={self.dilation}, bias={self.bias is not None}"


def _is_of(map: KernelMap, input: SparseConvTensor) -> bool:
    """Whether it was made for these voxels: as a rule the very tensor, or an equal one."""
    return map.in_coords is input.indices or (map.n_in == input.indices.shape[0] and
                                              bool((map.in_coords == input.indices).all()))


class SubMConv3d(_Convolution):
    """Submanifold convolution: outputs are where inputs are, so stride and padding do not count.  Layers
    with the same indice_key share one kernel map."""

    def __init__(self, in_channels: int, out_channels: int, kernel_size: Three, stride: Three = 1,
                 padding: Three = 0, dilation: Three = 1, groups: int = 1, bias: bool = True,
                 indice_key: Optional[str] = None, algo: Any = None, fp32_accum: Any = None,
                 large_kernel_fast_algo: bool = False, name: Any = None):
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, indice_key)

    def _settings(self) -> tuple:
        return (type(self).__name__, tuple(self.kernel_size), tuple(self.dilation))

    def _make(self, input: SparseConvTensor) -> KernelMap:
        return kernel_map(input.indices, self.kernel_size, dilation=self.dilation, shape=input.spatial_shape,
                          batch_size=input.batch_size)


class SparseConv3d(_Convolution):
    """Convolution with stride: outputs are all places of the output grid that an input reaches."""

    transposed = False

    def __init__(self, in_channels: int, out_channels: int, kernel_size: Three, stride: Three = 1,
                 padding: Three = 0, dilation: Three = 1, groups: int = 1, bias: bool = True,
                 indice_key: Optional[str] = None, algo: Any = None, fp32_accum: Any = None,
                 record_voxel_count: bool = False, large_kernel_fast_algo: bool = False, name: Any = None):
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, indice_key)

    def _make(self, input: SparseConvTensor) -> KernelMap:
        return kernel_map(input.indices, self.kernel_size, self.stride, self.padding, self.dilation, False,
                          transposed=self.transposed, output_padding=self.output_padding,
                          shape=input.spatial_shape, batch_size=input.batch_size)


class SparseConvTranspose3d(SparseConv3d):
    """Transposed convolution: each input reaches a kernel of outputs, `stride` apart."""

    transposed = True

    def __init__(self, in_channels: int, out_channels: int, kernel_size: Three, stride: Three = 1,
                 padding: Three = 0, dilation: Three = 1, groups: int = 1, bias: bool = True,
                 indice_key: Optional[str] = None, algo: Any = None, fp32_accum: Any = None,
                 record_voxel_count: bool = False, large_kernel_fast_algo: bool = False, name: Any = None,
                 output_padding: Three = 0):
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, indice_key)
        self.output_padding = list(triple("output_padding", output_padding))


class SparseInverseConv3d(_Convolution):
    """The way back of the SparseConv3d with the same indice_key: outputs are that layer's inputs."""

    def __init__(self, in_channels: int, out_channels: int, kernel_size: Three,
                 indice_key: Optional[str] = None, bias: bool = True, algo: Any = None,
                 fp32_accum: Any = None, large_kernel_fast_algo: bool = False, name: Any = None):
        if indice_key is None:
            raise bad("indice_key", "the key of the convolution that this layer inverts", None)
        super().__init__(in_channels, out_channels, kernel_size, bias=bias, indice_key=indice_key)

    def _map(self, input: SparseConvTensor) -> KernelMap:
        forward = input.find_indice_pair(self.indice_key)
        if forward is None:
            known = ", ".join(map(repr, input.indice_dict)) or "none"
            raise bad("indice_key", "that of a layer which was run before; keys so far: " + known, self.indice_key)
        if list(forward.kernel_size) != self.kernel_size:
            raise bad("kernel_size", f"{list(forward.kernel_size)}, as the layer {self.indice_key!r} has",
                      self.kernel_size)
        back = forward.inverse()
        if not _is_of(back, input):
            raise bad("input", f"the voxels that the layer {self.indice_key!r} gave", f"{len(input.indices)} others")
        return back


class SparseSequential(nn.Sequential):
    """Layers one after the other; those that are not sparse, as BatchNorm1d or ReLU, get the features.
    Keywords are layers with names, after the others."""

    def __init__(self, *args: Any, **kwargs: nn.Module):
        super().__init__(*args)
        for name, module in kwargs.items():
            if name in self._modules:
                raise bad(name, "a name that no other layer has", "one that is taken")
            self.add_module(name, module)

    def forward(self, input: Any) -> Any:
        for layer in self:
            if isinstance(layer, (_Convolution, SparseSequential, ToDense)) or \
                    not isinstance(input, SparseConvTensor):
                input = layer(input)
            else:
                input = input.replace_feature(layer(input.features))
        return input


class ToDense(nn.Module):
    """The whole grid as a dense tensor (batch, channels, *shape)."""

    def __init__(self, name: Any = None):
        super().__init__()

    def forward(self, input: SparseConvTensor) -> Tensor:
        return input.dense()
