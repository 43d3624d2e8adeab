/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The space of schedules and the search in it, on a machine that is made up: a clock that only the
 * test moves, and a table that says how long each schedule takes. */
#include "unit/test.h"

#include "tune/tune.h"
#include "unit/trap.h"

#include <math.h>
#include <string.h>

typedef struct World {
    const char *blind[4];  /* steps that change no loop here */
    const char *refused;   /* a step that cannot be applied; or NULL */
    const char *wrong;     /* a step whose kernels give wrong results; or NULL */
    const char *slow;      /* a step that takes five times as long; or NULL */
    const char *fast[3];   /* each of these saves a quarter, */
    bool honest;           /* and the model knows it */
    double clock, run, build; /* seconds: now; of a run by default; of a compile */
    int stop_after, told, builds, together, timed, dropped, slow_turns, slow_built;
    const char *lucky; /* a piece that seems fast as long as the search tells of each time */
    int untold;        /* times since it told of one */
    const char *last_what;
    char wrong_said[200];
} World;

static Err err;
static Arena arena;
static World world;

static bool has(const char *text, const char *part)
{
    return part != NULL && strstr(text, part) != NULL;
}

static double seconds_of(const World *w, const char *text)
{
    double s = has(text, w->slow) ? 5 * w->run : w->run;

    for (int i = 0; i < 3; i++)
        s *= has(text, w->fast[i]) ? 0.75 : 1;
    return s;
}

/* Every step but the blind ones makes loops of its own. */
static bool tree(void *user, const char *text, uint64_t *hash)
{
    World *w = user;
    uint64_t h = 0;

    for (const char *s = text; *s != 0; s += strcspn(s, ";"), s += *s == ';' ? 2 : 0) {
        bool blind = false;

        for (int i = 0; i < 4; i++)
            blind = blind || (w->blind[i] != NULL && strncmp(s, w->blind[i], strlen(w->blind[i])) == 0);
        h = blind ? h : hash_bytes(h, s, strcspn(s, ";"));
    }
    *hash = h;
    return !has(text, w->refused);
}

static double predict(void *user, const char *text)
{
    World *w = user;

    return w->honest ? seconds_of(w, text) : NAN;
}

/* Two compilers. */
static int build(void *user, const char *const *text, int n, double until)
{
    World *w = user;
    int done = 0;

    (void)text;
    w->together = n > w->together ? n : w->together;
    for (; done < n && w->clock <= until; done += 2)
        w->clock += w->build;
    done = done < n ? done : n;
    w->builds += done;
    return done;
}

static const char *check(void *user, const TunePoint *p)
{
    World *w = user;

    w->clock += seconds_of(w, p->text);
    w->slow_built += has(p->text, w->slow);
    return has(p->text, w->wrong) ? "element 0 of C is 1 and not 2" : NULL;
}

static double time_it(void *user, const TunePoint *p)
{
    World *w = user;

    w->timed++;
    w->slow_turns += has(p->text, w->slow);
    w->clock += seconds_of(w, p->text);
    if (has(p->text, w->lucky) && w->untold++ < 2)
        return 0.1 * seconds_of(w, p->text);
    return seconds_of(w, p->text) * (1 + 0.01 * (w->timed % 3)); /* a little noise */
}

static void drop(void *user, const TunePoint *p)
{
    (void)p;
    ((World *)user)->dropped++;
}

static double now(void *user)
{
    return ((World *)user)->clock;
}

static bool tell(void *user, const TuneTold *t)
{
    World *w = user;

    w->told++;
    w->untold = 0;
    w->last_what = t->what;
    CHECK(t->elapsed >= 0 && t->schedule != NULL && t->why != NULL);
    CHECK_EQ(t->best == NULL, t->best_s <= 0);
    if (strcmp(t->what, "wrong") == 0)
        CHECK(strlen(strncpy(w->wrong_said, t->why, sizeof w->wrong_said - 1)) > 0);
    return w->stop_after > 0 && w->told >= w->stop_after;
}

static const TuneAsk ask = { &world, tree, predict };
static const TuneDo act = { &world, build, check, time_it, drop, now, tell };
static const VectorUnit avx2 = { VECTOR_LANES(8, 4), 16, VECTOR_CORE },
                        avx512 = { VECTOR_LANES(16, 8), 32, VECTOR_CORE };
