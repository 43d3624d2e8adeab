/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Loops over binders, outermost first, positions ascending, padding left out: the domain of a
 * statement, and every position of an axis when it is validated. */
#include "interp/interp_int.h"

#include <stdio.h>

/* What a message calls the instance: each variable with its value, or its position when the axis
 * names its coordinates. */
static void print_instance(Text *t, const Run *x)
{
    for (int d = 0; d < x->nbound; d++) {
        const Var *v = x->bind[d];
        int64_t p = x->pos[v->id];

        if (v->axis->coord[0].name == NULL)
            p = interp_coord(&x->axis[v->axis->id], 0, p, x->first[v->id]);
        text_f(t, "%s%s=%lld", d > 0 ? ", " : " ", v->name, (long long)p);
    }
    if (x->nbound > 0)
        text_char(t, ':');
}

_Noreturn void interp_fail(Run *x, const char *fmt, ...)
{
    Text t = { .arena = x->arena };
    char why[512];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(why, sizeof why, fmt, ap);
    va_end(ap);
    text_f(&t, "%s:", x->what);
    print_instance(&t, x);
    err_throw(x->arena->err, x->fault, "%s %s", t.s, why);
}

void interp_open(Run *x, const char *what, Status fault, Var *const *bind, int nbind)
{
    for (int d = 0; d < x->nbind; d++)
        x->depth_of[x->bind[d]->id] = 0;
    x->what = what;
    x->fault = fault;
    x->bind = bind;
    x->nbind = nbind;
    x->nbound = 0;
    x->nest++;
    x->epoch[0] = ++x->tick;
    for (int d = 0; d < nbind; d++) {
        if (!x->axis[bind[d]->axis->id].ready)
            interp_fail(x, "axis %s is not complete here; its last |= comes later",
                        bind[d]->axis->name);
        if (bind[d]->parent != NULL)
            interp_use(x, bind[d]->parent);
        x->depth_of[bind[d]->id] = d + 1;
    }
}

/* The position that a variable runs under; -1 when there is none, so that it runs over nothing. */
static int64_t parent_of(Run *x, const Var *v)
{
    if (v->parent == NULL)
        return 0;
    return interp_index(x, v->parent, &(Spot){ .axis = v->axis->parent, .below = v->name });
}

static void walk(Run *x, int d)
{
    const Var *v = x->bind[d];
    const AxisState *s = &x->axis[v->axis->id];
    int64_t q, last;

    x->nbound = d;
    q = parent_of(x, v);
    if (q < 0)
        return;
    x->first[v->id] = ir_span_first(&s->span, q);
    last = ir_span_first(&s->span, q + 1);
    for (int64_t p = x->first[v->id]; p < last; p++) {
        if (s->exists != NULL && !s->exists[p])
            continue;
        x->pos[v->id] = p;
        x->epoch[d + 1] = ++x->tick;
        x->nbound = d + 1;
        if (d + 1 < x->nbind)
            walk(x, d + 1);
        else
            x->body(x);
    }
}

void interp_nest(Run *x, void (*body)(Run *), void *job)
{
    x->body = body;
    x->job = job;
    if (x->nbind > 0)
        walk(x, 0);
    else
        body(x);
}
