/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The images of atoms that can be neighbours of one in the brick of the lattice: atoms are wrapped
 * into the brick, repeated around it as far as the cutoff reaches, and sorted into bins.  After
 * that near.c sees no periods. */
#include "geom/near_int.h"

#include <math.h>
#include <string.h>

#define MOST_SHIFT 0x1p30 /* so that the difference of two fits 32 bits */
enum { BLOCK = 512, MOST_BLOCKS = 4096 };

int64_t near_blocks(int64_t n)
{
    int64_t blocks = n / BLOCK + 1;

    return blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS;
}

void near_each(const GeomPool *pool, int64_t n, void (*task)(void *arg, int64_t b), void *arg)
{
    if (pool != NULL && n > 1)
        pool->run(pool->with, n, task, arg);
    else
        for (int64_t b = 0; b < n; b++)
            task(arg, b);
}

typedef struct Extent { /* of some atoms */
    double low[3], high[3]; /* in the frame, wrapped */
    double turns[3];        /* how often one was wrapped, at most */
    double reach;           /* the largest number that went into a place */
    int64_t bad;            /* an atom that is nowhere, or -1 */
} Extent;

typedef struct Work {
    Images *out;
    const GeomPool *pool;
    int64_t blocks, *first; /* by atom, and one more: its first image */
    Extent *extent;         /* by block */
    int32_t *bin;           /* by image */
    double size[3];         /* the sum of the numbers that a vector is made of */
} Work;

/* The place of an atom in the brick, and how often each vector was taken from it. */
static void wrap(const Lattice *l, const double *pos, double at[3], double turns[3])
{
    for (int c = 0; c < 3; c++) {
        at[c] = l->frame[c][0] * pos[0] + l->frame[c][1] * pos[1] + l->frame[c][2] * pos[2];
        turns[c] = 0;
    }
    for (int c = l->n - 1; c >= 0; c--) {
        turns[c] = floor(at[c] / l->row[c][c]);
        for (int d = 0; d <= c; d++)
            at[d] -= turns[c] * l->row[c][d];
    }
}

static void measure(void *arg, int64_t b)
{
    Work *w = arg;
    const GeomAtoms *a = w->out->atoms;
    Extent e = { .low = { INFINITY, INFINITY, INFINITY },
                 .high = { -INFINITY, -INFINITY, -INFINITY },
                 .bad = -1 };
    int64_t end = near_cut(a->n, w->blocks, b + 1);

    for (int64_t i = near_cut(a->n, w->blocks, b); i < end; i++) {
        const double *pos = a->pos + 3 * i;
        double at[3], turns[3], reach = fabs(pos[0]) + fabs(pos[1]) + fabs(pos[2]);

        if (!(reach <= LATTICE_FAR)) {
            e.bad = i;
            break;
        }
        wrap(&w->out->lattice, pos, at, turns);
        for (int c = 0; c < 3; c++) {
            e.low[c] = fmin(e.low[c], at[c]);
            e.high[c] = fmax(e.high[c], at[c]);
            e.turns[c] = fmax(e.turns[c], fabs(turns[c]));
            reach += fabs(turns[c]) * w->size[c];
        }
        e.reach = fmax(e.reach, reach);
    }
    w->extent[b] = e;
}

/* All blocks together, in the first. */
static void join_extents(Err *err, Work *w)
{
    Extent *all = w->extent;

    for (int64_t b = 0; b < w->blocks; b++) {
        const Extent *e = &w->extent[b];

        if (e->bad >= 0)
            err_throw(err, ST_ARG, "the position of atom %lld is not finite, or too far away",
                      (long long)e->bad);
        for (int c = 0; c < 3; c++) {
            all->low[c] = fmin(all->low[c], e->low[c]);
            all->high[c] = fmax(all->high[c], e->high[c]);
            all->turns[c] = fmax(all->turns[c], e->turns[c]);
        }
        all->reach = fmax(all->reach, e->reach);
    }
}

/* How many vectors away an image can be from the brick and still matter; more than that. */
static void count_vectors(const Lattice *l, double cutoff, double away[3])
{
    for (int c = l->n - 1; c >= 0; c--) {
        away[c] = cutoff;
        for (int e = c + 1; e < l->n; e++)
            away[c] += away[e] * fabs(l->row[e][c]);
        away[c] = away[c] / l->row[c][c] + 2;
    }
}

