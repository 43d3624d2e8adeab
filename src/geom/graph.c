/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Graphs by generators, for benchmarks and tests: a table of kinds, each with its parameters. */
#include "geom/geom_int.h"

#include <math.h>
#include <string.h>

#define MOST ((int64_t)1 << 40)

/* Turns entries by row into entries by column: of each column the rows, ascending if they were. */
static void turn(Arena *arena, const GeomGraph *a, GeomGraph *out)
{
    int64_t *at = arena_array(arena, a->n + 1, sizeof *at);

    *out = (GeomGraph){ .m = a->n, .n = a->m, .nnz = a->nnz };
    out->start = arena_array(arena, a->n + 1, sizeof *out->start);
    out->col = arena_array(arena, a->nnz, sizeof *out->col);
    for (int64_t p = 0; p < a->nnz; p++)
        out->start[a->col[p] + 1]++;
    for (int64_t j = 0; j < a->n; j++)
        out->start[j + 1] += out->start[j];
    memcpy(at, out->start, (size_t)a->n * sizeof *at);
    for (int64_t i = 0; i < a->m; i++)
        for (int64_t p = a->start[i]; p < a->start[i + 1]; p++)
            out->col[at[a->col[p]]++] = i;
}

/* Twice turned, columns ascend. */
static void sort_rows(Arena *arena, GeomGraph *g)
{
    GeomGraph turned;

    turn(arena, g, &turned);
    turn(arena, &turned, g);
}

void geom_graph_of(Arena *arena, const int64_t *row, const int64_t *col, int64_t n, GeomGraph *g)
{
    int64_t *at = arena_array(arena, g->m + 1, sizeof *at), to = 0;

    g->nnz = n;
    g->start = arena_array(arena, g->m + 1, sizeof *g->start);
    g->col = arena_array(arena, n, sizeof *g->col);
    for (int64_t p = 0; p < n; p++)
        g->start[row[p] + 1]++;
    for (int64_t i = 0; i < g->m; i++)
        g->start[i + 1] += g->start[i];
    memcpy(at, g->start, (size_t)g->m * sizeof *at);
    for (int64_t p = 0; p < n; p++)
        g->col[at[row[p]]++] = col[p];
    sort_rows(arena, g);
    for (int64_t i = 0, p = 0; i < g->m; i++) { /* each place once */
        int64_t begin = to;

        for (; p < g->start[i + 1]; p++)
            if (to == begin || g->col[to - 1] != g->col[p])
                g->col[to++] = g->col[p];
        g->start[i] = begin;
    }
    g->start[g->m] = g->nnz = to;
}

/* Fills rows of given degrees with columns drawn from the pool, each once a row.  A row that keeps
 * meeting columns it has takes the next free ones. */
static void fill_rows(Spec *s, GeomGraph *g, const int64_t *pool, int64_t npool)
{
    int64_t *last = arena_array(s->arena, g->n, sizeof *last), tries = 0;

    for (int64_t i = 0; i < g->m; i++) {
        tries = 8 * (g->start[i + 1] - g->start[i]);
        for (int64_t p = g->start[i]; p < g->start[i + 1]; p++) {
            int64_t j = geom_below(&s->random, npool);

            j = pool == NULL ? j : pool[j];
            while (last[j] == i + 1)
                if (tries-- > 0) {
                    j = geom_below(&s->random, npool);
                    j = pool == NULL ? j : pool[j];
                } else {
                    j = (j + 1) % g->n;
                }
            last[j] = i + 1;
            g->col[p] = j;
        }
    }
    sort_rows(s->arena, g);
}

static void new_graph(Spec *s, GeomGraph *g)
{
    int64_t n = geom_whole(s, "n");

    *g = (GeomGraph){ .m = n, .n = n, .nnz = geom_whole(s, "nnz") };
    if (g->n > 0 ? (double)g->nnz > (double)g->n * (double)g->n : g->nnz > 0)
        err_throw(s->arena->err, ST_ARG, "%s: %lld entries do not fit %lld rows and columns",
                  s->text, (long long)g->nnz, (long long)g->n);
    g->start = arena_array(s->arena, g->m + 1, sizeof *g->start);
    g->col = arena_array(s->arena, g->nnz, sizeof *g->col);
}

