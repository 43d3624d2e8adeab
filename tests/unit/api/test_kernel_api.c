/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * api/kernel.c, plan.c, launch.c: runs of kernels on the caller's arrays, in place and not, again
 * and again, with what changes between runs and what must not. */
#include "unit/kernel_bed.h"

TEST(a_kernel_gives_what_the_interpreter_gives)
{
    weft_info info;

    open_kernel(spmm);
    bind_csr();
    OK(weft_kernel_run(kernel, args));
    check_floats("C", product, 6);
    OK(weft_run(args));
    check_floats("C", product, 6);
    OK(weft_kernel_run(kernel, args));
    check_floats("C", product, 6);
    info = info_of(kernel);
    CHECK_STR(info.target, "c");
    CHECK_STR(info.why, "");
    CHECK_EQ(strlen(info.key), 64);
    CHECK(info.phases > 0 && info.parallel == info.phases);
    CHECK_STR(weft_warning(ctx), "");
    close_prog();
}

TEST(the_second_compile_of_a_program_finds_the_first)
{
    weft_kernel *again;

    open_kernel(spmm);
    OK(weft_kernel_compile(prog, &again));
    CHECK_STR(info_of(again).how, "memory");
    CHECK_STR(info_of(again).key, info_of(kernel).key);
    open_kernel(spmm);
    CHECK_STR(info_of(kernel).how, "disk");
    close_prog();
}

TEST(a_plain_output_is_written_where_it_is)
{
    float c[6];
    weft_tensor t;

    open_kernel(spmm);
    bind_csr();
    memset(c, 0xff, sizeof c);
    bind("C", c, WEFT_F32, 2, SHAPE(3, 2));
    OK(weft_kernel_run(kernel, args));
    CHECK(memcmp(c, product, sizeof c) == 0);
    OK(weft_args_get(args, "C", &t));
    CHECK(t.data == c);
    close_prog();
}

TEST(an_output_that_is_not_plain_is_written_all_the_same)
{
    float c[64];
    char raw[sizeof c + 1];
    int64_t shape[] = { 3, 2 }, stride[] = { -9, 3 };
    weft_tensor t = { c + 40, WEFT_F32, 2, shape, stride };

    open_kernel(spmm);
    bind_csr();
    for (int i = 0; i < 64; i++)
        c[i] = 99;
    OK(weft_args_bind(args, "C", &t));
    for (int again = 0; again < 2; again++) {
        OK(weft_kernel_run(kernel, args));
        check_floats("C", product, 6);
        for (int i = 0; i < 6; i++)
            CHECK_SAME((double)c[40 - 9 * (i / 2) + 3 * (i % 2)], (double)product[i]);
        CHECK_SAME((double)c[41], 99);
    }
    t = (weft_tensor){ raw + 1, WEFT_F32, 2, shape, NULL }; /* not aligned */
    OK(weft_args_bind(args, "C", &t));
    OK(weft_kernel_run(kernel, args));
    CHECK(memcmp(raw + 1, product, sizeof product) == 0);
    close_prog();
}

TEST(an_input_that_is_not_plain_is_read_in_every_run)
{
    float wide[4][5] = { { 0 } };
    int64_t shape[] = { 4, 2 }, stride[] = { 5, 2 };
    weft_tensor t = { wide, WEFT_F32, 2, shape, stride };

    open_kernel(spmm);
    bind_csr();
    OK(weft_args_bind(args, "B", &t));
    OK(weft_kernel_run(kernel, args));
    check_floats("C", (float[6]){ 0 }, 6);
    for (int i = 0; i < 8; i++)
        wide[i / 2][i % 2 * 2] = dense_b[i];
    OK(weft_kernel_run(kernel, args));
    check_floats("C", product, 6);
    close_prog();
}

