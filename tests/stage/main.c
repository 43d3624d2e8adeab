/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The command weft_stage: the later stages of random programs and of their gradients. */
#include "stage/stage_test.h"

#include "api/api_int.h"
#include "unit/test.h"
#include "unit/trap.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "weft_stage run N SEED   N random programs and their gradients, after every pass\n"
    "weft_stage threads N SEED  the same with lanes that are threads, and without each barrier\n"
    "weft_stage shapes N SEED  N random trees of threads, and without each barrier\n"
    "weft_stage skip N SEED  N random programs and their gradients, without each optional pass\n"
    "weft_stage bisect       a defect in each optional pass is found by leaving out passes\n"
    "weft_stage blame N SEED the passes without which all wrong ones of N programs are right\n"
    "weft_stage selftest     planted defects are found\n"
    "weft_stage all          all of it, at the counts of the test suite\n";

typedef struct Tally {
    int64_t passed, failed, stages, limited, errors, gradients;
} Tally;

static void show(const Trial *t, const Finding *f)
{
    Text data = { .arena = t->arena };

    data_print(&data, t->in);
    printf("==== seed %" PRIu64 "%s, after %s: %s\n---- program\n%s---- data\n%s---- tree\n%s\n",
           t->seed, t->rerooted ? ", rerooted" : "", f->after != NULL ? f->after : "nothing",
           f->bad, t->text, data.n > 0 ? data.s : "", f->shown != NULL ? f->shown : "");
}

static void note(Tally *sum, const Trial *t, const Finding *f)
{
    sum->stages += f->stages;
    sum->limited += f->limited;
    sum->errors += f->failed;
    if (f->bad == NULL)
        sum->passed++;
    else if (sum->failed++ < 20)
        show(t, f);
}

static void one(Tally *sum, uint64_t seed)
{
    Arena a;
    Err err = { 0 };
    Trial t, g;
    Finding f;

    arena_init(&a, &os_libc, &err);
    if (CATCH(&err, t = trial_random(&a, seed)) == ST_OK) {
        f = trial_run(&t, PLANT_NONE);
        note(sum, &t, &f);
        if (!f.failed && trial_gradient(&t, &g)) {
            f = trial_run(&g, PLANT_NONE);
            note(sum, &g, &f);
            sum->gradients++;
        }
    } else {
        printf("==== seed %" PRIu64 ": %s\n", seed, err.msg);
        sum->failed++;
    }
    arena_free(&a);
}

static void barriers_of(Tally *sum, Trial *t, Barriers *b)
{
    Finding f;

    t->warp = true;
    f = trial_run(t, PLANT_NONE);
    note(sum, t, &f);
    if (f.failed || f.bad != NULL)
        return;
    f = trial_barriers(t, b);
    if (f.bad != NULL)
        note(sum, t, &f);
}

/* Programs whose lanes are threads. */
static void threads(Tally *sum, int64_t n, uint64_t seed)
{
    Tally t = { 0 };
    Barriers b = { 0 };
    bool few = n < 100, good;

    for (int64_t i = 0; i < n; i++) {
        Arena a;
        Err err = { 0 };
        Trial one, g;

        arena_init(&a, &os_libc, &err);
        if (CATCH(&err, one = trial_random(&a, seed + (uint64_t)i)) == ST_OK) {
            barriers_of(&t, &one, &b);
            if (trial_gradient(&one, &g))
                barriers_of(&t, &g, &b);
        }
        arena_free(&a);
    }
    good = few || (b.n > 0 && b.raced * 4 > b.refused);
    printf("%s %" PRId64 " programs of threads, %" PRId64 " trees compared; %d barriers left out: the "
           "checker refuses %d, %d of them race\n",
           good ? "ok  " : "FAIL", t.passed + t.failed, t.stages, b.n, b.refused, b.raced);
    sum->passed += t.passed + good;
    sum->failed += t.failed + !good;
}

