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
#define WEFT_MUST __attribute__((warn_unused_result)) /* the caller must use the status */
#else
#define WEFT_API
#define WEFT_MUST
#endif

/* The version of the library, "0.1.0": compare with the macros above. */
WEFT_API const char *weft_version(void);

/* Every function that can fail returns a status.  After a status other than WEFT_OK, the library's
 * objects and the caller's arrays are unchanged, and weft_message describes the error. */
typedef enum weft_status {
    WEFT_OK,
    WEFT_E_ARG,   /* an invalid argument: NULL, an unknown name, a wrong type */
    WEFT_E_PARSE, /* text or a file with a syntax error */
    WEFT_E_CHECK, /* a program that parses but is not valid */
    WEFT_E_BIND,  /* sizes, shapes or structure that do not fit the program */
    WEFT_E_RUN,   /* a fault in the data: index out of range, integer overflow */
    WEFT_E_IO,    /* the system refused a file */
    WEFT_E_LIMIT, /* larger than a stated limit */
    WEFT_E_NOMEM  /* out of memory */
} weft_status;

/* A context owns the memory and the last message of all objects created in it.  One thread at a
 * time may use it; different contexts are independent.  To run kernels from several threads, give
 * each thread a context and compile in it: all but the first find the kernel in the cache. */
typedef struct weft_ctx weft_ctx;
WEFT_API weft_ctx *weft_ctx_new(void); /* NULL: out of memory */
/* Frees the context and all objects of it that are not freed yet. */
WEFT_API void weft_ctx_free(weft_ctx *ctx);

/* The error of the last call with this context or an object of it, and the remedy; "" after a
 * success.  If the error has a place, "file:line:col: error: " precedes the message, and the line
 * with a caret follows it.  The context owns the text, which is valid until the next call. */
WEFT_API const char *weft_message(const weft_ctx *ctx);

/* A warning of a call that succeeded: that a kernel is interpreted, or that the cache cannot be
 * used, and why.  "" if there is none.  Valid as long as the message. */
WEFT_API const char *weft_warning(const weft_ctx *ctx);

/* Sets the number of threads that run kernels, the calling thread included: 1 to 1024; 0: the
 * value of WEFT_NUM_THREADS, else one for each CPU.  Results have the same bits for any number.
 * Threads start when there is work for them, and end with the context. */
WEFT_API WEFT_MUST weft_status weft_ctx_threads(weft_ctx *ctx, int threads);

/* Uses the caller's threads instead: fn runs task(arg, i) for each i in 0..n, in any order or
 * concurrently, and returns when all have ended; n is at most `threads`.  NULL: the pool again. */
typedef void weft_task(void *arg, int64_t i);
typedef void weft_executor(void *user, int64_t n, weft_task *task, void *arg);
WEFT_API WEFT_MUST weft_status weft_ctx_executor(weft_ctx *ctx, weft_executor *fn, void *user,
                                                 int threads);

/* What kernels are compiled for from now on, of weft_list("targets", ...): "opencl" runs them on a
 * GPU (weft_device.h has more).  NULL, the default, or "c": this machine's CPU. */
WEFT_API WEFT_MUST weft_status weft_ctx_target(weft_ctx *ctx, const char *target);

/* Ends the C compiler that a call with this context waits for.  Any thread may call this, and no
 * other function, during such a call.  On a signal, repeat until 0: no files are left then. */
WEFT_API int weft_ctx_interrupt(weft_ctx *ctx);

/* Calls fn with one line of CSV for each compile and run of a kernel: what was chosen, why and the
 * time (docs/running.md).  fn must not use the context.  NULL, the default: no lines. */
typedef void weft_verbose(void *user, const char *line);
WEFT_API WEFT_MUST weft_status weft_ctx_verbose(weft_ctx *ctx, weft_verbose *fn, void *user);

/* The tables of the library: `what` is "types", "functions", "axes", "keywords", "passes", "steps"
 * (of schedules), "targets", "ops", "options" (of ops), "formats" or "policy"; NULL lists these
 * names.  Returns row i and its description in *note (or NULL); NULL after the last row. */
WEFT_API const char *weft_list(const char *what, int i, const char **note);
/* The value of row i of "policy" for a target, such as "c:avx2"; "c" is for this machine. */
WEFT_API WEFT_MUST weft_status weft_policy(weft_ctx *ctx, const char *target, int i, int *value);
typedef struct weft_prog weft_prog;
/* Reads a program from n bytes of text; `file` is its name in messages and may be NULL.  On
 * WEFT_OK the caller owns *out and frees it with weft_prog_free; otherwise *out is NULL. */
WEFT_API WEFT_MUST weft_status weft_prog_parse(weft_ctx *ctx, const char *file, const char *text,
                                               size_t n, weft_prog **out);
/* The same from a file of up to 64 MB; "-" is the standard input. */
WEFT_API WEFT_MUST weft_status weft_prog_read(weft_ctx *ctx, const char *path, weft_prog **out);

/* The program of an operator of weft_list("ops", ...): `spec` is its name and any of its options,
 * as in "spmm" (f32, CSR) or "spmm:f64:csc:heads".  The result is an ordinary program;
 * docs/operators.md lists its formula and buffers.  The caller owns *out, as above. */
WEFT_API WEFT_MUST weft_status weft_prog_op(weft_ctx *ctx, const char *spec, weft_prog **out);

/* The program of a tensor product of irreps of O(3), of a linear layer or of spherical harmonics:
 * `spec` is a form and its settings, as in "tp; in1=8x0e+8x1o; in2=0e+1o; out=0e+1o; mode=uvu".
 * docs/tensor-products.md lists both.  The caller owns *out, as above. */
WEFT_API WEFT_MUST weft_status weft_prog_o3(weft_ctx *ctx, const char *spec, weft_prog **out);
/* Facts about irreps as lines of text: "irreps; of=2x1o+0e; do=sort", "wigner; l=1 1 2" or
 * "D; of=1o; angles=0.1 0.2 0.3"; or, for a spec of weft_prog_o3, the irreps of its operands, the
 * number of its weights, and its paths.  *out stays until the next call of this function. */
