/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * cost/: the text of a machine, rates in between, and what programs ask for. */
#include "unit/test.h"
#include "unit/trap.h"

#include "cost/cost.h"

#include <math.h>
#include <string.h>

#define AVX2 (&(const VectorUnit){ VECTOR_LANES(8, 4), 16, VECTOR_CORE })

typedef struct Bed {
    Err err;
    Arena arena;
    Machine m;
} Bed;

static void bed_open(Bed *b)
{
    static const int64_t cache[] = { 32 << 10, 512 << 10, 16 << 20 };

    memset(b, 0, sizeof *b);
    arena_init(&b->arena, &os_libc, &b->err);
    cost_machine_default(&b->m, cache, 4);
}

static Bytes print(Bed *b)
{
    Text t = { .arena = &b->arena };

    cost_machine_print(&t, &b->m);
    return (Bytes){ (const uint8_t *)t.s, t.n };
}

TEST(a_machine_reads_back)
{
    Bed b;
    Machine back;
    Bytes text;

    bed_open(&b);
    b.m.measured = true;
    memcpy(b.m.cpu, "Some CPU @ 3 GHz", 17);
    b.m.gather[2][3][COST_ALL] = 1.25;
    text = print(&b);
    CHECK(cost_machine_parse(text, &back));
    CHECK_STR(back.cpu, "Some CPU @ 3 GHz");
    CHECK(back.measured);
    CHECK_EQ(back.threads, 4);
    CHECK_EQ(back.cache[2], 16 << 20);
    CHECK_NEAR(back.gather[2][3][COST_ALL], 1.25, 0);
    CHECK_NEAR(back.call[COST_EXP][1][COST_ALL], b.m.call[COST_EXP][1][COST_ALL], 1e-3);
    for (int l = 0; l < COST_LEVELS; l++)
        for (int s = 0; s < COST_STREAMS; s++)
            CHECK_NEAR(back.stream[l][s][1], b.m.stream[l][s][1], 1e-3 * b.m.stream[l][s][1]);
    arena_free(&b.arena);
}

TEST(a_damaged_machine_is_none)
{
    Bed b;
    Machine back;
    Bytes text;
    uint8_t *copy;

    bed_open(&b);
    text = print(&b);
    copy = arena_copy(&b.arena, text.p, text.n);
    for (size_t i = 0; i < text.n; i++) {
        copy[i] ^= 1;
        CHECK(!cost_machine_parse((Bytes){ copy, text.n }, &back));
        copy[i] ^= 1;
        CHECK(!cost_machine_parse((Bytes){ copy, i }, &back));
    }
    CHECK(cost_machine_parse((Bytes){ copy, text.n }, &back));
    arena_free(&b.arena);
}

/* A text that is wrong though its checksum is right. */
static bool parses_with(Bed *b, const char *line, const char *instead)
{
    Bytes text = print(b);
    const char *s = (const char *)text.p, *at = strstr(s, line), *sum = strstr(s, "sum ");
    Text t = { .arena = &b->arena };
    Machine back;

    CHECK(at != NULL && sum != NULL);
    text_put(&t, s, (size_t)(at - s));
    text_str(&t, instead);
    text_put(&t, at + strlen(line), (size_t)(sum - at) - strlen(line));
    text_f(&t, "sum %016llx\n", (unsigned long long)hash_bytes(0, t.s, t.n));
    return cost_machine_parse((Bytes){ (const uint8_t *)t.s, t.n }, &back);
}

