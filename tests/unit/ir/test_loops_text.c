/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * src/ir/loop_print.c, loop_parse.c and loop_array.c: the text of later stages. */
#include "ir/loop.h"
#include "unit/ir_bed.h"

#define D                                                                                \
    "axis I = m, J = compressed(I, n) sorted unique, E(I) = seg : j < n, S = 2\n"        \
    "axis MS(S) = {1, 3}, U(S) = {4, 2}, Q = rows m1 m2 -> c { 0 1 -> 2.5, 1 0 -> 1 }\n" \
    "f32 A[I, J], B[n, n], C[I], X[n, S, MS, U]\n"                                       \
    "i64 W[I]\n"
#define P "program p(m, n) stage positions\n" D
#define L "program p(m, n) stage loops\n" D

/* What comes after the declarations, which both lines of text have in common. */
static void reads_as(const char *head, const char *text, const char *printed)
{
    Bed b;
    Text t = { .arena = &b.arena };
    const char *got;

    bed_open(&b);
    text_f(&t, "%s%s", head, text);
    got = strstr(bed_canonical(&b, t.s), "\ni64 W[I]\n") + 10;
    CHECK_STR(got, printed);
    bed_close(&b);
}

TEST(a_tree_prints_as_it_was_written)
{
    const char *text = "phase C.init for x in 0..m\n"
                       "    C[x] = 0.0\n"
                       "phase c for i in 0..m balance J.start\n"
                       "    for j in J.start[i]..J.start[i + 1]\n"
                       "        check J.coord[j] < n else index\n"
                       "        if J.coord[j] != i\n"
                       "            C[i] += A[j] * B[J.coord[j], i]\n"
                       "phase d(c,A)\n"
                       "    for i in 0..m\n"
                       "        C[i] = 0.0\n";

    reads_as(P, text, text);
}

TEST(initial_values_print_as_they_were_written)
{
    const char *text = "init C[x] = select(J.start[x] < J.start[x + 1], 0.0, -inf)\n"
                       "init X = 1.0\n"
                       "init W = -1\n"
                       "phase c for i in 0..m\n"
                       "    C[i] += 2.0\n";

    reads_as(P, text, text);
}

TEST(every_kind_of_element_and_function_reads_back)
{
    const char *text =
        "phase w for i in 0..m\n"
        "    W[i] = find(J, J.start[i], J.start[i + 1], i) + above(E, i) + size(E) + E.j[i]\n"
        "    W[i] += U.size[i] + MS.start[i] + Q.m1[i] + X.S.base[i]\n"
        "    check fits(i * n) and not i < 0 else overflow\n"
        "    check W[i] >= 0 else miss\n"
        "    C[i] = fma(c[i], 2.0, A[i])\n"
        "    X[i, X.S.base[1]] = 7 / 2\n";

    reads_as(P, text, text);
}

TEST(stores_keep_their_operators_companions_and_labels)
{
    const char *text = "temp i32 C.hit[I]\n"
                       "phase m for i in 0..m\n"
                       "    C[i] = -inf\n"
                       "    C.hit[i] = 0\n"
                       "    W[i] = -1\n"
                       "    C[i] max= B[i] at W[i] = i, C.hit[i] = 1\n"
                       "    other.1: C[i] min= B[i]\n"
                       "    d2(d(z,X),Y): if i < 3\n"
                       "        C[i] += 1\n"
                       "        m: C[i] += 2\n";

    reads_as(L, text, text);
}

TEST(vector_loops_locals_and_registers_read_back)
{
    const char *text = "phase c vector for i in 0..m step 8\n"
                       "    let v: f32x8 = B[i]\n"
                       "    C[i] = v * v\n"
                       "phase d for i in 0..m\n"
                       "    reg s: f32 = 0.0\n"
                       "    let a: i64 = i * 2\n"
                       "    for k in 0..n\n"
                       "        s += B[k + a]\n"
                       "    C[i] = s\n"
                       "    vector for k in 0..n step 4\n"
                       "        X[i * n + k] = 1\n";

    reads_as(L, text, text);
}

