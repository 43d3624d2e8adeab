/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Integers as sums of terms.  A term is a number times sizes times at most one other expression. */
#include "sched/depend.h"

enum { LIMIT_WORK = 10000 }; /* nodes of an integer that are gone through */

const Node *dep_binder(const Access *s, const Local *l)
{
    for (int i = s->n - 1; i >= 0; i--) {
        const Node *n = s->around[i];

        if (n->kind == N_FOR && n->local == l)
            return n;
        for (int k = 0; k < n->nbody; k++)
            if (n->body[k]->kind == N_LET && n->body[k]->local == l)
                return n->body[k];
    }
    return NULL;
}

static bool is_of_sizes(Expr *e)
{
    bool all = e->op == OP_int || e->op == OP_size || e->op == OP_count || e->nargs > 0;

    if (e->op == OP_cell || e->op == OP_find || e->op == OP_above)
        return false;
    for (int i = 0; i < e->nargs && all; i++)
        all = is_of_sizes(e->arg[i]);
    return all;
}

static void add_term(Linear *l, Term t)
{
    for (int i = 0; i < l->n; i++)
        if (l->term[i].x == t.x && dep_same_factor(&l->term[i], &t)) {
            l->bad = l->bad || int_add(l->term[i].c, t.c, &l->term[i].c);
            if (l->term[i].c == 0)
                l->term[i] = l->term[--l->n];
            return;
        }
    if (l->n == LIMIT_DEP_TERMS)
        l->bad = true;
    else if (t.c != 0)
        l->term[l->n++] = t;
}

bool dep_same_factor(const Term *a, const Term *b)
{
    bool same = a->nsize == b->nsize;

    for (int i = 0; i < a->nsize && same; i++)
        same = a->size[i] == b->size[i];
    return same;
}

/* t by a size: the factors in the order of their ids. */
static bool scale(Term *t, Expr *size)
{
    int i = t->nsize;

    if (size->op == OP_int)
        return !int_mul(t->c, size->i, &t->c);
    if (size->op == OP_mul)
        return scale(t, size->arg[0]) && scale(t, size->arg[1]);
    if (t->nsize == 4)
        return false;
    for (; i > 0 && t->size[i - 1]->id > size->id; i--)
        t->size[i] = t->size[i - 1];
    t->size[i] = size;
    t->nsize++;
    return true;
}

static void add(Pair *d, int side, Linear *l, Expr *e, Term by);

static void add_product(Pair *d, int side, Linear *l, Expr *e, Term by)
{
    Expr *a = e->arg[0], *b = e->arg[1];
    bool of_a = is_of_sizes(a), of_b = is_of_sizes(b);
    Term t = by;

    if (of_a && of_b)
        l->bad = l->bad || !scale(&t, a) || !scale(&t, b);
    else if (of_a || of_b)
        l->bad = l->bad || !scale(&t, of_a ? a : b);
    if (of_a && of_b && t.nsize == 0)
        l->bad = l->bad || int_add(l->c, t.c, &l->c);
    else if (of_a && of_b)
        add_term(l, t);
    else if (of_a || of_b)
        add(d, side, l, of_a ? b : a, t);
    else
        t.x = e, add_term(l, t);
}

static void add(Pair *d, int side, Linear *l, Expr *e, Term by)
{
    const Node *let = e->op == OP_local ? dep_binder(d->s[side], e->local) : NULL;
    Term minus = by;

    minus.c = -by.c;
    l->bad = l->bad || ++l->work > LIMIT_WORK;
    if (l->bad)
        return;
    if (let != NULL && let->kind == N_LET) {
        add(d, side, l, let->value, by);
    } else if (e->op == OP_add || e->op == OP_sub) {
        add(d, side, l, e->arg[0], by);
        add(d, side, l, e->arg[1], e->op == OP_add ? by : minus);
    } else if (e->op == OP_neg) {
        add(d, side, l, e->arg[0], minus);
    } else if (e->op == OP_mul) {
        add_product(d, side, l, e, by);
    } else if (e->op == OP_int || e->op == OP_size || e->op == OP_count) {
        l->bad = !scale(&by, e);
        if (by.nsize == 0)
            l->bad = l->bad || int_add(l->c, by.c, &l->c);
        else
            add_term(l, by);
    } else {
        by.x = e;
        add_term(l, by);
    }
}

Linear dep_linear(Pair *d, int side, Expr *e)
{
    Linear l = { .n = 0 };

    add(d, side, &l, e, (Term){ .c = 1 });
    return l;
}
