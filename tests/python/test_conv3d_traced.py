# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""Layers of sparse convolution compiled, exported and under vmap: kernel maps are made inside of the traced code."""

import copy

import pytest

torch = pytest.importorskip("torch")

import weft  # noqa: E402
import weft.nn as wn  # noqa: E402

SHAPE, BATCH = (9, 8, 10), 2


def cloud(n, seed=0, channels=4, dtype=torch.float32):
    g = torch.Generator().manual_seed(seed)
    places = torch.randperm(BATCH * 9 * 8 * 10, generator=g)[:n].sort().values
    indices = torch.stack(torch.unravel_index(places, (BATCH, *SHAPE)), 1).int()
    return torch.randn(n, channels, generator=g, dtype=dtype), indices


class Net(torch.nn.Module):
    def __init__(self, *layers):
        super().__init__()
        self.layers = wn.SparseSequential(*layers)

    def forward(self, features, indices):
        out = self.layers(wn.SparseConvTensor(features, indices, SHAPE, BATCH))
        return out.features, out.indices


NETS = {
    "SubMConv3d": lambda: Net(wn.SubMConv3d(4, 5, 3, indice_key="a"), torch.nn.ReLU(),
                              wn.SubMConv3d(5, 3, 3, bias=False, indice_key="a")),
    "SparseConv3d": lambda: Net(wn.SparseConv3d(4, 5, 3, stride=2, padding=1), wn.SparseConv3d(5, 3, 2)),
    "SparseConvTranspose3d": lambda: Net(wn.SparseConvTranspose3d(4, 5, 3, stride=2, output_padding=1)),
    "SparseInverseConv3d": lambda: Net(wn.SparseConv3d(4, 5, 2, stride=2, indice_key="down"), wn.SubMConv3d(5, 5, 3),
                                       wn.SparseInverseConv3d(5, 3, 2, indice_key="down")),
}


@pytest.fixture(params=list(NETS))
def net(request):
    torch.manual_seed(1)
    return NETS[request.param]()


def test_compile(net):
    torch._dynamo.reset()
    compiled = torch.compile(copy.deepcopy(net), fullgraph=True, backend="aot_eager")
    for seed, n in ((0, 60), (1, 60), (2, 90)):
        x, indices = cloud(n, seed)
        got = []
        for f in (net, compiled):
            a = x.clone().requires_grad_()
            y, places = f(a, indices)
            y.square().sum().backward()
            got.append((y.detach(), places, a.grad))
        for a, b in zip(*got):
            assert a.shape == b.shape and torch.allclose(a, b, atol=1e-4)


def test_export(net, tmp_path):
    x, indices = cloud(60)
    n = torch.export.Dim("n", min=2)
    program = torch.export.export(net, (x, indices), dynamic_shapes=({0: n}, {0: n}))
    torch.export.save(program, tmp_path / "net.pt2")
    again = torch.export.load(tmp_path / "net.pt2").module()
    for given in ((x, indices), cloud(90, 2)):
        for a, b in zip(again(*given), net(*given)):
            assert torch.allclose(a, b, atol=1e-5)


def test_vmap(net):
    x, indices = cloud(60, dtype=torch.float64)
    net = net.double()
    many = torch.stack([x, 2 * x, x + 1])
    got = torch.func.vmap(lambda a: net(a, indices)[0])(many)
    assert torch.allclose(got, torch.stack([net(a, indices)[0] for a in many]), atol=1e-12)
    grads = torch.func.vmap(torch.func.grad(lambda a: net(a, indices)[0].square().sum()))(many)
    each = [torch.func.grad(lambda a: net(a, indices)[0].square().sum())(a) for a in many]
    assert torch.allclose(grads, torch.stack(each), atol=1e-10)


def test_what_is_wrong_is_named_by_the_run():
    torch._dynamo.reset()
    f = torch.compile(NETS["SubMConv3d"](), fullgraph=True, backend="aot_eager")
    x, indices = cloud(20)
    f(x, indices)
    indices[3] = indices[7]
    with pytest.raises(Exception, match="voxel"):
        f(x, indices)


def test_the_operators_tell_their_shapes():
    _, indices = cloud(30)
    for kind, stride in ((0, 1), (1, 2), (2, 2)):
        settings = [*SHAPE, 3, 3, 3, *[stride] * 3, 0, 0, 0, 1, 1, 1, 0, 0, 0]
        torch.library.opcheck(torch.ops.weft.kernel_map.default, (indices, kind, settings, BATCH))
    m = weft.kernel_map(indices, 3, shape=SHAPE)
    arrays = [torch.tensor(m.arrays[k]) for k in ("G.start", "G.d", "E.start", "E.r", "E.v")]
    torch.library.opcheck(torch.ops.weft.kernel_map_turn.default, (arrays, m.n_in, m.n_out, m.offsets, m.strip))


def test_operands_of_several_types_in_autocast():
    net = NETS["SubMConv3d"]()
    x, indices = cloud(40)
    want = net(x, indices)[0]
    with torch.autocast("cpu", torch.bfloat16):
        got = net(x.bfloat16(), indices)[0]
    assert got.dtype == torch.float32 and torch.allclose(got, want, atol=0.05)


def test_an_export_leaves_nothing_in_the_map():
    """The first call of a map in a trace: its tensors are not kept for calls outside."""
    index = torch.tensor([[0, i, i % 3, i % 2] for i in range(8)], dtype=torch.int32)

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.map, self.weight = weft.kernel_map(index, 3), torch.nn.Parameter(torch.ones(5, 3, 3, 3, 4))

        def forward(self, x):
            return weft.conv3d(x, self.weight, self.map)

    model, x = Model(), torch.arange(32.0).reshape(8, 4)
    program = torch.export.export(model, (x,))
    want = weft.conv3d(x, model.weight, weft.kernel_map(index, 3))
    assert torch.equal(model(x), want) and torch.equal(program.module()(x), want)
