/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * weft_edges and weft_conv: convolutions over lists of edges.  Values are those of the product of
 * weft_tp on each edge, summed; derivatives are checked by differences, which are exact but for
 * rounding, as a convolution is linear in each operand. */
#include "unit/layer_bed.h"

#include "api/api_int.h"

enum { NODES = 4, SENDERS = 6, EDGES = 9, HIDDEN = 3 };

typedef struct Set { /* an array for each operand, and for the result */
    double x[MOST], y[MOST], w[MOST], m[MOST], z[MOST];
} Set;

#define PRODUCT "in1=2x0e+3x1o; in2=0e+1o; out=0e+1o; mode=uvu; type=f64"
static const char edge_weights[] = "conv; " PRODUCT;
static const char shared[] = "conv; weights=shared; " PRODUCT;
static const char made[] = "conv; hidden=3; " PRODUCT;

/* Node 2 receives nothing; 4 and 5 only send; there are a loop and an edge that is there twice. */
static const int32_t to[EDGES] = { 3, 0, 1, 3, 0, 0, 1, 3, 0 };
static const int32_t from[EDGES] = { 5, 2, 1, 0, 4, 1, 5, 5, 3 };

static weft_conv *conv;
static weft_edges *edges;
static weft_conv_info dim;

static void fill_all(Set *s)
{
    fill(s->x);
    fill(s->y);
    fill(s->w);
    fill(s->m);
    fill(s->z);
}

static void open_edges(const int32_t *receiver, const int32_t *sender, int64_t n)
{
    weft_edge_list list = { NODES, SENDERS, n, WEFT_I32, receiver, sender };

    weft_edges_free(edges);
    OK(weft_edges_new(ctx, &list, &edges));
}

static void open_conv(const char *spec, bool compile)
{
    if (compile)
        unsetenv("WEFT_DISABLE_JIT");
    else
        setenv("WEFT_DISABLE_JIT", "1", 1);
    weft_ctx_free(ctx);
    edges = NULL;
    ctx = weft_ctx_new();
    OK(weft_conv_new(ctx, spec, &conv));
    OK(weft_conv_get(conv, &dim));
    open_edges(to, from, EDGES);
    CHECK(EDGES * dim.w <= MOST && SENDERS * dim.x <= MOST && NODES * dim.z <= MOST);
}

static void close_conv(void)
{
    weft_conv_free(conv);
    weft_edges_free(edges);
    weft_ctx_free(ctx);
    ctx = NULL;
    unsetenv("WEFT_DISABLE_JIT");
}

static weft_conv_in in(const Set *s)
{
    return (weft_conv_in){ s->x, s->y, s->w, s->m };
}

static weft_conv_out out(Set *s)
{
    return (weft_conv_out){ s->x, s->y, s->w, s->m };
}

static int64_t count_w(void)
{
    return dim.shared ? dim.w : EDGES * (dim.hidden > 0 ? dim.hidden : dim.w);
}

static double dot_all(const Set *a, const Set *b)
{
    return dot(a->x, b->x, SENDERS * dim.x) + dot(a->y, b->y, EDGES * dim.y) +
           dot(a->w, b->w, count_w()) + dot(a->m, b->m, dim.hidden * dim.w);
}

static void forward(const Set *s, double *z)
{
    weft_conv_in at = in(s);

    OK(weft_conv_forward(conv, edges, &at, z));
}

static void backward(const Set *s, Set *d)
{
    weft_conv_in at = in(s);
    weft_conv_out to_d = out(d);

    OK(weft_conv_backward(conv, edges, &at, s->z, &to_d));
}

static void twice(const Set *s, const Set *a, Set *g)
{
    weft_conv_in at = in(s), along = in(a);
    weft_conv_out to_g = out(g);

    OK(weft_conv_double_backward(conv, edges, &at, s->z, &along, &to_g, g->z));
}

/* The weights of an edge as weft_tp takes them. */
static const double *weights_of(const Set *s, int k)
{
    static double w[MOST];

    if (dim.shared)
        return s->w;
    if (dim.hidden == 0)
        return s->w + k * dim.w;
    for (int64_t i = 0; i < dim.w; i++) {
        w[i] = 0;
        for (int64_t h = 0; h < dim.hidden; h++)
            w[i] += s->w[k * dim.hidden + h] * s->m[h * dim.w + i];
    }
    return w;
}

