/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * What kernels begin with: vector types, fused multiply-add, checked integers, 16-bit floats. */
#include <math.h>
#include <stdint.h>
#include <string.h>

#if defined(__AVX512F__)
#define WEFT_BYTES 64
#include <immintrin.h>
#elif defined(__AVX__)
#define WEFT_BYTES 32
#include <immintrin.h>
#elif defined(__ARM_NEON)
#define WEFT_BYTES 16
#include <arm_neon.h>
#else
#define WEFT_BYTES 16
#endif

typedef float weft_vf32 __attribute__((vector_size(WEFT_BYTES)));
typedef double weft_vf64 __attribute__((vector_size(WEFT_BYTES)));
typedef int32_t weft_vi32 __attribute__((vector_size(WEFT_BYTES)));
typedef int64_t weft_vi64 __attribute__((vector_size(WEFT_BYTES)));
typedef float weft_uf32 __attribute__((vector_size(WEFT_BYTES), aligned(4), may_alias));
typedef double weft_uf64 __attribute__((vector_size(WEFT_BYTES), aligned(8), may_alias));

#define WEFT_USED __attribute__((unused))
#define WEFT_FN static inline WEFT_USED
/* What a kernel's functions get: arrays and sizes, a range, scratch memory. */
#define WEFT_DATA void *const *weft_array WEFT_USED, const int64_t *weft_size WEFT_USED
#define WEFT_ARGS \
    WEFT_DATA, int64_t weft_begin WEFT_USED, int64_t weft_end WEFT_USED, void *weft_work WEFT_USED
#define WEFT_LOAD_F32(p) ((weft_vf32)(*(const weft_uf32 *)(p)))
#define WEFT_LOAD_F64(p) ((weft_vf64)(*(const weft_uf64 *)(p)))
#define WEFT_STORE_F32(p, v) (*(weft_uf32 *)(p) = (weft_uf32)(v))
#define WEFT_STORE_F64(p, v) (*(weft_uf64 *)(p) = (weft_uf64)(v))
#define WEFT_SPLAT_F32(x) ((float)(x) - (weft_vf32){ 0 }) /* keeps the sign of zero */
#define WEFT_SPLAT_F64(x) ((double)(x) - (weft_vf64){ 0 })

