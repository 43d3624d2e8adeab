# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""Memory of results: it is reused, but only after the last one who sees a result is gone."""

import gc
import os
import resource
import subprocess
import sys
import threading

import numpy as np
import pytest

import weft
from weft import _array

torch = pytest.importorskip("torch")

MB = 1 << 20
ROWS = 4096  # results of half a megabyte


@pytest.fixture
def product():
    p = weft.TPProblem("8x0e+8x1o", "0e+1o", "8x0e+8x1o", [(0, 0, 0, "uvu", True), (1, 0, 1, "uvu", True)],
                       shared_weights=False)
    module = weft.TensorProduct(p)

    def call(k, rows=ROWS):
        g = torch.Generator().manual_seed(k)
        shapes = p.irreps_in1.dim, p.irreps_in2.dim, p.weight_numel
        return module(*[torch.randn(rows, d, generator=g) for d in shapes])

    return call


@pytest.fixture
def pool():
    """Bytes of free blocks; those that other tests have left are freed first."""
    from weft._torch import _native

    gc.collect()
    _native.weft_torch_pool(0)
    if b"torch_from_blob" not in b"".join(_symbols()):
        pytest.skip("torch 2.10 has no tensors with a deleter")
    return lambda most=-1: _native.weft_torch_pool(most)


def _symbols():
    import ctypes

    handle = ctypes.CDLL("libtorch_cpu.so")
    return [b"torch_from_blob"] if hasattr(handle, "torch_from_blob") else []


def test_a_hundred_results_keep_their_bits(product):
    kept = [product(k) for k in range(100)]
    copies = [product(k).clone() for k in range(100)]
    assert len({z.data_ptr() for z in kept}) == 100
    for k, (z, copy) in enumerate(zip(kept, copies)):
        assert torch.equal(z, copy), k


def test_the_memory_of_a_result_that_is_gone_is_reused(product, pool):
    z = product(0)
    at = z.data_ptr()
    assert pool() == 0
    del z
    assert pool() >= ROWS * 32 * 4
    assert product(1).data_ptr() == at


def test_results_of_about_the_same_size_share_memory(product, pool):
    at = {product(k, ROWS - k).data_ptr() for k in range(20)}
    assert len(at) == 1


def test_calls_take_no_page_faults(product, pool):
    def faults():
        return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

    operands = [torch.randn(ROWS * 16, d) for d in (32, 4, 16)]
    module = weft.TensorProduct(weft.TPProblem(
        "8x0e+8x1o", "0e+1o", "8x0e+8x1o", [(0, 0, 0, "uvu", True), (1, 0, 1, "uvu", True)],
        shared_weights=False))
    for _ in range(3):
        module(*operands)
    before = faults()
    for _ in range(10):
        module(*operands)
    assert faults() - before < 200  # of 10 x 2048 pages


@pytest.mark.parametrize("view", [lambda z: z[5:7], lambda z: z.t(), lambda z: z.numpy()[3],
                                  lambda z: z.detach(), lambda z: torch.from_dlpack(z),
                                  lambda z: z.untyped_storage(), lambda z: memoryview(z.numpy())])
def test_a_view_keeps_the_memory(product, pool, view):
    z = product(0)
    at, seen = z.data_ptr(), view(z)
    before = bytes(np.asarray(seen)) if not isinstance(seen, torch.UntypedStorage) else bytes(seen)
    del z
    others = [product(k) for k in range(1, 4)]
    assert at not in [o.data_ptr() for o in others]
    assert bytes(np.asarray(seen) if not isinstance(seen, torch.UntypedStorage) else seen) == before
    del seen
    gc.collect()
    assert product(4).data_ptr() == at


def test_what_autograd_keeps_is_not_reused(product, pool):
    x = torch.randn(ROWS, 32, requires_grad=True)
    y, w = torch.randn(ROWS, 4), torch.randn(ROWS, 16)
    module = weft.TensorProduct(weft.TPProblem(
        "8x0e+8x1o", "0e+1o", "8x0e+8x1o", [(0, 0, 0, "uvu", True), (1, 0, 1, "uvu", True)],
        shared_weights=False))
    square = module(x, y, w) ** 2  # torch keeps the result for its backward
    want = 2 * module(x, y, w).detach()
    for k in range(5):
        product(k)
    got, = torch.autograd.grad(square.sum(), x)
    again, = torch.autograd.grad(module(x, y, w), x, want)
    assert torch.equal(got, again)


