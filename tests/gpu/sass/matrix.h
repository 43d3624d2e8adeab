/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The matrices on which kernels of sparse operators are counted, 256 columns each. */
#ifndef WEFT_SASS_MATRIX_H
#define WEFT_SASS_MATRIX_H

#include <stdint.h>

enum MatrixKind {
    MATRIX_96,    /* 16 rows of 96 entries */
    MATRIX_160,   /* 16 rows of 160: the slope between the two is the cost of an entry */
    MATRIX_32,    /* 16 rows of 32 */
    MATRIX_SKEW,  /* 48 rows, log-normal with mean 16: 0 to 115 entries */
    MATRIX_EMPTY, /* 16 rows without entries */
    MATRIX_LONG,  /* 4 rows, one of which has all columns many times over: 10,000 entries */
    MATRICES
};
extern const char *const matrix_name[MATRICES];

typedef struct Matrix {
    int rows, cols, nnz;
    int32_t *start,
        *coord;   /* rows + 1; nnz, sorted in a row, each column once (but in MATRIX_LONG) */
    float *value; /* small integers */
} Matrix;

Matrix matrix_make(enum MatrixKind, uint64_t seed);
void matrix_free(Matrix *);

#endif
