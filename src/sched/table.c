/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The table of steps. */
#include "sched/step.h"

#include <string.h>

/* The note of the list begins with the arguments and ends with the stage. */
#define ON_COORDINATES "on coordinates"
#define ON_POSITIONS "on positions"
#define ON_LOOPS "on loops"
#define STEP(name, stage, args, note, apply) \
    { name, STAGE_##stage, false, args, args ": " note "; " ON_##stage, apply }
#define LAST(name, args, note, apply) \
    { name, STAGE_LOOPS, true, args, args ": " note "; on the last loops", apply }

const Step step_table[] = {
    STEP("format", COORDINATES, "AXIS NAME(...)",
      "the entries of an axis are stored in a format of `weft list formats`", NULL),
    STEP("split", POSITIONS, "LOOP N [tail|mask|exact]",
      "a loop becomes two, c.k.0 over blocks and c.k.1 over N iterations each", step_split),
    STEP("fuse", POSITIONS, "OUTER INNER",
      "two loops, or axes of a statement on coordinates, become one, c.i_k", step_fuse),
    STEP("reorder", POSITIONS, "LOOP LOOP...",
      "put loops of a nest, or axes of a statement on coordinates, in this order",
      step_reorder),
    STEP("unroll", POSITIONS, "LOOP", "a loop of constant length becomes straight-line code",
      step_unroll),
    STEP("peel", POSITIONS, "LOOP", "the short last block of a split becomes a separate nest",
      step_peel),
    STEP("parallel", POSITIONS, "LOOP [balance AXIS]",
      "threads share the iterations of the outermost loop", step_parallel),
    STEP("cache_write", POSITIONS, "LABEL ARRAY at LOOP [shared]",
      "keep the elements that the loop writes in registers, or in a shared array, while it runs",
      step_cache_write),
    STEP("decompose_reduction", POSITIONS, "LABEL at LOOP",
      "initialise elements where the loop adds to them", step_decompose),
    STEP("compute_at", POSITIONS, "LABEL at LOOP",
      "compute the element of a temp inside the loop that reads it", step_compute_at),
    STEP("compute_inline", POSITIONS, "LABEL", "compute a temp wherever it is read",
      step_inline),
    STEP("prefetch", POSITIONS, "LABEL ARRAY at LOOP N",
      "prefetch the elements that are read N iterations later", step_prefetch),
    STEP("bind", POSITIONS, "LOOP threads|grid|block|warp|thread [WIDTH] [balance AXIS]",
      "a loop runs on a level of the machine", step_bind),
    STEP("cache_read", POSITIONS, "LABEL ARRAY at LOOP [shared]",
      "first copy the elements that the loop reads into registers, or into a shared array",
      step_cache_read),
    STEP("rfactor", POSITIONS, "LOOP [shared]",
      "each iteration sums alone, and the sums are added in order", step_rfactor),
    STEP("merge", POSITIONS, "PHASE PHASE... [by N | each N] [balance AXIS]",
      "independent parallel phases become one", step_merge),
    STEP("pack", POSITIONS, "LABEL ARRAY by N",
      "first copy an operand into panels of N columns", step_pack),
    STEP("vectorize", LOOPS, "LOOP [LANES [by N [packed]]]",
      "LANES iterations run at once, in N registers; packed: N neighbours a lane",
      step_vectorize),
    STEP("tensorize", LOOPS, "LOOP [ROWS COLUMNS]",
      "a product of matrices runs in tiles of registers", step_tensorize),
    LAST("team", "LOOP N [by M]",
         "N lanes of a warp take an iteration of a phase; by M: M parts of N lanes together",
         step_team),
    LAST("deal", "LOOP", "the parts of a team take the iterations in turns", step_deal),
    LAST("wide", "LOOP N", "a lane has N neighbours, by one load or store", step_wide),
    LAST("turns", "LOOP N", "N iterations are written out in one turn", step_turns),
    { NULL, STAGE_LOOPS, false, NULL, NULL, NULL },
};

const Step *step_named(const char *word, size_t n)
{
    for (const Step *s = step_table; s->name != NULL; s++)
        if (strlen(s->name) == n && memcmp(s->name, word, n) == 0)
            return s;
    return NULL;
}
