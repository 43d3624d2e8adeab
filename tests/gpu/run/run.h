/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Programs on GPU targets, without a GPU: what `weft emit -t cuda:sm_80` prints is compiled by nvcc
 * as it is, and its host functions run with a CUDA runtime whose device is the interpreter of
 * tests/gpu/sass; kernels of OpenCL run through the library.  Results are compared with those of
 * Weft's interpreter. */
#ifndef WEFT_GPU_RUN_H
#define WEFT_GPU_RUN_H

#include "api/api_int.h"
#include "gpu/sass/sass.h"

enum { MOST_SETS = 32 };
typedef enum Rows {
    ROWS_SMALL,
    ROWS_32,
    ROWS_96,
    ROWS_160,
    ROWS_SKEW,
    ROWS_EMPTY,
    ROWS_LONG,
    ROWS_COUNT
} Rows;
extern const char *const rows_name[ROWS_COUNT];

typedef struct Draw { /* what arguments are drawn by */
    Rows rows;
    uint64_t seed;
    int nset;
    const char *set_name[MOST_SETS];
    int64_t set_value[MOST_SETS];
} Draw;

/* draw.c: binds sizes, structure and inputs, in memory of the arena.  *entries: positions of the
 * largest axis with structure, or, without any, of the first dimension of the first output.  False,
 * with the message of the context: the program does not take them. */
bool draw_args(Arena *, const Draw *, weft_args *, int64_t *entries);

/* runtime.c: the CUDA runtime.  What a program's launches did, since the last runtime_begin. */
enum { MOST_LAUNCHES = 64 };
typedef struct Launch {
    const char *kernel;
    SassCount count;
    SassUse use;
    int warps; /* resident on an SM */
    unsigned groups, threads;
} Launch;
typedef struct Ran {
    Launch launch[MOST_LAUNCHES];
    int n, errors;
    char error[SASS_TEXT]; /* the first */
    int calls;             /* of the runtime, since runtime_begin */
    int live;              /* allocations that are not freed */
} Ran;
void runtime_code(const Sass *); /* of the module that is loaded next */
void runtime_begin(int fail_at); /* this call of the runtime fails; -1: none */
Ran *runtime_ran(void);
/* Memory of the device with this content, for arguments. */
void *runtime_input(const char *name, void *host, size_t bytes, bool is_written);
void *runtime_output(const char *name, void *host, size_t bytes);
void runtime_end(void); /* forgets all memory */

/* text.c: several programs as one CUDA file, compiled and loaded. */
typedef struct TextCase {
    const char *name;   /* of the program */
    const char *source; /* what weft emit printed */
    const Body *body;
} TextCase;
typedef struct CudaText CudaText;
/* NULL: it does not compile, and *why is what nvcc says. */
CudaText *text_load(Arena *, const TextCase *, int n, const char **why);
void text_free(CudaText *);
/* 0 makes a plan, 1 runs, 2 reads the fault, 3 frees the plan. */
enum TextCall { TEXT_PLAN, TEXT_RUN, TEXT_FAULT, TEXT_FREE };
int64_t text_call(const CudaText *, const char *name, enum TextCall, const int64_t *size,
                  void *const *array);

#endif
