/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * What the files of api/ share.  A public function is a few checks around one static function that
 * may throw; api_enter sets the trap, api_leave turns what was thrown into a status and a message:
 *
 *     weft_ctx *ctx = api_ctx_of(prog, TAG_PROG);
 *
 *     API_ENTER(ctx);
 *     ... may throw ...
 *     return api_leave(ctx);
 *
 * What a call makes and keeps lives in a Box; a Box that is not kept dies when the call ends, so a
 * throw anywhere leaves neither leaks nor half-changed objects. */
#ifndef WEFT_API_INT_H
#define WEFT_API_INT_H

#include "api/pass_int.h"
#include "base/base.h"
#include "cost/cost.h"
#include "format/format.h"
#include "ir/loop.h"
#include "jit/jit.h"
#include "sched/sched.h"
#include "weft.h"

#include <string.h>

struct Dialect;
struct GeomGraph;
struct GeomNear;
struct JitReport;
struct JitRequest;
struct Kernel;
struct Machine;
struct Plan;
struct Pool;

typedef struct Box { /* an arena with owners */
    Arena arena;
    int refs;
} Box;

enum Tag {
    TAG_CTX = 0x5745, TAG_PROG, TAG_ARGS, TAG_KERNEL, TAG_TP, TAG_CONV, TAG_EDGES, TAG_FREED
};

/* The head of every object of the caller.  A freed one stays as an empty shell until LIMIT_SHELLS
 * others have been freed, so that a stale pointer is an error and not a crash. */
typedef struct Handle Handle;
struct Handle {
    unsigned tag;
    weft_ctx *ctx;
    Handle *next, *last; /* in the ring of live objects, or of shells */
};

enum { LIMIT_SHELLS = 64, LIMIT_LISTED = 20, LIMIT_MESSAGE = 2048, LIMIT_TEXT = 64 << 20 };
#define LIMIT_ENTRIES (INT64_C(1) << 40)   /* of a structure that a call makes */
#define LIMIT_RELATIONS (INT64_C(1) << 32)
#define LIMIT_COPIES (INT64_C(1) << 20)
#define LIMIT_ELEMENTS (INT64_C(1) << 45) /* of an array of a batch */

struct weft_ctx {
    Handle h;
    const Os *os;
    Err err;
    jmp_buf trap;
    Arena scratch;      /* freed when the call ends */
    Arena trees;        /* of the one program that is being lowered; likewise */
    Box *box;           /* being filled by this call */
    Handle live, shell; /* heads of rings */
    int nshell;
    const struct Target *target; /* that the caller has chosen; NULL: this machine's */
    struct Dev *dev;      /* made when first needed: with what was asked for, */
    char dev_name[128];   /* "": any */
    void *dev_queue;      /* of the caller; or NULL */
    struct DevList *devs; /* all that were opened */
    Box *devices;         /* of weft_devices */
    struct Jit *jit;   /* made when first needed */
    JitStop stop;      /* of it and of those of tuning */
    struct Pool *pool; /* likewise */
    int threads;       /* of the pool; 0: the default */
    int64_t part;      /* entries that are worth a part of a row; 0: the default */
    int64_t strided;   /* elements that make code for strides worth it; 0: the default */
    weft_verbose *verbose;
    void *verbose_user;
    unsigned kernels; /* made so far */
    uint64_t edges;   /* lists of edges made so far */
    Box *listed;      /* of weft_cache_list */
    Box *told;        /* of weft_o3_tell */
    Box *graph;       /* of weft_graph_make, which has */
    struct GeomGraph *graph_data;
    Box *tiles; /* of weft_tiles_make */
    Box *atoms; /* of weft_atoms_make */
    Box *mask;  /* of weft_mask_make */
    Box *places; /* of weft_places_make */
    Box *map;   /* of weft_kernel_map_make */
    Box *near;  /* of weft_neighbours_find, which has */
    struct GeomNear *near_data;
    int64_t near_atoms;
    const struct Machine *machine; /* once it was asked for, and its text */
    const char *machine_text;
    Box *machine_box;
    Machine guess; /* what is known without measuring */
    bool guessed;
    struct Tuned *tuned; /* records of tuning, once they were asked for */
    Box *tuned_box;
    Box *found; /* of weft_kernel_space and weft_tuned_merge */
    char message[LIMIT_MESSAGE], warning[LIMIT_MESSAGE];
};

