/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * A periodic cell as a brick.  With the periodic vectors as rows of a lower triangle, in a frame of
 * its own, the box of the diagonal fills space as the cell does, however skew that is: each layer
 * of boxes is only moved against the one below.  So atoms are wrapped, and their images found, one
 * axis after the other.  near.c builds on it. */
#include "geom/near_int.h"

#include <math.h>

#define MOST_FACTOR 0x1p20 /* of a vector in another, so that shifts stay integers of 32 bits */
enum { MOST_STEPS = 1000 };

static double dot(const double *a, const double *b)
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

static void cross(const double *a, const double *b, double *out)
{
    out[0] = a[1] * b[2] - a[2] * b[1];
    out[1] = a[2] * b[0] - a[0] * b[2];
    out[2] = a[0] * b[1] - a[1] * b[0];
}

/* Divides by the length, which it returns. */
static double normalize(double *a)
{
    double length = sqrt(dot(a, a));

    for (int d = 0; d < 3; d++)
        a[d] /= length;
    return length;
}

/* The vectors that the factors say. */
static void combine(const Lattice *l, double v[3][3])
{
    for (int c = 0; c < l->n; c++)
        for (int d = 0; d < 3; d++)
            v[c][d] = l->factor[c][0] * l->cell[d] + l->factor[c][1] * l->cell[3 + d] +
                      l->factor[c][2] * l->cell[6 + d];
}

/* Takes vector b from vector a as often as makes it shorter; true if it did. */
static bool shorten(Lattice *l, double v[3][3], int a, int b)
{
    double times = nearbyint(dot(v[a], v[b]) / dot(v[b], v[b])), old = dot(v[a], v[a]);
    double before[3], most = 0;

    if (!(fabs(times) >= 1 && fabs(times) <= MOST_FACTOR))
        return false;
    for (int d = 0; d < 3; d++) {
        before[d] = l->factor[a][d];
        l->factor[a][d] -= times * l->factor[b][d];
        most = fmax(most, fabs(l->factor[a][d]));
    }
    combine(l, v);
    if (most <= MOST_FACTOR && dot(v[a], v[a]) < old * (1 - 1e-9))
        return true;
    for (int d = 0; d < 3; d++)
        l->factor[a][d] = before[d];
    combine(l, v);
    return false;
}

static void swap_vectors(Lattice *l, double v[3][3], int a, int b)
{
    for (int d = 0; d < 3; d++) {
        double t = l->factor[a][d];

        l->factor[a][d] = l->factor[b][d];
        l->factor[b][d] = t;
    }
    combine(l, v);
}

/* Short vectors that span the same lattice, the shortest first: the brick is then as near to a cube
 * as pairs of vectors can make it, and the fewest images matter. */
static void reduce(Lattice *l, double v[3][3])
{
    bool again = true;

    for (int step = 0; again && step < MOST_STEPS; step++) {
        again = false;
        for (int a = 0; a < l->n; a++)
            for (int b = 0; b < l->n; b++)
                again = (a != b && shorten(l, v, a, b)) || again;
    }
    for (int a = 0; a < l->n; a++)
        for (int b = a + 1; b < l->n; b++)
            if (dot(v[b], v[b]) < dot(v[a], v[a]))
                swap_vectors(l, v, a, b);
}

/* Some direction at right angles to a. */
static void beside(const double *a, double *out)
{
    double axis[3] = { 0 };
    int least = 0;

    for (int d = 1; d < 3; d++)
        if (fabs(a[d]) < fabs(a[least]))
            least = d;
    axis[least] = 1;
    cross(a, axis, out);
    normalize(out);
}

/* The frame in which vector c has components up to c only. */
static void turn(Lattice *l, double v[3][3])
{
    double(*e)[3] = l->frame;

    for (int c = 0; c < 3; c++)
        for (int d = 0; d < 3; d++)
            e[c][d] = c < l->n ? v[c][d] : c == d;
    if (l->n > 0)
        normalize(e[0]);
    if (l->n == 1)
        beside(e[0], e[1]);
    if (l->n > 1) {
        double along = dot(e[1], e[0]);

        for (int d = 0; d < 3; d++)
            e[1][d] -= along * e[0][d];
        normalize(e[1]);
    }
    if (l->n > 0)
        cross(e[0], e[1], e[2]);
    if (l->n == 3 && dot(v[2], e[2]) < 0)
        for (int d = 0; d < 3; d++)
            e[2][d] = -e[2][d];
    for (int c = 0; c < l->n; c++)
        for (int d = 0; d <= c; d++)
            l->row[c][d] = dot(v[c], e[d]);
}

void near_lattice(Err *err, const GeomAtoms *a, Lattice *l)
{
    double v[3][3], longest = 0;

    *l = (Lattice){ 0 };
    for (int c = 0; c < 3; c++) {
        const double *from = a->cell + 3 * c;

        if (!a->pbc[c])
            continue;
        if (!(fabs(from[0]) + fabs(from[1]) + fabs(from[2]) <= LATTICE_FAR))
            err_throw(err, ST_ARG, "vector %d of the cell is not finite, or too long", c + 1);
        for (int d = 0; d < 3; d++)
            l->cell[3 * c + d] = from[d];
        l->factor[l->n++][c] = 1;
    }
    combine(l, v);
    for (int c = 0; c < l->n; c++)
        longest = fmax(longest, sqrt(dot(v[c], v[c])));
    reduce(l, v);
    turn(l, v);
    for (int c = 0; c < l->n; c++)
        if (!(l->row[c][c] > 1e-12 * longest))
            err_throw(err, ST_ARG,
                      "the periodic vectors of the cell are zero, or depend on each other");
}
