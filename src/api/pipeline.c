/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The pipeline: from a program over coordinates to loops that emit/ prints.  A table, so that it
 * can be listed, stopped after each pass, and begun at the stage that a program is written in. */
#include "api/api_int.h"
#include "lower/lower.h"
#include "sched/step.h"

#include <string.h>

static void reroot(Kernel *k)
{
    lower_transpose(k->p);
}

static void positions(Kernel *k)
{
    *k = *lower_positions(k->p);
}

static void take_phases(Kernel *k)
{
    k->phase = (Node **)k->p->phase;
    k->n = k->cap = k->p->nphase;
}

static LowerTile tile_of(const Aim *aim)
{
    return (LowerTile){ .bytes = aim->isa->bytes,
                        .registers = aim->sched.step[SCHED_TILE],
                        .all = aim->isa->registers,
                        .sweep = aim->sched.step[SCHED_SWEEP] };
}

/* A nest that is named gets the registers that it needs, whatever the number for all others. */
static Node *tile_nest(const void *ctx, Prog *p, Node *phase, Node *nest, int rows, int columns)
{
    LowerTile how = tile_of(ctx);

    how.registers = how.all;
    how.rows = rows;
    how.columns = columns;
    return lower_tensor(p, phase, nest, how);
}

StepTarget api_step_target(const Aim *aim)
{
    return (StepTarget){ aim, tile_nest };
}

static void steps(Kernel *k, const Aim *aim)
{
    StepTarget target = api_step_target(aim);

    step_apply_all(k->p, aim->sched.text, STAGE_POSITIONS, &target);
    take_phases(k);
}

static void lanes(Kernel *k, const Aim *aim)
{
    StepTarget target = api_step_target(aim);

    step_apply_all(k->p, aim->sched.text, STAGE_LOOPS, &target);
    step_fit_lanes(k->p, aim->isa->bytes);
    take_phases(k);
}

static void tiles(Kernel *k, const Aim *aim)
{
    lower_accumulate(k, tile_of(aim));
}

static void segments(Kernel *k, const Aim *aim)
{
    lower_factor(k, tile_of(aim));
}

static void rows(Kernel *k, const Aim *aim)
{
    lower_block_rows(k, tile_of(aim));
}

static void batches(Kernel *k, const Aim *aim)
{
    lower_batch(k, aim->isa->bytes);
}

static void panels(Kernel *k, const Aim *aim)
{
    lower_panel(k, aim->sched.step[SCHED_PANEL], aim->sched.step[SCHED_PACK]);
}

static void vectors(Kernel *k, const Aim *aim)
{
    lower_vectorize(k, aim->isa->bytes);
}

static void items(Kernel *k, const Aim *aim)
{
    lower_vectorize_outer(k, aim->isa->bytes);
}

static void ahead(Kernel *k, const Aim *aim)
{
    lower_prefetch_gathers(k, aim->sched.step[SCHED_AHEAD]);
    lower_prefetch_rows(k, aim->sched.step[SCHED_AHEAD]);
}

static void streams(Kernel *k, const Aim *aim)
{
    lower_stream(k, aim->sched.step[SCHED_STREAM]);
}

static void jams(Kernel *k, const Aim *aim)
{
    if (aim->sched.step[SCHED_JAM])
        lower_jam(k, aim->isa->registers);
}

static void compensate(Kernel *k, const Aim *aim)
{
    if (aim->sched.step[SCHED_COMPENSATE])
        lower_compensate(k, aim->isa->bytes);
}

static void formats(Kernel *k, const Aim *aim)
{
    api_formats(k->p, aim->sched.text);
}

