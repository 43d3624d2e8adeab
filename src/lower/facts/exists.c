/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Proves that an element exists whatever checks and branches stand around its use: in every
 * dimension a loop, or a validated coordinate, keeps its index inside. */
#include "lower/facts/facts_int.h"
#include "lower/storage/storage_int.h"

typedef struct Inside {
    Prog *p;
    const Node *phase;
    const Binders *known; /* of the phase; or NULL */
} Inside;

static void find_binders(const Node *n, const Local *l, const Node *found[2])
{
    if (n->local == l)
        found[found[0] != NULL] = n;
    for (int i = 0; i < n->nbody; i++)
        find_binders(n->body[i], l, found);
}

/* The loop or the let that binds the local; NULL when copies of one do. */
static const Node *binder(const Inside *s, const Local *l)
{
    const Node *found[2] = { NULL, NULL };

    if (s->known != NULL && l->id >= s->known->from && l->id < s->known->from + s->known->n)
        return s->known->several[l->id - s->known->from] ? NULL
                                                         : s->known->by[l->id - s->known->from];
    if (s->known != NULL)
        return NULL;
    find_binders(s->phase, l, found);
    return found[1] == NULL ? found[0] : NULL;
}

static void find_ids(const Node *n, int *from, int *to)
{
    if (n->local != NULL) {
        *from = n->local->id < *from ? n->local->id : *from;
        *to = n->local->id >= *to ? n->local->id + 1 : *to;
    }
    for (int i = 0; i < n->nbody; i++)
        find_ids(n->body[i], from, to);
}

static void note_binders(Binders *b, const Node *n)
{
    int at = n->local == NULL ? 0 : n->local->id - b->from;

    if (n->local != NULL) {
        b->several[at] = b->by[at] != NULL;
        b->by[at] = n;
    }
    for (int i = 0; i < n->nbody; i++)
        note_binders(b, n->body[i]);
}

Binders lower_binders(Prog *p, const Node *phase)
{
    Binders b = { .phase = phase, .from = p->nlocal };
    int to = 0;

    find_ids(phase, &b.from, &to);
    b.n = to > b.from ? to - b.from : 0;
    b.by = arena_array(p->arena, b.n, sizeof *b.by);
    b.several = arena_array(p->arena, b.n, sizeof *b.several);
    note_binders(&b, phase);
    return b;
}

/* Entries of an axis under one parent are among all of them. */
static bool is_over_entries(const Inside *s, const Node *loop, Expr *extent)
{
    Expr *lo = loop->lo;

    return lo->op == OP_cell && lo->buf->of != NULL && lo->buf->of_k == -1 && lo->buf->nfull == 0 &&
           loop->hi == tree_first(s->p, lo->buf->of,
                                   tree_add(s->p, lo->arg[0], ir_int(s->p, 1))) &&
           loop_positions(s->p, lo->buf->of) == extent;
}

typedef struct Known {
    const Inside *in;
    const Ranges *r;
} Known;

static const Ranges *ranges_of(const Inside *s, Expr *e, const Ranges *r);

static void see_range(Expr *e, void *ctx)
{
    Known *k = ctx;
    const Node *n = e->op == OP_local ? binder(k->in, e->local) : NULL;
    Ranges r;

    if (n == NULL)
        return;
    if (n->kind == N_LET) {
        k->r = ranges_of(k->in, n->value, k->r);
    } else {
        k->r = ranges_of(k->in, n->lo, k->r);
        k->r = ranges_of(k->in, n->hi, k->r);
    }
    r = lower_range_of(k->r, n);
    k->r = arena_copy(k->in->p->arena, &r, sizeof r);
}

/* What loops, lets and constants say of the locals in e. */
static const Ranges *ranges_of(const Inside *s, Expr *e, const Ranges *r)
{
    Known k = { s, r };
    Memo met = { 0 };

    ir_visit(s->p, e, see_range, &k, &met);
    return k.r;
}

static bool is_in_range(const Inside *s, Expr *v, Expr *extent)
{
    const Ranges *r = ranges_of(s, v, NULL);

    return lower_truth(r, ir_op2(s->p, OP_ge, v, ir_int(s->p, 0))) == YES &&
           lower_truth(r, ir_op2(s->p, OP_lt, v, extent)) == YES;
}

/* The other factor of a product by this one; or NULL. */
static Expr *without_factor(Prog *p, Expr *e, Expr *factor)
{
    for (int i = 0; i < 2 && e->op == OP_mul; i++)
        if (e->arg[i] == factor)
            return e->arg[1 - i];
    return e == factor ? ir_int(p, 1) : NULL;
}

