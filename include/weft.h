/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Weft: sparse and equivariant kernels from small programs.  This is the whole C interface.
 *
 *     const char *text = "program spmv(m, n)\n"
 *                        "axis I = dense(m), J = compressed(I, n)\n"
 *                        "f32 A[I, J], X[n], Y[I]\n"
 *                        "Y[i] += A[i, j] * X[j]\n";
 *     float x[] = { 1, 2, 3 };
 *     weft_tensor in = { x, WEFT_F32, 1, (int64_t[]){ 3 }, NULL }, out;
 *     weft_ctx *ctx = weft_ctx_new();
 *     weft_prog *prog;
 *     weft_args *args;
 *
 *     if (weft_prog_parse(ctx, "spmv", text, strlen(text), &prog) == WEFT_OK &&
 *         weft_args_new(prog, &args) == WEFT_OK &&
 *         weft_args_read(args, "A", "a.mtx") == WEFT_OK &&
 *         weft_args_bind(args, "X", &in) == WEFT_OK &&
 *         weft_run(args) == WEFT_OK && weft_args_get(args, "Y", &out) == WEFT_OK)
 *         printf("%g\n", ((float *)out.data)[0]);
 *     else
 *         fprintf(stderr, "%s\n", weft_message(ctx));
 *     weft_ctx_free(ctx);
 *
 * The language of programs is defined in docs/ir.md. */
#ifndef WEFT_H
#define WEFT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEFT_VERSION_MAJOR 0
#define WEFT_VERSION_MINOR 1
#define WEFT_VERSION_PATCH 0

#if defined(__GNUC__)
#define WEFT_API __attribute__((visibility("default")))
#define WEFT_MUST __attribute__((warn_unused_result)) /* the status has to be looked at */
#else
#define WEFT_API
#define WEFT_MUST
#endif

/* The version of the library, "0.1.0": compare with the macros above. */
WEFT_API const char *weft_version(void);

/* What every function that can fail returns.  When it is not WEFT_OK nothing has changed, neither
 * in the library's objects nor in the caller's arrays, and weft_message tells what was wrong. */
typedef enum weft_status {
    WEFT_OK,
    WEFT_E_ARG,   /* a call that makes no sense: NULL, an unknown name, a wrong type */
    WEFT_E_PARSE, /* text or a file that does not read */
    WEFT_E_CHECK, /* a program that reads but has no meaning */
    WEFT_E_BIND,  /* sizes, shapes or structure that do not fit the program */
    WEFT_E_RUN,   /* data that a run cannot go on with: index out of range, integer overflow */
    WEFT_E_IO,    /* the system refused a file */
    WEFT_E_LIMIT, /* larger than a stated limit */
    WEFT_E_NOMEM  /* out of memory */
} weft_status;

/* A context holds the memory and the last message of everything made in it, and belongs to one
 * thread at a time; different contexts are independent.  To run kernels from several threads, give
 * each a context and compile in it: all but the first find the kernel in the cache. */
typedef struct weft_ctx weft_ctx;

WEFT_API weft_ctx *weft_ctx_new(void); /* NULL: out of memory */
/* Frees the context and all that was made in it and is not freed yet. */
WEFT_API void weft_ctx_free(weft_ctx *ctx);

/* What the last call with this context, or with something made in it, found wrong: the fault and
 * its remedy; with "file:line:col: error: " before it, and the line and a caret below it, when it
 * has a place.  "" after a success.  The text is the context's, until the next call. */
WEFT_API const char *weft_message(const weft_ctx *ctx);

/* What the last call wants to be known although it succeeded: that a kernel is interpreted, that
 * the cache cannot be used, and why.  "" when there is nothing.  Kept as long as the message. */
WEFT_API const char *weft_warning(const weft_ctx *ctx);

/* How many threads kernels run on, the calling one included: 1 to 1024; 0: as many as
 * WEFT_NUM_THREADS says, else one for each CPU.  Results have the same bits for any number.
 * Threads are started when there is work for them, and end with the context. */
