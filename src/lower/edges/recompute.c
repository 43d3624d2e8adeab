/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Recomputes per-edge temporaries where they are read.  The temporary has a row for each entry,
 * and each row is a sum of products of arguments, like the weights that a convolution derives
 * from features of its edges.  If only sweeps read it, the rows of a tile of entries are
 * computed into scratch, side by side in registers, and the temporary is removed. */
#include "lower/algebra/factor_int.h"
#include "lower/lanes/lanes_int.h"
#include "lower/registers/registers_int.h"
#include "lower/storage/storage_int.h"

/* Bytes of such an array, which is on a stack; registers that a row of a tile takes at most, and of
 * all the eighths that hold sums. */
static bool is_plain_loop(Prog *p, const Node *n)
{
    return n->kind == N_FOR && n->how == FOR_SERIAL && n->lanes <= 1 && n->nbody == 1 &&
           n->lo == ir_int(p, 0) && n->hi->op == OP_int;
}

/* Whether the index is row * width + column. */
static bool is_row_index(Expr *index, const Local *row, const Node *column)
{
    LoopIndex x;

    return loop_index(index, row, &x) && x.stride == column->hi->i && x.constant == 0 && x.n == 1 &&
           x.times[0] == 1 && x.leaf[0]->op == OP_local && x.leaf[0]->local == column->local;
}

typedef struct Inputs {
    const Kernel *k;
    int from;           /* phases that may not write them */
    const Local *other; /* that nothing may depend on; or NULL */
    bool good;
} Inputs;

static void see_input(Expr *e, void *ctx)
{
    Inputs *in = ctx;

    if (e->op == OP_local && e->local == in->other)
        in->good = false;
    for (int i = in->from; in->good && e->op == OP_cell && i < in->k->n; i++)
        in->good = !loop_writes(in->k->phase[i], e->buf);
}

/* Whether the nest in this loop over rows sums up each element of the row: sums outside, columns
 * innermost. */
static bool take_nest(const Kernel *k, const Node *rows, LowerTile how, Recomputed *m)
{
    const Node *phase = k->phase[m->sum];
    Inputs in = { k, m->sum, rows == phase ? NULL : phase->local, true };
    const Node *n = m->nest;
    Memo met = { 0 };
    int depth = 0;

    for (; is_plain_loop(k->p, n) && n->body[0]->kind == N_FOR; n = n->body[0])
        depth++;
    if (depth == 0 || !is_plain_loop(k->p, n) || n->body[0]->kind != N_STORE ||
        n->body[0]->op != A_ADD || n->body[0]->nat > 0 || n->body[0]->out->op != OP_cell)
        return false;
    m->column = lower_in_lanes(k->p, n, how.unit);
    m->buf = n->body[0]->out->buf;
    m->row = rows->local;
    if (m->column == NULL || m->buf->kind != B_TEMP ||
        (m->buf->type != T_f32 && m->buf->type != T_f64) ||
        !is_row_index(n->body[0]->out->arg[0], rows->local, n))
        return false;
    ir_visit(k->p, n->body[0]->value, see_input, &in, &met); /* which looks at all phases */
    return in.good;
}

/* Whether the array has so many rows, each of one column after the other, and all of them begin
 * with one value. */
static bool has_rows(const Kernel *k, Expr *count, Recomputed *m)
{
    Dim dim[IR_MAX_FULL];

    m->begin = m->buf->init;
    return m->begin != NULL && m->buf->init_at == NULL && ir_dims(m->buf, dim) == 2 &&
           lower_dim_extent(k->p, m->buf, dim[0]) == count &&
           lower_dim_extent(k->p, m->buf, dim[1]) == m->column->hi;
}

/* Whether nothing but the nest writes the rows, and all that reads them comes in later phases. */
static bool is_only_writer(const Kernel *k, const Node *rows, const Recomputed *m)
{
    for (int i = 0; i < rows->nbody; i++)
        if (rows->body[i] != m->nest && tree_touches(k->p, rows->body[i], m->buf))
            return false;
    for (int i = 0; i < k->n; i++)
        if (i != m->sum && (i < m->sum ? tree_touches(k->p, k->phase[i], m->buf)
                                       : loop_writes(k->phase[i], m->buf)))
            return false;
    return true;
}

