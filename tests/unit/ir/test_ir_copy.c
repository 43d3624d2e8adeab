/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * src/ir/copy.c, equal.c, walk.c and prune.c: whole programs copied, compared, walked and
 * pruned. */
#include "unit/ir_bed.h"

/* Something of everything, so that each field of each object has a text that changes it. */
static const char whole[] =
    "program all(m, n)\n"
    "axis I = m, J = compressed(I, n) sorted unique, E(I) = seg : j < n, h = e + 2 < m padded\n"
    "axis K = 2 * n, O(K) = 2\n"
    "axis S = 2, T(S) = {1, 3}, C(T) = one : table {5, 6, 7, 8}\n"
    "axis P = rows s m1 -> c { 1 0 -> 0.5, 0 2 -> -1 }, Q(P) = rows a b { 1 2; 3 4, 5 6 }\n"
    "axis U(I) = built : load < n\n"
    "f64 A[I, J], B[E], X[n], Y[I] fill 1\n"
    "temp f32 Z[E]\n"
    "inout f64 S0[]\n"
    "const f64 G[2] = {0.1, 0.2}\n"
    "const i64 L[S] = {3, 4}\n"
    "i64 W[I]\n"
    "f64 D[I, U], M[S, T]\n"
    "z: Z[e] = X[j(e)] * 2\n"
    "u: for i, j, e: U(i) |= j if j != h(e)\n"
    "d: D[i, u] += A[i, u] * G[0] + Z[e]\n"
    "y: Y[i] max= A[i, j] at W[i] = j\n"
    "s0: for a1 in I, t1 in 3, p: S0[] += X[a1] * c[p] * L[1] * t1 + size(K)\n"
    "for s, t:\n"
    "    m: M[s, t] = loc(t) + pos(t)\n"
    "    s1: S0[] += B[@3] if stored(A[0, 1]) and not 1 < n\n";

static const struct {
    const char *from, *to; /* the first `from` of the text becomes `to` */
} edits[] = {
    { "all(", "none(" },
    { "all(m, n)", "all(n, m)" },
    { "all(m, n)", "all(m, n, w)" },
    { "I = m", "I = n" },
    { "I = m", "I = m + 0" },
    { "J = compressed(I, n)", "J = compressed(I, m)" },
    { "J = compressed(I, n)", "J(I) = seg : load" },
    { "J = compressed(I, n)", "J(I) = n : load < n" },
    { "sorted unique", "unique" },
    { "sorted unique", "sorted unique padded" },
    { "E(I) = seg", "E(I) = m" },
    { "O(K) = 2", "O(I) = 2" },
    { " : j < n, h", " : j < m, h" },
    { " : j < n, h", " : j, h" },
    { " : j < n, h", " : j = ident < n, h" },
    { "h = e + 2", "h = e + 3" },
    { "h = e + 2", "h = j + 2" },
    { "h = e + 2 < m", "h = e + 2" },
    { "2 * n", "n * 2" },
    { "2 * n", "2 * m" },
    { "2 * n", "2 + n" },
    { "{1, 3}", "{3, 1}" },
    { "{1, 3}", "{2, 2}" },
    { "{5, 6, 7, 8}", "{5, 6, 7, 9}" },
    { "C(T) = one : table", "C(T) = one : q =" },
    { "rows s m1", "rows s m2" },
    { "1 0 -> 0.5", "1 1 -> 0.5" },
    { "1 0 -> 0.5", "1 0 -> 0.25" },
    { "-> -1", "-> 1" },
    { "1 2; 3 4, 5 6", "1 2, 3 4; 5 6" },
    { "1 2; 3 4, 5 6", "1 2; 3 4, 5 7" },
    { "built : load < n", "built : load < m" },
    { "f64 A[I, J]", "f32 A[I, J]" },
    { "B[E]", "B[I, E]" },
    { "X[n]", "X[m]" },
    { "X[n]", "X[K]" },
    { "fill 1", "fill 2" },
    { "fill 1", "" },
    { "fill 1", "fill 0" },
    { "temp f32 Z[E]", "f32 Z[E]" },
    { "temp f32 Z[E]", "temp f64 Z[E]" },
    { "temp f32 Z[E]", "temp f32 Z[I, E]" },
    { "inout f64", "f64" },
    { "{0.1, 0.2}", "{0.2, 0.1}" },
    { "{0.1, 0.2}", "{0.1, 0.20000000000000004}" },
    { "{3, 4}", "{3, 5}" },
    { "const i64 L", "const i32 L" },
    { "i64 W[I]\nf64 D[I, U], M[S, T]", "f64 D[I, U], M[S, T]\ni64 W[I]" },
    { "z: Z", "zz: Z" },
    { "z: Z[e] = ", "z: Z[e] += " },
    { "X[j(e)] * 2", "X[j(e)] * 3" },
    { "X[j(e)] * 2", "X[j(e)] * 2.0" },
    { "X[j(e)] * 2", "2 * X[j(e)]" },
    { "X[j(e)] * 2", "X[h(e)] * 2" },
    { "X[j(e)] * 2", "X[j(e)] / 2" },
    { "X[j(e)] * 2", "X[j(e)] * 2 if i < 2" },
    { "for i, j, e: U", "for i, e, j: U" },
    { "for i, j, e: U", "for i, j, e, k: U" },
    { "|= j if", "|= j + 0 if" },
    { "j != h(e)", "j == h(e)" },
    { "j != h(e)", "h(e) != j" },
    { "D[i, u] +=", "D[i, u] max=" },
    { "G[0]", "G[1]" },
    { "max= A", "min= A" },
    { " at W[i] = j", "" },
    { " at W[i] = j", " at W[i] = i" },
    { "a1 in I, t1 in 3", "a1 in I, t1 in 4" },
    { "a1 in I, t1 in 3", "t1 in 3, a1 in I" },
    { "a1 in I, t1 in 3", "a1 in K, t1 in 3" },
    { "size(K)", "size(I)" },
    { "for s, t:\n    m: M[s, t] = loc(t) + pos(t)\n    s1: S0[] += B[@3]",
      "m: M[s, t] = loc(t) + pos(t)\ns1: for s, t: S0[] += B[@3]" },
    { "loc(t) + pos(t)", "pos(t) + loc(t)" },
    { "loc(t) + pos(t)", "loc(s) + pos(t)" },
    { "B[@3]", "B[@4]" },
    { "stored(A[0, 1])", "stored(A[1, 0])" },
    { "and not 1", "or not 1" },
    { "and not 1", "and 1" },
};

