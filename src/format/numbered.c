/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * A level whose positions number the stored values under each parent: entries are sorted by parent
 * and stored value, and each entry, or each that differs from the one before, gets a position. */
#include "format/format_int.h"

#include <stdatomic.h>

enum { LIMIT_COLUMNS = 8 };

typedef struct Numbered {
    FmtWork *w;
    bool unique;
    FmtCol col[LIMIT_COLUMNS], stored[IR_MAX_RANK];
    FmtSort sort;
    int64_t before[FMT_MOST_BLOCKS + 1]; /* positions that begin in the blocks before */
    int64_t clash[FMT_MOST_BLOCKS];      /* by block: the first that has no position; or n */
    Array start;
    bool apart; /* parents have room for `width` each, so that positions are not one row */
} Numbered;

static bool begins(const Numbered *m, int64_t t)
{
    return !m->unique || fmt_begins(&m->sort, t);
}

static void count_begins(void *arg, int64_t b)
{
    Numbered *m = arg;
    int64_t n = m->sort.n, blocks = m->w->b->blocks, end = fmt_cut(n, blocks, b + 1), count = 0;

    for (int64_t t = fmt_cut(n, blocks, b); t < end && m->unique; t++)
        count += begins(m, t);
    m->before[b + 1] = m->unique ? count : end - fmt_cut(n, blocks, b);
}

static void set_start(const Numbered *m, int64_t from, int64_t end, int64_t p)
{
    for (int64_t q = from; q < end; q++)
        fmt_put(m->start.data, m->start.type == T_i64, q, p);
}

/* Where the entries of each parent begin: whoever sees the first sets all since the one before. */
static void find_starts(void *arg, int64_t b)
{
    Numbered *m = arg;
    const FmtSort *s = &m->sort;
    int64_t blocks = m->w->b->blocks, t = fmt_cut(s->n, blocks, b);
    int64_t end = fmt_cut(s->n, blocks, b + 1), p = m->before[b];

    for (; t < end; t++) {
        if (fmt_leads(s, t))
            set_start(m, t == 0 ? 0 : fmt_lead(s, t - 1) + 1, fmt_lead(s, t) + 1, p);
        p += begins(m, t);
    }
}

static void make_starts(Numbered *m)
{
    FmtWork *w = m->w;
    int64_t n = m->sort.n, total = m->before[w->b->blocks];

    m->start = fmt_room(w, w->out->parents + 1, 0, total);
    if (m->sort.prefix > 0)
        fmt_each(w->b->run, w->b->blocks, find_starts, m);
    else
        set_start(m, 0, 1, 0);
    set_start(m, n == 0 ? 0 : m->sort.prefix > 0 ? fmt_lead(&m->sort, n - 1) + 1 : 1,
              w->out->parents + 1, total);
}

static int64_t longest(const Numbered *m)
{
    int64_t most = 0;

    for (int64_t q = 0; q < m->w->out->parents; q++) {
        int64_t n = fmt_int(&m->start, q + 1) - fmt_int(&m->start, q);

        most = n > most ? n : most;
    }
    return most;
}

static int64_t parent_of(const Numbered *m, int64_t t)
{
    return m->sort.prefix > 0 ? fmt_lead(&m->sort, t) : 0;
}

/* The first entry that is not among the first `width` of its parent. */
static _Noreturn void outside(const Numbered *m, int64_t width)
{
    int64_t p = -1, t = 0, place;

    for (;; t++) {
        p += begins(m, t);
        place = p - fmt_int(&m->start, parent_of(m, t));
        if (place >= width)
            fmt_place_outside(m->w, fmt_from(&m->sort, t), place, width);
    }
}

