/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * src/interp: what the language promises where programs rarely look: types and rounding, NaN, ties,
 * misses, fills, laziness, built axes. */
#include "unit/interp_bed.h"

#include <math.h>
#include <stdio.h>

/* Opens a program over one axis I of n positions. */
static void open_n(Bed *b, const char *text, int64_t n)
{
    bed_open(b, text);
    bed_size(b, "n", n);
}

/* The value of one expression of X[0..2], all of one type, stored in f64. */
static double value(const char *type, const char *expr, double x0, double x1)
{
    char text[512];
    double v;
    Bed b;

    snprintf(text, sizeof text, "program p()\n%s X[2]\nf64 Y[1]\ny: Y[0] = %s\n", type, expr);
    bed_open(&b, text);
    if (strcmp(type, "f32") == 0)
        F32(&b, "X", (float)x0, (float)x1);
    else if (strcmp(type, "i64") == 0)
        I64(&b, "X", (int64_t)x0, (int64_t)x1);
    else
        F64(&b, "X", x0, x1);
    bed_run(&b);
    v = bed_f(&b, "Y", 0);
    bed_close(&b);
    return v;
}

TEST(operators_compute_in_the_wider_type)
{
    float third = 1.0f / 3.0f;

    CHECK_SAME(value("f32", "X[0] / X[1]", 1, 3), third);
    CHECK_SAME(value("f64", "X[0] / X[1]", 1, 3), 1.0 / 3.0);
    CHECK_SAME(value("f32", "X[0] + 0.1", 0, 0), 0.1f);    /* the literal is rounded */
    CHECK_SAME(value("f32", "X[0] + 1.0/3", 0, 0), third); /* once: after the division */
    CHECK_SAME(value("f32", "f64(X[0]) + 0.1", 0, 0), 0.1);
    CHECK_SAME(value("f64", "f32(X[0]) * X[1]", 0.1, 3), (double)0.1f * 3);
    CHECK_SAME(value("f32", "X[0] + 16777217", 0, 0), 16777216); /* the integer too */
    CHECK_SAME(value("f64", "X[0] + 16777217", 0, 0), 16777217);
    CHECK_SAME(value("i64", "X[0] / X[1]", -7, 2), -4);
    CHECK_SAME(value("i64", "X[0] % X[1]", -7, 2), 1);
    CHECK_SAME(value("i64", "X[0] % X[1]", 7, -2), -1);
    CHECK_SAME(value("i64", "X[0] * X[1] - 3 + -X[0]", 5, 6), 22);
    CHECK_SAME(value("i64", "select(X[0] < X[1], X[0], 0.5)", 5, 6), 5);
    CHECK_SAME(value("f32", "select(X[0] < 0.1, 1, 2)", 0.1, 6), 2); /* compared as f32: equal */
    CHECK_SAME(value("i64", "X[0] / 4.0", 1, 0), 0.25);
}

TEST(integer_functions_and_comparisons_are_exact)
{
    CHECK_SAME(value("i64", "abs(X[0]) + 10*abs(X[1])", -3, 4), 43);
    CHECK_SAME(value("i64", "relu(X[0]) + 10*relu(X[1])", -3, 4), 40);
    CHECK_SAME(value("i64", "step(X[0]) + 10*step(X[1]) + 100*step(0)", -3, 4), 10);
    CHECK_SAME(value("i64", "sign(X[0]) + 10*sign(X[1]) + 100*sign(0)", -3, 4), 9);
    CHECK_SAME(value("i64", "min(X[0], X[1]) + 10*max(X[0], X[1])", -3, 4), 37);
    CHECK_SAME(value("i64", "stop(X[0])", -3, 4), -3);
    CHECK_SAME(value("i64", "select(X[0] <= X[1] and X[0] != X[1], 1, 0)", 3, 4), 1);
    CHECK_SAME(value("i64", "select(X[0] >= X[1] or X[0] == X[1], 1, 0)", 3, 4), 0);
    CHECK_SAME(value("i64", "select(not X[0] > X[1], 1, 0)", 3, 4), 1);
    CHECK_SAME(value("f64", "select(X[0] >= X[1] or X[0] == X[1], 1, 0)", 3, NAN), 0);
    CHECK_SAME(value("f64", "select(X[0] <= X[1] or X[0] > X[1], 1, 0)", 3, NAN), 0);
    CHECK_SAME(value("f64", "select(X[0] != X[1], 1, 0)", 3, NAN), 1);
    CHECK_SAME(value("i64", "exp(X[0])", 2, 0), exp(2));
}

