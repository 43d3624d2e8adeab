/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Consumes per-edge temporaries tile by tile.  It takes loops over entries that read recomputed
 * rows (edges/recompute.c), or that fill a scratch row for products to read (fuse/entries.c).  The
 * scratch gets a row for each entry of a tile.  A tile runs in three steps: fill the recomputed
 * rows, compute the values of each entry, then run the products of all its rows in registers.
 * Products that sum over lanes do so for all entries of the tile side by side; products that sum
 * over entries keep their sums in lanes. */
#include "lower/algebra/factor_int.h"
#include "lower/lanes/lanes_int.h"
#include "lower/registers/registers_int.h"
#include "lower/storage/storage_int.h"

/* Registers that sums of a loop take at most, of all the eighths that hold sums; rows of a result
 * that are computed side by side. */
enum { LIMIT_WORKS = 4 };

typedef struct Use { /* a product: one sum in loops with constant ends */
    Node *nest;
    Node *vector;  /* the innermost loop, in lanes */
    bool in_lanes; /* the sums are: else they are over lanes, and each entry has one */
} Use;

typedef struct Tiles {
    Segments *s;
    const Node *loop; /* over entries */
    TileOf of;
    Buf *old[LIMIT_WORKS], *work[LIMIT_WORKS]; /* arrays of an entry, and of a tile */
    int nwork;
    Use *use;
    int nuse;
    NodeList rest; /* what is done entry by entry */
} Tiles;

static bool is_known(const Node *n)
{
    return n->kind == N_FOR && n->how == FOR_SERIAL && n->lanes <= 1 && n->lo->op == OP_int &&
           n->hi->op == OP_int && n->lo->i < n->hi->i;
}

/* The array of the iteration, all of which the loop begins; or NULL. */
static Buf *begins(const Tiles *t, const Node *n)
{
    const Node *s = is_known(n) && n->nbody == 1 ? n->body[0] : NULL;
    Expr *size;

    if (s == NULL || s->kind != N_STORE || s->op != A_SET || s->out->op != OP_cell ||
        !loop_is_work(s->out->buf) || s->out->arg[0] != loop_use(t->s->p, n->local))
        return NULL;
    size = s->out->buf->full[0]->size;
    return n->lo->i == 0 && n->hi == size ? s->out->buf : NULL;
}

/* Whether nothing else that is done for an entry mentions what the sum adds to. */
static bool is_alone(const Tiles *t, int at, const Buf *out)
{
    for (int i = 0; i < t->loop->nbody; i++)
        if (i != at && tree_touches(t->s->p, t->loop->body[i], out))
            return false;
    return true;
}

/* Whether the array of an entry keeps its values after this. */
static bool is_done(const Tiles *t, int at)
{
    for (int i = at; i < t->loop->nbody; i++)
        for (int k = 0; k < t->nwork; k++)
            if (loop_writes(t->loop->body[i], t->old[k]))
                return false;
    return true;
}

static bool take_use(const Tiles *t, int at, Use *u)
{
    Prog *p = t->s->p;
    Node *n = t->loop->body[at];
    const Node *sum;
    bool reads = false, moves;

    *u = (Use){ .nest = n };
    while (is_known(n) && n->nbody == 1 && n->body[0]->kind == N_FOR)
        n = n->body[0];
    sum = is_known(n) && n->nbody == 1 ? n->body[0] : NULL;
    if (n == u->nest || sum == NULL || sum->kind != N_STORE || sum->op != A_ADD || sum->nat > 0 ||
        sum->out->op != OP_cell || !is_done(t, at) || !is_alone(t, at, sum->out->buf))
        return false;
    for (int k = 0; k < t->nwork; k++)
        reads = reads || tree_touches(p, n, t->old[k]);
    moves = tree_mentions(p, sum->out, t->loop->local);
    u->in_lanes = !moves;
    u->vector = moves ? lower_over_lanes(p, n, t->s->how.unit)
                      : lower_in_lanes(p, n, t->s->how.unit);
    return reads && u->vector != NULL;
}

static bool reads_made(const Tiles *t)
{
    for (int i = 0; i < t->s->made.n; i++)
        if (!t->s->made.made[i].off && tree_touches(t->s->p, t->loop, t->s->made.made[i].buf))
            return true;
    return false;
}

/* Sorts what is done for an entry; false: tiles are of no use. */
static bool take_body(Tiles *t)
{
    Prog *p = t->s->p;

    t->use = arena_array(p->arena, t->loop->nbody, sizeof *t->use);
    for (int i = 0; i < t->loop->nbody; i++) {
        Node *n = t->loop->body[i];
        Buf *b = begins(t, n);

        if (n->kind != N_FOR)
            return false;
        if (b != NULL && t->nwork < LIMIT_WORKS) {
            for (int k = 0; k < i; k++)
                if (tree_touches(p, t->loop->body[k], b))
                    return false;
            t->old[t->nwork++] = b;
        }
        if (take_use(t, i, &t->use[t->nuse]))
            t->nuse++;
        else
            tree_append(p, &t->rest, n);
    }
    return t->nuse > 0 || reads_made(t);
}

