/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * A program made anew, its nodes in the order of its text, whatever made them before: all of it;
 * without what no output needs (dead assigns, then the buffers, axes and sizes that nothing
 * mentions any more), with which passes that leave things behind (grad/) end; or for a batch: named
 * inputs, and all that depends on them, get an axis of copies in front. */
#include "ir/ir.h"

#include <string.h>

typedef struct Prune {
    const Prog *from;
    Prog *to;
    bool *buf, *axis, *size; /* by id: alive */
    bool **assign;           /* by statement, assign: alive */
    Memo met;
    /* of the new program, by id of the old one */
    Buf **new_buf;
    Axis **new_axis;
    Var **new_var;
    Expr **new_expr;
    bool *copied; /* by Buf.id: has the axis of copies; NULL: none has */
    Axis *copy;
    bool found; /* while a statement is looked at: it has something with copies */
} Prune;

static void keep_expr(Prune *c, Expr *e);

static void keep_axis(Prune *c, const Axis *a)
{
    if (a == NULL || c->axis[a->id])
        return;
    c->axis[a->id] = true;
    keep_axis(c, a->parent);
    keep_axis(c, a->from);
    keep_expr(c, a->size);
    for (int k = 0; k < a->ncoord; k++) {
        keep_expr(c, a->coord[k].expr);
        keep_expr(c, a->coord[k].bound);
    }
}

static void keep_buf(Prune *c, const Buf *b)
{
    c->buf[b->id] = true;
    for (int k = 0; k < b->nfull; k++)
        keep_axis(c, b->full[k]);
}

static void keep_var(Prune *c, const Var *v)
{
    keep_axis(c, v->axis);
    keep_expr(c, v->parent);
}

static void keep_node(Expr *e, void *ctx)
{
    Prune *c = ctx;

    switch (e->op) {
    case OP_size: c->size[e->size->id] = true; break;
    case OP_var:
    case OP_coord:
    case OP_pos:
    case OP_loc: keep_var(c, e->var); break;
    case OP_count:
    case OP_row: keep_axis(c, e->axis); break;
    case OP_load: keep_buf(c, e->buf); break;
    default: break;
    }
}

static void keep_expr(Prune *c, Expr *e)
{
    if (e != NULL)
        ir_visit(c->to, e, keep_node, c, &c->met);
}

static bool is_output(const Buf *b)
{
    return b->written && (b->kind == B_ARG || b->kind == B_INOUT);
}

static bool is_alive(const Prune *c, const Expr *out)
{
    return c->buf[out->buf->id] || is_output(out->buf);
}

/* An assign lives when something it writes does; a built axis always is an output. */
static bool is_needed(const Prune *c, const Assign *a)
{
    bool needed = a->op == A_INSERT || is_alive(c, a->out);

    for (int k = 0; k < a->nat; k++)
        needed = needed || is_alive(c, a->at[k].out);
    return needed;
}

/* What a living assign needs; its companions live or die by themselves. */
static void keep_assign(Prune *c, const Assign *a)
{
    keep_expr(c, a->out);
    keep_expr(c, a->value);
    keep_expr(c, a->guard);
    for (int k = 0; k < a->nat; k++)
        if (is_alive(c, a->at[k].out)) {
            keep_expr(c, a->at[k].out);
            keep_expr(c, a->at[k].value);
        }
}

/* Marks what has become needed; false when nothing has. */
static bool mark_more(Prune *c)
{
    bool more = false;

    for (int i = c->from->nstmt - 1; i >= 0; i--) {
        const Stmt *s = c->from->stmt[i];

        for (int k = 0; k < s->nassign; k++) {
            if (c->assign[i][k] || !is_needed(c, &s->assign[k]))
                continue;
            c->assign[i][k] = more = true;
            keep_assign(c, &s->assign[k]);
            for (int v = 0; v < s->nbind; v++)
                keep_var(c, s->bind[v]);
        }
    }
    return more;
}

/* Reads stand after all writes, so going backwards once is enough, but for stored(C[...]), which
 * may stand before C is written, and companions. */
