/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * What measures a machine: loops that one resource bounds, as phases of a kernel, to stand after
 * simd.h and elementary.h.  Written by hand, so that the limits of a machine do not depend on what
 * the compiler of programs makes of them.  A range is of parts, each a thread's own share of the
 * arrays.
 *
 *     arrays  a, b, c: f32, or f64 for functions of doubles; index: i32; sink: f32, 16 a part
 *     sizes   elements of a part (of 64 bytes each time), repeats,
 *             elements of a row, indices of a part, rows to prefetch ahead */
#if defined(WEFT_AVX512)
#define PROBE_STREAM(p, v) _mm512_stream_ps(p, (__m512)(v))
#elif defined(__AVX__)
#define PROBE_STREAM(p, v) _mm256_stream_ps(p, (__m256)(v))
#else
#define PROBE_STREAM(p, v) WEFT_STORE_F32(p, v)
#endif
#define PROBE_LANES (WEFT_BYTES / 4)
#define PROBE_AGAIN __asm__ volatile("" ::: "memory") /* the next repeat is not the last one */
#define PROBE_PART(name, array, n) float *name = (float *)weft_array[array] + part * (n)
#define PROBE_LOAD(p) WEFT_LOAD_F32(p)
#define PROBE_SINK(part, v) WEFT_STORE_F32((float *)weft_array[4] + 16 * (part), v)

#if defined(__FMA__) || defined(WEFT_AVX512) || defined(__ARM_NEON)
#define PROBE_FMA(x, type) x = weft_fma_v##type(x, m, s)
#else
#define PROBE_FMA(x, type) x = x * m + s
#endif
#define PROBE_TWELVE(F, type) \
    F(x0, type);              \
    F(x1, type);              \
    F(x2, type);              \
    F(x3, type);              \
    F(x4, type);              \
    F(x5, type);              \
    F(x6, type);              \
    F(x7, type);              \
    F(x8, type);              \
    F(x9, type);              \
    F(x10, type);             \
    F(x11, type)

/* Twelve chains of fused multiply-adds: more than latency times units.  Each begins elsewhere, or
 * the compiler would see that they are the same. */
#define PROBE_PEAK(type, SPLAT)                                                      \
    int64_t probe_fma_##type(WEFT_ARGS)                                              \
    {                                                                                \
        for (int64_t part = weft_begin; part < weft_end; part++) {                   \
            const weft_v##type m = SPLAT(0.999), s = SPLAT(0.001), d = SPLAT(0.01);  \
            weft_v##type x0 = s, x1 = x0 + d, x2 = x1 + d, x3 = x2 + d, x4 = x3 + d; \
            weft_v##type x5 = x4 + d, x6 = x5 + d, x7 = x6 + d, x8 = x7 + d;         \
            weft_v##type x9 = x8 + d, x10 = x9 + d, x11 = x10 + d;                   \
                                                                                     \
            for (int64_t i = 0; i < weft_size[1]; i++) {                             \
                PROBE_TWELVE(PROBE_FMA, type);                                       \
            }                                                                        \
            x0 += x1 + x2 + x3 + x4 + x5 + x6 + x7 + x8 + x9 + x10 + x11;            \
            PROBE_SINK(part, (weft_vf32)x0);                                         \
        }                                                                            \
        return 0;                                                                    \
    }

PROBE_PEAK(f32, WEFT_SPLAT_F32)
PROBE_PEAK(f64, WEFT_SPLAT_F64)

int64_t probe_read(WEFT_ARGS)
{
    int64_t n = weft_size[0];

    for (int64_t part = weft_begin; part < weft_end; part++) {
        PROBE_PART(b, 1, n);
        weft_vf32 x0 = { 0 }, x1 = x0, x2 = x0, x3 = x0, x4 = x0, x5 = x0, x6 = x0, x7 = x0;

        for (int64_t r = 0; r < weft_size[1]; r++) {
            int64_t i = 0;

            for (; i + 8 * PROBE_LANES <= n; i += 8 * PROBE_LANES) {
                x0 += PROBE_LOAD(b + i);
                x1 += PROBE_LOAD(b + i + PROBE_LANES);
                x2 += PROBE_LOAD(b + i + 2 * PROBE_LANES);
                x3 += PROBE_LOAD(b + i + 3 * PROBE_LANES);
                x4 += PROBE_LOAD(b + i + 4 * PROBE_LANES);
                x5 += PROBE_LOAD(b + i + 5 * PROBE_LANES);
                x6 += PROBE_LOAD(b + i + 6 * PROBE_LANES);
                x7 += PROBE_LOAD(b + i + 7 * PROBE_LANES);
            }
            for (; i < n; i += PROBE_LANES)
                x0 += PROBE_LOAD(b + i);
            PROBE_AGAIN;
        }
        PROBE_SINK(part, x0 + x1 + x2 + x3 + x4 + x5 + x6 + x7);
    }
    return 0;
}

