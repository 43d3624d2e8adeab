/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * unroll LOOP: writes the iterations of a loop of constant length one after the other.  Their order
 * stays, so any such loop can be unrolled. */
#include "sched/step.h"

enum { LIMIT_TRIPS = 1024, LIMIT_NODES = 20000 };

static int64_t count_nodes(const Node *n)
{
    int64_t count = 1;

    for (int i = 0; i < n->nbody; i++)
        count += count_nodes(n->body[i]);
    return count;
}

static void unroll(StepCall *c, const Spot *at, NodeList *out, void *ctx)
{
    const Node *loop = at->node;
    int64_t n = step_trips(loop);

    (void)ctx;
    if (n < 0)
        step_refuse(c, "how often it runs is no constant; split it, and peel the rest");
    if (n > LIMIT_TRIPS || n * count_nodes(loop) > LIMIT_NODES)
        step_refuse(c, "%lld iterations of %lld nodes are too many", (long long)n,
                    (long long)count_nodes(loop));
    if (step_has(loop, N_BUILD))
        step_refuse(c, "it builds an axis, and a phase has one block that does");
    for (int64_t i = 0; i < n; i++)
        step_bodies(c->p, loop, ir_int(c->p, loop->lo->i + i), out);
}

void step_unroll(StepCall *c)
{
    step_count(c, 1, 1);
    step_edit(c, c->line->word[0], unroll, NULL);
}
