/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Operators whose result is a sparse matrix.  By default a program finds the entries U of the
 * result and computes their values.  Derivatives need the two apart: `structure` finds the entries
 * alone, and with `values` they are an argument, so that values and gradients belong to one
 * pattern. */
#include "ops/ops_int.h"

enum Bit {
    STRUCTURE = OPS_FIRST << 0,
    VALUES = OPS_FIRST << 1,
    PRODUCT = OPS_FIRST << 2, /* no option: the program has a size between rows and columns */
    HALVES = STRUCTURE | VALUES,
};

static const OpsOption options[] = {
    { "structure", STRUCTURE, HALVES, "of sparse results: the entries U, without values" },
    { "values", VALUES, HALVES, "of sparse results: values at entries U that are given" },
    { NULL, 0, 0, NULL },
};

#define OPERANDS                                                                             \
    "axis I = ${m}, J = compressed(I, ${n}) sorted unique, L = compressed(I, ${n}) sorted " \
    "unique, U(I) = $U\n"

static const OpsRow rows[] = {
    { "spgemm", HALVES, "C = A B: a sparse matrix times a sparse one",
      "$Paxis I = ${m}, E(I) = seg : j < ${l}, J = ${l}, F(J) = seg : k < ${n}, U(I) = $U\n$E"
      "$1$2" },
    { "sparse_add", HALVES, "C = A + B of sparse matrices: entries of either",
      OPERANDS "$B$3$4" },
    { "sparse_mul", HALVES, "C = A * B of sparse matrices, by elements: entries of both",
      OPERANDS "$M$5$6" },
    { NULL, 0, NULL, NULL },
};

static const OpsSign signs[] = {
    { 'U', VALUES, "seg : load < ${n} sorted unique", "built : load < ${n}", 0 },
    { 'P', 0, NULL, "", PRODUCT },
    { 'E', STRUCTURE, "", "$t A[E], B[F], C[I, U]\n", 0 },
    { 'B', STRUCTURE, "", "$t A[I, J], B[I, L], C[I, U]\n", 0 },
    { 'M', STRUCTURE, "$t B[I, L]\n", "$t A[I, J], B[I, L], C[I, U]\n", 0 },
    { '1', VALUES, "", "u: for i, e, f in F(j(e)): U(i) |= k(f)\n", 0 },
    { '2', STRUCTURE, "", "c: for i, e, f in F(j(e)): C[i, k(f)] += A[e] * B[f]\n", 0 },
    { '3', VALUES, "", "u: U(i) |= j\nv: U(i) |= l\n", 0 },
    { '4', STRUCTURE, "", "c: C[i, u] = A[i, u] + B[i, u]\n", 0 },
    { '5', VALUES, "", "u: U(i) |= j if stored(B[i, j])\n", 0 },
    { '6', STRUCTURE, "", "c: C[i, u] = A[i, u] * B[i, u]\n", 0 },
    { 0, 0, NULL, NULL, 0 },
};

static const OpsSize sizes[] = {
    { "m", 0, NULL },
    { "l", PRODUCT, NULL },
    { "n", 0, NULL },
    { NULL, 0, NULL },
};

const OpsFamily ops_matrix = { rows, options, signs, sizes, 0, NULL, NULL };
