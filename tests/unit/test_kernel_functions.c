/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * emit/simd.h: functions in lanes, beside those of the C library, where they are large, small, and
 * no numbers at all. */
#include "unit/kernel_bed.h"

#include <float.h>
#include <math.h>

enum { N = 203 };

static double x64[N], e64[N], g64[N], u64[N];
static float x32[N], e32[N], g32[N], u32[N];

static const char text[] = "program p(n)\naxis I = n\n%s X[I], E[I], G[I], U[I]\n"
                           "e: E[i] = exp(X[i])\ng: G[i] = sigmoid(X[i])\nu: U[i] = silu(X[i])\n";

static void fill(void)
{
    static const double special[] = { 0.0,    -0.0,   INFINITY, -INFINITY, NAN,   1e-300, -1e-300,
                                      709.75, 709.79, -708.5,   -745.1,    -746,  1e300,  -1e300,
                                      88.7,   88.8,   -87.4,    -103.9,    -104.1 };
    const int n = (int)(sizeof special / sizeof *special);

    for (int i = 0; i < N; i++) {
        x64[i] = i < n ? special[i] : (i - N / 2) * 0.37;
        x32[i] = (float)x64[i];
    }
}

static void run(const char *type, weft_type t, void *x, void *e, void *g, void *u)
{
    char program[300];

    snprintf(program, sizeof program, text, type);
    open_kernel(program);
    bind("X", x, t, 1, SHAPE(N));
    bind("E", e, t, 1, SHAPE(N));
    bind("G", g, t, 1, SHAPE(N));
    bind("U", u, t, 1, SHAPE(N));
    OK(weft_kernel_run(kernel, args));
    close_prog();
}

/* The same, or as near as so many last places of what is no smaller than `least`. */
static bool is_near(double got, double want, double place, double least)
{
    if (isnan(want) || isinf(want))
        return isnan(want) ? isnan(got) : got == want;
    return fabs(got - want) <= 4 * place * fmax(fabs(want), least);
}

TEST(functions_in_lanes_are_those_of_the_library)
{
    fill();
    run("f64", WEFT_F64, x64, e64, g64, u64);
    run("f32", WEFT_F32, x32, e32, g32, u32);
    for (int i = 0; i < N; i++) {
        double x = x64[i], y = (double)x32[i], g = 1 / (1 + exp(-x)), h = 1 / (1 + exp(-y));

        CHECK(is_near(e64[i], exp(x), DBL_EPSILON / 2, DBL_MIN));
        CHECK(is_near(g64[i], g, DBL_EPSILON / 2, DBL_MIN));
        CHECK(is_near(u64[i], x * g, DBL_EPSILON / 2, DBL_MIN));
        CHECK(is_near((double)e32[i], (double)(float)exp(y), FLT_EPSILON / 8, FLT_MIN));
        CHECK(is_near((double)g32[i], (double)(float)h, FLT_EPSILON / 8, FLT_MIN));
        CHECK(is_near((double)u32[i], (double)(float)(y * h), FLT_EPSILON / 8, FLT_MIN));
    }
}
