/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * api/plan.c, kernel.c: what is worked out once for a structure, kernels for its index types, the
 * same bits on any number of threads, and offsets past 2^31. */
#include "unit/kernel_bed.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const char scatter[] = "program scatter(m, n, f)\n"
                              "axis I = dense(m), J = compressed(I, n), K = dense(f)\n"
                              "f32 A[I, J], B[I, K], C[n, K]\n"
                              "c: C[j, k] += A[i, j] * B[i, k]\n";

static int32_t start_32[] = { 0, 2, 2, 4 };
static int64_t coord_64[] = { 0, 2, 1, 3 };

/* Each way to mix the two types of index. */
static void bind_types(int mix)
{
    bind_csr();
    if (mix & 1)
        bind("J.start", start_32, WEFT_I32, 1, SHAPE(4));
    if (mix & 2)
        bind("J.coord", coord_64, WEFT_I64, 1, SHAPE(4));
}

static void count_compiles(void *user, const char *line)
{
    *(int *)user += strncmp(line, "weft,compile,", 13) == 0;
}

TEST(structure_is_read_in_the_type_it_has)
{
    char keys[4][65];
    const char *text;
    int compiles = 0;

    set_cache();
    open_prog(spmm);
    OK(weft_ctx_verbose(ctx, count_compiles, &compiles));
    compile();
    CHECK_EQ(compiles, 1);
    for (int i = 0; i < 12; i++) {
        int mix = i % 4;

        bind_types(mix);
        OK(weft_kernel_run(kernel, args));
        check_floats("C", product, 6);
        OK(weft_kernel_source(kernel, &text));
        CHECK((strstr(text, "const int32_t *restrict a_J_start") != NULL) == ((mix & 1) != 0));
        CHECK((strstr(text, "const int32_t *restrict a_J_coord") != NULL) == ((mix & 2) == 0));
        if (i < 4)
            memcpy(keys[mix], info_of(kernel).key, sizeof keys[mix]);
        CHECK_STR(info_of(kernel).key, keys[mix]);
        for (int k = 0; k < mix; k++)
            CHECK(strcmp(keys[k], keys[mix]) != 0);
    }
    CHECK_EQ(compiles, 4); /* the first was for i64 alone */
    close_prog();
}

/* C = A * B for rows of length f; whether the code is for this length alone. */
static bool run_rows(int64_t f)
{
    float b[4 * 1100], want[3 * 1100];
    char line[64];
    const char *text;

    for (int64_t k = 0; k < f; k++) {
        for (int64_t j = 0; j < 4; j++)
            b[j * f + k] = (float)(j * 7 + k % 5);
        for (int64_t i = 0; i < 3; i++) {
            want[i * f + k] = 0;
            for (int64_t e = csr_start[i]; e < csr_start[i + 1]; e++)
                want[i * f + k] += csr_value[e] * b[csr_coord[e] * f + k];
        }
    }
    bind_csr();
    bind("B", b, WEFT_F32, 2, SHAPE(4, f));
    OK(weft_kernel_run(kernel, args));
    check_floats("C", want, 3 * f);
    OK(weft_kernel_source(kernel, &text));
    snprintf(line, sizeof line, "n_f = %lld;", (long long)f);
    return strstr(text, line) != NULL;
}

TEST(short_rows_get_code_of_their_own)
{
    int compiles = 0;

    set_cache();
    open_prog(spmm);
    OK(weft_ctx_verbose(ctx, count_compiles, &compiles));
    compile();
    CHECK(!run_rows(1));
    CHECK_EQ(compiles, 2); /* the second reads i32 */
    kernel->busy = COST_HOT;
    for (int again = 0; again < 2; again++)
        for (int f = 1; f <= 12; f++)
            CHECK_EQ(run_rows(f), f <= 8); /* whose sizes always change gets code for all */
    CHECK_EQ(compiles, 1 + 8 + 1);
    CHECK(!run_rows(1100));
    CHECK_EQ(compiles, 1 + 8 + 2); /* for all, of a hot kernel whose rows are near */
    close_prog();
}

