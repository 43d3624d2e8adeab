/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Runs a program: validate, then statement after statement over its domain.  The statements that
 * write a buffer are its group: before the first it is cleared, after the last it gets its fill and
 * is rounded to its type. */
#include "interp/interp.h"
#include "interp/interp_int.h"
#include "ir/loop.h"

#include <math.h>
#include <string.h>

void interp_allot(Run *x, Array *a, int64_t n, Type type, const char *name, const char *part)
{
    if (a->data == NULL)
        *a = (Array){ arena_array(x->arena, n, ir_type[type].bytes), n, type };
    if (a->n != n || a->type != type)
        err_throw(x->arena->err, ST_BIND,
                  "%s%s is %lld elements of %s, but the given array is %lld of %s", name, part,
                  (long long)n, ir_type[type].name, (long long)a->n, ir_type[a->type].name);
}

static void check_sizes(Run *x)
{
    for (int i = 0; i < x->prog->nsize; i++)
        if (x->env->size[i] < 0)
            err_throw(x->arena->err, ST_BIND, "size %s is %s; set it, or bind an array whose "
                                              "shape contains it",
                      x->prog->size[i]->name, x->env->size[i] == -1 ? "not known" : "negative");
}

static void count_builds(Run *x, const Node *n)
{
    if (n->kind == N_BUILD)
        x->axis[n->axis->id].inserts++;
    for (int i = 0; i < n->nbody; i++)
        count_builds(x, n->body[i]);
}

static void count_writers(Run *x)
{
    if (x->prog->stage != STAGE_COORDINATES) { /* statements are only what it was made from */
        for (int i = 0; i < x->prog->nphase; i++)
            count_builds(x, x->prog->phase[i]);
        return;
    }
    for (int i = 0; i < x->prog->nstmt; i++)
        for (int j = 0; j < x->prog->stmt[i]->nassign; j++) {
            const Assign *a = &x->prog->stmt[i]->assign[j];

            if (a->op == A_INSERT)
                x->axis[a->out->axis->id].inserts++;
            else
                x->buf[a->out->buf->id].writers++;
            for (int k = 0; k < a->nat; k++)
                x->buf[a->at[k].out->buf->id].writers++;
        }
}

static Run *new_run(Arena *arena, const Prog *p, Env *env)
{
    Run *x = arena_alloc(arena, sizeof *x);

    *x = (Run){ .arena = arena, .prog = p, .env = env };
    x->axis = arena_array(arena, p->naxis, sizeof *x->axis);
    x->buf = arena_array(arena, p->nbuf, sizeof *x->buf);
    x->node = arena_array(arena, p->nexpr, sizeof *x->node);
    x->pos = arena_array(arena, p->nvar, sizeof *x->pos);
    x->first = arena_array(arena, p->nvar, sizeof *x->first);
    x->depth_of = arena_array(arena, p->nvar, sizeof *x->depth_of);
    check_sizes(x);
    count_writers(x);
    for (int i = 0; i < p->naxis; i++) {
        const Axis *a = p->axis[i];
        AxisState *s = &x->axis[i];

        s->coord = arena_array(arena, a->ncoord, sizeof *s->coord);
        s->bound = arena_array(arena, a->ncoord, sizeof *s->bound);
        s->rows.w = a->ncoord + 1;
        for (int k = 0; k < a->ncoord; k++)
            if (a->coord[k].bound != NULL)
                s->bound[k] = ir_eval_size(p, env, a->coord[k].bound);
    }
    return x;
}

/* Those of `rows` stay f64. */
Array interp_const(Run *x, const Buf *b)
{
    Array a = { .n = b->n, .type = b->rows ? T_f64 : b->type };

    a.data = arena_array(x->arena, b->n, ir_type[a.type].bytes);
    for (int64_t i = 0; i < b->n; i++)
        interp_put(&a, i,
                   ir_type[a.type].floats ? (Val){ .f = b->val[i] } : (Val){ .i = b->ival[i] });
    return a;
}