static const char *edited(Bed *b, const char *from, const char *to)
{
    const char *at = strstr(whole, from);
    Text t = { .arena = &b->arena };

    CHECK(at != NULL);
    text_put(&t, whole, (size_t)(at - whole));
    text_str(&t, to);
    text_str(&t, at + strlen(from));
    return t.s;
}

TEST(programs_that_differ_in_one_place_are_not_equal)
{
    enum { N = sizeof edits / sizeof *edits };
    uint64_t hash[N + 1];
    Prog *p;
    Bed b;

    bed_open(&b);
    p = bed_read(&b, whole);
    bed_round(&b, p);
    hash[N] = ir_hash(p);
    for (int i = 0; i < N; i++) {
        Prog *q = bed_read(&b, edited(&b, edits[i].from, edits[i].to));

        if (ir_equal(p, q) || !ir_equal(q, q))
            test_fail(__FILE__, __LINE__, "%s and %s are the same", edits[i].from, edits[i].to);
        hash[i] = ir_hash(q);
        bed_round(&b, q);
    }
    for (int i = 0; i <= N; i++)
        for (int k = 0; k < i; k++)
            CHECK(hash[i] != hash[k]);
    bed_close(&b);
}

TEST(places_and_the_way_of_writing_make_no_difference)
{
    bed_same(whole, whole);
    bed_same("program p(n)\naxis I = n\nf64 A[I], B[I]\na: for i: A[i] = B[i]\n",
             "\n\nprogram p(n)\naxis I = dense(n); f64 A[I]\nf64 B[I]\na:A[i]=B[i]");
}

TEST(sharing_makes_no_difference)
{
    Bed b;
    Prog *p, *q;

    bed_open(&b); /* the nodes of q are made in another order, and some are not used */
    p = bed_read(&b, "program p(n)\nf64 A[]\na: A[] = n * 2 + n * 2\n");
    q = bed_read(&b,
                 "program p(n)\nf64 A[]\nfor:\n  let t = 3\n  let u = n * 2\n  a: A[] = u + u\n");
    CHECK(ir_equal(p, q) && ir_hash(p) == ir_hash(q));
    bed_close(&b);
}

