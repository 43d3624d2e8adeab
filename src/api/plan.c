/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * What is worked out once for a kernel and its arguments: sizes, checked structure, memory, ranges.
 * After that a run only looks up where the caller's arrays are.  A plan holds as long as sizes,
 * shapes and the content of structure arrays stay the same. */
#include "api/api_int.h"
#include "emit/emit.h"
#include "lower/lower.h"
#include "run/run.h"

#include <string.h>

typedef struct Feed {    /* where an array of the kernel comes from */
    int arg;             /* the argument that it is; -1: structure, or the kernel's own */
    bool callers;        /* it is the caller's own array */
    int64_t at;          /* else, when not -1, it is here in the plan's block, and */
    bool take, give;     /* copied in before a run, and back after it */
    const Array *packed; /* what is copied in when no view is bound: the values of a matrix */
} Feed;

typedef struct Plan {
    Box *box;
    unsigned kernel, shapes; /* that it was made for */
    Result *result;
    void *block; /* of outputs that are not bound, temporaries, copies of what is not plain */
    int64_t bytes;
    int narray, nphase;
    Feed *feed;
    void **array; /* what the kernel gets */
    int64_t *size;
    RunPhase *phase;
} Plan;

static void reserve(Arena *arena, Plan *plan, Feed *f, int64_t n, Type type)
{
    int64_t bytes;

    if (int_mul(n, ir_type[type].bytes, &bytes) || int_add(bytes, RUN_LINE, &bytes))
        err_throw(arena->err, ST_NOMEM, "out of memory: an array of %lld elements", (long long)n);
    f->at = plan->bytes;
    if (int_add(plan->bytes, bytes - bytes % RUN_LINE, &plan->bytes))
        err_throw(arena->err, ST_NOMEM, "out of memory: a plan of more than 2^63 bytes");
}

static int arg_of(const Body *body, const Buf *b)
{
    for (int i = 0; i < body->narg; i++)
        if (body->arg[i].kind == ARG_BUF && body->arg[i].buf->id == b->id)
            return i;
    return -1;
}

static void feed_argument(weft_args *args, Arena *arena, Plan *plan, int i, const Array *a)
{
    Feed *f = &plan->feed[i];
    const Bound *b = &args->bound[f->arg];
    weft_role role = args->body->arg[f->arg].role;

    f->callers = b->how == HOW_USER ? b->view.plain : b->how == HOW_FILE && role == WEFT_INPUT;
    if (f->callers)
        return;
    plan->array[i] = a->data;
    if (b->how == HOW_MATRIX && role == WEFT_INPUT)
        return;
    reserve(arena, plan, f, a->n, a->type);
    f->take = role != WEFT_OUTPUT;
    f->give = role != WEFT_INPUT && b->how == HOW_USER;
    f->packed = b->how == HOW_MATRIX ? arena_copy(arena, a, sizeof *a) : NULL;
}

static void feed_arrays(weft_args *args, Arena *arena, Plan *plan, const Lowered *l, const Env *env)
{
    plan->narray = l->info->narray;
    plan->feed = arena_array(arena, plan->narray, sizeof *plan->feed);
    plan->array = arena_array(arena, plan->narray, sizeof *plan->array);
    for (int i = 0; i < plan->narray; i++) {
        const Buf *b = l->info->array[i];
        Array a = lower_array(arena, l->prog, env, b);
        Feed *f = &plan->feed[i];

        *f = (Feed){ .arg = b->of == NULL ? arg_of(args->body, b) : -1, .at = -1 };
        if (f->arg >= 0)
            feed_argument(args, arena, plan, i, &a);
        else if (b->of != NULL)
            plan->array[i] = a.data;
        else if (b->kind != B_CONST) /* which is in the text */
            reserve(arena, plan, f, a.n, a.type);
    }
}

static void make_phases(Arena *arena, Plan *plan, const weft_kernel *k, const Env *env)
{
    const EmitKernel *info = k->lowered->info;
    const Prog *p = k->lowered->prog;

    plan->nphase = info->nphase;
    plan->phase = arena_array(arena, info->nphase, sizeof *plan->phase);
    for (int i = 0; i < info->nphase; i++) {
        const EmitPhase *f = &info->phase[i];
        RunPhase *to = &plan->phase[i];

        *to = (RunPhase){ .n = f->parallel ? lower_value(arena, p, env, f->extent) : 1,
                          .serial = !f->parallel };
        *(void **)&to->fn = k->fn[i];
        for (int a = 0; a < info->narray && f->balance != NULL; a++)
            if (info->array[a] == f->balance) {
                to->balance = plan->array[a];
                to->balance_bytes = sizeof(int64_t);
            }
    }
}

