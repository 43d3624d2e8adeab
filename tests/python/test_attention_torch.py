# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""weft.attention, weft.paged_attention and weft.nn.SparseAttention on tensors, against torch with dense masks."""

import re

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402
import weft  # noqa: E402
from torch.autograd import gradcheck, gradgradcheck  # noqa: E402
from weft import masks  # noqa: E402


def operands(shape, kv=None, dtype=torch.float64, grad=True, seed=0):
    torch.manual_seed(seed)
    *batch, heads, n, d = shape
    other = (*batch, kv or heads, n, d)
    return [torch.randn(s, dtype=dtype).requires_grad_(grad) for s in (shape, other, other)]


def band(n, w):
    i = torch.arange(n)
    return (i[:, None] - i).abs() <= w


MASKS = [(masks.band(128, 20), band(128, 20)), (masks.band(100, 20), band(100, 20)),
         (masks.longformer(1100, 9, 2), None)]
MASKS[2] = (MASKS[2][0], torch.from_numpy(MASKS[2][0].to_dense()))


@pytest.mark.parametrize("dtype, tolerance", [(torch.float64, 1e-12), (torch.float32, 2e-6)])
@pytest.mark.parametrize("at", range(3), ids=["blocks", "ragged", "pieces"])
def test_results_and_gradients_are_those_of_dense_masks(at, dtype, tolerance):
    mask, dense = MASKS[at]
    q, k, v = operands((2, 4, mask.shape[0], 16), kv=2, dtype=dtype)
    z = weft.attention(q, k, v, mask, enable_gqa=True)
    want = F.scaled_dot_product_attention(q, k, v, attn_mask=dense, enable_gqa=True)
    assert z.shape == want.shape and z.dtype == dtype
    torch.testing.assert_close(z, want, rtol=tolerance, atol=tolerance)
    g = torch.randn_like(want)
    got, wanted = (torch.autograd.grad(x, (q, k, v), g) for x in (z, want))
    for a, b in zip(got, wanted):
        torch.testing.assert_close(a, b, rtol=tolerance, atol=4 * tolerance * float(b.abs().max()))


