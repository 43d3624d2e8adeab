/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Built axes in a run of a kernel.  A plan treats them as empty.  In a run, the phase that builds
 * an axis first counts its entries, then writes them into memory of that size; then counts, ranges
 * and arrays that depend on the axis are set.  The plan owns the memory and keeps it for the next
 * run. */
#include "api/api_int.h"
#include "emit/emit.h"
#include "lower/lower.h"
#include "run/run.h"

#include <string.h>

typedef struct Block {
    void *data;
    int64_t bytes; /* room */
} Block;

struct Late {
    const Body *body;
    const Lowered *lowered;
    Env *own, *env; /* of the program as it was lowered, and of the results */
    Block *start, **coord, *array; /* by Axis.id, and k; by array of the kernel */
    int naxis, narray;
    int64_t *room; /* by phase: of the list of keys; see run/run.h */

    /* of the plan that it is in */
    RunPhase *phase;
    void **pointer; /* what the kernel gets, by array */
    int64_t *size;
};

static bool hangs_on(const Axis *a, const Axis *u)
{
    for (; a != NULL; a = a->parent)
        if (u == NULL ? a->extent == X_BUILT : a == u)
            return true;
    return false;
}

/* Whether an array depends on axis u; NULL: on any that is built. */
static bool depends_on(const Buf *b, const Axis *u)
{
    bool on = hangs_on(b->of, u);

    for (int k = 0; k < b->nfull; k++)
        on = on || hangs_on(b->full[k], u);
    return on;
}

bool late_has(const Late *l, const Buf *b)
{
    return l != NULL && depends_on(b, NULL);
}

static void set_start(Late *l, const Axis *u, Array a)
{
    l->own->start[u->id] = l->env->start[u->id] = a;
}

static int64_t parents_of(const Late *l, const Axis *u)
{
    return u->parent == NULL ? 1 : ir_axis_total(l->lowered->prog, l->own, u->parent);
}

/* For the plan: no axis has entries. */
static void begin_empty(Late *l, Arena *arena)
{
    const Prog *p = l->body->prog;

    for (int i = 0; i < p->naxis; i++) {
        const Axis *u = p->axis[i];

        if (u->extent != X_BUILT)
            continue;
        set_start(l, u, (Array){ NULL, parents_of(l, u) + 1, T_i64 });
        l->own->start[i].data = l->env->start[i].data =
            arena_array(arena, l->own->start[i].n, sizeof(int64_t));
        for (int k = 0; k < u->ncoord; k++)
            l->own->coord[i][k] = l->env->coord[i][k] = (Array){ l->room, 0, T_i64 };
    }
}

Late *late_new(weft_args *args, Arena *arena, const Lowered *lowered, Env *own, Env *env)
{
    const Prog *p = args->body->prog;
    Late *l = arena_alloc(arena, sizeof *l);
    bool built = false;

    for (int i = 0; i < p->naxis; i++)
        built = built || p->axis[i]->extent == X_BUILT;
    if (!built)
        return NULL;
    *l = (Late){ .body = args->body, .lowered = lowered, .own = own, .env = env };
    l->naxis = p->naxis;
    l->narray = lowered->info->narray;
    l->start = arena_array(arena, l->naxis, sizeof *l->start);
    l->coord = arena_array(arena, l->naxis, sizeof *l->coord);
    l->array = arena_array(arena, l->narray, sizeof *l->array);
    l->room = arena_array(arena, lowered->info->nphase, sizeof *l->room);
    for (int i = 0; i < l->naxis; i++)
        l->coord[i] = arena_array(arena, p->axis[i]->ncoord, sizeof **l->coord);
    begin_empty(l, arena);
    return l;
}

void late_join(Late *l, RunPhase *phase, void **array, int64_t *size)
{
    l->phase = phase;
    l->pointer = array;
    l->size = size;
}

void late_free(const Os *os, Late *l)
{
    for (int i = 0; l != NULL && i < l->naxis; i++) {
        run_free(os, l->start[i].data);
        for (int k = 0; k < l->body->prog->axis[i]->ncoord; k++)
            run_free(os, l->coord[i][k].data);
    }
    for (int i = 0; l != NULL && i < l->narray; i++)
        run_free(os, l->array[i].data);
}