TEST(registers_of_lanes_sums_over_lanes_and_hints_read_back)
{
    const char *text = "phase c for i in 0..m balance J.start parts J.coord\n"
                       "    vector for k in 0..n step 8 by 4\n"
                       "        reg v: f32x8 = 0.0\n"
                       "        for j in J.start[i]..J.start[i + 1]\n"
                       "            if J.coord[j] < 5\n"
                       "                ahead B[J.coord[min(j + 8, size(J) - 1)] * n + k]\n"
                       "                let a: f32 = A[j]\n"
                       "                let b: f32x8 = B[J.coord[j] * n + k]\n"
                       "                v += a * b\n"
                       "        stream X[i * n + k] = v if m >= 12\n"
                       "phase d for i in 0..m\n"
                       "    reg s: f32 = B[i]\n"
                       "    reg t: f32 = 0.0\n"
                       "    vector for k in 0..n step 4 by 2\n"
                       "        s += B[i * n + k]\n"
                       "        t max= B[i * n + k]\n"
                       "    C[i] = s + t\n"
                       "phase e for i in 0..m\n"
                       "    ahead X[i + 64]\n"
                       "    ahead far X[i + 65]\n"
                       "    C[i] += X[i]\n";

    reads_as(L, text, text);
}

TEST(one_register_at_a_time_is_not_said)
{
    reads_as(L, "phase c vector for i in 0..m step 8 by 1\n    C[i] = 1\n",
             "phase c vector for i in 0..m step 8\n    C[i] = 1\n");
}

TEST(trees_that_differ_in_registers_or_hints_differ)
{
    const char *a[] = { L "phase c vector for i in 0..m step 8\n    C[i] = 1\n",
                        L "phase c vector for i in 0..m step 8 by 2\n    C[i] = 1\n",
                        L "phase c vector for i in 0..m step 8 by 2\n    ahead X[i]\n    C[i] = 1\n",
                        L "phase c vector for i in 0..m step 8 by 2\n    ahead X[i + 1]\n"
                          "    C[i] = 1\n",
                        L "phase c vector for i in 0..m step 8 by 2\n    ahead far X[i + 1]\n"
                          "    C[i] = 1\n" };
    Bed b;

    bed_open(&b);
    for (int i = 0; i < 5; i++)
        for (int k = 0; k < 5; k++)
            CHECK_EQ(ir_equal(bed_read(&b, a[i]), bed_read(&b, a[k])), i == k);
    bed_close(&b);
}

TEST(a_let_without_a_type_is_only_a_name)
{
    reads_as(L,
             "phase c for i in 0..m\n"
             "    let t = i * n\n"
             "    let u = t + 1\n"
             "    C[i] = B[u] + B[t]\n",
             "phase c for i in 0..m\n"
             "    C[i] = B[i * n + 1] + B[i * n]\n");
}

TEST(what_long_lines_share_gets_a_name)
{
    const char *e = "B[i * n + 1] * B[i * n + 2] + B[i * n + 1] * B[i * n + 3] + "
                    "B[i * n + 2] * B[i * n + 3] + B[i * n + 1] * B[i * n + 2] * B[i * n + 3]";
    Bed b;
    Text t = { .arena = &b.arena };
    const char *got;

    bed_open(&b);
    text_f(&t, "%sphase c for i in 0..m\n    C[i] = %s + 0\n", L, e);
    got = bed_canonical(&b, t.s);
    CHECK_HAS(got, "    let b = B[i * n + 1]\n");
    CHECK_HAS(got, "    let b1 = B[i * n + 2]\n");
    CHECK_HAS(got, "C[i] = t0 + b * b2 + b1 * b2 + t0 * b2 + 0\n");
    bed_close(&b);
}

TEST(names_that_are_taken_are_given_numbers)
{
    Bed b;
    Local *x;
    Node *inner, *outer;
    Text t = { .arena = &b.arena };

    bed_open(&b);
    bed_read(&b, "program p(x, check_) stage loops\nf64 Y[x, x]\n");
    x = loop_local(b.p, "x", T_i64, 1);
    inner = loop_node(
        b.p, &(Node){ .kind = N_STORE,
                      .out = loop_cell(b.p, b.p->buf[0], (Expr *[]){ loop_use(b.p, x) }, 1, 1),
                      .value = ir_real(b.p, 1) });
    outer = loop_node(b.p, &(Node){ .kind = N_FOR,
                                    .label = "y",
                                    .how = FOR_PARALLEL,
                                    .local = x,
                                    .lo = ir_int(b.p, 0),
                                    .body = &inner,
                                    .nbody = 1,
                                    .hi = ir_size_expr(b.p, b.p->size[0]) });
    b.p->phase = &outer;
    b.p->nphase = 1;
    ir_print(&t, b.p);
    CHECK_HAS(t.s, "phase y for x1 in 0..x\n    Y[x1] = 1.0\n");
    bed_round(&b, b.p);
    bed_close(&b);
}

