/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The arrays that a tree of loops mentions: whose they are, and how their elements are counted. */
#include "ir/loop.h"

#include <string.h>

/* The dot keeps their names apart from all others in the one table of symbols. */
Buf *loop_own(Prog *p, const Buf *b)
{
    Symbol *sym = ir_symbol(p, b->name, strlen(b->name));
    Buf *c;

    if (sym->buf != NULL)
        return sym->buf;
    c = arena_copy(p->arena, b, sizeof *b);
    c->name = sym->name;
    c->id = LOOP_OWN + p->naux;
    p->aux = arena_grow(p->arena, p->aux, p->naux, &p->cap_aux, sizeof *p->aux);
    p->aux[p->naux++] = c;
    return sym->buf = c;
}

static bool is_ragged(const Axis *a)
{
    return a->extent == X_SEG || a->extent == X_BUILT || a->extent == X_TABLE;
}

/* "X.S.base": the tuples of X below the positions of S, where several branches hang on S. */
static Buf *base_of(Prog *p, const Buf *b, const Axis *s, const char *name)
{
    Dim dim[IR_MAX_FULL];
    Axis *below[IR_MAX_FULL];
    Layout l;
    int n = ir_dims(b, dim), d = 0, k = 0, m = 0;
    bool constant = true;

    while (k < b->nfull && b->full[k] != s)
        k++;
    if (k == b->nfull)
        return NULL;
    while (d + 1 < n && dim[d].last < k)
        d++;
    for (int c = k; c <= dim[d].last; c++)
        if (c == k || ir_is_ancestor(s, b->full[c])) {
            constant = constant && ir_const_total(b->full[c]) >= 0;
            below[m++] = b->full[c];
        }
    if (!constant)
        return loop_base(p, name, b->full + dim[d].first, dim[d].last - dim[d].first + 1,
                         k - dim[d].first);
    ir_layout(p->arena, p, NULL, &(Buf){ .full = below, .nfull = m, .name = b->name }, &l);
    if (l.slot[0].before == NULL)
        return NULL;
    return loop_table(p, name, l.slot[0].before, l.slot[0].span.total + 1);
}

static Buf *base_named(Prog *p, const char *name)
{
    const char *end = strrchr(name, '.'), *dot = end;
    const Symbol *b, *s;

    while (dot > name && *--dot != '.')
        ;
    if (strcmp(end, ".base") != 0 || dot == name)
        return NULL;
    b = ir_find_symbol(p, name, (size_t)(dot - name));
    s = ir_find_symbol(p, dot + 1, (size_t)(end - dot - 1));
    if (b == NULL || b->buf == NULL || s == NULL || s->axis == NULL)
        return NULL;
    return base_of(p, b->buf, s->axis, ir_symbol(p, name, (size_t)(end - name))->name);
}

Buf *loop_named(Prog *p, const char *name)
{
    const char *part = strchr(name, '.');
    Symbol *sym = part == NULL ? NULL : ir_find_symbol(p, name, (size_t)(part - name));
    Axis *a = sym == NULL ? NULL : sym->axis;
    int k;

    if (a == NULL)
        return part == NULL ? NULL : base_named(p, name);
    part++;
    if (strcmp(part, "start") == 0 && is_ragged(a))
        return loop_start(p, a);
    if (strcmp(part, "size") == 0 && a->extent == X_TABLE)
        return loop_extent(p, a);
    k = strcmp(part, "coord") == 0 && a->coord[0].name == NULL ? 0 : ir_find_coord(a, part);
    if (k < 0 || (a->coord[k].kind != C_LOAD && a->coord[k].kind != C_TABLE))
        return NULL;
    return loop_coord(p, a, k);
}

static bool is_own_name(const Buf *b)
{
    return strchr(b->name, '.') != NULL;
}

bool loop_is_own(const Buf *b)
{
    return is_own_name(b) && (b->kind == B_TEMP || loop_is_work(b));
}

bool loop_is_work(const Buf *b)
{
    return b->kind == B_WORK || b->kind == B_SHARED;
}

