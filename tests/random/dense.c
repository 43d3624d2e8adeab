/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The dense evaluator: every statement over the full product of all positions of its variables,
 * each tuple tested for belonging together.  Slow and plain, and written without src/interp, so
 * that a mistake has to be made twice to go unseen. */
#include "random/dense.h"

#include <math.h>
#include <string.h>

enum { MOST_STEPS = 200000 }; /* of all loops: a damaged program may ask for any number */

_Noreturn void dense_fail(Dense *d, const char *why)
{
    err_throw(d->err, ST_RUN, "%s: %s", d->label, why);
}

static bool is_int(const Buf *b)
{
    return b->type == T_i32 || b->type == T_i64;
}

static Type acc_type(const Buf *b)
{
    return is_int(b) ? T_i64 : b->type == T_f64 ? T_f64 : T_f32;
}

static Num from_array(const Buf *b, const Array *a, int64_t i)
{
    if (is_int(b))
        return (Num){ .type = T_i64, .i = array_int(a, i) };
    return (Num){ .type = acc_type(b), .d = array_float(a, i) };
}

/* The element of a const buffer, rounded to its type; `rows` values keep the literal. */
static Num from_literal(Dense *d, const Buf *b, int64_t i)
{
    Array one = array_new(d->arena, b->type, 1);

    if (b->rows)
        return (Num){ .type = T_real, .d = b->val[i] };
    array_set(&one, 0, is_int(b) ? b->ival[i] : 0, is_int(b) ? 0 : b->val[i]);
    return from_array(b, &one, 0);
}

static void make_store(Dense *d, const Buf *b)
{
    Store *s = &d->store[b->id];

    s->ready = true;
    s->tuples = space_tuples(&d->space, b);
    s->val = arena_array(d->arena, s->tuples.n + 1, sizeof *s->val);
    s->reached = arena_array(d->arena, s->tuples.n + 1, sizeof *s->reached);
}

static void read_input(Dense *d, const Buf *b)
{
    Store *s = &d->store[b->id];
    const Array *a = &d->env->buf[b->id];

    make_store(d, b);
    if (b->kind != B_CONST && (a->data != NULL || s->tuples.n > 0) &&
        (a->data == NULL || a->n != s->tuples.n || a->type != b->type))
        err_throw(d->err, ST_BIND, "buffer %s: no array, or one of another length or type",
                  b->name);
    for (int64_t i = 0; i < s->tuples.n; i++)
        s->val[i] = b->kind == B_CONST ? from_literal(d, b, i) : from_array(b, a, i);
}

/* What an element holds that no instance reaches. */
static Num untouched(const Buf *b, AssignOp op, bool companion)
{
    Num v = { .type = acc_type(b) };
    bool low = op == A_MAX;

    if (companion)
        v.i = -1;
    else if (b->has_fill)
        v = is_int(b) ? (Num){ .type = T_i64, .i = (int64_t)b->fill }
                      : dense_convert((Num){ .type = T_f64, .d = b->fill }, v.type);
    else if (op == A_MAX || op == A_MIN) {
        v.d = low ? -INFINITY : INFINITY;
        v.i = b->type == T_i32 ? (low ? INT32_MIN : INT32_MAX) : low ? INT64_MIN : INT64_MAX;
    }
    return v;
}

/* After the last writer: unreached elements, range, one rounding of 16-bit types. */
static void finish(Dense *d, const Buf *b, AssignOp op, bool companion)
{
    Store *s = &d->store[b->id];
    Array one = array_new(d->arena, b->type, 1);

    for (int64_t i = 0; i < s->tuples.n; i++) {
        if (!s->reached[i] && b->kind != B_INOUT)
            s->val[i] = untouched(b, op, companion);
        if (b->type == T_i32 && (s->val[i].i < INT32_MIN || s->val[i].i > INT32_MAX))
            dense_fail(d, "does not fit an i32");
        array_set(&one, 0, s->val[i].i, s->val[i].d);
        s->val[i] = from_array(b, &one, 0);
    }
}

static bool wins(AssignOp op, Num new, Num old)
{
    if (new.type == T_i64)
        return op == A_MAX ? new.i > old.i : new.i < old.i;
    if (isnan(old.d))
        return false;
    return isnan(new.d) || (op == A_MAX ? new.d > old.d : new.d < old.d);
}

static Num plus(Dense *d, Num a, Num b)
{
    if (a.type == T_i64 && int_add(a.i, b.i, &a.i))
        dense_fail(d, "integer overflow");
    if (a.type == T_f32)
        a.d = (double)((float)a.d + (float)b.d);
    else if (a.type == T_f64)
        a.d = a.d + b.d;
    return a;
}

static void companions(Dense *d, const Assign *a)
{
    for (int k = 0; k < a->nat; k++) {
        Store *w = &d->store[a->at[k].out->buf->id];
        int64_t at = dense_locate(d, a->at[k].out);

        if (at < 0)
            dense_fail(d, "a write to an entry that is not stored");
        w->val[at] = dense_eval(d, a->at[k].value);
        w->reached[at] = true;
    }
}

