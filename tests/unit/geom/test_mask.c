/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * geom/mask.c, api/mask.c and ops/attention.c: blocks and patterns of masks, pair by pair against
 * their formulas, and the programs over them. */
#include "unit/api_bed.h"

#include <math.h>

static weft_mask mask;

static void make(const weft_mask_in *in)
{
    ctx = ctx == NULL ? weft_ctx_new() : ctx;
    OK(weft_mask_make(ctx, in, &mask));
}

/* How often the pair is there: 0 or 1. */
static int pair(const weft_mask_in *in, int64_t copy, int64_t i, int64_t j)
{
    int64_t bi = in->bi == 0 ? 16 : in->bi, bj = in->bj == 0 ? 64 : in->bj;
    int64_t tile = copy * mask.tiles + i / bi;
    int n = 0;

    for (int64_t p = mask.start[tile]; p < mask.start[tile + 1]; p++) {
        CHECK_EQ(mask.row[p], tile);
        for (int64_t k = p * mask.w; k < (p + 1) * mask.w; k++)
            if (mask.j[k] == j / bj) {
                float x = ((const float *)mask.x)[(mask.pat[k] * bi + i % bi) * bj + j % bj];

                CHECK(x == 0 || x == -INFINITY);
                n += x == 0;
            }
    }
    return n;
}

typedef bool Formula(int64_t i, int64_t j);

static bool is_band(int64_t i, int64_t j)
{
    return i - j <= 9 && j - i <= 9;
}

static bool is_causal_band(int64_t i, int64_t j)
{
    return is_band(i, j) && j <= i;
}

static bool is_longformer(int64_t i, int64_t j)
{
    return is_band(i, j) || i < 2 || j < 2;
}

static bool is_butterfly(int64_t i, int64_t j)
{
    int64_t x = (i / 20) ^ (j / 20);

    return (x & (x - 1)) == 0;
}

static void compare(const weft_mask_in *in, Formula *is)
{
    int64_t nnz = 0;

    make(in);
    for (int64_t i = 0; i < in->n; i++)
        for (int64_t j = 0; j < in->m; j++) {
            CHECK_EQ(pair(in, 0, i, j), is(i, j));
            nnz += is(i, j);
        }
    CHECK_EQ(mask.nnz, nnz);
}

TEST(masks_have_the_pairs_of_their_formulas)
{
    compare(&(weft_mask_in){ .source = "band:w=9", .n = 200, .m = 200, .type = WEFT_F32 }, is_band);
    compare(&(weft_mask_in){ .source = "band:w=9", .n = 1, .m = 1, .type = WEFT_F32 }, is_band);
    compare(&(weft_mask_in){ .source = "band:w=9", .n = 128, .m = 128, .causal = 1,
                             .type = WEFT_F32 },
            is_causal_band);
    compare(&(weft_mask_in){ .source = "longformer:w=9:global=2", .n = 150, .m = 150,
                             .type = WEFT_F32 },
            is_longformer);
    compare(&(weft_mask_in){ .source = "butterfly:block=20", .n = 333, .m = 333, .type = WEFT_F32 },
            is_butterfly);
    close_prog();
}

TEST(a_band_has_few_patterns_and_as_many_pieces_as_tiles)
{
    make(&(weft_mask_in){ .source = "band:w=256", .n = 4096, .m = 4096, .copies = 3,
                         .type = WEFT_F32 });
    CHECK_EQ(mask.patterns, 9);
    CHECK_EQ(mask.w, 9);
    CHECK_EQ(mask.most, 9);
    CHECK_EQ(mask.split, 0);
    CHECK_EQ(mask.tiles, 256);
    CHECK_EQ(mask.blocks, 64);
    CHECK_EQ(mask.pieces, 3 * 256);
    CHECK_EQ(mask.nnz, 3 * (4096 * 513 - 256 * 257));
    close_prog();
}

TEST(wide_tiles_are_cut_into_pieces)
{
    const weft_mask_in in = { .source = "longformer:w=9:global=2", .n = 150, .m = 150, .w = 2,
                              .type = WEFT_F32 };

    compare(&in, is_longformer);
    CHECK_EQ(mask.split, 1);
    CHECK_EQ(mask.w, 2);
    CHECK_EQ(mask.most, 3);
    CHECK_EQ(mask.start[1] - mask.start[0], 2); /* of the first tile: three blocks */
    close_prog();
}

TEST(entries_may_repeat_and_rows_be_empty)
{
    int64_t start[] = { 0, 0, 3, 3 }, col[] = { 4, 1, 4 };
    const weft_mask_in in = { .start = start, .col = col, .n = 3, .m = 5, .type = WEFT_F32 };

    make(&in);
    CHECK_EQ(mask.nnz, 2);
    CHECK_EQ(pair(&in, 0, 1, 1), 1);
    CHECK_EQ(pair(&in, 0, 1, 4), 1);
    CHECK_EQ(pair(&in, 0, 0, 4), 0);
    make(&(weft_mask_in){ .start = (int64_t[]){ 0, 0 }, .n = 1, .m = 5, .type = WEFT_F64 });
    CHECK_EQ(mask.nnz, 0);
    CHECK_EQ(mask.pieces, 1); /* a tile that sees nothing has a piece of padding */
    CHECK_EQ(mask.j[0], -1);
    make(&(weft_mask_in){ .source = "full", .type = WEFT_F32 });
    CHECK_EQ(mask.pieces, 0);
    close_prog();
}

