/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The pipeline: from a program over coordinates to loops that emit/ prints.  A table, so that it
 * can be listed, stopped after each pass, and begun at the stage that a program is written in. */
#include "api/api_int.h"
#include "lower/lower.h"

#include <string.h>

static void reroot(Kernel *k, const Isa *isa)
{
    (void)isa;
    lower_reroot(k->p);
}

static void positions(Kernel *k, const Isa *isa)
{
    (void)isa;
    *k = *lower_positions(k->p);
}

static void unroll(Kernel *k, const Isa *isa)
{
    (void)isa;
    lower_unroll(k);
}

static void loops(Kernel *k, const Isa *isa)
{
    (void)isa;
    lower_loops(k);
}

static void checks(Kernel *k, const Isa *isa)
{
    (void)isa;
    lower_checks(k);
}

static void vectors(Kernel *k, const Isa *isa)
{
    lower_vectors(k, isa->bytes);
}

static void blocks(Kernel *k, const Isa *isa)
{
    (void)isa;
    lower_blocks(k);
}

static void share(Kernel *k, const Isa *isa)
{
    (void)isa;
    lower_shared(k);
}

const Pass api_pass[] = {
    /* name, what it does, the stage it needs, the stage it gives */
    { "reroot", "scatters become sums over the rows of a transpose", STAGE_COORDINATES,
      STAGE_COORDINATES, reroot },
    { "positions", "coordinates become loops over stored entries", STAGE_COORDINATES,
      STAGE_POSITIONS, positions },
    { "unroll", "constant relations become straight-line code", STAGE_POSITIONS, STAGE_POSITIONS,
      unroll },
    { "loops", "one flat index an element", STAGE_POSITIONS, STAGE_LOOPS, loops },
    { "fold", "as unroll, where flat indices decide more", STAGE_LOOPS, STAGE_LOOPS, unroll },
    { "checks", "what was tested, or does not change in a loop, is tested once", STAGE_LOOPS,
      STAGE_LOOPS, checks },
    { "vectors", "innermost loops run several iterations at once", STAGE_LOOPS, STAGE_LOOPS,
      vectors },
    { "blocks", "what one element gets is added up first", STAGE_LOOPS, STAGE_LOOPS, blocks },
    { "share", "what is used twice is computed once", STAGE_LOOPS, STAGE_LOOPS, share },
    { NULL, NULL, STAGE_LOOPS, STAGE_LOOPS, NULL },
};

const Pass *api_find_pass(Prog *p, const char *name)
{
    for (const Pass *s = api_pass; s->name != NULL; s++)
        if (strcmp(s->name, name) == 0)
            return s;
    ir_throw(p, ST_ARG, "there is no pass %s; `weft list passes` shows them", name);
}

/* What a pass gives is a program again; it is checked where that costs no user anything. */
static void run_pass(const Pass *s, Kernel *k, const Isa *isa)
{
    k->p->at = (Place){ 0 }; /* what a pass says is of no place in the text */
    s->run(k, isa);
    k->p->stage = s->gives;
    k->p->phase = k->phase;
    k->p->nphase = k->n;
#ifndef NDEBUG
    ir_check(k->p);
#endif
}

/* A program that is written at a later stage begins there. */
Kernel *api_lower_to(Prog *p, const Isa *isa, bool alone, const Pass *last)
{
    Kernel *k = arena_alloc(p->arena, sizeof *k);
    const Pass *s = api_pass;

    *k = (Kernel){ .p = p, .phase = (Node **)p->phase, .n = p->nphase };
    if (last->needs < p->stage)
        ir_throw(p, ST_ARG, "the program is at stage %s already, and %s needs stage %s",
                 ir_stage[p->stage], last->name, ir_stage[last->needs]);
    for (; s->name != NULL; s++) {
        if (s->needs == p->stage && !(alone && s->run == reroot)) /* one thread has no races */
            run_pass(s, k, isa);
        if (s == last)
            break;
    }
    return k;
}

Kernel *api_passes(Prog *p, const Isa *isa, bool alone)
{
    const Pass *end = api_pass;

    while (end->name != NULL)
        end++;
    return api_lower_to(p, isa, alone, end);
}
