/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The schedule that the model thinks best for a program, its sizes and its structure.  Only what
 * changes no bit of a result is chosen here. */
#include "api/api_int.h"
#include "cost/cost.h"

#include <math.h>

/* Below this many bytes nothing that is gathered is far away. */
#define NEAR ((int64_t)8 << 20)
/* What has to be gained on the default, as a model may be wrong; and how often a row is to be read
 * that a copy of all rows may pay. */
#define GAIN 0.75
#define REUSE 16

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
        if (l.n >= NEAR / ir_type[b->type].bytes)
            return true;
    }
    return false;
}

static CostLoops loops_of(const Isa *isa, const Sched *s)
{
    return (CostLoops){ .bytes = isa->bytes,
                        .registers = s->step[SCHED_TILE],
                        .ahead = s->step[SCHED_AHEAD],
                        .panel = s->step[SCHED_PANEL],
                        .pack = s->step[SCHED_PACK] };
}

double api_predict(const Isa *isa, const Sched *s, const CostShape *shape, const Machine *m,
                   int threads)
{
    CostLoops l = loops_of(isa, s);

    return cost_loops(shape, m, &l, threads);
}

const char *api_pick(weft_ctx *ctx, const Prog *p, const Env *env, int threads)
{
    static const int width[] = { 64, 128, 256, 512 };
    const Isa *isa = api_isa(ctx);
    Sched s = sched_default(isa->registers, isa->bytes), best = s;
    Arena *arena = &ctx->scratch;
    Text text = { .arena = arena };
    const Machine *m;
    CostShape shape;
    double least;

    if (!is_known(p) || !has_far(arena, p, env))
        return NULL;
    cost_shape(arena, ir_copy(arena, p), env, NULL, &shape);
    if (shape.ngather != 1 || shape.gather[0].write ||
        shape.gather[0].count * shape.gather[0].row < REUSE * shape.gather[0].table)
        return NULL;
    m = api_machine_known(ctx);
    cost_shape(arena, ir_copy(arena, p), env, m, &shape);
    least = GAIN * api_predict(isa, &s, &shape, m, threads);
    s.step[SCHED_PACK] = 1;
    for (size_t i = 0; i < sizeof width / sizeof *width; i++) {
        double seconds;

        s.step[SCHED_PANEL] = width[i];
        seconds = api_predict(isa, &s, &shape, m, threads);
        if (seconds < least) {
            least = seconds;
            best = s;
        }
    }
    if (best.step[SCHED_PANEL] == 0)
        return NULL;
    sched_print(&text, &best);
    return text.s;
}
