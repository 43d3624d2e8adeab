/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Pass jam (lower/registers/jam.c): iterations with sums over lanes run four at a time. */
#include "unit/pass_bed.h"

#define SDDMM                                                                         \
    "program sddmm(m, n, f)\naxis I = dense(m), J = compressed(I, n), K = dense(f)\n" \
    "f32 X[I, K], Y[n, K], S[I, J]\ns: S[i, j] += X[i, k] * Y[j, k]\n"

TEST(four_sums_over_lanes_share_an_operand)
{
    CHECK_GIVES("jam", "jam 1", SDDMM, "reg v3: f32 = ");
}

TEST(a_schedule_turns_it_off)
{
    CHECK_KEPT("jam", "jam 0", SDDMM);
}

TEST(sums_that_are_lanes_themselves_are_left_alone)
{
    CHECK_KEPT("jam", "jam 1",
               "program spmm(m, n, f)\naxis I = dense(m), J = compressed(I, n), K = dense(f)\n"
               "f32 A[I, J], B[n, K], C[I, K]\nc: C[i, k] += A[i, j] * B[j, k]\n");
}
