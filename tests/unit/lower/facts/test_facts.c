/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * lower/facts/exists.c, range.c, storage/offset.c: what passes may conclude from the loops
 * around an expression.  A wrong yes is a kernel that reads outside; a wrong no is slower code
 * only. */
#include "lower/facts/facts_int.h"
#include "lower/storage/storage_int.h"
#include "unit/ir_bed.h"

#define HEAD                                                                               \
    "program p(m, n, f) stage loops\n"                                                     \
    "axis I = m, J(I) = seg : c < n, P(I) = seg : h < n padded, K = f, B = m / 4, R = 4\n" \
    "axis T = 3, Q(T) = { 2, 0, 3 } : y = { 0, 4, 1, 2, 2 }\n"                             \
    "f32 X[n], Y[m, f], Z[], V[f, 12], W[J], S[m * 4], U[m * 4, f]\ni64 D[m]\ni32 N[m]\n"

/* The last store of a tree. */
static const Node *last_store(const Node *n)
{
    const Node *found = n->kind == N_STORE ? n : NULL;

    for (int i = 0; i < n->nbody; i++) {
        const Node *inner = last_store(n->body[i]);

        found = inner != NULL ? inner : found;
    }
    return found;
}

static const Node *read_phase(Bed *b, const char *body)
{
    char text[2000];

    snprintf(text, sizeof text, HEAD "%s", body);
    if (CATCH(&b->err, b->p = ir_parse(&b->arena, "t.weft", text, strlen(text))) != ST_OK)
        test_fail(__FILE__, __LINE__, "refused at %d:%d: %s\n%s", b->err.line, b->err.col,
                  b->err.msg, body);
    return b->p->phase[0];
}

typedef struct Case {
    const char *body;
    bool want;
} Case;

static const Case elements[] = {
    { "phase c for i in 0..n\n    X[i] = 1\n", true },
    { "phase c for i in 0..m\n    X[i] = 1\n", false },
    { "phase c for i in 0..n\n    X[i + 1] = 1\n", false },
    { "phase c for i in -1..n\n    X[i] = 1\n", false },
    { "phase c for i in 0..min(n, 7)\n    X[i] = 1\n", true },
    { "phase c for i in 0..m\n    for k in 0..f\n        Y[i * f + k] = 1\n", true },
    { "phase c for i in 0..m\n    for k in 0..f\n        Y[k + f * i] = 1\n", true },
    { "phase c for i in 0..m\n    for k in 0..n\n        Y[i * f + k] = 1\n", false },
    { "phase c for i in 0..n\n    for k in 0..f\n        Y[i * f + k] = 1\n", false },
    { "phase c for i in 0..m\n    Y[i] = 1\n", false },
    { "phase c for i in 0..f\n    Y[i] = 1\n", false }, /* of row 0, and there may be none */
    /* an array of one element, and elements of other places of it */
    { "phase c\n    Z[0] = 1\n", true },
    { "phase c\n    Z[1] = 1\n", false },
    { "phase c for i in 0..1\n    Z[i] = 1\n", false },
    /* of rows of a constant length */
    { "phase c for k in 0..f\n    for i in 0..12\n        V[k * 12 + i] = 1\n", true },
    { "phase c for k in 0..f\n    for i in 0..13\n        V[k * 12 + i] = 1\n", false },
    { "phase c for k in 0..f\n    for i in 0..3\n        for r in 0..4\n"
      "            V[k * 12 + (i * 4 + r)] = 1\n",
      true },
    { "phase c for k in 0..f\n    for i in 0..4\n        for r in 0..4\n"
      "            V[k * 12 + (i * 4 + r)] = 1\n",
      false },
    /* entries of rows, whose starts were validated */
    { "phase c for i in 0..m\n    for j in J.start[i]..J.start[i + 1]\n        W[j] = 1\n", true },
    { "phase c for i in 0..m\n    for j in J.start[i]..J.start[i + 2]\n        W[j] = 1\n", false },
    { "phase c for i in 0..m\n    for j in P.start[i]..P.start[i + 1]\n        W[j] = 1\n", false },
    /* coordinates that were validated, and those of padding, which are not */
    { "phase c for i in 0..m\n    for j in J.start[i]..J.start[i + 1]\n        X[J.c[j]] = 1\n",
      true },
    { "phase c for i in 0..m\n    for j in J.start[i]..J.start[i + 1]\n        D[J.c[j]] = 1\n",
      false },
    { "phase c for i in 0..m\n    for h in P.start[i]..P.start[i + 1]\n        X[P.h[h]] = 1\n",
      false },
    { "phase c for i in 0..m\n    X[D[i]] = 1\n", false },
    /* values of a let and of a constant table */
    { "phase c for i in 0..m\n    let a: i64 = i / 2\n    X[a] = 1\n", false },
    { "phase c for i in 0..12\n    for k in 0..f\n        let a: i64 = i / 2\n"
      "        V[k * 12 + a] = 1\n",
      true },
    { "phase c for i in 0..n\n    for k in 0..f\n        let a: i64 = Q.y[i]\n"
      "        V[k * 12 + a] = 1\n",
      true },
    { "phase c for i in 0..m\n    let a: i64 = J.c[i]\n    X[a] = 1\n", true },
    /* rows as blocks: of a dimension that is a product, and as many as fit */
    { "phase c for i in 0..m\n    for r in 0..4\n        S[i * 4 + r] = 1\n", true },
    { "phase c for i in 0..m\n    for r in 0..5\n        S[i * 4 + r] = 1\n", false },
    { "phase c for i in 0..n\n    for r in 0..4\n        S[i * 4 + r] = 1\n", false },
    { "phase c for i in 0..m\n    for r in 0..4\n        for k in 0..f\n"
      "            U[(i * 4 + r) * f + k] = 1\n",
      true },
    { "phase c for b in 0..m / 4\n    for r in 0..4\n        D[4 * b + r] = 1\n", true },
    { "phase c for b in 0..m / 4\n    for r in 0..4\n        D[b * 4 + r] = 1\n", true },
    { "phase c for b in 0..m / 4\n    for r in 0..5\n        D[4 * b + r] = 1\n", false },
    { "phase c for b in 0..m / 3\n    for r in 0..4\n        D[4 * b + r] = 1\n", false },
    { "phase c for b in 0..m / 4\n    for r in 0..4\n        D[4 * b + (r + 1)] = 1\n", false },
};