/* The slack, from the numbers that places are the sums of; and whether shifts fit. */
static void set_slack(Err *err, Work *w)
{
    Images *im = w->out;
    const Lattice *l = &im->lattice;
    double away[3] = { 0 }, reach = w->extent->reach + im->cutoff, rows = 1;

    count_vectors(l, im->cutoff, away);
    for (int c = 0; c < l->n; c++)
        reach += away[c] * w->size[c];
    im->slack = 0x1p-46 * reach;
    count_vectors(l, im->cutoff + im->slack, away);
    for (int d = 0; d < 3; d++) {
        double most = 0;

        for (int c = 0; c < l->n; c++)
            most += (w->extent->turns[c] + away[c]) * fabs(l->factor[c][d]);
        rows *= d > 0 && d < l->n ? 2 * (im->cutoff + im->slack) / l->row[d][d] + 2 : 1;
        if (!(most < MOST_SHIFT))
            err_throw(err, ST_LIMIT,
                      "atoms are more than 2^30 cells away, or the cutoff reaches so far; wrap the "
                      "positions into the cell, or mend the cell or the cutoff");
    }
    if (rows > 0x1p31)
        err_throw(err, ST_LIMIT, "the cutoff reaches more than 2^31 images of the cell");
}

typedef struct Range {
    int64_t from, to; /* both included */
} Range;

/* The multiples of vector c that bring a place on this axis to the brick or its surroundings. */
static Range multiples(const Images *im, int c, double at)
{
    double side = im->lattice.row[c][c], far = im->cutoff + im->slack;

    if (c >= im->lattice.n)
        return (Range){ 0, 0 };
    return (Range){ (int64_t)ceil((-far - at) / side), (int64_t)floor((side + far - at) / side) };
}

static void shift_of(const Lattice *l, const double k[3], int32_t out[3])
{
    for (int d = 0; d < 3; d++)
        out[d] = (int32_t)(k[0] * l->factor[0][d] + k[1] * l->factor[1][d] +
                           k[2] * l->factor[2][d]);
}

/* The images of atom i: how many, and, with room for them, which. */
static int64_t repeat(const Images *im, int64_t i, Image *out)
{
    const Lattice *l = &im->lattice;
    double at[3], turns[3];
    int64_t n = 0;
    Range z;

    wrap(l, im->atoms->pos + 3 * i, at, turns);
    z = multiples(im, 2, at[2]);
    for (int64_t kz = z.from; kz <= z.to; kz++) {
        double zy = at[1] + (double)kz * l->row[2][1], zx = at[0] + (double)kz * l->row[2][0];
        Range y = multiples(im, 1, zy);

        for (int64_t ky = y.from; ky <= y.to; ky++) {
            double yx = zx + (double)ky * l->row[1][0];
            Range x = multiples(im, 0, yx);

            for (int64_t kx = x.from; out != NULL && kx <= x.to; kx++) {
                Image *g = &out[n + kx - x.from];
                double k[3] = { (double)kx - turns[0], (double)ky - turns[1],
                                (double)kz - turns[2] };

                *g = (Image){ .sender = (int32_t)i };
                g->at[0] = yx + (double)kx * l->row[0][0];
                g->at[1] = zy + (double)ky * l->row[1][1];
                g->at[2] = at[2] + (double)kz * l->row[2][2];
                shift_of(l, k, g->shift);
            }
            n += x.to - x.from + 1;
        }
    }
    return n;
}

static void count_images(void *arg, int64_t b)
{
    Work *w = arg;
    int64_t n = w->out->atoms->n, end = near_cut(n, w->blocks, b + 1);

    for (int64_t i = near_cut(n, w->blocks, b); i < end; i++)
        w->first[i + 1] = repeat(w->out, i, NULL);
}

static bool is_before(const Image *a, const Image *b)
{
    for (int d = 0; d < 2; d++)
        if (a->shift[d] != b->shift[d])
            return a->shift[d] < b->shift[d];
    return a->shift[2] < b->shift[2];
}

static void sort_images(Image *a, int64_t n)
{
    for (int64_t gap = n / 2; gap > 0; gap = gap > 2 ? gap * 5 / 11 : gap - 1)
        for (int64_t k = gap; k < n; k++) {
            Image move = a[k];
            int64_t to = k;

            for (; to >= gap && is_before(&move, &a[to - gap]); to -= gap)
                a[to] = a[to - gap];
            a[to] = move;
        }
}

