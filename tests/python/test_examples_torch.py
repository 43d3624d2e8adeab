# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""What OpenEquivariance's and e3nn's own pages show, with Weft in their place, on the CPU."""

import io
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")
o3 = pytest.importorskip("e3nn.o3")

import weft as oeq  # noqa: E402
import weft.o3  # noqa: E402


def close(got, want, tol=1e-5):
    assert got.shape == want.shape
    assert (got - want).abs().max() <= tol * (1 + want.abs().max())


@pytest.fixture
def first():
    """The first example of OpenEquivariance: a batch of products of one path."""
    gen = torch.Generator(device="cpu").manual_seed(1)
    x_ir, y_ir, z_ir = o3.Irreps("1x2e"), o3.Irreps("1x3e"), o3.Irreps("1x2e")
    paths = [(0, 0, 0, "uvu", True)]
    problem = oeq.TPProblem(x_ir, y_ir, z_ir, paths, shared_weights=False, internal_weights=False)
    stock = o3.TensorProduct(x_ir, y_ir, z_ir, paths, shared_weights=False, internal_weights=False)
    return problem, stock, lambda *shape: torch.rand(*shape, device="cpu", generator=gen)


def test_a_batch_of_products(first):
    problem, stock, rand = first
    n = 1000
    x, y, w = rand(n, 5), rand(n, 7), rand(n, stock.weight_numel)
    fast = oeq.TensorProduct(problem, torch_op=True)
    close(fast(x, y, w), stock(x, y, w))


def convolved(stock, x, y, w, rows, cols):
    out = torch.zeros(x.shape[0], stock.irreps_out.dim)
    return out.index_add(0, rows, stock(x[cols], y, w))


def test_a_convolution_atomic_and_deterministic(first):
    problem, stock, rand = first
    nodes, edges = 3, 4
    rows, cols = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])  # receivers, senders
    x, y, w = rand(nodes, 5), rand(edges, 7), rand(edges, problem.weight_numel)
    want = convolved(stock, x, y, w, rows, cols)
    conv = oeq.TensorProductConv(problem, torch_op=True, deterministic=False)
    close(conv.forward(x, y, w, rows, cols), want)

    perm = torch.argsort(rows, stable=True)  # in the order of receivers, as the other algorithm there needs it
    sender_perm = torch.argsort(cols[perm], stable=True)
    conv = oeq.TensorProductConv(problem, torch_op=True, deterministic=True)
    close(conv.forward(x, y[perm], w[perm], rows[perm], cols[perm], sender_perm), want)


def test_derivatives_of_it(first):
    problem, stock, rand = first
    rows, cols = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    x, y, w = (t.requires_grad_() for t in (rand(3, 5), rand(4, 7), rand(4, problem.weight_numel)))
    conv = oeq.TensorProductConv(problem)
    got = torch.autograd.grad(conv(x, y, w, rows, cols).square().sum(), [x, y, w], create_graph=True)
    want = torch.autograd.grad(convolved(stock, x, y, w, rows, cols).square().sum(), [x, y, w],
                               create_graph=True)
    for g, h in zip(got, want):
        close(g, h)
    got, want = (torch.autograd.grad(sum(g.square().sum() for g in gs), [x, y, w]) for gs in (got, want))
    for g, h in zip(got, want):
        close(g, h)


def test_dtypes_and_orders_of_weights():
    paths = [(0, 0, 0, "uvu", True)]
    problem = oeq.TPProblem("2x1e", "1x1e", "2x1e", paths, shared_weights=False, internal_weights=False,
                            irrep_dtype=oeq.torch_to_oeq_dtype(torch.float64),
                            weight_dtype=oeq.torch_to_oeq_dtype(torch.float64))
    product = oeq.TensorProduct(problem)
    w = torch.rand(5, problem.weight_numel, dtype=torch.float64)
    assert torch.equal(product.reorder_weights_from_e3nn(w, has_batch_dim=True), w)
    assert torch.equal(product.reorder_weights_to_e3nn(w, has_batch_dim=True), w)
    x = torch.rand(5, 6, dtype=torch.float64)
    assert product(x, x[:, :3], w).dtype is torch.float64


def test_arguments_by_place_and_their_defaults():
    paths = [(0, 0, 0, "uvw", True)]
    one = oeq.TPProblem(oeq.Irreps("2x1e"), "3x1e", "2x1e", paths, [2.0], [3.0], [0.5], "norm", "path", False,
                        False, "mine", torch.float64, "float64", "mul_ir")
    assert (one.irrep_normalization, one.path_normalization, one.label) == ("norm", "path", "mine")
    assert not one.shared_weights and one.instructions_raw == [(*paths[0], 1.0)]
    stock = o3.TensorProduct("2x1e", "3x1e", "2x1e", paths, [2.0], [3.0], [0.5], "norm", "path",
                             shared_weights=False, internal_weights=False).double()
    assert one.instructions == [tuple(i) for i in stock.instructions]
    x, y, w = (torch.rand(5, n, dtype=torch.float64) for n in (6, 9, 12))
    close(oeq.TensorProduct(one.clone())(x, y, w), stock(x, y, w), 1e-7)
    shared = oeq.TPProblem("2x1e", "3x1e", "2x1e", paths)  # which is what e3nn's default is
    assert shared.shared_weights and not shared.internal_weights
    stock = o3.TensorProduct("2x1e", "3x1e", "2x1e", paths, internal_weights=False)
    x, y, w = x.float(), y.float(), w[0].float()
    close(oeq.TensorProduct(shared)(x, y, w), stock(x, y, w))


