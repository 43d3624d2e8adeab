/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * api/: arguments.  Sizes solved from shapes; strides, overlap and alignment; files; results; and
 * nothing of the caller's changed by a call that fails. */
#include "unit/api_bed.h"

#include "base/base.h"
#include "io/io.h"

TEST(what_cannot_be_bound_is_refused_and_says_why)
{
    float x[8] = { 0 };
    int64_t shape[] = { 4, 2 }, minus[] = { 4, -2 }, huge[] = { INT64_MAX, 3 };
    int64_t far[] = { INT64_MAX / 2, 1 };
    weft_tensor t = tensor(x, WEFT_F32, 2, shape), u;

    open_prog(spmm);
    BAD(weft_args_size(args, NULL, 1), WEFT_E_ARG, "name");
    BAD(weft_args_size(args, "q", 1), WEFT_E_ARG, "it has m, n, f, J.start, J.coord, A, B, C");
    BAD(weft_args_size(args, "A", 1), WEFT_E_ARG, "is an array");
    BAD(weft_args_size(args, "n", -1), WEFT_E_ARG, "cannot be -1");
    BAD(weft_args_size(args, "", 1), WEFT_E_ARG, "no argument");
    BAD(weft_args_size(args, "\x1b[31m", 1), WEFT_E_ARG, "no argument  [31m;");
    BAD(weft_args_bind(args, NULL, &t), WEFT_E_ARG, "name");
    BAD(weft_args_bind(args, "n", &t), WEFT_E_ARG, "weft_args_size");
    BAD(weft_args_bind(args, "K.start", &t), WEFT_E_ARG, "no argument K.start");
    u = t, u.type = (weft_type)77;
    BAD(weft_args_bind(args, "B", &u), WEFT_E_ARG, "not a type");
    u = t, u.type = WEFT_F64;
    BAD(weft_args_bind(args, "B", &u), WEFT_E_ARG, "B is an array of f32, and f64 was given");
    u = t, u.ndim = 1;
    BAD(weft_args_bind(args, "J.start", &u), WEFT_E_ARG, "i32 or i64, and f32");
    BAD(weft_args_bind(args, "B", &u), WEFT_E_BIND,
        "B has 2 dimensions, and the array given has 1");
    u = t, u.ndim = 33;
    BAD(weft_args_bind(args, "B", &u), WEFT_E_ARG, "33 dimensions");
    u = t, u.ndim = -1;
    BAD(weft_args_bind(args, "B", &u), WEFT_E_ARG, "-1 dimensions");
    u = t, u.shape = NULL;
    BAD(weft_args_bind(args, "B", &u), WEFT_E_ARG, "shape");
    u = t, u.shape = minus;
    BAD(weft_args_bind(args, "B", &u), WEFT_E_ARG, "dimension 1 is -2");
    u = t, u.shape = huge;
    BAD(weft_args_bind(args, "B", &u), WEFT_E_LIMIT, "64-bit");
    u = t, u.data = NULL;
    BAD(weft_args_bind(args, "B", &u), WEFT_E_ARG, "data is NULL");
    u = t, u.stride = far;
    BAD(weft_args_bind(args, "B", &u), WEFT_E_ARG, "address space");
    far[0] = INT64_MIN / 64;
    BAD(weft_args_bind(args, "B", &u), WEFT_E_ARG, "address space");
    close_prog();
}

TEST(a_run_without_an_input_or_a_size_says_which)
{
    weft_tensor t;
    const char *text;

    open_prog(spmm);
    BAD(weft_run(args), WEFT_E_BIND, "J.start is not bound");
    BAD(weft_args_get(args, "C", &t), WEFT_E_ARG, "run the program first");
    BAD(weft_args_print(args, "C", &text), WEFT_E_ARG, "run the program first");
    BAD(weft_args_write(args, "C", "c.npy"), WEFT_E_ARG, "run the program first");
    bind_csr();
    OK(weft_args_bind(args, "B", NULL));
    BAD(weft_run(args), WEFT_E_BIND, "B is not bound");
    close_prog();
    open_prog("program p(n)\ni64 Y[n]\ny: for i in n: Y[i] = 1");
    BAD(weft_run(args), WEFT_E_BIND, "the size n is not known");
    OK(weft_args_size(args, "n", 2));
    OK(weft_run(args));
    BAD(weft_args_get(args, "C", &t), WEFT_E_ARG, "no argument C");
    BAD(weft_args_get(args, NULL, &t), WEFT_E_ARG, "name");
    BAD(weft_args_get(args, "Y", NULL), WEFT_E_ARG, "out");
    BAD(weft_args_print(args, "Y", NULL), WEFT_E_ARG, "out");
    BAD(weft_args_print(args, "C", &text), WEFT_E_ARG, "no argument C");
    BAD(weft_args_print(args, NULL, &text), WEFT_E_ARG, "name");
    CHECK(text == NULL);
    close_prog();
}

