/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Finds loops by name, and rebuilds trees with some loops replaced. */
#include "sched/step.h"

#include <string.h>

const char *step_join(Prog *p, const char *a, const char *b)
{
    Text t = { .arena = p->arena };

    text_f(&t, "%s%s", a, b);
    return t.s;
}

bool step_is_named(const Node *n, const char *name)
{
    size_t k = n->label != NULL ? strlen(n->label) : 0;

    return n->kind == N_FOR && k > 0 && strncmp(name, n->label, k) == 0 && name[k] == '.' &&
           strcmp(name + k + 1, loop_path(n)) == 0;
}

typedef struct Walk { /* of one name through the phases */
    StepCall *call;
    const char *name;
    StepEdit *fn;
    void *ctx;
    Node *around[LIMIT_STEP_NEST];
    int phase, depth;
    bool found, changed;
} Walk;

static void edit(Walk *w, Node *n, NodeList *out);

static Node *edit_body(Walk *w, Node *n)
{
    NodeList body = { 0 };
    bool outer = w->changed;

    if (w->depth == LIMIT_STEP_NEST)
        step_refuse(w->call, "blocks are nested more than %d deep", LIMIT_STEP_NEST);
    w->around[w->depth++] = n;
    w->changed = false;
    for (int i = 0; i < n->nbody; i++)
        edit(w, n->body[i], &body);
    w->depth--;
    n = w->changed ? tree_with_body(w->call->p, n, &body) : n;
    w->changed = w->changed || outer;
    return n;
}

static void edit(Walk *w, Node *n, NodeList *out)
{
    if (step_is_named(n, w->name)) {
        Spot s = { w->phase, n, w->around, w->depth };

        w->found = w->changed = true;
        w->fn(w->call, &s, out, w->ctx);
        return;
    }
    tree_append(w->call->p, out, edit_body(w, n));
}

/* Several nodes in the place of a phase are one that runs them all. */
static Node *once(Prog *p, const NodeList *l, const Node *phase)
{
    NodeList body = { 0 };

    for (int i = 0; i < l->n; i++) {
        Node c = *l->node[i];

        c.how = c.how == FOR_PARALLEL ? FOR_SERIAL : c.how;
        c.scheduled = false;
        tree_append(p, &body, loop_node(p, &c));
    }
    return tree_once(p, phase->label, &body);
}

/* Loops in the place of a phase that was one stay phases, one after the other. */
static bool are_phases(const NodeList *l, const Node *phase)
{
    bool all = phase->kind == N_FOR && phase->how == FOR_PARALLEL;

    for (int i = 0; i < l->n; i++)
        all = all && l->node[i]->kind == N_FOR && l->node[i]->how == FOR_PARALLEL;
    return all;
}

static void put_phase(StepCall *c, NodeList *to, const NodeList *l, const Node *phase)
{
    bool apart = l->n == 1 || are_phases(l, phase);

    for (int i = 0; i < l->n && apart; i++) {
        Node *n = loop_node(c->p, l->node[i]);

        n->scheduled = true;
        tree_append(c->p, to, n);
    }
    if (!apart && l->n > 0) {
        tree_append(c->p, to, once(c->p, l, phase));
        to->node[to->n - 1]->scheduled = true;
    }
}

void step_edit(StepCall *c, const char *name, StepEdit *fn, void *ctx)
{
    Walk w = { .call = c, .name = name, .fn = fn, .ctx = ctx };
    NodeList to = { 0 };

    for (int i = 0; i < c->n; i++) {
        NodeList list = { 0 };

        w.phase = i;
        w.changed = false;
        edit(&w, c->phase[i], &list);
        if (w.changed)
            put_phase(c, &to, &list, c->phase[i]);
        else
            tree_append(c->p, &to, c->phase[i]);
    }
    if (!w.found)
        step_refuse(c, "there is no loop %s%s", name,
                    c->p->nphase == 0 ? "" : "; `weft explain` lists the loops");
    c->phase = to.node;
    c->n = to.n;
}

static bool has_loop(const Node *n, const char *name)
{
    bool has = step_is_named(n, name);

    for (int i = 0; i < n->nbody && !has; i++)
        has = has_loop(n->body[i], name);
    return has;
}

void step_edit_tails(StepCall *c, const Node *loop, StepEdit *fn, void *ctx)
{
    const char *label = loop->label;
    bool any;

    do {
        const char *name;

        label = step_join(c->p, label, ".tail");
        name = step_join(c->p, step_join(c->p, label, "."), loop_path(loop));
        any = false;
        for (int i = 0; i < c->n && !any; i++)
            any = has_loop(c->phase[i], name);
        if (any)
            step_edit(c, name, fn, ctx);
    } while (any);
}

static void keep_spot(StepCall *c, const Spot *s, NodeList *out, void *ctx)
{
    Spot *to = ctx;

    tree_append(c->p, out, s->node);
    if (to->node != NULL)
        return;
    *to = *s;
    to->around = arena_copy(c->p->arena, s->around, (size_t)s->depth * sizeof *s->around);
}

Spot step_find(StepCall *c, const char *name)
{
    StepCall try = *c; /* nothing of it is kept */
    Spot s = { 0 };

    step_edit(&try, name, keep_spot, &s);
    return s;
}

void step_bodies(Prog *p, const Node *loop, Expr *by, NodeList *out)
{
    Node *turn = loop_fresh(p, loop);

    turn = step_simplified(p, loop_replace(p, turn, turn->local, by));
    for (int i = 0; i < turn->nbody; i++)
        tree_append(p, out, turn->body[i]);
}

/* k.0 is k0, k.1.0 is k1_0. */
Local *step_local(Prog *p, const char *path)
{
    Text name = { .arena = p->arena };
    bool number = false;
    Local *l;

    for (const char *s = path; *s != 0; s++)
        if (*s != '.')
            text_char(&name, *s);
        else if (number)
            text_char(&name, '_');
        else
            number = true;
    l = loop_local(p, name.s, T_i64, 1);
    l->path = path;
    return l;
}

static bool is_read(Expr *e, const void *ctx)
{
    (void)ctx;
    return e->op == OP_cell || e->op == OP_find || e->op == OP_above;
}

bool step_reads(Prog *p, Expr *e)
{
    return ir_any(p, e, is_read, NULL);
}

int64_t step_trips(const Node *loop)
{
    int64_t n;

    if (loop->lo->op != OP_int || loop->hi->op != OP_int || int_sub(loop->hi->i, loop->lo->i, &n))
        return -1;
    return n < 0 ? 0 : n;
}

bool step_runs(const Node *loop)
{
    return step_trips(loop) > 0;
}

bool step_has(const Node *n, NodeKind kind)
{
    bool has = n->kind == kind;

    for (int i = 0; i < n->nbody && !has; i++)
        has = step_has(n->body[i], kind);
    return has;
}

/* Constants of an integer sum come together. */
static Expr *simpler(Prog *p, Expr *e, void *ctx)
{
    e = ir_simplify(p, e, ctx);
    return e->op == OP_add && e->type == T_i64 ? tree_plus(p, e->arg[0], e->arg[1]) : e;
}

Node *step_simplified(Prog *p, Node *n)
{
    Memo memo = { 0 }, known = { 0 };

    return loop_rewrite(p, n, simpler, &known, &memo);
}
