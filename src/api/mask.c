/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Structure of attention: weft_mask_make checks the arguments of a mask, and keeps its block arrays
 * in the context; weft_pages_make lists the pages of each sequence. */
#include "api/api_int.h"
#include "geom/geom.h"

enum { LIMIT_COLUMNS = 64 };

static int64_t or_else(int64_t value, int64_t other)
{
    return value == 0 ? other : value;
}

static void check_sizes(weft_ctx *ctx, const GeomMaskIn *in, weft_type type)
{
    if (in->n < 0 || in->m < 0 || in->copies < 0 || in->w < 0 || in->block < 1)
        err_throw(&ctx->err, ST_ARG,
                  "a mask of %lld x %lld tokens, %lld copies: give sizes from 0 on",
                  (long long)in->n, (long long)in->m, (long long)in->copies);
    if (in->bi < 1 || in->bi > GEOM_MASK_TILE || in->bj < 1 || in->bj > LIMIT_COLUMNS)
        err_throw(&ctx->err, ST_ARG,
                  "tiles of %d queries and blocks of %d keys: give 1 to 64 of each", in->bi,
                  in->bj);
    if (type != WEFT_F32 && type != WEFT_F64)
        err_throw(&ctx->err, ST_ARG, "the patterns of a mask are WEFT_F32 or WEFT_F64");
    if (in->n > LIMIT_ENTRIES || in->m > LIMIT_ENTRIES || in->copies > LIMIT_COPIES)
        err_throw(&ctx->err, ST_LIMIT, "a mask of more than 2^40 tokens or 2^20 copies");
}

static void check_entries(weft_ctx *ctx, const GeomMaskIn *in)
{
    int64_t rows = (in->n + in->block - 1) / in->block, cols = (in->m + in->block - 1) / in->block;

    api_need(ctx, in->start, "start");
    if (in->start[0] != 0)
        err_throw(&ctx->err, ST_BIND, "start: begins with %lld; give 0", (long long)in->start[0]);
    for (int64_t i = 0; i < rows; i++)
        if (in->start[i] > in->start[i + 1])
            err_throw(&ctx->err, ST_BIND, "start: falls at row %lld", (long long)i);
    if (in->start[rows] > 0)
        api_need(ctx, in->col, "col");
    for (int64_t p = 0; p < in->start[rows]; p++)
        if (in->col[p] < 0 || in->col[p] >= cols)
            err_throw(&ctx->err, ST_BIND, "col: entry %lld is column %lld, outside 0..%lld",
                      (long long)p, (long long)in->col[p], (long long)cols);
}

static void check_lengths(weft_ctx *ctx, const char *name, const int64_t *a, int64_t copies,
                          int64_t n)
{
    for (int64_t c = 0; a != NULL && c < copies; c++)
        if (a[c] < 0 || a[c] > n)
            err_throw(&ctx->err, ST_BIND, "%s: copy %lld has %lld tokens, outside 0..%lld", name,
                      (long long)c, (long long)a[c], (long long)n);
}

static void make(weft_ctx *ctx, const weft_mask_in *given, weft_mask *out)
{
    Arena *arena = &api_box(ctx)->arena;
    GeomMask g;
    GeomMaskIn in = { .spec = given->source, .start = given->start, .col = given->col,
                      .block = or_else(given->block, 1), .n = given->n, .m = given->m,
                      .copies = or_else(given->copies, 1), .lq = given->lq, .lk = given->lk,
                      .bi = (int)or_else(given->bi, 16), .bj = (int)or_else(given->bj, 64),
                      .w = given->w, .causal = given->causal != 0,
                      .wide = given->type == WEFT_F64 };

    check_sizes(ctx, &in, given->type);
    if (in.spec == NULL)
        check_entries(ctx, &in);
    check_lengths(ctx, "lq", in.lq, in.copies, in.n);
    check_lengths(ctx, "lk", in.lk, in.copies, in.m);
    geom_mask(arena, &in, &g);
    *out = (weft_mask){ .nnz = g.nnz, .tiles = g.tiles, .blocks = g.blocks, .pieces = g.pieces,
                        .w = g.w, .most = g.most, .patterns = g.patterns, .split = g.split,
                        .start = g.start, .row = g.row, .j = g.j, .pat = g.pat, .x = g.x };
    box_drop(ctx->mask);
    ctx->mask = api_keep(ctx);
}

