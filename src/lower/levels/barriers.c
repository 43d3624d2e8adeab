/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Barriers: where the lanes of a vector are threads, an element that one lane stores is seen by
 * another only after both have met.  This pass puts a barrier between two accesses of one element
 * by different lanes, one of which stores.
 *
 *     Y.work[0] = X[i]                      Y.work[0] = X[i]
 *     vector for k in 0..64 step 32   >     barrier
 *         Z[i * 64 + k] = Y.work[0]         vector for k in 0..64 step 32
 *                                               Z[i * 64 + k] = Y.work[0]
 *
 * A store outside of vector loops is the first lane's, with all that it reads; what other nodes
 * read there, all lanes read.  In a vector loop an element that moves with the loop is one lane's.
 * The iterations of a vector loop do not depend on each other, so accesses inside one run of a
 * vector loop need no barrier.  Two accesses are told apart by their flat indices.  A loop around
 * both is walked twice, the second time behind the accesses of its iteration before; there, an
 * index with a local that the loop changes is another element.
 *
 * Needs flat indices; runs last, as passes after it would have to keep the places of barriers.
 * Phases without vector loops are run by single threads, and get none. */
#include "lower/facts/facts_int.h"
#include "lower/storage/storage_int.h"

typedef enum Who { FIRST, ALL, EACH } Who; /* lanes: the first; each of them; one by its index */

typedef struct Access {
    Expr *cell;
    const Node *vector; /* the vector loop around; or NULL */
    Who who;
    bool writes, old; /* old: of an earlier iteration of the loop that is walked again */
} Access;

typedef struct AccessList { /* since the last barrier */
    Access *access;
    int n, cap;
} AccessList;

typedef struct Walk {
    Prog *p;
    const Touches *touches;
    const Node *vector; /* the vector loop around; or NULL */
    const Node *again;  /* the loop that is walked a second time; or NULL */
    const Node *around; /* the vector loop around that; or NULL */
    LocalSet inside;    /* the locals that it binds */
} Walk;

static void add(Walk *w, AccessList *s, const Access *a)
{
    s->access = arena_grow(w->p->arena, s->access, s->n, &s->cap, sizeof *s->access);
    s->access[s->n++] = *a;
}

typedef struct Reading { /* of one node */
    Walk *w;
    AccessList *out;
    Who who;
} Reading;

/* Whether the element moves with the vector loop around. */
static bool is_of_lane(const Walk *w, const Expr *cell)
{
    return w->vector != NULL && lower_mentions(w->p, cell->arg[0], w->vector->local);
}

static void note(Walk *w, AccessList *out, Expr *cell, Who who, bool writes)
{
    const Touch *t = lower_touch_of(w->touches, cell->buf);
    bool each = is_of_lane(w, cell);

    if (t == NULL || !t->written) /* nobody stores to it */
        return;
    add(w, out, &(Access){ cell, w->vector, each ? EACH : who, writes, false });
}

static void see(Expr *e, void *ctx)
{
    Reading *r = ctx;

    if (e->op == OP_cell)
        note(r->w, r->out, e, r->who, false);
}

static void reads_of(Walk *w, AccessList *out, Expr *e, Who who)
{
    Reading r = { w, out, who };
    Memo met = { 0 };

    if (e != NULL)
        ir_visit(w->p, e, see, &r, &met);
}

static void store_of(Walk *w, AccessList *out, Expr *cell, Who who, AssignOp op)
{
    if (cell->op != OP_cell)
        return;
    reads_of(w, out, cell->arg[0], who);
    if (op != A_SET)
        note(w, out, cell, who, false);
    note(w, out, cell, who, true);
}

/* What the node itself accesses, without its body. */
static AccessList accesses_of(Walk *w, const Node *n)
{
    bool first = n->kind == N_STORE && n->out->op == OP_cell && w->vector == NULL;
    Who who = first ? FIRST : ALL;
    AccessList s = { 0 };

    if (n->kind == N_AHEAD)
        return s;
    reads_of(w, &s, n->lo, who);
    reads_of(w, &s, n->hi, who);
    reads_of(w, &s, n->cond, who);
    reads_of(w, &s, n->value, who);
    if (n->kind == N_STORE)
        store_of(w, &s, n->out, who, n->op);
    for (int i = 0; i < n->nat; i++) {
        reads_of(w, &s, n->at[i].value, who);
        store_of(w, &s, n->at[i].out, who, A_SET);
    }
    return s;
}

static bool is_inside(Expr *e, const void *ctx)
{
    const Walk *w = ctx;

    return e->op == OP_local && e->local != NULL && lower_has_in(&w->inside, e->local);
}

/* Whether the loop that is walked again changes the index, apart from the lanes' own variable. */
static bool changes(const Walk *w, const Access *a)
{
    LoopIndex x;

    if (a->who != EACH)
        return ir_any(w->p, a->cell->arg[0], is_inside, w);
    if (!loop_index_of(a->cell, a->vector->local, &x))
        return true;
    for (int i = 0; i < x.n; i++)
        if (ir_any(w->p, x.leaf[i], is_inside, w))
            return true;
    return false;
}

static bool is_same_range(const Node *a, const Node *b)
{
    return a == b || (a->lo == b->lo && a->lanes == b->lanes);
}

