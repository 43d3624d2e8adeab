/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * api/: kernels without a compiler, wrong calls, C text, the cache, and every allocation and system
 * call of a compile and run made to fail. */
#include "unit/kernel_bed.h"

#include <errno.h>
#include <unistd.h>

static const char outer[] = "program outer(n)\nf64 X[n], Y[n], Z[n, n]\n"
                            "z: for i in n, j in n: Z[i, j] = X[i] * Y[j]\n";

static void check_interpreted(const char *why)
{
    weft_info info;
    const char *text;

    CHECK_HAS(weft_warning(ctx), "is interpreted: ");
    CHECK_HAS(weft_warning(ctx), why);
    info = info_of(kernel);
    CHECK_STR(weft_warning(ctx), ""); /* of the last call only */
    CHECK_STR(info.target, "interp");
    CHECK_HAS(info.why, why);
    CHECK_EQ(info.phases, 0);
    bind_csr();
    OK(weft_kernel_run(kernel, args));
    check_floats("C", product, 6);
    OK(weft_kernel_source(kernel, &text)); /* it is not the text that is missing */
}

TEST(without_a_compiler_a_kernel_interprets_and_says_why)
{
    static const struct {
        const char *name, *value, *why;
    } cases[] = {
        { "WEFT_DISABLE_JIT", "1", "WEFT_DISABLE_JIT" },
        { "WEFT_CC", "no-such-compiler", "no-such-compiler" },
        { "WEFT_CC", "/bin/false", "failed with exit code 1" },
        { "WEFT_CC", "/bin/true", "/bin/true" },
    };
    Inject j;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        open_with(&j, cases[i].name, cases[i].value, spmm);
        OK(weft_cache_clear(ctx, NULL));
        OK(weft_kernel_compile(prog, &kernel));
        check_interpreted(cases[i].why);
        close_inject(&j);
    }
}

TEST(a_kernel_in_the_cache_needs_no_compiler)
{
    Inject j;

    open_kernel(spmm);
    close_prog();
    open_with(&j, "WEFT_CC", "no-such-compiler", spmm);
    compile();
    CHECK_STR(weft_warning(ctx), "");
    CHECK_STR(info_of(kernel).target, "c");
    bind_csr();
    OK(weft_kernel_run(kernel, args));
    check_floats("C", product, 6);
    close_inject(&j);
}

TEST(a_large_problem_is_not_interpreted_unless_one_asks_for_it)
{
    static double x[20000];
    Inject j;

    open_with(&j, "WEFT_DISABLE_JIT", "1", outer);
    compile();
    bind("X", x, WEFT_F64, 1, SHAPE(20000));
    bind("Y", x, WEFT_F64, 1, SHAPE(20000));
    BAD(weft_kernel_run(kernel, args), WEFT_E_LIMIT, "scalar operations, more than 1e+08");
    CHECK_HAS(weft_message(ctx), "WEFT_DISABLE_JIT");
    CHECK_HAS(weft_message(ctx), "weft_run");
    bind("X", x, WEFT_F64, 1, SHAPE(20));
    bind("Y", x, WEFT_F64, 1, SHAPE(20));
    OK(weft_kernel_run(kernel, args));
    OK(weft_run(args));
    close_inject(&j);
}

TEST(a_program_that_is_only_interpreted_makes_a_kernel_too)
{
    static const char square[] = "program square(n) stage loops\nf64 A[n], C[n]\n"
                                 "phase c for i in 0..n\n    C[i] = A[i] * A[i]\n";
    double a[] = { 2, 3, 4 };
    const char *text;
    weft_tensor t;

    open_kernel(square);
    CHECK_HAS(weft_warning(ctx), "square is interpreted: ");
    CHECK_HAS(info_of(kernel).why, "only interpreted");
    bind("A", a, WEFT_F64, 1, SHAPE(3));
    OK(weft_kernel_run(kernel, args));
    OK(weft_args_get(args, "C", &t));
    CHECK(t.shape[0] == 3 && ((double *)t.data)[2] == 16);
    BAD(weft_kernel_source(kernel, &text), WEFT_E_LIMIT, "there is no C text");
    close_prog();
}

