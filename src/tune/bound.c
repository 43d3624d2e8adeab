/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * How far rounding may move a result: from a program to one that also computes, for each element of
 * each float buffer it writes, a bound of the error.
 *
 *     z: Z[i] += A[e] * X[j(e)]            s[i] += |A[e] * X[j(e)]|     the size of the terms,
 *                                    ->    r[i] += error of each term   from what was read,
 *                                          n[i] += 1                    how many there are
 *                                    ->    bound[i] = r[i] + (n[i] + 4) * u * s[i]
 *
 * in any order of the sum, with u the unit roundoff of the type.  Errors of expressions follow from
 * those of their operands and a rounding each; a function adds 4 units in the last place.  Where a
 * comparison is decided by less than the errors of its sides, both outcomes count.  Needs a checked
 * program without built axes and companions. */
#include "tune/tune.h"

#include <math.h>

typedef struct Bound {
    Prog *p;
    Buf **of; /* by Buf.id: the bounds of its elements, or NULL: it is exact */
    Buf **sum, **size, **count; /* by Buf.id, of += */
    int *left; /* by Buf.id: assigns that are still to come */
    int nbuf;
    Memo error, doubt; /* of expressions: their bound; whether a condition may be either */
    Expr *none;        /* in the memos: no error, no doubt */
} Bound;

static double unit(Type t)
{
    switch (t) {
    case T_f32: return 0x1p-24;
    case T_f16: return 0x1p-11;
    case T_bf16: return 0x1p-8;
    default: return 0x1p-53;
    }
}

static Expr *real(const Bound *b, double v)
{
    return ir_real(b->p, v);
}

static Expr *wide(const Bound *b, Expr *e)
{
    return ir_op1(b->p, OP_f64, e);
}

static Expr *size_of(const Bound *b, Expr *e)
{
    return ir_op1(b->p, OP_abs, wide(b, e));
}

/* Sums and products of bounds, where NULL is 0. */
static Expr *plus(const Bound *b, Expr *x, Expr *y)
{
    return x == NULL ? y : y == NULL ? x : ir_op2(b->p, OP_add, x, y);
}

static Expr *times(const Bound *b, Expr *x, Expr *y)
{
    return x == NULL || y == NULL ? NULL : ir_op2(b->p, OP_mul, x, y);
}

static Expr *larger(const Bound *b, Expr *x, Expr *y)
{
    return x == NULL ? y : y == NULL ? x : ir_op2(b->p, OP_max, x, y);
}

static Expr *choose(const Bound *b, Expr *cond, Expr *x, Expr *y)
{
    Expr *zero = real(b, 0);

    if (x == NULL && y == NULL)
        return NULL;
    return ir_node(b->p, OP_select,
                   (Expr *[]){ cond, x != NULL ? x : zero, y != NULL ? y : zero }, 3);
}

/* Roundings of one result, each of u times its size; integers are exact. */
static Expr *rounding(const Bound *b, Expr *e, double units)
{
    if (!ir_is_float(e))
        return NULL;
    return times(b, real(b, units * unit((Type)e->type)), size_of(b, e));
}

static Expr *error_of(Bound *b, Expr *e);
static Expr *doubt_of(Bound *b, Expr *cond);

/* x / (|y| - error of y): endless where y may be 0. */
static Expr *over(const Bound *b, Expr *x, Expr *y, Expr *ey)
{
    Expr *low = size_of(b, y);

    if (x == NULL)
        return NULL;
    if (ey != NULL)
        low = ir_op2(b->p, OP_sub, low, ey);
    return choose(b, ir_op2(b->p, OP_gt, low, real(b, 0)), ir_op2(b->p, OP_div, x, low),
                  real(b, (double)INFINITY));
}

/* What the error of the argument becomes. */
static Expr *through(Bound *b, Expr *e, Expr *x, Expr *ex)
{
    if (ex == NULL)
        return NULL;
    switch (e->op) {
    case OP_exp: /* e^x (e^d - 1), at most e^x d e^d */
        return times(b, times(b, size_of(b, e), ex), ir_op1(b->p, OP_exp, ex));
    case OP_log: return over(b, ex, x, ex);
    case OP_sqrt:
        return choose(b, ir_op2(b->p, OP_gt, wide(b, e), real(b, 0)),
                      ir_op2(b->p, OP_div, ex, wide(b, e)), ir_op1(b->p, OP_sqrt, ex));
    case OP_rsqrt: return over(b, times(b, ex, size_of(b, e)), x, ex);
    case OP_silu: return times(b, real(b, 1.1), ex);
    default: return ex; /* of slope 1 at most */
    }
}

static Expr *error_of_select(Bound *b, Expr *e)
{
    Expr *doubt = doubt_of(b, e->arg[0]), *x = error_of(b, e->arg[1]), *y = error_of(b, e->arg[2]);
    Expr *known = choose(b, e->arg[0], x, y);

    if (doubt == NULL)
        return known;
    return choose(b, doubt,
                  plus(b, size_of(b, ir_op2(b->p, OP_sub, e->arg[1], e->arg[2])), larger(b, x, y)),
                  known);
}

