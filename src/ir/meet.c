/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Accesses of elements by lanes and warps that are threads.
 *
 * Outside of loops that are dealt out, an element is stored to by the first lane of the first warp,
 * with all that this store reads; what other nodes read there, all lanes of all warps read.  A
 * vector loop that stores to elements is the first warp's, unless a loop on warp is around it.
 * In a loop that is dealt out, an element that moves with the loop is that lane's or warp's.
 * Iterations of such a loop do not depend on each other, so accesses in one run of it need no
 * barrier. */
#include "ir/meet.h"

static int number_of(const Prog *p, const Buf *b)
{
    return b->id < LOOP_OWN ? b->id : p->nbuf + b->id - LOOP_OWN;
}

static void note_stores(Meet *m, const Node *n)
{
    if (n->kind == N_STORE && n->out->op == OP_cell)
        m->written[number_of(m->p, n->out->buf)] = true;
    if (n->kind == N_STORE && n->out->op == OP_local)
        m->assigned[n->out->local->id] = true;
    for (int i = 0; i < n->nat; i++)
        m->written[number_of(m->p, n->at[i].out->buf)] = true;
    for (int i = 0; i < n->nbody; i++)
        note_stores(m, n->body[i]);
}

Meet meet_phase(Prog *p, const Node *phase)
{
    Meet m = { .p = p, .phase = phase, .warps = loop_level(phase) == LEVEL_BLOCK };

    m.written = arena_array(p->arena, p->nbuf + p->naux, sizeof *m.written);
    m.assigned = arena_array(p->arena, p->nlocal, sizeof *m.assigned);
    m.inside = arena_array(p->arena, p->nlocal, sizeof *m.inside);
    note_stores(&m, phase);
    return m;
}

void meet_enter(Meet *m, const Node *n)
{
    if (n->kind != N_FOR)
        return;
    m->loop = n;
    if (n->lanes > 1) {
        m->vector = n;
        m->first = loop_is_of_first(n);
    } else if (n != m->phase && n->level == LEVEL_THREAD) {
        m->thread = n;
    } else if (n != m->phase && n->level == LEVEL_WARP) {
        m->warp = n;
    }
}

void meet_add(Meet *m, AccessList *s, const Access *a)
{
    s->access = arena_grow(m->p->arena, s->access, s->n, &s->cap, sizeof *s->access);
    s->access[s->n++] = *a;
}

static bool is_unsteady(Expr *e, const void *ctx)
{
    const Meet *m = ctx;

    return (e->op == OP_local && m->assigned[e->local->id]) ||
           (e->op == OP_cell && m->written[number_of(m->p, e->buf)]);
}

static bool is_use(Expr *e, const void *local)
{
    return e->op == OP_local && e->local == local;
}

static bool moves(const Meet *m, const Expr *cell, const Node *with)
{
    return ir_any(m->p, cell->arg[0], is_use, with->local);
}

typedef struct Reading { /* of one node */
    Meet *m;
    AccessList *out;
    Who who; /* outside of loops that are dealt out */
} Reading;

static void note(const Reading *r, Expr *cell, bool writes, bool atomic)
{
    Meet *m = r->m;
    Access a = { .cell = cell, .loop = m->loop, .writes = writes, .atomic = atomic };

    if (!m->written[number_of(m->p, cell->buf)])
        return;
    a.lane = m->vector != NULL ? m->vector : m->thread;
    a.warp = m->warps && m->thread != NULL ? m->thread : m->warp;
    a.lanes = a.lane == NULL ? r->who : moves(m, cell, a.lane) ? WHO_EACH : WHO_ANY;
    a.warps = !m->warps || (a.warp == NULL && m->first) ? WHO_FIRST
              : a.warp == NULL                          ? r->who
                                                        : WHO_ANY;
    if (a.warp != NULL && moves(m, cell, a.warp))
        a.warps = WHO_EACH;
    a.steady = !ir_any(m->p, cell->arg[0], is_unsteady, m);
    meet_add(m, r->out, &a);
}

static void see(Expr *e, void *ctx)
{
    if (e->op == OP_cell)
        note(ctx, e, false, false);
}

