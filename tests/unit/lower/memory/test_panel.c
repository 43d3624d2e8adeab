/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Pass panel (lower/memory/panels.c): panels of columns, on request of the schedule. */
#include "unit/pass_bed.h"

#define SPMM                                                                         \
    "program spmm(m, n, f)\naxis I = dense(m), J = compressed(I, n), K = dense(f)\n" \
    "f32 A[I, J], B[n, K], C[I, K]\nc: C[i, k] += A[i, j] * B[j, k]\n"

TEST(all_rows_of_a_panel_come_before_the_next_panel)
{
    CHECK_GIVES("panel", "panel 8", SPMM, "let panel: i64 = q / m\n");
}

TEST(a_packed_panel_is_read_from_a_copy)
{
    CHECK_EQ(pass_count(pass_text("panel", "panel 8", SPMM), "B.pack"), 0);
    CHECK(pass_count(pass_text("panel", "panel 8; pack 1", SPMM), "phase ") >
          pass_count(pass_text("panel", "panel 8", SPMM), "phase "));
}

TEST(without_the_line_there_are_no_panels)
{
    CHECK_KEPT("panel", "panel 0", SPMM);
}

TEST(a_phase_that_gathers_nothing_has_no_panels)
{
    CHECK_KEPT("panel", "panel 8",
               "program s(m)\naxis I = m\nf32 X[I], Y[I]\ny: Y[i] = X[i] * 2\n");
}
