/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * api/lowered.c, kernel.c, plan.c, ir/copy.c: the memory of the compiler is freed when a kernel
 * exists, and neither new shapes nor new graphs add to what a context holds. */
#include "unit/kernel_bed.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { MB = 1 << 20 };

static Inject counted;

static void open_counted(void)
{
    open_inject(&counted, NULL, NULL);
}

/* Bytes that freed handles keep: they stay as empty shells for a while. */
static void flush_shells(void)
{
    const weft_edge_list none = { .type = WEFT_I64 };
    weft_edges *e;

    for (int i = 0; i <= LIMIT_SHELLS; i++) {
        OK(weft_edges_new(ctx, &none, &e));
        weft_edges_free(e);
    }
}

typedef struct Arrays { /* of a tensor product, all of them with room */
    float *x, *y, *w, *z, *out[4];
} Arrays;

static Arrays arrays_of(const weft_tp_info *info)
{
    int64_t n = info->x + info->y + info->w + info->z;
    Arrays a = { calloc((size_t)n, 4), calloc((size_t)n, 4), calloc((size_t)n, 4),
                 calloc((size_t)n, 4), { 0 } };

    for (int i = 0; i < 4; i++)
        a.out[i] = calloc((size_t)n, 4);
    return a;
}

static void free_arrays(Arrays *a)
{
    free(a->x);
    free(a->y);
    free(a->w);
    free(a->z);
    for (int i = 0; i < 4; i++)
        free(a->out[i]);
}

/* Forward, backward and second derivative: three kernels. */
static void run_product(weft_tp *tp, Arrays *a)
{
    OK(weft_tp_forward(tp, 1, a->x, a->y, a->w, a->z));
    OK(weft_tp_backward(tp, 1, a->x, a->y, a->w, a->z, a->out[0], a->out[1], a->out[2]));
    OK(weft_tp_double_backward(tp, 1, a->x, a->y, a->w, a->z, a->x, a->y, a->w, a->out[0],
                               a->out[1], a->out[2], a->out[3]));
}

/* What one product holds while it lives, in bytes. */
static int64_t held_by(const char *spec)
{
    int64_t before = counted.bytes, held;
    weft_tp_info info;
    weft_tp *tp;
    Arrays a;

    OK(weft_tp_new(ctx, spec, &tp));
    OK(weft_tp_get(tp, &info));
    a = arrays_of(&info);
    run_product(tp, &a);
    held = counted.bytes - before;
    weft_tp_free(tp);
    free_arrays(&a);
    return held;
}

static const char *const shapes[] = {
    "tp; in1=4x0e+4x1o; in2=0e+1o; out=4x0e+4x1o; mode=uvu; weights=item",
    "tp; in1=8x0e+8x1o+8x2e; in2=0e+1o+2e; out=0e+1o+2e; mode=uvu; weights=item",
    "tp; in1=4x0e+2x1o; in2=0e+1o; out=4x0e+2x1o; mode=uvw; weights=shared",
    "tp; in1=16x0e+16x1o; in2=0e+1o+2e; out=0e+1o; mode=uvu; weights=item",
};

TEST(a_product_that_is_freed_leaves_nothing_behind)
{
    int64_t first;

    open_counted();
    held_by(shapes[0]); /* makes the pool and the tables of the context */
    flush_shells();
    first = counted.bytes;
    for (int i = 0; i < 4; i++) {
        int64_t held = held_by(shapes[i]);

        flush_shells();
        CHECK_EQ(counted.bytes, first);
        CHECK(held <= 3 * 2 * MB);
    }
    close_inject(&counted);
}

/* A listed problem whose passes take 2 GB in all when nothing is freed between them. */
static const char largest[] =
    "tp; in1=64x0o+64x0e+64x1o+64x1e+64x2o+64x2e+64x3o+64x3e; in2=0e+1o+2e+3o; "
    "out=0o+0e+1o+1e+2o+2e+3o+3e; mode=uvu; weights=item";

static weft_prog *derivative(weft_prog *of, const char *const *wrt, int n)
{
    weft_grad g = { .wrt = wrt, .nwrt = n };
    weft_prog *out;

    OK(weft_prog_grad(of, &g, &out));
    return out;
}

static void lower_only(weft_prog *p, Text *source, Arena *kept)
{
    uint8_t *index = calloc(1, (size_t)p->body->narg + 1);
    VariantKey key = { .index = index };

    CHECK(setjmp(*api_enter(ctx)) == 0);
    kernel_lower(ctx, kept, p->body, &key, source);
    free(index);
}