static void expect(const Set *s, double *z)
{
    double one[MOST];
    weft_tp *tp;

    OK(weft_tp_new(ctx, "tp; weights=item; " PRODUCT, &tp));
    memset(z, 0, (size_t)(NODES * dim.z) * 8);
    for (int k = 0; k < EDGES; k++) {
        OK(weft_tp_forward(tp, 1, s->x + from[k] * dim.x, s->y + k * dim.y, weights_of(s, k), one));
        for (int64_t i = 0; i < dim.z; i++)
            z[to[k] * dim.z + i] += one[i];
    }
    weft_tp_free(tp);
}

/* What a number changes by when one operand does: <z, forward> or <a, backward>. */
static double value(const Set *s, const Set *a)
{
    static Set d;
    static double z[MOST];

    if (a == NULL) {
        forward(s, z);
        return dot(z, s->z, NODES * dim.z);
    }
    backward(s, &d);
    return dot_all(&d, a);
}

static double change(const Set *s, const Set *v, const Set *a, int operand)
{
    static Set moved;
    double *all[] = { moved.x, moved.y, moved.w, moved.m, moved.z };
    const double *by[] = { v->x, v->y, v->w, v->m, v->z };

    moved = *s;
    for (int i = 0; i < MOST; i++)
        all[operand][i] += by[operand][i];
    return value(&moved, a) - value(s, a);
}

static void check_conv(const char *spec, bool compile)
{
    static Set s, v, a, d, g;
    double z[MOST], want[MOST];

    open_conv(spec, compile);
    fill_all(&s);
    fill_all(&v);
    fill_all(&a);
    forward(&s, z);
    expect(&s, want);
    for (int i = 0; i < NODES * dim.z; i++)
        near(z[i], want[i]);
    backward(&s, &d);
    near(change(&s, &v, NULL, 0), dot(d.x, v.x, SENDERS * dim.x));
    near(change(&s, &v, NULL, 1), dot(d.y, v.y, EDGES * dim.y));
    near(change(&s, &v, NULL, 2), dot(d.w, v.w, count_w()));
    near(change(&s, &v, NULL, 3), dot(d.m, v.m, dim.hidden * dim.w));
    twice(&s, &a, &g);
    near(change(&s, &v, &a, 0), dot(g.x, v.x, SENDERS * dim.x));
    near(change(&s, &v, &a, 1), dot(g.y, v.y, EDGES * dim.y));
    near(change(&s, &v, &a, 2), dot(g.w, v.w, count_w()));
    near(change(&s, &v, &a, 3), dot(g.m, v.m, dim.hidden * dim.w));
    near(change(&s, &v, &a, 4), dot(g.z, v.z, NODES * dim.z));
    CHECK(dot(g.x, g.x, SENDERS * dim.x) > 0 && dot(g.w, g.w, count_w()) > 0);
    close_conv();
}

TEST(convolutions_are_sums_of_products)
{
    check_conv(edge_weights, false);
    check_conv(shared, false);
    check_conv(made, false);
}

TEST(compiled_convolutions_are_too)
{
    check_conv(edge_weights, true);
    check_conv(made, true);
}

TEST(what_a_row_of_a_convolution_has)
{
    open_conv(made, false);
    CHECK_EQ(dim.x, 2 + 9);
    CHECK_EQ(dim.y, 4);
    CHECK_EQ(dim.w, 2 + 3 + 2 + 3);
    CHECK_EQ(dim.z, 2 + 3 + 6 + 9);
    CHECK_EQ(dim.hidden, HIDDEN);
    CHECK_EQ(dim.shared, 0);
    CHECK_EQ(dim.type, WEFT_F64);
    CHECK_EQ(dim.weight_type, WEFT_F64);
    close_conv();
    open_conv(shared, false);
    CHECK_EQ(dim.shared, 1);
    CHECK_EQ(dim.hidden, 0);
    close_conv();
}

/* The edges in the order that sums are in, and each array of edges with them. */
static int by_ends(const void *a, const void *b)
{
    int i = *(const int *)a, k = *(const int *)b;

    return to[i] != to[k] ? to[i] - to[k] : from[i] != from[k] ? from[i] - from[k] : i - k;
}

