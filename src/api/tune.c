/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Tunes a kernel for its arguments: lowers, compiles and runs the candidates that the search of
 * tune/ asks for.  Each candidate keeps its plan while it is timed, so that a turn costs no more
 * than a run.  The caller's arrays are used as in a run. */
#include "api/tune_int.h"
#include "interp/interp.h"
#include "jit/jit.h"

#include <stdatomic.h>
#include <string.h>
#include <time.h>

enum { TOP = 24, MOST_TOP = 4096, MOST_THREADS = 64, EACH = 4, MOST_TOGETHER = EACH * MOST_THREADS,
       MOST_RUNS = 1000 };
#define SECONDS 30.0
#define SAMPLE_NS 1000000             /* the least time that is measured */
#define MOST_BOUND_WORK 2e8           /* operations of the interpreter, for bounds of errors */
#define MOST_BYTES ((int64_t)2 << 30) /* of plans that are kept */

static Held *hold(Tuning *t, const char *text)
{
    Held *h;

    for (int i = 0; i < t->n; i++)
        if (strcmp(t->held[i]->text, text) == 0)
            return t->held[i];
    h = arena_alloc(&t->ctx->scratch, sizeof *h);
    *h = (Held){ .text = text, .number = ++t->ctx->kernels };
    t->held = arena_grow(&t->ctx->scratch, t->held, t->n, &t->cap, sizeof *t->held);
    return t->held[t->n++] = h;
}

/* What the arguments have now is remembered where it belongs. */
static void put_back(Tuning *t)
{
    if (t->at == NULL)
        return;
    t->bytes -= t->at->bytes;
    t->at->plan = t->args->plan;
    t->at->bytes = plan_bytes(t->args);
    t->bytes += t->at->bytes;
    t->args->plan = NULL;
    t->at = NULL;
}

static void take_up(Tuning *t, const char *text)
{
    Held *h = hold(t, text);

    put_back(t);
    t->args->plan = h->plan;
    t->k->sched = h->text;
    t->k->number = h->number;
    t->at = h;
}

static void drop_plan(Tuning *t, Held *h)
{
    put_back(t);
    t->args->plan = h->plan;
    plan_drop(t->args);
    h->plan = NULL;
    t->bytes -= h->bytes;
    h->bytes = 0;
}

static void restore(const Tuning *t)
{
    for (int i = 0; i < t->nsaved; i++)
        view_scatter(&t->saved[i].view, t->saved[i].copy, NULL);
}

static void run(Tuning *t, const char *text, void *unused)
{
    (void)unused;
    restore(t);
    take_up(t, text);
    api_run_kernel(t->k, t->args);
}

/* Why there is no variant of this schedule; NULL: the last run was by it. */
static const char *why_not(const Tuning *t, const char *text)
{
    const weft_kernel *k = t->k;

    if (k->last->key.sched != NULL && strcmp(k->last->key.sched, text) == 0)
        return NULL;
    for (int i = 0; i < k->n; i++)
        if (k->variant[i]->why != NULL && k->variant[i]->key.sched != NULL &&
            strcmp(k->variant[i]->key.sched, text) == 0)
            return k->variant[i]->why;
    return "there is no machine code for it";
}

static TuneArray result_of(const Tuning *t, int i)
{
    const Arg *a = &t->args->body->arg[i];
    const weft_tensor *r = &t->args->result->tensor[i];
    TuneArray out = { .name = a->name, .type = api_place(t->args->result->env, a)->type, .n = 1 };

    for (int d = 0; d < r->ndim; d++)
        out.n *= r->shape[d];
    out.data = r->data;
    return out;
}

static bool is_result(const weft_args *args, int i)
{
    weft_role role = args->body->arg[i].role;

    return (role == WEFT_OUTPUT || role == WEFT_INOUT) && args->result->tensor[i].ndim >= 0;
}

/* The arrays of a program that has the same ids, and some buffers more. */
static Env *env_for(Tuning *t, const Prog *p)
{
    const Prog *own = t->args->body->prog;
    Env *env = ir_env(&t->ctx->scratch, p), *from;

    restore(t);
    from = api_env(t->args, &t->ctx->scratch, NULL);
    memcpy(env->size, from->size, (size_t)own->nsize * sizeof *env->size);
    for (int i = 0; i < own->naxis; i++) {
        env->start[i] = from->start[i];
        for (int k = 0; k < own->axis[i]->ncoord; k++)
            env->coord[i][k] = from->coord[i][k];
    }
    for (int i = 0; i < own->nbuf; i++)
        if (!own->buf[i]->written || own->buf[i]->kind == B_INOUT)
            env->buf[i] = from->buf[i];
    return env;
}

