/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * src/sched: what each step makes of loops, what it refuses and why, and that names, text and the
 * program's own schedule read back. */
#include "lower/lower.h"
#include "sched/sched.h"
#include "sched/step.h"
#include "unit/ir_bed.h"

static const StepTarget with_init = { .init = lower_init_nest };

static const char spmm[] = "program spmm(m, n, f)\n"
                           "axis I = m, J = compressed(I, n), K = f\n"
                           "f32 A[I, J], B[n, K], C[I, K]\n"
                           "c: C[i, k] += A[i, j] * B[j, k]\n";

/* The tree of a program at stage positions. */
static void lowered(Bed *b, const char *text)
{
    bed_open(b);
    bed_read(b, text);
    if (CATCH(&b->err, lower_positions(b->p)) != ST_OK)
        test_fail(__FILE__, __LINE__, "%s", b->err.msg);
}

static Status taken(Bed *b, const char *steps)
{
    return CATCH(&b->err, step_apply_all(b->p, steps, b->p->stage, false, &with_init); ir_check(b->p));
}

static void to_loops(Bed *b)
{
    Kernel k = { .p = b->p, .phase = (Node **)b->p->phase, .n = b->p->nphase };

    CHECK_EQ(CATCH(&b->err, lower_flatten(&k)), ST_OK);
}

/* The last phases of the program after the steps, from the one with this label on. */
static void gives(const char *text, const char *steps, const char *label, const char *want)
{
    Bed b;
    const char *at;
    char head[100];

    lowered(&b, text);
    if (taken(&b, steps) != ST_OK)
        test_fail(__FILE__, __LINE__, "%s: %s", steps, b.err.msg);
    snprintf(head, sizeof head, "\nphase %s", label);
    at = strstr(bed_round(&b, b.p), head);
    while (at != NULL && at[strlen(head)] != ' ' && at[strlen(head)] != '\n')
        at = strstr(at + 1, head);
    CHECK_STR(at == NULL ? "" : at + 1, want);
    bed_close(&b);
}

/* The step after `before` is refused with this reason, and the program stays as it is. */
static void refuses(const char *text, const char *before, const char *step, const char *why)
{
    Bed b;
    const char *was;
    StepLine *line;

    lowered(&b, text);
    CHECK_EQ(taken(&b, before), ST_OK);
    was = bed_print(&b, b.p);
    CHECK_EQ(step_lines(b.p, step, &line), 1);
    CHECK_EQ(CATCH(&b.err, step_apply(b.p, line, &with_init)), ST_ARG);
    CHECK_HAS(b.err.msg, step);
    CHECK_HAS(b.err.msg, why);
    CHECK_STR(bed_print(&b, b.p), was);
    bed_close(&b);
}

TEST(split_gives_blocks_and_a_rest_of_its_own)
{
    gives(spmm, "split c.k 16", "c",
          "phase c scheduled for i in I balance J.start\n"
          "    for j in J[i]\n"
          "        for k0 in 0..f / 16 of tiles(K, 16) as k.0\n"
          "            for k1 in 0..16 within tiles(K, 16)[k0] as k.1\n"
          "                C[i, k0 * 16 + k1] += A[j] * B[J.coord[j], k0 * 16 + k1]\n"
          "        c.tail: for k0 in f / 16..(f + 15) / 16 of tiles(K, 16) as k.0\n"
          "            for k1 in 0..f - k0 * 16 within tiles(K, 16)[k0] as k.1\n"
          "                C[i, k0 * 16 + k1] += A[j] * B[J.coord[j], k0 * 16 + k1]\n");
    gives(spmm, "split c.k 16 mask", "c",
          "phase c scheduled for i in I balance J.start\n"
          "    for j in J[i]\n"
          "        for k0 in tiles(K, 16) as k.0\n"
          "            for k1 in 0..16 within tiles(K, 16)[k0] as k.1\n"
          "                if k0 * 16 + k1 < f\n"
          "                    C[i, k0 * 16 + k1] += A[j] * B[J.coord[j], k0 * 16 + k1]\n");
    gives(spmm, "split c.j 2 mask", "c",
          "phase c scheduled for i in I balance J.start\n"
          "    for j0 in tiles(J[i], 2) as j.0\n"
          "        for j1 in 0..2 within tiles(J[i], 2)[j0] as j.1\n"
          "            if j0 * 2 + j1 < J.start[i + 1] - J.start[i]\n"
          "                for k in K\n"
          "                    C[i, k] += A[J.start[i] + (j0 * 2 + j1)] * B[J.coord[J.start[i] + "
          "(j0 * 2 + j1)], k]\n");
}