TEST(a_machine_that_makes_no_sense_is_none)
{
    Bed b;

    bed_open(&b);
    CHECK(parses_with(&b, "threads 4", "threads 4"));
    CHECK(!parses_with(&b, "weft-machine 4", "weft-machine 3"));
    CHECK(!parses_with(&b, "call exp f64", "call exp f32"));
    CHECK(!parses_with(&b, "threads 4", "threads 0"));
    CHECK(!parses_with(&b, "threads 4", "threads four"));
    CHECK(!parses_with(&b, "measured 0", "measured 2"));
    CHECK(!parses_with(&b, "cache L1 32768", "cache L1 -1"));
    CHECK(!parses_with(&b, "clock 3", "clock 0"));
    CHECK(!parses_with(&b, "fma f32 50", "fma f32 0"));
    CHECK(!parses_with(&b, "fma f32 50", "fma f32 nan"));
    CHECK(!parses_with(&b, "fma f64", "fma f16"));
    CHECK(!parses_with(&b, "stream L2 copy", "stream L2 triad"));
    CHECK(!parses_with(&b, "cpu unknown\n", "cpu \n"));
    CHECK(!parses_with(&b, "gather 64 16384", "gather 64 0"));
    CHECK(!parses_with(&b, "threads 4", "threads 4 4"));
    arena_free(&b.arena);
}

TEST(rates_between_two_points_are_between_theirs)
{
    Bed b;
    double low, high, mid;

    bed_open(&b);
    CHECK_NEAR(cost_gather(&b.m, 128, (double)b.m.table[2], 1), b.m.gather[1][2][COST_ONE], 1e-9);
    CHECK_NEAR(cost_gather(&b.m, 128, (double)b.m.table[2], 4), b.m.gather[1][2][COST_ALL], 1e-9);
    low = cost_gather(&b.m, 64, (double)b.m.table[4], 1);
    high = cost_gather(&b.m, 128, (double)b.m.table[4], 1);
    mid = cost_gather(&b.m, 90.5096679918781, (double)b.m.table[4], 1);
    CHECK_NEAR(mid, sqrt(low * high), 1e-6);
    CHECK_NEAR(cost_gather(&b.m, 64, 1e15, 1), b.m.gather[0][COST_TABLES - 1][COST_ONE], 1e-9);
    CHECK_NEAR(cost_gather(&b.m, 1e9, 1, 1), b.m.gather[COST_ROWS - 1][0][COST_ONE], 1e-9);
    CHECK_NEAR(cost_gather(&b.m, 16, (double)b.m.table[4], 1), low / 4, 1e-9);
    CHECK_NEAR(cost_fma(&b.m, T_f32, 2), 100, 1e-9);
    CHECK_NEAR(cost_fma(&b.m, T_f32, 99), 200, 1e-9);
    CHECK_EQ(cost_level(&b.m, 40 << 10, 1), 1);
    CHECK_EQ(cost_level(&b.m, 40 << 10, 2), 0);
    CHECK_EQ(cost_level(&b.m, 17 << 20, 9), 3);
    arena_free(&b.arena);
}

static int64_t starts[] = { 0, 3, 3, 4 };
static int64_t columns[] = { 0, 1, 4, 1 };

/* The shape of a program over 3 rows, 5 columns and 4 entries, f = 32. */
static CostShape shape_of(Bed *b, const char *text)
{
    Prog *p = NULL;
    Env *env;
    CostShape s;
    Axis *e;

    CHECK_EQ(CATCH(&b->err, p = ir_parse(&b->arena, "p", text, strlen(text))), ST_OK);
    env = ir_env(&b->arena, p);
    env->size[0] = 3;
    if (p->nsize > 1)
        env->size[1] = 5;
    if (p->nsize > 2)
        env->size[2] = 32;
    e = ir_find_axis(p, "E");
    if (e != NULL) {
        env->start[e->id] = (Array){ starts, 4, T_i64 };
        env->coord[e->id][0] = (Array){ columns, 4, T_i64 };
    }
    CHECK_EQ(CATCH(&b->err, cost_shape(&b->arena, p, env, &b->m, &s)), ST_OK);
    return s;
}