static const TuneFacts facts = { .unit = &avx2, .widest = 128 };

static void begin(World w)
{
    arena_free(&arena);
    arena_init(&arena, &os_libc, &err);
    world = w;
    world.run = world.run > 0 ? world.run : 1e-3;
}

static void make_space(TuneSpace *s)
{
    CHECK_EQ(CATCH(&err, tune_space(&arena, &facts, &ask, s)), ST_OK);
}

static TuneFound search(TuneSpace *s, TuneLimits limits)
{
    TuneFound f = { .best = NULL };

    limits.seconds = limits.seconds > 0 ? limits.seconds : 30;
    limits.top = limits.top > 0 ? limits.top : 16;
    limits.together = limits.together > 0 ? limits.together : 2;
    CHECK_EQ(CATCH(&err, tune_search(s, &ask, &act, &limits, &f)), ST_OK);
    return f;
}

static TuneFound find(World w, TuneLimits limits)
{
    TuneSpace s;

    begin(w);
    make_space(&s);
    return search(&s, limits);
}

static const TuneDim *dim_of(const TuneSpace *s, const char *name)
{
    for (int i = 0; i < s->ndim; i++)
        if (strcmp(s->dim[i].name, name) == 0)
            return &s->dim[i];
    return NULL;
}

TEST(a_space_has_what_changes_loops_and_no_more)
{
    TuneSpace s;

    begin((World){ .blind = { "jam", "stream", "pack" }, .refused = "tile 4" });
    make_space(&s);
    CHECK(dim_of(&s, "jam") == NULL && dim_of(&s, "stream") == NULL);
    CHECK_EQ(dim_of(&s, "panel")->n, 4); /* 16, 32 and 64, of which pack changes nothing */
    CHECK_EQ(dim_of(&s, "tile")->n, 4);  /* 1, 2 and 0: 4 cannot be, 8 is the default */
    for (int i = 0; i < s.npoint; i++)
        CHECK(!has(s.point[i].text, "tile 4"));
    CHECK_EQ(s.npoint, 4 * 4 * dim_of(&s, "ahead")->n);
    CHECK_STR(s.point[0].text, "");
    CHECK_EQ(s.point[0].changes, 0);
}

TEST(a_space_where_nothing_matters_is_the_default)
{
    TuneSpace s;
    TuneFound f;

    begin((World){ .blind = { "jam", "stream", "panel", "pack" } });
    world.blind[3] = "";
    make_space(&s);
    CHECK_EQ(s.npoint, 1);
    f = search(&s, (TuneLimits){ 0 });
    CHECK_STR(f.best->text, "");
    CHECK_EQ(f.timed, 1);
    CHECK(f.seconds > 0);
}

TEST(a_program_that_cannot_be_lowered_has_one_point)
{
    TuneSpace s;

    begin((World){ .refused = "" });
    make_space(&s);
    CHECK_EQ(s.npoint, 1);
    CHECK_EQ(s.nfamily, 1);
}

TEST(tiles_are_no_wider_than_rows)
{
    const TuneFacts narrow = { .unit = &avx512, .widest = 32 },
                    wide = { .unit = &avx512, .widest = 200, .element = 8 };
    TuneSpace s;

    begin((World){ 0 });
    CHECK_EQ(CATCH(&err, tune_space(&arena, &narrow, &ask, &s)), ST_OK);
    CHECK_EQ(dim_of(&s, "tile")->n, 3); /* the default, 1 and 0: two registers hold a row */
    CHECK(dim_of(&s, "panel") == NULL);
    CHECK_EQ(CATCH(&err, tune_space(&arena, &wide, &ask, &s)), ST_OK);
    CHECK_EQ(dim_of(&s, "tile")->n, 6); /* 1, 2, 4, 16 and 0, of 25 registers */
}

