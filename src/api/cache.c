/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The functions of weft.h for the cache of kernels and its compiler. */
#include "api/api_int.h"
#include "jit/jit.h"

weft_status weft_ctx_compiler(weft_ctx *context)
{
    weft_ctx *ctx = api_ctx_of(context, TAG_CTX);

    API_ENTER(ctx);
    jit_need_compiler(api_jit(ctx), &ctx->err);
    return api_leave(ctx);
}

weft_status weft_cache_dir(weft_ctx *context, const char **out)
{
    weft_ctx *ctx = api_ctx_of(context, TAG_CTX);

    API_ENTER(ctx);
    api_need(ctx, out, "out");
    *out = jit_cache_dir(api_jit(ctx));
    if (*out == NULL)
        err_throw(&ctx->err, ST_IO,
                  "there is no cache: neither WEFT_CACHE_DIR, XDG_CACHE_HOME nor "
                  "HOME is set");
    return api_leave(ctx);
}

static const weft_entry *list(weft_ctx *ctx, bool verify, int *n)
{
    Jit *jit = api_jit(ctx);
    Arena *arena = &api_box(ctx)->arena;
    JitEntry *entry = jit_cache_list(jit, arena, n);
    weft_entry *out = arena_array(arena, *n, sizeof *out);

    for (int i = 0; i < *n; i++) {
        out[i] = (weft_entry){ entry[i].key, entry[i].bytes, entry[i].age, NULL };
        if (verify)
            out[i].fault = jit_cache_check(jit, &ctx->err, &entry[i]);
    }
    box_drop(ctx->listed);
    ctx->listed = api_keep(ctx);
    return out;
}

weft_status weft_cache_list(weft_ctx *context, int verify, const weft_entry **out, int *n)
{
    weft_ctx *ctx = api_ctx_of(context, TAG_CTX);

    API_ENTER(ctx);
    api_need(ctx, out, "out");
    api_need(ctx, n, "n");
    *out = list(ctx, verify != 0, n);
    return api_leave(ctx);
}

weft_status weft_cache_clear(weft_ctx *context, int *n)
{
    weft_ctx *ctx = api_ctx_of(context, TAG_CTX);
    int gone;

    API_ENTER(ctx);
    gone = jit_cache_clear(api_jit(ctx), &ctx->err);
    if (n != NULL)
        *n = gone;
    return api_leave(ctx);
}
