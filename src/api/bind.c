/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Makes the environment of a run from the caller's arrays: puts arrays in place, solves sizes,
 * packs matrices, verifies shapes. */
#include "api/api_int.h"
#include "interp/interp.h"
#include "run/run.h"

#include <stdio.h>
#include <string.h>

Array *api_place(const Env *env, const Arg *a)
{
    switch (a->kind) {
    case ARG_BUF: return &env->buf[a->buf->id];
    case ARG_START: return &env->start[a->axis->id];
    default: return &env->coord[a->axis->id][a->k];
    }
}

static bool has_built(const Axis *a)
{
    return a != NULL && (a->extent == X_BUILT || has_built(a->parent));
}

bool api_is_built(const Arg *a)
{
    bool built = has_built(a->axis);

    for (int k = 0; a->buf != NULL && k < a->buf->nfull; k++)
        built = built || has_built(a->buf->full[k]);
    return built;
}

void api_shape(Arena *arena, const Prog *prog, const Env *env, const Arg *a, int64_t *out)
{
    Layout layout;

    if (a->kind == ARG_START) {
        out[0] = 1 + (a->axis->parent == NULL ? 1 : ir_axis_total(prog, env, a->axis->parent));
        return;
    }
    ir_layout(arena, prog, env, a->buf, &layout);
    memcpy(out, layout.extent, (size_t)a->ndim * sizeof *out);
}

static void check_shape(weft_args *args, const Env *env, int i)
{
    weft_ctx *ctx = args->h.ctx;
    const Arg *a = &args->body->arg[i];
    int64_t shape[IR_MAX_FULL];

    api_shape(&ctx->scratch, args->body->prog, env, a, shape);
    for (int d = 0; d < a->ndim; d++)
        if (args->bound[i].view.shape[d] != shape[d])
            err_throw(&ctx->err, ST_BIND, "dimension %d of %s is %lld, but must be %lld", d,
                      a->name, (long long)args->bound[i].view.shape[d], (long long)shape[d]);
}

static bool has_view(const Bound *b)
{
    return b->how == HOW_USER || b->how == HOW_FILE || b->how == HOW_DEVICE;
}

typedef enum Need { NEED_ALL, NEED_STRUCTURE, NEED_SHAPES } Need; /* each without the former */

/* The caller's own buffer when it can be used as it is, else a copy; of structure a copy if it is
 * looked at after this call too.  Never NULL, which means that there is no array. */
static void put_view(Arena *arena, const Arg *a, const View *v, Need need, Array *out)
{
    *out = (Array){ .data = v->data, .n = v->n, .type = v->type };
    if (v->n > 0 && a->role == WEFT_INPUT && v->plain &&
        (a->kind == ARG_BUF || need == NEED_SHAPES))
        return;
    out->data = arena_array(arena, v->n, ir_type[v->type].bytes);
    view_gather(v, out->data, NULL);
}

/* Kernels read copies of structure: what has been checked there, nobody can change. */
static void put_copy(Arena *arena, const View *v, Pool *pool, Array *out)
{
    int64_t bytes = ir_type[v->type].bytes;

    *out = (Array){ arena_raw(arena, v->n, (size_t)bytes), v->n, v->type };
    if (v->plain && v->n > 0)
        run_copy(pool, out->data, v->data, v->n * bytes);
    else
        view_gather(v, out->data, pool);
}

