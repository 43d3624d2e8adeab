/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Pass cse (lower/finish/cse.c): which expressions are computed once.  Expressions inside choices
 * are tested in test_unfold.c. */
#include "unit/pass_bed.h"

#define HEAD "program share(n)\naxis I = n, K = 4\nf64 X[2 * n], Y[I], Z[I], W[I, K]\n"

TEST(an_expression_that_occurs_twice_is_computed_once)
{
    static const char program[] = HEAD
        "for i:\n    let a = X[2 * i] * X[2 * i + 1] + 1\n    y: Y[i] = a * a\n";
    const char *text = pass_text("cse", NULL, program);

    CHECK_EQ(pass_count(text, "X["), 3); /* the declaration, and each factor once */
    CHECK_HAS(text, "Y[i] = v * v");
}

TEST(a_value_that_the_innermost_loop_keeps_is_computed_before_it)
{
    const char *text = pass_text("cse", NULL, HEAD "w: W[i, k] = sqrt(X[i]) * k\n");
    const char *root = strstr(text, "sqrt("), *loop = strstr(text, "for k in ");

    CHECK(root != NULL && loop != NULL && root < loop);
}

TEST(an_element_that_a_store_changes_is_loaded_again)
{
    const char *text = pass_text("cse", NULL,
                                 "program s(n) stage loops\naxis I = n\nf64 X[I]; inout f64 Y[I]\n"
                                 "phase y for i in 0..n\n    Y[i] = Y[i] * X[i]\n    Y[i] = "
                                 "Y[i] * 2\n");

    CHECK_HAS(text, "Y[i] = 2 * Y[i]");
}

TEST(an_expression_that_occurs_once_stays_in_its_place)
{
    CHECK_KEPT("cse", NULL, "program s(n)\naxis I = n\nf64 X[I], Y[I]\ny: Y[i] = X[i] + 1\n");
}
