/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Whole programs in another arena: an exact copy (every id the same), and a copy of what is in use
 * (the same order of ids, without gaps), which is how garbage in an arena is collected. */
#include "ir/ir_int.h"
#include "ir/loop.h"

#include <string.h>

/* A copy is a relocation: each object is copied as it is, then its pointers are looked up by id
 * in the new program. */
typedef struct Copy {
    const Prog *from;
    Prog *to;
    Expr **expr;   /* by old id: the new ones; NULL: not copied */
    Local **local; /* by id: the new ones that have been asked for */
} Copy;

static void *dup(Copy *c, const void *p, int64_t n, size_t elem)
{
    return p == NULL ? NULL : arena_copy(c->to->arena, p, (size_t)n * elem);
}

/* The same for what is there, be it empty. */
static void *dup_all(Copy *c, const void *p, int64_t n, size_t elem)
{
    return arena_copy(c->to->arena, p, (size_t)n * elem);
}

static const char *copy_name(Copy *c, const char *s)
{
    return s == NULL ? NULL : ir_symbol(c->to, s, strlen(s))->name;
}

static Expr *expr_of(Copy *c, Expr *e)
{
    return e == NULL ? NULL : c->expr[e->id];
}

static Axis *axis_of(Copy *c, const Axis *a)
{
    return a == NULL ? NULL : c->to->axis[a->id];
}

Buf *loop_same_buf(const Prog *p, const Buf *b)
{
    return b == NULL ? NULL : b->id < LOOP_OWN ? p->buf[b->id] : p->aux[b->id - LOOP_OWN];
}

static Local *local_of(Copy *c, const Local *l)
{
    if (l != NULL && c->local[l->id] == NULL) {
        c->local[l->id] = dup(c, l, 1, sizeof *l);
        c->local[l->id]->name = copy_name(c, l->name);
        c->local[l->id]->path = copy_name(c, l->path);
    }
    return l == NULL ? NULL : c->local[l->id];
}

static void copy_axis(Copy *c, const Axis *from, Axis *to)
{
    *to = *from;
    to->name = copy_name(c, from->name);
    to->parent = axis_of(c, from->parent);
    to->from = axis_of(c, from->from);
    if (from->format != NULL)
        to->format = dup_all(c, from->format, (int64_t)strlen(from->format) + 1, 1);
    to->size = expr_of(c, from->size);
    to->table = dup(c, from->table, from->n, sizeof *from->table);
    to->starts = dup(c, from->starts, from->n + 1, sizeof *from->starts);
    to->var = from->var == NULL ? NULL : c->to->var[from->var->id];
    to->coord = dup(c, from->coord, from->ncoord, sizeof *from->coord);
    for (int k = 0; k < to->ncoord; k++) {
        Coord *d = &to->coord[k];

        d->name = copy_name(c, d->name);
        d->table = dup(c, d->table, d->n, sizeof *d->table);
        d->expr = expr_of(c, d->expr);
        d->bound = expr_of(c, d->bound);
        d->owner = axis_of(c, d->owner);
    }
}

/* The object that a node names, in this copy of its program; locals apart. */
static void relocate(const Prog *p, struct Expr *e)
{
    switch (e->op) {
    case OP_size: e->size = p->size[e->size->id]; break;
    case OP_var:
    case OP_coord:
    case OP_pos:
    case OP_loc: e->var = p->var[e->var->id]; break;
    case OP_count:
    case OP_find:
    case OP_above:
    case OP_row: e->axis = p->axis[e->axis->id]; break;
    case OP_cell:
    case OP_load: e->buf = loop_same_buf(p, e->buf); break;
    default: break;
    }
}

static void copy_expr(Copy *c, Expr *from, struct Expr *to)
{
    Expr **arg = arena_copy(c->to->arena, from->arg, from->nargs * sizeof *arg);
    uint32_t id = to->id;

    *to = *from;
    to->id = id;
    for (int i = 0; i < from->nargs; i++)
        arg[i] = expr_of(c, arg[i]);
    to->arg = arg;
    if (from->op == OP_local)
        to->local = local_of(c, from->local);
    else
        relocate(c->to, to);
}

static void copy_strides(Copy *c, const Buf *from, Buf *to)
{
    Stride *stride = dup(c, from->stride, from->nstride, sizeof *stride);

    for (int d = 0; d < from->nstride; d++)
        if (stride[d].size != NULL)
            stride[d].size = c->to->size[stride[d].size->id];
    to->stride = stride;
}

