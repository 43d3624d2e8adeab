# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""The operators of torch: values, derivatives to the fourth order, and torch's own machinery."""

import subprocess
import sys
import threading

import pytest

torch = pytest.importorskip("torch")

import weft  # noqa: E402
from weft import _torch as ops  # noqa: E402
from weft._torch_conv import conv  # noqa: E402

PROBLEM = "in1=2x0e+1o; in2=0e+1o; out=1o; mode=uvu; type=f64; weight_type=f64"
EACH = f"o3 tp; {PROBLEM}; weights=item"
SHARED = f"o3 tp; {PROBLEM}; weights=shared"
NODES, SENDERS, EDGES = 4, 5, 11
KINDS = {"each": ("", [(EDGES, 3)]), "shared": ("; weights=shared", [(3,)]),
         "hidden": ("; hidden=6", [(EDGES, 6), (6, 3)])}


def rand(*shape, seed=0, dtype=torch.float64, grad=True):
    g = torch.Generator().manual_seed(seed + 31 * sum(shape))
    return torch.randn(*shape, generator=g, dtype=dtype).requires_grad_(grad)


def product(x, y, w):
    return ops.run(EACH, [x, y, w])[0]


def edges(dtype=torch.int64):
    g = torch.Generator().manual_seed(3)
    return (torch.randint(0, NODES, (EDGES,), generator=g).to(dtype),
            torch.randint(0, SENDERS, (EDGES,), generator=g).to(dtype))


def problem(kind):
    """The operands of a convolution, it, and the same by gather, product and sum."""
    more, shapes = KINDS[kind]
    spec = f"conv; {PROBLEM}{more}"
    rows, cols = edges()
    tp = SHARED if kind == "shared" else EACH

    def plain(x, y, *w):
        z = ops.run(tp, [x[cols], y, w[0] if len(w) == 1 else w[0] @ w[1]])[0]
        return z.new_zeros(NODES, 9).index_add(0, rows, z)

    operands = [rand(SENDERS, 5), rand(EDGES, 4), *(rand(*s) for s in shapes)]
    return operands, lambda *a: conv(spec, a, rows, cols, NODES), plain


def fourth(f, operands):
    """The gradient of the squares of the gradient of the squares of ... of f."""
    g = torch.autograd.grad((f(*operands) ** 3).sum(), operands, create_graph=True)
    for last in (False, False, True):
        g = torch.autograd.grad(sum((q * q).sum() for q in g), operands, create_graph=not last)
    return g


def test_product_has_derivatives():
    operands = [rand(4, 5), rand(4, 4), rand(4, 3)]
    assert torch.autograd.gradcheck(product, operands)
    assert torch.autograd.gradgradcheck(product, operands)


@pytest.mark.parametrize("kind", KINDS)
def test_convolution_is_gather_product_and_sum_to_the_fourth_derivative(kind):
    operands, f, plain = problem(kind)
    torch.testing.assert_close(f(*operands), plain(*operands), rtol=0, atol=1e-14)
    assert torch.autograd.gradcheck(f, operands)
    assert torch.autograd.gradgradcheck(f, operands)
    for got, want in zip(fourth(f, operands), fourth(plain, operands)):
        assert (got - want).abs().max() <= 1e-13 * want.abs().max()


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_indices_are_of_either_type(dtype):
    operands, f, _ = problem("each")
    rows, cols = edges(dtype)
    z = conv(f"conv; {PROBLEM}", operands, rows, cols, NODES)
    assert torch.equal(z, f(*operands))


def test_arrays_of_any_strides():
    x, y, w = rand(4, 5), rand(4, 4), rand(4, 3)
    want = product(x, y, w)
    with torch.no_grad():
        others = [x.t().contiguous().t(), torch.cat([x, x], 1)[:, :5], x[[3, 2, 1, 0]].flip(0)]
        for other in others:
            assert torch.equal(product(other, y, w), want)
        assert torch.equal(product(x, y[:1].expand(4, 4), w), product(x, y[:1].repeat(4, 1), w))
    dz = torch.ones(1, dtype=torch.float64).expand(4, 9)  # as sum() gives it
    got = torch.autograd.grad(want, (x, y, w), dz)
    for a, b in zip(got, torch.autograd.grad(product(x, y, w), (x, y, w), dz.contiguous())):
        assert torch.equal(a, b)


