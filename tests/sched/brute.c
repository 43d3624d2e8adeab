/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * What is legal, by trying: a nest in another order is built here, whatever it means, and run; a
 * loop that is said to be parallel is run by the interpreter, which looks at every element. */
#include "interp/interp.h"
#include "sched/sched_test.h"
#include "unit/trap.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { MOST = 5, DRAWS = 4, MOST_SHOWN = 5 };

typedef struct Nest { /* loops right inside one another, and what is between */
    Node *loop[MOST];
    Node *between[32];
    int nloop, nbetween;
    Node *inner; /* the innermost loop */
} Nest;

/* From a loop down to `depth` loops; false: more than lets and branches is between. */
static bool nest_of(Node *n, int depth, Nest *t)
{
    *t = (Nest){ .nloop = 0 };
    for (;;) {
        Node *last;

        if (n->kind == N_FOR)
            t->loop[t->nloop++] = n;
        else
            t->between[t->nbetween++] = n;
        if (t->nloop == depth) {
            t->inner = n;
            return true;
        }
        for (int i = 0; i + 1 < n->nbody; i++) {
            if (n->body[i]->kind != N_LET || t->nbetween > 20)
                return false;
            t->between[t->nbetween++] = n->body[i];
        }
        last = n->nbody > 0 ? n->body[n->nbody - 1] : NULL;
        if (last == NULL || (last->kind != N_FOR && last->kind != N_IF) || t->nbetween > 20)
            return false;
        n = last;
    }
}

static bool is_simple(Expr *e)
{
    bool simple = e->op != OP_cell && e->op != OP_find && e->op != OP_above;

    for (int i = 0; i < e->nargs && simple; i++)
        simple = is_simple(e->arg[i]);
    return simple;
}

/* Whether the ends of loop i can be computed when only those before place k of the order are
 * known: they need none that comes later, no let, and, under a branch, no array. */
static bool can_stand(Prog *p, const Nest *t, const int *order, int k)
{
    const Node *n = t->loop[order[k]];
    bool branch = false;

    for (int j = k + 1; j < t->nloop; j++)
        if (tree_mentions(p, n->lo, t->loop[order[j]]->local) ||
            tree_mentions(p, n->hi, t->loop[order[j]]->local))
            return false;
    for (int j = 0; j < t->nbetween; j++) {
        branch = branch || t->between[j]->kind == N_IF;
        if (t->between[j]->kind == N_LET && (tree_mentions(p, n->lo, t->between[j]->local) ||
                                             tree_mentions(p, n->hi, t->between[j]->local)))
            return false;
    }
    return !branch || (is_simple(n->lo) && is_simple(n->hi));
}

/* All between goes inside all loops. */
static Node *permuted(Prog *p, const Nest *t, const int *order)
{
    NodeList body = { 0 };

    for (int i = 0; i < t->inner->nbody; i++)
        tree_append(p, &body, t->inner->body[i]);
    for (int i = t->nbetween - 1; i >= 0; i--) {
        NodeList next = { 0 };

        if (t->between[i]->kind == N_LET) {
            tree_append(p, &next, t->between[i]);
            for (int k = 0; k < body.n; k++)
                tree_append(p, &next, body.node[k]);
        } else {
            tree_append(p, &next, tree_with_body(p, t->between[i], &body));
        }
        body = next;
    }
    for (int k = t->nloop - 1; k >= 0; k--) {
        Node c = *t->loop[order[k]], *n;

        c.how = FOR_SERIAL;
        n = tree_with_body(p, &c, &body);
        body = (NodeList){ 0 };
        tree_append(p, &body, n);
    }
    return body.node[0];
}

static Node *replaced(Prog *p, Node *in, const Node *old, Node *by)
{
    NodeList body = { 0 };

    if (in == old)
        return by;
    for (int i = 0; i < in->nbody; i++)
        tree_append(p, &body, replaced(p, in->body[i], old, by));
    return tree_with_body(p, in, &body);
}

