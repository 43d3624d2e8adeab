/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Which formats suit the entries of a sparse axis: those that leave little of what they store
 * empty.  Each is told by a count over all entries, so none is tried that would fill the memory. */
#include "tune/tune.h"

#include <stdlib.h>
#include <string.h>

/* Of what a format stores, the share that has to be entries: of blocks, whose arithmetic is worth
 * some zeros; of rows that are filled up.  Of all entries, the share that makes a part worth it. */
#define BLOCK_SHARE 0.25
#define ROW_SHARE 0.67
#define PART_SHARE 0.25
/* How much longer than the mean the longest row is, when rows are put into groups by length. */
#define SKEW 8

/* The list has room for all that the functions below can add. */
enum { FAR = 4096, WINDOW = 16, MOST_LIST = 24 };

typedef struct Entries {
    Arena *arena;
    const Array *start, *col;
    int64_t rows, columns, n, longest, empty;
    const char **list; /* what was found, up to NULL */
    int nlist;
} Entries;

static int64_t first_of(const Entries *e, int64_t row)
{
    return ir_array_int(e->start, row < e->rows ? row : e->rows);
}

static void add(Entries *e, const char *name, int nargs, int a, int b, int c)
{
    Text t = { .arena = e->arena };
    int arg[3] = { a, b, c };

    text_f(&t, "%s(", name);
    for (int i = 0; i < nargs; i++)
        text_f(&t, i > 0 ? ", %d" : "%d", arg[i]);
    text_char(&t, ')');
    e->list[e->nlist++] = t.s;
}

static void look(Entries *e)
{
    for (int64_t i = 0; i < e->rows; i++) {
        int64_t n = first_of(e, i + 1) - first_of(e, i);

        e->longest = n > e->longest ? n : e->longest;
        e->empty += n == 0;
    }
    for (int64_t k = 0; k < e->n; k++) {
        int64_t j = ir_array_int(e->col, k);

        e->columns = j >= e->columns ? j + 1 : e->columns;
    }
}

typedef struct Blocks { /* of r rows and c columns */
    int64_t n, full;   /* with an entry; entries in those with a quarter or more of all places */
    int64_t *count;    /* by column of blocks, of one row of them */
    int64_t *met;
} Blocks;

static void end_row(Blocks *b, int64_t nmet, int r, int c)
{
    for (int64_t k = 0; k < nmet; k++) {
        int64_t count = b->count[b->met[k]];

        b->n++;
        b->full += 4 * count >= (int64_t)r * c ? count : 0;
        b->count[b->met[k]] = 0;
    }
}

static Blocks count_blocks(const Entries *e, int r, int c)
{
    int64_t wide = e->columns / c + 1;
    Blocks b = { .count = arena_array(e->arena, wide, sizeof *b.count),
                 .met = arena_array(e->arena, wide, sizeof *b.met) };

    for (int64_t i = 0; i < e->rows; i += r) {
        int64_t nmet = 0, end = first_of(e, i + r);

        for (int64_t k = first_of(e, i); k < end; k++) {
            int64_t at = ir_array_int(e->col, k) / c;

            if (b.count[at]++ == 0)
                b.met[nmet++] = at;
        }
        end_row(&b, nmet, r, c);
    }
    return b;
}

static void add_blocks(Entries *e)
{
    for (int b = 4; b <= 32; b *= 2) {
        Blocks found = count_blocks(e, b, b);

        if ((double)e->n >= BLOCK_SHARE * b * b * (double)found.n)
            add(e, "bsr", 2, b, b, 0);
        else if ((double)found.full >= PART_SHARE * (double)e->n)
            add(e, "blocks_rest", 3, b, b, b * b / 4);
    }
}

