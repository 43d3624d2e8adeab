/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Expressions as C.  Sizes are n_name, arrays a_name, loop variables v_name, and lets t with a
 * number, so no name of a program is a keyword of C or the name of something else. */
#include "emit/emit_int.h"

#include <math.h>
#include <string.h>

const char *emit_ctype(const Emit *o, Type t)
{
    return o->dialect->type[t];
}

const char *emit_suffix(Type t)
{
    return t == T_f32 ? "f32" : t == T_i64 ? "i64" : "f64";
}

const char *emit_lanes(Type t)
{
    return t == T_f16 ? "F16" : t == T_bf16 ? "BF16" : t == T_f32 ? "F32" : "F64";
}

void emit_vector_on(Emit *o, const Local *v)
{
    o->vector = v;
    o->lanes = (Memo){ 0 };
    o->strides = NULL;
}

/* Whether the expression has a value for each lane of the vector loop around. */
bool emit_is_vector(Emit *o, Expr *e)
{
    Expr *no = ir_int(o->p, 0), *yes = ir_int(o->p, 1), *known;

    if (o->vector == NULL)
        return false;
    if (e->op == OP_local)
        return e->local == o->vector || e->local->lanes > 1;
    known = *ir_memo(o->p, &o->lanes, e);
    if (known != NULL)
        return known == yes;
    known = no;
    for (int i = 0; i < e->nargs && known == no; i++)
        if (emit_is_vector(o, e->arg[i]))
            known = yes;
    *ir_memo(o->p, &o->lanes, e) = known;
    return known == yes;
}

bool emit_in_lanes(const Emit *o, const Local *l)
{
    return o->vector != NULL && l->lanes > 1;
}

void emit_local_name(const Emit *o, Text *to, const Local *l)
{
    if (l->name == NULL)
        text_f(to, "t%d", l->id);
    else if (l->id < o->nlocal && o->hides[l->id])
        text_f(to, "v%d_%s", l->id, l->name);
    else
        text_f(to, "v_%s", l->name);
}

void emit_local(Emit *o, const Local *l)
{
    emit_local_name(o, o->out, l);
    if (o->regs > 1 && emit_in_lanes(o, l))
        text_f(o->out, "_%d", o->reg);
}

/* The place of the first lane; a local that is assigned. */
void emit_place(Emit *o, Expr *cell)
{
    const Local *v = o->vector;
    int64_t shift = v != NULL && emit_is_vector(o, cell) ? o->reg * o->step : 0;
    bool checked = o->checked;
    LoopIndex x;

    if (cell->op == OP_local) {
        emit_local(o, cell->local);
        return;
    }
    if (shift > 0 && loop_index(cell->arg[0], v, &x))
        shift *= x.stride;
    o->vector = NULL;
    o->checked = false;
    emit_array_name(o, cell->buf);
    text_char(o->out, '[');
    if (shift == 0 && cell->arg[0]->op == OP_local)
        emit_local(o, cell->arg[0]->local);
    else
        emit_expr(o, cell->arg[0], shift != 0 ? L_SUM : L_SELECT);
    if (shift != 0)
        text_f(o->out, " + %lld", (long long)shift);
    text_char(o->out, ']');
    o->vector = v;
    o->checked = checked;
}

static void put_cell(Emit *o, Expr *e)
{
    Type t = e->buf->type;

    if (emit_lane_cell(o, e) || emit_strided_cell(o, e))
        return;
    if (emit_is_vector(o, e))
        text_f(o->out, "WEFT_LOAD%s_%s(&", o->masked ? "M" : "", emit_lanes(t));
    else if (t == T_f16 || t == T_bf16)
        text_f(o->out, "weft_from_%s(", ir_type[t].name);
    else if (t == T_i32)
        text_str(o->out, "(int64_t)");
    emit_place(o, e);
    if (emit_is_vector(o, e) && o->masked)
        text_str(o->out, ", weft_mask");
    if (emit_is_vector(o, e) || t == T_f16 || t == T_bf16)
        text_char(o->out, ')');
}

static void put_real(Emit *o, double v, Type as)
{
    char text[NUM_TEXT];

    if (isnan(v) || isinf(v)) {
        text_str(o->out, isnan(v) ? "NAN" : v < 0 ? "-INFINITY" : "INFINITY");
        return;
    }
    num_print(text, v);
    text_f(o->out, "%s%s%s", text, strpbrk(text, ".e") == NULL ? ".0" : "", as == T_f32 ? "f" : "");
}

