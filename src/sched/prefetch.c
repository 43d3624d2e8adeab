/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * prefetch LABEL ARRAY at LOOP N: in each iteration, prefetches the elements of the array that a
 * statement reads N iterations later.  A prefetch reads no value, so it is always legal; the
 * structure that its address is computed from must exist. */
#include "sched/step.h"

#include <string.h>

enum { LIMIT_AHEAD = 1 << 16, LIMIT_HINTS = 16 };

typedef struct Ahead {
    const Buf *buf;
    int64_t n; /* iterations */
    const Node *loop;
    Expr *cell[LIMIT_HINTS];
    int ncell, hints;
} Ahead;

static void see(Expr *e, void *ctx)
{
    Ahead *a = ctx;

    for (int i = 0; i < a->ncell; i++)
        if (a->cell[i] == e)
            return;
    if (e->op == OP_cell && e->buf == a->buf && a->ncell < LIMIT_HINTS)
        a->cell[a->ncell++] = e;
}

/* What the statement reads, each element once. */
static void find_reads(StepCall *c, Ahead *a, const Node *n)
{
    Memo met = { 0 };

    if (n->kind == N_STORE && n->label != NULL && strcmp(n->label, c->line->word[0]) == 0)
        ir_visit(c->p, n->value, see, a, &met);
    if (n->kind == N_LET)
        ir_visit(c->p, n->value, see, a, &met);
    for (int i = 0; i < n->nbody; i++)
        find_reads(c, a, n->body[i]);
}

/* Whether something that e reads is at a place that the local tells. */
static bool reads_at(Prog *p, Expr *e, const Local *l)
{
    bool reads = e->op == OP_cell || e->op == OP_find || e->op == OP_above;

    if (reads && tree_mentions(p, e, l))
        return true;
    for (int i = 0; i < e->nargs; i++)
        if (reads_at(p, e->arg[i], l))
            return true;
    return false;
}

/* A loop inside may have no first iteration, at which there is something to read. */
static void check_inner(StepCall *c, const Node *n, Expr *cell)
{
    for (int i = 0; i < n->nbody; i++) {
        const Node *x = n->body[i];

        for (int d = 0; d < cell->nargs && x->kind == N_FOR && !step_runs(x); d++)
            if (reads_at(c->p, cell->arg[d], x->local))
                step_refuse(c, "where %s will be read is known only inside %s.%s",
                            cell->buf->name, x->label, loop_path(x));
        check_inner(c, x, cell);
    }
}

/* Loops inside stand at their first iteration, lets are what they stand for. */
static Expr *at_first(StepCall *c, const Node *n, Expr *e)
{
    for (int i = n->nbody - 1; i >= 0; i--) {
        const Node *x = n->body[i];
        Node *keep = loop_node(c->p, &(Node){ .kind = N_LET, .value = at_first(c, x, e) });

        e = keep->value;
        if (x->local == NULL || !tree_mentions(c->p, e, x->local))
            continue;
        keep->value = e;
        e = loop_replace(c->p, keep, x->local, x->kind == N_LET ? x->value : x->lo)->value;
    }
    return e;
}

/* A coordinate, inside its bound, of the position that the variable is at: of this axis, if the
 * variable may leave the loop's range. */
static bool is_coordinate(Expr *e, const Axis *a)
{
    const Axis *of = e->buf->of;

    return of != NULL && (a == NULL || of == a) && e->buf->of_k >= 0 && e->buf->nfull == 0 &&
           e->arg[0]->op == OP_local && of->coord[e->buf->of_k].bound != NULL &&
           !(of->flags & AX_PADDED);
}

/* Whether all that e reads is there wherever the variable may be. */
static bool is_there(Prog *p, Expr *e, const Local *var, const Axis *a)
{
    if (!tree_mentions(p, e, var))
        return true;
    if (e->op == OP_find || e->op == OP_above || (e->op == OP_cell && !is_coordinate(e, a)))
        return false;
    for (int i = 0; i < e->nargs; i++)
        if (!is_there(p, e->arg[i], var, a))
            return false;
    return true;
}

/* An iteration to come; near the end the last one. */
static Expr *later(StepCall *c, const Ahead *a, const Axis *of)
{
    Prog *p = c->p;
    Expr *end = of != NULL ? ir_count(p, (Axis *)of) : a->loop->hi;

    return ir_op2(p, OP_min, tree_plus(p, loop_use(p, a->loop->local), ir_int(p, a->n)),
                  tree_sub(p, end, ir_int(p, 1)));
}

static void hint(StepCall *c, Ahead *a, Expr *cell, NodeList *out)
{
    Prog *p = c->p;
    const Axis *of = step_is_over_entries(p, a->loop) ? a->loop->lo->buf->of : NULL;
    Expr *at = at_first(c, a->loop, cell);
    Node n = { .kind = N_AHEAD, .label = c->line->word[0], .out = at };

    check_inner(c, a->loop, cell);
    if (!tree_mentions(p, at, a->loop->local))
        step_refuse(c, "which element of %s it is does not change with %s", a->buf->name,
                    c->line->word[3]);
    for (int d = 0; d < at->nargs; d++)
        if (!is_there(p, at->arg[d], a->loop->local, of))
            step_refuse(c, "the index of a later %s is computed from an element that may not exist",
                        a->buf->name);
    tree_append(p, out, loop_replace(p, loop_node(p, &n), a->loop->local, later(c, a, of)));
    a->hints++;
}

static void prefetch(StepCall *c, const Spot *at, NodeList *out, void *ctx)
{
    Ahead *a = ctx;
    NodeList body = { 0 };

    a->loop = at->node;
    a->ncell = 0;
    if (step_has(at->node, N_CHECK))
        step_refuse(c, "its index is checked before the load, and a prefetch has no check");
    find_reads(c, a, at->node);
    for (int i = 0; i < a->ncell; i++)
        hint(c, a, a->cell[i], &body);
    for (int i = 0; i < at->node->nbody; i++)
        tree_append(c->p, &body, at->node->body[i]);
    tree_append(c->p, out, tree_with_body(c->p, at->node, &body));
}

void step_prefetch(StepCall *c)
{
    Ahead a = { .hints = 0 };

    step_count(c, 5, 5);
    if (strcmp(c->line->word[2], "at") != 0)
        step_refuse(c, "`at` and a loop come after the array, not %s", c->line->word[2]);
    a.buf = step_array(c, c->line->word[1]);
    a.n = step_int(c, 4, 1, LIMIT_AHEAD);
    if (a.buf->kind == B_CONST || a.buf->of != NULL)
        step_refuse(c, "%s is structure or constant, and read in order anyway", a.buf->name);
    step_edit(c, c->line->word[3], prefetch, &a);
    if (a.hints == 0)
        step_refuse(c, "%s reads no %s in %s", c->line->word[0], a.buf->name, c->line->word[3]);
}
