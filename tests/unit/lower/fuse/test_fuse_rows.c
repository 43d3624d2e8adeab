/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Pass fuse_rows (lower/fuse/rows.c): which phases over the same rows become one. */
#include "unit/pass_bed.h"

#define HEAD                                    \
    "program m(n)\naxis B = n, M = 3, U = 16\n" \
    "f32 X[B, U, M], Z[B, U, M], V[B], Y[B, U]; temp f32 T[B, M, U], S[B, U]\n"

TEST(a_temporary_of_the_row_becomes_scratch)
{
    const char *text = pass_text("fuse_rows", NULL,
                                 HEAD "t: T[b, m, u] = 2 * X[b, u, m]\n"
                                      "z: for b, m, u: Z[b, u, m] = T[b, m, u] * T[b, 0, u]\n");

    CHECK_HAS(text, "temp work f32 T.work1[48]");
    CHECK_EQ(pass_count(text, "\nphase "), 1);
}

TEST(a_phase_between_them_that_shares_nothing_stays_where_it_is)
{
    const char *text = pass_text("fuse_rows", NULL,
                                 HEAD "t: T[b, m, u] = 2 * X[b, u, m]\nv: V[b] += X[b, 0, 0]\n"
                                      "z: for b, m, u: Z[b, u, m] = T[b, m, u] * T[b, 0, u]\n");

    CHECK_HAS(text, "temp work f32 T.work1[48]");
    CHECK_EQ(pass_count(text, "\nphase "), 2);
}

TEST(a_temporary_that_is_read_at_another_row_stays_in_memory)
{
    CHECK_KEPT("fuse_rows", NULL, HEAD "s: S[b, u] = X[b, u, 0]\ny: Y[b, u] = S[n - 1 - b, u]\n");
}