/* Room for n elements, old content gone.  Somewhat more than that when there was too little, as
 * the next run may have a few entries more. */
static void *make_room(weft_ctx *ctx, Block *b, int64_t n, Type type)
{
    int64_t bytes;

    if (int_mul(n, ir_type[type].bytes, &bytes))
        err_throw(&ctx->err, ST_NOMEM, "out of memory: an array of %lld elements", (long long)n);
    if (b->data != NULL && b->bytes >= bytes)
        return b->data;
    if (b->data != NULL && int_add(bytes, bytes / 8, &bytes))
        bytes = INT64_MAX;
    run_free(ctx->os, b->data);
    *b = (Block){ run_alloc(ctx->os, bytes), bytes };
    if (b->data == NULL)
        err_throw(&ctx->err, ST_NOMEM, "out of memory: %lld more bytes were needed",
                  (long long)bytes);
    return b->data;
}

/* An axis without entries yet, below all positions that its parent has now. */
static void empty(Late *l, weft_ctx *ctx, const Axis *u)
{
    int64_t n = parents_of(l, u) + 1;
    Array start = { make_room(ctx, &l->start[u->id], n, T_i64), n, T_i64 };

    memset(start.data, 0, (size_t)n * sizeof(int64_t));
    set_start(l, u, start);
    for (int k = 0; k < u->ncoord; k++)
        l->own->coord[u->id][k] = l->env->coord[u->id][k] =
            (Array){ make_room(ctx, &l->coord[u->id][k], 0, T_i64), 0, T_i64 };
}

/* All built axes below u; NULL: all that there are. */
static void empty_below(Late *l, weft_ctx *ctx, const Axis *u)
{
    const Prog *p = l->body->prog;

    for (int i = 0; i < p->naxis; i++) {
        bool below = u == NULL || ir_is_ancestor(p->axis[u->id], p->axis[i]);

        if (p->axis[i]->extent == X_BUILT && below)
            empty(l, ctx, p->axis[i]);
    }
}

static void *place(Late *l, weft_ctx *ctx, int i)
{
    const Buf *b = l->lowered->info->array[i];
    Array a = lower_array(&ctx->scratch, l->lowered->prog, l->own, b);

    return b->of != NULL ? a.data : make_room(ctx, &l->array[i], a.n, a.type);
}

/* What depends on axis u, now that it has its entries; NULL: on any. */
static void know(Late *l, weft_ctx *ctx, const Axis *u)
{
    const EmitKernel *info = l->lowered->info;
    const Prog *p = l->lowered->prog;

    for (int i = 0; i < info->narray; i++)
        if (depends_on(info->array[i], u) && info->array[i]->kind != B_CONST)
            l->pointer[i] = place(l, ctx, i);
    for (int i = 0; i < info->ncount; i++)
        if (hangs_on(info->count[i], u))
            l->size[p->nsize + i] = ir_axis_total(p, l->own, info->count[i]);
    for (int i = 0; i < info->nphase; i++) {
        const EmitPhase *f = &info->phase[i];

        if (f->parallel)
            l->phase[i].n = lower_value(&ctx->scratch, p, l->own, f->extent);
        api_balance(l->lowered, l->own, i, l->pointer, &l->phase[i]);
    }
}

/* How many keys there are: the product of all bounds. */
static int64_t tell_bounds(Late *l, weft_ctx *ctx, const EmitPhase *f, int64_t *how)
{
    const Axis *u = f->builds;
    int64_t keys = f->whole ? parents_of(l, u) : 1;
    bool over = false;

    for (int k = 0; k < u->ncoord; k++) {
        int64_t bound = ir_eval_size(l->lowered->prog, l->own, u->coord[k].bound);

        how[EMIT_BOUNDS + k] = bound;
        over = over || int_mul(keys, bound > 0 ? bound : 0, &keys);
    }
    if (over || keys >> 62 != 0)
        err_throw(&ctx->err, ST_LIMIT,
                  "axis %s: there are 2^62 combinations of coordinates or more%s, which a kernel "
                  "cannot tell apart",
                  u->name, f->whole ? " and rows" : "");
    return keys;
}

