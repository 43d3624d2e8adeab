/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * src/interp: every way to fail, with its message; and that no content of an array leads outside
 * another. */
#include "unit/interp_bed.h"

#include <stdio.h>

static void open_n(Bed *b, const char *text, int64_t n)
{
    bed_open(b, text);
    bed_size(b, "n", n);
}

TEST(integer_overflow_is_an_error_that_names_the_instance)
{
    static const struct {
        const char *expr, *why;
    } row[] = {
        { "X[i] + 1", "y: i=1: integer overflow: 9223372036854775807 + 1" },
        { "X[i] * 2", "y: i=1: integer overflow: 9223372036854775807 * 2" },
        { "-2 - X[i]", "y: i=1: integer overflow: -2 - 9223372036854775807" },
        { "-(-X[i] - i)", "y: i=1: integer overflow: neg of -9223372036854775808" },
        { "abs(-X[i] - i)", "y: i=1: integer overflow: abs of -9223372036854775808" },
        { "(-X[i] - i) / (-i)", "y: i=0: division by zero: 0 / 0" },
        { "(-X[i] - i) / (1 - 2*i)", "y: i=1: integer overflow: -9223372036854775808 / -1" },
        { "5 % (1 - i)", "y: i=1: division by zero: 5 % 0" },
    };

    for (size_t k = 0; k < sizeof row / sizeof *row; k++) {
        char text[256];
        Bed b;

        snprintf(text, sizeof text, "program p(n)\naxis I = n\ni64 X[I], Y[I]\ny: Y[i] = %s\n",
                 row[k].expr);
        open_n(&b, text, 2);
        I64(&b, "X", 0, INT64_MAX);
        bed_fails(&b, ST_RUN, row[k].why);
        bed_close(&b);
    }
}

TEST(sums_and_stores_that_do_not_fit_are_errors)
{
    Bed b;

    open_n(&b, "program p(n)\naxis I = n\ni64 X[I], S[]\ns: S[] += X[i]\n", 2);
    I64(&b, "X", INT64_MAX, 1);
    bed_fails(&b, ST_RUN, "s: i=1: integer overflow: 9223372036854775807 + 1");
    bed_close(&b);
    open_n(&b, "program p(n)\naxis I = n\ni64 X[I]\ni32 S[I]\ns: S[i] = X[i]\n", 2);
    I64(&b, "X", 1, INT64_C(1) << 31);
    bed_fails(&b, ST_RUN, "s: element 1 of S is 2147483648, which does not fit an i32");
    bed_close(&b);
}

TEST(runs_that_cannot_go_on_say_where)
{
    static const struct {
        const char *stmt, *why;
    } row[] = {
        { "y: Y[i] = X[J[i]]", "y: i=1: index 12 of X's slot 1 is outside 0..3" },
        { "y: Y[J[i]] = X[i]", "y: i=1: index 12 of Y's slot 1 is outside 0..3" },
        { "y: Z[i, J[i]] += X[i]", "y: i=1: index 12 of Z's slot 2 is outside 0..2" },
        { "y: Y[i / 2] = X[i]", "y: i=1: element 0 of Y is written twice" },
        { "y: A[i, i] += X[i]", "y: i=1: A has no entry there to write; guard the statement with" },
        { "y: for i, e in E(J[i]): Y[i] += 1", "y: i=1: index 12 of I above e is outside 0..3" },
        { "u: U(i) |= J[i]", "u: i=1: coordinate 12 inserted into U is outside 0..3" },
        { "u: U(J[i]) |= i", "u: i=1: index 12 of I above U is outside 0..3" },
        { "u: V(J[i]) |= i", "u: i=1: D has no entry with that coordinate" },
    };

    for (size_t k = 0; k < sizeof row / sizeof *row; k++) {
        char text[512];
        Bed b;

        snprintf(text, sizeof text,
                 "program p(n)\naxis I = n, E(I) = seg : load < n unique\n"
                 "axis U(I) = built : load < n, D = 1 : load < n unique, V(D) = built : load < n\n"
                 "f64 X[I], Y[n], Z[I, 2], A[I, E]\ni64 J[I], W[n]\n%s\n",
                 row[k].stmt);
        open_n(&b, text, 3);
        I64(&b, "E.start", 0, 2, 2, 2);
        I64(&b, "E.coord", 0, 1);
        I64(&b, "D.coord", 0);
        F64(&b, "X", 1, 2, 3);
        F64(&b, "Y", 0, 0, 0);
        F64(&b, "Z", 0, 0, 0, 0, 0, 0);
        F64(&b, "A", 0, 0);
        I64(&b, "W", 0, 0, 0);
        I64(&b, "J", 0, 12, 0);
        bed_fails(&b, ST_RUN, row[k].why);
        bed_close(&b);
    }
}

