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
    Combos c; /* of the index being tried */
    Expr *load, *full[IR_MAX_FULL];
    int place; /* in full: the slot being tried */
    Memo met;
} Bounds;

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
        return ir_is_const_axis(a);
    return ir_is_ident(a) && ir_is_const_axis(a) && ir_is_const_index(e) &&
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
        return *pos = b->c.pos[ir_combo_var(&b->c, e->var)], INSIDE;
    if (a->parent != NULL && position_at(b, parent_of(b, place), &parent, value, extent) != INSIDE)
        return UNKNOWN;
    ir_rows_under(&b->c, a, parent, &first, extent);
    if (!ir_combo_value(&b->c, e, value))
        return UNKNOWN;
    if (*value < 0 || *value >= *extent)
        return OUTSIDE;
    *pos = first + *value;
    return INSIDE;
}

static void try_here(Combos *c, void *ctx)
{
    Bounds *b = ctx;
    const Axis *a = b->load->buf->full[b->place];
    int64_t pos, value = 0, extent = 0;
    Text which = { .arena = b->p->arena };

    if (position_at(b, b->place, &pos, &value, &extent) != OUTSIDE)
        return;
    text_str(&which, "");
    for (int i = 0; i < c->n; i++)
        text_f(&which, "%s%s=%lld", i > 0 ? ", " : " at ", c->var[i]->name, (long long)c->loc[i]);
    ir_throw(b->p, ST_CHECK, "%s: index %lld is outside 0..%lld of axis %s%s", b->load->buf->name,
             (long long)value, (long long)extent, a->name != NULL ? a->name : "(dense)", which.s);
}

static void try_place(Bounds *b, int place)
{
    b->c.n = 0;
    if (b->full[place]->op == OP_var || !is_const_place(b, place))
        return;
    for (int up = place; up >= 0; up = parent_of(b, up))
        b->c.n = ir_vars(b->p, b->full[up], b->c.var, b->c.n);
    if (!ir_combos_are_const(&b->c))
        return;
    b->place = place;
    ir_combos(&b->c, try_here, b);
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
    Bounds b = { .p = p, .c.work = MOST_WORK };

    for (int i = 0; i < p->nstmt; i++)
        for (int k = 0; k < p->stmt[i]->nassign; k++)
            check_assign(&b, &p->stmt[i]->assign[k]);
}
