/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Tests of grad/ on whole programs: winners of max= and min=, several statements, what is saved,
 * asked for and refused, inout, built axes, names; and of ir/prune.c, which ends a derivative. */
#include "unit/grad_bed.h"

#include <math.h>

#define NAMES(...) ((const char *[]){ __VA_ARGS__ })

static const GradOptions none;

/* Winners of max= and min=. */

static const char segment_max[] = "program p(ng, f)\naxis G = ng, E = ragged(G), K = f\n"
                                  "f64 X[E, K], M[G, K] fill 0\n"
                                  "m: M[g, k] max= X[e, k]\n";

static void bind_segments(Bed *b)
{
    bed_size(b, "ng", 3);
    bed_size(b, "f", 1);
    I64(b, "E.start", 0, 3, 3, 5);
    F64(b, "X", 1, 4, 4, -2, -1);
}

TEST(the_first_of_a_tie_has_the_gradient)
{
    Bed b;

    bed_open(&b, segment_max);
    grad_bed(&b, &none);
    CHECK_HAS(grad_text(&b), "m: M[g, k] max= X[e, k] at at_M[g, k] = pos(e)\n"
                             "d(m,X): d_X[e, k] += d_M[g, k] if at_M[g, k] == pos(e)\n");
    bind_segments(&b);
    F64(&b, "d_M", 10, 20, 30);
    bed_run(&b);
    WANT(&b, "d_X", 0, 10, 0, 0, 30);
    bed_close(&b);

    bed_open(&b, segment_max);
    grad_bed_forward(&b, &none);
    bind_segments(&b);
    F64(&b, "t_X", 1, 2, 3, 4, 5);
    bed_run(&b);
    WANT(&b, "t_M", 2, 0, 5);
    bed_close(&b);
}

static const char with_companion[] = "program p(ng, f)\naxis G = ng, E = ragged(G), K = f\n"
                                     "f64 X[E, K], M[G, K] fill 0\ni32 W[G, K]\n"
                                     "m: M[g, k] max= X[e, k] at W[g, k] = pos(e)\n";

TEST(a_declared_companion_is_used)
{
    Bed b;

    bed_open(&b, with_companion);
    grad_bed(&b, &none);
    CHECK_HAS(grad_text(&b), "temp i32 W[G, K]\n");
    CHECK_HAS(grad_text(&b), "d(m,X): d_X[e, k] += d_M[g, k] if W[g, k] == pos(e)\n");
    CHECK(strstr(grad_text(&b), "at_M") == NULL);
    bed_close(&b);
}

TEST(a_saved_companion_is_all_that_the_gradient_needs)
{
    Bed b;

    bed_open(&b, with_companion);
    grad_bed(&b, &(GradOptions){ .save = NAMES("W"), .nsave = 1 });
    CHECK_STR(grad_text(&b), "program d_p(ng, f)\naxis G = ng, E = ragged(G)\naxis K = f\n"
                             "i32 W[G, K]\nf64 d_X[E, K], d_M[G, K]\n"
                             "d(m,X): d_X[e, k] += d_M[g, k] if W[g, k] == pos(e)\n");
    bed_close(&b);
    bed_open(&b, with_companion); /* with its leader, W is saved too */
    grad_bed(&b, &(GradOptions){ .save = NAMES("M"), .nsave = 1 });
    CHECK(strstr(grad_text(&b), "max=") == NULL);
    CHECK_HAS(grad_text(&b), "i32 W[G, K]\n");
    bed_close(&b);
}

TEST(a_saved_maximum_needs_its_companion)
{
    grad_fails(segment_max, &(GradOptions){ .save = NAMES("M"), .nsave = 1 }, ST_ARG,
               "save: the winners of M are not recorded, so its value alone does not tell them; "
               "add `at W[...] = pos(...)` to m, or do not save it");
}

/* Three statements into one buffer, two reduction variables, a scatter, and a second order that
 * finds the companions of the first. */
static const char many_writers[] = "program p(n, f)\naxis I = n, E(I) = seg : j < n, K = f, L = 2\n"
                                   "f64 X[E, K], Y[n, K], Z[L], M[n] fill 0\n"
                                   "m1: M[j(e)] max= X[e, k] * Y[j(e), k]\n"
                                   "m2: M[i] max= Y[i, 0] + Z[l]\n"
                                   "m3: M[i] max= 0.5\n";