static void add_fact(Solver *s, Expr *expr, int64_t value, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

static void add_fact(Solver *s, Expr *expr, int64_t value, const char *fmt, ...)
{
    va_list ap;
    char what[256];

    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    solve_add(s, (Fact){ .expr = expr,
                         .value = value,
                         .what = arena_copy(s->arena, what, strlen(what) + 1) });
}

/* The one axis of a dimension, those that run once apart; NULL when it folds several. */
static const Axis *lone_axis(const Buf *b, Dim d)
{
    while (d.last > d.first && b->full[d.last]->extent == X_ONE)
        d.last--;
    return d.first == d.last ? b->full[d.first] : NULL;
}

/* What the shape of an array tells.  A dimension that folds several axes tells nothing alone. */
static void add_shape(Solver *s, const Arg *a, const View *v)
{
    Dim dim[IR_MAX_FULL];

    if (a->kind == ARG_START && a->axis->parent != NULL && !has_built(a->axis->parent))
        solve_add(s, (Fact){ .axis = a->axis->parent, .value = v->n - 1, .what = a->name });
    if (a->kind == ARG_START)
        return;
    ir_dims(a->buf, dim);
    for (int d = 0; d < a->ndim; d++) {
        const Axis *axis = lone_axis(a->buf, dim[d]);

        if (axis != NULL && axis->extent == X_EXPR)
            add_fact(s, axis->size, v->shape[d], "dimension %d of %s", d, a->name);
    }
}

static void put_arrays(weft_args *args, Solver *s, Pool *pool, Need need)
{
    for (int i = 0; i < args->body->narg; i++) {
        const Arg *a = &args->body->arg[i];
        const Bound *b = &args->bound[i];

        if (!has_view(b))
            continue;
        if (a->role != WEFT_OUTPUT && pool == NULL && (a->kind != ARG_BUF || need != NEED_SHAPES))
            put_view(s->arena, a, &b->view, need, api_place(s->env, a));
        else if (a->role != WEFT_OUTPUT && a->kind != ARG_BUF)
            put_copy(s->arena, &b->view, pool, api_place(s->env, a));
        add_shape(s, a, &b->view);
    }
}

static void add_matrix_shape(Solver *s, const Bound *b)
{
    if (b->tree.i->bound != NULL)
        add_fact(s, b->tree.i->bound, b->matrix->m, "the number of rows of %s", b->path);
    if (b->tree.j->bound != NULL)
        add_fact(s, b->tree.j->bound, b->matrix->n, "the number of columns of %s", b->path);
}

/* Several matrices over the same axes must have the same structure. */
static void join(Solver *s, const Bound *b, const char *part, const Axis *axis, Array *place,
                 const Array *packed)
{
    int64_t k = 0;

    if (packed->data == NULL)
        return;
    if (place->data == NULL) {
        *place = *packed;
        return;
    }
    while (k < place->n && k < packed->n && ir_array_int(place, k) == ir_array_int(packed, k))
        k++;
    if (k < place->n || k < packed->n)
        err_throw(s->arena->err, ST_BIND,
                  "%s: its entries are not where %s.%s has them (first "
                  "difference at position %lld); buffers on the same axes have the same structure",
                  b->path, axis->name, part, (long long)k);
}

static const char *part_of(const Coord *c)
{
    return c->name != NULL ? c->name : "coord";
}

static void pack_matrix(Solver *s, const Bound *b)
{
    const FmtTree *t = &b->tree;
    int64_t width = -1;
    Packed packed;
    Env *env = s->env;

    if (t->col != NULL && t->col->extent == X_EXPR && !solve_eval(s, t->col->size, &width))
        width = -1;
    fmt_pack(s->arena, t, b->matrix, width, &packed);
    env->buf[t->buf->id] = packed.val;
    join(s, b, part_of(t->i), t->row, &env->coord[t->row->id][0], &packed.i);
    if (t->col == NULL) {
        join(s, b, part_of(t->j), t->row, &env->coord[t->row->id][1], &packed.j);
    } else {
        join(s, b, "start", t->col, &env->start[t->col->id], &packed.start);
        join(s, b, part_of(t->j), t->col, &env->coord[t->col->id][0], &packed.j);
    }
    add_fact(s, t->row->size, packed.rows,
             t->i->kind == C_IDENT ? "the number of rows of %s" : "the row axis packed from %s",
             b->path);
    if (packed.width >= 0)
        add_fact(s, t->col->size, packed.width,
                 t->j->kind == C_IDENT ? "the number of columns of %s" : "the longest row of %s",
                 b->path);
}

static void pack_matrices(weft_args *args, Solver *s)
{
    for (int i = 0; i < args->body->narg; i++)
        if (args->bound[i].how == HOW_MATRIX)
            add_matrix_shape(s, &args->bound[i]);
    solve_sizes(s);
    for (int i = 0; i < args->body->narg; i++)
        if (args->bound[i].how == HOW_MATRIX) {
            pack_matrix(s, &args->bound[i]);
            solve_sizes(s);
        }
}

static void check_bound(weft_args *args, const Env *env, Need need)
{
    for (int i = 0; i < args->body->narg; i++) {
        const Arg *a = &args->body->arg[i];

        if (a->kind == ARG_BUF && need != NEED_ALL)
            continue;
        if (a->role != WEFT_SIZE && a->role != WEFT_OUTPUT && args->bound[i].how == HOW_NOT &&
            api_place(env, a)->data == NULL)
            err_throw(&args->h.ctx->err, ST_BIND, "%s is not bound: the program %s reads it",
                      a->name, args->body->prog->name);
    }
}

void api_check_shapes(weft_args *args, const Env *env, bool built)
{
    for (int i = 0; i < args->body->narg; i++)
        if (has_view(&args->bound[i]) && api_is_built(&args->body->arg[i]) == built)
            check_shape(args, env, i);
}

/* The axes that are made from others, when all that they are made from is there. */
static void make_axes(weft_args *args, Solver *s, Pool *pool)
{
    bool made = false;

    for (int i = 0; i < s->prog->naxis; i++)
        made = made || s->prog->axis[i]->from != NULL;
    for (int i = 0; i < s->prog->nsize && made; i++)
        if (s->env->size[i] < 0 && !api_is_fitted(s->prog, s->prog->size[i]))
            solve_verify(s); /* which says what is missing */
    if (made)
        api_make_axes(args, s->arena, s->env, pool);
}

static Env *make_env(weft_args *args, Arena *arena, Pool *pool, Need need)
{
    Prog *prog = args->body->prog;
    Solver s = { .arena = arena, .prog = prog, .env = ir_env(arena, prog) };

    if (need == NEED_ALL && pool == NULL)
        api_refuse_devices(args);
    s.origin = arena_array(arena, prog->nsize, sizeof *s.origin);
    for (int i = 0; i < prog->nsize; i++) {
        s.env->size[i] = args->size[i];
        s.origin[i] = "as set";
    }
    put_arrays(args, &s, pool, need);
    pack_matrices(args, &s);
    check_bound(args, s.env, need);
    make_axes(args, &s, pool);
    solve_verify(&s);
    if (need == NEED_SHAPES ? !api_starts_rise(prog, s.env) : !api_is_right(prog, s.env, pool))
        interp_check(arena, prog, s.env); /* which says what is wrong */
    api_check_shapes(args, s.env, false);
    return s.env;
}

Env *api_env(weft_args *args, Arena *arena, Pool *pool)
{
    return make_env(args, arena, pool, NEED_ALL);
}

Env *api_env_of_structure(weft_args *args, Arena *arena)
{
    return make_env(args, arena, NULL, NEED_STRUCTURE);
}

Env *api_env_of_shapes(weft_args *args, Arena *arena)
{
    return make_env(args, arena, NULL, NEED_SHAPES);
}
