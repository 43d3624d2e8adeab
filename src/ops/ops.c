/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The table of operators, and how a row and a set of options become the text of a program.  An
 * operator is written once, over entries e with a row and a column; where these come from (CSR,
 * CSC, COO), which of the two is which (transposed) and which further axes there are (heads, batch)
 * is put in by signs like $i.  So every operator has every form. */
#include "ops/ops.h"

#include <string.h>

/* Options, and what a program turned out to need. */
enum Bit {
    F32 = 1 << 0,
    F64 = 1 << 1,
    F16 = 1 << 2,
    BF16 = 1 << 3,
    CSR = 1 << 4,
    CSC = 1 << 5,
    COO = 1 << 6,
    TURN = 1 << 7,
    HEADS = 1 << 8,
    BATCH = 1 << 9,
    VALUES = 1 << 10,
    NODES = 1 << 11,
    ARG = 1 << 12,
    FEATURES = 1 << 13,
    ROW = 1 << 14,
    COL = 1 << 15,
    TYPES = F32 | F64 | F16 | BF16,
    FORMATS = CSR | CSC | COO,
    ALWAYS = TYPES | FORMATS | TURN | HEADS | BATCH,
};

static const struct {
    const char *name;
    unsigned bit, group; /* at most one of a group */
    const char *note;
} options[] = {
    { "f32", F32, TYPES, "elements; without a word on them, this" },
    { "f64", F64, TYPES, "elements" },
    { "f16", F16, TYPES, "elements in memory; computed and summed in f32, rounded once" },
    { "bf16", BF16, TYPES, "the same" },
    { "csr", CSR, FORMATS, "E.start, E.j: entries by row; without a word on them, this" },
    { "csc", CSC, FORMATS, "E.start, E.i: entries by column" },
    { "coo", COO, FORMATS, "E.i, E.j: entries in any order" },
    { "t", TURN, TURN, "of the transpose: rows and columns change places" },
    { "heads", HEADS, HEADS, "several values an entry, A[E, H], each with its part of B[n, H, K]" },
    { "batch", BATCH, BATCH, "several dense operands at once, B[L, n, K]" },
    { "values", VALUES, VALUES, "of sddmm: times the value of the entry" },
    { "nodes", NODES, NODES, "of segment_*: X[n, K] at the columns of the entries, not X[E, K]" },
    { "arg", ARG, ARG, "of segment_max, segment_min: the entry that won, W; -1 for none" },
};
enum { NOPTION = sizeof options / sizeof *options };

#define LARGEST(op)                 \
    "$t $X, Y[$L$M$H$K] fill 0$W\n" \
    "y: Y[$l$i$h$k] " op " $x$w\n"

static const struct {
    const char *name;
    unsigned takes; /* options besides ALWAYS */
    const char *note, *text;
} ops[] = {
    { "spmv", 0, "Y = A X: a sparse matrix times a vector",
      "$t A[E$H], X[$L$N$H], Y[$L$M$H]\n"
      "y: Y[$l$i$h] += A[e$h] * X[$l$j$h]\n" },
    { "spmm", 0, "C = A B: a sparse matrix times a dense one",
      "$t A[E$H], B[$L$N$H$K], C[$L$M$H$K]\n"
      "c: C[$l$i$h$k] += A[e$h] * B[$l$j$h$k]\n" },
    { "sddmm", VALUES, "Z = X Y' at the entries of a sparse matrix",
      "$t $VX[$L$M$H$K], Y[$L$N$H$K], Z[$LE$H]\n"
      "z: Z[$le$h] += $vX[$l$i$h$k] * Y[$l$j$h$k]\n" },
    { "segment_sum", NODES, "Y: of each row the sum of X over its entries",
      "$t $X, Y[$L$M$H$K]\n"
      "y: Y[$l$i$h$k] += $x\n" },
    { "segment_mean", NODES, "Y: of each row the mean of X over its entries; 0 where it has none",
      "$t $X, Y[$L$M$H$K]\n"
      "temp $a S[$L$M$H$K]; temp i64 D[$M]\n"
      "s: S[$l$i$h$k] += $x\n"
      "d: for e: D[$i] += 1\n"
      "y: for r in $M$b$h$k: Y[$lr$h$k] = S[$lr$h$k] / max(D[r], 1)\n" },
    { "segment_max", NODES | ARG, "Y: of each row the largest X; 0 where it has none",
      LARGEST("max=") },
    { "segment_min", NODES | ARG, "Y: of each row the smallest X; 0 where it has none",
      LARGEST("min=") },
    { "softmax", 0, "P: of each row the softmax of S over its entries",
      "$t S[$LE$H], P[$LE$H]\n"
      "temp $a M[$L$M$H], T[$LE$H], Z[$L$M$H]\n"
      "m: M[$l$i$h] max= S[$le$h]\n"
      "t: T[$le$h] = exp(S[$le$h] - stop(M[$l$i$h]))\n" /* the shift cancels: no derivative */
      "z: Z[$l$i$h] += T[$le$h]\n"
      "p: P[$le$h] = T[$le$h] / Z[$l$i$h]\n" },
};
enum { NOP = sizeof ops / sizeof *ops };

