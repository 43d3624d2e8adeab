/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Structures of graph operators from lists of edges: entries by receiver, and tiles of pairs of a
 * relation and a receiver. */
#include "api/api_int.h"
#include "geom/geom.h"

enum { TILE = 16 }; /* as the programs of ops/relation.c have it */

static GeomList take(weft_ctx *ctx, const weft_edge_list *list)
{
    GeomList out;

    edges_check(ctx, list);
    out = (GeomList){ .nodes = list->nodes, .senders = list->senders, .n = list->n };
    out.receiver = edges_widen(ctx, list, list->receiver, list->nodes, "receiver");
    out.sender = edges_widen(ctx, list, list->sender, list->senders, "sender");
    return out;
}

weft_status weft_rows_make(weft_ctx *context, const weft_edge_list *list, int loops, int64_t *start,
                           int64_t *sender, int64_t *at)
{
    weft_ctx *ctx = api_ctx_of(context, TAG_CTX);
    GeomList edges;

    API_ENTER(ctx);
    edges = take(ctx, list);
    api_need(ctx, start, "start");
    if (edges.n > 0 || (loops != 0 && edges.nodes > 0)) {
        api_need(ctx, sender, "sender");
        api_need(ctx, at, "at");
    }
    if (loops < 0 || loops > 2)
        err_throw(&ctx->err, ST_ARG, "loops is %d; give 0, 1 or 2", loops);
    geom_rows(&ctx->scratch, &edges, loops, start, sender, at);
    return api_leave(ctx);
}

static void make(weft_ctx *ctx, const weft_edge_list *list, const void *type, int64_t relations,
                 int64_t least, weft_tiles *out)
{
    GeomList edges = take(ctx, list);
    GeomTiles t;

    if (relations < 0 || relations > LIMIT_RELATIONS || least < 0 || least > LIMIT_ENTRIES)
        err_throw(&ctx->err, ST_ARG, "%lld relations and at least %lld tiles", (long long)relations,
                  (long long)least);
    geom_tiles(&api_box(ctx)->arena, &edges, edges_widen(ctx, list, type, relations, "type"),
               relations, TILE, least, &t);
    *out = (weft_tiles){ t.tiles, t.pairs, t.relation, t.start, t.sender, t.at, t.first, t.place };
}

weft_status weft_tiles_make(weft_ctx *context, const weft_edge_list *list, const void *type,
                            int64_t relations, int64_t least, weft_tiles *out)
{
    weft_ctx *ctx = api_ctx_of(context, TAG_CTX);

    API_ENTER(ctx);
    api_need(ctx, out, "out");
    make(ctx, list, type, relations, least, out);
    box_drop(ctx->tiles);
    ctx->tiles = api_keep(ctx);
    return api_leave(ctx);
}
