/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Trees of loops, run as they stand: values of expressions, and elements.  Every element is
 * looked up inside the bounds of its array, and within a phase each belongs to the iteration
 * that writes it. */
#include "interp/loops_int.h"

#include <math.h>

/* Its elements are those of a buffer. */
static bool is_laid_out(const Buf *b)
{
    return b->id < LOOP_OWN || loop_is_own(b);
}

static Array array_of(Loops *r, const Buf *b, const Store *s)
{
    Array *given;
    Layout l;

    if (b->kind == B_CONST)
        return interp_const(r->x, b);
    if (b->of != NULL && b->nfull > 0) {
        ir_layout(r->x->arena, r->prog, r->env, b, &l);
        return (Array){ l.slot[b->of_k].before, l.slot[b->of_k].span.total + 1, T_i64 };
    }
    if (b->of != NULL)
        return b->of_k < 0 ? r->env->start[b->of->id] : r->env->coord[b->of->id][b->of_k];
    if (b->id >= LOOP_OWN)
        return (Array){ arena_array(r->x->arena, s->layout.n, ir_type[b->type].bytes), s->layout.n,
                        b->type };
    given = &r->env->buf[b->id];
    if (given->data == NULL && (!b->written || b->kind == B_INOUT) &&
        (s->layout.n != 0 || given->n != 0))
        err_throw(r->x->arena->err, ST_BIND, "%s is not given; bind %lld elements of %s", b->name,
                  (long long)s->layout.n, ir_type[b->type].name);
    interp_allot(r->x, given, s->layout.n, b->type, b->name, "");
    return *given;
}

/* Gives all elements of an array their initial value. */
static void init_elements(Loops *r, const Buf *b, Store *s)
{
    int64_t at = 0;

    for (; at < s->data.n; at++) {
        int64_t rest = at;

        for (int d = s->layout.ndim - 1; d >= 0 && b->init_at != NULL; d--) {
            r->local[b->init_at[d]->id].i = rest % s->layout.extent[d];
            rest /= s->layout.extent[d];
        }
        r->tick++;
        interp_put(&s->data, at, interp_convert(loops_eval(r, b->init), (Type)b->init->type,
                                                ir_type[b->type].value));
    }
}

Store *loops_store(Loops *r, const Buf *b)
{
    Store *s = b->id < LOOP_OWN ? &r->buf[b->id] : &r->aux[b->id - LOOP_OWN];

    if (!s->ready) {
        if (is_laid_out(b))
            ir_layout(r->x->arena, r->prog, r->env, b, &s->layout);
        s->data = array_of(r, b, s);
        s->ready = true;
        if (b->init != NULL)
            init_elements(r, b, s);
    }
    return s;
}

/* Which element of its array a cell is. */
int64_t loops_element(Loops *r, Expr *cell)
{
    const Store *s = loops_store(r, cell->buf);
    bool dims = r->prog->stage == STAGE_POSITIONS && is_laid_out(cell->buf);
    int64_t at = 0;

    for (int d = 0; d < cell->nargs; d++) {
        int64_t n = dims ? s->layout.extent[d] : s->data.n, i = loops_eval(r, cell->arg[d]).i;

        if (i < 0 || i >= n)
            interp_fail(r->x, "index %lld of %s is outside 0..%lld", (long long)i, cell->buf->name,
                        (long long)n);
        at = at * n + i;
    }
    return at;
}

static bool is_of_now(const Loops *r, const int64_t *by, int64_t at)
{
    return by != NULL && by[at] >= r->before && by[at] != r->now;
}

/* The marks of an element that threads may store to; NULL: nobody has to meet there. */
static Marks *marks_of(Loops *r, const Buf *b, Store *s, int64_t at)
{
    if (!r->threads.on || (!b->written && b->kind != B_TEMP && !loop_is_work(b)))
        return NULL;
    if (s->marks == NULL)
        s->marks = arena_array(r->x->arena, s->data.n, sizeof *s->marks);
    return &s->marks[at];
}

