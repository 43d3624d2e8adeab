/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * peel LOOP: gives the last, shorter block of a split a nest of its own, so that all other blocks
 * have a constant length.  Whole blocks still come first. */
#include "sched/step.h"

#include <string.h>

typedef struct Tail { /* of a loop over blocks */
    const Node *inner; /* inside a block: 0..min(n, length - n * block) */
    int64_t n;
    Expr *length;
} Tail;

/* length - block * n, as `split` writes it. */
static bool is_rest(Prog *p, Expr *e, const Local *block, int64_t n, Expr **length)
{
    Expr *first = tree_times(p, loop_use(p, (Local *)block), ir_int(p, n));

    if (e->op != OP_sub || e->arg[1] != first)
        return false;
    *length = e->arg[0];
    return true;
}

static bool is_tail(Prog *p, const Node *inner, const Local *block, Tail *t)
{
    Expr *hi = inner->kind == N_FOR ? inner->hi : NULL;

    if (hi == NULL || hi->op != OP_min || hi->arg[0]->op != OP_int)
        return false;
    t->inner = inner;
    t->n = hi->arg[0]->i;
    return is_rest(p, hi->arg[1], block, t->n, &t->length);
}

static bool find_tail(Prog *p, const Node *n, const Local *block, Tail *t)
{
    bool found = is_tail(p, n, block, t);

    for (int i = 0; i < n->nbody && !found; i++)
        found = find_tail(p, n->body[i], block, t);
    return found;
}

/* Whether a loop goes over all blocks of a split, of which the last may be shorter. */
static bool has_tail(Prog *p, const Node *loop, Tail *t)
{
    bool found = false;
    Expr *end;

    for (int i = 0; i < loop->nbody && !found; i++)
        found = find_tail(p, loop->body[i], loop->local, t);
    if (!found || loop->lo->op != OP_int || loop->lo->i != 0)
        return false;
    end = tree_div(p, tree_plus(p, t->length, ir_int(p, t->n - 1)), t->n);
    return loop->hi == end;
}

typedef struct Bound {
    Expr *was, *is;
} Bound;

static Expr *replace(Prog *p, Expr *e, void *ctx)
{
    const Bound *b = ctx;

    (void)p;
    return e == b->was ? b->is : e;
}

/* The loop over blocks lo..hi, with another end of those inside. */
static Node *blocks(Prog *p, const Node *loop, Expr *lo, Expr *hi, Bound b)
{
    Memo memo = { 0 };
    Node n = *loop;

    n.lo = lo;
    n.hi = hi;
    return step_simplified(p, loop_rewrite(p, loop_node(p, &n), replace, &b, &memo));
}

static Node *with_label(Prog *p, const Node *n)
{
    Node c = *n;
    NodeList body = { 0 };

    for (int i = 0; i < n->nbody; i++)
        tree_append(p, &body, with_label(p, n->body[i]));
    c.label = n->label != NULL ? step_join(p, n->label, ".tail") : NULL;
    return tree_with_body(p, &c, &body);
}

/* The blocks that are whole, and the one that is not. */
static void peel_loop(Prog *p, const Node *loop, const Tail *t, NodeList *out)
{
    Expr *was = t->inner->hi, *all = tree_div(p, t->length, t->n);
    Node *n;

    if (!(all->op == OP_int && all->i <= 0))
        tree_append(p, out, blocks(p, loop, loop->lo, all, (Bound){ was, ir_int(p, t->n) }));
    if (t->length->op == OP_int && t->length->i % t->n == 0)
        return;
    n = blocks(p, loop, all, loop->hi, (Bound){ was, was->arg[1] });
    n = with_label(p, loop_fresh(p, n));
    if (loop->how == FOR_PARALLEL) { /* a phase begins at 0 */
        n = loop_replace(p, n, n->local, tree_plus(p, loop_use(p, n->local), all));
        n->lo = ir_int(p, 0);
        n->hi = tree_sub(p, loop->hi, all);
        n->over = NULL;
    }
    tree_append(p, out, n);
}

static void peel(StepCall *c, const Spot *at, NodeList *out, void *ctx)
{
    int *found = ctx;
    Tail t;

    if (!has_tail(c->p, at->node, &t)) { /* a copy may be done already */
        tree_append(c->p, out, at->node);
        return;
    }
    ++*found;
    if (step_has(at->node, N_BUILD))
        step_refuse(c, "it builds an axis, and a phase has one block that does");
    peel_loop(c->p, at->node, &t, out);
}

void step_peel(StepCall *c)
{
    int found = 0;

    step_count(c, 1, 1);
    step_edit(c, c->line->word[0], peel, &found);
    if (found == 0)
        step_refuse(c, "it is no loop over blocks of which the last may be shorter");
}

/* The name of the first loop that has a tail and can be peeled; or NULL. */
static const char *next_tail(Prog *p, const Node *n)
{
    const char *name = NULL;
    Tail t;

    if (n->kind == N_FOR && n->label != NULL && n->local->path != NULL && !step_has(n, N_BUILD) &&
        has_tail(p, n, &t))
        name = step_join(p, step_join(p, n->label, "."), loop_path(n));
    for (int i = 0; i < n->nbody && name == NULL; i++)
        name = next_tail(p, n->body[i]);
    return name;
}

enum { LIMIT_PEELED = 64 };

void step_cut_tails(Prog *p)
{
    static const Step step = { "peel", STAGE_POSITIONS, false, "LOOP", "", step_peel };

    for (int k = 0; k < LIMIT_PEELED; k++) {
        const char *name = NULL;
        StepLine line = { .step = &step, .nword = 1 };

        for (int i = 0; i < p->nphase && name == NULL; i++)
            name = next_tail(p, p->phase[i]);
        if (name == NULL)
            return;
        line.text = step_join(p, "peel ", name);
        line.word[0] = name;
        step_apply(p, &line, NULL);
    }
}
