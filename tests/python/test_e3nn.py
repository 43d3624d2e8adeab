# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""Tensor products against e3nn, where it is installed (tests/python/run.sh full)."""

import sys

import numpy as np
import pytest

import weft
from conftest import ROOT

sys.path.insert(0, str(ROOT / "bench"))
import tp_e3nn  # noqa: E402

torch = pytest.importorskip("torch", reason="e3nn comparison: torch is not installed")
pytest.importorskip("e3nn", reason="e3nn comparison: e3nn is not installed")


def test_forward_and_gradients_are_those_of_e3nn():
    program = weft.Program.read(tp_e3nn.PROGRAM)
    rows = 100
    x, y, wt = tp_e3nn.data(rows)
    tensors = [torch.from_numpy(a).requires_grad_() for a in (x, y, wt)]
    z = tp_e3nn.e3nn_product()(*tensors)
    d_z = np.random.default_rng(2).standard_normal(z.shape).astype(np.float32)
    z.backward(torch.from_numpy(d_z))
    given = {"X": tp_e3nn.swapped(x, tp_e3nn.IN1, True), "Y": y, "Wt": wt}
    got = tp_e3nn.swapped(program.compile()(given), tp_e3nn.OUT, False)
    assert tp_e3nn.relative(got, z.detach().numpy()) <= 1e-6
    back = program.grad().compile()(given, d_Z=tp_e3nn.swapped(d_z, tp_e3nn.OUT, True))
    back["d_X"] = tp_e3nn.swapped(back["d_X"], tp_e3nn.IN1, False)
    for name, tensor in zip(("d_X", "d_Y", "d_Wt"), tensors):
        assert tp_e3nn.relative(back[name], tensor.grad.numpy()) <= 5e-6, name
