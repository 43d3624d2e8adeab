/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Pass vectorize (lower/lanes/vectorize.c, transpose_copy.c): which innermost loops run in lanes.
 * */
#include "unit/pass_bed.h"

#define HEAD                                          \
    "program v(r, n)\naxis I = r, K = n, M = 3\ni64 P[K]\n" \
    "f32 X[I, K], Y[I, K], S[I], T[I, M, 64], Z[I, 64, M]\n"

TEST(neighbours_are_computed_in_lanes)
{
    CHECK_GIVES("vectorize", NULL, HEAD "y: Y[i, k] = X[i, k] * 2 + S[i]\n", "vector for k in K "
                "step 8");
}

TEST(a_register_of_f64_has_half_as_many_lanes)
{
    CHECK_GIVES("vectorize", NULL,
                "program v(n)\naxis K = n\nf64 X[3, K], Y[3, K]\ny: for i in 3, k: Y[i, k] = "
                "X[i, k] * 2\n",
                "vector for k in K step 4");
}

TEST(a_copy_that_transposes_runs_over_its_long_dimension)
{
    CHECK_GIVES("vectorize", NULL, HEAD "z: for i, m, u in 64: T[i, m, u] = Z[i, u, m]\n",
                "vector for u in 0..64 step 8");
}

TEST(elements_that_an_index_array_names_are_not_stored_in_lanes)
{
    CHECK_KEPT("vectorize", NULL,
               "program v(m, n) stage loops\naxis I = m, K = n : p < n\nf32 X[K]; inout f32 Y[n]\n"
               "phase y\n    for k in 0..n\n        Y[K.p[k]] += X[k]\n");
}