/* The model is wrong about all formats, and about one that is the best by far. */
TEST(each_family_gets_its_chance)
{
    const char *format[] = { "bsr(4,4)", "ell(0)", "sell(8, 128)", "hyb(1, 3)", NULL };
    const TuneAxis axis = { "E", format };
    const TuneFacts f = { .unit = &avx2, .widest = 128, .axis = &axis, .naxis = 1 };
    TuneSpace s;
    TuneFound found;
    bool met[5] = { false };

    begin((World){ .fast = { "format E hyb", "tile 2" } });
    CHECK_EQ(CATCH(&err, tune_space(&arena, &f, &ask, &s)), ST_OK);
    CHECK_EQ(s.nfamily, 5);
    for (int i = 0; i < s.npoint; i++) {
        CHECK(s.point[i].family == 0 || has(s.point[i].text, "format"));
        met[s.point[i].family] = true;
    }
    CHECK(met[0] && met[1] && met[2] && met[3] && met[4]);
    found = search(&s, (TuneLimits){ .seconds = 1e6, .top = 8 });
    CHECK_STR(found.best->text, "format E hyb(1, 3); tile 2");
}

TEST(points_stand_in_the_order_of_their_predictions)
{
    TuneSpace s;

    begin((World){ .fast = { "tile 2", "ahead 0", "panel 32; pack" }, .honest = true });
    make_space(&s);
    for (int i = 0; i + 1 < s.npoint; i++) {
        const TunePoint *p = &s.point[s.order[i]], *q = &s.point[s.order[i + 1]];

        CHECK(p->predicted <= q->predicted);
        CHECK(p->predicted < q->predicted || p->changes <= q->changes);
    }
    CHECK_STR(s.point[s.order[0]].text, "panel 32; pack 1; tile 2; ahead 0");
}

TEST(only_what_changes_sums_may_round)
{
    TuneSpace s;

    begin((World){ .honest = true });
    make_space(&s);
    for (int i = 0; i < s.npoint; i++)
        CHECK_EQ(s.point[i].exact, !has(s.point[i].text, "tile") && !has(s.point[i].text, "jam"));
}

TEST(formats_are_a_dimension_of_each_axis)
{
    const char *format[] = { "bsr(4,4)", "ell", NULL };
    const TuneAxis axis[] = { { "E", format }, { "F", format } };
    TuneFacts f = { .unit = &avx2, .widest = 128, .axis = axis, .naxis = 2 };
    TuneSpace s;
    bool both = false;

    begin((World){ .refused = "format F ell" });
    CHECK_EQ(CATCH(&err, tune_space(&arena, &f, &ask, &s)), ST_OK);
    CHECK_STR(s.dim[0].name, "format");
    CHECK_EQ(s.dim[0].n, 3);
    CHECK_EQ(s.dim[1].n, 2);
    for (int i = 0; i < s.npoint; i++)
        both = both || strcmp(s.point[i].text, "format E ell; format F bsr(4,4)") == 0;
    CHECK(both);
    CHECK(s.npoint <= 4096); /* of 5,000 and more */
}

TEST(the_fastest_is_found_with_an_honest_model)
{
    TuneFound f = find((World){ .fast = { "tile 2", "ahead 0", "panel 32; pack" }, .honest = true },
                       (TuneLimits){ 0 });

    CHECK_STR(f.best->text, "panel 32; pack 1; tile 2; ahead 0");
    CHECK_NEAR(f.default_s / f.seconds, 64.0 / 27, 0.1);
    CHECK_EQ(world.together, 2);
    CHECK_EQ(f.wrong, 0);
    CHECK(!f.stopped);
}

/* Each piece alone is tried, then what is beside the best. */
TEST(the_fastest_is_found_without_a_model)
{
    TuneFound f = find((World){ .fast = { "tile 2", "ahead 0", "panel 32; pack" } },
                       (TuneLimits){ .seconds = 1e6 });

    CHECK_STR(f.best->text, "panel 32; pack 1; tile 2; ahead 0");
    CHECK_EQ(f.compiled, world.builds);
    CHECK(f.timed < 100);
}

TEST(what_gains_nothing_is_not_chosen)
{
    TuneFound f = find((World){ .honest = true }, (TuneLimits){ 0 });

    CHECK_STR(f.best->text, "");
    CHECK(f.timed > 8);
}