def test_modules_are_saved_and_loaded_without_trust(first):
    problem, stock, rand = first
    x, y, w = rand(6, 5), rand(6, 7), rand(6, problem.weight_numel)
    rows, cols = torch.tensor([[0, 1, 1, 2, 5, 5], [1, 0, 2, 1, 3, 4]])
    for module, more in ((oeq.TensorProduct(problem), ()), (oeq.TensorProductConv(problem), (rows, cols))):
        file = io.BytesIO()
        torch.save(module, file)
        file.seek(0)
        again = torch.load(file, weights_only=True)
        assert torch.equal(again(x, y, w, *more), module(x, y, w, *more))
    one, two, xyz = torch.randn(4, 13), torch.randn(4, 5), torch.randn(4, 3)
    full = weft.o3.FullyConnectedTensorProduct("4x0e+3x1o", "2x0e+1o", "2x0e+1o")
    for module, operands in ((full, (one, two)), (weft.o3.Linear("4x0e+3x1o", "2x1o"), (one,)),
                             (weft.o3.SphericalHarmonics([0, 1], True), (xyz,)),
                             (weft.o3.Norm("3x0e"), (xyz,))):
        file = io.BytesIO()
        torch.save(module, file)
        file.seek(0)
        assert torch.equal(torch.load(file, weights_only=True)(*operands), module(*operands))
    assert oeq.torch_ext_so_path().endswith("libweft_torch.so")


def test_a_new_process_loads_every_class_without_trust(first, tmp_path):
    problem, _, _ = first
    modules = [problem, oeq.TensorProduct(problem), oeq.TensorProductConv(problem),
               *(getattr(weft.o3, name)(*args) for name, *args in (
                   ("TensorProduct", "0e", "0e", "0e", [(0, 0, 0, "uvw", True)]), ("Linear", "3x0e+1o", "2x1o"),
                   ("FullyConnectedTensorProduct", "0e+1o", "1o", "1o"), ("FullTensorProduct", "1o", "1o"),
                   ("ElementwiseTensorProduct", "2x1o", "2x1o"), ("TensorSquare", "1o"), ("Norm", "3x0e"),
                   ("SphericalHarmonics", [0, 1], True)))]
    for i, module in enumerate(modules):
        torch.save(module, tmp_path / str(i))
    script = (f"import sys, torch, weft.o3\nfor i in range({len(modules)}):\n"
              f"    print(type(torch.load(f'{tmp_path}/{{i}}', weights_only=True)).__name__)")
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.split() == [type(module).__name__ for module in modules], done.stderr


def test_a_change_of_dtype_is_one_of_the_problem(first):
    problem, stock, rand = first
    model = torch.nn.Sequential(oeq.TensorProduct(problem)).double()
    x, y, w = (rand(9, n).double() for n in (5, 7, problem.weight_numel))
    close(model[0](x, y, w), stock.double()(x, y, w), 1e-7)
    assert model[0](x, y, w).dtype is torch.float64
    assert oeq.TensorProductConv(problem).to(torch.float64).config.irrep_dtype is oeq.torch_to_oeq_dtype(torch.float64)
    assert problem.type == "f32" and model.float()[0](x.float(), y.float(), w.float()).dtype is torch.float32


class Index(torch.Tensor):
    """As lists of edges of other packages are, torch_geometric's for one."""


def test_indices_of_another_class(first):
    problem, stock, rand = first
    rows, cols = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    x, y, w = rand(3, 5), rand(4, 7), rand(4, problem.weight_numel)
    got = oeq.TensorProductConv(problem)(x, y, w, rows.as_subclass(Index), cols.as_subclass(Index))
    close(got.as_subclass(torch.Tensor), convolved(stock, x, y, w, rows, cols))


def twins(name, *args, **kwargs):
    """The class of e3nn and Weft's, with the same weights."""
    stock, fast = getattr(o3, name)(*args, **kwargs), getattr(weft.o3, name)(*args, **kwargs)
    fast.load_state_dict(stock.state_dict(), strict=False)
    return stock, fast


def test_e3nn_products_of_vectors():
    """16 norms, 16 cross products, and sums of paths with weights, as e3nn shows them."""
    x, y = torch.randn(7, 48), torch.randn(7, 48)
    norm = twins("TensorProduct", "16x1o", "16x1o", "16x0e", [(0, 0, 0, "uuu", False)])
    close(norm[1](x, y), norm[0](x, y))
    cross = twins("TensorProduct", "16x1o", "16x1o", "16x1e", [(0, 0, 0, "uuu", False)])
    close(cross[1](x, y), cross[0](x, y))
    paths = [(0, 0, 0, "uvw", True), (1, 0, 1, "uvu", True, 3.0)]
    some = twins("TensorProduct", "8x0o + 8x1o", "16x1o", "16x1e + 8x1e", paths, shared_weights=True)
    a, b = torch.randn(7, 32), torch.randn(7, 48)
    close(some[1](a, b), some[0](a, b))


def test_e3nn_layers_and_harmonics():
    full = twins("FullyConnectedTensorProduct", "5x0e + 10x1o + 1x2e", "5x0e + 10x1o", "5x0e + 3x1o")
    x, y = torch.randn(4, 40), torch.randn(4, 35)
    close(full[1](x, y), full[0](x, y))
    linear = twins("Linear", "4x0e + 16x1o", "8x0e + 8x1o")
    x = torch.randn(4, 52)
    close(linear[1](x), linear[0](x))
    xyz = torch.randn(11, 3)
    for normalization in ("integral", "component", "norm"):
        close(weft.o3.spherical_harmonics([0, 1, 2], xyz, True, normalization),
              o3.spherical_harmonics([0, 1, 2], xyz, True, normalization))
    sh = twins("SphericalHarmonics", "0e + 1o + 2e", True, "component")
    close(sh[1](xyz), sh[0](xyz))