/* The loop over rows of a phase, which holds nothing but loops, and the number of all rows; or
 * NULL. */
static const Node *loop_over_rows(const Kernel *k, const Node *phase, Expr **count)
{
    const Node *rows = phase;

    if (phase->kind != N_FOR || phase->how != FOR_PARALLEL || phase->scheduled || phase->lanes > 1)
        return NULL;
    *count = phase->nbody == 1 ? lower_entries(k->p, phase, phase->body[0]) : NULL;
    if (*count != NULL)
        rows = phase->body[0];
    else if (phase->lo == ir_int(k->p, 0))
        *count = phase->hi;
    for (int i = 0; i < rows->nbody; i++)
        if (rows->body[i]->kind != N_FOR)
            return NULL;
    return *count != NULL ? rows : NULL;
}

/* Whether to compute rows again is cheaper than to keep them: terms of an element, once more for
 * each phase but one that reads it, against what it takes to store and load it. */
static bool is_cheap(const Kernel *k, const Recomputed *m)
{
    int64_t terms = 1;
    int readers = 0;

    for (const Node *n = m->nest; n->body[0]->kind == N_FOR; n = n->body[0])
        if (int_mul(terms, n->hi->i, &terms))
            return false;
    for (int i = m->sum + 1; i < k->n; i++)
        readers += tree_touches(k->p, k->phase[i], m->buf);
    return readers <= 1 || terms <= k->p->policy.recompute_terms / (readers - 1);
}

/* The temporaries whose rows phase `at` computes. */
static void add_recomputed(const Kernel *k, int at, LowerTile how, RecomputedList *all)
{
    Expr *count;
    const Node *rows = loop_over_rows(k, k->phase[at], &count);

    for (int i = 0; rows != NULL && i < rows->nbody; i++) {
        Recomputed m = { .sum = at, .nest = rows->body[i] };

        if (!take_nest(k, rows, how, &m) || !has_rows(k, count, &m) ||
            lower_is_elsewhere(k, m.buf) || !is_only_writer(k, rows, &m) || !is_cheap(k, &m) ||
            m.column->hi->i > k->p->policy.tile_scratch / ir_type[m.buf->type].bytes / how.sweep)
            continue;
        all->made = arena_grow(k->p->arena, all->made, all->n, &all->cap, sizeof *all->made);
        all->made[all->n++] = m;
    }
}

RecomputedList lower_find_recomputed(const Kernel *k, LowerTile how)
{
    RecomputedList all = { 0 };

    for (int i = 0; i < k->n && how.sweep > 0 && how.sweep <= LIMIT_ROWS; i++)
        add_recomputed(k, i, how, &all);
    return all;
}

static bool is_recomputed_nest(RecomputedList all, const Node *n)
{
    for (int i = 0; i < all.n; i++)
        if (!all.made[i].off && all.made[i].nest == n)
            return true;
    return false;
}

Node *lower_without_recomputed(Prog *p, RecomputedList all, Node *n)
{
    NodeList body = { 0 };
    bool changed = false;

    if (n->kind != N_FOR || all.n == 0 || is_recomputed_nest(all, n))
        return n->kind == N_FOR && all.n > 0 ? NULL : n;
    for (int i = 0; i < n->nbody; i++) {
        Node *in = lower_without_recomputed(p, all, n->body[i]);

        changed = changed || in != n->body[i];
        if (in != NULL)
            tree_append(p, &body, in);
    }
    if (!changed)
        return n;
    return body.n > 0 ? tree_with_body(p, n, &body) : NULL;
}

bool lower_still_read(const Kernel *k, const Recomputed *m)
{
    for (int i = 0; i < k->n; i++)
        if (k->phase[i] != NULL && tree_touches(k->p, k->phase[i], m->buf))
            return true;
    return false;
}