def test_no_items_and_no_edges():
    x, y, w = rand(0, 5), rand(0, 4), rand(0, 3)
    z = product(x, y, w)
    assert z.shape == (0, 9)
    assert [g.shape for g in torch.autograd.grad(z.sum(), (x, y, w))] == [(0, 5), (0, 4), (0, 3)]
    none = torch.zeros(0, dtype=torch.int64)
    x = rand(SENDERS, 5)
    z = conv(f"conv; {PROBLEM}", [x, y, w], none, none, NODES)
    assert z.shape == (NODES, 9) and not z.any()
    assert not torch.autograd.grad(z.sum(), x)[0].any()


@pytest.mark.parametrize("kind", KINDS)
def test_opcheck(kind):
    operands, _, _ = problem(kind)
    rows, cols = edges()
    torch.library.opcheck(torch.ops.weft.conv.default,
                          (operands, rows, cols, NODES, f"conv; {PROBLEM}{KINDS[kind][0]}"))
    torch.library.opcheck(torch.ops.weft.run.default, ([rand(4, 5), rand(4, 4), rand(4, 3)], EACH))


def test_vmap_and_functorch():
    x, y, w = rand(4, 5, grad=False), rand(4, 4, grad=False), rand(4, 3, grad=False)
    many, weights = rand(6, 4, 5, grad=False), rand(6, 3, grad=False)
    got = torch.vmap(product, in_dims=(0, None, None))(many, y, w)
    assert torch.equal(got, torch.stack([product(a, y, w) for a in many]))
    got = torch.vmap(lambda w: ops.run(SHARED, [x, y, w])[0])(weights)
    assert torch.equal(got, torch.stack([ops.run(SHARED, [x, y, q])[0] for q in weights]))

    def energy(x):
        return (product(x, y, w) ** 3).sum()

    got = torch.func.jacrev(torch.func.jacrev(energy))(x)
    torch.testing.assert_close(got, torch.autograd.functional.hessian(energy, x))


def test_compiled_and_forces_inside_the_graph():
    from torch.fx.experimental.proxy_tensor import make_fx

    operands, f, _ = problem("each")
    want = (f(*operands) * 2).sin().sum()
    grads = torch.autograd.grad(want, operands)
    got = torch.compile(lambda *a: (f(*a) * 2).sin().sum(), fullgraph=True, backend="aot_eager")(*operands)
    torch.testing.assert_close(got, want)
    for a, b in zip(torch.autograd.grad(got, operands), grads):
        torch.testing.assert_close(a, b)

    def force(x, y, w, rows, cols):
        z = (conv(f"conv; {PROBLEM}", [x, y, w], rows, cols, NODES) ** 2).sum()
        return torch.autograd.grad(z, y, create_graph=True)[0]

    graph = make_fx(force, tracing_mode="fake")(*operands, *edges())
    for a, b in zip(torch.autograd.grad((graph(*operands, *edges()) ** 2).sum(), operands),
                    torch.autograd.grad((force(*operands, *edges()) ** 2).sum(), operands)):
        torch.testing.assert_close(a, b)


def test_export_keeps_the_operator():
    class Model(torch.nn.Module):
        def forward(self, x, y, w):
            return product(x, y, w)

    n = torch.export.Dim("n", min=2)
    args = (rand(4, 5, grad=False), rand(4, 4, grad=False), rand(4, 3, grad=False))
    program = torch.export.export(Model(), args, dynamic_shapes=[{0: n}] * 3)
    assert any("weft" in str(node.target) for node in program.graph.nodes)
    more = (rand(7, 5, grad=False), rand(7, 4, grad=False), rand(7, 3, grad=False))
    assert torch.equal(program.module()(*more), product(*more))


