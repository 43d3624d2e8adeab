/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The prelude of kernels: vector types, fused multiply-add, checked integers, 16-bit floats. */
#include <math.h>
#include <stdint.h>
#include <string.h>

/* Bytes of a vector of 4-byte elements, and of one of 8-byte elements. */
#if defined(WEFT_WARP) /* this many lanes of every type, in plain C, whatever registers there are */
#define WEFT_BYTES (4 * WEFT_WARP)
#define WEFT_BYTES_64 (8 * WEFT_WARP)
#if defined(__FMA__) || defined(__F16C__)
#include <immintrin.h>
#endif
#elif defined(__AVX512F__)
#define WEFT_AVX512
#define WEFT_BYTES 64
#include <immintrin.h>
#elif defined(WEFT_HALVES) /* the lanes of AVX-512 in two registers of AVX2: for tests */
#define WEFT_BYTES 64
#include <immintrin.h>
#elif defined(__AVX__)
#define WEFT_AVX
#define WEFT_BYTES 32
#include <immintrin.h>
#elif defined(__ARM_NEON)
#if defined(__aarch64__)
#define WEFT_NEON
#endif
#define WEFT_BYTES 16
#include <arm_neon.h>
#else
#define WEFT_BYTES 16
#if defined(__SSE2__)
#define WEFT_SSE2
#include <emmintrin.h>
#endif
#endif
#if !defined(WEFT_BYTES_64)
#define WEFT_BYTES_64 WEFT_BYTES
#endif

#if !defined(__clang__) /* what lives over the cuts of a long list, gcc cannot follow */
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#pragma GCC diagnostic ignored "-Wtautological-compare" /* a program may ask what is always so */
#pragma GCC diagnostic ignored "-Wpsabi" /* wide vectors where registers are narrow */
typedef float weft_vf32 __attribute__((vector_size(WEFT_BYTES)));
typedef double weft_vf64 __attribute__((vector_size(WEFT_BYTES_64)));
typedef int32_t weft_vi32 __attribute__((vector_size(WEFT_BYTES)));
typedef int64_t weft_vi64 __attribute__((vector_size(WEFT_BYTES_64)));
typedef float weft_uf32 __attribute__((vector_size(WEFT_BYTES), aligned(4), may_alias));
typedef double weft_uf64 __attribute__((vector_size(WEFT_BYTES_64), aligned(8), may_alias));

#define WEFT_USED __attribute__((unused))
#define WEFT_FN static inline WEFT_USED
#define WEFT_ALWAYS static inline __attribute__((always_inline, unused))
/* A loop of n turns, written out. */
#define WEFT_PRAGMA(text) _Pragma(#text)
#if defined(__clang__)
#define WEFT_TURNS(n) WEFT_PRAGMA(unroll n)
#else
#define WEFT_TURNS(n) WEFT_PRAGMA(GCC unroll n)
#endif
#define WEFT_PART static __attribute__((noinline)) /* of a function that is too long as one */
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

/* The first n lanes: the others are 0 when loaded, and not stored. */
#if defined(WEFT_AVX512)
typedef __mmask16 weft_mf32;
typedef __mmask8 weft_mf64;
#define WEFT_MASK_F32(n) ((weft_mf32)((1u << (n)) - 1))
#define WEFT_MASK_F64(n) ((weft_mf64)((1u << (n)) - 1))
#define WEFT_LOADM_F32(p, m) ((weft_vf32)_mm512_maskz_loadu_ps(m, p))
#define WEFT_LOADM_F64(p, m) ((weft_vf64)_mm512_maskz_loadu_pd(m, p))
#define WEFT_STOREM_F32(p, v, m) _mm512_mask_storeu_ps(p, m, (__m512)(v))
#define WEFT_STOREM_F64(p, v, m) _mm512_mask_storeu_pd(p, m, (__m512d)(v))
#define WEFT_PICK_F32(m, a, b) ((weft_vf32)_mm512_mask_blend_ps(m, (__m512)(b), (__m512)(a)))
#define WEFT_PICK_F64(m, a, b) ((weft_vf64)_mm512_mask_blend_pd(m, (__m512d)(b), (__m512d)(a)))
#else
typedef weft_vi32 weft_mf32;
typedef weft_vi64 weft_mf64;
#define WEFT_MASK(name, vec, ivec) \
    WEFT_FN ivec weft_mask_##name(int64_t n) \
    { \
        ivec m = { 0 }; \
        for (int i = 0; i < (int)(sizeof m / sizeof m[0]); i++) \
            m[i] = i < n ? -1 : 0; \
        return m; \
    } \
    WEFT_FN vec weft_pick_##name(ivec m, vec a, vec b) \
    { \
        return (vec)(((ivec)a & m) | ((ivec)b & ~m)); \
    }
