/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * lower/positions/transpose.c, api/plan.c: sums into what coordinates of entries name, in any
 * order and in either index type, against loops written here; the same bits on any number of
 * threads. */
#include "unit/kernel_bed.h"

static const void *result(const char *name)
{
    weft_tensor t;

    OK(weft_args_get(args, name, &t));
    return t.data;
}

static const char both[] = "program both(nnz, m, n, f)\n"
                           "axis E = nnz : i < m, j < n, K = f\n"
                           "f32 A[E], B[n, K], C[m, K], D[n, K]\n"
                           "c: C[i(e), k] += A[e] * B[j(e), k]\n"
                           "d: for e, k: D[j(e), k] += A[e] * C[i(e), k]\n";

enum { ROWS = 300, COLS = 170, WIDE = 21, ENTRIES = 20000 };
static int64_t row[ENTRIES], col[ENTRIES];
static int32_t row_32[ENTRIES], col_32[ENTRIES];
static float val[ENTRIES], in[COLS * WIDE], out[ROWS * WIDE], back[COLS * WIDE];

static void draw(bool sorted)
{
    uint64_t seed = 5;

    for (int e = 0; e < ENTRIES; e++) {
        row[e] = sorted ? e * ROWS / ENTRIES : (int64_t)(test_random(&seed) % ROWS);
        col[e] = (int64_t)(test_random(&seed) % COLS);
        row_32[e] = (int32_t)row[e];
        col_32[e] = (int32_t)col[e];
        val[e] = (float)(test_random(&seed) % 3) - 1;
    }
    for (int i = 0; i < COLS * WIDE; i++)
        in[i] = (float)(test_random(&seed) % 5) - 2;
    memset(out, 0, sizeof out);
    memset(back, 0, sizeof back);
    for (int e = 0; e < ENTRIES; e++)
        for (int k = 0; k < WIDE; k++)
            out[row[e] * WIDE + k] += val[e] * in[col[e] * WIDE + k];
    for (int e = 0; e < ENTRIES; e++)
        for (int k = 0; k < WIDE; k++)
            back[col[e] * WIDE + k] += val[e] * out[row[e] * WIDE + k];
}

static void bind_entries(int mix)
{
    bind("E.i", mix & 1 ? (void *)row_32 : row, mix & 1 ? WEFT_I32 : WEFT_I64, 1, SHAPE(ENTRIES));
    bind("E.j", mix & 2 ? (void *)col_32 : col, mix & 2 ? WEFT_I32 : WEFT_I64, 1, SHAPE(ENTRIES));
    bind("A", val, WEFT_F32, 1, SHAPE(ENTRIES));
    bind("B", in, WEFT_F32, 2, SHAPE(COLS, WIDE));
    OK(weft_args_size(args, "m", ROWS));
}

TEST(entries_in_any_order_are_summed_by_row_and_by_column)
{
    weft_plan plan;

    for (int mix = 0; mix < 8; mix++) {
        draw((mix & 4) != 0);
        open_kernel(both);
        bind_entries(mix);
        OK(weft_kernel_run(kernel, args));
        check_floats("C", out, ROWS * WIDE);
        check_floats("D", back, COLS * WIDE);
        OK(weft_args_plan(args, &plan));
        CHECK_EQ(plan.transposes, 2);
        close_prog();
    }
}

TEST(threads_change_no_bit_of_sums_by_coordinate)
{
    static const int threads[] = { 1, 2, 3, 7, 16 };
    static float first[ROWS * WIDE];

    draw(false);
    for (int i = 0; i < COLS * WIDE; i++) /* now the order of terms matters */
        in[i] = (float)(i % 101) / 7;
    for (int k = 0; k < 5; k++) {
        open_kernel(both);
        OK(weft_ctx_threads(ctx, threads[k]));
        bind_entries(3);
        OK(weft_kernel_run(kernel, args));
        if (k == 0)
            memcpy(first, result("C"), sizeof first);
        CHECK(memcmp(first, result("C"), sizeof first) == 0);
        close_prog();
    }
}

static const char maps[] = "program maps(v, w, f)\n"
                           "axis D = 2, E(D) = seg : a < v, b < w, K = f\n"
                           "f64 X[v, K], W[D], Y[w, K]\n"
                           "y: Y[b(e), k] += X[a(e), k] * W[d] * (pos(e) + 1)\n";

