# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""weft.accelerate replaces layers of PyTorch Geometric in place, and weft.restore gives them back."""

import os
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")
pyg = pytest.importorskip("torch_geometric.nn", reason="torch_geometric is not installed")
import weft  # noqa: E402


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = pyg.GCNConv(4, 8, cached=True), pyg.SAGEConv(8, 8)
        self.c, self.d = pyg.GATConv(8, 4, heads=2), pyg.GATv2Conv(8, 8)
        self.e, self.f = pyg.RGCNConv(8, 8, 24), pyg.SAGEConv(8, 3, aggr="median")

    def forward(self, x, index, types):
        x = self.d(self.c(self.b(self.a(x, index), edge_index=index), index), index)
        return self.f(self.e(x, index, edge_type=types), index)


def test_layers_are_replaced_and_restored():
    torch.manual_seed(0)
    net, x = Net().double(), torch.randn(9, 4, dtype=torch.float64)
    index = torch.randint(0, 9, (2, 30))
    types = torch.arange(30) % 3
    want = net.eval()(x, index, types)
    before, kinds = {k: v.clone() for k, v in net.state_dict().items()}, [type(m) for m in net.children()]
    report = weft.accelerate(net)
    assert [r.name for r in report.replaced] == ["a", "b", "c", "d", "e"], report
    assert "predicted" in str(report)
    assert not weft.accelerate(net)
    net.a.reset_parameters()
    net.load_state_dict(before)
    got = net(x, index, types)
    assert torch.allclose(got, want, atol=1e-12)
    got.sum().backward()
    assert all(p.grad is not None for p in net.parameters())
    assert weft.restore(net) and [type(m) for m in net.children()] == kinds
    assert torch.allclose(net(x, index, types), want, atol=1e-12)
    assert not any(n.startswith("weft") for m in net.modules() for n in m.__dict__)


GAINS = """
import torch_geometric.nn as pyg
from weft.models import pyg as models
for layer in (pyg.GCNConv(32, 32), pyg.SAGEConv(32, 32), pyg.SAGEConv(32, 32, aggr=["mean", "max"]),
              pyg.GATConv(32, 8, heads=4), pyg.GATv2Conv(32, 8, heads=4), pyg.RGCNConv(32, 32, 8)):
    assert 1.2 < models.gain(layer) < 100, (layer, models.gain(layer))
assert models.gain(pyg.RGCNConv(32, 32, 40)) > models.gain(pyg.RGCNConv(32, 32, 8))
"""


def test_gains_come_from_the_cost_model(monkeypatch, tmp_path):
    from weft.models import pyg as models

    # The rates of the machine are those of code that is optimised, whatever flags other tests take.
    env = {**os.environ, "WEFT_CACHE_DIR": str(tmp_path), "WEFT_CFLAGS": ""}
    subprocess.run([sys.executable, "-c", GAINS], env=env, check=True)

    def messages_are_free(spec, arrays, **sizes):
        return 0.0 if spec.startswith(("copy_u:edges", "copy_e")) else 1.0

    monkeypatch.setattr(models, "_seconds", messages_are_free)
    models._predicted.cache_clear()
    net = torch.nn.Sequential(pyg.GCNConv(8, 8))
    try:
        assert not weft.accelerate(net) and type(net[0]) is pyg.GCNConv
    finally:
        models._predicted.cache_clear()
