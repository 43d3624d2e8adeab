/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Pass init_registers (lower/init/registers.c): initial values that begin a register. */
#include "unit/pass_bed.h"

#define SPMM                                                                         \
    "program spmm(m, n, f)\naxis I = dense(m), J = compressed(I, n), K = dense(f)\n" \
    "f32 A[I, J], B[n, K], C[I, K]\nc: C[i, k] += A[i, j] * B[j, k]\n"

TEST(a_register_starts_with_the_initial_value)
{
    CHECK_GIVES("init_registers", NULL, SPMM, "reg v: f32x8 = 0.0\n");
}

TEST(the_phase_of_initial_values_is_gone)
{
    CHECK_EQ(pass_count(pass_print("init_registers", NULL, SPMM, true), "C.init"), 1);
    CHECK_EQ(pass_count(pass_print("init_registers", NULL, SPMM, false), "C.init"), 0);
}

TEST(the_first_content_of_an_inout_buffer_is_kept)
{
    CHECK_KEPT("init_registers", NULL,
               "program spmm(m, n, f)\naxis I = dense(m), J = compressed(I, n), K = dense(f)\n"
               "f32 A[I, J], B[n, K]; inout f32 C[I, K]\nc: C[i, k] += A[i, j] * B[j, k]\n");
}
