/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * rfactor LOOP: lets each iteration of a loop add to its own element of a new array, instead of all
 * to one element; a phase after it sums these elements in order.  The loop can then be parallel.
 * Terms are added in another order than before. */
#include "sched/step.h"

#include <math.h>
#include <string.h>

typedef struct Factor {
    StepCall *call;
    const Node *loop, *store;
    int phase;
    Buf *part;
    int nloop;
} Factor;

/* The one sum inside the loop. */
static void find_store(Factor *f, const Node *n)
{
    if (n->kind == N_BUILD || n->kind == N_INSERT)
        step_refuse(f->call, "it builds an axis");
    if (n->kind == N_STORE && n->out->op == OP_cell) {
        if (f->store != NULL)
            step_refuse(f->call, "more than one store is inside it");
        f->store = n;
    }
    if (n->kind == N_STORE && n->out->op == OP_local)
        step_refuse(f->call, "it has registers; do this before cache_write");
    for (int i = 0; i < n->nbody; i++)
        find_store(f, n->body[i]);
}

static void has_local(Expr *e, void *ctx)
{
    if (e->op == OP_local || e->op == OP_cell || e->op == OP_count)
        *(bool *)ctx = true;
}

static void check(Factor *f)
{
    StepCall *c = f->call;
    const Node *s = f->store;
    bool moves = false, many;
    Memo met = { 0 };

    if (s == NULL || s->op == A_SET)
        step_refuse(c, "there is no sum, maximum or minimum inside it");
    if (s->nat > 0)
        step_refuse(c, "the store to %s has companions", s->out->buf->name);
    if (s->out->buf->type != T_f32 && s->out->buf->type != T_f64)
        step_refuse(c, "elements of %s are %s, whose sums may overflow in another order",
                    s->out->buf->name, ir_type[s->out->buf->type].name);
    if (tree_mentions(c->p, s->out, f->loop->local))
        step_refuse(c, "it does not add to one element again and again");
    ir_visit(c->p, f->loop->hi, has_local, &moves, &met);
    if (f->loop->lo->op != OP_int || f->loop->lo->i != 0 || moves || f->loop->lanes > 1)
        step_refuse(c, "how often it runs is not the same everywhere");
    step_only_cell(c->p, c->phase[f->phase], s->out->buf, &many);
    if (many)
        step_refuse(c, "the phase uses %s in several places", s->out->buf->name);
}

static Buf *part_of(Factor *f)
{
    const Buf *b = f->store->out->buf;
    Axis *axis[IR_MAX_FULL];

    if (b->nfull + 1 > IR_MAX_RANK)
        step_refuse(f->call, "%s has too many axes", b->name);
    for (int d = 0; d < f->store->out->nargs; d++)
        if (step_extent(f->call->p, b, d) == NULL)
            step_refuse(f->call, "the extents of %s are not plain", b->name);
    memcpy(axis, b->full, (size_t)b->nfull * sizeof *axis);
    axis[b->nfull] = ir_dense(f->call->p, f->loop->hi);
    return step_new_array(f->call->p, b, "rf", axis, b->nfull + 1);
}

static Expr *part_cell(Factor *f, Expr *const *index, Expr *last)
{
    Expr *at[IR_MAX_FULL + 1];
    int n = f->store->out->nargs;

    memcpy(at, index, (size_t)n * sizeof *at);
    at[n] = last;
    return loop_cell(f->call->p, f->part, at, n + 1, 1);
}

static Expr *to_part(Prog *p, Expr *e, void *ctx)
{
    Factor *f = ctx;

    return e == f->store->out ? part_cell(f, e->arg, loop_use(p, f->loop->local)) : e;
}

static void factor(StepCall *c, const Spot *at, NodeList *out, void *ctx)
{
    Factor *f = ctx;
    Memo memo = { 0 };

    if (f->nloop++ > 0)
        step_refuse(c, "there are copies of the loop; do this before unroll and peel");
    tree_append(c->p, out, loop_rewrite(c->p, at->node, to_part, f, &memo));
}

/* A value that changes nothing: -0.0 + x is x, for 0.0 too. */
static Expr *neutral(Prog *p, AssignOp op)
{
    double inf = (double)INFINITY;

    return ir_real(p, op == A_ADD ? -0.0 : op == A_MAX ? -inf : inf);
}

/* for x0: for x1: ... for n: the store */
static Node *sum_parts(Factor *f)
{
    Prog *p = f->call->p;
    const Buf *b = f->store->out->buf;
    Local *x[IR_MAX_FULL + 1];
    Expr *hi[IR_MAX_FULL + 1], *at[IR_MAX_FULL + 1];
    int n = f->store->out->nargs;
    Node store = { .kind = N_STORE, .op = f->store->op };
    Node *nest;

    for (int d = 0; d <= n; d++) {
        x[d] = step_counter(p, "x", d);
        at[d] = loop_use(p, x[d]);
        hi[d] = d < n ? step_extent(p, b, d) : f->loop->hi;
    }
    store.label = step_join(p, f->part->name, ".sum");
    store.out = loop_cell(p, (Buf *)b, at, n, 1);
    store.value = part_cell(f, at, at[n]);
    nest = step_nest(p, store.label, x, hi, n + 1, loop_node(p, &store));
    if (n == 0)
        nest->how = FOR_SERIAL;
    return nest;
}

static void add_sum(Factor *f)
{
    StepCall *c = f->call;
    NodeList to = { 0 };

    for (int i = 0; i < c->n; i++) {
        tree_append(c->p, &to, c->phase[i]);
        if (loop_writes(c->phase[i], f->part))
            tree_append(c->p, &to, sum_parts(f));
    }
    c->phase = to.node;
    c->n = to.n;
}

void step_rfactor(StepCall *c)
{
    Factor f = { .call = c };
    Spot s;

    step_count(c, 1, 2);
    if (c->line->nword == 2 && strcmp(c->line->word[1], "shared") != 0)
        step_refuse(c, "after the loop comes `shared`, not %s", c->line->word[1]);
    if (c->line->nword == 2) {
        step_rfactor_shared(c);
        return;
    }
    s = step_find(c, c->line->word[0]);
    f.loop = s.node;
    f.phase = s.phase;
    find_store(&f, s.node);
    check(&f);
    f.part = part_of(&f);
    f.part->init = neutral(c->p, f.store->op);
    step_edit(c, c->line->word[0], factor, &f);
    add_sum(&f);
}