TEST(a_product_counts_what_it_does)
{
    Bed b;
    CostShape s;

    bed_open(&b);
    s = shape_of(&b, "program p(m, n, f)\naxis I = m, E(I) = seg : j < n, K = f\n"
                     "f32 A[E], B[n, K], C[m, K]\nc: C[i, k] += A[e] * B[j(e), k]\n");
    CHECK_NEAR(s.flops[0], 2 * 4 * 32, 0);
    CHECK_NEAR(s.flops[1], 0, 0);
    CHECK_NEAR(s.read, 4 * (4 + 5 * 32 + 4 + 4), 0); /* A, B, starts, columns */
    CHECK_NEAR(s.written, 4 * 3 * 32, 0);
    CHECK_NEAR(s.stores, 4 * 3 * 32, 0);
    CHECK_NEAR(s.loads, 4 * (4 + 4 * 32), 0);
    CHECK_EQ(s.ngather, 1);
    CHECK_NEAR(s.gather[0].count, 4, 0);
    CHECK_NEAR(s.gather[0].row, 128, 0);
    CHECK_NEAR(s.gather[0].table, 5 * 128, 0);
    CHECK(!s.gather[0].write);
    CHECK_NEAR(s.chunk, 0.75, 0);
    arena_free(&b.arena);
}

/* Entries in ten times as many rows take longer by what it takes to begin and to end a row. */
TEST(short_rows_take_longer_than_long_ones)
{
    CostShape s = { .flops = { 1e6, 0 }, .read = 4e6, .written = 4e6, .rows = 1e4 };
    double few, many;
    Bed b;

    bed_open(&b);
    few = cost_estimate(&s, &b.m, 1).seconds;
    s.rows *= 10;
    many = cost_estimate(&s, &b.m, 1).seconds;
    CHECK_NEAR(many - few, cost_rows(&s, &b.m, 0.9, 1), 1e-12);
    CHECK(many > few && cost_estimate(&s, &b.m, 4).seconds < many);
    CHECK_NEAR(cost_estimate(&s, &b.m, 1).limit, fmax(cost_estimate(&s, &b.m, 1).stream,
                                                      cost_estimate(&s, &b.m, 1).compute), 0);
    arena_free(&b.arena);
}

/* Each function takes the time that was measured for it, a comparison that of an instruction. */
TEST(functions_are_not_free)
{
    static const char *const call[COST_CALLS] = { "A[e] / 3.5", "sqrt(A[e])", "rsqrt(A[e])",
                                                  "exp(A[e])",  "log(A[e])",  "sin(A[e])",
                                                  "cos(A[e])",  "tanh(A[e])", "sigmoid(A[e])",
                                                  "silu(A[e])" };
    Bed b;

    bed_open(&b);
    for (int c = 0; c < COST_CALLS; c++)
        for (int wide = 0; wide < 2; wide++) {
            Text t = { .arena = &b.arena };
            CostShape s;

            text_f(&t, "program p(m, n)\naxis I = m, E(I) = seg : j < n\n%s A[E], B[E]\n"
                       "b: B[e] = %s\n", wide ? "f64" : "f32", call[c]);
            s = shape_of(&b, t.s);
            CHECK_NEAR(s.calls[c][wide], 4, 0);
            CHECK(cost_estimate(&s, &b.m, 1).compute >= 4e-9 / b.m.call[c][wide][COST_ONE]);
            CHECK(cost_loops(&s, &b.m, &(CostLoops){ .unit = AVX2 }, 1) >=
                  4e-9 / b.m.call[c][wide][COST_ONE]);
        }
    {
        CostShape s = shape_of(&b, "program p(m, n)\naxis I = m, E(I) = seg : j < n\n"
                                   "f32 A[E], B[E]\nb: B[e] = select(A[e] > 1, A[e], 0)\n");

        CHECK_NEAR(s.other[0], 2 * 4, 0);
        CHECK_NEAR(s.flops[0], 0, 0);
    }
    arena_free(&b.arena);
}

/* Assignments of one group compute what they share once; rows of a few elements are exchanged with
 * lanes, which takes cycles of the clock as it was measured. */
