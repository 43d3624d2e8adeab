/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Relational convolution, rgms: Y_i is the sum over relations r of H_ri W_r, where H_ri reduces X_j
 * over the edges of r from j to i.  Pairs (r, i) stand in tiles of 16 of one relation
 * (weft_tiles_make), so features are reduced first and the product with W_r is one of matrices.
 * The reduced features of a tile, H, live while its product is computed; the products P are a row
 * for each pair.  Nothing has a row for each edge. */
#include "ops/ops_int.h"

enum Bit {
    MEAN = OPS_FIRST << 0,
    MAX = OPS_FIRST << 1,
    BASIS = OPS_FIRST << 2,
    BLOCKS = OPS_FIRST << 3,
    WEIGHTS = OPS_FIRST << 4,
    REDUCES = MEAN | MAX,
    SHAPES = BASIS | BLOCKS,
};

static const OpsOption options[] = {
    { "mean", MEAN, REDUCES, "of rgms: the mean over the edges of a pair instead of the sum" },
    { "max", MAX, REDUCES, "of rgms: the largest of each feature instead of the sum" },
    { "basis", BASIS, SHAPES, "of rgms: W_r is the sum over d of M[r, d] V[d]" },
    { "blocks", BLOCKS, SHAPES, "of rgms: W_r is block-diagonal, W[nr, B, C, O]" },
    { "weights", WEIGHTS, WEIGHTS, "of rgms: edges have weights A, in the order of a list, E.of" },
    { NULL, 0, 0, NULL },
};

static const OpsRow rows[] = {
    { "rgms", REDUCES | SHAPES | WEIGHTS,
      "Y: features of senders, reduced by relation and receiver, times W of the relation",
      "axis G = ${ng} : r < ${nr}, T(G) = 16, E(T) = seg : j < ${n}$A\n"
      "axis I = ${m}, Q(I) = seg : p < 16 * ${ng} once\n"
      "$Daxis C = ${ci}, O = ${co}\n"
      "$t X[${n}, $BC], $W$w, Y[I, $BO]\n"
      "temp $a H[T, $BC]$f, P[T, $BO]$N$V\n$v$n"
      "h: for g, t, e, $bc: H[t, $bc] $o $eX[j(e), $bc]\n"
      "p: for g, t, $bc, o: P[t, $bo] += H[t, $bc] * W[r(g), $bc, o]\n"
      "y: for i, q, $bo: Y[i, $bo] += P[@p(q), $bo]$m\n" },
    { NULL, 0, NULL, NULL },
};

static const OpsSign signs[] = {
    { 'D', BLOCKS, "axis B = ${nb}\n", "$d", 0 },
    { 'd', BASIS, "axis R = ${nr}, D = ${nb}\n", "", 0 },
    { 'A', WEIGHTS, ", of < ${ne} once", "", 0 },
    { 'B', BLOCKS, "B, ", "", 0 },
    { 'b', BLOCKS, "b, ", "", 0 },
    { 'W', BASIS, "M[R, D], V[D, C, O]", "W[${nr}, $BC, O]", 0 },
    { 'w', WEIGHTS, ", A[${ne}]", "", 0 },
    { 'e', WEIGHTS, "A[of(e)] * ", "", 0 },
    { 'V', BASIS, ", W[R, C, O]", "", 0 },
    { 'v', BASIS, "w: W[r, c, o] += M[r, d] * V[d, c, o]\n", "", 0 },
    { 'N', MEAN, ", N[T]", "", 0 },
    { 'n', MEAN, "n: for g, t, e: N[t] += 1.0\n", "", 0 },
    { 'm', MEAN, " / max(N[@p(q)], 1)", "", 0 },
    { 'f', MAX, " fill 0", "", 0 },
    { 'o', MAX, "max=", "+=", 0 },
    { 0, 0, NULL, NULL, 0 },
};

static const OpsSize sizes[] = {
    { "ng", 0, NULL }, { "nr", 0, NULL }, { "n", 0, NULL },
    { "m", 0, NULL },  { "ci", 0, NULL }, { "co", 0, NULL },
    { "nb", SHAPES, NULL }, { "ne", WEIGHTS, NULL }, { NULL, 0, NULL },
};

const OpsFamily ops_relation = { rows, options, signs, sizes, 0, NULL, NULL };
