/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Phases that become one: straight-line phases over the same range run their iterations together,
 * so that what they all read is loaded once and what they all compute is computed once.  Of an
 * array that one of them writes, each iteration may touch elements of its own only: those of row b,
 * b * width + k with 0 <= k < width.  Needs flat loops. */
#include "lower/lower_int.h"

enum { MOST_FIRST = 64 }; /* first values in an iteration that are written out */

typedef struct Touched { /* an array */
    const Buf *buf;
    bool written;
    Expr *width; /* of its rows; NULL: some element is of no row of its own */
} Touched;

typedef struct Cells { /* elements */
    Expr **cell;
    int n, cap;
} Cells;

typedef struct Part { /* a phase of the group */
    Node *phase;      /* as it was */
    NodeList body;    /* over the variable of the group */
    bool first;       /* it gives elements their first values */
} Part;

typedef struct Group {
    Prog *p;
    Part *part;
    int n, cap;
    Touched *touched;
    int ntouched, cap_touched;
    Cells read;  /* of all its parts */
    Memo stored; /* elements: to themselves */
} Group;

static bool is_straight(const Node *n)
{
    return n->kind == N_LET || (n->kind == N_STORE && n->nat == 0 && n->out->op == OP_cell &&
                                ir_type[n->out->buf->type].floats);
}

/* What gives elements their first values: stores of constants, in loops of few iterations, which
 * are written out.  False: it is something else. */
static bool write_out(Prog *p, Node *n, NodeList *out)
{
    bool known = true;

    if (n->kind == N_STORE && is_straight(n) && n->op == A_SET && n->value->nargs == 0 &&
        n->value->op != OP_local) {
        Memo memo = { 0 };
        Node c = *n;

        c.out = ir_simplify(p, n->out, &memo);
        lower_append(p, out, loop_node(p, &c));
        return out->n <= MOST_FIRST;
    }
    if (n->kind != N_FOR || n->lo->op != OP_int || n->hi->op != OP_int)
        return false;
    for (int64_t i = n->lo->i; i < n->hi->i && known; i++) {
        Node *turn = loop_replace(p, n, n->local, ir_int(p, i));

        for (int k = 0; k < n->nbody && known; k++)
            known = write_out(p, turn->body[k], out);
    }
    return known;
}

static bool is_range(const Node *n)
{
    return n->kind == N_FOR && n->how == FOR_PARALLEL && n->nbody > 0;
}

/* Fills in a part from its phase; false: the phase is not straight-line. */
static bool set_part(Prog *p, Node *phase, Part *part)
{
    bool straight = is_range(phase);

    *part = (Part){ .phase = phase, .first = straight };
    for (int i = 0; i < phase->nbody && straight; i++) {
        NodeList first = { 0 };
        bool known = write_out(p, phase->body[i], &first);

        if (!known) {
            straight = is_straight(phase->body[i]);
            first = (NodeList){ 0 };
            lower_append(p, &first, phase->body[i]);
        }
        for (int k = 0; k < first.n; k++)
            lower_append(p, &part->body, first.node[k]);
        part->first = part->first && known;
    }
    part->first = part->first && part->body.n > 0;
    return straight && part->body.n > 0;
}

/* The part's body over the variable of the group's first, with lets of its own. */
static void rename_part(Group *g, Part *part)
{
    Node *n = loop_fresh(g->p, lower_with_body(g->p, part->phase, &part->body));

    n = loop_replace(g->p, n, n->local, loop_use(g->p, g->part[0].phase->local));
    part->body = (NodeList){ 0 };
    for (int i = 0; i < n->nbody; i++)
        lower_append(g->p, &part->body, n->body[i]);
}

/* The width of rows, when the index is that of an element of row `row`; or NULL. */
static Expr *width_of(Prog *p, Expr *index, Expr *row)
{
    Expr *at = index;
    int64_t k = 0;

    if (index == row)
        return ir_int(p, 1);
    if (index->op == OP_add && index->arg[1]->op == OP_int) {
        at = index->arg[0];
        k = index->arg[1]->i;
    }
    for (int i = 0; i < 2 && at->op == OP_mul; i++)
        if (at->arg[i] == row && at->arg[1 - i]->op == OP_int && 0 <= k && k < at->arg[1 - i]->i)
            return at->arg[1 - i];
    return NULL;
}

