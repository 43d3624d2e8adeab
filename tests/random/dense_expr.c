/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Values of expressions for the dense evaluator: straight recursion, types found again from the
 * values and compared with the builder's, entries found by looking at every position. */
#include "random/dense.h"

#include <math.h>
#include <stdio.h>

Num dense_convert(Num a, Type t)
{
    double d = a.type == T_i64 ? (double)a.i : a.d;

    if (t == T_i64 || t == T_bool || t == a.type)
        return a;
    if (t == T_f32)
        d = a.type == T_i64 ? (double)(float)a.i : (double)(float)d;
    return (Num){ .type = t, .d = d };
}

static Num of_int(int64_t v)
{
    return (Num){ .type = T_i64, .i = v };
}

static Num of_bool(bool v)
{
    return (Num){ .type = T_bool, .i = v };
}

static Num of_float(Type t, double v)
{
    return (Num){ .type = t, .d = t == T_f32 ? (double)(float)v : v };
}

static Num int_arith(Dense *d, Op op, int64_t a, int64_t b)
{
    int64_t r = 0;
    bool over = false;

    switch (op) {
    case OP_add: over = int_add(a, b, &r); break;
    case OP_sub: over = int_sub(a, b, &r); break;
    case OP_mul: over = int_mul(a, b, &r); break;
    case OP_min: r = a <= b ? a : b; break;
    case OP_max: r = a >= b ? a : b; break;
    case OP_div:
    case OP_mod:
        if (b == 0 || (op == OP_div && a == INT64_MIN && b == -1))
            dense_fail(d, "integer division");
        r = b == -1 ? (op == OP_div ? -a : 0) : op == OP_div ? a / b : a % b;
        if (b != -1 && a % b != 0 && (a < 0) != (b < 0))
            r += op == OP_div ? -1 : b;
        break;
    default: dense_fail(d, "unknown integer operator");
    }
    if (over)
        dense_fail(d, "integer overflow");
    return of_int(r);
}

/* One rounding a step: in float for f32, in double otherwise. */
static double float_arith(Dense *d, Op op, Type t, double a, double b)
{
    float x = (float)a, y = (float)b;

    switch (op) {
    case OP_add: return t == T_f32 ? (double)(x + y) : a + b;
    case OP_sub: return t == T_f32 ? (double)(x - y) : a - b;
    case OP_mul: return t == T_f32 ? (double)(x * y) : a * b;
    case OP_div: return t == T_f32 ? (double)(x / y) : a / b;
    case OP_min: return a <= b || a != a ? a : b;
    case OP_max: return a >= b || a != a ? a : b;
    default: dense_fail(d, "unknown operator");
    }
}

static bool holds(Op op, bool less, bool equal, bool greater)
{
    switch (op) {
    case OP_lt: return less;
    case OP_le: return less || equal;
    case OP_gt: return greater;
    case OP_ge: return greater || equal;
    case OP_eq: return equal;
    default: return !equal; /* NaN != NaN */
    }
}

static Num binary(Dense *d, Expr *e)
{
    Num a = dense_eval(d, e->arg[0]), b = dense_eval(d, e->arg[1]);
    Type t = a.type > b.type ? a.type : b.type;

    a = dense_convert(a, t);
    b = dense_convert(b, t);
    if (e->op >= OP_lt && e->op <= OP_ne)
        return of_bool(t == T_i64 ? holds(e->op, a.i<b.i, a.i == b.i, a.i> b.i)
                                  : holds(e->op, a.d<b.d, a.d == b.d, a.d> b.d));
    return t == T_i64 ? int_arith(d, e->op, a.i, b.i)
                      : of_float(t, float_arith(d, e->op, t, a.d, b.d));
}

static Num int_unary(Dense *d, Op op, int64_t a)
{
    if ((op == OP_neg || op == OP_abs) && a == INT64_MIN)
        dense_fail(d, "integer overflow");
    switch (op) {
    case OP_neg: return of_int(-a);
    case OP_abs: return of_int(a < 0 ? -a : a);
    case OP_relu: return of_int(a > 0 ? a : 0);
    case OP_step: return of_int(a > 0);
    case OP_sign: return of_int((a > 0) - (a < 0));
    default: return of_int(a); /* stop */
    }
}

static double function(Op op, double x)
{
    switch (op) {
    case OP_neg: return -x;
    case OP_abs: return fabs(x);
    case OP_relu: return x >= 0 || x != x ? x : 0;
    case OP_step: return x > 0 ? 1 : 0;
    case OP_sign: return x > 0 ? 1 : x < 0 ? -1 : 0;
    case OP_exp: return exp(x);
    case OP_log: return log(x);
    case OP_sqrt: return sqrt(x);
    case OP_rsqrt: return 1 / sqrt(x);
    case OP_sin: return sin(x);
    case OP_cos: return cos(x);
    case OP_tanh: return tanh(x);
    case OP_sigmoid: return 1 / (1 + exp(-x));
    case OP_silu: return x * (1 / (1 + exp(-x)));
    default: return x; /* stop */
    }
}

static Num unary(Dense *d, Expr *e)
{
    Num a = dense_eval(d, e->arg[0]);

    if (e->op == OP_f32 || e->op == OP_f64)
        return dense_convert(a, e->op == OP_f32 ? T_f32 : T_f64);
    if (e->op >= OP_exp && e->op <= OP_silu)
        a = dense_convert(a, a.type == T_i64 ? T_real : a.type);
    return a.type == T_i64 ? int_unary(d, e->op, a.i) : of_float(a.type, function(e->op, a.d));
}

