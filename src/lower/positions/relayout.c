/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Small operands in the order of lanes.  In Y[i, o] += X[v(e), c] * W[o, d(e), c] over entries e,
 * the elements of a row of Y are the lanes of a kernel, but W has neighbours along c, which is
 * summed over: lanes would gather, or each element would be a sum over lanes.  W is copied once
 * before the statement, with o last.  Each entry reads a whole matrix of W, so one copy costs
 * little beside the entries.  If then every access that uses o has it last, the loop over o
 * becomes the innermost one.
 *
 * Each element keeps the order of its terms: o is an index of the result, so the loop over o
 * moves only terms of different elements past each other.  Needs a checked program; gives an
 * equal one. */
#include "lower/lower.h"

#include <string.h>

typedef struct Copied { /* an operand, and its copy with this slot last */
    const Buf *from;
    int slot;
    Buf *to;
} Copied;

typedef struct Relayout {
    Prog *p;
    const Stmt *s;
    const Assign *a;
    Var *x;       /* in the last slot of the output */
    bool read;    /* an access has x in it */
    bool bad;     /* an access that lanes over x cannot read, and that cannot be copied */
    Copied *copy;
    int ncopy, cap;
    Stmt **stmt;
    int nstmt, cap_stmt;
} Relayout;

static bool is_dense(const Axis *a)
{
    return a->parent == NULL && a->extent == X_EXPR && ir_is_ident(a);
}

/* The slot that is the variable alone; -1: none is, or more than one index has it in it. */
static int slot_of(Prog *p, const Expr *load, Var *x)
{
    int at = -1, n = 0;
    Var *met[IR_MAX_BINDS];

    for (int s = 0; s < load->nargs; s++) {
        int count = ir_vars(p, load->arg[s], met, 0);

        for (int k = 0; k < count; k++)
            n += met[k] == x;
        at = load->arg[s]->op == OP_var && load->arg[s]->var == x ? s : at;
    }
    return n == 1 ? at : -1;
}

static bool has_var(Prog *p, const Expr *load, const Var *x)
{
    Var *met[IR_MAX_BINDS];
    bool has = false;

    for (int s = 0; s < load->nargs && !has; s++) {
        int count = ir_vars(p, load->arg[s], met, 0);

        for (int k = 0; k < count && !has; k++)
            has = met[k] == x;
    }
    return has;
}

/* Whether entries choose, by a coordinate, a matrix of a small array, in which x has slot `at` and
 * another variable that is summed over has the last one.  A matrix that all entries share is left
 * to edges/consume.c and registers/jam.c, which take several entries at once. */
static bool can_copy(const Relayout *r, const Expr *load, int at)
{
    const Buf *b = load->buf;
    const Expr *last = load->arg[load->nargs - 1];
    int64_t all = 1;
    bool chosen = false;

    if (at < 0 || b->kind == B_CONST || b->has_fill || last->op != OP_var ||
        ir_reach(r->a, last->var) != REACH_NONE)
        return false;
    for (int s = 0; s < b->nslot; s++) {
        chosen = chosen || load->arg[s]->op == OP_coord;
        if (!is_dense(b->slot[s]) || b->slot[s]->size->op != OP_int ||
            int_mul(all, b->slot[s]->size->i, &all) || all > r->p->policy.copied ||
            (load->arg[s]->op != OP_var && load->arg[s]->op != OP_coord))
            return false;
    }
    return chosen;
}

static Buf *declare_copy(Prog *p, const Buf *from, int at)
{
    Buf b = { .type = from->type, .kind = B_TEMP, .nslot = from->nslot };
    Text stem = { .arena = p->arena };

    text_f(&stem, "%.40s_t", from->name);
    b.name = ir_fresh(p, stem.s, false);
    b.slot = arena_array(p->arena, b.nslot, sizeof *b.slot);
    for (int s = 0, n = 0; s < b.nslot; s++)
        if (s != at)
            b.slot[n++] = from->slot[s];
    b.slot[b.nslot - 1] = from->slot[at];
    return ir_buf(p, &b);
}

/* The indices of an access, with slot `at` last. */
static void with_last(Expr *const *arg, int n, int at, Expr **out)
{
    Expr *last = arg[at];

    memmove(out, arg, (size_t)at * sizeof *out);
    memmove(out + at, arg + at + 1, (size_t)(n - 1 - at) * sizeof *out);
    out[n - 1] = last;
}

static void append(Relayout *r, Stmt *s)
{
    r->stmt = arena_grow(r->p->arena, r->stmt, r->nstmt, &r->cap_stmt, sizeof *r->stmt);
    r->stmt[r->nstmt++] = s;
}

