/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Storage of sparse matrices in axis trees: which trees take a matrix, packing and unpacking; and
 * rules that store the entries of an axis in other trees, with the conversion of their structure
 * and the rewriting of programs.  docs/formats.md has the text of a rule and its meaning. */
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

/* rule.c, use.c: a rule, and a rule with its parameters.  The text of a use is `bsr(16, 16)`, one
 * of the formats of the library; or rules, each from a line `format ...` on, and such a use after
 * them; or a use with its rule, `f(b = 4) { axis ...; map ... }`.  Throws, with the reason, what is
 * wrong with it, and an inverse that is not one. */
typedef struct FmtUse FmtUse;
FmtUse *fmt_use(Arena *, const char *text);
const char *fmt_text(const FmtUse *); /* the same for equal uses: what fmt_use reads again */
int fmt_ncoord(const FmtUse *);       /* of an entry */
int fmt_nparts(const FmtUse *);
const char *fmt_list(int i, const char **note); /* rules.c: `bsr(b, c)`; NULL after the last */

/* Who works on the blocks of a conversion: calls task(arg, b) for each b in 0..n, in any order, at
 * the same time or not.  NULL: this thread. */
typedef void FmtTask(void *arg, int64_t b);
typedef struct FmtPool {
    void (*run)(void *with, int64_t n, FmtTask *, void *arg);
    void *with;
} FmtPool;

/* Entries by their coordinates: entry e is at coord[0][e], coord[1][e], ..., each below its bound.
 * One with a coordinate outside does not exist. */
typedef struct FmtEntries {
    int64_t n;
    int ncoord;
    Array coord[IR_MAX_RANK]; /* of i32 or i64 */
    int64_t bound[IR_MAX_RANK];
} FmtEntries;

/* convert.c: the entries as a part has them, axis by axis from the root.  Arrays are of i32 where
 * all that they hold fits, else of i64; data is NULL for what is not stored. */
typedef struct FmtLevel {
    const char *name;           /* of the axis in the rule */
    int64_t parents, total;     /* positions of the axis above; of this one */
    int64_t width;              /* under each parent; -1: `start` tells */
    Array start;                /* of seg axes: parents + 1 */
    int ncoord;                 /* of the axis in the rule; and for each its values, by position */
    Array coord[IR_MAX_RANK];
} FmtLevel;

typedef struct FmtPart {
    const char *name;
    int64_t stored;    /* positions of the last axis */
    int64_t held;      /* of these, entries */
    int nlevel;
    FmtLevel *level;
    Array entry;       /* by position of the last axis: which entry it is; -1: none */
} FmtPart;

typedef struct FmtParts {
    int n;
    FmtPart *part;
} FmtParts;

/* Each entry goes to the first part whose condition holds.  The result is in the arena, and the
 * same for any number of threads; `scratch` may be thrown away afterwards.  Throws ST_BIND for
 * entries that the format cannot hold: outside its axes, two at one place, in no part. */
FmtParts *fmt_convert(Arena *, Arena *scratch, const FmtPool *, const FmtUse *, const FmtEntries *);

/* back.c: what the parts hold, in the order of storage: `entry` of each, and its coordinates, which
 * are worked out from the axes alone.  Room for all that `held` counts. */
int64_t fmt_back(Arena *, const FmtUse *, const FmtParts *, const FmtEntries *bounds,
                 int64_t *const *coord, int64_t *entry);

/* apply.c: the program with the statements over axis e made anew over the axes of a format, one for
 * each part.  Changes p, whose stage is coordinates: give it a copy.  Throws ST_CHECK for a
 * statement that needs what the format does not keep.  The new axes say where they come from
 * (Axis.from), so that a plan can fill them. */
void fmt_apply(Prog *p, Axis *e, const char *use);

/* fill.c: the arrays of the axes that fmt_apply made, and sizes that only the data tell, from the
 * structure of the axis they come from: those of all parts, when `last` is the last axis of the
 * first one.  Types are those that loop_type says. */
void fmt_fill(Arena *, Arena *scratch, const FmtPool *, const Prog *, Env *, const Axis *last);
/* The coordinates of the entries of an axis. */
void fmt_entries(Arena *, const FmtPool *, const Prog *, const Env *, const Axis *,
                 FmtEntries *out);

/* emit.c: the conversion as C, to stand after emit/convert.h: a function of this name, which fills
 * the levels of all parts, one part after the other, from the entries of a weft_part. */
void fmt_emit(Text *, const char *name, const FmtUse *);
int fmt_nlevels(const FmtUse *, int part);
int fmt_ncoords(const FmtUse *, int part, int level); /* of that axis in the rule */
/* fill.c: throws ST_CHECK unless the axis, of a program from a text, is the last of its part. */
void fmt_check_made(Prog *, const Axis *last);
/* fill.c: the size that fmt_fill sets for an axis of a format, of which `last` is the last one: its
 * extent, where that is a size that the entries do not have already; or NULL. */
const Size *fmt_fitted(const Axis *last, const Axis *);

#endif
