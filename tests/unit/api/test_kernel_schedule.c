/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Kernels under schedules: the same results, whatever the vector registers, the tail of a row and
 * the number of threads; and what a program and a kernel do with a schedule. */
#include "sched/step.h"
#include "unit/kernel_bed.h"

enum { ROWS = 9, COLUMNS = 11, ENTRIES = 39, WIDEST = 70 };

static const int64_t starts[ROWS + 1] = { 0, 0, 1, 3, 6, 10, 15, 22, 30, ENTRIES };

static const char *const caps[] = { "sse2", "avx2", "avx512" };

/* The last three change the order of sums over contiguous elements, of which spmm has none. */
static const char *const schedules[] = { NULL,     "panel 8", "panel 24; pack 1", "ahead 0; tile 3",
                                         "tile 0", "jam 0" };
enum { NSCHEDULES = sizeof schedules / sizeof *schedules };

typedef struct Case { /* arrays of one problem, as doubles and as the kernel has them */
    const char *in1, *in2, *out;
    weft_type type;
    int64_t m, n, nnz, f, shape[3][2];
    int ndim[3];
    int64_t count[3];
    double *value[3];
    void *data[3];
} Case;

static void store(const Case *c, int k, int64_t i, double v)
{
    if (c->type == WEFT_F32)
        ((float *)c->data[k])[i] = (float)v;
    else
        ((double *)c->data[k])[i] = v;
}

static double load(const Case *c, int k, int64_t i)
{
    return c->type == WEFT_F32 ? (double)((float *)c->data[k])[i] : ((double *)c->data[k])[i];
}

static size_t bytes_of(const Case *c, int k)
{
    return (size_t)c->count[k] * (c->type == WEFT_F32 ? 4 : 8);
}

/* exact: eighths, whose sums have no rounding. */
static void fill(Case *c, bool exact)
{
    uint64_t seed = 7;

    for (int k = 0; k < 3; k++) {
        c->count[k] = c->shape[k][0] * (c->ndim[k] == 2 ? c->shape[k][1] : 1);
        c->value[k] = malloc((size_t)c->count[k] * 8 + 8);
        c->data[k] = malloc(bytes_of(c, k) + 8);
        CHECK(c->value[k] != NULL && c->data[k] != NULL);
        store(c, k, c->count[k], -77); /* what no run may touch */
        for (int64_t i = 0; i < c->count[k]; i++) {
            uint64_t r = test_random(&seed);

            c->value[k][i] = exact ? (double)(r % 17) / 8 - 1 : (double)(r % 100003) / 50021 - 1;
            store(c, k, i, c->value[k][i]);
        }
    }
}

static void drop(Case *c)
{
    for (int k = 0; k < 3; k++) {
        free(c->value[k]);
        free(c->data[k]);
    }
}

static Case case_of(bool spmms, weft_type type, int64_t m, int64_t n, int64_t nnz, int64_t f)
{
    Case spmm_case = { .in1 = "A",
                       .in2 = "B",
                       .out = "C",
                       .shape = { { nnz, 0 }, { n, f }, { m, f } },
                       .ndim = { 1, 2, 2 } },
         sddmm_case = { .in1 = "X",
                        .in2 = "Y",
                        .out = "S",
                        .shape = { { m, f }, { n, f }, { nnz, 0 } },
                        .ndim = { 2, 2, 1 } },
         c = spmms ? spmm_case : sddmm_case;

    c.type = type;
    c.m = m;
    c.n = n;
    c.nnz = nnz;
    c.f = f;
    return c;
}

static void bind_case(Case *c, const int64_t *start, int64_t *coord)
{
    bind("J.start", (void *)(uintptr_t)start, WEFT_I64, 1, SHAPE(c->m + 1));
    bind("J.coord", coord, WEFT_I64, 1, SHAPE(c->nnz));
    bind(c->in1, c->data[0], c->type, c->ndim[0], c->shape[0]);
    bind(c->in2, c->data[1], c->type, c->ndim[1], c->shape[1]);
    bind(c->out, c->data[2], c->type, c->ndim[2], c->shape[2]);
}

static void open_case(bool spmms, weft_type type)
{
    char text[300];

    snprintf(text, sizeof text,
             "program p(m, n, f)\naxis I = dense(m), J = compressed(I, n), K = dense(f)\n%s %s\n",
             type == WEFT_F32 ? "f32" : "f64",
             spmms ? "A[I, J], B[n, K], C[I, K]\nc: C[i, k] += A[i, j] * B[j, k]"
                   : "X[I, K], Y[n, K], S[I, J]\ns: S[i, j] += X[i, k] * Y[j, k]");
    open_kernel(text);
}

