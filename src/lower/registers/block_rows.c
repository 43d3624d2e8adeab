/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Register blocking over rows.  A loop over rows inside a vector loop, each row with sums in
 * registers, processes several rows at a time, so that an operand that is loaded for one row
 * serves all of them. Each element still adds its terms in the same order. */
#include "lower/registers/registers_int.h"
#include "lower/storage/storage_int.h"

typedef struct Moved { /* what changes with the loop over rows: its variable, lets, registers */
    Prog *p;
    Memo moved, depends;
} Moved;

static void move(Moved *m, Local *l)
{
    *ir_memo(m->p, &m->moved, loop_use(m->p, l)) = loop_use(m->p, l);
}

/* A let comes before what uses it, so what was found stays true. */
static bool depends(Moved *m, Expr *e)
{
    Expr *known;

    if (e->nargs == 0)
        return e->op == OP_local && *ir_memo(m->p, &m->moved, e) != NULL;
    known = *ir_memo(m->p, &m->depends, e);
    if (known == NULL) {
        known = ir_int(m->p, 0);
        for (int i = 0; i < e->nargs && known != e; i++)
            if (depends(m, e->arg[i]))
                known = e;
        *ir_memo(m->p, &m->depends, e) = known;
    }
    return known == e;
}

static bool has_own(Moved *m, const Node *n)
{
    Expr *part[] = { n->lo, n->hi, n->cond, n->out, n->value };

    for (size_t i = 0; i < sizeof part / sizeof *part; i++)
        if (part[i] != NULL && depends(m, part[i]))
            return true;
    return false;
}

static bool is_assigned(Node *const *n, int count, const Local *l)
{
    for (int i = 0; i < count; i++)
        if (loop_assigns(n[i], l))
            return true;
    return false;
}

/* Loops and branches are the same for all rows: what a row has of its own is lets, checks and
 * stores. */
static bool can_jam(Moved *m, Node *const *n, int count)
{
    for (int i = 0; i < count; i++) {
        bool own = has_own(m, n[i]);

        if (n[i]->kind == N_BUILD || n[i]->kind == N_INSERT || n[i]->nat > 0 ||
            ((n[i]->kind == N_FOR || n[i]->kind == N_IF) && own))
            return false;
        if (n[i]->kind == N_LET && (own || is_assigned(n + i, count - i, n[i]->local)))
            move(m, n[i]->local);
        if (!can_jam(m, n[i]->body, n[i]->nbody))
            return false;
    }
    return true;
}

bool lower_can_jam(Prog *p, Node *const *n, int count, Local *row)
{
    Moved m = { .p = p };

    move(&m, row);
    return can_jam(&m, n, count);
}

typedef struct Rows {
    Prog *p;
    Node *phase;
    const Node *vector;
    LowerTile how;
    Moved moved;
    Local *row;          /* of the loop */
    int n;               /* rows that run side by side, */
    Memo at[LIMIT_ROWS]; /* and of each, what expressions are in it */
    bool found;          /* a loop over rows */
} Rows;

/* How far e moves when the row does; NULL: not the same everywhere. */
static Expr *step_of(Rows *w, Expr *e)
{
    Prog *p = w->p;
    Expr *a, *b;

    if (!tree_mentions(p, e, w->row))
        return ir_int(p, 0);
    if (e->op == OP_local)
        return ir_int(p, 1);
    if (e->op != OP_add && e->op != OP_mul)
        return NULL;
    a = step_of(w, e->arg[0]);
    b = step_of(w, e->arg[1]);
    if (a == NULL || b == NULL)
        return NULL;
    if (e->op == OP_add)
        return tree_add(p, a, b);
    if (!tree_mentions(p, e->arg[1], w->row))
        return tree_mul(p, a, e->arg[1]);
    return tree_mentions(p, e->arg[0], w->row) ? NULL : tree_mul(p, b, e->arg[0]);
}

