/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Flat indices as sums: how far one moves with a local, what constant stands in it, and the rest,
 * by which two elements are seen to be neighbours. */
#include "ir/loop.h"

#include <limits.h>

static bool mentions(Expr *e, const Local *l)
{
    bool found = e->op == OP_local && e->local == l;

    for (int i = 0; i < e->nargs && !found; i++)
        found = mentions(e->arg[i], l);
    return found;
}

static bool add_leaf(LoopIndex *x, Expr *e, int64_t times)
{
    int at;

    if (x->n == LOOP_LEAVES)
        return false;
    for (at = x->n++; at > 0 && x->leaf[at - 1]->id > e->id; at--) {
        x->leaf[at] = x->leaf[at - 1];
        x->times[at] = x->times[at - 1];
    }
    x->leaf[at] = e;
    x->times[at] = times;
    return true;
}

/* Adds e, so many times. */
static bool take(LoopIndex *x, Expr *e, const Local *l, int64_t times)
{
    int64_t v;

    if (e->op == OP_add)
        return take(x, e->arg[0], l, times) && take(x, e->arg[1], l, times);
    for (int i = 0; i < 2 && e->op == OP_mul; i++)
        if (e->arg[i]->op == OP_int)
            return !int_mul(times, e->arg[i]->i, &v) && take(x, e->arg[1 - i], l, v);
    if (e->op == OP_int)
        return !int_mul(times, e->i, &v) && !int_add(x->constant, v, &x->constant);
    if (e->op == OP_local && e->local == l)
        return !int_add(x->stride, times, &x->stride);
    return !mentions(e, l) && add_leaf(x, e, times);
}

bool loop_index(Expr *index, const Local *l, LoopIndex *out)
{
    *out = (LoopIndex){ 0 };
    return take(out, index, l, 1) && (out->stride != 0 || !mentions(index, l)); /* 0 * l */
}

bool loop_index_of(Expr *cell, const Local *l, LoopIndex *out)
{
    bool good = loop_index(cell->arg[0], l, out);

    out->buf = cell->buf;
    return good;
}

bool loop_is_near(const LoopIndex *a, const LoopIndex *b)
{
    bool same = a->buf == b->buf && a->stride == b->stride && a->n == b->n;

    for (int i = 0; i < a->n && same; i++)
        same = a->leaf[i] == b->leaf[i] && a->times[i] == b->times[i];
    return same;
}

typedef struct Near { /* indices by what they have in common, and by their constants */
    const LoopIndex *x;
    int n;
    int *kind; /* of each the first one that is near it */
    uint32_t cap;
    int *head, *next; /* those of one hash, in ascending order */
} Near;

static uint32_t slot_of(const Near *m, uint64_t h)
{
    return (uint32_t)(h & (m->cap - 1));
}

static uint64_t hash_of_kind(const LoopIndex *x)
{
    uint64_t h = hash_int(hash_int(0, (uint64_t)x->stride), (uint64_t)x->n);

    h = hash_int(h, x->buf == NULL ? 0 : (uint64_t)x->buf->id + 1);
    for (int i = 0; i < x->n; i++)
        h = hash_int(hash_int(h, x->leaf[i]->id), (uint64_t)x->times[i]);
    return h;
}

static uint32_t slot_at(const Near *m, int kind, int64_t constant)
{
    return slot_of(m, hash_int(hash_int(0, (uint64_t)kind), (uint64_t)constant));
}

static void empty_slots(Near *m)
{
    for (uint32_t i = 0; i < m->cap; i++)
        m->head[i] = -1;
}

static void push(Near *m, uint32_t slot, int i)
{
    m->next[i] = m->head[slot];
    m->head[slot] = i;
}

static void find_kinds(Near *m)
{
    empty_slots(m);
    for (int i = 0; i < m->n; i++) {
        uint32_t slot = slot_of(m, hash_of_kind(&m->x[i]));
        int k = m->head[slot];

        while (k >= 0 && !loop_is_near(&m->x[k], &m->x[i]))
            k = m->next[k];
        m->kind[i] = k < 0 ? i : k;
        if (k < 0)
            push(m, slot, i);
    }
}

static Near near_of(Prog *p, const LoopIndex *x, int n)
{
    Near m = { .x = x, .n = n, .cap = 8 };

    while (m.cap < 2 * (uint32_t)n)
        m.cap *= 2;
    m.kind = arena_array(p->arena, n, sizeof *m.kind);
    m.next = arena_array(p->arena, n, sizeof *m.next);
    m.head = arena_array(p->arena, m.cap, sizeof *m.head);
    find_kinds(&m);
    empty_slots(&m);
    for (int i = n - 1; i >= 0; i--)
        push(&m, slot_at(&m, m.kind[i], x[i].constant), i);
    return m;
}

