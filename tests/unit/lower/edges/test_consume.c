/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Pass consume (lower/edges/consume.c): edges in tiles, whose products use up rows in scratch. */
#include "unit/pass_bed.h"

#define USED(more)                                                                             \
    "program used(nodes, senders, edges)\n"                                                    \
    "axis I = nodes, E(I) = seg : j < senders, edge < edges once\naxis L = 4, U = 16\n"        \
    "f32 X[senders, U], Y[edges], M[L, U], G[edges, L], F[I, U]\ntemp f32 D[E, U]\n"           \
    "d: D[e, u] += Y[edge(e)] * X[j(e), u]\n"                                                  \
    "for i, e, l, u:\n    g: G[edge(e), l] += D[e, u] * M[l, u]\n" more

TEST(products_of_a_tile_use_up_its_rows)
{
    CHECK_GIVES("consume", "sweep 2", USED(""), "if last - first == 2");
    CHECK_GIVES("consume", "sweep 2", USED(""), "of tiles(E[i], 2)");
}

TEST(a_schedule_turns_it_off)
{
    CHECK_KEPT("consume", "sweep 0", USED(""));
}

TEST(edges_without_rows_in_scratch_are_left_alone)
{
    CHECK_KEPT("consume", "sweep 2",
               "program spmm(m, n)\naxis I = m, E(I) = seg : j < n\naxis K = 32\n"
               "f32 A[E], B[n, K], C[I, K]\nc: C[i, k] += A[e] * B[j(e), k]\n");
}