static void set_extent(Numbered *m)
{
    FmtWork *w = m->w;
    const FmtAxis *a = w->axis;
    int64_t width;

    w->out->total = m->before[w->b->blocks];
    if (a->axis->extent == X_SEG) {
        fmt_set_total(w, -1);
        w->out->start = m->start;
        return;
    }
    width = a->extent != NULL ? fmt_size(a->extent, w->b->eval.from) : longest(m);
    if (width < 0)
        fmt_refuse(w->b, ST_BIND, "an axis has an extent below 0");
    if (longest(m) > width)
        outside(m, width);
    fmt_set_total(w, width);
    m->apart = w->out->total != m->before[w->b->blocks];
}

typedef struct Rows { /* of a run, as they are sorted */
    int64_t n, from[FMT_RUN], at[FMT_RUN];
    bool first[FMT_RUN]; /* of its position */
} Rows;

static void find_rows(const Numbered *m, int64_t t, int64_t *p, Rows *r)
{
    for (int64_t k = 0; k < r->n; k++) {
        r->first[k] = begins(m, t + k);
        *p += r->first[k];
        r->at[k] = *p;
        r->from[k] = fmt_from(&m->sort, t + k);
        if (m->apart) {
            int64_t q = parent_of(m, t + k);

            r->at[k] += q * m->w->out->width - fmt_int(&m->start, q);
        }
    }
}

static bool store_coord(const Numbered *m, int k, const Rows *r)
{
    const Array *to = &m->w->out->coord[k];
    bool bad = false;

    for (int64_t t = 0; t < r->n; t++)
        if (r->first[t]) {
            int64_t v = fmt_at(&m->stored[k], r->from[t]);

            bad = bad || fmt_is_outside(m->w, k, v);
            fmt_put(to->data, to->type == T_i64, r->at[t], v);
        }
    return bad;
}

static void store_rows(Numbered *m, int64_t b, int64_t begin, const Rows *r)
{
    FmtWork *w = m->w;
    Array *entry = &w->b->part->entry;

    for (int k = 0; k < w->out->ncoord; k++)
        if (w->axis->load[k] != NULL && store_coord(m, k, r))
            atomic_store(&w->bad, true);
    for (int64_t t = 0; t < r->n && !w->last; t++)
        fmt_set(&w->to, r->from[t], r->at[t]);
    for (int64_t t = 0; t < r->n && w->last && !m->sort.kept; t++)
        if (r->first[t])
            fmt_put(entry->data, entry->type == T_i64, r->at[t],
                    fmt_entry(&w->b->eval, r->from[t]));
        else if (m->clash[b] == m->sort.n)
            m->clash[b] = begin + t;
}

static inline void copy_rows(void *to, const void *from, const void *order, int64_t t, int64_t end)
{
    for (; t < end; t++) {
        int64_t row = order != NULL ? ((const int32_t *)order)[t] : t;

        ((int32_t *)to)[t] = from != NULL ? ((const int32_t *)from)[row] : (int32_t)row;
    }
}

/* Where each entry has its own position, in one row, and all is of 32 bits: columns are copied. */
static bool copy_block(Numbered *m, int64_t t, int64_t end)
{
    FmtWork *w = m->w;
    const void *order = m->sort.order.data;
    bool can = !m->unique && !m->apart && w->last && !m->sort.order.wide &&
               w->b->part->entry.type == T_i32 && w->b->eval.list.data == NULL;

    for (int k = 0; k < w->out->ncoord; k++)
        can = can && (w->axis->load[k] == NULL || (w->sure[k] && !m->stored[k].wide &&
                                                   w->out->coord[k].type == T_i32));
    for (int k = 0; k < w->out->ncoord && can; k++)
        if (w->axis->load[k] != NULL)
            copy_rows(w->out->coord[k].data, m->stored[k].data, order, t, end);
    if (can && !m->sort.kept)
        copy_rows(w->b->part->entry.data, NULL, order, t, end);
    return can;
}

