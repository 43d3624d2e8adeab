/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * A run of a tree of loops: what loops.c, which runs nodes, and loops_eval.c, which computes values
 * and looks after elements, have in common. */
#ifndef WEFT_LOOPS_INT_H
#define WEFT_LOOPS_INT_H

#include "interp/threads.h"

typedef struct Store { /* an array of the tree */
    bool ready;
    Layout layout; /* of a buffer, or of what is laid out like one */
    Array data;
    int64_t *owner;  /* by element: the iteration, over all phases, that wrote it */
    int64_t *reader; /* and the one that read it */
    int64_t *added;  /* by element: `before` of the phase that last added to it atomically */
    Marks *marks;    /* by element: the threads that touched it */
} Store;

typedef struct Build { /* of a built axis */
    Rows rows;         /* what has been inserted: position of the parent, coordinates */
    bool open;         /* its phase has not ended yet, so that nothing may use it */
    uint8_t *done;     /* by position of the parent: built already */
    int64_t parents;
    int64_t row; /* being built; -1: all are, and the key tells */
} Build;

typedef struct Loops {
    Run *x; /* for arithmetic and messages */
    const Prog *prog;
    Env *env;
    Store *buf, *aux; /* by id */
    Build *build;     /* by Axis.id */
    Val *local;       /* by Local.id */
    uint64_t tick;    /* goes on when a value may have changed */
    uint64_t *valued; /* by Expr.id: the tick that val is of */
    Val *val;
    uint64_t *fitting; /* by Expr.id: the tick at which it could be computed */
    int64_t before;    /* iterations of all earlier phases, plus 1 for each */
    int64_t several;   /* stands for more than one iteration of this phase */
    int64_t now;       /* the iteration that runs, counted with those; 0 when the phase has none */
    int64_t turn;      /* counts iterations of phases, and phases that are none */
    const Node *phase;
    Val first; /* where its loop begins */
    Threads threads;
    uint64_t seed; /* of the order of threads; 0: as they are numbered */
} Loops;

/* loops_eval.c */
Store *loops_store(Loops *, const Buf *);
int64_t loops_element(Loops *, Expr *cell); /* which element of its array a cell is */
Val loops_load(Loops *, Expr *cell);
Val loops_eval(Loops *, Expr *);
void loops_note_write(Loops *, const Buf *, Store *, int64_t at, bool atomic);

#endif