const Pass api_pass[] = {
    /* name, what it does, the stage it needs, the stage it gives */
    { "formats", "entries are stored as a schedule says", STAGE_COORDINATES, STAGE_COORDINATES,
      NULL, formats },
    { "transpose", "scatters become sums over the rows of a transpose", STAGE_COORDINATES,
      STAGE_COORDINATES, reroot, NULL },
    { "positions", "coordinates become loops over stored entries", STAGE_COORDINATES,
      STAGE_POSITIONS, positions, NULL },
    { "steps", "loops are arranged as a schedule says", STAGE_POSITIONS, STAGE_POSITIONS, NULL,
      steps },
    { "unroll", "constant relations become straight-line code", STAGE_POSITIONS, STAGE_POSITIONS,
      lower_unroll, NULL },
    { "fuse_entries", "what is made of an entry is used there", STAGE_POSITIONS, STAGE_POSITIONS,
      lower_fuse_entries, NULL },
    { "split_sums", "long rows and sums of all iterations are cut", STAGE_POSITIONS,
      STAGE_POSITIONS, lower_split_sums, NULL },
    { "flatten", "one flat index an element", STAGE_POSITIONS, STAGE_LOOPS, lower_flatten, NULL },
    { "fold", "as unroll, where flat indices decide more", STAGE_LOOPS, STAGE_LOOPS, lower_unroll,
      NULL },
    { "hoist", "what was tested, or does not change in a loop, is tested once", STAGE_LOOPS,
      STAGE_LOOPS, lower_hoist, NULL },
    { "gallop", "searches for what ascends go on from where they ended", STAGE_LOOPS, STAGE_LOOPS,
      lower_gallop, NULL },
    { "hash", "searches among entries in no order ask a table", STAGE_LOOPS, STAGE_LOOPS,
      lower_hash, NULL },
    { "lanes", "loops run in lanes as a schedule says", STAGE_LOOPS, STAGE_LOOPS, NULL, lanes },
    { "fuse_sums", "phases of sums over one range become one", STAGE_LOOPS, STAGE_LOOPS,
      lower_fuse_sums, NULL },
    { "factor", "sums of products share what they can", STAGE_LOOPS, STAGE_LOOPS, NULL, segments },
    { "accumulate", "sums stay in registers while loops add to them", STAGE_LOOPS, STAGE_LOOPS,
      NULL, tiles },
    { "accumulate_outer", "what loops around others add to one element stays in a register",
      STAGE_LOOPS, STAGE_LOOPS, lower_accumulate_outer, NULL },
    { "init_registers", "first values come with the sums", STAGE_LOOPS, STAGE_LOOPS,
      lower_init_registers, NULL },
    { "init_stores", "first values come with the first stores", STAGE_LOOPS, STAGE_LOOPS,
      lower_init_stores, NULL },
    { "batch", "numbers of several iterations are computed at once", STAGE_LOOPS, STAGE_LOOPS, NULL,
      batches },
    { "block_rows", "rows that share operands run side by side", STAGE_LOOPS, STAGE_LOOPS, NULL,
      rows },
    { "panel", "some elements of all rows come before the next", STAGE_LOOPS, STAGE_LOOPS, NULL,
      panels },
    { "vectorize", "innermost loops run several iterations at once", STAGE_LOOPS, STAGE_LOOPS, NULL,
      vectors },
    { "fuse_straight", "straight-line phases over one range become one", STAGE_LOOPS, STAGE_LOOPS,
      lower_fuse_straight, NULL },
    { "combine", "what one element gets is added up first", STAGE_LOOPS, STAGE_LOOPS, lower_combine,
      NULL },
    { "vectorize_outer", "straight-line phases run several iterations at once", STAGE_LOOPS,
      STAGE_LOOPS, NULL, items },
    { "fuse_rows", "phases over the same rows run in one iteration, where they share them",
      STAGE_LOOPS, STAGE_LOOPS, lower_fuse_rows, NULL },
    { "prefetch", "rows that will be gathered are asked for early", STAGE_LOOPS, STAGE_LOOPS, NULL,
      ahead },
    { "stream", "results that nothing reads go past the caches", STAGE_LOOPS, STAGE_LOOPS, NULL,
      streams },
    { "jam", "sums over lanes run side by side", STAGE_LOOPS, STAGE_LOOPS, NULL, jams },
    { "compensate", "sums over entries add up what rounding takes from them", STAGE_LOOPS,
      STAGE_LOOPS, NULL, compensate },
    { "cse", "what is used twice is computed once", STAGE_LOOPS, STAGE_LOOPS, lower_cse, NULL },
    { NULL, NULL, STAGE_LOOPS, STAGE_LOOPS, NULL, NULL },
};

Aim api_aim_at(Err *err, const Isa *isa, const char *sched)
{
    Aim aim = api_aim(isa);

    if (sched != NULL)
        sched_parse(err, sched, &aim.sched);
    return aim;
}

Prog *api_trees(weft_ctx *ctx, const Prog *p)
{
    arena_free(&ctx->trees); /* of a lowering that failed in this call */
    return ir_copy_alone(&ctx->scratch, &ctx->trees, p);
}

const Pass *api_find_pass(Prog *p, const char *name)
{
    for (const Pass *s = api_pass; s->name != NULL; s++)
        if (strcmp(s->name, name) == 0)
            return s;
    ir_throw(p, ST_ARG, "there is no pass %s; `weft list passes` shows them", name);
}