TEST(what_noise_made_fast_loses_the_match_with_the_default)
{
    TuneFound f = find((World){ .lucky = "ahead 0", .honest = true }, (TuneLimits){ 0 });

    CHECK_STR(f.best->text, "");
    CHECK(f.refuted > 0);
    CHECK_NEAR(f.default_s / f.seconds, 1, 0);
    f = find((World){ .lucky = "ahead 0", .fast = { "tile 2" }, .honest = true },
             (TuneLimits){ 0 });
    CHECK(has(f.best->text, "tile 2")); /* the next best wins */
    CHECK_NEAR(f.default_s / f.seconds, 1 / 0.75, 0.05);
}

TEST(a_match_has_twenty_turns_or_as_many_as_there_is_time_for)
{
    TuneFound f = find((World){ .fast = { "tile 2" }, .honest = true }, (TuneLimits){ 0 });

    CHECK_EQ(f.turns, 20);
    CHECK(f.spread > 0 && f.spread < 0.05);
    f = find((World){ .fast = { "tile 2" }, .run = 0.5, .honest = true },
             (TuneLimits){ .seconds = 20 });
    CHECK_EQ(f.turns, 5);
    CHECK(world.clock < 24);
}

TEST(a_wrong_candidate_is_dropped_and_said)
{
    TuneFound f = find((World){ .fast = { "tile 2", "ahead 0" }, .honest = true, .wrong = "ahead 0" },
                       (TuneLimits){ 0 });

    CHECK(has(f.best->text, "tile 2") && !has(f.best->text, "ahead 0"));
    CHECK(f.wrong > 0);
    CHECK_HAS(world.wrong_said, "element 0 of C");
}

TEST(a_budget_is_kept)
{
    World w = { .fast = { "tile 2" }, .run = 0.5, .build = 1, .honest = true };
    TuneFound f = find(w, (TuneLimits){ .seconds = 10 });

    CHECK(world.clock < 12);
    CHECK(f.timed >= 1 && f.compiled < 16);
    CHECK(has(f.best->text, "tile 2"));
    w.run = 100; /* no time for anything but the default */
    f = find(w, (TuneLimits){ .seconds = 10 });
    CHECK_STR(f.best->text, "");
    CHECK_EQ(f.timed, 1);
    CHECK_EQ(world.timed, 1);
}

/* Time is up while the first are compiled, or there is none at all. */
TEST(a_short_time_is_for_the_first_candidates)
{
    World w = { .fast = { "tile 2" }, .build = 1, .honest = true };
    TuneFound f = find(w, (TuneLimits){ .seconds = 4, .together = 8 });

    CHECK(f.compiled >= 4 && f.compiled <= 10);
    CHECK(world.clock < 6);
    CHECK(has(f.best->text, "tile 2"));
    w.clock = 10;
    f = find(w, (TuneLimits){ .seconds = 4 });
    CHECK_EQ(f.timed, 1);
    CHECK_STR(f.best->text, "");
}

/* What is three times slower than the best has one turn. */
TEST(the_hopeless_go_at_once)
{
    TuneFound f = find((World){ .slow = "tile 0", .honest = false }, (TuneLimits){ .seconds = 1e6 });

    CHECK_STR(f.best->text, "");
    CHECK_EQ(world.slow_turns, f.timed > 0 ? world.slow_built : -1);
}

TEST(a_search_can_be_stopped_anywhere)
{
    World w = { .fast = { "tile 2", "ahead 0", "panel 32" }, .honest = true };
    int all, kept = 0;

    find(w, (TuneLimits){ 0 });
    all = world.told;
    CHECK(all > 50);
    for (int k = 1; k < all; k++) {
        TuneFound f;

        w.stop_after = k;
        f = find(w, (TuneLimits){ 0 });
        CHECK(f.stopped);
        CHECK(world.told <= k + 3); /* the default is timed in any case */
        CHECK(f.best != NULL && f.default_s > 0 && f.seconds <= f.default_s);
        kept += f.best->changes > 0;
    }
    CHECK(kept > all / 2);
}

