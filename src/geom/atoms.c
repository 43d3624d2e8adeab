/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Atoms by generators, for benchmarks and tests: crystals from a table, and boxes of water.  Uses
 * no functions that differ between C libraries, so that a spec is the same bytes everywhere. */
#include "geom/geom_int.h"

#include <math.h>
#include <string.h>

#define MOST_ATOMS ((int64_t)1 << 31)
#define SEED { "seed", 0, 0x1p53, 1, true }

typedef struct Site {
    int kind;
    double at[3]; /* in units of the cube's side */
} Site;

typedef struct Crystal {
    const char *name;
    double a; /* the side of the cube, in A */
    const char *kind[3];
    int nsite;
    const Site *site;
} Crystal;

/* clang-format off */
#define FCC(k, x, y, z) \
    { k, { x, y, z } }, { k, { x, y + .5, z + .5 } }, \
    { k, { x + .5, y, z + .5 } }, { k, { x + .5, y + .5, z } }
static const Site bcc[] = { { 0, { 0, 0, 0 } }, { 0, { .5, .5, .5 } } };
static const Site fcc[] = { FCC(0, 0, 0, 0) };
static const Site diamond[] = { FCC(0, 0, 0, 0), FCC(0, .25, .25, .25) };
static const Site rocksalt[] = { FCC(0, 0, 0, 0), FCC(1, .5, 0, 0) };
static const Site cristobalite[] = {
    FCC(0, 0, 0, 0), FCC(0, .25, .25, .25),
    FCC(1, .125, .125, .125), FCC(1, .125, -.125, -.125), /* half way between neighbours */
    FCC(1, -.125, .125, -.125), FCC(1, -.125, -.125, .125),
};
static const Site perovskite[] = {
    { 0, { 0, 0, 0 } }, { 1, { .5, .5, .5 } },
    { 2, { 0, .5, .5 } }, { 2, { .5, 0, .5 } }, { 2, { .5, .5, 0 } },
};
/* clang-format on */
#define SITES(s) sizeof(s) / sizeof *(s), s

static const Crystal crystals[] = {
    { "silicon", 5.431, { "Si" }, SITES(diamond) },
    { "copper", 3.615, { "Cu" }, SITES(fcc) },
    { "iron", 2.866, { "Fe" }, SITES(bcc) },
    { "mgo", 4.212, { "Mg", "O" }, SITES(rocksalt) },
    { "nacl", 5.640, { "Na", "Cl" }, SITES(rocksalt) },
    { "sio2", 7.160, { "Si", "O" }, SITES(cristobalite) }, /* beta-cristobalite, ideal */
    { "srtio3", 3.905, { "Sr", "Ti", "O" }, SITES(perovskite) },
};
enum { CRYSTALS = sizeof crystals / sizeof *crystals };

static const Param crystal_param[SPEC_PARAMS] = {
    SEED,
    { "repeat", 1, 10000, 1, true },
    { "n1", 0, 10000, 0, true }, /* 0: repeat */
    { "n2", 0, 10000, 0, true },
    { "n3", 0, 10000, 0, true },
    { "a", 0.1, 1000, 0, false }, /* 0: the table's */
    { "rattle", 0, 1000, 0, false },
};
static const Param water_param[SPEC_PARAMS] = {
    SEED,
    { "molecules", 1, (double)(MOST_ATOMS / 4), NAN, true },
};

static void new_atoms(const Spec *s, int64_t n, const char *const *name, int kinds, GeomAtoms *out)
{
    if (n >= MOST_ATOMS)
        err_throw(s->arena->err, ST_LIMIT, "%s: more than 2^31 atoms", s->text);
    *out = (GeomAtoms){ .n = n, .pbc = { true, true, true }, .name = name, .kinds = kinds };
    out->pos = arena_raw(s->arena, 3 * n, sizeof *out->pos);
    out->kind = arena_raw(s->arena, n, sizeof *out->kind);
}

/* Nearly normal, of deviation 1: the sum of twelve even ones. */
static double bell(Random *r)
{
    double sum = -6;

    for (int k = 0; k < 12; k++)
        sum += geom_unit(r);
    return sum;
}

