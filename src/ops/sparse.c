/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Operators over the entries of a sparse matrix.  Each is written once, over entries e with a row
 * and a column.  Signs like $i put in where these come from (CSR, CSC, COO), which of the two is
 * which (transposed), and further axes (heads, batch).  So every operator has every form. */
#include "ops/ops_int.h"

/* Options, and what a program turned out to need. */
enum Bit {
    CSR = OPS_FIRST << 0,
    CSC = OPS_FIRST << 1,
    COO = OPS_FIRST << 2,
    TURN = OPS_FIRST << 3,
    HEADS = OPS_FIRST << 4,
    BATCH = OPS_FIRST << 5,
    VALUES = OPS_FIRST << 6,
    NODES = OPS_FIRST << 7,
    ARG = OPS_FIRST << 8,
    FEATURES = OPS_FIRST << 9,
    ROW = OPS_FIRST << 10,
    COL = OPS_FIRST << 11,
    FORMATS = CSR | CSC | COO,
    ALWAYS = FORMATS | TURN | HEADS | BATCH,
};

static const OpsOption options[] = {
    { "csr", CSR, FORMATS, "E.start, E.j: entries by row; default" },
    { "csc", CSC, FORMATS, "E.start, E.i: entries by column" },
    { "coo", COO, FORMATS, "E.i, E.j: entries in any order" },
    { "t", TURN, TURN, "of the transpose: rows and columns change places" },
    { "heads", HEADS, HEADS, "several values an entry, A[E, H], each with its part of B[n, H, K]" },
    { "batch", BATCH, BATCH, "several dense operands at once, B[L, n, K]" },
    { "values", VALUES, VALUES, "of sddmm: times the value of the entry" },
    { "nodes", NODES, NODES, "of segment_*: X[n, K] at the columns of the entries, not X[E, K]" },
    { "arg", ARG, ARG, "of segment_max, segment_min: the entry that won, W; -1 for none" },
    { NULL, 0, 0, NULL },
};

#define LARGEST(op)                 \
    "$t $X, Y[$L$M$H$K] fill 0$W\n" \
    "y: Y[$l$i$h$k] " op " $x$w\n"

static const OpsRow rows[] = {
    { "spmv", ALWAYS, "Y = A X: a sparse matrix times a vector",
      "$t A[E$H], X[$L$N$H], Y[$L$M$H]\n"
      "y: Y[$l$i$h] += A[e$h] * X[$l$j$h]\n" },
    { "spmm", ALWAYS, "C = A B: a sparse matrix times a dense one",
      "$t A[E$H], B[$L$N$H$K], C[$L$M$H$K]\n"
      "c: C[$l$i$h$k] += A[e$h] * B[$l$j$h$k]\n" },
    { "sddmm", ALWAYS | VALUES, "Z = X Y' at the entries of a sparse matrix",
      "$t $VX[$L$M$H$K], Y[$L$N$H$K], Z[$LE$H]\n"
      "z: Z[$le$h] += $vX[$l$i$h$k] * Y[$l$j$h$k]\n" },
    { "segment_sum", ALWAYS | NODES, "Y: of each row the sum of X over its entries",
      "$t $X, Y[$L$M$H$K]\n"
      "y: Y[$l$i$h$k] += $x\n" },
    { "segment_mean", ALWAYS | NODES,
      "Y: of each row the mean of X over its entries; 0 where it has none",
      "$t $X, Y[$L$M$H$K]\n"
      "temp $a S[$L$M$H$K]; temp i64 D[$M]\n"
      "s: S[$l$i$h$k] += $x\n"
      "d: for e: D[$i] += 1\n"
      "y: for r in $M$b$h$k: Y[$lr$h$k] = S[$lr$h$k] / max(D[r], 1)\n" },
    { "segment_max", ALWAYS | NODES | ARG, "Y: of each row the largest X; 0 where it has none",
      LARGEST("max=") },
    { "segment_min", ALWAYS | NODES | ARG, "Y: of each row the smallest X; 0 where it has none",
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
    { 'M', TURN, "${n}", "${m}", 0 },
    { 'N', TURN, "${m}", "${n}", 0 },
    { 'i', TURN, "$2", "$1", 0 },
    { 'j', TURN, "$1", "$2", 0 },
    { '1', CSR, "i", "i(e)", ROW },
    { '2', CSC, "j", "j(e)", COL },
    { 'L', BATCH, "L, ", "", 0 },
    { 'l', BATCH, "l, ", "", 0 },
    { 'b', BATCH, ", l", "", 0 },
    { 'H', HEADS, ", H", "", 0 },
    { 'h', HEADS, ", h", "", 0 },
    { 'K', 0, NULL, ", K", FEATURES },
    { 'k', 0, NULL, ", k", FEATURES },
    { 'V', VALUES, "A[E$H], ", "", 0 },
    { 'v', VALUES, "A[e$h] * ", "", 0 },
    { 'X', NODES, "X[$L$N$H$K]", "X[$LE$H$K]", 0 },
    { 'x', NODES, "X[$l$j$h$k]", "X[$le$h$k]", 0 },
    { 'W', ARG, "; i64 W[$L$M$H$K]", "", 0 },
    { 'w', ARG, " at W[$l$i$h$k] = pos(e)", "", 0 },
    { 0, 0, NULL, NULL, 0 },
};

static const OpsSize sizes[] = {
    { "nnz", COO, 0, NULL },
    { "m", ROW | CSR, 0, NULL },
    { "n", COL | CSC, 0, NULL },
    { "batch", BATCH, 0, NULL },
    { "heads", HEADS, 0, NULL },
    { "f", FEATURES, 0, NULL },
    { NULL, 0, 0, NULL },
};

/* Entries, with the coordinates that are needed and that the format does not tell by itself. */
static void put_axes(const OpsSpec *spec, Text *out, unsigned bits)
{
    bool row = (bits & ROW) && !(bits & CSR), col = (bits & COL) && !(bits & CSC);

    if (bits & COO)
        ops_put(spec, out, "axis E = ${nnz}");
    else
        ops_put(spec, out, bits & CSR ? "axis I = ${m}, E(I) = seg" : "axis J = ${n}, E(J) = seg");
    ops_put(spec, out, row ? " : i < ${m}" : "");
    ops_put(spec, out, row && col ? ", j < ${n}" : col ? " : j < ${n}" : "");
    text_char(out, '\n');
    if (bits & BATCH)
        ops_put(spec, out, "axis L = ${batch}\n");
    if (bits & HEADS)
        ops_put(spec, out, "axis H = ${heads}\n");
    if (bits & FEATURES)
        ops_put(spec, out, "axis K = ${f}\n");
}

const OpsFamily ops_sparse = { rows, options, signs, sizes, CSR, put_axes };
