/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * weft_places_make: checks its arguments, and keeps the arrays of a format in the context. */
#include "api/api_int.h"
#include "geom/geom.h"

weft_status weft_places_make(weft_ctx *context, const char *format, const unsigned char *mask,
                             int64_t rows, int64_t columns, weft_places *out)
{
    weft_ctx *ctx = api_ctx_of(context, TAG_CTX);
    int64_t all;
    GeomPlaces g;

    API_ENTER(ctx);
    api_need(ctx, format, "format");
    api_need(ctx, out, "out");
    if (rows < 0 || columns < 0 || int_mul(rows, columns, &all) || all > LIMIT_ENTRIES)
        err_throw(&ctx->err, ST_ARG, "a weight of %lld x %lld: give sizes from 0 to 2^40 in all",
                  (long long)rows, (long long)columns);
    if (all > 0)
        api_need(ctx, mask, "mask");
    geom_places(&api_box(ctx)->arena, &(GeomPlacesIn){ format, mask, rows, columns }, &g);
    *out = (weft_places){ .n = g.n, .starts = g.starts, .indices = g.indices, .stored = g.stored,
                          .at = g.at, .start = g.start, .index = g.index, .row = g.row };
    box_drop(ctx->places);
    ctx->places = api_keep(ctx);
    return api_leave(ctx);
}