TEST(sizes_and_arrays_that_are_missing_are_named)
{
    Bed b;

    bed_open(&b, "program p(n, m)\naxis I = n, J = compressed(I, m)\nf64 A[J], X[m], Y[I]\n"
                 "inout f64 Z[I]\ny: Y[i] += A[j] * X[j]\nz: Z[i] += Y[i]\n");
    bed_fails(&b, ST_BIND, "size n is not known; set it, or bind an array whose shape contains it");
    bed_size(&b, "n", -3);
    bed_fails(&b, ST_BIND, "size n is negative");
    bed_size(&b, "n", 1);
    bed_size(&b, "m", 2);
    bed_fails(&b, ST_BIND, "axis J: the array J.start is not there; give it");
    I64(&b, "J.start", 0, 1);
    bed_fails(&b, ST_BIND, "axis J: the array J.coord is not given");
    F64(&b, "J.coord", 0);
    bed_fails(&b, ST_BIND, "axis J: J.coord is f64; give it as i32 or i64");
    I64(&b, "J.coord", 0, 1);
    bed_fails(&b, ST_BIND, "axis J: J.coord has 2 elements, but the axis has 1 positions");
    I64(&b, "J.coord", 1);
    bed_fails(&b, ST_BIND, "A is not given; bind 1 elements of f64");
    F64(&b, "A", 3);
    F32(&b, "X", 1, 2);
    bed_fails(&b, ST_BIND, "X is 2 elements of f64, but the given array is 2 of f32");
    F64(&b, "X", 1, 2, 3);
    bed_fails(&b, ST_BIND, "X is 2 elements of f64, but the given array is 3 of f64");
    F64(&b, "X", 1, 2);
    bed_fails(&b, ST_BIND, "Z is not given; bind 1 elements of f64");
    F64(&b, "Z", 1);
    bed_run(&b);
    WANT(&b, "Z", 7);
    bed_close(&b);
}

/* One axis, one array with one fault, the message. */
TEST(structure_is_validated_before_the_run)
{
    static const struct {
        const char *axis;
        int64_t start[4], coord[4];
        const char *why;
    } row[] = {
        { "seg : j < n", { 1, 1, 2, 4 }, { 0 }, "axis E: E.start begins with 1; it begins with 0" },
        { "seg : j < n",
          { 0, 3, 2, 4 },
          { 0 },
          "axis E: E.start falls from 3 to 2 at element 2; it never falls" },
        { "seg : j < n",
          { 0, 1, 2, 5 },
          { 0 },
          "axis E: E.j has 4 elements, but the axis has 5 positions" },
        { "seg : j < n",
          { 0, 1, 2, 4 },
          { 0, 1, 3, 0 },
          "axis E: i=2, e=2: E.j is 3 at position 2, outside 0..3; correct it, or declare" },
        { "seg : load < n",
          { 0, 1, 2, 4 },
          { 0, 1, -1, 0 },
          "axis E: i=2, e=-1: E.coord is -1 at position 2" },
        { "seg : j < n, k = j(e) - i < n",
          { 0, 1, 2, 4 },
          { 0, 1, 2, 0 },
          "axis E: i=2, e=3: E.k is -2 at position 3, outside 0..3" },
        { "seg : j sorted",
          { 0, 1, 2, 4 },
          { 5, 1, 2, 0 },
          "axis E: i=2, e=3: declared sorted, but position 3 has (0) after (2); sort the entries" },
        { "seg : j sorted unique",
          { 0, 1, 2, 4 },
          { 5, 1, 2, 2 },
          "axis E: i=2, e=3: declared unique, but positions 2 and 3 both have (2); sum" },
        { "seg : j unique",
          { 0, 3, 3, 4 },
          { 5, 1, 5, 2 },
          "axis E: declared unique, but positions 0 and 2 both have (5)" },
        { "seg : j, k = j(e) / 4 unique",
          { 0, 3, 3, 4 },
          { 5, 1, 5, 2 },
          "axis E: declared unique, but positions 0 and 2 both have (5, 1)" },
        { "seg : j < 9 once",
          { 0, 1, 2, 4 },
          { 5, 1, 0, 5 },
          "axis E: E.j is declared once, but positions 0 and 3 both have 5; correct it" },
        { "seg : j, k = 4 / (i - 1)",
          { 0, 1, 2, 4 },
          { 0 },
          "axis E: i=1, e=1: division by zero: 4 / 0" },
        { "seg : j, k = j(e) * 4",
          { 0, 1, 2, 4 },
          { 0, 0, 0, INT64_MAX },
          "axis E: i=2, e=3: integer overflow: 9223372036854775807 * 4" },
    };

    for (size_t k = 0; k < sizeof row / sizeof *row; k++) {
        char text[256];
        const char *name;
        Bed b;

        snprintf(text, sizeof text,
                 "program p(n)\naxis I = n, E(I) = %s\nf64 Y[I]\n"
                 "y: for i, e: Y[i] += 1\n",
                 row[k].axis);
        open_n(&b, text, 3);
        name = strstr(row[k].axis, "load") != NULL ? "E.coord" : "E.j";
        bed_bind(&b, "E.start", T_i64, 4, row[k].start);
        bed_bind(&b, name, T_i64, 4, row[k].coord);
        CHECK_EQ(CATCH(&b.err, interp_check(&b.arena, b.prog, b.env)), ST_BIND);
        CHECK_HAS(b.err.msg, row[k].why);
        bed_fails(&b, ST_BIND, row[k].why);
        bed_close(&b);
    }
}

