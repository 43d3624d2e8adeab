/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The function of weft.h that gives the program of an operator. */
#include "api/api_int.h"
#include "ops/ops.h"

weft_status weft_prog_op(weft_ctx *context, const char *spec, weft_prog **out)
{
    weft_ctx *ctx = api_ctx_of(context, TAG_CTX);
    Text text;

    if (out != NULL)
        *out = NULL;
    API_ENTER(ctx);
    api_need(ctx, out, "out");
    api_need(ctx, spec, "the operator");
    text = (Text){ .arena = &ctx->scratch };
    ops_write(&text, spec);
    *out = prog_new(ctx, spec, text.s, text.n);
    return api_leave(ctx);
}