TEST(several_writers_tell_which_of_them_won)
{
    Bed b;

    bed_open(&b, many_writers);
    grad_bed(&b, &none);
    CHECK_HAS(grad_text(&b), "m1: M[j(e)] max= X[e, k] * Y[j(e), k] at at_M_e[j(e)] = pos(e), "
                             "at_M_k[j(e)] = pos(k), at_M_by[j(e)] = 0\n");
    CHECK_HAS(grad_text(&b), "m3: M[i] max= 0.5 at at_M_e[i] = 0, at_M_k[i] = 0, at_M_by[i] = 2\n");
    bed_size(&b, "n", 3);
    bed_size(&b, "f", 2);
    I64(&b, "E.start", 0, 2, 3, 3);
    I64(&b, "E.j", 0, 1, 1);
    F64(&b, "X", 1, 2, 3, 4, 4, 5);
    F64(&b, "Y", 5, 7, 3, 3, -9, 0);
    F64(&b, "Z", 2, 6);
    F64(&b, "d_M", 1, 10, 100);
    bed_run(&b);
    WANT(&b, "d_X", 0, 7, 0, 0, 0, 30);
    WANT(&b, "d_Y", 0, 2, 0, 50, 0, 0);
    WANT(&b, "d_Z", 0, 0);
    F64(&b, "Z", 20, 26);
    bed_run(&b);
    WANT(&b, "d_Y", 1, 0, 10, 0, 100, 0);
    WANT(&b, "d_Z", 0, 111);
    CHECK_EQ(b.prog->nbuf, 11);
    grad_bed(&b, &none);
    CHECK(strstr(grad_text(&b), "at_M_e1") == NULL);
    bed_close(&b);
}

/* The filler 0 of a shorter writer is not its number: writer 0 has one variable, writer 1 two. */
TEST(a_filler_is_not_mistaken_for_a_number)
{
    Bed b;

    bed_open(&b, "program p(n)\naxis I = n, J = n\nf64 X[I], Y[I, J], M[]\n"
                 "m1: M[] min= X[i]\nm2: M[] min= Y[i, j]\nm3: M[] min= 9\n");
    for (int order = 1; order <= 2; order++) {
        grad_bed(&b, &none);
        CHECK_HAS(grad_text(&b), "at_M_by[] == 1");
    }
    bed_close(&b);
}

TEST(a_companion_that_tells_too_little_is_joined_by_others)
{
    Bed b;

    bed_open(&b, "program p(n)\naxis I = n, J = n\nf64 Y[I, J], M[]\ni64 W[]\n"
                 "m: M[] max= Y[i, j] at W[] = pos(j)\n");
    grad_bed(&b, &none);
    CHECK_HAS(grad_text(&b), "max= Y[i, j] at W[] = pos(j), at_M_i[] = pos(i)\n");
    bed_close(&b);
}

/* Several statements. */

TEST(saved_temporaries_are_inputs)
{
    Bed b;

    bed_open(&b, "program p(n, h0)\naxis I = n, E = ragged(I), H = h0\n"
                 "f64 S[E, H], P[E, H]\ntemp f64 M[I, H], T[E, H], Z[I, H]\n"
                 "m: M[i, h] max= S[e, h]\n"
                 "t: T[e, h] = exp(S[e, h] - stop(M[i, h]))\n"
                 "z: Z[i, h] += T[e, h]\n"
                 "p: P[e, h] = T[e, h] / Z[i, h]\n");
    grad_bed(&b, &(GradOptions){ .save = NAMES("Z", "P", "T", "Z"), .nsave = 4 });
    CHECK_STR(grad_text(&b), "program d_p(n, h0)\naxis I = n, E = ragged(I)\naxis H = h0\n"
                             "f64 P[E, H], T[E, H], Z[I, H], d_S[E, H], d_P[E, H]\n"
                             "temp f64 d_T[E, H], d_Z[I, H]\n"
                             "for i, e, h:\n"
                             "    let t0 = d_P[e, h] / Z[i, h]\n"
                             "    d(p,T): d_T[e, h] += t0\n"
                             "    d(p,Z): d_Z[i, h] += -(t0 * P[e, h])\n"
                             "d(z,T): d_T[e, h] += d_Z[i, h]\n"
                             "d(t,S): d_S[e, h] += d_T[e, h] * T[e, h]\n");
    bed_close(&b);
}

