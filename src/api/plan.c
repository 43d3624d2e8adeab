/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Plans: sizes, checked structure, memory and ranges, computed once for a kernel and its arguments.
 * After that a run only looks up the caller's arrays.  A plan is valid while sizes, shapes and the
 * content of structure arrays stay the same. */
#include "api/api_int.h"
#include "api/device_int.h"
#include "emit/emit.h"
#include "interp/interp.h"
#include "lower/lower.h"
#include "run/run.h"

#include <string.h>
#include <time.h>

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
    const Variant *variant;  /* of the kernel */
    bool cold;               /* there could be one for its sizes, when the kernel is hot */
    Result *result;
    void *block; /* of outputs that are not bound, temporaries, copies of what is not plain */
    int64_t bytes;
    int narray, nphase;
    Feed *feed;
    void **array; /* what the kernel gets */
    int64_t *size;
    int64_t *length;  /* bytes, by array */
    OnDevice *device; /* or NULL: its kernels run here */
    RunPhase *phase;
    RunPhase *again; /* those that run again when what is held has not changed, */
    int nagain;
    HoldKind *kind; /* from this, by array, and */
    bool *kept;     /* this, by phase; */
    unsigned holds; /* of the last run, where something was held; */
    bool warm;      /* it went well */
    Late *late;               /* or NULL: the program builds no axis */
    int transposes, formats;  /* that it has, */
    int64_t ns, transpose_ns, format_ns; /* and what making it took, these included */
} Plan;

static void reserve(Arena *arena, Plan *plan, Feed *f, int64_t n, Type type)
{
    int64_t bytes;

    if (int_mul(n, ir_type[type].bytes, &bytes) || int_add(bytes, CACHE_LINE, &bytes))
        err_throw(arena->err, ST_NOMEM, "out of memory: an array of %lld elements", (long long)n);
    f->at = plan->bytes;
    if (int_add(plan->bytes, bytes - bytes % CACHE_LINE, &plan->bytes))
        err_throw(arena->err, ST_NOMEM, "out of memory: a plan of more than 2^63 bytes");
}

static int arg_of(const Body *body, const Buf *b)
{
    for (int i = 0; i < body->narg; i++)
        if (body->arg[i].kind == ARG_BUF && body->arg[i].buf->id == b->id)
            return i;
    return -1;
}

/* Whether the kernel reads the array as the caller has it, with gaps. */
static bool is_strided(const Variant *v, int arg)
{
    return v->key.stride != NULL && v->key.stride[arg] != NULL;
}

static void feed_argument(weft_args *args, Arena *arena, Plan *plan, int i, const Array *a)
{
    Feed *f = &plan->feed[i];
    const Bound *b = &args->bound[f->arg];
    weft_role role = args->body->arg[f->arg].role;

    f->callers = b->how == HOW_DEVICE ? true
                 : b->how == HOW_USER ? b->view.plain || is_strided(plan->variant, f->arg)
                                    : b->how == HOW_FILE && role == WEFT_INPUT;
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
    plan->length = arena_array(arena, plan->narray, sizeof *plan->length);
    for (int i = 0; i < plan->narray; i++) {
        const Buf *b = l->info->array[i];
        Array a = lower_array(arena, l->prog, env, b);
        Feed *f = &plan->feed[i];

        plan->length[i] = b->kind == B_CONST ? 0 : a.n * ir_type[a.type].bytes;
        if (late_has(plan->late, b)) {
            *f = (Feed){ .arg = -1, .at = -1 };
            continue;
        }
        *f = (Feed){ .arg = b->of == NULL ? arg_of(args->body, b) : -1, .at = -1 };
        if (f->arg >= 0)
            feed_argument(args, arena, plan, i, &a);
        else if (b->of != NULL)
            plan->array[i] = a.data;
        else if (b->kind != B_CONST) /* which is in the text */
            reserve(arena, plan, f, a.n, a.type);
    }
}

