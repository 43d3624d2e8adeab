/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Generated programs of growing size, for the suite `growth`. */
#ifndef WEFT_GROWTH_H
#define WEFT_GROWTH_H

#include "base/base.h"

typedef struct Shape {
    const char *name, *note;
    void (*write)(Text *, int n); /* a program of about n statements, or n of what it is about */
    int most;                     /* the largest n that limits of the language allow; 0: any */
} Shape;
extern const Shape growth_shape[]; /* the last one has no name */

#endif
