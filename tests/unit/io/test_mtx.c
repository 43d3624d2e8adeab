/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * src/io/mtx.c, coo.c and real.c: Matrix Market files, good and bad. */
#include "fail/inject.h"
#include "io/io_int.h"
#include "unit/io_bed.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

#define REAL "%%MatrixMarket matrix coordinate real general\n"
#define INTEGER "%%MatrixMarket matrix coordinate integer general\n"
#define PATTERN "%%MatrixMarket matrix coordinate pattern general\n"
#define SYM "%%MatrixMarket matrix coordinate real symmetric\n"
#define SKEW "%%MatrixMarket matrix coordinate real skew-symmetric\n"
#define ARRAY "%%MatrixMarket matrix array real general\n"

static void print_matrix(Text *out, const IoMatrix *a)
{
    for (int64_t p = 0; p < a->nnz; p++) {
        if (!a->dense)
            text_f(out, "%lld,%lld:", (long long)a->row[p], (long long)a->col[p]);
        if (a->integer)
            text_f(out, "%lld ", (long long)a->ival[p]);
        else
            text_f(out, "%g ", a->val[p]);
    }
}

/* The file reads as the given entries, and again so after it was written and read. */
static void check_reads(int line, const char *text, int64_t m, int64_t n, const char *entries)
{
    Bed b;
    IoMatrix a;

    bed_init(&b);
    BED_OK(&b, bed_mtx(&b, text, strlen(text), &a));
    for (int round = 0; round < 2; round++) {
        Text seen = { .arena = &b.arena }, again = { .arena = &b.arena };

        text_str(&seen, "");
        print_matrix(&seen, &a);
        if (a.m != m || a.n != n || strcmp(seen.s, entries) != 0)
            test_fail(__FILE__, line, "%lld x %lld: %s\n%s", (long long)a.m, (long long)a.n, seen.s,
                      text);
        CHECK_EQ(a.integer, a.ival != NULL);
        CHECK_EQ(a.integer, a.val == NULL);
        CHECK_EQ(a.dense, a.row == NULL);
        io_mtx_print(&again, &a);
        BED_OK(&b, bed_mtx(&b, again.s, again.n, &a));
    }
    bed_free(&b);
}

