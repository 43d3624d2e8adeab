/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * src/ir/build.c: what an index means: an entry, a position, a coordinate, or what a later slot
 * tells. */
#include "unit/ir_bed.h"

#define P "program p(m, n)\n"
#define H                                                                           \
    P "axis I = m, J = compressed(I, n) sorted unique, E(I) = seg : j < n, K = n\n" \
      "f64 A[I, J], B[E], X[n], Y[I], S[]\n"                                        \
      "i64 W[I]\n"

static const Refusal indices[] = {
    { H "Y[] += 1", ST_CHECK, 5, 1, "Y has 1 slot and the access gives 0 indices" },
    { H "Y[i, i] += 1", ST_CHECK, 5, 1, "Y has 1 slot and the access gives 2 indices" },
    { P "f64 Z[m, n]\nZ[1] += 1", ST_CHECK, 3, 1, "Z has 2 slots and the access gives 1 index" },
    { H "Y[1.5] += 1", ST_CHECK, 5, 1, "Y: an index is an integer, not real" },
    { H "Y[X[i]] += 1", ST_CHECK, 5, 1, "Y: an index is an integer, not f64" },
    { H "Y[(i < 1)] += 1", ST_CHECK, 5, 1, "Y: an index is an integer, not bool" },
    { H "Y[(1, 2)] += 1", ST_CHECK, 5, 1,
      "Y: axis I has 1 coordinate and the index gives 2; write one value" },
    { P "axis E = m : a < n, b < n unique\nf64 B[E], S[]\nS[] += B[3]", ST_CHECK, 4, 8,
      "B: axis E has 2 coordinates and the index gives 1; write (a, b) with one value for each" },
    { P "axis E = m : a < n, b < n unique\nf64 B[E], S[]\nS[] += B[(1, 2, 3)]", ST_CHECK, 4, 8,
      "B: axis E has 2 coordinates and the index gives 3" },
    { P "axis E = m : a < n, b < n\nf64 B[E], S[]\nS[] += B[(1, 2)]", ST_CHECK, 4, 8,
      "B: finding an entry of axis E by its coordinate needs `unique`" },
    { P "axis I = m, J = compressed(I, n)\nf64 A[I, J], S[]\nS[] += A[1, 2]", ST_CHECK, 4, 8,
      "A: finding an entry of axis J by its coordinate needs `unique`; declare it (sum duplicates first), or use the axis' own variable" },
    { H "S[] += B[3]", ST_CHECK, 5, 8,
      "B is declared without axis I, so an index has to tell the place in I" },
    { H "S[] += A[_, 3]", ST_CHECK, 5, 8,
      "A: the index of axis I is left out, and no index below determines it; give it" },
    { H "S[] += A[3]", ST_CHECK, 5, 8,
      "A: the index of axis I is left out, and no index below determines it" },
    { H "S[] += A[3, _]", ST_CHECK, 5, 8,
      "A: the index of axis J is left out, and no index below determines it" },
    { H "S[] += A[3, @4]", ST_CHECK, 5, 8,
      "A: @ gives the position in J over all parents; leave the index of I out" },
    { P "axis I = m, J(I) = 2, K(J) = 3\nf64 A[I, J, K], S[]\nS[] += A[@1, _, @4]", ST_CHECK, 4, 8,
      "A: @ gives the position in K over all parents; leave the index of I out" },
    { P "axis I = m, J(I) = 2, K(J) = 3, L(J) = 3\nf64 A[I, J, K, L], S[]\nS[] += A[_, _, @4, 1]",
      ST_CHECK, 4, 8,
      "A: an index of axis L by value needs to know its parent; give the index of J" },
    { H "S[] += Y[@1.5]", ST_CHECK, 5, 10, "@ wants integers, not real" },
    { H "S[] += Y[@]", ST_PARSE, 5, 11, "expected a value, found `]`" },
    { H "S[] += Y[i", ST_PARSE, 5, 11, "expected `,` or `]`, found the end of the line" },
    { H "S[] += Y[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]", ST_LIMIT, 5, 42, "more than 16 indices" },
    { H "S[] += Y[(1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1)]", ST_LIMIT, 5, 42,
      "more than 16 coordinates" },
};

