/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Pass init_stores (lower/init/stores.c): initial values that the first store of an element
 * replaces. */
#include "unit/pass_bed.h"

#define HEAD                                                                   \
    "program d(n)\n"                                                           \
    "axis B = n, U = 3, W = 8, Q = rows m1 m3 -> c { 0 0 -> 0.5, 1 1 -> 2 }\n" \
    "f32 X[B, U, 2], G[B, W, 2], D[B, U, W], H[B, 10]\n"

TEST(the_first_store_sets_an_element)
{
    static const char program[] = HEAD
        "d: for b, u, w, q: D[b, u, w] += G[b, w, m3(q)] * c[q] * X[b, u, m1(q)]\n";

    CHECK_EQ(pass_count(pass_print("init_stores", NULL, program, true), "D.init"), 1);
    CHECK_EQ(pass_count(pass_print("init_stores", NULL, program, false), "D.init"), 0);
    CHECK_EQ(pass_count(pass_print("init_stores", NULL, program, false), "+="), 0);
}

TEST(a_row_that_iterations_reach_twice_is_initialised_at_its_start)
{
    const char *text = pass_text("init_stores", NULL, HEAD "h: H[b, u + w] += X[b, u, 0] * G[b, "
                                 "w, 0]\n");

    CHECK_HAS(text, "H.init: for x in 0..10\n");
    CHECK_HAS(text, "+=");
}
