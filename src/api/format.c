/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Formats in use: the lines `format E bsr(16, 16)` of a schedule, the arrays that a plan makes for
 * them, a program rewritten for a format, and the storage that a matrix takes in a format. */
#include "api/api_int.h"
#include "io/io.h"
#include "lower/lower.h"
#include "run/run.h"

#include <string.h>
#include <time.h>

typedef struct Tasks { /* blocks of a conversion, as a phase */
    FmtTask *task;
    void *arg;
} Tasks;

static int64_t run_tasks(void *const *array, const int64_t *size, int64_t begin, int64_t end,
                         void *work)
{
    const Tasks *t = array[0];

    (void)size, (void)work;
    for (int64_t b = begin; b < end; b++)
        t->task(t->arg, b);
    return 0;
}

/* A phase without scratch memory cannot fail. */
static void run_blocks(void *pool, int64_t n, FmtTask *task, void *arg)
{
    Tasks t = { task, arg };
    RunPhase phase = { .fn = run_tasks, .n = n, .grain = 1 };
    void *array[] = { &t };

    run_phases(pool, &phase, 1, array, NULL);
}

FmtPool api_workers(struct Pool *pool)
{
    return (FmtPool){ run_blocks, pool };
}

/* Whether all arrays that tell the entries of an axis are read as i32.  An axis that has none, of
 * dense rows, may have more entries than i32 counts. */
static bool is_narrow(Prog *p, Axis *e)
{
    bool any = false;

    for (Axis *a = e; a != NULL; a = a->parent) {
        if (a->extent == X_SEG && loop_start(p, a)->type != T_i32)
            return false;
        any = any || a->extent == X_SEG;
        for (int k = 0; k < a->ncoord; k++) {
            if (a->coord[k].kind == C_LOAD && loop_coord(p, a, k)->type != T_i32)
                return false;
            any = any || a->coord[k].kind == C_LOAD;
        }
    }
    return any;
}

/* The arrays of a format are as wide as those that they are made from. */
static void narrow(Prog *p, int first)
{
    for (int i = first; i < p->naxis; i++)
        if (p->axis[i]->from_k == FROM_FORMAT && is_narrow(p, p->axis[i]->from))
            for (Axis *a = p->axis[i]; a != NULL; a = a->parent) {
                if (a->extent == X_SEG)
                    lower_narrow(p, a, -1);
                for (int k = 0; k < a->ncoord; k++)
                    if (a->coord[k].kind == C_LOAD)
                        lower_narrow(p, a, k);
            }
}

static void apply(Prog *p, const char *axis, const char *format)
{
    Axis *e = ir_find_axis(p, axis);
    int first = p->naxis;

    if (e == NULL)
        ir_throw(p, ST_ARG, "format %s %.60s: there is no axis %s", axis, format, axis);
    fmt_apply(p, e, format);
    narrow(p, first);
}

bool api_format_line(Arena *arena, const SchedItem *at, const char **name, const char **format)
{
    Text axis = { .arena = arena }, text = { .arena = arena };
    const char *s = at->s + at->nword;
    size_t n;

    if (at->nword != 6 || memcmp(at->s, "format", 6) != 0)
        return false;
    s += strspn(s, " \t");
    n = strcspn(s, " \t\r\n;#");
    text_put(&axis, s, n);
    s += n + strspn(s + n, " \t");
    if (n == 0 || s >= at->s + at->n)
        err_throw(arena->err, ST_ARG, "a format is given as `format E bsr(16, 16)`, not `%.*s`",
                  at->n > 60 ? 60 : (int)at->n, at->s);
    text_put(&text, s, (size_t)(at->s + at->n - s));
    *name = axis.s;
    *format = text.s;
    return true;
}

void api_formats(Prog *p, const char *sched)
{
    const char *axis, *format;
    SchedItem at;

    while (sched != NULL && sched_next(&sched, &at))
        if (api_format_line(p->arena, &at, &axis, &format))
            apply(p, axis, format);
}

static weft_prog *rewrite(weft_ctx *ctx, weft_prog *prog, const char *axis, const char *format)
{
    Text text = { .arena = &ctx->scratch };
    Prog *p;

    body_check(prog->body);
    p = ir_copy(&ctx->scratch, prog->body->prog);
    apply(p, axis, format);
    ir_check(p);
    for (int i = 0; i < p->naxis; i++) /* the caller has the arrays of the format */
        p->axis[i]->from = prog->body->prog->naxis <= i ? NULL : p->axis[i]->from;
    ir_print(&text, p);
    return prog_new(ctx, p->name, text.s, text.n);
}

weft_status weft_prog_format(weft_prog *prog, const char *axis, const char *format, weft_prog **out)
{
    weft_ctx *ctx = api_ctx_of(prog, TAG_PROG);

    if (out != NULL)
        *out = NULL;
    API_ENTER(ctx);
    api_need(ctx, out, "out");
    api_need(ctx, axis, "the name of the axis");
    api_need(ctx, format, "the format");
    *out = rewrite(ctx, prog, axis, format);
    return api_leave(ctx);
}

static int64_t bytes_of(const Array *a)
{
    return a->data == NULL ? 0 : a->n * (int64_t)ir_type[a->type].bytes;
}

/* Bytes of the structure. */
static int64_t structure_bytes(const FmtPart *part)
{
    int64_t bytes = 0;

    for (int l = 0; l < part->nlevel; l++) {
        const FmtLevel *level = &part->level[l];

        bytes += bytes_of(&level->start);
        for (int k = 0; k < level->ncoord; k++)
            bytes += bytes_of(&level->coord[k]);
    }
    return bytes;
}

static void read_entries(weft_ctx *ctx, const char *path, FmtEntries *out)
{
    Bytes bytes = file_read(&ctx->scratch, path, (int64_t)4 << 30);
    IoMatrix m;

    io_mtx_parse(&ctx->scratch, bytes, path, &m);
    if (m.row == NULL)
        err_throw(&ctx->err, ST_BIND, "%s: a dense matrix has no entries to store in a format",
                  path);
    *out = (FmtEntries){ .n = m.nnz, .ncoord = 2 };
    out->coord[0] = (Array){ m.row, m.nnz, T_i64 };
    out->coord[1] = (Array){ m.col, m.nnz, T_i64 };
    out->bound[0] = m.m;
    out->bound[1] = m.n;
}

static void measure(weft_ctx *ctx, const char *path, const char *format, weft_stored *out)
{
    const FmtUse *u = fmt_use(&ctx->scratch, format);
    FmtPool workers = api_workers(api_pool(ctx));
    FmtEntries entries;
    FmtParts *parts;
    int64_t begin;

    read_entries(ctx, path, &entries);
    begin = ctx->os->clock(ctx->os, CLOCK_MONOTONIC);
    parts = fmt_convert(&ctx->scratch, &ctx->scratch, &workers, u, &entries);
    *out = (weft_stored){ .parts = parts->n, .entries = entries.n };
    out->ms = (double)(ctx->os->clock(ctx->os, CLOCK_MONOTONIC) - begin) / 1e6;
    for (int i = 0; i < parts->n; i++) {
        out->positions += parts->part[i].stored;
        out->bytes += structure_bytes(&parts->part[i]);
    }
}

weft_status weft_format_measure(weft_ctx *ctx, const char *path, const char *format,
                                weft_stored *out)
{
    ctx = api_ctx_of(ctx, TAG_CTX);
    API_ENTER(ctx);
    api_need(ctx, path, "the path");
    api_need(ctx, format, "the format");
    api_need(ctx, out, "out");
    measure(ctx, path, format, out);
    return api_leave(ctx);
}
