/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * elementary STEP [FUNCTION]: the functions of emit/elementary.h of every STEP-th of the 2^32
 * floats, against the C library's in double.  Prints the largest error of each, in units of the
 * last place of the exact value, and fails where it is above what docs/ir.md promises, where a NaN,
 * an infinity or a sign is another one, and where one float has other bits than a lane. */
#include "emit/simd.h"

#include "emit/elementary.h"

#include <stdio.h>
#include <stdlib.h>

enum { LANES = WEFT_BYTES / 4 };

typedef struct Function {
    const char *name;
    weft_vf32 (*lanes)(weft_vf32);
    float (*one)(float);
    double (*exact)(double);
    double bound[2]; /* without fused multiply-adds, with them */
} Function;

typedef struct Worst {
    double error;
    float at, got;
    long long wrong, unlike; /* not what it must be; other bits than a lane */
} Worst;

static double exact_rsqrt(double x) { return 1 / sqrt(x); }
static double exact_sigmoid(double x) { return 1 / (1 + exp(-x)); }
static double exact_silu(double x) { return x * (1 / (1 + exp(-x))); }

static const Function all[] = {
    { "exp", weft_exp_vf32, weft_exp_f32, exp, { 1.25, 0.9 } },
    { "log", weft_log_vf32, weft_log_f32, log, { 0.85, 0.85 } },
    { "sqrt", weft_sqrt_vf32, weft_sqrt_f32, sqrt, { 0.5, 0.5 } },
    { "rsqrt", weft_rsqrt_vf32, weft_rsqrt_f32, exact_rsqrt, { 1.5, 1.5 } },
    { "sin", weft_sin_vf32, weft_sin_f32, sin, { 2.25, 1.5 } },
    { "cos", weft_cos_vf32, weft_cos_f32, cos, { 2.25, 1.5 } },
    { "tanh", weft_tanh_vf32, weft_tanh_f32, tanh, { 2.5, 2.5 } },
    { "sigmoid", weft_sigmoid_vf32, weft_sigmoid_f32, exact_sigmoid, { 2.5, 2.45 } },
    { "silu", weft_silu_vf32, weft_silu_f32, exact_silu, { 2.5, 2.45 } },
};

static uint32_t bits_of(float x)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static float float_of(uint32_t bits)
{
    float x;

    memcpy(&x, &bits, sizeof x);
    return x;
}

/* In last places of `want`, which is as large as a float can be; -1: not even its kind. */
static double error_of(float got, double want)
{
    double last, have = isinf(got) ? copysign(0x1p128, (double)got) : (double)got;
    int e;

    if (isnan(want) || isnan(got))
        return isnan(want) && isnan(got) ? 0 : -1;
    if (!signbit(got) != !signbit(want) || (isinf(want) && !isinf(got)))
        return -1;
    want = fabs(want) > 0x1p128 ? copysign(0x1p128, want) : want;
    frexp(want, &e);
    last = e - 24 < -149 ? 0x1p-149 : ldexp(1, e - 24);
    return fabs(have - want) / last;
}

static void note(Worst *w, float x, float got, double error)
{
    w->wrong += error < 0;
    if (error >= 0 && error <= w->error)
        return;
    w->error = error < 0 ? w->error : error;
    w->at = x;
    w->got = got;
}

/* A vector of floats, whose bits are `step` apart. */
static void look(const Function *f, uint32_t bits, uint32_t step, Worst *w)
{
    weft_vf32 x = { 0 }, y;
    int lane = (int)(bits / step / LANES % LANES);
    float one;

    for (int i = 0; i < LANES; i++)
        x[i] = float_of(bits + (uint32_t)i * step);
    y = f->lanes(x);
    one = f->one(x[lane]);
    w->unlike += !(isnan(one) && isnan(y[lane])) && bits_of(one) != bits_of(y[lane]);
    for (int i = 0; i < LANES; i++)
        note(w, x[i], y[i], error_of(y[i], f->exact((double)x[i])));
}

static int check(const Function *f, uint32_t step)
{
    Worst w = { 0 };
    int good;

    for (uint64_t bits = 0; bits < 1ull << 32; bits += (uint64_t)step * LANES)
        look(f, (uint32_t)bits, step, &w);
    good = w.error <= f->bound[WEFT_FUSES] && w.wrong == 0 && w.unlike == 0;
    printf("%-8s %.3f ulp at %a, which gives %a", f->name, w.error, (double)w.at, (double)w.got);
    printf(good ? "\n" : " FAILED: bound %g, %lld of another kind, %lld unlike a lane\n",
           f->bound[WEFT_FUSES], w.wrong, w.unlike);
    return good;
}

int main(int argc, char **argv)
{
    long step = argc > 1 ? atol(argv[1]) : 0;
    int passed = 0, failed = 0;

    if (step < 1 || step > 1 << 24) {
        fprintf(stderr, "usage: elementary STEP [FUNCTION]\n");
        return 2;
    }
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (argc > 2 && strcmp(argv[2], all[i].name) != 0)
            continue;
        if (check(&all[i], (uint32_t)step))
            passed++;
        else
            failed++;
    }
    printf("%d passed, %d failed\n", passed, failed);
    return failed > 0 || passed == 0;
}
