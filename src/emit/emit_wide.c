/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Elements of lanes that are threads.  In a packed loop a lane has neighbours: where these begin at
 * a multiple of their number, one load or store takes them.  An element of a gathered row,
 * B[E.j[e] * 128 + k], has the address &B[k] of the lane, which is known before the loop over e,
 * and one multiply-add. */
#include "emit/emit_int.h"

enum { LIMIT_WIDE = 4, LIMIT_ROW = 1 << 22 }; /* elements of one load; of a row */

bool emit_fits_i32(const Emit *o, Expr *e)
{
    switch (e->op) {
    case OP_int: return e->i >= INT32_MIN && e->i <= INT32_MAX;
    case OP_cell: return e->buf->type == T_i32;
    case OP_local: return e->local->id < o->nlocal && o->narrow[e->local->id];
    case OP_select: return emit_fits_i32(o, e->arg[1]) && emit_fits_i32(o, e->arg[2]);
    case OP_min:
    case OP_max: return emit_fits_i32(o, e->arg[0]) && emit_fits_i32(o, e->arg[1]);
    default: return false;
    }
}

static Expr *value_of(const Emit *o, Expr *e)
{
    return e->op == OP_local && e->local->id < o->nlocal ? o->known[e->local->id].value : NULL;
}

bool emit_is_start(const Emit *o, Expr *e)
{
    Expr *value = value_of(o, e);

    return value != NULL && value->op == OP_cell && value->buf->type == T_i32 &&
           value->buf->of != NULL && value->buf->of_k == -1;
}

/* What is loaded as i32 and multiplied by a constant to give e; or NULL. */
static Expr *gathered(const Emit *o, Expr *e, int64_t *times)
{
    Expr *value = value_of(o, e);

    if (e->op == OP_cell || (value != NULL && value->op == OP_cell))
        return emit_fits_i32(o, e) ? e : NULL;
    if (value != NULL)
        return gathered(o, value, times);
    if (e->op != OP_mul)
        return NULL;
    for (int i = 0; i < 2; i++) {
        const Expr *by = e->arg[1 - i];

        if (by->op != OP_int || by->i < 1 || by->i > LIMIT_ROW || *times * by->i > LIMIT_ROW)
            continue;
        *times *= by->i;
        return gathered(o, e->arg[i], times);
    }
    return NULL;
}

typedef struct Row { /* an index as row * times + rest, and the variable of the vector loop */
    Expr *row, *rest;
    bool moves;
    int64_t times;
} Row;

static void add_rest(Emit *o, Row *r, Expr *e)
{
    r->rest = r->rest == NULL ? e : ir_op2(o->p, OP_add, r->rest, e);
}

static void split_index(Emit *o, Row *r, Expr *e)
{
    int64_t times = 1;
    Expr *row;

    if (e->op == OP_add) {
        split_index(o, r, e->arg[0]);
        split_index(o, r, e->arg[1]);
        return;
    }
    if (e->op == OP_local && e->local == o->vector && !r->moves) {
        r->moves = true;
        return;
    }
    row = r->row == NULL ? gathered(o, e, &times) : NULL;
    if (row == NULL || emit_is_vector(o, row)) {
        add_rest(o, r, e);
        return;
    }
    r->row = row;
    r->times = times;
}

static bool has_row(Emit *o, Expr *cell)
{
    Row r = { .times = 1 };

    if (emit_is_stored(o, &o->phase_stored, cell->buf))
        return false;
    split_index(o, &r, cell->arg[0]);
    return r.row != NULL && r.moves;
}

/* The element of the lane: *WEFT_ROW(&a_B[v_k + weft_lane * 4], t40, 128), or a_B[...]; as the
 * address of it, p. */
static void put_address(Emit *o, Expr *cell, int64_t stride, int64_t shift)
{
    const Local *v = o->vector;
    Row r = { .times = 1 };

    if (has_row(o, cell))
        split_index(o, &r, cell->arg[0]);
    o->vector = NULL;
    text_str(o->out, r.row != NULL ? "WEFT_ROW(&" : "&");
    emit_array_name(o, cell->buf);
    text_char(o->out, '[');
    if (r.row == NULL || r.rest != NULL) {
        emit_expr(o, r.row != NULL ? r.rest : cell->arg[0], L_SUM);
        text_str(o->out, " + ");
    }
    text_f(o->out, stride == 1 ? "weft_lane" : "weft_lane * %lld", (long long)stride);
    if (shift > 0)
        text_f(o->out, " + %lld", (long long)shift);
    text_char(o->out, ']');
    if (r.row != NULL) {
        text_str(o->out, ", ");
        emit_expr(o, r.row, L_SELECT);
        text_f(o->out, ", %lld) + ", (long long)r.times);
        emit_local(o, v);
    }
    o->vector = v;
}

static int64_t stride_of(const Emit *o, Expr *cell)
{
    LoopIndex x;

    return loop_index(cell->arg[0], o->vector, &x) ? x.stride : 1;
}

/* One element of a lane: of register o->reg, where lanes have several. */
static void put_own(Emit *o, Expr *cell)
{
    int64_t stride = stride_of(o, cell), pack = o->pack > 1 ? o->pack : 1;
    int64_t shift = o->reg * stride * (o->pack > 1 ? 1 : o->step);

    put_address(o, cell, stride * pack, shift);
}

