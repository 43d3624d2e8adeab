/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Prints the extents of a program's arrays, for callers that use symbols instead of sizes. */
#include "api/api_int.h"

static bool is_constant(const Axis *a)
{
    return a == NULL || ((a->extent == X_TABLE || a->extent == X_ONE ||
                          (a->extent == X_EXPR && a->size->op == OP_int)) &&
                         is_constant(a->parent));
}

/* "size(E)" of an axis whose entries only the data tell, else its extents multiplied. */
static void put_total(Text *out, Prog *p, const Axis *a)
{
    if (a->extent == X_ONE) {
        put_total(out, p, a->parent);
    } else if (a->extent == X_TABLE) {
        text_f(out, "%lld", (long long)a->starts[a->n]);
    } else if (a->extent == X_SEG || a->extent == X_BUILT) {
        text_f(out, "size(%s)", a->name);
    } else {
        if (a->parent != NULL) {
            put_total(out, p, a->parent);
            text_str(out, " * ");
        }
        text_str(out, a->size->nargs > 0 ? "(" : "");
        ir_print_expr(out, p, a->size);
        text_str(out, a->size->nargs > 0 ? ")" : "");
    }
}

static bool has_child(const Buf *b, Dim d, int k)
{
    for (int c = k + 1; c <= d.last; c++)
        if (ir_parent_place(b, c) == k)
            return true;
    return false;
}

/* A dimension that folds axes: what hangs on one place in a chain counts as its last axis, and
 * chains multiply; where several hang on one place, there is no formula. */
static void put_fold(Text *out, Prog *p, const Buf *b, Dim d)
{
    int chains = 0, roots = 0;

    for (int k = d.first; k <= d.last; k++) {
        roots += ir_parent_place(b, k) < d.first;
        chains += !has_child(b, d, k);
    }
    if (chains != roots)
        return;
    for (int k = d.first; k <= d.last; k++)
        if (!has_child(b, d, k)) {
            text_str(out, out->n > 0 ? " * " : "");
            put_total(out, p, b->full[k]);
        }
}

static bool is_constant_dim(const Buf *b, Dim d)
{
    bool constant = true;

    for (int k = d.first; k <= d.last; k++)
        constant = constant && is_constant(b->full[k]);
    return constant;
}

/* As if the buffer had this dimension alone. */
static void put_constant(Text *out, Arena *arena, Prog *p, const Buf *b, Dim d)
{
    Buf alone = *b;
    Layout l;

    alone.full += d.first;
    alone.nfull = d.last - d.first + 1;
    ir_layout(arena, p, ir_env(arena, p), &alone, &l);
    text_f(out, "%lld", (long long)l.extent[0]);
}

static void put_extent(Text *out, Arena *arena, Prog *p, const Buf *b, Dim d)
{
    if (d.first == d.last && b->full[d.first]->extent == X_EXPR)
        ir_print_expr(out, p, b->full[d.first]->size);
    else if (is_constant_dim(b, d))
        put_constant(out, arena, p, b, d);
    else
        put_fold(out, p, b, d);
}

static const char *bound(weft_ctx *ctx, weft_prog *prog, const char *name)
{
    const Arg *a = api_find_arg(ctx, prog->body, name);
    Text text = { .arena = &api_box(ctx)->arena };

    if (a->kind != ARG_COORD)
        err_throw(&ctx->err, ST_ARG, "%s is no array of coordinates", name);
    text_str(&text, "");
    if (a->axis->coord[a->k].bound != NULL)
        ir_print_expr(&text, prog->body->prog, a->axis->coord[a->k].bound);
    return text.s;
}

static const char *extent(weft_ctx *ctx, weft_prog *prog, const char *name, int dim)
{
    const Arg *a = api_find_arg(ctx, prog->body, name);
    Text text = { .arena = &api_box(ctx)->arena };
    Prog *p = prog->body->prog;
    Dim d[IR_MAX_FULL];

    if (a->kind == ARG_SIZE || dim < 0 || dim >= a->ndim)
        err_throw(&ctx->err, ST_ARG, "%s has no dimension %d", name, dim);
    text_str(&text, "");
    if (a->kind != ARG_START) {
        ir_dims(a->buf, d);
        put_extent(&text, &ctx->scratch, p, a->buf, d[dim]);
    } else if (a->axis->parent == NULL) {
        text_str(&text, "2");
    } else {
        put_total(&text, p, a->axis->parent);
        text_str(&text, " + 1");
    }
    return text.s;
}

/* The text is the program's from now on. */
static void give(weft_ctx *ctx, weft_prog *prog, const char *text, const char **out)
{
    box_drop(prog->printed);
    prog->printed = api_keep(ctx);
    *out = text;
}

weft_status weft_prog_extent(weft_prog *prog, const char *name, int dim, const char **out)
{
    weft_ctx *ctx = api_ctx_of(prog, TAG_PROG);

    API_ENTER(ctx);
    api_need(ctx, out, "out");
    give(ctx, prog, extent(ctx, prog, name, dim), out);
    return api_leave(ctx);
}

weft_status weft_prog_bound(weft_prog *prog, const char *name, const char **out)
{
    weft_ctx *ctx = api_ctx_of(prog, TAG_PROG);

    API_ENTER(ctx);
    api_need(ctx, out, "out");
    give(ctx, prog, bound(ctx, prog, name), out);
    return api_leave(ctx);
}