TEST(an_index_that_finds_nothing_for_certain_is_refused)
{
    REFUSES(indices);
}

/* One declaration for all: I-J compressed, E with a named coordinate, siblings under S and P, a
 * chain A-B-C, U with two coordinates. */
#define D                                                                                           \
    P "axis I = m, J = compressed(I, n) sorted unique, E(I) = seg : j < n unique\n"                 \
      "axis K = n\n"                                                                                \
      "axis S = 2, M1(S) = {1, 3}, U1(S) = {4, 2}\n"                                                \
      "axis T = rows s -> c { 1 -> 1, 0 -> 0.5 }, U2(T) = {2, 4}\n"                                 \
      "axis A = m, B(A) = n, C(B) = 2\n"                                                            \
      "axis Q = m : a < m, b < n unique\n"                                                          \
      "f64 Aij[I, J], Aj[J], Be[E], X[n], Y[I, K], Z[S, M1, U1], Zi[M1, U1], Abc[A, B, C], Ac[C]\n" \
      "f64 Fq[Q], s0[], Bik[J, K]\n"                                                                \
      "i64 W[I], R[m]\n"

static void resolves(const char *statement, const char *want)
{
    Bed b;
    const char *text, *last;

    bed_open(&b);
    text = bed_canonical(&b, statement);
    for (last = strchr(text, 0) - 1; last > text && last[-1] != '\n';)
        last--;
    CHECK_STR(last, want);
    bed_close(&b);
}

#define RESOLVES(in, out) resolves(D "z: s0[] += " in "\n", "z: s0[] += " out "\n")

TEST(a_variable_in_the_slot_of_its_own_axis_is_its_entry)
{
    RESOLVES("Aij[i, j]", "Aij[i, j]");
    RESOLVES("Y[i, k]", "Y[i, k]");
    RESOLVES("Be[e]", "Be[e]");
    RESOLVES("Fq[q]", "Fq[q]");
}

TEST(an_entry_tells_its_ancestors)
{
    RESOLVES("Aij[j]", "Aij[i, j]");
    RESOLVES("Aij[_, j]", "Aij[i, j]");
    RESOLVES("Abc[c]", "Abc[a, b, c]");
    RESOLVES("Abc[_, b, c]", "Abc[a, b, c]");
    RESOLVES("Abc[_, _, c]", "Abc[a, b, c]");
    RESOLVES("Ac[c]", "Ac[c]");
    RESOLVES("Bik[j, k]", "Bik[j, k]");
    RESOLVES("Z[m1, u1]", "Z[s, m1, u1]");
    RESOLVES("Z[_, m1, 1]", "Z[s, m1, 1]");
    RESOLVES("Zi[m1, u1]", "Zi[m1, u1]");
    RESOLVES("Zi[0, u1]", "Zi[0, u1]");
}

TEST(any_other_value_is_a_coordinate_under_the_parent_given)
{
    RESOLVES("Aij[i, k]", "Aij[i, k]");
    RESOLVES("Aij[3, j + 1]", "Aij[3, j + 1]");
    RESOLVES("Be[e] * X[j(e)]", "Be[e] * X[j(e)]");
    RESOLVES("X[j]", "X[j]");
    RESOLVES("X[W[i]]", "X[W[i]]");
    RESOLVES("Y[R[k], k]", "Y[R[k], k]");
    RESOLVES("Fq[(W[i], k)]", "Fq[(W[i], k)]");
    RESOLVES("Z[s(t), 0, u2]", "Z[s(t), 0, u2]");
    RESOLVES("Abc[a, b, k]", "Abc[a, b, k]");
}

