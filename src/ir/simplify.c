/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The same value, bit for bit, in fewer nodes: literals folded, neutral elements dropped, signs
 * moved outwards.  What IEEE arithmetic can tell apart (0 * x, x + 0) stays. */
#include "ir/ir.h"
#include "ir/loop.h"

#include <math.h>

static bool is_literal(Expr *e)
{
    return e->op == OP_int || e->op == OP_real;
}

static double real_of(Expr *e)
{
    return e->op == OP_int ? (double)e->i : e->f;
}

static bool is_value(Expr *e, int v)
{
    return is_literal(e) && real_of(e) == v && !signbit(real_of(e));
}

static Expr *fold_int(Prog *p, Expr *e)
{
    int64_t a = e->arg[0]->i, b = e->nargs > 1 ? e->arg[1]->i : 0, r;
    bool bad;

    if (e->nargs == 2)
        return ir_int_op((Op)e->op, a, b, &r) ? ir_int(p, r) : e;
    switch (e->op) {
    case OP_relu: bad = false, r = a > 0 ? a : 0; break;
    case OP_step: bad = false, r = a > 0; break;
    case OP_sign: bad = false, r = (a > 0) - (a < 0); break;
    case OP_abs: bad = a < 0 ? int_sub(0, a, &r) : (r = a, false); break;
    default: return e;
    }
    return bad ? e : ir_int(p, r);
}

static Expr *fold_real(Prog *p, Expr *e)
{
    double a = real_of(e->arg[0]), b = e->nargs > 1 ? real_of(e->arg[1]) : 0;

    switch (e->op) {
    case OP_add: return ir_real(p, a + b);
    case OP_sub: return ir_real(p, a - b);
    case OP_mul: return ir_real(p, a * b);
    case OP_div: return ir_real(p, a / b);
    case OP_min: return ir_real(p, a <= b || a != a ? a : b);
    case OP_max: return ir_real(p, a >= b || a != a ? a : b);
    case OP_relu: return ir_real(p, a >= 0 || a != a ? a : 0);
    case OP_step: return ir_real(p, a > 0);
    case OP_sign: return ir_real(p, (a > 0) - (a < 0));
    case OP_abs: return ir_real(p, fabs(a));
    default: return e;
    }
}

static Expr *fold(Prog *p, Expr *e)
{
    for (int i = 0; i < e->nargs; i++)
        if (!is_literal(e->arg[i]))
            return e;
    if (e->nargs == 0 || !(ir_op[e->op].props & FOLDS) || e->type < T_i64)
        return e;
    return e->type == T_i64 ? fold_int(p, e) : e->type == T_real ? fold_real(p, e) : e;
}

/* x * 1, x / 1, and for integers x + 0: the other operand, if it has the type already. */
static Expr *drop_neutral(Expr *e)
{
    Expr *a = e->arg[0], *b = e->arg[1];
    bool integer = e->type == T_i64;

    if ((e->op == OP_mul || e->op == OP_div) && is_value(b, 1) && a->type == e->type)
        return a;
    if (e->op == OP_mul && is_value(a, 1) && b->type == e->type)
        return b;
    if ((e->op == OP_sub || (e->op == OP_add && integer)) && is_value(b, 0) && a->type == e->type)
        return a;
    if (e->op == OP_add && integer && is_value(a, 0))
        return b;
    return e;
}

/* A negated float; the integer -0 is 0 and turns into +0, so integers keep their sign inside. */
static bool is_negated(Expr *e)
{
    return e->op == OP_neg && e->type != T_i64;
}

/* -a * b = -(a * b), a + -b = a - b, and so on: exact for floats, where negation never rounds. */
static Expr *move_sign(Prog *p, Expr *e)
{
    Expr *a = e->arg[0], *b = e->arg[1];

    if ((e->op == OP_mul || e->op == OP_div) && is_negated(a))
        return ir_op1(p, OP_neg, ir_op2(p, (Op)e->op, a->arg[0], b));
    if ((e->op == OP_mul || e->op == OP_div) && is_negated(b))
        return ir_op1(p, OP_neg, ir_op2(p, (Op)e->op, a, b->arg[0]));
    if (e->op == OP_add && is_negated(b))
        return ir_op2(p, OP_sub, a, b->arg[0]);
    if (e->op == OP_sub && is_negated(b))
        return ir_op2(p, OP_add, a, b->arg[0]);
    return e;
}