TEST(rows_of_a_few_elements_take_longer_than_their_flops)
{
    Bed b;
    CostShape s, flat;
    Cost slow, fast;

    bed_open(&b);
    s = shape_of(&b, "program p(m)\naxis I = m\nf32 X[I, 3], Z[I, 2]\nfor i:\n"
                     "    let r = X[i, 0] * X[i, 1]\n    a: Z[i, 0] = r + 1\n    b: Z[i, 1] = r + 2\n");
    flat = shape_of(&b, "program p(m, f)\naxis I = m, K = f\nf32 X[I, K], Z[I, K]\n"
                        "z: Z[i, k] = X[i, k]\n");
    CHECK_NEAR(s.flops[0], 3 * 3, 0);
    CHECK_NEAR(s.turned, 3 * (2 + 2), 0);
    CHECK_NEAR(flat.turned, 0, 0);
    slow = cost_estimate(&s, &b.m, 1);
    b.m.clock[COST_ONE] *= 2;
    fast = cost_estimate(&s, &b.m, 1);
    CHECK(slow.seconds > fast.seconds && fast.seconds > fast.compute);
    CHECK(slow.limit <= fast.limit); /* what has to be done is the same */
    arena_free(&b.arena);
}

TEST(a_product_at_entries_counts_what_it_does)
{
    Bed b;
    CostShape s;

    bed_open(&b);
    s = shape_of(&b, "program p(m, n, f)\naxis I = m, E(I) = seg : j < n, K = f\n"
                     "f64 X[m, K], Y[n, K], Z[E]\nz: Z[e] += X[i, k] * Y[j(e), k]\n");
    CHECK_NEAR(s.flops[1], 2 * 4 * 32, 0);
    CHECK_NEAR(s.loads, 8 * (3 * 32 + 4 * 32), 0); /* a row of X once */
    CHECK_NEAR(s.stores, 8 * 4, 0);
    CHECK_EQ(s.ngather, 1);
    CHECK_NEAR(s.gather[0].row, 256, 0);
    arena_free(&b.arena);
}

TEST(a_scatter_reads_and_writes)
{
    Bed b;
    CostShape s;
    Cost c, all;

    bed_open(&b);
    s = shape_of(&b, "program p(m, n, f)\naxis I = m, E(I) = seg : j < n, K = f\n"
                     "f32 A[E], B[m, K], C[n, K]\nc: C[j(e), k] += A[e] * B[i, k]\n");
    CHECK_EQ(s.ngather, 1);
    CHECK(s.gather[0].write);
    c = cost_estimate(&s, &b.m, 1);
    CHECK_NEAR(c.gather, 2 * 4 * 128 / cost_gather(&b.m, 128, 640, 1) / 1e9, 1e-18);
    CHECK(c.limit >= c.gather && c.limit >= c.stream && c.limit >= c.compute && c.seconds > 0);
    all = cost_estimate(&s, &b.m, 4);
    CHECK(all.seconds >= 0.75 * c.seconds); /* a row has three of four entries */
    arena_free(&b.arena);
}

TEST(rows_that_are_read_often_stay_near)
{
    enum { N = 100000, HOT = 100 };
    Bed b;
    Prog *p = NULL;
    Env *env;
    CostShape s;
    int64_t *col, one[2] = { 0, 0 };
    static const char text[] = "program p(n, f)\naxis I = 1, E(I) = seg : j < n, K = f\n"
                               "f32 B[n, K], C[I, K]\nc: C[i, k] += B[j(e), k]\n";

    bed_open(&b);
    CHECK_EQ(CATCH(&b.err, p = ir_parse(&b.arena, "p", text, strlen(text))), ST_OK);
    env = ir_env(&b.arena, p);
    env->size[0] = N;
    env->size[1] = 256; /* rows of 1 KiB, a table of 98 MiB */
    col = arena_array(&b.arena, 4 * N, sizeof *col);
    one[1] = 4 * N;
    env->start[ir_find_axis(p, "E")->id] = (Array){ one, 2, T_i64 };
    env->coord[ir_find_axis(p, "E")->id][0] = (Array){ col, 4 * N, T_i64 };
    for (int64_t i = 0; i < 4 * N; i++)
        col[i] = i % N;
    CHECK_EQ(CATCH(&b.err, cost_shape(&b.arena, p, env, &b.m, &s)), ST_OK);
    CHECK_NEAR(s.gather[0].like, s.gather[0].table, 0.02 * s.gather[0].table);
    for (int64_t i = 0; i < 4 * N; i++) /* nine of ten at a few rows */
        col[i] = i % 10 == 0 ? i % N : i % HOT;
    CHECK_EQ(CATCH(&b.err, cost_shape(&b.arena, p, env, &b.m, &s)), ST_OK);
    CHECK(s.gather[0].like < 0.2 * s.gather[0].table);
    CHECK(cost_estimate(&s, &b.m, 1).seconds < cost_estimate(&s, &b.m, 1).gather);
    arena_free(&b.arena);
}

