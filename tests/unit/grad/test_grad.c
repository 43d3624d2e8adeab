/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Tests of grad/: the rule of each operator against its formula, what a derivative is of and by,
 * and the text that a reader sees. */
#include "unit/grad_bed.h"

#include <math.h>
#include <stdio.h>

/* Every function with its first and second derivative. */

#define FORMULA(name, ...)       \
    static double name(double x) \
    {                            \
        return __VA_ARGS__;      \
    }
FORMULA(one, x - x + 1)
FORMULA(zero, x - x)
FORMULA(inverse, 1 / x)
FORMULA(log2nd, -1 / (x * x))
FORMULA(sqrt1st, 0.5 / sqrt(x))
FORMULA(sqrt2nd, -0.25 / (x * sqrt(x)))
FORMULA(rsqrt1st, -0.5 / (x * sqrt(x)))
FORMULA(rsqrt2nd, 0.75 / (x * x * sqrt(x)))
FORMULA(minus_sin, -sin(x))
FORMULA(minus_cos, -cos(x))
FORMULA(tanh1st, 1 / (cosh(x) * cosh(x)))
FORMULA(tanh2nd, -2 * tanh(x) / (cosh(x) * cosh(x)))
FORMULA(sigma, 1 / (1 + exp(-x)))
FORMULA(sigmoid1st, sigma(x) * sigma(-x))
FORMULA(sigmoid2nd, sigmoid1st(x) * (1 - 2 * sigma(x)))
FORMULA(silu1st, sigma(x) + x * sigmoid1st(x))
FORMULA(silu2nd, 2 * sigmoid1st(x) + x * sigmoid2nd(x))
FORMULA(itself, x)
FORMULA(half, x - x + 0.5)
FORMULA(recip1st, -3 / (x * x))
FORMULA(recip2nd, 6 / (x * x * x))
FORMULA(cube1st, 3 * x * x)
FORMULA(cube2nd, 6 * x)
FORMULA(minus, x - x - 1)
FORMULA(above, x > 1)
FORMULA(below, x <= 1)

static const struct {
    const char *text; /* of x */
    double (*first)(double), (*second)(double);
} function[] = {
    { "exp(X[i])", exp, exp },
    { "log(X[i])", inverse, log2nd },
    { "sqrt(X[i])", sqrt1st, sqrt2nd },
    { "rsqrt(X[i])", rsqrt1st, rsqrt2nd },
    { "sin(X[i])", cos, minus_sin },
    { "cos(X[i])", minus_sin, minus_cos },
    { "tanh(X[i])", tanh1st, tanh2nd },
    { "sigmoid(X[i])", sigmoid1st, sigmoid2nd },
    { "silu(X[i])", silu1st, silu2nd },
    { "relu(X[i])", one, zero },
    { "relu(-X[i])", zero, zero },
    { "abs(X[i])", one, zero },
    { "abs(-X[i])", one, zero },
    { "step(X[i])", zero, zero },
    { "sign(X[i])", zero, zero },
    { "stop(X[i])", zero, zero },
    { "f64(X[i])", one, zero },
    { "-X[i]", minus, zero },
    { "X[i] + 2", one, zero },
    { "2 - X[i]", minus, zero },
    { "X[i] / 2", half, zero },
    { "3 / X[i]", recip1st, recip2nd },
    { "X[i] * X[i] * X[i]", cube1st, cube2nd },
    { "X[i] / X[i]", zero, zero },
    { "max(X[i], 1)", above, zero },
    { "min(X[i], 1)", below, zero },
    { "max(1, X[i])", above, zero },
    { "select(X[i] > 1, X[i], 1)", above, zero },
    { "select(X[i] > 1, 1, X[i])", below, zero },
    { "select(X[i] > 1, X[i], X[i])", one, zero },
    { "X[i] - X[i]", zero, zero },
    { "stop(X[i]) * X[i]", itself, zero },
};

static const double points[] = { 0.3, 0.9, 1.7, 2.5 };

static void compare(Bed *b, const char *name, double (*f)(double), const char *what)
{
    for (int i = 0; i < 4; i++) {
        double want = f(points[i]), got = bed_f(b, name, i);

        if (!(fabs(got - want) <= 1e-14 * (1 + fabs(want))))
            test_fail(__FILE__, __LINE__, "%s at %g: %.17g, not %.17g", what, points[i], got, want);
    }
}

