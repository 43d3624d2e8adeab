/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Functions of floats, to stand after simd.h in kernels that call one.  Of f32 they are computed in
 * f32 lanes, and one float is the first lane of a vector: a tail has the bits of the lanes.  Of f64
 * they are those of the C library, but exp, sigmoid and silu in lanes. */
#ifndef WEFT_ELEMENTARY
#define WEFT_ELEMENTARY

#if defined(__FMA__) || defined(WEFT_AVX512) || defined(__aarch64__)
#define WEFT_FUSES 1
#define WEFT_MORE(type, a, b, c) weft_fma_##type(a, b, c)
#else
#define WEFT_FUSES 0
#define WEFT_MORE(type, a, b, c) ((a) * (b) + (c))
#endif
#define WEFT_SUM_OF(type, SPLAT, n, x, coefficient, sum) \
    do { \
        sum = SPLAT((coefficient)[0]); \
        for (int weft_i = 1; weft_i < (n); weft_i++) \
            sum = WEFT_MORE(type, sum, x, SPLAT((coefficient)[weft_i])); \
    } while (0)

#define WEFT_LIBRARY(name, expr) \
    WEFT_FN double weft_##name##_f64(double x) { return expr; }
WEFT_LIBRARY(exp, exp(x))
WEFT_LIBRARY(log, log(x))
WEFT_LIBRARY(sqrt, sqrt(x))
WEFT_LIBRARY(rsqrt, 1 / sqrt(x))
WEFT_LIBRARY(sin, sin(x))
WEFT_LIBRARY(cos, cos(x))
WEFT_LIBRARY(tanh, tanh(x))
WEFT_LIBRARY(sigmoid, 1 / (1 + exp(-x)))
WEFT_LIBRARY(silu, x *(1 / (1 + exp(-x))))

/* e^x is 2^n e^r with |r| below ln(2)/2: n are the last bits of a sum that is so large. */
WEFT_FN weft_vf64 weft_power(weft_vi64 n) { return (weft_vf64)((n + 1023) << 52); }

WEFT_FN weft_vf64 weft_exp_vf64(weft_vf64 x)
{
    static const double term[] = { 1.0 / 6227020800, 1.0 / 479001600, 1.0 / 39916800,
                                   1.0 / 3628800, 1.0 / 362880, 1.0 / 40320, 1.0 / 5040, 1.0 / 720,
                                   1.0 / 120, 1.0 / 24, 1.0 / 6, 0.5, 1, 1 };
    const weft_vf64 large = WEFT_SPLAT_F64(0x1.8p52);
    weft_vf64 t, n, sum;
    weft_vi64 whole, half;

    x = weft_max_vf64(weft_min_vf64(x, WEFT_SPLAT_F64(710)), WEFT_SPLAT_F64(-750));
    t = WEFT_MORE(vf64, x, WEFT_SPLAT_F64(1.4426950408889634), large);
    n = t - large;
    /* n times the first part of ln 2 is exact */
    x = WEFT_MORE(vf64, n, WEFT_SPLAT_F64(-6.93147180369123816490e-01), x);
    x = WEFT_MORE(vf64, n, WEFT_SPLAT_F64(-1.90821492927058770002e-10), x);
    WEFT_SUM_OF(vf64, WEFT_SPLAT_F64, 14, x, term, sum);
    whole = (weft_vi64)t - (weft_vi64)large;
    half = whole >> 1;
    return sum * weft_power(half) * weft_power(whole - half); /* 2^n may be no double */
}

WEFT_FN weft_vf64 weft_sigmoid_vf64(weft_vf64 x) { return 1 / (1 + weft_exp_vf64(-x)); }
WEFT_FN weft_vf64 weft_silu_vf64(weft_vf64 x) { return x * weft_sigmoid_vf64(x); }

/* From here on: f32.  What takes part in a choice is computed in all lanes. */
#define WEFT_F(x) WEFT_SPLAT_F32(x)
#define WEFT_BITS_OF(x) ((weft_vi32)(x))
#define WEFT_POLYNOMIAL(n, x, coefficient, sum) \
    WEFT_SUM_OF(vf32, WEFT_SPLAT_F32, n, x, coefficient, sum)

