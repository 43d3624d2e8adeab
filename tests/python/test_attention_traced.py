# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""weft.attention, weft.paged_attention and weft.nn.SparseAttention compiled, exported and under vmap."""

import copy

import pytest

torch = pytest.importorskip("torch")

import weft  # noqa: E402

MASKS = [lambda: None, lambda: weft.masks.band(40, 7), lambda: weft.masks.longformer(40, 3, 2),
         lambda: weft.masks.of(torch.rand(40, 40, generator=torch.Generator().manual_seed(2)) < 0.3)]
CASES = [(mask, options) for mask in MASKS for options in ({},)] + [
    (MASKS[1], dict(num_kv_heads=2)), (MASKS[1], dict(dropout=0.25)), (MASKS[0], dict(bias=False, scale=0.5))]


def traced_layer(mask, options, dtype=torch.float32):
    torch.manual_seed(6)
    return weft.nn.SparseAttention(32, 4, mask(), **options).to(dtype)


@pytest.mark.parametrize("at", range(len(CASES)))
def test_the_layer_compiles_whole(at):
    layer, x = traced_layer(*CASES[at]), torch.randn(2, 40, 32)
    torch._dynamo.reset()
    compiled = torch.compile(copy.deepcopy(layer), fullgraph=True, backend="aot_eager", dynamic=at == 1)
    got = []
    for f in (layer, compiled):
        torch.manual_seed(8)
        a = x.clone().requires_grad_()
        y = f(a)
        y.square().sum().backward()
        got.append((y.detach(), a.grad))
    for a, b in zip(*got):
        assert torch.allclose(a, b, atol=1e-4)
    torch.manual_seed(8)
    want = layer(torch.cat([x, x[:1]]))
    torch.manual_seed(8)
    assert torch.allclose(compiled(torch.cat([x, x[:1]])), want, atol=1e-5)  # another batch


@pytest.mark.parametrize("at", range(len(CASES)))
def test_the_layer_is_exported_with_its_mask(at, tmp_path):
    layer, x = traced_layer(*CASES[at]).eval(), torch.randn(2, 40, 32)
    program = torch.export.export(layer, (x,), dynamic_shapes=({0: torch.export.Dim("batch", min=2)},))
    torch.export.save(program, tmp_path / "layer.pt2")
    again = torch.export.load(tmp_path / "layer.pt2").module()
    for a in (x, torch.randn(5, 40, 32)):
        assert torch.allclose(again(a), layer(a), atol=1e-5)


@pytest.mark.parametrize("at", [0, 1, 3, 4])
def test_the_layer_vmaps(at):
    layer, x = traced_layer(*CASES[at], torch.float64), torch.randn(3, 2, 40, 32, dtype=torch.float64)
    want = torch.stack([layer(one) for one in x])
    assert torch.allclose(torch.func.vmap(layer)(x), want, atol=1e-12)
    grads = torch.func.vmap(torch.func.grad(lambda a: layer(a).square().sum()))(x)
    each = [torch.func.grad(lambda a: layer(a).square().sum())(one) for one in x]
    assert torch.allclose(grads, torch.stack(each), atol=1e-10)


@pytest.mark.parametrize("mask", [MASKS[0], MASKS[1], lambda: weft.masks.longformer(1200, 3, 2)])
def test_lengths_in_compiled_code(mask):
    """Patterns and pieces depend on the lengths, which are those of the call."""
    mask = mask()
    n = 40 if mask is None else mask.shape[0]
    q, k, v = (torch.randn(3, 2, n, 16) for _ in range(3))
    torch._dynamo.reset()
    f = torch.compile(lambda q, lengths: weft.attention(q, k, v, mask, lengths=lengths), fullgraph=True,
                      backend="aot_eager")
    for lengths in ([n, n // 2, 3], [n // 3, 0, n]):
        lengths = torch.tensor(lengths)
        assert torch.allclose(f(q, lengths), weft.attention(q, k, v, mask, lengths=lengths), atol=1e-5)
    with pytest.raises(Exception, match="lengths|tokens"):
        f(q, torch.tensor([n + 1, 1, 1]))


def test_pages_in_compiled_code():
    q, kc, vc = torch.randn(2, 4, 8), torch.randn(6, 2, 4, 8), torch.randn(6, 2, 4, 8)
    torch._dynamo.reset()
    f = torch.compile(lambda t, n: weft.paged_attention(q, kc, vc, t, n), fullgraph=True, backend="aot_eager")
    for table, n in (([[1, 2, 0], [5, 4, 3]], [9, 3]), ([[0, 1, 2], [2, 1, 0]], [0, 12])):
        table, n = torch.tensor(table), torch.tensor(n)
        assert torch.allclose(f(table, n), weft.paged_attention(q, kc, vc, table, n), atol=1e-5)


def test_operators_of_masks_tell_their_shapes():
    from weft import _torch_attention

    none = torch.empty(0, dtype=torch.int64)
    for lengths in ([none, none], [torch.tensor([40, 20]), torch.tensor([40, 7])]):
        mask = weft.masks.band(40, 7)
        f = _torch_attention.Facts(*_torch_attention._facts(mask.number, 40, 40, "f32"))
        torch.library.opcheck(torch.ops.weft.mask_blocks.default, (none, none, *lengths, mask.source, 40, 40, 1, False, False, 2,
                                                                   weft.masks.most("f32"), f.w, f.split, f.pieces,
                                                                   f.patterns))
    torch.library.opcheck(torch.ops.weft.mask_random.default, (torch.tensor(3), True, 10))
    torch.library.opcheck(torch.ops.weft.mask_pages.default,
                          (torch.tensor([[1, 2], [0, 0]]), torch.tensor([5, 1]), 4, 4))


def test_operands_of_several_types_in_autocast():
    q, k, v = (torch.randn(2, 40, 8, generator=torch.Generator().manual_seed(i)) for i in range(3))
    want = weft.attention(q, k, v)
    with torch.autocast("cpu", torch.bfloat16):
        got = weft.attention(q.bfloat16(), k, v.bfloat16())
    assert got.dtype == torch.float32 and torch.allclose(got, want, atol=0.03)
    with pytest.raises(weft.ArgumentError, match="k: expected bf16, as q is"):
        weft.attention(q.bfloat16(), k, v)
