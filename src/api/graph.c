/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Graphs for tests and benchmarks, from files or generators, as two plain arrays. */
#include "api/api_int.h"
#include "geom/geom.h"
#include "io/io.h"

#include <string.h>

#define LIMIT_BYTES ((int64_t)4 << 30)

static bool ends_in(const char *s, const char *end)
{
    size_t n = strlen(s), k = strlen(end);

    return n > k && strcmp(s + n - k, end) == 0;
}

static const IoArray *member(const IoNpz *npz, const char *name)
{
    for (int i = 0; i < npz->n; i++)
        if (strcmp(npz->array[i].name, name) == 0)
            return &npz->array[i];
    return NULL;
}

/* Integers as i64. */
static int64_t *widen(Arena *arena, const char *path, const IoArray *a)
{
    int64_t *out;

    if (a->ndim > 1 || (a->type != IO_I32 && a->type != IO_I64))
        err_throw(arena->err, ST_BIND, "%s: %s must be integers in one dimension", path, a->name);
    out = arena_array(arena, a->n, sizeof *out);
    for (int64_t i = 0; i < a->n; i++)
        out[i] = a->type == IO_I32 ? ((const int32_t *)a->data)[i] : ((const int64_t *)a->data)[i];
    return out;
}

static int64_t largest(const int64_t *a, int64_t n)
{
    int64_t most = -1;

    for (int64_t i = 0; i < n; i++)
        most = a[i] > most ? a[i] : most;
    return most;
}

static void from_entries(Arena *arena, const char *path, const int64_t *row, const int64_t *col,
                         int64_t n, GeomGraph *g)
{
    if (g->m < 0 || g->n < 0)
        err_throw(arena->err, ST_BIND, "%s: %lld rows and %lld columns", path, (long long)g->m,
                  (long long)g->n);
    for (int64_t p = 0; p < n; p++)
        if (row[p] < 0 || row[p] >= g->m || col[p] < 0 || col[p] >= g->n)
            err_throw(arena->err, ST_BIND, "%s: entry %lld is at (%lld, %lld), outside %lld x %lld",
                      path, (long long)p, (long long)row[p], (long long)col[p], (long long)g->m,
                      (long long)g->n);
    geom_graph_of(arena, row, col, n, g);
}

/* The rows of entries in CSR order. */
static int64_t *rows_of(Arena *arena, const char *path, const int64_t *start, int64_t m, int64_t n)
{
    int64_t *row = arena_array(arena, n, sizeof *row);

    if (m < 0 || start[0] != 0 || start[m] != n)
        err_throw(arena->err, ST_BIND, "%s: the starts are not those of %lld entries", path,
                  (long long)n);
    for (int64_t i = 0; i < m; i++)
        if (start[i] > start[i + 1])
            err_throw(arena->err, ST_BIND, "%s: the starts fall at row %lld", path, (long long)i);
    for (int64_t i = 0; i < m; i++)
        for (int64_t p = start[i]; p < start[i + 1]; p++)
            row[p] = i;
    return row;
}

static void read_npz(weft_ctx *ctx, Arena *arena, const char *path, GeomGraph *g)
{
    static const char *const pair[][2] = {
        { "start", "col" }, { "indptr", "indices" }, { "row", "col" }, { "head", "tail" }
    };
    const IoArray *a = NULL, *b = NULL, *n;
    int64_t *row, *col, k = 0;
    IoNpz npz;

    io_npz_parse(arena, file_read(&ctx->scratch, path, LIMIT_BYTES), path, NULL, &npz);
    for (; k < 4 && (a == NULL || b == NULL); k++) {
        a = member(&npz, pair[k][0]);
        b = member(&npz, pair[k][1]);
    }
    if (a == NULL || b == NULL)
        err_throw(arena->err, ST_BIND,
                  "%s has no graph: neither start and col, nor indptr and "
                  "indices, nor row and col, nor head and tail",
                  path);
    row = widen(arena, path, a);
    col = widen(arena, path, b);
    n = member(&npz, "n");
    g->m = k <= 2 ? a->n - 1 : 1 + largest(row, a->n);
    g->n = 1 + largest(col, b->n);
    if (n != NULL && n->n == 1)
        g->n = widen(arena, path, n)[0];
    else if (member(&npz, "shape") != NULL && member(&npz, "shape")->n == 2)
        g->n = widen(arena, path, member(&npz, "shape"))[1];
    else
        g->n = g->m > g->n ? g->m : g->n;
    if (k > 2 && g->m < g->n)
        g->m = g->n;
    if (k <= 2)
        row = rows_of(arena, path, row, g->m, b->n);
    else if (a->n != b->n)
        err_throw(arena->err, ST_BIND, "%s: %s and %s differ in length", path, a->name, b->name);
    from_entries(arena, path, row, col, b->n, g);
}

