# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""Sparse convolutions of tensors against dense ones of torch; layers with the names of spconv."""

import copy
import inspect
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

import weft  # noqa: E402
import weft.nn as wn  # noqa: E402

F = torch.nn.functional
SHAPE, BATCH = (6, 5, 7), 2
TOLERANCE = {torch.float64: 1e-12, torch.float32: 1e-6}


def cloud(channels, dtype=torch.float64, part=0.4, seed=0):
    g = torch.Generator().manual_seed(seed)
    indices = torch.nonzero(torch.rand(BATCH, *SHAPE, generator=g) < part).int()
    indices = indices[torch.randperm(len(indices), generator=g)]
    return indices, torch.randn(len(indices), channels, generator=g, dtype=dtype).requires_grad_()


def at(indices):
    return tuple(indices.long().unbind(1))


def grid(indices, features, shape=SHAPE):
    out = features.new_zeros(BATCH, *shape, features.shape[1])
    return out.index_put(at(indices), features).movedim(-1, 1)


def compare(got, want, dtype):
    """Values and gradients of pairs (result, inputs)."""
    (y, inputs), (z, others) = got, want
    g = torch.randn(y.shape, generator=torch.Generator().manual_seed(5), dtype=dtype)
    pairs = [(y, z), *zip(torch.autograd.grad(y, inputs, g), torch.autograd.grad(z, others, g))]
    for a, b in pairs:
        assert (a - b).abs().max() <= TOLERANCE[dtype] * max(1, b.abs().max())


CASES = [dict(kernel_size=3), dict(kernel_size=(1, 3, 5), dilation=(1, 1, 2)),
         dict(kernel_size=3, stride=2, padding=1, subm=False), dict(kernel_size=2, stride=(2, 1, 2), subm=False),
         dict(kernel_size=3, padding=1, dilation=2, subm=False),
         dict(kernel_size=3, stride=2, padding=1, output_padding=1, subm=False, transposed=True),
         dict(kernel_size=(2, 3, 2), stride=2, subm=False, transposed=True)]