static void ones(Bed *b, const char *name)
{
    if (ir_find_buf(b->prog, name) != NULL)
        F64(b, name, 1, 1, 1, 1);
}

static void bind_points(Bed *b)
{
    if (ir_find_size(b->prog, "n") != NULL)
        bed_size(b, "n", 4);
    if (ir_find_buf(b->prog, "X") != NULL)
        bed_bind(b, "X", T_f64, 4, points);
    ones(b, "d_Y");
    ones(b, "t_X");
    ones(b, "d2_d_X");
}

/* The first derivative in both modes, and the second one if there is an X in the first. */
static void check_function(const char *text, double (*first)(double), double (*second)(double))
{
    GradOptions by_x = { .wrt = (const char *[]){ "X" }, .nwrt = 1 };
    Bed b;

    bed_open(&b, text);
    grad_bed(&b, &by_x);
    bind_points(&b);
    bed_run(&b);
    compare(&b, "d_X", first, text);
    if (ir_find_buf(b.prog, "X") != NULL) {
        grad_bed(&b, &by_x);
        bind_points(&b);
        bed_run(&b);
        compare(&b, "d2_X", second, text);
    }
    bed_close(&b);
    bed_open(&b, text);
    grad_bed_forward(&b, &by_x);
    bind_points(&b);
    bed_run(&b);
    compare(&b, "t_Y", first, text);
    bed_close(&b);
}

TEST(every_function_has_its_derivatives)
{
    for (size_t i = 0; i < sizeof function / sizeof *function; i++) {
        char root[200], inside[200];

        snprintf(root, sizeof root, "program p(n)\naxis I = n\nf64 X[I], Y[I]\ny: Y[i] = %s\n",
                 function[i].text);
        check_function(root, function[i].first, function[i].second);
        snprintf(inside, sizeof inside,
                 "program p(n)\naxis I = n\nf64 X[I], Y[I]\ny: Y[i] += 0.5 * (%s) + 1\n"
                 "z: Y[i] += (%s) / 2\n",
                 function[i].text, function[i].text);
        check_function(inside, function[i].first, function[i].second);
    }
}

/* What the derivative of y: Y[i] = ... by X looks like. */
#define BY_X "program p(n)\naxis I = n\nf64 X[I], W[I], Y[I]\ny: Y[i] = "

static void check_value(const char *value, const char *want)
{
    char text[400];
    Bed b;

    snprintf(text, sizeof text, BY_X "%s\n", value);
    bed_open(&b, text);
    grad_bed(&b, &(GradOptions){ .wrt = (const char *[]){ "X" }, .nwrt = 1 });
    CHECK_HAS(grad_text(&b), want);
    bed_close(&b);
}

TEST(a_gradient_reads_as_a_person_would_write_it)
{
    check_value("X[i] * W[i]", "d(y,X): d_X[i] += d_Y[i] * W[i]\n");
    check_value("X[i] * X[i]", "d(y,X): d_X[i] += d_Y[i] * 2 * X[i]\n");
    check_value("X[i] * X[i] * X[i]", "+= d_Y[i] * 3 * X[i] * X[i]\n");
    check_value("X[i] * W[i] * X[i] * W[i]", "+= d_Y[i] * 2 * X[i] * W[i] * W[i]\n");
    check_value("0.5 * X[i] * X[i]", "+= d_Y[i] * X[i]\n");
    check_value("2 * X[i] + 3 * X[i]", "+= d_Y[i] * 5\n");
    check_value("X[i] + X[i] * 2", "+= d_Y[i] * 3\n");
    check_value("X[i] * -2", "+= -(d_Y[i] * 2)\n");
    check_value("-X[i] * W[i] * -3", "+= d_Y[i] * 3 * W[i]\n");
    check_value("W[i] - X[i]", "+= -d_Y[i]\n");
    check_value("X[i] * X[i] - X[i]", "+= d_Y[i] * 2 * X[i] - d_Y[i]\n");
    check_value("X[i] * X[i] * W[i] - X[i] * 0.5", "+= d_Y[i] * 2 * X[i] * W[i] - d_Y[i] * 0.5\n");
    check_value("X[i] / W[i]", "+= d_Y[i] / W[i]\n");
    check_value("W[i] / X[i]", "+= -(d_Y[i] / X[i] * (W[i] / X[i]))\n");
    check_value("1 + W[i] / X[i]", "+= -(d_Y[i] / X[i] * (W[i] / X[i]))\n");
    check_value("log(W[i] - X[i])", "+= -(d_Y[i] / (W[i] - X[i]))\n");
    check_value("(X[i] - 1) * (X[i] + 1)", "+= d_Y[i] * (X[i] + 1) + d_Y[i] * (X[i] - 1)\n");
    check_value("1e200 * X[i] * 1e200", "+= d_Y[i] * 1e+200 * 1e+200\n");
    check_value("1e-200 * X[i] * 1e-200", "+= d_Y[i] * 1e-200 * 1e-200\n");
    check_value("inf * X[i]", "+= d_Y[i] * inf\n");
}

