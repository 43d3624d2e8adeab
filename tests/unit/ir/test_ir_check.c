/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * src/ir/check.c and check_bounds.c: what only the whole program shows. */
#include "unit/ir_bed.h"

#define P "program p(m, n)\n"
#define H                                                                           \
    P "axis I = m, J = compressed(I, n) sorted unique, E(I) = seg : j < n, K = n\n" \
      "f64 A[I, J], B[E], X[n], Y[I], S[]\n"                                        \
      "i64 W[I]\n"

static const Refusal programs[] = {
    { H "const f64 C0[1] = {1}\nC0[0] = 2", ST_CHECK, 6, 1, "C0 is const and cannot be written" },
    { H "S[] += 1\nS[] max= 2", ST_CHECK, 6, 1,
      "S is written with max= here and with += before; all statements that write a buffer use one operator: take a temporary" },
    { H "Y[i] max= X[i] at W[i] = i\nW[i] = 1", ST_CHECK, 6, 1,
      "W accompanies one buffer and is written otherwise too; take another one here" },
    { H "W[i] = 1\nY[i] max= X[i] at W[i] = i", ST_CHECK, 6, 1,
      "W accompanies one buffer and is written otherwise too" },
    { H "f64 Z[I]\nY[i] max= X[i] at W[i] = i\nZ[i] max= X[i] at W[i] = i", ST_CHECK, 7, 1,
      "W accompanies one buffer and is written otherwise too" },
    { H "Y[i] max= X[i] at W[i] = i\nY[i] max= 2", ST_CHECK, 6, 1,
      "every statement that writes Y records the same companions" },
    { H "Y[i] max= X[i]\nY[i] max= 2 at W[i] = i", ST_CHECK, 5, 1,
      "every statement that writes Y records the same companions" },
    { H "i64 V[I]\nY[i] max= X[i] at W[i] = i\nY[i] max= 2 at V[i] = i", ST_CHECK, 6, 1,
      "every statement that writes Y records the same companions" },
    { H "Y[i] += X[i] at W[i] = i", ST_CHECK, 5, 1,
      "`at` goes with max= and min=, which have a winner; += has none" },
    { H "f64 Z[I]\nY[i] max= X[i] at Z[i] = i", ST_CHECK, 6, 1,
      "the companion Z records an integer; make it i32 or i64 and its value an integer" },
    { H "Y[i] max= X[i] at W[i] = 1.5", ST_CHECK, 5, 1, "the companion W records an integer" },
    { H "Y[i] max= X[i] at W[1] = i", ST_CHECK, 5, 1,
      "the companion W has the axes and the indices of Y, and no others" },
    { H "i64 V[K]\nY[i] max= X[i] at V[k] = i", ST_CHECK, 6, 1,
      "the companion V has the axes and the indices of Y" },
    { H "i64 V[I, K]\nY[i] max= X[i] at V[i, k] = i", ST_CHECK, 6, 1,
      "the companion V has the axes and the indices of Y" },
    { H "W[i] max= i at W[i] = i", ST_CHECK, 5, 1,
      "W is written with = here and with max= before" },
    { H "temp f64 Z[I]\nY[i] = Z[i]", ST_CHECK, 6, 1,
      "the temporary Z is read but nothing writes it" },
    { H "Y[i] += Y[i]", ST_CHECK, 5, 1,
      "Y is read in the statement that writes it; read another buffer, or split the statement" },
    { H "for i:\n    Y[i] = 1\n    S[] += Y[i]", ST_CHECK, 7, 5,
      "Y is read in the statement that writes it" },
    { H "temp f64 Z[I]\nY[i] = Z[i]\nz: Z[i] = 1", ST_CHECK, 6, 1,
      "Z is read before the last statement that writes it (z); move this after it" },
    { H "temp f64 Z[I]\nZ[i] += 1\nY[i] = Z[i]\nlast: Z[i] += 1", ST_CHECK, 7, 1,
      "Z is read before the last statement that writes it (last)" },
    { H "Y[i] = X[W[i]]\nW[i] = 1", ST_CHECK, 5, 1,
      "W is read before the last statement that writes it" },
    { H "X[W[i]] = 1\nW[i] = 1", ST_CHECK, 5, 1,
      "W is read before the last statement that writes it" },
    { H "Y[i] = 1 if W[i] > 0\nW[i] = 1", ST_CHECK, 5, 1,
      "W is read before the last statement that writes it" },
    { H "for f in E(W[0]): S[] += 1\nW[i] = 1", ST_CHECK, 5, 1,
      "W is read before the last statement that writes it" },
    { H "Y[i] = X[k]", ST_CHECK, 5, 1,
      "= writes each element once, but k runs over many and does not reach the output; use +=, max= or min=" },
    { H "for i: S[] = 1", ST_CHECK, 5, 8, "= writes each element once, but i runs over many" },
    { H "W[i] += X[i]", ST_CHECK, 5, 1,
      "W is i64 and the value is f64; an integer buffer takes integers" },
    { H "W[i] += 0.5", ST_CHECK, 5, 1, "W is i64 and the value is real" },
    { H "inout f64 Z[I]\nY[i] = Z[i]", ST_CHECK, 5, 11,
      "Z is inout but nothing writes it; drop inout" },
    { P "axis I = m, U(I) = built : load < n\nf64 C[I, U], Y[I]\nY[i] += C[i, u]", ST_CHECK, 3, 5,
      "C is over the built axis U, whose size is known only during a run, and cannot be an input" },
    { P "axis I = m, U(I) = built : load < n, V(U) = 2\nf64 C[V], Y[I]\nU(i) |= 1\nY[i] += C[v]",
      ST_CHECK, 3, 5, "C is over the built axis U" },
    { P "axis I = m, U(I) = built : load < n\ninout f64 C[I, U]\nU(i) |= 1\nC[i, u] += 1", ST_CHECK,
      3, 11, "write it, and not as inout" },
    { P "axis I = m, U(I) = built : load < n\nf64 C[I, U]\nC[i, u] = 1", ST_CHECK, 4, 1,
      "axis U is built by the program, but nothing inserts into it; add `U |= ...`" },
    { P "axis I = m, U(I) = built : load < n\nf64 C[I, U]\nC[i, u] = 1\nU(i) |= 1", ST_CHECK, 4, 1,
      "axis U is used before its last insertion; move this after every `U |= ...`" },
    { P "axis I = m, U(I) = built : load < n\nf64 C[I, U], S[]\nU(i) |= 1\nC[i, u] = 1\nU(i) |= 2",
      ST_CHECK, 5, 1, "axis U is used before its last insertion" },
    { P "axis I = m, U(I) = built : load < n\ni64 S[]\nS[] = size(U)\nU(i) |= 1", ST_CHECK, 4, 1,
      "axis U is used before its last insertion" },
    { P "axis I = m, U(I) = built : load < n\nf64 S[]\nfor i, u: S[] += 1\nU(i) |= 1", ST_CHECK, 4,
      1, "axis U is used before its last insertion" },
    { P "axis U = built : load < n, V(U) = built : load < n\nV(u) |= 1\nU |= 1", ST_CHECK, 3, 1,
      "axis U is used before its last insertion" },
    { P "axis I = m, U(I) = built : load < n\nU(i) |= (1, 2)", ST_CHECK, 3, 1,
      "axis U has 1 coordinate: insert one integer" },
    { P "axis I = m, U(I) = built : load < n\nU(i) |= 1.5", ST_CHECK, 3, 1,
      "axis U has 1 coordinate: insert one integer" },
    { P "axis I = m, U(I) = built : a < n, b < n\nU(i) |= 1", ST_CHECK, 3, 1,
      "axis U has 2 coordinates: insert (a, b), one for each" },
    { P
      "axis I = m, U(I) = built : load < n\nU(i) |= i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i+i",
      ST_LIMIT, 3, 1, "axis U: a coordinate of more than 256 operators" },
};