static void reads_of(Reading *r, Expr *e)
{
    Memo met = { 0 };

    if (e != NULL)
        ir_visit(r->m->p, e, see, r, &met);
}

static void store_of(Reading *r, const Node *n, Expr *cell, AssignOp op)
{
    if (cell->op != OP_cell)
        return;
    reads_of(r, cell->arg[0]);
    if (op != A_SET)
        note(r, cell, false, n->atomic);
    note(r, cell, true, n->atomic);
}

void meet_accesses(Meet *m, const Node *n, AccessList *out)
{
    bool first = n->kind == N_STORE && n->out->op == OP_cell;
    Reading r = { m, out, first ? WHO_FIRST : WHO_ANY };

    if (n->kind == N_AHEAD)
        return;
    reads_of(&r, n->lo);
    reads_of(&r, n->hi);
    reads_of(&r, n->cond);
    reads_of(&r, n->value);
    if (n->kind == N_STORE)
        store_of(&r, n, n->out, n->op);
    for (int i = 0; i < n->nat; i++) {
        reads_of(&r, n->at[i].value);
        store_of(&r, n, n->at[i].out, A_SET);
    }
}

static bool ends_all(const Meet *m, const Node *n)
{
    return n->kind == N_BARRIER && (n->level == LEVEL_BLOCK || !m->warps);
}

void meet_entry(Meet *m, const Node *n, AccessList *out)
{
    Meet outer = *m;

    meet_accesses(m, n, out);
    meet_enter(m, n);
    for (int i = 0; i < n->nbody && !ends_all(m, n->body[i]); i++)
        meet_entry(m, n->body[i], out);
    outer.now = m->now;
    *m = outer;
}

static void put_locals(Meet *m, const Node *n)
{
    if (n->local != NULL)
        m->inside[n->local->id] = m->now;
    for (int i = 0; i < n->nbody; i++)
        put_locals(m, n->body[i]);
}

static bool is_inside(Expr *e, const void *ctx)
{
    const Meet *m = ctx;

    return e->op == OP_local && m->inside[e->local->id] == m->now;
}

static bool ends_inside(const Meet *m, const Node *n)
{
    return n != NULL && (ir_any(m->p, n->lo, is_inside, m) ||
                         (n->packed && ir_any(m->p, n->hi, is_inside, m)));
}

/* The variables of the loops that deal the access out have no part in this: they say whose it
 * is. */
static void set_stale(Meet *m, Access *a)
{
    int *lane = a->lanes == WHO_EACH ? &m->inside[a->lane->local->id] : NULL;
    int *warp = a->warps == WHO_EACH ? &m->inside[a->warp->local->id] : NULL;
    int was_lane = lane != NULL ? *lane : 0, was_warp = warp != NULL ? *warp : 0;

    if (lane != NULL)
        *lane = 0;
    if (warp != NULL && warp != lane)
        *warp = 0;
    a->stale = ir_any(m->p, a->cell->arg[0], is_inside, m) || ends_inside(m, a->lane) ||
               ends_inside(m, a->warp);
    if (warp != NULL && warp != lane)
        *warp = was_warp;
    if (lane != NULL)
        *lane = was_lane;
}

void meet_end(Meet *m, const Node *block, AccessList *list, bool again)
{
    m->now++;
    put_locals(m, block);
    for (int i = 0; i < list->n; i++) {
        Access *a = &list->access[i];

        if (!a->stale)
            set_stale(m, a);
        a->left_lane = a->left_lane || (a->lane == block && !again);
        a->left_warp = a->left_warp || (a->warp == block && !again);
        a->round = a->round || (a->warp == block && again);
    }
}

/* Whether two loops deal the same numbers to the same lanes or warps.  The rest of a packed loop
 * depends on its end. */
static bool is_same_deal(const Node *a, const Node *b)
{
    return a == b || (a->lo == b->lo && a->lanes == b->lanes && a->level == b->level &&
                      a->packed == b->packed &&
                      (!a->packed || (a->regs == b->regs && a->hi == b->hi)));
}

static int64_t trips_of(const Node *n)
{
    int64_t trips;

    if (n->lo->op != OP_int || n->hi->op != OP_int || int_sub(n->hi->i, n->lo->i, &trips))
        return INT32_MAX;
    return trips < 0 ? 0 : trips > INT32_MAX ? INT32_MAX : trips;
}

