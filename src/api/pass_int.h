/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * A pass of the pipeline as a row of a table (pipeline.c): its order, its switch and the targets
 * that run it are data. */
#ifndef WEFT_PASS_INT_H
#define WEFT_PASS_INT_H

#include "ir/ir.h"

struct Aim;
struct Kernel;

/* Properties of the loops.  A pass gives a property once all that it stands for is done; from then
 * on no pass has to expect otherwise.  A pass that is skipped gives its property too: what it would
 * have done is then left undone, which costs speed and changes no result. */
#define PASS_PROPERTIES(X)                                                              \
    X(ARRANGED, "lines of the schedule have arranged the loops over positions")         \
    X(CONSUMED, "per-edge temporaries are consumed where they are computed")            \
    X(FLAT, "each element has one flat index")                                          \
    X(HOISTED, "tests and searches stand outside of the loops that do not change them") \
    X(VECTOR_STEPS, "lines of the schedule have chosen their lanes")                    \
    X(FUSED, "sums over one range are in one phase")                                    \
    X(FACTORED, "sums of products share their common terms")                            \
    X(REGISTERS, "sums are in registers while a loop adds to them")                     \
    X(INIT_PLACED, "initial values stand in registers, stores and loops, and no array has one")   \
    X(LANES, "the lanes of innermost loops are chosen")                                 \
    X(FEW, "straight-line phases over one range are one")                               \
    X(ROWS_FUSED, "phases that share rows are one")

enum {
#define INDEX(name, note) PROPERTY_##name,
    PASS_PROPERTIES(INDEX)
#undef INDEX
        PROPERTIES
};

typedef enum PassFlag {
    PASS_OPTIONAL = 1, /* kernels are right without it */
    PASS_ARRANGES = 2, /* a phase whose loops the schedule arranges keeps them */
    PASS_PLANNED = 4,  /* gives arrays that a plan fills */
    PASS_REORDERS = 8, /* terms of a sum may be added in another order */
    PASS_JOINT = 16    /* walks the loops together with the passes after it, up to the first that is
                        * not joint: that one runs them all */
} PassFlag;

typedef enum TargetKind { KIND_CPU, KIND_WARP } TargetKind;

typedef struct Pass {
    const char *name, *note;
    Stage from, to;
    unsigned needs, gives; /* bits of properties */
    unsigned flags;        /* PassFlag */
    unsigned kinds;        /* bits of TargetKind that run it */
    void (*run)(struct Kernel *, const struct Aim *);
} Pass;

extern const Pass api_pass[];                        /* the last row has no name */
const Pass *api_pass_named(const char *name, size_t n); /* NULL: there is none */
const Pass *api_find_pass(Prog *, const char *name);    /* throws */
/* The first pass of a table, which ends with a row without a name, that needs a property which no
 * earlier one gives; *property becomes its name.  NULL: the order is right. */
const Pass *api_misplaced(const Pass *table, const char **property);
#endif
