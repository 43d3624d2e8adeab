/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Turns an access by coordinates into one by positions: finds the entry that each index means, and
 * adds the tests that the access needs. */
#include "lower/positions/positions_int.h"

#include <string.h>

enum { LIMIT_WORK = 1000000 };

void pos_add(Pos *c, NodeList *l, const Node *n)
{
    tree_append(c->p, l, loop_node(c->p, n));
}

void pos_begin(Pos *c, Scope *s, const char *label)
{
    *s = (Scope){ 0 };
    c->scope = s;
    c->label = label;
    c->checks = (NodeList){ 0 };
    c->once = (Memo){ 0 };
}

static void enter(Pos *c, Scope *s, Expr *cond)
{
    *s = (Scope){ .path = lower_both(c->p, c->scope->path, cond),
                  .outer = c->scope,
                  .depth = c->scope->depth + 1 };
    c->scope = s;
}

static void leave(Pos *c)
{
    c->scope = c->scope->outer;
}

/* What is being lowered holds only in scopes of this depth. */
static void depend_on(Pos *c, int depth)
{
    c->tested_at = depth > c->tested_at ? depth : c->tested_at;
}

static void require(Pos *c, Expr *cond, Fault fault)
{
    depend_on(c, c->scope->depth);
    if (c->scope->path != NULL)
        cond = ir_op2(c->p, OP_or, ir_op1(c->p, OP_not, c->scope->path), cond);
    if (*ir_memo(c->p, &c->once, cond) != NULL)
        return;
    *ir_memo(c->p, &c->once, cond) = cond;
    pos_add(c, &c->checks,
            &(Node){ .kind = N_CHECK, .cond = cond, .fault = fault, .label = c->label });
}

bool pos_is_below(Expr *e, Expr *extent)
{
    const Axis *from;
    bool plain;

    if (e->op != OP_coord && e->op != OP_loc)
        return false;
    from = e->var->axis;
    plain = e->op == OP_loc || from->coord[e->k].kind == C_IDENT;
    if (plain && from->extent == X_EXPR && from->size == extent)
        return true;
    return e->op == OP_coord && from->coord[e->k].bound == extent;
}

/* Whether a position comes from a plan, which made it of this axis: of a format it is the last
 * coordinate, -1 where a guard has left it out, of a transpose the first, and the second in the
 * axis of rows. */
static bool is_planned(Expr *e, const Axis *x)
{
    const Axis *a = e->op == OP_coord ? e->var->axis : NULL;

    if (a == NULL || a->from == NULL)
        return false;
    if (a->from_k >= 0 && e->k == 1)
        return a->from->parent != NULL && a->from->parent == x;
    return a->from == x && e->k == (a->from_k == FROM_FORMAT ? a->ncoord - 1 : 0);
}

/* The entry of axis a at a position; none of those it hangs on may be padding either. */
static Entry *at_position(Pos *c, Axis *a, Expr *index)
{
    Expr *pos = pos_expr(c, index), *exists;
    Entry *e = lower_entry(c->p, a, NULL, pos, NULL);
    bool padded = false;

    if (is_planned(index, a))
        return e;
    require(c, lower_inside(c->p, pos, loop_positions(c->p, a)), FAULT_INDEX);
    for (const Axis *up = a; up != NULL; up = up->parent)
        padded = padded || (up->flags & AX_PADDED);
    for (Entry *x = e; x != NULL && padded; x = lower_up(c->p, x))
        if ((exists = lower_exists(c->p, x)) != NULL)
            require(c, exists, FAULT_INDEX);
    return e;
}

/* The entry of a plain axis by its number; *there: unless that is padding. */
static Entry *at_number(Pos *c, Axis *a, Entry *up, Expr *index, Expr **there)
{
    Expr *loc = pos_expr(c, index);
    Entry *e = lower_entry(c->p, a, up, NULL, loc);

    if (a->extent != X_EXPR || !pos_is_below(index, a->size))
        require(c, lower_inside(c->p, loc, tree_extent(c->p, a, lower_parent(c->p, e))),
                FAULT_INDEX);
    *there = lower_exists(c->p, e);
    return e;
}

/* A search is done once, where it can be: its position; -1 also off the path. */
static Expr *search_once(Pos *c, Expr *find)
{
    Expr *value = find, **known, *use;
    Local *l;

    depend_on(c, c->scope->depth);
    if (c->scope->path != NULL)
        value = ir_node(c->p, OP_select, (Expr *[]){ c->scope->path, find, ir_int(c->p, -1) }, 3);
    known = ir_memo(c->p, &c->once, value);
    if (*known != NULL)
        return *known;
    l = loop_local(c->p, NULL, T_i64, 1);
    pos_add(c, &c->checks, &(Node){ .kind = N_LET, .local = l, .value = value, .label = c->label });
    use = loop_use(c->p, l);
    *ir_memo(c->p, &c->once, value) = use;
    return use;
}

