/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * geom/near.c and its parts: neighbours against all images of all pairs, on cells of every
 * shape. */
#include "unit/api_bed.h"

#include "geom/geom.h"
#include "unit/trap.h"

#include <math.h>
#include <stdlib.h>

typedef struct Edge {
    int64_t i, j;
    int32_t shift[3];
} Edge;

static Err err;
static Arena arena;
static weft_neighbours e;

static double real(uint64_t *seed) /* 0 to 1 */
{
    return (double)(test_random(seed) >> 11) * 0x1p-53;
}

/* All pairs of a and all images whose shifts are up to `most`, in order. */
static int64_t slow(const GeomAtoms *a, double cutoff, const int most[3], Edge *out)
{
    int64_t n = 0;

    for (int64_t i = 0; i < a->n; i++)
        for (int64_t j = 0; j < a->n; j++)
            for (int x = -most[0]; x <= most[0]; x++)
                for (int y = -most[1]; y <= most[1]; y++)
                    for (int z = -most[2]; z <= most[2]; z++) {
                        double square = 0;

                        for (int d = 0; d < 3; d++) {
                            double v = (a->pos[3 * j + d] - a->pos[3 * i + d]) +
                                       (x * a->cell[d] + y * a->cell[3 + d] + z * a->cell[6 + d]);

                            square += v * v;
                        }
                        if (square < cutoff * cutoff && (i != j || x != 0 || y != 0 || z != 0))
                            out[n++] = (Edge){ i, j, { x, y, z } };
                    }
    return n;
}

/* Tasks last to first. */
static void backwards(void *with, int64_t n, void (*task)(void *arg, int64_t b), void *arg)
{
    (void)with;
    while (n-- > 0)
        task(arg, n);
}

static void fill(const GeomAtoms *a, double cutoff, const GeomPool *pool)
{
    GeomNear *near = geom_near(&arena, pool, a, cutoff);
    int64_t n = geom_near_count(near);
    GeomEdges to = { .wide = true };

    to.start = arena_array(&arena, a->n + 1, 8);
    to.receiver = arena_array(&arena, n, 8);
    to.sender = arena_array(&arena, n, 8);
    to.shift = arena_array(&arena, n, 12);
    to.vec = arena_array(&arena, n, 24);
    to.dist = arena_array(&arena, n, 8);
    geom_near_fill(near, pool, &to);
    e = (weft_neighbours){ a->n, n, WEFT_I64, to.start, to.receiver, to.sender, to.shift, to.vec,
                           to.dist };
}

static void find(const GeomAtoms *a, double cutoff)
{
    GeomPool pool = { backwards, NULL };

    arena_free(&arena);
    arena_init(&arena, &os_libc, &err);
    if (CATCH(&err, fill(a, cutoff, &pool)) != ST_OK)
        test_fail(__FILE__, __LINE__, "%s", err.msg);
}

static void check_pair(const GeomAtoms *a, int64_t p)
{
    const int64_t i = ((int64_t *)e.receiver)[p], j = ((int64_t *)e.sender)[p];
    const int32_t *s = e.shift + 3 * p;
    double square = 0;

    for (int d = 0; d < 3; d++) {
        double move = s[0] * a->cell[d] + s[1] * a->cell[3 + d] + s[2] * a->cell[6 + d];

        CHECK_SAME(e.vec[3 * p + d], (a->pos[3 * j + d] - a->pos[3 * i + d]) + move);
        square += e.vec[3 * p + d] * e.vec[3 * p + d];
    }
    CHECK_SAME(e.dist[p], sqrt(square));
}

static void check(const char *what, const GeomAtoms *a, double cutoff, const int most[3])
{
    int64_t cells = (2 * most[0] + 1) * (2 * most[1] + 1) * (2 * most[2] + 1), n;
    Edge *want = malloc((size_t)(a->n * a->n * cells + 1) * sizeof *want);

    CHECK(want != NULL);
    n = slow(a, cutoff, most, want);
    find(a, cutoff);
    if (e.nnz != n)
        test_fail(__FILE__, __LINE__, "%s: %lld pairs, not %lld", what, (long long)e.nnz,
                  (long long)n);
    CHECK_EQ(((int64_t *)e.start)[0], 0);
    CHECK_EQ(((int64_t *)e.start)[a->n], n);
    for (int64_t p = 0; p < n; p++) {
        int64_t i = ((int64_t *)e.receiver)[p];

        CHECK_EQ(i, want[p].i);
        CHECK_EQ(((int64_t *)e.sender)[p], want[p].j);
        CHECK(memcmp(e.shift + 3 * p, want[p].shift, sizeof want[p].shift) == 0);
        CHECK(((int64_t *)e.start)[i] <= p && p < ((int64_t *)e.start)[i + 1]);
        check_pair(a, p);
    }
    free(want);
}

