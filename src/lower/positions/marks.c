/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Drops marks that structure implies.  A mark records that a statement has reached an element.
 * If an element can be missed only because its row is empty, this pass initialises the element
 * from the length of its row, and deletes the marks and the phase that reads them. */
#include "lower/storage/storage_int.h"

enum { LIMIT_LOOPS = 32 };

typedef struct Marked { /* of one array of marks */
    Kernel *k;
    Buf *hit;
    const Node *loop[LIMIT_LOOPS]; /* around the store that marks, outermost first */
    int nloop;
    const Node *store;
    int first, end; /* its phase, and the one after it that reads the marks */
    int mentions;
} Marked;

/* The array that the last companion of a store is in, when it is one of marks; or NULL. */
static Buf *mark_of(const Node *n)
{
    Buf *b = n->kind == N_STORE && n->nat > 0 ? n->at[n->nat - 1].out->buf : NULL;

    return b != NULL && loop_is_own(b) ? b : NULL;
}

/* The store, through nothing but loops: branches decide what structure does not tell. */
static bool find_store(Marked *r, const Node *n)
{
    if (mark_of(n) == r->hit) {
        r->store = n;
        return n->nat == 1 && (n->op == A_ADD || ir_is_float(n->out));
    }
    if (n->kind != N_FOR || r->nloop == LIMIT_LOOPS)
        return false;
    r->loop[r->nloop++] = n;
    for (int i = 0; i < n->nbody; i++)
        if (find_store(r, n->body[i]))
            return true;
    r->nloop--;
    return false;
}

static void count_mention(Expr *e, void *ctx)
{
    Marked *r = ctx;

    r->mentions += e->op == OP_cell && e->buf == r->hit;
}

static bool mentions(Marked *r, int phase)
{
    Memo met = { 0 };

    r->mentions = 0;
    loop_visit(r->k->p, r->k->phase[phase], count_mention, r, &met);
    return r->mentions > 0;
}

static int marking_stores(const Node *n, const Buf *hit)
{
    int sum = mark_of(n) == hit;

    for (int i = 0; i < n->nbody; i++)
        sum += marking_stores(n->body[i], hit);
    return sum;
}

/* One phase that has the only store with the marks, one that reads them. */
static bool find_phases(Marked *r)
{
    int phase[2], n = 0;

    for (int i = 0; i < r->k->n; i++)
        if (mentions(r, i)) {
            if (n == 2)
                return false;
            phase[n++] = i;
        }
    if (n != 2 || marking_stores(r->k->phase[phase[0]], r->hit) != 1)
        return false;
    r->first = phase[0];
    r->end = phase[1];
    return find_store(r, r->k->phase[phase[0]]);
}

static const Node *innermost(const Node *n)
{
    while (n->kind == N_FOR && n->body[0]->kind == N_FOR)
        n = n->body[0];
    return n;
}

/* The place of the element where this loop's variable stands; -1: it is added up over. */
static int place_of(const Marked *r, const Node *loop)
{
    for (int d = 0; d < r->store->out->nargs; d++)
        if (r->store->out->arg[d] == loop_use(r->k->p, loop->local))
            return d;
    return -1;
}

/* Whether the loops reach each index of the element: one loop for each, over all that there are. */
static bool is_everywhere(const Marked *r)
{
    const Node *dim = r->k->phase[r->end];

    for (int d = 0; d < r->store->out->nargs; d++, dim = dim->body[0]) {
        bool found = false;

        for (int i = 0; i < r->nloop && !found; i++)
            found = place_of(r, r->loop[i]) == d && r->loop[i]->lo == dim->lo &&
                    r->loop[i]->hi == dim->hi;
        if (!found)
            return false;
        for (int k = 0; k < d; k++)
            if (r->store->out->arg[k] == r->store->out->arg[d])
                return false;
    }
    return true;
}

typedef struct Known {
    const Marked *r;
    bool fails;
} Known;

/* Known before the statement runs: structure, at indices of the element. */
static void see_unknown(Expr *e, void *ctx)
{
    Known *k = ctx;
    bool known = e->op == OP_int || e->op == OP_size || e->op == OP_count || e->op == OP_add ||
                 e->op == OP_sub || e->op == OP_mul;

    if (e->op == OP_cell)
        known = e->buf->of != NULL && e->buf->of->extent != X_BUILT;
    for (int d = 0; e->op == OP_local && d < k->r->store->out->nargs; d++)
        known = known || k->r->store->out->arg[d] == e;
    k->fails = k->fails || !known;
}

/* That the loops that are added up over are not empty, in terms of the element's indices x; NULL:
 * they never are. */