TEST(the_largest_listed_problem_is_lowered_in_little_memory)
{
    static const char *const first[] = { "X", "Y", "Wt" }, *const second[] = { "X", "Y", "Wt",
                                                                               "d_Z" };
    weft_prog *p, *d, *d2;
    Arena kept;
    Text source;

    open_counted();
    OK(weft_prog_o3(ctx, largest, &p));
    d = derivative(p, first, 3);
    d2 = derivative(d, second, 4);
    arena_init(&kept, ctx->os, &ctx->err);
    source = (Text){ .arena = &ctx->scratch };
    lower_only(d2, &source, &kept);
    CHECK(source.n > MB); /* or the problem is no longer large */
    CHECK(kept.total <= 2 * MB);
    CHECK(counted.peak <= (int64_t)500 * MB);
    arena_free(&kept);
    OK(api_leave(ctx));
    close_inject(&counted);
}

/* A kernel keeps no text; asked for, it is the same as at first. */
TEST(the_text_of_a_kernel_is_made_again_when_it_is_asked_for)
{
    const char *text, *again;
    int64_t before;

    open_counted();
    OK(weft_prog_parse(ctx, "test.weft", spmm, strlen(spmm), &prog));
    OK(weft_args_new(prog, &args));
    compile();
    OK(weft_kernel_source(kernel, &text));
    CHECK_HAS(text, "weft_phase_0(WEFT_ARGS)");
    before = counted.bytes;
    for (int i = 0; i < 100; i++) {
        OK(weft_kernel_source(kernel, &again));
        CHECK(again == text);
    }
    CHECK_EQ(counted.bytes, before);
    close_inject(&counted);
}

TEST(schedules_that_are_replaced_are_freed)
{
    static const char step[] = "tile 4\n";
    char *text = calloc(100, sizeof step);
    int64_t before;

    for (int i = 0; i < 100; i++)
        strcat(text, step);
    open_counted();
    OK(weft_prog_parse(ctx, "test.weft", spmm, strlen(spmm), &prog));
    compile();
    OK(weft_kernel_schedule(kernel, text));
    before = counted.bytes;
    for (int i = 0; i < 2000; i++) /* more than a chunk of an arena */
        OK(weft_kernel_schedule(kernel, text));
    free(text);
    CHECK_EQ(counted.bytes, before);
    close_inject(&counted);
}

/* A graph of n nodes with k edges each; other ones for another seed. */
static void fill_graph(int64_t n, int64_t k, uint64_t seed, int64_t *start, int64_t *coord)
{
    for (int64_t i = 0; i <= n; i++)
        start[i] = i * k;
    for (int64_t e = 0; e < n * k; e++)
        coord[e] = (e % k) * (n / k) + (int64_t)(test_random(&seed) % (uint64_t)(n / k));
}

/* The transpose of the graph is needed for C, its rows for D. */
static const char both[] = "program both(n, f)\n"
                           "axis I = n, E(I) = seg : j < n, K = f\n"
                           "f32 A[E], B[n, K], C[n, K], D[I, K]\n"
                           "c: C[j(e), k] += A[e] * B[i, k]\n"
                           "d: D[i, k] += A[e] * B[j(e), k]\n";

static void bind_graph(uint64_t seed, int64_t *start, int64_t *coord)
{
    enum { NODES = 24, EDGES = 4, WIDTH = 8 };
    static float a[NODES * EDGES], b[NODES * WIDTH];

    fill_graph(NODES, EDGES, seed, start, coord);
    OK(weft_args_size(args, "n", NODES));
    OK(weft_args_size(args, "f", WIDTH));
    bind("E.start", start, WEFT_I64, 1, SHAPE(NODES + 1));
    bind("E.j", coord, WEFT_I64, 1, SHAPE(NODES * EDGES));
    bind("A", a, WEFT_F32, 1, SHAPE(NODES * EDGES));
    bind("B", b, WEFT_F32, 2, SHAPE(NODES, WIDTH));
}

/* 100 bytes for each of the fewest would be more than the largest chunk of an arena, so they would
 * show. */
static int many_graphs(void)
{
    enum { FEWEST = 12000 };
    int64_t n = test_scale(50000);

    return n < FEWEST ? FEWEST : (int)n;
}

/* Bytes of the process that are in memory; 0 where the system does not say, and under tools that
 * keep freed memory for a while. */