TEST(every_kind_of_matrix_market_file_reads_and_round_trips)
{
    static const struct {
        int line;
        const char *text;
        int64_t m, n;
        const char *entries;
    } good[] = {
        { __LINE__, REAL "2 3 3\n2 3 -1.5\n1 1 2\n1 3 0\n", 2, 3, "0,0:2 0,2:0 1,2:-1.5 " },
        { __LINE__, SYM "3 3 3\n1 1 1\n3 1 2.5\n3 2 4\n", 3, 3,
          "0,0:1 0,2:2.5 1,2:4 2,0:2.5 2,1:4 " },
        { __LINE__, SKEW "3 3 2\n2 1 1.5\n3 2 -4\n", 3, 3, "0,1:-1.5 1,0:1.5 1,2:4 2,1:-4 " },
        { __LINE__, INTEGER "2 2 2\n2 1 -7\n1 2 9\n", 2, 2, "0,1:9 1,0:-7 " },
        { __LINE__, "%%MatrixMarket matrix coordinate integer symmetric\n2 2 2\n2 1 5\n2 2 6\n", 2,
          2, "0,1:5 1,0:5 1,1:6 " },
        { __LINE__, "%%MatrixMarket matrix coordinate integer skew-symmetric\n2 2 1\n2 1 5\n", 2, 2,
          "0,1:-5 1,0:5 " },
        { __LINE__, PATTERN "2 2 2\n2 2\n1 1\n", 2, 2, "0,0:1 1,1:1 " },
        { __LINE__, "%%MatrixMarket matrix coordinate pattern symmetric\n2 2 1\n2 1\n", 2, 2,
          "0,1:1 1,0:1 " },
        { __LINE__, ARRAY "2 3\n1\n2\n3\n4\n5\n6.5\n", 2, 3, "1 3 5 2 4 6.5 " },
        { __LINE__, "%%MatrixMarket matrix array real symmetric\n3 3\n1\n2\n3\n4\n5\n6\n", 3, 3,
          "1 2 3 2 4 5 3 5 6 " },
        { __LINE__, "%%MatrixMarket matrix array real skew-symmetric\n3 3\n1\n2\n3\n", 3, 3,
          "0 -1 -2 1 0 -3 2 3 0 " },
        { __LINE__, "%%MatrixMarket matrix array integer general\n1 2\n-3\n4\n", 1, 2, "-3 4 " },
        { __LINE__, "%%MatrixMarket matrix array integer symmetric\n2 2\n1\n2\n3\n", 2, 2,
          "1 2 2 3 " },
        { __LINE__, "%%MatrixMarket matrix array integer skew-symmetric\n2 2\n1\n", 2, 2,
          "0 -1 1 0 " },
        /* edges */
        { __LINE__, REAL "0 0 0\n", 0, 0, "" },
        { __LINE__, REAL "0 0 0", 0, 0, "" },
        { __LINE__, REAL "4 5 0\n", 4, 5, "" },
        { __LINE__, REAL "1 1 1\n1 1 3", 1, 1, "0,0:3 " },
        { __LINE__, PATTERN "1 1 1\n1 1", 1, 1, "0,0:1 " },
        { __LINE__, ARRAY "0 0\n", 0, 0, "" },
        { __LINE__, ARRAY "0 9223372036854775807\n", 0, INT64_MAX, "" },
        { __LINE__, ARRAY "1 1\n7", 1, 1, "7 " },
        { __LINE__, "%%MatrixMarket matrix array real symmetric\n0 0\n", 0, 0, "" },
        { __LINE__, "%%MatrixMarket matrix array real symmetric\n1 1\n7\n", 1, 1, "7 " },
        { __LINE__, "%%MatrixMarket matrix array real skew-symmetric\n1 1\n", 1, 1, "0 " },
        { __LINE__, SYM "1 1 1\n1 1 3\n", 1, 1, "0,0:3 " },
        { __LINE__,
          REAL "9223372036854775807 9223372036854775807 1\n"
               "9223372036854775807 9223372036854775807 1\n",
          INT64_MAX, INT64_MAX, "9223372036854775806,9223372036854775806:1 " },
        { __LINE__, INTEGER "1 2 2\n1 1 9223372036854775807\n1 2 -9223372036854775808\n", 1, 2,
          "0,0:9223372036854775807 0,1:-9223372036854775808 " },
        /* text as people write it */
        { __LINE__,
          "%%matrixmarket MATRIX Coordinate REAL General\r\n% hello\r\n\r\n2 2 1\r\n"
          "1 2 3\r\n",
          2, 2, "0,1:3 " },
        { __LINE__, REAL "%\n%%x\n \t\n  % in\n 2\t2  1 \n\n% here too\n  1   2\t 3 \n\n%end", 2, 2,
          "0,1:3 " },
        { __LINE__,
          REAL "1 9 9\n1 1 inf\n1 2 -Inf\n1 3 +INFINITY\n1 4 1e5\n1 5 +.5\n1 6 5.\n"
               "1 7 -0\n1 8 1E+2\n1 9 000000000000000000000000000000000000000000000012\n",
          1, 9, "0,0:inf 0,1:-inf 0,2:inf 0,3:100000 0,4:0.5 0,5:5 0,6:-0 0,7:100 0,8:12 " },
        { __LINE__, REAL "1 3 3\n1 1 nan\n1 2 NaN\n1 3 1\n", 1, 3, "0,0:nan 0,1:nan 0,2:1 " },
        /* duplicates */
        { __LINE__, REAL "2 2 4\n2 2 1\n1 1 5\n2 2 2\n2 2 -3\n", 2, 2, "0,0:5 1,1:0 " },
        { __LINE__, REAL "1 1 3\n1 1 1e16\n1 1 1\n1 1 -1e16\n", 1, 1, "0,0:0 " },
        { __LINE__, REAL "1 1 3\n1 1 1e16\n1 1 -1e16\n1 1 1\n", 1, 1, "0,0:1 " },
        { __LINE__, INTEGER "2 2 3\n1 1 4\n1 1 -5\n2 1 0\n", 2, 2, "0,0:-1 1,0:0 " },
        { __LINE__, PATTERN "2 2 3\n1 1\n1 1\n2 1\n", 2, 2, "0,0:1 1,0:1 " },
        { __LINE__, SYM "2 2 3\n2 1 1\n2 1 2\n1 1 1\n", 2, 2, "0,0:1 0,1:3 1,0:3 " },
    };

    for (size_t k = 0; k < sizeof good / sizeof *good; k++)
        check_reads(good[k].line, good[k].text, good[k].m, good[k].n, good[k].entries);
}

