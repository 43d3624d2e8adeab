/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Initial values in first stores.  Where the first phase that mentions an array adds to elements of
 * rows of its own, in loops of constant length, the first store that reaches an element sets it
 * instead of adding to it.  Rows are the iterations of the phase or, where it runs over the rows of
 * an axis, their entries.  Elements that no store reaches, or that one store reaches beside others,
 * are initialised at the start of the row. */
#include "lower/init/init_int.h"
#include "lower/storage/storage_int.h"

enum { LIMIT_ROW = 1 << 20, LIMIT_LOOPS = 4, NOBODY = -1, SEVERAL = -2 };
enum { LIMIT_NEST = LOOP_MAX_NEST + 2 };

typedef struct Store { /* to elements of the row: base + the sum of i[k] * stride[k] */
    Node *node;
    const Node *loop[LIMIT_LOOPS]; /* around it, the outermost first: i[k] in lo..hi of loop[k] */
    int loops;
    int64_t base, stride[LIMIT_LOOPS];
    bool first; /* for all of its elements */
} Store;

typedef struct Firsts {
    Prog *p;
    const Node *begin; /* the loops over all elements, */
    const Node *set;   /* and their store */
    Buf *buf;
    int64_t row; /* elements of one */
    Node *phase; /* the one that adds */
    Node *rows;  /* its loop over rows: the phase, or one inside */
    Expr *name;       /* of the row: the variable of the loop, or a coordinate of the entry */
    Store *store;
    int n, cap;
    int *owner; /* by element: the store that is first; or none, or the beginning of the row */
} Firsts;

/* Whether all elements are in rows of a constant length and begin with one number. */
static bool has_rows(Firsts *f, const Node *nest)
{
    const Node *n = nest;

    f->begin = nest;
    f->row = 1;
    if (n->kind != N_FOR)
        return false;
    for (n = n->body[0]; n->kind == N_FOR; n = n->body[0]) {
        if (n->hi->op != OP_int || n->hi->i > LIMIT_ROW / f->row)
            return false;
        f->row *= n->hi->i;
        if (f->row == 0)
            return false;
    }
    f->set = n;
    f->buf = n->out->buf;
    return n->value->op == OP_real && (f->buf->type == T_f32 || f->buf->type == T_f64);
}

/* How far iterations of a loop around the store are apart; -1: it is not known. */
static int64_t stride_in(const Node *loop, Expr *index)
{
    LoopIndex x;

    return loop_index(index, loop->local, &x) ? x.stride : -1;
}

/* A store of the row's phase, in the loops of constant length that *s has. */
static bool take_store(Firsts *f, Store s, Node *n)
{
    Expr *index = n->out->arg[0];
    LoopIndex row;
    int64_t last;

    if (tree_reads(f->p, n->value, f->buf) || (n->op != A_ADD && n->op != A_SET) || n->nat > 0 ||
        lower_row_index(f->p, index, f->rows, &row) != f->name || row.stride != f->row ||
        row.n != s.loops)
        return false;
    s.node = n;
    s.base = last = row.constant;
    for (int k = 0; k < s.loops; k++) {
        const Node *l = s.loop[k];

        s.stride[k] = stride_in(l, index);
        if (s.stride[k] < 1 || s.stride[k] > f->row || l->lo->i < 0 || l->hi->i > f->row)
            return false;
        s.base += l->lo->i * s.stride[k];
        last += (l->hi->i - 1) * s.stride[k];
    }
    f->store = arena_grow(f->p->arena, f->store, f->n, &f->cap, sizeof *f->store);
    f->store[f->n++] = s;
    return s.base >= 0 && last < f->row;
}

static bool writes_here(const Firsts *f, const Node *n)
{
    return n->kind == N_STORE && n->out->op == OP_cell && n->out->buf == f->buf;
}

/* Whether the loop has a constant length that is not zero. */
static bool is_counted(const Node *n)
{
    return n->kind == N_FOR && n->lo->op == OP_int && n->hi->op == OP_int && n->lo->i < n->hi->i;
}