static void place(void *arg, int64_t b)
{
    Numbered *m = arg;
    int64_t blocks = m->w->b->blocks, t = fmt_cut(m->sort.n, blocks, b);
    int64_t end = fmt_cut(m->sort.n, blocks, b + 1), p = m->before[b] - 1;
    Rows r;

    m->clash[b] = m->sort.n;
    for (bool done = copy_block(m, t, end); t < end && !done; t += r.n) {
        r.n = end - t < FMT_RUN ? end - t : FMT_RUN;
        find_rows(m, t, &p, &r);
        store_rows(m, b, t, &r);
    }
}

static void check(const Numbered *m)
{
    FmtWork *w = m->w;
    Text text = { .arena = w->b->arena };
    int64_t t = m->sort.n;

    for (int64_t b = 0; b < w->b->blocks; b++)
        t = m->clash[b] < t ? m->clash[b] : t;
    if (t < m->sort.n) {
        fmt_print_entry(&text, w->b, fmt_from(&m->sort, t - 1));
        text_f(&text, " and ");
        fmt_print_entry(&text, w->b, fmt_from(&m->sort, t));
        text_f(&text, " have one position of axis %s", w->out->name);
        fmt_refuse(w->b, ST_BIND, text.s);
    }
    if (w->bad) {
        text_f(&text, "axis %s would store a coordinate outside its bound", w->out->name);
        fmt_refuse(w->b, ST_BIND, text.s);
    }
    if (m->apart)
        fmt_check_full(w);
}

static void sort(Numbered *m)
{
    FmtWork *w = m->w;
    FmtBuild *b = w->b;
    unsigned flags = w->axis->axis->flags;
    int n = 0;

    if (!w->root)
        m->col[n++] = b->pos;
    for (int k = 0; k < w->out->ncoord; k++)
        if (w->axis->load[k] != NULL) {
            m->stored[k] = fmt_eval(&b->eval, w->axis->load[k]);
            if (flags & (AX_SORTED | AX_UNIQUE) && n < LIMIT_COLUMNS)
                m->col[n++] = m->stored[k];
            else if (flags & (AX_SORTED | AX_UNIQUE))
                fmt_refuse(b, ST_LIMIT, "more coordinates than can be sorted by");
        }
    m->unique = flags & AX_UNIQUE;
    m->sort = (FmtSort){ .col = m->col, .ncol = n, .prefix = !w->root, .n = b->eval.n,
                         .whole = m->unique };
    if (w->last && !m->unique && b->eval.list.data == NULL && w->axis->axis->extent == X_SEG)
        m->sort.keep = b->arena;
    fmt_sort(b->run, &m->sort);
}

static void make_room(Numbered *m)
{
    FmtWork *w = m->w;
    int64_t total = w->out->total;

    for (int k = 0; k < w->out->ncoord; k++)
        if (w->axis->load[k] != NULL)
            w->out->coord[k] = fmt_coord_room(w, k, m->apart);
    if (!w->last)
        w->to = fmt_column(w->b->run, 0, total > 0 ? total - 1 : 0);
    else if (m->sort.kept)
        w->b->part->entry = (Array){ m->sort.order.data, total, T_i32 };
    else
        w->b->part->entry = m->apart ? fmt_blank(w, total, 0, w->b->eval.from->n)
                                     : fmt_room(w, total, 0, w->b->eval.from->n);
}

void fmt_place_numbered(FmtWork *w)
{
    Numbered m = { .w = w };
    const FmtRun *run = w->b->run;

    sort(&m);
    fmt_each(run, w->b->blocks, count_begins, &m);
    for (int64_t b = 0; b < w->b->blocks; b++)
        m.before[b + 1] += m.before[b];
    make_starts(&m);
    set_extent(&m);
    make_room(&m);
    fmt_each(run, w->b->blocks, place, &m);
    check(&m);
    if (w->last)
        fmt_see(w->b);
    fmt_sorted(run, &m.sort);
    for (int k = 0; k < w->out->ncoord; k++)
        if (w->axis->load[k] != NULL)
            fmt_done(&w->b->eval, &m.stored[k]);
}
