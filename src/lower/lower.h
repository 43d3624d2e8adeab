/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * From coordinates to loops: each pass takes a checked program or a tree and gives a new tree. */
#ifndef WEFT_LOWER_H
#define WEFT_LOWER_H

#include "ir/loop.h"

/* Sizes that a kernel is run with are below 2^48, so that sums of a few products by small constants
 * fit: larger ones are for the interpreter. */
enum { LOWER_SIZE_BITS = 48 };

typedef struct Kernel { /* a list of phases, done in order */
    Prog *p;
    Node **phase;
    int n, cap;
    Node *const *other; /* phases of the program that are not in the list: a pass leaves them */
    int nother;         /* alone, and may not take an array away from them */
} Kernel;

/* storage/arrays.c: a structure array that is i32 at run time is read as it is: coordinate k of
 * an axis, or its start array for k < 0.  All others are i64.  To be done before all passes. */
void lower_narrow(Prog *, Axis *, int k);

/* An input that is read as it lies in memory: its strides, a number for each interface dimension,
 * or LOWER_ANY for what a run tells by a new size.  To be done before all passes. */
enum { LOWER_ANY = -1 };
void lower_strided(Prog *, Buf *, const int64_t *stride, int n);

/* positions/products.c: products of blocks become statements of their own, in the order of tiles;
 * blocks have `least` rows, terms and columns at least.  Changes p's statements: give it a copy. */
enum { LOWER_BLOCK = 16 };
void lower_products(Prog *p, int64_t least);

/* positions/transpose.c: scatters through a loaded coordinate become sums over the rows of the
 * transpose, which a plan makes.  Changes p's statements: give it a copy. */
void lower_transpose(Prog *p);
/* What coordinate n of a transpose is: a coordinate of the entry or of its row, whose axis is *of;
 * -1: its position, first, or, where the entries have rows, its row, second. */
int lower_carried(const Axis *t, int n, const Axis **of);

/* positions/relayout.c: in sums over entries the last variable of the output runs innermost, and
 * small operands that have another one last are copied before.  Changes p's statements: give it a
 * copy. */
void lower_relayout(Prog *p);

/* positions/statements.c: coordinates become loops over stored entries, each access the position
 * of its element in every interface dimension; searches are `find`, padding and guards are
 * branches, what cannot be proven inside is checked; what is inserted into a built axis is one
 * phase.  Needs a checked program.  Throws ST_LIMIT for what only the interpreter runs. */
Kernel *lower_positions(Prog *);

/* constants/unroll.c: loops over constant relations, and those that run once, become
 * straight-line code; what the constant bounds of loops decide is decided.  Loops of scheduled
 * phases stay. */
void lower_unroll(Kernel *);

/* fuse/entries.c: rows that one phase makes for each entry, and others use there, are an array
 * of the iteration of one phase.  Needs stage positions. */
void lower_fuse_entries(Kernel *);

/* split/reductions.c: long rows, and sums that all iterations add to, become parts that are
 * combined in order; says of phases that stay serial why.  Needs stage positions. */
void lower_split_sums(Kernel *);

/* facts/weight.c: what a plan has to know of a phase whose tree has been freed. */
typedef struct LowerLoop {
    bool loop;      /* false: a branch around loops, which runs once */
    Expr *lo, *hi;  /* of sizes alone; or NULL, and */
    Buf *start;     /* the start array of the entries that it runs over; or NULL */
    int64_t stores; /* in an iteration, those of `inside` not counted */
    struct LowerLoop *inside;
    int n, cap;
} LowerLoop;
typedef struct LowerWork {
    LowerLoop loop; /* the phase itself, once */
    Buf *balance;   /* see loop_balance; or NULL */
    Buf **stored;   /* each array that it stores to */
    int nstored, cap;
} LowerWork;
/* Of a phase, as objects of `to`, a copy of the program of the phase. */
LowerWork lower_note_work(Prog *to, const Node *phase);
/* Stores in an iteration of a phase, or, where it is balanced, in one of those; about. */
double lower_weight(Arena *, const Prog *, const Env *, const LowerWork *);
/* How often a phase of n iterations runs over the rows of its `balance` array.  0: its range is not
 * a multiple of those rows, and the array cannot weigh it. */
int64_t lower_rounds(const Prog *, const Env *, const Buf *balance, int64_t n);

/* storage/flatten.c: one flat index an element. */
void lower_flatten(Kernel *);

/* search/hoist.c: what has been tested is not tested again, and what a loop does not change is
 * tested and searched for before it. */
void lower_hoist(Kernel *);

/* search/gallop.c: searches for what ascends go on from where they ended.  After lower_hoist. */
void lower_gallop(Kernel *);

