/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * tensorize LOOP [ROWS COLUMNS]: runs the nest of a loop, sums of products C[i, j] += A[i, k] *
 * B[k, j], as a micro-kernel with rows by columns of sums in registers.  This file finds the loops
 * over rows and columns and reorders the nest; the machine chooses the tile. */
#include "sched/step.h"

enum { LIMIT_ROWS = 16, LIMIT_COLUMNS = 512 };

typedef struct Nest {
    StepCall *call;
    Prog *p;
    const Node *phase;
    const Node *loop[LIMIT_STEP_NEST]; /* outermost first */
    int n;
    const Node *last; /* the block of the stores */
} Nest;

/* The first value that is held in a let, in the order of the tree; or NULL. */
static const Node *held(const Node *n)
{
    const Node *found = n->kind == N_LET && ir_type[n->local->type].floats ? n : NULL;

    for (int i = 0; i < n->nbody && found == NULL; i++)
        found = held(n->body[i]);
    return found;
}

static Node *without(Prog *p, Node *n, const Node *let)
{
    NodeList body = { 0 };

    for (int i = 0; i < n->nbody; i++)
        if (n->body[i] != let)
            tree_append(p, &body, without(p, n->body[i], let));
    return tree_with_body(p, n, &body);
}

typedef struct Reads {
    const Node *phase;
    const Buf *written;
} Reads;

static void see_read(Expr *e, void *ctx)
{
    Reads *r = ctx;

    if (e->op == OP_cell && loop_writes(r->phase, e->buf))
        r->written = e->buf;
}

/* What a tile reads it holds in registers, so lets of values, as cache_read makes them, have done
 * their work by telling so. */
static void write_out(StepCall *c, const Spot *at, NodeList *out, void *ctx)
{
    Node *n = at->node;
    Reads r = { c->phase[at->phase], NULL };
    const Node *let;

    (void)ctx;
    while ((let = held(n)) != NULL) {
        Memo met = { 0 };

        if (loop_assigns(n, let->local))
            step_refuse(c, "a sum is held in a register already; leave out cache_write");
        ir_visit(c->p, let->value, see_read, &r, &met);
        if (r.written != NULL)
            step_refuse(c, "%s is written in the same phase", r.written->name);
        n = loop_replace(c->p, without(c->p, n, let), let->local, let->value);
    }
    tree_append(c->p, out, n);
}

/* Blocks one in another, with lets and checks before each, and stores in the last one. */
static void read_nest(Nest *t, const Node *n)
{
    const Node *in = n;

    do {
        n = t->last = in;
        in = NULL;
        if (n->kind == N_FOR && n->lanes > 1)
            step_refuse(t->call, "%s.%s runs in lanes already", n->label, loop_path(n));
        if (n->kind == N_FOR)
            t->loop[t->n++] = n;
        for (int i = 0; i < n->nbody; i++) {
            bool block = n->body[i]->kind == N_FOR || n->body[i]->kind == N_IF;

            if (in != NULL || (block && i + 1 < n->nbody))
                step_refuse(t->call, "%s.%s contains more than one nest of loops",
                            t->loop[t->n - 1]->label, loop_path(t->loop[t->n - 1]));
            in = block ? n->body[i] : NULL;
        }
    } while (in != NULL);
}

/* How far an index moves with a local: 0, 1, or -1 for anything else. */
static int moves(const Nest *t, Expr *e, const Local *l, Memo *known)
{
    const Node *let = step_binder(t->phase, e);
    Expr *before = *ir_memo(t->p, known, e);
    int sum = 0;

    if (before != NULL)
        return (int)before->i;
    if (let != NULL && let->kind == N_LET)
        sum = moves(t, let->value, l, known);
    else if (e->op == OP_local)
        sum = e->local == l;
    for (int i = 0; i < e->nargs; i++) {
        int one = moves(t, e->arg[i], l, known);

        sum = one == 0 ? sum : one < 0 || sum != 0 || e->op != OP_add ? -1 : one;
    }
    *ir_memo(t->p, known, e) = ir_int(t->p, sum);
    return sum;
}

static int moves_cell(const Nest *t, Expr *cell, const Local *l)
{
    Memo known = { 0 };

    return moves(t, cell->arg[0], l, &known);
}

typedef struct Roles { /* of a store's factors, for a row and a column */
    const Nest *nest;
    const Local *row, *column;
    bool shared, own;
    Memo met;
} Roles;

/* Factors of a product. */
static void see_factors(Roles *r, Expr *e)
{
    if (*ir_memo(r->nest->p, &r->met, e) != NULL)
        return;
    *ir_memo(r->nest->p, &r->met, e) = e;
    if (e->op == OP_mul) {
        see_factors(r, e->arg[0]);
        see_factors(r, e->arg[1]);
    } else if (e->op == OP_cell) {
        int row = moves_cell(r->nest, e, r->row), column = moves_cell(r->nest, e, r->column);

        r->shared = r->shared || (row == 0 && column == 1);
        r->own = r->own || (row != 0 && column == 0);
    }
}

