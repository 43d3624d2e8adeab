/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Segments: what segment.c, which makes loops one, and sweep.c, which turns them, share. */
#ifndef WEFT_SEGMENT_INT_H
#define WEFT_SEGMENT_INT_H

#include "lower/algebra/draft_int.h"

typedef struct Path { /* a loop, which may become a part of a segment */
    const Node *loop;
    Factored f;
    Draft *draft;
    Expr **moving; /* elements and other factors that move: what it may share */
    int nmoving;
    int before; /* operations of the loop as it is */
    bool taken;
} Path;

typedef struct Made { /* a temporary with a row for each entry, computed from arguments alone */
    Buf *buf;
    int first, sum;     /* the phases that begin its rows and add to them */
    Local *row;         /* of the loop over rows, */
    const Node *nest;   /* and what is inside: loops over terms, then */
    const Node *column; /* over the row's elements, in lanes */
    Expr *begin;        /* each sum's */
    bool off;           /* not all that reads it is a sweep */
} Made;

typedef struct Mades {
    Made *made;
    int n;
} Mades;

typedef struct Segments {
    Prog *p;
    Mades made;
    const Node *phase, *around; /* around: the loop that this list is in; NULL: the phase itself */
    const Binders *binders;     /* of the phase */
    LowerTile how;
    bool *turned; /* a loop of the phase was turned: the others will be, too */
    Kept *kept;   /* of the phase */
    Memo let;
    NodeList out;
} Segments;

typedef struct Group { /* the paths of one segment */
    Segments *s;
    Path **path;
    int n, cost, parts;
    int lanes; /* 0: one by one */
    NodeList before, body, after;
    struct Sweep *sweep; /* that it is of; or NULL */
} Group;

/* segment.c: whether the loop is one of sums of products, and what they are. */
bool lower_segment_path(Segments *, const Node *, Path *);
/* The loop with the variable of an earlier one of the same range, so that equal elements are one
 * expression. */
Node *lower_segment_local(Segments *, Node *, const Path *, int count);
bool lower_segment_range(const Path *, const Path *);  /* they have one range, and one type */
bool lower_segment_shares(const Path *, const Path *); /* elements */
Type lower_segment_type(const Node *loop);             /* of what it stores; T_none */
double lower_segment_turns(const Segments *, const Node *loop); /* how often it runs, in lanes */
int lower_segment_lanes(const Group *);                         /* that it can run in; 0 */
Expr *lower_segment_begin(Prog *);                              /* of a sum: nothing */
void lower_segment_store(Group *, NodeList *to, const Sum *, Expr *out, Expr *value); /* += */
Local *lower_segment_register(Group *, NodeList *to, const Sum *, int lanes, Expr *value);

/* like.c: drafts the paths, those of several statements over one piece of a relation as one; how
 * many there are then. */
int lower_segment_likes(Segments *, Path *, int n);

/* Segments of these nodes, which a loop is around; or NULL, for a phase. */
NodeList lower_segments_in(const Segments *, const Node *around, Node *const *, int n);

typedef struct TileOf { /* a tile of a sweep */
    const Segments *s;
    Local *entry, *first, *last;
    int most; /* entries */
} TileOf;

/* made.c: what may be computed for the tiles of sweeps; whether some phase still reads it. */
Mades lower_find_made(const Kernel *, LowerTile);
bool lower_still_read(const Kernel *, const Made *);
bool lower_is_made(const Segments *, const Buf *);
/* Elements of made rows in the body of a tile become those of an array of the tile; what computes
 * it goes to the other list. */
void lower_make_rows(const TileOf *, NodeList *body, NodeList *to);

/* sweep.c: the loop, when entries of a row are swept by tiles; false: it is no such loop. */
bool lower_sweep(Segments *, const Node *);
/* A loop over tiles of so many entries of that loop at most, of about the same length; its body
 * begins with where a tile begins and ends. */
Node lower_open_tiles(Segments *, const Node *, int most, NodeList *body, Local **first,
                      Local **last);

/* used.c: the loop over entries by tiles, when each entry reads made rows, or has an array that
 * products use; false: it is no such loop. */
bool lower_use_tiles(Segments *, const Node *);

#endif
