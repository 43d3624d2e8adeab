/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Scatters to owned rows.  O[j(e), ...] += v over the entries e of rows i becomes the same sum over
 * the rows j of the transpose: a new axis R of j's extent, and under it an axis T(R) that has, for
 * each entry, its position and its row.  The plan fills T by a stable sort, so each element sees
 * its terms in the order it saw them before.  Needs a checked program; gives an equal one. */
#include "lower/lower_int.h"

#include <string.h>

typedef struct Reroot {
    Prog *p;
    Var *i, *e, *r, *t; /* row and entry before; row and entry of the transpose */
    int k;              /* the coordinate of e that is the new row */
    bool bad;           /* something that the transpose does not know is used */
} Reroot;

/* The slot of an output that scatters by a coordinate of an entry, which the plan can sort by. */
static Expr *scatter_index(const Assign *a)
{
    for (int s = 0; s < a->out->nargs; s++) {
        Expr *x = a->out->arg[s];
        const Axis *slot = a->out->buf->slot[s], *e, *up;

        if (x->op != OP_coord || !ir_is_ident(slot) || slot->parent != NULL)
            continue;
        e = x->var->axis;
        up = e->parent;
        if (e->extent == X_SEG && e->coord[x->k].kind == C_LOAD &&
            !((e->flags | up->flags) & AX_PADDED) && e->coord[x->k].bound == slot->size &&
            up->parent == NULL && up->extent == X_EXPR && ir_is_ident(up) &&
            x->var->parent->op == OP_var)
            return x;
    }
    return NULL;
}

static Axis *open_axis(Prog *p, const char *letter, const Axis *of, Axis *parent)
{
    Text name = { .arena = p->arena };
    int n = 0;

    do {
        name.n = 0;
        text_f(&name, "%s_%.40s", letter, of->name);
        if (n++ > 0)
            text_f(&name, "%d", n);
    } while (ir_find_symbol(p, name.s, name.n) != NULL);
    return ir_axis_open(p, name.s, parent);
}

/* The transpose of an axis by a coordinate: made once. */
static Axis *transpose(Prog *p, Axis *e, int k)
{
    Axis *rows, *t;

    for (int i = 0; i < p->naxis; i++)
        if (p->axis[i]->from == e && p->axis[i]->from_k == k)
            return p->axis[i];
    rows = open_axis(p, "R", e, NULL);
    rows->extent = X_EXPR;
    rows->size = e->coord[k].bound;
    ir_axis_close(p, rows);
    t = open_axis(p, "T", e, rows);
    t->extent = X_SEG;
    ir_axis_coord(p, t, &(Coord){ .kind = C_LOAD, .name = ir_fresh(p, "entry", false) });
    ir_axis_coord(
        p, t,
        &(Coord){ .kind = C_LOAD, .name = ir_fresh(p, "row", false), .bound = e->parent->size });
    ir_axis_close(p, t);
    t->from = e;
    t->from_k = k;
    return t;
}

/* Indices: the entry is found by its position, its row by number; ancestors of a position are told
 * by it. */
static Expr *move_load(Reroot *c, Expr *load)
{
    Expr *arg[IR_MAX_RANK];
    const Buf *b = load->buf;
    Axis *at = NULL;

    for (int s = 0; s < load->nargs; s++) {
        Expr *x = load->arg[s];

        arg[s] = x;
        if (x->op == OP_var && x->var == c->e) {
            arg[s] = ir_op1(c->p, OP_at, ir_coord(c->p, c->t, 0));
            at = b->slot[s];
        } else if (x->op == OP_var && x->var == c->i) {
            arg[s] = ir_coord(c->p, c->t, 1);
        }
    }
    for (int s = 0; s < load->nargs && at != NULL; s++)
        if (ir_is_ancestor(b->slot[s], at))
            arg[s] = ir_none(c->p);
    return ir_load(c->p, load->buf, arg, load->nargs);
}

static Expr *move(Prog *p, Expr *e, void *ctx)
{
    Reroot *c = ctx;
    Var *v = e->op == OP_coord || e->op == OP_pos || e->op == OP_loc ? e->var : NULL;

    if (e->op == OP_load)
        return move_load(c, e);
    if (v == c->i)
        return ir_coord(p, c->t, 1); /* a root axis of plain rows: all three are the row */
    if (v != c->e)
        return e;
    if (e->op == OP_pos)
        return ir_coord(p, c->t, 0);
    if (e->op == OP_coord && e->k == c->k)
        return ir_var_value(p, c->r);
    c->bad = true;
    return e;
}