bool lower_is_recomputed(const Segments *s, const Buf *b)
{
    for (int i = 0; i < s->made.n; i++)
        if (s->made.made[i].buf == b && !s->made.made[i].off)
            return true;
    return false;
}

typedef struct Making {
    const TileOf *t;
    const Recomputed *m;
    const NodeList *body; /* of the tile */
    Buf *work;            /* the rows of a tile; NULL: no element of one has been met */
    Expr *row;            /* that the entry reads */
} Making;

static const Node *loop_with(const NodeList *in, const Local *l)
{
    const Node *found = NULL;

    for (int i = 0; i < in->n && found == NULL; i++)
        found = tree_binder(in->node[i], l);
    return found != NULL && found->kind == N_FOR ? found : NULL;
}

typedef struct Leaf {
    const Making *g;
    bool inside; /* some loop of the tile but that over entries moves it */
    Local *column;
} Leaf;

static void see_leaf(Expr *e, void *ctx)
{
    Leaf *x = ctx;

    if (e->op == OP_local && e->local != x->g->t->entry &&
        loop_with(x->g->body, e->local) != NULL) {
        x->column = x->inside ? NULL : (Local *)e->local;
        x->inside = true;
    }
}

static Leaf leaf_of(const Making *g, Expr *e)
{
    Leaf x = { .g = g };
    Memo met = { 0 };

    ir_visit(g->t->s->p, e, see_leaf, &x, &met);
    return x;
}

/* Whether the loop of the local goes over columns of the row, from the constant on. */
static bool are_columns(const Making *g, const Local *column, int64_t constant)
{
    const Node *n = loop_with(g->body, column);
    int64_t width = g->m->column->hi->i;

    return n != NULL && n->lo->op == OP_int && n->hi->op == OP_int && n->lo->i >= 0 &&
           constant >= 0 && constant <= width && n->hi->i <= width - constant;
}

/* Splits the index of an element into the row, which no other entry reads, and the column; false:
 * it is none of such a row. */
static bool split_index(const Making *g, Expr *index, Expr **row, Expr **column)
{
    Prog *p = g->t->s->p;
    int64_t width = g->m->column->hi->i;
    Leaf all = leaf_of(g, index);
    bool has = false;
    LoopIndex x;

    if (all.column == NULL || !loop_index(index, all.column, &x) || x.stride != 1 ||
        !are_columns(g, all.column, x.constant))
        return false;
    *row = ir_int(p, 0);
    *column = tree_add(p, loop_use(p, all.column), ir_int(p, x.constant));
    for (int i = 0; i < x.n; i++) {
        bool own = lower_index_owner(x.leaf[i]) == g->t->entry;

        if (own ? has || x.times[i] != width
                : x.times[i] % width != 0 || tree_mentions(p, x.leaf[i], g->t->entry))
            return false;
        has = has || own;
        *row = tree_add(p, *row, tree_mul(p, x.leaf[i], ir_int(p, x.times[i] / width)));
    }
    return has;
}

static Expr *work_cell(const Making *g, Expr *row, Expr *column, int lanes)
{
    Prog *p = g->t->s->p;
    Expr *at = tree_add(p, tree_mul(p, row, g->m->column->hi), column);

    return loop_cell(p, g->work, &at, 1, lanes);
}

/* An element of the temporary, as one of the tile's array; all of them are of the entry's row. */
static Expr *in_work(Prog *p, Expr *e, void *ctx)
{
    Making *g = ctx;
    Expr *row, *column;

    if (e->op != OP_cell || e->buf != g->m->buf || !split_index(g, e->arg[0], &row, &column) ||
        (g->work != NULL && row != g->row))
        return e;
    g->row = row;
    if (g->work == NULL)
        g->work = lower_scratch(p, g->m->buf, g->m->buf->type, g->m->column->hi->i * g->t->most);
    return work_cell(g, tree_sub(p, loop_use(p, g->t->entry), loop_use(p, g->t->first)), column,
                     e->k);
}

typedef struct Nth {
    const TileOf *t;
    int number;
} Nth;

