/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * src/tune/bound.c: results that rounding explains are accepted, all others are not. */
#include "interp/interp.h"
#include "tune/tune.h"
#include "unit/ir_bed.h"

#include <math.h>

typedef struct Run {
    Bed b;
    Prog *p;
    Buf **bound;
    Env *env;
} Run;

static void open_run(Run *r, const char *text)
{
    bed_open(&r->b);
    bed_read(&r->b, text);
    CHECK_EQ(CATCH(&r->b.err, r->p = tune_bound(&r->b.arena, r->b.p, &r->bound)), ST_OK);
    CHECK(r->p != NULL);
    bed_round(&r->b, r->p);
    r->env = ir_env(&r->b.arena, r->p);
}

static void give(Run *r, const char *name, void *data, int64_t n, Type type)
{
    r->env->buf[ir_find_buf(r->p, name)->id] = (Array){ data, n, type };
}

static void run(Run *r, int64_t size)
{
    for (int i = 0; i < r->p->nsize; i++)
        r->env->size[i] = size;
    CHECK_EQ(CATCH(&r->b.err, interp_run(&r->b.arena, r->p, r->env)), ST_OK);
}

static const double *bound_of(const Run *r, const char *name)
{
    return r->env->buf[r->bound[ir_find_buf(r->p, name)->id]->id].data;
}

/* Whether a result that is off by `off` in element 1 of an f32 buffer is taken for right. */
static bool is_taken(Run *r, const char *name, double off)
{
    const Array *a = &r->env->buf[ir_find_buf(r->p, name)->id];
    float *copy = arena_copy(&r->b.arena, a->data, (size_t)a->n * sizeof *copy);
    TuneArray want = { name, T_f32, a->n, a->data }, got = { name, T_f32, a->n, copy };

    copy[1] = (float)(copy[1] + off);
    CHECK(off == 0 || memcmp(copy, a->data, (size_t)a->n * sizeof *copy) != 0);
    return tune_compare(&r->b.arena, &want, &got, false, bound_of(r, name)) == NULL;
}

/* (n + 4) u times the sum of |terms|, and the rounding of each product. */
TEST(a_sum_is_bounded_by_the_size_of_its_terms)
{
    Run r;
    float a[6] = { 3000, -3000, 0.5f, 1, 2, 3 }, x[3] = { 1, 1, 1 };
    double u = 0x1p-24, size = 6000.5;

    open_run(&r, "program p(n)\naxis I = 2, K = 3\nf32 A[I, K], X[K], Z[I]\n"
                 "z: Z[i] += A[i, k] * X[k]\n");
    give(&r, "A", a, 6, T_f32);
    give(&r, "X", x, 3, T_f32);
    run(&r, 3);
    CHECK_NEAR(bound_of(&r, "Z")[0], (7 * size + size + 0.5) * u, 1e-12);
    CHECK_NEAR(bound_of(&r, "Z")[1], (7 * 6 + 6 + 6) * u, 1e-12);
    bed_close(&r.b);
}

/* An element that cancels to 0 may come out as what its terms leave over, and as no more. */
TEST(what_cancels_is_held_against_its_terms)
{
    Run r;
    float a[4] = { 1, 2, 0.1f, -0.1f };

    open_run(&r, "program p(n)\naxis I = 2, K = 2\nf32 A[I, K], Z[I]\nz: Z[i] += A[i, k]\n");
    give(&r, "A", a, 4, T_f32);
    run(&r, 2);
    CHECK_NEAR(((float *)r.env->buf[ir_find_buf(r.p, "Z")->id].data)[1], 0, 0);
    CHECK(is_taken(&r, "Z", 0) && is_taken(&r, "Z", 5e-8) && is_taken(&r, "Z", -1e-8));
    CHECK(!is_taken(&r, "Z", 1e-6) && !is_taken(&r, "Z", 0.1));
    bed_close(&r.b);
}

/* Of softmax: the last bit of exp, and what it does to the quotient, but not a wrong element. */
TEST(the_last_bit_of_a_function_is_accepted)
{
    Run r;
    float s[4] = { 0.3f, -1.7f, 2.5f, 0.9f };
    float ulp;

    open_run(&r, "program p(n)\naxis I = n\nf32 S[I], P[I]\ntemp f32 M[], T[I], Z[]\n"
                 "m: M[] max= S[i]\nt: T[i] = exp(S[i] - stop(M[]))\n"
                 "z: Z[] += T[i]\np: P[i] = T[i] / Z[]\n");
    give(&r, "S", s, 4, T_f32);
    run(&r, 4);
    ulp = ((float *)r.env->buf[ir_find_buf(r.p, "P")->id].data)[1];
    ulp = nextafterf(ulp, 1) - ulp;
    CHECK(is_taken(&r, "P", ulp) && is_taken(&r, "P", -3.0 * (double)ulp));
    CHECK(!is_taken(&r, "P", 300.0 * (double)ulp) && !is_taken(&r, "P", 1e-3));
    bed_close(&r.b);
}

/* A comparison that errors may turn leaves both outcomes open; one that they cannot, none. */
TEST(a_close_comparison_counts_both_ways)
{
    Run r;
    float a[2] = { 1, 0.25f };

    /* the choice is between integers, which are exact only if it is */
    open_run(&r, "program p(n)\naxis I = 2\nf32 A[I], Z[I]\ntemp f32 T[I]\n"
                 "t: T[i] = A[i] * 0.1\n"
                 "z: Z[i] = select(T[i] > 0.1 * A[i], 5, 7)\n");
    give(&r, "A", a, 2, T_f32);
    run(&r, 2);
    CHECK(is_taken(&r, "Z", -2) && !is_taken(&r, "Z", -5)); /* twice the bound of 2 */
    bed_close(&r.b);
    open_run(&r, "program p(n)\naxis I = 2\nf32 A[I], Z[I]\ntemp f32 T[I]\n"
                 "t: T[i] = A[i] * 0.1\nz: Z[i] = select(T[i] > A[i], 5, 7)\n");
    give(&r, "A", a, 2, T_f32);
    run(&r, 2);
    CHECK(!is_taken(&r, "Z", -2));
    bed_close(&r.b);
}

TEST(what_is_recorded_or_built_has_no_bounds)
{
    Bed b;
    Buf **bound;

    bed_open(&b);
    bed_read(&b, "program p(n)\naxis I = n\nf32 A[I], M[]; i64 W[]\n"
                 "m: M[] max= A[i] at W[] = pos(i)\n");
    CHECK(tune_bound(&b.arena, b.p, &bound) == NULL);
    bed_close(&b);
}