TEST(runs_after_the_first_allocate_nothing)
{
    Inject j;
    int64_t before;
    float b[8], c[6];
    weft_tensor t;
    void *first;

    open_with(&j, NULL, NULL, spmm);
    compile();
    bind_csr();
    OK(weft_kernel_run(kernel, args));
    OK(weft_args_get(args, "C", &t));
    first = t.data;
    before = j.calls[INJECT_ALLOC];
    for (int i = 0; i < 3; i++) {
        memcpy(b, dense_b, sizeof b);
        bind("B", i == 1 ? b : dense_b, WEFT_F32, 2, SHAPE(4, 2)); /* the same shape elsewhere */
        OK(weft_kernel_run(kernel, args));
        OK(weft_args_get(args, "C", &t));
        CHECK(t.data == first);
        check_floats("C", product, 6);
    }
    bind_csr();
    OK(weft_kernel_run(kernel, args));
    CHECK_EQ(j.calls[INJECT_ALLOC], before);
    bind("C", c, WEFT_F32, 2, SHAPE(3, 2));
    OK(weft_kernel_run(kernel, args));
    CHECK(memcmp(c, product, sizeof c) == 0);
    close_inject(&j);
}

static const char accumulate[] = "program acc(n)\n"
                                 "f64 X[n]\ninout f64 Y[n]\n"
                                 "y: for i in n: Y[i] += 2 * X[i]\n";

TEST(an_inout_goes_on_from_what_it_holds)
{
    double x[] = { 1, 2, 3 }, y[] = { 10, 20, 30 }, wide[] = { 1, 0, 2, 0, 3 };
    int64_t shape[] = { 3 }, stride[] = { 2 };
    weft_tensor t = { wide, WEFT_F64, 1, shape, stride };

    open_kernel(accumulate);
    bind("X", x, WEFT_F64, 1, SHAPE(3));
    bind("Y", y, WEFT_F64, 1, SHAPE(3));
    OK(weft_kernel_run(kernel, args));
    OK(weft_kernel_run(kernel, args));
    CHECK(y[0] == 14 && y[1] == 28 && y[2] == 42);
    OK(weft_args_bind(args, "Y", &t));
    OK(weft_kernel_run(kernel, args));
    CHECK(wide[0] == 3 && wide[1] == 0 && wide[2] == 6 && wide[4] == 9);
    close_prog();
}

TEST(an_inout_from_a_file_begins_each_run_as_the_file_has_it)
{
    static const char text[] = "program p(m, n)\naxis I = m, J = compressed(I, n)\n"
                               "inout f64 A[I, J]\na: A[i, j] += 1\n";
    double x[] = { 1, 2 };
    weft_tensor t;

    open_kernel(accumulate);
    bind("X", x, WEFT_F64, 1, SHAPE(2));
    OK(weft_args_read(
        args, "Y", write_text("y.mtx", "%%MatrixMarket matrix array real general\n2 1\n5\n6\n")));
    for (int again = 0; again < 2; again++) {
        OK(weft_kernel_run(kernel, args));
        OK(weft_args_get(args, "Y", &t));
        CHECK(((double *)t.data)[0] == 7 && ((double *)t.data)[1] == 10);
    }
    open_kernel(text);
    OK(weft_args_read(args, "A", write_text("a.mtx", small_mtx)));
    for (int again = 0; again < 2; again++) {
        OK(weft_kernel_run(kernel, args));
        OK(weft_args_get(args, "A", &t));
        CHECK(((double *)t.data)[0] == 2.5 && ((double *)t.data)[3] == 1.5);
    }
    OK(weft_args_write(args, "A", test_path("a2.mtx")));
    close_prog();
}

TEST(structure_counts_as_it_was_when_it_was_bound)
{
    int64_t start[] = { 0, 2, 2, 4 };
    int32_t coord[] = { 0, 2, 1, 3 };

    open_kernel(spmm);
    bind_csr();
    bind("J.start", start, WEFT_I64, 1, SHAPE(4));
    bind("J.coord", coord, WEFT_I32, 1, SHAPE(4));
    OK(weft_kernel_run(kernel, args));
    coord[0] = 1000000; /* must not be seen, and must not be followed */
    start[3] = -5;
    OK(weft_kernel_run(kernel, args));
    check_floats("C", product, 6);
    start[3] = 4;
    bind("J.coord", coord, WEFT_I32, 1, SHAPE(4));
    BAD(weft_kernel_run(kernel, args), WEFT_E_BIND, "J.coord is 1000000 at position 0");
    coord[0] = 1;
    bind("J.coord", coord, WEFT_I32, 1, SHAPE(4));
    bind("J.start", start, WEFT_I64, 1, SHAPE(4));
    OK(weft_kernel_run(kernel, args));
    check_floats("C", (float[]){ 1.5f * 2 + 8, 1.5f * 3 + 10, 0, 0, 1, 0.5f }, 6);
    close_prog();
}