static void note_added(Loops *r, const Buf *b, const Store *s, int64_t at)
{
    if (s->added != NULL && r->now != 0 && s->added[at] == r->before)
        interp_fail(r->x, "element %lld of %s is added to atomically in a phase that also reads or "
                    "stores to it otherwise", (long long)at, b->name);
}

static void note_read(Loops *r, const Buf *b, Store *s, int64_t at)
{
    Marks *marks = marks_of(r, b, s, at);

    if (marks != NULL)
        threads_read(&r->threads, r->x, marks, &(PlaceOf){ b->name, at });
    note_added(r, b, s, at);
    if (loop_is_work(b) && (s->owner == NULL || s->owner[at] != r->turn))
        interp_fail(r->x, "element %lld of %s is read before this iteration has stored to it",
                    (long long)at, b->name);
    if (r->now == 0 || loop_is_work(b) || (!b->written && b->kind != B_TEMP))
        return;
    if (is_of_now(r, s->owner, at))
        interp_fail(r->x,
                    "element %lld of %s is written by one iteration of a phase and read by "
                    "another",
                    (long long)at, b->name);
    if (s->reader == NULL)
        s->reader = arena_array(r->x->arena, s->data.n, sizeof *s->reader);
    s->reader[at] = is_of_now(r, s->reader, at) ? r->several : r->now;
}

/* Iterations that all add to an element atomically may meet there. */
static bool may_add(Loops *r, const Buf *b, Store *s, int64_t at)
{
    if (r->now == 0 || loop_is_work(b))
        return true;
    if (is_of_now(r, s->owner, at) || is_of_now(r, s->reader, at))
        interp_fail(r->x, "element %lld of %s is added to atomically in a phase that also reads or "
                    "stores to it otherwise", (long long)at, b->name);
    if (s->added == NULL)
        s->added = arena_array(r->x->arena, s->data.n, sizeof *s->added);
    s->added[at] = r->before;
    return true;
}

void loops_note_write(Loops *r, const Buf *b, Store *s, int64_t at, bool atomic)
{
    Marks *marks = marks_of(r, b, s, at);

    if (marks != NULL)
        threads_store(&r->threads, r->x, marks, atomic, &(PlaceOf){ b->name, at });
    if (atomic && may_add(r, b, s, at) && !loop_is_work(b))
        return;
    note_added(r, b, s, at);
    if (s->owner == NULL && (r->now != 0 || loop_is_work(b)))
        s->owner = arena_array(r->x->arena, s->data.n, sizeof *s->owner);
    if (loop_is_work(b))
        s->owner[at] = r->turn;
    if (r->now == 0 || loop_is_work(b))
        return;
    if (is_of_now(r, s->owner, at))
        interp_fail(r->x, "element %lld of %s is written by iterations %lld and %lld of one phase",
                    (long long)at, b->name, (long long)(s->owner[at] - r->before),
                    (long long)(r->now - r->before));
    if (is_of_now(r, s->reader, at))
        interp_fail(r->x,
                    "element %lld of %s is read by one iteration of a phase and written by "
                    "another",
                    (long long)at, b->name);
    s->owner[at] = r->now;
}

Val loops_load(Loops *r, Expr *cell)
{
    Store *s = loops_store(r, cell->buf);
    int64_t at = loops_element(r, cell);

    note_read(r, cell->buf, s, at);
    return interp_get(&s->data, at);
}

typedef struct Search { /* of an axis, at one position */
    Loops *r;
    const Axis *axis;
    int64_t lo, p;
    Expr *leaf[IR_MAX_RANK]; /* the context's, and */
    Expr *const *value;      /* what stands for each */
} Search;

static int64_t coordinate(Search *f, int k);

