/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * What the two files of the dense evaluator share. */
#ifndef WEFT_DENSE_H
#define WEFT_DENSE_H

#include "random/random.h"

typedef struct Num { /* a value and its type: bool, i64, real, f32 (exact in d) or f64 */
    Type type;
    int64_t i;
    double d;
} Num;

typedef struct Store { /* the elements of a buffer */
    bool ready;
    Tuples tuples;
    Num *val;
    bool *reached;
} Store;

typedef struct Dense {
    Arena *arena;
    Err *err;
    const Prog *prog;
    Env *env; /* the inputs, and what has been built */
    Space space;
    Store *store; /* by buffer id */
    int64_t *pos; /* by variable id: where it stands now */
    const char *label;
    DenseStats *stats;
} Dense;

_Noreturn void dense_fail(Dense *, const char *why); /* a run error */

/* dense_expr.c */
Num dense_eval(Dense *, Expr *);
bool dense_true(Dense *, Expr *);
Num dense_convert(Num, Type);
/* The element that an access means, or -1 when it is not stored. */
int64_t dense_locate(Dense *, Expr *load);
/* The position of axis x that an index means, below parent position q; -1 when there is none. */
int64_t dense_index(Dense *, const Axis *x, int64_t q, Expr *index);

#endif