void api_balance(const Lowered *l, const Env *env, int phase, void *const *array, RunPhase *out)
{
    const Buf *b = l->info->phase[phase].balance;

    out->rounds = b == NULL ? 0 : lower_rounds(l->prog, env, b, out->n);
    out->balance = NULL;
    for (int a = 0; a < l->info->narray && out->rounds > 0; a++)
        if (l->info->array[a] == b) {
            out->balance = array[a];
            out->balance_bytes = ir_type[b->type].bytes;
        }
}

static void make_phases(Arena *arena, Plan *plan, const Env *env, int64_t part, int threads)
{
    const Lowered *l = plan->variant->lowered;
    const EmitKernel *info = l->info;
    const Prog *p = l->prog;

    plan->nphase = info->nphase;
    plan->phase = arena_array(arena, info->nphase, sizeof *plan->phase);
    plan->again = arena_array(arena, info->nphase, sizeof *plan->again);
    plan->kept = arena_array(arena, info->nphase, sizeof *plan->kept);
    plan->kind = arena_array(arena, info->narray, sizeof *plan->kind);
    for (int i = 0; i < info->nphase; i++) {
        const EmitPhase *f = &info->phase[i];
        RunPhase *to = &plan->phase[i];

        *to = (RunPhase){ .n = f->parallel ? lower_value(arena, p, env, f->extent) : 1,
                          .serial = !f->parallel,
                          .grain = api_grain(arena, l, env, i) };
        if (plan->variant->fn != NULL)
            *(void **)&to->fn = plan->variant->fn[i];
        if (f->parts != NULL)
            to->part = env->coord[f->parts->of->id][f->parts->of_k].data;
        api_balance(l, env, i, plan->array, to);
        if (l->work[i].sliced != NULL && plan->late == NULL && to->fn != NULL)
            to->slices = api_slices(arena, l, env, i, to, part, threads);
    }
}

static void make_sizes(Arena *arena, Plan *plan, const Lowered *l, const Env *env)
{
    int n = l->prog->nsize;

    for (int i = 0; i < n; i++)
        if (env->size[i] >> LIMIT_SIZE_BITS != 0)
            err_throw(arena->err, ST_LIMIT, "the size %s is %lld; kernels take sizes below 2^%d",
                      l->prog->size[i]->name, (long long)env->size[i], LIMIT_SIZE_BITS);
    plan->size = arena_array(arena, n + l->info->ncount + l->info->nhow, sizeof *plan->size);
    memcpy(plan->size, env->size, (size_t)n * sizeof *plan->size);
    for (int i = 0; i < l->info->ncount; i++)
        plan->size[n + i] = ir_axis_total(l->prog, env, l->info->count[i]);
}

typedef struct Making { /* of a plan */
    weft_args *args;
    Arena *arena;
    Pool *pool;
    Plan *plan;
    const Lowered *l;
} Making;

static int64_t now(const weft_args *args)
{
    const Os *os = args->h.ctx->os;

    return os->clock(os, CLOCK_MONOTONIC);
}

/* A pass may want an axis and then do without. */
static bool is_used(const Lowered *l, const Axis *a)
{
    bool used = l->info == NULL;

    if (used) /* nobody has looked */
        return true;
    for (int i = 0; i < l->info->narray; i++)
        used = used || l->info->array[i]->of == a;
    for (int i = 0; i < l->info->ncount; i++)
        used = used || l->info->count[i] == a;
    for (int i = 0; i < l->prog->naxis; i++)
        used = used || l->prog->axis[i]->from == a;
    return used;
}

static void *room(Arena *arena, Array *out, int64_t n, Type type)
{
    *out = (Array){ arena_raw(arena, n, ir_type[type].bytes), n, type };
    return out->data;
}

static void set_rows(const Making *m, Env *env, const Axis *a, RunTranspose *t, int64_t n,
                     Type type)
{
    const Array *start = &env->start[a->from->id];

    if (a->from->extent == X_EXPR) {
        t->width = ir_eval_size(m->l->prog, env, a->from->size);
    } else {
        t->start = start->data;
        t->start_bytes = ir_type[start->type].bytes;
    }
    t->rows = ir_axis_total(m->l->prog, env, a->from->parent);
    t->out_row = room(m->arena, &env->coord[a->id][1], n, type);
}

