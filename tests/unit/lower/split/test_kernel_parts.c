/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * lower/split/reductions.c, api/parts.c: long rows and long sums, with what counts as long set
 * low, against the interpreter and on several numbers of threads. */
#include "unit/kernel_bed.h"

#include <math.h>

enum { ROWS = 40, COLS = 300, MOST = 4000, WIDE = 5 };

static int64_t start[ROWS + 1], coord[MOST];
static float value[MOST], dense[COLS * WIDE];
static double value2[MOST];

/* Rows of 0 to 9 entries, and a few of hundreds; whole numbers when they are to be exact. */
static void draw(bool exact)
{
    uint64_t x = 12345;

    for (int i = 0; i < ROWS; i++) {
        int64_t n = i % 13 == 5 ? 200 + 31 * i : i % 10;

        start[i + 1] = start[i] + n;
    }
    for (int i = 0; i < MOST; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        coord[i] = (int64_t)(x >> 33) % COLS;
        value2[i] = (double)(x >> 11) * 0x1p-53 - 0.4;
        if (exact)
            value2[i] = (double)((int64_t)(x >> 40) % 7 - 3);
        value[i] = (float)value2[i];
    }
    for (int i = 0; i < COLS * WIDE; i++)
        dense[i] = value[MOST - 1 - i];
}

static void open_parts(const char *text, int64_t part)
{
    open_kernel(text);
    ctx->part = part;
}

static void bind_rows(void)
{
    bind("J.start", start, WEFT_I64, 1, SHAPE(ROWS + 1));
    bind("J.coord", coord, WEFT_I64, 1, SHAPE(start[ROWS]));
    bind("A", value, WEFT_F32, 1, SHAPE(start[ROWS]));
}

static const char spmv[] = "program spmv(m, n)\naxis I = m, J = compressed(I, n)\n"
                           "f32 A[I, J], X[n], Y[I]\ny: Y[i] += A[i, j] * X[j]\n";

static const void *result(const char *name, size_t *bytes)
{
    weft_tensor t;

    OK(weft_args_get(args, name, &t));
    *bytes = t.type == WEFT_F64 || t.type == WEFT_I64 ? 8 : 4;
    for (int d = 0; d < t.ndim; d++)
        *bytes *= (size_t)t.shape[d];
    return t.data;
}

/* The kernel's result is the interpreter's, bit for bit. */
static void check_exact(const char *name)
{
    size_t n;
    void *kept;

    OK(weft_kernel_run(kernel, args));
    result(name, &n);
    kept = malloc(n);
    memcpy(kept, result(name, &n), n);
    OK(weft_run(args));
    CHECK(memcmp(kept, result(name, &n), n) == 0);
    free(kept);
}

/* The last run's phases of this name have ranges that are not empty. */
static char lines[4000];

static void keep_line(void *user, const char *line)
{
    (void)user;
    snprintf(lines + strlen(lines), sizeof lines - strlen(lines), "%s\n", line);
}

TEST(long_rows_are_summed_in_parts)
{
    draw(true);
    for (int64_t part = 1; part <= 100; part = part * 3 + 1) {
        open_parts(spmv, part);
        bind_rows();
        bind("X", dense, WEFT_F32, 1, SHAPE(COLS));
        check_exact("Y");
        open_parts(spmm, part);
        bind_rows();
        bind("B", dense, WEFT_F32, 2, SHAPE(COLS, WIDE));
        check_exact("C");
        close_prog();
    }
}

TEST(what_was_there_before_is_added_to)
{
    float y[ROWS];

    draw(true);
    open_parts("program p(m, n)\naxis I = m, J = compressed(I, n)\nf32 A[I, J], X[n]\n"
               "inout f32 Y[I]\ny: Y[i] += A[i, j] * X[j]\n",
               8);
    bind_rows();
    bind("X", dense, WEFT_F32, 1, SHAPE(COLS));
    bind("Y", y, WEFT_F32, 1, SHAPE(ROWS));
    for (int i = 0; i < ROWS; i++)
        y[i] = i % 2 == 0 ? (float)i : -0.0f;
    OK(weft_kernel_run(kernel, args));
    for (int i = 0; i < ROWS; i++) {
        double want = i % 2 == 0 ? i : -0.0;

        for (int64_t j = start[i]; j < start[i + 1]; j++)
            want += (double)value[j] * (double)dense[coord[j]];
        CHECK_SAME((double)y[i], want);
    }
    close_prog();
}

static const char best[] = "program p(m)\naxis I = m, J(I) = seg : load\nf32 A[I, J], Y[I]\n"
                           "f64 S[], T[3]\ny: Y[i] max= A[i, j]\ns: S[] min= A[i, j]\n"
                           "t: T[i % 3] += A[i, j]\n";

