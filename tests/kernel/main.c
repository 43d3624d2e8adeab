/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The command weft_kernel: compiled kernels and the interpreter agree in every bit. */
#include "kernel/kernel_test.h"
#include "unit/test.h"
#include "unit/trap.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char usage[] =
    "weft_kernel                           all, at the counts of the test suite\n"
    "weft_kernel run N SEED TARGET BATCH   N random programs and their gradients\n"
    "weft_kernel show SEED                 a program, its gradient and their C\n"
    "weft_kernel files TARGET FILE...      programs with a command that runs them in the heading\n"
    "weft_kernel variants FILE...          the same for every target of the suite\n"
    "weft_kernel emitted SHARE FILE...     what `weft emit` prints, compiled alone: one of SHARE\n"
    "                                      combinations with formats and schedules\n"
    "weft_kernel plants N SEED TARGET [NAME]   planted defects of the prelude of devices are found\n"
    "weft_kernel selftest                  planted defects are found\n"
    "targets:\n";

enum { BATCH = 400 }; /* programs in one file: its header takes a compiler a while */

static char current[200]; /* what is at work, for messages */

static void on_crash(void)
{
    if (write(2, "\nin ", 4) < 0 || write(2, current, strlen(current)) < 0 || write(2, "\n", 1) < 0)
        _exit(3);
}

typedef struct Tally {
    int64_t passed, failed, compiled, gradients, interpreted, faults;
    int64_t searches, merges, lookups; /* programs that search so */
    double lowering, compiling, running;
    struct {
        char text[120];
        int64_t n;
    } reason[40]; /* why a program is only interpreted */
} Tally;

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Counts a reason, names of labels and axes left out. */
static void note_reason(Tally *t, const char *why)
{
    const char *s = strstr(why, ": ");
    char text[120];
    int k = 0;

    snprintf(text, sizeof text, "%s", s != NULL ? s + 2 : why);
    while (k < 39 && t->reason[k].n > 0 && strncmp(t->reason[k].text, text, 20) != 0)
        k++;
    memcpy(t->reason[k].text, text, sizeof text);
    t->reason[k].n++;
}

static void show_subject(const Subject *s, bool source)
{
    Arena a;
    Err err = { 0 };
    Text t = { .arena = &a };

    arena_init(&a, &os_libc, &err);
    data_print(&t, s->in);
    printf("---- %s\n%s---- data\n%s", s->gradient ? "gradient" : "program", s->text,
           t.s != NULL ? t.s : "");
    if (source)
        printf("---- C\n%s\n", s->source != NULL ? s->source : s->why);
    arena_free(&a);
}

static void set_current(const char *name, uint64_t seed, const char *part)
{
    if (name != NULL)
        snprintf(current, sizeof current, "%s%s", name, part);
    else
        snprintf(current, sizeof current, "seed %" PRIu64 "%s", seed, part);
}

static void fail(Tally *t, const Subject *s, const char *why)
{
    if (t->failed++ >= 10)
        return;
    printf("==== %s: %s\n", current, why);
    if (t->failed <= 3)
        show_subject(s, true);
}

static void check_subject(Arena *a, Tally *t, const Batch *b, const Subject *s)
{
    const char *bad;

    if (s->kernel == NULL) {
        t->interpreted++;
        note_reason(t, s->why);
        return;
    }
    if (s->status != ST_OK && s->status != ST_RUN)
        return; /* refused before anything would run */
    set_current(s->name, s->seed, s->gradient ? ", gradient" : "");
    bad = execute(a, b, s);
    t->compiled++;
    t->gradients += s->gradient;
    t->faults += s->status == ST_RUN;
    t->searches += strstr(s->source, "_find_") != NULL;
    t->merges += strstr(s->source, "_near_") != NULL;
    t->lookups += strstr(s->source, "_lookup_") != NULL;
    if (bad != NULL)
        fail(t, s, bad);
    else
        t->passed++;
}

static void check_batch(Arena *a, Tally *t, const Toolchain *target, const Subjects *all)
{
    double start = now();
    Batch b = batch_load(a, target, all);

    t->compiling += now() - start;
    if (b.message[0] != 0) {
        printf("==== the compiler says:\n%s\n", b.message);
        t->failed++;
    }
    start = now();
    for (int i = 0; i < all->n && (b.lib != NULL || b.device != NULL); i++)
        check_subject(a, t, &b, &all->s[i]);
    t->running += now() - start;
    batch_close(&b);
}

