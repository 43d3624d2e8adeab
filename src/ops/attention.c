/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Attention over blocks of a mask.  Tiles of `bi` queries meet blocks of `bj` keys: P are the
 * tiles of all heads, L(P) the blocks of keys that a tile sees, `w` places of which some are
 * padding.  A block that the mask covers in part has a pattern X[pat(l)] of 0 and -inf, which is
 * added to its scores, so the result is exact at every token.  One iteration over P has its scores
 * in an array of its own: no score is stored in memory.
 *
 * With `split` P are pieces of tiles, each with up to `w` blocks: a tile that sees many blocks has
 * many pieces, which have sums of their own that are put together under R, the tiles.
 *
 * The scale C is multiplied to the keys as they are transposed.  The largest score M only keeps
 * exp in range, and the result does not depend on it: it has no derivative. */
#include "ops/ops_int.h"

enum Bit {
    BLOCKS = OPS_FIRST << 0,
    RAGGED = OPS_FIRST << 1,
    SPLIT = OPS_FIRST << 2,
    GROUPED = OPS_FIRST << 3,
    DROPOUT = OPS_FIRST << 4,
    TOKENS = BLOCKS | RAGGED,
    ALWAYS = TOKENS | SPLIT | GROUPED | DROPOUT,
};

static const OpsOption options[] = {
    { "blocks", BLOCKS, TOKENS,
      "of attention: nq whole tiles, nk whole blocks of tokens; default" },
    { "ragged", RAGGED, TOKENS,
      "of attention: n and m tokens, of which heads have lq and lk: others are not looked at" },
    { "split", SPLIT, SPLIT, "of attention: tiles with more than w blocks, in pieces of up to w" },
    { "gqa", GROUPED, GROUPED, "of attention: g heads of queries share keys and values" },
    { "dropout", DROPOUT, DROPOUT, "of attention: scores are left out by hashes HQ and HK" },
    { NULL, 0, 0, NULL },
};

static const OpsRow rows[] = {
    { "attention", ALWAYS,
      "O = softmax(Q K' C + X) V at the blocks of a mask, by heads",
      "$A, BI = ${bi}, BJ = ${bj}, K = ${d}, VD = ${dv}\n"
      "$t $Q, $K, $V, $O; $a X[${np}, BI, BJ], C[]$I$D\n"
      "temp $a M[P, BI], Z[P, BI], T[P, L, BI, BJ], $TS[P, L, BI, BJ]\n"
      "temp $a KT[$h, $n, K, BJ]$B$S\n"
      "$Ckt: for h in $h, b in $n, bj, k: KT[h, b, k, bj] = $k * C[]$i\n"
      "s: for p, l, bi, k, bj: S[p, l, bi, bj] += $q * KT[$g, j(l), k, bj]\n"
      "m: for p, bi, l, bj: M[p, bi] max= S[p, l, bi, bj] + X[pat(l), bi, bj]\n$b"
      "t: for p, l, bi, bj: T[p, l, bi, bj] = exp(S[p, l, bi, bj] + X[pat(l), bi, bj]"
      " - stop(max(M[p, bi], -1e30)))\n"
      "z: for p, bi, l, bj: Z[p, bi] += T[p, l, bi, bj]\n$c"
      "$u"
      "o: for p, l, bi, bj, vd: $o += $x[p, l, bi, bj] * $v\n"
      "$E" },
    { NULL, 0, NULL, NULL },
};

/* Of the reciprocal of a sum: a row without keys has the sum 0 and gives zeros. */
#define INVERSE(z) "select(" z " > 0, 1.0 / " z ", 0.0)"

