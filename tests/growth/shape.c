/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The shapes of programs: each grows in one way. */
#include "growth/growth.h"

#define GRAPH "program p(n)\naxis I = n, E(I) = seg : j < n, K = 4\n"

static void arrays(Text *t, int n)
{
    text_str(t, GRAPH "f32 X[E, K]\n");
    for (int i = 0; i < n; i++)
        text_f(t, "f32 Z%d[I, K]\n", i);
    for (int i = 0; i < n; i++)
        text_f(t, "z%d: Z%d[i, k] += X[e, k] * %d.5\n", i, i, i);
}

static void groups(Text *t, int n)
{
    text_str(t, GRAPH "f32 X[E, K]\n");
    for (int i = 0; i < n; i++)
        text_f(t, "f32 Z%d[I, K]\n", i);
    text_str(t, "for i, e, k:\n");
    for (int i = 0; i < n; i++)
        text_f(t, "    z%d: Z%d[i, k] += X[e, k] * %d.5\n", i, i, i);
}

static void one_array(Text *t, int n)
{
    text_f(t, "program p(n)\naxis I = n, K = %d, L = 4\nf32 X[I, K, L], Z[I, K, L]\n", n);
    for (int i = 0; i < n; i++)
        text_f(t, "z%d: Z[i, %d, l] += X[i, %d, l] * X[i, %d, l]\n", i, i, i * 7 % n, i * 5 % n);
}

static void straight(Text *t, int n)
{
    text_f(t, "program p(n)\naxis I = n, K = %d\nf32 X[I, K], Z[I, K]\nfor i:\n", n);
    for (int i = 0; i < n; i++)
        text_f(t, "    z%d: Z[i, %d] += X[i, %d] * X[i, %d]\n", i, i, i * 7 % n, i * 5 % n);
}

static void temporaries(Text *t, int n)
{
    text_str(t, GRAPH "f32 X[E, K], Z[I, K]\n");
    for (int i = 0; i < n; i++)
        text_f(t, "temp f32 T%d[E, K]\n", i);
    text_str(t, "t0: T0[e, k] = X[e, k]\n");
    for (int i = 1; i < n; i++)
        text_f(t, "t%d: T%d[e, k] = T%d[e, k] * %d.5\n", i, i, i - 1, i);
    text_f(t, "z: Z[i, k] += T%d[e, k]\n", n - 1);
}

static void layers(Text *t, int n)
{
    text_str(t, GRAPH "f32 H0[I, K]\n");
    for (int i = 1; i <= n; i++)
        text_f(t, "%sf32 H%d[I, K]\n", i < n ? "temp " : "", i);
    for (int i = 1; i <= n; i++)
        text_f(t, "h%d: H%d[i, k] += H%d[j(e), k]\n", i, i, i - 1);
}

static void axes(Text *t, int n)
{
    text_str(t, "program p(n)\n");
    for (int i = 0; i < n; i++)
        text_f(t, "axis A%d = n\nf32 X%d[A%d], Z%d[A%d]\n", i, i, i, i, i);
    for (int i = 0; i < n; i++)
        text_f(t, "z%d: Z%d[a%d] = X%d[a%d] * 2\n", i, i, i, i, i);
}

static void lets(Text *t, int n, const char *fmt)
{
    text_str(t, "program p(n)\naxis I = n\nf32 X[I], Z[I]\nfor i:\n    let a0 = X[i]\n");
    for (int i = 1; i <= n; i++)
        text_f(t, fmt, i, i - 1, i > 1 && fmt[0] == '\n' ? i - 2 : i - 1);
    text_f(t, "    z: Z[i] = a%d\n", n);
}

static void squares(Text *t, int n)
{
    lets(t, n, "    let a%d = a%d * a%d\n");
}

static void doubles(Text *t, int n)
{
    lets(t, n, "    let a%d = a%d + a%d\n");
}

static void maxima(Text *t, int n)
{
    lets(t, n, "    let a%d = max(a%d, exp(a%d))\n");
}

static void fibonacci(Text *t, int n)
{
    lets(t, n, "\n    let a%d = a%d + a%d\n");
}

static void choices(Text *t, int n)
{
    lets(t, n, "    let a%d = select(a%d > 0, a%d, 1)\n");
}

/* Integers in choices and arithmetic: what may overflow, or is read at a place that has to be
 * tested, is tested under the condition of the choice. */