/* a = VALUE of b and c, by STORE; two vectors a step. */
#define PROBE_EACH(name, STORE, VALUE)                                    \
    int64_t probe_##name(WEFT_ARGS)                                       \
    {                                                                     \
        const weft_vf32 s = WEFT_SPLAT_F32(0.5f);                         \
        int64_t n = weft_size[0];                                         \
                                                                          \
        (void)s;                                                          \
        for (int64_t part = weft_begin; part < weft_end; part++) {        \
            PROBE_PART(a, 0, n);                                          \
            PROBE_PART(b, 1, n);                                          \
            PROBE_PART(c, 2, n);                                          \
                                                                          \
            (void)c;                                                      \
            for (int64_t r = 0; r < weft_size[1]; r++) {                  \
                for (int64_t i = 0; i < n; i += 64 / 4)                   \
                    for (int64_t k = i; k < i + 64 / 4; k += PROBE_LANES) \
                        STORE(a + k, VALUE);                              \
                PROBE_AGAIN;                                              \
            }                                                             \
        }                                                                 \
        return 0;                                                         \
    }

PROBE_EACH(triad, WEFT_STORE_F32, PROBE_LOAD(b + k) + s * PROBE_LOAD(c + k))
PROBE_EACH(copy, WEFT_STORE_F32, PROBE_LOAD(b + k))
PROBE_EACH(nontemporal, PROBE_STREAM, PROBE_LOAD(b + k) + s * PROBE_LOAD(c + k))

/* Sums rows of the table b at places that the indices give; a row is whole lines of 64 bytes. */
int64_t probe_gather(WEFT_ARGS)
{
    const float *b = weft_array[1];
    int64_t row = weft_size[2], n = weft_size[3], ahead = weft_size[4];

    for (int64_t part = weft_begin; part < weft_end; part++) {
        const int32_t *index = (const int32_t *)weft_array[3] + part * n;
        weft_vf32 x0 = { 0 }, x1 = x0, x2 = x0, x3 = x0;

        for (int64_t i = 0; i < n; i++) {
            const float *x = b + index[i] * row;
            const float *next = b + index[i + ahead < n ? i + ahead : i] * row;
            int64_t k = 0;

            for (int64_t l = 0; ahead > 0 && l < row; l += 16)
                __builtin_prefetch(next + l);
            for (; k + 4 * PROBE_LANES <= row; k += 4 * PROBE_LANES) {
                x0 += PROBE_LOAD(x + k);
                x1 += PROBE_LOAD(x + k + PROBE_LANES);
                x2 += PROBE_LOAD(x + k + 2 * PROBE_LANES);
                x3 += PROBE_LOAD(x + k + 3 * PROBE_LANES);
            }
            for (; k < row; k += PROBE_LANES)
                x0 += PROBE_LOAD(x + k);
        }
        PROBE_SINK(part, x0 + x1 + x2 + x3);
    }
    return 0;
}

/* a = VALUE of x, an element of b: a function as kernels compute it, lane by lane or in lanes. */
#define PROBE_CALL(name, type, element, step, LOAD, STORE, VALUE)          \
    int64_t probe_##name##_##type(WEFT_ARGS)                               \
    {                                                                      \
        int64_t n = weft_size[0];                                          \
                                                                           \
        for (int64_t part = weft_begin; part < weft_end; part++) {         \
            element *a = (element *)weft_array[0] + part * n;              \
            const element *b = (const element *)weft_array[1] + part * n;  \
                                                                           \
            for (int64_t r = 0; r < weft_size[1]; r++) {                   \
                for (int64_t i = 0; i < n; i += (step))                    \
                    STORE(a + i, VALUE(LOAD(b + i)));                      \
                PROBE_AGAIN;                                               \
            }                                                              \
        }                                                                  \
        return 0;                                                          \
    }
#define PROBE_GET(p) (*(p))
#define PROBE_PUT(p, v) (*(p) = (v))
#define PROBE_LANES_OF(name, type, element, LOAD, STORE, F) \
    PROBE_CALL(name, type, element, (int64_t)(sizeof(weft_v##type) / sizeof(element)), LOAD, \
               STORE, F)
#define PROBE_IN_LANES(name, F32, F64)                                     \
    PROBE_LANES_OF(name, f32, float, WEFT_LOAD_F32, WEFT_STORE_F32, F32)   \
    PROBE_LANES_OF(name, f64, double, WEFT_LOAD_F64, WEFT_STORE_F64, F64)
/* In lanes of f32; f64 has the library's function. */
#define PROBE_BY_TYPE(name)                                                              \
    PROBE_LANES_OF(name, f32, float, WEFT_LOAD_F32, WEFT_STORE_F32, weft_##name##_vf32)  \
    PROBE_CALL(name, f64, double, 1, PROBE_GET, PROBE_PUT, weft_##name##_f64)
#define PROBE_DIV_F32(x) (WEFT_SPLAT_F32(1.0f) / (x))
#define PROBE_DIV_F64(x) (WEFT_SPLAT_F64(1.0) / (x))

PROBE_IN_LANES(div, PROBE_DIV_F32, PROBE_DIV_F64)
PROBE_IN_LANES(sqrt, weft_sqrt_vf32, weft_sqrt_vf64)
PROBE_IN_LANES(exp, weft_exp_vf32, weft_exp_vf64)
PROBE_IN_LANES(sigmoid, weft_sigmoid_vf32, weft_sigmoid_vf64)
PROBE_IN_LANES(silu, weft_silu_vf32, weft_silu_vf64)
PROBE_BY_TYPE(rsqrt)
PROBE_BY_TYPE(log)
PROBE_BY_TYPE(sin)
PROBE_BY_TYPE(cos)
PROBE_BY_TYPE(tanh)