static Touched *find(Group *g, const Buf *b)
{
    for (int i = 0; i < g->ntouched; i++)
        if (g->touched[i].buf == b)
            return &g->touched[i];
    return NULL;
}

static void touch(Group *g, Expr *cell, Expr *row, bool written)
{
    Expr *width = width_of(g->p, cell->arg[0], row);
    Touched *t = find(g, cell->buf);

    if (t == NULL) {
        g->touched =
            arena_grow(g->p->arena, g->touched, g->ntouched, &g->cap_touched, sizeof *g->touched);
        t = &g->touched[g->ntouched++];
        *t = (Touched){ cell->buf, false, width };
    }
    t->written = t->written || written;
    t->width = t->width == width ? width : NULL;
}

static void see_read(Expr *e, void *ctx)
{
    Group *g = ctx;

    if (e->op != OP_cell)
        return;
    g->read.cell =
        arena_grow(g->p->arena, g->read.cell, g->read.n, &g->read.cap, sizeof *g->read.cell);
    g->read.cell[g->read.n++] = e;
}

/* What the nodes of a part touch. */
static Group seen_in(Prog *p, const Part *part, Expr *row)
{
    Group g = { .p = p };
    Memo met = { 0 };

    for (int i = 0; i < part->body.n; i++) {
        const Node *n = part->body.node[i];

        ir_visit(p, n->value, see_read, &g, &met);
        if (n->kind != N_STORE)
            continue;
        touch(&g, n->out, row, true);
        ir_visit(p, n->out->arg[0], see_read, &g, &met);
        *ir_memo(p, &g.stored, n->out) = n->out;
    }
    for (int i = 0; i < g.read.n; i++)
        touch(&g, g.read.cell[i], row, false);
    return g;
}

/* Whether each iteration of the two touches rows of its own in what one of them writes. */
static bool are_apart(Group *g, const Group *more)
{
    for (int i = 0; i < more->ntouched; i++) {
        const Touched *b = &more->touched[i], *a = find(g, b->buf);

        if (a != NULL && (a->written || b->written) && (a->width == NULL || a->width != b->width))
            return false;
    }
    return true;
}

/* A phase reads of what it writes only elements that it stores to. */
static bool reads_stored(Group *g, Group *more, const Cells *read)
{
    for (int i = 0; i < read->n; i++) {
        Expr *e = read->cell[i];
        const Touched *a = find(g, e->buf), *b = find(more, e->buf);
        bool written = (a != NULL && a->written) || (b != NULL && b->written);

        if (written && *ir_memo(g->p, &g->stored, e) == NULL &&
            *ir_memo(g->p, &more->stored, e) == NULL)
            return false;
    }
    return true;
}

static int at_least_1(int n)
{
    return n > 1 ? n : 1;
}

/* First values are no matter of lanes where the others have none. */
static bool have_same_lanes(const Part *a, const Part *b)
{
    int x = at_least_1(a->phase->lanes), y = at_least_1(b->phase->lanes);

    return (x == y && at_least_1(a->phase->regs) == at_least_1(b->phase->regs)) ||
           (a->first && (b->first || y == 1)) || (b->first && x == 1);
}

static bool has_range_of(const Group *g, const Part *part)
{
    for (int i = 0; i < g->n; i++)
        if (g->part[i].phase->lo != part->phase->lo || g->part[i].phase->hi != part->phase->hi ||
            !have_same_lanes(&g->part[i], part))
            return false;
    return true;
}

static void take(Group *g, const Part *part, const Group *more)
{
    g->part = arena_grow(g->p->arena, g->part, g->n, &g->cap, sizeof *g->part);
    g->part[g->n++] = *part;
    for (int i = 0; i < more->ntouched; i++) {
        const Touched *b = &more->touched[i];
        Touched *a = find(g, b->buf);

        if (a != NULL) {
            a->written = a->written || b->written;
            a->width = a->width == b->width ? b->width : NULL;
            continue;
        }
        g->touched =
            arena_grow(g->p->arena, g->touched, g->ntouched, &g->cap_touched, sizeof *g->touched);
        g->touched[g->ntouched++] = *b;
    }
    for (int i = 0; i < more->read.n; i++)
        see_read(more->read.cell[i], g);
    for (int i = 0; i < part->body.n; i++)
        if (part->body.node[i]->kind == N_STORE)
            *ir_memo(g->p, &g->stored, part->body.node[i]->out) = part->body.node[i]->out;
}