TEST(an_array_may_have_the_name_of_a_word_of_this_stage)
{
    Bed b;

    bed_open(&b);
    CHECK_HAS(bed_canonical(&b, "program p(m) stage loops\nf64 check[m], fma[m], fits[m]\n"
                                "phase a for i in 0..m\n"
                                "    check[i] = fma(fma[i], 1.0, fits[i])\n"
                                "    check fits(i) else overflow\n"),
              "    check[i] = fma(fma[i], 1.0, fits[i])\n    check fits(i) else overflow\n");
    bed_close(&b);
}

TEST(blocks_may_be_empty_and_lines_blank)
{
    reads_as(L,
             "phase c for i in 0..m   # rows\n"
             "\n"
             "    for k in 0..n\n"
             "  # a comment does not count\n"
             "    if i < 2\n"
             "    C[i] = 1; W[i] = 2;\n",
             "phase c for i in 0..m\n"
             "    for k in 0..n\n"
             "    if i < 2\n"
             "    C[i] = 1\n"
             "    W[i] = 2\n");
}

TEST(the_stage_of_coordinates_may_be_said)
{
    bed_same("program p(m) stage coordinates\nf64 Y[m]\ny: Y[0] = 1\n",
             "program p(m)\nf64 Y[m]\ny: Y[0] = 1\n");
}

TEST(trees_with_other_names_of_locals_are_equal)
{
    bed_same(L "phase c for i in 0..m\n    for k in 0..n\n        C[i] = k\n",
             L "phase c for row in 0..m\n    for i in 0..n\n        C[row] = i\n");
}

TEST(trees_that_differ_are_not_equal)
{
    static const char *const text[] = {
        "phase c for i in 0..m\n    C[i] = 1\n",
        "phase d for i in 0..m\n    C[i] = 1\n",
        "phase c for i in 0..n\n    C[i] = 1\n",
        "phase c for i in 1..m\n    C[i] = 1\n",
        "phase c\n    for i in 0..m\n        C[i] = 1\n",
        "phase c for i in 0..m\n    C[i] += 1\n",
        "phase c for i in 0..m\n    C[i + 0] = 1\n",
        "phase c for i in 0..m\n    W[i] = 1\n",
        "phase c for i in 0..m\n    C[i] = 1.0\n",
        "phase c for i in 0..m\n    d: C[i] = 1\n",
        "phase c vector for i in 0..m step 4\n    C[i] = 1\n",
        "phase c vector for i in 0..m step 8\n    C[i] = 1\n",
        "phase c for i in 0..m\n    let a: f32 = 1\n    C[i] = a\n",
        "phase c for i in 0..m\n    let a: f64 = 1\n    C[i] = a\n",
        "phase c for i in 0..m\n    check i < 1 else index\n",
        "phase c for i in 0..m\n    check i < 1 else miss\n",
        "temp i32 C.hit[I]\nphase c for i in 0..m\n    C.hit[i] = 1\n",
        "temp i64 C.hit[I]\nphase c for i in 0..m\n    C.hit[i] = 1\n",
        "temp i32 C.hit[n]\nphase c for i in 0..m\n    C.hit[i] = 1\n",
        "phase c for i in 0..m\n    for k in 0..m\n        C[i] = 1\n",
        "phase c for i in 0..m\n    for k in 0..m\n        C[k] = 1\n",
        "",
    };
    enum { N = sizeof text / sizeof *text };
    Bed b;
    Prog *p[N];

    bed_open(&b);
    for (int i = 0; i < N; i++) {
        Text t = { .arena = &b.arena };

        text_f(&t, "%s%s", L, text[i]);
        CHECK_EQ(CATCH(&b.err, p[i] = ir_parse(&b.arena, "t", t.s, t.n)), ST_OK);
        for (int k = 0; k < i; k++)
            CHECK(!ir_equal(p[i], p[k]) && ir_hash(p[i]) != ir_hash(p[k]));
        CHECK(ir_equal(p[i], ir_copy(&b.arena, p[i])));
    }
    bed_close(&b);
}