static void same_objects(const Prog *a, const Prog *b)
{
    CHECK_EQ(a->nexpr, b->nexpr);
    CHECK_EQ(a->nsym, b->nsym);
    for (int i = 0; i < a->nexpr; i++) {
        CHECK(a->expr[i] != b->expr[i]);
        CHECK_EQ(a->expr[i]->op, b->expr[i]->op);
        CHECK_EQ(a->expr[i]->tree, b->expr[i]->tree);
        CHECK_EQ(a->expr[i]->depth, b->expr[i]->depth);
    }
    for (int i = 0; i < a->nvar; i++)
        CHECK(a->var[i] != b->var[i] && a->var[i]->name != b->var[i]->name);
    for (int i = 0; i < a->naxis; i++)
        CHECK(a->axis[i] != b->axis[i]);
}

TEST(a_copy_is_exact_and_lives_without_the_original)
{
    static const char more[] = "f64 New[3]\naxis V1 = 3\nnew: New[v1] = G[0] * 2\n"
                               "for a1 in I: S0[] += X[a1]\n";
    Bed old, new;
    Prog *copy, *again;
    const char *text;

    bed_open(&old);
    bed_open(&new);
    bed_read(&old, whole);
    text = bed_print(&new, bed_read(&new, whole));
    copy = ir_copy(&new.arena, old.p);
    CHECK(ir_equal(copy, old.p));
    CHECK(ir_hash(copy) == ir_hash(old.p));
    same_objects(old.p, copy);
    bed_close(&old);
    CHECK_STR(bed_print(&new, copy), text);
    CHECK_EQ(CATCH(&new.err, ir_check(copy)), ST_OK);
    CHECK(ir_int(copy, 2) == copy->expr[ir_int(copy, 2)->id]);
    CHECK(ir_var(copy, "i", ir_find_axis(copy, "I"), NULL) == ir_find_axis(copy, "I")->var);
    CHECK_STR(ir_fresh(copy, "z", true), "z1");
    CHECK_EQ(CATCH(&new.err, ir_parse_more(copy, "more", more, strlen(more)); ir_check(copy)),
             ST_OK);
    bed_round(&new, copy);
    again = ir_copy(&new.arena, copy);
    CHECK(ir_equal(again, copy));
    bed_close(&new);
}

TEST(an_empty_program_can_be_copied_and_added_to)
{
    Bed b;
    Prog *p;

    bed_open(&b);
    p = ir_copy(&b.arena, ir_prog(&b.arena, "empty"));
    CHECK_STR(bed_round(&b, p), "program empty()\n");
    ir_size(p, "n");
    CHECK_STR(bed_round(&b, p), "program empty(n)\n");
    bed_close(&b);
}

static void count(Expr *e, void *ctx)
{
    (void)e;
    ++*(int *)ctx;
}

TEST(a_visit_meets_each_node_once_and_children_first)
{
    Bed b;
    Memo met = { 0 };
    const Assign *a;
    int n = 0, all = 0;

    bed_open(&b);
    a = bed_read(&b, "program p(n)\naxis I = n\nf64 A[I], S[]\ni64 W[]\n"
                     "S[] max= (A[i] + 1) * (A[i] + 1) at W[] = i if A[i] + 1 < 2\n")
            ->stmt[0]
            ->assign;
    ir_visit(b.p, a->value, count, &n, &met);
    CHECK_EQ(n, 5); /* i, A[i], 1, +, * */
    ir_visit(b.p, a->value, count, &n, &met);
    CHECK_EQ(n, 5);
    ir_visit_assign(b.p, a, count, &all, &(Memo){ 0 });
    CHECK_EQ(all, 10); /* and 2, <, S[], W[], the value of i */
    bed_close(&b);
}

static Expr *add_one(Prog *p, Expr *e, void *ctx)
{
    ++*(int *)ctx;
    return e->op == OP_int ? ir_int(p, e->i + 1) : e;
}

TEST(a_rewrite_rebuilds_each_node_once_and_keeps_what_it_can)
{
    Bed b;
    Memo memo = { 0 };
    Text out = { .arena = &b.arena };
    Expr *e;
    int n = 0;

    bed_open(&b);
    e = bed_read(
            &b, "program p(n)\naxis I = n, U(I) = built : a < n, b < n\nf64 A[n, n], B[I, U], S[]\n"
                "U(i) |= (1, i)\nB[i, u] = 1\n"
                "S[] += A[i, 1] * A[i, 1] + B[i, (2, 3)] + B[_, @4] + exp(n)\n")
            ->stmt[2]
            ->assign[0]
            .value;
    ir_print_expr(&out, b.p, ir_rewrite(b.p, e, add_one, &n, &memo));
    CHECK_STR(out.s, "A[i, 2] * A[i, 2] + B[i, (3, 4)] + B[@5] + exp(n)");
    CHECK_EQ(n, 18); /* i is an entry in B and a value in A */
    e = b.p->stmt[0]->assign[0].out;
    CHECK(ir_rewrite(b.p, e, add_one, &n, &memo) == e);
    e = ir_row(b.p, ir_find_axis(b.p, "U"), ir_int(b.p, 7));
    out.n = 0;
    CHECK(ir_rewrite(b.p, e, add_one, &n, &memo) ==
          ir_row(b.p, ir_find_axis(b.p, "U"), ir_int(b.p, 8)));
    bed_close(&b);
}