TEST(float_functions_round_once)
{
    static const struct {
        const char *call;
        double (*f)(double);
    } row[] = { { "exp(X[0])", exp }, { "log(X[0])", log }, { "sqrt(X[0])", sqrt },
                { "sin(X[0])", sin }, { "cos(X[0])", cos }, { "tanh(X[0])", tanh } };
    double x = 0.3f;

    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        CHECK_SAME(value("f32", row[i].call, x, 0), (float)row[i].f(x));
        CHECK_SAME(value("f64", row[i].call, x, 0), row[i].f(x));
    }
    CHECK_SAME(value("f32", "rsqrt(X[0])", x, 0), (float)(1 / sqrt(x)));
    CHECK_SAME(value("f32", "sigmoid(X[0])", x, 0), (float)(1 / (1 + exp(-x))));
    CHECK_SAME(value("f32", "silu(X[0])", x, 0), (float)(x * (1 / (1 + exp(-x)))));
    CHECK_SAME(value("f64", "-X[0]", 0, 0), -0.0);
}

TEST(nan_wins_in_max_and_min_and_ties_go_to_the_first)
{
    CHECK(isnan(value("f64", "max(X[0], X[1])", NAN, 1)));
    CHECK(isnan(value("f64", "max(X[0], X[1])", 1, NAN)));
    CHECK(isnan(value("f64", "min(X[0], X[1])", NAN, 1)));
    CHECK(isnan(value("f64", "min(X[0], X[1])", 1, NAN)));
    CHECK_SAME(value("f64", "max(X[0], X[1])", -0.0, 0.0), -0.0);
    CHECK_SAME(value("f64", "min(X[0], X[1])", 0.0, -0.0), 0.0);
    CHECK(isnan(value("f64", "relu(X[0])", NAN, 0)));
    CHECK_SAME(value("f64", "relu(X[0])", -0.0, 0), -0.0);
    CHECK_SAME(value("f64", "relu(X[0])", -1, 0), 0);
    CHECK_SAME(value("f64", "step(X[0]) + 10*step(X[1])", NAN, 1), 10);
    CHECK_SAME(value("f64", "sign(X[0]) + 10*sign(X[1])", NAN, -2), -10);
    CHECK_SAME(value("f64", "abs(X[0])", -INFINITY, 0), INFINITY);
}

TEST(max_keeps_the_first_winner_and_the_first_nan)
{
    Bed b;

    bed_open(&b, "program p(ng)\naxis G = ng, E(G) = seg\n"
                 "f64 X[E], M[G], L[G]\ni64 W[G], V[G], I[G]\ni32 J[G], T[G]\n"
                 "m: M[g] max= X[e] at W[g] = loc(e), V[g] = 10*pos(e)\n"
                 "l: L[g] min= X[e] at T[g] = loc(e)\n"
                 "i: I[g] max= pos(e)\nj: J[g] min= pos(e)\n");
    bed_size(&b, "ng", 5);
    I64(&b, "E.start", 0, 3, 7, 7, 9, 10);
    F64(&b, "X", 2, 3, 3, 1, NAN, 5, -NAN, -INFINITY, -INFINITY, INFINITY);
    bed_run(&b);
    CHECK_SAME(bed_f(&b, "M", 0), 3);
    CHECK_SAME(bed_f(&b, "M", 1), NAN);
    CHECK_SAME(bed_f(&b, "M", 2), -INFINITY);
    CHECK_SAME(bed_f(&b, "L", 2), INFINITY);
    CHECK_SAME(bed_f(&b, "L", 4), INFINITY);
    WANT_INT(&b, "W", 1, 1, -1, 0, 0);
    WANT_INT(&b, "V", 10, 40, -1, 70, 90);
    WANT_INT(&b, "T", 0, 1, -1, 0, 0);
    WANT_INT(&b, "I", 2, 6, INT64_MIN, 8, 9);
    WANT_INT(&b, "J", 0, 3, INT32_MAX, 7, 9);
    bed_close(&b);
}