static Expr *at_nth(Prog *p, Expr *e, void *ctx)
{
    const Nth *x = ctx;

    return e->op == OP_local && e->local == x->t->entry
               ? tree_add(p, loop_use(p, x->t->first), ir_int(p, x->number))
               : e;
}

/* The row that entry number r of a tile reads. */
static Expr *row_of(const Making *g, int r)
{
    Nth x = { g->t, r };
    Memo memo = { 0 };

    return ir_rewrite(g->t->s->p, g->row, at_nth, &x, &memo);
}

/* The loops of the sum, with what all rows add to their registers. */
static Node *sum_of(const Making *g, const Node *n, const NodeList *sums)
{
    NodeList body = { 0 };

    if (n->body[0]->kind == N_FOR && n->body[0]->body[0]->kind == N_FOR) {
        tree_append(g->t->s->p, &body, sum_of(g, n->body[0], sums));
        return tree_with_body(g->t->s->p, n, &body);
    }
    return tree_with_body(g->t->s->p, n, sums);
}

static Node *store(const Making *g, AssignOp op, Expr *out, Expr *value)
{
    return loop_node(g->t->s->p, &(Node){ .kind = N_STORE,
                                          .label = g->m->nest->label,
                                          .op = op,
                                          .out = out,
                                          .value = value });
}

static int registers_of(const Making *g, int rows)
{
    const Policy *policy = &g->t->s->p->policy;
    int fit = policy->row_sums / rows;

    return fit < 1 ? 1 : fit > policy->row_registers ? policy->row_registers : fit;
}

/* Rows of a tile of so many entries, side by side. */
static Node *rows_of(const Making *g, int rows)
{
    Prog *p = g->t->s->p;
    Expr *column = loop_use(p, g->m->column->local);
    NodeList body = { 0 }, sums = { 0 }, after = { 0 };
    Node v = *g->m->column;

    for (int r = 0; r < rows; r++) {
        Local *l = loop_local(p, NULL, g->m->buf->type, v.lanes);
        Node *add = store(g, A_ADD, loop_use(p, l), v.body[0]->value);

        tree_append(p, &body,
                     loop_node(p, &(Node){ .kind = N_LET,
                                           .label = g->m->nest->label,
                                           .local = l,
                                           .value = g->m->begin }));
        tree_append(p, &sums,
                     loop_replace(p, add, g->m->row, row_of(g, r)));
        tree_append(p, &after,
                     store(g, A_SET, work_cell(g, ir_int(p, r), column, 1), loop_use(p, l)));
    }
    tree_append(p, &body, sum_of(g, g->m->nest, &sums));
    for (int r = 0; r < rows; r++)
        tree_append(p, &body, after.node[r]);
    v.regs = registers_of(g, rows);
    return loop_fresh(p, tree_with_body(p, &v, &body));
}

/* All rows of a tile: as many as it has entries, which are known only when it runs. */
static void put_rows(const Making *g, NodeList *to)
{
    Prog *p = g->t->s->p;
    Expr *many = tree_sub(p, loop_use(p, g->t->last), loop_use(p, g->t->first));

    for (int rows = g->t->most; rows > 0; rows--) {
        NodeList body = { 0 };

        tree_append(p, &body, rows_of(g, rows));
        tree_append(p, to,
                     tree_with_body(p,
                                     &(Node){ .kind = N_IF,
                                              .label = g->m->nest->label,
                                              .cond = ir_op2(p, OP_eq, many, ir_int(p, rows)) },
                                     &body));
    }
}

void lower_recompute(const TileOf *t, NodeList *body, NodeList *to)
{
    for (int i = 0; i < t->s->made.n; i++) {
        Making g = { .t = t, .m = &t->s->made.made[i], .body = body };
        Memo memo = { 0 };

        for (int k = 0; k < body->n && !g.m->off; k++)
            body->node[k] = loop_rewrite(t->s->p, body->node[k], in_work, &g, &memo);
        if (g.work != NULL)
            put_rows(&g, to);
    }
}
