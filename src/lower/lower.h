/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * From coordinates to flat loops: the passes of this folder, in the order of the pipeline, under
 * the rooms that hold them.  Each takes a checked program or tree and gives an equivalent one.  The
 * heading of a pass's file says what it turns into what; api/pipeline.c has the table of passes. */
#ifndef WEFT_LOWER_H
#define WEFT_LOWER_H

#include "ir/loop.h"

/* Sizes of a kernel are below 2^48, so that sums of a few products by small constants fit an i64.
 * Larger ones are left to the interpreter. */
enum { LIMIT_SIZE_BITS = 48 };

typedef struct Kernel { /* a list of phases, run in order */
    Prog *p;
    Node **phase;
    int n, cap;
    Node *const *other; /* phases outside of the list: a pass does not change them, */
    int nother;         /* and keeps the arrays that they use */
} Kernel;

/* The passes that walk the loops of sums together, in lower_factor. */
enum LowerEdit {
    EDIT_SWEEP = 1,
    EDIT_CONSUME = 2,
    EDIT_RECOMPUTE = 4,
    EDIT_INTERCHANGE = 8,
    EDIT_FACTOR = 16
};

typedef struct LowerTile { /* the machine, and the numbers of a schedule, for register blocking */
    const VectorUnit *unit;
    int registers;     /* that sums may take */
    int rows, columns; /* of a register block; 0: lower_shape chooses */
    int sweep;         /* entries in a tile of a sweep; 0: no sweeps */
    unsigned without;  /* bits of LowerEdit that are left out */
} LowerTile;

/* ---- storage: how a caller passes arrays.  These two come before all passes. */

/* A structure array that is i32 at run time: coordinate k of an axis, or its start array for k < 0.
 * Default: i64. */
void lower_narrow(Prog *, Axis *, int k);
/* An input with strides, one for each interface dimension; LOWER_ANY: a new size that a run tells.
 * Default: contiguous. */
enum { LOWER_ANY = -1 };
void lower_strided(Prog *, Buf *, const int64_t *stride, int n);

/* ---- positions: statements over coordinates.  The first three change the statements of p, so they
 * need a copy. */

/* products.c: products of matrix blocks with at least `least` rows, terms and columns become
 * statements whose loops are ordered for register blocking. */
void lower_products(Prog *p, int64_t least);
/* transpose.c: scatters through a loaded coordinate become sums over the rows of a transpose, which
 * the plan makes. */
void lower_transpose(Prog *p);
/* The meaning of coordinate n of a transpose: a coordinate of the entry or of its row, whose axis
 * is *of.  -1: the first is the entry's position; the second, where entries have rows, its row. */
int lower_carried(const Axis *t, int n, const Axis **of);
/* relayout.c: in sums over entries the last variable of the output runs innermost; small operands
 * that store another one last are copied first. */
void lower_relayout(Prog *p);
/* statements.c: statements become loops over stored entries, and accesses become positions in each
 * interface dimension.  Searches are `find`, padding and guards are branches, unproven indices are
 * checked, and the insertions into a built axis are one phase.  Throws ST_LIMIT for programs that
 * only the interpreter runs. */
Kernel *lower_positions(Prog *);

/* ---- constants.  unroll.c: loops over constant relations, and loops that run once, become
 * straight-line code; conditions that constant bounds decide are decided. */
void lower_unroll(Kernel *);

/* ---- fuse, at stage positions.  entries.c: readers of a per-edge temporary run in the phase that
 * computes it, and the temporary becomes scratch. */
void lower_fuse_entries(Kernel *);

/* ---- split.  reductions.c: long rows, sums that all iterations add to, and scatters become chunks
 * that are combined in order.  Phases that stay serial get the reason. */
void lower_split_sums(Kernel *);

/* ---- storage.  flatten.c: each element gets one flat index. */
void lower_flatten(Kernel *);

/* ---- search. */

/* hoist.c: tests and searches that a loop does not change move in front of it; tests are not
 * repeated. */
void lower_hoist(Kernel *);
/* gallop.c: a search for ascending coordinates starts where the last one ended. */
void lower_gallop(Kernel *);
/* hash.c: a search among unordered entries asks a hash table, which the plan fills. */
void lower_hash(Kernel *);
Array lower_hash_table(Arena *, const Prog *, const Env *, const Axis *);

/* ---- fuse.  sums.c: phases of sums over the same range, whose iterations add to rows of their
 * own, become one. */
void lower_fuse_sums(Kernel *);

/* ---- algebra, edges.  These five walk the loops of sums together, as the first that takes a loop
 * decides for all that is inside:
 *     sweep (edges/sweep.c)               entries of a row in tiles, sums in registers
 *     consume (edges/consume.c)           entries in tiles, whose products use up their rows
 *     recompute (edges/recompute.c)       rows of per-edge temporaries, in the tiles that read them
 *     interchange (algebra/interchange.c) a lane loop comes out, sums stay in registers
 *     factor (algebra/factor.c)           innermost loops that share elements become one, with the
 *                                         fewest operations that algebra/draft.c finds */
void lower_factor(Kernel *, LowerTile);

/* ---- registers. */

