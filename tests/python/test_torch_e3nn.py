# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""weft.o3 against e3nn.o3, and OpenEquivariance's names: values, gradients, state dicts, pickles."""

import copy
import pickle

import pytest

torch = pytest.importorskip("torch")
o3 = pytest.importorskip("e3nn.o3")

import weft  # noqa: E402
import weft.o3  # noqa: E402

ONE, TWO, OUT = "4x0e+3x1o", "2x0e+1o", "5x0e+2x1o+1x1e"
PATHS = [(0, 0, 0, "uvu", True), (1, 1, 1, "uvu", True, 0.5), (1, 0, 2, "uvu", False)]
UVU = ("4x0e+4x1o", "0e+1o", "4x0e+4x0e+4x1o", PATHS)
BOUND = {torch.float32: 2e-6, torch.float64: 1e-14}


@pytest.fixture(params=[torch.float32, torch.float64], ids=["f32", "f64"], autouse=True)
def dtype(request):
    before = torch.get_default_dtype()
    torch.set_default_dtype(request.param)
    torch.manual_seed(1)
    yield request.param
    torch.set_default_dtype(before)


def agree(mine, theirs, *inputs):
    """Values, and gradients by the inputs and the parameters."""
    inputs = [x.requires_grad_() for x in inputs]
    got, want = mine(*inputs), theirs(*inputs)
    bound = BOUND[want.dtype]
    assert got.shape == want.shape
    assert (got - want).abs().max() <= bound * want.abs().max()
    dz = torch.randn_like(want)
    some = [(p, q) for p, q in zip(mine.parameters(), theirs.parameters())]
    a = torch.autograd.grad(got, [*inputs, *(p for p, _ in some)], dz)
    b = torch.autograd.grad(want, [*inputs, *(q for _, q in some)], dz)
    for x, y in zip(a, b):
        assert (x - y).abs().max() <= 10 * bound * y.abs().max()


def test_fully_connected():
    theirs, mine = o3.FullyConnectedTensorProduct(ONE, TWO, OUT), weft.o3.FullyConnectedTensorProduct(ONE, TWO, OUT)
    mine.load_state_dict(theirs.state_dict())
    agree(mine, theirs, torch.randn(2, 7, 13), torch.randn(7, 5))
    assert torch.equal(mine.output_mask, theirs.output_mask)


@pytest.mark.parametrize("norm", ["component", "norm"])
@pytest.mark.parametrize("path_norm", ["element", "path"])
def test_tensor_product_with_weights_of_each_item(norm, path_norm):
    options = dict(shared_weights=False, irrep_normalization=norm, path_normalization=path_norm)
    theirs, mine = o3.TensorProduct(*UVU, **options), weft.o3.TensorProduct(*UVU, **options)
    mine.load_state_dict(theirs.state_dict())
    assert mine.weight_numel == theirs.weight_numel
    agree(mine, theirs, torch.randn(6, 16), torch.randn(6, 4), torch.randn(6, mine.weight_numel))


def test_weights_as_a_list():
    theirs, mine = o3.TensorProduct(*UVU, shared_weights=False), weft.o3.TensorProduct(*UVU, shared_weights=False)
    w = [torch.randn(6, 4, 1), torch.randn(6, 4, 1)]
    x, y = torch.randn(6, 16), torch.randn(6, 4)
    torch.testing.assert_close(mine(x, y, w), theirs(x, y, w))
    with pytest.raises(ValueError, match="weight: expected weights"):
        mine(x, y)
    with pytest.raises(ValueError, match="x: expected 16 elements"):
        mine(y, y, w)
    with pytest.raises(ValueError, match="shared_weights: expected True"):
        weft.o3.TensorProduct(*UVU, shared_weights=False, internal_weights=True)


@pytest.mark.parametrize("biases", [False, True])
def test_linear(biases):
    args = ("4x0e+3x1o+2x0e", "5x0e+2x1o+3x2e")
    theirs, mine = o3.Linear(*args, biases=biases), weft.o3.Linear(*args, biases=biases)
    mine.load_state_dict(theirs.state_dict())
    agree(mine, theirs, torch.randn(2, 3, 15))
    assert repr(mine).startswith("Linear(4x0e")
    with pytest.raises(ValueError, match="biases: expected True or False, or one of them for each of 2"):
        weft.o3.Linear("0e", "0e+0e", biases=[True])
    with pytest.raises(AssertionError, match="slots of 0e only, got one for 1x1o"):
        weft.o3.Linear("0e", "0e+1o", biases=[True, True])


