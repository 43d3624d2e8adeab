/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * run/parts.c: every entry of a long row is in one part, and nothing else is. */
#include "run/run.h"
#include "unit/test.h"

#include <string.h>

enum { MOST = 200 };

static int64_t start[MOST + 1];
static int32_t narrow[MOST + 1];

static int64_t draw(uint64_t *seed, int64_t most)
{
    int64_t n = (int64_t)(test_random(seed) % MOST);

    for (int64_t i = 0; i < n; i++) {
        start[i + 1] = start[i] + (int64_t)(test_random(seed) % (uint64_t)most);
        narrow[i + 1] = (int32_t)start[i + 1];
    }
    return n;
}

static void check_rows(int64_t n, int64_t part, int bytes)
{
    static int64_t row[MOST], first[MOST + 1], part_row[1 << 16], shift[1 << 16], at[1 << 16];
    const void *s = bytes == 4 ? (const void *)narrow : start;
    RunParts r;
    int64_t l = 0;

    run_count_parts(s, bytes, n, part, &r);
    CHECK(r.limit >= part && r.limit >= start[n] / RUN_MAX_PARTS && r.parts < 1 << 16);
    r.row = row, r.first = first, r.part_row = part_row, r.shift = shift, r.start = at;
    run_fill_parts(s, bytes, n, &r);
    CHECK_EQ(at[0], 0);
    CHECK_EQ(first[0], 0);
    for (int64_t i = 0; i < n; i++) {
        int64_t next = start[i];

        if (start[i + 1] - start[i] <= r.limit)
            continue;
        CHECK_EQ(row[l], i);
        for (int64_t q = first[l]; q < first[l + 1]; q++) {
            CHECK_EQ(part_row[q], i);
            CHECK_EQ(at[q] + shift[q], next);
            CHECK(at[q + 1] > at[q] && at[q + 1] - at[q] <= r.limit);
            next += at[q + 1] - at[q];
        }
        CHECK_EQ(next, start[i + 1]);
        l++;
    }
    CHECK_EQ(l, r.rows);
    CHECK_EQ(first[l], r.parts);
}

TEST(long_rows_fall_into_parts)
{
    uint64_t seed = 3;

    for (int64_t t = 0; t < test_scale(2000); t++) {
        int64_t n = draw(&seed, 1 + t % 300), part = 1 + t % 50;

        check_rows(n, part, 8);
        check_rows(n, part, 4);
    }
}

TEST(what_is_long_follows_from_the_starts)
{
    int64_t one[] = { 0, 1000000 }, even[] = { 0, 4096, 8192 }, none[] = { 0 };
    RunParts r;

    run_count_parts(one, 8, 1, 0, &r);
    CHECK_EQ(r.limit, 15625);
    CHECK_EQ(r.rows, 1);
    CHECK_EQ(r.parts, 64);
    run_count_parts(even, 8, 2, 0, &r);
    CHECK_EQ(r.limit, RUN_PART);
    CHECK_EQ(r.rows, 0);
    run_count_parts(none, 8, 0, 0, &r);
    CHECK_EQ(r.parts, 0);
}

TEST(pieces_are_as_long_as_they_are_worth)
{
    CHECK_EQ(run_count_pieces(0, 10, 1), 0);
    CHECK_EQ(run_count_pieces(-3, 10, 1), 0);
    CHECK_EQ(run_count_pieces(9, 10, 1), 1);
    CHECK_EQ(run_count_pieces(29, 10, 1), 2);
    CHECK_EQ(run_count_pieces(10000, 10, 1), RUN_MAX_PARTS);
    CHECK_EQ(run_count_pieces(10000, 10, RUN_ROOM), RUN_LEAST_PIECES);
    /* chains of RUN_CHAIN, as far as there is room, and longer ones of iterations that are light */
    CHECK_EQ(run_count_pieces(RUN_CHAIN * 100, 10, 1), 100);
    CHECK_EQ(run_count_pieces(RUN_CHAIN * 100, 10, RUN_FINE_ROOM / 80), 80);
    CHECK_EQ(run_count_pieces(RUN_CHAIN * 100, 10, RUN_FINE_ROOM), RUN_LEAST_PIECES);
    CHECK_EQ(run_count_pieces(RUN_CHAIN * 100, RUN_CHAIN * 80, 1), 5);
    CHECK_EQ(run_count_pieces(INT64_MAX, 10, 1), RUN_MAX_PIECES);
    for (int64_t n = 1; n < 200; n++)
        for (int64_t k = 1; k <= 64; k++) {
            CHECK_EQ(run_piece(n, k, 0), 0);
            CHECK_EQ(run_piece(n, k, k), n);
            for (int64_t q = 0; q < k; q++) {
                int64_t long_ = run_piece(n, k, q + 1) - run_piece(n, k, q);

                CHECK(long_ == n / k || long_ == n / k + 1);
            }
        }
}

