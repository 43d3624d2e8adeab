# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""weft.message, weft.gat, weft.gatv2, weft.rgms, sage: what plain loops over edges give, and their gradients."""

import numpy as np
import pytest

import weft
from weft import _edges, _message
from weft._message import MESSAGES

N, M, EDGES = 6, 7, 20
OPS = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide}


@pytest.fixture
def index(rng):
    """From N nodes to M; one receives nothing, one edge is there twice."""
    index = np.stack([rng.integers(0, N, EDGES), rng.integers(0, M, EDGES)])
    index[1][index[1] == 3] = 4
    index[:, 5] = index[:, 6]
    return index


def operands(rng, features):
    return {"u": rng.normal(size=(N, *features)), "v": rng.normal(size=(M, *features)),
            "e": rng.normal(size=(EDGES, *features)) + 3}


def messages(name, given, index):
    at = {"u": index[0], "v": index[1], "e": slice(None)}
    a, op, b = (name.split("_") + [None])[:3] if not name.startswith("copy") else ("copy", name[-1], None)
    if a == "copy":
        return given[op][at[op]]
    x, y = given[a][at[a]], given[b][at[b]]
    return (x * y).sum(-1) if op == "dot" else OPS[op](x, y)


def reduced(values, reduce, index):
    out = np.zeros((M, *values.shape[1:]))
    for i in range(M):
        if (index[1] == i).any():
            out[i] = getattr(np, reduce)(values[index[1] == i], 0)
    return out


@pytest.mark.parametrize("name", MESSAGES)
def test_messages_are_reduced_over_the_edges_of_each_receiver(rng, index, name):
    given = operands(rng, (3,))
    kept = {k: x for k, x in given.items() if k in name.split("_")}
    values = messages(name, given, index)
    for reduce in ("sum", "mean", "max", "min"):
        got = weft.message(index, name, reduce, num_nodes=(M, N), **kept)
        np.testing.assert_allclose(got, reduced(values, reduce, index), atol=1e-12)
    np.testing.assert_allclose(weft.message(index, name, None, num_nodes=(M, N), **kept), values, atol=1e-12)


def test_heads_scalars_and_winners(rng, index):
    u, e = rng.normal(size=(N, 2, 3)), rng.normal(size=(EDGES, 2))
    values = u[index[0]] * e[:, :, None]
    got = weft.message(index, "u_mul_e", u=u, e=e, num_nodes=(M, N))
    np.testing.assert_allclose(got, reduced(values, "sum", index))
    got = weft.message(index, "u_mul_e", u=u, e=e[:, 0], num_nodes=(M, N))
    np.testing.assert_allclose(got, reduced(u[index[0]] * e[:, :1, None], "sum", index))
    y, won = weft.message(index, "u_mul_e", "max", u=u, e=e, num_nodes=(M, N), arg=True)
    assert (won[3] == -1).all() and (y[3] == 0).all()
    for i in range(M):
        for h in range(2):
            for k in range(3):
                if won[i, h, k] >= 0:
                    assert index[1][won[i, h, k]] == i and values[won[i, h, k], h, k] == y[i, h, k]


def test_a_matrix_in_csr_has_edges_in_its_order(rng):
    sp = pytest.importorskip("scipy.sparse")
    A = sp.random(M, N, 0.5, format="csr", random_state=1)
    u = rng.normal(size=(N, 3))
    np.testing.assert_allclose(weft.message(A, "u_mul_e", u=u, e=A.data), A @ u)


