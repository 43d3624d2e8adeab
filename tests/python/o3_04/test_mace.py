# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""A small MACE model, stock and accelerated: energy, forces, stress, and gradients of a force loss."""

import copy
import warnings

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="MACE: torch is not installed")
torch.serialization.add_safe_globals([slice])  # which e3nn 0.4 has in its constants
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    modules = pytest.importorskip("mace.modules", reason="MACE cannot be imported",
                                  exc_type=(ImportError, AttributeError))
    from e3nn import o3
    from mace import data as mace_data
    from mace import tools
    from mace.tools import torch_geometric

from ase.build import bulk  # noqa: E402

import weft  # noqa: E402

ELEMENTS = [8, 14]


@pytest.fixture
def double():
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(before)


def make():
    interaction = modules.interaction_classes["RealAgnosticResidualInteractionBlock"]
    torch.manual_seed(0)
    return modules.ScaleShiftMACE(
        r_max=4.0, num_bessel=4, num_polynomial_cutoff=5, max_ell=2, interaction_cls=interaction,
        interaction_cls_first=interaction, num_interactions=2, num_elements=2,
        hidden_irreps=o3.Irreps("4x0e+4x1o"), MLP_irreps=o3.Irreps("4x0e"),
        gate=torch.nn.functional.silu, atomic_energies=np.zeros(2), avg_num_neighbors=10,
        atomic_numbers=ELEMENTS, correlation=3, radial_type="bessel", atomic_inter_scale=1.0,
        atomic_inter_shift=0.0)


def batch():
    atoms = bulk("Si", cubic=True)
    atoms.rattle(0.05, seed=1)
    atoms.numbers[::3] = 8
    one = mace_data.AtomicData.from_config(mace_data.config_from_atoms(atoms), cutoff=4.0,
                                           z_table=tools.AtomicNumberTable(ELEMENTS))
    return next(iter(torch_geometric.dataloader.DataLoader([one], batch_size=1))).to_dict()


@pytest.mark.parametrize("fuse", [None, True])
def test_results_and_training_gradients(double, fuse):
    stock = make()
    fast = copy.deepcopy(stock)
    report = weft.accelerate(fast, fuse_radial=fuse)
    assert str(report).count(" fused") == 2
    assert [r.what.split(",")[0] for r in report.replaced] == ["convolution over edges"] * 2 + [
        "symmetric contraction"] * 2
    assert list(fast.state_dict()) == list(stock.state_dict())
    want, got = (m(batch(), training=True, compute_stress=True) for m in (stock, fast))
    for key in ("energy", "forces", "stress"):
        torch.testing.assert_close(got[key], want[key], rtol=1e-10, atol=1e-12)
    for out in (want, got):
        (out["forces"] ** 2).sum().backward()
    some = 0
    for p, q in zip(fast.parameters(), stock.parameters()):
        if q.grad is not None:
            assert (p.grad - q.grad).abs().max() <= 1e-9 * q.grad.abs().max() + 1e-14
            some += bool(q.grad.any())
    assert some > 10
