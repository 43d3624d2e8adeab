/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The arrays of a kernel and the ranges of its phases, computed from the arrays of a program:
 * what the caller of the kernel passes. */
#include "lower/storage/storage_int.h"

/* Structure in the type that the kernel reads, which is i32 only where all of it fits. */
static Array converted(Arena *arena, Array a, Type type)
{
    Array c = { arena_array(arena, a.n, ir_type[type].bytes), a.n, type };

    for (int64_t i = 0; i < a.n; i++)
        if (type == T_i32)
            ((int32_t *)c.data)[i] = (int32_t)ir_array_int(&a, i);
        else
            ((int64_t *)c.data)[i] = ir_array_int(&a, i);
    return c;
}

/* The table that the layout of a buffer with these places has. */
static Array base_table(Arena *arena, const Prog *p, const Env *env, const Buf *b)
{
    Layout l;

    ir_layout(arena, p, env, b, &l);
    return (Array){ l.slot[b->of_k].before, l.slot[b->of_k].span.total + 1, T_i64 };
}

Array lower_array(Arena *arena, const Prog *p, const Env *env, const Buf *b)
{
    Layout layout;
    Array a;

    if (b->kind == B_CONST)
        return (Array){ .type = b->type };
    if (b->of != NULL && b->nfull > 0)
        return base_table(arena, p, env, b);
    if (b->of != NULL && b->of_k == LOOP_MAP)
        return lower_hash_table(arena, p, env, b->of);
    if (b->of != NULL) {
        a = b->of_k < 0 ? env->start[b->of->id] : env->coord[b->of->id][b->of_k];
        return a.type == b->type ? a : converted(arena, a, b->type);
    }
    if (b->id < p->nbuf && env->buf[b->id].data != NULL)
        return env->buf[b->id];
    ir_layout(arena, p, env, b, &layout);
    return (Array){ NULL, layout.n, b->type };
}

void lower_narrow(Prog *p, Axis *a, int k)
{
    (k < 0 ? loop_start(p, a) : loop_coord(p, a, k))->type = T_i32;
}

void lower_strided(Prog *p, Buf *b, const int64_t *stride, int n)
{
    Stride *s = arena_array(p->arena, n, sizeof *s);

    for (int d = 0; d < n; d++) {
        Text stem = { .arena = p->arena };

        text_f(&stem, "stride%d_%s", d, b->name);
        s[d] = (Stride){ .is = stride[d] };
        if (stride[d] == LOWER_ANY)
            s[d].size = ir_size(p, ir_fresh(p, stem.s, false));
    }
    b->stride = s;
    b->nstride = n;
}

Expr *lower_stride(Prog *p, const Buf *b, int d)
{
    const Stride *s = &b->stride[d];

    return s->size != NULL ? ir_size_expr(p, s->size) : ir_int(p, s->is);
}

int64_t lower_value(Arena *arena, const Prog *p, const Env *env, Expr *e)
{
    int64_t arg[2] = { 0, 0 };
    Array a;

    for (int i = 0; i < e->nargs; i++)
        arg[i] = lower_value(arena, p, env, e->arg[i]);
    switch (e->op) {
    case OP_int: return e->i;
    case OP_size: return env->size[e->size->id];
    case OP_count: return ir_axis_total(p, env, e->axis);
    case OP_cell:
        a = lower_array(arena, p, env, e->buf);
        return e->buf->kind == B_CONST ? e->buf->ival[arg[0]] : ir_array_int(&a, arg[0]);
    case OP_neg: return -arg[0];
    case OP_add: return arg[0] + arg[1];
    case OP_sub: return arg[0] - arg[1];
    case OP_mul: return arg[0] * arg[1];
    case OP_min: return arg[0] < arg[1] ? arg[0] : arg[1];
    case OP_div: return int_div(arg[0], arg[1], &arg[0]) ? 0 : arg[0];
    default: return int_mod(arg[0], arg[1], &arg[0]) ? 0 : arg[0];
    }
}