TEST(an_element_is_inside_only_where_loops_and_structure_say_so)
{
    for (size_t i = 0; i < sizeof elements / sizeof *elements; i++) {
        Bed b;
        const Node *phase;

        bed_open(&b);
        phase = read_phase(&b, elements[i].body);
        if (lower_is_inside(b.p, phase, last_store(phase)->out) != elements[i].want)
            test_fail(__FILE__, __LINE__, "not %s:\n%s", elements[i].want ? "inside" : "outside",
                      elements[i].body);
        bed_close(&b);
    }
}

/* The local of this name. */
static Local *local_of(const Node *n, const char *name)
{
    Local *found = n->local != NULL && strcmp(n->local->name, name) == 0 ? n->local : NULL;

    for (int i = 0; i < n->nbody && found == NULL; i++)
        found = local_of(n->body[i], name);
    return found;
}

TEST(a_loop_moves_an_element_in_one_dimension_or_none)
{
    static const struct {
        const char *body;
        int want;
    } cases[] = {
        { "phase c for i in 0..m\n    for k in 0..f\n        Y[i * f + k] = 1\n", 0 },
        { "phase c for k in 0..m\n    for i in 0..f\n        Y[k * f + i] = 1\n", 1 },
        { "phase c for k in 0..m\n    for i in 0..f\n        X[k] = 1\n", -1 },
        { "phase c for i in 0..m\n    for k in 0..n\n        Y[i * f + k] = 1\n", -1 },
        { "phase c for i in 0..m\n    for r in 0..4\n        S[i * 4 + r] = 1\n", 0 },
        { "phase c for r in 0..m\n    for i in 0..4\n        S[r * 4 + i] = 1\n", 0 },
        { "phase c for i in 0..4\n    for k in 0..4\n        V[i * 12 + (i + k)] = 1\n", -1 },
        { "phase c for i in 0..6\n    X[0 * i] = 1\n", -1 },
        { "phase c for k in 0..f\n    for i in 0..3\n        V[k * 12 + (i + i)] = 1\n", -1 },
        { "phase c for k in 0..f\n    for i in 0..3\n        V[k * 12 + i * i] = 1\n", -1 },
        { "phase c for k in 0..f\n    for i in 0..3\n        V[k * 12 + (2 * i + 1)] = 1\n", 1 },
        { "phase c for k in 0..f\n    for i in 0..3\n        V[k * 12 + (1 + i * 2)] = 1\n", 1 },
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Bed b;
        const Node *phase;
        int got;

        bed_open(&b);
        phase = read_phase(&b, cases[i].body);
        got = lower_dim_of(b.p, phase, last_store(phase)->out, local_of(phase, "i"));
        if (got != cases[i].want)
            test_fail(__FILE__, __LINE__, "%d and not %d:\n%s", got, cases[i].want, cases[i].body);
        bed_close(&b);
    }
}

