/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * lower/finish/compensate.c: sums of many terms of unequal size, as exact as one rounding allows
 * where they are compensated, and not where they are not. */
#include "unit/layer_bed.h"

enum { EDGES = 100000, MUL = 8, HIDDEN = 2 };

#define PRODUCT "in1=8x0e; in2=0e; out=8x0e; mode=uvu; type=f32"

static float x[MUL], y[EDGES], w[EDGES][MUL], z[MUL], dx[MUL], m[HIDDEN][MUL], dm[HIDDEN][MUL];
static float h[EDGES][HIDDEN], dh[EDGES][HIDDEN];

/* Large ones of both signs, which cancel, and small ones, of which the sum is. */
static float term(int e, int u)
{
    static const float large[] = { 1e6f, 3e4f, -1e6f, -3e4f };

    return e % 2 == 0 ? large[e / 2 % 4] : (float)((e * 7 + u * 13) % 101) / 101;
}

static double exact(int u)
{
    double sum = 0;

    for (int e = 0; e < EDGES; e++)
        sum += (double)term(e, u);
    return sum;
}

/* The largest error of a row of sums, in parts of each. */
static double error_of(const float *sum, int n)
{
    double most = 0;

    for (int u = 0; u < n; u++) {
        double off = fabs((double)sum[u] - exact(u)) / exact(u);

        most = off > most ? off : most;
    }
    return most;
}

static weft_edges *open_edges(void)
{
    static int32_t zero[EDGES];
    weft_edge_list list = { 1, 1, EDGES, WEFT_I32, zero, zero };
    weft_edges *edges;

    OK(weft_edges_new(ctx, &list, &edges));
    return edges;
}

static void run(const char *spec, weft_conv_in *at, weft_conv_out *d)
{
    weft_conv *conv;
    weft_edges *edges;

    unsetenv("WEFT_DISABLE_JIT");
    weft_ctx_free(ctx);
    ctx = weft_ctx_new();
    edges = open_edges();
    OK(weft_conv_new(ctx, spec, &conv));
    OK(weft_conv_forward(conv, edges, at, z));
    OK(weft_conv_backward(conv, edges, at, at->x, d));
    close_prog();
}

static void fill_all(void)
{
    for (int e = 0; e < EDGES; e++) {
        y[e] = 1;
        for (int u = 0; u < MUL; u++)
            w[e][u] = term(e, u);
        for (int l = 0; l < HIDDEN; l++)
            h[e][l] = term(e, l);
    }
    for (int u = 0; u < MUL; u++)
        x[u] = 1;
    for (int l = 0; l < HIDDEN; l++)
        for (int u = 0; u < MUL; u++)
            m[l][u] = l == u;
}

TEST(compensated_sums_lose_nothing)
{
    weft_conv_in at = { x, y, w, NULL };
    weft_conv_out d = { .x = dx };

    fill_all();
    run("conv; sums=plain; " PRODUCT, &at, &d);
    CHECK(error_of(z, MUL) > 1e-6);
    CHECK(error_of(dx, MUL) > 1e-6);
    run("conv; sums=compensated; " PRODUCT, &at, &d);
    CHECK(error_of(z, MUL) <= 6e-8);
    CHECK(error_of(dx, MUL) <= 6e-8);
}

TEST(sums_of_all_entries_are_compensated_too)
{
    weft_conv_in at = { x, y, h, m };
    weft_conv_out d = { .w = dh, .m = dm };

    fill_all();
    run("conv; hidden=2; " PRODUCT, &at, &d);
    CHECK(fabs((double)dm[0][0] - exact(0)) / exact(0) > 1e-6);
    run("conv; hidden=2; sums=compensated; " PRODUCT, &at, &d);
    for (int l = 0; l < HIDDEN; l++)
        for (int u = 0; u < MUL; u++)
            CHECK(fabs((double)dm[l][u] - exact(l)) / exact(l) <= 6e-8);
    weft_ctx_free(ctx);
    ctx = NULL;
}
