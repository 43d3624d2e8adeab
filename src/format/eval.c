/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Evaluates a rule's expressions for many entries: each operator runs over a few hundred entries at
 * a time, which stay in the first cache.  group.c evaluates functions of many entries (count, rank,
 * index, place) before. */
#include "format/format_int.h"

#include <string.h>

#define FAULT INT64_MIN

typedef struct FmtKnown FmtKnown;
struct FmtKnown {
    const FmtExpr *expr;
    FmtCol value;
    FmtKnown *next;
};

static const FmtCol *known(const FmtEval *c, const FmtExpr *e)
{
    for (const FmtKnown *k = c->known; k != NULL; k = k->next)
        if (fmt_expr_cmp(k->expr, e) == 0)
            return &k->value;
    return NULL;
}

/* x / y and x % y of the same y > 0.  What is not negative and fits 31 bits, which is nearly all,
 * is multiplied by 2^s / y, rounded up, and shifted: exact for 2^s >= 2^31 * y. */
static void divide_by(FmtOp op, int64_t *x, int64_t y, int64_t n)
{
    int shift = 31;
    uint64_t by;

    while (shift < 62 && (uint64_t)1 << (shift - 31) < (uint64_t)y) /* not speed: bits */
        shift++;
    by = ((uint64_t)1 << shift) / (uint64_t)y + 1;
    for (int64_t t = 0; t < n; t++) {
        uint64_t v = (uint64_t)x[t];
        int64_t q;

        if (v >> 31 != 0 || y >> 31 != 0) {
            x[t] = fmt_op(op, x[t], y);
            continue;
        }
        q = (int64_t)(v * by >> shift);
        x[t] = op == F_DIV ? q : x[t] - q * y;
    }
}

/* x becomes x OP y for n values of the same y.  What bounds and parameters are compared with. */
static void operate_with(FmtOp op, int64_t *x, int64_t y, int64_t n)
{
    if ((op == F_DIV || op == F_MOD) && y > 0) {
        divide_by(op, x, y, n);
    } else if (op == F_EQ && y != FAULT) {
        for (int64_t t = 0; t < n; t++)
            x[t] = x[t] == FAULT ? FAULT : x[t] == y;
    } else if (op == F_LT && y != FAULT) {
        for (int64_t t = 0; t < n; t++)
            x[t] = x[t] == FAULT ? FAULT : x[t] < y;
    } else if (op == F_ADD && y != FAULT) {
        for (int64_t t = 0; t < n; t++)
            x[t] = x[t] == FAULT || int_add(x[t], y, &x[t]) ? FAULT : x[t];
    } else {
        for (int64_t t = 0; t < n; t++)
            x[t] = fmt_op(op, x[t], y);
    }
}

static void operate(FmtOp op, int64_t *x, const int64_t *y, int64_t n)
{
    if (op == F_AND) {
        for (int64_t t = 0; t < n; t++)
            x[t] = x[t] == FAULT || y[t] == FAULT ? FAULT : x[t] && y[t];
    } else if (op == F_SUB) {
        for (int64_t t = 0; t < n; t++)
            x[t] = x[t] == FAULT || y[t] == FAULT || int_sub(x[t], y[t], &x[t]) ? FAULT : x[t];
    } else {
        for (int64_t t = 0; t < n; t++)
            x[t] = fmt_op(op, x[t], y[t]);
    }
}

/* Whether it is the same for all entries. */
static bool is_of_sizes(const FmtExpr *e)
{
    if (e->op == F_COORD || e->op >= F_COUNT)
        return false;
    for (int i = 0; i < e->nargs; i++)
        if (!is_of_sizes(e->arg[i]))
            return false;
    return true;
}

static void copy_run(const FmtCol *from, int64_t first, int64_t n, int64_t *out)
{
    if (from->wide)
        memcpy(out, (const int64_t *)from->data + first, (size_t)n * sizeof *out);
    else
        for (int64_t t = 0; t < n; t++)
            out[t] = ((const int32_t *)from->data)[first + t];
}

static void take_coord(const FmtEval *c, int k, int64_t first, int64_t n, int64_t *out)
{
    const Array *a = &c->from->coord[k];
    FmtCol col = { a->data, a->type == T_i64, 0, 0 };

    if (c->list.data == NULL)
        copy_run(&col, first, n, out);
    else
        for (int64_t t = 0; t < n; t++)
            out[t] = fmt_at(&col, fmt_at(&c->list, first + t));
}