TEST(a_program_without_meaning_is_refused_with_its_remedy)
{
    REFUSES(programs);
}

#define C                                                            \
    P "axis I = 3, K = 4, T(I) = {1, 0, 2}, Q = 3 : c = {0, 1, 3}\n" \
      "f64 A[3], B[I, T], D[K], S[]\n"

static const Refusal outside[] = {
    { C "S[] += A[3]", ST_CHECK, 4, 1, "A: index 3 is outside 0..3 of axis (dense)" },
    { C "S[] += A[-1]", ST_CHECK, 4, 1, "A: index -1 is outside 0..3 of axis (dense)" },
    { C "A[3] = 1", ST_CHECK, 4, 1, "A: index 3 is outside 0..3" },
    { C "S[] += A[k]", ST_CHECK, 4, 1, "A: index 3 is outside 0..3 of axis (dense) at k=3" },
    { C "S[] += D[i + 2]", ST_CHECK, 4, 1, "D: index 4 is outside 0..4 of axis K at i=2" },
    { C "S[] += D[2*i]", ST_CHECK, 4, 1, "D: index 4 is outside 0..4 of axis K at i=2" },
    { C "S[] += D[-i]", ST_CHECK, 4, 1, "D: index -1 is outside 0..4 of axis K at i=1" },
    { C "S[] += D[k % 2 - 1]", ST_CHECK, 4, 1, "D: index -1 is outside 0..4 of axis K at k=0" },
    { C "S[] += D[5 / 5 + k]", ST_CHECK, 4, 1, "D: index 4 is outside 0..4 of axis K at k=3" },
    { C "S[] += A[c(q)]", ST_CHECK, 4, 1, "A: index 3 is outside 0..3 of axis (dense) at q=2" },
    { C "S[] += D[pos(t) + 2]", ST_CHECK, 4, 1,
      "D: index 4 is outside 0..4 of axis K at i=2, t=1" },
    { C "S[] += D[loc(t) + 3]", ST_CHECK, 4, 1,
      "D: index 4 is outside 0..4 of axis K at i=2, t=1" },
    { C "S[] += B[i, 0]", ST_CHECK, 4, 1, "B: index 0 is outside 0..0 of axis T at i=1" },
    { C "S[] += B[1, 0]", ST_CHECK, 4, 1, "B: index 0 is outside 0..0 of axis T" },
    { C "S[] += B[2, 2]", ST_CHECK, 4, 1, "B: index 2 is outside 0..2 of axis T" },
    { C "S[] += B[3, 0]", ST_CHECK, 4, 1, "B: index 3 is outside 0..3 of axis I" },
    { C "S[] += D[0] if A[3] > 0", ST_CHECK, 4, 1, "A: index 3 is outside 0..3" },
    { C "S[] += select(A[3] > 0, 1, 2)", ST_CHECK, 4, 1, "A: index 3 is outside 0..3" },
    { C "i64 W[]\nS[] max= i at W[] = 2\ni64 V[3]\nV[5] = 1", ST_CHECK, 7, 1,
      "V: index 5 is outside 0..3" },
    { C "i64 W[], V[3]\nS[] max= i at W[] = V[4]", ST_CHECK, 5, 1, "V: index 4 is outside 0..3" },
};