/* Bounds of all results, by the interpreter; none where that takes too long. */
static void find_bounds(Tuning *t, const char *unused, void *out)
{
    Buf **bound;
    Prog *p = tune_bound(&t->ctx->scratch, t->args->body->prog, &bound);
    Env *env = p != NULL ? env_for(t, p) : NULL;

    (void)unused;
    (void)out;
    if (p == NULL || api_work(p, env) > MOST_BOUND_WORK)
        return;
    interp_run(&t->ctx->scratch, p, env);
    t->bound = arena_array(&t->ctx->scratch, t->nwant, sizeof *t->bound);
    for (int i = 0, n = 0; i < t->args->body->narg; i++)
        if (is_result(t->args, i)) {
            const Arg *a = &t->args->body->arg[i];
            const Buf *b = a->kind == ARG_BUF ? bound[a->buf->id] : NULL;

            t->bound[n++] = b != NULL ? env->buf[b->id].data : NULL;
        }
}

/* Against the default's results: bit for bit, or, if these differ, within what rounding explains.
 * A schedule that keeps the order of sums may change no bit, unless functions are called. */
static const char *compare(Tuning *t, bool exact)
{
    const char *why = NULL;
    int n = t->nwant;
    TuneArray *got = arena_array(&t->ctx->scratch, n, sizeof *got);

    for (int i = 0, k = 0; i < t->args->body->narg; i++)
        if (is_result(t->args, i)) {
            got[k] = result_of(t, i);
            if (why == NULL)
                why = tune_compare(&t->ctx->scratch, &t->want[k], &got[k], true, NULL);
            k++;
        }
    if (why == NULL || (exact && !t->calls))
        return why;
    if (!t->asked) {
        for (int k = 0; k < n; k++) /* a second run may use the same arrays */
            if (got[k].n > 0)
                got[k].data = arena_copy(&t->ctx->scratch, got[k].data,
                                         (size_t)got[k].n * ir_type[got[k].type].bytes);
        t->asked = true;
        tuning_attempt(t, find_bounds, "", NULL, true);
    }
    why = NULL;
    for (int k = 0; k < n && why == NULL; k++)
        why = tune_compare(&t->ctx->scratch, &t->want[k], &got[k], false,
                           t->bound != NULL ? t->bound[k] : NULL);
    return why;
}

static const char *check(void *user, const TunePoint *p)
{
    Tuning *t = user;
    const char *why = tuning_attempt(t, run, p->text, NULL, true);

    if (why == NULL)
        why = why_not(t, p->text);
    if (why == NULL)
        why = compare(t, p->exact);
    if (why != NULL)
        drop_plan(t, hold(t, p->text));
    return why;
}

/* Short runs several times; a run of a new plan is not counted. */
static double time_point(void *user, const TunePoint *p)
{
    Tuning *t = user;
    int64_t begin, took = 0;
    int n = 0;

    if (hold(t, p->text)->plan == NULL && t->at != hold(t, p->text))
        run(t, p->text, NULL);
    restore(t);
    take_up(t, p->text);
    begin = tuning_clock(t);
    while (took < SAMPLE_NS && n < MOST_RUNS) {
        api_run_kernel(t->k, t->args);
        took = tuning_clock(t) - begin;
        n++;
    }
    if (t->bytes > MOST_BYTES)
        drop_plan(t, hold(t, p->text));
    return (double)took / 1e9 / n;
}

static void drop_point(void *user, const TunePoint *p)
{
    drop_plan(user, hold(user, p->text));
}

static double now(void *user)
{
    return (double)tuning_clock(user) / 1e9;
}

static bool tell(void *user, const TuneTold *told)
{
    const Tuning *t = user;
    weft_tuning out = { .what = told->what,
                        .schedule = told->schedule,
                        .why = told->why,
                        .done = told->done,
                        .of = told->of,
                        .elapsed_s = told->elapsed,
                        .budget_s = told->budget,
                        .best = told->best,
                        .best_s = told->best_s,
                        .default_s = told->default_s };

    return t->opt->tell != NULL && t->opt->tell(t->opt->user, &out) != 0;
}

typedef struct Queue { /* of what is compiled, in order, by whoever is free */
    const Os *os;
    JitStop *stop;
    const JitRequest *request[MOST_TOGETHER];
    int n;
    atomic_int next;
} Queue;

