/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Atoms from files or generators, and their neighbours, as plain arrays. */
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

static void read_xyz(weft_ctx *ctx, Arena *arena, const char *path, weft_atoms *out)
{
    IoAtoms a;

    io_xyz_parse(arena, file_read(&ctx->scratch, path, LIMIT_BYTES), path, &a);
    *out = (weft_atoms){ .n = a.n, .pos = a.pos, .kind = a.kind, .kinds = a.kinds, .name = a.name };
    memcpy(out->cell, a.cell, sizeof out->cell);
    for (int c = 0; c < 3; c++)
        out->pbc[c] = a.pbc[c];
}

static void generate(Arena *arena, const char *spec, weft_atoms *out)
{
    GeomAtoms a;

    geom_atoms(arena, spec, &a);
    *out = (weft_atoms){ .n = a.n, .pos = a.pos, .kind = a.kind, .kinds = a.kinds, .name = a.name };
    memcpy(out->cell, a.cell, sizeof out->cell);
    for (int c = 0; c < 3; c++)
        out->pbc[c] = a.pbc[c];
}

weft_status weft_atoms_make(weft_ctx *context, const char *source, weft_atoms *out)
{
    weft_ctx *ctx = api_ctx_of(context, TAG_CTX);

    API_ENTER(ctx);
    api_need(ctx, source, "the source");
    api_need(ctx, out, "out");
    if (ends_in(source, ".xyz"))
        read_xyz(ctx, &api_box(ctx)->arena, source, out);
    else if (geom_is_atoms(source))
        generate(&api_box(ctx)->arena, source, out);
    else
        err_throw(&ctx->err, ST_ARG,
                  "%s: atoms are a file that ends in .xyz, or begin with a generator: crystal or "
                  "water",
                  source);
    box_drop(ctx->atoms);
    ctx->atoms = api_keep(ctx);
    return api_leave(ctx);
}

/* What the caller gives, looked at. */
static GeomAtoms take_atoms(weft_ctx *ctx, const weft_atoms *a)
{
    GeomAtoms out = { .n = a->n };

    if (a->n < 0)
        err_throw(&ctx->err, ST_ARG, "%lld atoms", (long long)a->n);
    if (a->n > 0)
        api_need(ctx, a->pos, "pos");
    memcpy(out.cell, a->cell, sizeof out.cell);
    for (int c = 0; c < 3; c++)
        out.pbc[c] = a->pbc[c] != 0;
    return out;
}

static void write_atoms(weft_ctx *ctx, const weft_atoms *a, const char *path)
{
    static const char *const unknown[] = { "X" };
    GeomAtoms checked = take_atoms(ctx, a);
    IoAtoms out = { .n = a->n, .kinds = 1, .name = unknown };
    Text text = { .arena = &ctx->scratch };

    if (!ends_in(path, ".xyz"))
        err_throw(&ctx->err, ST_ARG, "%s: atoms are written to a file that ends in .xyz", path);
    memcpy(out.cell, checked.cell, sizeof out.cell);
    memcpy(out.pbc, checked.pbc, sizeof out.pbc);
    out.pos = arena_raw(&ctx->scratch, 3 * a->n, sizeof *out.pos);
    out.kind = arena_array(&ctx->scratch, a->n, sizeof *out.kind);
    if (a->n > 0)
        memcpy(out.pos, a->pos, (size_t)(3 * a->n) * sizeof *out.pos);
    if (a->n > 0 && a->kind != NULL) {
        api_need(ctx, a->name, "name");
        out.name = a->name;
        out.kinds = a->kinds;
        memcpy(out.kind, a->kind, (size_t)a->n * sizeof *out.kind);
    }
    for (int64_t i = 0; i < a->n; i++)
        if (out.kind[i] < 0 || out.kind[i] >= out.kinds)
            err_throw(&ctx->err, ST_ARG, "atom %lld has kind %d, but there are %d kinds",
                      (long long)i,
                      (int)out.kind[i], out.kinds);
    io_xyz_print(&text, &out);
    file_write(&ctx->scratch, path, text.s, text.n);
}

weft_status weft_atoms_write(weft_ctx *context, const weft_atoms *atoms, const char *path)
{
    weft_ctx *ctx = api_ctx_of(context, TAG_CTX);

    API_ENTER(ctx);
    api_need(ctx, atoms, "the atoms");
    api_need(ctx, path, "the path");
    write_atoms(ctx, atoms, path);
    return api_leave(ctx);
}

static GeomPool workers(weft_ctx *ctx)
{
    FmtPool pool = api_workers(api_pool(ctx));

    return (GeomPool){ pool.run, pool.with };
}

/* All of it in this call's box. */
static GeomNear *find(weft_ctx *ctx, const weft_atoms *atoms, double cutoff, const GeomPool *pool)
{
    Arena *arena = &api_box(ctx)->arena;
    GeomAtoms *a = arena_alloc(arena, sizeof *a);

    *a = take_atoms(ctx, atoms);
    a->pos = arena_raw(arena, a->n, 3 * sizeof *a->pos);
    if (a->n > 0)
        memcpy(a->pos, atoms->pos, (size_t)a->n * 3 * sizeof *a->pos);
    return geom_near(arena, pool, a, cutoff);
}

static void keep_near(weft_ctx *ctx, const weft_atoms *atoms, GeomNear *near)
{
    box_drop(ctx->near);
    ctx->near = api_keep(ctx);
    ctx->near_data = near;
    ctx->near_atoms = atoms->n;
}

