/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * geom/edges.c, api/rows.c: rows of receivers with loops or not, and tiles of pairs. */
#include "unit/api_bed.h"

#include <string.h>

static const int64_t receiver[] = { 2, 0, 2, 1, 2, 0 }, sender[] = { 0, 0, 2, 2, 2, 1 };
static const weft_edge_list list = { 3, 3, 6, WEFT_I64, receiver, sender };

static bool same(const int64_t *a, const int64_t *b, size_t n)
{
    return memcmp(a, b, n * sizeof *a) == 0;
}

TEST(rows_keep_the_order_of_the_list)
{
    weft_ctx *c = weft_ctx_new();
    int64_t start[4], from[6], at[6];

    CHECK(weft_rows_make(c, &list, 0, start, from, at) == WEFT_OK);
    CHECK(same(start, (int64_t[]){ 0, 2, 3, 6 }, 4));
    CHECK(same(from, (int64_t[]){ 0, 1, 2, 0, 2, 2 }, 6));
    CHECK(same(at, (int64_t[]){ 1, 5, 3, 0, 2, 4 }, 6));
    weft_ctx_free(c);
}

TEST(loops_are_last_and_what_is_left_out_is_in_a_row_more)
{
    weft_ctx *c = weft_ctx_new();
    int64_t start[5], from[9], at[9];

    CHECK(weft_rows_make(c, &list, 1, start, from, at) == WEFT_OK);
    CHECK(same(start, (int64_t[]){ 0, 2, 4, 6, 9 }, 5));
    CHECK(same(at, (int64_t[]){ 5, 6, 3, 7, 0, 8, 1, 2, 4 }, 9));
    CHECK(weft_rows_make(c, &list, 2, start, from, at) == WEFT_OK);
    CHECK(same(start, (int64_t[]){ 0, 2, 4, 6, 9 }, 5));
    CHECK(same(at, (int64_t[]){ 5, 1, 3, 7, 0, 4, 2, 6, 8 }, 9));
    CHECK(same(from, (int64_t[]){ 1, 0, 2, 1, 0, 2, 2, 0, 2 }, 9));
    CHECK(weft_rows_make(c, &list, 3, start, from, at) == WEFT_E_ARG);
    weft_ctx_free(c);
}

TEST(pairs_of_a_relation_stand_in_tiles)
{
    static const int64_t type[] = { 1, 0, 1, 1, 0, 0 };
    weft_ctx *c = weft_ctx_new();
    weft_tiles t;

    CHECK(weft_tiles_make(c, &list, type, 2, 0, &t) == WEFT_OK);
    CHECK(t.tiles == 2 && t.pairs == 4);
    CHECK(same(t.relation, (int64_t[]){ 0, 1 }, 2));
    CHECK(same(t.at, (int64_t[]){ 1, 5, 4, 3, 0, 2 }, 6));
    CHECK(same(t.first, (int64_t[]){ 0, 1, 2, 4 }, 4));
    CHECK(same(t.place, (int64_t[]){ 0, 16, 1, 17 }, 4));
    CHECK(t.start[1] == 2 && t.start[2] == 3 && t.start[16] == 3 && t.start[17] == 4);
    CHECK(t.start[32] == 6);
    CHECK(weft_tiles_make(c, &list, type, 1, 0, &t) == WEFT_E_BIND);
    CHECK(weft_tiles_make(c, &list, type, 2, 5, &t) == WEFT_OK && t.tiles == 5);
    weft_ctx_free(c);
}
