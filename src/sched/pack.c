/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * pack LABEL ARRAY by N: copies an operand into panels of N columns, one after the other, before a
 * statement runs.  The statement reads the copy, so elements that a loop over one panel gathers lie
 * close together. */
#include "sched/step.h"

#include <string.h>

enum { LIMIT_WIDTH = 1 << 16 };

typedef struct Pack {
    StepCall *call;
    Buf *buf, *copy;
    int64_t width;
    int rank;
    Expr *extent[IR_MAX_FULL];
    int reads;
} Pack;

static void check(Pack *k)
{
    StepCall *c = k->call;
    Dim dim[IR_MAX_FULL];

    k->rank = ir_dims(k->buf, dim);
    if (k->buf->kind == B_CONST || k->buf->of != NULL || loop_is_own(k->buf))
        step_refuse(c, "%s is no operand of the program", k->buf->name);
    if (k->rank < 2 || k->rank >= IR_MAX_RANK)
        step_refuse(c, "%s has no columns: it needs two dimensions", k->buf->name);
    for (int d = 0; d < k->rank; d++) {
        k->extent[d] = step_extent(c->p, k->buf, d);
        if (k->extent[d] == NULL)
            step_refuse(c, "the extents of %s are not plain", k->buf->name);
    }
    if (dim[k->rank - 1].first != dim[k->rank - 1].last ||
        k->buf->full[k->buf->nfull - 1]->parent != NULL)
        step_refuse(c, "the columns of %s are not the same in all rows", k->buf->name);
}

static Expr *panels(const Pack *k)
{
    Prog *p = k->call->p;

    return tree_div(p, tree_plus(p, k->extent[k->rank - 1], ir_int(p, k->width - 1)), k->width);
}

/* Panel, rows, columns of a panel. */
static Buf *copy_of(Pack *k)
{
    Prog *p = k->call->p;
    Axis *axis[IR_MAX_FULL + 1];
    int n = k->buf->nfull;

    axis[0] = ir_dense(p, panels(k));
    memcpy(axis + 1, k->buf->full, (size_t)(n - 1) * sizeof *axis);
    axis[n] = ir_dense(p, ir_int(p, k->width));
    return step_new_array(p, k->buf, "pack", axis, n + 1);
}

static Expr *copy_cell(const Pack *k, Expr *panel, Expr *const *rows, Expr *column)
{
    Expr *at[IR_MAX_FULL + 1];

    at[0] = panel;
    memcpy(at + 1, rows, (size_t)(k->rank - 1) * sizeof *at);
    at[k->rank] = column;
    return loop_cell(k->call->p, k->copy, at, k->rank + 1, 1);
}

/* block * N + x of a loop over N: the panel is the block. */
static bool is_split(const Pack *k, const Node *phase, Expr *e)
{
    const Node *in = e->op == OP_add ? step_binder(phase, e->arg[1]) : NULL;
    Expr *hi = in != NULL && in->kind == N_FOR ? in->hi : NULL;

    if (hi != NULL && hi->op == OP_min)
        hi = hi->arg[0];
    return hi != NULL && hi->op == OP_int && hi->i <= k->width && in->lo->op == OP_int &&
           in->lo->i == 0 && e->arg[0]->op == OP_mul && e->arg[0]->arg[1]->op == OP_int &&
           e->arg[0]->arg[1]->i == k->width;
}

typedef struct Use {
    Pack *pack;
    const Node *phase;
} Use;

static Expr *from_copy(Prog *p, Expr *e, void *ctx)
{
    const Use *u = ctx;
    Pack *k = u->pack;
    Expr *col, *n = ir_int(p, k->width);

    if (e->op != OP_cell || e->buf != k->buf)
        return e;
    k->reads++;
    col = e->arg[k->rank - 1];
    if (is_split(k, u->phase, col))
        return copy_cell(k, col->arg[0]->arg[0], e->arg, col->arg[1]);
    return copy_cell(k, tree_div(p, col, k->width), e->arg, ir_op2(p, OP_mod, col, n));
}

/* for rows: for panels: for columns: copy = operand */
static Node *copy_phase(Pack *k)
{
    Prog *p = k->call->p;
    Local *x[IR_MAX_FULL + 1];
    Expr *hi[IR_MAX_FULL + 1], *at[IR_MAX_FULL + 1], *first;
    int rows = k->rank - 1;
    Node store = { .kind = N_STORE, .op = A_SET, .label = k->copy->name };

    for (int d = 0; d <= k->rank; d++) {
        x[d] = d == rows ? loop_local(p, "panel", T_i64, 1) : step_counter(p, "x", d);
        at[d] = loop_use(p, x[d]);
        hi[d] = d < rows ? k->extent[d] : panels(k);
    }
    first = tree_times(p, at[rows], ir_int(p, k->width));
    hi[k->rank] = tree_least(p, ir_int(p, k->width), tree_sub(p, k->extent[rows], first));
    store.out = copy_cell(k, at[rows], at, at[k->rank]);
    at[rows] = tree_plus(p, first, at[k->rank]);
    store.value = loop_cell(p, k->buf, at, k->rank, 1);
    return step_nest(p, store.label, x, hi, k->rank + 1, loop_node(p, &store));
}

/* All phases of the statement read the copy, which is made before the first. */
static void put(Pack *k, const char *label)
{
    StepCall *c = k->call;
    NodeList to = { 0 };

    for (int i = 0; i < c->n; i++) {
        Use u = { k, c->phase[i] };
        Memo memo = { 0 };
        int before = k->reads;
        Node *n = c->phase[i];

        if (strcmp(n->label, label) == 0)
            n = loop_rewrite(c->p, n, from_copy, &u, &memo);
        if (k->reads > 0 && loop_writes(c->phase[i], k->buf))
            step_refuse(c, "%s is written in %s", k->buf->name, c->phase[i]->label);
        if (before == 0 && k->reads > 0)
            tree_append(c->p, &to, copy_phase(k));
        tree_append(c->p, &to, n);
    }
    c->phase = to.node;
    c->n = to.n;
}

void step_pack(StepCall *c)
{
    Pack k = { .call = c };

    step_count(c, 4, 4);
    if (strcmp(c->line->word[2], "by") != 0)
        step_refuse(c, "`by` and a number come after the array, not %s", c->line->word[2]);
    k.buf = step_array(c, c->line->word[1]);
    k.width = step_int(c, 3, 1, LIMIT_WIDTH);
    check(&k);
    k.copy = copy_of(&k);
    put(&k, c->line->word[0]);
    if (k.reads == 0)
        step_refuse(c, "no phase %s reads %s", c->line->word[0], k.buf->name);
}
