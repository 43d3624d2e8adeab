/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * src/sched: steps that are refused, each with its reason; the program stays as it is. */
#include "lower/lower.h"
#include "sched/step.h"
#include "unit/ir_bed.h"

static const StepTarget with_init = { .init = lower_init_nest };

static const char spmm[] = "program spmm(m, n, f)\n"
                           "axis I = m, J = compressed(I, n), K = f\n"
                           "f32 A[I, J], B[n, K], C[I, K]\n"
                           "c: C[i, k] += A[i, j] * B[j, k]\n";

static const char blocks[] = "program bsr(m, n, f)\n"
                             "axis I = m, J(I) = seg : load < n sorted unique\n"
                             "axis P = 2, Q = 3, K = f\n"
                             "f32 A[J, P, Q], X[n, Q, K], Y[I, P, K]\n"
                             "y: Y[i, p, k] += A[j, p, q] * X[j, q, k]\n";

static const char wide[] = "program wide(n)\n"
                           "axis I = n, K = 100\n"
                           "f32 X[I, K], Y[I, K]\n"
                           "y: Y[i, k] = X[i, k]\n";

static const char temps[] = "program temps(n)\n"
                            "axis I = 4, P = 2\n"
                            "f32 X[I], W[I, P], Z[I], V[I, P], U[I, P]\n"
                            "temp f32 T[I], S[I, P]\n"
                            "t: T[i] = X[i] * 2\n"
                            "s: S[i, p] = W[i, p] * 2\n"
                            "z: Z[i] = T[i] + T[0]\n"
                            "v: V[i, p] += S[i, p]\n"
                            "u: U[i, p] = W[i, p]\n";

static const char looked_up[] = "program looked_up(n, m) stage positions\n"
                                "axis I = n, K = m\n"
                                "i64 P[I]; f32 X[m, K]; inout f32 Y[I, K]\n"
                                "phase y for i in 0..n\n"
                                "    check 0 <= P[i] and P[i] < m else index\n"
                                "    for k in 0..m\n"
                                "        Y[i, k] += X[P[i], k]\n";

static const char sums[] = "program sums(m, n)\n"
                           "axis I = m, J = n, P = 2\n"
                           "f64 A[I, J, P], Y[I]\n"
                           "y: Y[i] += A[i, j, p]\n";

static const char stored[] = "program changed(n) stage positions\n"
                             "axis I = n\n"
                             "inout i64 Q[I]; i64 P[I]; f32 X[I], Y[I], Z[I]\n"
                             "phase y for i in 0..n\n"
                             "    P[i] = Q[i]\n"
                             "    check 0 <= P[i] and P[i] < n else index\n"
                             "    Y[i] = X[P[i]]\n"
                             "phase z for i in 0..n\n"
                             "    Z[i] = X[i]\n"
                             "    let v: i64 = Q[i]\n"
                             "    check 0 <= v and v < n else index\n"
                             "    Z[i] += X[v]\n"
                             "phase x\n"
                             "    for i in 1..n\n"
                             "        Q[i] = 1\n";

static const char branches[] = "program branches(n, m) stage positions\n"
                               "axis I = n, J = compressed(I, m), K = m\n"
                               "f32 A[I, J]; inout f32 X[I, K], Y[I, K]; i64 Q[I]\n"
                               "phase y for i in 0..n\n"
                               "    if Q[i] > 0\n"
                               "        for j in J.start[i]..J.start[i + 1]\n"
                               "            for k in 0..m\n"
                               "                Y[i, k] += A[j] * X[i, k]\n"
                               "phase x for i in 0..n\n"
                               "    for k in 0..m\n"
                               "        let to: i64 = min(k, 3)\n"
                               "        for l in 0..to\n"
                               "            X[i, k] += 1\n"
                               "    for h in 0..m\n"
                               "        X[i, h] += 1\n"
                               "phase w for i in 0..n\n"
                               "    for k in 0..m\n"
                               "        if Q[i] > 0\n"
                               "            for j in J.start[i]..J.start[i + 1]\n"
                               "                Y[i, k] += A[j]\n";

/* Iteration i + 1 begins where iteration i ends: one element is of both. */
static const char next[] = "program next(n)\n"
                           "axis I = n, T = 2\n"
                           "f32 X[I], Y[n + 1], Z[2 * n + 2]\n"
                           "y: for i, t: Y[i + t] += X[i]\n"
                           "z: for i, t: Z[2 * i + 2 * t] += X[i]\n";

typedef struct Row {
    const char *text, *before, *step, *why;
} Row;