typedef enum ArgKind { ARG_SIZE, ARG_BUF, ARG_START, ARG_COORD } ArgKind;

typedef struct Arg {
    const char *name;
    ArgKind kind;
    weft_role role;
    Type type;
    int ndim;
    Size *size;
    Axis *axis; /* of a structure array */
    int k;      /* ARG_COORD: which coordinate */
    Buf *buf; /* its axes give the shape: the buffer, or a stand-in over the axis; not ARG_START */
} Arg;

typedef struct Body { /* a program as read, immutable, shared by its handle and its arguments */
    Box *box;
    Prog *prog;
    const char *file, *text; /* what it was read from */
    size_t ntext;
    Arg *arg;
    int narg;
    bool checked;
    uint64_t hash; /* of the program's text, for records; 0: not known yet */
} Body;

struct weft_prog {
    Handle h;
    Body *body;
    Box *printed, *scheduled; /* texts: the last that was printed; the next */
    const char *sched;        /* what the caller wants; NULL: the default */
};

typedef struct View { /* an array of the caller, checked */
    char *data;
    Type type;
    int ndim;
    int64_t n; /* elements */
    int64_t shape[WEFT_MAX_NDIM], stride[WEFT_MAX_NDIM];
    uintptr_t low, high; /* its elements are in low <= address < high */
    bool plain;          /* aligned, in C order, without gaps */
} View;

/* HOW_DEVICE: the data of the view are memory of a device, and no address. */
typedef enum How { HOW_NOT, HOW_USER, HOW_FILE, HOW_MATRIX, HOW_DEVICE } How;

typedef struct Bound {
    How how;
    bool fresh;   /* since the last plan: the elements may be others */
    bool held;    /* the caller says when they are */
    View view;    /* HOW_USER, HOW_FILE */
    Box *box;     /* of the file's content */
    Coo *matrix;  /* HOW_MATRIX */
    FmtTree tree; /* where the matrix goes */
    const char *path;
} Bound;

typedef struct Result { /* of the last run, by argument; ndim < 0: not there */
    Box *box;
    Env *env;
    weft_tensor *tensor;
} Result;

struct weft_args {
    Handle h;
    Body *body;
    Box *box;      /* of the two arrays */
    Bound *bound;  /* by argument */
    int64_t *size; /* by Size.id; -1 not set */
    Result *result;
    Box *printed;
    struct Plan *plan; /* of the last kernel, or NULL */
    int64_t plans;     /* made so far */
    unsigned shapes;   /* counts changes of sizes, shapes and of what is bound at all */
    bool fresh;        /* some Bound is */
    int nheld;         /* of Bound that are */
    unsigned holds;    /* counts what was held, released, bound while held, or told to change */
};

enum {
    TARGET_AVX2 = 1, /* the CPU has to have it */
    TARGET_AVX512 = 2,
    TARGET_BY_NAME = 4, /* every CPU runs it, and none gets it unasked */
    TARGET_TEXT = 8 /* for `weft emit` alone: the library does not run it */
};

typedef struct Target { /* what programs are compiled for; the rows are in target.c */
    const char *name, *arch; /* "c:avx2"; the machines that it is for */
    const struct Dialect *dialect;
    TargetKind kind;     /* which passes it has */
    VectorUnit unit;         /* that passes see: lanes by type, registers */
    unsigned flags;          /* TARGET_AVX2, ... */
    const char *flag[8];     /* of the C compiler; NULL at the end */
    GpuUnit gpu;             /* of targets whose lanes are threads */
} Target;

