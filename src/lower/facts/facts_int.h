/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Proofs: ranges of integers, elements that exist, rows that an iteration owns, values that a phase
 * does not change, and the arrays that phases read and write. */
#ifndef WEFT_LOWER_FACTS_INT_H
#define WEFT_LOWER_FACTS_INT_H

#include "lower/phase/phase_int.h"

/* facts/range.c: what the loops, lets and sizes around a condition say of it. */
typedef struct Ranges {
    const Local *local;
    int64_t lo, hi; /* both inclusive */
    Expr *below;    /* the loop's end, which the local stays below; or NULL */
    const struct Ranges *outer;
} Ranges;
typedef enum Truth { NO, YES, UNKNOWN } Truth;
Truth lower_truth(const Ranges *, Expr *cond);
/* The expression without conditions whose truth is known; the memo: one for each Ranges. */
Expr *lower_decided(Prog *, const Ranges *, Expr *e, Memo *);
Ranges lower_range_of(const Ranges *, const Node *); /* of the local of a loop or let */

/* facts/exists.c: whether the element exists wherever its locals have values. */
bool lower_is_inside(Prog *, const Node *phase, Expr *cell);
/* The one dimension in which the element moves with the local, by a constant, and is inside, so
 * that different iterations have different elements.  -1: there is none, or it is not known. */
int lower_dim_of(Prog *, const Node *phase, Expr *cell, Local *);
/* Whether e has a value wherever its locals do. */
bool lower_is_sure(Prog *, const Node *phase, Expr *e);
/* The same two questions for a phase that is asked often and does not change meanwhile. */
typedef struct Binders { /* by Local.id, less `from`: the loop or let that binds it */
    const Node *phase, **by;
    bool *several; /* more than one node binds it */
    int from, n;
} Binders;
Binders lower_binders(Prog *, const Node *phase);
bool lower_is_bound_inside(Prog *, const Binders *, Expr *cell);
bool lower_is_bound_sure(Prog *, const Binders *, Expr *e);
/* Whether e, a float or a condition, may be evaluated wherever its locals have values, also where
 * the program does not evaluate it: its elements exist, and it has no integers that might overflow.
 * The memo: one for each phase. */
bool lower_is_total(Prog *, const Node *phase, Expr *e, Memo *);

/* facts/owned.c: whether an element belongs to the row of its iteration. */
typedef struct Around { /* the loops around a node, innermost first */
    const Node *loop;
    const struct Around *outer;
} Around;
bool lower_is_known(const Node *loop); /* both its ends are constants */
/* The width of the array's rows where the element is surely in the row of the iteration of `rows`;
 * 0 otherwise.  *by: the coordinate that names the row, or NULL. */
int64_t lower_own_width(Prog *, const Node *rows, const Around *, const Expr *cell,
                        const Buf **by);
/* The index as stride * row + rest, where row is the row of an iteration of `rows`: its number, or
 * a `once` coordinate of its entry.  Returns the row; NULL: the index has no such form. */
Expr *lower_row_index(Prog *, Expr *index, const Node *rows, LoopIndex *);
/* The index in one normal form, for this iteration of its loop. */
Expr *lower_index(Prog *, const LoopIndex *, Expr *local);
/* Bytes of everything below one position of a slot; 0: not a constant. */
int64_t lower_slot_bytes(const Buf *, int slot);

/* facts/invariant.c: whether e reads nothing that the phase writes, so that it keeps its value as
 * long as its locals do.  Answers are remembered: one for each phase, {0} to begin with. */
typedef struct Invariants {
    Memo known;
    bool ready;
    const Buf **written; /* by the phase, and the locals that it assigns to; both ascend by id */
    const Local **assigned;
    int nwritten, nassigned, cap_written, cap_assigned;
    bool builds;
} Invariants;
bool lower_is_invariant(Prog *, const Node *phase, Expr *e, Invariants *);

/* facts/touches.c: the arrays of a phase, ascending by Buf.id.  Two phases clash where one
 * writes an array that the other touches: then they cannot change places. */
typedef struct Touch {
    const Buf *buf;
    bool read, written;
} Touch;
typedef struct Touches {
    Touch *touch;
    int n, cap;
    bool builds; /* an axis */
} Touches;
Touches lower_touched(Prog *, const Node *phase);
Touches lower_touch_both(Prog *, const Touches *, const Touches *); /* of two phases as one */
const Touch *lower_touch_of(const Touches *, const Buf *); /* NULL: the phase does not touch it */
bool lower_does_read(const Touches *, const Touches *other); /* an array that the other writes */
bool lower_clash(const Touches *, const Touches *, const Buf *but); /* `but`: except; or NULL */

/* The phases that mention each array, ascending, as they were when the lists were made.  Arrays
 * that were made later are in no list. */
typedef struct MentionList {
    int *phase, n, cap;
} MentionList;
typedef struct Mentions {
    Prog *p;
    MentionList *of;
    int n;
} Mentions;
Mentions lower_mentioned(const Kernel *);
const MentionList *lower_mentions_of(const Mentions *, const Buf *);
int lower_next_mention(const Mentions *, const Buf *, int after); /* -1: there is none */

/* facts/sites.c: the nodes of a phase that use each array.  Passes that change a few nodes of a
 * long phase again and again find them here, in a copy of the phase that they may change. */
typedef struct Site { /* a node and the number of its parent; -1: the node is the phase */
    Node *node;
    int up;
} Site;
typedef struct SiteOf { /* an element of the array in the node's own expressions */
    const Buf *buf;
    int spot;
} SiteOf;
typedef struct Sites {
    Site *spot; /* parents first, in order; NULL: the copy was not made yet */
    int n, cap;
    SiteOf *of; /* sorted by Buf.id, then by site */
    int nof, cap_of;
} Sites;
void lower_sites(Prog *, Node **phase, Sites *); /* makes the copy unless there is one */
const SiteOf *lower_sites_of(const Sites *, const Buf *, int *n);
/* The nodes from the phase down to the site, into `out`, which has room for `most`.  Returns their
 * number, or 0 if there are more. */
int lower_site_path(const Sites *, int spot, Node **out, int most);

#endif