TEST(a_constant_index_outside_is_found_by_trying_all)
{
    REFUSES(outside);
}

/* Programs that a careless checker would refuse. */
static const char *const good[] = {
    H "Y[i] = X[i]\n",
    H "for i, t in 1: Y[i] = t\n",
    H "Y[i] = X[k] if k == i\n",
    H "for i, o in 1: Y[i] = 2\n",
    H "Y[W[i]] = X[i]\n",
    H "for e: X[j(e)] = B[e]\n",
    H "for k, f in E(k): B[f] = 1\n",
    H "temp f64 Z[I]\nZ[i] = X[i]\nY[i] = Z[i]\n",
    H "temp f64 Z[I]\nZ[i] += X[i]\nZ[i] += 1\nY[i] = Z[i]\n",
    H "temp f64 Z[I]\nZ[i] = X[i]\n",
    H "inout f64 Z[I]\nZ[i] += X[i]\nY[i] = Z[i]\n",
    H "for i:\n    Y[i] = 1\n    S[] += X[i]\n    S[] += 2\n",
    H "Y[i] max= X[k] at W[i] = k\nY[i] max= 0 at W[i] = -1\n",
    H "i32 V[I]\nY[i] min= X[k] at W[i] = k, V[i] = pos(k)\n",
    H "i64 V[]\nS[] max= X[k] at V[] = k\n",
    H "W[i] = i / 2 % 3\n",
    H "f32 Z[I]\nZ[i] = W[i]\n",
    P "axis I = m, J(I) = one : load < n\nf64 Y[I]\nfor i, j: Y[i] = j\n",
    P "axis I = m, U(I) = built : load < n\nf64 C[I, U]\ni64 S[]\n"
      "U(i) |= i\nU(i) |= 0 if i > 0\nC[i, u] = u\nS[] = size(U)\n",
    P "axis U = built : load < n, V(U) = built : load < n, T(V) = 2\ntemp f64 Z[T]\nf64 S[]\n"
      "U |= 1\nV(u) |= u\nZ[t] = 1\nS[] += Z[t]\n",
    P "axis I = m, U(I) = built : load < n\nU(i) |= 1\n",
    P "temp f64 Z[m]\n",
    P "",
};

