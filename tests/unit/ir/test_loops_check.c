/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * src/ir/loop_check.c: what a tree promises.  What text can break is broken as text, the rest in
 * trees made by hand. */
#include "ir/loop.h"
#include "unit/ir_bed.h"

#define D                                                                   \
    "axis I = m, J = compressed(I, n) sorted unique, Q = rows a { 0, 1 }\n" \
    "f32 A[I, J], B[n], C[I]\n"                                             \
    "i64 W[I]\n"                                                            \
    "inout f32 Z[I]\n"                                                      \
    "temp f32 T[I]\n"                                                       \
    "const f32 K[2] = {1, 2}\n"
#define L "program p(m, n) stage loops\n" D
#define PH "phase c for i in 0..m\n"

static const Refusal refusals[] = {
    { L "init Z = 0\n", ST_CHECK, 5, 11, "Z: it has no initial value: it is given, constant or" },
    { L "init K = 0\n", ST_CHECK, 7, 11, "K: it has no initial value: it is given, constant or" },
    { L "init W = 0.5\n", ST_CHECK, 4, 5, "W: an initial value is real and not i64" },
    { L "init C[x] = B[x]\n", ST_CHECK, 3, 20, "C: an initial value is made of literals, sizes and" },
    { L "init C[x] = find(J, 0, size(J), x)\n", ST_CHECK, 3, 20, "made of literals, sizes and" },
    { L PH "    J.start[i] = 1\n", ST_CHECK, 9, 5, "c: J.start is constant here" },
    { L PH "    Q.a[i] = 1\n", ST_CHECK, 9, 5, "c: Q.a is constant here" },
    { L "phase c for i in 1..m parts J.coord\n    C[i] = 1\n", ST_CHECK, 8, 7,
      "c: `parts` is said of a parallel phase from 0 on" },
    { L "phase c for i in 0..m parts W\n    C[i] = 1\n", ST_CHECK, 8, 7,
      "c: W has no parts: they are an i64 coordinate of a segmented axis" },
    { L "phase c for i in 0..m parts J.start\n    C[i] = 1\n", ST_CHECK, 8, 7,
      "c: J.start has no parts" },
    { L PH "    K[i] = 1\n", ST_CHECK, 9, 5, "c: K is constant here" },
    { L PH "    i = 1\n", ST_CHECK, 9, 5, "locals that are no loop's variable" },
    { L PH "    W[i] = 1.5\n", ST_CHECK, 9, 5, "what is stored is real and not i64" },
    { L PH "    let a: i64 = 1.5\n", ST_CHECK, 9, 5, "a let is real and not i64" },
    { L PH "    let a: bool = 1\n", ST_CHECK, 9, 5, "a let is i64 and not bool" },
    { L PH "    let a: f32 = i < 1\n", ST_CHECK, 9, 5, "a let is bool and not f32" },
    { L PH "    let a: f32x4 = 1\n", ST_CHECK, 9, 5, "has 4 lanes and its value 1" },
    { L PH "    C[i] += 1\n", ST_CHECK, 9, 5, "C is added to before anything is stored in it" },
    { L PH "    T[i] = T[i] + 1\n", ST_CHECK, 9, 5, "T is read before anything is stored in it" },
    { L PH "    C[i] = T[i]\n", ST_CHECK, 9, 5, "T is read before anything is stored in it" },
    { L PH "    C[i] = 1\n    W[i] = 1 at C[i] = 2\n", ST_CHECK, 10, 5, "a companion records an" },
    { L PH "    C[i] = 1 at W[i] = 2.5\n", ST_CHECK, 9, 5, "what a companion records is real" },
    { L PH "    W[i] = 1 at W[i] = 1\n", ST_CHECK, 9, 5, "W cannot be a companion of a store to itself" },
    { L PH "    C[i] = 1\n    T[i] = C[i + 1]\n", ST_CHECK, 10, 5,
      "C is read in the phase that writes it; put a phase between" },
    { L PH "    reg a: i64 = i\n    C[a] = 1\n    a += 1\n    T[i] = C[i]\n", ST_CHECK, 12, 5,
      "C is read in the phase that writes it" },
    { L PH "    if Z[i] < 1\n        Z[i] = 1\n", ST_CHECK, 9, 5, "Z is read in the phase that" },
    { L PH "    C[0] = 1\n", ST_CHECK, 9, 5, "every iteration of the phase writes the same" },
    { L PH "    for k in 0..n\n        C[k] = 1\n", ST_CHECK, 10, 9,
      "every iteration of the phase" },
    { L PH "    let a: i64 = n\n    C[a] = 1\n", ST_CHECK, 10, 5, "every iteration of the phase" },
    { L PH "    C[i] = 1 at W[0] = 1\n", ST_CHECK, 9, 5, "the same element of W" },
    { L PH "    vector for k in 0..n step 4 by 65\n", ST_LIMIT, 9, 38,
      "a vector loop takes 1 to 64 registers at once, not 65" },
    { L PH "    stream C[i] += 1\n", ST_CHECK, 9, 5,
      "only elements that are set are stored past the caches" },
    { L PH "    stream C[i] = 1 if n + 1\n", ST_CHECK, 9, 24, "a condition is needed here" },
    { L PH "    vector for k in 0..n step 4\n        stream C[i + k] = 1 if k < 3\n", ST_CHECK, 10, 9,
      "the condition of a hint differs between the lanes" },
    { L PH "    vector for k in 0..n step 4\n        if k < 1\n", ST_CHECK, 10, 9,
      "the condition of a branch differs between the lanes" },
    { L PH "    vector for k in 0..n step 4\n        for l in 0..k\n", ST_CHECK, 10, 9,
      "the range of a loop differs between the lanes" },
    { L PH "    vector for k in 0..n step 4\n        check k < 3 else index\n", ST_CHECK, 10, 9,
      "what is checked differs between the lanes" },
    { L PH "    vector for k in 0..n step 4\n        vector for l in 0..n step 4\n", ST_CHECK, 10, 9,
      "a vector loop inside another" },
    { L PH "    vector for k in 0..n step 4\n        C[i] = 1\n", ST_CHECK, 10, 9,
      "all lanes of a vector loop write the same element of C" },
    { L PH "    vector for k in 0..n step 4\n        reg s: f32 = 0\n        s = B[k]\n", ST_CHECK, 11, 9,
      "the local s has one value for all lanes" },
    { L PH "    reg s: f32 = 0\n    vector for k in 0..n step 4\n        s = B[k]\n", ST_CHECK, 11, 9,
      "the local s has one value for all lanes" },
    { L PH "    vector for k in 0..n step 4\n        let a: f32 = B[k]\n", ST_CHECK, 10, 9,
      "the local a has 1 lanes and its value 4" },
    { L PH "    reg s: f32 = 0\n    vector for k in 0..n step 4\n        s += 1\n", ST_CHECK, 11, 9,
      "each lane stores the same to the local s of all" },
    { L PH "    vector for k in 0..n step 4\n        A[i + k] = 1 at W[i] = 1\n", ST_CHECK, 10, 9,
      "a store in a vector loop has no companions" },
    { L PH "    reg s: f32 = 0\n    s = 1 at W[i] = 1\n", ST_CHECK, 10, 5, "a companion records" },
    { "program p(m) stage positions\nf32 C[m]\nphase c vector for i in 0..m step 4\n    C[i] = 1\n",
      ST_CHECK, 3, 7, "a vector loop at stage positions" },
};