WEFT_API WEFT_MUST weft_status weft_ctx_threads(weft_ctx *ctx, int threads);

/* The caller's threads instead: fn runs task(arg, i) for each i in 0..n, in any order, at the same
 * time or not, and returns when all have ended; n is at most `threads`.  NULL: our own again. */
typedef void weft_task(void *arg, int64_t i);
typedef void weft_executor(void *user, int64_t n, weft_task *task, void *arg);
WEFT_API WEFT_MUST weft_status weft_ctx_executor(weft_ctx *ctx, weft_executor *fn, void *user,
                                                 int threads);

/* Calls fn with one line (CSV, without its end) for each compile and each run of a kernel: what was
 * chosen, why, and how long it took; docs/running.md has the columns.  fn makes no calls with this
 * context.  NULL: no lines, as at first.  The library itself never prints. */
typedef void weft_verbose(void *user, const char *line);
WEFT_API WEFT_MUST weft_status weft_ctx_verbose(weft_ctx *ctx, weft_verbose *fn, void *user);

/* The tables of the library, for help and completion: `what` is "types", "functions", "axes",
 * "keywords", "passes", "steps" (of schedules), "targets", "ops" or "options" (of ops); NULL lists
 * these names.  Returns row i and, in *note (which may be NULL), a word on it; NULL after the last
 * row. */
WEFT_API const char *weft_list(const char *what, int i, const char **note);

typedef struct weft_prog weft_prog;

/* Reads a program from n bytes of text; `file` is its name in messages and may be NULL.  On
 * WEFT_OK the caller owns *out, until weft_prog_free; otherwise *out is NULL. */
WEFT_API WEFT_MUST weft_status weft_prog_parse(weft_ctx *ctx, const char *file, const char *text,
                                               size_t n, weft_prog **out);
/* The same from a file of up to 64 MB; "-" is the standard input. */
WEFT_API WEFT_MUST weft_status weft_prog_read(weft_ctx *ctx, const char *path, weft_prog **out);

/* The program of an operator of weft_list("ops", ...): `spec` is its name and any of its options,
 * as in "spmm" (f32, CSR) or "spmm:f64:csc:heads".  It is a program as any other;
 * docs/operators.md has its formula and its buffers.  The caller owns *out, as above. */
WEFT_API WEFT_MUST weft_status weft_prog_op(weft_ctx *ctx, const char *spec, weft_prog **out);

/* A program built piece by piece: `head` is its name and sizes, "spmm(m, n, f)". */
WEFT_API WEFT_MUST weft_status weft_prog_new(weft_ctx *ctx, const char *head, weft_prog **out);
/* Adds declarations or statements, one a line: all of them, or none when one is wrong. */
WEFT_API WEFT_MUST weft_status weft_prog_add(weft_prog *prog, const char *text);

/* A constant relation, as `axis Q(P) = rows m1 m2 -> c { ... }` declares it: Clebsch-Gordan
 * triples, paths of a tensor product, offsets of a stencil. */
typedef struct weft_rows {
    const char *axis;         /* its name */
    const char *parent;       /* NULL for an axis without parent */
    const int64_t *count;     /* with a parent: how many entries each of its positions has */
    int64_t ncount;           /* positions of the parent */
    const char *const *coord; /* ncoord names */
    int ncoord;               /* 1 to 16 */
    int64_t n;                /* entries in all */
    const int64_t *table;     /* n * ncoord coordinates, entry by entry */
    const char *value;        /* name of the constant buffer with the values; or NULL */
    const double *values;     /* n of them, when it has a name */
} weft_rows;

/* Adds the relation, from arrays that are read during the call only. */
WEFT_API WEFT_MUST weft_status weft_prog_rows(weft_prog *prog, const weft_rows *rows);

/* Has the program a meaning?  weft_args_new asks this too. */
WEFT_API WEFT_MUST weft_status weft_prog_check(weft_prog *prog);