/* Entries of each row to start, one place further on. */
static int64_t count(Late *l, Pool *pool, int i, int64_t *how, const Array *start)
{
    RunPhase *phase = &l->phase[i];
    int64_t fault, keys = how[EMIT_KEYS], room = run_set_room(keys, 0);

    if (room > 0 && room < l->room[i])
        room = l->room[i]; /* as in the last run */
    how[EMIT_FILL] = 0;
    do {
        how[EMIT_ROOM] = l->room[i] = room;
        phase->work_bytes = run_set_bytes(keys, room);
        if (phase->work_bytes < 0)
            return RUN_NOMEM;
        memset(start->data, 0, (size_t)start->n * sizeof(int64_t));
        fault = run_phases(pool, phase, 1, l->pointer, l->size);
        room = run_set_room(keys, room);
    } while (fault == FAULT_ROOM);
    return fault;
}

static int64_t build(Late *l, weft_ctx *ctx, Pool *pool, int i)
{
    const EmitKernel *info = l->lowered->info;
    const Axis *u = info->phase[i].builds;
    int64_t *how = l->size + l->lowered->prog->nsize + info->ncount + info->phase[i].how;
    Array *start = &l->own->start[u->id];
    int64_t fault, n;

    how[EMIT_KEYS] = tell_bounds(l, ctx, &info->phase[i], how);
    fault = count(l, pool, i, how, start);
    if (fault != 0)
        return fault;
    run_sum_starts(start->data, start->n - 1);
    n = ((int64_t *)start->data)[start->n - 1];
    for (int k = 0; k < u->ncoord; k++)
        l->own->coord[u->id][k] = l->env->coord[u->id][k] =
            (Array){ make_room(ctx, &l->coord[u->id][k], n, T_i64), n, T_i64 };
    empty_below(l, ctx, u);
    know(l, ctx, u);
    how[EMIT_FILL] = 1;
    return n == 0 ? 0 : run_phases(pool, &l->phase[i], 1, l->pointer, l->size);
}

int64_t late_run(Late *l, weft_ctx *ctx, Pool *pool)
{
    const EmitKernel *info = l->lowered->info;
    int done = 0;
    int64_t fault = 0;

    empty_below(l, ctx, NULL);
    know(l, ctx, NULL);
    for (int i = 0; i < info->nphase && fault == 0; i++)
        if (info->phase[i].builds != NULL) {
            fault = run_phases(pool, l->phase + done, i - done, l->pointer, l->size);
            if (fault == 0)
                fault = build(l, ctx, pool, i);
            done = i + 1;
        }
    if (fault == 0)
        fault = run_phases(pool, l->phase + done, info->nphase - done, l->pointer, l->size);
    return fault;
}

/* Where the kernel has put a buffer, or what structure it has built. */
static void take_result(Late *l, weft_ctx *ctx, const Arg *a, weft_tensor *t)
{
    const EmitKernel *info = l->lowered->info;
    Array *array = api_place(l->env, a);
    Layout layout;

    if (a->kind == ARG_BUF) {
        ir_layout(&ctx->scratch, l->body->prog, l->env, a->buf, &layout);
        *array = (Array){ l->room, layout.n, a->type };
        for (int i = 0; i < info->narray; i++)
            if (info->array[i]->of == NULL && info->array[i]->id == a->buf->id)
                array->data = l->pointer[i];
    }
    t->data = array->data;
    api_shape(&ctx->scratch, l->body->prog, l->env, a, (int64_t *)t->shape);
}

void late_give(Late *l, weft_args *args, Result *result)
{
    for (int i = 0; i < args->body->narg; i++)
        if (args->body->arg[i].kind != ARG_SIZE && api_is_built(&args->body->arg[i]))
            take_result(l, args->h.ctx, &args->body->arg[i], &result->tensor[i]);
    api_check_shapes(args, l->env, true);
    for (int i = 0; i < args->body->narg; i++)
        if (args->bound[i].how == HOW_USER && args->body->arg[i].kind != ARG_SIZE &&
            api_is_built(&args->body->arg[i]))
            view_scatter(&args->bound[i].view, result->tensor[i].data, NULL);
}