@pytest.mark.parametrize("call, words", [
    (lambda i, u: weft.message(i, "u_pow_v", u=u), "message"),
    (lambda i, u: weft.message(i, "copy_u", "median", u=u), "reduce"),
    (lambda i, u: weft.message(i, "copy_u"), "u"),
    (lambda i, u: weft.message(i, "copy_u", u=u, v=u), "v"),
    (lambda i, u: weft.message(i, "copy_u", u=u.astype(int)), "u"),
    (lambda i, u: weft.message(i, "copy_u", u=u, arg=True), "arg"),
    (lambda i, u: weft.message(i, "u_mul_e", u=u, e=u, num_nodes=(M, N)), "e: expected 20 rows"),
    (lambda i, u: weft.message(i, "copy_u", u=u, num_nodes=[M]), "num_nodes: expected a number or a pair"),
    (lambda i, u: weft.gat(i, u, u, u[..., None], loops=2**32 + 1), "loops: expected an integer from 0 to 2"),
    (lambda i, u: weft.gat(i, u, u, u[..., None], loops=None), "loops: expected an integer"),
    (lambda i, u: weft.message(i + 9, "copy_u", u=u, num_nodes=(M, N)), "receiver"),
    (lambda i, u: weft.message(i.astype(float), "copy_u", u=u), "graph"),
    (lambda i, u: weft.rgms(i, u, u), "tiles"),
    (lambda i, u: weft.Tiles(i, i[0][:3], 6), "edge_type"),
    (lambda i, u: weft.Tiles(i, i[0], 2), "type"),
    (lambda i, u: weft.rgms(weft.Tiles(i, i[0], N, (M, N)), u, np.ones((2, 3, 3))), "W"),
])
def test_what_is_wrong_is_named(rng, index, call, words):
    with pytest.raises(weft.Error, match=words):
        call(index, rng.normal(size=(N, 3)))


def relational(index, types, X, W, reduce, weight):
    out = np.zeros((M, W.shape[-1]))
    for r in range(len(W)):
        for i in range(M):
            here = (index[1] == i) & (types == r)
            if here.any():
                out[i] += getattr(np, reduce)(X[index[0][here]] * weight[here, None], 0) @ W[r]
    return out


@pytest.mark.parametrize("reduce", ["sum", "mean", "max"])
@pytest.mark.parametrize("many", [EDGES, 700])  # 700: several tiles of a relation
def test_rgms(rng, reduce, many):
    index = np.stack([rng.integers(0, N, many), rng.integers(0, M, many)])
    types = rng.choice([0, 1, 3, 4], many)  # of relation 2 there is none
    X, W, weight = rng.normal(size=(N, 4)), rng.normal(size=(5, 4, 6)), rng.normal(size=many)
    tiles = weft.Tiles(index, types, 5, (M, N))
    want = relational(index, types, X, W, reduce, np.ones(many))
    np.testing.assert_allclose(weft.rgms(tiles, X, W, reduce), want, atol=1e-12)
    want = relational(index, types, X, W, reduce, weight)
    np.testing.assert_allclose(weft.rgms(tiles, X, W, reduce, weights=weight), want, atol=1e-12)
    comp, bases = rng.normal(size=(5, 2)), rng.normal(size=(2, 4, 6))
    want = relational(index, types, X, np.einsum("rb,bco->rco", comp, bases), reduce, np.ones(many))
    np.testing.assert_allclose(weft.rgms(tiles, X, bases, reduce, comp=comp), want, atol=1e-12)
    blocks, whole = rng.normal(size=(5, 2, 2, 3)), np.zeros((5, 4, 6))
    whole[:, :2, :3], whole[:, 2:, 3:] = blocks[:, 0], blocks[:, 1]
    want = relational(index, types, X, whole, reduce, np.ones(many))
    np.testing.assert_allclose(weft.rgms(tiles, X, blocks, reduce), want, atol=1e-12)


@pytest.mark.parametrize("reduce", ["sum", "mean"])
def test_sage(rng, reduce):
    index, H = rng.integers(0, N - 1, (2, EDGES)), rng.normal(size=(N, 2, 3))  # the last node has no edge
    want = H[:, 1].copy()
    for i in range(N):
        senders = index[0][index[1] == i]
        if len(senders):
            want[i] += getattr(np, reduce)(H[senders, 0], 0)
    got = _message.neighbours("sage", _edges.rows(weft.Graph(index, N), N, N), "H", H, reduce)
    np.testing.assert_allclose(got, want, atol=1e-12)