/* The program as text, which reads back to the same program.  The text is the program's, until
 * its next call. */
WEFT_API WEFT_MUST weft_status weft_prog_print(weft_prog *prog, const char **out);

/* How the loops of a program are arranged on the way to a kernel: steps of weft_list("steps", ...),
 * "tile 8; panel 64; pack 1"; what is not mentioned stays as it is by default.  NULL: the default
 * again.  It holds for weft_prog_print_after and weft_prog_emit, and for kernels compiled after it.
 * Results have the same bits for any schedule but for `tile` and `jam`, which change the order of
 * sums over contiguous elements. */
WEFT_API WEFT_MUST weft_status weft_prog_schedule(weft_prog *prog, const char *text);

/* The same after a pass on the way to a kernel, one of weft_list("passes", ...): a program of a
 * later stage, which reads, checks and runs as any other.  docs/ir.md has its text.  WEFT_E_LIMIT:
 * a program that is only interpreted so far. */
WEFT_API WEFT_MUST weft_status weft_prog_print_after(weft_prog *prog, const char *pass,
                                                     const char **out);

/* What a derivative is of: lists of names of buffers; none: the default. */
typedef struct weft_grad {
    const char *const *wrt;  /* inputs to differentiate by; else every floating-point one */
    const char *const *of;   /* outputs to differentiate; else every floating-point one */
    const char *const *save; /* what the program computes and its derivative takes as an input; */
    int nwrt, nof, nsave;    /* what is not saved but needed is computed again */
    int forward;             /* 0: gradients; 1: derivatives along a direction */
} weft_grad;

/* The derivative of a program, which is a program: of gradients, its new inputs are cotangents d_Z
 * of the outputs, and its outputs those of the inputs, d_X; forward, t_X are inputs and t_Z
 * outputs.  docs/derivatives.md has the rules.  `opt` may be NULL.  On WEFT_OK the caller owns
 * *out, until weft_prog_free; otherwise *out is NULL. */
WEFT_API WEFT_MUST weft_status weft_prog_grad(weft_prog *prog, const weft_grad *opt,
                                              weft_prog **out);

/* NULL is allowed.  Arguments made for the program live on. */
WEFT_API void weft_prog_free(weft_prog *prog);

typedef enum weft_type { WEFT_I32, WEFT_I64, WEFT_F16, WEFT_BF16, WEFT_F32, WEFT_F64 } weft_type;

enum { WEFT_MAX_NDIM = 32 };

/* An array of the caller. */
typedef struct weft_tensor {
    void *data; /* of element (0, ..., 0), at any alignment; NULL only when there is no element */
    weft_type type;
    int ndim;              /* 0 to WEFT_MAX_NDIM */
    const int64_t *shape;  /* ndim extents */
    const int64_t *stride; /* in elements, negative and 0 too; NULL: C order without gaps */
} weft_tensor;

/* What a program wants bound, and what it gives. */
typedef enum weft_role {
    WEFT_SIZE,   /* an integer; may be left out when a shape tells it */
    WEFT_INPUT,  /* read only */
    WEFT_OUTPUT, /* written; may be left out: the library allocates it */
    WEFT_INOUT   /* its first content counts */
} weft_role;

typedef struct weft_arg {
    const char *name; /* "n", "A", or of a structure array "J.start", "J.coord", "E.j" */
    weft_role role;
    weft_type type;
    int ndim;
    int structure; /* 1: positions or coordinates; an input of these may be i32 or i64 */
} weft_arg;

/* Argument i of the program: sizes first, then arrays in order of declaration.  WEFT_E_ARG past
 * the last one.  The name is the program's, until the program changes. */
WEFT_API WEFT_MUST weft_status weft_prog_arg(const weft_prog *prog, int i, weft_arg *out);
WEFT_API WEFT_MUST weft_status weft_prog_nargs(const weft_prog *prog, int *out);