/* Takes the phase into the group, if it can be part of it. */
static bool join(Group *g, Part *part)
{
    Group more;

    if (!has_range_of(g, part))
        return false;
    if (g->n > 0)
        rename_part(g, part);
    more = seen_in(g->p, part,
                   loop_use(g->p, g->n > 0 ? g->part[0].phase->local : part->phase->local));
    if (!are_apart(g, &more) || !reads_stored(g, &more, &g->read) ||
        !reads_stored(g, &more, &more.read))
        return false;
    take(g, part, &more);
    return true;
}

typedef struct Pending { /* a store that a later one may make needless */
    Prog *p;
    Memo store; /* an element: to the number of the store, or none */
    Expr *none;
} Pending;

static void see_needed(Expr *e, void *ctx)
{
    Pending *d = ctx;

    if (e->op == OP_cell)
        *ir_memo(d->p, &d->store, e) = d->none;
}

/* Leaves out what is stored over before anyone reads it. */
static NodeList without_needless(Group *g, const NodeList *body)
{
    Pending d = { .p = g->p, .none = ir_int(g->p, -1) };
    bool *needless = arena_array(g->p->arena, body->n, sizeof *needless);
    NodeList out = { 0 };

    for (int i = 0; i < body->n; i++) {
        const Node *n = body->node[i];
        Memo met = { 0 };
        Expr **last;

        ir_visit(g->p, n->value, see_needed, &d, &met);
        if (n->kind != N_STORE || find(g, n->out->buf)->width == NULL)
            continue;
        last = ir_memo(g->p, &d.store, n->out);
        if (n->op == A_SET && *last != NULL && *last != d.none)
            needless[(*last)->i] = true;
        *last = n->op == A_SET ? ir_int(g->p, i) : d.none;
    }
    for (int i = 0; i < body->n; i++)
        if (!needless[i])
            lower_append(g->p, &out, body->node[i]);
    return out;
}

/* Whether a part that is no first value stores to what this one begins. */
static bool is_wanted(const Group *g, const Part *first)
{
    for (int i = 0; i < g->n; i++)
        for (int k = 0; k < g->part[i].body.n && !g->part[i].first; k++) {
            const Node *n = g->part[i].body.node[k];

            if (n->kind == N_STORE && n->out->buf == first->body.node[0]->out->buf)
                return true;
        }
    return false;
}

/* The phases of the group: first values that no other part of it wants, then one of all the
 * rest. */
static void close_group(Group *g, NodeList *out)
{
    NodeList body = { 0 };
    const Part *one = NULL; /* the first that is no first value */
    int n = 0;

    for (int i = 0; i < g->n; i++) {
        const Part *part = &g->part[i];

        if (part->first && !is_wanted(g, part)) {
            lower_append(g->p, out, part->phase);
            continue;
        }
        n++;
        one = one == NULL && !part->first ? part : one;
        for (int k = 0; k < part->body.n; k++)
            lower_append(g->p, &body, part->body.node[k]);
    }
    if (n == 1)
        lower_append(g->p, out, one->phase);
    if (n > 1) {
        body = without_needless(g, &body);
        lower_append(g->p, out,
                     loop_replace(g->p, lower_with_body(g->p, one->phase, &body),
                                  g->part[0].phase->local, loop_use(g->p, one->phase->local)));
    }
    *g = (Group){ .p = g->p };
}

static bool is_untouched(Group *g, const Part *part)
{
    bool touched = false;

    for (int i = 0; i < part->body.n; i++)
        touched = touched || find(g, part->body.node[i]->out->buf) != NULL;
    return !touched;
}

/* A phase joins those before it; of first values it may also come before them; or it begins
 * anew. */
static void add(Group *g, Node *phase, NodeList *out)
{
    Part part;
    bool straight = set_part(g->p, phase, &part);

    part.first = part.first && is_untouched(g, &part);
    if (straight && join(g, &part))
        return;
    if (!part.first)
        close_group(g, out);
    if (!straight || part.first || !set_part(g->p, phase, &part) || !join(g, &part))
        lower_append(g->p, out, phase);
}

void lower_together(Kernel *k)
{
    Group g = { .p = k->p };
    NodeList out = { 0 };

    for (int i = 0; i < k->n; i++)
        add(&g, k->phase[i], &out);
    close_group(&g, &out);
    k->phase = out.node;
    k->n = k->cap = out.n;
    lower_done(k, k->p->stage);
}