static const OpsSign signs[] = {
    /* axes, counts of blocks, the head of keys of a tile */
    { 'A', SPLIT,
      "axis P = ${pieces} : row < $R, L(P) = ${w} : j < $n, pat < ${np} padded\n"
      "axis R = $R, E(R) = seg",
      "axis P = $R, L(P) = ${w} : j < $n, pat < ${np} padded", 0 },
    { 'R', 0, NULL, "${heads} * $M", 0 },
    { 'r', SPLIT, "row(p)", "p", 0 },
    { 'm', RAGGED, "(${n} + ${bi} - 1) / ${bi}", "${nq}", 0 },
    { 'n', RAGGED, "(${m} + ${bj} - 1) / ${bj}", "${nk}", 0 },
    { 'M', RAGGED, "((${n} + ${bi} - 1) / ${bi})", "${nq}", 0 },
    { 'N', RAGGED, "((${m} + ${bj} - 1) / ${bj})", "${nk}", 0 },
    { 'h', GROUPED, "${heads} / ${g}", "${heads}", 0 },
    { 'g', GROUPED, "$r / ($M * ${g})", "$r / $M", 0 },
    /* operands, and what copies them into whole blocks */
    { 'Q', RAGGED, "Q[${heads}, ${n}, K]", "Q[$R, BI, K]", 0 },
    { 'K', RAGGED, "Kk[$h, ${m}, K]", "Kk[$h, $n, BJ, K]", 0 },
    { 'V', RAGGED, "V[$h, ${m}, VD]", "V[$h, $n, BJ, VD]", 0 },
    { 'O', RAGGED, "O[${heads}, ${n}, VD]", "O[$R, BI, VD]", 0 },
    { 'I', RAGGED, "; i64 lq[${heads}], lk[$h]", "", 0 },
    { 'B', RAGGED, ", VB[$h, $n, BJ, VD], QB[${heads}, $m, BI, K], OB[$R, BI, VD]", "", 0 },
    { 'C', RAGGED,
      "qb: for h in ${heads}, b in $m, bi, k: QB[h, b, bi, k] = Q[h, b * ${bi} + bi, k]"
      " if b * ${bi} + bi < lq[h]\n"
      "vb: for h in $h, b in $n, bj, vd: VB[h, b, bj, vd] = V[h, b * ${bj} + bj, vd]$i\n",
      "", 0 },
    { 'i', RAGGED, " if b * ${bj} + bj < lk[h]", "", 0 },
    { 'k', RAGGED, "Kk[h, b * ${bj} + bj, k]", "Kk[h, b, bj, k]", 0 },
    { 'q', RAGGED, "QB[$r / $M, $r % $M, bi, k]", "Q[$r, bi, k]", 0 },
    { 'v', RAGGED, "VB[$g, j(l), bj, vd]", "V[$g, j(l), bj, vd]", 0 },
    /* sums of pieces */
    { 'S', SPLIT,
      ", A[P, BI, VD], B[P, BI], W[P, BI], N[$R, BI], F[E, BI], Y[$R, BI], G[$R, BI, VD]", "", 0 },
    { 'u', SPLIT, "$y",
      "zi: for p, bi: Zi[p, bi] = " INVERSE("Z[p, bi]") "\n"
      "u: for p, l, bi, bj: U[p, l, bi, bj] = T[p, l, bi, bj] * Zi[p, bi]$d\n", 0 },
    { 'y', DROPOUT, "u: for p, l, bi, bj: U[p, l, bi, bj] = T[p, l, bi, bj]$d\n", "", 0 },
    { 'x', SPLIT, "$z", "U", 0 },
    { 'z', DROPOUT, "U", "T", 0 },
    { 'T', SPLIT, "$Z", "U[P, L, BI, BJ], Zi[P, BI], ", 0 },
    { 'Z', DROPOUT, "U[P, L, BI, BJ], ", "", 0 },
    { 'o', SPLIT, "A[p, bi, vd]", "$w[p, bi, vd]", 0 },
    { 'w', RAGGED, "OB", "O", 0 },
    { 'b', SPLIT, "b: for p, bi: B[p, bi] = max(M[p, bi], -1e30)\n", "", 0 },
    { 'c', SPLIT, "w: for p, bi: W[p, bi] = Z[p, bi]\n", "", 0 },
    { 'E', SPLIT,
      "n: for r, e, bi: N[r, bi] max= B[@pos(e), bi]\n"
      "f: for r, e, bi: F[e, bi] = exp(stop(B[@pos(e), bi] - N[r, bi]))\n"
      "y: for r, e, bi: Y[r, bi] += F[e, bi] * W[@pos(e), bi]\n"
      "g: for r, e, bi, vd: G[r, bi, vd] += F[e, bi] * A[@pos(e), bi, vd]\n"
      "y2: for r, bi, vd: $w[r, bi, vd] = G[r, bi, vd] * " INVERSE("Y[r, bi]") "\n$e",
      "$e", 0 },
    { 'e', RAGGED,
      "ob: for h in ${heads}, b in $m, bi, vd: O[h, b * ${bi} + bi, vd] = OB[h * $M + b, bi, vd]"
      " if b * ${bi} + bi < ${n}\n",
      "", 0 },
    /* dropout: tokens have random numbers below 2^31, and a pair the lower half of the product */
    { 'D', DROPOUT, "; i64 HQ[$R, BI], HK[$h, $n, BJ]; i64 limit[]; $a keep[]", "", 0 },
    { 'd', DROPOUT,
      " * select(HQ[$r, bi] * HK[$g, j(l), bj] % 2147483648 < limit[], keep[], 0.0)", "", 0 },
    { 0, 0, NULL, NULL, 0 },
};

static const OpsSize sizes[] = {
    { "heads", 0, NULL },
    { "g", GROUPED, NULL },
    { "n", RAGGED, NULL },
    { "m", RAGGED, NULL },
    { "nq", BLOCKS, NULL },
    { "nk", BLOCKS, NULL },
    { "np", 0, NULL },
    { "pieces", SPLIT, NULL },
    { "d", 0, NULL },
    { "dv", 0, NULL },
    { "bi=16", 0, "of attention: queries in a tile" },
    { "bj=64", 0, "of attention: keys in a block" },
    { "w=9", 0, "of attention: blocks that a tile, or a piece of one, sees at most" },
    { NULL, 0, NULL },
};

const OpsFamily ops_attention = { rows, options, signs, sizes, BLOCKS, NULL, NULL };