/* The structure arrays of a matrix whose values are the buffer `name`, as arguments of the program;
 * NULL for those it has not.  CSR and CSC: start, col; COO: row, col; DCSR: all; ELL: col; dense:
 * none.  The names are the program's, until it changes.  WEFT_E_BIND: it is not a matrix. */
typedef struct weft_matrix {
    const char *start, *row, *col;
} weft_matrix;
WEFT_API WEFT_MUST weft_status weft_prog_matrix(const weft_prog *prog, const char *name,
                                                weft_matrix *out);

/* The arguments for runs of one program, as it is now: checked first.  On WEFT_OK the caller owns
 * *out, until weft_args_free; otherwise *out is NULL. */
typedef struct weft_args weft_args;

WEFT_API WEFT_MUST weft_status weft_args_new(weft_prog *prog, weft_args **out);
WEFT_API void weft_args_free(weft_args *args); /* NULL is allowed */

/* Sets a size.  A size that is not set is solved from the shapes that are bound. */
WEFT_API WEFT_MUST weft_status weft_args_size(weft_args *args, const char *name, int64_t value);

/* Binds an array to a buffer or to a structure array; NULL takes a binding back.  The tensor is
 * copied, its elements are not: they must stay until the last run.  An output may share no
 * element with another array, nor with itself. */
WEFT_API WEFT_MUST weft_status weft_args_bind(weft_args *args, const char *name,
                                              const weft_tensor *tensor);

/* Binds the content of a file, of up to 4 GB, and keeps it:
 *   x.npy           an array
 *   x.npz:member    one of several; without ":member" the one with the argument's name
 *   a.mtx           a matrix; for a buffer whose axes have two coordinates (row, column), in the
 *                   order of the axes: dense, CSR, DCSR, COO or ELL.  Structure arrays and sizes
 *                   come with it.  "a.mtx:T" takes the transpose (for CSC).
 * Numbers are converted to the type of the buffer; a fraction for an integer is an error. */
WEFT_API WEFT_MUST weft_status weft_args_read(weft_args *args, const char *name, const char *path);

/* Runs the program.  Arrays that are bound to outputs are written when all has been computed. */
WEFT_API WEFT_MUST weft_status weft_run(weft_args *args);

/* The program as machine code, through the system's C compiler and a cache on disk; docs/running.md
 * has the environment variables (WEFT_CC, WEFT_CACHE_DIR, ...).  On WEFT_OK the caller owns *out,
 * until weft_kernel_free; otherwise *out is NULL.
 *
 * When there is no compiler, or it fails, or the program is one that is only interpreted so far
 * (some searches), the kernel interprets: weft_warning and weft_kernel_info say why. */
typedef struct weft_kernel weft_kernel;

WEFT_API WEFT_MUST weft_status weft_kernel_compile(weft_prog *prog, weft_kernel **out);
WEFT_API void weft_kernel_free(weft_kernel *kernel); /* NULL is allowed */

/* What weft_run does, by the kernel; the arguments were made for the same program.
 *
 * - Arrays that are aligned, in C order and without gaps are used where they are.  So after
 *   WEFT_E_RUN, outputs and inouts hold anything, those of weft_args_get too.
 * - Structure arrays (J.start, E.j) are read, checked and copied in the first run after one is
 *   bound; later runs use the copies.  After a change of their elements, bind them again.
 * - The first run with i32 structure compiles the kernel again, for that.
 * - A run that binds only arrays of the same shapes as before allocates nothing.
 * - Structure that the program builds, and buffers over it, are made in the library's memory in
 *   every run, and copied to what is bound.
 * - A write of one element twice by `=` is not noticed.
 * - A kernel that interprets refuses problems of more than about 1e8 scalar operations
 *   (WEFT_E_LIMIT); weft_run takes them. */
WEFT_API WEFT_MUST weft_status weft_kernel_run(weft_kernel *kernel, weft_args *args);