TEST(a_variable_that_makes_no_sense_is_an_error)
{
    static const char *const cases[][3] = { { "WEFT_MAX_ISA", "mmx", "WEFT_MAX_ISA is mmx" },
                                            { "WEFT_CACHE_DIR", "cache", "begins with /" },
                                            { "WEFT_DISABLE_JIT", "yes", "set it to 1 or 0" } };
    Inject j;

    for (int i = 0; i < 3; i++) {
        open_with(&j, cases[i][0], cases[i][1], spmm);
        BAD(weft_kernel_compile(prog, &kernel), WEFT_E_ARG, cases[i][2]);
        CHECK(kernel == NULL);
        close_inject(&j);
    }
    open_with(&j, "WEFT_NUM_THREADS", "many", spmm);
    compile();
    bind_csr();
    BAD(weft_kernel_run(kernel, args), WEFT_E_ARG, "WEFT_NUM_THREADS");
    OK(weft_ctx_threads(ctx, 1));
    OK(weft_kernel_run(kernel, args));
    close_inject(&j);
}

TEST(every_vector_width_can_be_asked_for)
{
    Inject j;
    const char *widths[] = { "sse2", "avx2", "avx512" };

    for (int i = 0; i < 3; i++) {
        open_with(&j, "WEFT_MAX_ISA", widths[i], spmm);
        if (weft_kernel_compile(prog, &kernel) == WEFT_E_ARG) {
            close_inject(&j);
            test_skip("not an x86-64 machine");
        }
        bind_csr();
        OK(weft_kernel_run(kernel, args));
        check_floats("C", product, 6);
        if (i == 0)
            CHECK_STR(info_of(kernel).isa, "sse2");
        close_inject(&j);
    }
}

TEST(wrong_calls_are_refused)
{
    static uint64_t blank[64];
    weft_kernel *k = (weft_kernel *)1;
    weft_info info;
    const char *text;
    const weft_entry *entry;
    weft_prog *other;
    weft_args *others;
    int n;

    open_kernel(spmm);
    BAD(weft_kernel_compile(prog, NULL), WEFT_E_ARG, "out is NULL");
    CHECK_EQ(weft_kernel_compile(NULL, &k), WEFT_E_ARG);
    CHECK(k == NULL);
    CHECK_EQ(weft_kernel_compile((weft_prog *)blank, &k), WEFT_E_ARG);
    BAD(weft_kernel_compile((weft_prog *)args, &k), WEFT_E_ARG, "a program expected");
    BAD(weft_kernel_compile((weft_prog *)ctx, &k), WEFT_E_ARG, "a program expected");
    BAD(weft_kernel_compile((weft_prog *)kernel, &k), WEFT_E_ARG, "and a kernel given");
    CHECK_EQ(weft_kernel_run(NULL, args), WEFT_E_ARG);
    CHECK_EQ(weft_kernel_run((weft_kernel *)blank, args), WEFT_E_ARG);
    BAD(weft_kernel_run(kernel, NULL), WEFT_E_ARG, "not of this context");
    BAD(weft_kernel_run(kernel, (weft_args *)prog), WEFT_E_ARG, "arguments expected");
    BAD(weft_kernel_run((weft_kernel *)prog, args), WEFT_E_ARG, "a kernel expected");
    BAD(weft_kernel_run(kernel, args), WEFT_E_BIND, "J.start is not bound");
    OK(weft_prog_parse(ctx, "x", spmm, sizeof spmm - 1, &other));
    OK(weft_args_new(other, &others));
    BAD(weft_kernel_run(kernel, others), WEFT_E_ARG, "another program");
    CHECK_EQ(weft_kernel_info(NULL, &info), WEFT_E_ARG);
    BAD(weft_kernel_info(kernel, NULL), WEFT_E_ARG, "out is NULL");
    BAD(weft_kernel_info((weft_kernel *)args, &info), WEFT_E_ARG, "a kernel expected");
    CHECK_EQ(weft_kernel_source(NULL, &text), WEFT_E_ARG);
    BAD(weft_kernel_source(kernel, NULL), WEFT_E_ARG, "out is NULL");
    BAD(weft_kernel_source((weft_kernel *)ctx, &text), WEFT_E_ARG, "a kernel expected");
    CHECK_EQ(weft_prog_emit(NULL, "c", WEFT_SOURCE, &text), WEFT_E_ARG);
    BAD(weft_prog_emit(prog, NULL, WEFT_SOURCE, &text), WEFT_E_ARG, "the target is NULL");
    BAD(weft_prog_emit(prog, "c", WEFT_SOURCE, NULL), WEFT_E_ARG, "out is NULL");
    BAD(weft_prog_emit(prog, "cude", WEFT_SOURCE, &text), WEFT_E_ARG, "there is no target cude");
    BAD(weft_prog_emit(prog, "c:mmx", WEFT_SOURCE, &text), WEFT_E_ARG, "avx2");
    BAD(weft_prog_emit(prog, "c", (weft_part)7, &text), WEFT_E_ARG, "no part 7");
    CHECK_EQ(weft_cache_dir(NULL, &text), WEFT_E_ARG);
    BAD(weft_cache_dir(ctx, NULL), WEFT_E_ARG, "out is NULL");
    BAD(weft_cache_list(ctx, 0, NULL, &n), WEFT_E_ARG, "out is NULL");
    BAD(weft_cache_list(ctx, 0, &entry, NULL), WEFT_E_ARG, "n is NULL");
    CHECK_EQ(weft_cache_list(NULL, 0, &entry, &n), WEFT_E_ARG);
    CHECK_EQ(weft_cache_clear(NULL, &n), WEFT_E_ARG);
    CHECK_EQ(weft_ctx_threads(NULL, 1), WEFT_E_ARG);
    CHECK_EQ(weft_ctx_executor(NULL, NULL, NULL, 1), WEFT_E_ARG);
    CHECK_EQ(weft_ctx_verbose(NULL, NULL, NULL), WEFT_E_ARG);
    CHECK_STR(weft_warning(NULL), "");
    CHECK_STR(weft_warning((weft_ctx *)prog), "");
    weft_kernel_free(NULL);
    weft_kernel_free((weft_kernel *)prog);
    OK(weft_prog_check(prog));
    close_prog();
}

