# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""weft.torch.operator: any program as an operator of torch."""

import copy
import pickle

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import weft  # noqa: E402
import weft.torch  # noqa: E402
from weft._torch import _native  # noqa: E402

NODES, EDGES = 6, 20
EDGE_INDEX = torch.randint(0, NODES, (2, EDGES), generator=torch.Generator().manual_seed(1))

ATTENTION = """
program attention(n, heads, f)
axis I = n, E(I) = seg : j < n
axis H = heads, K = f
f64 L[n, H], R[n, H], X[n, H, K], O[n, H, K]
temp f64 M[n, H], T[E, H], Z[n, H]
m: M[i, h] max= L[i, h] + R[j(e), h]
t: T[e, h] = exp(L[i, h] + R[j(e), h] - stop(M[i, h]))
z: Z[i, h] += T[e, h]
o: O[i, h, k] += T[e, h] / Z[i, h] * X[j(e), h, k]
"""

SEVERAL = """
program several(n, f, types)
axis I = n, E(I) = seg : j < n, K = f
i64 kind[I]; f64 X[n, K], W[types, K], S[n, K], Y[n, K] fill 0; i64 at_Y[n, K]
s: S[i, k] += X[j(e), k] * W[kind[i], k]
y: Y[i, k] max= X[j(e), k] at at_Y[i, k] = pos(e)
"""


def rand(*shape, dtype=torch.float64):
    g = torch.Generator().manual_seed(7 + sum(shape))
    return torch.randn(*shape, generator=g, dtype=dtype).requires_grad_(dtype == torch.float64)


def dense(values=None):
    values = torch.ones(EDGES, dtype=torch.float64) if values is None else values.detach()
    return torch.zeros(NODES, NODES, dtype=torch.float64).index_put(
        (EDGE_INDEX[1], EDGE_INDEX[0]), values, accumulate=True)


def csr():
    sparse = dense().to_sparse_csr()
    return sparse.crow_indices(), sparse.col_indices()


@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
def test_every_kind_of_sparse_operand(form):
    sp = pytest.importorskip("scipy.sparse")
    spmm, D, x = weft.torch.operator(f"spmm:f64:{form}"), dense(), rand(NODES, 4)
    S = D.numpy()
    for A in (EDGE_INDEX, EDGE_INDEX.int(), weft.Graph(EDGE_INDEX, NODES), D.to_sparse_csr(), D.to_sparse_csc(),
              D.to_sparse_coo(), sp.csr_array(S), sp.csc_array(S), sp.coo_array(S), sp.lil_array(S)):
        torch.testing.assert_close(spmm(A=A, B=x), D @ x)


def test_structure_arrays_and_blocks():
    start, col = csr()
    values = dense().to_sparse_csr().values()
    spmm, x = weft.torch.operator("spmm:f64"), rand(NODES, 4)
    want = dense() @ x
    for s, c in ((start, col), (start.int(), col.int()), (start.numpy(), col.tolist())):
        torch.testing.assert_close(spmm(A=values, E_start=s, E_j=c, B=x), want)
        torch.testing.assert_close(spmm({"E.start": s, "E.j": c}, A=values, B=x), want)
    bsr = weft.torch.operator("""
program bsr(mb, nb, f)
axis I = mb, E(I) = seg : j < nb, R = 2, C = 3, K = f
f64 A[E, R, C], B[nb, C, K], Y[I, R, K]
Y[i, r, k] += A[e, r, c] * B[j(e), c, k]
""")
    D = rand(NODES, NODES).detach()
    torch.testing.assert_close(bsr(A=D.to_sparse_bsr((2, 3)), B=x.reshape(2, 3, 4)).reshape(NODES, 4), D @ x)


def test_entries_keep_the_order_of_the_list():
    graph, x, y = weft.Graph(EDGE_INDEX, NODES), rand(NODES, 4), rand(NODES, 4)
    want = (x[EDGE_INDEX[1]] * y[EDGE_INDEX[0]]).sum(1)
    for form in ("csr", "csc", "coo"):
        got = weft.torch.operator(f"sddmm:f64:{form}")(E=graph, X=x, Y=y)
        torch.testing.assert_close(got, want)
    heads, values, X = weft.torch.operator("spmm:f64:heads"), rand(EDGES, 2), rand(NODES, 2, 3)
    want = torch.zeros_like(X).index_add(0, EDGE_INDEX[1], values[:, :, None] * X[EDGE_INDEX[0]])
    torch.testing.assert_close(heads(A=weft.Graph(EDGE_INDEX, NODES, data=values), B=X), want)