/* The first one of a kind with this constant that is not in a window (NULL: there are none). */
static int find(const Near *m, const int *window, int kind, int64_t constant)
{
    for (int i = m->head[slot_at(m, kind, constant)]; i >= 0; i = m->next[i])
        if (m->kind[i] == kind && m->x[i].constant == constant &&
            (window == NULL || window[i] < 0))
            return i;
    return -1;
}

typedef struct Spot {
    int64_t constant;
    int kind, i;
} Spot;

static int compare_spots(const void *a, const void *b)
{
    const Spot *x = a, *y = b;

    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    if (x->constant != y->constant)
        return x->constant < y->constant ? -1 : 1;
    return x->i < y->i ? -1 : x->i > y->i;
}

/* Those of each kind by rising constant; from[kind] becomes the first of them. */
static Spot *sorted_spots(Prog *p, const Near *m, int *from)
{
    Spot *spot = arena_array(p->arena, m->n, sizeof *spot);

    for (int i = 0; i < m->n; i++)
        spot[i] = (Spot){ m->x[i].constant, m->kind[i], i };
    array_sort(spot, m->n, sizeof *spot, compare_spots);
    for (int i = m->n - 1; i >= 0; i--)
        from[spot[i].kind] = i;
    return spot;
}

/* From the lowest of its kind on that is in no window: as many neighbours as a window has, or it
 * stays alone. */
void loop_windows(Prog *p, const LoopIndex *x, int n, int *window)
{
    bool *alone = arena_array(p->arena, n, sizeof *alone);
    int *from = arena_array(p->arena, n, sizeof *from);
    Near m = near_of(p, x, n);
    const Spot *spot = sorted_spots(p, &m, from);

    for (int i = 0; i < n; i++)
        window[i] = -1;
    for (int i = 0; i < n;) {
        int kind = m.kind[i], all = 0, first;

        if (window[i] >= 0 || alone[i] || x[i].stride < 2 || x[i].stride > LOOP_WINDOW) {
            i++;
            continue;
        }
        while (window[spot[from[kind]].i] >= 0 || alone[spot[from[kind]].i])
            from[kind]++;
        first = spot[from[kind]].i;
        while (all < x[i].stride && find(&m, window, kind, x[first].constant + all) >= 0)
            all++;
        alone[first] = all < x[i].stride;
        for (int k = 0; k < all && !alone[first]; k++)
            window[find(&m, window, kind, x[first].constant + k)] = first;
    }
}

/* From a cell on: how many neighbours there are, one after the other. */
static int run_from(const Near *m, int i)
{
    int all = 1;

    while (find(m, NULL, m->kind[i], m->x[i].constant + all) >= 0)
        all++;
    return all;
}

void loop_columns(Prog *p, const LoopIndex *x, int n, int lanes, int *first)
{
    Near m = near_of(p, x, n);
    int steps = 0;

    while (lanes >> steps > 1)
        steps++;
    for (int i = 0; i < n; i++)
        first[i] = -1;
    for (int i = 0; i < n; i++) {
        int all, rest;

        if (x[i].stride < lanes || find(&m, NULL, m.kind[i], x[i].constant - 1) >= 0)
            continue;
        all = run_from(&m, i);
        rest = all % lanes;
        if (all < lanes || 2 * rest <= steps + 1)
            all -= rest;
        for (int k = 0; k < all; k++) {
            int from = k - k % lanes <= all - lanes ? k - k % lanes : all - lanes;

            first[find(&m, NULL, m.kind[i], x[i].constant + k)] =
                find(&m, NULL, m.kind[i], x[i].constant + from);
        }
    }
}

/* Whether an element is in a row of its own for each iteration. */
static bool is_in_row(const LoopIndex *x)
{
    return x->n == 0 && x->stride > 1 && x->constant >= 0 && x->constant < x->stride &&
           x->constant < INT_MAX;
}

LoopIndex *loop_gaps(Prog *p, const LoopIndex *x, int n, int **like, int *count)
{
    LoopIndex *gap = NULL;
    Near m = near_of(p, x, n);
    int *used = arena_array(p->arena, n, sizeof *used), cap = 0, cap_like = 0;
    int64_t *last = arena_array(p->arena, n, sizeof *last);

    *count = 0;
    for (int i = 0; i < n; i++) {
        int k = m.kind[i];

        last[k] = used[k] == 0 || x[i].constant > last[k] ? x[i].constant : last[k];
        used[k]++;
    }
    for (int i = 0; i < n; i++) {
        bool ends = is_in_row(&x[i]) && x[i].constant == last[m.kind[i]] &&
                    used[m.kind[i]] > x[i].constant / 2;

        for (int64_t at = 0; ends && at < x[i].constant; at++) {
            if (find(&m, NULL, m.kind[i], at) >= 0)
                continue;
            gap = arena_grow(p->arena, gap, *count, &cap, sizeof *gap);
            *like = arena_grow(p->arena, *like, *count, &cap_like, sizeof **like);
            gap[*count] = x[i];
            gap[*count].constant = at;
            (*like)[(*count)++] = i;
        }
    }
    return gap;
}