/* Turns degrees, which stand at start[i + 1], to starts. */
static void sum_degrees(GeomGraph *g)
{
    for (int64_t i = 0; i < g->m; i++)
        g->start[i + 1] += g->start[i];
}

/* Every place as likely as any other, nearly: a row is drawn for each entry, and if it is full the
 * next one that is not. */
static void uniform(Spec *s, GeomGraph *g)
{
    new_graph(s, g);
    for (int64_t p = 0; p < g->nnz; p++) {
        int64_t i = geom_below(&s->random, g->m);

        while (g->start[i + 1] == g->n)
            i = (i + 1) % g->m;
        g->start[i + 1]++;
    }
    sum_degrees(g);
    fill_rows(s, g, NULL, g->n);
}

/* Degrees that fall off as x^(-1/(a - 1)) over ranks x, which is d^-a by frequency: at least 1
 * where there are entries enough, at most `most`, in all nnz. */
static void power_degrees(Spec *s, const GeomGraph *g, int64_t most, int64_t *degree)
{
    double power = -1 / (geom_get(s, "a") - 1), low = 0, high = (double)g->nnz * (double)g->n;
    int64_t least = g->nnz >= g->n, left;

    for (int step = 0; step < 100; step++) { /* the scale at which they add up to nnz */
        double scale = (low + high) / 2, sum = 0;

        for (int64_t x = 0; x < g->n; x++)
            sum += fmin(fmax(scale * pow((double)(x + 1), power), (double)least), (double)most);
        *(sum > (double)g->nnz ? &high : &low) = scale;
        if (high - low < 1e-9 * high)
            break;
    }
    left = g->nnz;
    for (int64_t x = 0; x < g->n; x++) {
        double d = low * pow((double)(x + 1), power);

        degree[x] = (int64_t)fmin(fmax(d, (double)least), (double)most);
        left -= degree[x];
    }
    for (int64_t x = 0; left > 0; x = (x + 1) % g->n) /* what rounding down has left */
        if (degree[x] < most) {
            degree[x]++;
            left--;
        }
}

static void shuffle(Random *r, int64_t *a, int64_t n)
{
    for (int64_t i = n - 1; i > 0; i--) {
        int64_t k = geom_below(r, i + 1), t = a[i];

        a[i] = a[k];
        a[k] = t;
    }
}

/* Rows have the degrees, columns are drawn as often as theirs say; each in its own order. */
static void powerlaw(Spec *s, GeomGraph *g)
{
    int64_t most = geom_whole(s, "max"), *degree, *pool, n = 0;

    new_graph(s, g);
    if (most == 0) /* a tenth of the nodes, or what it takes */
        most = g->n / 10 > 16 ? g->n / 10 : g->n;
    if (most > g->n || (double)most * (double)g->n < (double)g->nnz)
        err_throw(s->arena->err, ST_ARG,
                  "%s: max must be at most n, and large enough for nnz entries", s->text);
    if (g->n == 0)
        return;
    degree = arena_array(s->arena, g->n, sizeof *degree);
    pool = arena_array(s->arena, g->nnz, sizeof *pool);
    power_degrees(s, g, most, degree);
    shuffle(&s->random, degree, g->n);
    memcpy(g->start + 1, degree, (size_t)g->n * sizeof *degree);
    shuffle(&s->random, degree, g->n);
    for (int64_t j = 0; j < g->n; j++)
        for (int64_t k = 0; k < degree[j]; k++)
            pool[n++] = j;
    sum_degrees(g);
    fill_rows(s, g, pool, n);
}