/* Whether row and entry are bound one right after the other: a loop between them would be outside
 * all rows then, and change the order of the terms. */
static bool are_neighbours(const Stmt *s, const Var *row, const Var *entry)
{
    int b = 0;

    while (s->bind[b] != row)
        b++;
    return b + 1 < s->nbind && s->bind[b + 1] == entry;
}

static bool hangs_on(const Var *v, const Var *up)
{
    for (; v->parent != NULL && v->parent->op == OP_var; v = v->parent->var)
        if (v->parent->var == up)
            return true;
    return false;
}

/* The assign over the transpose's rows; false when it cannot be. */
static bool reroot(Prog *p, const Stmt *s, const Assign *a, Stmt *out)
{
    Expr *x = scatter_index(a);
    Reroot c = { .p = p };
    Memo memo = { 0 };
    Axis *t;
    int n = 0;

    if (x == NULL || a->nat > 0)
        return false;
    c.e = x->var;
    c.i = c.e->parent->var;
    c.k = x->k;
    if (!are_neighbours(s, c.i, c.e))
        return false;
    for (int b = 0; b < s->nbind; b++) /* nothing else may hang on the old row or entry */
        if ((s->bind[b] != c.e && hangs_on(s->bind[b], c.i)) || hangs_on(s->bind[b], c.e) ||
            (s->bind[b]->parent != NULL && s->bind[b]->parent->op != OP_var))
            return false;
    t = transpose(p, c.e->axis, c.k);
    c.t = t->var;
    c.r = t->parent->var;
    out->assign = arena_copy(p->arena, a, sizeof *a);
    out->assign->out = ir_rewrite(p, a->out, move, &c, &memo);
    out->assign->value = ir_rewrite(p, a->value, move, &c, &memo);
    if (a->guard != NULL)
        out->assign->guard = ir_rewrite(p, a->guard, move, &c, &memo);
    out->bind = arena_array(p->arena, s->nbind, sizeof *out->bind);
    for (int b = 0; b < s->nbind; b++)
        out->bind[n++] = s->bind[b] == c.i ? c.r : s->bind[b] == c.e ? c.t : s->bind[b];
    out->nbind = n;
    out->nassign = 1;
    return !c.bad;
}

/* Whether iterations of the first variable write different elements. */
static bool is_owned(const Stmt *s, const Assign *a)
{
    return s->nbind > 0 && ir_reach(a, s->bind[0]) == REACH_SPATIAL;
}

typedef struct Stmts {
    Stmt **stmt;
    int n, cap;
} Stmts;

static void add_stmt(Prog *p, Stmts *l, const Stmt *s)
{
    l->stmt = arena_grow(p->arena, l->stmt, l->n, &l->cap, sizeof *l->stmt);
    l->stmt[l->n++] = arena_copy(p->arena, s, sizeof *s);
}

static bool writes(const Stmt *s, const Buf *b)
{
    for (int k = 0; k < s->nassign; k++)
        if (s->assign[k].op != A_INSERT && s->assign[k].out->buf == b)
            return true;
    return false;
}

/* Assigns that own their rows stay together; scatters go apart, rerooted where that is possible.
 * Those that write one buffer keep their order. */
static void reroot_stmt(Prog *p, const Stmt *s, Stmts *out)
{
    Stmt owned = *s;

    owned.assign = arena_array(p->arena, s->nassign, sizeof *owned.assign);
    owned.nassign = 0;
    for (int k = 0; k < s->nassign; k++) {
        const Assign *a = &s->assign[k];
        Stmt moved = *s;

        if (a->op == A_INSERT || is_owned(s, a) || !reroot(p, s, a, &moved)) {
            owned.assign[owned.nassign++] = *a;
            continue;
        }
        if (writes(&owned, a->out->buf)) {
            add_stmt(p, out, &owned);
            owned.assign += owned.nassign;
            owned.nassign = 0;
        }
        add_stmt(p, out, &moved);
    }
    if (owned.nassign > 0)
        add_stmt(p, out, &owned);
}

void lower_reroot(Prog *p)
{
    Stmts all = { 0 };

    for (int i = 0; i < p->nstmt; i++)
        reroot_stmt(p, p->stmt[i], &all);
    p->stmt = all.stmt;
    p->nstmt = p->cap_stmt = all.n;
}