TEST(a_function_of_the_output_uses_the_output)
{
    check_value("exp(X[i])", "+= d_Y[i] * Y[i]\n");
    check_value("tanh(X[i])", "+= d_Y[i] * (1 - Y[i] * Y[i])\n");
    check_value("sigmoid(X[i])", "+= d_Y[i] * Y[i] * (1 - Y[i])\n");
    check_value("sqrt(X[i])", "+= d_Y[i] / (2 * Y[i])\n");
    check_value("rsqrt(X[i])", "+= -(d_Y[i] * 0.5 * Y[i] * Y[i] * Y[i])\n");
    check_value("2 * exp(X[i])", "+= d_Y[i] * 2 * exp(X[i])\n");
}

/* A value that is rounded when it is stored is not the value that the derivative wants. */
TEST(a_rounded_output_does_not_stand_for_the_value)
{
    Bed b;

    bed_open(&b, "program p(n)\naxis I = n\nf64 X[I]\nf32 Y[I], Z[I]\ny: Y[i] = exp(X[i])\n"
                 "z: Z[i] += exp(X[i])\n");
    grad_bed(&b, &(GradOptions){ 0 });
    CHECK_HAS(grad_text(&b), "d(y,X): d_X[i] += d_Y[i] * exp(X[i])\n");
    CHECK_HAS(grad_text(&b), "d(z,X): d_X[i] += d_Z[i] * exp(X[i])\n");
    bed_close(&b);
}

/* The derivative of a long value by X at one point, with W = 1. */
static double derivative_at(const char *text, double x)
{
    Bed b;
    double d;

    bed_open(&b, text);
    grad_bed(&b, &(GradOptions){ .wrt = (const char *[]){ "X" }, .nwrt = 1 });
    bed_size(&b, "n", 1);
    F64(&b, "X", x);
    if (ir_find_buf(b.prog, "W") != NULL)
        F64(&b, "W", 1);
    F64(&b, "d_Y", 1);
    bed_run(&b);
    d = bed_f(&b, "d_X", 0);
    bed_close(&b);
    return d;
}

/* More factors or terms than are put in order stay as they are. */
TEST(long_products_and_sums_are_right)
{
    Err err = { 0 };
    Arena arena;
    Text product, sum;
    double x = 1.01, want = 0;

    arena_init(&arena, &os_libc, &err);
    product = sum = (Text){ .arena = &arena };
    text_str(&product, BY_X "X[i]");
    text_str(&sum, BY_X "0");
    for (int i = 1; i < 300; i++) {
        text_str(&product, i < 200 ? " * X[i]" : " * (X[i] * W[i])");
        text_f(&sum, " + sin(%d * X[i])", i);
        want += i * cos(i * x);
    }
    text_char(&product, '\n');
    text_char(&sum, '\n');
    CHECK_NEAR(derivative_at(product.s, x), 300 * pow(x, 299), 1e-9 * pow(x, 299));
    CHECK_NEAR(derivative_at(sum.s, x), want, 1e-8);
    arena_free(&arena);
}