int loop_rank(const Buf *b, Stage stage)
{
    Dim dim[IR_MAX_FULL];
    bool plain = is_own_name(b) && !loop_is_own(b); /* an axis' array, or a table */

    return stage == STAGE_LOOPS || plain ? 1 : ir_dims(b, dim);
}

void loop_visit(Prog *p, const Node *n, Visit *fn, void *ctx, Memo *met)
{
    Expr *part[] = { n->lo, n->hi, n->cond, n->out, n->value };

    for (size_t i = 0; i < sizeof part / sizeof *part; i++)
        if (part[i] != NULL)
            ir_visit(p, part[i], fn, ctx, met);
    for (int k = 0; k < n->nat; k++) {
        ir_visit(p, n->at[k].out, fn, ctx, met);
        ir_visit(p, n->at[k].value, fn, ctx, met);
    }
    for (int i = 0; i < n->nbody; i++)
        loop_visit(p, n->body[i], fn, ctx, met);
}

typedef struct Arrays {
    Prog *p;
    Buf **list;
    int n, cap;
    bool *buf, *aux; /* by id: listed */
    int naux;
} Arrays;

static void add_array(Arrays *c, Buf *b)
{
    bool *listed = b->id < LOOP_OWN ? &c->buf[b->id] : &c->aux[b->id - LOOP_OWN];

    if (*listed)
        return;
    *listed = true;
    c->list = arena_grow(c->p->arena, c->list, c->n, &c->cap, sizeof *c->list);
    c->list[c->n++] = b;
}

/* A search reads the coordinates of its axis. */
static void add_arrays(Expr *e, void *ctx)
{
    Arrays *c = ctx;

    if (e->op == OP_cell)
        add_array(c, e->buf);
    if (e->op == OP_find)
        for (int k = 0; k < e->axis->ncoord; k++)
            if (e->axis->coord[k].kind == C_LOAD || e->axis->coord[k].kind == C_TABLE)
                add_array(c, loop_coord(c->p, e->axis, k));
}

/* Makes the arrays that searches read, so that all have their ids. */
static void touch_array(Expr *e, void *ctx)
{
    Prog *p = ctx;

    for (int k = 0; e->op == OP_find && k < e->axis->ncoord; k++)
        if (e->axis->coord[k].kind == C_LOAD || e->axis->coord[k].kind == C_TABLE)
            loop_coord(p, e->axis, k);
}

Buf **loop_arrays(Prog *p, int *n)
{
    Arrays c = { .p = p };
    Memo touched = { 0 }, met = { 0 };

    for (int i = 0; i < p->nphase; i++)
        loop_visit(p, p->phase[i], touch_array, p, &touched);
    c.buf = arena_array(p->arena, p->nbuf, sizeof *c.buf);
    c.aux = arena_array(p->arena, p->naux, sizeof *c.aux);
    for (int i = 0; i < p->nphase; i++)
        loop_visit(p, p->phase[i], add_arrays, &c, &met);
    *n = c.n;
    return c.list;
}

typedef struct Shared {
    Memo met;
    const Buf **buf;
    int n, cap;
    Prog *p;
} Shared;

static void see_shared(Expr *e, void *ctx)
{
    Shared *s = ctx;

    if (e->op != OP_cell || e->buf->kind != B_SHARED)
        return;
    for (int i = 0; i < s->n; i++)
        if (s->buf[i] == e->buf)
            return;
    s->buf = arena_grow(s->p->arena, s->buf, s->n, &s->cap, sizeof *s->buf);
    s->buf[s->n++] = e->buf;
}

int64_t loop_shared_bytes(Prog *p, const Node *phase)
{
    enum { BEGIN = 16 };
    Shared s = { .p = p };
    int64_t bytes = 0;

    loop_visit(p, phase, see_shared, &s, &s.met);
    for (int i = 0; i < s.n; i++) {
        int64_t n = ir_const_total(s.buf[i]->full[0]);

        n = n < 0 || n > LOOP_MOST_SHARED ? LOOP_MOST_SHARED + 1 : n;
        bytes += n * ir_type[s.buf[i]->type].bytes + BEGIN - 1;
        bytes -= bytes % BEGIN;
    }
    return bytes;
}

