/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Pass fuse_sums (lower/fuse/sums.c): which phases of sums become one. */
#include "unit/pass_bed.h"

#define HEAD                                                            \
    "program s(n, m)\naxis B = n, U = 4, C = m, E = compressed(C, n)\n" \
    "f32 X[B, 8], Y[B, 8], S[C], T[C]; inout f32 Z[B, 8], R[B, 4]\n"

static int phases(const char *program)
{
    return pass_count(pass_text("fuse_sums", NULL, program), "\nphase ");
}

TEST(sums_over_one_range_into_their_own_rows_are_one_phase)
{
    CHECK_EQ(phases(HEAD "for b, u:\n    z: Z[b, u] += X[b, u]\n"
                         "for b, u:\n    r: R[b, u] += Y[b, u]\n"),
             1);
}

TEST(a_sum_into_the_row_of_another_iteration_stays_apart)
{
    CHECK_KEPT("fuse_sums", NULL,
               HEAD "for b, u:\n    z: Z[b, u] += X[b, u]\n"
                    "for b, u:\n    r: R[n - 1 - b, u] += Z[b, u]\n");
}

TEST(a_phase_that_sets_elements_stays_apart)
{
    CHECK_KEPT("fuse_sums", NULL,
               HEAD "for b, u:\n    z: Z[b, u] += X[b, u]\n"
                    "for b, u:\n    z2: R[b, u] max= Y[b, u]\n");
}

TEST(sums_over_different_ranges_stay_apart)
{
    CHECK_KEPT("fuse_sums", NULL,
               "program s(n, m)\naxis B = n, C = m, E = compressed(C, n)\n"
               "f32 X[B, 8], Z[B], S[C]\n"
               "z: for b, u in 8: Z[b] += X[b, u]\ns: S[c] += X[e, 0]\n");
}
