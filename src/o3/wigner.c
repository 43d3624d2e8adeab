/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Wigner 3j symbols in the real basis.  The complex symbol is, by Racah's formula,
 *     S * sqrt(prod (li + mi)! (li - mi)! / ((J + 1)! a! b! c!)),
 *     S = sum_k (-1)^k binomial(a, k) binomial(b, l1 - m1 - k) binomial(c, l2 + m2 - k)
 * with J = l1 + l2 + l3, a = J - 2 l3, b = J - 2 l2, c = J - 2 l1.  A real component m mixes the
 * complex ones m and -m with phases of magnitude 1/sqrt(2).  Of the sign choices of a real triple
 * at most two meet m3 = m1 + m2, and those are mirror images with symbols of equal magnitude: so a
 * real symbol, too, is one square root of a rational. */
#include "o3/o3_int.h"

#include <stdlib.h>

const O3Scale o3_unscaled = { { 1, 1, 1, 1 }, 1 };

enum { MAX_J = 3 * O3_MAX_L };
static const int prime[] = { 2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47 };
enum { NPRIME = sizeof prime / sizeof *prime };
_Static_assert(MAX_J + 1 < 53, "the primes go as far as the largest factorial");

/* The room of a symbol of the largest degree: numerator and denominator are products of these
 * factorials at worst, then come four scales, a denominator, and the square of a guess. */
_Static_assert(32 * NAT_LIMBS > 6 * 118 + 2 * MAX_J + 5 * (53 + 2 * 60) + 2 * 55 + 64, "room");

typedef struct Triple {
    int l[3];
    int a, b, c, sum;
} Triple;

static int64_t binomial(int n, int k)
{
    int64_t r = 1;

    if (k < 0 || k > n)
        return 0;
    for (int i = 1; i <= k; i++)
        r = r * (n - k + i) / i;
    return r;
}

/* At most 2^J in magnitude. */
static int64_t racah(const Triple *t, int m1, int m2)
{
    int64_t s = 0;

    for (int k = 0; k <= t->a; k++) {
        int64_t term = binomial(t->a, k) * binomial(t->b, t->l[0] - m1 - k);

        if (term != 0)
            term *= binomial(t->c, t->l[1] + m2 - k);
        s += k % 2 == 0 ? term : -term;
    }
    return s;
}

/* The exponent of a prime in n!. */
static int in_factorial(int n, int p)
{
    int e = 0;

    while ((n /= p) > 0)
        e += n;
    return e;
}

/* sqrt(scale * factor / 2^halves) * |S| * sqrt(of the factorials), rounded once. */
static double magnitude(const Triple *t, const int m[3], int64_t s, int halves,
                        const O3Scale *scale)
{
    Nat num, den;

    nat_set(&num, (uint64_t)llabs(s));
    nat_mul(&num, (uint64_t)llabs(s));
    nat_set(&den, 1);
    for (int i = 0; i < NPRIME && prime[i] <= t->sum + 1; i++) {
        int p = prime[i], e = i == 0 ? -halves : 0;

        for (int k = 0; k < 3; k++)
            e += in_factorial(t->l[k] + m[k], p) + in_factorial(t->l[k] - m[k], p);
        e -= in_factorial(t->sum + 1, p) + in_factorial(t->a, p) + in_factorial(t->b, p) +
             in_factorial(t->c, p);
        for (; e != 0; e += e > 0 ? -1 : 1)
            nat_mul(e > 0 ? &num : &den, (uint64_t)p);
    }
    for (int i = 0; i < O3_SCALES; i++)
        if (scale->num[i] != 1)
            nat_mul_double(&num, &den, scale->num[i]);
    if (scale->den != 1)
        nat_mul_double(&den, &num, scale->den);
    return nat_root(&num, &den);
}

/* The power of i of the phase by which complex component m enters real component r, |m| = |r|,
 * leaving out the factor (-i)^l and the magnitude. */
static int phase(int m, int r)
{
    int sign = m > 0 && m % 2 != 0 ? 2 : 0; /* (-1)^m */

    if (r >= 0)
        return sign;
    return m > 0 ? sign + 1 : 3; /* i (-1)^m, and -i */
}

/* The symbol of real components r: its sum over complex components of phases, signs apart from
 * magnitude.  Gives one complex triple that takes part, and what multiplies its magnitude. */
