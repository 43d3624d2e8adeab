/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Expressions that are short as a graph and long as text. */
#ifndef WEFT_LOWER_FINISH_INT_H
#define WEFT_LOWER_FINISH_INT_H

#include "lower/facts/facts_int.h"

/* finish/unfold.c: the expression with names for the parts that it shares.  The nodes that compute
 * these parts are appended to `out`.  An expression that is short as text is returned as it is. */
typedef struct LowerUnfold {
    Prog *p;
    const Node *phase;
    Memo *total; /* of lower_is_total */
    const char *label;
    int lanes;                           /* of the vector loop around */
    bool (*is_in_lanes)(void *, Expr *); /* whether the expression has a value for each lane */
    void *ctx;
} LowerUnfold;
Expr *lower_unfolded(const LowerUnfold *, Expr *, NodeList *out);

#endif
