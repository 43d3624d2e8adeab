# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""weft.Irreps and weft.Irrep behave as e3nn's do, and each goes into the other.  Most of it needs neither
e3nn nor torch."""

import pickle
import subprocess
import sys

import numpy as np
import pytest

import weft

TEXT = "2x1o + 0e + 0x2e + 3x1o + 1e"


def test_slots_are_pairs_of_a_multiplicity_and_an_irrep():
    irreps = weft.Irreps(TEXT)
    assert [(mul, ir.l, ir.p, ir.dim) for mul, ir in irreps][:2] == [(2, 1, -1, 3), (1, 0, 1, 1)]
    assert irreps[0].mul == 2 and irreps[0].ir == weft.Irrep("1o") and irreps[0].dim == 6
    assert irreps[-1] == (1, weft.Irrep(1, 1)) and irreps[1:3] == weft.Irreps("0e + 0x2e")
    assert isinstance(irreps[1:3], weft.Irreps)
    for x in (irreps, irreps[0], irreps[0].ir, weft.Irreps()):
        assert pickle.loads(pickle.dumps(x)) == x and type(pickle.loads(pickle.dumps(x))) is type(x)


def test_irrep():
    l, p = weft.Irrep("5o")
    assert (l, p) == (5, -1) and repr(weft.Irrep("1y")) == "1o" and weft.Irrep((2, 1)).is_scalar() is False
    assert [str(ir) for ir in weft.Irrep("1o") * "2e"] == ["1o", "2o", "3o"]
    assert "2e" in list(weft.Irrep("1o") * weft.Irrep("1o")) and weft.Irrep("0o") < weft.Irrep("0e")
    assert 3 * weft.Irrep("6o") == weft.Irreps("3x6o") and weft.Irrep("4o") + "7e" == weft.Irreps("4o+7e")
    assert [str(ir) for ir in weft.Irrep.iterator(1)] == ["0e", "0o", "1o", "1e"]
    for wrong in (-1, "-1e", "x", "2x1o", (1, 2), 1.0, None, (1, 1, 1)):
        with pytest.raises(ValueError, match="irrep: expected"):
            weft.Irrep(wrong)
    with pytest.raises(ValueError):
        weft.Irrep(1, p=2)
    with pytest.raises(NotImplementedError):
        1 in weft.Irrep("1o")


def test_questions_and_arithmetic():
    irreps = weft.Irreps(TEXT)
    assert "1o" in irreps and weft.Irrep("2e") in irreps and "2o" not in irreps
    assert irreps.count("1o") == 5 and irreps.count("2e") == 0 and irreps.lmax == 1
    assert irreps.ls == [1, 1, 0, 1, 1, 1, 1] and weft.Irreps().ls == []
    assert irreps == TEXT and irreps != "2x1o" and irreps != "cartesian_points" and irreps != 5
    assert {irreps: 1}[weft.Irreps(TEXT)] == 1
    assert irreps.remove_zero_multiplicities() == "2x1o + 0e + 3x1o + 1e"
    assert (irreps[:1] + irreps[3:4]).simplify() == "5x1o" == 5 * weft.Irrep("1o")
    assert irreps.regroup() == "0e + 5x1o + 1e" and 2 * weft.Irreps("0e+1e") == "0e+1e+0e+1e"
    irreps, p, inv = irreps.sort()
    assert irreps == "0e + 2x1o + 3x1o + 1e + 0x2e" and p == (1, 0, 4, 2, 3) and inv == (1, 0, 3, 4, 2)
    assert irreps.filter(lmax=0) == "0e" and irreps.filter(drop=["1o", weft.Irrep("2e")]) == "0e + 1e"
    assert irreps.filter(lambda slot: slot.mul > 1) == "2x1o + 3x1o" == irreps.filter("1o")
    assert weft.Irreps("10x0e + 2e + 10x1e").slice_by_mul[5:15] == "5x0e + 2e + 4x1e"
    with pytest.raises(ValueError, match="expected one of keep, drop and lmax, got keep and lmax"):
        irreps.filter("0e", lmax=1)
    with pytest.raises(ValueError, match="largest degree"):
        weft.Irreps("").lmax
    for wrong in ("bla", "-1x1e", "1x-1e", [(32, 1)], [(-1, "1o")], 5, [(1.5, "1o")]):
        with pytest.raises(ValueError):
            weft.Irreps(wrong)


def test_there_and_back():
    o3 = pytest.importorskip("e3nn.o3")
    mine, theirs = weft.Irreps(TEXT), o3.Irreps(TEXT)
    assert mine == theirs and theirs == mine and hash(mine) == hash(theirs)
    for irreps in (o3.Irreps(mine), o3.Irreps(list(mine)), o3.Irreps(mine + theirs)[:5]):
        assert type(irreps) is o3.Irreps and irreps == theirs
    assert type(weft.Irreps(theirs)) is weft.Irreps and weft.Irreps(theirs) == mine
    assert weft.Irreps([(16, o3.Irrep("1o")), o3.Irrep("2e")]) == "16x1o + 2e"
    assert o3.Irrep(weft.Irrep("2o")) == o3.Irrep("2o") == weft.Irrep(o3.Irrep("2o"))
    assert type(o3.Irrep(weft.Irrep("2o"))) is o3.Irrep and o3.Irrep("1o") in mine
    assert mine.count(o3.Irrep("1o")) == theirs.count(o3.Irrep("1o")) == 5
    assert o3.Linear(mine, mine).irreps_in == theirs
    assert [tuple(a) for a in (mine.sort(), theirs.sort())][0] == tuple(theirs.sort())


def test_rotations_are_those_of_the_symbols():
    torch = pytest.importorskip("torch")
    irreps = weft.Irreps("2x0o + 1e + 2o + 3e + 2x4o + 9e")
    angles = torch.tensor([0.3, 2.8, -1.4], dtype=torch.float64, requires_grad=True)
    D = irreps.D_from_angles(*angles)
    np.testing.assert_allclose(D.detach(), weft.wigner_D(irreps, angles=angles.tolist()), atol=1e-13)
    R = weft.Irreps("1e").D_from_angles(*angles)
    np.testing.assert_allclose(irreps.D_from_matrix(R).detach(), D.detach(), atol=1e-13)
    both = irreps.D_from_matrix(torch.stack([R, -R])).detach()
    np.testing.assert_allclose(both[1], weft.wigner_D(irreps, matrix=-R.detach().numpy()), atol=1e-13)
    inverted = irreps.D_from_angles(*angles.detach(), k=torch.tensor([0, 1]))
    np.testing.assert_allclose(inverted, both, atol=1e-13)
    q = torch.tensor([0.5, 0.1, -0.7, 0.2], dtype=torch.float64)
    turn = weft.wigner_D(irreps, quaternion=(q / q.norm()).numpy())
    np.testing.assert_allclose(irreps.D_from_quaternion(q), turn, atol=1e-13)
    half = 2 * torch.atan2(q[1:].norm(), q[0])
    np.testing.assert_allclose(irreps.D_from_axis_angle(3 * q[1:], half), turn, atol=1e-13)
    assert torch.autograd.gradcheck(weft.Irreps("2e").D_from_angles, tuple(angles))
    for R in (torch.eye(3), torch.diag(torch.tensor([1., -1, -1])), torch.diag(torch.tensor([-1., 1, -1]))):
        np.testing.assert_allclose(weft.Irrep("1e").D_from_matrix(R), R, atol=1e-6)
    assert weft.Irreps("").D_from_matrix(R).shape == (0, 0)


def test_random_features():
    pytest.importorskip("torch")
    irreps = weft.Irreps("5x0e + 10x1o")
    x = irreps.randn(5, -1, 2, normalization="norm", requires_grad=True)
    assert x.shape == (5, 35, 2) and x.is_leaf and x.requires_grad
    np.testing.assert_allclose(x[:, 5:].detach().unflatten(1, (10, 3)).norm(dim=2), 1, rtol=1e-5)
    assert 0.5 < irreps.randn(-1, 100).var() < 2
    with pytest.raises(ValueError, match="size: expected one -1"):
        irreps.randn(3)


def test_irreps_need_no_torch():
    code = ("import sys, weft; irreps = weft.Irreps('2x1o + 0e').sort().irreps; assert '0e' in irreps;"
            "weft.TPProblem(irreps, '0e', irreps, [(0, 0, 0, 'uvu', True)]).instructions;"
            "assert 'torch' not in sys.modules and 'e3nn' not in sys.modules")
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