/* search/hash.c: searches among entries in no order ask a table that a plan makes. */
void lower_hash(Kernel *);
Array lower_hash_table(Arena *, const Prog *, const Env *, const Axis *); /* that table */

/* finish/combine.c: in straight-line code the terms of one element are added up first, and
 * stored once. */
void lower_combine(Kernel *);
/* fuse/rows.c: phases over the same rows that share a temporary's, or long rows of entries, as
 * one. */
void lower_fuse_rows(Kernel *);

/* registers/accumulate.c: sums are kept in registers while a loop adds to them, in `registers` of
 * those that the machine has. */
typedef struct LowerTile {
    const VectorUnit *unit;
    int registers;
    int rows, columns; /* of a tile, where they are said; 0: as lower_shape finds them */
    int sweep;         /* entries of a tile of lower_factor; 0: there is none */
} LowerTile;
void lower_accumulate(Kernel *, LowerTile);

/* fuse/sums.c: phases of sums over the same range, whose iterations add to rows of their own, are
 * one. */
void lower_fuse_sums(Kernel *);

/* algebra/factor.c: innermost loops of sums of products that share elements become one, with as
 * few operations as the model of algebra/draft.c finds, in lanes where elements move by
 * constants.  edges/sweep.c: where entries of a row add to the elements of the row, by tiles of
 * entries. */
void lower_factor(Kernel *, LowerTile);

/* registers/accumulate_outer.c: what a loop around others adds to one element is a register
 * while it runs. */
void lower_accumulate_outer(Kernel *);

/* init/stores.c: a phase of first values goes, where the first store of the next one to each
 * element can set it.  After lower_factor. */
void lower_init_stores(Kernel *);

/* lanes/batch.c: numbers that iterations of a phase compute one by one, before vector loops, are
 * computed for as many at once as a register has lanes.  After lower_init_stores. */
void lower_batch(Kernel *, const VectorUnit *);

/* registers/block_rows.c: of loops inside a vector loop whose iterations share operands, several
 * run at a time. */
void lower_block_rows(Kernel *, LowerTile);

/* registers/tensor.c: a nest of a phase, or the whole phase, as one tile of registers: a vector
 * loop around rows that run side by side, and its sums inside.  NULL: it is none. */
Node *lower_tensor(Prog *, Node *phase, Node *nest, LowerTile);

/* init/registers.c: a phase that gives elements their first values goes, where the next one
 * keeps each in a register. */
void lower_init_registers(Kernel *);

/* memory/panels.c: phases over rows that are vector loops do so many elements of all rows first,
 * then the next; with `pack` from copies of the rows that they gather, laid out in this order. */
void lower_panel(Kernel *, int width, bool pack);

/* lanes/vectorize.c: marks the innermost loops whose elements lie side by side, for the lanes of
 * the machine; multiplies what is the same in all lanes before what is not. */
void lower_vectorize(Kernel *, const VectorUnit *);

/* fuse/straight.c: straight-line phases over the same range become one, where each iteration
 * touches elements of its own. */
void lower_fuse_straight(Kernel *);

/* lanes/vectorize_outer.c: straight-line phases whose iterations have rows of their own run
 * several at a time, one a lane. */
void lower_vectorize_outer(Kernel *, const VectorUnit *);

/* memory/prefetch_gathers.c: rows that a vector loop gathers are asked for before their turn, so
 * that about this many bytes are on their way; 0: not at all. */
void lower_prefetch_gathers(Kernel *, int bytes);

/* memory/prefetch_rows.c: phases that read rows one after the other ask for pieces of rows to
 * come, so that about this many bytes are on their way; 0: not at all. */
void lower_prefetch_rows(Kernel *, int bytes);

/* memory/stream.c: stores in lanes, of what no phase reads, go past the caches, where all rows
 * that a phase touches are so many bytes; 1: always, 0: never. */
void lower_stream(Kernel *, int64_t bytes);

/* registers/jam.c: iterations with sums over lanes run four at a time, or two, where their sums
 * take at most half of so many registers. */
void lower_jam(Kernel *, int registers);

/* finish/compensate.c: sums over entries add up what rounding takes from them, too; phases over
 * whole arrays run in the lanes of the machine.  Before lower_cse. */
void lower_compensate(Kernel *, const VectorUnit *);

/* finish/cse.c: what is used twice, or does not change in an innermost loop, gets a name.  Last. */
void lower_cse(Kernel *);

/* storage/arrays.c, too: what a kernel gets for one of its arrays, from the arrays of a program;
 * of outputs and of the kernel's own arrays it is only length and type, data is NULL. */
Array lower_array(Arena *, const Prog *, const Env *, const Buf *);
/* The end of the range of a phase. */
int64_t lower_value(Arena *, const Prog *, const Env *, Expr *extent);

#endif
