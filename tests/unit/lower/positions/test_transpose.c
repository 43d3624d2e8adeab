/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Pass transpose (lower/positions/transpose.c): which scatters become sums over the rows of a
 * transpose.  Their results are tested in test_kernel_coo.c. */
#include "unit/pass_bed.h"

#define HEAD "program t(m, n, f)\naxis I = m, J = compressed(I, n), K = f, S = 64, U = 4\n"

TEST(a_scatter_becomes_a_sum_over_the_rows_of_a_transpose)
{
    CHECK_GIVES("transpose", NULL,
                HEAD "f32 A[J], C[I, K], B[n, K]\nb: B[j, k] += C[i, k] * A[j]\n", "from "
                     "transpose(J, coord)");
}

TEST(a_sum_into_the_row_of_its_entries_is_no_scatter)
{
    CHECK_KEPT("transpose", NULL,
               HEAD "f32 A[J], B[n, K], C[I, K]\nc: C[i, k] += A[j] * B[j, k]\n");
}

TEST(a_scatter_that_would_gather_long_rows_stays_a_scatter)
{
    /* 256 bytes of C for each entry, against 4 bytes of B */
    CHECK_KEPT("transpose", NULL, HEAD "f32 C[I, S], B[n]\nb: B[j] += C[i, s] * C[i, s]\n");
    CHECK_GIVES("transpose", NULL, HEAD "f32 C[I, U], B[n, S]\nb: B[j, s] += C[i, s % 4]\n",
                "from transpose(J, coord)");
}

TEST(a_group_of_scatters_and_sums_of_rows_is_separated)
{
    const char *text = pass_text("transpose", NULL,
                                 HEAD "f32 A[J], D[J], C[I, K], B[n, K]\n"
                                      "for i, j, k:\n"
                                      "    b: B[j, k] += C[i, k] * A[j]\n"
                                      "    d: D[j] += C[i, k]\n");

    CHECK_HAS(text, "\nd: ");
    CHECK_HAS(text, "\nb: ");
}
