/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Pass accumulate (lower/registers/accumulate.c): which elements are kept in a register while a
 * loop adds to them. */
#include "unit/pass_bed.h"

#define HEAD                                                        \
    "program a(m, n, f)\naxis I = m, J = compressed(I, n), K = f\n" \
    "f32 A[I, J], B[n, K], C[I, K], S[I, J], X[I, K], Y[n, K]\n"

TEST(a_row_of_sums_stays_in_registers_while_its_entries_pass)
{
    CHECK_GIVES("accumulate", NULL, HEAD "c: C[i, k] += A[i, j] * B[j, k]\n",
                "reg v: f32x8 = C[i * f + k]\n");
}

TEST(the_vector_loop_moves_outside_the_loop_over_entries)
{
    const char *text = pass_text("accumulate", NULL, HEAD "c: C[i, k] += A[i, j] * B[j, k]\n");
    const char *lanes = strstr(text, "vector for k"), *sum = strstr(text, "v += ");

    CHECK(lanes != NULL && sum != NULL && lanes < sum);
}

TEST(a_sum_over_lanes_is_a_register_too)
{
    CHECK_GIVES("accumulate", NULL, HEAD "s: for i, j, k: S[i, j] += X[i, k] * Y[j, k]\n",
                "reg v: f32 = ");
}

TEST(an_element_that_the_caller_names_is_not_kept)
{
    /* i(e) may name a row that does not exist, where no entry does */
    CHECK_KEPT("accumulate", NULL,
               "program a(n, f) stage loops\naxis E = n : i < f\nf32 A[E]; inout f32 C[f]\n"
               "phase c\n    for e in 0..n\n        C[E.i[e]] += A[e]\n");
}

TEST(an_element_that_each_iteration_changes_is_stored)
{
    CHECK_KEPT("accumulate", NULL,
               "program a(m, n)\naxis I = m, K = n\nf32 X[I, K], Y[I, K]\ny: Y[i, k] = X[i, k]\n");
}
