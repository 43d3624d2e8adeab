/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Pass flatten (lower/storage/flatten.c, offset.c): the flat index of an element. */
#include "unit/pass_bed.h"

static const char *flat(const char *program)
{
    return pass_text("flatten", NULL, program);
}

TEST(a_dense_array_is_stored_in_row_major_order)
{
    CHECK_HAS(flat("program p(m, n)\naxis I = m, K = n\nf32 X[I, K, 3], Y[I, K]\n"
                   "y: Y[i, k] = X[i, k, 2]\n"),
              "Y[i * n + k] = X[(i * n + k) * 3 + 2]");
}

TEST(a_row_of_entries_lies_behind_the_entries_before_it)
{
    CHECK_HAS(flat("program p(m, f)\naxis I = m, E(I) = seg, K = f\nf32 X[E, K], Y[I, K]\n"
                   "y: Y[i, k] += X[e, k]\n"),
              "Y[i * f + k] += X[e * f + k]");
}

TEST(an_element_without_indices_is_element_0)
{
    CHECK_HAS(flat("program p(m)\naxis I = m\nf32 X[], Y[I]\ny: Y[i] = X[]\n"), "Y[i] = X[0]");
}
