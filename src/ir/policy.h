/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The policy: every number of the compiler that affects only speed, one row each.  The row of the
 * target fills it, so that kernels are the same text on every machine; a schedule may set each.
 * What a machine was measured to do is in cost/, and chooses schedules when a plan is made. */
#ifndef WEFT_POLICY_H
#define WEFT_POLICY_H

#include <stddef.h>

struct VectorUnit;

/* How many registers sums may take, where so many eighths of all hold what is live beside them:
 * operands of multiply-adds, and addresses on machines whose registers are few. */
#define REGISTERS_BESIDE(u, eighths) ((u)->registers * (8 - (eighths)) / 8)
/* The scratch of one iteration, in first caches: what it computes is read again soon. */
#define SCRATCH_OF(u, caches) ((u)->cache[0] * (caches))
/* Lanes are threads of a warp: no CPU has so many. */
#define IS_WARP(u) (lanes_of(u, T_f32) > 16)

/* Rows: name, least and most, the value on the vector unit u, meaning.  These come first: their
 * names are words of schedules, "tile 8". */
#define POLICY_WORDS(X)                                                                    \
    X(tile, 0, 64, least(REGISTERS_BESIDE(u, 4), 8 * CACHE_LINE / 4 / lanes_of(u, T_f32)), \
      "vector registers for the sums of a loop")                                           \
    X(ahead, 0, 1 << 20, 4096,                                                             \
      "bytes of gathered rows that prefetches keep in flight; 0: no prefetches")           \
    X(panel, 0, 1 << 20, 0,                                                                \
      "columns of a panel, which all rows process before the next; 0: all columns")        \
    X(pack, 0, 1, 0, "1: copy panels of gathered rows side by side before they are read")  \
    X(stream, 0, 1 << 30, u->cache[2],                                                     \
      "bytes of a result from which it uses non-temporal stores; 0: never")                \
    X(jam, 0, 1, 1, "1: unroll and jam loops with sums over lanes, by four")               \
    X(sweep, 0, 64, IS_WARP(u) ? lanes_of(u, T_f32) : 8,                                   \
      "entries that a sweep processes together while sums stay in registers; 0: one")      \
    X(compensate, 0, 1, 0, "1: compensate the rounding errors of sums over entries")

