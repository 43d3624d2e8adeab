# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""A small MACE model, stock and accelerated: energy, forces, stress, and gradients of a force loss; then
its symmetric contractions, for attributes of nodes of every kind."""

import copy
import warnings

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="MACE: torch is not installed")
torch.serialization.add_safe_globals([slice])  # which e3nn 0.4 has in its constants
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    modules = pytest.importorskip("mace.modules", reason="MACE cannot be imported",
                                  exc_type=(ImportError, AttributeError))
    from e3nn import o3
    from mace import data as mace_data
    from mace import tools
    from mace.modules.symmetric_contraction import SymmetricContraction
    from mace.tools import torch_geometric

from ase.build import bulk  # noqa: E402

import weft  # noqa: E402

ELEMENTS = [8, 14]


@pytest.fixture
def double():
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(before)


def make():
    interaction = modules.interaction_classes["RealAgnosticResidualInteractionBlock"]
    torch.manual_seed(0)
    return modules.ScaleShiftMACE(
        r_max=4.0, num_bessel=4, num_polynomial_cutoff=5, max_ell=2, interaction_cls=interaction,
        interaction_cls_first=interaction, num_interactions=2, num_elements=2,
        hidden_irreps=o3.Irreps("4x0e+4x1o"), MLP_irreps=o3.Irreps("4x0e"),
        gate=torch.nn.functional.silu, atomic_energies=np.zeros(2), avg_num_neighbors=10,
        atomic_numbers=ELEMENTS, correlation=3, radial_type="bessel", atomic_inter_scale=1.0,
        atomic_inter_shift=0.0)


def structure(seed):
    atoms = bulk("Si", cubic=True)
    atoms.rattle(0.05, seed=seed)
    atoms.numbers[::3] = 8
    return mace_data.AtomicData.from_config(mace_data.config_from_atoms(atoms), cutoff=4.0,
                                            z_table=tools.AtomicNumberTable(ELEMENTS))


def batch(structures=1):
    some = [structure(seed) for seed in range(1, structures + 1)]
    return next(iter(torch_geometric.dataloader.DataLoader(some, batch_size=len(some)))).to_dict()


def soft(n, width=2):
    """Attributes that are mixtures of elements."""
    return torch.softmax(torch.randn(n, width, generator=torch.Generator().manual_seed(4)), 1)


@pytest.mark.parametrize("fuse", [None, True])
def test_results_and_training_gradients(double, fuse):
    stock = make()
    fast = copy.deepcopy(stock)
    report = weft.accelerate(fast, fuse_radial=fuse)
    assert str(report).count(" fused") == 2
    assert [r.what.split(",")[0] for r in report.replaced] == ["convolution over edges"] * 2 + [
        "symmetric contraction"] * 2
    assert list(fast.state_dict()) == list(stock.state_dict())
    want, got = (m(batch(), training=True, compute_stress=True) for m in (stock, fast))
    for key in ("energy", "forces", "stress"):
        torch.testing.assert_close(got[key], want[key], rtol=1e-10, atol=1e-12)
    for out in (want, got):
        (out["forces"] ** 2).sum().backward()
    some = 0
    for p, q in zip(fast.parameters(), stock.parameters()):
        if q.grad is not None:
            assert (p.grad - q.grad).abs().max() <= 1e-9 * q.grad.abs().max() + 1e-14
            some += bool(q.grad.any())
    assert some > 10


@pytest.mark.parametrize("attributes", ["one-hot", "soft"])
def test_batches_of_structures(double, attributes):
    stock = make()
    fast = copy.deepcopy(stock)
    weft.accelerate(fast)
    data = batch(3)
    if attributes == "soft":
        data["node_attrs"] = soft(len(data["node_attrs"]))
    want, got = (m({**data}, compute_stress=True) for m in (stock, fast))
    assert want["energy"].shape == (3,)
    for key in ("energy", "forces", "stress"):
        torch.testing.assert_close(got[key], want[key], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("attributes", ["one-hot", "soft"])
def test_gradients_by_node_attributes(double, attributes):
    """Of the first order, and of the second: by positions, attributes and parameters."""
    stock = make()
    fast = copy.deepcopy(stock)
    weft.accelerate(fast)
    results = []
    for model in (stock, fast):
        data = batch(2)
        if attributes == "soft":
            data["node_attrs"] = soft(len(data["node_attrs"]))
        y = data["node_attrs"].requires_grad_()
        energy = model(data, training=True)["energy"].sum()
        first, = torch.autograd.grad(energy, y, create_graph=True)
        direction = torch.linspace(-1, 1, y.numel()).reshape(y.shape)
        second = torch.autograd.grad((first * direction).sum(), [data["positions"], y, *model.parameters()],
                                     allow_unused=True)
        results.append([first, *second])
    some = 0
    for want, got in zip(*results):
        assert (want is None) == (got is None)
        if want is not None:
            torch.testing.assert_close(got, want, rtol=1e-9, atol=1e-11 * float(want.detach().abs().max()))
            some += bool(want.any())
    assert some > 10


def test_restore_torchscript_and_prepare(double):
    """What MACE's deployment does to a model gives the stock one."""
    from e3nn.util import jit
    from mace.tools.compile import prepare

    stock = make()
    fast = copy.deepcopy(stock)
    report = weft.accelerate(fast)
    want = stock(batch())["forces"]
    assert len(weft.restore(fast).replaced) == len(report.replaced) == 4
    # by name: a copy of a torch.fx module has a class of its own
    kinds = [[f"{type(m).__module__}.{type(m).__qualname__}" for m in model.modules()] for model in (stock, fast)]
    assert kinds[0] == kinds[1] and not any("conv_fusion" in m.__dict__ for m in fast.modules())
    assert torch.equal(fast(batch())["forces"], want)
    for make_other in (jit.compile, lambda model: prepare(lambda: model)()):
        model = copy.deepcopy(stock)
        weft.accelerate(model)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            other = make_other(model)
        if make_other is jit.compile:
            assert [w for w in said if "weft.restore(model)" in str(w.message)]
        torch.testing.assert_close(other(batch())["forces"], want, rtol=1e-10, atol=1e-12)


