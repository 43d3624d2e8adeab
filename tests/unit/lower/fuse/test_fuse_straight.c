/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Pass fuse_straight (lower/fuse/straight.c): which straight-line phases become one. */
#include "unit/pass_bed.h"

#define HEAD "program c(n)\naxis B = n\nf32 X[B, 3], Y[B, 4], Z[B]\ntemp f32 R[B]\n"

static int phases(const char *program)
{
    return pass_count(pass_text("fuse_straight", NULL, program), "\nphase ");
}

TEST(components_of_a_row_are_one_phase)
{
    CHECK_EQ(phases(HEAD "r: R[b] = X[b, 0] * X[b, 0] + X[b, 1] * X[b, 1]\n"
                         "for b:\n    y0: Y[b, 0] = 1\n    y1: Y[b, 1] = X[b, 0] * R[b]\n"
                         "    y2: Y[b, 2] = X[b, 1] * R[b]\n    y3: Y[b, 3] = X[b, 0] * X[b, 1]\n"),
             1);
}

TEST(a_phase_that_reads_another_row_stays_apart)
{
    CHECK_KEPT("fuse_straight", NULL,
               HEAD "r: R[b] = X[b, 0] * X[b, 0]\nz: Z[b] = R[n - 1 - b]\n");
}

TEST(a_phase_with_a_loop_stays_apart)
{
    CHECK_KEPT("fuse_straight", NULL,
               "program c(n, f)\naxis B = n, K = f\nf32 X[B, K], Y[B], Z[B]\n"
               "y: Y[b] += X[b, k]\nz: Z[b] = Y[b] * 2\n");
}
