/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Packing: the sorted entries of a matrix become the arrays of an axis tree, and back.  Two
 * levels: the row axis says which rows have a position, the column axis where in its row an entry
 * stands.
 *
 *     row axis      column axis        storage
 *     ident         ident              dense
 *     ident         seg, load          CSR
 *     load          seg, load          DCSR: rows without entries have no position
 *     load          one, load          COO
 *     load, load    -                  COO in one axis
 *     any           n or width, load   ELL: rows cut to one width, the rest padded */
#include "format/format.h"

#include <math.h>

void fmt_store(Arena *arena, const char *name, const Array *to, int64_t at, double v)
{
    switch (to->type) {
    case T_f16: ((uint16_t *)to->data)[at] = num_to_f16(v); return;
    case T_bf16: ((uint16_t *)to->data)[at] = num_to_bf16(v); return;
    case T_f32: ((float *)to->data)[at] = (float)v; return;
    case T_f64: ((double *)to->data)[at] = v; return;
    default: break;
    }
    if (!(v == floor(v) && fabs(v) < 0x1p53))
        err_throw(arena->err, ST_BIND, "%s holds integers (%s), and the data has %g", name,
                  ir_type[to->type].name, v);
    fmt_store_int(arena, name, to, at, (int64_t)v);
}

void fmt_store_int(Arena *arena, const char *name, const Array *to, int64_t at, int64_t v)
{
    if (to->type == T_i64)
        ((int64_t *)to->data)[at] = v;
    else if (to->type != T_i32)
        fmt_store(arena, name, to, at, (double)v);
    else if (v == (int32_t)v)
        ((int32_t *)to->data)[at] = (int32_t)v;
    else
        err_throw(arena->err, ST_BIND, "%s: %lld does not fit an i32; declare it as i64", name,
                  (long long)v);
}

/* Counting sort by column: stable, so the rows stay in order. */
void fmt_transpose(Arena *arena, Coo *a)
{
    Coo t = *a;
    int64_t *at = arena_array(arena, a->n + 1, sizeof *at);

    t.m = a->n;
    t.n = a->m;
    t.row = arena_array(arena, a->nnz, sizeof *t.row);
    t.col = arena_array(arena, a->nnz, sizeof *t.col);
    t.val = a->val == NULL ? NULL : arena_array(arena, a->nnz, sizeof *t.val);
    t.ival = a->ival == NULL ? NULL : arena_array(arena, a->nnz, sizeof *t.ival);
    for (int64_t k = 0; k < a->nnz; k++)
        at[a->col[k] + 1]++;
    for (int64_t j = 0; j < a->n; j++)
        at[j + 1] += at[j];
    for (int64_t k = 0; k < a->nnz; k++) {
        int64_t p = at[a->col[k]]++;

        t.row[p] = a->col[k];
        t.col[p] = a->row[k];
        if (a->val != NULL)
            t.val[p] = a->val[k];
        else
            t.ival[p] = a->ival[k];
    }
    *a = t;
}

static bool is_row_axis(const Axis *a)
{
    return a->parent == NULL && a->extent == X_EXPR && a->ncoord == 1 &&
           (a->coord[0].kind == C_IDENT || a->coord[0].kind == C_LOAD);
}

static bool is_column_axis(const Axis *a, const Axis *row)
{
    CoordKind kind = a->coord[0].kind;

    if (a->ncoord != 1 || (a->parent != NULL && a->parent != row))
        return false;
    if (a->extent == X_SEG || a->extent == X_BUILT)
        return kind == C_LOAD && a->parent == row;
    if (a->extent == X_ONE)
        return kind == C_LOAD && row->coord[0].kind == C_LOAD;
    return a->extent == X_EXPR && (kind == C_IDENT || (kind == C_LOAD && a->parent == row));
}

static bool is_pair_axis(const Axis *a)
{
    return a->parent == NULL && a->extent == X_EXPR && a->ncoord == 2 &&
           a->coord[0].kind == C_LOAD && a->coord[1].kind == C_LOAD;
}

