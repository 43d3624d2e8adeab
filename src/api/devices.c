/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The functions of weft_device.h.  A context keeps every device that it has opened, as kernels and
 * plans of it may still be there, and opens none twice. */
#include "api/device_int.h"
#include "dev/dev.h"
#include "weft_device.h"

#include <string.h>

struct DevList {
    Dev *dev; /* NULL: it could not be opened */
    struct DevList *next;
    void *queue; /* of the caller, which the device keeps; or NULL: */
    char name[sizeof((weft_ctx *)0)->dev_name]; /* as it was asked for */
};

/* The device that was opened for the same request, or none. */
static Dev *find_device(const weft_ctx *ctx)
{
    for (const struct DevList *e = ctx->devs; e != NULL; e = e->next)
        if (e->dev != NULL && e->queue == ctx->dev_queue &&
            (e->queue != NULL || strcmp(e->name, ctx->dev_name) == 0))
            return e->dev;
    return NULL;
}

static struct DevList *new_entry(weft_ctx *ctx)
{
    struct DevList *entry = ctx->devs;

    if (entry == NULL || entry->dev != NULL)
        entry = ctx->os->alloc(ctx->os, NULL, sizeof *entry);
    if (entry == NULL)
        err_throw(&ctx->err, ST_NOMEM, "out of memory for a device");
    if (entry != ctx->devs)
        *entry = (struct DevList){ .next = ctx->devs };
    return ctx->devs = entry; /* it has an owner before the next may throw */
}

Dev *api_device(weft_ctx *ctx)
{
    DevWanted wanted = { ctx->dev_name[0] != 0 ? ctx->dev_name : NULL, ctx->dev_queue };
    struct DevList *entry;

    if (ctx->dev == NULL)
        ctx->dev = find_device(ctx);
    if (ctx->dev != NULL)
        return ctx->dev;
    entry = new_entry(ctx);
    entry->dev = dev_open_opencl(ctx->os, &ctx->err, &wanted);
    entry->queue = ctx->dev_queue;
    memcpy(entry->name, ctx->dev_name, sizeof entry->name);
    return ctx->dev = entry->dev;
}

void devices_close(weft_ctx *ctx)
{
    while (ctx->devs != NULL) {
        struct DevList *entry = ctx->devs;

        ctx->devs = entry->next;
        dev_close(entry->dev);
        ctx->os->alloc(ctx->os, entry, 0);
    }
    ctx->dev = NULL;
}

weft_status weft_devices(weft_ctx *context, const char **out)
{
    weft_ctx *ctx = api_ctx_of(context, TAG_CTX);
    Text text;

    if (out != NULL)
        *out = NULL;
    API_ENTER(ctx);
    api_need(ctx, out, "out");
    text = (Text){ .arena = &api_box(ctx)->arena };
    dev_list_opencl(ctx->os, &ctx->err, &text);
    box_drop(ctx->devices);
    ctx->devices = api_keep(ctx);
    *out = text.s;
    return api_leave(ctx);
}

/* What was chosen before comes back when the new one cannot be opened. */
static void use(weft_ctx *ctx, const char *name, void *queue)
{
    char had[sizeof ctx->dev_name];
    void *had_queue = ctx->dev_queue;
    Dev *dev = ctx->dev;
    jmp_buf trap, *outer = ctx->err.trap;

    memcpy(had, ctx->dev_name, sizeof had);
    memset(ctx->dev_name, 0, sizeof ctx->dev_name);
    if (name != NULL)
        memcpy(ctx->dev_name, name, strlen(name));
    ctx->dev_queue = queue;
    ctx->dev = NULL;
    ctx->err.trap = &trap;
    if (setjmp(trap) != 0) {
        memcpy(ctx->dev_name, had, sizeof had);
        ctx->dev_queue = had_queue;
        ctx->dev = dev;
        ctx->err.trap = outer;
        err_jump(&ctx->err);
    }
    if (name != NULL || queue != NULL)
        api_device(ctx);
    ctx->err.trap = outer;
}

weft_status weft_ctx_device(weft_ctx *context, const char *name)
{
    weft_ctx *ctx = api_ctx_of(context, TAG_CTX);

    API_ENTER(ctx);
    if (name != NULL && (name[0] == 0 || strlen(name) >= sizeof ctx->dev_name))
        err_throw(&ctx->err, ST_ARG, "the name of a device has 1 to %d characters",
                  (int)sizeof ctx->dev_name - 1);
    use(ctx, name, NULL);
    return api_leave(ctx);
}

weft_status weft_ctx_queue(weft_ctx *context, void *queue)
{
    weft_ctx *ctx = api_ctx_of(context, TAG_CTX);
    char name[sizeof ctx->dev_name];

    API_ENTER(ctx);
    memcpy(name, ctx->dev_name, sizeof name);
    use(ctx, name[0] != 0 && queue == NULL ? name : NULL, queue);
    return api_leave(ctx);
}

/* The tensor without its address, which is none of the host's. */
static void view_of(weft_ctx *ctx, const char *name, const weft_tensor *t, View *v)
{
    static const char nowhere[8];
    weft_tensor host = *t;

    if (t->data == NULL)
        err_throw(&ctx->err, ST_ARG, "%s: data is NULL: it has to be memory of the device", name);
    host.data = (void *)(uintptr_t)nowhere;
    api_view(ctx, name, &host, v);
    if (!v->plain)
        err_throw(&ctx->err, ST_ARG,
                  "%s: an array on a device is in C order, without gaps; make a copy", name);
    v->data = t->data;
}

weft_status weft_args_device(weft_args *args, const char *name, const weft_tensor *tensor)
{
    weft_ctx *ctx = api_ctx_of(args, TAG_ARGS);
    Bound bound = { .how = tensor == NULL ? HOW_NOT : HOW_DEVICE };
    const Arg *a;

    API_ENTER(ctx);
    a = api_find_arg(ctx, args->body, name);
    if (a->kind != ARG_BUF)
        err_throw(&ctx->err, ST_ARG,
                  "%s is %s: structure and sizes are the host's; use weft_args_%s", name,
                  a->kind == ARG_SIZE ? "a size" : "structure",
                  a->kind == ARG_SIZE ? "size" : "bind");
    if (tensor != NULL)
        view_of(ctx, name, tensor, &bound.view);
    api_bind(args, a, &bound);
    return api_leave(ctx);
}

void api_refuse_devices(weft_args *args)
{
    for (int i = 0; i < args->body->narg; i++)
        if (args->bound[i].how == HOW_DEVICE)
            err_throw(&args->h.ctx->err, ST_ARG,
                      "%s is in the memory of a device: only a kernel for that device runs with it "
                      "(weft_ctx_target, weft_ctx_queue)",
                      args->body->arg[i].name);
}
