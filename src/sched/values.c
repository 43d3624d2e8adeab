/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Constant relations: tries all values of the loops with constant ends, and concludes which
 * iterations an index made of tables tells apart. */
#include "sched/depend.h"

#include <stdlib.h>
#include <string.h>

enum { LIMIT_LOOPS = 8, LIMIT_TUPLES = 20000, LIMIT_KEYS = 8, LIMIT_WORK = 10000 };

typedef struct Tuple {
    int64_t key[LIMIT_KEYS], value[LIMIT_LOOPS];
} Tuple;

typedef struct Values {
    Pair *d;
    const Node *loop[LIMIT_LOOPS]; /* not known to be equal, with ends that can be computed */
    int nloop;
    int64_t at[LIMIT_LOOPS];
    Linear key[LIMIT_KEYS];
    int nkey;
    Tuple *tuple;
    int n, cap;
    bool open; /* one of them is not known */
    bool bad;
    int work; /* nodes that were evaluated for the tuple at hand */
} Values;

static int place_of(const Values *v, const Local *l)
{
    for (int i = 0; i < v->nloop; i++)
        if (v->loop[i]->local == l)
            return i;
    return -1;
}

/* The value of e for the tuple at hand; false: not of these loops alone. */
static bool evaluate(Values *v, Expr *e, int64_t *out)
{
    int64_t a = 0, b = 0;
    const Node *n = e->op == OP_local ? dep_binder(v->d->s[0], e->local) : NULL;
    int i = e->op == OP_local ? place_of(v, e->local) : -1;

    if (++v->work > LIMIT_WORK)
        return false;
    if (i >= 0)
        return *out = v->at[i], true;
    if (n != NULL && n->kind == N_LET)
        return evaluate(v, n->value, out);
    if (e->op == OP_int)
        return *out = e->i, true;
    if (e->op == OP_cell) {
        if (e->buf->kind != B_CONST || e->buf->ival == NULL || e->nargs != 1 ||
            !evaluate(v, e->arg[0], &a) || a < 0 || a >= e->buf->n)
            return false;
        return *out = e->buf->ival[a], true;
    }
    if (e->nargs != 2 || !evaluate(v, e->arg[0], &a) || !evaluate(v, e->arg[1], &b))
        return false;
    return ir_int_op((Op)e->op, a, b, out);
}

static bool evaluate_key(Values *v, const Linear *l, int64_t *out)
{
    int64_t x;

    *out = l->c;
    for (int i = 0; i < l->n; i++)
        if (l->term[i].x == NULL || l->term[i].nsize > 0 || !evaluate(v, l->term[i].x, &x) ||
            int_mul(x, l->term[i].c, &x) || int_add(*out, x, out))
            return false;
    return true;
}

static void add_tuple(Values *v)
{
    Tuple t = { { 0 }, { 0 } };

    v->work = 0;
    for (int i = 0; i < v->nkey; i++)
        v->bad = v->bad || !evaluate_key(v, &v->key[i], &t.key[i]);
    memcpy(t.value, v->at, sizeof t.value);
    v->tuple = arena_grow(v->d->p->arena, v->tuple, v->n, &v->cap, sizeof *v->tuple);
    v->tuple[v->n++] = t;
    v->bad = v->bad || v->n > LIMIT_TUPLES;
}

static void enumerate(Values *v, int i)
{
    int64_t lo, hi;

    if (i == v->nloop) {
        add_tuple(v);
        return;
    }
    v->work = 0;
    if (!evaluate(v, v->loop[i]->lo, &lo) || !evaluate(v, v->loop[i]->hi, &hi)) {
        v->bad = true;
        return;
    }
    for (v->at[i] = lo; v->at[i] < hi && !v->bad; v->at[i]++)
        enumerate(v, i + 1);
}

static int by_key(const void *a, const void *b)
{
    return memcmp(a, b, sizeof((const Tuple *)a)->key);
}

/* Loop i has one value wherever the keys are the same. */
static bool is_told(const Values *v, int i)
{
    for (int k = 1; k < v->n; k++)
        if (by_key(&v->tuple[k - 1], &v->tuple[k]) == 0 &&
            v->tuple[k - 1].value[i] != v->tuple[k].value[i])
            return false;
    return true;
}

/* The loops with constant ends, or ends of tables at those before; where one is known to be equal,
 * its variable tells itself. */
static void choose_loops(Values *v)
{
    const Access *s = v->d->s[0];
    int64_t lo, hi;

    for (int i = 0; i < s->n && v->nloop < LIMIT_LOOPS; i++) {
        const Node *n = s->around[i];

        if (n->kind != N_FOR)
            continue;
        memset(v->at, 0, sizeof v->at);
        v->work = 0;
        if (!evaluate(v, n->lo, &lo) || !evaluate(v, n->hi, &hi))
            continue;
        v->loop[v->nloop++] = n;
        if (dep_fixes(v->d, n->local) && v->nkey < LIMIT_KEYS)
            v->key[v->nkey++] = dep_linear(v->d, 0, loop_use(v->d->p, n->local));
        else
            v->open = true;
    }
}

/* What is left of an index when what is known to be equal, and has no value here, is taken away. */
static bool add_key(Values *v, Expr *e)
{
    Linear l = dep_linear(v->d, 0, e);
    int64_t x;

    memset(v->at, 0, sizeof v->at);
    for (int i = 0; i < l.n; i++)
        if (l.term[i].x == NULL || l.term[i].nsize > 0 || !evaluate(v, l.term[i].x, &x))
            if (l.term[i].x == NULL || dep_is_same(v->d, l.term[i].x, l.term[i].x))
                l.term[i--] = l.term[--l.n];
    if (l.bad || l.n == 0 || v->nkey == LIMIT_KEYS || !evaluate_key(v, &l, &x))
        return false;
    v->key[v->nkey++] = l;
    return true;
}

void dep_enumerate(Pair *d)
{
    Values v = { .d = d };

    if (d->s[0] != d->s[1])
        return;
    choose_loops(&v);
    for (int i = 0; i < d->nfact && v.open; i++)
        if (d->fact[i].a == d->fact[i].b)
            add_key(&v, d->fact[i].a);
    if (v.nkey == 0 || !v.open)
        return;
    enumerate(&v, 0);
    if (v.bad || v.n == 0)
        return;
    qsort(v.tuple, (size_t)v.n, sizeof *v.tuple, by_key);
    for (int i = 0; i < v.nloop; i++) {
        Expr *x = loop_use(d->p, v.loop[i]->local);

        if (!dep_fixes(d, v.loop[i]->local) && is_told(&v, i)) {
            d->local = arena_grow(d->p->arena, d->local, d->nlocal, &d->cap_local,
                                  sizeof *d->local);
            d->local[d->nlocal++] = (Fact){ x, x };
        }
    }
}
