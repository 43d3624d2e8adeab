/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * What the tests of o3/ share: numbers, rows that turn, specs that are programs. */
#ifndef WEFT_O3_BED_H
#define WEFT_O3_BED_H

#include "unit/api_bed.h"
#include "unit/ir_bed.h"

#include "o3/o3.h"

#include <math.h>

static inline double uniform(uint64_t *seed)
{
    return ldexp((double)(test_random(seed) >> 11), -52) - 1;
}

/* Room for two rows of n, the first of them filled. */
static inline double *drawn(Bed *b, int64_t n, uint64_t *seed)
{
    double *v = arena_array(&b->arena, 2 * n, sizeof *v);

    for (int64_t i = 0; i < n; i++)
        v[i] = uniform(seed);
    return v;
}

/* Row 1 becomes D times row 0. */
static inline void turn(Bed *b, O3Irreps irreps, const double r[9], double *v)
{
    int64_t n = o3_dim(irreps);
    const double *d = o3_irreps_d(&b->arena, irreps, r);

    for (int64_t i = 0; i < n; i++) {
        v[n + i] = 0;
        for (int64_t k = 0; k < n; k++)
            v[n + i] += d[i * n + k] * v[k];
    }
}

/* Each spec is a program with a meaning. */
static inline void check_specs(const char *const *spec, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        weft_ctx_free(ctx);
        ctx = weft_ctx_new();
        ok(weft_prog_o3(ctx, spec[i], &prog), spec[i], __LINE__);
        ok(weft_prog_check(prog), spec[i], __LINE__);
        close_prog();
    }
}

#endif