TEST(a_bad_matrix_market_file_is_refused_with_place_and_remedy)
{
    static const struct {
        const char *text;
        int line, col;
        const char *part;
    } bad[] = {
        /* the banner */
        { "", 1, 1, "begins with '%%MatrixMarket'" },
        { "\n", 1, 1, "begins with '%%MatrixMarket'" },
        { "1 1 1\n", 1, 1, "first line is missing" },
        { "\xef\xbb\xbf%%MatrixMarket matrix coordinate real general\n", 1, 1, "begins with" },
        { "%MatrixMarket matrix coordinate real general\n0 0 0\n", 1, 1, "begins with" },
        { "%%MatrixMarkets matrix coordinate real general\n0 0 0\n", 1, 1, "begins with" },
        { "%%MatrixMarket", 1, 15, "expected the object 'matrix', but the line ends here" },
        { "%%MatrixMarket\nmatrix coordinate real general\n", 1, 15, "the line ends here" },
        { "%%MatrixMarket vector coordinate real general\n", 1, 16, "found 'vector'" },
        { "%%MatrixMarket matrix\n", 1, 22, "expected the format 'coordinate' or 'array'" },
        { "%%MatrixMarket matrix csr real general\n", 1, 23, "found 'csr'" },
        { "%%MatrixMarket matrix coordinate\n", 1, 33, "'real', 'integer' or 'pattern'" },
        { "%%MatrixMarket matrix coordinate double general\n", 1, 34, "found 'double'" },
        { "%%MatrixMarket matrix coordinate complex general\n", 1, 34, "as two real files" },
        { "%%MatrixMarket matrix array complex general\n", 1, 29, "as two real files" },
        { "%%MatrixMarket matrix coordinate real\n0 0 0\n", 1, 38, "'general', 'symmetric'" },
        { "%%MatrixMarket matrix coordinate real triangular\n", 1, 39, "found 'triangular'" },
        { "%%MatrixMarket matrix coordinate real hermitian\n", 1, 39, "is called 'symmetric'" },
        { "%%MatrixMarket matrix coordinate real general x\n", 1, 47, "expected the end" },
        { "%%MatrixMarket matrix array pattern general\n0 0\n", 1, 1,
          "use the format 'coordinate'" },
        { "%%MatrixMarket matrix coordinate pattern skew-symmetric\n0 0 0\n", 1, 1,
          "use the field 'real'" },
        { "%%MatrixMarket matrix coordinate real general\x01\n", 1, 39, "found 'general?'" },
        { "%%MatrixMarket matrix aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n", 1, 23,
          "found 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa...'" },
        /* the size line */
        { REAL, 2, 1, "ends before its size line" },
        { REAL "% only comments\n\n", 4, 1, "ends before its size line" },
        { REAL "x 1 0\n", 2, 1, "expected the number of rows, found 'x'" },
        { REAL "-1 1 0\n", 2, 1, "expected the number of rows, found '-1'" },
        { REAL "1.0 1 0\n", 2, 1, "found '1.0'" },
        { REAL "1\n", 2, 2, "expected the number of columns, but the line ends here" },
        { REAL "1 y 0\n", 2, 3, "expected the number of columns, found 'y'" },
        { REAL "1 1\n", 2, 4, "expected the number of entries, but the line ends here" },
        { REAL "1 1 0 0\n", 2, 7, "expected the end of the size line, found '0'" },
        { ARRAY "0 0 0\n", 2, 5, "expected the end of the size line, found '0'" },
        { REAL "9223372036854775808 1 0\n", 2, 1, "exceeds 64 bits" },
        { REAL "1 99999999999999999999 0\n", 2, 3, "exceeds 64 bits" },
        { REAL "1 1 1\n", 2, 1, "more entries than the rest of the file has room for" },
        { REAL "9 9 9223372036854775807\n1 1 1\n", 2, 1, "has room for" },
        { PATTERN "9 9 2\n1 1\n1\n", 2, 1, "has room for" },
        { REAL "9 9 3\n1 1 1\n1 2 1\n1 1\n", 2, 1, "has room for" },
        { ARRAY "3 1\n1\n2\n", 2, 1, "has room for" },
        { ARRAY "4294967296 4294967296\n1\n", 2, 1, "has room for" },
        { ARRAY "9223372036854775807 1\n1\n", 2, 1, "has room for" },
        { SYM "2 3 0\n", 2, 1, "symmetric matrix is square, but the size is 2 x 3" },
        { SKEW "3 2 0\n", 2, 1, "declare the file general" },
        { "%%MatrixMarket matrix array real symmetric\n2 1\n1\n1\n", 2, 1, "is square" },
        /* entries */
        { REAL "2 2 1\n% 1 1 1\n", 4, 1, "ends after 0 of the 1 entries" },
        { REAL "2 2 2\n1 1 1\n%%%%%%%%%\n", 5, 1, "ends after 1 of the 2 entries" },
        { REAL "2 2 1\n1 1 1\n1 2 1\n", 4, 1, "goes on after the 1 entries" },
        { REAL "2 2 0\n\n1 1 1\n", 4, 1, "goes on after the 0 entries" },
        { REAL "2 2 1\n0 1 1\n", 3, 1, "a row index is 0, outside 1..2" },
        { REAL "2 2 1\n3 1 1\n", 3, 1, "a row index is 3, outside 1..2; indices count from 1" },
        { REAL "2 2 1\n1 0 1\n", 3, 3, "a column index is 0, outside 1..2" },
        { REAL "2 2 1\n1 3 1\n", 3, 3, "a column index is 3, outside 1..2" },
        { REAL "0 0 1\n1 1 1\n", 3, 1, "outside 1..0" },
        { REAL "2 2 1\n-1 1 1\n", 3, 1, "expected a row index, found '-1'" },
        { REAL "2 2 1\n1e0 1 1\n", 3, 1, "expected a row index, found '1e0'" },
        { REAL "2 2 1\n1,1,1 \n", 3, 1, "expected a row index, found '1,1,1'" },
        { REAL "2 2 1\n99999999999999999999 1 1\n", 3, 1, "exceeds 64 bits" },
        { REAL "2 2 1\n1 x 1\n", 3, 3, "expected a column index, found 'x'" },
        { REAL "2 2 1\n1\n1 1\n", 3, 2, "expected a column index, but the line ends here" },
        { REAL "2 2 1\n1 1    \n", 3, 8, "expected a number, but the line ends here" },
        { REAL "2 2 1\n1 1 1 1\n", 3, 7, "expected one entry a line, found '1'" },
        { REAL "2 2 1\n  1 1 zero\n", 3, 7, "expected a number, found 'zero'" },
        { REAL "2 2 1\n1 1 0x10\n", 3, 5, "found '0x10'" },
        { REAL "2 2 1\n1 1 1.2.3\n", 3, 5, "found '1.2.3'" },
        { REAL "2 2 1\n1 1 1e\n", 3, 5, "found '1e'" },
        { REAL "2 2 1\n1 1 1e+\n", 3, 5, "found '1e+'" },
        { REAL "2 2 1\n1 1 --1\n", 3, 5, "found '--1'" },
        { REAL "2 2 1\n1 1 +-1\n", 3, 5, "found '+-1'" },
        { REAL "2 2 1\n1 1 .\n", 3, 5, "found '.'" },
        { REAL "2 2 1\n1 1 -\n", 3, 5, "found '-'" },
        { REAL "2 2 1\n1 1 1d5\n", 3, 5, "found '1d5'" },
        { REAL "2 2 1\n1 1 1,5\n", 3, 5, "found '1,5'" },
        { REAL "2 2 1\n1 1 infinit\n", 3, 5, "found 'infinit'" },
        { REAL "2 2 1\n1 1 1e5.0\n", 3, 5, "found '1e5.0'" },
        { REAL "2 2 1\n1 1 1e5x\n", 3, 5, "found '1e5x'" },
        { INTEGER "2 2 1\n1 1 1.0\n", 3, 5, "expected an integer of 64 bits" },
        { INTEGER "2 2 1\n1 1 9223372036854775808\n", 3, 5, "declare the field real" },
        { INTEGER "2 2 1\n1 1 nan\n", 3, 5, "found 'nan'" },
        { INTEGER "2 2 2\n1 1 9223372036854775807\n1 1 1\n", 0, 0,
          "row 1, column 1 have a sum outside 64 bits" },
        { PATTERN "2 2 1\n1 1 1\n", 3, 5, "expected one entry a line, found '1'" },
        { SYM "2 2 1\n1 2 1\n", 3, 1, "above the diagonal; a symmetric file" },
        { SKEW "2 2 1\n1 2 1\n", 3, 1, "above the diagonal; a skew-symmetric file" },
        { SKEW "2 2 1\n2 2 0\n", 3, 1, "zero diagonal" },
        { "%%MatrixMarket matrix coordinate integer skew-symmetric\n2 2 1\n"
          "2 1 -9223372036854775808\n",
          3, 1, "negative of this value exceeds 64 bits" },
        { "%%MatrixMarket matrix array integer skew-symmetric\n2 2\n-9223372036854775808\n", 3, 1,
          "negative of this value exceeds 64 bits" },
        { ARRAY "2 1\n1 2\n3\n", 3, 3, "expected one value a line, found '2'" },
        { ARRAY "2 1\n1\nx\n", 4, 1, "expected a number, found 'x'" },
        { ARRAY "2 1\n1\n%%%\n", 5, 1, "ends after 1 of the 2 entries" },
        { ARRAY "2 1\n1\n2\n3\n", 5, 1, "goes on after the 2 entries" },
        { "%%MatrixMarket matrix array real symmetric\n2 2\n1\n2\n3\n4\n", 6, 1, "goes on after" },
        { REAL "2 2 1\r\n1 1 x\r\n", 3, 5, "found 'x'" },
    };
    Bed b;
    IoMatrix a;

    CHECK(sizeof bad / sizeof *bad >= 60);
    bed_init(&b);
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        Status s = bed_mtx(&b, bad[k].text, strlen(bad[k].text), &a);

        if (s != ST_PARSE || b.err.line != bad[k].line || b.err.col != bad[k].col ||
            strstr(b.err.msg, bad[k].part) == NULL)
            test_fail(__FILE__, __LINE__, "case %zu: status %d, %d:%d: %s\n%s", k, (int)s,
                      b.err.line, b.err.col, b.err.msg, bad[k].text);
        CHECK_STR(b.err.file, "t.mtx");
    }
    bed_free(&b);
}