class Small:
    """A symmetric contraction, stock and replaced."""

    def __init__(self, elements=3, correlation=3):
        torch.manual_seed(1)
        self.stock = SymmetricContraction(o3.Irreps("2x0e+2x1o"), o3.Irreps("2x0e+2x1o"), correlation,
                                          num_elements=elements)
        self.fast = copy.deepcopy(self.stock)
        self.elements = elements

    def replace(self):
        return weft.accelerate(torch.nn.ModuleList([self.fast]))

    def items(self, n=5):
        g = torch.Generator().manual_seed(2)
        return torch.randn(n, 2, 4, generator=g), torch.eye(self.elements)[torch.arange(n) % self.elements]


ATTRIBUTES = {
    "one-hot": lambda y: y, "soft": lambda y: soft(*y.shape), "none": torch.zeros_like,
    "scaled": lambda y: 2 * y, "negative": lambda y: -y, "two ones": lambda y: y + y.roll(1, 1),
    "sums to 1": lambda y: y + torch.tensor([0.5, -0.5, 0.0]) * (1 - y),
    "one row": lambda y: torch.cat([y[:-1], y[-1:] / 2])}


@pytest.mark.parametrize("name", ATTRIBUTES)
@pytest.mark.parametrize("grad", [False, True])
def test_contractions_are_linear_in_attributes(double, name, grad):
    bed = Small()
    assert bed.replace()
    x, y = bed.items()
    y = ATTRIBUTES[name](y)
    if not grad:
        with torch.no_grad():
            torch.testing.assert_close(bed.fast(x, y), bed.stock(x, y), rtol=1e-12, atol=1e-13)
        return
    results = []
    for module in (bed.stock, bed.fast):
        inputs = [x.clone().requires_grad_(), y.clone().requires_grad_(), *module.parameters()]
        inputs = [p for p in inputs if p.requires_grad]
        out = [module(inputs[0], inputs[1])]
        for order in range(3):
            f = sum((z * torch.linspace(-1, 2, z.numel()).reshape(z.shape)).sum() for z in out)
            out = torch.autograd.grad(f, inputs, create_graph=True, allow_unused=True)
            out = [torch.zeros_like(p) if g is None else g for p, g in zip(inputs, out)]
            results.append(out)
    for want, got in zip(results[:3], results[3:]):
        for a, b in zip(got, want):
            torch.testing.assert_close(a, b, rtol=1e-11, atol=1e-12 * (1 + float(b.detach().abs().max())))


