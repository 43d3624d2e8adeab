/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Fingerprints of programs.  Two programs are equal when their fingerprints agree in every part:
 * the comparison walks both, the hash walks one, and both follow names, never ids or places.
 * Locals of a tree are followed by where they are bound: the printer may choose their names. */
#include "ir/loop.h"

#include <string.h>

/* A program written out as a list of 64-bit words, each expression once.  Equal programs give the
 * same words, so equality and hash need this one walk. */
typedef struct Words {
    const Prog *prog;
    uint64_t *w;
    int n, cap;
    uint32_t *number; /* by id: 1 + order of first meeting, up to `before` not met */
    uint32_t met, before;
    int *scope; /* by Local.id: how many were bound before it */
    int nscope;
} Words;

static void put(Words *o, uint64_t v)
{
    o->w = arena_grow(o->prog->arena, o->w, o->n, &o->cap, sizeof *o->w);
    o->w[o->n++] = v;
}

static void put_name(Words *o, const char *s)
{
    put(o, s == NULL ? 0 : hash_bytes(1, s, strlen(s)));
}

static void put_ints(Words *o, const void *p, int64_t n)
{
    put(o, (uint64_t)n);
    put(o, p == NULL ? 0 : hash_bytes(2, p, (size_t)n * 8));
}

static void put_expr(Words *o, Expr *e);

static void put_axis(Words *o, const Axis *a)
{
    put_name(o, a->name);
    if (a->name == NULL)
        put_expr(o, a->size);
}

static void put_var(Words *o, const Var *v)
{
    put_name(o, v->name);
    put_axis(o, v->axis);
    put_expr(o, v->parent);
}

static void bind(Words *o, const Local *l)
{
    put(o, (uint64_t)l->type << 32 | (unsigned)l->lanes);
    o->scope[l->id] = o->nscope++;
}

static void put_init(Words *o, const Buf *b)
{
    int outer = o->nscope;

    for (int d = 0; b->init_at != NULL && d < loop_rank(b, STAGE_POSITIONS); d++)
        bind(o, b->init_at[d]);
    put_expr(o, b->init);
    o->nscope = outer;
}

/* An array by its name, and one of the kernel's own by what it is. */
static void put_array(Words *o, const Buf *b)
{
    put_name(o, b->name);
    if (!loop_is_own(b))
        return;
    put(o, b->type);
    put(o, b->kind);
    for (int s = 0; s < b->nslot; s++)
        put_axis(o, b->slot[s]);
    put_init(o, b);
}

static void put_payload(Words *o, Expr *e)
{
    switch (e->op) {
    case OP_size: put_name(o, e->size->name); break;
    case OP_var:
    case OP_coord:
    case OP_pos:
    case OP_loc: put_var(o, e->var); break;
    case OP_count:
    case OP_find:
    case OP_above:
    case OP_row: put_axis(o, e->axis); break;
    case OP_load: put_name(o, e->buf->name); break;
    case OP_cell: put_array(o, e->buf); break;
    case OP_local: put(o, (uint64_t)o->scope[e->local->id]); break;
    default: put(o, (uint64_t)e->i); break;
    }
}

static void put_expr(Words *o, Expr *e)
{
    if (e == NULL || o->number[e->id] > o->before) {
        put(o, e == NULL ? 0 : o->number[e->id] - o->before);
        return;
    }
    o->number[e->id] = ++o->met;
    put(o, UINT64_MAX);
    put(o, (uint64_t)e->op << 48 | (uint64_t)e->nargs << 32 | (uint32_t)e->k);
    put_payload(o, e);
    for (int i = 0; i < e->nargs; i++)
        put_expr(o, e->arg[i]);
}

static void put_axis_decl(Words *o, const Axis *a)
{
    put_axis(o, a);
    put_name(o, a->parent == NULL ? NULL : a->parent->name);
    put(o, (uint64_t)a->extent << 32 | a->flags << 8 | (unsigned)a->ncoord);
    put_expr(o, a->size);
    put_ints(o, a->table, a->n);
    put_name(o, a->from == NULL ? NULL : a->from->name);
    put(o, a->from == NULL ? 0 : (uint64_t)(a->from_k + 8) << 32 | (unsigned)a->part);
    put_name(o, a->format);
    for (int k = 0; k < a->ncoord; k++) {
        const Coord *c = &a->coord[k];

        put_name(o, c->name);
        put(o, (uint64_t)c->kind << 1 | c->once);
        put_ints(o, c->table, c->n);
        put_expr(o, c->expr);
        put_expr(o, c->bound);
    }
}