static int64_t resident(void)
{
#if defined __SANITIZE_ADDRESS__
    bool keeps = true;
#else
    bool keeps = getenv("WEFT_TEST_MEMCHECK") != NULL; /* tests/valgrind.sh */
#endif
    FILE *f = keeps ? NULL : fopen("/proc/self/statm", "r");
    int64_t all, pages = 0;

    if (f != NULL && fscanf(f, "%" SCNd64 " %" SCNd64, &all, &pages) != 2)
        pages = 0;
    if (f != NULL)
        fclose(f);
    return pages * sysconf(_SC_PAGESIZE);
}

static void check_graphs(const char *sched)
{
    int64_t start[2][25], coord[2][96], before = 0, pages = 0;
    int graphs = many_graphs();
    weft_plan plan;

    open_counted();
    OK(weft_prog_parse(ctx, "test.weft", both, strlen(both), &prog));
    OK(weft_args_new(prog, &args));
    compile();
    OK(weft_kernel_schedule(kernel, sched));
    for (int i = 0; i < graphs; i++) {
        bind_graph((uint64_t)i + 1, start[i % 2], coord[i % 2]);
        OK(weft_kernel_run(kernel, args));
        OK(weft_args_plan(args, &plan));
        CHECK_EQ(plan.made, i + 1);
        if (i == 99)
            before = counted.bytes, pages = resident();
    }
    CHECK(sched != NULL ? plan.formats > 0 : plan.transposes > 0);
    CHECK_EQ(counted.bytes, before);
    CHECK(resident() - pages < MB / 2);
    close_inject(&counted);
}

TEST(plans_of_new_graphs_leave_nothing_behind)
{
    check_graphs(NULL);
}

TEST(plans_that_convert_formats_leave_nothing_behind)
{
    check_graphs("format E ell(4)");
}

TEST(interpreted_runs_leave_nothing_behind)
{
    int64_t start[25], coord[96], before = 0;

    open_inject(&counted, "WEFT_DISABLE_JIT", "1");
    OK(weft_prog_parse(ctx, "test.weft", both, strlen(both), &prog));
    OK(weft_args_new(prog, &args));
    compile();
    for (int i = 0; i < many_graphs() / 4; i++) {
        bind_graph((uint64_t)i + 1, start, coord);
        OK(weft_kernel_run(kernel, args));
        if (i == 99)
            before = counted.bytes;
    }
    CHECK_EQ(counted.bytes, before);
    close_inject(&counted);
}

/* Edges that no graph before had, and their convolution with its gradients. */
static void convolve_graph(weft_conv *conv, uint64_t seed)
{
    enum { NODES = 12, EDGES = 30, ROOM = 1024 };
    static float in[4][ROOM], dz[ROOM], out[4][ROOM], z[ROOM];
    const weft_conv_in at = { in[0], in[1], in[2], in[3] };
    const weft_conv_out d = { out[0], out[1], out[2], out[3] };
    int32_t to[EDGES], from[EDGES];
    weft_edge_list list = { NODES, NODES, EDGES, WEFT_I32, to, from };
    weft_edges *edges;

    for (int e = 0; e < EDGES; e++) {
        to[e] = (int32_t)(test_random(&seed) % NODES);
        from[e] = (int32_t)(test_random(&seed) % NODES);
    }
    OK(weft_edges_new(ctx, &list, &edges));
    OK(weft_conv_forward(conv, edges, &at, z));
    OK(weft_conv_backward(conv, edges, &at, dz, &d));
    weft_edges_free(edges);
}

/* A kernel that is called often is compiled again for its sizes, at a moment that depends on the
 * clock: MB / 4 has room for the facts of both, and 22 bytes for each graph would be more. */
TEST(convolutions_over_new_graphs_leave_nothing_behind)
{
    enum { WARM = 1000 };
    static const char spec[] = "conv; in1=2x0e+3x1o; in2=0e+1o; out=0e+1o; mode=uvu";
    int64_t before = 0, pages = 0;
    weft_conv_info dim;
    weft_conv *conv;

    open_counted();
    OK(weft_conv_new(ctx, spec, &conv));
    OK(weft_conv_get(conv, &dim));
    CHECK(12 * dim.x <= 1024 && 30 * dim.y <= 1024 && 30 * dim.w <= 1024 && 12 * dim.z <= 1024);
    for (int i = 0; i < WARM + many_graphs(); i++) {
        convolve_graph(conv, (uint64_t)i + 1);
        if (i == WARM)
            before = counted.bytes, pages = resident();
    }
    CHECK(counted.bytes - before < MB / 4);
    CHECK(resident() - pages < 2 * MB);
    weft_conv_free(conv);
    close_inject(&counted);
}
