/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * api/hold.c: inputs that are held.  Which phases run again shows in the scratch of a plan: a value
 * that was changed without a word is seen by the phases that run, and by no others. */
#include "unit/kernel_bed.h"

static const char blocks[] = "format J bsr(2, 2)";

static const float old[] = { 8, 11.5f, 0, 0, 1, 0.5f }; /* of the bed's own values */

/* The bed's matrix with its first value doubled. */
static const float doubled[] = { 8, 13, 0, 0, 1, 0.5f };

static void open_held(const char *sched)
{
    set_cache();
    open_prog(spmm);
    if (sched != NULL)
        OK(weft_prog_schedule(prog, sched));
    compile();
    bind_csr();
    csr_value[0] = 1.5f;
    OK(weft_args_hold(args, "A", 1));
    OK(weft_kernel_run(kernel, args));
    check_floats("C", old, 6);
}

static void close_held(void)
{
    csr_value[0] = 1.5f;
    close_prog();
}

static void check_run(const float *want)
{
    OK(weft_kernel_run(kernel, args));
    check_floats("C", want, 6);
}

TEST(what_is_made_of_held_values_is_made_once)
{
    open_held(blocks);
    csr_value[0] = 3;
    check_run(old);
    check_run(old);
    OK(weft_args_changed(args, "A"));
    check_run(doubled);
    check_run(doubled);
    csr_value[0] = 1.5f;
    check_run(doubled);
    bind("A", csr_value, WEFT_F32, 1, SHAPE(4)); /* as good as a word */
    check_run(old);
    close_held();
}

TEST(what_is_not_held_is_read_in_every_run)
{
    static float b[8];

    open_held(blocks);
    memcpy(b, dense_b, sizeof b);
    bind("B", b, WEFT_F32, 2, SHAPE(4, 2));
    check_run(old);
    b[4] = 0; /* row 2 of B was 4 5 */
    check_run((float[]){ 0, 11.5f, 0, 0, 1, 0.5f });
    OK(weft_args_hold(args, "A", 0));
    csr_value[0] = 3;
    check_run((float[]){ 0, 13, 0, 0, 1, 0.5f });
    csr_value[0] = 1.5f;
    check_run((float[]){ 0, 11.5f, 0, 0, 1, 0.5f });
    close_held();
}

/* Without a format no phase is of held values alone. */
TEST(a_kernel_without_temporaries_sees_every_change)
{
    open_held(NULL);
    csr_value[0] = 3;
    check_run(doubled);
    close_held();
}

TEST(a_new_plan_begins_anew)
{
    open_held(blocks);
    csr_value[0] = 3;
    check_run(old);
    OK(weft_kernel_schedule(kernel, "format J ell(2)"));
    check_run(doubled);
    OK(weft_kernel_schedule(kernel, blocks));
    check_run(doubled);
    csr_value[0] = 1.5f;
    check_run(doubled);
    close_held();
}

TEST(arguments_hold_for_themselves)
{
    weft_args *first = NULL, *other = NULL;

    open_held(blocks);
    first = args;
    OK(weft_args_new(prog, &other));
    args = other;
    bind_csr();
    check_run(old);
    csr_value[0] = 3;
    check_run(doubled);
    args = first;
    check_run(old);
    OK(weft_args_changed(args, "A"));
    check_run(doubled);
    weft_args_free(other);
    close_held();
}

/* A view with gaps is copied; of a held one the copy stays. */
TEST(held_views_are_copied_once)
{
    static float apart[] = { 1.5f, 0, 2, 0, -1, 0, 0.5f, 0 };
    weft_tensor t = { apart, WEFT_F32, 1, SHAPE(4), (const int64_t[]){ 2 } };

    open_held(NULL);
    OK(weft_args_bind(args, "A", &t));
    check_run(old);
    apart[0] = 3;
    check_run(old);
    OK(weft_args_changed(args, "A"));
    check_run(doubled);
    OK(weft_args_hold(args, "A", 0));
    apart[0] = 1.5f;
    check_run(old);
    close_held();
}

static void check_chain(float first, float second)
{
    OK(weft_kernel_run(kernel, args));
    check_floats("Z", (float[]){ first, second }, 2);
}

