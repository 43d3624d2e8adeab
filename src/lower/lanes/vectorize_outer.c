/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Outer-loop vectorisation: a straight-line phase, each of whose iterations writes rows of its
 * own, runs as many iterations at once as a register has lanes, although their elements lie a
 * row apart.  The printer transposes rows into lanes.  Needs flat loops, after the last fusion
 * of straight-line phases. */
#include "lower/facts/facts_int.h"

typedef struct Rows { /* elements that are a row apart from item to item, each once */
    LoopIndex *at;
    int n, cap;
} Rows;

typedef struct Items {
    Prog *p;
    const Node *phase;
    Touches touches;
    Type type;             /* of all elements */
    Memo uses, good, fine; /* depends on the item; can be one a lane; is counted */
    Memo total;            /* of lower_is_total */
    int operations;        /* those in lanes */
    Rows load, store;
} Items;

static bool is_same(Items *t, Expr *e)
{
    return !tree_uses(t->p, e, t->phase->local, &t->uses);
}

/* An element of the item's own row. */
static bool is_own(const Items *t, Expr *cell)
{
    LoopIndex x;

    return loop_index(cell->arg[0], t->phase->local, &x) && x.n == 0 && x.stride > 0 &&
           0 <= x.constant && x.constant < x.stride;
}

/* What is stored may be in memory only at the end. */
static bool can_load(const Items *t, Expr *cell)
{
    LoopIndex x;

    return cell->buf->type == t->type && loop_index(cell->arg[0], t->phase->local, &x) &&
           x.stride > 0 && !lower_touch_of(&t->touches, cell->buf)->written;
}

static bool can_be_lanes(Items *, Expr *);

static bool can_be_args(Items *t, Expr *e)
{
    bool good = true;

    for (int i = 0; i < e->nargs && good; i++)
        good = can_be_lanes(t, e->arg[i]);
    return good;
}

/* Both sides of a choice are evaluated, so both must be there. */
static bool can_choose(Items *t, Expr *e)
{
    return !is_same(t, e->arg[0]) && lower_is_total(t->p, t->phase, e->arg[1], &t->total) &&
           lower_is_total(t->p, t->phase, e->arg[2], &t->total);
}

static bool can_compare(const Items *t, Expr *e)
{
    return e->op == OP_not || e->op == OP_and || e->op == OP_or ||
           ir_promote((Type)e->arg[0]->type, (Type)e->arg[1]->type) == t->type;
}

static bool find_out(Items *t, Expr *e)
{
    if (e->type == T_bool)
        return e->op >= OP_lt && e->op <= OP_not && can_compare(t, e) && can_be_args(t, e);
    if (is_same(t, e))
        return true;
    if ((Type)e->type != t->type)
        return false;
    if (e->op == OP_cell)
        return can_load(t, e);
    if (e->op == OP_select)
        return can_choose(t, e) && can_be_args(t, e);
    return loop_has_vector_form((Op)e->op, (Type)e->type) && can_be_args(t, e);
}

static bool can_be_lanes(Items *t, Expr *e)
{
    Expr **known = ir_memo(t->p, &t->good, e);
    bool good;

    if (*known != NULL)
        return *known == e;
    good = find_out(t, e);
    *ir_memo(t->p, &t->good, e) = good ? e : ir_int(t->p, 0);
    return good;
}

static bool can_store(Items *t, const Node *n)
{
    return n->kind == N_STORE && n->nat == 0 && (n->op == A_SET || n->op == A_ADD) &&
           n->out->op == OP_cell && n->out->buf->type == t->type && is_own(t, n->out) &&
           can_be_lanes(t, n->value);
}

static void add_row(Items *t, Rows *r, Expr *cell)
{
    LoopIndex x;

    if (*ir_memo(t->p, &t->fine, cell) != NULL ||
        !loop_index_of(cell, t->phase->local, &x) || x.stride < 2)
        return;
    *ir_memo(t->p, &t->fine, cell) = cell;
    r->at = arena_grow(t->p->arena, r->at, r->n, &r->cap, sizeof *r->at);
    r->at[r->n++] = x;
}

static void count(Items *t, Expr *e)
{
    if (is_same(t, e) || *ir_memo(t->p, &t->fine, e) != NULL)
        return;
    if (e->op == OP_cell) {
        add_row(t, &t->load, e);
        return;
    }
    *ir_memo(t->p, &t->fine, e) = e;
    t->operations++;
    for (int i = 0; i < e->nargs; i++)
        count(t, e->arg[i]);
}

/* How many elements come one by one: neither in a square nor in a window. */
static int singles(Items *t, Rows *r, int lanes)
{
    int *square = arena_array(t->p->arena, r->n, sizeof *square), single = 0;
    int *window = arena_array(t->p->arena, r->n, sizeof *window);

    loop_columns(t->p, r->at, r->n, lanes, square);
    loop_windows(t->p, r->at, r->n, window);
    for (int i = 0; i < r->n; i++)
        single += square[i] < 0 && window[i] < 0;
    return single;
}

static void fill_gaps(Items *t, Rows *r)
{
    int *like = NULL, n;
    LoopIndex *gap = loop_gaps(t->p, r->at, r->n, &like, &n);

    for (int i = 0; i < n; i++) {
        r->at = arena_grow(t->p->arena, r->at, r->n, &r->cap, sizeof *r->at);
        r->at[r->n++] = gap[i];
    }
}

/* Lanes pay where there is more to compute than there are elements to be taken one by one. */
static bool pays(Items *t, int lanes)
{
    int single;

    for (int i = 0; i < t->phase->nbody; i++) {
        count(t, t->phase->body[i]->value);
        add_row(t, &t->store, t->phase->body[i]->out);
    }
    if (t->operations > t->p->policy.lane_operations)
        return false;
    fill_gaps(t, &t->load);
    single = singles(t, &t->load, lanes) + singles(t, &t->store, lanes);
    return t->operations > t->p->policy.lane_work * single;
}

static bool can_be_items(Items *t)
{
    const Node *phase = t->phase;

    if (phase->kind != N_FOR || phase->how != FOR_PARALLEL || phase->lanes > 1 ||
        phase->nbody == 0 || phase->body[0]->kind != N_STORE ||
        phase->body[0]->out->op != OP_cell)
        return false;
    t->type = phase->body[0]->out->buf->type;
    if (t->type != T_f32 && t->type != T_f64)
        return false;
    t->touches = lower_touched(t->p, phase);
    for (int i = 0; i < phase->nbody; i++)
        if (!can_store(t, phase->body[i]))
            return false;
    return true;
}

void lower_vectorize_outer(Kernel *k, const VectorUnit *unit)
{
    for (int i = 0; i < k->n; i++) {
        Items t = { .p = k->p, .phase = k->phase[i] };
        Node c = *k->phase[i];

        if (!can_be_items(&t))
            continue;
        c.lanes = lanes_of(unit, t.type);
        if (c.lanes > 1 && pays(&t, c.lanes))
            k->phase[i] = loop_node(k->p, &c);
    }
    lower_done(k, k->p->stage);
}
