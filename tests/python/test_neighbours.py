# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""Neighbours of atoms from Python, against ASE and matscipy where they are installed."""

import numpy as np
import pytest

import weft


def cells():
    """Structures by name: positions, cell, pbc, cutoff."""
    rng = np.random.default_rng(5)

    def of(name, n, cell, pbc, cutoff, spread=1.0):
        inside = spread * rng.random((n, 3)) - (spread - 1) / 2
        return pytest.param(inside @ np.array(cell, float), np.array(cell, float), pbc, cutoff, id=name)

    cube, flat = np.eye(3) * 6, np.diag([7.0, 5.0, 0.9])
    skew = [[4, 0, 0], [7, 4, 0], [-5, 9, 3]]
    return [
        of("cube", 40, cube, [True] * 3, 3.1), of("outside", 40, cube, [True] * 3, 3.1, 9.0),
        of("tiny", 2, np.eye(3) * 1.3, [True] * 3, 4.2), of("skew", 12, skew, [True] * 3, 5.0),
        of("flat", 10, flat, [True, True, False], 3.0), of("slab", 30, cube, [True, False, True], 8.0),
        of("wire", 20, skew, [False, True, False], 5.0, 3.0), of("free", 50, cube, [False] * 3, 2.5),
        of("one", 1, cube, [True] * 3, 7.0), of("skewest", 5, [[3, 0, 0], [13, 3, 0], [-8, 14, 3]],
                                                 [True] * 3, 4.0),
    ]


def rows(*columns):
    """As a set of tuples; vectors to what rounding leaves of them."""
    return sorted(zip(*[map(tuple, c) if c.ndim == 2 else c for c in columns]))


@pytest.mark.parametrize("pos, cell, pbc, cutoff", cells())
def test_pairs_are_those_of_ase(pos, cell, pbc, cutoff):
    ase = pytest.importorskip("ase.neighborlist")
    i, j, S, D, d = ase.primitive_neighbor_list("ijSDd", pbc, cell, pos, cutoff)
    got = weft.neighbours(pos, cell, pbc, cutoff)
    assert rows(got.receiver, got.sender, got.shift) == rows(i, j, S)
    order = np.lexsort((S[:, 2], S[:, 1], S[:, 0], j, i))
    np.testing.assert_allclose(got.vectors, D[order], rtol=0, atol=1e-11)
    np.testing.assert_allclose(got.distances, d[order], rtol=0, atol=1e-11)


@pytest.mark.parametrize("spec, cutoff", [
    ("crystal:silicon:repeat=3:rattle=0.05", 5.0), ("crystal:mgo:n1=4:n2=2:rattle=0.1", 6.0),
    ("crystal:sio2:repeat=2:rattle=0.02", 4.0), ("water:molecules=100", 5.0),
])
def test_pairs_are_those_of_matscipy(spec, cutoff):
    matscipy = pytest.importorskip("matscipy.neighbours")
    a = weft.atoms(spec)
    i, j, S, D = matscipy.neighbour_list("ijSD", positions=a.positions, cell=a.cell, pbc=a.pbc,
                                         cutoff=cutoff)
    got = weft.neighbours(a.positions, a.cell, a.pbc, cutoff, index=np.int64)
    assert rows(got.receiver, got.sender, got.shift) == rows(i, j, S)
    order = np.lexsort((S[:, 2], S[:, 1], S[:, 0], j, i))
    np.testing.assert_allclose(got.vectors, D[order], rtol=0, atol=1e-11)


@pytest.mark.parametrize("pos, cell, pbc, cutoff", cells())
def test_arrays_agree_with_each_other(pos, cell, pbc, cutoff):
    got = weft.neighbours(pos, cell, pbc, cutoff)
    n = len(pos)
    assert got.start[0] == 0 and got.start[-1] == len(got.sender) > 0
    np.testing.assert_array_equal(got.receiver, np.repeat(np.arange(n), np.diff(got.start)))
    keys = rows(got.receiver, got.sender, got.shift)
    assert keys == list(zip(got.receiver, got.sender, map(tuple, got.shift)))
    assert keys == rows(got.sender, got.receiver, -got.shift)  # each pair has its reverse
    np.testing.assert_allclose(
        got.vectors, pos[got.sender] + got.shift @ cell - pos[got.receiver], rtol=0, atol=1e-11)
    np.testing.assert_allclose(got.distances, np.linalg.norm(got.vectors, axis=1), rtol=1e-14)
    assert (got.distances < cutoff).all()
    assert not got.shift[:, ~np.array(pbc)].any()


