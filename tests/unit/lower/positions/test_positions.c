/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Pass positions (lower/positions/statements.c, access.c): loops over stored entries, and the
 * search that an index needs. */
#include "unit/pass_bed.h"

#define HEAD                                                                 \
    "program p(m, n)\n"                                                      \
    "axis I = m, J = compressed(I, n), K = compressed(I, n) sorted unique\n" \
    "f32 A[I, J], B[I, K], X[n], Y[I], Z[I, n]\n"

TEST(a_sum_gets_an_initial_value_for_its_output)
{
    const char *text = pass_text("positions", NULL, HEAD "y: Y[i] += A[i, j] * X[j]\n");

    CHECK_HAS(text, "\ninit Y = 0.0\nphase y ");
    CHECK_HAS(text, "Y[i] += A[j] * X[J.coord[j]]\n");
}

TEST(an_output_that_is_set_whole_has_no_initial_values)
{
    CHECK_EQ(pass_count(pass_text("positions", NULL, HEAD "y: Y[i] = X[0]\n"), "Y.init"), 0);
}

TEST(the_entry_of_a_variable_needs_no_search)
{
    const char *text = pass_text("positions", NULL, HEAD "y: Y[i] += A[i, j] * X[j]\n");

    CHECK_EQ(pass_count(text, "find("), 0);
}

TEST(the_entry_of_a_coordinate_is_searched_and_a_miss_reads_the_fill)
{
    const char *text = pass_text("positions", NULL, HEAD "y: Y[i] += A[i, j] * B[i, j]\n");

    CHECK_HAS(text, "find(K, ");
    CHECK_HAS(text, "B[v], 0.0)");
}

TEST(an_index_of_unknown_size_is_checked)
{
    CHECK_HAS(pass_text("positions", NULL,
                        "program p(m, n)\naxis I = m, E(I) = seg : j\nf32 X[n], Y[I]\n"
                        "y: Y[i] += X[j(e)]\n"),
              "check 0 <= E.j[e] and E.j[e] < n else");
}