WEFT_FN float weft_int_f32(int64_t i) { return (float)i; }
WEFT_FN double weft_int_f64(int64_t i) { return (double)i; }
WEFT_FN float weft_fma_f32(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
WEFT_FN double weft_fma_f64(double a, double b, double c) { return __builtin_fma(a, b, c); }

WEFT_FN weft_vf32 weft_fma_vf32(weft_vf32 a, weft_vf32 b, weft_vf32 c)
{
#if defined(__AVX512F__)
    return (weft_vf32)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(__FMA__)
    return (weft_vf32)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#elif defined(__ARM_NEON) && defined(__aarch64__)
    return (weft_vf32)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
#else
    for (int i = 0; i < WEFT_BYTES / 4; i++)
        c[i] = __builtin_fmaf(a[i], b[i], c[i]);
    return c;
#endif
}

WEFT_FN weft_vf64 weft_fma_vf64(weft_vf64 a, weft_vf64 b, weft_vf64 c)
{
#if defined(__AVX512F__)
    return (weft_vf64)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
#elif defined(__FMA__)
    return (weft_vf64)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
#elif defined(__ARM_NEON) && defined(__aarch64__)
    return (weft_vf64)vfmaq_f64((float64x2_t)c, (float64x2_t)a, (float64x2_t)b);
#else
    for (int i = 0; i < WEFT_BYTES / 8; i++)
        c[i] = __builtin_fma(a[i], b[i], c[i]);
    return c;
#endif
}

#define WEFT_LANES(name, type, bits, v, scalar) \
    WEFT_FN v weft_##name(v x) \
    { \
        for (int i = 0; i < (int)(WEFT_BYTES / sizeof(type)); i++) \
            x[i] = scalar(x[i]); \
        return x; \
    }
WEFT_LANES(sqrt_vf32, float, 32, weft_vf32, sqrtf)
WEFT_LANES(sqrt_vf64, double, 64, weft_vf64, sqrt)
WEFT_LANES(abs_vf32, float, 32, weft_vf32, fabsf)
WEFT_LANES(abs_vf64, double, 64, weft_vf64, fabs)

/* NaN wins, then the first of a tie. */
#define WEFT_CHOICE(name, type, cmp) \
    WEFT_FN type weft_##name(type a, type b) \
    { \
        return a cmp b || a != a ? a : b; \
    }
WEFT_CHOICE(max_f32, float, >=)
WEFT_CHOICE(min_f32, float, <=)
WEFT_CHOICE(max_f64, double, >=)
WEFT_CHOICE(min_f64, double, <=)

#define WEFT_VCHOICE(name, vec, ivec, cmp) \
    WEFT_FN vec weft_##name(vec a, vec b) \
    { \
        ivec first = (ivec)(a cmp b) | (ivec)(a != a); \
        return (vec)(((ivec)a & first) | ((ivec)b & ~first)); \
    }
WEFT_VCHOICE(max_vf32, weft_vf32, weft_vi32, >=)
WEFT_VCHOICE(min_vf32, weft_vf32, weft_vi32, <=)
WEFT_VCHOICE(max_vf64, weft_vf64, weft_vi64, >=)
WEFT_VCHOICE(min_vf64, weft_vf64, weft_vi64, <=)

WEFT_FN float weft_relu_f32(float x) { return weft_max_f32(x, 0); }
WEFT_FN double weft_relu_f64(double x) { return weft_max_f64(x, 0); }
WEFT_FN weft_vf32 weft_relu_vf32(weft_vf32 x) { return weft_max_vf32(x, (weft_vf32){ 0 }); }
WEFT_FN weft_vf64 weft_relu_vf64(weft_vf64 x) { return weft_max_vf64(x, (weft_vf64){ 0 }); }
WEFT_FN float weft_step_f32(float x) { return x > 0; }
WEFT_FN double weft_step_f64(double x) { return x > 0; }
WEFT_FN float weft_abs_f32(float x) { return fabsf(x); }
WEFT_FN double weft_abs_f64(double x) { return fabs(x); }
WEFT_FN float weft_sign_f32(float x) { return (float)((x > 0) - (x < 0)); }
WEFT_FN double weft_sign_f64(double x) { return (x > 0) - (x < 0); }

#define WEFT_FUNCTION(name, expr) \
    WEFT_FN double weft_##name##_f64(double x) { return expr; } \
    WEFT_FN float weft_##name##_f32(float y) { double x = (double)y; return (float)(expr); }
WEFT_FUNCTION(exp, exp(x))
WEFT_FUNCTION(log, log(x))
WEFT_FUNCTION(sqrt, sqrt(x))
WEFT_FUNCTION(rsqrt, 1 / sqrt(x))
WEFT_FUNCTION(sin, sin(x))
WEFT_FUNCTION(cos, cos(x))
WEFT_FUNCTION(tanh, tanh(x))
WEFT_FUNCTION(sigmoid, 1 / (1 + exp(-x)))
WEFT_FUNCTION(silu, x *(1 / (1 + exp(-x))))

/* Winners of max= and min=: the first stays, NaN wins. */
#define WEFT_WINS(name, type, cmp) \
    WEFT_FN int weft_##name(type v, type best) \
    { \
        return v cmp best || (v != v && best == best); \
    }
WEFT_WINS(over_f32, float, >)
WEFT_WINS(over_f64, double, >)
WEFT_WINS(over_i64, int64_t, >)
WEFT_WINS(under_f32, float, <)
WEFT_WINS(under_f64, double, <)
WEFT_WINS(under_i64, int64_t, <)

/* Checked integers: what does not fit ends the run with fault 3. */
#define WEFT_CHECKED(name, builtin) \
    WEFT_FN int64_t weft_##name##_ck(int64_t a, int64_t b, int64_t *fault) \
    { \
        int64_t r; \
        if (builtin(a, b, &r)) \
            *fault = 3; \
        return r; \
    }
WEFT_CHECKED(add, __builtin_add_overflow)
WEFT_CHECKED(sub, __builtin_sub_overflow)
WEFT_CHECKED(mul, __builtin_mul_overflow)

/* Rounded down; the rest has the sign of the divisor. */
WEFT_FN int64_t weft_div_i64(int64_t a, int64_t b)
{
    return a / b - (a % b != 0 && (a % b < 0) != (b < 0));
}

WEFT_FN int64_t weft_mod_i64(int64_t a, int64_t b)
{
    int64_t r = b == -1 ? 0 : a % b;

    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

WEFT_FN int64_t weft_div_ck(int64_t a, int64_t b, int64_t *fault)
{
    if (b == 0 || (a == INT64_MIN && b == -1))
        return *fault = 3, 0;
    return weft_div_i64(a, b);
}

WEFT_FN int64_t weft_mod_ck(int64_t a, int64_t b, int64_t *fault)
{
    return b == 0 ? (*fault = 3, 0) : weft_mod_i64(a, b);
}

WEFT_FN int weft_inside(int64_t a, int64_t n) { return a >= 0 && a < n; }
WEFT_FN int64_t weft_neg_ck(int64_t a, int64_t *fault) { return weft_sub_ck(0, a, fault); }
WEFT_FN int64_t weft_abs_ck(int64_t a, int64_t *f) { return a < 0 ? weft_neg_ck(a, f) : a; }
WEFT_FN int64_t weft_abs_i64(int64_t a) { return a < 0 ? -a : a; }
WEFT_FN int64_t weft_relu_i64(int64_t a) { return a > 0 ? a : 0; }
WEFT_FN int64_t weft_step_i64(int64_t a) { return a > 0; }
WEFT_FN int64_t weft_sign_i64(int64_t a) { return (a > 0) - (a < 0); }
WEFT_FN int64_t weft_min_i64(int64_t a, int64_t b) { return a <= b ? a : b; }
WEFT_FN int64_t weft_max_i64(int64_t a, int64_t b) { return a >= b ? a : b; }

/* The last of n rows that begins at p or before: p's own. */
#define WEFT_ABOVE(name, type) \
    WEFT_FN int64_t weft_above_##name(const type *start, int64_t n, int64_t p) \
    { \
        int64_t lo = 0, hi = n; \
        while (hi - lo > 1) { \
            int64_t mid = lo + (hi - lo) / 2; \
            if (start[mid] <= p) \
                lo = mid; \
            else \
                hi = mid; \
        } \
        return lo; \
    }
WEFT_ABOVE(i32, int32_t)
WEFT_ABOVE(i64, int64_t)

WEFT_FN int32_t weft_to_i32(int64_t v, int64_t *fault)
{
    if (v != (int32_t)v)
        *fault = 3;
    return (int32_t)v;
}

WEFT_FN float weft_from_bf16(uint16_t h)
{
    uint32_t bits = (uint32_t)h << 16;
    float v;

    memcpy(&v, &bits, sizeof v);
    return v;
}

WEFT_FN float weft_from_f16(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, e = h >> 10 & 31, m = h & 1023, bits;
    float v;

    if (e == 0) {
        v = (float)m * 0x1p-24f;
        return sign ? -v : v;
    }
    bits = sign | (e == 31 ? 0x7f800000u : (e + 112) << 23) | m << 13;
    memcpy(&v, &bits, sizeof v);
    return v;
}

/* To nearest even: the float's bits, rounded at the place where the short format ends. */
WEFT_FN uint16_t weft_to_bf16(float v)
{
    uint32_t bits;

    memcpy(&bits, &v, sizeof bits);
    if (v != v)
        return (uint16_t)((bits >> 16 & 0x8000) | 0x7fc0);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

WEFT_FN uint16_t weft_to_f16(float v)
{
    uint32_t bits, sign, m;
    int e;

    memcpy(&bits, &v, sizeof bits);
    sign = bits >> 16 & 0x8000;
    e = (int)(bits >> 23 & 255) - 112;
    m = bits & 0x7fffff;
    if (v != v)
        return (uint16_t)(sign | 0x7e00);
    if (e >= 31)
        return (uint16_t)(sign | 0x7c00);
    if (e <= 0) {
        float a = fabsf(v) * 0x1p24f; /* exact: a power of two, and the sum below rounds to even */

        return (uint16_t)(sign | (uint32_t)((a + 0x1p23f) - 0x1p23f));
    }
    m += 0xfff + (m >> 13 & 1);
    return (uint16_t)(sign | (((uint32_t)e << 10) + (m >> 13)));
}