WEFT_API WEFT_MUST weft_status weft_o3_tell(weft_ctx *ctx, const char *question, const char **out);

/* A program built piece by piece: `head` is its name and sizes, "spmm(m, n, f)". */
WEFT_API WEFT_MUST weft_status weft_prog_new(weft_ctx *ctx, const char *head, weft_prog **out);
/* Adds declarations or statements, one per line: all of them, or none if one has an error. */
WEFT_API WEFT_MUST weft_status weft_prog_add(weft_prog *prog, const char *text);

/* A constant relation, as `axis Q(P) = rows m1 m2 -> c { ... }` declares it: Clebsch-Gordan
 * triples, paths of a tensor product, offsets of a stencil. */
typedef struct weft_rows {
    const char *axis;         /* its name */
    const char *parent;       /* NULL for an axis without parent */
    const int64_t *count;     /* with a parent: entries below each of its positions */
    int64_t ncount;           /* positions of the parent */
    const char *const *coord; /* ncoord names */
    int ncoord;               /* 1 to 16 */
    int64_t n;                /* total number of entries */
    const int64_t *table;     /* n * ncoord coordinates, entry by entry */
    const char *value;        /* name of the constant buffer with the values; or NULL */
    const double *values;     /* n of them, when it has a name */
} weft_rows;

/* Adds the relation.  The arrays are read during the call only. */
WEFT_API WEFT_MUST weft_status weft_prog_rows(weft_prog *prog, const weft_rows *rows);

/* Checks that the program is valid.  weft_args_new does so too. */
WEFT_API WEFT_MUST weft_status weft_prog_check(weft_prog *prog);
/* The program as text, which reads back to the same program.  The program owns the text,
 * which is valid until its next call. */
WEFT_API WEFT_MUST weft_status weft_prog_print(weft_prog *prog, const char **out);

/* Sets the schedule: steps of weft_list("steps", ...), such as "tile 8; split c.k 16".  The rest
 * keeps its default.  NULL: the schedule in the program's text, else the default.  It applies to
 * weft_prog_print_after, weft_prog_emit, later kernels.  Lowering refuses what dependences do not
 * allow (WEFT_E_ARG).  Results keep their bits unless a step reorders a sum: docs/schedule.md. */
WEFT_API WEFT_MUST weft_status weft_prog_schedule(weft_prog *prog, const char *text);

/* Explains the schedule: a line for each step, applied or refused and why, then the loops by name;
 * for a target: its default schedule, with reasons or plain.  The program owns the text. */
WEFT_API WEFT_MUST weft_status weft_prog_explain(weft_prog *prog, const char **out);
WEFT_API WEFT_MUST weft_status weft_prog_explain_target(weft_prog *prog, const char *target,
                                                        int plain, const char **out);

/* Prints the program after a pass of weft_list("passes", ...): a program of a later stage, which
 * parses, checks and runs like any other (docs/ir.md).  Or after a step of the schedule: the last
 * one of this name, or the first 3 ("3").  WEFT_E_LIMIT: only the interpreter runs this program. */
WEFT_API WEFT_MUST weft_status weft_prog_print_after(weft_prog *prog, const char *pass,
                                                     const char **out);

/* Options of a derivative: lists of names of buffers; an empty list means the default. */
typedef struct weft_grad {
    const char *const *wrt;  /* inputs to differentiate by; default: every floating-point one */
    const char *const *of;   /* outputs to differentiate; default: every floating-point one */
    const char *const *save; /* results of the program that are inputs of its derivative; it */
    int nwrt, nof, nsave;    /* recomputes the results that it needs and that are not saved */
    int forward;             /* 0: gradients; 1: derivatives along a direction */
} weft_grad;

/* Derives the program of a derivative.  For gradients, its new inputs are the cotangents d_Z of the
 * outputs, and its outputs are the gradients d_X; forward, it takes tangents t_X and gives t_Z.
 * docs/derivatives.md has the rules.  `opt` may be NULL.  On WEFT_OK the caller owns
 * *out, until weft_prog_free; otherwise *out is NULL. */
WEFT_API WEFT_MUST weft_status weft_prog_grad(weft_prog *prog, const weft_grad *opt,
                                              weft_prog **out);
/* For a batch: `names` of inputs, and all that depends on them, get a first dimension `copies`. */
WEFT_API WEFT_MUST weft_status weft_prog_batch(weft_prog *prog, const char *const *names, int n,
                                               weft_prog **out);

/* Rewrites the statements over an axis for a format of weft_list("formats", ...), given as
 * "bsr(16, 16)", or as the text of rules with such a line after them (docs/formats.md).  The arrays
 * of the new axes are arguments.  To let the library convert each structure, put the line
 * `format E bsr(16, 16)` into a schedule instead.  On WEFT_OK the
 * caller owns *out, until weft_prog_free; otherwise *out is NULL. */
WEFT_API WEFT_MUST weft_status weft_prog_format(weft_prog *prog, const char *axis,
                                                const char *format, weft_prog **out);

/* The storage that a format takes for the matrix in an .mtx file. */
typedef struct weft_stored {
    int parts;
    int64_t entries, positions; /* of the matrix; of the format, padding included */
    int64_t bytes;              /* of structure; values add `positions` elements */
    double ms;                  /* time of the conversion */
} weft_stored;
WEFT_API WEFT_MUST weft_status weft_format_measure(weft_ctx *ctx, const char *path,
                                                   const char *format, weft_stored *out);

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

/* The role of an argument. */
typedef enum weft_role {
    WEFT_SIZE,   /* an integer; optional if a bound shape determines it */
    WEFT_INPUT,  /* read only */
    WEFT_OUTPUT, /* written; optional: the library allocates it */
    WEFT_INOUT   /* read and written */
} weft_role;
typedef struct weft_arg {
    const char *name; /* "n", "A", or of a structure array "J.start", "J.coord", "E.j" */
    weft_role role;
    weft_type type;
    int ndim;
    int structure; /* 1: positions or coordinates; an input of these may be i32 or i64 */
} weft_arg;

