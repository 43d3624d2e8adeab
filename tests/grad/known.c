/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Programs from files, with small random structure: every size is 3, and no segment is empty. */
#include "grad/grad_test.h"

#include <string.h>

enum { SIZE = 3 };

static int64_t bound_of(const Prog *p, const Env *env, const Coord *c)
{
    return c->bound != NULL ? ir_eval_size(p, env, c->bound) : SIZE;
}

/* Ascending and different where the axis says so; at most as many as there are values. */
static void draw_coords(Tester *t, const Axis *x, Array *a, int64_t first, int64_t n, int64_t bound)
{
    bool strict = (x->flags & (AX_SORTED | AX_UNIQUE)) != 0;
    int64_t v = -1;

    for (int64_t i = 0; i < n; i++) {
        v = strict ? v + 1 + rng_int(&t->rng, 0, (int)(bound - v - 1 - (n - i)))
                   : rng_int(&t->rng, 0, (int)bound - 1);
        array_set(a, first + i, v, 0);
    }
}

static void draw_axis(Tester *t, const Prog *p, Env *env, const Axis *x)
{
    int64_t parents = x->parent == NULL ? 1 : ir_axis_total(p, env, x->parent), n = 0;
    Array *start = &env->start[x->id];

    if (x->extent == X_BUILT)
        return;
    if (x->extent == X_SEG) {
        *start = array_new(t->arena, T_i64, parents + 1);
        for (int64_t q = 0; q < parents; q++)
            array_set(start, q + 1, array_int(start, q) + rng_int(&t->rng, 1, SIZE), 0);
    }
    n = ir_axis_total(p, env, x);
    for (int k = 0; k < x->ncoord; k++) {
        const Coord *c = &x->coord[k];

        if (c->kind != C_LOAD)
            continue;
        env->coord[x->id][k] = array_new(t->arena, T_i64, n);
        for (int64_t q = 0; q < parents; q++)
            draw_coords(t, x, &env->coord[x->id][k], ir_axis_start(p, env, x, q),
                        ir_axis_start(p, env, x, q + 1) - ir_axis_start(p, env, x, q),
                        bound_of(p, env, c));
    }
}

static void draw_buffer(Tester *t, const Prog *p, Env *env, const Buf *b)
{
    Layout l;
    Array *a = &env->buf[b->id];

    if (b->kind == B_CONST || b->kind == B_TEMP || (b->kind == B_ARG && b->written))
        return;
    ir_layout(t->arena, p, env, b, &l);
    *a = array_new(t->arena, b->type, l.n);
    for (int64_t i = 0; i < l.n; i++)
        array_set(a, i, rng_int(&t->rng, 0, SIZE - 1), draw_real(&t->rng));
}

void sample_file(Tester *t, const char *path, Sample *out)
{
    Bytes file = file_read(t->arena, path, 1 << 20);
    Text text = { .arena = t->arena };
    Prog *p;
    Env *env;

    text_put(&text, (const char *)file.p, file.n);
    p = sample_f64(t, path, text.s);
    env = ir_env(t->arena, p);
    for (int i = 0; i < p->nsize; i++)
        env->size[i] = SIZE;
    for (int i = 0; i < p->naxis; i++)
        draw_axis(t, p, env, p->axis[i]);
    for (int i = 0; i < p->nbuf; i++)
        draw_buffer(t, p, env, p->buf[i]);
    *out = (Sample){ p, data_of_env(t->arena, p, env) };
}
