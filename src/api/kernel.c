/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Kernels: from a program to machine code.  A kernel is compiled from a copy of the program whose
 * objects have the same ids, so what is known of the one fits the other.  When there is no way to
 * machine code, the kernel interprets. */
#include "api/api_int.h"
#include "emit/emit.h"
#include "jit/jit.h"
#include "lower/lower.h"

#include <string.h>

static Lowered *lower(weft_ctx *ctx, Arena *arena, const Prog *prog)
{
    Lowered *l = arena_alloc(arena, sizeof *l);
    Text text = { .arena = arena };
    Kernel *k;

    if (prog->stage != STAGE_COORDINATES) /* a stranger's tree may store anywhere */
        err_throw(&ctx->err, ST_LIMIT,
                  "%s is at stage %s, and a tree that is read from text is only "
                  "interpreted, where every index is checked",
                  prog->name, ir_stage[prog->stage]);
    l->isa = api_isa(ctx);
    l->prog = ir_copy(arena, prog);
    k = api_passes(l->prog, l->isa, false);
    l->info = emit_c(&text, l->prog, k->phase, k->n, l->prog->name);
    l->label = arena_array(arena, k->n, sizeof *l->label);
    for (int i = 0; i < k->n; i++)
        l->label[i] = k->phase[i]->label != NULL ? k->phase[i]->label : l->info->phase[i].name;
    l->source = text.s;
    l->nsource = text.n;
    return l;
}

Jit *api_jit(weft_ctx *ctx)
{
    if (ctx->jit == NULL)
        ctx->jit = jit_new(ctx->os, &ctx->err);
    return ctx->jit;
}

static JitModule *compile(weft_ctx *ctx, Arena *arena, const Lowered *l, JitReport *report)
{
    const char *flag[16] = { "-O2", "-std=gnu11", "-ffp-contract=off" };
    const char **symbol = arena_array(arena, l->info->nphase, sizeof *symbol);
    Text identity = { .arena = arena };
    JitRequest r = { .source = l->source,
                     .nsource = l->nsource,
                     .flag = flag,
                     .nflag = 3,
                     .symbol = symbol,
                     .nsymbol = l->info->nphase };

    for (int i = 0; l->isa->flag[i] != NULL; i++)
        flag[r.nflag++] = l->isa->flag[i];
    for (int i = 0; i < l->info->nphase; i++)
        symbol[i] = l->info->phase[i].name;
    text_f(&identity, "weft %s, %s", weft_version(), isa_name(l->isa));
    r.identity = identity.s;
    return jit_get(api_jit(ctx), &ctx->err, &r, report);
}

static void build(weft_ctx *ctx, weft_kernel *k, JitReport *report)
{
    static const char *const how[] = {
        [JIT_IN_MEMORY] = "memory", [JIT_ON_DISK] = "disk", [JIT_COMPILED] = "compiled"
    };
    Arena *arena = &k->box->arena;
    int n;

    k->lowered = lower(ctx, arena, k->body->prog);
    n = k->lowered->info->nphase;
    k->fn = arena_array(arena, n, sizeof *k->fn);
    k->module = compile(ctx, arena, k->lowered, report);
    for (int i = 0; i < n; i++) {
        const char *name = k->lowered->info->phase[i].name;

        k->fn[i] = jit_symbol(k->module, name);
        if (k->fn[i] == NULL)
            err_throw(&ctx->err, ST_IO, "the kernel was loaded, but its function %s is gone", name);
    }
    k->how = how[report->how];
    k->key = arena_copy(arena, report->key, sizeof report->key);
}

/* Keeps why there is no machine code, and goes on. */
static void fall_back(weft_ctx *ctx, weft_kernel *k)
{
    char why[sizeof ctx->err.msg];
    jmp_buf *trap = ctx->err.trap;

    memcpy(why, ctx->err.msg, sizeof why);
    err_clear(&ctx->err);
    ctx->err.trap = trap;
    k->why = arena_copy(&k->box->arena, why, strlen(why) + 1);
}

/* The handle that will own the module exists first, and goes again when this throws. */
static void build_or_fall_back(weft_ctx *ctx, weft_kernel *k, JitReport *report)
{
    jmp_buf trap, *outer = ctx->err.trap;
    volatile bool again = false;

    ctx->err.trap = &trap;
    if (setjmp(trap) == 0) {
        build(ctx, k, report);
    } else if (!again && (ctx->err.code == ST_LIMIT || ctx->err.code == ST_IO)) {
        again = true;
        fall_back(ctx, k);
    } else {
        ctx->err.trap = outer;
        api_handle_free(k);
        err_jump(&ctx->err);
    }
    ctx->err.trap = outer;
}

static weft_kernel *new_kernel(weft_ctx *ctx, Body *body)
{
    JitReport report = { .ms = 0 };
    weft_kernel *k;

    body_check(body);
    api_box(ctx);
    k = api_handle_new(ctx, TAG_KERNEL, sizeof *k);
    k->box = api_keep(ctx);
    k->body = body;
    body->box->refs++;
    k->number = ++ctx->kernels;
    build_or_fall_back(ctx, k, &report);
    api_say_compile(ctx, k, &report);
    return k;
}

void kernel_drop(weft_kernel *k)
{
    if (k->module != NULL)
        jit_release(k->module);
    body_drop(k->body);
    box_drop(k->box);
}

weft_status weft_kernel_compile(weft_prog *prog, weft_kernel **out)
{
    weft_ctx *ctx = api_ctx_of(prog, TAG_PROG);

    if (out != NULL)
        *out = NULL;
    API_ENTER(ctx);
    api_need(ctx, out, "out");
    *out = new_kernel(ctx, prog->body);
    return api_leave(ctx);
}

void weft_kernel_free(weft_kernel *kernel)
{
    if (api_ctx_of(kernel, TAG_KERNEL) != NULL)
        api_handle_free(kernel);
}

weft_status weft_kernel_source(weft_kernel *kernel, const char **out)
{
    weft_ctx *ctx = api_ctx_of(kernel, TAG_KERNEL);

    API_ENTER(ctx);
    api_need(ctx, out, "out");
    if (kernel->lowered == NULL)
        err_throw(&ctx->err, ST_LIMIT, "there is no C text: %s", kernel->why);
    *out = kernel->lowered->source;
    return api_leave(ctx);
}

weft_status weft_kernel_info(weft_kernel *kernel, weft_info *out)
{
    weft_ctx *ctx = api_ctx_of(kernel, TAG_KERNEL);

    API_ENTER(ctx);
    api_need(ctx, out, "out");
    *out = (weft_info){ "interp", "", "", "", kernel->why, 0, 0 };
    if (kernel->why == NULL) {
        const EmitKernel *info = kernel->lowered->info;

        *out = (weft_info){
            "c", isa_name(kernel->lowered->isa), kernel->how, kernel->key, "", info->nphase, 0
        };
        for (int i = 0; i < info->nphase; i++)
            out->parallel += info->phase[i].parallel;
    }
    return api_leave(ctx);
}
