/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * fuse OUTER INNER: makes one loop of two, one directly inside the other.  It runs over all
 * iterations of both, in the same order.  Rows and their entries become a loop over all entries. */
#include "sched/step.h"

#include <string.h>

typedef struct Fuse {
    const char *inner; /* its name */
    NodeList between;     /* lets and branches between the two */
} Fuse;

/* The inner loop: the last in the block, with lets or a branch before it. */
static Node *inner_of(StepCall *c, Fuse *f, const Node *n)
{
    Node *last = n->nbody > 0 ? n->body[n->nbody - 1] : NULL;

    for (int i = 0; i + 1 < n->nbody; i++) {
        if (n->body[i]->kind != N_LET)
            step_refuse(c, "more than %s is in the outer loop", f->inner);
        tree_append(c->p, &f->between, n->body[i]);
    }
    if (last != NULL && last->kind == N_IF) {
        tree_append(c->p, &f->between, last);
        return inner_of(c, f, last);
    }
    if (last == NULL || !step_is_named(last, f->inner))
        step_refuse(c, "%s is not right inside the other", f->inner);
    return last;
}

static bool needs_any(StepCall *c, const Fuse *f, const Node *outer, const Node *inner)
{
    bool any = tree_mentions(c->p, inner->lo, outer->local) ||
               tree_mentions(c->p, inner->hi, outer->local);

    for (int i = 0; i < f->between.n; i++)
        if (f->between.node[i]->kind == N_LET)
            any = any || tree_mentions(c->p, inner->lo, f->between.node[i]->local) ||
                  tree_mentions(c->p, inner->hi, f->between.node[i]->local);
    return any;
}

/* The axis whose entries the inner loop runs over, all of them when the outer one is done; else
 * NULL. */
static Axis *entries_of(StepCall *c, const Node *outer, const Node *inner)
{
    Expr *lo = inner->lo, *hi = inner->hi, *i = loop_use(c->p, outer->local);
    Buf *start = lo->op == OP_cell ? lo->buf : NULL;
    Axis *a = start != NULL && start->of_k == -1 && start->nfull == 0 ? start->of : NULL;
    Memo memo = { 0 };
    Expr *rows;

    if (a == NULL || a->parent == NULL || lo->arg[0] != i || hi->op != OP_cell ||
        hi->buf != start || hi->arg[0] != tree_plus(c->p, i, ir_int(c->p, 1)))
        return NULL;
    rows = a->parent->extent == X_EXPR && a->parent->parent == NULL ? a->parent->size : NULL;
    rows = rows != NULL ? ir_simplify(c->p, rows, &memo) : NULL;
    return outer->lo->op == OP_int && outer->lo->i == 0 &&
                   (outer->hi == rows || (outer->hi->op == OP_count &&
                                          outer->hi->axis == a->parent))
               ? a
               : NULL;
}

static void add_let(StepCall *c, NodeList *out, const Node *loop, Local *l, Expr *value)
{
    tree_append(c->p, out,
                loop_node(c->p, &(Node){ .kind = N_LET,
                                         .label = loop->label,
                                         .local = l,
                                         .value = value }));
}

/* The body of the fused loop: where its variable is in the two loops, what was between, and the
 * inner body. */
static NodeList body_of(StepCall *c, const Fuse *f, Expr *const value[2], const Node *const loop[2])
{
    Prog *p = c->p;
    NodeList body = { 0 }, out = { 0 };
    int n = f->between.n;

    for (int i = 0; i < loop[1]->nbody; i++)
        tree_append(p, &body, loop[1]->body[i]);
    while (n > 0) {
        Node *b = f->between.node[--n];
        NodeList around = { 0 };

        if (b->kind == N_LET) {
            tree_append(p, &around, b);
            for (int i = 0; i < body.n; i++)
                tree_append(p, &around, body.node[i]);
        } else {
            tree_append(p, &around, tree_with_body(p, b, &body));
        }
        body = around;
    }
    for (int k = 0; k < 2; k++)
        if (value[k]->op != OP_local)
            add_let(c, &out, loop[k], loop[k]->local, value[k]);
    for (int i = 0; i < body.n; i++)
        tree_append(p, &out, body.node[i]);
    return out;
}

static void fuse(StepCall *c, const Spot *at, NodeList *out, void *ctx)
{
    Prog *p = c->p;
    Fuse f = *(Fuse *)ctx;
    const Node *loop[2] = { at->node, inner_of(c, &f, at->node) };
    Axis *a = entries_of(c, loop[0], loop[1]);
    Node n = *loop[0], *done;
    Expr *x, *m = tree_sub(p, loop[1]->hi, loop[1]->lo), *value[2];
    NodeList body;

    if (a == NULL && needs_any(c, &f, loop[0], loop[1]))
        step_refuse(c, "how often the inner loop runs depends on the outer one, and these are not "
                       "all rows and their entries");
    n.local =
        step_local(p, step_join(p, step_join(p, loop_path(loop[0]), "_"), loop_path(loop[1])));
    x = loop_use(p, n.local);
    n.lo = ir_int(p, 0);
    n.over = a != NULL ? loop_over(p, a, NULL) : NULL;
    n.hi = a != NULL ? ir_count(p, a)
                     : tree_times(p, tree_sub(p, loop[0]->hi, loop[0]->lo), m);
    value[0] = a != NULL ? loop_above(p, a, x)
                         : tree_plus(p, loop[0]->lo, ir_op2(p, OP_div, x, m));
    value[1] = a != NULL ? x : tree_plus(p, loop[1]->lo, ir_op2(p, OP_mod, x, m));
    body = body_of(c, &f, value, loop);
    n.body = body.node;
    n.nbody = body.n;
    done = loop_node(p, &n);
    if (a != NULL)
        done = loop_replace(p, done, loop[1]->local, x);
    if (n.how == FOR_PARALLEL) {
        Spot root = { 0, done, NULL, 0 };

        done->how = dep_race(p, done, &root, false) == NULL ? FOR_PARALLEL : FOR_SERIAL;
    }
    tree_append(p, out, done);
}

void step_fuse(StepCall *c)
{
    Fuse f = { .inner = NULL };

    step_count(c, 2, 2);
    f.inner = c->line->word[1];
    step_edit(c, c->line->word[0], fuse, &f);
}
