/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Built axes: all insertions into one axis become one phase, at the place of the last of them.
 * That is legal because nothing that an insertion reads changes after it may first be read.  If
 * every insertion is below a variable of the parent axis, the phase runs over the parent's
 * positions, and each iteration builds one row.  Otherwise the phase runs once and builds all
 * rows. */
#include "lower/positions/positions_int.h"

typedef struct Inserts { /* into one axis, in the order of the text */
    const Stmt **stmt;
    const Assign **assign;
    int n;
} Inserts;

static Inserts inserts_into(Pos *c, const Axis *u)
{
    Inserts l = { 0 };
    int cap = 0, cap2 = 0;

    for (int i = 0; i < c->p->nstmt; i++)
        for (int k = 0; k < c->p->stmt[i]->nassign; k++) {
            const Assign *a = &c->p->stmt[i]->assign[k];

            if (a->op != A_INSERT || a->out->axis != u)
                continue;
            l.stmt = arena_grow(c->p->arena, l.stmt, l.n, &cap, sizeof *l.stmt);
            l.assign = arena_grow(c->p->arena, l.assign, l.n, &cap2, sizeof *l.assign);
            l.stmt[l.n] = c->p->stmt[i];
            l.assign[l.n++] = a;
        }
    return l;
}

/* The variables from the row's own up to a root axis; 0: the row is another's, or a search. */
static int row_chain(const Assign *a, Var **out)
{
    Expr *index = a->out->nargs > 0 ? a->out->arg[0] : NULL;
    int n = 0;

    for (; index != NULL; index = out[n - 1]->parent) {
        if (index->op != OP_var || n == IR_MAX_RANK)
            return 0;
        out[n++] = index->var;
    }
    return n;
}

static bool all_own_rows(const Inserts *l)
{
    Var *chain[IR_MAX_RANK];
    bool own = true;

    for (int i = 0; i < l->n; i++)
        own = own && row_chain(l->assign[i], chain) > 0;
    return own;
}

/* The loops of a statement that are not the row's. */
static Nest rest_of(const Stmt *s, const Assign *a, Var *const *chain, int n)
{
    Nest nest = { .assign = a, .nassign = 1 };

    for (int b = 0; b < s->nbind; b++) {
        bool of_row = false;

        for (int k = 0; k < n; k++)
            of_row = of_row || chain[k] == s->bind[b];
        if (!of_row)
            nest.bind[nest.nbind++] = s->bind[b];
    }
    return nest;
}

/* All insertions, each in its loops; the variables of its row stand for the entries row[0..n). */
static NodeList insert_all(Pos *c, const Inserts *l, Entry *const *row, int n)
{
    NodeList body = { 0 };
    Var *chain[IR_MAX_RANK];

    for (int i = 0; i < l->n; i++) {
        Nest nest;

        if (n > 0)
            row_chain(l->assign[i], chain);
        for (int k = 0; k < n; k++)
            c->var[chain[k]->id] = row[k];
        nest = rest_of(l->stmt[i], l->assign[i], chain, n);
        pos_nest(c, &nest, 0, &body);
    }
    return body;
}

/* The loop over the positions of chain[k], all rows below it. */
static NodeList lower_rows(Pos *c, Axis *u, const Inserts *l, Var *const *chain, Entry **row, int k,
                           int n)
{
    const char *label = l->assign[l->n - 1]->label;
    NodeList body = { 0 }, out = { 0 };
    Node loop, build = { .kind = N_BUILD, .label = label, .axis = u };

    loop = pos_open(c, chain[k], k + 1 < n ? row[k + 1] : NULL, label);
    row[k] = c->var[chain[k]->id];
    if (k > 0) {
        body = lower_rows(c, u, l, chain, row, k - 1, n);
    } else {
        NodeList all = insert_all(c, l, row, n);

        build.lo = lower_pos(c->p, row[0]);
        build.body = all.node;
        build.nbody = all.n;
        pos_add(c, &body, &build);
    }
    body = pos_under(c, lower_exists(c->p, row[k]), body, label);
    if (loop.local == NULL)
        return body;
    loop.body = body.node;
    loop.nbody = body.n;
    loop.how = k + 1 == n ? FOR_PARALLEL : FOR_SERIAL;
    pos_add(c, &out, &loop);
    return out;
}

void pos_build(Pos *c, Axis *u)
{
    Inserts l = inserts_into(c, u);
    Var *chain[IR_MAX_RANK];
    Entry *row[IR_MAX_RANK];
    NodeList out = { 0 };
    int n;

    if (l.n == 0)
        return;
    c->owns_row = all_own_rows(&l);
    if (c->owns_row) {
        n = row_chain(l.assign[0], chain);
        out = lower_rows(c, u, &l, chain, row, n - 1, n);
    } else {
        NodeList all = insert_all(c, &l, NULL, 0);

        pos_add(c, &out,
                &(Node){ .kind = N_BUILD,
                         .label = l.assign[l.n - 1]->label,
                         .axis = u,
                         .body = all.node,
                         .nbody = all.n });
    }
    pos_add_phase(c, lower_phase(c->p, &out));
}

static void check(Pos *c, Expr *cond, Fault fault)
{
    pos_add(c, &c->checks,
            &(Node){ .kind = N_CHECK, .fault = fault, .label = c->label, .cond = cond });
}

/* The position of the parent that an insertion names; NULL: the build around it does, or the axis
 * has no parent. */
static Expr *named_row(Pos *c, Axis *u, const Assign *a)
{
    Expr *there;
    Entry *e;

    if (c->owns_row || u->parent == NULL)
        return NULL;
    e = pos_entry(c, u->parent, a->out->arg[0], &there);
    if (there != NULL)
        check(c, there, FAULT_MISS);
    return lower_pos(c->p, e);
}

void pos_insert(Pos *c, const Assign *a, NodeList *out)
{
    Axis *u = a->out->axis;
    Expr *row = named_row(c, u, a), *coord[IR_MAX_RANK];

    for (int k = 0; k < u->ncoord; k++) {
        Expr *e = a->value->op == OP_tuple ? a->value->arg[k] : a->value;

        coord[k] = pos_expr(c, e);
        if (!pos_is_below(e, u->coord[k].bound))
            check(c, lower_inside(c->p, coord[k], u->coord[k].bound), FAULT_INDEX);
    }
    pos_take_checks(c, out);
    pos_add(c, out,
            &(Node){ .kind = N_INSERT,
                     .label = a->label,
                     .axis = u,
                     .value = loop_key(c->p, u, row, coord) });
}