TEST(extrema_and_sums_of_all_entries_are_cut)
{
    draw(true);
    value[start[6] - 2] = -0.0f;
    for (int64_t part = 1; part <= 100; part = part * 3 + 1) {
        open_parts(best, part);
        bind_rows();
        check_exact("Y");
        check_exact("S");
        check_exact("T");
        close_prog();
    }
}

TEST(a_dot_product_is_cut)
{
    draw(true);
    for (int64_t part = 1; part <= 1000; part = part * 5 + 2) {
        open_parts("program dot(n)\nf64 X[n], S[]\ns: for i in n: S[] += X[i] * X[i]\n", part);
        bind("X", value2, WEFT_F64, 1, SHAPE(MOST));
        check_exact("S");
        bind("X", value2, WEFT_F64, 1, SHAPE(1));
        check_exact("S");
        bind("X", value2, WEFT_F64, 1, SHAPE(0));
        check_exact("S");
        close_prog();
    }
}

/* The sum of absolute values times 2 n eps bounds what any order of additions may lose. */
TEST(a_long_row_of_any_numbers_stays_within_rounding)
{
    draw(false);
    open_parts(spmv, 16);
    bind_rows();
    bind("X", dense, WEFT_F32, 1, SHAPE(COLS));
    OK(weft_kernel_run(kernel, args));
    for (int i = 0; i < ROWS; i++) {
        double sum = 0, all = 0;
        size_t n;

        for (int64_t j = start[i]; j < start[i + 1]; j++) {
            sum += (double)value[j] * (double)dense[coord[j]];
            all += fabs((double)value[j] * (double)dense[coord[j]]);
        }
        CHECK(fabs((double)((const float *)result("Y", &n))[i] - sum) <=
              all * 0x1p-23 * (double)(start[i + 1] - start[i]));
    }
    close_prog();
}

enum { ITEMS = 20000, WEIGHTS = 8192 };

/* As the gradient of weights that all items share: each item adds to every element.  One chain
 * of all items in a part would lose 8 roundings and more. */
TEST(a_sum_of_many_items_loses_a_few_roundings)
{
    static float item[ITEMS], factor[WEIGHTS];
    double exact = 0, worst = 0;
    uint64_t x = 1;
    const float *got;
    size_t n;

    for (int i = 0; i < ITEMS; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        item[i] = 0.5f + (float)(x >> 40) * 0x1p-24f;
        exact += (double)item[i];
    }
    for (int k = 0; k < WEIGHTS; k++)
        factor[k] = 1.0f + (float)k / WEIGHTS;
    open_kernel("program p(n)\naxis I = n, P = rows k { 0, 1 }, U(P) = { 4096, 4096 }\n"
                "f32 X[I], V[P, U], W[P, U]\nw: W[p, u] += X[i] * V[p, u]\n");
    bind("X", item, WEFT_F32, 1, SHAPE(ITEMS));
    bind("V", factor, WEFT_F32, 1, SHAPE(WEIGHTS));
    OK(weft_kernel_run(kernel, args));
    got = result("W", &n);
    for (int k = 0; k < WEIGHTS; k++) {
        double want = exact * (double)factor[k];

        worst = fmax(worst, fabs((double)got[k] - want) / want);
    }
    if (worst > 3 * 0x1p-23)
        test_fail(__FILE__, __LINE__, "a relative error of %g", worst);
    close_prog();
}

/* Also of numbers that round, and with ranges cut as finely as there are rows. */
TEST(the_number_of_threads_changes_no_bit)
{
    static const int threads[] = { 1, 2, 3, 7, 16 };
    static const char *const text[] = { spmv, best };
    size_t n;
    char first[ROWS * sizeof(float)];

    draw(false);
    for (int p = 0; p < 2; p++)
        for (int k = 0; k < 5; k++) {
            open_parts(text[p], 11);
            OK(weft_ctx_threads(ctx, threads[k]));
            bind_rows();
            if (p == 0)
                bind("X", dense, WEFT_F32, 1, SHAPE(COLS));
            OK(weft_kernel_run(kernel, args));
            if (k == 0)
                memcpy(first, result(p == 0 ? "Y" : "T", &n), p == 0 ? sizeof first : 24);
            CHECK(memcmp(first, result(p == 0 ? "Y" : "T", &n), p == 0 ? sizeof first : 24) == 0);
            close_prog();
        }
}

/* Each entry reads a long row and adds to a short one: twice, so that both share their arrays. */
static const char scatter[] =
    "program p(m, n)\naxis I = m, J(I) = seg : k < n, U = 2\nf32 A[J], B[I, 16], O[n, U], G[J]\n"
    "o: for i, j, u, v in 8: O[k(j), u] += A[j] * B[i, u + 2 * v]\n"
    "g: for i, j, v in 16: G[j] += B[i, v]\n"
    "p: for i, j, u, v in 4: O[k(j), u] += A[j] * A[j] * B[i, u + 4 * v]\n";

