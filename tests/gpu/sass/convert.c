/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Conversions between types of numbers, and operations on pairs of f16 or bf16. */
#include "gpu/sass/numbers.h"
#include "gpu/sass/ops.h"

#include <math.h>

/* ---- Numbers of 16 bits: `digits` of the fraction, exponents from `least` on. */
typedef struct Short {
    int digits, least, most, nan;
} Short;
static const Short f16 = { 10, -14, 15, 0x7fff }, bf16 = { 7, -126, 127, 0x7fff };

static uint32_t shortened(double d, const Short *s)
{
    const uint32_t sign = signbit(d) ? 0x8000 : 0, infinite = (uint32_t)(s->most - s->least + 2)
                                                              << s->digits;
    int e;

    if (isnan(d))
        return (uint32_t)s->nan;
    if (d == 0)
        return sign;
    if (isinf(d))
        return sign | infinite;
    frexp(d, &e);
    e = e - 1 < s->least ? s->least : e - 1;
    /* units of the last place; rint rounds to even, and a carry into the exponent is right as it is
     * */
    const double units = rint(fabs(ldexp(d, s->digits - e)));
    const double r = units + (double)(e - s->least) * (1 << s->digits);

    return r >= infinite ? sign | infinite : sign | (uint32_t)r;
}

static double lengthened(uint32_t x, const Short *s)
{
    const int e = (int)(x >> s->digits) & ((1 << (15 - s->digits)) - 1),
              fraction = (int)x & ((1 << s->digits) - 1);
    double d;

    if (e == (1 << (15 - s->digits)) - 1)
        d = fraction != 0 ? NAN : INFINITY;
    else
        d = ldexp(e == 0 ? fraction : fraction + (1 << s->digits),
                  (e == 0 ? 1 : e) - 1 + s->least - s->digits);
    return x & 0x8000 ? -d : d;
}

/* ---- F2F, F2FP, FRND */
static bool
wide_source(const Ins *i) /* F2F.F32.F64: the source's type comes last, and text has it in order */
{
    return strstr(i->text, ".F64") != NULL &&
           (strstr(i->text, "F2F") == NULL || strstr(i->text, ".F32.F64") != NULL ||
            strstr(i->text, "F16.F64") != NULL);
}

static double source(const Warp *w, const Ins *i, const Arg *a, uint32_t l, bool wide)
{
    const uint32_t *v = raw(w, a);
    uint32_t x = v[l];
    double d;

    if (wide)
        d = as_double(pair_at(v, l));
    else if (has(i, M_F16) && strstr(i->text, ".F32.F16") != NULL)
        d = lengthened((a->part == 'H' ? x >> 16 : x) & 0xffff, &f16);
    else
        d = as_float(has(i, M_FTZ) ? flushed(x) : x);
    d = a->abs ? fabs(d) : d;
    return a->neg ? -d : d;
}

void op_f2f(Warp *w, const Ins *i, uint32_t mask)
{
    const bool wide = wide_source(i), doubles = has(i, M_F64) && !wide;
    uint64_t v[LANES];
    Lanes low = { 0 };

    for (EACH(l, mask)) {
        const double d = source(w, i, &i->arg[i->args - 1], l, wide);

        if (doubles) {
            v[l] = of_double(d);
        } else if (has(i, M_F32) && strstr(i->text, ".F32.") != NULL) {
            volatile float f;

            fesetround(rounding(i));
            f = (float)d;
            fesetround(FE_TONEAREST);
            low[l] = of_float(f);
        } else {
            low[l] = shortened(d, has(i, M_BF16) ? &bf16 : &f16);
        }
    }
    if (doubles)
        put_pair(w, &i->arg[0], v, mask);
    else
        put(w, &i->arg[0], low, mask);
}

/* Two floats to a pair: the second operand gives the lower half. */
void op_f2fp(Warp *w, const Ins *i, uint32_t mask)
{
    const Short *s = has(i, M_BF16) ? &bf16 : &f16;
    Lanes ta, tb, v = { 0 };
    const uint32_t *a = bits(w, &i->arg[1], ta), *b = bits(w, &i->arg[2], tb);

    for (EACH(l, mask))
        v[l] = shortened(as_float(a[l]), s) << 16 | shortened(as_float(b[l]), s);
    put(w, &i->arg[0], v, mask);
}

static double whole(const Ins *i, double d)
{
    switch (rounding(i)) {
    case FE_DOWNWARD: return floor(d);
    case FE_UPWARD: return ceil(d);
    case FE_TOWARDZERO: return trunc(d);
    default: return rint(d);
    }
}

void op_frnd(Warp *w, const Ins *i, uint32_t mask)
{
    const bool wide = has(i, M_F64);
    uint64_t v[LANES];
    Lanes low = { 0 };

    for (EACH(l, mask)) {
        const double d = whole(i, source(w, i, &i->arg[1], l, wide));

        v[l] = of_double(d);
        low[l] = of_float((float)d);
    }
    if (wide)
        put_pair(w, &i->arg[0], v, mask);
    else
        put(w, &i->arg[0], low, mask);
}

/* ---- Integers */
typedef struct Range {
    bool sign;
    int width;
} Range;

