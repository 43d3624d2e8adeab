/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Pass fold: unroll (lower/constants/unroll.c) once more on flat loops, where positions of constant
 * tables are known. */
#include "unit/pass_bed.h"

#define HEAD                                                                                   \
    "program found(n)\n"                                                                       \
    "axis I = n, R = rows row { 0, 2, 3, 5 } sorted unique, S(R) = {6, 9, 0, 12} : c = s * s " \
    "sorted unique\n"                                                                          \
    "f64 D[R, S] fill -1, W[I]\n"

TEST(a_search_below_a_known_position_runs_without_a_test)
{
    CHECK_GIVES("fold", NULL, HEAD "w: W[i] = D[2, i]\n", "let v1: i64 = find(S, ");
}

TEST(a_test_that_a_known_position_decides_is_gone)
{
    const char *with = pass_text("fold", NULL, HEAD "w: W[i] = D[2, i]\n");
    const char *without = pass_print("fold", NULL, HEAD "w: W[i] = D[2, i]\n", true);

    CHECK_EQ(pass_count(without, "0 <= v and 0 <= v1"), 1);
    CHECK_EQ(pass_count(with, "0 <= v and 0 <= v1"), 0);
}

TEST(a_search_for_a_loop_variable_stays_a_search)
{
    CHECK_KEPT("fold", NULL, HEAD "w: W[i] = D[i, 4]\n");
}
