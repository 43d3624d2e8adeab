/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Flat loops to C text: one function a phase, each a pure function of a range. */
#ifndef WEFT_EMIT_H
#define WEFT_EMIT_H

#include "ir/loop.h"

/* dialect.c: text that differs from one language of kernels to the next. */
typedef struct Dialect {
    const char *name;          /* "c", as in "c:avx2" */
    const char *prelude;       /* that a text begins with */
    const char *type[T_COUNT]; /* of elements in memory, and of scalars */
    const char *array;         /* between the type of an array that is passed and its name; */
    const char *stored;        /* of one that is stored to */
    const char *constant;      /* before the type of a table of constants */
    const char *own;           /* before that of an array which an iteration has */
    const char *pointer;       /* the type of an address in a list of arrays */
    const char *entry, *entry_args; /* around the name of the function of a phase, */
    const char *part, *part_args;   /* and of a part of one */
    /* Around an element: for the first cache, the second; NULL: there are no hints. */
    const char *prefetch, *near, *far;
    const char *function, *inlined;    /* before a function that searches */
    const char *pass;                  /* what each call of one begins with */
    const char *elementary;            /* functions of floats, where the prelude has none */
    const char *negate;                /* before a condition of lanes */
    /* Lanes that are threads of their own; NULL: a vector is one thread's. */
    const char *one;             /* before a store of a scalar, which one lane makes */
    const char *barrier;         /* where lanes meet */
    const char *work, *work_end; /* around the place of an array in the scratch memory of a unit */
    const char *shared, *shared_end; /* around that in the shared memory of a warp; NULL: none */
    const char *guard[3]; /* an error for other registers, around f32 bytes and a target's name */
    const char *table, *table_end; /* around the elements of a table of int64_t, a pointer */
    const char *blocks;            /* before a void * that is a list of blocks */
    /* Of a text that two compilers share: how it is compiled, as C names the file; before the
     * kernels, before what the host runs, at the end. */
    const char *build, *suffix, *kernels, *host, *end;
} Dialect;
extern const Dialect emit_dialect_c, emit_dialect_opencl, emit_dialect_cuda, emit_dialect_hip;

typedef struct EmitPhase {
    const char *name; /* of the function, a RunPhaseFn: (arrays, sizes, begin, end, scratch) */
    bool parallel;    /* its range is 0..extent of the outermost loop; else 0..1 */
    int64_t shared;   /* bytes of shared memory of a warp */
    const char *kernel; /* the name of the kernel around it, where lanes are threads */
    bool lanes;       /* it has vector loops: where lanes are threads, a warp runs it */
    int step;         /* iterations that are worth a call: as many as the registers take */
    int width, parts_of; /* lanes that have an iteration, 0: all of a warp; parts that loops
                          * on warp are dealt to */
    bool each;        /* a launch has a warp's part, or a thread, for each unit of work */
    int64_t work;     /* bytes of scratch memory of a call; of dialects with `work` */
    Expr *extent;
    Buf *balance; /* start array that weighs the range; or NULL */
    Buf *parts;   /* array of the part of each iteration, which is not cut; or NULL */
    const char *why; /* it is not parallel; or NULL */
    Axis *builds; /* the axis whose starts and coordinates it makes; or NULL */
    bool whole;   /* the keys that it collects have the parent's position as first digit */
    int how;      /* where what it is told begins, among the last of the sizes: see below */
} EmitPhase;

/* A phase that builds an axis is run twice: to count (start[q + 1] becomes the entries below q; all
 * are 0 before), and, when starts are sums and there is room, to fill the coordinates.  Among the
 * sizes it is told how; its scratch memory is what run/built.c says. */
enum EmitHow { EMIT_ROOM, EMIT_FILL, EMIT_KEYS, EMIT_BOUNDS }; /* the last of each coordinate */

typedef struct EmitKernel { /* what whoever runs the text has to know */
    EmitPhase *phase;
    int nphase;
    Buf **array; /* the first argument of each function, in this order */
    int narray;
    Axis **count; /* the second: the program's sizes, then the positions of these axes, */
    int ncount;
    int nhow; /* then what phases that build axes are told */
} EmitKernel;

/* Prints the phases as functions that begin with this prefix, to stand after the prelude. */
EmitKernel *emit_functions(Text *, const Dialect *, Prog *, Node *const *phase, int n,
                           const char *prefix);
/* The same, with long straight-line code cut into functions of at most so many lines of one
 * operation each (0: as the policy of p says): a compiler is done with them sooner.  Shorter ones
 * than that compile no faster, and read more values again. */
EmitKernel *emit_functions_cut(Text *, const Dialect *, Prog *, Node *const *phase, int n,
                               const char *prefix, int most);
/* Prints the phases as one self-contained file. */
EmitKernel *emit_text(Text *, const Dialect *, Prog *, Node *const *phase, int n,
                      const char *heading);

extern const char emit_gpu_h[];  /* the header of kernels whose lanes are threads, */
extern const char emit_host_h[]; /* and of what launches them */
extern const char emit_simd_h[]; /* the header of vector types that the text begins with */
/* Functions of floats, and sets: emit_functions prints them where they are needed. */
extern const char emit_elementary_h[], emit_set_h[];
/* Makes what a plan has: after emit_simd_h; what formats need more, after that. */
extern const char emit_plan_h[], emit_convert_h[];
extern const char emit_probe_h[]; /* phases that measure a machine: after the first two */

#endif
