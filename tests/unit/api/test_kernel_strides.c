/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * lower/storage/arrays.c, lower/storage/flatten.c, api/plan.c, api/view.c: inputs with gaps and
 * inputs that repeat elements are read as they lie, by code for their strides; all else is
 * copied.  Numbers are whole, so that every order of a sum gives the interpreter's bits. */
#include "unit/kernel_bed.h"

enum { ROOM = 1 << 15, MOST_ARRAYS = 4, ROWS = 13, COLS = 11 };

static double room[MOST_ARRAYS][ROOM];
static int64_t start[ROWS + 1], coord[ROWS * COLS];

typedef struct Input {
    const char *name;
    int ndim;
    int64_t shape[3];
} Input;

typedef struct Case {
    const char *text, *out;
    int n;
    Input in[MOST_ARRAYS];
    bool sparse;
} Case;

static const Case cases[] = {
    { "program three(n)\naxis I = n, J = 7, K = 3\nf64 A[I, J], B[I, K], D[I, J, K], C[I, J]\n"
      "C[i, j] += A[i, j] * B[i, k] * D[i, j, k]\n",
      "C", 3,
      { { "A", 2, { ROWS, 7 } }, { "B", 2, { ROWS, 3 } }, { "D", 3, { ROWS, 7, 3 } } }, false },
    { "program sizes(n, m, l)\naxis I = n, J = m, K = l\nf64 A[I, J, K], B[J, K], W[K], C[I, J]\n"
      "C[i, j] += A[i, j, k] * B[j, k] + W[k]\n",
      "C", 3,
      { { "A", 3, { ROWS, 9, 5 } }, { "B", 2, { 9, 5 } }, { "W", 1, { 5 } } }, false },
    { "program sum(n, m)\naxis I = n, J = m\nf64 A[I, J], S[]\nS[] += A[i, j] * A[i, j]\n",
      "S", 1, { { "A", 2, { 50, 40 } } }, false },
    { "program spmm(m, n, w)\naxis I = m, J = compressed(I, n), K = w\n"
      "f64 A[I, J], B[n, K], C[I, K]\nC[i, k] += A[i, j] * B[j, k]\n",
      "C", 1, { { "B", 2, { COLS, 20 } } }, true },
    { "program gather(m, n)\naxis I = m, J = compressed(I, n), K = 24\n"
      "f64 A[I, J], B[n, K], D[I, K], E[I, J]\nE[i, j] += A[i, j] * B[j, k] * D[i, k]\n",
      "E", 2, { { "B", 2, { COLS, 24 } }, { "D", 2, { ROWS, 24 } } }, true },
};

enum { CASES = sizeof cases / sizeof cases[0] };

static int64_t draw(uint64_t *seed, int64_t n)
{
    return (int64_t)(test_random(seed) % (uint64_t)n);
}

static void fill(uint64_t *seed)
{
    for (int i = 0; i < MOST_ARRAYS; i++)
        for (int k = 0; k < ROOM; k++)
            room[i][k] = (double)(draw(seed, 9) - 4);
    for (int i = 0; i < ROWS; i++) {
        start[i + 1] = start[i];
        for (int64_t j = i % 3; j < COLS; j += 1 + draw(seed, 4))
            coord[start[i + 1]++] = j;
    }
}

/* Without gaps, rows apart, repeated, or in any other order, which only a copy has room for. */
static void draw_strides(uint64_t *seed, const Input *in, int64_t *stride)
{
    int64_t kind = draw(seed, 6), step = kind == 5 ? 2 : 1;

    for (int d = in->ndim - 1; d >= 0; d--) {
        bool repeat = kind == 1 || (kind > 1 && draw(seed, 3) == 0);

        stride[d] = repeat ? 0 : step;
        step *= in->shape[d];
        if (kind > 1)
            step += draw(seed, 5);
    }
}