/* What fails here fails again, and says so, when the variant is made. */
static void compile(Jit *jit, const JitRequest *request)
{
    jmp_buf trap;
    Err err = { .trap = &trap };

    if (setjmp(trap) == 0)
        jit_release(jit_get(jit, &err, request, NULL));
}

static Jit *new_jit(const Os *os)
{
    jmp_buf trap;
    Err err = { .trap = &trap };

    return setjmp(trap) == 0 ? jit_new(os, &err) : NULL;
}

/* By a thread, with a Jit of its own: one Jit compiles one at a time. */
static void *compile_all(void *arg)
{
    Queue *q = arg;
    Jit *jit = new_jit(q->os);

    if (jit != NULL)
        jit_set_stop(jit, q->stop);

    for (int i = atomic_fetch_add(&q->next, 1); i < q->n && jit != NULL;
         i = atomic_fetch_add(&q->next, 1))
        compile(jit, q->request[i]);
    jit_free(jit);
    return NULL;
}

/* The same by who has the clock, too: when the time is up, nobody takes another.  How many were
 * taken. */
static int compile_until(Queue *q, Tuning *t, double until)
{
    int i = 0, n = q->n;

    while (i < n && now(t) <= until) {
        i = atomic_fetch_add(&q->next, 1);
        if (i < n)
            compile(api_jit(t->ctx), q->request[i]);
    }
    i = atomic_exchange(&q->next, n);
    return i < n ? i : n;
}

static int run_queue(Queue *q, Tuning *t, double until)
{
    const Os *os = q->os;
    pthread_t thread[MOST_THREADS];
    int began = 0, done;

    while (began + 1 < t->compilers && began + 1 < q->n &&
           os->thread_new(os, &thread[began], compile_all, q) == 0)
        began++;
    done = compile_until(q, t, until);
    for (int i = 0; i < began; i++)
        os->thread_join(os, thread[i]);
    return done;
}

static void add_request(Tuning *t, const char *text, void *out)
{
    VariantKey key = { .index = t->index, .size = t->size, .sched = text };
    Text source = { .arena = &t->trees };
    const Lowered *l = kernel_lower(t->ctx, &t->trees, t->k->body, &key, &source);

    *(const JitRequest **)out = kernel_request(&t->trees, l, &source);
}

/* Leaves the kernels in the cache, where the variants find them.  What cannot be lowered is found
 * out again when it is checked. */
static int build(void *user, const char *const *text, int n, double until)
{
    Tuning *t = user;
    Queue q = { .os = t->ctx->os, .stop = &t->ctx->stop };
    int done;

    for (int i = 0; i < n; i++)
        q.n += tuning_attempt(t, add_request, text[i], &q.request[q.n], false) == NULL;
    done = run_queue(&q, t, until);
    arena_free(&t->trees);
    return done < q.n ? done : n;
}

static void save_inouts(Tuning *t)
{
    const weft_args *args = t->args;
    Arena *arena = &t->ctx->scratch;

    t->saved = arena_array(arena, args->body->narg, sizeof *t->saved);
    for (int i = 0; i < args->body->narg; i++)
        if (args->body->arg[i].role == WEFT_INOUT && args->bound[i].how == HOW_USER) {
            Saved *s = &t->saved[t->nsaved];

            s->view = args->bound[i].view;
            s->copy = arena_raw(arena, s->view.n, ir_type[s->view.type].bytes);
            view_gather(&s->view, s->copy, NULL);
            t->nsaved++;
        }
}

/* The first run is by the default schedule; its results are what all others are held against. */
static void run_default(Tuning *t)
{
    Arena *arena = &t->ctx->scratch;

    t->k->busy = COST_HOT; /* so that none is compiled while it is timed */
    run(t, "", NULL);
    t->want = arena_array(arena, t->args->body->narg, sizeof *t->want);
    for (int i = 0; i < t->args->body->narg; i++)
        if (is_result(t->args, i)) {
            TuneArray *a = &t->want[t->nwant++];

            *a = result_of(t, i);
            if (a->n > 0)
                a->data = arena_copy(arena, a->data, (size_t)a->n * ir_type[a->type].bytes);
        }
    t->index = t->k->last->key.index;
    t->size = t->k->last->key.size;
    t->env = t->args->result->env;
    t->calls = tune_calls(t->args->body->prog);
}

