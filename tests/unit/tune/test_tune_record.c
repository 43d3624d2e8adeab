/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Records of tuning: text and back, damage, putting files together; and what structures have in
 * common. */
#include "unit/test.h"

#include "tune/tune.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static Err record_err;
static Arena room;

static void begin(void)
{
    arena_free(&room);
    arena_init(&room, &os_libc, &record_err);
}

static TuneRecord record(int i)
{
    TuneRecord r = { .key = { 100 + (uint64_t)i, 200, 300, 400, 2 },
                     .seconds = 1.25e-3,
                     .default_s = 2e-3,
                     .when = 1767225600 + i,
                     .schedule = "panel 64; pack 1; tile 4" };

    snprintf(r.name, sizeof r.name, "p%d", i);
    return r;
}

static void add_text(TuneRecords *all, const char *text)
{
    tune_records_add(all, (Bytes){ (const uint8_t *)text, strlen(text) });
}

static const char *text_of(const TuneRecords *all)
{
    Text t = { .arena = &room };

    text_put(&t, "", 0);
    for (int i = 0; i < all->n; i++)
        tune_record_print(&t, &all->r[i]);
    return t.s;
}

static const char *line_of(const TuneRecord *r)
{
    Text t = { .arena = &room };

    tune_record_print(&t, r);
    return t.s;
}

TEST(a_record_reads_back_as_it_was_written)
{
    TuneRecords all = { .arena = &room };
    TuneRecord r = record(1), empty = record(2);

    begin();
    empty.schedule = "";
    empty.name[0] = 0;
    add_text(&all, line_of(&r));
    add_text(&all, line_of(&empty));
    CHECK_EQ(all.n, 2);
    CHECK_EQ(all.damaged, 0);
    CHECK_STR(all.r[0].schedule, r.schedule);
    CHECK_STR(all.r[0].name, "p1");
    CHECK(all.r[0].key.program == r.key.program && all.r[0].key.exact == r.key.exact);
    CHECK(all.r[0].key.kind == r.key.kind && all.r[0].key.machine == r.key.machine);
    CHECK_EQ(all.r[0].key.threads, r.key.threads);
    CHECK_NEAR(all.r[0].seconds, r.seconds, 1e-15);
    CHECK_NEAR(all.r[0].default_s, r.default_s, 1e-15);
    CHECK_EQ(all.r[0].when, r.when);
    CHECK_STR(all.r[1].schedule, "");
    CHECK_STR(line_of(&all.r[0]), line_of(&r));
}

/* One bit anywhere, a byte more or less, and it is no record. */
TEST(a_damaged_record_is_passed_over)
{
    TuneRecord r = record(1), after = record(2);
    const char *line, *next;
    size_t n;

    begin();
    line = line_of(&r);
    next = line_of(&after);
    n = strlen(line);
    for (size_t i = 0; i + 1 < n; i++)
        for (int bit = 0; bit < 8; bit++) {
            TuneRecords all = { .arena = &room };
            Text t = { .arena = &room };

            text_f(&t, "%s%s", line, next);
            t.s[i] = (char)(t.s[i] ^ 1 << bit);
            tune_records_add(&all, (Bytes){ (const uint8_t *)t.s, t.n });
            CHECK_EQ(all.n, 1);
            CHECK(all.damaged >= 1);
            CHECK_STR(all.r[0].name, "p2");
        }
    for (size_t cut = 1; cut < n; cut++) { /* a write that ended early, and the next one after it */
        TuneRecords all = { .arena = &room };
        Text t = { .arena = &room };

        text_put(&t, line, cut);
        text_str(&t, next);
        tune_records_add(&all, (Bytes){ (const uint8_t *)t.s, t.n });
        CHECK_EQ(all.n, 1);
        CHECK_STR(all.r[0].name, "p2");
    }
    for (size_t cut = 1; cut < n; cut++) { /* the end is missing */
        TuneRecords all = { .arena = &room };

        tune_records_add(&all, (Bytes){ (const uint8_t *)line, cut });
        CHECK_EQ(all.n, 0);
        CHECK_EQ(all.damaged, 1);
    }
}

TEST(any_bytes_are_read_without_harm)
{
    uint64_t seed = 5;

    begin();
    for (int64_t i = 0; i < test_scale(2000); i++) {
        TuneRecords all = { .arena = &room };
        TuneRecord r = record(1);
        Text t = { .arena = &room };

        text_f(&t, "%s%s", line_of(&r), line_of(&r));
        for (int k = 0; k < 20; k++)
            t.s[test_random(&seed) % t.n] = (char)test_random(&seed);
        tune_records_add(&all, (Bytes){ (const uint8_t *)t.s, test_random(&seed) % t.n });
        CHECK(all.n <= 1);
        begin();
    }
}

