/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Pass combine (lower/finish/combine.c): terms of one element are added before its store. */
#include "unit/pass_bed.h"

#define HEAD "program sums(n)\naxis B = n\nf32 A[B, 2], Z[B, 2]\ntemp f32 T[B, 2]\n"

TEST(the_terms_of_an_element_are_stored_once)
{
    static const char program[] = HEAD "z: Z[b, 0] += A[b, 0]\nz1: Z[b, 0] += 2 * A[b, 1]\n";

    CHECK_EQ(pass_count(pass_print("combine", NULL, program, true), "Z[b * 2] += "), 1);
    CHECK_EQ(pass_count(pass_print("combine", NULL, program, false), "Z[b * 2] += "), 0);
}

TEST(a_term_that_reads_a_later_store_keeps_its_place)
{
    const char *text = pass_text("combine", NULL,
                                 HEAD "t: T[b, 0] += A[b, 0]\nz: Z[b, 0] += A[b, 0]\n"
                                      "t1: T[b, 0] += 3 * A[b, 1]\nz2: Z[b, 0] += T[b, 0]\n");
    const char *store = strstr(text, " T[b * 2] = "), *read = strstr(text, "+= T[b * 2]");

    CHECK(store != NULL && read != NULL && store < read);
}

TEST(stores_to_different_elements_stay)
{
    CHECK_KEPT("combine", NULL, HEAD "z: Z[b, 0] = A[b, 0]\nz1: T[b, 1] = 2 * A[b, 1]\n");
}