typedef struct Lowered { /* what runs need to know of a program that has become C text */
    const Prog *prog;    /* its declarations: ids up to the old numbers are the same */
    const Target *target;
    uint64_t skip; /* passes that it was made without */
    const struct EmitKernel *info;
    const char **label; /* of each phase */
    const struct LowerWork *work; /* of each phase, for plans */
    bool *in_lanes;     /* by size: a vector loop runs up to it */
    const uint8_t *use; /* by phase, then array: see hold.c */
} Lowered;

typedef struct VariantKey { /* what a kernel can be compiled for */
    const uint8_t *index;   /* by argument: T_i32 where structure is read as such, else 0 */
    const int64_t *size;    /* by size: its value where the code is for that alone, or 0; or NULL */
    const char *sched;      /* the text of a schedule; NULL: the default */
    /* By argument: strides of an input that is read as it lies, see lower_strided, or NULL; NULL:
     * all inputs are packed. */
    const int64_t *const *stride;
} VariantKey;

typedef struct Variant {
    VariantKey key;
    const Lowered *lowered; /* NULL: there is no C text */
    struct JitModule *module;
    struct DevModule *dev; /* instead, on a device */
    void **fn;              /* by phase */
    const char *how, *name; /* where it was found, and by what name in the cache */
    const char *why;        /* there is no machine code; NULL: there is */
} Variant;

struct weft_kernel {
    Handle h;
    Body *body;
    Box *box; /* of all below */
    unsigned number;
    Variant **variant;   /* the first is made with the kernel, for i64: without it the kernel */
    int n, cap;          /* interprets; the others when a run asks for them */
    const Variant *last; /* that ran, or the first */
    const char *sched;   /* what the caller wants; NULL: what the model thinks best */
    Box *scheduled, *printed; /* of that text; of the C text of a variant, once it was asked for */
    const Variant *source_of; /* which variant that is */
    const char *source;
    int64_t busy;        /* ns of its runs, up to COST_HOT */
};

/* ctx.c */
weft_ctx *api_ctx_new(const Os *);
weft_ctx *api_ctx_of(const void *handle, unsigned tag); /* NULL when it is not one; says so */
jmp_buf *api_enter(weft_ctx *);
weft_status api_leave(weft_ctx *);
/* Leaves the function with a status when the handle is bad, and when something below throws. */
#define API_ENTER(ctx)                \
    if ((ctx) == NULL)                \
        return WEFT_E_ARG;            \
    if (setjmp(*api_enter(ctx)) != 0) \
    return api_leave(ctx)

void api_need(weft_ctx *, const void *p, const char *what); /* throws when p is NULL */
Box *api_box(weft_ctx *);                                   /* this call's box */
Box *api_keep(weft_ctx *); /* the same, which now is the caller's */
Box *box_new(weft_ctx *);  /* one that is the caller's from the start */
void box_drop(Box *);      /* NULL is allowed */
void *api_handle_new(weft_ctx *, unsigned tag, size_t size);
void api_handle_free(void *handle);

/* prog.c */
weft_prog *prog_new(weft_ctx *, const char *file, const char *text, size_t n);
void prog_drop(weft_prog *);
void body_drop(Body *);
void body_check(Body *);

/* edges.c: a list of edges, by receiver, then sender, then place in the list. */
struct weft_edges {
    Handle h;
    Box *box;
    uint64_t number; /* among all of the context, from 1 */
    int64_t nodes, senders, n;
    const int64_t *start, *sender; /* nodes + 1: of each receiver; n */
    const int64_t *place;          /* n: in the list; NULL: it was in this order */
};
void edges_drop(weft_edges *);
/* A list of the caller, checked; integers as i64. */
void edges_check(weft_ctx *, const weft_edge_list *);
const int64_t *edges_widen(weft_ctx *, const weft_edge_list *, const void *ends, int64_t rows,
                           const char *what);