/* The fill as a load would read it. */
static Val fill_value(Run *x, const Buf *b)
{
    Array one = { arena_alloc(x->arena, sizeof(double)), 1, b->rows ? T_f64 : b->type };

    interp_put(&one, 0,
               ir_type[b->type].floats ? (Val){ .f = b->fill } : (Val){ .i = (int64_t)b->fill });
    return interp_get(&one, 0);
}

static void ready_buf(Run *x, const Buf *b)
{
    BufState *s = &x->buf[b->id];
    Array *given = &x->env->buf[b->id];

    ir_layout(x->arena, x->prog, x->env, b, &s->layout);
    if (b->kind == B_CONST) {
        s->data = interp_const(x, b);
    } else {
        if (given->data == NULL && !(s->writers > 0 && b->kind != B_INOUT) &&
            (s->layout.n != 0 || given->n != 0))
            err_throw(x->arena->err, ST_BIND, "%s is not given; bind %lld elements of %s", b->name,
                      (long long)s->layout.n, ir_type[b->type].name);
        interp_allot(x, given, s->layout.n, b->type, b->name, "");
        s->data = *given;
    }
    s->fill = fill_value(x, b);
    s->ready = true;
}

/* Called again when a built axis is complete: makes ready what stands on it. */
static void make_ready(Run *x)
{
    interp_ready_axes(x);
    for (int i = 0; i < x->prog->nbuf; i++) {
        const Buf *b = x->prog->buf[i];
        bool can = !x->buf[i].ready && (b->kind != B_TEMP || b->written); /* or nobody uses it */

        for (int k = 0; k < b->nfull; k++)
            can = can && x->axis[b->full[k]->id].ready;
        if (can)
            ready_buf(x, b);
    }
}

static Type sum_type(Type t)
{
    return t == T_f64 ? T_f64 : ir_type[t].floats ? T_f32 : T_i64;
}

/* What an element holds that no instance reached. */
static Val rest_value(const Buf *b, AssignOp op, bool companion)
{
    bool most = op == A_MIN;

    if (companion)
        return (Val){ .i = -1 };
    if (b->has_fill)
        return ir_type[b->type].floats ? (Val){ .f = b->fill } : (Val){ .i = (int64_t)b->fill };
    if (op == A_SET || op == A_ADD)
        return (Val){ 0 };
    if (ir_type[b->type].floats)
        return (Val){ .f = most ? INFINITY : -INFINITY };
    if (b->type == T_i32)
        return (Val){ .i = most ? INT32_MAX : INT32_MIN };
    return (Val){ .i = most ? INT64_MAX : INT64_MIN };
}

static void begin_group(Run *x, const Buf *b, AssignOp op, bool companion)
{
    BufState *s = &x->buf[b->id];
    int64_t n = s->layout.n;

    if (!s->ready)
        interp_fail(x, "%s is not complete here; the last |= of its axes comes later", b->name);
    if (s->reached != NULL)
        return;
    s->reached = arena_array(x->arena, n, 1);
    s->rest = rest_value(b, op, companion);
    s->sum = s->data;
    if (sum_type(b->type) != b->type) {
        s->sum.type = sum_type(b->type);
        s->sum.data = arena_array(x->arena, n, ir_type[s->sum.type].bytes);
    } else if (b->kind != B_INOUT && n > 0) {
        memset(s->sum.data, 0, (size_t)n * ir_type[b->type].bytes);
    }
    for (int64_t i = 0; b->kind == B_INOUT && i < n; i++)
        interp_put(&s->sum, i, interp_get(&s->data, i));
}

static void end_group(Run *x, const Buf *b)
{
    BufState *s = &x->buf[b->id];

    if (--s->writers > 0)
        return;
    for (int64_t i = 0; i < s->layout.n; i++) {
        Val v = s->reached[i] || b->kind == B_INOUT ? interp_get(&s->sum, i) : s->rest;

        if (!interp_put(&s->data, i, v))
            interp_fail(x, "element %lld of %s is %lld, which does not fit an i32", (long long)i,
                        b->name, (long long)v.i);
    }
}