TEST(sizes_follow_from_shapes_in_any_order)
{
    double x[24] = { 0 };
    weft_tensor t;

    open_prog("program p(a, b, c, d, q)\n"
              "axis I = 2*a + 1, G(I) = b, E(G) = seg : j < d\n"
              "f64 X[E], Y[3*c - a, -q + 2*a], Z[a*b], S[]\n"
              "s: S[] += X[e]\n");
    bind("Z", x, WEFT_F64, 1, SHAPE(6));
    bind("Y", x, WEFT_F64, 2, SHAPE(10, 1));
    bind("X", x, WEFT_F64, 1, SHAPE(4));
    bind("E.j", ((int64_t[]){ 0, 1, 0, 1 }), WEFT_I64, 1, SHAPE(4));
    bind("E.start", ((int32_t[]){ 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 4 }), WEFT_I32, 1, SHAPE(11));
    BAD(weft_run(args), WEFT_E_BIND, "the size a is not known");
    OK(weft_args_size(args, "a", 2));
    OK(weft_args_size(args, "b", 2));
    BAD(weft_run(args), WEFT_E_BIND,
        "dimension 0 of Z is 6, but must be a * b = 4; a = 2 as set, b = 2 as set");
    bind("Z", x, WEFT_F64, 1, SHAPE(4));
    BAD(weft_run(args), WEFT_E_BIND, "the size d is not known");
    OK(weft_args_size(args, "d", 2));
    OK(weft_run(args));
    OK(weft_args_get(args, "c", &t));
    CHECK_EQ(t.ndim, 0);
    CHECK_EQ(*(int64_t *)t.data, 4);
    OK(weft_args_get(args, "q", &t));
    CHECK_EQ(*(int64_t *)t.data, 3);
    close_prog();
}

TEST(sizes_that_no_line_tells_are_asked_for)
{
    double x[24] = { 0 };

    open_prog(
        "program p(n, k)\nf64 X[n / 2], Y[n % 5], Z[n * k], V[n + k], W[n * 4611686018427387904]"
        ", S[]\ns: for i in 3: S[] += 1\n");
    bind("X", x, WEFT_F64, 1, SHAPE(3));
    bind("Y", x, WEFT_F64, 1, SHAPE(1));
    bind("Z", x, WEFT_F64, 1, SHAPE(12));
    bind("V", x, WEFT_F64, 1, SHAPE(8));
    bind("W", x, WEFT_F64, 1, SHAPE(0));
    OK(weft_args_size(args, "n", 6));
    CHECK_EQ(weft_run(args), WEFT_E_LIMIT); /* W */
    OK(weft_args_size(args, "n", 7));
    BAD(weft_run(args), WEFT_E_BIND, "dimension 0 of Y is 1, but must be n % 5 = 2; n = 7 as set");
    close_prog();
    open_prog("program p(n, k)\nf64 X[n / 2], V[n + k], S[]\ns: for i in 3: S[] += 1\n");
    bind("X", x, WEFT_F64, 1, SHAPE(3));
    bind("V", x, WEFT_F64, 1, SHAPE(9));
    BAD(weft_run(args), WEFT_E_BIND, "the size n is not known");
    OK(weft_args_size(args, "k", 2));
    OK(weft_run(args));
    close_prog();
}

TEST(one_dimension_gives_the_size_that_is_linear_in_it)
{
    static const struct {
        const char *extent;
        int64_t value, n; /* -1: it does not tell n */
    } row[] = {
        { "n", 5, 5 },
        { "n + n", 6, 3 },
        { "3 + n * 2", 7, 2 },
        { "2 * (n + 1) - 3", 7, 4 },
        { "-n + 9", 4, 5 },
        { "9 - 2 * n", 3, 3 },
        { "n - n + 3", 3, -1 },
        { "n * n", 9, -1 },
        { "n / 2 + 1", 3, -1 },
        { "1 + n % 4", 3, -1 },
        { "6 / (n + 1)", 3, -1 },
        { "(n + 1) * (6 / 2)", 6, 1 },
        { "(n + 1) * (7 % 4)", 6, 1 },
        { "(n + 1) * (k / 0)", 6, -1 },
        { "(n + 1) * (k % 0)", 6, -1 },
        { "n + 9223372036854775807 + 1", 6, -1 },
        { "n * 9223372036854775807 * 2", 6, -1 },
        { "(n + 1) * 9223372036854775807 * 2", 6, -1 },
        { "n - (-9223372036854775808)", 6, -1 },
        { "n * 9223372036854775807 + n", 0, -1 },
        { "n * 9223372036854775807 - n * (-9223372036854775808)", 0, -1 },
        { "-9223372036854775808 + n", 6, -1 },
        { "n + k", 6, -1 },
        { "n * k", 6, -1 },
    };
    static double x[16];
    char text[200];
    weft_tensor t;

    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        snprintf(text, sizeof text, "program p(n, k)\nf64 X[%s], S[]\ns: for i in 3: S[] += 1\n",
                 row[i].extent);
        open_prog(text);
        bind("X", x, WEFT_F64, 1, &row[i].value);
        if (row[i].n < 0) {
            CHECK(weft_run(args) != WEFT_OK);
        } else {
            OK(weft_args_size(args, "k", 1));
            ok(weft_run(args), row[i].extent, __LINE__);
            OK(weft_args_get(args, "n", &t));
            CHECK_EQ(*(int64_t *)t.data, row[i].n);
        }
        close_prog();
    }
}