static int64_t search(Dense *d, const Axis *x, int64_t q, const int64_t *value)
{
    const Level *v = &d->space.level[x->id];
    int64_t found = -1;

    for (int64_t p = 0; p < v->n; p++) {
        bool same = v->exists[p] && v->parent[p] == q;

        for (int k = 0; k < x->ncoord; k++)
            same = same && v->coord[k][p] == value[k];
        if (same && found >= 0)
            dense_fail(d, "two entries with one coordinate");
        if (same)
            found = p;
    }
    if (found < 0)
        d->stats->misses++;
    else
        d->stats->hits++;
    return found;
}

static int64_t ident_position(Dense *d, const Axis *x, int64_t q, int64_t value)
{
    const Level *v = &d->space.level[x->id];

    for (int64_t p = 0; p < v->n; p++)
        if (v->parent[p] == q && v->loc[p] == value)
            return v->exists[p] ? p : -1;
    dense_fail(d, "an index out of range");
}

int64_t dense_index(Dense *d, const Axis *x, int64_t q, Expr *index)
{
    int64_t value[IR_MAX_RANK];

    if (index->op == OP_var)
        return d->pos[index->var->id];
    if (index->op == OP_at) {
        int64_t p = dense_eval(d, index->arg[0]).i;

        if (p < 0 || p >= d->space.level[x->id].n || !d->space.level[x->id].exists[p])
            dense_fail(d, "@ outside the axis, or at a padded position");
        return p;
    }
    if (index->op != OP_tuple)
        value[0] = dense_eval(d, index).i;
    for (int k = 0; index->op == OP_tuple && k < index->nargs; k++)
        value[k] = dense_eval(d, index->arg[k]).i;
    if (x->ncoord == 1 && x->coord[0].kind == C_IDENT)
        return ident_position(d, x, q, value[0]);
    return search(d, x, q, value);
}

/* Sets the position at a place of buf->full, and with it those of its ancestors. */
static void settle(Dense *d, const Buf *b, int place, int64_t p, int64_t *row)
{
    for (int up; place >= 0; place = up) {
        up = space_parent_place(b, place);
        row[place] = p;
        p = d->space.level[b->full[place]->id].parent[p];
    }
}

int64_t dense_locate(Dense *d, Expr *load)
{
    const Buf *b = load->buf;
    int64_t row[IR_MAX_FULL], p;
    Tuples *tuples = &d->store[b->id].tuples;

    if (tuples->row == NULL) /* stored() asks before the first write */
        *tuples = space_tuples(&d->space, b);
    for (int s = 0; s < b->nslot; s++) {
        int place = b->place_in_full[s], up = space_parent_place(b, place);

        if (load->arg[s]->op == OP_none)
            continue;
        p = dense_index(d, b->full[place], up < 0 ? 0 : row[up], load->arg[s]);
        if (p < 0)
            return -1;
        settle(d, b, place, p, row);
    }
    p = space_find(tuples, row);
    if (p < 0)
        dense_fail(d, "an access whose indices do not belong together");
    return p;
}

static Num load_value(Dense *d, Expr *e)
{
    const Buf *b = e->buf;
    int64_t at = dense_locate(d, e);
    Num fill = { .type = T_f64, .d = b->has_fill ? b->fill : 0 };
    Array one;

    if (at >= 0)
        return d->store[b->id].val[at];
    if (b->type == T_i32 || b->type == T_i64)
        return of_int((int64_t)fill.d);
    one = array_new(d->arena, b->type, 1);
    array_set(&one, 0, 0, fill.d);
    return b->rows ? dense_convert(fill, T_real)
                   : of_float(b->type == T_f64 ? T_f64 : T_f32, array_float(&one, 0));
}

bool dense_true(Dense *d, Expr *e)
{
    return dense_eval(d, e).i != 0;
}

static Num select_value(Dense *d, Expr *e)
{
    Type a = e->arg[1]->type, b = e->arg[2]->type;
    Num v = dense_eval(d, dense_true(d, e->arg[0]) ? e->arg[1] : e->arg[2]);

    return dense_convert(v, a > b ? a : b);
}

static Num value_of(Dense *d, Expr *e)
{
    const Level *v = NULL;

    if (e->op == OP_coord || e->op == OP_loc)
        v = &d->space.level[e->var->axis->id];
    switch (e->op) {
    case OP_int: return of_int(e->i);
    case OP_real: return of_float(T_real, e->f);
    case OP_size: return of_int(d->env->size[e->size->id]);
    case OP_coord: return of_int(v->coord[e->k][d->pos[e->var->id]]);
    case OP_loc: return of_int(v->loc[d->pos[e->var->id]]);
    case OP_pos: return of_int(d->pos[e->var->id]);
    case OP_count: return of_int(d->space.level[e->axis->id].n);
    case OP_load: return load_value(d, e);
    case OP_stored: return of_bool(dense_locate(d, e->arg[0]) >= 0);
    case OP_and: return of_bool(dense_true(d, e->arg[0]) && dense_true(d, e->arg[1]));
    case OP_or: return of_bool(dense_true(d, e->arg[0]) || dense_true(d, e->arg[1]));
    case OP_not: return of_bool(!dense_true(d, e->arg[0]));
    case OP_select: return select_value(d, e);
    default: return e->nargs == 2 ? binary(d, e) : unary(d, e);
    }
}

Num dense_eval(Dense *d, Expr *e)
{
    Num v = value_of(d, e);

    if (v.type != e->type)
        err_throw(d->err, ST_ARG, "%s: a %s node has the type %s, and its value %s", d->label,
                  ir_op[e->op].name, ir_type[e->type].name, ir_type[v.type].name);
    return v;
}
