/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The positions of an axis as expressions: how many there are, and those below one position of its
 * parent. */
#include "tree/tree.h"

Expr *tree_cell(Prog *p, Buf *b, Expr *index)
{
    return tree_simple(p, loop_cell(p, b, &index, 1, 1));
}

Expr *tree_first(Prog *p, Axis *a, Expr *parent)
{
    if (a->parent == NULL && parent == ir_int(p, 0))
        return parent;
    if (a->parent != NULL && parent == loop_positions(p, a->parent))
        return loop_positions(p, a); /* past the last: the end of all */
    if (a->extent == X_EXPR)
        return tree_mul(p, parent, a->size);
    return a->extent == X_ONE ? parent : tree_cell(p, loop_start(p, a), parent);
}

Expr *tree_extent(Prog *p, Axis *a, Expr *parent)
{
    if (a->extent == X_EXPR)
        return tree_simple(p, a->size);
    if (a->extent == X_ONE)
        return ir_int(p, 1);
    if (a->extent == X_TABLE)
        return tree_cell(p, loop_extent(p, a), parent);
    return tree_sub(p, tree_cell(p, loop_start(p, a), tree_add(p, parent, ir_int(p, 1))),
                     tree_cell(p, loop_start(p, a), parent));
}

bool tree_is_start(const Expr *e)
{
    return e->op == OP_cell && e->buf->of != NULL && e->buf->of_k == -1 && e->buf->nfull == 0;
}
