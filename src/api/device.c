/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Kernels on a device.  A plan keeps a copy of each array in device memory: structure is written
 * once, inputs before each run; results are read back after the run, and temporaries stay there.
 * Each phase is one launch.  Its units of work are iterations, as many as lanes take at once, or
 * the chunks of a plan.  A warp runs a unit of a phase with vector loops; a thread runs a unit of
 * other phases. */
#include "api/api_int.h"
#include "api/device_int.h"
#include "cost/cost.h"
#include "dev/dev.h"
#include "emit/emit.h"
#include "run/run.h"

#include <string.h>
#include <time.h>

enum {
    LIMIT_SCRATCH = 1 << 28, /* bytes of scratch memory of a launch */
    LIMIT_ARRAYS = 96 /* of a kernel: OpenCL passes 1,024 bytes */
};

struct OnDevice {
    Dev *dev;
    DevModule *module;
    const Lowered *l; /* the kernel's: to be used in runs only */
    int narray, nphase;
    void **memory;   /* by array; NULL: it is in none, */
    bool *outside;   /* or the caller's own */
    int64_t *bytes;  /* by array */
    void **unit;     /* by phase: where units begin; NULL: after each `step` iterations */
    int64_t *units;  /* by phase */
    void *scratch, *fault;
    bool filled; /* structure has been written */
};

static void keep(weft_ctx *ctx, DevModule *m, const JitBlob *blob, JitReport *report)
{
    jmp_buf trap, *outer = ctx->err.trap;
    Bytes binary;

    ctx->err.trap = &trap;
    if (setjmp(trap) != 0) {
        ctx->err.trap = outer;
        dev_module_free(m);
        err_jump(&ctx->err);
    }
    binary = dev_binary(m, &ctx->scratch);
    if (binary.n > 0)
        jit_keep(api_jit(ctx), &ctx->err, blob, binary, report);
    ctx->err.trap = outer;
}

/* A binary that the driver does not take, as after damage, is compiled anew. */
static DevModule *find_or_build(weft_ctx *ctx, const char *source, const char *const *name, int n,
                                JitReport *report)
{
    Dev *dev = api_device(ctx);
    Text identity = { .arena = &ctx->scratch };
    JitBlob blob = { .source = source, .maker = dev_identity(dev) };
    JitReport kept;
    DevModule *m = NULL;
    Bytes binary;
    int64_t begin = ctx->os->clock(ctx->os, CLOCK_MONOTONIC);

    text_f(&identity, "weft %s", weft_version());
    blob.identity = identity.s;
    if (jit_find(api_jit(ctx), &ctx->err, &blob, &ctx->scratch, &binary, report))
        m = dev_load(dev, &ctx->err, binary, name, n);
    if (m == NULL) {
        m = dev_build(dev, &ctx->err, source, name, n);
        report->how = JIT_COMPILED;
        report->compile_ms = (double)(ctx->os->clock(ctx->os, CLOCK_MONOTONIC) - begin) / 1e6;
        keep(ctx, m, &blob, &kept);
    }
    report->ms = (double)(ctx->os->clock(ctx->os, CLOCK_MONOTONIC) - begin) / 1e6;
    return m;
}

struct DevModule *device_build(weft_ctx *ctx, const Lowered *l, const char *source,
                               JitReport *report)
{
    const EmitKernel *info = l->info;
    const char **name = arena_array(&ctx->scratch, info->nphase, sizeof *name);
    Text text = { .arena = &ctx->scratch };

    for (int i = 0; i < info->nphase; i++) {
        if (info->phase[i].builds != NULL)
            err_throw(&ctx->err, ST_LIMIT,
                      "%s is a built axis, and a device does not build structure; run the program "
                      "that builds it with -t c, and bind the result to one that reads it",
                      info->phase[i].builds->name);
        name[i] = info->phase[i].kernel;
    }
    if (info->narray > LIMIT_ARRAYS)
        err_throw(&ctx->err, ST_LIMIT, "%d arrays: a kernel on a device has at most %d",
                  info->narray, LIMIT_ARRAYS);
    api_put_lanes(&text, l->target);
    text_str(&text, source);
    return find_or_build(ctx, text.s, name, info->nphase, report);
}

