/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * emit/elementary.h: functions in lanes, beside those of the C library, where they are large,
 * small, and no numbers at all.  tests/elementary.c looks at many more floats. */
#include "unit/kernel_bed.h"

#include <float.h>
#include <math.h>

enum { N = 203, MANY = 40003, FUNCTIONS = 9 };

static double x64[N], e64[N], g64[N], u64[N];
static float x32[MANY], y32[FUNCTIONS][MANY], z32[MANY];

static double of_rsqrt(double x)
{
    return 1 / sqrt(x);
}

static double of_sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static double of_silu(double x)
{
    return x * of_sigmoid(x);
}

static const struct {
    const char *name;
    double (*exact)(double);
    double units; /* of the last place: docs/ir.md */
} function[FUNCTIONS] = {
    { "exp", exp, 1.25 },       { "log", log, 0.85 }, { "sqrt", sqrt, 0.5 },
    { "rsqrt", of_rsqrt, 1.5 }, { "sin", sin, 2.25 }, { "cos", cos, 2.25 },
    { "tanh", tanh, 2.5 },      { "sigmoid", of_sigmoid, 2.5 },
    { "silu", of_silu, 2.5 },
};

static const double special[] = { 0.0,    -0.0,   INFINITY, -INFINITY, NAN,   1e-300, -1e-300,
                                  709.75, 709.79, -708.5,   -745.1,    -746,  1e300,  -1e300,
                                  88.7,   88.8,   -87.4,    -103.9,    -104.1, 1e-40, -1e-45,
                                  3e38,   -3e38,  8191.5,   8192.5,    1e9,    -1e9,  1e-38 };
enum { SPECIAL = sizeof special / sizeof *special };

/* The same, or as near as so many last places of what is no smaller than `least`. */
static bool is_near(double got, double want, double place, double least)
{
    if (isnan(want) || isinf(want))
        return isnan(want) ? isnan(got) : got == want;
    return fabs(got - want) <= place * fmax(fabs(want), least);
}

TEST(functions_in_lanes_of_f64_are_those_of_the_library)
{
    open_kernel("program p(n)\naxis I = n\nf64 X[I], E[I], G[I], U[I]\n"
                "e: E[i] = exp(X[i])\ng: G[i] = sigmoid(X[i])\nu: U[i] = silu(X[i])\n");
    for (int i = 0; i < N; i++)
        x64[i] = i < SPECIAL ? special[i] : (i - N / 2) * 0.37;
    bind("X", x64, WEFT_F64, 1, SHAPE(N));
    bind("E", e64, WEFT_F64, 1, SHAPE(N));
    bind("G", g64, WEFT_F64, 1, SHAPE(N));
    bind("U", u64, WEFT_F64, 1, SHAPE(N));
    OK(weft_kernel_run(kernel, args));
    for (int i = 0; i < N; i++) {
        CHECK(is_near(e64[i], exp(x64[i]), 2 * DBL_EPSILON, DBL_MIN));
        CHECK(is_near(g64[i], of_sigmoid(x64[i]), 2 * DBL_EPSILON, DBL_MIN));
        CHECK(is_near(u64[i], of_silu(x64[i]), 2 * DBL_EPSILON, DBL_MIN));
    }
    close_prog();
}

/* Bits all over the range, and numbers as programs have them. */
static void make_floats(void)
{
    for (int i = 0; i < MANY; i++) {
        uint32_t bits = (uint32_t)i * 107371u + 1;

        x32[i] = i < SPECIAL ? (float)special[i] : (float)(i - MANY / 2) * 0.00137f;
        if (i >= SPECIAL && i % 2 == 0)
            memcpy(&x32[i], &bits, sizeof bits);
    }
}

static void run_function(Inject *j, int f, const char *width, const char *text, const char *has,
                         float *y)
{
    char program[200], call[40];

    snprintf(program, sizeof program, text, function[f].name);
    snprintf(call, sizeof call, has, function[f].name);
    if (!open_width(j, width, program))
        test_skip("not an x86-64 machine");
    check_source(call);
    bind("X", x32, WEFT_F32, 1, SHAPE(MANY));
    bind("Y", y, WEFT_F32, 1, SHAPE(MANY));
    OK(weft_kernel_run(kernel, args));
    close_inject(j);
}

/* Within so many last places of the exact value, and with its sign. */
static bool is_close(float got, double want, double units)
{
    double last = (double)nextafterf((float)fabs(want), INFINITY) - (double)(float)fabs(want);

    if (isinf((float)want) || isnan(want))
        return is_near((double)got, (double)(float)want, 0, 0);
    return fabs((double)got - want) <= units * last && !signbit(got) == !signbit(want);
}

TEST(functions_in_lanes_of_f32_are_as_near_as_promised)
{
    static const char lanes[] = "program p(n)\naxis I = n\nf32 X[I], Y[I]\ny: Y[i] = %s(X[i])\n";
    Inject j;

    make_floats();
    for (int w = 0; w < 3; w++)
        for (int f = 0; f < FUNCTIONS; f++) {
            run_function(&j, f, bed_widths[w], lanes, "weft_%s_vf32(WEFT_LOAD_F32(", y32[f]);
            for (int i = 0; i < MANY; i++)
                CHECK(is_close(y32[f][i], function[f].exact((double)x32[i]), function[f].units));
        }
}

TEST(functions_of_one_f32_have_the_bits_of_lanes)
{
    static const char lanes[] = "program p(n)\naxis I = n\nf32 X[I], Y[I]\ny: Y[i] = %s(X[i])\n";
    static const char ones[] = "program p(n)\naxis I = n\nf32 X[I], Y[I]\n"
                               "y: Y[i] = %s(X[n - 1 - i])\n";
    Inject j;

    make_floats();
    for (int w = 0; w < 3; w++)
        for (int f = 0; f < FUNCTIONS; f++) {
            run_function(&j, f, bed_widths[w], lanes, "weft_%s_vf32(WEFT_LOADM_F32(", y32[f]);
            run_function(&j, f, bed_widths[w], ones, "= weft_%s_f32(", z32);
            for (int i = 0; i < MANY; i++)
                CHECK((isnan(y32[f][i]) && isnan(z32[MANY - 1 - i])) ||
                      memcmp(&y32[f][i], &z32[MANY - 1 - i], sizeof **y32) == 0);
        }
}