/* How many cells away, at most, a neighbour can be: by the heights of the cell. */
static void reach(const GeomAtoms *a, double cutoff, int most[3])
{
    const double *c = a->cell;
    double volume;

    for (int k = 0; k < 3; k++) {
        const double *u = c + 3 * ((k + 1) % 3), *v = c + 3 * ((k + 2) % 3), *w = c + 3 * k;
        double n[3] = { u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2],
                        u[0] * v[1] - u[1] * v[0] };
        double far = 0;

        volume = fabs(n[0] * w[0] + n[1] * w[1] + n[2] * w[2]);
        for (int64_t i = 0; i < a->n; i++) /* atoms are this far apart, in cells */
            far = fmax(far, fabs(n[0] * a->pos[3 * i] + n[1] * a->pos[3 * i + 1] +
                                 n[2] * a->pos[3 * i + 2]) / volume);
        most[k] = a->pbc[k] ? (int)(cutoff * sqrt(n[0] * n[0] + n[1] * n[1] + n[2] * n[2]) /
                                        volume + 2 * far + 1)
                            : 0;
    }
}

/* A cell of this kind: cubes, boxes, skew and very skew ones, flat ones. */
static void random_cell(uint64_t *seed, int kind, double cell[9])
{
    for (int k = 0; k < 9; k++)
        cell[k] = k % 4 == 0 ? 1 + 4 * real(seed) : kind > 1 ? 2 * real(seed) - 1 : 0;
    if (kind == 0)
        cell[4] = cell[8] = cell[0];
    if (kind == 3)
        for (int d = 0; d < 3; d++)
            cell[3 + d] += 3 * cell[d];
    if (kind == 4)
        for (int d = 0; d < 3; d++)
            cell[6 + d] *= 0.2;
}

TEST(neighbours_are_those_of_all_images_of_all_pairs)
{
    int64_t rounds = test_scale(40000);
    uint64_t seed = 7;

    for (int64_t r = 0; r < rounds; r++) {
        int kind = (int)(r % 5), most[3];
        int64_t n = 1 + (int64_t)(test_random(&seed) % 7);
        double pos[21], cutoff = 0.5 + 3 * real(&seed);
        GeomAtoms a = { .n = n, .pos = pos };
        char what[40];

        random_cell(&seed, kind, a.cell);
        for (int64_t i = 0; i < n; i++)
            for (int d = 0; d < 3; d++) {
                double f[3];

                for (int c = 0; c < 3; c++) { /* at faces and corners too; inside and outside */
                    f[c] = r % 3 == 0 ? (double)(test_random(&seed) % 5) / 2 - 1 : real(&seed);
                    f[c] = r % 7 == 0 ? 3 * f[c] - 1 : f[c];
                }
                pos[3 * i + d] = f[0] * a.cell[d] + f[1] * a.cell[3 + d] + f[2] * a.cell[6 + d];
            }
        for (int c = 0; c < 3; c++)
            a.pbc[c] = test_random(&seed) % 4 > 0;
        if (r % 3 == 0) /* just at the distance of images */
            cutoff = a.cell[0];
        reach(&a, cutoff, most);
        snprintf(what, sizeof what, "round %d", (int)r);
        check(what, &a, cutoff, most);
    }
    arena_free(&arena);
}

TEST(very_skew_cells_have_the_neighbours_of_the_lattice)
{
    static const double straight[] = { 3, 0, 0, 0, 3.5, 0, 0, 0, 4 };
    static const int times[][3] = { { 50, 0, 0 }, { 0, 70, 0 }, { 900, 31, -17 }, { -5, 8, 4001 } };
    uint64_t seed = 3;
    double pos[15], sum = 0;
    GeomAtoms a = { .n = 5, .pos = pos, .pbc = { true, true, true } };
    int64_t n;

    for (int k = 0; k < 15; k++)
        pos[k] = 8 * real(&seed) - 3;
    memcpy(a.cell, straight, sizeof straight);
    find(&a, 4.5);
    n = e.nnz;
    for (int64_t p = 0; p < n; p++)
        sum += e.dist[p];
    for (int k = 0; k < 4; k++) {
        double other = 0;

        memcpy(a.cell, straight, sizeof straight);
        for (int d = 0; d < 3; d++) {
            a.cell[3 + d] += times[k][0] * a.cell[d];
            a.cell[6 + d] += times[k][1] * a.cell[d] + times[k][2] * a.cell[3 + d];
        }
        find(&a, 4.5);
        CHECK_EQ(e.nnz, n);
        for (int64_t p = 0; p < n; p++) {
            other += e.dist[p];
            check_pair(&a, p);
        }
        CHECK_NEAR(other / sum, 1, 1e-9);
    }
    arena_free(&arena);
}

