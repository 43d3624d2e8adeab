# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""Convolutions against e3nn's product between a gather and index_add, in f64: values and gradients of
orders 1 to 3, over neighbour lists of atoms and over random graphs."""

import numpy as np
import pytest

import weft

torch = pytest.importorskip("torch", reason="convolutions against e3nn: torch is not installed")
e3nn = pytest.importorskip("e3nn", reason="convolutions against e3nn: e3nn is not installed")
from e3nn import o3  # noqa: E402

FORWARD = {"f64": 1e-14, "f32": 1e-6}  # relative to the largest element
BACKWARD = {"f64": 1e-13, "f32": 5e-6}
PROBLEMS = {  # as models have them, with fewer channels
    "sevennet": ("16x0e+8x1e+4x2e", "0e+1e+2e", "0e+1e+2e", "uvu", {}),
    "l3i5": ("8x0e+6x1e+4x2e+2x3e", "0e+1e+2e+3e", "0e+1e+2e+3e", "uvu", {"hidden": 8}),
    "mace": ("8x0e+8x1o", "0e+1o+2e+3o", "0e+1o+2e", "uvu", {"signs": "e3nn-0.4"}),
    "nequip": ("4x0o+4x0e+4x1o+4x1e", "0e+1o", "0o+0e+1o+1e", "uvu", {"order": "in"}),
    "diffdock": ("5x0e+2x1o", "0e+1o", "3x0e+2x1o", "uvw", {"weights": "shared"}),
}


@pytest.fixture(autouse=True)
def doubles():
    before, options = torch.get_default_dtype(), e3nn.get_optimization_defaults()
    torch.set_default_dtype(torch.float64)
    e3nn.set_optimization_defaults(jit_mode="eager", optimize_einsums=False)
    yield
    torch.set_default_dtype(before)
    e3nn.set_optimization_defaults(**options)


def silicon():
    """Atoms out of place, with neighbours to 5 Angstrom, and in another order than the library's."""
    atoms = weft.atoms("crystal:silicon:rattle=0.1")
    found = weft.neighbours(atoms.positions, atoms.cell, atoms.pbc, cutoff=5.0)
    order = np.random.default_rng(0).permutation(len(found.receiver))
    return found.receiver[order], found.sender[order], len(atoms.positions), len(atoms.positions)


def bipartite():
    rng = np.random.default_rng(1)
    return rng.integers(0, 5, 64), rng.integers(0, 9, 64), 5, 9


def directed(receiver, sender, nodes, senders=None, dtype=np.int32):
    return (np.array(receiver, dtype), np.array(sender, dtype), nodes, nodes if senders is None else senders)


GRAPHS = {
    "no edges": directed([], [], 3),
    "no nodes": directed([], [], 0),
    "one edge": directed([0], [0], 1),
    "nodes without edges": directed([4, 1, 4], [1, 4, 2], 7),
    "edges there twice": directed([0, 2, 0, 0, 2], [1, 0, 1, 1, 0], 3),
    "loops": directed([0, 1, 2, 1, 0], [0, 1, 2, 1, 2], 3),
    "no reverse": directed([0, 0, 1, 2, 0], [1, 2, 2, 3, 3], 4),
    "a star": directed([0] * 40 + list(range(1, 41)), list(range(1, 41)) + [0] * 40, 41),
    "fewer receivers": directed([0, 1, 1, 0, 1], [6, 2, 5, 0, 3], 2, 7),
    "fewer senders": directed([6, 2, 5, 0, 3], [0, 1, 1, 0, 1], 7, 2),
    "ghosts": directed([0, 1, 2, 0, 1, 2, 2], [3, 4, 5, 1, 5, 0, 3], 3, 6),
    "sorted": directed(np.repeat(np.arange(6), 5), np.tile(np.arange(5), 6), 6),
    "of 64 bits": directed(np.arange(30) * 7 % 6, np.arange(30) * 11 % 6, 6, dtype=np.int64),
    "many": bipartite(),
}


class Peer:
    def __init__(self, conv, edges, receiver, sender):
        paths = [(int(a), int(b), int(c), mode, True) for a, b, c, mode, *_ in conv.paths]
        shared = "weights=shared" in conv.spec
        self.product = o3.TensorProduct(*(str(conv.irreps[k]) for k in ("in1", "in2", "out")), paths,
                                        shared_weights=shared, internal_weights=False)
        self.receiver, self.sender = (torch.tensor(a.astype(np.int64)) for a in (receiver, sender))
        self.nodes = edges.nodes
        self.flip = torch.ones(conv.weight_numel)
        if "e3nn-0.4" in conv.spec:  # symbols with the other sign, path by path
            self.flip = torch.cat([torch.full((conv.irreps_in1[i].mul,), self.sign(conv, i, j, k))
                                   for i, j, k, *_ in paths])

    @staticmethod
    def sign(conv, i, j, k):
        degrees = conv.irreps_in1[i].l, conv.irreps_in2[j].l, conv.irreps_out[k].l
        return float(np.vdot(weft.wigner_3j(*degrees), weft.wigner_3j(*degrees, signs="e3nn-0.4")))

    def __call__(self, x, y, weight, matrix=None):
        weight = weight if matrix is None else weight @ matrix
        edge = self.product(x[self.sender], y, weight * torch.sign(self.flip))
        return torch.zeros(self.nodes, edge.shape[1]).index_add(0, self.receiver, edge)


def relative(got, expected):
    expected = expected.detach().numpy()
    return np.abs(got - expected).max(initial=0) / max(np.abs(expected).max(initial=0), 1e-30)


