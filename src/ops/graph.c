/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Operators of graph networks.  An edge is an entry: its receiver is the row, its sender the
 * column.  Messages are functions of the sender's features U, the receiver's V and the edge's A,
 * reduced over the edges of each receiver; gat and gatv2 are attention over them.  Formats,
 * directions and reductions are those of ops_sparse. */
#include "ops/ops_int.h"

enum Bit {
    EDGES = OPS_NEXT << 0,
    SCALAR = OPS_NEXT << 1,
    SCORES = OPS_NEXT << 2,
    MASK = OPS_NEXT << 3,
    WEIGHTS = OPS_NEXT << 4,
    PLAIN = OPS_FORMATS | OPS_TURN | OPS_HEADS | OPS_LIST,
    MESSAGES = PLAIN | OPS_REDUCES | OPS_ARG | EDGES,
    ATTENDS = OPS_CSR | OPS_LIST | SCORES | MASK | WEIGHTS,
};

static const OpsOption options[] = {
    { "edges", EDGES, OPS_REDUCES | EDGES, "of messages: those of the edges, Z, not reduced" },
    { "scalar", SCALAR, SCALAR, "of messages: one value an edge for all its features, A[E]" },
    { "scores", SCORES, SCORES, "of gat, gatv2: an operand of edges G adds to what is scored" },
    { "mask", MASK, MASK, "of gat, gatv2: weights of edges times F[E, H], as dropout does" },
    { "weights", WEIGHTS, WEIGHTS, "of gat, gatv2: an output P more, the weights of the edges" },
    { NULL, 0, 0, NULL },
};

/* An element for each receiver, or for each edge, from one value an edge. */
#define MESSAGE(operands, value)              \
    "$t " operands ", $Y$H$K]$F$W\n$T"        \
    "$q$h$k] $o " value "$w\n$m"
#define DOT(operands, value)                  \
    "$t " operands ", $Y$H]$F$6\n$7"          \
    "temp $a T[E$H]\n"                        \
    "t: T[e$h] += " value "\n"                \
    "$q$h] $o T[e$h]$8\n$9"

#define BOTH(x, y, X, Y, more)                                                                  \
    { x "_add_" y, MESSAGES | (more), x " + " y ", reduced", MESSAGE(X ", " Y, "$" x " + $" y) }, \
    { x "_sub_" y, MESSAGES | (more), x " - " y ", reduced", MESSAGE(X ", " Y, "$" x " - $" y) }, \
    { x "_mul_" y, MESSAGES | (more), x " * " y ", reduced", MESSAGE(X ", " Y, "$" x " * $" y) }, \
    { x "_div_" y, MESSAGES | (more), x " / " y ", reduced", MESSAGE(X ", " Y, "$" x " / $" y) }, \
    { x "_dot_" y, MESSAGES, x " . " y ", summed over features, reduced",                       \
      DOT(X ", " Y, "$" x " * $" y) }

/* Softmax over the edges of each receiver, of scores that begin with the text. */
#define ATTEND(operands, score)                                                           \
    "$!$t " operands ", X[${n}, H, K], slope[], Y[${m}, H, K]$P\n"                          \
    "temp $a M[${m}, H], Z[${m}, H], S[E, H], T[E, H], B[${m}, H, K]\n"                   \
    score                                                                                 \
    "m: M[i, h] max= S[e, h]\n"                                                           \
    "t: T[e, h] = exp(S[e, h] - stop(M[i, h]))\n" /* the shift cancels: no derivative */  \
    "z: Z[i, h] += T[e, h]\n"                                                             \
    "b: for i, h, e, k: B[i, h, k] += T[e, h]$f * X[j(e), h, k]\n"                        \
    "y: Y[i, h, k] = B[i, h, k] / (Z[i, h] + 1e-16)\n$p" /* 0 where there are no edges */

/* x where x > 0, else slope * x; its derivative at 0 is the slope. */
#define LEAKY(x) "(slope[] * (" x ") + (1 - slope[]) * relu(" x "))"

