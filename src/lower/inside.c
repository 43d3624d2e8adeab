/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Whether an element surely exists, whatever checks and branches stand around its use: its index in
 * every dimension is one that a loop, or a coordinate that was validated, keeps inside. */
#include "lower/lower_int.h"

typedef struct Inside {
    Prog *p;
    const Node *phase;
} Inside;

static void find_binders(const Node *n, const Local *l, const Node *found[2])
{
    if (n->local == l)
        found[found[0] != NULL] = n;
    for (int i = 0; i < n->nbody; i++)
        find_binders(n->body[i], l, found);
}

/* The loop or the let that binds the local; NULL when copies of one do. */
static const Node *binder(const Node *n, const Local *l)
{
    const Node *found[2] = { NULL, NULL };

    find_binders(n, l, found);
    return found[1] == NULL ? found[0] : NULL;
}

/* Entries of an axis under one parent are among all of them. */
static bool is_over_entries(const Inside *s, const Node *loop, Expr *extent)
{
    Expr *lo = loop->lo;

    return lo->op == OP_cell && lo->buf->of != NULL && lo->buf->of_k == -1 && lo->buf->nfull == 0 &&
           loop->hi == lower_first(s->p, lo->buf->of,
                                   lower_add(s->p, lo->arg[0], ir_int(s->p, 1))) &&
           lower_count(s->p, lo->buf->of) == extent;
}

static bool is_inside(const Inside *s, Expr *v, Expr *extent)
{
    const Node *n = v->op == OP_local ? binder(s->phase, v->local) : NULL;
    const Coord *c;

    if (v->op == OP_int)
        return extent->op == OP_int && v->i >= 0 && v->i < extent->i;
    if (n != NULL && n->kind == N_LET)
        return n->value->op != OP_local && is_inside(s, n->value, extent);
    if (n != NULL)
        return (n->lo->op == OP_int && n->lo->i >= 0 && n->hi == extent) ||
               is_over_entries(s, n, extent);
    if (v->op != OP_cell || v->buf->of == NULL || v->buf->of_k < 0 || v->buf->nfull > 0 ||
        v->buf->kind == B_CONST || (v->buf->of->flags & AX_PADDED))
        return false;
    c = &v->buf->of->coord[v->buf->of_k];
    return c->bound != NULL && c->bound == extent;
}

/* a + b, either way round, with a product by `extent` as one of the two. */
static Expr *split_off(Expr *e, Expr *extent, Expr **rest)
{
    for (int i = 0; i < 2 && e->op == OP_add; i++) {
        Expr *m = e->arg[i];

        for (int k = 0; k < 2 && m->op == OP_mul; k++)
            if (m->arg[k] == extent) {
                *rest = e->arg[1 - i];
                return m->arg[1 - k];
            }
    }
    return NULL;
}

bool lower_is_inside(Prog *p, const Node *phase, Expr *cell)
{
    Inside s = { p, phase };
    Dim dim[IR_MAX_FULL];
    Expr *at = cell->arg[0], *rest;
    int n = ir_dims(cell->buf, dim);

    if (n == 0)
        return at->op == OP_int && at->i == 0;
    for (int d = n - 1; d > 0; d--) {
        Expr *extent = lower_dim_extent(p, cell->buf, dim[d]), *above;

        above = split_off(at, extent, &rest);
        if (above == NULL || !is_inside(&s, rest, extent))
            return false;
        at = above;
    }
    return is_inside(&s, at, lower_dim_extent(p, cell->buf, dim[0]));
}

typedef struct Sure {
    Inside in;
    bool sure;
} Sure;

static bool is_loop_variable(const Node *phase, Expr *e)
{
    const Node *n = e->op == OP_local ? binder(phase, e->local) : NULL;

    return n != NULL && n->kind == N_FOR;
}

/* Starts of the rows that a loop is at are there; all else that is read may not be. */
static void see_unsure(Expr *e, void *ctx)
{
    Sure *s = ctx;
    Expr *at = e->op == OP_cell ? e->arg[0] : NULL;

    if (at != NULL && at->op == OP_add && at->arg[1]->op == OP_int && at->arg[1]->i == 1)
        at = at->arg[0];
    if ((at != NULL && (e->buf->of == NULL || e->buf->of_k != -1 || e->buf->nfull > 0 ||
                        !is_inside(&s->in, at, lower_count(s->in.p, e->buf->of->parent)))) ||
        (e->op == OP_local && !is_loop_variable(s->in.phase, e)) || e->op == OP_find ||
        e->op == OP_above || e->op == OP_div || e->op == OP_mod)
        s->sure = false;
}

bool lower_is_sure(Prog *p, const Node *phase, Expr *e)
{
    Sure s = { { p, phase }, true };
    Memo met = { 0 };

    ir_visit(p, e, see_unsure, &s, &met);
    return s.sure;
}
