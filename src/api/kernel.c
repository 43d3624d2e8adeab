/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Kernels: from a program to machine code.  A kernel is compiled from a copy of the program whose
 * objects have the same ids, so what is known of the one fits the other.  When there is no way to
 * machine code, the kernel interprets.
 *
 * A kernel has variants, by what is known when it runs and not before, such as the types of
 * structure arrays.  Each is made when it is first needed, and kept. */
#include "api/api_int.h"
#include "api/device_int.h"
#include "dev/dev.h"
#include "emit/emit.h"
#include "jit/jit.h"
#include "lower/lower.h"

#include <string.h>

enum { LIMIT_SIZES = 8, LIMIT_STRIDES = 16 };

static int64_t size_in(const VariantKey *key, int i)
{
    return key->size == NULL ? 0 : key->size[i];
}

Jit *api_jit(weft_ctx *ctx)
{
    if (ctx->jit == NULL) {
        ctx->jit = jit_new(ctx->os, &ctx->err);
        jit_set_stop(ctx->jit, &ctx->stop);
    }
    return ctx->jit;
}

static void build(weft_kernel *k, Variant *v, JitReport *report)
{
    static const char *const how[] = {
        [JIT_IN_MEMORY] = "memory", [JIT_ON_DISK] = "disk", [JIT_COMPILED] = "compiled"
    };
    weft_ctx *ctx = k->h.ctx;
    Arena *arena = &k->box->arena;
    Text source = { .arena = &ctx->scratch };
    int n;

    v->lowered = kernel_lower(ctx, arena, k->body, &v->key, &source);
    if (is_on_device(v->lowered->target)) {
        v->dev = device_build(ctx, v->lowered, source.s, report);
        v->how = how[report->how];
        v->name = arena_copy(arena, report->key, sizeof report->key);
        return;
    }
    n = v->lowered->info->nphase;
    v->fn = arena_array(arena, n, sizeof *v->fn);
    v->module = jit_get(api_jit(ctx), &ctx->err,
                        kernel_request(&ctx->scratch, v->lowered, &source), report);
    for (int i = 0; i < n; i++) {
        const char *name = v->lowered->info->phase[i].name;

        v->fn[i] = jit_symbol(v->module, name);
        if (v->fn[i] == NULL)
            err_throw(&ctx->err, ST_IO, "the kernel was loaded, but its function %s is gone", name);
    }
    v->how = how[report->how];
    v->name = arena_copy(arena, report->key, sizeof report->key);
}

/* Keeps why there is no machine code, and goes on. */
static void fall_back(weft_kernel *k, Variant *v)
{
    weft_ctx *ctx = k->h.ctx;
    char why[sizeof ctx->err.msg];
    jmp_buf *trap = ctx->err.trap;

    memcpy(why, ctx->err.msg, sizeof why);
    err_clear(&ctx->err);
    ctx->err.trap = trap;
    v->why = arena_copy(&k->box->arena, why, strlen(why) + 1);
}

/* The variant is the kernel's from the start, so that its module has an owner; when this throws it
 * is taken away again. */
static void build_or_fall_back(weft_kernel *k, Variant *v, JitReport *report)
{
    weft_ctx *ctx = k->h.ctx;
    jmp_buf trap, *outer = ctx->err.trap;
    volatile bool again = false;

    ctx->err.trap = &trap;
    if (setjmp(trap) == 0) {
        build(k, v, report);
    } else if (!again && (ctx->err.code == ST_LIMIT || ctx->err.code == ST_IO)) {
        again = true;
        fall_back(k, v);
    } else {
        ctx->err.trap = outer;
        if (v->module != NULL)
            jit_release(v->module);
        dev_module_free(v->dev);
        k->n--;
        err_jump(&ctx->err);
    }
    ctx->err.trap = outer;
}

static const int64_t *const *copy_strides(Arena *arena, const Body *body, const VariantKey *key)
{
    const int64_t **to = arena_array(arena, body->narg, sizeof *to);

    for (int i = 0; i < body->narg && key->stride != NULL; i++)
        if (key->stride[i] != NULL)
            to[i] = arena_copy(arena, key->stride[i], (size_t)body->arg[i].ndim * sizeof **to);
    return key->stride == NULL ? NULL : to;
}