typedef struct Nth { /* an entry of a tile */
    const Tiles *t;
    Expr *number;
} Nth;

/* An element of the array of an entry, as one of that of the tile. */
static Expr *in_tile(Prog *p, Expr *e, void *ctx)
{
    const Nth *x = ctx;
    const Tiles *t = x->t;
    Expr *at;

    for (int k = 0; k < t->nwork && e->op == OP_cell; k++)
        if (e->buf == t->old[k]) {
            at = tree_add(p, tree_mul(p, x->number, t->old[k]->full[0]->size), e->arg[0]);
            return loop_cell(p, t->work[k], &at, 1, e->k);
        }
    return e;
}

static Node *to_tile(const Tiles *t, Node *n, Expr *number)
{
    Nth x = { t, number };
    Memo memo = { 0 };

    return loop_rewrite(t->s->p, n, in_tile, &x, &memo);
}

/* The number of the entry that a loop over those of the tile is at. */
static Expr *number_of(const Tiles *t)
{
    Prog *p = t->s->p;

    return tree_sub(p, loop_use(p, t->of.entry), loop_use(p, t->of.first));
}

static Node *put_sum(const Tiles *t, const Use *u, Expr *out, Expr *value)
{
    return loop_node(t->s->p, &(Node){ .kind = N_STORE,
                                       .label = u->vector->body[0]->label,
                                       .op = A_ADD,
                                       .out = out,
                                       .value = value });
}

static Local *put_register(const Tiles *t, const Use *u, NodeList *to, int lanes)
{
    Prog *p = t->s->p;
    const Node *sum = u->vector->body[0];
    Local *l = loop_local(p, NULL, (Type)sum->out->type, lanes);

    tree_append(p, to,
                 loop_node(p, &(Node){ .kind = N_LET,
                                       .label = sum->label,
                                       .local = l,
                                       .value = lower_factor_begin(p) }));
    return l;
}

/* Loops of a nest around another body. */
static Node *around(const Tiles *t, const Node *n, const Node *inner, const NodeList *body)
{
    NodeList in = { 0 };

    if (n == inner)
        return tree_with_body(t->s->p, n, body);
    tree_append(t->s->p, &in, around(t, n->body[0], inner, body));
    return tree_with_body(t->s->p, n, &in);
}

static const Node *last_but_one(const Node *n)
{
    while (n->body[0]->body[0]->kind == N_FOR)
        n = n->body[0];
    return n;
}

/* The loop over rows of the result: so many of them in an iteration. */
static Node *by_rows(const Tiles *t, const Use *u, const Node *rows, int many)
{
    Prog *p = t->s->p;
    Node v = *u->vector, loop = *rows, entries = *t->loop;
    const Node *sum = v.body[0];
    NodeList body = { 0 }, inner = { 0 }, after = { 0 }, all = { 0 };
    int fit = p->policy.row_sums / many;

    for (int r = 0; r < many; r++) {
        Expr *row = tree_add(p, tree_mul(p, loop_use(p, rows->local), ir_int(p, many)),
                              ir_int(p, r));
        Local *l = put_register(t, u, &body, v.lanes);
        Node *add = put_sum(t, u, loop_use(p, l), sum->value);
        Node *put = put_sum(t, u, sum->out, loop_use(p, l));

        add = to_tile(t, add, number_of(t));
        tree_append(p, &inner, loop_replace(p, add, rows->local, row));
        tree_append(p, &after, loop_replace(p, put, rows->local, row));
    }
    entries.lo = loop_use(p, t->of.first);
    entries.hi = loop_use(p, t->of.last);
    entries.label = sum->label;
    tree_append(p, &body, tree_with_body(p, &entries, &inner));
    tree_append_all(p, &body, &after);
    v.regs = fit < 1 ? 1 : fit > p->policy.row_registers ? p->policy.row_registers : fit;
    tree_append(p, &all, tree_with_body(p, &v, &body));
    loop.hi = ir_int(p, rows->hi->i / many);
    loop.over = loop_is_all(p, rows) ? loop_over_tiles(p, rows->over, many) : NULL;
    return tree_with_body(p, &loop, &all);
}