TEST(an_output_that_is_read_sums_its_cotangents)
{
    Bed b;

    bed_open(&b, "program p(n)\naxis I = n\nf64 X[I], Y[I], Z[I]\n"
                 "y: Y[i] = 2 * X[i]\nz: Z[i] = Y[i] * Y[i]\n");
    grad_bed(&b, &none);
    CHECK_HAS(grad_text(&b), "temp f64 d_sum_Y[I]\n");
    CHECK_HAS(grad_text(&b), "d(sum,Y): d_sum_Y[i] += d_Y[i]\n"
                             "d(z,Y): d_sum_Y[i] += d_Z[i] * 2 * Y[i]\n"
                             "d(y,X): d_X[i] += d_sum_Y[i] * 2\n");
    bed_size(&b, "n", 1);
    F64(&b, "X", 3);
    F64(&b, "d_Y", 100);
    F64(&b, "d_Z", 1);
    bed_run(&b);
    WANT(&b, "d_X", 2 * (100 + 12));
    bed_close(&b);
}

TEST(only_what_is_asked_for_is_there)
{
    static const char text[] = "program p(n, m)\naxis I = n, J = m\nf64 X[I], W[J], Y[I], Z[J]\n"
                               "y: Y[i] = X[i] * X[i]\nz: Z[j] = W[j] * W[j]\n";
    Bed b;

    bed_open(&b, text);
    grad_bed(&b, &(GradOptions){ .of = NAMES("Z", "Z"), .nof = 2, .wrt = NAMES("W"), .nwrt = 1 });
    CHECK_STR(grad_text(&b), "program d_p(m)\naxis J = m\nf64 W[J], d_W[J], d_Z[J]\n"
                             "d(z,W): d_W[j] += d_Z[j] * 2 * W[j]\n");
    bed_close(&b);
    bed_open(&b, text);
    grad_bed_forward(&b, &(GradOptions){ .wrt = NAMES("W"), .nwrt = 1 });
    CHECK_STR(grad_text(&b), "program t_p(n, m)\naxis I = n\naxis J = m\n"
                             "f64 W[J], t_W[J], t_Y[I], t_Z[J]\n"
                             "t(z): t_Z[j] = t_W[j] * 2 * W[j]\n"
                             "t(zero,Y): t_Y[i] = 0\n");
    bed_close(&b);
}

TEST(a_gradient_by_what_nothing_depends_on_is_zero)
{
    Bed b;

    bed_open(&b, "program p(n)\naxis I = n, E(I) = seg : j < n, P(I) = 2 : c < n padded\n"
                 "f64 A[I, I], B[E], C[], D[n, 3, n], F[P], G[I, E, n], Y[I], X[I]\n"
                 "y: Y[i] = X[i] + stop(X[i])\n");
    grad_bed(&b, &none);
    CHECK_HAS(grad_text(&b), "d(zero,A): for i, k in I: d_A[i, k] = 0\n"
                             "d(zero,B): d_B[e] = 0\n"
                             "d(zero,C): d_C[] = 0\n"
                             "d(zero,D): for k1 in n, k2 in 3, k3 in n: d_D[k1, k2, k3] = 0\n"
                             "d(zero,F): d_F[p] = 0\n"
                             "d(zero,G): for i, e, k4 in n: d_G[i, e, k4] = 0\n");
    bed_size(&b, "n", 2);
    I64(&b, "E.start", 0, 1, 3);
    I64(&b, "E.j", 0, 0, 1);
    I64(&b, "P.c", 0, 9, 9, 1);
    F64(&b, "d_Y", 1, 2);
    bed_run(&b);
    WANT(&b, "d_A", 0, 0, 0, 0);
    WANT(&b, "d_X", 1, 2);
    CHECK_EQ(bed_array(&b, "d_D")->n, 12);
    bed_close(&b);
}

