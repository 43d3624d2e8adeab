/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Arguments for any program: small sizes, structure with empty rows and repeated entries, values
 * that are multiples of 1/8. */
#include "gpu/run/run.h"
#include "unit/trap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const rows_name[ROWS_COUNT] = { "small", "deg32", "rows96", "rows160",
                                            "skew",  "empty", "long" };

typedef struct Drawing {
    Arena *arena;
    const Draw *how;
    weft_args *args;
    Env *env; /* sizes; starts and coordinates by axis, once they are drawn */
    uint64_t state;
    int64_t entries;
} Drawing;

static uint64_t next(Drawing *d)
{
    d->state = d->state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return d->state >> 33;
}

static int64_t size_of(Drawing *d, const char *name)
{
    for (int i = 0; i < d->how->nset; i++)
        if (strcmp(d->how->set_name[i], name) == 0)
            return d->how->set_value[i];
    for (int i = 0; i < d->how->nset; i++)
        if (strcmp(d->how->set_name[i], "*") == 0)
            return d->how->set_value[i];
    return 4 + (int64_t)(next(d) % 6);
}

/* The bound of a coordinate; without one, its values are small. */
static int64_t bound_of(Drawing *d, const Coord *c)
{
    return c->bound != NULL ? ir_eval_size(d->args->body->prog, d->env, c->bound) : 3;
}

/* Tuples of coordinates that an axis can have below one parent. */
static int64_t room_of(Drawing *d, const Axis *a)
{
    int64_t room = 1;

    for (int k = 0; k < a->ncoord; k++)
        if (a->coord[k].kind == C_LOAD && room < INT64_C(1) << 40)
            room *= bound_of(d, &a->coord[k]);
    return room;
}

static bool is_once(const Axis *a)
{
    bool once = false;

    for (int k = 0; k < a->ncoord; k++)
        once = once || a->coord[k].once;
    return once;
}

static bool has_loads(const Axis *a)
{
    for (int k = 0; k < a->ncoord; k++)
        if (a->coord[k].kind == C_LOAD)
            return true;
    return false;
}

static int64_t degree(Drawing *d, const Axis *a, int64_t parent)
{
    const bool top = a->parent == NULL || a->parent->extent == X_EXPR;
    double u = (double)(next(d) % 1000003 + 1) / 1000004, v = (double)(next(d) % 1000003) / 1000003;

    switch (top ? d->how->rows : ROWS_SMALL) {
    case ROWS_32: return 32;
    case ROWS_96: return 96;
    case ROWS_160: return 160;
    case ROWS_SKEW: return (int64_t)(exp(2.2 + 1.1 * sqrt(-2 * log(u)) * cos(6.283185307 * v)));
    case ROWS_EMPTY: return 0;
    case ROWS_LONG: return parent == 1 ? 10000 : 3;
    default: return parent % 4 == 1 ? 0 : 1 + (int64_t)(next(d) % 6);
    }
}

static int64_t *draw_starts(Drawing *d, const Axis *a, int64_t n)
{
    int64_t *start = arena_array(d->arena, n, sizeof *start);
    const int64_t room = (a->flags & AX_UNIQUE) != 0 && has_loads(a) ? room_of(d, a) : INT64_MAX;
    int64_t left = is_once(a) ? room_of(d, a) : INT64_MAX;

    for (int64_t p = 0; p + 1 < n; p++) {
        int64_t deg = degree(d, a, p);

        deg = deg < room ? deg : room;
        deg = deg < left ? deg : left;
        left -= deg;
        start[p + 1] = start[p] + deg;
    }
    return start;
}

static int64_t value_of(const Array *x, int64_t i)
{
    return ir_array_int(x, i);
}

/* The coordinates of positions first..first + deg, below one parent: ascending tuples. */
static void draw_tuples(Drawing *d, const Axis *a, int64_t first, int64_t deg)
{
    const int64_t room = room_of(d, a);
    const bool unique = (a->flags & AX_UNIQUE) != 0;
    int64_t last = 0;

    for (int64_t i = 0; i < deg && room > 0; i++) {
        const int64_t low = (int64_t)((double)room * (double)i / (double)deg),
                      high = (int64_t)((double)room * (double)(i + 1) / (double)deg);
        int64_t t = low + (high > low ? (int64_t)(next(d) % (uint64_t)(high - low)) : 0);

        t = i > 0 && !unique && next(d) % 4 == 0 ? last : t;
        t = is_once(a) ? first + i : t;
        last = t;
        for (int k = a->ncoord - 1; k >= 0; k--) {
            int64_t bound;

            if (a->coord[k].kind != C_LOAD)
                continue;
            bound = bound_of(d, &a->coord[k]);
            ((int64_t *)d->env->coord[a->id][k].data)[first + i] = t % bound;
            t /= bound;
        }
    }
}

