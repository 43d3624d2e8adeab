/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Contexts and handles: entry into the library, and return with a status. */
#include "api/api_int.h"
#include "jit/jit.h"
#include "run/run.h"

#include <stdio.h>
#include <string.h>

_Static_assert((int)WEFT_OK == (int)ST_OK && (int)WEFT_E_ARG == (int)ST_ARG &&
                   (int)WEFT_E_PARSE == (int)ST_PARSE && (int)WEFT_E_CHECK == (int)ST_CHECK &&
                   (int)WEFT_E_BIND == (int)ST_BIND && (int)WEFT_E_RUN == (int)ST_RUN &&
                   (int)WEFT_E_IO == (int)ST_IO && (int)WEFT_E_LIMIT == (int)ST_LIMIT &&
                   (int)WEFT_E_NOMEM == (int)ST_NOMEM && (int)ST_NOMEM + 1 == (int)ST_COUNT,
               "weft_status and Status have the same values");

#define TEXT_OF(x) #x
#define VERSION(a, b, c) TEXT_OF(a) "." TEXT_OF(b) "." TEXT_OF(c)

const char *weft_version(void)
{
    return VERSION(WEFT_VERSION_MAJOR, WEFT_VERSION_MINOR, WEFT_VERSION_PATCH);
}

static void ring_init(Handle *head)
{
    head->next = head->last = head;
}

static void ring_add(Handle *head, Handle *h)
{
    h->next = head;
    h->last = head->last;
    h->last->next = h->next->last = h;
}

static void ring_remove(Handle *h)
{
    h->last->next = h->next;
    h->next->last = h->last;
}

weft_ctx *api_ctx_new(const Os *os)
{
    weft_ctx *ctx = os->alloc(os, NULL, sizeof *ctx);

    if (ctx == NULL)
        return NULL;
    memset(ctx, 0, sizeof *ctx);
    ctx->h = (Handle){ .tag = TAG_CTX, .ctx = ctx };
    ctx->os = os;
    arena_init(&ctx->scratch, os, &ctx->err);
    arena_init(&ctx->trees, os, &ctx->err);
    ring_init(&ctx->live);
    ring_init(&ctx->shell);
    return ctx;
}

weft_ctx *weft_ctx_new(void)
{
    os_watch_forks();
    return api_ctx_new(&os_libc);
}

static void free_oldest_shell(weft_ctx *ctx)
{
    Handle *h = ctx->shell.next;

    ring_remove(h);
    ctx->os->alloc(ctx->os, h, 0);
    ctx->nshell--;
}

void weft_ctx_free(weft_ctx *ctx)
{
    if (api_ctx_of(ctx, TAG_CTX) == NULL)
        return;
    while (ctx->live.next != &ctx->live)
        api_handle_free(ctx->live.next);
    while (ctx->nshell > 0)
        free_oldest_shell(ctx);
    box_drop(ctx->listed);
    box_drop(ctx->told);
    box_drop(ctx->graph);
    box_drop(ctx->tiles);
    box_drop(ctx->atoms);
    box_drop(ctx->mask);
    box_drop(ctx->places);
    box_drop(ctx->map);
    box_drop(ctx->near);
    box_drop(ctx->machine_box);
    box_drop(ctx->tuned_box);
    box_drop(ctx->found);
    box_drop(ctx->devices);
    pool_free(ctx->pool);
    if (ctx->jit != NULL)
        jit_free(ctx->jit);
    devices_close(ctx);
    ctx->h.tag = TAG_FREED;
    ctx->os->alloc(ctx->os, ctx, 0);
}

int weft_ctx_interrupt(weft_ctx *ctx)
{
    return ctx != NULL && jit_stop(&ctx->stop);
}

void *api_handle_new(weft_ctx *ctx, unsigned tag, size_t size)
{
    Handle *h = ctx->os->alloc(ctx->os, NULL, size);

    if (h == NULL)
        err_throw(&ctx->err, ST_NOMEM, "out of memory: %zu more bytes were needed", size);
    memset(h, 0, size);
    h->tag = tag;
    h->ctx = ctx;
    ring_add(&ctx->live, h);
    return h;
}

void api_handle_free(void *handle)
{
    Handle *h = handle;
    weft_ctx *ctx = h->ctx;

    if (h->tag == TAG_PROG)
        prog_drop(handle);
    else if (h->tag == TAG_KERNEL)
        kernel_drop(handle);
    else if (h->tag == TAG_ARGS)
        args_drop(handle);
    else if (h->tag == TAG_EDGES)
        edges_drop(handle);
    else if (h->tag == TAG_CONV)
        conv_drop(handle);
    h->tag = TAG_FREED;
    ring_remove(h);
    ring_add(&ctx->shell, h);
    if (++ctx->nshell > LIMIT_SHELLS)
        free_oldest_shell(ctx);
}

static const char *tag_name(unsigned tag)
{
    return tag == TAG_CTX      ? "a context"
           : tag == TAG_PROG   ? "a program"
           : tag == TAG_KERNEL ? "a kernel"
           : tag == TAG_TP     ? "a tensor product"
           : tag == TAG_CONV   ? "a convolution"
           : tag == TAG_EDGES  ? "edges of a convolution"
                               : "arguments";
}

weft_ctx *api_ctx_of(const void *handle, unsigned tag)
{
    const Handle *h = handle;

    if (h == NULL || h->tag < TAG_CTX || h->tag > TAG_FREED)
        return NULL;
    if (h->tag == tag)
        return h->ctx;
    err_clear(&h->ctx->err);
    if (h->tag == TAG_FREED)
        err_set(&h->ctx->err, ST_ARG, "%s expected, and what is given was freed before",
                tag_name(tag));
    else
        err_set(&h->ctx->err, ST_ARG, "%s expected, and %s given", tag_name(tag), tag_name(h->tag));
    api_leave(h->ctx);
    return NULL;
}