static Expr *row_of(Rows *w, Expr *e, int r);

/* An element: a number of steps from that of the first row, so that the rows share its place. */
static Expr *cell_of(Rows *w, Expr *e, int r)
{
    Expr *step = step_of(w, e->arg[0]), *at;

    if (step == NULL)
        return NULL;
    at = tree_add(w->p, row_of(w, e->arg[0], 0), tree_mul(w->p, step, ir_int(w->p, r)));
    return loop_cell(w->p, e->buf, &at, 1, e->k);
}

/* e in row r. */
static Expr *row_of(Rows *w, Expr *e, int r)
{
    Expr *arg[IR_MAX_FULL], **known = ir_memo(w->p, &w->at[r], e), *x;

    if (*known != NULL)
        return *known;
    if (!depends(&w->moved, e))
        return e;
    x = e->op == OP_cell && r > 0 ? cell_of(w, e, r) : NULL;
    for (int i = 0; x == NULL && i < e->nargs; i++)
        arg[i] = row_of(w, e->arg[i], r);
    if (x == NULL && e->op == OP_add && e->type == T_i64)
        x = tree_add(w->p, arg[0], arg[1]);
    if (x == NULL)
        x = ir_with_args(w->p, e, arg);
    *ir_memo(w->p, &w->at[r], e) = x;
    return x;
}

/* One node of row r, with locals of its own. */
static Node *copy_of(Rows *w, const Node *n, int r)
{
    Node *c = loop_node(w->p, n);
    Expr **slot[LIMIT_SLOTS];
    int k = tree_slots(c, slot);

    for (int i = 0; i < k; i++)
        *slot[i] = row_of(w, *slot[i], r);
    if (n->kind == N_LET) {
        c->local = loop_local(w->p, n->local->name, n->local->type, n->local->lanes);
        *ir_memo(w->p, &w->at[r], loop_use(w->p, n->local)) = loop_use(w->p, c->local);
    }
    return c;
}

/* The nodes of all rows: what is the same in all of them once, the rest side by side. */
static NodeList jam(Rows *w, Node *const *n, int count)
{
    NodeList out = { 0 }, body;

    for (int i = 0; i < count; i++) {
        bool own = has_own(&w->moved, n[i]);

        if (n[i]->kind == N_LET && (own || is_assigned(n + i, count - i, n[i]->local))) {
            move(&w->moved, n[i]->local);
            own = true;
        }
        body = jam(w, n[i]->body, n[i]->nbody);
        for (int r = 0; own && r < w->n; r++)
            tree_append(w->p, &out, copy_of(w, n[i], r));
        if (!own)
            tree_append(w->p, &out, tree_with_body(w->p, n[i], &body));
    }
    return out;
}

/* Rows first, first + 1, ... of the loop, side by side. */
static NodeList side_by_side(Rows *w, const Node *loop, Expr *first, int n)
{
    w->moved = (Moved){ .p = w->p };
    w->row = loop->local;
    w->n = n;
    move(&w->moved, loop->local);
    for (int r = 0; r < n; r++) {
        w->at[r] = (Memo){ 0 };
        *ir_memo(w->p, &w->at[r], loop_use(w->p, loop->local)) =
            tree_add(w->p, first, ir_int(w->p, r));
    }
    return jam(w, loop->body, loop->nbody);
}

static void put_list(Rows *w, const NodeList *from, NodeList *out)
{
    for (int i = 0; i < from->n; i++)
        tree_append(w->p, out, from->node[i]);
}

