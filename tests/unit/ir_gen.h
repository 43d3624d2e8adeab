/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Random expressions, made by the builders over given leaves. */
#ifndef WEFT_IR_GEN_H
#define WEFT_IR_GEN_H

#include "ir/ir.h"
#include "unit/test.h"

#include <math.h>
#include <string.h>

typedef struct Gen {
    Prog *p;
    uint64_t rng;
    bool tame; /* literals are mostly 0, 1 and -1 */
    Expr *leaf[24];
    int nleaf;
} Gen;

static inline int gen_below(Gen *g, int n)
{
    return (int)(test_random(&g->rng) % (uint64_t)n);
}

static inline Expr *gen_literal(Gen *g)
{
    static const int64_t ints[] = { 0, 1, -1, 2, 7, INT64_MAX, INT64_MIN, -INT64_MAX, 1000000007 };
    static const double reals[] = { 0,     -0.0,   1,         -1,       0.5,    0.1,
                                    1e300, 1e-300, -INFINITY, INFINITY, 5e-324, NAN };
    uint64_t bits = test_random(&g->rng);
    double d;

    if (g->tame && gen_below(g, 4) > 0)
        return gen_below(g, 2) ? ir_int(g->p, gen_below(g, 3) - 1)
                               : ir_real(g->p, gen_below(g, 3) - 1);
    switch (gen_below(g, 4)) {
    case 0: return ir_int(g->p, ints[gen_below(g, 9)]);
    case 1: return ir_int(g->p, (int64_t)bits >> gen_below(g, 64));
    case 2: return ir_real(g->p, reals[gen_below(g, 12)]);
    default: memcpy(&d, &bits, sizeof d); return ir_real(g->p, d);
    }
}

static inline Expr *gen_number(Gen *g, int depth);

static inline Expr *gen_condition(Gen *g, int depth)
{
    Expr *a, *c;

    switch (depth <= 0 ? 0 : gen_below(g, 6)) {
    case 1:
    case 2:
        a = gen_condition(g, depth - 1);
        c = gen_condition(g, depth - 1);
        return ir_op2(g->p, gen_below(g, 2) ? OP_and : OP_or, a, c);
    case 3: return ir_op1(g->p, OP_not, gen_condition(g, depth - 1));
    case 4:
        do
            a = g->leaf[gen_below(g, g->nleaf)];
        while (a->op != OP_load);
        return ir_op1(g->p, OP_stored, a);
    default:
        a = gen_number(g, depth - 1);
        c = gen_number(g, depth - 1);
        return ir_op2(g->p, (Op)(OP_lt + gen_below(g, 6)), a, c);
    }
}

/* The parser refuses 1 / 2, which is no fraction. */
static inline bool gen_refused(Op op, Expr *a, Expr *b)
{
    int64_t rest;

    return op == OP_div && a->op == OP_int && b->op == OP_int &&
           (int_mod(a->i, b->i, &rest) || rest != 0);
}

static inline Expr *gen_binary(Gen *g, int depth)
{
    Op op = (Op)(OP_add + gen_below(g, 5));
    Expr *a = gen_number(g, depth - 1), *b = gen_number(g, depth - 1);

    if ((op == OP_mod && (a->type != T_i64 || b->type != T_i64)) || gen_refused(op, a, b))
        op = OP_sub;
    return ir_op2(g->p, op, a, b);
}

static inline Expr *gen_call(Gen *g, int depth)
{
    Op op = (Op)(OP_exp + gen_below(g, OP_f64 - OP_exp + 1));
    Expr *arg[3];

    for (int i = 0; i < ir_op[op].nargs; i++)
        arg[i] = op == OP_select && i == 0 ? gen_condition(g, depth - 1) : gen_number(g, depth - 1);
    return ir_node(g->p, op, arg, ir_op[op].nargs);
}

static inline Expr *gen_number(Gen *g, int depth)
{
    if (depth <= 0)
        return gen_below(g, 2) ? gen_literal(g) : g->leaf[gen_below(g, g->nleaf)];
    switch (gen_below(g, 8)) {
    case 0: return gen_literal(g);
    case 1: return g->leaf[gen_below(g, g->nleaf)];
    case 2: return ir_op1(g->p, OP_neg, gen_number(g, depth - 1));
    case 3: return gen_call(g, depth);
    default: return gen_binary(g, depth);
    }
}

static inline void gen_leaf(Expr *e, void *ctx)
{
    Gen *g = ctx;

    if (e->type >= T_i64 && e->nargs < 4 && (e->op < OP_at) && g->nleaf < 24)
        g->leaf[g->nleaf++] = e;
}

#endif