/* conv.c */
void conv_drop(weft_conv *);

/* arg.c: the arguments of a program. */
void api_list_args(Body *);
bool api_is_fitted(const Prog *, const Size *); /* only the entries of a format tell it */
const Arg *api_find_arg(weft_ctx *, const Body *, const char *name); /* throws */

/* args.c */
void args_drop(weft_args *);
/* Replaces what is bound to an argument; takes over this call's box for the content of a file. */
void api_bind(weft_args *, const Arg *, const Bound *);

/* view.c */
extern const weft_type api_type_of[T_COUNT];
void api_view(weft_ctx *, const char *name, const weft_tensor *, View *out);
/* All elements, in C order; by the threads of a pool, or NULL. */
void view_gather(const View *, void *to, struct Pool *);
void view_scatter(const View *, const void *from, struct Pool *);
void api_check_overlap(weft_args *);

/* bind.c: from what is bound to an environment for a run: sizes known, structure and shapes
 * verified, but for arrays over built axes.  For a kernel, by the threads of a pool: structure is
 * copied, and of buffers only those are there that a matrix was packed into.  Without a pool: for
 * the interpreter. */
Env *api_env(weft_args *, Arena *, struct Pool *);
Env *api_env_of_structure(weft_args *, Arena *); /* when no buffer is bound yet */
/* For shapes alone: of structure only start arrays are verified, and nothing is copied. */
Env *api_env_of_shapes(weft_args *, Arena *);
Array *api_place(const Env *, const Arg *);      /* of an array in the environment */
bool api_is_built(const Arg *);                  /* its shape is known after the run only */
/* The shape (of ndim extents) that the environment gives the array of an argument. */
void api_shape(Arena *, const Prog *, const Env *, const Arg *, int64_t *out);
/* Throws when an array that is bound has another shape; only those over built axes, or the rest. */
void api_check_shapes(weft_args *, const Env *, bool built);

/* devices.c: throws when an array is in the memory of a device. */
void api_refuse_devices(weft_args *);
void devices_close(weft_ctx *);

/* verify.c: true when the structure is right; false when that takes a closer look, or is wrong. */
bool api_is_right(const Prog *, const Env *, struct Pool *); /* NULL: by this thread */
bool api_starts_rise(const Prog *, const Env *); /* the start arrays alone: all that shapes need */

/* target.c */
/* The name without its dialect: "avx2"; or "opencl". */
static inline const char *target_name(const Target *target)
{
    const char *colon = strchr(target->name, ':');

    return colon != NULL ? colon + 1 : target->name;
}
const Target *api_target(weft_ctx *);                        /* throws for a bad WEFT_MAX_ISA */
const Target *api_target_named(const char *name); /* "c:avx2", "cuda"; or NULL */
const Target *api_find_target(weft_ctx *, const char *name); /* that, or "c"; throws */
const Target *api_runs_here(weft_ctx *, const char *name); /* the same, if this machine runs it */
void api_put_lanes(Text *, const Target *); /* what the prelude of kernels for GPUs has to know */
const char *api_target_row(int i, const char **note);        /* all that are listed; or NULL */

/* kernel.c: finds or makes the variant for this key; the first when it cannot be made. */
const Variant *kernel_variant(weft_kernel *, const VariantKey *);
static inline const char *kernel_why(const weft_kernel *k)
{
    return k->variant[0]->why;
}
void kernel_drop(weft_kernel *);
struct Jit *api_jit(weft_ctx *);
/* lowered.c, the two halves of making one: the C text, which may throw, and what the compiler is
 * asked for.  The result of the first is in the arena; all else that it took is freed. */
const Lowered *kernel_lower(weft_ctx *, Arena *, const Body *, const VariantKey *, Text *source);
struct JitRequest *kernel_request(Arena *, const Lowered *, const Text *source);

