/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * src/interp/loops.c: trees of loops, run from their text. */
#include "unit/interp_bed.h"

#include <math.h>
#include <stdio.h>

#define SPMM                                    \
    "program spmm(m, n, f) stage loops\n"       \
    "axis I = m, J = compressed(I, n)\n"        \
    "f64 A[I, J], B[n, f], C[I, f]\n"           \
    "phase C.init for x in 0..m\n"              \
    "    vector for y in 0..f step 8\n"         \
    "        C[x * f + y] = 0\n"                \
    "phase c for i in 0..m balance J.start\n"   \
    "    for j in J.start[i]..J.start[i + 1]\n" \
    "        let a: f64 = A[j]\n"               \
    "        for k in 0..f\n"                   \
    "            C[i * f + k] += a * B[J.coord[j] * f + k]\n"

static void bind_spmm(Bed *b)
{
    bed_size(b, "m", 3);
    bed_size(b, "n", 2);
    bed_size(b, "f", 2);
    I32(b, "J.start", 0, 2, 2, 3);
    I64(b, "J.coord", 0, 1, 1);
    F64(b, "A", 2, 3, 5);
    F64(b, "B", 1, 10, 100, 1000);
}

TEST(a_tree_computes_what_its_text_says)
{
    Bed b;

    bed_open(&b, SPMM);
    bind_spmm(&b);
    bed_run(&b);
    WANT(&b, "C", 302, 3020, 0, 0, 500, 5000);
    bed_close(&b);
}

TEST(a_loop_runs_over_rows_that_there_are)
{
    Bed b;

    bed_open(&b, "program p(m, n) stage loops\n"
                 "axis I = m, J = compressed(I, n), T(I) = one : r < n, L = 3\n"
                 "f64 Y[L]\n"
                 "phase y for l in L\n"
                 "    Y[l] = 0\n"
                 "    for j in J[T.r[l % 1]]\n"
                 "        Y[l] += 1\n");
    bed_size(&b, "m", 2);
    bed_size(&b, "n", 4);
    I64(&b, "J.start", 0, 1, 3);
    I64(&b, "J.coord", 0, 1, 2);
    I64(&b, "T.r", 1, 0);
    bed_run(&b);
    WANT(&b, "Y", 2, 2, 2);
    I64(&b, "T.r", 3, 0);
    bed_fails(&b, ST_RUN, "y: index 3 of J.start is outside 0..3");
    bed_close(&b);
}

TEST(elements_hold_their_initial_value_before_all_phases)
{
    Bed b;

    bed_open(&b, "program p(m, n, f) stage loops\n"
                 "axis I = m, J = compressed(I, n)\n"
                 "f64 A[I, J], B[n, f], C[I, f]; i64 W[f, I]\n"
                 "init C[x, y] = select(J.start[x] < J.start[x + 1], x * 10 + y, -1.0)\n"
                 "init W = 7\n"
                 "phase c for i in 0..m\n"
                 "    C[i * f] += 100\n");
    bind_spmm(&b);
    bed_run(&b);
    WANT(&b, "C", 100, 1, 99, -1, 120, 21);
    WANT_INT(&b, "W", 7, 7, 7, 7, 7, 7);
    bed_close(&b);
}

/* One at a time, the last first; and counts them. */
static void backwards(void *with, int64_t n, InterpRange *run, void *job)
{
    int64_t *count = with;

    while (n-- > 0) {
        run(job, n, n + 1);
        ++*count;
    }
}

TEST(phases_may_be_cut_and_run_in_any_order)
{
    Bed b;
    int64_t count = 0;

    bed_open(&b, SPMM);
    bind_spmm(&b);
    interp_loops(&b.arena, b.prog, b.env, backwards, &count);
    CHECK_EQ(count, 6);
    WANT(&b, "C", 302, 3020, 0, 0, 500, 5000);
    bed_close(&b);
}

