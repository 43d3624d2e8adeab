/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Built axes: what |= inserts is kept as rows (parent, coordinates...), and sorted into starts and
 * coordinates when the last statement that inserts has run. */
#include "interp/interp_int.h"

#include <string.h>

static int compare_rows(const Rows *r, int64_t i, int64_t j)
{
    const int64_t *a = r->v + i * r->w, *b = r->v + j * r->w;

    for (int k = 0; k < r->w; k++)
        if (a[k] != b[k])
            return a[k] < b[k] ? -1 : 1;
    return 0;
}

static void swap_rows(Rows *r, int64_t i, int64_t j)
{
    for (int k = 0; k < r->w; k++) {
        int64_t t = r->v[i * r->w + k];

        r->v[i * r->w + k] = r->v[j * r->w + k];
        r->v[j * r->w + k] = t;
    }
}

/* Lets row i sink to its place in the heap of the first n rows, the largest on top. */
static void sink(Rows *r, int64_t i, int64_t n)
{
    for (int64_t c = 2 * i + 1; c < n; c = 2 * i + 1) {
        if (c + 1 < n && compare_rows(r, c + 1, c) > 0)
            c++;
        if (compare_rows(r, i, c) >= 0)
            return;
        swap_rows(r, i, c);
        i = c;
    }
}

/* Heap sort: in place, and never slow. */
void interp_sort(Rows *r)
{
    int64_t n = 0;

    for (int64_t i = r->n / 2; i-- > 0;)
        sink(r, i, r->n);
    for (int64_t end = r->n; end-- > 1;) {
        swap_rows(r, 0, end);
        sink(r, 0, end);
    }
    for (int64_t i = 0; i < r->n; i++)
        if (i == 0 || compare_rows(r, i, n - 1) != 0)
            swap_rows(r, i, n++);
    r->n = n;
}

/* Room for one more row: by dropping rows that are there twice, or else by more memory. */
int64_t *interp_row(Arena *arena, Rows *r)
{
    if (r->n == r->cap) {
        interp_sort(r);
        if (r->n >= r->cap / 2) {
            int64_t cap = r->cap == 0 ? 16 : r->cap * 2;
            int64_t *v = arena_array(arena, cap, sizeof *v * (size_t)r->w);

            if (r->n > 0)
                memcpy(v, r->v, (size_t)(r->n * r->w) * sizeof *v);
            r->v = v;
            r->cap = cap;
        }
    }
    return r->v + r->n++ * r->w;
}

void interp_insert(Run *x)
{
    const Assign *a = x->job;
    const Axis *u = a->out->axis;
    AxisState *s = &x->axis[u->id];
    int64_t row[IR_MAX_RANK + 1] = { 0 };

    if (a->guard != NULL && !interp_eval(x, a->guard).i)
        return;
    if (u->parent != NULL)
        row[0] = interp_index(x, a->out->arg[0], &(Spot){ .axis = u->parent, .below = u->name });
    if (row[0] < 0)
        interp_fail(x, "%s has no entry with that coordinate, so nothing can be inserted under it",
                    u->parent->name);
    for (int k = 0; k < u->ncoord; k++) {
        int64_t c = interp_eval(x, a->value->op == OP_tuple ? a->value->arg[k] : a->value).i;

        if (c < 0 || c >= s->bound[k])
            interp_fail(x, "coordinate %lld inserted into %s is outside 0..%lld", (long long)c,
                        u->name, (long long)s->bound[k]);
        row[k + 1] = c;
    }
    memcpy(interp_row(x->arena, &s->rows), row, (size_t)s->rows.w * sizeof *row);
}

void interp_freeze(Run *x, const Axis *u, Rows *r, int64_t parents)
{
    int64_t q = 0;
    Array *start = &x->env->start[u->id], *coord = x->env->coord[u->id];

    interp_sort(r);
    interp_allot(x, start, parents + 1, T_i64, u->name, ".start");
    for (int64_t i = 0; i <= r->n; i++)
        while (q <= parents && (i == r->n || q <= r->v[i * r->w]))
            ((int64_t *)start->data)[q++] = i;
    for (int k = 0; k < u->ncoord; k++) {
        Text part = { .arena = x->arena };

        text_f(&part, ".%s", u->coord[k].name != NULL ? u->coord[k].name : "coord");
        interp_allot(x, &coord[k], r->n, T_i64, u->name, part.s);
        for (int64_t i = 0; i < r->n; i++)
            ((int64_t *)coord[k].data)[i] = r->v[i * r->w + k + 1];
    }
}
