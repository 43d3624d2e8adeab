/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * reorder LOOP LOOP ...: puts the named loops of one nest into this order, in the places that they
 * have among themselves.  Lets, branches and checks between them move inwards as far as they must.
 */
#include "sched/step.h"

#include <string.h>

typedef struct Item { /* of a nest: a loop, or what stands between loops */
    Node *node;
    int outside; /* loops around it */
} Item;

typedef struct Nest {
    StepCall *call;
    Item item[LIMIT_STEP_NEST];
    Node *loop[LIMIT_STEP_NEST]; /* as they are, outermost first, and */
    Node *next[LIMIT_STEP_NEST]; /* as they will be */
    int n, nloop, named;
} Nest;

static bool is_listed(const StepCall *c, const Node *n)
{
    for (int i = 0; i < c->line->nword; i++)
        if (step_is_named(n, c->line->word[i]))
            return true;
    return false;
}

static bool holds_listed(const StepCall *c, const Node *n)
{
    bool has = is_listed(c, n);

    for (int i = 0; i < n->nbody && !has; i++)
        has = holds_listed(c, n->body[i]);
    return has;
}

/* What is above a loop has to be a line of blocks, with lets and checks before each. */
static Node *only_block(Nest *t, const Node *n)
{
    for (int i = 0; i < n->nbody; i++) {
        Node *b = n->body[i];
        bool last = i + 1 == n->nbody;

        if (last && (b->kind == N_FOR || b->kind == N_IF))
            return b;
        if (b->kind != N_LET && b->kind != N_CHECK)
            step_refuse(t->call, "%s.%s holds more than the loops to be reordered",
                        t->loop[t->nloop - 1]->label, loop_path(t->loop[t->nloop - 1]));
        t->item[t->n++] = (Item){ b, t->nloop };
    }
    step_refuse(t->call, "%s.%s does not hold the loops to be reordered",
                t->loop[t->nloop - 1]->label, loop_path(t->loop[t->nloop - 1]));
}

/* From the outermost named loop down to the innermost. */
static void collect(Nest *t, Node *n)
{
    for (;;) {
        bool listed = n->kind == N_FOR && is_listed(t->call, n), inside = false;

        t->named += listed;
        t->item[t->n++] = (Item){ n, t->nloop };
        if (n->kind == N_FOR)
            t->loop[t->nloop++] = n;
        for (int i = 0; i < n->nbody && !inside; i++)
            inside = holds_listed(t->call, n->body[i]);
        if (!inside)
            return;
        if (t->n + n->nbody >= LIMIT_STEP_NEST)
            step_refuse(t->call, "too much stands between the loops");
        n = only_block(t, n);
    }
}

static int place_of(Nest *t, const char *name)
{
    for (int i = 0; i < t->nloop; i++)
        if (step_is_named(t->loop[i], name))
            return i;
    step_refuse(t->call, "%s is in another nest", name);
}

static void choose_order(Nest *t)
{
    const StepLine *line = t->call->line;
    int place[LIMIT_STEP_WORDS], n = 0;
    bool taken[LIMIT_STEP_NEST] = { false };

    for (int i = 0; i < line->nword; i++) {
        place[i] = place_of(t, line->word[i]);
        if (taken[place[i]])
            step_refuse(t->call, "%s is named twice", line->word[i]);
        taken[place[i]] = true;
    }
    for (int i = 0; i < t->nloop; i++)
        t->next[i] = taken[i] ? t->loop[place[n++]] : t->loop[i];
}

static bool is_among(Node *const *list, int n, const Node *x)
{
    for (int i = 0; i < n; i++)
        if (list[i] == x)
            return true;
    return false;
}

/* A loop needs the loops and lets that its bounds name, and, when these read arrays, the branches
 * and checks that were before it. */
static void check_loop(Nest *t, const Node *loop, int ndone, int nitem)
{
    Prog *p = t->call->p;
    bool reads = step_reads(p, loop->lo) || step_reads(p, loop->hi), before = true;

    for (int i = ndone; i < t->nloop; i++)
        if (t->next[i] != loop && (tree_mentions(p, loop->lo, t->next[i]->local) ||
                                   tree_mentions(p, loop->hi, t->next[i]->local)))
            step_refuse(t->call, "how far %s.%s goes depends on %s.%s, which has to be outside",
                        loop->label, loop_path(loop), t->next[i]->label, loop_path(t->next[i]));
    for (int i = 0; i < t->n; i++) {
        const Node *x = t->item[i].node;

        before = before && x != loop;
        if (x->kind == N_FOR || i < nitem)
            continue;
        if (x->kind == N_LET && (tree_mentions(p, loop->lo, x->local) ||
                                 tree_mentions(p, loop->hi, x->local)))
            step_refuse(t->call, "the end of %s.%s is known only inside loops that follow it",
                        loop->label, loop_path(loop));
        if (before && reads && (x->kind == N_IF || x->kind == N_CHECK))
            step_refuse(t->call, "how far %s.%s goes may be looked up only inside a branch",
                        loop->label, loop_path(loop));
    }
}