/* `count` times n rows, from `first` on. */
static void put_tiles(Rows *w, const Node *loop, Expr *first, Expr *count, int n, NodeList *out)
{
    Prog *p = w->p;
    Local *q = loop_local(p, loop->local->name, T_i64, 1);
    Node head = *loop;
    NodeList body;

    if (count->op == OP_int && count->i <= 1) {
        body = count->i < 1 ? (NodeList){ 0 } : side_by_side(w, loop, first, n);
        put_list(w, &body, out);
        return;
    }
    head.local = q;
    head.lo = ir_int(p, 0);
    head.hi = count;
    head.over =
        first == loop->lo && loop_is_all(p, loop) ? loop_over_tiles(p, loop->over, n) : NULL;
    body = side_by_side(
        w, loop, tree_add(p, first, tree_mul(p, loop_use(p, q), ir_int(p, n))), n);
    tree_append(p, out, tree_with_body(p, &head, &body));
}

/* So many rows at a time; what is left is one tile when it is known how many there are, and else
 * goes row by row. */
static void put_rows(Rows *w, const Node *loop, int n, NodeList *out)
{
    Prog *p = w->p;
    Expr *rows = tree_sub(p, loop->hi, loop->lo), *count, *done;
    Node rest = *loop;

    if (rows->op == OP_int) {
        put_tiles(w, loop, loop->lo, ir_int(p, rows->i / n), n, out);
        put_tiles(w, loop, ir_int(p, loop->hi->i - rows->i % n), ir_int(p, rows->i % n > 0),
                  (int)(rows->i % n), out);
        return;
    }
    count = ir_op2(p, OP_div, rows, ir_int(p, n));
    done = tree_mul(p, count, ir_int(p, n));
    put_tiles(w, loop, loop->lo, count, n, out);
    rest.lo = tree_add(p, loop->lo, done);
    tree_append(p, out, tree_renamed(p, loop_node(p, &rest)));
}

typedef struct Stores {
    Rows *w;
    const Node *loop;
    Expr *out[LIMIT_ROWS];
    int n;
    bool good;
} Stores;

/* Each row stores to elements of its own. */
static void find_stores(Stores *s, Node *const *n, int count)
{
    Rows *w = s->w;

    for (int i = 0; i < count && s->good; i++) {
        Expr *out = n[i]->kind == N_STORE && n[i]->out->op == OP_cell ? n[i]->out : NULL;
        int row;

        find_stores(s, n[i]->body, n[i]->nbody);
        if (out == NULL)
            continue;
        row = lower_dim_of(w->p, w->phase, out, s->loop->local);
        s->good = s->n < LIMIT_ROWS && row >= 0 &&
                  row != lower_dim_of(w->p, w->phase, out, w->vector->local);
        for (int k = 0; k < s->n && s->good; k++)
            s->good = s->out[k] == out || s->out[k]->buf != out->buf;
        if (s->good)
            s->out[s->n++] = out;
    }
}

/* What is read of an array that the phase writes is an element that the row itself writes. */
static void see_read(Expr *e, void *ctx)
{
    Stores *s = ctx;
    bool own = e->op != OP_cell || !loop_writes(s->w->phase, e->buf);

    for (int k = 0; k < s->n && !own; k++)
        own = s->out[k] == e;
    s->good = s->good && own;
}

static bool binds(Node *const *n, int count, const Local *l)
{
    for (int i = 0; i < count; i++)
        if ((n[i]->kind == N_LET && n[i]->local == l) || binds(n[i]->body, n[i]->nbody, l))
            return true;
    return false;
}

/* Stores to locals are to those that the row binds, at its beginning or in a loop inside. */
static bool are_bound(Node *const *n, int count, const Node *loop)
{
    for (int i = 0; i < count; i++)
        if ((n[i]->kind == N_STORE && n[i]->out->op == OP_local &&
             !binds(loop->body, loop->nbody, n[i]->out->local)) ||
            !are_bound(n[i]->body, n[i]->nbody, loop))
            return false;
    return true;
}

/* Whether rows of the loop may run side by side, inside the vector loop. */
static bool is_over_rows(Rows *w, const Node *n)
{
    Stores s = { .w = w, .loop = n, .good = true };
    Memo met = { 0 };

    if (n->kind != N_FOR || n->lanes > 1 ||
        !lower_can_jam(w->p, n->body, n->nbody, n->local) || !are_bound(n->body, n->nbody, n))
        return false;
    find_stores(&s, n->body, n->nbody);
    for (int i = 0; i < n->nbody && s.good; i++)
        loop_visit(w->p, n->body[i], see_read, &s, &met);
    return s.good && s.n > 0;
}