/* Two parts of two rows each, which add to the same element of their own; then a third. */
#define PARTS(last)                                                                   \
    "program p(m) stage loops\n"                                                     \
    "axis O = 1, P = ragged(O), S(P) = seg : part\nf64 X[m], Y[3]\n"                \
    "phase y0 for k in 0..3\n    Y[k] = 0\n"                                        \
    "phase y for i in 0..m parts S.part\n    Y[" last "] += X[i]\n"

static void bind_parts(Bed *b)
{
    bed_size(b, "m", 5);
    I64(b, "P.start", 0, 3);
    I64(b, "S.start", 0, 2, 4, 5);
    I64(b, "S.part", 0, 0, 1, 1, 2);
    F64(b, "X", 1, 2, 4, 8, 16);
}

TEST(iterations_of_a_part_may_meet_in_an_element)
{
    Bed b;

    bed_open(&b, PARTS("S.part[i]"));
    bind_parts(&b);
    bed_run(&b);
    WANT(&b, "Y", 3, 12, 16);
    bed_close(&b);
    bed_open(&b, PARTS("i / 3"));
    bind_parts(&b);
    bed_fails(&b, ST_RUN, "y: element 0 of Y is");
    bed_close(&b);
    bed_open(&b, PARTS("S.part[i]"));
    bind_parts(&b);
    I64(&b, "S.part", 0, 2, 1, 1, 2);
    bed_fails(&b, ST_RUN, "y: iteration 1 has no part in S.part");
    bed_close(&b);
    bed_open(&b, PARTS("S.part[i]"));
    bind_parts(&b);
    bed_size(&b, "m", 6);
    F64(&b, "X", 1, 2, 4, 8, 16, 32);
    bed_fails(&b, ST_RUN, "y: iteration 5 has no part in S.part");
    bed_close(&b);
}

TEST(structure_is_validated_first)
{
    Bed b;

    bed_open(&b, SPMM);
    bind_spmm(&b);
    I64(&b, "J.coord", 0, 1, 2);
    bed_fails(&b, ST_BIND, "J.coord is 2 at position 2");
    bed_close(&b);
}

TEST(what_is_not_bound_is_named)
{
    Bed b;

    bed_open(&b, SPMM);
    bind_spmm(&b);
    *bed_array(&b, "B") = (Array){ 0 };
    bed_fails(&b, ST_BIND, "B is not given; bind 4 elements of f64");
    F64(&b, "B", 1, 2);
    bed_fails(&b, ST_BIND, "B is 4 elements of f64, but the given array is 2 of f64");
    bed_close(&b);
}

#define HEAD(stage)                                                                   \
    "program p(m) stage " stage "\n"                                                  \
    "axis I = m, E(I) = seg : j < 9 sorted, F(I) = 2 : k = i + f < 3 unique padded\n" \
    "axis O(I) = 2 : a = i + o + m - pos(i), b = a + 0\n"                             \
    "axis S = 2, MS(S) = {1, 3}, U(S) = {4, 2}, G(I) = seg, H(I) = seg\n"             \
    "f64 X[I], Y[I], D[2, 3], Z[2, S, MS, U], R[I, G, H]\n"                           \
    "f32 V[I]\n"                                                                      \
    "i64 W[I], K[I]\n"                                                                \
    "i32 N[I]\n"

static void open_tree(Bed *b, const char *stage, const char *tree)
{
    char text[4000];

    snprintf(text, sizeof text, "%s%s",
             strcmp(stage, "loops") == 0 ? HEAD("loops") : HEAD("positions"), tree);
    bed_open(b, text);
    bed_size(b, "m", 3);
    I64(b, "E.start", 0, 2, 2, 4);
    I64(b, "E.j", 1, 5, 2, 7);
    I64(b, "G.start", 0, 1, 1, 3);
    I64(b, "H.start", 0, 2, 3, 5);
    F64(b, "X", 1, 2, 4);
    F32(b, "V", 1.5, 2, 1);
    I64(b, "K", 5, -6, 7);
    F64(b, "Y", 0, 0, 0);
    I64(b, "W", 0, 0, 0);
    I32(b, "N", 0, 0, 0);
    F64(b, "D", 1, 2, 3, 4, 5, 6);
    F64(b, "R", 0, 0, 0, 0, 0, 0);
    F64(b, "Z", 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19);
}

