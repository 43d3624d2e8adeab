/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Reverse mode.  For each read F[x] of a statement O[o] op= v over a domain, in reverse order of the
 * statements: d_F[x] += d_O[o] * (dv / dF[x]) over the same domain and under the same guard.  All
 * gradients of one statement stay one statement, so that what they share is computed once. */
#include "grad/grad_int.h"

#include <string.h>

typedef struct List {
    Assign *a;
    int n, cap;
} List;

typedef struct Nodes { /* of one value, children first */
    Grad *g;
    Expr **e;
    int n, cap;
} Nodes;

static void add_node(Expr *e, void *ctx)
{
    Nodes *l = ctx;

    l->e = arena_grow(l->g->p->arena, l->e, l->n, &l->cap, sizeof *l->e);
    l->e[l->n++] = e;
}

/* Whether there may be no entry where the access looks by coordinate. */
static bool may_miss(Expr *load)
{
    for (int s = 0; s < load->nargs; s++) {
        Op op = (Op)load->arg[s]->op;
        const Axis *a = load->buf->slot[s];

        if (op != OP_var && op != OP_at && op != OP_none &&
            (!ir_is_ident(a) || (a->flags & AX_PADDED)))
            return true;
    }
    return false;
}

/* The cotangents of the nodes of one value.  A node under select, max or min is evaluated only
 * where it is chosen, and only there is its cotangent known: elsewhere it is zero, but the factors
 * in it may not exist. */
typedef struct Cotangents {
    Grad *g;
    Memo value, when; /* NULL: zero; always */
} Cotangents;

static bool excludes(Grad *g, Expr *a, Expr *b)
{
    bool sides = (a->op == OP_ge && b->op == OP_lt) || (a->op == OP_le && b->op == OP_gt);

    return b == grad_not(g, a) || a == grad_not(g, b) ||
           (sides && a->arg[0] == b->arg[0] && a->arg[1] == b->arg[1]);
}

/* Whether a and b are the two sides of one choice; then what was so before it and the choice. */
static bool are_sides(Grad *g, Expr *a, Expr *b, Expr **before, Expr **choice)
{
    *before = NULL;
    *choice = a;
    if (a == NULL || b == NULL)
        return false;
    if (excludes(g, a, b))
        return true;
    if (a->op != OP_and || b->op != OP_and || a->arg[0] != b->arg[0])
        return false;
    *before = a->arg[0];
    *choice = a->arg[1];
    return excludes(g, a->arg[1], b->arg[1]);
}

/* Where a or b holds; NULL: everywhere. */
static Expr *either(Grad *g, Expr *a, Expr *b)
{
    if (a == NULL || b == NULL)
        return NULL;
    for (Expr *e = b; e->op == OP_and; e = e->arg[0])
        if (e->arg[0] == a)
            return a;
    return ir_op2(g->p, OP_or, a, b);
}

/* Adds x, where a condition holds, to the cotangent of e. */
static void contribute(Cotangents *c, Expr *e, Expr *x, Expr *when)
{
    Grad *g = c->g;
    Expr *had = *ir_memo(g->p, &c->value, e), *had_when = *ir_memo(g->p, &c->when, e);
    Expr *before, *choice;

    if (had == NULL || had_when == when) {
        x = grad_plus(g, had, x);
    } else if (are_sides(g, had_when, when, &before, &choice)) {
        x = grad_select(g, choice, had, x);
        when = before;
    } else {
        x = grad_plus(g, grad_select(g, had_when, had, NULL), grad_select(g, when, x, NULL));
        when = either(g, had_when, when);
    }
    *ir_memo(g->p, &c->value, e) = x;
    *ir_memo(g->p, &c->when, e) = when;
}

/* From the root down: each node is complete before its arguments. */
static void propagate(Cotangents *c, const Nodes *l, const Assign *a)
{
    Grad *g = c->g;
    Memo depends = { 0 };

    contribute(c, a->value, ir_load(g->p, g->dual[a->out->buf->id], a->out->arg, a->out->nargs),
               NULL);
    for (int i = l->n - 1; i >= 0; i--) {
        Expr *e = l->e[i], *x = *ir_memo(g->p, &c->value, e), *when = *ir_memo(g->p, &c->when, e);

        for (int k = 0; k < e->nargs && e->op != OP_load && x != NULL; k++)
            if (!grad_is_flat((Op)e->op, k) && grad_depends(g, e->arg[k], g->active, &depends))
                contribute(c, e->arg[k],
                           grad_chain(g, e, k, x, e == a->value ? grad_result(a) : NULL),
                           grad_and(g, when, grad_when(g, e, k)));
    }
}

