# SPDX-License-Identifier: BSD-3-Clause
# Copyright The Weft authors
"""weft.attention and weft.masks with NumPy arrays, against the plain formula in float64."""

import re

import numpy as np
import pytest
import scipy.sparse as sp
import weft
from weft import masks


def plain(q, k, v, mask, scale=None, keep=None):
    """softmax(q k' scale) v over the pairs of a dense mask; zeros for a query without keys."""
    q, k, v = (np.asarray(x, np.float64) for x in (q, k, v))
    g = q.shape[-3] // k.shape[-3]
    k, v = (np.repeat(x, g, axis=-3) for x in (k, v))
    s = q @ np.swapaxes(k, -1, -2) * (q.shape[-1] ** -0.5 if scale is None else scale)
    s = np.where(mask, s, -np.inf)
    top = np.maximum(s.max(-1, keepdims=True, initial=-1e300), -1e300)
    e = np.exp(s - top)
    z = e.sum(-1, keepdims=True)
    p = e / np.where(z == 0, 1, z)
    return (p if keep is None else p * keep) @ v


def operands(shape, kv=None, m=None, dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    *batch, heads, n, d = shape
    other = (*batch, kv or heads, m or n, d)
    return [rng.standard_normal(s).astype(dtype) for s in (shape, other, other)]


def near(z, want):
    tolerance = {np.dtype(np.float64): 1e-12, np.dtype(np.float32): 2e-6, np.dtype(np.float16): 2e-3}[z.dtype]
    assert z.shape == want.shape
    assert np.abs(z - want).max(initial=0) <= tolerance * max(1, np.abs(want).max(initial=0))


i, j = (lambda n: np.arange(n)[:, None]), (lambda n: np.arange(n)[None])


def butterfly(n, block):
    a, b = i(n) // block, j(n) // block
    return ((a ^ b) & ((a ^ b) - 1)) == 0


CASES = {
    "band": (masks.band(200, 30), abs(i(200) - j(200)) <= 30),
    "band causal": (masks.band(200, 30, causal=True), (abs(i(200) - j(200)) <= 30) & (i(200) >= j(200))),
    "band 0": (masks.band(128, 0), i(128) == j(128)),
    "wide band": (masks.band(64, 1000), np.ones((64, 64), bool)),
    "causal": (masks.causal(192), i(192) >= j(192)),
    "causal 2:1": (masks.causal(150, 70), i(150) >= j(70)),
    "full": (masks.full(64, 128), np.ones((64, 128), bool)),
    "one": (masks.full(1), np.ones((1, 1), bool)),
    "longformer": (masks.longformer(300, 20, 3),
                   (abs(i(300) - j(300)) <= 20) | (i(300) < 3) | (j(300) < 3)),
    "butterfly": (masks.butterfly(512, 32), butterfly(512, 32)),
    "butterfly, odd": (masks.butterfly(333, 20), butterfly(333, 20)),
    "empty rows": (masks.of(sp.csr_matrix((np.ones(2), ([3, 70], [5, 1])), shape=(130, 90))), None),
    "all masked": (masks.of(sp.csr_matrix((40, 50))), np.zeros((40, 50), bool)),
    "random": (masks.of(sp.random(210, 170, 0.1, format="csr", random_state=1)), None),
    "many blocks": (masks.causal(1500), i(1500) >= j(1500)),
}
CASES["empty rows"] = (CASES["empty rows"][0], np.zeros((130, 90), bool))
CASES["empty rows"][1][3, 5] = CASES["empty rows"][1][70, 1] = True
CASES["random"] = (CASES["random"][0], sp.random(210, 170, 0.1, random_state=1).toarray() != 0)


@pytest.mark.parametrize("name", CASES)
def test_masks_are_those_of_their_formula(name):
    mask, dense = CASES[name]
    np.testing.assert_array_equal(mask.to_dense(), dense)
    assert mask.nnz == dense.sum() and mask.shape == dense.shape


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", CASES)
def test_attention_is_the_formula(name, dtype):
    mask, dense = CASES[name]
    n, m = mask.shape
    q, k, v = operands((2, n, 24), m=m, dtype=dtype)
    near(weft.attention(q, k, v, mask), plain(q, k, v, dense))


def test_bigbird_has_its_blocks_and_as_many_by_chance():
    mask = masks.bigbird(640, block=32, w=1, tokens=2, random=2, seed=5)
    blocks = mask.to_dense().reshape(20, 32, 20, 32)
    assert (blocks.all((1, 3)) == blocks.any((1, 3))).all()
    blocks = blocks.all((1, 3))
    a, b = i(20), j(20)
    sure = (abs(a - b) <= 1) | (a < 2) | (b < 2)
    assert blocks[sure].all()
    extra = (blocks & ~sure).sum(1)
    assert (extra <= 2).all() and extra.sum() >= 10
    again = masks.bigbird(640, block=32, w=1, tokens=2, random=2, seed=5).to_dense()
    np.testing.assert_array_equal(again, mask.to_dense())
    assert (masks.bigbird(640, block=32, w=1, tokens=2, random=2, seed=6).to_dense() != again).any()


def test_blocks_are_whole():
    layout = np.array([[1, 0, 1], [0, 0, 1], [1, 1, 0], [0, 0, 0]], bool)
    dense = np.kron(layout, np.ones((24, 24), bool))
    for given in (layout, sp.csr_matrix(layout)):
        np.testing.assert_array_equal(masks.blocks(given, 24).to_dense(), dense)
    cut = masks.blocks(layout, 24, n=80, m=60)
    np.testing.assert_array_equal(cut.to_dense(), dense[:80, :60])
    q, k, v = operands((3, 96, 16), m=72)
    near(weft.attention(q, k, v, masks.blocks(layout, 24)), plain(q, k, v, dense))


def test_a_graph_is_a_mask():
    edges = np.array([[0, 2, 1, 0, 0], [1, 1, 0, 2, 1]])  # senders, receivers; one of them twice
    q, k, v = operands((4, 3, 8))
    dense = np.zeros((3, 3), bool)
    dense[edges[1], edges[0]] = True
    near(weft.attention(q, k, v, weft.Graph(edges, 3)), plain(q, k, v, dense))
    near(weft.attention(q, k, v, dense), plain(q, k, v, dense))
    near(weft.attention(q, k, v), plain(q, k, v, True))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n", [128, 100])
def test_heads_share_keys(n, dtype):
    q, k, v = operands((2, 6, n, 16), kv=2, dtype=dtype)
    near(weft.attention(q, k, v, masks.band(n, 9), enable_gqa=True), plain(q, k, v, abs(i(n) - j(n)) <= 9))


@pytest.mark.parametrize("scale", [1.0, -0.7, 0.0, 30.0])
def test_scale(scale):
    q, k, v = operands((2, 64, 8))
    near(weft.attention(q, k, v, masks.causal(64), scale=scale), plain(q, k, v, i(64) >= j(64), scale))


@pytest.mark.parametrize("kv", [2, 4])
def test_tokens_behind_lengths_are_not_looked_at(kv):
    q, k, v = operands((3, 4, 70, 8), kv=kv)
    lengths = np.array([70, 0, 33])
    for b, n in enumerate(lengths):
        for x in (q, k, v):
            x[b, :, n:] = np.nan
    z = weft.attention(q, k, v, masks.band(70, 12), lengths=lengths, enable_gqa=True)
    for b, n in enumerate(lengths):
        assert (z[b, :, n:] == 0).all()
        near(z[b, :, :n], plain(q[b, :, :n], k[b, :, :n], v[b, :, :n], abs(i(n) - j(n)) <= 12))
    z = weft.attention(q, k, v, lengths=([70, 1, 33] and np.array([20, 0, 10]), lengths), enable_gqa=True)
    near(z[2, :, :10], plain(q[2, :, :10], k[2, :, :33], v[2, :, :33], True))


def test_values_may_have_another_dim():
    q, k, _ = operands((2, 3, 96, 8))
    v = operands((2, 3, 96, 20))[2]
    for n in (96, 90):
        x = (q[..., :n, :], k[..., :n, :], v[..., :n, :])
        near(weft.attention(*x, masks.causal(n)), plain(*x, i(n) >= j(n)))


def test_large_scores_do_not_overflow():
    q, k, v = operands((1, 64, 8))
    near(weft.attention(q * 100, k * 100, v, masks.causal(64)), plain(q * 100, k * 100, v, i(64) >= j(64)))


def test_half_precision():
    q, k, v = operands((2, 96, 16), dtype=np.float16)
    near(weft.attention(q, k, v, masks.band(96, 20)), plain(q, k, v, abs(i(96) - j(96)) <= 20))


@pytest.mark.parametrize("mask", [masks.band(320, 40), masks.causal(1100)], ids=["one piece", "pieces"])
def test_dropout_leaves_out_by_seed(mask):
    n = mask.shape[0]
    q, k, _ = operands((2, n, 8))
    v = np.broadcast_to(np.eye(n), (2, n, n)).copy()  # the weights themselves
    if n > 400:
        q, k, v = q[:1], k[:1], v[:1]
    whole = weft.attention(q, k, v, mask)
    some = weft.attention(q, k, v, mask, dropout=0.25, seed=3)
    kept = some != 0
    assert not kept[whole == 0].any()
    np.testing.assert_allclose(some[kept], whole[kept] / 0.75, rtol=1e-12)
    share = kept.sum() / (whole != 0).sum()
    assert abs(share - 0.75) < 5 * (0.75 * 0.25 / (whole != 0).sum()) ** 0.5 + 1e-6
    np.testing.assert_array_equal(weft.attention(q, k, v, mask, dropout=0.25, seed=3), some)
    other = weft.attention(q, k, v, mask, dropout=0.25, seed=4) != 0
    assert abs((other & kept).sum() / (whole != 0).sum() - 0.75 ** 2) < 0.02


def test_dropout_of_pairs_is_independent():
    """Of rows, of columns, and of rectangles of four pairs."""
    n = 512
    q, k, _ = operands((1, n, 8))
    kept = weft.attention(q, k, np.eye(n)[None], masks.full(n), dropout=0.5, seed=1)[0] != 0
    x = np.where(kept, 1.0, -1.0)
    sigma = n ** -0.5
    assert abs(x.mean(0)).max() < 5 * sigma and abs(x.mean(1)).max() < 5 * sigma
    for c in (x @ x.T / n, x.T @ x / n):
        off = c[~np.eye(n, dtype=bool)]
        assert abs(off.std() - sigma) < 0.05 * sigma and abs(off).max() < 6.5 * sigma


def test_results_have_the_same_bits_for_any_number_of_threads():
    for mask in (masks.band(256, 40), masks.causal(1200), masks.band(250, 40)):
        q, k, v = operands((2, 3, mask.shape[0], 16), dtype=np.float32)
        results = []
        for threads in (1, 2, 3, 7):
            weft.set_threads(threads)
            results.append(weft.attention(q, k, v, mask, dropout=0.1, seed=2))
        weft.set_threads(0)
        for z in results[1:]:
            np.testing.assert_array_equal(z, results[0])


def test_empty():
    q, k, v = operands((2, 5, 4))
    assert weft.attention(q[:, :0], k, v).shape == (2, 0, 4)
    assert weft.attention(q[:0], k[:0], v[:0]).shape == (0, 5, 4)
    assert (weft.attention(q, k[:, :0], v[:, :0]) == 0).all()


def refusal(message, *args, **more):
    with pytest.raises(weft.Error, match=re.escape(message)):
        weft.attention(*args, **more)


def test_refusals_name_the_argument():
    q, k, v = operands((2, 64, 8))
    refusal("q: expected elements of float16", q.astype(int), k, v)
    refusal("k: expected f64, as q is, got f32", q, k.astype(np.float32), v)
    refusal("q: expected [batch, heads, tokens, dim]", q[0], k, v)
    refusal("k: expected 3 dimensions, as q has, got 4", q, k[None], v)
    refusal("k: expected the batch and dim of q, (2, 64, 8), got (2, 64, 7)", q, k[..., :7], v)
    refusal("v: expected the heads and tokens of k, (2, 64, 8), got (2, 60, 8)", q, k, v[:, :60])
    refusal("k: expected the 2 heads of q, or enable_gqa=True, got 1 heads", q, k[:1], v[:1])
    refusal("k: expected a number of heads that divides the 2 of q", q, *(np.zeros((3, 64, 8)),) * 2,
            enable_gqa=True)
    refusal("mask: expected 64 x 64, as q and k have tokens, got 32 x 32", q, k, v, masks.causal(32))
    refusal("mask: expected a mask of weft.masks", q, k, v, "causal")
    refusal("mask: expected a mask of weft.masks", q, k, v, np.zeros((64, 64)))
    refusal("scale: expected a number", q, k, v, scale="a")
    refusal("dropout: expected a probability from 0 to less than 1, got 1.0", q, k, v, dropout=1)
    refusal("seed: expected an integer", q, k, v, dropout=0.5, seed=1.5)
    refusal("lengths: expected 1 integers, one for each batch", q, k, v, lengths=np.array([3, 4]))
    refusal("lengths: expected 0 to 64 tokens, got 65", q, k, v, lengths=np.array([65]))


def test_refusals_of_masks():
    for message, make in (("w: expected an integer from 0", lambda: masks.band(5, -1)),
                          ("n: expected an integer", lambda: masks.causal(2.5)),
                          ("block: expected an integer from 1", lambda: masks.butterfly(64, 0)),
                          ("random must be an integer, 0 to 4096", lambda: masks.bigbird(64, 4, random=2**40)),
                          ("n: expected", lambda: masks.blocks(np.ones((2, 2), bool), 16, n=10)),
                          ("layout: expected", lambda: masks.blocks([[1]], 16))):
        with pytest.raises(weft.Error, match=re.escape(message)):
            make()