TEST(a_vector_that_cannot_be_made_shorter_stays)
{
    double pos[] = { 0, 0, 0, 0.3, 0.4, 0.5 };
    GeomAtoms a = { .n = 2, .pos = pos, .cell = { 1, 0, 0, 0.5 + 1e-13, 2, 0, 0, 0, 1.5 },
                    .pbc = { true, true, true } };
    int most[3];

    reach(&a, 2.2, most);
    check("just over half a vector", &a, 2.2, most);
    arena_free(&arena);
}

TEST(a_pair_and_its_reverse_are_there_or_neither_is)
{
    double pos[3 * 30], cutoff = 2.7;
    GeomAtoms a = { .n = 30, .pos = pos, .pbc = { true, true, true } };
    uint64_t seed = 11;

    random_cell(&seed, 2, a.cell);
    for (int k = 0; k < 90; k++)
        pos[k] = 20 * real(&seed) - 10;
    for (int step = 0; step < 20; step++) {
        find(&a, cutoff);
        for (int64_t p = 0; p < e.nnz; p++) {
            int64_t i = ((int64_t *)e.receiver)[p], j = ((int64_t *)e.sender)[p], q;
            const int32_t *s = e.shift + 3 * p;

            for (q = ((int64_t *)e.start)[j]; q < ((int64_t *)e.start)[j + 1]; q++)
                if (((int64_t *)e.sender)[q] == i && e.shift[3 * q] == -s[0] &&
                    e.shift[3 * q + 1] == -s[1] && e.shift[3 * q + 2] == -s[2])
                    break;
            CHECK(q < ((int64_t *)e.start)[j + 1]);
            CHECK_SAME(e.dist[p], e.dist[q]);
        }
        cutoff = e.dist[(step * 37) % e.nnz]; /* one pair is just outside */
    }
    arena_free(&arena);
}

TEST(atoms_apart_or_at_one_place_are_no_trouble)
{
    static const int none[3];
    double far[] = { 0, 0, 0, 1e6, -1e7, 1e5, 1e6 + 1, -1e7, 1e5, 0, 0, 0, 0, 0, 1e-3, -1e99, 0, 0 };
    GeomAtoms a = { .n = 6, .pos = far };

    check("far apart", &a, 2, none);
    CHECK_EQ(e.nnz, 8);
    check("a long cutoff", &a, 1e90, none);
    a.n = 0;
    check("nothing", &a, 2, none);
    a.n = 1;
    check("one atom", &a, 2, none);
    arena_free(&arena);
}

static Status refused(const GeomAtoms *a, double cutoff)
{
    Status s;

    arena_init(&arena, &os_libc, &err);
    s = CATCH(&err, geom_near(&arena, NULL, a, cutoff));
    arena_free(&arena);
    return s;
}

TEST(atoms_that_make_no_sense_are_refused)
{
    double pos[] = { 0, 0, 0, 1, 1, 1 };
    const GeomAtoms good = { .n = 2, .pos = pos, .cell = { 3, 0, 0, 0, 3, 0, 0, 0, 3 },
                             .pbc = { true, true, true } };
    GeomAtoms a = good;

    CHECK_EQ(refused(&a, 0), ST_ARG);
    CHECK_HAS(err.msg, "the cutoff is 0");
    CHECK_EQ(refused(&a, (double)NAN), ST_ARG);
    CHECK_EQ(refused(&a, (double)INFINITY), ST_ARG);
    a.cell[3] = (double)NAN;
    CHECK_EQ(refused(&a, 2), ST_ARG);
    CHECK_HAS(err.msg, "vector 2 of the cell is not finite");
    a = good;
    a.cell[0] = 0;
    CHECK_EQ(refused(&a, 2), ST_ARG);
    CHECK_HAS(err.msg, "depend on each other");
    a = good;
    memcpy(a.cell + 6, (double[]){ 1, 2, 0 }, 24);
    CHECK_EQ(refused(&a, 2), ST_ARG);
    a = good;
    CHECK_EQ(refused(&a, 1e9), ST_LIMIT);
    CHECK_HAS(err.msg, "images");
    CHECK_EQ(refused(&a, 1e20), ST_LIMIT);
    CHECK_EQ(refused(&a, 2200), ST_LIMIT);
    CHECK_HAS(err.msg, "images of atoms");
    pos[4] = 1e12;
    CHECK_EQ(refused(&a, 2), ST_LIMIT);
    CHECK_HAS(err.msg, "more than 2^30 cells away");
    pos[4] = (double)INFINITY;
    CHECK_EQ(refused(&a, 2), ST_ARG);
    CHECK_HAS(err.msg, "the position of atom 1");
    a = good;
    a.n = (int64_t)1 << 31;
    CHECK_EQ(refused(&a, 2), ST_LIMIT);
    CHECK_HAS(err.msg, "2^31 are possible");
}