OPTIONS = {
    "blocks": ((1, 2, 64, 3), None, masks.band(64, 5), {}),
    "one head": ((2, 64, 3), None, masks.band(64, 5), {"scale": 0.3}),
    "ragged": ((2, 1, 10, 2), None, masks.causal(10), {"lengths": np.array([10, 4])}),
    "empty rows": ((1, 9, 2), None, np.eye(9, k=-2, dtype=bool), {}),
    "grouped": ((1, 4, 64, 2), 2, masks.band(64, 3), {"enable_gqa": True}),
    "dropout": ((1, 64, 2), None, masks.band(64, 3), {"dropout": 0.4, "seed": 7}),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_gradients_of_both_orders(name):
    shape, kv, mask, more = OPTIONS[name]
    q, k, v = operands(shape, kv)

    def f(q, k, v):
        return weft.attention(q, k, v, mask, **more)

    fast = {"fast_mode": True}
    assert gradcheck(f, (q, k, v), **fast)
    assert gradgradcheck(f, (q, k, v), **fast)


def test_a_wide_tile_is_in_pieces_and_has_gradients():
    mask = masks.longformer(1100, 3, 1)
    assert mask.plan(1, "f64").split
    q, k, v = operands((1, 1100, 2))
    assert gradcheck(lambda *x: weft.attention(*x, mask), (q, k, v), fast_mode=True)
    assert gradgradcheck(lambda *x: weft.attention(*x, mask), (q, k, v), fast_mode=True)


def test_torch_and_numpy_give_the_same_bits():
    q, k, v = operands((2, 2, 96, 16), dtype=torch.float32, grad=False)
    a = weft.attention(q, k, v, masks.band(96, 10), dropout=0.2, seed=3)
    b = weft.attention(q.numpy(), k.numpy(), v.numpy(), masks.band(96, 10), dropout=0.2, seed=3)
    np.testing.assert_array_equal(a.numpy(), b)


def test_masks_of_torch():
    dense = band(80, 7)
    q, k, v = operands((2, 80, 8), grad=False)
    want = F.scaled_dot_product_attention(q, k, v, attn_mask=dense)
    for mask in (dense, dense.double().to_sparse_csr(), dense.double().to_sparse_coo()):
        torch.testing.assert_close(weft.attention(q, k, v, mask), want, rtol=1e-12, atol=1e-12)


def test_gradients_have_the_same_bits_for_any_number_of_threads():
    results, before = [], torch.get_num_threads()
    q, k, v = operands((1, 3, 256, 16), dtype=torch.float32)
    g = torch.randn_like(q)
    for threads in (1, 2, 3, 7):
        torch.set_num_threads(threads)
        z = weft.attention(q, k, v, masks.band(256, 40))
        results.append(torch.autograd.grad(z, (q, k, v), g))
    torch.set_num_threads(before)
    for r in results[1:]:
        for a, b in zip(r, results[0]):
            assert torch.equal(a, b)


def test_bfloat16():
    q, k, v = operands((2, 64, 16), dtype=torch.bfloat16, grad=False)
    z = weft.attention(q, k, v, masks.causal(64))
    want = F.scaled_dot_product_attention(q.double(), k.double(), v.double(), is_causal=True)
    assert z.dtype == torch.bfloat16
    torch.testing.assert_close(z.double(), want, rtol=2e-2, atol=2e-2)


def test_strided_operands():
    x = torch.randn(2, 64, 3, 4, 8, dtype=torch.float64)  # [batch, tokens, 3, heads, dim], as one projection gives
    q, k, v = x.permute(2, 0, 3, 1, 4)
    want = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    torch.testing.assert_close(weft.attention(q, k, v, masks.causal(64)), want, rtol=1e-12, atol=1e-12)


def test_refusals():
    q, k, v = operands((2, 64, 8), grad=False)
    for message, args in (("k: expected a tensor, as q is", (q, k.numpy(), v)),
                          ("q: expected elements of float16", (q.long(), k, v)),
                          ("q: expected a tensor on the CPU", (q.to("meta"), k, v)),
                          ("v: expected f64, as q is, got f32", (q, k, v.float())),
                          ("mask: expected a sparse matrix, or a dense one of bool", (q, k, v, torch.ones(64, 64)))):
        with pytest.raises(weft.Error, match=re.escape(message)):
            weft.attention(*args)


def paged(q, k, v, table, lengths, scale=None):
    out = torch.zeros(q.shape[0], q.shape[1], v.shape[-1], dtype=q.dtype)
    for b, n in enumerate(lengths):
        keys, values = (x[table[b]].transpose(0, 1).flatten(1, 2)[:, :n] for x in (k, v))
        if n:
            out[b] = F.scaled_dot_product_attention(q[b][:, None], keys, values, scale=scale,
                                                    enable_gqa=True)[:, 0]
    return out


def test_paged_attention():
    torch.manual_seed(1)
    q, k, v = torch.randn(4, 6, 8).double(), torch.randn(9, 2, 5, 8).double(), torch.randn(9, 2, 5, 7).double()
    table = torch.tensor([[3, 1, 8, 0], [2, 7, 0, 0], [7, 0, 0, 0], [0, 4, 5, 6]])
    lengths = torch.tensor([17, 6, 0, 20])
    want = paged(q, k, v, table, lengths)
    torch.testing.assert_close(weft.paged_attention(q, k, v, table, lengths), want, rtol=1e-12, atol=1e-12)
    got = weft.paged_attention(*(x.numpy() for x in (q, k, v, table, lengths)), scale=0.3)
    np.testing.assert_allclose(got, paged(q, k, v, table, lengths, 0.3).numpy(), rtol=1e-12, atol=1e-12)
    k[7, :, 1:], v[7, :, 1:] = torch.nan, torch.nan  # behind the 6 tokens of sequence 1
    torch.testing.assert_close(weft.paged_attention(q, k, v, table, lengths), want, rtol=1e-12, atol=1e-12)
    x = [t.nan_to_num().requires_grad_() for t in (q, k, v)]
    assert gradcheck(lambda *y: weft.paged_attention(*y, table, lengths), x, fast_mode=True)
    assert gradgradcheck(lambda *y: weft.paged_attention(*y, table, lengths), x, fast_mode=True)
    for message, args in (("q: expected [batch, heads, dim]", (q[0], k, v, table, lengths)),
                          ("k_cache: expected the dim of q, 8, got 7", (q, v, v, table, lengths)),
                          ("v_cache: expected the pages of k_cache", (q, k, v[:3], table, lengths)),
                          ("block_table: expected integers [4, pages]", (q, k, v, table[:2], lengths)),
                          ("block_table: expected pages from 0 to 8, got 9", (q, k, v, table + 1, lengths)),
                          ("lengths: expected 0 to 20 tokens", (q, k, v, table, lengths + 1)),
                          ("lengths: expected 4 integers", (q, k, v, table, lengths.double()))):
        with pytest.raises(weft.Error, match=re.escape(message)):
            weft.paged_attention(*args)


def test_the_layer_is_multihead_attention_with_a_mask():
    torch.manual_seed(2)
    theirs = torch.nn.MultiheadAttention(24, 3, batch_first=True, dtype=torch.float64)
    ours = weft.nn.SparseAttention(24, 3, masks.band(70, 9), dtype=torch.float64)
    ours.load_state_dict(theirs.state_dict())
    theirs.load_state_dict(ours.state_dict())
    x = torch.randn(2, 70, 24, dtype=torch.float64, requires_grad=True)
    z, want = ours(x), theirs(x, x, x, attn_mask=~band(70, 9), need_weights=False)[0]
    torch.testing.assert_close(z, want, rtol=1e-10, atol=1e-12)
    g = torch.randn_like(z)
    for a, b in zip(torch.autograd.grad(z, [x, *ours.parameters()], g),
                    torch.autograd.grad(want, [x, *theirs.parameters()], g)):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-11)
    torch.testing.assert_close(ours(x[0]), z[0], rtol=1e-12, atol=1e-12)