TEST(structure_with_strides_is_read_and_compared)
{
    int32_t wide[] = { 0, 9, 2, 9, 1, 9, 3, 9 };
    int64_t shape[] = { 4 }, stride[] = { 2 };
    weft_tensor t = { wide, WEFT_I32, 1, shape, stride };

    open_kernel(spmm);
    bind_csr();
    OK(weft_args_bind(args, "J.coord", &t));
    for (int i = 0; i < 2; i++) {
        OK(weft_kernel_run(kernel, args));
        check_floats("C", product, 6);
        OK(weft_args_bind(args, "J.coord", &t));
    }
    wide[0] = 4;
    BAD(weft_kernel_run(kernel, args), WEFT_E_BIND, "J.coord is 4 at position 0");
    wide[0] = 0;
    OK(weft_kernel_run(kernel, args));
    close_prog();
}

TEST(a_size_that_kernels_do_not_take_is_refused)
{
    open_kernel("program count(n)\ni64 S[]\ns: for i in n: S[] += 1 if loc(i) < 0\n");
    OK(weft_args_size(args, "n", (int64_t)1 << 50));
    BAD(weft_kernel_run(kernel, args), WEFT_E_LIMIT, "kernels take sizes below 2^48");
    OK(weft_args_size(args, "n", 1000));
    OK(weft_kernel_run(kernel, args));
    close_prog();
}

TEST(other_sizes_make_another_plan)
{
    int64_t start[] = { 0, 1, 2 };
    int32_t coord[] = { 1, 0 };
    float a[] = { 2, 3 }, b[] = { 10, 20, 30, 40, 50, 60 };

    open_kernel(spmm);
    bind_csr();
    OK(weft_kernel_run(kernel, args));
    bind("J.start", start, WEFT_I64, 1, SHAPE(3));
    bind("J.coord", coord, WEFT_I32, 1, SHAPE(2));
    bind("A", a, WEFT_F32, 1, SHAPE(2));
    bind("B", b, WEFT_F32, 2, SHAPE(2, 3));
    OK(weft_kernel_run(kernel, args));
    check_floats("C", (float[]){ 80, 100, 120, 30, 60, 90 }, 6);
    bind("B", b, WEFT_F32, 2, SHAPE(3, 2));
    OK(weft_kernel_run(kernel, args));
    check_floats("C", (float[]){ 60, 80, 30, 60 }, 4);
    OK(weft_args_size(args, "n", 4));
    BAD(weft_kernel_run(kernel, args), WEFT_E_BIND, "dimension 0 of B is 3");
    OK(weft_args_size(args, "n", 3));
    OK(weft_kernel_run(kernel, args));
    bind_csr();
    OK(weft_args_size(args, "n", 4));
    OK(weft_kernel_run(kernel, args));
    check_floats("C", product, 6);
    close_prog();
}

TEST(a_matrix_file_is_packed_once_and_can_be_replaced)
{
    open_kernel(spmm);
    bind("B", dense_b, WEFT_F32, 2, SHAPE(4, 2));
    OK(weft_args_read(args, "A", write_text("a.mtx", small_mtx)));
    OK(weft_kernel_run(kernel, args));
    OK(weft_kernel_run(kernel, args));
    check_floats("C", product, 6);
    OK(weft_args_read(args, "A",
                      write_text("b.mtx", "%%MatrixMarket matrix coordinate real general\n"
                                          "3 4 1\n2 2 3\n")));
    OK(weft_kernel_run(kernel, args));
    check_floats("C", (float[]){ 0, 0, 6, 9, 0, 0 }, 6);
    OK(weft_args_write(args, "C", test_path("c.mtx")));
    close_prog();
}