void device_free(OnDevice *d)
{
    if (d == NULL)
        return;
    for (int i = 0; i < d->narray; i++)
        dev_free(d->dev, d->memory[i]);
    for (int i = 0; i < d->nphase; i++)
        dev_free(d->dev, d->unit[i]);
    dev_free(d->dev, d->scratch);
    dev_free(d->dev, d->fault);
}

static int64_t lanes_in(const OnDevice *d)
{
    return lanes_of(&d->l->target->unit, T_f32);
}

static int64_t groups_of(const OnDevice *d, int phase)
{
    const EmitPhase *f = &d->l->info->phase[phase];
    int64_t threads = f->lanes ? 1 : COST_GROUP_THREADS;
    int64_t n = (d->units[phase] + threads - 1) / threads;
    int64_t room = f->work > 0 ? LIMIT_SCRATCH / (f->work * threads) : COST_GROUPS;

    if (f->each)
        return n;
    n = n < COST_GROUPS ? n : COST_GROUPS;
    n = n < room ? n : room;
    return n > 0 ? n : 1;
}

static void *need(weft_ctx *ctx, OnDevice *d, int64_t bytes)
{
    void *memory = dev_alloc(d->dev, bytes);

    if (memory == NULL)
        err_throw(&ctx->err, ST_NOMEM, "out of memory on %s: %lld more bytes were needed",
                  dev_name(d->dev), (long long)bytes);
    return memory;
}

static _Noreturn void refuse(weft_ctx *ctx, const OnDevice *d, const char *what)
{
    err_throw(&ctx->err, ST_IO, "%s refused %s", dev_name(d->dev), what);
}

/* Where the chunks of a phase begin: iterations with one number run in order. */
static void make_units(weft_ctx *ctx, OnDevice *d, int phase, const RunPhase *p)
{
    int step = d->l->info->phase[phase].step;
    int64_t *begin, n = 0;

    d->units[phase] = (p->n + step - 1) / step;
    if (d->l->info->phase[phase].each && d->units[phase] > INT32_MAX)
        err_throw(&ctx->err, ST_LIMIT, "a launch of %lld iterations: a device takes at most %d",
                  (long long)d->units[phase], INT32_MAX);
    if (p->part == NULL || p->n <= 0)
        return;
    begin = arena_raw(&ctx->scratch, p->n + 1, sizeof *begin);
    for (int64_t i = 0; i < p->n; i++)
        if (i == 0 || p->part[i] != p->part[i - 1])
            begin[n++] = i;
    begin[n] = p->n;
    d->units[phase] = n;
    d->unit[phase] = need(ctx, d, (n + 1) * (int64_t)sizeof *begin);
    if (!dev_write(d->dev, d->unit[phase], begin, (n + 1) * (int64_t)sizeof *begin))
        refuse(ctx, d, "a copy of the chunks of a phase");
}

/* All memory of a plan; what was taken before a throw is freed by the caller. */
static void take_memory(weft_ctx *ctx, OnDevice *d, const RunPhase *phase)
{
    const EmitKernel *info = d->l->info;
    int64_t scratch = 0;

    for (int i = 0; i < info->narray; i++)
        if (info->array[i]->kind != B_CONST && !d->outside[i])
            d->memory[i] = need(ctx, d, d->bytes[i]);
    for (int i = 0; i < info->nphase; i++) {
        const EmitPhase *f = &info->phase[i];
        int64_t all;

        make_units(ctx, d, i, &phase[i]);
        all = groups_of(d, i) * (f->lanes ? 1 : COST_GROUP_THREADS) * f->work;
        scratch = all > scratch ? all : scratch;
    }
    d->scratch = need(ctx, d, scratch);
    d->fault = need(ctx, d, sizeof(uint32_t));
}

