/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Turns a phase over rows, each a vector loop, into a phase over blocks of rows, with the rows of a
 * block inside the vector loop, so that registers/block_rows.c can block them. */
#include "lower/registers/registers_int.h"
#include "lower/storage/storage_int.h"

typedef struct Blocks { /* row = block * n + place */
    Expr *row, *block, *place;
    int64_t n;
} Blocks;

static bool is_by_blocks(const Blocks *b, Expr *e)
{
    return (e->op == OP_div || e->op == OP_mod) && e->arg[0] == b->row && e->arg[1]->op == OP_int;
}

static void see_blocks(Expr *e, void *ctx)
{
    Blocks *b = ctx;

    if (is_by_blocks(b, e))
        b->n = b->n == 0 || b->n == e->arg[1]->i ? e->arg[1]->i : -1;
}

static Expr *in_block(Prog *p, Expr *e, void *ctx)
{
    const Blocks *b = ctx;

    (void)p;
    return !is_by_blocks(b, e) ? e : e->op == OP_div ? b->block : b->place;
}

/* How many blocks there are, when the rows are whole ones; or NULL. */
static Expr *count_of(Prog *p, int64_t n, Expr *rows)
{
    for (int i = 0; i < 2 && rows->op == OP_mul; i++)
        if (rows->arg[i] == ir_int(p, n))
            return rows->arg[1 - i];
    return rows->op == OP_int && rows->i % n == 0 ? ir_int(p, rows->i / n) : NULL;
}

static Node *with_loop(Prog *p, const Node *head, Node *body)
{
    NodeList list = { 0 };

    tree_append(p, &list, body);
    return tree_with_body(p, head, &list);
}

/* phase block: vector: row: body */
static Node *nest(Prog *p, const Node *phase, const Node *row, const Node *vector)
{
    Node head = *row;

    head.how = FOR_SERIAL;
    head.body = vector->body;
    head.nbody = vector->nbody;
    return with_loop(p, phase, with_loop(p, vector, loop_node(p, &head)));
}

Node *lower_in_blocks(Prog *p, Node *phase)
{
    Local *block = loop_local(p, "block", T_i64, 1),
          *place = loop_local(p, phase->local->name, T_i64, 1);
    Blocks b = { loop_use(p, phase->local), loop_use(p, block), loop_use(p, place), 0 };
    Node outer = *phase, row = *phase, *v = phase->body[0];
    Memo met = { 0 }, memo = { 0 };

    loop_visit(p, v, see_blocks, &b, &met);
    outer.hi = b.n > 1 ? count_of(p, b.n, phase->hi) : NULL;
    if (outer.hi == NULL)
        return NULL;
    v = loop_rewrite(p, v, in_block, &b, &memo);
    v = loop_replace(p, v, phase->local,
                     tree_add(p, tree_mul(p, b.block, ir_int(p, b.n)), b.place));
    outer.local = block;
    outer.over = loop_over_tiles(p, phase->over, b.n);
    row.local = place;
    row.over = loop_over_tile(p, outer.over, b.block, OVER_OFFSETS);
    row.hi = ir_int(p, b.n);
    return nest(p, &outer, &row, v);
}

Node *lower_in_strips(Prog *p, Node *phase, int n)
{
    Local *block = loop_local(p, "block", T_i64, 1);
    Expr *first = tree_mul(p, loop_use(p, block), ir_int(p, n));
    Node outer = *phase, row = *phase;

    outer.local = block;
    outer.hi = ir_op2(p, OP_div, tree_add(p, phase->hi, ir_int(p, n - 1)), ir_int(p, n));
    outer.over = loop_over_tiles(p, phase->over, n);
    row.over = loop_over_tile(p, outer.over, loop_use(p, block), OVER_POSITIONS);
    row.lo = first;
    row.hi = ir_op2(p, OP_min, tree_add(p, first, ir_int(p, n)), phase->hi);
    return nest(p, &outer, &row, phase->body[0]);
}
