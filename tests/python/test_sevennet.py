# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""SevenNet-0 with its own weights, stock and accelerated: energy, forces, stress, training steps."""

import copy
import pickle
import warnings

import numpy as np
import pytest

torch = pytest.importorskip("torch")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    calculator = pytest.importorskip("sevenn.calculator")
    from ase.build import bulk
    from ase.spacegroup import crystal

import weft  # noqa: E402


def make():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return calculator.SevenNetCalculator("7net-0", device="cpu")


@pytest.fixture(scope="module")
def pair():
    stock, fast = make(), make()
    report = weft.accelerate(fast)
    assert len(report.replaced) == 5 and "0_convolution" in str(report)
    return stock, fast


def structures():
    silicon = bulk("Si", cubic=True)
    oxide = crystal(["Sr", "Ti", "O"], [(0.5, 0.5, 0.5), (0, 0, 0), (0.5, 0, 0)], spacegroup=221,
                    cellpar=[3.905] * 3 + [90] * 3)
    for atoms in (silicon, oxide * (2, 1, 1)):
        atoms.rattle(0.05, seed=1)
        yield atoms


def results(calc, atoms):
    calc.calculate(atoms)
    return {k: np.array(calc.results[k], float) for k in ("energy", "forces", "stress")}


def test_energy_forces_and_stress(pair):
    for atoms in structures():
        want, got = results(pair[0], atoms), results(pair[1], atoms)
        assert abs(got["energy"] - want["energy"]) <= 2e-6 * len(atoms)
        assert np.abs(got["forces"] - want["forces"]).max() <= 1e-5
        assert np.abs(got["stress"] - want["stress"]).max() <= 1e-6


def test_the_radial_layer_inside(pair, monkeypatch):
    """Asked for, and by the size of an array; then again in a copy."""
    atoms = list(structures())[1]
    want, fast = results(pair[0], atoms), make()
    report = weft.accelerate(fast, fuse_radial=True)
    assert str(report).count(" fused") == 5
    assert list(fast.model.state_dict()) == list(pair[0].model.state_dict())
    got = results(fast, atoms)
    assert abs(got["energy"] - want["energy"]) <= 2e-6 * len(atoms)
    assert np.abs(got["forces"] - want["forces"]).max() <= 1e-5
    layer = pair[1].model._modules["1_convolution"].weight_nn.layer2
    assert not layer.weft_fuses(torch.ones(3, 64, requires_grad=True)) and layer.weft_fuses(
        torch.ones(14336, 64, requires_grad=True))  # 0.01 and 52.5 MB
    with torch.no_grad():
        assert layer.weft_fuses(torch.ones(3, 64))
    monkeypatch.setattr(weft.models._specs, "LARGE", 0)
    assert np.array_equal(results(pair[1], atoms)["forces"], got["forces"])
    for model in (copy.deepcopy(fast.model), pickle.loads(pickle.dumps(fast.model))):
        other = calculator.SevenNetCalculator(model, file_type="model_instance", device="cpu")
        layer = model._modules["1_convolution"].weight_nn.layer2
        assert model._modules["1_convolution"].weft_last[0] is layer
        assert np.array_equal(results(other, atoms)["forces"], got["forces"])
    with pytest.raises(TypeError, match="fuse_radial: expected"):
        weft.accelerate(fast, fuse_radial="all")


def test_an_atom_alone(pair):
    from ase import Atoms

    atoms = Atoms("Si", cell=[20, 20, 20], pbc=True)
    want, got = results(pair[0], atoms), results(pair[1], atoms)
    assert got["energy"] == pytest.approx(want["energy"])
    assert not got["forces"].any()


def test_turned_structures_have_the_same_energy_and_turned_forces(pair):
    atoms = next(structures())
    want = results(pair[1], atoms)
    q = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]
    turned = atoms.copy()
    turned.set_cell(atoms.cell[:] @ q.T)
    turned.set_positions(atoms.positions @ q.T)
    got = results(pair[1], turned)
    assert abs(got["energy"] - want["energy"]) <= 1e-5 * len(atoms)
    assert np.abs(got["forces"] - want["forces"] @ q.T).max() <= 1e-4