TEST(an_error_in_a_matrix_shows_its_line)
{
    static const char text[] = REAL "2 2 2\r\n1 1 1\r\n1  7 1\r\n";
    Bed b;
    IoMatrix a;

    bed_init(&b);
    CHECK_EQ(bed_mtx(&b, text, strlen(text), &a), ST_PARSE);
    CHECK_STR(b.err.src, "1  7 1");
    CHECK_EQ(b.err.line, 4);
    CHECK_EQ(b.err.col, 4);
    CHECK_EQ(bed_mtx(&b, REAL "1 1 1\n1 2 3", sizeof REAL + 10, &a), ST_PARSE);
    CHECK_STR(b.err.src, "1 2 3");
    bed_free(&b);
}

TEST(a_matrix_cut_at_any_byte_is_read_or_refused)
{
    static const char text[] = SYM "% c\n3 3 3\n1 1 1.5\n3 1 2.5e0\n3 2 nan\n";
    Bed b;
    IoMatrix a;
    size_t accepted = 0;

    bed_init(&b);
    for (size_t n = 0; n < sizeof text; n++)
        accepted += bed_mtx(&b, text, n, &a) == ST_OK;
    CHECK_EQ(accepted, 2); /* with and without the last newline */
    bed_free(&b);
}

static int compare_keys(const void *x, const void *y)
{
    const int64_t *a = x, *b = y;

    return a[0] != b[0] ? (a[0] > b[0]) - (a[0] < b[0]) : (a[1] > b[1]) - (a[1] < b[1]);
}

