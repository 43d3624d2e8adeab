# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""Every operator of `weft list ops`, called by its name in Python: compiled whole, exported and under vmap; and
derivatives of both orders by differences, of those that test_ops_grad does not have with all their options.  An
operator that is added needs a row here."""

import pytest

torch = pytest.importorskip("torch")

import weft  # noqa: E402
import weft.torch  # noqa: E402
from test_message import MESSAGES  # noqa: E402
from test_ops_grad import MATRIX, weft_list  # noqa: E402
from weft import _edges, _message, masks  # noqa: E402

N, NE = 5, 9
INDEX = torch.randint(0, N, (2, NE), generator=torch.Generator().manual_seed(1))
TYPE = torch.arange(NE) % 3
GRAPH = weft.Graph(INDEX, N)
MAP = weft.kernel_map(torch.tensor([[0, i, i % 3, i % 2] for i in range(4)], dtype=torch.int32), 3)
PLACES = [torch.tensor([[0, 1, 2, 2], [1, 0, 0, 3]]), torch.tensor([[0, 1, 1, 2], [2, 1, 3, 0]])]
TABLE, LENGTHS = torch.tensor([[1, 2], [0, 0]]), torch.tensor([5, 1])
KEEP = torch.kron(torch.tensor([[1, 0], [0, 1]]), torch.ones(4, 4)).bool()
NM = torch.tensor([1, 0, 0, 1] * 16).reshape(8, 8).bool()  # two of four


def tiles():
    return weft.Tiles(INDEX, TYPE, 3, N)


def message(name, reduce="sum", **more):
    wanted = [c for c in name.split("_") if c in "uve"]
    shapes = [(NE if c == "e" else N, 2) for c in wanted]
    return lambda *x: weft.message(INDEX, name, reduce, num_nodes=N, **more, **dict(zip(wanted, x))), shapes


def attention(n=20, dims=(2,), kv=2, mask=None, **more):
    shapes = [(2, n, 2), (kv, n, 2), (kv, n, 3)]
    return lambda q, k, v: weft.attention(q, k, v, mask, **more), [(*dims, *s) for s in shapes]


def sparse_linear(format, mask):
    weight = weft.SparseWeight.from_dense(torch.ones(8, 8, dtype=torch.float64), mask, format)
    return (lambda x, v, b: weft.sparse_linear(x, weight.with_values(v), b)), [(3, 8), tuple(weight.values.shape), (8,)]


def matrices(call, second=(3, 4)):
    """The values of a sparse result, of the values of the operands."""
    def values(v, w):
        pair = (torch.sparse_coo_tensor(p, x, s, check_invariants=False, is_coalesced=True)
                for p, x, s in zip(PLACES, (v, w), ((3, 4), second)))
        return call(*pair).coalesce().values()

    return values, [(4,), (4,)]


CASES = {  # by operator, its options: a function of tensors, and their shapes
    "spmv": {"": (lambda a, x: weft.spmv(GRAPH.with_data(a), x), [(NE,), (N,)])},
    "spmm": {r: (lambda a, b, r=r: weft.spmm(GRAPH.with_data(a), b, reduce=r), [(NE,), (N, 2)])
             for r in ("sum", "mean", "max", "min")},
    "sddmm": {"": (lambda x, y: weft.sddmm(GRAPH, x, y), [(N, 2), (N, 2)])},
    "softmax": {"": (lambda s: weft.softmax(GRAPH, s), [(NE, 2)])},
    **{f"segment_{r}": {"": (lambda x, r=r: weft.segment_reduce(GRAPH, x, r), [(NE, 2)])}
       for r in ("sum", "mean", "max", "min")},
    **{name: {"": message(name)} for name in MESSAGES},
    "gat": {f"loops={n}": (lambda *x, n=n: weft.gat(INDEX, *x, loops=n), [(N, 2), (N, 2), (N, 2, 2)]) for n in (0, 1, 2)}
    | {"scores, mask, weights": (lambda L, R, X, G, F: weft.gat(INDEX, L, R, X, G=G, F=F, weights=True),
                                 [(N, 2), (N, 2), (N, 2, 2), (NE, 2), (NE, 2)])},
    "gatv2": {"": (lambda *x: weft.gatv2(INDEX, *x), [(2, 2), (N, 2, 2), (N, 2, 2)]),
              "scores, mask, weights": (lambda Q, L, X, G, F: weft.gatv2(INDEX, Q, L, X, G=G, F=F, weights=True, loops=1),
                                        [(2, 2), (N, 2, 2), (N, 2, 2), (NE + N, 2, 2), (NE + N, 2)])},
    "rgms": {r: (lambda X, W, r=r: weft.rgms(tiles(), X, W, r), [(N, 2), (3, 2, 2)]) for r in ("sum", "mean", "max")}
    | {"basis, weights": (lambda X, W, M, A: weft.rgms(tiles(), X, W, comp=M, weights=A), [(N, 2), (2, 2, 2), (3, 2), (NE,)]),
       "blocks": (lambda X, W: weft.rgms(tiles(), X, W), [(N, 4), (3, 2, 2, 2)])},
    "sage": {r: (lambda H, r=r: _message.neighbours("sage", _edges.rows(INDEX, N, N, 0, torch=True), "H", H, r),
                 [(N, 2, 2)]) for r in ("sum", "mean")},
    "attention": {"": attention(), "mask": attention(mask=masks.band(20, 3)), "whole": attention(64),
                  "gqa": attention(kv=1, mask=masks.causal(20), enable_gqa=True),
                  "dropout": attention(mask=masks.band(20, 3), dropout=0.4, seed=7),
                  "ragged": attention(dims=(2,), lengths=torch.tensor([20, 7])),
                  "split": attention(1100, (), mask=masks.longformer(1100, 1, 1))},
    "paged_attention": {"": (lambda q, k, v: weft.paged_attention(q, k, v, TABLE, LENGTHS),
                             [(2, 4, 2), (3, 2, 4, 2), (3, 2, 4, 3)])},
    "conv3d": {"bias": (lambda x, w, b: weft.conv3d(x, w, MAP, b), [(4, 2), (3, 3, 3, 3, 2), (3,)]),
               "inverse": (lambda x, w: weft.conv3d(x, w, MAP.inverse()), [(4, 2), (3, 3, 3, 3, 2)])},
    "sparse_linear": {f: sparse_linear(f, NM if f.startswith("n_m") else KEEP)
                      for f in ("csr", "bsr(4, 4)", "dbsr(4, 4)", "sr_bcrs(4, 2)", "n_m(2, 4)")},
    "grouped_mm": {"": (lambda x, w: weft.grouped_mm(x, w, torch.tensor([2, 2, 5])), [(5, 2), (3, 2, 3)]),
                   "gather, gates": (lambda x, w, g: weft.grouped_mm(x, w, torch.tensor([1, 3, 4]), gates=g, index=torch.tensor(
                       [0, 4, 1, 4])), [(5, 2), (3, 2, 3), (4,)])},
    "spgemm": {"": matrices(weft.spgemm, (4, 4))},
    "sparse_add": {"": matrices(weft.sparse_add)},
    "sparse_mul": {"": matrices(weft.sparse_mul)},
}
ALL = [(op, option) for op, options in CASES.items() for option in options]
# How many entries a sparse result has depends on the places of the operands, and grouped_mm checks its offsets in
# NumPy: traces know neither.
TRACED = [(op, option) for op, option in ALL if op not in ("spgemm", "sparse_add", "sparse_mul", "grouped_mm")]


def case(op, option, *lead):
    f, shapes = CASES[op][option]
    g = torch.Generator().manual_seed(7)
    return f, [torch.rand((*lead, *s), generator=g, dtype=torch.float64).add(0.3) for s in shapes]


def results(f, *x):
    out = f(*x)
    return [y for y in (out if isinstance(out, (tuple, list)) else [out]) if y.is_floating_point()]


def test_every_operator_has_a_row():
    assert weft_list("ops") == set(CASES)


# Those of sparse results are in test_weights_torch, of first order.
@pytest.mark.parametrize("op, option", [c for c in TRACED if c[0] not in (*MATRIX, *MESSAGES)]
                         + [("grouped_mm", option) for option in CASES["grouped_mm"]])
def test_derivatives_of_both_orders(op, option):
    f, x = case(op, option)
    for one in x:
        one.requires_grad_()
    assert torch.autograd.gradcheck(lambda *x: tuple(results(f, *x)), x, fast_mode=True)
    assert torch.autograd.gradgradcheck(lambda *x: tuple(results(f, *x)), x, fast_mode=True)


class Module(torch.nn.Module):
    def __init__(self, f):
        super().__init__()
        self.f = f

    def forward(self, *x):
        return tuple(results(self.f, *x))


@pytest.mark.parametrize("op, option", TRACED)
def test_compile_and_export(op, option):
    f, x = case(op, option)
    want = results(f, *x)
    torch._dynamo.reset()
    a, b = ([one.clone().requires_grad_() for one in x] for _ in "ab")
    compiled = torch.compile(Module(f), fullgraph=True, backend="aot_eager")(*a)
    for got in (compiled, torch.export.export(Module(f), tuple(x)).module()(*x)):
        for y, z in zip(got, want):
            torch.testing.assert_close(y, z, rtol=1e-12, atol=1e-12)
    sum(y.square().sum() for y in compiled).backward()
    sum(y.square().sum() for y in results(f, *b)).backward()
    for one, other in zip(a, b):
        torch.testing.assert_close(one.grad, other.grad, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("op, option", TRACED)
def test_vmap(op, option):
    f, many = case(op, option, 3)
    want = [torch.stack(y) for y in zip(*(results(f, *one) for one in zip(*many)))]
    for y, z in zip(torch.func.vmap(lambda *x: tuple(results(f, *x)))(*many), want):
        torch.testing.assert_close(y, z, rtol=1e-12, atol=1e-12)