typedef void Fill(Arena *, Subjects *, const void *from, int i);

static void fill_random(Arena *a, Subjects *all, const void *from, int i)
{
    uint64_t seed = *(const uint64_t *)from + (uint64_t)i;

    set_current(NULL, seed, ", lowering");
    subject_random(a, all, seed);
}

static void fill_file(Arena *a, Subjects *all, const void *from, int i)
{
    set_current(((char *const *)from)[i], 0, ", lowering");
    example_add(a, all, ((char *const *)from)[i]);
}

/* n programs in one file. */
static void one_batch(Tally *t, const Toolchain *target, Fill *fill, const void *from, int n)
{
    Arena a;
    Err err = { 0 };
    Subjects all = { .unit = toolchain_unit(target), .device = target->device };
    double start = now();

    arena_init(&a, &os_libc, &err);
    for (int i = 0; i < n; i++)
        if (CATCH(&err, fill(&a, &all, from, i)) != ST_OK) {
            printf("==== %s: %s\n", current, err.msg);
            t->failed++;
        }
    t->lowering += now() - start;
    if (CATCH(&err, check_batch(&a, t, target, &all)) != ST_OK) {
        printf("==== %s\n", err.msg);
        t->failed++;
    }
    arena_free(&a);
}

static void report(const Tally *t)
{
    printf("%" PRId64 " compiled (%" PRId64 " of them gradients, %" PRId64
           " with a run error), %" PRId64 " only interpreted\n",
           t->compiled, t->gradients, t->faults, t->interpreted);
    printf("searches: %" PRId64 " programs with plain ones, %" PRId64 " that go on, %" PRId64
           " that ask a table\n",
           t->searches, t->merges, t->lookups);
    for (int k = 0; k < 40 && t->reason[k].n > 0; k++)
        printf("%8" PRId64 " %s\n", t->reason[k].n, t->reason[k].text);
    printf("seconds: %.1f lowering and interpreting, %.1f compiling, %.1f running\n", t->lowering,
           t->compiling, t->running);
}

static void run(Tally *t, const Toolchain *target, int64_t n, uint64_t seed, int batch)
{
    for (int64_t i = 0; i < n; i += batch) {
        uint64_t first = seed + (uint64_t)i;

        one_batch(t, target, fill_random, &first, (int)(n - i < batch ? n - i : batch));
    }
}

/* Every target that is here; most programs with the one that compiles fastest. */
static void run_all(Tally *t)
{
    uint64_t seed = test_seed();
    int64_t n = test_scale(10000), left = 0;

    if (SANITIZED || RACING) {
        run(t, toolchain_find(RACING ? "race" : "sanitize"), n, seed, 100);
        return;
    }
    for (const Toolchain *x = toolchains; x->name != NULL; x++) {
        if (x->share > 0 && !toolchain_here(x)) {
            printf("skipped: %s: no such CPU or compiler here\n", x->name);
            left += n * x->share / 100;
        } else if (x->share > 0) {
            run(t, x, n * x->share / 100, seed, BATCH);
            seed += (uint64_t)(n * x->share / 100);
        }
    }
    run(t, toolchain_find("cc"), left, seed, BATCH);
}

/* Programs with data, in each way to compile them. */
static void run_variants(Tally *t, char **file, int n)
{
    for (const Toolchain *x = toolchains; x->name != NULL; x++)
        if (x->share > 0 && toolchain_here(x))
            one_batch(t, x, fill_file, file, n);
        else if (x->share > 0)
            printf("skipped: %s: no such CPU or compiler here\n", x->name);
}

static void run_emitted(Tally *t, int share, char **file, int n)
{
    Emitted e = { 0 };

    for (int i = 0; i < n; i++) {
        set_current(file[i], 0, ", emitted");
        emitted_check(&e, file[i], share, i);
    }
    printf("%" PRId64 " programs as C, %" PRId64 " refused by both\n", e.passed, e.refused);
    t->passed += e.passed;
    t->failed += e.failed;
}

