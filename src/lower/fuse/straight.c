/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Fuses straight-line phases over the same range, so that shared elements are loaded once and
 * shared values are computed once.  Legal when each iteration touches only its own elements of
 * every array that one of the phases writes: those of row b, b * width + k with 0 <= k < width.
 * Needs flat loops. */
#include "lower/phase/phase_int.h"

typedef struct Cells { /* elements */
    Expr **cell;
    int n, cap;
} Cells;

typedef struct Touched { /* an array */
    const Buf *buf;
    bool written;
    bool added;  /* by a part that does more than give first values */
    Expr *width; /* of its rows; NULL: some element is of no row of its own */
    Cells read;
} Touched;

typedef struct Index { /* what a group touches, by the number of the array */
    int *at, *round; /* its place, if it was met in this round */
    int now;
} Index;

typedef struct Part { /* a phase of the group */
    Node *phase;      /* as it was */
    NodeList body;    /* over the variable of the group */
    bool first;       /* it gives elements their first values */
} Part;

typedef struct Group {
    Prog *p;
    Part *part;
    int n, cap;
    Part *kind; /* one of each of the parts that differ in lanes, registers or `first` */
    int nkind, cap_kind;
    Touched *touched;
    int ntouched, cap_touched;
    Index *index;
    Memo stored; /* elements: to themselves */
} Group;

static Index new_index(const Prog *p)
{
    int n = p->nbuf + p->naux;

    return (Index){ .at = arena_array(p->arena, n, sizeof(int)),
                    .round = arena_array(p->arena, n, sizeof(int)) };
}

static Group empty_group(Prog *p, Index *index)
{
    index->now++;
    return (Group){ .p = p, .index = index };
}

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
        tree_append(p, out, loop_node(p, &c));
        return out->n <= p->policy.first_values;
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
            tree_append(p, &first, phase->body[i]);
        }
        for (int k = 0; k < first.n; k++)
            tree_append(p, &part->body, first.node[k]);
        part->first = part->first && known;
    }
    part->first = part->first && part->body.n > 0;
    return straight && part->body.n > 0;
}

