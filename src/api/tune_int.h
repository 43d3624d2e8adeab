/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The state of a tuning: shared by space.c, which lists the candidates, and tune.c, which times
 * them. */
#ifndef WEFT_TUNE_INT_H
#define WEFT_TUNE_INT_H

#include "api/api_int.h"
#include "tune/tune.h"

typedef struct Held { /* a candidate that ran */
    const char *text;
    struct Plan *plan; /* or NULL */
    unsigned number;   /* of the kernel, when it has this schedule */
    int64_t bytes;     /* of the plan */
} Held;

typedef struct Saved { /* an array of the caller that runs change */
    View view;
    void *copy;
} Saved;

typedef struct Shape { /* what the program asks of the machine when its entries are stored so */
    const char *formats; /* the lines of a schedule */
    CostShape is;
    bool known;
} Shape;

typedef struct Tuning {
    weft_ctx *ctx;
    weft_kernel *k;
    weft_args *args; /* NULL: none are known */
    const weft_tune *opt;
    const char *own; /* the schedule that the kernel had before, or NULL */
    int threads, compilers; /* that runs have; that run at the same time */

    const Env *env; /* sizes and structure; or NULL */
    const Machine *machine;
    Shape *shape; /* by formats; the first is of the program as it is */
    int nshape, shapecap;
    int64_t begin;
    Arena trees;          /* of one question */
    const uint8_t *index; /* of the variants, */
    const int64_t *size;  /* and what they are for alone: see VariantKey */

    Held **held, *at; /* all; the one whose plan the arguments have */
    int n, cap;
    int64_t bytes; /* of all plans */
    TuneArray *want;
    const double **bound; /* as want: how far rounding may move each element; NULL: not known */
    bool asked;           /* whether there are bounds was asked */
    bool calls;           /* the program calls functions: their last bit may differ */
    Saved *saved;
    int nwant, nsaved;
} Tuning;

/* space.c */
void tuning_open(Tuning *, weft_kernel *, weft_args *); /* NULL: no arguments are known */
int64_t tuning_clock(const Tuning *);                   /* ns */
TuneAsk tuning_ask(Tuning *);
bool tuning_predicts(Tuning *); /* the model knows the program */
void tuning_space(Tuning *, TuneSpace *out);
/* Calls fn; the message of what it threw, or NULL.  Where `memory` is true, that there is none is a
 * message too, and no failure of all. */
typedef void TuningFn(Tuning *, const char *text, void *out);
const char *tuning_attempt(Tuning *, TuningFn *, const char *text, void *out, bool memory);

#endif
