# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""Layers of torch on kernels of Weft, with the arguments and parameter names of the libraries that have them."""

from .graph import GATConv, GATv2Conv, GCNConv, RGCNConv, SAGEConv
from .linear import SparseLinear

__all__ = [
    "GATConv", "GATv2Conv", "GCNConv", "RGCNConv", "SAGEConv", "SparseLinear",
]
