/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The choices of the tuner for a kernel: loops that a schedule can arrange, predictions of the
 * model, and formats that suit the structure; and the list of all candidates. */
#include "api/tune_int.h"
#include "run/run.h"

#include <math.h>
#include <string.h>
#include <time.h>

/* Of temporaries that may be computed where they are read. */
enum { LIMIT_STEPS = 6 };

int64_t tuning_clock(const Tuning *t)
{
    return t->ctx->os->clock(t->ctx->os, CLOCK_MONOTONIC);
}

const char *tuning_attempt(Tuning *t, TuningFn *fn, const char *text, void *out, bool memory)
{
    weft_ctx *ctx = t->ctx;
    jmp_buf trap, *outer = ctx->err.trap;
    const char *why = NULL;

    ctx->err.trap = &trap;
    if (setjmp(trap) == 0) {
        fn(t, text, out);
        ctx->err.trap = outer;
        return NULL;
    }
    ctx->err.trap = outer;
    if (ctx->err.code == ST_NOMEM && !memory)
        err_jump(&ctx->err);
    why = arena_copy(&ctx->scratch, ctx->err.msg, strlen(ctx->err.msg) + 1);
    err_clear(&ctx->err);
    ctx->err.trap = outer;
    return why;
}

static void lower(Tuning *t, const char *text, void *out)
{
    VariantKey key = { .index = t->index, .size = t->size, .sched = text };
    Text source = { .arena = &t->trees };

    kernel_lower(t->ctx, &t->trees, t->k->body, &key, &source);
    *(uint64_t *)out = hash_bytes(6, source.s, source.n);
}

static bool tree(void *user, const char *text, uint64_t *hash)
{
    Tuning *t = user;
    bool good = tuning_attempt(t, lower, text, hash, false) == NULL;

    arena_free(&t->trees);
    return good;
}

/* The lines of a schedule that are on formats. */
static const char *formats_of(Arena *arena, const char *text)
{
    Text out = { .arena = arena };
    SchedItem at;

    text_put(&out, "", 0);
    while (sched_next(&text, &at))
        if (at.nword == 6 && memcmp(at.s, "format", 6) == 0) {
            text_put(&out, at.s, at.n);
            text_char(&out, ';');
        }
    return out.s;
}

/* The environment of a program whose entries are stored in other formats. */
static Env *stored_env(Tuning *t, Prog *p, int naxis, int nbuf)
{
    FmtPool workers = api_workers(api_pool(t->ctx));
    Env *e = ir_env(&t->trees, p);

    memcpy(e->size, t->env->size, (size_t)t->k->body->prog->nsize * sizeof *e->size);
    memcpy(e->start, t->env->start, (size_t)naxis * sizeof *e->start);
    memcpy(e->coord, t->env->coord, (size_t)naxis * sizeof *e->coord);
    memcpy(e->buf, t->env->buf, (size_t)nbuf * sizeof *e->buf);
    for (int i = naxis; i < p->naxis; i++)
        if (p->axis[i]->from_k == FROM_FORMAT && p->axis[i]->from != NULL && p->axis[i]->part == 0)
            fmt_fill(&t->trees, &t->trees, &workers, p, e, p->axis[i]);
    return e;
}

typedef struct Reads { /* of a statement: buffers that stay what they are from run to run */
    const bool *stays;
    bool all;
} Reads;

static void note_read(Expr *e, void *ctx)
{
    Reads *r = ctx;

    if (e->op == OP_load)
        r->all = r->all && r->stays[e->buf->id];
}

static bool reads_what_stays(Prog *p, const Stmt *s, const bool *stays)
{
    Reads r = { stays, true };
    Memo met = { 0 };

    for (int i = 0; i < s->nassign; i++) {
        const Assign *a = &s->assign[i];

        r.all = r.all && a->op == A_SET && a->guard == NULL && a->nat == 0 &&
                a->out->buf->kind == B_TEMP;
        ir_visit(p, a->value, note_read, &r, &met);
    }
    return r.all;
}

/* Temporaries that are set from held inputs alone are made once, so what makes them costs a run
 * nothing: statements of formats that bring values into their order (see hold.c, which decides the
 * same for phases).  Such a temporary has one statement. */