static Range range_of(const Ins *i)
{
    const bool sign = !(has(i, M_U8) || has(i, M_U16) || has(i, M_U32) || has(i, M_U64));
    const int width = has(i, M_U8) || has(i, M_S8)     ? 8
                      : has(i, M_U16) || has(i, M_S16) ? 16
                      : has(i, M_U64) || has(i, M_S64) ? 64
                                                       : 32;

    return (Range){ sign, width };
}

/* The nearest integer of the range; NaN gives 0 with .NTZ, else the upper bit alone. */
static uint64_t integer(double d, Range r, bool nan_is_zero)
{
    const double top = ldexp(1, r.width - r.sign);

    if (isnan(d))
        return nan_is_zero ? 0 : UINT64_C(1) << (r.width - 1);
    if (r.sign)
        return d >= top   ? (UINT64_C(1) << (r.width - 1)) - 1
               : d < -top ? (uint64_t)INT64_MIN >> (64 - r.width)
                          : (uint64_t)(int64_t)d;
    return d >= top ? ~UINT64_C(0) >> (64 - r.width) : d <= 0 ? 0 : (uint64_t)d;
}

void op_f2i(Warp *w, const Ins *i, uint32_t mask)
{
    const Range r = range_of(i);
    uint64_t v[LANES];
    Lanes low = { 0 };

    for (EACH(l, mask)) {
        v[l] = integer(whole(i, source(w, i, &i->arg[1], l, has(i, M_F64))), r, has(i, M_NTZ));
        low[l] = (uint32_t)v[l];
    }
    if (r.width == 64)
        put_pair(w, &i->arg[0], v, mask);
    else
        put(w, &i->arg[0], low, mask);
}

static uint64_t integer_source(const Warp *w, const Arg *a, uint32_t l, Range r)
{
    const uint32_t *v = raw(w, a);
    uint64_t x = r.width == 64 ? pair_at(v, l) : v[l];

    if (a->part == 'H')
        x >>= 16;
    else if (a->part >= 'b')
        x >>= 8 * (a->part - 'b');
    if (r.width < 64) {
        const int up = 64 - r.width;

        x = r.sign ? (uint64_t)((int64_t)(x << up) >> up) : x << up >> up;
    }
    return a->neg ? 0 - x : x;
}

void op_i2f(Warp *w, const Ins *i, uint32_t mask)
{
    const Range r = range_of(i);
    uint64_t v[LANES];
    Lanes low = { 0 };

    fesetround(rounding(i));
    for (EACH(l, mask)) {
        const uint64_t x = integer_source(w, &i->arg[1], l, r);
        volatile double d;
        volatile float f;

        if (r.sign) {
            f = (float)(int64_t)x;
            d = (double)(int64_t)x;
        } else {
            f = (float)x;
            d = (double)x;
        }
        v[l] = of_double(d);
        low[l] = of_float(f);
    }
    fesetround(FE_TONEAREST);
    if (has(i, M_F16))
        for (EACH(l, mask))
            low[l] = shortened(as_double(v[l]), &f16);
    if (has(i, M_F64))
        put_pair(w, &i->arg[0], v, mask);
    else
        put(w, &i->arg[0], low, mask);
}

/* ---- Pairs of halves */
static double half_arg(const Warp *w, const Arg *a, uint32_t l, int half, const Short *s)
{
    const uint32_t x = raw(w, a)[l];
    const int from = a->part == 'h' ? 0 : a->part == 'H' ? 1 : half;
    double d = lengthened(x >> 16 * from & 0xffff, s);

    d = a->abs ? fabs(d) : d;
    return a->neg ? -d : d;
}

/* x + y, rounded to odd: a second rounding to fewer digits is then right. */
static double odd_sum(double x, double y)
{
    const double s = x + y, part = s - x, error = (x - (s - part)) + (y - part);
    uint64_t b;

    if (error == 0 || !isfinite(s))
        return s;
    memcpy(&b, &s, 8);
    return b & 1 ? s : nextafter(s, error > 0 ? INFINITY : -INFINITY);
}

static void halves(Warp *w, const Ins *i, uint32_t mask, int what)
{
    const Short *s = has(i, M_BF16_V2) ? &bf16 : &f16;
    Lanes v = { 0 };

    for (EACH(l, mask)) {
        for (int h = 0; h < 2; h++) {
            const double a = half_arg(w, &i->arg[1], l, h, s), b = half_arg(w, &i->arg[2], l, h, s);
            double r = what == SUM       ? odd_sum(a, b)
                       : what == PRODUCT ? a * b
                                         : odd_sum(a * b, half_arg(w, &i->arg[3], l, h, s));

            if (has(i, M_F32)) { /* one float */
                v[l] = of_float((float)r);
                break;
            }
            r = has(i, M_SAT) ? fmin(fmax(r, 0), 1) : r;
            v[l] |= shortened(has(i, M_RELU) && r < 0 ? 0 : r, s) << 16 * h;
        }
    }
    put(w, &i->arg[0], v, mask);
}
void op_hadd2(Warp *w, const Ins *i, uint32_t mask)
{
    halves(w, i, mask, SUM);
}
void op_hmul2(Warp *w, const Ins *i, uint32_t mask)
{
    halves(w, i, mask, PRODUCT);
}
void op_hfma2(Warp *w, const Ins *i, uint32_t mask)
{
    halves(w, i, mask, FUSED);
}