static bool condition(const Marked *r, Expr *const *x, Expr **out)
{
    Prog *p = r->k->p;
    Known known = { r, false };
    Memo met = { 0 };

    *out = NULL;
    for (int i = 0; i < r->nloop; i++) {
        const Node *l = r->loop[i];

        bool some = l->lo->op == OP_int && l->hi->op == OP_int && l->lo->i < l->hi->i;

        if (some || place_of(r, l) >= 0)
            continue;
        ir_visit(p, l->lo, see_unknown, &known, &met);
        ir_visit(p, l->hi, see_unknown, &known, &met);
        *out = lower_both(p, *out, ir_op2(p, OP_lt, l->lo, l->hi));
    }
    for (int d = 0; *out != NULL && !known.fails && d < r->store->out->nargs; d++) {
        Node *n = loop_node(p, &(Node){ .kind = N_LET, .value = *out });

        *out = loop_replace(p, n, r->store->out->arg[d]->local, x[d])->value;
    }
    return !known.fails;
}

/* The nest of loops with another body. */
static Node *with_innermost(Prog *p, const Node *n, const NodeList *body)
{
    NodeList one = { 0 };

    if (n->body[0]->kind != N_FOR)
        return tree_with_body(p, n, body);
    tree_append(p, &one, with_innermost(p, n->body[0], body));
    return tree_with_body(p, n, &one);
}

/* The element begins with its fill where no term reaches it. */
static void begin_with(const Marked *r, Expr *fill)
{
    Prog *p = r->k->p;
    Buf *b = r->store->out->buf;
    Elements e = lower_elements(p, b);
    Expr *reached;

    condition(r, e.index, &reached);
    loop_drop_init(r->hit);
    if (reached == NULL)
        return;
    b->init = ir_node(p, OP_select, (Expr *[]){ reached, b->init, fill }, 3);
    b->init_at = arena_copy(p->arena, e.x, (size_t)e.n * sizeof *e.x);
}

/* What is left to do for elements whose sums are complete: nothing, or they are rounded. */
static Node *end_with(const Marked *r)
{
    const Node *n = r->k->phase[r->end];
    Node s = *innermost(n)->body[0];
    NodeList body = { 0 };

    s.value = s.value->arg[1];
    if (s.value == s.out)
        return NULL;
    tree_append(r->k->p, &body, loop_node(r->k->p, &s));
    return with_innermost(r->k->p, n, &body);
}

static Node *without_mark(const Marked *r, Node *n)
{
    Prog *p = r->k->p;
    NodeList body = { 0 };
    Node c = *n;

    if (n == r->store) {
        c.nat = 0;
        c.at = NULL;
        return loop_node(p, &c);
    }
    for (int i = 0; i < n->nbody; i++)
        tree_append(p, &body, without_mark(r, n->body[i]));
    return tree_with_body(p, n, &body);
}

/* Phases made for one element after the other: a nest of loops, or for a single element no loop. */
static bool is_nest(const Marked *r, const Node *n)
{
    int depth = 0;

    for (; n->kind == N_FOR && n->nbody > 0; n = n->body[0])
        depth++;
    return n->kind == N_STORE && depth == r->store->out->nargs && depth > 0;
}

static void drop_marks(Kernel *k, Buf *hit)
{
    Marked r = { .k = k, .hit = hit };
    Expr *reached;
    Node *ask;
    int n = 0;

    if (!find_phases(&r) || !is_nest(&r, k->phase[r.end]) || !is_everywhere(&r))
        return;
    ask = innermost(k->phase[r.end])->body[0];
    if (ask->value->op != OP_select || !condition(&r, ask->out->arg, &reached))
        return;
    begin_with(&r, ask->value->arg[2]);
    k->phase[r.end] = end_with(&r);
    k->phase[r.first] = without_mark(&r, k->phase[r.first]);
    for (int i = 0; i < k->n; i++)
        if (k->phase[i] != NULL)
            k->phase[n++] = k->phase[i];
    k->n = n;
}

typedef struct Marks {
    Buf **buf;
    int n, cap;
} Marks;

static void collect(Prog *p, const Node *n, Marks *all)
{
    if (mark_of(n) != NULL) {
        all->buf = arena_grow(p->arena, all->buf, all->n, &all->cap, sizeof *all->buf);
        all->buf[all->n++] = mark_of(n);
    }
    for (int i = 0; i < n->nbody; i++)
        collect(p, n->body[i], all);
}

void lower_drop_marks(Kernel *k)
{
    Marks all = { 0 };

    for (int i = 0; i < k->n; i++)
        collect(k->p, k->phase[i], &all);
    for (int i = 0; i < all.n; i++)
        drop_marks(k, all.buf[i]);
}
