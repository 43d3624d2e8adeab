/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Validation of structure, before anything runs on it: after this no position, start or coordinate
 * can lead outside an array.  Coordinates that are expressions become arrays here. */
#include "interp/interp_int.h"

static void check_starts(Run *x, const Axis *a, const Span *s)
{
    if (ir_span_first(s, 0) != 0)
        interp_fail(x, "%s.start begins with %lld; it begins with 0", a->name,
                    (long long)ir_span_first(s, 0));
    for (int64_t q = 0; q < s->parents; q++)
        if (ir_span_first(s, q) > ir_span_first(s, q + 1))
            interp_fail(x, "%s.start falls from %lld to %lld at element %lld; it never falls",
                        a->name, (long long)ir_span_first(s, q), (long long)ir_span_first(s, q + 1),
                        (long long)q + 1);
}

static const char *coord_name(const Axis *a, int k)
{
    return a->coord[k].name != NULL ? a->coord[k].name : "coord";
}

static Array loaded(Run *x, const Axis *a, int k)
{
    Array c = x->env->coord[a->id][k];
    int64_t n = x->axis[a->id].span.total;

    if (c.data == NULL && (c.n != 0 || n != 0))
        interp_fail(x, "the array %s.%s is not given", a->name, coord_name(a, k));
    if (c.data != NULL && c.type != T_i32 && c.type != T_i64)
        interp_fail(x, "%s.%s is %s; give it as i32 or i64", a->name, coord_name(a, k),
                    ir_type[c.type].name);
    if (c.n != n)
        interp_fail(x, "%s.%s has %lld elements, but the axis has %lld positions", a->name,
                    coord_name(a, k), (long long)c.n, (long long)n);
    return c;
}

static Array coord_array(Run *x, const Axis *a, int k)
{
    const Coord *c = &a->coord[k];
    int64_t n = x->axis[a->id].span.total;

    switch (c->kind) {
    case C_LOAD: return loaded(x, a, k);
    case C_TABLE: return (Array){ (void *)c->table, c->n, T_i64 };
    case C_EXPR: return (Array){ arena_array(x->arena, n, sizeof(int64_t)), n, T_i64 };
    default: return (Array){ 0 };
    }
}

typedef struct Check { /* of the positions of one axis */
    const Axis *axis;
    AxisState *state;
    uint8_t *exists; /* becomes the state's */
    int64_t last;    /* the position before that exists, or -1 */
} Check;

/* The coordinates at p as a message shows them. */
static const char *tuple_text(Run *x, const Check *c, int64_t p, int64_t first)
{
    Text t = { .arena = x->arena };

    for (int k = 0; k < c->axis->ncoord; k++)
        text_f(&t, "%s%lld", k == 0 ? "" : ", ", (long long)interp_coord(c->state, k, p, first));
    return t.s;
}

static void check_order(Run *x, Check *c, int64_t p, int64_t first)
{
    bool unique = c->axis->flags & AX_UNIQUE;
    int k = 0;
    int64_t from = 0, to = 0;

    while (k < c->axis->ncoord && from == to) {
        from = interp_coord(c->state, k, c->last, first);
        to = interp_coord(c->state, k++, p, first);
    }
    if (from > to)
        interp_fail(x,
                    "declared sorted, but position %lld has (%s) after (%s); sort the "
                    "entries of each parent, or drop `sorted`",
                    (long long)p, tuple_text(x, c, p, first), tuple_text(x, c, c->last, first));
    if (from == to && unique)
        interp_fail(x,
                    "declared unique, but positions %lld and %lld both have (%s); sum "
                    "duplicates first, or drop `unique`",
                    (long long)c->last, (long long)p, tuple_text(x, c, p, first));
}

/* Body of the nest over all positions of the axis. */
static void check_position(Run *x)
{
    Check *c = x->job;
    const Axis *a = c->axis;
    int64_t p = x->pos[a->var->id], first = x->first[a->var->id];
    bool inside = true;

    for (int k = 0; k < a->ncoord; k++) {
        int64_t v;

        if (a->coord[k].kind == C_EXPR)
            ((int64_t *)c->state->coord[k].data)[p] = interp_eval(x, a->coord[k].expr).i;
        v = interp_coord(c->state, k, p, first);
        if (a->coord[k].bound == NULL || (v >= 0 && v < c->state->bound[k]))
            continue;
        if (!(a->flags & AX_PADDED))
            interp_fail(x,
                        "%s.%s is %lld at position %lld, outside 0..%lld; correct it, or "
                        "declare the axis `padded` to skip such entries",
                        a->name, coord_name(a, k), (long long)v, (long long)p,
                        (long long)c->state->bound[k]);
        inside = false;
    }
    if (!inside)
        return;
    if (c->exists != NULL)
        c->exists[p] = 1;
    if ((a->flags & AX_SORTED) && c->last >= first)
        check_order(x, c, p, first);
    c->last = p;
}

static bool needs_look(const Axis *a, const uint8_t *parent_exists)
{
    bool look = a->flags != 0 || parent_exists != NULL;

    for (int k = 0; k < a->ncoord; k++)
        look = look || a->coord[k].kind == C_EXPR || a->coord[k].bound != NULL;
    return look;
}

