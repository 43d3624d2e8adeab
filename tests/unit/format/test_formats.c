/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Pass formats (format/apply.c, api/format.c): the axis that a schedule stores in another format.
 * That results stay the same is tested in test_format_apply.c. */
#include "unit/pass_bed.h"

#define SPMM                                                                         \
    "program spmm(m, n, f)\naxis I = dense(m), J = compressed(I, n), K = dense(f)\n" \
    "f32 A[I, J], B[n, K], C[I, K]\nc: C[i, k] += A[i, j] * B[j, k]\n"

TEST(a_line_stores_the_entries_of_an_axis_in_blocks)
{
    const char *text = pass_text("formats", "format J bsr(2, 2)", SPMM);

    CHECK_HAS(text, "axis IB_blocks_J");
    CHECK_HAS(text, "fill_A");
    CHECK_EQ(pass_count(text, "A[i, j] *"), 0);
}

TEST(without_a_line_the_program_stays_as_it_is)
{
    CHECK_STR(pass_text("formats", NULL, SPMM), pass_text("formats", "tile 8", SPMM));
    CHECK_HAS(pass_text("formats", NULL, SPMM), "c: C[i, k] += A[i, j] * B[j, k]");
}

TEST(an_axis_that_does_not_exist_is_an_error)
{
    CHECK_HAS(pass_error("formats", "format Q bsr(2, 2)", SPMM), "Q");
}