/* A node of the phase that mentions the array: a store inside loops of the row; false: another. */
static bool take_spot(Firsts *f, const Sites *s, int spot)
{
    Node *nest[LIMIT_NEST];
    int n = lower_site_path(s, spot, nest, LIMIT_NEST), at = 0;
    Store store = { 0 };

    while (at < n && nest[at] != f->rows)
        at++;
    for (at++; at < n - 1; at++) {
        if (!is_counted(nest[at]) || store.loops == LIMIT_LOOPS)
            return false;
        store.loop[store.loops++] = nest[at];
    }
    return at == n - 1 && writes_here(f, nest[at]) && take_store(f, store, nest[at]);
}

/* All stores of the phase to the array; false: some are elsewhere. */
static bool take_stores(Firsts *f, const Sites *s)
{
    int n;
    const SiteOf *of = lower_sites_of(s, f->buf, &n);

    for (int i = 0; i < n; i++)
        if ((i == 0 || of[i].spot != of[i - 1].spot) && !take_spot(f, s, of[i].spot))
            return false;
    return f->n > 0;
}

/* Whether an element that store a sets, in one iteration, is reached by store b in another one. */
static bool meet(const Store *a, const Store *b)
{
    return a->loops > 0 && b->loops > 0 && a->loop[0] == b->loop[0] &&
           a->node->out != b->node->out;
}

/* Store i reaches element e. */
static void reach(Firsts *f, int i, int64_t e)
{
    Store *s = &f->store[i];
    int *owner = &f->owner[e];

    if (*owner == i) /* in two iterations */
        s->first = false;
    else if (*owner >= 0 && meet(&f->store[*owner], s))
        f->store[*owner].first = false;
    *owner = s->first ? i : *owner == NOBODY ? SEVERAL : *owner;
}

/* Every element from e on that the loops of store i from k on reach: whether nobody has it, or, if
 * `take`, it is reached. */
static bool each(Firsts *f, int i, int k, int64_t e, bool take)
{
    const Store *s = &f->store[i];
    bool free = true;

    if (k == s->loops) {
        free = f->owner[e] == NOBODY;
        if (take)
            reach(f, i, e);
        return free;
    }
    for (int64_t x = s->loop[k]->lo->i; x < s->loop[k]->hi->i; x++, e += s->stride[k])
        free = each(f, i, k + 1, e, take) && free;
    return free;
}

static void choose_first(Firsts *f)
{
    f->owner = arena_array(f->p->arena, f->row, sizeof *f->owner);
    for (int64_t e = 0; e < f->row; e++)
        f->owner[e] = NOBODY;
    for (int i = 0; i < f->n; i++) {
        f->store[i].first = each(f, i, 0, f->store[i].base, false);
        each(f, i, 0, f->store[i].base, true);
    }
    for (int64_t e = 0; e < f->row; e++)
        if (f->owner[e] >= 0 && !f->store[f->owner[e]].first)
            f->owner[e] = SEVERAL;
}

/* begin + value.  A zero goes into the first product: of the sum it changes the sign of a zero, as
 * it would have done last. */
static Expr *added(Prog *p, Expr *value, Expr *begin)
{
    if (begin->f != 0)
        return ir_op2(p, OP_add, begin, value);
    if (value->op == OP_mul)
        return ir_node(p, OP_fma, (Expr *[]){ value->arg[0], value->arg[1], begin }, 3);
    if (value->op == OP_fma && value->arg[2]->nargs > 0)
        return ir_node(p, OP_fma,
                       (Expr *[]){ value->arg[0], value->arg[1], added(p, value->arg[2], begin) },
                       3);
    return ir_op2(p, OP_add, value, begin);
}

static Expr *begin_value(const Firsts *f)
{
    double v = f->set->value->f;

    return ir_real(f->p, f->buf->type == T_f32 ? (double)(float)v : v);
}

/* Elements [from, to) of the row get their first values. */
static void put_begin(Firsts *f, NodeList *out, int64_t from, int64_t to)
{
    Prog *p = f->p;
    Local *l = loop_local(p, "x", T_i64, 1);
    Expr *at = tree_add(p, tree_mul(p, f->name, ir_int(p, f->row)), loop_use(p, l));
    Node set = *f->set, loop = { .kind = N_FOR,
                                 .label = f->set->label,
                                 .local = l,
                                 .lo = ir_int(p, from),
                                 .hi = ir_int(p, to),
                                 .lanes = 1 };
    NodeList body = { 0 };

    set.out = ir_with_args(p, set.out, &at);
    tree_append(p, &body, loop_node(p, &set));
    tree_append(p, out, tree_with_body(p, &loop, &body));
}

