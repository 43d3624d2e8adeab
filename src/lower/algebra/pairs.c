/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Makes factors of sums.  Where c * g * x * v + c * g * y * w, and other terms with the same c,
 * stand in sums of products, x * v + y * w becomes one factor of all of them and is computed
 * once.  Derivatives of products have this form.  The pair that occurs most often is taken
 * first. */
#include "lower/algebra/draft_int.h"

#include <stdlib.h>

typedef struct Pair {
    Expr *made; /* the factor that it becomes; NULL: it becomes none */
    Term rest;  /* what both terms have */
} Pair;

/* What a has and b has not; what both have goes to *both, if it is not NULL. */
static Term without(const Term *a, const Term *b, Term *both)
{
    Term r = { .c = a->c };

    for (int i = 0, k = 0; i < a->n; i++) {
        while (k < b->n && b->f[k]->id < a->f[i]->id)
            k++;
        if (k < b->n && b->f[k] == a->f[i]) {
            k++;
            if (both != NULL)
                both->f[both->n++] = a->f[i];
        } else {
            r.f[r.n++] = a->f[i];
        }
    }
    return r;
}

static Expr *product(Prog *p, const Term *t)
{
    Expr *e = t->f[0];

    for (int i = 1; i < t->n; i++)
        e = ir_op2(p, OP_mul, e, t->f[i]);
    return e;
}

/* Of two elements alone another way makes one sum; and a product of three is worth no less. */
static Pair pair_of(Prog *p, const Term *a, const Term *b)
{
    Pair r = { .rest = { .c = a->c } };
    Term x, y;

    if (a->c != b->c)
        return r;
    x = without(a, b, &r.rest);
    y = without(b, a, NULL);
    if (x.n != 2 || y.n != 2)
        return r;
    if (x.f[0]->id > y.f[0]->id) {
        Term swap = x;

        x = y;
        y = swap;
    }
    r.made = ir_node(p, OP_fma, (Expr *[]){ x.f[0], x.f[1], product(p, &y) }, 3);
    return r;
}

static int by_id(const void *a, const void *b)
{
    uint32_t x = (*(Expr *const *)a)->id, y = (*(Expr *const *)b)->id;

    return (x > y) - (x < y);
}

static int64_t count_pairs(const Factored *f)
{
    int64_t n = 0;

    for (int i = 0; i < f->n; i++)
        n += (int64_t)f->sum[i].poly.n * (f->sum[i].poly.n - 1) / 2;
    return n;
}

/* The factor that is met most often, twice at least; or NULL. */
static Expr *best(Prog *p, const Factored *f, Expr **list)
{
    Expr *found = NULL;
    int n = 0, most = 1;

    for (int i = 0; i < f->n; i++) {
        const Poly *poly = &f->sum[i].poly;

        for (int a = 0; a < poly->n; a++)
            for (int b = a + 1; b < poly->n; b++) {
                Expr *made = pair_of(p, &poly->term[a], &poly->term[b]).made;

                if (made != NULL)
                    list[n++] = made;
            }
    }
    qsort(list, (size_t)n, sizeof *list, by_id);
    for (int i = 0, to; i < n; i = to) {
        for (to = i + 1; to < n && list[to] == list[i];)
            to++;
        if (to - i > most) {
            most = to - i;
            found = list[i];
        }
    }
    return found;
}

static void put_factor(Term *t, Expr *e)
{
    int at = t->n++;

    for (; at > 0 && t->f[at - 1]->id > e->id; at--)
        t->f[at] = t->f[at - 1];
    t->f[at] = e;
}

static void take(Prog *p, Poly *poly, Expr *made)
{
    for (int a = 0; a < poly->n; a++)
        for (int b = a + 1; b < poly->n; b++) {
            Pair pair = pair_of(p, &poly->term[a], &poly->term[b]);

            if (pair.made != made)
                continue;
            poly->term[a] = pair.rest;
            put_factor(&poly->term[a], made);
            for (int i = b; i + 1 < poly->n; i++)
                poly->term[i] = poly->term[i + 1];
            poly->n--;
            break;
        }
}

int lower_pair_sums(Prog *p, Factored *f)
{
    int64_t pairs = count_pairs(f);
    Sum *sum = arena_copy(p->arena, f->sum, (size_t)f->n * sizeof *sum);
    Expr **list, *made;
    int operations = 0;

    if (pairs > p->policy.pairs)
        return 0;
    list = arena_array(p->arena, pairs, sizeof *list);
    f->sum = sum;
    for (int i = 0; i < f->n; i++)
        sum[i].poly.term = arena_copy(p->arena, sum[i].poly.term,
                                      (size_t)sum[i].poly.n * sizeof *sum[i].poly.term);
    for (int k = 0; k < p->policy.pair_rounds && (made = best(p, f, list)) != NULL; k++) {
        for (int i = 0; i < f->n; i++)
            take(p, &sum[i].poly, made);
        operations += 2;
    }
    return operations;
}