def test_derivatives_of_programs():
    start, col = csr()
    spmm = weft.torch.operator("spmm:f64")

    def product(v, x):
        return spmm(A=weft.Graph(EDGE_INDEX, NODES, data=v), B=x)

    attention = weft.torch.operator(ATTENTION)

    def attend(L, R, X):
        return attention(E=(start, col, None, (NODES, NODES)), L=L, R=R, X=X)

    several, kind = weft.torch.operator(SEVERAL), torch.tensor([0, 1, 1, 0, 2, 1])

    def both(x, w):
        out = several(E_start=start, E_j=col, kind=kind, X=x, W=w)
        assert list(out) == ["S", "Y", "at_Y"] and out["at_Y"].dtype == torch.int64
        return out["S"], out["Y"]

    for f, operands in ((product, (rand(EDGES), rand(NODES, 2))),
                        (attend, (rand(NODES, 2), rand(NODES, 2), rand(NODES, 2, 3))),
                        (both, (rand(NODES, 2), rand(3, 2)))):
        assert torch.autograd.gradcheck(f, operands, check_forward_ad=True)
        assert torch.autograd.gradgradcheck(f, operands, check_fwd_over_rev=True)


def test_third_derivatives():
    spmm = weft.torch.operator("spmm:f64")

    def f(v, x):
        return spmm(A=weft.Graph(EDGE_INDEX, NODES, data=v), B=x).pow(3).sum()

    v, x = rand(EDGES), rand(NODES, 2)

    def g(v, x):
        a, b = torch.autograd.grad(f(v, x), (v, x), create_graph=True)
        return a.pow(2).sum() + b.pow(3).sum()

    assert torch.autograd.gradgradcheck(g, (v, x))


def test_sizes_that_no_shape_tells():
    coo = weft.torch.operator("spmm:f64:coo")
    values, x = rand(EDGES), rand(NODES, 2)
    rows, cols = EDGE_INDEX[1], EDGE_INDEX[0]
    with pytest.raises(weft.ArgumentError, match="the size m is not known: give m="):
        coo(A=values, E_i=rows, E_j=cols, B=x)
    assert coo(A=values, E_i=rows, E_j=cols, B=x, m=9).shape == (9, 2)
    assert coo(A=values, E_i=rows, E_j=cols, B=x, m=7).shape == (7, 2)
    assert torch.autograd.gradcheck(lambda v, x: coo(A=v, E_i=rows, E_j=cols, B=x, m=9), (values, x))


def test_axes_that_a_program_builds():
    program = """
program unite(m, n)
axis I = m, E(I) = seg : j < n unique, F(I) = seg : j < n unique, U(I) = built : j < n
f64 A[E], B[F], C[I, U]
u: U(i) |= j(e)
v: U(i) |= j(f)
c: C[i, j(e)] += A[e]
d: C[i, j(f)] += B[f]
"""
    add = weft.torch.operator(program)
    start, col = csr()
    n = len(col)
    other = torch.arange(NODES + 1), torch.arange(NODES)

    def f(a, b):
        out = add(E_start=start, E_j=col, F_start=other[0], F_j=other[1], A=a, B=b, n=NODES)
        return out["C"]

    a, b = rand(n), rand(NODES)
    out = add(E_start=start, E_j=col, F_start=other[0], F_j=other[1], A=a, B=b, n=NODES)
    got = torch.sparse_csr_tensor(out["U.start"], out["U.j"], out["C"].detach(), (NODES, NODES)).to_dense()
    want = torch.sparse_csr_tensor(start, col, a.detach(), (NODES, NODES)).to_dense() + torch.diag(b.detach())
    torch.testing.assert_close(got, want)
    assert torch.autograd.gradcheck(f, (a, b))


def test_copies_and_pickles():
    op, graph, x = weft.torch.operator(weft.Program.op("spmm:f64")), weft.Graph(EDGE_INDEX, NODES), rand(NODES, 2)
    want = op(A=graph, B=x)
    for other in (copy.deepcopy(op), pickle.loads(pickle.dumps(op)), weft.torch.operator(op.program.text)):
        assert torch.equal(other(A=graph, B=x), want)
    assert repr(op) == "<weft.torch.Operator E.start, E.j, A, B -> C>"