static void put_int(Emit *o, int64_t v)
{
    if (v == INT64_MIN)
        text_str(o->out, "INT64_MIN");
    else
        text_f(o->out, v > INT32_MAX || v < -INT32_MAX ? "INT64_C(%lld)" : "%lld", (long long)v);
}

/* 0 <= x and x < n */
static bool is_inside(Expr *e)
{
    Expr *a = e->arg[0], *b = e->arg[e->nargs - 1];

    return e->op == OP_and && a->op == OP_le && a->arg[0]->op == OP_int && a->arg[0]->i == 0 &&
           b->op == OP_lt && b->arg[0] == a->arg[1] && b->arg[1]->type == T_i64;
}

/* name(arguments), as values of one type. */
static void put_call(Emit *o, const char *name, const char *suffix, Expr *e, Type as)
{
    text_f(o->out, "weft_%s_%s%s(", name, emit_is_vector(o, e) ? "v" : "", suffix);
    for (int i = 0; i < e->nargs; i++) {
        text_str(o->out, i > 0 ? ", " : "");
        if (emit_is_vector(o, e))
            emit_operand(o, e->arg[i], as, L_SELECT);
        else
            emit_as(o, e->arg[i], as, L_SELECT);
    }
    text_str(o->out, strcmp(suffix, "ck") == 0 ? ", &fault)" : ")");
}

static void put_infix(Emit *o, Expr *e, Type as, enum Level left, enum Level right)
{
    for (int i = 0; i < 2; i++) {
        text_f(o->out, i > 0 ? " %s " : "%.0s", ir_op[e->op].text);
        if (emit_is_vector(o, e))
            emit_operand(o, e->arg[i], as, i == 0 ? left : right);
        else
            emit_as(o, e->arg[i], as, i == 0 ? left : right);
    }
}

static void put_inside(Emit *o, Expr *e)
{
    text_str(o->out, "weft_inside(");
    emit_expr(o, e->arg[1]->arg[0], L_SELECT);
    text_str(o->out, ", ");
    emit_expr(o, e->arg[1]->arg[1], L_SELECT);
    text_char(o->out, ')');
}

static void put_logic(Emit *o, Expr *e)
{
    bool lanes = emit_is_vector(o, e);

    if (!lanes && is_inside(e)) {
        put_inside(o, e);
        return;
    }
    for (int i = 0; i < 2; i++) {
        bool bare = e->arg[i]->op == e->op;

        if (i > 0)
            text_str(o->out, lanes ? e->op == OP_and ? " & " : " | "
                             : e->op == OP_and ? " && " : " || ");
        emit_expr(o, e->arg[i], lanes ? L_PRIMARY : bare ? L_OR : L_COMPARE);
    }
}

/* The function gets the arrays and sizes too: what it reads is its own affair. */
static void put_find(Emit *o, Expr *e)
{
    text_f(o->out, "%s_%s_%s%s", o->prefix, loop_find_word[e->k], e->axis->name, o->dialect->pass);
    if (e->k == FIND_NEAR)
        text_f(o->out, ", &near%u", (unsigned)e->id);
    for (int i = 0; i < e->nargs; i++) {
        text_str(o->out, ", ");
        emit_expr(o, e->arg[i], L_SELECT);
    }
    text_char(o->out, ')');
}

static void put_above(Emit *o, Expr *e)
{
    Buf *start = loop_start(o->p, e->axis);

    text_f(o->out, "weft_above_%s(", ir_type[start->type].name);
    emit_array_name(o, start);
    text_str(o->out, ", ");
    emit_count_name(o, e->axis->parent);
    text_str(o->out, ", ");
    emit_expr(o, e->arg[0], L_SELECT);
    text_char(o->out, ')');
}

static bool has_check(Op op)
{
    return (op >= OP_neg && op <= OP_mod) || op == OP_abs;
}

/* Arithmetic on literals that overflows, about which compilers complain: a check before it has
 * ended the run. */
static bool is_never_reached(Expr *e)
{
    int64_t v;

    for (int i = 0; i < e->nargs; i++)
        if (e->arg[i]->op != OP_int)
            return false;
    return e->op >= OP_neg && e->op <= OP_mod && e->type == T_i64 && !ir_const_int(e, &v);
}