static void take(const int *order, const double *a, int64_t row, double *b)
{
    for (int k = 0; k < EDGES; k++)
        memcpy(b + k * row, a + order[k] * row, (size_t)row * 8);
}

static bool same(const double *a, const double *b, int64_t n)
{
    return memcmp(a, b, (size_t)n * 8) == 0;
}

static void check_orders(bool compile)
{
    static Set s, d, sorted, ds;
    static double z[MOST], zs[MOST], moved[MOST];
    int32_t receiver[EDGES], sender[EDGES];
    int order[EDGES];

    open_conv(edge_weights, compile);
    fill_all(&s);
    forward(&s, z);
    backward(&s, &d);
    for (int k = 0; k < EDGES; k++)
        order[k] = k;
    qsort(order, EDGES, sizeof *order, by_ends);
    sorted = s;
    take(order, s.y, dim.y, sorted.y);
    take(order, s.w, dim.w, sorted.w);
    for (int k = 0; k < EDGES; k++) {
        receiver[k] = to[order[k]];
        sender[k] = from[order[k]];
    }
    open_edges(receiver, sender, EDGES);
    forward(&sorted, zs);
    backward(&sorted, &ds);
    CHECK(same(z, zs, NODES * dim.z));
    CHECK(same(d.x, ds.x, SENDERS * dim.x));
    take(order, d.y, dim.y, moved);
    CHECK(same(moved, ds.y, EDGES * dim.y));
    take(order, d.w, dim.w, moved);
    CHECK(same(moved, ds.w, EDGES * dim.w));
    close_conv();
}

TEST(any_order_of_edges_gives_the_same_bits)
{
    check_orders(false);
    check_orders(true);
}

TEST(lists_of_edges_change)
{
    static Set s, d;
    static double z[MOST];
    int64_t wide_to[EDGES], wide_from[EDGES];
    weft_edge_list list = { NODES, SENDERS, EDGES, WEFT_I64, wide_to, wide_from };
    double first[MOST];

    open_conv(edge_weights, false);
    fill_all(&s);
    forward(&s, first);
    for (int k = 0; k < EDGES; k++) {
        wide_to[k] = to[k];
        wide_from[k] = from[k];
    }
    weft_edges_free(edges);
    OK(weft_edges_new(ctx, &list, &edges));
    forward(&s, z);
    CHECK(same(z, first, NODES * dim.z));
    open_edges(NULL, NULL, 0);
    fill(z);
    forward(&s, z);
    backward(&s, &d);
    for (int i = 0; i < NODES * dim.z; i++)
        CHECK(z[i] == 0);
    for (int i = 0; i < SENDERS * dim.x; i++)
        CHECK(d.x[i] == 0);
    list = (weft_edge_list){ 0, 0, 0, WEFT_I64, NULL, NULL };
    weft_edges_free(edges);
    OK(weft_edges_new(ctx, &list, &edges));
    OK(weft_conv_forward(conv, edges, &(weft_conv_in){ NULL, NULL, NULL, NULL }, NULL));
    close_conv();
}

TEST(threads_give_the_same_bits)
{
    static Set s, d, one;
    static double z[MOST], first[MOST];

    open_conv(made, true);
    fill_all(&s);
    for (int threads = 1; threads <= 3; threads++) {
        OK(weft_ctx_threads(ctx, threads));
        forward(&s, threads == 1 ? first : z);
        backward(&s, threads == 1 ? &one : &d);
        if (threads > 1)
            CHECK(same(z, first, NODES * dim.z) && same(d.x, one.x, SENDERS * dim.x) &&
                  same(d.w, one.w, count_w()) && same(d.m, one.m, dim.hidden * dim.w));
    }
    close_conv();
}

