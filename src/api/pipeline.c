/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The pipeline: from a program over coordinates to the loops that emit/ prints.  It is a table, so
 * that it can be listed, stopped after each pass, started at the stage that a program is written
 * in, and run without any optional pass.  A row says everything about a pass; no other place does.
 */
#include "api/api_int.h"
#include "find/find.h"
#include "lower/lower.h"
#include "sched/step.h"

#include <string.h>

/* A schedule names loops as the program has them. */
static void products(Kernel *k, const Aim *aim)
{
    if (!step_arranges(k->p, aim->sched.text))
        lower_products(k->p, k->p->policy.block);
}

static void transpose(Kernel *k, const Aim *aim)
{
    (void)aim;
    lower_transpose(k->p);
}

static void relayout(Kernel *k, const Aim *aim)
{
    (void)aim;
    lower_relayout(k->p);
}

static void positions(Kernel *k, const Aim *aim)
{
    (void)aim;
    *k = *lower_positions(k->p);
}

static void take_phases(Kernel *k)
{
    k->phase = (Node **)k->p->phase;
    k->n = k->cap = k->p->nphase;
}

static LowerTile tile_of(const Aim *aim)
{
    return (LowerTile){ .unit = &aim->target->unit,
                        .registers = aim->sched.policy.tile,
                        .sweep = aim->sched.policy.sweep };
}

/* A nest that is named gets the registers that it needs, whatever the number for all others. */
static Node *tile_nest(const void *ctx, Prog *p, Node *phase, Node *nest, int rows, int columns)
{
    LowerTile how = tile_of(ctx);

    how.registers = how.unit->registers;
    how.rows = rows;
    how.columns = columns;
    return lower_tensor(p, phase, nest, how);
}

StepTarget api_step_target(const Aim *aim)
{
    return (StepTarget){ .ctx = aim,
                         .init = lower_init_nest,
                         .tile = tile_nest,
                         .levels = aim->target->kind == KIND_WARP,
                         .lanes = lanes_of(&aim->target->unit, T_f32),
                         .parts = aim->target->gpu.parts };
}

static void steps(Kernel *k, const Aim *aim)
{
    StepTarget target = api_step_target(aim);

    step_apply_all(k->p, aim->sched.text, STAGE_POSITIONS, false, &target);
    take_phases(k);
}

static void lanes(Kernel *k, const Aim *aim)
{
    StepTarget target = api_step_target(aim);

    step_apply_all(k->p, aim->sched.text, STAGE_LOOPS, false, &target);
    step_fit_lanes(k->p, &aim->target->unit);
    take_phases(k);
}

const char *api_find_levels(Prog *p, const Aim *aim)
{
    StepTarget target = api_step_target(aim);
    FindTarget at = { &target, &aim->target->unit };

    step_apply_all(p, aim->sched.text, STAGE_LOOPS, true, &target);
    return find_levels(p, &at);
}

/* Who runs what: the lines of the schedule and, for phases that it does not name, what the finder
 * writes, which is read and applied as any schedule is. */
static void levels(Kernel *k, const Aim *aim)
{
    StepTarget target = api_step_target(aim);

    step_apply_all(k->p, api_find_levels(k->p, aim), STAGE_LOOPS, true, &target);
    if (!target.parts)
        step_whole_warps(k->p, &aim->target->unit);
    take_phases(k);
}

/* The passes of the walk of lower_factor, in the order of the table and of its bits. */
static void factor(Kernel *k, const Aim *aim)
{
    LowerTile how = tile_of(aim);
    const Pass *s = api_pass;

    while ((s->flags & PASS_JOINT) == 0)
        s++;
    for (unsigned edit = EDIT_SWEEP; edit <= EDIT_FACTOR; edit <<= 1, s++)
        if (aim->skip >> (s - api_pass) & 1)
            how.without |= edit;
    lower_factor(k, how);
}

static void accumulate(Kernel *k, const Aim *aim)
{
    lower_accumulate(k, tile_of(aim));
}

static void block_rows(Kernel *k, const Aim *aim)
{
    lower_block_rows(k, tile_of(aim));
}

static void batch(Kernel *k, const Aim *aim)
{
    lower_batch(k, &aim->target->unit);
}

static void panel(Kernel *k, const Aim *aim)
{
    lower_panel(k, aim->sched.policy.panel, aim->sched.policy.pack);
}

static void vectorize(Kernel *k, const Aim *aim)
{
    lower_vectorize(k, &aim->target->unit);
}