TEST(axes_of_a_statement_name_its_loops)
{
    gives(spmm, "reorder c.I c.K c.J; split c.K 4 exact", "c",
          "phase c scheduled for i in I balance J.start\n"
          "    for k0 in 0..f / 4 of tiles(K, 4) as k.0\n"
          "        for k1 in 0..4 within tiles(K, 4)[k0] as k.1\n"
          "            for j in J[i]\n"
          "                C[i, k0 * 4 + k1] += A[j] * B[J.coord[j], k0 * 4 + k1]\n");
    gives(spmm, "split c.K 4 exact; reorder c.K.1 c.K.0; fuse c.I c.J", "c",
          "phase c scheduled\n"
          "    for i_j in J as i_j\n"
          "        let i: i64 = above(J, i_j)\n"
          "        for k1 in 0..4 as k.1\n"
          "            for k0 in 0..f / 4 of tiles(K, 4) as k.0\n"
          "                C[i, k0 * 4 + k1] += A[i_j] * B[J.coord[i_j], k0 * 4 + k1]\n");
    refuses(spmm, "", "reorder c.I c.L", "there is no loop c.L");
    refuses("program p(n)\n"
            "axis I = n\n"
            "f64 X[I, I], Y[]\n"
            "y: for i in I, l in I: Y[] += X[i, l]\n",
            "", "unroll y.I", "there is no loop y.I");
}

static const char winner[] = "program p(n, m)\n"
                             "axis I = n, E(I) = seg : j < m, K = m\n"
                             "f64 X[E, K], M[I, K]; i64 W[I, K]\n"
                             "m: M[i, k] max= X[e, k] at W[i, k] = pos(e)\n";

static const char constant[] = "program p(n)\n"
                               "axis I = n, K = 12\n"
                               "f64 X[I, K], Y[I, K], Z[I]\n"
                               "y: Y[i, k] = X[i, k]\n"
                               "z: Z[i] += X[i, k]\n";

TEST(split_of_a_constant_length_may_be_exact)
{
    gives(constant, "split z.k 4 exact; split z.k.1 2; unroll z.k.1.1", "z",
          "phase z scheduled for i in I\n"
          "    for k0 in tiles(K, 4) as k.0\n"
          "        for k1_0 in 0..2 as k.1.0\n"
          "            Z[i] += X[i, k0 * 4 + k1_0 * 2]\n"
          "            Z[i] += X[i, k0 * 4 + (k1_0 * 2 + 1)]\n");
    refuses(constant, "", "split z.k 5 exact", "5 does not provably divide its number of iterations");
    refuses(spmm, "", "split c.j 4 exact", "write tail or mask");
    gives(spmm, "split c.k 4 exact", "c.exact",
          "phase c.exact\n"
          "    check f % 4 == 0 else size\n"
          "phase c scheduled for i in I balance J.start\n"
          "    for j in J[i]\n"
          "        for k0 in 0..f / 4 of tiles(K, 4) as k.0\n"
          "            for k1 in 0..4 within tiles(K, 4)[k0] as k.1\n"
          "                C[i, k0 * 4 + k1] += A[j] * B[J.coord[j], k0 * 4 + k1]\n");
    refuses(constant, "", "split z.k 0", "0 is no number from 1 to 1048576");
    refuses(constant, "", "split z.k 4 rest", "tail, mask or exact, not rest");
    refuses(constant, "", "split z.k", "write it as: split LOOP N [tail|mask|exact]");
    refuses(constant, "", "split z.q 4", "there is no loop z.q");
}

