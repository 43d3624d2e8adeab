/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Segments: what algebra/factor.c, which makes loops one, and edges/sweep.c, which turns them,
 * share. */
#ifndef WEFT_SEGMENT_INT_H
#define WEFT_SEGMENT_INT_H

#include "lower/algebra/draft_int.h"
#include "lower/facts/facts_int.h"

typedef struct Path { /* a loop, which may become a part of a segment */
    const Node *loop;
    Factored f;
    Draft *draft;
    Expr **moving; /* elements and other factors that move: what it may share */
    int nmoving;
    int before; /* operations of the loop as it is */
    bool taken;
} Path;

typedef struct
    Recomputed { /* a temporary with a row for each entry, computed from arguments alone */
    Buf *buf;
    int first, sum;     /* the phases that begin its rows and add to them */
    Local *row;         /* of the loop over rows, */
    const Node *nest;   /* and what is inside: loops over terms, then */
    const Node *column; /* over the row's elements, in lanes */
    Expr *begin;        /* each sum's */
    bool off;           /* not all that reads it is a sweep */
} Recomputed;

typedef struct RecomputedList {
    Recomputed *made;
    int n;
} RecomputedList;

typedef struct Segments {
    Prog *p;
    RecomputedList made;
    const Node *phase, *around; /* around: the loop that this list is in; NULL: the phase itself */
    const Binders *binders;     /* of the phase */
    LowerTile how;
    bool *turned; /* a loop of the phase was turned: the others will be, too */
    Invariants *kept; /* of the phase */
    Expr **stepped; /* the last list of elements that were found to be in lanes */
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

/* algebra/factor.c: whether the loop is one of sums of products, and what they are. */
bool lower_factor_path(Segments *, const Node *, Path *);
/* The loop with the variable of an earlier one of the same range, so that equal elements are one
 * expression. */
Node *lower_factor_local(Segments *, Node *, const Path *, int count);
bool lower_factor_range(const Path *, const Path *);  /* they have one range, and one type */
Type lower_factor_type(const Node *loop);             /* of what it stores; T_none */
double lower_factor_turns(const Segments *, const Node *loop); /* how often it runs, in lanes */
int lower_factor_lanes(const Group *);                         /* that it can run in; 0 */
Expr *lower_factor_begin(Prog *);                              /* of a sum: nothing */
void lower_factor_store(Group *, NodeList *to, const Sum *, Expr *out, Expr *value); /* += */
Local *lower_factor_register(Group *, NodeList *to, const Sum *, int lanes, Expr *value);

/* algebra/groups.c: a run of loops, to be put into groups one after the other.  A loop joins the
 * group, which gets its first loop at once; the next loop after one that is not taken and that the
 * group wants; -1: there is none, and the group ends. */
typedef struct Grouping Grouping;
typedef enum GroupWants {
    GROUP_ANY,
    GROUP_SHARED, /* loops that share an element with it */
    GROUP_SUMS,   /* loops that use an element which one of its loops adds to; from now on */
} GroupWants;
Grouping *lower_grouping(Prog *, Path *, int n);
void lower_begin_group(Grouping *, int first);
void lower_join_group(Grouping *, int path);
int lower_next_for_group(Grouping *, int after, GroupWants);

/* algebra/alike.c: drafts the paths, those of several statements over one piece of a relation as
 * one; how many there are then. */
int lower_factor_alike(Segments *, Path *, int n);

/* Segments of these nodes, which a loop is around; or NULL, for a phase. */
NodeList lower_factor_in(const Segments *, const Node *around, Node *const *, int n);

typedef struct TileOf { /* a tile of a sweep */
    const Segments *s;
    Local *entry, *first, *last;
    int most; /* entries */
} TileOf;

/* edges/recompute.c: what may be computed for the tiles of sweeps; whether some phase still
 * reads it. */
RecomputedList lower_find_recomputed(const Kernel *, LowerTile);
bool lower_still_read(const Kernel *, const Recomputed *);
bool lower_is_recomputed(const Segments *, const Buf *);
/* Elements of made rows in the body of a tile become those of an array of the tile; what computes
 * it goes to the other list. */
void lower_recompute_rows(const TileOf *, NodeList *body, NodeList *to);

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