static void put_buf_decl(Words *o, const Buf *b)
{
    uint64_t fill;

    memcpy(&fill, &b->fill, sizeof fill);
    put_name(o, b->name);
    put(o, (uint64_t)b->type << 32 | b->kind << 8 | (unsigned)b->has_fill << 1 | b->rows);
    put(o, fill);
    put(o, (uint64_t)b->nslot);
    for (int s = 0; s < b->nslot; s++)
        put_axis(o, b->slot[s]);
    put_ints(o, b->val != NULL ? (const void *)b->val : b->ival, b->n);
    put_init(o, b);
}

static void put_stmt(Words *o, const Stmt *s)
{
    put(o, (uint64_t)s->nbind << 32 | (unsigned)s->nassign);
    for (int i = 0; i < s->nbind; i++)
        put_var(o, s->bind[i]);
    for (int i = 0; i < s->nassign; i++) {
        const Assign *a = &s->assign[i];

        put_name(o, a->label);
        put(o, (uint64_t)a->op << 32 | (unsigned)a->nat);
        put_expr(o, a->out);
        put_expr(o, a->value);
        put_expr(o, a->guard);
        for (int k = 0; k < a->nat; k++) {
            put_expr(o, a->at[k].out);
            put_expr(o, a->at[k].value);
        }
    }
}

static void put_over(Words *o, const Over *over)
{
    if (over == NULL) {
        put(o, 0);
        return;
    }
    put(o, 1 + (uint64_t)over->kind);
    put(o, (uint64_t)over->size << 1 | over->fixed);
    put_axis(o, over->axis);
    put_expr(o, over->row);
    put_expr(o, over->tile);
}

/* Each node by itself: a local that is bound in two places is one expression in a tree that a pass
 * made, and two in one that was read. */
static void put_node(Words *o, const Node *n, const char *label)
{
    int outer = o->nscope;

    label = n->label != NULL ? n->label : label;
    o->before = o->met;
    put_name(o, label);
    put(o, (uint64_t)n->kind << 32 | (uint64_t)n->op << 16 | (uint64_t)n->how << 8 | n->fault);
    put(o, (uint64_t)(n->lanes > 1 ? n->lanes : 1) << 32 | (unsigned)n->nat);
    put(o, (uint64_t)n->atomic << 49 | (uint64_t)n->packed << 48 | (uint64_t)n->level << 40 |
               (uint64_t)n->width << 32 | (uint64_t)(n->regs > 1 ? n->regs : 1) << 2 |
               (uint64_t)n->far << 1 | n->stream);
    put_name(o, n->axis == NULL ? NULL : n->axis->name);
    put_expr(o, n->lo);
    put_expr(o, n->hi);
    put_over(o, n->over);
    put_expr(o, n->cond);
    put_expr(o, n->out);
    put_expr(o, n->value);
    for (int k = 0; k < n->nat; k++) {
        put_expr(o, n->at[k].out);
        put_expr(o, n->at[k].value);
    }
    if (n->local != NULL)
        bind(o, n->local);
    put(o, (uint64_t)n->nbody);
    for (int i = 0; i < n->nbody; i++)
        put_node(o, n->body[i], label);
    if (n->kind != N_LET) /* whose local is known to the end of the block around it */
        o->nscope = outer;
}

static void put_decls(Words *o, const Prog *p)
{
    for (int i = 0; i < p->ndecl; i++)
        if (p->decl[i].axis != NULL)
            put_axis_decl(o, p->decl[i].axis);
        else if (!loop_is_own(p->decl[i].buf)) /* those are put where they are used */
            put_buf_decl(o, p->decl[i].buf);
}

static Words words_of(const Prog *p)
{
    Words o = { .prog = p,
                .number = arena_array(p->arena, p->nexpr, sizeof *o.number),
                .scope = arena_array(p->arena, p->nlocal, sizeof *o.scope) };

    put_name(&o, p->name);
    put(&o, (uint64_t)p->threads << 32 | p->stage);
    put(&o, (uint64_t)p->nsize);
    for (int i = 0; i < p->nsize; i++)
        put_name(&o, p->size[i]->name);
    put_decls(&o, p);
    put(&o, UINT64_MAX);
    for (int i = 0; i < p->nstmt && p->stage == STAGE_COORDINATES; i++)
        put_stmt(&o, p->stmt[i]);
    for (int i = 0; i < p->nphase && p->stage != STAGE_COORDINATES; i++) {
        put(&o, p->phase[i]->scheduled);
        put_node(&o, p->phase[i], NULL);
    }
    put_name(&o, p->sched);
    return o;
}

bool ir_equal(const Prog *a, const Prog *b)
{
    Words x = words_of(a), y = words_of(b);

    return x.n == y.n && memcmp(x.w, y.w, (size_t)x.n * sizeof *x.w) == 0;
}

uint64_t ir_hash(const Prog *p)
{
    Words o = words_of(p);

    return hash_bytes(0, o.w, (size_t)o.n * sizeof *o.w);
}
