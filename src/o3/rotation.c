/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Wigner D matrices in the real basis.  Degree 1 is the rotation itself, as components 0, 1, 2 of a
 * vector are x, y, z; a higher degree l is a part of the product of degrees l - 1 and 1,
 *     D(l) = (2l + 1) C' (D(l - 1) x D(1)) C,  C the 3j symbol of (l - 1, 1, l),
 * which holds whatever the sign of C. */
#include "o3/o3_int.h"

#include <math.h>
#include <string.h>

static void multiply(const double a[9], const double b[9], double out[9])
{
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 3; k++)
            out[3 * i + k] = a[3 * i] * b[k] + a[3 * i + 1] * b[3 + k] + a[3 * i + 2] * b[6 + k];
}

void o3_matrix_of_angles(double alpha, double beta, double gamma, double r[9])
{
    double ca = cos(alpha), sa = sin(alpha), cb = cos(beta), sb = sin(beta);
    double cg = cos(gamma), sg = sin(gamma), half[9];
    const double first[9] = { cg, 0, sg, 0, 1, 0, -sg, 0, cg };
    const double second[9] = { 1, 0, 0, 0, cb, -sb, 0, sb, cb };
    const double third[9] = { ca, 0, sa, 0, 1, 0, -sa, 0, ca };

    multiply(third, second, half);
    multiply(half, first, r);
}

void o3_matrix_of_quaternion(const double q[4], double r[9])
{
    double n = q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3];
    double s = n > 0 ? 2 / n : 0;

    for (int i = 0; i < 3; i++) {
        int j = (i + 1) % 3, k = (i + 2) % 3;

        r[4 * i] = 1 - s * (q[j + 1] * q[j + 1] + q[k + 1] * q[k + 1]);
        r[3 * i + j] = s * (q[i + 1] * q[j + 1] - q[0] * q[k + 1]);
        r[3 * j + i] = s * (q[i + 1] * q[j + 1] + q[0] * q[k + 1]);
    }
}

static double determinant(const double r[9])
{
    return r[0] * (r[4] * r[8] - r[5] * r[7]) - r[1] * (r[3] * r[8] - r[5] * r[6]) +
           r[2] * (r[3] * r[7] - r[4] * r[6]);
}

/* The matrix of degree l from the one of degree l - 1. */
static double *next_degree(Arena *arena, int l, const double *below, const double one[9])
{
    O3Scale scale = o3_unscaled;
    O3Terms c;
    double *d = arena_array(arena, (2 * l + 1) * (2 * l + 1), sizeof *d);

    scale.num[0] = 2 * l + 1;
    c = o3_3j(arena, l - 1, 1, l, O3_SIGNS_NOW, &scale);
    for (int s = 0; s < c.n; s++)
        for (int t = 0; t < c.n; t++) {
            const O3Term *a = &c.at[s], *b = &c.at[t];

            d[a->m3 * (2 * l + 1) + b->m3] +=
                a->c * b->c * below[a->m1 * (2 * l - 1) + b->m1] * one[3 * a->m2 + b->m2];
        }
    return d;
}

double *o3_wigner_d(Arena *arena, O3Irrep ir, const double r[9])
{
    bool mirrors = determinant(r) < 0;
    double one[9], *d = arena_array(arena, 1, sizeof *d);
    int n = o3_ir_dim(ir) * o3_ir_dim(ir);

    for (int i = 0; i < 9; i++)
        one[i] = mirrors ? -r[i] : r[i];
    d[0] = 1;
    for (int l = 1; l <= ir.l; l++)
        d = next_degree(arena, l, d, one);
    for (int i = 0; mirrors && ir.p < 0 && i < n; i++)
        d[i] = -d[i];
    return d;
}

double *o3_irreps_d(Arena *arena, O3Irreps irreps, const double r[9])
{
    int64_t n = o3_dim(irreps), at = 0;
    double *out;

    if (n > 1 << 14)
        err_throw(arena->err, ST_LIMIT, "a D matrix of more than %d rows", 1 << 14);
    out = arena_array(arena, n * n, sizeof *out);
    for (int i = 0; i < irreps.n; i++) {
        int dim = o3_ir_dim(irreps.at[i].ir);
        const double *d = o3_wigner_d(arena, irreps.at[i].ir, r);

        for (int64_t u = 0; u < irreps.at[i].mul; u++, at += dim)
            for (int k = 0; k < dim; k++)
                memcpy(out + (at + k) * n + at, d + k * dim, (size_t)dim * sizeof *d);
    }
    return out;
}
