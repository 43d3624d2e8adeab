/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Updates of nodes: what a layer adds to the reduced features of the senders.  In sage, H[:, 0] is
 * what a node sends and H[:, 1] what it keeps.  One product of matrices computes both, so the
 * gradient of sage by H is one array too. */
#include "ops/ops_int.h"

enum Bit { MEAN = OPS_FIRST << 0 };

static const OpsOption options[] = {
    { "mean", MEAN, MEAN, "of sage: the mean of the senders instead of the sum" },
    { NULL, 0, 0, NULL },
};

static const OpsRow rows[] = {
    { "sage", MEAN, "Y: H[:, 0] of the senders, summed, + H[:, 1] of the receiver",
      "axis I = ${n}, E(I) = seg : j < ${n}\n"
      "axis P = 2, K = ${f}\n"
      "$t H[${n}, P, K], Y[${n}, K]\n"
      "temp $a S[I, K]$D\n"
      "s: S[i, k] += H[j(e), 0, k]\n$d"
      "y: Y[i, k] = S[i, k]$m + H[i, 1, k]\n" },
    { NULL, 0, NULL, NULL },
};

static const OpsSign signs[] = {
    { 'D', MEAN, "; temp i64 D[I]", "", 0 },
    { 'd', MEAN, "d: for i, e: D[i] += 1\n", "", 0 },
    { 'm', MEAN, " / max(D[i], 1)", "", 0 },
    { 0, 0, NULL, NULL, 0 },
};

static const OpsSize sizes[] = { { "n", 0, NULL }, { "f", 0, NULL }, { NULL, 0, NULL } };

const OpsFamily ops_node = { rows, options, signs, sizes, 0, NULL, NULL };
