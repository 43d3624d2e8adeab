/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Panels: a phase over rows, each a vector loop, becomes a phase over panels and rows.  It
 * processes some columns of all rows first, then the next columns.  Gathered rows then come from
 * a table of narrow rows that a cache may hold; if packed, the table is contiguous. */
#include "lower/storage/storage_int.h"

typedef struct Panel {
    Prog *p;
    int width;
    Node *vector;      /* the loop that is cut */
    Expr *count;       /* of panels */
    Expr *at, *length; /* where the panel begins, and its elements */
    Expr *number;
    NodeList pack; /* phases that pack */
} Panel;

/* A phase over rows from the first, each one vector loop, after lets, that is the same for all. */
static Node *vector_of(Prog *p, const Node *phase)
{
    Node *v = phase->nbody > 0 ? phase->body[phase->nbody - 1] : NULL;

    if (phase->kind != N_FOR || phase->how != FOR_PARALLEL || phase->lanes > 1 || v == NULL ||
        v->kind != N_FOR || v->how != FOR_VECTOR || v->lo->op != OP_int || v->lo->i != 0 ||
        phase->lo->op != OP_int || phase->lo->i != 0 || tree_mentions(p, v->hi, phase->local))
        return NULL;
    for (int i = 0; i + 1 < phase->nbody; i++)
        if (phase->body[i]->kind != N_LET || tree_mentions(p, v->hi, phase->body[i]->local))
            return NULL;
    return v;
}

/* row * length + k of an array whose rows are as long as the loop: then its row; or NULL. */
static Expr *row_of(const Panel *c, Expr *cell)
{
    Dim dim[IR_MAX_FULL];
    Expr *k = loop_use(c->p, c->vector->local), *at;
    int n;

    if (cell->op != OP_cell || cell->buf->of != NULL || cell->buf->kind == B_CONST ||
        cell->buf->written || cell->buf->stride != NULL || (n = ir_dims(cell->buf, dim)) < 2 ||
        cell->arg[0]->op != OP_add ||
        lower_dim_extent(c->p, cell->buf, dim[n - 1]) != c->vector->hi)
        return NULL;
    at = cell->arg[0]->arg[0] == k ? cell->arg[0]->arg[1] : cell->arg[0]->arg[0];
    if (at->op != OP_mul || (cell->arg[0]->arg[0] != k && cell->arg[0]->arg[1] != k))
        return NULL;
    if (at->arg[1] == c->vector->hi)
        return at->arg[0];
    return at->arg[0] == c->vector->hi ? at->arg[1] : NULL;
}

/* Whether the row is one that an index array names. */
static void see_load(Expr *e, void *ctx)
{
    if (e->op == OP_cell)
        *(bool *)ctx = true;
}

static bool is_gathered(const Panel *c, Expr *row)
{
    bool found = false;
    Memo met = { 0 };

    ir_visit(c->p, row, see_load, &found, &met);
    return found && !tree_mentions(c->p, row, c->vector->local);
}

/* How many such rows the array has. */
static Expr *rows_of(const Panel *c, const Buf *b)
{
    Dim dim[IR_MAX_FULL];
    int n = ir_dims(b, dim);
    Expr *rows = lower_dim_extent(c->p, b, dim[0]);

    for (int d = 1; d + 1 < n; d++)
        rows = tree_mul(c->p, rows, lower_dim_extent(c->p, b, dim[d]));
    return rows;
}

static Buf *packed(Panel *c, Buf *of)
{
    Prog *p = c->p;
    Text name = { .arena = p->arena };
    Buf *b = arena_copy(p->arena, of, sizeof *of);

    text_f(&name, "%s.pack", of->name);
    b->name = name.s;
    b->kind = B_TEMP;
    b->written = true;
    return loop_own(p, b);
}

/* Element k of a row, in the panel that it is in. */
static Expr *packed_cell(Panel *c, Buf *of, Expr *row, Expr *at, Expr *length, Expr *k)
{
    Prog *p = c->p;
    Expr *base, *index;

    base = tree_sub(p, tree_mul(p, at, rows_of(c, of)), at);
    index = tree_add(p, tree_add(p, base, tree_mul(p, row, length)), k);
    return loop_cell(p, packed(c, of), &index, 1, 1);
}