static int mix(const Triple *t, const int r[3], int m[3], int64_t *s)
{
    static const int real_part[4] = { 1, 0, -1, 0 };
    int total = 0;

    for (int k = 0; k < 4; k++) {
        int m1 = k & 1 ? -r[0] : r[0], m2 = k & 2 ? -r[1] : r[1], m3 = m1 + m2;
        int64_t v;
        int turn;

        if (abs(m3) != abs(r[2]) || (k & 1 && r[0] == 0) || (k & 2 && r[1] == 0))
            continue;
        v = racah(t, m1, m2);
        /* (-i)^(l1 + l2) and, conjugate, i^l3; the third phase is conjugate too */
        turn = phase(m1, r[0]) + phase(m2, r[1]) + 4 - phase(m3, r[2]);
        turn += 3 * (t->l[0] + t->l[1]) + t->l[2];
        total += real_part[turn % 4] * (v > 0 ? 1 : v < 0 ? -1 : 0);
        if (v != 0) {
            m[0] = m1;
            m[1] = m2;
            m[2] = m3;
            *s = v;
        }
    }
    return total;
}

/* 0 when the coefficient is 0. */
static double coefficient(const Triple *t, const int r[3], const O3Scale *scale)
{
    int m[3] = { 0 }, total, halves = 0;
    int64_t s = 0;
    double v;

    total = mix(t, r, m, &s);
    if (total == 0)
        return 0;
    for (int k = 0; k < 3; k++)
        halves += r[k] != 0;
    halves -= abs(total) == 2 ? 2 : 0;
    v = magnitude(t, m, s, halves, scale);
    return total > 0 ? v : -v;
}

/* e3nn 0.4 makes the middle component of a symbol of ascending degrees positive, or, where that is
 * 0, the first that is not; other orders of degrees follow by the symmetry of the symbols.  mix
 * gives the sign. */
static bool turned(const Triple *t)
{
    Triple up = *t;
    int l[3] = { t->l[0], t->l[1], t->l[2] }, m[3], r[3] = { 0 };
    int64_t s;
    int sign;

    for (int i = 0; i < 2; i++)
        for (int k = 0; k < 2 - i; k++)
            if (l[k] > l[k + 1]) {
                int other = l[k];

                l[k] = l[k + 1];
                l[k + 1] = other;
            }
    up = (Triple){
        { l[0], l[1], l[2] }, l[0] + l[1] - l[2], l[0] - l[1] + l[2], l[1] + l[2] - l[0], t->sum
    };
    sign = mix(&up, r, m, &s);
    for (r[0] = -l[0]; sign == 0 && r[0] <= l[0]; r[0]++)
        for (r[1] = -l[1]; sign == 0 && r[1] <= l[1]; r[1]++)
            for (r[2] = -l[2]; sign == 0 && r[2] <= l[2]; r[2]++)
                sign = mix(&up, r, m, &s);
    return sign < 0;
}

static Triple triple_of(Arena *arena, int l1, int l2, int l3)
{
    Triple t = { { l1, l2, l3 }, l1 + l2 - l3, l1 - l2 + l3, l2 + l3 - l1, l1 + l2 + l3 };

    for (int k = 0; k < 3; k++)
        if (t.l[k] < 0 || t.l[k] > O3_MAX_L)
            err_throw(arena->err, ST_ARG, "no 3j symbol of degree %d: degrees go from 0 to %d",
                      t.l[k], O3_MAX_L);
    if (t.a < 0 || t.b < 0 || t.c < 0)
        err_throw(arena->err, ST_ARG,
                  "no 3j symbol of %d %d %d: each degree is at most the sum of the others", l1, l2,
                  l3);
    return t;
}

O3Terms o3_3j(Arena *arena, int l1, int l2, int l3, O3Signs signs, const O3Scale *scale)
{
    Triple t = triple_of(arena, l1, l2, l3);
    bool turn = signs == O3_SIGNS_04 && turned(&t);
    O3Term *at = NULL;
    int n = 0, cap = 0, r[3];

    for (r[0] = -l1; r[0] <= l1; r[0]++)
        for (r[1] = -l2; r[1] <= l2; r[1]++)
            for (r[2] = -l3; r[2] <= l3; r[2]++) {
                double c = coefficient(&t, r, scale);

                if (c == 0)
                    continue;
                at = arena_grow(arena, at, n, &cap, sizeof *at);
                at[n++] = (O3Term){ r[0] + l1, r[1] + l2, r[2] + l3, turn ? -c : c };
            }
    return (O3Terms){ n, at };
}
