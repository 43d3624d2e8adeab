/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * src/base: errors, arenas, names, text, hashing and checked integers.  Numbers as text are in
 * test_num.c, whole files in test_file.c. */
#include "base/base.h"
#include "fail/inject.h"
#include "unit/test.h"
#include "unit/trap.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* ---- err.c */

static void throw_now(Err *err)
{
    err_throw(err, ST_RUN, "thrown by %s", "a helper");
}

static void throw_in(Err *err)
{
    throw_now(err);
}

TEST(a_throw_reaches_the_trap_with_code_and_message)
{
    Err err = { 0 };

    CHECK_EQ(CATCH(&err, throw_in(&err)), ST_RUN);
    CHECK_STR(err.msg, "thrown by a helper");
    CHECK(err.trap == NULL);
}

TEST(the_first_failure_is_kept)
{
    Err err = { 0 };

    err_set(&err, ST_PARSE, "first %d", 1);
    err_set(&err, ST_RUN, "second");
    CHECK_EQ(err.code, ST_PARSE);
    CHECK_STR(err.msg, "first 1");
    err_place(&err, "late", 1, 1, "", 0);
    CHECK_EQ(err.line, 0);
    err_clear(&err);
    CHECK_EQ(err.code, ST_OK);
    CHECK_STR(err.msg, "");
}

TEST(clearing_an_error_keeps_the_trap)
{
    Err err = { 0 };
    jmp_buf trap;

    err.trap = &trap;
    err_set(&err, ST_IO, "x");
    err_clear(&err);
    CHECK(err.trap == &trap);
    CHECK_EQ(err.code, ST_OK);
}

TEST(a_set_error_can_be_thrown_later)
{
    Err err = { 0 };

    CHECK_EQ(CATCH(&err, err_set(&err, ST_CHECK, "kept"); err_jump(&err)), ST_CHECK);
    CHECK_STR(err.msg, "kept");
}

static void catch_and_throw_another(Err *err)
{
    CHECK_EQ(CATCH(err, throw_in(err)), ST_RUN);
    err_clear(err);
    err_throw(err, ST_ARG, "outer");
}

TEST(traps_nest)
{
    Err err = { 0 };

    CHECK_EQ(CATCH(&err, catch_and_throw_another(&err)), ST_ARG);
    CHECK_STR(err.msg, "outer");
}

TEST(a_long_message_is_cut_and_ends_in_nul)
{
    Err err = { 0 };
    char big[3000];

    memset(big, 'x', sizeof big - 1);
    big[sizeof big - 1] = 0;
    err_place(&err, big, 1, 2, big, sizeof big - 1);
    err_set(&err, ST_IO, "%s", big);
    CHECK_EQ(strlen(err.msg), sizeof err.msg - 1);
    CHECK_EQ(strlen(err.file), sizeof err.file - 1);
    CHECK_EQ(strlen(err.src), sizeof err.src - 1);
}

TEST(the_place_is_the_first_one_without_control_bytes)
{
    Err err = { 0 };

    err_place(&err, "a\x1b[2Jb", 3, 4, "x\ty\x7f\x01\xc3\xa9z", 8);
    err_place(&err, "other", 5, 6, "line", 4);
    CHECK_STR(err.file, "a [2Jb");
    CHECK_STR(err.src, "x y  \xc3\xa9z");
    CHECK_EQ(err.line, 3);
    CHECK_EQ(err.col, 4);
}

/* ---- arena.c */

typedef struct Bed { /* an arena that counts its blocks */
    Err err;
    Inject inject;
    Arena arena;
} Bed;

static void bed_open(Bed *b)
{
    memset(&b->err, 0, sizeof b->err);
    inject_init(&b->inject, &os_libc);
    arena_init(&b->arena, &b->inject.os, &b->err);
}

static void bed_close(Bed *b)
{
    arena_free(&b->arena);
    CHECK(inject_is_clean(&b->inject));
}

static bool is_filled(const unsigned char *p, size_t n, int byte)
{
    for (size_t i = 0; i < n; i++)
        if (p[i] != byte)
            return false;
    return true;
}

TEST(arena_memory_is_zeroed_aligned_and_apart)
{
    enum { COUNT = 2000 };
    static unsigned char *block[COUNT];
    uint64_t seed = 1;
    Bed b;

    bed_open(&b);
    for (size_t i = 0; i < COUNT; i++) {
        block[i] = arena_alloc(&b.arena, i % 777);
        CHECK_EQ((uintptr_t)block[i] % _Alignof(max_align_t), 0);
        CHECK(is_filled(block[i], i % 777, 0));
        memset(block[i], (int)(i % 251 + 1), i % 777);
    }
    for (size_t k = 0; k < COUNT; k++) {
        size_t i = test_random(&seed) % COUNT;

        CHECK(is_filled(block[i], i % 777, (int)(i % 251 + 1)));
    }
    bed_close(&b);
}