static void read_mtx(weft_ctx *ctx, Arena *arena, const char *path, GeomGraph *g)
{
    IoMatrix m;

    io_mtx_parse(arena, file_read(&ctx->scratch, path, LIMIT_BYTES), path, &m);
    if (m.dense)
        err_throw(arena->err, ST_BIND, "%s is a dense matrix", path);
    g->m = m.m;
    g->n = m.n;
    from_entries(arena, path, m.row, m.col, m.nnz, g);
}

static const int32_t *narrow(Arena *arena, const int64_t *a, int64_t n)
{
    int32_t *out = arena_array(arena, n, sizeof *out);

    for (int64_t i = 0; i < n; i++)
        out[i] = (int32_t)a[i];
    return out;
}

static void make(weft_ctx *ctx, const char *source, weft_type type, weft_graph *out)
{
    Arena *arena = &api_box(ctx)->arena;
    GeomGraph *g = arena_alloc(arena, sizeof *g);

    if (type != WEFT_I32 && type != WEFT_I64)
        err_throw(&ctx->err, ST_ARG, "the arrays of a graph are WEFT_I32 or WEFT_I64");
    if (geom_is_spec(source))
        geom_graph(arena, source, g);
    else if (ends_in(source, ".npz"))
        read_npz(ctx, arena, source, g);
    else if (ends_in(source, ".mtx"))
        read_mtx(ctx, arena, source, g);
    else
        err_throw(&ctx->err, ST_ARG,
                  "%s: a graph is a file that ends in .mtx or .npz, or begins with a generator: "
                  "uniform, powerlaw, rmat or banded",
                  source);
    if (type == WEFT_I32 && (g->nnz > INT32_MAX || g->n > INT32_MAX))
        err_throw(&ctx->err, ST_LIMIT, "%s: too large for 32-bit indices", source);
    *out = (weft_graph){ .m = g->m, .n = g->n, .nnz = g->nnz, .type = type };
    out->start = type == WEFT_I64 ? (const void *)g->start : narrow(arena, g->start, g->m + 1);
    out->col = type == WEFT_I64 ? (const void *)g->col : narrow(arena, g->col, g->nnz);
    box_drop(ctx->graph);
    ctx->graph_data = g;
    ctx->graph = api_keep(ctx);
}

weft_status weft_graph_make(weft_ctx *context, const char *source, weft_type type, weft_graph *out)
{
    weft_ctx *ctx = api_ctx_of(context, TAG_CTX);

    API_ENTER(ctx);
    api_need(ctx, source, "the source");
    api_need(ctx, out, "out");
    make(ctx, source, type, out);
    return api_leave(ctx);
}

static void print_npz(const GeomGraph *g, Text *out)
{
    int64_t n = g->n;
    IoArray array[] = {
        { .name = "n", .type = IO_I64, .n = 1, .data = &n },
        { .name = "start", .type = IO_I64, .ndim = 1, .dim = { g->m + 1 }, .n = g->m + 1 },
        { .name = "col", .type = IO_I64, .ndim = 1, .dim = { g->nnz }, .n = g->nnz },
    };

    array[1].data = g->start;
    array[2].data = g->col;
    io_npz_print(out, &(IoNpz){ 3, array });
}

static void print_mtx(weft_ctx *ctx, const GeomGraph *g, Text *out)
{
    IoMatrix m = { .m = g->m, .n = g->n, .nnz = g->nnz, .pattern = true, .col = g->col };

    m.row = rows_of(&ctx->scratch, "the graph", g->start, g->m, g->nnz);
    io_mtx_print(out, &m);
}

static void write_graph(weft_ctx *ctx, const char *path)
{
    Text out = { .arena = &ctx->scratch };

    if (ctx->graph == NULL)
        err_throw(&ctx->err, ST_ARG, "there is no graph yet; make one with weft_graph_make");
    if (ends_in(path, ".npz"))
        print_npz(ctx->graph_data, &out);
    else if (ends_in(path, ".mtx"))
        print_mtx(ctx, ctx->graph_data, &out);
    else
        err_throw(&ctx->err, ST_ARG, "%s: a graph is written to a file that ends in .mtx or .npz",
                  path);
    file_write(&ctx->scratch, path, out.s, out.n);
}

weft_status weft_graph_write(weft_ctx *context, const char *path)
{
    weft_ctx *ctx = api_ctx_of(context, TAG_CTX);

    API_ENTER(ctx);
    api_need(ctx, path, "the path");
    write_graph(ctx, path);
    return api_leave(ctx);
}
