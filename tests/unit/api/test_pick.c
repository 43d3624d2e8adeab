/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * api/pick.c: which schedule the model chooses for a structure, on machines that tests make up. */
#include "unit/api_bed.h"

#include "api/api_int.h"
#include "unit/trap.h"

#include <stdlib.h>

static int64_t *start, *coord;
static bool hot;

/* Of m rows with `each` entries in n columns, far from one another. */
static void open_structure(int64_t m, int64_t n, int64_t each)
{
    start = malloc((size_t)(m + 1) * sizeof *start);
    coord = malloc((size_t)(m * each + 1) * sizeof *coord);
    CHECK(start != NULL && coord != NULL);
    for (int64_t i = 0; i <= m; i++)
        start[i] = i * each;
    for (int64_t p = 0; p < m * each; p++)
        coord[p] = p * 7919 % n;
}

static void close_structure(void)
{
    free(start);
    free(coord);
    arena_free(&ctx->scratch);
    close_prog();
}

/* A table of f floats by n rows, of which `near` bytes come at one rate and all else at another. */
static void set_machine(double near, double far)
{
    static const int64_t cache[] = { 32 << 10, 1 << 20, 4 << 20 };

    cost_machine_default(&ctx->guess, cache, 1);
    for (int r = 0; r < COST_ROWS; r++)
        for (int t = 0; t < COST_TABLES; t++)
            for (int k = 0; k < COST_THREADS; k++)
                ctx->guess.gather[r][t][k] = ctx->guess.table[t] <= cache[2] ? near : far;
    ctx->guessed = true;
}

/* What is picked for the program of the test; each text is a constant or lives in the context. */
static const char *picked(int64_t m, int64_t n, int64_t f, int64_t each)
{
    const Prog *p = prog->body->prog;
    Arena *arena = &ctx->scratch;
    Env *env = ir_env(arena, p);
    const Axis *j = ir_find_axis(p, "J");
    const char *volatile text = NULL;

    env->size[0] = m;
    env->size[1] = n;
    env->size[2] = f;
    env->start[j->id] = (Array){ start, m + 1, T_i64 };
    env->coord[j->id][0] = (Array){ coord, m * each, T_i64 };
    CHECK_EQ(CATCH(&ctx->err, text = api_pick(ctx, p, env, 1, hot)), ST_OK);
    return text;
}

TEST(a_far_table_that_is_read_often_is_packed_into_panels)
{
    enum { M = 4096, N = 8192, F = 1024, EACH = 64 }; /* 32 MiB, each row read 32 times */

    open_prog(spmm);
    open_structure(M, N, EACH);
    set_machine(40, 1);
    CHECK_HAS(picked(M, N, F, EACH), "panel ");
    CHECK_HAS(picked(M, N, F, EACH), "pack 1");
    set_machine(2, 2); /* nothing is gained */
    CHECK(picked(M, N, F, EACH) == NULL);
    set_machine(40, 1);
    CHECK(picked(M, N, 128, EACH) == NULL); /* 4 MiB are near */
    close_structure();
}

/* Code of its own is worth it when a kernel runs for long. */
TEST(rows_that_are_near_are_not_asked_for_by_a_hot_kernel)
{
    enum { M = 4096, N = 512, F = 64, EACH = 16 }; /* 128 KiB */

    open_prog(spmm);
    open_structure(M, N, EACH);
    set_machine(40, 1);
    CHECK(picked(M, N, F, EACH) == NULL);
    hot = true;
    CHECK_HAS(picked(M, N, F, EACH), "ahead 0");
    set_machine(0.1, 0.1); /* waiting is all there is */
    CHECK(picked(M, N, F, EACH) == NULL);
    hot = false;
    close_structure();
}

TEST(a_far_table_that_is_read_a_few_times_is_not_copied)
{
    enum { M = 4096, N = 8192, F = 1024, EACH = 16 };

    open_prog(spmm);
    open_structure(M, N, EACH);
    set_machine(40, 1);
    CHECK(picked(M, N, F, EACH) == NULL);
    close_structure();
}

TEST(what_has_no_single_table_to_pack_is_left_alone)
{
    static const char *const text[] = {
        /* written at places that only the data tell */
        "program p(m, n, f)\naxis I = m, J = compressed(I, n), K = f\n"
        "f32 A[J], B[I, K], C[n, K]\nc: C[j, k] += A[j] * B[i, k]\n",
        /* nothing is gathered */
        "program p(m, n, f)\naxis I = m, J = compressed(I, n), K = f\n"
        "f32 A[J], B[I, K], D[n, K], C[I, K]\nc: C[i, k] += A[j] * B[i, k]\n",
        /* twice */
        "program p(m, n, f)\naxis I = m, J = compressed(I, n), K = f\n"
        "f32 B[n, K], D[n, K], C[I, K]\nc: C[i, k] += B[j, k] * D[j, k]\n",
        /* entries that only a run builds */
        "program p(m, n, f)\naxis I = m, J = compressed(I, n), K = f, U(I) = built : load < n\n"
        "f32 A[J], B[n, K], C[I, K], D[U]\nu: for i: U(i) |= 0\n"
        "c: C[i, k] += A[j] * B[j, k]\nd: for i, u: D[u] = u\n",
    };
    enum { M = 4096, N = 8192, F = 1024, EACH = 64 };

    for (size_t i = 0; i < sizeof text / sizeof *text; i++) {
        open_prog(text[i]);
        open_structure(M, N, EACH);
        set_machine(40, 1);
        CHECK(picked(M, N, F, EACH) == NULL);
        close_structure();
    }
}
