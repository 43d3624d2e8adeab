/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Every function of ops.def, compiled by nvcc and interpreted, against the same expression compiled
 * by the C compiler. */
#include "gpu/self/self.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FN static
#include "gpu/self/both.h"

#define POPC(x) ((uint32_t)__builtin_popcount(x))
#define CLZ(x) ((uint32_t)__builtin_clz(x))
#define CTZ(x) ((uint32_t)__builtin_ctz(x))
#define BREV(x) reversed(x)
#define HIGH64(a, b) ((uint64_t)((unsigned __int128)(a) * (b) >> 64))
#define FMIN(a, b) ((float)least(a, b))
#define FMAX(a, b) ((float)-least(-(double)(a), -(double)(b)))
#define DMIN(a, b) least(a, b)
#define DMAX(a, b) (-least(-(a), -(b)))
#define RSQRT(x) (1.0f / sqrtf(x))
#define BITS(x) float_bits(x)
#define BITS64(x) double_bits(x)
#define INT_UP(x) rounded((int32_t)(x), 1)
#define INT_DOWN(x) rounded((int32_t)(x), -1)
#define TO_INT(x) clamped(x)
#define TO_LONG(x) clamped_long(x)

static uint32_t reversed(uint32_t x)
{
    uint32_t r = 0;

    for (int k = 0; k < 32; k++)
        r = r << 1 | (x >> k & 1);
    return r;
}
static uint32_t float_bits(float f)
{
    uint32_t x;

    memcpy(&x, &f, 4);
    return x;
}
static uint64_t double_bits(double d)
{
    uint64_t x;

    memcpy(&x, &d, 8);
    return x;
}
/* CUDA's: a number rather than NaN, -0 before +0. */
static double least(double a, double b)
{
    if (isnan(a) || isnan(b))
        return isnan(a) ? b : a;
    return a < b || (a == b && signbit(a)) ? a : b;
}
/* Up or down, where a float is not exact. */
static float rounded(int32_t x, int way)
{
    const float f = (float)x;

    return way * ((double)f - x) < 0 ? nextafterf(f, (float)way * INFINITY) : f;
}
static int32_t clamped(float x)
{
    return isnan(x) ? 0 : x >= 0x1p31f ? INT32_MAX : x < -0x1p31f ? INT32_MIN : (int32_t)x;
}
static int64_t clamped_long(double x)
{
    return isnan(x) ? INT64_MIN : x >= 0x1p63 ? INT64_MAX : x < -0x1p63 ? INT64_MIN : (int64_t)x;
}

enum { COUNT = 1500 };
typedef void Host(const void *va, const void *vb, const void *vc, void *vz);

#define USE(x) (void)(x)
#define HOST(name, type, expr)                                                        \
    static void host_##name(const void *va, const void *vb, const void *vc, void *vz) \
    {                                                                                 \
        const type *pa = va, *pb = vb, *pc = vc;                                      \
        type *z = vz;                                                                 \
        for (int i = 0; i < COUNT; i++) {                                             \
            const type a = pa[i], b = pb[i], c = pc[i];                               \
            USE(a), USE(b), USE(c);                                                   \
            z[i] = (type)(expr);                                                      \
        }                                                                             \
    }
#define INT(name, expr) HOST(name, uint32_t, expr)
#define LONG(name, expr) HOST(name, uint64_t, expr)
#define FLOAT(name, expr) HOST(name, float, expr)
#define DOUBLE(name, expr) HOST(name, double, expr)
#define NEAR(name, expr, ulps) HOST(name, float, expr)
#define NEAR64(name, expr, ulps) HOST(name, double, expr)
#include "gpu/self/ops.def"
#undef INT
#undef LONG
#undef FLOAT
#undef DOUBLE
#undef NEAR
#undef NEAR64

static const struct {
    const char *name;
    Host *host;
    int bytes;
    bool real;
    int ulps;
} function[] = {
#define INT(name, expr) { "op_" #name, host_##name, 4, false, 0 },
#define LONG(name, expr) { "op_" #name, host_##name, 8, false, 0 },
#define FLOAT(name, expr) { "op_" #name, host_##name, 4, true, 0 },
#define DOUBLE(name, expr) { "op_" #name, host_##name, 8, true, 0 },
#define NEAR(name, expr, ulps) { "op_" #name, host_##name, 4, true, ulps },
#define NEAR64(name, expr, ulps) { "op_" #name, host_##name, 8, true, ulps },
#include "gpu/self/ops.def"
};

