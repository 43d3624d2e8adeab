/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Tiles of edges: what sweeps and consumers do for the segments of algebra/factor.c. */
#ifndef WEFT_EDGES_INT_H
#define WEFT_EDGES_INT_H

#include "lower/phase/phase_int.h"

typedef struct Segments Segments; /* algebra/factor_int.h */

typedef struct Recomputed { /* a temporary with rows of entries, computed from arguments alone */
    Buf *buf;
    int sum;            /* the phase that adds to its rows */
    Local *row;         /* of the loop over rows, */
    const Node *nest;   /* and what is inside: loops over terms, then */
    const Node *column; /* over the row's elements, in lanes */
    Expr *begin;        /* each sum's */
    bool off;           /* not all that reads it is a sweep */
} Recomputed;

typedef struct RecomputedList {
    Recomputed *made;
    int n, cap;
} RecomputedList;

typedef struct TileOf { /* a tile of a sweep */
    const Segments *s;
    Local *entry, *first, *last;
    int most; /* entries */
} TileOf;

/* edges/recompute.c: what may be computed for the tiles of sweeps; a phase without the nests that
 * compute it elsewhere, NULL: nothing is left; whether some phase still reads it. */
RecomputedList lower_find_recomputed(const Kernel *, LowerTile);
Node *lower_without_recomputed(Prog *, RecomputedList, Node *phase);
bool lower_still_read(const Kernel *, const Recomputed *);
bool lower_is_recomputed(const Segments *, const Buf *);
/* Elements of made rows in the body of a tile become those of an array of the tile; what computes
 * it goes to the other list. */
void lower_recompute(const TileOf *, NodeList *body, NodeList *to);

/* edges/sweep.c: processes the entries of a row in tiles; false: the loop does not run over the
 * entries of a row, or its sums do not belong to the row. */
bool lower_sweep(Segments *, const Node *);
/* Opens a loop over tiles of at most `most` entries of that loop, of similar length.  Its body
 * starts with the lets of the first entry of a tile and of the end of the tile. */
Node lower_open_tiles(Segments *, const Node *, int most, NodeList *body, Local **first,
                      Local **last);

/* edges/consume.c: processes entries in tiles, where each entry reads recomputed rows or has a
 * scratch row that products use; false: the loop is of another kind. */
bool lower_consume(Segments *, const Node *);

#endif