TEST(programs_with_a_meaning_pass)
{
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        Bed b;

        bed_open(&b);
        bed_canonical(&b, good[i]);
        bed_close(&b);
    }
}

/* Nothing that a run may keep from being evaluated, or that only a run can tell, is refused. */
static const char *const inside[] = {
    C "S[] += A[2]\n",
    C "S[] += D[i + 1]\n",
    C "S[] += A[k] if k < 3\n",
    C "S[] += select(k < 3, A[k], 0)\n",
    C "S[] += select(k > 2, 0, A[k])\n",
    C "S[] += 1 if k < 3 and A[k] > 0\n",
    C "S[] += 1 if k > 2 or A[k] > 0\n",
    C "A[k] = 1 if k < 3\n",
    C "S[] += B[i, t]\n",
    C "S[] += B[t]\n",
    C "S[] += B[0, 0] + B[2, 1]\n",
    C "S[] += B[loc(i), 0] if i != 1\n",
    C "S[] += A[9223372036854775807 + k + 1]\n",
    C "S[] += A[-9223372036854775807 - 3 + i]\n",
    C "S[] += A[-(-9223372036854775808 + 0 * k)]\n",
    C "S[] += A[1 / (i - 3) + 1]\n",
    C "S[] += A[1 % (i * 0)]\n",
    C "S[] += A[9223372036854775807 * 2 * i]\n",
    C "S[] += B[9223372036854775807 + 1 + i, 7]\n",
    C "for i, t2 in T(2): S[] += B[2, t2]\n",
    C "for q, t2 in T(c(q) % 3): S[] += A[loc(t2)]\n",
    C "i64 W[3]\nS[] += A[W[i]]\n",
    C "S[] += A[size(T)]\n",
    C "S[] += A[m]\n",
    C "S[] += A[k - size(T)]\n",
    C "S[] += A[abs(k) + 7]\n",
    C "S[] += A[1 - (9223372036854775807 + k + 1)]\n",
    C "i64 W[3]\nS[] += B[W[i], 9]\n",
    C "axis V = 3 : v2 = {0, 9, 1} < 3 padded, V3(V) = {1, 1, 1}\nS[] += A[loc(v3) + 9]\n",
    C "axis V = 3 : v2 = loc(v), V3(V) = 2\nS[] += A[v2(v) + 9]\n",
    C "f64 Z[m]\nS[] += Z[i]\n",
    C "S[] += A[@7]\n",
    C "axis V = 3 : v2 = {0, 9, 1} < 3 padded, V3(V) = {1, 1, 1}\nS[] += A[loc(v3) + v2(v)]\n",
    C "axis R = n, L = 3 : load < 3\nS[] += A[l]\nS[] += A[r]\n",
    C "axis O(K) = one\nf64 Z[4, 2]\nfor k, o: S[] += Z[pos(o), loc(o)]\n",
    P "axis K = 100000000000000, I = 0\nf64 A[2], S[]\nS[] += A[k + i]\n",
    P "axis K = 3000, L = 3000, O = 3000\nf64 A[9000], S[]\nS[] += A[k + l + o]\n",
};