/* A compiler that can be taken away. */
static const char *own_compiler(void)
{
    const char *path = write_text("own-cc", "#!/bin/sh\nexec cc \"$@\"\n");

    CHECK_EQ(chmod(path, 0700), 0);
    return path;
}

TEST(without_a_kernel_for_its_types_structure_is_converted)
{
    Inject j;
    int compiles = 0;

    open_with(&j, "WEFT_CC", own_compiler(), spmm);
    OK(weft_cache_clear(ctx, NULL));
    OK(weft_ctx_verbose(ctx, count_compiles, &compiles));
    compile();
    CHECK_EQ(unlink(test_path("own-cc")), 0);
    bind_types(1);
    OK(weft_kernel_run(kernel, args));
    CHECK_HAS(weft_warning(ctx), "spmm runs by a more general kernel: ");
    check_floats("C", product, 6);
    CHECK_STR(info_of(kernel).target, "c");
    start_32[1] = 1; /* a new plan does not try again */
    bind_types(1);
    OK(weft_kernel_run(kernel, args));
    CHECK_STR(weft_warning(ctx), "");
    check_floats("C", (float[]){ 0, 1.5f, 8, 10, 1, 0.5f }, 6);
    CHECK_EQ(compiles, 2);
    start_32[1] = 2;
    close_inject(&j);
}

static weft_plan plan_of(weft_args *a)
{
    weft_plan p;

    OK(weft_args_plan(a, &p));
    return p;
}

TEST(a_plan_is_made_for_new_structure_only_and_told_of)
{
    int32_t start[] = { 0, 2, 2, 4 }, coord[] = { 0, 2, 1, 3 };
    weft_plan p;

    open_kernel(scatter);
    BAD(weft_args_plan(args, &p), WEFT_E_ARG, "there is no plan");
    bind("J.start", start, WEFT_I32, 1, SHAPE(4));
    bind("J.coord", coord, WEFT_I32, 1, SHAPE(4));
    bind("A", csr_value, WEFT_F32, 1, SHAPE(4));
    bind("B", dense_b, WEFT_F32, 2, SHAPE(3, 2));
    OK(weft_args_size(args, "n", 4));
    OK(weft_kernel_plan(kernel, args));
    p = plan_of(args);
    CHECK(p.made == 1 && p.transposes == 1 && p.bytes > 0);
    CHECK(p.ms >= p.transpose_ms && p.transpose_ms >= 0);
    OK(weft_kernel_run(kernel, args));
    CHECK_EQ(plan_of(args).made, 1);
    check_floats("C", (float[]){ 0, 1.5f, -4, -5, 0, 2, 2, 2.5f }, 8);
    bind("J.start", start_32, WEFT_I32, 1, SHAPE(4)); /* the same in another place */
    OK(weft_kernel_run(kernel, args));
    CHECK_EQ(plan_of(args).made, 1);
    coord[2] = 2;
    bind("J.coord", coord, WEFT_I32, 1, SHAPE(4));
    OK(weft_kernel_run(kernel, args));
    CHECK_EQ(plan_of(args).made, 2);
    check_floats("C", (float[]){ 0, 1.5f, 0, 0, -4, -3, 2, 2.5f }, 8);
    close_prog();
    open_kernel(spmm);
    bind_csr();
    OK(weft_kernel_run(kernel, args));
    CHECK_EQ(plan_of(args).transposes, 0);
    BAD(weft_args_plan(args, NULL), WEFT_E_ARG, "out");
    close_prog();
}