TEST(select_max_and_min_are_guards)
{
    check_value("max(X[i], W[i])", "d(y,X): d_X[i] += d_Y[i] if X[i] >= W[i]\n");
    check_value("max(W[i], X[i])", "d(y,X): d_X[i] += d_Y[i] if W[i] < X[i]\n");
    check_value("min(X[i], W[i])", "+= d_Y[i] if X[i] <= W[i]\n");
    check_value("min(W[i], X[i])", "+= d_Y[i] if W[i] > X[i]\n");
    check_value("select(i < 2, X[i], W[i])", "+= d_Y[i] if i < 2\n");
    check_value("select(i < 2, W[i], X[i])", "+= d_Y[i] if i >= 2\n");
    check_value("select(i == 2, W[i], X[i])", "+= d_Y[i] if i != 2\n");
    check_value("select(W[i] < 2, W[i], X[i])", "+= d_Y[i] if not W[i] < 2\n");
    check_value("select(not W[i] < 2, W[i], X[i])", "+= d_Y[i] if W[i] < 2\n");
    check_value("select(i < 2 and W[i] < 3, X[i], 0)", "+= d_Y[i] if i < 2 and W[i] < 3\n");
    check_value("max(X[i], 2 * X[i])", "+= select(X[i] >= 2 * X[i], d_Y[i], d_Y[i] * 2)\n");
    check_value("select(i < 2, X[i], 3 * X[i])", "+= select(i < 2, d_Y[i], d_Y[i] * 3)\n");
    check_value("select(i > 0, select(i < 2, X[i], 3 * X[i]), 5 * X[i])",
                "+= select(i > 0, select(i < 2, d_Y[i], d_Y[i] * 3), d_Y[i] * 5)\n");
    check_value("select(i > 0, select(i < 2, X[i], 3 * X[i]), 5)",
                "+= select(i < 2, d_Y[i], d_Y[i] * 3) if i > 0\n");
    check_value("select(i > 0, select(i < 2, X[i], 1), 5 * X[i])",
                "+= select(i > 0 and i < 2, d_Y[i], 0) + select(i <= 0, d_Y[i] * 5, 0)\n");
    check_value("X[i] + select(i < 2, X[i] * X[i], 0)",
                "+= d_Y[i] + select(i < 2, d_Y[i] * 2 * X[i], 0)\n");
    check_value("select(i < 2, X[i] * select(i > 0, X[i], 3), 0)",
                "+= d_Y[i] * select(i > 0, X[i], 3) + "
                "select(i < 2 and i > 0, d_Y[i] * X[i], 0) if i < 2\n");
    check_value("select(W[i] < 2, 1, 0) * X[i]", "+= d_Y[i] * select(W[i] < 2, 1, 0)\n");
}

/* Each access and each factor is evaluated only where the program does it: no index outside, no
 * division by zero times zero, and where the condition is not a number, the other side. */
TEST(what_is_not_chosen_is_not_evaluated)
{
    Bed b;

    bed_open(&b, "program p(n)\naxis I = n\nf64 X[n], W[I], Y[I]\n"
                 "y: Y[i] = select(i > 0, X[i - 1] / W[i], 0) + select(i < 2, X[i + 1], X[0]) + "
                 "select(W[i] < 5, 0, 3 * X[i])\n");
    grad_bed(&b, &(GradOptions){ .wrt = (const char *[]){ "X" }, .nwrt = 1 });
    bed_size(&b, "n", 3);
    F64(&b, "W", 0, NAN, 2);
    F64(&b, "d_Y", 1, 10, 100);
    bed_run(&b);
    CHECK(isnan(bed_f(&b, "d_X", 0)));
    CHECK_SAME(bed_f(&b, "d_X", 1), 1 + 30 + 50);
    CHECK_SAME(bed_f(&b, "d_X", 2), 10);
    bed_close(&b);

    bed_open(&b, BY_X "select(X[i] > 0, log(X[i]), 0) + select(X[i] < 0, log(-X[i]), 0)\n");
    grad_bed(&b, &(GradOptions){ .wrt = (const char *[]){ "X" }, .nwrt = 1 });
    bed_size(&b, "n", 3);
    F64(&b, "X", 0, 2, -4);
    F64(&b, "d_Y", 1, 1, 1);
    bed_run(&b);
    WANT(&b, "d_X", 0, 0.5, -0.25);
    bed_close(&b);
}