TEST(a_convolution_without_paths_gives_zeros)
{
    static const char *const spec[] = { "conv; empty=zeros; in1=2x0e; in2=0e; out=2x1o; mode=uvw; type=f64",
                                        "conv; empty=zeros; in1=2x0e; in2=0e; out=2x1o; mode=uvu; type=f64" };
    static Set s, d;
    static double z[MOST];

    for (int k = 0; k < 2; k++) { /* of uvw the result has its slots, of uvu it has none */
        open_conv(spec[k], false);
        CHECK_EQ(dim.w, 0);
        CHECK_EQ(dim.z, k == 0 ? 6 : 0);
        fill_all(&s);
        fill_all(&d);
        for (int i = 0; i < MOST; i++)
            z[i] = 7;
        forward(&s, z);
        backward(&s, &d);
        for (int i = 0; i < NODES * dim.z; i++)
            CHECK_SAME(z[i], 0);
        for (int i = 0; i < SENDERS * dim.x; i++)
            CHECK_SAME(d.x[i], 0);
        for (int i = 0; i < EDGES * dim.y; i++)
            CHECK_SAME(d.y[i], 0);
        close_conv();
    }
}

TEST(bad_lists_of_edges_are_refused)
{
    weft_edge_list list = { NODES, SENDERS, EDGES, WEFT_I32, to, from };
    weft_edges *no;

    weft_edges_free(NULL);
    CHECK_EQ(weft_edges_new(NULL, &list, &no), WEFT_E_ARG);
    open_conv(edge_weights, false);
    BAD(weft_edges_new(ctx, &list, NULL), WEFT_E_ARG, "out is NULL");
    BAD(weft_edges_new(ctx, NULL, &no), WEFT_E_ARG, "list is NULL");
    list.nodes = 3;
    BAD(weft_edges_new(ctx, &list, &no), WEFT_E_BIND, "receiver[0] is 3, but there are 3 rows");
    CHECK(no == NULL);
    list.nodes = NODES;
    list.senders = 5;
    BAD(weft_edges_new(ctx, &list, &no), WEFT_E_BIND, "sender[0] is 5, but there are 5 rows");
    list.senders = -1;
    BAD(weft_edges_new(ctx, &list, &no), WEFT_E_ARG, "negative");
    list.senders = SENDERS;
    list.type = WEFT_F32;
    BAD(weft_edges_new(ctx, &list, &no), WEFT_E_ARG, "WEFT_I32 or WEFT_I64");
    list.type = WEFT_I32;
    list.sender = NULL;
    BAD(weft_edges_new(ctx, &list, &no), WEFT_E_ARG, "sender is NULL");
    list.receiver = NULL;
    BAD(weft_edges_new(ctx, &list, &no), WEFT_E_ARG, "receiver is NULL");
    close_conv();
}

TEST(bad_convolutions_are_refused)
{
    static Set s;
    weft_conv_in at = in(&s), half = at;
    weft_conv_out d = out(&s);
    weft_conv *no;
    weft_edges *stale;

    weft_conv_free(NULL);
    CHECK_EQ(weft_conv_new(NULL, edge_weights, &no), WEFT_E_ARG);
    CHECK_EQ(weft_conv_forward(NULL, NULL, &at, s.z), WEFT_E_ARG);
    open_conv(edge_weights, false);
    BAD(weft_conv_new(ctx, edge_weights, NULL), WEFT_E_ARG, "out is NULL");
    BAD(weft_conv_new(ctx, NULL, &no), WEFT_E_ARG, "the problem is NULL");
    BAD(weft_conv_new(ctx, "tp; " PRODUCT, &no), WEFT_E_ARG, "no setting \"edges\"");
    CHECK(no == NULL);
    BAD(weft_conv_new(ctx, "conv; in1=8x0e; in2=0e; out=4x1o; mode=uvw", &no), WEFT_E_ARG,
        "in1=8x0e, in2=0e, out=4x1o allow no path");
    BAD(weft_conv_new(ctx, "conv; empty=0; in1=8x0e; in2=0e; out=0e", &no), WEFT_E_ARG,
        "empty is one of refuse zeros");
    BAD(weft_conv_new(ctx, "conv; hidden=0; " PRODUCT, &no), WEFT_E_ARG, "hidden is 1 to");
    BAD(weft_conv_new(ctx, "conv; hidden=8; weights=shared; " PRODUCT, &no), WEFT_E_ARG,
        "weights=item");
    BAD(weft_conv_new(ctx, "conv; hidden=8; in1=0e; in2=0e; out=0e; paths=0 0 0 uvu no", &no),
        WEFT_E_ARG, "no path has weights");
    BAD(weft_conv_get(conv, NULL), WEFT_E_ARG, "out is NULL");
    BAD(weft_conv_forward(conv, NULL, &at, s.z), WEFT_E_ARG, "edges is NULL");
    BAD(weft_conv_forward(conv, (weft_edges *)conv, &at, s.z), WEFT_E_ARG, "edges of a conv");
    BAD(weft_conv_forward(conv, edges, NULL, s.z), WEFT_E_ARG, "at is NULL");
    BAD(weft_conv_forward(conv, edges, &at, NULL), WEFT_E_ARG, "Z is NULL");
    half.y = NULL;
    BAD(weft_conv_forward(conv, edges, &half, s.z), WEFT_E_ARG, "Y is NULL");
    BAD(weft_conv_backward(conv, edges, &at, NULL, &d), WEFT_E_ARG, "d_Z is NULL");
    BAD(weft_conv_backward(conv, edges, &at, s.z, NULL), WEFT_E_ARG, "arrays to write");
    BAD(weft_conv_double_backward(conv, edges, &at, s.z, NULL, &d, NULL), WEFT_E_ARG, "to read");
    BAD(weft_conv_double_backward(conv, edges, &at, s.z, &at, NULL, NULL), WEFT_E_ARG, "to write");
    stale = edges;
    weft_edges_free(edges);
    BAD(weft_conv_forward(conv, stale, &at, s.z), WEFT_E_ARG, "edges of a conv");
    edges = NULL;
    weft_conv_free(conv);
    BAD(weft_conv_forward(conv, stale, &at, s.z), WEFT_E_ARG, "a convolution expected");
    weft_ctx_free(ctx);
    ctx = NULL;
    unsetenv("WEFT_DISABLE_JIT");
}

