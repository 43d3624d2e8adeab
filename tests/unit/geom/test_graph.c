/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * geom/graph.c and api/graph.c: what generators make, and graphs through files. */
#include "unit/api_bed.h"

#include "api/api_int.h"
#include "io/io.h"
#include "unit/trap.h"

#include <math.h>

static const int64_t *start, *col;
static weft_graph g;

/* Makes the graph; its columns ascend in each row. */
static void make(const char *spec)
{
    OK(weft_graph_make(ctx, spec, WEFT_I64, &g));
    start = g.start;
    col = g.col;
    CHECK_EQ(start[0], 0);
    CHECK_EQ(start[g.m], g.nnz);
    for (int64_t i = 0; i < g.m; i++) {
        CHECK(start[i] <= start[i + 1]);
        for (int64_t p = start[i]; p < start[i + 1]; p++)
            CHECK(col[p] >= 0 && col[p] < g.n && (p == start[i] || col[p - 1] < col[p]));
    }
}

static uint64_t digest(void)
{
    return hash_bytes(hash_bytes(0, start, (size_t)(g.m + 1) * 8), col, (size_t)g.nnz * 8);
}

static int64_t most(void)
{
    int64_t d = 0;

    for (int64_t i = 0; i < g.m; i++)
        d = start[i + 1] - start[i] > d ? start[i + 1] - start[i] : d;
    return d;
}

static int64_t empty(void)
{
    int64_t n = 0;

    for (int64_t i = 0; i < g.m; i++)
        n += start[i + 1] == start[i];
    return n;
}

TEST(generators_give_what_was_asked_for)
{
    ctx = weft_ctx_new();
    make("uniform:n=500:nnz=4000");
    CHECK_EQ(g.m, 500);
    CHECK_EQ(g.n, 500);
    CHECK_EQ(g.nnz, 4000);
    make("powerlaw:n=3000:nnz=30000:a=2.1:max=200:seed=3");
    CHECK_EQ(g.nnz, 30000);
    CHECK_EQ(empty(), 0);
    CHECK_EQ(most(), 200);
    make("powerlaw:n=3000:nnz=1000");
    CHECK_EQ(g.nnz, 1000);
    make("rmat:n=1000:nnz=5000");
    CHECK(g.nnz > 2500 && g.nnz <= 5000);
    make("banded:n=100:w=2");
    CHECK_EQ(g.nnz, 500 - 6);
    CHECK_EQ(col[2], 2);
    CHECK_EQ(col[start[99]], 97);
    close_prog();
}

TEST(degrees_of_a_power_law_fall_off)
{
    int64_t large = 0, small = 0;

    ctx = weft_ctx_new();
    make("powerlaw:n=20000:nnz=200000:a=2.5");
    for (int64_t i = 0; i < g.m; i++) {
        int64_t d = start[i + 1] - start[i];

        large += d >= 40;
        small += d >= 10;
    }
    /* P(D >= d) falls as d^-(a - 1): four times the degree, an eighth as often */
    CHECK_NEAR((double)small / (double)large, 8, 1.5);
    close_prog();
}

TEST(the_same_seed_gives_the_same_graph)
{
    static const char *const spec[] = { "uniform:n=300:nnz=2000", "powerlaw:n=300:nnz=2000",
                                        "rmat:n=300:nnz=2000" };
    char other[80];

    ctx = weft_ctx_new();
    for (int i = 0; i < 3; i++) {
        uint64_t first;

        make(spec[i]);
        first = digest();
        make(spec[i]);
        CHECK(digest() == first);
        snprintf(other, sizeof other, "%s:seed=2", spec[i]);
        make(other);
        CHECK(digest() != first);
    }
    /* and on every machine */
    make("uniform:n=4:nnz=6:seed=5");
    CHECK(digest() == UINT64_C(0x592194682f4c4a2d));
    make("rmat:n=6:nnz=12:seed=5");
    CHECK(digest() == UINT64_C(0x526faacbdf812329));
    close_prog();
}

