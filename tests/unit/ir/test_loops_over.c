/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * src/ir/loop_over.c, loop_over_check.c: what loops run over, its text and its proof. */
#include "ir/loop.h"
#include "unit/ir_bed.h"

#define D                                                                      \
    "axis I = m, J = compressed(I, n), L(J) = 3, Q = rows a { 0, 1 }, O = 7\n" \
    "axis S = 2, U(S) = {4, 2}\n"                                              \
    "f32 A[I, J], C[I], X[J, L]\n"
#define L "program p(m, n) stage loops\n" D
#define PH "phase c for i in I\n"

static void reads_as(const char *text, const char *printed)
{
    Bed b;
    Text t = { .arena = &b.arena };
    const char *got;

    bed_open(&b);
    text_f(&t, "%s%s", L, text);
    got = strstr(bed_canonical(&b, t.s), "X[J, L]\n") + 8;
    CHECK_STR(got, printed);
    bed_close(&b);
}

static void stays(const char *text)
{
    reads_as(text, text);
}

TEST(a_loop_over_an_axis_is_written_without_its_ends)
{
    stays("phase c for i in I balance J.start\n"
          "    for j in J[i]\n"
          "        for l in L[_]\n"
          "            A[j] = X[j * 3 + l]\n");
    stays("phase c for j in J\n    A[j] = 1.0\n");
    stays("phase c for x in L\n    X[x] = 1.0\n");
    reads_as("phase c for i in 0..m of I balance J.start\n"
             "    for j in J.start[i]..J.start[i + 1] of J[i]\n"
             "        A[j] = 1\n",
             "phase c for i in I balance J.start\n"
             "    for j in J[i]\n"
             "        A[j] = 1\n");
}

TEST(numbers_stay_numbers)
{
    stays("phase c for i in 0..m balance J.start\n"
          "    for j in J.start[i]..J.start[i + 1]\n"
          "        A[j] = 1.0\n");
}

TEST(a_part_is_written_with_its_ends)
{
    stays("phase c for i in I balance J.start\n"
          "    let end: i64 = select(i < 3, J.start[i + 1], J.start[i])\n"
          "    for j in J.start[i]..end of J[i]\n"
          "        A[j] = 1.0\n"
          "    for j in max(J.start[i], n)..min(J.start[i + 1], n * 2) of J[i]\n"
          "        A[j] = 1.0\n");
    stays("phase c for g in 0..16\n"
          "    for i in g * m / 16..(g + 1) * m / 16 of I\n"
          "        C[i] = 1.0\n");
}

TEST(a_share_of_a_share_is_a_part)
{
    stays("phase c for g in 0..16\n"
          "    let count: i64 = (g + 1) * m / 16 - g * m / 16\n"
          "    for t in 0..3\n"
          "        let first: i64 = g * m / 16 + count * t / 3\n"
          "        let last: i64 = g * m / 16 + count * (t + 1) / 3\n"
          "        for i in first..last of I\n"
          "            C[i] = 1.0\n");
}

TEST(an_element_of_a_constant_table_is_its_number)
{
    stays("phase c for x in 0..1\n"
          "    for j in J.start[Q.a[1]]..J.start[2] of J[Q.a[1]]\n"
          "        A[j] = 1.0\n");
}

TEST(tiles_are_written_by_their_length)
{
    stays("phase c for t in tiles(I, 8)\n"
          "    for i in tiles(I, 8)[t]\n"
          "        C[i] = 1.0\n");
    stays("phase c for i in I\n"
          "    for t in tiles(J[i], 4)\n"
          "        for x in 0..min(4, n) within tiles(J[i], 4)[t]\n"
          "            A[J.start[i] + (t * 4 + x)] = 1.0\n");
    stays("phase c for i in I balance J.start\n"
          "    let count: i64 = J.start[i + 1] - J.start[i]\n"
          "    let tiles: i64 = (count + 7) / 8\n"
          "    for t in 0..tiles of tiles(J[i], 8)\n"
          "        let first: i64 = J.start[i] + count * t / tiles\n"
          "        let last: i64 = J.start[i] + count * (t + 1) / tiles\n"
          "        for j in first..last of J[i]\n"
          "            A[j] = 1.0\n");
    stays("phase c for t in tiles(L[_], 2)\n"
          "    for l in tiles(L[_], 2)[t]\n"
          "        X[l] = 1.0\n");
}

