/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Kernel maps of sparse convolutions as plain arrays: checks the arguments; geom/voxels.c builds
 * the maps. */
#include "api/api_int.h"
#include "geom/geom.h"

static void check_range(weft_ctx *ctx, const char *what, int c, int64_t v, int64_t low,
                        int64_t high)
{
    if (v < low || v > high)
        err_throw(&ctx->err, ST_ARG, "%s: %lld in dimension %d; give a number from %lld to %lld",
                  what, (long long)v, c, (long long)low, (long long)high);
}

/* Dimension c, with the defaults put in. */
static void take_dimension(weft_ctx *ctx, const weft_voxels *v, int c, GeomVoxels *out)
{
    int64_t far = GEOM_FAR >> 8;

    out->kernel[c] = v->kernel[c];
    out->stride[c] = v->stride[c] == 0 ? 1 : v->stride[c];
    out->dilation[c] = v->dilation[c] == 0 ? 1 : v->dilation[c];
    out->padding[c] = v->padding[c];
    out->extra[c] = v->extra[c];
    out->shape[c] = v->shape[c];
    check_range(ctx, "kernel_size", c, out->kernel[c], 1, GEOM_KERNEL);
    check_range(ctx, "stride", c, out->stride[c], 1, far);
    check_range(ctx, "dilation", c, out->dilation[c], 1, far);
    check_range(ctx, "padding", c, out->padding[c], 0, far);
    check_range(ctx, "output_padding", c, out->extra[c], 0, far);
    check_range(ctx, "shape", c, out->shape[c], 0, GEOM_FAR);
    if (out->subm) {
        out->stride[c] = 1;
        out->padding[c] = out->dilation[c] * (out->kernel[c] / 2);
    }
}

static GeomVoxels take_voxels(weft_ctx *ctx, const weft_voxels *v)
{
    GeomVoxels out = { .n = v->n, .coord = v->coord, .batch = v->batch };

    check_range(ctx, "the number of voxels", 0, v->n, 0, INT32_MAX);
    check_range(ctx, "batch_size", 0, v->batch, 0, GEOM_FAR);
    if (v->n > 0)
        api_need(ctx, v->coord, "coord");
    if (v->type != WEFT_I32 && v->type != WEFT_I64)
        err_throw(&ctx->err, ST_ARG, "coordinates of voxels are WEFT_I32 or WEFT_I64");
    if (v->kind != WEFT_SUBMANIFOLD && v->kind != WEFT_STRIDED && v->kind != WEFT_TRANSPOSED)
        err_throw(&ctx->err, ST_ARG, "there is no kind %d of convolutions", (int)v->kind);
    out.wide = v->type == WEFT_I64;
    out.subm = v->kind == WEFT_SUBMANIFOLD;
    out.transposed = v->kind == WEFT_TRANSPOSED;
    out.strip = v->strip == 0 ? 512 : v->strip;
    check_range(ctx, "strip", 0, out.strip, 1, 1 << 20);
    for (int c = 0; c < 3; c++)
        take_dimension(ctx, v, c, &out);
    return out;
}

static void give(const GeomMap *m, weft_kernel_map *out)
{
    *out = (weft_kernel_map){ .in = m->in, .out = m->out, .offsets = m->offsets,
                              .strip = m->strip, .strips = m->strips, .groups = m->groups,
                              .pairs = m->pairs, .coord = m->coord,
                              .group_start = m->group_start, .offset = m->offset,
                              .pair_start = m->pair_start, .row = m->row, .input = m->input };
    for (int c = 0; c < 3; c++)
        out->shape[c] = m->shape[c];
}

static void keep_map(weft_ctx *ctx)
{
    box_drop(ctx->map);
    ctx->map = api_keep(ctx);
}