/* The coordinate to order by, of entries of which some are padding: there it is -1.  Gives the
 * number of the others. */
static int64_t present(const Making *m, const Env *env, const Axis *a, RunTranspose *t)
{
    const Axis *e = a->from;
    int64_t *key = arena_array(&m->args->h.ctx->scratch, t->entries, sizeof *key), n = 0;

    for (int64_t i = 0; i < t->entries; i++)
        key[i] = ir_array_int(&env->coord[e->id][a->from_k], i);
    for (int k = 0; k < e->ncoord; k++) {
        Expr *is = e->coord[k].bound;
        int64_t bound = is == NULL ? 0 : ir_eval_size(m->l->prog, env, is);

        for (int64_t i = 0; i < t->entries && is != NULL; i++) {
            int64_t x = ir_array_int(&env->coord[e->id][k], i);

            key[i] = 0 <= x && x < bound ? key[i] : -1;
        }
    }
    for (int64_t i = 0; i < t->entries; i++)
        n += key[i] >= 0;
    t->coord = key;
    t->coord_bytes = (int)sizeof *key;
    return n;
}

static bool is_read(const Lowered *l, const Axis *a, int n)
{
    bool read = l->info == NULL;

    for (int i = 0; !read && i < l->info->narray; i++)
        read = l->info->array[i]->of == a && l->info->array[i]->of_k == n;
    return read;
}

/* The coordinates that entries bring with them, in their new order, if the kernel reads them. */
static void carry(const Making *m, Env *env, const Axis *a)
{
    Array *coord = env->coord[a->id], *entry = &coord[0];

    for (int n = 0; n < a->ncoord; n++) {
        const Axis *of;
        int k = lower_carried(a, n, &of);
        const Array *from = k < 0 || !is_read(m->l, a, n) ? NULL : &env->coord[of->id][k];
        const Array *index = k >= 0 && of != a->from ? &coord[1] : entry;

        if (from != NULL)
            run_gather(m->pool,
                       &(RunGather){ .to = room(m->arena, &coord[n], entry->n, from->type),
                                     .from = from->data,
                                     .index = index->data,
                                     .n = entry->n,
                                     .bytes = ir_type[from->type].bytes,
                                     .index_bytes = ir_type[index->type].bytes });
    }
}

/* The entries of an axis in another order, for a pass that wanted them so. */
static void transpose(const Making *m, Env *env, const Axis *a)
{
    const Prog *p = m->l->prog;
    const Array *coord = &env->coord[a->from->id][a->from_k];
    Type type = loop_type(p, a, -1);
    RunTranspose t = { .coord = coord->data,
                       .entries = coord->n,
                       .n = ir_axis_total(p, env, a->parent),
                       .coord_bytes = ir_type[coord->type].bytes,
                       .out_bytes = ir_type[type].bytes };
    int64_t begin = now(m->args), n = coord->n;

    if (a->from->flags & AX_PADDED)
        n = present(m, env, a, &t);
    t.out_start = room(m->arena, &env->start[a->id], t.n + 1, type);
    t.out_entry = room(m->arena, &env->coord[a->id][0], n, type);
    if (a->from->parent != NULL)
        set_rows(m, env, a, &t, n, type);
    if (!run_transpose(m->pool, &t))
        err_throw(m->arena->err, ST_NOMEM, "out of memory: no room to transpose %s", a->from->name);
    carry(m, env, a);
    m->plan->transposes++;
    m->plan->transpose_ns += now(m->args) - begin;
}

/* The axes of all parts of a format, when its first part comes. */
static void convert(const Making *m, Env *env, const Axis *a)
{
    int64_t begin = now(m->args);
    FmtPool workers = api_workers(m->pool);

    if (a->part > 0)
        return;
    fmt_fill(m->arena, &m->args->h.ctx->scratch, &workers, m->l->prog, env, a);
    m->plan->formats++;
    m->plan->format_ns += now(m->args) - begin;
}