TEST(the_pick_is_tried_though_no_model_likes_it)
{
    TuneFound f = find((World){ .fast = { "tile 3" } },
                       (TuneLimits){ .pick = "tile 3; ahead 4096", .top = 4 });

    CHECK_STR(f.best->text, "tile 3; ahead 4096");
    CHECK_NEAR(f.pick_s, f.seconds, 0);
    /* the same loops as a point of the space: once */
    f = find((World){ .fast = { "tile 2" }, .honest = true }, (TuneLimits){ .pick = "tile 2" });
    CHECK(has(f.best->text, "tile 2"));
    CHECK_NEAR(f.pick_s, f.seconds, 0.03 * f.seconds);
}

TEST(the_slower_half_gets_fewer_turns)
{
    find((World){ .fast = { "tile 2" }, .honest = true }, (TuneLimits){ .seconds = 1e6 });
    CHECK(world.dropped > 10);
    CHECK(world.timed < 21 * world.builds);
}

TEST(results_are_compared_as_far_as_they_must_agree)
{
    float a[] = { 1000, 1, 0, NAN, INFINITY }, b[] = { 1000, 1, 0, NAN, INFINITY };
    int64_t i[] = { 1, 2 }, k[] = { 1, 3 };
    TuneArray want = { "C", T_f32, 5, a }, got = { "C", T_f32, 5, b };
    const TuneArray whole = { "W", T_i64, 2, i }, other = { "W", T_i64, 2, k };

    begin((World){ 0 });
    CHECK(tune_compare(&arena, &want, &got, true, NULL) == NULL);
    b[1] = 1.0001f; /* of 1000, that is rounding */
    CHECK(tune_compare(&arena, &want, &got, false, NULL) == NULL);
    CHECK_HAS(tune_compare(&arena, &want, &got, true, NULL), "element 1 of C is 1.0001");
    b[1] = 1.2f;
    CHECK_HAS(tune_compare(&arena, &want, &got, false, NULL), "element 1 of C");
    b[1] = 1;
    b[3] = 5; /* no NaN passes for a number, nor the other way round */
    CHECK_HAS(tune_compare(&arena, &want, &got, false, NULL), "element 3 of C");
    b[3] = NAN;
    b[2] = -0.0f;
    CHECK_HAS(tune_compare(&arena, &want, &got, true, NULL), "element 2 of C");
    CHECK(tune_compare(&arena, &want, &got, false, NULL) == NULL);
    b[4] = -INFINITY;
    CHECK_HAS(tune_compare(&arena, &want, &got, false, NULL), "element 4 of C");
    CHECK_HAS(tune_compare(&arena, &whole, &other, false, NULL), "element 1 of W is another");
    got.n = 4;
    CHECK_HAS(tune_compare(&arena, &want, &got, false, NULL), "C has 4 elements and not 5");
    got = (TuneArray){ "C", T_f64, 5, a };
    CHECK_HAS(tune_compare(&arena, &want, &got, false, NULL), "elements");
    want.n = got.n = 0;
    got.type = T_f32;
    CHECK(tune_compare(&arena, &want, &got, true, NULL) == NULL);
}

/* One rounding more or less, of each type, and twice of what may be. */
TEST(every_type_rounds_in_its_own_way)
{
    double a[] = { 1, -8 }, b[] = { 1 + 1e-12, -8 };
    uint16_t h[] = { num_to_f16(8), num_to_f16(1) }, i[] = { h[0], (uint16_t)(h[1] + 2) };
    uint16_t p[] = { num_to_bf16(8), num_to_bf16(1) }, q[] = { p[0], (uint16_t)(p[1] + 2) };
    const TuneArray want[] = { { "D", T_f64, 2, a }, { "H", T_f16, 2, h }, { "B", T_bf16, 2, p } };
    TuneArray got[] = { { "D", T_f64, 2, b }, { "H", T_f16, 2, i }, { "B", T_bf16, 2, q } };

    begin((World){ 0 });
    for (int k = 0; k < 3; k++) {
        CHECK(tune_compare(&arena, &want[k], &got[k], false, NULL) == NULL);
        CHECK(tune_compare(&arena, &want[k], &got[k], true, NULL) != NULL);
    }
    b[0] = 1.001;
    i[1] = h[0];
    q[1] = p[0];
    for (int k = 0; k < 3; k++)
        CHECK(tune_compare(&arena, &want[k], &got[k], false, NULL) != NULL);
    arena_free(&arena);
}
