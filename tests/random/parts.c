/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * What a plan puts into axes that passes made, written apart from it and with limits so low that
 * small programs have long rows and several parts. */
#include "lower/lower.h"
#include "random/random.h"

typedef struct List {
    Arena *a;
    int64_t *v;
    int n, cap;
} List;

static void add(List *l, int64_t v)
{
    l->v = arena_grow(l->a, l->v, l->n, &l->cap, sizeof *l->v);
    l->v[l->n++] = v;
}

static void put(Arena *a, Array *to, const List *l)
{
    *to = array_new(a, T_i64, l->n);
    for (int i = 0; i < l->n; i++)
        array_set(to, i, l->v[i], 0);
}

/* Parts of `limit` entries, and a rest. */
static void long_rows(Arena *a, const Array *start, Env *env, const Axis *e, int64_t limit)
{
    const Axis *parts = e->parent, *rows = parts->parent, *one = rows->parent;
    List row = { .a = a }, first = row, part_row = row, shift = row, at = row, most = row;
    List all = row;
    int64_t n = 0;

    for (int64_t i = 0; i + 1 < start->n; i++) {
        int64_t lo = array_int(start, i), hi = array_int(start, i + 1);

        if (hi - lo <= limit)
            continue;
        add(&row, i);
        add(&first, part_row.n);
        for (int64_t p = lo; p < hi; p += limit) {
            add(&part_row, i);
            add(&shift, p - n);
            add(&at, n);
            n += hi - p < limit ? hi - p : limit;
        }
    }
    add(&first, part_row.n);
    add(&at, n);
    add(&most, limit);
    add(&all, 0);
    add(&all, row.n);
    put(a, &env->coord[one->id][0], &most);
    put(a, &env->start[rows->id], &all);
    put(a, &env->coord[rows->id][0], &row);
    put(a, &env->start[parts->id], &first);
    put(a, &env->coord[parts->id][0], &part_row);
    put(a, &env->coord[parts->id][1], &shift);
    put(a, &env->start[e->id], &at);
}

/* Pieces of `limit`, and a rest; start: NULL when they are not of entries of rows. */
static void pieces(Arena *a, const Array *start, int64_t n, Env *env, const Axis *e, int64_t limit)
{
    const Axis *parts = e->parent;
    List row = { .a = a }, end = row, at = row, all = row;

    for (int64_t p = 0; p < n; p += limit) {
        int64_t to = p + limit < n ? p + limit : n, lo = 0, hi = 0;

        for (int64_t i = 0; start != NULL && i + 1 < start->n; i++) {
            lo = array_int(start, i + 1) <= p ? i + 1 : lo;
            hi = array_int(start, i) < to ? i + 1 : hi;
        }
        add(&row, lo);
        add(&end, hi);
        add(&at, p);
    }
    add(&at, n);
    add(&all, 0);
    add(&all, row.n);
    put(a, &env->start[parts->id], &all);
    put(a, &env->coord[parts->id][0], &row);
    put(a, &env->coord[parts->id][1], &end);
    put(a, &env->start[e->id], &at);
}

/* The row at the top that an entry is below. */
static int64_t top_row(const Prog *p, const Env *env, const Axis *e, int64_t at)
{
    for (; e->parent != NULL; e = e->parent) {
        Span s = ir_axis_span(p, env, e);

        at = ir_span_parent(&s, at);
    }
    return at;
}

/* What the entries of each part name: the first, and the last one and 1. */
static void named(Arena *a, const Prog *p, Env *env, const Axis *e, int64_t parts, int64_t limit)
{
    const Array *name = &env->coord[e->from->id][e->part];
    int64_t n = ir_axis_total(p, env, e->from);
    Array *first = &env->coord[e->parent->id][0], *end = &env->coord[e->parent->id][1];

    *first = array_new(a, T_i64, parts);
    *end = array_new(a, T_i64, parts);
    for (int64_t q = 0; q < parts; q++) {
        int64_t lo = -1, hi = 0;

        for (int64_t i = 0; i < n; i++) {
            int64_t v = array_int(name, i);

            if (top_row(p, env, e->from, i) / limit != q || v < 0)
                continue;
            lo = lo < 0 || v < lo ? v : lo;
            hi = v + 1 > hi ? v + 1 : hi;
        }
        array_set(first, q, lo < 0 ? 0 : lo, 0);
        array_set(end, q, hi, 0);
    }
}