TEST(elements_that_no_instance_reached_hold_the_fill)
{
    Bed b;

    open_n(&b,
           "program p(n)\naxis I = n\nf64 X[I], A[n] fill 5, B[n], C[n] fill -1, D[n] fill 2\n"
           "i32 J[n] fill -7, K[n]\ni64 L[n], M[n]\n"
           "a: A[2*i] = X[i] if i < 1\nb: B[i] += X[i] if i > 1\nc: C[i] max= X[i] if i > 1\n"
           "d: D[i] += X[i] if i > 1\n"
           "j: J[i] += 1 if i > 1\nk: K[i] max= i if i > 1\nl: L[i] min= i if i > 1\n"
           "m: M[i] = i if i > 1\n",
           3);
    F64(&b, "X", 1, 2, 3);
    bed_run(&b);
    WANT(&b, "A", 1, 5, 5);
    WANT(&b, "B", 0, 0, 3);
    WANT(&b, "C", -1, -1, 3);
    WANT(&b, "D", 2, 2, 3);
    WANT_INT(&b, "J", -7, -7, 1);
    WANT_INT(&b, "K", INT32_MIN, INT32_MIN, 2);
    WANT_INT(&b, "L", INT64_MAX, INT64_MAX, 2);
    WANT_INT(&b, "M", 0, 0, 2);
    bed_close(&b);
}

TEST(inout_starts_from_its_content)
{
    Bed b;

    open_n(&b,
           "program p(n)\naxis I = n\nf64 X[I]\ninout f64 A[I] fill 9, C[I], M[I]\n"
           "inout i32 J[I]\ninout f16 H[I]\ni64 W[I]\n"
           "a: A[i] += X[i] if i > 0\nc: C[i] = X[i] if i > 0\n"
           "m: M[i] max= X[i] at W[i] = i\nj: J[i] += 2\nh: H[i] += X[i]\n",
           3);
    F64(&b, "X", 1, 2, 3);
    F64(&b, "A", 10, 20, 30);
    F64(&b, "C", 10, 20, 30);
    F64(&b, "M", 10, 2, -5);
    I32(&b, "J", -2, 0, INT32_MAX - 2);
    BIND(&b, "H", T_f16, (uint16_t[]){ 0x3c00, 0xc000, 0 });
    bed_run(&b);
    WANT(&b, "A", 10, 22, 33);
    WANT(&b, "C", 10, 2, 3);
    WANT(&b, "M", 10, 2, 3);
    WANT_INT(&b, "W", -1, -1, 2);
    WANT_INT(&b, "J", 0, 2, INT32_MAX);
    WANT(&b, "H", 2, 0, 3);
    bed_close(&b);
}

/* 2048 + 1 is 2048 in f16 and 256 + 1 is 256 in bf16: summed there, the ones would be lost. */
TEST(half_precision_is_rounded_once_when_the_group_is_complete)
{
    Bed b;

    open_n(&b,
           "program p(n)\naxis I = n\nf16 H[], G[I]\nbf16 B[]\nf32 S[], X[I]\n"
           "h0: H[] += 2048\nb0: B[] += 256\nh1: for i: H[] += 1\nb1: for i: B[] += 1\n"
           "g: G[i] = X[i]\ns: S[] += H[] + G[i]\n",
           4);
    F32(&b, "X", 0.1f, 1e6f, -1e-8f, 1);
    bed_run(&b);
    WANT(&b, "H", 2052);
    WANT(&b, "B", 260);
    CHECK_SAME(bed_f(&b, "G", 0), num_f16(num_to_f16(0.1)));
    CHECK_SAME(bed_f(&b, "G", 1), INFINITY);
    CHECK_SAME(bed_f(&b, "G", 2), -0.0);
    CHECK_SAME(bed_f(&b, "S", 0), INFINITY);
    bed_close(&b);
}

TEST(sums_accumulate_in_their_own_type_in_the_order_of_the_domain)
{
    Bed b;

    open_n(&b,
           "program p(n)\naxis I = n\nf64 X[I], D[]\nf32 S[]\ni32 J[]\n"
           "s: S[] += X[i]\nd: D[] += f32(X[i])\nj: J[] += 2000000000 - 5000000000*(i/2)\n",
           3);
    F64(&b, "X", 1e8, 1, -1e8);
    bed_run(&b);
    WANT(&b, "S", 0); /* 1e8 + 1 is 1e8 in f32 */
    WANT(&b, "D", 1);
    WANT_INT(&b, "J", 1000000000); /* although the sum left i32 on the way */
    bed_close(&b);
}