/* Names of programs and messages of others cannot break a line. */
TEST(what_would_break_a_line_is_written_otherwise)
{
    TuneRecords all = { .arena = &room };
    TuneRecord r = record(1);

    begin();
    snprintf(r.name, sizeof r.name, "a b\n\"c\"");
    r.schedule = "tile 1\" sum=0\n";
    add_text(&all, line_of(&r));
    CHECK_EQ(all.n, 1);
    CHECK_STR(all.r[0].name, "a_b__c_");
    CHECK_STR(all.r[0].schedule, "tile 1_ sum=0_");
}

TEST(the_last_record_counts_and_merging_is_idempotent)
{
    TuneRecords one = { .arena = &room }, two = { .arena = &room }, both = { .arena = &room },
                turned = { .arena = &room }, again = { .arena = &room };
    TuneRecord old = record(1), new = record(1), quick = record(1), other = record(2);

    begin();
    old.when -= 10;
    old.seconds = 1e-6; /* faster, but long ago */
    quick.seconds = 1e-3;
    quick.schedule = "tile 2";
    tune_records_put(&one, &new);
    tune_records_put(&one, &other);
    tune_records_put(&two, &old);
    tune_records_put(&two, &quick);
    CHECK_EQ(two.n, 1);
    add_text(&both, text_of(&one));
    add_text(&both, text_of(&two));
    add_text(&turned, text_of(&two));
    add_text(&turned, text_of(&one));
    tune_records_sort(&both);
    tune_records_sort(&turned);
    CHECK_EQ(both.n, 2);
    CHECK_STR(both.r[0].schedule, "tile 2");
    CHECK_STR(text_of(&both), text_of(&turned));
    add_text(&again, text_of(&both));
    add_text(&again, text_of(&both));
    tune_records_sort(&again);
    CHECK_STR(text_of(&both), text_of(&again));
}

TEST(the_very_structure_comes_before_its_kind)
{
    TuneRecords all = { .arena = &room };
    TuneRecord r = record(1), kin = record(1), later = record(1);
    TuneKey key;

    begin();
    kin.key.exact = 201;
    kin.schedule = "tile 1";
    later.key.exact = 202;
    later.when += 5;
    later.schedule = "tile 2";
    tune_records_put(&all, &kin);
    tune_records_put(&all, &later);
    key = r.key;
    CHECK_STR(tune_records_find(&all, &key)->schedule, "tile 2");
    tune_records_put(&all, &r);
    CHECK_STR(tune_records_find(&all, &key)->schedule, r.schedule);
    key.exact = 7;
    key.kind = 7;
    CHECK(tune_records_find(&all, &key) == NULL);
    CHECK(tune_records_know(&all, &key));
    key = r.key;
    key.threads = 3;
    CHECK(tune_records_find(&all, &key) == NULL);
    CHECK(!tune_records_know(&all, &key));
    key = r.key;
    key.machine++;
    CHECK(tune_records_find(&all, &key) == NULL);
    key = r.key;
    key.program++;
    CHECK(tune_records_find(&all, &key) == NULL);
}

enum { ROWS = 3000, MOST = 40 };

typedef struct Graph {
    Prog *p;
    Env *env;
} Graph;

/* Rows of about `mean` entries, in columns that `seed` tells. */
static Graph graph(const char *text, int mean, uint64_t seed, Type type)
{
    Graph g = { .p = ir_parse(&room, "test", text, strlen(text)) };
    int64_t *start = arena_array(&room, ROWS + 1, 8), *col;
    int axis = g.p->naxis - 1;

    while (g.p->axis[axis]->extent != X_SEG)
        axis--;
    g.env = ir_env(&room, g.p);
    for (int i = 0; i < ROWS; i++)
        start[i + 1] = start[i] + (int64_t)(test_random(&seed) % (uint64_t)(2 * mean));
    col = arena_array(&room, start[ROWS], 8);
    for (int64_t e = 0; e < start[ROWS]; e++)
        col[e] = (int64_t)(test_random(&seed) % ROWS);
    for (int i = 0; i < g.p->nsize; i++)
        g.env->size[i] = i < 2 ? ROWS : 64;
    g.env->start[axis] = (Array){ start, ROWS + 1, type };
    g.env->coord[axis][0] = (Array){ col, start[ROWS], type };
    return g;
}

static const char spmm_text[] = "program spmm(m, n, f)\n"
                                "axis I = dense(m), J = compressed(I, n), K = dense(f)\n"
                                "f32 A[I, J], B[n, K], C[I, K]\n"
                                "c: C[i, k] += A[i, j] * B[j, k]\n";

