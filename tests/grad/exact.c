/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Polynomial programs on integers: the derivative along v is a rational combination of the values
 * at x + k v, |k| <= 5, exact up to degree 10, and both modes must give it bit for bit. */
#include "grad/grad_test.h"

#include <fenv.h>
#include <math.h>

enum { FAR = 5 };

/* FE_INEXACT tells of every rounding: then the numbers were too large for this test. */
static bool was_exact(void)
{
    return fetestexcept(FE_INEXACT | FE_OVERFLOW | FE_INVALID) == 0;
}

typedef struct Samples {
    const Env *at[2][FAR + 1]; /* at x + k v, x - k v */
} Samples;

/* sum c[k] (f(k) - f(-k)) / by; *exact: it is an integer. */
static double combine(const Samples *s, int buf, int64_t i, const int *c, int n, int by,
                      bool *exact)
{
    __int128 sum = 0;

    for (int k = 1; k <= n; k++)
        sum += (__int128)c[k - 1] * ((__int128)array_float(&s->at[0][k]->buf[buf], i) -
                                     (__int128)array_float(&s->at[1][k]->buf[buf], i));
    *exact = sum % by == 0 && sum / by < ((__int128)1 << 53) && sum / by > -((__int128)1 << 53);
    return (double)(int64_t)(sum / by);
}

/* The derivative of element i; false when its degree is too high to tell. */
static bool derivative(const Samples *s, int buf, int64_t i, double *out)
{
    static const int near[] = { 672, -168, 32, -3 }, far[] = { 2100, -600, 150, -25, 2 };
    bool a, b;
    double x = combine(s, buf, i, near, 4, 840, &a), y = combine(s, buf, i, far, 5, 2520, &b);

    *out = y;
    return a && b && x == y;
}

static bool check_buffer(Tester *t, const Dual *d, const Samples *s, const Buf *b)
{
    const Array *tangent = array_of(d->forward, d->jvp, d->t, b->name);
    double truth;

    if (tangent == NULL || tangent->n != d->env->buf[b->id].n)
        test_wrong(t, "%s%s is not there", d->t, b->name);
    for (int64_t i = 0; i < tangent->n; i++) {
        if (!derivative(s, b->id, i, &truth))
            return false;
        t->elements += truth != 0;
        if (array_float(tangent, i) != truth)
            test_wrong(t, "element %lld of %s%s is %.17g, but exactly it is %.17g", (long long)i,
                       d->t, b->name, array_float(tangent, i), truth);
    }
    return true;
}

bool check_exact(Tester *t, Dual *d)
{
    const Prog *p = d->s.prog;
    Samples s;
    bool exact = true;

    feclearexcept(FE_ALL_EXCEPT);
    dual_run(t, d, draw_small, false);
    for (int k = 1; k <= FAR && was_exact(); k++) {
        s.at[0][k] = sample_run(t, &d->s, d->v, k);
        s.at[1][k] = sample_run(t, &d->s, d->v, -k);
    }
    if (!was_exact())
        return false;
    for (int i = 0; i < p->nbuf && exact; i++)
        if (is_of(p->buf[i]))
            exact = check_buffer(t, d, &s, p->buf[i]);
    return exact;
}
