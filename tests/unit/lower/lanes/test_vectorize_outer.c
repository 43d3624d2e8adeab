/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Pass vectorize_outer (lower/lanes/vectorize_outer.c): iterations of a phase in lanes. */
#include "unit/pass_bed.h"

#define HEAD "program items(n)\naxis B = n\nf32 X[B, 3], Y[B, 2]\nfor b:\n"

TEST(a_straight_line_phase_with_rows_of_its_own_runs_in_lanes)
{
    CHECK_GIVES("vectorize_outer", NULL,
                HEAD "    let r = X[b, 0] * X[b, 0] + X[b, 1] * X[b, 1] + X[b, 2] * X[b, 2]\n"
                     "    y0: Y[b, 0] = select(r > 1 and not (X[b, 0] == 0), sqrt(r), r)\n"
                     "    y1: Y[b, 1] = r * X[b, 1]\n",
                "vector for b in B step 8\n");
}

TEST(loads_and_stores_that_cost_more_than_the_sums_stay_scalar)
{
    CHECK_KEPT("vectorize_outer", NULL,
               HEAD "    y0: Y[b, 0] = X[b, 0] * 2\n    y1: Y[b, 1] = X[b, 1] * 3\n");
}

TEST(a_phase_with_loops_is_left_alone)
{
    CHECK_KEPT("vectorize_outer", NULL,
               "program items(n, f)\naxis B = n, K = f\nf32 X[B, K], Y[B]\ny: Y[b] += X[b, k] * "
               "X[b, k]\n");
}
