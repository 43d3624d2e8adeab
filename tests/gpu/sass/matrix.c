/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Matrices with given numbers of entries a row; columns and values are drawn. */
#include "gpu/sass/matrix.h"

#include "unit/test.h"

#include <math.h>
#include <stdlib.h>

const char *const matrix_name[MATRICES] = { "rows96", "rows160", "deg32", "skew", "empty", "long" };

enum { COLS = 256, SKEW_ROWS = 48 };

/* The number below which a share p of normally distributed numbers lies. */
static double normal_quantile(double p)
{
    double low = -8, high = 8;

    for (int k = 0; k < 80; k++) {
        const double middle = (low + high) / 2;

        if (0.5 * erfc(-middle / sqrt(2)) < p)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* Evenly spread quantiles of exp(2.2 + 1.1 z), the smallest made 0, in random order. */
static void skewed(int *degree, int rows, uint64_t *state)
{
    for (int r = 0; r < rows; r++)
        degree[r] = r == 0 ? 0 : (int)lround(exp(2.2 + 1.1 * normal_quantile((r + 0.5) / rows)));
    for (int r = rows - 1; r > 0; r--) {
        const int other = (int)(test_random(state) % (uint64_t)(r + 1)), d = degree[r];

        degree[r] = degree[other];
        degree[other] = d;
    }
}

/* n columns in order: of the columns that are left each is taken with the chance that n are taken
 * in all. */
static void draw_columns(int32_t *to, int n, uint64_t *state)
{
    int wanted = n;

    for (int c = 0; c < COLS && wanted > 0; c++)
        if ((int)(test_random(state) % (uint64_t)(COLS - c)) < wanted) {
            to[n - wanted] = c;
            wanted--;
        }
}

static void *room(int n, size_t size)
{
    void *p = calloc((size_t)n + 1, size);

    if (p == NULL)
        abort();
    return p;
}

Matrix matrix_make(enum MatrixKind kind, uint64_t seed)
{
    static const int degree_of[] = { 96, 160, 32, 0, 0, 0 };
    Matrix m = { .rows = kind == MATRIX_SKEW   ? SKEW_ROWS
                         : kind == MATRIX_LONG ? 4
                                               : 16,
                 .cols = COLS };
    int degree[SKEW_ROWS];
    uint64_t state = seed;

    for (int r = 0; r < m.rows; r++)
        degree[r] = kind == MATRIX_LONG ? (r == 1 ? 10000 : r * 3) : degree_of[kind];
    if (kind == MATRIX_SKEW)
        skewed(degree, m.rows, &state);
    m.start = room(m.rows + 1, sizeof *m.start);
    for (int r = 0; r < m.rows; r++)
        m.start[r + 1] = m.start[r] + degree[r];
    m.nnz = m.start[m.rows];
    m.coord = room(m.nnz, sizeof *m.coord);
    m.value = room(m.nnz, sizeof *m.value);
    for (int r = 0; r < m.rows; r++) {
        if (degree[r] <= COLS)
            draw_columns(m.coord + m.start[r], degree[r], &state);
        else
            for (int k = 0; k < degree[r]; k++)
                m.coord[m.start[r] + k] = (int32_t)((int64_t)k * COLS / degree[r]);
    }
    for (int k = 0; k < m.nnz; k++)
        m.value[k] = (float)(int)(test_random(&state) % 9) - 4;
    return m;
}

void matrix_free(Matrix *m)
{
    free(m->start);
    free(m->coord);
    free(m->value);
    *m = (Matrix){ 0 };
}
