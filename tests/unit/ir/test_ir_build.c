/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * src/ir/build.c and prog.c through their functions: interning, types, names; and random
 * expressions that must come back from their text as they were. */
#include "unit/ir_bed.h"
#include "unit/ir_gen.h"

#define P "program p(m, n)\n"
#define H                                                                           \
    P "axis I = m, J = compressed(I, n) sorted unique, E(I) = seg : j < n, K = n\n" \
      "f64 A[I, J], X[n], S[]\nf32 F[m]\ni64 W[I]\ni32 V[K]\n"

TEST(equal_expressions_are_the_same_node)
{
    Bed b;
    Expr *a, *c;
    int n;

    bed_open(&b);
    bed_read(&b, H);
    a = ir_op2(b.p, OP_add, ir_int(b.p, 2), ir_size_expr(b.p, b.p->size[0]));
    n = b.p->nexpr;
    c = ir_op2(b.p, OP_add, ir_int(b.p, 2), ir_size_expr(b.p, b.p->size[0]));
    CHECK(a == c);
    CHECK_EQ(b.p->nexpr, n);
    CHECK(a != ir_op2(b.p, OP_add, ir_size_expr(b.p, b.p->size[0]), ir_int(b.p, 2)));
    CHECK(ir_int(b.p, 0) != ir_real(b.p, 0));
    CHECK(ir_real(b.p, 0) != ir_real(b.p, -0.0));
    CHECK(ir_real(b.p, NAN) == ir_real(b.p, -NAN));
    CHECK(ir_int(b.p, 1) != ir_size_expr(b.p, b.p->size[1]));
    for (int i = 0; i < 2000; i++)
        CHECK(ir_int(b.p, i * 7919)->i == i * 7919);
    for (int i = 0; i < b.p->nexpr; i++)
        CHECK_EQ(b.p->expr[i]->id, i);
    bed_close(&b);
}

TEST(a_node_knows_its_depth_and_the_size_of_its_tree)
{
    Bed b;
    Expr *e;
    Axis *x;

    bed_open(&b);
    bed_read(&b, H "axis B1(J) = 2, C1(B1) = 2\n");
    e = ir_int(b.p, 1);
    CHECK_EQ(e->depth, 0);
    CHECK_EQ(e->tree, 1);
    e = ir_op2(b.p, OP_add, e, ir_op1(b.p, OP_abs, e));
    CHECK_EQ(e->depth, 2);
    CHECK_EQ(e->tree, 4);
    for (int i = 0; i < 40; i++)
        e = ir_op2(b.p, OP_mul, e, e);
    CHECK_EQ(e->depth, 42);
    CHECK_EQ(e->tree, UINT32_MAX);
    x = ir_find_axis(b.p, "C1"); /* an entry stands on what it hangs on */
    CHECK_EQ(ir_var_expr(b.p, x->var)->depth, 3);
    CHECK_EQ(ir_of_var(b.p, OP_pos, x->var)->tree, 1);
    bed_close(&b);
}

TEST(types_are_promoted_operator_by_operator)
{
    static const struct {
        const char *text;
        Type type;
    } row[] = {
        { "1 + i", T_i64 },
        { "1 + 0.5", T_real },
        { "i * 0.5", T_real },
        { "F[0] * 0.5", T_f32 },
        { "F[0] * i", T_f32 },
        { "F[0] * X[0]", T_f64 },
        { "0.5 * X[0]", T_f64 },
        { "W[i] * V[0]", T_i64 },
        { "-F[0]", T_f32 },
        { "W[i] % 3", T_i64 },
        { "i / 2", T_i64 },
        { "exp(i)", T_real },
        { "sqrt(F[0])", T_f32 },
        { "sigmoid(X[0])", T_f64 },
        { "relu(i)", T_i64 },
        { "sign(0.5)", T_real },
        { "min(i, 0.5)", T_real },
        { "max(F[0], X[0])", T_f64 },
        { "select(i < 0.5, i, F[0])", T_f32 },
        { "f32(X[0])", T_f32 },
        { "f64(i)", T_f64 },
        { "f32(1) * 0.1", T_f32 },
        { "stop(V[0])", T_i64 },
        { "pos(e) + size(E)", T_i64 },
    };
    Bed b;

    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        char text[512];

        bed_open(&b);
        snprintf(text, sizeof text, H "S[] += %s\n", row[i].text);
        CHECK_EQ(bed_read(&b, text)->stmt[0]->assign[0].value->type, row[i].type);
        bed_close(&b);
    }
    bed_open(&b);
    bed_read(&b, H);
    CHECK(ir_is_int(ir_int(b.p, 1)) && !ir_is_float(ir_int(b.p, 1)));
    CHECK(!ir_is_int(ir_real(b.p, 1)) && ir_is_float(ir_real(b.p, 1)));
    bed_close(&b);
    CHECK_EQ(ir_promote(T_real, T_i64), T_real);
    CHECK_EQ(ir_promote(T_i64, T_real), T_real);
}

