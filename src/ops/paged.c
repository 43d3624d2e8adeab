/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Attention of one query a sequence over keys and values in pages, as when a model decodes:
 * sequence b has pages P, a page the first tokens T of its `page` places.  G heads of queries
 * share the keys of a head H. */
#include "ops/ops_int.h"

static const OpsOption options[] = { { NULL, 0, 0, NULL } };

static const OpsRow rows[] = {
    { "paged_attention", 0, "O = softmax(Q K' C) V of one query a sequence, over pages of keys",
      "axis B = ${nseq}, P(B) = seg : where < ${npages}, T(P) = seg\n"
      "axis H = ${heads}, G = ${groups}, K = ${d}, VD = ${dv}\n"
      "$t Q[B, H, G, K], Kc[${npages}, H, ${page}, K], Vc[${npages}, H, ${page}, VD]\n"
      "$t O[B, H, G, VD]; $a C[]\n"
      "temp $a S[T, H, G], M[B, H, G], X[T, H, G], Z[B, H, G], A[B, H, G, VD]\n"
      "s: for b, p, h, t, g, k: S[t, h, g] += Q[b, h, g, k] * Kc[where(p), h, loc(t), k]\n"
      "m: for b, p, t, h, g: M[b, h, g] max= S[t, h, g] * C[]\n"
      "x: for b, p, t, h, g: X[t, h, g] = exp(S[t, h, g] * C[] - stop(M[b, h, g]))\n"
      "z: for b, p, t, h, g: Z[b, h, g] += X[t, h, g]\n"
      "a: for b, h, g, p, t, vd: A[b, h, g, vd] += X[t, h, g] * Vc[where(p), h, loc(t), vd]\n"
      "o: O[b, h, g, vd] = A[b, h, g, vd] * select(Z[b, h, g] > 0, 1.0 / Z[b, h, g], 0.0)\n" },
    { NULL, 0, NULL, NULL },
};

static const OpsSign signs[] = { { 0, 0, NULL, NULL, 0 } };

static const OpsSize sizes[] = {
    { "nseq", 0, NULL },   { "npages", 0, NULL }, { "heads", 0, NULL },
    { "groups", 0, NULL }, { "d", 0, NULL },      { "dv", 0, NULL },
    { "page=16", 0, "of paged_attention: tokens of a page" }, { NULL, 0, NULL },
};

const OpsFamily ops_paged = { rows, options, signs, sizes, 0, NULL, NULL };
