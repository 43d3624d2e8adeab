/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Pass prefetch_rows (lower/memory/prefetch_rows.c): rows that are read in many pieces. */
#include "unit/pass_bed.h"

#define HEAD                                                                                    \
    "program next(n)\naxis B = n, U = 32\n"                                                     \
    "axis Q = rows m s -> c { 0 0 -> 1, 1 1 -> 2, 2 2 -> 3, 1 3 -> 4, 2 4 -> 5, 0 5 -> 6, 1 6 " \
    "-> 7, 2 7 -> 8 }\n"                                                                        \
    "f32 X[B, 768], W[B, 256], Y[B, 3], Z[B, U], H[B, 512], G[B, U]\n"

TEST(the_pieces_of_the_next_row_are_prefetched)
{
    static const char program[] =
        HEAD "z: Z[b, u] += c[q] * Y[b, m(q)] * X[b, u * 3 + m(q)] * W[b, u + 32 * s(q)]\n";
    const char *text = pass_text("prefetch_rows", "stream 0; ahead 4096", program);

    CHECK_EQ(pass_count(pass_print("prefetch_rows", "stream 0; ahead "
                                   "4096", program, true), "ahead far W["), 0);
    CHECK_EQ(pass_count(text, "ahead far W["), 8); /* one for each piece */
    CHECK_EQ(pass_count(text, "ahead far Y["), 0); /* a short row */
}

TEST(rows_of_few_pieces_are_left_to_the_hardware)
{
    CHECK_KEPT("prefetch_rows", "stream 0; ahead 4096",
               HEAD "g: G[b, u] += c[q] * H[b, u * 2] * Y[b, m(q)]\n");
}
