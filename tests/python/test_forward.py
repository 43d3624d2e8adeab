# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""Forward mode of every differentiable function of torch: dual tensors and torch.func.jvp, against
differences; forward over reverse and reverse over forward, against two gradients; vmap of both."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import torch.autograd.forward_ad as fwAD  # noqa: E402

import weft  # noqa: E402
import weft.o3  # noqa: E402

F64 = torch.float64
EDGES = torch.tensor([[0, 1, 2, 2, 3, 1, 0], [1, 0, 1, 3, 2, 2, 3]])  # senders, receivers
INDEX = EDGES.numpy()
GRAPH = weft.Graph(INDEX, 4)
CSR = torch.sparse_csr_tensor(torch.tensor([0, 2, 3, 5]), torch.tensor([0, 2, 1, 0, 1]),
                              torch.ones(5, dtype=F64), (3, 3))
START = np.array([0, 2, 2, 5])


def paths():
    return [(0, 0, 0, "uvu", True), (1, 1, 0, "uvu", True), (0, 1, 1, "uvu", True), (1, 0, 1, "uvu", True)]


def product(shared):
    p = weft.TPProblem("2x0e + 2x1o", "0e + 1o", "2x0e + 2x1o", paths(), shared_weights=shared,
                       irrep_dtype="f64", weight_dtype="f64")
    return p


def with_weights(module, *names):
    """A module with parameters inside, as a function of them."""
    module = module.double()
    return lambda x, *given: torch.func.functional_call(module, dict(zip(names, given)), x)


TP = weft.TensorProduct(product(False))
TPS = weft.TensorProduct(product(True))
CONV = weft.TensorProductConv(product(False))
CONVS = weft.TensorProductConv(product(True), kahan=True)
O3 = weft.o3.TensorProduct("2x0e + 2x1o", "0e + 1o", "2x0e + 2x1o", paths()).double()
FULL = weft.o3.FullyConnectedTensorProduct("2x0e + 1o", "0e + 1o", "0e + 1o").double()
LINEAR = weft.o3.Linear("2x0e + 2x1o", "3x0e + 1o", biases=True).double()

# The function, and the shapes of its operands; the last ones are weights.
CASES = {
    "spmm": (lambda v, b: weft.spmm(weft.Graph(INDEX, 4, v), b), [(7,), (4, 3)]),
    "spmm-graph": (lambda b: weft.spmm(GRAPH, b), [(4, 3)]),
    "spmm-edge_index": (lambda b: weft.spmm(EDGES, b), [(4, 3)]),
    "spmm-transposed": (lambda b: weft.spmm(CSR, b, transpose=True), [(3, 2)]),
    "spmm-heads": (lambda v, b: weft.spmm(weft.Graph(INDEX, 4, v), b), [(7, 2), (4, 2, 3)]),
    "spmm-batch": (lambda v, b: weft.spmm(weft.Graph(INDEX, 4, v), b, batch=True), [(7,), (2, 4, 3)]),
    "spmv": (lambda v, b: weft.spmv(weft.Graph(INDEX, 4, v), b), [(7,), (4,)]),
    "sddmm": (lambda x, y: weft.sddmm(GRAPH, x, y), [(4, 3), (4, 3)]),
    "sddmm-values": (lambda x, y, v: weft.sddmm(weft.Graph(INDEX, 4, v), x, y, values=True),
                     [(4, 3), (4, 3), (7,)]),
    "softmax": (lambda s: weft.softmax(GRAPH, s), [(7, 2)]),
    "softmax-starts": (lambda s: weft.softmax(START, s), [(5,)]),
    "segment-sum": (lambda x: weft.segment_reduce(GRAPH, x), [(7, 2)]),
    "segment-mean": (lambda x: weft.segment_reduce(GRAPH, x, "mean", nodes=True), [(4, 2)]),
    "segment-max": (lambda x: weft.segment_reduce(GRAPH, x, "max"), [(7, 2)]),
    "segment-min": (lambda x: weft.segment_reduce(GRAPH, x, "min", nodes=True), [(4, 2)]),
    "TensorProduct": (TP, [(3, 8), (3, 4), (3, TP.weight_numel)]),
    "TensorProduct-shared": (TPS, [(3, 8), (3, 4), (TPS.weight_numel,)]),
    "TensorProductConv": (lambda x, y, w: CONV(x, y, w, *EDGES.flip(0)),
                          [(4, 8), (7, 4), (7, CONV.weight_numel)]),
    "TensorProductConv-shared": (lambda x, y, w: CONVS(x, y, w, *EDGES.flip(0)),
                                 [(4, 8), (7, 4), (CONVS.weight_numel,)]),
    "o3.TensorProduct": (lambda x, y, w: O3(x, y, w), [(2, 3, 8), (2, 3, 4), (O3.weight_numel,)]),
    "o3.FullyConnected": (lambda x, y, w: FULL(x, y, w), [(3, 5), (3, 4), (FULL.weight_numel,)]),
    "o3.Linear": (lambda x, w, b: LINEAR(x, w, b), [(3, 8), (LINEAR.weight_numel,), (LINEAR.bias_numel,)]),
    "spherical_harmonics": (lambda x: weft.o3.spherical_harmonics([0, 1, 2, 3], x, True), [(5, 3)]),
}