static void fill_crystal(Spec *s, const Crystal *c, const int64_t times[3], GeomAtoms *out)
{
    double a = geom_get(s, "a") > 0 ? geom_get(s, "a") : c->a, rattle = geom_get(s, "rattle");
    int64_t n = times[0] * times[1] * times[2];

    for (int d = 0; d < 3; d++)
        out->cell[4 * d] = a * (double)times[d];
    for (int64_t k = 0; k < n; k++)
        for (int q = 0; q < c->nsite; q++) {
            int64_t i = k * c->nsite + q;
            double cube[3] = { (double)(k / (times[1] * times[2])),
                               (double)(k / times[2] % times[1]), (double)(k % times[2]) };

            out->kind[i] = c->site[q].kind;
            for (int d = 0; d < 3; d++) {
                double at = c->site[q].at[d];

                out->pos[3 * i + d] = a * (cube[d] + at - floor(at));
                if (rattle > 0)
                    out->pos[3 * i + d] += rattle * bell(&s->random);
            }
        }
}

static void crystal(Arena *arena, const char *spec, GeomAtoms *out)
{
    static const char *const n_of[] = { "n1", "n2", "n3" };
    const char *name = spec + strcspn(spec, ":"), *words;
    int64_t times[3], n = 1;
    int kinds = 0, k = 0;
    size_t length;
    Spec s;

    name += *name == ':';
    length = strcspn(name, ":");
    words = name[length] == ':' ? name + length : NULL;
    while (k < CRYSTALS &&
           (strlen(crystals[k].name) != length || memcmp(crystals[k].name, name, length) != 0))
        k++;
    if (k == CRYSTALS)
        err_throw(arena->err, ST_ARG,
                  "%s: this crystal is unknown; crystals are silicon, copper, iron, mgo, nacl, "
                  "sio2 or "
                  "srtio3",
                  spec);
    geom_spec(&s, arena, spec, words, crystal_param);
    for (int d = 0; d < 3; d++) {
        times[d] = geom_whole(&s, n_of[d]) > 0 ? geom_whole(&s, n_of[d]) : geom_whole(&s, "repeat");
        n *= times[d];
    }
    while (kinds < 3 && crystals[k].kind[kinds] != NULL)
        kinds++;
    new_atoms(&s, n * crystals[k].nsite, crystals[k].kind, kinds, out);
    fill_crystal(&s, &crystals[k], times, out);
}

/* Water: molecules of one shape, each somewhere in its own box of a grid, turned at random. */
#define WATER_VOLUME 29.915 /* A^3 for a molecule, at 1 g/cm^3 */
enum { TRIES = 60 };
static const double molecule[3][3] = { /* O, H, H: 0.9572 A at 104.52 degrees */
    { 0, 0, 0 }, { 0.9572, 0, 0 }, { -0.2399872, 0.9266272, 0 }
};

typedef struct Water {
    Spec *spec;
    GeomAtoms *out;
    int64_t grid[3];
    double side; /* of a box of the grid */
    int64_t *in; /* by box: its molecule, or -1 while it has none */
} Water;

static void turn_at_random(Random *r, double m[3][3])
{
    double q[4], sum;

    do {
        sum = 0;
        for (int k = 0; k < 4; k++) {
            q[k] = 2 * geom_unit(r) - 1;
            sum += q[k] * q[k];
        }
    } while (sum > 1 || sum < 0.01); /* even over the sphere in four dimensions */
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) {
            double other = i == j ? q[0] * q[0] - q[1] * q[1] - q[2] * q[2] - q[3] * q[3] : 0;
            int k = 3 - i - j; /* the third axis */
            double sign = (j - i + 3) % 3 == 1 ? -1 : 1;

            other = i == j ? other : 2 * sign * q[0] * q[1 + k];
            m[i][j] = (2 * q[1 + i] * q[1 + j] + other) / sum;
        }
}

/* The least square of a distance between these atoms and those of another molecule. */
static double clearance(const Water *w, double pos[3][3], int64_t other)
{
    double least = INFINITY;

    for (int k = 0; k < 9; k++) {
        const double *a = pos[k / 3], *b = w->out->pos + 9 * other + 3 * (k % 3);
        double sum = 0;

        for (int d = 0; d < 3; d++) {
            double side = w->out->cell[4 * d], x = a[d] - b[d];

            x -= side * nearbyint(x / side);
            sum += x * x;
        }
        least = fmin(least, sum);
    }
    return least;
}

