/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * api/built.c: kernels that build axes, on any number of threads, again and again, with structure
 * that changes with the values, into the caller's arrays, and beyond what they can do. */
#include "run/run.h"
#include "unit/kernel_bed.h"

#include <errno.h>

static const char square[] =
    "program square(n)\naxis I = n, E(I) = seg : j < n, U(I) = built : load < n\n"
    "f64 A[E], C[I, U]; i64 Z[]\n"
    "sym: for i, e, f in E(j(e)): U(i) |= j(f) if A[e] != 0\n"
    "num: for i, e, f in E(j(e)): C[i, j(f)] += A[e] * A[f] if A[e] != 0\n"
    "z: for: Z[] += size(U)\n";

enum { ROWS = 1500, MOST = 8 };
static int64_t row_start[ROWS + 1], column[ROWS * MOST];
static double value[ROWS * MOST];

/* Rows of all lengths up to MOST, one of them long. */
static int64_t fill_matrix(int64_t most)
{
    uint64_t x = 1;
    int64_t n = 0;

    for (int64_t i = 0; i < ROWS; i++) {
        row_start[i] = n;
        for (int64_t k = 0; k < (i * 7) % (most + 1); k++) {
            x = x * UINT64_C(6364136223846793005) + 1442695040888963407u;
            column[n] = (int64_t)((x >> 33) % ROWS);
            value[n++] = (double)((x >> 20) % 5) - 1;
        }
    }
    row_start[ROWS] = n;
    return n;
}

static void bind_matrix(int64_t n)
{
    bind("E.start", row_start, WEFT_I64, 1, SHAPE(ROWS + 1));
    bind("E.j", column, WEFT_I64, 1, &n);
    bind("A", value, WEFT_F64, 1, &n);
}

typedef struct Product {
    int64_t n, start[ROWS + 1], coord[ROWS * MOST * MOST];
    double c[ROWS * MOST * MOST];
} Product;

static void take(Product *p)
{
    weft_tensor start, coord, c;

    OK(weft_args_get(args, "U.start", &start));
    OK(weft_args_get(args, "U.coord", &coord));
    OK(weft_args_get(args, "C", &c));
    CHECK_EQ(start.shape[0], ROWS + 1);
    CHECK_EQ(coord.shape[0], c.shape[0]);
    CHECK(start.type == WEFT_I64 && coord.type == WEFT_I64);
    memset(p, 0, sizeof *p);
    p->n = c.shape[0];
    CHECK_EQ(p->n, ((int64_t *)start.data)[ROWS]);
    memcpy(p->start, start.data, sizeof p->start);
    memcpy(p->coord, coord.data, (size_t)p->n * sizeof *p->coord);
    memcpy(p->c, c.data, (size_t)p->n * sizeof *p->c);
}

TEST(a_built_axis_is_the_same_for_any_number_of_threads)
{
    static const int threads[] = { 1, 2, 3, 7, 16 };
    static Product want, got;
    int64_t n = fill_matrix(MOST);

    open_kernel(square);
    bind_matrix(n);
    OK(weft_run(args));
    take(&want);
    CHECK(want.n > ROWS);
    close_prog();
    for (int i = 0; i < 5; i++) {
        set_cache();
        open_prog(square);
        OK(weft_ctx_threads(ctx, threads[i]));
        compile();
        CHECK_STR(weft_warning(ctx), "");
        bind_matrix(n);
        for (int again = 0; again < 2; again++) {
            OK(weft_kernel_run(kernel, args));
            take(&got);
            CHECK(memcmp(&got, &want, sizeof want) == 0);
        }
        close_prog();
    }
}

TEST(structure_follows_the_values_and_memory_stays)
{
    static Product want, got;
    static double few[ROWS * MOST];
    int64_t n = fill_matrix(MOST), shape = n;
    weft_tensor a, b;

    for (int64_t i = 0; i < n; i += 3)
        few[i] = value[i];
    open_kernel(square);
    bind_matrix(n);
    OK(weft_kernel_run(kernel, args));
    OK(weft_args_get(args, "C", &a));
    bind("A", few, WEFT_F64, 1, &shape); /* the plan does for this, too */
    OK(weft_kernel_run(kernel, args));
    OK(weft_args_get(args, "C", &b));
    CHECK(b.data == a.data);
    take(&got);
    OK(weft_run(args));
    take(&want);
    CHECK(memcmp(&got, &want, sizeof want) == 0);
    bind("A", value, WEFT_F64, 1, &shape);
    OK(weft_kernel_run(kernel, args));
    take(&got);
    OK(weft_run(args));
    take(&want);
    CHECK(memcmp(&got, &want, sizeof want) == 0);
    fill_matrix(3); /* another structure altogether */
    n = row_start[ROWS];
    bind_matrix(n);
    OK(weft_kernel_run(kernel, args));
    take(&got);
    OK(weft_run(args));
    take(&want);
    CHECK(memcmp(&got, &want, sizeof want) == 0);
    close_prog();
}