TEST(a_value_is_sure_where_nothing_is_read_that_may_not_be_there)
{
    static const Case cases[] = {
        { "phase c for i in 0..m\n    D[i] = i * 4 + m\n", true },
        { "phase c for i in 0..m\n    D[i] = J.start[i]\n", true },
        { "phase c for i in 0..m\n    D[i] = J.start[i + 1]\n", true },
        { "phase c for i in 0..m\n    D[i] = J.start[i + 2]\n", false },
        { "phase c for i in 0..n\n    D[i] = J.start[i]\n", false },
        { "phase c for i in 0..m\n    D[i] = J.c[i]\n", false },
        { "phase c for i in 0..m\n    D[i] = N[i]\n", false },
        { "phase c for i in 0..m\n    D[i] = i / m\n", false },
        { "phase c for i in 0..m\n    D[i] = i % m\n", false },
        { "phase c for i in 0..m\n    let a: i64 = i\n    D[i] = a\n", false },
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Bed b;
        const Node *phase;

        bed_open(&b);
        phase = read_phase(&b, cases[i].body);
        if (lower_is_sure(b.p, phase, last_store(phase)->value) != cases[i].want)
            test_fail(__FILE__, __LINE__, "not %s:\n%s", cases[i].want ? "sure" : "unsure",
                      cases[i].body);
        bed_close(&b);
    }
}

/* What is known of a condition in a loop over i in 2..n and one over k in 0..4. */
static Truth truth_of(Bed *b, const char *cond)
{
    char text[300];
    const Node *outer, *inner;
    Ranges first, second;

    snprintf(text, sizeof text,
             "phase c for i in 2..n\n    for k in 0..4\n        if %s\n            X[i] = 1\n",
             cond);
    outer = read_phase(b, text);
    inner = outer->body[0];
    first = lower_range_of(NULL, outer);
    second = lower_range_of(&first, inner);
    return lower_truth(&second, inner->body[0]->cond);
}