TEST(the_rows_of_a_piece_are_those_with_its_entries)
{
    uint64_t seed = 5;

    for (int64_t t = 0; t < test_scale(2000); t++) {
        int64_t n = draw(&seed, 1 + t % 9), from, to, row, end;

        if (n == 0 || start[n] == 0)
            continue;
        from = (int64_t)(test_random(&seed) % (uint64_t)start[n]);
        to = from + 1 + (int64_t)(test_random(&seed) % (uint64_t)(start[n] - from));
        run_rows_of(start, 8, n, from, to, &row, &end);
        CHECK(start[row] <= from && from < start[row + 1]);
        CHECK(start[end - 1] < to && to <= start[end]);
    }
}

enum { NAMES = 1 << 16 };

static int64_t low[MOST], high[MOST], part_of[MOST], first_row[RUN_ROW_PARTS + 1];
static int64_t first[RUN_ROW_PARTS], end[RUN_ROW_PARTS], wide[NAMES];
static int32_t slim[NAMES];

/* Rows whose entries name any row, or rows near `rate` times their own; the number of parts. */
static RunRows cut(int64_t n, int64_t named, int64_t rate, int64_t part, bool short_names,
                   uint64_t *seed)
{
    RunRows r = { .rows = n, .named = named, .start = start, .bytes = short_names ? 4 : 8,
                  .name = short_names ? (const void *)slim : wide };

    for (int64_t i = 0; i < n; i++)
        for (int64_t e = start[i]; e < start[i + 1]; e++) {
            int64_t near = (int64_t)(test_random(seed) % (uint64_t)named);

            wide[e] = rate > 0 ? (i * rate + near % (2 * rate)) % named : near;
            slim[e] = (int32_t)wide[e];
        }
    r.low = low, r.high = high;
    run_count_rows(&r, part);
    CHECK(r.parts <= RUN_ROW_PARTS);
    r.part = part_of, r.first_row = first_row, r.first = first, r.end = end;
    run_fill_rows(&r);
    return r;
}

TEST(rows_fall_into_parts_that_know_what_they_name)
{
    uint64_t seed = 5;

    for (int64_t t = 0; t < test_scale(2000); t++) {
        int64_t n = draw(&seed, 1 + t % 300), named = 1 + t % 500, at = 0;
        RunRows r = cut(n, named, t % 3, t % 2 * (1 + t % 90), t % 5 == 0, &seed);

        CHECK(r.parts <= n && (n == 0 || r.parts > 0));
        CHECK_EQ(first_row[r.parts], n);
        for (int64_t q = 0; q < r.parts; q++) {
            bool is_first = false, is_last = false;

            for (CHECK(first_row[q + 1] > at); at < first_row[q + 1]; at++) {
                CHECK_EQ(part_of[at], q);
                for (int64_t e = start[at]; e < start[at + 1]; e++) {
                    CHECK(first[q] <= wide[e] && wide[e] < end[q]);
                    is_first = is_first || wide[e] == first[q];
                    is_last = is_last || wide[e] + 1 == end[q];
                }
            }
            CHECK(first[q] == end[q] ? !is_first : is_first && is_last);
        }
    }
}

/* Parts whose entries name rows of their own cost little, however many there are; where all name
 * all rows, there are as many parts as entries can pay for, and two from some thousands on. */
