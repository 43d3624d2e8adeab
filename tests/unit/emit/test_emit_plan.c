/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * emit/plan.h: what emitted programs make of a structure is what the library makes, element by
 * element: of random rows, of none, of empty ones, and of one long row among short ones. */
#include "base/base.h"
#include "run/run.h"
#include "unit/test.h"

#include <string.h>

#define WEFT_USED __attribute__((unused))
static uint64_t weft_place(uint64_t h, uint64_t n) /* of emit/simd.h */
{
    return hash_place(h, n);
}
#include "emit/plan.h"

enum { MOST = 60, ENTRIES = 40000 };

typedef struct Rows {
    int64_t rows, n; /* n: values of the coordinate */
    int64_t start[MOST + 1], coord[ENTRIES];
} Rows;

/* kind 0: no entries; 1: no rows; 2: one long row; else any. */
static void draw(Rows *r, uint64_t *seed, int kind)
{
    r->rows = kind == 1 ? 0 : 1 + (int64_t)(test_random(seed) % MOST);
    r->n = 1 + (int64_t)(test_random(seed) % 50);
    memset(r->start, 0, sizeof r->start);
    for (int64_t i = 0; i < r->rows; i++) {
        int64_t most = kind == 0 ? 1 : kind == 2 && i == r->rows / 2 ? 20000 : 7;

        r->start[i + 1] = r->start[i] + (int64_t)(test_random(seed) % (uint64_t)most);
        if (most > 7)
            r->start[i + 1] = r->start[i] + 15000 + (int64_t)(test_random(seed) % 5000);
    }
    for (int64_t e = 0; e < r->start[r->rows]; e++)
        r->coord[e] = (int64_t)(test_random(seed) % (uint64_t)r->n);
}

static void expect_same(const int64_t *a, const int64_t *b, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        CHECK_EQ(a[i], b[i]);
}

static void check_transpose(weft_heap *h, const Rows *r, Pool *pool)
{
    static int64_t start[60], entry[ENTRIES], row[ENTRIES];
    int64_t n = r->start[r->rows], *s, *e, *q;
    RunTranspose t = { .start = r->start, .coord = r->coord, .rows = r->rows, .n = r->n,
                       .entries = n, .out_start = start, .out_entry = entry, .out_row = row,
                       .start_bytes = 8, .coord_bytes = 8, .out_bytes = 8 };

    CHECK(run_transpose(pool, &t));
    weft_transpose(h, n, r->coord, r->n, r->start, &s, &e, &q);
    CHECK_EQ(h->fault, 0);
    expect_same(s, start, r->n + 1);
    expect_same(e, entry, n);
    expect_same(q, row, n);
}

/* Rows of one width, of whose entries those with a coordinate of `bound` or more are padding. */
static void check_padded(weft_heap *h, const Rows *r, Pool *pool)
{
    static int64_t start[60], entry[ENTRIES], row[ENTRIES], key[ENTRIES];
    int64_t width = 3, rows = r->start[r->rows] / width, n = rows * width;
    int64_t bound = (r->n + 1) / 2, *s, *e, *q, *made = weft_keys(h, n, r->coord);
    RunTranspose t = { .coord = key, .rows = rows, .width = width, .n = r->n, .entries = n,
                       .out_start = start, .out_entry = entry, .out_row = row,
                       .coord_bytes = 8, .out_bytes = 8 };

    for (int64_t i = 0; i < n; i++)
        key[i] = r->coord[i] < bound ? r->coord[i] : -1;
    CHECK(run_transpose(pool, &t));
    weft_leave_out(made, n, r->coord, bound);
    weft_transpose(h, n, made, r->n, weft_even_starts(h, rows, width), &s, &e, &q);
    CHECK_EQ(h->fault, 0);
    expect_same(made, key, n);
    expect_same(s, start, r->n + 1);
    expect_same(e, entry, s[r->n]);
    expect_same(q, row, s[r->n]);
}