static void mark(Prune *c)
{
    while (mark_more(c))
        ;
}

static Expr *move_expr(Prune *c, Expr *e);

static bool is_copied(const Prune *c, const Buf *b)
{
    return c->copied != NULL && c->copied[b->id];
}

/* The element of a buffer, at a copy where it has them. */
static Expr *move_load(Prune *c, const Buf *b, Expr *const *index, int n)
{
    Expr *all[IR_MAX_RANK + 1];
    int first = is_copied(c, b);

    if (first)
        all[0] = ir_var_expr(c->to, c->copy->var);
    for (int i = 0; i < n; i++)
        all[first + i] = index[i];
    return ir_load(c->to, c->new_buf[b->id], all, first + n);
}

/* The anonymous dense axes are made on demand; the declared ones are there already. */
static Axis *new_axis(Prune *c, const Axis *a)
{
    Axis **to = &c->new_axis[a->id];

    if (*to == NULL)
        *to = ir_dense(c->to, move_expr(c, a->size));
    return *to;
}

static Var *move_var(Prune *c, const Var *v)
{
    Var **to = &c->new_var[v->id];

    if (*to == NULL)
        *to = v == v->axis->var
                  ? c->new_axis[v->axis->id]->var
                  : ir_var(c->to, v->name, new_axis(c, v->axis), move_expr(c, v->parent));
    return *to;
}

static Expr *move_leaf(Prune *c, Expr *e)
{
    switch (e->op) {
    case OP_int: return ir_int(c->to, e->i);
    case OP_real: return ir_real(c->to, e->f);
    case OP_size: return ir_size_expr(c->to, ir_find_size(c->to, e->size->name));
    case OP_var: return ir_var_expr(c->to, move_var(c, e->var));
    case OP_coord: return ir_coord(c->to, move_var(c, e->var), e->k);
    case OP_pos:
    case OP_loc: return ir_of_var(c->to, (Op)e->op, move_var(c, e->var));
    case OP_count: return ir_count(c->to, c->new_axis[e->axis->id]);
    case OP_none: return ir_none(c->to);
    default: return move_load(c, e->buf, NULL, 0); /* a scalar */
    }
}

static Expr *move_expr(Prune *c, Expr *e)
{
    Expr *arg[IR_MAX_RANK] = { 0 };

    if (e == NULL || c->new_expr[e->id] != NULL)
        return e == NULL ? NULL : c->new_expr[e->id];
    for (int i = 0; i < e->nargs; i++)
        arg[i] = move_expr(c, e->arg[i]);
    if (e->nargs == 0)
        c->new_expr[e->id] = move_leaf(c, e);
    else if (e->op == OP_load)
        c->new_expr[e->id] = move_load(c, e->buf, arg, e->nargs);
    else if (e->op == OP_row)
        c->new_expr[e->id] = ir_row(c->to, c->new_axis[e->axis->id], arg[0]);
    else
        c->new_expr[e->id] = ir_node(c->to, (Op)e->op, arg, e->nargs);
    return c->new_expr[e->id];
}

static void *dup(Prune *c, const void *p, int64_t n, size_t elem)
{
    return p == NULL ? NULL : arena_copy(c->to->arena, p, (size_t)n * elem);
}

static void move_axis(Prune *c, const Axis *a)
{
    Axis *up = a->parent == NULL ? NULL : c->new_axis[a->parent->id];
    Axis *to = ir_axis_open(c->to, a->name, up);

    c->new_axis[a->id] = to;
    to->extent = a->extent;
    to->size = move_expr(c, a->size);
    to->table = dup(c, a->table, a->n, sizeof *a->table);
    to->n = a->n;
    to->flags = a->flags;
    to->from = a->from == NULL ? NULL : c->new_axis[a->from->id];
    to->from_k = a->from_k;
    to->part = a->part;
    if (a->format != NULL)
        to->format = arena_copy(c->to->arena, a->format, strlen(a->format) + 1);
    for (int k = 0; k < a->ncoord; k++) {
        Coord d = a->coord[k];

        d.table = dup(c, d.table, d.n, sizeof *d.table);
        d.expr = move_expr(c, d.expr);
        d.bound = move_expr(c, d.bound);
        d.owner = d.owner == NULL ? NULL : c->new_axis[d.owner->id];
        ir_axis_coord(c->to, to, &d);
    }
    ir_axis_close(c->to, to);
}

