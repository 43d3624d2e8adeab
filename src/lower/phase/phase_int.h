/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Phases of a kernel: helpers of all rooms. */
#ifndef WEFT_PHASE_INT_H
#define WEFT_PHASE_INT_H

#include "lower/lower.h"
#include "tree/tree.h"

/* One phase that runs these nodes in order; NULL for an empty list. */
Node *lower_phase(Prog *, const NodeList *);
void lower_done(Kernel *, Stage); /* the program consists of these phases from now on */

/* Whether a phase outside of the kernel's list touches the array, so that a pass has to keep it. */
bool lower_is_elsewhere(const Kernel *, const Buf *);
/* Whether a phase assigns to a local.  Only hand-written text does; passes leave such a phase. */
bool lower_has_registers(const Node *);

/* An unused name for an array of the kernel's own, made from the name of b: X.work1. */
const char *lower_beside(Prog *, const Buf *b, const char *what);
/* A scratch array of the iteration, of n elements, named after the array `beside`. */
Buf *lower_scratch(Prog *, const Buf *beside, Type, int64_t n);

/* The number of batches of `size` iterations.  The loop over one batch runs from its number times
 * the size to the smaller of that plus the size and the end of all. */
Expr *lower_batch_count(Prog *, Expr *all, int64_t size);
/* The number of entries of an axis, where the phase runs over all its rows and the loop over the
 * entries of the row, so that each entry is visited once; or the number of iterations of a phase
 * over batches.  NULL: the loop is neither. */
Expr *lower_entries(Prog *, const Node *phase, const Node *loop);
/* The loop variable that alone determines this index: the index is the variable, or a `once`
 * coordinate of its entry, or the entry number in a transpose.  NULL otherwise. */
Local *lower_index_owner(Expr *index);

/* A set of locals that is emptied for each phase; {0} to begin with. */
typedef struct LocalSet {
    int *round, n, now;
} LocalSet;
void lower_empty_set(Prog *, LocalSet *); /* makes room for all locals, and empties it */
static inline bool lower_has_in(const LocalSet *s, const Local *l)
{
    return s->round[l->id] == s->now;
}
static inline void lower_put_in(LocalSet *s, const Local *l)
{
    s->round[l->id] = s->now;
}

#endif