static Prog *with_loop(Arena *a, const Base *b, const Node *old, Node *by)
{
    Prog *p = b->tree, *q = arena_alloc(a, sizeof *q);
    Node **phase = arena_array(a, p->nphase, sizeof *phase);

    for (int i = 0; i < p->nphase; i++) {
        phase[i] = replaced(p, p->phase[i], old, by);
        if (phase[i]->kind == N_FOR && phase[i]->how == FOR_PARALLEL && p->phase[i] == old)
            phase[i]->how = FOR_SERIAL;
    }
    *q = *p;
    q->phase = phase;
    return q;
}

/* What the steps say: the text of a step on a copy of the program. */
static bool is_taken(Arena *a, const Base *b, const char *text, char *why, size_t room)
{
    Prog *p = ir_copy(a, b->tree);
    StepLine *line;
    bool taken;

    step_lines(p, text, &line);
    taken = CATCH(a->err, step_apply(p, line, base_target())) == ST_OK;
    snprintf(why, room, "%.300s", taken ? "" : a->err->msg);
    err_clear(a->err);
    return taken;
}

typedef enum Legal { ILLEGAL, LEGAL, UNSURE } Legal;

static void note(const Base *b, Brute *out, Verdicts *v, Legal legal, bool taken, const char *text,
                 const char *why)
{
    v->legal += legal == LEGAL;
    v->refused += legal == LEGAL && !taken;
    v->illegal += legal == ILLEGAL;
    v->accepted += legal == ILLEGAL && taken;
    v->unsure += legal == UNSURE;
    (void)why; /* for a look at what is refused */
    if (legal != ILLEGAL || !taken || out->shown++ > MOST_SHOWN)
        return;
    printf("---- seed %" PRIu64 ": %s: accepted, and does not compute the same\n%s\n", b->seed, text,
           b->text);
}

/* Whether what the loop does after its first iteration shows. */
static bool matters(Arena *a, const Base *b, const Data *in, const Env *want, const Node *loop)
{
    Prog *p = b->tree;
    Node c = *loop;
    Env *got;

    c.hi = ir_op2(p, OP_min, loop->hi, ir_op2(p, OP_add, loop->lo, ir_int(p, 1)));
    got = base_run(a, b, in, with_loop(a, b, loop, loop_node(p, &c)));
    return got == NULL || !base_same(b, want, got);
}

/* By several drawings of the data; not sure, when a loop is one that none of them shows. */
static Legal is_legal(Arena *a, const Base *b, Prog *other, Node *const *loop, int n)
{
    Rng r = { b->seed };
    bool shown[MOST] = { false };
    int all = 0;

    for (int k = 0; k < DRAWS; k++) {
        Data *in = k == 0 ? b->in : base_redraw(a, b, &r);
        Env *want = base_run(a, b, in, b->tree), *got;

        if (want == NULL)
            continue;
        got = base_run(a, b, in, other);
        if (got == NULL || !base_same(b, want, got))
            return ILLEGAL;
        for (int i = 0; i < n; i++)
            shown[i] = shown[i] || matters(a, b, in, want, loop[i]);
    }
    for (int i = 0; i < n; i++)
        all += shown[i];
    return all == n ? LEGAL : UNSURE;
}

static void try_order(Arena *a, const Base *b, Brute *out, const Nest *t, const int *order)
{
    Text text = { .arena = a };
    char why[400];
    Legal legal;
    bool taken;

    for (int k = 0; k < t->nloop; k++)
        if (!can_stand(b->tree, t, order, k))
            return;
    text_str(&text, "reorder");
    for (int k = 0; k < t->nloop; k++)
        text_f(&text, " %s", base_name(a, t->loop[order[k]]));
    legal = is_legal(a, b, with_loop(a, b, t->loop[0], permuted(b->tree, t, order)), t->loop,
                     t->nloop);
    taken = is_taken(a, b, text.s, why, sizeof why);
    note(b, out, &out->reorder, legal, taken, text.s, why);
}

