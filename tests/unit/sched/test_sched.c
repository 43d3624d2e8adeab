/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * src/sched/sched.c: schedules as text. */
#include "sched/sched.h"
#include "unit/test.h"
#include "unit/trap.h"

#include <string.h>

typedef struct Bed {
    Err err;
    Arena arena;
} Bed;

static void bed_open(Bed *b)
{
    memset(b, 0, sizeof *b);
    arena_init(&b->arena, &os_libc, &b->err);
}

static const char *printed(Bed *b, const Sched *s)
{
    Text t = { .arena = &b->arena };

    sched_print(&t, s);
    return t.s;
}

/* What the text makes of a schedule of zeros and panels of 3; the steps that are not here stay
 * 0. */
static void reads_as(const char *text, int tile, int ahead, int panel, int pack, int jam)
{
    Bed b;
    Sched s = { .policy = { .panel = 3 } },
          want = { .policy = {
                       .tile = tile, .ahead = ahead, .panel = panel, .pack = pack, .jam = jam } };

    bed_open(&b);
    CHECK_EQ(CATCH(&b.err, sched_parse(&b.err, text, &s)), ST_OK);
    CHECK_STR(printed(&b, &s), printed(&b, &want));
    arena_free(&b.arena);
}

TEST(a_schedule_changes_what_it_mentions)
{
    reads_as("", 0, 0, 3, 0, 0);
    reads_as(" \t\n", 0, 0, 3, 0, 0);
    reads_as("tile 8", 8, 0, 3, 0, 0);
    reads_as("pack 1;panel 64", 0, 0, 64, 1, 0);
    reads_as("  jam\t1 ;\n ahead   77 ; ", 0, 77, 3, 0, 1);
    reads_as("tile 4; tile 0007", 7, 0, 3, 0, 0);
    reads_as("; tile 8 # the sums\nahead 77;; # and\n\n jam 1", 8, 77, 3, 0, 1);
}

TEST(what_is_printed_reads_back)
{
    Bed b;

    bed_open(&b);
    for (int lanes = 4; lanes <= 16; lanes *= 2) {
        const VectorUnit unit = { VECTOR_LANES(lanes, lanes / 2), lanes < 16 ? 16 : 32,
                                  VECTOR_CORE };
        Sched d = sched_default(&unit), s;

        memset(&s, 0, sizeof s);
        memset(&s.policy, 0xff, sizeof s.policy);
        d.set[POLICY_NWORD] = d.set[POLICY_NFIELD - 1] = true;
        CHECK_EQ(CATCH(&b.err, sched_parse(&b.err, printed(&b, &d), &s)), ST_OK);
        for (int i = 0; i < POLICY_NFIELD; i++)
            CHECK_EQ(*policy_at(&s.policy, i),
                     i < POLICY_NWORD || d.set[i] ? *policy_at(&d.policy, i) : -1);
        CHECK(s.text == d.text);
        CHECK_EQ(d.policy.tile, 8);
    }
    arena_free(&b.arena);
}

static int parse(Bed *b, const char *text, Sched *s)
{
    return (int)CATCH(&b->err, sched_parse(&b->err, text, s));
}

TEST(every_step_has_a_range)
{
    for (int i = 0; i < POLICY_NFIELD; i++) {
        const PolicyField *info = &policy_field[i];
        Bed b;
        Sched s = { .text = NULL };

        bed_open(&b);
        CHECK(info->note[0] != 0 && info->least <= info->most);
        for (int past = -1; past <= 1; past++) {
            Text t = { .arena = &b.arena };
            int v = past < 0 ? info->least : info->most + past;

            text_f(&t, "%s%s %d", i < POLICY_NWORD ? "" : "set ", info->name, v);
            CHECK_EQ(parse(&b, t.s, &s), past > 0 ? ST_ARG : ST_OK);
            CHECK_EQ(*policy_at(&s.policy, i), past > 0 ? info->most : v);
        }
        CHECK_HAS(b.err.msg, info->name);
        CHECK_HAS(b.err.msg, "takes a number from");
        arena_free(&b.arena);
    }
}

static const struct {
    const char *text, *says;
} bad[] = {
    { "tiles 8", "there is no schedule step tiles; `weft list steps` shows them" },
    { "Tile 8", "there is no schedule step Tile" },
    { "til 8", "there is no schedule step til;" },
    { "8", "there is no schedule step 8" },
    { "tile8", "there is no schedule step tile8" },
    { "tile", "the schedule step tile takes a number from 0 to 64" },
    { "tile;", "takes a number" },
    { "tile x", "takes a number" },
    { "tile -1", "takes a number" },
    { "tile 65", "takes a number" },
    { "tile 99999999999999999999999999", "takes a number" },
    { "tile 18446744073709551617", "takes a number" },
    { "pack 2", "the schedule step pack takes a number from 0 to 1" },
    { "tile 8 panel 4", "a `;` stands between schedule steps, not `panel 4`" },
    { "set", "set : the policy has no such field; it has tile, ahead, panel," },
    { "set scratches 8", "set scratches: the policy has no such field" },
    { "set scratch", "the schedule step set scratch takes a number from 0 to 262144" },
    { "set scratch 262145", "takes a number from 0 to 262144" },
    { "set scratch 8 9", "a `;` stands between schedule steps, not `9`" },
    { "scratch 8", "there is no schedule step scratch" },
    { "tile 8.5", "not `.5`" },
    { "tile 8, panel 4", "not `, panel 4`" },
    { "an_awfully_long_word_that_goes_on_and_on_and_on_and_on 1",
      "there is no schedule step an_awfully_long_word_that_goes_on_and_on" },
};

TEST(what_is_no_schedule_is_refused)
{
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        Bed b;
        Sched s = { .text = NULL };

        bed_open(&b);
        CHECK_EQ(CATCH(&b.err, sched_parse(&b.err, bad[i].text, &s)), ST_ARG);
        CHECK_HAS(b.err.msg, bad[i].says);
        arena_free(&b.arena);
    }
}
