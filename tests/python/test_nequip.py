# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""A small NequIP model, stock and accelerated: energy, forces, stress, and gradients of a force loss."""

import copy
import warnings

import pytest

torch = pytest.importorskip("torch")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    model = pytest.importorskip("nequip.model")
    from nequip.data import AtomicDataDict, compute_neighborlist_, from_ase
    from nequip.utils.global_state import set_global_state
    from ase.build import bulk

import weft  # noqa: E402


@pytest.fixture(scope="module")
def data():
    before = torch.get_default_dtype()
    set_global_state()  # which makes f64 the default, for all tests that come after
    atoms = bulk("Si", cubic=True)
    atoms.rattle(0.05, seed=1)
    atoms.numbers[::3] = 8
    out = compute_neighborlist_(from_ase(atoms), r_max=4.0)
    out[AtomicDataDict.ATOM_TYPE_KEY] = torch.tensor([int(z == 8) for z in atoms.numbers])
    yield out
    torch.set_default_dtype(before)


def run(model, data):
    return model({k: v.clone() if torch.is_tensor(v) else v for k, v in data.items()})


@pytest.mark.parametrize("fuse", [None, True])
def test_results_and_training_gradients(data, fuse):
    stock = model.NequIPGNNModel(seed=1, model_dtype="float64", type_names=["Si", "O"], r_max=4.0, num_layers=2,
                                 l_max=2, parity=True, num_features=4, radial_mlp_depth=1,
                                 radial_mlp_width=8, avg_num_neighbors=10.0)
    fast = copy.deepcopy(stock)
    report = weft.accelerate(fast, fuse_radial=fuse)
    assert len(report.replaced) == 2 and str(report).count(" fused") == 2
    assert list(fast.state_dict()) == list(stock.state_dict())
    for m in (stock, fast):
        m.train()
    want, got = run(stock, data), run(fast, data)
    for key in ("total_energy", "forces", "stress"):
        torch.testing.assert_close(got[key], want[key], rtol=1e-10, atol=1e-12)
    for out in (want, got):
        (out["forces"] ** 2).sum().backward()
    some = 0
    for p, q in zip(fast.parameters(), stock.parameters()):
        if q.grad is not None:
            assert (p.grad - q.grad).abs().max() <= 1e-9 * q.grad.abs().max() + 1e-14
            some += bool(q.grad.any())
    assert some > 5
