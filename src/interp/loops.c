/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Trees of loops, run as they stand: every element is looked up inside the bounds of its array, and
 * within a phase each belongs to the iteration that writes it. */
#include "interp/interp_int.h"
#include "ir/loop.h"

#include <math.h>

typedef struct Store { /* an array of the tree */
    bool ready;
    Layout layout; /* of a buffer, or of what is laid out like one */
    Array data;
    int64_t *owner;  /* by element: the iteration, over all phases, that wrote it */
    int64_t *reader; /* and the one that read it */
} Store;

typedef struct Build { /* of a built axis */
    Rows rows;         /* what has been inserted: position of the parent, coordinates */
    bool open;         /* its phase has not ended yet, so that nothing may use it */
    uint8_t *done;     /* by position of the parent: built already */
    int64_t parents;
    int64_t row; /* being built; -1: all are, and the key tells */
} Build;

typedef struct Loops {
    Run *x; /* for arithmetic and messages */
    const Prog *prog;
    Env *env;
    Store *buf, *aux; /* by id */
    Build *build;     /* by Axis.id */
    Val *local;       /* by Local.id */
    uint64_t tick;    /* goes on when a value may have changed */
    uint64_t *valued; /* by Expr.id: the tick that val is of */
    Val *val;
    uint64_t *fitting; /* by Expr.id: the tick at which it could be computed */
    int64_t before;    /* iterations of all earlier phases, plus 1 for each */
    int64_t several;   /* stands for more than one iteration of this phase */
    int64_t now;       /* the iteration that runs, counted with those; 0 when the phase has none */
    int64_t turn;      /* counts iterations of phases, and phases that are none */
    const Node *phase;
    Val first; /* where its loop begins */
} Loops;

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

static Val eval(Loops *r, Expr *e);

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
        interp_put(&s->data, at, interp_convert(eval(r, b->init), (Type)b->init->type,
                                                ir_type[b->type].value));
    }
}