/* ... and all molecules in the boxes around this one. */
static double all_clearance(const Water *w, double pos[3][3], const int64_t box[3])
{
    double least = INFINITY;

    for (int k = 0; k < 27; k++) {
        int64_t x = (box[0] + k / 9 - 1 + w->grid[0]) % w->grid[0];
        int64_t y = (box[1] + k / 3 % 3 - 1 + w->grid[1]) % w->grid[1];
        int64_t z = (box[2] + k % 3 - 1 + w->grid[2]) % w->grid[2];
        int64_t other = w->in[(x * w->grid[1] + y) * w->grid[2] + z];

        if (other >= 0)
            least = fmin(least, clearance(w, pos, other));
    }
    return least;
}

/* The first place that is far enough from others, or the best of many. */
static void place_molecule(Water *w, int64_t i, const int64_t box[3])
{
    Random *r = &w->spec->random;
    double best = -1;

    for (int k = 0; k < TRIES && best < 1.7 * 1.7; k++) {
        double m[3][3], pos[3][3], center[3], clear;

        turn_at_random(r, m);
        for (int d = 0; d < 3; d++)
            center[d] = w->side * ((double)box[d] + 0.5 + 0.15 * (2 * geom_unit(r) - 1));
        for (int a = 0; a < 3; a++)
            for (int d = 0; d < 3; d++)
                pos[a][d] = center[d] + m[d][0] * molecule[a][0] + m[d][1] * molecule[a][1];
        clear = all_clearance(w, pos, box);
        if (clear > best)
            memcpy(w->out->pos + 9 * i, pos, sizeof pos);
        best = fmax(best, clear);
    }
}

/* The grid nearest to a cube that has room for n. */
static void choose_grid(int64_t n, int64_t grid[3])
{
    grid[0] = grid[1] = grid[2] = 1;
    while (grid[0] * grid[1] * grid[2] < n)
        for (int d = 2; d >= 0; d--)
            if (grid[d] <= grid[0]) {
                grid[d]++;
                break;
            }
}

/* cbrt is not the same in every C library. */
static double cube_root(double v)
{
    double x = 1 + v / 3;

    for (int k = 0; k < 100; k++)
        x = (2 * x + v / (x * x)) / 3;
    return x;
}

static void water(Arena *arena, const char *spec, GeomAtoms *out)
{
    static const char *const kind[] = { "O", "H" };
    Spec s;
    Water w = { .spec = &s, .out = out };
    int64_t n, boxes, k = 0;

    geom_spec(&s, arena, spec, strchr(spec, ':'), water_param);
    n = geom_whole(&s, "molecules");
    new_atoms(&s, 3 * n, kind, 2, out);
    choose_grid(n, w.grid);
    boxes = w.grid[0] * w.grid[1] * w.grid[2];
    w.side = cube_root(WATER_VOLUME * (double)n / (double)boxes);
    w.in = arena_raw(arena, boxes, sizeof *w.in);
    for (int64_t b = 0; b < boxes; b++)
        w.in[b] = -1;
    for (int d = 0; d < 3; d++)
        out->cell[4 * d] = w.side * (double)w.grid[d];
    for (int64_t b = 0; b < boxes; b++) {
        int64_t box[3] = { b / (w.grid[1] * w.grid[2]), b / w.grid[2] % w.grid[1], b % w.grid[2] };

        if (geom_below(&s.random, boxes - b) >= n - k)
            continue; /* n of all boxes, each as likely as any other */
        place_molecule(&w, k, box);
        for (int a = 0; a < 3; a++)
            out->kind[3 * k + a] = a > 0;
        w.in[b] = k++;
    }
}

static const struct {
    const char *name;
    void (*make)(Arena *, const char *spec, GeomAtoms *);
} kinds[] = { { "crystal", crystal }, { "water", water } };

static int kind_of(const char *spec)
{
    size_t n = strcspn(spec, ":");

    for (int i = 0; i < 2; i++)
        if (strlen(kinds[i].name) == n && memcmp(kinds[i].name, spec, n) == 0)
            return i;
    return -1;
}

bool geom_is_atoms(const char *spec)
{
    return kind_of(spec) >= 0;
}

void geom_atoms(Arena *arena, const char *spec, GeomAtoms *out)
{
    kinds[kind_of(spec)].make(arena, spec, out);
}
