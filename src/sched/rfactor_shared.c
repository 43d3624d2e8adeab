/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * rfactor LOOP shared: what the iterations of a loop add to the elements of an iteration of the
 * phase, each adds to elements of its own in a shared array; at the end these are added up in
 * order. Then the loop can be dealt to warps, or to threads.
 *
 *     for t in 0..4                          for x in 0..4 on thread
 *         for j ...                              C.rf[x] = -0.0
 *             C[i] += ...                >   for t in 0..4
 *                                                for j ...
 *                                                    C.rf[t] += ...
 *                                            for t in 0..4
 *                                                C[i] += C.rf[t]                                 */
#include "sched/step.h"

#include <math.h>

enum { LIMIT_PARTS = 1024 };

typedef struct Sums {
    StepCall *call;
    const Node *loop, *store;
    const Node *number; /* the loop inside that numbers elements; NULL: there is one element */
    int64_t n, m;       /* iterations of the two */
    Buf *part;
} Sums;

static void find_store(Sums *s, const Node *n)
{
    if (n->kind == N_STORE && n->out->op == OP_cell) {
        if (s->store != NULL)
            step_refuse(s->call, "more than one store is inside it");
        s->store = n;
    }
    if (n->kind == N_STORE && n->out->op == OP_local)
        step_refuse(s->call, "it has registers; do this before cache_write");
    for (int i = 0; i < n->nbody; i++)
        find_store(s, n->body[i]);
}

static void find_number(Sums *s, const Node *n)
{
    if (n->local != NULL && tree_mentions(s->call->p, s->store->out, n->local)) {
        if (n->kind != N_FOR || s->number != NULL)
            step_refuse(s->call, "more than one loop inside numbers elements of %s",
                        s->store->out->buf->name);
        s->number = n;
    }
    for (int i = 0; i < n->nbody; i++)
        find_number(s, n->body[i]);
}

static void check_number(Sums *s, const Node *n)
{
    StepCall *c = s->call;

    s->m = n == NULL ? 1 : step_trips(n);
    if (n != NULL && (n->lo->op != OP_int || n->lo->i != 0 || s->m < 0))
        step_refuse(c, "%s does not run from 0 to a constant", loop_path(n));
    if (s->m > 0 && s->n * s->m > LOOP_MOST_SHARED / 4)
        step_refuse(c, "%lld sums do not fit a shared array", (long long)(s->n * s->m));
}

static void check(Sums *s, const Spot *at)
{
    StepCall *c = s->call;
    const Node *st = s->store;
    Cells cells = { .call = c };

    if (st == NULL || st->op == A_SET)
        step_refuse(c, "there is no sum, maximum or minimum inside it");
    if (st->nat > 0)
        step_refuse(c, "the store to %s has companions", st->out->buf->name);
    if (st->out->buf->type != T_f32 && st->out->buf->type != T_f64)
        step_refuse(c, "elements of %s are %s, whose sums may overflow in another order",
                    st->out->buf->name, ir_type[st->out->buf->type].name);
    if (tree_mentions(c->p, st->out, s->loop->local))
        step_refuse(c, "it does not add to one element again and again");
    s->n = step_trips(s->loop);
    if (s->n < 1 || s->n > LIMIT_PARTS || s->loop->lo->op != OP_int || s->loop->lo->i != 0)
        step_refuse(c, "it does not run from 0 to a constant of at most %d", LIMIT_PARTS);
    if (at->depth == 0)
        step_refuse(c, "iterations of a phase share nothing; leave `shared` out");
    cells.buf = st->out->buf;
    step_cells(&cells, s->loop);
    if (cells.n > 1)
        step_refuse(c, "it uses %s in several places", cells.buf->name);
    if (!step_is_steady(c->phase[at->phase], st->out) ||
        !step_is_inside(c->p, c->phase[at->phase], st->out))
        step_refuse(c, "an element of %s may not exist where a loop inside runs no iteration",
                    cells.buf->name);
}

/* Sum number m of iteration t. */
static Expr *part_cell(const Sums *s, Expr *t, Expr *m)
{
    Prog *p = s->call->p;
    Expr *at = s->number == NULL ? t : tree_plus(p, tree_times(p, t, ir_int(p, s->m)), m);

    return step_shared_cell(p, s->part, at);
}

static Expr *number_of(const Sums *s)
{
    return s->number == NULL ? NULL : loop_use(s->call->p, s->number->local);
}

static Expr *to_part(Prog *p, Expr *e, void *ctx)
{
    Sums *s = ctx;

    return e == s->store->out ? part_cell(s, loop_use(p, s->loop->local), number_of(s)) : e;
}

static Node *store(const Sums *s, AssignOp op, Expr *out, Expr *value)
{
    Node n = { .kind = N_STORE, .op = op, .label = s->store->label, .out = out, .value = value };

    return loop_node(s->call->p, &n);
}

/* A value that changes nothing in each. */
static Node *begin(const Sums *s)
{
    Prog *p = s->call->p;
    double inf = (double)INFINITY;
    AssignOp op = s->store->op;
    Local *x = step_counter(p, "x", 0);
    Node like = { .lo = ir_int(p, 0), .hi = ir_int(p, s->n * s->m) };
    Node *body = store(s, A_SET, step_shared_cell(p, s->part, loop_use(p, x)),
                       ir_real(p, op == A_ADD ? -0.0 : op == A_MAX ? -inf : inf));

    return step_together(p, &like, body->label, x, body);
}

/* In the order of the iterations, each element by one thread. */
static Node *end(const Sums *s)
{
    Prog *p = s->call->p;
    Local *t = loop_local(p, s->loop->local->name, T_i64, 1);
    Node *body = store(s, s->store->op, s->store->out, part_cell(s, loop_use(p, t), number_of(s)));
    Node sum = { .kind = N_FOR, .label = body->label, .local = t };

    sum.lo = ir_int(p, 0);
    sum.hi = ir_int(p, s->n);
    body = tree_around(p, &sum, body);
    if (s->number == NULL)
        return body;
    return loop_fresh(p, step_together(p, s->number, body->label, s->number->local, body));
}

static void factor(StepCall *c, const Spot *at, NodeList *out, void *ctx)
{
    Sums s = { .call = c, .loop = at->node };
    Memo memo = { 0 };
    int *loops = ctx;

    if ((*loops)++ > 0)
        step_refuse(c, "there are copies of the loop; do this before unroll and peel");
    find_store(&s, at->node);
    check(&s, at);
    for (int i = 0; i < at->node->nbody; i++)
        find_number(&s, at->node->body[i]);
    check_number(&s, s.number);
    step_check_together(c, at);
    s.part = step_new_shared(c, c->phase[at->phase], s.store->out->buf, "rf",
                             s.n * s.m);
    tree_append(c->p, out, begin(&s));
    tree_append(c->p, out, loop_rewrite(c->p, at->node, to_part, &s, &memo));
    tree_append(c->p, out, end(&s));
}

void step_rfactor_shared(StepCall *c)
{
    int loops = 0;

    step_edit(c, c->line->word[0], factor, &loops);
}
