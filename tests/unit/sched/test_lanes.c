/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Pass lanes (sched/lanes.c): the steps of a schedule that need flat indices.  What each step
 * refuses is tested in test_steps.c and test_steps_refuse.c. */
#include "unit/pass_bed.h"

#define SPMM                                                                         \
    "program spmm(m, n, f)\naxis I = dense(m), J = compressed(I, n), K = dense(f)\n" \
    "f32 A[I, J], B[n, K], C[I, K]\nc: C[i, k] += A[i, j] * B[j, k]\n"

TEST(a_step_runs_its_loop_in_lanes)
{
    CHECK_HAS(pass_text("lanes", "vectorize c.k 8", SPMM), "vector for k in K step 8");
    CHECK_EQ(pass_count(pass_text("flatten", "vectorize c.k 8", SPMM), "vector for"), 0);
}

TEST(a_step_that_cannot_be_applied_says_why)
{
    CHECK_HAS(pass_error("lanes", "vectorize c.q 8", SPMM), "c.q");
}

TEST(without_a_step_no_loop_has_lanes)
{
    CHECK_EQ(pass_count(pass_text("lanes", NULL, SPMM), "vector for"), 0);
}