static Expr *new_error(Bound *b, Expr *e)
{
    Expr *x = e->nargs > 0 ? e->arg[0] : NULL, *y = e->nargs > 1 ? e->arg[1] : NULL, *ex, *ey;
    const Buf *own = e->op == OP_load && e->buf->id < b->nbuf ? b->of[e->buf->id] : NULL;

    if (e->op < OP_neg && e->op != OP_load)
        return NULL;
    if (e->op == OP_load)
        return own != NULL ? ir_load(b->p, b->of[e->buf->id], e->arg, e->nargs) : NULL;
    if (e->op == OP_select)
        return error_of_select(b, e);
    ex = x != NULL ? error_of(b, x) : NULL;
    ey = y != NULL ? error_of(b, y) : NULL;
    if (!ir_is_float(e) && (e->op == OP_div || e->op == OP_mod)) /* a step may be anywhere */
        return ex == NULL && ey == NULL ? NULL : real(b, (double)INFINITY);
    switch (e->op) {
    case OP_neg:
    case OP_abs:
    case OP_relu:
    case OP_stop:
    case OP_f64: return ex;
    case OP_min:
    case OP_max: return larger(b, ex, ey);
    case OP_add:
    case OP_sub: return plus(b, plus(b, ex, ey), rounding(b, e, 1));
    case OP_mul:
        return plus(b, plus(b, times(b, size_of(b, x), ey), times(b, size_of(b, y), ex)),
                    plus(b, times(b, ex, ey), rounding(b, e, 1)));
    case OP_div:
        return plus(b, over(b, plus(b, ex, times(b, size_of(b, e), ey)), y, ey),
                    rounding(b, e, 1));
    case OP_step:
    case OP_sign:
        return ex == NULL ? NULL
                          : choose(b, ir_op2(b->p, OP_le, size_of(b, x), ex), real(b, 2), NULL);
    case OP_f32: return plus(b, ex, rounding(b, e, 1));
    default: return plus(b, through(b, e, x, ex), rounding(b, e, 8)); /* 4 ulp are 8 u */
    }
}

/* NULL: none. */
static Expr *error_of(Bound *b, Expr *e)
{
    Expr *known = *ir_memo(b->p, &b->error, e), *to;

    if (known != NULL)
        return known != b->none ? known : NULL;
    to = new_error(b, e);
    *ir_memo(b->p, &b->error, e) = to != NULL ? to : b->none;
    return to;
}

/* The condition that another could hold if values moved by their errors; NULL: never. */
static Expr *doubt_of(Bound *b, Expr *c)
{
    Expr *both = NULL, *gap;

    if (c->op == OP_and || c->op == OP_or || c->op == OP_not) {
        for (int i = 0; i < c->nargs; i++) {
            Expr *d = doubt_of(b, c->arg[i]);

            both = both == NULL ? d : d == NULL ? both : ir_op2(b->p, OP_or, both, d);
        }
        return both;
    }
    if (c->op < OP_lt || c->op > OP_ne)
        return NULL;
    both = plus(b, error_of(b, c->arg[0]), error_of(b, c->arg[1]));
    if (both == NULL)
        return NULL;
    gap = ir_op2(b->p, OP_sub, wide(b, c->arg[0]), wide(b, c->arg[1]));
    return ir_op2(b->p, OP_le, size_of(b, gap), both);
}

static Buf *declare(Bound *b, const Buf *like, bool result)
{
    Buf d = { .name = ir_fresh(b->p, "bound", false),
              .type = T_f64,
              .kind = result ? B_ARG : B_TEMP,
              .slot = like->slot,
              .nslot = like->nslot,
              .has_fill = true };

    return ir_buf(b->p, &d);
}

static void add_to(Bound *b, Assign *list, int *n, const Assign *like, Buf *to, AssignOp op,
                   Expr *value)
{
    list[(*n)++] = (Assign){ .op = op,
                             .out = ir_load(b->p, to, like->out->arg, like->out->nargs),
                             .value = value,
                             .guard = like->guard };
}

/* What an assign does to the bounds of its buffer. */
static void shadow(Bound *b, const Assign *a, Assign *list, int *n)
{
    Expr *doubt = a->guard != NULL ? doubt_of(b, a->guard) : NULL, *error = error_of(b, a->value);
    Expr *size = size_of(b, a->value);
    Assign like = *a;
    Buf *buf = a->out->buf;

    if (doubt != NULL) { /* a term that is there or not: its size counts as its error */
        like.guard = ir_op2(b->p, OP_or, a->guard, doubt);
        error = choose(b, doubt, plus(b, size, error), error);
    }
    error = error != NULL ? error : real(b, 0);
    if (a->op == A_ADD) {
        add_to(b, list, n, &like, b->sum[buf->id], A_ADD, error);
        add_to(b, list, n, &like, b->size[buf->id], A_ADD, size);
        add_to(b, list, n, &like, b->count[buf->id], A_ADD, real(b, 1));
    } else {
        error = plus(b, error, times(b, real(b, unit(buf->type)), size)); /* as it is stored */
        add_to(b, list, n, &like, b->of[buf->id], a->op == A_SET ? A_SET : A_MAX, error);
    }
}