/* Whether all stores add products, of what rows share and what each has for itself. */
static bool are_products(const Nest *t, const Local *row, const Local *column)
{
    for (int i = 0; i < t->last->nbody; i++) {
        const Node *n = t->last->body[i];
        Roles r = { .nest = t, .row = row, .column = column };

        if (n->kind != N_STORE)
            continue;
        see_factors(&r, n->value);
        if (!r.shared || !r.own || moves_cell(t, n->out, row) == 0)
            return false;
    }
    return true;
}

static void check_stores(const Nest *t)
{
    int n = 0;

    for (int i = 0; i < t->last->nbody; i++) {
        const Node *s = t->last->body[i];

        if (s->kind == N_LET)
            continue;
        if (s->kind != N_STORE || s->op != A_ADD || s->nat > 0 || s->out->op != OP_cell ||
            s->value->op != OP_mul)
            step_refuse(t->call, "%s.%s does more than add products", t->last->label,
                        loop_path(t->loop[t->n - 1]));
        n++;
    }
    if (n == 0)
        step_refuse(t->call, "it stores nothing");
}

/* The loop whose iterations store to elements side by side. */
static int column_of(const Nest *t)
{
    for (int k = t->n - 1; k >= 0; k--) {
        bool all = true;

        for (int i = 0; i < t->last->nbody && all; i++)
            all = t->last->body[i]->kind != N_STORE ||
                  moves_cell(t, t->last->body[i]->out, t->loop[k]->local) == 1;
        if (all)
            return k;
    }
    step_refuse(t->call, "no loop in it goes over elements side by side");
}

/* Some loop is over rows, and some over the terms of a sum. */
static void check_roles(const Nest *t, int column)
{
    bool rows = false, terms = false;

    for (int k = 0; k < t->n; k++) {
        bool moved = false;

        for (int i = 0; i < t->last->nbody; i++)
            moved = moved || (t->last->body[i]->kind == N_STORE &&
                              moves_cell(t, t->last->body[i]->out, t->loop[k]->local) != 0);
        terms = terms || !moved;
        rows = rows || (k != column && are_products(t, t->loop[k]->local, t->loop[column]->local));
    }
    if (!rows)
        step_refuse(t->call, "no loop in it is over rows, each with a factor of its own and all "
                             "with the same row of the other one");
    if (!terms)
        step_refuse(t->call, "each sum has a single term, so no register would be reused");
}

/* The loop over columns goes inside all others. */
static void put_inside(StepCall *c, const Nest *t, int column)
{
    StepLine line = { .step = c->line->step, .text = c->line->text };
    const StepLine *own = c->line;

    for (int k = 0; k < t->n; k++) {
        const Node *n = t->loop[k + 1 == t->n ? column : k < column ? k : k + 1];

        if (line.nword == LIMIT_STEP_WORDS)
            step_refuse(c, "there are too many loops inside");
        line.word[line.nword++] = step_join(c->p, step_join(c->p, n->label, "."), loop_path(n));
    }
    c->line = &line;
    step_reorder(c);
    c->line = own;
}

static void prepare(StepCall *c, const char *name)
{
    Nest t = { .call = c, .p = c->p };
    int column;
    Spot s;

    step_edit(c, name, write_out, NULL);
    s = step_find(c, name);
    t.phase = c->phase[s.phase];
    read_nest(&t, s.node);
    check_stores(&t);
    column = column_of(&t);
    check_roles(&t, column);
    if (column + 1 < t.n)
        put_inside(c, &t, column);
}

typedef struct Shape {
    int rows, columns;
} Shape;

static void tile(StepCall *c, const Spot *at, NodeList *out, void *ctx)
{
    const Shape *s = ctx;
    Node *n = c->target->tile(c->target->ctx, c->p, c->phase[at->phase], at->node, s->rows,
                               s->columns);

    if (n == NULL)
        step_refuse(c, "its sums cannot be held in registers: they may not exist where the loops "
                       "run no iteration, or two rows may be the same one");
    tree_append(c->p, out, n);
}

void step_tensorize(StepCall *c)
{
    Shape s = { 0, 0 };
    Spot first;

    step_count(c, 1, 3);
    if (c->line->nword == 2)
        step_refuse(c, "write it as: %s %s", c->line->step->name, c->line->step->args);
    if (c->line->nword == 3) {
        s.rows = (int)step_int(c, 1, 1, LIMIT_ROWS);
        s.columns = (int)step_int(c, 2, 1, LIMIT_COLUMNS);
    }
    if (c->target == NULL)
        step_refuse(c, "no machine is known to have registers for it");
    prepare(c, c->line->word[0]);
    first = step_find(c, c->line->word[0]);
    step_edit(c, c->line->word[0], tile, &s);
    step_edit_tails(c, first.node, tile, &s);
}