/* Splits x + c into x and the constant c; false when e is not a sum of that form. */
static bool is_offset(Expr *e, Expr **x, int64_t *c)
{
    if (e->op != OP_add || e->type != T_i64)
        return false;
    for (int i = 0; i < 2; i++)
        if (e->arg[i]->op == OP_int) {
            *c = e->arg[i]->i;
            *x = e->arg[1 - i];
            return true;
        }
    return false;
}

/* (x + 2) + 3 = x + 5, so that equal indices are one expression.  With constants of one sign the
 * inner sum overflows only if the outer one does. */
static Expr *join_offsets(Prog *p, Expr *e)
{
    Expr *inner, *x;
    int64_t a, b, sum;

    if (!is_offset(e, &inner, &a) || !is_offset(inner, &x, &b) || (a < 0) != (b < 0) ||
        int_add(a, b, &sum))
        return e;
    return ir_op2(p, OP_add, x, ir_int(p, sum));
}

/* An element of a constant table at a constant place. */
static Expr *read_constant(Prog *p, Expr *e)
{
    const Buf *b = e->buf;
    int64_t i = e->nargs == 1 && e->arg[0]->op == OP_int ? e->arg[0]->i : -1;

    if (b->kind != B_CONST || e->k > 1 || i < 0 || i >= b->n)
        return e;
    if (b->ival != NULL)
        return ir_int(p, b->ival[i]);
    return b->rows ? ir_real(p, b->val[i]) : e;
}

/* Whether position pos has the values that a search of constants asks for; *known: that is
 * decided. */
static bool has_coordinates(Expr *find, int64_t pos, bool *known)
{
    const Axis *a = find->axis;
    bool match = true;

    for (int k = 0; k < a->ncoord; k++) {
        const Coord *c = &a->coord[k];
        int64_t v = pos - find->arg[0]->i, bound = INT64_MAX;
        bool bounded = (a->flags & AX_PADDED) && c->bound != NULL;

        *known = *known && (c->kind == C_IDENT || (c->kind == C_TABLE && pos >= 0 && pos < c->n)) &&
                 (!bounded || ir_const_int(c->bound, &bound));
        if (*known && c->kind == C_TABLE)
            v = c->table[pos];
        match = match && v == find->arg[2 + k]->i && (!bounded || (v >= 0 && v < bound));
    }
    return match;
}

/* A search of constants for constants. */
static Expr *find_constant(Prog *p, Expr *e)
{
    bool known = e->k != FIND_FIRST;

    for (int i = 0; i < e->nargs; i++)
        if (e->arg[i]->op != OP_int)
            return e;
    for (int64_t pos = e->arg[0]->i; pos < e->arg[1]->i && known; pos++)
        if (has_coordinates(e, pos, &known) && known)
            return ir_int(p, pos);
    return known ? ir_int(p, -1) : e;
}

static Expr *simpler(Prog *p, Expr *e, void *ctx)
{
    Expr *r = e->op == OP_cell   ? read_constant(p, e)
              : e->op == OP_find ? find_constant(p, e)
                                 : fold(p, e);

    (void)ctx;
    if (r == e && e->op == OP_neg && e->arg[0]->op == OP_neg)
        return e->arg[0]->arg[0];
    if (r == e && e->nargs == 2 && e->op >= OP_add && e->op <= OP_div)
        r = drop_neutral(e);
    if (r == e && e->nargs == 2 && e->op >= OP_add && e->op <= OP_div)
        r = move_sign(p, e);
    if (r == e && e->op == OP_add)
        r = join_offsets(p, e);
    if (r == e && e->op == OP_select && e->arg[1] == e->arg[2] && e->type == e->arg[1]->type)
        return e->arg[1];
    return r;
}

Expr *ir_simplify(Prog *p, Expr *e, Memo *memo)
{
    return ir_rewrite(p, e, simpler, NULL, memo);
}