static void bind_sparse(void)
{
    bind("J.start", start, WEFT_I64, 1, SHAPE(ROWS + 1));
    bind("J.coord", coord, WEFT_I64, 1, SHAPE(start[ROWS]));
    bind("A", room[MOST_ARRAYS - 1], WEFT_F64, 1, SHAPE(start[ROWS]));
}

static void bind_inputs(const Case *c, uint64_t *seed)
{
    int64_t stride[3];

    for (int i = 0; i < c->n; i++) {
        weft_tensor t = { room[i], WEFT_F64, c->in[i].ndim, (int64_t *)c->in[i].shape, stride };

        draw_strides(seed, &c->in[i], stride);
        OK(weft_args_bind(args, c->in[i].name, &t));
    }
    if (c->sparse)
        bind_sparse();
}

static void check_runs(const Case *c)
{
    weft_tensor t;
    double *kept;
    int64_t n = 1;

    OK(weft_kernel_run(kernel, args));
    OK(weft_args_get(args, c->out, &t));
    for (int d = 0; d < t.ndim; d++)
        n *= t.shape[d];
    kept = malloc((size_t)n * sizeof *kept);
    memcpy(kept, t.data, (size_t)n * sizeof *kept);
    OK(weft_run(args));
    OK(weft_args_get(args, c->out, &t));
    CHECK(memcmp(kept, t.data, (size_t)n * sizeof *kept) == 0);
    free(kept);
}

TEST(kernels_read_inputs_of_any_stride_as_the_interpreter_does)
{
    for (int i = 0; i < CASES; i++) {
        uint64_t seed = 77 + (uint64_t)i;

        fill(&seed);
        open_kernel(cases[i].text);
        ctx->strided = 1;
        for (int again = 0; again < 12; again++) {
            bind_inputs(&cases[i], &seed);
            check_runs(&cases[i]);
        }
        close_prog();
    }
}

static const char *source(void)
{
    const char *text;

    OK(weft_kernel_source(kernel, &text));
    return text;
}

static void bind_b(double *b, int64_t row, int64_t column)
{
    weft_tensor t = { b, WEFT_F64, 2, SHAPE(COLS, 20), SHAPE(row, column) };

    OK(weft_args_bind(args, "B", &t));
}

TEST(a_row_stride_is_a_size_of_the_kernel)
{
    uint64_t seed = 5;
    int64_t made;
    weft_plan plan;

    fill(&seed);
    open_kernel(cases[3].text);
    ctx->strided = 1;
    bind_sparse();
    bind_b(room[0], 20, 1);
    check_runs(&cases[3]);
    CHECK(strstr(source(), "n_stride") == NULL);
    bind_b(room[0], 33, 1);
    check_runs(&cases[3]);
    CHECK(strstr(source(), "n_stride0_B = weft_size[") != NULL);
    made = kernel->n;
    bind_b(room[0], 47, 1); /* the same code, told another number */
    check_runs(&cases[3]);
    CHECK_EQ(kernel->n, made);
    OK(weft_args_plan(args, &plan));
    made = plan.made;
    bind_b(room[1], 47, 1); /* the same plan for another array */
    check_runs(&cases[3]);
    OK(weft_args_plan(args, &plan));
    CHECK_EQ(plan.made, made);
    bind_b(room[0], 20, 1);
    check_runs(&cases[3]);
    CHECK(strstr(source(), "n_stride") == NULL);
    close_prog();
}

/* Code for each distance of rows would be quicker by some percent, and compiled for each. */
TEST(a_row_stride_is_a_size_for_rows_of_constant_length_too)
{
    static const char text[] = "program p(n)\naxis I = n, K = 20\nf64 B[I, K], Y[I, K]\n"
                               "Y[i, k] = 2 * B[i, k]\n";
    static const Case rows = { .text = text, .out = "Y" };
    uint64_t seed = 5;
    int made;

    fill(&seed);
    open_kernel(text);
    ctx->strided = 1;
    bind_b(room[0], 33, 1);
    check_runs(&rows);
    CHECK(strstr(source(), "n_stride0_B = weft_size[") != NULL);
    made = kernel->n;
    for (int64_t stride = 21; stride < 48; stride += 13) {
        bind_b(room[0], stride, 1);
        check_runs(&rows);
    }
    CHECK_EQ(kernel->n, made);
    close_prog();
}