def test_state_dict_copies_and_a_second_time(pair):
    stock, fast = pair
    assert list(stock.model.state_dict()) == list(fast.model.state_dict())
    fast.model.load_state_dict(stock.model.state_dict())
    again = weft.accelerate(fast)
    assert not again and "already" in str(again)
    atoms = next(structures())
    want = results(fast, atoms)
    for model in (copy.deepcopy(fast.model), pickle.loads(pickle.dumps(fast.model))):
        other = calculator.SevenNetCalculator(model, file_type="model_instance", device="cpu")
        assert np.array_equal(results(other, atoms)["forces"], want["forces"])


def test_convolutions_by_other_products_are_left_alone():
    """As cuEquivariance puts them in, with settings of its own."""
    from e3nn.o3 import Irreps
    from sevenn.nn.convolution import IrrepsConvolution

    conv = IrrepsConvolution(Irreps("4x0e+4x1e"), Irreps("0e+1e"), Irreps("4x0e+4x1e"), [8, 8],
                             weight_layer_act=torch.nn.functional.silu)
    conv.convolution_cls = lambda **settings: torch.nn.Identity()
    conv.instantiate()
    del conv.convolution_kwargs["instructions"], conv.convolution_kwargs["irreps_out"]
    assert not weft.accelerate(torch.nn.ModuleList([conv])) and type(conv) is IrrepsConvolution


def test_other_things_are_left_alone():
    assert "no model of" in str(weft.accelerate(torch.nn.Linear(2, 2)))
    with pytest.raises(TypeError, match="model: expected a torch module"):
        weft.accelerate(3)


@pytest.mark.parametrize("fuse", [None, True])
def test_training_steps_have_the_same_losses(fuse):
    """Two steps on forces, so by second derivatives."""
    from sevenn.atom_graph_data import AtomGraphData
    from sevenn.train.dataload import unlabeled_atoms_to_graph

    atoms = bulk("Si")
    atoms.rattle(0.05, seed=2)
    losses = []
    for fast, calc in enumerate([make(), make()]):
        model = calc.model
        if fast:
            assert weft.accelerate(model, fuse_radial=fuse)
        model.train()
        model.set_is_batch_data(False)
        optimizer = torch.optim.SGD(model.parameters(), 1e-3)
        found = []
        for _ in range(2):
            data = AtomGraphData.from_numpy_dict(unlabeled_atoms_to_graph(atoms, calc.cutoff))
            data["edge_vec"].requires_grad_()
            out = model(data)
            loss = (out["inferred_force"] ** 2).sum() + out["inferred_total_energy"] ** 2 * 1e-4
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            found.append(loss.item())
        losses.append(found)
    assert losses[0][0] != losses[0][1]
    np.testing.assert_allclose(losses[1], losses[0], rtol=1e-4)


def test_dynamics_keep_their_energy_and_relaxation_finds_the_crystal(pair):
    from ase import units
    from ase.filters import FrechetCellFilter
    from ase.md.verlet import VelocityVerlet
    from ase.optimize import BFGS

    rests = []
    for calc in pair:
        atoms = bulk("Si")
        atoms.rattle(0.1, seed=1)
        atoms.calc = calc
        first = atoms.get_total_energy()
        VelocityVerlet(atoms, timestep=1 * units.fs).run(8)
        assert atoms.get_kinetic_energy() > 0.01
        assert abs(atoms.get_total_energy() - first) <= 5e-3 * len(atoms)
        atoms.set_velocities(np.zeros((len(atoms), 3)))
        assert BFGS(FrechetCellFilter(atoms), logfile=None).run(fmax=0.05, steps=60)
        rests.append((atoms.get_potential_energy(), atoms.cell.volume))
    assert rests[1][0] == pytest.approx(rests[0][0], abs=1e-3)
    assert rests[1][1] == pytest.approx(rests[0][1], rel=2e-3)