@pytest.mark.parametrize("norm", ["integral", "component", "norm"])
@pytest.mark.parametrize("normalize", [True, False])
def test_spherical_harmonics(norm, normalize):
    for l in (2, [0, 1, 2, 3], "2x1o+2e"):
        theirs, mine = o3.SphericalHarmonics(l, normalize, norm), weft.o3.SphericalHarmonics(l, normalize, norm)
        assert str(mine.irreps_out) == str(theirs.irreps_out)
        agree(mine, theirs, torch.randn(2, 5, 3))


def test_names_of_openequivariance(dtype):
    problem = weft.TPProblem(o3.Irreps(UVU[0]), o3.Irreps(UVU[1]), *UVU[2:], shared_weights=False,
                             internal_weights=False, irrep_dtype=dtype, weight_dtype=weft.torch_to_oeq_dtype(dtype))
    theirs = o3.TensorProduct(*UVU, shared_weights=False)
    product = weft.TensorProduct(problem, torch_op=True)
    x, y, w = torch.randn(6, 16), torch.randn(6, 4), torch.randn(6, 8)
    agree(product, theirs, x, y, w)
    conv = weft.TensorProductConv(problem, torch_op=True, deterministic=True)
    rows, cols = torch.tensor([0, 1, 2, 2, 0, 1]), torch.tensor([1, 2, 0, 1, 2, 0])
    z = conv.forward(x, y, w, rows, cols, torch.arange(6), num_rows=4)
    want = torch.zeros(4, 20).index_add(0, rows, theirs(x[cols], y, w))
    assert (z - want).abs().max() <= BOUND[dtype] * want.abs().max()
    assert conv(x, y, w, rows, cols).shape == (6, 20)
    assert conv.reorder_weights_from_e3nn(w) is w and conv.reorder_weights_to_e3nn(w) is w
    for other in (copy.deepcopy(conv), pickle.loads(pickle.dumps(conv))):
        assert torch.equal(other(x, y, w, rows, cols), conv(x, y, w, rows, cols))
    exact = weft.TensorProductConv(problem, kahan=True)
    assert (exact(x, y, w, rows, cols, num_rows=4) - want).abs().max() <= BOUND[dtype] * want.abs().max()
    assert exact.kahan and exact._spec.endswith("sums=compensated") and exact.double()._spec.endswith("compensated")
    assert not conv.state_dict()
    with pytest.raises(ValueError, match="problem: expected a weft.TPProblem"):
        weft.TensorProduct("0e")
    with pytest.raises(ValueError, match="W: expected 8 elements"):
        product(x, y, w[:, :3])


def test_half_precision_of_autocast_is_taken(dtype):
    problem = weft.TPProblem(*UVU, shared_weights=False)
    product = weft.TensorProduct(problem)
    x, y, w = torch.randn(6, 16), torch.randn(6, 4), torch.randn(6, 8)
    want = product(x.bfloat16().float(), y.float(), w.float())
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(product(x.bfloat16(), y, w), want)
    with pytest.raises(RuntimeError, match="Dtype mismatch: X: expected elements of torch.float32"):
        product(x.bfloat16(), y.float(), w.float())


def test_problem_says_what_is_wrong():
    with pytest.raises(ValueError, match="instructions: expected"):
        weft.TPProblem("0e", "0e", "0e", [(0, 0, 0)])
    with pytest.raises(ValueError, match="internal_weights: expected False"):
        weft.TPProblem("0e", "0e", "0e", [(0, 0, 0, "uuu", True)], internal_weights=True)
    with pytest.raises(ValueError, match="irrep_normalization: expected one of"):
        weft.TPProblem("0e", "0e", "0e", [(0, 0, 0, "uuu", True)], irrep_normalization="no")
    assert "f16" in repr(weft.TPProblem("0e", "0e", "0e", [(0, 0, 0, "uuu", True)], irrep_dtype=torch.float16))