TEST(what_a_built_axis_costs_is_not_known)
{
    Bed b;
    Prog *p = NULL;
    CostShape s;
    static const char text[] = "program p(n)\naxis I = n, U(I) = built : load < n\n"
                               "u: for i: U(i) |= 0\n";

    bed_open(&b);
    CHECK_EQ(CATCH(&b.err, p = ir_parse(&b.arena, "p", text, strlen(text))), ST_OK);
    CHECK_EQ(CATCH(&b.err, cost_shape(&b.arena, p, ir_env(&b.arena, p), &b.m, &s)), ST_LIMIT);
    arena_free(&b.arena);
}

TEST(hints_pay_where_a_table_is_far)
{
    Bed b;
    CostShape s;
    CostLoops l = { .unit = AVX2, .registers = 8, .ahead = 16 };
    double asked;

    bed_open(&b);
    s = shape_of(&b, "program p(m, n, f)\naxis I = m, E(I) = seg : j < n, K = f\n"
                     "f32 A[E], B[n, K], C[m, K]\nc: C[i, k] += A[e] * B[j(e), k]\n");
    asked = cost_loops(&s, &b.m, &l, 1);
    l.ahead = 0;
    CHECK(cost_loops(&s, &b.m, &l, 1) < asked); /* five rows are near: a hint is work for nothing */
    s.gather[0].table = s.gather[0].like = 1e9;
    s.gather[0].count = s.gather[0].far = 1e7;
    CHECK(cost_loops(&s, &b.m, &l, 1) > asked);
    asked = cost_loops(&s, &b.m, &l, 1);
    l.ahead = 16;
    CHECK(cost_loops(&s, &b.m, &l, 1) < asked);
    arena_free(&b.arena);
}

TEST(what_a_variable_hangs_on_counts_wherever_it_is_named)
{
    Bed b;
    CostShape s;

    bed_open(&b);
    /* a row that only the data tell: of an entry, of a sum of coordinates, of an element */
    s = shape_of(&b, "program p(m, n, f)\naxis I = m, E(I) = seg : j < n, K = f, R = n, S(R) = 4\n"
                     "f32 X[S], C[m]\nc: for i, e, s in S(j(e)): C[i] += X[s]\n");
    CHECK_EQ(s.ngather, 1);
    CHECK_NEAR(s.gather[0].count, 4, 0);
    CHECK_NEAR(s.gather[0].row, 16, 0);
    s = shape_of(&b, "program p(m, n, f)\naxis I = m, E(I) = seg : j < n, R = n, S(R) = 4\n"
                     "f32 X[S], C[m]\n"
                     "c: for i, e, s in S((j(e) + i) % n): C[i] += exp(X[s]) * max(X[s], 0)\n");
    CHECK_EQ(s.ngather, 1);
    CHECK_NEAR(s.gather[0].count, 4, 0);
    CHECK_NEAR(s.flops[0], 4 * 4 * (10 + 1 + 1 + 1), 0);
    s = shape_of(&b, "program p(m, n, f)\naxis I = m, E(I) = seg : j < n, R = n, S(R) = 4\n"
                     "i64 Q[m]\nf32 X[S], C[m]\n"
                     "c: for i, s in S((Q[i] + 1) % n): C[i] += X[s]\n");
    CHECK_EQ(s.ngather, 1);
    CHECK_NEAR(s.gather[0].count, 3, 0);
    /* and one that is in order */
    s = shape_of(&b, "program p(m, n, f)\naxis I = m, E(I) = seg : j < n, R = n, S(R) = 4\n"
                     "f32 X[S], C[m]\nc: for i, s in S((2 * i + 1) % n): C[i] += X[s]\n");
    CHECK_EQ(s.ngather, 0);
    arena_free(&b.arena);
}

