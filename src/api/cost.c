/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Predicts the cost of a run: joins the arguments of a program, the machine and the model. */
#include "api/api_int.h"
#include "cost/cost.h"

static void estimate(weft_args *args, int threads, weft_cost *out)
{
    weft_ctx *ctx = args->h.ctx;
    const Machine *m = api_machine(ctx, false);
    Arena *arena = &api_box(ctx)->arena;
    Env *env = api_env(args, arena, NULL);
    CostShape s;
    Cost c;

    cost_shape(arena, ir_copy(arena, args->body->prog), env, m, &s);
    c = cost_estimate(&s, m, threads > 0 ? threads : m->threads);
    *out = (weft_cost){ .flops = s.flops[0] + s.flops[1],
                        .read = s.read,
                        .written = s.written,
                        .loads = s.loads,
                        .stores = s.stores,
                        .compute_s = c.compute,
                        .ports_s = c.ports,
                        .stream_s = c.stream,
                        .gather_s = c.gather,
                        .limit_s = c.limit,
                        .predicted_s = c.seconds };
    for (int i = 0; i < s.ngather; i++)
        out->gathered += s.gather[i].count * s.gather[i].row * (s.gather[i].write ? 2 : 1);
}

weft_status weft_args_cost(weft_args *args, int threads, weft_cost *out)
{
    weft_ctx *ctx = api_ctx_of(args, TAG_ARGS);

    API_ENTER(ctx);
    api_need(ctx, out, "out");
    estimate(args, threads, out);
    return api_leave(ctx);
}

static double predict(weft_args *args, const char *text, int threads)
{
    weft_ctx *ctx = args->h.ctx;
    const Machine *m = api_machine(ctx, false);
    Arena *arena = &api_box(ctx)->arena;
    Env *env = api_env(args, arena, NULL);
    const Target *target = api_target(ctx);
    Sched sched = sched_default(&target->unit);
    CostShape s;

    if (text != NULL)
        sched_parse(&ctx->err, text, &sched);
    cost_shape(arena, ir_copy(arena, args->body->prog), env, m, &s);
    return api_predict(target, &sched, &s, m, threads > 0 ? threads : m->threads);
}

weft_status weft_args_predict(weft_args *args, const char *schedule, int threads, double *seconds)
{
    weft_ctx *ctx = api_ctx_of(args, TAG_ARGS);

    API_ENTER(ctx);
    api_need(ctx, seconds, "seconds");
    *seconds = predict(args, schedule, threads);
    return api_leave(ctx);
}

/* The shape of an array as sizes and structure tell it. */
static void shape(weft_ctx *ctx, weft_args *args, const char *name, int64_t *out)
{
    const Arg *a = api_find_arg(ctx, args->body, name);
    Arena *arena = &api_box(ctx)->arena;

    if (a->kind == ARG_SIZE)
        err_throw(&ctx->err, ST_ARG, "%s is a size and has no shape", name);
    if (api_is_built(a))
        err_throw(&ctx->err, ST_ARG, "the shape of %s is known after a run only", name);
    api_shape(arena, args->body->prog, api_env_of_shapes(args, arena), a, out);
}

weft_status weft_args_shape(weft_args *args, const char *name, int64_t *out)
{
    weft_ctx *ctx = api_ctx_of(args, TAG_ARGS);

    API_ENTER(ctx);
    api_need(ctx, out, "out");
    shape(ctx, args, name, out);
    return api_leave(ctx);
}
