# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""Pruned weights, groups of rows and sparse results on torch tensors: derivatives, the layer, accelerate."""

import copy
import io
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

import weft
from test_weights import FORMATS, weight

checks = (torch.autograd.gradcheck, torch.autograd.gradgradcheck)


def layer(format, bias=True, shape=(32, 48)):
    w, mask = (torch.from_numpy(a) for a in weight(format, shape=shape))
    linear = torch.nn.Linear(shape[1], shape[0], bias, dtype=torch.float64)
    with torch.no_grad():
        linear.weight.copy_(w)
    return weft.nn.SparseLinear.from_dense(linear, mask, format), linear, mask


def dense(linear, mask, x):
    return torch.nn.functional.linear(x, linear.weight * mask, linear.bias)


@pytest.mark.parametrize("format", FORMATS)
def test_layer_and_its_derivatives(format):
    sparse, linear, mask = layer(format)
    x = torch.randn(3, 48, dtype=torch.float64, requires_grad=True)
    assert (sparse(x) - dense(linear, mask, x)).abs().max() <= 1e-13
    assert torch.equal(sparse.weight, linear.weight * mask)
    for check in checks:
        assert check(lambda x, v, b: weft.sparse_linear(x, sparse._weight.with_values(v), b),
                     (x[:2].detach().requires_grad_(), sparse.values, sparse.bias), fast_mode=True)
    g = torch.randn(3, 32, dtype=torch.float64)
    dx, dv, db = torch.autograd.grad(sparse(x), (x, sparse.values, sparse.bias), g)
    wx, ww, wb = torch.autograd.grad(dense(linear, mask, x), (x, linear.weight, linear.bias), g)
    assert (dx - wx).abs().max() <= 1e-13 and (db - wb).abs().max() <= 1e-13
    assert (sparse._weight.with_values(dv).to_dense() - ww).abs().max() <= 1e-13
    if sparse._weight.keep is not None:
        assert (dv * (1 - sparse._weight.keep)).abs().max() == 0


def test_layer_is_saved_loaded_copied_and_pickled():
    sparse, linear, mask = layer("bsr(4, 8)")
    other, *_ = layer("bsr(4, 8)")
    x = torch.randn(3, 48, dtype=torch.float64)
    with torch.no_grad():
        sparse.values.add_(1)
    file = io.BytesIO()
    torch.save(sparse.state_dict(), file)
    file.seek(0)
    other.load_state_dict(torch.load(file))
    for again in (other, copy.deepcopy(sparse), pickle.loads(pickle.dumps(sparse))):
        assert torch.equal(again(x), sparse(x))
    assert (sparse.to_dense()(x) - sparse(x)).abs().max() <= 1e-13
    assert (sparse.float()(x.float()) - other(x)).abs().max() <= 1e-5
    assert "bsr(4, 8)" in repr(sparse)
    with pytest.raises(weft.ArgumentError, match="^linear: expected"):
        weft.nn.SparseLinear.from_dense(torch.nn.ReLU())


@pytest.mark.parametrize("format", ["csr", "bsr(4, 8)"])
def test_layer_is_compiled_exported_and_vmapped(format):
    sparse, linear, mask = layer(format)
    x = torch.randn(4, 3, 48, dtype=torch.float64)
    want = sparse(x)
    assert torch.equal(torch.compile(sparse, fullgraph=True)(x), want)
    assert torch.equal(torch.export.export(sparse, (x,)).module()(x), want)
    assert (torch.func.vmap(sparse)(x) - want).abs().max() <= 1e-13


def test_layer_in_autocast():
    sparse, linear, mask = layer("csr")
    sparse, x = sparse.float(), torch.randn(3, 48)
    with torch.autocast("cpu", torch.bfloat16):
        y = sparse(torch.nn.Linear(48, 48)(x))
        assert y.dtype == torch.float32 and torch.isfinite(y).all()
        z = weft.grouped_mm(x.bfloat16(), torch.ones(1, 48, 2), torch.tensor([3]))
    torch.testing.assert_close(z, x.bfloat16().float() @ torch.ones(48, 2))
    with pytest.raises(weft.ArgumentError, match="weight: expected elements of torch.bfloat16, as x has"):
        sparse(x.bfloat16())