/* Argument i of the program: sizes first, then arrays in order of declaration.  WEFT_E_ARG past
 * the last one.  The program owns the name, until the program changes. */
WEFT_API WEFT_MUST weft_status weft_prog_arg(const weft_prog *prog, int i, weft_arg *out);
WEFT_API WEFT_MUST weft_status weft_prog_nargs(const weft_prog *prog, int *out);
/* The length of dimension `dim` of an array, as text: an expression of sizes, integers, + - * / %,
 * and size(E), the number of entries of an axis: "n", "m + 1", "size(E)".  "": there is no formula;
 * call weft_args_shape.  The text is the program's, until its next call. */
WEFT_API WEFT_MUST weft_status weft_prog_extent(weft_prog *prog, const char *name, int dim,
                                                const char **out);
/* The bound of the coordinates in a structure array, likewise: "n" of E.j in `E(I) = seg : j < n`;
 * "": there is none.  WEFT_E_ARG: the array holds no coordinates. */
WEFT_API WEFT_MUST weft_status weft_prog_bound(weft_prog *prog, const char *name, const char **out);

/* The structure arrays of a matrix whose values are the buffer `name`, as arguments of the program;
 * NULL: the format has none.  CSR and CSC: start, col; COO: row, col; DCSR: all; ELL: col; dense:
 * none.  The names are the program's, until it changes.  WEFT_E_BIND: it is not a matrix. */
typedef struct weft_matrix {
    const char *start, *row, *col;
} weft_matrix;
WEFT_API WEFT_MUST weft_status weft_prog_matrix(const weft_prog *prog, const char *name,
                                                weft_matrix *out);

/* Creates the arguments for runs of the program as it is now, after checking it.  On WEFT_OK the
 * caller owns *out and frees it with weft_args_free; otherwise *out is NULL. */
typedef struct weft_args weft_args;
WEFT_API WEFT_MUST weft_status weft_args_new(weft_prog *prog, weft_args **out);
WEFT_API void weft_args_free(weft_args *args); /* NULL is allowed */

/* Sets a size.  A size that is not set is solved from the shapes that are bound. */
WEFT_API WEFT_MUST weft_status weft_args_size(weft_args *args, const char *name, int64_t value);

/* Binds an array to a buffer or to a structure array; NULL removes the binding.  The tensor is
 * copied, its elements are not: they must stay valid until the last run.  An output must not
 * overlap another array or itself. */
WEFT_API WEFT_MUST weft_status weft_args_bind(weft_args *args, const char *name,
                                              const weft_tensor *tensor);

/* Holds an input buffer (1), or releases it (0).  By holding it the caller promises that its
 * elements do not change until it binds the input again or calls weft_args_changed.  A kernel then
 * computes values that depend on held inputs alone, such as values in the order of a format, in the
 * first run only.  Results have the same bits.  After a change without a call of weft_args_changed,
 * results may mix old and new elements. */
WEFT_API WEFT_MUST weft_status weft_args_hold(weft_args *args, const char *name, int held);
/* The elements of a held input have changed; WEFT_E_ARG: it is not held. */
WEFT_API WEFT_MUST weft_status weft_args_changed(weft_args *args, const char *name);

/* Binds the content of a file, of up to 4 GB, and keeps it:
 *   x.npy           an array
 *   x.npz:member    one of several; without ":member" the one with the argument's name
 *   a.mtx           a matrix; for a buffer whose axes have two coordinates (row, column), in the
 *                   order of the axes: dense, CSR, DCSR, COO or ELL.  Structure arrays and sizes
 *                   come with it.  "a.mtx:T" takes the transpose (for CSC).
 * Numbers are converted to the type of the buffer; a fraction for an integer is an error. */
WEFT_API WEFT_MUST weft_status weft_args_read(weft_args *args, const char *name, const char *path);

/* Interprets the program.  Bound outputs are written after everything has been computed. */
WEFT_API WEFT_MUST weft_status weft_run(weft_args *args);

/* Compiles the program to machine code by the system's C compiler, or loads it from a cache on
 * disk; docs/running.md lists the environment variables (WEFT_CC, WEFT_CACHE_DIR, ...).  On WEFT_OK
 * the caller owns *out and frees it with weft_kernel_free; otherwise *out is NULL.  Without a C
 * compiler, or if it fails, or if the pipeline does not support the program (some searches), the
 * kernel interprets it: weft_warning and weft_kernel_info say why. */
typedef struct weft_kernel weft_kernel;
WEFT_API WEFT_MUST weft_status weft_kernel_compile(weft_prog *prog, weft_kernel **out);
WEFT_API void weft_kernel_free(weft_kernel *kernel); /* NULL is allowed */

/* Runs the kernel on arguments of the same program.
 *
 * - The kernel works in place on arrays that are aligned, in C order and without gaps.  So after
 *   WEFT_E_RUN, the contents of outputs and inouts are undefined, those of weft_args_get too.
 * - Structure arrays (J.start, E.j) are read, checked and copied in the first run after one is
 *   bound; later runs use the copies.  After changing their elements, bind them again.
 * - The first run with i32 structure compiles a variant of the kernel for it.
 * - A run that binds only arrays of the same shapes as before allocates nothing.
 * - Structure that the program builds, and buffers over it, are computed in the library's memory in
 *   every run, and copied to the bound arrays.
 * - A second write of an element by `=` is an error, unless the checker has ruled it out.
 * - A kernel that interprets refuses problems of more than about 1e8 scalar operations
 *   (WEFT_E_LIMIT); weft_run takes them. */
WEFT_API WEFT_MUST weft_status weft_kernel_run(weft_kernel *kernel, weft_args *args);

