/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * What the two files of parts share: a phase, and how it is cut. */
#ifndef WEFT_PARTS_INT_H
#define WEFT_PARTS_INT_H

#include "lower/phase/phase_int.h"

typedef struct Cut { /* of one phase */
    Prog *p;
    const Node *phase;
    Local *row;     /* the variable of its loop */
    Expr *lo, *hi;  /* the entries of a row that are cut: those of this start array; or NULL: */
    Buf *start;     /* the rows are */
    bool is_small;  /* every iteration may add to every element; else each to its row's */
    const char *no; /* why it cannot be cut */
    Buf *whole[IR_MAX_RANK], *part[IR_MAX_RANK]; /* what is added to, and what for in a part, */
    Buf *group[IR_MAX_RANK];                     /* and in a group of parts */
    int row_dim[IR_MAX_RANK];                    /* where the row stands in its index; or -1 */
    int scatter_dim[IR_MAX_RANK];                /* where a row that a coordinate names does */
    int n;
    const Buf *own[IR_MAX_RANK]; /* arrays of which an iteration writes elements of its own */
    int nown;
    Axis *named; /* the entries whose coordinate names the rows that are added to */
    Axis *axis; /* of the parts */
    Expr *q;    /* the part */
    Expr *from, *to;
    const Over *over; /* the entries of the part */
    Expr *shift; /* from entries of parts to entries of rows */
} Cut;

/* split_find.c: finds the first entries that hang on the phase's rows. */
void split_find(Cut *);
/* Whether all that the phase does are sums that can be cut; fills whole, row_dim, n, or no. */
bool split_can_cut(Cut *);
bool split_is_row_loop(const Cut *, const Node *); /* over the entries of a row that are cut */

bool split_reads(Cut *); /* what is added to, anywhere in the phase; says so in `no` */

/* split/reductions.c: what both kinds of parts are made of. */
Axis *split_axis(Prog *, const char *letter, const char *stem, Axis *parent);
Buf *split_array(Cut *, int i);               /* for each part what whole[i] is, without its rows */
Expr *split_cell(Cut *, Expr *out, int i);    /* the element of part q that stands for an element */
Local *split_local(Prog *, const char *name); /* whose name no variable of the program has */
Node *split_loop(Prog *, const char *label, Local *, Expr *hi, const Over *, Node *in);
const char *split_label(Prog *, const char *, const char *end);

typedef struct Sum { /* of the arrays of all parts, that later scatters may add to */
    const Buf *whole;
    Buf *part;
    const Axis *axis;
    Node *phase;
} Sum;

typedef struct Sums {
    Sum *sum;
    int n, cap;
} Sums;

/* split/scatter.c: whether all stores add to rows that coordinate k of the cut entries names. */
bool split_can_scatter(Cut *, int *k);
void split_scatter(Cut *, Node *phase, int k, Sums *, NodeList *out);
void split_end_sums(Prog *, Sums *, const Node *before, NodeList *out); /* NULL: all */

#endif