TEST(an_empty_matrix_has_an_empty_square)
{
    static Product got;

    memset(row_start, 0, sizeof row_start);
    open_kernel(square);
    bind_matrix(0);
    OK(weft_kernel_run(kernel, args));
    take(&got);
    CHECK_EQ(got.n, 0);
    close_prog();
}

static int64_t start3[] = { 0, 1, 2, 3 }, col3[] = { 1, 2, 0 };
static double val3[] = { 2, 3, 4 };

static void bind_three(void)
{
    bind("E.start", start3, WEFT_I64, 1, SHAPE(4));
    bind("E.j", col3, WEFT_I64, 1, SHAPE(3));
    bind("A", val3, WEFT_F64, 1, SHAPE(3));
}

TEST(arrays_of_the_caller_are_filled_when_their_size_is_right)
{
    int64_t start[4], coord[4] = { 9, 9, 9, 9 };
    double c[4] = { 7, 7, 7, 7 };

    open_kernel(square);
    bind_three();
    bind("U.start", start, WEFT_I64, 1, SHAPE(4));
    bind("U.coord", coord, WEFT_I64, 1, SHAPE(3));
    bind("C", c, WEFT_F64, 1, SHAPE(3));
    OK(weft_kernel_run(kernel, args));
    CHECK(memcmp(start, ((int64_t[]){ 0, 1, 2, 3 }), sizeof start) == 0);
    CHECK(memcmp(coord, ((int64_t[]){ 2, 0, 1, 9 }), sizeof coord) == 0);
    CHECK(memcmp(c, ((double[]){ 6, 12, 8, 7 }), sizeof c) == 0);
    bind("C", c, WEFT_F64, 1, SHAPE(4));
    BAD(weft_kernel_run(kernel, args), WEFT_E_BIND, "dimension 0 of C is 4, but must be 3");
    bind("C", c, WEFT_F64, 1, SHAPE(3));
    OK(weft_kernel_run(kernel, args));
    close_prog();
}

/* Keys of 2^40 and more, so that no thread has a bit for each. */
static const char pairs[] =
    "program pairs(n, len, big)\naxis I = n, K = len, P = built : a < big, b < big\n"
    "axis U(I) = built : load < big * 64\ni64 X[P], Y[U]\n"
    "p: for i, k: P |= ((i * 7919 + k * 104729) % big, (k * 31 + i % 3) % big)\n"
    "u: for i, k: U(i) |= (k / 2 * 7919 * 104729 + i) % (big * 64)\n" /* each twice */
    "x: for p: X[p] = a(p) * 3 + b(p)\n"
    "y: for i, u: Y[u] = pos(u) + u\n";

static void set_sizes(int64_t n, int64_t k, int64_t big)
{
    OK(weft_args_size(args, "n", n));
    OK(weft_args_size(args, "len", k));
    OK(weft_args_size(args, "big", big));
}

static uint64_t digest(void)
{
    static const char *const name[] = { "P.a", "P.b", "U.start", "U.coord", "X", "Y" };
    uint64_t h = 0;

    for (int i = 0; i < 6; i++) {
        weft_tensor t;

        OK(weft_args_get(args, name[i], &t));
        h = hash_bytes(h, t.data, (size_t)t.shape[0] * sizeof(int64_t));
    }
    return h;
}

TEST(keys_of_a_wide_range_are_kept_in_lists)
{
    static const int64_t k[] = { 1, 100, 9000 }; /* the last are more than the first list holds */
    uint64_t got;

    for (int i = 0; i < 3; i++) {
        open_kernel(pairs);
        set_sizes(3, k[i], 1 << 22);
        OK(weft_kernel_run(kernel, args));
        got = digest();
        OK(weft_kernel_run(kernel, args)); /* with the list as it was in the end */
        CHECK(digest() == got);
        OK(weft_run(args));
        CHECK(digest() == got);
        close_prog();
    }
}

/* One built axis below another, and one that nothing is inserted into. */
static const char nested[] =
    "program nested(n, len)\naxis I = n, U(I) = built : load < len, V(U) = built : load < 4\n"
    "axis W(U) = built : load < 4, X(V) = 2\ni64 Y[V], Z[X], N[]\n"
    "u: for i, k in len: U(i) |= k if k % 3 != i % 2\n"
    "v: for i, u, k in 4: V(u) |= (u + k * k) % 4\n"
    "w: for i, u: W(u) |= u % 4 if u < 0\n"
    "y: for i, u, v: Y[v] = 100 * pos(u) + v\n"
    "z: for i, u, v, x: Z[x] = pos(v) * 10 + loc(x)\n"
    "s: for: N[] += size(V) * 1000 + size(U) + size(W)\n";