def test_results_do_not_depend_on_threads():
    a = weft.atoms("water:molecules=1500")
    weft.set_threads(1)
    one = weft.neighbours(a.positions, a.cell, a.pbc, 5.0)
    weft.set_threads(3)
    three = weft.neighbours(a.positions, a.cell, a.pbc, 5.0)
    weft.set_threads(0)
    for x, y in zip(one, three):
        assert x.tobytes() == y.tobytes()


def test_only_what_is_wanted_is_made():
    pos = np.array([[0, 0, 0], [0, 0, 1.0]])
    got = weft.neighbours(pos, cutoff=2.0, want=("sender",), index=np.int64)
    assert got.sender.tolist() == [1, 0] and got.sender.dtype == np.int64
    assert got.start is None and got.receiver is None and got.vectors is None
    got = weft.neighbours(np.zeros((0, 3)), np.eye(3))
    assert got.start.tolist() == [0] and len(got.sender) == 0 and got.shift.shape == (0, 3)
    got = weft.neighbours([[0, 0, 0]], np.eye(3) * 2, [True, False, False], 2.5)
    assert got.shift.tolist() == [[-1, 0, 0], [1, 0, 0]]


@pytest.mark.parametrize("call, part", [
    (lambda: weft.neighbours(np.zeros((2, 2))), "positions"),
    (lambda: weft.neighbours([["a", 0, 0]]), "positions"),
    (lambda: weft.neighbours(np.zeros((2, 3)), np.eye(2)), "cell"),
    (lambda: weft.neighbours(np.zeros((2, 3)), np.eye(3), [True, False]), "pbc"),
    (lambda: weft.neighbours(np.zeros((2, 3)), cutoff=0), "cutoff"),
    (lambda: weft.neighbours(np.zeros((2, 3)), np.zeros((3, 3))), "periodic vectors"),
    (lambda: weft.neighbours([[0, 0, np.nan]]), "position of atom 0"),
    (lambda: weft.neighbours(np.zeros((2, 3)), index=np.int16), "int32 or int64"),
    (lambda: weft.neighbours(np.zeros((2, 3)), want=("angle",)), "want"),
    (lambda: weft.atoms("crystal:cheese"), "this crystal is unknown"),
])
def test_what_makes_no_sense_is_refused(call, part):
    with pytest.raises(weft.ArgumentError, match=part):
        call()


def test_atoms_are_made_and_read(tmp_path):
    a = weft.atoms("crystal:mgo")
    assert a.positions.shape == (8, 3) and a.names.count("Mg") == 4 and a.pbc.all()
    np.testing.assert_array_equal(a.cell, np.eye(3) * 4.212)
    path = tmp_path / "a.xyz"
    path.write_text('2\nLattice="2 0 0 0 3 0 0 0 4" pbc="T F T"\nO 0 0 0.5\nH 1 2 3\n')
    b = weft.atoms(str(path))
    assert b.names == ["O", "H"] and b.pbc.tolist() == [True, False, True]
    np.testing.assert_array_equal(b.positions, [[0, 0, 0.5], [1, 2, 3]])
    path.write_text("0\n\n")
    assert weft.atoms(str(path)).names == []


def test_ase_reads_the_same_file(tmp_path):
    io = pytest.importorskip("ase.io")
    build = pytest.importorskip("ase.build")
    path = str(tmp_path / "a.xyz")
    made = build.bulk("ZnS", "zincblende", a=5.4) * (2, 1, 1)
    made.rattle(0.1)
    made.set_pbc([True, False, True])
    made.arrays["forces"] = np.zeros((len(made), 3))
    io.write(path, made, format="extxyz")
    a = weft.atoms(path)
    assert a.names == made.get_chemical_symbols() and (a.pbc == made.pbc).all()
    np.testing.assert_allclose(a.positions, made.positions, atol=1e-7)
    np.testing.assert_allclose(a.cell, made.cell.array, atol=1e-7)
