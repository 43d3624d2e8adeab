/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Tuning records: read from the cache directory when a plan first asks for a schedule, and looked
 * up by program, structure and machine.  A process appends a record by one write, so that several
 * processes may do so at once; a damaged line is skipped. */
#include "api/api_int.h"
#include "jit/jit.h"
#include "tune/tune.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

enum { LIMIT_BYTES = 16 << 20 };

typedef struct Tuned {
    TuneRecords all;
} Tuned;

static const char *path_of(weft_ctx *ctx)
{
    const char *dir = jit_cache_dir(api_jit(ctx));
    Text path = { .arena = &ctx->scratch };

    if (dir == NULL)
        return NULL;
    text_f(&path, "%s/tuned.txt", dir);
    return path.s;
}

static void say_damaged(weft_ctx *ctx, const char *path, int n)
{
    Text why = { .arena = &ctx->scratch };

    if (n == 0 || ctx->verbose == NULL)
        return;
    text_f(&why, "%d line%s of it: not a record, or damaged; passed over", n, n == 1 ? "" : "s");
    api_say_note(ctx, "records", path, why.s);
}

/* A box of its own: the one of this call is being filled with a plan. */
static Tuned *records(weft_ctx *ctx)
{
    const char *path = path_of(ctx);
    Tuned *t;

    if (ctx->tuned != NULL)
        return ctx->tuned;
    box_drop(ctx->tuned_box); /* of a call that threw in here */
    ctx->tuned_box = NULL;
    ctx->tuned_box = box_new(ctx);
    t = arena_alloc(&ctx->tuned_box->arena, sizeof *t);
    t->all.arena = &ctx->tuned_box->arena;
    if (path != NULL)
        tune_records_add(&t->all, api_read_quietly(ctx, path, LIMIT_BYTES));
    say_damaged(ctx, path, t->all.damaged);
    return ctx->tuned = t;
}

static TuneKey half_key(weft_ctx *ctx, Body *body, int threads)
{
    const Machine *m = api_machine_known(ctx);
    uint64_t machine = hash_bytes(5, m->cpu, strlen(m->cpu));

    if (body->hash == 0)
        body->hash = tune_key_program(&ctx->scratch, body->prog);
    return (TuneKey){ .program = body->hash,
                      .machine = hash_bytes(machine, m->isa, strlen(m->isa)),
                      .threads = threads };
}

/* What is held is part of the structure: where values are brought into the order of a format once,
 * another format is the fastest. */
static TuneKey whole_key(const weft_args *args, const Env *env, int threads)
{
    Body *body = args->body;
    TuneKey key = half_key(args->h.ctx, body, threads);

    key.exact = tune_key_exact(body->prog, env);
    key.kind = tune_key_kind(body->prog, env);
    for (int i = 0; i < body->narg; i++)
        if (args->bound[i].held) {
            key.exact = hash_bytes(key.exact, body->arg[i].name, strlen(body->arg[i].name));
            key.kind = hash_bytes(key.kind, body->arg[i].name, strlen(body->arg[i].name));
        }
    return key;
}

/* A schedule of another version may have steps that this one does not know. */
static bool reads(weft_ctx *ctx, const char *schedule)
{
    jmp_buf trap, *outer = ctx->err.trap;

    ctx->err.trap = &trap;
    if (setjmp(trap) == 0) {
        api_aim_at(&ctx->err, api_target(ctx), schedule);
        ctx->err.trap = outer;
        return true;
    }
    ctx->err.trap = outer;
    api_say_note(ctx, "records", schedule, ctx->err.msg);
    err_clear(&ctx->err);
    ctx->err.trap = outer;
    return false;
}

const char *api_tuned(weft_args *args, const Env *env, int threads)
{
    weft_ctx *ctx = args->h.ctx;
    const Tuned *t = api_skips(ctx) ? NULL : records(ctx);
    const TuneRecord *r;
    TuneKey key;

    if (t == NULL || t->all.n == 0) /* as a rule */
        return NULL;
    key = half_key(ctx, args->body, threads);
    if (!tune_records_know(&t->all, &key))
        return NULL;
    key = whole_key(args, env, threads);
    r = tune_records_find(&t->all, &key);
    return r != NULL && reads(ctx, r->schedule) ? r->schedule : NULL;
}

static int append(const Os *os, const char *path, const Text *line)
{
    int fd = os->open(os, path, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW, 0600), code;

    if (fd < 0)
        return errno;
    code = file_put(os, fd, line->s, line->n);
    if (os->close(os, fd) != 0 && code == 0)
        code = errno;
    return code;
}

void api_tuned_keep(weft_args *args, const Env *env, int threads, TuneRecord *r)
{
    weft_ctx *ctx = args->h.ctx;
    Tuned *t = records(ctx);
    const char *path = path_of(ctx);
    Text line = { .arena = &ctx->scratch };
    int code;

    snprintf(r->name, sizeof r->name, "%.*s", TUNE_NAME - 1, args->body->prog->name);
    r->key = whole_key(args, env, threads);
    r->schedule = arena_copy(t->all.arena, r->schedule, strlen(r->schedule) + 1);
    tune_records_put(&t->all, r);
    tune_record_print(&line, r);
    code = path == NULL ? ENOENT : append(ctx->os, path, &line);
    if (code != 0)
        snprintf(ctx->warning, sizeof ctx->warning,
                 "what was found holds for this context and is not kept in %s: %s",
                 path == NULL ? "a cache directory" : path, strerror(code));
}

static const char *merge(weft_ctx *ctx, const char *const *path, int n)
{
    Arena *arena = &api_box(ctx)->arena;
    TuneRecords all = { .arena = arena };
    Text out = { .arena = arena };

    for (int i = 0; i < n; i++) {
        api_need(ctx, path[i], "a path");
        tune_records_add(&all, file_read(arena, path[i], LIMIT_BYTES));
    }
    tune_records_sort(&all);
    text_put(&out, "", 0);
    for (int i = 0; i < all.n; i++)
        tune_record_print(&out, &all.r[i]);
    if (all.damaged > 0)
        snprintf(ctx->warning, sizeof ctx->warning, "%d line%s: not a record, or damaged; left out",
                 all.damaged, all.damaged == 1 ? "" : "s");
    return out.s;
}

weft_status weft_tuned_merge(weft_ctx *context, const char *const *paths, int n, const char **out)
{
    weft_ctx *ctx = api_ctx_of(context, TAG_CTX);

    if (out != NULL)
        *out = NULL;
    API_ENTER(ctx);
    api_need(ctx, out, "out");
    api_need(ctx, n > 0 ? (const void *)paths : ctx, "paths");
    *out = merge(ctx, paths, n);
    box_drop(ctx->found);
    ctx->found = api_keep(ctx);
    return api_leave(ctx);
}