WEFT_MASK(f32, weft_vf32, weft_vi32)
WEFT_MASK(f64, weft_vf64, weft_vi64)
#define WEFT_MASK_F32(n) weft_mask_f32(n)
#define WEFT_MASK_F64(n) weft_mask_f64(n)
#define WEFT_PICK_F32(m, a, b) weft_pick_f32(m, a, b)
#define WEFT_PICK_F64(m, a, b) weft_pick_f64(m, a, b)
#if defined(WEFT_AVX)
#define WEFT_LOADM_F32(p, m) ((weft_vf32)_mm256_maskload_ps(p, (__m256i)(m)))
#define WEFT_LOADM_F64(p, m) ((weft_vf64)_mm256_maskload_pd(p, (__m256i)(m)))
#define WEFT_STOREM_F32(p, v, m) _mm256_maskstore_ps(p, (__m256i)(m), (__m256)(v))
#define WEFT_STOREM_F64(p, v, m) _mm256_maskstore_pd(p, (__m256i)(m), (__m256d)(v))
#else
#define WEFT_MEMORY(name, vec, ivec, type) \
    WEFT_FN vec weft_loadm_##name(const type *p, ivec m) \
    { \
        vec v = { 0 }; \
        for (int i = 0; i < (int)(sizeof v / sizeof(type)) && m[i]; i++) \
            v[i] = p[i]; \
        return v; \
    } \
    WEFT_FN void weft_storem_##name(type *p, vec v, ivec m) \
    { \
        for (int i = 0; i < (int)(sizeof v / sizeof(type)) && m[i]; i++) \
            p[i] = v[i]; \
    }
WEFT_MEMORY(f32, weft_vf32, weft_vi32, float)
WEFT_MEMORY(f64, weft_vf64, weft_vi64, double)
#define WEFT_LOADM_F32(p, m) weft_loadm_f32(p, m)
#define WEFT_LOADM_F64(p, m) weft_loadm_f64(p, m)
#define WEFT_STOREM_F32(p, v, m) weft_storem_f32(p, v, m)
#define WEFT_STOREM_F64(p, v, m) weft_storem_f64(p, v, m)
#endif
#endif

/* Past the caches, where the place is one that a register fills. */
#if defined(WEFT_AVX512)
#define WEFT_PAST_F32(p, v) _mm512_stream_ps(p, (__m512)(v))
#define WEFT_PAST_F64(p, v) _mm512_stream_pd(p, (__m512d)(v))
#define WEFT_FENCE _mm_sfence()
#elif defined(WEFT_AVX)
#define WEFT_PAST_F32(p, v) _mm256_stream_ps(p, (__m256)(v))
#define WEFT_PAST_F64(p, v) _mm256_stream_pd(p, (__m256d)(v))
#define WEFT_FENCE _mm_sfence()
#else
#define WEFT_PAST_F32(p, v) WEFT_STORE_F32(p, v)
#define WEFT_PAST_F64(p, v) WEFT_STORE_F64(p, v)
#define WEFT_FENCE (void)0
#endif
/* Past the caches go whole vectors only, where it pays. */
#define WEFT_GOES_PAST(p, pays) (((uintptr_t)(p) | !(pays)) % WEFT_BYTES == 0)
#define WEFT_EITHER(past, name, p, v) \
    do { \
        if (past) \
            WEFT_PAST_##name(p, v); \
        else \
            WEFT_STORE_##name(p, v); \
    } while (0)