static void write_value(Dense *d, const Assign *a)
{
    const Buf *b = a->out->buf;
    Store *s = &d->store[b->id];
    Num v = dense_convert(dense_eval(d, a->value), acc_type(b));
    int64_t at = dense_locate(d, a->out);
    bool empty;

    if (at < 0)
        dense_fail(d, "a write to an entry that is not stored");
    if (a->op == A_SET && s->reached[at])
        dense_fail(d, "= writes an element twice");
    empty = !s->reached[at] && b->kind != B_INOUT;
    s->reached[at] = true;
    if (a->op == A_ADD) {
        s->val[at] = plus(d, empty ? (Num){ .type = v.type } : s->val[at], v);
    } else if (empty || a->op == A_SET || wins(a->op, v, s->val[at])) {
        s->val[at] = v;
        companions(d, a);
    }
}

typedef struct Row { /* an inserted entry: its parent position, then its coordinates */
    int64_t v[IR_MAX_RANK + 1];
} Row;

typedef struct Built {
    Row *row;
    int n, cap;
} Built;

typedef struct Run {
    Dense d;
    Built *built; /* by axis id */
    int64_t steps;
} Run;

static void insert(Run *r, const Assign *a)
{
    Dense *d = &r->d;
    const Axis *x = a->out->axis;
    Built *b = &r->built[x->id];
    Row row = { { 0 } };

    row.v[0] = x->parent == NULL ? 0 : dense_index(d, x->parent, 0, a->out->arg[0]);
    if (row.v[0] < 0)
        dense_fail(d, "an insert under an entry that is not stored");
    for (int k = 0; k < x->ncoord; k++) {
        row.v[k + 1] = dense_eval(d, a->value->op == OP_tuple ? a->value->arg[k] : a->value).i;
        if (row.v[k + 1] < 0 || row.v[k + 1] >= space_size(&d->space, x->coord[k].bound))
            dense_fail(d, "an inserted coordinate outside its bound");
    }
    b->row = arena_grow(d->arena, b->row, b->n, &b->cap, sizeof *b->row);
    b->row[b->n++] = row;
}

static int row_order(const Row *a, const Row *b, int n)
{
    for (int k = 0; k < n; k++)
        if (a->v[k] != b->v[k])
            return a->v[k] < b->v[k] ? -1 : 1;
    return 0;
}

/* Insertion sort that drops what is there already. */
static int sort_unique(Row *row, int n, int width)
{
    int kept = 0;

    for (int i = 0; i < n; i++) {
        Row r = row[i];
        int at = kept;

        while (at > 0 && row_order(&row[at - 1], &r, width) > 0)
            at--;
        if (at > 0 && row_order(&row[at - 1], &r, width) == 0)
            continue;
        memmove(&row[at + 1], &row[at], (size_t)(kept - at) * sizeof *row);
        row[at] = r;
        kept++;
    }
    return kept;
}

static void freeze(Run *r, const Axis *x)
{
    Built *b = &r->built[x->id];
    Env *env = r->d.env;
    Arena *a = r->d.arena;
    int64_t up = x->parent == NULL ? 1 : r->d.space.level[x->parent->id].n;
    int64_t *start;

    b->n = sort_unique(b->row, b->n, x->ncoord + 1);
    env->start[x->id] = array_new(a, T_i64, up + 1);
    start = env->start[x->id].data;
    for (int i = 0; i < b->n; i++)
        start[b->row[i].v[0] + 1]++;
    for (int64_t q = 0; q < up; q++)
        start[q + 1] += start[q];
    for (int k = 0; k < x->ncoord; k++) {
        env->coord[x->id][k] = array_new(a, T_i64, b->n);
        for (int i = 0; i < b->n; i++)
            array_set(&env->coord[x->id][k], i, b->row[i].v[k + 1], 0);
    }
    space_grow(&r->d.space);
}

static void instance(Run *r, const Assign *a)
{
    if (a->guard != NULL && !dense_true(&r->d, a->guard))
        return;
    r->d.stats->instances++;
    if (a->op == A_INSERT)
        insert(r, a);
    else
        write_value(&r->d, a);
}

/* Tries every position of binder b: it counts when it exists, under the position asked for. */
static void domain(Run *r, const Stmt *s, int b, const Assign *a)
{
    const Var *v;
    const Level *level;
    int64_t q = 0;

    if (++r->steps > MOST_STEPS)
        err_throw(r->d.err, ST_LIMIT, "%s runs too long for this", r->d.label);
    if (b == s->nbind) {
        instance(r, a);
        return;
    }
    v = s->bind[b];
    level = &r->d.space.level[v->axis->id];
    if (v->parent != NULL)
        q = dense_index(&r->d, v->axis->parent, 0, v->parent);
    for (int64_t p = 0; p < level->n; p++)
        if (level->exists[p] && level->parent[p] == q) {
            r->d.pos[v->id] = p;
            domain(r, s, b + 1, a);
        }
}