static void check_long(weft_heap *h, const Rows *r, int64_t part)
{
    static int64_t row[MOST], first[MOST + 1], part_row[ENTRIES], shift[ENTRIES], at[ENTRIES];
    RunParts want;
    weft_long got;

    run_count_parts(r->start, 8, r->rows, part, &want);
    want.row = row, want.first = first, want.part_row = part_row, want.shift = shift;
    want.start = at;
    run_fill_parts(r->start, 8, r->rows, &want);
    weft_long_rows(h, r->rows, r->start, part, RUN_MAX_PARTS, &got);
    CHECK_EQ(h->fault, 0);
    CHECK_EQ(got.limit[0], want.limit);
    CHECK_EQ(got.rows[0], 0);
    CHECK_EQ(got.rows[1], want.rows);
    expect_same(got.row, row, want.rows);
    expect_same(got.first, first, want.rows + 1);
    expect_same(got.part_row, part_row, want.parts);
    expect_same(got.shift, shift, want.parts);
    expect_same(got.start, at, want.parts + 1);
}

static void check_cut(weft_heap *h, const Rows *r, int64_t least)
{
    static const weft_pieces_rule rule = { RUN_ROOM,      RUN_LEAST_PIECES, RUN_MAX_PARTS,
                                           RUN_FINE_ROOM, RUN_MAX_PIECES,   RUN_CHAIN };
    int64_t n = r->start[r->rows], k = run_count_pieces(n, least, 1);
    weft_cut c;

    CHECK_EQ(weft_pieces(n, least, 1, &rule), k);
    for (int64_t each = 1; each < RUN_FINE_ROOM * 2; each *= 5)
        for (int64_t all = n; all < INT64_MAX / 7; all = 7 * all + 1)
            CHECK_EQ(weft_pieces(all, least, each, &rule), run_count_pieces(all, least, each));
    weft_cut_range(h, n, k, r->rows, r->start, &c);
    CHECK_EQ(h->fault, 0);
    CHECK_EQ(c.pieces[1], k);
    for (int64_t q = 0; q < k; q++) {
        int64_t row, end;

        CHECK_EQ(c.start[q + 1], run_piece(n, k, q + 1));
        run_rows_of(r->start, 8, r->rows, c.start[q], c.start[q + 1], &row, &end);
        CHECK_EQ(c.row[q], row);
        CHECK_EQ(c.end[q], end);
    }
}

static void check_named(weft_heap *h, const Rows *r, int64_t named)
{
    static int64_t low[MOST], high[MOST], part[MOST], first_row[RUN_ROW_PARTS + 1];
    static int64_t first[RUN_ROW_PARTS], end[RUN_ROW_PARTS];
    RunRows want = { .rows = r->rows, .named = named, .start = r->start, .name = r->coord,
                     .bytes = 8, .low = low, .high = high };
    weft_rows got = { .rows = r->rows, .named = named, .start = r->start, .name = r->coord };

    run_count_rows(&want, 0);
    want.part = part, want.first_row = first_row, want.first = first, want.end = end;
    run_fill_rows(&want);
    weft_cut_rows(h, RUN_ROW_ENTRIES, 2 * RUN_PART, RUN_ROW_PARTS, &got);
    CHECK_EQ(h->fault, 0);
    CHECK_EQ(got.parts[1], want.parts);
    expect_same(got.part, part, r->rows);
    expect_same(got.first_row, first_row, want.parts + 1);
    expect_same(got.first, first, want.parts);
    expect_same(got.end, end, want.parts);
}

TEST(emitted_plans_are_those_of_the_library)
{
    static Rows r;
    Err err = { 0 };
    jmp_buf trap;
    uint64_t seed = 5;
    Pool *pool;

    err.trap = &trap;
    CHECK(setjmp(trap) == 0);
    pool = pool_new(&os_libc, &err, 2);
    for (int i = 0; i < test_scale(200); i++) {
        weft_heap h = { 0, 0 };

        draw(&r, &seed, i % 6);
        check_transpose(&h, &r, pool);
        check_padded(&h, &r, pool);
        check_long(&h, &r, i % 2 == 0 ? RUN_PART : 3);
        check_named(&h, &r, i % 2 == 0 ? r.n : 5000);
        check_cut(&h, &r, i % 3 == 0 ? 1 : i % 3 == 1 ? 100 : RUN_PART);
        weft_release(&h);
    }
    pool_free(pool);
}

TEST(a_plan_without_memory_says_so)
{
    weft_heap h = { 0, 0 };

    CHECK(weft_take(&h, INT64_MAX / 4) == NULL);
    CHECK_EQ(h.fault, WEFT_NOMEM);
    CHECK(weft_take(&h, 1) == NULL); /* nothing more is made */
    weft_release(&h);
}
