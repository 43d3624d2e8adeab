/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Random trees for warps and blocks, written as text: loops that are dealt to lanes, warps and
 * threads, with arrays that an iteration has and all of them touch.  What is dealt out writes one
 * array, at elements of its own, and reads the others anywhere, so the text means the same in any
 * order that barriers allow. */
#include "stage/stage_test.h"

#include <stdio.h>
#include <string.h>

enum { ARRAYS = 4, ELEMENTS = 64, MOST_VARS = 8, ROWS = 3 };

typedef struct LoopVar { /* from 0 to most */
    const char *name;
    int most;
} LoopVar;

typedef struct Gen {
    Rng *r;
    Text t;
    int indent, names, nvar, lanes, warps;
    LoopVar var[MOST_VARS];
    int own;     /* the array that the loops around that are dealt out write; -1: none is around */
    const char *at; /* its element, or where a region of 16 begins */
    bool region; /* the latter */
    bool vector, warp;
    int filled; /* the array that all threads fill, in a loop on warp; -1: none */
} Gen;

static const char *const array_name[ARRAYS] = { "Y.s0", "Y.s1", "Y.w0", "Y.w1" };

static void line(Gen *g, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void line(Gen *g, const char *fmt, ...)
{
    char s[300];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(s, sizeof s, fmt, ap);
    va_end(ap);
    text_f(&g->t, "%*s%s\n", 4 * g->indent, "", s);
}

static const char *words(Gen *g, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static const char *words(Gen *g, const char *fmt, ...)
{
    Text t = { .arena = g->t.arena };
    char s[300];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(s, sizeof s, fmt, ap);
    va_end(ap);
    text_str(&t, s);
    return t.s;
}

/* An index from 0 to 63. */
static const char *index_text(Gen *g)
{
    int i = g->nvar > 0 ? rng_int(g->r, 0, g->nvar - 1) : 0;
    const LoopVar *v = &g->var[i];

    if (g->nvar == 0 || rng_p(g->r, 25))
        return words(g, "%d", rng_int(g->r, 0, ELEMENTS - 1));
    if (rng_p(g->r, 50))
        return v->name;
    if (2 * v->most < ELEMENTS && rng_p(g->r, 30))
        return words(g, "%s * 2", v->name);
    return words(g, "%s + %d", v->name,
                 rng_int(g->r, 0, rng_p(g->r, 50) && v->most < 60 ? 3 : ELEMENTS - 1 - v->most));
}

/* What an index of lanes has besides: a constant, or the variable of a loop around. */
static const char *shift_text(Gen *g, int most)
{
    const LoopVar *v = &g->var[g->nvar > 1 ? rng_int(g->r, 0, g->nvar - 2) : 0];

    if (g->nvar > 1 && v->most <= most && rng_p(g->r, 50))
        return v->name;
    return words(g, "%d", rng_int(g->r, 0, rng_p(g->r, 50) && most > 3 ? 3 : most));
}

/* Of the array that is written here. */
static const char *own_index(Gen *g)
{
    return g->region ? words(g, "%s + %d", g->at, rng_int(g->r, 0, 15)) : g->at;
}

/* An element that may be read here. */
static const char *read_text(Gen *g)
{
    int k = rng_int(g->r, 0, ARRAYS - 1);
    const char *any = index_text(g);

    return words(g, "%s[%s]", array_name[k], k == g->own ? own_index(g) : any);
}

static void put_store(Gen *g)
{
    int k = g->own >= 0 ? g->own : rng_int(g->r, 0, ARRAYS - 1);
    const char *op = rng_p(g->r, 70) ? "=" : rng_p(g->r, 50) ? "max=" : "min=";
    const char *a = read_text(g), *b = read_text(g);
    const char *at = g->own >= 0 ? own_index(g) : index_text(g);

    if (rng_p(g->r, 60))
        line(g, "%s[%s] %s min(%s + %d.0, %s)", array_name[k], at, op, a, rng_int(g->r, 1, 9), b);
    else
        line(g, "%s[%s] %s max(%s, %s) - %d.0", array_name[k], at, op, a, b, rng_int(g->r, 1, 9));
}

static void put_body(Gen *g, int depth);

static void put_var(Gen *g, const char *letter, int most)
{
    LoopVar *v = &g->var[g->nvar++];

    v->name = words(g, "%s%d", letter, g->names++);
    v->most = most;
}

/* A loop that is dealt to lanes or threads; its iterations write one array. */
static void put_dealt(Gen *g, bool vector, int depth)
{
    Gen outer = *g;
    int most = g->region ? 16 : rng_p(g->r, 50) ? 32 : rng_int(g->r, 1, 48);
    const char *lo = "0";
    int by = rng_p(g->r, 25) ? 2 << rng_int(g->r, 0, 1) : 1;
    const char *head = vector ? "vector " : "", *tail = " on thread";

    if (g->own < 0)
        g->own = rng_int(g->r, 0, ARRAYS - 1);
    if (!g->region && rng_p(g->r, 20))
        lo = g->nvar > 0 && rng_p(g->r, 50) ? g->var[g->nvar - 1].name
                                            : words(g, "%d", rng_int(g->r, 0, most - 1));
    if (vector && by > 1)
        tail = words(g, " step %d by %d packed", g->lanes, by);
    else if (vector)
        tail = words(g, " step %d", g->lanes);
    put_var(g, vector ? "k" : "e", most - 1);
    line(g, "%sfor %s in %s..%d%s", head, g->var[g->nvar - 1].name, lo, most, tail);
    g->at = words(g, "%s + %s", g->var[g->nvar - 1].name,
                  outer.region ? outer.at : shift_text(g, ELEMENTS - most));
    g->region = false;
    g->vector = true;
    g->indent++;
    put_body(g, depth - 1);
    outer.t = g->t;
    outer.names = g->names;
    *g = outer;
}

/* All threads of the block fill an array; each warp comes here with the same values. */
static void put_fill(Gen *g)
{
    Gen outer = *g;
    int k = g->filled;

    put_var(g, "e", ELEMENTS - 1);
    line(g, "for %s in 0..%d on thread", g->var[g->nvar - 1].name, ELEMENTS);
    line(g, "    %s[%s] = X[i * %d + %s] + %d.0", array_name[k], g->var[g->nvar - 1].name, ELEMENTS,
         g->var[g->nvar - 1].name, rng_int(g->r, 0, 9));
    outer.t = g->t;
    outer.names = g->names;
    *g = outer;
}

/* for t on warp: each has 16 elements of an array. */
static void put_warps(Gen *g, int depth)
{
    Gen outer = *g;
    int n = rng_p(g->r, 70) ? g->warps : rng_int(g->r, 1, 4);

    put_var(g, "t", n - 1);
    line(g, "for %s in 0..%d on warp", g->var[g->nvar - 1].name, n);
    g->own = rng_int(g->r, 0, ARRAYS - 1);
    g->at = words(g, "%s * 16", g->var[g->nvar - 1].name);
    g->region = g->warp = true;
    g->indent++;
    if (rng_p(g->r, n == g->warps ? 50 : 10)) {
        g->filled = (g->own + rng_int(g->r, 1, ARRAYS - 1)) % ARRAYS;
        put_fill(g);
    }
    put_body(g, depth - 1);
    outer.t = g->t;
    outer.names = g->names;
    *g = outer;
}

static void put_serial(Gen *g, int depth)
{
    Gen outer = *g;
    int n = rng_int(g->r, 1, 4);

    put_var(g, "j", n - 1);
    line(g, "for %s in 0..%d", g->var[g->nvar - 1].name, n);
    g->indent++;
    put_body(g, depth - 1);
    outer.t = g->t;
    outer.names = g->names;
    *g = outer;
}

static void put_one(Gen *g, int depth)
{
    int what = rng_int(g->r, 0, 9);

    if (g->filled >= 0 && !g->vector && g->nvar < MOST_VARS && rng_p(g->r, 25))
        put_fill(g);
    else if (depth == 0 || g->nvar == MOST_VARS || what < 2)
        put_store(g);
    else if (what < 6 && !g->vector)
        put_dealt(g, g->warp || rng_p(g->r, 60), depth);
    else if (what < 8 && !g->vector && !g->warp && g->warps > 1)
        put_warps(g, depth);
    else
        put_serial(g, depth);
}

static void put_body(Gen *g, int depth)
{
    int n = rng_int(g->r, 1, depth > 1 ? 3 : 2);

    for (int i = 0; i < n; i++)
        put_one(g, depth);
}

static const char *shape_text(Arena *a, uint64_t seed)
{
    Rng r = { seed * 77 + 5 };
    Gen g = { .r = &r, .t = { .arena = a }, .own = -1, .filled = -1, .lanes = 2 << rng_int(&r, 1, 3) };
    int level = rng_int(&r, 0, 2);

    g.warps = level == 2 ? rng_int(&r, 2, 4) : 1;
    text_f(&g.t, "program shapes(n) stage loops\naxis I = n\nf32 X[I, %d], Y[I, %d]\n", ELEMENTS,
           ELEMENTS);
    for (int k = 0; k < ARRAYS; k++)
        text_f(&g.t, "temp %s f32 %s[%d]\n", array_name[k][2] == 's' ? "shared" : "work",
               array_name[k], ELEMENTS);
    text_str(&g.t, "phase y for i in 0..n on ");
    if (level == 2)
        text_f(&g.t, "block %d\n", g.warps);
    else
        text_f(&g.t, level == 0 ? "warp\n" : "warp %d\n", g.lanes);
    g.indent = 1;
    for (int k = 0; k < ARRAYS; k++) {
        line(&g, "vector for x%d in 0..%d step %d", k, ELEMENTS, g.lanes);
        line(&g, "    %s[x%d] = X[i * %d + (x%d + %d) %% %d]", array_name[k], k, ELEMENTS, k,
             rng_int(&r, 0, 9), ELEMENTS);
    }
    for (int n = rng_int(&r, 1, 4); n > 0; n--)
        put_one(&g, 3);
    line(&g, "vector for x9 in 0..%d step %d", ELEMENTS, g.lanes);
    line(&g, "    Y[i * %d + x9] = Y.s0[x9] + Y.s1[x9] * 3.0 + Y.w0[x9] * 5.0 + Y.w1[x9] * 7.0",
         ELEMENTS);
    return g.t.s;
}

Trial trial_shape(Arena *a, uint64_t seed)
{
    Trial t = { .arena = a, .seed = seed, .warp = true, .exact = true };
    Array x = array_new(a, T_f32, (int64_t)ROWS * ELEMENTS);
    Rng r = { seed };

    t.text = shape_text(a, seed);
    t.prog = ir_parse(a, "shape", t.text, strlen(t.text));
    ir_check(t.prog);
    for (int64_t i = 0; i < x.n; i++)
        array_set(&x, i, 0, rng_int(&r, -99, 99));
    t.in = arena_alloc(a, sizeof *t.in);
    data_size(a, t.in, "n", ROWS);
    data_array(a, t.in, "X", x);
    return t;
}