static const Refusal refusals[] = {
    { "program p(m) stage loop\n", ST_PARSE, 1, 20, "expected coordinates, positions, loops or threads" },
    { L "y: C[i] = 1\n", ST_PARSE, 6, 1, "expected a declaration, an initial value or a phase, found `y`" },
    { L "phase 3\n", ST_PARSE, 6, 7, "expected the label of the phase" },
    { L "init\n", ST_PARSE, 6, 5, "expected an array" },
    { L "init N = 0\n", ST_CHECK, 6, 6, "N is not an array" },
    { L "init C 0\n", ST_PARSE, 6, 8, "expected `=`" },
    { L "init C = 0\ninit C = 1\n", ST_CHECK, 7, 6, "C has an initial value already" },
    { L "init C[x, y] = 0\n", ST_CHECK, 6, 11, "C has 1 dimension, and this names more" },
    { L "init B[x] = 0\n", ST_CHECK, 6, 11, "B has 2 dimensions, and this names 1" },
    { L "phase c for I in 0..m\n", ST_CHECK, 6, 13, "begins with a capital" },
    { L "phase c for m in 0..m\n", ST_CHECK, 6, 13, "m is already the name of a size" },
    { L "phase c for i of 0..m\n", ST_PARSE, 6, 15, "expected `in` and a range, found `of`" },
    { L "phase c for i in 0.m\n", ST_PARSE, 6, 19, "'.' means nothing here" },
    { L "phase c for i in 0:m\n", ST_PARSE, 6, 19, "expected `..`, found `:`" },
    { L "phase c for i in 0.5..m\n", ST_CHECK, 6, 18, "an integer is needed here, not real" },
    { L "phase c vector i in 0..m\n", ST_PARSE, 6, 16, "expected `for`, found `i`" },
    { L "phase c vector for i in 0..m\n    C[i] = 1\n", ST_PARSE, 6, 29,
      "expected `step` and the number of lanes" },
    { L "phase c vector for i in 0..m step 1\n", ST_LIMIT, 6, 36, "takes 2 to 1024 steps" },
    { L "phase c vector for i in 0..m step 1025\n", ST_LIMIT, 6, 39, "takes 2 to 1024 steps" },
    { L "phase c for i in 0..m balance J.start\n    C[i] = 1\n", ST_CHECK, 6, 31,
      "J.start does not weigh this phase; no start array does" },
    { L "phase c for i in 0..m balance J.start\n    for e in E.start[i]..m\n", ST_CHECK, 6, 31,
      "J.start does not weigh this phase; write E.start" },
    { L "phase c for i in 0..m parts J.none\n    C[i] = 1\n", ST_CHECK, 6, 29,
      "J.none is not an array; after `parts` comes a coordinate" },
    { L "phase c\n    C[0] = 1\n    C[1] = 1\n", ST_CHECK, 6, 7,
      "has one line with its body below it" },
    { L "phase c\n", ST_CHECK, 6, 7, "has one line with its body below it, not 0" },
    { L "phase c for i in 0..m\n    for i in 0..n\n", ST_CHECK, 7, 9,
      "i is already the name of a local" },
    { L "phase c for i in 0..m\n    let t = 1\n    let t = 2\n", ST_CHECK, 8, 9,
      "t is already the name of a let" },
    { L "phase c for i in 0..m\n    for k in 0..n\n        C[i] = 1\n    C[k] = 1\n", ST_CHECK, 9,
      7, "k is not known here: no size, local or let" },
    { L "phase c for i in 0..m\n        C[i] = 1\n    C[i] = 1\n", ST_PARSE, 8, 5,
      "indented by 4 columns and its block by 8" },
    { L "phase c for i in 0..m\n    C[i] = 1\n        C[i] = 1\n", ST_PARSE, 8, 9,
      "expected a loop, a branch, a let or a store, found an indented line" },
    { L "phase c for i in 0..m\n    C[i] = pos(i)\n", ST_CHECK, 7, 12, "pos means nothing below" },
    { L "phase c for i in 0..m\n    C[i] = j(i)\n", ST_CHECK, 7, 12, "j means nothing below" },
    { L "phase c for i in 0..m\n    C[i] = 1 if stored(C[i])\n", ST_PARSE, 7, 14,
      "expected the end of the line, found `if`" },
    { L "phase c for i in 0..m\n    if stored(C[i])\n", ST_CHECK, 7, 8, "stored means nothing" },
    { L "phase c for i in 0..m\n    C[@i] = 1\n", ST_PARSE, 7, 7, "expected a value, found `@`" },
    { L "phase c for i in 0..m\n    C[(i, i)] = 1\n", ST_CHECK, 7, 7, "not a tuple" },
    { L "phase c for i in 0..m\n    C[1.5] = 1\n", ST_CHECK, 7, 7, "an integer is needed here" },
    { L "phase c for i in 0..m\n    C[i, i] = 1\n", ST_CHECK, 7, 5,
      "C takes 1 index at stage loops, and 2 are given" },
    { L "phase c for i in 0..m\n    B[i, i] = 1\n", ST_CHECK, 7, 5,
      "B takes 1 index at stage loops, and 2 are given" },
    { P "phase c for i in 0..m\n    B[i] = 1\n", ST_CHECK, 7, 5,
      "B takes 2 indices at stage positions, and 1 is given" },
    { P "phase c for i in 0..m\n    C[i] = J.start[i, i]\n", ST_CHECK, 7, 12,
      "J.start takes 1 index" },
    { L "phase c for i in 0..m\n    C[i] = Q.m3[i]\n", ST_CHECK, 7, 12, "Q.m3 is not an array" },
    { L "phase c for i in 0..m\n    C[i] = I.start[i]\n", ST_CHECK, 7, 12, "I.start is not" },
    { L "phase c for i in 0..m\n    C[i] = I.coord[i]\n", ST_CHECK, 7, 12, "I.coord is not" },
    { L "phase c for i in 0..m\n    C[i] = E.size[i]\n", ST_CHECK, 7, 12, "E.size is not" },
    { L "phase c for i in 0..m\n    C[i] = C.S.base[i]\n", ST_CHECK, 7, 12, "C.S.base is not" },
    { L "phase c for i in 0..m\n    C[i] = X.MS.base[i]\n", ST_CHECK, 7, 12, "X.MS.base is not" },
    { L "phase c for i in 0..m\n    C[i] = A.base[i]\n", ST_CHECK, 7, 12, "A.base is not" },
    { L "phase c for i in 0..m\n    C[i] = find(K, 0, 1, 2)\n", ST_CHECK, 7, 17, "K is none" },
    { L "phase c for i in 0..m\n    C[i] = find(J, 0, 1)\n", ST_CHECK, 7, 17,
      "find on axis J takes 3 values after it, but 2 are given" },
    { L "phase c for i in 0..m\n    C[i] = find(J, 0)\n", ST_CHECK, 7, 17, "but 1 is given" },
    { L "phase c for i in 0..m\n    C[i] = find(J, 0, 1, 2, 3)\n", ST_PARSE, 7, 29,
      "expected `)`, found `3`" },
    { L "phase c for i in 0..m\n    C[i] = above(I, 0)\n", ST_CHECK, 7, 18,
      "wants an axis under another, and I is none" },
    { L "phase c for i in 0..m\n    check i < 1\n", ST_PARSE, 7, 16,
      "expected `else` and what is" },
    { L "phase c for i in 0..m\n    check i < 1 else none\n", ST_PARSE, 7, 22,
      "expected index, miss or overflow" },
    { L "phase c for i in 0..m\n    check i else index\n", ST_CHECK, 7, 11,
      "a condition is needed" },
    { L "phase c for i in 0..m\n    let a: f16 = 1\n", ST_PARSE, 7, 12, "expected a type: bool" },
    { L "phase c for i in 0..m\n    let a: f32x0 = 1\n", ST_LIMIT, 7, 12, "1 to 1024 lanes" },
    { L "phase c for i in 0..m\n    let a: f32x1025 = 1\n", ST_LIMIT, 7, 12, "1 to 1024 lanes" },
    { L "phase c for i in 0..m\n    let a: f32y4 = 1\n", ST_PARSE, 7, 12, "expected a type" },
    { L "phase c for i in 0..m\n    let a: 3 = 1\n", ST_PARSE, 7, 12, "expected a type" },
    { L "phase c for i in 0..m\n    let t = i\n    t = 1\n", ST_CHECK, 8, 5, "t is not an array" },
    { L "phase c for i in 0..m\n    let a: f32xx = 1\n", ST_PARSE, 7, 12, "expected a type" },
    { L "phase c for i in 0..m\n    let a = (1, 2)\n", ST_CHECK, 7, 5, "not a tuple" },
    { L "phase c for i in 0..m\n    i 3\n", ST_PARSE, 7, 7, "expected `=`, `+=`" },
    { L "phase c for i in 0..m\n    Y[i] = 3\n", ST_CHECK, 7, 5, "Y is not an array; declare it" },
    { L "temp i32 Y.hit[I]\n", ST_CHECK, 6, 10, "only a temp that belongs to a buffer" },
    { L "i32 C.hit[I]\n", ST_CHECK, 6, 5, "only a temp that belongs to a buffer" },
    { L "temp i32 C.hit[I], C.hit[I]\n", ST_CHECK, 6, 20, "C.hit is already the name of a buffer" },
    { L "axis K.L = m\n", ST_CHECK, 6, 6, "a name is a letter or _" },
    { "program p(m)\ntemp i32 C.hit[m]\n", ST_PARSE, 2, 11, "'.' means nothing here" },
    { "program p(m)\naxis I = m, E(I) = seg : start < m\n", ST_CHECK, 2, 26,
      "a coordinate cannot be named start" },
};

