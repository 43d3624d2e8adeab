/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Interchanges a loop with the loop of sums inside it, which then runs outside, in lanes:
 *
 *     for u in U                          vector for w in W
 *         for w in W                          let z = -0
 *             Z[w] += X[u] * Wt[u, w]   =>    for u in U
 *                                                 z += X[u] * Wt[u, w]
 *                                             Z[w] += z
 *
 * The elements that the inner loop adds to are registers, stored once.  It refuses where rows that
 * an iteration gathers would no longer be read from end to end. */
#include "lower/algebra/factor_int.h"

/* Registers of each sum at once: as many as the loop fills, and as there are for all of them. */
static int registers_of(const Segments *s, const Path *path)
{
    int most = tree_power_below(s->how.registers / path->f.n);
    int full = tree_power_below((int64_t)lower_factor_turns(s, path->loop));

    return most < full ? most : full;
}

/* Whether rows that each iteration of the phase reads for itself, from far away, are still read
 * from end to end after the interchange: the whole row is in registers at once. */
static bool reads_in_order(const Segments *s, const Path *path)
{
    for (int i = 0; i < path->nmoving; i++)
        if (path->moving[i]->op == OP_cell && !loop_writes(s->phase, path->moving[i]->buf) &&
            tree_mentions(s->p, path->moving[i], s->phase->local))
            return lower_factor_turns(s, path->loop) == registers_of(s, path);
    return true;
}

/* Whether the elements that a loop inside n adds to may stay in registers while n runs. */
static bool may_interchange(Segments *s, const Node *n, Path *path)
{
    const Node *in = n->nbody > 0 ? n->body[0] : n;
    bool known = n->kind == N_FOR && n->lo->op == OP_int && n->hi->op == OP_int;
    LoopIndex x;

    if (n->kind != N_FOR || n->how != FOR_SERIAL || n->nbody != 1 ||
        !lower_factor_path(s, in, path) || tree_mentions(s->p, in->lo, n->local) ||
        tree_mentions(s->p, in->hi, n->local) ||
        !(lower_factor_strided(path) || (*s->turned && reads_in_order(s, path))))
        return false;
    for (int i = 0; i < path->f.n; i++)
        if (!path->f.sum[i].moves || tree_mentions(s->p, path->f.sum[i].cell, n->local) ||
            (!(known && n->lo->i < n->hi->i) &&
             !lower_is_bound_inside(s->p, s->binders, path->f.sum[i].cell)))
            return false;
    for (int i = 0; i < path->nmoving; i++)
        if (path->moving[i]->op == OP_cell && !loop_writes(s->phase, path->moving[i]->buf) &&
            !(loop_index(path->moving[i]->arg[0], in->local, &x) && x.stride == 1))
            return false;
    return true;
}

static Expr *times(Prog *p, Expr *a, Expr *b)
{
    return a == NULL ? b : b == NULL ? a : ir_op2(p, OP_mul, a, b);
}

/* Of a factor, what a loop around changes; the rest goes to *outer. */
static Expr *changed_by(Prog *p, Expr *c, Local *loop, Expr **outer)
{
    if (c == NULL || !tree_mentions(p, c, loop)) {
        *outer = times(p, *outer, c);
        return NULL;
    }
    if (c->op != OP_mul)
        return c;
    return times(p, changed_by(p, c->arg[0], loop, outer), changed_by(p, c->arg[1], loop, outer));
}

/* What all terms of a sum have in common, and neither loop changes, is multiplied once. */
static Expr *outer_factor(Segments *s, const Node *n, Sum *sum)
{
    Expr *outer = NULL;

    if (sum->poly.n == 1)
        sum->poly.term[0].c = changed_by(s->p, sum->poly.term[0].c, n->local, &outer);
    return outer;
}

/* A sum of an interchanged loop: its register, which may be that of an equal sum, and its store. */
static void put_sum(Group *g, const Sum *sum, Expr *outer, Memo *sums, NodeList *before,
                    NodeList *inner)
{
    Prog *p = g->s->p;
    Expr **held = ir_memo(p, sums, sum->value);

    if (*held == NULL) {
        *held = loop_use(p, lower_factor_register(g, before, sum, g->lanes, lower_factor_begin(p)));
        lower_factor_store(g, inner, sum, *held, sum->value);
    }
    lower_factor_store(g, &g->after, sum, sum->cell, times(p, outer, *held));
}

/* The inner loop comes out, in lanes; the elements that it adds to are registers inside. */
bool lower_interchange(Segments *s, const Node *n)
{
    Path path, *one = &path;
    Group g = { .s = s, .path = &one, .n = 1 };
    NodeList body = { 0 }, inner = { 0 };
    Memo sums = { 0 };
    Expr **outer;
    Node loop;

    if (!may_interchange(s, n, &path))
        return false;
    g.lanes = lower_factor_lanes(&g);
    if (g.lanes == 0)
        return false;
    s->let = (Memo){ 0 };
    *s->turned = true;
    outer = arena_array(s->p->arena, path.f.n, sizeof *outer);
    for (int i = 0; i < path.f.n; i++)
        outer[i] = outer_factor(s, n, &path.f.sum[i]);
    path.draft = lower_draft(s->p, &path.f, lower_factor_turns(s, path.loop));
    lower_write_draft(path.draft, lower_factor_fixed, &g);
    tree_append_all(s->p, &inner, &g.before);
    for (int i = 0; i < path.f.n; i++)
        put_sum(&g, &path.f.sum[i], outer[i], &sums, &body, &inner);
    tree_append(s->p, &body, tree_with_body(s->p, n, &inner));
    tree_append_all(s->p, &body, &g.after);
    loop = *path.loop;
    loop.how = FOR_VECTOR;
    loop.lanes = g.lanes;
    loop.regs = registers_of(s, &path);
    tree_append(s->p, &s->out, tree_with_body(s->p, &loop, &body));
    return true;
}
