/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The command weft_sched. */
#include "sched/sched_test.h"
#include "unit/test.h"
#include "unit/trap.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "weft_sched chains N SEED   N random chains of steps, interpreted\n"
    "weft_sched levels N SEED   N random chains with loops on warps, blocks and threads\n"
    "weft_sched fixed N SEED    a table of steps on known programs, then N chains on those\n"
    "weft_sched brute N SEED    N random programs: every order of every nest, every loop parallel\n"
    "weft_sched compiled N SEED N random chains, compiled\n"
    "weft_sched show SEED       a program and its loops\n"
    "weft_sched files FILE...   programs with a command that runs them in the heading\n"
    "weft_sched all FILE...     all, at the counts of the test suite\n";

enum { PER_PROGRAM = 10, STEPS = 40, BATCH = 250 };
enum { FEW = 200, PROGRAMS = 500 }; /* of less there is no rate */

typedef struct Tally {
    int64_t passed, failed, chains, empty, programs, skipped, bound;
    bool levels; /* chains draw steps that bind loops, and only those count that have one */
    int took[STEPS], left[STEPS];
} Tally;

static void show(const Base *b, const Chain *c)
{
    printf("==== seed %" PRIu64 ": %s\n---- program\n%s---- steps\n", b->seed, c->bad, b->text);
    for (int i = 0; i < c->ntaken; i++)
        printf("%s\n", c->taken[i]);
}

static void chains_of(Tally *t, Arena *a, const Base *b)
{
    for (int i = 0; i < PER_PROGRAM; i++) {
        Rng r = { b->seed * 1000 + (uint64_t)i };
        Chain c = { .base = b, .took = t->took, .left = t->left, .levels = t->levels };

        if (CATCH(a->err, chain_random(a, &r, &c)) != ST_OK)
            c.bad = a->err->msg;
        t->chains += c.bound || !t->levels;
        t->empty += c.ntaken == 0;
        if (c.bad == NULL)
            t->passed++;
        else if (t->failed++ < 5)
            show(b, &c);
    }
}

static void with_program(void (*fn)(void *, Arena *, const Base *), void *ctx, uint64_t seed,
                         Tally *t)
{
    Arena a;
    Err err = { 0 };
    Base b = { 0 };
    bool good = false;

    arena_init(&a, &os_libc, &err);
    if (CATCH(&err, good = base_random(&a, seed, &b)) != ST_OK) {
        printf("==== seed %" PRIu64 ": %s\n", seed, err.msg);
        t->failed++;
    } else if (good) {
        t->programs++;
        fn(ctx, &a, &b);
    } else {
        t->skipped++;
    }
    arena_free(&a);
}

typedef struct Files {
    Tally *t;
    Brute brute;
    int chains; /* a file */
} Files;

static void one_file(Files *f, const char *path)
{
    Arena a;
    Err err = { 0 };
    Base b = { 0 };
    bool good = false;

    arena_init(&a, &os_libc, &err);
    if (CATCH(&err, good = base_file(&a, path, &b)) != ST_OK || !good) {
        printf("==== %s: %s\n", path, err.msg);
        f->t->failed++;
    } else {
        f->t->programs++;
        for (b.seed = 1; b.seed <= (uint64_t)f->chains; b.seed++)
            chains_of(f->t, &a, &b);
        brute_try(&a, &b, false, &f->brute);
    }
    arena_free(&a);
}

static void run_chains(void *ctx, Arena *a, const Base *b)
{
    chains_of(ctx, a, b);
}

static void chains(Tally *t, int64_t n, uint64_t seed)
{
    int64_t goal = t->chains + n;

    for (; t->chains < goal; seed++)
        with_program(run_chains, t, seed, t);
    printf("%" PRId64 " chains, %" PRId64 " of them with no step taken; programs: %" PRId64
           ", %" PRId64 " left out\n",
           t->chains, t->empty, t->programs, t->skipped);
    for (int i = 0; step_table[i].name != NULL && i < STEPS; i++)
        printf("%12s: %6d taken, %6d refused\n", step_table[i].name, t->took[i], t->left[i]);
}

/* Chains with loops on warps, blocks and threads. */
static void levels(Tally *sum, int64_t n, uint64_t seed)
{
    Tally t = { .levels = true };

    chains(&t, n, seed);
    sum->passed += t.passed;
    sum->failed += t.failed;
}

