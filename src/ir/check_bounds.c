/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The part of the checker that proves indices inside: where an index and what it indexes depend on
 * constants only, every combination is tried.  What it cannot enumerate, and what a guard or a
 * select may keep from being evaluated, is left to the run. */
#include "ir/ir_int.h"

enum { MOST_WORK = 10000000 }; /* steps and nodes, for one program; what is beyond is left too */

typedef struct Bounds {
    Prog *p;
    Var *var[IR_MAX_BINDS]; /* of the index being tried */
    int64_t loc[IR_MAX_BINDS], pos[IR_MAX_BINDS];
    int n;
    int64_t work; /* left */
    Expr *load, *full[IR_MAX_FULL];
    int place; /* in full: the slot being tried */
    Memo met;
} Bounds;

static bool is_const_axis(const Axis *a)
{
    if (ir_const_total(a) < 0)
        return false;
    for (int k = 0; k < a->ncoord; k++)
        if (a->coord[k].kind == C_LOAD || a->coord[k].kind == C_EXPR)
            return false;
    return !(a->flags & AX_PADDED);
}

/* First position and number of positions under a parent's position. */
static void rows_under(Bounds *b, const Axis *a, int64_t parent, int64_t *first, int64_t *n)
{
    if (a->extent == X_TABLE) {
        *first = a->starts[parent];
        *n = a->table[parent];
        return;
    }
    *n = 1; /* X_ONE */
    if (a->extent == X_EXPR) {
        ir_const_int(a->size, n);
        b->work -= a->size->tree;
    }
    *first = parent * *n;
}

static int index_of(const Bounds *b, const Var *v)
{
    int i = 0;

    while (b->var[i] != v)
        i++;
    return i;
}

static bool is_const_expr(Expr *e)
{
    if (e->op == OP_load || e->op == OP_size || e->op == OP_count)
        return false;
    if (e->op == OP_var || e->op == OP_coord || e->op == OP_pos || e->op == OP_loc)
        return is_const_axis(e->var->axis);
    for (int i = 0; i < e->nargs; i++)
        if (!is_const_expr(e->arg[i]))
            return false;
    return e->type == T_i64 && e->op <= OP_mod;
}

/* The value of a constant expression at the combination being tried; false on overflow. */
static bool value_at(Bounds *b, Expr *e, int64_t *out)
{
    const Coord *c;
    int64_t x = 0, y = 0;

    b->work--;
    switch (e->op) {
    case OP_int: return *out = e->i, true;
    case OP_pos: return *out = b->pos[index_of(b, e->var)], true;
    case OP_loc: return *out = b->loc[index_of(b, e->var)], true;
    case OP_coord:
        c = &e->var->axis->coord[e->k];
        *out = c->kind == C_IDENT ? b->loc[index_of(b, e->var)]
                                  : c->table[b->pos[index_of(b, e->var)]];
        return true;
    default: break;
    }
    if (!value_at(b, e->arg[0], &x) || (e->nargs == 2 && !value_at(b, e->arg[1], &y)))
        return false;
    switch (e->op) {
    case OP_neg: return !int_sub(0, x, out);
    case OP_add: return !int_add(x, y, out);
    case OP_sub: return !int_sub(x, y, out);
    case OP_mul: return !int_mul(x, y, out);
    case OP_div: return !int_div(x, y, out);
    default: return !int_mod(x, y, out);
    }
}

static int parent_of(const Bounds *b, int place)
{
    const Buf *buf = b->load->buf;
    int up = place;

    while (--up >= 0 && buf->full[up] != buf->full[place]->parent)
        ;
    return up;
}

/* Whether a place of the access can be followed to a position by constants alone. */
static bool is_const_place(const Bounds *b, int place)
{
    Expr *e = b->full[place];
    const Axis *a = b->load->buf->full[place];

    if (e->op == OP_var)
        return is_const_axis(a);
    return ir_is_ident(a) && is_const_axis(a) && is_const_expr(e) &&
           (a->parent == NULL || is_const_place(b, parent_of(b, place)));
}

typedef enum Where {
    INSIDE,
    OUTSIDE,
    UNKNOWN /* a parent is outside, which its own place tells, or a value overflows in the run */
} Where;