def test_autocast_converts_to_the_type_of_the_program():
    op, x, v = weft.torch.operator("spmm"), rand(NODES, 2), rand(EDGES)
    graph = weft.Graph(EDGE_INDEX, NODES, data=v)
    got = op(A=graph, B=x.bfloat16())
    assert got.dtype == torch.float32
    grads = torch.autograd.grad(got.sum(), (x, v))
    assert [g.dtype for g in grads] == [torch.float64] * 2
    with torch.autocast("cpu", torch.bfloat16):
        w = torch.nn.Linear(2, 2).double()
        assert op(A=graph, B=w(x)).dtype == torch.float32
    with pytest.raises(weft.ArgumentError, match="B: expected elements of torch.float32, got .*int64"):
        op(A=graph, B=torch.ones(NODES, 2, dtype=torch.int64))


def test_compile_export_and_transforms(tmp_path):
    op, x = weft.torch.operator("spmm:f64"), rand(NODES, 2)
    D = dense()

    class Layer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.op = op

        def forward(self, edge_index, x):
            return self.op(A=edge_index, B=x).sin()

    layer = Layer()
    want = (D @ x).sin()
    compiled = torch.compile(layer, fullgraph=True)
    torch.testing.assert_close(compiled(EDGE_INDEX, x), want)
    torch.testing.assert_close(torch.autograd.grad(compiled(EDGE_INDEX, x).sum(), x),
                               torch.autograd.grad(want.sum(), x))
    graph = weft.Graph(EDGE_INDEX, NODES)
    fixed = torch.compile(lambda x: op(A=graph, B=x).sin(), fullgraph=True)
    torch.testing.assert_close(fixed(x), want)
    dims = ({1: torch.export.Dim("e")}, {0: torch.export.Dim("n")})
    exported = torch.export.export(layer, (EDGE_INDEX, x.detach()), dynamic_shapes=dims)
    torch.export.save(exported, tmp_path / "layer.pt2")
    again = torch.export.load(tmp_path / "layer.pt2").module()
    torch.testing.assert_close(again(EDGE_INDEX, x), want)
    assert again(EDGE_INDEX[:, :7], rand(9, 2)).shape == (9, 2)
    f = lambda x: op(A=EDGE_INDEX, B=x)  # noqa: E731
    torch.testing.assert_close(torch.func.jvp(f, (x,), (x,))[1], D @ x)
    torch.testing.assert_close(torch.func.vmap(f)(torch.stack([x, 2 * x])), torch.stack([D @ x, 2 * D @ x]))
    torch.testing.assert_close(torch.func.grad(lambda x: f(x).sum())(x), D.t() @ torch.ones_like(x))
    assert torch.func.jacrev(f)(x).shape == (NODES, 2, NODES, 2)
    torch.library.opcheck(torch.ops.weft.run.default,
                          ([*csr(), rand(len(csr()[1])), x], "op spmm:f64", [NODES, -1, -1, -1]))


def plans():
    _native.weft_torch_plans.restype = __import__("ctypes").c_uint64
    return _native.weft_torch_plans()


def test_plans_are_kept_for_alternating_graphs():
    op, x = weft.torch.operator("spmm:f64"), rand(NODES, 2).detach()
    graphs = [EDGE_INDEX.roll(k, 1)[:, :EDGES - k % 2].clone() for k in range(8)]
    parts = [weft.Graph(g, NODES) for g in graphs]
    want = [op(A=g, B=x) for g in parts]
    wide = [op(A=g, B=torch.cat([x, x], 1)) for g in parts]
    before = plans()
    for _ in range(3):
        for g, w, u in zip(parts, want, wide):
            assert torch.equal(op(A=g, B=x), w)
            assert torch.equal(op(A=g, B=torch.cat([x, x], 1)), u)
    assert plans() == before
    assert torch.equal(op(A=weft.Graph(graphs[3], NODES), B=x), want[3])  # the same in another place
    assert plans() == before


def looks():
    _native.weft_torch_looks.restype = __import__("ctypes").c_uint64
    return _native.weft_torch_looks()


def large(n=2000, edges=20000, seed=3):
    g = torch.Generator().manual_seed(seed)
    return torch.randint(0, n, (2, edges), generator=g), torch.randn(n, 4, generator=g, dtype=torch.float64)


