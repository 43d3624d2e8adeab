/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Symbolic entries of axes.  From what is known of an entry, these functions derive its
 * position, its number below its parent, the entry above it, and its coordinates. */
#include "lower/storage/storage_int.h"

Entry *lower_entry(Prog *p, Axis *a, Entry *up, Expr *pos, Expr *loc)
{
    Entry *e = arena_alloc(p->arena, sizeof *e);

    *e = (Entry){ .axis = a, .up = up, .pos = pos, .loc = loc };
    if (a->parent == NULL) /* one parent: both numbers are the same */
        e->pos = e->loc = pos != NULL ? pos : loc;
    return e;
}

Entry *lower_up(Prog *p, Entry *e)
{
    Axis *a = e->axis;
    Expr *above = e->pos;

    if (e->up != NULL || a->parent == NULL)
        return e->up;
    if (a->extent == X_EXPR)
        above = ir_op2(p, OP_div, e->pos, a->size);
    else if (a->extent != X_ONE)
        above = loop_above(p, a, e->pos);
    return e->up = lower_entry(p, a->parent, NULL, above, NULL);
}

Expr *lower_parent(Prog *p, Entry *e)
{
    return e->axis->parent == NULL ? ir_int(p, 0) : lower_pos(p, lower_up(p, e));
}

Expr *lower_pos(Prog *p, Entry *e)
{
    if (e->pos == NULL)
        e->pos = tree_add(p, tree_first(p, e->axis, lower_parent(p, e)), e->loc);
    return e->pos;
}

Expr *lower_loc(Prog *p, Entry *e)
{
    if (e->loc == NULL)
        e->loc = tree_sub(p, e->pos, tree_first(p, e->axis, lower_parent(p, e)));
    return e->loc;
}

/* The entry of this axis that e is, or hangs on. */
static Entry *in_chain(Prog *p, Entry *e, const Axis *a)
{
    while (e->axis != a)
        e = lower_up(p, e);
    return e;
}

/* A coordinate's expression names the axes' own variables: they stand for the entry's chain. */
static Expr *coord_expr(Prog *p, Entry *of, Expr *e)
{
    Expr *arg[2];

    if (e->op == OP_coord || e->op == OP_loc || e->op == OP_pos)
        return lower_leaf(p, of, e);
    for (int i = 0; i < e->nargs; i++)
        arg[i] = coord_expr(p, of, e->arg[i]);
    return e->nargs == 0 ? e : ir_node(p, (Op)e->op, arg, e->nargs);
}

Expr *lower_coord(Prog *p, Entry *e, int k)
{
    const Coord *c = &e->axis->coord[k];

    if (c->kind == C_IDENT)
        return lower_loc(p, e);
    if (c->kind == C_EXPR)
        return coord_expr(p, e, c->expr);
    return tree_cell(p, loop_coord(p, e->axis, k), lower_pos(p, e));
}

Expr *lower_leaf(Prog *p, Entry *e, Expr *leaf)
{
    Entry *x = in_chain(p, e, leaf->var->axis);

    if (leaf->op == OP_coord)
        return lower_coord(p, x, leaf->k);
    return leaf->op == OP_loc ? lower_loc(p, x) : lower_pos(p, x);
}

Expr *lower_inside(Prog *p, Expr *e, Expr *extent)
{
    return ir_op2(p, OP_and, ir_op2(p, OP_le, ir_int(p, 0), e), ir_op2(p, OP_lt, e, extent));
}

Expr *lower_both(Prog *p, Expr *a, Expr *b)
{
    return a == NULL ? b : b == NULL ? a : ir_op2(p, OP_and, a, b);
}

Expr *lower_exists(Prog *p, Entry *e)
{
    Expr *all = NULL;

    for (int k = 0; k < e->axis->ncoord && (e->axis->flags & AX_PADDED); k++)
        if (e->axis->coord[k].bound != NULL)
            all =
                lower_both(p, all, lower_inside(p, lower_coord(p, e, k), e->axis->coord[k].bound));
    return all;
}