/* All orders of n loops but the one they have. */
static void try_orders(Arena *a, const Base *b, Brute *out, const Nest *t, int *order, int k)
{
    bool same = true;

    for (int i = 0; i < t->nloop; i++)
        same = same && order[i] == i;
    if (k == t->nloop && !same)
        try_order(a, b, out, t, order);
    for (int i = k; i < t->nloop; i++) {
        int x = order[k];

        order[k] = order[i];
        order[i] = x;
        try_orders(a, b, out, t, order, k + 1);
        order[i] = order[k];
        order[k] = x;
    }
}

static void try_parallel(Arena *a, const Base *b, Brute *out, int i)
{
    Prog *p = b->tree, *q = arena_alloc(a, sizeof *q);
    Node **phase = arena_copy(a, p->phase, (size_t)p->nphase * sizeof *phase);
    Text text = { .arena = a };
    char why[400];
    Legal legal;

    if (phase[i]->kind != N_FOR || phase[i]->lo->op != OP_int || phase[i]->lo->i != 0)
        return;
    phase[i] = loop_node(p, phase[i]);
    phase[i]->how = FOR_PARALLEL;
    *q = *p;
    q->phase = phase;
    legal = is_legal(a, b, q, (Node *const *)&p->phase[i], 1);
    text_f(&text, "parallel %s", base_name(a, phase[i]));
    note(b, out, &out->parallel, legal, is_taken(a, b, text.s, why, sizeof why), text.s, why);
}

/* The iterations of a loop from last to first: the same, if none writes what another does but as a
 * sum. */
static void try_backwards(Arena *a, const Base *b, Brute *out, const Node *loop)
{
    Prog *p = b->tree;
    Expr *v = loop_use(p, loop->local);
    Expr *last = ir_op2(p, OP_sub, ir_op2(p, OP_add, loop->lo, loop->hi), ir_int(p, 1));
    Node *n = loop_replace(p, loop_node(p, loop), loop->local, ir_op2(p, OP_sub, last, v));
    Text text = { .arena = a };
    StepCall c = { .p = p, .phase = (Node **)p->phase, .n = p->nphase };
    StepLine line = { .text = "any order" };
    Spot at;
    const char *why;

    c.line = &line;
    at = step_find(&c, base_name(a, loop));
    if (at.node != loop) /* another of this name */
        return;
    n->lo = loop->lo;
    n->hi = loop->hi;
    why = dep_race(p, p->phase[at.phase], &at, true);
    text_f(&text, "any order of %s", base_name(a, loop));
    note(b, out, &out->backwards, is_legal(a, b, with_loop(a, b, loop, n), (Node *const *)&loop, 1),
         why == NULL, text.s, why);
}

/* Sums that only keep their last term, so that the order counts. */
static Node *ordered(Prog *p, const Node *n)
{
    Node c = *n;
    NodeList body = { 0 };

    for (int i = 0; i < n->nbody; i++)
        tree_append(p, &body, ordered(p, n->body[i]));
    if (n->kind == N_STORE && n->op == A_ADD)
        c.op = A_SET;
    return tree_with_body(p, &c, &body);
}

static void make_ordered(Prog *p)
{
    Node **phase = arena_array(p->arena, p->nphase, sizeof *phase);

    for (int i = 0; i < p->nphase; i++)
        phase[i] = ordered(p, p->phase[i]);
    p->phase = phase;
}

void brute_try(Arena *a, const Base *b, bool in_order, Brute *out)
{
    Node **loop;
    int n, order[MOST] = { 0, 1, 2, 3, 4 };
    Nest t;

    if (b->status != ST_OK)
        return;
    if (in_order)
        make_ordered(b->tree);
    n = base_loops(a, b->tree, &loop);
    for (int i = 0; i < n; i++)
        try_backwards(a, b, out, loop[i]);
    for (int i = 0; i < n; i++)
        for (int depth = 2; depth <= 3; depth++)
            if (nest_of(loop[i], depth, &t))
                try_orders(a, b, out, &t, order, 0);
    for (int i = 0; i < b->tree->nphase; i++)
        try_parallel(a, b, out, i);
}
