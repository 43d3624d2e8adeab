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

static int find(const LoopIndex *x, int n, const int *window, const LoopIndex *like, int64_t at)
{
    for (int i = 0; i < n; i++)
        if (window[i] < 0 && x[i].constant == at && loop_is_near(&x[i], like))
            return i;
    return -1;
}

/* The lowest of those that are near x[i] and in no window. */
static int lowest(const LoopIndex *x, int n, const int *window, const bool *alone, int i)
{
    for (int k = 0; k < n; k++)
        if (window[k] < 0 && !alone[k] && loop_is_near(&x[k], &x[i]) &&
            x[k].constant < x[i].constant)
            i = k;
    return i;
}

void loop_windows(Prog *p, const LoopIndex *x, int n, int *window)
{
    bool *alone = arena_array(p->arena, n, sizeof *alone);

    for (int i = 0; i < n; i++)
        window[i] = -1;
    for (int i = 0; i < n;) {
        int first = lowest(x, n, window, alone, i), all = 0;

        if (window[i] >= 0 || alone[i] || x[i].stride < 2 || x[i].stride > LOOP_WINDOW) {
            i++;
            continue;
        }
        while (all < x[i].stride && find(x, n, window, &x[i], x[first].constant + all) >= 0)
            all++;
        alone[first] = all < x[i].stride;
        for (int k = 0; k < all && !alone[first]; k++)
            window[find(x, n, window, &x[i], x[first].constant + k)] = first;
    }
}

/* From a cell on: how many neighbours there are, one after the other. */
static int run_from(const LoopIndex *x, int n, const int *first, int i)
{
    int all = 1;

    while (find(x, n, first, &x[i], x[i].constant + all) >= 0)
        all++;
    return all;
}

void loop_columns(Prog *p, const LoopIndex *x, int n, int lanes, int *first)
{
    int *none = arena_array(p->arena, n, sizeof *none), steps = 0;

    while (lanes >> steps > 1)
        steps++;
    for (int i = 0; i < n; i++)
        first[i] = none[i] = -1;
    for (int i = 0; i < n; i++) {
        int all, rest;

        if (x[i].stride < lanes || find(x, n, none, &x[i], x[i].constant - 1) >= 0)
            continue;
        all = run_from(x, n, none, i);
        rest = all % lanes;
        if (all < lanes || 2 * rest <= steps + 1)
            all -= rest;
        for (int k = 0; k < all; k++) {
            int from = k - k % lanes <= all - lanes ? k - k % lanes : all - lanes;

            first[find(x, n, none, &x[i], x[i].constant + k)] =
                find(x, n, none, &x[i], x[i].constant + from);
        }
    }
}

/* Whether the element is in a row of its own for each iteration, and the last one of it that is
 * used. */
static bool is_last(const LoopIndex *x, int n, int i)
{
    bool last = x[i].n == 0 && x[i].stride > 1 && x[i].constant >= 0 &&
                x[i].constant < x[i].stride && x[i].constant < INT_MAX;

    for (int k = 0; k < n && last; k++)
        last = !loop_is_near(&x[k], &x[i]) || x[k].constant <= x[i].constant;
    return last;
}

LoopIndex *loop_gaps(Prog *p, const LoopIndex *x, int n, int **like, int *count)
{
    LoopIndex *gap = NULL;
    int *none = arena_array(p->arena, n, sizeof *none), cap = 0, cap_like = 0;

    *count = 0;
    for (int i = 0; i < n; i++)
        none[i] = -1;
    for (int i = 0; i < n; i++) {
        int used = 0;

        for (int k = 0; k < n && is_last(x, n, i); k++)
            used += loop_is_near(&x[k], &x[i]);
        for (int64_t at = 0; used > x[i].constant / 2 && at < x[i].constant; at++) {
            if (find(x, n, none, &x[i], at) >= 0)
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