TEST(no_entries_are_the_same_as_no_entries)
{
    int64_t none[4] = { 0 };

    open_kernel(spmm);
    for (int run = 0; run < 2; run++) {
        bind("J.start", none, WEFT_I64, 1, SHAPE(4));
        bind("J.coord", NULL, WEFT_I32, 1, SHAPE(0));
        bind("A", NULL, WEFT_F32, 1, SHAPE(0));
        bind("B", dense_b, WEFT_F32, 2, SHAPE(4, 2));
        OK(weft_kernel_run(kernel, args));
        check_floats("C", (float[6]){ 0 }, 6);
        CHECK_EQ(plan_of(args).made, 1);
    }
    close_prog();
}

TEST(a_fault_in_structure_is_told_as_the_interpreter_tells_it)
{
    static const struct {
        int32_t start[4], coord[4];
    } bad[] = { { { 0, 2, 2, 4 }, { 0, 2, 1, 4 } },  { { 0, 2, 2, 4 }, { 0, 2, -1, 3 } },
                { { 0, 3, 2, 4 }, { 0, 2, 1, 3 } },  { { 1, 2, 2, 4 }, { 0, 2, 1, 3 } },
                { { 0, 2, 2, 4 }, { 2, 0, 1, 3 } },  { { 0, 2, 2, 4 }, { 0, 2, 1, 1 } },
                { { 0, 2, 2, -4 }, { 0, 2, 1, 3 } }, { { 0, 2, 2, 3 }, { 0, 2, 1, 3 } },
                { { -1, 2, 2, 4 }, { 0, 2, 1, 3 } } };
    char message[1024];

    open_kernel("program spmm(m, n, f)\n"
                "axis I = dense(m), J = compressed(I, n) sorted unique, K = dense(f)\n"
                "f32 A[I, J], B[n, K], C[I, K]\nc: C[i, k] += A[i, j] * B[j, k]\n");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        bind_csr();
        bind("J.start", (void *)bad[i].start, WEFT_I32, 1, SHAPE(4));
        bind("J.coord", (void *)bad[i].coord, WEFT_I32, 1, SHAPE(4));
        CHECK_EQ(weft_run(args), WEFT_E_BIND);
        snprintf(message, sizeof message, "%s", weft_message(ctx));
        CHECK_EQ(weft_kernel_run(kernel, args), WEFT_E_BIND);
        CHECK_STR(weft_message(ctx), message);
    }
    bind_csr();
    OK(weft_kernel_run(kernel, args));
    check_floats("C", product, 6);
    close_prog();
}

/* A graph with empty rows, a row that has every value, duplicates, nothing in order. */
enum { NODES = 3000, WIDTH = 5, HUB = 1700 };

typedef struct Graph {
    int32_t *start, *coord;
    int64_t *wide_start, *wide_coord;
    float *value, *x, *y;
    int64_t n;
} Graph;

static float number(uint64_t *seed)
{
    return (float)(test_random(seed) % 2000001) / 1000000 - 1;
}

static void open_graph(Graph *g)
{
    uint64_t seed = 11;

    g->start = malloc((NODES + 1) * sizeof *g->start);
    g->wide_start = malloc((NODES + 1) * sizeof *g->wide_start);
    g->n = 0;
    for (int i = 0; i < NODES; i++) {
        g->start[i] = (int32_t)g->n;
        g->n += i == HUB ? 20 * NODES : i % 3 == 0 ? 0 : (int64_t)(test_random(&seed) % 30);
    }
    g->start[NODES] = (int32_t)g->n;
    g->coord = malloc((size_t)g->n * sizeof *g->coord);
    g->wide_coord = malloc((size_t)g->n * sizeof *g->wide_coord);
    g->value = malloc((size_t)g->n * sizeof *g->value);
    for (int64_t e = 0; e < g->n; e++) {
        bool hub = e >= g->start[HUB] && e < g->start[HUB] + NODES;

        g->coord[e] = hub ? (int32_t)(e - g->start[HUB])
                          : (int32_t)(test_random(&seed) % (test_random(&seed) % NODES + 1));
        g->wide_coord[e] = g->coord[e];
        g->value[e] = number(&seed);
    }
    for (int i = 0; i <= NODES; i++)
        g->wide_start[i] = g->start[i];
    g->x = malloc(NODES * WIDTH * sizeof *g->x);
    for (int i = 0; i < NODES * WIDTH; i++)
        g->x[i] = number(&seed);
    g->y = malloc(NODES * WIDTH * sizeof *g->y);
}

