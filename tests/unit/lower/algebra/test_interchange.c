/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Pass interchange (lower/algebra/interchange.c): the loop of lanes comes out of a loop of sums. */
#include "unit/pass_bed.h"

/* Channels u mixed into channels w, of `m` components. */
#define MIX(m, x)                                                              \
    "program mix(n)\naxis B = n\naxis M = " m ", U = 4, W = 16\n"              \
    "axis P = rows a { 0 }, Q(P) = rows k { 0, 1 }\n"                          \
    "f32 X[B, U, M], Z[B, W, M], Wt[U, W]\n"                                   \
    "z: for b, p, u, w, q: Z[b, w, k(q)] += " x " * Wt[u, w]\n"

TEST(a_lane_loop_of_strided_sums_comes_out)
{
    CHECK_GIVES("interchange", NULL, MIX("2", "X[b, u, k(q)]"),
                "    vector for w in W step 8");
}

/* Rows of X that are read with a stride would be read again for each vector of w. */
TEST(sums_of_strided_operands_are_left_alone)
{
    CHECK_KEPT("interchange", NULL,
               "program p(n)\naxis B = n\naxis U = 4, W = 16\nf32 X[B, U, W], Z[B, W]\n"
               "z: Z[b, w] += X[b, u, w]\n");
}