/* What the first run does before it computes: checks and copies structure, compiles for its types,
 * transposes what the kernel wants transposed.  The runs after it find that done.  For a kernel
 * that interprets, nothing. */
WEFT_API WEFT_MUST weft_status weft_kernel_plan(weft_kernel *kernel, weft_args *args);

/* What the arguments hold for the last kernel that they ran by or were planned for.  WEFT_E_ARG:
 * there is nothing. */
typedef struct weft_plan {
    int64_t made;            /* plans so far: another one for other shapes, structure or kernel */
    double ms, transpose_ms; /* that the last took, without a compile; of these, transposing */
    int transposes;
    int64_t bytes; /* of memory */
} weft_plan;
WEFT_API WEFT_MUST weft_status weft_args_plan(weft_args *args, weft_plan *out);

/* As weft_prog_schedule, for one kernel, from its next run on; the program keeps its own. */
WEFT_API WEFT_MUST weft_status weft_kernel_schedule(weft_kernel *kernel, const char *text);

/* How a kernel came to be.  The texts are the kernel's. */
typedef struct weft_info {
    const char *target;   /* "c", or "interp" */
    const char *isa;      /* of "c": the vector registers, "avx2" */
    const char *how;      /* of "c": "compiled", or found in "memory" or on "disk" */
    const char *key;      /* of "c": its name in the cache */
    const char *why;      /* of "interp": the reason */
    int phases, parallel; /* how many there are; how many of them run on several threads */
} weft_info;
WEFT_API WEFT_MUST weft_status weft_kernel_info(weft_kernel *kernel, weft_info *out);

/* The C text of the kernel, which is the kernel's.  WEFT_E_LIMIT: there is none. */
WEFT_API WEFT_MUST weft_status weft_kernel_source(weft_kernel *kernel, const char **out);

/* The program as C that needs no library: WEFT_SOURCE is a file to compile, WEFT_HEADER declares
 * its functions.  weft_run_NAME(sizes, arrays as weft_prog_arg lists them) runs the program on the
 * calling thread and returns 0 or a fault.  `target` is "c", for the vector registers of this
 * machine, or "c:avx2" and so on.  The text is the program's, until its next call.  WEFT_E_LIMIT: a
 * program that is only interpreted so far, or that builds an axis. */
typedef enum weft_part { WEFT_SOURCE, WEFT_HEADER } weft_part;
WEFT_API WEFT_MUST weft_status weft_prog_emit(weft_prog *prog, const char *target, weft_part part,
                                              const char **out);

/* The cache of kernels.  The directory is the context's; WEFT_E_IO: there is none. */
WEFT_API WEFT_MUST weft_status weft_cache_dir(weft_ctx *ctx, const char **out);

typedef struct weft_entry {
    const char *key;    /* the name of its file */
    int64_t bytes, age; /* age in seconds */
    const char *fault;  /* what is wrong with it; NULL: nothing, or not asked */
} weft_entry;

/* The entries of the cache, by key; each is read and verified when `verify` is not 0.  The list is
 * the context's, until the next of these calls. */
WEFT_API WEFT_MUST weft_status weft_cache_list(weft_ctx *ctx, int verify, const weft_entry **out,
                                               int *n);
/* Removes all entries; *n (which may be NULL) is how many there were. */
WEFT_API WEFT_MUST weft_status weft_cache_clear(weft_ctx *ctx, int *n);

/* The array that the last run gave: of an output (bound or not), of what came with a matrix, or,
 * with ndim 0, of a size.  It is in C order, and the library's until the next run or
 * weft_args_free; after weft_kernel_run, the caller's own where that was used. */
WEFT_API WEFT_MUST weft_status weft_args_get(weft_args *args, const char *name, weft_tensor *out);
/* The same written to a file, .npy or (two coordinates) .mtx; all of it, or nothing. */
WEFT_API WEFT_MUST weft_status weft_args_write(weft_args *args, const char *name, const char *path);
/* The same as text for people: name, type, shape and values, the middle of long ones left out.
 * The text is the arguments', until their next call. */
