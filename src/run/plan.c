/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * What is computed once for a structure: the entries of rows, ordered by a coordinate. */
#include "run/run.h"

void run_transpose(const int64_t *start, int64_t rows, const int64_t *coord, int64_t n,
                   int64_t *out_start, int64_t *out_entry, int64_t *out_row)
{
    for (int64_t j = 0; j <= n; j++)
        out_start[j] = 0;
    for (int64_t e = start[0]; e < start[rows]; e++)
        out_start[coord[e] + 1]++;
    for (int64_t j = 0; j < n; j++)
        out_start[j + 1] += out_start[j];
    for (int64_t i = 0; i < rows; i++)
        for (int64_t e = start[i]; e < start[i + 1]; e++) {
            int64_t to = out_start[coord[e]]++;

            out_entry[to] = e;
            out_row[to] = i;
        }
    for (int64_t j = n; j > 0; j--) /* each start has moved to the next one's place */
        out_start[j] = out_start[j - 1];
    out_start[0] = 0;
}
