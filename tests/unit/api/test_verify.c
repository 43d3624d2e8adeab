/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * api/verify.c: the quick look at structure never passes what interp_check refuses, and passes the
 * usual formats when they are right. */
#include "unit/kernel_bed.h"
#include "unit/trap.h"

#include "interp/interp.h"
#include "run/run.h"

typedef struct Case {
    const char *text;
    bool usual; /* right structure is to be seen as such */
} Case;

static const Case cases[] = {
    { "program p(m, n)\naxis I = m, E(I) = seg : j < n\nf32 A[E]\n", true },
    { "program p(m, n)\naxis I = m, E(I) = seg : j < n sorted\nf32 A[E]\n", true },
    { "program p(m, n)\naxis I = m, E(I) = seg : j < n sorted unique\nf32 A[E]\n", true },
    { "program p(m, n)\naxis I = m, E(I) = seg : j < n unique\nf32 A[E]\n", false },
    { "program p(m, n)\naxis I = m, E(I) = seg : j < n, k < m sorted unique\nf32 A[E]\n", true },
    { "program p(m, n)\naxis I = m, E(I) = seg : j < n padded\nf32 A[E]\n", true },
    { "program p(m, n)\naxis I = m, E(I) = seg : j < n sorted padded\nf32 A[E]\n", true },
    { "program p(m, n)\naxis I = m, E(I) = 3 : load < n sorted unique padded\nf32 A[E]\n", true },
    { "program p(m, n)\naxis I = m, E(I) = seg : j < n padded, F(E) = seg : k < m sorted\n"
      "f32 A[F]\n",
      false },
    { "program p(m, n)\naxis I = m, E(I) = seg : j, k = j + 1 < n\nf32 A[E]\n", false },
    { "program p(m, n)\naxis I = m : load < n sorted unique, E(I) = seg : j < n\nf32 A[E]\n",
      true },
    { "program p(m, n)\naxis I = m, E(I) = seg, F(E) = 2 : j < n\nf32 A[F]\n", true },
    { "program p(m, n)\naxis I = m, E(I) = seg, F(E) = one : j < n\nf32 A[F]\n", true },
    { "program p(m, n)\naxis I = m, T = 3 : table {0, 2, 1} < n, E(I) = seg\nf32 A[E, T]\n", true },
    { "program p(m, n)\naxis I = m, T = 3 : table {0, 1, 2} < n sorted, E(I) = seg\nf32 A[E, T]\n",
      true },
    { "program p(m, n)\naxis I = m, E(I) = seg : c = ident, j < n unique\nf32 A[E]\n", true },
    { "program p(m, n)\naxis I = m, E(I) = seg : c = ident, j < n sorted\nf32 A[E]\n", true },
    { "program p(m, n)\naxis I = m, K = m : c = ident < n, E(I) = seg\nf32 A[E, K]\n", true },
    { "program p(m, n)\naxis I = m, E(I) = seg : j < n once\nf32 A[E]\n", false },
    { "program p(m, n)\naxis I = m, E(I) = seg : k < m, j < 2 * n once\nf32 A[E]\n", false },
};

static Array array_of(Arena *a, Type type, int64_t n)
{
    return (Array){ arena_array(a, n, ir_type[type].bytes), n, type };
}

static void put(Array *a, int64_t i, int64_t v)
{
    if (a->type == T_i64)
        ((int64_t *)a->data)[i] = v;
    else
        ((int32_t *)a->data)[i] = (int32_t)v;
}

/* Structure that is right more often than not. */
static Env *make_env(Arena *arena, const Prog *p, uint64_t *seed)
{
    Env *env = ir_env(arena, p);
    int64_t m = 1 + (int64_t)(test_random(seed) % 4), n = 1 + (int64_t)(test_random(seed) % 6);

    env->size[0] = m;
    env->size[1] = n;
    for (int i = 0; i < p->naxis; i++) {
        const Axis *a = p->axis[i];
        Type type = test_random(seed) % 2 == 0 ? T_i32 : T_i64;
        int64_t total = 0, last = 0;

        if (a->extent == X_SEG) {
            int64_t up = ir_axis_total(p, env, a->parent);
            Array *s = &env->start[i];

            *s = array_of(arena, type, up + 1);
            for (int64_t q = 0; q <= up; q++, last += (int64_t)(test_random(seed) % 4))
                put(s, q, q == 0 && test_random(seed) % 20 > 0 ? 0 : last);
            if (test_random(seed) % 10 == 0)
                put(s, (int64_t)(test_random(seed) % (uint64_t)(up + 1)),
                    (int64_t)(test_random(seed) % 9) - 1);
            last = ir_array_int(s, up);
            total = last < 0 ? 0 : last;
        } else {
            total = ir_axis_total(p, env, a);
        }
        for (int k = 0; k < a->ncoord; k++) {
            int64_t v = 0;

            if (a->coord[k].kind != C_LOAD)
                continue;
            env->coord[i][k] = array_of(arena, type, total + (test_random(seed) % 30 == 0));
            for (int64_t e = 0; e < total; e++) {
                v = test_random(seed) % 3 == 0 ? 0 : v + (int64_t)(test_random(seed) % 2);
                put(&env->coord[i][k], e,
                    test_random(seed) % 40 == 0 ? (int64_t)(test_random(seed) % 9) - 2 : v);
            }
        }
    }
    return env;
}