TEST(a_literal_has_no_sign_outside)
{
    Bed b;

    bed_open(&b);
    bed_read(&b, H);
    CHECK(ir_op1(b.p, OP_neg, ir_int(b.p, 5)) == ir_int(b.p, -5));
    CHECK(ir_op1(b.p, OP_neg, ir_int(b.p, INT64_MAX)) == ir_int(b.p, -INT64_MAX));
    CHECK_EQ(ir_op1(b.p, OP_neg, ir_int(b.p, INT64_MIN))->op, OP_neg);
    CHECK(ir_op1(b.p, OP_neg, ir_real(b.p, 0)) == ir_real(b.p, -0.0));
    CHECK(ir_op1(b.p, OP_neg, ir_real(b.p, NAN)) == ir_real(b.p, NAN));
    CHECK_EQ(ir_op1(b.p, OP_neg, ir_size_expr(b.p, b.p->size[0]))->op, OP_neg);
    bed_close(&b);
}

TEST(builders_refuse_what_the_text_cannot_even_say)
{
    Bed b;
    Expr *one, *arg[17];
    Buf big = { .name = "Big", .type = T_f64, .nslot = 17 };
    Var *many[65] = { 0 };

    bed_open(&b);
    bed_read(&b, H);
    one = ir_int(b.p, 1);
    for (int i = 0; i < 17; i++)
        arg[i] = one;
    CHECK_EQ(CATCH(&b.err, ir_node(b.p, OP_tuple, arg, 17)), ST_LIMIT);
    CHECK_HAS(b.err.msg, "tuple of more than 16 values");
    CHECK_EQ(CATCH(&b.err, ir_op1(b.p, OP_stored, one)), ST_CHECK);
    CHECK_HAS(b.err.msg, "stored wants an access");
    CHECK_EQ(CATCH(&b.err, ir_op1(b.p, OP_add, one)), ST_CHECK);
    CHECK_HAS(b.err.msg, "+ takes 2 arguments, not 1");
    CHECK_EQ(CATCH(&b.err, ir_buf(b.p, &big)), ST_LIMIT);
    CHECK_HAS(b.err.msg, "Big: more than 16 slots");
    CHECK_EQ(CATCH(&b.err, ir_stmt(b.p, many, 65, &(Assign){ .op = A_ADD }, 1)), ST_LIMIT);
    CHECK_HAS(b.err.msg, "more than 64 variables in one statement");
    CHECK_EQ(CATCH(&b.err, ir_size(b.p, "i")), ST_CHECK);
    CHECK_HAS(b.err.msg, "i is the variable of axis I and cannot be a size");
    CHECK_EQ(CATCH(&b.err, ir_prog(&b.arena, "")), ST_CHECK);
    CHECK_HAS(b.err.msg, "a name is a letter or _ and up to 63 letters, digits or _");
    CHECK_EQ(CATCH(&b.err, ir_prog(&b.arena, "a-b")), ST_CHECK);
    CHECK_EQ(CATCH(&b.err, ir_prog(&b.arena, "3a")), ST_CHECK);
    CHECK_EQ(CATCH(&b.err, ir_size(b.p, "q\xc3\xa9")), ST_CHECK);
    bed_close(&b);
}

TEST(no_word_of_the_language_is_a_name)
{
    Bed b;
    char text[64];

    bed_open(&b);
    for (const char *const *word = ir_keywords(); *word != NULL; word++) {
        snprintf(text, sizeof text, "program p(%s)\n", *word);
        CHECK_EQ(bed_try(&b, text), ST_CHECK);
        CHECK_HAS(b.err.msg, "is a word of the language");
    }
    bed_close(&b);
}