/* A computed coordinate: of own ones, and of ancestors' that the context tells. */
static int64_t computed(Search *f, Expr *e)
{
    int64_t v[2] = { 0, 0 };
    int i = 0;

    if (e->op == OP_int)
        return e->i;
    if (e->op == OP_size)
        return f->r->env->size[e->size->id];
    if (e->op == OP_coord || e->op == OP_loc || e->op == OP_pos) {
        if (e->var->axis == f->axis)
            return e->op == OP_coord ? coordinate(f, e->k) : f->p - f->lo;
        while (f->leaf[i] != e)
            i++;
        return loops_eval(f->r, f->value[i]).i;
    }
    for (; i < e->nargs; i++)
        v[i] = computed(f, e->arg[i]);
    return interp_op(f->r->x, (Op)e->op, T_i64, (Val){ .i = v[0] }, (Val){ .i = v[1] }).i;
}

static int64_t coordinate(Search *f, int k)
{
    const Coord *c = &f->axis->coord[k];
    Array load = f->r->env->coord[f->axis->id][k];
    int64_t n = c->kind == C_LOAD ? load.n : c->n;

    if (c->kind == C_IDENT)
        return f->p - f->lo;
    if (c->kind == C_EXPR)
        return computed(f, c->expr);
    if (f->p < 0 || f->p >= n)
        interp_fail(f->r->x, "position %lld of axis %s is outside 0..%lld", (long long)f->p,
                    f->axis->name, (long long)n);
    return c->kind == C_LOAD ? ir_array_int(&load, f->p) : c->table[f->p];
}

/* Whether the position has the coordinates, and is not padding. */
static bool is_found(Search *f, Expr *const *want)
{
    const Axis *a = f->axis;

    for (int k = 0; k < a->ncoord; k++) {
        int64_t v = coordinate(f, k);

        if (v != loops_eval(f->r, want[k]).i)
            return false;
        if ((a->flags & AX_PADDED) && a->coord[k].bound != NULL &&
            (v < 0 || v >= ir_eval_size(f->r->prog, f->r->env, a->coord[k].bound)))
            return false;
    }
    return true;
}

/* Whether the position's coordinates come before these. */
static bool is_before(Search *f, Expr *const *want)
{
    for (int k = 0; k < f->axis->ncoord; k++) {
        int64_t v = coordinate(f, k), w = loops_eval(f->r, want[k]).i;

        if (v != w)
            return v < w;
    }
    return false;
}

/* That a range is all of the positions under one parent. */
static void check_whole(Loops *r, const Axis *a, int64_t lo, int64_t hi)
{
    Span s = ir_axis_span(r->prog, r->env, a);
    int64_t q = 0;

    while (q < s.parents && (ir_span_first(&s, q) != lo || ir_span_first(&s, q + 1) != hi))
        q++;
    if (q == s.parents)
        interp_fail(r->x, "%lld..%lld are not the positions of axis %s under one parent",
                    (long long)lo, (long long)hi, a->name);
}

/* However it is done. */
static Val find(Loops *r, Expr *e)
{
    int64_t hi = loops_eval(r, e->arg[1]).i;
    Search f = { .r = r,
                 .axis = e->axis,
                 .lo = loops_eval(r, e->arg[0]).i,
                 .value = e->arg + 2 + e->axis->ncoord };

    loop_context(e->axis, f.leaf, IR_MAX_RANK);
    if (e->k == FIND_LOOKUP)
        check_whole(r, e->axis, f.lo, hi);
    for (f.p = f.lo; f.p < hi; f.p++)
        if (e->k == FIND_FIRST ? !is_before(&f, e->arg + 2) : is_found(&f, e->arg + 2))
            return (Val){ .i = f.p };
    return (Val){ .i = e->k == FIND_FIRST ? hi : -1 };
}

/* The last parent whose entries begin at p or before it. */
static Val above(Loops *r, Expr *e)
{
    Span s = ir_axis_span(r->prog, r->env, e->axis);
    int64_t p = loops_eval(r, e->arg[0]).i, q = s.parents - 1;

    if (p < 0 || p >= s.total)
        interp_fail(r->x, "position %lld of axis %s is outside 0..%lld", (long long)p,
                    e->axis->name, (long long)s.total);
    while (ir_span_first(&s, q) > p)
        q--;
    return (Val){ .i = q };
}

