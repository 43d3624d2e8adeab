/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Lists of edges, checked and sorted by receiver and sender once for all convolutions over them.
 * Edges with the same ends keep their order, so a sum over them does not depend on the order of
 * other edges in the list. */
#include "api/api_int.h"
#include "lower/lower.h"

#include <string.h>

typedef struct List { /* of the caller, checked */
    Arena *arena;
    int64_t nodes, senders, n;
    bool wide;
    const void *receiver, *sender;
} List;

static int64_t end_of(const List *l, const void *ends, int64_t k)
{
    return l->wide ? ((const int64_t *)ends)[k] : ((const int32_t *)ends)[k];
}

static void check_ends(const List *l, const void *ends, int64_t rows, const char *what)
{
    for (int64_t k = 0; k < l->n; k++) {
        int64_t row = end_of(l, ends, k);

        if (row < 0 || row >= rows)
            err_throw(l->arena->err, ST_BIND, "%s[%lld] is %lld, but there are %lld rows", what,
                      (long long)k, (long long)row, (long long)rows);
    }
}

static bool is_sorted(const List *l)
{
    for (int64_t k = 1; k < l->n; k++) {
        int64_t r0 = end_of(l, l->receiver, k - 1), r1 = end_of(l, l->receiver, k);

        if (r0 > r1 || (r0 == r1 && end_of(l, l->sender, k - 1) > end_of(l, l->sender, k)))
            return false;
    }
    return true;
}

/* How many ends are below each row: rows + 1. */
static int64_t *count(const List *l, const void *ends, int64_t rows)
{
    int64_t *start = arena_array(l->arena, rows + 1, sizeof *start);

    for (int64_t k = 0; k < l->n; k++)
        start[end_of(l, ends, k) + 1]++;
    for (int64_t i = 0; i < rows; i++)
        start[i + 1] += start[i];
    return start;
}

/* Edges by one end, those of a row in the order of `from`; NULL: of the list. */
static int64_t *order(const List *l, const void *ends, int64_t rows, const int64_t *from)
{
    int64_t *at = count(l, ends, rows), *to = arena_array(l->arena, l->n, sizeof *to);

    for (int64_t k = 0; k < l->n; k++) {
        int64_t edge = from != NULL ? from[k] : k;

        to[at[end_of(l, ends, edge)]++] = edge;
    }
    return to;
}

/* Into the box of this call; what is needed in between is of the scratch memory. */
static void fill(weft_edges *edges, List *l, Arena *to)
{
    int64_t *sender = arena_array(to, l->n, sizeof *sender), *place = NULL;
    List kept = *l;

    check_ends(l, l->receiver, l->nodes, "receiver");
    check_ends(l, l->sender, l->senders, "sender");
    kept.arena = to;
    edges->start = count(&kept, l->receiver, l->nodes);
    if (!is_sorted(l)) {
        int64_t *by = order(l, l->receiver, l->nodes, order(l, l->sender, l->senders, NULL));

        place = arena_array(to, l->n, sizeof *place);
        memcpy(place, by, (size_t)l->n * sizeof *place);
    }
    for (int64_t k = 0; k < l->n; k++)
        sender[k] = end_of(l, l->sender, place != NULL ? place[k] : k);
    edges->nodes = l->nodes;
    edges->senders = l->senders;
    edges->n = l->n;
    edges->sender = sender;
    edges->place = place;
}

static void check_count(weft_ctx *ctx, int64_t n, const char *what)
{
    if (n < 0)
        err_throw(&ctx->err, ST_ARG, "a negative number of %s", what);
    if (n >> LIMIT_SIZE_BITS != 0)
        err_throw(&ctx->err, ST_LIMIT, "%lld %s; kernels take sizes below 2^%d", (long long)n, what,
                  LIMIT_SIZE_BITS);
}

void edges_check(weft_ctx *ctx, const weft_edge_list *list)
{
    api_need(ctx, list, "list");
    check_count(ctx, list->nodes, "rows");
    check_count(ctx, list->senders, "senders");
    check_count(ctx, list->n, "edges");
    if (list->type != WEFT_I32 && list->type != WEFT_I64)
        err_throw(&ctx->err, ST_ARG, "receivers and senders are WEFT_I32 or WEFT_I64");
    if (list->n > 0) {
        api_need(ctx, list->receiver, "receiver");
        api_need(ctx, list->sender, "sender");
    }
}

const int64_t *edges_widen(weft_ctx *ctx, const weft_edge_list *list, const void *ends,
                           int64_t rows, const char *what)
{
    List l = { .arena = &ctx->scratch, .n = list->n, .wide = list->type == WEFT_I64 };
    int64_t *out;

    if (list->n > 0)
        api_need(ctx, ends, what);
    check_ends(&l, ends, rows, what);
    if (l.wide)
        return ends;
    out = arena_raw(&ctx->scratch, l.n, sizeof *out);
    for (int64_t k = 0; k < l.n; k++)
        out[k] = end_of(&l, ends, k);
    return out;
}

weft_status weft_edges_new(weft_ctx *context, const weft_edge_list *list, weft_edges **out)
{
    weft_ctx *ctx = api_ctx_of(context, TAG_CTX);
    weft_edges made = { .number = 0 };
    List l;

    if (out != NULL)
        *out = NULL;
    API_ENTER(ctx);
    api_need(ctx, out, "out");
    edges_check(ctx, list);
    l = (List){ &ctx->scratch, list->nodes, list->senders, list->n, list->type == WEFT_I64,
                list->receiver, list->sender };
    fill(&made, &l, &api_box(ctx)->arena);
    *out = api_handle_new(ctx, TAG_EDGES, sizeof **out);
    made.h = (*out)->h;
    made.box = api_keep(ctx);
    made.number = ++ctx->edges;
    **out = made;
    return api_leave(ctx);
}

void edges_drop(weft_edges *edges)
{
    box_drop(edges->box);
}

void weft_edges_free(weft_edges *edges)
{
    if (api_ctx_of(edges, TAG_EDGES) != NULL)
        api_handle_free(edges);
}