static void integers(Text *t, int n, const char *base, const char *fmt)
{
    text_f(t, "program p(n)\naxis I = n\nf32 X[I], Z[I]\ni64 Q[n]\nfor i:\n    let a0 = %s\n", base);
    for (int i = 1; i <= n; i++)
        text_f(t, fmt, i, i - 1, i - 1, i);
    text_f(t, "    z: Z[i] = X[i] * a%d\n", n);
}

static void integer_sums(Text *t, int n)
{
    integers(t, n, "i", "    let a%d = a%d + a%d\n");
}

static void integer_choices(Text *t, int n)
{
    integers(t, n, "i", "    let a%d = select(a%d > 3, a%d, Q[i] + %d)\n");
}

static void conditions(Text *t, int n)
{
    text_str(t, "program p(n)\naxis I = n\nf32 X[I], Z[I]\nfor i:\n    let a0 = X[i] > 0\n");
    for (int i = 1; i <= n; i++)
        text_f(t, "    let a%d = (a%d and X[i] < %d) or (not a%d and X[i] > %d)\n", i, i - 1, i,
               i - 1, i);
    text_f(t, "    z: Z[i] = select(a%d, X[i], 0)\n", n);
}

/* The same for the neighbours in a graph, in loops that a schedule arranges. */
static void scheduled(Text *t, int n)
{
    text_str(t, "program p(n)\naxis I = n, E(I) = seg : j < n, K = 16\nf32 X[n, K], Z[I, K]\n"
                "for i, e, k:\n    let a0 = X[j(e), k]\n");
    for (int i = 1; i <= n; i++)
        text_f(t, "    let a%d = a%d * a%d\n", i, i - 1, i - 1);
    text_f(t, "    z: Z[i, k] += a%d\n", n);
}

static void terms(Text *t, int n)
{
    text_f(t, "program p(n)\naxis I = n, K = %d\nf32 X[I, K], Z[I]\nz: Z[i] += X[i, 0]", n);
    for (int i = 1; i < n; i++)
        text_f(t, " + X[i, %d] * %d.5", i, i);
    text_str(t, "\n");
}

static void nests(Text *t, int n)
{
    text_str(t, "program p(n)\naxis A0 = 2");
    for (int i = 1; i < n; i++)
        text_f(t, ", A%d = 2", i);
    text_f(t, "\nf32 X[2], Z[2]\nz: Z[a0] += X[a0]");
    for (int i = 1; i < n; i++)
        text_f(t, " * X[a%d]", i);
    text_str(t, "\n");
}

const Shape growth_shape[] = {
    { "arrays", "statements that write different arrays", arrays, 0, 0, NULL },
    { "group", "statements of one group, each with its own array", groups, 0, 0, NULL },
    { "one-array", "statements that add to different rows of one array", one_array, 0, 0, NULL },
    { "straight", "statements of one group without inner loops", straight, 0, 0, NULL },
    { "temporaries", "a chain of temporaries, one element after the other", temporaries, 0, 0,
      NULL },
    { "layers", "a chain of sums over the neighbours in a graph", layers, 0, 0, NULL },
    { "axes", "axes, each with its own arrays and statement", axes, 0, 0, NULL },
    { "squares", "let a1 = a0 * a0, and so on", squares, 900, 300, NULL },
    { "doubles", "let a1 = a0 + a0, and so on", doubles, 900, 900, NULL },
    { "maxima", "let a1 = max(a0, exp(a0)), and so on", maxima, 400, 100, NULL },
    { "fibonacci", "let a2 = a1 + a0, and so on", fibonacci, 900, 900, NULL },
    { "choices", "nested select", choices, 400, 100, NULL },
    { "integers", "let a1 = a0 + a0, and so on, of integers", integer_sums, 900, 900, NULL },
    { "places", "nested select of integers", integer_choices, 400, 400, NULL },
    { "conditions", "conditions of conditions", conditions, 300, 300, NULL },
    { "vectorize", "squares, in loops of a schedule", scheduled, 900, -1,
      "cache_write z Z at z.e; vectorize z.k 8" },
    { "tensorize", "squares, in loops of a schedule", scheduled, 900, -1,
      "split z.e 4; reorder z.i z.k z.e.0 z.e.1; compensate 1" },
    { "terms", "terms of one sum", terms, 480, 480, NULL },
    { "nests", "loops one in another", nests, 60, 60, NULL },
    { NULL, NULL, NULL, 0, 0, NULL },
};