def test_one_hot_attributes_take_the_weights_of_their_element(double, monkeypatch):
    """Without a product of matrices, unless a gradient by them can be asked for."""
    from weft.models import mace as ours

    bed, texts = Small(), []
    bed.replace()
    monkeypatch.setattr(ours, "run", lambda text, arrays: texts.append(text) or [arrays[0]])
    x, y = bed.items()
    bed.fast(x.requires_grad_(), y)
    bed.fast(x, y.requires_grad_())
    with torch.no_grad():
        bed.fast(x, y)
    assert ["weights=item" in text for text in texts] == [False, True, False]


@pytest.mark.parametrize("attributes", ["one-hot", "soft"])
def test_compiled_contractions(double, attributes):
    bed = Small()
    bed.replace()
    x, y = bed.items()
    compiled = torch.compile(bed.fast, backend="aot_eager", fullgraph=True)
    y = ATTRIBUTES[attributes](y)
    for needs in (False, True):
        x, y = x.detach().requires_grad_(), y.detach().requires_grad_(needs)
        inputs = [x, y][:1 + needs]
        want, got = (torch.autograd.grad(f(x, y).square().sum(), inputs) for f in (bed.stock, compiled))
        for a, b in zip(got, want):
            torch.testing.assert_close(a, b, rtol=1e-11, atol=1e-12)


def test_transformed_contractions(double):
    bed = Small()
    bed.replace()
    x, y = bed.items()
    for f in (lambda g: torch.func.grad(lambda y: g(x, y).square().sum())(y),
              lambda g: torch.func.vmap(lambda y: g(x, y))(torch.stack([y, soft(*y.shape)]))):
        torch.testing.assert_close(f(bed.fast), f(bed.stock), rtol=1e-11, atol=1e-12)


def test_a_contraction_is_not_judged_by_the_weights_that_it_has(double):
    """Weights of 0, or of no numbers, would hide that another basis gives other results."""
    for value in (0.0, float("nan")):
        bed = Small()
        with torch.no_grad():
            for p in bed.fast.parameters():
                p.fill_(value)
        for part in bed.fast.contractions:
            part.U_matrix_3.mul_(1.5)
        report = bed.replace()
        assert not report and type(bed.fast) is SymmetricContraction


def test_blocks_of_others_keep_what_they_compute(double):
    """A block with a forward of its own may use the weights of edges in its own way."""

    class Block(modules.interaction_classes["RealAgnosticResidualInteractionBlock"]):
        def forward(self, node_attrs, node_feats, edge_attrs, edge_feats, edge_index, **more):
            weights = torch.tanh(self.conv_tp_weights(edge_feats))
            mji = self.conv_tp(self.linear_up(node_feats)[edge_index[0]], edge_attrs, weights)
            message = torch.zeros(len(node_feats), mji.shape[1]).index_add(0, edge_index[1], mji)
            return self.reshape(self.linear(message)), self.skip_tp(node_feats, node_attrs)

    stock = make()
    for block in stock.interactions:
        block.__class__ = Block
    fast = copy.deepcopy(stock)
    report = weft.accelerate(fast, fuse_radial=True)
    assert {r.what.split(",")[0] for r in report.replaced} == {"symmetric contraction"}
    want, got = (m(batch())["forces"] for m in (stock, fast))
    torch.testing.assert_close(got, want, rtol=1e-10, atol=1e-12)


def test_models_that_are_not_on_the_cpu_stay_as_they_are():
    model = make().to("meta")
    report = weft.accelerate(model)
    assert not report and "is on meta" in report.why
    assert not any("weft" in type(m).__module__ for m in model.modules())