static void close_graph(Graph *g)
{
    void *all[] = { g->start, g->coord, g->wide_start, g->wide_coord, g->value, g->x, g->y };

    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
}

static void bind_graph(const Graph *g, bool wide)
{
    bind("J.start", wide ? (void *)g->wide_start : g->start, wide ? WEFT_I64 : WEFT_I32, 1,
         SHAPE(NODES + 1));
    bind("J.coord", wide ? (void *)g->wide_coord : g->coord, wide ? WEFT_I64 : WEFT_I32, 1,
         SHAPE(g->n));
    bind("A", g->value, WEFT_F32, 1, SHAPE(g->n));
    bind("B", g->x, WEFT_F32, 2, SHAPE(NODES, WIDTH));
    bind("C", g->y, WEFT_F32, 2, SHAPE(NODES, WIDTH));
    OK(weft_args_size(args, "n", NODES));
}

/* Sums of 20 * NODES terms of size 1, in f32. */
static void check_graph(const Graph *g, bool back)
{
    double *want = calloc(NODES * WIDTH, sizeof *want), worst = 0;

    for (int i = 0; i < NODES; i++)
        for (int64_t e = g->start[i]; e < g->start[i + 1]; e++)
            for (int k = 0; k < WIDTH; k++)
                want[(back ? g->coord[e] : i) * WIDTH + k] +=
                    (double)g->value[e] * (double)g->x[(back ? i : g->coord[e]) * WIDTH + k];
    for (int i = 0; i < NODES * WIDTH; i++) {
        double error = want[i] - (double)g->y[i];

        error = error < 0 ? -error : error;
        worst = error > worst || error != error ? error : worst;
    }
    CHECK(worst <= 1e-3);
    free(want);
}

/* Of the last run: each phase and its pieces. */
static void keep_pieces(void *user, const char *line)
{
    if (strncmp(line, "weft,run,", 9) == 0)
        snprintf(user, 512, "%s", strstr(line, "; ") != NULL ? strstr(line, "; ") : "none");
}

TEST(the_same_bits_for_any_threads_and_index_types)
{
    char pieces[512], had[512];

    static const int threads[] = { 1, 2, 3, 7, 16 };
    Graph g;

    open_graph(&g);
    for (int back = 0; back < 2; back++) {
        float *first = malloc(NODES * WIDTH * sizeof *first);

        open_kernel(back ? scatter : spmm);
        OK(weft_ctx_verbose(ctx, keep_pieces, pieces));
        for (int run = 0; run < 10; run++) {
            OK(weft_ctx_threads(ctx, threads[run % 5]));
            bind_graph(&g, run % 2 == 1);
            memset(g.y, 0xff, NODES * WIDTH * sizeof *g.y);
            OK(weft_kernel_run(kernel, args));
            CHECK_EQ(plan_of(args).transposes, back);
            if (run == 0) {
                memcpy(first, g.y, NODES * WIDTH * sizeof *first);
                memcpy(had, pieces, sizeof had);
                check_graph(&g, back);
            }
            CHECK_STR(pieces, had);
            CHECK(memcmp(first, g.y, NODES * WIDTH * sizeof *first) == 0);
        }
        free(first);
        close_prog();
    }
    close_graph(&g);
}