TEST(reorder_takes_loops_outwards_with_their_rest)
{
    gives(spmm, "split c.k 16 tail; reorder c.i c.k.0 c.j c.k.1; parallel c.i balance J", "c",
          "phase c scheduled for i in I balance J.start\n"
          "    for k0 in 0..f / 16 of tiles(K, 16) as k.0\n"
          "        for j in J[i]\n"
          "            for k1 in 0..16 within tiles(K, 16)[k0] as k.1\n"
          "                C[i, k0 * 16 + k1] += A[j] * B[J.coord[j], k0 * 16 + k1]\n"
          "    c.tail: for k0 in f / 16..(f + 15) / 16 of tiles(K, 16) as k.0\n"
          "        for j in J[i]\n"
          "            for k1 in 0..f - k0 * 16 within tiles(K, 16)[k0] as k.1\n"
          "                C[i, k0 * 16 + k1] += A[j] * B[J.coord[j], k0 * 16 + k1]\n");
    gives(spmm, "reorder c.k c.i c.j", "c",
          "phase c scheduled for k in K\n"
          "    for i in I\n"
          "        for j in J[i]\n"
          "            C[i, k] += A[j] * B[J.coord[j], k]\n");
    refuses(spmm, "", "reorder c.j c.i", "how far c.j goes depends on c.i, which has to be outside");
    refuses(spmm, "", "reorder c.i C.init.x0", "C.init.x0 is in another nest");
    refuses(spmm, "", "reorder c.k c.k", "c.k is named twice");
}

TEST(a_sum_that_loses_its_rows_is_not_parallel)
{
    gives(constant, "reorder z.k z.i", "z",
          "phase z scheduled\n"
          "    for k in K\n"
          "        for i in I\n"
          "            Z[i] += X[i, k]\n");
    gives(constant, "reorder y.k y.i", "y",
          "phase y scheduled for k in K\n"
          "    for i in I\n"
          "        Y[i, k] = X[i, k]\n"
          "phase z for i in I\n"
          "    for k in K\n"
          "        Z[i] += X[i, k]\n");
    refuses(constant, "reorder z.k z.i", "parallel z.k",
            "two iterations of z.k may write one element of Z, both in z");
    refuses(constant, "", "parallel z.k", "only the outermost loop of a phase can be parallel");
    refuses(spmm, "", "parallel c.i balance I", "I does not weigh its iterations; write balance J");
    refuses(spmm, "", "parallel c.i weighed J", "`balance` and an axis come after the loop");
}

/* Two tables that each have values twice: only their pairs tell the row. */
#define PAIRS(rows)                                                                                \
    "program p(n)\naxis B = n, Q = rows x y -> c { " rows " }\nf32 X[B, 4], Z[B, 2, 2]\n"            \
    "z: Z[b, x(q), y(q)] += c[q] * X[b, pos(q)]\n"

TEST(a_row_of_a_constant_relation_is_told_by_all_of_its_coordinates)
{
    gives(PAIRS("0 0 -> 1, 0 1 -> 2, 1 0 -> 3, 1 1 -> 4"), "reorder z.q z.b; parallel z.q", "z",
          "phase z scheduled for q in Q\n"
          "    for b in B\n"
          "        check 0 <= q and q < 4 else index\n"
          "        check 0 <= Q.x[q] and Q.x[q] < 2 else index\n"
          "        check 0 <= Q.y[q] and Q.y[q] < 2 else index\n"
          "        Z[b, Q.x[q], Q.y[q]] += c[q] * X[b, q]\n");
    refuses(PAIRS("0 0 -> 1, 0 1 -> 2, 1 0 -> 3, 0 1 -> 4"), "reorder z.q z.b", "parallel z.q",
            "two iterations of z.q may write one element of Z, both in z");
}

/* Which entry wins depends on the order of entries, not on that of rows and columns. */
TEST(first_winners_stay_first)
{
    gives(winner, "reorder m.k m.i m.e", "m",
          "phase m scheduled for k in K\n"
          "    for i in I\n"
          "        for e in E[i]\n"
          "            M[i, k] max= X[e, k] at W[i, k] = e, M.hit[i, k] = 1\n");
    refuses("program p(n, m)\naxis I = n, K = m\nf64 X[I, K], M[]; i64 W[]\n"
            "a: M[] max= X[i, k] at W[] = i\n",
            "", "reorder a.k a.i",
            "iterations of a.i and a.k may write one element of M, and the order counts");
}