static void vectorize_outer(Kernel *k, const Aim *aim)
{
    lower_vectorize_outer(k, &aim->target->unit);
}

static void prefetch_gathers(Kernel *k, const Aim *aim)
{
    lower_prefetch_gathers(k, aim->sched.policy.ahead);
}

static void prefetch_rows(Kernel *k, const Aim *aim)
{
    lower_prefetch_rows(k, aim->sched.policy.ahead);
}

static void stream(Kernel *k, const Aim *aim)
{
    lower_stream(k, aim->sched.policy.stream);
}

static void jam(Kernel *k, const Aim *aim)
{
    if (aim->sched.policy.jam)
        lower_jam(k);
}

static void compensate(Kernel *k, const Aim *aim)
{
    if (aim->sched.policy.compensate)
        lower_compensate(k, &aim->target->unit);
}

static void formats(Kernel *k, const Aim *aim)
{
    api_formats(k->p, aim->sched.text);
}

/* Passes that need nothing but the loops. */
#define PLAIN(pass)                             \
    static void pass(Kernel *k, const Aim *aim) \
    {                                           \
        (void)aim;                              \
        lower_##pass(k);                        \
    }
PLAIN(unroll)
PLAIN(fuse_entries)
PLAIN(split_sums)
PLAIN(flatten)
PLAIN(hoist)
PLAIN(gallop)
PLAIN(hash)
PLAIN(fuse_sums)
PLAIN(accumulate_outer)
PLAIN(init)
PLAIN(fuse_straight)
PLAIN(combine)
PLAIN(fuse_rows)
PLAIN(cse)
PLAIN(barriers)

/* A row: the name; the stages that the pass takes and gives; the properties that it needs and
 * gives; flags; the kinds of target that run it; what it does.  `weft list passes` prints all of
 * it, so that properties and flags are also text. */
enum {
#define BIT(name, note) name = 1u << PROPERTY_##name,
    PASS_PROPERTIES(BIT)
#undef BIT
        REQUIRED = 0,
    OPTIONAL = PASS_OPTIONAL,
    ARRANGES = PASS_ARRANGES,
    PLANNED = PASS_PLANNED,
    REORDERS = PASS_REORDERS,
    JOINT = PASS_JOINT,
    NONE = 0,
    CPU = 1 << KIND_CPU,
    WARP = 1 << KIND_WARP,
    EVERY = CPU | WARP
};
#define ROW(name, from, to, needs, gives, flags, kinds, note, run)                           \
    {                                                                                        \
        name, note " (needs " #needs "; gives " #gives "; " #flags "; targets: " #kinds ")", \
            STAGE_##from, STAGE_##to, needs, gives, flags, kinds, run                        \
    }

