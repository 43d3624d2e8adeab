/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Pass relayout (lower/positions/relayout.c): which operands are copied with the last dimension of
 * the output last. */
#include "unit/pass_bed.h"

#define HEAD                                  \
    "program relayout(m, n)\n"                \
    "axis I = m, E(I) = seg : j < n, d < 9\n" \
    "axis C = 8, O = 16\n"                    \
    "f32 X[n, C], W[O, 9, C], Y[I, O], V[O, n], M[O, C]\n"

TEST(a_small_operand_is_copied_with_the_lanes_of_the_output_last)
{
    CHECK_GIVES("relayout", NULL,
                HEAD "y: for i, e, o, c: Y[i, o] += X[j(e), c] * W[o, d(e), c]\n",
                "X[j(e), c] * W_t[d(e), c, o]");
}

TEST(one_matrix_that_all_entries_read_is_not_copied)
{
    CHECK_KEPT("relayout", NULL, HEAD "y: for i, e, o, c: Y[i, o] += X[j(e), c] * M[o, c]\n");
}

TEST(an_operand_of_a_size_of_the_run_is_not_copied)
{
    CHECK_KEPT("relayout", NULL, HEAD "y: for i, e, o, c: Y[i, o] += V[o, j(e)] * X[j(e), c]\n");
}

#define WIDE(c)                                                                     \
    "program wide(m, n)\naxis I = m, E(I) = seg : j < n, d < 9\naxis C = " c ", O = 64\n" \
    "f32 X[n, C], W[O, 9, C], Y[I, O]\n"                                            \
    "y: for i, e, o, c: Y[i, o] += X[j(e), c] * W[o, d(e), c]\n"

TEST(an_operand_of_more_than_2_20_elements_is_not_copied)
{
    CHECK_GIVES("relayout", NULL, WIDE("1024"), "W_t[d(e), c, o]");
    CHECK_KEPT("relayout", NULL, WIDE("4096"));
}

TEST(an_operand_that_has_the_output_last_stays_as_it_is)
{
    CHECK_KEPT("relayout", NULL,
               "program relayout(m, n)\naxis I = m, E(I) = seg : j < n, d < 9\naxis C = 8, O = 16\n"
               "f32 X[n, C], W[9, C, O], Y[I, O]\n"
               "y: for i, e, c, o: Y[i, o] += X[j(e), c] * W[d(e), c, o]\n");
}