def test_matrices_of_torch_as_they_are():
    sparse, linear, mask = layer("bsr(4, 8)", bias=False)
    x, w = torch.randn(3, 48, dtype=torch.float64), (linear.weight * mask).detach()
    for matrix in (w.to_sparse_csr(), w.to_sparse_bsr((4, 8))):
        assert (weft.sparse_linear(x, matrix) - x @ w.T).abs().max() <= 1e-13


def test_groups_and_their_derivatives():
    x, w = (torch.randn(*s, dtype=torch.float64, requires_grad=True) for s in ((5, 4), (3, 4, 2)))
    index, gates = torch.tensor([0, 4, 1, 2, 4, 0]), torch.randn(6, dtype=torch.float64, requires_grad=True)
    ends = torch.tensor([2, 2, 6])
    each = torch.cat([x[index[:2]] @ w[0], x[index[2:]] @ w[2]])
    want = torch.zeros(5, 2, dtype=torch.float64).index_add(0, index, gates[:, None] * each)
    assert (weft.grouped_mm(x, w, ends, index=index) - each).abs().max() <= 1e-13
    assert (weft.grouped_mm(x, w, ends, index=index, gates=gates) - want).abs().max() <= 1e-13
    for check in checks:
        assert check(lambda x, w, g: weft.grouped_mm(x, w, ends, index=index, gates=g), (x, w, gates))
        assert check(lambda x, w: weft.grouped_mm(x, w, torch.tensor([2, 2, 5])), (x, w))


@pytest.mark.parametrize("call, want", [
    (weft.spgemm, lambda a, b: a @ b.T), (weft.sparse_add, lambda a, b: a + b), (weft.sparse_mul, lambda a, b: a * b)])
def test_sparse_results_and_their_gradients(call, want):
    torch.manual_seed(3)
    a, b = ((torch.randint(1, 5, (6, 5)) * (torch.rand(6, 5) < 0.4)).double() for _ in range(2))
    other = b.T.contiguous() if call is weft.spgemm else b
    for kind in (torch.Tensor.to_sparse_csr, torch.Tensor.to_sparse_coo):
        assert torch.equal(call(kind(a), kind(other)).to_dense(), want(a, b))
    g = torch.randn_like(want(a, b))
    sa, sb = (x.to_sparse_coo().requires_grad_() for x in (a, other))
    (call(sa, sb).to_dense() * g).sum().backward()
    da, db = (x.clone().requires_grad_() for x in (a, b))
    (want(da, db) * g).sum().backward()
    assert (sa.grad.to_dense() - da.grad * (a != 0)).abs().max() <= 1e-13
    grad = db.grad * (b != 0)
    assert (sb.grad.to_dense() - (grad.T if call is weft.spgemm else grad)).abs().max() <= 1e-13


def entries(*places):
    """Indices of a COO tensor, and values that need a gradient."""
    values = torch.randn(len(places), dtype=torch.float64, generator=torch.Generator().manual_seed(len(places)))
    return torch.tensor(places).T.reshape(2, -1), values.requires_grad_()


@pytest.mark.parametrize("call, other", [(weft.spgemm, (4, 5)), (weft.sparse_add, (3, 4)), (weft.sparse_mul, (3, 4))])
@pytest.mark.parametrize("first", [[(2, 3), (0, 1), (0, 1), (1, 0), (2, 0)], []], ids=["duplicates", "empty"])
def test_gradients_are_those_on_the_pattern_of_the_result(call, other, first):
    (i, v), (j, w) = entries(*first), entries((1, 1), (0, 2), (2, 0), (1, 0))

    def values(v, w):
        a, b = torch.sparse_coo_tensor(i, v, (3, 4)), torch.sparse_coo_tensor(j, w, other)
        got, dense = call(a, b), {weft.spgemm: torch.matmul, weft.sparse_add: torch.add, weft.sparse_mul: torch.mul}
        assert torch.allclose(got.to_dense(), dense[call](a.to_dense(), b.to_dense()), rtol=0, atol=1e-13)
        assert got.is_coalesced()
        return got.values()

    assert values(v, w).shape[0] > 0 or call is not weft.sparse_add
    if values(v, w).numel():
        assert torch.autograd.gradcheck(values, (v, w))


