/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * bind LOOP LEVEL [WIDTH] [balance AXIS]: runs a loop on a level of the machine.  A CPU has
 * threads, for the outermost loop of a phase, and lanes, for which step vectorize is.  On a GPU
 * the outermost loop runs on the grid, and each of its iterations on a block, a warp, a part of
 * a warp, or a thread; loops inside are dealt to the warps of the block, or to its threads. */
#include "sched/step.h"

#include <string.h>

typedef struct Bound {
    LoopLevel level;
    int width; /* 0: as many as the machine has */
} Bound;

/* Elements that one iteration stores to and others read, of arrays where any may be read. */
static bool reads_others(StepCall *c, const Node *loop, const Node *n)
{
    bool found = false;

    if (n->kind == N_STORE && n->out->op == OP_cell && loop_is_work(n->out->buf)) {
        Cells s = { .call = c, .buf = n->out->buf };

        step_cells(&s, loop);
        found = s.n > 1;
    }
    for (int i = 0; i < n->nbody && !found; i++)
        found = reads_others(c, loop, n->body[i]);
    return found;
}

bool step_reads_others(StepCall *c, const Node *loop)
{
    return reads_others(c, loop, loop);
}

static void bind(StepCall *c, const Spot *at, NodeList *out, void *ctx)
{
    const Bound *b = ctx;
    Node *n = loop_node(c->p, at->node);
    const char *why;

    if (b->width > 0 && at->depth > 0)
        step_refuse(c, "a width is said of the outermost loop of a phase");
    if (at->depth > 0) {
        why = dep_race(c->p, c->phase[at->phase], at, false);
        if (why != NULL)
            step_refuse(c, "%s", why);
        if (step_reads_others(c, n))
            step_refuse(c, "an iteration may read what another one stores to a work array");
    }
    n->level = b->level;
    n->width = b->width;
    tree_append(c->p, out, n);
}

/* The words without the first `less` after the loop. */
static StepLine without(const StepLine *own, int less)
{
    StepLine line = *own;

    for (int i = 1; i + less < own->nword; i++)
        line.word[i] = own->word[i + less];
    line.nword = own->nword - less;
    return line;
}

void step_bind(StepCall *c)
{
    const StepLine *own = c->line;
    const char *word = own->nword > 1 ? own->word[1] : "";
    bool grid = strcmp(word, "grid") == 0, width;
    Bound b = { LEVEL_NONE, 0 };
    StepLine line;

    step_count(c, 2, 5);
    if (strcmp(word, "lanes") == 0)
        step_refuse(c, "lanes come when indices are flat; write vectorize %s", own->word[0]);
    for (int i = LEVEL_NONE + 1; i < LEVEL_COUNT; i++)
        if (strcmp(word, loop_level_word[i]) == 0)
            b.level = (LoopLevel)i;
    if (strcmp(word, "threads") != 0 && ((!grid && b.level == LEVEL_NONE) || c->target == NULL ||
                                         !c->target->levels))
        step_refuse(c, "the target has no level %s; it has %s", word,
                    c->target != NULL && c->target->levels
                        ? "grid, block, warp, thread, threads and lanes"
                        : "threads and lanes");
    width = b.level != LEVEL_NONE && own->nword > 2 && strcmp(own->word[2], "balance") != 0;
    if (width)
        b.width = (int)step_int(c, 2, 1, LOOP_MOST_WIDTH);
    if (step_find(c, own->word[0]).depth == 0 || grid || b.level == LEVEL_NONE) {
        line = without(own, 1 + width);
        c->line = &line;
        step_parallel(c);
        c->line = own;
    }
    if (b.level != LEVEL_NONE)
        step_edit(c, own->word[0], bind, &b);
}
