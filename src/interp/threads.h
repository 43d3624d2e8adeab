/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Lanes and warps as threads: who runs what, and the races of those that have not met. */
#ifndef WEFT_THREADS_H
#define WEFT_THREADS_H

#include "interp/interp_int.h"
#include "ir/loop.h"

enum { SEVERAL = -1 };

typedef struct Thread { /* of a block; SEVERAL: all warps, all lanes */
    int warp, lane;
} Thread;

typedef struct Touched { /* an access */
    const char *what;       /* the label of its statement; NULL: there was none */
    int64_t met, lanes_met; /* barriers that its thread had passed */
    Thread by;
} Touched;

typedef struct Marks { /* of an element */
    Touched stored, read;
    bool atomic; /* the store */
} Marks;

typedef struct Threads {
    bool on;            /* lanes and warps are threads in this phase, */
    bool alone;         /* which is run by one thread an iteration */
    int nwarp, nlane;   /* of whoever runs an iteration */
    Thread now;
    int64_t met, lanes_met[LOOP_MOST_WIDTH]; /* barriers of the block, and of each warp */
} Threads;

typedef struct PlaceOf { /* for messages */
    const char *array;
    int64_t element;
} PlaceOf;

void threads_phase(Threads *, const Node *phase);
/* Iteration i of n of a loop that is dealt to lanes, warps or threads. */
void threads_deal(Threads *, const Node *loop, int64_t n, int64_t i);
/* From now on the first of those that run; returns who they were. */
Thread threads_first(Threads *);
void threads_meet(Threads *, bool block);
void threads_read(Threads *, Run *, Marks *, const PlaceOf *);
void threads_store(Threads *, Run *, Marks *, bool atomic, const PlaceOf *);

#endif