const Pass api_pass[] = {
    ROW("formats", COORDINATES, COORDINATES, NONE, NONE, REQUIRED | PLANNED, EVERY,
        "store the entries of axes in the formats that a schedule names", formats),
    ROW("products", COORDINATES, COORDINATES, NONE, NONE, OPTIONAL, EVERY,
        "give each gradient that is a product of blocks a nest in the order of tiles", products),
    ROW("transpose", COORDINATES, COORDINATES, NONE, NONE, OPTIONAL | PLANNED | REORDERS, EVERY,
        "turn scatters through a coordinate into sums over the rows of a transpose", transpose),
    ROW("relayout", COORDINATES, COORDINATES, NONE, NONE, OPTIONAL, EVERY,
        "copy small operands with the last dimension of the output last, and run it innermost",
        relayout),
    ROW("positions", COORDINATES, POSITIONS, NONE, NONE, REQUIRED, EVERY,
        "turn coordinates into loops over stored entries", positions),
    ROW("steps", POSITIONS, POSITIONS, NONE, ARRANGED, REQUIRED, EVERY,
        "apply the lines of the schedule that arrange loops", steps),
    ROW("unroll", POSITIONS, POSITIONS, ARRANGED, NONE, OPTIONAL, EVERY,
        "turn loops over constant relations into straight-line code", unroll),
    ROW("fuse_entries", POSITIONS, POSITIONS, ARRANGED, CONSUMED, OPTIONAL | ARRANGES, EVERY,
        "fuse the readers of a per-edge temporary into the phase that computes it", fuse_entries),
    ROW("split_sums", POSITIONS, POSITIONS, ARRANGED | CONSUMED, NONE,
        OPTIONAL | ARRANGES | PLANNED | REORDERS, EVERY,
        "split long rows, total sums and scatters into chunks for threads", split_sums),
    ROW("flatten", POSITIONS, LOOPS, NONE, FLAT, REQUIRED, EVERY,
        "give each element one flat index", flatten),
    ROW("fold", LOOPS, LOOPS, FLAT, NONE, OPTIONAL, EVERY,
        "unroll again, where flat indices decide more", unroll),
    ROW("hoist", LOOPS, LOOPS, FLAT, HOISTED, OPTIONAL, EVERY,
        "test and search once, before the loop that does not change the outcome", hoist),
    ROW("gallop", LOOPS, LOOPS, FLAT | HOISTED, NONE, OPTIONAL, EVERY,
        "continue a search for ascending coordinates from where it ended", gallop),
    ROW("hash", LOOPS, LOOPS, FLAT | HOISTED, NONE, OPTIONAL | PLANNED, EVERY,
        "look up unordered entries in a hash table of the plan", hash),
    ROW("lanes", LOOPS, LOOPS, FLAT, VECTOR_STEPS, REQUIRED, EVERY,
        "apply the lines of the schedule that run loops in lanes", lanes),
    ROW("fuse_sums", LOOPS, LOOPS, FLAT | VECTOR_STEPS, FUSED, OPTIONAL | ARRANGES, EVERY,
        "fuse phases of sums over one range", fuse_sums),
    ROW("sweep", LOOPS, LOOPS, FLAT | FUSED, NONE, OPTIONAL | ARRANGES | REORDERS | JOINT, EVERY,
        "process the edges of a row in tiles while its sums are in registers", factor),
    ROW("consume", LOOPS, LOOPS, FLAT | FUSED | CONSUMED, NONE,
        OPTIONAL | ARRANGES | REORDERS | JOINT, EVERY,
        "process edges in tiles whose products use up per-edge rows in scratch", factor),
    ROW("recompute", LOOPS, LOOPS, FLAT | FUSED | CONSUMED, NONE,
        OPTIONAL | ARRANGES | REORDERS | JOINT, EVERY,
        "compute rows of per-edge temporaries in the tiles that read them", factor),
    ROW("interchange", LOOPS, LOOPS, FLAT | FUSED, NONE, OPTIONAL | ARRANGES | REORDERS | JOINT,
        EVERY, "move the loop of lanes out of a loop of sums, which stay in registers", factor),
    ROW("factor", LOOPS, LOOPS, FLAT | FUSED, FACTORED, OPTIONAL | ARRANGES | REORDERS, EVERY,
        "fuse loops of sums of products and factor out common terms", factor),
    ROW("accumulate", LOOPS, LOOPS, FLAT | FACTORED, REGISTERS, OPTIONAL | ARRANGES | REORDERS,
        EVERY, "keep sums in registers while loops add to them", accumulate),
    ROW("accumulate_outer", LOOPS, LOOPS, FLAT | FACTORED, NONE, OPTIONAL | ARRANGES, EVERY,
        "keep the sum of a loop around others in a register", accumulate_outer),
    ROW("init", LOOPS, LOOPS, FLAT | FACTORED | REGISTERS, INIT_PLACED, REQUIRED, EVERY,
        "place initial values in registers, in first stores, or in loops of their own", init),
    ROW("batch", LOOPS, LOOPS, FLAT | INIT_PLACED, NONE, OPTIONAL | ARRANGES, CPU,
        "compute scalars of several iterations at once", batch),
    ROW("block_rows", LOOPS, LOOPS, FLAT | REGISTERS, NONE, OPTIONAL | ARRANGES, EVERY,
        "block rows that share operands in registers", block_rows),
    ROW("panel", LOOPS, LOOPS, FLAT | REGISTERS, NONE, OPTIONAL | ARRANGES, CPU,
        "process a panel of columns of all rows before the next panel", panel),
    ROW("vectorize", LOOPS, LOOPS, FLAT | VECTOR_STEPS, LANES, OPTIONAL | ARRANGES | REORDERS,
        EVERY, "run innermost loops in lanes", vectorize),
    ROW("fuse_straight", LOOPS, LOOPS, FLAT | LANES, FEW, OPTIONAL | ARRANGES, EVERY,
        "fuse straight-line phases over one range", fuse_straight),
    ROW("combine", LOOPS, LOOPS, FLAT, NONE, OPTIONAL | REORDERS, EVERY,
        "add the terms of one element in straight-line code before its store", combine),
    ROW("vectorize_outer", LOOPS, LOOPS, FLAT | FEW, NONE, OPTIONAL | ARRANGES, CPU,
        "run the iterations of straight-line phases in lanes", vectorize_outer),
    ROW("fuse_rows", LOOPS, LOOPS, FLAT | LANES, ROWS_FUSED, OPTIONAL, CPU,
        "fuse phases that share rows of a temporary or long rows of edges", fuse_rows),
    ROW("prefetch_gathers", LOOPS, LOOPS, FLAT | LANES | ROWS_FUSED, NONE, OPTIONAL | ARRANGES, CPU,
        "prefetch rows that later entries gather", prefetch_gathers),
    ROW("prefetch_rows", LOOPS, LOOPS, FLAT | LANES | ROWS_FUSED, NONE, OPTIONAL | ARRANGES, CPU,
        "prefetch the pieces of later rows", prefetch_rows),
    ROW("stream", LOOPS, LOOPS, FLAT | LANES, NONE, OPTIONAL, CPU,
        "store write-only results by non-temporal stores", stream),
    ROW("jam", LOOPS, LOOPS, FLAT | LANES, NONE, OPTIONAL | ARRANGES, CPU,
        "unroll and jam loops with sums over lanes", jam),
    ROW("compensate", LOOPS, LOOPS, FLAT | LANES, NONE, OPTIONAL | REORDERS, EVERY,
        "add the rounding errors of sums over entries at their end", compensate),
    ROW("cse", LOOPS, LOOPS, FLAT | LANES, NONE, OPTIONAL, EVERY,
        "compute common subexpressions once", cse),
    ROW("levels", LOOPS, LOOPS, FLAT | LANES, NONE, OPTIONAL, WARP,
        "give lanes of warps iterations, neighbours and turns, by lines of the schedule", levels),
    ROW("barriers", LOOPS, LOOPS, FLAT | LANES, NONE, REQUIRED, WARP,
        "separate accesses of different lanes to one element", barriers),
    { .name = NULL },
};
#undef ROW

