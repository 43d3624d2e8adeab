/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * A level whose positions the map gives.  All entries of a position write its stored values; a
 * second pass finds values that another entry has overwritten, and so entries that the format
 * cannot tell apart.  On the last level the number of positions with an entry tells this. */
#include "format/format_int.h"

#include <stdatomic.h>

typedef struct Mapped {
    FmtWork *w;
    const FmtExpr *loc;
    int64_t width; /* -1: what the largest place needs */
    int64_t least[FMT_MOST_BLOCKS], most[FMT_MOST_BLOCKS]; /* by block */
    _Atomic int64_t *longest; /* by parent: the largest place + 1; or NULL */
} Mapped;

static int64_t first_of(const FmtWork *w, int64_t block)
{
    return fmt_cut(w->b->eval.n, w->b->blocks, block);
}

static int64_t run_length(int64_t from, int64_t end)
{
    return end - from < FMT_RUN ? end - from : FMT_RUN;
}

static int64_t above(const FmtBuild *b, int64_t t)
{
    return b->pos.data != NULL ? fmt_at(&b->pos, t) : 0;
}

static void lift(_Atomic int64_t *to, int64_t v)
{
    int64_t had = atomic_load_explicit(to, memory_order_relaxed);

    while (had < v && !atomic_compare_exchange_weak(to, &had, v))
        ;
}

/* Entries of one parent that come one after the other are looked at together. */
static void lift_longest(const Mapped *m, const int64_t *loc, int64_t from, int64_t n)
{
    for (int64_t t = 0; t < n;) {
        int64_t up = above(m->w->b, from + t), most = loc[t];

        for (t++; t < n && above(m->w->b, from + t) == up; t++)
            most = loc[t] > most ? loc[t] : most;
        lift(&m->longest[up], most + 1);
    }
}

static void look(void *arg, int64_t block)
{
    Mapped *m = arg;
    int64_t from = first_of(m->w, block), end = first_of(m->w, block + 1), loc[FMT_RUN];
    int64_t least = 0, most = -1;

    for (; from < end; from += FMT_RUN) {
        int64_t n = run_length(from, end);

        fmt_eval_run(&m->w->b->eval, m->loc, from, n, loc);
        for (int64_t t = 0; t < n; t++) {
            least = loc[t] < least ? loc[t] : least;
            most = loc[t] > most ? loc[t] : most;
        }
        if (m->longest != NULL && least >= 0 && most < INT64_MAX)
            lift_longest(m, loc, from, n);
    }
    m->least[block] = least;
    m->most[block] = most;
}

static _Noreturn void outside(const Mapped *m)
{
    int64_t loc = 0, t = 0;

    for (;; t++) {
        fmt_eval_run(&m->w->b->eval, m->loc, t, 1, &loc);
        if (loc < 0 || (m->width >= 0 && loc >= m->width))
            fmt_place_outside(m->w, t, loc, m->width);
    }
}

/* The largest place; all are looked at unless the map's own range tells. */
static int64_t check_places(Mapped *m)
{
    const FmtBuild *b = m->w->b;
    int64_t least = 0, most = -1;

    if (m->width >= 0 && fmt_range(&b->eval, m->loc, &least, &most) && least >= 0 &&
        most < m->width)
        return most;
    least = 0;
    most = -1;
    fmt_each(b->run, b->blocks, look, m);
    for (int64_t k = 0; k < b->blocks; k++) {
        least = m->least[k] < least ? m->least[k] : least;
        most = m->most[k] > most ? m->most[k] : most;
    }
    if (least < 0 || (m->width >= 0 && most >= m->width))
        outside(m);
    return most;
}

static void make_starts(Mapped *m)
{
    FmtLevel *out = m->w->out;
    int64_t n = 0, at = 0;
    bool bad = false;

    m->longest = arena_array(m->w->b->run->scratch, out->parents, sizeof *m->longest);
    bad = check_places(m) == INT64_MAX;
    for (int64_t q = 0; q < out->parents; q++)
        bad = bad || int_add(n, m->longest[q], &n);
    if (bad)
        fmt_refuse(m->w->b, ST_LIMIT, "more positions than fit 64 bits");
    out->total = n;
    fmt_set_total(m->w, -1);
    out->start = fmt_room(m->w, out->parents + 1, 0, n);
    for (int64_t q = 0; q <= out->parents; q++) {
        fmt_put(out->start.data, out->start.type == T_i64, q, at);
        at += q < out->parents ? m->longest[q] : 0;
    }
}

static void set_extent(Mapped *m)
{
    const FmtAxis *a = m->w->axis;

    m->width = a->axis->extent == X_ONE ? 1 : -1;
    if (a->axis->extent == X_SEG) {
        make_starts(m);
        return;
    }
    if (a->extent != NULL)
        m->width = fmt_size(a->extent, m->w->b->eval.from);
    if (a->extent != NULL && m->width < 0)
        fmt_refuse(m->w->b, ST_BIND, "an axis has an extent below 0");
    fmt_set_total(m->w, m->width >= 0 ? (check_places(m), m->width) : check_places(m) + 1);
}

static void find_positions(const Mapped *m, int64_t from, int64_t n, int64_t *p)
{
    const FmtLevel *out = m->w->out;

    fmt_eval_run(&m->w->b->eval, m->loc, from, n, p);
    for (int64_t t = 0; t < n; t++) {
        int64_t up = above(m->w->b, from + t);

        p[t] += out->start.data != NULL ? fmt_int(&out->start, up) : up * out->width;
    }
}