/* Some of them need a barrier where not all come to it: the checker says so. */
static void shapes(Tally *sum, int64_t n, uint64_t seed)
{
    Tally t = { 0 };
    Barriers b = { 0 };
    int64_t apart = 0;
    bool good;

    for (int64_t i = 0; i < n; i++) {
        Arena a;
        Err err = { 0 };
        Trial one;
        Finding f;

        arena_init(&a, &os_libc, &err);
        if (CATCH(&err, one = trial_shape(&a, seed + (uint64_t)i)) != ST_OK) {
            printf("==== seed %" PRIu64 ": %s\n", seed + (uint64_t)i, err.msg);
            t.failed++;
        } else {
            f = trial_tree(&one);
            if (f.bad != NULL && strstr(f.bad, " put it outside") != NULL) {
                apart++;
            } else {
                note(&t, &one, &f);
                if (f.bad == NULL)
                    f = trial_barriers(&one, &b);
                if (f.bad != NULL)
                    note(&t, &one, &f);
            }
        }
        arena_free(&a);
    }
    good = n < 100 || (apart * 4 < n && b.raced * 4 > b.refused);
    printf("%s %" PRId64 " trees of threads, %" PRId64 " with barriers that not all can meet; %d "
           "barriers left out: the checker refuses %d, %d of them race\n",
           good ? "ok  " : "FAIL", n, apart, b.n, b.refused, b.raced);
    sum->passed += t.passed + good;
    sum->failed += t.failed + !good;
}

static void run(Tally *sum, int64_t n, uint64_t seed)
{
    Tally t = { 0 };

    for (int64_t i = 0; i < n; i++)
        one(&t, seed + (uint64_t)i);
    printf("%" PRId64 " programs, of which %" PRId64 " gradients; %" PRId64
           " trees compared; %" PRId64 " only interpreted; %" PRId64 " with a run error\n",
           t.passed + t.failed, t.gradients, t.stages, t.limited, t.errors);
    sum->passed += t.passed;
    sum->failed += t.failed;
}

/* Plants one defect in many programs; some of them show nothing, as where all elements are 0. */
static void plant(Tally *sum, Plant p)
{
    int planted = 0, found = 0;
    bool good;

    for (uint64_t seed = 1; seed < 600 && planted < 60; seed++) {
        Arena a;
        Err err = { 0 };
        Trial t;
        Finding f;

        arena_init(&a, &os_libc, &err);
        if (CATCH(&err, t = trial_random(&a, seed)) == ST_OK) {
            f = trial_run(&t, p);
            if (!f.failed && f.planted) {
                planted++;
                found += f.bad != NULL;
            }
        }
        arena_free(&a);
    }
    good = planted >= 20 && found * 5 >= planted;
    printf("%s %3d of %3d found: %s\n", good ? "ok  " : "FAIL", found, planted, plant_text[p]);
    *(good ? &sum->passed : &sum->failed) += 1;
}

static void without_each(Tally *sum, const Trial *t)
{
    for (const Pass *s = api_pass; s->name != NULL; s++)
        if (s->flags & PASS_OPTIONAL) {
            Finding f = trial_without(t, s, NULL);

            note(sum, t, &f);
        }
}

static void skip(Tally *sum, int64_t n, uint64_t seed)
{
    for (int64_t i = 0; i < n; i++) {
        Arena a;
        Err err = { 0 };
        Trial t, g;

        arena_init(&a, &os_libc, &err);
        if (CATCH(&err, t = trial_random(&a, seed + (uint64_t)i)) == ST_OK) {
            without_each(sum, &t);
            if (i % 4 == 0 && trial_gradient(&t, &g))
                without_each(sum, &g);
        }
        arena_free(&a);
    }
}

/* Whether leaving out passes one by one names the one with the defect: without it the result is
 * right, and without some other it is not. */
static bool names_defect(const Trial *t, const Pass *defect)
{
    bool others = false;

    if (trial_without(t, defect, defect).bad != NULL)
        return false;
    for (const Pass *s = api_pass; s->name != NULL && !others; s++)
        others = s != defect && (s->flags & PASS_OPTIONAL) != 0 &&
                 trial_without(t, s, defect).bad != NULL;
    return others;
}