TEST(a_compiler_is_there_or_the_message_says_what_is_missing)
{
    Inject j;

    CHECK_EQ(weft_ctx_compiler(NULL), WEFT_E_ARG);
    open_inject(&j, "WEFT_CC", "/no/such-compiler");
    BAD(weft_ctx_compiler(ctx), WEFT_E_IO,
        "no C compiler: WEFT_CC is /no/such-compiler, which is not a program; install gcc");
    close_inject(&j);
    open_inject(&j, "WEFT_DISABLE_JIT", "1");
    BAD(weft_ctx_compiler(ctx), WEFT_E_IO, "WEFT_DISABLE_JIT is 1");
    close_inject(&j);
    open_inject(&j, "WEFT_DISABLE_JIT", "0");
    OK(weft_ctx_compiler(ctx));
    close_inject(&j);
}

TEST(the_cache_is_listed_verified_and_cleared)
{
    Inject j;
    const weft_entry *entry;
    const char *dir;
    char path[600];
    int n;
    FILE *f;

    open_with(&j, NULL, NULL, spmm);
    OK(weft_cache_dir(ctx, &dir));
    CHECK_STR(dir, test_path("cache"));
    OK(weft_cache_clear(ctx, NULL));
    OK(weft_cache_list(ctx, 1, &entry, &n));
    CHECK_EQ(n, 0);
    compile();
    OK(weft_cache_list(ctx, 0, &entry, &n));
    CHECK_EQ(n, 1);
    CHECK_STR(entry[0].key, info_of(kernel).key);
    CHECK(entry[0].bytes > 1000 && entry[0].age < 600 && entry[0].fault == NULL);
    OK(weft_cache_list(ctx, 1, &entry, &n));
    CHECK(entry[0].fault == NULL);
    snprintf(path, sizeof path, "%s/%s", dir, entry[0].key);
    f = fopen(path, "r+b");
    CHECK(f != NULL && fseek(f, 500, SEEK_SET) == 0 && fputs("damage", f) >= 0 && fclose(f) == 0);
    OK(weft_cache_list(ctx, 1, &entry, &n));
    CHECK(n == 1 && entry[0].fault != NULL && entry[0].fault[0] != 0);
    OK(weft_cache_clear(ctx, &n));
    CHECK_EQ(n, 1);
    close_inject(&j);
    open_inject(&j, "WEFT_CACHE_DIR", NULL);
    BAD(weft_cache_dir(ctx, &dir), WEFT_E_IO, "there is no cache");
    OK(weft_cache_list(ctx, 0, &entry, &n));
    CHECK_EQ(n, 0);
    close_inject(&j);
}