/* Others may write there too. */
static inline void put_shared(const Array *a, int64_t p, int64_t v)
{
    if (a->type == T_i64)
        atomic_store_explicit((_Atomic int64_t *)a->data + p, v, memory_order_relaxed);
    else
        atomic_store_explicit((_Atomic int32_t *)a->data + p, (int32_t)v, memory_order_relaxed);
}

static void store_coords(Mapped *m, int64_t from, int64_t n, const int64_t *p)
{
    FmtWork *w = m->w;
    int64_t v[FMT_RUN];

    for (int k = 0; k < w->out->ncoord; k++) {
        bool bad = false;

        if (w->axis->load[k] == NULL)
            continue;
        fmt_eval_run(&w->b->eval, w->axis->load[k], from, n, v);
        for (int64_t t = 0; t < n; t++) {
            bad = bad || fmt_is_outside(w, k, v[t]);
            put_shared(&w->out->coord[k], p[t], v[t]);
        }
        if (bad)
            atomic_store(&w->bad, true);
    }
}

static void place(void *arg, int64_t block)
{
    Mapped *m = arg;
    FmtWork *w = m->w;
    int64_t from = first_of(w, block), end = first_of(w, block + 1), p[FMT_RUN];

    for (; from < end; from += FMT_RUN) {
        int64_t n = run_length(from, end);

        find_positions(m, from, n, p);
        store_coords(m, from, n, p);
        for (int64_t t = 0; t < n && w->last; t++)
            put_shared(&w->b->part->entry, p[t], fmt_entry(&w->b->eval, from + t));
        for (int64_t t = 0; t < n && !w->last; t++)
            fmt_set(&w->to, from + t, p[t]);
    }
}

static void compare(void *arg, int64_t block)
{
    FmtWork *w = ((Mapped *)arg)->w;
    int64_t from = first_of(w, block), end = first_of(w, block + 1), v[FMT_RUN];

    for (; from < end; from += FMT_RUN) {
        int64_t n = run_length(from, end);

        for (int k = 0; k < w->out->ncoord; k++) {
            bool bad = false;

            if (w->axis->load[k] == NULL)
                continue;
            fmt_eval_run(&w->b->eval, w->axis->load[k], from, n, v);
            for (int64_t t = 0; t < n; t++)
                bad = bad || fmt_int(&w->out->coord[k], fmt_at(&w->to, from + t)) != v[t];
            if (bad)
                atomic_store(&w->bad, true);
        }
    }
}

/* Whether two entries store the same. */
static bool is_same(FmtWork *w, int64_t s, int64_t t)
{
    for (int k = 0; k < w->out->ncoord; k++) {
        int64_t x, y;

        if (w->axis->load[k] == NULL)
            continue;
        fmt_eval_run(&w->b->eval, w->axis->load[k], s, 1, &x);
        fmt_eval_run(&w->b->eval, w->axis->load[k], t, 1, &y);
        if (x != y)
            return false;
    }
    return !w->last;
}

/* Which two entries meet at one position: the first that meets an earlier one. */
static _Noreturn void report(Mapped *m)
{
    FmtWork *w = m->w;
    int64_t *first = arena_raw(w->b->run->scratch, w->out->total, sizeof *first);
    Text t = { .arena = w->b->arena };

    for (int64_t p = 0; p < w->out->total; p++)
        first[p] = -1;
    for (int64_t e = 0; e < w->b->eval.n; e++) {
        int64_t p, had;

        if (w->last)
            find_positions(m, e, 1, &p);
        else
            p = fmt_at(&w->to, e);
        had = first[p];
        if (had >= 0 && !is_same(w, had, e)) {
            fmt_print_entry(&t, w->b, had);
            text_f(&t, " and ");
            fmt_print_entry(&t, w->b, e);
            text_f(&t, " have one position of axis %s", w->out->name);
            fmt_refuse(w->b, ST_BIND, t.s);
        }
        first[p] = e;
    }
    text_f(&t, "axis %s would store a coordinate outside its bound", w->out->name);
    fmt_refuse(w->b, ST_BIND, t.s);
}

void fmt_place_mapped(FmtWork *w, const FmtExpr *loc)
{
    Mapped m = { .w = w, .loc = loc };
    bool any = false;

    fmt_prepare(&w->b->eval, loc);
    set_extent(&m);
    for (int k = 0; k < w->out->ncoord; k++)
        if (w->axis->load[k] != NULL) {
            fmt_prepare(&w->b->eval, w->axis->load[k]);
            w->out->coord[k] = fmt_coord_room(w, k, true);
            any = true;
        }
    if (w->root && !w->last && !any) {
        w->to = fmt_eval(&w->b->eval, loc);
        w->to.lo = 0;
        w->to.hi = w->out->total > 0 ? w->out->total - 1 : 0;
        return;
    }
    if (w->last)
        w->b->part->entry = fmt_blank(w, w->out->total, 0, w->b->eval.from->n);
    else
        fmt_to_room(w);
    fmt_each(w->b->run, w->b->blocks, place, &m);
    if (any && !w->last)
        fmt_each(w->b->run, w->b->blocks, compare, &m);
    if (w->bad || (w->last && fmt_see(w->b) != w->b->eval.n))
        report(&m);
    fmt_check_full(w);
}