weft_status weft_mask_make(weft_ctx *context, const weft_mask_in *in, weft_mask *out)
{
    weft_ctx *ctx = api_ctx_of(context, TAG_CTX);

    API_ENTER(ctx);
    api_need(ctx, in, "in");
    api_need(ctx, out, "out");
    make(ctx, in, out);
    return api_leave(ctx);
}

weft_status weft_mask_random(weft_ctx *context, uint64_t seed, int64_t n, int64_t *out)
{
    weft_ctx *ctx = api_ctx_of(context, TAG_CTX);

    API_ENTER(ctx);
    if (n < 0)
        err_throw(&ctx->err, ST_ARG, "n: %lld random numbers; give 0 or more", (long long)n);
    if (n > 0)
        api_need(ctx, out, "out");
    geom_random(seed, n, out);
    return api_leave(ctx);
}

/* Of sequence b the pages that its tokens fill, up to *at; returns where the next one begins. */
static int64_t take_pages(weft_ctx *ctx, const int64_t *table, int64_t length, int64_t pages,
                          int64_t page, int64_t at, int64_t *where, int64_t *tokens)
{
    for (int64_t k = 0; length > 0; k++, at++, length -= page) {
        if (table[k] < 0 || table[k] >= pages)
            err_throw(&ctx->err, ST_BIND, "block_table: expected pages from 0 to %lld, got %lld",
                      (long long)pages - 1, (long long)table[k]);
        where[at] = table[k];
        tokens[at + 1] = tokens[at] + (length < page ? length : page);
    }
    return at;
}

static void make_pages(weft_ctx *ctx, const int64_t *table, const int64_t *lengths, int64_t batch,
                       int64_t width, int64_t pages, int64_t page, int64_t *start, int64_t *where,
                       int64_t *tokens)
{
    if (batch < 0 || width < 0 || pages < 0 || page < 1 || batch > LIMIT_ENTRIES ||
        width > LIMIT_ENTRIES || page > LIMIT_ENTRIES / (width + 1))
        err_throw(&ctx->err, ST_ARG, "%lld sequences of %lld pages of %lld tokens: give sizes",
                  (long long)batch, (long long)width, (long long)page);
    api_need(ctx, start, "start");
    api_need(ctx, tokens, "tokens");
    if (batch > 0)
        api_need(ctx, lengths, "lengths");
    if (batch > 0 && width > 0) {
        api_need(ctx, table, "table");
        api_need(ctx, where, "where");
    }
    start[0] = tokens[0] = 0;
    for (int64_t b = 0; b < batch; b++) {
        if (lengths[b] < 0 || lengths[b] > width * page)
            err_throw(&ctx->err, ST_BIND,
                      "lengths: expected 0 to %lld tokens, as block_table has pages, got %lld",
                      (long long)(width * page), (long long)lengths[b]);
        start[b + 1] = take_pages(ctx, table + b * width, lengths[b], pages, page, start[b], where,
                                  tokens);
    }
}

weft_status weft_pages_make(weft_ctx *context, const int64_t *table, const int64_t *lengths,
                            int64_t batch, int64_t width, int64_t pages, int64_t page,
                            int64_t *start, int64_t *where, int64_t *tokens)
{
    weft_ctx *ctx = api_ctx_of(context, TAG_CTX);

    API_ENTER(ctx);
    make_pages(ctx, table, lengths, batch, width, pages, page, start, where, tokens);
    return api_leave(ctx);
}
