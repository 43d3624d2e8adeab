/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * A fast check of structure: plain loops, on all threads, that prove common axes right.  Axes that
 * it does not know or finds wrong are left to interp_check, which checks everything and has the
 * messages, but is slower.  For a kernel the library's copies are checked, so that a proof stays
 * true. */
#include "api/api_int.h"
#include "run/run.h"

#include <string.h>

typedef struct Look {
    const Axis *axis;
    const Span *span;
    Array coord[IR_MAX_RANK];   /* no data: ident */
    int64_t bound[IR_MAX_RANK]; /* -1: none */
    Pool *pool;                 /* NULL: the calling thread */
} Look;

/* Is fn 0 for all of 0..n? */
static bool holds(const Look *l, RunPhaseFn *fn, const RunPhase *how)
{
    RunPhase phase = *how;
    void *array[] = { (void *)l };

    phase.fn = fn;
    phase.grain = COST_CHECKED;
    if (l->pool != NULL)
        return run_phases(l->pool, &phase, 1, array, NULL) == 0;
    return phase.n <= 0 || fn(array, NULL, 0, phase.n, NULL) == 0;
}

static inline int64_t get(const Array *a, int64_t i)
{
    return a->type == T_i64 ? ((const int64_t *)a->data)[i] : ((const int32_t *)a->data)[i];
}

/* The sign bit of `bad` collects what is negative; wrapping hides nothing, as the difference of two
 * numbers that are not negative does not wrap. */
static bool rise_32(const int32_t *v, int64_t begin, int64_t end)
{
    uint32_t bad = (uint32_t)v[begin];

    for (int64_t i = begin; i < end; i++)
        bad |= (uint32_t)v[i + 1] | ((uint32_t)v[i + 1] - (uint32_t)v[i]);
    return bad >> 31 == 0;
}

static bool rise_64(const int64_t *v, int64_t begin, int64_t end)
{
    uint64_t bad = (uint64_t)v[begin];

    for (int64_t i = begin; i < end; i++)
        bad |= (uint64_t)v[i + 1] | ((uint64_t)v[i + 1] - (uint64_t)v[i]);
    return bad >> 63 == 0;
}

static int64_t look_at_starts(void *const *array, const int64_t *size, int64_t begin, int64_t end,
                              void *work)
{
    const Look *l = array[0];
    const Array *s = &l->span->start;

    (void)size, (void)work;
    return !(s->type == T_i32 ? rise_32(s->data, begin, end) : rise_64(s->data, begin, end));
}

static bool starts_rise(const Look *l)
{
    return get(&l->span->start, 0) == 0 &&
           holds(l, look_at_starts, &(RunPhase){ .n = l->span->parents });
}

/* All of 0..most; signs as above. */
static bool below_32(const int32_t *v, int64_t begin, int64_t end, int64_t most)
{
    uint32_t bad = 0, last = most < INT32_MAX ? (uint32_t)most : INT32_MAX;

    for (int64_t i = begin; i < end; i++)
        bad |= (uint32_t)v[i] | (last - (uint32_t)v[i]);
    return bad >> 31 == 0;
}

static bool below_64(const int64_t *v, int64_t begin, int64_t end, int64_t most)
{
    uint64_t bad = 0;

    for (int64_t i = begin; i < end; i++)
        bad |= (uint64_t)v[i] | ((uint64_t)most - (uint64_t)v[i]);
    return bad >> 63 == 0;
}

static int64_t look_at_bounds(void *const *array, const int64_t *size, int64_t begin, int64_t end,
                              void *work)
{
    const Look *l = array[0];
    bool fit = true;

    (void)size, (void)work;
    for (int k = 0; k < l->axis->ncoord && fit; k++) {
        const Array *v = &l->coord[k];

        if (v->data == NULL || l->bound[k] < 0)
            continue;
        fit = v->type == T_i32 ? below_32(v->data, begin, end, l->bound[k] - 1)
                               : below_64(v->data, begin, end, l->bound[k] - 1);
    }
    return !fit;
}

