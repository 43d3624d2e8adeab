/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * lower/levels/barriers.c: where lanes that are threads have to meet. */
#include "lower/lower.h"
#include "unit/ir_bed.h"

#include <stdio.h>
#include <string.h>

#define HEAD                                   \
    "program p(n) stage loops\n"               \
    "axis I = n\n"                             \
    "f32 X[I, n], Y[I, n], Z[I, n], S[I]\n"    \
    "temp work f32 Z.own[64]\n"                \
    "phase z for i in 0..n\n"

/* The phase after the pass, in the arena of the bed. */
static const char *after(Bed *b, const char *body)
{
    char text[2000];
    Kernel k = { 0 };
    Prog *p;
    snprintf(text, sizeof text, "%s%s", HEAD, body);
    p = bed_read(b, text);
    k = (Kernel){ .p = p, .phase = (Node **)p->phase, .n = p->nphase };
    lower_barriers(&k);
    ir_check(p);
    return strstr(bed_round(b, p), "phase z");
}

static int count(const char *s, const char *what)
{
    int n = 0;

    while ((s = strstr(s, what)) != NULL) {
        n++;
        s += strlen(what);
    }
    return n;
}

TEST(what_the_first_lane_stores_is_read_behind_a_barrier)
{
    Bed b;
    const char *s;

    bed_open(&b);
    s = after(&b, "    S[i] = X[i * n]\n"
                  "    vector for k in 0..n step 32\n"
                  "        Z[i * n + k] = Y[i * n + k] * S[i]\n");
    CHECK_EQ(count(s, "barrier\n"), 1);
    CHECK(strstr(s, "barrier\n    vector for k") != NULL);
    bed_close(&b);
}

TEST(elements_of_one_lane_need_no_barrier)
{
    Bed b;
    const char *s;

    bed_open(&b);
    s = after(&b, "    vector for k in 0..n step 32\n"
                  "        Z[i * n + k] = X[i * n + k]\n"
                  "    vector for k in 0..n step 32\n"
                  "        Z[i * n + k] += Y[i * n + k]\n");
    CHECK_EQ(count(s, "barrier\n"), 0);
    bed_close(&b);
}

TEST(another_lane_reads_behind_a_barrier)
{
    Bed b;
    const char *s;

    bed_open(&b);
    s = after(&b, "    vector for k in 0..64 step 32\n"
                  "        Z.own[k] = X[i * n + k]\n"
                  "    vector for k in 0..63 step 32\n"
                  "        Z[i * n + k] = Z.own[k + 1]\n");
    CHECK_EQ(count(s, "barrier\n"), 2); /* and before the next iteration stores */
    CHECK_HAS(s, "barrier\n    vector for k in 0..64 step 32\n        Z.own[k] =");
    CHECK_HAS(s, "barrier\n    vector for k in 0..63 step 32\n        Z[");
    s = after(&b, "    vector for k in 0..64 step 32\n"
                  "        Z.own[k] = X[i * n + k]\n"
                  "    let a: f32 = Z.own[0]\n"
                  "    S[i] = a\n");
    CHECK_HAS(s, "barrier\n    let a");
    bed_close(&b);
}

TEST(a_loop_does_not_overwrite_what_lanes_still_read)
{
    Bed b;
    const char *s;

    bed_open(&b);
    s = after(&b, "    vector for k in 0..n step 32\n"
                  "        Z[i * n + k] = 0.0\n"
                  "    for t in 0..n\n"
                  "        Z.own[0] = X[i * n + t]\n"
                  "        vector for k in 0..n step 32\n"
                  "            Z[i * n + k] += Z.own[0]\n");
    CHECK_EQ(count(s, "barrier\n"), 2);
    CHECK_HAS(s, "barrier\n        Z.own[0] =");
    CHECK_HAS(s, "barrier\n        vector for");
    bed_close(&b);
}

TEST(rows_that_a_loop_moves_may_meet)
{
    Bed b;
    const char *s;

    bed_open(&b);
    s = after(&b, "    vector for k in 0..64 step 32\n"
                  "        Z.own[k] = 0.0\n"
                  "    for t in 0..8\n" /* element t + 1 is lane 1's, then lane 0's */
                  "        vector for k in 0..64 - t step 32\n"
                  "            Z.own[t + k] += X[i * n + k]\n"
                  "    S[i] = Z.own[0]\n");
    CHECK_HAS(s, "    for t in 0..8\n        barrier\n        vector for");
    s = after(&b, "    vector for k in 0..64 step 32\n"
                  "        Z.own[k] = 0.0\n"
                  "    for t in 0..8\n"
                  "        vector for k in 0..64 step 32\n"
                  "            Z.own[k] += X[i * n + k]\n"
                  "    S[i] = Z.own[32]\n");
    CHECK_EQ(count(s, "barrier\n"), 2); /* and before the next iteration stores */
    CHECK_HAS(s, "barrier\n    vector for k in 0..64 step 32\n        Z.own[k] = 0");
    CHECK_HAS(s, "barrier\n    S[i]");
    bed_close(&b);
}

TEST(phases_of_single_threads_have_no_barriers)
{
    Bed b;
    const char *s;

    bed_open(&b);
    s = after(&b, "    S[i] = X[i * n]\n"
                  "    Z[i * n] = S[i]\n");
    CHECK_EQ(count(s, "barrier\n"), 0);
    bed_close(&b);
}

TEST(a_barrier_is_a_line_of_the_text)
{
    Bed b;
    const char *s;

    bed_open(&b);
    s = after(&b, "    S[i] = X[i * n]\n"
                  "    barrier\n"
                  "    vector for k in 0..n step 32\n"
                  "        Z[i * n + k] = Y[i * n + k] * S[i]\n");
    CHECK_EQ(count(s, "    barrier\n"), 1);
    bed_close(&b);
}