/* S is of X, T of Y and S, Z of Y and T. */
TEST(phases_are_held_with_all_that_they_read)
{
    static float x[] = { 1, 2, 3, 4 }, y[] = { 1, 0, 0, 1 };
    static const char text[] = "program chain(n)\naxis I = n, J = n\nf32 X[I, J], Y[I, J], Z[I]\n"
                               "temp f32 S[I], T[I]\ns: S[i] += X[i, j]\n"
                               "t: T[i] += Y[i, j] * S[j]\nz: Z[i] += Y[i, j] * T[j]\n";

    open_kernel(text);
    bind("X", x, WEFT_F32, 2, SHAPE(2, 2));
    bind("Y", y, WEFT_F32, 2, SHAPE(2, 2));
    OK(weft_args_hold(args, "X", 1));
    check_chain(3, 7);
    x[0] = 0;
    y[0] = 2;
    check_chain(12, 7); /* S is the old one */
    OK(weft_args_hold(args, "Y", 1));
    check_chain(8, 7);
    x[0] = y[0] = 1;
    check_chain(4, 7); /* S and T are */
    OK(weft_args_hold(args, "X", 0));
    check_chain(3, 7);
    x[0] = 0;
    check_chain(2, 7); /* T is of an S that may change */
    x[0] = 1;
    close_prog();
}

TEST(only_inputs_can_be_held)
{
    open_held(blocks);
    BAD(weft_args_hold(args, "C", 1), WEFT_E_ARG, "C is written by the program");
    BAD(weft_args_hold(args, "J.start", 1), WEFT_E_ARG, "J.start is structure");
    BAD(weft_args_hold(args, "m", 1), WEFT_E_ARG, "m is a size");
    BAD(weft_args_hold(args, "D", 1), WEFT_E_ARG, "D");
    BAD(weft_args_changed(args, "B"), WEFT_E_ARG, "B is not held: every run reads it anew");
    BAD(weft_args_changed(args, "C"), WEFT_E_ARG, "C is written");
    CHECK_EQ(weft_args_hold(NULL, "A", 1), WEFT_E_ARG);
    CHECK_EQ(weft_args_changed(NULL, "A"), WEFT_E_ARG);
    check_run(old);
    close_held();
}

/* The same bits on any number of threads, held or not. */
TEST(held_values_change_no_bit)
{
    enum { N = 300, F = 7 };
    static float a[N * 9], b[N * F], c[2][N * F];
    static int32_t start[N + 1], coord[N * 9];
    static const char *const sched[] = { "format J bsr(4, 4)", "format J blocks_rest(8, 1, 3)",
                                         "format J band_rest(1)" };
    uint64_t seed = 1;

    for (int i = 0; i < N; i++) {
        start[i + 1] = start[i];
        for (int j = i - 4 < 0 ? 0 : i - 4; j < N && j <= i + 4; j++) {
            a[start[i + 1]] = (float)(test_random(&seed) % 1000) / 7;
            coord[start[i + 1]++] = j;
        }
    }
    for (int i = 0; i < N * F; i++)
        b[i] = (float)(test_random(&seed) % 1000) / 3;
    open_kernel(spmm);
    bind("J.start", start, WEFT_I32, 1, SHAPE(N + 1));
    bind("J.coord", coord, WEFT_I32, 1, SHAPE(start[N]));
    bind("A", a, WEFT_F32, 1, SHAPE(start[N]));
    bind("B", b, WEFT_F32, 2, SHAPE(N, F));
    for (int s = 0; s < 3; s++)
        for (int threads = 1; threads <= 2; threads++) {
            OK(weft_ctx_threads(ctx, threads));
            OK(weft_kernel_schedule(kernel, sched[s]));
            for (int held = 0; held < 2; held++) {
                bind("C", c[held], WEFT_F32, 2, SHAPE(N, F));
                OK(weft_args_hold(args, "A", held));
                OK(weft_kernel_run(kernel, args));
                memset(c[held], 0, sizeof c[held]);
                OK(weft_kernel_run(kernel, args));
            }
            CHECK(memcmp(c[0], c[1], sizeof c[0]) == 0);
        }
    close_prog();
}
