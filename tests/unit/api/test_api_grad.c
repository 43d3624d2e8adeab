/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Tests of api/grad.c: the derivative of a program through weft.h. */
#include "unit/api_bed.h"

static weft_prog *derivative(const weft_grad *opt)
{
    weft_prog *out;

    OK(weft_prog_grad(prog, opt, &out));
    return out;
}

static const char *text_of(weft_prog *p)
{
    const char *text;

    OK(weft_prog_print(p, &text));
    return text;
}

TEST(the_gradient_of_spmm_by_a_is_sddmm)
{
    const char *wrt[] = { "A" };
    weft_grad opt = { .wrt = wrt, .nwrt = 1 };
    static float cotangent[] = { 1, 0, 0, 1, 1, 1 };

    open_prog(spmm);
    prog = derivative(&opt);
    CHECK_HAS(text_of(prog), "d(c,A): d_A[i, j] += d_C[i, k] * B[j, k]\n");
    OK(weft_args_new(prog, &args));
    bind("J.start", csr_start, WEFT_I64, 1, SHAPE(4));
    bind("J.coord", csr_coord, WEFT_I32, 1, SHAPE(4));
    bind("B", dense_b, WEFT_F32, 2, SHAPE(4, 2));
    bind("d_C", cotangent, WEFT_F32, 2, SHAPE(3, 2));
    OK(weft_run(args));
    check_floats("d_A", (const float[]){ 0, 4, 5, 13 }, 4);
    close_prog();
}

TEST(a_derivative_is_a_program_like_any_other)
{
    weft_prog *first, *second;

    open_prog(spmm);
    first = derivative(NULL);
    OK(weft_prog_add(first, "f32 S[]\ns: S[] += d_A[i, j] * d_A[i, j]"));
    CHECK_HAS(text_of(first), "s: S[] += d_A[i, j] * d_A[i, j]\n");
    BAD(weft_prog_add(first, "z: Z[i] = 1"), WEFT_E_CHECK, "d_spmm:");
    OK(weft_prog_grad(first, NULL, &second));
    CHECK_HAS(text_of(second), "d2(s,d_A): d2_sum_d_A[i, j] += d2_S[] * 2 * d_A[i, j]\n");
    weft_prog_free(first);
    OK(weft_prog_check(second));
    close_prog();
}

TEST(the_options_of_a_derivative_are_lists_of_names)
{
    const char *wrt[] = { "B", "B" }, *of[] = { "C" }, *save[] = { "C" };
    weft_grad opt = { wrt, of, save, 2, 1, 1, 1 };

    open_prog(spmm);
    CHECK_HAS(text_of(derivative(&opt)), "t(c): t_C[i, k] += t_B[j, k] * A[i, j]\n");
    CHECK_STR(text_of(derivative(NULL)), text_of(derivative(&(weft_grad){ 0 })));
    close_prog();
}

TEST(a_derivative_that_makes_no_sense_is_refused)
{
    static const char twice[] = "program p(n)\nf64 Y[n]\ny: for i in n: Y[i] = 1\n"
                                "z: for i in n: Y[i] += 1\n";
    const char *names[] = { "Z", NULL };
    weft_prog *out = NULL, *freed;
    weft_grad opt = { 0 };

    open_prog(spmm);
    BAD(weft_prog_grad(prog, NULL, NULL), WEFT_E_ARG, "out is NULL");
    opt = (weft_grad){ .nwrt = -1 };
    BAD(weft_prog_grad(prog, &opt, &out), WEFT_E_ARG, "a list of -1 names");
    opt = (weft_grad){ .nof = 2 };
    BAD(weft_prog_grad(prog, &opt, &out), WEFT_E_ARG, "a name of of is NULL");
    opt = (weft_grad){ .save = names, .nsave = 2 };
    BAD(weft_prog_grad(prog, &opt, &out), WEFT_E_ARG, "a name of save is NULL");
    opt = (weft_grad){ .wrt = names, .nwrt = 1 };
    BAD(weft_prog_grad(prog, &opt, &out), WEFT_E_ARG, "wrt: Z is not a buffer of the program");
    CHECK(out == NULL);
    OK(weft_prog_parse(ctx, "bad", twice, strlen(twice), &freed));
    BAD(weft_prog_grad(freed, NULL, &out), WEFT_E_CHECK, "bad:4:");
    weft_prog_free(freed);
    BAD(weft_prog_grad(freed, NULL, &out), WEFT_E_ARG, "freed before");
    CHECK_EQ(weft_prog_grad(NULL, NULL, &out), WEFT_E_ARG);
    BAD(weft_prog_grad((weft_prog *)ctx, NULL, &out), WEFT_E_ARG, "a program expected");
    CHECK(out == NULL);
    close_prog();
}
