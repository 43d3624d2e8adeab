/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Pruned weights and experts.  `sparse_linear` is Y = X W' + B for a weight that is stored by rows,
 * by blocks, by strips or as n:m; `grouped_mm` multiplies each group of rows by its own matrix.
 *
 * Blocks are stored transposed, W[E, C, R] with the rows of a block innermost, and operands have
 * one row for each token: the rows of a block are lanes, tokens are the rows of a register tile.
 * Entries that stand alone have no such rows: there, tokens are innermost in all operands. */
#include "ops/ops_int.h"

enum Bit {
    CSR = OPS_FIRST << 0,
    BSR = OPS_FIRST << 1,
    DBSR = OPS_FIRST << 2,
    STRIPS = OPS_FIRST << 3,
    PLACES = OPS_FIRST << 4,
    BIAS = OPS_FIRST << 5,
    GATHER = OPS_FIRST << 6,
    GATES = OPS_FIRST << 7,
    GROUPS = OPS_FIRST << 8, /* no option: the program is that of grouped_mm */
    FORMATS = CSR | BSR | DBSR | STRIPS | PLACES,
};

static const OpsOption options[] = {
    { "csr", CSR, FORMATS, "of sparse_linear: the entries of each row, X[nin, T]; default" },
    { "bsr", BSR, FORMATS, "of sparse_linear: blocks of b rows and c columns, X[T, ib, C]" },
    { "dbsr", DBSR, FORMATS, "of sparse_linear: as bsr, without block rows that have no block" },
    { "sr_bcrs", STRIPS, FORMATS, "of sparse_linear: strips of b rows, columns in groups of g" },
    { "n_m", PLACES, FORMATS, "of sparse_linear: k places in each group of g columns, X[nin, T]" },
    { "bias", BIAS, BIAS, "of sparse_linear: plus B, an element for each row of the weight" },
    { "gather", GATHER, GATHER, "of grouped_mm: X[n, C], of which row t of a group takes row j" },
    { "gates", GATES, GATES, "of grouped_mm: row t times A[t], summed into row j of Y[n, O]" },
    { NULL, 0, 0, NULL },
};

static const OpsRow rows[] = {
    { "sparse_linear", FORMATS | BIAS, "Y = X W' + B: a linear layer whose weight is sparse",
      "$1" },
    { "grouped_mm", GATHER | GATES, "Y = X W_g: each group of rows times its own matrix",
      "$Gaxis G = ${groups}, T(G) = seg$J, C = ${nin}, O = ${nout}\n"
      "$t X[$N, C], W[G, C, O]$S\n"
      "$P[t, o] += X[$j, c] * W[g, c, o]\n$Q" },
    { NULL, 0, NULL, NULL },
};

/* The programs of the formats; B is added by a statement that runs over all rows. */
static const OpsSign signs[] = {
    { '1', CSR,
      "axis I = ${nout}, E(I) = seg : j < ${nin}, T = ${tokens}\n"
      "$t X[${nin}, T], W[E]$B, Y[I, T]\n"
      "y: Y[i, t] += W[e] * X[j(e), t]\n$b",
      "$2", 0 },
    { '2', BSR,
      "axis I = ${ob}, E(I) = seg : j < ${ib}, T = ${tokens}, C = ${c}, R = ${b}\n"
      "$t X[T, ${ib}, C], W[E, C, R]$B, Y[T, I, R]\n"
      "y: for i, t, e, c, r: Y[t, i, r] += X[t, j(e), c] * W[e, c, r]\n$b",
      "$3", 0 },
    { '3', DBSR,
      "axis D = ${nd} : i < ${ob} unique, E(D) = seg : j < ${ib}\n"
      "axis T = ${tokens}, C = ${c}, R = ${b}\n"
      "$t X[T, ${ib}, C], W[E, C, R]$B, Y[T, ${ob}, R]\n"
      "y: for d, t, e, c, r: Y[t, i(d), r] += X[t, j(e), c] * W[e, c, r]\n$b",
      "$4", 0 },
    { '4', STRIPS,
      "axis I = ${ns}, G(I) = seg, C(G) = ${g} : j < ${nin} padded, T = ${tokens}, R = ${b}\n"
      "$t X[T, ${nin}], W[C, R]$B, Y[T, I, R]\n"
      "y: for i, t, g, c, r: Y[t, i, r] += X[t, j(c)] * W[c, r]\n$b",
      "$5", 0 },
    { '5', PLACES,
      "axis I = ${nout}, G(I) = ${ng}, T = ${tokens}\n"
      "axis L(G) = ${k} : o < ${g}, j = ${g} * g + o < ${g} * ${ng} unique\n"
      "$t X[${g} * ${ng}, T], W[L]$B, Y[I, T]\n"
      "y: Y[i, t] += W[l] * X[j(l), t]\n$b",
      "", 0 },
    { 'B', BIAS, ", B[$6]", "", 0 },
    { '6', CSR | PLACES, "${nout}", "$7", 0 },
    { '7', STRIPS, "${ns}, R", "${ob}, R", 0 },
    { 'b', BIAS, "b: $8", "", 0 },
    { '8', CSR | PLACES, "for x in ${nout}, t: Y[x, t] += B[x]\n", "$9", 0 },
    { '9', STRIPS, "for t, x in ${ns}, r: Y[t, x, r] += B[x, r]\n",
      "for t, x in ${ob}, r: Y[t, x, r] += B[x, r]\n", 0 },
    { 'G', 0, NULL, "", GROUPS },
    { 'J', GATHER | GATES, " : j < ${n}", "", 0 },
    { 'N', GATHER, "${n}", "T", 0 },
    { 'j', GATHER, "j(t)", "t", 0 },
    { 'S', GATES, ", A[T], Y[${n}, O]\ntemp $a P[T, O]", ", Y[T, O]", 0 },
    { 'P', GATES, "p: for g, t, c, o: P", "y: for g, t, c, o: Y", 0 },
    { 'Q', GATES, "y: for g, t, o: Y[j(t), o] += A[t] * P[t, o]\n", "", 0 },
    { 0, 0, NULL, NULL, 0 },
};

static const OpsSize sizes[] = {
    { "tokens", FORMATS, NULL },
    { "nd", DBSR, NULL },
    { "ob", BSR | DBSR, NULL },
    { "ib", BSR | DBSR, NULL },
    { "ns", STRIPS, NULL },
    { "ng", PLACES, NULL },
    { "groups", GROUPS, NULL },
    { "n", GATHER | GATES, NULL },
    { "nout", CSR | PLACES | GROUPS, NULL },
    { "nin", CSR | STRIPS | GROUPS, NULL },
    { "b=16", BSR | DBSR | STRIPS, "of sparse_linear: rows of a block or strip" },
    { "c=16", BSR | DBSR, "of sparse_linear: columns of a block" },
    { "g=4", STRIPS | PLACES, "of sparse_linear: columns of a group" },
    { "k=2", PLACES, "of sparse_linear: places in a group" },
    { NULL, 0, NULL },
};

const OpsFamily ops_weights = { rows, options, signs, sizes, CSR, NULL, NULL };
