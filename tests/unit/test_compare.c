/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The comparator judged by defects planted in a right answer: each must be found (G30). */
#include "unit/compare.h"
#include "unit/test.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { M = 3, N = 4, MN = M * N };

typedef struct Case { /* a right answer, and one to spoil */
    double want[MN], got[MN];
    Arr w, g;
} Case;

static void fill(Case *c)
{
    for (int i = 0; i < MN; i++)
        c->want[i] = c->got[i] = 0.25 * (i + 1) * (i % 2 ? -1 : 1);
    c->w = ARR2(ARR_F64, M, N, c->want);
    c->g = ARR2(ARR_F64, M, N, c->got);
}

/* Plants defect k and returns its name, or NULL when there are no more. */
static const char *plant(Case *c, int k)
{
    const double inf = (double)INFINITY, nan = (double)NAN;

    switch (k) {
    case 0: c->got[5] = nan; return "NaN";
    case 1: c->got[MN - 1] = nan; return "NaN at the end";
    case 2: c->want[5] = nan; return "NaN in the reference";
    case 3: c->got[0] = inf; return "Inf";
    case 4: c->got[0] = -inf; return "-Inf";
    case 5: c->want[1] = -(c->got[1] = inf); return "Inf for -Inf";
    case 6: c->g.shape[0] = M - 1; return "a row too few";
    case 7: c->w.shape[1] = N - 1; return "a column too many";
    case 8: c->g = ARR2(ARR_F64, N, M, c->got); return "transposed shape";
    case 9: c->g = ARR1(ARR_F64, MN, c->got); return "flat shape";
    case 10: c->g.type = ARR_I64; return "other type";
    case 11: c->g.data = NULL; return "no data";
    case 12: c->g.shape[0] = c->w.shape[0] = -1; return "negative extent";
    case 13: c->g.rank = c->w.rank = 9; return "rank over 8";
    case 14: memset(c->got, 0, sizeof c->got); return "all zero";
    case 15: c->got[7] = -c->got[7]; return "wrong sign";
    case 16: c->got[0] = c->want[1]; return "neighbour's value";
    case 17: memcpy(c->got, c->want + 1, (MN - 1) * sizeof(double)); return "shifted by one";
    case 18: c->got[MN - 1] = 0; return "last element not written";
    case 19: c->got[MN - 1] *= 1 + 1e-6; return "one off by 1e-6";
    default: return NULL;
    }
}

TEST(comparator_passes_the_right_answer)
{
    Case c;

    fill(&c);
    CHECK_ARR(cmp_bits(c.g, c.w));
    CHECK_ARR(cmp_abs(c.g, c.w, 0));
    CHECK_ARR(cmp_rel(c.g, c.w, 0));
}

TEST(comparator_finds_every_planted_defect_in_every_mode)
{
    const char *name;
    Case c;

    for (int k = 0; fill(&c), (name = plant(&c, k)) != NULL; k++) {
        Verdict v[3] = { cmp_bits(c.g, c.w), cmp_abs(c.g, c.w, 1e-9), cmp_rel(c.g, c.w, 1e-9) };

        for (int mode = 0; mode < 3; mode++)
            if (v[mode].ok || v[mode].why[0] == 0)
                test_fail(__FILE__, __LINE__, "mode %d passed: %s", mode, name);
    }
}

TEST(comparator_of_bits_finds_one_bit_in_any_place)
{
    for (int bit = 0; bit < MN * 64; bit++) {
        Case c;

        fill(&c);
        ((unsigned char *)c.got)[bit / 8] ^= (unsigned char)(1 << bit % 8);
        CHECK(!cmp_bits(c.g, c.w).ok);
    }
}

TEST(comparator_of_bits_tells_zero_from_minus_zero_and_keeps_nan)
{
    double a[] = { 0.0, (double)NAN }, b[] = { -0.0, (double)NAN };

    CHECK(!cmp_bits(ARR1(ARR_F64, 1, a), ARR1(ARR_F64, 1, b)).ok);
    CHECK(cmp_abs(ARR1(ARR_F64, 1, a), ARR1(ARR_F64, 1, b), 0).ok);
    CHECK(cmp_bits(ARR1(ARR_F64, 2, a), ARR1(ARR_F64, 2, a)).ok);
    CHECK(!cmp_abs(ARR1(ARR_F64, 2, a), ARR1(ARR_F64, 2, a), 1).ok);
}

TEST(comparator_bound_is_sharp)
{
    double want[] = { 1, -8 }, got[] = { 1.5, -8 }, nan = (double)NAN;
    Arr w = ARR1(ARR_F64, 2, want), g = ARR1(ARR_F64, 2, got);

    CHECK(cmp_abs(g, w, 0.5).ok);
    CHECK(cmp_abs(g, w, 0.5).worst == 0.5);
    CHECK(!cmp_abs(g, w, 0.5 - DBL_EPSILON).ok);
    CHECK(cmp_rel(g, w, 0.0625).ok);
    CHECK(!cmp_rel(g, w, 0.0625 - DBL_EPSILON).ok);
    CHECK(!cmp_abs(g, w, nan).ok);
    CHECK(!cmp_rel(g, w, nan).ok);
}

TEST(comparator_infinite_reference_allows_nothing_else)
{
    double want[] = { (double)INFINITY, 1 }, got[] = { (double)INFINITY, 2 };

    CHECK(!cmp_rel(ARR1(ARR_F64, 2, got), ARR1(ARR_F64, 2, want), 0.5).ok);
    CHECK(cmp_rel(ARR1(ARR_F64, 1, got), ARR1(ARR_F64, 1, want), 0.5).ok);
}

TEST(comparator_knows_f32_and_i64)
{
    float x[] = { 1, 2 }, y[] = { 1, 2 + 2 * FLT_EPSILON };
    int64_t a[] = { 1, INT64_MAX }, b[] = { 1, INT64_MAX - 1 };

    CHECK(cmp_bits(ARR1(ARR_F32, 2, x), ARR1(ARR_F32, 2, x)).ok);
    CHECK(!cmp_bits(ARR1(ARR_F32, 2, x), ARR1(ARR_F32, 2, y)).ok);
    CHECK(cmp_abs(ARR1(ARR_F32, 2, x), ARR1(ARR_F32, 2, y), 1e-6).ok);
    CHECK(!cmp_abs(ARR1(ARR_F32, 2, x), ARR1(ARR_F32, 2, y), 1e-8).ok);
    CHECK(cmp_bits(ARR1(ARR_I64, 2, a), ARR1(ARR_I64, 2, a)).ok);
    CHECK(!cmp_bits(ARR1(ARR_I64, 2, a), ARR1(ARR_I64, 2, b)).ok);
    CHECK(cmp_abs(ARR1(ARR_I64, 2, a), ARR1(ARR_I64, 2, a), 0).ok);
    CHECK(!cmp_abs(ARR1(ARR_I64, 2, a), ARR1(ARR_I64, 2, b), 0.5).ok);
}

TEST(comparator_empty_arrays_agree_when_their_shapes_do)
{
    CHECK(cmp_bits(ARR2(ARR_F64, 0, 3, NULL), ARR2(ARR_F64, 0, 3, NULL)).ok);
    CHECK(cmp_rel(ARR2(ARR_F64, 0, 3, NULL), ARR2(ARR_F64, 0, 3, NULL), 0).ok);
    CHECK(!cmp_bits(ARR2(ARR_F64, 0, 3, NULL), ARR2(ARR_F64, 3, 0, NULL)).ok);
}
