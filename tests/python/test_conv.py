# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""Convolutions on NumPy arrays: values against the product on each edge, derivatives against
differences (a convolution is linear in each operand), graphs of all kinds, orders of edges, threads,
what is refused and how.  test_conv_e3nn.py compares with e3nn."""

import pickle
import re

import numpy as np
import pytest

import weft

IN1, IN2, OUT = "3x0e + 2x1o", "0e + 1o", "0e + 1o"
KINDS = [{}, {"weights": "shared"}, {"hidden": 5}, {"layout": "ir_mul"}]
_made = {}


def conv_of(**kind):
    """Each is compiled once."""
    key = tuple(kind.items())
    if key not in _made:
        _made[key] = weft.Convolution(IN1, IN2, OUT, mode="uvu", dtype="f64", **kind)
    return _made[key]


def graphs():
    rng = np.random.default_rng(3)
    yield "no edges", ([], [], 4, 4)
    yield "nothing at all", ([], [], 0, 0)
    yield "loops and twice", ([1, 1, 0, 1], [1, 0, 0, 0], 2, 2)
    yield "isolated nodes", ([5, 2, 5], [2, 5, 0], 7, 7)
    yield "ghosts that only send", ([0, 2, 1, 0], [4, 3, 0, 4], 3, 5)
    yield "two kinds", (rng.integers(0, 3, 20), rng.integers(0, 11, 20), 3, 11)
    yield "all to one", (np.full(70, 2), rng.integers(0, 5, 70), 5, 5)


def operands(conv, edges, rng, names=("x", "y", "weight", "matrix")):
    out = {name: rng.standard_normal(conv._rows(edges, name)[0]) for name in names}
    return {name: a if a.shape else None for name, a in out.items()}


def want(conv, edges, receiver, sender, x, y, weight, matrix):
    product = weft.Product(IN1, IN2, OUT, mode="uvu", weights="item", dtype="f64",
                           layout="ir_mul" if "ir_mul" in conv.spec else "mul_ir")
    if matrix is not None:
        weight = weight @ matrix
    weight = np.broadcast_to(weight, (edges.n, conv.weight_numel))
    out = np.zeros((edges.nodes, conv.irreps_out.dim))
    np.add.at(out, receiver, product(x[sender], y, np.ascontiguousarray(weight)))
    return out


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_values_are_sums_of_products(kind, rng):
    conv = conv_of(**kind)
    for name, (receiver, sender, nodes, senders) in graphs():
        receiver, sender = np.asarray(receiver, int), np.asarray(sender, int)
        edges = weft.Edges(receiver, sender, nodes, senders)
        given = operands(conv, edges, rng)
        z = conv(edges, **given)
        np.testing.assert_allclose(z, want(conv, edges, receiver, sender, **given), atol=1e-13,
                                   err_msg=name)
        narrow = weft.Edges(receiver.astype(np.int32), sender.astype(np.int32), nodes, senders)
        room = np.full_like(z, 7)
        assert conv(narrow, **given, out=room) is room and (room == z).all(), name


@pytest.mark.parametrize("kind", KINDS[:3], ids=str)
def test_derivatives_are_differences(kind, rng):
    conv = conv_of(**kind)
    for name, (receiver, sender, nodes, senders) in graphs():
        edges = weft.Edges(receiver, sender, nodes, senders)
        at, step, along = (operands(conv, edges, rng) for _ in range(3))
        dz, dz2 = rng.standard_normal((2, nodes, conv.irreps_out.dim))
        d = conv.backward(edges, dz, **at)
        g = conv.double_backward(edges, dz, **at, **{f"dd{n}": a for n, a in along.items()})

        def slope(at, dz):
            got = conv.backward(edges, dz, **at)
            return sum((got[n] * along[n]).sum() for n in got)

        for n in d:
            moved = {**at, n: at[n] + step[n]}
            change = ((conv(edges, **moved) - conv(edges, **at)) * dz).sum()
            assert (d[n] * step[n]).sum() == pytest.approx(change, abs=1e-10), (name, n)
            change = slope(moved, dz) - slope(at, dz)
            assert (g[n] * step[n]).sum() == pytest.approx(change, abs=1e-10), (name, n)
        assert (g["dz"] * dz2).sum() == pytest.approx(slope(at, dz + dz2) - slope(at, dz), abs=1e-10)


@pytest.mark.parametrize("kind", KINDS[:3], ids=str)
def test_orders_of_edges_and_threads_leave_no_trace(kind, rng):
    conv = conv_of(**kind)
    receiver, sender = np.divmod(rng.permutation(120)[:90], 12)
    at = operands(conv, weft.Edges(receiver, sender, 10, 12), rng)
    dz = rng.standard_normal((10, conv.irreps_out.dim))
    of_edges = [n for n, a in at.items() if a is not None and len(a) == 90]
    first = None
    try:
        for threads, order in ((1, np.arange(90)), (2, rng.permutation(90)), (3, rng.permutation(90)),
                               (7, np.lexsort((sender, receiver)))):
            weft.set_threads(threads)
            edges = weft.Edges(receiver[order], sender[order], 10, 12)
            given = {n: a[order] if n in of_edges else a for n, a in at.items()}
            d = conv.backward(edges, dz, **given)
            back = np.argsort(order)
            bits = [(d[n][back] if n in of_edges else d[n]).tobytes() for n in d]
            bits.append(conv(edges, **given).tobytes())
            first = first or bits
            assert bits == first, threads
    finally:
        weft.set_threads(0)


def test_gradients_that_are_not_wanted_change_nothing(rng):
    conv = conv_of(hidden=5)
    edges = weft.Edges([2, 0, 1], [0, 1, 1], 3)
    at = operands(conv, edges, rng)
    dz = rng.standard_normal((3, conv.irreps_out.dim))
    every = conv.backward(edges, dz, **at)
    assert list(every) == ["x", "y", "weight", "matrix"]
    for names in (["y"], ["x", "matrix"], "weight"):
        some = conv.backward(edges, dz, **at, wrt=names)
        assert list(some) == ([names] if isinstance(names, str) else names)
        for n, a in some.items():
            np.testing.assert_allclose(a, every[n], atol=1e-13)
    room = {"y": np.empty_like(at["y"]), "x": np.empty_like(at["x"])}
    some = conv.backward(edges, dz, **at, out=room)
    assert some["y"] is room["y"] and some["x"] is room["x"] and list(some) == ["y", "x"]
    np.testing.assert_allclose(room["x"], every["x"], atol=1e-13)
    ddx = rng.standard_normal(at["x"].shape)
    g = conv.double_backward(edges, dz, **at, ddx=ddx, wrt=["x", "dz"])
    assert list(g) == ["x", "dz"] and not g["x"].any()


def test_a_program_with_other_names_gives_the_same_bits(rng):
    conv = conv_of()
    text = weft.Program.o3(conv.spec).text
    for old, new in (("senders", "sources"), ("nodes", "targets"), ("E", "Bond"), ("I", "Target")):
        text = re.sub(rf"\b{old}\b", new, text)
    text = text.replace("(e)", "(bond)").replace("[e,", "[bond,").replace("[i,", "[target,")
    renamed = weft.Program(text).compile()
    receiver, sender = np.array([0, 0, 2, 3, 3, 3]), np.array([1, 3, 0, 0, 1, 2])
    edges = weft.Edges(receiver, sender, 4, 4)
    at = operands(conv, edges, rng)
    given = {"X": at["x"], "Y": at["y"], "Wt": at["weight"], "targets": 4, "sources": 4,
             "Bond.start": np.searchsorted(receiver, np.arange(5)), "Bond.j": sender}
    assert (renamed(given) == conv(edges, **at)).all()


def test_what_makes_no_sense_is_refused(rng):
    conv = conv_of()
    edges = weft.Edges([1, 0], [0, 1])
    assert repr(edges) == "<weft.Edges 2 from 2 to 2>" and len(edges) == 2
    at = operands(conv, edges, rng)
    again = pickle.loads(pickle.dumps(conv))
    assert repr(again) == repr(conv) and (again(edges, **at) == conv(edges, **at)).all()

    def refused(text, call, *arguments, **named):
        with pytest.raises(weft.Error, match=text):
            call(*arguments, **named)

    refused("receiver: expected integers", weft.Edges, [0.5], [1])
    refused("sender: expected the shape", weft.Edges, [0, 1], [1])
    refused(r"receiver\[1\] is 3, but there are 3 rows", weft.Edges, [0, 3], [0, 0], 3)
    refused(r"sender\[0\] is -1, but", weft.Edges, [0], [-1], 3)
    refused("edges: expected weft.Edges", conv, [0, 1], **at)
    refused("x: expected the shape", conv, edges, **{**at, "x": at["x"][:1]})
    refused("weight: expected an array, got None", conv, edges, at["x"], at["y"])
    refused("matrix: expected None", conv, edges, **{**at, "matrix": np.zeros((2, 2))})
    refused("y: expected elements of float64", conv, edges, **{**at, "y": at["y"].astype("f4")})
    refused("out: expected an array", conv, edges, **at, 
            out=np.zeros((conv.irreps_out.dim, 2)).T)
    refused("wrt: expected some of", conv.backward, edges, np.zeros((2, conv.irreps_out.dim)), **at,
            wrt="z")
    refused("no setting", weft.Convolution, IN1, IN2, OUT, mode="uvu", colour="red")
    refused("hidden is 1 to", weft.Convolution, IN1, IN2, OUT, mode="uvu", hidden=0)


CANCELS = {  # irreps, paths; each path multiplies by 1
    "one path": ("16x0e", "0e", "16x0e"),
    "two paths": ("16x0e", "0e+0e", "16x0e+16x0e"),
    "vectors": ("16x1o", "0e", "16x1o"),
    "two paths of vectors": ("16x1o", "0e+0e", "16x1o+16x1o"),
}


@pytest.mark.parametrize("n", [3200, 10**5])  # the latter in parts
@pytest.mark.parametrize("name", CANCELS)
def test_sums_over_edges_are_compensated_on_request(name, n):
    """Edges of one node, with weights that nearly cancel."""
    in1, in2, out = CANCELS[name]
    paths, dim = len(in2.split("+")), weft.Irreps("1x" + in1.split("x")[1]).dim
    edges = weft.Edges(np.zeros(n, int), np.zeros(n, int), nodes=1)
    rng = np.random.default_rng(3)
    large = np.repeat(np.array([1e6, 3e4, -1e6, -3e4]), n // 8)
    w = np.stack([rng.permutation(np.concatenate([large, rng.random(n // 2)])) for _ in range(paths * 16)], 1)
    w = w.astype(np.float32)
    want = w.sum(0, dtype=np.float64)
    x, y = np.ones((1, 16 * dim), np.float32), np.ones((n, paths), np.float32)
    off = {}
    for sums in ("plain", "compensated"):
        conv = weft.Convolution(in1, in2, out, paths=[(0, k, k, "uvu", True) for k in range(paths)], sums=sums)
        z = conv(edges, x, y, w)[0]
        dx = conv.backward(edges, np.ones_like(z)[None], x, y, w, wrt=("x",))["x"][0]
        off[sums] = np.abs(z / np.repeat(want, dim) - 1).max()
        if name != "two paths of vectors":  # there what an edge adds to dx is a sum itself, and rounded
            off[sums] = max(off[sums], np.abs(dx / np.repeat(want.reshape(paths, 16).sum(0), dim) - 1).max())
    assert off["compensated"] < 2e-6 < 1e-4 < off["plain"]


def test_results_begin_at_a_line_of_the_caches():
    """Where that is so kernels store past the caches."""
    edges = weft.Edges([0, 1, 1] * 200, [0, 0, 1] * 200, nodes=2)
    conv = weft.Convolution("16x0e+16x1o", "0e", "0e+1o", mode="uvu")
    x, y = np.ones((2, 64), np.float32), np.ones((600, 1), np.float32)
    w = np.ones((600, conv.weight_numel), np.float32)
    z = conv(edges, x, y, w)
    d = conv.backward(edges, z, x, y, w)
    assert [a.ctypes.data % 64 for a in (z, *d.values())] == [0] * 4
