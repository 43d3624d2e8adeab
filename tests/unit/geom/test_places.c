/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * geom/places.c, api/places.c: the structure of pruned weights, element by element against the
 * mask. */
#include "unit/api_bed.h"

#include <string.h>

enum { ROWS = 24, COLS = 36 };

static unsigned char mask[ROWS * COLS];
static weft_places got;

/* One element of `of`, or none of a block of rows. */
static void draw(uint64_t *seed, int of)
{
    for (int i = 0; i < ROWS * COLS; i++)
        mask[i] = i / COLS % 8 >= 3 && test_random(seed) % (uint64_t)of == 0 ? 3 : 0;
}

static void make(const char *format, int64_t rows, int64_t columns)
{
    ctx = ctx == NULL ? weft_ctx_new() : ctx;
    OK(weft_places_make(ctx, format, mask, rows, columns, &got));
}

/* Each element of the mask is stored once, at a place of its own. */
static void check_all_stored(void)
{
    static int times[ROWS * COLS];

    memset(times, 0, sizeof times);
    for (int64_t k = 0; k < got.n; k++) {
        CHECK(got.at[k] >= -1 && got.at[k] < ROWS * COLS);
        if (got.at[k] >= 0)
            times[got.at[k]]++;
    }
    for (int i = 0; i < ROWS * COLS; i++)
        CHECK(times[i] <= 1 && (mask[i] == 0 || times[i] == 1));
}

/* Blocks of b x c, rows innermost: those of block row i are blocks from[i] to from[i + 1]. */
static void check_blocks(int64_t b, int64_t c)
{
    for (int64_t i = 0; i + 1 < got.starts; i++)
        for (int64_t e = got.start[i]; e < got.start[i + 1]; e++) {
            int64_t up = got.row != NULL ? got.row[i] : i, any = 0;

            CHECK(e == got.start[i] || got.index[e] > got.index[e - 1]);
            for (int64_t k = 0; k < b * c; k++) {
                CHECK_EQ(got.at[e * b * c + k],
                         (up * b + k % b) * COLS + got.index[e] * c + k / b);
                any += mask[got.at[e * b * c + k]];
            }
            CHECK(any > 0); /* an empty block is not stored */
        }
    CHECK_EQ(got.n, got.indices * b * c);
    CHECK_EQ(got.start[got.starts - 1], got.indices);
}

TEST(formats_of_pruned_weights_store_the_mask)
{
    uint64_t seed = 11;

    for (int of = 1; of < 300; of = of * 3 + 1) {
        draw(&seed, of);
        make("csr", ROWS, COLS);
        check_all_stored();
        check_blocks(1, 1);
        make("bsr(4, 6)", ROWS, COLS);
        CHECK_EQ(got.starts, ROWS / 4 + 1);
        check_all_stored();
        check_blocks(4, 6);
        make(" dbsr ( 2,3 ) ", ROWS, COLS);
        CHECK_EQ(got.starts, got.stored + 1);
        for (int64_t i = 0; i < got.stored; i++)
            CHECK(got.start[i + 1] > got.start[i]);
        check_all_stored();
        check_blocks(2, 3);
    }
}

TEST(strips_store_columns_in_groups)
{
    uint64_t seed = 12;

    draw(&seed, 9);
    make("sr_bcrs(8, 5)", ROWS, COLS);
    check_all_stored();
    CHECK_EQ(got.starts, ROWS / 8 + 1);
    CHECK_EQ(got.indices, got.start[ROWS / 8] * 5);
    CHECK_EQ(got.n, got.indices * 8);
    for (int64_t s = 0; s < ROWS / 8; s++)
        for (int64_t e = got.start[s] * 5; e < got.start[s + 1] * 5; e++)
            for (int64_t r = 0; r < 8; r++)
                CHECK_EQ(got.at[e * 8 + r],
                         got.index[e] < 0 ? -1 : (s * 8 + r) * COLS + got.index[e]);
}