TEST(the_default_variables_of_a_statement_stand_in_the_order_of_their_axes)
{
    Bed b;
    const Stmt *s;
    static const char *const want[] = { "i", "e", "k", "l" };

    bed_open(&b);
    s = bed_read(&b, "program p(n)\naxis I = n, E(I) = seg : j < n, K = n, L = n\n"
                     "f64 A[E], X[n], S[]\nS[] += X[l] * A[e] * X[k] if X[l] > 0\n")
            ->stmt[0];
    CHECK_EQ(s->nbind, 4);
    for (int i = 0; i < 4; i++)
        CHECK_STR(s->bind[i]->name, want[i]);
    bed_close(&b);
}

TEST(pruning_keeps_what_the_outputs_need_and_nothing_else)
{
    static const char pruned[] =
        "program p(m, n)\n"
        "axis I = m, E(I) = seg : j < n\n"
        "axis R = 2, R2(R) = {1, 2}\n"
        "axis P = rows a -> c { 1 -> 2, 0 -> 3 }\n"
        "f64 A[E], X[n], Y[I], Y0[I]\n"
        "temp f64 T[I, E], L0[]\n"
        "const i64 G[R2] = {1, 2, 3}\n"
        "i64 W[I]\n"
        "t: T[i, e] = A[e] * X[j(e)]\n"
        "l0: L0[] += Y0[i]\n"
        "y: for i, e, t1 in 3, f in E(@2), r, r2, p: Y[i] max= T[@3] * c[p] * G[r2] + t1 + size(P) + "
        "A[f] + L0[] at W[i] = pos(e) if stored(A[e])\n";
    Bed b, other;
    Prog *p;

    bed_open(&b);
    bed_open(&other);
    p = bed_read(
        &b, "program p(m, n, o, unused)\n"
            "axis I = m, E(I) = seg : j < n, K = o, R = 2, R2(R) = {1, 2}\n"
            "axis P = rows a -> c { 1 -> 2, 0 -> 3 }, Q(P) = rows b -> d { 1 -> 1; 2 -> 2 }\n"
            "f64 A[E], X[n], Y[I], Y0[I], Dead[K]\n"
            "temp f64 T[I, E], T2[K], T3[I], L0[]\n"
            "const i64 G[R2] = {1, 2, 3}\n"
            "i64 W[I]\n"
            "t: T[e] = A[e] * X[j(e)]\n"
            "for i:\n"
            "    t3: T3[i] = 3\n"
            "    l0: L0[] += Y0[i]\n"
            "t2: T2[k] = 1\n"
            "y: for i, e, t1 in 3, f in E(@2), r2, p: Y[i] max= T[_, @3] * c[p] * G[r2] + t1 + "
            "size(P) + A[f] + L0[] at W[i] = pos(e) if stored(A[e])\n");
    CHECK_EQ(CATCH(&b.err, p = ir_prune(&other.arena, p)), ST_OK);
    bed_close(&b);
    CHECK_STR(bed_round(&other, p), pruned);
    bed_close(&other);
}

TEST(a_program_made_anew_is_the_same_program)
{
    Bed b, other;
    Prog *p;
    const char *text;

    bed_open(&b);
    bed_open(&other);
    p = ir_rebuild(&other.arena, bed_read(&b, whole));
    CHECK(ir_equal(p, b.p));
    text = bed_print(&b, b.p);
    CHECK_STR(bed_round(&other, p), text);
    bed_close(&b);
    bed_close(&other);
}

TEST(pruning_keeps_built_axes_and_what_fills_them)
{
    static const char text[] = "program p(m, n)\n"
                               "axis I = m, U(I) = built : a < n, b < n\n"
                               "temp i64 T[I]\n"
                               "t: T[i] = 2 * i\n"
                               "u: U(i) |= (T[i], n - 1) if i > 0\n";
    Bed b;

    bed_open(&b);
    CHECK_STR(bed_round(&b, ir_prune(&b.arena, bed_read(&b, text))), text);
    bed_close(&b);
}
