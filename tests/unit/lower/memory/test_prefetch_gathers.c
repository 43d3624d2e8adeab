/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Pass prefetch_gathers (lower/memory/prefetch_gathers.c): which rows are prefetched some entries
 * ahead. */
#include "unit/pass_bed.h"

#define HEAD                                                                      \
    "program p(m, n, f)\naxis I = dense(m), J = compressed(I, n), K = dense(f)\n" \
    "f32 A[I, J], B[n, K], C[I, K], S[I]\n"

TEST(a_gathered_row_is_prefetched)
{
    CHECK_GIVES("prefetch_gathers", "ahead 4096", HEAD "c: C[i, k] += A[i, j] * B[j, k]\n",
                "ahead B[J.coord[");
}

TEST(a_schedule_turns_it_off)
{
    CHECK_KEPT("prefetch_gathers", "ahead 0", HEAD "c: C[i, k] += A[i, j] * B[j, k]\n");
}

TEST(entries_that_are_read_in_order_are_left_to_the_hardware)
{
    CHECK_KEPT("prefetch_gathers", "ahead 4096", HEAD "s: S[i] += A[i, j]\n");
}