/* The arrays of an axis that a pass made from another, and of those above it. */
static void make_axis(const Making *m, Env *env, const Axis *a)
{
    if (a->from_k >= 0 && is_used(m->l, a))
        transpose(m, env, a);
    else if (a->from_k == FROM_FORMAT)
        convert(m, env, a);
    else if (a->from_k < 0)
        api_fill_parts(m->arena, m->l, env, a, m->args->h.ctx->part);
}

/* Of a program that was printed after a pass.  What an axis is made from is checked first: whoever
 * makes it relies on that. */
void api_make_axes(weft_args *args, Arena *arena, Env *env, Pool *pool)
{
    Prog *p = args->body->prog, before = *p;
    Lowered l = { .prog = p };
    Plan plan = { 0 };
    Making m = { .args = args, .arena = arena, .pool = pool, .plan = &plan, .l = &l };

    m.pool = pool != NULL ? pool : api_pool(args->h.ctx);
    for (int i = 0; i < p->naxis; i++) {
        const Axis *root = p->axis[i];

        if (root->from == NULL)
            continue;
        while (root->parent != NULL)
            root = root->parent;
        before.naxis = root->id;
        if (!api_is_right(&before, env, pool))
            interp_check(arena, &before, env);
        make_axis(&m, env, p->axis[i]);
    }
}

/* The sizes of strides that a run tells. */
static void set_strides(const Making *m, Env *e)
{
    for (int i = 0; i < m->args->body->narg; i++) {
        const Arg *a = &m->args->body->arg[i];
        const Buf *b = a->kind == ARG_BUF ? m->l->prog->buf[a->buf->id] : NULL;

        for (int d = 0; b != NULL && d < b->nstride; d++)
            if (b->stride[d].size != NULL)
                e->size[b->stride[d].size->id] = m->args->bound[i].view.stride[d];
    }
}

/* The environment of the program as it was lowered, which has more axes and sizes. */
static Env *lowered_env(const Making *m, const Env *env)
{
    const Prog *before = m->args->body->prog, *p = m->l->prog;
    Env *e = ir_env(m->arena, p);

    memcpy(e->size, env->size, (size_t)before->nsize * sizeof *e->size);
    memcpy(e->start, env->start, (size_t)before->naxis * sizeof *e->start);
    memcpy(e->coord, env->coord, (size_t)before->naxis * sizeof *e->coord);
    memcpy(e->buf, env->buf, (size_t)before->nbuf * sizeof *e->buf);
    set_strides(m, e);
    for (int i = before->naxis; i < p->naxis; i++)
        if (p->axis[i]->from != NULL)
            make_axis(m, e, p->axis[i]);
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
    if (plan->block == NULL) {
        device_free(plan->device);
        err_throw(&ctx->err, ST_NOMEM, "out of memory: %lld more bytes were needed",
                  (long long)plan->bytes);
    }
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
    device_free(plan->device);
    late_free(args->h.ctx->os, plan->late);
    box_drop(plan->box);
}