#define LOOPS(b, ...) open_tree(b, "loops", __VA_ARGS__)
#define POSITIONS(b, ...) open_tree(b, "positions", __VA_ARGS__)
#define EACH "phase y for i in 0..m\n"

TEST(an_element_has_one_index_a_dimension_at_positions)
{
    Bed b;

    POSITIONS(&b, EACH "    Y[i] = D[1, i] + Z[1, Z.S.base[1] + i]\n");
    bed_run(&b);
    WANT(&b, "Y", 4 + 14, 5 + 15, 6 + 16);
    bed_close(&b);
}

TEST(each_index_stays_in_its_own_dimension)
{
    Bed b;

    POSITIONS(&b, EACH "    Y[i] = D[0, i + 1]\n");
    bed_fails(&b, ST_RUN, "y: index 3 of D is outside 0..3");
    bed_close(&b);
    LOOPS(&b, EACH "    Y[i] = D[3 * i]\n");
    bed_fails(&b, ST_RUN, "y: index 6 of D is outside 0..6");
    bed_close(&b);
    LOOPS(&b, EACH "    Y[i - 1] = 1\n");
    bed_fails(&b, ST_RUN, "y: index -1 of Y is outside 0..3");
    bed_close(&b);
    LOOPS(&b, EACH "    Y[i] = E.start[i + 2]\n");
    bed_fails(&b, ST_RUN, "y: index 4 of E.start is outside 0..4");
    bed_close(&b);
}

TEST(tables_of_run_time_branches_are_made)
{
    Bed b;

    LOOPS(&b, EACH "    Y[i] = R.I.base[i + 1]\n");
    bed_run(&b);
    WANT(&b, "Y", 2, 2, 6);
    bed_close(&b);
}

TEST(a_search_finds_the_first_entry_with_the_value)
{
    Bed b;

    LOOPS(&b, EACH "    Y[i] = find(E, E.start[i], E.start[i + 1], 5)\n"
                   "    W[i] = find(F, 2 * i, 2 * i + 2, 2, i)\n"
                   "    N[i] = find(F, 2 * i, 2 * i + 2, 3, i)\n");
    bed_run(&b);
    WANT(&b, "Y", 1, -1, -1);
    WANT_INT(&b, "W", -1, 3, 4);
    WANT_INT(&b, "N", -1, -1, -1); /* 2 + 1 is padding */
    bed_close(&b);
}

TEST(computed_coordinates_are_found_through_their_context)
{
    Bed b;

    LOOPS(&b, EACH "    W[i] = find(O, 2 * i, 2 * i + 2, m + 1, m + 1, i, i)\n");
    bed_run(&b);
    WANT_INT(&b, "W", 1, 3, 5);
    bed_close(&b);
}

TEST(a_search_stays_inside_its_axis)
{
    Bed b;

    LOOPS(&b, EACH "    Y[i] = find(E, 3, 9, 8)\n");
    bed_fails(&b, ST_RUN, "position 4 of axis E is outside 0..4");
    bed_close(&b);
    LOOPS(&b, EACH "    Y[i] = above(E, i + 2)\n");
    bed_fails(&b, ST_RUN, "position 4 of axis E is outside 0..4");
    bed_close(&b);
}

TEST(above_is_the_parent_of_a_position)
{
    Bed b;

    LOOPS(&b, EACH "    Y[i] = above(E, i)\n    W[i] = above(F, i)\n");
    bed_run(&b);
    WANT(&b, "Y", 0, 0, 2);
    WANT_INT(&b, "W", 0, 0, 1);
    bed_close(&b);
}

