/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Operators over the entries of a sparse matrix.  Each is written once, over entries e with a row
 * and a column.  Signs like $i put in where these come from (CSR, CSC, COO), which of the two is
 * which (transposed), and further axes (heads, batch).  So every operator has every form. */
#include "ops/ops_int.h"

enum { ALWAYS = OPS_FORMATS | OPS_TURN | OPS_HEADS | OPS_BATCH };

static const OpsOption options[] = {
    { "csr", OPS_CSR, OPS_FORMATS, "E.start, E.j: entries by row; default" },
    { "csc", OPS_CSC, OPS_FORMATS, "E.start, E.i: entries by column" },
    { "coo", OPS_COO, OPS_FORMATS, "E.i, E.j: entries in any order" },
    { "t", OPS_TURN, OPS_TURN, "of the transpose: rows and columns change places" },
    { "heads", OPS_HEADS, OPS_HEADS,
      "several values an entry, A[E, H], each with its part of B[n, H, K]" },
    { "batch", OPS_BATCH, OPS_BATCH, "several dense operands at once, B[L, n, K]" },
    { "values", OPS_VALUES, OPS_VALUES, "of sddmm: times the value of the entry" },
    { "nodes", OPS_NODES, OPS_NODES,
      "of segment_*: X[n, K] at the columns of the entries, not X[E, K]" },
    { "mean", OPS_MEAN, OPS_REDUCES,
      "of each row the mean instead of the sum; 0 where it has none" },
    { "max", OPS_MAX, OPS_REDUCES, "the largest instead of the sum; 0 where a row has none" },
    { "min", OPS_MIN, OPS_REDUCES, "the smallest, likewise" },
    { "arg", OPS_ARG, OPS_ARG, "of max and min: the entry that won, W; -1 for none" },
    { "list", OPS_LIST, OPS_LIST,
      "values of entries in the order of a list: entry e has those at E.of" },
    { NULL, 0, 0, NULL },
};

#define LARGEST(op)                 \
    "$t $X, Y[$L$M$H$K] fill 0$W\n" \
    "y: Y[$l$i$h$k] " op " $x$w\n"

static const OpsRow rows[] = {
    { "spmv", ALWAYS, "Y = A X: a sparse matrix times a vector",
      "$t A[E$H], X[$L$N$H], Y[$L$M$H]\n"
      "y: Y[$l$i$h] += A[e$h] * X[$l$j$h]\n" },
    { "spmm", ALWAYS | OPS_REDUCES | OPS_ARG,
      "C = A B: a sparse matrix times a dense one; or the mean, max, min of the products",
      "$t A[E$H], B[$L$N$H$K], C[$L$M$H$K]$F$W\n$T"
      "$c[$l$i$h$k] $o A[e$h] * B[$l$j$h$k]$w\n$C" },
    { "sddmm", ALWAYS | OPS_VALUES, "Z = X Y' at the entries of a sparse matrix",
      "$t $VX[$L$M$H$K], Y[$L$N$H$K], Z[$LE$H]\n"
      "z: Z[$le$h] += $vX[$l$i$h$k] * Y[$l$j$h$k]\n" },
    { "segment_sum", ALWAYS | OPS_NODES, "Y: of each row the sum of X over its entries",
      "$t $X, Y[$L$M$H$K]\n"
      "y: Y[$l$i$h$k] += $x\n" },
    { "segment_mean", ALWAYS | OPS_NODES,
      "Y: of each row the mean of X over its entries; 0 where it has none",
      "$t $X, Y[$L$M$H$K]\n"
      "temp $a S[$L$M$H$K]; temp i64 D[$M]\n"
      "s: S[$l$i$h$k] += $x\n"
      "d: for e: D[$i] += 1\n"
      "y: for r in $M$b$h$k: Y[$lr$h$k] = S[$lr$h$k] / max(D[r], 1)\n" },
    { "segment_max", ALWAYS | OPS_NODES | OPS_ARG,
      "Y: of each row the largest X; 0 where it has none",
      LARGEST("max=") },
    { "segment_min", ALWAYS | OPS_NODES | OPS_ARG,
      "Y: of each row the smallest X; 0 where it has none",
      LARGEST("min=") },
    { "softmax", ALWAYS, "P: of each row the softmax of S over its entries",
      "$t S[$LE$H], P[$LE$H]\n"
      "temp $a M[$L$M$H], T[$LE$H], Z[$L$M$H]\n"
      "m: M[$l$i$h] max= S[$le$h]\n"
      "t: T[$le$h] = exp(S[$le$h] - stop(M[$l$i$h]))\n" /* the shift cancels: no derivative */
      "z: Z[$l$i$h] += T[$le$h]\n"
      "p: P[$le$h] = T[$le$h] / Z[$l$i$h]\n" },
    { NULL, 0, NULL, NULL },
};