/* What cancels leaves no statement, and no temporary that nothing writes. */
TEST(a_temporary_whose_cotangent_cancels_is_dropped)
{
    static const char text[] = "program p(n)\naxis I = n\nf64 X[I], Y[I], V[I]\ntemp f64 T[I]\n"
                               "t: T[i] = X[i] * X[i]\ny: Y[i] = T[i] - T[i] + V[i]\n";
    Bed b;

    bed_open(&b, text);
    grad_bed(&b, &none);
    CHECK_STR(grad_text(&b), "program d_p(n)\naxis I = n\nf64 d_X[I], d_Y[I], d_V[I]\n"
                             "d(y,V): d_V[i] += d_Y[i]\nd(zero,X): d_X[i] = 0\n");
    bed_close(&b);
    bed_open(&b, "program p(n)\naxis I = n\nf64 X[I], Y[I]\ntemp f64 T[I]\n"
                 "t: T[i] = X[i] - X[i]\ny: Y[i] = T[i] * 2 + select(i > 0, T[i], T[i] * 3)\n");
    grad_bed_forward(&b, &none);
    CHECK_STR(grad_text(&b), "program t_p(n)\naxis I = n\nf64 t_Y[I]\nt(zero,Y): t_Y[i] = 0\n");
    bed_close(&b);
}

/* inout. */

static const char accumulates[] = "program p(n)\naxis I = n, J = n\ninout f64 Y[I]\n"
                                  "f64 X[I, J], Z[I], V[I]\n"
                                  "y: Y[i] += X[i, j] * X[i, j]\n"
                                  "z: Z[i] = Y[i]\n"
                                  "v: V[i] = Z[i] * Z[i]\n";

static void bind_accumulates(Bed *b)
{
    bed_size(b, "n", 1);
    F64(b, "X", 3);
    F64(b, "Y", 5);
}

TEST(inout_goes_on_from_its_first_content)
{
    Bed b;

    bed_open(&b, accumulates);
    grad_bed(&b, &none);
    bind_accumulates(&b);
    F64(&b, "d_Y", 1);
    F64(&b, "d_Z", 10);
    F64(&b, "d_V", 100);
    bed_run(&b);
    WANT(&b, "d_X", 6 * (1 + 10 + 100 * 2 * 14));
    bed_close(&b);

    bed_open(&b, accumulates);
    grad_bed_forward(&b, &none);
    CHECK_HAS(grad_text(&b), "inout f64 t_Y[I]\n");
    bind_accumulates(&b);
    F64(&b, "t_Y", 1000);
    F64(&b, "t_X", 1);
    bed_run(&b);
    WANT(&b, "t_Y", 1006);
    WANT(&b, "t_Z", 1006);
    WANT(&b, "t_V", 1006 * 28);
    bed_close(&b);

    bed_open(&b, accumulates); /* its last content, as the caller has it after a run */
    grad_bed(&b, &(GradOptions){ .save = NAMES("Y"), .nsave = 1 });
    CHECK(strstr(grad_text(&b), "inout") == NULL);
    bed_size(&b, "n", 1);
    F64(&b, "X", 3);
    F64(&b, "Y", 14);
    F64(&b, "d_Y", 1);
    F64(&b, "d_Z", 10);
    F64(&b, "d_V", 100);
    bed_run(&b);
    WANT(&b, "d_X", 6 * (1 + 10 + 100 * 2 * 14));
    bed_close(&b);
}

TEST(inout_that_is_not_read_is_not_an_argument_of_the_gradient)
{
    Bed b;

    bed_open(&b, "program p(n)\naxis I = n\ninout f64 Y[I]\nf64 X[I]\ny: Y[i] += X[i] * X[i]\n");
    grad_bed(&b, &none);
    CHECK_STR(grad_text(&b), "program d_p(n)\naxis I = n\nf64 X[I], d_Y[I], d_X[I]\n"
                             "d(y,X): d_X[i] += d_Y[i] * 2 * X[i]\n");
    bed_close(&b);
}

