/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * What the generators share: random numbers that are the same on every machine, and the parameters
 * in a spec. */
#ifndef WEFT_GEOM_INT_H
#define WEFT_GEOM_INT_H

#include "geom/geom.h"

/* spec.c: splitmix64 */
typedef struct Random {
    uint64_t state;
} Random;

uint64_t geom_next(Random *);
int64_t geom_below(Random *, int64_t n);
double geom_unit(Random *); /* 0 <= u < 1 */

typedef struct Param {
    const char *name;
    double least, most, value; /* value: without a word on it; NaN when it must be given */
    bool whole;
} Param;

enum { SPEC_PARAMS = 8 }; /* the last has no name */

typedef struct Spec {
    Arena *arena;
    const char *text;
    Param param[SPEC_PARAMS];
    Random random; /* from the parameter `seed`, which every generator has */
} Spec;

/* The parameters of a generator, and what words, ":name=value:name=value" or NULL, say of them. */
void geom_spec(Spec *, Arena *, const char *text, const char *words, const Param *);
double geom_get(const Spec *, const char *name);
int64_t geom_whole(const Spec *, const char *name);

#endif