TEST(an_index_that_may_never_be_used_is_left_to_the_run)
{
    for (size_t i = 0; i < sizeof inside / sizeof *inside; i++) {
        Bed b;

        bed_open(&b);
        bed_read(&b, inside[i]);
        bed_close(&b);
    }
}

TEST(variables_reach_the_output_as_themselves_through_a_value_or_not_at_all)
{
    static const struct {
        const char *stmt, *var;
        Reach reach;
    } row[] = {
        { "Y[i] += X[k] * B[e]", "i", REACH_SPATIAL },
        { "Y[i] += X[k] * B[e]", "k", REACH_NONE },
        { "Y[i] += X[k] * B[e]", "e", REACH_NONE },
        { "B[e] = 1", "e", REACH_SPATIAL },
        { "B[e] = 1", "i", REACH_SPATIAL },
        { "X[j(e)] += B[e]", "e", REACH_SCATTER },
        { "X[j(e)] += B[e]", "i", REACH_NONE },
        { "X[2*k] += 1", "k", REACH_SCATTER },
        { "X[k] += 1", "k", REACH_SPATIAL },
        { "X[j] += A[i, j]", "j", REACH_SCATTER },
        { "for k, t in 3: X[t] += 1", "t", REACH_SPATIAL },
        { "X[loc(e)] += B[e]", "e", REACH_SCATTER },
        { "X[pos(e)] += B[e]", "e", REACH_SCATTER },
        { "X[W[i]] += 1", "i", REACH_SCATTER },
        { "S[] += X[k]", "k", REACH_NONE },
        { "for k, f in E(k): B[f] += 1", "k", REACH_NONE },
        { "u: U(i) |= j(e)", "i", REACH_SCATTER },
        { "u: U(i) |= j(e)", "e", REACH_SCATTER },
        { "for i, e, k: U(i) |= j(e)", "k", REACH_NONE },
        /* coordinates that are computed: of the position, or one value for all of them */
        { "for c: X[c1(c)] += 1", "c", REACH_SPATIAL },
        { "for d: X[d1(d)] += 1", "d", REACH_SCATTER },
        /* digits of a number: each has a place of its own */
        { "for k, t in 4: X[k * 4 + t] += 1", "t", REACH_SPATIAL },
        { "for k, t in 4: X[k * 4 + t] += 1", "k", REACH_SPATIAL },
        { "for k, t in 4: X[t + 4 * k] += 1", "t", REACH_SPATIAL },
        { "for k, t in 3: X[t + 4 * k] += 1", "k", REACH_SPATIAL },
        { "for k, t in 3, h in 2: X[(k * 3 + t) * 2 + h] += 1", "k", REACH_SPATIAL },
        { "for k, t in 3, h in 2: X[(k * 3 + t) * 2 + h] += 1", "t", REACH_SPATIAL },
        { "for k, t in 3, h in 2: X[(k * 3 + t) * 2 + h] += 1", "h", REACH_SPATIAL },
        /* and these do not: the digits overlap, or nobody knows how many there are */
        { "for k, t in 5: X[k * 4 + t] += 1", "t", REACH_SCATTER },
        { "for k, t in 5: X[k * 4 + t] += 1", "k", REACH_SCATTER },
        { "for k, t in m: X[k * 4 + t] += 1", "t", REACH_SCATTER },
        { "for i, k: X[k * 4 + i] += 1", "k", REACH_SCATTER },
        { "for k, t in 4: X[k * m + t] += 1", "t", REACH_SCATTER },
        { "for k, t in 4: X[k + t] += 1", "t", REACH_SCATTER },
        { "for e, k: X[k * 4 + j(e)] += 1", "k", REACH_SCATTER },
        { "for e, k: X[k * 4 + loc(e)] += 1", "k", REACH_SCATTER },
        { "for k, t in 4: X[k * 4 + t + 1] += 1", "t", REACH_SCATTER },
    };
    Bed b;

    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        char text[512];
        const Stmt *s;

        bed_open(&b);
        snprintf(text, sizeof text, H "axis U(I) = built : load < n\n"
                 "axis C = m : c1 = 2 * loc(c) unique, D = m : d1 = n %% 4 unique\n%s\n",
                 row[i].stmt);
        s = bed_read(&b, text)->stmt[0];
        for (int k = 0; k < s->nbind; k++)
            if (strcmp(s->bind[k]->name, row[i].var) == 0)
                CHECK_EQ(ir_reach(&s->assign[0], s->bind[k]), row[i].reach);
        bed_close(&b);
    }
}

