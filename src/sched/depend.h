/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Dependence: two instances of stores that touch one element, and the facts about the variables
 * around them that follow. */
#ifndef WEFT_DEPEND_H
#define WEFT_DEPEND_H

#include "sched/step.h"

typedef struct Access { /* an element that is written, and where */
    const Node *node;   /* the store, or the build */
    Expr *cell;         /* of a store or a companion; of a build NULL */
    const Node *around[LIMIT_STEP_NEST]; /* the phase's own node first */
    int n;
} Access;

typedef struct Term { /* c * (product of sizes) * x */
    int64_t c;
    Expr *size[4]; /* by id */
    int nsize;
    Expr *x;
} Term;

enum { LIMIT_DEP_TERMS = 24 };

typedef struct Linear {
    Term term[LIMIT_DEP_TERMS];
    int n;
    int64_t c;
    bool bad; /* it overflowed, or has too many terms */
    int work; /* nodes that were gone through for it */
} Linear;

typedef struct Fact { /* a has in the first instance the value that b has in the second */
    Expr *a, *b;
} Fact;

typedef struct Pair { /* of instances, one of each access */
    Prog *p;
    const Node *phase;
    const Access *s[2];
    Fact *local, *fact; /* locals that are equal; all that is */
    int nlocal, nfact, cap_local, cap_fact;
    bool never; /* they do not touch one element */
} Pair;

/* linear.c */
Linear dep_linear(Pair *, int side, Expr *); /* through lets */
const Node *dep_binder(const Access *, const Local *); /* the loop or let on the way; or NULL */
bool dep_same_factor(const Term *, const Term *);

/* closure.c: all that follows when the locals of the first `known` blocks around are the same in
 * both instances and they touch one element. */
void dep_close(Pair *, int known);
bool dep_is_same(Pair *, Expr *a, Expr *b); /* known to have one value */
bool dep_fixes(Pair *, const Local *);      /* has one value in both */

/* beyond.c: whether two sums, with what they share taken out, are further apart than the loop of
 * their one variable is long. */
bool dep_is_beyond(Pair *, const Linear *, const Linear *);
/* The variable whose share of all iterations a loop runs over, as merge writes it; or NULL. */
Expr *dep_share_of(Prog *, const Node *loop);
bool dep_shares_alike(const Node *, const Node *, Expr *, Expr *); /* of the same, in as many */

/* Where share x of so many begins: rows 0..rows, by the entries that they have on this axis, or
 * evenly where that is NULL. */
Expr *dep_share(Prog *, const Axis *, Expr *x, int64_t shares, Expr *rows);
/* The first row of block x, where a block has `block` rows and the last one may have fewer. */
Expr *dep_block(Prog *, Expr *x, int64_t block, Expr *rows);
/* The variable whose share of rows holds both a and b, as merge writes it; or NULL. */
Expr *dep_rows_alike(Pair *, Expr *a, Expr *b);

/* values.c: what all values of the loops with constant ends tell. */
void dep_enumerate(Pair *);

#endif
