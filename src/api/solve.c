/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Solves sizes from shapes.  Each bound dimension is an equation, "this expression of sizes is 5".
 * An equation that is linear in its one unknown size gives that size; at the end every equation
 * must hold. */
#include "api/api_int.h"

#include <string.h>

/* a * x + b; x is NULL for a constant. */
typedef struct Line {
    const Size *x;
    int64_t a, b;
} Line;

static bool add(Line p, Line q, int64_t sign, Line *out)
{
    if (p.x != NULL && q.x != NULL && p.x != q.x)
        return false;
    *out = (Line){ .x = p.x != NULL ? p.x : q.x };
    return !int_mul(sign, q.a, &q.a) && !int_mul(sign, q.b, &q.b) && !int_add(p.a, q.a, &out->a) &&
           !int_add(p.b, q.b, &out->b);
}

static bool multiply(Line p, Line q, Line *out)
{
    if (p.x != NULL && q.x != NULL)
        return false;
    if (q.x != NULL)
        return multiply(q, p, out);
    out->x = p.x;
    return !int_mul(p.a, q.b, &out->a) && !int_mul(p.b, q.b, &out->b);
}

/* False for what is not linear in one unknown size. */
static bool line_of(const Solver *s, Expr *e, Line *out)
{
    Line p = { 0 }, q = { 0 };
    int64_t known;

    if (e->op == OP_int)
        return *out = (Line){ .b = e->i }, true;
    if (e->op == OP_size) {
        known = s->env->size[e->size->id];
        *out = known >= 0 ? (Line){ .b = known } : (Line){ .x = e->size, .a = 1 };
        return true;
    }
    if (!line_of(s, e->arg[0], &p) || (e->nargs > 1 && !line_of(s, e->arg[1], &q)))
        return false;
    *out = (Line){ 0 };
    switch (e->op) {
    case OP_neg: return add(q, p, -1, out);
    case OP_add: return add(p, q, 1, out);
    case OP_sub: return add(p, q, -1, out);
    case OP_mul: return multiply(p, q, out);
    case OP_div: return p.x == NULL && q.x == NULL && !int_div(p.b, q.b, &out->b);
    default: return p.x == NULL && q.x == NULL && !int_mod(p.b, q.b, &out->b);
    }
}

/* The number of positions of an axis. */
static bool line_of_axis(const Solver *s, const Axis *a, Line *out)
{
    const Array *start = &s->env->start[a->id];
    Line up = { .b = 1 }, own = { .b = 1 };

    if (a->extent == X_TABLE)
        return *out = (Line){ .b = a->starts[a->n] }, true;
    if (a->extent == X_SEG || a->extent == X_BUILT) {
        if (start->data == NULL || start->n == 0)
            return false;
        return *out = (Line){ .b = ir_array_int(start, start->n - 1) }, true;
    }
    return (a->parent == NULL || line_of_axis(s, a->parent, &up)) &&
           (a->extent == X_ONE || line_of(s, a->size, &own)) && multiply(up, own, out);
}

static bool line_of_fact(const Solver *s, const Fact *f, Line *out)
{
    return f->axis != NULL ? line_of_axis(s, f->axis, out) : line_of(s, f->expr, out);
}

bool solve_eval(const Solver *s, Expr *e, int64_t *out)
{
    Line l;

    if (!line_of(s, e, &l) || l.x != NULL)
        return false;
    *out = l.b;
    return true;
}

void solve_add(Solver *s, Fact fact)
{
    s->fact = arena_grow(s->arena, s->fact, s->n, &s->cap, sizeof fact);
    s->fact[s->n++] = fact;
}

/* Does this fact give a size?  One that cannot be true is left for solve_verify. */
static bool use(Solver *s, const Fact *f)
{
    Text origin = { .arena = s->arena };
    Line l;
    int64_t rest, x, left;

    if (!line_of_fact(s, f, &l) || l.x == NULL || l.a == 0 || int_sub(f->value, l.b, &rest) ||
        int_mod(rest, l.a, &left) || left != 0 || int_div(rest, l.a, &x) || x < 0)
        return false;
    s->env->size[l.x->id] = x;
    text_f(&origin, "from %s", f->what);
    s->origin[l.x->id] = origin.s;
    return true;
}

