/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * run/plan.c against a transpose written apart, for every pair of index types and number of
 * threads; run/memory.c: copies and comparisons of long blocks. */
#include "unit/test.h"
#include "unit/trap.h"

#include "fail/inject.h"
#include "run/run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const int threads[] = { 1, 2, 3, 7, 16 };
enum { NTHREADS = 5 };

typedef struct Rows {
    int64_t rows, n, entries;
    int64_t *start, *coord;
} Rows;

static Pool *pool_of(int n)
{
    Err err = { 0 };
    Pool *pool = NULL;

    CHECK_EQ(CATCH(&err, pool = pool_new(&os_libc, &err, n)), ST_OK);
    return pool;
}

/* Row k of the shapes below has so many entries. */
typedef int64_t Length(int64_t k, uint64_t *seed);

static int64_t few(int64_t k, uint64_t *seed)
{
    (void)k;
    return (int64_t)(test_random(seed) % 9);
}

static int64_t all_in_one(int64_t k, uint64_t *seed)
{
    (void)seed;
    return k == 3 ? 30000 : 0;
}

static int64_t none(int64_t k, uint64_t *seed)
{
    (void)k, (void)seed;
    return 0;
}

static Rows new_rows(int64_t rows, int64_t n, Length *length, uint64_t *seed)
{
    Rows r = { .rows = rows, .n = n };

    r.start = malloc((size_t)(rows + 1) * sizeof *r.start);
    r.start[0] = 0;
    for (int64_t k = 0; k < rows; k++)
        r.start[k + 1] = r.start[k] + length(k, seed);
    r.entries = r.start[rows];
    r.coord = malloc((size_t)(r.entries + 1) * sizeof *r.coord);
    for (int64_t e = 0; e < r.entries; e++)
        r.coord[e] = (int64_t)(test_random(seed) % (uint64_t)n);
    return r;
}

static void free_rows(Rows *r)
{
    free(r->start);
    free(r->coord);
}

static void *in_type(const int64_t *v, int64_t n, int bytes)
{
    void *to = malloc((size_t)(n + 1) * (size_t)bytes);

    for (int64_t i = 0; i < n; i++)
        if (bytes == 4)
            ((int32_t *)to)[i] = (int32_t)v[i];
        else
            ((int64_t *)to)[i] = v[i];
    return to;
}

static int64_t at(const void *v, int bytes, int64_t i)
{
    return bytes == 4 ? ((const int32_t *)v)[i] : ((const int64_t *)v)[i];
}

/* Each entry is where it belongs: the k-th of its value, in the order of entries; without starts it
 * has no row. */
static void check_transpose(const Rows *r, const RunTranspose *t)
{
    int64_t *next = calloc((size_t)r->n + 1, sizeof *next), row = 0, wrong = 0, sum = 0;

    for (int64_t j = 0; j <= r->n; j++) {
        wrong += at(t->out_start, t->out_bytes, j) < 0;
        next[j] = at(t->out_start, t->out_bytes, j);
    }
    for (int64_t e = 0; e < r->entries; e++) {
        int64_t to = next[r->coord[e]]++;

        while (r->start[row + 1] <= e)
            row++;
        wrong += at(t->out_entry, t->out_bytes, to) != e;
        wrong += t->start != NULL && at(t->out_row, t->out_bytes, to) != row;
    }
    for (int64_t j = 0; j < r->n; j++, sum = next[j - 1])
        wrong += at(t->out_start, t->out_bytes, j) != sum;
    CHECK_EQ(wrong, 0);
    CHECK_EQ(at(t->out_start, t->out_bytes, r->n), r->entries);
    free(next);
}

static void try_transpose(const Rows *r, Pool *pool, int start_bytes, int coord_bytes, int bytes)
{
    void *start = in_type(r->start, r->rows + 1, start_bytes);
    void *coord = in_type(r->coord, r->entries, coord_bytes);
    RunTranspose t = { .start = start,
                       .coord = coord,
                       .rows = r->rows,
                       .n = r->n,
                       .entries = r->entries,
                       .out_start = malloc((size_t)((r->n + 1) * bytes)),
                       .out_entry = malloc((size_t)((r->entries + 1) * bytes)),
                       .out_row = malloc((size_t)((r->entries + 1) * bytes)),
                       .start_bytes = start_bytes,
                       .coord_bytes = coord_bytes,
                       .out_bytes = bytes };

    CHECK(run_transpose(pool, &t));
    check_transpose(r, &t);
    memset(t.out_start, 9, (size_t)((r->n + 1) * bytes));
    memset(t.out_entry, 9, (size_t)((r->entries + 1) * bytes));
    t.start = NULL;
    CHECK(run_transpose(pool, &t));
    check_transpose(r, &t);
    free(start);
    free(coord);
    free(t.out_start);
    free(t.out_entry);
    free(t.out_row);
}

TEST(a_transpose_is_the_same_for_every_type_and_number_of_threads)
{
    static const struct {
        int64_t rows, n;
        Length *length;
    } shape[] = { { 5000, 700, few },    { 3000, 40000, few },
                  { 9, 50, all_in_one }, { 40, 20000, all_in_one },
                  { 12, 5, none },       { 0, 0, none },
                  { 20, 3, few } };
    uint64_t seed = 3;

    for (size_t s = 0; s < sizeof shape / sizeof *shape; s++) {
        Rows r = new_rows(shape[s].rows, shape[s].n, shape[s].length, &seed);

        for (int k = 0; k < NTHREADS; k++) {
            Pool *pool = pool_of(threads[k]);

            for (int types = 0; types < 8; types++)
                try_transpose(&r, pool, types & 1 ? 4 : 8, types & 2 ? 4 : 8, types & 4 ? 4 : 8);
            pool_free(pool);
        }
        free_rows(&r);
    }
}

