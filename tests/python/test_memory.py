# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""Memory of a process that makes many shapes and graphs and drops them again."""

import gc
import os

import numpy as np
import pytest

import weft

torch = pytest.importorskip("torch")

LONG = bool(os.environ.get("WEFT_TEST_LONG"))
SHAPES = 50 if LONG else 6  # of products, and of convolutions
GRAPHS = 50000 if LONG else 5000
MB = 1 << 20


def resident() -> int:
    """Bytes of the process that are in memory."""
    gc.collect()
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def irreps(k: int) -> str:
    return f"{2 + k % 25}x0e+{1 + k // 25}x1o"


def second(z, operands):
    """A scalar of the second derivatives, whose gradient is asked for."""
    first = torch.autograd.grad((z * z).sum(), operands, create_graph=True)
    sum((g * g).sum() for g in first).backward()


def product(k: int) -> None:
    p = weft.TPProblem(irreps(k), "0e+1o", irreps(k), [(0, 0, 0, "uvu", True), (1, 0, 1, "uvu", True)],
                       shared_weights=False)
    tp = weft.TensorProduct(p)
    operands = [torch.ones(3, d, requires_grad=True)
                for d in (p.irreps_in1.dim, p.irreps_in2.dim, p.weight_numel)]
    second(tp(*operands), operands)


def convolution(k: int) -> None:
    p = weft.TPProblem(irreps(k), "0e+1o", irreps(k), [(0, 0, 0, "uvu", True), (1, 0, 1, "uvu", True)],
                       shared_weights=False)
    conv = weft.TensorProductConv(p)
    operands = [torch.ones(n, d, requires_grad=True)
                for n, d in ((4, p.irreps_in1.dim), (3, p.irreps_in2.dim), (3, p.weight_numel))]
    rows, cols = torch.tensor([0, 1, 1]), torch.tensor([1, 0, 2])
    second(conv(*operands, rows, cols), operands)


@pytest.mark.parametrize("use", [product, convolution])
def test_shapes_that_are_dropped_are_freed(use):
    for k in range(2):
        use(k)
    before = resident()
    for k in range(2, 2 + SHAPES):
        use(k)
    assert resident() - before < 1.5 * MB * SHAPES + 30 * MB  # the allocator keeps some pages


def test_kernels_of_a_module_go_with_it():
    from weft import _uses

    before = dict(_uses._users)
    p = weft.TPProblem("7x0e", "0e", "7x0e", [(0, 0, 0, "uvu", True)], shared_weights=False)
    one, two = weft.TensorProduct(p), weft.TensorProduct(p)
    x, y, w = torch.ones(2, 7), torch.ones(2, 1), torch.ones(2, p.weight_numel)
    want = one(x, y, w)
    assert _uses._users[one._spec] == 2
    del one
    gc.collect()
    assert torch.equal(two(x, y, w), want)
    spec = two._spec
    del two
    gc.collect()
    assert _uses._users == before
    assert torch.equal(torch.ops.weft.run([x, y, w], "o3 " + spec)[0], want)  # made again


def test_new_graphs_leave_nothing_behind():
    conv = weft.Convolution("4x0e+4x1o", "0e+1o", "0e+1o", mode="uvu")
    rng = np.random.default_rng(1)
    x = np.ones((12, conv.irreps_in1.dim), np.float32)
    y = np.ones((30, conv.irreps_in2.dim), np.float32)
    w = np.ones((30, conv.weight_numel), np.float32)

    def run():
        edges = weft.Edges(rng.integers(0, 12, 30), rng.integers(0, 12, 30), nodes=12)
        z = conv(edges, x, y, w)
        conv.backward(edges, z, x, y, w)

    for _ in range(4000):  # until there is code for these sizes, which is made once
        run()
    before = resident()
    for _ in range(GRAPHS):
        run()
    assert resident() - before < MB / 2


def test_new_graphs_leave_nothing_behind_in_torch():
    p = weft.TPProblem("4x0e+4x1o", "0e+1o", "4x0e+4x1o",
                       [(0, 0, 0, "uvu", True), (1, 0, 1, "uvu", True)], shared_weights=False)
    conv = weft.TensorProductConv(p)
    operands = [torch.ones(n, d, requires_grad=True)
                for n, d in ((12, p.irreps_in1.dim), (30, p.irreps_in2.dim), (30, p.weight_numel))]
    dz = torch.ones(12, p.irreps_out.dim)
    seed = torch.Generator().manual_seed(1)

    def run():
        rows, cols = torch.randint(12, (2, 30), generator=seed)
        torch.autograd.grad(conv(*operands, rows, cols), operands, dz)

    for _ in range(4000):
        run()
    before = resident()
    for _ in range(GRAPHS):
        run()
    assert resident() - before < MB / 2
