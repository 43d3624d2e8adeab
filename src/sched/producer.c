/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Finds the phases that compute a temporary, and the code that computes one element of it: their
 * loops without those that number the elements.  For compute_at and compute_inline. */
#include "sched/step.h"

#include <string.h>

static void check_nodes(StepCall *c, const Node *n, const Buf *b)
{
    if (n->kind == N_CHECK)
        step_refuse(c, "%s is checked as it is computed, and the check has to stay", b->name);
    if (n->kind == N_BUILD || n->kind == N_INSERT || n->nat > 0 || n->lanes > 1)
        step_refuse(c, "%s is not made by plain loops and stores", b->name);
    if (n->kind == N_STORE && n->out->op == OP_cell && n->out->buf != b)
        step_refuse(c, "%s is made together with %s", b->name, n->out->buf->name);
    for (int i = 0; i < n->nbody; i++)
        check_nodes(c, n->body[i], b);
}

typedef struct Only {
    const Buf *buf;
    Expr *cell;
    bool many;
} Only;

static void see_cell(Expr *e, void *ctx)
{
    Only *o = ctx;

    if (e->op != OP_cell || e->buf != o->buf)
        return;
    o->many = o->many || (o->cell != NULL && o->cell != e);
    o->cell = e;
}

Expr *step_only_cell(Prog *p, const Node *n, const Buf *b, bool *many)
{
    Only o = { .buf = b };
    Memo met = { 0 };

    loop_visit(p, n, see_cell, &o, &met);
    *many = o.many;
    return o.cell;
}

/* A loop that all of its iterations have alike. */
static bool is_over_all(const Node *n, Expr *extent)
{
    return n != NULL && n->kind == N_FOR && n->lo->op == OP_int && n->lo->i == 0 &&
           n->hi == extent;
}

typedef struct Map { /* variables of loops that go, and what stands for them */
    StepCall *call;
    const Node *phase, *user; /* of the producer; of whoever wants the element */
    const Local *local[IR_MAX_FULL * 2];
    Expr *by[IR_MAX_FULL * 2];
    int n;
} Map;

static bool is_mapped(const Map *m, const Local *l)
{
    for (int i = 0; i < m->n; i++)
        if (m->local[i] == l)
            return true;
    return false;
}

/* The row of an entry: that of the user's loop, if it is over the entries of a row. */
static Expr *row_of(Map *m, Axis *a, Expr *pos)
{
    const Node *n = step_binder(m->user, pos);

    if (n != NULL && step_is_over_entries(m->call->p, n) && n->lo->buf->of == a)
        return n->lo->arg[0];
    return loop_above(m->call->p, a, pos);
}

/* The variable is `by` from now on; false: its loop does not go over all there is. */
static bool map(Map *m, Expr *var, Expr *by, Expr *extent)
{
    const Node *n = step_binder(m->phase, var);
    Axis *a;

    if (n == NULL || n->kind != N_FOR || is_mapped(m, var->local) ||
        m->n == (int)(sizeof m->by / sizeof *m->by))
        return false;
    m->local[m->n] = var->local;
    m->by[m->n++] = by;
    if (!step_is_over_entries(m->call->p, n))
        return is_over_all(n, extent);
    a = n->lo->buf->of;
    return ir_count(m->call->p, a) == extent && a->parent != NULL &&
           map(m, n->lo->arg[0], row_of(m, a, by), step_positions(m->call->p, a->parent));
}

static Map map_of(StepCall *c, const Node *phase, const Node *user, Expr *cell, Expr *const *index)
{
    Map m = { .call = c, .phase = phase, .user = user };

    for (int d = 0; d < cell->nargs; d++) {
        Expr *extent = step_extent(c->p, cell->buf, d);

        if (extent == NULL || cell->arg[d]->op != OP_local ||
            !map(&m, cell->arg[d], index[d], extent))
            step_refuse(c, "%s is not made by a loop over each of its dimensions; do this before "
                           "its loops are split",
                        cell->buf->name);
    }
    return m;
}

/* The nodes without the loops that are mapped. */
static void put(const Map *m, Node *n, NodeList *out)
{
    NodeList body = { 0 };
    bool goes = n->kind == N_FOR && is_mapped(m, n->local);

    for (int i = 0; i < n->nbody; i++)
        put(m, n->body[i], goes ? out : &body);
    if (!goes)
        tree_append(m->call->p, out, tree_with_body(m->call->p, n, &body));
}