TEST(full_and_empty_graphs_are_made_too)
{
    static const char *const spec[] = {
        "uniform:n=0:nnz=0",   "uniform:n=7:nnz=0",
        "uniform:n=7:nnz=49",  "powerlaw:n=0:nnz=0",
        "powerlaw:n=9:nnz=81", "powerlaw:n=1:nnz=1",
        "powerlaw:n=50:nnz=0", "rmat:n=0:nnz=0",
        "rmat:n=1:nnz=1",      "rmat:n=5:nnz=9:a=0:b=0:c=0",
        "banded:n=0:w=3",      "banded:n=4:w=100",
        "banded:n=4:w=0",
    };

    ctx = weft_ctx_new();
    for (size_t i = 0; i < sizeof spec / sizeof *spec; i++)
        make(spec[i]);
    make("uniform:n=7:nnz=49");
    CHECK_EQ(g.nnz, 49);
    make("banded:n=4:w=100");
    CHECK_EQ(g.nnz, 16);
    close_prog();
}

TEST(a_spec_that_makes_no_sense_is_refused)
{
    static const char *const bad[][2] = {
        { "uniform:n=3", "nnz= is missing" },
        { "uniform:n=3:nnz=10", "do not fit" },
        { "uniform:n=0:nnz=1", "do not fit" },
        { "uniform:n=-1:nnz=1", "n must be an integer" },
        { "uniform:n=1.5:nnz=1", "n must be an integer" },
        { "uniform:n=x:nnz=1", "n must be an integer" },
        { "uniform:n=3:nnz=1:w=2", "w=2 is no parameter" },
        { "uniform:n=3:nnz=1:", " is no parameter" },
        { "uniform:n=3:nnz", "nnz is no parameter" },
        { "powerlaw:n=30:nnz=100:a=1", "a must be a number" },
        { "powerlaw:n=30:nnz=100:max=2", "max must be" },
        { "powerlaw:n=30:nnz=100:max=31", "max must be" },
        { "rmat:n=8:nnz=8:a=0.9:b=0.9", "more than 1" },
        { "smallworld:n=8", "begins with a generator" },
        { "graph.txt", "ends in .mtx or .npz" },
        { "none.mtx", "cannot open" },
    };

    ctx = weft_ctx_new();
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        CHECK(weft_graph_make(ctx, bad[i][0], WEFT_I64, &g) != WEFT_OK);
        CHECK_HAS(weft_message(ctx), bad[i][1]);
    }
    BAD(weft_graph_make(ctx, "uniform:n=1:nnz=1", WEFT_F32, &g), WEFT_E_ARG, "WEFT_I32");
    BAD(weft_graph_make(ctx, NULL, WEFT_I64, &g), WEFT_E_ARG, "NULL");
    BAD(weft_graph_write(ctx, "x.mtx"), WEFT_E_ARG, "no graph");
    close_prog();
}

TEST(a_graph_goes_through_files)
{
    static const char *const name[] = { "g.mtx", "g.npz" };
    uint64_t first;

    ctx = weft_ctx_new();
    for (int i = 0; i < 2; i++) {
        make("rmat:n=200:nnz=900");
        first = digest();
        OK(weft_graph_write(ctx, test_path(name[i])));
        make(test_path(name[i]));
        CHECK(digest() == first);
        CHECK_EQ(g.m, 200);
        CHECK_EQ(g.n, 200);
    }
    BAD(weft_graph_write(ctx, test_path("g.txt")), WEFT_E_ARG, "ends in .mtx or .npz");
    close_prog();
}

/* An array of whole numbers by its name; type IO_F32: floats, ndim 2: a column. */
#define MEMBER(what, kind, rank, ...)                                                             \
    {                                                                                             \
        .name = what, .type = kind, .ndim = rank,                                                 \
        .n = (int64_t)(sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t)), .data = (int64_t[]) \
        {                                                                                         \
            __VA_ARGS__                                                                           \
        }                                                                                         \
    }
#define INTS(what, ...) MEMBER(what, IO_I64, 1, __VA_ARGS__)

static void write_archive(IoArray *array, int n)
{
    Err err = { 0 };
    Arena arena;
    Text out = { .arena = &arena };

    arena_init(&arena, &os_libc, &err);
    for (int i = 0; i < n; i++) {
        int64_t length = array[i].n;

        array[i].dim[0] = length;
        array[i].dim[1] = 1;
        for (int64_t k = 0; k < length && array[i].type == IO_I32; k++)
            ((int32_t *)array[i].data)[k] = (int32_t)((int64_t *)array[i].data)[k];
    }
    CHECK_EQ(CATCH(&err, (io_npz_print(&out, &(IoNpz){ n, array }),
                          file_write(&arena, test_path("a.npz"), out.s, out.n))),
             ST_OK);
    arena_free(&arena);
}