TEST(arena_chunks_double_up_to_a_megabyte)
{
    Bed b;

    bed_open(&b);
    for (int i = 0; i < 8000; i++)
        arena_alloc(&b.arena, 1000);
    CHECK(b.arena.total >= 8000000 && b.arena.total <= 10 << 20);
    CHECK(b.inject.calls[INJECT_ALLOC] < 20);
    bed_close(&b);
    CHECK_EQ(b.arena.total, 0);
}

TEST(arena_takes_a_block_larger_than_any_chunk)
{
    Bed b;
    char *p;

    bed_open(&b);
    p = arena_alloc(&b.arena, 5 << 20);
    p[(5 << 20) - 1] = 1;
    arena_alloc(&b.arena, 1);
    CHECK(b.arena.total < 7 << 20);
    bed_close(&b);
}

typedef struct Pages {
    Os os; /* first: what is noted is found by it */
    char *first;
    size_t bytes;
    int calls;
} Pages;

static void note_large(const Os *os, void *p, size_t n)
{
    Pages *pages = (Pages *)(uintptr_t)os;

    pages->first = p;
    pages->bytes = n;
    pages->calls++;
}

TEST(arena_asks_for_large_pages_for_large_arrays)
{
    enum { LARGE = 1 << 21 };
    Pages pages = { .os = os_libc };
    Err e = { 0 };
    Arena arena;
    char *p;

    pages.os.large = note_large;
    arena_init(&arena, &pages.os, &e);
    arena_raw(&arena, 2 * LARGE - 1, 1);
    CHECK_EQ(pages.calls, 0);
    p = arena_raw(&arena, 4 * LARGE, 1);
    CHECK_EQ(pages.calls, 1);
    CHECK((uintptr_t)pages.first % LARGE == 0 && pages.first >= p && pages.first < p + LARGE);
    CHECK(pages.bytes % LARGE == 0 && pages.bytes >= 3 * (size_t)LARGE);
    CHECK(pages.first + pages.bytes <= p + 4 * LARGE);
    memset(p, 1, 4 * (size_t)LARGE);
    arena_free(&arena);
}

TEST(arena_is_usable_again_after_free)
{
    Bed b;

    bed_open(&b);
    arena_free(&b.arena);
    *(int *)arena_alloc(&b.arena, sizeof(int)) = 7;
    bed_close(&b);
    bed_close(&b);
}

TEST(arena_throws_when_memory_ends_and_stays_whole)
{
    Bed b;
    char *before, *after = NULL;

    bed_open(&b);
    before = arena_alloc(&b.arena, 100);
    memset(before, 'a', 100);
    inject_at(&b.inject, INJECT_ALLOC, 2, true, ENOMEM);
    CHECK_EQ(CATCH(&b.err, arena_alloc(&b.arena, 5000)), ST_NOMEM);
    CHECK_HAS(b.err.msg, "out of memory");
    CHECK(is_filled((unsigned char *)before, 100, 'a'));
    CHECK_EQ(CATCH(&b.err, after = arena_alloc(&b.arena, 100)), ST_OK);
    CHECK(after != NULL);
    bed_close(&b);
}

TEST(arena_refuses_sizes_that_overflow)
{
    Bed b;
    int cap = 1 << 29;

    bed_open(&b);
    CHECK_EQ(CATCH(&b.err, arena_alloc(&b.arena, SIZE_MAX)), ST_NOMEM);
    CHECK_EQ(CATCH(&b.err, arena_alloc(&b.arena, SIZE_MAX / 2)), ST_NOMEM);
    CHECK_EQ(CATCH(&b.err, arena_array(&b.arena, -1, 8)), ST_NOMEM);
    CHECK_EQ(CATCH(&b.err, arena_array(&b.arena, INT64_MAX / 4, 8)), ST_NOMEM);
    CHECK_EQ(CATCH(&b.err, arena_array(&b.arena, INT64_MAX / 8, 8)), ST_NOMEM);
    CHECK_EQ(CATCH(&b.err, arena_raw(&b.arena, -1, 8)), ST_NOMEM);
    CHECK_EQ(CATCH(&b.err, arena_raw(&b.arena, INT64_MAX / 4, 8)), ST_NOMEM);
    CHECK_EQ(CATCH(&b.err, arena_grow(&b.arena, NULL, 1 << 29, &cap, 1)), ST_LIMIT);
    CHECK_EQ(b.inject.calls[INJECT_ALLOC], 0);
    bed_close(&b);
}

