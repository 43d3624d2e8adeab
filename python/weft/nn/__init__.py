# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""Layers of torch."""

from .linear import SparseLinear

__all__ = ["SparseLinear"]