TEST(fits_tells_and_does_not_fail)
{
    Bed b;

    LOOPS(&b, EACH "    let big: i64 = 9223372036854775807\n"
                   "    let least: i64 = -9223372036854775808\n"
                   "    W[i] = select(fits(big + i), 1, 0) + select(fits(least - i), 2, 0)"
                   " + select(fits(big * (i + 1)), 4, 0) + select(fits(1 / i), 8, 0)"
                   " + select(fits(1 % i), 16, 0) + select(fits(-least), 32, 0)"
                   " + select(fits(abs(least)), 64, 0)\n"
                   "    K[i] = select(fits(select(i < 1, 1, big + i)), 1, 0)"
                   " + select(fits(select(i < 1 or big + i > 0, 1, 0)), 2, 0)"
                   " + select(fits(select(i > 1 and big + i > 0, 1, 0)), 4, 0)"
                   " + select(fits(exp(big + i)), 8, 0) + select(fits(Y[0]), 16, 0)\n");
    bed_run(&b);
    WANT_INT(&b, "W", 1 + 2 + 4, 8 + 16, 8 + 16);
    WANT_INT(&b, "K", 31, 4 + 16, 16);
    bed_close(&b);
}

TEST(a_check_that_does_not_hold_ends_the_run)
{
    Bed b;

    LOOPS(&b, EACH "    check K[i] > 0 else index\n    Y[i] = 1\n");
    bed_fails(&b, ST_RUN, "y: an index is outside its axis");
    bed_close(&b);
    LOOPS(&b, EACH "    check K[i] > 0 else miss\n    Y[i] = 1\n");
    bed_fails(&b, ST_RUN, "y: a value is written to an entry that is not stored");
    bed_close(&b);
}

TEST(integers_do_not_wrap)
{
    Bed b;

    LOOPS(&b, EACH "    Y[i] = K[i] * 9223372036854775807\n");
    bed_fails(&b, ST_RUN, "y: integer overflow: 5 * 9223372036854775807");
    bed_close(&b);
    LOOPS(&b, EACH "    N[i] = 3000000000\n");
    bed_fails(&b, ST_RUN, "element 0 of N is 3000000000, which does not fit an i32");
    bed_close(&b);
    LOOPS(&b, EACH "    W[i] = 9223372036854775807\n    W[i] += 1\n");
    bed_fails(&b, ST_RUN, "y: the sum of an element overflows: 9223372036854775807 + 1");
    bed_close(&b);
    LOOPS(&b, "phase y for i in -9223372036854775808..m\n    Y[i] = 1\n");
    bed_fails(&b, ST_RUN, "a range of 2^63 iterations or more");
    bed_close(&b);
}

TEST(two_iterations_do_not_write_one_element)
{
    Bed b;

    LOOPS(&b, EACH "    Y[i / 2] = 1\n");
    bed_fails(&b, ST_RUN, "element 0 of Y is written by iterations 0 and 1 of one phase");
    bed_close(&b);
    LOOPS(&b, EACH "    Y[i] = 1 at W[i] = 1\n"); /* each its own: none fails */
    bed_run(&b);
    bed_close(&b);
    LOOPS(&b, EACH "    Y[i] = 1\n" EACH "    Y[2 - i] = 2\n"); /* nor do those of two phases */
    bed_run(&b);
    WANT(&b, "Y", 2, 2, 2);
    bed_close(&b);
    LOOPS(&b, "phase y\n    for i in 0..m\n        Y[i / 2] = 1\n"); /* one range has no race */
    bed_run(&b);
    bed_close(&b);
}

TEST(no_iteration_reads_what_another_writes)
{
    const char *text = EACH "    W[i] = 5\n"
                            "phase z for i in 0..m\n"
                            "    let a: i64 = i / 2\n"
                            "    W[a] max= select(i == 1, 9, 1)\n";
    Bed b;
    int64_t count = 0;

    LOOPS(&b, text);
    bed_fails(&b, ST_RUN, "z: element 0 of W is read by one iteration of a phase and written by");
    CHECK_EQ(CATCH(&b.err, interp_loops(&b.arena, b.prog, b.env, backwards, &count)), ST_RUN);
    CHECK_HAS(b.err.msg, "z: element 0 of W is written by one iteration of a phase and read by");
    bed_close(&b);
    LOOPS(&b,
          EACH "    W[i] = 5\n"
               "phase z for i in 0..m\n    W[0 * i] max= 1\n    N[i] = 1\n"); /* all only look */
    bed_run(&b);
    WANT_INT(&b, "W", 5, 5, 5);
    bed_close(&b);
}

