/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The suite `growth`: what each pass costs as generated programs grow. */
#ifndef WEFT_GROWTH_H
#define WEFT_GROWTH_H

#include "base/base.h"

/* count.c: what the library has done so far.  Steps are basic blocks of its code, which the compiler
 * makes it count (-fsanitize-coverage=trace-pc): the same number in every run, on a busy machine
 * too. */
extern uint64_t growth_steps;
extern const Os growth_os; /* libc's, with memory counted */
extern size_t growth_bytes, growth_peak; /* held now; the most that was held since the last reset */

/* shape.c: programs that grow, each in one way. */
typedef struct Shape {
    const char *name, *note;
    void (*write)(Text *, int n); /* a program of about n statements, or n of what it is about */
    int most, most_grad; /* the largest n that limits of the language allow; 0: any; -1: never */
    const char *sched;   /* or NULL */
} Shape;
extern const Shape growth_shape[]; /* the last one has no name */

#endif
