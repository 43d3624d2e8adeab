/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The chain rule, one case an operator, for both modes: reverse multiplies the cotangent of a node
 * by it, forward the tangent of its argument. */
#include "grad/grad_int.h"

/* 1 - x */
static Expr *one_minus(Grad *g, Expr *x)
{
    return ir_op2(g->p, OP_sub, ir_int(g->p, 1), x);
}

/* x / b, with the sign outside */
static Expr *over(Grad *g, Expr *x, Expr *b)
{
    if (x->op == OP_neg)
        return ir_op1(g->p, OP_neg, ir_op2(g->p, OP_div, x->arg[0], b));
    return ir_op2(g->p, OP_div, x, b);
}

/* y = rsqrt(a): -x y^3 / 2 */
static Expr *by_rsqrt(Grad *g, Expr *x, Expr *y)
{
    return grad_times(g, grad_times(g, x, ir_real(g->p, -0.5)),
                      ir_op2(g->p, OP_mul, ir_op2(g->p, OP_mul, y, y), y));
}

/* silu(a) = a s, s = sigmoid(a): x s (1 + a (1 - s)) */
static Expr *by_silu(Grad *g, Expr *x, Expr *a)
{
    Expr *s = ir_op1(g->p, OP_sigmoid, a);
    Expr *rest = ir_op2(g->p, OP_add, ir_int(g->p, 1), ir_op2(g->p, OP_mul, a, one_minus(g, s)));

    return grad_times(g, grad_times(g, x, s), rest);
}

bool grad_is_flat(Op op, int i)
{
    return op == OP_step || op == OP_sign || op == OP_stop || (op == OP_select && i == 0);
}

Expr *grad_chain(Grad *g, Expr *e, int i, Expr *x, Expr *same)
{
    Expr *a = e->arg[0], *b = e->nargs > 1 ? e->arg[1] : NULL, *y = same != NULL ? same : e;
    Prog *p = g->p;

    switch (e->op) {
    case OP_neg: return grad_minus(g, x);
    case OP_sub: return i == 0 ? x : grad_minus(g, x);
    case OP_mul: return grad_times(g, x, i == 0 ? b : a);
    case OP_div: return i == 0 ? over(g, x, b) : grad_minus(g, grad_times(g, over(g, x, b), y));
    case OP_exp: return grad_times(g, x, y);
    case OP_log: return over(g, x, a);
    case OP_sqrt: return over(g, x, ir_op2(p, OP_mul, ir_int(p, 2), y));
    case OP_rsqrt: return by_rsqrt(g, x, y);
    case OP_sin: return grad_times(g, x, ir_op1(p, OP_cos, a));
    case OP_cos: return grad_minus(g, grad_times(g, x, ir_op1(p, OP_sin, a)));
    case OP_tanh: return grad_times(g, x, one_minus(g, ir_op2(p, OP_mul, y, y)));
    case OP_sigmoid: return grad_times(g, grad_times(g, x, y), one_minus(g, y));
    case OP_silu: return by_silu(g, x, a);
    case OP_relu: return grad_times(g, x, ir_op1(p, OP_step, a));
    case OP_abs: return grad_times(g, x, ir_op1(p, OP_sign, a));
    default: return x; /* add, f32, f64; max, min and select where grad_when holds */
    }
}

Expr *grad_when(Grad *g, Expr *e, int i)
{
    switch (e->op) {
    case OP_max: return ir_op2(g->p, i == 0 ? OP_ge : OP_lt, e->arg[0], e->arg[1]);
    case OP_min: return ir_op2(g->p, i == 0 ? OP_le : OP_gt, e->arg[0], e->arg[1]);
    case OP_select: return i == 1 ? e->arg[0] : grad_not(g, e->arg[0]);
    default: return NULL;
    }
}

/* The comparison that holds where this one does not; of floats only == and != have one, as none
 * of the others holds for NaN. */
static Op opposite(Expr *e)
{
    static const Op pair[][2] = { { OP_eq, OP_ne }, { OP_lt, OP_ge }, { OP_le, OP_gt } };

    for (int k = 0; k < 3; k++)
        for (int i = 0; i < 2; i++)
            if (e->op == pair[k][i] && (k == 0 || (ir_is_int(e->arg[0]) && ir_is_int(e->arg[1]))))
                return pair[k][1 - i];
    return OP_not;
}

Expr *grad_not(Grad *g, Expr *c)
{
    Op op = opposite(c);

    if (c->op == OP_not)
        return c->arg[0];
    return op == OP_not ? ir_op1(g->p, OP_not, c) : ir_op2(g->p, op, c->arg[0], c->arg[1]);
}

static bool has_part(Expr *all, Expr *cond)
{
    return all == cond ||
           (all->op == OP_and && (all->arg[1] == cond || has_part(all->arg[0], cond)));
}

Expr *grad_and(Grad *g, Expr *a, Expr *b)
{
    if (a == NULL || b == NULL)
        return a == NULL ? b : a;
    return has_part(a, b) ? a : ir_op2(g->p, OP_and, a, b);
}

Expr *grad_select(Grad *g, Expr *cond, Expr *a, Expr *b)
{
    Expr *zero = ir_int(g->p, 0);

    if (cond == NULL || (a == NULL && b == NULL))
        return a;
    return ir_node(g->p, OP_select, (Expr *[]){ cond, a != NULL ? a : zero, b != NULL ? b : zero },
                   3);
}
