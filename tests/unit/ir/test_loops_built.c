/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Trees that build an axis: their text, what is refused of them, and what they give. */
#include "ir/loop.h"
#include "unit/interp_bed.h"

#include <stdio.h>

#define D                                                               \
    "program p(m, n) stage loops\n"                                     \
    "axis I = m, U(I) = built : load < n, W(I) = built : load < n\n"    \
    "axis V = built : a < n, b < 3\n"                                   \
    "i64 C[U], X[V]\n"

static const char *const texts[] = {
    D "phase u for i in 0..m\n    build U(i)\n        for k in 0..i\n            U |= k\n"
      "phase c for u in 0..size(U)\n    C[u] = U.coord[u]\n",
    D "phase v\n    build V\n        for k in 0..n\n            V |= k * 3 + 1\n"
      "phase x for v in 0..size(V)\n    X[v] = V.a[v] * 10 + V.b[v]\n",
    D "phase u\n    build U\n        for k in 0..n\n            U |= 2 * n + k\n",
    D "phase u for i in 0..m\n    if i < 2\n        build U(i + 1)\n",
};

TEST(builds_read_back_as_they_were_printed)
{
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        Bed b;
        Text first = { 0 }, second = { 0 };
        Prog *again;

        bed_open(&b, texts[i]);
        first.arena = second.arena = &b.arena;
        ir_print(&first, b.prog);
        CHECK_STR(strstr(first.s, "phase"), strstr(texts[i], "phase"));
        again = ir_parse(&b.arena, "again", first.s, first.n);
        ir_print(&second, again);
        CHECK_STR(second.s, first.s);
        CHECK(ir_equal(b.prog, again) && ir_equal(b.prog, ir_copy(&b.arena, b.prog)));
        bed_close(&b);
    }
}

TEST(builds_of_other_axes_are_not_equal)
{
    Bed a, b;

    bed_open(&a, D "phase u for i in 0..m\n    build U(i)\n        U |= i\n");
    bed_open(&b, D "phase u for i in 0..m\n    build W(i)\n        W |= i\n");
    CHECK(!ir_equal(a.prog, b.prog));
    bed_close(&a);
    bed_close(&b);
}

static const char *const refused[][2] = {
    { "phase u for i in 0..m\n    build U(0)\n        U |= i\n", "builds the same row of U" },
    { "phase u for i in 0..m\n    build U\n        U |= i\n", "builds the same row of U" },
    { "phase u for i in 0..m\n    U |= i\n", "stands in a block `build U`" },
    { "phase u for i in 0..m\n    build W(i)\n        U |= i\n", "stands in a block `build U`" },
    { "phase u for i in 0..m\n    build U(i)\n        build U(i)\n", "inside the build of U" },
    { "phase u for i in 0..m\n    build U(i)\n    build W(i)\n", "a phase builds one axis" },
    { "phase u for i in 0..m\n    build U(i)\nphase w for i in 0..m\n    build U(i)\n",
      "is built in two phases" },
    { "phase c for u in 0..m\n    C[u] = 1\nphase u for i in 0..m\n    build U(i)\n",
      "axis U is used before the phase that builds it has ended" },
    { "phase u for i in 0..m\n    build U(i)\n        U |= U.start[i]\n", "axis U is used before" },
    { "phase u for i in 0..m\n    build U(i)\n        U |= size(U)\n", "axis U is used before" },
    { "phase u for i in 0..m\n    build U(1.5)\n", "an integer is needed here" },
    { "phase u for i in 0..m\n    build U(i)\n        U |= 1.5\n", "an integer is needed here" },
    { "phase u for i in 0..m\n    build I(i)\n", "I is not a built axis" },
    { "phase u for i in 0..m\n    I |= i\n", "I is not a built axis" },
};

TEST(builds_that_make_no_sense_are_refused)
{
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        Bed b = { .err = { 0 } };
        Text t = { .arena = &b.arena };

        arena_init(&b.arena, &os_libc, &b.err);
        text_f(&t, "%s%s", D, refused[i][0]);
        CHECK_EQ(CATCH(&b.err, b.prog = ir_parse(&b.arena, "t", t.s, t.n); ir_check(b.prog)),
                 ST_CHECK);
        CHECK_HAS(b.err.msg, refused[i][1]);
        bed_close(&b);
    }
}

