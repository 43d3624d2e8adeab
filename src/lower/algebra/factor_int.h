/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Segments: the loops over one range that algebra/factor.c fuses, and that edges/sweep.c runs over
 * tiles of entries. */
#ifndef WEFT_SEGMENT_INT_H
#define WEFT_SEGMENT_INT_H

#include "lower/algebra/draft_int.h"
#include "lower/edges/edges_int.h"
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

struct Segments {
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
};

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

bool lower_factor_strided(const Path *); /* some sum moves by several elements an iteration */
Fixed lower_factor_fixed; /* a value that the loop does not change, as a local; of a Group */

/* algebra/interchange.c: interchanges the loop with the one inside; false: it may not, or loses. */
bool lower_interchange(Segments *, const Node *);

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

#endif
