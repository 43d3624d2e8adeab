/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Reverse mode.  For each read F[x] of a statement O[o] op= v over a domain, in reverse order of
 * the statements: d_F[x] += d_O[o] * (dv / dF[x]) over the same domain and under the same guard.
 * All gradients of one statement stay one statement, so that what they share is computed once.
 * Members of a group that sum nothing up are differentiated as one function of many results: a
 * value that several of them use gets their cotangents first, and is gone through once. */
#include "grad/grad_int.h"

typedef struct List {
    Assign *a;
    int n, cap;
} List;

/* A part of a node's cotangent.  Under select, max and min a node is evaluated only where it is
 * chosen, and only there is its cotangent known: elsewhere it is zero, but the factors in it may
 * not exist. */
typedef struct Part Part;
struct Part {
    Expr *x, *when; /* NULL: zero; always */
    bool total;     /* x may be evaluated elsewhere too, and is zero there */
    Part *next;
};

typedef struct Reverse {
    Grad *g;
    const Assign **a; /* whose values are being differentiated: under one guard, if several */
    int na;
    Expr **node; /* what varies in them, each before its arguments */
    int n, cap;
    Memo met, depends;
    Part **part; /* of the old program's nodes, by id: of their cotangents */
    int *reads;  /* by Buf.id: the accesses to it that have a cotangent, */
    int *done;   /* and those of them that have their gradient */
} Reverse;

/* Children first, the last one first; turned around at the end. */
static void list_nodes(Reverse *r, Expr *e)
{
    Expr **met = ir_memo(r->g->p, &r->met, e);

    if (*met != NULL || !grad_depends(r->g, e, r->g->active, &r->depends))
        return;
    *met = e;
    for (int i = e->nargs - 1; i >= 0 && e->op != OP_load; i--)
        if (!grad_is_flat((Op)e->op, i))
            list_nodes(r, e->arg[i]);
    r->node = arena_grow(r->g->p->arena, r->node, r->n, &r->cap, sizeof *r->node);
    r->node[r->n++] = e;
}

static void find_nodes(Reverse *r)
{
    r->n = 0;
    r->met = (Memo){ 0 };
    for (int i = r->na - 1; i >= 0; i--)
        list_nodes(r, r->a[i]->value);
    for (int i = 0; i < r->n / 2; i++) {
        Expr *e = r->node[i];

        r->node[i] = r->node[r->n - 1 - i];
        r->node[r->n - 1 - i] = e;
    }
    for (int i = 0; i < r->n; i++)
        r->part[r->node[i]->id] = NULL;
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

/* Whether the access names an entry in every slot, so that it never fails. */
static bool is_plain(Expr *load)
{
    for (int s = 0; s < load->nargs; s++)
        if (load->arg[s]->op != OP_var)
            return false;
    return true;
}

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
    if (a == NULL || b == NULL || a == b)
        return a == b ? a : NULL;
    for (Expr *e = b; e->op == OP_and; e = e->arg[0])
        if (e->arg[0] == a)
            return a;
    return ir_op2(g->p, OP_or, a, b);
}

/* Adds x, where a condition holds, to the cotangent of e. */
static void contribute(Reverse *r, Expr *e, Expr *x, Expr *when)
{
    Part **at = &r->part[e->id];

    for (; *at != NULL; at = &(*at)->next)
        if ((*at)->when == when) {
            (*at)->x = grad_plus(r->g, (*at)->x, x);
            return;
        }
    *at = arena_alloc(r->g->p->arena, sizeof **at);
    **at = (Part){ .x = x, .when = when };
}

/* Joins q to p when they hold in the same place or are the sides of one choice. */
static bool join(Reverse *r, Part *p, const Part *q)
{
    Expr *before, *choice;

    if (p->when == q->when) {
        p->x = grad_plus(r->g, p->x, q->x);
    } else if (are_sides(r->g, p->when, q->when, &before, &choice)) {
        p->x = grad_select(r->g, choice, p->x, q->x);
        p->when = before;
    } else {
        return false;
    }
    return true;
}

/* Joins two parts; false when there are none to join. */
static bool join_some(Reverse *r, Part *list)
{
    for (Part *p = list; p != NULL; p = p->next)
        for (Part **q = &p->next; *q != NULL; q = &(*q)->next)
            if (join(r, p, *q)) {
                *q = (*q)->next;
                return true;
            }
    return false;
}

