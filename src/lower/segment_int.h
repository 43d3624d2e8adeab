/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Segments: what segment.c, which makes loops one, and sweep.c, which turns them, share. */
#ifndef WEFT_SEGMENT_INT_H
#define WEFT_SEGMENT_INT_H

#include "lower/factor_int.h"

typedef struct Path { /* a loop, which may become a part of a segment */
    const Node *loop;
    Factored f;
    Draft *draft;
    Expr **moving; /* elements and other factors that move: what it may share */
    int nmoving;
    int before; /* operations of the loop as it is */
    bool taken;
} Path;

typedef struct Segments {
    Prog *p;
    const Node *phase, *around; /* around: the loop that this list is in; NULL: the phase itself */
    LowerTile how;
    Memo kept, let;
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

/* sweep.c: the loop, when entries of a row are swept by tiles; false: it is no such loop. */
bool lower_sweep(Segments *, const Node *);

#endif
