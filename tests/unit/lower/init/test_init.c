/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Pass init (lower/init): initial values are attributes of arrays until it places them in
 * registers, in first stores, or in loops of their own. */
#include "unit/pass_bed.h"

#define SPMM                                                                         \
    "program spmm(m, n, f)\naxis I = dense(m), J = compressed(I, n), K = dense(f)\n" \
    "f32 A[I, J], B[n, K], C[I, K]\nc: C[i, k] += A[i, j] * B[j, k]\n"

#define HEAD                                                                   \
    "program d(n)\n"                                                           \
    "axis B = n, U = 3, W = 8, Q = rows m1 m3 -> c { 0 0 -> 0.5, 1 1 -> 2 }\n" \
    "f32 X[B, U, 2], G[B, W, 2], D[B, U, W], H[B, 10]\n"

/* The text after the pass, which has this part, and no initial value any more. */
static const char *placed(const char *program, const char *part)
{
    const char *text = pass_text("init", NULL, program);

    CHECK_EQ(pass_count(text, "\ninit "), 0);
    CHECK_HAS(text, part);
    return text;
}

TEST(an_initial_value_is_an_attribute_until_the_pass)
{
    const char *text = pass_text("accumulate_outer", NULL, SPMM);

    CHECK_HAS(text, "\ninit C = 0.0\nphase c ");
    CHECK_EQ(pass_count(text, "C.init"), 0);
}

TEST(a_register_starts_with_the_initial_value)
{
    CHECK_EQ(pass_count(placed(SPMM, "reg v: f32x8 = 0.0\n"), "C.init"), 0);
}

TEST(a_register_starts_with_the_value_of_its_element)
{
    const char *text = placed("program p(m, f)\naxis I = m, E(I) = seg, K = f\n"
                              "f32 X[E, K], S[I, K] fill 7\ns: S[i, k] += X[e, k]\n",
                              "select(E.start[i] < E.start[i + 1], 0.0, 7.0)\n");

    CHECK_EQ(pass_count(text, "S.init"), 0);
}

TEST(the_first_store_sets_an_element)
{
    const char *text =
        placed(HEAD "d: for b, u, w, q: D[b, u, w] += G[b, w, m3(q)] * c[q] * X[b, u, m1(q)]\n",
               "D[");

    CHECK_EQ(pass_count(text, "D.init"), 0);
    CHECK_EQ(pass_count(text, "+="), 0);
}

TEST(a_row_that_iterations_reach_twice_is_initialised_at_its_start)
{
    const char *text =
        placed(HEAD "h: H[b, u + w] += X[b, u, 0] * G[b, w, 0]\n", "    H.init: for x in 0..10\n");

    CHECK_HAS(text, "+=");
    CHECK_EQ(pass_count(text, "phase H.init"), 0);
}

/* Some elements get no term, so that no store reaches them. */
TEST(other_elements_get_loops_before_the_first_phase_that_uses_them)
{
    const char *text = placed("program p(m, f)\naxis I = m, K = f\n"
                              "f32 X[I, K], Y[I], Z[I], D[I, m]\n"
                              "y: Y[i] = X[i, 0]\nd: D[i, i] += X[i, k]\nz: Z[i] = X[i, 1]\n",
                              "phase D.init for x0 in I\n"
                              "    for x1 in 0..m\n"
                              "        D[x0 * m + x1] = 0.0\n"
                              "phase d ");

    CHECK(strstr(text, "phase y") < strstr(text, "phase D.init"));
}

TEST(what_accompanies_an_array_is_in_its_loops)
{
    placed("program p(n, m, f)\naxis I = n, E(I) = seg : j < m, K = f\n"
           "f16 X[m, K], M[I, K] fill 3; i64 W[I, K]\n"
           "m: M[i, k] max= X[j(e), k] at W[i, k] = pos(e)\n",
           "        M.acc[x0 * f + x1] = -inf\n        M.hit[x0 * f + x1] = 0\nphase ");
}

TEST(what_the_caller_gives_has_no_initial_value)
{
    const char *text =
        pass_text("positions", NULL,
                  "program spmm(m, n, f)\naxis I = dense(m), J = compressed(I, n), K = dense(f)\n"
                  "f32 A[I, J], B[n, K]; inout f32 C[I, K]\nc: C[i, k] += A[i, j] * B[j, k]\n");

    CHECK_EQ(pass_count(text, "init"), 0);
}

TEST(an_array_that_no_phase_uses_gets_its_value_if_it_is_a_result)
{
    const char *text = placed("program p(m) stage loops\naxis I = m\ntemp f32 T[I]; f32 Y[I]\n"
                              "init T = 1.0\ninit Y = 2.0\n",
                              "Y[x0] = 2.0\n");

    CHECK_EQ(pass_count(text, "T["), 1); /* its declaration */
}

TEST(a_step_that_names_the_loops_places_them)
{
    const char *text = pass_text("steps", "split C.init.x1 4 exact", SPMM);

    CHECK_EQ(pass_count(text, "\ninit "), 0);
    CHECK_HAS(text, "phase C.init scheduled for x0 in I\n");
    CHECK_HAS(text, " * 4 + x11] = 0.0\n");
    text = pass_text("lanes", "vectorize C.init.x1 8", SPMM);
    CHECK_HAS(text, "    vector for x1 in K step 8\n");
    text = pass_text("steps", "reorder c.i c.k c.j; decompose_reduction c at c.k", SPMM);
    CHECK_EQ(pass_count(text, "\ninit "), 0);
    CHECK_HAS(text, "        c.init: C[i, k] = 0.0\n");
}

TEST(a_step_that_is_refused_says_why)
{
    CHECK_HAS(pass_error("steps", "reorder c.i C.init.x0", SPMM), "C.init.x0 is in another nest");
    CHECK_HAS(pass_error("steps", "decompose_reduction c at c.i; decompose_reduction c at c.i",
                         SPMM),
              "C has no initial value that could move");
}
