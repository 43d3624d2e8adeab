/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Neighbours of atoms: around each receiver the bins of images.c are searched twice, to count the
 * senders and to list them; the arrays that a caller wants are then filled from the list. */
#include "geom/near_int.h"

#include <math.h>

enum { HITS = 128 };

struct GeomNear {
    Images im;
    double sure, maybe; /* squares of distances: below that a neighbour; below that to be tested */
    int64_t *start;     /* by receiver, and one more: its first sender */
    int32_t *list;      /* images, ascending under a receiver */
    int32_t *order;     /* the atoms as the bins have them: neighbours share what is cached */
};

/* The shift, the vector and its square, as geom.h defines them. */
static double pair(const Images *im, int64_t i, int32_t image, int32_t shift[3], double vec[3])
{
    const Image *g = &im->image[image], *home = &im->image[im->home[i]];
    const double *r = im->atoms->pos + 3 * i, *s = im->atoms->pos + 3 * (int64_t)g->sender;
    const double *cell = im->lattice.cell;

    for (int d = 0; d < 3; d++)
        shift[d] = g->shift[d] - home->shift[d];
    for (int d = 0; d < 3; d++)
        vec[d] = (s[d] - r[d]) + (shift[0] * cell[d] + shift[1] * cell[3 + d] +
                                  shift[2] * cell[6 + d]);
    return vec[0] * vec[0] + vec[1] * vec[1] + vec[2] * vec[2];
}

static bool is_near(const Images *im, int64_t i, int32_t image)
{
    int32_t shift[3];
    double vec[3];

    return pair(im, i, image, shift, vec) < im->cutoff * im->cutoff;
}

/* The neighbours of atom i among the slots begin..end: how many, and, with room for them, which. */
static int64_t scan(const GeomNear *a, int64_t i, int64_t begin, int64_t end, int32_t *out)
{
    const Images *im = &a->im;
    const double *xs = im->at[0], *ys = im->at[1], *zs = im->at[2];
    const double *at = im->image[im->home[i]].at, x = at[0], y = at[1], z = at[2];
    int64_t n = 0;

    for (int64_t stop; begin < end; begin = stop) {
        double square[HITS];
        int32_t hit[HITS];
        int hits = 0;

        stop = end - begin > HITS ? begin + HITS : end;
        for (int64_t s = begin; s < stop; s++) {
            double dx = xs[s] - x, dy = ys[s] - y, dz = zs[s] - z;

            square[hits] = dx * dx + dy * dy + dz * dz;
            hit[hits] = im->slot[s];
            hits += square[hits] < a->maybe;
        }
        for (int k = 0; k < hits; k++) {
            if (hit[k] == im->home[i] || (square[k] >= a->sure && !is_near(im, i, hit[k])))
                continue;
            if (out != NULL)
                out[n] = hit[k];
            n++;
        }
    }
    return n;
}

/* The square of the distance, on axis c, from v to bin k: not more than that. */
static double gap(const Images *im, int c, int64_t k, int64_t own, double v)
{
    const Bins *b = &im->bins;
    double edge = b->low[c] + (double)(k > own ? k : k + 1) * b->width[c];
    double distance = k == own ? 0 : fmax(fabs(edge - v) - im->slack, 0);

    return distance * distance;
}

/* Rows of bins along x, cut to what the cutoff leaves of them. */
static int64_t search(const GeomNear *a, int64_t i, int32_t *out)
{
    const Images *im = &a->im;
    const Bins *b = &im->bins;
    const double *at = im->image[im->home[i]].at;
    int64_t own[3], from[3], to[3], n = 0;
    double far = im->cutoff + im->slack;

    for (int c = 1; c < 3; c++) {
        own[c] = near_bin(b, c, at[c]);
        from[c] = near_bin(b, c, at[c] - far);
        to[c] = near_bin(b, c, at[c] + far);
    }
    for (int64_t z = from[2]; z <= to[2]; z++) {
        double left = a->maybe - gap(im, 2, z, own[2], at[2]);

        for (int64_t y = from[1]; y <= to[1]; y++) {
            double half = left - gap(im, 1, y, own[1], at[1]);
            const int64_t *row = im->start + b->n[0] * (y + b->n[1] * z);

            if (half < 0)
                continue;
            half = sqrt(half) + im->slack;
            n += scan(a, i, row[near_bin(b, 0, at[0] - half)],
                      row[near_bin(b, 0, at[0] + half) + 1], out == NULL ? NULL : out + n);
        }
    }
    return n;
}