TEST(graphs_of_one_origin_are_of_one_kind)
{
    Graph a, b, wide, flat;

    begin();
    a = graph(spmm_text, 13, 1, T_i64);
    b = graph(spmm_text, 13, 2, T_i64);
    wide = graph(spmm_text, 13, 1, T_i64);
    flat = graph(spmm_text, MOST, 1, T_i64);
    CHECK(tune_key_exact(a.p, a.env) != tune_key_exact(b.p, b.env));
    CHECK(tune_key_kind(a.p, a.env) == tune_key_kind(b.p, b.env));
    CHECK(tune_key_exact(a.p, a.env) == tune_key_exact(wide.p, wide.env));
    wide.env->size[2] = 65;
    CHECK(tune_key_exact(a.p, a.env) != tune_key_exact(wide.p, wide.env));
    CHECK(tune_key_kind(a.p, a.env) != tune_key_kind(wide.p, wide.env));
    CHECK(tune_key_kind(a.p, a.env) != tune_key_kind(flat.p, flat.env));
}

TEST(one_entry_makes_another_structure_and_no_other_kind)
{
    Graph a;
    uint64_t exact, kind;

    begin();
    a = graph(spmm_text, 12, 1, T_i64);
    exact = tune_key_exact(a.p, a.env);
    kind = tune_key_kind(a.p, a.env);
    ((int64_t *)a.env->coord[1][0].data)[77] ^= 1;
    CHECK(tune_key_exact(a.p, a.env) != exact);
    CHECK(tune_key_kind(a.p, a.env) == kind);
}

/* Rows of `n` entries, at columns that `at` tells. */
static bool suits(int n, int64_t (*at)(int row, int k), const char *format)
{
    Graph g = graph(spmm_text, 1, 1, T_i64);
    int64_t *start = arena_array(&room, ROWS + 1, 8), *col = arena_array(&room, ROWS * n, 8);
    const char *const *list;
    bool found = false;

    for (int i = 0; i < ROWS; i++) {
        start[i + 1] = start[i] + n;
        for (int k = 0; k < n; k++)
            col[start[i] + k] = at(i, k);
    }
    g.env->start[1] = (Array){ start, ROWS + 1, T_i64 };
    g.env->coord[1][0] = (Array){ col, start[ROWS], T_i64 };
    for (list = tune_formats(&room, g.env, g.p->axis[1], 8); *list != NULL; list++)
        found = found || strcmp(*list, format) == 0;
    return found;
}

static int64_t in_band(int row, int k)
{
    int64_t j = row + k - 2;

    return j < 0 ? 0 : j;
}

static int64_t in_blocks(int row, int k)
{
    return row / 8 * 8 + k;
}

static int64_t anywhere(int row, int k)
{
    uint64_t seed = (uint64_t)row * 100 + (uint64_t)k;

    return (int64_t)(test_random(&seed) % ROWS);
}

/* Columns that the rows of a strip share, and two of its own. */
static int64_t in_strips(int row, int k)
{
    return k < 6 ? (row / 8 * 31 + 17 * k) % ROWS : anywhere(row, k);
}

/* A full diagonal, and much more elsewhere: no band, as it would hold too little. */
static int64_t with_diagonal(int row, int k)
{
    return k == 0 ? row : anywhere(row, k);
}

static int64_t half_in_band(int row, int k)
{
    return k < 5 ? in_band(row, k) : anywhere(row, k);
}

TEST(formats_are_offered_to_structures_that_suit_them)
{
    begin();
    CHECK(!suits(12, with_diagonal, "band_rest(0)"));
    CHECK(suits(10, half_in_band, "band_rest(2)"));
    CHECK(suits(8, in_strips, "blocks_rest(8, 1, 3)"));
    CHECK(suits(6, in_strips, "bsr(8, 1)"));
    CHECK(!suits(6, in_strips, "blocks_rest(8, 1, 3)")); /* there is no rest */
    CHECK(!suits(8, anywhere, "blocks_rest(8, 1, 3)"));
    CHECK(suits(5, in_band, "band(2, 2)"));
    CHECK(suits(5, in_band, "ell(0)"));
    CHECK(suits(8, in_blocks, "bsr(8, 8)"));
    CHECK(suits(8, in_blocks, "bsr(4, 4)"));
    CHECK(suits(8, in_blocks, "bsr(16, 16)")); /* half full */
    CHECK(!suits(8, anywhere, "bsr(4, 4)"));
    CHECK(!suits(8, anywhere, "band(2, 2)"));
    CHECK(!suits(8, anywhere, "sr_bcrs(8, 8)"));
    CHECK(!suits(5, in_band, "hyb(1, 3)"));
}