TEST(what_is_no_tree_is_refused_at_its_place)
{
    REFUSES(refusals);
}

/* What stands n times, with a comma between. */
static void refuses_many(const char *head, const char *unit, int n, const char *part)
{
    Bed b;
    Text t = { .arena = &b.arena };

    bed_open(&b);
    text_str(&t, head);
    bed_repeat(&t, unit, ", ", n);
    CHECK_EQ(bed_try(&b, t.s), ST_LIMIT);
    CHECK_HAS(b.err.msg, part);
    bed_close(&b);
}

TEST(lists_have_limits)
{
    refuses_many(L "phase c for i in 0..m\n    C[", "0", 33, "more than 32 indices");
    refuses_many(L "phase c for i in 0..m\n    C[i] = 1 at ", "W[i] = 1", 18,
                 "more than 17 companions");
}

TEST(an_axis_of_too_many_coordinates_is_not_searched)
{
    Bed b;
    Text t = { .arena = &b.arena };

    bed_open(&b);
    text_str(&t, "program p(m) stage loops\naxis I = m, F(I) = 2 : c0 = i + f");
    for (int k = 1; k < IR_MAX_RANK; k++)
        text_f(&t, ", c%d = f", k);
    text_str(&t, "\nf64 Y[I]\nphase y for i in 0..m\n    Y[i] = find(F, 0, 1)\n");
    CHECK_EQ(bed_try(&b, t.s), ST_LIMIT);
    CHECK_HAS(b.err.msg, "axis F has too many coordinates to be searched");
    bed_close(&b);
}