bool loop_writes(const Node *n, const Buf *b)
{
    bool here = (n->kind == N_STORE && n->out->op == OP_cell && n->out->buf == b) ||
                (n->kind == N_BUILD && b->of == n->axis && b->of_k >= -1);

    for (int k = 0; k < n->nat; k++)
        here = here || n->at[k].out->buf == b;
    for (int i = 0; i < n->nbody && !here; i++)
        here = loop_writes(n->body[i], b);
    return here;
}

bool loop_assigns(const Node *n, const Local *l)
{
    bool here = n->kind == N_STORE && n->out->op == OP_local && n->out->local == l;

    for (int i = 0; i < n->nbody && !here; i++)
        here = loop_assigns(n->body[i], l);
    return here;
}

bool loop_has_vector_form(Op op, Type t)
{
    if (op >= OP_exp && op <= OP_silu) /* of f64 the C library has some, one by one */
        return t == T_f32 || op == OP_exp || op == OP_sqrt || op == OP_sigmoid || op == OP_silu;
    return (op >= OP_neg && op <= OP_div) || op == OP_fma || op == OP_abs || op == OP_min ||
           op == OP_max || op == OP_relu;
}

bool loop_has_lanes(const Buf *b)
{
    return b->type == T_f16 || b->type == T_bf16 || b->type == T_f32 || b->type == T_f64;
}

Buf *loop_start_in(Expr *e, const Local *row)
{
    bool inner = e->op == OP_max || e->op == OP_add;
    Buf *b = inner ? loop_start_in(e->arg[0], row) : NULL;

    if (inner)
        return b != NULL ? b : loop_start_in(e->arg[1], row);
    if (e->op != OP_cell || e->buf->of == NULL || e->buf->of_k != -1 || e->buf->nfull > 0)
        return NULL;
    if (row != NULL && (e->arg[0]->op != OP_local || e->arg[0]->local != row))
        return NULL;
    return e->buf;
}

/* Where a loop over entries was split, its blocks are counted from what is in a row. */
static Buf *start_below(Expr *e, const Local *row)
{
    Buf *b = loop_start_in(e, row);

    for (int i = 0; i < e->nargs && b == NULL; i++)
        b = start_below(e->arg[i], row);
    return b;
}

static Buf *weight_in(const Node *n, const Local *row)
{
    Buf *b = NULL;

    for (int i = 0; i < n->nbody && b == NULL; i++) {
        if (n->body[i]->kind == N_FOR || n->body[i]->kind == N_LET) /* which may hold its lo */
            b = loop_start_in(n->body[i]->kind == N_FOR ? n->body[i]->lo : n->body[i]->value, row);
        if (b == NULL && n->body[i]->kind == N_FOR && n->body[i]->local->path != NULL)
            b = start_below(n->body[i]->hi, row);
        if (b == NULL)
            b = weight_in(n->body[i], row);
    }
    return b;
}

/* The row, when a phase goes over all rows again and again: what is left of its variable when the
 * rows of earlier rounds are taken away. */
static const Local *row_in(const Node *n)
{
    for (int i = 0; i < n->nbody && n->body[i]->kind == N_LET; i++) {
        Expr *v = n->body[i]->value;

        if (v->op == OP_sub && v->arg[0]->op == OP_local && v->arg[0]->local == n->local)
            return n->body[i]->local;
    }
    return n->local;
}

Buf *loop_balance(const Node *n)
{
    return weight_in(n, row_in(n));
}

const char *loop_fault_word(Fault f)
{
    static const char *const word[FAULT_COUNT] = { "none",     "index", "miss",
                                                   "overflow", "size",  "twice" };

    return word[f];
}

const At *loop_mark(const Node *n)
{
    const At *last = n->nat > 0 ? &n->at[n->nat - 1] : NULL;
    bool best = n->op == A_MAX || n->op == A_MIN;

    return best && last != NULL && is_own_name(last->out->buf) ? last : NULL;
}