static void move_buf(Prune *c, const Buf *b)
{
    Buf d = *b;
    Axis *slots[IR_MAX_RANK + 1];
    int first = is_copied(c, b);

    if (first)
        slots[0] = c->copy;
    for (int s = 0; s < b->nslot; s++)
        slots[first + s] = new_axis(c, b->slot[s]);
    d.slot = slots;
    d.nslot = first + b->nslot;
    d.val = dup(c, b->val, b->n, sizeof *b->val);
    d.ival = dup(c, b->ival, b->n, sizeof *b->ival);
    c->new_buf[b->id] = ir_buf(c->to, &d);
}

static const char *numbered(Prune *c, const char *stem, int number)
{
    Text name = { .arena = c->to->arena };

    text_str(&name, stem);
    if (number > 0)
        text_f(&name, "%d", number);
    return name.s;
}

static bool is_known(const Prune *c, const char *name)
{
    return ir_find_symbol(c->from, name, strlen(name)) != NULL;
}

/* "copies" and "Copy", or the first copies1 and Copy1, ... that the old program has not. */
static void declare_copies(Prune *c)
{
    int i = 0;

    while (is_known(c, numbered(c, "copies", i)) || is_known(c, numbered(c, "Copy", i)) ||
           is_known(c, numbered(c, "copy", i)))
        i++;
    c->copy = ir_axis_open(c->to, numbered(c, "Copy", i), NULL);
    c->copy->extent = X_EXPR;
    c->copy->size = ir_size_expr(c->to, ir_size(c->to, numbered(c, "copies", i)));
    ir_axis_close(c->to, c->copy);
}

static void move_decls(Prune *c)
{
    for (int i = 0; i < c->from->nsize; i++)
        if (c->size[i])
            ir_size(c->to, c->from->size[i]->name);
    if (c->copied != NULL)
        declare_copies(c);
    for (int i = 0; i < c->from->ndecl; i++) {
        const Decl *d = &c->from->decl[i];

        if (d->axis != NULL && c->axis[d->axis->id])
            move_axis(c, d->axis);
        if (d->buf != NULL && c->buf[d->buf->id])
            move_buf(c, d->buf);
    }
}

static Assign move_assign(Prune *c, const Assign *a)
{
    Assign to = *a;

    to.out = move_expr(c, a->out);
    to.value = move_expr(c, a->value);
    to.guard = move_expr(c, a->guard);
    to.at = arena_array(c->to->arena, a->nat, sizeof *to.at);
    to.nat = 0;
    for (int k = 0; k < a->nat; k++)
        if (c->buf[a->at[k].out->buf->id])
            to.at[to.nat++] = (At){ move_expr(c, a->at[k].out), move_expr(c, a->at[k].value) };
    return to;
}

static void move_stmt(Prune *c, int i)
{
    const Stmt *s = c->from->stmt[i];
    Assign *list = arena_array(c->to->arena, s->nassign, sizeof *list);
    Var *bind[IR_MAX_BINDS + 1];
    int n = 0, first = s->assign[0].op != A_INSERT && is_copied(c, s->assign[0].out->buf);

    for (int k = 0; k < s->nassign; k++)
        n += c->assign[i][k];
    if (first)
        bind[0] = c->copy->var;
    for (int v = 0; v < s->nbind && n > 0; v++)
        bind[first + v] = move_var(c, s->bind[v]);
    n = 0;
    for (int k = 0; k < s->nassign; k++)
        if (c->assign[i][k])
            list[n++] = move_assign(c, &s->assign[k]);
    if (n > 0)
        ir_stmt(c->to, bind, first + s->nbind, list, n);
}