TEST(forward_mode_overwrites_what_the_program_overwrites)
{
    Bed b;

    bed_open(&b, "program p(n)\naxis I = n\ninout f64 Y[I], U[I]\nf64 X[I], Z[I]\ntemp f64 T[I]\n"
                 "y: Y[i] = X[i] if i == 0\nw: Y[i] = 7 if i == 1\nu: U[i] += 1\n"
                 "t: T[i] = 2 * U[i]\nz: Z[i] = T[i] + Y[i]\n");
    grad_bed_forward(&b, &none);
    CHECK_HAS(grad_text(&b), "inout f64 t_Y[I], t_U[I]\n");
    CHECK(ir_find_buf(b.prog, "Y") == NULL);
    bed_size(&b, "n", 3);
    F64(&b, "t_Y", 1, 2, 3);
    F64(&b, "t_U", 100, 200, 300);
    F64(&b, "t_X", 10, 20, 30);
    bed_run(&b);
    WANT(&b, "t_Y", 10, 0, 3);
    WANT(&b, "t_U", 100, 200, 300);
    WANT(&b, "t_Z", 210, 400, 603);
    bed_close(&b);
}

TEST(max_into_inout_has_no_derivative)
{
    static const char text[] = "program p(n)\naxis I = n\ninout f64 M[]\nf64 X[I]\n"
                               "m: M[] max= X[i]\n";

    grad_fails(text, &none, ST_CHECK,
               "m: the derivative of max= and min= into an inout buffer is "
               "not defined, as its first content may win; use a temporary");
}

/* Built axes. */

TEST(built_structure_is_given_to_the_gradient)
{
    Bed b;

    bed_open(&b, "program p(m, n, n_v)\naxis I = m, J = compressed(I, n), U(I) = built : load < n\n"
                 "axis V = built : load < n\nf64 A[I, J], C[I, U], D[V]\n"
                 "u: U(i) |= j\nv: V |= j if A[i, j] > 0\n"
                 "c: C[i, j] += A[i, j] * A[i, j]\nd: for i, j: D[j] += A[i, j] if A[i, j] > 0\n");
    grad_bed(&b, &none);
    CHECK_HAS(grad_text(&b), "program d_p(m, n, n_v1)\n");
    CHECK_HAS(grad_text(&b), "U = compressed(I, n) sorted unique\n");
    CHECK_HAS(grad_text(&b), "axis V = n_v1 : load < n sorted unique\n");
    CHECK(strstr(grad_text(&b), "|=") == NULL);
    bed_size(&b, "m", 2);
    bed_size(&b, "n", 3);
    bed_size(&b, "n_v1", 2);
    I64(&b, "J.start", 0, 3, 4);
    I64(&b, "J.coord", 2, 0, 2, 1);
    F64(&b, "A", 1, -2, 3, 4);
    I64(&b, "U.start", 0, 2, 3);
    I64(&b, "U.coord", 0, 2, 1);
    I64(&b, "V.coord", 1, 2);
    F64(&b, "d_C", 10, 100, 1000);
    F64(&b, "d_D", 0.5, 0.25);
    bed_run(&b);
    WANT(&b, "d_A", 200.25, -40, 600.25, 8000.5);
    bed_close(&b);
}

/* Structure that is asked for with stored() does not make a derivative compute values: the dual has
 * the same structure.  So in statements that are computed again. */
TEST(structure_is_asked_of_the_dual)
{
    Bed b;

    bed_open(&b, "program p(m, n)\naxis I = m, J = n, U(I) = seg : load < n sorted unique\n"
                 "f64 A[I, J], C[I, U], D[I]\ntemp f64 T[I]\n"
                 "t: for i, j: T[i] += A[i, j] * A[i, j] if stored(C[i, j])\n"
                 "c: for i, j: C[i, j] += A[i, j] * A[i, j] if stored(C[i, j])\n"
                 "d: D[i] = T[i] * T[i]\n");
    grad_bed(&b, &none);
    CHECK(ir_find_buf(b.prog, "C") == NULL);
    CHECK_HAS(grad_text(&b), "t: T[i] += A[i, j] * A[i, j] if stored(d_C[i, j])\n");
    CHECK_HAS(grad_text(&b), "d(c,A): d_A[i, j] += d_C[i, j] * 2 * A[i, j] if stored(d_C[i, j])\n");
    grad_bed(&b, &none);
    CHECK_HAS(grad_text(&b), "t: T[i] += A[i, j] * A[i, j] if stored(d2_d_C[i, j])\n");
    CHECK_HAS(grad_text(&b), "d2_d_C[i, j] += t0 * A[i, j] if t1\n");
    bed_close(&b);
}

