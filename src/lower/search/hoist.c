/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Hoists checks and searches.  A condition that was tested already is not tested again.  A test
 * or search that does not change in a loop moves in front of the loop.  Inner loops then contain
 * stores only. */
#include "lower/facts/facts_int.h"

typedef struct Tests {
    Prog *p;
    const Node *phase;
    Invariants kept; /* see lower_is_invariant */
    Memo known;    /* conditions that hold here, to themselves */
    Expr **learnt; /* the same in order, so that they can be forgotten */
    int n, cap;
    LocalSet *moving; /* what changes in the loop that is being looked at */
} Tests;

static void learn(Tests *t, Expr *cond)
{
    if (!lower_is_invariant(t->p, t->phase, cond, &t->kept))
        return;
    if (cond->op == OP_and) {
        learn(t, cond->arg[0]);
        learn(t, cond->arg[1]);
    }
    *ir_memo(t->p, &t->known, cond) = cond;
    t->learnt = arena_grow(t->p->arena, t->learnt, t->n, &t->cap, sizeof *t->learnt);
    t->learnt[t->n++] = cond;
}

static void forget(Tests *t, int from)
{
    while (t->n > from)
        *ir_memo(t->p, &t->known, t->learnt[--t->n]) = NULL;
}

static bool is_known(Tests *t, Expr *cond)
{
    if (*ir_memo(t->p, &t->known, cond) != NULL)
        return true;
    if (cond->op == OP_and)
        return is_known(t, cond->arg[0]) && is_known(t, cond->arg[1]);
    return cond->op == OP_or && (is_known(t, cond->arg[0]) || is_known(t, cond->arg[1]));
}

static void add_check(Tests *t, const Node *n, NodeList *out)
{
    if (is_known(t, n->cond))
        return;
    learn(t, n->cond);
    tree_append(t->p, out, loop_node(t->p, n));
}

static bool is_moving(Tests *t, Expr *e, Memo *fixed)
{
    if (*ir_memo(t->p, fixed, e) != NULL)
        return false;
    if (e->op == OP_local && lower_has_in(t->moving, e->local))
        return true;
    for (int i = 0; i < e->nargs; i++)
        if (is_moving(t, e->arg[i], fixed))
            return true;
    *ir_memo(t->p, fixed, e) = e;
    return false;
}

/* A check or a search of the loop's body as it stands before the loop: where the loop does not run
 * nothing is tested, and nothing is found. */
static Node before_loop(Tests *t, const Node *loop, const Node *n)
{
    Prog *p = t->p;
    bool runs = loop->lo->op == OP_int && loop->hi->op == OP_int && loop->lo->i < loop->hi->i;
    Expr *go = ir_op2(p, OP_lt, loop->lo, loop->hi);
    Node c = *n;

    if (!runs && n->kind == N_CHECK)
        c.cond = ir_op2(p, OP_or, ir_op1(p, OP_not, go), n->cond);
    else if (!runs)
        c.value = ir_node(p, OP_select, (Expr *[]){ go, n->value, ir_int(p, -1) }, 3);
    return c;
}

/* Moves what does not change out of a loop, in its order; the rest is left in body. */
static void hoist(Tests *t, const Node *loop, NodeList *body, NodeList *out)
{
    NodeList left = { 0 };
    Memo fixed = { 0 };

    lower_put_in(t->moving, loop->local);
    for (int i = 0; i < body->n; i++) {
        Node *n = body->node[i], moved;
        Expr *e = n->kind == N_CHECK ? n->cond : n->kind == N_LET ? n->value : NULL;

        if (e == NULL || is_moving(t, e, &fixed) ||
            !lower_is_invariant(t->p, t->phase, e, &t->kept)) {
            if (n->kind == N_LET)
                lower_put_in(t->moving, n->local);
            tree_append(t->p, &left, n);
            continue;
        }
        moved = before_loop(t, loop, n);
        if (n->kind == N_CHECK)
            add_check(t, &moved, out);
        else
            tree_append(t->p, out, loop_node(t->p, &moved));
    }
    *body = left;
}

static NodeList check_list(Tests *, Node *const *n, int count);

static void check_body(Tests *t, const Node *n, NodeList *out)
{
    int mark = t->n;
    NodeList body;
    Node c = *n;

    if (n->kind == N_IF)
        learn(t, n->cond);
    body = check_list(t, n->body, n->nbody);
    forget(t, mark);
    if (n->kind == N_FOR && n->how == FOR_SERIAL)
        hoist(t, n, &body, out);
    c.body = body.node;
    c.nbody = body.n;
    if (body.n > 0)
        tree_append(t->p, out, loop_node(t->p, &c));
}

static NodeList check_list(Tests *t, Node *const *n, int count)
{
    NodeList out = { 0 };

    for (int i = 0; i < count; i++) {
        if (n[i]->kind == N_CHECK)
            add_check(t, n[i], &out);
        else if (n[i]->kind == N_FOR || n[i]->kind == N_IF || n[i]->kind == N_BUILD)
            check_body(t, n[i], &out);
        else
            tree_append(t->p, &out, n[i]);
    }
    return out;
}

void lower_hoist(Kernel *k)
{
    LocalSet moving = { 0 };
    int n = 0;

    for (int i = 0; i < k->n; i++) {
        Tests t = { .p = k->p, .phase = k->phase[i], .moving = &moving };
        NodeList out;
        Node *phase;

        lower_empty_set(k->p, &moving);
        out = check_list(&t, &k->phase[i], lower_has_registers(k->phase[i]) ? 0 : 1);
        phase = lower_has_registers(k->phase[i]) ? k->phase[i] : lower_phase(k->p, &out);
        if (phase != NULL)
            k->phase[n++] = phase;
    }
    k->n = n;
    lower_done(k, k->p->stage);
}