/* Of lanes both sides are there, and bits choose. */
static void put_choice(Emit *o, Expr *e, Type as)
{
    const char *bits = as == T_f32 ? "32" : "64";

    text_f(o->out, "weft_select_vf%s((weft_vi%s)", bits, bits);
    emit_expr(o, e->arg[0], L_PRIMARY);
    for (int i = 1; i < 3; i++) {
        text_str(o->out, ", ");
        emit_operand(o, e->arg[i], as, L_SELECT);
    }
    text_char(o->out, ')');
}

static void put_select(Emit *o, Expr *e, Type as)
{
    if (emit_is_vector(o, e)) {
        put_choice(o, e, as);
        return;
    }
    emit_expr(o, e->arg[0], L_OR);
    text_str(o->out, " ? ");
    emit_as(o, e->arg[1], as, L_OR);
    text_str(o->out, " : ");
    emit_as(o, e->arg[2], as, L_OR);
}

/* All integers of its argument computed with checks; whether that left no fault. */
static void put_fits(Emit *o, Expr *e)
{
    o->checked = true;
    text_str(o->out, "(void)");
    emit_expr(o, e->arg[0], L_PRIMARY);
    text_str(o->out, ", !fault");
    o->checked = false;
}

static void put_op(Emit *o, Expr *e)
{
    Type as = e->type == T_real ? T_f64 : (Type)e->type;

    if (as == T_i64 && o->checked && has_check((Op)e->op)) {
        put_call(o, ir_op[e->op].name, "ck", e, as);
        return;
    }
    if (is_never_reached(e)) {
        text_char(o->out, '0');
        return;
    }
    switch (e->op) {
    case OP_neg:
        text_char(o->out, '-');
        emit_as(o, e->arg[0], as, L_PRIMARY);
        break;
    case OP_sub:
        if (emit_is_start(o, e->arg[0]) && emit_is_start(o, e->arg[1])) {
            text_str(o->out, "(int64_t)(");
            emit_local(o, e->arg[0]->local);
            text_str(o->out, " - ");
            emit_local(o, e->arg[1]->local);
            text_char(o->out, ')');
            break;
        } /* fall through */
    case OP_add: put_infix(o, e, as, L_SUM, L_PRODUCT); break;
    case OP_mul: put_infix(o, e, as, L_PRODUCT, L_UNARY); break;
    case OP_div:
        if (as == T_i64)
            put_call(o, "div", "i64", e, as);
        else
            put_infix(o, e, as, L_PRODUCT, L_UNARY);
        break;
    case OP_select: put_select(o, e, as); break;
    case OP_and:
    case OP_or: put_logic(o, e); break;
    case OP_not:
        text_str(o->out, emit_is_vector(o, e) ? o->dialect->negate : "!");
        emit_expr(o, e->arg[0], L_PRIMARY);
        break;
    case OP_f32:
    case OP_f64:
    case OP_stop: emit_as(o, e->arg[0], as, L_UNARY); break;
    case OP_fits: put_fits(o, e); break;
    default:
        if (e->type == T_bool)
            put_infix(o, e, ir_promote((Type)e->arg[0]->type, (Type)e->arg[1]->type), L_SUM, L_SUM);
        else
            put_call(o, ir_op[e->op].name, emit_suffix(as), e, as);
    }
}

/* Kept as an int32_t, but arithmetic is of 64 bits. */
static bool is_narrow(const Emit *o, const Expr *e)
{
    return e->local->id < o->nlocal && o->narrow[e->local->id];
}

static enum Level level_of(const Emit *o, Expr *e)
{
    if (e->type == T_i64 && o->checked && has_check((Op)e->op))
        return L_PRIMARY;
    switch (e->op) {
    case OP_int: return e->i < 0 && e->i != INT64_MIN ? L_UNARY : L_PRIMARY;
    case OP_real: return signbit(e->f) ? L_UNARY : L_PRIMARY;
    case OP_cell: return e->buf->type == T_i32 ? L_UNARY : L_PRIMARY;
    case OP_local: return is_narrow(o, e) ? L_UNARY : L_PRIMARY;
    case OP_fits: return L_COMMA;
    case OP_select: return L_SELECT;
    case OP_or: return L_OR;
    case OP_and: return is_inside(e) ? L_PRIMARY : L_AND;
    case OP_lt:
    case OP_le:
    case OP_gt:
    case OP_ge:
    case OP_eq:
    case OP_ne: return L_COMPARE;
    case OP_add:
    case OP_sub: return L_SUM;
    case OP_mul: return L_PRODUCT;
    case OP_div: return e->type == T_i64 ? L_PRIMARY : L_PRODUCT;
    case OP_neg:
    case OP_not:
    case OP_f32:
    case OP_f64:
    case OP_stop: return L_UNARY;
    default: return L_PRIMARY;
    }
}

