/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * How much there is to do in an iteration of a phase, about: what a plan cuts ranges by. */
#include "lower/lower.h"

typedef struct Weigh {
    Arena *arena;
    const Prog *p;
    const Env *env;
    const Buf *balance; /* whose entries count already */
} Weigh;

static bool is_known(const Expr *e)
{
    bool known = e->op == OP_int || e->op == OP_size || (e->op >= OP_neg && e->op <= OP_mod);

    for (int i = 0; i < e->nargs && known; i++)
        known = is_known(e->arg[i]);
    return known;
}

/* Iterations of a loop, on the average; 1 where nothing is known. */
static double trips(const Weigh *w, const Node *n)
{
    const Buf *b = loop_start_in(n->lo, NULL);
    int64_t up, all;

    if (is_known(n->lo) && is_known(n->hi)) {
        all = lower_value(w->arena, w->p, w->env, n->hi) -
              lower_value(w->arena, w->p, w->env, n->lo);
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
static double work_in(const Weigh *w, const Node *n)
{
    double sum = n->kind == N_STORE || n->kind == N_INSERT, most = 0;

    for (int i = 0; i < n->nbody; i++) {
        double work = work_in(w, n->body[i]);

        if (n->body[i]->kind != N_FOR)
            sum += work;
        else if (work * trips(w, n->body[i]) > most)
            most = work * trips(w, n->body[i]);
    }
    return sum + most;
}

double lower_weight(Arena *arena, const Prog *p, const Env *env, const Node *phase)
{
    Weigh w = { arena, p, env, phase->kind == N_FOR ? loop_balance(phase) : NULL };
    double work = work_in(&w, phase);

    return work > 1 ? work : 1;
}