TEST(duplicates_and_disorder_are_fine_where_nothing_is_promised)
{
    Bed b;

    open_n(&b,
           "program p(n)\naxis I = n, E(I) = seg : j < n sorted, F(I) = 2 : a, b unique\n"
           "axis G(I) = 2 : x, y = ident unique\nf64 Y[I]\ny: for i, e: Y[i] += 1\n",
           2);
    I64(&b, "E.start", 0, 3, 4);
    I64(&b, "E.j", 0, 0, 1, 0);
    I64(&b, "F.a", 1, 1, 1, 1);
    I64(&b, "F.b", 2, 1, 1, 2);
    I64(&b, "G.x", 3, 3, 3, 3);
    CHECK_EQ(CATCH(&b.err, interp_check(&b.arena, b.prog, b.env)), ST_OK);
    bed_run(&b);
    WANT(&b, "Y", 3, 1);
    bed_close(&b);
}

/* ir_check refuses these; the interpreter stays inside its arrays all the same. */
TEST(a_built_axis_cannot_be_used_before_its_last_insert)
{
    static const char *const stmt[] = {
        "a: for i, u: Y[i] += 1\nu: U(i) |= i\n",
        "a: for i: Y[i] += C[i, i]\nu: U(i) |= i\n",
        "a: C[i, i] += 1\nu: U(i) |= i\n",
        "a: Y[i] += size(U)\nu: U(i) |= i\n",
    };

    for (size_t k = 0; k < sizeof stmt / sizeof *stmt; k++) {
        char text[256];
        Bed b = { 0 };

        arena_init(&b.arena, &os_libc, &b.err);
        snprintf(text, sizeof text,
                 "program p(n)\naxis I = n, U(I) = built : load < n\n"
                 "f64 Y[I], C[I, U]\n%s",
                 stmt[k]);
        CHECK_EQ(CATCH(&b.err, b.prog = ir_parse(&b.arena, "t", text, strlen(text));
                       b.env = ir_env(&b.arena, b.prog)),
                 ST_OK);
        bed_size(&b, "n", 2);
        F64(&b, "Y", 0, 0);
        bed_fails(&b, ST_RUN, "is not complete here");
        bed_close(&b);
    }
}

TEST(huge_sizes_are_refused_not_allocated)
{
    Bed b;

    bed_open(&b, "program p(n)\nf64 Y[n, n]\ny: for i in n: Y[i, i] = 1\n");
    bed_size(&b, "n", INT64_C(1) << 40);
    bed_fails(&b, ST_LIMIT, "Y has more elements than");
    bed_size(&b, "n", INT64_C(1) << 30);
    bed_fails(&b, ST_NOMEM, "out of memory");
    bed_close(&b);
}

static int64_t hostile(uint64_t *seed)
{
    static const int64_t edge[] = { INT64_MIN, INT64_MAX, -1, INT64_C(1) << 31, INT32_MIN, 100 };
    uint64_t r = test_random(seed);

    return r % 40 == 0 ? edge[r / 40 % 6] : (int64_t)(r / 40 % 4);
}

