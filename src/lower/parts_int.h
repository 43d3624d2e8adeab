/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * What the two files of parts share: a phase, and how it is cut. */
#ifndef WEFT_PARTS_INT_H
#define WEFT_PARTS_INT_H

#include "lower/lower_int.h"

typedef struct Cut { /* of one phase */
    Prog *p;
    const Node *phase;
    Local *row;     /* the variable of its loop */
    Expr *lo, *hi;  /* the entries of a row that are cut: those of this start array; or NULL: */
    Buf *start;     /* the rows are */
    bool is_small;  /* every iteration may add to every element; else each to its row's */
    const char *no; /* why it cannot be cut */
    Buf *whole[IR_MAX_RANK], *part[IR_MAX_RANK]; /* what is added to, and what for in a part */
    int row_dim[IR_MAX_RANK];                    /* where the row stands in its index; or -1 */
    int n;
    Axis *axis; /* of the parts */
    Expr *q;    /* the part */
    Expr *from, *to;
    Expr *shift; /* from entries of parts to entries of rows */
} Cut;

/* parts_find.c: finds the first entries that hang on the phase's rows. */
void parts_find(Cut *);
/* Whether all that the phase does are sums that can be cut; fills whole, row_dim, n, or no. */
bool parts_can_cut(Cut *);
bool parts_is_row_loop(const Cut *, const Node *); /* over the entries of a row that are cut */

#endif