static const OpsRow rows[] = {
    { "copy_u", MESSAGES, "features of senders, reduced", MESSAGE("$U", "$u") },
    { "copy_e", MESSAGES, "features of edges, reduced", MESSAGE("$A", "$e") },
    BOTH("u", "v", "$U", "$V", 0),
    BOTH("v", "u", "$V", "$U", 0),
    BOTH("u", "e", "$U", "$A", SCALAR),
    BOTH("e", "u", "$A", "$U", SCALAR),
    BOTH("v", "e", "$V", "$A", SCALAR),
    BOTH("e", "v", "$A", "$V", SCALAR),
    { "gat", ATTENDS, "Y: attention over edges, scored by the leaky relu of L of the receiver + R "
                      "of the sender",
      ATTEND("L[${m}, H], R[${n}, H]$G$I", "s: S[e, h] = " LEAKY("L[i, h] + R[j(e), h]$g") "\n") },
    { "gatv2", ATTENDS,
      "Y: attention over edges, scored by Q . the leaky relu of L of the receiver + X of "
      "the sender",
      ATTEND("Q[H, K], L[${m}, H, K]$J$I",
             "s: S[e, h] += Q[h, k] * " LEAKY("L[i, h, k] + X[j(e), h, k]$r") "\n") },
    { NULL, 0, NULL, NULL },
};

static const OpsSign signs[] = {
    { 'U', 0, NULL, "U[$N$H$K]", 0 },
    { 'u', 0, NULL, "U[$j$h$k]", 0 },
    { 'V', 0, NULL, "V[$M$H$K]", 0 },
    { 'v', 0, NULL, "V[$i$h$k]", 0 },
    { 'A', SCALAR, "A[$E$H]", "A[$E$H$K]", 0 },
    { 'e', SCALAR, "A[$z$h]", "A[$z$h$k]", 0 },
    { 'E', OPS_LIST, "${ne}", "E", 0 },
    { 'z', OPS_LIST, "of(e)", "e", 0 },
    { 'Y', EDGES, "Z[$E", "Y[$M", 0 },
    { 'T', OPS_MEAN, "temp $a S[$M$H$K]; temp i64 D[$M]\n", "", 0 },
    { '7', OPS_MEAN, "temp $a S[$M$H]; temp i64 D[$M]\n", "", 0 },
    { 'q', EDGES, "z: Z[$z", "$s[$i", 0 },
    { 's', OPS_MEAN, "s: S", "y: Y", 0 },
    { 'o', EDGES, "=", "$0", 0 },
    { '0', OPS_MAX, "max=", "$5", 0 },
    { '6', OPS_ARG, "; i64 W[$M$H]", "", 0 },
    { 'w', OPS_ARG, " at W[$i$h$k] = $y", "", 0 },
    { '8', OPS_ARG, " at W[$i$h] = $y", "", 0 },
    { 'y', OPS_LIST, "of(e)", "pos(e)", 0 },
    { 'm', OPS_MEAN,
      "d: for e: D[$i] += 1\n"
      "y: for r in $M$h$k: Y[r$h$k] = S[r$h$k] / max(D[r], 1)\n",
      "", 0 },
    { '9', OPS_MEAN, "d: for e: D[$i] += 1\ny: for r in $M$h: Y[r$h] = S[r$h] / max(D[r], 1)\n", "",
      0 },
    { '!', 0, NULL, "", OPS_COL | OPS_HEADS | OPS_FEATURES },
    { 'G', SCORES, ", G[$E, H]", "", 0 },
    { 'g', SCORES, " + G[$z, h]", "", 0 },
    { 'J', SCORES, ", G[$E, H, K]", "", 0 },
    { 'r', SCORES, " + G[$z, h, k]", "", 0 },
    { 'I', MASK, ", F[$E, H]", "", 0 },
    { 'f', MASK, " * F[$z, h]", "", 0 },
    { 'P', WEIGHTS, ", P[$E, H]", "", 0 },
    { 'p', WEIGHTS, "p: P[$z, h] = T[e, h]$f / (Z[i, h] + 1e-16)\n", "", 0 },
    { 0, 0, NULL, NULL, 0 },
};

const OpsFamily ops_graph = { rows,    options,        signs,      ops_entry_sizes,
                              OPS_CSR, ops_entry_axes, &ops_sparse };