def large_calls():
    """Of each operator of libweft_torch: a function of the structure, and the same by torch."""
    coo = weft.torch.operator("spmm:f64:coo")
    conv = weft.TensorProductConv(weft.TPProblem("4x0e", "0e", "4x0e", [(0, 0, 0, "uvu", True)], shared_weights=False,
                                                 irrep_dtype=torch.float64, weight_dtype=torch.float64))

    def one(index, x):
        ones = torch.ones(index.shape[1], dtype=x.dtype)
        return coo(E_i=index[1], E_j=index[0], A=ones, B=x, m=x.shape[0])

    def two(index, x):
        ones = torch.ones(index.shape[1], 1, dtype=x.dtype)
        return conv(x, ones, ones.expand(-1, 4).contiguous(), index[1], index[0])

    return {"run": one, "conv": two}


@pytest.mark.parametrize("name", ["run", "conv"])
def test_large_structure_is_known_by_its_tensors(name):
    """The same tensors, or new views of them, are not read again; what torch counts as a change is seen, and so
    is another tensor at an address that was freed."""
    f = large_calls()[name]

    def check(index, x, times):
        before, want = looks(), torch.zeros_like(x).index_add(0, index[1], x[index[0]])
        torch.testing.assert_close(f(index, x), want)
        assert looks() - before == times

    index, x = large()
    check(index, x, 1)
    for _ in range(3):
        check(index, x, 0)
        check(index.view(-1).view(2, -1), x + 1, 0)
    check(index.clone(), x, 1)
    check(index, x, 1)  # the clone is held now
    index[0, 7] += 1 if index[0, 7] == 0 else -1
    check(index, x, 1)
    index.copy_(large(seed=5)[0])
    check(index, x, 1)
    check(index.int(), x, 1)
    for seed in range(4):  # each where the last one was
        index = large(seed=seed)[0]
        check(index, x, 1)
        del index
    index = large(seed=9)[0].t().contiguous().t()  # with gaps
    for _ in range(2):
        check(index, x, 1)
    whole = torch.stack([large(seed=k)[0] for k in range(10)])  # too much to keep alive for one of them
    for _ in range(2):
        check(whole[3], x, 1)


@pytest.mark.parametrize("name", ["run", "conv"])
def test_large_structure_in_inference_mode(name):
    f, x = large_calls()[name], large()[1]
    with torch.inference_mode():
        index = large()[0]
        for seed in (3, 4):
            index.copy_(large(seed=seed)[0])
            torch.testing.assert_close(f(index, x), torch.zeros_like(x).index_add(0, index[1], x[index[0]]))


def test_expanded_structure_is_read_by_its_strides():
    coo = weft.torch.operator("spmm:f64:coo")
    row, col = torch.tensor([2]).expand(9000), torch.tensor([1]).expand(9000)
    x = rand(NODES, 2).detach()
    got = coo(E_i=row, E_j=col, A=torch.ones(9000, dtype=torch.float64), B=x, m=NODES)
    torch.testing.assert_close(got[2], 9000 * x[1])


def test_structure_changed_in_place_is_seen():
    op, x = weft.torch.operator("spmm:f64"), rand(NODES, 2)
    start, col = (t.clone() for t in csr())
    values = rand(len(col))
    op(E_start=start, E_j=col, A=values, B=x)
    col[0] = (col[0] + 1) % NODES
    D = torch.sparse_csr_tensor(start, col, values.detach(), (NODES, NODES)).to_dense()
    y = op(E_start=start, E_j=col, A=values, B=x)
    torch.testing.assert_close(y, D @ x)
    col.numpy()[0] = (int(col[0]) + 1) % NODES  # behind torch's back, which hides nothing of such a size
    D = torch.sparse_csr_tensor(start, col, values.detach(), (NODES, NODES)).to_dense()
    torch.testing.assert_close(op(E_start=start, E_j=col, A=values, B=x), D @ x)
    col[0] = 0
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_a_wrong_argument_is_named():
    op, x = weft.torch.operator("spmm:f64"), rand(NODES, 2)
    graph = weft.Graph(EDGE_INDEX, NODES)
    for more, message in (({}, "B is not given"), ({"B": x, "D": x}, "D: the program has no argument of this name"),
                          ({"B": x[0]}, r"B: expected 2 dimensions \(n, f\)"), ({"B": x, "C": x}, "C is an output"),
                          ({"B": x.to_sparse()}, "B: expected a dense tensor")):
        with pytest.raises(weft.ArgumentError, match=message):
            op(A=graph, **more)
    with pytest.raises(RuntimeError, match="n = 6"):
        op(A=graph, B=rand(NODES + 1, 2))
    with pytest.raises(RuntimeError, match="E.j"):
        op(A=torch.tensor([[0, NODES], [0, 0]]), B=x)
    inout = "program p(n)\naxis I = n\ninout f64 X[I]\nX[i] += 1\n"
    with pytest.raises(weft.ArgumentError, match="program: X is inout"):
        weft.torch.operator(inout)
    with pytest.raises(RuntimeError, match="inout"):
        torch.ops.weft.run([x[0]], inout)
    for bad in (3, None):
        with pytest.raises(weft.ArgumentError, match="program: expected text"):
            weft.torch.operator(bad)
    with pytest.raises(weft.ParseError):
        weft.torch.operator("program p(")


