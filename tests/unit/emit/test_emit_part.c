/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * emit/emit_part.c: no function of emitted C is longer than a few times the lines that a list may
 * have, whether a phase is straight-line code, a list of long loops, or long loops inside of long
 * loops.  That such C computes the same, the random programs of tests/kernel show. */
#include "emit/emit.h"
#include "unit/interp_bed.h"

#include <stdio.h>
#include <string.h>

enum { MOST_TEXT = 1 << 20, LINES = 40, STORES = 60 };

static char text[MOST_TEXT];
static size_t used;

static void put(int indent, const char *line)
{
    used += (size_t)snprintf(text + used, MOST_TEXT - used, "%*s%s\n", 4 * indent, "", line);
}

static void put_stores(int indent, const char *place)
{
    for (int i = 0; i < STORES; i++) {
        char line[200];

        snprintf(line, sizeof line, "Y[%s] += X[%s] * %d.5", place, place, i);
        put(indent, line);
    }
}

/* `outer` long loops one after the other, in each of them `inner` more after its own stores. */
static const char *program_of(int outer, int inner)
{
    used = 0;
    put(0, "program p(n) stage loops");
    put(0, "f32 X[16*n]");
    put(0, "inout f32 Y[16*n]");
    put(0, "phase y for i in 0..n");
    put_stores(1, "i * 16");
    for (int k = 0; k < outer; k++) {
        put(1, "for k in 0..4");
        put_stores(2, "i * 16 + k");
        for (int j = 0; j < inner; j++) {
            put(2, "for j in 0..4");
            put_stores(3, "i * 16 + k * 4 + j");
        }
    }
    return text;
}

/* The lines of the longest function: from "{" at the beginning of a line to "}" there. */
static int longest(const char *c)
{
    int most = 0, lines = 0;

    for (const char *at = c; at != NULL; at = strchr(at, '\n')) {
        at += *at == '\n';
        lines++;
        if (*at == '{')
            lines = 0;
        if (*at == '}' && lines > most)
            most = lines;
    }
    return most;
}

static int longest_of(int outer, int inner)
{
    Text out = { 0 };
    Bed b;
    int n;

    bed_open(&b, program_of(outer, inner));
    out.arena = &b.arena;
    emit_functions_cut(&out, &emit_dialect_c, b.prog, b.prog->phase, b.prog->nphase, "p", LINES);
    n = longest(out.s);
    bed_close(&b);
    return n;
}

TEST(functions_of_emitted_c_are_short_however_many_long_loops_there_are)
{
    static const int most = 5 * LINES; /* two large loops stay, each of up to twice the lines */

    for (int outer = 0; outer <= 32; outer = 2 * outer + 1)
        for (int inner = 0; inner <= 8; inner = 2 * inner + 1) {
            int n = longest_of(outer, inner);

            if (n > most)
                test_fail(__FILE__, __LINE__, "%d loops of %d: a function of %d lines", outer,
                          inner, n);
        }
}

/* Blocks of values, each of which only the stores of its block use: cut between them, no
 * function has to keep a value for the next. */
TEST(functions_are_cut_where_no_value_lives)
{
    enum { BLOCKS = 4, VALUES = 8, USES = 24, ROOM = 100 };
    Text out = { 0 };
    char line[200];
    Bed b;

    used = 0;
    put(0, "program p(n) stage loops");
    put(0, "f32 X[64*n]");
    put(0, "inout f32 Y[256*n]");
    put(0, "phase y for i in 0..n");
    for (int k = 0; k < BLOCKS; k++) {
        for (int v = 0; v < VALUES; v++) {
            snprintf(line, sizeof line, "let a%d_%d: f32 = X[i * 64 + %d] * %d.5", k, v,
                     k * VALUES + v, v);
            put(1, line);
        }
        for (int u = 0; u < USES; u++) {
            snprintf(line, sizeof line, "Y[i * 256 + %d] += a%d_%d * a%d_%d", k * USES + u, k,
                     u % VALUES, k, (u + 3) % VALUES);
            put(1, line);
        }
    }
    bed_open(&b, text);
    out.arena = &b.arena;
    emit_functions_cut(&out, &emit_dialect_c, b.prog, b.prog->phase, b.prog->nphase, "p", ROOM);
    CHECK(strstr(out.s, "_part_2") != NULL);
    CHECK(strstr(out.s, "struct p_live_0 {\n    int64_t t0;\n};") != NULL); /* i */
    bed_close(&b);
}