TEST(the_text_of_a_program_declares_what_it_defines)
{
    const char *text;

    open_kernel(spmm);
    OK(weft_kernel_source(kernel, &text));
    CHECK_HAS(text, "J_start");
    OK(weft_prog_emit(prog, "c:avx2", WEFT_HEADER, &text));
    CHECK_HAS(text, "int64_t weft_run_spmm(\n    int64_t n_m,");
    CHECK_HAS(text, "const float *a_B,\n    float *a_C,\n    const struct weft_plan_spmm *plan);");
    CHECK_HAS(text, "-mavx2 -mfma");
    CHECK_HAS(text, "c: C[i, k] += A[i, j] * B[j, k]");
    OK(weft_prog_emit(prog, "c", WEFT_SOURCE, &text));
    CHECK_HAS(text, "int64_t weft_run_spmm(\n    int64_t n_m,");
    CHECK_HAS(text, "#error");
    close_prog();
}

#define TEMP(axes, slots) "program p(m, n)\n" axes "\nf64 X[m], Y[m], Z[]\ntemp f64 T[" slots "]\n"
#define USE(index) \
    "t: T[" index "] = 1.0\ny: for q in m: Y[q] = X[q]\nz: Z[] += T[" index "]\n"

TEST(temporaries_of_emitted_text_have_the_right_length)
{
    static const char *const cases[][2] = {
        { TEMP("axis I = m", "I") USE("i"), "weft_room(n_m, sizeof(double)" },
        { TEMP("axis I = m", "") USE(""), "weft_room(1, sizeof(double)" },
        { TEMP("axis I = m, J = 2*n + 1", "I, J") USE("i, j"), "weft_room(weft_times(n_m, " },
        { TEMP("axis I = m, J = n / 2", "J") USE("j"),
          "weft_room(weft_div_ck(n_n, INT64_C(2), &fault)" },
        { TEMP("axis I = m, E(I) = seg", "E") USE("e"), "weft_room(a_E_start[n_m], " },
        { TEMP("axis I = m, E(I) = seg, F(E) = one", "F") USE("f"), "weft_room(a_E_start[n_m], " },
        { TEMP("axis I = m, E(I) = seg, F(E) = 2, G(F) = seg", "G") USE("g"),
          "weft_room(a_G_start[weft_times(a_E_start[n_m], INT64_C(2))], " },
        { TEMP("axis I = m, S = 2, V(S) = {1, 3}, U(S) = {4, 2}", "I, S, V, U") USE("i, s, v, u"),
          "weft_room(weft_times(n_m, INT64_C(10)), " },
    };
    const char *text;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        open_prog(cases[i][0]);
        OK(weft_prog_emit(prog, "c:sse2", WEFT_SOURCE, &text));
        CHECK_HAS(text, cases[i][1]);
        close_prog();
    }
}

TEST(names_of_emitted_arguments_differ)
{
    const char *text;

    open_prog("program p(m)\naxis E = m : i < m\nf64 E_i[E], Y[m], Q[m]\n"
              "y: Y[i(e)] += E_i[e]\n");
    OK(weft_prog_emit(prog, "c", WEFT_SOURCE, &text));
    CHECK_HAS(text, "const int64_t *a_E_i,");
    CHECK_HAS(text, "const double *a_E_i_,");
    CHECK_HAS(text, "(void)a_Q;"); /* which no statement reads */
    close_prog();
}