/* Whether an index tells the variable of a loop although that of another one is in it, too: steps
 * of one are wider than all steps of the other together. */
static bool is_told(const Meet *m, const LoopIndex *i, const Node *own, const Node *other)
{
    bool told = true;

    for (int k = 0; k < i->n && other != NULL && other != own; k++) {
        int64_t by = i->stride < 0 ? -i->stride : i->stride, step, all, own_all;

        if (!ir_any(m->p, i->leaf[k], is_use, other->local))
            continue;
        step = i->times[k] < 0 ? -i->times[k] : i->times[k];
        told = i->leaf[k]->op == OP_local && by > 0 && step > 0 &&
               ((!int_mul(step, trips_of(other), &all) && all <= by) ||
                (!int_mul(by, trips_of(own), &own_all) && own_all <= step));
    }
    return told;
}

/* Whether two elements are one lane's, or warp's, wherever they are one element.  What deals them
 * to warps, or lanes, may have any values. */
static bool is_same_owner(const Meet *m, const Access *a, const Access *b, bool warps)
{
    const Node *x = warps ? a->warp : a->lane, *y = warps ? b->warp : b->lane;
    LoopIndex i, k;

    return !a->stale && a->steady && b->steady && is_same_deal(x, y) &&
           loop_index_of(a->cell, x->local, &i) && loop_index_of(b->cell, y->local, &k) &&
           i.stride != 0 && loop_is_near(&i, &k) && i.constant == k.constant &&
           is_told(m, &i, x, warps ? a->lane : a->warp) &&
           is_told(m, &k, y, warps ? b->lane : b->warp);
}

/* Whether the elements differ, whoever has them. */
static bool is_apart(const Access *a, const Access *b)
{
    bool each = a->lanes == WHO_EACH || b->lanes == WHO_EACH || a->warps == WHO_EACH ||
                b->warps == WHO_EACH;
    LoopIndex i, k;

    return !each && !a->stale && a->steady && b->steady && loop_index_of(a->cell, NULL, &i) &&
           loop_index_of(b->cell, NULL, &k) && loop_is_near(&i, &k) && i.constant != k.constant;
}

static bool do_warps_clash(const Meet *m, const Access *a, const Access *b)
{
    if (a->warp != NULL && a->warp == b->warp && !a->left_warp)
        return false;
    if (a->warps == WHO_FIRST || b->warps == WHO_FIRST || a->warps != b->warps)
        return a->warps != WHO_FIRST || b->warps != WHO_FIRST;
    return a->warps != WHO_EACH || !is_same_owner(m, a, b, true);
}

static bool do_lanes_clash(const Meet *m, const Access *a, const Access *b)
{
    if (a->met || (a->lane != NULL && a->lane == b->lane && !a->left_lane) ||
        (a->lanes == WHO_FIRST && b->lanes == WHO_FIRST))
        return false;
    return a->lanes != WHO_EACH || b->lanes != WHO_EACH || !is_same_owner(m, a, b, false);
}

Meeting meet_between(const Meet *m, const Access *a, const Access *b)
{
    bool round = a->warp != NULL && a->warp == b->warp && a->round && !a->left_warp;

    if (a->cell->buf != b->cell->buf || (!a->writes && !b->writes) || (a->atomic && b->atomic) ||
        round || is_apart(a, b))
        return MEET_NONE;
    if (m->warps && do_warps_clash(m, a, b))
        return MEET_WARPS;
    return do_lanes_clash(m, a, b) ? MEET_LANES : MEET_NONE;
}

void meet_next_iteration(Meet *m, AccessList *s)
{
    int n = 0;

    meet_end(m, m->phase, s, true);
    for (int i = 0; i < s->n; i++)
        if (m->phase->parts != NULL || loop_is_work(s->access[i].cell->buf))
            s->access[n++] = s->access[i];
    s->n = n;
}

void meet_at_barrier(const Meet *m, LoopLevel level, AccessList *s)
{
    if (level == LEVEL_BLOCK || !m->warps)
        s->n = 0;
    for (int i = 0; i < s->n; i++)
        s->access[i].met = true;
}