TEST(arena_copies_bytes)
{
    Bed b;
    char *p;

    bed_open(&b);
    p = arena_copy(&b.arena, "weft", 5);
    CHECK_STR(p, "weft");
    CHECK(arena_copy(&b.arena, NULL, 0) != NULL);
    CHECK(arena_array(&b.arena, 0, 8) != NULL);
    bed_close(&b);
}

TEST(arena_grows_an_array_and_keeps_its_elements)
{
    enum { COUNT = 100000 };
    Bed b;
    int *list = NULL, cap = 0;

    bed_open(&b);
    for (int n = 0; n < COUNT; n++) {
        int *old = list, old_cap = cap;

        list = arena_grow(&b.arena, list, n, &cap, sizeof *list);
        CHECK(n < cap && (old == list) == (n < old_cap));
        list[n] = n;
    }
    for (int n = 0; n < COUNT; n++)
        CHECK_EQ(list[n], n);
    CHECK(b.arena.total < 8 * COUNT * sizeof *list);
    bed_close(&b);
}

/* ---- str.c */

TEST(equal_names_are_one_pointer_among_many)
{
    enum { COUNT = 50000 };
    static const char *name[COUNT];
    Bed b;
    Names t = { 0 };
    char text[32];

    bed_open(&b);
    t.arena = &b.arena;
    for (int i = 0; i < COUNT; i++) {
        int n = snprintf(text, sizeof text, "n%d", i);

        name[i] = name_intern(&t, text, (size_t)n);
        CHECK_STR(name[i], text);
    }
    CHECK_EQ(t.n, COUNT);
    for (int i = 0; i < COUNT; i++) {
        int n = snprintf(text, sizeof text, "n%d and what follows", i);

        CHECK(name_intern(&t, text, (size_t)n - strlen(" and what follows")) == name[i]);
    }
    CHECK_EQ(t.n, COUNT);
    bed_close(&b);
}

TEST(a_name_and_its_prefix_are_two_and_the_empty_one_is_a_name)
{
    Bed b;
    Names t = { 0 };
    const char *ab, *a, *none;

    bed_open(&b);
    t.arena = &b.arena;
    ab = name_intern(&t, "ab", 2);
    a = name_intern(&t, "ab", 1);
    none = name_intern(&t, "ab", 0);
    CHECK_STR(ab, "ab");
    CHECK_STR(a, "a");
    CHECK_STR(none, "");
    CHECK(name_intern(&t, "", 0) == none && name_intern(&t, "a", 1) == a);
    CHECK_EQ(t.n, 3);
    bed_close(&b);
}

TEST(names_survive_each_failing_allocation)
{
    for (int64_t k = 1;; k++) {
        Bed b;
        Names t = { 0 };
        Status status = ST_OK;
        char text[32];

        bed_open(&b);
        t.arena = &b.arena;
        inject_at(&b.inject, INJECT_ALLOC, k, false, ENOMEM);
        for (int i = 0; i < 2000; i++) {
            size_t n = (size_t)snprintf(text, sizeof text, "n%d", i);
            Status now = CATCH(&b.err, name_intern(&t, text, n));

            status = now == ST_OK ? status : now;
            if (now != ST_OK) /* the failing name is not in the table, the next try is */
                CHECK_EQ(CATCH(&b.err, name_intern(&t, text, n)), ST_OK);
        }
        CHECK_EQ(t.n, 2000);
        CHECK_EQ(status, b.inject.failed > 0 ? ST_NOMEM : ST_OK);
        bed_close(&b);
        if (b.inject.failed == 0)
            break;
    }
}

TEST(text_grows_and_ends_in_nul)
{
    Bed b;
    Text t = { 0 };

    bed_open(&b);
    t.arena = &b.arena;
    for (int i = 0; i < 10000; i++) {
        text_char(&t, 'a');
        text_str(&t, "bc");
        text_put(&t, "dexx", 2);
        text_f(&t, "%d%s", 7, "f");
        CHECK_EQ(t.n, 7 * (i + 1));
        CHECK_EQ(t.s[t.n], 0);
    }
    CHECK_EQ(strlen(t.s), 70000);
    for (size_t i = 0; i < t.n; i += 7)
        CHECK(memcmp(t.s + i, "abcde7f", 7) == 0);
    bed_close(&b);
}

TEST(empty_text_is_text)
{
    Bed b;
    Text t = { 0 }, u = { 0 };

    bed_open(&b);
    t.arena = u.arena = &b.arena;
    text_put(&t, NULL, 0);
    CHECK_STR(t.s, "");
    text_f(&u, "%s", "");
    CHECK_STR(u.s, "");
    bed_close(&b);
}

