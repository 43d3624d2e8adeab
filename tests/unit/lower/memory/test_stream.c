/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Pass stream (lower/memory/stream.c): which results are stored by non-temporal stores. */
#include "unit/pass_bed.h"

#define HEAD                                                                         \
    "program streams(n)\naxis B = n, U = 32, Q = rows m -> c { 0 -> 0.5, 1 -> 2 }\n" \
    "f32 X[B, U, 2], Y[B, 2], Z[B, U], V[B, 33], R[B, U]; temp f32 S[B, U]\n"

TEST(a_result_of_large_rows_is_stored_past_the_caches)
{
    CHECK_GIVES("stream", "stream 1000000", HEAD "z: Z[b, u] += c[q] * Y[b, m(q)] * X[b, u, "
                "m(q)]\n",
                "stream Z[b * 32 + u] = ");
}

TEST(the_store_asks_for_the_number_of_rows)
{
    CHECK_HAS(pass_text("stream", "stream 1000000",
                        HEAD "z: Z[b, u] += c[q] * Y[b, m(q)] * X[b, u, m(q)]\n"),
              " if n >= ");
}

TEST(rows_that_begin_inside_of_a_cache_line_are_stored_as_usual)
{
    CHECK_KEPT("stream", "stream 1000000", HEAD "v: for b, u, q: V[b, u] += c[q] * Y[b, m(q)] * "
               "X[b, u, m(q)]\n");
}

TEST(a_result_that_the_kernel_reads_again_stays_in_the_caches)
{
    CHECK_EQ(pass_count(pass_text("stream", "stream 1000000",
                                  HEAD "s: S[b, u] += c[q] * Y[b, m(q)] * X[b, u, m(q)]\n"
                                       "r: R[b, u] = S[n - 1 - b, u] * Y[b, 0]\n"),
                        "stream S"),
             0);
}

TEST(a_schedule_turns_it_off)
{
    CHECK_KEPT("stream", "stream 0", HEAD "z: Z[b, u] += c[q] * Y[b, m(q)] * X[b, u, m(q)]\n");
}