/* All of the first assign's instances come before the second's: (1e16 + 1 + 1) - 1e16, in f64. */
TEST(assigns_of_one_group_that_share_an_output_run_one_after_the_other)
{
    Bed b;

    open_n(&b,
           "program p(n)\naxis I = n\nf64 X[I], S[]\n"
           "for i:\n    let t = X[i] * 2\n    a: S[] += t\n    b: S[] += -(0.5 * t)\n",
           3);
    F64(&b, "X", 5e15, 0.5, 0.5);
    bed_run(&b);
    WANT(&b, "S", ((1e16 + 1 + 1) - 5e15) - 0.5 - 0.5);
    bed_close(&b);
}

TEST(only_what_is_asked_for_is_evaluated)
{
    Bed b;

    open_n(&b,
           "program p(n)\naxis I = n\nf64 X[I], A[I], B[I]\ni64 D[I], C[I]\n"
           "a: A[i] = select(i > 0, X[i - 1], -1)\n"
           "b: B[i] = X[i + 1] if i < n - 1\n"
           "c: C[i] = select(D[i] != 0 and 12 / D[i] > 3 or D[i] == 0, 1, 2)\n",
           3);
    F64(&b, "X", 1, 2, 3);
    I64(&b, "D", 0, 3, 4);
    bed_run(&b);
    WANT(&b, "A", -1, 1, 2);
    WANT(&b, "B", 2, 3, 0);
    WANT_INT(&b, "C", 1, 1, 2);
    bed_close(&b);
}

TEST(a_read_that_misses_gives_the_fill)
{
    Bed b;

    open_n(&b,
           "program p(n)\naxis I = n, J = compressed(I, n) unique\n"
           "axis L = compressed(I, n) sorted unique\n"
           "f64 A[I, J] fill 0.1, Y[I, n], Z[I, n]\nf32 C[I, J] fill 0.1\nf16 H[I, J] fill 0.1\n"
           "i32 K[I, L] fill 4\nf64 T[I, n]\n"
           "y: for i, k in n: Y[i, k] = A[i, k] + H[i, k]\nz: for i, k in n: Z[i, k] = C[i, k]\n"
           "t: for i, k in n: T[i, k] = select(stored(K[i, k]), K[i, k], -1) + 10*K[i, k]\n",
           3);
    I64(&b, "J.start", 0, 2, 2, 3);
    I64(&b, "J.coord", 2, 0, 1); /* unsorted */
    I64(&b, "L.start", 0, 2, 2, 3);
    I64(&b, "L.coord", 0, 2, 1);
    F64(&b, "A", 5, 6, 7);
    F32(&b, "C", 5, 6, 7);
    BIND(&b, "H", T_f16, (uint16_t[]){ 0, 0, 0 });
    I32(&b, "K", 1, 2, 3);
    bed_run(&b);
    {
        double h = num_f16(num_to_f16(0.1)), m = 0.1 + h, c = 0.1f;

        WANT(&b, "Y", 6, m, 5, m, m, m, m, 7, m);
        WANT(&b, "Z", 6, c, 5, c, c, c, c, 7, c);
    }
    WANT(&b, "T", 11, 39, 22, 39, 39, 39, 39, 33, 39);
    bed_close(&b);
}

/* Searches by several coordinates, on sorted and unsorted axes, and past padding. */
TEST(tuples_are_found_by_all_their_coordinates)
{
    static const char *const flags[] = { "unique", "sorted unique", "padded unique",
                                         "sorted padded unique" };

    for (int t = 0; t < 4; t++) {
        char text[512];
        Bed b;

        snprintf(text, sizeof text,
                 "program p(nnz, m, n)\naxis E = nnz : i < m, j < n %s\n"
                 "f64 A[E] fill -1, Y[m, n]\ny: for r in m, c in n: Y[r, c] = A[(r, c)]\n",
                 flags[t]);
        bed_open(&b, text);
        bed_size(&b, "nnz", t < 2 ? 4 : 6);
        bed_size(&b, "m", 2);
        bed_size(&b, "n", 3);
        if (t % 2 == 0) {
            I64(&b, "E.i", 1, 0, 1, 0, 2, 0);
            I64(&b, "E.j", 2, 1, 0, 0, 0, -1);
        } else {
            I64(&b, "E.i", 0, 0, 1, 1, 2, 0);
            I64(&b, "E.j", 0, 1, 0, 2, 0, -1);
        }
        bed_array(&b, "E.i")->n = bed_array(&b, "E.j")->n = t < 2 ? 4 : 6;
        F64(&b, "A", 10, 11, 12, 13, NAN, NAN);
        bed_array(&b, "A")->n = t < 2 ? 4 : 6;
        bed_run(&b);
        if (t % 2 == 0)
            WANT(&b, "Y", 13, 11, -1, 12, -1, 10);
        else
            WANT(&b, "Y", 10, 11, -1, 12, -1, 13);
        bed_close(&b);
    }
}