/* And these are set by "set NAME N". */
#define POLICY_SETS(X)                                                                             \
    /* registers */                                                                                \
    X(sweep_sums, 1, 256, REGISTERS_BESIDE(u, 3), "registers for the sums of a row in a sweep")    \
    X(row_sums, 1, 256, REGISTERS_BESIDE(u, 2),                                                    \
      "registers for rows that a tile of edges recomputes or consumes")                            \
    X(jam_sums, 1, 256, REGISTERS_BESIDE(u, 4),                                                    \
      "registers for the sums of all iterations that jam runs together")                           \
    X(loop_sums, 1, 256, 16, "sums of a loop that several loops were fused into")                  \
    X(sum_registers, 1, 16, 2, "registers of each sum of a row")                                   \
    X(long_for_registers, 1, 1 << 20, 32,                                                          \
      "terms of an iteration that pay for registers which serve this one loop")                    \
    X(long_for_array, 1, 1 << 20, 8,                                                               \
      "terms of an iteration that are summed in a register before the array")                      \
    X(row_registers, 1, 16, 4, "registers of a row that a tile of edges recomputes or consumes")   \
    X(block_registers, 1, 16, 8, "registers of a row in a register block")                         \
    X(few_sums, 0, 256, 8, "registers of sums below which sweeps fuse loops that share nothing")   \
    X(lane_sums, 0, 256, 16, "registers of sums over lanes that stay open across outer loops")     \
    /* operations, by which drafts are compared */                                                 \
    X(fold, 0, 1000, 5, "cost of the sum of all lanes, in operations")                             \
    X(scalar, 0, 1000, 1, "cost of a term that is added after the loop, in operations")            \
    X(spill, 0, 1000, 2, "cost of a sum without a register, in operations")                        \
    X(usual_trips, 1, 1 << 20, 64, "iterations that a loop of unknown length is taken to run")     \
    X(recompute_terms, 0, 1 << 20, 128, "terms that cost as much as one store and one load")       \
    X(gather_gain, 0, 1000, 3, "bytes of a gather that cost as much as one byte of a scatter")     \
    X(batch_saved, 0, 1 << 20, 64, "operations that a batch has to save in an iteration")          \
    X(batch_share, 1, 1000, 4, "a batch has to save one in this many operations")                  \
    X(lane_work, 0, 1000, 2, "cost of an element that is put into its lane alone, in operations")  \
    X(shared_tree, 0, 1000, 3, "nodes of an integer expression above which it is computed once")   \
    X(long_text, 0, 1 << 20, 64, "operators of an expression from which its parts get names")      \
    X(repeats, 1, 1000, 4, "occurrences of an expression from which it gets a name")               \
    /* memory */                                                                                   \
    X(near, 0, 1 << 30, u->cache[1], "bytes of a table below which gathers are not prefetched")    \
    X(ahead_least, 1, 1 << 16, 4, "least distance of a prefetch, in entries")                      \
    X(ahead_usual, 1, 1 << 16, 16,                                                                 \
      "distance of a prefetch where rows are processed in pieces, in entries")                     \
    X(ahead_most, 1, 1 << 16, 64, "largest distance of a prefetch, in entries")                    \
    X(long_row, 1, 1 << 20, 1024, "bytes of a row from which it gets a prefetch of its own")       \
    X(streams, 0, 1 << 16, 8, "streams that the hardware prefetches by itself")                    \
    X(scratch, 0, 1 << 18, IS_WARP(u) ? SCRATCH_OF(u, 1) / 4 : SCRATCH_OF(u, 2),                   \
      "bytes of one scratch array of an iteration")                                                \
    X(entry_lanes, 0, 1, IS_WARP(u),                                                               \
      "1: compute the values of the entries of a tile with one entry in each lane")                \
    X(scratch_group, 0, 1 << 20, SCRATCH_OF(u, 16),                                                \
      "bytes of the scratch arrays of a group of rows")                                            \
    X(tile_scratch, 0, 1 << 18, SCRATCH_OF(u, 4), "bytes of one scratch array of a tile of edges") \
    X(edge_scratch, 0, 1 << 18, SCRATCH_OF(u, 1) / 2, "bytes of the scratch row of an edge")       \
    X(shared, 0, 1 << 28, 1 << 18, "elements of an array that the edges of all rows add to")       \
    X(copied, 0, 1 << 28, 1 << 20, "elements of an operand that relayout copies at most")          \
    X(part, 0, 1 << 20, 1024, "elements of an array of which each chunk of a sum has a copy")      \
    X(part_covered, 0, 1 << 28, 1 << 19, "the same, where each iteration adds to all elements")    \
    X(part_short, 0, 1 << 20, 256, "length of a dimension that counts as added to whole")          \
    X(consumed_rows, 1, 16, 4, "rows of a result that read a tile of edges together")              \
    /* threads */                                                                                  \
    X(shares, 1, 1 << 12, 64, "pieces of work of a phase that the step merge makes")               \
    X(index, 32, 64, lanes_of(u, T_f32) < 32 ? 64 : 32,                                            \
      "bits of structure arrays in text for GPUs: 64 where one may count 2^31 or more")            \
    /* size of code */                                                                             \
    X(block, 1, 1 << 20, 16, "least rows, terms and columns of a product that gets its own loops") \
    X(unroll_trips, 0, 1 << 20, 1024, "iterations over a constant relation that are unrolled")     \
    X(vector_turns, 0, 1 << 10, 4, "iterations of a vector loop that are written one by one")      \
    X(unroll_nodes, 0, 1 << 20, 48000, "nodes of code that unrolling makes")                       \
    X(twice_nodes, 0, 1 << 20, 500,                                                                \
      "nodes of a phase that is compiled twice, for short and for long rows")                      \
    X(loop_operations, 0, 1 << 20, 400, "operations of a loop that several loops were fused into") \
    X(lane_operations, 0, 1 << 20, 2500, "operations of a phase whose iterations run in lanes")    \
    X(first_values, 0, 1 << 20, 64, "initial values that straight-line code writes")               \
    X(init_gaps, 0, 1 << 16, 8, "gaps in a row whose initial values are written one by one")       \
    X(batch_values, 0, 1 << 16, 512, "values of a batch")                                          \
    X(function_lines, 1, 1 << 20, 1000, "lines of C from which a function is cut in two")          \
    /* search */                                                                                   \
    X(pairs, 0, 1 << 20, 20000, "pairs of products that the search for common factors looks at")   \
    X(pair_rounds, 0, 1000, 32, "common factors that this search takes out")

#define POLICY_FIELDS(X) POLICY_WORDS(X) POLICY_SETS(X)

typedef struct Policy {
#define FIELD(name, least, most, value, note) int name;
    POLICY_FIELDS(FIELD)
#undef FIELD
} Policy;

/* The number of fields, and of those that are words of schedules. */
enum {
#define WORD(name, least, most, value, note) POLICY_AT_##name,
    POLICY_WORDS(WORD)
#undef WORD
        POLICY_NWORD,
    POLICY_NFIELD = sizeof(Policy) / sizeof(int)
};

typedef struct PolicyField {
    const char *name, *note;
    int least, most;
} PolicyField;
extern const PolicyField policy_field[POLICY_NFIELD];

Policy policy_for(const struct VectorUnit *);
int *policy_at(Policy *, int field);
int policy_find(const char *name, size_t n); /* -1: there is no such field */

#endif