typedef struct Compile {
    Tally *t;
    Subjects all;
    Arena arena; /* of programs and chains until they have run */
    Err err;
} Compile;

static void check_batch(Compile *c, const Toolchain *target)
{
    Batch b = batch_load(&c->arena, target, &c->all);

    if (b.message[0] != 0) {
        printf("==== the compiler says:\n%s\n", b.message);
        c->t->failed++;
    }
    for (int i = 0; i < c->all.n && b.lib != NULL; i++) {
        const char *bad = execute(&c->arena, &b, &c->all.s[i]);

        if (bad == NULL)
            c->t->passed++;
        else if (c->t->failed++ < 5)
            printf("==== seed %" PRIu64 ", compiled: %s\n%s\n%s\n", c->all.s[i].seed, bad,
                   c->all.s[i].text, c->all.s[i].source);
    }
    batch_close(&b);
}

/* The chains of one program that have steps and are right. */
static void add_chains(Compile *c, uint64_t seed, int most)
{
    int took[STEPS], left[STEPS];
    Base *b = arena_alloc(&c->arena, sizeof *b);

    if (seed % 4 == 0)
        fixed_base(&c->arena, seed / 4, b);
    else if (!base_random(&c->arena, seed, b))
        return;
    for (int i = 0; i < 3 && c->all.n < most; i++) {
        Rng r = { seed * 1000 + (uint64_t)i };
        Chain chain = { .base = b, .took = took, .left = left };

        chain_random(&c->arena, &r, &chain);
        if (chain.bad == NULL && chain.ntaken > 0 && !chain.unfit)
            compiled_add(&c->arena, &c->all, &chain);
    }
}

/* So many chains; 0: the rows of the table of fixed programs. */
static uint64_t one_batch(Tally *t, const Toolchain *target, int n, uint64_t seed)
{
    Compile c = { .t = t, .all = { .unit = toolchain_unit(target) } };

    arena_init(&c.arena, &os_libc, &c.err);
    if (n == 0 && CATCH(&c.err, fixed_add(&c.arena, &c.all, seed)) != ST_OK) {
        printf("==== fixed programs, compiled: %s\n", c.err.msg);
        t->failed++;
    }
    while (c.all.n < n) {
        if (CATCH(&c.err, add_chains(&c, seed, n)) != ST_OK) {
            printf("==== seed %" PRIu64 ", compiled: %s\n", seed, c.err.msg);
            t->failed++;
        }
        seed++;
    }
    if (CATCH(&c.err, check_batch(&c, target)) != ST_OK) {
        printf("==== %s\n", c.err.msg);
        t->failed++;
    }
    arena_free(&c.arena);
    return seed;
}

static void compiled(Tally *t, int64_t n, uint64_t seed)
{
    static const char *const name[] = { "clang", "wide", "plain", "cc" };
    int64_t before = t->passed, quarter = (n + 3) / 4; /* few chains meet every target too */

    one_batch(t, toolchain_find("cc"), 0, seed); /* the table's own */
    for (int k = 0; n > 0; k++) {
        const Toolchain *target = toolchain_find(name[k % 4]);
        int64_t most = quarter < BATCH ? quarter : BATCH;
        int some = (int)(n < most ? n : most);

        target = toolchain_here(target) ? target : toolchain_find("cc");
        seed = one_batch(t, target, some, seed);
        n -= some;
    }
    printf("%" PRId64 " compiled chains\n", t->passed - before);
}

static void run_brute(void *ctx, Arena *a, const Base *b)
{
    brute_try(a, b, false, ctx);
}

static void run_ordered(void *ctx, Arena *a, const Base *b)
{
    brute_try(a, b, true, ctx);
}

/* What only the data at hand make legal counts as legal here, so a few are refused rightly.  One
 * program has dozens of legal orders: of a hundred random programs, two or three that are refused
 * are a tenth already, which says nothing. */
static void report(Tally *t, const char *name, const Verdicts *v, int percent, int few)
{
    bool good = v->accepted == 0 && (v->legal < few || v->refused * 100 <= v->legal * percent);

    printf("%s %9s: %6" PRId64 " legal, %5" PRId64 " of them refused; %6" PRId64
           " illegal, %" PRId64 " of them accepted; %" PRId64 " not sure\n",
           good ? "ok  " : "FAIL", name, v->legal, v->refused, v->illegal, v->accepted, v->unsure);
    *(good ? &t->passed : &t->failed) += 1;
}