TEST(a_built_axis_may_stand_on_another)
{
    static const char *const name[] = { "U.start", "U.coord", "V.start", "V.coord",
                                        "W.start", "W.coord", "Y",       "Z" };
    uint64_t digests[2];

    open_kernel(nested);
    CHECK_STR(weft_warning(ctx), "");
    for (int64_t n = 5; n < 60; n += 13) {
        OK(weft_args_size(args, "n", n));
        OK(weft_args_size(args, "len", 70 - n));
        for (int by = 0; by < 3; by++) {
            OK(by < 2 ? weft_kernel_run(kernel, args) : weft_run(args));
            digests[by != 0] = 0;
            for (int i = 0; i < 8; i++) {
                weft_tensor t;

                OK(weft_args_get(args, name[i], &t));
                digests[by != 0] = hash_bytes(digests[by != 0], t.data,
                                              (size_t)(t.shape[0] * (i == 7 ? 2 : 1)) * 8);
            }
            CHECK(by == 0 || digests[1] == digests[0]);
        }
    }
    close_prog();
}

TEST(coordinates_that_no_integer_can_count_are_a_limit)
{
    open_kernel(pairs);
    set_sizes(3, 3, INT64_C(1) << 31);
    BAD(weft_kernel_run(kernel, args), WEFT_E_LIMIT, "axis P: there are 2^62 combinations");
    OK(weft_run(args));
    close_prog();
}

TEST(a_wrong_insertion_is_explained)
{
    open_kernel("program bad(n)\naxis I = n, U(I) = built : load < n - 1\ni64 Y[U]\n"
                "u: for i: U(i) |= i\ny: for i, u: Y[u] = u\n");
    OK(weft_args_size(args, "n", 4));
    BAD(weft_kernel_run(kernel, args), WEFT_E_RUN, "u: i=3: coordinate 3 inserted into U");
    close_prog();
}

TEST(a_built_axis_has_no_text_without_a_library)
{
    const char *text;

    open_kernel(square);
    OK(weft_kernel_source(kernel, &text));
    CHECK_HAS(text, "weft_set_add");
    BAD(weft_prog_emit(prog, "c", WEFT_SOURCE, &text), WEFT_E_LIMIT, "built");
    CHECK(text == NULL);
    close_prog();
}

TEST(every_allocation_of_a_run_that_builds_may_fail)
{
    Inject j;
    int64_t before, n;

    open_with(&j, NULL, NULL, square);
    compile();
    bind_three();
    before = j.calls[INJECT_ALLOC];
    OK(weft_kernel_run(kernel, args));
    n = j.calls[INJECT_ALLOC] - before;
    for (int64_t k = 0; k < n; k++) {
        weft_tensor t;

        OK(weft_args_size(args, "n", 3)); /* so that there is a new plan */
        bind("E.start", start3, WEFT_I64, 1, SHAPE(4));
        inject_at(&j, INJECT_ALLOC, j.calls[INJECT_ALLOC] + 1 + k, false, ENOMEM);
        if (weft_kernel_run(kernel, args) != WEFT_OK)
            CHECK_HAS(weft_message(ctx), "memory");
        inject_at(&j, INJECT_NONE, 0, false, 0);
        OK(weft_kernel_run(kernel, args));
        OK(weft_args_get(args, "C", &t));
        CHECK(t.shape[0] == 3 && ((double *)t.data)[0] == 6);
    }
    close_inject(&j);
}

TEST(sets_have_the_room_that_they_say)
{
    CHECK_EQ(run_set_room(100, 0), 0);
    CHECK(run_set_room(INT64_C(1) << 40, 0) > 0);
    CHECK(run_set_room(INT64_C(1) << 40, 1000) > 2000);
    CHECK_EQ(run_set_bytes(0, 0), 8);
    CHECK_EQ(run_set_bytes(65, 0), 8 * (2 + 1));
    CHECK_EQ(run_set_bytes(64 * 64, 0), 8 * (64 + 1));
    CHECK_EQ(run_set_bytes(64 * 64 + 1, 0), 8 * (65 + 2 + 1));
    CHECK_EQ(run_set_bytes(64 * 64 * 64 * 64, 0), 8 * (64 * 64 * 64 + 64 * 64 + 64 + 1));
    CHECK_EQ(run_set_bytes(1, 10), 168);
    CHECK_EQ(run_set_bytes(1, INT64_MAX / 8), -1);
}