static bool is_positive(Expr *e)
{
    if (e->op == OP_int)
        return e->i > 0;
    return e->op == OP_max && (is_positive(e->arg[0]) || is_positive(e->arg[1]));
}

/* Of sizes alone, with a quotient that is there whatever they are: worked out once. */
static bool is_fixed(Expr *e, bool *divides)
{
    if (e->op == OP_int || e->op == OP_size || e->op == OP_count)
        return true;
    if (e->type != T_i64 || e->nargs == 0 || e->op == OP_cell || e->op == OP_find ||
        e->op == OP_above)
        return false;
    if (e->op == OP_div || e->op == OP_mod)
        *divides = true;
    if ((e->op == OP_div || e->op == OP_mod) && !is_positive(e->arg[1]))
        return false;
    for (int i = 0; i < e->nargs; i++)
        if (!is_fixed(e->arg[i], divides))
            return false;
    return true;
}

static void put_value(Emit *o, Expr *e, enum Level least);

static bool put_fixed(Emit *o, Expr *e)
{
    bool divides = false;
    Text *out = o->out, line = { .arena = o->p->arena };

    if (o->checked || !is_fixed(e, &divides) || !divides)
        return false;
    if (*ir_memo(o->p, o->used.known, e) == NULL) {
        *ir_memo(o->p, o->used.known, e) = e;
        o->out = &line; /* parts of it may come first */
        text_f(o->out, "\n    const int64_t c%u = ", (unsigned)e->id);
        put_value(o, e, L_SELECT);
        text_char(o->out, ';');
        o->out = out;
        text_put(o->used.fixed, line.s, line.n);
    }
    text_f(o->out, "c%u", (unsigned)e->id);
    return true;
}

void emit_expr(Emit *o, Expr *e, enum Level least)
{
    if (!put_fixed(o, e))
        put_value(o, e, least);
}

static void put_value(Emit *o, Expr *e, enum Level least)
{
    bool open = level_of(o, e) < least;

    if (o->out->n > EMIT_MOST)
        ir_throw(o->p, ST_LIMIT, "a kernel of more than %d MB of C", EMIT_MOST >> 20);
    if (open)
        text_char(o->out, '(');
    switch (e->op) {
    case OP_int: put_int(o, e->i); break;
    case OP_real: put_real(o, e->f, T_f64); break;
    case OP_size:
        o->used.size[e->size->id] = true;
        text_f(o->out, "n_%s", e->size->name);
        break;
    case OP_count: emit_count_name(o, e->axis); break;
    case OP_local:
        text_str(o->out, is_narrow(o, e) ? "(int64_t)" : "");
        emit_local(o, e->local);
        break;
    case OP_cell: put_cell(o, e); break;
    case OP_find: put_find(o, e); break;
    case OP_above: put_above(o, e); break;
    default: put_op(o, e);
    }
    if (open)
        text_char(o->out, ')');
}

static bool is_wide(Type t)
{
    return t == T_f64 || t == T_real;
}

void emit_as(Emit *o, Expr *e, Type as, enum Level least)
{
    bool open = least == L_PRIMARY;

    if (e->op == OP_real && as == T_f32) {
        double v = (double)(float)e->f;

        text_str(o->out, signbit(v) && open ? "(" : "");
        put_real(o, v, as);
        text_str(o->out, signbit(v) && open ? ")" : "");
    } else if (e->type == as || (is_wide(as) && is_wide((Type)e->type)) || as < T_real) {
        emit_expr(o, e, least);
    } else if (e->type == T_i64) { /* a cast in sight of gcc: it takes 0.0 - (double)i for -i */
        text_f(o->out, "weft_int_%s(", emit_suffix(as));
        emit_expr(o, e, L_SELECT);
        text_char(o->out, ')');
    } else {
        text_f(o->out, open ? "((%s)" : "(%s)", emit_ctype(o, as));
        emit_expr(o, e, L_UNARY);
        text_str(o->out, open ? ")" : "");
    }
}

void emit_operand(Emit *o, Expr *e, Type as, enum Level least)
{
    if (o->vector == NULL || emit_is_vector(o, e)) {
        emit_as(o, e, as, least);
        return;
    }
    text_f(o->out, "WEFT_SPLAT_%s(", as == T_f32 ? "F32" : "F64");
    emit_as(o, e, as, L_SELECT);
    text_char(o->out, ')');
}
