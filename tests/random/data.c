/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The arrays of a case by name, and elements of arrays of any type.  Binding is by name, so the
 * data of a case also serves a program that the shrinker or a mutation made from it. */
#include "random/random.h"

#include <math.h>
#include <string.h>

static Item *add_item(Arena *a, Data *d, const char *name)
{
    d->item = arena_grow(a, d->item, d->n, &d->cap, sizeof *d->item);
    d->item[d->n] = (Item){ .name = name };
    return &d->item[d->n++];
}

void data_size(Arena *a, Data *d, const char *name, int64_t value)
{
    Item *it = add_item(a, d, name);

    it->is_size = true;
    it->size = value;
}

void data_array(Arena *a, Data *d, const char *name, Array array)
{
    add_item(a, d, name)->array = array;
}

Array array_new(Arena *a, Type t, int64_t n)
{
    return (Array){ .data = arena_array(a, n + 1, ir_type[t].bytes), .n = n, .type = t };
}

int64_t array_int(const Array *a, int64_t i)
{
    return a->type == T_i32 ? ((const int32_t *)a->data)[i] : ((const int64_t *)a->data)[i];
}

double array_float(const Array *a, int64_t i)
{
    switch (a->type) {
    case T_f16: return (double)num_f16(((const uint16_t *)a->data)[i]);
    case T_bf16: return (double)num_bf16(((const uint16_t *)a->data)[i]);
    case T_f32: return (double)((const float *)a->data)[i];
    default: return ((const double *)a->data)[i];
    }
}

void array_set(Array *a, int64_t i, int64_t iv, double fv)
{
    switch (a->type) {
    case T_i32: ((int32_t *)a->data)[i] = (int32_t)iv; break;
    case T_i64: ((int64_t *)a->data)[i] = iv; break;
    case T_f16: ((uint16_t *)a->data)[i] = num_to_f16(fv); break;
    case T_bf16: ((uint16_t *)a->data)[i] = num_to_bf16(fv); break;
    case T_f32: ((float *)a->data)[i] = (float)fv; break;
    default: ((double *)a->data)[i] = fv; break;
    }
}

static const Item *find_item(const Data *d, const char *name)
{
    for (int i = 0; i < d->n; i++)
        if (strcmp(d->item[i].name, name) == 0)
            return &d->item[i];
    return NULL;
}

static Array copy_array(Arena *a, const Data *d, const char *name)
{
    const Item *it = find_item(d, name);
    Array out = { 0 };

    if (it != NULL && !it->is_size) {
        out = array_new(a, it->array.type, it->array.n);
        memcpy(out.data, it->array.data, (size_t)it->array.n * ir_type[it->array.type].bytes);
    }
    return out;
}

static const char *part_name(Arena *a, const char *axis, const char *part)
{
    Text t = { .arena = a };

    text_f(&t, "%s.%s", axis, part == NULL ? "coord" : part);
    return t.s;
}

Env *data_bind(Arena *a, const Data *d, const Prog *p)
{
    Env *env = ir_env(a, p);

    for (int i = 0; i < p->nsize; i++) {
        const Item *it = find_item(d, p->size[i]->name);

        env->size[i] = it != NULL && it->is_size ? it->size : -1;
    }
    for (int i = 0; i < p->naxis; i++) {
        const Axis *x = p->axis[i];

        if (x->extent == X_SEG)
            env->start[i] = copy_array(a, d, part_name(a, x->name, "start"));
        for (int k = 0; k < x->ncoord; k++)
            if (x->coord[k].kind == C_LOAD && x->extent != X_BUILT)
                env->coord[i][k] = copy_array(a, d, part_name(a, x->name, x->coord[k].name));
    }
    for (int i = 0; i < p->nbuf; i++)
        if (p->buf[i]->kind == B_INOUT || (p->buf[i]->kind == B_ARG && !p->buf[i]->written))
            env->buf[i] = copy_array(a, d, p->buf[i]->name);
    return env;
}

Data *data_of_env(Arena *a, const Prog *p, const Env *env)
{
    Data *d = arena_alloc(a, sizeof *d);

    for (int i = 0; i < p->nsize; i++)
        data_size(a, d, p->size[i]->name, env->size[i]);
    for (int i = 0; i < p->naxis; i++) {
        const Axis *x = p->axis[i];

        if (env->start[i].data != NULL)
            data_array(a, d, part_name(a, x->name, "start"), env->start[i]);
        for (int k = 0; k < x->ncoord; k++)
            if (x->coord[k].kind == C_LOAD && env->coord[i][k].data != NULL)
                data_array(a, d, part_name(a, x->name, x->coord[k].name), env->coord[i][k]);
    }
    for (int i = 0; i < p->nbuf; i++)
        if (env->buf[i].data != NULL)
            data_array(a, d, p->buf[i]->name, env->buf[i]);
    return d;
}

void data_print(Text *t, const Data *d)
{
    for (int i = 0; i < d->n; i++) {
        const Item *it = &d->item[i];

        if (it->is_size) {
            text_f(t, "%s = %lld\n", it->name, (long long)it->size);
            continue;
        }
        text_f(t, "%s %s =", ir_type[it->array.type].name, it->name);
        for (int64_t k = 0; k < it->array.n && k < 40; k++)
            if (ir_type[it->array.type].floats)
                text_f(t, " %.17g", array_float(&it->array, k));
            else
                text_f(t, " %lld", (long long)array_int(&it->array, k));
        text_str(t, it->array.n > 40 ? " ...\n" : "\n");
    }
}