TEST(the_rest_of_a_tile_is_a_part_of_it)
{
    stays("phase c for t in tiles(I, 8)\n"
          "    for i in t * 8 + (min(t * 8 + 8, m) - t * 8) / 4 * 4..min(t * 8 + 8, m) of "
          "tiles(I, 8)[t]\n"
          "        C[i] = 1.0\n");
}

TEST(rounds_repeat_all_positions)
{
    stays("phase c for q in 0..(n + 7) / 8 * m of rounds(I)\n"
          "    C[q % m] = 1.0\n");
}

static const Refusal refusals[] = {
    { L "phase c for i in 0..m + 1 of I\n    C[i] = 1\n", ST_CHECK, 5, 7,
      "the range of i is not known to be in I; write the range alone" },
    { L "phase c for i in -1..m of I\n    C[i] = 1\n", ST_CHECK, 5, 7, "the range of i is not known" },
    { L "phase c for i in 0..n of I\n    C[i] = 1\n", ST_CHECK, 5, 7, "the range of i is not known" },
    { L PH "    for j in J.start[i]..J.start[i + 2] of J[i]\n        A[j] = 1\n", ST_CHECK, 6, 5,
      "c: the range of j is not known to be in J" },
    { L PH "    for j in J.start[i]..max(J.start[i + 1], n) of J[i]\n        A[j] = 1\n", ST_CHECK, 6,
      5, "c: the range of j is not known to be in J" },
    { L PH "    for j in min(J.start[i], n)..J.start[i + 1] of J[i]\n        A[j] = 1\n", ST_CHECK, 6,
      5, "c: the range of j is not known to be in J" },
    { L PH "    for j in J.start[i] - 1..J.start[i + 1] of J[i]\n        A[j] = 1\n", ST_CHECK, 6, 5,
      "c: the range of j is not known to be in J" },
    { L PH "    reg end: i64 = J.start[i + 1]\n    end += 1\n    for j in J.start[i]..end of J[i]\n"
           "        A[j] = 1\n",
      ST_CHECK, 8, 5, "c: the range of j is not known to be in J" },
    { L PH "    for l in 0..4 of L[_]\n        X[i * 3 + l] = 1\n", ST_CHECK, 6, 5,
      "c: the range of l is not known to be in L" },
    { L PH "    for t in 0..(n + 4) / 4 of tiles(J[i], 4)\n        A[t] = 1\n", ST_CHECK, 6, 5,
      "c: the range of t is not known to be in J" },
    { L PH "    for x in 0..5 within tiles(J[i], 4)[0]\n        A[x] = 1\n", ST_CHECK, 6, 5,
      "c: the range of x is not known to be in J" },
    { L "phase c for t in 0..9\n"
        "    for i in t * 8 + (min(t * 8 + 8, m) - t * 8) / 4 * 4..min(t * 8 + 8, m) of "
        "tiles(I, 8)[t]\n        C[i] = 1\n",
      ST_CHECK, 6, 5, "c: the range of i is not known to be in I" },
    { L "phase c for t in 0..9\n    for i in t * n / 8..(t + 1) * n / 8 of O\n        C[i] = 1\n",
      ST_CHECK, 6, 5, "c: the range of i is not known to be in O" },
    { L "phase c for g in 0..17\n    for i in g * m / 16..(g + 1) * m / 16 of I\n        C[i] = 1\n",
      ST_CHECK, 6, 5, "c: the range of i is not known to be in I" },
    { L "phase c for q in 0..n * 3 of rounds(I)\n    C[q] = 1\n", ST_CHECK, 5, 7,
      "the range of q is not known to be in I" },
    { L "phase c for i in I[0]\n    C[i] = 1\n", ST_CHECK, 5, 18, "axis I has one row; write I" },
    { L PH "    for j in J[_]\n        A[j] = 1\n", ST_CHECK, 6, 14,
      "rows of J differ in length; write which, as in J[i]" },
    { L PH "    for l in L[i]\n        X[l] = 1\n", ST_CHECK, 6, 14,
      "all rows of L have one length; write L[_]" },
    { L PH "    for t in tiles(J[i], 0)\n        A[t] = 1\n", ST_LIMIT, 6, 27,
      "a tile has 1 to 2147483647 positions, not 0" },
};

TEST(a_loop_says_nothing_that_is_not_proven)
{
    REFUSES(refusals);
}