TEST(the_content_of_a_file_goes_with_its_binding)
{
    static const char file[] = "%%MatrixMarket matrix array real general\n2 1\n5\n6\n";
    double y[] = { 0, 0 };
    weft_tensor t;

    open_kernel(accumulate);
    OK(weft_args_read(args, "X", write_text("x.mtx", file)));
    bind("Y", y, WEFT_F64, 1, SHAPE(2));
    for (int i = 0; i < 2; i++) {
        OK(i == 0 ? weft_run(args) : weft_kernel_run(kernel, args));
        OK(weft_args_get(args, "X", &t));
        CHECK(((double *)t.data)[1] == 6);
        OK(weft_args_read(args, "X", test_path("x.mtx")));
        BAD(weft_args_get(args, "X", &t), WEFT_E_ARG, "X");
        OK(weft_args_get(args, "Y", &t));
    }
    close_prog();
}

TEST(an_array_that_overlaps_an_output_is_refused)
{
    float both[14];

    open_kernel(spmm);
    bind_csr();
    OK(weft_kernel_run(kernel, args));
    bind("B", both, WEFT_F32, 2, SHAPE(4, 2));
    bind("C", both + 7, WEFT_F32, 2, SHAPE(3, 2));
    BAD(weft_kernel_run(kernel, args), WEFT_E_BIND, "shares memory");
    BAD(weft_kernel_run(kernel, args), WEFT_E_BIND, "shares memory");
    bind("B", dense_b, WEFT_F32, 2, SHAPE(4, 2));
    OK(weft_kernel_run(kernel, args));
    CHECK(memcmp(both + 7, product, sizeof product) == 0);
    close_prog();
}

TEST(a_fault_is_explained_and_leaves_no_result)
{
    static const char gather[] = "program gather(m, n)\ni64 P[m]\nf32 X[n], Y[m]\n"
                                 "y: for i in m: Y[i] = X[P[i]]\n";
    int64_t p[] = { 1, 0, 2 };
    float x[] = { 5, 6, 7 }, y[3];
    weft_tensor t;

    open_kernel(gather);
    bind("P", p, WEFT_I64, 1, SHAPE(3));
    bind("X", x, WEFT_F32, 1, SHAPE(3));
    bind("Y", y, WEFT_F32, 1, SHAPE(3));
    OK(weft_kernel_run(kernel, args));
    CHECK(y[0] == 6 && y[1] == 5 && y[2] == 7);
    p[2] = 3;
    BAD(weft_kernel_run(kernel, args), WEFT_E_RUN, "y");
    CHECK_HAS(weft_message(ctx), "3");
    BAD(weft_args_get(args, "Y", &t), WEFT_E_ARG, "run the program first");
    p[2] = -1;
    CHECK_EQ(weft_kernel_run(kernel, args), WEFT_E_RUN);
    p[2] = 0;
    OK(weft_kernel_run(kernel, args));
    CHECK(y[2] == 5);
    OK(weft_args_get(args, "Y", &t));
    close_prog();
}

TEST(empty_arrays_are_no_trouble)
{
    int64_t zero[] = { 0 };
    weft_tensor t;

    open_kernel(spmm);
    bind("J.start", zero, WEFT_I64, 1, SHAPE(1));
    bind("J.coord", NULL, WEFT_I64, 1, SHAPE(0));
    bind("A", NULL, WEFT_F32, 1, SHAPE(0));
    bind("B", NULL, WEFT_F32, 2, SHAPE(0, 3));
    bind("C", NULL, WEFT_F32, 2, SHAPE(0, 3));
    OK(weft_kernel_run(kernel, args));
    OK(weft_args_get(args, "C", &t));
    CHECK(t.shape[0] == 0 && t.shape[1] == 3);
    close_prog();
}

TEST(a_kernel_and_its_arguments_outlive_the_program_and_each_other)
{
    weft_kernel *other;

    open_kernel(spmm);
    bind_csr();
    OK(weft_kernel_compile(prog, &other));
    weft_prog_free(prog);
    OK(weft_kernel_run(kernel, args));
    weft_kernel_free(kernel);
    OK(weft_kernel_run(other, args));
    check_floats("C", product, 6);
    weft_args_free(args);
    BAD(weft_kernel_run(kernel, args), WEFT_E_ARG,
        "a kernel expected, and what is given was freed");
    BAD(weft_kernel_run(other, args), WEFT_E_ARG,
        "arguments expected, and what is given was freed");
    close_prog();
}

