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
#include "emit/emit.h"
#include "jit/jit.h"
#include "lower/lower.h"

#include <string.h>

enum { MOST_SIZES = 8 };

static int64_t size_in(const VariantKey *key, int i)
{
    return key->size == NULL ? 0 : key->size[i];
}

static void narrow(const Body *body, Prog *p, const VariantKey *key)
{
    for (int i = 0; i < body->narg; i++)
        if (key->index[i] == T_i32)
            lower_narrow(p, p->axis[body->arg[i].axis->id],
                         body->arg[i].kind == ARG_START ? -1 : body->arg[i].k);
}

/* The sizes that vector loops run up to. */
static void note_lanes(const Node *n, bool *in_lanes)
{
    if (n->kind == N_FOR && n->how == FOR_VECTOR && n->hi->op == OP_size)
        in_lanes[n->hi->size->id] = true;
    for (int i = 0; i < n->nbody; i++)
        note_lanes(n->body[i], in_lanes);
}

Lowered *kernel_lower(weft_ctx *ctx, Arena *arena, const Body *body, const VariantKey *key)
{
    const Prog *prog = body->prog;
    Lowered *l = arena_alloc(arena, sizeof *l);
    Text text = { .arena = arena };
    Kernel *k;
    Aim aim;

    if (prog->stage != STAGE_COORDINATES) /* a stranger's tree may store anywhere */
        err_throw(&ctx->err, ST_LIMIT,
                  "%s is at stage %s, and a tree that is read from text is only "
                  "interpreted, where every index is checked",
                  prog->name, ir_stage[prog->stage]);
    l->isa = api_isa(ctx);
    l->prog = ir_copy(arena, prog);
    narrow(body, l->prog, key);
    for (int i = 0; i < prog->nsize; i++)
        l->prog->size[i]->is = size_in(key, i);
    aim = api_aim_at(&ctx->err, l->isa, key->sched);
    k = api_passes(l->prog, &aim, false);
    l->info = emit_c(&text, l->prog, k->phase, k->n, l->prog->name);
    l->use = hold_uses(arena, l->prog, l->info);
    l->label = arena_array(arena, k->n, sizeof *l->label);
    l->in_lanes = arena_array(arena, prog->nsize, sizeof *l->in_lanes);
    for (int i = 0; i < k->n; i++)
        note_lanes(k->phase[i], l->in_lanes);
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

JitRequest *kernel_request(Arena *arena, const Lowered *l)
{
    const char **flag = arena_array(arena, 16, sizeof *flag);
    const char **symbol = arena_array(arena, l->info->nphase, sizeof *symbol);
    Text identity = { .arena = arena };
    JitRequest *r = arena_alloc(arena, sizeof *r);

    *r = (JitRequest){ .source = l->source,
                       .nsource = l->nsource,
                       .flag = flag,
                       .nflag = 3,
                       .symbol = symbol,
                       .nsymbol = l->info->nphase };
    flag[0] = "-O2";
    flag[1] = "-std=gnu11";
    flag[2] = "-ffp-contract=off";
    for (int i = 0; l->isa->flag[i] != NULL; i++)
        flag[r->nflag++] = l->isa->flag[i];
    for (int i = 0; i < l->info->nphase; i++)
        symbol[i] = l->info->phase[i].name;
    text_f(&identity, "weft %s, %s", weft_version(), isa_name(l->isa));
    r->identity = identity.s;
    return r;
}

static void build(weft_kernel *k, Variant *v, JitReport *report)
{
    static const char *const how[] = {
        [JIT_IN_MEMORY] = "memory", [JIT_ON_DISK] = "disk", [JIT_COMPILED] = "compiled"
    };
    weft_ctx *ctx = k->h.ctx;
    Arena *arena = &k->box->arena;
    int n;

    v->lowered = kernel_lower(ctx, arena, k->body, &v->key);
    n = v->lowered->info->nphase;
    v->fn = arena_array(arena, n, sizeof *v->fn);
    v->module = jit_get(api_jit(ctx), &ctx->err, kernel_request(arena, v->lowered), report);
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
        k->n--;
        err_jump(&ctx->err);
    }
    ctx->err.trap = outer;
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

static bool is_for(const Variant *v, const VariantKey *key, const Body *body)
{
    for (int i = 0; i < body->prog->nsize; i++)
        if (size_in(&v->key, i) != size_in(key, i))
            return false;
    return memcmp(v->key.index, key->index, (size_t)body->narg) == 0 &&
           is_scheduled(v, key->sched);
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
    return n < MOST_SIZES;
}

const Variant *kernel_variant(weft_kernel *k, const VariantKey *key)
{
    const Variant *v = find_variant(k, key);
    VariantKey any = *key;

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
    for (int i = 0; i < k->n; i++)
        if (k->variant[i]->module != NULL)
            jit_release(k->variant[i]->module);
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
    *out = new_kernel(ctx, prog->body, prog->sched);
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
    if (kernel->last->lowered == NULL)
        err_throw(&ctx->err, ST_LIMIT, "there is no C text: %s", kernel_why(kernel));
    *out = kernel->last->lowered->source;
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

        *out = (weft_info){ "c", isa_name(v->lowered->isa), v->how, v->name, "", info->nphase, 0 };
        for (int i = 0; i < info->nphase; i++)
            out->parallel += info->phase[i].parallel;
    }
    return api_leave(ctx);
}

weft_status weft_kernel_schedule(weft_kernel *kernel, const char *text)
{
    weft_ctx *ctx = api_ctx_of(kernel, TAG_KERNEL);
    Sched sched = { .text = NULL };

    API_ENTER(ctx);
    if (text != NULL)
        sched_parse(&ctx->err, text, &sched);
    kernel->sched = text == NULL ? NULL : arena_copy(&kernel->box->arena, text, strlen(text) + 1);
    kernel->number = ++ctx->kernels; /* plans made for it are for another now */
    return api_leave(ctx);
}