def check(conv, dtype, receiver, sender, nodes, senders):
    """Values and gradients of both orders, by every operand."""
    edges = weft.Edges(receiver, sender, nodes, senders)
    peer, rng = Peer(conv, edges, receiver, sender), np.random.default_rng(2)
    names = [n for n in ("x", "y", "weight", "matrix") if conv._rows(edges, n)[0]]
    real = np.float32 if dtype == "f32" else np.float64

    def some(name):
        return rng.standard_normal(conv._rows(edges, name)[0]).astype(real)

    at, along = {n: some(n) for n in names}, {n: some(n) for n in names}
    dz = some("z")
    t = {n: torch.tensor(a.astype(np.float64), requires_grad=True) for n, a in at.items()}
    tz = torch.tensor(dz.astype(np.float64), requires_grad=True)
    z = peer(**t)
    assert relative(conv(edges, **at), z) <= FORWARD[dtype]
    first = torch.autograd.grad(z, list(t.values()), tz, create_graph=True)
    d = conv.backward(edges, dz, **at)
    for n, expected in zip(names, first):
        assert relative(d[n], expected) <= BACKWARD[dtype], n
    second = torch.autograd.grad(first, [*t.values(), tz],
                                 [torch.tensor(along[n].astype(np.float64)) for n in names])
    g = conv.double_backward(edges, dz, **at, **{f"dd{n}": along[n] for n in names})
    for n, expected in zip([*names, "dz"], second):
        assert relative(g[n], expected) <= BACKWARD[dtype], n


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("dtype, graph", [("f64", bipartite), ("f32", silicon)])
def test_values_and_gradients(name, dtype, graph):
    in1, in2, out, mode, more = PROBLEMS[name]
    check(weft.Convolution(in1, in2, out, mode=mode, dtype=dtype, **more), dtype, *graph())


@pytest.mark.parametrize("more", [{}, {"hidden": 3}])
@pytest.mark.parametrize("dtype", ["f64", "f32"])
def test_graphs_of_all_kinds(dtype, more):
    conv = weft.Convolution("4x0e+3x1o", "0e+1o", "0e+1o", mode="uvu", dtype=dtype, **more)
    for name, graph in GRAPHS.items():
        try:
            check(conv, dtype, *graph)
        except AssertionError as fault:
            raise AssertionError(name) from fault


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_the_order_of_edges_changes_no_bit(dtype):
    conv = weft.Convolution("4x0e+3x1o", "0e+1o", "0e+1o", mode="uvu", dtype="f32")
    rng = np.random.default_rng(6)
    pairs = rng.permutation(7 * 9)[:40]
    receiver, sender = (pairs // 9).astype(dtype), (pairs % 9).astype(dtype)
    x, y, w, dz = (rng.standard_normal(s, dtype=np.float32) for s in
                   ((9, 13), (40, 4), (40, conv.weight_numel), (7, conv.irreps_out.dim)))
    edges = weft.Edges(receiver, sender, 7, 9)
    z, d = conv(edges, x, y, w), conv.backward(edges, dz, x, y, w)
    for _ in range(5):
        p = rng.permutation(40)
        other = weft.Edges(receiver[p], sender[p], 7, 9)
        g = conv.backward(other, dz, x, y[p], w[p])
        assert np.array_equal(conv(other, x, y[p], w[p]), z) and np.array_equal(g["x"], d["x"])
        assert np.array_equal(g["y"], d["y"][p]) and np.array_equal(g["weight"], d["weight"][p])


@pytest.mark.parametrize("graph", ["many", "edges there twice", "ghosts", "nodes without edges", "loops"])
def test_third_derivatives(graph):
    """By the program, three times its gradient."""
    receiver, sender, nodes, senders = GRAPHS[graph]
    order = np.lexsort((sender, receiver))
    receiver, sender = receiver[order], sender[order]
    conv = weft.Convolution("3x0e+2x1o", "0e+1o", "0e+1o", mode="uvu", dtype="f64")
    program = weft.Program.o3(conv.spec)
    peer = Peer(conv, weft.Edges(receiver, sender, nodes, senders), receiver, sender)
    rng = np.random.default_rng(5)
    n = len(receiver)
    arrays = {"X": rng.standard_normal((senders, 9)), "Y": rng.standard_normal((n, 4)),
              "Wt": rng.standard_normal((n, conv.weight_numel))}
    given = {"E.start": np.searchsorted(receiver, np.arange(nodes + 1)), "E.j": sender, "nodes": nodes,
             "senders": senders}
    leaf = {n: torch.tensor(a, requires_grad=True) for n, a in arrays.items()}
    of = {"Z": peer(leaf["X"], leaf["Y"], leaf["Wt"])}
    for k in range(3):
        program = program.grad()
        prefix = "d_" if k == 0 else f"d{k + 1}_"
        for name, value in of.items():
            arrays[prefix + name] = rng.standard_normal(value.shape)
            leaf[prefix + name] = torch.tensor(arrays[prefix + name], requires_grad=True)
        by = {a.name: leaf[a.name[len(prefix):]] for a in program.args if a.role == "output"}
        grads = torch.autograd.grad(list(of.values()), list(by.values()),
                                    [leaf[prefix + n] for n in of], create_graph=True)
        of = dict(zip(by, grads))
        inputs = {a.name: arrays[a.name] for a in program.args if a.name in arrays}
        got = program.compile()({**inputs, **given})
        for name, expected in of.items():
            assert relative(got[name], expected) <= 1e-13, name