Box *box_new(weft_ctx *ctx)
{
    Box *box = ctx->os->alloc(ctx->os, NULL, sizeof *box);

    if (box == NULL)
        err_throw(&ctx->err, ST_NOMEM, "out of memory: %zu more bytes were needed", sizeof *box);
    box->refs = 1;
    arena_init(&box->arena, ctx->os, &ctx->err);
    return box;
}

Box *api_box(weft_ctx *ctx)
{
    Box *box = box_new(ctx);

    box_drop(ctx->box);
    return ctx->box = box;
}

Box *api_keep(weft_ctx *ctx)
{
    Box *box = ctx->box;

    ctx->box = NULL;
    return box;
}

void box_drop(Box *box)
{
    if (box == NULL || --box->refs > 0)
        return;
    arena_free(&box->arena);
    box->arena.os->alloc(box->arena.os, box, 0);
}

jmp_buf *api_enter(weft_ctx *ctx)
{
    err_clear(&ctx->err);
    ctx->warning[0] = 0;
    ctx->err.trap = &ctx->trap;
    return &ctx->trap;
}

/* Columns count bytes; a byte that continues a UTF-8 character takes no room on the screen. */
static int caret_column(const Err *err)
{
    int column = 0;

    for (int i = 0; i < err->col - 1; i++) {
        if (err->src[i] == 0)
            return -1;
        column += ((unsigned char)err->src[i] & 0xc0) != 0x80;
    }
    return column;
}

static void write_message(weft_ctx *ctx)
{
    const Err *err = &ctx->err;
    char place[sizeof err->file + 40] = "";
    int n, caret = caret_column(err);

    if (err->line > 0)
        snprintf(place, sizeof place, "%s:%d:%d: error: ", err->file, err->line, err->col);
    else if (err->file[0] != 0)
        snprintf(place, sizeof place, "%s: error: ", err->file);
    n = snprintf(ctx->message, LIMIT_MESSAGE, "%s%s", place, err->msg);
    for (char *c = ctx->message; *c != 0; c++) /* names may hold anything: not for a terminal */
        *c = (unsigned char)*c < ' ' && *c != '\n' ? ' ' : *c;
    if (err->line > 0 && err->src[0] != 0)
        n += snprintf(ctx->message + n, (size_t)(LIMIT_MESSAGE - n), "\n    %s", err->src);
    if (err->line > 0 && err->src[0] != 0 && caret >= 0)
        snprintf(ctx->message + n, (size_t)(LIMIT_MESSAGE - n), "\n    %*s^", caret, "");
}

weft_status api_leave(weft_ctx *ctx)
{
    arena_free(&ctx->scratch);
    arena_free(&ctx->trees);
    box_drop(api_keep(ctx));
    ctx->message[0] = 0;
    if (ctx->err.code != ST_OK)
        write_message(ctx);
    return (weft_status)ctx->err.code;
}

void api_need(weft_ctx *ctx, const void *p, const char *what)
{
    if (p == NULL)
        err_throw(&ctx->err, ST_ARG, "%s is NULL", what);
}

const char *weft_message(const weft_ctx *ctx)
{
    return ctx == NULL || ctx->h.tag != TAG_CTX ? "there is no context: out of memory?"
                                                : ctx->message;
}

const char *weft_warning(const weft_ctx *ctx)
{
    return ctx == NULL || ctx->h.tag != TAG_CTX ? "" : ctx->warning;
}

/* The pool that is there goes when the new one has been made, or first needed. */
static void set_pool(weft_ctx *ctx, Pool *pool, int threads)
{
    pool_free(ctx->pool);
    ctx->pool = pool;
    ctx->threads = threads;
}

static void check_threads(weft_ctx *ctx, int threads, int least)
{
    if (threads < least || threads > POOL_MAX_THREADS)
        err_throw(&ctx->err, ST_ARG, "%d threads; %d to %d are possible", threads, least,
                  POOL_MAX_THREADS);
}

weft_status weft_ctx_threads(weft_ctx *context, int threads)
{
    weft_ctx *ctx = api_ctx_of(context, TAG_CTX);

    API_ENTER(ctx);
    check_threads(ctx, threads, 0);
    set_pool(ctx, NULL, threads);
    return api_leave(ctx);
}

weft_status weft_ctx_target(weft_ctx *context, const char *target)
{
    weft_ctx *ctx = api_ctx_of(context, TAG_CTX);

    API_ENTER(ctx);
    ctx->target = target == NULL || strcmp(target, "c") == 0 ? NULL : api_runs_here(ctx, target);
    return api_leave(ctx);
}

weft_status weft_ctx_executor(weft_ctx *context, weft_executor *fn, void *user, int threads)
{
    weft_ctx *ctx = api_ctx_of(context, TAG_CTX);

    API_ENTER(ctx);
    check_threads(ctx, threads, fn == NULL ? 0 : 1);
    set_pool(ctx, fn == NULL ? NULL : pool_of_executor(ctx->os, &ctx->err, threads, fn, user),
             fn == NULL ? threads : 0);
    return api_leave(ctx);
}

weft_status weft_ctx_verbose(weft_ctx *context, weft_verbose *fn, void *user)
{
    weft_ctx *ctx = api_ctx_of(context, TAG_CTX);

    API_ENTER(ctx);
    ctx->verbose = fn;
    ctx->verbose_user = user;
    return api_leave(ctx);
}
