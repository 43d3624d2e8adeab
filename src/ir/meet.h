/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Who touches which element of an array, where lanes and warps are threads, and when two of them
 * have to meet between: the facts that pass `barriers` and the checker of its result share.  Each
 * walks the tree by itself. */
#ifndef WEFT_MEET_H
#define WEFT_MEET_H

#include "ir/loop.h"

/* Of the lanes of a warp, or of the warps of a block: the first; any of them, or all; the one that
 * the index tells. */
typedef enum Who { WHO_FIRST, WHO_ANY, WHO_EACH } Who;

/* What has to stand between two accesses. */
typedef enum Meeting { MEET_NONE, MEET_LANES, MEET_WARPS } Meeting;

typedef struct Access {
    Expr *cell;
    const Node *loop; /* the innermost loop around, for messages; or NULL */
    const Node *lane; /* the loop around that is dealt to lanes; or NULL */
    const Node *warp; /* the loop around that is dealt to warps; or NULL */
    Who lanes, warps;
    bool writes, atomic;
    bool steady;    /* the index has one value as long as its locals have */
    bool stale;     /* but some of them have other values now */
    bool left_lane; /* that run of `lane` is over */
    bool left_warp; /* that run of `warp` is over, */
    bool round;     /* or goes on with other iterations */
    bool met;       /* the lanes of each warp have met since */
} Access;

typedef struct AccessList {
    Access *access;
    int n, cap;
} AccessList;

typedef struct Meet { /* a walk over a phase */
    Prog *p;
    const Node *phase;
    bool warps;               /* it is on block, so there are several */
    bool *written, *assigned; /* by number of the array, by Local.id: in the phase */
    const Node *loop, *vector, *thread, *warp; /* around; or NULL */
    bool first; /* the vector loop is the first warp's, where no loop on warp is around */
    int *inside, now; /* by Local.id: `now` of those that the block binds which has just ended */
} Meet;

Meet meet_phase(Prog *, const Node *phase);
/* The walk goes into the node; it comes back by taking over a copy that it made before. */
void meet_enter(Meet *, const Node *);
/* What the node itself accesses, without its body, of arrays that the phase stores to. */
void meet_accesses(Meet *, const Node *, AccessList *out);
/* And what is below it, up to a barrier that comes before. */
void meet_entry(Meet *, const Node *, AccessList *out);
void meet_add(Meet *, AccessList *, const Access *);
/* The block has run, or an iteration of it: what the list knows of its locals is over. */
void meet_end(Meet *, const Node *block, AccessList *, bool again);
/* What is needed between an access and a later one. */
Meeting meet_between(const Meet *, const Access *before, const Access *now);
/* Keeps what an iteration of the phase leaves to another one that the same lanes may run next. */
void meet_next_iteration(Meet *, AccessList *);
/* Keeps the accesses that the barrier does not order. */
void meet_at_barrier(const Meet *, LoopLevel, AccessList *);

#endif