@pytest.mark.parametrize("threads", [1, 2])
def test_the_number_of_threads_is_torchs(threads):
    op = weft.torch.operator("spmm")
    g = torch.Generator().manual_seed(3)
    graph = weft.Graph(torch.randint(0, 500, (2, 20000), generator=g), 500)
    x = torch.randn(500, 32, generator=g)
    want = op(A=graph, B=x)
    had = torch.get_num_threads()
    try:
        torch.set_num_threads(threads)
        assert torch.equal(op(A=graph, B=x), want)
    finally:
        torch.set_num_threads(had)


def test_a_hundred_results_keep_their_bits():
    op, graph = weft.torch.operator("spmm"), weft.Graph(EDGE_INDEX, NODES)
    inputs = [torch.randn(NODES, 64, generator=torch.Generator().manual_seed(k)) for k in range(100)]
    results = [op(A=graph, B=x) for x in inputs]
    copies = [z.clone() for z in results]
    del results[::3]
    for x in inputs:
        op(A=graph, B=x)
    kept = [c for k, c in enumerate(copies) if k % 3]
    assert all(torch.equal(a, b) for a, b in zip(results, kept))
    assert np.all([torch.equal(op(A=graph, B=x), c) for x, c in zip(inputs, copies)])


def test_vmap_adds_an_axis_to_the_program(monkeypatch):
    """One run for a batch, whatever operands have it; results that do not depend on it are the same for all."""
    from weft import _torch

    op = weft.torch.operator("program p(m, n, f)\naxis I = m, E(I) = seg : j < n, K = f\n"
                             "f64 A[E], B[n, K], D[I, K], C[I, K], S[I, K]\n"
                             "c: C[i, k] += A[e] * B[j(e), k]\ns: S[i, k] = 2 * D[i, k]\n")
    start, col = torch.tensor([0, 2, 2, 5]), torch.tensor([0, 3, 1, 1, 2])
    a, b, d = (torch.randn(*s, dtype=torch.float64) for s in ((6, 5), (4, 6, 3), (3, 3)))
    texts = []
    run = _torch._run.__globals__["_copies"]
    monkeypatch.setitem(_torch._batch.__globals__, "_copies",
                        lambda call, f, *rest: texts.append(f.text) or run(call, f, *rest))

    def call(a, b):
        return op(A=a, B=b, D=d, E_start=start, E_j=col, m=3, n=4)

    for dims, each in [((0, 1), lambda k: (a[k], b[:, k])), ((0, None), lambda k: (a[k], b[:, 0])),
                       ((None, 1), lambda k: (a[0], b[:, k]))]:
        given = [x if d is not None else (a[0], b[:, 0])[i] for i, (x, d) in enumerate(zip((a, b), dims))]
        got = torch.func.vmap(call, in_dims=dims)(*given)
        want = [call(*each(k)) for k in range(6)]
        for name in ("C", "S"):
            assert torch.equal(got[name], torch.stack([w[name] for w in want])), (dims, name)
    assert len(texts) == 3
    rows = torch.func.vmap(torch.func.grad(lambda a, b: call(a, b)["C"].square().sum()), (0, 1))(a, b)
    want = [torch.func.grad(lambda a: call(a, b[:, k])["C"].square().sum())(a[k]) for k in range(6)]
    assert (rows - torch.stack(want)).abs().max() <= 1e-13
    with pytest.raises(NotImplementedError, match="which is structure"):
        torch.func.vmap(lambda s: op(A=a[0], B=b[:, 0], D=d, E_start=s, E_j=col, m=3, n=4)["C"])(start.expand(2, 4))
