/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Runs kernels: by machine code, as the plan says, or by the interpreter, if there is no machine
 * code and the problem is small. */
#include "api/api_int.h"
#include "interp/interp.h"
#include "ir/loop.h"
#include "run/run.h"

#include <time.h>

/* A second or so of interpreting. */
#define LIMIT_WORK 1e8

static bool has_built(const Axis *a)
{
    return a != NULL && (a->extent == X_BUILT || has_built(a->parent));
}

/* How often the body of a statement runs, if children are as many under every parent.  What a built
 * axis will have is not known, and left out. */
static double instances(const Prog *p, const Env *env, const Stmt *s)
{
    double n = 1;

    for (int i = 0; i < s->nbind; i++) {
        const Axis *a = s->bind[i]->axis;
        double up = 1;

        if (has_built(a))
            continue;
        if (a->parent != NULL)
            up = (double)ir_axis_total(p, env, a->parent);
        n *= (double)ir_axis_total(p, env, a) / (up > 1 ? up : 1);
    }
    return n;
}

double api_work(const Prog *p, const Env *env)
{
    double sum = 0;

    for (int i = 0; i < p->nstmt; i++) {
        const Stmt *s = p->stmt[i];
        double nodes = 0;

        for (int k = 0; k < s->nassign; k++)
            nodes += 1 + (double)s->assign[k].value->tree;
        sum += nodes * instances(p, env, s);
    }
    return sum;
}

static void interpret(weft_args *args, Box *box, Env *env, void *with)
{
    const weft_kernel *k = with;
    const Prog *p = args->body->prog;
    double work = api_work(p, env);

    if (work > LIMIT_WORK)
        err_throw(
            &args->h.ctx->err, ST_LIMIT,
            "%s would be interpreted, and this run has about %.1g scalar operations, more than "
            "%.0g. The reason: %s. weft_run (weft run -t interp) goes on, however long it takes",
            p->name, work, LIMIT_WORK, kernel_why(k));
    interp_run(&box->arena, p, env);
}

/* A kernel tells that something is wrong, the interpreter tells what.  It may not find it when an
 * inout has changed meanwhile, and is not asked when that would take long. */
static _Noreturn void explain(weft_args *args, int64_t fault)
{
    weft_ctx *ctx = args->h.ctx;
    const Prog *p = args->body->prog;
    Arena *arena = &api_box(ctx)->arena;
    Env *env;
    bool here = true; /* the interpreter reads the caller's arrays */

    if (fault == RUN_NOMEM)
        err_throw(&ctx->err, ST_NOMEM, "out of memory for the scratch of a kernel");
    for (int i = 0; i < args->body->narg && here; i++)
        here = args->bound[i].how != HOW_DEVICE;
    env = here ? api_env(args, arena, NULL) : NULL;
    if (here && api_work(p, env) <= LIMIT_WORK)
        interp_run(arena, p, env);
    err_throw(&ctx->err, ST_RUN, "%s: %s", p->name, loop_fault((Fault)fault));
}

Pool *api_pool(weft_ctx *ctx)
{
    if (ctx->pool == NULL)
        ctx->pool = pool_new(ctx->os, &ctx->err, ctx->threads);
    return ctx->pool;
}

static int64_t run_plan(weft_kernel *k, weft_args *args, Pool *pool)
{
    const Os *os = k->h.ctx->os;
    bool cold = k->busy < COST_HOT;
    int64_t begin = cold ? os->clock(os, CLOCK_MONOTONIC) : 0, fault = api_run_plan(args, pool);

    if (cold)
        k->busy += os->clock(os, CLOCK_MONOTONIC) - begin;
    return fault;
}

static void run_code(weft_kernel *k, weft_args *args, int64_t begin)
{
    Pool *pool = api_pool(args->h.ctx);
    bool made;
    int64_t fault;

    api_plan(k, args, pool, &made);
    fault = run_plan(k, args, pool);
    if (fault != 0)
        explain(args, fault);
    api_say_run(k, args, made, pool_threads(pool), begin);
}

void api_run_kernel(weft_kernel *k, weft_args *args)
{
    weft_ctx *ctx = k->h.ctx;
    int64_t begin = ctx->verbose == NULL ? 0 : ctx->os->clock(ctx->os, CLOCK_MONOTONIC);

    if (kernel_why(k) == NULL) {
        run_code(k, args, begin);
        return;
    }
    api_run(args, interpret, k);
    api_say_run(k, args, false, 1, begin);
}

void api_check_args(weft_ctx *ctx, const weft_kernel *k, const weft_args *args)
{
    if (api_ctx_of(args, TAG_ARGS) != ctx)
        err_throw(&ctx->err, ST_ARG, "the arguments are not of this context");
    if (args->body != k->body)
        err_throw(&ctx->err, ST_ARG, "the arguments are of another program than the kernel");
}

weft_status weft_kernel_plan(weft_kernel *kernel, weft_args *args)
{
    weft_ctx *ctx = api_ctx_of(kernel, TAG_KERNEL);
    bool made;

    API_ENTER(ctx);
    api_check_args(ctx, kernel, args);
    if (kernel_why(kernel) == NULL)
        api_plan(kernel, args, api_pool(ctx), &made);
    return api_leave(ctx);
}

weft_status weft_kernel_run(weft_kernel *kernel, weft_args *args)
{
    weft_ctx *ctx = api_ctx_of(kernel, TAG_KERNEL);

    API_ENTER(ctx);
    api_check_args(ctx, kernel, args);
    api_run_kernel(kernel, args);
    return api_leave(ctx);
}