/* So many rows a part. */
static void rows(Arena *a, const Prog *p, Env *env, const Axis *e, int64_t limit)
{
    List part = { .a = a }, at = part, all = part;
    const Axis *top = e->from;
    int64_t n;

    while (top->parent != NULL)
        top = top->parent;
    n = ir_axis_total(p, env, top);

    for (int64_t i = 0; i < n; i++) {
        if (i % limit == 0)
            add(&at, i);
        add(&part, i / limit);
    }
    add(&at, n);
    add(&all, 0);
    add(&all, at.n - 1);
    put(a, &env->start[e->parent->id], &all);
    put(a, &env->start[e->id], &at);
    put(a, &env->coord[e->id][0], &part);
    named(a, p, env, e, at.n - 1, limit);
}

static void data_parts(Arena *a, const Prog *p, Env *env, const Axis *e, int64_t limit)
{
    const Axis *from = e->from;
    bool entries = from->extent == X_SEG;
    const Array *start = entries ? &env->start[from->id] : NULL;
    int64_t n = entries ? array_int(start, start->n - 1) : ir_eval_size(p, env, from->size);

    if (e->from_k == FROM_LONG)
        long_rows(a, start, env, e, limit);
    else if (e->from_k == FROM_ROWS)
        rows(a, p, env, e, limit);
    else
        pieces(a, start, n, env, e, limit);
}

static bool is_present(const Prog *p, const Env *env, const Axis *e, int64_t q)
{
    bool is = true;

    for (int k = 0; k < e->ncoord && e->flags & AX_PADDED; k++) {
        int64_t x = array_int(&env->coord[e->id][k], q);

        if (e->coord[k].bound != NULL)
            is = is && 0 <= x && x < ir_eval_size(p, env, e->coord[k].bound);
    }
    return is;
}

/* The entries of an axis by one of its coordinates, those of a row in their order: a slow sort. */
static void transpose(Arena *a, const Prog *p, Env *env, const Axis *t)
{
    const Axis *e = t->from;
    int64_t rows = ir_axis_total(p, env, t->parent), up = 0, n = 0;
    Array start = array_new(a, T_i64, rows + 1), *out = env->coord[t->id];
    Span span = ir_axis_span(p, env, e);

    for (int k = 0; k < t->ncoord; k++)
        out[k] = array_new(a, T_i64, span.total);
    for (int64_t r = 0; r < rows; r++) {
        array_set(&start, r, n, 0);
        up = 0;
        for (int64_t q = 0; q < span.total; q++) {
            while (ir_span_first(&span, up + 1) <= q)
                up++;
            if (array_int(&env->coord[e->id][t->from_k], q) != r || !is_present(p, env, e, q))
                continue;
            array_set(&out[0], n, q, 0);
            for (int c = 1; c < t->ncoord; c++) {
                const Axis *of;
                int k = lower_carried(t, c, &of);

                array_set(&out[c], n,
                          k < 0 ? up : array_int(&env->coord[of->id][k], of == e ? q : up), 0);
            }
            n++;
        }
    }
    array_set(&start, rows, n, 0);
    env->start[t->id] = start;
    for (int k = 0; k < t->ncoord; k++)
        out[k].n = n;
}

void data_made(Arena *a, const Prog *p, Env *env, const Axis *e, int64_t limit)
{
    if (e->from_k >= 0)
        transpose(a, p, env, e);
    else if (e->from_k != FROM_FORMAT)
        data_parts(a, p, env, e, limit);
}
