# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""Tuning from Python: what it returns, that results stay right, and how it ends; never how long
something took."""

import numpy as np
import pytest
import scipy.sparse as sp

import weft

TEXT = """
program spmm(m, n, f)
axis I = dense(m), J = compressed(I, n), K = dense(f)
f32 A[I, J], B[n, K], C[I, K]
c: C[i, k] += A[i, j] * B[j, k]
"""


@pytest.fixture
def operands():
    rng = np.random.default_rng(1)
    a = sp.csr_matrix((rng.random((60, 50)) < 0.1).astype(np.float32))
    a.data[:] = rng.integers(-8, 9, len(a.data)) / 8
    return a, (rng.integers(-8, 9, (50, 64)) / 8).astype(np.float32)


def test_an_operator_is_tuned(operands):
    a, b = operands
    seen = []
    found = weft.tune(weft.spmm, a, b, seconds=200, top=3, progress=lambda p: seen.append(p))
    assert isinstance(found, weft.Tuned)
    assert found.seconds > 0 and found.default_seconds > 0 and found.timed >= 2 and not found.stopped
    assert found.points > found.timed and found.wrong == 0
    assert {p.what for p in seen} == {"compile", "time"}
    assert all(isinstance(p, weft.Progress) and p.budget == 200 for p in seen)
    np.testing.assert_array_equal(weft.spmm(a, b), a @ b)


def test_a_kernel_is_tuned(operands):
    a, b = operands
    kernel = weft.Program(TEXT).compile()
    for _ in range(2):  # the first time shapes of outputs are not known yet
        assert kernel.tune(A=a, B=b, seconds=200, top=2).timed >= 2
        np.testing.assert_array_equal(kernel(A=a, B=b), a @ b)


def test_a_search_can_be_stopped(operands):
    a, b = operands
    assert weft.tune(weft.spmm, a, b, top=2, progress=lambda p: True).stopped

    def interrupt(_):
        raise KeyboardInterrupt

    assert weft.tune(weft.spmm, a, b, top=2, progress=interrupt).stopped
    np.testing.assert_array_equal(weft.spmm(a, b), a @ b)


def test_what_progress_raises_is_raised(operands):
    a, b = operands

    def fail(_):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        weft.tune(weft.spmm, a, b, top=2, progress=fail)
    np.testing.assert_array_equal(weft.spmm(a, b), a @ b)


def test_what_cannot_be_tuned_is_refused(operands):
    a, b = operands
    with pytest.raises(weft.ArgumentError, match="is no operator"):
        weft.tune(np.sum, b)
    with pytest.raises(weft.ArgumentError, match="not negative"):
        weft.tune(weft.spmm, a, b, seconds=-1)
    with pytest.raises(weft.ArgumentError, match="B: expected shape"):
        weft.tune(weft.spmm, a, b[:3])
    np.testing.assert_array_equal(weft.spmm(a, b), a @ b)
