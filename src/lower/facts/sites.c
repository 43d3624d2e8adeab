/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Use sites: an index from the arrays of a phase to the nodes that use them, made by one walk. */
#include "lower/facts/facts_int.h"


typedef struct Finding {
    Prog *p;
    Sites *to;
} Finding;

static void see(Expr *e, void *ctx)
{
    Finding *f = ctx;
    Sites *s = f->to;

    if (e->op != OP_cell)
        return;
    s->of = arena_grow(f->p->arena, s->of, s->nof, &s->cap_of, sizeof *s->of);
    s->of[s->nof++] = (SiteOf){ e->buf, s->n - 1 };
}

/* A copy of the tree, with a spot for each node. */
static Node *copy(Finding *f, const Node *n, int up)
{
    Prog *p = f->p;
    Sites *s = f->to;
    Node own = *n, *c = loop_node(p, n), **body;
    int here = s->n;
    Memo met = { 0 };

    s->spot = arena_grow(p->arena, s->spot, s->n, &s->cap, sizeof *s->spot);
    s->spot[s->n++] = (Site){ c, up };
    own.nbody = 0;
    loop_visit(p, &own, see, f, &met);
    body = arena_array(p->arena, n->nbody, sizeof *body);
    for (int i = 0; i < n->nbody; i++)
        body[i] = copy(f, n->body[i], here);
    c->body = body;
    return c;
}

static int order(const void *a, const void *b)
{
    const SiteOf *x = a, *y = b;
    int p = x->buf->id, q = y->buf->id;

    return p != q ? (p > q) - (p < q) : (x->spot > y->spot) - (x->spot < y->spot);
}

void lower_sites(Prog *p, Node **phase, Sites *s)
{
    Finding f = { p, s };

    if (s->spot != NULL)
        return;
    *phase = copy(&f, *phase, -1);
    array_sort(s->of, s->nof, sizeof *s->of, order);
}

/* The first place of a spot of the array, or of one with a larger id. */
static int first_of(const Sites *s, int id)
{
    int lo = 0, hi = s->nof;

    while (lo < hi) {
        int mid = lo + (hi - lo) / 2;

        if (s->of[mid].buf->id < id)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

const SiteOf *lower_sites_of(const Sites *s, const Buf *b, int *n)
{
    int from = first_of(s, b->id);

    *n = first_of(s, b->id + 1) - from;
    return &s->of[from];
}

int lower_site_path(const Sites *s, int spot, Node **out, int most)
{
    int n = 0;

    for (int i = spot; i >= 0; i = s->spot[i].up)
        n++;
    if (n > most)
        return 0;
    for (int i = spot, k = n; i >= 0; i = s->spot[i].up)
        out[--k] = s->spot[i].node;
    return n;
}