/* What a sign stands for when a bit is set, and when it is not; the texts may have signs too. */
static const struct {
    char sign;
    unsigned bit;
    const char *with, *without;
    unsigned needs; /* what the program has to have then */
} signs[] = {
    { 'M', TURN, "n", "m", 0 },
    { 'N', TURN, "m", "n", 0 },
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
    { 'a', F64, "f64", "f32", 0 }, /* what sums are formed in */
    { 't', F64, "f64", "$3", 0 },
    { '3', F16, "f16", "$4", 0 },
    { '4', BF16, "bf16", "f32", 0 },
};
enum { NSIGN = sizeof signs / sizeof *signs };

const char *ops_name(int i, const char **note)
{
    *note = i < NOP ? ops[i].note : NULL;
    return i < NOP ? ops[i].name : NULL;
}

const char *ops_option(int i, const char **note)
{
    *note = i < NOPTION ? options[i].note : NULL;
    return i < NOPTION ? options[i].name : NULL;
}

static bool is_word(const char *s, size_t n, const char *word)
{
    return strlen(word) == n && memcmp(s, word, n) == 0;
}

static int find_op(Text *out, const char *spec, size_t n)
{
    Text known = { .arena = out->arena };

    for (int i = 0; i < NOP; i++) {
        if (is_word(spec, n, ops[i].name))
            return i;
        text_f(&known, " %s", ops[i].name);
    }
    err_throw(out->arena->err, ST_ARG, "there is no operator %.*s; there are%s",
              (int)(n < 64 ? n : 64), spec, known.s);
}

static int find_option(Text *out, int op, const char *s, size_t n)
{
    Text known = { .arena = out->arena };

    for (int i = 0; i < NOPTION; i++) {
        if (!(options[i].bit & (ALWAYS | ops[op].takes)))
            continue;
        if (is_word(s, n, options[i].name))
            return i;
        text_f(&known, " %s", options[i].name);
    }
    err_throw(out->arena->err, ST_ARG, "%s has no option %.*s; it takes%s", ops[op].name,
              (int)(n < 64 ? n : 64), s, known.s);
}

/* The options in "f64:heads". */
static unsigned read_options(Text *out, int op, const char *s)
{
    unsigned bits = 0;

    while (*s == ':') {
        size_t n = strcspn(++s, ":");
        int i = find_option(out, op, s, n);

        if (bits & options[i].bit)
            err_throw(out->arena->err, ST_ARG, "%s: the option %s is given twice", ops[op].name,
                      options[i].name);
        for (int k = 0; k < NOPTION; k++)
            if (bits & options[i].group & options[k].bit)
                err_throw(out->arena->err, ST_ARG, "%s: the options %s and %s exclude each other",
                          ops[op].name, options[k].name, options[i].name);
        bits |= options[i].bit;
        s += n;
    }
    if (!(bits & TYPES))
        bits |= F32;
    return bits & FORMATS ? bits : bits | CSR;
}

/* Writes a text with its signs replaced; returns what they need. */
static unsigned put(Text *out, unsigned bits, const char *text)
{
    unsigned needs = 0;

    for (; *text != 0; text++) {
        if (*text != '$') {
            text_char(out, *text);
            continue;
        }
        text++;
        for (int i = 0; i < NSIGN; i++)
            if (signs[i].sign == *text)
                needs |= signs[i].needs |
                         put(out, bits, bits & signs[i].bit ? signs[i].with : signs[i].without);
    }
    return needs;
}

/* "spmm_f64_heads(m, n, heads, f)": two specs have one name only if they are one program. */
static void put_head(Text *out, int op, unsigned bits)
{
    static const struct {
        unsigned bit;
        const char *name;
    } size[] = { { COO, "nnz" },     { ROW | CSR, "m" }, { COL | CSC, "n" },
                 { BATCH, "batch" }, { HEADS, "heads" }, { FEATURES, "f" } };
    const char *comma = "";

    text_f(out, "program %s", ops[op].name);
    for (int i = 0; i < NOPTION; i++)
        if (bits & options[i].bit & ~(unsigned)(F32 | CSR))
            text_f(out, "_%s", options[i].name);
    text_char(out, '(');
    for (size_t i = 0; i < sizeof size / sizeof *size; i++)
        if (bits & size[i].bit) {
            text_f(out, "%s%s", comma, size[i].name);
            comma = ", ";
        }
    text_str(out, ")\n");
}

/* Entries, with the coordinates that are needed and that the format does not tell by itself. */
static void put_axes(Text *out, unsigned bits)
{
    bool row = (bits & ROW) && !(bits & CSR), col = (bits & COL) && !(bits & CSC);

    if (bits & COO)
        text_str(out, "axis E = nnz");
    else
        text_str(out, bits & CSR ? "axis I = m, E(I) = seg" : "axis J = n, E(J) = seg");
    text_str(out, row ? " : i < m" : "");
    text_str(out, row && col ? ", j < n" : col ? " : j < n" : "");
    text_char(out, '\n');
    if (bits & BATCH)
        text_str(out, "axis L = batch\n");
    if (bits & HEADS)
        text_str(out, "axis H = heads\n");
    if (bits & FEATURES)
        text_str(out, "axis K = f\n");
}

void ops_write(Text *out, const char *spec)
{
    size_t n = strcspn(spec, ":");
    int op = find_op(out, spec, n);
    unsigned bits = read_options(out, op, spec + n);
    Text body = { .arena = out->arena };

    bits |= put(&body, bits, ops[op].text);
    put_head(out, op, bits);
    put_axes(out, bits);
    text_put(out, body.s, body.n);
}