/* Formats for rows of these lengths, with entries anywhere. */
static const char *offered(int (*length)(int row))
{
    Graph g = graph(spmm_text, 1, 1, T_i64);
    int64_t *start = arena_array(&room, ROWS + 1, 8), *col;
    const char *const *list;
    Text t = { .arena = &room };

    for (int i = 0; i < ROWS; i++)
        start[i + 1] = start[i] + length(i);
    col = arena_array(&room, start[ROWS] + 1, 8);
    for (int64_t e = 0; e < start[ROWS]; e++)
        col[e] = anywhere(0, (int)e);
    g.env->start[1] = (Array){ start, ROWS + 1, T_i64 };
    g.env->coord[1][0] = (Array){ col, start[ROWS], T_i64 };
    text_put(&t, "", 0);
    for (list = tune_formats(&room, g.env, g.p->axis[1], 8); *list != NULL; list++)
        text_f(&t, "%s ", *list);
    return t.s;
}

static int two_lengths(int row)
{
    return row % 128 < 64 ? 3 : 12; /* alike in a window */
}

static int one_long(int row)
{
    return row == 7 ? 500 : 3;
}

static int few_have_any(int row)
{
    return row % 3 == 0 ? 4 : 0;
}

static int nothing(int row)
{
    (void)row;
    return 0;
}

TEST(formats_of_rows_are_offered_by_their_lengths)
{
    const Graph *g;
    Graph none;

    begin();
    CHECK_STR(offered(two_lengths), "sell(8, 128) ");
    CHECK_HAS(offered(one_long), "hyb(1, ");
    CHECK_HAS(offered(one_long), "hyb(4, ");
    CHECK_HAS(offered(few_have_any), "dcsr()");
    CHECK_STR(offered(nothing), "");
    none = graph(spmm_text, 3, 1, T_i64);
    g = &none;
    CHECK(tune_formats(&room, g->env, g->p->axis[0], 8)[0] == NULL); /* rows, no entries */
    g->env->coord[1][0].data = NULL;
    CHECK(tune_formats(&room, g->env, g->p->axis[1], 8)[0] == NULL);
    g->env->start[1].data = NULL;
    CHECK(tune_formats(&room, g->env, g->p->axis[1], 8)[0] == NULL);
    none = graph(spmm_text, 3, 1, T_i64);
    none.env->start[1].n = 1; /* no rows */
    CHECK(tune_formats(&room, none.env, none.p->axis[1], 8)[0] == NULL);
}

/* Entries that a run finds are no part of what is known before it. */
TEST(structure_that_a_run_builds_is_in_no_key)
{
    static const char text[] = "program p(m, n)\naxis I = m, J = compressed(I, n) sorted unique\n"
                               "axis U(I) = built : load < n\nf64 A[I, J], C[I, U]\n"
                               "u: U(i) |= j\nc: C[i, u] = A[i, u]\n";
    Graph g;
    uint64_t exact, kind;

    begin();
    g = graph(text, 3, 1, T_i64);
    exact = tune_key_exact(g.p, g.env);
    kind = tune_key_kind(g.p, g.env);
    for (int i = 0; i < g.p->naxis; i++)
        if (g.p->axis[i]->extent == X_BUILT)
            g.env->start[i] = g.env->start[1];
    CHECK(tune_key_exact(g.p, g.env) == exact);
    CHECK(tune_key_kind(g.p, g.env) == kind);
}

TEST(a_line_with_a_good_sum_and_bad_words_is_damaged)
{
    TuneRecords all = { .arena = &room };
    TuneRecord r = record(1);
    char *longer;

    begin();
    longer = arena_alloc(&room, TUNE_TEXT + 2);
    memset(longer, 'x', TUNE_TEXT + 1);
    r.schedule = longer;
    add_text(&all, line_of(&r));
    CHECK_EQ(all.n, 0);
    CHECK_EQ(all.damaged, 1);
}

TEST(a_program_is_known_by_its_meaning_and_not_by_its_spaces)
{
    static const char spaced[] = "# a remark\nprogram spmm(m, n, f)\n"
                                 "axis I = dense(m), J = compressed(I, n), K = dense(f)\n"
                                 "f32 A[I,J], B[n,K], C[I,K]\nc: C[i,k] += A[i,j]*B[j,k]\n",
                      other[] = "program spmm(m, n, f)\n"
                                "axis I = dense(m), J = compressed(I, n), K = dense(f)\n"
                                "f64 A[I, J], B[n, K], C[I, K]\n"
                                "c: C[i, k] += A[i, j] * B[j, k]\n";
    uint64_t h;

    begin();
    h = tune_key_program(&room, ir_parse(&room, "a", spmm_text, strlen(spmm_text)));
    CHECK(h == tune_key_program(&room, ir_parse(&room, "b", spaced, strlen(spaced))));
    CHECK(h != tune_key_program(&room, ir_parse(&room, "c", other, strlen(other))));
    arena_free(&room);
}
