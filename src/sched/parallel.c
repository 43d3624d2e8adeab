/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * parallel LOOP: lets the iterations of a phase's loop run at the same time.  Refused where two of
 * them may write one element. */
#include "sched/step.h"

#include <string.h>

static void check_balance(StepCall *c, const Node *n)
{
    const Buf *b = loop_balance(n);
    const char *want = c->line->word[2];

    if (strcmp(c->line->word[1], "balance") != 0)
        step_refuse(c, "`balance` and an axis come after the loop, not %s", c->line->word[1]);
    if (b == NULL || b->of->name == NULL || strcmp(b->of->name, want) != 0)
        step_refuse(c, "%s does not weigh its iterations; %s%s", want,
                    b == NULL ? "no axis does" : "write balance ",
                    b == NULL ? "" : b->of->name);
}

static void parallel(StepCall *c, const Spot *at, NodeList *out, void *ctx)
{
    Node *n = loop_node(c->p, at->node);
    const char *why;

    (void)ctx;
    if (at->depth > 0)
        step_refuse(c, "only the outermost loop of a phase can be parallel; reorder it there");
    if (n->lo->op != OP_int || n->lo->i != 0)
        step_refuse(c, "the loop of a parallel phase begins at 0");
    why = dep_race(c->p, c->phase[at->phase], at, false);
    if (why != NULL)
        step_refuse(c, "%s", why);
    if (c->line->nword == 3)
        check_balance(c, n);
    n->how = FOR_PARALLEL;
    tree_append(c->p, out, n);
}

void step_parallel(StepCall *c)
{
    step_count(c, 1, 3);
    if (c->line->nword == 2)
        step_refuse(c, "the axis is missing after %s", c->line->word[1]);
    step_edit(c, c->line->word[0], parallel, NULL);
}
