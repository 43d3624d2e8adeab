/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Pass split_sums (lower/split/): which sums are split into chunks for threads, and which are not.
 * Their results are tested in test_kernel_parts.c. */
#include "unit/pass_bed.h"

#define HEAD                                                            \
    "program parts(m, n, f)\naxis I = m, J = compressed(I, n), K = f\n" \
    "f32 A[I, J], B[n, K], C[I, K], S[], Y[I, K]\n"

TEST(long_rows_have_phases_of_chunks)
{
    CHECK_GIVES("split_sums", NULL, HEAD "c: C[i, k] += A[i, j] * B[j, k]\n", "phase C.parts ");
    CHECK_GIVES("split_sums", NULL, HEAD "c: C[i, k] += A[i, j] * B[j, k]\n",
                "C.part[P_J, f]");
}

TEST(a_sum_of_all_entries_is_combined_from_chunks)
{
    CHECK_GIVES("split_sums", NULL, HEAD "s: S[] += A[i, j]\n", "S.part[P_");
}

TEST(a_scatter_adds_to_a_private_copy_for_each_chunk)
{
    CHECK_GIVES("split_sums", NULL,
                "program x(m, n)\naxis I = m, E(I) = seg : j < n\n"
                "f32 A[E], B[I, 8], X[n]\n"
                "x: for i, e, u in 8: X[j(e)] += A[e] * B[i, u] * B[i, 7 - u]\n",
                "X.part[");
}

TEST(a_phase_without_sums_is_not_split)
{
    CHECK_KEPT("split_sums", NULL, HEAD "y: Y[i, k] = B[0, k]\n");
}

TEST(a_sum_that_reads_what_it_adds_to_is_not_split)
{
    CHECK_KEPT("split_sums", NULL,
               "program x(m) stage positions\naxis I = m\nf32 A[I]; inout f32 S[]\n"
               "phase s\n    for i in 0..m\n        S[] += A[i] * S[]\n");
}

TEST(rows_of_constant_length_are_not_split)
{
    CHECK_KEPT("split_sums", NULL,
               "program x(m)\naxis I = m, U = 8\nf32 A[I, U], Y[I]\ny: Y[i] += A[i, u]\n");
}
