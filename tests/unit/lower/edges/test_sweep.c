/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Pass sweep (lower/edges/sweep.c): the edges of a row in tiles, its sums in registers. */
#include "unit/pass_bed.h"

#define CONV(y)                                                                       \
    "program conv(nodes, senders)\naxis I = nodes, E(I) = seg : j < senders\n"        \
    "axis P = rows sz { 0, 1 }, U(P) = {16, 8}, SZ = 2, UZ(SZ) = {16, 8}\n"           \
    "f32 X[senders, SZ, UZ], Y[E, SZ], Z[I, SZ, UZ]\n"                                \
    "z: for i, e, p, u: Z[i, sz(p), u] += 0.5 * " y " * X[j(e), sz(p), u]\n"

TEST(edges_of_a_row_pass_in_tiles)
{
    CHECK_GIVES("sweep", "sweep 2", CONV("Y[e, sz(p)]"), "of tiles(E[i], 2)");
    CHECK_GIVES("sweep", "sweep 2", CONV("Y[e, sz(p)]"), "Z.work1[e - first] = 0.5 * Y[e * 2]");
}

TEST(a_schedule_turns_it_off)
{
    CHECK_KEPT("sweep", "sweep 0", CONV("Y[e, sz(p)]"));
}

/* One sum that fits the registers is for pass accumulate. */
TEST(a_single_sum_is_left_alone)
{
    CHECK_KEPT("sweep", "sweep 2",
               "program spmm(m, n)\naxis I = m, E(I) = seg : j < n\naxis K = 32\n"
               "f32 A[E], B[n, K], C[I, K]\nc: C[i, k] += A[e] * B[j(e), k]\n");
}
