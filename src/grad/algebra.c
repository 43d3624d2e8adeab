/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Products and sums in one form, so that a derivative reads as a person would write it and equal
 * terms are seen to be equal: literals multiplied together, signs outside, like terms collected. */
#include "grad/grad_int.h"

#include <math.h>

enum { MOST = 256 }; /* of factors or terms; what has more stays as it is */

typedef struct Product {
    double coef; /* of the literals, with the sign */
    Expr *f[MOST];
    int n;
} Product;

static bool is_literal(Expr *e, double *v)
{
    *v = e->op == OP_int ? (double)e->i : e->f;
    return e->op == OP_int || e->op == OP_real;
}

/* Multiplies the literal into the coefficient, unless that overflows or underflows. */
static bool fold(Product *q, double v)
{
    double c = q->coef * v;

    if (!isfinite(c) || (c == 0 && v != 0 && q->coef != 0))
        return false;
    q->coef = c;
    return true;
}

/* Adds the factors of e, through nested products; false when there are too many. */
static bool add_factors(Product *q, Expr *e)
{
    double v;

    if (e->op == OP_neg) {
        q->coef = -q->coef;
        return add_factors(q, e->arg[0]);
    }
    if (e->op == OP_mul && e->type != T_i64)
        return add_factors(q, e->arg[0]) && add_factors(q, e->arg[1]);
    if (is_literal(e, &v) && fold(q, v))
        return true;
    if (q->n == MOST)
        return false;
    q->f[q->n++] = e;
    return true;
}

static Expr *literal(Grad *g, double v)
{
    return fabs(v) < 0x1p53 && v == floor(v) ? ir_int(g->p, (int64_t)v) : ir_real(g->p, v);
}

static bool comes_first(Expr *a, Expr *b)
{
    bool const_a = a->op == OP_load && a->buf->kind == B_CONST;
    bool const_b = b->op == OP_load && b->buf->kind == B_CONST;

    return const_a != const_b ? const_a : a->id < b->id;
}

static void sort_factors(Product *q)
{
    for (int i = 2; i < q->n; i++)
        for (int j = i; j > 1 && comes_first(q->f[j], q->f[j - 1]); j--) {
            Expr *e = q->f[j];

            q->f[j] = q->f[j - 1];
            q->f[j - 1] = e;
        }
}

/* |coef| times the factors: what came first, the coefficient, constants, the rest by age. */
static Expr *product(Grad *g, Product *q)
{
    Expr *e = q->n > 0 ? q->f[0] : literal(g, fabs(q->coef));

    sort_factors(q);
    if (fabs(q->coef) != 1 && q->n > 0)
        e = ir_op2(g->p, OP_mul, e, literal(g, fabs(q->coef)));
    for (int i = 1; i < q->n; i++)
        e = ir_op2(g->p, OP_mul, e, q->f[i]);
    return e;
}

Expr *grad_times(Grad *g, Expr *a, Expr *b)
{
    Product q = { .coef = 1 };
    Expr *e;

    if (!add_factors(&q, a) || !add_factors(&q, b))
        return ir_op2(g->p, OP_mul, a, b);
    e = product(g, &q);
    return q.coef < 0 ? ir_op1(g->p, OP_neg, e) : e;
}

typedef struct Sum {
    struct Term {
        double coef;
        Expr *rest;
    } t[MOST];
    int n;
} Sum;

static bool add_term(Grad *g, Sum *s, Expr *e, double coef)
{
    Product q = { .coef = coef };
    Expr *rest = e;
    double c = coef;

    if (add_factors(&q, e)) {
        c = q.coef;
        q.coef = 1;
        rest = product(g, &q);
    }
    for (int i = 0; i < s->n; i++)
        if (s->t[i].rest == rest) {
            s->t[i].coef += c;
            return true;
        }
    if (s->n == MOST)
        return false;
    s->t[s->n++] = (struct Term){ c, rest };
    return true;
}

static bool add_terms(Grad *g, Sum *s, Expr *e, double coef)
{
    if (e->op == OP_neg)
        return add_terms(g, s, e->arg[0], -coef);
    if (e->op == OP_add || e->op == OP_sub)
        return add_terms(g, s, e->arg[0], coef) &&
               add_terms(g, s, e->arg[1], e->op == OP_sub ? -coef : coef);
    return add_term(g, s, e, coef);
}

/* The sum of the terms that are left, a positive one in front if there is one. */
static Expr *sum_of(Grad *g, Sum *s)
{
    Expr *e = NULL;
    int front = 0;

    while (front < s->n && s->t[front].coef <= 0)
        front++;
    for (int i = -1; i < s->n; i++) {
        struct Term *t = &s->t[i < 0 ? front : i];
        Expr *x;

        if (i == front || t == &s->t[s->n] || t->coef == 0)
            continue;
        x = grad_times(g, t->rest, literal(g, fabs(t->coef)));
        if (e == NULL)
            e = t->coef < 0 ? ir_op1(g->p, OP_neg, x) : x;
        else
            e = ir_op2(g->p, t->coef < 0 ? OP_sub : OP_add, e, x);
    }
    return e;
}

Expr *grad_plus(Grad *g, Expr *a, Expr *b)
{
    Sum s = { .n = 0 };

    if (a == NULL || b == NULL)
        return a == NULL ? b : a;
    if (!add_terms(g, &s, a, 1) || !add_terms(g, &s, b, 1))
        return ir_op2(g->p, OP_add, a, b);
    return sum_of(g, &s);
}

Expr *grad_minus(Grad *g, Expr *x)
{
    return x->op == OP_neg ? x->arg[0] : ir_op1(g->p, OP_neg, x);
}