/* What hangs below padding is not there either; @ may not name it. */
TEST(padded_positions_do_not_exist_for_anyone)
{
    Bed b;

    open_n(&b,
           "program p(n)\naxis I = n, L(I) = 2 : j < n padded, C(L) = 2 : h < 9\n"
           "axis P = 4 : d = ident < n padded\n"
           "f64 A[C], S[], T[], V[P] fill 8, R[4]\ni64 N[], pa[1]\n"
           "s: S[] += A[c]\nn: for i, l, c: N[] += 1\nr: for q in 4: R[q] = V[q]\n"
           "t: T[] += A[@pa[0]]\n",
           2);
    I64(&b, "L.j", 1, 7, -1, 0);
    I64(&b, "C.h", 0, 1, 99, 99, -5, 99, 2, 3);
    F64(&b, "A", 1, 2, NAN, NAN, NAN, NAN, 4, 8);
    F64(&b, "V", 3, 4, NAN, NAN);
    I64(&b, "pa", 7);
    bed_run(&b);
    WANT(&b, "S", 15);
    WANT(&b, "T", 8);
    WANT(&b, "R", 3, 4, 8, 8);
    WANT_INT(&b, "N", 4);
    I64(&b, "pa", 3);
    bed_fails(&b, ST_RUN, "t: position 3 of A's slot 1 is padding");
    I64(&b, "pa", 8);
    bed_fails(&b, ST_RUN, "t: position 8 of A's slot 1 is outside 0..8");
    bed_close(&b);
}

TEST(positions_tell_their_ancestors)
{
    Bed b;

    bed_open(&b, "program p(n, ne)\naxis I = n, E(I) = seg, F(I) = seg, S = 2, M(S) = {1, 3}\n"
                 "f64 A[I, E, F], B[I, 2, E], C[S, 2, M], Y[ne], Z[ne], V[4]\ni64 q[ne]\n"
                 "y: for k in ne: Y[k] = A[_, @k, @q[k]]\n"
                 "z: for k in ne: Z[k] = B[_, 1, @k]\n"
                 "v: for k in 4: V[k] = C[_, 1, @k]\n");
    bed_size(&b, "n", 4);
    bed_size(&b, "ne", 3);
    I64(&b, "E.start", 0, 2, 2, 3, 3);
    I64(&b, "F.start", 0, 1, 3, 5, 5);
    F64(&b, "A", 1, 2, 3, 4);
    F64(&b, "B", 1, 2, 3, 4, 5, 6);
    F64(&b, "C", 1, 2, 3, 4, 5, 6, 7, 8);
    I64(&b, "q", 0, 0, 4);
    bed_run(&b);
    WANT(&b, "Y", 1, 2, 4);
    WANT(&b, "Z", 3, 4, 6);
    WANT(&b, "V", 2, 6, 7, 8);
    I64(&b, "q", 0, 0, 0);
    bed_fails(&b, ST_RUN, "y: k=2: A: position 0 of F is under position 0 of I, not 2");
    bed_close(&b);
}