int64_t plan_bytes(const weft_args *args)
{
    const Plan *plan = args->plan;

    return plan == NULL ? 0 : (int64_t)plan->box->arena.total + plan->bytes;
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

/* Whether the entries of a transpose would be counted in the type of this array, and cannot be in
 * i32: starts of more rows, and coordinates of more entries that have no starts. */
static bool is_too_long(const Arg *a, const Array *is)
{
    return is->n > INT32_MAX && (a->kind == ARG_START || a->axis->parent == NULL);
}

/* The lengths of short rows, which are worth code of their own. */
static const int64_t *short_sizes(const weft_kernel *k, const weft_args *args, const Env *env,
                                  bool *cold)
{
    int n = args->body->prog->nsize;
    const Lowered *l = k->variant[0]->lowered;
    int64_t *size = arena_array(&args->h.ctx->scratch, n, sizeof *size);

    for (int i = 0; i < n && l != NULL; i++)
        if (l->in_lanes[i] && env->size[i] <= COST_SHORT) {
            *cold = k->busy < COST_HOT;
            size[i] = *cold ? 0 : env->size[i];
        }
    return size;
}

/* Strides that a kernel can read by: rows at any distance, or the same row again, of elements side
 * by side, or of one element again.  Distances are told by the run, so that one variant serves all
 * of them.  NULL: the array is copied, as small ones always are, for which code of their own is not
 * worth a compile. */
static const int64_t *strides_of(const weft_args *args, int i)
{
    const Arg *a = &args->body->arg[i];
    const Bound *b = &args->bound[i];
    const View *v = &b->view;
    int64_t least = args->h.ctx->strided, packed = 1, *out;
    bool good = a->kind == ARG_BUF && a->role == WEFT_INPUT && b->how == HOW_USER && !v->plain &&
                !api_is_built(a) && v->ndim > 0 &&
                (uintptr_t)v->data % ir_type[v->type].bytes == 0 &&
                v->n >= (least > 0 ? least : COST_STRIDED);

    if (!good)
        return NULL;
    out = arena_array(&args->h.ctx->scratch, v->ndim, sizeof *out);
    for (int d = v->ndim - 1; d >= 0 && good; d--) {
        int64_t stride = v->shape[d] == 1 ? packed : v->stride[d];

        good = stride >= 0 && (d < v->ndim - 1 || stride < 2);
        out[d] = stride < 2 ? stride : LOWER_ANY;
        packed = stride * v->shape[d];
    }
    return good ? out : NULL;
}

static const int64_t *const *find_strides(const weft_args *args)
{
    int n = args->body->narg;
    const int64_t **out = arena_array(&args->h.ctx->scratch, n, sizeof *out);
    bool any = false;

    for (int i = 0; i < n; i++) {
        out[i] = strides_of(args, i);
        any = any || out[i] != NULL;
    }
    return any ? out : NULL;
}

/* Structure is read as the caller has it, unless a transpose in its type would not fit. */
static const Variant *find_variant(weft_kernel *k, weft_args *args, const Env *env, int threads,
                                   bool *cold)
{
    int n = args->body->narg;
    const char *sched = k->sched;
    uint8_t *index = arena_alloc(&args->h.ctx->scratch, (size_t)n + 1);
    bool device = k->variant[0]->dev != NULL;

    for (int i = 0; i < n; i++) {
        const Arg *a = &args->body->arg[i];

        if ((a->kind == ARG_COORD || a->kind == ARG_START) && !is_too_long(a, api_place(env, a)))
            index[i] = api_place(env, a)->type == T_i32 ? T_i32 : 0;
    }
    if (sched == NULL && !device)
        sched = api_tuned(args, env, threads);
    if (sched == NULL && !device)
        sched = api_pick(args->h.ctx, args->body->prog, env, threads, k->busy >= COST_HOT);
    return kernel_variant(k, &(VariantKey){
                                 .index = index,
                                 .size = short_sizes(k, args, env, cold),
                                 .sched = sched,
                                 .stride = device ? NULL : find_strides(args),
                             });
}

/* By array: it is the caller's, in the memory of the device. */
static const bool *find_outside(const weft_args *args, const Plan *plan)
{
    bool *outside = arena_array(&args->h.ctx->scratch, plan->narray, sizeof *outside);

    for (int i = 0; i < plan->narray; i++)
        outside[i] = plan->feed[i].arg >= 0 && args->bound[plan->feed[i].arg].how == HOW_DEVICE;
    return outside;
}

/* All that can throw; the time it took, that of compiling a variant apart. */
static void fill(weft_kernel *k, Making *m)
{
    weft_args *args = m->args;
    Plan *plan = m->plan;
    int64_t begin = now(args), waited;
    Env *env = api_env(args, m->arena, m->pool), *own;

    waited = now(args);
    plan->variant = find_variant(k, args, env, pool_threads(m->pool), &plan->cold);
    waited = now(args) - waited;
    m->l = plan->variant->lowered;
    own = lowered_env(m, env);
    plan->late = late_new(args, m->arena, m->l, own, env);
    feed_arrays(args, m->arena, plan, m->l, own);
    make_sizes(m->arena, plan, m->l, own);
    make_phases(m->arena, plan, own, args->h.ctx->part, pool_threads(m->pool));
    if (plan->late != NULL)
        late_join(plan->late, plan->phase, plan->array, plan->size);
    place_results(args, m->arena, env);
    plan->result = api_collect(args, m->arena, env);
    if (plan->variant->dev != NULL)
        plan->device = device_plan(args->h.ctx, m->arena, plan->variant,
                                   &(DevicePlan){ plan->length, find_outside(args, plan),
                                                  plan->phase });
    else
        api_refuse_devices(args);
    take_block(args->h.ctx, plan, args->plan);
    plan->ns = now(args) - begin - waited;
}

static Plan *make(weft_kernel *k, weft_args *args, Pool *pool)
{
    weft_ctx *ctx = args->h.ctx;
    Arena *arena = &api_box(ctx)->arena;
    Plan *plan = arena_alloc(arena, sizeof *plan);

    plan->kernel = k->number;
    plan->shapes = args->shapes;
    fill(k, &(Making){ .args = args, .arena = arena, .pool = pool, .plan = plan });
    plan_drop(args);
    plan->box = api_keep(ctx);
    for (int i = 0; i < plan->narray; i++)
        if (plan->feed[i].at >= 0)
            plan->array[i] = (char *)plan->block + plan->feed[i].at;
    args->plans++;
    return args->plan = plan;
}

static bool has_same(const View *v, const Array *had, Arena *scratch, Pool *pool)
{
    size_t bytes = ir_type[v->type].bytes;
    void *data = v->data;

    if (v->n == 0)
        return true;
    if (!v->plain) {
        data = arena_raw(scratch, v->n, bytes);
        view_gather(v, data, pool);
    }
    return run_is_same(pool, data, had->data, v->n * (int64_t)bytes);
}

/* Structure that was bound anew, as it is for a new graph or for the old one in another place. */
static bool structure_is_same(weft_args *args, const Plan *plan, Pool *pool)
{
    bool same = true;

    for (int i = 0; i < args->body->narg && same; i++) {
        const Arg *a = &args->body->arg[i];

        if (a->role == WEFT_INPUT && a->kind != ARG_BUF && args->bound[i].fresh &&
            args->bound[i].how == HOW_USER)
            same = has_same(&args->bound[i].view, api_place(plan->result->env, a),
                            &args->h.ctx->scratch, pool);
    }
    return same;
}

Plan *api_plan(weft_kernel *k, weft_args *args, Pool *pool, bool *made)
{
    Plan *plan = args->plan;

    if (args->fresh)
        api_check_overlap(args);
    *made = plan == NULL || plan->kernel != k->number || plan->shapes != args->shapes ||
            (plan->cold && k->busy >= COST_HOT) ||
            (args->fresh && !structure_is_same(args, plan, pool));
    if (*made)
        plan = make(k, args, pool);
    k->last = plan->variant;
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

static HoldKind kind_of(const weft_args *args, const Plan *plan, int i)
{
    const Feed *f = &plan->feed[i];

    if (f->arg >= 0)
        return args->bound[f->arg].held ? HOLD_SAME : HOLD_CHANGES;
    return f->at >= 0 ? HOLD_OWN : HOLD_SAME;
}

/* After a run of all phases: those that the next one needs. */
static void mark_kept(const weft_args *args, Plan *plan)
{
    for (int i = 0; i < plan->narray; i++)
        plan->kind[i] = kind_of(args, plan, i);
    hold_mark(plan->variant->lowered, plan->kind, plan->kept);
    plan->nagain = 0;
    for (int i = 0; i < plan->nphase; i++)
        if (!plan->kept[i])
            plan->again[plan->nagain++] = plan->phase[i];
}

static void begin(weft_args *args, Plan *plan, Pool *pool, bool kept)
{
    for (int i = 0; i < plan->narray; i++) {
        const Feed *f = &plan->feed[i];
        bool take = f->take && !(kept && args->bound[f->arg].held);

        if (f->callers)
            plan->array[i] = args->bound[f->arg].view.data;
        if (take && f->packed != NULL)
            memcpy(plan->array[i], f->packed->data,
                   (size_t)f->packed->n * ir_type[f->packed->type].bytes);
        else if (take)
            view_gather(&args->bound[f->arg].view, plan->array[i], pool);
        if (f->arg >= 0)
            set_result(args, plan, i);
    }
}

static int64_t run_on_device(weft_args *args, Plan *plan, bool kept)
{
    weft_ctx *ctx = args->h.ctx;
    DeviceArray *how = arena_array(&ctx->scratch, plan->narray, sizeof *how);

    for (int i = 0; i < plan->narray; i++) {
        const Feed *f = &plan->feed[i];
        weft_role role = f->arg >= 0 ? args->body->arg[f->arg].role : WEFT_INPUT;

        if (f->arg < 0)
            how[i] = f->at >= 0 ? DEVICE_OWN : DEVICE_ONCE;
        else if (role == WEFT_OUTPUT)
            how[i] = DEVICE_OUTPUT;
        else
            how[i] = kept && args->bound[f->arg].held ? DEVICE_HELD : DEVICE_INPUT;
    }
    return device_run(ctx, plan->device, how, plan->array, plan->size, plan->phase,
                      kept ? plan->kept : NULL);
}

static int64_t run_now(weft_args *args, Plan *plan, Pool *pool, bool kept)
{
    int64_t fault;

    if (plan->late != NULL)
        return late_run(plan->late, args->h.ctx, pool);
    plan->warm = false;
    if (plan->device != NULL)
        fault = run_on_device(args, plan, kept);
    else
        fault = run_phases(pool, kept ? plan->again : plan->phase,
                           kept ? plan->nagain : plan->nphase, plan->array, plan->size);
    if (fault == 0 && args->nheld > 0) {
        if (!kept)
            mark_kept(args, plan);
        plan->holds = args->holds;
        plan->warm = true;
    }
    return fault;
}

int64_t api_run_plan(weft_args *args, Pool *pool)
{
    Plan *plan = args->plan;
    bool kept = plan->warm && args->nheld > 0 && plan->holds == args->holds;
    int64_t fault;

    api_set_result(args, NULL);
    begin(args, plan, pool, kept);
    fault = run_now(args, plan, pool, kept);
    if (fault != 0)
        return fault;
    for (int i = 0; i < plan->narray; i++)
        if (plan->feed[i].give)
            view_scatter(&args->bound[plan->feed[i].arg].view, plan->array[i], pool);
    if (plan->late != NULL)
        late_give(plan->late, args, plan->result);
    args->result = plan->result;
    return 0;
}

/* What a new plan took; of each phase the length of its range, and into how many pieces that is
 * cut. */
void api_print_plan(Text *out, const weft_args *args, bool made)
{
    const Plan *plan = args->plan;

    if (made)
        text_f(out, " plan=%.3f", (double)plan->ns / 1e6);
    if (made && plan->transposes > 0)
        text_f(out, " transposes=%d", plan->transposes);
    if (made && plan->formats > 0)
        text_f(out, " formats=%d in %.3f", plan->formats, (double)plan->format_ns / 1e6);
    for (int i = 0; i < plan->nphase; i++)
        text_f(out, "; %s: %lld in %lld", plan->variant->lowered->label[i],
               (long long)plan->phase[i].n, (long long)run_chunks(&plan->phase[i]));
}

weft_status weft_args_plan(weft_args *args, weft_plan *out)
{
    weft_ctx *ctx = api_ctx_of(args, TAG_ARGS);
    const Plan *plan;

    API_ENTER(ctx);
    api_need(ctx, out, "out");
    plan = args->plan;
    if (plan == NULL)
        err_throw(&ctx->err, ST_ARG, "there is no plan: no kernel has run with these arguments");
    *out = (weft_plan){ .made = args->plans,
                        .ms = (double)plan->ns / 1e6,
                        .transpose_ms = (double)plan->transpose_ns / 1e6,
                        .transposes = plan->transposes,
                        .formats = plan->formats,
                        .format_ms = (double)plan->format_ns / 1e6,
                        .bytes = plan_bytes(args) };
    return api_leave(ctx);
}
