/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Runs a program and reads back its results.  The library computes in its own memory, and writes
 * the caller's arrays only when no error can occur any more. */
#include "api/api_int.h"
#include "interp/interp.h"

/* Everything but the caller's own inputs can be read back. */
static bool is_ours(const weft_args *args, const Env *env, int i)
{
    const Arg *a = &args->body->arg[i];

    if (a->role == WEFT_INPUT)
        return args->bound[i].how != HOW_USER && api_place(env, a)->data != NULL;
    return true;
}

static void describe(weft_args *args, Arena *arena, const Env *env, int i, weft_tensor *out)
{
    const Arg *a = &args->body->arg[i];
    int64_t *shape = arena_array(arena, a->ndim, sizeof *shape);

    *out = (weft_tensor){ .type = api_type_of[a->type], .ndim = a->ndim, .shape = shape };
    if (a->kind == ARG_SIZE) {
        out->data = &env->size[a->size->id];
        return;
    }
    out->data = api_place(env, a)->data;
    out->type = api_type_of[api_place(env, a)->type];
    api_shape(arena, args->body->prog, env, a, shape);
}

Result *api_collect(weft_args *args, Arena *arena, Env *env)
{
    Result *r = arena_alloc(arena, sizeof *r);
    int n = args->body->narg;

    *r = (Result){ .env = env };
    r->tensor = arena_array(arena, n, sizeof *r->tensor);
    for (int i = 0; i < n; i++)
        if (is_ours(args, env, i))
            describe(args, arena, env, i, &r->tensor[i]);
        else
            r->tensor[i].ndim = -1;
    return r;
}

void api_set_result(weft_args *args, Result *new)
{
    Box *old = args->result != NULL ? args->result->box : NULL;

    args->result = new;
    box_drop(old);
}

void api_run(weft_args *args, Runner *fn, void *with)
{
    weft_ctx *ctx = args->h.ctx;
    Box *box = api_box(ctx);
    Env *env;
    Result *result;

    api_check_overlap(args);
    env = api_env(args, &box->arena, NULL);
    fn(args, box, env, with);
    api_check_shapes(args, env, true);
    result = api_collect(args, &box->arena, env);
    for (int i = 0; i < args->body->narg; i++)
        if (args->bound[i].how == HOW_USER && args->body->arg[i].role != WEFT_INPUT)
            view_scatter(&args->bound[i].view, result->tensor[i].data, NULL);
    result->box = api_keep(ctx);
    api_set_result(args, result);
}

static void interpret(weft_args *args, Box *box, Env *env, void *with)
{
    (void)with;
    interp_run(&box->arena, args->body->prog, env);
}

weft_status weft_run(weft_args *args)
{
    weft_ctx *ctx = api_ctx_of(args, TAG_ARGS);

    API_ENTER(ctx);
    api_run(args, interpret, NULL);
    return api_leave(ctx);
}

static const weft_tensor *result_of(weft_args *args, const Arg *a)
{
    weft_ctx *ctx = args->h.ctx;
    const weft_tensor *t;

    if (args->result == NULL)
        err_throw(&ctx->err, ST_ARG, "%s is not computed yet: run the program first", a->name);
    t = &args->result->tensor[a - args->body->arg];
    if (t->ndim < 0)
        err_throw(&ctx->err, ST_ARG, "%s is your own array: the program reads it only", a->name);
    return t;
}

const weft_tensor *api_result(weft_args *args, const Arg *a)
{
    if (args->bound[a - args->body->arg].how == HOW_DEVICE)
        err_throw(&args->h.ctx->err, ST_ARG, "%s is in the memory of a device: copy it from there",
                  a->name);
    return result_of(args, a);
}

weft_status weft_args_get(weft_args *args, const char *name, weft_tensor *out)
{
    weft_ctx *ctx = api_ctx_of(args, TAG_ARGS);

    API_ENTER(ctx);
    api_need(ctx, out, "out");
    *out = *result_of(args, api_find_arg(ctx, args->body, name));
    return api_leave(ctx);
}
