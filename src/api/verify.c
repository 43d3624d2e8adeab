/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * A quick look at structure: plain loops that prove the usual axes right.  What they do not know or
 * find wrong is for interp_check, which knows everything and has the words, but takes its time. */
#include "api/api_int.h"

static inline int64_t get(const Array *a, int64_t i)
{
    return a->type == T_i64 ? ((const int64_t *)a->data)[i] : ((const int32_t *)a->data)[i];
}

static bool starts_rise(const Span *s)
{
    bool bad = get(&s->start, 0) != 0;

    for (int64_t q = 0; q < s->parents; q++)
        bad |= get(&s->start, q) > get(&s->start, q + 1);
    return !bad;
}

static bool is_below(const Array *a, int64_t bound)
{
    bool bad = false;

    for (int64_t i = 0; i < a->n; i++)
        bad |= (uint64_t)get(a, i) >= (uint64_t)bound;
    return !bad && bound >= 0;
}

/* All coordinates of an axis whose positions all exist: there, and inside their bounds. */
static bool coords_fit(const Prog *p, const Env *env, const Axis *a, const Span *s)
{
    bool fit = true;

    for (int k = 0; k < a->ncoord && fit; k++) {
        const Coord *c = &a->coord[k];
        int64_t bound = c->bound == NULL ? INT64_MAX : ir_eval_size(p, env, c->bound);
        Array v = env->coord[a->id][k];

        if (c->kind == C_TABLE)
            v = (Array){ (void *)c->table, c->n, T_i64 };
        if (c->kind == C_LOAD)
            fit = v.data != NULL && v.n == s->total && (v.type == T_i32 || v.type == T_i64);
        if (c->bound != NULL && c->kind == C_IDENT)
            fit = s->width >= 0 && s->width <= bound;
        else if (c->bound != NULL)
            fit = fit && is_below(&v, bound);
        fit = fit && c->kind != C_EXPR;
    }
    return fit;
}

/* Is (coordinates at p - 1) < (those at p), in lexicographic order?  Or equal, unless strict. */
static bool is_before(const Array *coord, int n, int64_t p, bool strict)
{
    for (int k = 0; k < n; k++)
        if (get(&coord[k], p - 1) != get(&coord[k], p))
            return get(&coord[k], p - 1) < get(&coord[k], p);
    return !strict;
}

/* Entries that rise strictly are unique too. */
static bool entries_rise(const Axis *a, const Array *coord, const Span *s)
{
    bool strict = (a->flags & AX_UNIQUE) != 0, rise = true;

    for (int k = 0; k < a->ncoord; k++)
        if (a->coord[k].kind != C_LOAD)
            return false;
    for (int64_t q = 0; q < s->parents && rise; q++) {
        int64_t end = ir_span_first(s, q + 1);

        for (int64_t p = ir_span_first(s, q) + 1; p < end; p++)
            rise = rise && is_before(coord, a->ncoord, p, strict);
    }
    return rise;
}

static bool axis_is_right(const Prog *p, const Env *env, const Axis *a)
{
    Span s = ir_axis_span(p, env, a);

    return !(a->flags & AX_PADDED) && (a->extent != X_SEG || starts_rise(&s)) &&
           coords_fit(p, env, a, &s) && (a->flags == 0 || entries_rise(a, env->coord[a->id], &s));
}

bool api_is_right(const Prog *p, const Env *env)
{
    bool right = true;

    for (int i = 0; i < p->naxis && right; i++)
        right = p->axis[i]->extent != X_BUILT && axis_is_right(p, env, p->axis[i]);
    return right;
}
