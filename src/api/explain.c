/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Explains a schedule: lists each step that is applied, each that is refused with the reason, and
 * the loops at the end, by name. */
#include "api/api_int.h"
#include "find/find.h"
#include "lower/lower.h"
#include "sched/step.h"

#include <string.h>

static bool is_number(const char *s, int64_t *n)
{
    return num_parse_int(s, strlen(s), n) && *n >= 0;
}

/* The place in the text after item `count`, or, where that is less than 0, after the last step of
 * this name; NULL: there is none.  *pass: of the last step before it that belongs to one. */
static const char *end_of(const char *text, int64_t count, const char *name, const char **pass)
{
    const char *s = text, *end = count == 0 ? text : NULL, *now = "positions";
    SchedItem at;

    *pass = now;
    for (int64_t i = 1; text != NULL && sched_next(&s, &at); i++) {
        const Step *step = step_named(at.s, at.nword);

        if (step != NULL && step->stage == STAGE_LOOPS)
            now = "lanes";
        else if (step != NULL && step->stage == STAGE_POSITIONS && strcmp(now, "lanes") != 0)
            now = "steps";
        if (count < 0 ? strlen(name) == at.nword && memcmp(at.s, name, at.nword) == 0
                      : i == count) {
            end = at.s + at.n;
            *pass = now;
        }
    }
    return end;
}

const char *api_until(weft_ctx *ctx, const char *where, const char **sched)
{
    int64_t count = -1;
    const char *pass, *end;
    char *text;

    if (!is_number(where, &count) && step_named(where, strlen(where)) == NULL)
        return where;
    end = end_of(*sched, count, where, &pass); /* a step and a pass may have one name: vectorize */
    if (end == NULL && api_pass_named(where, strlen(where)) != NULL)
        return where;
    if (end == NULL)
        err_throw(&ctx->err, ST_ARG, count >= 0 ? "the schedule has fewer than %s steps"
                                                : "the schedule has no step %s",
                  where);
    text = arena_alloc(&ctx->scratch, (size_t)(end - *sched) + 1);
    memcpy(text, *sched, (size_t)(end - *sched));
    *sched = text;
    return pass;
}

static void take(Prog *p, const StepLine *line, const StepTarget *target)
{
    if (line->step->apply != NULL)
        step_apply(p, line, target);
    else
        api_formats(p, line->text);
}

/* False when it was refused, with the reason in the context. */
static bool try(weft_ctx *ctx, Prog *p, const StepLine *line, const StepTarget *target)
{
    jmp_buf trap, *outer = ctx->err.trap;
    volatile bool good = false;

    ctx->err.trap = &trap;
    if (setjmp(trap) == 0) {
        take(p, line, target);
        good = true;
    }
    ctx->err.trap = outer;
    if (!good && ctx->err.code != ST_ARG)
        err_jump(&ctx->err);
    return good;
}

static void explain_step(weft_ctx *ctx, Text *out, Prog *p, const StepLine *line,
                         const StepTarget *target)
{
    const char *why = ctx->err.msg;
    size_t n = strlen(line->text);

    if (try(ctx, p, line, target)) {
        text_f(out, "done     %s\n", line->text);
        return;
    }
    if (strncmp(why, line->text, n) == 0 && strncmp(why + n, ": ", 2) == 0)
        why += n + 2;
    text_f(out, "refused  %s: %s\n", line->text, why);
    err_clear(&ctx->err);
}

static void explain_steps(weft_ctx *ctx, Text *out, Prog *p, const char *text, const Aim *aim)
{
    StepTarget target = api_step_target(aim);
    StepLine *line;
    int n = step_lines(p, text, &line);

    for (int i = 0; i < n; i++)
        if (line[i].step->stage == p->stage && !line[i].step->last)
            explain_step(ctx, out, p, &line[i], &target);
}

static void list_loops(Text *out, const Node *n, int depth)
{
    if (n->kind == N_FOR && n->label != NULL) {
        text_f(out, "%*s%s.%s%s\n", 2 * depth + 2, "", n->label, loop_path(n),
               n->how == FOR_PARALLEL ? "  parallel" : n->lanes > 1 ? "  in lanes" : "");
        depth++;
    }
    for (int i = 0; i < n->nbody; i++)
        list_loops(out, n->body[i], depth);
}

