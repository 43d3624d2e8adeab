/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The command weft_random.  A failing case is made small and shown with its seed, which gives the
 * same case again. */
#include "random/random.h"
#include "unit/test.h"
#include "unit/trap.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage[] =
    "weft_random parse N SEED    print and parse are inverses\n"
    "weft_random run N SEED      interpreter and dense evaluator agree in every bit\n"
    "weft_random mutate N SEED   damaged texts are refused with a place, or run alike\n"
    "weft_random stats N SEED    what the programs use; fails when something is too rare\n"
    "weft_random selftest        planted defects are found\n"
    "weft_random show SEED       the program and its data\n"
    "weft_random all             all of them, at the counts of the test suite\n";

static volatile uint64_t current; /* the seed at work, for the message of a crash */

static void on_crash(void)
{
    char text[64];
    int n = snprintf(text, sizeof text, "\nthe seed was %" PRIu64 "\n", current);

    if (write(2, text, (size_t)n) < 0)
        _exit(3);
}

/* Every seed has its own settings: half of the programs are exact, some are small. */
static Knobs knobs_of(uint64_t seed)
{
    return (
        Knobs){ .exact = seed % 2 == 0, .poly = seed % 16 == 6, .stmts = seed % 4 == 3 ? 2 : 0 };
}

static Case *make(Arena *a, uint64_t seed, Mode mode)
{
    Knobs knobs = knobs_of(seed);
    Case *c = gen_text(a, seed, &knobs);

    if (mode == MODE_MUTATE)
        c->text = mutate(a, seed, c->text);
    return c;
}

static void show_case(Arena *a, const Case *c, Mode mode)
{
    Text t = { .arena = a };

    data_print(&t, c->data);
    printf("%s\n", c->text);
    if (mode != MODE_PARSE && t.n > 0)
        printf("---- data\n%s", t.s);
}

static void show_failure(Arena *a, Mode mode, const Case *c, Report r)
{
    static const char *const name[] = { "parse", "run", "mutate" };
    Case *small = shrink(a, c, mode, DEFECT_NONE, &r);

    printf("==== %s, seed %" PRIu64 ": %s\n%s\n---- program\n", name[mode], c->seed,
           outcome_text[r.outcome], r.why);
    show_case(a, small, mode);
}

typedef struct Tally {
    int64_t passed, failed, outcome[OUTCOME_COUNT];
} Tally;

static void one_case(Tally *t, Mode mode, uint64_t seed)
{
    Arena a;
    Err err = { 0 };
    Case *c = NULL;
    Report r = { .outcome = FAIL_GEN };

    current = seed;
    arena_init(&a, &os_libc, &err);
    if (CATCH(&err, c = make(&a, seed, mode)) == ST_OK)
        r = check_case(c, mode, DEFECT_NONE);
    t->outcome[r.outcome]++;
    if (r.outcome < FAIL_GEN) {
        t->passed++;
    } else if (t->failed++ < 10 && c != NULL) {
        if (CATCH(&err, show_failure(&a, mode, c, r)) != ST_OK)
            printf("==== seed %" PRIu64 ": %s\n%s\n", seed, r.why, err.msg);
    }
    arena_free(&a);
}

static bool run_mode(Tally *sum, Mode mode, int64_t n, uint64_t seed)
{
    static const char *const name[] = { "parse", "run", "mutate" };
    Tally t = { 0 };

    for (int64_t i = 0; i < n; i++)
        one_case(&t, mode, seed + (uint64_t)i);
    printf("%s:", name[mode]);
    for (int i = 0; i < OUTCOME_COUNT; i++)
        if (t.outcome[i] > 0)
            printf(" %" PRId64 " %s;", t.outcome[i], outcome_text[i]);
    printf("\n");
    sum->passed += t.passed;
    sum->failed += t.failed;
    return t.failed == 0;
}

static void count_features(int64_t *count, int64_t *ops, uint64_t seed)
{
    Arena a;
    Err err = { 0 };
    Knobs knobs = knobs_of(seed);
    Case *c = NULL;
    Report r;
    int64_t in_case[OP_COUNT] = { 0 };

    arena_init(&a, &os_libc, &err);
    if (CATCH(&err, (c = gen_case(&a, seed, &knobs), feature_find(&a, c, in_case))) == ST_OK) {
        r = check_case(c, MODE_RUN, DEFECT_NONE);
        c->has[F_hit] = r.stats.hits > 0;
        c->has[F_miss] = r.stats.misses > 0;
        c->has[F_run_error] = r.outcome == ERROR_BOTH;
        c->has[F_set_twice] = r.outcome == ERROR_BOTH && strstr(r.why, "written twice") != NULL;
        for (int f = 0; f < F_COUNT; f++)
            count[f] += c->has[f];
        for (int i = 0; i < OP_COUNT; i++)
            ops[i] += in_case[i] > 0;
    }
    arena_free(&a);
}

