/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Pass unroll (lower/constants/unroll.c): which loops become straight-line code. */
#include "unit/pass_bed.h"

TEST(a_loop_over_a_constant_relation_becomes_one_store_for_each_row)
{
    CHECK_GIVES("unroll", NULL,
                "program tp(n)\n"
                "axis B = n, M = 3, P = rows a d -> c { 0 1 -> 0.5, 1 2 -> -0.5, 2 0 -> 0.25 }\n"
                "f32 X[B, M], Y[B, M], Z[B]\n"
                "z: Z[b] += c[p] * X[b, a(p)] * Y[b, d(p)]\n",
                "Z[b] += -0.5 * X[b, 1] * Y[b, 2]\n");
}

TEST(a_dense_loop_of_constant_length_stays_a_loop)
{
    CHECK_KEPT("unroll", NULL,
               "program sum(n)\naxis B = n, M = 3\nf32 X[B, M], Z[B]\nz: Z[b] += X[b, m]\n");
}

TEST(a_condition_that_the_rows_decide_is_decided)
{
    const char *text = pass_text("unroll", NULL,
                                 "program tp(n)\n"
                                 "axis B = n, P = rows a { 0, 1, 2 }\n"
                                 "f32 X[B, 3], Z[B]\n"
                                 "z: Z[b] += X[b, a(p)] if a(p) != 1\n");

    CHECK_HAS(text, "Z[b] += X[b, 0]\n");
    CHECK_HAS(text, "Z[b] += X[b, 2]\n");
    CHECK_EQ(pass_count(text, "X[b, 1]"), 0);
    CHECK_EQ(pass_count(text, "if "), 0);
}

TEST(a_table_beyond_the_code_budget_stays_a_loop)
{
    char text[40000];
    int n = snprintf(text, sizeof text, "program tp(n)\naxis B = n, P = rows a { ");

    for (int i = 0; i < 1500; i++)
        n += snprintf(text + n, sizeof text - (size_t)n, "%s%d", i == 0 ? "" : ", ", i);
    snprintf(text + n, sizeof text - (size_t)n,
             " }\nf32 X[B, 1500], Z[B]\nz: Z[b] += %s\n",
             "X[b, a(p)] * X[b, a(p)] * X[b, a(p)] * X[b, a(p)] * X[b, a(p)] * X[b, a(p)] * "
             "X[b, a(p)] * X[b, a(p)] * X[b, a(p)] * X[b, a(p)] * X[b, a(p)] * X[b, a(p)] * "
             "X[b, a(p)] * X[b, a(p)] * X[b, a(p)] * X[b, a(p)] * X[b, a(p)] * X[b, a(p)]");
    CHECK_HAS(pass_text("unroll", NULL, text), "P.a[p]");
}
