/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The functions of weft.h for tensor products of irreps: their programs, and facts about irreps. */
#include "api/api_int.h"
#include "o3/o3.h"

weft_status weft_prog_o3(weft_ctx *context, const char *spec, weft_prog **out)
{
    weft_ctx *ctx = api_ctx_of(context, TAG_CTX);
    Text text;

    if (out != NULL)
        *out = NULL;
    API_ENTER(ctx);
    api_need(ctx, out, "out");
    api_need(ctx, spec, "the problem");
    text = (Text){ .arena = &ctx->scratch };
    o3_write(&text, spec);
    *out = prog_new(ctx, "<o3>", text.s, text.n);
    return api_leave(ctx);
}

weft_status weft_o3_tell(weft_ctx *context, const char *question, const char **out)
{
    weft_ctx *ctx = api_ctx_of(context, TAG_CTX);
    Text text;

    if (out != NULL)
        *out = NULL;
    API_ENTER(ctx);
    api_need(ctx, out, "out");
    api_need(ctx, question, "the question");
    text = (Text){ .arena = &api_box(ctx)->arena };
    o3_tell(&text, question);
    box_drop(ctx->told);
    ctx->told = api_keep(ctx);
    *out = text.s;
    return api_leave(ctx);
}