TEST(groups_of_columns_store_so_many_places)
{
    memset(mask, 0, sizeof mask);
    mask[0 * COLS + 1] = mask[0 * COLS + 3] = mask[5 * COLS + 34] = 1;
    make("n_m(2, 4)", ROWS, COLS);
    check_all_stored();
    CHECK_EQ(got.n, ROWS * COLS / 2);
    CHECK(got.start == NULL && got.row == NULL);
    CHECK_EQ(got.index[0], 1);
    CHECK_EQ(got.index[1], 3);
    CHECK_EQ(got.index[2], 0); /* places without an entry: the first ones, in order */
    CHECK_EQ(got.index[3], 1);
    for (int64_t k = 0; k < got.n; k++)
        CHECK_EQ(got.at[k], k / 18 * COLS + k % 18 / 2 * 4 + got.index[k]);
    CHECK_EQ(got.index[5 * 18 + 16], 0);
    CHECK_EQ(got.index[5 * 18 + 17], 2);
    mask[5 * COLS + 33] = mask[5 * COLS + 35] = 1;
    BAD(weft_places_make(ctx, "n_m(2, 4)", mask, ROWS, COLS, &got), WEFT_E_ARG,
        "mask: expected at most 2 entries in each group of 4 columns");
    CHECK_HAS(weft_message(ctx), "got 3 in row 5, columns 32 to 35");
}

TEST(weights_without_elements_have_empty_places)
{
    static const char *const format[] = { "csr", "bsr(4, 6)", "dbsr(4, 6)", "sr_bcrs(4, 2)",
                                          "n_m(2, 4)" };

    memset(mask, 0, sizeof mask);
    for (int f = 0; f < 5; f++) {
        make(format[f], ROWS, COLS);
        CHECK_EQ(got.n, f == 4 ? ROWS * COLS / 2 : 0);
        make(format[f], 0, COLS);
        CHECK_EQ(got.n, 0);
        make(format[f], ROWS, 0);
        CHECK_EQ(got.n, 0);
    }
}

TEST(places_that_cannot_be_made_are_named)
{
    static const char *const text[] = { "", "bsr(4)", "bsr(4, 0)", "bsr(4, 6) x", "bsr(4, 6",
                                        "ell", "csr(1, 1)", "bsr(-1, 2)", "bsr(99999999999, 2)" };

    memset(mask, 0, sizeof mask);
    make("csr", ROWS, COLS);
    for (size_t i = 0; i < sizeof text / sizeof *text; i++)
        BAD(weft_places_make(ctx, text[i], mask, ROWS, COLS, &got), WEFT_E_ARG,
            "format: expected csr, bsr(b, c)");
    BAD(weft_places_make(ctx, "n_m(5, 4)", mask, ROWS, COLS, &got), WEFT_E_ARG, "k at most g");
    BAD(weft_places_make(ctx, "bsr(5, 6)", mask, ROWS, COLS, &got), WEFT_E_ARG,
        "weight: expected multiples of 5 rows and 6 columns");
    BAD(weft_places_make(ctx, "n_m(2, 5)", mask, ROWS, COLS, &got), WEFT_E_ARG, "5 columns");
    BAD(weft_places_make(ctx, "csr", NULL, ROWS, COLS, &got), WEFT_E_ARG, "mask");
    BAD(weft_places_make(ctx, NULL, mask, ROWS, COLS, &got), WEFT_E_ARG, "format");
    BAD(weft_places_make(ctx, "csr", mask, ROWS, COLS, NULL), WEFT_E_ARG, "out");
    BAD(weft_places_make(ctx, "csr", mask, -1, COLS, &got), WEFT_E_ARG, "a weight of -1 x 36");
    BAD(weft_places_make(ctx, "csr", mask, INT64_MAX, 3, &got), WEFT_E_ARG, "a weight of");
    BAD(weft_places_make(NULL, "csr", mask, ROWS, COLS, &got), WEFT_E_ARG, "");
}