/* What is refused. */

TEST(what_has_no_derivative_is_refused)
{
    static const char text[] = "program p(n)\naxis I = n, Q = rows a -> g { 0 -> 1, 1 -> 2 }\n"
                               "i32 N[I]\nconst f64 C[2] = {1, 2}\ninout f64 U[I]\ntemp f64 T[I]\n"
                               "f64 X[I], Y[I]\ni64 K[I], L[I]\n"
                               "t: T[i] = X[i] * N[i] * C[0]\ny: Y[i] = T[i]\nu: U[i] += T[i]\n"
                               "k: K[i] = N[i]\nz: for i, q: L[i] = 0 if g[q] > 9\n";
    static const char ints[] = "program p(n)\naxis I = n\ni64 X[I], Y[I]\ny: Y[i] = X[i]\n";
    static const char no_input[] = "program p(n)\naxis I = n\nf64 Y[I]\ny: Y[i] = 1\n";
    static const char no_output[] = "program p(n)\naxis I = n\nf64 X[I]\ni64 Y[I]\n"
                                    "y: Y[i] = 1 if X[i] > 0\n";

    grad_fails(text, &(GradOptions){ .wrt = NAMES("N"), .nwrt = 1 }, ST_ARG,
               "N holds integers (i32), which have no derivative");
    grad_fails(text, &(GradOptions){ .wrt = NAMES("X", "C"), .nwrt = 2 }, ST_ARG,
               "C is constant and has no derivative");
    grad_fails(text, &(GradOptions){ .wrt = NAMES("g"), .nwrt = 1 }, ST_ARG,
               "g is constant and has no derivative");
    grad_fails(text, &(GradOptions){ .wrt = NAMES("T"), .nwrt = 1 }, ST_ARG,
               "T is computed by the program; choose an input");
    grad_fails(text, &(GradOptions){ .wrt = NAMES("Y"), .nwrt = 1 }, ST_ARG,
               "Y is computed by the program; choose an input");
    grad_fails(text, &(GradOptions){ .wrt = NAMES("U"), .nwrt = 1 }, ST_ARG, "U is inout");
    grad_fails(text, &(GradOptions){ .wrt = NAMES("Q"), .nwrt = 1 }, ST_ARG,
               "wrt: Q is not a buffer of the program");
    grad_fails(text, &(GradOptions){ .of = NAMES("q"), .nof = 1 }, ST_ARG,
               "of: q is not a buffer of the program");
    grad_fails(text, &(GradOptions){ .of = NAMES("T"), .nof = 1 }, ST_ARG,
               "T is not an output of the program");
    grad_fails(text, &(GradOptions){ .of = NAMES("X"), .nof = 1 }, ST_ARG,
               "X is not an output of the program");
    grad_fails(text, &(GradOptions){ .of = NAMES("K"), .nof = 1 }, ST_ARG,
               "K holds integers (i64), which have no derivative");
    grad_fails(text, &(GradOptions){ .save = NAMES(""), .nsave = 1 }, ST_ARG,
               "save:  is not a buffer of the program");
    grad_fails(text, &(GradOptions){ .save = NAMES("X"), .nsave = 1 }, ST_ARG,
               "X is not computed by the program and cannot be saved; name a temporary or an "
               "output");
    grad_fails(ints, &none, ST_ARG, "the program has no floating-point input");
    grad_fails(no_input, &none, ST_ARG, "the program has no floating-point input");
    grad_fails(no_output, &none, ST_ARG, "the program has no floating-point output");
}

/* Names. */