/* Memory that is there when it is touched. */
static float *map(int64_t n)
{
    void *p = mmap(NULL, (size_t)n * sizeof(float), PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    return p == MAP_FAILED ? NULL : p;
}

enum { FAR = 40000, WIDE = 65536 }; /* 2.6e9 elements, of which a few rows are touched */

typedef struct Term { /* row `into` of C gets a times row `from` of B */
    int64_t into, from;
    float a;
} Term;

static void run_far(float *b, float *c, int64_t rows, const Term *term)
{
    bind("B", b, WEFT_F32, 2, SHAPE(FAR, WIDE));
    bind("C", c, WEFT_F32, 2, SHAPE(rows, WIDE));
    for (int64_t k = 0; k < WIDE; k += WIDE - 1)
        for (int t = 0; t < 3; t++)
            b[term[t].from * WIDE + k] = (float)((term[t].from + k) % 11 + 1);
    OK(weft_kernel_run(kernel, args));
    CHECK_STR(info_of(kernel).target, "c");
    for (int64_t k = 0; k < WIDE; k += WIDE - 1)
        for (int t = 0; t < 3; t++) {
            float want = 0;

            for (int u = 0; u < 3; u++)
                if (term[u].into == term[t].into)
                    want += term[u].a * b[term[u].from * WIDE + k];
            CHECK_SAME((double)c[term[t].into * WIDE + k], (double)want);
        }
    close_prog();
}

/* Rows that are known to be different need no transpose, which would go through all of C. */
static void far_rows(float *b, float *c)
{
    static const Term term[] = { { 3, FAR - 1, 2 }, { FAR - 2, 5, 3 }, { FAR - 2, FAR - 1, 5 } };
    int32_t row[] = { 3, FAR - 2 }, start[] = { 0, 1, 3 }, coord[] = { FAR - 1, 5, FAR - 1 };

    open_kernel("program far(q, m, n, f)\n"
                "axis I = q : r < m unique, E(I) = seg : j < n, K = f\n"
                "f32 A[E], B[n, K]\ninout f32 C[m, K]\nc: C[r(i), k] += A[e] * B[j(e), k]\n");
    bind("I.r", row, WEFT_I32, 1, SHAPE(2));
    bind("E.start", start, WEFT_I32, 1, SHAPE(3));
    bind("E.j", coord, WEFT_I32, 1, SHAPE(3));
    bind("A", (float[]){ 2, 3, 5 }, WEFT_F32, 1, SHAPE(3));
    run_far(b, c, FAR, term);
}

/* By the transpose, whose rows are all of C's: these are few. */
static void far_columns(float *b, float *c)
{
    static const Term term[] = { { 3, 5, 2 }, { 0, FAR - 1, 3 }, { 3, FAR - 1, 5 } };
    static int32_t start[FAR + 1];
    int32_t coord[] = { 3, 0, 3 };

    for (int i = 6; i <= FAR; i++)
        start[i] = i < FAR ? 1 : 3;
    open_kernel("program far(m, n, f)\naxis I = m, E(I) = seg : j < n, K = f\n"
                "f32 A[E], B[I, K], C[n, K]\nc: C[j(e), k] += A[e] * B[i, k]\n");
    bind("E.start", start, WEFT_I32, 1, SHAPE(FAR + 1));
    bind("E.j", coord, WEFT_I32, 1, SHAPE(3));
    bind("A", (float[]){ 2, 3, 5 }, WEFT_F32, 1, SHAPE(3));
    run_far(b, c, 4, term);
}

TEST(offsets_past_2_to_the_31_are_right)
{
    size_t bytes = (size_t)FAR * WIDE * sizeof(float);

    for (int back = 0; back < 2; back++) {
        float *b = map((int64_t)FAR * WIDE), *c = map((int64_t)FAR * WIDE);

        if (b != NULL && c != NULL)
            (back ? far_columns : far_rows)(b, c);
        if (b != NULL)
            munmap(b, bytes);
        if (c != NULL)
            munmap(c, bytes);
        if (b == NULL || c == NULL)
            test_skip("the system does not map 10 GB that are not used");
    }
}