static void run_defects(Tally *t, const Toolchain *target)
{
    Arena a;
    Err err = { 0 };
    int failed = 0;

    arena_init(&a, &os_libc, &err);
    if (CATCH(&err, t->passed += defect_test(&a, target, &failed)) != ST_OK) {
        printf("==== %s\n", err.msg);
        failed++;
    }
    t->failed += failed;
    arena_free(&a);
}

/* Each defect of the prelude of devices has to be found by a run of some programs; NAME: that one
 * alone, whose failures count as those of any run. */
static void run_plants(Tally *t, const Toolchain *target, const char *only, int64_t n,
                       uint64_t seed)
{
    const char *name;

    for (int i = 0; (name = device_plant(i)) != NULL; i++) {
        Tally found = { .failed = only == NULL ? 10 : 0 }; /* 10: says nothing of them */

        if (only != NULL && strcmp(only, name) != 0)
            continue;
        run(&found, target, n, seed, (int)n);
        if (only != NULL) {
            *t = found;
            return;
        }
        printf("%-8s %s\n", name, found.failed > 10 ? "is found" : "is NOT FOUND");
        t->passed += found.failed > 10;
        t->failed += found.failed <= 10;
    }
}

static void show(uint64_t seed)
{
    Arena a;
    Err err = { 0 };
    Subjects all = { .unit = { VECTOR_LANES(8, 4), 0, VECTOR_CORE } };

    arena_init(&a, &os_libc, &err);
    if (CATCH(&err, subject_random(&a, &all, seed)) != ST_OK)
        printf("%s\n", err.msg);
    for (int i = 0; i < all.n; i++)
        show_subject(&all.s[i], true);
    arena_free(&a);
}

static int64_t number(int argc, char **argv, int i, int64_t otherwise)
{
    return argc > i ? strtoll(argv[i], NULL, 10) : otherwise;
}

static bool dispatch(Tally *t, int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "all";
    const Toolchain *target =
        toolchain_find(argc > 4 ? argv[4] : RACING ? "race" : SANITIZED ? "sanitize" : "cc");

    if (strcmp(mode, "all") == 0) {
        run_all(t);
    } else if (strcmp(mode, "run") == 0 && target != NULL) {
        run(t, target, number(argc, argv, 2, 100), (uint64_t)number(argc, argv, 3, (int64_t)test_seed()),
            (int)number(argc, argv, 5, 100));
    } else if (strcmp(mode, "files") == 0 && argc > 3 && toolchain_find(argv[2]) != NULL) {
        one_batch(t, toolchain_find(argv[2]), fill_file, argv + 3, argc - 3);
    } else if (strcmp(mode, "variants") == 0 && argc > 2) {
        run_variants(t, argv + 2, argc - 2);
    } else if (strcmp(mode, "emitted") == 0 && argc > 3) {
        run_emitted(t, (int)number(argc, argv, 2, 1), argv + 3, argc - 3);
    } else if (strcmp(mode, "plants") == 0 && target != NULL && target->device != NULL) {
        run_plants(t, target, argc > 5 ? argv[5] : NULL, number(argc, argv, 2, 20),
                   (uint64_t)number(argc, argv, 3, (int64_t)test_seed()));
    } else if (strcmp(mode, "selftest") == 0) {
        run_defects(t, toolchain_find("cc"));
    } else {
        fputs(usage, stderr);
        for (const Toolchain *x = toolchains; x->name != NULL; x++)
            fprintf(stderr, "  %-10s %s\n", x->name, x->what);
        return false;
    }
    return true;
}

static bool is_missing(const char *target)
{
    const Toolchain *t = toolchain_find(target);

    return t != NULL && t->device != NULL && !t->device->is_here();
}

int main(int argc, char **argv)
{
    Tally t = { 0 };

    crash_watch(on_crash);
    if (argc > 2 && strcmp(argv[1], "show") == 0) {
        show((uint64_t)number(argc, argv, 2, 1));
        return 0;
    }
    if (argc > 4 && strcmp(argv[1], "run") == 0 && is_missing(argv[4])) {
        printf("skipped: kernels on a device: there is no %s here\n0 passed, 0 failed\n", argv[4]);
        return 0;
    }
    if (!dispatch(&t, argc, argv))
        return 2;
    report(&t);
    printf("%" PRId64 " passed, %" PRId64 " failed\n", t.passed, t.failed);
    return t.failed > 0;
}
