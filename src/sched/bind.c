/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * bind LOOP LEVEL: a loop runs on a level of the machine.  A CPU has threads, for the outermost
 * loop of a phase, and lanes, which vectorize is for. */
#include "sched/step.h"

#include <string.h>

void step_bind(StepCall *c)
{
    const StepLine *own = c->line;
    StepLine line = *own;
    const char *level = own->nword > 1 ? own->word[1] : "";

    step_count(c, 2, 4);
    step_find(c, own->word[0]);
    if (strcmp(level, "lanes") == 0)
        step_refuse(c, "lanes come when indices are flat; write vectorize %s", own->word[0]);
    if (strcmp(level, "threads") != 0)
        step_refuse(c, "the target has no level %s; it has threads and lanes", level);
    for (int i = 1; i + 1 < own->nword; i++)
        line.word[i] = own->word[i + 1];
    line.nword = own->nword - 1;
    c->line = &line;
    step_parallel(c);
    c->line = own;
}