TEST(fuse_gives_one_loop_over_all_iterations)
{
    gives(spmm, "fuse c.i c.j", "c",
          "phase c scheduled\n"
          "    for i_j in J as i_j\n"
          "        let i: i64 = above(J, i_j)\n"
          "        for k in K\n"
          "            C[i, k] += A[i_j] * B[J.coord[i_j], k]\n");
    gives(constant, "fuse z.i z.k; split z.i_k 5 mask", "z",
          "phase z scheduled\n"
          "    for i_k0 in 0..(n * 12 + 4) / 5 as i_k.0\n"
          "        for i_k1 in 0..5 as i_k.1\n"
          "            if i_k0 * 5 + i_k1 < n * 12\n"
          "                let i: i64 = (i_k0 * 5 + i_k1) / 12\n"
          "                let k: i64 = (i_k0 * 5 + i_k1) % 12\n"
          "                Z[i] += X[i, k]\n");
    refuses(spmm, "", "fuse c.i c.k", "c.k is not right inside the other");
    refuses(winner, "", "fuse m.e m.k m.i", "write it as: fuse OUTER INNER");
}

TEST(unroll_takes_loops_of_constant_length)
{
    refuses(spmm, "", "unroll c.k", "how often it runs is no constant; split it, and peel the rest");
    refuses("program p(n)\naxis I = n, K = 2000\nf64 X[I, K], Y[I, K]\ny: Y[i, k] = X[i, k]\n", "",
            "unroll y.k", "2000 iterations of");
}

TEST(peel_cuts_the_rest_off_where_it_is_asked_for)
{
    refuses(spmm, "", "peel c.k", "it is no loop over blocks of which the last may be shorter");
    gives(spmm, "split c.i 2; peel c.i.0; unroll c.i.1", "c",
          "phase c scheduled for i0 in 0..m / 2 of tiles(I, 2) as i.0\n"
          "    for j in J[i0 * 2]\n"
          "        for k in K\n"
          "            C[i0 * 2, k] += A[j] * B[J.coord[j], k]\n"
          "    for j in J[i0 * 2 + 1]\n"
          "        for k in K\n"
          "            C[i0 * 2 + 1, k] += A[j] * B[J.coord[j], k]\n"
          "phase c.tail scheduled for i0 in 0..(m + 1) / 2 - m / 2 as i.0\n"
          "    for i1 in 0..m - (i0 + m / 2) * 2 within tiles(I, 2)[i0 + m / 2] as i.1\n"
          "        for j in J[(i0 + m / 2) * 2 + i1]\n"
          "            for k in K\n"
          "                C[(i0 + m / 2) * 2 + i1, k] += A[j] * B[J.coord[j], k]\n");
}

/* At stage loops: the last phase after steps of both stages. */
static void gives_lanes(const char *text, const char *first, const char *then, const char *want)
{
    Bed b;
    const char *at = NULL, *next;

    lowered(&b, text);
    CHECK_EQ(taken(&b, first), ST_OK);
    to_loops(&b);
    if (taken(&b, then) != ST_OK)
        test_fail(__FILE__, __LINE__, "%s: %s", then, b.err.msg);
    next = bed_round(&b, b.p);
    while ((next = strstr(next, "\nphase ")) != NULL)
        at = ++next;
    CHECK_STR(at, want);
    bed_close(&b);
}

static void refuses_lanes(const char *text, const char *step, const char *why)
{
    Bed b;
    const char *was;

    lowered(&b, text);
    to_loops(&b);
    was = bed_print(&b, b.p);
    CHECK_EQ(taken(&b, step), ST_ARG);
    CHECK_HAS(b.err.msg, why);
    CHECK_STR(bed_print(&b, b.p), was);
    bed_close(&b);
}

TEST(vectorize_runs_in_lanes_and_the_rest_too)
{
    gives_lanes(spmm, "split c.k 16; reorder c.i c.k.0 c.k.1 c.j", "vectorize c.k.1 8",
                "phase c scheduled for i in I balance J.start\n"
                "    for k0 in 0..f / 16 of tiles(K, 16) as k.0\n"
                "        vector for k1 in 0..16 within tiles(K, 16)[k0] step 8 by 2 as k.1\n"
                "            for j in J[i]\n"
                "                C[i * f + k0 * 16 + k1] += A[j] * B[J.coord[j] * f + k0 * 16 + k1]"
                "\n"
                "    c.tail: for k0 in f / 16..(f + 15) / 16 of tiles(K, 16) as k.0\n"
                "        vector for k1 in 0..f - k0 * 16 within tiles(K, 16)[k0] step 8 as k.1\n"
                "            for j in J[i]\n"
                "                C[i * f + k0 * 16 + k1] += A[j] * B[J.coord[j] * f + k0 * 16 + k1]"
                "\n");
}