def test_messages_name_what_is_wrong():
    x, y, w = rand(4, 5), rand(4, 4), rand(4, 3)
    rows, cols = edges()
    with pytest.raises(RuntimeError, match="there is no form"):
        torch.ops.weft.run([x], "o3 nothing")
    for text in ("nothing", EACH + "\ngrad"):
        with pytest.raises(RuntimeError, match="not the text of a program"):
            torch.ops.weft.run_raw([x], text)
    with pytest.raises(RuntimeError, match="takes 3 arrays, not 2"):
        torch.ops.weft.run_raw([x, y], EACH)
    with pytest.raises(RuntimeError, match="of a type other than"):
        torch.ops.weft.run_raw([x.bool(), y, w], EACH)
    with pytest.raises(RuntimeError, match="dimension 0 of Wt is 3"):
        product(x.detach(), y.detach(), w[:3].detach())
    operands = [a.detach() for a in problem("each")[0]]
    spec = f"conv; {PROBLEM}"
    with pytest.raises(RuntimeError, match=r"rows\[\d+\] is \d+, but the result has 4 rows"):
        conv(spec, operands, rows + 4, cols, NODES)
    with pytest.raises(RuntimeError, match="y: expected 2 dimensions, 11 x 4 elements of 8 bytes"):
        conv(spec, [operands[0], operands[1].float(), operands[2]], rows, cols, NODES)
    with pytest.raises(RuntimeError, match="rows, cols: expected two lists"):
        conv(spec, operands, rows, cols[:3], NODES)
    with pytest.raises(RuntimeError, match="missing at the end"):
        conv(spec, operands[:2], rows, cols, NODES)
    with pytest.raises(RuntimeError, match="x: expected two dimensions"):
        conv(spec, [operands[0][0]], rows, cols, NODES)
    with pytest.raises(RuntimeError, match="more arrays than this operator takes"):
        conv(spec, operands * 5, rows, cols, NODES)


def test_more_graphs_than_are_kept():
    operands, _, _ = problem("each")
    spec = f"conv; {PROBLEM}"
    want = []
    g = torch.Generator().manual_seed(5)
    graphs = [(torch.randint(0, NODES, (EDGES,), generator=g), torch.randint(0, SENDERS, (EDGES,), generator=g))
              for _ in range(12)]
    for again in range(2):
        for k, (rows, cols) in enumerate(graphs):
            z = conv(spec, operands, rows, cols, NODES).detach()
            if again:
                assert torch.equal(z, want[k])
            else:
                want.append(z)


def test_threads_share_the_operators_and_get_the_same_bits():
    operands, f, _ = problem("each")
    want = [*torch.autograd.grad((f(*operands) ** 2).sum(), operands)]
    bad = []

    def work():
        for _ in range(20):
            got = torch.autograd.grad((f(*operands) ** 2).sum(), operands)
            if not all(torch.equal(a, b) for a, b in zip(got, want)):
                bad.append(got)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not bad
    before = torch.get_num_threads()
    try:
        for n in (1, 2, 3):
            torch.set_num_threads(n)
            assert torch.equal(f(*operands), f(*[a.clone() for a in operands]))
            work()
    finally:
        torch.set_num_threads(before)
    assert not bad


def test_a_child_of_fork_computes_too():
    code = """
import os, torch, weft
from weft import _torch as ops
text = "o3 tp; in1=2x0e+1o; in2=0e+1o; out=1o; mode=uvu; weights=item"
x, y, w = torch.ones(4, 5), torch.ones(4, 4), torch.ones(4, 3)
torch.set_num_threads(1)
want = ops.run(text, [x, y, w])[0]
pid = os.fork()
if pid == 0:
    os._exit(0 if torch.equal(ops.run(text, [x, y, w])[0], want) else 1)
assert os.waitpid(pid, 0)[1] == 0
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_weft_does_not_import_torch_by_itself():
    code = "import sys, weft; weft.TPProblem; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


@pytest.mark.parametrize("kind", list(KINDS))
def test_vmap_of_a_convolution_is_one_run(kind, monkeypatch):
    """A batch is an axis of the program: weft::conv does not run, and weft::run once for the whole batch."""
    from weft import _torch

    operands, f, _ = problem(kind)
    many = [torch.stack([x.detach(), 2 * x.detach(), x.detach() + 1]) for x in operands]
    want = torch.stack([f(*[x[k] for x in many]) for k in range(3)])
    grads = torch.stack([torch.func.grad(lambda x: f(x, *[y[k] for y in many[1:]]).square().sum())(many[0][k])
                         for k in range(3)])
    runs = []
    copies = _torch._copies
    monkeypatch.setattr(_torch, "_copies", lambda call, g, *rest: runs.append(g.text) or copies(call, g, *rest))
    got = torch.func.vmap(f)(*many)
    torch.testing.assert_close(got, want)
    assert len(runs) == 1
    first = torch.func.vmap(lambda x: f(x, *[y[0] for y in many[1:]]))(many[0])
    torch.testing.assert_close(first[0], want[0])
    g = torch.func.vmap(lambda x, *rest: torch.func.grad(lambda x: f(x, *rest).square().sum())(x))(*many)
    torch.testing.assert_close(g, grads)
    assert len(runs) == 4 and "grad" not in runs[0]
    torch._dynamo.reset()
    compiled = torch.compile(torch.func.vmap(f), fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(*many), want)
