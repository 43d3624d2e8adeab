/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Where elements are stored: entries of axes, sums and products in a normal form, and the index of
 * an element in each dimension of its array. */
#ifndef WEFT_LOWER_STORAGE_INT_H
#define WEFT_LOWER_STORAGE_INT_H

#include "lower/phase/phase_int.h"

/* storage/entry.c: an entry of an axis.  At least one of pos and loc is known; the rest follows. */
typedef struct Entry Entry;
struct Entry {
    Axis *axis;
    Entry *up;       /* the entry above it */
    Expr *pos, *loc; /* its number among all entries, and among those of its parent */
};
Entry *lower_entry(Prog *, Axis *, Entry *up, Expr *pos, Expr *loc);
Entry *lower_up(Prog *, Entry *); /* NULL for a root axis */
Expr *lower_pos(Prog *, Entry *);
Expr *lower_loc(Prog *, Entry *);
Expr *lower_parent(Prog *, Entry *); /* the position of the entry above it; 0 for a root axis */
Expr *lower_coord(Prog *, Entry *, int k);
Expr *lower_leaf(Prog *, Entry *, Expr *leaf); /* OP_coord, OP_loc, OP_pos of it or above it */
/* The condition that the entry is not padding, given that the entry above it is not; or NULL. */
Expr *lower_exists(Prog *, Entry *);
Expr *lower_inside(Prog *, Expr *, Expr *extent);
Expr *lower_both(Prog *, Expr *a, Expr *b); /* each may be NULL: true */

/* storage/offset.c: the index in each interface dimension of the element at these entries. */
void lower_dims(Prog *, const Buf *, Entry *const *at, Expr **out);
Expr *lower_dim_extent(Prog *, const Buf *, Dim);
/* What a loop from 0 to this extent runs over; NULL: an axis without a name. */
const Over *lower_dim_over(Prog *, const Buf *, Dim);
/* storage/elements.c: the loops over all elements of an array, and the phase with this body inside
 * them. */
typedef struct Elements {
    Dim dim[IR_MAX_FULL];
    Local *x[IR_MAX_FULL];
    Expr *index[IR_MAX_FULL];
    int n;
} Elements;
Elements lower_elements(Prog *, const Buf *);
Node *lower_over_elements(Prog *, const Buf *, const Elements *, const char *label, NodeList body);
Node *lower_flattened(Prog *, Node *phase); /* storage/flatten.c */
/* storage/arrays.c: the stride of a dimension of a buffer that has strides. */
Expr *lower_stride(Prog *, const Buf *, int d);

#endif