Aim api_aim_at(Err *err, const Target *target, const char *sched)
{
    Aim aim = api_aim(target);

    if (sched != NULL)
        sched_parse(err, sched, &aim.sched);
    return aim;
}

Prog *api_trees(weft_ctx *ctx, const Prog *p)
{
    arena_free(&ctx->trees); /* of a lowering that failed in this call */
    return ir_copy_alone(&ctx->scratch, &ctx->trees, p);
}

const Pass *api_pass_named(const char *name, size_t n)
{
    for (const Pass *s = api_pass; s->name != NULL; s++)
        if (strlen(s->name) == n && memcmp(s->name, name, n) == 0)
            return s;
    return NULL;
}

const Pass *api_find_pass(Prog *p, const char *name)
{
    const Pass *s = api_pass_named(name, strlen(name));

    if (s == NULL)
        ir_throw(p, ST_ARG, "there is no pass %s; `weft list passes` shows them", name);
    return s;
}

static const char *property_name(unsigned bits)
{
    static const char *const name[] = {
#define NAME(name, note) #name,
        PASS_PROPERTIES(NAME)
#undef NAME
    };
    int i = 0;

    while (i < PROPERTIES - 1 && (bits >> i & 1) == 0)
        i++;
    return name[i];
}

const Pass *api_misplaced(const Pass *table, const char **property)
{
    unsigned given = 0;

    for (; table->name != NULL; table++) {
        if ((table->needs & ~given) != 0) {
            *property = property_name(table->needs & ~given);
            return table;
        }
        given |= table->gives;
    }
    return NULL;
}

static _Noreturn void refuse_skip(weft_ctx *ctx, const Pass *s, const char *name, size_t n)
{
    Text list = { .arena = &ctx->scratch };

    text_put(&list, "", 0);
    for (const Pass *o = api_pass; o->name != NULL; o++)
        if (o->flags & PASS_OPTIONAL)
            text_f(&list, "%s%s", list.n > 0 ? ", " : "", o->name);
    err_throw(&ctx->err, ST_ARG, "%s %.*s; these can be skipped: %s",
              s == NULL ? "there is no pass" : "no kernel can do without pass",
              n > 40 ? 40 : (int)n, name, list.s);
}