TEST(conditions_are_decided_by_the_ranges_around_them)
{
    static const struct {
        const char *cond;
        Truth want;
    } cases[] = {
        { "i < n", YES },
        { "n > i", YES },
        { "i <= n", YES },
        { "i >= n", UNKNOWN },
        { "i < 2", NO },
        { "i <= 2", UNKNOWN },
        { "i >= 2", YES },
        { "i < m", UNKNOWN },
        { "k < 4", YES },
        { "k < 3", UNKNOWN },
        { "k == 4", NO },
        { "k != 4", YES },
        { "k == k", YES },
        { "k != k", NO },
        { "i != m", UNKNOWN },
        { "k < k", NO },
        { "k <= k", YES },
        { "k < 4 and i < 2", NO },
        { "k < 4 and i < n", YES },
        { "k < 3 and i < n", UNKNOWN },
        { "k < 3 or i < n", YES },
        { "k > 3 or i < 2", NO },
        { "k < 3 or i < m", UNKNOWN },
        { "not k < 4", NO },
        { "not k < 3", UNKNOWN },
        { "k + 1 > 0", YES },
        { "k - 4 < 0", YES },
        { "-k <= 0", YES },
        { "-k * 3 >= -9", YES },
        { "k * k < 10", YES },
        { "k % 3 < 3", YES },
        { "k / 2 < 2", YES },
        { "k / 0 < 2", UNKNOWN },
        { "k % i < 4", UNKNOWN },
        { "-7 / (k + 1) < 0", YES },
        { "min(k, 2) < 3", YES },
        { "max(k, 2) >= 2", YES },
        { "select(i < m, k, 3) < 4", YES },
        { "select(i < m, k, m) < 4", UNKNOWN },
        { "Q.y[k] < 5", YES },
        { "Q.y[k] < 4", UNKNOWN },
        { "Q.y[k] > 5", NO },
        { "J.start[i] >= 0", YES },
        { "J.c[k] < n", YES },
        { "P.h[k] < n", UNKNOWN },
        { "D[k] < n", UNKNOWN },
        { "N[k] < 3000000000", YES },
        { "size(J) >= 0", YES },
        { "i * 4 + k < n * 4", YES },
        { "k + 4 * i < 4 * n", YES },
        { "i * 4 + k < m * 4", UNKNOWN },
        { "i * 3 + k < n * 3", UNKNOWN },
        { "9223372036854775807 + k < 0", UNKNOWN },
        { "k - 9223372036854775807 - 2 < 0", UNKNOWN },
        { "9223372036854775807 * k < 0", UNKNOWN },
        { "X[k] < 1", UNKNOWN },
        { "X[k] == X[k]", UNKNOWN },
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Bed b;
        Truth got;

        bed_open(&b);
        got = truth_of(&b, cases[i].cond);
        if (got != cases[i].want)
            test_fail(__FILE__, __LINE__, "%s: %d and not %d", cases[i].cond, (int)got,
                      (int)cases[i].want);
        bed_close(&b);
    }
}

TEST(a_condition_that_is_too_long_to_look_at_is_not_known)
{
    Bed b;
    Expr *e;
    Prog *p;

    bed_open(&b);
    read_phase(&b, "phase c\n    Z[0] = 1\n");
    p = b.p;
    e = ir_op2(p, OP_lt, ir_int(p, 0), ir_int(p, 1));
    CHECK_EQ(lower_truth(NULL, e), YES);
    for (int i = 0; i < 40; i++)
        e = ir_op2(p, OP_and, e, ir_op1(p, OP_not, ir_op1(p, OP_not, e)));
    CHECK_EQ(lower_truth(NULL, e), UNKNOWN);
    bed_close(&b);
}

TEST(sums_and_differences_keep_their_constant_last)
{
    Bed b;
    Prog *p;
    Expr *i, *m, *f;

    bed_open(&b);
    read_phase(&b, "phase c\n    Z[0] = 1\n");
    p = b.p;
    m = ir_size_expr(p, p->size[0]);
    f = ir_size_expr(p, p->size[2]);
    i = tree_add(p, m, ir_int(p, 3));
    CHECK(tree_add(p, ir_int(p, 3), m) == i);
    CHECK(tree_add(p, tree_add(p, m, ir_int(p, 1)), ir_int(p, 2)) == i);
    CHECK(tree_add(p, tree_add(p, i, f), ir_int(p, -3)) == tree_add(p, m, f));
    CHECK(tree_sub(p, i, m) == ir_int(p, 3));
    CHECK(tree_sub(p, m, m) == ir_int(p, 0));
    CHECK(tree_sub(p, m, ir_int(p, 0)) == m);
    CHECK(tree_mul(p, m, ir_int(p, 0)) == ir_int(p, 0));
    CHECK(tree_mul(p, ir_int(p, 0), m) == ir_int(p, 0));
    CHECK(tree_mul(p, ir_int(p, 1), m) == m);
    CHECK_EQ(tree_apart(i, m), 3);
    CHECK_EQ(tree_apart(m, i), 3);
    CHECK_EQ(tree_apart(ir_int(p, 3), ir_int(p, 7)), 4);
    CHECK_EQ(tree_apart(i, f), 0);
    CHECK_EQ(tree_apart(ir_int(p, INT64_MIN), ir_int(p, 0)), 0);
    CHECK_EQ(tree_apart(ir_int(p, INT64_MIN), ir_int(p, 1)), 0);
    CHECK(!tree_differ(m, m));
    CHECK(tree_differ(m, tree_add(p, m, ir_int(p, -1))));
    bed_close(&b);
}