/* Does the work of the first run that comes before computing: checks and copies structure, compiles
 * for its types, sorts transposes.  Later runs find it done.  An interpreter needs nothing. */
WEFT_API WEFT_MUST weft_status weft_kernel_plan(weft_kernel *kernel, weft_args *args);

/* The plan that the arguments hold for the kernel that used them last.  WEFT_E_ARG: none. */
typedef struct weft_plan {
    int64_t made;            /* plans so far: a new one for new shapes, structure or kernel */
    double ms, transpose_ms; /* time of the last plan without compiling; of it, transposing */
    int transposes;
    int64_t bytes; /* of memory */
    double format_ms; /* of ms: converting to formats of the schedule */
    int formats;
} weft_plan;
WEFT_API WEFT_MUST weft_status weft_args_plan(weft_args *args, weft_plan *out);

/* Like weft_prog_schedule, for one kernel, from its next run on; the program keeps its schedule. */
WEFT_API WEFT_MUST weft_status weft_kernel_schedule(weft_kernel *kernel, const char *text);

/* Searches for the fastest schedule of a kernel with these arguments.  The space of schedules comes
 * from the program (weft_kernel_space).  The cost model chooses candidates to compile; each is run,
 * its results are compared with those of the default schedule, and it is timed in turns with other
 * candidates.  The best schedule is recorded in the file tuned.txt of the cache directory, with its
 * program, structure and machine.  From then on, kernels of this program without a schedule use the
 * record where these three agree (docs/tuning.md).  The search uses bound arrays as a run does,
 * and leaves them as after one run.  `opt` and `out` may be NULL; in `opt` zero means the default.
 * WEFT_E_LIMIT: the kernel interprets. */
typedef struct weft_tuning {     /* the progress of a search */
    const char *what;            /* "compile", "time", or "wrong": a candidate was dropped */
    const char *schedule, *why;  /* the current candidate; why it was dropped, else "" */
    int done, of;                /* compiled, of all in this round; or left in it, of its start */
    double elapsed_s, budget_s;  /* seconds */
    const char *best;            /* so far; NULL: none has been timed */
    double best_s, default_s;    /* of a run */
} weft_tuning;
/* Returns 0, or another value to end the search with the best schedule so far.  It must not call
 * functions with the context. */
typedef int weft_tune_fn(void *user, const weft_tuning *now);
typedef struct weft_tune {
    double seconds;     /* for the search; 30 */
    int top;            /* candidates at the start; 24 */
    weft_tune_fn *tell; /* called before each compile and after each timing; or NULL */
    void *user;
} weft_tune;
typedef struct weft_tuned {
    const char *schedule; /* the kernel's; "" is the default schedule */
    double seconds, default_s, pick_s; /* of a run: with it, the default, the model's choice */
    int points;                 /* schedules in the space, */
    int compiled, timed, wrong; /* and how many of them were each of these */
    int stopped;                /* 1: by `tell` */
    /* If the schedule is not the default: the number of turns of the final match against it.
     * seconds and default_s are the medians of the match; spread is the interquartile range of its
     * times over their median.  Else 0. */
    int turns;
    double spread;
} weft_tuned;
WEFT_API WEFT_MUST weft_status weft_kernel_tune(weft_kernel *kernel, weft_args *args,
                                                const weft_tune *opt, weft_tuned *out);

/* The schedules that weft_kernel_tune chooses from, in order of predicted time; 0 seconds: the
 * model has no prediction, as always if `args` is NULL.  The context owns the list, until the next
 * call of this function or of weft_tuned_merge. */
typedef struct weft_point {
    const char *schedule;
    double predicted_s;
} weft_point;
WEFT_API WEFT_MUST weft_status weft_kernel_space(weft_kernel *kernel, weft_args *args,
                                                 const weft_point **out, int *n);

/* Merges the records of several files into the text of one.  Of records for the same program,
 * structure and machine, the last wins.  Damaged lines are left out, and weft_warning says so.  The
 * context owns the text, as above. */
WEFT_API WEFT_MUST weft_status weft_tuned_merge(weft_ctx *ctx, const char *const *paths, int n,
                                                const char **out);

/* How a kernel was obtained.  The kernel owns the texts. */
typedef struct weft_info {
    const char *target;   /* "c", "opencl" or "interp" */
    const char *isa;      /* of "c": the vector registers, "avx2"; of "opencl": the device */
    const char *how;      /* "compiled", or found in "memory" or on "disk" */
    const char *key;      /* its name in the cache */
    const char *why;      /* of "interp": the reason */
    int phases, parallel; /* phases; those of them that run on several threads */
} weft_info;
WEFT_API WEFT_MUST weft_status weft_kernel_info(weft_kernel *kernel, weft_info *out);

/* The C text of the kernel.  It is not kept with the code: the first call lowers the program again.
 * The text stays valid until the kernel is freed, or until a call after a run that used code for
 * other types, sizes or another schedule.  WEFT_E_LIMIT: there is no C text. */
WEFT_API WEFT_MUST weft_status weft_kernel_source(weft_kernel *kernel, const char **out);

/* Prints the program as C that needs no library:  WEFT_SOURCE is a file to compile, WEFT_HEADER
 * declares its functions.  weft_run_NAME(sizes, arrays as weft_prog_arg lists them) runs the
 * program on the calling thread and returns 0 or a fault.  `target` is "c", for the vector
 * registers of this machine, or a row of weft_list("targets", ...) such as "c:avx2".  The program
 * owns the text, until its next call.  WEFT_E_LIMIT: it builds an axis, or is only interpreted. */
typedef enum weft_part { WEFT_SOURCE, WEFT_HEADER } weft_part;
WEFT_API WEFT_MUST weft_status weft_prog_emit(weft_prog *prog, const char *target, weft_part part,
                                              const char **out);