/* All coordinates of an axis: there, and inside their bounds, unless outside means padding. */
static bool coords_fit(const Look *l)
{
    const Axis *a = l->axis;
    int64_t n = l->span->total;

    for (int k = 0; k < a->ncoord; k++) {
        const Array *v = &l->coord[k];

        if (a->coord[k].kind == C_EXPR)
            return false;
        if (a->coord[k].kind != C_IDENT &&
            (v->data == NULL || v->n != n || (v->type != T_i32 && v->type != T_i64)))
            return false;
        if (a->coord[k].bound == NULL || (a->flags & AX_PADDED))
            continue;
        if (l->bound[k] < 0 ||
            (a->coord[k].kind == C_IDENT && (l->span->width < 0 || l->span->width > l->bound[k])))
            return false;
    }
    return (a->flags & AX_PADDED) || holds(l, look_at_bounds, &(RunPhase){ .n = n });
}

/* Coordinate k at position p, of a parent whose positions begin with `first`. */
static inline int64_t value(const Look *l, int k, int64_t p, int64_t first)
{
    return l->coord[k].data == NULL ? p - first : get(&l->coord[k], p);
}

static bool exists(const Look *l, int64_t p, int64_t first)
{
    for (int k = 0; k < l->axis->ncoord && (l->axis->flags & AX_PADDED); k++) {
        int64_t v = value(l, k, p, first);

        if (l->axis->coord[k].bound != NULL && (v < 0 || v >= l->bound[k]))
            return false;
    }
    return true;
}

/* Is (coordinates at p) < (those at q), in lexicographic order?  Or equal, unless unique. */
static inline bool is_before(const Look *l, int64_t p, int64_t q, int64_t first)
{
    for (int k = 0; k < l->axis->ncoord; k++)
        if (value(l, k, p, first) != value(l, k, q, first))
            return value(l, k, p, first) < value(l, k, q, first);
    return !(l->axis->flags & AX_UNIQUE);
}

/* Positions begin..end of the parent that has first..: each after the last before it. */
static bool row_rises(const Look *l, int64_t first, int64_t begin, int64_t end)
{
    int64_t last = begin - 1;
    bool rise = true;

    while (last >= first && !exists(l, last, first))
        last--;
    for (int64_t p = begin; p < end; p++)
        if (exists(l, p, first)) {
            rise = rise && (last < first || is_before(l, last, p, first));
            last = p;
        }
    return rise;
}

/* The usual case of the above: one array, without padding. */
static bool array_rises(const Look *l, int64_t first, int64_t begin, int64_t end)
{
    const Array *v = &l->coord[0];
    bool strict = (l->axis->flags & AX_UNIQUE) != 0, bad = false;

    for (int64_t p = begin > first ? begin : first + 1; p < end; p++)
        bad |= strict ? get(v, p - 1) >= get(v, p) : get(v, p - 1) > get(v, p);
    return !bad;
}

/* Cut by positions, so that a long row is not one thread's alone. */
static int64_t look_at_order(void *const *array, const int64_t *size, int64_t begin, int64_t end,
                             void *work)
{
    const Look *l = array[0];
    bool plain = l->axis->ncoord == 1 && l->coord[0].data != NULL && !(l->axis->flags & AX_PADDED);
    bool rise = true;

    (void)size, (void)work;
    for (int64_t q = ir_span_parent(l->span, begin); begin < end && rise; q++) {
        int64_t first = ir_span_first(l->span, q), last = ir_span_first(l->span, q + 1);

        last = last < end ? last : end;
        rise = plain ? array_rises(l, first, begin, last) : row_rises(l, first, begin, last);
        begin = last > begin ? last : begin;
    }
    return !rise;
}

/* Rows begin..end: `work` has for each value the last row, counted from 1, that it was met in. */
static int64_t look_for_twins(void *const *array, const int64_t *size, int64_t begin, int64_t end,
                              void *work)
{
    const Look *l = array[0];
    int64_t *met = work;
    bool twins = false;

    (void)size;
    for (int64_t q = begin; q < end; q++) {
        int64_t first = ir_span_first(l->span, q), last = ir_span_first(l->span, q + 1);

        for (int64_t p = first; p < last; p++)
            if (exists(l, p, first)) {
                int64_t *at = &met[get(&l->coord[0], p)];

                twins |= *at == q + 1;
                *at = q + 1;
            }
    }
    return twins;
}

