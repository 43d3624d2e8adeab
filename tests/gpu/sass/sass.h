/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * An interpreter of the machine code that nvcc makes for sm_80 (SASS): it runs a kernel without a
 * GPU, checks each access of memory, finds data races and counts instructions.
 *
 *     char why[SASS_TEXT];
 *     Sass *code = sass_load("kernels.cubin", why);
 *     SassGpu *gpu = sass_gpu();
 *     uint64_t a = sass_buffer(gpu, "a", host_a, bytes, SASS_INPUT);
 *     uint64_t z = sass_buffer(gpu, "z", host_z, bytes, SASS_FRESH);
 *     SassParams p = { 0 };
 *     sass_param64(&p, a), sass_param64(&p, z), sass_param32(&p, n);
 *     if (!sass_launch(gpu, sass_kernel(code, "scale"), &(SassShape){ { 4 }, { 128 } }, &p))
 *         puts(sass_error(gpu, 0));
 *
 * A warp executes one instruction at a time; each lane has its own program counter. */
#ifndef WEFT_SASS_H
#define WEFT_SASS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { SASS_TEXT = 1024, SASS_PARAMS = 4096 - 0x160 };

/* Classes of instructions. */
enum SassClass {
    SASS_FFMA,
    SASS_FMUL,
    SASS_FADD,
    SASS_FP,   /* other operations on floating-point numbers, those of f16 and f64 too */
    SASS_MMA,  /* tensor cores */
    SASS_MUFU, /* MUFU and conversions */
    SASS_INT,  /* integers, moves, predicates, votes */
    SASS_LDG,
    SASS_STG,
    SASS_ATOM, /* atomics of global and of shared memory */
    SASS_LDS,
    SASS_STS,
    SASS_LOCAL, /* stack: LDL, STL */
    SASS_SHFL,
    SASS_SYNC,   /* BAR, WARPSYNC, BSSY, BSYNC, fences */
    SASS_BRANCH, /* BRA, CALL, RET, EXIT */
    SASS_CLASSES
};
extern const char *const sass_class_name[SASS_CLASSES];

/* What is executed, summed over all warps of a launch.  NOP is no instruction: it is what nvcc
 * leaves of a __syncwarp. */
typedef struct SassCount {
    uint64_t of[SASS_CLASSES], all; /* warp instructions */
    uint64_t lanes;                 /* lanes that took part in them */
    uint64_t bytes[3], sectors[3];  /* global memory: loads, stores, atomics; 32-byte sectors */
    uint64_t shared[2], waves[2];   /* bytes and wavefronts of shared memory: loads, stores */
    uint64_t diverged;              /* branches that lanes of a warp took and did not take */
} SassCount;

/* What ptxas says of a kernel, and what follows for an SM of sm_80. */
typedef struct SassUse {
    int registers, stack, shared; /* bytes a thread, bytes a block without the dynamic ones */
    int spills;                   /* instructions LDL and STL in the text */
} SassUse;

typedef struct Sass Sass;
typedef struct SassKernel SassKernel;
typedef struct SassGpu SassGpu;

/* The kernels of a cubin, or NULL and the reason.  Needs cuobjdump and nvdisasm: sass_tools says
 * where they are, or why not. */
Sass *sass_load(const char *cubin, char why[SASS_TEXT]);
bool sass_tools(char where[SASS_TEXT]);
/* The same of text that is there already: what `cuobjdump -sass` and `cuobjdump -res-usage` print;
 * elf is the cubin's content for its constants, or NULL. */
Sass *sass_parse(const char *text, const char *usage, const void *elf, size_t bytes,
                 char why[SASS_TEXT]);
void sass_free(Sass *);
/* By name; a kernel's number; NULL: there is none. */
const SassKernel *sass_kernel(const Sass *, const char *name);
const SassKernel *sass_kernel_at(const Sass *, int i);
const char *sass_name(const SassKernel *);
SassUse sass_use(const SassKernel *);
/* Warps that an SM of sm_80 holds of blocks of so many threads with so many bytes of dynamic shared
 * memory. */
int sass_warps(const SassKernel *, int threads, int dynamic);
/* Instructions of the text that no row of the table describes, one line each; returns their number.
 * */
int sass_unknown(const Sass *, FILE *to);

enum SassBuffer {
    SASS_INPUT, /* kernels only read it */
    SASS_INOUT,
    SASS_FRESH, /* of no value before a kernel writes it: reading it first is an error */
};

SassGpu *sass_gpu(void);
void sass_gpu_free(SassGpu *);
/* 0: warps run in order, each as far as it can, lanes together where they can; another seed draws
 * the order of warps and of diverged lanes. */
void sass_seed(SassGpu *, uint64_t seed);
void sass_limit(SassGpu *, uint64_t instructions); /* of one launch; 4e9 at first */
void sass_races(SassGpu *, bool look);             /* on at first */
/* Host memory as a buffer of the device; returns its address there.  No two buffers touch. */
uint64_t sass_buffer(SassGpu *, const char *name, void *host, size_t bytes, enum SassBuffer);
void sass_drop_buffers(SassGpu *);
/* The host has written all of the buffer that begins there. */
void sass_filled(SassGpu *, uint64_t at);

/* Parameters of a kernel, as CUDA lays them out. */
typedef struct SassParams {
    unsigned char bytes[SASS_PARAMS];
    size_t size;
} SassParams;
void sass_param32(SassParams *, uint32_t);
void sass_param64(SassParams *, uint64_t);
void sass_param_float(SassParams *, float);
void sass_param_bytes(SassParams *, const void *, size_t size, size_t align);
/* Where the parameters of a kernel are, as its cubin tells; returns their number. */
typedef struct SassParam {
    int offset, size;
} SassParam;
int sass_kernel_params(const SassKernel *, SassParam *to, int room);

typedef struct SassShape {
    unsigned grid[3], block[3]; /* 0 counts as 1 */
    int dynamic;                /* bytes of dynamic shared memory */
} SassShape;

/* Runs a kernel.  False: there were errors.  An access that is not allowed ends the launch; races
 * and values that nobody wrote are collected. */
bool sass_launch(SassGpu *, const SassKernel *, const SassShape *, const SassParams *);
SassCount sass_count(const SassGpu *);          /* of the last launch */
int sass_errors(const SassGpu *);               /* of the last launch */
const char *sass_error(const SassGpu *, int i); /* NULL: no such error */
/* Executed instructions with their counts, in the order of the text. */
void sass_profile(const SassGpu *, FILE *to);

#endif
