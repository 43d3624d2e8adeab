/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Pass gallop (lower/search/gallop.c): which searches continue where the last one ended.  Results
 * of searches are tested in test_search.c. */
#include "unit/pass_bed.h"

#define HEAD                                                            \
    "program g(m, n)\naxis I = m, J = compressed(I, n) sorted unique, " \
    "K = compressed(I, n) sorted unique, U = compressed(I, n) unique\n" \
    "i64 X[I]\nf64 A[I, J], B[I, K], C[I, U], Y[I, n], T[I]\n"

TEST(ascending_coordinates_continue_the_search)
{
    CHECK_GIVES("gallop", NULL, HEAD "t: T[i] += A[i, j] * B[i, j]\n", "near(K, ");
}

TEST(coordinates_in_any_order_start_each_search_anew)
{
    CHECK_KEPT("gallop", NULL, HEAD "t: T[i] += C[i, u] * B[i, u]\n");
}

TEST(descending_coordinates_start_each_search_anew)
{
    CHECK_KEPT("gallop", NULL, HEAD "y: for i, c in n: Y[i, c] = B[i, n - 1 - c]\n");
}

TEST(unsorted_entries_are_never_galloped)
{
    CHECK_KEPT("gallop", NULL, HEAD "t: T[i] += A[i, j] * C[i, j]\n");
}

TEST(a_search_in_another_row_each_time_starts_anew)
{
    CHECK_KEPT("gallop", NULL, HEAD "y: for i, c in n: Y[i, 0] += B[c % m, c]\n");
}