static void bind_scatter(void)
{
    bind("J.start", start, WEFT_I64, 1, SHAPE(ROWS + 1));
    bind("J.k", coord, WEFT_I64, 1, SHAPE(start[ROWS]));
    bind("A", value, WEFT_F32, 1, SHAPE(start[ROWS]));
    bind("B", dense, WEFT_F32, 2, SHAPE(ROWS, 16));
    OK(weft_args_size(args, "n", COLS));
}

TEST(rows_of_a_scatter_have_parts)
{
    static const int threads[] = { 1, 2, 5 };
    static float first[COLS * 2];
    size_t n;

    draw(true);
    for (int64_t part = 1; part <= 4000; part = part * 7 + 3) {
        lines[0] = 0;
        open_parts(scatter, part);
        OK(weft_ctx_verbose(ctx, keep_line, NULL));
        bind_scatter();
        check_exact("O");
        check_exact("G");
        CHECK(strstr(lines, "O.part.init") == strstr(lines, "O.part.init: 300 in"));
        close_prog();
    }
    draw(false);
    for (int k = 0; k < 3; k++) {
        open_parts(scatter, 100);
        OK(weft_ctx_threads(ctx, threads[k]));
        bind_scatter();
        OK(weft_kernel_run(kernel, args));
        if (k == 0)
            memcpy(first, result("O", &n), sizeof first);
        CHECK(memcmp(first, result("O", &n), sizeof first) == 0);
        close_prog();
    }
}

TEST(a_scatter_without_entries_or_rows_gives_zeros)
{
    static int64_t none[ROWS + 1];
    size_t n;

    draw(true);
    open_parts(scatter, 0);
    for (int64_t rows = 0; rows <= ROWS; rows += ROWS) {
        bind("J.start", none, WEFT_I64, 1, SHAPE(rows + 1));
        bind("J.k", coord, WEFT_I64, 1, SHAPE(0));
        bind("A", value, WEFT_F32, 1, SHAPE(0));
        bind("B", dense, WEFT_F32, 2, SHAPE(rows, 16));
        OK(weft_args_size(args, "n", COLS));
        OK(weft_kernel_run(kernel, args));
        for (int i = 0; i < COLS * 2; i++)
            CHECK_SAME((double)((const float *)result("O", &n))[i], 0);
    }
    close_prog();
}

/* Groups of a strip, and pairs of a group that add to rows which they name. */
static const char nested[] =
    "program p(m, n)\naxis S = m, G(S) = seg : d < 9, E(G) = seg : r < 4, v < n, C = 8, O = 3\n"
    "f32 W[O, 9, C], X[n, C], Y[S, 4, O], DX[n, C], DW[O, 9, C]\n"
    "x: for s, g, e, c, o: DX[v(e), c] += Y[s, r(e), o] * W[o, d(g), c]\n"
    "w: for s, g, e, c, o: DW[o, d(g), c] += Y[s, r(e), o] * X[v(e), c]\n";

enum { STRIPS = 30, GROUPS = 5 * STRIPS, PAIRS = 12 * GROUPS };

/* near: the pairs of strip i name rows around 10 i; else any row. */
static void bind_nested(int64_t strips, bool near)
{
    static int64_t of_strip[STRIPS + 1], of_group[GROUPS + 1], d[GROUPS], r[PAIRS], v[PAIRS];
    static float w[3 * 9 * 8], y[STRIPS * 12], x[COLS * 8];
    int64_t groups = 0, pairs = 0;

    for (int64_t i = 0; i < strips; i++) {
        for (int64_t g = 0; g < (i * 7) % 6; g++, groups++) {
            d[groups] = (i + 2 * g) % 9;
            for (int64_t k = 0; k < (i + g) % 12; k++, pairs++) {
                r[pairs] = coord[pairs] % 4;
                v[pairs] = near ? (10 * i + coord[pairs] % 15) % COLS : coord[pairs];
            }
            of_group[groups + 1] = pairs;
        }
        of_strip[i + 1] = groups;
    }
    for (int i = 0; i < COLS * 8; i++)
        x[i] = value[i % MOST];
    for (int i = 0; i < STRIPS * 12; i++)
        y[i] = value[(i + 5) % MOST];
    for (int i = 0; i < 3 * 9 * 8; i++)
        w[i] = value[i + 9];
    bind("G.start", of_strip, WEFT_I64, 1, SHAPE(strips + 1));
    bind("G.d", d, WEFT_I64, 1, SHAPE(groups));
    bind("E.start", of_group, WEFT_I64, 1, SHAPE(groups + 1));
    bind("E.r", r, WEFT_I64, 1, SHAPE(pairs));
    bind("E.v", v, WEFT_I64, 1, SHAPE(pairs));
    bind("W", w, WEFT_F32, 3, SHAPE(3, 9, 8));
    bind("X", x, WEFT_F32, 2, SHAPE(COLS, 8));
    bind("Y", y, WEFT_F32, 3, SHAPE(strips, 4, 3));
}