def operands(name):
    f, shapes = CASES[name]
    g = torch.Generator().manual_seed(3)
    x = [torch.randn(s, generator=g, dtype=F64) for s in shapes]
    t = [torch.randn(s, generator=g, dtype=F64) for s in shapes]
    return f, x, t


def difference(f, x, t, h=1e-5):
    """(f(x + h t) - f(x - h t)) / 2 h, extrapolated to h = 0."""
    def at(h):
        return (f(*[a + h * b for a, b in zip(x, t)]) - f(*[a - h * b for a, b in zip(x, t)])) / (2 * h)
    with torch.no_grad():
        return (4 * at(h / 2) - at(h)) / 3


def close(a, b):
    torch.testing.assert_close(a, b, rtol=1e-7, atol=1e-8)


def sets(n):
    """Which operands have tangents: all, and each alone."""
    return [[True] * n, *([k == i for k in range(n)] for i in range(n) if n > 1)]


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("grads", ["none", "frozen", "all"])
def test_dual_tensors(name, grads):
    """grads: which operands require gradients beside; frozen: all but the last, the weights."""
    f, x, t = operands(name)
    n = len(x)
    for there in sets(n):
        want = difference(f, x, [b if k else torch.zeros_like(b) for b, k in zip(t, there)])
        leaves = [a.clone().requires_grad_(grads == "all" or (grads == "frozen" and i < n - 1))
                  for i, a in enumerate(x)]
        with fwAD.dual_level():
            z = f(*[fwAD.make_dual(a, b) if k else a for a, b, k in zip(leaves, t, there)])
            primal, tangent = fwAD.unpack_dual(z)
        assert tangent is not None, there
        close(primal.detach(), f(*x))
        close(tangent.detach(), want)
        if grads == "all":  # the primal keeps its gradient
            g, = torch.autograd.grad(primal.sum(), leaves[:1], retain_graph=True)
            h, = torch.autograd.grad(f(*leaves).sum(), leaves[:1])
            close(g, h)


@pytest.mark.parametrize("name", CASES)
def test_functional_jvp(name):
    f, x, t = operands(name)
    z, tangent = torch.func.jvp(f, tuple(x), tuple(t))
    close(z, f(*x))
    close(tangent, difference(f, x, t))


def energy(f):
    return lambda *x: (f(*x) ** 2).sum() / 2


def hessian_vector(f, x, t):
    """By two gradients."""
    leaves = [a.clone().requires_grad_() for a in x]
    first = torch.autograd.grad(energy(f)(*leaves), leaves, create_graph=True)
    dot = sum((g * b).sum() for g, b in zip(first, t))
    second = torch.autograd.grad(dot, leaves, allow_unused=True)
    return [torch.zeros_like(a) if g is None else g for a, g in zip(x, second)]


