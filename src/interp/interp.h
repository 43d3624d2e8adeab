/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The interpreter: what a program means, plainly.  It is the oracle that every lowering is compared
 * with, and shares no code with any; docs/ir.md and these files say the same. */
#ifndef WEFT_INTERP_H
#define WEFT_INTERP_H

#include "ir/ir.h"

/* Validates sizes and structure arrays (built axes apart): starts, lengths, bounds, sorted, unique.
 * ir_layout may be asked for the buffers of a validated Env.  Throws ST_BIND. */
void interp_check(Arena *, const Prog *, Env *);

/* Validates, then runs a program that ir_check has passed.  Reads the arrays of the Env and fills
 * those that the program writes: outputs, temporaries, starts and coordinates of built axes.  One
 * that is not there (data is NULL) is allocated from the arena, as all scratch is; one that is must
 * have the right length and type.  Throws ST_BIND for what does not fit, ST_RUN for what the
 * data make impossible: then arrays that the program writes hold anything.
 *
 * What is thrown goes to the trap of arena->err, which must be the program's own too. */
void interp_run(Arena *, const Prog *, Env *);

/* loops.c: the same below coordinates, where interp_run comes here: runs the phases of a program
 * that loop_check has passed.  `cut`, or NULL, is called for each phase of n iterations and calls
 * run(job, begin, end) for ranges that hold each iteration once, in any order.  It is an error of
 * the tree (ST_RUN) when two iterations of a phase touch one element and one of them writes it. */
typedef void InterpRange(void *job, int64_t begin, int64_t end);
typedef void InterpCut(void *with, int64_t n, InterpRange *run, void *job);
void interp_loops(Arena *, const Prog *, Env *, InterpCut *cut, void *with);

/* The same for stage `threads`: what may run in any order, lanes, warps and iterations, runs in one
 * that the seed draws; 0: as it is numbered.  It is an error of the tree, with either, when two
 * threads touch an element, one of them storing, and no barrier stands between. */
void interp_threads(Arena *, const Prog *, Env *, InterpCut *cut, void *with, uint64_t seed);

#endif