weft_status weft_kernel_map_make(weft_ctx *context, const weft_voxels *voxels, weft_kernel_map *out)
{
    weft_ctx *ctx = api_ctx_of(context, TAG_CTX);
    FmtPool workers;
    GeomVoxels v;
    GeomMap map = { .in = 0 };

    API_ENTER(ctx);
    api_need(ctx, voxels, "voxels");
    api_need(ctx, out, "out");
    v = take_voxels(ctx, voxels);
    workers = api_workers(api_pool(ctx));
    geom_kernel_map(&api_box(ctx)->arena, &ctx->scratch, &(GeomPool){ workers.run, workers.with },
                    &v, &map);
    give(&map, out);
    keep_map(ctx);
    return api_leave(ctx);
}

static void check_starts(weft_ctx *ctx, const char *what, const int32_t *start, int64_t n,
                         int64_t end)
{
    api_need(ctx, start, what);
    for (int64_t i = 0; i < n; i++)
        if (start[i] > start[i + 1])
            err_throw(&ctx->err, ST_BIND, "%s[%lld] is %d, above the next one", what, (long long)i,
                      (int)start[i]);
    if (start[0] != 0 || start[n] != end)
        err_throw(&ctx->err, ST_BIND, "%s goes from %d to %d, not from 0 to %lld", what,
                  (int)start[0], (int)start[n], (long long)end);
}

static void check_below(weft_ctx *ctx, const char *what, const int32_t *array, int64_t n,
                        int64_t bound)
{
    if (n > 0)
        api_need(ctx, array, what);
    for (int64_t i = 0; i < n; i++)
        if (array[i] < 0 || array[i] >= bound)
            err_throw(&ctx->err, ST_BIND, "%s[%lld] is %d, which is not below %lld", what,
                      (long long)i, (int)array[i], (long long)bound);
}

/* A map of the caller, looked at.  Its arrays are only read, whatever GeomMap says of them. */
static GeomMap take_map(weft_ctx *ctx, const weft_kernel_map *m)
{
    GeomMap out = { .in = m->in, .out = m->out, .offsets = m->offsets, .strip = m->strip,
                    .strips = m->strips, .groups = m->groups, .pairs = m->pairs,
                    .group_start = (int32_t *)m->group_start, .offset = (int32_t *)m->offset,
                    .pair_start = (int32_t *)m->pair_start, .row = (int32_t *)m->row,
                    .input = (int32_t *)m->input };

    check_range(ctx, "in", 0, m->in, 0, INT32_MAX);
    check_range(ctx, "out", 0, m->out, 0, INT32_MAX);
    check_range(ctx, "strip", 0, m->strip, 1, 1 << 20);
    check_range(ctx, "strips", 0, m->strips, 0, (m->out + m->strip - 1) / m->strip);
    check_range(ctx, "offsets", 0, m->offsets, 1, (int64_t)GEOM_KERNEL * GEOM_KERNEL * GEOM_KERNEL);
    check_range(ctx, "groups", 0, m->groups, 0, INT32_MAX);
    check_range(ctx, "pairs", 0, m->pairs, 0, INT32_MAX);
    check_starts(ctx, "group_start", m->group_start, m->strips, m->groups);
    check_starts(ctx, "pair_start", m->pair_start, m->groups, m->pairs);
    check_below(ctx, "offset", m->offset, m->groups, m->offsets);
    check_below(ctx, "row", m->row, m->pairs, m->strip);
    check_below(ctx, "input", m->input, m->pairs, m->in);
    return out;
}

weft_status weft_kernel_map_turn(weft_ctx *context, const weft_kernel_map *map,
                                 weft_kernel_map *out)
{
    weft_ctx *ctx = api_ctx_of(context, TAG_CTX);
    GeomMap from, to = { .in = 0 };

    API_ENTER(ctx);
    api_need(ctx, map, "map");
    api_need(ctx, out, "out");
    from = take_map(ctx, map);
    geom_map_turn(&api_box(ctx)->arena, &ctx->scratch, &from, &to);
    give(&to, out);
    keep_map(ctx);
    return api_leave(ctx);
}