/* e as a product by `extent`, which is given, and a rest. */
static Expr *split_off(Prog *p, Expr *e, Expr *extent, Expr **rest)
{
    Expr *above;

    if (e->op == OP_mul && (above = without_factor(p, e, extent)) != NULL)
        return *rest = ir_int(p, 0), above;

    for (int i = 0; i < 2 && e->op == OP_add; i++) {
        above = e->arg[i]->op == OP_int ? NULL : without_factor(p, e->arg[i], extent);
        if (above != NULL)
            return *rest = e->arg[1 - i], above;
        above = split_off(p, e->arg[i], extent, rest);
        if (above != NULL)
            return *rest = tree_add(p, *rest, e->arg[1 - i]), above;
    }
    return NULL;
}

static bool is_inside(const Inside *s, Expr *v, Expr *extent);

/* row * c + column, of c columns. */
static bool is_inside_rows(const Inside *s, Expr *v, Expr *extent)
{
    for (int i = 0; i < 2 && extent->op == OP_mul; i++) {
        Expr *column, *row = split_off(s->p, v, extent->arg[i], &column);

        if (row != NULL && is_inside(s, row, extent->arg[1 - i]) &&
            is_inside(s, column, extent->arg[i]))
            return true;
    }
    return false;
}

/* A number that a term of a sum is multiplied by; or NULL. */
static Expr *number_in(Expr *e)
{
    Expr *found = NULL;

    for (int i = 0; i < 2 && e->op == OP_add && found == NULL; i++)
        found = number_in(e->arg[i]);
    for (int i = 0; i < 2 && e->op == OP_mul && found == NULL; i++)
        found = e->arg[i]->op == OP_int && e->arg[i]->i > 1 ? e->arg[i] : NULL;
    return found;
}

/* c * block + row, of as many blocks of c rows as fit: extent / c. */
static bool is_inside_blocks(const Inside *s, Expr *v, Expr *extent)
{
    Expr *c = extent->op == OP_int ? NULL : number_in(v), *row, *block;

    block = c == NULL ? NULL : split_off(s->p, v, c, &row);
    return block != NULL && is_inside(s, block, ir_op2(s->p, OP_div, extent, c)) &&
           is_inside(s, row, c);
}

/* row / n, of as many rows as n times the extent. */
static bool is_inside_quotient(const Inside *s, Expr *v, Expr *extent)
{
    return v->op == OP_div && (is_inside(s, v->arg[0], ir_op2(s->p, OP_mul, extent, v->arg[1])) ||
                               is_inside(s, v->arg[0], ir_op2(s->p, OP_mul, v->arg[1], extent)));
}

static bool is_inside(const Inside *s, Expr *v, Expr *extent)
{
    const Node *n = v->op == OP_local ? binder(s, v->local) : NULL;
    const Coord *c;

    if (n != NULL && n->kind == N_LET && n->value->op != OP_local &&
        is_inside(s, n->value, extent))
        return true;
    if (n != NULL && n->kind == N_FOR && is_over_entries(s, n, extent))
        return true;
    if (is_in_range(s, v, extent) || is_inside_rows(s, v, extent) ||
        is_inside_blocks(s, v, extent) || is_inside_quotient(s, v, extent))
        return true;
    if (v->op != OP_cell || v->buf->of == NULL || v->buf->of_k < 0 || v->buf->nfull > 0 ||
        v->buf->kind == B_CONST || (v->buf->of->flags & AX_PADDED))
        return false;
    if (v->buf->of->from != NULL && v->buf->of->from_k == FROM_ROWS)
        return extent == loop_positions(s->p, v->buf->of->parent); /* a part, of those there are */
    c = &v->buf->of->coord[v->buf->of_k];
    return c->bound != NULL && c->bound == extent;
}

/* As dims_of, of an input that is read as it lies.  Where a stride is 0, any index will do. */
static int strided_dims_of(const Inside *s, Expr *cell, Expr **index)
{
    Dim dim[IR_MAX_FULL];
    Expr *at = cell->arg[0], *zero = ir_int(s->p, 0);
    int n = ir_dims(cell->buf, dim);

    for (int d = 0; d < n; d++) {
        Expr *stride = lower_stride(s->p, cell->buf, d), *rest;

        index[d] = zero;
        if (stride == zero)
            continue;
        if (stride == ir_int(s->p, 1)) {
            index[d] = at;
            at = zero;
        } else if ((rest = zero, index[d] = split_off(s->p, at, stride, &rest)) != NULL) {
            at = rest;
        } else {
            index[d] = zero;
        }
        if (!is_inside(s, index[d], lower_dim_extent(s->p, cell->buf, dim[d])))
            return -1;
    }
    return at == zero ? n : -1;
}

