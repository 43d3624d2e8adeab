/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Initial values in registers.  Where the first phase that mentions an array loads each of its
 * elements once into a register and stores it back, the register starts with the initial value. */
#include "lower/init/init_int.h"
#include "lower/storage/storage_int.h"

typedef struct Begin { /* of one array */
    Prog *p;
    const Node *loop[IR_MAX_FULL]; /* over its elements, outermost first */
    int nloop;
    const Node *store;
    Node *found; /* the let that may begin so */
} Begin;

enum { LIMIT_NEST = LOOP_MAX_NEST + 2 };

/* An expression of the first nest in terms of the variables of the other: path[i] is the loop for
 * its loop i; or NULL. */
static Expr *renamed(Begin *b, const Node *const *path, Expr *e)
{
    Node *x = loop_node(b->p, &(Node){ .kind = N_LET, .value = e });

    for (int i = 0; i < b->nloop; i++)
        if (path[i] != NULL)
            x = loop_replace(b->p, x, b->loop[i]->local, loop_use(b->p, path[i]->local));
    return x->value;
}

static bool is_same_loop(Begin *b, const Node *const *path, int i, const Node *n)
{
    return renamed(b, path, b->loop[i]->lo) == n->lo && renamed(b, path, b->loop[i]->hi) == n->hi;
}

/* Whether the loop, inside one over all parents, runs over the entries of each, so that the two are
 * one over all entries of the axis. */
static bool is_over_all(Begin *b, const Node *all, const Node *outer, const Node *n)
{
    Prog *p = b->p;
    Axis *a = n->lo->op == OP_cell && n->lo->buf->of_k == -1 ? n->lo->buf->of : NULL;
    Expr *row = loop_use(p, outer->local);

    return a != NULL && a->parent != NULL && all->lo->op == OP_int && all->lo->i == 0 &&
           all->hi == loop_positions(p, a) && outer->lo->op == OP_int && outer->lo->i == 0 &&
           outer->hi == loop_positions(p, a->parent) && n->lo == tree_first(p, a, row) &&
           n->hi == tree_first(p, a, tree_add(p, row, ir_int(p, 1)));
}

static bool is_loop_once(const Node *n)
{
    return n->lo->op == OP_int && n->lo->i == 0 && n->hi->op == OP_int && n->hi->i == 1 &&
           n->how == FOR_SERIAL;
}

static bool search(Begin *b, const Node **path, Node *const *n, int count);

/* Goes on below n[0], which is the loop for loop i of the first nest. */
static bool search_below(Begin *b, const Node **path, int i, Node *const *n, int count)
{
    bool found;

    path[i] = n[0];
    found = search(b, path, n + 1, count - 1);
    if (!found)
        path[i] = NULL;
    return found;
}

/* Two loops for one of the first nest. */
static bool search_entries(Begin *b, const Node **path, int i, Node *const *n, int count)
{
    return count > 1 && n[1]->kind == N_FOR && is_over_all(b, b->loop[i], n[0], n[1]) &&
           search_below(b, path, i, n + 1, count - 1);
}

static bool is_element(Begin *b, const Node **path, const Node *x)
{
    for (int i = 0; i < b->nloop; i++)
        if (path[i] == NULL)
            return false;
    return x->kind == N_LET && x->value->op == OP_cell && x->value->buf == b->store->out->buf &&
           renamed(b, path, b->store->out) == x->value;
}

/* Goes along the nodes, each inside the one before, through loops that are the same as those of the
 * first nest, in any order, to the let of the element. */
static bool search(Begin *b, const Node **path, Node *const *n, int count)
{
    const Node *x = count > 0 ? n[0] : NULL;

    if (count == 0)
        return false;
    for (int i = 0; i < b->nloop && x->kind == N_FOR; i++)
        if (path[i] == NULL &&
            ((is_same_loop(b, path, i, x) && search_below(b, path, i, n, count)) ||
             search_entries(b, path, i, n, count)))
            return true;
    if (x->kind == N_FOR && is_loop_once(x) && search(b, path, n + 1, count - 1))
        return true;
    if (count > 1 || !is_element(b, path, x))
        return false;
    b->found = n[0];
    return true;
}

/* Looks for the let in a phase that mentions the array twice. */
static bool find(Begin *b, const Node **path, const Sites *s)
{
    Node *nest[LIMIT_NEST];
    const SiteOf *of;
    int n;

    of = lower_sites_of(s, b->store->out->buf, &n);
    if (n != 2)
        return false;
    for (int i = 0; i < n; i++)
        if (search(b, path, nest, lower_site_path(s, of[i].spot, nest, LIMIT_NEST)))
            return true;
    return false;
}

/* The value as the element would have kept it. */
static Expr *kept_value(Begin *b, const Node *const *path)
{
    Expr *e = b->store->value;
    double v;

    if (e->op != OP_int && e->op != OP_real)
        return renamed(b, path, e);
    v = e->op == OP_int ? (double)e->i : e->f;
    return ir_real(b->p, b->store->out->type == T_f32 ? (double)(float)v : v);
}

/* The let and the store at the end are the only mentions: then no element is met twice. */
bool lower_init_register(Prog *p, const Node *nest, const Sites *sites)
{
    Begin b = { .p = p };
    const Node *path[IR_MAX_FULL] = { NULL };

    for (; nest->kind == N_FOR; nest = nest->body[0])
        b.loop[b.nloop++] = nest;
    b.store = nest;
    if (!find(&b, path, sites))
        return false;
    b.found->value = kept_value(&b, path);
    return true;
}