TEST(lengths_cut_each_copy)
{
    int64_t lq[] = { 20, 0, 7 }, lk[] = { 20, 3, 11 };
    const weft_mask_in in = { .source = "full", .n = 20, .m = 20, .copies = 3, .lq = lq, .lk = lk,
                              .type = WEFT_F32 };

    make(&in);
    CHECK_EQ(mask.nnz, 400 + 0 + 77);
    for (int64_t c = 0; c < 3; c++)
        for (int64_t i = 0; i < 20; i++)
            for (int64_t j = 0; j < 20; j++)
                CHECK_EQ(pair(&in, c, i, j), i < lq[c] && j < lk[c]);
    close_prog();
}

TEST(masks_that_make_no_sense_are_refused)
{
    weft_mask_in in = { .source = "band:w=9", .n = 20, .m = 20, .type = WEFT_F32 };
    int64_t start[] = { 0, 2, 1 }, col[] = { 0, 7 };

    ctx = weft_ctx_new();
    in.source = "stripe:w=3";
    BAD(weft_mask_make(ctx, &in, &mask), WEFT_E_ARG, "stripe:w=3: this mask is unknown");
    in.source = "band";
    BAD(weft_mask_make(ctx, &in, &mask), WEFT_E_ARG, "w= is missing");
    in.source = "band:w=3";
    in.n = -1;
    BAD(weft_mask_make(ctx, &in, &mask), WEFT_E_ARG, "sizes from 0 on");
    in.n = 2;
    in.bj = 65;
    BAD(weft_mask_make(ctx, &in, &mask), WEFT_E_ARG, "give 1 to 64 of each");
    in.bj = 0;
    in.type = WEFT_I32;
    BAD(weft_mask_make(ctx, &in, &mask), WEFT_E_ARG, "WEFT_F32 or WEFT_F64");
    in.type = WEFT_F32;
    in.lk = (int64_t[]){ 21 };
    BAD(weft_mask_make(ctx, &in, &mask), WEFT_E_BIND, "lk: copy 0 has 21 tokens, outside 0..20");
    in.lk = NULL;
    in.source = NULL;
    BAD(weft_mask_make(ctx, &in, &mask), WEFT_E_ARG, "start");
    in.start = start;
    BAD(weft_mask_make(ctx, &in, &mask), WEFT_E_BIND, "start: falls at row 1");
    start[2] = 2;
    in.col = col;
    in.m = 7;
    BAD(weft_mask_make(ctx, &in, &mask), WEFT_E_BIND, "col: entry 1 is column 7, outside 0..7");
    BAD(weft_mask_random(ctx, 1, -1, col), WEFT_E_ARG, "n: -1 random numbers");
    close_prog();
}

TEST(pages_are_listed_up_to_the_length_of_each_sequence)
{
    int64_t table[6] = { 1, 2, 9, 3, -1, -1 }, lengths[2] = { 7, 0 }, start[3], where[6], tokens[7];

    ctx = weft_ctx_new();
    CHECK(weft_pages_make(ctx, table, lengths, 2, 3, 4, 4, start, where, tokens) == WEFT_OK);
    CHECK(start[0] == 0 && start[1] == 2 && start[2] == 2);
    CHECK(where[0] == 1 && where[1] == 2);
    CHECK(tokens[0] == 0 && tokens[1] == 4 && tokens[2] == 7);
    lengths[0] = 9;
    BAD(weft_pages_make(ctx, table, lengths, 2, 3, 4, 4, start, where, tokens), WEFT_E_BIND,
        "block_table: expected pages from 0 to 3, got 9");
    lengths[1] = 13;
    lengths[0] = 0;
    BAD(weft_pages_make(ctx, table, lengths, 2, 3, 4, 4, start, where, tokens), WEFT_E_BIND,
        "lengths: expected 0 to 12 tokens, as block_table has pages, got 13");
    BAD(weft_pages_make(ctx, table, lengths, 2, 3, 4, 0, start, where, tokens), WEFT_E_ARG,
        "give sizes");
    BAD(weft_pages_make(ctx, table, NULL, 2, 3, 4, 4, start, where, tokens), WEFT_E_ARG, "lengths");
    close_prog();
}

TEST(programs_of_attention_keep_no_scores_in_memory)
{
    static const char *const spec[] = {
        "attention:d=64:dv=64", "attention:ragged:d=64:dv=32", "attention:split:d=64:dv=64",
        "attention:dropout:gqa:g=2:d=64:dv=64",
        "attention:f64:bi=8:split:ragged:dropout:d=8:dv=8",
    };

    for (int i = 0; i < 5; i++) {
        const char *text;

        ctx = weft_ctx_new();
        OK(weft_prog_op(ctx, spec[i], &prog));
        OK(weft_prog_check(prog));
        OK(weft_prog_print_after(prog, "fuse_rows", &text));
        CHECK_HAS(text, " S.work1[");
        CHECK_HAS(text, " T.work1[");
        CHECK(strstr(text, "phase S.init") == NULL && strstr(text, "phase T.init") == NULL);
        CHECK(strstr(text, "phase U.init") == NULL);
        close_prog();
    }
}
