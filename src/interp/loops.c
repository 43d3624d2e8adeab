/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Trees of loops, run as they stand: stores, nodes, phases.  Where lanes and warps are threads,
 * loops that are dealt to them run in an order that a seed draws, and threads.c looks for races. */
#include "interp/loops_int.h"

static void put(Loops *r, Expr *cell, int64_t at, Val v, bool atomic)
{
    Store *s = loops_store(r, cell->buf);

    loops_note_write(r, cell->buf, s, at, atomic);
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
    if (loops_element(r, cell) != at)
        interp_fail(r->x, "%s is stored to at element %lld, beside element %lld", cell->buf->name,
                    (long long)loops_element(r, cell), (long long)at);
    return at;
}

static void store(Loops *r, const Node *n)
{
    Type t = (Type)n->out->type;
    Val v = interp_convert(loops_eval(r, n->value), (Type)n->value->type, t), old = { 0 };
    const At *mark = loop_mark(n);
    int64_t at;

    if (n->out->op == OP_local) {
        if (combine(r, n->op, t, true, r->local[n->out->local->id], &v))
            r->local[n->out->local->id] = v;
        return;
    }
    at = loops_element(r, n->out);
    if (n->atomic)
        old = interp_get(&loops_store(r, n->out->buf)->data, at);
    else if (n->op != A_SET)
        old = loops_load(r, n->out);
    if (!combine(r, n->op, t, mark == NULL || loops_eval(r, mark->out).i != 0, old, &v))
        return;
    put(r, n->out, at, v, n->atomic);
    for (int k = 0; k < n->nat; k++)
        put(r, n->at[k].out, beside(r, n->at[k].out, at), loops_eval(r, n->at[k].value), false);
}

