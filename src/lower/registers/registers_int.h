/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Register blocking: what the files of this room share. */
#ifndef WEFT_LOWER_REGISTERS_INT_H
#define WEFT_LOWER_REGISTERS_INT_H

#include "lower/facts/facts_int.h"

/* registers/block_rows.c: whether iterations of a loop with this variable and body may run side by
 * side, provided that the loops and branches inside are the same in all of them. */
bool lower_can_jam(Prog *, Node *const *body, int n, Local *row);

/* registers/accumulate.c, registers/block_rows.c: the two halves of lower_tensor. */
Node *lower_accumulated(Prog *, Node *phase, Node *nest, LowerTile);   /* or NULL */
Node *lower_row_blocked(Prog *, Node *phase, Node *vector, LowerTile); /* or NULL */

/* registers/strips.c: a phase over rows, each a vector loop, as a phase over blocks of rows: those
 * that the program makes by / and % (NULL: it makes none), or blocks of n rows. */
Node *lower_in_blocks(Prog *, Node *phase);
Node *lower_in_strips(Prog *, Node *phase, int n);

/* registers/shape.c: how many rows of a loop inside a vector loop run side by side, and in how many
 * registers each. */
enum { LIMIT_ROWS = 16 };
typedef struct LowerShape {
    int rows, registers;
} LowerShape;
LowerShape lower_shape(Prog *, const Node *vector, const Node *rows, LowerTile);

#endif