def test_threads_have_results_of_their_own(product):
    wrong = []

    def work(first):
        for k in range(first, first + 30):
            z = product(k)
            copy = z.clone()
            kept = [product(j) for j in range(3)]
            if not torch.equal(z, copy):
                wrong.append(k)
            del kept

    threads = [threading.Thread(target=work, args=(100 * i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert wrong == []


def test_a_child_has_a_pool_of_its_own(product, pool):
    z, want = product(0), product(0).clone()
    child = os.fork()
    if child == 0:
        torch.set_num_threads(1)  # operators of torch itself would wait for threads that are not there
        for k in range(1, 4):
            product(k)
        good = torch.equal(z, want)
        del z
        os._exit(0 if good and torch.equal(product(0), want) else 1)
    for k in range(1, 4):
        product(k)
    assert os.waitpid(child, 0)[1] == 0
    assert torch.equal(z, want)


def test_what_is_free_is_given_back_on_request(product, pool):
    kept = [product(k) for k in range(8)]
    del kept
    assert pool() > 2 * MB
    assert pool(MB) <= MB
    assert pool(0) == 0


@pytest.mark.parametrize("limit, most", [("0", 0), ("1", MB), ("nonsense", None)])
def test_the_pool_has_a_limit(limit, most):
    text = """
import torch, weft
from weft._torch import _native
p = weft.TPProblem("8x0e", "0e", "8x0e", [(0, 0, 0, "uvu", True)], shared_weights=False)
kept = [weft.TensorProduct(p)(torch.ones(16384, 8), torch.ones(16384, 1), torch.ones(16384, 8))
        for _ in range(8)]
del kept
print(_native.weft_torch_pool(-1))
"""
    out = subprocess.run([sys.executable, "-c", text], env={**os.environ, "WEFT_POOL_MB": limit},
                         capture_output=True, text=True, check=True)
    free = int(out.stdout)
    assert free <= most if most is not None else free >= 8 * 16384 * 8 * 4


@pytest.mark.parametrize("make", [lambda g: torch.randn(ROWS, 40, generator=g)[:, 4:36],
                                  lambda g: torch.randn(32, generator=g).expand(ROWS, 32),
                                  lambda g: torch.randn(ROWS, 1, generator=g).expand(ROWS, 32),
                                  lambda g: torch.randn((), generator=g).expand(ROWS, 32),
                                  lambda g: torch.randn(32, ROWS, generator=g).t(),
                                  lambda g: torch.randn(2 * ROWS, 32, generator=g)[::2]])
def test_operands_are_read_as_they_lie(make):
    """Columns of wider tensors, expanded tensors, and what only a copy can be read of."""
    module = weft.TensorProduct(weft.TPProblem(
        "8x0e+8x1o", "0e+1o", "8x0e+8x1o", [(0, 0, 0, "uvu", True), (1, 0, 1, "uvu", True)],
        shared_weights=False))
    g = torch.Generator().manual_seed(3)
    x, y, w = make(g), torch.randn(ROWS, 4, generator=g), torch.randn(ROWS, 16, generator=g)
    y.requires_grad_()
    z, want = module(x, y, w), module(x.contiguous(), y, w)
    torch.testing.assert_close(z, want, rtol=1e-5, atol=1e-5)
    for f in (lambda z: z.sum(), lambda z: (z * x).sum()):
        got, = torch.autograd.grad(f(z), y, retain_graph=True)
        dense, = torch.autograd.grad(want, y, torch.autograd.grad(f(want), want)[0].contiguous(),
                                     retain_graph=True)
        torch.testing.assert_close(got, dense, rtol=1e-4, atol=1e-4)


def test_the_gradient_of_a_sum_is_not_copied(pool):
    def faults():
        return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

    rows = ROWS * 16
    module = weft.TensorProduct(weft.TPProblem(
        "8x0e+8x1o", "0e+1o", "8x0e+8x1o", [(0, 0, 0, "uvu", True), (1, 0, 1, "uvu", True)],
        shared_weights=False))
    x, y, w = torch.randn(rows, 32, requires_grad=True), torch.randn(rows, 4), torch.randn(rows, 16)
    for k in range(6):
        total = module(x, y, w).sum()
        before = faults()
        torch.autograd.grad(total, x)
    assert faults() - before < 200  # a copy has 2048 pages


class TestNumpy:
    """Large results of NumPy, too."""

    shape = (1024, 1024)

    def fill(self, value):
        out = _array.empty(self.shape, np.dtype(np.float32))
        out[:] = value
        return out

    def test_memory_is_reused(self):
        first = self.fill(1)
        at = first.ctypes.data
        del first
        assert self.fill(2).ctypes.data == at

    def test_results_keep_their_elements(self):
        kept = [self.fill(k) for k in range(20)]
        assert [z[0, 0] for z in kept] == list(range(20))
        assert all((z == k).all() for k, z in enumerate(kept))

    @pytest.mark.parametrize("view", [lambda z: z[3], lambda z: z.T, lambda z: memoryview(z),
                                      lambda z: z.reshape(-1)[5:].view(np.int32),
                                      lambda z: torch.from_numpy(z)])
    def test_a_view_keeps_the_memory(self, view):
        z = self.fill(7)
        at, seen = z.ctypes.data, view(z)
        want = np.asarray(seen).copy()
        del z
        others = [self.fill(k) for k in range(3)]
        assert at not in [o.ctypes.data for o in others]
        assert np.array_equal(np.asarray(seen), want)

    def test_there_is_a_limit(self):
        kept = [self.fill(k) for k in range(_array.POOL_BLOCKS + 5)]
        del kept
        gc.collect()
        assert len(_array.pool) <= _array.POOL_BLOCKS
