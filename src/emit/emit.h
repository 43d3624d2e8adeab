/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Flat loops to C text: one function a phase, each a pure function of a range. */
#ifndef WEFT_EMIT_H
#define WEFT_EMIT_H

#include "ir/loop.h"

typedef struct EmitPhase {
    const char *name; /* of the function, a RunPhaseFn: (arrays, sizes, begin, end, scratch) */
    bool parallel;    /* its range is 0..extent of the outermost loop; else 0..1 */
    Expr *extent;
    Buf *balance; /* start array that weighs the range; or NULL */
} EmitPhase;

typedef struct EmitKernel { /* what whoever runs the text has to know */
    EmitPhase *phase;
    int nphase;
    Buf **array; /* the first argument of each function, in this order */
    int narray;
    Axis **count; /* the second: the program's sizes, then the positions of these axes */
    int ncount;
} EmitKernel;

/* Prints the phases as functions that begin with this prefix, to stand after emit_simd_h. */
EmitKernel *emit_functions(Text *, Prog *, Node *const *phase, int n, const char *prefix);
/* Prints the phases as one self-contained C file. */
EmitKernel *emit_c(Text *, Prog *, Node *const *phase, int n, const char *heading);

extern const char emit_simd_h[]; /* the header of vector types that the text begins with */

#endif