static void draw_coords(Drawing *d, const Axis *a, int64_t n)
{
    const Array *start = &d->env->start[a->id];
    int64_t width = 1;

    for (int k = 0; k < a->ncoord; k++)
        if (a->coord[k].kind == C_LOAD)
            d->env->coord[a->id][k] =
                (Array){ arena_array(d->arena, n + 1, sizeof(int64_t)), n, T_i64 };
    if (a->extent == X_EXPR)
        width = ir_eval_size(d->args->body->prog, d->env, a->size);
    for (int64_t p = 0, at = 0; at < n && width > 0; p++) {
        const int64_t deg = start->data != NULL    ? value_of(start, p + 1) - value_of(start, p)
                            : a->extent == X_TABLE ? a->starts[p % a->n + 1] - a->starts[p % a->n]
                                                   : width;

        draw_tuples(d, a, at, deg);
        at += deg;
    }
}

static void fill(Drawing *d, void *to, Type type, int64_t n)
{
    static const uint16_t half[] = {
        0x3000, 0x3400, 0x3600, 0x3800, 0x3900, 0x3a00, 0x3b00, 0x3c00
    };

    for (int64_t i = 0; i < n; i++) {
        const int v = 1 + (int)(next(d) % 8), minus = (int)(next(d) % 2);
        const float f = (float)(minus ? -v : v) / 8;
        uint32_t bits;

        memcpy(&bits, &f, sizeof bits);
        switch (type) {
        case T_i32: ((int32_t *)to)[i] = (int32_t)(next(d) % 3); break;
        case T_i64: ((int64_t *)to)[i] = (int64_t)(next(d) % 3); break;
        case T_f16: ((uint16_t *)to)[i] = (uint16_t)(half[v - 1] | minus << 15); break;
        case T_bf16: ((uint16_t *)to)[i] = (uint16_t)(bits >> 16); break;
        case T_f32: ((float *)to)[i] = f; break;
        default: ((double *)to)[i] = f; break;
        }
    }
}

/* Of structure from what is drawn already: the library would want all of it. */
static bool find_shape(Drawing *d, const Arg *a, int64_t *shape)
{
    const Prog *p = d->args->body->prog;
    Layout l;

    if (a->kind == ARG_BUF)
        return weft_args_shape(d->args, a->name, shape) == WEFT_OK;
    if (a->kind == ARG_START) {
        shape[0] = 1 + (a->axis->parent == NULL ? 1 : ir_axis_total(p, d->env, a->axis->parent));
        return true;
    }
    if (CATCH(d->arena->err, ir_layout(d->arena, p, d->env, a->buf, &l)) != ST_OK)
        return false;
    for (int k = 0; k < l.ndim; k++)
        shape[k] = l.extent[k];
    return l.ndim == a->ndim;
}

static bool draw_one(Drawing *d, const Arg *a)
{
    static const weft_type type[] = {
        [T_i32] = WEFT_I32,   [T_i64] = WEFT_I64, [T_f16] = WEFT_F16,
        [T_bf16] = WEFT_BF16, [T_f32] = WEFT_F32, [T_f64] = WEFT_F64
    };
    int64_t shape[WEFT_MAX_NDIM], n = 1;
    weft_tensor t = { NULL, a->kind == ARG_BUF ? type[a->type] : WEFT_I64, a->ndim, shape, NULL };

    if (!find_shape(d, a, shape))
        return false;
    for (int k = 0; k < a->ndim; k++)
        n *= shape[k];
    if (a->kind == ARG_START) {
        t.data = draw_starts(d, a->axis, n);
        d->env->start[a->axis->id] = (Array){ t.data, n, T_i64 };
    } else if (a->kind == ARG_COORD) {
        if (d->env->coord[a->axis->id][a->k].data == NULL)
            draw_coords(d, a->axis, n);
        t.data = d->env->coord[a->axis->id][a->k].data;
        d->entries = n > d->entries ? n : d->entries;
    } else {
        t.data = arena_raw(d->arena, n + 1, ir_type[a->type].bytes);
        fill(d, t.data, a->type, n);
    }
    return weft_args_bind(d->args, a->name, &t) == WEFT_OK;
}

bool draw_args(Arena *arena, const Draw *how, weft_args *args, int64_t *entries)
{
    Drawing d = { arena, how, args, ir_env(arena, args->body->prog), how->seed + 1, 0 };
    int64_t shape[WEFT_MAX_NDIM];

    for (int i = 0; i < args->body->narg; i++) {
        const Arg *a = &args->body->arg[i];

        if (a->kind != ARG_SIZE)
            continue;
        d.env->size[a->size->id] = size_of(&d, a->name);
        if (weft_args_size(args, a->name, d.env->size[a->size->id]) != WEFT_OK)
            return false;
    }
    for (int values = 0; values < 2; values++) /* structure first */
        for (int i = 0; i < args->body->narg; i++) {
            const Arg *a = &args->body->arg[i];

            if (a->kind != ARG_SIZE && a->role != WEFT_OUTPUT &&
                (a->kind == ARG_BUF) == (values == 1) && !draw_one(&d, a))
                return false;
        }
    for (int i = 0; i < args->body->narg && d.entries == 0; i++)
        if (args->body->arg[i].role == WEFT_OUTPUT && args->body->arg[i].kind == ARG_BUF &&
            args->body->arg[i].ndim > 0 &&
            weft_args_shape(args, args->body->arg[i].name, shape) == WEFT_OK)
            d.entries = shape[0];
    *entries = d.entries > 0 ? d.entries : 1;
    return true;
}