void fmt_eval_run(const FmtEval *c, const FmtExpr *e, int64_t from, int64_t n, int64_t *out)
{
    int64_t b[FMT_RUN];
    const FmtCol *there = e->op >= F_COUNT ? known(c, e) : NULL;

    if (there != NULL) {
        copy_run(there, from, n, out);
    } else if (e->op == F_COORD) {
        take_coord(c, (int)e->v, from, n, out);
    } else if (is_of_sizes(e)) {
        int64_t v = fmt_size(e, c->from);

        for (int64_t t = 0; t < n; t++)
            out[t] = v;
    } else {
        fmt_eval_run(c, e->arg[0], from, n, out);
        if (e->nargs == 1) {
            operate_with(e->op, out, 0, n);
        } else if (is_of_sizes(e->arg[1])) {
            operate_with(e->op, out, fmt_size(e->arg[1], c->from), n);
        } else {
            fmt_eval_run(c, e->arg[1], from, n, b);
            operate(e->op, out, b, n);
        }
    }
}

typedef struct Column { /* an expression for all entries */
    FmtEval *c;
    const FmtExpr *expr;
    int64_t blocks;
    FmtCol out;
} Column;

static void eval_block(void *arg, int64_t b)
{
    Column *k = arg;
    int64_t from = fmt_cut(k->c->n, k->blocks, b), end = fmt_cut(k->c->n, k->blocks, b + 1);
    int64_t v[FMT_RUN];

    for (; from < end; from += FMT_RUN) {
        int64_t n = end - from < FMT_RUN ? end - from : FMT_RUN;

        fmt_eval_run(k->c, k->expr, from, n, v);
        for (int64_t t = 0; t < n; t++)
            fmt_set(&k->out, from + t, v[t]);
    }
}

/* Inner functions first. */
void fmt_prepare(FmtEval *c, const FmtExpr *e)
{
    FmtKnown *k;

    if (e->op >= F_COUNT && known(c, e) != NULL)
        return;
    for (int i = 0; i < e->nargs; i++)
        fmt_prepare(c, e->arg[i]);
    if (e->op < F_COUNT)
        return;
    k = arena_alloc(c->run->scratch, sizeof *k);
    k->expr = e;
    k->value = fmt_group(c, e);
    k->next = c->known;
    c->known = k;
}

/* What is there already is not copied: nobody writes to values. */
FmtCol fmt_eval(FmtEval *c, const FmtExpr *e)
{
    Column k = { .c = c, .expr = e, .blocks = fmt_blocks(c->n) };
    const FmtCol *there;
    int64_t lo, hi;

    fmt_prepare(c, e);
    there = e->op >= F_COUNT ? known(c, e) : NULL;
    if (there != NULL)
        return *there;
    if (!fmt_range(c, e, &lo, &hi)) {
        lo = INT64_MIN;
        hi = INT64_MAX;
    }
    if (e->op == F_COORD && c->list.data == NULL)
        return (FmtCol){ c->from->coord[e->v].data, c->from->coord[e->v].type == T_i64, lo, hi };
    k.out = fmt_column(c->run, lo, hi);
    fmt_each(c->run, k.blocks, eval_block, &k);
    return k.out;
}

bool fmt_owns(const FmtEval *c, const FmtCol *column)
{
    for (int k = 0; k < c->from->ncoord; k++)
        if (column->data == c->from->coord[k].data)
            return false;
    for (const FmtKnown *k = c->known; k != NULL; k = k->next)
        if (column->data == k->value.data)
            return false;
    return true;
}

void fmt_done(const FmtEval *c, const FmtCol *column)
{
    if (fmt_owns(c, column))
        fmt_give(c->run, column);
}

void fmt_forget(FmtEval *c)
{
    for (; c->known != NULL; c->known = c->known->next)
        fmt_give(c->run, &c->known->value);
}

int64_t fmt_size(const FmtExpr *e, const FmtEntries *from)
{
    int64_t v[2] = { 0, 0 };

    if (e->op == F_INT || e->op == F_BOUND)
        return e->op == F_INT ? e->v : from->bound[e->v];
    for (int i = 0; i < e->nargs; i++)
        v[i] = fmt_size(e->arg[i], from);
    return fmt_op(e->op, v[0], v[1]);
}