TEST(what_passes_the_quick_look_passes_the_interpreter)
{
    uint64_t seed = 7;
    int64_t n = test_scale(20000), quick = 0, right = 0;
    Err failed = { 0 };
    Pool *pool = NULL;

    CHECK_EQ(CATCH(&failed, pool = pool_new(&os_libc, &failed, 3)), ST_OK);

    for (int64_t i = 0; i < n; i++) {
        const Case *c = &cases[i % (int64_t)(sizeof cases / sizeof *cases)];
        Err err = { 0 };
        Arena arena;
        Prog *p = NULL;
        Env *env = NULL;
        volatile bool seen = false;
        Status look, full;

        arena_init(&arena, &os_libc, &err);
        CHECK_EQ(CATCH(&err, p = ir_parse(&arena, "p", c->text, strlen(c->text))), ST_OK);
        if (CATCH(&err, env = make_env(&arena, p, &seed)) != ST_OK) {
            arena_free(&arena);
            continue; /* a start array that nothing can hang on */
        }
        look = CATCH(&err, seen = api_is_right(p, env, i % 2 == 0 ? pool : NULL));
        full = CATCH(&err, interp_check(&arena, p, env));
        if (look != ST_OK)
            CHECK_EQ(look, full);
        if (look == ST_OK && seen)
            CHECK_EQ(full, ST_OK);
        if (look == ST_OK && full == ST_OK && c->usual && !seen)
            test_fail(__FILE__, __LINE__, "case %d is right, and not seen so: %s", (int)i, c->text);
        quick += seen;
        right += full == ST_OK;
        arena_free(&arena);
    }
    CHECK(quick * 3 > right && right * 10 > n); /* neither is rare */
    pool_free(pool);
}

/* Long arrays, which threads share out: short rows, empty ones, and one that is most of it. */
enum { ROWS = 3000, LONG = 1500, VALUES = 80000 };

typedef struct Large {
    Arena arena;
    Err err;
    Prog *p;
    Env *env;
    Array *start, *coord;
    Pool *pool;
} Large;

static void open_large(Large *l, const char *flags, Type type, bool backwards, uint64_t *seed)
{
    char text[200];
    int64_t n = 0;

    *l = (Large){ .err = { 0 } };
    arena_init(&l->arena, &os_libc, &l->err);
    snprintf(text, sizeof text, "program p(m, n)\naxis I = m, E(I) = seg : j < n %s\nf32 A[E]\n",
             flags);
    CHECK_EQ(CATCH(&l->err, l->p = ir_parse(&l->arena, "p", text, strlen(text))), ST_OK);
    CHECK_EQ(CATCH(&l->err, l->pool = pool_new(&os_libc, &l->err, 3)), ST_OK);
    l->env = ir_env(&l->arena, l->p);
    l->env->size[0] = ROWS;
    l->env->size[1] = VALUES;
    l->start = &l->env->start[1];
    l->coord = &l->env->coord[1][0];
    *l->start = array_of(&l->arena, type, ROWS + 1);
    for (int64_t q = 0; q < ROWS; q++) {
        put(l->start, q, n);
        n += q == LONG ? VALUES - 1000 : (int64_t)(test_random(seed) % 40);
    }
    put(l->start, ROWS, n);
    *l->coord = array_of(&l->arena, type, n);
    for (int64_t q = 0; q < ROWS; q++) {
        int64_t first = ir_array_int(l->start, q), end = ir_array_int(l->start, q + 1);

        for (int64_t p = first; p < end; p++)
            put(l->coord, p, (backwards ? end - 1 - p : p - first) + 500);
    }
}