/* How many different accesses to the buffer of e have a cotangent, and which of them e is. */
static int occurrence(Cotangents *c, const Nodes *l, Expr *e)
{
    int count = 0, which = 0;

    for (int i = 0; i < l->n; i++) {
        Expr *f = l->e[i];

        if (f->op != OP_load || f->buf != e->buf || *ir_memo(c->g->p, &c->value, f) == NULL)
            continue;
        count++;
        if (f == e)
            which = count;
    }
    return count > 1 ? which : 0;
}

static Assign gradient(Cotangents *c, const Nodes *l, const Assign *a, Expr *load, Expr *guard)
{
    Grad *g = c->g;
    Assign d = { .op = A_ADD };

    d.label = grad_label(g, a->label, load->buf->name, occurrence(c, l, load));
    d.out = ir_load(g->p, g->dual[load->buf->id], load->arg, load->nargs);
    d.value = ir_simplify(g->p, *ir_memo(g->p, &c->value, load), &g->simple);
    d.guard = grad_and(g, guard, *ir_memo(g->p, &c->when, load));
    if (may_miss(load))
        d.guard = grad_and(g, d.guard, ir_op1(g->p, OP_stored, load));
    return d;
}

static void gradients_of_assign(Grad *g, const Assign *a, List *out)
{
    Nodes l = { .g = g };
    Cotangents c = { .g = g };
    Expr *guard;

    if (a->op == A_INSERT || !g->active[a->out->buf->id] ||
        !grad_depends(g, a->value, g->active, &(Memo){ 0 }))
        return;
    guard = grad_and(g, a->guard, grad_winner(g, a));
    ir_visit(g->p, a->value, add_node, &l, &(Memo){ 0 });
    propagate(&c, &l, a);
    for (int i = 0; i < l.n; i++) {
        if (l.e[i]->op != OP_load || *ir_memo(g->p, &c.value, l.e[i]) == NULL)
            continue;
        out->a = arena_grow(g->p->arena, out->a, out->n, &out->cap, sizeof *out->a);
        out->a[out->n++] = gradient(&c, &l, a, l.e[i], guard);
    }
}

static bool has_active_reader(Grad *g, const Buf *b)
{
    bool *only = arena_array(g->p->arena, g->nbuf, sizeof *only);

    only[b->id] = true;
    for (int i = 0; i < g->nstmt; i++)
        for (int k = 0; k < g->p->stmt[i]->nassign; k++) {
            const Assign *a = &g->p->stmt[i]->assign[k];

            if (a->op != A_INSERT && g->active[a->out->buf->id] &&
                grad_depends(g, a->value, only, &(Memo){ 0 }))
                return true;
        }
    return false;
}

/* The cotangent of an output is given; if the program reads the output too, what comes from there
 * is added in a temporary. */
static void sum_cotangents(Grad *g, Buf *b)
{
    Text name = { .arena = g->p->arena };
    Buf *given = g->dual[b->id];

    if (!has_active_reader(g, b))
        return;
    text_f(&name, "%ssum_%s", g->prefix, b->name);
    g->dual[b->id] = grad_dual(g, b, ir_fresh(g->p, name.s, false), B_TEMP);
    grad_set_all(g, g->dual[b->id], A_ADD, grad_label(g, "sum", b->name, 0), given);
}

static void add_duals(Grad *g)
{
    for (int i = 0; i < g->nbuf; i++)
        if (g->wrt[i] || g->active[i])
            g->dual[i] = grad_dual(g, g->p->buf[i], NULL, g->wrt[i] || g->of[i] ? B_ARG : B_TEMP);
    for (int i = 0; i < g->nbuf; i++)
        if (g->of[i] && g->active[i])
            sum_cotangents(g, g->p->buf[i]);
}

Prog *grad_reverse(Arena *arena, const Prog *p, const GradOptions *opt)
{
    Grad g;

    grad_begin(&g, arena, p, opt, 'd');
    add_duals(&g);
    for (int i = g.nstmt - 1; i >= 0; i--) {
        const Stmt *s = g.p->stmt[i];
        List list = { 0 };

        for (int k = 0; k < s->nassign; k++)
            gradients_of_assign(&g, &s->assign[k], &list);
        if (list.n > 0)
            ir_stmt(g.p, s->bind, s->nbind, list.a, list.n);
    }
    for (int i = 0; i < g.nbuf; i++)
        if (g.wrt[i] && !g.dual[i]->written)
            grad_set_all(&g, g.dual[i], A_SET, grad_label(&g, "zero", g.p->buf[i]->name, 0), NULL);
    return grad_end(&g, arena);
}
