/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Structures that are made rather than read: graphs by generators.  Knows arrays, no programs. */
#ifndef WEFT_GEOM_H
#define WEFT_GEOM_H

#include "base/base.h"

/* graph.c: a graph as CSR; the columns of a row ascend, each at most once. */
typedef struct GeomGraph {
    int64_t m, n, nnz;
    int64_t *start, *col; /* m + 1 and nnz */
} GeomGraph;

/* The name of generator i, NULL after the last; does a spec begin with one? */
const char *geom_generator(int i);
bool geom_is_spec(const char *spec);

/* From "powerlaw:n=1000:nnz=8000:a=2.1:seed=1"; weft.h has the others.  The same graph on every
 * machine, in time and memory proportional to n + nnz.  Throws ST_ARG. */
void geom_graph(Arena *, const char *spec, GeomGraph *out);

/* From n entries (row, col) in any order, below out->m and out->n: sorted, each place once. */
void geom_graph_of(Arena *, const int64_t *row, const int64_t *col, int64_t n, GeomGraph *out);

#endif