/* A tensor product of irreps with its derivatives, on arrays in C order without gaps, with a row
 * for each of n items.  `spec`, as for weft_prog_o3, determines types and layouts.  Shared weights
 * w are one row for all items.  Pass NULL for an operand that the product does not have.  Each
 * function compiles its kernel at its first call, and another one for a new choice of gradients.
 * The caller frees *out with weft_tp_free.  WEFT_E_ARG: other operands, such as a bias. */
typedef struct weft_tp weft_tp;
WEFT_API WEFT_MUST weft_status weft_tp_new(weft_ctx *ctx, const char *spec, weft_tp **out);
WEFT_API void weft_tp_free(weft_tp *tp); /* NULL is allowed */
typedef struct weft_tp_info {
    int64_t x, y, w, z; /* elements of a row; 0: the operand does not exist or is empty */
    int shared;         /* 1: the weights are */
    weft_type type, weight_type;
} weft_tp_info;
WEFT_API WEFT_MUST weft_status weft_tp_get(weft_tp *tp, weft_tp_info *out);

/* Computes z from x, y and w. */
WEFT_API WEFT_MUST weft_status weft_tp_forward(weft_tp *tp, int64_t n, const void *x,
                                               const void *y, const void *w, void *z);
/* Given the gradient dz, computes the gradients by x, y and w; pass NULL for those not wanted. */
WEFT_API WEFT_MUST weft_status weft_tp_backward(weft_tp *tp, int64_t n, const void *x,
                                                const void *y, const void *w, const void *dz,
                                                void *dx, void *dy, void *dw);
/* Given ddx, ddy and ddw, the gradients by the results of weft_tp_backward (NULL: 0), computes the
 * gradients by its inputs: gx, gy, gw and gdz; pass NULL for those not wanted. */
WEFT_API WEFT_MUST weft_status weft_tp_double_backward(weft_tp *tp, int64_t n, const void *x,
                                                       const void *y, const void *w,
                                                       const void *dz, const void *ddx,
                                                       const void *ddy, const void *ddw, void *gx,
                                                       void *gy, void *gw, void *gdz);

/* The edges of a graph, for convolutions over it, of any number of layers: edge k goes from row
 * sender[k] of the features x to row receiver[k] of the result z.  Edges may be in any order, more
 * than once, and from a row to itself.  The rows of x need not be those of z: rows that only send,
 * such as copies of atoms of other processes, come after the `nodes` that also receive, or the two
 * are of different kinds altogether.  The arrays are read in this call only.  The caller owns *out
 * and frees it with weft_edges_free.  WEFT_E_BIND: an edge names a row that does not exist. */
typedef struct weft_edges weft_edges;
typedef struct weft_edge_list {
    int64_t nodes, senders, n;     /* rows of z, rows of x, edges */
    weft_type type;                /* of the two arrays: WEFT_I32 or WEFT_I64 */
    const void *receiver, *sender; /* n each */
} weft_edge_list;
WEFT_API WEFT_MUST weft_status weft_edges_new(weft_ctx *ctx, const weft_edge_list *list,
                                              weft_edges **out);
WEFT_API void weft_edges_free(weft_edges *edges); /* NULL is allowed */

/* Structures of graph operators (docs/graphs.md), from such a list.  Entries by receiver, in the
 * order of the list: start has nodes + 1 elements; sender and at, the number of an edge, have n.
 * With loops != 0 each node that is below both nodes and senders has an entry from itself, the last
 * of its row, numbered n + node; 1: edges of the list from a node to itself are left out; 2: the
 * last of those of a node takes the place of the new one.  What is left out is in a row more, after
 * all others: start has nodes + 2 elements, the others n + the smaller of nodes and senders. */
WEFT_API WEFT_MUST weft_status weft_rows_make(weft_ctx *ctx, const weft_edge_list *list, int loops,
                                              int64_t *start, int64_t *sender, int64_t *at);

/* The structure of rgms: pairs (relation, receiver) in tiles of 16 pairs of one relation, by
 * relation, then receiver.  `type` has the relation of each edge, below `relations`.  There are at
 * least `least` tiles.  The arrays are the context's, until the next of these calls. */
typedef struct weft_tiles {
    int64_t tiles, pairs;               /* pairs: those with edges */
    const int64_t *relation;            /* tiles: G.r */
    const int64_t *start, *sender, *at; /* 16 * tiles + 1, n, n: E.start, E.j, E.of */
    const int64_t *first, *place;       /* nodes + 1, pairs: Q.start, Q.p */
} weft_tiles;
WEFT_API WEFT_MUST weft_status weft_tiles_make(weft_ctx *ctx, const weft_edge_list *list,
                                               const void *type, int64_t relations, int64_t least,
                                               weft_tiles *out);

/* A convolution: the tensor product of the features x of each edge's sender with y of the edge, by
 * weights w, summed over the edges of each receiver, and its derivatives.  `spec` is as for
 * weft_prog_o3: "conv; in1=8x0e+8x1o; in2=0e+1o; out=0e+1o; mode=uvu".  Weights are a row for each
 * edge; with weights=shared one row for all; with hidden=64 they are w = h m, computed from
 * features h of each edge and a matrix m, and never stored whole.  If no product of the irreps
 * yields one of `out`, the status is WEFT_E_ARG; with empty=zeros, z is 0 and weft_conv_get reports
 * w = 0.  docs/convolution.md describes all settings.
 *
 * Arrays are plain, in C order without gaps: x has `senders` rows, z has `nodes`, y, w and h have a
 * row for each edge, in the order in which the caller listed these.  Sums are over the edges of a
 * receiver in the order of their senders, and results have the same bits for any number of threads
 * and any order of the list; edges with the same two ends are summed in the order of the list. */
typedef struct weft_conv weft_conv;
WEFT_API WEFT_MUST weft_status weft_conv_new(weft_ctx *ctx, const char *spec, weft_conv **out);
WEFT_API void weft_conv_free(weft_conv *conv); /* NULL is allowed */
typedef struct weft_conv_info {
    int64_t x, y, w, z; /* elements of a row; w: weights of an edge, or in all */
    int64_t hidden;     /* features of an edge from which its weights are computed; 0: none */
    int shared;         /* 1: the weights are */
    weft_type type, weight_type;
} weft_conv_info;
WEFT_API WEFT_MUST weft_status weft_conv_get(weft_conv *conv, weft_conv_info *out);