@pytest.mark.parametrize("dtype, bias", [(torch.float64, True), (torch.float32, False)])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_equals_dense_convolution(case, dtype, bias):
    indices, x = cloud(3, dtype)
    m = weft.kernel_map(indices, **case, shape=SHAPE, batch_size=BATCH)
    w = torch.randn(4, *m.kernel_size, 3, dtype=dtype, requires_grad=True)
    b = torch.randn(4, dtype=dtype, requires_grad=True) if bias else None
    settings = {k: case.get(k, 1) for k in ("stride", "dilation")}
    padding = case.get("padding", 0)
    if case.get("subm", True):
        d = case.get("dilation", 1)
        padding = tuple((d if isinstance(d, int) else d[a]) * (m.kernel_size[a] // 2) for a in range(3))
    if case.get("transposed"):  # of torch: (in, out, ...)
        want = F.conv_transpose3d(grid(indices, x), w.movedim(-1, 0), b, padding=padding,
                                  output_padding=case.get("output_padding", 0), **settings)
    else:
        want = F.conv3d(grid(indices, x), w.movedim(-1, 1), b, padding=padding, **settings)
    assert m.shape == tuple(want.shape[2:])
    inputs = [x, w] + [b] * bias
    compare((weft.conv3d(x, w, m, b), inputs), (want.movedim(1, -1)[at(m.coords)], inputs), dtype)
    elsewhere = torch.ones(want.shape[:1] + want.shape[2:], dtype=torch.bool).index_put(at(m.coords), torch.tensor(False))
    if not case.get("subm", True):  # no place that has a value is left out
        rest = want.movedim(1, -1)[elsewhere]
        assert torch.equal(rest, torch.zeros_like(rest) + (0 if b is None else b))


@pytest.mark.parametrize("case", [CASES[0], CASES[2], CASES[5]], ids=str)
def test_gradcheck_and_gradgradcheck(case):
    indices, x = cloud(2, part=0.05)
    m = weft.kernel_map(indices, **case, shape=SHAPE)
    w = torch.randn(3, *m.kernel_size, 2, dtype=torch.float64, requires_grad=True)
    b = torch.randn(3, dtype=torch.float64, requires_grad=True)
    for map, features in ((m, x), (m.inverse(), torch.randn(m.n_out, 2, dtype=torch.float64, requires_grad=True))):
        f = lambda x, w, b: weft.conv3d(x, w, map, b)  # noqa: E731
        assert torch.autograd.gradcheck(f, (features, w, b))
        assert torch.autograd.gradgradcheck(f, (features, w, b))


def test_inverse_goes_back_by_the_same_pairs():
    indices, x = cloud(3)
    m = weft.kernel_map(indices, 3, 2, 1, subm=False, shape=SHAPE)
    y = torch.randn(m.n_out, 4, dtype=torch.float64, requires_grad=True)
    w = torch.randn(3, 3, 3, 3, 4, dtype=torch.float64, requires_grad=True)
    want = F.conv_transpose3d(grid(m.coords, y, m.shape), w.movedim(-1, 0), stride=2, padding=1,
                              output_padding=[(n + 1) % 2 for n in SHAPE])
    compare((weft.conv3d(y, w, m.inverse()), [y, w]), (want.movedim(1, -1)[at(indices)], [y, w]), torch.float64)


def test_results_have_the_same_bits_for_any_number_of_threads():
    g = torch.Generator().manual_seed(0)
    indices = torch.nonzero(torch.rand(1, 24, 20, 16, generator=g) < 0.5).int()
    m = weft.kernel_map(indices, 3)
    x = torch.randn(m.n_in, 16, generator=g, requires_grad=True)
    w = torch.randn(32, 3, 3, 3, 16, generator=g, requires_grad=True)
    dy = torch.randn(m.n_out, 32, generator=g)
    before, results = torch.get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            y = weft.conv3d(x, w, m)
            results.append([y, *torch.autograd.grad(y, (x, w), dy)])
    finally:
        torch.set_num_threads(before)
    assert m.strips > 4
    for other in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(results[0], other))


@pytest.mark.parametrize("dtype, tolerance", [(torch.float16, 2e-3), (torch.bfloat16, 2e-2)])
def test_16_bit_features(dtype, tolerance):
    indices, x = cloud(8)
    m = weft.kernel_map(indices, 3)
    w = torch.randn(4, 3, 3, 3, 8, dtype=torch.float64)
    x, w = x.detach().to(dtype), w.to(dtype)
    y, want = weft.conv3d(x, w, m), weft.conv3d(x.double(), w.double(), m)
    assert y.dtype == dtype and (y.double() - want).abs().max() <= tolerance * want.abs().max()


def tensor(channels, dtype=torch.float64, seed=0):
    indices, x = cloud(channels, dtype, seed=seed)
    return wn.SparseConvTensor(x, indices, SHAPE, BATCH)


def test_a_network_of_all_layers_equals_the_dense_one():
    torch.manual_seed(0)
    net = wn.SparseSequential(
        wn.SubMConv3d(3, 6, 3, indice_key="a"), torch.nn.BatchNorm1d(6), torch.nn.ReLU(),
        wn.SparseConv3d(6, 8, 3, 2, 1, indice_key="down"), wn.SubMConv3d(8, 8, 3, bias=False),
        wn.SparseInverseConv3d(8, 5, 3, indice_key="down"), wn.SubMConv3d(5, 4, 3, indice_key="a"), wn.ToDense()).double()
    x = tensor(3)
    out = net(x)
    assert out.shape == (BATCH, 4, *SHAPE)
    assert set(x.indice_dict) == {"a", "down"}

    place = at(x.indices)
    pick = lambda dense, where: dense.movedim(1, -1)[where]  # noqa: E731
    conv = lambda layer, dense, **more: F.conv3d(dense, layer.weight.movedim(-1, 1), layer.bias, **more)  # noqa: E731
    h = net[2](net[1](pick(conv(net[0], grid(x.indices, x.features), padding=1), place)))
    coarse = x.find_indice_pair("down").coords
    size = x.find_indice_pair("down").shape
    h = pick(conv(net[3], grid(x.indices, h), stride=2, padding=1), at(coarse))
    h = pick(conv(net[4], grid(coarse, h, size), padding=1), at(coarse))
    h = F.conv_transpose3d(grid(coarse, h, size), net[5].weight.movedim(-1, 0), net[5].bias, stride=2, padding=1,
                           output_padding=[(n + 1) % 2 for n in SHAPE])
    h = pick(conv(net[6], grid(x.indices, pick(h, place)), padding=1), place)
    want = grid(x.indices, h)
    parameters = [x.features, *net.parameters()]
    compare((out, parameters), (want, parameters), torch.float64)


def test_tensors_of_voxels_are_taken_apart_and_made():
    x = tensor(3)
    dense = x.dense(channels_first=False)
    back = wn.SparseConvTensor.from_dense(dense)
    order = torch.argsort((x.indices.long() * torch.tensor([10 ** 6, 10 ** 4, 100, 1])).sum(1))
    assert torch.equal(back.indices, x.indices[order]) and torch.equal(back.features, x.features[order])
    assert (back.spatial_shape, back.batch_size) == (list(SHAPE), BATCH)
    some = x.select_by_index(torch.arange(0, len(x.indices), 3))
    assert torch.equal(some.features, x.features[::3]) and some.indice_dict is not x.indice_dict
    assert torch.equal(x.minus().features, -x.features)
    assert x.shadow_copy().indice_dict is x.indice_dict
    with pytest.raises(weft.ArgumentError, match="x: expected a floating-point tensor"):
        wn.SparseConvTensor.from_dense(dense[0])
    net = wn.SparseSequential(wn.SubMConv3d(3, 4, 3), act=torch.nn.ReLU(), last=wn.ToDense("grid")).double()
    assert net(x).shape == (BATCH, 4, *SHAPE) and isinstance(net.act, torch.nn.ReLU)


def test_an_empty_cloud_goes_through_all_layers():
    net = wn.SparseSequential(wn.SubMConv3d(3, 6, 3), wn.SparseConv3d(6, 8, 3, 2, 1, indice_key="down"),
                              wn.SparseInverseConv3d(8, 5, 3, indice_key="down"))
    x = torch.empty(0, 3, requires_grad=True)
    out = net(wn.SparseConvTensor(x, torch.empty(0, 4, dtype=torch.int32), SHAPE, BATCH))
    assert out.features.shape == (0, 5) and out.spatial_shape == list(SHAPE)
    out.features.sum().backward()
    assert x.grad.shape == x.shape
    assert all(p.grad is not None and not p.grad.any() for p in net.parameters())


def test_arguments_are_those_of_spconv():
    spconv = pytest.importorskip("spconv.pytorch")
    for name in ("SubMConv3d", "SparseConv3d", "SparseConvTranspose3d", "SparseInverseConv3d", "SparseConvTensor"):
        ours, theirs = (list(inspect.signature(getattr(of, name).__init__).parameters.items())
                        for of in (wn, spconv))
        for (a, p), (b, q) in zip(ours, theirs):
            assert a == b and q.default in (p.default, inspect.Parameter.empty), (name, a)
        assert len(ours) >= len(theirs), name


def test_layers_with_one_key_share_one_map():
    x = tensor(3)
    a, b = (wn.SubMConv3d(3, 3, 3, indice_key="k").double() for _ in "ab")
    y = b(a(x))
    kept = x.find_indice_pair("k")
    assert y.find_indice_pair("k") is kept and len(x.indice_dict) == 1
    with pytest.raises(weft.ArgumentError, match="indice_key: 'k' names a map of another kernel"):
        wn.SubMConv3d(3, 3, 5, indice_key="k").double()(y)
    other = wn.SparseConvTensor(*cloud(3, seed=9)[::-1], SHAPE, BATCH, indice_dict=x.indice_dict)
    with pytest.raises(weft.ArgumentError, match="or of other voxels"):
        a(other)


NAMES = [(wn.SubMConv3d, (4, 6, (1, 3, 5))), (wn.SparseConv3d, (4, 6, 3, 2)),
         (wn.SparseConvTranspose3d, (4, 6, 2, 2)), (wn.SparseInverseConv3d, (4, 6, 3, "key"))]


@pytest.mark.parametrize("layer, arguments", NAMES)
def test_parameters_have_the_names_and_shapes_of_spconv(layer, arguments):
    one = layer(*arguments)
    k = arguments[2] if isinstance(arguments[2], tuple) else (arguments[2],) * 3
    assert {n: tuple(p.shape) for n, p in one.state_dict().items()} == {"weight": (6, *k, 4), "bias": (6,)}
    without = layer(*arguments, bias=False)
    assert without.bias is None and list(without.state_dict()) == ["weight"]
    state = {"weight": torch.randn(6, *k, 4), "bias": torch.randn(6)}
    one.load_state_dict(state)
    assert all(torch.equal(one.state_dict()[n], p) for n, p in state.items())
    torch.manual_seed(3)
    one.reset_parameters()
    assert 0 < one.weight.abs().max() <= 1 / (4 * k[0] * k[1] * k[2]) ** 0.5
    assert "kernel_size" in repr(one)


def test_state_dicts_and_results_of_spconv():
    spconv = pytest.importorskip("spconv.pytorch")
    torch.manual_seed(0)

    def network(of):
        return of.SparseSequential(of.SubMConv3d(3, 8, 3, indice_key="a"), torch.nn.ReLU(),
                                   of.SparseConv3d(8, 8, 3, 2, 1, indice_key="d"),
                                   of.SparseInverseConv3d(8, 4, 3, indice_key="d"))

    ours, theirs = network(wn), network(spconv)
    theirs.load_state_dict(ours.state_dict())
    ours.load_state_dict(theirs.state_dict())
    indices, x = cloud(3, torch.float32)
    try:
        want = theirs(spconv.SparseConvTensor(x, indices, list(SHAPE), BATCH))
    except Exception as e:
        pytest.skip(f"spconv does not run here: {e}")
    got = ours(wn.SparseConvTensor(x, indices, SHAPE, BATCH))
    assert torch.equal(want.indices, got.indices)
    assert (want.features - got.features).abs().max() < 1e-5


@pytest.mark.parametrize("make, words", [
    (lambda: wn.SparseConvTensor(torch.ones(2, 3, dtype=torch.int64), torch.zeros(2, 4).int(), SHAPE, 1), "features: expected a floating"),
    (lambda: wn.SparseConvTensor(torch.ones(2, 3), torch.zeros(2, 3).int(), SHAPE, 1), r"indices: expected an integer tensor \(voxels, 4\)"),
    (lambda: wn.SparseConvTensor(torch.ones(3, 3), torch.zeros(2, 4).int(), SHAPE, 1), "features: expected a row for each of the 2 voxels"),
    (lambda: wn.SparseConvTensor(torch.ones(2, 3), torch.zeros(2, 4).int(), (3, 3), 1), "spatial_shape: expected one integer or three"),
    (lambda: wn.SubMConv3d(3, 4, 3)(wn.SparseConvTensor(torch.ones(2, 3), torch.zeros(2, 4).int(), SHAPE, 1)), "indices: voxels 0 and 1 repeat"),
    (lambda: wn.SubMConv3d(3, 4, 3)(wn.SparseConvTensor(torch.ones(1, 3), torch.tensor([[0, 9, 0, 0]]), SHAPE, 1)), r"indices: the first coordinate of voxel 0 is 9.* larger spatial_shape"),
    (lambda: wn.SubMConv3d(3, 4, 3)(wn.SparseConvTensor(torch.ones(1, 3), torch.tensor([[1, 0, 0, 0]]), SHAPE, 1)), r"indices: the batch index of voxel 0 is 1.* larger batch_size"),
    (lambda: wn.SubMConv3d(3, 4, 3)(wn.SparseConvTensor(torch.ones(1, 3).double(), torch.zeros(1, 4).int(), SHAPE, 1)), "input: expected features of torch.float32"),
    (lambda: weft.kernel_map(torch.zeros(1, 4).int().to("meta")), "coords: expected a dense tensor on the CPU, got torch.strided on meta"),
    (lambda: weft.kernel_map(torch.ones(1, 4).int().to_sparse()), "coords: expected a dense tensor on the CPU, got torch.sparse_coo"),
    (lambda: weft.kernel_map(torch.zeros(1, 4).int(), 3, 2, subm=False, output_padding=1), "output_padding: expected 0 without"),
    (lambda: weft.kernel_map(torch.zeros(1, 4).int(), 3, 2, subm=False, transposed=True, output_padding=2), "output_padding: expected less than stride"),
    (lambda: weft.conv3d(torch.ones(1, 3).to_sparse(), torch.ones(4, 27, 3), weft.kernel_map(torch.zeros(1, 4).int())), "x: expected a dense tensor"),
    (lambda: weft.conv3d(torch.ones(1, 3), None, weft.kernel_map(torch.zeros(1, 4).int())), "weight: expected an array"),
    (lambda: wn.SubMConv3d(3, 4, 3)(torch.ones(2, 3)), "input: expected a weft.nn.SparseConvTensor"),
    (lambda: wn.SubMConv3d(5, 4, 3)(tensor(3)), "input: expected 5 channels"),
    (lambda: wn.SubMConv3d(3, 4, 3, groups=3), "groups: expected 1"),
    (lambda: wn.SparseInverseConv3d(3, 4, 3), "indice_key: expected the key"),
    (lambda: wn.SparseInverseConv3d(3, 4, 3, "q")(tensor(3)), "indice_key: expected that of a layer which was run before; keys so far: none"),
    (lambda: weft.conv3d(torch.ones(9, 3), torch.ones(4, 27, 3), weft.kernel_map(cloud(3)[0], 3)), "x: expected a row for each"),
    (lambda: weft.conv3d(cloud(3)[1].float(), torch.ones(4, 27, 3).double(), weft.kernel_map(cloud(3)[0], 3)), "weight: expected elements of f32"),
])
def test_bad_input_is_named(make, words):
    with pytest.raises(weft.ArgumentError, match=words):
        make()


def test_compile_export_vmap_copies():
    indices, x = cloud(4, torch.float32)
    x = x.detach()
    layer = wn.SubMConv3d(4, 5, 3, indice_key="k")
    start = wn.SparseConvTensor(x, indices, SHAPE, BATCH)
    want = layer(start).features
    maps = start.indice_dict

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = layer

        def forward(self, features):
            return self.layer(wn.SparseConvTensor(features, indices, SHAPE, BATCH, indice_dict=maps)).features

    net = Net()
    assert torch.equal(torch.compile(net, fullgraph=True, backend="aot_eager")(x), want)
    assert torch.equal(torch.export.export(net, (x,)).module()(x), want)
    many = torch.func.vmap(net)(torch.stack([x, 2 * x]))
    assert torch.allclose(many[0], want, atol=1e-5) and torch.allclose(many[1], net(2 * x), atol=1e-5)
    for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert torch.equal(other(start).features, want)
    assert pickle.loads(pickle.dumps(maps["k"].map)).pairs == maps["k"].map.pairs


def test_the_example_trains_as_torch_does():
    path = Path(__file__).parents[2] / "examples" / "pointcloud.py"
    out = subprocess.run([sys.executable, str(path), "--steps", "2", "--wide", "4"], capture_output=True, text=True)
    assert out.returncode == 0, out.stderr
    losses = {line.split()[0]: line.split("loss ")[1].split("  ")[0] for line in out.stdout.splitlines() if "loss " in line}
    assert losses["weft"] == losses["torch"]