/* for x: for panels: pack[...] = of[x, k] */
static void add_pack(Panel *c, Buf *of)
{
    Prog *p = c->p;
    Local *x = loop_local(p, "x", T_i64, 1), *n = loop_local(p, "panel", T_i64, 1),
          *k = loop_local(p, "k", T_i64, 1);
    Expr *at = tree_mul(p, loop_use(p, n), ir_int(p, c->width)),
         *end = ir_op2(p, OP_min, tree_add(p, at, ir_int(p, c->width)), c->vector->hi),
         *from = tree_add(p, tree_mul(p, loop_use(p, x), c->vector->hi), loop_use(p, k));
    Node store = { .kind = N_STORE, .op = A_SET, .value = loop_cell(p, of, &from, 1, 1) },
         row = { .kind = N_FOR, .local = k, .lo = at, .hi = end },
         panels = { .kind = N_FOR, .local = n, .lo = ir_int(p, 0), .hi = c->count },
         all = { .kind = N_FOR, .local = x, .lo = ir_int(p, 0), .how = FOR_PARALLEL };
    NodeList one = { 0 }, two = { 0 }, three = { 0 };

    all.hi = rows_of(c, of);
    all.label = packed(c, of)->name;
    store.out = packed_cell(c, of, loop_use(p, x), at, tree_sub(p, end, at), loop_use(p, k));
    tree_append(p, &one, loop_node(p, &store));
    tree_append(p, &two, tree_with_body(p, &row, &one));
    tree_append(p, &three, tree_with_body(p, &panels, &two));
    tree_append(p, &c->pack, tree_with_body(p, &all, &three));
}

static Expr *from_pack(Prog *p, Expr *e, void *ctx)
{
    Panel *c = ctx;
    Expr *row = row_of(c, e);
    bool known = false;

    if (row == NULL || !is_gathered(c, row))
        return e;
    for (int i = 0; i < c->pack.n && !known; i++)
        known = c->pack.node[i]->label == packed(c, e->buf)->name;
    if (!known)
        add_pack(c, e->buf);
    return packed_cell(c, e->buf, row, c->at, c->length, loop_use(p, c->vector->local));
}

/* for q in 0..panels * rows: row q % rows, panel q / rows */
static Node *over_panels(Panel *c, Node *phase, bool pack)
{
    Prog *p = c->p;
    Local *q = loop_local(p, "q", T_i64, 1), *n = loop_local(p, "panel", T_i64, 1),
          *i = loop_local(p, phase->local->name, T_i64, 1);
    Node outer = *phase, let = { .kind = N_LET, .label = phase->label }, *v = c->vector;
    Expr *end;
    NodeList body = { 0 };
    Memo memo = { 0 };

    outer.local = q;
    outer.hi = tree_mul(p, c->count, phase->hi);
    outer.over = loop_over_rounds(p, phase->over);
    let.local = n;
    let.value = ir_op2(p, OP_div, loop_use(p, q), phase->hi);
    tree_append(p, &body, loop_node(p, &let));
    let.local = i;
    let.value = tree_sub(p, loop_use(p, q), tree_mul(p, loop_use(p, n), phase->hi));
    tree_append(p, &body, loop_node(p, &let));
    c->at = tree_mul(p, loop_use(p, n), ir_int(p, c->width));
    end = ir_op2(p, OP_min, tree_add(p, c->at, ir_int(p, c->width)), v->hi);
    c->length = tree_sub(p, end, c->at);
    for (int k = 0; k + 1 < phase->nbody; k++)
        tree_append(p, &body, loop_replace(p, phase->body[k], phase->local, loop_use(p, i)));
    v = loop_replace(p, v, phase->local, loop_use(p, i));
    if (pack)
        v = loop_rewrite(p, v, from_pack, c, &memo);
    v = loop_node(p, v);
    v->lo = c->at;
    v->hi = end;
    tree_append(p, &body, v);
    return tree_with_body(p, &outer, &body);
}

void lower_panel(Kernel *k, int width, bool pack)
{
    NodeList out = { 0 };

    for (int i = 0; i < k->n; i++) {
        Panel c = { .p = k->p, .width = width, .vector = vector_of(k->p, k->phase[i]) };
        Node *n = k->phase[i];

        if (width > 0 && c.vector != NULL) {
            c.count = ir_op2(k->p, OP_div, tree_add(k->p, c.vector->hi, ir_int(k->p, width - 1)),
                             ir_int(k->p, width));
            n = over_panels(&c, n, pack);
        }
        for (int j = 0; j < c.pack.n; j++)
            tree_append(k->p, &out, c.pack.node[j]);
        tree_append(k->p, &out, n);
    }
    k->phase = out.node;
    k->n = k->cap = out.n;
    lower_done(k, k->p->stage);
}