static bool fits(Loops *r, Expr *e);

/* Whether the arguments that e would look at can be computed. */
static bool args_fit(Loops *r, Expr *e)
{
    for (int i = 0; i < e->nargs; i++) {
        bool first = i > 0 && loops_eval(r, e->arg[0]).i;

        if ((e->op == OP_select && i > 0 && first != (i == 1)) ||
            (e->op == OP_and && i > 0 && !first) || (e->op == OP_or && first))
            continue;
        if (!fits(r, e->arg[i]))
            return false;
    }
    return true;
}

static bool result_fits(Loops *r, Expr *e)
{
    bool may_not = (e->op >= OP_neg && e->op <= OP_mod) || e->op == OP_abs;
    int64_t a, b, out;

    if (e->type != T_i64 || !may_not)
        return true;
    a = loops_eval(r, e->arg[0]).i;
    b = e->nargs > 1 ? loops_eval(r, e->arg[1]).i : 0;
    switch (e->op) {
    case OP_add: return !int_add(a, b, &out);
    case OP_sub: return !int_sub(a, b, &out);
    case OP_mul: return !int_mul(a, b, &out);
    case OP_div: return !int_div(a, b, &out);
    case OP_mod: return !int_mod(a, b, &out);
    default: return a != INT64_MIN; /* neg, abs */
    }
}

/* Whether e can be computed: no integer in it leaves 64 bits or is divided by zero. */
static bool fits(Loops *r, Expr *e)
{
    if (r->fitting[e->id] == r->tick)
        return true;
    if (!args_fit(r, e) || !result_fits(r, e))
        return false;
    r->fitting[e->id] = r->tick;
    return true;
}

static Val fused(Loops *r, Expr *e)
{
    double v[3];

    for (int i = 0; i < 3; i++)
        v[i] = interp_convert(loops_eval(r, e->arg[i]), (Type)e->arg[i]->type, (Type)e->type).f;
    if (e->type == T_f32) /* a sum of doubles would be rounded twice */
        return (Val){ .f = (double)fmaf((float)v[0], (float)v[1], (float)v[2]) };
    return (Val){ .f = fma(v[0], v[1], v[2]) };
}

static Val compute(Loops *r, Expr *e)
{
    Expr *side;

    switch (e->op) {
    case OP_int: return (Val){ .i = e->i };
    case OP_real: return (Val){ .f = e->f };
    case OP_size: return (Val){ .i = r->env->size[e->size->id] };
    case OP_count: return (Val){ .i = ir_axis_total(r->prog, r->env, e->axis) };
    case OP_local: return r->local[e->local->id];
    case OP_cell: return loops_load(r, e);
    case OP_find: return find(r, e);
    case OP_above: return above(r, e);
    case OP_fits: return (Val){ .i = fits(r, e->arg[0]) };
    case OP_fma: return fused(r, e);
    case OP_and: return (Val){ .i = loops_eval(r, e->arg[0]).i && loops_eval(r, e->arg[1]).i };
    case OP_or: return (Val){ .i = loops_eval(r, e->arg[0]).i || loops_eval(r, e->arg[1]).i };
    case OP_not: return (Val){ .i = !loops_eval(r, e->arg[0]).i };
    case OP_select:
        side = e->arg[loops_eval(r, e->arg[0]).i ? 1 : 2];
        return interp_convert(loops_eval(r, side), (Type)side->type, (Type)e->type);
    default:
        return interp_apply(r->x, e, loops_eval(r, e->arg[0]),
                            e->nargs > 1 ? loops_eval(r, e->arg[1]) : (Val){ 0 });
    }
}

/* Each shared part once a line. */
Val loops_eval(Loops *r, Expr *e)
{
    if (r->valued[e->id] != r->tick) {
        r->val[e->id] = compute(r, e);
        r->valued[e->id] = r->tick;
    }
    return r->val[e->id];
}