/* What a plain loop gives, exact. */
static void check_result(const Case *c, bool spmms, const int64_t *start, const int64_t *coord)
{
    for (int64_t i = 0; i < c->m; i++)
        for (int64_t x = spmms ? 0 : start[i]; x < (spmms ? c->f : start[i + 1]); x++) {
            double sum = 0;

            if (spmms)
                for (int64_t j = start[i]; j < start[i + 1]; j++)
                    sum += c->value[0][j] * c->value[1][coord[j] * c->f + x];
            for (int64_t k = 0; !spmms && k < c->f; k++)
                sum += c->value[0][i * c->f + k] * c->value[1][coord[x] * c->f + k];
            CHECK_SAME(load(c, 2, spmms ? i * c->f + x : x), sum);
        }
    for (int k = 0; k < 3; k++)
        CHECK_SAME(load(c, k, c->count[k]), -77);
}

static void check_widths(bool spmms, weft_type type)
{
    int64_t coord[ENTRIES];

    for (int64_t e = 0; e < ENTRIES; e++)
        coord[e] = e * 7 % COLUMNS;
    open_case(spmms, type);
    for (int s = 0; s < NSCHEDULES; s++) {
        OK(weft_kernel_schedule(kernel, schedules[s]));
        for (int64_t f = 1; f <= WIDEST; f++) {
            Case c = case_of(spmms, type, ROWS, COLUMNS, ENTRIES, f);

            fill(&c, true);
            bind_case(&c, starts, coord);
            OK(weft_kernel_run(kernel, args));
            check_result(&c, spmms, starts, coord);
            drop(&c);
        }
    }
    CHECK_STR(info_of(kernel).target, "c");
    close_prog();
}

TEST(every_width_of_a_row_under_every_schedule_and_vector_register)
{
    for (size_t i = 0; i < sizeof caps / sizeof *caps; i++) {
#if defined(__x86_64__)
        setenv("WEFT_MAX_ISA", caps[i], 1);
#endif
        check_widths(true, WEFT_F32);
        check_widths(false, WEFT_F32);
        if (i == 1) {
            check_widths(true, WEFT_F64);
            check_widths(false, WEFT_F64);
        }
    }
    unsetenv("WEFT_MAX_ISA");
}

enum { MANY = 2500, MOST = 40 };

static void check_bits(bool spmms, const char *const *sched, int n)
{
    static const int threads[] = { 1, 2, 3, 7, 16 };
    static int64_t start[MANY + 1], coord[MANY * MOST];
    uint64_t seed = 3;
    Case c;
    void *first;

    for (int64_t i = 0; i < MANY; i++)
        start[i + 1] = start[i] + (int64_t)(test_random(&seed) % MOST);
    for (int64_t e = 0; e < start[MANY]; e++)
        coord[e] = (int64_t)(test_random(&seed) % MANY);
    c = case_of(spmms, WEFT_F32, MANY, MANY, start[MANY], 37);
    fill(&c, false);
    first = malloc(bytes_of(&c, 2));
    CHECK(first != NULL);
    open_case(spmms, WEFT_F32);
    bind_case(&c, start, coord);
    for (int s = 0; s < n; s++)
        for (size_t t = 0; t < sizeof threads / sizeof *threads; t++) {
            OK(weft_ctx_threads(ctx, threads[t]));
            OK(weft_kernel_schedule(kernel, sched[s]));
            memset(c.data[2], 0xa5, bytes_of(&c, 2));
            OK(weft_kernel_run(kernel, args));
            if (s == 0 && t == 0)
                memcpy(first, c.data[2], bytes_of(&c, 2));
            CHECK(memcmp(first, c.data[2], bytes_of(&c, 2)) == 0);
        }
    close_prog();
    drop(&c);
    free(first);
}

TEST(no_schedule_changes_bits_of_a_product_for_any_number_of_threads)
{
    check_bits(true, schedules, NSCHEDULES);
}

TEST(sums_over_lanes_have_the_same_bits_for_any_number_of_threads)
{
    static const char *const kept[] = { NULL, "ahead 0", "panel 16; pack 1" };

    check_bits(false, kept, 3);
}

