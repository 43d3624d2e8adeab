/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * split LOOP N: makes two loops of one: over blocks of N iterations, and over the iterations of a
 * block.  Their order stays, so any loop can be split. */
#include "sched/step.h"

#include <string.h>

enum { LIMIT_BLOCK = 1 << 20 };

typedef enum Rest { REST_TAIL, REST_MASK, REST_EXACT } Rest;

typedef struct Split {
    int64_t n;
    Rest rest;
    NodeList checks; /* that blocks are exact */
} Split;

/* Whether n divides e, whatever the sizes are. */
static bool divides(int64_t n, Expr *e)
{
    switch (e->op) {
    case OP_int: return e->i % n == 0;
    case OP_mul: return divides(n, e->arg[0]) || divides(n, e->arg[1]);
    case OP_add:
    case OP_sub: return divides(n, e->arg[0]) && divides(n, e->arg[1]);
    default: return n == 1;
    }
}

/* Whether e is known before anything runs. */
static bool is_of_sizes(Expr *e)
{
    bool known = e->op == OP_int || e->op == OP_size || e->op == OP_add || e->op == OP_sub ||
                 e->op == OP_mul || (e->op == OP_div && e->arg[1]->op == OP_int);

    for (int i = 0; i < e->nargs && known; i++)
        known = is_of_sizes(e->arg[i]);
    return known;
}

/* n divides how often the loop runs: that is so, or a check at the beginning tells. */
static void need_exact(StepCall *c, const Node *loop, Split *s, Expr *length)
{
    Prog *p = c->p;
    Expr *rest = ir_op2(p, OP_mod, length, ir_int(p, s->n));
    Node check = { .kind = N_CHECK, .fault = FAULT_SIZE };

    if (length->op == OP_int || !is_of_sizes(length))
        step_refuse(c, "%lld does not provably divide its number of iterations; write tail or mask",
                    (long long)s->n);
    check.label = step_join(p, loop->label, ".exact");
    check.cond = ir_op2(p, OP_eq, rest, ir_int(p, 0));
    for (int i = 0; i < s->checks.n; i++)
        if (s->checks.node[i]->cond == check.cond)
            return;
    tree_append(p, &s->checks, loop_node(p, &check));
}

/* The inner loop: over what a block has. */
static Node inner_loop(StepCall *c, const Node *loop, Split *s, Expr *length, Expr *first)
{
    Prog *p = c->p;
    Expr *n = ir_int(p, s->n);
    Node in = *loop;
    bool whole = s->rest == REST_EXACT || divides(s->n, length);

    if (!divides(s->n, length) && whole)
        need_exact(c, loop, s, length);
    in.how = FOR_SERIAL;
    in.scheduled = false;
    in.level = LEVEL_NONE;
    in.width = 0;
    in.lo = ir_int(p, 0);
    in.hi = whole || s->rest == REST_MASK ? n : tree_least(p, n, tree_sub(p, length, first));
    in.local = step_local(p, step_join(p, loop_path(loop), ".1"));
    return in;
}

static void split(StepCall *c, const Spot *at, NodeList *out, void *ctx)
{
    Split *s = ctx;
    const Node *loop = at->node;
    Prog *p = c->p;
    Expr *length = tree_sub(p, loop->hi, loop->lo), *first, *here;
    Node over = *loop, in, *body;

    over.local = step_local(p, step_join(p, loop_path(loop), ".0"));
    over.lo = ir_int(p, 0);
    over.hi = s->rest == REST_EXACT || (divides(s->n, length) && length->op == OP_int)
                  ? tree_div(p, length, s->n)
                  : tree_div(p, tree_plus(p, length, ir_int(p, s->n - 1)), s->n);
    first = tree_times(p, loop_use(p, over.local), ir_int(p, s->n));
    in = inner_loop(c, loop, s, length, first);
    over.over = loop_is_all(p, loop) ? loop_over_tiles(p, loop->over, s->n) : NULL;
    in.over = loop_over_tile(p, over.over, loop_use(p, over.local), OVER_OFFSETS);
    here = tree_plus(p, first, loop_use(p, in.local));
    body = loop_replace(p, loop_node(p, loop), loop->local, tree_plus(p, loop->lo, here));
    in.body = body->body;
    if (s->rest == REST_MASK && !divides(s->n, length)) {
        Node mask = { .kind = N_IF,
                      .label = loop->label,
                      .cond = ir_op2(p, OP_lt, here, length),
                      .body = in.body,
                      .nbody = in.nbody };

        in.body = (Node *[]){ loop_node(p, &mask) };
        in.nbody = 1;
        body = loop_node(p, &in);
    } else {
        body = loop_node(p, &in);
    }
    over.body = &body;
    over.nbody = 1;
    tree_append(p, out, loop_node(p, &over));
}

/* What is checked comes before everything. */
static void put_checks(StepCall *c, const Split *s)
{
    NodeList to = { 0 };

    for (int i = 0; i < s->checks.n; i++)
        tree_append(c->p, &to, s->checks.node[i]);
    for (int i = 0; i < c->n; i++)
        tree_append(c->p, &to, c->phase[i]);
    c->phase = to.node;
    c->n = to.n;
}

void step_split(StepCall *c)
{
    static const char *const word[] = { "tail", "mask", "exact" };
    Split s = { .rest = REST_TAIL };
    int rest = 0;

    step_count(c, 2, 3);
    s.n = step_int(c, 1, 1, LIMIT_BLOCK);
    if (c->line->nword == 3) {
        while (rest < 3 && strcmp(word[rest], c->line->word[2]) != 0)
            rest++;
        if (rest == 3)
            step_refuse(c, "the remainder is tail, mask or exact, not %s",
                        c->line->word[2]);
        s.rest = (Rest)rest;
    }
    step_edit(c, c->line->word[0], split, &s);
    if (s.checks.n > 0)
        put_checks(c, &s);
}