static void make_sizes(Arena *arena, Plan *plan, const Lowered *l, const Env *env)
{
    int n = l->prog->nsize;

    for (int i = 0; i < n; i++)
        if (env->size[i] >> LOWER_SIZE_BITS != 0)
            err_throw(arena->err, ST_LIMIT, "the size %s is %lld; kernels take sizes below 2^%d",
                      l->prog->size[i]->name, (long long)env->size[i], LOWER_SIZE_BITS);
    plan->size = arena_array(arena, n + l->info->ncount, sizeof *plan->size);
    memcpy(plan->size, env->size, (size_t)n * sizeof *plan->size);
    for (int i = 0; i < l->info->ncount; i++)
        plan->size[n + i] = ir_axis_total(l->prog, env, l->info->count[i]);
}

/* The entries of an axis in another order, for a pass that wanted them so. */
static void transpose(Arena *arena, const Prog *p, Env *env, const Axis *a)
{
    const Axis *from = a->from;
    int64_t rows = ir_axis_total(p, env, from->parent), n = ir_axis_total(p, env, a->parent);
    Array *start = &env->start[a->id], *entry = &env->coord[a->id][0], *row = &env->coord[a->id][1];

    start->n = n + 1;
    entry->n = row->n = ir_axis_total(p, env, from);
    start->type = entry->type = row->type = T_i64;
    start->data = arena_array(arena, start->n, sizeof(int64_t));
    entry->data = arena_array(arena, entry->n, sizeof(int64_t));
    row->data = arena_array(arena, row->n, sizeof(int64_t));
    run_transpose(env->start[from->id].data, rows, env->coord[from->id][a->from_k].data, n,
                  start->data, entry->data, row->data);
}

/* The environment of the program as it was lowered, which has more axes. */
static Env *lowered_env(Arena *arena, const Prog *before, const Prog *p, const Env *env)
{
    Env *e = ir_env(arena, p);

    memcpy(e->size, env->size, (size_t)before->nsize * sizeof *e->size);
    memcpy(e->start, env->start, (size_t)before->naxis * sizeof *e->start);
    memcpy(e->coord, env->coord, (size_t)before->naxis * sizeof *e->coord);
    memcpy(e->buf, env->buf, (size_t)before->nbuf * sizeof *e->buf);
    for (int i = before->naxis; i < p->naxis; i++)
        if (p->axis[i]->from != NULL)
            transpose(arena, p, e, p->axis[i]);
    return e;
}

/* Last of all: memory that is no arena's.  The old plan's will do when it is large enough. */
static void take_block(weft_ctx *ctx, Plan *plan, Plan *old)
{
    if (plan->bytes == 0)
        return;
    if (old != NULL && old->bytes >= plan->bytes) {
        plan->block = old->block;
        plan->bytes = old->bytes;
        old->block = NULL;
        return;
    }
    plan->block = run_alloc(ctx->os, plan->bytes);
    if (plan->block == NULL)
        err_throw(&ctx->err, ST_NOMEM, "out of memory: %lld more bytes were needed",
                  (long long)plan->bytes);
}

void plan_drop(weft_args *args)
{
    Plan *plan = args->plan;

    if (plan == NULL)
        return;
    if (args->result == plan->result)
        args->result = NULL;
    args->plan = NULL;
    run_free(args->h.ctx->os, plan->block);
    box_drop(plan->box);
}

/* Room for what can be read back after a run: results, and what came from files. */
static void place_results(weft_args *args, Arena *arena, Env *env)
{
    Layout layout;

    for (int i = 0; i < args->body->narg; i++) {
        const Arg *a = &args->body->arg[i];
        const View *v = &args->bound[i].view;

        if (a->kind != ARG_BUF)
            continue;
        if (a->role != WEFT_INPUT) {
            ir_layout(arena, args->body->prog, env, a->buf, &layout);
            *api_place(env, a) = (Array){ NULL, layout.n, a->type };
        } else if (args->bound[i].how == HOW_FILE) {
            *api_place(env, a) = (Array){ v->data, v->n, v->type };
        }
    }
}