/* The copy, made by a statement before this one; an array that no statement writes is copied
 * once. */
static Buf *copy_of(Relayout *r, Buf *from, int at)
{
    Prog *p = r->p;
    Var *bind[IR_MAX_FULL];
    Expr *load, *out[IR_MAX_RANK];
    Buf *to;

    for (int i = 0; i < r->ncopy && !from->written; i++)
        if (r->copy[i].from == from && r->copy[i].slot == at)
            return r->copy[i].to;
    to = declare_copy(p, from, at);
    load = ir_everywhere(p, from, bind);
    with_last(load->arg, load->nargs, at, out);
    append(r, ir_stmt(p, bind, from->nslot,
                      &(Assign){ .label = ir_fresh(p, "copy", true),
                                 .op = A_SET,
                                 .once = ONCE_PROVEN,
                                 .out = ir_load(p, to, out, load->nargs),
                                 .value = load },
                      1));
    p->nstmt--; /* it is in the new list */
    r->copy = arena_grow(p->arena, r->copy, r->ncopy, &r->cap, sizeof *r->copy);
    r->copy[r->ncopy++] = (Copied){ from, at, to };
    return to;
}

static void see_load(Expr *e, void *ctx)
{
    Relayout *r = ctx;
    int at;

    if (e->op != OP_load || !has_var(r->p, e, r->x))
        return;
    r->read = true;
    at = slot_of(r->p, e, r->x);
    if (at != e->nargs - 1)
        r->bad = r->bad || !can_copy(r, e, at);
}

static Expr *copied(Prog *p, Expr *e, void *ctx)
{
    Relayout *r = ctx;
    Expr *arg[IR_MAX_RANK];
    int at = e->op == OP_load && has_var(p, e, r->x) ? slot_of(p, e, r->x) : -1;

    if (at < 0 || at == e->nargs - 1)
        return e;
    with_last(e->arg, e->nargs, at, arg);
    return ir_load(p, copy_of(r, e->buf, at), arg, e->nargs);
}

/* Whether the loop over x may come innermost: it runs over a dense axis inside a loop over entries,
 * and another variable is the one whose iterations are run in parallel. */
static bool can_move(const Relayout *r)
{
    const Stmt *s = r->s;
    bool entries = false, owned = s->in_order;

    if (!is_dense(r->x->axis) || s->bind[0] == r->x ||
        ir_reach(r->a, r->x) != REACH_SPATIAL)
        return false;
    for (int b = 0; b < s->nbind; b++) {
        const Var *v = s->bind[b];

        if (v->parent != NULL && v->parent->op == OP_var && v->parent->var == r->x)
            return false;
        entries = entries || v->axis->extent == X_SEG;
        owned = owned || (v != r->x && v->axis->parent == NULL && is_dense(v->axis) &&
                          ir_reach(r->a, v) == REACH_SPATIAL && b == 0);
    }
    return entries && owned;
}

static void move_innermost(Prog *p, Stmt *s, Var *x)
{
    Var **bind = arena_array(p->arena, s->nbind, sizeof *bind);
    int n = 0;

    for (int b = 0; b < s->nbind; b++)
        if (s->bind[b] != x)
            bind[n++] = s->bind[b];
    bind[n] = x;
    s->bind = bind;
}

static void relayout_stmt(Relayout *r, Stmt *s)
{
    Prog *p = r->p;
    const Assign *a = &s->assign[0];
    const Expr *last = s->nassign == 1 && a->op == A_ADD && a->guard == NULL && a->out->nargs > 0
                           ? a->out->arg[a->out->nargs - 1]
                           : NULL;
    Memo met = { 0 }, memo = { 0 };
    Assign *to;

    r->s = s;
    r->a = a;
    r->x = last != NULL && last->op == OP_var ? last->var : NULL;
    r->read = false;
    r->bad = r->x == NULL || !can_move(r);
    if (!r->bad)
        ir_visit(p, a->value, see_load, r, &met);
    if (r->bad || !r->read) {
        append(r, s);
        return;
    }
    to = arena_copy(p->arena, a, sizeof *a);
    to->value = ir_rewrite(p, a->value, copied, r, &memo);
    s->assign = to;
    move_innermost(p, s, r->x);
    append(r, s);
}

void lower_relayout(Prog *p)
{
    Relayout r = { .p = p };
    int n = p->nstmt;

    for (int i = 0; i < n; i++)
        relayout_stmt(&r, p->stmt[i]);
    p->stmt = r.stmt;
    p->nstmt = p->cap_stmt = r.nstmt;
}