TEST(a_scatter_runs_over_the_transpose_that_the_plan_makes)
{
    static const char csc[] = "program csc(m, n, f)\naxis J = n, E(J) = seg : i < m, K = f\n"
                              "f32 A[E], B[n, K], C[m, K]\n"
                              "c: C[i(e), k] += A[e] * B[j, k]\n";
    int64_t start[] = { 0, 1, 2, 3, 4 };
    int32_t row[] = { 0, 2, 0, 2 };
    float a[] = { 1.5f, -1, 2, 0.5f };

    open_kernel(csc);
    bind("E.start", start, WEFT_I64, 1, SHAPE(5));
    bind("E.i", row, WEFT_I32, 1, SHAPE(4));
    bind("A", a, WEFT_F32, 1, SHAPE(4));
    bind("B", dense_b, WEFT_F32, 2, SHAPE(4, 2));
    OK(weft_args_size(args, "m", 3));
    OK(weft_kernel_run(kernel, args));
    check_floats("C", product, 6);
    row[3] = 1;
    bind("E.i", row, WEFT_I32, 1, SHAPE(4));
    OK(weft_kernel_run(kernel, args));
    check_floats("C", (float[]){ 8, 11.5f, 3, 3.5f, -2, -3 }, 6);
    close_prog();
}

/* Runs tasks from last to first on the calling thread, and counts. */
static void backwards(void *user, int64_t n, weft_task *task, void *arg)
{
    *(int64_t *)user += n;
    for (int64_t i = n - 1; i >= 0; i--)
        task(arg, i);
}

TEST(the_caller_can_bring_the_threads_or_say_how_many)
{
    enum { N = 100000 };
    static double x[N], y[N];
    int64_t tasks = 0;

    open_kernel("program twice(n)\nf64 X[n], Y[n]\ny: for i in n: Y[i] = 2 * X[i]\n");
    for (int i = 0; i < N; i++)
        x[i] = i;
    bind("X", x, WEFT_F64, 1, SHAPE(N));
    bind("Y", y, WEFT_F64, 1, SHAPE(N));
    OK(weft_ctx_executor(ctx, backwards, &tasks, 5));
    OK(weft_kernel_run(kernel, args));
    CHECK(tasks >= 5 && y[N - 1] == 2 * (N - 1));
    for (int threads = 0; threads < 4; threads++) {
        OK(weft_ctx_threads(ctx, threads));
        memset(y, 0, sizeof y);
        OK(weft_kernel_run(kernel, args));
        CHECK(y[N - 1] == 2 * (N - 1) && y[N / 2] == N);
    }
    tasks = 0;
    OK(weft_ctx_executor(ctx, NULL, NULL, 0));
    OK(weft_kernel_run(kernel, args));
    CHECK_EQ(tasks, 0);
    BAD(weft_ctx_threads(ctx, -1), WEFT_E_ARG, "-1 threads; 0 to 1024");
    BAD(weft_ctx_threads(ctx, 1025), WEFT_E_ARG, "0 to 1024");
    BAD(weft_ctx_executor(ctx, backwards, NULL, 0), WEFT_E_ARG, "1 to 1024");
    BAD(weft_ctx_executor(ctx, backwards, NULL, 2000), WEFT_E_ARG, "1 to 1024");
    OK(weft_kernel_run(kernel, args));
    close_prog();
}

static void keep_line(void *user, const char *line)
{
    char *text = user;
    size_t n = strlen(text);

    snprintf(text + n, 4096 - n, "%s\n", line);
}

TEST(verbose_lines_tell_what_was_done)
{
    char text[4096] = "";

    set_cache();
    open_prog(spmm);
    OK(weft_ctx_verbose(ctx, keep_line, text));
    compile();
    bind_csr();
    OK(weft_kernel_run(kernel, args));
    OK(weft_kernel_run(kernel, args));
    CHECK_HAS(text, "weft,compile,spmm,c,");
    CHECK_HAS(text, info_of(kernel).key);
    CHECK_HAS(text, "c parallel by J.start");
    CHECK_HAS(text, "weft,run,spmm,c,");
    CHECK_HAS(text, ",planned,");
    CHECK_HAS(text, ",kept,");
    CHECK_HAS(text, "m=3 n=4 f=2 threads=");
    OK(weft_ctx_verbose(ctx, NULL, NULL));
    text[0] = 0;
    OK(weft_kernel_run(kernel, args));
    CHECK_STR(text, "");
    close_prog();
}