/* Random entries with duplicates against qsort; values are small integers, so that any order of
 * the sum gives the same. */
static void check_sort(uint64_t *seed, int64_t n, int64_t size, int order)
{
    Bed b;
    Text t;
    IoMatrix a;
    int64_t(*key)[2] = malloc((size_t)n * sizeof *key), distinct = 0, sum = 0;

    CHECK(key != NULL);
    for (int64_t p = 0; p < n; p++) {
        key[p][order] = 1 + (int64_t)(test_random(seed) % (uint64_t)size);
        key[p][1 - order] = 1 + (int64_t)(test_random(seed) % (uint64_t)size);
    }
    if (order == 1) /* written column by column, as many programs do */
        qsort(key, (size_t)n, sizeof *key, compare_keys);
    bed_init(&b);
    t = (Text){ .arena = &b.arena };
    text_str(&t, INTEGER);
    text_f(&t, "%lld %lld %lld\n", (long long)size, (long long)size, (long long)n);
    for (int64_t p = 0; p < n; p++)
        text_f(&t, "%lld %lld 1\n", (long long)key[p][order], (long long)key[p][1 - order]);
    BED_OK(&b, bed_mtx(&b, t.s, t.n, &a));
    if (order == 1)
        for (int64_t p = 0; p < n; p++) {
            int64_t swap = key[p][0];

            key[p][0] = key[p][1];
            key[p][1] = swap;
        }
    qsort(key, (size_t)n, sizeof *key, compare_keys);
    for (int64_t p = 0; p < n; p++) {
        if (p == 0 || compare_keys(key[p - 1], key[p]) != 0) {
            CHECK_EQ(a.row[distinct], key[p][0] - 1);
            CHECK_EQ(a.col[distinct], key[p][1] - 1);
            sum += a.ival[distinct++];
        }
    }
    CHECK_EQ(a.nnz, distinct);
    CHECK_EQ(sum, n);
    free(key);
    bed_free(&b);
}

