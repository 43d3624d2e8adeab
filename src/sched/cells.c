/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Finds the elements of an array that a block mentions, and the loops that number them.  Steps that
 * keep elements in registers share these functions. */
#include "sched/step.h"

#include <string.h>

static void add_cell(Expr *e, void *ctx)
{
    Cells *s = ctx;

    if (e->op != OP_cell || e->buf != s->buf)
        return;
    for (int i = 0; i < s->n; i++)
        if (s->cell[i] == e)
            return;
    if (s->n == LIMIT_STEP_CELLS)
        step_refuse(s->call, "it would take more than %d registers", LIMIT_STEP_CELLS);
    s->cell[s->n++] = e;
}

void step_cells(Cells *s, const Node *n)
{
    Memo met = { 0 };

    loop_visit(s->call->p, n, add_cell, s, &met);
}

bool step_mentions(StepCall *c, const Node *n, const Buf *b)
{
    Cells s = { .call = c, .buf = b };

    step_cells(&s, n);
    return s.n > 0;
}

bool step_are_apart(Expr *a, Expr *b)
{
    for (int d = 0; d < a->nargs; d++)
        if (tree_differ(a->arg[d], b->arg[d]))
            return true;
    return false;
}

const Node *step_bound_below(Prog *p, Expr *e, Node *const *n, int count)
{
    const Node *found = NULL;

    for (int i = 0; i < count && found == NULL; i++) {
        if (n[i]->local != NULL && tree_mentions(p, e, n[i]->local))
            found = n[i];
        else
            found = step_bound_below(p, e, n[i]->body, n[i]->nbody);
    }
    return found;
}

bool step_is_steady(const Node *phase, Expr *cell)
{
    for (int i = 0; i < cell->nargs; i++) {
        Expr *e = cell->arg[i];

        if ((e->op == OP_cell && loop_writes(phase, e->buf)) ||
            (e->op == OP_local && loop_assigns(phase, e->local)) || !step_is_steady(phase, e))
            return false;
    }
    return true;
}

/* Loops inside a block, outermost first: those that number elements of the array, and others. */
typedef struct Inner {
    StepCall *call;
    Cells cells;
    const char *number[LIMIT_STEP_WORDS], *other[LIMIT_STEP_WORDS];
    int nnumber, nother;
    bool apart; /* a loop that numbers elements stands inside another one */
} Inner;

static bool numbers(Inner *in, const Node *phase, const Local *l, Expr *e)
{
    const Node *n = step_binder(phase, e);

    if (n != NULL && n->kind == N_LET)
        return numbers(in, phase, l, n->value);
    if (e->op == OP_local)
        return e->local == l;
    for (int i = 0; i < e->nargs; i++)
        if (numbers(in, phase, l, e->arg[i]))
            return true;
    return false;
}

static void sort_loops(Inner *in, const Node *phase, const Node *n)
{
    Prog *p = in->call->p;

    if (n->kind == N_FOR && step_mentions(in->call, n, in->cells.buf)) {
        bool any = false;
        const char *name = step_join(p, step_join(p, n->label, "."), loop_path(n));

        for (int i = 0; i < in->cells.n; i++)
            any = any || numbers(in, phase, n->local, in->cells.cell[i]);
        if (in->nnumber + in->nother >= LIMIT_STEP_WORDS)
            step_refuse(in->call, "there are too many loops inside");
        in->apart = in->apart || (any && in->nother > 0);
        if (any)
            in->number[in->nnumber++] = name;
        else
            in->other[in->nother++] = name;
    }
    for (int i = 0; i < n->nbody; i++)
        sort_loops(in, phase, n->body[i]);
}

const char *step_innermost(StepCall *c, const Buf *b, const char *name)
{
    Spot s = step_find(c, name);
    Inner in = { .call = c, .cells = { .call = c, .buf = b } };
    StepLine line = { .step = c->line->step, .text = c->line->text };
    const StepLine *own = c->line;

    step_cells(&in.cells, s.node);
    for (int i = 0; i < s.node->nbody; i++)
        sort_loops(&in, c->phase[s.phase], s.node->body[i]);
    if (in.apart) {
        for (int i = 0; i < in.nnumber; i++)
            line.word[line.nword++] = in.number[i];
        for (int i = 0; i < in.nother; i++)
            line.word[line.nword++] = in.other[i];
        c->line = &line;
        step_reorder(c);
        c->line = own;
    }
    return in.nnumber > 0 ? in.number[in.nnumber - 1] : name;
}

Buf *step_array(StepCall *c, const char *name)
{
    const Symbol *s = ir_find_symbol(c->p, name, strlen(name));

    if (s == NULL || s->buf == NULL)
        step_refuse(c, "there is no array %s", name);
    return s->buf;
}