WEFT_API WEFT_MUST weft_status weft_args_print(weft_args *args, const char *name, const char **out);

/* The shape (ndim extents) that the sizes and structure arrays bound so far give an array; other
 * buffers need not be bound yet.  WEFT_E_BIND: a size is not known. */
WEFT_API WEFT_MUST weft_status weft_args_shape(weft_args *args, const char *name, int64_t *out);

/* What this machine can do: measured when it is first asked for, by one thread [0] and by one for
 * each CPU [1], which takes some seconds, and kept in the cache directory; `again` 1 measures anew.
 * Without a compiler it is a guess: measured is 0 and weft_warning says why.  The text, which has
 * all that was measured, is the context's, until the next of these calls. */
typedef struct weft_machine {
    const char *text;
    int threads, measured;
    int64_t cache[3];              /* bytes: L1 and L2 of a core, L3 */
    double fma_f32[2], fma_f64[2]; /* GFLOP/s */
    double triad[4][2];            /* GB/s of a = b + s * c, in L1, L2, L3 and memory */
} weft_machine;
WEFT_API WEFT_MUST weft_status weft_machine_get(weft_ctx *ctx, int again, weft_machine *out);

/* GB/s of reading random rows of this many bytes from a table of this many bytes; `threads` 0: one
 * for each CPU. */
WEFT_API WEFT_MUST weft_status weft_machine_gather(weft_ctx *ctx, double row, double table,
                                                   int threads, double *out);

/* What a run with these arguments asks of the machine, and the seconds that each resource alone
 * takes.  The limit is the largest of compute, stream and gather; where few rows are gathered more
 * often than others a run may be faster.  WEFT_E_LIMIT: not known for this program. */
typedef struct weft_cost {
    double flops;
    double read, written;   /* bytes: each array once */
    double gathered;        /* bytes of rows at places that only the data tell */
    double loads, stores;   /* bytes, to and from registers */
    double compute_s, ports_s, stream_s, gather_s;
    double limit_s, predicted_s;
} weft_cost;
WEFT_API WEFT_MUST weft_status weft_args_cost(weft_args *args, int threads, weft_cost *out);
/* The time that the model predicts for a schedule of the program's loops (weft_kernel_schedule;
 * NULL: the default), to compare schedules. */
WEFT_API WEFT_MUST weft_status weft_args_predict(weft_args *args, const char *schedule, int threads,
                                                 double *seconds);

/* A graph as CSR: from a file (.mtx; .npz with start and col, indptr and indices, or n and row and
 * col, or head and tail) or made by a generator, the same on every machine:
 *   uniform:n=1000:nnz=8000:seed=1           entries anywhere
 *   powerlaw:n=1000:nnz=8000:a=2.1:max=300   degrees d of rows and columns with frequency d^-a, at
 *                                            most max; no row empty where nnz allows it
 *   rmat:n=1000:nnz=8000:a=0.57:b=0.19:c=0.19    Kronecker quarters; at most nnz
 *   banded:n=1000:w=3                        w entries on each side of the diagonal
 * Columns ascend in each row, each at most once.  The arrays are of `type`, WEFT_I32 or WEFT_I64,
 * and the context's, until the next of these calls. */
typedef struct weft_graph {
    int64_t m, n, nnz;
    weft_type type;
    const void *start, *col; /* m + 1 and nnz */
} weft_graph;
WEFT_API WEFT_MUST weft_status weft_graph_make(weft_ctx *ctx, const char *source, weft_type type,
                                               weft_graph *out);
/* The last graph of the context written to a file, .mtx (a pattern) or .npz (n, start, col). */
WEFT_API WEFT_MUST weft_status weft_graph_write(weft_ctx *ctx, const char *path);

#ifdef __cplusplus
}
#endif
#endif