typedef struct Aim { /* what a program is compiled for, and how */
    const Target *target;
    Sched sched;
    uint64_t skip; /* bits of rows of the pass table */
} Aim;

/* pipeline.c, whose table of passes is in pass_int.h. */
/* A copy to be lowered, in ctx->trees, where its garbage is collected between passes: there is one
 * at a time, and it is gone when the call ends. */
Prog *api_trees(weft_ctx *, const Prog *);
/* Runs the passes up to this one, or all, on p itself: the one way from a program to loops, for
 * every command.  Throws ST_LIMIT for what is only interpreted. */
struct Kernel *api_lower_to(Prog *p, const Aim *, const Pass *last);
struct Kernel *api_passes(Prog *p, const Aim *);
/* Applies the last lines of the schedule, and writes those of the phases that it does not name. */
const char *api_find_levels(Prog *, const Aim *);
void api_run_pass(const Pass *, struct Kernel *, const Aim *); /* one of them */
void api_collect_garbage(struct Kernel *); /* after a pass, where there is much */
enum { LIMIT_STATEMENTS = 8192 };       /* that are lowered at once: docs/ir.md */
static inline Aim api_aim(const Target *target)
{
    return (Aim){ target, sched_default(&target->unit), 0 };
}
struct StepTarget api_step_target(const Aim *); /* what schedule steps ask of it */
/* With the text of a schedule, or NULL; throws. */
Aim api_aim_at(Err *, const Target *, const char *sched);
/* The same, without the passes that WEFT_SKIP names. */
Aim api_aim_of(weft_ctx *, const Target *, const char *sched);
bool api_skips(weft_ctx *); /* whether WEFT_SKIP names any */
/* The optional passes of a list of names, as bits of Aim.skip; throws for other names. */
uint64_t api_skipped(weft_ctx *, const char *names);

/* explain.c: the pass that a place in the pipeline is after; where it is in the schedule, that is
 * cut there. */
const char *api_until(weft_ctx *, const char *where, const char **sched);

/* pick.c: the text of a schedule; NULL: the default.  Where the kernel is not hot, only what is
 * worth code of its own.  The prediction for one. */
const char *api_pick(weft_ctx *, const Prog *, const Env *, int threads, bool hot);
double api_predict(const Target *, const Sched *, const CostShape *, const Machine *, int threads);

/* tuned.c: the schedule that tuning has found for a program, its structure and this machine; "" is
 * the default, NULL: nothing is known.  And what was found, for this context and for others. */
struct TuneRecord;
const char *api_tuned(weft_args *, const Env *, int threads);
void api_tuned_keep(weft_args *, const Env *, int threads, struct TuneRecord *);

/* plan.c: what is worked out once for a kernel and the shapes and structure of arguments.  Throws
 * for what does not fit; *made: the old plan did not do. */
struct Plan *api_plan(weft_kernel *, weft_args *, struct Pool *, bool *made);
/* The axes of the program itself that are made from others: what a printed text asks for. */
void api_make_axes(weft_args *, Arena *, Env *, struct Pool *);
void plan_drop(weft_args *);
int64_t plan_bytes(const weft_args *); /* of memory; 0: there is no plan */
int64_t api_run_plan(weft_args *, struct Pool *); /* 0 or a fault */
struct RunPhase;
/* The start array that weighs a phase of out->n iterations, of the arrays that the kernel gets. */
void api_balance(const Lowered *, const Env *, int phase, void *const *array,
                 struct RunPhase *out);
/* hold.c: how phases use arrays; which of them need not run again, by what the arrays are. */
struct EmitKernel;
typedef enum HoldKind { HOLD_CHANGES, HOLD_SAME, HOLD_OWN } HoldKind; /* OWN: a temporary */
enum { HOLD_READS = 1, HOLD_WRITES = 2 };
const uint8_t *hold_uses(Arena *, Prog *, const struct EmitKernel *);
void hold_mark(const Lowered *, const HoldKind *, bool *kept);
/* parts.c: what lower/split/reductions.c leaves to the plan; and the least work of a chunk of a
 * phase. */
