/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * What stage `threads` promises: where lanes and warps are threads, two accesses of one element,
 * one of which stores, are the same thread's or have a barrier between, and all threads that a
 * barrier is for come to it.  The walk carries the accesses that no barrier has ended yet
 * through loops and branches; it looks at the finished tree alone, whoever put the barriers
 * there. */
#include "ir/ir_int.h"
#include "ir/meet.h"

#include <stdio.h>

typedef struct Threads {
    Meet meet;
    const Node *node;   /* looked at */
    bool *tainted;      /* by Local.id: may differ between the warps that run a loop on warp */
    int uneven;         /* loops and branches around that only some of these warps take */
    const Node *branch; /* the innermost of them */
} Threads;

static _Noreturn void refuse(const Threads *t, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
static _Noreturn void refuse(const Threads *t, const char *fmt, ...)
{
    const char *label = t->node->label != NULL ? t->node->label : t->meet.phase->label;
    char why[400];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(why, sizeof why, fmt, ap);
    va_end(ap);
    t->meet.p->at = t->node->place;
    ir_throw(t->meet.p, ST_CHECK, "%s: %s", label, why);
}

static const char *name_of(const Node *loop)
{
    return loop == NULL || loop->local->name == NULL ? "(unnamed)" : loop->local->name;
}

static _Noreturn void refuse_race(const Threads *t, const Access *a, const Access *b, Meeting need)
{
    const Node *at = b->lane != NULL ? b->lane : b->warp != NULL ? b->warp : b->loop;

    refuse(t,
           "%s of a %s %s an element of %s in the loop of %s, which others %s in the loop of %s; "
            "put "
           "`%s` between them, before the loop of %s or in it",
           need == MEET_WARPS ? "warps" : "lanes", need == MEET_WARPS ? "block" : "warp",
           b->writes ? "store to" : "read", b->cell->buf->name, name_of(at),
           a->writes ? "store to" : "read",
           name_of(a->lane != NULL   ? a->lane
                   : a->warp != NULL ? a->warp
                                     : a->loop),
           need == MEET_WARPS ? "barrier block" : "barrier", name_of(at));
}

static bool is_same(const Access *a, const Access *b)
{
    return a->cell == b->cell && a->lane == b->lane && a->warp == b->warp && a->lanes == b->lanes &&
           a->warps == b->warps && a->writes == b->writes && a->atomic == b->atomic &&
           a->stale == b->stale && a->left_lane == b->left_lane && a->left_warp == b->left_warp &&
           a->round == b->round && a->met == b->met;
}

static void add_once(Threads *t, AccessList *s, const Access *a)
{
    for (int i = 0; i < s->n; i++)
        if (is_same(&s->access[i], a))
            return;
    meet_add(&t->meet, s, a);
}

static void access_all(Threads *t, const Node *n, AccessList *s)
{
    AccessList own = { 0 };

    meet_accesses(&t->meet, n, &own);
    for (int k = 0; k < own.n; k++)
        for (int i = 0; i < s->n; i++) {
            Meeting need = meet_between(&t->meet, &s->access[i], &own.access[k]);

            if (need != MEET_NONE)
                refuse_race(t, &s->access[i], &own.access[k], need);
        }
    for (int k = 0; k < own.n; k++)
        add_once(t, s, &own.access[k]);
}

static bool is_tainted(Expr *e, const void *ctx)
{
    const Threads *t = ctx;

    return e->op == OP_local && t->tainted[e->local->id];
}

static bool differs(const Threads *t, Expr *e)
{
    return e != NULL && ir_any(t->meet.p, e, is_tainted, t);
}

/* Each warp that runs a loop on warp runs it as often as the others. */
static bool is_even(const Threads *t, const Node *loop)
{
    int width = t->meet.phase->width;
    int64_t trips;

    if (width == 0 || loop->lo->op != OP_int)
        return false;
    if (loop->hi->op != OP_int)
        return loop->lo->i % width == 0 && loop_divisor(loop->hi, NULL) % width == 0;
    trips = loop->hi->i - loop->lo->i;
    return trips <= 0 || trips % width == 0;
}

/* All warps of the block come here together. */
static void check_together(const Threads *t, const char *what)
{
    const Node *warp = t->meet.warp;

    if (t->meet.vector != NULL || t->meet.thread != NULL)
        refuse(t, "%s stands in the loop of %s, which is dealt out to lanes; put it outside", what,
               name_of(t->meet.vector != NULL ? t->meet.vector : t->meet.thread));
    if (warp != NULL && t->uneven > 0)
        refuse(t, "%s stands in a branch or loop that not all warps of the block take alike, as it "
                  "depends on %s; put it outside", what, name_of(warp));
    if (warp != NULL && !is_even(t, warp))
        refuse(t, "%s stands in the loop of %s, whose iterations are no multiple of the warps "
                  "of the "
                  "block; put it outside", what, name_of(warp));
}

static void check_barrier(const Threads *t, const Node *n)
{
    if (n->level == LEVEL_BLOCK && !t->meet.warps)
        refuse(t, "`barrier block` in a phase that is not on block; write `barrier`");
    if (t->meet.vector != NULL || t->meet.thread != NULL || n->level == LEVEL_BLOCK)
        check_together(t, "a barrier");
}

/* What threads of all warps do together, in a loop on warp, is the same for each warp. */
static void check_shared_work(Threads *t, const Node *n)
{
    bool bad = differs(t, n->lo) || differs(t, n->hi) || differs(t, n->cond) ||
               differs(t, n->value) || differs(t, n->out);

    t->node = n;
    if (bad)
        refuse(t, "what the threads of a block do together depends on %s, which is on warp",
               name_of(t->meet.warp));
    for (int i = 0; i < n->nbody; i++)
        check_shared_work(t, n->body[i]);
}

static void taint(Threads *t, const Node *n)
{
    bool assigned = n->kind == N_LET && t->meet.assigned[n->local->id];

    if (n->local == NULL)
        return;
    t->tainted[n->local->id] = n == t->meet.warp || (t->meet.warp != NULL && assigned) ||
                               differs(t, n->value) || differs(t, n->lo) || differs(t, n->hi);
}

static void walk(Threads *t, Node *const *n, int count, AccessList *s);

static void walk_loop(Threads *t, const Node *n, AccessList *s)
{
    bool parallel = n->how == FOR_PARALLEL;
    bool dealt = n->lanes > 1 || (n != t->meet.phase && n->level == LEVEL_THREAD);

    walk(t, n->body, n->nbody, s);
    if (parallel)
        meet_next_iteration(&t->meet, s);
    else if (!dealt)
        meet_end(&t->meet, n, s, true);
    if (parallel || !dealt)
        walk(t, n->body, n->nbody, s);
}

static void walk_block(Threads *t, const Node *n, AccessList *s)
{
    bool uneven = differs(t, n->lo) || differs(t, n->hi) || differs(t, n->cond);
    Meet outer = t->meet;
    AccessList before = { 0 };

    for (int i = 0; i < s->n; i++) /* it may not run */
        meet_add(&t->meet, &before, &s->access[i]);
    meet_enter(&t->meet, n);
    if (n->kind == N_FOR && n == t->meet.thread && t->meet.warp != NULL) {
        t->meet.thread = NULL; /* which is what may stand here */
        check_together(t, "a loop on thread");
        t->meet.thread = n;
        check_shared_work(t, n);
    }
    taint(t, n);
    t->uneven += uneven;
    if (n->kind == N_FOR)
        walk_loop(t, n, s);
    else
        walk(t, n->body, n->nbody, s);
    t->uneven -= uneven;
    meet_end(&t->meet, n, s, false);
    outer.now = t->meet.now;
    t->meet = outer;
    for (int i = 0; i < before.n; i++)
        add_once(t, s, &before.access[i]);
}

static void walk(Threads *t, Node *const *n, int count, AccessList *s)
{
    for (int i = 0; i < count; i++) {
        t->node = n[i];
        if (n[i]->kind == N_BARRIER) {
            check_barrier(t, n[i]);
            meet_at_barrier(&t->meet, n[i]->level, s);
        }
        if (n[i]->kind == N_LET)
            taint(t, n[i]);
        access_all(t, n[i], s);
        if (n[i]->nbody > 0)
            walk_block(t, n[i], s);
    }
}

static void refuse_barriers(Threads *t, const Node *n)
{
    t->node = n;
    if (n->kind == N_BARRIER)
        refuse(t, "a barrier in a phase on thread, where nobody else comes to it; leave it out");
    for (int i = 0; i < n->nbody; i++)
        refuse_barriers(t, n->body[i]);
}

void loop_check_threads(Prog *p)
{
    for (int i = 0; i < p->nphase; i++) {
        Threads t = { .meet = meet_phase(p, p->phase[i]) };
        AccessList s = { 0 };

        t.tainted = arena_array(p->arena, p->nlocal, sizeof *t.tainted);
        if (loop_level(p->phase[i]) == LEVEL_THREAD)
            refuse_barriers(&t, p->phase[i]);
        else
            walk(&t, &p->phase[i], 1, &s);
    }
}
