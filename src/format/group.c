/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Functions of many entries, each from one sort by the values of its arguments:
 *
 *     groups   entries with equal values, in the order they stand in
 *     count    how many are in its group; rank: how many of them come before
 *     index    groups before it with the same leading values
 *     place    of values of a coordinate: their number in windows that are sorted by another value
 *
 * A block works on the groups that begin in it. */
#include "format/format_int.h"

#include <stdatomic.h>

typedef struct Groups {
    const FmtSort *s;
    FmtOp what;
    int64_t blocks;
    FmtCol out;
} Groups;

/* How far the group goes that begins at t. */
static int64_t group_end(const FmtSort *s, int64_t t)
{
    do
        t++;
    while (t < s->n && !fmt_begins(s, t));
    return t;
}

static void put_groups(void *arg, int64_t b)
{
    const Groups *g = arg;
    const FmtSort *s = g->s;
    int64_t t = fmt_cut(s->n, g->blocks, b), end = fmt_cut(s->n, g->blocks, b + 1);

    while (t < end && !fmt_begins(s, t))
        t++;
    while (t < end) {
        int64_t begin = t, stop = group_end(s, t);

        for (; t < stop; t++)
            fmt_set(&g->out, fmt_from(s, t), g->what == F_COUNT ? stop - begin : t - begin);
    }
}

static void put_index(void *arg, int64_t b)
{
    const Groups *g = arg;
    const FmtSort *s = g->s;
    int64_t t = fmt_cut(s->n, g->blocks, b), end = fmt_cut(s->n, g->blocks, b + 1), index = 0;

    while (t < end && !fmt_leads(s, t))
        t++;
    for (bool own = t < end; own && t < s->n; t++) {
        bool leads = fmt_leads(s, t);

        if (leads && t >= end)
            break;
        index = leads ? 0 : index + fmt_begins(s, t);
        fmt_set(&g->out, fmt_from(s, t), index);
    }
}

static FmtCol grouped(FmtEval *c, const FmtExpr *e)
{
    FmtCol column[8];
    FmtSort s = { .col = column, .ncol = e->nargs, .prefix = e->keys, .n = c->n, .whole = true };
    Groups g = { .s = &s, .what = e->op, .blocks = fmt_blocks(c->n) };

    for (int i = 0; i < e->nargs; i++)
        column[i] = fmt_eval(c, e->arg[i]);
    fmt_sort(c->run, &s);
    g.out = fmt_column(c->run, 0, c->n);
    fmt_each(c->run, g.blocks, e->op == F_INDEX ? put_index : put_groups, &g);
    fmt_sorted(c->run, &s);
    for (int i = 0; i < e->nargs; i++)
        fmt_done(c, &column[i]);
    return g.out;
}

typedef struct Places { /* of all values of a coordinate */
    const FmtEval *c;
    FmtCol value, by, place, out;
    int64_t blocks;
    _Atomic int64_t *of; /* by value: the largest `by` */
} Places;

static void find_largest(void *arg, int64_t b)
{
    Places *p = arg;
    int64_t end = fmt_cut(p->c->n, p->blocks, b + 1);

    for (int64_t e = fmt_cut(p->c->n, p->blocks, b); e < end; e++) {
        _Atomic int64_t *to = &p->of[fmt_at(&p->value, e)];
        int64_t had = atomic_load_explicit(to, memory_order_relaxed), by = fmt_at(&p->by, e);

        while (had < by && !atomic_compare_exchange_weak(to, &had, by))
            ;
    }
}

static void take_places(void *arg, int64_t b)
{
    Places *p = arg;
    int64_t end = fmt_cut(p->c->n, p->blocks, b + 1);

    for (int64_t e = fmt_cut(p->c->n, p->blocks, b); e < end; e++)
        fmt_set(&p->out, e, fmt_at(&p->place, fmt_at(&p->value, e)));
}

/* Windows are of `window` values each, so a value's number in the sorted list is its place. */
static void sort_places(Places *p, int64_t n, int64_t window)
{
    Arena *arena = p->c->run->scratch;
    FmtSpare spare = { .cap = n };
    FmtRun run = { arena, p->c->run->pool, &spare, p->c->run->name };
    FmtCol key[2] = { fmt_column(&run, 0, n / window), fmt_column(&run, 0, INT64_MAX) };
    FmtSort s = { .col = key, .ncol = 2, .n = n };
    int64_t most = 0;

    for (int64_t v = 0; v < n; v++)
        most = p->of[v] > most ? p->of[v] : most;
    key[1].hi = most;
    for (int64_t v = 0; v < n; v++) {
        fmt_set(&key[0], v, v / window);
        fmt_set(&key[1], v, most - p->of[v]);
    }
    fmt_sort(&run, &s);
    p->place = fmt_column(&run, 0, n);
    for (int64_t t = 0; t < n; t++)
        fmt_set(&p->place, fmt_from(&s, t), t);
}

static FmtCol places(FmtEval *c, const FmtExpr *e)
{
    Places p = { .c = c, .blocks = fmt_blocks(c->n) };
    int64_t n;

    if (e->arg[0]->op != F_COORD || e->arg[2]->op != F_INT || e->arg[2]->v < 1)
        err_throw(c->run->scratch->err, ST_CHECK,
                  "format %s: place(x, by, window) is that of a coordinate x, in windows of at "
                  "least 1",
                  c->use->rule->name);
    n = c->from->bound[e->arg[0]->v];
    p.value = fmt_eval(c, e->arg[0]);
    p.by = fmt_eval(c, e->arg[1]);
    p.of = arena_array(c->run->scratch, n, sizeof *p.of);
    fmt_each(c->run, p.blocks, find_largest, &p);
    sort_places(&p, n, e->arg[2]->v);
    p.out = fmt_column(c->run, 0, n);
    fmt_each(c->run, p.blocks, take_places, &p);
    fmt_done(c, &p.value);
    fmt_done(c, &p.by);
    return p.out;
}

FmtCol fmt_group(FmtEval *c, const FmtExpr *e)
{
    return e->op == F_PLACE ? places(c, e) : grouped(c, e);
}