def test_the_layer_has_its_options():
    torch.manual_seed(3)
    layer = weft.nn.SparseAttention(32, 4, num_kv_heads=2, dropout=0.5, bias=False)
    assert layer.in_proj_weight.shape == (64, 32) and layer.in_proj_bias is None
    x = torch.randn(2, 20, 32)
    a, b = layer(x, masks.causal(20)), layer(x, masks.causal(20))
    assert not torch.equal(a, b)
    layer.eval()
    assert torch.equal(layer(x, masks.causal(20)), layer(x, masks.causal(20)))
    z = layer(x, lengths=np.array([20, 5]))
    torch.testing.assert_close(z[1, :5], layer(x[1, :5]), rtol=1e-5, atol=1e-6)
    for message, make in (("num_heads: expected a number that divides", lambda: weft.nn.SparseAttention(10, 3)),
                          ("num_kv_heads: expected", lambda: weft.nn.SparseAttention(12, 4, num_kv_heads=3)),
                          ("dropout: expected", lambda: weft.nn.SparseAttention(12, 4, dropout=1.0)),
                          ("x: expected [batch, tokens, 32]", lambda: layer(x[..., :3]))):
        with pytest.raises(weft.Error, match=re.escape(message)):
            make()


def test_layers_are_copied_and_pickled():
    import copy
    import pickle

    layer = weft.nn.SparseAttention(16, 2, masks.band(40, 3))
    x = torch.randn(1, 40, 16)
    for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert torch.equal(other(x), layer(x))
