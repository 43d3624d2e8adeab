/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Expands a value into a sum of products of factors that an innermost loop changes, with
 * coefficients that it does not change. */
#include "lower/algebra/draft_int.h"
#include "lower/phase/phase_int.h"

typedef struct Expand {
    Prog *p;
    Type type;
    Local *loop;
    Memo *uses;
} Expand;

static Expr *times(Prog *p, Expr *a, Expr *b)
{
    if (a == NULL || b == NULL)
        return a == NULL ? b : a;
    if (a->op == OP_real && b->op == OP_real)
        return ir_real(p, a->f * b->f);
    return ir_op2(p, OP_mul, a, b);
}

static void add_term(Expand *x, Poly *out, const Term *t)
{
    out->term = arena_grow(x->p->arena, out->term, out->n, &out->cap, sizeof *out->term);
    out->term[out->n++] = *t;
}

/* The product of two terms; false: it has too many factors. */
static bool product(Expand *x, const Term *a, const Term *b, Term *out)
{
    *out = *a;
    out->c = times(x->p, a->c, b->c);
    if (a->n + b->n > LIMIT_FACTORS)
        return false;
    for (int i = 0; i < b->n; i++) {
        int at = out->n++;

        for (; at > 0 && out->f[at - 1]->id > b->f[i]->id; at--)
            out->f[at] = out->f[at - 1];
        out->f[at] = b->f[i];
    }
    return true;
}

static bool expand(Expand *, Expr *, Poly *);

static bool expand_product(Expand *x, Expr *a, Expr *b, Poly *out)
{
    Poly l = { 0 }, r = { 0 };
    Term t;

    if (!expand(x, a, &l) || !expand(x, b, &r) || (int64_t)l.n * r.n > LIMIT_TERMS)
        return false;
    for (int i = 0; i < l.n; i++)
        for (int k = 0; k < r.n; k++) {
            if (!product(x, &l.term[i], &r.term[k], &t))
                return false;
            add_term(x, out, &t);
        }
    return true;
}

static bool expand_negative(Expand *x, Expr *e, Poly *out)
{
    int from = out->n;

    if (!expand(x, e, out))
        return false;
    for (int i = from; i < out->n; i++) {
        Expr *c = out->term[i].c;

        out->term[i].c = c == NULL          ? ir_real(x->p, -1)
                         : c->op == OP_real ? ir_real(x->p, -c->f)
                                            : ir_op1(x->p, OP_neg, c);
    }
    return true;
}

static bool expand(Expand *x, Expr *e, Poly *out)
{
    bool fixed = !tree_uses(x->p, e, x->loop, x->uses);
    Term t = { .c = fixed ? e : NULL, .n = !fixed, .f = { e } };

    if ((Type)e->type != x->type && e->type != T_real)
        return false;
    if (!fixed)
        switch (e->op) {
        case OP_add: return expand(x, e->arg[0], out) && expand(x, e->arg[1], out);
        case OP_sub: return expand(x, e->arg[0], out) && expand_negative(x, e->arg[1], out);
        case OP_neg: return expand_negative(x, e->arg[0], out);
        case OP_mul: return expand_product(x, e->arg[0], e->arg[1], out);
        case OP_fma:
            return expand_product(x, e->arg[0], e->arg[1], out) && expand(x, e->arg[2], out);
        default: break;
        }
    add_term(x, out, &t);
    return out->n <= LIMIT_TERMS;
}

static bool has_factors(const Term *a, const Term *b)
{
    bool same = a->n == b->n;

    for (int i = 0; i < a->n && same; i++)
        same = a->f[i] == b->f[i];
    return same;
}

/* a + b for factors that do not change in the loop: each is one number at run time. */
static Expr *plus(Prog *p, Expr *a, Expr *b)
{
    Expr *one = ir_real(p, 1);

    a = a == NULL ? one : a;
    b = b == NULL ? one : b;
    if (a->op == OP_real && b->op == OP_real)
        return ir_real(p, a->f + b->f);
    if (b->op == OP_mul && b->type == a->type)
        return ir_node(p, OP_fma, (Expr *[]){ b->arg[0], b->arg[1], a }, 3);
    return ir_op2(p, OP_add, a, b);
}

bool lower_expand(Prog *p, Expr *value, Type type, Local *loop, Memo *uses, Poly *out)
{
    Expand x = { p, type, loop, uses };
    Poly all = { 0 };

    if (!expand(&x, value, &all) || out->n + all.n > LIMIT_TERMS)
        return false;
    for (int i = 0; i < all.n; i++) {
        int k = 0;

        while (k < out->n && !has_factors(&out->term[k], &all.term[i]))
            k++;
        if (k < out->n)
            out->term[k].c = plus(p, out->term[k].c, all.term[i].c);
        else
            add_term(&x, out, &all.term[i]);
    }
    return true;
}
