/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The list of a program's arguments: sizes, structure arrays and buffers, with name, role and
 * shape.  All functions that bind or read back arrays use it. */
#include "api/api_int.h"

#include <string.h>

const weft_type api_type_of[T_COUNT] = {
    [T_i32] = WEFT_I32,   [T_i64] = WEFT_I64, [T_f16] = WEFT_F16,
    [T_bf16] = WEFT_BF16, [T_f32] = WEFT_F32, [T_f64] = WEFT_F64,
};

/* "J.start", "J.coord", "E.j" */
static const char *dotted(Arena *arena, const Axis *axis, const char *part)
{
    Text name = { .arena = arena };

    text_f(&name, "%s.%s", axis->name, part);
    return name.s;
}

/* A buffer that no statement knows, whose shape is that of an array over the axis. */
static Buf *stand_in(Arena *arena, Axis *axis, const char *name)
{
    Buf *b = arena_alloc(arena, sizeof *b);

    *b = (Buf){ .name = name, .type = T_i64, .nslot = 1 };
    for (Axis *up = axis; up != NULL; up = up->parent)
        b->nfull++;
    b->full = arena_array(arena, b->nfull, sizeof *b->full);
    b->slot = arena_array(arena, 1, sizeof *b->slot);
    b->place_in_full = arena_array(arena, 1, sizeof *b->place_in_full);
    b->slot[0] = axis;
    b->place_in_full[0] = b->nfull - 1;
    for (int k = b->nfull - 1; k >= 0; k--, axis = axis->parent)
        b->full[k] = axis;
    return b;
}

static void add(Body *body, int *cap, Arg arg)
{
    Dim dim[IR_MAX_FULL];

    if (arg.kind == ARG_START)
        arg.ndim = 1;
    if (arg.buf != NULL)
        arg.ndim = ir_dims(arg.buf, dim);
    body->arg = arena_grow(&body->box->arena, body->arg, body->narg, cap, sizeof arg);
    body->arg[body->narg++] = arg;
}

static void add_axis(Body *body, int *cap, Axis *axis)
{
    Arena *arena = &body->box->arena;
    weft_role role = axis->extent == X_BUILT ? WEFT_OUTPUT : WEFT_INPUT;

    if (axis->extent == X_SEG || axis->extent == X_BUILT)
        add(body, cap,
            (Arg){ .name = dotted(arena, axis, "start"),
                   .kind = ARG_START,
                   .role = role,
                   .type = T_i64,
                   .axis = axis });
    for (int k = 0; k < axis->ncoord; k++) {
        const char *part = axis->coord[k].name != NULL ? axis->coord[k].name : "coord";
        const char *name = dotted(arena, axis, part);

        if (axis->coord[k].kind == C_LOAD)
            add(body, cap,
                (Arg){ .name = name,
                       .kind = ARG_COORD,
                       .role = role,
                       .type = T_i64,
                       .axis = axis,
                       .k = k,
                       .buf = stand_in(arena, axis, name) });
    }
}

static void add_buf(Body *body, int *cap, Buf *b)
{
    weft_role role = b->kind == B_INOUT ? WEFT_INOUT : b->written ? WEFT_OUTPUT : WEFT_INPUT;

    if (b->kind == B_ARG || b->kind == B_INOUT)
        add(body, cap,
            (Arg){ .name = b->name, .kind = ARG_BUF, .role = role, .type = b->type, .buf = b });
}

/* Whether only the entries of an axis that is made in a format tell the size. */
bool api_is_fitted(const Prog *p, const Size *s)
{
    bool fitted = false;

    for (int i = 0; i < p->naxis; i++)
        for (const Axis *a = p->axis[i]; p->axis[i]->from != NULL && a != NULL; a = a->parent)
            fitted = fitted || fmt_fitted(p->axis[i], a) == s;
    return fitted;
}

void api_list_args(Body *body)
{
    const Prog *p = body->prog;
    int cap = 0;

    for (int i = 0; i < p->nsize; i++)
        if (!api_is_fitted(p, p->size[i]))
            add(body, &cap,
                (Arg){ .name = p->size[i]->name,
                       .kind = ARG_SIZE,
                       .role = WEFT_SIZE,
                       .type = T_i64,
                       .size = p->size[i] });
    for (int i = 0; i < p->ndecl; i++)
        if (p->decl[i].axis == NULL)
            add_buf(body, &cap, p->decl[i].buf);
        else if (!ir_is_made(p, p->decl[i].axis))
            add_axis(body, &cap, p->decl[i].axis);
}

/* All names, for the message when one is not among them. */
static const char *all_names(Arena *arena, const Body *body)
{
    Text text = { .arena = arena };

    for (int i = 0; i < body->narg && i < LIMIT_LISTED; i++)
        text_f(&text, i > 0 ? ", %s" : "%s", body->arg[i].name);
    text_str(&text, body->narg > LIMIT_LISTED ? ", ..." : body->narg == 0 ? "nothing" : "");
    return text.s;
}

static const char *why_not(const Body *body, const char *name)
{
    Buf *b = ir_find_buf(body->prog, name);

    if (b != NULL)
        return b->kind == B_TEMP ? " (it is a temp)" : " (it is a const)";
    return ir_find_axis(body->prog, name) != NULL ? " (it is an axis)" : "";
}

const Arg *api_find_arg(weft_ctx *ctx, const Body *body, const char *name)
{
    api_need(ctx, name, "the name of the argument");
    for (int i = 0; i < body->narg; i++)
        if (strcmp(body->arg[i].name, name) == 0)
            return &body->arg[i];
    err_throw(&ctx->err, ST_ARG, "%s has no argument %s%s; it has %s", body->prog->name, name,
              why_not(body, name), all_names(&ctx->scratch, body));
}

static const char *name_of(const Body *body, const Axis *axis, ArgKind kind, const Coord *coord)
{
    for (int i = 0; i < body->narg && axis != NULL; i++) {
        const Arg *a = &body->arg[i];

        if (a->axis == axis && a->kind == kind &&
            (kind == ARG_START || &axis->coord[a->k] == coord))
            return a->name;
    }
    return NULL;
}

weft_status weft_prog_matrix(const weft_prog *prog, const char *name, weft_matrix *out)
{
    weft_ctx *ctx = api_ctx_of(prog, TAG_PROG);
    const Arg *a;
    FmtTree t;

    API_ENTER(ctx);
    api_need(ctx, out, "out");
    a = api_find_arg(ctx, prog->body, name);
    if (a->kind != ARG_BUF)
        err_throw(&ctx->err, ST_BIND, "%s is not a buffer", name);
    fmt_tree(&ctx->scratch, a->buf, &t);
    *out = (weft_matrix){ name_of(prog->body, t.col, ARG_START, NULL),
                          name_of(prog->body, t.row, ARG_COORD, t.i),
                          name_of(prog->body, t.col != NULL ? t.col : t.row, ARG_COORD, t.j) };
    return api_leave(ctx);
}
