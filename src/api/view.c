/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The caller's arrays: checked when they are bound, copied where the library needs them aligned and
 * without gaps, and proven not to overlap where they are written. */
#include "api/api_int.h"
#include "run/run.h"

#include <string.h>

static const Type type_of[] = { [WEFT_I32] = T_i32,   [WEFT_I64] = T_i64, [WEFT_F16] = T_f16,
                                [WEFT_BF16] = T_bf16, [WEFT_F32] = T_f32, [WEFT_F64] = T_f64 };

static void check_tensor(weft_ctx *ctx, const char *name, const weft_tensor *t)
{
    if ((unsigned)t->type > WEFT_F64)
        err_throw(&ctx->err, ST_ARG, "%s: %d is not a type", name, (int)t->type);
    if (t->ndim < 0 || t->ndim > WEFT_MAX_NDIM)
        err_throw(&ctx->err, ST_ARG, "%s: %d dimensions; 0 to %d are possible", name, t->ndim,
                  WEFT_MAX_NDIM);
    if (t->ndim > 0)
        api_need(ctx, t->shape, "the shape of a tensor");
}

static void copy_shape(weft_ctx *ctx, const char *name, const weft_tensor *t, View *v)
{
    bool over = false;

    for (int d = t->ndim - 1; d >= 0; d--) {
        if (t->shape[d] < 0)
            err_throw(&ctx->err, ST_ARG, "%s: dimension %d is %lld", name, d,
                      (long long)t->shape[d]);
        v->shape[d] = t->shape[d];
        v->stride[d] = t->stride != NULL ? t->stride[d] : v->n;
        over = over || int_mul(v->n, t->shape[d], &v->n);
    }
    if (over)
        err_throw(&ctx->err, ST_LIMIT, "%s has more elements than a 64-bit number can count", name);
}

/* The addresses from its first to behind its last byte. */
static void find_ends(weft_ctx *ctx, const char *name, View *v)
{
    int64_t size = ir_type[v->type].bytes, low = 0, high = size, reach;
    bool over = false;

    for (int d = 0; d < v->ndim; d++) {
        over = over || int_mul(v->stride[d], v->shape[d] - 1, &reach) ||
               int_mul(reach, size, &reach) ||
               (reach < 0 ? int_add(low, reach, &low) : int_add(high, reach, &high));
    }
    v->low = (uintptr_t)v->data + (uintptr_t)low;
    v->high = (uintptr_t)v->data + (uintptr_t)high;
    if (over || v->low > (uintptr_t)v->data || v->high < (uintptr_t)v->data)
        err_throw(&ctx->err, ST_ARG, "%s: the strides leave the address space", name);
}

static bool is_plain(const View *v)
{
    int64_t n = 1;
    bool plain = (uintptr_t)v->data % ir_type[v->type].bytes == 0;

    for (int d = v->ndim - 1; d >= 0; d--) {
        plain = plain && (v->shape[d] == 1 || v->stride[d] == n);
        n *= v->shape[d];
    }
    return plain || v->n == 0;
}

void api_view(weft_ctx *ctx, const char *name, const weft_tensor *t, View *v)
{
    check_tensor(ctx, name, t);
    *v = (View){ .data = t->data, .type = type_of[t->type], .ndim = t->ndim, .n = 1 };
    copy_shape(ctx, name, t, v);
    v->plain = is_plain(v);
    if (v->n == 0)
        return;
    if (t->data == NULL)
        err_throw(&ctx->err, ST_ARG, "%s: data is NULL, but the tensor has %lld elements", name,
                  (long long)v->n);
    find_ends(ctx, name, v);
}

typedef void Touch(char *element, void *ctx);

/* Calls touch for each element, in C order. */
static void walk(const View *v, int d, char *p, Touch *touch, void *ctx)
{
    if (d == v->ndim) {
        touch(p, ctx);
        return;
    }
    for (int64_t i = 0; i < v->shape[d]; i++)
        walk(v, d + 1, p + i * v->stride[d] * ir_type[v->type].bytes, touch, ctx);
}

static inline void move(char *to, int64_t to_step, const char *from, int64_t from_step, int64_t n,
                        size_t size)
{
    for (int64_t i = 0; i < n; i++)
        memcpy(to + i * to_step, from + i * from_step, size);
}

/* Copies n elements; the steps are bytes between neighbours. */
static void move_row(char *to, int64_t to_step, const char *from, int64_t from_step, int64_t n,
                     size_t size)
{
    if (to_step == from_step && to_step == (int64_t)size)
        memcpy(to, from, (size_t)n * size);
    else if (size == 2)
        move(to, to_step, from, from_step, n, 2);
    else if (size == 4)
        move(to, to_step, from, from_step, n, 4);
    else
        move(to, to_step, from, from_step, n, 8);
}

/* The address of a row: its number is split into one index for each dimension. */
static char *row_at(const View *v, int64_t row)
{
    char *p = v->data;

    for (int d = v->ndim - 2; d >= 0; d--) {
        p += row % v->shape[d] * v->stride[d] * ir_type[v->type].bytes;
        row /= v->shape[d];
    }
    return p;
}

static int64_t length_of(const View *v)
{
    return v->ndim == 0 ? 1 : v->shape[v->ndim - 1];
}