/* The operands, or one array for each of them: w is the weights or the hidden features h; m is the
 * matrix, hidden x weights, else NULL. */
typedef struct weft_conv_in {
    const void *x, *y, *w, *m;
} weft_conv_in;
typedef struct weft_conv_out {
    void *x, *y, *w, *m;
} weft_conv_out;

/* Strides of the arrays that the next call of a function below reads, where they have gaps or
 * repeat elements: in elements, one for each dimension (two; for shared weights one); NULL: without
 * gaps. They apply to that call only, and must stay valid until it returns. */
typedef struct weft_conv_strides {
    const int64_t *x, *y, *w, *m, *dz;
    const int64_t *along_x, *along_y, *along_w, *along_m;
} weft_conv_strides;
WEFT_API WEFT_MUST weft_status weft_conv_next_strides(weft_conv *conv,
                                                      const weft_conv_strides *strides);

/* Computes z from the operands. */
WEFT_API WEFT_MUST weft_status weft_conv_forward(weft_conv *conv, weft_edges *edges,
                                                 const weft_conv_in *at, void *z);
/* Given the gradient dz, computes the gradients by the operands; pass NULL for those not wanted. */
WEFT_API WEFT_MUST weft_status weft_conv_backward(weft_conv *conv, weft_edges *edges,
                                                  const weft_conv_in *at, const void *dz,
                                                  const weft_conv_out *d);
/* Given `along`, the gradients by the results of weft_conv_backward (NULL: 0), computes the
 * gradients by its inputs: g by the operands and gdz by dz; pass NULL for those not wanted. */
WEFT_API WEFT_MUST weft_status weft_conv_double_backward(weft_conv *conv, weft_edges *edges,
                                                         const weft_conv_in *at, const void *dz,
                                                         const weft_conv_in *along,
                                                         const weft_conv_out *g, void *gdz);

/* WEFT_OK: a C compiler exists, for kernels that are not in the cache.  Else WEFT_E_IO, and
 * weft_message names the cause and the remedy.  Nothing is compiled. */
WEFT_API WEFT_MUST weft_status weft_ctx_compiler(weft_ctx *ctx);

/* The directory of the kernel cache.  The context owns the text.  WEFT_E_IO: there is none. */
WEFT_API WEFT_MUST weft_status weft_cache_dir(weft_ctx *ctx, const char **out);
typedef struct weft_entry {
    const char *key;    /* the name of its file */
    int64_t bytes, age; /* age in seconds */
    const char *fault;  /* the damage found; NULL: none, or not verified */
} weft_entry;

/* The entries of the cache, by key; each is read and verified if `verify` is not 0.  The
 * context owns the list, until the next of these calls. */
WEFT_API WEFT_MUST weft_status weft_cache_list(weft_ctx *ctx, int verify, const weft_entry **out,
                                               int *n);
/* Removes all entries; *n (which may be NULL) becomes their number. */
WEFT_API WEFT_MUST weft_status weft_cache_clear(weft_ctx *ctx, int *n);

/* An array after the last run: an output (bound or not), structure that was read with a matrix, or,
 * with ndim 0, a size.  It is in C order.  The library owns it until the next run or
 * weft_args_free; if weft_kernel_run worked in place, it is the caller's array. */
WEFT_API WEFT_MUST weft_status weft_args_get(weft_args *args, const char *name, weft_tensor *out);
/* Writes the same array to a file, .npy or (two coordinates) .mtx: the whole file, or none. */
WEFT_API WEFT_MUST weft_status weft_args_write(weft_args *args, const char *name, const char *path);
/* Formats the same array for people: name, type, shape and values, the middle of long ones left
 * out. The arguments own the text, until their next call. */
WEFT_API WEFT_MUST weft_status weft_args_print(weft_args *args, const char *name, const char **out);

/* The shape (ndim extents) of an array, from the sizes and structure arrays bound so far; other
 * buffers need not be bound.  WEFT_E_BIND: a size is not known. */
WEFT_API WEFT_MUST weft_status weft_args_shape(weft_args *args, const char *name, int64_t *out);

/* The rates of this machine, for one thread [0] and for one thread on each CPU [1].  The first call
 * measures them, which takes some seconds, and keeps them in the cache directory; `again` 1
 * measures again.  Without a compiler they are a guess: measured is 0, and weft_warning says why.
 * The text lists all measurements; the context owns it, until the next of these calls. */
typedef struct weft_machine {
    const char *text;
    int threads, measured;
    int64_t cache[3];              /* bytes: L1 and L2 of a core, L3 */
    double fma_f32[2], fma_f64[2]; /* GFLOP/s */
    double triad[4][2];            /* GB/s of a = b + s * c, in L1, L2, L3 and memory */
} weft_machine;
WEFT_API WEFT_MUST weft_status weft_machine_get(weft_ctx *ctx, int again, weft_machine *out);

/* GB/s of reading random rows of `row` bytes from a table of `table` bytes; threads 0: all CPUs. */
WEFT_API WEFT_MUST weft_status weft_machine_gather(weft_ctx *ctx, double row, double table,
                                                   int threads, double *out);

/* The work of a run with these arguments, and the seconds that each resource alone takes for it.
 * The roofline limit_s is the largest of compute, stream and gather.  A run may be faster where a
 * few rows are gathered more often.  WEFT_E_LIMIT: the model does not cover this program. */
typedef struct weft_cost {
    double flops;
    double read, written;   /* bytes: each array once */
    double gathered;        /* bytes of rows at indices that are data */
    double loads, stores;   /* bytes, to and from registers */
    double compute_s, ports_s, stream_s, gather_s;
    double limit_s, predicted_s;
} weft_cost;
WEFT_API WEFT_MUST weft_status weft_args_cost(weft_args *args, int threads, weft_cost *out);
/* The time that the model predicts for a schedule (as of weft_kernel_schedule; NULL: the default),
 * for comparing schedules. */