TEST(a_schedule_may_change_between_runs)
{
    weft_plan plan;

    open_kernel(spmm);
    bind_csr();
    for (int i = 0; i < 2 * NSCHEDULES; i++) {
        OK(weft_kernel_schedule(kernel, schedules[i % NSCHEDULES]));
        OK(weft_kernel_run(kernel, args));
        check_floats("C", product, 6);
        OK(weft_args_plan(args, &plan));
        CHECK_EQ(plan.made, i + 1);
        OK(weft_kernel_run(kernel, args));
        OK(weft_args_plan(args, &plan));
        CHECK_EQ(plan.made, i + 1);
    }
    close_prog();
}

TEST(a_bad_schedule_leaves_the_one_before)
{
    const char *source;

    open_kernel(spmm);
    bind_csr();
    OK(weft_kernel_schedule(kernel, "panel 1; pack 1"));
    BAD(weft_kernel_schedule(kernel, "tiles 8"), WEFT_E_ARG, "`weft list steps` shows them");
    BAD(weft_kernel_schedule(kernel, "tile 8; panel 2097152"), WEFT_E_ARG, "panel takes a number");
    OK(weft_kernel_run(kernel, args));
    OK(weft_kernel_source(kernel, &source));
    CHECK_HAS(source, "a_B_pack");
    check_floats("C", product, 6);
    CHECK_EQ(weft_kernel_schedule(NULL, "tile 8"), WEFT_E_ARG);
    close_prog();
}

TEST(the_schedule_of_a_program_is_that_of_its_text_and_its_kernels)
{
    const char *text;

    set_cache();
    open_prog(spmm);
    BAD(weft_prog_schedule(prog, "tile"), WEFT_E_ARG, "tile takes a number from 0 to 64");
    OK(weft_prog_schedule(prog, "tile 2; panel 1; pack 1"));
    OK(weft_prog_print_after(prog, "panel", &text));
    CHECK_HAS(text, " by 2\n");
    CHECK_HAS(text, "phase B.pack for");
    OK(weft_prog_emit(prog, "c", WEFT_SOURCE, &text));
    CHECK_HAS(text, "a_B_pack");
    compile();
    OK(weft_kernel_source(kernel, &text));
    CHECK_HAS(text, "a_B_pack");
    OK(weft_prog_schedule(prog, NULL));
    OK(weft_prog_print_after(prog, "panel", &text));
    CHECK(strstr(text, "B.pack") == NULL);
    bind_csr();
    OK(weft_kernel_run(kernel, args)); /* whose schedule is its own */
    check_floats("C", product, 6);
    OK(weft_kernel_source(kernel, &text));
    CHECK_HAS(text, "a_B_pack");
    compile();
    OK(weft_kernel_source(kernel, &text));
    CHECK(strstr(text, "a_B_pack") == NULL);
    CHECK_EQ(weft_prog_schedule(NULL, "tile 8"), WEFT_E_ARG);
    close_prog();
}

TEST(steps_are_listed)
{
    const char *note;

    for (int i = 0; i < POLICY_NWORD; i++)
        CHECK_STR(weft_list("steps", i, &note), policy_field[i].name);
    for (int i = 0; step_table[i].name != NULL; i++) {
        CHECK_STR(weft_list("steps", POLICY_NWORD + i, &note), step_table[i].name);
        CHECK_STR(note, step_table[i].note);
        CHECK(strncmp(note, step_table[i].args, strlen(step_table[i].args)) == 0);
    }
    CHECK(weft_list("steps", 1000, &note) == NULL);
}

/* A register would be read from there, and stored to. */
TEST(an_element_that_no_iteration_stores_to_may_be_far_outside)
{
    int64_t start[] = { 0, 0, 0, 0 };
    float e[3] = { 1, 2, 3 };

    open_kernel("program p(m, n, f)\naxis I = dense(m), J = compressed(I, n)\n"
                "f32 A[I, J], E[I, f]\ne: E[i, 9000000000] += A[i, j]\n");
    bind("J.start", start, WEFT_I64, 1, SHAPE(4));
    bind("J.coord", start, WEFT_I64, 1, SHAPE(0));
    bind("A", e, WEFT_F32, 1, SHAPE(0));
    bind("E", e, WEFT_F32, 2, SHAPE(3, 1));
    OK(weft_args_size(args, "n", 1));
    OK(weft_kernel_run(kernel, args));
    for (int i = 0; i < 3; i++)
        CHECK_SAME((double)e[i], 0);
    close_prog();
}
