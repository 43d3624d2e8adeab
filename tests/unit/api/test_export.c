/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * api/export.c and emit/: what stands in the text of a program as C. */
#include "unit/api_bed.h"

static const char *source; /* the context's */

static const char *source_of(const char *target)
{
    OK(weft_prog_emit(prog, target, WEFT_SOURCE, &source));
    return source;
}

TEST(a_temporary_is_as_long_as_its_axes)
{
    const char *text;

    open_prog("program a(m, n, f)\n"
              "axis I = m, E(I) = seg : j < n, K = f, T = 3, R(T) = { 2, 0, 3 }, H(E) = 2\n"
              "f32 A[E], B[n, K], C[I, K], D[T]; temp f32 W[E], V[T, R], U[E, H], X[I, R], S[]\n"
              "w: for i, e: W[e] = A[e] * 2\n"
              "v: for t, r: V[t, r] = pos(r)\n"
              "u: for i, e, h: U[e, h] = W[e] + pos(h)\n"
              "x: for i, t, r: X[i, r] = pos(r) + i\n"
              "s: for i: S[] += i\n"
              "c: for i, e, h, k: C[i, k] += U[e, h] * B[j(e), k] + S[]\n"
              "d: for t, r, i: D[t] += V[t, r] * X[i, r]\n");
    text = source_of("c");
    CHECK_HAS(text, "weft_room(a_E_start[n_m], sizeof(float), &fault); /* W */");
    CHECK_HAS(text, "weft_room(INT64_C(5), sizeof(float), &fault); /* V */");
    CHECK_HAS(text, "weft_room(weft_times(a_E_start[n_m], INT64_C(2)), sizeof(float), &fault); /* U */");
    CHECK_HAS(text, "weft_room(weft_times(n_m, INT64_C(5)), sizeof(float), &fault); /* X */");
    CHECK_HAS(text, "weft_room(1, sizeof(float), &fault); /* S */");
    close_prog();
}

/* The table of a layout is made by the text itself. */
TEST(what_a_plan_makes_is_an_argument)
{
    const char *text;

    open_prog("program b(m, n)\naxis I = m, E(I) = seg : j < n, F(I) = seg : j < n\n"
              "f32 A[E], B[F], C[I]; temp f32 W[E, F]\n"
              "w: for i, e, f: W[e, f] = A[e] * B[f]\n"
              "c: for i, e, f: C[i] += W[e, f] * W[e, f]\n");
    BAD(weft_prog_emit(prog, "c", WEFT_SOURCE, &text), WEFT_E_LIMIT,
        "the temporary W has a length that is no product; bind it as an output");
    CHECK(text == NULL);
    BAD(weft_prog_emit(prog, "c", (weft_part)7, &text), WEFT_E_ARG, "no part 7");
    BAD(weft_prog_emit(prog, NULL, WEFT_SOURCE, &text), WEFT_E_ARG, "target is NULL");
    BAD(weft_prog_emit(prog, "c", WEFT_SOURCE, NULL), WEFT_E_ARG, "out is NULL");
    close_prog();
}

static const char *sddmm_of(const char *width)
{
    static char text[300];

    snprintf(text, sizeof text,
             "program s(m, n, f)\naxis I = m, E(I) = seg : j < n, K = %s\n"
             "f32 X[I, K], Y[n, K], S[E]\ns: for i, e, k: S[e] += X[i, k] * Y[j(e), k]\n",
             width);
    return text;
}

#if defined(__x86_64__)
/* The loop of the text of `target` that follows the pragma; NULL: there is none. */
static const char *after_pragma(const char *target)
{
    const char *functions = strstr(source_of(target), "int64_t weft_run_s_phase_0("), *at;

    CHECK(functions != NULL);
    at = strstr(functions, "WEFT_TURNS(");
    return at;
}

TEST(a_loop_of_a_few_known_turns_is_written_out)
{
    const char *at;

    open_prog(sddmm_of("64"));
    at = after_pragma("c:avx512");
    CHECK(at != NULL && strncmp(at, "WEFT_TURNS(2)\n", 14) == 0); /* two registers a turn */
    CHECK(strncmp(at + 14 + strspn(at + 14, " "), "for (; ", 7) == 0);
    at = after_pragma("c:avx2");
    CHECK(at != NULL && strncmp(at, "WEFT_TURNS(4)\n", 14) == 0);
    CHECK(after_pragma("c:sse2") == NULL); /* too many turns */
    open_prog(sddmm_of("f"));
    CHECK(after_pragma("c:avx512") == NULL); /* nobody knows how many */
    open_prog(sddmm_of("32"));
    CHECK(after_pragma("c:avx512") == NULL); /* one turn is no loop */
    /* a loop inside */
    open_prog("program s(m, n)\naxis I = m, E(I) = seg : j < n, K = 64\n"
              "f32 Y[n, K], S[I, K]\ns: for i, e, k: S[i, k] += Y[j(e), k]\n");
    CHECK(after_pragma("c:avx2") == NULL);
    close_prog();
}
#endif

/* A device has no prefetches, and its kernels take nothing that only these need: the end of J. */
TEST(text_of_a_device_has_no_prefetches)
{
    open_prog("program spmm(m, n, f)\n"
              "axis I = m, J(I) = seg : col < n, K = f\n"
              "f32 A[J], B[n, K], C[I, K]\n"
              "c: for i, j, k: C[i, k] += A[j] * B[col(j), k]\n");
    OK(weft_prog_schedule(prog, "prefetch c B at c.j 4"));
    CHECK_HAS(source_of("c"), "__builtin_prefetch(&a_B[");
    CHECK_HAS(source_of("c"), "weft_min_i64(v_j + 4, n_J - 1)");
    CHECK(strstr(source_of("opencl"), "prefetch(") == NULL);
    CHECK(strstr(source_of("opencl"), "v_j + 4") == NULL);
    CHECK(strstr(source_of("opencl"), "the positions of J") == NULL);
    close_prog();
}