typedef enum When { FIRST, LAST } When;

/* Whether statement n is the first (last) that writes b, as an output or as a companion. */
static bool is_writer(const Prog *p, const Buf *b, int n, When when, AssignOp *op, bool *companion)
{
    int found = -1;

    for (int i = 0; i < p->nstmt; i++)
        for (int k = 0; k < p->stmt[i]->nassign; k++) {
            const Assign *a = &p->stmt[i]->assign[k];
            bool at = false;

            for (int c = 0; c < a->nat; c++)
                at = at || a->at[c].out->buf == b;
            if (!at && (a->op == A_INSERT || a->out->buf != b))
                continue;
            *op = a->op;
            *companion = at;
            if (when == LAST || found < 0)
                found = i;
        }
    return found == n;
}

static bool inserts(const Stmt *s, const Axis *x)
{
    bool does = false;

    for (int k = 0; k < s->nassign; k++)
        does = does || (s->assign[k].op == A_INSERT && s->assign[k].out->axis == x);
    return does;
}

static bool is_filled_after(const Prog *p, const Axis *x, int n)
{
    for (int k = n + 1; k < p->nstmt; k++)
        if (inserts(p->stmt[k], x))
            return true;
    return false;
}

/* Axes that no statement after n fills are complete; so are, at once, those below them. */
static void freeze_after(Run *r, int n)
{
    const Level *level = r->d.space.level;

    for (int i = 0; i < r->d.prog->naxis; i++) {
        const Axis *x = r->d.prog->axis[i];

        if (x->extent == X_BUILT && !level[i].known && !is_filled_after(r->d.prog, x, n) &&
            (x->parent == NULL || level[x->parent->id].known))
            freeze(r, x);
    }
}

static void run_stmt(Run *r, int n)
{
    const Prog *p = r->d.prog;
    AssignOp op;
    bool companion;

    for (int i = 0; i < p->nbuf; i++)
        if (is_writer(p, p->buf[i], n, FIRST, &op, &companion) && p->buf[i]->kind != B_INOUT)
            make_store(&r->d, p->buf[i]);
    for (int k = 0; k < p->stmt[n]->nassign; k++) {
        r->d.label = p->stmt[n]->assign[k].label;
        domain(r, p->stmt[n], 0, &p->stmt[n]->assign[k]);
    }
    for (int i = 0; i < p->nbuf; i++)
        if (is_writer(p, p->buf[i], n, LAST, &op, &companion))
            finish(&r->d, p->buf[i], op, companion);
    freeze_after(r, n);
}

static void give_outputs(Dense *d, Env *out)
{
    const Prog *p = d->prog;

    for (int i = 0; i < p->naxis; i++)
        if (p->axis[i]->extent == X_BUILT) {
            out->start[i] = d->env->start[i];
            out->coord[i] = d->env->coord[i];
        }
    for (int i = 0; i < p->nbuf; i++) {
        const Buf *b = p->buf[i];
        const Store *s = &d->store[i];

        if (!b->written || b->kind == B_TEMP)
            continue;
        out->buf[i] = array_new(d->arena, b->type, s->tuples.n);
        for (int64_t k = 0; k < s->tuples.n; k++)
            array_set(&out->buf[i], k, s->val[k].i, s->val[k].d);
    }
}

void dense_run(Arena *a, const Prog *p, const Env *in, Env *out, DenseStats *stats)
{
    Run r = { .d = { .arena = a, .err = a->err, .prog = p, .label = "bind", .stats = stats } };
    Env env = *in;

    r.d.env = &env;
    env.start = arena_copy(a, in->start, (size_t)p->naxis * sizeof *env.start);
    env.coord = arena_copy(a, in->coord, (size_t)p->naxis * sizeof *env.coord);
    r.d.store = arena_array(a, p->nbuf, sizeof *r.d.store);
    r.d.pos = arena_array(a, p->nvar, sizeof *r.d.pos);
    r.built = arena_array(a, p->naxis, sizeof *r.built);
    for (int i = 0; i < p->naxis; i++)
        if (p->axis[i]->extent == X_BUILT)
            env.coord[i] = arena_array(a, p->axis[i]->ncoord, sizeof *env.coord[i]);
    space_init(&r.d.space, a, p, &env);
    freeze_after(&r, -1);
    for (int i = 0; i < p->nbuf; i++)
        if (p->buf[i]->kind == B_CONST || p->buf[i]->kind == B_INOUT ||
            (p->buf[i]->kind == B_ARG && !p->buf[i]->written))
            read_input(&r.d, p->buf[i]);
    for (int n = 0; n < p->nstmt; n++)
        run_stmt(&r, n);
    give_outputs(&r.d, out);
}
