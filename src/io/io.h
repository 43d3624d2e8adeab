/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Files of strangers in, arrays out, and back: Matrix Market (.mtx), NumPy (.npy, .npz), atoms
 * (.xyz).  Readers take the bytes of a whole file, check every size against the bytes that are
 * there before they allocate, and throw an error with its place and remedy.  Results live in the
 * caller's arena. */
#ifndef WEFT_IO_H
#define WEFT_IO_H

#include "base/base.h"

typedef enum IoType { IO_I32, IO_I64, IO_F16, IO_F32, IO_F64 } IoType;
enum { IO_RANK = 16 };

size_t io_type_size(IoType);

/* npy.c: one array, in C order, native endian, contiguous. */
typedef struct IoArray {
    const char *name; /* in an .npz, without ".npy"; else "" */
    IoType type;
    int ndim;
    int64_t dim[IO_RANK];
    int64_t n; /* the product of dim; 1 for a scalar */
    void *data;
} IoArray;

/* Versions 1.0 to 3.0, either byte order, C or Fortran order.  f2 f4 f8 i4 i8 keep their type;
 * b1 i1 u1 i2 u2 widen to i32, u4 and u8 to i64 (an u8 that does not fit is an error). */
void io_npy_parse(Arena *, Bytes, const char *file, IoArray *out);
void io_npy_print(Text *out, const IoArray *);

/* npz.c: a ZIP archive of .npy members, stored or deflated, in the order of the archive. */
typedef struct IoNpz {
    int n;
    IoArray *array;
} IoNpz;

/* `only` is the one member to read, without ".npy"; NULL reads all of them.  Limits: 100000
 * members, and 4 GiB that the deflated ones among those read expand to together. */
void io_npz_parse(Arena *, Bytes, const char *file, const char *only, IoNpz *out);
void io_npz_print(Text *out, const IoNpz *); /* stored, not deflated */

/* mtx.c: a matrix.  Coordinate files give entries with 0-based indices, the mirror image of a
 * symmetric or skew-symmetric file written out, sorted by (row, col).  Entries at the same place
 * are summed in the order of the file (in a pattern they are one entry); explicit zeros are kept.
 * Array files give all m * n values in row-major order, and row and col are NULL. */
typedef struct IoMatrix {
    int64_t m, n, nnz; /* nnz is m * n when dense */
    bool dense;
    bool pattern; /* val is 1 everywhere */
    bool integer; /* ival holds the values and val is NULL; else the other way round */
    int64_t *row, *col;
    double *val;
    int64_t *ival;
} IoMatrix;

void io_mtx_parse(Arena *, Bytes, const char *file, IoMatrix *out);
void io_mtx_print(Text *out, const IoMatrix *); /* "general", and reads back the same */

/* xyz.c: atoms, plain or extended XYZ; of a file with several structures the first.  Of the
 * properties in the second line, Lattice, pbc and Properties are looked at; of the columns, species
 * (S:1) and pos (R:3).  Without a Lattice the cell is 0 and nothing periodic; with one all is,
 * unless pbc says otherwise. */
typedef struct IoAtoms {
    int64_t n;
    double *pos;    /* n x 3, finite */
    double cell[9]; /* three vectors */
    bool pbc[3];
    int32_t *kind; /* by atom: which name, in the order in which they come first */
    int kinds;
    const char *const *name;
} IoAtoms;

enum { IO_KINDS = 1024 };
void io_xyz_parse(Arena *, Bytes, const char *file, IoAtoms *out);
void io_xyz_print(Text *out, const IoAtoms *); /* extended; reads back the same */

#endif