TEST(starts_tell_their_parents_whatever_these_are)
{
    static int64_t first[] = { 0, 2, 3 }, second[] = { 0, 1, 1, 4 }, third[] = { 0, 1, 2, 3, 4 };
    double x[4] = { 1, 2, 3, 4 };

    open_prog("program p(m)\naxis I = m, E(I) = seg, F(E) = seg, T = 2, U(T) = {1, 3}, G(U) = seg\n"
              "f64 X[F], Y[G], S[]\ns: S[] += X[f]\n");
    bind("E.start", first, WEFT_I64, 1, SHAPE(3));
    bind("F.start", second, WEFT_I64, 1, SHAPE(4));
    bind("G.start", third, WEFT_I64, 1, SHAPE(5));
    bind("X", x, WEFT_F64, 1, SHAPE(4));
    bind("Y", x, WEFT_F64, 1, SHAPE(4));
    OK(weft_run(args));
    OK(weft_args_bind(args, "E.start", NULL));
    BAD(weft_run(args), WEFT_E_BIND, "E.start is not bound");
    bind("E.start", first, WEFT_I64, 1, SHAPE(3));
    bind("F.start", second, WEFT_I64, 1, SHAPE(3));
    BAD(weft_run(args), WEFT_E_BIND, "F.start has 3 elements, but axis E has 3 positions");
    bind("F.start", second, WEFT_I64, 1, SHAPE(4));
    bind("G.start", third, WEFT_I64, 1, SHAPE(4));
    BAD(weft_run(args), WEFT_E_BIND, "G.start has 4 elements, but axis U has 4 positions");
    bind("G.start", third, WEFT_I64, 1, SHAPE(5));
    bind("E.start", NULL, WEFT_I64, 1, SHAPE(0));
    BAD(weft_run(args), WEFT_E_BIND, "E.start has 0 elements");
    close_prog();
}

TEST(two_shapes_that_disagree_are_both_named)
{
    static float b[16];

    open_prog(spmm);
    bind_csr();
    bind("C", b, WEFT_F32, 2, SHAPE(3, 3));
    BAD(weft_run(args), WEFT_E_BIND,
        "dimension 1 of C is 3, but must be f = 2; f = 2 from dimension 1 of B");
    OK(weft_args_bind(args, "C", NULL));
    OK(weft_args_size(args, "m", 5));
    BAD(weft_run(args), WEFT_E_BIND,
        "J.start has 4 elements, but axis I has 5 positions, so it "
        "needs 6; m = 5 as set");
    OK(weft_args_size(args, "m", 3));
    OK(weft_args_read(args, "A", write_text("a.mtx", small_mtx)));
    OK(weft_args_size(args, "n", 7));
    BAD(weft_run(args), WEFT_E_BIND, "dimension 0 of B is 4, but must be n = 7; n = 7 as set");
    bind("B", b, WEFT_F32, 2, SHAPE(7, 2));
    BAD(weft_run(args), WEFT_E_BIND, "the number of columns of");
    close_prog();
    open_prog("program p(n)\nf64 X[2*n, 3], Y[n]\ny: for i in n: Y[i] = X[i, 0]");
    bind("X", (double[9]){ 0 }, WEFT_F64, 2, SHAPE(3, 3));
    BAD(weft_run(args), WEFT_E_BIND,
        "dimension 0 of X is 3, but must be 2 * n, and no n gives that");
    bind("X", (double[9]){ 0 }, WEFT_F64, 2, SHAPE(4, 2));
    BAD(weft_run(args), WEFT_E_BIND, "dimension 1 of X is 2, but must be 3");
    close_prog();
}