/* Makes the cotangent of a node one part; false when it is zero. */
static bool complete(Reverse *r, Expr *e)
{
    Part *list = r->part[e->id], all = { .total = true };

    while (join_some(r, list))
        ;
    if (list != NULL)
        all.when = list->when;
    for (Part *p = list; p != NULL; p = p->next)
        all.when = either(r->g, all.when, p->when);
    for (Part *p = list; p != NULL; p = p->next) {
        bool everywhere = p->when == all.when;

        if (p->x == NULL)
            continue;
        all.x = grad_plus(r->g, all.x, grad_select(r->g, everywhere ? NULL : p->when, p->x, NULL));
        all.total = all.total && !everywhere;
    }
    if (list != NULL)
        *list = all;
    if (all.x == NULL)
        r->part[e->id] = NULL;
    return all.x != NULL;
}

/* The accesses that hold the value of a node: the result of an assign, the first that has one. */
static Memo find_results(Reverse *r)
{
    Memo result = { 0 };

    for (int i = 0; i < r->na; i++) {
        Expr **known = ir_memo(r->g->p, &result, r->a[i]->value);

        if (*known == NULL)
            *known = grad_result(r->g, r->a[i]);
    }
    return result;
}

/* From the roots down, so that each node is complete before its arguments. */
static void propagate(Reverse *r)
{
    Grad *g = r->g;
    Memo result = find_results(r);

    for (int i = 0; i < r->na; i++) {
        const Expr *out = r->a[i]->out;

        contribute(r, r->a[i]->value,
                   ir_load(g->p, g->dual[out->buf->id], out->arg, out->nargs), NULL);
    }
    for (int i = 0; i < r->n; i++) {
        Expr *e = r->node[i], *same = *ir_memo(g->p, &result, e);

        if (!complete(r, e) || e->op == OP_load)
            continue;
        for (int k = 0; k < e->nargs; k++)
            if (!grad_is_flat((Op)e->op, k) && grad_depends(g, e->arg[k], g->active, &r->depends))
                contribute(r, e->arg[k], grad_chain(g, e, k, r->part[e->id]->x, same),
                           grad_and(g, r->part[e->id]->when, grad_when(g, e, k)));
    }
}

/* The number of an access among those to its buffer that have a cotangent; 0 if it is the only one.
 * Gradients are made in the order of these numbers. */
static int occurrence(Reverse *r, const Buf *b)
{
    int which = ++r->done[b->id];

    return r->reads[b->id] > 1 ? which : 0;
}

static bool has_gradient(const Reverse *r, const Expr *e)
{
    return e->op == OP_load && r->part[e->id] != NULL;
}

static void count_reads(Reverse *r)
{
    for (int i = 0; i < r->n; i++)
        if (has_gradient(r, r->node[i]))
            r->reads[r->node[i]->buf->id] = r->done[r->node[i]->buf->id] = 0;
    for (int i = 0; i < r->n; i++)
        if (has_gradient(r, r->node[i]))
            r->reads[r->node[i]->buf->id]++;
}

static Assign gradient(Reverse *r, Expr *load, Expr *guard)
{
    Grad *g = r->g;
    const Part *part = r->part[load->id];
    Assign d = { .op = A_ADD };

    d.label = grad_label(g, r->a[0]->label, load->buf->name, occurrence(r, load->buf));
    d.out = ir_load(g->p, g->dual[load->buf->id], load->arg, load->nargs);
    d.value = grad_tidy(g, part->x);
    d.guard = grad_and(g, guard, part->total && is_plain(load) ? NULL : part->when);
    d.guard = grad_tidy(g, d.guard);
    if (may_miss(load))
        d.guard = grad_and(g, d.guard, ir_op1(g->p, OP_stored, d.out));
    return d;
}

/* Whether there is a cotangent: given, or written by what reads the buffer. */
static bool has_cotangent(const Grad *g, const Buf *b)
{
    return g->active[b->id] && (g->of[b->id] || g->dual[b->id]->written);
}

/* Each instance gives elements of its own, and nothing is summed up or compared. */
static bool is_pointwise(const Stmt *s, const Assign *a)
{
    bool all = a->op == A_SET || a->op == A_ADD;

    for (int i = 0; i < s->nbind && all; i++) {
        all = false;
        for (int k = 0; k < a->out->nargs; k++)
            all = all || (a->out->arg[k]->op == OP_var && a->out->arg[k]->var == s->bind[i]);
    }
    return all;
}