/* E runs under rows given by value: found on J (an axis with coordinates), or missed. */
TEST(a_foreign_parent_that_is_missed_gives_an_empty_range)
{
    Bed b;

    bed_open(&b, "program p(n, nj, m)\naxis I = n, J = nj : load < m unique, F(J) = seg\n"
                 "f64 B[F], C[J, F], Y[I], Z[I]\ni64 q[I], pa[I]\n"
                 "y: for i, f in F(q[i]): Y[i] += B[f]\n"
                 "z: for i, f in F(@pa[i]): Z[i] += B[f] * C[f]\n");
    bed_size(&b, "n", 3);
    bed_size(&b, "nj", 2);
    bed_size(&b, "m", 9);
    I64(&b, "J.coord", 8, 3);
    I64(&b, "F.start", 0, 1, 3);
    F64(&b, "B", 1, 2, 4);
    F64(&b, "C", 1, 10, 100);
    I64(&b, "q", 3, 5, 8);
    I64(&b, "pa", 1, 0, 1);
    bed_run(&b);
    WANT(&b, "Y", 6, 0, 1);
    WANT(&b, "Z", 420, 1, 420);
    I64(&b, "pa", 1, 2, 1);
    bed_fails(&b, ST_RUN, "z: i=1: position 2 of J above f is outside 0..2");
    bed_close(&b);
}

TEST(an_empty_domain_and_empty_sizes_give_the_identity)
{
    Bed b;

    open_n(&b,
           "program p(n)\naxis I = n, E(I) = seg : j < n\nf64 X[E], Y[I], S[], M[]\n"
           "y: Y[i] += X[e]\ns: S[] += X[e]\nm: M[] min= Y[i]\n",
           0);
    I64(&b, "E.start", 0);
    bed_run(&b); /* E.j and X have no elements: nothing need be given */
    CHECK_EQ(bed_array(&b, "Y")->n, 0);
    WANT(&b, "S", 0);
    WANT(&b, "M", INFINITY);
    bed_close(&b);
}

TEST(constant_buffers_have_their_own_type)
{
    Bed b;

    bed_open(&b, "program p()\naxis I = 2\nconst f32 A[I] = {0.1, 0.2}\nconst i32 J[I] = {-1, 7}\n"
                 "const f16 H[I] = {0.1, 65520}\naxis Q = rows a -> c { 1 -> 0.1, 0 -> 0.2 }\n"
                 "f64 X[I], Y[I], Z[I], W[I]\n"
                 "x: X[i] = A[i]\ny: Y[i] = H[i]\nz: Z[i] = J[i]\nw: W[a(q)] = c[q]\n");
    bed_run(&b);
    WANT(&b, "X", 0.1f, 0.2f);
    WANT(&b, "Y", num_f16(num_to_f16(0.1)), INFINITY);
    WANT(&b, "Z", -1, 7);
    WANT(&b, "W", 0.2, 0.1);
    bed_close(&b);
}

TEST(sizes_counts_and_positions_are_values)
{
    Bed b;

    open_n(&b,
           "program p(n)\naxis I = n, E(I) = seg : j < n\ni64 A[E], B[E], C[], D[E]\n"
           "a: A[e] = pos(e)\nb: B[e] = 10*loc(e) + i\nc: C[] = size(E)*n\nd: D[e] = j(e)\n",
           3);
    I32(&b, "E.start", 0, 2, 2, 4);
    I32(&b, "E.j", 2, 1, 0, 0);
    bed_run(&b);
    WANT_INT(&b, "A", 0, 1, 2, 3);
    WANT_INT(&b, "B", 0, 10, 2, 12);
    WANT_INT(&b, "C", 12);
    WANT_INT(&b, "D", 2, 1, 0, 0);
    bed_close(&b);
}

TEST(built_axes_take_tuples_roots_and_children)
{
    Bed b;

    open_n(&b,
           "program p(n)\naxis I = n, E(I) = seg : j < n\n"
           "axis U = built : a < n, b < n, V(U) = 2, W(I) = built : load < 2*n\n"
           "f64 X[E], Y[U], Z[V], T[I, W]\n"
           "u: U |= (j(e), i)\nw: W(j(e)) |= i + loc(e) if loc(e) < 1\n"
           "y: Y[(j(e), i)] += X[e]\nz: Z[v] = 10*a(u) + loc(v)\n"
           "t: T[j(e), i + loc(e)] += X[e] if loc(e) < 1\n",
           3);
    I64(&b, "E.start", 0, 2, 4, 7);
    I64(&b, "E.j", 2, 1, 0, 0, 2, 2, 1);
    F64(&b, "X", 1, 2, 4, 8, 16, 32, 64);
    bed_run(&b);
    WANT_INT(&b, "U.start", 0, 5);
    WANT_INT(&b, "U.a", 0, 1, 1, 2, 2);
    WANT_INT(&b, "U.b", 1, 0, 2, 0, 2);
    WANT(&b, "Y", 12, 2, 64, 1, 48);
    WANT(&b, "Z", 0, 1, 10, 11, 10, 11, 20, 21, 20, 21);
    WANT_INT(&b, "W.start", 0, 1, 1, 3);
    WANT_INT(&b, "W.coord", 1, 0, 2);
    WANT(&b, "T", 4, 1, 16);
    bed_close(&b);
}

