# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""What ctypes and NumPy would take and change without an error: integers that wrap, numbers that lose
their fraction, texts that end at a NUL, arrays that lose their mask."""

import importlib.util

import numpy as np
import pytest
import scipy.sparse as sp

import weft

FILL = "program two(n)\naxis I = n\nf64 Y[I]\nY[i] = 2.0\n"
GATHER = "program g(m, n)\naxis I = m\ni32 a[I]\nf64 X[n], Y[I]\nY[i] = X[a[i]]\n"
A = sp.csr_matrix(np.eye(3))


@pytest.fixture(scope="module")
def fill():
    return weft.Program(FILL).compile()


WRONG = [2 ** 64 + 3, 2 ** 63, -1, 2.7, 3.0, "3", True, np.True_, np.float32(3), None, [3]]


@pytest.mark.parametrize("value", WRONG, ids=repr)
def test_sizes(fill, value):
    with pytest.raises((weft.ArgumentError, weft.BindError)):
        fill(n=value)
    if value is None:
        return  # is the default of those below
    for call in (lambda v: weft.Edges([0, 1], [1, 0], nodes=v),
                 lambda v: weft.Edges([0, 1], [1, 0], senders=v),
                 lambda v: weft.Graph(np.array([[0, 1], [1, 0]]), num_nodes=v),
                 lambda v: weft.Graph(np.array([[0, 1], [1, 0]]), num_nodes=(v, 2)),
                 lambda v: weft.spmm((A.indptr, A.indices, A.data, (3, v)), np.ones((3, 2))),
                 lambda v: weft.SphericalHarmonics([v]),
                 lambda v: weft.Contraction("4x0e", "4x0e", v),
                 lambda v: weft.wigner_3j(1, 1, v),
                 lambda v: weft.TPProblem("0e", "0e", "0e", [(v, 0, 0, "uuu", False)])):
        if value == 3.0 and isinstance(value, float) or value not in (-1, [3]):
            with pytest.raises(weft.ArgumentError):
                call(value)


@pytest.mark.parametrize("value", [3, np.int32(3), np.uint8(3), np.array(3)], ids=repr)
def test_sizes_of_any_integer_type(fill, value):
    assert fill(n=value).tolist() == [2, 2, 2]
    assert weft.Edges([0, 1], [1, 0], nodes=value).nodes == 3
    assert weft.Graph(np.array([[0, 1], [1, 0]]), value).shape == (3, 3)


@pytest.mark.parametrize("value", [2 ** 32 + 2, -1, 2.7, "2", True], ids=repr)
def test_integers_of_settings(fill, value):
    with pytest.raises(weft.ArgumentError):
        weft.set_threads(value)
    with pytest.raises(weft.ArgumentError):
        fill.tune(n=3, top=value)


@pytest.mark.parametrize("value", ["1", None, [1]], ids=repr)
def test_numbers_of_settings(fill, value):
    with pytest.raises(weft.ArgumentError):
        fill.tune(n=3, seconds=value)
    with pytest.raises(weft.ArgumentError):
        weft.neighbours(np.zeros((2, 3)), cutoff=value)


def test_periods_are_not_texts():
    with pytest.raises(weft.ArgumentError, match="pbc"):
        weft.neighbours(np.zeros((2, 3)), np.eye(3), pbc="False")


def test_settings_may_be_numbers_of_numpy():
    conv = weft.Convolution("0e", "0e", "0e", mode="uvu", hidden=np.int64(4))
    assert conv.spec == weft.Convolution("0e", "0e", "0e", mode="uvu", hidden=4).spec
    one = weft.Product("0e", "0e", "0e", mode="uuu", weights="none", var1=np.array([0.5]))
    assert one.spec == weft.Product("0e", "0e", "0e", mode="uuu", weights="none", var1=[0.5]).spec


@pytest.mark.parametrize("call", [
    lambda fill: weft.Program(FILL + "\0junk"),
    lambda fill: weft.Program(FILL, "file\0name"),
    lambda fill: weft.Program.op("spmm:f32\0:csc"),
    lambda fill: weft.Program.o3("sh; lmax=1\0; norm=norm"),
    lambda fill: fill.program.grad(of="Y\0"),
    lambda fill: fill.schedule("tile 8\0; nonsense"),
    lambda fill: fill(**{"n\0more": 3}),
    lambda fill: fill.hold("Y\0"),
    lambda fill: weft.Irreps("8x0e\0 + 4x1o"),
    lambda fill: weft.Product("0e", "0e", "0e", mode="uuu\0"),
    lambda fill: weft.atoms("crystal:silicon\0:repeat=2"),
    lambda fill: weft.wigner_3j(1, 1, 1, signs="e3nn\0"),
], ids=range(12))
def test_a_text_with_a_nul_is_refused(fill, call):
    with pytest.raises(weft.ArgumentError, match="NUL character at position"):
        call(fill)


def test_texts_are_texts(fill):
    for call in (lambda: weft.Program(b"program p()"), lambda: fill.schedule(8),
                 lambda: weft.atoms(None), lambda: weft.Program("x\ud800")):
        with pytest.raises(weft.ArgumentError):
            call()


def masked(array, *at):
    out = np.ma.array(array)
    for k in at:
        out[k] = np.ma.masked
    return out


@pytest.mark.parametrize("call", [
    lambda m: weft.Program(GATHER).run({"a": m(np.array([0, 1], np.int32)), "X": np.ones(2)}),
    lambda m: weft.Program(GATHER).run({"a": [0, 1], "X": m(np.ones(2))}),
    lambda m: weft.Program(GATHER).run({"a": [0, 1], "X": np.ones(2)}, out=m(np.ones(2))),
    lambda m: weft.spmm(A, m(np.ones((3, 2)))),
    lambda m: weft.spmm(A, np.ones((3, 2)), out=m(np.zeros((3, 2)))),
    lambda m: weft.spmm((A.indptr, A.indices, m(A.data), (3, 3)), np.ones((3, 2))),
    lambda m: weft.spmm((m(A.indptr), A.indices, A.data, (3, 3)), np.ones((3, 2))),
    lambda m: weft.softmax(A.indptr, m(np.ones(3))),
    lambda m: weft.Edges(m(np.array([0, 1])), [1, 0]),
    lambda m: weft.Graph(m(np.array([[0, 1], [1, 0]]))),
    lambda m: weft.neighbours(m(np.zeros((2, 3)))),
    lambda m: weft.SphericalHarmonics(1)(m(np.ones((2, 3), np.float32))),
    lambda m: weft.SphericalHarmonics(1)([m(np.ones(3, np.float32))]),
    lambda m: weft.wigner_D("1o", angles=m(np.zeros(3))),
    lambda m: weft.Contraction("4x0e", "4x0e", 1)(np.ones((2, 4), np.float32), m(np.array([0, 0])),
                                                  np.ones((1, 1, 4), np.float32)),
], ids=range(15))
def test_masks(call):
    with pytest.raises(weft.ArgumentError, match="masked"):
        call(lambda array: masked(array, 0))
    call(masked)  # nothing is masked: as a plain array


def test_what_is_no_name_path_mapping_or_operator_is_named():
    program = weft.Program(GATHER)
    for call, name in [(lambda: weft.Program.read(3), "path: "), (lambda: weft.Program.read(None), "path: "),
                       (lambda: program.grad(3), "wrt: "), (lambda: program.grad(of=2.5), "of: "),
                       (lambda: program.run(3), "arrays: "), (lambda: program.compile()([1, 2]), "arrays: "),
                       (lambda: weft.tune(3), "op: "), (lambda: weft.tune(None, None), "op: ")]:
        with pytest.raises(weft.ArgumentError, match=f"^{name}expected .*, got "):
            call()


def test_lists_of_integers_do_not_wrap():
    program = weft.Program(GATHER)
    for at in ([2 ** 32], [2 ** 31], [0.7], [2 ** 64]):
        with pytest.raises(weft.ArgumentError):
            program.run(a=at, X=np.ones(2))
    for ends in (np.array([2 ** 64 - 1], np.uint64), [0.7], ["0"]):
        with pytest.raises(weft.ArgumentError):
            weft.Edges(ends, [0])
    with pytest.raises(weft.ArgumentError):
        weft.Graph([[0.7, 1], [1, 0]])


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")
def test_operators_of_torch():
    import torch
    from weft import _torch, _torch_conv

    x, end = torch.ones(2, 3), torch.tensor([0, 1])
    text = "o3 sh; lmax=1; type=f32"
    with pytest.raises(RuntimeError, match="NUL"):
        torch.ops.weft.run([x], text + "\0\ngrad of=Y wrt=X")
    with pytest.raises((weft.ArgumentError, RuntimeError), match="NUL"):
        _torch.run(text + "\0", [x])
    spec = "conv; in1=3x0e; in2=3x0e; mode=uuu; out=3x0e; weights=none; type=f32"
    for nodes in (2.7, "3", True, -1, 2 ** 64 + 2):
        with pytest.raises(weft.ArgumentError):
            _torch_conv.conv(spec, [x, x], end, end, nodes)
    with pytest.raises(RuntimeError, match="negative"):
        torch.ops.weft.conv([x, x], end, end, -1, spec)
    assert _torch_conv.conv(spec, [x, x], end, end, 2).shape == (2, 3)
