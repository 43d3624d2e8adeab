/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Indices: as a base and a constant, how far two are apart, how far one moves with a variable. */
#include "tree/tree.h"

Expr *tree_split_index(Expr *e, int64_t *constant)
{
    *constant = 0;
    if (e->op == OP_int)
        return *constant = e->i, NULL;
    for (int i = 0; i < 2 && e->op == OP_add; i++)
        if (e->arg[i]->op == OP_int)
            return *constant = e->arg[i]->i, e->arg[1 - i];
    return e;
}

int64_t tree_apart(Expr *a, Expr *b)
{
    int64_t x, y, d;

    if (tree_split_index(a, &x) != tree_split_index(b, &y) || int_sub(x, y, &d) || d == INT64_MIN)
        return 0;
    return d < 0 ? -d : d;
}

bool tree_differ(Expr *a, Expr *b)
{
    return tree_apart(a, b) != 0;
}

bool tree_is_stepped(Prog *p, Expr *e, Local *l)
{
    Memo memo = { 0 };
    bool a, b;

    if (e->op != OP_add && e->op != OP_mul)
        return e == loop_use(p, l);
    a = tree_uses(p, e->arg[0], l, &memo);
    b = tree_uses(p, e->arg[1], l, &memo);
    return a != b && tree_is_stepped(p, e->arg[a ? 0 : 1], l);
}

int tree_stride(Expr *e, bool (*moves)(void *ctx, Expr *), void *ctx)
{
    int a, b;

    if (!moves(ctx, e))
        return 0;
    if (e->op == OP_local)
        return 1;
    if (e->op != OP_add && e->op != OP_sub)
        return TREE_NOT_LINEAR;
    a = tree_stride(e->arg[0], moves, ctx);
    b = tree_stride(e->arg[1], moves, ctx);
    if (a == TREE_NOT_LINEAR || b == TREE_NOT_LINEAR)
        return TREE_NOT_LINEAR;
    return e->op == OP_add ? a + b : a - b;
}
