/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * find/levels.c: the default schedule of a GPU is text, which gives the same kernels when it is
 * given back; a phase that the user names has the user's lines alone. */
#include "unit/test.h"
#include "weft.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char spmm[] = "program spmm(m, n)\n"
                           "axis I = m, E(I) = seg : j < n\n"
                           "axis K = 32\n"
                           "f32 A[E], B[n, K], C[m, K]\n"
                           "c: C[i, k] += A[e] * B[j(e), k]\n";

static weft_prog *parsed(weft_ctx *ctx)
{
    weft_prog *p = NULL;

    CHECK_EQ(weft_prog_parse(ctx, "spmm", spmm, sizeof spmm - 1, &p), WEFT_OK);
    return p;
}

static char *emitted(weft_prog *p, const char *target, const char *schedule)
{
    const char *text = "";

    CHECK_EQ(weft_prog_schedule(p, schedule), WEFT_OK);
    CHECK_EQ(weft_prog_emit(p, target, WEFT_SOURCE, &text), WEFT_OK);
    return strdup(text);
}

static char *explained(weft_prog *p, const char *target, int plain)
{
    const char *text = "";

    CHECK_EQ(weft_prog_explain_target(p, target, plain, &text), WEFT_OK);
    return strdup(text);
}

TEST(the_default_schedule_is_text_with_reasons)
{
    weft_ctx *ctx = weft_ctx_new();
    weft_prog *p;
    char *text;

    p = parsed(ctx);
    text = explained(p, "cuda:sm_80", 0);
    CHECK(strstr(text, "team c.i 8 ") != NULL);
    CHECK(strstr(text, "# 32 elements are 8 lanes of 4: 4 iterations share a warp") != NULL);
    CHECK(strstr(text, "# By themselves, without a line, decide:") != NULL);
    free(text);
    text = explained(p, "cuda:sm_80", 1);
    CHECK(strstr(text, "wide c.k 4\n") != NULL && strchr(text, '#') == NULL);
    free(text);
    text = explained(p, "opencl", 1); /* whole warps */
    CHECK(strstr(text, "team c.i 32\n") != NULL);
    free(text);
    weft_prog_free(p);
    weft_ctx_free(ctx);
}

TEST(the_default_text_gives_the_default_kernels)
{
    static const char *const target[] = { "cuda:sm_80", "hip:gfx90a", "opencl", "c:warp" };
    weft_ctx *ctx = weft_ctx_new();
    weft_prog *p;

    p = parsed(ctx);
    for (int i = 0; i < 4; i++) {
        char *plain = explained(p, target[i], 1), *first = emitted(p, target[i], NULL);
        char *again = emitted(p, target[i], plain);

        CHECK_STR(again, first);
        CHECK_EQ(weft_prog_schedule(p, NULL), WEFT_OK);
        free(plain);
        free(first);
        free(again);
    }
    weft_prog_free(p);
    weft_ctx_free(ctx);
}

TEST(a_phase_that_is_named_has_these_lines_alone)
{
    weft_ctx *ctx = weft_ctx_new();
    weft_prog *p;
    char *text;

    p = parsed(ctx);
    CHECK_EQ(weft_prog_schedule(p, "team c.i 16"), WEFT_OK);
    text = explained(p, "cuda:sm_80", 1);
    CHECK(strncmp(text, "team c.i 16\n", 12) == 0);
    CHECK(strstr(text, "team c.i 8") == NULL && strstr(text, "c.k") == NULL);
    CHECK(strstr(text, "team C.sum.l 8") != NULL);
    free(text);
    weft_prog_free(p);
    weft_ctx_free(ctx);
}

static void refuses(weft_ctx *ctx, weft_prog *p, const char *target, const char *steps,
                    const char *why)
{
    const char *text;

    CHECK_EQ(weft_prog_schedule(p, steps), WEFT_OK);
    CHECK_EQ(weft_prog_emit(p, target, WEFT_SOURCE, &text), WEFT_E_ARG);
    CHECK(strstr(weft_message(ctx), why) != NULL);
}

TEST(steps_on_the_last_loops_are_refused_with_a_reason)
{
    weft_ctx *ctx = weft_ctx_new();
    weft_prog *p;

    p = parsed(ctx);
    refuses(ctx, p, "cuda:sm_80", "team c.i 24", "2, 4, 8");
    refuses(ctx, p, "cuda:sm_80", "team c.k 8", "no loop of a phase");
    refuses(ctx, p, "cuda:sm_80", "team c.i 8 by 8", "a warp has 32");
    refuses(ctx, p, "cuda:sm_80", "wide c.k 8", "multiple");
    refuses(ctx, p, "cuda:sm_80", "wide c.e 2", "in lanes");
    refuses(ctx, p, "cuda:sm_80", "turns c.k 4", "serial");
    refuses(ctx, p, "cuda:sm_80", "deal c.i", "inside a phase");
    refuses(ctx, p, "opencl", "team c.i 8", "whole warps");
    weft_prog_free(p);
    weft_ctx_free(ctx);
}
