/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * What a loop runs over: the positions of an axis, those below one position of its parent, or tiles
 * of either.  Passes read it instead of guessing it from the ends of the loop. */
#include "ir/ir_int.h"
#include "ir/loop.h"

static Expr *simple(Prog *p, Expr *e)
{
    Memo memo = { 0 };

    return ir_simplify(p, e, &memo);
}

static Expr *op(Prog *p, Op op, Expr *a, Expr *b)
{
    return simple(p, ir_op2(p, op, a, b));
}

/* Whether these are positions of rows, of which there may be tiles. */
static bool are_rows(const Over *o)
{
    return o != NULL && o->kind == OVER_POSITIONS && o->tile == NULL;
}

static const Over *put(Prog *p, const Over *o)
{
    return arena_copy(p->arena, o, sizeof *o);
}

const Over *loop_over(Prog *p, Axis *a, Expr *row)
{
    bool rows = a->extent == X_SEG || a->extent == X_BUILT;

    if (a->name == NULL || a->extent == X_ONE)
        return NULL;
    if (a->extent == X_EXPR)
        return put(p, &(Over){ .kind = OVER_POSITIONS,
                               .axis = a,
                               .fixed = row != NULL && a->parent != NULL });
    return put(p, &(Over){ .kind = OVER_POSITIONS,
                           .axis = a,
                           .row = a->parent != NULL || rows ? row : NULL });
}

const Over *loop_over_tiles(Prog *p, const Over *of, int64_t size)
{
    Over c;

    if (!are_rows(of) || size < 1 || size > INT32_MAX)
        return NULL;
    c = *of;
    c.kind = OVER_TILES;
    c.size = (int)size;
    return put(p, &c);
}

const Over *loop_over_tile(Prog *p, const Over *tiles, Expr *tile, OverKind kind)
{
    Over c;

    if (tiles == NULL)
        return NULL;
    c = *tiles;
    c.kind = kind;
    c.tile = tile;
    return put(p, &c);
}

const Over *loop_over_rounds(Prog *p, const Over *of)
{
    if (!are_rows(of) || of->row != NULL || of->fixed)
        return NULL;
    return put(p, &(Over){ .kind = OVER_ROUNDS, .axis = of->axis });
}

const Over *loop_over_at(Prog *p, const Over *o, Expr *row, Expr *tile)
{
    Over c = *o;

    if (row == o->row && tile == o->tile)
        return o;
    c.row = row;
    c.tile = tile;
    return put(p, &c);
}

Expr *loop_positions(Prog *p, Axis *a)
{
    int64_t n = ir_const_total(a);

    if (n >= 0)
        return ir_int(p, n);
    if (a->extent == X_ONE)
        return loop_positions(p, a->parent);
    if (a->extent != X_EXPR)
        return ir_count(p, a);
    return a->parent == NULL ? simple(p, a->size)
                             : op(p, OP_mul, loop_positions(p, a->parent), a->size);
}

/* row + 1, its constant last. */
static Expr *next_row(Prog *p, Expr *row)
{
    bool sum = row->op == OP_add && row->arg[1]->op == OP_int;
    Expr *n = op(p, OP_add, sum ? row->arg[1] : row, ir_int(p, 1));

    if (!sum || n->op != OP_int)
        return sum ? op(p, OP_add, row, ir_int(p, 1)) : n;
    return n->i == 0 ? row->arg[0] : ir_op2(p, OP_add, row->arg[0], n);
}

static Expr *start_at(Prog *p, Axis *a, Expr *row)
{
    return simple(p, loop_cell(p, loop_start(p, a), &row, 1, 1));
}

/* The positions of the axis, or those below the row. */
static void ends_of_row(Prog *p, const Over *o, Expr **lo, Expr **hi)
{
    Axis *a = o->axis;
    Expr *row = o->row;
    bool rows = a->extent == X_SEG || a->extent == X_BUILT;
    bool first = a->parent == NULL && row != NULL && row->op == OP_int && row->i == 0;

    *lo = ir_int(p, 0);
    if (o->fixed)
        *hi = simple(p, a->size);
    else if (row == NULL)
        *hi = loop_positions(p, a);
    else if (a->extent == X_TABLE)
        *hi = simple(p, loop_cell(p, loop_extent(p, a), &row, 1, 1));
    if (row == NULL || !rows)
        return;
    if (!first)
        *lo = start_at(p, a, row);
    *hi = start_at(p, a, next_row(p, row));
}

static bool is_zero(const Expr *e)
{
    return e->op == OP_int && e->i == 0;
}

bool loop_ends(Prog *p, const Over *o, Expr **lo, Expr **hi)
{
    Expr *size = ir_int(p, o->size), *first;

    if (o->kind == OVER_OFFSETS || o->kind == OVER_ROUNDS)
        return false;
    ends_of_row(p, o, lo, hi);
    if (o->kind == OVER_TILES) {
        first = is_zero(*lo) ? *hi : op(p, OP_sub, *hi, *lo);
        *lo = ir_int(p, 0);
        *hi = op(p, OP_div, op(p, OP_add, first, ir_int(p, o->size - 1)), size);
    } else if (o->tile != NULL) {
        first = op(p, OP_mul, o->tile, size);
        *lo = is_zero(*lo) ? first : op(p, OP_add, *lo, first);
        *hi = ir_op2(p, OP_min, op(p, OP_add, *lo, size), *hi);
    }
    return true;
}

bool loop_is_all(Prog *p, const Node *n)
{
    Expr *lo, *hi;

    return n->kind == N_FOR && n->over != NULL && loop_ends(p, n->over, &lo, &hi) && n->lo == lo &&
           n->hi == hi;
}

Buf *loop_row_start(Prog *p, const Node *n)
{
    const Over *o = n->kind == N_FOR ? n->over : NULL;

    if (o == NULL || o->row == NULL)
        return NULL;
    return loop_start(p, o->axis);
}