/* Whether both are in one run of a vector loop, whose iterations are independent. */
static bool is_same_run(const Walk *w, const Access *a, const Access *b)
{
    return a->vector != NULL && a->vector == b->vector && (!a->old || w->around == a->vector);
}

/* Whether two elements of lanes are one lane's wherever they are one element. */
static bool is_same_lane(const Walk *w, const Access *a, const Access *b)
{
    LoopIndex x, y;

    return is_same_range(a->vector, b->vector) &&
           loop_index_of(a->cell, a->vector->local, &x) &&
           loop_index_of(b->cell, b->vector->local, &y) && loop_is_near(&x, &y) &&
           x.constant == y.constant && !(a->old && changes(w, a));
}

static bool clash(const Walk *w, const Access *a, const Access *b)
{
    if (a->cell->buf != b->cell->buf || (!a->writes && !b->writes) || is_same_run(w, a, b))
        return false;
    if (a->who == FIRST && b->who == FIRST)
        return false;
    if (a->who == EACH && b->who == EACH)
        return !is_same_lane(w, a, b);
    return a->old || a->who == EACH || b->who == EACH ||
           !lower_differ(a->cell->arg[0], b->cell->arg[0]);
}

static bool do_clash(const Walk *w, const AccessList *before, const AccessList *now)
{
    for (int i = 0; i < before->n; i++)
        for (int k = 0; k < now->n; k++)
            if (clash(w, &before->access[i], &now->access[k]))
                return true;
    return false;
}

static void add_all(Walk *w, AccessList *to, const AccessList *from)
{
    for (int i = 0; i < from->n; i++)
        add(w, to, &from->access[i]);
}

/* The accesses of the node and of all below it. */
static void add_below(Walk *w, const Node *n, AccessList *out)
{
    const Node *outer = w->vector;
    AccessList own = accesses_of(w, n);

    add_all(w, out, &own);
    if (n->kind == N_FOR && n->lanes > 1)
        w->vector = n;
    for (int i = 0; i < n->nbody; i++)
        add_below(w, n->body[i], out);
    w->vector = outer;
}

static void put_locals(Walk *w, const Node *n)
{
    if (n->local != NULL)
        lower_put_in(&w->inside, n->local);
    for (int i = 0; i < n->nbody; i++)
        put_locals(w, n->body[i]);
}

static NodeList walk(Walk *w, Node *const *n, int count, AccessList *s);

static void set_again(Walk *w, const Node *loop, const Node *around)
{
    w->again = loop;
    w->around = around;
    lower_empty_set(w->p, &w->inside);
    if (loop != NULL)
        put_locals(w, loop);
}

/* The body behind its own accesses of the iteration before. */
static NodeList walk_again(Walk *w, const Node *loop, const NodeList *body, AccessList *s)
{
    const Node *outer = w->again, *around = w->around;
    NodeList to;

    for (int i = 0; i < s->n; i++)
        s->access[i].old = true;
    set_again(w, loop, w->vector);
    to = walk(w, body->node, body->n, s);
    set_again(w, outer, around);
    return to;
}

/* A loop or branch: what its body leaves comes to what was there, as it may not run. */
static Node *walk_block(Walk *w, Node *n, AccessList *s)
{
    const Node *outer = w->vector;
    AccessList below = { 0 };
    NodeList body;
    bool one = n->how == FOR_PARALLEL; /* a unit is one iteration, or, with parts, several */

    if (n->kind == N_FOR && n->lanes > 1)
        w->vector = n;
    body = walk(w, n->body, n->nbody, &below);
    if (n->kind == N_FOR && (!one || n->parts != NULL))
        body = walk_again(w, n, &body, &below);
    w->vector = outer;
    for (int i = 0; i < below.n; i++)
        below.access[i].old = false;
    add_all(w, s, &below);
    return lower_with_body(w->p, n, &body);
}

static NodeList walk(Walk *w, Node *const *n, int count, AccessList *s)
{
    NodeList to = { 0 };

    for (int i = 0; i < count; i++) {
        AccessList own = { 0 };
        Node *node = n[i];

        add_below(w, node, &own);
        if (node->kind == N_BARRIER) {
            s->n = 0;
        } else if (do_clash(w, s, &own)) {
            lower_append(w->p, &to, loop_node(w->p, &(Node){ .kind = N_BARRIER,
                                                             .label = node->label }));
            s->n = 0;
        }
        if (node->nbody > 0) {
            AccessList self = accesses_of(w, node);

            add_all(w, s, &self);
            node = walk_block(w, node, s);
        } else {
            add_all(w, s, &own);
        }
        lower_append(w->p, &to, node);
    }
    return to;
}

static bool has_lanes(const Node *n)
{
    bool has = n->kind == N_FOR && n->lanes > 1;

    for (int i = 0; i < n->nbody && !has; i++)
        has = has_lanes(n->body[i]);
    return has;
}

void lower_barriers(Kernel *k)
{
    for (int i = 0; i < k->n; i++) {
        Touches touches;
        Walk w = { .p = k->p, .touches = &touches };
        AccessList s = { 0 };
        NodeList to;

        if (!has_lanes(k->phase[i]))
            continue;
        touches = lower_touched(k->p, k->phase[i]);
        to = walk(&w, &k->phase[i], 1, &s);
        k->phase[i] = to.node[to.n - 1];
    }
    lower_done(k, k->p->stage);
}
