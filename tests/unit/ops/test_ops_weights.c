/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * ops/weights.c, ops/matrix.c: every operator of pruned weights, experts and sparse results,
 * with each of its options, is a program that checks, lowers and has a gradient.  What they
 * compute is compared with dense products in tests/python/test_weights.py. */
#include "unit/kernel_bed.h"

static void try_spec(const char *spec, bool grad)
{
    weft_prog *d = NULL;
    const char *text;

    OK(weft_prog_op(ctx, spec, &prog));
    OK(weft_prog_check(prog));
    OK(weft_prog_print_after(prog, "flatten", &text));
    if (grad) {
        OK(weft_prog_grad(prog, NULL, &d));
        OK(weft_prog_check(d));
        OK(weft_prog_print_after(d, "flatten", &text));
        weft_prog_free(d);
    }
    weft_prog_free(prog);
}

static void begin(void)
{
    weft_ctx_free(ctx);
    ctx = weft_ctx_new();
}

TEST(pruned_weights_in_every_format_have_a_meaning_and_a_gradient)
{
    static const char *const formats[] = { "csr", "bsr", "dbsr", "sr_bcrs", "n_m" };
    static const char *const types[] = { "f32", "f64", "f16", "bf16" };
    char spec[96];

    begin();
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        for (int k = 0; k < 8; k++) {
            snprintf(spec, sizeof spec, "sparse_linear:%s:%s%s", formats[i], types[k / 2],
                     k & 1 ? ":bias" : "");
            try_spec(spec, true);
        }
    try_spec("sparse_linear:bsr:b=32:c=8:ob=4:ib=2", true);
    try_spec("sparse_linear:n_m:k=1:g=8", true);
    try_spec("sparse_linear:sr_bcrs:b=8:g=3", true);
    close_prog();
}

TEST(groups_of_rows_have_a_meaning_and_a_gradient)
{
    begin();
    try_spec("grouped_mm", true);
    try_spec("grouped_mm:gather:f64", true);
    try_spec("grouped_mm:gates:bf16", true);
    try_spec("grouped_mm:gather:gates:nin=32:nout=48", true);
    close_prog();
}

TEST(sparse_results_come_whole_or_in_two_halves)
{
    static const char *const ops[] = { "spgemm", "sparse_add", "sparse_mul" };
    char spec[64];

    begin();
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        try_spec(ops[i], true);
        snprintf(spec, sizeof spec, "%s:values:f64", ops[i]);
        try_spec(spec, true);
        snprintf(spec, sizeof spec, "%s:structure", ops[i]);
        try_spec(spec, false);
    }
    close_prog();
}

TEST(specs_of_weights_name_what_they_take)
{
    const char *text;

    begin();
    OK(weft_prog_op(ctx, "sparse_linear:bias:bsr:b=32", &prog));
    OK(weft_prog_print(prog, &text));
    CHECK_STR(text, "program sparse_linear_bsr_bias_b_32(tokens, ob, ib)\n"
                    "axis I = ob, E(I) = seg : j < ib\naxis T = tokens\naxis C = 16\naxis R = 32\n"
                    "f32 X[T, ib, C], W[E, C, R], B[ob, R], Y[T, I, R]\n"
                    "y: for i, t, e, c, r: Y[t, i, r] += X[t, j(e), c] * W[e, c, r]\n"
                    "b: for t, x in ob, r: Y[t, x, r] += B[x, r]\n");
    weft_prog_free(prog);
    BAD(weft_prog_op(ctx, "sparse_linear:csr:bsr", &prog), WEFT_E_ARG,
        "the options csr and bsr exclude each other");
    BAD(weft_prog_op(ctx, "sparse_linear:gates", &prog), WEFT_E_ARG,
        "sparse_linear has no option gates; it takes f32 f64 f16 bf16 csr bsr");
    BAD(weft_prog_op(ctx, "sparse_linear:b=32", &prog), WEFT_E_ARG,
        "sparse_linear has no size b; leave out b=32");
    BAD(weft_prog_op(ctx, "grouped_mm:csr", &prog), WEFT_E_ARG, "grouped_mm has no option csr");
    BAD(weft_prog_op(ctx, "spgemm:values:structure", &prog), WEFT_E_ARG,
        "the options values and structure exclude each other");
    close_prog();
}