static const OpsSign signs[] = {
    { 'M', OPS_TURN, "${n}", "${m}", 0 },
    { 'N', OPS_TURN, "${m}", "${n}", 0 },
    { 'i', OPS_TURN, "$2", "$1", 0 },
    { 'j', OPS_TURN, "$1", "$2", 0 },
    { '1', OPS_CSR, "i", "i(e)", OPS_ROW },
    { '2', OPS_CSC, "j", "j(e)", OPS_COL },
    { 'L', OPS_BATCH, "L, ", "", 0 },
    { 'l', OPS_BATCH, "l, ", "", 0 },
    { 'b', OPS_BATCH, ", l", "", 0 },
    { 'H', OPS_HEADS, ", H", "", 0 },
    { 'h', OPS_HEADS, ", h", "", 0 },
    { 'K', 0, NULL, ", K", OPS_FEATURES },
    { 'k', 0, NULL, ", k", OPS_FEATURES },
    { 'V', OPS_VALUES, "A[E$H], ", "", 0 },
    { 'v', OPS_VALUES, "A[e$h] * ", "", 0 },
    { 'X', OPS_NODES, "X[$L$N$H$K]", "X[$LE$H$K]", 0 },
    { 'x', OPS_NODES, "X[$l$j$h$k]", "X[$le$h$k]", 0 },
    { 'W', OPS_ARG, "; i64 W[$L$M$H$K]", "", 0 },
    { 'F', OPS_MAX | OPS_MIN, " fill 0", "", 0 },
    { 'T', OPS_MEAN, "temp $a S[$L$M$H$K]; temp i64 D[$M]\n", "", 0 },
    { 'c', OPS_MEAN, "s: S", "c: C", 0 },
    { 'o', OPS_MAX, "max=", "$5", 0 },
    { '5', OPS_MIN, "min=", "+=", 0 },
    { 'C', OPS_MEAN,
      "d: for e: D[$i] += 1\n"
      "c: for r in $M$b$h$k: C[$lr$h$k] = S[$lr$h$k] / max(D[r], 1)\n",
      "", 0 },
    { 'w', OPS_ARG, " at W[$l$i$h$k] = pos(e)", "", 0 },
    { 0, 0, NULL, NULL, 0 },
};

const OpsSize ops_entry_sizes[] = {
    { "nnz", OPS_COO, NULL },
    { "m", OPS_ROW | OPS_CSR, NULL },
    { "n", OPS_COL | OPS_CSC, NULL },
    { "batch", OPS_BATCH, NULL },
    { "heads", OPS_HEADS, NULL },
    { "f", OPS_FEATURES, NULL },
    { "ne", OPS_LIST, NULL },
    { NULL, 0, NULL },
};

void ops_entry_axes(const OpsSpec *spec, Text *out, unsigned bits)
{
    bool row = (bits & OPS_ROW) && !(bits & OPS_CSR), col = (bits & OPS_COL) && !(bits & OPS_CSC);
    const char *before = " : ";

    if (bits & OPS_COO)
        ops_put(spec, out, "axis E = ${nnz}");
    else
        ops_put(spec, out,
                bits & OPS_CSR ? "axis I = ${m}, E(I) = seg" : "axis J = ${n}, E(J) = seg");
    if (row) {
        text_str(out, before);
        ops_put(spec, out, "i < ${m}");
        before = ", ";
    }
    if (col) {
        text_str(out, before);
        ops_put(spec, out, "j < ${n}");
        before = ", ";
    }
    if (bits & OPS_LIST) {
        text_str(out, before);
        ops_put(spec, out, "of < ${ne} once");
    }
    text_char(out, '\n');
    if (bits & OPS_BATCH)
        ops_put(spec, out, "axis L = ${batch}\n");
    if (bits & OPS_HEADS)
        ops_put(spec, out, "axis H = ${heads}\n");
    if (bits & OPS_FEATURES)
        ops_put(spec, out, "axis K = ${f}\n");
}

const OpsFamily ops_sparse = { rows,    options,        signs, ops_entry_sizes,
                               OPS_CSR, ops_entry_axes, NULL };
