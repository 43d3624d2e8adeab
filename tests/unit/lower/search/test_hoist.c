/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Pass hoist (lower/search/hoist.c): which tests and searches leave a loop. */
#include "unit/pass_bed.h"

#define HEAD                                                                        \
    "program h(m, n, f)\n"                                                          \
    "axis I = m, J = compressed(I, n), L = compressed(I, n) sorted unique, K = f\n" \
    "f64 A[I, J], B[I, L], X[K], Y[I, K]\n"

/* Spaces before the first line that has the part. */
static int indent_of(const char *text, const char *part)
{
    const char *at = strstr(text, part), *s = at;

    CHECK(at != NULL);
    while (s > text && s[-1] != '\n')
        s--;
    return (int)strspn(s, " ");
}

TEST(a_search_that_a_loop_does_not_change_moves_before_it)
{
    static const char program[] = HEAD "y: for i, j, k: Y[i, k] += A[i, j] * B[i, j] * X[k]\n";
    const char *with = pass_text("hoist", NULL, program);
    const char *without = pass_print("hoist", NULL, program, true);

    CHECK(indent_of(with, "find(L, ") < indent_of(without, "find(L, "));
}

TEST(a_search_moves_only_where_the_loop_runs)
{
    CHECK_HAS(pass_text("hoist", NULL, HEAD "y: for i, j, k: Y[i, k] += A[i, j] * B[i, j] * "
                        "X[k]\n"),
              "select(0 < f, find(L, ");
}

TEST(a_search_for_the_variable_of_the_loop_stays_in_it)
{
    CHECK_KEPT("hoist", NULL,
               "program h(m, n)\naxis I = m, L = compressed(I, n) sorted unique\n"
               "f64 B[I, L], Y[I, n]\ny: for i, c in n: Y[i, c] = B[i, c]\n");
}
