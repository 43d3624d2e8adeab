/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The derivative of a program is a program: reverse mode (gradients) and forward mode (directional
 * derivatives), each of any order by repetition.  docs/derivatives.md has the rules. */
#ifndef WEFT_GRAD_H
#define WEFT_GRAD_H

#include "ir/ir.h"

typedef struct GradOptions { /* lists of buffer names; none: the default */
    const char *const *wrt;  /* inputs to differentiate by; default: every floating-point one */
    const char *const *of;   /* outputs that have a cotangent; default: every floating-point one */
    const char *const *save; /* buffers to take as inputs instead of computing them again */
    int nwrt, nof, nsave;
} GradOptions;

/* Both need a checked program and give a checked one in `arena`; the old one is not touched. */
Prog *grad_reverse(Arena *arena, const Prog *, const GradOptions *);
Prog *grad_forward(Arena *arena, const Prog *, const GradOptions *);

#endif