TEST(the_parts_of_two_conditions_are_guarded_by_both)
{
    Bed b;

    bed_open(&b,
             "program p(n)\naxis I = n\nf64 X[n], Y[I]\n"
             "y: Y[i] = select(i > 2, X[i - 1], 0) + select(i < 2 and i > 0, 2 * X[i - 1], 0)\n");
    grad_bed(&b, &(GradOptions){ 0 });
    CHECK_HAS(grad_text(&b), "if i > 2 or i < 2 and i > 0\n");
    bed_size(&b, "n", 4);
    F64(&b, "d_Y", 1, 10, 100, 1000);
    bed_run(&b);
    WANT(&b, "d_X", 20, 0, 1000, 0);
    bed_close(&b);
}

TEST(a_read_that_may_miss_is_guarded)
{
    Bed b;

    bed_open(&b, "program p(m, n)\naxis I = m, J = compressed(I, n) sorted unique, K = n\n"
                 "f64 A[I, J] fill 5, Y[I, K]\ny: Y[i, k] = A[i, k] * A[i, k]\n");
    grad_bed(&b, &(GradOptions){ 0 });
    CHECK_HAS(grad_text(&b), "d_A[i, k] += d_Y[i, k] * 2 * A[i, k] if stored(d_A[i, k])\n");
    bed_size(&b, "m", 2);
    bed_size(&b, "n", 2);
    I64(&b, "J.start", 0, 1, 2);
    I64(&b, "J.coord", 1, 0);
    F64(&b, "A", 3, 4);
    F64(&b, "d_Y", 1, 10, 100, 1000);
    bed_run(&b);
    WANT(&b, "d_A", 60, 800);
    bed_close(&b);
}

/* An ident axis has holes when it is padded. */
TEST(a_padded_axis_may_miss_too)
{
    Bed b;

    bed_open(&b, "program p(n)\naxis P = 4 : q = ident < n padded, K = 4\n"
                 "f64 A[P], Y[K]\ny: Y[k] = A[k]\n");
    grad_bed(&b, &(GradOptions){ 0 });
    bed_size(&b, "n", 2);
    CHECK(ir_find_buf(b.prog, "A") == NULL); /* its structure is that of d_A */
    F64(&b, "d_Y", 1, 10, 100, 1000);
    bed_run(&b);
    CHECK_SAME(bed_f(&b, "d_A", 0), 1);
    CHECK_SAME(bed_f(&b, "d_A", 1), 10);
    bed_close(&b);
}

TEST(the_counts_of_a_trilinear_program_are_3_9_27)
{
    static const int want[] = { 1, 3, 9, 27 };
    Bed b;

    bed_open(&b, "program tp(n)\naxis B = n, P = 3, Q(P) = rows a b c -> g { 0 1 2 -> 1; "
                 "1 1 0 -> 2; 2 0 1 -> 3 }\nf64 X[B, 3], Y[B, 3], W[B, P], Z[B, 3]\n"
                 "z: Z[b, c(q)] += g[q] * X[b, a(q)] * Y[b, b(q)] * W[b, p]\n");
    for (int order = 0; order <= 3; order++) {
        if (order > 0)
            grad_bed(&b, &(GradOptions){ 0 });
        CHECK_EQ(grad_count(&b), want[order]);
        CHECK_EQ(grad_distinct(&b), want[order]);
        CHECK_EQ(b.prog->nstmt, 1);
    }
    bed_close(&b);

    bed_open(&b, "program tp(n)\naxis B = n\nf64 X[B], Y[B], W[B], Z[B]\n"
                 "z: Z[b] = X[b] * Y[b] * W[b]\n");
    grad_bed(&b, &(GradOptions){ .wrt = (const char *[]){ "X" }, .nwrt = 1 });
    CHECK_EQ(grad_count(&b), 1);
    grad_bed(&b, &(GradOptions){ 0 }); /* d_Z, Y, W */
    CHECK_EQ(grad_count(&b), 3);
    grad_bed(&b, &(GradOptions){ .of = (const char *[]){ "d2_Y" }, .nof = 1 });
    CHECK_EQ(grad_count(&b), 4); /* by d2_d_X, d_Z, W; nothing by Y: d3(zero,Y) */
    CHECK(ir_find_buf(b.prog, "Y") == NULL);
    bed_close(&b);
}
