# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""What a swapped import of e3nn.o3 or openequivariance meets besides values: views of weights, layers
without paths, kinds of errors, changes after construction, conventions of signs, TorchScript."""

import copy
import pickle
import subprocess
import sys
import warnings
from functools import partial

import pytest

torch = pytest.importorskip("torch")

import weft  # noqa: E402
import weft.o3  # noqa: E402

ONE, TWO, OUT = "4x0e+3x1o", "2x0e+1o", "5x0e+2x1o+1x1e"


def twins(name, *args, **kwargs):
    """A class of e3nn and Weft's, with the same weights."""
    o3 = pytest.importorskip("e3nn.o3")
    theirs, mine = getattr(o3, name)(*args, **kwargs), getattr(weft.o3, name)(*args, **kwargs)
    for p in theirs.parameters():
        torch.nn.init.normal_(p)
    mine.load_state_dict(theirs.state_dict())
    return mine, theirs


def same(mine, theirs, *operands):
    torch.testing.assert_close(mine(*operands), theirs(*operands), rtol=1e-5, atol=1e-6)


def test_instructions_and_views_of_weights():
    mine, theirs = twins("TensorProduct", "4x0e+4x1o", "2x0e+4x1o", "4x0e+4x1o",
                         [(0, 0, 0, "uvu", True), (1, 0, 1, "uvu", False), (1, 1, 0, "uuw", True, 0.5)])
    assert [tuple(i) for i in mine.instructions] == [tuple(i) for i in theirs.instructions]
    assert mine.instructions[2].path_shape == (4, 4) and mine.instructions[2].i_out == 0
    for (i, a, v), (j, b, w) in zip(mine.weight_views(yield_instruction=True),
                                    theirs.weight_views(yield_instruction=True)):
        assert i == j and a == tuple(b) and torch.equal(v, w)
    assert torch.equal(mine.weight_view_for_instruction(2), mine.weight[8:].view(4, 4))
    assert mine.weight_view_for_instruction(-1, torch.zeros(24)).shape == (4, 4)
    with pytest.raises(ValueError, match="path 1, which has none"):
        mine.weight_view_for_instruction(1)
    with torch.no_grad():
        mine.weight_view_for_instruction(0).zero_()
    assert not mine.weight[:8].any() and mine.weight[8:].all()


