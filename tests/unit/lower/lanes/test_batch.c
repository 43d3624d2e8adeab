/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Pass batch (lower/lanes/batch.c): scalars of as many iterations as there are lanes. */
#include "unit/pass_bed.h"

/* Long couplings of two rows of five components, for each of a few channels. */
#define COUPLINGS                                                                               \
    "axis Q = rows m1 m2 m3 -> c { 1 4 0 -> -1, 2 4 0 -> -0.5, 4 0 0 -> 0.5, 3 2 0 -> -1,"      \
    "    1 3 0 -> -0.5, 3 1 0 -> -1, 3 0 0 -> 0.5, 0 2 0 -> 0.5, 2 3 0 -> -0.5, 3 3 0 -> -0.5," \
    "    1 2 0 -> 0.5, 0 1 0 -> -0.5, 1 2 1 -> -0.5, 2 3 1 -> -0.5, 4 2 1 -> -0.5, 4 1 1 -> 2," \
    "    0 2 1 -> -1, 2 4 1 -> 0.5, 1 4 1 -> 2, 2 0 1 -> 0.5, 3 3 1 -> 0.5, 3 1 1 -> 0.5,"      \
    "    3 0 1 -> 0.5, 4 4 1 -> 0.5, 3 4 2 -> 2, 4 2 2 -> -1, 0 2 2 -> 0.5, 0 0 2 -> 0.5,"      \
    "    1 3 2 -> 2, 1 0 2 -> 2, 2 2 2 -> -1, 3 3 2 -> -0.5, 4 3 2 -> 0.5, 4 4 2 -> 2,"         \
    "    3 1 2 -> 2, 3 2 2 -> 2, 4 2 3 -> 0.5, 3 4 3 -> 2, 0 3 3 -> -1, 0 2 3 -> -0.5,"         \
    "    2 2 3 -> 2, 3 0 3 -> 0.5, 2 3 3 -> 2, 4 4 3 -> 2, 1 2 3 -> -1, 0 0 3 -> -1,"           \
    "    2 4 3 -> -1, 2 1 3 -> 2, 1 3 4 -> 0.5, 0 4 4 -> 2, 2 1 4 -> -0.5, 1 0 4 -> 2 }\n"
#define PROGRAM(channels)                                      \
    "program mix(n)\naxis B = n, W = " channels "\n" COUPLINGS \
    "f32 X[B, 5], Y[B, 5], M[W], Z[B, W, 5]\n"                 \
    "z: Z[b, w, m3(q)] += c[q] * X[b, m1(q)] * Y[b, m2(q)] * M[w]\n"

TEST(couplings_of_few_channels_are_computed_for_eight_iterations_at_once)
{
    const char *with = pass_text("batch", NULL, PROGRAM("12"));
    const char *without = pass_print("batch", NULL, PROGRAM("12"), true);

    CHECK_HAS(with, "temp work f32 ");
    CHECK_EQ(pass_count(without, "temp work f32 "), 0);
}

TEST(couplings_that_cost_little_beside_many_channels_stay_scalar)
{
    CHECK_KEPT("batch", NULL, PROGRAM("2048"));
}