WEFT_API WEFT_MUST weft_status weft_args_predict(weft_args *args, const char *schedule, int threads,
                                                 double *seconds);

/* A graph as CSR: from a file (.mtx; .npz with start and col, indptr and indices, or n and row and
 * col, or head and tail) or made by a generator, the same on every machine:
 *   uniform:n=1000:nnz=8000:seed=1           entries anywhere
 *   powerlaw:n=1000:nnz=8000:a=2.1:max=300   degrees d of rows and columns with frequency d^-a, at
 *                                            most max; no row empty where nnz allows it
 *   rmat:n=1000:nnz=8000:a=0.57:b=0.19:c=0.19    Kronecker quarters; at most nnz
 *   banded:n=1000:w=3                        w entries on each side of the diagonal
 * Columns ascend in each row, each at most once.  `type` is WEFT_I32 or WEFT_I64.  The context owns
 * the arrays, until the next of these calls. */
typedef struct weft_graph {
    int64_t m, n, nnz;
    weft_type type;
    const void *start, *col; /* m + 1 and nnz */
} weft_graph;
WEFT_API WEFT_MUST weft_status weft_graph_make(weft_ctx *ctx, const char *source, weft_type type,
                                               weft_graph *out);
/* Writes the last graph of the context to a file, .mtx (a pattern) or .npz (n, start, col). */
WEFT_API WEFT_MUST weft_status weft_graph_write(weft_ctx *ctx, const char *path);

/* A mask: the keys that each query of attention sees, as the blocks that the operator `attention`
 * takes: tiles of `bi` queries and blocks of `bj` keys.  `source` is a generator,
 *   full                               all keys
 *   band:w=256                         |i - j| <= w
 *   longformer:w=256:global=4          a band; the first 4 tokens see all and are seen by all
 *   butterfly:block=64                 blocks of tokens whose numbers differ in one bit at most
 *   bigbird:block=64:w=1:global=1:random=3:seed=0     blocks: beside, first, and by chance
 * or NULL: `start` and `col` are a matrix in CSR whose entries are pairs of tokens or, with `block`
 * above 1, of blocks of that many tokens.  Duplicates count once. */
typedef struct weft_mask_in {
    const char *source;
    const int64_t *start, *col;
    int64_t block;          /* 0: 1 */
    int64_t n, m;           /* queries, keys */
    int64_t copies;         /* heads of queries of all batches; 0: 1 */
    const int64_t *lq, *lk; /* of each copy: its queries and keys; NULL: all */
    int bi, bj;             /* 1 to 64 each; 0: 16 and 64 */
    int64_t w;              /* blocks of a piece; 0: as many as the widest tile sees */
    int causal;             /* 1: only keys j <= i of these */
    weft_type type;         /* of x: WEFT_F32 or WEFT_F64 */
} weft_mask_in;

/* Arguments of the operator:  L.j, L.pat, X and, with `split`, P.row and E.start; else every tile
 * has one piece.  The context owns the arrays, until the next of these calls.  WEFT_E_BIND: an
 * entry outside the matrix, or lengths that do not match. */
typedef struct weft_mask {
    int64_t nnz;            /* pairs of tokens, of all copies */
    int64_t tiles, blocks;  /* of a copy: n / bi and m / bj, rounded up */
    int64_t pieces, w, most, patterns; /* most: blocks that the widest tile sees */
    int split;              /* 1: a tile sees more than w blocks */
    const int64_t *start, *row; /* copies * tiles + 1, pieces */
    const int64_t *j, *pat; /* pieces x w; j is -1 where there is no block */
    const void *x;          /* patterns x bi x bj */
} weft_mask;
WEFT_API WEFT_MUST weft_status weft_mask_make(weft_ctx *ctx, const weft_mask_in *in,
                                               weft_mask *out);

/* Writes n random numbers below 2^31 for attention:dropout, the same on every machine. */
WEFT_API WEFT_MUST weft_status weft_mask_random(weft_ctx *ctx, uint64_t seed, int64_t n,
                                                int64_t *out);

/* The structure of paged_attention: start (batch + 1), where and tokens (room for batch * width,
 * and one more) become P.start, P.where and T.start.  `table` has `width` pages a sequence. */
WEFT_API WEFT_MUST weft_status weft_pages_make(weft_ctx *ctx, const int64_t *table,
                                               const int64_t *lengths, int64_t batch, int64_t width,
                                               int64_t pages, int64_t page, int64_t *start,
                                               int64_t *where, int64_t *tokens);

/* Atoms: from a file, .xyz (plain or extended; the first structure), or made by a generator, the
 * same on every machine:
 *   crystal:silicon:repeat=4:rattle=0.05     cubes of silicon, copper, iron, mgo, nacl, sio2 or
 *                                            srtio3; n1= n2= n3= repeats in one direction, a= the
 *                                            side of a cube, rattle= the deviation of each
 *                                            coordinate from its place
 *   water:molecules=64                       at 1 g/cm^3, turned at random
 * and :seed=S.  Lengths are in Angstrom.  The context owns the arrays until the next such call. */
typedef struct weft_atoms {
    int64_t n;
    const double *pos;       /* n x 3 */
    double cell[9];          /* three vectors; one without a period is ignored */
    int pbc[3];              /* periodic along each: 1 or 0 */
    const int32_t *kind;     /* by atom: which name */
    int kinds;
    const char *const *name; /* "Si" */
} weft_atoms;
WEFT_API WEFT_MUST weft_status weft_atoms_make(weft_ctx *ctx, const char *source, weft_atoms *out);
/* As extended .xyz; `kind` may be NULL. */
WEFT_API WEFT_MUST weft_status weft_atoms_write(weft_ctx *ctx, const weft_atoms *atoms,
                                                const char *path);

