/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The runtime of CUDA as emitted text calls it, without a GPU: memory is the interpreter's, and a
 * launch is run by it (tests/gpu/sass). */
#ifndef WEFT_TEST_CUDART_H
#define WEFT_TEST_CUDART_H

#include "gpu/sass/sass.h"

enum { CUDART_KERNELS = 64 };

typedef struct CudartKernel { /* what its launches have executed */
    const char *name;
    const SassKernel *code;
    SassCount count;
    int launches, threads, dynamic;
} CudartKernel;

typedef struct Cudart {
    SassGpu *gpu;
    Sass *code; /* of the module that was loaded last */
    CudartKernel kernel[CUDART_KERNELS];
    int kernels, errors;
    bool profile;
} Cudart;
extern Cudart cudart;

/* Memory of the device with a copy of `from` or, where that is NULL, of no value. */
void *cudart_memory(const void *from, size_t bytes);
void *cudart_host(const void *device); /* where its content is */
void cudart_count_anew(void);
void cudart_close(void);

#endif
