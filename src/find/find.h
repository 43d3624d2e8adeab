/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Finders write schedules.  A finder reads the program, the target's row and the policy, changes
 * nothing, and writes lines of schedule text, each with a reason.  The compiler reads these lines
 * and applies them as it does a user's.  What is legal, a finder learns by trying the step on a
 * copy of the program. */
#ifndef WEFT_FIND_H
#define WEFT_FIND_H

#include "sched/step.h"

typedef struct FindTarget {
    const StepTarget *step;
    const VectorUnit *unit;
} FindTarget;

/* Who runs what on a target whose lanes are threads: lines for the phases that no step has
 * arranged, "team c.i 8  # 32 elements of k are 8 lanes of 4".  A line that is a comment says why a
 * phase has none. */
const char *find_levels(Prog *, const FindTarget *);

#endif
