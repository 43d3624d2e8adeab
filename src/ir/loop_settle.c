/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Drops what loops say that they run over where the checker could not prove it.  A pass that
 * changes the ends of a loop, or moves the loop, need not know whether the claim still holds. */
#include "ir/ir_int.h"
#include "ir/loop.h"

typedef struct Scope {
    Prog *p;
    bool *bound, *assigned; /* by Local.id: in scope; stored to, so that a let is not its value */
    LoopKnown *known;
} Scope;

static bool is_bound(const Scope *s, const Expr *e)
{
    bool bound = e == NULL || e->op != OP_local || s->bound[e->local->id];

    for (int i = 0; bound && e != NULL && i < e->nargs; i++)
        bound = is_bound(s, e->arg[i]);
    return bound;
}

static bool holds(const Scope *s, const Node *n)
{
    return is_bound(s, n->over->row) && is_bound(s, n->over->tile) &&
           loop_over_holds(s->p, s->known, n);
}

static bool has_over(const Node *n)
{
    bool has = n->over != NULL;

    for (int i = 0; i < n->nbody && !has; i++)
        has = has_over(n->body[i]);
    return has;
}

static void note_assigned(Scope *s, const Node *n)
{
    if (n->kind == N_STORE && n->out->op == OP_local)
        s->assigned[n->out->local->id] = true;
    for (int i = 0; i < n->nbody; i++)
        note_assigned(s, n->body[i]);
}

static void bind(Scope *s, const Node *n, bool bound)
{
    s->bound[n->local->id] = bound;
    if (n->kind == N_FOR)
        s->known[n->local->id] = (LoopKnown){ .loop = n };
    else
        s->known[n->local->id].value = s->assigned[n->local->id] ? NULL : n->value;
}

/* The proofs of inner loops see the outer ones as they have been settled. */
static Node *settled(Scope *s, Node *n)
{
    Node **body = arena_array(s->p->arena, n->nbody, sizeof *body), head = *n, *c;
    bool changed = n->over != NULL && !holds(s, n);

    if (changed)
        head.over = NULL;
    head.body = body;
    if (n->kind == N_FOR)
        bind(s, &head, true);
    for (int i = 0; i < n->nbody; i++) {
        c = n->body[i];
        body[i] = settled(s, c);
        if (c->kind == N_LET)
            bind(s, c, true);
        changed = changed || body[i] != c;
    }
    for (int i = 0; i < n->nbody; i++)
        if (n->body[i]->kind == N_LET)
            bind(s, n->body[i], false);
    if (n->kind == N_FOR)
        bind(s, n, false);
    return changed ? loop_node(s->p, &head) : n;
}

void loop_settle(Prog *p, Node **phase, int n)
{
    Scope s = { .p = p };

    for (int i = 0; i < n; i++) {
        if (!has_over(phase[i]))
            continue;
        if (s.known == NULL) {
            s.bound = arena_array(p->arena, p->nlocal, sizeof *s.bound);
            s.assigned = arena_array(p->arena, p->nlocal, sizeof *s.assigned);
            s.known = arena_array(p->arena, p->nlocal, sizeof *s.known);
        }
        note_assigned(&s, phase[i]);
        phase[i] = settled(&s, phase[i]);
    }
}