static void copy_buf(Copy *c, const Buf *from, Buf *to)
{
    *to = *from;
    to->name = copy_name(c, from->name);
    to->slot = dup(c, from->slot, from->nslot, sizeof *from->slot);
    to->full = dup(c, from->full, from->nfull, sizeof *from->full);
    to->place_in_full = dup(c, from->place_in_full, from->nslot, sizeof *from->place_in_full);
    to->val = dup(c, from->val, from->n, sizeof *from->val);
    to->ival = dup(c, from->ival, from->n, sizeof *from->ival);
    for (int s = 0; s < to->nslot; s++)
        to->slot[s] = axis_of(c, to->slot[s]);
    for (int s = 0; s < to->nfull; s++)
        to->full[s] = axis_of(c, to->full[s]);
    to->of = axis_of(c, from->of);
    copy_strides(c, from, to);
    to->init = expr_of(c, from->init);
    if (to->init == NULL)
        to->init_at = NULL;
    if (to->init_at != NULL) {
        int n = loop_rank(from, STAGE_POSITIONS);

        to->init_at = dup(c, from->init_at, n, sizeof *from->init_at);
        for (int d = 0; d < n; d++)
            to->init_at[d] = local_of(c, from->init_at[d]);
    }
}

static Stmt *copy_stmt(Copy *c, const Stmt *from)
{
    Stmt *to = dup_all(c, from, 1, sizeof *from);

    to->bind = dup_all(c, from->bind, from->nbind, sizeof *from->bind);
    for (int i = 0; i < to->nbind; i++)
        to->bind[i] = c->to->var[to->bind[i]->id];
    to->assign = dup_all(c, from->assign, from->nassign, sizeof *from->assign);
    for (int i = 0; i < to->nassign; i++) {
        Assign *a = &to->assign[i];

        a->label = copy_name(c, a->label);
        a->out = expr_of(c, a->out);
        a->value = expr_of(c, a->value);
        a->guard = expr_of(c, a->guard);
        a->at = dup_all(c, a->at, a->nat, sizeof *a->at);
        for (int k = 0; k < a->nat; k++)
            a->at[k] = (At){ expr_of(c, a->at[k].out), expr_of(c, a->at[k].value) };
    }
    return to;
}

static const Over *copy_over(Copy *c, const Over *from)
{
    Over *to = dup(c, from, from != NULL, sizeof *from);

    if (from == NULL)
        return NULL;
    to->axis = axis_of(c, from->axis);
    to->row = expr_of(c, from->row);
    to->tile = expr_of(c, from->tile);
    return to;
}

static Node *copy_node(Copy *c, const Node *from)
{
    Node *to = dup(c, from, 1, sizeof *from);
    Node **body = dup(c, from->body, from->nbody, sizeof *body);

    to->label = copy_name(c, from->label);
    to->why = dup(c, from->why, from->why == NULL ? 0 : (int64_t)strlen(from->why) + 1, 1);
    to->local = local_of(c, from->local);
    to->axis = axis_of(c, from->axis);
    to->parts = loop_same_buf(c->to, from->parts);
    to->lo = expr_of(c, from->lo);
    to->hi = expr_of(c, from->hi);
    to->over = copy_over(c, from->over);
    to->cond = expr_of(c, from->cond);
    to->out = expr_of(c, from->out);
    to->value = expr_of(c, from->value);
    to->at = dup(c, from->at, from->nat, sizeof *from->at);
    for (int k = 0; k < to->nat; k++)
        to->at[k] = (At){ expr_of(c, to->at[k].out), expr_of(c, to->at[k].value) };
    for (int i = 0; i < from->nbody; i++)
        body[i] = copy_node(c, from->body[i]);
    to->body = body;
    return to;
}

static void copy_tree(Copy *c)
{
    Node **phase = arena_array(c->to->arena, c->to->nphase, sizeof *phase);

    for (int i = 0; i < c->to->nphase; i++)
        phase[i] = copy_node(c, c->from->phase[i]);
    c->to->phase = phase;
}

/* n new objects of this size, and the array of pointers to them. */
static void *objects(Copy *c, int n, size_t size)
{
    void **list = arena_array(c->to->arena, n, sizeof *list);
    char *block = arena_array(c->to->arena, n, size);

    for (int i = 0; i < n; i++)
        list[i] = block + (size_t)i * size;
    return list;
}

/* Names that stand for nothing are needed only to make fresh ones. */
static void copy_symbols(Copy *c, bool all)
{
    for (uint32_t i = 0; i < c->from->cap_sym; i++) {
        const Symbol *s = c->from->sym[i];
        Symbol *t;

        if (s == NULL || !(all || s->size || s->axis || s->of_var || s->buf || s->var))
            continue;
        t = ir_symbol(c->to, s->name, strlen(s->name));
        t->size = s->size == NULL ? NULL : c->to->size[s->size->id];
        t->axis = axis_of(c, s->axis);
        t->of_var = axis_of(c, s->of_var);
        t->buf = loop_same_buf(c->to, s->buf);
        t->var = s->var == NULL ? NULL : c->to->var[s->var->id];
        t->label = s->label;
        t->last = s->last;
    }
}