/* The neighbours of atoms: all pairs of an atom, the receiver, and an image of an atom, the sender,
 * that are nearer than the cutoff:
 *     D = (r_sender - r_receiver) + (S0 * cell0 + S1 * cell1 + S2 * cell2),  D . D < cutoff^2,
 * in double precision as written, where S is the shift, three integers, 0 along what is not
 * periodic.  An atom is no neighbour of itself at S = 0.  With each pair there is its reverse, with
 * -S and -D.  Any cell will do, skew or smaller than the cutoff, and positions need not be inside.
 * Pairs are in order of receiver, sender, S, the same for any number of threads. */
typedef struct weft_neighbours {
    int64_t n, nnz;                  /* atoms, pairs */
    weft_type type;                  /* of the next three: WEFT_I32 or WEFT_I64 */
    void *start, *receiver, *sender; /* n + 1: pairs by receiver, as CSR; nnz each */
    int32_t *shift;                  /* nnz x 3: S */
    double *vec, *dist;              /* nnz x 3: D; nnz: its length */
} weft_neighbours;
/* Finds all neighbours.  The context owns the arrays, until the next call that finds neighbours.
 * Of the atoms, n, pos, cell and pbc are used. */
WEFT_API WEFT_MUST weft_status weft_neighbours_make(weft_ctx *ctx, const weft_atoms *atoms,
                                                    double cutoff, weft_type type,
                                                    weft_neighbours *out);
/* The same into arrays of the caller: find returns the number of pairs; get writes n, nnz and the
 * arrays of `to` that are not NULL. */
WEFT_API WEFT_MUST weft_status weft_neighbours_find(weft_ctx *ctx, const weft_atoms *atoms,
                                                    double cutoff, int64_t *nnz);
WEFT_API WEFT_MUST weft_status weft_neighbours_get(weft_ctx *ctx, weft_neighbours *to);
/* Writes the last neighbours to an .npz: n, start, col (the senders), shift, vec, dist.  Read as a
 * graph, all images of an atom are one node. */
WEFT_API WEFT_MUST weft_status weft_neighbours_write(weft_ctx *ctx, const char *path);

/* Voxels of a sparse convolution: coord has n rows of a batch index and three coordinates, of
 * `type` WEFT_I32 or WEFT_I64, each place at most once.  `batch` is the number of samples and
 * `shape` that of places of the grid; 0: no bound, and without a shape coordinates may be negative.
 * Offsets k of the kernel are numbered with the last dimension fastest.  In each dimension
 *     input = output * stride + k * dilation - padding,
 * or with input and output exchanged when the convolution is transposed. */
typedef enum weft_conv3d {
    WEFT_SUBMANIFOLD, /* outputs are the inputs; stride is 1, padding dilation * (kernel / 2) */
    WEFT_STRIDED,     /* outputs are all voxels that an input reaches */
    WEFT_TRANSPOSED   /* the same, by the exchanged formula */
} weft_conv3d;
typedef struct weft_voxels {
    int64_t n;
    weft_type type;
    const void *coord; /* n x 4 */
    int64_t batch, shape[3];
    weft_conv3d kind;
    int64_t kernel[3];                          /* 1 to 64 each */
    int64_t stride[3], padding[3], dilation[3]; /* stride and dilation 0: 1 */
    int64_t extra[3]; /* transposed: added to the output grid (output_padding) */
    int64_t strip;    /* outputs of a strip; 0: 512 */
} weft_voxels;

/* The kernel map: which input goes to which output (operator conv3d; docs/conv3d.md).  Pairs are
 * by strips of outputs and, in a strip, by groups of one offset: group_start, offset, pair_start,
 * row and input are G.start, G.d, E.start, E.r and E.v of the operator.  Outputs that are not the
 * inputs are in order of batch index and coordinates, for any number of threads. */
typedef struct weft_kernel_map {
    int64_t in, out, offsets, strip, strips, groups, pairs;
    int64_t shape[3];           /* of the output grid; 0: no bound */
    const int64_t *coord;       /* out x 4 */
    const int32_t *group_start, *offset, *pair_start; /* strips + 1, groups, groups + 1 */
    const int32_t *row, *input; /* by pair: the output's place in its strip, and the input */
} weft_kernel_map;
/* The context owns the arrays, until the next of these two calls.  WEFT_E_ARG: voxels that repeat
 * or lie outside the grid; the message names the first. */
WEFT_API WEFT_MUST weft_status weft_kernel_map_make(weft_ctx *ctx, const weft_voxels *voxels,
                                                    weft_kernel_map *out);
/* Reverses the pairs, from outputs to inputs, for inverse convolutions; without shape and coord.
 * `map` must have arrays of the caller, not those of the last call. */
WEFT_API WEFT_MUST weft_status weft_kernel_map_turn(weft_ctx *ctx, const weft_kernel_map *map,
                                                    weft_kernel_map *out);

/* The places of a pruned weight's elements in a format of the operator sparse_linear: csr,
 * bsr(b, c), dbsr(b, c), sr_bcrs(b, g) or n_m(k, g).  `mask` has a byte for each element, 0: it is
 * pruned.  The context owns the arrays, until the next of these calls.  WEFT_E_ARG: the format is
 * unknown or does not fit the weight or its mask. */
typedef struct weft_places {
    int64_t n, starts, indices, stored; /* lengths of at, start, index and row */
    const int64_t *at;    /* row * columns + column of each stored element; -1: padding */
    const int64_t *start; /* E.start; of sr_bcrs G.start; of n_m none */
    const int64_t *index; /* E.j; of sr_bcrs C.j, -1: padding; of n_m L.o */
    const int64_t *row;   /* of dbsr D.i, else none */
} weft_places;
WEFT_API WEFT_MUST weft_status weft_places_make(weft_ctx *ctx, const char *format,
                                                const unsigned char *mask, int64_t rows,
                                                int64_t columns, weft_places *out);

#ifdef __cplusplus
}
#endif
#endif