#define ARCHIVE(...)                                     \
    do {                                                 \
        IoArray list[] = { __VA_ARGS__ };                \
        write_archive(list, sizeof list / sizeof *list); \
    } while (0)

static void is_read(int64_t m, int64_t n, int64_t nnz)
{
    make(test_path("a.npz"));
    CHECK_EQ(g.m, m);
    CHECK_EQ(g.n, n);
    CHECK_EQ(g.nnz, nnz);
}

TEST(the_names_of_other_programs_are_understood)
{
    ctx = weft_ctx_new();
    ARCHIVE(INTS("start", 0, 2, 3), INTS("col", 0, 4, 2), INTS("n", 7));
    is_read(2, 7, 3);
    CHECK_EQ(col[1], 4);
    ARCHIVE(INTS("indptr", 0, 2, 3), INTS("indices", 0, 4, 2), INTS("shape", 2, 9));
    is_read(2, 9, 3);
    ARCHIVE(MEMBER("indptr", IO_I32, 1, 0, 2, 3), MEMBER("indices", IO_I32, 1, 1, 0, 2));
    is_read(2, 3, 3); /* columns: the largest there is */
    CHECK_EQ(col[0], 0);
    ARCHIVE(INTS("indptr", 0, 1, 1, 1, 1), INTS("indices", 0), INTS("shape", 3));
    is_read(4, 4, 1); /* and no fewer than rows */
    ARCHIVE(INTS("row", 3, 0, 3), INTS("col", 1, 1, 0));
    is_read(4, 4, 3);
    CHECK_EQ(start[3], 1);
    ARCHIVE(INTS("head", 0, 1), INTS("tail", 5, 0), INTS("n", 6));
    is_read(6, 6, 2);
    ARCHIVE(INTS("row", 1), INTS("head", 0, 1), INTS("tail", 0, 0));
    is_read(2, 2, 2);
    close_prog();
}

static void is_refused(const char *why)
{
    BAD(weft_graph_make(ctx, test_path("a.npz"), WEFT_I64, &g), WEFT_E_BIND, why);
}

TEST(a_file_that_holds_no_graph_is_refused)
{
    ctx = weft_ctx_new();
    ARCHIVE(INTS("start", 0, 2, 3), INTS("values", 0, 4, 2));
    is_refused("has no graph: neither start and col");
    ARCHIVE(MEMBER("start", IO_F64, 1, 0, 2), INTS("col", 0));
    is_refused("start must be integers in one dimension");
    ARCHIVE(INTS("start", 0, 1), MEMBER("col", IO_I64, 2, 0));
    is_refused("col must be integers in one dimension");
    ARCHIVE(INTS("start", 0, 1, 3), INTS("col", 0, 1));
    is_refused("the starts are not those of 2 entries");
    ARCHIVE(INTS("start", 1, 2), INTS("col", 0, 1));
    is_refused("the starts are not those of 2 entries");
    ARCHIVE(INTS("start", 0, 2, 1, 3), INTS("col", 0, 1, 2));
    is_refused("the starts fall at row 1");
    ARCHIVE(INTS("start", 0, 1), INTS("col", 3), INTS("n", 2));
    is_refused("entry 0 is at (0, 3), outside 1 x 2");
    ARCHIVE(INTS("start", 0, 1), INTS("col", -1), INTS("n", 2));
    is_refused("entry 0 is at (0, -1), outside 1 x 2");
    ARCHIVE(INTS("row", -1, 0), INTS("col", 0, 0));
    is_refused("entry 0 is at (-1, 0), outside 1 x 1");
    ARCHIVE(INTS("start", 0, 0), INTS("col", 0), INTS("n", -2));
    is_refused("the starts are not those");
    ARCHIVE(INTS("row", 0), INTS("col", 0), INTS("n", -2));
    is_refused("1 rows and -2 columns");
    ARCHIVE(INTS("row", 0, 1), INTS("col", 0));
    is_refused("row and col differ in length");
    write_text("d.mtx", "%%MatrixMarket matrix array real general\n1 1\n2\n");
    BAD(weft_graph_make(ctx, test_path("d.mtx"), WEFT_I64, &g), WEFT_E_BIND, "is a dense matrix");
    close_prog();
}