void api_fill_parts(Arena *, const Lowered *, Env *, const Axis *, int64_t part);
int64_t api_most_extent(const Axis *); /* below one position, of a constant axis; -1: of another */
int64_t api_grain(Arena *, const Lowered *, const Env *, int phase);
/* slices.c: the pieces of a phase whose parts more threads divide; NULL: parts stay whole. */
const struct RunSlices *api_slices(Arena *, const Lowered *, const Env *, int phase,
                                   const struct RunPhase *, int64_t part, int threads);
void api_print_plan(Text *, const weft_args *, bool made);

/* format.c: the lines `format E bsr(16, 16)` of a schedule, applied to p; who works on what a plan
 * converts for them. */
void api_formats(Prog *p, const char *sched);
/* The axis and the format of a line of a schedule; false: it is another step. */
bool api_format_line(Arena *, const SchedItem *, const char **axis, const char **format);
FmtPool api_workers(struct Pool *);

/* machine.c: what this machine can do, from the cache directory or measured now. */
Bytes api_read_quietly(weft_ctx *, const char *path, int64_t most); /* a file, or nothing */
/* As measured before, or guessed. */
const Machine *api_machine_known(weft_ctx *);
const struct Machine *api_machine(weft_ctx *, bool again);

/* built.c: the part of a plan that waits for axes which the run builds. */
typedef struct Late Late;
/* Makes the built axes of both environments empty; NULL when there are none. */
Late *late_new(weft_args *, Arena *, const Lowered *, Env *own, Env *env);
bool late_has(const Late *, const Buf *); /* the array has its place in a run only; NULL: false */
void late_join(Late *, struct RunPhase *, void **array, int64_t *size); /* the plan's */
int64_t late_run(Late *, weft_ctx *, struct Pool *); /* all phases; 0 or a fault */
/* To the result, and to the caller's arrays; throws when these have another shape. */
void late_give(Late *, weft_args *, Result *);
void late_free(const Os *, Late *); /* NULL is allowed */

/* launch.c */
double api_work(const Prog *, const Env *); /* scalar operations of a run, about */
void api_run_kernel(weft_kernel *, weft_args *); /* throws what a run can */
struct Pool *api_pool(weft_ctx *);               /* made when first needed */
void api_check_args(weft_ctx *, const weft_kernel *, const weft_args *); /* they go together */

/* verbose.c */
void api_say_note(weft_ctx *, const char *event, const char *detail, const char *why);
void api_say_compile(weft_ctx *, const weft_kernel *, const Variant *, const struct JitReport *);
void api_say_run(const weft_kernel *, const weft_args *, bool made, int threads, int64_t begin);

/* run.c */
typedef void Runner(weft_args *, Box *, Env *, void *with); /* fills the Env; may throw */
void api_run(weft_args *, Runner *, void *with);
void api_set_result(weft_args *, Result *); /* NULL: there is none */
Result *api_collect(weft_args *, Arena *, Env *);
const weft_tensor *api_result(weft_args *, const Arg *); /* throws when there is none */

/* solve.c */
typedef struct Fact { /* expr, or the number of positions of axis (its start array), is value */
    Expr *expr;
    const Axis *axis;
    int64_t value;
    const char *what; /* "dimension 1 of A", "J.start" */
} Fact;

typedef struct Solver {
    Arena *arena;
    Prog *prog;
    Env *env;
    Fact *fact;
    int n, cap;
    const char **origin; /* of each size: "as set", "from dimension 1 of A" */
} Solver;

void solve_add(Solver *, Fact);
void solve_sizes(Solver *);                            /* all that follow from the facts so far */
bool solve_eval(const Solver *, Expr *, int64_t *out); /* false while a size in it is unknown */
void solve_verify(const Solver *);                     /* all sizes known, all facts true */

#endif