/* A defect in this pass: of the first ten programs whose result it changes, all must tell. */
static void bisect(Tally *sum, const Pass *defect)
{
    int wrong = 0, named = 0;
    bool good;

    for (uint64_t seed = 1; seed < 200 && wrong < 10; seed++) {
        Arena a;
        Err err = { 0 };
        Trial t;
        Finding f;

        arena_init(&a, &os_libc, &err);
        if (CATCH(&err, t = trial_random(&a, seed)) == ST_OK) {
            f = trial_without(&t, NULL, defect);
            if (!f.failed && f.planted && f.bad != NULL) {
                wrong++;
                named += names_defect(&t, defect);
            }
        }
        arena_free(&a);
    }
    good = wrong >= 3 && named == wrong;
    printf("%s %2d of %2d named: a defect in %s\n", good ? "ok  " : "FAIL", named, wrong,
           defect->name);
    *(good ? &sum->passed : &sum->failed) += 1;
}

/* The optional passes without any one of which this program has the right result. */
static uint64_t cures(const Trial *t)
{
    uint64_t passes = 0;

    for (const Pass *s = api_pass; s->name != NULL; s++)
        if ((s->flags & PASS_OPTIONAL) && trial_without(t, s, NULL).bad == NULL)
            passes |= (uint64_t)1 << (s - api_pass);
    return passes;
}

/* Names the pass that makes wrong programs of random ones, as somebody would who leaves out one
 * pass after the other: those that cure each of the first five wrong programs. */
static void blame(Tally *sum, int64_t n, uint64_t seed)
{
    uint64_t passes = ~(uint64_t)0;
    int wrong = 0;

    for (int64_t i = 0; i < n && wrong < 5; i++) {
        Arena a;
        Err err = { 0 };
        Trial t;

        arena_init(&a, &os_libc, &err);
        if (CATCH(&err, t = trial_random(&a, seed + (uint64_t)i)) == ST_OK) {
            Finding f = trial_without(&t, NULL, NULL);

            if (!f.failed && f.bad != NULL) {
                wrong++;
                passes &= cures(&t);
            }
        }
        arena_free(&a);
    }
    printf("%d wrong:", wrong);
    for (const Pass *s = api_pass; s->name != NULL && wrong > 0; s++)
        if (passes >> (s - api_pass) & 1)
            printf(" %s", s->name);
    putchar('\n');
    *(wrong == 0 ? &sum->passed : &sum->failed) += 1;
}

static bool is_one_of(const char *mode, const char *const *names)
{
    while (*names != NULL && strcmp(*names, mode) != 0)
        names++;
    return *names != NULL;
}

int main(int argc, char **argv)
{
    static const char *const modes[] = { "all",    "run",   "threads",  "shapes", "skip",
                                         "bisect", "blame", "selftest", NULL };
    const char *mode = argc > 1 ? argv[1] : "all";
    int64_t n = argc > 2 ? strtoll(argv[2], NULL, 10) : 1000;
    uint64_t seed = argc > 3 ? strtoull(argv[3], NULL, 10) : test_seed();
    bool all = strcmp(mode, "all") == 0;
    Tally sum = { 0 };

    if (!is_one_of(mode, modes)) {
        fputs(usage, stderr);
        return 2;
    }
    for (int p = PLANT_NONE + 1; p < PLANT_COUNT && (all || strcmp(mode, "selftest") == 0); p++)
        plant(&sum, (Plant)p);
    for (const Pass *s = api_pass; s->name != NULL && (all || strcmp(mode, "bisect") == 0); s++)
        if ((s->flags & PASS_OPTIONAL) && s->to != STAGE_COORDINATES)
            bisect(&sum, s);
    if (strcmp(mode, "blame") == 0)
        blame(&sum, n, seed);
    if (all || strcmp(mode, "skip") == 0)
        skip(&sum, all ? test_scale(400) : n, seed);
    if (all || strcmp(mode, "run") == 0)
        run(&sum, all ? test_scale(2000) : n, seed);
    if (all || strcmp(mode, "threads") == 0)
        threads(&sum, all ? test_scale(1000) : n, seed);
    if (all || strcmp(mode, "shapes") == 0)
        shapes(&sum, all ? test_scale(4000) : n, seed);
    printf("%" PRId64 " passed, %" PRId64 " failed\n", sum.passed, sum.failed);
    return sum.failed > 0;
}