/* What the text cannot say: statements that a pass makes wrong. */
static void refuses_stmt(Bed *b, Var *const *bind, int n, const Assign *a, const char *part)
{
    Prog *p = ir_copy(&b->arena, b->p);
    Var *copy[4];
    Assign c = *a;

    for (int i = 0; i < n; i++)
        copy[i] = p->var[bind[i]->id];
    c.out = p->expr[a->out->id];
    c.value = p->expr[a->value->id];
    c.guard = a->guard == NULL ? NULL : p->expr[a->guard->id];
    CHECK_EQ(CATCH(&b->err, ir_stmt(p, copy, n, &c, 1); ir_check(p)), ST_CHECK);
    CHECK_HAS(b->err.msg, part);
}

TEST(what_a_pass_binds_or_types_wrongly_is_found)
{
    Bed b;
    Prog *p;
    Var *i, *e, *k, *other;
    Expr *z, *x, *cond;

    bed_open(&b);
    p = bed_read(&b, H "f64 Z[I]\ns: S[] += Y[i] * X[k] if i < k\n");
    i = ir_find_axis(p, "I")->var;
    e = ir_find_axis(p, "E")->var;
    k = ir_find_axis(p, "K")->var;
    other = ir_var(p, "k", ir_find_axis(p, "I"), NULL);
    z = ir_load(p, ir_find_buf(p, "Z"), (Expr *[]){ ir_var_expr(p, i) }, 1);
    x = p->stmt[0]->assign[0].value->arg[1];
    cond = p->stmt[0]->assign[0].guard;
    refuses_stmt(&b, &i, 1, &(Assign){ .op = A_ADD, .out = z, .value = x },
                 "the variable k is used but not bound; add it to the `for`");
    refuses_stmt(&b, (Var *[]){ e, i }, 2, &(Assign){ .op = A_ADD, .out = z, .value = z },
                 "the variable e is bound before i, which it hangs on; put i first");
    refuses_stmt(&b, (Var *[]){ i, k, i }, 3, &(Assign){ .op = A_ADD, .out = z, .value = x },
                 "the variable i is bound twice");
    refuses_stmt(&b, (Var *[]){ i, k, other }, 3, &(Assign){ .op = A_ADD, .out = z, .value = x },
                 "the variable k is bound twice");
    refuses_stmt(&b, (Var *[]){ i, k }, 2,
                 &(Assign){ .op = A_ADD, .out = z, .value = x, .guard = x },
                 "`if` wants a condition");
    refuses_stmt(&b, (Var *[]){ i, k }, 2, &(Assign){ .op = A_ADD, .out = z, .value = cond },
                 "Z is f64 and the value is bool");
    bed_close(&b);
}