def test_sparse_operands_of_several_kinds():
    torch.manual_seed(0)
    a, b = (torch.randint(1, 5, (5, 5)).double() * (torch.rand(5, 5) < 0.4) for _ in "ab")
    scipy = pytest.importorskip("scipy.sparse")
    for left, right in ((a.to_sparse_csr(), scipy.csr_array(b.numpy())), (scipy.csr_matrix(a.numpy()), b.to_sparse_coo()),
                        (a.to_sparse_coo(), b.to_sparse_csr())):
        got = weft.spgemm(left, right)
        assert type(got) is type(left)
        dense = got.to_dense() if isinstance(got, torch.Tensor) else torch.from_numpy(got.toarray())
        assert torch.equal(dense, a @ b)
    with pytest.raises(weft.ArgumentError, match="^A: expected a sparse tensor of torch, as B"):
        weft.spgemm(scipy.csr_matrix(a.numpy()), b.to_sparse_coo().requires_grad_())


def test_rows_of_csr_that_are_not_sorted():
    start, col = torch.tensor([0, 2, 2, 3]), torch.tensor([3, 0, 1])
    a = torch.sparse_csr_tensor(start, col, torch.tensor([1.0, 2.0, 3.0]), (3, 4))
    assert torch.equal(weft.sparse_add(a, a).to_dense(), 2 * a.to_dense())
    with pytest.raises(weft.ArgumentError, match="^A: expected sorted columns in each row, as a gradient"):
        weft.sparse_add(a.requires_grad_(), a)  # of which torch itself gives a gradient in another order


def pruned_model(density=0.05):
    torch.manual_seed(4)
    model = torch.nn.Sequential(torch.nn.Linear(128, 256), torch.nn.GELU(), torch.nn.Linear(256, 128))
    with torch.no_grad():
        for linear in (model[0], model[2]):
            keep = torch.rand(*(n // 16 for n in linear.weight.shape)) < density
            linear.weight *= torch.kron(keep, torch.ones(16, 16))
    return model


def test_accelerate_replaces_pruned_linear_layers(monkeypatch):
    from weft.models import pruned

    monkeypatch.setattr(pruned, "_dense_seconds", lambda rows, columns: 1.0)  # whatever machine runs this
    stock = pruned_model()
    model = copy.deepcopy(stock)
    report = weft.accelerate(model)
    assert [r.name for r in report.replaced] == ["0", "2"] and "predicted" in str(report)
    assert list(model.state_dict()) == list(stock.state_dict())
    x = torch.randn(7, 128)
    assert (model(x) - stock(x)).abs().max() <= 1e-5
    for m in (model, stock):
        m(x).square().sum().backward()
    for a, b in zip(model.parameters(), stock.parameters()):
        keep = (b != 0) if b.dim() == 2 else torch.ones_like(b)
        assert (a.grad - b.grad * keep).abs().max() <= 1e-3
    with torch.no_grad():  # new values are seen, with and without gradients
        before = model(x)
        for m in (model, stock):
            m[0].weight.mul_(2)
        assert (model(x) - stock(x)).abs().max() <= 1e-5 and not torch.equal(model(x), before)
    assert not weft.accelerate(model)
    assert len(weft.restore(model).replaced) == 2 and type(model[0]) is torch.nn.Linear


def test_accelerate_leaves_layers_that_would_not_gain(monkeypatch):
    from weft.models import pruned

    monkeypatch.setattr(pruned, "_dense_seconds", lambda rows, columns: 0.0)
    report = weft.accelerate(pruned_model())
    assert not report and "no pruned linear layer that would gain" in str(report)
    assert not weft.accelerate(torch.nn.Linear(128, 128))


def test_the_example_of_a_pruned_encoder_trains_as_torch_does():
    path = Path(__file__).parents[2] / "examples" / "pruned.py"
    small = "--layers 1 --width 128 --heads 4 --inner 256 --tokens 32 --rounds 1 --steps 2".split()
    out = subprocess.run([sys.executable, str(path), *small], capture_output=True, text=True)
    assert out.returncode == 0, out.stderr
    losses = [line.split()[1:4:2] for line in out.stdout.splitlines() if line.startswith("loss")]
    assert len(losses) == 3 and all(abs(float(a) - float(b)) < 1e-5 for a, b in losses)