/* Passes that arrange the loops of each phase by themselves: a scheduled phase keeps its loops. */
static bool arranges(const Pass *s)
{
    return s->plain == lower_fuse_entries || s->plain == lower_split_sums ||
           s->plain == lower_fuse_sums || s->run == segments || s->run == tiles ||
           s->plain == lower_accumulate_outer || s->run == batches || s->run == rows ||
           s->run == panels || s->run == vectors || s->plain == lower_fuse_straight ||
           s->run == items || s->run == ahead || s->run == jams;
}

static void run(const Pass *s, Kernel *k, const Aim *aim)
{
    if (s->plain != NULL)
        s->plain(k);
    else
        s->run(k, aim);
}

static void append(Kernel *to, Node *n)
{
    to->phase = arena_grow(to->p->arena, to->phase, to->n, &to->cap, sizeof *to->phase);
    to->phase[to->n++] = n;
}

/* The phases that are done already, and those that follow the ones a pass works on. */
static void set_others(Kernel *some, const Kernel *done, const Kernel *k, int from)
{
    Kernel other = { .p = k->p };

    for (int i = 0; i < done->n; i++)
        append(&other, done->phase[i]);
    for (int i = from; i < k->n; i++)
        append(&other, k->phase[i]);
    some->other = other.phase;
    some->nother = other.n;
}

/* The phases between scheduled ones, and those as they are. */
static void run_between(const Pass *s, Kernel *k, const Aim *aim)
{
    Kernel all = { .p = k->p };

    for (int i = 0, to; i < k->n; i = to) {
        Kernel some = { .p = k->p };

        for (to = i; to < k->n && !k->phase[to]->scheduled; to++)
            append(&some, k->phase[to]);
        if (some.n > 0) {
            set_others(&some, &all, k, to);
            run(s, &some, aim);
        }
        for (int j = 0; j < some.n; j++)
            append(&all, some.phase[j]);
        for (; to < k->n && k->phase[to]->scheduled; to++)
            append(&all, k->phase[to]);
    }
    *k = all;
}

/* What a pass gives is a program again; it is checked where that costs no user anything. */
void api_run_pass(const Pass *s, Kernel *k, const Aim *aim)
{
    k->p->at = (Place){ 0 }; /* what a pass says is of no place in the text */
    if (arranges(s))
        run_between(s, k, aim);
    else
        run(s, k, aim);
    k->p->stage = s->gives;
    k->p->phase = k->phase;
    k->p->nphase = k->n;
#ifndef NDEBUG
    ir_check(k->p);
#endif
}

/* Passes leave garbage behind: it is collected when there is more of it than of the program.  Where
 * programs are checked it is collected after every pass, so that all tests try that. */
static bool has_garbage(const Prog *p)
{
#ifdef NDEBUG
    return p->arena->total > 2 * p->collected + (8 << 20);
#else
    return p->arena->total > 0;
#endif
}

void api_collect_garbage(Kernel *k)
{
    Prog *p = k->p;

    if (p->collected == 0 || !has_garbage(p))
        return;
    ir_collect(p);
    k->phase = (Node **)p->phase;
    k->n = k->cap = p->nphase;
}

/* Passes take about a millisecond and 100 kB for a statement. */
static void check_length(Prog *p)
{
    int64_t n = 0;

    for (int i = 0; i < p->nstmt; i++)
        n += p->stmt[i]->nassign;
    if (n > API_MOST_STATEMENTS)
        ir_throw(p, ST_LIMIT,
                 "%lld statements: a kernel has at most %d; move some of them to another program",
                 (long long)n, API_MOST_STATEMENTS);
}

/* A program that is written at a later stage begins there. */
Kernel *api_lower_to(Prog *p, const Aim *aim, const Pass *last)
{
    Kernel k = { .p = p, .phase = (Node **)p->phase, .n = p->nphase };

    check_length(p);
    if (last->needs < p->stage)
        ir_throw(p, ST_ARG, "the program is at stage %s already, and %s needs stage %s",
                 ir_stage[p->stage], last->name, ir_stage[last->needs]);
    for (const Pass *s = api_pass; s->name != NULL; s++) {
        if (s->needs == p->stage)
            api_run_pass(s, &k, aim);
        api_collect_garbage(&k);
        if (s == last)
            break;
    }
    return arena_copy(p->arena, &k, sizeof k);
}

Kernel *api_passes(Prog *p, const Aim *aim)
{
    const Pass *end = api_pass;

    while (end->name != NULL)
        end++;
    return api_lower_to(p, aim, end);
}
