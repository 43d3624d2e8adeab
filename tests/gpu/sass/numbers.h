/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Bits and numbers.  A number that is NaN becomes the one NaN of the hardware. */
#ifndef WEFT_SASS_NUMBERS_H
#define WEFT_SASS_NUMBERS_H

#include "gpu/sass/sass_int.h"

#include <fenv.h>
#include <string.h>

typedef uint32_t Lanes[LANES];
enum { NAN32 = 0x7fffffff };
#define NAN64 UINT64_C(0x7fffffffffffffff)

static inline float as_float(uint32_t x)
{
    float f;

    memcpy(&f, &x, 4);
    return f;
}

static inline uint32_t of_float(float f)
{
    uint32_t x;

    memcpy(&x, &f, 4);
    return f != f ? NAN32 : x;
}

static inline double as_double(uint64_t x)
{
    double d;

    memcpy(&d, &x, 8);
    return d;
}

static inline uint64_t of_double(double d)
{
    uint64_t x;

    memcpy(&x, &d, 8);
    return d != d ? NAN64 : x;
}

/* .FTZ: a subnormal number counts as 0. */
static inline uint32_t flushed(uint32_t x)
{
    return (x & 0x7f800000) == 0 ? x & 0x80000000u : x;
}

/* The rounding of an instruction; to nearest is the one that is on. */
static inline int rounding(const Ins *i)
{
    return has(i, M_RM) || has(i, M_FLOOR)   ? FE_DOWNWARD
           : has(i, M_RP) || has(i, M_CEIL)  ? FE_UPWARD
           : has(i, M_RZ) || has(i, M_TRUNC) ? FE_TOWARDZERO
                                             : FE_TONEAREST;
}

enum Sum { SUM, PRODUCT, FUSED };

#endif
