/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Integer expressions that steps make: folded, with constants last, so that what is the same looks
 * the same. */
#include "sched/step.h"

static Expr *simple(Prog *p, Expr *e)
{
    Memo memo = { 0 };

    return ir_simplify(p, e, &memo);
}

static bool is_int(Expr *e, int64_t v)
{
    return e->op == OP_int && e->i == v;
}

Expr *step_add(Prog *p, Expr *a, Expr *b)
{
    if (is_int(a, 0))
        return b;
    if (a->op == OP_int && b->op != OP_int)
        return step_add(p, b, a);
    if (b->op == OP_int && a->op == OP_add && a->arg[1]->op == OP_int)
        return step_add(p, a->arg[0], simple(p, ir_op2(p, OP_add, a->arg[1], b)));
    return simple(p, ir_op2(p, OP_add, a, b));
}

Expr *step_sub(Prog *p, Expr *a, Expr *b)
{
    if (a == b)
        return ir_int(p, 0);
    if (a->op == OP_add && a->arg[0] == b)
        return a->arg[1];
    if (a->op == OP_add && a->arg[1] == b)
        return a->arg[0];
    return simple(p, ir_op2(p, OP_sub, a, b));
}

Expr *step_mul(Prog *p, Expr *a, Expr *b)
{
    if (is_int(a, 0) || is_int(b, 0))
        return ir_int(p, 0);
    if (a->op == OP_int && b->op != OP_int)
        return step_mul(p, b, a);
    return simple(p, ir_op2(p, OP_mul, a, b));
}

Expr *step_div(Prog *p, Expr *a, int64_t by)
{
    return simple(p, ir_op2(p, OP_div, a, ir_int(p, by)));
}

Expr *step_least(Prog *p, Expr *a, Expr *b)
{
    return a == b ? a : simple(p, ir_op2(p, OP_min, a, b));
}

/* Constants of an integer sum come together. */
static Expr *simpler(Prog *p, Expr *e, void *ctx)
{
    e = ir_simplify(p, e, ctx);
    return e->op == OP_add && e->type == T_i64 ? step_add(p, e->arg[0], e->arg[1]) : e;
}

Node *step_simplified(Prog *p, Node *n)
{
    Memo memo = { 0 }, known = { 0 };

    return loop_rewrite(p, n, simpler, &known, &memo);
}