/* Initial values are loops when a step names them. */
static void list_all_loops(Text *out, Prog *p)
{
    for (int i = 0; loop_buf(p, i) != NULL; i++) {
        Node *nest = loop_buf(p, i)->init != NULL ? lower_init_nest(p, loop_buf(p, i)) : NULL;
        const Node *in = nest;

        while (in != NULL && in->kind == N_FOR)
            in = in->body[0];
        if (in != NULL && in->out->buf == loop_buf(p, i)) /* several arrays may have one nest */
            list_loops(out, nest, 0);
    }
    for (int i = 0; i < p->nphase; i++)
        list_loops(out, p->phase[i], 0);
}

/* The passes between two stages of steps. */
static void lower_on(Prog *p, const Aim *aim, const char *pass)
{
    const Pass *last = api_find_pass(p, pass);

    if (p->stage <= last->from)
        api_lower_to(p, aim, last);
}

static const char *explain(weft_ctx *ctx, weft_prog *prog)
{
    Aim aim = api_aim_of(ctx, api_target(ctx), prog->sched);
    Text out = { .arena = &api_box(ctx)->arena };
    const char *steps = aim.sched.text;
    Prog *p;

    body_check(prog->body);
    p = api_trees(ctx, prog->body->prog);
    aim.sched.text = NULL; /* taken here, one by one */
    text_put(&out, "", 0);
    if (p->stage == STAGE_COORDINATES) {
        explain_steps(ctx, &out, p, steps, &aim);
        lower_on(p, &aim, "positions");
    }
    if (p->stage == STAGE_POSITIONS) {
        explain_steps(ctx, &out, p, steps, &aim);
        text_str(&out, "loops:\n");
        list_all_loops(&out, p);
        step_cut_tails(p);
        lower_on(p, &aim, "hash");
    }
    explain_steps(ctx, &out, p, steps, &aim);
    box_drop(prog->printed);
    prog->printed = api_keep(ctx);
    return out.s;
}

weft_status weft_prog_explain(weft_prog *prog, const char **out)
{
    weft_ctx *ctx = api_ctx_of(prog, TAG_PROG);

    if (out != NULL)
        *out = NULL;
    API_ENTER(ctx);
    api_need(ctx, out, "out");
    *out = explain(ctx, prog);
    return api_leave(ctx);
}

/* The lines of a schedule's text without comments and what is empty then. */
static void put_plain(Text *out, const char *text)
{
    SchedItem at;

    while (sched_next(&text, &at))
        text_f(out, "%.*s\n", (int)at.n, at.s);
}

/* Passes that still arrange loops by themselves. */
static void put_deciders(Text *out, const Aim *aim, const Pass *levels)
{
    const char *before = "\n#    ";

    text_str(out, "# By themselves, without a line, decide:");
    for (const Pass *s = api_pass; s->name != NULL; s++)
        if ((s->flags & PASS_OPTIONAL) && s != levels && (s->kinds >> aim->target->kind & 1)) {
            text_f(out, "%s %s", before, s->name);
            before = (s - api_pass) % 8 == 7 ? "\n#    " : "";
        }
    text_char(out, '\n');
}

static const char *explain_target(weft_ctx *ctx, weft_prog *prog, const char *target, bool plain)
{
    Aim aim = api_aim_of(ctx, api_find_target(ctx, target), prog->sched);
    Text out = { .arena = &api_box(ctx)->arena };
    const Pass *levels = api_pass_named("levels", strlen("levels"));
    const char *found = "";
    Prog *p;

    body_check(prog->body);
    p = api_trees(ctx, prog->body->prog);
    text_put(&out, "", 0);
    if (aim.target->kind == KIND_WARP) {
        api_lower_to(p, &aim, levels - 1);
        found = api_find_levels(p, &aim);
    }
    if (prog->sched != NULL)
        put_plain(&out, prog->sched);
    if (plain) {
        put_plain(&out, found);
    } else {
        text_str(&out, found);
        put_deciders(&out, &aim, levels);
    }
    box_drop(prog->printed);
    prog->printed = api_keep(ctx);
    return out.s;
}

weft_status weft_prog_explain_target(weft_prog *prog, const char *target, int plain,
                                     const char **out)
{
    weft_ctx *ctx = api_ctx_of(prog, TAG_PROG);

    if (out != NULL)
        *out = NULL;
    API_ENTER(ctx);
    api_need(ctx, out, "out");
    api_need(ctx, target, "the target");
    *out = explain_target(ctx, prog, target, plain != 0);
    return api_leave(ctx);
}