/* a < b ? x : y; where a or b is NaN: y */
WEFT_FN weft_vf32 weft_if_less(weft_vf32 a, weft_vf32 b, weft_vf32 x, weft_vf32 y)
{
#if defined(WEFT_AVX512)
    return (weft_vf32)_mm512_mask_blend_ps(
        _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_LT_OQ), (__m512)y, (__m512)x);
#elif defined(WEFT_AVX)
    return (weft_vf32)_mm256_blendv_ps((__m256)y, (__m256)x,
                                       _mm256_cmp_ps((__m256)a, (__m256)b, _CMP_LT_OQ));
#else
    return weft_select_vf32((weft_vi32)(a < b), x, y);
#endif
}

/* Not above c, not below c: a NaN stays. */
WEFT_FN weft_vf32 weft_at_most(weft_vf32 x, weft_vf32 c)
{
#if defined(WEFT_AVX512)
    return (weft_vf32)_mm512_min_ps((__m512)c, (__m512)x);
#elif defined(WEFT_AVX)
    return (weft_vf32)_mm256_min_ps((__m256)c, (__m256)x);
#else
    return weft_if_less(c, x, c, x);
#endif
}

WEFT_FN weft_vf32 weft_at_least(weft_vf32 x, weft_vf32 c)
{
#if defined(WEFT_AVX512)
    return (weft_vf32)_mm512_max_ps((__m512)c, (__m512)x);
#elif defined(WEFT_AVX)
    return (weft_vf32)_mm256_max_ps((__m256)c, (__m256)x);
#else
    return weft_if_less(x, c, c, x);
#endif
}

/* x 2^n, rounded once, for whole numbers n from -252 to 252. */
WEFT_FN weft_vf32 weft_scaled(weft_vf32 x, weft_vf32 n)
{
#if defined(WEFT_AVX512)
    return (weft_vf32)_mm512_scalef_ps((__m512)x, (__m512)n);
#else
    const weft_vi32 whole = WEFT_BITS_OF(n + 0x1.8p23f) - WEFT_BITS_OF(WEFT_F(0x1.8p23f));
    const weft_vi32 half = whole >> 1;

    return x * (weft_vf32)((half + 127) << 23) * (weft_vf32)((whole - half + 127) << 23);
#endif
}

/* 2^n, for whole numbers n from -126 to 127. */
WEFT_FN weft_vf32 weft_two(weft_vf32 n)
{
#if defined(WEFT_AVX512)
    return weft_scaled(WEFT_F(1), n);
#else
    return (weft_vf32)(WEFT_BITS_OF(n + (0x1.8p23f + 127)) << 23);
#endif
}

WEFT_FN weft_vf32 weft_nearest(weft_vf32 x, float times)
{
    return WEFT_MORE(vf32, x, WEFT_F(times), WEFT_F(0x1.8p23f)) - WEFT_F(0x1.8p23f);
}

/* x - n ln 2: n times the first part of ln 2 is exact. */
WEFT_FN weft_vf32 weft_reduced(weft_vf32 x, weft_vf32 n)
{
    x = WEFT_MORE(vf32, n, WEFT_F(-0x1.62e4p-1f), x);
    return WEFT_MORE(vf32, n, WEFT_F(-0x1.7f7d1cp-20f), x);
}

static const float weft_exp_term[] WEFT_USED = { 0x1.6a48fcp-10f, 0x1.12399cp-7f, 0x1.5558b4p-5f,
                                                 0x1.555492p-3f,  0x1.fffffcp-2f, 1, 1 };
#define WEFT_OVER_LN2 1.44269504f

/* e^x = p 2^n */
WEFT_FN weft_vf32 weft_raise(weft_vf32 x, weft_vf32 *n)
{
    weft_vf32 p;

    *n = weft_nearest(x, WEFT_OVER_LN2);
    x = weft_reduced(x, *n);
    WEFT_POLYNOMIAL(7, x, weft_exp_term, p);
    return p;
}

WEFT_FN weft_vf32 weft_exp_vf32(weft_vf32 x)
{
    weft_vf32 n, p = weft_raise(weft_at_least(weft_at_most(x, WEFT_F(89)), WEFT_F(-105)), &n);

    return weft_scaled(p, n);
}