TEST(formatted_text_longer_than_the_buffer_is_whole)
{
    Bed b;
    Text t = { 0 };

    bed_open(&b);
    t.arena = &b.arena;
    text_f(&t, "%0*d", 5000, 1);
    CHECK_EQ(t.n, 5000);
    CHECK_EQ(t.s[4999], '1');
    text_f(&t, "%*s", 255, "x");
    CHECK_EQ(strlen(t.s), 5255);
    bed_close(&b);
}

/* ---- hash.c */

TEST(hash_is_the_same_on_every_machine)
{
    CHECK_EQ(hash_int(0, 0), (int64_t)0x4179b061e0c0e0d0u);
    CHECK_EQ(hash_bytes(0, "", 0), (int64_t)0x4179b061e0c0e0d0u);
    CHECK_EQ(hash_bytes(7, "weft and warp", 13), (int64_t)0xd45caeae14eb0b16u);
}

TEST(hash_changes_with_every_bit_length_and_seed)
{
    unsigned char text[19] = "abcdefghijklmnopqr";
    uint64_t h = hash_bytes(0, text, 18);

    for (int bit = 0; bit < 18 * 8; bit++) {
        text[bit / 8] ^= (unsigned char)(1 << bit % 8);
        CHECK(hash_bytes(0, text, 18) != h);
        text[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    CHECK(hash_bytes(1, text, 18) != h);
    CHECK(hash_bytes(0, text, 17) != h);
    CHECK(hash_bytes(0, "\0", 1) != hash_bytes(0, "\0\0", 2));
    CHECK(hash_bytes(0, "\0\0\0\0\0\0\0\0", 8) != hash_bytes(0, "\0\0\0\0\0\0\0\0", 7));
}

TEST(hash_spreads_small_integers_over_low_bits)
{
    enum { SLOTS = 1024 };
    static int count[SLOTS];
    int most = 0;

    for (uint64_t v = 0; v < SLOTS * 16; v++) {
        int n = ++count[hash_int(0, v) % SLOTS];

        most = n > most ? n : most;
    }
    CHECK(most < 48);
}

/* ---- checked integers */

TEST(checked_integers_say_when_a_result_does_not_fit)
{
    int64_t r;

    CHECK(!int_add(INT64_MAX, 0, &r) && r == INT64_MAX);
    CHECK(int_add(INT64_MAX, 1, &r));
    CHECK(int_add(INT64_MIN, -1, &r));
    CHECK(!int_sub(INT64_MIN, 0, &r) && r == INT64_MIN);
    CHECK(int_sub(0, INT64_MIN, &r));
    CHECK(!int_sub(-1, INT64_MIN, &r) && r == INT64_MAX);
    CHECK(!int_mul(INT64_MIN, 1, &r) && r == INT64_MIN);
    CHECK(int_mul(INT64_MIN, -1, &r));
    CHECK(int_mul(INT64_C(1) << 32, INT64_C(1) << 31, &r));
    CHECK(!int_mul(INT64_C(1) << 32, -(INT64_C(1) << 31), &r) && r == INT64_MIN);
}

TEST(division_rounds_down_and_the_remainder_has_the_sign_of_the_divisor)
{
    for (int64_t a = -50; a <= 50; a++)
        for (int64_t b = -12; b <= 12; b++) {
            int64_t q = 99, r = 99, k = -60;

            if (b == 0) {
                CHECK(int_div(a, b, &q) && int_mod(a, b, &r));
                continue;
            }
            CHECK(!int_div(a, b, &q) && !int_mod(a, b, &r));
            while (b > 0 ? (k + 1) * b <= a : (k + 1) * b >= a) /* the largest k with k <= a / b */
                k++;
            CHECK_EQ(q, k);
            CHECK_EQ(q * b + r, a);
            CHECK(r == 0 || (r < 0) == (b < 0));
        }
}

TEST(division_of_extremes_is_right_or_refused)
{
    int64_t r;

    CHECK(int_div(INT64_MIN, -1, &r));
    CHECK(!int_mod(INT64_MIN, -1, &r) && r == 0);
    CHECK(!int_div(INT64_MIN, 1, &r) && r == INT64_MIN);
    CHECK(!int_div(INT64_MIN, INT64_MIN, &r) && r == 1);
    CHECK(!int_div(INT64_MIN, INT64_MAX, &r) && r == -2);
    CHECK(!int_mod(INT64_MIN, INT64_MAX, &r) && r == INT64_MAX - 1);
    CHECK(!int_div(INT64_MAX, INT64_MIN, &r) && r == -1);
    CHECK(!int_mod(INT64_MAX, INT64_MIN, &r) && r == -1);
    CHECK(!int_div(INT64_MAX, -1, &r) && r == -INT64_MAX);
    CHECK(int_div(INT64_MIN, 0, &r) && int_mod(INT64_MIN, 0, &r));
}
