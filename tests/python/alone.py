# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""Run where there is nothing but NumPy and the package: a tensor product, an SpMM, and what needs torch
says so."""

import importlib.metadata

import numpy as np

import weft

others = {d.metadata["Name"].lower() for d in importlib.metadata.distributions()}
assert others <= {"numpy", "weft", "pip", "setuptools", "wheel"}, others

rng = np.random.default_rng(0)
x, y, w = rng.standard_normal((10, 4, 3)), rng.standard_normal((10, 4, 3)), rng.standard_normal((10, 4))
product = weft.Product("4x1o", "4x1o", "1e", mode="uuu", weights="item", dtype="f64")
z = product(x.reshape(10, 12), y.reshape(10, 12), w)
want = w[:, :, None] * np.cross(x, y) / np.sqrt(2)
assert np.allclose(z.reshape(10, 4, 3), want, rtol=0, atol=1e-14)

indptr, indices, data = np.array([0, 2, 2, 4]), np.array([0, 3, 1, 2]), np.array([1.0, 2.0, 3.0, 4.0])
dense = np.zeros((3, 4))
dense[[0, 0, 2, 2], indices] = data
B = rng.standard_normal((4, 5))
assert np.allclose(weft.spmm((indptr, indices, data, (3, 4)), B), dense @ B, rtol=0, atol=1e-14)

try:
    weft.TensorProduct
except ImportError as e:
    assert "weft.TensorProduct needs torch" in str(e)
else:
    raise AssertionError("weft.TensorProduct is there without torch")
print("the package works with NumPy alone")