WEFT_FN void weft_stream_f32(float *p, weft_vf32 v, int pays)
{
    WEFT_EITHER(WEFT_GOES_PAST(p, pays), F32, p, v);
}

WEFT_FN void weft_stream_f64(double *p, weft_vf64 v, int pays)
{
    WEFT_EITHER(WEFT_GOES_PAST(p, pays), F64, p, v);
}

WEFT_FN float weft_int_f32(int64_t i) { return (float)i; }
WEFT_FN double weft_int_f64(int64_t i) { return (double)i; }
WEFT_FN float weft_fma_f32(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
WEFT_FN double weft_fma_f64(double a, double b, double c) { return __builtin_fma(a, b, c); }

WEFT_FN weft_vf32 weft_fma_vf32(weft_vf32 a, weft_vf32 b, weft_vf32 c)
{
#if defined(WEFT_AVX512)
    return (weft_vf32)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(__FMA__) && !defined(WEFT_AVX) && WEFT_BYTES % 32 == 0
    union { weft_vf32 v; __m256 half[WEFT_BYTES / 32]; } x = { a }, y = { b }, z = { c };
    for (int i = 0; i < WEFT_BYTES / 32; i++)
        z.half[i] = _mm256_fmadd_ps(x.half[i], y.half[i], z.half[i]);
    return z.v;
#elif defined(__FMA__) && defined(WEFT_AVX)
    return (weft_vf32)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#elif defined(WEFT_NEON)
    return (weft_vf32)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
#else
    for (int i = 0; i < WEFT_BYTES / 4; i++)
        c[i] = __builtin_fmaf(a[i], b[i], c[i]);
    return c;
#endif
}

WEFT_FN weft_vf64 weft_fma_vf64(weft_vf64 a, weft_vf64 b, weft_vf64 c)
{
#if defined(WEFT_AVX512)
    return (weft_vf64)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
#elif defined(__FMA__) && !defined(WEFT_AVX) && WEFT_BYTES % 32 == 0
    union { weft_vf64 v; __m256d half[WEFT_BYTES_64 / 32]; } x = { a }, y = { b }, z = { c };
    for (int i = 0; i < WEFT_BYTES_64 / 32; i++)
        z.half[i] = _mm256_fmadd_pd(x.half[i], y.half[i], z.half[i]);
    return z.v;
#elif defined(__FMA__) && defined(WEFT_AVX)
    return (weft_vf64)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
#elif defined(WEFT_NEON)
    return (weft_vf64)vfmaq_f64((float64x2_t)c, (float64x2_t)a, (float64x2_t)b);
#else
    for (int i = 0; i < (int)(sizeof c / sizeof c[0]); i++)
        c[i] = __builtin_fma(a[i], b[i], c[i]);
    return c;
#endif
}

WEFT_FN float weft_add_f32(float a, float b) { return a + b; }
WEFT_FN double weft_add_f64(double a, double b) { return a + b; }
WEFT_FN weft_vf32 weft_add_vf32(weft_vf32 a, weft_vf32 b) { return a + b; }
WEFT_FN weft_vf64 weft_add_vf64(weft_vf64 a, weft_vf64 b) { return a + b; }

#define WEFT_LANES(name, type, bits, v, scalar) \
    WEFT_FN v weft_##name(v x) \
    { \
        for (int i = 0; i < (int)(sizeof x / sizeof(type)); i++) \
            x[i] = scalar(x[i]); \
        return x; \
    }
#if defined(WEFT_AVX512)
WEFT_FN weft_vf32 weft_sqrt_vf32(weft_vf32 x) { return (weft_vf32)_mm512_sqrt_ps((__m512)x); }
WEFT_FN weft_vf64 weft_sqrt_vf64(weft_vf64 x) { return (weft_vf64)_mm512_sqrt_pd((__m512d)x); }
#elif defined(WEFT_AVX)
WEFT_FN weft_vf32 weft_sqrt_vf32(weft_vf32 x) { return (weft_vf32)_mm256_sqrt_ps((__m256)x); }
WEFT_FN weft_vf64 weft_sqrt_vf64(weft_vf64 x) { return (weft_vf64)_mm256_sqrt_pd((__m256d)x); }
#elif defined(WEFT_SSE2)
WEFT_FN weft_vf32 weft_sqrt_vf32(weft_vf32 x) { return (weft_vf32)_mm_sqrt_ps((__m128)x); }
WEFT_FN weft_vf64 weft_sqrt_vf64(weft_vf64 x) { return (weft_vf64)_mm_sqrt_pd((__m128d)x); }
#elif defined(WEFT_NEON)
WEFT_FN weft_vf32 weft_sqrt_vf32(weft_vf32 x) { return (weft_vf32)vsqrtq_f32((float32x4_t)x); }
WEFT_FN weft_vf64 weft_sqrt_vf64(weft_vf64 x) { return (weft_vf64)vsqrtq_f64((float64x2_t)x); }
#else
WEFT_LANES(sqrt_vf32, float, 32, weft_vf32, sqrtf)
WEFT_LANES(sqrt_vf64, double, 64, weft_vf64, sqrt)
#endif
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

/* The instruction gives a where one of both is NaN: b is put where it is the NaN. */
#if defined(WEFT_AVX512)
#define WEFT_NAN_OF(s, b) _mm512_cmp_p##s##_mask(b, b, _CMP_UNORD_Q)
#define WEFT_PUT(s, is, b, m) _mm512_mask_mov_p##s(m, is, b)
#define WEFT_BOTH(name, s, b, a) _mm512_##name##_p##s(b, a)
typedef __m512 weft_rf32;
typedef __m512d weft_rf64;
#elif defined(WEFT_AVX)
#define WEFT_NAN_OF(s, b) _mm256_cmp_p##s(b, b, _CMP_UNORD_Q)
#define WEFT_PUT(s, is, b, m) _mm256_blendv_p##s(m, b, is)
#define WEFT_BOTH(name, s, b, a) _mm256_##name##_p##s(b, a)
typedef __m256 weft_rf32;
typedef __m256d weft_rf64;
#endif
#if defined(WEFT_BOTH)
#define WEFT_VCHOICE(name, type, s, ivec, cmp) \
    WEFT_FN weft_v##type weft_##name##_v##type(weft_v##type a, weft_v##type b) \
    { \
        const weft_r##type x = (weft_r##type)b; \
        return (weft_v##type)WEFT_PUT(s, WEFT_NAN_OF(s, x), x, \
                                      WEFT_BOTH(name, s, x, (weft_r##type)a)); \
    }
#else
#define WEFT_VCHOICE(name, type, s, ivec, cmp) \
    WEFT_FN weft_v##type weft_##name##_v##type(weft_v##type a, weft_v##type b) \
    { \
        ivec first = (ivec)(a cmp b) | (ivec)(a != a); \
        return (weft_v##type)(((ivec)a & first) | ((ivec)b & ~first)); \
    }
#endif
WEFT_VCHOICE(max, f32, s, weft_vi32, >=)
WEFT_VCHOICE(min, f32, s, weft_vi32, <=)
WEFT_VCHOICE(max, f64, d, weft_vi64, >=)
WEFT_VCHOICE(min, f64, d, weft_vi64, <=)

WEFT_FN weft_vf32 weft_select_vf32(weft_vi32 yes, weft_vf32 a, weft_vf32 b)
{
    return (weft_vf32)(((weft_vi32)a & yes) | ((weft_vi32)b & ~yes));
}
WEFT_FN weft_vf64 weft_select_vf64(weft_vi64 yes, weft_vf64 a, weft_vf64 b)
{
    return (weft_vf64)(((weft_vi64)a & yes) | ((weft_vi64)b & ~yes));
}

/* All lanes together: the upper half to the lower, until one is left. */
#define WEFT_FOLD(name, vec, type, join) \
    WEFT_FN type weft_fold_##name(vec v) \
    { \
        for (int half = (int)(sizeof v / sizeof(type)) / 2; half > 0; half /= 2) \
            for (int i = 0; i < half; i++) \
                v[i] = join(v[i], v[i + half]); \
        return v[0]; \
    }
#if defined(WEFT_AVX512) || defined(WEFT_AVX)
#if defined(WEFT_AVX512)
#define WEFT_FOLD_BOTH(join) \
    WEFT_FN float weft_fold_##join##_vf32(weft_vf32 v) \
    { \
        v = weft_##join##_vf32(v, (weft_vf32)_mm512_shuffle_f32x4((__m512)v, (__m512)v, 0x4e)); \
        v = weft_##join##_vf32(v, (weft_vf32)_mm512_shuffle_f32x4((__m512)v, (__m512)v, 0xb1)); \
        v = weft_##join##_vf32(v, (weft_vf32)_mm512_permute_ps((__m512)v, 0x4e)); \
        return weft_##join##_vf32(v, (weft_vf32)_mm512_permute_ps((__m512)v, 0xb1))[0]; \
    } \
    WEFT_FN double weft_fold_##join##_vf64(weft_vf64 v) \
    { \
        v = weft_##join##_vf64(v, (weft_vf64)_mm512_shuffle_f64x2((__m512d)v, (__m512d)v, 0x4e)); \
        v = weft_##join##_vf64(v, (weft_vf64)_mm512_shuffle_f64x2((__m512d)v, (__m512d)v, 0xb1)); \
        return weft_##join##_vf64(v, (weft_vf64)_mm512_permute_pd((__m512d)v, 0x55))[0]; \
    }
#else
#define WEFT_FOLD_BOTH(join) \
    WEFT_FN float weft_fold_##join##_vf32(weft_vf32 v) \
    { \
        v = weft_##join##_vf32(v, (weft_vf32)_mm256_permute2f128_ps((__m256)v, (__m256)v, 1)); \
        v = weft_##join##_vf32(v, (weft_vf32)_mm256_permute_ps((__m256)v, 0x4e)); \
        return weft_##join##_vf32(v, (weft_vf32)_mm256_permute_ps((__m256)v, 0xb1))[0]; \
    } \
    WEFT_FN double weft_fold_##join##_vf64(weft_vf64 v) \
    { \
        v = weft_##join##_vf64(v, (weft_vf64)_mm256_permute2f128_pd((__m256d)v, (__m256d)v, 1)); \
        return weft_##join##_vf64(v, (weft_vf64)_mm256_permute_pd((__m256d)v, 5))[0]; \
    }
#endif
WEFT_FOLD_BOTH(max)
WEFT_FOLD_BOTH(min)
#else
WEFT_FOLD(max_vf32, weft_vf32, float, weft_max_f32)
WEFT_FOLD(min_vf32, weft_vf32, float, weft_min_f32)
WEFT_FOLD(max_vf64, weft_vf64, double, weft_max_f64)
WEFT_FOLD(min_vf64, weft_vf64, double, weft_min_f64)
#endif
/* Sums over lanes add neighbours first; four at a time cost little more than one. */
#if defined(WEFT_AVX512) || defined(WEFT_AVX)
WEFT_FN __m256 weft_half_f32(weft_vf32 v)
{
#if defined(WEFT_AVX512)
    return _mm256_add_ps(_mm512_castps512_ps256((__m512)v),
                         _mm512_extractf32x8_ps((__m512)v, 1));
#else
    return (__m256)v;
#endif
}

WEFT_FN __m256d weft_half_f64(weft_vf64 v)
{
#if defined(WEFT_AVX512)
    return _mm256_add_pd(_mm512_castpd512_pd256((__m512d)v), _mm512_extractf64x4_pd((__m512d)v, 1));
#else
    return (__m256d)v;
#endif
}

WEFT_FN void weft_fold4_add_vf32(weft_vf32 a, weft_vf32 b, weft_vf32 c, weft_vf32 d, float *sum)
{
    __m256 ab = _mm256_hadd_ps(weft_half_f32(a), weft_half_f32(b)),
           cd = _mm256_hadd_ps(weft_half_f32(c), weft_half_f32(d)), s = _mm256_hadd_ps(ab, cd);

    _mm_storeu_ps(sum, _mm_add_ps(_mm256_castps256_ps128(s), _mm256_extractf128_ps(s, 1)));
}

WEFT_FN float weft_fold_add_vf32(weft_vf32 v)
{
    __m256 h = weft_half_f32(v), s = _mm256_hadd_ps(h, h);

    s = _mm256_hadd_ps(s, s);
    return _mm_cvtss_f32(_mm_add_ss(_mm256_castps256_ps128(s), _mm256_extractf128_ps(s, 1)));
}

WEFT_FN void weft_fold4_add_vf64(weft_vf64 a, weft_vf64 b, weft_vf64 c, weft_vf64 d, double *sum)
{
    __m256d ab = _mm256_hadd_pd(weft_half_f64(a), weft_half_f64(b)),
            cd = _mm256_hadd_pd(weft_half_f64(c), weft_half_f64(d));

    _mm_storeu_pd(sum, _mm_add_pd(_mm256_castpd256_pd128(ab), _mm256_extractf128_pd(ab, 1)));
    _mm_storeu_pd(sum + 2, _mm_add_pd(_mm256_castpd256_pd128(cd), _mm256_extractf128_pd(cd, 1)));
}

WEFT_FN double weft_fold_add_vf64(weft_vf64 v)
{
    __m256d h = weft_half_f64(v), s = _mm256_hadd_pd(h, h);

    return _mm_cvtsd_f64(_mm_add_sd(_mm256_castpd256_pd128(s), _mm256_extractf128_pd(s, 1)));
}
#else
#define WEFT_FOLD4(name, vec, type) \
    WEFT_FN void weft_fold4_##name(vec a, vec b, vec c, vec d, type *sum) \
    { \
        sum[0] = weft_fold_##name(a); \
        sum[1] = weft_fold_##name(b); \
        sum[2] = weft_fold_##name(c); \
        sum[3] = weft_fold_##name(d); \
    }
WEFT_FOLD(add_vf32, weft_vf32, float, weft_add_f32)
WEFT_FOLD(add_vf64, weft_vf64, double, weft_add_f64)
WEFT_FOLD4(add_vf32, weft_vf32, float)
WEFT_FOLD4(add_vf64, weft_vf64, double)
#endif

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

/* For tables that a search asks: hash_int and hash_place, as their maker uses them. */
WEFT_FN uint64_t weft_mix(uint64_t h) { return (h ^ h >> 32) * 0xd6e8feb86659fd93u; }

WEFT_FN uint64_t weft_hash(uint64_t seed, uint64_t v)
{
    const uint64_t h = weft_mix(weft_mix((seed ^ v) * 0x9e3779b97f4a7c15u + 1));

    return h ^ h >> 32;
}

WEFT_FN uint64_t weft_place(uint64_t h, uint64_t n)
{
    return (h >> 32) * (n >> 32) + ((h >> 32) * (n & UINT32_MAX) >> 32);
}

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
#if defined(__F16C__)
    return _cvtsh_ss(h);
#else
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, e = h >> 10 & 31, m = h & 1023, bits;
    float v;

    if (e == 0) {
        v = (float)m * 0x1p-24f;
        return sign ? -v : v;
    }
    bits = sign | (e == 31 ? 0x7f800000u : (e + 112) << 23) | m << 13;
    bits |= e == 31 && m != 0 ? 0x400000 : 0; /* a quiet NaN */
    memcpy(&v, &bits, sizeof v);
    return v;
#endif
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
#if defined(__F16C__)
    if (v != v)
        return signbit(v) ? 0xfe00 : 0x7e00;
    return _cvtss_sh(v, _MM_FROUND_TO_NEAREST_INT);
#else
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
#endif
}

/* 16-bit floats in lanes, bit for bit as above.  They are 16 bits wide in memory only. */
typedef uint32_t weft_vu32 __attribute__((vector_size(WEFT_BYTES)));
typedef uint16_t weft_vu16 __attribute__((vector_size(WEFT_BYTES / 2)));
typedef uint16_t weft_uu16 __attribute__((vector_size(WEFT_BYTES / 2), aligned(2), may_alias));
#define WEFT_BITS(yes, a, b) (((a) & (yes)) | ((b) & ~(yes)))

/* Every NaN as the one that the short formats keep; its sign stays. */
WEFT_FN weft_vu32 weft_one_nan(weft_vf32 v)
{
    const weft_vu32 nan = (weft_vu32)(v != v);

    return ((weft_vu32)v & (0xffc00000u | ~nan)) | (nan & 0x400000u);
}

WEFT_FN weft_vf32 weft_wide_bf16(weft_vu16 h)
{
    return (weft_vf32)(__builtin_convertvector(h, weft_vu32) << 16);
}

WEFT_FN weft_vu16 weft_short_bf16(weft_vf32 v)
{
    const weft_vu32 bits = weft_one_nan(v);

    return __builtin_convertvector((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16, weft_vu16);
}

WEFT_FN weft_vf32 weft_wide_f16(weft_vu16 h)
{
#if defined(WEFT_AVX512)
    return (weft_vf32)_mm512_cvtph_ps((__m256i)h);
#elif defined(__F16C__) && defined(WEFT_AVX)
    return (weft_vf32)_mm256_cvtph_ps((__m128i)h);
#else
    const weft_vu32 bits = __builtin_convertvector(h, weft_vu32);
    const weft_vi32 m = (weft_vi32)((bits & 0x7fffu) << 13);
    const weft_vi32 nan = (weft_vi32)(m > 0x0f800000), top = (weft_vi32)(m >= 0x0f800000);
    const weft_vi32 low = (weft_vi32)((weft_vf32)(m + 0x38800000) - 0x1p-14f); /* no hidden bit */
    const weft_vi32 v = (m + 0x38000000 + (top & 0x38000000)) | (nan & 0x400000);

    return (weft_vf32)((weft_vi32)((bits & 0x8000u) << 16) |
                       WEFT_BITS((weft_vi32)(m < 0x800000), low, v));
#endif
}

WEFT_FN weft_vu16 weft_short_f16(weft_vf32 v)
{
#if defined(WEFT_AVX512)
    return (weft_vu16)_mm512_cvtps_ph((__m512)weft_one_nan(v), _MM_FROUND_TO_NEAREST_INT);
#elif defined(__F16C__) && defined(WEFT_AVX)
    return (weft_vu16)_mm256_cvtps_ph((__m256)weft_one_nan(v), _MM_FROUND_TO_NEAREST_INT);
#else
    const weft_vu32 bits = weft_one_nan(v);
    const weft_vi32 a = (weft_vi32)(bits & 0x7fffffffu), sign = (weft_vi32)(bits >> 16 & 0x8000u);
    const weft_vi32 top = 0x7c00 + ((weft_vi32)(a > 0x7f800000) & 0x200);
    const weft_vi32 mid = (a - 0x38000000 + 0xfff + (a >> 13 & 1)) >> 13;
    const weft_vi32 low = (weft_vi32)((weft_vf32)a * 0x1p24f + 0x1p23f) - 0x4b000000;
    const weft_vi32 all = WEFT_BITS((weft_vi32)(a < 0x38800000), low,
                                    WEFT_BITS((weft_vi32)(a >= 0x47800000), top, mid));

    return __builtin_convertvector((weft_vu32)(sign | all), weft_vu16);
#endif
}

/* Elements that are several apart: the first n lanes, one by one. */
#define WEFT_STRIDED(name, type, vec, from, to) \
    WEFT_FN vec weft_gather_##name(const type *p, int64_t stride, int64_t n) \
    { \
        vec v = { 0 }; \
        for (int64_t i = 0; i < n; i++) \
            v[i] = from(p[i * stride]); \
        return v; \
    } \
    WEFT_FN void weft_scatter_##name(type *p, int64_t stride, int64_t n, vec v) \
    { \
        for (int64_t i = 0; i < n; i++) \
            p[i * stride] = to(v[i]); \
    }
WEFT_STRIDED(f32, float, weft_vf32, , )
WEFT_STRIDED(f64, double, weft_vf64, , )
WEFT_STRIDED(f16, uint16_t, weft_vf32, weft_from_f16, weft_to_f16)
WEFT_STRIDED(bf16, uint16_t, weft_vf32, weft_from_bf16, weft_to_bf16)

#define WEFT_UP_TO(n, most) ((n) < 0 ? 0 : (n) < (most) ? (n) : (most))
/* Lanes of two registers, by number; those of the second go on from those of the first. */
#if defined(__clang__)
#define WEFT_MIX(ivec, a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define WEFT_MIX(ivec, a, b, ...) __builtin_shuffle(a, b, (ivec){ __VA_ARGS__ })
#endif

#if defined(WEFT_AVX512) && defined(__AVX512BW__) && defined(__AVX512VL__)
#define WEFT_LOADM_U16(p, m) ((weft_vu16)_mm256_maskz_loadu_epi16(m, p))
#define WEFT_STOREM_U16(p, v, m) _mm256_mask_storeu_epi16(p, m, (__m256i)(v))
#else
#if defined(WEFT_AVX512)
#define WEFT_HAS_LANE(m, i) ((m) >> (i) & 1)
#else
#define WEFT_HAS_LANE(m, i) (m)[i]
#endif
WEFT_FN weft_vu16 weft_loadm_u16(const uint16_t *p, weft_mf32 m)
{
    weft_vu16 v = { 0 };

    for (int i = 0; i < WEFT_BYTES / 4 && WEFT_HAS_LANE(m, i); i++)
        v[i] = p[i];
    return v;
}

WEFT_FN void weft_storem_u16(uint16_t *p, weft_vu16 v, weft_mf32 m)
{
    for (int i = 0; i < WEFT_BYTES / 4 && WEFT_HAS_LANE(m, i); i++)
        p[i] = v[i];
}
#define WEFT_LOADM_U16(p, m) weft_loadm_u16(p, m)
#define WEFT_STOREM_U16(p, v, m) weft_storem_u16(p, v, m)
#endif
#define WEFT_LOAD_U16(p) ((weft_vu16)(*(const weft_uu16 *)(p)))
#define WEFT_STORE_U16(p, v) (*(weft_uu16 *)(p) = (weft_uu16)(v))
#define WEFT_LOAD_F16(p) weft_wide_f16(WEFT_LOAD_U16(p))
#define WEFT_LOAD_BF16(p) weft_wide_bf16(WEFT_LOAD_U16(p))
#define WEFT_LOADM_F16(p, m) weft_wide_f16(WEFT_LOADM_U16(p, m))
#define WEFT_LOADM_BF16(p, m) weft_wide_bf16(WEFT_LOADM_U16(p, m))
#define WEFT_STORE_F16(p, v) WEFT_STORE_U16(p, weft_short_f16(v))
#define WEFT_STORE_BF16(p, v) WEFT_STORE_U16(p, weft_short_bf16(v))
#define WEFT_STOREM_F16(p, v, m) WEFT_STOREM_U16(p, weft_short_f16(v), m)
#define WEFT_STOREM_BF16(p, v, m) WEFT_STOREM_U16(p, weft_short_bf16(v), m)