static void copy_objects(Copy *c)
{
    const Prog *from = c->from;
    Prog *to = c->to;

    for (int i = 0; i < from->nsize; i++)
        *to->size[i] = (Size){ copy_name(c, from->size[i]->name), i, from->size[i]->is };
    for (int i = 0; i < from->nexpr; i++)
        if (c->expr[i] != NULL)
            copy_expr(c, from->expr[i], (struct Expr *)(uintptr_t)c->expr[i]);
    for (int i = 0; i < from->nvar; i++) {
        const Var *v = from->var[i];

        *to->var[i] = (Var){ .name = copy_name(c, v->name),
                             .axis = axis_of(c, v->axis),
                             .parent = expr_of(c, v->parent),
                             .id = i };
    }
    for (int i = 0; i < from->naxis; i++)
        copy_axis(c, from->axis[i], to->axis[i]);
    for (int i = 0; i < from->nbuf; i++)
        copy_buf(c, from->buf[i], to->buf[i]);
    for (int i = 0; i < from->naux; i++)
        copy_buf(c, from->aux[i], to->aux[i]);
    for (int i = 0; i < to->nstmt; i++)
        to->stmt[i] = copy_stmt(c, from->stmt[i]);
    for (int i = 0; i < from->ndecl; i++) {
        const Decl *d = &from->decl[i];

        to->decl[i] = (Decl){ axis_of(c, d->axis), d->buf == NULL ? NULL : to->buf[d->buf->id] };
    }
}

/* Room for all objects of the new program, whose numbers are known. */
static void make_objects(Copy *c)
{
    const Prog *from = c->from;
    Prog *to = c->to;

    to->name = copy_name(c, from->name);
    to->file = dup(c, from->file, from->file == NULL ? 0 : (int64_t)strlen(from->file) + 1, 1);
    to->src = dup(c, from->src, (int64_t)from->nsrc, 1);
    to->sched = dup(c, from->sched, from->sched == NULL ? 0 : (int64_t)strlen(from->sched) + 1, 1);
    to->size = objects(c, to->cap_size = to->nsize, sizeof **to->size);
    to->expr = objects(c, to->cap_expr = to->nexpr, sizeof **to->expr);
    to->var = objects(c, to->cap_var = to->nvar, sizeof **to->var);
    to->axis = objects(c, to->cap_axis = to->naxis, sizeof **to->axis);
    to->buf = objects(c, to->cap_buf = to->nbuf, sizeof **to->buf);
    to->aux = objects(c, to->cap_aux = to->naux, sizeof **to->aux);
    to->stmt = arena_array(to->arena, to->cap_stmt = to->nstmt, sizeof *to->stmt);
    to->decl = arena_array(to->arena, to->cap_decl = to->ndecl, sizeof *to->decl);
    to->var_table =
        arena_copy(to->arena, from->var_table, from->cap_var_table * sizeof *from->var_table);
    for (uint32_t i = 0; i < to->cap_var_table; i++)
        if (to->var_table[i] != NULL)
            to->var_table[i] = to->var[to->var_table[i]->id];
}

static Copy begin(Arena *arena, const Prog *from)
{
    Copy c = { .from = from, .to = arena_alloc(arena, sizeof *c.to) };

    *c.to = *from;
    c.to->arena = arena;
    c.to->sym = NULL;
    c.to->nsym = c.to->cap_sym = 0;
    c.to->collected = 0;
    return c;
}

/* Gives the new expressions their ids: all, or those in use. */
static void number(Copy *c, const bool *live)
{
    int n = 0;

    for (int i = 0; i < c->from->nexpr; i++)
        if (live == NULL || live[i]) {
            ((struct Expr *)(uintptr_t)c->to->expr[n])->id = (uint32_t)n;
            c->expr[i] = c->to->expr[n++];
        }
}

Prog *ir_copy(Arena *arena, const Prog *from)
{
    Copy c = begin(arena, from);
    Prog *to = c.to;

    c.local = arena_array(arena, from->nlocal, sizeof *c.local);
    make_objects(&c);
    c.expr = to->expr;
    number(&c, NULL);
    to->table = dup(&c, from->table, from->cap_table, sizeof *from->table);
    to->dense = arena_copy(arena, from->dense, (size_t)from->ndense * sizeof *from->dense);
    for (int i = 0; i < to->ndense; i++)
        to->dense[i] = axis_of(&c, to->dense[i]);
    copy_objects(&c);
    copy_tree(&c);
    copy_symbols(&c, true);
    return to;
}

static void use(bool *live, Expr *e)
{
    if (e != NULL)
        live[e->id] = true;
}

