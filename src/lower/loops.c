/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * One flat index an element: dimension by dimension, the index so far times the extent, plus the
 * next index. */
#include "lower/lower_int.h"

static Expr *flatten(Prog *p, Expr *e, void *ctx)
{
    Dim dim[IR_MAX_FULL];
    Expr *at;

    (void)ctx;
    if (e->op == OP_add && e->type == T_i64)
        return lower_add(p, e->arg[0], e->arg[1]);
    if (e->op != OP_cell || e->nargs == 1)
        return e;
    if (e->nargs == 0) {
        at = ir_int(p, 0);
        return loop_cell(p, e->buf, &at, 1, 1);
    }
    ir_dims(e->buf, dim);
    at = e->arg[0];
    for (int d = 1; d < e->nargs; d++)
        at = lower_add(p, lower_mul(p, at, lower_dim_extent(p, e->buf, dim[d])), e->arg[d]);
    return loop_cell(p, e->buf, &at, 1, 1);
}

void lower_loops(Kernel *k)
{
    for (int i = 0; i < k->n; i++) {
        Memo memo = { 0 };

        k->phase[i] = loop_rewrite(k->p, k->phase[i], flatten, NULL, &memo);
    }
    lower_done(k, STAGE_LOOPS);
}