static void leave_kept(Tuning *t, Prog *p)
{
    const weft_args *args = t->args;
    bool *stays = arena_array(&t->trees, p->nbuf, sizeof *stays);
    int n = 0;

    for (int i = 0; i < args->body->narg; i++)
        if (args->bound[i].held)
            stays[args->body->arg[i].buf->id] = true;
    for (int i = 0; i < p->nstmt; i++) {
        Stmt *s = p->stmt[i];

        if (!reads_what_stays(p, s, stays))
            p->stmt[n++] = s;
        else
            for (int k = 0; k < s->nassign; k++)
                stays[s->assign[k].out->buf->id] = true;
    }
    p->nstmt = n;
}

static void find_shape(Tuning *t, const char *formats, void *out)
{
    Prog *p = ir_copy(&t->trees, t->k->body->prog);
    int naxis = p->naxis, nbuf = p->nbuf;

    api_formats(p, formats);
    if (t->args != NULL && t->args->nheld > 0)
        leave_kept(t, p);
    cost_shape(&t->trees, p, stored_env(t, p, naxis, nbuf), t->machine, out);
}

/* Worked out once for each choice of formats, as that takes a conversion. */
static const Shape *shape_of(Tuning *t, const char *text)
{
    const char *formats = formats_of(&t->ctx->scratch, text);
    Shape *s;

    for (int i = 0; i < t->nshape; i++)
        if (strcmp(t->shape[i].formats, formats) == 0)
            return &t->shape[i];
    t->shape = arena_grow(&t->ctx->scratch, t->shape, t->nshape, &t->shapecap, sizeof *t->shape);
    s = &t->shape[t->nshape++];
    *s = (Shape){ .formats = formats };
    s->known = t->env != NULL && tuning_attempt(t, find_shape, formats, &s->is, false) == NULL;
    arena_free(&t->trees);
    return s;
}

static double predict(void *user, const char *text)
{
    Tuning *t = user;
    const Shape *s = shape_of(t, text);
    Aim aim;

    if (!s->known)
        return NAN;
    aim = api_aim_of(t->ctx, api_target(t->ctx), text);
    return api_predict(aim.target, &aim.sched, &s->is, t->machine, t->threads);
}

TuneAsk tuning_ask(Tuning *t)
{
    return (TuneAsk){ t, tree, predict };
}

bool tuning_predicts(Tuning *t)
{
    return shape_of(t, "")->known;
}

/* What suits the structure, and what the kernel's own schedule says of the axis: rules of the
 * user's are among it. */
static const char *const *formats_for(Tuning *t, const Axis *a, int lanes)
{
    Arena *arena = &t->ctx->scratch;
    const char *const *found = tune_formats(arena, t->env, a, lanes), **list, *axis, *format;
    const char *own = t->own;
    SchedItem at;
    int n = 0, cap = 0;

    while (found[n] != NULL)
        n++;
    cap = n;
    list = arena_copy(arena, found, (size_t)n * sizeof *list);
    while (own != NULL && sched_next(&own, &at))
        if (api_format_line(arena, &at, &axis, &format) && strcmp(axis, a->name) == 0) {
            list = arena_grow(arena, list, n, &cap, sizeof *list);
            list[n++] = format;
        }
    list = arena_grow(arena, list, n, &cap, sizeof *list);
    list[n] = NULL;
    return list;
}

static void add_axes(Tuning *t, TuneFacts *facts)
{
    const Prog *p = t->k->body->prog;
    TuneAxis *axis = arena_array(&t->ctx->scratch, p->naxis, sizeof *axis);

    facts->axis = axis;
    for (int i = 0; t->env != NULL && i < p->naxis; i++)
        if (p->axis[i]->name != NULL)
            axis[facts->naxis++] = (TuneAxis){ p->axis[i]->name,
                                               formats_for(t, p->axis[i],
                                                           lanes_of(facts->unit, T_f32)) };
}

/* The steps of the kernel's own schedule, as they stand together. */
static const char *own_steps(Tuning *t)
{
    Text text = { .arena = &t->ctx->scratch };
    const char *own = t->own, *axis, *format;
    SchedItem at;

    while (own != NULL && sched_next(&own, &at))
        if (!sched_is_number(&at) && !api_format_line(text.arena, &at, &axis, &format)) {
            text_str(&text, text.n > 0 ? "; " : "");
            text_put(&text, at.s, at.n);
        }
    return text.s;
}