static Entry *search(Pos *c, Axis *a, Entry *up, Expr *index, Expr **there)
{
    Expr *arg[IR_MAX_RANK], *context[IR_MAX_RANK], *parent, *lo, *hi, *pos;
    int n = index->op == OP_tuple ? index->nargs : 1;
    int nc = loop_context(a, context, IR_MAX_RANK);

    if (n + nc > IR_MAX_RANK)
        ir_throw(c->p, ST_LIMIT,
                 "%s: a search on axis %s, which has more than %d coordinates and "
                 "numbers that they depend on, is only interpreted",
                 c->label, a->name, IR_MAX_RANK);
    for (int i = 0; i < n; i++)
        arg[i] = pos_expr(c, index->op == OP_tuple ? index->arg[i] : index);
    for (int i = 0; i < nc; i++)
        arg[n + i] = lower_leaf(c->p, up, context[i]);
    parent = up == NULL ? ir_int(c->p, 0) : lower_pos(c->p, up);
    lo = tree_first(c->p, a, parent);
    hi = tree_add(c->p, lo, tree_extent(c->p, a, parent));
    pos = search_once(c, loop_find(c->p, a, lo, hi, arg, n + nc));
    *there = ir_op2(c->p, OP_le, ir_int(c->p, 0), pos);
    return lower_entry(c->p, a, up, pos, NULL);
}

/* The entry that an index means in axis a, under `up`; *there: when it is one, or NULL. */
static Entry *entry_of(Pos *c, Axis *a, Entry *up, Expr *index, Expr **there)
{
    *there = NULL;
    if (index->op == OP_var)
        return c->var[index->var->id];
    if (index->op == OP_at)
        return at_position(c, a, index->arg[0]);
    return ir_is_ident(a) ? at_number(c, a, up, index, there) : search(c, a, up, index, there);
}

Entry *pos_entry(Pos *c, Axis *a, Expr *index, Expr **there)
{
    return entry_of(c, a, NULL, index, there);
}

Entry *pos_parent(Pos *c, const Var *v, Expr **there)
{
    *there = NULL;
    return v->parent == NULL ? NULL : entry_of(c, v->axis->parent, NULL, v->parent, there);
}

typedef struct Found { /* an access: the entry in each place of its buffer */
    Entry *at[IR_MAX_FULL];
    Expr *there; /* condition that they are all there; or NULL */
} Found;

/* An entry that is known tells those it hangs on, and two that hang on one place agree. */
static void settle_above(Pos *c, const Buf *b, Found *f, int k)
{
    for (int up = ir_parent_place(b, k); up >= 0; k = up, up = ir_parent_place(b, k)) {
        Entry *e = lower_up(c->p, f->at[k]);

        if (f->at[up] != NULL && f->at[up] != e)
            require(c, ir_op2(c->p, OP_eq, lower_pos(c->p, f->at[up]), lower_pos(c->p, e)),
                    FAULT_INDEX);
        if (f->at[up] != NULL)
            return;
        f->at[up] = e;
    }
}

/* A variable's entry tells those it hangs on: they need not be looked for. */
static void settle_variable(Pos *c, const Buf *b, Found *f, int k, Entry *e)
{
    for (; k >= 0 && f->at[k] == NULL; k = ir_parent_place(b, k), e = lower_up(c->p, e))
        f->at[k] = e;
}

/* Place by place, left to right; what comes after a search is looked at where that has hit. */
static void locate(Pos *c, Expr *load, Found *f)
{
    const Buf *b = load->buf;
    Expr *full[IR_MAX_FULL], *there;
    Scope *outer = c->scope, inner[IR_MAX_FULL];

    memset(f, 0, sizeof *f);
    ir_full_index(c->p, load, full);
    for (int k = b->nfull - 1; k >= 0; k--)
        if (full[k]->op == OP_var)
            settle_variable(c, b, f, k, c->var[full[k]->var->id]);
    for (int k = 0; k < b->nfull; k++) {
        int up = ir_parent_place(b, k);

        if (f->at[k] != NULL || full[k]->op == OP_none)
            continue;
        f->at[k] = entry_of(c, b->full[k], up < 0 ? NULL : f->at[up], full[k], &there);
        if (full[k]->op == OP_at)
            settle_above(c, b, f, k);
        f->there = lower_both(c->p, f->there, there);
        if (there != NULL)
            enter(c, &inner[k], there);
    }
    c->scope = outer;
}

static Expr *element(Pos *c, Buf *b, const Found *f)
{
    Expr *index[IR_MAX_FULL];
    Dim dim[IR_MAX_FULL];
    int n = ir_dims(b, dim);

    lower_dims(c->p, b, f->at, index);
    return loop_cell(c->p, b, index, n, 1);
}