WEFT_FN weft_vf32 weft_minus_abs(weft_vf32 x)
{
    return (weft_vf32)(WEFT_BITS_OF(x) | INT32_MIN);
}

WEFT_FN weft_vf32 weft_signed(weft_vf32 x, weft_vf32 sign)
{
    return (weft_vf32)((WEFT_BITS_OF(x) & INT32_MAX) | (WEFT_BITS_OF(sign) & INT32_MIN));
}

/* e^x / (1 + e^x) below 0, 1 / (1 + e^-x) above: no power is too large. */
WEFT_FN weft_vf32 weft_sigmoid_vf32(weft_vf32 x)
{
    weft_vf32 n, p = weft_raise(weft_at_least(weft_minus_abs(x), WEFT_F(-105)), &n);
    const weft_vf32 e = weft_scaled(p, n);

    return weft_if_less(x, WEFT_F(0), e, WEFT_F(1)) / (1 + e);
}

/* x / (1 + e^-x), where what is divided by has a factor 2^-m, so that it is not too large: the
 * quotient gets it last, as it may be too small to have all its bits. */
WEFT_FN weft_vf32 weft_silu_vf32(weft_vf32 x)
{
    const weft_vf32 zero = WEFT_F(0), low = weft_at_least(x, WEFT_F(-120));
    weft_vf32 n, p = weft_raise(-weft_at_most(low, WEFT_F(105)), &n);
    const weft_vf32 m = weft_at_least(n, zero);
    const weft_vf32 under = weft_scaled(p, n - m) + weft_two(weft_at_least(-m, WEFT_F(-126)));

    x = WEFT_MORE(vf32, weft_at_most(x, zero), zero, low); /* NaN of minus infinity */
    return weft_scaled(x / under, -m);
}

/* (1 - e^2x) / (1 + e^2x) below 0, where e^2x - 1 = 2^n (e^r - 1) + (2^n - 1). */
WEFT_FN weft_vf32 weft_tanh_vf32(weft_vf32 x)
{
    const weft_vf32 y = weft_at_least(2 * weft_minus_abs(x), WEFT_F(-20));
    const weft_vf32 n = weft_nearest(y, WEFT_OVER_LN2), r = weft_reduced(y, n);
    const weft_vf32 two = weft_two(n);
    weft_vf32 p;

    WEFT_POLYNOMIAL(5, r, weft_exp_term, p);
    p = WEFT_MORE(vf32, r * r, p, r);
    p = WEFT_MORE(vf32, two, p, two - 1);
    return weft_signed(p / (2 + p), x);
}

/* x = m 2^e with m from sqrt(1/2) to sqrt(2), and log m by the powers of f = m - 1. */
WEFT_FN weft_vf32 weft_log_vf32(weft_vf32 x)
{
    static const float term[] = { 0x1.147334p-4f,  -0x1.de01d8p-4f, 0x1.e6c00ap-4f,
                                  -0x1.fc28cap-4f, 0x1.233ba2p-3f,  -0x1.555c44p-3f,
                                  0x1.99a476p-3f,  -0x1.000006p-2f, 0x1.555548p-2f };
    const weft_vf32 zero = WEFT_F(0), least = WEFT_F(0x1p-126f), inf = WEFT_F(INFINITY);
    const weft_vi32 root = WEFT_BITS_OF(WEFT_F(0x1.6a09e6p-1f));
    const weft_vi32 bits = WEFT_BITS_OF(weft_if_less(x, least, x * 0x1p23f, x)) - root;
    const weft_vf32 e = __builtin_convertvector(bits >> 23, weft_vf32) -
                        weft_if_less(x, least, WEFT_F(23), zero);
    const weft_vf32 f = (weft_vf32)((bits & 0x7fffff) + root) - 1, f2 = f * f;
    weft_vf32 y;

    WEFT_POLYNOMIAL(9, f, term, y);
    y = WEFT_MORE(vf32, e, WEFT_F(0x1.7f7d1cp-20f), f2 * f * y);
    y = f + WEFT_MORE(vf32, f2, WEFT_F(-0.5f), y);
    y = WEFT_MORE(vf32, e, WEFT_F(0x1.62e4p-1f), y);
    y = weft_if_less(zero, x, y, weft_if_less(x, zero, WEFT_F(NAN), -inf));
    return weft_if_less(x, inf, y, x);
}