weft_status weft_neighbours_find(weft_ctx *context, const weft_atoms *atoms, double cutoff,
                                 int64_t *nnz)
{
    weft_ctx *ctx = api_ctx_of(context, TAG_CTX);
    GeomPool pool;
    GeomNear *near;

    API_ENTER(ctx);
    api_need(ctx, atoms, "the atoms");
    api_need(ctx, nnz, "nnz");
    pool = workers(ctx);
    near = find(ctx, atoms, cutoff, &pool);
    *nnz = geom_near_count(near);
    keep_near(ctx, atoms, near);
    return api_leave(ctx);
}

static void need_near(weft_ctx *ctx)
{
    if (ctx->near == NULL)
        err_throw(&ctx->err, ST_ARG,
                  "there are no neighbours yet; weft_neighbours_find comes first");
}

static void check_type(weft_ctx *ctx, weft_type type, int64_t nnz)
{
    if (type != WEFT_I32 && type != WEFT_I64)
        err_throw(&ctx->err, ST_ARG, "the indices of neighbours are WEFT_I32 or WEFT_I64");
    if (type == WEFT_I32 && nnz > INT32_MAX)
        err_throw(&ctx->err, ST_LIMIT, "%lld pairs: too many for 32-bit indices", (long long)nnz);
}

static void fill(const GeomNear *near, const GeomPool *pool, const weft_neighbours *to)
{
    GeomEdges e = { .wide = to->type == WEFT_I64, .start = to->start, .receiver = to->receiver,
                    .sender = to->sender, .shift = to->shift, .vec = to->vec, .dist = to->dist };

    geom_near_fill(near, pool, &e);
}

weft_status weft_neighbours_get(weft_ctx *context, weft_neighbours *to)
{
    weft_ctx *ctx = api_ctx_of(context, TAG_CTX);
    GeomPool pool;

    API_ENTER(ctx);
    api_need(ctx, to, "to");
    need_near(ctx);
    check_type(ctx, to->type, geom_near_count(ctx->near_data));
    pool = workers(ctx);
    to->n = ctx->near_atoms;
    to->nnz = geom_near_count(ctx->near_data);
    fill(ctx->near_data, &pool, to);
    return api_leave(ctx);
}

/* Arrays for all there is, and what is in them. */
static weft_neighbours fill_all(weft_ctx *ctx, Arena *arena, const GeomNear *near, int64_t n,
                                weft_type type)
{
    weft_neighbours out = { .n = n, .nnz = geom_near_count(near), .type = type };
    size_t width = type == WEFT_I64 ? 8 : 4;
    GeomPool pool = workers(ctx);

    check_type(ctx, type, out.nnz);
    out.start = arena_raw(arena, n + 1, width);
    out.receiver = arena_raw(arena, out.nnz, width);
    out.sender = arena_raw(arena, out.nnz, width);
    out.shift = arena_raw(arena, out.nnz, 3 * sizeof *out.shift);
    out.vec = arena_raw(arena, out.nnz, 3 * sizeof *out.vec);
    out.dist = arena_raw(arena, out.nnz, sizeof *out.dist);
    fill(near, &pool, &out);
    return out;
}

weft_status weft_neighbours_make(weft_ctx *context, const weft_atoms *atoms, double cutoff,
                                 weft_type type, weft_neighbours *out)
{
    weft_ctx *ctx = api_ctx_of(context, TAG_CTX);
    GeomPool pool;
    GeomNear *near;

    API_ENTER(ctx);
    api_need(ctx, atoms, "the atoms");
    api_need(ctx, out, "out");
    pool = workers(ctx);
    near = find(ctx, atoms, cutoff, &pool);
    *out = fill_all(ctx, &ctx->box->arena, near, atoms->n, type);
    keep_near(ctx, atoms, near);
    return api_leave(ctx);
}

/* Names as of graphs, so that the file is one. */
static void print_npz(const weft_neighbours *e, Text *out)
{
    int64_t n = e->n;
    IoArray array[] = {
        { .name = "n", .type = IO_I64, .n = 1, .data = &n },
        { .name = "start", .type = IO_I64, .ndim = 1, .dim = { n + 1 }, .n = n + 1 },
        { .name = "col", .type = IO_I64, .ndim = 1, .dim = { e->nnz }, .n = e->nnz },
        { .name = "shift", .type = IO_I32, .ndim = 2, .dim = { e->nnz, 3 }, .n = 3 * e->nnz },
        { .name = "vec", .type = IO_F64, .ndim = 2, .dim = { e->nnz, 3 }, .n = 3 * e->nnz },
        { .name = "dist", .type = IO_F64, .ndim = 1, .dim = { e->nnz }, .n = e->nnz },
    };

    array[1].data = e->start;
    array[2].data = e->sender;
    array[3].data = e->shift;
    array[4].data = e->vec;
    array[5].data = e->dist;
    io_npz_print(out, &(IoNpz){ 6, array });
}

static void write_near(weft_ctx *ctx, const char *path)
{
    Text text = { .arena = &ctx->scratch };
    weft_neighbours e;

    need_near(ctx);
    if (!ends_in(path, ".npz"))
        err_throw(&ctx->err, ST_ARG, "%s: neighbours are written to a file that ends in .npz",
                  path);
    e = fill_all(ctx, &ctx->scratch, ctx->near_data, ctx->near_atoms, WEFT_I64);
    print_npz(&e, &text);
    file_write(&ctx->scratch, path, text.s, text.n);
}

weft_status weft_neighbours_write(weft_ctx *context, const char *path)
{
    weft_ctx *ctx = api_ctx_of(context, TAG_CTX);

    API_ENTER(ctx);
    api_need(ctx, path, "the path");
    write_near(ctx, path);
    return api_leave(ctx);
}