/* accumulate.c: sums stay in registers while a loop adds to them. */
void lower_accumulate(Kernel *, LowerTile);
/* accumulate_outer.c: the sum of an outer loop stays in a register while the loop runs. */
void lower_accumulate_outer(Kernel *);

/* ---- init. */

/* place.c: initial values, until then attributes of arrays, are placed in the registers that sum
 * up, in the first store to each element, or in loops of their own. */
void lower_init(Kernel *);
/* The loops that give an array, and those that accompany it, their initial values. */
Node *lower_init_nest(Prog *, Buf *);

/* ---- lanes.  batch.c: scalars that iterations compute before their vector loops are computed for
 * as many iterations at once as there are lanes. */
void lower_batch(Kernel *, const VectorUnit *);

/* ---- registers. */

/* block_rows.c: rows inside a vector loop that share operands run side by side. */
void lower_block_rows(Kernel *, LowerTile);
/* tensor.c: one nest that a schedule names, or a whole phase, as a register block; NULL: it cannot
 * be one. */
Node *lower_tensor(Prog *, Node *phase, Node *nest, LowerTile);

/* ---- memory.  panels.c: phases over rows process `width` columns of all rows before the next
 * ones; with `pack` from copies of the gathered rows in that order. */
void lower_panel(Kernel *, int width, bool pack);

/* ---- lanes.  vectorize.c: innermost loops whose elements lie side by side run in lanes; factors
 * that are the same in all lanes are multiplied first. */
void lower_vectorize(Kernel *, const VectorUnit *);

/* ---- fuse, finish, lanes: the last fusions. */

/* straight.c: straight-line phases over the same range become one. */
void lower_fuse_straight(Kernel *);
/* combine.c: the terms of one element of straight-line code are added before its store. */
void lower_combine(Kernel *);
/* vectorize_outer.c: iterations of straight-line phases with rows of their own run in lanes. */
void lower_vectorize_outer(Kernel *, const VectorUnit *);
/* fuse/rows.c: phases that share rows of a temporary, or long rows of entries, become one. */
void lower_fuse_rows(Kernel *);

/* ---- memory. */

/* prefetch_gathers.c: gathered rows are prefetched, about `bytes` ahead; 0: not at all. */
void lower_prefetch_gathers(Kernel *, int bytes);
/* prefetch_rows.c: pieces of later rows are prefetched, about `bytes` ahead; 0: not at all. */
void lower_prefetch_rows(Kernel *, int bytes);
/* stream.c: write-only results use non-temporal stores where the rows that a phase touches have at
 * least `bytes`; 1: always, 0: never. */
void lower_stream(Kernel *, int64_t bytes);

/* ---- registers.  jam.c: four iterations with sums over lanes run at a time, or two, as long as
 * their sums take at most half of the registers. */
void lower_jam(Kernel *);

/* ---- finish. */

/* compensate.c: the rounding errors of sums over entries are summed beside them. */
void lower_compensate(Kernel *, const VectorUnit *);
/* levels/barriers.c: a barrier between accesses of one element by different lanes, for machines
 * whose lanes are threads. */
void lower_barriers(Kernel *);
/* cse.c: common subexpressions, and values that an innermost loop does not change, are computed
 * once. */
void lower_cse(Kernel *);

/* ---- For plans and launches. */

/* facts/weight.c: the loops of a phase and their numbers of stores, which outlive its tree. */
typedef struct LowerLoop {
    bool loop;      /* false: a branch around loops, which runs once */
    Expr *lo, *hi;  /* of sizes alone; or NULL, and */
    Buf *start;     /* the start array of the entries that it runs over; or NULL */
    int64_t stores; /* of an iteration, without those of `inside` */
    struct LowerLoop *inside;
    int n, cap;
} LowerLoop;
typedef struct LowerWork {
    LowerLoop loop; /* the phase itself, once */
    Buf *balance;   /* see loop_balance; or NULL */
    Buf **stored;   /* each array that it stores to */
    int nstored, cap;
    const Axis *sliced; /* of a phase that has slices: the rows in parts; or NULL */
} LowerWork;
/* The work of a phase, with objects of `to`, a copy of the program of the phase. */
LowerWork lower_note_work(Prog *to, const Node *phase);
/* The approximate number of stores of an iteration or, in a balanced phase, of a balanced unit. */
double lower_weight(Arena *, const Prog *, const Env *, const LowerWork *);
/* How often a phase of n iterations runs over the rows of its `balance` array.  0: its range is not
 * a multiple of those rows, so the array cannot weigh it. */
int64_t lower_rounds(const Prog *, const Env *, const Buf *balance, int64_t n);

/* split/slices.c: whether an entry of a scatter's phase counts only in elements that are its own or
 * that it adds to: then a call may be told that a row has some of its entries alone. */
bool lower_has_slices(Prog *, Node *phase);

/* storage/arrays.c: the array that a kernel gets for one of its buffers, from the arrays of a
 * program.  Outputs and arrays of the kernel's own have length and type only; data is NULL. */
Array lower_array(Arena *, const Prog *, const Env *, const Buf *);
/* The end of the range of a phase. */
int64_t lower_value(Arena *, const Prog *, const Env *, Expr *extent);

#endif
