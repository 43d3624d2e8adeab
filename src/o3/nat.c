/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Square roots of rationals, rounded once.  A first guess comes from doubles; whether it is the
 * nearest one is decided by comparing squares of naturals, however good it was. */
#include "o3/o3_int.h"

#include <assert.h>
#include <math.h>
#include <string.h>

void nat_set(Nat *a, uint64_t v)
{
    a->n = 0;
    for (; v != 0; v >>= 32)
        a->limb[a->n++] = (uint32_t)v;
}

static void put_limb(Nat *a, int i, uint32_t v)
{
    if (i < NAT_LIMBS)
        a->limb[i] = v;
    if (v != 0 && i + 1 > a->n)
        a->n = i + 1;
}

/* Room is proven by the bounds on degrees and scales; see NAT_LIMBS. */
static void mul_limb(Nat *a, uint32_t v)
{
    uint64_t carry = 0;

    for (int i = 0; i < a->n; i++) {
        carry += (uint64_t)a->limb[i] * v;
        a->limb[i] = (uint32_t)carry;
        carry >>= 32;
    }
    put_limb(a, a->n, (uint32_t)carry);
    if (v == 0)
        a->n = 0;
}

static void add_shifted(Nat *a, const Nat *b, int limbs)
{
    uint64_t carry = 0;

    for (int i = a->n; i < limbs + b->n && i < NAT_LIMBS; i++)
        a->limb[i] = 0;
    for (int i = limbs; i < NAT_LIMBS && (i < limbs + b->n || carry != 0); i++) {
        carry += i < a->n || i < limbs + b->n ? a->limb[i] : 0;
        carry += i < limbs + b->n ? b->limb[i - limbs] : 0;
        put_limb(a, i, (uint32_t)carry);
        carry >>= 32;
    }
}

void nat_mul(Nat *a, uint64_t v)
{
    Nat high = *a;

    mul_limb(a, (uint32_t)v);
    if (v >> 32 == 0)
        return;
    mul_limb(&high, (uint32_t)(v >> 32));
    add_shifted(a, &high, 1);
}

static void shift(Nat *a, int bits)
{
    int limbs = bits / 32;

    mul_limb(a, (uint32_t)1 << bits % 32);
    if (a->n == 0 || a->n + limbs > NAT_LIMBS)
        return;
    memmove(a->limb + limbs, a->limb, (size_t)a->n * sizeof *a->limb);
    memset(a->limb, 0, (size_t)limbs * sizeof *a->limb);
    a->n += limbs;
}

static int compare(const Nat *a, const Nat *b)
{
    if (a->n != b->n)
        return a->n < b->n ? -1 : 1;
    for (int i = a->n - 1; i >= 0; i--)
        if (a->limb[i] != b->limb[i])
            return a->limb[i] < b->limb[i] ? -1 : 1;
    return 0;
}

/* The value is near f * 2^*e. */
static double approximate(const Nat *a, int *e)
{
    double f = 0;

    *e = 32 * (a->n > 3 ? a->n - 3 : 0);
    for (int i = a->n - 1; i >= 0 && i >= a->n - 3; i--)
        f = f * 0x1p32 + a->limb[i];
    return f;
}

void nat_mul_double(Nat *num, Nat *den, double a)
{
    int e;
    uint64_t m = (uint64_t)ldexp(frexp(a, &e), 53);

    assert(a >= 0);
    for (e -= 53; m != 0 && m % 2 == 0; e++)
        m /= 2;
    nat_mul(num, m);
    shift(e > 0 ? num : den, e > 0 ? e : -e);
}

/* The sign of num / den - (m / 2 * 2^e)^2. */
static int against(const Nat *num, const Nat *den, uint64_t m, int e)
{
    Nat left = *num, right = *den;
    int twice = 2 * e - 2;

    nat_mul(&right, m);
    nat_mul(&right, m);
    shift(twice > 0 ? &right : &left, twice > 0 ? twice : -twice);
    return compare(&left, &right);
}

double nat_root(const Nat *num, const Nat *den)
{
    int en, ed, e;
    double f, g;
    uint64_t m;

    if (num->n == 0)
        return 0;
    f = approximate(num, &en) / approximate(den, &ed);
    e = en - ed; /* a multiple of 32, so even */
    g = frexp(ldexp(sqrt(f), e / 2), &e);
    m = (uint64_t)ldexp(g, 53);
    e -= 53; /* the guess is m * 2^e, with m of 53 bits */
    if (m == (uint64_t)1 << 52 && against(num, den, 2 * m, e) < 0) {
        m *= 2; /* below a power of two doubles lie closer */
        e--;
    }
    while (against(num, den, 2 * m + 1, e) > 0)
        m++;
    while (against(num, den, 2 * m - 1, e) < 0)
        m--;
    return ldexp((double)m, e);
}

double o3_root(double num, double den)
{
    Nat a, b;

    nat_set(&a, 1);
    nat_set(&b, 1);
    nat_mul_double(&a, &b, num);
    nat_mul_double(&b, &a, den);
    return nat_root(&a, &b);
}