static Variant *add_variant(weft_kernel *k, const VariantKey *key)
{
    Arena *arena = &k->box->arena;
    Variant *v = arena_alloc(arena, sizeof *v);
    JitReport report = { .ms = 0 };

    v->key.index = arena_copy(arena, key->index, (size_t)k->body->narg);
    if (key->size != NULL)
        v->key.size =
            arena_copy(arena, key->size, (size_t)k->body->prog->nsize * sizeof *key->size);
    if (key->sched != NULL)
        v->key.sched = arena_copy(arena, key->sched, strlen(key->sched) + 1);
    v->key.stride = copy_strides(arena, k->body, key);
    k->variant = arena_grow(arena, k->variant, k->n, &k->cap, sizeof *k->variant);
    k->variant[k->n++] = v;
    build_or_fall_back(k, v, &report);
    api_say_compile(k->h.ctx, k, v, &report);
    return v;
}

static bool is_scheduled(const Variant *v, const char *sched)
{
    const char *own = v->key.sched;

    return own == sched || (own != NULL && sched != NULL && strcmp(own, sched) == 0);
}

static const int64_t *strides_in(const VariantKey *key, int i)
{
    return key->stride == NULL ? NULL : key->stride[i];
}

static bool has_strides(const Variant *v, const VariantKey *key, const Body *body)
{
    for (int i = 0; i < body->narg; i++) {
        const int64_t *own = strides_in(&v->key, i), *other = strides_in(key, i);

        if ((own == NULL) != (other == NULL) ||
            (own != NULL &&
             memcmp(own, other, (size_t)body->arg[i].ndim * sizeof *own) != 0))
            return false;
    }
    return true;
}

static bool is_for(const Variant *v, const VariantKey *key, const Body *body)
{
    for (int i = 0; i < body->prog->nsize; i++)
        if (size_in(&v->key, i) != size_in(key, i))
            return false;
    return memcmp(v->key.index, key->index, (size_t)body->narg) == 0 &&
           is_scheduled(v, key->sched) && has_strides(v, key, body);
}

static const Variant *find_variant(const weft_kernel *k, const VariantKey *key)
{
    for (int i = 0; i < k->n; i++)
        if (is_for(k->variant[i], key, k->body))
            return k->variant[i];
    return NULL;
}

static bool has_sizes(const weft_kernel *k, const VariantKey *key)
{
    for (int i = 0; i < k->body->prog->nsize; i++)
        if (size_in(key, i) > 0)
            return true;
    return false;
}

/* For sizes of their own there are a few: whose sizes always change gets code for all. */
static bool has_room(const weft_kernel *k, const char *sched)
{
    int n = 0;

    for (int i = 0; i < k->n; i++)
        n += has_sizes(k, &k->variant[i]->key) && is_scheduled(k->variant[i], sched);
    return n < LIMIT_SIZES;
}

/* Whose strides always change has them copied. */
static bool has_room_for_strides(const weft_kernel *k)
{
    int n = 0;

    for (int i = 0; i < k->n; i++)
        n += k->variant[i]->key.stride != NULL;
    return n < LIMIT_STRIDES;
}

const Variant *kernel_variant(weft_kernel *k, const VariantKey *key)
{
    const Variant *v = find_variant(k, key);
    VariantKey any = *key;

    if (v == NULL && key->stride != NULL && !has_room_for_strides(k)) {
        any.stride = NULL;
        return kernel_variant(k, &any);
    }
    if (v == NULL && has_sizes(k, key) && !has_room(k, key->sched)) {
        any.size = NULL;
        v = find_variant(k, &any);
    }
    if (v == NULL)
        v = add_variant(k, &any);
    return v->why == NULL ? v : k->variant[0];
}

/* The handle is not the caller's before its first variant is made, and goes when that throws. */
static void add_first(weft_kernel *k)
{
    weft_ctx *ctx = k->h.ctx;
    jmp_buf trap, *outer = ctx->err.trap;
    VariantKey key = { .sched = k->sched };

    ctx->err.trap = &trap;
    if (setjmp(trap) != 0) {
        ctx->err.trap = outer;
        api_handle_free(k);
        err_jump(&ctx->err);
    }
    key.index = arena_alloc(&ctx->scratch, (size_t)k->body->narg + 1);
    k->last = add_variant(k, &key);
    ctx->err.trap = outer;
}

