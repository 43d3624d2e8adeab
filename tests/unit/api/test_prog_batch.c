/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * ir/prune.c, api/grad.c: the program of a batch has an axis of copies where it needs one. */
#include "unit/kernel_bed.h"

static const char *batch_of(const char *text, const char *const *names, int n)
{
    static char out[2048];
    const char *got;
    weft_prog *batch;

    weft_ctx_free(ctx);
    ctx = weft_ctx_new();
    OK(weft_prog_parse(ctx, "p", text, strlen(text), &prog));
    OK(weft_prog_batch(prog, names, n, &batch));
    OK(weft_prog_check(batch));
    OK(weft_prog_print(batch, &got));
    snprintf(out, sizeof out, "%s", got);
    weft_prog_free(batch);
    close_prog();
    return out;
}

static const char weighted[] = "program p(m, n, f)\naxis I = m, E(I) = seg : j < n, K = f\n"
                           "f32 A[E], B[n, K], C[I, K]\nc: C[i, k] += A[e] * B[j(e), k]\n";

TEST(an_input_with_copies_gives_a_result_with_copies)
{
    const char *b[] = { "B" }, *a[] = { "A", "B" };

    CHECK_STR(batch_of(weighted, b, 1),
              "program p(m, n, f, copies)\naxis Copy = copies\naxis I = m, E(I) = seg : j < n\n"
              "axis K = f\nf32 A[E], B[Copy, n, K], C[Copy, I, K]\n"
              "c: C[copy, i, k] += A[e] * B[copy, j(e), k]\n");
    CHECK_HAS(batch_of(weighted, a, 2), "f32 A[Copy, E], B[Copy, n, K], C[Copy, I, K]\n");
    CHECK_HAS(batch_of(weighted, NULL, 0), "c: C[i, k] += A[e] * B[j(e), k]\n");
}

TEST(only_what_depends_on_such_an_input_has_copies)
{
    const char *x[] = { "X" };

    CHECK_HAS(batch_of("program p(n)\naxis I = n\nf32 X[I], Y[I], U[I], V[], W[I]\ntemp f32 T[I]\n"
                       "t: T[i] = X[i] * Y[i]\nu: U[i] = T[i] + 1\nv: V[] += T[i]\nw: W[i] = Y[i]\n",
                       x, 1),
              "f32 X[Copy, I], Y[I], U[Copy, I], V[Copy], W[I]\ntemp f32 T[Copy, I]\n"
              "t: T[copy, i] = X[copy, i] * Y[i]\nu: U[copy, i] = T[copy, i] + 1\n"
              "v: V[copy] += T[copy, i]\nw: W[i] = Y[i]\n");
    CHECK_HAS(batch_of("program p(n)\naxis I = n\nf32 X[I], Y[I], U[I], V[I]\nfor i:\n"
                       "    u: U[i] = X[i]\n    v: V[i] = Y[i]\n", x, 1),
              "V[Copy, I]"); /* statements of a group share their loops */
}

TEST(a_batch_of_a_batch_has_names_that_are_free)
{
    const char *b[] = { "B" };

    CHECK_HAS(batch_of("program p(copies)\naxis I = copies\nf32 B[I], C[I]\nc: C[i] = B[i]\n", b, 1),
              "program p(copies, copies1)\naxis Copy1 = copies1\n");
}

TEST(bad_names_and_built_structures_are_refused)
{
    static const char built[] = "program p(m, n)\naxis I = m, E(I) = seg : j < n, U(I) = built : "
                                "load < n\ni64 Q[E]\nf32 C[I, U]\nu: U(i) |= Q[e]\n"
                                "c: C[i, u] = 1\n";
    const char *c[] = { "C" }, *z[] = { "Z" }, *q[] = { "Q" }, *null[] = { NULL };
    weft_prog *out;

    weft_ctx_free(ctx);
    ctx = weft_ctx_new();
    OK(weft_prog_parse(ctx, "p", weighted, strlen(weighted), &prog));
    BAD(weft_prog_batch(prog, c, 1, &out), WEFT_E_ARG, "C is no input of p that has values");
    BAD(weft_prog_batch(prog, z, 1, &out), WEFT_E_ARG, "Z is no input of p that has values");
    BAD(weft_prog_batch(prog, null, 1, &out), WEFT_E_ARG, "a name is NULL");
    BAD(weft_prog_batch(prog, c, -1, &out), WEFT_E_ARG, "a list of -1 names");
    BAD(weft_prog_batch(prog, NULL, 1, &out), WEFT_E_ARG, "NULL");
    BAD(weft_prog_batch(prog, c, 1, NULL), WEFT_E_ARG, "out is NULL");
    CHECK_EQ(weft_prog_batch(NULL, c, 1, &out), WEFT_E_ARG);
    weft_prog_free(prog);
    OK(weft_prog_parse(ctx, "p", built, strlen(built), &prog));
    BAD(weft_prog_batch(prog, q, 1, &out), WEFT_E_ARG, "would differ from copy to copy");
    close_prog();
}