TEST(entries_come_out_sorted_and_summed)
{
    uint64_t seed = 1;

    for (int order = 0; order < 2; order++) {
        check_sort(&seed, 1, 1, order);
        check_sort(&seed, 100, 3, order);
        check_sort(&seed, 1000, 40, order);
        check_sort(&seed, 5000, 100000, order);
        check_sort(&seed, 1000, INT64_MAX, order);
    }
}

TEST(reals_of_a_file_are_rounded_to_the_nearest_double)
{
    static const char *const formats[] = { "%.17g", "%.16e", "%.15g", "%.6g",
                                           "%.18e", "%g",    "%.20f", "%.3f" };
    int64_t rounds = test_scale(200000);
    uint64_t seed = 3;

    for (int64_t k = 0; k < rounds; k++) {
        uint64_t r = test_random(&seed);
        double v, back = 0;
        char text[400];
        int n;

        /* exponents near 0 on every second round */
        if (k % 2 == 0)
            r = (r & 0x800fffffffffffff) | (963 + (r >> 52) % 120) << 52;
        memcpy(&v, &r, sizeof v);
        if (!isfinite(v))
            continue;
        if (k % 16 == 0) /* half-way between two doubles, and a hair above */
            n = snprintf(text, sizeof text, "%llu%s",
                         (unsigned long long)(r >> 11 | 1 | 1ull << 53), k % 32 == 0 ? "" : ".001");
        else
            n = snprintf(text, sizeof text, formats[k % 8], v);
        CHECK(io_real_parse((Bytes){ (const uint8_t *)text, (size_t)n }, &back));
        CHECK_SAME(back, strtod(text, NULL));
    }
}

TEST(reals_beyond_the_range_of_a_double_are_infinite_or_zero)
{
    static const struct {
        const char *text;
        double v;
    } cases[] = {
        { "1e400", (double)INFINITY },
        { "-1e400", -(double)INFINITY },
        { "1e-400", 0.0 },
        { "-1e-400", -0.0 },
        { "1e99999999999", (double)INFINITY },
        { "0e99999", 0.0 },
        { "0.0", 0.0 },
        { "-0.0", -0.0 },
        { "9007199254740993", 9007199254740992.0 },
        { "9007199254740993e22", 9007199254740993e22 },
        { "4.9e-324", 4.9e-324 },
    };

    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        Bytes b = { (const uint8_t *)cases[k].text, strlen(cases[k].text) };
        double v = 1;

        CHECK(io_real_parse(b, &v));
        CHECK_SAME(v, cases[k].v);
    }
}

TEST(a_matrix_reader_reports_every_failed_allocation)
{
    static const char text[] = SYM "3 3 3\n3 1 1\n2 2 2\n3 1 5\n";
    Inject j;
    Err err = { 0 };
    Arena arena;
    IoMatrix a;

    for (int64_t k = 1;; k++) {
        Status s;

        inject_init(&j, &os_libc);
        inject_at(&j, INJECT_ALLOC, k, false, ENOMEM);
        arena_init(&arena, &j.os, &err);
        s = CATCH(&err, io_mtx_parse(&arena, (Bytes){ (const uint8_t *)text, sizeof text - 1 },
                                     "t.mtx", &a));
        CHECK_EQ(s, j.failed > 0 ? ST_NOMEM : ST_OK);
        arena_free(&arena);
        CHECK(inject_is_clean(&j));
        if (j.failed == 0)
            break;
    }
}