static Prune *begin(Arena *arena, const Prog *p)
{
    Prune *c = arena_alloc(arena, sizeof *c);

    *c = (Prune){ .from = p, .to = ir_prog(arena, p->name) };
    c->buf = arena_array(arena, p->nbuf, sizeof *c->buf);
    c->axis = arena_array(arena, p->naxis, sizeof *c->axis);
    c->size = arena_array(arena, p->nsize, sizeof *c->size);
    c->assign = arena_array(arena, p->nstmt, sizeof *c->assign);
    for (int i = 0; i < p->nstmt; i++)
        c->assign[i] = arena_array(arena, p->stmt[i]->nassign, sizeof **c->assign);
    c->new_buf = arena_array(arena, p->nbuf, sizeof(Buf *));
    c->new_axis = arena_array(arena, p->naxis, sizeof(Axis *));
    c->new_var = arena_array(arena, p->nvar, sizeof(Var *));
    c->new_expr = arena_array(arena, p->nexpr, sizeof(Expr *));
    return c;
}

static Prog *move(Prune *c)
{
    move_decls(c);
    for (int i = 0; i < c->from->nstmt; i++)
        move_stmt(c, i);
    return c->to;
}

Prog *ir_prune(Arena *arena, const Prog *p)
{
    Prune *c;

    if (p->stage != STAGE_COORDINATES) /* a tree is kept as it is */
        return ir_copy(arena, p);
    c = begin(arena, p);
    mark(c);
    return move(c);
}

static Prune *begin_all(Arena *arena, const Prog *p)
{
    Prune *c = begin(arena, p);

    memset(c->buf, true, (size_t)p->nbuf * sizeof *c->buf);
    memset(c->axis, true, (size_t)p->naxis * sizeof *c->axis);
    memset(c->size, true, (size_t)p->nsize * sizeof *c->size);
    for (int i = 0; i < p->nstmt; i++)
        memset(c->assign[i], true, (size_t)p->stmt[i]->nassign * sizeof **c->assign);
    return c;
}

Prog *ir_rebuild(Arena *arena, const Prog *p)
{
    return move(begin_all(arena, p));
}

static void see_copied(Expr *e, void *ctx)
{
    Prune *c = ctx;

    c->found = c->found || (e->op == OP_load && c->copied[e->buf->id]);
}

/* Marks what a statement writes, if it reads or writes something that has copies: its assigns share
 * their loops.  False when nothing is new. */
static bool mark_copied(Prune *c, const Stmt *s)
{
    bool more = false;
    Memo met = { 0 };

    c->found = false;
    for (int k = 0; k < s->nassign; k++)
        ir_visit_assign((Prog *)c->from, &s->assign[k], see_copied, c, &met);
    for (int k = 0; k < s->nassign && c->found; k++) {
        const Assign *a = &s->assign[k];

        if (a->op == A_INSERT)
            err_throw(c->to->arena->err, ST_ARG,
                      "%s: the structure that it builds would differ from copy to copy; run the "
                      "program for each copy", a->label);
        more = more || !c->copied[a->out->buf->id];
        c->copied[a->out->buf->id] = true;
        for (int j = 0; j < a->nat; j++)
            c->copied[a->at[j].out->buf->id] = true;
    }
    return more;
}

Prog *ir_batch(Arena *arena, const Prog *p, const char *const *name, int n)
{
    Prune *c = begin_all(arena, p);
    bool more = true;

    c->copied = arena_array(arena, p->nbuf, sizeof *c->copied);
    for (int i = 0; i < n; i++) {
        const Buf *b = ir_find_buf(p, name[i]);

        if (b == NULL || b->kind != B_ARG || b->written)
            err_throw(arena->err, ST_ARG, "%s is no input of %s that has values; name such inputs",
                      name[i], p->name);
        if (b->nslot == IR_MAX_RANK)
            err_throw(arena->err, ST_LIMIT, "%s has %d dimensions and cannot have one more",
                      b->name, b->nslot);
        c->copied[b->id] = true;
    }
    while (more) {
        more = false;
        for (int i = 0; i < p->nstmt; i++)
            more = mark_copied(c, p->stmt[i]) || more;
    }
    return move(c);
}
