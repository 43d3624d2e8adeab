/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Helpers for trees of nodes: lists, bodies, expressions of a node, indices as expressions. */
#ifndef WEFT_LOWER_TREE_INT_H
#define WEFT_LOWER_TREE_INT_H

#include "lower/lower.h"

typedef struct NodeList {
    Node **node;
    int n, cap;
} NodeList;
void lower_append(Prog *, NodeList *, Node *);
void lower_append_all(Prog *, NodeList *, const NodeList *);
Node *lower_with_body(Prog *, const Node *, const NodeList *); /* a copy with another body */
Node *lower_renamed(Prog *, Node *);                           /* a copy with lets of its own */

/* The expressions of one node, without those of its body: pointers to where each stands. */
enum { LIMIT_SLOTS = 6 + 2 * (IR_MAX_RANK + 1) };
int lower_slots(Node *, Expr ***out);

/* One phase that runs these nodes in order; NULL for an empty list. */
Node *lower_phase(Prog *, const NodeList *);
void lower_done(Kernel *, Stage); /* the program consists of these phases from now on */

bool lower_reads(Prog *, Expr *, const Buf *);
bool lower_touches(Prog *, const Node *, const Buf *); /* reads the array, or stores to it */
/* Whether a phase outside of the kernel's list touches the array, so that a pass has to keep it. */
bool lower_is_elsewhere(const Kernel *, const Buf *);
bool lower_uses(Prog *, Expr *, Local *, Memo *); /* the memo: one for each local */
bool lower_mentions(Prog *, Expr *, Local *);     /* the same for a single question */
bool lower_has_local(Prog *, Expr *);
/* Whether a phase assigns to a local.  Only hand-written text does; passes leave such a phase. */
bool lower_has_registers(const Node *);

/* An unused name for an array of the kernel's own, made from the name of b: X.work1. */
const char *lower_beside(Prog *, const Buf *b, const char *what);
/* A scratch array of the iteration, of n elements, named after the array `beside`. */
Buf *lower_scratch(Prog *, const Buf *beside, Type, int64_t n);

/* The largest power of 2 that is not above the number; at least 1. */
int lower_power_below(int64_t);
/* An index as a base and a constant; NULL: the index is a constant. */
Expr *lower_split_index(Expr *, int64_t *constant);
bool lower_differ(Expr *, Expr *);      /* two indices are surely different */
int64_t lower_apart(Expr *, Expr *);    /* by at least this distance; 0: unknown */
bool lower_is_stepped(Prog *, Expr *, Local *); /* the index is local * a + b */

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