Expr *pos_element(Pos *c, Expr *load, Buf *instead, Expr **there)
{
    Found f;

    locate(c, load, &f);
    *there = f.there;
    return element(c, instead != NULL ? instead : load->buf, &f);
}

Expr *pos_fill(Pos *c, const Buf *b)
{
    switch (b->rows ? T_f64 : b->type) {
    case T_f16: return ir_real(c->p, (double)num_f16(num_to_f16(b->fill)));
    case T_bf16: return ir_real(c->p, (double)num_bf16(num_to_bf16(b->fill)));
    case T_f32: return ir_real(c->p, (double)(float)b->fill);
    case T_f64: return ir_real(c->p, b->fill);
    default: return ir_int(c->p, (int64_t)b->fill);
    }
}

static Expr *load_value(Pos *c, Expr *load)
{
    Found f;
    Expr *e;

    locate(c, load, &f);
    e = element(c, load->buf, &f);
    if (f.there == NULL)
        return e;
    return ir_node(c->p, OP_select, (Expr *[]){ f.there, e, pos_fill(c, load->buf) }, 3);
}

static Expr *is_stored(Pos *c, Expr *load)
{
    Found f;

    locate(c, load, &f);
    return f.there != NULL ? f.there : ir_op2(c->p, OP_eq, ir_int(c->p, 0), ir_int(c->p, 0));
}

Expr *pos_expr_if(Pos *c, Expr *cond, Expr *e)
{
    Scope s;

    enter(c, &s, cond);
    e = pos_expr(c, e);
    leave(c);
    return e;
}

/* select, and, or: the later arguments are evaluated under a condition. */
static Expr *lazy(Pos *c, Expr *e)
{
    Expr *arg[3] = { pos_expr(c, e->arg[0]) };

    for (int i = 1; i < e->nargs; i++) {
        bool holds = e->op == OP_and || (e->op == OP_select && i == 1);

        arg[i] = pos_expr_if(c, holds ? arg[0] : ir_op1(c->p, OP_not, arg[0]), e->arg[i]);
    }
    return ir_node(c->p, (Op)e->op, arg, e->nargs);
}

static bool can_overflow(Expr *e)
{
    return e->type == T_i64 && ((e->op >= OP_neg && e->op <= OP_mod) || e->op == OP_abs);
}

static Expr *untested(Pos *c, Expr *e);

/* Any other operator.  Integer arithmetic is tested as a whole, by whoever asked for it. */
static Expr *operate(Pos *c, Expr *e)
{
    Expr *arg[3];

    for (int i = 0; i < e->nargs; i++)
        arg[i] = can_overflow(e) && can_overflow(e->arg[i]) ? untested(c, e->arg[i])
                                                            : pos_expr(c, e->arg[i]);
    return e->nargs == 0 ? e : ir_node(c->p, (Op)e->op, arg, e->nargs);
}

static Expr *value(Pos *c, Expr *e)
{
    if (++c->work > LIMIT_WORK)
        ir_throw(c->p, ST_LIMIT,
                 "%s: an expression that grows too large when it is lowered is only "
                 "interpreted",
                 c->label);
    switch (e->op) {
    case OP_coord:
    case OP_pos:
    case OP_loc: return lower_leaf(c->p, c->var[e->var->id], e);
    case OP_count: return loop_positions(c->p, e->axis);
    case OP_load: return load_value(c, e);
    case OP_stored: return is_stored(c, e->arg[0]);
    case OP_select:
    case OP_and:
    case OP_or: return lazy(c, e);
    case OP_stop: return pos_expr(c, e->arg[0]);
    default: return operate(c, e);
    }
}

/* What a scope has for an expression, lowered with or without the test of its arithmetic. */
static Expr **known(Pos *c, Scope *s, Expr *e, bool test)
{
    return ir_memo(c->p, test ? &s->done : &s->untested, e);
}

/* Invariants by the outermost scope that it holds in. */
static Expr *lowered(Pos *c, Expr *e, bool test)
{
    int around = c->tested_at;
    Expr *to;
    Scope *s;

    for (s = c->scope; s != NULL; s = s->outer)
        if ((to = *known(c, s, e, test)) != NULL) {
            depend_on(c, s->depth);
            return to;
        }
    c->tested_at = 0;
    to = value(c, e);
    if (test && can_overflow(e))
        require(c, ir_op1(c->p, OP_fits, to), FAULT_OVERFLOW);
    for (s = c->scope; s->depth > c->tested_at; s = s->outer)
        ;
    *known(c, s, e, test) = to;
    c->tested_at = around;
    depend_on(c, s->depth);
    return to;
}

static Expr *untested(Pos *c, Expr *e)
{
    return lowered(c, e, false);
}

Expr *pos_expr(Pos *c, Expr *e)
{
    return lowered(c, e, true);
}