static void use_pairs(bool *live, const At *at, int n)
{
    for (int k = 0; k < n; k++) {
        use(live, at[k].out);
        use(live, at[k].value);
    }
}

static void use_declared(bool *live, const Prog *p)
{
    for (int i = 0; i < p->nvar; i++)
        use(live, p->var[i]->parent);
    for (int i = 0; i < p->naxis; i++) {
        use(live, p->axis[i]->size);
        for (int k = 0; k < p->axis[i]->ncoord; k++) {
            use(live, p->axis[i]->coord[k].expr);
            use(live, p->axis[i]->coord[k].bound);
        }
    }
}

static void use_statement(bool *live, const Stmt *s)
{
    for (int i = 0; i < s->nassign; i++) {
        use(live, s->assign[i].out);
        use(live, s->assign[i].value);
        use(live, s->assign[i].guard);
        use_pairs(live, s->assign[i].at, s->assign[i].nat);
    }
}

static void use_node(bool *live, const Node *n)
{
    use(live, n->lo);
    use(live, n->hi);
    if (n->over != NULL) {
        use(live, n->over->row);
        use(live, n->over->tile);
    }
    use(live, n->cond);
    use(live, n->out);
    use(live, n->value);
    use_pairs(live, n->at, n->nat);
    for (int i = 0; i < n->nbody; i++)
        use_node(live, n->body[i]);
}

/* An expression is made after its arguments, so one sweep from the last to the first finds what
 * those in use are made of; the number of all. */
static int use_arguments(bool *live, const Prog *p)
{
    int n = 0;

    for (int i = p->nexpr - 1; i >= 0; i--) {
        n += live[i];
        for (int k = 0; k < p->expr[i]->nargs && live[i]; k++)
            use(live, p->expr[i]->arg[k]);
    }
    return n;
}

/* The tables that go by the ids of expressions. */
static void index_live(Copy *c)
{
    Prog *to = c->to;

    ir_reindex(to);
    to->dense = NULL;
    to->ndense = 0;
    for (int i = 0; i < c->from->ndense; i++) {
        const Axis *a = c->from->dense[i];

        if (a != NULL)
            ir_set_dense(to, expr_of(c, a->size), axis_of(c, a));
    }
}

/* The scratch memory of this copy is in the old arena: whoever copies so is about to free it. */
static Prog *copy_live(Arena *arena, const Prog *from, bool trees)
{
    Copy c = begin(arena, from);
    bool *live = arena_array(from->arena, from->nexpr, sizeof *live);

    use_declared(live, from);
    for (int i = 0; loop_buf(from, i) != NULL && trees; i++)
        use(live, loop_buf(from, i)->init);
    for (int i = 0; i < from->nstmt && trees; i++)
        use_statement(live, from->stmt[i]);
    for (int i = 0; i < from->nphase && trees; i++)
        use_node(live, from->phase[i]);
    c.to->nexpr = use_arguments(live, from);
    c.to->nstmt = trees ? from->nstmt : 0;
    c.to->nphase = trees ? from->nphase : 0;
    c.local = arena_array(from->arena, from->nlocal, sizeof *c.local);
    c.expr = arena_array(from->arena, from->nexpr, sizeof *c.expr);
    make_objects(&c);
    number(&c, live);
    copy_objects(&c);
    copy_tree(&c);
    copy_symbols(&c, trees);
    index_live(&c);
    return c.to;
}

Prog *ir_copy_declared(Arena *arena, const Prog *from)
{
    return copy_live(arena, from, false);
}

Expr *ir_import(Prog *to, Expr *e)
{
    Expr *arg[IR_MAX_FULL + 2];
    struct Expr copy = *e;

    for (int i = 0; i < e->nargs; i++)
        arg[i] = ir_import(to, e->arg[i]);
    copy.arg = arg;
    relocate(to, &copy);
    return ir_intern(to, copy);
}

void ir_collect(Prog *p)
{
    Arena *own = p->arena, *fresh = arena_alloc(own, sizeof *fresh), full;
    jmp_buf trap, *outer = own->err->trap;

    arena_init(fresh, own->os, own->err);
    own->err->trap = &trap;
    if (setjmp(trap) != 0) {
        own->err->trap = outer;
        arena_free(fresh);
        err_jump(own->err);
    }
    *p = *copy_live(fresh, p, true);
    own->err->trap = outer;
    p->arena = own;
    full = *own;
    *own = *fresh;
    arena_free(&full);
    p->collected = own->total;
}

Prog *ir_copy_alone(Arena *holder, Arena *own, const Prog *from)
{
    Prog *p = arena_copy(holder, ir_copy(own, from), sizeof *p);

    p->collected = own->total;
    return p;
}