/* The index of the element in each dimension, from its flat one; how many, -1: not known, or it may
 * be outside. */
static int dims_of(const Inside *s, Expr *cell, Expr **index)
{
    Dim dim[IR_MAX_FULL];
    Expr *at = cell->arg[0];
    int n = ir_dims(cell->buf, dim);

    if (cell->buf->stride != NULL)
        return strided_dims_of(s, cell, index);
    if (n == 0)
        return at->op == OP_int && at->i == 0 ? 0 : -1;
    for (int d = n - 1; d >= 0; d--) {
        Expr *extent = lower_dim_extent(s->p, cell->buf, dim[d]),
             *above = d > 0 ? split_off(s->p, at, extent, &index[d]) : NULL;

        if (above == NULL) {
            above = ir_int(s->p, 0);
            index[d] = at;
        }
        if (!is_inside(s, index[d], extent))
            return -1;
        at = above;
    }
    return n;
}

bool lower_is_inside(Prog *p, const Node *phase, Expr *cell)
{
    Expr *index[IR_MAX_FULL];

    return dims_of(&(Inside){ p, phase, NULL }, cell, index) >= 0;
}

bool lower_is_bound_inside(Prog *p, const Binders *b, Expr *cell)
{
    Expr *index[IR_MAX_FULL];

    return dims_of(&(Inside){ p, b->phase, b }, cell, index) >= 0;
}

/* Whether e moves by a constant when the local moves by one. */
static bool is_moved(Prog *p, Expr *e, Local *l)
{
    if (e->op == OP_mul)
        return (e->arg[1]->op == OP_int && e->arg[1]->i != 0 && is_moved(p, e->arg[0], l)) ||
               (e->arg[0]->op == OP_int && e->arg[0]->i != 0 && is_moved(p, e->arg[1], l));
    if (e->op != OP_add)
        return e == loop_use(p, l);
    return tree_mentions(p, e->arg[0], l) ? is_moved(p, e->arg[0], l) &&
                                                 !tree_mentions(p, e->arg[1], l)
                                           : is_moved(p, e->arg[1], l);
}

int lower_dim_of(Prog *p, const Node *phase, Expr *cell, Local *l)
{
    Expr *index[IR_MAX_FULL];
    int n = dims_of(&(Inside){ p, phase, NULL }, cell, index), found = -1;

    for (int d = 0; d < n; d++) {
        if (!tree_mentions(p, index[d], l))
            continue;
        if (found >= 0 || !is_moved(p, index[d], l))
            return -1;
        found = d;
    }
    return found;
}

typedef struct Sure {
    Inside in;
    bool sure;
} Sure;

static bool is_loop_variable(const Inside *s, Expr *e)
{
    const Node *n = e->op == OP_local ? binder(s, e->local) : NULL;

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
                        !is_inside(&s->in, at, loop_positions(s->in.p, e->buf->of->parent)))) ||
        (e->op == OP_local && !is_loop_variable(&s->in, e)) || e->op == OP_find ||
        e->op == OP_above || e->op == OP_div || e->op == OP_mod)
        s->sure = false;
}

static bool is_sure(Inside in, Expr *e)
{
    Sure s = { in, true };
    Memo met = { 0 };

    ir_visit(in.p, e, see_unsure, &s, &met);
    return s.sure;
}

bool lower_is_sure(Prog *p, const Node *phase, Expr *e)
{
    return is_sure((Inside){ p, phase, NULL }, e);
}

bool lower_is_bound_sure(Prog *p, const Binders *b, Expr *e)
{
    return is_sure((Inside){ p, b->phase, b }, e);
}

static bool find_total(const Inside *s, Expr *e, Memo *memo);

static bool is_total(const Inside *s, Expr *e, Memo *memo)
{
    Expr **known = ir_memo(s->p, memo, e);
    bool total;

    if (*known != NULL)
        return *known == e;
    total = find_total(s, e, memo);
    *ir_memo(s->p, memo, e) = total ? e : ir_int(s->p, 0);
    return total;
}

static bool find_total(const Inside *s, Expr *e, Memo *memo)
{
    if (e->op == OP_cell)
        return lower_is_inside(s->p, s->phase, e);
    if (!ir_is_float(e) && e->type != T_bool)
        return e->nargs == 0;
    for (int i = 0; i < e->nargs; i++)
        if (!is_total(s, e->arg[i], memo))
            return false;
    return true;
}

bool lower_is_total(Prog *p, const Node *phase, Expr *e, Memo *memo)
{
    return is_total(&(Inside){ p, phase, NULL }, e, memo);
}
