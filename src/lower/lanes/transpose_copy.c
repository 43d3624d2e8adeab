/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Vectorises copies that transpose.  In
 *
 *     for m in 0..3
 *         for u in 0..n
 *             Z[u * 3 + m] = X[m * n + u]
 *
 * neither loop alone has both its loads and its stores side by side.  With the short loop
 * unrolled inside, iterations of the other loop load or store everything between their
 * neighbours, and run in lanes: registers of neighbours are transposed (emit/emit_stride.c). */
#include "lower/lanes/lanes_int.h"

static bool is_short(const Node *n)
{
    return n->kind == N_FOR && n->how == FOR_SERIAL && n->lanes <= 1 && n->nbody == 1 &&
           lower_is_known(n) && n->lo->i == 0 && n->hi->i >= 2 && n->hi->i <= LOOP_WINDOW;
}

/* A loop of stores that read nothing which is stored to. */
static bool is_copy(Prog *p, const Node *n)
{
    Touches t;
    bool copy = n->kind == N_FOR && n->how == FOR_SERIAL && n->lanes <= 1 && n->nbody > 0 &&
                lower_is_known(n);

    for (int i = 0; i < n->nbody && copy; i++) {
        const Node *s = n->body[i];

        copy = s->kind == N_STORE && s->op == A_SET && s->nat == 0 && s->out->op == OP_cell &&
               (s->out->buf->type == T_f32 || s->out->buf->type == T_f64);
    }
    if (!copy)
        return false;
    t = lower_touched(p, n);
    return !lower_does_read(&t, &t);
}

/* Constants that the short loop left in an index become one. */
static Expr *plain_index(Prog *p, Expr *e, void *ctx)
{
    const Node *loop = ctx;
    LoopIndex x;
    Expr *at;

    if (e->op != OP_cell || !loop_index(e->arg[0], loop->local, &x))
        return e;
    at = lower_index(p, &x, loop_use(p, loop->local));
    return loop_cell(p, e->buf, &at, 1, e->k);
}

static Node *written_out(Prog *p, const Node *n, const Node *in)
{
    NodeList body = { 0 };

    for (int64_t m = 0; m < n->hi->i; m++)
        for (int i = 0; i < in->nbody; i++) {
            Node *s = loop_replace(p, in->body[i], n->local, ir_int(p, m));
            Memo memo = { 0 };

            tree_append(p, &body, loop_rewrite(p, s, plain_index, (void *)in, &memo));
        }
    return tree_with_body(p, in, &body);
}

/* Whether all that the stores leave between their elements others store to. */
static bool can_turn(Prog *p, const Node *n)
{
    LoopIndex *x = arena_array(p->arena, n->nbody, sizeof *x);
    int *window = arena_array(p->arena, n->nbody, sizeof *window);
    bool can = true;

    for (int i = 0; i < n->nbody && can; i++) {
        const Node *s = n->body[i];

        can = s->out->buf->type == n->body[0]->out->buf->type &&
              loop_index_of(s->out, n->local, &x[i]) && x[i].stride >= 1 &&
              lower_can_step(p, s->value, n->local, s->out->buf->type);
    }
    if (can)
        loop_windows(p, x, n->nbody, window);
    for (int i = 0; i < n->nbody && can; i++)
        can = x[i].stride == 1 || window[i] >= 0;
    return can;
}

Node *lower_transposed_copy(Prog *p, const Node *n, const VectorUnit *unit)
{
    Node *all = is_short(n) && is_copy(p, n->body[0]) ? written_out(p, n, n->body[0]) : NULL;

    if (all == NULL || !can_turn(p, all))
        return NULL;
    all->how = FOR_VECTOR;
    all->lanes = lanes_of(unit, all->body[0]->out->buf->type);
    return all;
}