/* The part's body over the variable of the group's first, with lets of its own. */
static void rename_part(Group *g, Part *part)
{
    Node *n = loop_fresh(g->p, tree_with_body(g->p, part->phase, &part->body));

    n = loop_replace(g->p, n, n->local, loop_use(g->p, g->part[0].phase->local));
    part->body = (NodeList){ 0 };
    for (int i = 0; i < n->nbody; i++)
        tree_append(g->p, &part->body, n->body[i]);
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

static Touched *find(const Group *g, const Buf *b)
{
    int n = b->id < LOOP_OWN ? b->id : g->p->nbuf + b->id - LOOP_OWN;

    return g->index->round[n] == g->index->now ? &g->touched[g->index->at[n]] : NULL;
}

static Touched *add_touched(Group *g, const Buf *b, Expr *width)
{
    int n = b->id < LOOP_OWN ? b->id : g->p->nbuf + b->id - LOOP_OWN;

    g->touched =
        arena_grow(g->p->arena, g->touched, g->ntouched, &g->cap_touched, sizeof *g->touched);
    g->touched[g->ntouched] = (Touched){ .buf = b, .width = width };
    g->index->round[n] = g->index->now;
    g->index->at[n] = g->ntouched;
    return &g->touched[g->ntouched++];
}

static Touched *touch(Group *g, Expr *cell, Expr *row)
{
    Expr *width = width_of(g->p, cell->arg[0], row);
    Touched *t = find(g, cell->buf);

    if (t == NULL)
        t = add_touched(g, cell->buf, width);
    t->width = t->width == width ? width : NULL;
    return t;
}

static void add_cell(Prog *p, Cells *c, Expr *e)
{
    c->cell = arena_grow(p->arena, c->cell, c->n, &c->cap, sizeof *c->cell);
    c->cell[c->n++] = e;
}

typedef struct Look {
    Group *g;
    Expr *row;
} Look;

static void see_read(Expr *e, void *ctx)
{
    Look *l = ctx;

    if (e->op == OP_cell)
        add_cell(l->g->p, &touch(l->g, e, l->row)->read, e);
}

/* What the nodes of a part touch. */
static Group seen_in(Prog *p, const Part *part, Expr *row, Index *index)
{
    Group g = empty_group(p, index);
    Look l = { &g, row };
    Memo met = { 0 };

    for (int i = 0; i < part->body.n; i++) {
        const Node *n = part->body.node[i];

        ir_visit(p, n->value, see_read, &l, &met);
        if (n->kind != N_STORE)
            continue;
        touch(&g, n->out, row)->written = true;
        ir_visit(p, n->out->arg[0], see_read, &l, &met);
        *ir_memo(p, &g.stored, n->out) = n->out;
    }
    return g;
}

/* Whether each iteration of the two touches rows of its own in what one of them writes. */
static bool are_apart(const Group *g, const Group *more)
{
    for (int i = 0; i < more->ntouched; i++) {
        const Touched *b = &more->touched[i], *a = find(g, b->buf);

        if (a != NULL && (a->written || b->written) && (a->width == NULL || a->width != b->width))
            return false;
    }
    return true;
}

static bool are_stored(Group *g, Group *more, const Cells *read)
{
    for (int i = 0; i < read->n; i++)
        if (*ir_memo(g->p, &g->stored, read->cell[i]) == NULL &&
            *ir_memo(g->p, &more->stored, read->cell[i]) == NULL)
            return false;
    return true;
}

/* Both read of what one of them writes only elements that are stored to.  Of what the group writes
 * already that is known for what it reads. */
static bool read_stored(Group *g, Group *more)
{
    for (int i = 0; i < more->ntouched; i++) {
        const Touched *b = &more->touched[i], *a = find(g, b->buf);
        bool written = a != NULL && a->written;

        if ((b->written && a != NULL && !written && !are_stored(g, more, &a->read)) ||
            ((b->written || written) && !are_stored(g, more, &b->read)))
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

static bool is_of_kind(const Part *a, const Part *b)
{
    return a->phase->lanes == b->phase->lanes && a->phase->regs == b->phase->regs &&
           a->first == b->first;
}

static bool has_range_of(const Group *g, const Part *part)
{
    if (g->n > 0 && (g->part[0].phase->lo != part->phase->lo ||
                     g->part[0].phase->hi != part->phase->hi))
        return false;
    for (int i = 0; i < g->nkind; i++)
        if (!have_same_lanes(&g->kind[i], part))
            return false;
    return true;
}

static void take_kind(Group *g, const Part *part)
{
    for (int i = 0; i < g->nkind; i++)
        if (is_of_kind(&g->kind[i], part))
            return;
    g->kind = arena_grow(g->p->arena, g->kind, g->nkind, &g->cap_kind, sizeof *g->kind);
    g->kind[g->nkind++] = *part;
}

static void take(Group *g, const Part *part, const Group *more)
{
    g->part = arena_grow(g->p->arena, g->part, g->n, &g->cap, sizeof *g->part);
    g->part[g->n++] = *part;
    take_kind(g, part);
    for (int i = 0; i < more->ntouched; i++) {
        const Touched *b = &more->touched[i];
        Touched *a = find(g, b->buf);

        a = a == NULL ? add_touched(g, b->buf, b->width) : a;
        a->written = a->written || b->written;
        a->added = a->added || (b->written && !part->first);
        a->width = a->width == b->width ? b->width : NULL;
        for (int k = 0; k < b->read.n; k++)
            add_cell(g->p, &a->read, b->read.cell[k]);
    }
    for (int i = 0; i < part->body.n; i++)
        if (part->body.node[i]->kind == N_STORE)
            *ir_memo(g->p, &g->stored, part->body.node[i]->out) = part->body.node[i]->out;
}

/* Takes the phase into the group, if it can be part of it. */
static bool join(Group *g, Part *part, Index *other)
{
    Group more;

    if (!has_range_of(g, part))
        return false;
    if (g->n > 0)
        rename_part(g, part);
    more = seen_in(g->p, part,
                   loop_use(g->p, g->n > 0 ? g->part[0].phase->local : part->phase->local),
                   other);
    if (!are_apart(g, &more) || !read_stored(g, &more))
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
            tree_append(g->p, &out, body->node[i]);
    return out;
}

/* Whether a part that is no first value stores to what this one begins. */
static bool is_wanted(const Group *g, const Part *first)
{
    return find(g, first->body.node[0]->out->buf)->added;
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
            tree_append(g->p, out, part->phase);
            continue;
        }
        n++;
        one = one == NULL && !part->first ? part : one;
        for (int k = 0; k < part->body.n; k++)
            tree_append(g->p, &body, part->body.node[k]);
    }
    if (n == 1)
        tree_append(g->p, out, one->phase);
    if (n > 1) {
        body = without_needless(g, &body);
        tree_append(g->p, out,
                     loop_replace(g->p, tree_with_body(g->p, one->phase, &body),
                                  g->part[0].phase->local, loop_use(g->p, one->phase->local)));
    }
    *g = empty_group(g->p, g->index);
}

static bool is_untouched(const Group *g, const Part *part)
{
    bool touched = false;

    for (int i = 0; i < part->body.n; i++)
        touched = touched || find(g, part->body.node[i]->out->buf) != NULL;
    return !touched;
}

/* A phase joins those before it; of first values it may also come before them; or it begins
 * anew. */
static void add(Group *g, Node *phase, Index *other, NodeList *out)
{
    Part part;
    bool straight = set_part(g->p, phase, &part);

    part.first = part.first && is_untouched(g, &part);
    if (straight && join(g, &part, other))
        return;
    if (!part.first)
        close_group(g, out);
    if (!straight || part.first || !set_part(g->p, phase, &part) || !join(g, &part, other))
        tree_append(g->p, out, phase);
}

void lower_fuse_straight(Kernel *k)
{
    Index index = new_index(k->p), other = new_index(k->p);
    Group g = empty_group(k->p, &index);
    NodeList out = { 0 };

    for (int i = 0; i < k->n; i++)
        add(&g, k->phase[i], &other, &out);
    close_group(&g, &out);
    k->phase = out.node;
    k->n = k->cap = out.n;
    lower_done(k, k->p->stage);
}
