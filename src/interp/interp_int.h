/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * What only the files of interp/ share: the state of one run. */
#ifndef WEFT_INTERP_INT_H
#define WEFT_INTERP_INT_H

#include "interp/interp.h"

typedef union Val { /* the type of its expression says which member is live */
    int64_t i;      /* bool, i64 */
    double f;       /* real, f64, and f32: then always rounded to f32 */
} Val;

typedef struct Rows { /* inserted (parent, coordinates...), w numbers each */
    int64_t *v, n, cap;
    int w;
} Rows;

typedef struct AxisState {
    bool ready; /* positions and coordinates are there and valid */
    Span span;
    int64_t *bound;  /* by k, where there is one */
    Array *coord;    /* by k, one value a position; data NULL: the number inside the parent */
    uint8_t *exists; /* by position: not padding, nor below it; NULL: all do */
    int inserts;     /* |= statements still to run */
    Rows rows;
} AxisState;

typedef struct BufState {
    bool ready; /* has its layout and its array */
    Layout layout;
    Array data;
    Val fill;         /* of a read that misses */
    int writers;      /* assigns of its group still to run */
    Array sum;        /* where the group accumulates: data, or a wider copy of it */
    uint8_t *reached; /* by element: an instance wrote it; NULL before the group begins */
    Val rest;         /* of elements that none wrote */
} BufState;

/* An expression in the nest that is running.  What it depends on moves only with the binders down
 * to `depth`, so its value holds until the innermost of those has moved. */
typedef struct Known {
    uint64_t valued, placed; /* the epoch that val and place are of */
    Val val;
    int64_t place; /* OP_load: which element, -1 when it is not stored */
    Expr **index;  /* OP_load: by place in full; NULL: told by a position further on */
    int depth;     /* 1 + the innermost binder, 0 when there is none */
    int nest;      /* the nest that `depth` is of */
} Known;

typedef struct Run Run;
struct Run {
    Arena *arena;
    const Prog *prog;
    Env *env;
    AxisState *axis;
    BufState *buf;
    Known *node;
    int64_t *pos, *first; /* by Var.id: its position, and the first under the same parent */

    /* The nest that is running. */
    const char *what; /* for messages: a label or an axis */
    Status fault;     /* of what goes wrong in it */
    Var *const *bind;
    int nbind, nbound;                      /* in all; with a position now */
    int *depth_of;                          /* by Var.id: 1 + its place in bind, 0 when not bound */
    uint64_t tick, epoch[IR_MAX_BINDS + 1]; /* epoch[d + 1]: when binder d last moved */
    int nest;
    void (*body)(Run *);
    void *job; /* of the body */
};

/* value.c: arithmetic on values; elements of arrays. */
Val interp_convert(Val, Type from, Type to);
Val interp_op(Run *, Op, Type, Val a, Val b); /* Type: of the operands; b: when there are two */
Val interp_apply(Run *, Expr *, Val a, Val b); /* the operator to the values of its arguments */
Val interp_get(const Array *, int64_t i);
bool interp_put(const Array *, int64_t i, Val); /* false: it does not fit */

/* eval.c */
int interp_use(Run *, Expr *); /* once for each root of a nest, before it runs; its depth */
Val interp_eval(Run *, Expr *);
int64_t interp_coord(const AxisState *, int k, int64_t p, int64_t first);
typedef struct Spot { /* where an index stands */
    const Axis *axis;
    int64_t parent; /* position of the axis' parent; 0 for a root axis */
    const Buf *buf; /* place in its full list; or NULL, and */
    int place;
    const char *below; /* what hangs below the entry */
} Spot;
int64_t interp_index(Run *, Expr *index, const Spot *); /* the position, -1 when it is not stored */
int64_t interp_place(Run *, Expr *load);                /* the element, -1 when it is not stored */

/* nest.c: loops over binders. */
void interp_open(Run *, const char *what, Status fault, Var *const *bind, int nbind);
void interp_nest(Run *, void (*body)(Run *), void *job);
_Noreturn void interp_fail(Run *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* axis.c, built.c */
void interp_ready_axes(Run *); /* all that are not ready and can be */
void interp_sort(Rows *);      /* and drops equal rows */
void interp_insert(Run *);     /* body of |=; the job is the Assign */
int64_t *interp_row(Arena *, Rows *); /* a new one, to be filled */
/* Starts and coordinates of a built axis from its rows. */
void interp_freeze(Run *, const Axis *, Rows *, int64_t parents);

/* interp.c */
bool interp_beats(AssignOp, Type, Val v, Val old); /* v wins over old in max= or min= */
Array interp_const(Run *, const Buf *); /* its values, as an array of its type */
void interp_allot(Run *, Array *, int64_t n, Type, const char *name, const char *part);

#endif