void step_make(StepCall *c, const Made *made, const Node *user, Expr *const *index, NodeList *out)
{
    Prog *p = c->p;

    for (int i = 0; i < made->n; i++) {
        bool many;
        Node *phase = c->phase[made->phase[i]], *block;
        Map m = map_of(c, phase, user, step_only_cell(p, phase, made->buf, &many), index);
        NodeList body = { 0 };

        put(&m, phase, &body);
        block = loop_node(p, &(Node){ .kind = N_IF, .body = body.node, .nbody = body.n });
        block = loop_fresh(p, block);
        for (int k = 0; k < m.n; k++)
            block = loop_replace(p, block, m.local[k], m.by[k]);
        for (int k = 0; k < block->nbody; k++) {
            block->body[k]->scheduled = false;
            if (block->body[k]->how == FOR_PARALLEL)
                block->body[k]->how = FOR_SERIAL;
            tree_append(p, out, block->body[k]);
        }
    }
}

/* The node of a block that surely sets the element, or else the last, which may be a loop that
 * holds such a block. */
static const Node *setter_in(const Node *n, const Buf *b)
{
    for (int i = 0; i < n->nbody; i++) {
        const Node *s = n->body[i];

        if (s->kind == N_STORE && s->op == A_SET && s->out->op == OP_cell && s->out->buf == b)
            return s;
    }
    return n->nbody > 0 ? n->body[n->nbody - 1] : n;
}

static bool reads(Prog *p, const Node *n, const Buf *b)
{
    Node own = *n;
    bool many, any;

    own.nbody = 0;
    if (n->kind == N_STORE && n->op == A_SET)
        own.out = NULL;
    any = step_only_cell(p, &own, b, &many) != NULL;
    for (int i = 0; i < n->nbody && !any; i++)
        any = reads(p, n->body[i], b);
    return any;
}

/* Loops around an `=` that meets each element: what came before does not matter. */
static bool sets_all(Prog *p, const Node *phase, const Buf *b)
{
    const Node *loop[LIMIT_STEP_NEST], *n = phase;
    int k = 0;

    while (n->kind == N_FOR && n->nbody > 0 && k < LIMIT_STEP_NEST) {
        loop[k++] = n;
        n = setter_in(n, b);
    }
    return n->kind == N_STORE && n->op == A_SET && n->out->op == OP_cell && n->out->buf == b &&
           step_covers(p, phase, n->out, loop, k) && !reads(p, phase, b);
}

static const Buf *stored_in(const Node *n)
{
    const Buf *b = n->kind == N_STORE && n->out->op == OP_cell ? n->out->buf : NULL;

    for (int i = 0; i < n->nbody && b == NULL; i++)
        b = stored_in(n->body[i]);
    return b;
}

static void add_maker(StepCall *c, Made *m, int phase)
{
    bool many;

    check_nodes(c, c->phase[phase], m->buf);
    step_only_cell(c->p, c->phase[phase], m->buf, &many);
    if (many)
        step_refuse(c, "%s is written by several stores, and the step moves one of a phase",
                    m->buf->name);
    if (m->n == LIMIT_STEP_MAKERS)
        step_refuse(c, "more than %d phases make %s", LIMIT_STEP_MAKERS, m->buf->name);
    if (sets_all(c->p, c->phase[phase], m->buf))
        m->n = 0;
    m->phase[m->n++] = phase;
}

Made step_made(StepCall *c, const char *label)
{
    Made m = { .n = 0 };
    int at = 0;

    while (at < c->n && strcmp(c->phase[at]->label, label) != 0)
        at++;
    if (at == c->n)
        step_refuse(c, "no phase is called %s", label);
    m.buf = stored_in(c->phase[at]);
    if (m.buf == NULL || m.buf->kind != B_TEMP)
        step_refuse(c, "%s makes no temp, and what it stores is wanted", label);
    step_place_init(c, (Buf *)m.buf);
    for (int i = 0; i < c->n; i++)
        if (loop_writes(c->phase[i], m.buf))
            add_maker(c, &m, i);
    m.last = m.phase[m.n - 1];
    return m;
}

typedef struct Fresh {
    StepCall *call;
    int from, to;
    const Buf *buf, *changed;
} Fresh;

static void see_change(Expr *e, void *ctx)
{
    Fresh *f = ctx;

    for (int i = f->from; i <= f->to && e->op == OP_cell && e->buf != f->buf; i++)
        if (loop_writes(f->call->phase[i], e->buf))
            f->changed = e->buf;
}

/* A built axis is complete when its phase has ended: what hangs on it is read after that. */
void step_check_inputs(StepCall *c, const Made *m, int user)
{
    for (int i = 0; i < m->n; i++) {
        Fresh f = { c, m->phase[i] + 1, user, m->buf, NULL };
        Memo met = { 0 };

        loop_visit(c->p, c->phase[m->phase[i]], see_change, &f, &met);
        if (f.changed != NULL)
            step_refuse(c, "%s, which %s is computed from, changes before it is used",
                        f.changed->name,
                        m->buf->name);
    }
}

void step_remove_made(StepCall *c, const Buf *b)
{
    NodeList to = { 0 };

    for (int i = 0; i < c->n; i++)
        if (!loop_writes(c->phase[i], b))
            tree_append(c->p, &to, c->phase[i]);
    c->phase = to.node;
    c->n = to.n;
}