@pytest.mark.parametrize("name", CASES)
def test_forward_over_reverse(name):
    f, x, t = operands(name)
    want = hessian_vector(f, x, t)
    gradient = torch.func.grad(energy(f), argnums=tuple(range(len(x))))
    _, got = torch.func.jvp(gradient, tuple(x), tuple(t))
    for a, b in zip(got, want):
        close(a, b)
    leaves = [a.clone().requires_grad_() for a in x]
    with fwAD.dual_level():  # dual tensors through backward
        duals = [fwAD.make_dual(a, b) for a, b in zip(leaves, t)]
        first = torch.autograd.grad(energy(f)(*duals), leaves, create_graph=True)
        got = [fwAD.unpack_dual(g).tangent for g in first]
    for a, b in zip(got, want):
        close(a.detach(), b)


@pytest.mark.parametrize("name", CASES)
def test_reverse_over_forward(name):
    f, x, t = operands(name)
    want = hessian_vector(f, x, t)
    got = torch.func.grad(lambda *x: torch.func.jvp(energy(f), x, tuple(t))[1],
                          argnums=tuple(range(len(x))))(*x)
    for a, b in zip(got, want):
        close(a, b)


@pytest.mark.parametrize("name", ["spmm", "softmax", "segment-max", "TensorProduct", "TensorProductConv",
                                  "o3.Linear", "spherical_harmonics"])
def test_vmap_of_tangents(name):
    f, x, t = operands(name)
    many = tuple(torch.stack([b, -2 * b]) for b in t)
    got = torch.vmap(lambda *t: torch.func.jvp(f, tuple(x), t)[1])(*many)
    one = torch.func.jvp(f, tuple(x), tuple(t))[1]
    close(got, torch.stack([one, -2 * one]))
    inner = torch.func.jvp(torch.vmap(f), tuple(torch.stack([a, a]) for a in x), many)[1]
    close(inner, got)


@pytest.mark.parametrize("name", ["softmax", "TensorProductConv", "spherical_harmonics", "TensorProduct"])
def test_hessian_and_forward_twice(name):
    f, x, t = operands(name)
    g = lambda a: energy(f)(a, *x[1:])  # noqa: E731
    close(torch.func.hessian(g)(x[0]), torch.func.jacrev(torch.func.jacrev(g))(x[0]))
    line = lambda s: energy(f)(*[a + s * b for a, b in zip(x, t)])  # noqa: E731
    s, one = torch.zeros((), dtype=F64), torch.ones((), dtype=F64)
    twice = torch.func.jvp(lambda s: torch.func.jvp(line, (s,), (one,))[1], (s,), (one,))[1]
    close(twice, torch.func.grad(torch.func.grad(line))(s))


def test_operators_called_by_name():
    x, t = torch.randn(4, 3, dtype=F64), torch.randn(4, 3, dtype=F64)
    text = "o3 sh; lmax=2; type=f64"
    f = lambda x: torch.ops.weft.run([x], text)[0]  # noqa: E731
    want = difference(f, [x], [t])
    with fwAD.dual_level():
        close(fwAD.unpack_dual(f(fwAD.make_dual(x, t))).tangent, want)
    with pytest.raises(NotImplementedError, match="torch.func"):  # not dropped
        torch.func.jvp(f, (x,), (t,))


def test_compiled():
    x, t = torch.randn(4, 3, dtype=F64), torch.randn(4, 3, dtype=F64)
    f = lambda x: weft.o3.spherical_harmonics([1, 2], x, False)  # noqa: E731
    jvp = torch.compile(lambda x, t: torch.func.jvp(f, (x,), (t,))[1], backend="aot_eager")
    close(jvp(x, t), difference(f, [x], [t]))


def test_out_is_refused_with_tangents():
    b, out = torch.randn(4, 3, dtype=F64), torch.empty(4, 3, dtype=F64)
    with fwAD.dual_level(), pytest.raises(weft.ArgumentError, match="out"):
        weft.spmm(GRAPH, fwAD.make_dual(b, b), out)