TEST(a_block_asks_for_its_columns_once)
{
    Bed b;
    CostShape s;

    bed_open(&b);
    /* 4 blocks of 2 x 3: each has 3 rows of B, whatever its number of rows */
    s = shape_of(&b, "program p(m, n, f)\naxis I = m, E(I) = seg : load < n, K = f\n"
                     "axis R(E) = 2 : y = 2 * i + r < 2 * m, S(R) = 3 : x = 3 * e + s < 3 * n\n"
                     "f32 A[S], B[3 * n, K], C[2 * m, K]\nc: C[y(r), k] += A[s] * B[x(s), k]\n");
    CHECK_EQ(s.ngather, 1);
    CHECK(s.gather[0].shared);
    CHECK_NEAR(s.gather[0].count, 4 * 3, 0);
    CHECK_NEAR(s.gather[0].row, 128, 0);
    CHECK_NEAR(s.straight[0], s.flops[0], 0);
    CHECK_NEAR(s.rows, 3, 0);
    CHECK_NEAR(s.alone, 0, 0);
    arena_free(&b.arena);
}

TEST(single_elements_that_follow_one_another_are_near)
{
    Bed b;
    CostShape s;

    bed_open(&b);
    columns[2] = 2;
    s = shape_of(&b, "program p(m, n, f)\naxis I = m, E(I) = seg : j < n\n"
                     "f32 X[16 * n], C[m]\nc: C[i] += X[j(e)]\n");
    CHECK_NEAR(s.gather[0].count, 4, 0);
    CHECK_NEAR(s.gather[0].far, 0, 0); /* all in one line */
    CHECK_NEAR(s.alone, 4, 0);
    CHECK(!s.gather[0].fixed);
    columns[2] = 4;
    s = shape_of(&b, "program p(m, n, f)\naxis I = m, E(I) = seg : j < n, K = 8\n"
                     "f32 X[n, K], C[m]\nc: C[i] += X[j(e), k]\n");
    CHECK_NEAR(s.gather[0].far, 2, 0); /* 0 and 1 in one line, 4, 1 */
    CHECK_NEAR(s.alone, 0, 0);
    arena_free(&b.arena);
}

TEST(more_tables_than_are_counted_are_left_out)
{
    Bed b;
    CostShape s;

    bed_open(&b);
    s = shape_of(&b, "program p(m, n, f)\naxis I = m, E(I) = seg : j < n\n"
                     "f32 X[n], C[m], Q[n], R[n], S[n], T[n], U[n], V[n], W[n]; f64 D[n]\n"
                     "c: for i, e: C[i] += X[j(e)] + Q[j(e)] + R[j(e)] + S[j(e)] + T[j(e)]"
                     " + U[j(e)] + V[j(e)] + W[j(e)]\n"
                     "d: for i, e: D[j(e)] += -X[j(e)]\n");
    CHECK_EQ(s.ngather, COST_GATHERS);
    /* those of one table are one */
    s = shape_of(&b, "program p(m, n, f)\naxis I = m, E(I) = seg : j < n\nf32 X[n], C[m]\n"
                     "c: for i, e: C[i] += X[j(e)] + X[n - 1 - j(e)]\nd: C[i] += X[j(e)]\n");
    CHECK_EQ(s.ngather, 1);
    CHECK_NEAR(s.gather[0].count, 3 * 4, 0);
    arena_free(&b.arena);
}