static void make_images(void *arg, int64_t b)
{
    Work *w = arg;
    Images *im = w->out;
    const Bins *bins = &im->bins;
    int64_t n = im->atoms->n, end = near_cut(n, w->blocks, b + 1);

    for (int64_t i = near_cut(n, w->blocks, b); i < end; i++) {
        double at[3], turns[3];
        int32_t home[3];

        repeat(im, i, im->image + w->first[i]);
        sort_images(im->image + w->first[i], w->first[i + 1] - w->first[i]);
        wrap(&im->lattice, im->atoms->pos + 3 * i, at, turns);
        for (int c = 0; c < 3; c++)
            turns[c] = -turns[c];
        shift_of(&im->lattice, turns, home);
        for (int64_t g = w->first[i]; g < w->first[i + 1]; g++) {
            const Image *p = &im->image[g];

            if (memcmp(p->shift, home, sizeof home) == 0)
                im->home[i] = (int32_t)g;
            w->bin[g] = (int32_t)(near_bin(bins, 0, p->at[0]) +
                                  bins->n[0] * (near_bin(bins, 1, p->at[1]) +
                                                bins->n[1] * near_bin(bins, 2, p->at[2])));
        }
    }
}

/* Boxes of this size, or larger where the images are too few for so many. */
static void set_bins(Images *im, const Extent *e)
{
    double far = im->cutoff + im->slack, most = fmin(4 * (double)im->n + 64, INT32_MAX);
    double size[3], width[3], volume = 1, total;
    Bins *b = &im->bins;

    for (int c = 0; c < 3; c++) {
        bool turns = c < im->lattice.n;

        b->low[c] = turns ? -far : e->low[c];
        size[c] = turns ? im->lattice.row[c][c] + 2 * far : fmax(e->high[c] - e->low[c], 0);
        volume *= fmax(size[c], far);
    }
    /* half a cutoff where that leaves images enough in a row of boxes */
    width[1] = width[2] = (double)im->n / volume * far * far * far > 16 ? far / 2 : far;
    width[0] = far / 4;
    do {
        total = 1;
        for (int c = 0; c < 3; c++) {
            total *= fmax(floor(size[c] / width[c]), 1);
            width[c] *= 2;
        }
    } while (total > most);
    b->total = (int64_t)total;
    for (int c = 0; c < 3; c++) {
        b->n[c] = (int64_t)fmax(floor(size[c] / (width[c] / 2)), 1);
        b->width[c] = size[c] / (double)b->n[c];
        b->inverse[c] = b->n[c] > 1 ? (double)b->n[c] / size[c] : 0;
    }
}

static void sort_bins(Arena *arena, Images *im, const int32_t *bin)
{
    int64_t *to;

    im->start = arena_array(arena, im->bins.total + 2, sizeof *im->start);
    im->slot = arena_raw(arena, im->n, sizeof *im->slot);
    for (int c = 0; c < 3; c++)
        im->at[c] = arena_raw(arena, im->n, sizeof *im->at[c]);
    to = im->start + 1; /* counts move up by one bin when they are used as places */
    for (int64_t g = 0; g < im->n; g++)
        to[bin[g] + 1]++;
    for (int64_t k = 0; k < im->bins.total; k++)
        to[k + 1] += to[k];
    for (int64_t g = 0; g < im->n; g++) {
        int64_t s = to[bin[g]]++;

        im->slot[s] = (int32_t)g;
        for (int c = 0; c < 3; c++)
            im->at[c][s] = im->image[g].at[c];
    }
}

void near_images(Arena *arena, const GeomPool *pool, const GeomAtoms *atoms, double cutoff,
               Images *out)
{
    Work w = { .out = out, .pool = pool, .blocks = near_blocks(atoms->n) };

    *out = (Images){ .atoms = atoms, .cutoff = cutoff };
    near_lattice(arena->err, atoms, &out->lattice);
    for (int c = 0; c < out->lattice.n; c++)
        for (int d = 0; d < 9; d++)
            w.size[c] += fabs(out->lattice.factor[c][d / 3] * out->lattice.cell[d]);
    w.extent = arena_raw(arena, w.blocks, sizeof *w.extent);
    near_each(pool, w.blocks, measure, &w);
    join_extents(arena->err, &w);
    set_slack(arena->err, &w);
    w.first = arena_array(arena, atoms->n + 1, sizeof *w.first);
    near_each(pool, w.blocks, count_images, &w);
    for (int64_t i = 0; i < atoms->n; i++)
        w.first[i + 1] += w.first[i];
    out->n = w.first[atoms->n];
    if (out->n > INT32_MAX)
        err_throw(arena->err, ST_LIMIT, "the cutoff reaches more than 2^31 images of atoms");
    set_bins(out, w.extent);
    out->image = arena_raw(arena, out->n, sizeof *out->image);
    out->home = arena_array(arena, atoms->n, sizeof *out->home);
    w.bin = arena_raw(arena, out->n, sizeof *w.bin);
    near_each(pool, w.blocks, make_images, &w);
    sort_bins(arena, out, w.bin);
}