TEST(names_that_are_taken_move_the_order)
{
    Bed b;

    bed_open(&b, "program p(n)\naxis I = n\nf64 X[I], d_X[I]\ny: d_X[i] = X[i]\n");
    grad_bed(&b, &none);
    CHECK_HAS(grad_text(&b), "d2(y,X): d2_X[i] += d2_d_X[i]\n");
    bed_close(&b);
    bed_open(&b, "program p(d_A)\naxis I = d_A\nf64 A[I], Y[I]\ny: Y[i] = A[i]\n");
    grad_bed(&b, &none);
    CHECK_HAS(grad_text(&b), "d2(y,A): d2_A[i] += d2_Y[i]\n");
    bed_close(&b);
    bed_open(&b, "program p(n)\naxis I = n\nf64 A[I], d7x[I], Y[I]\n"
                 "d9(y,A): Y[i] = A[i] + d7x[i]\n");
    grad_bed(&b, &none);
    CHECK_HAS(grad_text(&b), "d10(d9(y,A),A): d10_A[i] += d10_Y[i]\n");
    grad_bed(&b, &none);
    CHECK_HAS(grad_text(&b), "d11_d10_Y[i] += d11_d10_A[i] + d11_d10_d7x[i]\n");
    bed_close(&b);
    bed_open(&b, "program p(n)\naxis I = n\nf64 A[I], d1000_A[I], Y[I]\n"
                 "y: Y[i] = A[i] + d1000_A[i]\n");
    grad_bed_forward(&b, &none);
    grad_bed(&b, &none);
    CHECK_HAS(grad_text(&b), "d(t(y),t_A): d_t_A[i] += d_t_Y[i]\n");
    bed_close(&b);
}

TEST(the_sum_of_cotangents_finds_a_free_name)
{
    Bed b;

    bed_open(&b, "program p(n)\naxis I = n\nf64 X[I], Y[I], sum_Y[I]\n"
                 "y: Y[i] = X[i]\nz: sum_Y[i] = Y[i]\n");
    grad_bed(&b, &none);
    CHECK_HAS(grad_text(&b), "d(z,Y): d_sum_Y1[i] += d_sum_Y[i]\n");
    bed_close(&b);
}

TEST(a_name_that_grows_too_long_is_an_error)
{
    grad_fails("program p(n)\naxis I = n\nf64 "
               "x23456789012345678901234567890123456789012345678901234567890123[I], Y[I]\n"
               "y: Y[i] = x23456789012345678901234567890123456789012345678901234567890123[i]\n",
               &none, ST_LIMIT, "123 is longer than 64 characters; shorten that of x2345");
}

TEST(a_label_that_grows_too_long_is_an_error)
{
    const GradOptions by_x = { .wrt = NAMES("Xinput"), .nwrt = 1 };
    Bed b;
    int order = 0;

    bed_open(&b, "program p()\nf64 Xinput[], Y[]\ny: Y[] = sin(Xinput[])\n");
    while (order < 40 && CATCH(&b.err, b.prog = grad_reverse(&b.arena, b.prog, &by_x)) == ST_OK)
        order++;
    CHECK_EQ(order, 22);
    CHECK_EQ(b.err.code, ST_LIMIT);
    CHECK_HAS(b.err.msg, "is longer than 256 characters; shorten the names");
    grad_text(&b);
    bed_close(&b);
}

TEST(the_name_of_a_program_is_cut_when_it_grows_too_long)
{
    Bed b;

    bed_open(&b, "program x23456789012345678901234567890123456789012345678901234567890123(n)\n"
                 "axis I = n\nf64 X[I], Y[I]\ny: Y[i] = X[i] * X[i]\n");
    for (int i = 0; i < 6; i++)
        grad_bed(&b, &none);
    CHECK_HAS(grad_text(&b), "program d6_d5_d4_d3_d2_d_x2345678901");
    bed_close(&b);
}

/* Occurrences of one buffer are numbered, through every order. */
TEST(occurrences_are_numbered)
{
    Bed b;

    bed_open(&b, "program p(n)\naxis I = n\nf64 X[n + 2], Y[I]\n"
                 "y: Y[i] = X[i] * X[i + 1] * X[i + 2]\n");
    for (int i = 0; i < 3; i++)
        grad_bed(&b, &none);
    CHECK_HAS(grad_text(&b), "d3(d2(d(y,X.3),X.2),X): d3_X[i] += ");
    CHECK_EQ(grad_count(&b), 3 * 3 * 3);
    bed_close(&b);
}

/* A statement over nothing has a group as its gradient. */
static void grad_has(const char *text, const char *want)
{
    Bed b;

    bed_open(&b, text);
    grad_bed(&b, &none);
    CHECK_HAS(grad_text(&b), want);
    bed_close(&b);
}