TEST(names_are_found_or_made_fresh)
{
    Bed b;
    Prog *p;
    Arena *a = &b.arena;

    bed_open(&b);
    p = ir_prog(a, "empty");
    CHECK(ir_find_axis(p, "I") == NULL);
    p = bed_read(&b, H "s: S[] += 1\n");
    CHECK(ir_find_axis(p, "I") == p->axis[0]);
    CHECK(ir_find_axis(p, "Q") == NULL && ir_find_buf(p, "Q") == NULL);
    CHECK(ir_find_size(p, "Q") == NULL && ir_find_size(p, "m") == p->size[0]);
    CHECK(ir_find_axis(p, "A") == NULL && ir_find_buf(p, "I") == NULL);
    CHECK_EQ(ir_find_coord(ir_find_axis(p, "E"), "j"), 0);
    CHECK_EQ(ir_find_coord(ir_find_axis(p, "E"), "k"), -1);
    CHECK_EQ(ir_find_coord(ir_find_axis(p, "J"), "j"), -1);
    CHECK_STR(ir_fresh(p, "q", false), "q");
    CHECK_STR(ir_fresh(p, "q", false), "q");
    CHECK_STR(ir_fresh(p, "i", false), "i1");
    CHECK_STR(ir_fresh(p, "i", false), "i2");
    CHECK_STR(ir_fresh(p, "A", false), "A1");
    CHECK_STR(ir_fresh(p, "m", false), "m1");
    CHECK_STR(ir_fresh(p, "exp", false), "exp1");
    CHECK_STR(ir_fresh(p, "I", false), "I1");
    CHECK_STR(ir_fresh(p, "s", false), "s");
    CHECK_STR(ir_fresh(p, "s", true), "s1");
    CHECK_STR(ir_fresh(p, "A", true), "A");
    CHECK_STR(ir_fresh(p, "for", true), "for1");
    ir_var(p, "v", p->axis[0], NULL);
    CHECK_STR(ir_fresh(p, "v", false), "v1");
    bed_close(&b);
}

TEST(variables_are_interned_by_name_axis_and_parent)
{
    Bed b;
    Prog *p;
    Axis *i, *e, *dense;
    Var *v[300];

    bed_open(&b);
    p = bed_read(&b, H);
    i = ir_find_axis(p, "I");
    e = ir_find_axis(p, "E");
    dense = ir_dense(p, ir_int(p, 4));
    CHECK(dense == ir_dense(p, ir_int(p, 4)));
    CHECK(dense != ir_dense(p, ir_int(p, 5)));
    CHECK(ir_var(p, "i", i, NULL) == i->var);
    CHECK(ir_var(p, "e", e, ir_var_expr(p, i->var)) == e->var);
    CHECK(ir_var(p, "e", e, ir_int(p, 3)) != e->var);
    CHECK(ir_var(p, "t", i, NULL) != ir_var(p, "t", dense, NULL));
    CHECK(ir_var(p, "t", i, NULL) != ir_var(p, "u", i, NULL));
    for (int k = 0; k < 300; k++)
        v[k] = ir_var(p, "f", e, ir_int(p, k));
    for (int k = 0; k < 300; k++)
        CHECK(ir_var(p, "f", e, ir_int(p, k)) == v[k]);
    CHECK(ir_is_ancestor(i, e) && !ir_is_ancestor(e, i) && !ir_is_ancestor(i, i));
    bed_close(&b);
}

/* The two trees, node by node, without ir_equal. */
static bool same_tree(Expr *a, Expr *b)
{
    if (a->op != b->op || a->type != b->type || a->nargs != b->nargs || a->k != b->k ||
        a->depth != b->depth || a->tree != b->tree)
        return false;
    if ((a->op == OP_int || a->op == OP_real) && a->i != b->i)
        return false;
    if (a->op == OP_load && strcmp(a->buf->name, b->buf->name) != 0)
        return false;
    if ((a->op == OP_var || a->op == OP_coord || a->op == OP_pos || a->op == OP_loc) &&
        strcmp(a->var->name, b->var->name) != 0)
        return false;
    for (int i = 0; i < a->nargs; i++)
        if (!same_tree(a->arg[i], b->arg[i]))
            return false;
    return true;
}

static void round_trip(uint64_t seed)
{
    Bed b;
    Gen g = { .rng = seed };
    Assign a = { .op = A_ADD };
    Prog *p, *q;
    const char *text;

    bed_open(&b);
    p = g.p =
        bed_read(&b, H "s: S[] += A[i, 3] * X[j(e)] + W[i] + F[V[k]] + A[j] + i + m + n + j + "
                       "pos(e) + loc(j) + size(E) + A[@W[i]] + k + X[W[i] + 1]\n");
    ir_visit(p, p->stmt[0]->assign[0].value, gen_leaf, &g, &(Memo){ 0 });
    a.out = p->stmt[0]->assign[0].out;
    CHECK_EQ(CATCH(&b.err, a.value = gen_number(&g, 1 + gen_below(&g, 6));
                   a.guard = gen_below(&g, 2) ? gen_condition(&g, gen_below(&g, 5)) : NULL;
                   ir_stmt(p, NULL, 0, &a, 1)),
             ST_OK);
    text = bed_round(&b, p);
    q = bed_read(&b, text);
    if (!same_tree(a.value, q->stmt[1]->assign[0].value) ||
        (a.guard != NULL && !same_tree(a.guard, q->stmt[1]->assign[0].guard)))
        test_fail(__FILE__, __LINE__, "seed %llu reads back otherwise:\n%s",
                  (unsigned long long)seed, text);
    bed_close(&b);
}

TEST(a_random_expression_reads_back_from_its_text_node_by_node)
{
    for (int64_t i = 0; i < test_scale(20000); i++)
        round_trip((uint64_t)i);
}