/* The bounds of sums, when all terms are there.  What an inout began with is a term, too. */
static void complete(Bound *b, Buf *buf)
{
    Var *bind[IR_MAX_FULL];
    Expr *out = ir_everywhere(b->p, b->of[buf->id], bind);
    Expr *is = ir_load(b->p, buf, out->arg, out->nargs);
    Expr *sum = ir_load(b->p, b->sum[buf->id], out->arg, out->nargs);
    Expr *size = ir_load(b->p, b->size[buf->id], out->arg, out->nargs);
    Expr *count = ir_load(b->p, b->count[buf->id], out->arg, out->nargs);
    double u = unit(buf->type == T_f64 ? T_f64 : T_f32);
    Assign a = { .op = A_SET, .out = out };

    if (buf->kind == B_INOUT)
        size = plus(b, times(b, real(b, 2), size), size_of(b, is));
    count = times(b, plus(b, count, real(b, 4)), real(b, u));
    a.value = plus(b, plus(b, sum, times(b, count, size)),
                   times(b, real(b, unit(buf->type)), size_of(b, is)));
    ir_stmt(b->p, bind, buf->nfull, &a, 1);
}

static void prepare(Bound *b, const Assign *a)
{
    Buf *buf = a->out->buf;
    int id = buf->id;

    b->left[id]++;
    if (b->of[id] != NULL || !ir_type[buf->type].floats)
        return;
    b->of[id] = declare(b, buf, buf->kind != B_TEMP);
    if (a->op != A_ADD)
        return;
    b->sum[id] = declare(b, buf, false);
    b->size[id] = declare(b, buf, false);
    b->count[id] = declare(b, buf, false);
}

static bool is_known(const Prog *p)
{
    for (int i = 0; i < p->naxis; i++)
        if (p->axis[i]->extent == X_BUILT)
            return false;
    for (int i = 0; i < p->nstmt; i++)
        for (int k = 0; k < p->stmt[i]->nassign; k++)
            if (p->stmt[i]->assign[k].op == A_INSERT || p->stmt[i]->assign[k].nat > 0)
                return false;
    return p->stage == STAGE_COORDINATES;
}

static void keep_stmt(Prog *p, Stmt *s)
{
    p->stmt = arena_grow(p->arena, p->stmt, p->nstmt, &p->cap_stmt, sizeof *p->stmt);
    p->stmt[p->nstmt++] = s;
}

static void add_shadow(Bound *b, Stmt *s)
{
    Assign *list = arena_array(b->p->arena, 3 * s->nassign, sizeof *list);
    int n = 0;

    keep_stmt(b->p, s);
    for (int k = 0; k < s->nassign; k++)
        if (b->of[s->assign[k].out->buf->id] != NULL)
            shadow(b, &s->assign[k], list, &n);
    if (n > 0)
        ir_stmt(b->p, s->bind, s->nbind, list, n);
    for (int k = 0; k < s->nassign; k++) {
        Buf *buf = s->assign[k].out->buf;

        if (--b->left[buf->id] == 0 && b->sum[buf->id] != NULL)
            complete(b, buf);
    }
}

Prog *tune_bound(Arena *arena, Prog *of, Buf ***bound)
{
    Prog *p = is_known(of) ? ir_copy(arena, of) : NULL;
    int nstmt = of->nstmt, n = of->nbuf;
    Bound b = { .p = p, .nbuf = n };
    Stmt **stmt;

    if (p == NULL)
        return NULL;
    b.none = ir_none(p);
    b.of = arena_array(arena, n, sizeof *b.of);
    b.sum = arena_array(arena, n, sizeof *b.sum);
    b.size = arena_array(arena, n, sizeof *b.size);
    b.count = arena_array(arena, n, sizeof *b.count);
    b.left = arena_array(arena, n, sizeof *b.left);
    stmt = p->stmt;
    p->stmt = NULL;
    p->nstmt = p->cap_stmt = 0;
    for (int i = 0; i < nstmt; i++)
        for (int k = 0; k < stmt[i]->nassign; k++)
            prepare(&b, &stmt[i]->assign[k]);
    for (int i = 0; i < nstmt; i++)
        add_shadow(&b, stmt[i]);
    ir_check(p);
    *bound = b.of;
    return p;
}

static void see_call(Expr *e, void *ctx)
{
    *(bool *)ctx = *(bool *)ctx || (e->op >= OP_exp && e->op <= OP_silu && e->op != OP_sqrt);
}

bool tune_calls(const Prog *of)
{
    Prog *p = (Prog *)of; /* a visit changes nothing that can be seen */
    Memo met = { 0 };
    bool calls = false;

    for (int i = 0; i < p->nstmt; i++)
        for (int k = 0; k < p->stmt[i]->nassign; k++)
            ir_visit_assign(p, &p->stmt[i]->assign[k], see_call, &calls, &met);
    return calls;
}
