/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Inputs of random programs as they may lie in a caller's memory: rows with gaps between them, and
 * elements that stand for a whole dimension.  The interpreter has them without gaps. */
#include "interp/interp.h"
#include "kernel/kernel_test.h"
#include "unit/trap.h"

#include <string.h>

typedef struct Lie { /* how an input lies */
    int ndim;
    int64_t extent[IR_MAX_FULL], stride[IR_MAX_FULL];
    bool told; /* strides above 1 are sizes of the kernel */
} Lie;

/* False: without gaps. */
static bool draw(Arena *a, const Subject *s, const Env *env, const Buf *b, Lie *out)
{
    Rng r = { s->seed * 31 + (uint64_t)b->id };
    Layout l;
    int64_t step = 1;

    if (b->kind != B_ARG || b->written || env->buf[b->id].data == NULL ||
        env->buf[b->id].n == 0 || !rng_p(&r, 60))
        return false;
    ir_layout(a, s->prog, env, b, &l);
    out->ndim = l.ndim;
    out->told = rng_p(&r, 40);
    for (int d = l.ndim - 1; d >= 0; d--) {
        out->extent[d] = l.extent[d];
        out->stride[d] = rng_p(&r, 30) ? 0 : step;
        step = step * l.extent[d] + rng_int(&r, 0, 3);
    }
    return l.ndim > 0;
}

/* Where element i of the array without gaps is. */
static int64_t place(const Lie *lie, int64_t i)
{
    int64_t at = 0;

    for (int d = lie->ndim - 1; d >= 0; d--) {
        at += i % lie->extent[d] * lie->stride[d];
        i /= lie->extent[d];
    }
    return at;
}

static int64_t elements(const Lie *lie)
{
    int64_t n = 1;

    for (int d = 0; d < lie->ndim; d++)
        n += (lie->extent[d] - 1) * lie->stride[d];
    return n;
}

static Array spread(Arena *a, const Lie *lie, const Array *from)
{
    size_t bytes = ir_type[from->type].bytes;
    Array to = array_new(a, from->type, elements(lie));

    for (int64_t i = 0; i < from->n; i++)
        memcpy((char *)to.data + (size_t)place(lie, i) * bytes,
               (const char *)from->data + (size_t)i * bytes, bytes);
    return to;
}

/* What is repeated has one value everywhere. */
static void repeat(Arena *a, Subject *s, const Lie *lie, const Array *from, const char *name)
{
    size_t bytes = ir_type[from->type].bytes;
    Array once = spread(a, lie, from), to = array_new(a, from->type, from->n);

    for (int64_t i = 0; i < to.n; i++)
        memcpy((char *)to.data + (size_t)i * bytes,
               (const char *)once.data + (size_t)place(lie, i) * bytes, bytes);
    for (int i = 0; i < s->in->n; i++)
        if (strcmp(s->in->item[i].name, name) == 0)
            s->in->item[i].array = to;
}

static bool has_right_data(Arena *a, const Subject *s)
{
    bool good = CATCH(a->err, interp_check(a, s->prog, data_bind(a, s->in, s->prog))) == ST_OK;

    err_clear(a->err);
    return good;
}

/* Other subjects may have the same data. */
static Data *own_data(Arena *a, const Data *from)
{
    Data *to = arena_alloc(a, sizeof *to);

    *to = (Data){ arena_copy(a, from->item, (size_t)from->n * sizeof *from->item), from->n, from->n };
    return to;
}

void strides_repeat(Arena *a, Subject *s)
{
    Env *env;
    Lie lie;

    /* repeated values make sums cancel, where a tolerance that is relative to them means nothing */
    s->strided = s->seed % 3 == 1 && s->tolerance == 0 && has_right_data(a, s);
    env = s->strided ? data_bind(a, s->in, s->prog) : NULL;
    if (s->strided)
        s->in = own_data(a, s->in);
    for (int i = 0; i < s->prog->nbuf && s->strided; i++)
        if (draw(a, s, env, s->prog->buf[i], &lie))
            repeat(a, s, &lie, &env->buf[i], s->prog->buf[i]->name);
}

void strides_set(Arena *a, Subject *s)
{
    Env *env = data_bind(a, s->in, s->prog);
    int64_t stride[IR_MAX_FULL];
    Lie lie;

    for (int i = 0; i < s->prog->nbuf && s->strided; i++) {
        Buf *b = s->prog->buf[i];

        if (!draw(a, s, env, b, &lie))
            continue;
        for (int d = 0; d < lie.ndim; d++)
            stride[d] = lie.told && lie.stride[d] > 1 ? LOWER_ANY : lie.stride[d];
        lower_strided(s->prog, b, stride, lie.ndim);
        for (int d = 0; d < lie.ndim; d++)
            if (b->stride[d].size != NULL)
                data_size(a, s->in, b->stride[d].size->name, lie.stride[d]);
    }
}

Array strides_spread(Arena *a, const Subject *s, const Env *env, const Buf *b, Array packed)
{
    Lie lie;

    if (b->stride == NULL || !draw(a, s, env, b, &lie))
        return packed;
    return spread(a, &lie, &packed);
}