WEFT_FN weft_vf32 weft_rsqrt_vf32(weft_vf32 x) { return 1 / weft_sqrt_vf32(x); }

/* Angles above this have the library's reduction, and its values. */
#define WEFT_FAR 8192.0f
WEFT_FN int weft_any_far(weft_vf32 x)
{
    const weft_vi32 far = (weft_vi32)(weft_minus_abs(x) < -WEFT_FAR);
    int32_t any = 0;

    for (int i = 0; i < WEFT_BYTES / 4; i++)
        any |= far[i];
    return any != 0;
}

static WEFT_USED __attribute__((noinline)) weft_vf32 weft_far(weft_vf32 x, weft_vf32 y, int cosine)
{
    for (int i = 0; i < WEFT_BYTES / 4; i++)
        if (fabsf(x[i]) > WEFT_FAR)
            y[i] = (float)(cosine ? cos((double)x[i]) : sin((double)x[i]));
    return y;
}

/* Angles are n pi/2 + r, where pi/2 is a sum of parts.  n tells which of the two functions it
 * is of r, and its sign. */
WEFT_FN weft_vf32 weft_turned(weft_vf32 x, int cosine)
{
#if WEFT_FUSES
    static const float part[] = { -0x1.921fb4p+0f, -0x1.4442dp-24f, -0x1.846988p-48f };
#else
    static const float part[] = { -0x1.92p+0f, -0x1.fb4p-12f, -0x1.444p-24f, -0x1.68cp-39f,
                                  -0x1.1a6264p-54f };
#endif
    static const float odd[] = { 0x1.7c2da2p-19f, -0x1.a05956p-13f, 0x1.111174p-7f,
                                 -0x1.555556p-3f };
    static const float even[] = { 0x1.99e80cp-16f, -0x1.6c0c28p-10f, 0x1.55554ap-5f, -0.5f, 1 };
    const weft_vf32 y = -weft_minus_abs(x), n = weft_nearest(y, 0x1.45f306p-1f);
    const weft_vi32 turn = WEFT_BITS_OF(n + 0x1.8p23f) + cosine;
    const weft_vi32 sign = cosine ? (weft_vi32){ 0 } : WEFT_BITS_OF(x) & INT32_MIN;
    weft_vf32 r = y, r2, s, c;

    for (int i = 0; i < (int)(sizeof part / sizeof *part); i++)
        r = WEFT_MORE(vf32, n, WEFT_F(part[i]), r);
    r2 = r * r;
    WEFT_POLYNOMIAL(4, r2, odd, s);
    WEFT_POLYNOMIAL(5, r2, even, c);
    s = weft_select_vf32(-(turn & 1), c, WEFT_MORE(vf32, r * r2, s, r));
    s = (weft_vf32)(WEFT_BITS_OF(s) ^ sign ^ (turn & 2) << 30);
    return __builtin_expect(weft_any_far(x), 0) ? weft_far(x, s, cosine) : s;
}

WEFT_FN weft_vf32 weft_sin_vf32(weft_vf32 x) { return weft_turned(x, 0); }
WEFT_FN weft_vf32 weft_cos_vf32(weft_vf32 x) { return weft_turned(x, 1); }

/* One float: a lane. */
#define WEFT_ONE(name) \
    WEFT_FN float weft_##name##_f32(float x) { return weft_##name##_vf32((weft_vf32){ x })[0]; }
WEFT_FN float weft_sqrt_f32(float x) { return sqrtf(x); }
WEFT_FN float weft_rsqrt_f32(float x) { return 1 / sqrtf(x); }
WEFT_ONE(exp)
WEFT_ONE(log)
WEFT_ONE(sin)
WEFT_ONE(cos)
WEFT_ONE(tanh)
WEFT_ONE(sigmoid)
WEFT_ONE(silu)
#endif
