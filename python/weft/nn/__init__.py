# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""Layers of torch on kernels of Weft, with the arguments and parameter names of the libraries that have them."""

from .attention import SparseAttention
from .conv3d import (SparseConv3d, SparseConvTensor, SparseConvTranspose3d, SparseInverseConv3d, SparseSequential,
                     SubMConv3d, ToDense)
from .graph import GATConv, GATv2Conv, GCNConv, RGCNConv, SAGEConv
from .linear import SparseLinear

__all__ = [
    "GATConv", "GATv2Conv", "GCNConv", "RGCNConv", "SAGEConv", "SparseAttention", "SparseConv3d", "SparseConvTensor",
    "SparseConvTranspose3d", "SparseInverseConv3d", "SparseLinear", "SparseSequential", "SubMConv3d",
    "ToDense",
]