/* Sums in lanes: the entries of the tile pass while some rows of the result are in registers. */
static void put_in_lanes(const Tiles *t, const Use *u, NodeList *to)
{
    Prog *p = t->s->p;
    const Node *rows = last_but_one(u->nest);
    int many = rows->lo->i == 0 ? p->policy.consumed_rows : 1;
    NodeList body = { 0 };

    while (rows->hi->i % many != 0)
        many /= 2;
    if (rows == u->nest) {
        tree_append(p, to, loop_fresh(p, by_rows(t, u, rows, many)));
        return;
    }
    tree_append(p, &body, by_rows(t, u, rows, many));
    for (const Node *n = u->nest;; n = n->body[0])
        if (n->body[0] == rows) {
            tree_append(p, to, loop_fresh(p, around(t, u->nest, n, &body)));
            return;
        }
}

/* Sums over lanes, of a tile of so many entries side by side. */
static Node *over_lanes(const Tiles *t, const Use *u, int many)
{
    Prog *p = t->s->p;
    const Node *sum = u->vector->body[0];
    NodeList body = { 0 }, inner = { 0 }, after = { 0 };

    for (int r = 0; r < many; r++) {
        Expr *entry = tree_add(p, loop_use(p, t->of.first), ir_int(p, r));
        Local *l = put_register(t, u, &body, 1);
        Node *add = put_sum(t, u, loop_use(p, l), sum->value);
        Node *put = put_sum(t, u, sum->out, loop_use(p, l));

        add = to_tile(t, add, ir_int(p, r));
        tree_append(p, &inner, loop_replace(p, add, t->of.entry, entry));
        tree_append(p, &after, loop_replace(p, put, t->of.entry, entry));
    }
    tree_append(p, &body, tree_with_body(p, u->vector, &inner));
    tree_append_all(p, &body, &after);
    return loop_fresh(p, around(t, u->nest, last_but_one(u->nest), &body));
}

static void put_over_lanes(const Tiles *t, const Use *u, NodeList *to)
{
    Prog *p = t->s->p;
    Expr *many = tree_sub(p, loop_use(p, t->of.last), loop_use(p, t->of.first));

    for (int rows = t->of.most; rows > 0; rows--) {
        NodeList body = { 0 };
        Node is = { .kind = N_IF,
                    .label = u->nest->label,
                    .cond = ir_op2(p, OP_eq, many, ir_int(p, rows)) };

        tree_append(p, &body, over_lanes(t, u, rows));
        tree_append(p, to, tree_with_body(p, &is, &body));
    }
}

/* What is done entry by entry. */
static Node *entry_by_entry(const Tiles *t)
{
    NodeList some = { 0 }, body;
    Node loop = *t->loop;

    for (int i = 0; i < t->rest.n; i++)
        tree_append(t->s->p, &some, to_tile(t, t->rest.node[i], number_of(t)));
    loop.lo = loop_use(t->s->p, t->of.first);
    loop.hi = loop_use(t->s->p, t->of.last);
    body = lower_factor_in(t->s, &loop, some.node, some.n);
    return tree_with_body(t->s->p, &loop, &body);
}

/* Entries of a tile: as many as the arrays of the iteration have room for; 0: none. */
static int entries_of(const Tiles *t)
{
    int most = t->s->how.sweep < LIMIT_ROWS ? t->s->how.sweep : LIMIT_ROWS;

    for (int k = 0; k < t->nwork; k++)
        while (most > 0 && t->old[k]->full[0]->size->i >
                               t->s->p->policy.tile_scratch / ir_type[t->old[k]->type].bytes / most)
            most /= 2;
    return most;
}

bool lower_consume(Segments *s, const Node *n)
{
    Tiles t = { .s = s, .loop = n };
    NodeList body = { 0 }, rest = { 0 };
    Node tiles;

    if (n->kind != N_FOR || n->how != FOR_SERIAL || n->lanes > 1 || s->how.sweep <= 0 ||
        n->lo->op != OP_cell || n->lo->buf->of == NULL || !take_body(&t))
        return false;
    t.of = (TileOf){ .s = s, .entry = n->local, .most = entries_of(&t) };
    if (t.of.most == 0)
        return false;
    tiles = lower_open_tiles(s, n, t.of.most, &body, &t.of.first, &t.of.last);
    for (int k = 0; k < t.nwork; k++)
        t.work[k] =
            lower_scratch(s->p, t.old[k], t.old[k]->type, t.old[k]->full[0]->size->i * t.of.most);
    tree_append(s->p, &rest, entry_by_entry(&t));
    lower_recompute(&t.of, &rest, &body);
    tree_append_all(s->p, &body, &rest);
    for (int i = 0; i < t.nuse; i++)
        (t.use[i].in_lanes ? put_in_lanes : put_over_lanes)(&t, &t.use[i], &body);
    tree_append(s->p, &s->out, tree_with_body(s->p, &tiles, &body));
    return true;
}