TEST(what_a_tree_must_not_do_is_refused)
{
    REFUSES(refusals);
}

static const char *const good[] = {
    L PH "    vector for k in 0..n step 4 by 2\n        reg s: f32x4 = 0\n"
         "        for j in J.start[i]..J.start[i + 1]\n            ahead B[J.coord[j] + k]\n"
         "            s += B[j] * B[k]\n        A[i * n + k] = s\n",
    L PH "    reg s: f32 = 0\n    vector for k in 0..n step 4\n        s max= B[k]\n    C[i] = s\n",
    L PH "    C[i] = 1\n    C[i] += B[0]\n    check C[i] > 0 else index\n",
    L PH "    Z[i] += 1\n    C[i] = select(i < 1, 1, 2)\n",
    L PH "    T[i] = B[i]\nphase d for i in 0..m\n    C[i] = T[i + 1]\n",
    L PH "    for j in J.start[i]..J.start[i + 1]\n        A[j] = 1\n",
    L PH "    let a: i64 = J.start[i]\n    A[a] = 1\n",
    L PH "    reg s: f32 = 0\n    s += B[i]\n    s max= 2\n    C[i] = s\n",
    L "phase c\n    C[0] = 1\n",
    L "phase c for i in 0..1\n    C[0] = 1\n",
    L PH "    vector for k in 0..n step 4\n        let a: f32x4 = B[k]\n        let b: f32 = B[i]\n"
         "        A[i + k] = a * b\n",
    L PH "    for k in 0..1\n        C[i] = k\n    for k in 0..2\n        W[i] = k\n",
    L PH "    C[i] = 1 at W[i] = 2\n    check W[i] < 3 and C[i] > 0 else miss\n",
    L PH
    "    let a: i64 = i + n\n    let b: i64 = a * 2\n    C[b] = 1\n    T[i] = C[(i + n) * 2]\n",
    L PH "    if i == n\n        C[n] = 1\n", /* of one iteration only */
    ("program p(m) stage loops\nf64 None[0, m], Y[m]\nphase y for i in 0..m\n    None[0] += 1\n"
     "phase z for i in 0..m\n    Y[i] = None[i]\n"), /* no element: nothing happens */
};