static weft_kernel *new_kernel(weft_ctx *ctx, Body *body, const char *sched)
{
    weft_kernel *k;

    body_check(body);
    api_box(ctx);
    k = api_handle_new(ctx, TAG_KERNEL, sizeof *k);
    k->box = api_keep(ctx);
    k->body = body;
    body->box->refs++;
    k->number = ++ctx->kernels;
    if (sched != NULL)
        k->sched = arena_copy(&k->box->arena, sched, strlen(sched) + 1);
    add_first(k);
    return k;
}

void kernel_drop(weft_kernel *k)
{
    for (int i = 0; i < k->n; i++) {
        if (k->variant[i]->module != NULL)
            jit_release(k->variant[i]->module);
        dev_module_free(k->variant[i]->dev);
    }
    body_drop(k->body);
    box_drop(k->scheduled);
    box_drop(k->printed);
    box_drop(k->box);
}

weft_status weft_kernel_compile(weft_prog *prog, weft_kernel **out)
{
    weft_ctx *ctx = api_ctx_of(prog, TAG_PROG);

    if (out != NULL)
        *out = NULL;
    API_ENTER(ctx);
    api_need(ctx, out, "out");
    *out = new_kernel(ctx, prog->body, prog->sched);
    return api_leave(ctx);
}

void weft_kernel_free(weft_kernel *kernel)
{
    if (api_ctx_of(kernel, TAG_KERNEL) != NULL)
        api_handle_free(kernel);
}

/* The text is not kept with the code: whoever asks for it gets it by lowering anew. */
static const char *source_of(weft_kernel *k, const Variant *v)
{
    weft_ctx *ctx = k->h.ctx;
    Text made = { .arena = &ctx->scratch };
    char *kept;

    if (v->lowered == NULL)
        err_throw(&ctx->err, ST_LIMIT, "there is no C text: %s", kernel_why(k));
    if (k->source_of == v)
        return k->source;
    kernel_lower(ctx, &ctx->scratch, k->body, &v->key, &made);
    kept = arena_copy(&api_box(ctx)->arena, made.s, made.n + 1);
    box_drop(k->printed);
    k->printed = api_keep(ctx);
    k->source_of = v;
    return k->source = kept;
}

weft_status weft_kernel_source(weft_kernel *kernel, const char **out)
{
    weft_ctx *ctx = api_ctx_of(kernel, TAG_KERNEL);

    API_ENTER(ctx);
    api_need(ctx, out, "out");
    *out = source_of(kernel, kernel->last);
    return api_leave(ctx);
}

weft_status weft_kernel_info(weft_kernel *kernel, weft_info *out)
{
    weft_ctx *ctx = api_ctx_of(kernel, TAG_KERNEL);

    API_ENTER(ctx);
    api_need(ctx, out, "out");
    *out = (weft_info){ "interp", "", "", "", kernel_why(kernel), 0, 0 };
    if (kernel_why(kernel) == NULL) {
        const Variant *v = kernel->last;
        const EmitKernel *info = v->lowered->info;

        *out = (weft_info){ v->lowered->target->dialect->name,
                            v->dev != NULL ? dev_name(dev_of(v->dev))
                                           : target_name(v->lowered->target),
                            v->how, v->name, "", info->nphase, 0 };
        for (int i = 0; i < info->nphase; i++)
            out->parallel += info->phase[i].parallel;
    }
    return api_leave(ctx);
}

weft_status weft_kernel_schedule(weft_kernel *kernel, const char *text)
{
    weft_ctx *ctx = api_ctx_of(kernel, TAG_KERNEL);
    Sched sched = { .text = NULL };
    const char *copy = NULL;

    API_ENTER(ctx);
    if (text != NULL) {
        sched_parse(&ctx->err, text, &sched);
        copy = arena_copy(&api_box(ctx)->arena, text, strlen(text) + 1);
    }
    box_drop(kernel->scheduled);
    kernel->scheduled = api_keep(ctx);
    kernel->sched = copy;
    kernel->number = ++ctx->kernels; /* plans made for it are for another now */
    return api_leave(ctx);
}