static void count(void *arg, int64_t b)
{
    GeomNear *a = arg;
    int64_t n = a->im.atoms->n, blocks = near_blocks(n), end = near_cut(n, blocks, b + 1);

    for (int64_t k = near_cut(n, blocks, b); k < end; k++)
        a->start[a->order[k] + 1] = search(a, a->order[k], NULL);
}

static void sort(int32_t *a, int64_t n)
{
    for (int64_t gaps = n / 2; gaps > 0; gaps = gaps > 2 ? gaps * 5 / 11 : gaps - 1)
        for (int64_t k = gaps; k < n; k++) {
            int32_t move = a[k];
            int64_t to = k;

            for (; to >= gaps && move < a[to - gaps]; to -= gaps)
                a[to] = a[to - gaps];
            a[to] = move;
        }
}

static void list(void *arg, int64_t b)
{
    GeomNear *a = arg;
    int64_t n = a->im.atoms->n, blocks = near_blocks(n), end = near_cut(n, blocks, b + 1);

    for (int64_t k = near_cut(n, blocks, b); k < end; k++) {
        int64_t i = a->order[k];

        sort(a->list + a->start[i], search(a, i, a->list + a->start[i]));
    }
}

GeomNear *geom_near(Arena *arena, const GeomPool *pool, const GeomAtoms *atoms, double cutoff)
{
    GeomNear *a = arena_alloc(arena, sizeof *a);
    int64_t n = atoms->n, k = 0;

    if (!(cutoff >= 1e-100 && cutoff <= LATTICE_FAR))
        err_throw(arena->err, ST_ARG, "the cutoff is %g; it must be a length above 0", cutoff);
    if (n > INT32_MAX)
        err_throw(arena->err, ST_LIMIT, "%lld atoms; 2^31 are possible", (long long)n);
    near_images(arena, pool, atoms, cutoff, &a->im);
    a->sure = fmax(cutoff - a->im.slack, 0) * fmax(cutoff - a->im.slack, 0);
    a->maybe = (cutoff + a->im.slack) * (cutoff + a->im.slack);
    a->order = arena_raw(arena, n, sizeof *a->order);
    for (int64_t s = 0; s < a->im.n; s++) {
        int32_t i = a->im.image[a->im.slot[s]].sender;

        if (a->im.home[i] == a->im.slot[s])
            a->order[k++] = i;
    }
    a->start = arena_array(arena, n + 1, sizeof *a->start);
    near_each(pool, near_blocks(n), count, a);
    for (int64_t i = 0; i < n; i++)
        a->start[i + 1] += a->start[i];
    a->list = arena_raw(arena, a->start[n], sizeof *a->list);
    near_each(pool, near_blocks(n), list, a);
    return a;
}

int64_t geom_near_count(const GeomNear *a)
{
    return a->start[a->im.atoms->n];
}

static void put(void *to, bool wide, int64_t at, int64_t v)
{
    if (to != NULL && wide)
        ((int64_t *)to)[at] = v;
    else if (to != NULL)
        ((int32_t *)to)[at] = (int32_t)v;
}

typedef struct Fill {
    const GeomNear *near;
    const GeomEdges *to;
} Fill;

static void fill(void *arg, int64_t b)
{
    const Fill *f = arg;
    const GeomNear *a = f->near;
    const GeomEdges *to = f->to;
    int64_t n = a->im.atoms->n, blocks = near_blocks(n), end = near_cut(n, blocks, b + 1);

    for (int64_t i = near_cut(n, blocks, b); i < end; i++) {
        put(to->start, to->wide, i + 1, a->start[i + 1]);
        for (int64_t p = a->start[i]; p < a->start[i + 1]; p++) {
            int32_t shift[3];
            double vec[3], square = pair(&a->im, i, a->list[p], shift, vec);

            put(to->receiver, to->wide, p, i);
            put(to->sender, to->wide, p, a->im.image[a->list[p]].sender);
            for (int d = 0; to->shift != NULL && d < 3; d++)
                to->shift[3 * p + d] = shift[d];
            for (int d = 0; to->vec != NULL && d < 3; d++)
                to->vec[3 * p + d] = vec[d];
            if (to->dist != NULL)
                to->dist[p] = sqrt(square);
        }
    }
}

void geom_near_fill(const GeomNear *a, const GeomPool *pool, const GeomEdges *to)
{
    Fill f = { a, to };

    put(to->start, to->wide, 0, 0);
    near_each(pool, near_blocks(a->im.atoms->n), fill, &f);
}