static void keep_record(Tuning *t, const TuneFound *found)
{
    const Os *os = t->ctx->os;
    TuneRecord r = { .seconds = found->seconds,
                     .default_s = found->default_s,
                     .when = os->clock(os, CLOCK_REALTIME) / 1000000000,
                     .schedule = found->best->text };

    api_tuned_keep(t->args, t->args->result->env, t->threads, &r);
}

static void search(Tuning *t, weft_tuned *out)
{
    TuneLimits limits = { .seconds = t->opt->seconds > 0 ? t->opt->seconds : SECONDS,
                          .top = t->opt->top > 0 ? t->opt->top : TOP,
                          .together = EACH * t->compilers };
    TuneAsk ask = tuning_ask(t);
    TuneDo act = { t, build, check, time_point, drop_point, now, tell };
    TuneSpace space;
    TuneFound found;

    save_inouts(t);
    run_default(t);
    limits.since = (double)t->begin / 1e9;
    if (tuning_predicts(t))
        limits.pick = api_pick(t->ctx, t->k->body->prog, t->env, t->threads, true);
    tuning_space(t, &space);
    tune_search(&space, &ask, &act, &limits, &found);
    run(t, found.best->text, NULL); /* what the arguments hold from now on */
    if (found.timed > 1 && !api_skips(t->ctx)) /* records are of the whole pipeline */
        keep_record(t, &found);
    *out = (weft_tuned){ .seconds = found.seconds,
                         .default_s = found.default_s,
                         .pick_s = found.pick_s,
                         .points = space.npoint,
                         .compiled = found.compiled,
                         .timed = found.timed,
                         .wrong = found.wrong,
                         .stopped = found.stopped,
                         .turns = found.turns,
                         .spread = found.spread };
    out->schedule =
        arena_copy(&t->k->box->arena, found.best->text, strlen(found.best->text) + 1);
}

/* The plan of the best stays, if the kernel is free to choose it. */
static void close_tuning(Tuning *t, const char *sched, bool good)
{
    Held *best = t->at;

    put_back(t);
    for (int i = 0; i < t->n; i++)
        if (!good || sched != NULL || t->held[i] != best)
            drop_plan(t, t->held[i]);
    t->args->plan = NULL;
    t->k->sched = sched;
    t->k->number = ++t->ctx->kernels;
    if (good && sched == NULL && best != NULL) {
        t->args->plan = best->plan;
        t->k->number = best->number;
    }
    arena_free(&t->trees);
}

static int count_compilers(const Os *os)
{
    int cpus = os->cpus(os);

    return cpus < MOST_THREADS ? cpus : MOST_THREADS;
}

static void tune(weft_kernel *k, weft_args *args, const weft_tune *opt, weft_tuned *out)
{
    const char *sched = k->sched;
    jmp_buf trap, *outer = k->h.ctx->err.trap;
    Tuning t;

    tuning_open(&t, k, args);
    t.opt = opt;
    t.compilers = count_compilers(k->h.ctx->os);
    plan_drop(args);
    k->h.ctx->err.trap = &trap;
    if (setjmp(trap) == 0)
        search(&t, out);
    k->h.ctx->err.trap = outer;
    if (k->h.ctx->err.code != ST_OK)
        restore(&t);
    close_tuning(&t, sched, k->h.ctx->err.code == ST_OK);
    if (k->h.ctx->err.code != ST_OK)
        err_jump(&k->h.ctx->err);
}

static void check_options(const weft_kernel *k, const weft_tune *opt)
{
    Err *err = &k->h.ctx->err;

    if (!(opt->seconds >= 0 && opt->seconds <= 1e6) || opt->top < 0 || opt->top > MOST_TOP)
        err_throw(err, ST_ARG, "seconds are from 0 to 1e6, and top from 0 to %d", MOST_TOP);
    if (kernel_why(k) != NULL)
        err_throw(err, ST_LIMIT, "%s cannot be tuned, because it is interpreted: %s",
                  k->body->prog->name, kernel_why(k));
}

weft_status weft_kernel_tune(weft_kernel *kernel, weft_args *args, const weft_tune *opt,
                             weft_tuned *out)
{
    weft_ctx *ctx = api_ctx_of(kernel, TAG_KERNEL);
    const weft_tune none = { 0, 0, NULL, NULL };
    weft_tuned found = { 0 };

    API_ENTER(ctx);
    api_need(ctx, args, "args");
    check_options(kernel, opt != NULL ? opt : &none);
    tune(kernel, args, opt != NULL ? opt : &none, &found);
    if (out != NULL)
        *out = found;
    return api_leave(ctx);
}