TEST(a_companion_stands_beside_its_element)
{
    Bed b;

    LOOPS(&b, EACH "    Y[i] = 1 at W[2 - i] = 1\n");
    bed_fails(&b, ST_RUN, "W is stored to at element 2, beside element 0");
    bed_close(&b);
}

TEST(the_first_winner_stays_and_a_mark_tells_what_was_reached)
{
    Bed b;

    LOOPS(
        &b,
        "temp i32 Y.hit[I]\n" EACH "    Y[i] = -inf\n    Y.hit[i] = 0\n    W[i] = -1\n"
        "phase m for i in 0..m\n"
        "    for k in 0..3\n"
        "        Y[i] max= select(i == 0, -inf, select(k > 1, nan, 7.0)) at W[i] = k, Y.hit[i] = 1\n"
        "phase n for i in 0..m\n"
        "    N[i] = 5\n"
        "    N[i] min= i + 4\n"
        "    N[i] max= i + 4\n");
    bed_run(&b);
    CHECK(isinf(bed_f(&b, "Y", 0)) && isnan(bed_f(&b, "Y", 1)));
    WANT_INT(&b, "W", 0, 2, 2);
    WANT_INT(&b, "N", 4, 5, 6);
    bed_close(&b);
}

TEST(registers_are_assigned_and_lets_are_not)
{
    Bed b;

    LOOPS(&b, EACH "    reg s: f32 = 0\n"
                   "    reg top: i64 = 0\n"
                   "    for k in 0..m\n"
                   "        s += V[k] * 0.1\n"
                   "        top max= K[k]\n"
                   "    let t: f32 = s * 2\n"
                   "    s = 1\n"
                   "    Y[i] = t\n"
                   "    W[i] = top\n");
    bed_run(&b);
    for (int i = 0; i < 3; i++)
        CHECK_SAME(bed_f(&b, "Y", i),
                   (double)(float)((double)((float)(1.5f * 0.1f) + (float)(2 * 0.1f) + 0.1f) * 2));
    WANT_INT(&b, "W", 7, 7, 7);
    bed_close(&b);
}

TEST(a_fused_product_is_rounded_once)
{
    Bed b;
    float x = 1 + 0x1p-12f, y = 1 - 0x1p-12f;

    LOOPS(&b, EACH "    Y[i] = fma(V[0], V[1], -1.0)\n    W[i] = select(i < 1, size(E), m)\n");
    F32(&b, "V", x, y, 0);
    bed_run(&b);
    CHECK_SAME(bed_f(&b, "Y", 0), -0x1p-24); /* the product by itself is 1 in f32 */
    WANT_INT(&b, "W", 4, 3, 3);
    bed_close(&b);
    LOOPS(&b, EACH "    Y[i] = fma(X[0], X[1], -1.0)\n");
    F64(&b, "X", 1 + 0x1p-30, 1 - 0x1p-30, 0);
    bed_run(&b);
    CHECK_SAME(bed_f(&b, "Y", 0), -0x1p-60);
    bed_close(&b);
}

TEST(the_side_that_is_not_chosen_is_not_looked_at)
{
    Bed b;

    LOOPS(&b, EACH "    if i < 2 and X[i + 1] > 0 or i == 2\n"
                   "        Y[i] = select(i < 2, X[i + 1], -X[i])\n");
    bed_run(&b);
    WANT(&b, "Y", 2, 4, -4);
    bed_close(&b);
}

TEST(a_coordinate_program_runs_as_before)
{
    Bed b;

    bed_open(&b, "program p(m) stage coordinates\nf64 Y[m]\ny: for i in m: Y[i] = i\n");
    bed_size(&b, "m", 3);
    bed_run(&b);
    WANT(&b, "Y", 0, 1, 2);
    bed_close(&b);
}