void fmt_tree(Arena *arena, const Buf *b, FmtTree *t)
{
    *t = (FmtTree){ .buf = b };
    if (b->nfull == 1 && is_pair_axis(b->full[0])) {
        t->row = b->full[0];
        t->i = &t->row->coord[0];
        t->j = &t->row->coord[1];
    } else if (b->nfull == 2 && is_row_axis(b->full[0]) && is_column_axis(b->full[1], b->full[0])) {
        t->row = b->full[0];
        t->col = b->full[1];
        t->i = t->row->coord;
        t->j = t->col->coord;
    } else {
        err_throw(arena->err, ST_BIND,
                  "%s: a matrix goes into axes that are dense, CSR, DCSR, COO "
                  "or ELL, with the row and the column as the only coordinates, and these are not; "
                  "bind its structure arrays and values one by one",
                  b->name);
    }
}

/* Entry k belongs to position at[k] of the row axis; sets out->rows and the loaded rows. */
static int64_t *place_rows(Arena *arena, const FmtTree *t, const Coo *a, Packed *out)
{
    int64_t *at = arena_array(arena, a->nnz, sizeof *at), *row;
    bool single = t->col == NULL || t->col->extent == X_ONE;

    if (t->i->kind == C_IDENT) {
        out->rows = a->m;
        return a->row;
    }
    row = arena_array(arena, a->nnz, sizeof *row);
    for (int64_t k = 0; k < a->nnz; k++) {
        if (single || k == 0 || a->row[k] != a->row[k - 1])
            row[out->rows++] = a->row[k];
        at[k] = out->rows - 1;
    }
    out->i = (Array){ row, out->rows, T_i64 };
    return at;
}

static int64_t longest_row(const int64_t *at, int64_t nnz)
{
    int64_t run = 0, most = 0;

    for (int64_t k = 0; k < nnz; k++) {
        run = k > 0 && at[k] == at[k - 1] ? run + 1 : 1;
        most = run > most ? run : most;
    }
    return most;
}

static _Noreturn void wrong_width(Arena *arena, const FmtTree *t, int64_t width, int64_t row,
                                  bool longer)
{
    err_throw(arena->err, ST_BIND,
              "%s: row %lld of the matrix does not %s the %lld positions of "
              "axis %s; %s",
              t->buf->name, (long long)row, longer ? "fit" : "fill", (long long)width, t->col->name,
              longer ? "give a larger width" : "declare the axis padded");
}

/* The place of each entry in the values, for rows of one width. */
static int64_t *place_in_rows(Arena *arena, const FmtTree *t, const Coo *a, const int64_t *at,
                              int64_t width)
{
    int64_t *p = arena_array(arena, a->nnz, sizeof *p), in_row = 0;

    for (int64_t k = 0; k < a->nnz; k++) {
        in_row = k > 0 && at[k] == at[k - 1] ? in_row + 1 : 0;
        if (in_row == width)
            wrong_width(arena, t, width, a->row[k], true);
        p[k] = at[k] * width + (t->j->kind == C_IDENT ? a->col[k] : in_row);
    }
    return p;
}

static Array new_array(Arena *arena, Type type, int64_t rows, int64_t width)
{
    Array a = { .type = type };

    if (int_mul(rows, width, &a.n))
        err_throw(arena->err, ST_LIMIT, "%lld rows of %lld are more than can be stored",
                  (long long)rows, (long long)width);
    a.data = arena_array(arena, a.n, ir_type[type].bytes);
    return a;
}

static void fill_values(Arena *arena, const FmtTree *t, const Coo *a, const int64_t *p, Packed *out)
{
    const char *name = t->buf->name;

    for (int64_t k = 0; t->buf->has_fill && out->val.n > a->nnz && k < out->val.n; k++)
        fmt_store(arena, name, &out->val, k, t->buf->fill);
    for (int64_t k = 0; k < a->nnz; k++)
        if (a->ival != NULL)
            fmt_store_int(arena, name, &out->val, p == NULL ? k : p[k], a->ival[k]);
        else
            fmt_store(arena, name, &out->val, p == NULL ? k : p[k], a->val[k]);
}

/* Columns; a place that no entry takes gets -1, which is outside every bound. */
static Array pack_columns(Arena *arena, const FmtTree *t, const Coo *a, const int64_t *p,
                          const Packed *packed)
{
    Array j = new_array(arena, T_i64, packed->val.n, 1);
    int64_t *to = j.data, k = 0;

    for (int64_t at = 0; at < j.n; at++) {
        bool taken = k < a->nnz && (p == NULL || p[k] == at);

        if (!taken && !(t->col->flags & AX_PADDED))
            wrong_width(arena, t, packed->width, at / packed->width, false);
        to[at] = taken ? a->col[k++] : -1;
    }
    return j;
}