TEST(a_folded_dimension_must_fit_its_structure)
{
    open_prog(spmm);
    bind_csr();
    bind("A", csr_value, WEFT_F32, 1, SHAPE(3));
    BAD(weft_run(args), WEFT_E_BIND, "dimension 0 of A is 3, but must be 4");
    bind("A", csr_value, WEFT_F32, 1, SHAPE(4));
    bind("J.start", ((int64_t[]){ 0, 3, 2, 4 }), WEFT_I64, 1, SHAPE(4));
    CHECK_EQ(weft_run(args), WEFT_E_BIND);
    bind("J.start", ((int64_t[]){ 0, 2, 2, INT64_MAX }), WEFT_I64, 1, SHAPE(4));
    CHECK(weft_run(args) != WEFT_OK);
    bind("J.start", ((int64_t[]){ -5, 2, 2, 4 }), WEFT_I64, 1, SHAPE(4));
    CHECK_EQ(weft_run(args), WEFT_E_BIND);
    bind("J.start", NULL, WEFT_I64, 1, SHAPE(0));
    BAD(weft_run(args), WEFT_E_BIND, "J.start has 0 elements; it needs one more than axis I");
    bind("J.start", csr_start, WEFT_I64, 1, SHAPE(4));
    bind("J.coord", ((int32_t[]){ 0, 2, 1, 4 }), WEFT_I32, 1, SHAPE(4));
    CHECK_EQ(weft_run(args), WEFT_E_BIND);
    bind("J.coord", csr_coord, WEFT_I32, 1, SHAPE(4));
    OK(weft_run(args));
    close_prog();
}

TEST(inputs_of_any_stride_and_alignment_give_the_same)
{
    static const int64_t shape[] = { 4, 2 };
    static const int64_t stride[][2] = { { 2, 1 },  { 1, 4 },   { -2, 1 },
                                         { 2, -1 }, { -1, -4 }, { 9, 3 } };
    static char room[400];

    open_prog(spmm);
    bind_csr();
    for (int s = 0; s < 6; s++)
        for (int shift = 0; shift < 4; shift++) {
            char *base = room + 160 + shift;
            weft_tensor t = { base, WEFT_F32, 2, shape, stride[s] };

            for (int64_t i = 0; i < 4; i++)
                for (int64_t k = 0; k < 2; k++)
                    memcpy(base + 4 * (i * stride[s][0] + k * stride[s][1]), &dense_b[2 * i + k],
                           4);
            OK(weft_args_bind(args, "B", &t));
            OK(weft_run(args));
            check_floats("C", product, 6);
        }
    close_prog();
}

TEST(an_input_may_repeat_one_element_by_stride_0)
{
    static const float want[] = { 10.5f, 10.5f, 0, 0, -1.5f, -1.5f };
    float three = 3;
    weft_tensor t = { &three, WEFT_F32, 2, SHAPE(4, 2), SHAPE(0, 0) };

    open_prog(spmm);
    bind_csr();
    OK(weft_args_bind(args, "B", &t));
    OK(weft_run(args));
    check_floats("C", want, 6);
    close_prog();
}

TEST(a_strided_output_is_written_at_its_elements_and_nowhere_else)
{
    float room[40];
    weft_tensor t = { room + 20, WEFT_F32, 2, SHAPE(3, 2), SHAPE(-6, 2) };

    open_prog(spmm);
    bind_csr();
    for (int i = 0; i < 40; i++)
        room[i] = 99;
    OK(weft_args_bind(args, "C", &t));
    OK(weft_run(args));
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 2; k++) {
            CHECK_SAME((double)room[20 - 6 * i + 2 * k], (double)product[2 * i + k]);
            room[20 - 6 * i + 2 * k] = 99;
        }
    for (int i = 0; i < 40; i++)
        CHECK_SAME((double)room[i], 99);
    close_prog();
}

