/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Sums and products of integers in one form: folded, the constant of a sum last, so that equal
 * numbers are the same expression wherever a pass or a step makes them. */
#include "tree/tree.h"

Expr *tree_simple(Prog *p, Expr *e)
{
    Memo memo = { 0 };

    return ir_simplify(p, e, &memo);
}

static bool is_int(Expr *e, int64_t v)
{
    return e->op == OP_int && e->i == v;
}

Expr *tree_plus(Prog *p, Expr *a, Expr *b)
{
    Expr *sum;

    if (is_int(a, 0) || is_int(b, 0))
        return is_int(a, 0) ? b : a;
    if (a->op == OP_int && b->op != OP_int)
        return tree_plus(p, b, a);
    if (b->op != OP_int || a->op != OP_add || a->arg[1]->op != OP_int)
        return tree_simple(p, ir_op2(p, OP_add, a, b));
    sum = tree_simple(p, ir_op2(p, OP_add, a->arg[1], b));
    if (sum->op != OP_int) /* it does not fit, and stays as it is */
        return ir_op2(p, OP_add, a, b);
    return tree_plus(p, a->arg[0], sum);
}

Expr *tree_add(Prog *p, Expr *a, Expr *b)
{
    bool constant = b->op == OP_int;

    if (a->op == OP_int && !constant)
        return tree_add(p, b, a);
    if (!is_int(a, 0) && !constant && a->op == OP_add && a->arg[1]->op == OP_int)
        return tree_plus(p, tree_add(p, a->arg[0], b), a->arg[1]);
    if (!is_int(a, 0) && b->op == OP_add)
        return tree_add(p, tree_add(p, a, b->arg[0]), b->arg[1]);
    if (b->op == OP_sub && b->arg[1] == a)
        return b->arg[0];
    return tree_plus(p, a, b);
}

Expr *tree_sub(Prog *p, Expr *a, Expr *b)
{
    if (is_int(b, 0))
        return a;
    if (a == b)
        return ir_int(p, 0);
    for (int i = 0; i < 2 && a->op == OP_add; i++)
        if (a->arg[i] == b)
            return a->arg[1 - i];
    return tree_simple(p, ir_op2(p, OP_sub, a, b));
}

Expr *tree_mul(Prog *p, Expr *a, Expr *b)
{
    if (is_int(a, 0) || is_int(b, 1))
        return a;
    if (is_int(b, 0) || is_int(a, 1))
        return b;
    return tree_simple(p, ir_op2(p, OP_mul, a, b));
}

Expr *tree_times(Prog *p, Expr *a, Expr *b)
{
    return a->op == OP_int ? tree_mul(p, b, a) : tree_mul(p, a, b);
}

Expr *tree_div(Prog *p, Expr *a, int64_t by)
{
    return tree_simple(p, ir_op2(p, OP_div, a, ir_int(p, by)));
}

Expr *tree_least(Prog *p, Expr *a, Expr *b)
{
    return a == b ? a : tree_simple(p, ir_op2(p, OP_min, a, b));
}

int tree_power_below(int64_t n)
{
    int r = 1;

    while (2 * r <= n)
        r *= 2;
    return r;
}