/* The loops over rows of a vector loop. */
static Node *tile_vector(Rows *w, const Node *v)
{
    Node c = *v;
    NodeList out = { 0 };
    LowerShape s = { 1, v->regs };

    w->vector = v;
    for (int i = 0; i < v->nbody; i++) {
        Node *n = v->body[i];

        if (v->nbody == 1 && is_over_rows(w, n)) {
            s = lower_shape(w->p, v, n, w->how);
            w->found = true;
        }
        if (s.rows > 1)
            put_rows(w, n, s.rows, &out);
        else
            tree_append(w->p, &out, n);
    }
    c.regs = s.registers;
    return tree_with_body(w->p, &c, &out);
}

static NodeList rows_list(Rows *w, Node *const *n, int count)
{
    NodeList out = { 0 }, body;

    for (int i = 0; i < count; i++)
        if (n[i]->kind == N_FOR && n[i]->how == FOR_VECTOR) {
            tree_append(w->p, &out, tile_vector(w, n[i]));
        } else {
            body = rows_list(w, n[i]->body, n[i]->nbody);
            tree_append(w->p, &out, tree_with_body(w->p, n[i], &body));
        }
    return out;
}

/* Whether the rows of a phase that was cut may run side by side. */
static bool is_good_cut(Rows *w, Node *cut)
{
    Node *phase = w->phase;
    bool good;

    w->phase = cut;
    w->vector = cut->body[0];
    good = is_over_rows(w, cut->body[0]->body[0]);
    w->phase = phase;
    return good;
}

/* A phase whose rows are one vector loop each, with the rows inside; or NULL. */
static Node *with_rows_inside(Rows *w, Node *phase)
{
    Node *v = phase->nbody == 1 ? phase->body[0] : NULL, row = *phase, *cut;
    int n;

    if (phase->kind != N_FOR || phase->how != FOR_PARALLEL || phase->lanes > 1 || v == NULL ||
        v->kind != N_FOR || v->how != FOR_VECTOR || phase->lo != ir_int(w->p, 0) ||
        tree_mentions(w->p, v->lo, phase->local) || tree_mentions(w->p, v->hi, phase->local))
        return NULL;
    cut = lower_in_blocks(w->p, phase);
    if (cut != NULL)
        return is_good_cut(w, cut) ? cut : NULL;
    row.body = v->body;
    row.nbody = v->nbody;
    w->vector = v;
    n = is_over_rows(w, &row) ? lower_shape(w->p, v, &row, w->how).rows : 1;
    return n > 1 ? lower_in_strips(w->p, phase, n) : NULL;
}

/* The whole of a phase. */
static Node *tile_phase(Rows *w)
{
    Node *cut = with_rows_inside(w, w->phase);
    NodeList out;

    if (cut != NULL)
        w->phase = cut;
    out = rows_list(w, (Node *[]){ w->phase }, 1);
    out.node[0] = lower_phase(w->p, &out);
    out.node[0]->label = w->phase->label;
    return out.node[0];
}

Node *lower_row_blocked(Prog *p, Node *phase, Node *vector, LowerTile how)
{
    Rows w = { .p = p, .phase = phase, .how = how };
    Node *n = vector == phase ? tile_phase(&w) : tile_vector(&w, vector);

    return w.found ? n : NULL;
}

void lower_block_rows(Kernel *k, LowerTile how)
{
    for (int i = 0; i < k->n; i++) {
        Rows w = { .p = k->p, .phase = k->phase[i], .how = how };

        k->phase[i] = tile_phase(&w);
    }
    lower_done(k, k->p->stage);
}