/* Strictly better wins, so that the first of a tie stays; then so does the first NaN. */
bool interp_beats(AssignOp op, Type t, Val v, Val old)
{
    if (!ir_type[t].floats)
        return op == A_MAX ? v.i > old.i : v.i < old.i;
    if (v.f != v.f)
        return old.f == old.f;
    return op == A_MAX ? v.f > old.f : v.f < old.f;
}

/* Reduces v into element `at`; true when v is there now. */
static bool reduce(Run *x, const Assign *a, int64_t at, Val v)
{
    const Buf *b = a->out->buf;
    BufState *s = &x->buf[b->id];
    bool first = !s->reached[at];
    Val old = interp_get(&s->sum, at);

    if (a->op == A_SET && !first)
        interp_fail(x, "element %lld of %s is written twice; = writes each at most once, += sums",
                    (long long)at, b->name);
    s->reached[at] = 1;
    if (a->op == A_ADD)
        v = interp_op(x, OP_add, s->sum.type, old, v);
    else if (a->op != A_SET && !(first && b->kind != B_INOUT) &&
             !interp_beats(a->op, s->sum.type, v, old))
        return false;
    interp_put(&s->sum, at, v);
    return true;
}

static int64_t written_place(Run *x, Expr *out)
{
    int64_t at = interp_place(x, out);

    if (at < 0)
        interp_fail(x, "%s has no entry there to write; guard the statement with `if stored(...)`",
                    out->buf->name);
    return at;
}

static void do_assign(Run *x)
{
    const Assign *a = x->job;
    Val v;

    if (a->guard != NULL && !interp_eval(x, a->guard).i)
        return;
    v = interp_convert(interp_eval(x, a->value), (Type)a->value->type,
                       x->buf[a->out->buf->id].sum.type);
    if (!reduce(x, a, written_place(x, a->out), v))
        return;
    for (int k = 0; k < a->nat; k++) {
        BufState *s = &x->buf[a->at[k].out->buf->id];
        int64_t at = written_place(x, a->at[k].out);

        s->reached[at] = 1;
        interp_put(&s->sum, at, interp_eval(x, a->at[k].value));
    }
}

/* One assign over the whole domain: the assigns of a group do not read each other's outputs. */
static void run_assign(Run *x, const Stmt *stmt, Assign *a)
{
    interp_open(x, a->label, ST_RUN, stmt->bind, stmt->nbind);
    if (a->op != A_INSERT)
        begin_group(x, a->out->buf, a->op, false);
    for (int k = 0; k < a->nat; k++) {
        begin_group(x, a->at[k].out->buf, A_SET, true);
        interp_use(x, a->at[k].out);
        interp_use(x, a->at[k].value);
    }
    interp_use(x, a->out);
    interp_use(x, a->value);
    if (a->guard != NULL)
        interp_use(x, a->guard);
    interp_nest(x, a->op == A_INSERT ? interp_insert : do_assign, a);
    x->nbound = 0;
    for (int k = 0; k < a->nat; k++)
        end_group(x, a->at[k].out->buf);
    if (a->op != A_INSERT)
        end_group(x, a->out->buf);
    else if (--x->axis[a->out->axis->id].inserts == 0)
        make_ready(x);
}

void interp_check(Arena *arena, const Prog *p, Env *env)
{
    interp_ready_axes(new_run(arena, p, env));
}

static void run_stmts(Arena *arena, const Prog *p, Env *env)
{
    Run *x = new_run(arena, p, env);

    make_ready(x);
    for (int i = 0; i < p->nstmt; i++)
        for (int j = 0; j < p->stmt[i]->nassign; j++)
            run_assign(x, p->stmt[i], &p->stmt[i]->assign[j]);
}

void interp_run(Arena *arena, const Prog *p, Env *env)
{
    if (p->stage == STAGE_COORDINATES)
        run_stmts(arena, p, env);
    else
        interp_loops(arena, p, env, NULL, NULL);
}
