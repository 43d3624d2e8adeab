/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The amount of work in an iteration of a phase, which a plan uses to cut ranges.  The tree of a
 * phase is freed when its code exists, so its loops and the numbers of their stores are recorded
 * before. */
#include "lower/lower.h"

static bool is_known(const Expr *e)
{
    bool known = e->op == OP_int || e->op == OP_size || (e->op >= OP_neg && e->op <= OP_mod);

    for (int i = 0; i < e->nargs && known; i++)
        known = is_known(e->arg[i]);
    return known;
}

static bool has_same_trips(const LowerLoop *a, const LowerLoop *b)
{
    return a->loop == b->loop && a->lo == b->lo && a->hi == b->hi && a->start == b->start;
}

static bool is_same(const LowerLoop *a, const LowerLoop *b)
{
    bool same = has_same_trips(a, b) && a->stores == b->stores && a->n == b->n;

    for (int i = 0; i < a->n && same; i++)
        same = is_same(&a->inside[i], &b->inside[i]);
    return same;
}

/* Of loops side by side the one with the most work counts: one like another is not noted, and of
 * innermost loops with the same trips only the larger. */
static void add_loop(Prog *p, LowerLoop *around, const LowerLoop *l)
{
    for (int i = 0; i < around->n && l->loop; i++) {
        LowerLoop *other = &around->inside[i];
        bool flat = l->n == 0 && other->n == 0 && has_same_trips(l, other);

        if (flat && l->stores > other->stores)
            other->stores = l->stores;
        if (flat || is_same(l, other))
            return;
    }
    around->inside =
        arena_grow(p->arena, around->inside, around->n, &around->cap, sizeof *around->inside);
    around->inside[around->n++] = *l;
}

static void note_stored(Prog *p, LowerWork *w, const Node *n)
{
    Buf *b = n->kind == N_STORE && n->out->op == OP_cell ? loop_same_buf(p, n->out->buf) : NULL;

    for (int i = 0; i < w->nstored; i++)
        if (w->stored[i] == b)
            return;
    if (b == NULL)
        return;
    w->stored = arena_grow(p->arena, w->stored, w->nstored, &w->cap, sizeof *w->stored);
    w->stored[w->nstored++] = b;
}

static LowerLoop note(Prog *p, LowerWork *w, const Node *n)
{
    LowerLoop l = { .loop = n->kind == N_FOR };

    note_stored(p, w, n);
    l.stores = n->kind == N_STORE || n->kind == N_INSERT;
    if (l.loop && is_known(n->lo) && is_known(n->hi)) {
        l.lo = ir_import(p, n->lo);
        l.hi = ir_import(p, n->hi);
    } else if (l.loop) {
        l.start = loop_same_buf(p, loop_start_in(n->lo, NULL));
    }
    for (int i = 0; i < n->nbody; i++) {
        LowerLoop in = note(p, w, n->body[i]);

        if (!in.loop && in.n == 0)
            l.stores += in.stores;
        else
            add_loop(p, &l, &in);
    }
    return l;
}

LowerWork lower_note_work(Prog *to, const Node *phase)
{
    LowerWork w = { .balance = NULL };

    if (phase->kind == N_FOR)
        w.balance = loop_same_buf(to, loop_balance(phase));
    w.loop = note(to, &w, phase);
    return w;
}

typedef struct Weigh {
    Arena *arena;
    const Prog *p;
    const Env *env;
    const Buf *balance; /* whose entries count already */
} Weigh;

/* Iterations of a loop, on the average; 1 where nothing is known. */
static double trips(const Weigh *w, const LowerLoop *l)
{
    const Buf *b = l->start;
    int64_t up, all;

    if (l->hi != NULL) {
        all = lower_value(w->arena, w->p, w->env, l->hi) -
              lower_value(w->arena, w->p, w->env, l->lo);
        return all > 0 ? (double)all : 0;
    }
    if (b == NULL || b == w->balance || b->of->extent != X_SEG ||
        w->env->start[b->of->id].data == NULL)
        return 1;
    up = ir_axis_total(w->p, w->env, b->of->parent);
    all = ir_axis_total(w->p, w->env, b->of);
    return up > 0 ? (double)all / (double)up : 0;
}

/* Of loops side by side the longest counts: they may be one, and what is left of it. */
static double work_in(const Weigh *w, const LowerLoop *l)
{
    double sum = (double)l->stores, most = 0;

    for (int i = 0; i < l->n; i++) {
        double work = work_in(w, &l->inside[i]);

        if (!l->inside[i].loop)
            sum += work;
        else if (work * trips(w, &l->inside[i]) > most)
            most = work * trips(w, &l->inside[i]);
    }
    return sum + most;
}

double lower_weight(Arena *arena, const Prog *p, const Env *env, const LowerWork *work)
{
    Weigh w = { arena, p, env, work->balance };
    double all = work_in(&w, &work->loop);

    return all > 1 ? all : 1;
}

int64_t lower_rounds(const Prog *p, const Env *env, const Buf *balance, int64_t n)
{
    int64_t rows = ir_axis_total(p, env, balance->of->parent);

    if (n <= rows)
        return 1;
    return rows > 0 && n % rows == 0 ? n / rows : 0;
}