TEST(outputs_that_share_memory_are_refused)
{
    float room[64] = { 0 };
    int64_t shape[] = { 3, 2 }, stride[2];
    weft_tensor c = { room, WEFT_F32, 2, shape, stride },
                b = { room, WEFT_F32, 2, SHAPE(4, 2), NULL };
    struct {
        int64_t row, column;
        bool good;
    } self[] = { { 0, 1, false }, { 2, 0, false }, { 1, 1, false }, { 2, 1, true },
                 { 1, 3, true },  { -2, 1, true }, { 3, 2, true },  { 1, 2, false } };

    open_prog(spmm);
    bind_csr();
    c.data = room + 32;
    for (int i = 0; i < 8; i++) {
        stride[0] = self[i].row;
        stride[1] = self[i].column;
        OK(weft_args_bind(args, "C", &c));
        if (self[i].good)
            OK(weft_run(args));
        else
            BAD(weft_run(args), WEFT_E_BIND, "C is written, but elements");
    }
    OK(weft_args_bind(args, "B", &b));
    c.data = room, stride[0] = 2, stride[1] = 1;
    OK(weft_args_bind(args, "C", &c));
    BAD(weft_run(args), WEFT_E_BIND, "shares memory with that of B");
    c.data = room + 7;
    OK(weft_args_bind(args, "C", &c));
    BAD(weft_run(args), WEFT_E_BIND, "shares memory with that of B");
    c.data = (char *)(room + 8) - 1; /* one byte of the last element */
    OK(weft_args_bind(args, "C", &c));
    BAD(weft_run(args), WEFT_E_BIND, "shares memory with that of B");
    c.data = room + 8;
    OK(weft_args_bind(args, "C", &c));
    OK(weft_run(args));
    b.stride = SHAPE(4, 1), stride[0] = 4, c.data = room + 2; /* two halves of each row */
    OK(weft_args_bind(args, "B", &b));
    OK(weft_args_bind(args, "C", &c));
    OK(weft_run(args));
    c.data = room + 1;
    OK(weft_args_bind(args, "C", &c));
    BAD(weft_run(args), WEFT_E_BIND, "shares memory");
    close_prog();
}

TEST(a_run_that_fails_changes_neither_arrays_nor_results)
{
    int64_t x[] = { 1, 2, 3 }, y[] = { 7, 7, 7 }, z[] = { 10, 10, 10 };
    weft_tensor t;

    open_prog("program p(n)\ni64 X[n], Y[n]\ninout i64 Z[n]\n"
              "y: for i in n: Y[i] = 6 / X[i]\nz: for i in n: Z[i] += 6 / (X[i] - 9)");
    bind("X", x, WEFT_I64, 1, SHAPE(3));
    bind("Y", y, WEFT_I64, 1, SHAPE(3));
    bind("Z", z, WEFT_I64, 1, SHAPE(3));
    x[2] = 0;
    BAD(weft_run(args), WEFT_E_RUN, "y");
    x[2] = 9;
    BAD(weft_run(args), WEFT_E_RUN, "z");
    CHECK(y[0] == 7 && y[1] == 7 && y[2] == 7 && z[0] == 10 && z[1] == 10 && z[2] == 10);
    x[2] = 3;
    OK(weft_run(args));
    CHECK(y[0] == 6 && y[1] == 3 && y[2] == 2 && z[0] == 9 && z[1] == 9 && z[2] == 9);
    x[0] = 0;
    BAD(weft_run(args), WEFT_E_RUN, "y");
    OK(weft_args_get(args, "Y", &t));
    CHECK_EQ(((int64_t *)t.data)[0], 6);
    CHECK_EQ(z[0], 9);
    close_prog();
}

TEST(arrays_without_elements_need_no_data)
{
    weft_tensor t;

    open_prog(spmm);
    bind("J.start", ((int64_t[]){ 0 }), WEFT_I64, 1, SHAPE(1));
    bind("J.coord", NULL, WEFT_I64, 1, SHAPE(0));
    bind("A", NULL, WEFT_F32, 1, SHAPE(0));
    bind("B", NULL, WEFT_F32, 2, SHAPE(0, 5));
    bind("C", NULL, WEFT_F32, 2, SHAPE(0, 5));
    OK(weft_run(args));
    OK(weft_args_get(args, "C", &t));
    CHECK_EQ(t.shape[0], 0);
    CHECK_EQ(t.shape[1], 5);
    close_prog();
}

TEST(a_built_axis_gives_its_structure_back_and_checks_what_is_bound)
{
    int64_t start[4] = { 9, 9, 9, 9 }, wrong[3] = { 9, 9, 9 };
    weft_tensor t;

    open_prog("program u(m, n)\naxis I = m, J = compressed(I, n), U(I) = built : load < n\n"
              "f32 A[J], C[I, U]\nu: U(i) |= n - 1 - j\nc: C[i, n - 1 - j] = A[j]\n");
    OK(weft_args_read(args, "A", write_text("a.mtx", small_mtx)));
    bind("U.start", start, WEFT_I64, 1, SHAPE(4));
    OK(weft_run(args));
    CHECK(start[0] == 0 && start[1] == 2 && start[2] == 2 && start[3] == 4);
    OK(weft_args_get(args, "U.coord", &t));
    CHECK(t.shape[0] == 4 && ((int64_t *)t.data)[0] == 1 && ((int64_t *)t.data)[1] == 3);
    check_floats("C", (const float[]){ 2, 1.5f, 0.5f, -1 }, 4);
    OK(weft_args_get(args, "J.coord", &t));
    CHECK_EQ(((int64_t *)t.data)[1], 2);
    bind("U.coord", wrong, WEFT_I64, 1, SHAPE(3));
    BAD(weft_run(args), WEFT_E_BIND, "dimension 0 of U.coord is 3, but must be 4");
    CHECK_EQ(wrong[0], 9);
    OK(weft_args_bind(args, "U.coord", NULL));
    bind("U.start", wrong, WEFT_I64, 1, SHAPE(3));
    BAD(weft_run(args), WEFT_E_BIND, "must be m = 2; m = 2 from U.start");
    BAD(weft_args_bind(args, "U.start", &(weft_tensor){ csr_coord, WEFT_I32, 1, SHAPE(4), NULL }),
        WEFT_E_ARG, "U.start is an array of i64");
    close_prog();
}

