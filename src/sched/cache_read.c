/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * cache_read LABEL ARRAY at LOOP: loads the elements of an array that an iteration of the loop
 * reads into registers, once, at the start of the iteration.  As in cache_write, loops that number
 * these elements first move outside the others. */
#include "sched/step.h"

typedef struct Loaded {
    Cells cells;
    Local *reg[LIMIT_STEP_CELLS];
    const Node *block;
    int first; /* node of the block that reads one */
    int blocks; /* that have been done */
} Loaded;

static Expr *to_register(Prog *p, Expr *e, void *ctx)
{
    const Loaded *l = ctx;

    for (int i = 0; i < l->cells.n; i++)
        if (l->cells.cell[i] == e)
            return loop_use(p, l->reg[i]);
    return e;
}

static void check_element(StepCall *c, const Loaded *l, const Node *phase, Expr *cell)
{
    const Node *in = step_bound_below(c->p, cell, l->block->body + l->first,
                                      l->block->nbody - l->first);

    if (!step_is_steady(phase, cell))
        step_refuse(c, "the index of %s depends on values that the phase stores",
                    cell->buf->name);
    if (in != NULL)
        step_refuse(c, "the index of %s depends on %s, which is defined only inside",
                    cell->buf->name,
                    in->local->name != NULL ? in->local->name : "a let");
    if (!step_is_inside(c->p, phase, cell))
        step_refuse(c, "an element of %s may not exist where nothing inside reads it",
                    cell->buf->name);
}

/* Whether a branch below decides if an element is read. */
static bool is_guarded(StepCall *c, const Node *n, const Buf *b)
{
    bool found = n->kind == N_IF && step_mentions(c, n, b);

    for (int i = 0; i < n->nbody && !found; i++)
        found = is_guarded(c, n->body[i], b);
    return found;
}

static void load(StepCall *c, const Spot *at, NodeList *out, void *ctx)
{
    Loaded *l = ctx;
    const Node *phase = c->phase[at->phase];
    NodeList body = { 0 };
    Memo memo = { 0 };

    l->block = at->node;
    l->cells.n = 0;
    for (l->first = 0; l->first < at->node->nbody; l->first++)
        if (step_mentions(c, at->node->body[l->first], l->cells.buf))
            break;
    if (loop_writes(phase, l->cells.buf))
        step_refuse(c, "%s is written in the same phase", l->cells.buf->name);
    for (int i = l->first; i < at->node->nbody; i++) {
        if (is_guarded(c, at->node->body[i], l->cells.buf))
            step_refuse(c, "%s is read only where a condition holds", l->cells.buf->name);
        step_cells(&l->cells, at->node->body[i]);
    }
    for (int i = 0; i < l->first; i++)
        tree_append(c->p, &body, at->node->body[i]);
    for (int i = 0; i < l->cells.n; i++) {
        Node let = { .kind = N_LET, .label = c->line->word[0], .value = l->cells.cell[i] };

        check_element(c, l, phase, let.value);
        let.local = l->reg[i] = loop_local(c->p, NULL, (Type)let.value->type, 1);
        tree_append(c->p, &body, loop_node(c->p, &let));
    }
    for (int i = l->first; i < at->node->nbody; i++)
        tree_append(c->p, &body, loop_rewrite(c->p, at->node->body[i], to_register, l, &memo));
    l->blocks += l->cells.n > 0;
    tree_append(c->p, out, tree_with_body(c->p, at->node, &body));
}

static bool has_hint(const Node *n, const Buf *b)
{
    bool has = n->kind == N_AHEAD && n->out->buf == b;

    for (int i = 0; i < n->nbody && !has; i++)
        has = has_hint(n->body[i], b);
    return has;
}

void step_cache_read(StepCall *c)
{
    Loaded *l = arena_alloc(c->p->arena, sizeof *l);

    if (step_at_shared(c)) {
        step_cache_shared(c, false);
        return;
    }
    *l = (Loaded){ .cells = { .call = c, .buf = step_array(c, c->line->word[1]) } };
    if (l->cells.buf->of != NULL)
        step_refuse(c, "%s is structure, which is read once anyway", l->cells.buf->name);
    for (int i = 0; i < c->n; i++)
        if (has_hint(c->phase[i], l->cells.buf))
            step_refuse(c, "%s is prefetched; put the prefetch line after this one",
                        l->cells.buf->name);
    step_edit(c, step_innermost(c, l->cells.buf, c->line->word[3]), load, l);
    if (l->blocks == 0)
        step_refuse(c, "%s reads no %s in %s", c->line->word[0], l->cells.buf->name,
                    c->line->word[3]);
}