/* Strips of rows that share columns; of some columns many rows, and of others few. */
static void add_strips(Entries *e)
{
    Blocks found = count_blocks(e, 8, 1);

    if ((double)e->n >= ROW_SHARE / 2 * 8 * (double)found.n) {
        add(e, "sr_bcrs", 2, 8, 8, 0);
        add(e, "bsr", 2, 8, 1, 0);
    }
    if (found.full < e->n && (double)found.full >= PART_SHARE * (double)e->n)
        add(e, "blocks_rest", 3, 8, 1, 3);
}

/* Diagonals, outwards from the main one while they are mostly full. */
static void add_band(Entries *e)
{
    int64_t *count = arena_array(e->arena, FAR + 1, sizeof *count), inside = 0;
    int w = 0;

    for (int64_t i = 0; i < e->rows; i++)
        for (int64_t k = first_of(e, i), end = first_of(e, i + 1); k < end; k++) {
            int64_t far = llabs(ir_array_int(e->col, k) - i);

            count[far < FAR ? far : FAR]++;
        }
    while (w < FAR && 2 * count[w] >= (w == 0 ? e->rows : 2 * (e->rows - w)) && count[w] > 0)
        inside += count[w++];
    if (w == 0 || (double)inside < PART_SHARE * (double)e->n)
        return;
    if (inside == e->n)
        add(e, "band", 2, w - 1, w - 1, 0);
    else
        add(e, "band_rest", 1, w - 1, 0, 0);
}

static int by_length(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (y > x) - (y < x);
}

/* What slices of c rows store that are sorted in windows. */
static double slices(const Entries *e, int c)
{
    int64_t window = (int64_t)c * WINDOW;
    int64_t *length = arena_array(e->arena, window, sizeof *length);
    double stored = 0;

    for (int64_t i = 0; i < e->rows; i += window) {
        int64_t n = e->rows - i < window ? e->rows - i : window;

        for (int64_t k = 0; k < n; k++)
            length[k] = first_of(e, i + k + 1) - first_of(e, i + k);
        qsort(length, (size_t)n, sizeof *length, by_length);
        for (int64_t k = 0; k < n; k += c)
            stored += (double)length[k] * c;
    }
    return stored;
}

static void add_rows(Entries *e, int lanes)
{
    double mean = (double)e->n / (double)e->rows;
    int k = 1;

    while (mean > 1 << k && k < 10)
        k++;
    if ((double)e->n >= ROW_SHARE * (double)e->rows * (double)e->longest)
        add(e, "ell", 1, 0, 0, 0);
    else if ((double)e->n >= ROW_SHARE * slices(e, lanes))
        add(e, "sell", 2, lanes, lanes * WINDOW, 0);
    if ((double)e->longest >= SKEW * mean) {
        add(e, "hyb", 2, 1, k, 0);
        add(e, "hyb", 2, 4, k, 0);
    }
    if (2 * e->empty >= e->rows)
        add(e, "dcsr", 0, 0, 0, 0);
}

/* A matrix by rows: rows that are counted, and below each entries with a column. */
static bool is_csr(const Axis *a)
{
    const Axis *rows = a->parent;

    return a->extent == X_SEG && a->from == NULL && a->ncoord == 1 &&
           a->coord[0].kind == C_LOAD && rows != NULL && rows->parent == NULL &&
           rows->extent == X_EXPR;
}

const char *const *tune_formats(Arena *arena, const Env *env, const Axis *a, int lanes)
{
    Entries e = { .arena = arena };

    e.list = arena_array(arena, MOST_LIST + 1, sizeof *e.list);
    if (!is_csr(a) || env->start[a->id].data == NULL || env->coord[a->id][0].data == NULL)
        return e.list;
    e.start = &env->start[a->id];
    e.col = &env->coord[a->id][0];
    e.rows = e.start->n - 1;
    e.n = e.col->n;
    if (e.n == 0 || e.rows == 0)
        return e.list;
    look(&e);
    add_blocks(&e);
    add_strips(&e);
    add_band(&e);
    add_rows(&e, lanes);
    return e.list;
}