TEST(rows_and_other_coordinates_come_along)
{
    int64_t start[] = { 0, 3, 5 };
    int32_t a[] = { 1, 0, 1, 2, 2 }, b[] = { 1, 0, 0, 1, 0 };
    double x[] = { 1, 10, 2, 20, 3, 30 }, w[] = { 1, 100 };
    const double *y;

    open_kernel(maps);
    bind("E.start", start, WEFT_I64, 1, SHAPE(3));
    bind("E.a", a, WEFT_I32, 1, SHAPE(5));
    bind("E.b", b, WEFT_I32, 1, SHAPE(5));
    bind("X", x, WEFT_F64, 2, SHAPE(3, 2));
    bind("W", w, WEFT_F64, 1, SHAPE(2));
    OK(weft_args_size(args, "w", 2));
    OK(weft_kernel_run(kernel, args));
    y = result("Y");
    CHECK(y[0] == 2 + 6 + 1500 && y[1] == 20 + 60 + 15000);
    CHECK(y[2] == 2 + 1200 && y[3] == 20 + 12000);
    close_prog();
}

TEST(what_hangs_on_entries_goes_with_them)
{
    int64_t i[] = { 2, 0, 2, 1 }, start[] = { 0, 2, 3, 3, 5 }, j[] = { 0, 1, 1, 0, 2 };
    float a[] = { 1, 2, 3, 4, 5 }, x[] = { 1, 10, 100 };

    open_kernel("program levels(r, m, n)\naxis I = r : load < m, J = compressed(I, n)\n"
                "f32 A[I, J], X[n], Y[m]\ny: Y[i] += A[i, j] * X[j]\n");
    bind("I.coord", i, WEFT_I64, 1, SHAPE(4));
    bind("J.start", start, WEFT_I64, 1, SHAPE(5));
    bind("J.coord", j, WEFT_I64, 1, SHAPE(5));
    bind("A", a, WEFT_F32, 1, SHAPE(5));
    bind("X", x, WEFT_F32, 1, SHAPE(3));
    OK(weft_args_size(args, "m", 3));
    OK(weft_kernel_run(kernel, args));
    check_floats("Y", (float[]){ 30, 504, 21 }, 3);
    close_prog();
}

/* Statements that a transpose serves, and others it cannot: the same bits as the interpreter's. */
TEST(what_cannot_go_by_columns_stays_as_it_is)
{
    static const char *const text[] = {
        /* one array by row and by column, in both orders */
        "for i, e:\n    a: C[i] += A[e]\n    b: C[j(e)] += 2 * A[e]\n    c: D[i] += A[e]\n",
        "for i, e:\n    b: C[j(e)] += 2 * A[e]\n    a: C[i] += A[e]\n    c: D[j(e)] += A[e]\n",
        /* rows that the data name */
        "c: for i, e, f in E(j(e)): C[j(f)] += A[e] * A[f]\nd: for i, e: D[j(e)] += A[e]\n",
        /* a loop between the row and its entries */
        "c: for i, k in 3, e: C[j(e)] += A[e] * (k + 1)\nd: for i: D[i] = 1\n",
        /* what an entry is numbered, among all and in its row */
        "c: for i, e: C[j(e)] += pos(e)\nd: for i, e: D[j(e)] += loc(e) * A[e]\n",
    };
    int64_t start[] = { 0, 2, 3, 3, 6 }, column[] = { 1, 3, 0, 3, 1, 3 };
    float value[] = { 1, -2, 3, 0.5f, 4, 8 };

    for (size_t i = 0; i < sizeof text / sizeof *text; i++) {
        char all[400];
        float want[8];
        weft_tensor c, d;

        snprintf(all, sizeof all,
                 "program p(n)\naxis I = n, E(I) = seg : j < n\nf32 A[E], C[n], D[n]\n%s", text[i]);
        open_kernel(all);
        bind("E.start", start, WEFT_I64, 1, SHAPE(5));
        bind("E.j", column, WEFT_I64, 1, SHAPE(6));
        bind("A", value, WEFT_F32, 1, SHAPE(6));
        OK(weft_run(args));
        OK(weft_args_get(args, "C", &c));
        OK(weft_args_get(args, "D", &d));
        memcpy(want, c.data, 16);
        memcpy(want + 4, d.data, 16);
        OK(weft_kernel_run(kernel, args));
        CHECK_STR(info_of(kernel).target, "c");
        check_floats("C", want, 4);
        check_floats("D", want + 4, 4);
        close_prog();
    }
}