static void open_sized(Bed *b, const char *text)
{
    bed_open(b, text);
    bed_size(b, "m", 4);
    bed_size(b, "n", 5);
}

TEST(rows_are_sorted_and_each_entry_is_there_once)
{
    Bed b;

    open_sized(&b, D "phase u for i in 0..m\n    if i != 1\n        build U(i)\n"
                     "            for k in 0..i\n                U |= 4 - k\n"
                     "                U |= 3\n"
                     "phase c for u in 0..size(U)\n    C[u] = 10 * u + U.coord[u]\n");
    bed_run(&b);
    WANT_INT(&b, "U.start", 0, 0, 0, 2, 5);
    WANT_INT(&b, "U.coord", 3, 4, 2, 3, 4);
    WANT_INT(&b, "C", 3, 14, 22, 33, 44);
    bed_close(&b);
}

TEST(a_build_of_all_rows_finds_them_in_the_keys)
{
    Bed b;

    open_sized(&b, D "phase v\n    build V\n        for k in 0..n\n"
                     "            V |= 3 * (k % 2) + k % 3\n"
                     "phase x for v in 0..size(V)\n    X[v] = V.a[v] * 10 + V.b[v]\n"
                     "phase u\n    build U\n        U |= 2 * n + 4\n        U |= 1\n"
                     "phase c for u in 0..size(U)\n    C[u] = U.coord[u]\n");
    bed_run(&b);
    WANT_INT(&b, "V.a", 0, 0, 0, 1, 1);
    WANT_INT(&b, "V.b", 0, 1, 2, 0, 1);
    WANT_INT(&b, "X", 0, 1, 2, 10, 11);
    WANT_INT(&b, "U.start", 0, 1, 1, 2, 2);
    WANT_INT(&b, "C", 1, 4);
    bed_close(&b);
}

TEST(an_axis_that_no_phase_builds_is_empty)
{
    Bed b;

    open_sized(&b, D "phase c for u in 0..size(U)\n    C[u] = U.coord[u]\n");
    bed_run(&b);
    WANT_INT(&b, "U.start", 0, 0, 0, 0, 0);
    CHECK_EQ(bed_array(&b, "C")->n, 0);
    bed_close(&b);
}

TEST(keys_and_rows_are_looked_at)
{
    static const char *const bad[][2] = {
        { "phase u for i in 0..m\n    build U(i)\n        U |= n\n", "outside its coordinates" },
        { "phase u for i in 0..m\n    build U(i)\n        U |= -1\n", "outside its coordinates" },
        { "phase u\n    build U\n        U |= m * n\n", "outside its coordinates" },
        { "phase u for i in 0..m\n    build U(i + 1)\n", "row 4 of U is outside 0..4" },
        { "phase u for i in 0..m\n    build U(i / 2)\n", "row 0 of U is built twice" },
    };

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        Bed b;
        char text[1000];

        snprintf(text, sizeof text, "%s%s", D, bad[i][0]);
        open_sized(&b, text);
        CHECK_EQ(CATCH(&b.err, interp_run(&b.arena, b.prog, b.env)), ST_RUN);
        CHECK_HAS(b.err.msg, bad[i][1]);
        bed_close(&b);
    }
}

TEST(an_axis_below_a_built_one_that_no_phase_builds_is_empty)
{
    Bed b;

    bed_open(&b, "program p(m, n) stage loops\n"
                 "axis I = m, U(I) = built : load < n, T(U) = built : load < n\n"
                 "i64 C[U], X[T], K[I]\n"
                 "phase u for i in 0..m\n    build U(i)\n        for k in 0..i\n"
                 "            U |= k\n"
                 "phase c for u in 0..size(U)\n    C[u] = T.start[u + 1]\n"
                 "phase x for t in 0..size(T)\n    X[t] = 1\n"
                 "phase k for i in 0..m\n    K[i] = size(U) * 10 + size(T)\n");
    bed_size(&b, "m", 3);
    bed_size(&b, "n", 4);
    I64(&b, "K", 0, 0, 0);
    bed_run(&b);
    WANT_INT(&b, "C", 0, 0, 0);
    WANT_INT(&b, "K", 30, 30, 30);
    CHECK_EQ(bed_array(&b, "X")->n, 0);
    bed_close(&b);
}