TEST(vectorize_gives_a_sum_over_lanes_a_register)
{
    gives_lanes(constant, "", "vectorize z.k 4 by 2",
                "phase z scheduled for i in I\n"
                "    reg sum: f64 = 0.0\n"
                "    vector for k in K step 4 by 2\n"
                "        sum += X[i * 12 + k]\n"
                "    Z[i] += sum\n");
    gives_lanes(constant, "", "vectorize z.k 4 by 3",
                "phase z scheduled for i in I\n"
                "    reg sum: f64 = 0.0\n"
                "    vector for k in K step 4 by 3\n"
                "        sum += X[i * 12 + k]\n"
                "    Z[i] += sum\n");
}

TEST(vectorize_says_what_has_no_lanes)
{
    refuses_lanes(spmm, "vectorize c.j 8", "the elements of B that it reads do not lie side by side");
    refuses_lanes(spmm, "vectorize c.k 1", "1 is no number from 2 to 64");
    refuses_lanes(spmm, "vectorize c.k 8 by", "write it as: vectorize");
    refuses_lanes("program p(n)\naxis I = n\nf64 X[I], Y[I]\ny: Y[i] = log(X[i])\n",
                  "vectorize y.i 8", "log of f64 has no form in lanes");
    refuses_lanes("program p(n)\naxis I = n\ni64 X[I], Y[I]\ny: Y[i] = X[i]\n", "vectorize y.i 8",
                  "its stores must be all f32 or all f64");
    refuses_lanes("program p(n)\naxis I = n\nf64 X[I], Y[I]\ny: Y[i] = X[i] if X[i] > 0\n",
                  "vectorize y.i 8", "a branch or a check differs between lanes");
}

/* Names go into the text and come back, so that a tree that was read can be scheduled on. */
TEST(a_tree_that_was_read_has_the_names_that_it_was_given)
{
    Bed b;

    lowered(&b, spmm);
    CHECK_EQ(taken(&b, "split c.k 16 mask; split c.k.1 4"), ST_OK);
    bed_read(&b, bed_print(&b, b.p));
    CHECK_EQ(taken(&b, "reorder c.i c.k.0 c.k.1.0 c.j c.k.1.1; unroll c.k.1.1"), ST_OK);
    CHECK(b.p->nphase == 1 && b.p->phase[0]->scheduled);
    bed_close(&b);
}

TEST(steps_of_the_other_stage_wait)
{
    Bed b;
    StepLine *line;

    lowered(&b, spmm);
    CHECK_EQ(step_lines(b.p, "tile 8; split c.k 4 # four\n;vectorize  c.k.1   4", &line), 2);
    CHECK_STR(line[1].text, "vectorize c.k.1 4");
    CHECK_EQ(line[1].nword, 2);
    CHECK_EQ(CATCH(&b.err, step_apply(b.p, &line[1], &with_init)), ST_ARG);
    CHECK_HAS(b.err.msg, "it works at stage loops, and the program is at stage positions");
    bed_close(&b);
}

TEST(a_program_has_a_schedule_of_its_own)
{
    Bed b;
    const char *text = "program p(n)\naxis I = n\nf64 X[I], Y[I]\ny: Y[i] = X[i]\n"
                       "schedule  # of y\n  split   y.i 4; unroll y.i.1 # four\n\nparallel y.i.0";
    Prog *q;

    bed_open(&b);
    CHECK_HAS(bed_canonical(&b, text),
              "schedule\n    split y.i 4\n    unroll y.i.1\n    parallel y.i.0\n");
    q = ir_copy(&b.arena, b.p);
    CHECK_STR(q->sched, "split y.i 4\nunroll y.i.1\nparallel y.i.0");
    CHECK(ir_equal(b.p, q));
    q->sched = NULL;
    CHECK(!ir_equal(b.p, q) && ir_hash(b.p) != ir_hash(q));
    CHECK_STR(bed_read(&b, "program p()\nschedule")->sched, "");
    bed_close(&b);
}