TEST(an_input_with_gaps_is_not_copied)
{
    uint64_t seed = 6;
    weft_plan packed, strided, copied;

    fill(&seed);
    open_kernel(cases[3].text);
    ctx->strided = 1;
    bind_sparse();
    bind_b(room[0], 20, 1);
    OK(weft_kernel_run(kernel, args));
    OK(weft_args_plan(args, &packed));
    bind_b(room[0], 33, 1);
    OK(weft_kernel_run(kernel, args));
    OK(weft_args_plan(args, &strided));
    CHECK(strided.bytes - packed.bytes < COLS * 20 * 8);
    bind_b(room[0], 66, 2); /* elements that are not side by side */
    check_runs(&cases[3]);
    OK(weft_kernel_run(kernel, args));
    OK(weft_args_plan(args, &copied));
    CHECK(copied.bytes - packed.bytes >= COLS * 20 * 8);
    ctx->strided = 1 << 20; /* too few elements for code of their own */
    bind_b(room[0], 34, 1);
    check_runs(&cases[3]);
    CHECK(strstr(source(), "n_stride") == NULL);
    close_prog();
}

TEST(one_number_that_is_repeated_is_one_load)
{
    uint64_t seed = 8;
    double one = 3;
    weft_tensor t = { &one, WEFT_F64, 2, SHAPE(50, 40), SHAPE(0, 0) };

    fill(&seed);
    open_kernel(cases[2].text);
    ctx->strided = 1;
    OK(weft_args_bind(args, "A", &t));
    check_runs(&cases[2]);
    CHECK(strstr(source(), "A[0]") != NULL);
    one = 4; /* read in every run */
    check_runs(&cases[2]);
    close_prog();
}

/* Reads rows of A at a distance, and elements of A, B and D again and again where bits are set. */
static void run_pattern(int64_t row, int same)
{
    int64_t shape[3][3] = { { ROWS, 7 }, { ROWS, 3 }, { ROWS, 7, 3 } };
    int64_t stride[3][3] = { { row, 1 }, { 3, 1 }, { 21, 3, 1 } };
    static const char *const name[] = { "A", "B", "D" };

    stride[0][0] *= (same & 1) == 0;
    stride[0][1] *= (same & 2) == 0;
    stride[1][0] *= (same & 4) == 0;
    stride[1][1] *= (same & 8) == 0;
    stride[2][0] *= (same & 16) == 0;
    stride[2][1] *= (same & 32) == 0;
    for (int k = 0; k < 3; k++) {
        weft_tensor t = { room[k], WEFT_F64, k == 2 ? 3 : 2, shape[k], stride[k] };

        OK(weft_args_bind(args, name[k], &t));
    }
    check_runs(&cases[0]);
}

TEST(strides_that_always_change_are_one_variant)
{
    uint64_t seed = 9;

    fill(&seed);
    open_kernel(cases[0].text);
    ctx->strided = 1;
    for (int i = 0; i < 40; i++)
        run_pattern(8 + i, 0);
    CHECK_EQ(kernel->n, 2);
    close_prog();
}

TEST(patterns_that_always_change_end_as_copies)
{
    uint64_t seed = 9;
    int most;

    fill(&seed);
    open_kernel(cases[0].text);
    ctx->strided = 1;
    for (int i = 0; i < 40; i++)
        run_pattern(8, i);
    most = kernel->n;
    CHECK(most > 2 && most <= 18);
    close_prog();
}