/* A temporary that is one `=` need not be stored; and what somebody wrote is worth a try. */
static void add_steps(Tuning *t, TuneFacts *facts)
{
    const Prog *p = t->k->body->prog;
    TuneSteps *steps = NULL;
    const char *own = own_steps(t);
    int cap = 0;

    for (int i = 0; i < p->nstmt; i++)
        for (int k = 0; k < p->stmt[i]->nassign; k++) {
            const Assign *a = &p->stmt[i]->assign[k];
            Text text = { .arena = &t->ctx->scratch };

            if (a->op != A_SET || a->out->buf->kind != B_TEMP || facts->nsteps == LIMIT_STEPS)
                continue;
            text_f(&text, "compute_inline %s", a->label);
            steps = arena_grow(text.arena, steps, facts->nsteps, &cap, sizeof *steps);
            steps[facts->nsteps++] = (TuneSteps){ "compute_inline", text.s, false };
        }
    if (own != NULL) {
        steps = arena_grow(&t->ctx->scratch, steps, facts->nsteps, &cap, sizeof *steps);
        steps[facts->nsteps++] = (TuneSteps){ "own", own, true };
    }
    facts->steps = steps;
}

void tuning_space(Tuning *t, TuneSpace *out)
{
    const Target *target = api_target(t->ctx);
    const Shape *s = shape_of(t, "");
    TuneFacts facts = { .unit = &target->unit };
    TuneAsk ask = tuning_ask(t);

    for (int i = 0; s->known && i < s->is.ngather; i++) {
        facts.element = fmax(facts.element, s->is.gather[i].element);
        facts.widest = fmax(facts.widest, s->is.gather[i].row / s->is.gather[i].element);
    }
    add_axes(t, &facts);
    add_steps(t, &facts);
    tune_space(&t->ctx->scratch, &facts, &ask, out);
}

void tuning_open(Tuning *t, weft_kernel *k, weft_args *args)
{
    weft_ctx *ctx = k->h.ctx;

    *t = (Tuning){ .ctx = ctx, .k = k, .args = args, .own = k->sched };
    if (args != NULL)
        api_check_args(ctx, k, args);
    if (k->body->prog->stage != STAGE_COORDINATES)
        err_throw(&ctx->err, ST_LIMIT, "%s is at stage %s: its loops are arranged already",
                  k->body->prog->name, ir_stage[k->body->prog->stage]);
    t->begin = tuning_clock(t);
    t->machine = api_machine_known(ctx);
    t->threads = pool_threads(api_pool(ctx));
    t->index = arena_alloc(&ctx->scratch, (size_t)k->body->narg + 1);
    arena_init(&t->trees, ctx->os, &ctx->err);
}

static weft_point *list_points(const TuneSpace *s, Arena *arena)
{
    weft_point *list = arena_array(arena, s->npoint, sizeof *list);

    for (int i = 0; i < s->npoint; i++) {
        const TunePoint *p = &s->point[s->order[i]];

        list[i].schedule = arena_copy(arena, p->text, strlen(p->text) + 1);
        list[i].predicted_s = isnan(p->predicted) ? 0 : p->predicted;
    }
    return list;
}

static const weft_point *find_points(Tuning *t, int *n)
{
    weft_ctx *ctx = t->ctx;
    const weft_point *list;
    TuneSpace space;

    if (t->args != NULL)
        t->env = api_env_of_structure(t->args, &ctx->scratch);
    tuning_space(t, &space);
    list = list_points(&space, &api_box(ctx)->arena);
    box_drop(ctx->found);
    ctx->found = api_keep(ctx);
    *n = space.npoint;
    return list;
}

/* What a question has left when it throws is let go. */
static void find_or_throw(weft_kernel *k, weft_args *args, const weft_point **out, int *n)
{
    weft_ctx *ctx = k->h.ctx;
    jmp_buf trap, *outer = ctx->err.trap;
    Tuning t;

    tuning_open(&t, k, args);
    ctx->err.trap = &trap;
    if (setjmp(trap) == 0)
        *out = find_points(&t, n);
    ctx->err.trap = outer;
    arena_free(&t.trees);
    if (ctx->err.code != ST_OK)
        err_jump(&ctx->err);
}

weft_status weft_kernel_space(weft_kernel *kernel, weft_args *args, const weft_point **out, int *n)
{
    weft_ctx *ctx = api_ctx_of(kernel, TAG_KERNEL);

    API_ENTER(ctx);
    api_need(ctx, out, "out");
    api_need(ctx, n, "n");
    find_or_throw(kernel, args, out, n);
    return api_leave(ctx);
}