OnDevice *device_plan(weft_ctx *ctx, Arena *arena, const Variant *v, const DevicePlan *plan)
{
    const EmitKernel *info = v->lowered->info;
    OnDevice *d = arena_alloc(arena, sizeof *d);
    jmp_buf trap, *outer = ctx->err.trap;

    *d = (OnDevice){ .dev = dev_of(v->dev),
                     .module = v->dev,
                     .l = v->lowered,
                     .narray = info->narray,
                     .nphase = info->nphase };
    d->memory = arena_array(arena, info->narray, sizeof *d->memory);
    d->bytes = arena_copy(arena, plan->bytes, (size_t)info->narray * sizeof *plan->bytes);
    d->outside = arena_copy(arena, plan->outside, (size_t)info->narray * sizeof *plan->outside);
    d->unit = arena_array(arena, info->nphase, sizeof *d->unit);
    d->units = arena_array(arena, info->nphase, sizeof *d->units);
    ctx->err.trap = &trap;
    if (setjmp(trap) != 0) {
        ctx->err.trap = outer;
        device_free(d);
        err_jump(&ctx->err);
    }
    take_memory(ctx, d, plan->phase);
    ctx->err.trap = outer;
    return d;
}

static void launch(weft_ctx *ctx, OnDevice *d, int phase, int64_t n, void *const *array,
                   const int64_t *size)
{
    const EmitKernel *info = d->l->info;
    const EmitPhase *f = &info->phase[phase];
    int nsize = d->l->prog->nsize + info->ncount, narg = 0;
    DevArg *arg = arena_array(&ctx->scratch, info->narray + 4, sizeof *arg);
    int64_t *value = arena_array(&ctx->scratch, nsize + 5, sizeof *value);

    if (d->units[phase] <= 0)
        return;
    for (int i = 0; i < info->narray; i++)
        if (info->array[i]->kind != B_CONST)
            arg[narg++].memory = d->outside[i] ? array[i] : d->memory[i];
    arg[narg++].memory = d->unit[phase];
    arg[narg++].memory = d->scratch;
    arg[narg++].memory = d->fault;
    memcpy(value, size, (size_t)nsize * sizeof *value);
    value[nsize + 1] = n;
    value[nsize + 2] = d->units[phase];
    value[nsize + 3] = f->step;
    value[nsize + 4] = f->work;
    arg[narg].value = value;
    arg[narg++].bytes = (nsize + 5) * (int64_t)sizeof *value;
    if (!dev_launch(d->module, phase, arg, narg, groups_of(d, phase),
                    f->lanes ? lanes_in(d) : COST_GROUP_THREADS))
        refuse(ctx, d, "to launch a kernel");
}

static bool is_written(const Lowered *l, int array)
{
    const EmitKernel *info = l->info;

    for (int i = 0; i < info->nphase; i++)
        if (l->use[(ptrdiff_t)i * info->narray + array] & HOLD_WRITES)
            return true;
    return false;
}

/* Structure once; the caller's arrays before each run, but for what is held. */
static void write_arrays(weft_ctx *ctx, OnDevice *d, const DeviceArray *how, void *const *array)
{
    for (int i = 0; i < d->l->info->narray; i++) {
        bool wanted = d->memory[i] != NULL &&
                      (how[i] == DEVICE_INPUT || (how[i] == DEVICE_ONCE && !d->filled));

        if (wanted && array[i] != NULL && !dev_write(d->dev, d->memory[i], array[i], d->bytes[i]))
            refuse(ctx, d, "a copy of an array");
    }
    d->filled = true;
}

int64_t device_run(weft_ctx *ctx, OnDevice *d, const DeviceArray *how, void *const *array,
                   const int64_t *size, const RunPhase *phase, const bool *kept)
{
    const EmitKernel *info = d->l->info;
    uint32_t fault = UINT32_MAX;

    write_arrays(ctx, d, how, array);
    if (!dev_write(d->dev, d->fault, &fault, sizeof fault))
        refuse(ctx, d, "a copy of a word");
    for (int i = 0; i < info->nphase; i++)
        if (kept == NULL || !kept[i])
            launch(ctx, d, i, phase[i].n, array, size);
    if (!dev_read(d->dev, d->fault, &fault, sizeof fault))
        refuse(ctx, d, "to run a kernel to its end");
    if (fault != UINT32_MAX)
        return fault & 0xff;
    for (int i = 0; i < info->narray; i++)
        if (how[i] != DEVICE_ONCE && how[i] != DEVICE_OWN && !d->outside[i] &&
            is_written(d->l, i) &&
            !dev_read(d->dev, d->memory[i], array[i], d->bytes[i]))
            refuse(ctx, d, "to give a result back");
    return 0;
}
