/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Pass hash (lower/search/hash.c): which searches ask a hash table.  Results of searches are tested
 * in test_search.c. */
#include "unit/pass_bed.h"

TEST(a_search_among_unordered_entries_asks_a_table)
{
    CHECK_GIVES("hash", NULL,
                "program h(m, n)\naxis I = m, J = compressed(I, n) unique\nf64 A[I, J], Y[I, n]\n"
                "y: for i, c in n: Y[i, c] = A[i, c]\n",
                "lookup(J, ");
}

TEST(sorted_entries_are_bisected)
{
    CHECK_KEPT("hash", NULL,
               "program h(m, n)\naxis I = m, J = compressed(I, n) sorted unique\n"
               "f64 A[I, J], Y[I, n]\ny: for i, c in n: Y[i, c] = A[i, n - 1 - c]\n");
}

TEST(rows_of_a_few_entries_are_compared_one_by_one)
{
    CHECK_KEPT("hash", NULL,
               "program h(m, n)\naxis I = m, S = ell(I, 5, n) unique\nf64 A[I, S], Y[I, n]\n"
               "y: for i, c in n: Y[i, c] = A[i, c]\n");
    CHECK_GIVES("hash", NULL,
                "program h(m, n, w)\naxis I = m, S = ell(I, w, n) unique\nf64 A[I, S], Y[I, n]\n"
                "y: for i, c in n: Y[i, c] = A[i, c]\n",
                "lookup(S, ");
}