static const char *of_half(Type t)
{
    return t == T_f16 ? "weft_from_f16" : t == T_bf16 ? "weft_from_bf16" : "";
}

bool emit_lane_cell(Emit *o, Expr *e)
{
    Type t = e->buf->type;

    if (o->dialect->one == NULL || o->vector == NULL || !emit_is_vector(o, e))
        return false;
    if (o->pack <= 1 && !has_row(o, e))
        return false;
    for (int i = 0; i < o->nwide; i++)
        if (o->wide[i].cell == e) {
            int chunk = o->pack < LIMIT_WIDE ? o->pack : LIMIT_WIDE;

            text_f(o->out, "%s%sWEFT_NTH(w%d_%d, %d)%s", of_half(t), *of_half(t) ? "(" : "",
                   o->wide[i].number, o->reg / chunk, o->reg % chunk, *of_half(t) ? ")" : "");
            return true;
        }
    text_str(o->out, o->masked ? "(weft_mask ? " : "");
    text_f(o->out, "%s(*(", of_half(t));
    put_own(o, e);
    text_str(o->out, "))");
    text_str(o->out, o->masked ? t == T_f64 ? " : 0.0)" : " : 0.0f)" : "");
    return true;
}

static void load(Emit *o, Expr *e)
{
    int chunk = o->pack < LIMIT_WIDE ? o->pack : LIMIT_WIDE;
    Wide w = { e, ++o->wides };

    for (int i = 0; i < o->pack / chunk; i++) {
        emit_line(o);
        text_f(o->out, "const WEFT_WIDE(%d, %s) w%d_%d = WEFT_WIDE_LOAD(%d, %s, ", chunk,
               emit_ctype(o, e->buf->type), w.number, i, chunk, emit_ctype(o, e->buf->type));
        put_address(o, e, o->pack, i * chunk);
        text_str(o->out, ");");
    }
    o->wide = arena_grow(o->p->arena, o->wide, o->nwide, &o->cap_wide, sizeof *o->wide);
    o->wide[o->nwide++] = w;
}

static void see_load(Expr *e, void *ctx)
{
    Emit *o = ctx;

    if (e->op == OP_cell && ir_is_float(e) && emit_is_vector(o, e) &&
        loop_is_wide(o->packed, e, o->known))
        load(o, e);
}

void emit_wide_loads(Emit *o, const Node *n)
{
    Memo met = { 0 };

    o->nwide = 0;
    if (o->pack <= 1 || o->vector == NULL || (n->kind != N_LET && n->kind != N_STORE))
        return;
    ir_visit(o->p, n->value, see_load, o, &met);
    if (n->kind == N_STORE && n->out->op == OP_cell && n->op != A_SET)
        ir_visit(o->p, n->out, see_load, o, &met);
}

bool emit_wide_store(Emit *o, const Node *n)
{
    int chunk = o->pack < LIMIT_WIDE ? o->pack : LIMIT_WIDE;
    Type t = n->out->op == OP_cell ? n->out->buf->type : T_none;

    if (o->pack <= 1 || o->vector == NULL || t == T_none || !emit_is_vector(o, n->out) ||
        !loop_is_wide(o->packed, n->out, o->known))
        return false;
    for (int i = 0; i < o->pack; i++) {
        if (i % chunk == 0) {
            emit_line(o);
            text_f(o->out, "%sWEFT_WIDE_STORE(%d, %s, ", o->parts_of_team ? "WEFT_ON " : "", chunk,
                   emit_ctype(o, t));
            put_address(o, n->out, o->pack, i);
        }
        text_str(o->out, ", ");
        o->reg = i;
        text_f(o->out, t == T_f16 ? "weft_to_f16(" : t == T_bf16 ? "weft_to_bf16(" : "");
        emit_combined(o, n, (Type)ir_type[t].value);
        text_str(o->out, t == T_f16 || t == T_bf16 ? ")" : "");
        if (i % chunk == chunk - 1)
            text_str(o->out, ");");
    }
    o->reg = 0;
    return true;
}

bool emit_lane_open(Emit *o, const Node *n)
{
    if (o->pack <= 1 || o->vector == NULL || n->out->op != OP_cell || !emit_is_vector(o, n->out))
        return false;
    emit_line(o);
    if (o->parts_of_team)
        text_str(o->out, "WEFT_ON ");
    text_char(o->out, '*');
    put_own(o, n->out);
    text_f(o->out, " = %s(", n->out->buf->type == T_f16    ? "weft_to_f16"
                             : n->out->buf->type == T_bf16 ? "weft_to_bf16"
                                                           : "");
    return true;
}

static void note_known(Emit *o, const Node *n)
{
    if (n->kind == N_LET && n->local->type == T_i64 && !o->assigned[n->local->id])
        o->known[n->local->id].value = n->value;
    if (n->kind == N_LET && n->local->type == T_i64 && !o->assigned[n->local->id])
        o->narrow[n->local->id] = emit_fits_i32(o, n->value);
    if (n->kind == N_FOR && n->how == FOR_SERIAL)
        o->narrow[n->local->id] = emit_fits_i32(o, n->lo) && emit_fits_i32(o, n->hi);
    for (int i = 0; i < n->nbody; i++)
        note_known(o, n->body[i]);
}

void emit_note_lets(Emit *o, const Node *phase)
{
    if (o->dialect->one != NULL)
        note_known(o, phase);
}