static Array pack_starts(Arena *arena, const int64_t *at, int64_t rows, int64_t nnz)
{
    Array start = new_array(arena, T_i64, rows + 1, 1);
    int64_t *s = start.data;

    for (int64_t k = 0; k < nnz; k++)
        s[at[k] + 1]++;
    for (int64_t r = 0; r < rows; r++)
        s[r + 1] += s[r];
    return start;
}

void fmt_pack(Arena *arena, const FmtTree *t, const Coo *a, int64_t width, Packed *out)
{
    int64_t *at, *p = NULL;

    *out = (Packed){ .width = -1 };
    at = place_rows(arena, t, a, out);
    if (t->col != NULL && t->col->extent == X_EXPR)
        out->width = t->j->kind == C_IDENT ? a->n : width >= 0 ? width : longest_row(at, a->nnz);
    if (t->col != NULL && t->col->extent == X_SEG)
        out->start = pack_starts(arena, at, out->rows, a->nnz);
    if (out->width < 0) {
        out->val = new_array(arena, t->buf->type, a->nnz, 1);
    } else {
        out->val = new_array(arena, t->buf->type, out->rows, out->width);
        p = place_in_rows(arena, t, a, at, out->width);
    }
    fill_values(arena, t, a, p, out);
    if (t->j->kind == C_LOAD)
        out->j = pack_columns(arena, t, a, p, out);
}

/* How far a coordinate goes: its bound, or the extent of the axis it counts. */
static int64_t reach(const Prog *prog, const Env *env, const Axis *axis, const Coord *c)
{
    if (c->bound == NULL && c->kind == C_LOAD)
        err_throw(prog->arena->err, ST_BIND,
                  "axis %s: a coordinate without a bound does not tell "
                  "the shape of the matrix; declare it as `< n`",
                  axis->name);
    return ir_eval_size(prog, env, c->bound != NULL ? c->bound : axis->size);
}

static int64_t coordinate(const Coord *c, const Array *load, int64_t pos, int64_t loc)
{
    return c->kind == C_LOAD ? ir_array_int(load, pos) : loc;
}

static void take_entry(const Array *val, int64_t p, int64_t i, int64_t j, Coo *out)
{
    if (i < 0 || i >= out->m || j < 0 || j >= out->n)
        return; /* padding */
    out->row[out->nnz] = i;
    out->col[out->nnz] = j;
    if (out->val != NULL)
        out->val[out->nnz++] = ir_array_float(val, p);
    else
        out->ival[out->nnz++] = ir_array_int(val, p);
}

static void take_row(const FmtTree *t, const Env *env, const Span *cols, int64_t r, Coo *out)
{
    const Array *val = &env->buf[t->buf->id], *load = env->coord[t->row->id];
    int64_t i = coordinate(t->i, load, r, r), first, end;

    if (t->col == NULL) {
        take_entry(val, r, i, ir_array_int(&load[1], r), out);
        return;
    }
    first = ir_span_first(cols, r);
    end = ir_span_first(cols, r + 1);
    for (int64_t p = first; p < end; p++)
        take_entry(val, p, i, coordinate(t->j, env->coord[t->col->id], p, p - first), out);
}

void fmt_unpack(Arena *arena, const FmtTree *t, const Prog *prog, const Env *env, Coo *out)
{
    const Axis *last = t->col != NULL ? t->col : t->row;
    Span rows = ir_axis_span(prog, env, t->row), cols = ir_axis_span(prog, env, last);
    int64_t most = env->buf[t->buf->id].n;

    *out = (Coo){ .m = reach(prog, env, t->row, t->i), .n = reach(prog, env, last, t->j) };
    out->row = arena_array(arena, most, sizeof *out->row);
    out->col = arena_array(arena, most, sizeof *out->col);
    if (ir_type[t->buf->type].floats)
        out->val = arena_array(arena, most, sizeof *out->val);
    else
        out->ival = arena_array(arena, most, sizeof *out->ival);
    for (int64_t r = 0; r < rows.total; r++)
        take_row(t, env, &cols, r, out);
}
