/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * api/verify.c: the quick look at structure never passes what interp_check refuses, and passes the
 * usual formats when they are right. */
#include "unit/kernel_bed.h"
#include "unit/trap.h"

#include "interp/interp.h"

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
    { "program p(m, n)\naxis I = m, E(I) = seg : j < n padded\nf32 A[E]\n", false },
    { "program p(m, n)\naxis I = m, E(I) = seg : j, k = j + 1 < n\nf32 A[E]\n", false },
    { "program p(m, n)\naxis I = m : load < n sorted unique, E(I) = seg : j < n\nf32 A[E]\n",
      true },
    { "program p(m, n)\naxis I = m, E(I) = seg, F(E) = 2 : j < n\nf32 A[F]\n", true },
    { "program p(m, n)\naxis I = m, E(I) = seg, F(E) = one : j < n\nf32 A[F]\n", true },
    { "program p(m, n)\naxis I = m, T = 3 : table {0, 2, 1} < n, E(I) = seg\nf32 A[E, T]\n", true },
    { "program p(m, n)\naxis I = m, T = 3 : table {0, 1, 2} < n sorted, E(I) = seg\nf32 A[E, T]\n",
      false },
    { "program p(m, n)\naxis I = m, K = m : c = ident < n, E(I) = seg\nf32 A[E, K]\n", true },
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
        look = CATCH(&err, seen = api_is_right(p, env));
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
}