void solve_sizes(Solver *s)
{
    bool more = true;

    while (more) {
        more = false;
        for (int i = 0; i < s->n; i++)
            more = use(s, &s->fact[i]) || more;
    }
}

/* "; n = 4 from dimension 1 of A": where the sizes in e come from, each once. */
static void put_origins(const Solver *s, Text *text, Expr *e)
{
    Text one = { .arena = s->arena };

    if (e->op == OP_size) {
        text_f(&one, "%s = %lld %s", e->size->name, (long long)s->env->size[e->size->id],
               s->origin[e->size->id]);
        if (strstr(text->s, one.s) == NULL)
            text_f(text, text->n == 0 ? "; %s" : ", %s", one.s);
    }
    for (int i = 0; i < e->nargs; i++)
        put_origins(s, text, e->arg[i]);
}

static _Noreturn void contradict_axis(const Solver *s, const Fact *f, int64_t value)
{
    Text from = { .arena = s->arena };

    text_str(&from, "");
    for (const Axis *a = f->axis; a != NULL && a->extent == X_EXPR; a = a->parent)
        put_origins(s, &from, a->size);
    err_throw(s->arena->err, ST_BIND,
              "%s has %lld elements, but axis %s has %lld positions, so it "
              "needs %lld%s",
              f->what, (long long)f->value + 1, f->axis->name, (long long)value,
              (long long)value + 1, from.s);
}

static _Noreturn void contradict(const Solver *s, const Fact *f, int64_t value)
{
    Text must = { .arena = s->arena }, from = { .arena = s->arena };

    text_str(&from, "");
    put_origins(s, &from, f->expr);
    if (f->expr->op != OP_int) {
        ir_print_expr(&must, s->prog, f->expr);
        text_str(&must, " = ");
    }
    text_f(&must, "%lld", (long long)value);
    err_throw(s->arena->err, ST_BIND, "%s is %lld, but must be %s%s", f->what, (long long)f->value,
              must.s, from.s);
}

static void compare(const Solver *s, const Fact *f, int64_t value)
{
    if (value != f->value && f->axis != NULL)
        contradict_axis(s, f, value);
    if (value != f->value)
        contradict(s, f, value);
}

/* A fact that would tell the size if it had a solution. */
static void explain(const Solver *s, const Size *size)
{
    for (int i = 0; i < s->n; i++) {
        const Fact *f = &s->fact[i];
        Text must = { .arena = s->arena };
        Line l;

        if (!line_of_fact(s, f, &l) || l.x != size || l.a == 0)
            continue;
        if (f->axis != NULL)
            err_throw(s->arena->err, ST_BIND,
                      "%s has %lld elements; it needs one more than axis %s "
                      "has positions",
                      f->what, (long long)f->value + 1, f->axis->name);
        ir_print_expr(&must, s->prog, f->expr);
        err_throw(s->arena->err, ST_BIND, "%s is %lld, but must be %s, and no %s gives that",
                  f->what, (long long)f->value, must.s, size->name);
    }
}

void solve_verify(const Solver *s)
{
    Line l;

    for (int i = 0; i < s->n;
         i++) /* before sizes that are not known: the cause before its effect */
        if (line_of_fact(s, &s->fact[i], &l) && l.x == NULL)
            compare(s, &s->fact[i], l.b);
    for (int i = 0; i < s->prog->nsize; i++)
        if (s->env->size[i] < 0) {
            explain(s, s->prog->size[i]);
            err_throw(s->arena->err, ST_BIND,
                      "the size %s is not known: set it, or bind an array "
                      "whose shape tells it",
                      s->prog->size[i]->name);
        }
    for (int i = 0; i < s->n; i++) /* throws what the lines pass over: overflow, a missing array */
        if (s->fact[i].axis != NULL)
            ir_axis_total(s->prog, s->env, s->fact[i].axis);
        else
            ir_eval_size(s->prog, s->env, s->fact[i].expr);
}