static void check_positions(Run *x, const Axis *a)
{
    AxisState *s = &x->axis[a->id];
    const uint8_t *up = a->parent == NULL ? NULL : x->axis[a->parent->id].exists;
    Check c = { .axis = a, .state = s, .last = -1 };
    Var *bind[IR_MAX_RANK];
    int n = IR_MAX_RANK;

    if (!needs_look(a, up))
        return;
    if ((a->flags & AX_PADDED) || up != NULL)
        c.exists = arena_array(x->arena, s->span.total, 1);
    for (const Axis *b = a; b != NULL; b = b->parent)
        bind[--n] = b->var;
    interp_open(x, x->what, ST_BIND, bind + n, IR_MAX_RANK - n);
    for (int k = 0; k < a->ncoord; k++)
        if (a->coord[k].kind == C_EXPR)
            interp_use(x, a->coord[k].expr);
    interp_nest(x, check_position, &c);
    interp_open(x, x->what, ST_BIND, NULL, 0); /* the binders die with this function */
    s->exists = c.exists;
}

/* Duplicates among the positions first..end, in any order: sorts (coordinates, position). */
static void check_parent_unique(Run *x, const Axis *a, Rows *rows, int64_t first, int64_t end)
{
    const Check c = { .axis = a, .state = &x->axis[a->id] };
    const uint8_t *exists = c.state->exists;

    rows->n = 0;
    for (int64_t p = first; p < end; p++)
        if (exists == NULL || exists[p]) {
            int64_t *row = rows->v + rows->n++ * rows->w;

            for (int k = 0; k < a->ncoord; k++)
                row[k] = interp_coord(c.state, k, p, first);
            row[a->ncoord] = p;
        }
    interp_sort(rows);
    for (int64_t i = 1; i < rows->n; i++) {
        const int64_t *row = rows->v + i * rows->w, *before = row - rows->w;
        int k = 0;

        while (k < a->ncoord && row[k] == before[k])
            k++;
        if (k == a->ncoord)
            interp_fail(x,
                        "declared unique, but positions %lld and %lld both have (%s); sum "
                        "duplicates first, or drop `unique`",
                        (long long)before[k], (long long)row[k], tuple_text(x, &c, row[k], first));
    }
}

static void check_unique(Run *x, const Axis *a)
{
    const Span *s = &x->axis[a->id].span;
    Rows rows = { .w = a->ncoord + 1 };

    for (int k = 0; k < a->ncoord; k++)
        if (a->coord[k].kind == C_IDENT)
            return;
    for (int64_t q = 0; q < s->parents; q++) {
        int64_t n = ir_span_first(s, q + 1) - ir_span_first(s, q);

        rows.cap = n > rows.cap ? n : rows.cap;
    }
    rows.v = arena_array(x->arena, rows.cap, sizeof *rows.v * (size_t)rows.w);
    for (int64_t q = 0; q < s->parents; q++)
        check_parent_unique(x, a, &rows, ir_span_first(s, q), ir_span_first(s, q + 1));
}

/* Each value of a coordinate is at one position of the axis: sorts (value, position). */
static void check_once(Run *x, const Axis *a, int k)
{
    const AxisState *s = &x->axis[a->id];
    Rows rows = { .w = 2, .n = s->span.total, .cap = s->span.total };

    rows.v = arena_array(x->arena, rows.n, 2 * sizeof *rows.v);
    for (int64_t p = 0; p < rows.n; p++) {
        rows.v[2 * p] = interp_coord(s, k, p, 0);
        rows.v[2 * p + 1] = p;
    }
    interp_sort(&rows);
    for (int64_t i = 2; i < 2 * rows.n; i += 2)
        if (rows.v[i] == rows.v[i - 2])
            interp_fail(x, "%s.%s is declared once, but positions %lld and %lld both have %lld; "
                           "correct it, or drop `once`",
                        a->name, coord_name(a, k), (long long)rows.v[i - 1],
                        (long long)rows.v[i + 1], (long long)rows.v[i]);
}

static void make_ready(Run *x, const Axis *a)
{
    AxisState *s = &x->axis[a->id];
    Text what = { .arena = x->arena };

    text_f(&what, "axis %s", a->name != NULL ? a->name : "of a slot");
    interp_open(x, what.s, ST_BIND, NULL, 0);
    s->span = ir_axis_span(x->prog, x->env, a);
    if (a->extent == X_SEG)
        check_starts(x, a, &s->span);
    for (int k = 0; k < a->ncoord; k++)
        s->coord[k] = coord_array(x, a, k);
    s->ready = true;
    check_positions(x, a);
    if ((a->flags & AX_UNIQUE) && !(a->flags & AX_SORTED))
        check_unique(x, a);
    for (int k = 0; k < a->ncoord; k++)
        if (a->coord[k].once)
            check_once(x, a, k);
}

void interp_ready_axes(Run *x)
{
    for (int i = 0; i < x->prog->naxis; i++) {
        const Axis *a = x->prog->axis[i];

        if (x->axis[i].ready || x->axis[i].inserts > 0)
            continue;
        if (a->parent != NULL && !x->axis[a->parent->id].ready)
            continue;
        if (a->extent == X_BUILT)
            interp_freeze(x, a, &x->axis[i].rows,
                          a->parent == NULL ? 1 : x->axis[a->parent->id].span.total);
        make_ready(x, a);
    }
}
