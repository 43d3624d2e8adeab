/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Straight-line code: the terms that one element gets are added up in a register, by fused
 * multiply-adds, and reach memory once.  (What is read twice is one expression already.) */
#include "lower/lower_int.h"

enum { MOST_DEPTH = 250 }; /* of a sum, which nests; more terms are another store */

static bool can_begin(const Node *n)
{
    return n->kind == N_STORE && (n->op == A_ADD || n->op == A_SET) && n->nat == 0 &&
           n->out->op == OP_cell && n->out->type >= T_f32 && ir_is_float(n->value);
}

static bool can_join(const Node *n, const Node *first, const Expr *sum)
{
    return n->op == A_ADD && n->out == first->out &&
           (n->value->type == sum->type || sum->op == OP_real);
}

/* Whether the two stores may trade places: sums into one element, or certainly different ones. */
static bool may_pass(const Node *a, const Node *b)
{
    return a->out->buf != b->out->buf || (a->out == b->out && b->op == A_ADD) ||
           lower_differ(a->out->arg[0], b->out->arg[0]);
}

static Expr *sum_of(Prog *p, Expr *sum, Expr *term)
{
    if (sum == NULL)
        return term;
    if (term->op == OP_mul && ir_is_float(term) && term->type == sum->type)
        return ir_node(p, OP_fma, (Expr *[]){ term->arg[0], term->arg[1], sum }, 3);
    return ir_op2(p, OP_add, sum, term);
}

/* Joins to body[i] the later stores of the same element, as far as nothing stands between: no
 * store of what may be the same element, and none that reads what the phase writes. */
static Node *join_from(Prog *p, Node *phase, Node *const *body, int n, int i, bool *done)
{
    Memo kept = { 0 };
    Node c = *body[i];
    Expr *sum = c.value;

    for (int k = i + 1; k < n; k++) {
        if (!can_begin(body[k]) || !may_pass(body[i], body[k]) ||
            !lower_is_kept(p, phase, body[k]->value, &kept))
            break;
        if (!done[k] && can_join(body[k], body[i], sum)) {
            if (sum->depth >= MOST_DEPTH)
                break;
            sum = sum_of(p, sum, body[k]->value);
            done[k] = true;
        }
    }
    c.value = sum;
    return loop_node(p, &c);
}

static Node *block(Prog *p, Node *phase, Node *n)
{
    Node c = *n;
    NodeList body = { 0 };
    bool *done = arena_array(p->arena, n->nbody, sizeof *done);

    for (int i = 0; i < n->nbody; i++)
        if (can_begin(n->body[i])) {
            if (!done[i])
                lower_append(p, &body, join_from(p, phase, n->body, n->nbody, i, done));
        } else {
            lower_append(p, &body, block(p, phase, n->body[i]));
        }
    c.body = body.node;
    c.nbody = body.n;
    return loop_node(p, &c);
}

void lower_blocks(Kernel *k)
{
    for (int i = 0; i < k->n; i++)
        k->phase[i] = block(k->p, k->phase[i], k->phase[i]);
    lower_done(k, k->p->stage);
}
