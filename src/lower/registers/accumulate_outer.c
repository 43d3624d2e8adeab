/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Accumulates over outer loops.  An outer loop that adds one value per iteration to the same
 * element, the value being the result of its inner loops, keeps that element in a register and
 * stores it once, after the loop.  So no iteration waits for the store of the one before.  Needs
 * flat loops.  Innermost loops are left to registers/accumulate.c and lanes/vectorize.c. */
#include "lower/facts/facts_int.h"

enum { LIMIT_SUMS = 16 };

typedef struct Keep {
    Prog *p;
    const Node *phase;
    const Node *loop;
    const Node *store[LIMIT_SUMS]; /* the first to each element, */
    Local *local[LIMIT_SUMS];      /* and its register */
    int n;
} Keep;

static bool is_float_sum(const Node *n)
{
    return n->kind == N_STORE && n->op == A_ADD && n->nat == 0 && n->out->op == OP_cell &&
           (n->out->buf->type == T_f32 || n->out->buf->type == T_f64);
}

/* Whether the index is the same in all iterations. */
static bool is_fixed(const Keep *k, Expr *index)
{
    for (int i = 0; i < k->loop->nbody; i++)
        if (k->loop->body[i]->kind == N_LET &&
            tree_mentions(k->p, index, k->loop->body[i]->local))
            return false;
    return !tree_mentions(k->p, index, k->loop->local);
}

/* Whether nothing below n reads the array, or stores to it but by sums that are children of the
 * loop, to elements that are the same one or surely others. */
static bool is_alone(const Keep *k, const Node *n, const Node *sum, bool child)
{
    Expr *part[] = { n->lo, n->hi, n->cond, n->value };
    Buf *buf = sum->out->buf;
    bool alone = true;

    for (size_t i = 0; i < sizeof part / sizeof *part && alone; i++)
        alone = part[i] == NULL || !tree_reads(k->p, part[i], buf);
    if (n->kind == N_STORE && n->out->op == OP_cell && n->out->buf == buf)
        alone = alone && child && is_float_sum(n) &&
                (n->out == sum->out || tree_differ(n->out->arg[0], sum->out->arg[0]));
    for (int i = 0; i < n->nbody && alone; i++)
        alone = is_alone(k, n->body[i], sum, n == k->loop);
    return alone && n->nat == 0;
}

/* The element is there although the loop may not run. */
static bool is_there(const Keep *k, Expr *cell)
{
    const Node *n = k->loop;

    return (n->lo->op == OP_int && n->hi->op == OP_int && n->lo->i < n->hi->i) ||
           lower_is_inside(k->p, k->phase, cell);
}

static int place_of(const Keep *k, const Node *n)
{
    int at = 0;

    while (at < k->n && !(n->kind == N_STORE && k->store[at]->out == n->out))
        at++;
    return at;
}

static bool has_loop(const Node *n)
{
    bool has = false;

    for (int i = 0; i < n->nbody && !has; i++)
        has = n->body[i]->kind == N_FOR;
    return has;
}

static void find_sums(Keep *k)
{
    for (int i = 0; i < k->loop->nbody && has_loop(k->loop); i++) {
        const Node *n = k->loop->body[i];

        if (is_float_sum(n) && k->n < LIMIT_SUMS && place_of(k, n) == k->n &&
            is_fixed(k, n->out->arg[0]) && is_there(k, n->out) && is_alone(k, k->loop, n, false)) {
            k->local[k->n] = loop_local(k->p, NULL, n->out->buf->type, 1);
            k->store[k->n++] = n;
        }
    }
}

/* A register, what the loop adds to it, and what that gives. */
static void put_kept(Keep *k, NodeList *out)
{
    Prog *p = k->p;
    NodeList body = { 0 };

    for (int i = 0; i < k->n; i++)
        tree_append(p, out,
                     loop_node(p, &(Node){ .kind = N_LET,
                                           .label = k->store[i]->label,
                                           .local = k->local[i],
                                           .value = ir_real(p, -0.0) }));
    for (int i = 0; i < k->loop->nbody; i++) {
        Node c = *k->loop->body[i];
        int at = place_of(k, &c);

        if (at < k->n)
            c.out = loop_use(p, k->local[at]);
        tree_append(p, &body, loop_node(p, &c));
    }
    tree_append(p, out, tree_with_body(p, k->loop, &body));
    for (int i = 0; i < k->n; i++) {
        Node c = *k->store[i];

        c.value = loop_use(p, k->local[i]);
        tree_append(p, out, loop_node(p, &c));
    }
}

static NodeList keep(Prog *p, const Node *phase, Node *const *n, int count)
{
    NodeList out = { 0 };

    for (int i = 0; i < count; i++) {
        NodeList body = keep(p, phase, n[i]->body, n[i]->nbody);
        Keep k = { .p = p, .phase = phase, .loop = tree_with_body(p, n[i], &body) };

        if (k.loop->kind == N_FOR && k.loop->how == FOR_SERIAL && k.loop->lanes <= 1)
            find_sums(&k);
        put_kept(&k, &out);
    }
    return out;
}

void lower_accumulate_outer(Kernel *k)
{
    for (int i = 0; i < k->n; i++) {
        NodeList body = keep(k->p, k->phase[i], k->phase[i]->body, k->phase[i]->nbody);

        k->phase[i] = tree_with_body(k->p, k->phase[i], &body);
    }
    lower_done(k, k->p->stage);
}
