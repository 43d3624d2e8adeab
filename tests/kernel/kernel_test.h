/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Compiled programs against the interpreter: random ones, their gradients, and the examples, many
 * in one C file.  Results are compared bit for bit. */
#ifndef WEFT_KERNEL_TEST_H
#define WEFT_KERNEL_TEST_H

#include "dev/dev.h"
#include "emit/emit.h"
#include "lower/lower.h"
#include "random/random.h"

/* This program under the address sanitizer: then kernels are too. */
#if defined(__SANITIZE_ADDRESS__)
enum { SANITIZED = 1 };
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
enum { SANITIZED = 1 };
#else
enum { SANITIZED = 0 };
#endif
#else
enum { SANITIZED = 0 };
#endif

/* Under the thread sanitizer: likewise. */
#if defined(__SANITIZE_THREAD__)
enum { RACING = 1 };
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
enum { RACING = 1 };
#else
enum { RACING = 0 };
#endif
#else
enum { RACING = 0 };
#endif

typedef struct Subject { /* a program with its arrays, and what becomes of it */
    uint64_t seed;
    const char *name; /* of a program that is not random; or NULL */
    bool gradient;
    bool exact; /* no operation rounds, so that every pass may run and still give the same bits */
    double tolerance; /* when not 0, every pass runs and this is the error that they may make, of */
                      /* the largest element; times 1e8 for f32 */
    double functions; /* the same for what a device's functions, as exp, add to it */
    bool strided; /* inputs are read as strides.c lays them */
    Prog *prog;
    const char *text;
    Data *in;
    Env *want;          /* after a run of the interpreter */
    Status status;      /* of that run */
    const char *error;  /* its message */
    EmitKernel *kernel; /* NULL: only the interpreter runs it, */
    const char *why;    /* for this reason */
    const char *source;
    int first; /* on a device: the number of its first kernel */
} Subject;

typedef struct Subjects {
    VectorUnit unit; /* its registers: as each subject draws them */
    const struct Backend *device; /* lanes are threads; or NULL */
    Rewrite *plant; /* a defect, for all expressions; or NULL */
    Subject *s;
    int n, cap;
} Subjects;

/* subject.c: the random program of a seed and its gradient, interpreted and, where possible,
 * lowered; throws when that fails. */
void subject_random(Arena *, Subjects *, uint64_t seed);
void subject_and_gradient(Arena *, Subjects *, Subject, bool exact_gradient);
void subject_add(Arena *, Subjects *, Subject);

/* strides.c: draws, by the seed, which inputs have gaps or repeat elements.  Before the interpreter
 * runs, what is repeated gets one value; before passes, the kernel gets the strides; and an array for
 * it is spread. */
void strides_repeat(Arena *, Subject *);
void strides_set(Arena *, Subject *);
Array strides_spread(Arena *, const Subject *, const Env *, const Buf *, Array packed);

/* batch.c: the C of all subjects in one file, compiled and loaded. */
typedef struct Toolchain {
    const char *name, *what;
    const char *cc;      /* NULL: WEFT_CC, or cc */
    const char *flag[8]; /* ends in NULL */
    int lanes[2];        /* of f32 and f64; see toolchain_unit */
    int share;           /* random programs of the suite, in hundredths of test_scale(10000) */
    const struct Backend *device; /* kernels run there; or NULL */
} Toolchain;
extern const Toolchain toolchains[];                  /* ends in a NULL name */
const Toolchain *toolchain_find(const char *name); /* NULL: none */
VectorUnit toolchain_unit(const Toolchain *);      /* one lane: no vectors */
bool toolchain_here(const Toolchain *);            /* the CPU and the compiler are there */

typedef struct Batch {
    void *lib;
    const struct Backend *backend;
    void *device; /* a module of it; or NULL */
    char message[4000]; /* of the compiler: what it has to say is a failure */
} Batch;
Batch batch_load(Arena *, const Toolchain *, const Subjects *);
void batch_close(Batch *);

/* Devices that kernels run on, and their memory: opencl.c, sass.c. */
typedef struct Backend {
    const Dialect *dialect;
    int warps, threads; /* of a group: where warps take units, where threads do */
    bool (*is_here)(void);
    void *(*build)(Arena *, const char *text, const char *const *kernel, int n); /* throws */
    void (*close)(void *module);
    void *(*put)(const void *from, int64_t bytes); /* from NULL: any content */
    bool (*get)(void *memory, void *to, int64_t bytes);
    void (*drop)(void *memory);
    bool (*launch)(void *module, int kernel, const DevArg *, int narg, int64_t groups,
                   int64_t threads);
} Backend;
extern const Backend backend_opencl, backend_sass;

/* device.c: kernels on one of them. */
const char *device_plant(int i); /* defect i for the texts to come: its name; NULL: there is none */
void device_load(Arena *, Batch *, const Subjects *); /* throws */
void device_close(Batch *);
/* Runs a phase on copies of the arrays, which then are what it made of them.  0, or a fault. */
int64_t device_phase(const Batch *, const Subject *, int phase, int64_t n, const int64_t *part,
                     const Array *, const int64_t *size);

/* execute.c: runs a subject's kernel on copies of its arrays.  NULL, or what is wrong. */
const char *execute(Arena *, const Batch *, const Subject *);

/* threads.c: runs it again, on several numbers of threads; `had` is what a run has given. */
const char *threads_agree(Arena *, const Batch *, const Subject *, const Env *, const int64_t *size,
                          const Array *had, int64_t fault);

/* defect.c: planted defects; how many of them were found. */
int defect_test(Arena *, const Toolchain *, int *failed);

/* example.c: a program and its data, as the command in its heading has them; paths are from the
 * program's folder. */
void example_add(Arena *, Subjects *, const char *path);
typedef struct Example {
    Arena *arena;
    char folder[200];
    struct weft_ctx *ctx;
    struct weft_prog *prog;
    struct weft_args *args; /* bound, with nothing run yet */
} Example;
const char *example_text(Example *, const char *path); /* sets the folder */
void example_open(Example *, const char *path, const char *text); /* throws */
void example_bind(Example *, const char *text); /* the data of its heading; throws */

/* emitted.c: what `weft emit` prints, compiled alone, against the library. */
typedef struct Emitted {
    int64_t passed, failed, refused;
} Emitted;
void emitted_check(Emitted *, const char *path, int share, int turn);

#endif