/* Random bits, numbers of moderate size, and what is special. */
static uint64_t special(int bytes, bool real, int i, uint64_t *state)
{
    static const uint32_t ints[] = { 0,          1,          2,          31,
                                     32,         0x7fffffff, 0x80000000, 0x80000001,
                                     0xffffffff, 0xfffffffe, 0xff,       0x10000 };
    static const float reals[] = { 0.0f,       -0.0f,           1.0f,      -1.0f,
                                   INFINITY,   -INFINITY,       NAN,       0x1p-149f,
                                   -0x1p-126f, 0x1.fffffep127f, 0.5f,      2.5f,
                                   -3.5f,      0x1p23f,         0x1.8p24f, 2147483648.0f };
    const uint64_t r = test_random(state);

    if (i % 4 == 0 && real) {
        const float f = reals[r % 16];
        const double d = f;
        uint64_t x = 0;

        memcpy(&x, bytes == 8 ? (const void *)&d : &f, (size_t)bytes);
        return x;
    }
    if (i % 4 == 0)
        return ints[r % 12] | (uint64_t)ints[r >> 8 & 7] << 32;
    if (i % 4 == 1 && real) {
        const double d = (double)(int64_t)test_random(state) * 0x1p-60;
        const float f = (float)d;
        uint64_t x = 0;

        memcpy(&x, bytes == 8 ? (const void *)&d : &f, (size_t)bytes);
        return x;
    }
    return r;
}

static void fill(void *to, int bytes, bool real, uint64_t seed)
{
    uint64_t state = seed;

    for (int i = 0; i < COUNT; i++) {
        /* the three operands have their special values at different places */
        const uint64_t x = special(bytes, real, i + (int)seed * (i / 64), &state);

        memcpy((char *)to + (size_t)i * (size_t)bytes, &x, (size_t)bytes);
    }
}

/* Numbers in order, so that a difference is one in units of the last place. */
static int64_t ordered(const void *p, int bytes)
{
    int64_t x = 0;

    if (bytes == 8) {
        memcpy(&x, p, 8);
        return x < 0 ? INT64_MIN - x : x;
    }
    int32_t y;

    memcpy(&y, p, 4);
    return y < 0 ? (int64_t)INT32_MIN - y : y;
}

static bool is_nan(const void *p, int bytes)
{
    float f;
    double d;

    memcpy(bytes == 8 ? (void *)&d : &f, p, (size_t)bytes);
    return bytes == 8 ? isnan(d) : isnan(f);
}

static bool compare(size_t n, const char *variant, const char *got, const char *want)
{
    const int bytes = function[n].bytes;

    for (int i = 0; i < COUNT; i++) {
        const void *g = got + i * bytes, *w = want + i * bytes;
        uint64_t gx = 0, wx = 0;

        memcpy(&gx, g, (size_t)bytes);
        memcpy(&wx, w, (size_t)bytes);
        if (gx == wx || (function[n].real && is_nan(g, bytes) && is_nan(w, bytes)))
            continue;
        if (function[n].ulps > 0 && !is_nan(g, bytes) && !is_nan(w, bytes) &&
            llabs(ordered(g, bytes) - ordered(w, bytes)) <= function[n].ulps)
            continue;
        printf("%s, %s: element %d is %#llx, not %#llx\n", function[n].name, variant, i,
               (unsigned long long)gx, (unsigned long long)wx);
        return false;
    }
    return true;
}

static void check_variant(int v)
{
    const Sass *code = self_code("ops", variant_name[v]);
    static uint64_t in[3][COUNT], got[COUNT], want[COUNT];
    int wrong = 0;

    for (size_t n = 0; n < sizeof function / sizeof *function; n++) {
        const int bytes = function[n].bytes;
        SassGpu *gpu = sass_gpu();
        SassParams p = { .size = 0 };

        for (int k = 0; k < 3; k++) {
            fill(in[k], bytes, function[n].real, (uint64_t)k + 1);
            sass_param64(&p,
                         sass_buffer(gpu, "operand", in[k], (size_t)(COUNT * bytes), SASS_INPUT));
        }
        memset(got, 0x55, sizeof got);
        sass_param64(&p, sass_buffer(gpu, "result", got, (size_t)(COUNT * bytes), SASS_FRESH));
        sass_param32(&p, COUNT);
        self_run(gpu, code, function[n].name, (SassShape){ { (COUNT + 127) / 128 }, { 128 }, 0 },
                 &p);
        function[n].host(in[0], in[1], in[2], want);
        wrong += !compare(n, variant_name[v], (const char *)got, (const char *)want);
        sass_gpu_free(gpu);
    }
    CHECK_EQ(wrong, 0);
}

TEST(elementwise_functions_compute_as_the_host_does)
{
    check_variant(0);
}

TEST(so_they_do_with_less_optimization)
{
    check_variant(1);
}

TEST(so_they_do_with_debug_code)
{
    check_variant(2);
}
