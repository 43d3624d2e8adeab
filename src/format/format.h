/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Storage of sparse matrices in axis trees: which trees take a matrix, packing and unpacking. */
#ifndef WEFT_FORMAT_H
#define WEFT_FORMAT_H

#include "ir/ir.h"

/* A matrix by its entries, sorted by (row, column), each place at most once. */
typedef struct Coo {
    int64_t m, n, nnz;
    int64_t *row, *col;
    double *val; /* one of the two; the other is NULL */
    int64_t *ival;
} Coo;

void fmt_transpose(Arena *, Coo *); /* stays sorted */

/* pack.c: a buffer over axes with two coordinates, (row, column) in the order of the axes. */
typedef struct FmtTree {
    const Buf *buf;
    Axis *row, *col; /* col is NULL when one axis has both coordinates */
    const Coord *i, *j;
} FmtTree;

/* Throws, with the remedy, for a buffer whose axes are not a matrix that can be packed. */
void fmt_tree(Arena *, const Buf *, FmtTree *out);

/* Arrays of the axes and values of the buffer.  Data is NULL for what the tree does not have. */
typedef struct Packed {
    int64_t rows;  /* positions of the row axis */
    int64_t width; /* of the column axis under each row, when that is the same for all; else -1 */
    Array start, i, j, val;
} Packed;

/* `width` is that of the column axis when it is given, or -1: the longest row then decides. */
void fmt_pack(Arena *, const FmtTree *, const Coo *, int64_t width, Packed *out);

/* The entries that the arrays hold; not sorted when the axes are not. */
void fmt_unpack(Arena *, const FmtTree *, const Prog *, const Env *, Coo *out);

/* Puts entries of a matrix, or numbers of a file, into an array of the given type; throws when
 * one does not fit. */
void fmt_store(Arena *, const char *name, const Array *, int64_t at, double val);
void fmt_store_int(Arena *, const char *name, const Array *, int64_t at, int64_t val);

#endif
