/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Between the pool, which knows lanes, and the phases, which know chunks.  A lane is one thread's
 * part in a call: it takes chunks until none is left. */
#ifndef WEFT_RUN_INT_H
#define WEFT_RUN_INT_H

#include "run/run.h"

/* Runs lane(arg, 0), and as many of lane(arg, 1) .. lane(arg, lanes - 1) as there are threads free
 * to take them, each at most once at a time.  Returns when all that began have ended. */
typedef void PoolLane(void *arg, int64_t i);
void pool_run(Pool *, int64_t lanes, PoolLane *, void *arg);
const Os *pool_os(const Pool *);

/* slices.c: a piece of a phase that has slices; `table` is room for its arrays. */
int64_t run_piece_of(const RunPhase *, int64_t piece, void *const *array, const int64_t *size,
                     void *work, void **table);
int64_t run_slice_bytes(const RunSlices *);

#endif