TEST(what_the_caller_owns_is_not_given_back)
{
    weft_tensor t;

    open_prog(spmm);
    bind_csr();
    OK(weft_run(args));
    BAD(weft_args_get(args, "A", &t), WEFT_E_ARG, "A is your own array");
    BAD(weft_args_get(args, "J.start", &t), WEFT_E_ARG, "J.start is your own array");
    close_prog();
}

TEST(results_are_written_to_files_that_read_back_the_same)
{
    static const weft_type type[] = { WEFT_I32, WEFT_I64, WEFT_F16, WEFT_BF16, WEFT_F32, WEFT_F64 };
    char text[200], part[40];
    const char *shown;

    for (int i = 0; i < 6; i++) {
        const char *name = weft_list("types", i, NULL), *path = test_path("y.npy");
        weft_arg a;

        snprintf(text, sizeof text,
                 "program p(n)\n%s X[n, 2], Y[n, 2]\n"
                 "y: for i in n, j in 2: Y[i, j] = X[i, j] * 3",
                 name);
        open_prog(text);
        OK(weft_prog_arg(prog, 1, &a));
        CHECK_EQ(a.type, type[i]);
        OK(weft_args_read(args, "X",
                          write_text("x.mtx", "%%MatrixMarket matrix array integer "
                                              "general\n2 2\n1\n-2\n3\n4\n")));
        OK(weft_run(args));
        OK(weft_args_write(args, "Y", path));
        OK(weft_args_read(args, "X", path));
        OK(weft_run(args));
        OK(weft_args_write(args, "Y", test_path("y.mtx")));
        OK(weft_args_read(args, "X", test_path("y.mtx")));
        OK(weft_run(args));
        OK(weft_args_print(args, "Y", &shown));
        snprintf(part, sizeof part, "Y %s [2, 2]\n", name);
        CHECK_HAS(shown, part);
        CHECK_HAS(shown, "   27   81\n  -54  108\n");
        close_prog();
    }
}

TEST(files_that_do_not_fit_are_refused_and_leave_the_old_binding)
{
    const char *mtx;

    open_prog(spmm);
    bind_csr();
    mtx = write_text("a.mtx", small_mtx);
    BAD(weft_args_read(args, NULL, mtx), WEFT_E_ARG, "name");
    BAD(weft_args_read(args, "A", NULL), WEFT_E_ARG, "path");
    BAD(weft_args_read(args, "Q", mtx), WEFT_E_ARG, "no argument Q");
    BAD(weft_args_read(args, "C", mtx), WEFT_E_ARG, "computed by the program");
    BAD(weft_args_read(args, "n", mtx), WEFT_E_ARG, "a size");
    BAD(weft_args_read(args, "A", "a.txt"), WEFT_E_ARG, ".npy, .npz or .mtx");
    BAD(weft_args_read(args, "A", "mtx"), WEFT_E_ARG, ".npy, .npz or .mtx");
    BAD(weft_args_read(args, "A", "a.txt:x"), WEFT_E_ARG, ".npy, .npz or .mtx");
    BAD(weft_args_read(args, "A", "a.npy:x"), WEFT_E_ARG, "members");
    BAD(weft_args_read(args, "A", "a.npy:T"), WEFT_E_ARG, "transposed");
    BAD(weft_args_read(args, "A", "a.mtx:x"), WEFT_E_ARG, "members");
    BAD(weft_args_read(args, "A", "/nowhere/a.mtx"), WEFT_E_IO, "/nowhere/a.mtx");
    BAD(weft_args_read(args, "J.coord", mtx), WEFT_E_BIND, "one array of a structure");
    CHECK_EQ(weft_args_read(args, "A", write_text("b.mtx", "%%MatrixMarket matrix")), WEFT_E_PARSE);
    CHECK_EQ(weft_args_read(args, "B", write_text("b.npy", "\x93NUMPY")), WEFT_E_PARSE);
    CHECK_EQ(weft_args_read(args, "B", write_text("b.npz", "PK")), WEFT_E_PARSE);
    OK(weft_run(args));
    check_floats("C", product, 6);
    BAD(weft_args_write(args, "C", NULL), WEFT_E_ARG, "path");
    BAD(weft_args_write(args, NULL, "c.npy"), WEFT_E_ARG, "name");
    BAD(weft_args_write(args, "Q", "c.npy"), WEFT_E_ARG, "no argument Q");
    BAD(weft_args_write(args, "A", "c.npy"), WEFT_E_ARG, "your own");
    BAD(weft_args_write(args, "C", "c.txt"), WEFT_E_ARG, ".npy or .mtx");
    BAD(weft_args_write(args, "C", "c.npz"), WEFT_E_ARG, ".npy or .mtx");
    BAD(weft_args_write(args, "C", "/nowhere/c.npy"), WEFT_E_IO, "/nowhere/c.npy");
    BAD(weft_args_write(args, "n", "n.mtx"), WEFT_E_ARG, "not a matrix");
    OK(weft_args_write(args, "n", test_path("n.npy")));
    close_prog();
}

