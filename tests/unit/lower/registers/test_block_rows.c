/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Pass block_rows (lower/registers/block_rows.c): rows that share operands run side by side. */
#include "unit/pass_bed.h"

#define HEAD                                                       \
    "program blocks(mb, nb, f)\n"                                  \
    "axis IB = mb, JB(IB) = seg : j < nb, BI = 7, BJ = 3, K = f\n" \
    "f32 A[JB, BI, BJ], X[nb, BJ, K], Y[IB, BI, K], Z[IB, K]\n"

TEST(rows_of_a_block_share_each_loaded_operand)
{
    static const char program[] = HEAD "y: Y[ib, bi, k] += A[jb, bi, bj] * X[j(jb), bj, k]\n";
    const char *text = pass_text("block_rows", NULL, program);

    CHECK_EQ(pass_count(text, "vector for k in "), 2);
    CHECK_EQ(pass_count(text, "let x = X["), 2);
    CHECK_HAS(text, "reg v3: f32x8");
}

TEST(a_single_row_is_not_blocked)
{
    CHECK_KEPT("block_rows", NULL, HEAD "z: Z[ib, k] += A[jb, 0, bj] * X[j(jb), bj, k]\n");
}
