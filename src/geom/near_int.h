/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * What the files of the neighbour list share: lattice.c makes the brick, images.c the images of
 * all atoms around it and the bins they are in, near.c finds the pairs. */
#ifndef WEFT_NEAR_INT_H
#define WEFT_NEAR_INT_H

#include "geom/geom.h"

#define LATTICE_FAR 1e100

/* lattice.c.  Axes of the frame at and above n have no period. */
typedef struct Lattice {
    int n;
    double cell[9];      /* the caller's; zero where not periodic */
    double factor[3][3]; /* vector c is this integer combination of the caller's */
    double frame[3][3];  /* orthonormal */
    double row[3][3];    /* vector c in the frame: components 0..c; the brick is the diagonal */
} Lattice;

/* Throws ST_ARG. */
void near_lattice(Err *, const GeomAtoms *, Lattice *out);

/* images.c: the images of atoms in and around the brick, in order of atom, then shift.  Image g is
 * at r_sender + shift * cell; its place is relative to the brick. */
typedef struct Image {
    double at[3];
    int32_t shift[3], sender;
} Image;

typedef struct Bins { /* boxes in the frame; x runs fastest */
    double low[3], inverse[3], width[3];
    int64_t n[3], total;
} Bins;

typedef struct Images {
    const GeomAtoms *atoms;
    Lattice lattice;
    double cutoff, slack; /* slack: more than places differ from what exact sums would give */
    int64_t n;
    Image *image;
    int32_t *home;  /* by atom: its image in the brick, whose shift is 0 or brings it there */
    Bins bins;
    int64_t *start;      /* by bin, and one more: its first slot */
    double *at[3];       /* by slot: the place of an image */
    int32_t *slot;       /* by slot: the image; they ascend in a bin */
} Images;

/* Throws. */
void near_images(Arena *, const GeomPool *, const GeomAtoms *, double cutoff, Images *out);

static inline int64_t near_bin(const Bins *b, int c, double v)
{
    double k = (v - b->low[c]) * b->inverse[c], last = (double)(b->n[c] - 1);

    return (int64_t)(k > last ? last : k > 0 ? k : 0); /* never falls as v rises */
}

/* Blocks of atoms, which depend on their number alone. */
int64_t near_blocks(int64_t n);
static inline int64_t near_cut(int64_t n, int64_t blocks, int64_t b)
{
    return n / blocks * b + (b < n % blocks ? b : n % blocks);
}
void near_each(const GeomPool *, int64_t n, void (*task)(void *arg, int64_t b), void *arg);

/* strips.c: groups and pairs of a map, from the input of each output and offset, -1 for none. */
void geom_strips_of(Arena *keep, Arena *scratch, const GeomPool *, const int32_t *input, GeomMap *);

#endif