/* Many equal insertions must not cost memory, nor may order matter. */
TEST(insertions_are_sorted_and_made_unique)
{
    Bed b;

    open_n(&b,
           "program p(n)\naxis I = n, K = 100\naxis U(I) = built : load < n*n\n"
           "u: for i, k: U((i*7) % n) |= (k*k + 13*i) % 17 + i\n",
           40);
    bed_run(&b);
    for (int q = 0; q < 40; q++)
        for (int64_t p = bed_i(&b, "U.start", q); p + 1 < bed_i(&b, "U.start", q + 1); p++)
            CHECK(bed_i(&b, "U.coord", p) < bed_i(&b, "U.coord", p + 1));
    for (int i = 0; i < 40; i++) {
        int q = i * 7 % 40, n = 0;

        for (int c = 0; c < 1600; c++) {
            bool there = false;

            for (int k = 0; k < 100; k++)
                there = there || (k * k + 13 * i) % 17 + i == c;
            if (there)
                CHECK_EQ(bed_i(&b, "U.coord", bed_i(&b, "U.start", q) + n++), c);
        }
        CHECK_EQ(bed_i(&b, "U.start", q + 1) - bed_i(&b, "U.start", q), n);
    }
    bed_close(&b);
}

TEST(arrays_that_are_given_are_filled)
{
    Bed b;
    double out[2] = { NAN, NAN };
    int64_t start[3] = { 9, 9, 9 };

    open_n(&b,
           "program p(n)\naxis I = n, U(I) = built : load < n\nf64 X[I], Y[I]\n"
           "y: Y[i] += X[i]\nu: U(i) |= 0 if i > 0\n",
           2);
    F64(&b, "X", 3, 4);
    *bed_array(&b, "Y") = (Array){ out, 2, T_f64 };
    *bed_array(&b, "U.start") = (Array){ start, 3, T_i64 };
    bed_run(&b);
    bed_run(&b);
    CHECK_SAME(out[0], 3);
    CHECK_SAME(out[1], 4);
    CHECK_EQ(start[0], 0);
    CHECK_EQ(start[2], 1);
    *bed_array(&b, "U.start") = (Array){ start, 2, T_i64 };
    bed_fails(&b, ST_BIND, "U.start is 3 elements of i64, but the given array is 2 of i64");
    *bed_array(&b, "U.start") = (Array){ 0 };
    *bed_array(&b, "U.coord") = (Array){ start, 1, T_i32 };
    bed_fails(&b, ST_BIND, "U.coord is 1 elements of i64, but the given array is 1 of i32");
    *bed_array(&b, "Y") = (Array){ out, 2, T_f32 };
    bed_fails(&b, ST_BIND, "Y is 2 elements of f64, but the given array is 2 of f32");
    bed_close(&b);
}

/* 2^60 as a tree, 60 nodes as they are shared. */
TEST(a_shared_expression_is_evaluated_once)
{
    Text t = { 0 };
    Arena arena;
    Err err = { 0 };
    Bed b;

    arena_init(&arena, &os_libc, &err);
    t.arena = &arena;
    text_str(&t, "program p(n)\naxis I = n\nf64 X[I], Y[I], S[]\nfor i:\n    let t0 = X[i]\n");
    for (int k = 1; k <= 60; k++)
        text_f(&t, "    let t%d = t%d + t%d\n", k, k - 1, k - 1);
    text_str(&t, "    y: Y[i] = t60\ns: S[] += Y[i]\n");
    open_n(&b, t.s, 2);
    F64(&b, "X", 1, 3);
    bed_run(&b);
    WANT(&b, "Y", 0x1p60, 3 * 0x1p60);
    bed_close(&b);
    arena_free(&arena);
}
