/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * src/tree: the one form of integer expressions, indices as a base and a constant, and edits. */
#include "tree/tree.h"
#include "unit/ir_bed.h"

static void open_ints(Bed *b, Expr **x, Expr **y)
{
    bed_open(b);
    b->p = ir_prog(&b->arena, "p");
    *x = loop_use(b->p, loop_local(b->p, "x", T_i64, 1));
    *y = loop_use(b->p, loop_local(b->p, "y", T_i64, 1));
}

TEST(equal_sums_are_one_expression)
{
    Bed b;
    Expr *x, *y, *three, *four, *seven;

    open_ints(&b, &x, &y);
    three = ir_int(b.p, 3), four = ir_int(b.p, 4), seven = ir_int(b.p, 7);
    CHECK(tree_add(b.p, tree_add(b.p, x, three), four) == tree_add(b.p, seven, x));
    CHECK(tree_add(b.p, tree_add(b.p, x, three), y) == tree_add(b.p, tree_add(b.p, x, y), three));
    CHECK(tree_add(b.p, x, tree_add(b.p, y, three)) == tree_add(b.p, tree_add(b.p, x, y), three));
    CHECK(tree_add(b.p, x, tree_sub(b.p, y, x)) == y);
    CHECK(tree_sub(b.p, tree_add(b.p, x, y), x) == y && tree_sub(b.p, tree_add(b.p, x, y), y) == x);
    CHECK(tree_add(b.p, ir_int(b.p, 0), x) == x && tree_mul(b.p, x, ir_int(b.p, 1)) == x);
    CHECK(tree_times(b.p, three, x) == tree_mul(b.p, x, three));
    bed_close(&b);
}

TEST(a_sum_shows_its_block)
{
    Bed b;
    Expr *x, *y, *block, *at;

    open_ints(&b, &x, &y);
    block = tree_times(b.p, x, ir_int(b.p, 8));
    at = tree_plus(b.p, block, ir_op2(b.p, OP_add, x, y));
    CHECK(at->op == OP_add && at->arg[0] == block);
    bed_close(&b);
}

TEST(a_sum_that_does_not_fit_stays)
{
    Bed b;
    Expr *x, *y, *most, *sum;

    open_ints(&b, &x, &y);
    most = ir_int(b.p, INT64_MAX);
    sum = tree_add(b.p, tree_add(b.p, x, most), most);
    CHECK(sum->op == OP_add && sum->arg[1] == most && sum->arg[0]->arg[1] == most);
    bed_close(&b);
}

TEST(distances_of_indices)
{
    Bed b;
    Expr *x, *y, *x3;

    open_ints(&b, &x, &y);
    x3 = tree_add(b.p, x, ir_int(b.p, 3));
    CHECK(tree_apart(x, x3) == 3 && tree_apart(x3, x) == 3 && tree_apart(x, y) == 0);
    CHECK(tree_differ(x, x3) && !tree_differ(x, y) && !tree_differ(x3, x3));
    CHECK(tree_differ(ir_int(b.p, 1), ir_int(b.p, 2)));
    CHECK(tree_apart(tree_add(b.p, x, ir_int(b.p, INT64_MIN)), x) == 0); /* it has no positive */
    bed_close(&b);
}

static bool is_not(void *fixed, Expr *e)
{
    bool moves = e->op == OP_local && e != fixed;

    for (int i = 0; i < e->nargs; i++)
        moves = moves || is_not(fixed, e->arg[i]);
    return moves;
}

TEST(strides)
{
    Bed b;
    Expr *x, *y, *two;

    open_ints(&b, &x, &y);
    two = ir_int(b.p, 2);
    CHECK(tree_stride(tree_add(b.p, x, y), is_not, (void *)y) == 1);
    CHECK(tree_stride(tree_sub(b.p, y, x), is_not, (void *)y) == -1);
    CHECK(tree_stride(tree_add(b.p, x, tree_add(b.p, x, y)), is_not, (void *)y) == 2);
    CHECK(tree_stride(tree_mul(b.p, y, two), is_not, (void *)y) == 0);
    CHECK(tree_stride(tree_mul(b.p, x, two), is_not, (void *)y) == TREE_NOT_LINEAR);
    CHECK(tree_stride(tree_sub(b.p, y, tree_mul(b.p, x, two)), is_not, (void *)y) ==
          TREE_NOT_LINEAR);
    bed_close(&b);
}

TEST(a_local_has_one_binder)
{
    Bed b;
    const Node *phase, *inner;

    bed_open(&b);
    bed_read(&b, "program p(m, f) stage loops\naxis I = m, K = f\nf32 Y[m, f]\n"
                 "phase c for i in 0..m\n    for k in 0..f\n        let v: i64 = i * f + k\n"
                 "        Y[v] = 1\n");
    phase = b.p->phase[0];
    inner = phase->body[0];
    CHECK(tree_binder(phase, phase->local) == phase && tree_binder(phase, inner->local) == inner);
    CHECK(tree_binder(phase, inner->body[0]->local) == inner->body[0]);
    CHECK(tree_binder(inner, phase->local) == NULL && tree_binder(phase, NULL) == NULL);
    CHECK(tree_mentions(b.p, inner->body[0]->value, inner->local));
    CHECK(!tree_mentions(b.p, inner->body[1]->value, inner->local));
    CHECK(!tree_mentions(b.p, NULL, inner->local));
    CHECK(tree_touches(b.p, phase, inner->body[1]->out->buf));
    bed_close(&b);
}
