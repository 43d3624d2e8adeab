/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Where sums begin: a phase that only gives each element of an array its first value is left out
 * when the next phase that mentions the array takes each of these elements, once, into a register
 * and stores it back.  The register then begins with the value. */
#include "lower/lower_int.h"

typedef struct Begin { /* of one array */
    Prog *p;
    const Node *loop[IR_MAX_FULL]; /* around its store, outermost first */
    int nloop;
    const Node *store;
    Node *found; /* the let that may begin so */
    int mentions;
} Begin;

static void see_data(Expr *e, void *ctx)
{
    bool structure = e->op != OP_cell || e->buf->of != NULL;

    if (!structure || e->op == OP_find || e->op == OP_above)
        *(bool *)ctx = true;
}

/* A constant, or what structure says. */
static bool is_first_value(Prog *p, Expr *e)
{
    bool data = false;
    Memo met = { 0 };

    ir_visit(p, e, see_data, &data, &met);
    return !data;
}

/* A nest of loops around one store of what is known before all phases. */
static bool is_begin(Begin *b, const Node *n)
{
    for (; n->kind == N_FOR; n = n->body[0]) {
        if (n->nbody != 1 || b->nloop == IR_MAX_FULL)
            return false;
        b->loop[b->nloop++] = n;
    }
    b->store = n;
    return n->kind == N_STORE && n->op == A_SET && n->nat == 0 && n->out->op == OP_cell &&
           is_first_value(b->p, n->value);
}

static void count_mention(Expr *e, void *ctx)
{
    Begin *b = ctx;

    b->mentions += e->op == OP_cell && e->buf == b->store->out->buf;
}

/* How many times the nodes of a tree mention the array, each element that one mentions once. */
static int mentions_in(Begin *b, const Node *n)
{
    Node own = *n;
    Memo met = { 0 };
    int sum;

    own.nbody = 0;
    b->mentions = 0;
    loop_visit(b->p, &own, count_mention, b, &met);
    sum = b->mentions;
    for (int i = 0; i < n->nbody; i++)
        sum += mentions_in(b, n->body[i]);
    return sum;
}

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
           all->hi == lower_count(p, a) && outer->lo->op == OP_int && outer->lo->i == 0 &&
           outer->hi == lower_count(p, a->parent) && n->lo == lower_first(p, a, row) &&
           n->hi == lower_first(p, a, lower_add(p, row, ir_int(p, 1)));
}

static bool is_loop_once(const Node *n)
{
    return n->lo->op == OP_int && n->lo->i == 0 && n->hi->op == OP_int && n->hi->i == 1 &&
           n->how == FOR_SERIAL;
}

static bool search(Begin *b, const Node **path, Node *const *n, int count);

/* Goes on below n, which is the loop for loop i of the first nest. */
static bool search_below(Begin *b, const Node **path, int i, const Node *n)
{
    bool found;

    path[i] = n;
    found = search(b, path, n->body, n->nbody);
    if (!found)
        path[i] = NULL;
    return found;
}

/* Two loops for one of the first nest. */
static bool search_entries(Begin *b, const Node **path, int i, const Node *rows)
{
    for (int k = 0; k < rows->nbody; k++) {
        const Node *x = rows->body[k];

        if (x->kind == N_FOR && is_over_all(b, b->loop[i], rows, x) && search_below(b, path, i, x))
            return true;
    }
    return false;
}

static bool is_element(Begin *b, const Node **path, const Node *x)
{
    for (int i = 0; i < b->nloop; i++)
        if (path[i] == NULL)
            return false;
    return x->kind == N_LET && x->value->op == OP_cell && x->value->buf == b->store->out->buf &&
           renamed(b, path, b->store->out) == x->value;
}

/* Looks, through loops that are the same as those of the first nest, in any order, for the let of
 * the element. */
static bool search(Begin *b, const Node **path, Node *const *n, int count)
{
    for (int k = 0; k < count; k++) {
        const Node *x = n[k];

        for (int i = 0; i < b->nloop && x->kind == N_FOR; i++)
            if (path[i] == NULL && ((is_same_loop(b, path, i, x) && search_below(b, path, i, x)) ||
                                    search_entries(b, path, i, x)))
                return true;
        if (x->kind == N_FOR && is_loop_once(x) && search(b, path, x->body, x->nbody))
            return true;
        if (is_element(b, path, x)) {
            b->found = n[k];
            return true;
        }
    }
    return false;
}

static Node *with_value(Prog *p, Node *n, const Node *let, Expr *value)
{
    Node c = *n;
    NodeList body = { 0 };

    if (n == let) {
        c.value = value;
        return loop_node(p, &c);
    }
    for (int i = 0; i < n->nbody; i++)
        lower_append(p, &body, with_value(p, n->body[i], let, value));
    return lower_with_body(p, n, &body);
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
static bool merge(Kernel *k, int from)
{
    Begin b = { .p = k->p };
    const Node *path[IR_MAX_FULL] = { NULL };
    int to = from + 1, n = 0;

    if (!is_begin(&b, k->phase[from]))
        return false;
    while (to < k->n && (n = mentions_in(&b, k->phase[to])) == 0)
        to++;
    if (to == k->n || n != 2 || !search(&b, path, &k->phase[to], 1))
        return false;
    k->phase[to] = with_value(k->p, k->phase[to], b.found, kept_value(&b, path));
    return true;
}

void lower_begins(Kernel *k)
{
    lower_drop_phases(k, merge);
}
