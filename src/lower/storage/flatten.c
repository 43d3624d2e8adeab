/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Gives each element one flat index: for each dimension, the index so far times the extent, plus
 * the next index.  An input with strides gets the sum of its indices times their strides. */
#include "lower/storage/storage_int.h"

/* Sums in an index, with their constants last.  What `fits` asks for is never touched: there the
 * order of a sum decides whether it overflows. */
static Expr *tidy(Prog *p, Expr *e, void *ctx)
{
    (void)ctx;
    return e->op == OP_add && e->type == T_i64 ? tree_add(p, e->arg[0], e->arg[1]) : e;
}

static Expr *strided(Prog *p, Expr *e, Memo *memo)
{
    Expr *at = ir_int(p, 0);

    for (int d = 0; d < e->nargs; d++)
        at = tree_add(p, at, tree_mul(p, ir_rewrite(p, e->arg[d], tidy, NULL, memo),
                                        lower_stride(p, e->buf, d)));
    return at;
}

static Expr *flatten(Prog *p, Expr *e, void *ctx)
{
    Dim dim[IR_MAX_FULL];
    Memo memo = { 0 };
    Expr *at;

    (void)ctx;
    if (e->op != OP_cell)
        return e;
    if (e->buf->stride != NULL) {
        at = strided(p, e, &memo);
        return loop_cell(p, e->buf, &at, 1, 1);
    }
    at = e->nargs == 0 ? ir_int(p, 0) : ir_rewrite(p, e->arg[0], tidy, NULL, &memo);
    if (e->nargs > 1)
        ir_dims(e->buf, dim);
    for (int d = 1; d < e->nargs; d++)
        at = tree_add(p, tree_mul(p, at, lower_dim_extent(p, e->buf, dim[d])),
                       ir_rewrite(p, e->arg[d], tidy, NULL, &memo));
    return loop_cell(p, e->buf, &at, 1, 1);
}

Node *lower_flattened(Prog *p, Node *phase)
{
    Memo memo = { 0 };

    return loop_rewrite(p, phase, flatten, NULL, &memo);
}

void lower_flatten(Kernel *k)
{
    for (int i = 0; i < k->n; i++)
        k->phase[i] = lower_flattened(k->p, k->phase[i]);
    lower_done(k, STAGE_LOOPS);
}