def test_right_is_the_product_as_a_matrix():
    mine, theirs = twins("FullyConnectedTensorProduct", ONE, TWO, OUT, compile_right=True)
    x, y = torch.randn(13), torch.randn(2, 1, 5)
    assert mine.right(y).shape == (2, 1, 13, 14)
    torch.testing.assert_close(mine.right(y), theirs.right(y), rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(torch.einsum("...ik,...i->...k", mine.right(y), x), mine(x, y))
    each = weft.o3.FullyConnectedTensorProduct(ONE, TWO, OUT, shared_weights=False)
    w = torch.randn(2, 1, each.weight_numel)
    torch.testing.assert_close(torch.einsum("...ik,...i->...k", each.right(y, w), x), each(x, y, w))


def test_partial_biases_and_copies():
    args = ("0e + 1e + 0e", "2x0e + 2x1e + 2e + 0e + 3x0e")
    mine, theirs = twins("Linear", *args, biases=[True, False, False, False, True])
    same(mine, theirs, torch.randn(4, 5))
    assert [tuple(i) for i in mine.instructions] == [tuple(i) for i in theirs.instructions]
    assert [v.shape for v in mine.weight_views()] == [(1, 2), (1, 1), (1, 3), (1, 2), (1, 2), (1, 1), (1, 3)]
    mine, theirs = twins("Linear", *args, f_in=3, f_out=2, biases=[True, False, False, False, True])
    assert mine.weight.shape == (3, 2, mine.weight_numel) and mine.bias.shape == (2, 5)
    same(mine, theirs, torch.randn(4, 3, 5))
    with pytest.raises(AssertionError, match=r"features: expected the shape \(..., 3, 5\)"):
        mine(torch.randn(4, 5))


@pytest.mark.parametrize("name, args, widths", [
    ("Linear", ("8x0e", "4x1o"), [8]), ("Linear", ("", "0e"), [0]), ("Linear", ("2x1o+0x3e", "0x3e"), [6]),
    ("FullyConnectedTensorProduct", ("0e+1e", "", "0e+1e"), [4, 0]),
    ("TensorProduct", ("0x0e+1o", "0e+1o", "0x0e+1o", [(0, 0, 0, "uvw", True)]), [3, 4]),
    ("TensorProduct", ("0e", "0e", "2x1o", []), [1, 1]), ("FullTensorProduct", ("", "0e"), [0, 1]),
    ("Norm", ("",), [0])])
def test_layers_without_paths_give_zeros_and_have_no_weights(name, args, widths):
    mine, theirs = twins(name, *args)
    assert not list(mine.parameters()) and str(mine.irreps_out) == str(theirs.irreps_out)
    operands = [torch.randn(2, 3, n) for n in widths]
    same(mine, theirs, *operands)
    assert not mine(*operands).any() and mine(*operands).shape == (2, 3, mine.irreps_out.dim)
    if name != "Norm":
        assert torch.equal(mine.output_mask, theirs.output_mask)
    if args == ("8x0e", "4x1o"):  # nothing is read, so any width will do
        same(mine, theirs, torch.randn(2, 3, 0))
    biased = weft.o3.Linear("8x0o", "2x1o + 3x0e", biases=True)
    assert torch.equal(biased(torch.randn(2, 8)), torch.zeros(2, 9))


@pytest.mark.parametrize("name, args", [
    ("FullTensorProduct", ("1o+2x0e+1o", "0e+1o")), ("FullTensorProduct", ("1o+0e", "1o", ["0e", "1e"])),
    ("ElementwiseTensorProduct", ("3x1o+2x0e", "2x0e+3x1o")), ("TensorSquare", ("2x1o+0e", "0e+2e")),
    ("TensorSquare", ("2x1o+0e",)), ("Norm", ("2x1o+0x2e+0e+3x0o", True)), ("Norm", ("2x1o+0e",))])
def test_named_products(name, args):
    mine, theirs = twins(name, *args)
    assert mine.irreps_out == theirs.irreps_out
    if name == "Norm":
        same(mine, theirs, torch.randn(2, 3, mine.irreps_in.dim))
        return
    assert [tuple(i) for i in mine.instructions] == [tuple(i) for i in theirs.instructions]
    irreps = [mine.irreps_in1, mine.irreps_in2][:1 if name == "TensorSquare" else 2]
    same(mine, theirs, *(i.randn(2, 3, -1) for i in irreps))


def test_private_arguments_are_taken():
    product = weft.o3.TensorProduct("0e", "0e", "0e", [(0, 0, 0, "uuu", True)], compile_right=True,
                                    _specialized_code=False, _optimize_einsums=True)
    assert product._specialized_code is False and product._optimize_einsums is True
    weft.o3.Linear("0e", "0e", _optimize_einsums=False)
    with pytest.warns(DeprecationWarning, match="irrep_normalization"):
        weft.o3.TensorProduct("0e", "0e", "0e", [(0, 0, 0, "uuu", True)], normalization="norm")


@pytest.mark.parametrize("kind, make", [
    (AssertionError, lambda: weft.o3.TensorProduct("0e", "0e", "1e", [(0, 0, 0, "uvw", True)])),
    (AssertionError, lambda: weft.TPProblem("0e", "0e", "0o", [(0, 0, 0, "uvw", True)])),
    (AssertionError, lambda: weft.o3.TensorProduct("0e", "0e", "0e", [(0, 0, 0, "vvv", True)])),
    (AssertionError, lambda: weft.o3.TensorProduct("0e", "0e", "0e", [], in1_var=[1.0, 2.0])),
    (AssertionError, lambda: weft.o3.TensorProduct("0e", "0e", "0e", [], path_normalization="no")),
    (AssertionError, lambda: weft.o3.TensorProduct("0e", "0e", "0e", [], None, None, None, None, None, True,
                                                   False)),
    (AssertionError, lambda: weft.o3.ElementwiseTensorProduct("2x0e", "3x0e")),
    (IndexError, lambda: weft.o3.TensorProduct("0e", "0e", "0e", [(0, 1, 0, "uvw", True)])),
    (IndexError, lambda: weft.o3.Linear("0e", "0e", instructions=[(4, 0)])),
    (ValueError, lambda: weft.o3.Linear("4x0e", "1x2e", instructions=[(0, 0)])),
    (ValueError, lambda: weft.o3.SphericalHarmonics("0e+1e", True, irreps_in="1o")),
    (ValueError, lambda: weft.o3.SphericalHarmonics("0e+1e+3o", True)),
    (ValueError, lambda: weft.o3.SphericalHarmonics("0e", True, irreps_in="1o+1o")),
    (ValueError, lambda: weft.o3.TensorSquare("0e", "0e", ["0e"])),
    (RuntimeError, lambda: weft.o3.Linear("0e", "0e", internal_weights=False)(torch.ones(1, 1))),
    (RuntimeError, lambda: weft.o3.Linear("0e", "0e")(torch.ones(1, 2))),
    (AssertionError, lambda: weft.o3.Linear("0e", "0e")(torch.ones(1, 2)))])
def test_kinds_of_errors(kind, make):
    with pytest.raises(kind) as e:
        make()
    assert isinstance(e.value, weft.ArgumentError)


def problem(**more):
    return weft.TPProblem(ONE, "0e+1o", "4x0e+3x1o", [(0, 0, 0, "uvu", True), (1, 0, 1, "uvu", True)],
                          shared_weights=False, **more)


def graph():
    rows, cols = torch.tensor([[0, 1, 2, 2], [1, 2, 0, 1]])
    x, y, w = torch.randn(3, 13), torch.randn(4, 4), torch.randn(4, 7)
    return x, y, w, rows, cols


def test_arguments_of_the_wrong_kind_are_named():
    tp = weft.o3.FullyConnectedTensorProduct(ONE, TWO, OUT)
    for name, call in (("x", lambda: tp(None, torch.randn(5))), ("y", lambda: tp(torch.randn(13), [1.0])),
                       ("y", lambda: tp.right(None)), ("features", lambda: weft.o3.Linear("0e", "0e")("x")),
                       ("features", lambda: weft.o3.Norm("0e")(None)),
                       ("x", lambda: weft.o3.spherical_harmonics(2, [1.0, 2.0, 3.0], True))):
        with pytest.raises(TypeError, match=f"^{name}: expected a tensor of torch, got "):
            call()
    for make in (weft.TPProblem, weft.o3.TensorProduct):
        for wrong in (None, 5, [5], ["01"], [(0, 0, 0)]):
            with pytest.raises(ValueError, match="^instructions: expected"):
                make("0e", "0e", "0e", wrong)
    with pytest.raises(ValueError, match="irreps: expected"):
        weft.o3.SphericalHarmonics(2.5, True)


def test_indices_beyond_the_nodes_are_refused_at_once():
    for edges in ([[0, 5], [1, 0]], [[0, 1], [-1, 0]]):
        for edge_index in (torch.tensor(edges), edges):
            with pytest.raises(ValueError, match=r"edge_index: expected (senders|receivers) from 0 to 2, as num_"):
                weft.Graph(edge_index, num_nodes=3)
    weft.Graph([[5], [0]], num_nodes=(1, 6))
    x, y, w, rows, cols = graph()
    conv = weft.TensorProductConv(problem())
    for dtype in (torch.int32, torch.int64):
        for wrong in (cols + 3, cols - 4):
            with pytest.raises(RuntimeError, match=rf"^cols\[0\] is {wrong[0]}, but X has 3 rows$"):
                conv(x, y, w, rows.to(dtype), wrong.to(dtype))
        with pytest.raises(RuntimeError, match=r"^rows\[2\] is 2, but the result has 2 rows$"):
            conv(x, y, w, rows.to(dtype), cols.to(dtype), num_rows=2)
    with pytest.raises(TypeError, match="^rows: expected a tensor of torch, got list"):
        conv(x, y, w, rows.tolist(), cols)


def test_operands_that_do_not_fit_are_runtime_errors():
    conv = weft.TensorProductConv(problem(), deterministic=True)
    operands = [*graph(), torch.arange(4)]
    for i, x in enumerate(operands):
        for what, wrong in (("Shape mismatch", x.unsqueeze(1)), ("Dtype mismatch", x.to(torch.bfloat16)),
                            ("is not on the CPU", x.to("meta"))):
            with pytest.raises(RuntimeError, match=what):
                conv(*operands[:i], wrong, *operands[i + 1:])
    with pytest.raises(RuntimeError, match=r"Shape mismatch: cols: expected the shape \(4,\) of rows"):
        conv(*operands[:4], torch.arange(3))


def test_problems_that_openequivariance_refuses():
    """Weft computes other modes in this layout, but not under these names, whose users rely on the error."""
    paths = [(0, 0, 0, "uvw", True)]
    mixed = weft.TPProblem("2x5e", "3e", "2x5e", paths, shared_weights=False, layout="ir_mul")
    for cls in (weft.TensorProduct, weft.TensorProductConv):
        with pytest.raises(AssertionError, match="layout='ir_mul' is for paths of the mode uvu alone"):
            cls(mixed)
        with pytest.raises(AssertionError, match="at least one path"):
            cls(weft.TPProblem("2x0e", "0e", "2x1o", [], shared_weights=False))
        cls(weft.TPProblem("2x5e", "3e", "2x5e", [(0, 0, 0, "uvu", True)], shared_weights=False,
                           layout="ir_mul"))
    assert weft.Product("2x5e", "3e", "2x5e", paths=paths, layout="ir_mul").weight_numel == 4


def test_irreps_without_a_path_are_refused_unless_allowed():
    import numpy as np

    edges = weft.Edges([0, 1], [1, 1], 2)
    for make, irreps in ((weft.Product, ("8x0e", "0e", "4x1o")), (weft.Linear, ("8x0e", "4x1o")),
                         (partial(weft.Convolution, mode="uvw"), ("8x0e", "0e", "4x1o"))):
        with pytest.raises(weft.ArgumentError, match="allow no path, so the result would be 0 everywhere; "
                                                     "empty=zeros permits that"):
            make(*irreps)
        layer = make(*irreps, empty="zeros")
        assert layer.weight_numel == 0 and layer.irreps_out.dim == 12
    x, y = np.ones((2, 8), np.float32), np.ones((2, 1), np.float32)
    conv = weft.Convolution("8x0e", "0e", "4x1o", mode="uvw", empty="zeros")
    z = conv(edges, x, y)
    assert z.shape == (2, 12) and not z.any() and not conv.backward(edges, z + 1, x, y)["x"].any()


def test_a_problem_can_be_changed_until_a_module_is_made():
    import numpy as np

    p = problem()
    p.irrep_dtype, p.weight_dtype = np.float64, "f64"
    assert (p.irrep_dtype, p.type, p.weight_dtype) == (np.float64, "f64", np.float64)
    module = weft.TensorProduct(p)
    x, y, w = (t.double() for t in graph()[:3])
    x = torch.cat([x, x[:1]])
    assert module(x, y, w).dtype is torch.float64
    p.irrep_dtype = p.weight_dtype = torch.float32
    p.layout = "ir_mul"
    assert module.config.type == "f64" and module.config.layout == "mul_ir"
    assert module(x, y, w).dtype is torch.float64
    other = weft.TensorProduct(p)
    turned = [weft.transpose_irreps(t.float(), i, "mul_ir", "ir_mul")
              for t, i in ((x, p.irreps_in1), (y, p.irreps_in2))]
    z = weft.transpose_irreps(other(*turned, w.float()), p.irreps_out, "ir_mul", "mul_ir")
    torch.testing.assert_close(z, module(x, y, w).float(), rtol=1e-5, atol=1e-6)
    p.shared_weights = True
    assert "weights=shared" in weft.TensorProduct(p)._spec
    with pytest.raises(ValueError, match="irrep_dtype: expected one of"):
        p.irrep_dtype = "no"


@pytest.mark.parametrize("which", range(5))
def test_what_changes_between_forward_and_backward_is_found(which):
    """Wrong gradients otherwise: torch counts the changes of what was saved."""
    conv = weft.TensorProductConv(problem())
    x, y, w, rows, cols = graph()
    both = torch.stack([rows, cols])  # views of it share its count
    operands = [x, y, w, *both]
    z = conv(*[t.requires_grad_() if t.is_floating_point() else t for t in operands])
    with torch.no_grad():
        (operands[which] if which < 3 else both[which - 3]).zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()


def test_signs_are_those_of_the_installed_e3nn_or_as_told(monkeypatch):
    from importlib import metadata
    from types import SimpleNamespace

    from weft import _peers

    args = ("1o", "2e", "2o", [(0, 0, 0, "uuu", False)])
    now, before = (weft.o3.TensorProduct(*args, signs=s) for s in ("e3nn", "e3nn-0.4"))
    x, y = torch.randn(4, 3), torch.randn(4, 5)
    torch.testing.assert_close(now(x, y), -before(x, y))
    for module in (before, copy.deepcopy(before), pickle.loads(pickle.dumps(before))):
        assert module.signs == "e3nn-0.4" and "signs of e3nn-0.4" in repr(module)
        assert torch.equal(module(x, y), before(x, y))
    old = pickle.loads(pickle.dumps(weft.TensorProduct(weft.TPProblem(*args, signs="e3nn-0.4"))))
    assert old.signs == "e3nn-0.4" and "e3nn-0.4" in repr(old)
    with pytest.raises(ValueError, match="signs: expected one of e3nn, e3nn-0.4"):
        weft.o3.TensorProduct(*args, signs="old")
    for version, signs in (("0.4.4", "e3nn-0.4"), ("0.5.1", "e3nn"), ("0.6.0", "e3nn"), ("0.40.0", "e3nn")):
        monkeypatch.setitem(sys.modules, "e3nn", SimpleNamespace(__version__=version))
        assert weft.o3.TensorProduct(*args).signs == signs == weft.TPProblem(*args).signs
        assert torch.equal(weft.o3.wigner_3j(1, 2, 2), weft.o3.wigner_3j(1, 2, 2, signs=signs))
    monkeypatch.delitem(sys.modules, "e3nn")

    def missing(name):
        raise metadata.PackageNotFoundError(name)

    for installed, signs in ((lambda name: "0.4.4", "e3nn-0.4"), (missing, "e3nn")):
        monkeypatch.setattr(metadata, "version", installed)
        _peers._installed.cache_clear()
        assert weft.o3.TensorProduct(*args).signs == signs
    monkeypatch.undo()
    _peers._installed.cache_clear()


def test_a_state_dict_of_the_other_signs_warns():
    make = [lambda s=s: torch.nn.Sequential(
        weft.o3.FullyConnectedTensorProduct("1o", "2e", "2o", signs=s)) for s in ("e3nn", "e3nn-0.4")]
    now, before = (f() for f in make)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        now.load_state_dict(make[0]().state_dict())
        before.load_state_dict(make[1]().state_dict())
        before.load_state_dict(dict(before.state_dict()))  # which tells nothing
    for module, other in ((now, before), (before, now)):
        with pytest.warns(UserWarning, match=f"3j symbols of {other[0].signs}, and FullyConnected.* has those "
                                             f"of {module[0].signs}"):
            module.load_state_dict(other.state_dict())
    o3 = pytest.importorskip("e3nn.o3")
    theirs = o3.FullyConnectedTensorProduct("1o", "2e", "2o").state_dict()
    if not any("w3j" in key for key in theirs):
        return
    with pytest.warns(UserWarning, match="3j symbols of"):
        other = "e3nn" if weft.o3.TensorProduct("0e", "0e", "0e", []).signs == "e3nn-0.4" else "e3nn-0.4"
        weft.o3.FullyConnectedTensorProduct("1o", "2e", "2o", signs=other).load_state_dict(theirs)


@pytest.mark.parametrize("make", [
    lambda: weft.o3.Linear("0e", "0e"), lambda: weft.o3.SphericalHarmonics(1, True),
    lambda: weft.o3.TensorProduct("0e", "0e", "0e", []), lambda: weft.o3.Norm("1o"),
    lambda: weft.TensorProduct(problem()), lambda: weft.TensorProductConv(problem())])
def test_torchscript_is_refused_in_one_sentence(make, monkeypatch):
    """Where there is nothing of e3nn to be compiled instead."""
    for name in [n for n in sys.modules if n.split(".")[0] == "e3nn"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "e3nn", None)
    model = torch.nn.Sequential(torch.nn.Linear(1, 1), torch.nn.Sequential(make()))
    with pytest.raises(RuntimeError, match=r"cannot compile: .*weft\.restore\(model\)") as e:
        torch.jit.script(model)
    assert "\n" not in str(e.value)
    with pytest.raises(RuntimeError, match=r"symbolic_trace .*weft\.restore\(model\)"):
        torch.fx.symbolic_trace(model[1][0])


class Around(torch.nn.Module):
    """A model with one module in two places."""

    def __init__(self, inner: torch.nn.Module):
        super().__init__()
        self.one = self.two = inner

    def forward(self, x):
        return 2 * self.one(x)


@pytest.mark.parametrize("make", [
    lambda: weft.o3.Linear("2x0e+1o", "3x0e+1o", biases=[True, False]),
    lambda: weft.o3.Linear("2x0e+1o", "3x0e+1o", f_in=3, f_out=2, path_normalization="path"),
    lambda: weft.o3.SphericalHarmonics([2, 0, 1], True, "component"),
    lambda: weft.o3.TensorSquare("2x0e+1o", "0e+2e"), lambda: weft.o3.TensorSquare("2x0e+1o"),
    lambda: weft.o3.Norm("2x0e+1o")])
def test_torchscript_and_restore_take_classes_of_e3nn(make):
    jit = pytest.importorskip("e3nn.util.jit")
    inner = make()
    wide = getattr(inner, "_copies", None) is not None
    width = 3 if isinstance(inner, weft.o3.SphericalHarmonics) else 5
    x = torch.randn(4, 3, width) if wide else torch.randn(4, width)
    want = 2 * inner(x)
    if not isinstance(inner, weft.o3.TensorSquare):  # e3nn's cannot be scripted
        for compile in (torch.jit.script, jit.script):
            with pytest.warns(RuntimeWarning, match=r"restored, as by weft\.restore\(model\)"):
                made = compile(Around(inner))
            torch.testing.assert_close(made(x), want, rtol=1e-5, atol=1e-5)
        with pytest.warns(RuntimeWarning):
            torch.testing.assert_close(2 * jit.compile(inner)(x), want, rtol=1e-5, atol=1e-5)
    model = Around(inner)
    assert [r.name for r in weft.restore(model).replaced] == ["one"]
    assert model.one is model.two and type(model.one).__module__.startswith("e3nn.")
    assert [p.data_ptr() for p in model.parameters()] == [p.data_ptr() for p in inner.parameters()]
    torch.testing.assert_close(model(x), want, rtol=1e-5, atol=1e-5)
    assert not weft.restore(model)


def test_a_product_is_scripted_in_its_dtype_and_with_its_signs():
    jit = pytest.importorskip("e3nn.util.jit")
    mine = weft.o3.FullyConnectedTensorProduct("2x1o", "2e", "2x2o+1o", path_normalization="path",
                                               compile_right=True).double()
    x, y = torch.randn(4, 6).double(), torch.randn(4, 5).double()
    with pytest.warns(RuntimeWarning):
        made = jit.script(mine)
    torch.testing.assert_close(made(x, y), mine(x, y))
    torch.testing.assert_close(made.right(y), mine.right(y))
    other = "e3nn" if mine.signs == "e3nn-0.4" else "e3nn-0.4"
    with pytest.raises(RuntimeError, match=f"has the 3j symbols of {other}, and the installed"):
        torch.jit.script(weft.o3.FullyConnectedTensorProduct("2x1o", "2e", "2x2o", signs=other))


def test_other_names_are_those_of_e3nn():
    o3 = pytest.importorskip("e3nn.o3")
    from weft import o3 as mine

    assert mine.rand_matrix is o3.rand_matrix and mine.TensorProduct is not o3.TensorProduct
    with pytest.raises(AttributeError):
        mine.nothing


def test_the_module_can_take_the_place_of_e3nn_o3():
    """In sys.modules, before or after e3nn has been imported: a process of its own for each."""
    pytest.importorskip("e3nn.o3")
    script = """
import sys
{first}
import weft.o3
sys.modules["e3nn.o3"] = weft.o3
import e3nn
e3nn.o3 = weft.o3
from e3nn import o3
from e3nn.o3 import Irreps, ReducedTensorProducts, rand_matrix
import e3nn.o3._reduce, e3nn.nn
assert Irreps is weft.Irreps and o3.Linear is weft.o3.Linear
assert ReducedTensorProducts is e3nn.o3._reduce.ReducedTensorProducts and rand_matrix().shape == (3, 3)
assert not hasattr(o3, "nothing") and not hasattr(o3, "__nothing__") and o3._wigner.__name__ == "e3nn.o3._wigner"
gate = e3nn.nn.Gate("2x0e", [None], "1x0e", [None], "1x1o")
assert Irreps(gate.irreps_out) == "2x0e+1x1o"
"""
    for first in ("", "import e3nn.o3, e3nn.nn"):
        done = subprocess.run([sys.executable, "-W", "ignore", "-c", script.format(first=first)],
                              capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("paths, kahan, most", [
    (1, False, 3e-7), (4, False, 4.5e-7), (1, True, 8e-8), (4, True, 2.5e-7)])
def test_sums_over_edges_are_short_chains(paths, kahan, most):
    """In f32, with 8 edges a node and 64 channels that are mixed: chains of 64 and 8, not one of 512."""
    irreps = "64x0e+16x1o" if paths == 4 else "64x0e"
    instructions = [(0, 0, 0, "uvw", True), (0, 1, 1, "uvw", True), (1, 0, 1, "uvw", True), (1, 1, 0, "uvw", True)]
    rows, cols = torch.arange(200).repeat_interleave(8), torch.randint(200, (1600,))
    made = torch.Generator().manual_seed(1)

    def module(dtype, **more):
        return weft.TensorProductConv(weft.TPProblem(
            irreps, "1x0e+1x1o", irreps, instructions[:paths], irrep_dtype=dtype, weight_dtype=dtype), **more)

    fast, exact = module(torch.float32, kahan=kahan), module(torch.float64)
    dims = (200, fast.config.irreps_in1.dim), (1600, 4), (fast.weight_numel,)
    operands = [torch.rand(*d, generator=made) for d in dims]
    wanted = exact(*(x.double() for x in operands), rows, cols)
    assert (fast(*operands, rows, cols) - wanted).abs().max() < most * wanted.abs().max()