static void close_large(Large *l)
{
    pool_free(l->pool);
    arena_free(&l->arena);
}

static bool sees(Large *l)
{
    volatile bool right = false;

    CHECK_EQ(CATCH(&l->err, right = api_is_right(l->p, l->env, l->pool)), ST_OK);
    return right;
}

/* A position that is not the first of its row. */
static int64_t inner(const Large *l, uint64_t *seed)
{
    int64_t n = l->coord->n, p = 1 + (int64_t)(test_random(seed) % (uint64_t)(n - 1));

    for (int64_t q = 0; q <= ROWS; q++)
        if (ir_array_int(l->start, q) == p)
            return inner(l, seed);
    return p;
}

static void try_fault(Large *l, Array *a, int64_t at, int64_t v)
{
    int64_t had = ir_array_int(a, at);

    put(a, at, v);
    if (sees(l))
        test_fail(__FILE__, __LINE__, "%lld at %lld is not noticed", (long long)v, (long long)at);
    put(a, at, had);
}

TEST(no_fault_escapes_a_look_by_threads)
{
    uint64_t seed = 5;

    for (int i = 0; i < (int)test_scale(40); i++) {
        Large l;
        int64_t p, q;

        open_large(&l, i % 4 < 2 ? "sorted unique" : "sorted", i % 2 == 0 ? T_i32 : T_i64, false,
                   &seed);
        CHECK(sees(&l));
        p = inner(&l, &seed);
        q = 1 + (int64_t)(test_random(&seed) % (ROWS - 1));
        try_fault(&l, l.coord, p, VALUES);
        try_fault(&l, l.coord, p, -1);
        try_fault(&l, l.coord, p, i % 2 == 0 ? INT32_MIN : INT64_MIN);
        try_fault(&l, l.coord, p, ir_array_int(l.coord, p - 1) - 1);
        if (i % 4 < 2)
            try_fault(&l, l.coord, p, ir_array_int(l.coord, p - 1));
        try_fault(&l, l.start, q, ir_array_int(l.start, q + 1) + 1);
        try_fault(&l, l.start, q, ir_array_int(l.start, q - 1) - 1);
        try_fault(&l, l.start, 0, -1);
        CHECK(sees(&l));
        close_large(&l);
    }
}

/* Wherever the work of threads is cut, pairs are not. */
TEST(every_neighbour_in_a_long_row_is_compared)
{
    uint64_t seed = 9;
    Large l;
    int64_t first;

    open_large(&l, "sorted unique", T_i32, false, &seed);
    first = ir_array_int(l.start, LONG);
    for (int64_t c = 2; c < 40; c++)
        for (int64_t k = 1; k < c; k++) {
            int64_t p = l.coord->n * k / c;

            for (p -= 1; p <= l.coord->n * k / c + 1; p++)
                if (p > first && p < first + VALUES - 1000)
                    try_fault(&l, l.coord, p, ir_array_int(l.coord, p - 1));
        }
    close_large(&l);
}

TEST(twins_are_found_in_any_order)
{
    uint64_t seed = 6;

    for (int i = 0; i < (int)test_scale(20); i++) {
        Large l;
        int64_t p;

        open_large(&l, "unique", i % 2 == 0 ? T_i32 : T_i64, true, &seed);
        CHECK(sees(&l));
        p = ir_array_int(l.start, LONG);
        try_fault(&l, l.coord, p + 1 + (int64_t)(test_random(&seed) % (VALUES - 1001)),
                  ir_array_int(l.coord, p));
        p = inner(&l, &seed);
        try_fault(&l, l.coord, p, ir_array_int(l.coord, p - 1));
        close_large(&l);
    }
}

TEST(padding_is_left_out_of_the_order)
{
    uint64_t seed = 8;

    for (int i = 0; i < (int)test_scale(20); i++) {
        Large l;
        int64_t p;

        open_large(&l, "sorted unique padded", i % 2 == 0 ? T_i32 : T_i64, false, &seed);
        for (int k = 0; k < 300; k++)
            put(l.coord, inner(&l, &seed), k % 2 == 0 ? -1 : VALUES);
        CHECK(sees(&l));
        p = ir_array_int(l.start, LONG);
        put(l.coord, p, 500);
        for (int k = 1; k < 40000; k++)
            put(l.coord, p + k, -1);
        try_fault(&l, l.coord, p + 40000, 500);
        close_large(&l);
    }
}