/* Where elements begin that no store sets, after `from`; and where they end. */
static int64_t next_gap(const Firsts *f, int64_t from, int64_t *to)
{
    while (from < f->row && f->owner[from] >= 0)
        from++;
    for (*to = from; *to < f->row && f->owner[*to] < 0;)
        ++*to;
    return from;
}

/* Many gaps are set with what is between them, which a store sets later. */
static void put_begins(Firsts *f, NodeList *out)
{
    int64_t from, to, low = f->row, high = 0;
    int gaps = 0;

    for (from = next_gap(f, 0, &to); from < f->row; from = next_gap(f, to, &to)) {
        low = from < low ? from : low;
        high = to;
        gaps++;
    }
    if (gaps > f->p->policy.init_gaps) {
        put_begin(f, out, low, high);
        return;
    }
    for (from = next_gap(f, 0, &to); from < f->row; from = next_gap(f, to, &to))
        put_begin(f, out, from, to);
}

/* Changes the stores that are first, and the beginning of the row; the phase is the pass's own. */
static void set_firsts(Firsts *f)
{
    NodeList body = { 0 };
    Node *rows = f->rows;

    put_begins(f, &body);
    for (int i = 0; i < rows->nbody && body.n > 0; i++)
        tree_append(f->p, &body, rows->body[i]);
    if (body.n > 0) {
        rows->body = body.node;
        rows->nbody = body.n;
    }
    for (int i = 0; i < f->n; i++) {
        Node *n = f->store[i].node;

        if (f->store[i].first && n->op == A_ADD) {
            n->op = A_SET;
            n->value = added(f->p, n->value, begin_value(f));
        }
    }
}

/* The coordinate of these entries that names each of the rows at most once; or NULL. */
static Expr *name_of(const Firsts *f, const Node *entries)
{
    Axis *a = entries->lo->buf->of;
    Expr *e = loop_use(f->p, entries->local);

    for (int k = 0; k < a->ncoord; k++)
        if (a->coord[k].kind == C_LOAD && a->coord[k].once && a->coord[k].bound == f->begin->hi)
            return loop_cell(f->p, loop_coord(f->p, a, k), &e, 1, 1);
    return NULL;
}

/* Finds the loop of the phase that has the rows of the first values, and how it calls them. */
static bool find_rows(Firsts *f)
{
    if (f->phase->lo != f->begin->lo)
        return false;
    if (f->phase->hi == f->begin->hi)
        f->rows = f->phase;
    for (int i = 0; i < f->phase->nbody && f->rows == NULL; i++) {
        Node *n = f->phase->body[i];
        Expr *count = lower_entries(f->p, f->phase, n);

        f->name = count != NULL && count != f->begin->hi ? name_of(f, n) : NULL;
        if (count == f->begin->hi || f->name != NULL)
            f->rows = n;
    }
    if (f->rows != NULL && f->name == NULL)
        f->name = loop_use(f->p, f->rows->local);
    return f->rows != NULL;
}

/* The loops for rows that no entry names: none, where there are as many entries. */
static Node *for_unnamed(const Firsts *f)
{
    Prog *p = f->p;
    Node c = *f->begin;
    Expr *left = tree_sub(p, c.hi, loop_positions(p, f->rows->lo->buf->of));

    c.hi = tree_mul(p, c.hi, ir_op2(p, OP_min, left, ir_int(p, 1)));
    return loop_node(p, &c);
}

bool lower_init_store(Prog *p, const Node *nest, Node *phase, const Sites *sites, Node **left)
{
    Firsts f = { .p = p, .phase = phase };

    *left = NULL;
    if (phase->kind != N_FOR || phase->how != FOR_PARALLEL || phase->lanes > 1 ||
        phase->scheduled || !has_rows(&f, nest) || !find_rows(&f) || !take_stores(&f, sites))
        return false;
    choose_first(&f);
    set_firsts(&f);
    if (f.name->op != OP_local)
        *left = for_unnamed(&f);
    return true;
}
