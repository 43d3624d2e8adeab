/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Sums of products in an innermost loop: what algebra/factor.c and the two files of algebra
 * share. */
#ifndef WEFT_FACTOR_INT_H
#define WEFT_FACTOR_INT_H

#include "lower/lower.h"

enum { LIMIT_FACTORS = 4, LIMIT_TERMS = 128 }; /* factors of a term, terms of an element */

/* algebra/expand.c: c * f[0] * f[1] * ...: c does not change in the loop (NULL: it is 1), each f
 * does. */
typedef struct Term {
    Expr *c;
    int n;
    Expr *f[LIMIT_FACTORS]; /* in the order of their ids */
} Term;

typedef struct Poly {
    Term *term;
    int n, cap;
} Poly;

/* The value of a type as a sum of terms, those with the same factors in one; added to what *out
 * holds.  False: it is none, or too long a one. */
bool lower_expand(Prog *, Expr *value, Type, Local *loop, Memo *uses, Poly *out);

/* algebra/draft.c: elements that a loop adds to, and what it adds in each iteration. */
typedef struct Sum {
    Expr *cell;
    const char *label;
    bool moves; /* with the loop: each iteration has one of its own */
    Poly poly;
    Expr *value; /* what an iteration adds, when it moves */
} Sum;

typedef struct Part { /* of sums that do not move: added up in the loop */
    Expr *value;
    Local *local; /* its register: for whoever makes the loop */
} Part;

typedef struct Factored {
    Sum *sum; /* those of one array side by side */
    int n;
    Part *part;
    int nparts;
    int **which; /* by sum that does not move: the part of each term */
    bool apart;  /* false: the part of the first term is all of the sum */
    int cost;    /* operations an iteration */
} Factored;

/* algebra/pairs.c: sums of products that several terms have become factors of them; the
 * operations that these take.  Terms are copies. */
int lower_pair_sums(Prog *, Factored *);

/* Gives values with few operations; `turns` is how often the loop runs in vectors.  Factors that do
 * not change in the loop are passed through `fixed`. */
typedef Expr *Fixed(void *ctx, Expr *);
typedef struct Draft Draft;
Draft *lower_draft(Prog *, Factored *, double turns);
void lower_move_draft(Draft *, Factored *); /* what it is of stands here now */
void lower_write_draft(Draft *, Fixed *fixed, void *ctx);

#endif