/* Unique in any order: seen without sorting where a table of all values is not long. */
static bool has_no_twins(const Look *l)
{
    RunPhase by_rows = { .n = l->span->parents };

    if (l->axis->ncoord > 1 || l->coord[0].data == NULL || l->pool == NULL || l->bound[0] < 0 ||
        l->bound[0] / 4 > l->span->total)
        return false;
    by_rows.work_bytes = l->bound[0] * (int64_t)sizeof(int64_t);
    if (l->span->width < 0) {
        by_rows.balance = l->span->start.data;
        by_rows.balance_bytes = ir_type[l->span->start.type].bytes;
    }
    return holds(l, look_for_twins, &by_rows);
}

/* Entries that rise strictly are unique too. */
static bool order_is_right(const Look *l)
{
    bool ident = false;

    for (int k = 0; k < l->axis->ncoord; k++)
        ident = ident || l->axis->coord[k].kind == C_IDENT;
    if (!(l->axis->flags & AX_SORTED) && (ident || !(l->axis->flags & AX_UNIQUE)))
        return true;
    if (holds(l, look_at_order, &(RunPhase){ .n = l->span->total }))
        return true;
    return !(l->axis->flags & AX_SORTED) && has_no_twins(l);
}

/* `work` has a bit for each value that was met. */
static int64_t look_for_others(void *const *array, const int64_t *size, int64_t begin, int64_t end,
                               void *work)
{
    const Look *l = array[0];
    uint8_t *met = work;
    bool others = false;

    (void)size, (void)begin, (void)end;
    for (int k = 0; k < l->axis->ncoord; k++) {
        if (!l->axis->coord[k].once)
            continue;
        memset(met, 0, (size_t)(l->bound[k] / 8 + 1));
        for (int64_t p = 0; p < l->span->total; p++) {
            int64_t v = get(&l->coord[k], p);

            others |= met[v / 8] >> v % 8 & 1;
            met[v / 8] = (uint8_t)(met[v / 8] | 1 << v % 8);
        }
    }
    return others;
}

/* Coordinates that are declared once: by one thread, as few axes have any. */
static bool values_are_once(const Look *l)
{
    int64_t most = -1;

    for (int k = 0; k < l->axis->ncoord; k++)
        if (l->axis->coord[k].once && l->bound[k] > most)
            most = l->bound[k];
    return most < 0 ||
           (l->pool != NULL && most / COST_LOOKED <= l->span->total &&
            holds(l, look_for_others, &(RunPhase){ .n = 1, .work_bytes = most / 8 + 1 }));
}

static bool axis_is_right(const Prog *p, const Env *env, const Axis *a, Pool *pool)
{
    Span span = ir_axis_span(p, env, a);
    Look l = { .axis = a, .span = &span, .pool = pool };

    for (int k = 0; k < a->ncoord; k++) {
        const Coord *c = &a->coord[k];

        l.bound[k] = c->bound == NULL ? -1 : ir_eval_size(p, env, c->bound);
        if (c->kind == C_TABLE)
            l.coord[k] = (Array){ (void *)c->table, c->n, T_i64 };
        else if (c->kind == C_LOAD)
            l.coord[k] = env->coord[a->id][k];
    }
    return (a->extent != X_SEG || starts_rise(&l)) && coords_fit(&l) && order_is_right(&l) &&
           values_are_once(&l);
}

/* Is it, or what it hangs on, made by the run?  Then there is nothing to look at yet. */
static bool comes_later(const Prog *p, const Axis *a)
{
    for (; a != NULL; a = a->parent)
        for (int i = 0; i < p->nstmt && a->extent == X_BUILT; i++)
            for (int k = 0; k < p->stmt[i]->nassign; k++) {
                const Assign *to = &p->stmt[i]->assign[k];

                if (to->op == A_INSERT && to->out->axis == a)
                    return true;
            }
    return false;
}

bool api_is_right(const Prog *p, const Env *env, Pool *pool)
{
    bool right = true;

    for (int i = 0; i < p->naxis && right; i++) {
        const Axis *a = p->axis[i];

        if (!comes_later(p, a))
            right = a->extent != X_BUILT && axis_is_right(p, env, a, pool);
    }
    return right;
}

bool api_starts_rise(const Prog *p, const Env *env)
{
    bool right = true;

    for (int i = 0; i < p->naxis && right; i++) {
        const Axis *a = p->axis[i];

        if (a->extent == X_SEG && !comes_later(p, a)) {
            Span span = ir_axis_span(p, env, a);

            right = starts_rise(&(Look){ .axis = a, .span = &span });
        }
    }
    return right;
}
