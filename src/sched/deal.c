/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Who runs what on a GPU: the last steps, on loops that have their vector loops already.
 *
 *   team LOOP N [by M]   N lanes of a warp take an iteration of the phase, in vector loops of N
 *                        lanes; with M, so do M parts of N lanes together,
 *   deal LOOP            which take the iterations of a loop inside in turns
 *   wide LOOP N          a lane has N neighbours: one load or store takes them
 *   turns LOOP N         N iterations are written out in one turn: addresses and tests once */
#include "sched/step.h"

#include <string.h>

enum { LIMIT_PARTS = 16, LIMIT_TURNS = 16, LIMIT_REGISTERS = 16 };

static void need_levels(StepCall *c)
{
    if (c->target == NULL || !c->target->levels)
        step_refuse(c, "it is for targets whose lanes are threads");
}

static bool is_power(int64_t n)
{
    return n > 0 && (n & (n - 1)) == 0;
}

/* Registers that a loop of n times as many lanes asks for, as far as it has iterations. */
static int registers(const Node *n, int lanes)
{
    int64_t trips = step_trips(n), all = (int64_t)n->lanes * (n->regs > 1 ? n->regs : 1);
    int regs = 1;

    while (regs < LIMIT_REGISTERS && 2 * (int64_t)regs * lanes <= all &&
           (trips < 0 || 2 * (int64_t)regs * lanes <= trips))
        regs *= 2;
    return regs;
}

typedef struct Team {
    int lanes, parts;
} Team;

static Node *in_lanes(StepCall *c, const Node *n, int lanes)
{
    NodeList body = { 0 };
    Node own = *n;

    if (n->kind == N_FOR && n->lanes > 1) {
        own.regs = registers(n, lanes);
        own.lanes = lanes;
        own.packed = n->packed && own.regs == n->regs;
        return step_relaned(c->p, &own, lanes);
    }
    for (int i = 0; i < n->nbody; i++)
        tree_append(c->p, &body, in_lanes(c, n->body[i], lanes));
    return tree_with_body(c->p, &own, &body);
}

static void team(StepCall *c, const Spot *at, NodeList *out, void *ctx)
{
    const Team *t = ctx;
    Node *n = loop_node(c->p, at->node);

    if (at->depth > 0 || n->kind != N_FOR || n->how != FOR_PARALLEL)
        step_refuse(c, "it is no loop of a phase whose iterations may run at the same time");
    if (n->lanes > 1 || !loop_has_vector(n))
        step_refuse(c, "no loop inside it runs in lanes");
    n = loop_node(c->p, in_lanes(c, n, t->lanes));
    n->level = t->parts > 1 ? LEVEL_BLOCK : LEVEL_WARP;
    n->width = t->parts > 1 ? t->parts : t->lanes;
    tree_append(c->p, out, n);
}

void step_team(StepCall *c)
{
    Team t = { 0, 1 };

    step_count(c, 2, 4);
    need_levels(c);
    if (c->line->nword == 3 || (c->line->nword == 4 && strcmp(c->line->word[2], "by") != 0))
        step_refuse(c, "it is written %s %s", c->line->step->name, c->line->step->args);
    t.lanes = (int)step_int(c, 1, 2, LOOP_MOST_WIDTH);
    if (c->line->nword == 4)
        t.parts = (int)step_int(c, 3, 2, LIMIT_PARTS);
    if (!is_power(t.lanes) || !is_power(t.parts) || t.lanes * t.parts > c->target->lanes)
        step_refuse(c, "parts of a warp have 2, 4, 8, ... lanes, and a warp has %d",
                    c->target->lanes);
    if (!c->target->parts && t.lanes < c->target->lanes)
        step_refuse(c, "lanes of this target work as whole warps, %d", c->target->lanes);
    step_edit(c, c->line->word[0], team, &t);
}

static void deal(StepCall *c, const Spot *at, NodeList *out, void *ctx)
{
    Node *n = loop_node(c->p, at->node);
    const char *why;

    (void)ctx;
    if (at->depth == 0 || n->how != FOR_SERIAL)
        step_refuse(c, "it is no loop inside a phase");
    why = dep_race(c->p, c->phase[at->phase], at, false);
    if (why != NULL)
        step_refuse(c, "%s", why);
    if (step_reads_others(c, n))
        step_refuse(c, "an iteration may read what another one stores to a work array");
    n->level = LEVEL_WARP;
    tree_append(c->p, out, n);
}

void step_deal(StepCall *c)
{
    step_count(c, 1, 1);
    need_levels(c);
    step_edit(c, c->line->word[0], deal, NULL);
}

typedef struct Wide {
    const Node *loop;
    LoopKnown *known;
    bool any;
} Wide;

static void see_wide(Expr *e, void *ctx)
{
    Wide *w = ctx;

    w->any = w->any || (e->op == OP_cell && loop_is_wide(w->loop, e, w->known));
}

static void note_lets(LoopKnown *known, const Node *phase, const Node *n)
{
    if (n->kind == N_LET && n->local->type == T_i64 && !loop_assigns(phase, n->local))
        known[n->local->id].value = n->value;
    for (int i = 0; i < n->nbody; i++)
        note_lets(known, phase, n->body[i]);
}

static void wide(StepCall *c, const Spot *at, NodeList *out, void *ctx)
{
    const int *regs = ctx;
    Node *n = loop_node(c->p, at->node);
    Wide w = { n, arena_array(c->p->arena, c->p->nlocal, sizeof *w.known), false };
    Memo met = { 0 };

    if (n->lanes <= 1 || at->depth == 0)
        step_refuse(c, "it is no loop that runs in lanes");
    note_lets(w.known, c->phase[at->phase], c->phase[at->phase]);
    n->regs = *regs;
    n->packed = true;
    if (!loop_is_whole(n, w.known))
        step_refuse(c, "its iterations are not known to be a multiple of %d", n->lanes * n->regs);
    loop_visit(c->p, n, see_wide, &w, &met);
    if (!w.any)
        step_refuse(c, "no elements in it are known to begin at a multiple of %d", n->regs);
    tree_append(c->p, out, n);
}

void step_wide(StepCall *c)
{
    int regs;

    step_count(c, 2, 2);
    need_levels(c);
    regs = (int)step_int(c, 1, 2, 8);
    if (!is_power(regs))
        step_refuse(c, "a lane has 2, 4 or 8 neighbours");
    step_edit(c, c->line->word[0], wide, &regs);
}

static void turns(StepCall *c, const Spot *at, NodeList *out, void *ctx)
{
    const int *n = ctx;
    Node *loop = loop_node(c->p, at->node);

    if (at->depth == 0 || loop->how != FOR_SERIAL)
        step_refuse(c, "it is no serial loop inside a phase");
    loop->regs = *n;
    tree_append(c->p, out, loop);
}

void step_turns(StepCall *c)
{
    int n;

    step_count(c, 2, 2);
    need_levels(c);
    n = (int)step_int(c, 1, 2, LIMIT_TURNS);
    step_edit(c, c->line->word[0], turns, &n);
}