/* Entries with a negative coordinate are left out, and the others keep their order and rows. */
TEST(rows_of_one_width_are_transposed_without_their_padding)
{
    enum { ROWS = 9000, WIDTH = 7, N = 300, ENTRIES = ROWS * WIDTH };
    static int64_t coord[ENTRIES], start[N + 1], entry[ENTRIES], row[ENTRIES];
    uint64_t seed = 8;
    int64_t n = 0;

    for (int e = 0; e < ENTRIES; e++) {
        coord[e] = (int64_t)(test_random(&seed) % (N + 40)) - 40;
        n += coord[e] >= 0;
    }
    for (int k = 0; k < NTHREADS; k++) {
        Pool *pool = pool_of(threads[k]);
        RunTranspose t = { .coord = coord, .rows = ROWS, .width = WIDTH, .n = N,
                           .entries = ENTRIES, .out_start = start, .out_entry = entry,
                           .out_row = row, .coord_bytes = 8, .out_bytes = 8 };
        int64_t wrong = 0;

        memset(entry, 9, sizeof entry);
        memset(row, 9, sizeof row);
        CHECK(run_transpose(pool, &t));
        CHECK_EQ(start[0], 0);
        CHECK_EQ(start[N], n);
        for (int j = 0; j < N; j++)
            for (int64_t p = start[j]; p < start[j + 1]; p++)
                wrong += coord[entry[p]] != j || row[p] != entry[p] / WIDTH ||
                         (p > start[j] && entry[p] <= entry[p - 1]);
        CHECK_EQ(wrong, 0);
        pool_free(pool);
    }
}

TEST(all_elements_are_gathered_whatever_their_types)
{
    static const int64_t length[] = { 0, 1, 4095, 70001 };
    int64_t index[70001], from[997], wrong = 0;

    for (int i = 0; i < 70001; i++)
        index[i] = i * 31LL % 997;
    for (int i = 0; i < 997; i++)
        from[i] = 7 * i - 3;
    for (int t = 0; t < NTHREADS * 4 * 4; t++) {
        int bytes = t & 1 ? 4 : 8, wide = t & 2 ? 4 : 8;
        int64_t n = length[t / 4 % 4];
        Pool *pool = pool_of(threads[t / 16]);
        RunGather g = { .to = malloc((size_t)(n + 1) * (size_t)bytes),
                        .from = in_type(from, 997, bytes),
                        .index = in_type(index, n, wide),
                        .n = n,
                        .bytes = bytes,
                        .index_bytes = wide };

        run_gather(pool, &g);
        for (int64_t i = 0; i < n; i++)
            wrong += at(g.to, bytes, i) != from[index[i]];
        pool_free(pool);
        free(g.to);
        free((void *)g.from);
        free((void *)g.index);
    }
    CHECK_EQ(wrong, 0);
}

TEST(without_memory_there_is_no_transpose)
{
    uint64_t seed = 4;
    Rows r = new_rows(10, 10, few, &seed);
    Inject j;
    Err err = { 0 };
    Pool *pool = NULL;
    int64_t out[3][100];
    RunTranspose t = { .start = r.start,
                       .coord = r.coord,
                       .rows = 10,
                       .n = 10,
                       .entries = r.entries,
                       .out_start = out[0],
                       .out_entry = out[1],
                       .out_row = out[2],
                       .start_bytes = 8,
                       .coord_bytes = 8,
                       .out_bytes = 8 };

    inject_init(&j, &os_libc);
    j.os.cpus = os_libc.cpus;
    CHECK_EQ(CATCH(&err, pool = pool_new(&j.os, &err, 1)), ST_OK);
    inject_at(&j, INJECT_ALLOC, 1, true, ENOMEM);
    CHECK(!run_transpose(pool, &t));
    t.n = INT64_MAX / 2;
    CHECK(!run_transpose(pool, &t));
    pool_free(pool);
    CHECK(inject_is_clean(&j));
    free_rows(&r);
}

TEST(long_blocks_are_copied_and_compared_in_full)
{
    static const int64_t sizes[] = { 1, 65535, 65536, 65537, 1 << 18, 1000003 };

    for (int k = 0; k < NTHREADS; k++) {
        Pool *pool = pool_of(threads[k]);

        CHECK(run_is_same(pool, "", NULL, 0));
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
            int64_t n = sizes[s], place[] = { 0, n / 2, n - 1 };
            char *a = malloc((size_t)n + 2), *b = malloc((size_t)n + 2);

            memset(b, 9, (size_t)n + 2);
            for (int64_t i = 0; i < n + 2; i++)
                a[i] = (char)(i % 251);
            run_copy(pool, b + 1, a + 1, n);
            CHECK(b[0] == 9 && b[n + 1] == 9 && memcmp(a + 1, b + 1, (size_t)n) == 0);
            CHECK(run_is_same(pool, a + 1, b + 1, n));
            for (int i = 0; i < 3; i++) {
                b[1 + place[i]]++;
                CHECK(!run_is_same(pool, a + 1, b + 1, n));
                b[1 + place[i]]--;
            }
            free(a);
            free(b);
        }
        pool_free(pool);
    }
}
