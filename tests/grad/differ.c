/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * J v against central differences, element by element of the outputs, with two steps of Richardson
 * extrapolation.  Where these do not converge there is a kink or a tie within the step. */
#include "grad/grad_test.h"

#include <math.h>

enum { STEPS = 3 };

typedef struct Outputs { /* of one element at x + h v and x - h v, h halved each time */
    const Env *plus[STEPS], *minus[STEPS];
    double h;
} Outputs;

static double difference(const Outputs *o, int buf, int64_t k, int step)
{
    return (array_float(&o->plus[step]->buf[buf], k) - array_float(&o->minus[step]->buf[buf], k)) /
           (2 * ldexp(o->h, -step));
}

/* The derivative of an element; *doubt: how much the last extrapolation changed it. */
static double extrapolate(const Outputs *o, int buf, int64_t k, double *doubt)
{
    double d0 = difference(o, buf, k, 0), d1 = difference(o, buf, k, 1);
    double d2 = difference(o, buf, k, 2);
    double r0 = (4 * d1 - d0) / 3, r1 = (4 * d2 - d1) / 3, r = (16 * r1 - r0) / 15;

    *doubt = fabs(r - r1);
    return r;
}

/* How large the values are that the element is a sum of: what its rounding errors grow with. */
static double size_of(const Array *a)
{
    double most = 0;

    for (int64_t k = 0; k < a->n; k++)
        most = fmax(most, fabs(array_float(a, k)));
    return most;
}

static bool check_buffer(Tester *t, const Dual *d, const Outputs *o, const Buf *b)
{
    const Array *tangent = array_of(d->forward, d->jvp, d->t, b->name);
    double size = size_of(&d->env->buf[b->id]);
    bool smooth = true;

    if (tangent == NULL || tangent->n != d->env->buf[b->id].n)
        test_wrong(t, "%s%s is not there", d->t, b->name);
    for (int64_t k = 0; k < tangent->n; k++) {
        double found = array_float(tangent, k), doubt;
        double truth = extrapolate(o, b->id, k, &doubt);
        double tol = 1e-7 * (fabs(truth) + fabs(found)) + 1e-8 * size;

        t->elements += found != 0;
        if (!(doubt <= tol / 8)) {
            t->kinks++;
            smooth = false;
        } else if (!(fabs(found - truth) <= tol)) {
            test_wrong(t, "element %lld of %s%s is %.17g, but differences give %.17g", (long long)k,
                       d->t, b->name, found, truth);
        }
    }
    return smooth;
}

bool check_differences(Tester *t, Dual *d)
{
    Outputs o = { .h = 0x1p-10 };
    const Prog *p = d->s.prog;
    bool smooth = true;

    for (int i = 0; i < STEPS; i++) {
        o.plus[i] = sample_run(t, &d->s, d->v, ldexp(o.h, -i));
        o.minus[i] = sample_run(t, &d->s, d->v, -ldexp(o.h, -i));
    }
    for (int i = 0; i < p->nbuf; i++)
        if (is_of(p->buf[i]))
            smooth = check_buffer(t, d, &o, p->buf[i]) && smooth;
    return smooth;
}
