/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * What the tests of layers on plain arrays share. */
#ifndef WEFT_LAYER_BED_H
#define WEFT_LAYER_BED_H

#include "unit/api_bed.h"

#include <math.h>
#include <stdlib.h>

enum { MOST = 400 }; /* elements of an array */

/* Numbers between -1 and 1, other ones each time. */
static inline void fill(double *a)
{
    static uint64_t state = 1;

    for (int i = 0; i < MOST; i++) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        a[i] = (double)(int)(state >> 40) / 0x1p23 - 1;
    }
}

static inline double dot(const double *a, const double *b, int64_t n)
{
    double sum = 0;

    for (int64_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

static inline void near(double a, double b)
{
    CHECK(fabs(a - b) <= 1e-12 * (1 + fabs(a)));
}

#endif