def test_spmm_with_other_reductions(rng):
    A = np.array([[0, 2.0, -1], [0, 0, 0], [3, 0, 0.5]])
    B = rng.normal(size=(3, 4))
    start, col = np.array([0, 2, 2, 4]), np.array([1, 2, 0, 2])
    values = A[[0, 0, 2, 2], col]
    rows = [values[a:b, None] * B[col[a:b]] for a, b in zip(start, start[1:])]
    for reduce in ("max", "min", "mean"):
        kernel = weft.Program.op(f"spmm:f64:{reduce}").compile()
        got = kernel(A=values, E_start=start, E_j=col, B=B)
        want = np.stack([getattr(np, reduce)(r, 0) if len(r) else np.zeros(4) for r in rows])
        np.testing.assert_allclose(got, want)
    got = weft.Program.op("spmm:f64:max:arg").compile()(A=values, E_start=start, E_j=col, B=B)
    assert (got["W"][1] == -1).all() and set(got["W"][0]) <= {0, 1}
    with pytest.raises(weft.ArgumentError, match="arg"):
        weft.Program.op("spmm:arg")


class TestGradients:
    """In f64, by differences, of first and second order."""

    torch = pytest.importorskip("torch")

    def check(self, f, *shapes):
        torch = self.torch
        torch.manual_seed(1)
        xs = [torch.rand(s, dtype=torch.float64).add(0.3).requires_grad_() for s in shapes]
        assert torch.autograd.gradcheck(f, xs)
        assert torch.autograd.gradgradcheck(f, xs)

    @property
    def index(self):
        g = self.torch.Generator().manual_seed(1)
        return self.torch.randint(0, 5, (2, 9), generator=g)

    @pytest.mark.parametrize("name, reduce", [
        *[(m, "sum") for m in MESSAGES],
        *[(m, r) for m in ("copy_u", "u_mul_e", "u_dot_v") for r in ("mean", "max", "min", None)]])
    def test_of_messages(self, name, reduce):
        index, wanted = self.index, [c for c in name.split("_") if c in "uve"]
        shapes = [(9, 2) if c == "e" else (5, 2) for c in wanted]
        self.check(lambda *x: weft.message(index, name, reduce, num_nodes=5, **dict(zip(wanted, x))), *shapes)

    def test_of_heads_and_scalars(self):
        index = self.index
        self.check(lambda u, e: weft.message(index, "u_mul_e", u=u, e=e), (5, 2, 2), (9, 2))
        self.check(lambda u, e: weft.message(index, "u_mul_e", "max", u=u, e=e), (5, 3), (9,))

    @pytest.mark.parametrize("loops", [0, 1, 2])
    def test_of_gat(self, loops):
        index, ne = self.index, 9 + (5 if loops else 0)
        self.check(lambda L, R, X: weft.gat(index, L, R, X, loops=loops), (5, 2), (5, 2), (5, 2, 2))
        self.check(lambda L, R, X, G, F: weft.gat(index, L, R, X, G=G, F=F, weights=True, loops=loops),
                   (5, 2), (5, 2), (5, 2, 2), (ne, 2), (ne, 2))

    def test_of_gatv2(self):
        index = self.index
        self.check(lambda Q, L, X: weft.gatv2(index, Q, L, X), (2, 2), (5, 2, 2), (5, 2, 2))
        self.check(lambda Q, L, X, G, F: weft.gatv2(index, Q, L, X, G=G, F=F, weights=True, loops=1),
                   (2, 2), (5, 2, 2), (5, 2, 2), (14, 2, 2), (14, 2))

    @pytest.mark.parametrize("reduce", ["sum", "mean"])
    def test_of_sage(self, reduce):
        rows = _edges.rows(self.index, 5, 5, 0, torch=True)
        self.check(lambda H: _message.neighbours("sage", rows, "H", H, reduce), (5, 2, 3))

    @pytest.mark.parametrize("reduce", ["sum", "mean", "max"])
    def test_of_rgms(self, reduce):
        tiles = weft.Tiles(self.index, self.torch.arange(9) % 3, 4, 5)
        self.check(lambda X, W: weft.rgms(tiles, X, W, reduce), (5, 2), (4, 2, 2))
        self.check(lambda X, W, M, A: weft.rgms(tiles, X, W, reduce, comp=M, weights=A),
                   (5, 2), (2, 2, 2), (4, 2), (9,))
        self.check(lambda X, W: weft.rgms(tiles, X, W, reduce), (5, 4), (4, 2, 2, 2))
