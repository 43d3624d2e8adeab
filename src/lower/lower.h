/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * From coordinates to loops: each pass takes a checked program or a tree and gives a new tree. */
#ifndef WEFT_LOWER_H
#define WEFT_LOWER_H

#include "ir/loop.h"

/* Sizes that a kernel is run with are below 2^48, so that sums of a few products by small constants
 * fit: larger ones are for the interpreter. */
enum { LOWER_SIZE_BITS = 48 };

typedef struct Kernel { /* a list of phases, done in order */
    Prog *p;
    Node **phase;
    int n, cap;
} Kernel;

/* array.c: structure arrays that are i32 in env are read as they are; otherwise all are i64.  To be
 * done first, while the program has just the axes that env is for. */
void lower_narrow(Prog *, const Env *env);

/* reroot.c: scatters through a loaded coordinate become sums over the rows of the transpose, which
 * a plan makes.  Changes p's statements: give it a copy. */
void lower_reroot(Prog *p);

/* positions.c: coordinates become loops over stored entries, each access the position of its
 * element in every interface dimension; searches are `find`, padding and guards are branches, what
 * cannot be proven inside is checked.  Needs a checked program without built axes.  Throws ST_LIMIT
 * for what only the interpreter runs. */
Kernel *lower_positions(Prog *);

/* unroll.c: loops over constant relations, and those that run once, become straight-line code; what
 * the constant bounds of loops decide is decided. */
void lower_unroll(Kernel *);

/* loops.c: one flat index an element. */
void lower_loops(Kernel *);

/* check.c: what has been tested is not tested again, and what a loop does not change is tested and
 * searched for before it. */
void lower_checks(Kernel *);

/* block.c: in straight-line code the terms of one element are added up first, and stored once. */
void lower_blocks(Kernel *);

/* vector.c: marks the innermost loops whose elements lie side by side, for registers of so many
 * bytes; multiplies what is the same in all lanes before what is not. */
void lower_vectors(Kernel *, int bytes);

/* share.c: what is used twice, or does not change in an innermost loop, gets a name.  Last. */
void lower_shared(Kernel *);

/* array.c, too: what a kernel gets for one of its arrays, from the arrays of a program; of outputs
 * and of the kernel's own arrays it is only length and type, data is NULL. */
Array lower_array(Arena *, const Prog *, const Env *, const Buf *);
/* The end of the range of a phase. */
int64_t lower_value(Arena *, const Prog *, const Env *, Expr *extent);

#endif