/* A check that runs as often, or never where a loop around it is empty, fails as before. */
static bool may_stand(Nest *t, const Item *x, int ndone)
{
    for (int i = 0; i < ndone; i++)
        if (!is_among(t->loop, x->outside, t->next[i]) && !step_runs(t->next[i]))
            return false;
    return true;
}

static bool is_ready(Nest *t, const Item *x, int ndone)
{
    for (int i = 0; i < x->outside; i++)
        if (!is_among(t->next, ndone, t->loop[i]))
            return false;
    return true;
}

/* Lets and checks stand in front of what is in the same block. */
static NodeList put_around(Prog *p, const Node *n, const NodeList *inner)
{
    NodeList out = { 0 };
    Node c = *n;

    if (n->kind == N_LET || n->kind == N_CHECK) {
        tree_append(p, &out, loop_node(p, n));
        for (int i = 0; i < inner->n; i++)
            tree_append(p, &out, inner->node[i]);
        return out;
    }
    c.how = FOR_SERIAL;
    c.scheduled = false;
    tree_append(p, &out, tree_with_body(p, &c, inner));
    return out;
}

/* Loops and what stands between them in the new order. */
static int arrange(Nest *t, Node **seq)
{
    int n = 0, at = 0;

    for (int done = 0; done <= t->nloop; done++) {
        for (; at < t->n && (t->item[at].node->kind == N_FOR || is_ready(t, &t->item[at], done));
             at++) {
            const Item *x = &t->item[at];

            if (x->node->kind == N_FOR)
                continue;
            if (x->node->kind == N_CHECK && !may_stand(t, x, done))
                step_refuse(t->call, "a check would not run where a loop around it is empty");
            seq[n++] = x->node;
        }
        if (done < t->nloop) {
            check_loop(t, t->next[done], done, at);
            seq[n++] = t->next[done];
        }
    }
    return n;
}

static Node *build(Nest *t)
{
    Prog *p = t->call->p;
    const Node *last = t->item[t->n - 1].node;
    Node **seq = arena_array(p->arena, t->n, sizeof *seq);
    int n = arrange(t, seq);
    NodeList inner = { 0 };

    for (int i = 0; i < last->nbody; i++)
        tree_append(p, &inner, last->body[i]);
    while (n > 0)
        inner = put_around(p, seq[--n], &inner);
    return inner.node[0];
}

/* A parallel phase stays one if the iterations of its new loop have elements of their own. */
static bool stays_parallel(StepCall *c, const Node *n)
{
    Spot root = { 0, (Node *)n, NULL, 0 };

    return n->lo->op == OP_int && n->lo->i == 0 && dep_race(c->p, n, &root, false) == NULL;
}

static void reorder(StepCall *c, const Spot *at, NodeList *out, void *ctx)
{
    Nest *t = arena_alloc(c->p->arena, sizeof *t);
    const char *why;
    Node *n;

    (void)ctx;
    t->call = c;
    collect(t, at->node);
    choose_order(t);
    why = dep_order(c->p, c->phase[at->phase], at, t->loop, t->next, t->nloop);
    if (why != NULL)
        step_refuse(c, "%s", why);
    n = build(t);
    if (at->node->how == FOR_PARALLEL && stays_parallel(c, n))
        n->how = FOR_PARALLEL;
    tree_append(c->p, out, n);
}

void step_reorder(StepCall *c)
{
    const char *outer;
    Spot first;

    step_count(c, 2, LIMIT_STEP_WORDS);
    outer = c->line->word[0];
    first = step_find(c, outer);
    for (int i = 1; i < c->line->nword; i++) {
        Spot s = step_find(c, c->line->word[i]);

        if (s.phase != first.phase)
            step_refuse(c, "%s is in another nest", c->line->word[i]);
        if (s.depth < first.depth) {
            first = s;
            outer = c->line->word[i];
        }
    }
    step_edit(c, outer, reorder, NULL);
}
