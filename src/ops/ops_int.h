/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Families of operators.  A family is one file with four tables: operators, options, signs and
 * sizes.  The text of an operator is the text of a program in which `$c` is a sign and `${name}` a
 * size; ops.c reads a spec and expands them. */
#ifndef WEFT_OPS_INT_H
#define WEFT_OPS_INT_H

#include "ops/ops.h"

/* Bits of options.  Types are common to all families; a family takes bits from OPS_FIRST on. */
enum OpsBit {
    OPS_F32 = 1 << 0,
    OPS_F64 = 1 << 1,
    OPS_F16 = 1 << 2,
    OPS_BF16 = 1 << 3,
    OPS_TYPES = OPS_F32 | OPS_F64 | OPS_F16 | OPS_BF16,
    OPS_FIRST = 1 << 4,
};

/* Bits of ops_sparse, which families over the entries of a matrix or the edges of a graph share;
 * theirs begin at OPS_NEXT. */
enum OpsEntryBit {
    OPS_CSR = OPS_FIRST << 0,
    OPS_CSC = OPS_FIRST << 1,
    OPS_COO = OPS_FIRST << 2,
    OPS_TURN = OPS_FIRST << 3,
    OPS_HEADS = OPS_FIRST << 4,
    OPS_BATCH = OPS_FIRST << 5,
    OPS_ARG = OPS_FIRST << 6,
    OPS_MEAN = OPS_FIRST << 7,
    OPS_MAX = OPS_FIRST << 8,
    OPS_MIN = OPS_FIRST << 9,
    OPS_LIST = OPS_FIRST << 10,
    OPS_VALUES = OPS_FIRST << 11,
    OPS_NODES = OPS_FIRST << 12,
    OPS_FEATURES = OPS_FIRST << 13,
    OPS_ROW = OPS_FIRST << 14,
    OPS_COL = OPS_FIRST << 15,
    OPS_NEXT = OPS_FIRST << 16,
    OPS_FORMATS = OPS_CSR | OPS_CSC | OPS_COO,
    OPS_REDUCES = OPS_MEAN | OPS_MAX | OPS_MIN,
};

typedef struct OpsOption { /* the last one has no name */
    const char *name;
    unsigned bit, group; /* at most one of a group is given */
    const char *note;
} OpsOption;

typedef struct OpsRow { /* an operator; the last one has no name */
    const char *name;
    unsigned takes; /* options besides types */
    const char *note;
    const char *text; /* of the program, after its first line and what `axes` writes */
} OpsRow;

/* `$c` stands for one text when a bit is set and for another when it is not; both may
 * have signs.  Common signs: $t is the type of elements, $a the type in which sums are formed;
 * letters and digits besides are the family's. */
typedef struct OpsSign { /* the last one is 0 */
    char sign;
    unsigned bit;
    const char *with, *without;
    unsigned needs; /* bits that the program then has besides its options */
} OpsSign;

/* A size of the programs of a family.  A spec may fix it, `f=64`; `${f}` then is the number.  A
 * size with a default, "b=16", is always a number. */
typedef struct OpsSize { /* the last one has no name */
    const char *name;
    unsigned bit;     /* programs with one of these bits have it; 0: all */
    const char *note; /* of one with a default */
} OpsSize;

typedef struct OpsSpec OpsSpec;

typedef struct OpsFamily {
    const OpsRow *row;
    const OpsOption *option;
    const OpsSign *sign;
    const OpsSize *size;
    unsigned standard; /* the option that is taken where none of its group is given; 0: none */
    void (*axes)(const OpsSpec *, Text *out, unsigned bits); /* NULL: the text has all axes */
    const struct OpsFamily *base; /* whose options and signs it has too; NULL: none */
} OpsFamily;

/* Writes a text with its signs replaced; returns the bits that they need. */
unsigned ops_put(const OpsSpec *, Text *out, const char *text);

/* Axes of ops_sparse: entries, with the coordinates that are needed and that the format does not
 * tell by itself; batch, heads, features. */
void ops_entry_axes(const OpsSpec *, Text *out, unsigned bits);
extern const OpsSize ops_entry_sizes[];

extern const OpsFamily ops_sparse;
extern const OpsFamily ops_graph;
extern const OpsFamily ops_relation;
extern const OpsFamily ops_node;
extern const OpsFamily ops_weights;
extern const OpsFamily ops_matrix;
extern const OpsFamily ops_attention;
extern const OpsFamily ops_paged;
extern const OpsFamily ops_conv3d;

#endif