TEST(blocks_nest_256_deep_and_no_deeper)
{
    for (int deep = LOOP_MAX_NEST; deep <= LOOP_MAX_NEST + 1; deep++) {
        Bed b;
        Text t = { .arena = &b.arena };
        Status st;

        bed_open(&b);
        text_str(&t, "program p(m) stage loops\nf64 Y[m]\nphase y for i in 0..m\n");
        for (int k = 1; k < deep; k++)
            text_f(&t, "%*sif i < %d\n", k, "", k);
        text_f(&t, "%*sY[i] = 1\n", deep, "");
        st = bed_try(&b, t.s);
        CHECK_EQ(st, deep <= LOOP_MAX_NEST ? ST_OK : ST_LIMIT);
        if (st == ST_OK)
            bed_round(&b, b.p);
        bed_close(&b);
    }
}

/* Deeper than brackets may nest in a text. */
TEST(a_long_sum_of_fused_products_reads_back)
{
    Bed b;
    Text t = { .arena = &b.arena };

    bed_open(&b);
    text_f(&t, "%sphase c for i in 0..m\n    let x0 = B[i]\n", L);
    for (int k = 1; k <= 900; k++)
        text_f(&t, "    let x%d = fma(A[%d], B[%d], x%d)\n", k, k, k, k - 1);
    text_str(&t, "    C[i] = x900\n");
    CHECK_HAS(bed_canonical(&b, t.s), "    C[i] = fma(A[900], B[900], t8)\n");
    bed_close(&b);
}

/* x2 = x * x, x4 = x2 * x2, ...: a tree of 2^40 nodes if it were written out. */
TEST(shared_parts_do_not_grow_into_trees)
{
    Bed b;
    Text t = { .arena = &b.arena };
    const char *text;

    bed_open(&b);
    text_f(&t, "%sphase c for i in 0..m\n    let x0 = B[i]\n", L);
    for (int k = 1; k <= 40; k++)
        text_f(&t, "    let x%d = x%d * x%d\n", k, k - 1, k - 1);
    text_str(&t, "    C[i] = x40\n");
    text = bed_canonical(&b, t.s);
    CHECK(strlen(text) < 2000);
    bed_close(&b);
}