uint64_t api_skipped(weft_ctx *ctx, const char *names)
{
    uint64_t skip = 0;

    for (; names != NULL && names[strspn(names, ", ")] != 0; names += strcspn(names, ", ")) {
        const Pass *s;
        size_t n;

        names += strspn(names, ", ");
        n = strcspn(names, ", ");
        s = api_pass_named(names, n);
        if (s == NULL || (s->flags & PASS_OPTIONAL) == 0)
            refuse_skip(ctx, s, names, n);
        skip |= (uint64_t)1 << (s - api_pass);
    }
    return skip;
}

static const char *skip_names(weft_ctx *ctx)
{
    return ctx->os->getenv(ctx->os, "WEFT_SKIP");
}

bool api_skips(weft_ctx *ctx)
{
    const char *names = skip_names(ctx);

    return names != NULL && names[strspn(names, ", ")] != 0;
}

Aim api_aim_of(weft_ctx *ctx, const Target *target, const char *sched)
{
    Aim aim = api_aim_at(&ctx->err, target, sched);

    aim.skip = api_skipped(ctx, skip_names(ctx));
    return aim;
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
            s->run(&some, aim);
        }
        for (int j = 0; j < some.n; j++)
            append(&all, some.phase[j]);
        for (; to < k->n && k->phase[to]->scheduled; to++)
            append(&all, k->phase[to]);
    }
    *k = all;
}

/* A pass that ends a joint walk is left out when all passes of the walk are. */
static bool is_skipped(const Pass *s, const Aim *aim)
{
    bool skipped = (aim->skip >> (s - api_pass) & 1) != 0;

    for (const Pass *o = s; o > api_pass && (o[-1].flags & PASS_JOINT) && skipped; o--)
        skipped = (aim->skip >> (o - 1 - api_pass) & 1) != 0;
    return skipped || (s->flags & PASS_JOINT) || (s->kinds >> aim->target->kind & 1) == 0;
}

/* A joint pass as the last one: the walk is done without the passes that come after it. */
static void run_joint(const Pass *s, Kernel *k, const Aim *aim)
{
    Aim only = *aim;

    while (s->flags & PASS_JOINT) {
        s++;
        only.skip |= (uint64_t)1 << (s - api_pass);
    }
    api_run_pass(s, k, &only);
}

/* A pass needs the properties that passes before it have given. */
static void check_order(const Pass *s, Prog *p)
{
    if ((s->needs & ~p->properties) != 0)
        ir_throw(p, ST_CHECK, "pass %s needs %s, which no pass before it has given", s->name,
                 property_name(s->needs & ~p->properties));
}

/* What a pass gives is a program again; it is checked where that costs no user anything. */
void api_run_pass(const Pass *s, Kernel *k, const Aim *aim)
{
    k->p->at = (Place){ 0 }; /* what a pass says is of no place in the text */
    k->p->policy = aim->sched.policy;
    check_order(s, k->p);
    if (!is_skipped(s, aim))
        k->p->threads = false; /* a pass may move what barriers stood between */
    if (is_skipped(s, aim))
        ;
    else if (s->flags & PASS_ARRANGES)
        run_between(s, k, aim);
    else
        s->run(k, aim);
    loop_settle(k->p, k->phase, k->n);
    k->p->properties |= s->gives;
    k->p->stage = s->to;
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
    if (n > LIMIT_STATEMENTS)
        ir_throw(p, ST_LIMIT,
                 "%lld statements: a kernel has at most %d; move some of them to another program",
                 (long long)n, LIMIT_STATEMENTS);
}

/* A program that is written at a later stage begins there. */
Kernel *api_lower_to(Prog *p, const Aim *aim, const Pass *last)
{
    Kernel k = { .p = p, .phase = (Node **)p->phase, .n = p->nphase };

    check_length(p);
    if (last->name != NULL && last->from < p->stage)
        ir_throw(p, ST_ARG, "the program is at stage %s already, and %s needs stage %s",
                 ir_stage[p->stage], last->name, ir_stage[last->from]);
    for (const Pass *s = api_pass; s->name != NULL; s++) {
        if (s->from == p->stage)
            api_run_pass(s, &k, aim);
        else if (s->from < p->stage) /* done before the text was written */
            p->properties |= s->gives;
        api_collect_garbage(&k);
        if (s == last)
            break;
    }
    if (last->flags & PASS_JOINT)
        run_joint(last, &k, aim);
    return arena_copy(p->arena, &k, sizeof k);
}

Kernel *api_passes(Prog *p, const Aim *aim)
{
    const Pass *end = api_pass;

    while (end->name != NULL)
        end++;
    return api_lower_to(p, aim, end);
}