TEST(narrow_arrays_hold_the_same)
{
    weft_graph narrow;
    int64_t sum = 0;

    ctx = weft_ctx_new();
    make("uniform:n=50:nnz=300");
    for (int64_t p = 0; p < g.nnz; p++)
        sum += (p + 1) * col[p];
    OK(weft_graph_make(ctx, "uniform:n=50:nnz=300", WEFT_I32, &narrow));
    CHECK_EQ(narrow.type, WEFT_I32);
    for (int64_t p = 0; p < narrow.nnz; p++)
        sum -= (p + 1) * ((const int32_t *)narrow.col)[p];
    CHECK_EQ(sum, 0);
    close_prog();
}

static const char *no_compiler(const Os *os, const char *name)
{
    (void)os;
    return strcmp(name, "WEFT_DISABLE_JIT") == 0 ? "1" : NULL;
}

TEST(a_machine_that_cannot_be_measured_is_guessed)
{
    weft_machine m;
    weft_cost cost;
    int64_t shape[2], dims[] = { 4, 3 };
    double rate;
    static Os os;
    static const char text[] = "program p(m, n, f)\naxis I = m, E(I) = seg : j < n, K = f\n"
                               "f32 A[E], B[n, K], C[m, K]\nc: C[i, k] += A[e] * B[j(e), k]\n";

    os = os_libc;
    os.getenv = no_compiler;
    ctx = api_ctx_new(&os);
    OK(weft_prog_parse(ctx, "p", text, sizeof text - 1, &prog));
    OK(weft_args_new(prog, &args));
    OK(weft_machine_get(ctx, 0, &m));
    CHECK_HAS(weft_warning(ctx), "was not measured");
    CHECK_EQ(m.measured, 0);
    CHECK(m.threads >= 1 && m.cache[0] > 0 && m.cache[2] > m.cache[1]);
    CHECK_HAS(m.text, "weft-machine 4");
    OK(weft_machine_gather(ctx, 512, 1 << 20, 0, &rate));
    CHECK(rate > 0);
    BAD(weft_machine_get(ctx, 0, NULL), WEFT_E_ARG, "out is NULL");

    BAD(weft_args_shape(args, "B", shape), WEFT_E_BIND, "E.start is not bound");
    OK(weft_args_size(args, "n", 5));
    OK(weft_args_size(args, "f", 3));
    OK(weft_args_bind(args, "E.start",
                      &(weft_tensor){ (int64_t[]){ 0, 1, 2, 2 }, WEFT_I64, 1, dims, NULL }));
    OK(weft_args_bind(args, "E.j",
                      &(weft_tensor){ (int64_t[]){ 4, 0 }, WEFT_I64, 1, (int64_t[]){ 2 }, NULL }));
    OK(weft_args_shape(args, "C", shape));
    CHECK_EQ(shape[0], 3);
    CHECK_EQ(shape[1], 3);
    OK(weft_args_shape(args, "A", shape));
    CHECK_EQ(shape[0], 2);
    BAD(weft_args_shape(args, "m", shape), WEFT_E_ARG, "is a size");
    BAD(weft_args_cost(args, 1, &cost), WEFT_E_BIND, "is not bound");
    BAD(weft_args_predict(args, NULL, 1, &rate), WEFT_E_BIND, "is not bound");
    bind("A", (float[]){ 1, 2 }, WEFT_F32, 1, SHAPE(2));
    bind("B", (float[15]){ 0 }, WEFT_F32, 2, SHAPE(5, 3));
    OK(weft_args_cost(args, 0, &cost));
    CHECK_NEAR(cost.flops, 12, 0);
    for (int threads = 0; threads < 2; threads++) {
        OK(weft_args_predict(args, threads == 0 ? NULL : "panel 16; pack 1", threads, &rate));
        CHECK(isfinite(rate) && rate > 0);
    }
    BAD(weft_args_predict(args, "panel x", 1, &rate), WEFT_E_ARG, "panel");
    BAD(weft_args_predict(args, NULL, 1, NULL), WEFT_E_ARG, "seconds is NULL");
    CHECK_EQ(weft_args_predict(NULL, NULL, 1, &rate), WEFT_E_ARG);
    close_prog();
}

TEST(the_shape_of_what_a_run_builds_is_not_known_before)
{
    int64_t shape[2];

    open_prog("program p(n)\naxis I = n, U(I) = built : load < n\nf64 C[I, U]\n"
              "u: for i: U(i) |= i\nc: for i: C[i, i] = 1\n");
    OK(weft_args_size(args, "n", 3));
    BAD(weft_args_shape(args, "C", shape), WEFT_E_ARG, "the shape of C is known after a run only");
    close_prog();
}
