/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Edits of trees and questions about them: lists of nodes, nodes with other bodies, copies with
 * fresh locals, and whether a tree uses an array or a local. */
#include "tree/tree.h"

void tree_append(Prog *p, NodeList *l, Node *n)
{
    l->node = arena_grow(p->arena, l->node, l->n, &l->cap, sizeof *l->node);
    l->node[l->n++] = n;
}

void tree_append_all(Prog *p, NodeList *l, const NodeList *more)
{
    for (int i = 0; i < more->n; i++)
        tree_append(p, l, more->node[i]);
}

static void see_read(Expr *e, void *ctx)
{
    const Buf **b = ctx;

    if (e->op == OP_cell && e->buf == b[0])
        b[1] = b[0];
}

bool tree_reads(Prog *p, Expr *e, const Buf *b)
{
    const Buf *seen[2] = { b, NULL };
    Memo met = { 0 };

    ir_visit(p, e, see_read, seen, &met);
    return seen[1] != NULL;
}

bool tree_touches(Prog *p, const Node *n, const Buf *b)
{
    const Buf *seen[2] = { b, NULL };
    Memo met = { 0 };

    loop_visit(p, n, see_read, seen, &met);
    return seen[1] != NULL;
}

int tree_slots(Node *n, Expr ***out)
{
    Expr **slot[] = { &n->lo, &n->hi, &n->cond, &n->out, &n->value };
    int k = 0;

    for (size_t i = 0; i < sizeof slot / sizeof *slot; i++)
        if (*slot[i] != NULL)
            out[k++] = slot[i];
    for (int i = 0; i < n->nat; i++) {
        out[k++] = &n->at[i].out;
        out[k++] = &n->at[i].value;
    }
    return k;
}

Node *tree_with_body(Prog *p, const Node *n, const NodeList *body)
{
    Node c = *n;

    c.body = body->node;
    c.nbody = body->n;
    return loop_node(p, &c);
}

Node *tree_around(Prog *p, const Node *n, Node *inner)
{
    NodeList body = { 0 };

    tree_append(p, &body, inner);
    return tree_with_body(p, n, &body);
}

Node *tree_once(Prog *p, const char *label, const NodeList *l)
{
    return tree_with_body(p,
                          &(Node){ .kind = N_FOR,
                                   .label = label,
                                   .lo = ir_int(p, 0),
                                   .hi = ir_int(p, 1),
                                   .local = loop_local(p, "once", T_i64, 1) },
                          l);
}

enum { SMALL_TREE = 32 }; /* nodes that are walked faster than looked up */

static bool uses_in_tree(const Expr *e, const Local *l)
{
    bool uses = e->op == OP_local && e->local == l;

    for (int i = 0; i < e->nargs && !uses; i++)
        uses = uses_in_tree(e->arg[i], l);
    return uses;
}

bool tree_uses(Prog *p, Expr *e, const Local *l, Memo *memo)
{
    Expr *known; /* the local, or e where that does not use it */
    bool uses = false;

    if (e->tree <= SMALL_TREE)
        return uses_in_tree(e, l);
    known = *ir_memo(p, memo, e);
    if (known != NULL)
        return known != e;
    for (int i = 0; i < e->nargs && !uses; i++)
        uses = tree_uses(p, e->arg[i], l, memo);
    *ir_memo(p, memo, e) = uses ? loop_use(p, (Local *)l) : e;
    return uses;
}

bool tree_mentions(Prog *p, Expr *e, const Local *l)
{
    Memo memo = { 0 };

    return e != NULL && tree_uses(p, e, l, &memo);
}

static void see_local(Expr *e, void *ctx)
{
    if (e->op == OP_local)
        *(bool *)ctx = true;
}

bool tree_has_local(Prog *p, Expr *e)
{
    bool found = false;
    Memo met = { 0 };

    ir_visit(p, e, see_local, &found, &met);
    return found;
}

const Node *tree_binder(const Node *n, const Local *l)
{
    const Node *found = n->local == l && l != NULL ? n : NULL;

    for (int i = 0; i < n->nbody && found == NULL; i++)
        found = tree_binder(n->body[i], l);
    return found;
}

static Expr *same(Prog *p, Expr *e, void *ctx)
{
    (void)p;
    (void)ctx;
    return e;
}

Node *tree_rewritten(Prog *p, Node *n, Memo *memo)
{
    return loop_rewrite(p, n, same, NULL, memo);
}

/* Gives each let below n a new local, which the memo tells. */
static Node *rename_lets(Prog *p, const Node *n, Memo *memo)
{
    Node *c = loop_node(p, n);
    NodeList body = { 0 };

    if (n->kind == N_LET) {
        c->local = loop_local(p, n->local->name, n->local->type, n->local->lanes);
        *ir_memo(p, memo, loop_use(p, n->local)) = loop_use(p, c->local);
    }
    for (int i = 0; i < n->nbody; i++)
        tree_append(p, &body, rename_lets(p, n->body[i], memo));
    c->body = body.node;
    return c;
}

static bool has_let(const Node *n)
{
    bool has = n->kind == N_LET;

    for (int i = 0; i < n->nbody; i++)
        has = has || has_let(n->body[i]);
    return has;
}

Node *tree_renamed(Prog *p, Node *n)
{
    Memo memo = { 0 };

    if (!has_let(n))
        return n;
    n = rename_lets(p, n, &memo);
    return tree_rewritten(p, n, &memo);
}
