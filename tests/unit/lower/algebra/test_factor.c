/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Pass factor (lower/algebra/): sums of products with few operations.  What it does with the
 * entries of a row is tested in lower/edges/test_recompute.c and lower/fuse/test_fuse_entries.c.
 * */
#include "unit/pass_bed.h"

#define HEAD                                                                                     \
    "program tp(n)\n"                                                                            \
    "axis B = n, U = 8, Q = rows m1 m2 m3 -> c { 0 0 0 -> 0.5, 1 1 0 -> 0.5, 0 1 1 -> 2, 0 0 1 " \
    "-> 3 }\n"                                                                                   \
    "f32 X[B, U, 2], Y[B, 2], W[B, U], Z[B, U, 2], V[B, U]\n"
#define PRODUCT "z: Z[b, u, m3(q)] += c[q] * Y[b, m2(q)] * X[b, u, m1(q)] * W[b, u]\n"

TEST(each_element_of_the_output_is_stored_once_in_an_iteration)
{
    const char *with = pass_text("factor", NULL, HEAD PRODUCT);
    const char *without = pass_print("factor", NULL, HEAD PRODUCT, true);

    CHECK_EQ(pass_count(without, "+="), 4);
    CHECK_EQ(pass_count(with, "+="), 2);
}

TEST(coefficients_are_computed_before_the_loop)
{
    CHECK_GIVES("factor", NULL, HEAD PRODUCT, "    let v: f32 = 0.5 * Y[b * 2 + 1]\n");
}

TEST(loops_that_share_elements_become_one_loop)
{
    static const char two[] = HEAD PRODUCT "z1: Z[b, u, 0] += Y[b, 0] * X[b, u, 0] * W[b, u]\n";

    CHECK_EQ(pass_count(pass_text("factor", NULL, two), "for u in"),
             pass_count(pass_text("factor", NULL, HEAD PRODUCT), "for u in"));
}

TEST(a_value_that_is_no_product_keeps_its_loop)
{
    CHECK_KEPT("factor", NULL,
               "program e(n)\naxis B = n, U = 8\nf32 X[B, U], Z[B, U]\nz: Z[b, u] = exp(X[b, "
               "u])\n");
}
