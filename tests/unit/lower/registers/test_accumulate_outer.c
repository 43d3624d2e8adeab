/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Pass accumulate_outer (lower/registers/accumulate_outer.c): sums of loops around other loops. */
#include "unit/pass_bed.h"

#define HEAD                                        \
    "program outer(n)\naxis B = n, U = 5, V = 16\n" \
    "f32 X[B, U], W[B, U, V], G[B, V], Y[B], Z[B, U]\n"

TEST(the_sum_of_an_outer_loop_is_stored_once_after_it)
{
    static const char program[] = HEAD
        "for b, u, v:\n    y: Y[b] += X[b, u] * W[b, u, v] * G[b, v]\n";

    CHECK_GIVES("accumulate_outer", NULL, program, "v += X[b * 5 + u] * v1\n");
    CHECK_GIVES("accumulate_outer", NULL, program, "    Y[b] += v\n");
}

TEST(an_element_of_each_iteration_keeps_its_store)
{
    CHECK_KEPT("accumulate_outer", NULL,
               HEAD "for b, u, v:\n    z: Z[b, u] += X[b, u] * W[b, u, v] * G[b, v]\n");
}