TEST(a_file_is_converted_to_the_type_of_the_buffer_or_refused)
{
    open_prog("program p(n)\ni32 X[n], Y[n]\ny: for i in n: Y[i] = X[i]");
    OK(weft_args_read(args, "X",
                      write_text("x.mtx", "%%MatrixMarket matrix array real general\n"
                                          "2 1\n4.0\n-7\n")));
    OK(weft_run(args));
    OK(weft_args_write(args, "Y", test_path("y.npy")));
    BAD(weft_args_read(args, "X",
                       write_text("x.mtx", "%%MatrixMarket matrix array real general\n"
                                           "2 1\n4.5\n-7\n")),
        WEFT_E_BIND, "X holds integers (i32), and the data has 4.5");
    BAD(weft_args_read(args, "X",
                       write_text("x.mtx", "%%MatrixMarket matrix array integer general"
                                           "\n1 1\n3000000000\n")),
        WEFT_E_BIND, "3000000000 does not fit an i32");
    BAD(weft_args_read(args, "X",
                       write_text("x.mtx", "%%MatrixMarket matrix array real general\n"
                                           "1 1\n1e40\n")),
        WEFT_E_BIND, "1e+40");
    BAD(weft_args_read(args, "X",
                       write_text("x.mtx", "%%MatrixMarket matrix array real general\n"
                                           "1 2\n1\n2\n")),
        WEFT_E_BIND, "one by one");
    close_prog();
}

TEST(members_of_an_archive_are_found_by_path_or_by_name)
{
    int64_t x[] = { 5, 6 };
    int32_t y[] = { 7, 8 };
    IoArray member[] = {
        { .name = "X", .type = IO_I64, .ndim = 1, .dim = { 2 }, .n = 2, .data = x },
        { .name = "y", .type = IO_I32, .ndim = 1, .dim = { 2 }, .n = 2, .data = y }
    };
    IoNpz npz = { 2, member };
    Arena arena;
    Err err = { 0 };
    Text bytes = { .arena = &arena };
    char path[600];
    FILE *f = fopen(test_path("g.npz"), "wb");

    arena_init(&arena, &os_libc, &err);
    io_npz_print(&bytes, &npz);
    CHECK(f != NULL && fwrite(bytes.s, 1, bytes.n, f) == bytes.n);
    fclose(f);
    arena_free(&arena);
    open_prog("program p(n)\ni64 X[n]\nf16 Y[n]\ny: for i in n: Y[i] = X[i]");
    OK(weft_args_read(args, "X", test_path("g.npz")));
    OK(weft_run(args));
    OK(weft_args_write(args, "Y", test_path("y.npy")));
    snprintf(path, sizeof path, "%s:y", test_path("g.npz"));
    OK(weft_args_read(args, "X", path));
    OK(weft_run(args));
    snprintf(path, sizeof path, "%s:z", test_path("g.npz"));
    BAD(weft_args_read(args, "X", path), WEFT_E_ARG, "z");
    close_prog();
}