TEST(entries_below_groups_of_rows_scatter_in_parts)
{
    static const int threads[] = { 1, 2, 5 };
    static float first[COLS * 8];
    size_t n;

    for (int64_t part = 1; part <= 4000; part = part * 7 + 3) {
        draw(true);
        open_parts(nested, part);
        bind_nested(STRIPS, part % 2 == 0);
        check_exact("DX");
        check_exact("DW");
        close_prog();
    }
    for (int64_t strips = 0; strips <= 1; strips++) { /* without any, and with no entry */
        draw(true);
        open_parts(nested, 0);
        bind_nested(strips, true);
        check_exact("DX");
        check_exact("DW");
        close_prog();
    }
    draw(false);
    for (int k = 0; k < 3; k++) {
        open_parts(nested, 100);
        OK(weft_ctx_threads(ctx, threads[k]));
        bind_nested(STRIPS, true);
        OK(weft_kernel_run(kernel, args));
        if (k == 0)
            memcpy(first, result("DX", &n), sizeof first);
        CHECK(memcmp(first, result("DX", &n), sizeof first) == 0);
        close_prog();
    }
}

/* Entries name rows, each one at most; seven rows, or none, are left over and begin with the
 * fill. */
TEST(rows_that_entries_name_are_set)
{
    static const char text[] =
        "program p(m, n)\naxis I = m, J(I) = seg : own < n once\nf32 A[J], B[I, 4], Z[n, 4]\n"
        "z: for i, j, u in 4: Z[own(j), u] += A[j] * B[i, u]\n";
    static int64_t own[MOST];
    static float z[4 * MOST];

    draw(true);
    for (int64_t left = 0; left <= 7; left += 7) {
        int64_t n = start[ROWS] + left;

        for (int64_t i = 0; i < start[ROWS]; i++)
            own[i] = n - 1 - i;
        open_parts(text, 0);
        bind("J.start", start, WEFT_I64, 1, SHAPE(ROWS + 1));
        bind("J.own", own, WEFT_I64, 1, SHAPE(start[ROWS]));
        bind("A", value, WEFT_F32, 1, SHAPE(start[ROWS]));
        bind("B", dense, WEFT_F32, 2, SHAPE(ROWS, 4));
        OK(weft_args_size(args, "n", n));
        check_exact("Z");
        for (int i = 0; i < 4 * MOST; i++)
            z[i] = 9;
        bind("Z", z, WEFT_F32, 2, SHAPE(n, 4));
        OK(weft_kernel_run(kernel, args));
        for (int64_t k = 0; k < 4 * left; k++)
            CHECK_SAME((double)z[k], 0);
        CHECK_SAME((double)z[4 * n], 9);
        close_prog();
    }
}

TEST(what_cannot_be_cut_says_why)
{
    lines[0] = 0;
    set_cache();
    open_prog("program p(n)\naxis E = n : k < n\nf32 X[E], Y[n], Z[E], B[]\n"
              "i64 W[E], S[], P[]\n"
              "y: Y[n - 1 - k(e)] += X[e]\ns: S[] += W[e]\nb: B[] max= X[e] at P[] = pos(e)\n"
              "z: Z[@W[e]] = X[e]\n");
    OK(weft_ctx_verbose(ctx, keep_line, NULL));
    compile();
    CHECK_HAS(lines, "y serial: iterations add to the same elements of Y, which may be many");
    CHECK_HAS(lines, "s serial: S is a sum of integers, and whether it overflows depends on the");
    CHECK_HAS(lines, "b serial: the first winner of B counts, so they are met in order");
    CHECK_HAS(lines, "z serial: iterations may write the same element of Z");
    close_prog();
}

TEST(a_row_is_long_by_the_structure_alone)
{
    draw(true);
    lines[0] = 0;
    open_parts(spmv, 0);
    OK(weft_ctx_verbose(ctx, keep_line, NULL));
    bind_rows();
    bind("X", dense, WEFT_F32, 1, SHAPE(COLS));
    OK(weft_kernel_run(kernel, args));
    CHECK_HAS(lines, "Y.parts: 0 in 0; Y.sum: 0 in 0"); /* nothing is long */
    open_parts(spmv, 100);
    lines[0] = 0;
    OK(weft_ctx_verbose(ctx, keep_line, NULL));
    bind_rows();
    bind("X", dense, WEFT_F32, 1, SHAPE(COLS));
    OK(weft_kernel_run(kernel, args));
    CHECK_HAS(lines, "Y.sum: 3 in 1");
    close_prog();
}
