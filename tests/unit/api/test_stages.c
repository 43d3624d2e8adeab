/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * src/api/pipeline.c, and programs of later stages through weft.h. */
#include "unit/api_bed.h"

static const char *after(weft_prog *p, const char *pass)
{
    const char *text;

    OK(weft_prog_print_after(p, pass, &text));
    return text;
}

TEST(a_program_is_printed_after_each_pass)
{
    const char *pass;

    open_prog(spmm);
    for (int i = 0; (pass = weft_list("passes", i, NULL)) != NULL; i++)
        CHECK_HAS(after(prog, pass), "program spmm(m, n, f)");
    CHECK_HAS(after(prog, "positions"), "            C[i, k] += A[j] * B[J.coord[j], k]\n");
    CHECK_HAS(after(prog, "flatten"), "            C[i * f + k] += A[j] * B[J.coord[j] * f + k]\n");
    close_prog();
}

TEST(the_program_itself_stays_as_it_is)
{
    const char *text;

    open_prog(spmm);
    after(prog, "cse");
    OK(weft_prog_print(prog, &text));
    CHECK_HAS(text, "c: C[i, k] += A[i, j] * B[j, k]\n");
    CHECK(strstr(text, "stage") == NULL);
    close_prog();
}

/* What each pass gives, read again, has the same arguments and the same result. */
TEST(what_a_pass_gives_runs)
{
    const char *pass;

    for (int i = 0; (pass = weft_list("passes", i, NULL)) != NULL; i++) {
        weft_prog *later;
        const char *text;
        int n, m;

        open_prog(spmm);
        text = after(prog, pass);
        OK(weft_prog_parse(ctx, pass, text, strlen(text), &later));
        OK(weft_prog_nargs(prog, &n));
        OK(weft_prog_nargs(later, &m));
        CHECK_EQ(m, n);
        OK(weft_args_new(later, &args));
        bind_csr();
        OK(weft_run(args));
        check_floats("C", product, 6);
        close_prog();
    }
}

TEST(a_tree_that_was_read_is_interpreted_by_a_kernel_too)
{
    weft_prog *later;
    weft_kernel *kernel;
    weft_info info;
    const char *text;

    open_prog(spmm);
    text = after(prog, "flatten");
    OK(weft_prog_parse(ctx, NULL, text, strlen(text), &later));
    OK(weft_kernel_compile(later, &kernel));
    OK(weft_kernel_info(kernel, &info));
    CHECK_STR(info.target, "interp");
    CHECK_HAS(info.why, "spmm is at stage loops, and a tree that is read from text is only");
    OK(weft_args_new(later, &args));
    bind_csr();
    OK(weft_kernel_run(kernel, args));
    check_floats("C", product, 6);
    close_prog();
}

TEST(passes_go_on_from_the_stage_of_the_text)
{
    weft_prog *later;
    const char *text, *all;
    char kept[2000];

    open_prog(spmm);
    all = after(prog, "cse");
    snprintf(kept, sizeof kept, "%s", all);
    text = after(prog, "positions");
    OK(weft_prog_parse(ctx, NULL, text, strlen(text), &later));
    CHECK_STR(after(later, "cse"), kept);
    BAD(weft_prog_print_after(later, "transpose", &text), WEFT_E_ARG,
        "the program is at stage positions already, and transpose needs stage coordinates");
    CHECK(text == NULL);
    close_prog();
}

TEST(a_pass_has_a_name_and_a_program_that_it_can_take)
{
    const char *text;

    open_prog(spmm);
    BAD(weft_prog_print_after(prog, "lunch", &text), WEFT_E_ARG,
        "there is no pass lunch; `weft list passes` shows them");
    BAD(weft_prog_print_after(prog, NULL, &text), WEFT_E_ARG, "the name of the pass");
    BAD(weft_prog_print_after(prog, "flatten", NULL), WEFT_E_ARG, "out");
    CHECK_EQ(weft_prog_print_after(NULL, "flatten", &text), WEFT_E_ARG);
    close_prog();
    open_prog("program u(m)\naxis I = m, E(I) = 2 : a = i + e, b = e, c = e, d = e, f = e, g = e, h "
              "= e, k = e, l = e, n = e, o = e, p = e, q = e, r = e, s = e, t = e unique\n"
              "f64 A[I, E], Y[I]\n"
              "y: Y[i] = A[i, (i, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)]\n");
    BAD(weft_prog_print_after(prog, "flatten", &text), WEFT_E_LIMIT, "is only interpreted");
    close_prog();
}

TEST(a_program_without_meaning_goes_through_no_pass)
{
    const char *text, *wrong = "program p(m)\naxis I = m\nf64 X[I], Y[I]\ny: Y[i] = X[i]\n"
                               "z: Y[i] += 1\n";

    weft_ctx_free(ctx);
    ctx = weft_ctx_new();
    OK(weft_prog_parse(ctx, "t.weft", wrong, strlen(wrong), &prog));
    BAD(weft_prog_print_after(prog, "flatten", &text), WEFT_E_CHECK, "Y is written with += here");
    close_prog();
}

/* The order of a sum decides whether it overflows: what the program wrote is what is checked. */
TEST(sums_of_the_program_keep_their_order)
{
    open_prog("program p(m)\ni64 Y[m]\n"
              "y: for i in m: Y[i] = i + 9223372036854775807 + -9223372036854775807\n");
    CHECK_HAS(after(prog, "flatten"), "check fits(i + 9223372036854775807 + -9223372036854775807)");
    close_prog();
}

/* The sum of the two constants does not fit, which must not be tried for ever. */
TEST(constants_whose_sum_overflows_are_left_apart)
{
    open_prog("program p(m)\nf64 X[m], Y[m]\ny: for i in m: Y[i] = "
              "X[i + 9223372036854775807 + 5 - 9223372036854775807]\n");
    CHECK_HAS(after(prog, "flatten"), "X[i + 9223372036854775807 + 5 - 9223372036854775807]");
    close_prog();
}

TEST(a_tree_has_no_derivative)
{
    weft_prog *later, *d;
    const char *text;

    open_prog(spmm);
    text = after(prog, "flatten");
    OK(weft_prog_parse(ctx, NULL, text, strlen(text), &later));
    BAD(weft_prog_grad(later, NULL, &d), WEFT_E_CHECK, "spmm is at stage loops; the derivative is");
    close_prog();
}