TEST(long_results_are_shown_in_part)
{
    const char *text;

    open_prog("program p(n, k)\nf32 Y[n, k]\nf64 Z[2, 2, 2]\ni64 S[], E[0, 3]\n"
              "y: for i in n, j in k: Y[i, j] = 0.1 * j + i\nz: for a in 2, b in 2, c in 2: "
              "Z[a, b, c] = 1.0 / 3 * c - 1e30 * b\ns: for i in n: S[] += 1\n"
              "e: for i in 0, j in 3: E[i, j] = 1");
    OK(weft_args_size(args, "n", 100));
    OK(weft_args_size(args, "k", 20));
    OK(weft_run(args));
    OK(weft_args_print(args, "Y", &text));
    CHECK_HAS(text,
              "Y f32 [100, 20]\n      0    0.1    0.2    0.3    0.4    0.5    0.6    0.7    0.8"
              "  ...    1.7    1.8    1.9\n      1    1.1");
    CHECK_HAS(text, "\n  ...\n     97");
    CHECK(strstr(text, "\n     13") == NULL);
    OK(weft_args_print(args, "Z", &text));
    CHECK_HAS(text, "Z f64 [2, 2, 2]\n");
    CHECK_HAS(text, " 0.3333333333333333\n");
    CHECK_HAS(text, "-1e+30");
    OK(weft_args_print(args, "S", &text));
    CHECK_STR(text, "S i64 []\n  100\n");
    OK(weft_args_print(args, "E", &text));
    CHECK_STR(text, "E i64 [0, 3]\n");
    OK(weft_args_print(args, "n", &text));
    CHECK_STR(text, "n i64 []\n  100\n");
    close_prog();
}

TEST(more_dimensions_than_numpy_has_are_not_written)
{
    char text[800] = "program p()\naxis ";
    size_t n = strlen(text);

    for (int i = 0; i < 9; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "P%d = 1, Q%d(P%d) = 1%s", i, i, i,
                              i < 8 ? ", "
                                    : "\nf64 Y[Q0, Q1, Q2, Q3, Q4, Q5, Q6, Q7, Q8]\n"
                                      "y: Y[q0, q1, q2, q3, q4, q5, q6, q7, q8] = 5\n");
    open_prog(text);
    OK(weft_run(args));
    BAD(weft_args_write(args, "Y", test_path("y.npy")), WEFT_E_LIMIT, "more than 16 dimensions");
    close_prog();
}

/* A tensor somewhere in `room`, which any stride here stays inside of. */
static weft_tensor random_tensor(uint64_t *seed, char *room, int64_t *shape, int64_t *stride)
{
    weft_tensor t = { room + 4096 + test_random(seed) % 64, (weft_type)(test_random(seed) % 7),
                      (int)(test_random(seed) % 4), shape, NULL };

    for (int d = 0; d < 4; d++) {
        shape[d] = (int64_t)(test_random(seed) % 6);
        stride[d] = (int64_t)(test_random(seed) % 33) - 16;
    }
    if (test_random(seed) % 3 == 0)
        t.stride = stride;
    return t;
}

static void random_call(uint64_t *seed, weft_prog **p, weft_args **a, char *room)
{
    static const char *const name[] = { "m", "n", "f", "J.start", "J.coord", "A", "B", "C", "Q" };
    static const char *const piece[] = { "f32 D[m]", "axis L = 3", "d: C[i, k] += 1", "x", "let" };
    const char *arg = name[test_random(seed) % 9], *text;
    int64_t shape[4], stride[4];
    weft_tensor t = random_tensor(seed, room, shape, stride);
    uint64_t x = test_random(seed), k = x / 64 % 4;

    switch (x % 10) {
    case 0: CHECK((weft_args_new(p[k], &a[k]) == WEFT_OK) == (a[k] != NULL)); break;
    case 1: CHECK(weft_prog_add(p[k], piece[x / 256 % 5]) != WEFT_E_NOMEM); break;
    case 2: CHECK(weft_args_size(a[k], arg, (int64_t)(x / 256 % 6) - 1) <= WEFT_E_ARG); break;
    case 3: CHECK(weft_args_get(a[k], arg, &t) <= WEFT_E_ARG); break;
    case 4: CHECK(weft_args_print(a[k], arg, &text) <= WEFT_E_ARG); break;
    case 5: CHECK(weft_args_read(a[k], arg, test_path("a.mtx")) != WEFT_E_NOMEM); break;
    case 6:
    case 7: CHECK(weft_args_bind(a[k], arg, &t) != WEFT_E_NOMEM); break;
    default: CHECK(weft_run(a[k]) != WEFT_E_NOMEM); break;
    }
}

TEST(random_calls_give_a_status)
{
    static char room[8192];
    uint64_t seed = 3;

    for (int64_t round = test_scale(400); round > 0; round--) {
        weft_prog *p[4] = { NULL };
        weft_args *a[4] = { NULL };

        open_prog(spmm);
        write_text("a.mtx", small_mtx);
        p[0] = prog;
        a[0] = args;
        OK(weft_prog_parse(ctx, NULL, spmm, sizeof spmm - 1, &p[1]));
        OK(weft_args_new(p[1], &a[1]));
        weft_prog_free(p[1]);
        OK(weft_prog_new(ctx, "e()", &p[2]));
        for (int i = 0; i < 100; i++)
            random_call(&seed, p, a, room);
        close_prog();
    }
}