static bool varies(Reverse *r, const Assign *a)
{
    return a->op != A_INSERT && has_cotangent(r->g, a->out->buf) &&
           grad_depends(r->g, a->value, r->g->active, &r->depends);
}

/* The assigns from s->assign[k] on that are differentiated as one; gives the next k. */
static int take_roots(Reverse *r, const Stmt *s, int k)
{
    for (r->na = 0; k < s->nassign; k++) {
        const Assign *a = &s->assign[k];

        if (!varies(r, a))
            continue;
        if (r->na > 0 && (a->guard != r->a[0]->guard || !is_pointwise(s, r->a[0]) ||
                          !is_pointwise(s, a)))
            break;
        r->a[r->na++] = a;
    }
    return k;
}

static void gradients_of_roots(Reverse *r, List *out)
{
    Grad *g = r->g;
    Expr *guard;

    if (r->na == 0)
        return;
    find_nodes(r);
    guard = grad_and(g, r->a[0]->guard, grad_winner(g, r->a[0]));
    propagate(r);
    count_reads(r);
    for (int i = 0; i < r->n; i++) {
        if (!has_gradient(r, r->node[i]))
            continue;
        out->a = arena_grow(g->p->arena, out->a, out->n, &out->cap, sizeof *out->a);
        out->a[out->n++] = gradient(r, r->node[i], guard);
    }
}

/* The buffers that values of active statements vary with, by id. */
static bool *active_reads(Grad *g)
{
    bool *read = arena_array(g->p->arena, g->nbuf, sizeof *read);
    Memo met = { 0 };

    for (int i = 0; i < g->nstmt; i++)
        for (int k = 0; k < g->p->stmt[i]->nassign; k++) {
            const Assign *a = &g->p->stmt[i]->assign[k];

            if (a->op != A_INSERT && g->active[a->out->buf->id])
                grad_mark_read(g, a->value, read, &met);
        }
    return read;
}

/* The cotangent of an output is given; if the program reads the output too, what comes from there
 * is added in a temporary. */
static void sum_cotangents(Grad *g, Buf *b)
{
    Text name = { .arena = g->p->arena };
    Buf *given = g->dual[b->id];

    text_f(&name, "%ssum_%s", g->prefix, b->name);
    g->dual[b->id] = grad_dual(g, b, ir_fresh(g->p, name.s, false), B_TEMP);
    grad_set_all(g, g->dual[b->id], A_ADD, grad_label(g, "sum", b->name, 0), given);
}

static void add_duals(Grad *g)
{
    const bool *read = active_reads(g);

    for (int i = 0; i < g->nbuf; i++)
        if (g->wrt[i] || g->active[i])
            g->dual[i] = grad_dual(g, g->p->buf[i], NULL, g->wrt[i] || g->of[i] ? B_ARG : B_TEMP);
    for (int i = 0; i < g->nbuf; i++)
        if (g->of[i] && g->active[i] && read[i])
            sum_cotangents(g, g->p->buf[i]);
}

Prog *grad_reverse(Arena *arena, const Prog *p, const GradOptions *opt)
{
    Grad g;
    Reverse r = { .g = &g };

    grad_begin(&g, arena, p, opt, 'd');
    r.part = arena_array(arena, g.p->nexpr, sizeof(Part *));
    r.reads = arena_array(arena, g.nbuf, sizeof *r.reads);
    r.done = arena_array(arena, g.nbuf, sizeof *r.done);
    add_duals(&g);
    for (int i = g.nstmt - 1; i >= 0; i--) {
        const Stmt *s = g.p->stmt[i];
        List list = { 0 };

        r.a = arena_array(arena, s->nassign, sizeof *r.a);
        r.depends = (Memo){ 0 };
        for (int k = 0; k < s->nassign;) {
            k = take_roots(&r, s, k);
            gradients_of_roots(&r, &list);
        }
        if (list.n > 0)
            ir_stmt(g.p, s->bind, s->nbind, list.a, list.n);
    }
    for (int i = 0; i < g.nbuf; i++)
        if (g.wrt[i] && !g.dual[i]->written)
            grad_set_all(&g, g.dual[i], A_SET, grad_label(&g, "zero", g.p->buf[i]->name, 0), NULL);
    return grad_end(&g, arena);
}