/* The position at a place; *value and *extent are for the message. */
static Where position_at(Bounds *b, int place, int64_t *pos, int64_t *value, int64_t *extent)
{
    Expr *e = b->full[place];
    const Axis *a = b->load->buf->full[place];
    int64_t parent = 0, first;

    if (e->op == OP_var)
        return *pos = b->pos[index_of(b, e->var)], INSIDE;
    if (a->parent != NULL && position_at(b, parent_of(b, place), &parent, value, extent) != INSIDE)
        return UNKNOWN;
    rows_under(b, a, parent, &first, extent);
    if (!value_at(b, e, value))
        return UNKNOWN;
    if (*value < 0 || *value >= *extent)
        return OUTSIDE;
    *pos = first + *value;
    return INSIDE;
}

static void try_here(Bounds *b)
{
    const Axis *a = b->load->buf->full[b->place];
    int64_t pos, value = 0, extent = 0;
    Text which = { .arena = b->p->arena };

    if (position_at(b, b->place, &pos, &value, &extent) != OUTSIDE)
        return;
    text_str(&which, "");
    for (int i = 0; i < b->n; i++)
        text_f(&which, "%s%s=%lld", i > 0 ? ", " : " at ", b->var[i]->name, (long long)b->loc[i]);
    ir_throw(b->p, ST_CHECK, "%s: index %lld is outside 0..%lld of axis %s%s", b->load->buf->name,
             (long long)value, (long long)extent, a->name != NULL ? a->name : "(dense)", which.s);
}

/* Runs variable k over its positions, then the next; the last calls try_here. */
static void try_all(Bounds *b, int k)
{
    int64_t parent = 0, first, n;
    const Var *v;

    if (k == b->n) {
        try_here(b);
        return;
    }
    v = b->var[k];
    if (v->parent != NULL)
        parent = b->pos[index_of(b, v->parent->var)];
    rows_under(b, v->axis, parent, &first, &n);
    for (int64_t i = 0; i < n && b->work > 0; i++) {
        b->work--;
        b->loc[k] = i;
        b->pos[k] = first + i;
        try_all(b, k + 1);
    }
}

static void try_place(Bounds *b, int place)
{
    b->n = 0;
    if (b->full[place]->op == OP_var || !is_const_place(b, place))
        return;
    for (int up = place; up >= 0; up = parent_of(b, up))
        b->n = ir_vars(b->p, b->full[up], b->var, b->n);
    for (int i = 0; i < b->n; i++)
        if (!is_const_axis(b->var[i]->axis) ||
            (b->var[i]->parent != NULL && b->var[i]->parent->op != OP_var))
            return;
    b->place = place;
    try_all(b, 0);
}

static void check_load(Bounds *b, Expr *e)
{
    ir_full_index(b->p, e, b->full);
    b->load = e;
    for (int k = 0; k < e->buf->nfull; k++)
        try_place(b, k);
}

/* The accesses below e that every evaluation of e evaluates. */
static void check_always(Bounds *b, Expr *e)
{
    Expr **seen = ir_memo(b->p, &b->met, e);
    bool chooses = e->op == OP_select || e->op == OP_and || e->op == OP_or;

    if (*seen != NULL)
        return;
    *seen = e;
    for (int i = 0; i < (chooses ? 1 : e->nargs); i++)
        check_always(b, e->arg[i]);
    if (e->op == OP_load)
        check_load(b, e);
}

static void check_assign(Bounds *b, const Assign *a)
{
    b->p->at = a->place;
    if (a->guard != NULL) {
        check_always(b, a->guard);
        return;
    }
    check_always(b, a->value);
    check_always(b, a->out);
    for (int k = 0; k < a->nat; k++)
        check_always(b, a->at[k].value);
}

void ir_check_bounds(Prog *p)
{
    Bounds b = { .p = p, .work = MOST_WORK };

    for (int i = 0; i < p->nstmt; i++)
        for (int k = 0; k < p->stmt[i]->nassign; k++)
            check_assign(&b, &p->stmt[i]->assign[k]);
}