/* One entry: of the square of this size a quarter, of that a quarter, and so on. */
static void draw(Spec *s, int64_t size, double b_at, double c_at, double d_at, int64_t at[2])
{
    at[0] = at[1] = 0;
    for (int64_t half = size / 2; half > 0; half /= 2) {
        double u = geom_unit(&s->random);

        at[0] += u >= c_at ? half : 0;
        at[1] += (u >= b_at && u < c_at) || u >= d_at ? half : 0;
    }
}

static void rmat(Spec *s, GeomGraph *g)
{
    double a = geom_get(s, "a"), b = geom_get(s, "b"), c = geom_get(s, "c");
    int64_t *row, *col, size = 1, nnz, at[2];

    new_graph(s, g);
    nnz = g->nnz;
    if (a + b + c > 1)
        err_throw(s->arena->err, ST_ARG, "%s: a + b + c is more than 1", s->text);
    row = arena_array(s->arena, nnz, sizeof *row);
    col = arena_array(s->arena, nnz, sizeof *col);
    while (size < g->n)
        size *= 2;
    for (int64_t p = 0; p < nnz; p++) {
        int tries = 0;

        do
            draw(s, size, a, a + b, a + b + c, at);
        while ((at[0] >= g->n || at[1] >= g->n) && ++tries < 100);
        row[p] = at[0] % g->n; /* where next to all are outside */
        col[p] = at[1] % g->n;
    }
    geom_graph_of(s->arena, row, col, nnz, g);
}

static void banded(Spec *s, GeomGraph *g)
{
    int64_t n = geom_whole(s, "n"), w = geom_whole(s, "w");

    *g = (GeomGraph){ .m = n, .n = n };
    g->start = arena_array(s->arena, n + 1, sizeof *g->start);
    for (int64_t i = 0; i < n; i++) {
        int64_t low = i > w ? i - w : 0, high = n - i > w ? i + w + 1 : n;

        g->start[i + 1] = g->start[i] + high - low;
    }
    g->nnz = g->start[n];
    g->col = arena_array(s->arena, g->nnz, sizeof *g->col);
    for (int64_t i = 0; i < n; i++)
        for (int64_t p = g->start[i]; p < g->start[i + 1]; p++)
            g->col[p] = (i > w ? i - w : 0) + p - g->start[i];
}

/* clang-format off */
#define NODES { "n", 0, (double)MOST, NAN, true }
#define ENTRIES { "nnz", 0, (double)MOST, NAN, true }
#define SEED { "seed", 0, 0x1p53, 1, true }
static const struct {
    const char *name;
    void (*make)(Spec *, GeomGraph *);
    Param param[SPEC_PARAMS];
} kinds[] = {
    { "uniform", uniform, { NODES, ENTRIES, SEED } },
    { "powerlaw", powerlaw, { NODES, ENTRIES, SEED, { "a", 1.1, 100, 2.1, false },
                              { "max", 0, (double)MOST, 0, true } } },
    { "rmat", rmat, { NODES, ENTRIES, SEED, { "a", 0, 1, 0.57, false }, { "b", 0, 1, 0.19, false },
                      { "c", 0, 1, 0.19, false } } },
    { "banded", banded, { NODES, SEED, { "w", 0, (double)MOST, NAN, true } } },
};
enum { KINDS = sizeof kinds / sizeof *kinds };
/* clang-format on */

static int kind_of(const char *spec)
{
    size_t n = strcspn(spec, ":");

    for (int i = 0; i < KINDS; i++)
        if (strlen(kinds[i].name) == n && memcmp(kinds[i].name, spec, n) == 0)
            return i;
    return -1;
}

bool geom_is_spec(const char *spec)
{
    return kind_of(spec) >= 0;
}

void geom_graph(Arena *arena, const char *spec, GeomGraph *out)
{
    const char *words = strchr(spec, ':');
    int kind = kind_of(spec);
    Spec s;

    geom_spec(&s, arena, spec, words, kinds[kind].param);
    kinds[kind].make(&s, out);
}
