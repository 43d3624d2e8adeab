/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * weft_prog_grad and weft_prog_batch: the derivative of a program, and a program with a batch axis.
 * Both are printed and parsed again, so that messages have places and users can add text. */
#include "api/api_int.h"
#include "grad/grad.h"

static void check_names(weft_ctx *ctx, const char *what, const char *const *name, int n)
{
    if (n < 0)
        err_throw(&ctx->err, ST_ARG, "a list of %d names", n);
    if (n > 0)
        api_need(ctx, name, what);
    for (int i = 0; i < n; i++)
        api_need(ctx, name[i], what);
}

/* Of a schedule the loops of the derivative have nothing, but how sums are rounded they have. */
static bool is_compensated(weft_ctx *ctx, const char *text)
{
    Sched sched = { .text = NULL };

    if (text != NULL)
        sched_parse(&ctx->err, text, &sched);
    return sched.policy.compensate != 0;
}

static void need_coordinates(weft_ctx *ctx, const weft_prog *prog, const char *what)
{
    if (prog->body->prog->stage != STAGE_COORDINATES)
        err_throw(&ctx->err, ST_CHECK, "%s is at stage %s; %s before that", prog->body->prog->name,
                  ir_stage[prog->body->prog->stage], what);
}

static weft_prog *derive(weft_ctx *ctx, weft_prog *prog, const weft_grad *opt)
{
    GradOptions o = { 0 };
    Text text = { .arena = &ctx->scratch };
    Prog *p;

    if (opt != NULL) {
        check_names(ctx, "a name of wrt", opt->wrt, opt->nwrt);
        check_names(ctx, "a name of of", opt->of, opt->nof);
        check_names(ctx, "a name of save", opt->save, opt->nsave);
        o = (GradOptions){ opt->wrt, opt->of, opt->save, opt->nwrt, opt->nof, opt->nsave };
    }
    need_coordinates(ctx, prog, "the derivative is taken");
    body_check(prog->body);
    p = (opt != NULL && opt->forward ? grad_forward : grad_reverse)(&ctx->scratch, prog->body->prog,
                                                                    &o);
    ir_print(&text, p);
    if (is_compensated(ctx, prog->sched))
        text_str(&text, "schedule\ncompensate 1\n");
    return prog_new(ctx, p->name, text.s, text.n);
}

weft_status weft_prog_grad(weft_prog *prog, const weft_grad *opt, weft_prog **out)
{
    weft_ctx *ctx = api_ctx_of(prog, TAG_PROG);

    if (out != NULL)
        *out = NULL;
    API_ENTER(ctx);
    api_need(ctx, out, "out");
    *out = derive(ctx, prog, opt);
    return api_leave(ctx);
}

weft_status weft_prog_batch(weft_prog *prog, const char *const *names, int n, weft_prog **out)
{
    weft_ctx *ctx = api_ctx_of(prog, TAG_PROG);
    Text text;

    if (out != NULL)
        *out = NULL;
    API_ENTER(ctx);
    api_need(ctx, out, "out");
    check_names(ctx, "a name", names, n);
    need_coordinates(ctx, prog, "a batch is added");
    body_check(prog->body);
    text = (Text){ .arena = &ctx->scratch };
    ir_print(&text, ir_batch(&ctx->scratch, prog->body->prog, names, n));
    if (is_compensated(ctx, prog->sched))
        text_str(&text, "schedule\ncompensate 1\n");
    *out = prog_new(ctx, prog->body->prog->name, text.s, text.n);
    return api_leave(ctx);
}