TEST(what_a_tree_may_do_is_not_refused)
{
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        Bed b;

        bed_open(&b);
        bed_round(&b, bed_read(&b, good[i]));
        bed_close(&b);
    }
}

typedef struct Made { /* phase c for i in 0..m: C[i] = 1, to be spoilt */
    Bed b;
    Local *i;
    Node *store, *loop;
    Buf *c;
} Made;

static void make(Made *m)
{
    Prog *p;
    Expr *at;

    bed_open(&m->b);
    p = bed_read(&m->b, L);
    m->c = ir_find_buf(p, "C");
    m->i = loop_local(p, "i", T_i64, 1);
    at = loop_use(p, m->i);
    m->store = loop_node(p, &(Node){ .kind = N_STORE,
                                     .label = "c",
                                     .value = ir_int(p, 1),
                                     .out = loop_cell(p, m->c, &at, 1, 1) });
    m->loop = loop_node(p, &(Node){ .kind = N_FOR,
                                    .label = "c",
                                    .how = FOR_PARALLEL,
                                    .local = m->i,
                                    .lo = ir_int(p, 0),
                                    .hi = ir_size_expr(p, p->size[0]),
                                    .body = &m->store,
                                    .nbody = 1 });
    m->store = m->loop->body[0];
    p->phase = arena_copy(&m->b.arena, &m->loop, sizeof m->loop);
    p->nphase = 1;
}

static void refuses(Made *m, const char *part)
{
    Status st = CATCH(&m->b.err, ir_check(m->b.p));

    CHECK_HAS(m->b.err.msg, part);
    CHECK_EQ(st, ST_CHECK);
    bed_close(&m->b);
}

static Expr *cell(Made *m, Expr *at, int n, int lanes)
{
    return loop_cell(m->b.p, m->c, &at, n, lanes);
}

TEST(the_tree_made_by_hand_is_good)
{
    Made m;

    make(&m);
    ir_check(m.b.p);
    bed_round(&m.b, m.b.p);
    bed_close(&m.b);
}

TEST(a_local_outside_its_block_is_refused)
{
    Made m;

    make(&m);
    m.store->value = loop_use(m.b.p, loop_local(m.b.p, "far", T_i64, 1));
    refuses(&m, "the local far is used outside its block");
}

TEST(a_local_without_a_name_is_refused_all_the_same)
{
    Made m;

    make(&m);
    m.store->value = loop_use(m.b.p, loop_local(m.b.p, NULL, T_i64, 1));
    refuses(&m, "the local (unnamed) is used outside");
}

TEST(a_local_bound_inside_itself_is_refused)
{
    Made m;
    Node inner;

    make(&m);
    inner = *m.loop;
    inner.how = FOR_SERIAL;
    m.loop->body = (Node *[]){ &inner };
    refuses(&m, "the local i is bound in its own block again");
}

TEST(a_parallel_loop_inside_a_phase_is_refused)
{
    Made m;
    Node inner;

    make(&m);
    inner = *m.loop;
    inner.local = loop_local(m.b.p, "k", T_i64, 1);
    m.loop->body = (Node *[]){ &inner };
    refuses(&m, "a parallel loop is a phase");
}

TEST(a_wrong_number_of_indices_is_refused)
{
    Made m;

    make(&m);
    m.store->value = cell(&m, ir_int(m.b.p, 0), 0, 1);
    refuses(&m, "C takes 1 index at stage loops, not 0");
}

TEST(elements_of_several_lanes_are_refused)
{
    Made m;

    make(&m);
    m.store->value = cell(&m, ir_int(m.b.p, 0), 1, 8);
    refuses(&m, "an element of 8 lanes");
}

TEST(an_index_that_is_no_integer_is_refused)
{
    Made m;

    make(&m);
    m.store->value = cell(&m, ir_real(m.b.p, 0), 1, 1);
    refuses(&m, "an index is an integer, not real");
}