static void count_line(Tally *sum, int64_t n, int64_t least, bool all, const char *what)
{
    if (all || n < least)
        printf("%8" PRId64 " %s%s\n", n, what, n < least ? "  TOO RARE" : "");
    *(n < least ? &sum->failed : &sum->passed) += 1;
}

/* Each feature, and each operator of this stage, in one of 200 programs at least. */
static void stats(Tally *sum, int64_t n, uint64_t seed, bool all)
{
    int64_t count[F_COUNT] = { 0 }, ops[OP_COUNT] = { 0 };

    for (int64_t i = 0; i < n; i++)
        count_features(count, ops, seed + (uint64_t)i);
    for (int f = 0; f < F_COUNT; f++)
        count_line(sum, count[f], n / 200, all, feature_text[f]);
    for (int i = 0; i < OP_local; i++)
        count_line(sum, ops[i], n / 200, all, ir_op[i].text);
}

/* Plants one defect in many cases. */
static void plant(Tally *sum, Defect d)
{
    int planted = 0, found = 0;
    bool good;

    for (uint64_t seed = 1; seed < 2000 && planted < (defect_info[d].always ? 60 : 400); seed++) {
        Arena a;
        Err err = { 0 };
        Case *c = NULL;
        Report r;

        current = seed;
        arena_init(&a, &os_libc, &err);
        if (CATCH(&err, c = make(&a, seed, MODE_RUN)) == ST_OK) {
            r = check_case(c, MODE_RUN, d);
            planted += r.planted;
            found += r.planted && r.outcome >= FAIL_GEN;
        }
        arena_free(&a);
    }
    good = planted >= 5 && (defect_info[d].always ? found == planted : found >= 1);
    printf("%s %3d of %3d found: %s\n", good ? "ok  " : "FAIL", found, planted,
           defect_info[d].text);
    *(good ? &sum->passed : &sum->failed) += 1;
}

/* A failing case that was made small still fails, and is much smaller. */
static void plant_and_shrink(Tally *sum)
{
    int tried = 0, small = 0;
    bool good;

    for (uint64_t seed = 1; seed < 200 && tried < 5; seed++) {
        Arena a;
        Err err = { 0 };
        Case *c = NULL, *less = NULL;
        Report r;

        current = seed;
        arena_init(&a, &os_libc, &err);
        if (CATCH(&err, c = make(&a, seed, MODE_RUN)) == ST_OK) {
            r = check_case(c, MODE_RUN, DEFECT_operator);
            if (r.outcome == FAIL_VALUE) {
                tried++;
                if (CATCH(&err, less = shrink(&a, c, MODE_RUN, DEFECT_operator, &r)) == ST_OK)
                    small += strlen(less->text) * 2 < strlen(c->text) &&
                             check_case(less, MODE_RUN, DEFECT_operator).outcome == FAIL_VALUE;
            }
        }
        arena_free(&a);
    }
    good = tried == 5 && small == tried;
    printf("%s %3d of %3d made small\n", good ? "ok  " : "FAIL", small, tried);
    *(good ? &sum->passed : &sum->failed) += 1;
}

static void selftest(Tally *sum)
{
    for (int d = DEFECT_NONE + 1; d < DEFECT_COUNT; d++)
        plant(sum, (Defect)d);
    plant_and_shrink(sum);
}

static void show(uint64_t seed)
{
    Arena a;
    Err err = { 0 };

    arena_init(&a, &os_libc, &err);
    CATCH(&err, show_case(&a, make(&a, seed, MODE_RUN), MODE_RUN));
    arena_free(&a);
}

static bool dispatch(Tally *sum, const char *mode, int64_t n, uint64_t seed)
{
    bool all = strcmp(mode, "all") == 0;

    if (all || strcmp(mode, "selftest") == 0)
        selftest(sum);
    if (all || strcmp(mode, "parse") == 0)
        run_mode(sum, MODE_PARSE, all ? test_scale(20000) : n, seed);
    if (all || strcmp(mode, "run") == 0)
        run_mode(sum, MODE_RUN, all ? test_scale(2000) : n, seed);
    if (all || strcmp(mode, "mutate") == 0)
        run_mode(sum, MODE_MUTATE, all ? test_scale(20000) : n, seed);
    if (all || strcmp(mode, "stats") == 0)
        stats(sum, all ? test_scale(4000) : n, seed, !all);
    return sum->passed + sum->failed > 0;
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "all";
    int64_t n = argc > 2 ? strtoll(argv[2], NULL, 10) : 1000;
    uint64_t seed = argc > 3 ? strtoull(argv[3], NULL, 10) : test_seed();
    Tally sum = { 0 };

    crash_watch(on_crash);
    if (strcmp(mode, "show") == 0) {
        show((uint64_t)n);
        return 0;
    }
    if (!dispatch(&sum, mode, n, seed)) {
        fputs(usage, stderr);
        return 2;
    }
    printf("%" PRId64 " passed, %" PRId64 " failed\n", sum.passed, sum.failed);
    return sum.failed > 0;
}
