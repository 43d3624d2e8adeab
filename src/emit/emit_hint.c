/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Trees for a language without prefetches: hints go, and lets that only they have used. */
#include "emit/emit_int.h"

static bool has_hint(const Node *n)
{
    bool has = n->kind == N_AHEAD;

    for (int i = 0; i < n->nbody && !has; i++)
        has = has_hint(n->body[i]);
    return has;
}

static void see_local(Expr *e, void *used)
{
    if (e->op == OP_local)
        ((bool *)used)[e->local->id] = true;
}

/* The tree without hints, and without lets that are not used. */
static Node *without(Prog *p, Node *n, const bool *used)
{
    Node head = *n, **body = arena_array(p->arena, n->nbody, sizeof *body);
    bool changed = false;

    head.body = body;
    head.nbody = 0;
    for (int i = 0; i < n->nbody; i++) {
        const Node *c = n->body[i];

        if (c->kind != N_AHEAD && (c->kind != N_LET || used[c->local->id])) {
            body[head.nbody] = without(p, n->body[i], used);
            changed = changed || body[head.nbody] != c;
            head.nbody++;
        }
    }
    return changed || head.nbody < n->nbody ? loop_node(p, &head) : n;
}

Node *emit_without_hints(Prog *p, Node *n)
{
    bool *used = arena_array(p->arena, p->nlocal, sizeof *used);
    Node *last;

    if (!has_hint(n))
        return n;
    for (int i = 0; i < p->nlocal; i++)
        used[i] = true;
    do {
        Memo met = { 0 };

        last = n;
        n = without(p, n, used);
        for (int i = 0; i < p->nlocal; i++)
            used[i] = false;
        loop_visit(p, n, see_local, used, &met);
    } while (n != last);
    return n;
}