TEST(the_arrays_of_a_matrix_are_told)
{
    static const struct {
        const char *text, *start, *row, *col;
    } cases[] = {
        { "program p(m, n)\nf32 A[m, n]\n", NULL, NULL, NULL },
        { "program p(m, n)\naxis I = m, J = compressed(I, n)\nf32 A[I, J]\n", "J.start", NULL,
          "J.coord" },
        { "program p(m, n)\naxis I = m, E(I) = seg : j < n\nf32 A[E]\n", "E.start", NULL, "E.j" },
        { "program p(k, m, n)\naxis E = k : i < m, j < n\nf32 A[E]\n", NULL, "E.i", "E.j" },
        { "program p(r, m, n)\naxis I = r : load < m, J = compressed(I, n)\nf32 A[J]\n", "J.start",
          "I.coord", "J.coord" },
        { "program p(m, n, w)\naxis I = m, L = ell(I, w, n)\nf32 A[L]\n", NULL, NULL, "L.coord" },
    };
    weft_matrix got;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *want[] = { cases[i].start, cases[i].row, cases[i].col };

        open_prog(cases[i].text);
        OK(weft_prog_matrix(prog, "A", &got));
        for (int k = 0; k < 3; k++) {
            const char *name = k == 0 ? got.start : k == 1 ? got.row : got.col;

            CHECK((name == NULL) == (want[k] == NULL));
            if (name != NULL)
                CHECK_STR(name, want[k]);
        }
        close_prog();
    }
    open_prog(spmm);
    BAD(weft_prog_matrix(prog, "J.start", &got), WEFT_E_BIND, "not a buffer");
    BAD(weft_prog_matrix(prog, "n", &got), WEFT_E_BIND, "not a buffer");
    BAD(weft_prog_matrix(prog, "Q", &got), WEFT_E_ARG, "no argument Q");
    BAD(weft_prog_matrix(prog, "A", NULL), WEFT_E_ARG, "out is NULL");
    BAD(weft_prog_matrix(prog, NULL, &got), WEFT_E_ARG, "NULL");
    CHECK_EQ(weft_prog_matrix(NULL, "A", &got), WEFT_E_ARG);
    close_prog();
}

/* A compile from the cache, two runs and a failure of each kind in turn: right, or a clear status,
 * and right when done again. */
static weft_status steps(void)
{
    weft_tensor t;
    weft_status s = weft_prog_parse(ctx, "p", spmm, sizeof spmm - 1, &prog);

    if (s == WEFT_OK)
        s = weft_args_new(prog, &args);
    if (s == WEFT_OK)
        s = weft_kernel_compile(prog, &kernel);
    for (int i = 0; i < 2 && s == WEFT_OK; i++) {
        bind_csr();
        s = weft_kernel_run(kernel, args);
    }
    if (s == WEFT_OK)
        s = weft_args_get(args, "C", &t);
    if (s == WEFT_OK)
        CHECK(memcmp(t.data, product, sizeof product) == 0);
    return s;
}

static bool try_point(InjectKind kind, int64_t k, bool sticky, int code)
{
    Inject j;
    weft_status s;

    open_inject(&j, NULL, NULL);
    inject_at(&j, kind, j.calls[kind] + k, sticky, code); /* the context is there already */
    s = steps();
    if (s != WEFT_OK) {
        CHECK(j.failed > 0);
        CHECK(s == (kind == INJECT_ALLOC ? WEFT_E_NOMEM : WEFT_E_IO) || s == WEFT_E_IO);
        CHECK(weft_message(ctx)[0] != 0);
    }
    inject_at(&j, INJECT_NONE, 0, false, 0);
    OK(steps());
    close_inject(&j);
    return j.failed > 0;
}

TEST(every_failing_call_gives_the_result_or_a_status)
{
    static const int codes[] = { EIO, EACCES, EMFILE };

    open_kernel(spmm); /* so that it is in the cache */
    close_prog();
    for (int64_t k = 1; try_point(INJECT_ALLOC, k, false, ENOMEM); k++)
        try_point(INJECT_ALLOC, k, true, ENOMEM);
    for (InjectKind kind = INJECT_OPEN; kind < INJECT_KINDS; kind++)
        for (size_t c = 0; c < sizeof codes / sizeof *codes; c++)
            for (int64_t k = 1; k <= 20 && try_point(kind, k, false, codes[c]); k++)
                ;
}
