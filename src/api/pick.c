/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Picks the schedule with the lowest predicted time for a program, its sizes and its structure.  It
 * chooses only among schedules with the same bits of results. */
#include "api/api_int.h"
#include "cost/cost.h"

#include <math.h>

static bool is_known(const Prog *p)
{
    for (int i = 0; i < p->naxis; i++)
        if (p->axis[i]->extent == X_BUILT)
            return false;
    return p->stage == STAGE_COORDINATES;
}

static bool has_far(Arena *arena, const Prog *p, const Env *env)
{
    Layout l;

    for (int i = 0; i < p->nbuf; i++) {
        const Buf *b = p->buf[i];

        if (b->kind != B_ARG || b->written || b->nfull < 2)
            continue;
        ir_layout(arena, p, env, b, &l);
        if (l.n >= COST_FAR / ir_type[b->type].bytes)
            return true;
    }
    return false;
}

static CostLoops loops_of(const Target *target, const Sched *s)
{
    return (CostLoops){ .unit = &target->unit,
                        .registers = s->policy.tile,
                        .ahead = s->policy.ahead,
                        .panel = s->policy.panel,
                        .pack = s->policy.pack };
}

double api_predict(const Target *target, const Sched *s, const CostShape *shape, const Machine *m,
                   int threads)
{
    CostLoops l = loops_of(target, s);

    return cost_loops(shape, m, &l, threads);
}

/* A table that is far, and read so often that a copy of it pays. */
static bool can_pack(Arena *arena, const Prog *p, const Env *env, const CostShape *shape)
{
    const CostGather *g = &shape->gather[0];

    return has_far(arena, p, env) && shape->ngather == 1 && !g->write &&
           g->count * g->row >= COST_REUSE * g->table;
}

static Sched pick_panel(const Target *target, const CostShape *shape, const Machine *m, int threads)
{
    static const int width[] = { 64, 128, 256, 512 };
    Sched s = sched_default(&target->unit), best = s;
    double least = COST_GAIN * api_predict(target, &s, shape, m, threads);

    s.policy.pack = 1;
    for (size_t i = 0; i < sizeof width / sizeof *width; i++) {
        double seconds;

        s.policy.panel = width[i];
        seconds = api_predict(target, &s, shape, m, threads);
        if (seconds < least) {
            least = seconds;
            best = s;
        }
    }
    return best;
}

/* What is near need not be asked for early. */
static Sched pick_ahead(const Target *target, const CostShape *shape, const Machine *m, int threads)
{
    Sched s = sched_default(&target->unit), none = s;

    none.policy.ahead = 0;
    return api_predict(target, &none, shape, m, threads) <
                   COST_NO_HINTS * api_predict(target, &s, shape, m, threads)
               ? none
               : s;
}

const char *api_pick(weft_ctx *ctx, const Prog *p, const Env *env, int threads, bool hot)
{
    const Target *target = api_target(ctx);
    Sched plain = sched_default(&target->unit), best = plain;
    Arena *arena = &ctx->scratch;
    Text text = { .arena = arena };
    const Machine *m;
    CostShape shape;
    bool pack;

    if (!is_known(p))
        return NULL;
    cost_shape(arena, ir_copy(arena, p), env, NULL, &shape);
    pack = can_pack(arena, p, env, &shape);
    if (!pack && !(hot && shape.ngather > 0))
        return NULL;
    m = api_machine_known(ctx);
    cost_shape(arena, ir_copy(arena, p), env, m, &shape);
    if (pack)
        best = pick_panel(target, &shape, m, threads);
    if (hot && best.policy.panel == 0)
        best = pick_ahead(target, &shape, m, threads);
    if (best.policy.panel > 0)
        text_f(&text, "panel %d; pack 1", best.policy.panel);
    else if (best.policy.ahead != plain.policy.ahead)
        text_f(&text, "ahead %d", best.policy.ahead);
    return text.s;
}