static Plan *make(weft_kernel *k, weft_args *args)
{
    weft_ctx *ctx = args->h.ctx;
    Arena *arena = &api_box(ctx)->arena;
    Plan *plan = arena_alloc(arena, sizeof *plan);
    Env *env = api_env(args, arena, true), *own;

    own = lowered_env(arena, args->body->prog, k->lowered->prog, env);
    plan->kernel = k->number;
    plan->shapes = args->shapes;
    feed_arrays(args, arena, plan, k->lowered, own);
    make_sizes(arena, plan, k->lowered, own);
    make_phases(arena, plan, k, own);
    place_results(args, arena, env);
    plan->result = api_collect(args, arena, env);
    take_block(ctx, plan, args->plan);
    plan_drop(args);
    plan->box = api_keep(ctx);
    for (int i = 0; i < plan->narray; i++)
        if (plan->feed[i].at >= 0)
            plan->array[i] = (char *)plan->block + plan->feed[i].at;
    return args->plan = plan;
}

static bool has_same(Arena *scratch, const View *v, const int64_t *had)
{
    const void *data = v->data;
    bool same = true;

    if (v->n > 0 && !v->plain) {
        void *copy = arena_array(scratch, v->n, sizeof *had);

        view_gather(v, copy);
        data = copy;
    }
    if (v->type == T_i64)
        return v->n == 0 || memcmp(data, had, (size_t)v->n * sizeof *had) == 0;
    for (int64_t i = 0; i < v->n; i++)
        same &= ((const int32_t *)data)[i] == had[i];
    return same;
}

/* Structure that was bound anew, as it is for a new graph or for the old one in another place. */
static bool structure_is_same(weft_args *args, const Plan *plan)
{
    bool same = true;

    for (int i = 0; i < args->body->narg && same; i++) {
        const Arg *a = &args->body->arg[i];

        if (a->role == WEFT_INPUT && a->kind != ARG_BUF && args->bound[i].fresh &&
            args->bound[i].how == HOW_USER)
            same = has_same(&args->h.ctx->scratch, &args->bound[i].view,
                            api_place(plan->result->env, a)->data);
    }
    return same;
}

Plan *api_plan(weft_kernel *k, weft_args *args, bool *made)
{
    Plan *plan = args->plan;

    if (args->fresh)
        api_check_overlap(args);
    *made = plan == NULL || plan->kernel != k->number || plan->shapes != args->shapes ||
            (args->fresh && !structure_is_same(args, plan));
    if (*made)
        plan = make(k, args);
    for (int i = 0; i < args->body->narg && args->fresh; i++)
        args->bound[i].fresh = false;
    args->fresh = false;
    return plan;
}

/* Results are where the kernel puts them. */
static void set_result(weft_args *args, Plan *plan, int i)
{
    const Arg *a = &args->body->arg[plan->feed[i].arg];

    if (a->role == WEFT_INPUT)
        return;
    plan->result->tensor[plan->feed[i].arg].data = plan->array[i];
    api_place(plan->result->env, a)->data = plan->array[i];
}

static void begin(weft_args *args, Plan *plan)
{
    for (int i = 0; i < plan->narray; i++) {
        const Feed *f = &plan->feed[i];

        if (f->callers)
            plan->array[i] = args->bound[f->arg].view.data;
        if (f->take && f->packed != NULL)
            memcpy(plan->array[i], f->packed->data,
                   (size_t)f->packed->n * ir_type[f->packed->type].bytes);
        else if (f->take)
            view_gather(&args->bound[f->arg].view, plan->array[i]);
        if (f->arg >= 0)
            set_result(args, plan, i);
    }
}

int64_t api_run_plan(weft_args *args, Pool *pool)
{
    Plan *plan = args->plan;
    int64_t fault;

    api_set_result(args, NULL);
    begin(args, plan);
    fault = run_phases(pool, plan->phase, plan->nphase, plan->array, plan->size);
    if (fault != 0)
        return fault;
    for (int i = 0; i < plan->narray; i++)
        if (plan->feed[i].give)
            view_scatter(&args->bound[plan->feed[i].arg].view, plan->array[i]);
    args->result = plan->result;
    return 0;
}

/* Of each phase the length of its range, and into how many pieces that is cut. */
void api_print_plan(Text *out, const weft_args *args, const weft_kernel *k)
{
    const Plan *plan = args->plan;

    for (int i = 0; i < plan->nphase; i++)
        text_f(out, "; %s: %lld in %lld", k->lowered->label[i], (long long)plan->phase[i].n,
               (long long)run_chunks(&plan->phase[i]));
}