/* Rows of so many elements, each a stride after the one before. */
static void spread(const double *packed, double *wide, int64_t rows, int64_t width, int64_t stride)
{
    for (int64_t i = 0; i < rows; i++)
        memcpy(wide + i * stride, packed + i * width, (size_t)width * sizeof *wide);
}

TEST(operands_with_gaps_and_repeated_gradients_give_the_same)
{
    static Set s, d, got;
    static double x[2 * MOST], y[2 * MOST], w[2 * MOST], dz[MOST];
    static const int64_t again[2] = { 0, 0 };
    double one = 0.5;

    fill_all(&s);
    for (int k = 0; k < 2; k++) {
        int64_t xs[2] = { 0, 1 }, ys[2] = { 0, 1 }, ws[2] = { 0, 1 };
        weft_conv_in packed = { s.x, s.y, s.w, NULL }, wide = { x, y, w, NULL };
        weft_conv_strides strides = { .x = xs, .y = ys, .w = ws };

        open_conv(edge_weights, k == 1);
        ctx->strided = 1;
        xs[0] = dim.x + 3;
        ys[0] = dim.y + 1;
        ws[0] = dim.w + 2;
        spread(s.x, x, SENDERS, dim.x, xs[0]);
        spread(s.y, y, EDGES, dim.y, ys[0]);
        spread(s.w, w, EDGES, dim.w, ws[0]);
        OK(weft_conv_forward(conv, edges, &packed, d.z));
        OK(weft_conv_next_strides(conv, &strides));
        OK(weft_conv_forward(conv, edges, &wide, got.z));
        for (int64_t i = 0; i < NODES * dim.z; i++)
            CHECK_NEAR(got.z[i], d.z[i], 1e-13);
        OK(weft_conv_forward(conv, edges, &packed, got.z)); /* strides are of one call */
        CHECK(memcmp(got.z, d.z, (size_t)(NODES * dim.z) * sizeof *d.z) == 0);
        for (int64_t i = 0; i < NODES * dim.z; i++)
            dz[i] = one;
        OK(weft_conv_backward(conv, edges, &packed, dz, &(weft_conv_out){ d.x, d.y, d.w, NULL }));
        strides.dz = again;
        OK(weft_conv_next_strides(conv, &strides));
        OK(weft_conv_backward(conv, edges, &wide, &one,
                              &(weft_conv_out){ got.x, got.y, got.w, NULL }));
        for (int64_t i = 0; i < EDGES * dim.w; i++)
            CHECK_NEAR(got.w[i], d.w[i], 1e-13);
        for (int64_t i = 0; i < SENDERS * dim.x; i++)
            CHECK_NEAR(got.x[i], d.x[i], 1e-13);
        close_conv();
    }
}