TEST(results_of_a_group_that_sums_nothing_up_are_differentiated_as_one)
{
    grad_has("program p(n)\naxis I = n\nf64 X[I], K[I, 3]\nfor i:\n"
             "    let s = sqrt(X[i])\n    u: K[i, 0] = 1\n"
             "    a: K[i, 1] = 3 * s\n    b: K[i, 2] = s * s\n",
             "d(a,X): d_X[i] += (d_K[i, 1] * 3 + d_K[i, 2] * 2 * sqrt(X[i])) / (2 * sqrt(X[i]))\n");
    grad_has("program p(n)\naxis I = n\nf64 X[I], Y[I], Z[I]\nfor i:\n"
             "    y: Y[i] += 3 * X[i] if i > 1\n    z: Z[i] += 5 * X[i] if i > 1\n",
             "d(y,X): d_X[i] += d_Y[i] * 3 + d_Z[i] * 5 if i > 1\n");
}

TEST(what_sums_up_or_has_a_guard_of_its_own_is_differentiated_alone)
{
    grad_has("program p(n)\naxis I = n\nf64 X[I], Y[I], Z[I]\nfor i:\n"
             "    y: Y[i] += 3 * X[i] if i > 1\n    z: Z[i] += 5 * X[i]\n",
             "    d(y,X): d_X[i] += d_Y[i] * 3 if i > 1\n    d(z,X): d_X[i] += d_Z[i] * 5\n");
    grad_has("program p(n)\naxis I = n\nf64 X[I], Y[I], Z[1]\nfor i:\n"
             "    y: Y[i] += 3 * X[i]\n    z: Z[0] += 5 * X[i]\n",
             "    d(y,X): d_X[i] += d_Y[i] * 3\n    d(z,X): d_X[i] += d_Z[0] * 5\n");
}

TEST(a_statement_over_nothing_has_a_gradient)
{
    Bed b;

    bed_open(&b, "program p()\nf64 X[], W[], Y[]\ny: Y[] = X[] * W[]\n");
    grad_bed(&b, &none);
    CHECK_HAS(grad_text(&b), "for:\n    d(y,X): d_X[] += d_Y[] * W[]\n");
    bed_close(&b);
}

/* prune.c */

static const char *printed(Bed *b, Prog *p)
{
    b->prog = p;
    return grad_text(b);
}

TEST(pruning_drops_what_no_output_needs)
{
    Bed b;

    bed_open(&b, "program p(n, m)\naxis I = n, J = m, E(I) = seg : j < n, P = rows a b { 0 1 }\n"
                 "f64 X[I], B[J], Y[I]\ntemp f64 T[I], M[I]\ntemp i64 W[I], V[I]\n"
                 "t: T[i] += X[i] if i > 2\nm: M[i] max= X[i] at W[i] = pos(e), V[i] = pos(i)\n"
                 "y: Y[i] = X[i] if W[i] > 0\n");
    CHECK_STR(printed(&b, ir_prune(&b.arena, b.prog)),
              "program p(n)\naxis I = n, E(I) = seg : j < n\nf64 X[I], Y[I]\ntemp f64 M[I]\n"
              "temp i64 W[I]\nm: M[i] max= X[i] at W[i] = pos(e)\ny: Y[i] = X[i] if W[i] > 0\n");
    bed_close(&b);
}

TEST(pruning_keeps_built_axes_and_constants_in_use)
{
    static const char text[] = "program p(n)\naxis I = n, U(I) = built : load < n\n"
                               "axis Q = rows a b -> g { 0 1 -> 2, 1 0 -> 3 }, T(Q) = {2, 1}\n"
                               "const i64 K[2] = {0, 1}\nf64 X[I], Y[I]\n"
                               "u: U(i) |= K[0]\n"
                               "y: for i, q, r in 4: Y[i] += g[q] * X[i] * size(U) * loc(r)\n";
    Bed b;

    bed_open(&b, text);
    CHECK(ir_equal(ir_rebuild(&b.arena, b.prog), b.prog));
    CHECK_HAS(printed(&b, ir_prune(&b.arena, b.prog)), "u: U(i) |= K[0]\n");
    CHECK(ir_find_axis(b.prog, "T") == NULL);
    bed_close(&b);
}
