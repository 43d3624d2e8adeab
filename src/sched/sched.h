/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Schedules say how the loops of a program are arranged; they do not change its results.  A
 * schedule is text, so that it can be read, stored and be part of a kernel's key.  It has numbers,
 * which bound what automatic passes do, and steps (step.h), which arrange loops by name. */
#ifndef WEFT_SCHED_H
#define WEFT_SCHED_H

#include "ir/loop.h"

/* sched.c: the numbers of a schedule, which are fields of the policy, and its steps. */
typedef struct Sched {
    Policy policy;
    bool set[POLICY_NFIELD]; /* by "set NAME N" */
    const char *text; /* with steps of step.h, which are read from here; NULL: there are none */
} Sched;

/* What is done when nothing else is said, for this vector machine. */
Sched sched_default(const VectorUnit *);
/* Changes what the text mentions: "tile 8; set scratch 4096; split c.k 16".  The schedule points
 * into the text if there are steps in it.  Throws ST_ARG. */
void sched_parse(Err *, const char *text, Sched *);
void sched_print(Text *, const Sched *);
/* The next step of a text: from its name to its end, which is a `;`, a comment or the end of a
 * line.  False: there is none. */
typedef struct SchedItem {
    const char *s;
    size_t n, nword; /* of all; of its name */
} SchedItem;
bool sched_next(const char **text, SchedItem *);
size_t sched_word(const char *s); /* how long a word is; what is in braces is one */
bool sched_is_number(const SchedItem *); /* pack 1 and set scratch 9 are, pack c B by 16 is not */
/* The text as a program holds it: a step a line, one space between words, no comments. */
const char *sched_lines(Arena *, const char *text);

#endif