TEST(there_are_parts_for_what_entries_pay)
{
    uint64_t seed = 7;

    for (int64_t i = 0; i < 160; i++)
        start[i + 1] = start[i] + 160;
    CHECK_EQ(cut(160, 16200, 100, 0, false, &seed).parts, 16);
    CHECK_EQ(cut(160, 16000, 0, 0, false, &seed).parts, 2);
    CHECK_EQ(cut(160, 2000, 0, 0, false, &seed).parts, 4);
    for (int64_t i = 0; i < 160; i++)
        start[i + 1] = start[i] + 16;
    CHECK_EQ(cut(160, 16000, 0, 0, false, &seed).parts, 1);
}

/* A scatter of rows in two levels, or one: each entry is in one slice, those of a row that is named
 * are in one piece of a part, in order. */
static void check_slices(int64_t n, int levels, int64_t named, int64_t classes, int bytes,
                         uint64_t *seed)
{
    static int64_t below[MOST * 8 + 1], piece_of[1 << 9];
    int64_t ends[3] = { 0, n / 3, n }, count = 0, next = 0, rows = levels == 2 ? start[n] : n;
    const Os *os = &os_libc;
    Err err = { 0 };
    Arena arena;
    RunScatter s = { .levels = levels, .start = { bytes == 4 ? (void *)narrow : start, below },
                     .start_bytes = { bytes, 8 }, .name = wide, .name_bytes = 8,
                     .named = named, .parts = 2, .first_row = ends };
    RunSlices *r;

    for (int64_t i = 0; levels == 2 && i < rows; i++)
        below[i + 1] = below[i] + (int64_t)(test_random(seed) % 5);
    count = levels == 2 ? below[rows] : start[n];
    for (int64_t e = 0; e < count; e++)
        wide[e] = (int64_t)(test_random(seed) % (uint64_t)(named + 1)) - 1;
    arena_init(&arena, os, &err);
    r = run_slices(&arena, &s, classes);
    CHECK_EQ(r->pieces, 2 * classes);
    CHECK_EQ(r->first[0], 0);
    for (int64_t q = 0; q < 2; q++) {
        static bool met[NAMES];
        int64_t all = 0;

        memset(met, 0, sizeof met);
        memset(piece_of, 0xff, sizeof piece_of);
        for (int64_t k = q * classes; k < (q + 1) * classes; k++) {
            int64_t last = -1;

            for (int64_t i = r->first[k]; i < r->first[k + 1]; i++) {
                const RunSlice *l = &r->slice[i];
                int64_t lo = l->lo, hi = l->hi, row = l->at[levels - 1];

                CHECK(ends[q] <= l->at[0] && l->at[0] < ends[q + 1]);
                if (l->rows > 0) {
                    lo = start[l->at[0]], hi = start[l->at[0] + l->rows];
                    lo = levels == 2 ? below[lo] : lo, hi = levels == 2 ? below[hi] : hi;
                } else {
                    CHECK(levels == 1 || (start[l->at[0]] <= row && row < start[l->at[0] + 1]));
                    CHECK((levels == 2 ? below : start)[row] <= lo);
                    CHECK(hi <= (levels == 2 ? below : start)[row + 1]);
                }
                CHECK(last <= lo && lo < hi);
                last = hi;
                all += hi - lo;
                for (int64_t e = lo; e < hi; e++) {
                    CHECK(!met[e]);
                    met[e] = true;
                    if (wide[e] < 0)
                        continue;
                    CHECK(piece_of[wide[e]] < 0 || piece_of[wide[e]] == k);
                    piece_of[wide[e]] = k;
                }
            }
        }
        next += all;
    }
    CHECK_EQ(next, count);
    arena_free(&arena);
}

TEST(slices_of_a_part_have_each_entry_once)
{
    uint64_t seed = 11;

    for (int64_t t = 0; t < test_scale(1000); t++) {
        int64_t n = draw(&seed, t % 3 == 0 ? 4 : 9);

        check_slices(n, 1 + (int)(t % 2), 1 + t % 300, 1 + t % 40, t % 5 == 0 ? 4 : 8, &seed);
    }
}
