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

/* Rows: name, least and most, the value on the vector unit u, meaning.  These come first: their
 * names are words of schedules, "tile 8". */
#define POLICY_WORDS(X)                                                                           \
    X(tile, 0, 64, least(u->registers / 2, 8 * CACHE_LINE / 4 / lanes_of(u, T_f32)),              \
      "vector registers that the sums of a loop may take")                                        \
    X(ahead, 0, 1 << 20, 4096,                                                                    \
      "bytes of gathered rows in flight; 0: no prefetches")                          \
    X(panel, 0, 1 << 20, 0,                                                                       \
      "columns that all rows process before the next ones; 0: all")                     \
    X(pack, 0, 1, 0, "1: panels of gathered rows are first copied without gaps")     \
    X(stream, 0, 1 << 30, u->cache[2],                                                            \
      "bytes of rows from which on results use non-temporal stores; 0: never")                     \
    X(jam, 0, 1, 1, "1: sums over lanes run four at a time")                                      \
    X(sweep, 0, 64, 8,                                                                            \
      "entries of a tile that pass while sums stay in registers; 0: one")                   \
    X(compensate, 0, 1, 0, "1: sums over entries sum their rounding errors too")

/* And these are set by "set NAME N". */
#define POLICY_SETS(X)                                                                            \
    /* registers */                                                                               \
    X(sweep_sums, 1, 256, u->registers * 5 / 8, "registers for the sums of a row in a sweep")     \
    X(row_sums, 1, 256, u->registers * 6 / 8,                                                     \
      "registers for rows that a tile of edges recomputes or consumes")                           \
    X(jam_sums, 1, 256, u->registers / 2, "registers for the sums of jammed iterations")          \
    X(loop_sums, 1, 256, 16, "sums that loops fused into one may add to")                         \
    X(sum_registers, 1, 16, 2, "registers of each sum of a row")                                  \
    X(long_for_registers, 1, 1 << 20, 32,                                                         \
      "terms of an iteration that are worth registers of their own, as many again")               \
    X(long_for_array, 1, 1 << 20, 8,                                                              \
      "terms of an iteration that are summed up before an array has them added")                  \
    X(row_registers, 1, 16, 4, "registers of a row that a tile of edges recomputes or consumes")  \
    X(block_registers, 1, 16, 8, "registers of a row in a register block")                        \
    X(few_sums, 0, 256, 8, "registers of sums below which sweeps fuse loops that share nothing")  \
    /* operations, by which drafts are compared */                                                \
    X(fold, 0, 1000, 5, "operations that the sum of all lanes takes")                             \
    X(scalar, 0, 1000, 1, "operations of a term after the loop")                                  \
    X(spill, 0, 1000, 2, "operations of a sum that no register is left for")                      \
    X(usual_trips, 1, 1 << 20, 64, "iterations of a loop of unknown length")                      \
    X(recompute_terms, 0, 1 << 20, 128, "terms that take as long as to store and load a value")   \
    X(gather_gain, 0, 1000, 3, "bytes of a scatter that weigh as much as one of a gather")        \
    X(batch_saved, 0, 1 << 20, 64, "operations of an iteration that a batch has to save")         \
    X(batch_share, 1, 1000, 4, "a batch saves at least one in this many operations")              \
    X(lane_work, 0, 1000, 2, "operations for each element that goes into its lane alone")         \
    X(shared_tree, 0, 1000, 3, "nodes above which an integer is computed once")                   \
    X(long_text, 0, 1 << 20, 64, "operators of an expression that gets names for its parts")      \
    X(repeats, 1, 1000, 4, "times that an operator is written before it gets a name")             \
    /* memory */                                                                                  \
    X(near, 0, 1 << 30, u->cache[1], "bytes of a table below which gathers are not prefetched")   \
    X(ahead_least, 1, 1 << 16, 4, "entries that a prefetch is ahead at least")                    \
    X(ahead_usual, 1, 1 << 16, 16, "entries that a prefetch is ahead where rows come in parts")   \
    X(ahead_most, 1, 1 << 16, 64, "entries that a prefetch is ahead at most")                     \
    X(long_row, 1, 1 << 20, 1024, "bytes of a row from which it is worth a prefetch of its own")  \
    X(streams, 0, 1 << 16, 8, "rows at a time that the hardware prefetches by itself")            \
    X(scratch, 0, 1 << 18, 64 << 10, "bytes of one scratch array of an iteration")                \
    X(scratch_group, 0, 1 << 20, 512 << 10, "bytes of the scratch arrays of a group of rows")     \
    X(tile_scratch, 0, 1 << 18, 128 << 10, "bytes of one scratch array of a tile of edges")       \
    X(edge_scratch, 0, 1 << 18, 16 << 10, "bytes of the scratch row of an edge")                  \
    X(shared, 0, 1 << 28, 1 << 18, "elements of an array that edges of all rows add to")          \
    X(copied, 0, 1 << 28, 1 << 20, "elements of an operand that relayout copies")                 \
    X(part, 0, 1 << 20, 1024, "elements of an array that each part of a sum has a copy of")       \
    X(part_covered, 0, 1 << 28, 1 << 19, "the same where each iteration adds to all of them")     \
    X(part_short, 0, 1 << 20, 256, "length of a dimension that counts as added to as a whole")    \
    X(consumed_rows, 1, 16, 4, "rows of a result that pass over a tile of edges side by side")    \
    /* threads */                                                                                 \
    X(shares, 1, 1 << 12, 64, "pieces of work that a fused phase is cut into")                    \
    /* size of code */                                                                            \
    X(block, 1, 1 << 20, 16, "rows, terms and columns of a product that gets a nest of its own")  \
    X(unroll_trips, 0, 1 << 20, 1024, "iterations over a constant relation that are unrolled")    \
    X(unroll_nodes, 0, 1 << 20, 48000, "nodes of code that unrolling makes")                      \
    X(twice_nodes, 0, 1 << 20, 500, "nodes of a phase that exists with and without long rows")    \
    X(loop_operations, 0, 1 << 20, 400, "operations of loops fused into one")                     \
    X(lane_operations, 0, 1 << 20, 2500, "operations of a phase whose iterations are lanes")      \
    X(first_values, 0, 1 << 20, 64, "initial values of an iteration that are written out")        \
    X(init_gaps, 0, 1 << 16, 8, "gaps in a row that get initial values of their own")             \
    X(batch_values, 0, 1 << 16, 512, "values of a batch")                                         \
    X(function_lines, 1, 1 << 20, 1000, "lines of C from which a function is cut")                \
    /* search */                                                                                  \
    X(pairs, 0, 1 << 20, 20000, "pairs of products that are looked at to find common factors")    \
    X(pair_rounds, 0, 1000, 32, "common factors of pairs that are taken out")

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