static Store *store_of(Loops *r, const Buf *b)
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
static int64_t element(Loops *r, Expr *cell)
{
    const Store *s = store_of(r, cell->buf);
    bool dims = r->prog->stage == STAGE_POSITIONS && is_laid_out(cell->buf);
    int64_t at = 0;

    for (int d = 0; d < cell->nargs; d++) {
        int64_t n = dims ? s->layout.extent[d] : s->data.n, i = eval(r, cell->arg[d]).i;

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

static void note_read(Loops *r, const Buf *b, Store *s, int64_t at)
{
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

static void note_write(Loops *r, const Buf *b, Store *s, int64_t at)
{
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

static Val load(Loops *r, Expr *cell)
{
    Store *s = store_of(r, cell->buf);
    int64_t at = element(r, cell);

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
        return eval(f->r, f->value[i]).i;
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

        if (v != eval(f->r, want[k]).i)
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
        int64_t v = coordinate(f, k), w = eval(f->r, want[k]).i;

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
    int64_t hi = eval(r, e->arg[1]).i;
    Search f = {
        .r = r, .axis = e->axis, .lo = eval(r, e->arg[0]).i, .value = e->arg + 2 + e->axis->ncoord
    };

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
    int64_t p = eval(r, e->arg[0]).i, q = s.parents - 1;

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
        bool first = i > 0 && eval(r, e->arg[0]).i;

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
    a = eval(r, e->arg[0]).i;
    b = e->nargs > 1 ? eval(r, e->arg[1]).i : 0;
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
        v[i] = interp_convert(eval(r, e->arg[i]), (Type)e->arg[i]->type, (Type)e->type).f;
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
    case OP_cell: return load(r, e);
    case OP_find: return find(r, e);
    case OP_above: return above(r, e);
    case OP_fits: return (Val){ .i = fits(r, e->arg[0]) };
    case OP_fma: return fused(r, e);
    case OP_and: return (Val){ .i = eval(r, e->arg[0]).i && eval(r, e->arg[1]).i };
    case OP_or: return (Val){ .i = eval(r, e->arg[0]).i || eval(r, e->arg[1]).i };
    case OP_not: return (Val){ .i = !eval(r, e->arg[0]).i };
    case OP_select:
        side = e->arg[eval(r, e->arg[0]).i ? 1 : 2];
        return interp_convert(eval(r, side), (Type)side->type, (Type)e->type);
    default:
        return interp_apply(r->x, e, eval(r, e->arg[0]),
                            e->nargs > 1 ? eval(r, e->arg[1]) : (Val){ 0 });
    }
}

/* Each shared part once a line. */
static Val eval(Loops *r, Expr *e)
{
    if (r->valued[e->id] != r->tick) {
        r->val[e->id] = compute(r, e);
        r->valued[e->id] = r->tick;
    }
    return r->val[e->id];
}

static void put(Loops *r, Expr *cell, int64_t at, Val v)
{
    Store *s = store_of(r, cell->buf);

    note_write(r, cell->buf, s, at);
    if (!interp_put(&s->data, at, v))
        interp_fail(r->x, "element %lld of %s is %lld, which does not fit an i32", (long long)at,
                    cell->buf->name, (long long)v.i);
}

/* What v makes of old; false when old stays.  `reached`: old is not only where max= begins. */
static bool combine(Loops *r, AssignOp op, Type t, bool reached, Val old, Val *v)
{
    int64_t sum;

    if (op == A_ADD && t == T_i64 && int_add(old.i, v->i, &sum))
        interp_fail(r->x, "the sum of an element overflows: %lld + %lld", (long long)old.i,
                    (long long)v->i);
    if (op == A_ADD)
        *v = interp_op(r->x, OP_add, t, old, *v);
    return op <= A_ADD || !reached || interp_beats(op, t, *v, old);
}

/* A companion's element, which has the number of the element that it accompanies. */
static int64_t beside(Loops *r, Expr *cell, int64_t at)
{
    if (element(r, cell) != at)
        interp_fail(r->x, "%s is stored to at element %lld, beside element %lld", cell->buf->name,
                    (long long)element(r, cell), (long long)at);
    return at;
}

static void store(Loops *r, const Node *n)
{
    Type t = (Type)n->out->type;
    Val v = interp_convert(eval(r, n->value), (Type)n->value->type, t), old = { 0 };
    const At *mark = loop_mark(n);
    int64_t at;

    if (n->out->op == OP_local) {
        if (combine(r, n->op, t, true, r->local[n->out->local->id], &v))
            r->local[n->out->local->id] = v;
        return;
    }
    at = element(r, n->out);
    if (n->op != A_SET)
        old = load(r, n->out);
    if (!combine(r, n->op, t, mark == NULL || eval(r, mark->out).i != 0, old, &v))
        return;
    put(r, n->out, at, v);
    for (int k = 0; k < n->nat; k++)
        put(r, n->at[k].out, beside(r, n->at[k].out, at), eval(r, n->at[k].value));
}

/* The digits of a key, the last first. */
static void insert(Loops *r, const Node *n)
{
    Build *b = &r->build[n->axis->id];
    int64_t key = eval(r, n->value).i, *row = interp_row(r->x->arena, &b->rows);

    for (int k = n->axis->ncoord - 1; k >= 0; k--) {
        int64_t bound = ir_eval_size(r->prog, r->env, n->axis->coord[k].bound);
        bool leads = k == 0 && b->row >= 0;

        if (key < 0 || bound <= 0 || (leads && key >= bound))
            interp_fail(r->x, "a key that is inserted into %s is outside its coordinates",
                        n->axis->name);
        row[k + 1] = leads ? key : key % bound;
        key = leads ? 0 : key / bound;
    }
    row[0] = b->row >= 0 ? b->row : key;
    if (row[0] >= b->parents)
        interp_fail(r->x, "a key that is inserted into %s is outside its coordinates",
                    n->axis->name);
}

static void run_nodes(Loops *r, Node *const *node, int n);

static void run_build(Loops *r, const Node *n)
{
    Build *b = &r->build[n->axis->id];
    int64_t first = 0, last = b->parents - 1;

    b->row = -1;
    if (n->lo != NULL)
        first = last = b->row = eval(r, n->lo).i;
    if (first < 0 || last >= b->parents)
        interp_fail(r->x, "row %lld of %s is outside 0..%lld", (long long)first, n->axis->name,
                    (long long)b->parents);
    for (int64_t q = first; q <= last; q++)
        if (b->done[q]++ != 0)
            interp_fail(r->x, "row %lld of %s is built twice", (long long)q, n->axis->name);
    run_nodes(r, n->body, n->nbody);
}

/* That a loop runs over what it says: the checker has proven it, but for the row to be there. */
static void check_over(Loops *r, const Node *n, int64_t lo, int64_t hi)
{
    const Over *o = n->over;
    Span s = ir_axis_span(r->prog, r->env, o->axis);
    int64_t row = o->row != NULL ? eval(r, o->row).i : 0, first = 0, end = s.total;
    bool good = 0 <= row && (o->row == NULL || row < s.parents);

    if (good && o->row != NULL) {
        first = ir_span_first(&s, row);
        end = ir_span_first(&s, row + 1);
    }
    if (o->fixed)
        end = s.width;
    if (o->axis->extent == X_TABLE) {
        end -= first;
        first = 0;
    }
    if (o->tile != NULL && o->kind == OVER_POSITIONS) {
        first += eval(r, o->tile).i * o->size;
        end = first + o->size < end ? first + o->size : end;
    } else if (o->size > 0) {
        end = o->kind == OVER_TILES ? (end - first + o->size - 1) / o->size : o->size;
        first = 0;
    }
    if (o->kind == OVER_ROUNDS)
        good = good && lo == 0 && end > 0 && hi % end == 0;
    else
        good = good && first <= lo && hi <= end;
    if (!good)
        interp_fail(r->x, "%lld..%lld is not what the loop runs over in %s", (long long)lo,
                    (long long)hi, o->axis->name);
}

static void run_for(Loops *r, const Node *n)
{
    int64_t lo = eval(r, n->lo).i, hi = eval(r, n->hi).i;

    if (n->over != NULL && lo < hi)
        check_over(r, n, lo, hi);
    for (int64_t i = lo; i < hi; i++) {
        r->local[n->local->id].i = i;
        run_nodes(r, n->body, n->nbody);
    }
}

static void run_node(Loops *r, const Node *n)
{
    r->x->what = n->label != NULL ? n->label : r->phase->label;
    r->tick++;
    switch (n->kind) {
    case N_FOR: run_for(r, n); break;
    case N_IF:
        if (eval(r, n->cond).i)
            run_nodes(r, n->body, n->nbody);
        break;
    case N_LET:
        r->local[n->local->id] =
            interp_convert(eval(r, n->value), (Type)n->value->type, n->local->type);
        break;
    case N_STORE: store(r, n); break;
    case N_CHECK:
        if (!eval(r, n->cond).i)
            interp_fail(r->x, "%s", loop_fault(n->fault));
        break;
    case N_BUILD: run_build(r, n); break;
    case N_INSERT: insert(r, n); break;
    case N_AHEAD:
        for (int i = 0; i < n->out->nargs; i++)
            eval(r, n->out->arg[i]);
        break;
    case N_BARRIER: break; /* it runs lanes one after the other */
    }
}

static void run_nodes(Loops *r, Node *const *node, int n)
{
    for (int i = 0; i < n; i++)
        run_node(r, node[i]);
}

/* What may not meet another in an element: an iteration, or all those of a part. */
static int64_t part_of(Loops *r, int64_t i)
{
    const Store *s = r->phase->parts == NULL ? NULL : store_of(r, r->phase->parts);
    int64_t part = s == NULL ? i : i < s->data.n ? interp_get(&s->data, i).i : -1;

    if (part < 0 || part > i)
        interp_fail(r->x, "iteration %lld has no part in %s", (long long)i, r->phase->parts->name);
    return part;
}

static void run_range(void *job, int64_t begin, int64_t end)
{
    Loops *r = job;

    for (int64_t i = begin; i < end; i++) {
        r->now = r->before + part_of(r, i);
        r->turn++;
        r->local[r->phase->local->id].i = r->first.i + i;
        run_nodes(r, r->phase->body, r->phase->nbody);
    }
    r->now = 0;
}

static bool is_open(const Loops *r, const Axis *a)
{
    return a != NULL && (r->build[a->id].open || is_open(r, a->parent));
}

static bool has_open(const Loops *r, const Buf *b)
{
    bool open = false;

    for (int k = 0; k < b->nfull; k++)
        open = open || is_open(r, b->full[k]);
    return open;
}

/* Arrays of the caller, as far as their sizes are known. */
static void place_buffers(Loops *r)
{
    for (int i = 0; i < r->prog->nbuf; i++) {
        const Buf *b = r->prog->buf[i];

        if ((b->kind != B_TEMP || b->written) && !has_open(r, b))
            store_of(r, b);
    }
}

static void begin_build(Loops *r, const Axis *a)
{
    Build *b = &r->build[a->id];

    b->rows.w = a->ncoord + 1;
    b->parents = a->parent == NULL ? 1 : ir_axis_total(r->prog, r->env, a->parent);
    b->done = arena_array(r->x->arena, b->parents, 1);
}

/* Below the axis there may be others that no phase builds: they have no entries. */
static void end_build(Loops *r, const Axis *a)
{
    Build *b = &r->build[a->id];

    interp_freeze(r->x, a, &b->rows, b->parents);
    b->open = false;
    for (int i = 0; i < r->prog->naxis; i++) {
        const Axis *u = r->prog->axis[i];

        if (u->extent != X_BUILT || !ir_is_ancestor(a, u) || is_open(r, u))
            continue;
        begin_build(r, u);
        interp_freeze(r->x, u, &r->build[i].rows, r->build[i].parents);
    }
    place_buffers(r);
}

static void run_phase(Loops *r, const Node *n, InterpCut *cut, void *with)
{
    int64_t trips;

    r->phase = n;
    r->turn++;
    r->x->what = n->label;
    r->tick++;
    if (n->kind != N_FOR || n->how != FOR_PARALLEL) {
        run_node(r, n);
        return;
    }
    r->first = eval(r, n->lo);
    if (int_sub(eval(r, n->hi).i, r->first.i, &trips))
        interp_fail(r->x, "a range of 2^63 iterations or more");
    if (trips <= 0)
        return;
    r->several = r->before + trips;
    if (cut != NULL)
        cut(with, trips, run_range, r);
    else
        run_range(r, 0, trips);
    r->before = r->several + 1;
}

void interp_loops(Arena *arena, const Prog *p, Env *env, InterpCut *cut, void *with)
{
    Run *x = arena_alloc(arena, sizeof *x);
    Loops r = { .x = x, .prog = p, .env = env, .before = 1 };

    *x = (Run){ .arena = arena, .prog = p, .env = env, .fault = ST_RUN };
    interp_check(arena, p, env);
    r.buf = arena_array(arena, p->nbuf, sizeof *r.buf);
    r.aux = arena_array(arena, p->naux, sizeof *r.aux);
    r.local = arena_array(arena, p->nlocal, sizeof *r.local);
    r.valued = arena_array(arena, p->nexpr, sizeof *r.valued);
    r.val = arena_array(arena, p->nexpr, sizeof *r.val);
    r.fitting = arena_array(arena, p->nexpr, sizeof *r.fitting);
    r.build = arena_array(arena, p->naxis, sizeof *r.build);
    for (int i = 0; i < p->nphase; i++)
        if (loop_builds(p->phase[i]) != NULL)
            r.build[loop_builds(p->phase[i])->id].open = true;
    place_buffers(&r);
    for (int i = 0; i < p->nphase; i++) {
        const Axis *a = loop_builds(p->phase[i]);

        if (a != NULL)
            begin_build(&r, a);
        run_phase(&r, p->phase[i], cut, with);
        if (a != NULL)
            end_build(&r, a);
    }
}
