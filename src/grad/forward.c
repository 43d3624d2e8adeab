/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Forward mode: beside each statement O[o] op= v, in the same order, t_O[o] += the derivative of v
 * along the tangents of what it reads, over the same domain and under the same guard. */
#include "grad/grad_int.h"

typedef struct Forward {
    Grad *g;
    const Assign *a;
    Memo tangent, depends;
} Forward;

/* NULL when every statement that writes the buffer turned out to have none. */
static Expr *tangent_of_load(Grad *g, Expr *e)
{
    Buf *dual = g->dual[e->buf->id];

    if (!dual->written && !g->wrt[e->buf->id])
        return NULL;
    return ir_load(g->p, dual, e->arg, e->nargs);
}

static Expr *tangent(Forward *f, Expr *e);

/* The tangent of argument i; NULL when that is zero, or e does not vary with it. */
static Expr *tangent_of_arg(Forward *f, Expr *e, int i)
{
    if (grad_is_flat((Op)e->op, i) || !grad_depends(f->g, e->arg[i], f->g->active, &f->depends))
        return NULL;
    return tangent(f, e->arg[i]);
}

static Expr *tangent_of_node(Forward *f, Expr *e)
{
    Grad *g = f->g;
    int first = e->op == OP_select ? 1 : 0;
    Expr *when = grad_when(g, e, first), *same = e == f->a->value ? grad_result(g, f->a) : NULL;
    Expr *sum = NULL;

    if (when != NULL)
        return grad_select(g, when, tangent_of_arg(f, e, first), tangent_of_arg(f, e, first + 1));
    for (int i = 0; i < e->nargs; i++) {
        Expr *x = tangent_of_arg(f, e, i);

        if (x != NULL)
            sum = grad_plus(g, sum, grad_chain(g, e, i, x, same));
    }
    return sum;
}

/* The tangent of a value that varies with an active buffer; NULL when it is zero all the same. */
static Expr *tangent(Forward *f, Expr *e)
{
    Grad *g = f->g;
    Expr *x = *ir_memo(g->p, &f->tangent, e);

    if (e->op == OP_load)
        x = tangent_of_load(g, e);
    else if (x == NULL)
        x = tangent_of_node(f, e);
    *ir_memo(g->p, &f->tangent, e) = x;
    return x;
}

/* The tangent of an assign; false when it is zero, unless an inout buffer goes on from its own. */
static bool tangent_of_assign(Grad *g, const Assign *a, Assign *out)
{
    Forward f = { .g = g, .a = a };
    Buf *dual = a->op == A_INSERT ? NULL : g->dual[a->out->buf->id];
    Expr *value = NULL;

    if (dual == NULL)
        return false;
    if (grad_depends(g, a->value, g->active, &f.depends))
        value = tangent(&f, a->value);
    if (value == NULL && dual->kind != B_INOUT)
        return false;
    *out = (Assign){ .op = a->op == A_SET ? A_SET : A_ADD };
    out->label = grad_label(g, a->label, NULL, 0);
    out->out = ir_load(g->p, dual, a->out->arg, a->out->nargs);
    out->value = value == NULL ? ir_int(g->p, 0) : grad_tidy(g, value);
    out->guard = grad_tidy(g, grad_and(g, a->guard, grad_winner(g, a)));
    return true;
}

static void tangents_of_stmt(Grad *g, const Stmt *s)
{
    Assign *list = arena_array(g->p->arena, s->nassign, sizeof *list);
    int n = 0;

    for (int k = 0; k < s->nassign; k++)
        n += tangent_of_assign(g, &s->assign[k], &list[n]);
    if (n > 0)
        ir_stmt(g->p, s->bind, s->nbind, list, n);
}

/* The first content of an inout buffer has a tangent too. */
static BufKind kind_of_tangent(const Grad *g, int i)
{
    if (g->old->buf[i]->kind == B_INOUT)
        return B_INOUT;
    return g->wrt[i] || g->of[i] ? B_ARG : B_TEMP;
}

Prog *grad_forward(Arena *arena, const Prog *p, const GradOptions *opt)
{
    Grad g;

    grad_begin(&g, arena, p, opt, 't');
    for (int i = 0; i < g.nbuf; i++)
        if (g.active[i] || g.of[i])
            g.dual[i] = grad_dual(&g, g.p->buf[i], NULL, kind_of_tangent(&g, i));
    for (int i = 0; i < g.nstmt; i++)
        tangents_of_stmt(&g, g.p->stmt[i]);
    for (int i = 0; i < g.nbuf; i++)
        if (g.of[i] && !g.dual[i]->written)
            grad_set_all(&g, g.dual[i], A_SET, grad_label(&g, "zero", g.p->buf[i]->name, 0), NULL);
    return grad_end(&g, arena);
}