TEST(at_is_a_position_and_leaves_the_ancestors_to_the_run)
{
    RESOLVES("Aij[@W[i]]", "Aij[@W[i]]");
    RESOLVES("Aij[_, @W[i]]", "Aij[@W[i]]");
    RESOLVES("Aj[@(k + 1)]", "Aj[@(k + 1)]");
    RESOLVES("Aj[@pos(j)]", "Aj[@pos(j)]");
    RESOLVES("Abc[@(-1)]", "Abc[@(-1)]");
    RESOLVES("Y[@2, @3]", "Y[@2, @3]");
    RESOLVES("Abc[_, @3, 1]", "Abc[_, @3, 1]");
    RESOLVES("Bik[@2, k]", "Bik[@2, k]");
    RESOLVES("Zi[@0, @1]", "Zi[@0, @1]");
}

TEST(a_variable_under_another_parent_is_an_entry_only_of_that_parent)
{
    resolves(D "z: for i, a1 in I, f in E(a1): s0[] += Be[f] * Aij[a1, j(f)]\n",
             "z: for i, a1 in I, f in E(a1): s0[] += Be[f] * Aij[a1, j(f)]\n");
    resolves(D "z: for k, h in J(k): s0[] += Aij[h] * Aj[h]\n",
             "z: for k, h in J(k): s0[] += Aij[k, h] * Aj[h]\n");
    resolves(D "z: for k, h in J(k): s0[] += Aij[3, h]\n",
             "z: for k, h in J(k): s0[] += Aij[3, h]\n");
    resolves(D "z: for i, h in J(@W[i]): s0[] += Aij[h]\n",
             "z: for i, h in J(@W[i]): s0[] += Aij[@W[i], h]\n");
    resolves(D "z: for i, h in J(i): s0[] += Aij[h]\n", "z: for i, h in J: s0[] += Aij[i, h]\n");
}

TEST(ir_full_index_gives_each_place_its_index_or_none)
{
    Bed b;
    Expr *full[IR_MAX_FULL], *load;

    bed_open(&b);
    bed_read(&b, D "z: s0[] += Zi[m1, u1] * Ac[@k] * Abc[_, @3, 1]\n");
    load = b.p->stmt[0]->assign[0].value;
    ir_full_index(b.p, load->arg[0]->arg[0], full);
    CHECK(full[0]->op == OP_var && strcmp(full[0]->var->name, "s") == 0);
    CHECK(full[1]->op == OP_var && strcmp(full[1]->var->name, "m1") == 0);
    CHECK(full[2]->op == OP_var && strcmp(full[2]->var->name, "u1") == 0);
    ir_full_index(b.p, load->arg[0]->arg[1], full);
    CHECK(full[0]->op == OP_none && full[1]->op == OP_none && full[2]->op == OP_at);
    ir_full_index(b.p, load->arg[1], full);
    CHECK(full[0]->op == OP_none && full[1]->op == OP_at && full[2]->op == OP_int);
    bed_close(&b);
}

TEST(the_values_of_rows_are_real_and_those_of_a_buffer_have_its_type)
{
    static const struct {
        const char *decl;
        Type type;
    } row[] = {
        { "f16 V[]", T_f32 }, { "bf16 V[]", T_f32 }, { "f32 V[]", T_f32 },
        { "f64 V[]", T_f64 }, { "i32 V[]", T_i64 },  { "i64 V[]", T_i64 },
    };
    Bed b;

    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        char text[128];

        bed_open(&b);
        snprintf(text, sizeof text, P "%s\nf64 s0[]\ns0[] = V[]\n", row[i].decl);
        bed_read(&b, text);
        CHECK_EQ(b.p->stmt[0]->assign[0].value->type, row[i].type);
        bed_close(&b);
    }
    bed_open(&b);
    bed_read(&b, D "s0[] += c[t]\n");
    CHECK_EQ(b.p->stmt[0]->assign[0].value->type, T_real);
    bed_close(&b);
}
