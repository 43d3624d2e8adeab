/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The functions of weft.h that make arguments and bind sizes and arrays to them. */
#include "api/api_int.h"

#include <string.h>

void args_drop(weft_args *args)
{
    for (int i = 0; i < args->body->narg; i++)
        box_drop(args->bound[i].box);
    plan_drop(args);
    api_set_result(args, NULL);
    box_drop(args->printed);
    body_drop(args->body);
    box_drop(args->box);
}

static weft_args *new_args(weft_ctx *ctx, Body *body)
{
    Arena *arena;
    Bound *bound;
    int64_t *size;
    weft_args *args;

    body_check(body);
    arena = &api_box(ctx)->arena;
    bound = arena_array(arena, body->narg, sizeof *bound);
    size = arena_array(arena, body->prog->nsize, sizeof *size);
    for (int i = 0; i < body->prog->nsize; i++)
        size[i] = -1;
    args = api_handle_new(ctx, TAG_ARGS, sizeof *args);
    args->body = body;
    args->box = api_keep(ctx);
    args->bound = bound;
    args->size = size;
    body->box->refs++;
    return args;
}

weft_status weft_args_new(weft_prog *prog, weft_args **out)
{
    weft_ctx *ctx = api_ctx_of(prog, TAG_PROG);

    if (out != NULL)
        *out = NULL;
    API_ENTER(ctx);
    api_need(ctx, out, "out");
    *out = new_args(ctx, prog->body);
    return api_leave(ctx);
}

void weft_args_free(weft_args *args)
{
    if (api_ctx_of(args, TAG_ARGS) != NULL)
        api_handle_free(args);
}

weft_status weft_args_size(weft_args *args, const char *name, int64_t value)
{
    weft_ctx *ctx = api_ctx_of(args, TAG_ARGS);
    const Arg *a;

    API_ENTER(ctx);
    a = api_find_arg(ctx, args->body, name);
    if (a->kind != ARG_SIZE)
        err_throw(&ctx->err, ST_ARG, "%s is an array and not a size", name);
    if (value < 0)
        err_throw(&ctx->err, ST_ARG, "the size %s cannot be %lld", name, (long long)value);
    args->shapes += args->size[a->size->id] != value;
    args->size[a->size->id] = value;
    return api_leave(ctx);
}

static void check_type(weft_ctx *ctx, const Arg *a, Type type)
{
    bool structure = a->kind == ARG_START || a->kind == ARG_COORD;

    if (structure && a->role == WEFT_INPUT && type != T_i32 && type != T_i64)
        err_throw(&ctx->err, ST_ARG, "%s is an array of i32 or i64, and %s was given", a->name,
                  ir_type[type].name);
    if ((!structure || a->role == WEFT_OUTPUT) && type != a->type)
        err_throw(&ctx->err, ST_ARG, "%s is an array of %s, and %s was given; convert it", a->name,
                  ir_type[a->type].name, ir_type[type].name);
}

/* Does an array take the place of another in a way that changes nothing but its elements? */
static bool is_alike(const Bound *a, const Bound *b)
{
    const View *v = &a->view, *w = &b->view;

    return a->how == b->how && (a->how == HOW_USER || a->how == HOW_DEVICE) && v->type == w->type &&
           v->plain == w->plain && v->ndim == w->ndim &&
           (v->plain || memcmp(v->stride, w->stride, (size_t)v->ndim * sizeof *v->stride) == 0) &&
           memcmp(v->shape, w->shape, (size_t)v->ndim * sizeof *v->shape) == 0;
}

void api_bind(weft_args *args, const Arg *a, const Bound *new)
{
    weft_ctx *ctx = args->h.ctx;
    Bound *b = &args->bound[a - args->body->arg];
    bool held = b->held;

    if (new->how == HOW_USER || new->how == HOW_FILE || new->how == HOW_DEVICE) {
        check_type(ctx, a, new->view.type);
        if (new->view.ndim != a->ndim)
            err_throw(&ctx->err, ST_BIND, "%s has %d dimension%s, and the array given has %d",
                      a->name, a->ndim, a->ndim == 1 ? "" : "s", new->view.ndim);
    }
    args->shapes += !is_alike(b, new);
    args->fresh = true;
    if (b->box != NULL && args->result != NULL) /* the content of a file goes with its binding */
        args->result->tensor[a - args->body->arg].ndim = -1;
    box_drop(b->box);
    args->holds += held;
    *b = *new;
    b->held = held;
    b->box = new->how == HOW_FILE || new->how == HOW_MATRIX ? api_keep(ctx) : NULL;
    b->fresh = true;
}

weft_status weft_args_bind(weft_args *args, const char *name, const weft_tensor *tensor)
{
    weft_ctx *ctx = api_ctx_of(args, TAG_ARGS);
    Bound bound = { .how = tensor == NULL ? HOW_NOT : HOW_USER };
    const Arg *a;

    API_ENTER(ctx);
    a = api_find_arg(ctx, args->body, name);
    if (a->kind == ARG_SIZE)
        err_throw(&ctx->err, ST_ARG, "%s is a size: set it with weft_args_size", name);
    if (tensor != NULL)
        api_view(ctx, name, tensor, &bound.view);
    api_bind(args, a, &bound);
    return api_leave(ctx);
}
