/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * What a context tells of itself when it is asked to: warnings, and one CSV line for each compile
 * and each run of a kernel, with the same columns:
 *
 *     weft,EVENT,PROGRAM,TARGET,ISA,HOW,MS,KEY,DETAIL,WHY */
#include "api/api_int.h"
#include "emit/emit.h"
#include "jit/jit.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

/* A field that may hold anything, in quotes when it has to be. */
static void put_field(Text *out, const char *s)
{
    bool quote = s[strcspn(s, ",\"\n")] != 0;

    text_str(out, quote ? ",\"" : ",");
    for (; *s != 0; s++) {
        if (*s == '"')
            text_char(out, '"');
        text_char(out, *s == '\n' ? ' ' : *s);
    }
    text_str(out, quote ? "\"" : "");
}

static void say(const weft_kernel *k, const Variant *v, const char *event, const char *how,
                double ms, const char *detail, const char *why)
{
    weft_ctx *ctx = k->h.ctx;
    Text line = { .arena = &ctx->scratch };
    bool code = v->why == NULL;

    text_f(&line, "weft,%s,%s,%s,%s,%s,%.3f,%s", event, k->body->prog->name, code ? "c" : "interp",
           code ? target_name(v->lowered->target) : "", how, ms, code ? v->name : "");
    put_field(&line, detail);
    put_field(&line, why);
    ctx->verbose(ctx->verbose_user, line.s);
}

void api_say_note(weft_ctx *ctx, const char *event, const char *detail, const char *why)
{
    Text line = { .arena = &ctx->scratch };

    if (ctx->verbose == NULL)
        return;
    text_f(&line, "weft,%s,,,,,,", event);
    put_field(&line, detail);
    put_field(&line, why);
    ctx->verbose(ctx->verbose_user, line.s);
}

/* Each phase and whether it runs on several threads. */
static void put_phases(Text *out, const Lowered *l)
{
    text_put(out, "", 0);
    for (int i = 0; i < l->info->nphase; i++) {
        const EmitPhase *f = &l->info->phase[i];

        text_f(out, "%s%s %s%s", i > 0 ? "; " : "", l->label[i],
               f->parallel ? "parallel" : "serial: ",
               f->parallel      ? ""
               : f->why != NULL ? f->why
                                : "its outer loop may write an element twice");
        if (f->balance != NULL)
            text_f(out, " by %s", f->balance->name);
    }
}

/* The structure arrays that it reads as i32. */
static void put_narrow(Text *out, const Body *body, const VariantKey *key)
{
    bool any = false;

    for (int i = 0; i < body->narg; i++)
        if (key->index[i] == T_i32) {
            text_f(out, any ? " %s" : "; i32 %s", body->arg[i].name);
            any = true;
        }
}

/* The sizes that it is for alone. */
static void put_sizes_of(Text *out, const Prog *p, const VariantKey *key)
{
    for (int i = 0; i < p->nsize && key->size != NULL; i++)
        if (key->size[i] > 0)
            text_f(out, "; %s = %lld", p->size[i]->name, (long long)key->size[i]);
}

static void warn(weft_ctx *ctx, const weft_kernel *k, const Variant *v)
{
    char note[JIT_NOTE] = "";
    int n = 0;

    if (v->why != NULL)
        n = snprintf(ctx->warning, LIMIT_MESSAGE,
                     v == k->variant[0] ? "%s is interpreted: %s"
                                        : "%s runs by a more general kernel: %s",
                     k->body->prog->name, v->why);
    if (ctx->jit != NULL && jit_warning(ctx->jit, note) && n < LIMIT_MESSAGE)
        snprintf(ctx->warning + n, (size_t)(LIMIT_MESSAGE - n), n > 0 ? "\n%s" : "%s", note);
}

void api_say_compile(weft_ctx *ctx, const weft_kernel *k, const Variant *v, const JitReport *report)
{
    Text phases = { .arena = &ctx->scratch };

    warn(ctx, k, v);
    if (ctx->verbose == NULL)
        return;
    if (v->why == NULL) {
        put_phases(&phases, v->lowered);
        put_narrow(&phases, k->body, &v->key);
        put_sizes_of(&phases, k->body->prog, &v->key);
    }
    say(k, v, "compile", v->why == NULL ? v->how : "", report->ms, v->why == NULL ? phases.s : "",
        v->why == NULL ? report->note : v->why);
}

static void put_sizes(Text *out, const weft_args *args)
{
    const Prog *p = args->body->prog;

    text_put(out, "", 0);
    for (int i = 0; i < p->nsize; i++)
        text_f(out, "%s=%lld ", p->size[i]->name, (long long)args->result->env->size[i]);
}

void api_say_run(const weft_kernel *k, const weft_args *args, bool made, int threads, int64_t begin)
{
    weft_ctx *ctx = k->h.ctx;
    Text detail = { .arena = &ctx->scratch };
    const char *why = kernel_why(k);
    double ms;

    if (ctx->verbose == NULL)
        return;
    ms = (double)(ctx->os->clock(ctx->os, CLOCK_MONOTONIC) - begin) / 1e6;
    put_sizes(&detail, args);
    text_f(&detail, "threads=%d", threads);
    if (why == NULL)
        api_print_plan(&detail, args, made);
    say(k, k->last, "run",
        why != NULL ? ""
        : made      ? "planned"
                    : "kept",
        ms, detail.s, why != NULL ? why : "");
}