/* The digits of a key, the last first. */
static void insert(Loops *r, const Node *n)
{
    Build *b = &r->build[n->axis->id];
    int64_t key = loops_eval(r, n->value).i, *row = interp_row(r->x->arena, &b->rows);

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
        first = last = b->row = loops_eval(r, n->lo).i;
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
    int64_t row = o->row != NULL ? loops_eval(r, o->row).i : 0, first = 0, end = s.total;
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
        first += loops_eval(r, o->tile).i * o->size;
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

typedef struct Order { /* of n iterations that may run in any: i, i + by, ... modulo n */
    int64_t n, from, by;
} Order;

static Order order_of(Loops *r, int64_t n)
{
    Order o = { n, 0, 1 };
    int64_t a, b, rest;

    if (r->seed == 0 || n < 2)
        return o;
    r->seed = hash_int(r->seed, (uint64_t)n) | 1;
    o.from = (int64_t)(r->seed >> 32) % n;
    for (o.by = 1 + (int64_t)(r->seed >> 8 & 0xffff) % (n - 1);; o.by++) {
        for (a = o.by, b = n; b != 0; a = b, b = rest)
            rest = a % b;
        if (a == 1) /* they have no common factor, so it meets all */
            return o;
    }
}

static int64_t in_order(const Order *o, int64_t i)
{
    return (o->from + i % o->n * (o->by % o->n)) % o->n;
}

static void run_iteration(Loops *r, const Node *n, int64_t i)
{
    r->local[n->local->id].i = i;
    run_nodes(r, n->body, n->nbody);
}

/* Each warp of the block runs an iteration, behind barriers of its own; then the next ones. */
static void run_warps(Loops *r, const Node *n, int64_t lo, int64_t trips)
{
    Threads *t = &r->threads;
    Thread was = t->now;

    for (int64_t round = 0; round < trips; round += t->nwarp) {
        int64_t many = trips - round < t->nwarp ? trips - round : t->nwarp;
        int64_t met = t->met, most = met;
        Order o = order_of(r, many);

        for (int64_t k = 0; k < many; k++) {
            int64_t i = round + in_order(&o, k);

            t->met = met;
            threads_deal(t, n, trips, i);
            run_iteration(r, n, lo + i);
            most = t->met > most ? t->met : most;
        }
        t->met = most;
        t->now = was;
    }
}

static void run_dealt(Loops *r, const Node *n, int64_t lo, int64_t trips)
{
    Thread was = r->threads.now;
    Order o = order_of(r, trips);

    if (n->level == LEVEL_WARP) {
        run_warps(r, n, lo, trips);
        return;
    }
    if (n->lanes > 1 && was.warp == SEVERAL && loop_is_of_first(n))
        r->threads.now.warp = 0;
    for (int64_t k = 0; k < trips; k++) {
        int64_t i = in_order(&o, k);

        threads_deal(&r->threads, n, trips, i);
        run_iteration(r, n, lo + i);
    }
    r->threads.now = was;
}

static void run_for(Loops *r, const Node *n)
{
    int64_t lo = loops_eval(r, n->lo).i, hi = loops_eval(r, n->hi).i;
    bool dealt = r->threads.on && !r->threads.alone && (n->lanes > 1 || n->level != LEVEL_NONE);

    if (n->over != NULL && lo < hi)
        check_over(r, n, lo, hi);
    if (dealt && lo < hi) {
        run_dealt(r, n, lo, hi - lo);
        return;
    }
    for (int64_t i = lo; i < hi; i++)
        run_iteration(r, n, i);
}

/* An element is stored to by the first of the threads that are here. */
static void run_store(Loops *r, const Node *n)
{
    Thread was = r->threads.now;

    if (n->out->op == OP_cell)
        threads_first(&r->threads);
    store(r, n);
    r->threads.now = was;
}

static void run_node(Loops *r, const Node *n)
{
    r->x->what = n->label != NULL ? n->label : r->phase->label;
    r->tick++;
    switch (n->kind) {
    case N_FOR: run_for(r, n); break;
    case N_IF:
        if (loops_eval(r, n->cond).i)
            run_nodes(r, n->body, n->nbody);
        break;
    case N_LET:
        r->local[n->local->id] =
            interp_convert(loops_eval(r, n->value), (Type)n->value->type, n->local->type);
        break;
    case N_STORE: run_store(r, n); break;
    case N_CHECK:
        if (!loops_eval(r, n->cond).i)
            interp_fail(r->x, "%s", loop_fault(n->fault));
        break;
    case N_BUILD: run_build(r, n); break;
    case N_INSERT: insert(r, n); break;
    case N_AHEAD:
        for (int i = 0; i < n->out->nargs; i++)
            loops_eval(r, n->out->arg[i]);
        break;
    case N_BARRIER: threads_meet(&r->threads, n->level == LEVEL_BLOCK); break;
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
    const Store *s = r->phase->parts == NULL ? NULL : loops_store(r, r->phase->parts);
    int64_t part = s == NULL ? i : i < s->data.n ? interp_get(&s->data, i).i : -1;

    if (part < 0 || part > i)
        interp_fail(r->x, "iteration %lld has no part in %s", (long long)i, r->phase->parts->name);
    return part;
}

static void run_range(void *job, int64_t begin, int64_t end)
{
    Loops *r = job;
    Thread all = r->threads.now;
    bool order = r->threads.on && r->phase->parts == NULL;
    Order o = order ? order_of(r, end - begin) : (Order){ end - begin, 0, 1 };

    for (int64_t k = 0; k < end - begin; k++) {
        int64_t i = begin + in_order(&o, k);

        r->now = r->before + part_of(r, i);
        r->turn++;
        if (r->threads.on && r->phase->lanes > 1)
            threads_deal(&r->threads, r->phase, r->several - r->before, i);
        run_iteration(r, r->phase, r->first.i + i);
    }
    r->threads.now = all;
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
            loops_store(r, b);
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
    if (r->prog->threads)
        threads_phase(&r->threads, n);
    r->x->what = n->label;
    r->tick++;
    if (n->kind != N_FOR || n->how != FOR_PARALLEL) {
        run_node(r, n);
        return;
    }
    r->first = loops_eval(r, n->lo);
    if (int_sub(loops_eval(r, n->hi).i, r->first.i, &trips))
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
    interp_threads(arena, p, env, cut, with, 0);
}

void interp_threads(Arena *arena, const Prog *p, Env *env, InterpCut *cut, void *with,
                    uint64_t seed)
{
    Run *x = arena_alloc(arena, sizeof *x);
    Loops r = { .x = x, .prog = p, .env = env, .before = 1, .seed = seed };

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