TEST(coordinates_have_no_place_in_a_tree)
{
    Made m;

    make(&m);
    m.store->value = ir_var_value(m.b.p, m.b.p->axis[0]->var);
    refuses(&m, "coord means nothing below coordinates");
}

TEST(a_search_with_too_few_values_is_refused)
{
    Made m;
    Expr *zero;

    make(&m);
    zero = ir_int(m.b.p, 0);
    m.store->value = loop_find(m.b.p, ir_find_axis(m.b.p, "J"), zero, zero, NULL, 0);
    refuses(&m, "a search on axis J takes 3 values, not 2");
}

TEST(ranges_conditions_and_faults_have_their_types)
{
    Made m;
    Node branch = { .kind = N_IF, .label = "c" };

    make(&m);
    m.loop->hi = ir_real(m.b.p, 2);
    refuses(&m, "where a loop ends is real and not i64");
    make(&m);
    m.loop->lo = ir_real(m.b.p, 2);
    refuses(&m, "where a loop begins is real and not i64");
    make(&m);
    branch.cond = ir_int(m.b.p, 1);
    m.loop->body = (Node *[]){ &branch };
    refuses(&m, "the condition of a branch is i64 and not bool");
    make(&m);
    branch.kind = N_CHECK;
    branch.cond = ir_op2(m.b.p, OP_lt, ir_int(m.b.p, 1), ir_int(m.b.p, 1));
    m.loop->body = (Node *[]){ &branch };
    refuses(&m, "a check without a fault");
    make(&m);
    branch.fault = FAULT_COUNT;
    branch.cond = ir_op2(m.b.p, OP_lt, ir_int(m.b.p, 1), ir_int(m.b.p, 1));
    m.loop->body = (Node *[]){ &branch };
    refuses(&m, "a check without a fault");
}

TEST(a_loop_has_an_integer_variable_and_the_lanes_of_its_kind)
{
    Made m;
    Node inner = { .kind = N_FOR, .label = "c" };

    make(&m);
    inner.lo = ir_int(m.b.p, 0);
    inner.hi = ir_int(m.b.p, 1);
    inner.local = loop_local(m.b.p, "k", T_f32, 1);
    m.loop->body = (Node *[]){ &inner };
    refuses(&m, "the variable k of a loop is f32");
    make(&m);
    inner.lo = ir_int(m.b.p, 0);
    inner.hi = ir_int(m.b.p, 1);
    inner.local = loop_local(m.b.p, "k", T_i64, 1);
    inner.lanes = 4;
    m.loop->body = (Node *[]){ &inner };
    refuses(&m, "another loop 1, not 4");
}

TEST(only_what_is_in_scope_is_assigned)
{
    Made m;
    At at;

    make(&m);
    m.store->out = loop_use(m.b.p, loop_local(m.b.p, "far", T_i64, 1));
    refuses(&m, "locals that are no loop's variable");
    make(&m);
    at = (At){ loop_use(m.b.p, m.i), ir_int(m.b.p, 1) };
    m.store->at = &at;
    m.store->nat = 1;
    at.out = loop_use(m.b.p, m.i);
    refuses(&m, "a companion records an integer beside an element");
}

TEST(a_store_inserts_nothing)
{
    Made m;

    make(&m);
    m.store->op = A_INSERT;
    refuses(&m, "a store sets, adds, or keeps");
}

TEST(a_phase_has_a_name)
{
    Made m;

    make(&m);
    m.loop->label = NULL;
    refuses(&m, "a phase is named");
}

TEST(a_let_holds_a_value_and_no_element_type)
{
    Made m;
    Node let = { .kind = N_LET, .label = "c" };

    make(&m);
    let.value = ir_int(m.b.p, 1);
    let.local = loop_local(m.b.p, "a", T_f16, 1);
    m.loop->body = (Node *[]){ &let };
    refuses(&m, "the local a is no value");
}

TEST(trees_deeper_than_their_text_could_be_are_refused)
{
    Made m;
    Node *inner;

    make(&m);
    inner = m.store;
    for (int k = 0; k < LOOP_MAX_NEST; k++)
        inner = loop_node(
            m.b.p, &(Node){ .kind = N_IF,
                            .label = "c",
                            .body = &inner,
                            .nbody = 1,
                            .cond = ir_op2(m.b.p, OP_lt, ir_int(m.b.p, 0), ir_int(m.b.p, 1)) });
    m.loop->body = &inner;
    refuses(&m, "blocks nested more than 256 deep");
}
