/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Which of some sparse vectors are sums of the others: orthogonalisation, one vector after the
 * other, short ones first.  A sum over all of them is then one over those that are kept. */
#include "o3/o3_int.h"

#include <math.h>

/* What is left of a vector that is a sum of others is rounding; what is left of one that is not
 * has the size of its coefficients. */
static const double nothing = 1e-9;

typedef struct Work {
    Arena *arena;
    int width, n;  /* n kept so far */
    double **unit; /* orthonormal, [i] has length width */
    double **part; /* kept vector i is the sum over j <= i of part[i][j] unit[j] */
} Work;

/* Takes the directions known so far out of v, twice, as once leaves rounding errors behind. */
static void project(const Work *w, double *v, double *part)
{
    for (int i = 0; i < 2 * w->n; i++) {
        const double *unit = w->unit[i % w->n];
        double s = 0;

        for (int k = 0; k < w->width; k++)
            s += unit[k] * v[k];
        for (int k = 0; k < w->width; k++)
            v[k] -= s * unit[k];
        part[i % w->n] += s;
    }
}

static double length(const double *v, int n)
{
    double s = 0;

    for (int k = 0; k < n; k++)
        s += v[k] * v[k];
    return sqrt(s);
}

/* Parts along the directions become parts of the kept vectors. */
static void solve(const Work *w, double *part)
{
    for (int i = w->n - 1; i >= 0; i--) {
        part[i] /= w->part[i][i];
        for (int j = 0; j < i; j++)
            part[j] -= part[i] * w->part[i][j];
    }
}

static int shortest(const O3Vector *v, int n, const bool *done)
{
    int best = -1;

    for (int k = 0; k < n; k++)
        if (!done[k] && (best < 0 || v[k].n < v[best].n))
            best = k;
    return best;
}

static void share(Arena *arena, O3Span *s, int kept, int of, double c)
{
    if (fabs(c) <= nothing)
        return;
    s->share = arena_grow(arena, s->share, s->nshare, &s->cap, sizeof *s->share);
    s->share[s->nshare++] = (O3Share){ kept, of, c };
}

/* Vector `of` is kept, or becomes shares of those that are. */
static void take(Work *w, O3Span *s, const O3Vector *vector, int of)
{
    double *v = arena_array(w->arena, w->width, sizeof *v), all, left;
    double *part = arena_array(w->arena, w->n + 1, sizeof *part);

    for (int k = 0; k < vector->n; k++)
        v[vector->at[k]] = vector->c[k];
    all = length(v, w->width);
    project(w, v, part);
    left = length(v, w->width);
    if (left <= nothing * all) {
        solve(w, part);
        for (int i = 0; i < w->n; i++)
            share(w->arena, s, i, of, part[i]);
        return;
    }
    for (int k = 0; k < w->width; k++)
        v[k] /= left;
    part[w->n] = left;
    w->unit[w->n] = v;
    w->part[w->n] = part;
    s->kept[w->n] = of;
    share(w->arena, s, w->n++, of, 1);
}

O3Span o3_span(Arena *arena, const O3Vector *v, int n, int width)
{
    O3Span s = { .kept = arena_array(arena, n, sizeof *s.kept) };
    Work w = { .arena = arena, .width = width };
    bool *done = arena_array(arena, n, sizeof *done);

    w.unit = arena_array(arena, n, sizeof *w.unit);
    w.part = arena_array(arena, n, sizeof *w.part);
    for (int i = 0; i < n; i++) {
        int k = shortest(v, n, done);

        done[k] = true;
        take(&w, &s, &v[k], k);
    }
    s.n = w.n;
    return s;
}