static void brute(Tally *t, int64_t n, uint64_t seed)
{
    Brute b = { .shown = 0 }, o = { .shown = 0 };
    int few = n < PROGRAMS ? INT_MAX : FEW;

    for (int64_t i = 0; i < n; i++) {
        with_program(run_brute, &b, seed + (uint64_t)i, t);
        if (i % 2 == 0)
            with_program(run_ordered, &o, seed + (uint64_t)i, t);
    }
    report(t, "reorder", &b.reorder, 5, few);
    report(t, "parallel", &b.parallel, 5, few);
    report(t, "any order", &b.backwards, 5, few);
    printf("where sums keep their last term:\n");
    report(t, "reorder", &o.reorder, 25, few);
    report(t, "parallel", &o.parallel, 25, few);
    report(t, "any order", &o.backwards, 25, few);
}

static void fixed(Tally *t, int64_t n, uint64_t seed)
{
    Tally own = { 0 };
    Fixed f = { .took = own.took, .left = own.left };

    fixed_try(&f, n, seed);
    printf("%" PRId64 " rows and chains on fixed programs\n", f.passed + f.failed);
    for (int i = 0; step_table[i].name != NULL && i < STEPS; i++)
        printf("%20s: %6d taken, %6d refused\n", step_table[i].name, own.took[i], own.left[i]);
    t->passed += f.passed;
    t->failed += f.failed;
}

static void show_tree(void *ctx, Arena *a, const Base *b)
{
    Text t = { .arena = a };

    (void)ctx;
    ir_print(&t, b->tree);
    printf("%s%s\n", b->text, t.s);
}

static void files(Tally *t, char **path, int n, int64_t chains_each)
{
    Files f = { .t = t, .chains = (int)chains_each };

    for (int i = 0; i < n; i++)
        one_file(&f, path[i]);
    printf("of %d programs with a heading:\n", n);
    report(t, "reorder", &f.brute.reorder, 5, FEW);
    report(t, "parallel", &f.brute.parallel, 5, FEW);
    report(t, "any order", &f.brute.backwards, 5, FEW);
}

/* Cases of a suite; some of it is so quick that it is never cut further. */
static int64_t scaled(int64_t n, int64_t least)
{
    int64_t some = test_scale(n);

    return some < least ? least : some;
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "all";
    bool all = strcmp(mode, "all") == 0;
    int64_t n = argc > 2 ? strtoll(argv[2], NULL, 10) : 1000;
    uint64_t seed = !all && argc > 3 ? strtoull(argv[3], NULL, 10) : test_seed();
    Tally sum = { 0 };

    if (strcmp(mode, "show") == 0) {
        with_program(show_tree, NULL, (uint64_t)n, &sum);
        return 0;
    }
    if (strcmp(mode, "files") == 0 || (all && argc > 2))
        files(&sum, argv + 2, argc - 2, test_scale(10));
    if (!all && strcmp(mode, "files") != 0 && strcmp(mode, "chains") != 0 &&
        strcmp(mode, "levels") != 0 && strcmp(mode, "brute") != 0 && strcmp(mode, "compiled") != 0 && strcmp(mode, "fixed") != 0) {
        fputs(usage, stderr);
        return 2;
    }
    if (all || strcmp(mode, "fixed") == 0)
        fixed(&sum, all ? scaled(4000, 1000) : n, seed);
    if (all || strcmp(mode, "chains") == 0)
        chains(&sum, all ? scaled(20000, 3000) : n, seed);
    if (all || strcmp(mode, "levels") == 0)
        levels(&sum, all ? test_scale(20000) : n, seed);
    if (all || strcmp(mode, "compiled") == 0)
        compiled(&sum, all ? test_scale(2000) : n, seed);
    if (all || strcmp(mode, "brute") == 0)
        brute(&sum, all ? test_scale(1000) : n, seed);
    printf("%" PRId64 " passed, %" PRId64 " failed\n", sum.passed, sum.failed);
    return sum.failed > 0;
}