/* Some rows of a view, to an array in C order or from there: a phase. */
static int64_t move_rows(void *const *array, const int64_t *give, int64_t begin, int64_t end,
                         void *work)
{
    const View *v = array[0];
    int64_t size = ir_type[v->type].bytes, n = length_of(v);
    int64_t step = v->ndim == 0 ? size : v->stride[v->ndim - 1] * size;

    (void)work;
    for (int64_t row = begin; row < end; row++) {
        char *packed = (char *)array[1] + row * n * size, *at = row_at(v, row);

        if (*give)
            move_row(at, step, packed, size, n, (size_t)size);
        else
            move_row(packed, size, at, step, n, (size_t)size);
    }
    return 0;
}

static void move_all(Pool *pool, const View *v, const void *packed, int64_t give)
{
    void *array[] = { (void *)(uintptr_t)v, (void *)(uintptr_t)packed };
    RunPhase phase = { .fn = move_rows, .n = v->n / length_of(v) };
    int64_t bytes = v->n * (int64_t)ir_type[v->type].bytes;

    phase.grain = 1 + COST_MOVED / (1 + bytes / phase.n);
    if (v->plain && give)
        memcpy(v->data, packed, (size_t)bytes);
    else if (v->plain)
        memcpy(array[1], v->data, (size_t)bytes);
    else if (pool == NULL)
        move_rows(array, &give, 0, phase.n, NULL);
    else
        run_phases(pool, &phase, 1, array, &give);
}

void view_gather(const View *v, void *to, Pool *pool)
{
    if (v->n > 0)
        move_all(pool, v, to, 0);
}

void view_scatter(const View *v, const void *from, Pool *pool)
{
    if (v->n > 0)
        move_all(pool, v, from, 1);
}

/* A view whose elements do not overlap, seen as nested strides, the widest first. */
typedef struct Comb {
    uintptr_t low, high;
    int ndim;
    uint64_t extent[WEFT_MAX_NDIM], stride[WEFT_MAX_NDIM]; /* strides in bytes */
    uint64_t size, other; /* of an element; of an element of the view tested against it */
    bool hit;
} Comb;

static void put_sorted(Comb *c, uint64_t extent, uint64_t stride)
{
    int d = c->ndim++;

    for (; d > 0 && c->stride[d - 1] < stride; d--) {
        c->extent[d] = c->extent[d - 1];
        c->stride[d] = c->stride[d - 1];
    }
    c->extent[d] = extent;
    c->stride[d] = stride;
}

/* False when a stride is smaller than what stands below it: then elements share memory, or lie so
 * entangled that nobody means it. */
static bool make_comb(const View *v, Comb *c)
{
    uint64_t below = ir_type[v->type].bytes;

    *c = (Comb){ .low = v->low, .high = v->high, .size = below };
    for (int d = 0; d < v->ndim; d++)
        if (v->shape[d] > 1)
            put_sorted(c, (uint64_t)v->shape[d],
                       (uint64_t)(v->stride[d] < 0 ? -v->stride[d] : v->stride[d]) * c->size);
    for (int d = c->ndim - 1; d >= 0; d--) {
        if (c->stride[d] < below)
            return false;
        below += c->stride[d] * (c->extent[d] - 1);
    }
    return true;
}

static bool has_byte(const Comb *c, uintptr_t at)
{
    uint64_t off = at - c->low;

    if (at < c->low || at >= c->high)
        return false;
    for (int d = 0; d < c->ndim; d++) {
        uint64_t i = off / c->stride[d];

        off -= (i < c->extent[d] ? i : c->extent[d] - 1) * c->stride[d];
    }
    return off < c->size;
}

static void test_element(char *element, void *ctx)
{
    Comb *c = ctx;

    for (uint64_t i = 0; i < c->other; i++)
        c->hit = c->hit || has_byte(c, (uintptr_t)element + i);
}

static bool overlap(Comb *out, const View *v)
{
    if (v->n == 0 || out->low >= v->high || v->low >= out->high)
        return false;
    out->other = ir_type[v->type].bytes;
    walk(v, 0, v->data, test_element, out);
    return out->hit;
}

static void check_output(weft_args *args, int i)
{
    weft_ctx *ctx = args->h.ctx;
    const char *name = args->body->arg[i].name;
    const View *out = &args->bound[i].view;
    Comb comb;

    if (out->n == 0)
        return;
    if (!make_comb(out, &comb))
        err_throw(&ctx->err, ST_BIND,
                  "%s is written, but elements of the array bound to it share "
                  "memory; bind one without stride 0",
                  name);
    for (int k = 0; k < args->body->narg; k++)
        if (k != i && args->bound[k].how == HOW_USER && overlap(&comb, &args->bound[k].view))
            err_throw(&ctx->err, ST_BIND,
                      "%s is written, but the array bound to it shares memory "
                      "with that of %s; bind a copy",
                      name, args->body->arg[k].name);
}

void api_check_overlap(weft_args *args)
{
    for (int i = 0; i < args->body->narg; i++)
        if (args->bound[i].how == HOW_USER && args->body->arg[i].role != WEFT_INPUT)
            check_output(args, i);
}