static void hostile_array(Bed *b, uint64_t *seed, Array *to, Type type, int64_t n, bool rising)
{
    int64_t sum = 0;

    if (test_random(seed) % 50 == 0)
        n += (int64_t)(test_random(seed) % 3) - 1;
    if (n < 0 || n > 1000)
        n = 0;
    *to = (Array){ arena_array(&b->arena, n, ir_type[type].bytes), n, type };
    for (int64_t i = 0; i < n; i++) {
        int64_t v = hostile(seed);

        if (rising) { /* most are valid starts */
            v = v == INT64_MIN || v > 3 ? v : sum + (i > 0 ? v / 2 : 0);
            sum = v < 0 || v > 1000 ? sum : v;
        }
        if (type == T_i32)
            ((int32_t *)to->data)[i] = (int32_t)v;
        else if (type == T_i64)
            ((int64_t *)to->data)[i] = v;
    }
}

static void hostile_axes(Bed *b, uint64_t *seed)
{
    for (int i = 0; i < b->prog->naxis; i++) {
        const Axis *a = b->prog->axis[i];
        int64_t n = 0;

        if (a->extent == X_BUILT)
            continue;
        if (a->extent == X_SEG) {
            if (CATCH(&b->err, n = ir_axis_total(b->prog, b->env, a->parent)) != ST_OK)
                return;
            hostile_array(b, seed, &b->env->start[i], T_i64, n + 1, true);
        }
        if (CATCH(&b->err, n = ir_axis_total(b->prog, b->env, a)) != ST_OK)
            return;
        for (int k = 0; k < a->ncoord; k++)
            if (a->coord[k].kind == C_LOAD)
                hostile_array(b, seed, &b->env->coord[i][k], k % 2 ? T_i32 : T_i64, n, false);
    }
}

/* Whatever the arrays hold, a run ends, with a result or with a message (see it under ASan). */
TEST(no_array_can_lead_outside_another)
{
    static const char *const text[] = {
        "program p(m, n)\naxis I = m, E(I) = seg : j < n, K = 2\nf64 A[E], X[n, K], Y[I, K]\n"
        "y: Y[i, k] += A[e] * X[j(e), k]\n",
        "program p(m, n)\naxis S = m, W(S) = seg, L(W) = 2 : j < n padded\ni64 row[S, 2]\n"
        "f64 A[L], X[n], Y[m]\ny: Y[row[s, loc(l)]] += A[l] * X[j(l)]\n",
        "program p(m, n)\naxis I = m, E(I) = seg : j < n, J = n, F(J) = seg : k < m padded\n"
        "axis U(I) = built : load < m\nf64 A[E], B[F], C[I, U]\ni64 P[I]\n"
        "u: for i, e, f in F(j(e)): U(i) |= k(f)\n"
        "c: for i, e, f in F(j(e)): C[i, k(f)] += A[e] * B[f]\n"
        "p: P[i] = size(U)\n",
        "program p(m, n)\naxis D = n : off, R(D) = m : i = r, j = r + off(d) < n padded\n"
        "f64 A[R], X[n], Y[m]\ny: Y[i(r)] += A[r] * X[j(r)]\n",
        "program p(m, n)\naxis I = m, J(I) = seg : load < n sorted unique\n"
        "axis K(I) = seg : a, b unique\n"
        "i64 q[I]\nf64 A[J], B[I, J, K], Y[n] fill 3\n"
        "y: Y[q[i]] max= B[i, q[i], (q[i], i)] + A[@q[i]] if stored(B[i, q[i], (i, i)])\n",
    };
    static const int often[] = { ST_OK, ST_BIND, ST_RUN };
    const int64_t rounds = test_scale(4000);
    uint64_t seed = 31;
    int ended[ST_COUNT] = { 0 };

    for (int64_t round = 0; round < rounds; round++) {
        Bed b;
        Layout l;

        bed_open(&b, text[round % 5]);
        bed_size(&b, "m", (int64_t)(test_random(&seed) % 4));
        bed_size(&b, "n", (int64_t)(test_random(&seed) % 4));
        hostile_axes(&b, &seed);
        for (int i = 0; i < b.prog->nbuf; i++) {
            const Buf *buf = b.prog->buf[i];

            if (!buf->written && CATCH(&b.err, interp_check(&b.arena, b.prog, b.env);
                                       ir_layout(&b.arena, b.prog, b.env, buf, &l)) == ST_OK)
                hostile_array(&b, &seed, &b.env->buf[i], buf->type, l.n, false);
        }
        ended[CATCH(&b.err, interp_run(&b.arena, b.prog, b.env))]++;
        bed_close(&b);
    }
    for (int i = 0; i < 3 && rounds >= 1000; i++)
        CHECK(ended[often[i]] > rounds / 40);
    CHECK_EQ(ended[ST_OK] + ended[ST_BIND] + ended[ST_RUN] + ended[ST_LIMIT], rounds);
}