static const Row rows[] = {
    { spmm, "", "cache_read c A by c.j", "`at` and a loop come after the array, not by" },
    { spmm, "", "cache_read c A at C.init.x0", "c reads no A in C.init.x0" },
    { spmm, "", "cache_read c A", "write it as: cache_read LABEL ARRAY at LOOP" },
    { spmm, "", "compute_at c by c.j", "`at` and a loop come after the label, not by" },
    { spmm, "", "decompose_reduction c by c.i", "`at` and a loop come after the label, not by" },
    { spmm, "", "prefetch c B by c.j 8", "`at` and a loop come after the array, not by" },
    { spmm, "", "pack c B at 4", "`by` and a number come after the array, not at" },
    { spmm, "", "pack d B by 4", "no phase d reads B" },
    { spmm, "", "parallel c.i balance", "the axis is missing after balance" },
    { spmm, "", "merge C.init", "write it as: merge PHASE PHASE" },
    { spmm, "", "merge C.init c by none", "none is no number from 1 to 4096" },
    { spmm, "", "tensorize c.i", "it works at stage loops" },
    { spmm, "", "reorder c.i C.init.x0", "C.init.x0 is in another nest" },
    { spmm, "split c.i 2 mask", "decompose_reduction c at c.j", "a branch is around the loop" },
    { blocks, "unroll y.p", "decompose_reduction y at y.k", "several stores write Y" },
    { blocks, "unroll y.p", "rfactor y.k", "does not add to one element again and again" },
    { wide, "unroll y.k", "cache_read y X at y.i", "it would take more than 64 registers" },
    { temps, "", "compute_at t at z.i", "z.i reads several elements of T" },
    { temps, "unroll s.p", "compute_inline s", "is written by several stores" },
    { temps, "unroll v.p", "rfactor v.i", "more than one store is inside it" },
    { looked_up, "", "reorder y.k y.i", "a check would not run where a loop around it is empty" },
    { sums, "unroll y.p", "rfactor y.j", "more than one store is inside it" },
    { sums, "cache_write y Y at y.i", "rfactor y.j", "it has registers" },
    { stored, "", "cache_read y X at y.i", "depends on values that the phase stores" },
    { stored, "", "cache_read z X at z.i", "the index of X depends on v, which is defined only inside" },
    { next, "unroll y.t", "parallel y.i", "two iterations of y.i may write one element of Y" },
    { next, "unroll z.t", "parallel z.i", "two iterations of z.i may write one element of Z" },
    { stored, "", "parallel x.i", "the loop of a parallel phase begins at 0" },
    { branches, "", "reorder y.j y.i", "how far y.j goes depends on y.i" },
    { branches, "", "reorder x.l x.k", "is known only inside loops that follow it" },
    { branches, "", "reorder x.h x.i", "x.i holds more than the loops to be reordered" },
    { branches, "", "reorder x.h x.k", "x.k is in another nest" },
    { branches, "", "reorder w.j w.k", "how far w.j goes may be looked up only inside a branch" },
    { branches, "", "merge y x", "y reads X, which x writes" },
    { branches, "", "merge y none", "no phase is called none" },
    { branches, "", "merge x y", "y does not come after x" },
    { branches, "", "decompose_reduction y at y.i", "Y has no initial value that could move" },
    { branches, "", "pack y X by 4", "X is written in x" },
    { branches, "", "compute_inline y", "y makes no temp" },
    { branches, "", "fuse x.i x.k", "more than x.k is in the outer loop" },
    { branches, "", "parallel y.i balance K", "K does not weigh its iterations" },
    { branches, "", "parallel y.i by J", "`balance` and an axis come after the loop, not by" },
    { branches, "", "split y.j 2 all", "the remainder is tail, mask or exact, not all" },
    { branches, "", "unroll x.l", "how often it runs is no constant" },
};

static void refused(const Row *r)
{
    Bed b;
    const char *was;
    StepLine *line;
    Status st;

    bed_open(&b);
    bed_read(&b, r->text);
    if (b.p->stage == STAGE_COORDINATES && CATCH(&b.err, lower_positions(b.p)) != ST_OK)
        test_fail(__FILE__, __LINE__, "%s", b.err.msg);
    st = CATCH(&b.err, step_apply_all(b.p, r->before, b.p->stage, false, &with_init));
    if (st != ST_OK)
        test_fail(__FILE__, __LINE__, "%s: %s", r->before, b.err.msg);
    was = bed_print(&b, b.p);
    CHECK_EQ(step_lines(b.p, r->step, &line), 1);
    st = CATCH(&b.err, step_apply(b.p, line, &with_init));
    if (st != ST_ARG || strstr(b.err.msg, r->why) == NULL || strstr(b.err.msg, r->step) == NULL)
        test_fail(__FILE__, __LINE__, "%s; %s: %s", r->before, r->step,
                  st == ST_OK ? "is taken" : b.err.msg);
    CHECK_STR(bed_print(&b, b.p), was);
    bed_close(&b);
}

TEST(a_tile_is_for_a_machine)
{
    Kernel k;
    Bed b;
    StepLine *line;

    bed_open(&b);
    bed_read(&b, spmm);
    CHECK_EQ(CATCH(&b.err, k = *lower_positions(b.p); lower_flatten(&k)), ST_OK);
    CHECK_EQ(step_lines(b.p, "tensorize c.i", &line), 1);
    CHECK_EQ(CATCH(&b.err, step_apply(b.p, line, NULL)), ST_ARG);
    CHECK_HAS(b.err.msg, "no machine is known to have registers for it");
    bed_close(&b);
}

TEST(refused_steps_have_a_reason)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        refused(&rows[i]);
}
