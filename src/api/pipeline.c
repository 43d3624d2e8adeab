/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The pipeline: from a program over coordinates to loops that emit/ prints.  A table, so that it
 * can be listed, stopped after each pass, and begun at the stage that a program is written in. */
#include "api/api_int.h"
#include "lower/lower.h"

#include <string.h>

static void reroot(Kernel *k)
{
    lower_reroot(k->p);
}

static void positions(Kernel *k)
{
    *k = *lower_positions(k->p);
}

static void tiles(Kernel *k, const Aim *aim)
{
    lower_tiles(k,
                (LowerTile){ .bytes = aim->isa->bytes, .registers = aim->sched.step[SCHED_TILE] });
}

static void panels(Kernel *k, const Aim *aim)
{
    lower_panels(k, aim->sched.step[SCHED_PANEL], aim->sched.step[SCHED_PACK]);
}

static void vectors(Kernel *k, const Aim *aim)
{
    lower_vectors(k, aim->isa->bytes);
}

static void ahead(Kernel *k, const Aim *aim)
{
    lower_ahead(k, aim->sched.step[SCHED_AHEAD]);
}

static void streams(Kernel *k, const Aim *aim)
{
    if (aim->sched.step[SCHED_STREAM])
        lower_streams(k);
}

static void jams(Kernel *k, const Aim *aim)
{
    if (aim->sched.step[SCHED_JAM])
        lower_jams(k);
}

const Pass api_pass[] = {
    /* name, what it does, the stage it needs, the stage it gives */
    { "reroot", "scatters become sums over the rows of a transpose", STAGE_COORDINATES,
      STAGE_COORDINATES, reroot, NULL },
    { "positions", "coordinates become loops over stored entries", STAGE_COORDINATES,
      STAGE_POSITIONS, positions, NULL },
    { "unroll", "constant relations become straight-line code", STAGE_POSITIONS, STAGE_POSITIONS,
      lower_unroll, NULL },
    { "parts", "long rows and sums of all iterations are cut", STAGE_POSITIONS, STAGE_POSITIONS,
      lower_parts, NULL },
    { "loops", "one flat index an element", STAGE_POSITIONS, STAGE_LOOPS, lower_loops, NULL },
    { "fold", "as unroll, where flat indices decide more", STAGE_LOOPS, STAGE_LOOPS, lower_unroll,
      NULL },
    { "checks", "what was tested, or does not change in a loop, is tested once", STAGE_LOOPS,
      STAGE_LOOPS, lower_checks, NULL },
    { "merges", "searches for what ascends go on from where they ended", STAGE_LOOPS, STAGE_LOOPS,
      lower_merges, NULL },
    { "maps", "searches among entries in no order ask a table", STAGE_LOOPS, STAGE_LOOPS,
      lower_maps, NULL },
    { "tiles", "sums stay in registers while loops add to them", STAGE_LOOPS, STAGE_LOOPS, NULL,
      tiles },
    { "begins", "first values come with the sums", STAGE_LOOPS, STAGE_LOOPS, lower_begins, NULL },
    { "panels", "some elements of all rows come before the next", STAGE_LOOPS, STAGE_LOOPS, NULL,
      panels },
    { "vectors", "innermost loops run several iterations at once", STAGE_LOOPS, STAGE_LOOPS, NULL,
      vectors },
    { "blocks", "what one element gets is added up first", STAGE_LOOPS, STAGE_LOOPS, lower_blocks,
      NULL },
    { "ahead", "rows that will be gathered are asked for early", STAGE_LOOPS, STAGE_LOOPS, NULL,
      ahead },
    { "streams", "results that nothing reads go past the caches", STAGE_LOOPS, STAGE_LOOPS, NULL,
      streams },
    { "jams", "sums over lanes run side by side", STAGE_LOOPS, STAGE_LOOPS, NULL, jams },
    { "share", "what is used twice is computed once", STAGE_LOOPS, STAGE_LOOPS, lower_shared,
      NULL },
    { NULL, NULL, STAGE_LOOPS, STAGE_LOOPS, NULL, NULL },
};

Aim api_aim_at(Err *err, const Isa *isa, const char *sched)
{
    Aim aim = api_aim(isa);

    if (sched != NULL)
        sched_parse(err, sched, &aim.sched);
    return aim;
}

const Pass *api_find_pass(Prog *p, const char *name)
{
    for (const Pass *s = api_pass; s->name != NULL; s++)
        if (strcmp(s->name, name) == 0)
            return s;
    ir_throw(p, ST_ARG, "there is no pass %s; `weft list passes` shows them", name);
}

/* What a pass gives is a program again; it is checked where that costs no user anything. */
void api_run_pass(const Pass *s, Kernel *k, const Aim *aim)
{
    k->p->at = (Place){ 0 }; /* what a pass says is of no place in the text */
    if (s->plain != NULL)
        s->plain(k);
    else
        s->run(k, aim);
    k->p->stage = s->gives;
    k->p->phase = k->phase;
    k->p->nphase = k->n;
#ifndef NDEBUG
    ir_check(k->p);
#endif
}

/* A program that is written at a later stage begins there.  Without a plan there is no transpose,
 * no list of long rows and no table. */
Kernel *api_lower_to(Prog *p, const Aim *aim, bool alone, const Pass *last)
{
    Kernel *k = arena_alloc(p->arena, sizeof *k);
    const Pass *s = api_pass;

    *k = (Kernel){ .p = p, .phase = (Node **)p->phase, .n = p->nphase };
    if (last->needs < p->stage)
        ir_throw(p, ST_ARG, "the program is at stage %s already, and %s needs stage %s",
                 ir_stage[p->stage], last->name, ir_stage[last->needs]);
    for (; s->name != NULL; s++) {
        bool planned = s->plain == reroot || s->plain == lower_parts || s->plain == lower_maps;
        bool shown = last->name != NULL && s != last; /* to be read, and run without one */

        if (s->needs == p->stage && !(alone && planned) && !(shown && s->plain == lower_parts))
            api_run_pass(s, k, aim);
        if (s == last)
            break;
    }
    return k;
}

Kernel *api_passes(Prog *p, const Aim *aim, bool alone)
{
    const Pass *end = api_pass;

    while (end->name != NULL)
        end++;
    return api_lower_to(p, aim, alone, end);
}
