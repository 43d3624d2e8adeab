/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The command weft_grad: derivatives of random programs.  A failure is shown with its seed, the
 * program and its derivatives. */
#include "grad/grad_test.h"
#include "unit/test.h"
#include "unit/trap.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "weft_grad known DIR       the programs of a folder, to the third order\n"
    "weft_grad real N SEED     first derivatives against differences\n"
    "weft_grad high N SEED     second and third ones too\n"
    "weft_grad exact N SEED    of polynomials, bit for bit\n"
    "weft_grad wild N SEED     of any program, damaged ones too: a program that runs, or a refusal\n"
    "weft_grad all DIR         all of them, at the counts of the test suite\n";

enum { TRIES = 4, LARGE = 4000 };

typedef enum Verdict { GOOD_CASE, NO_USE, FLAT, SHORT, TOO_FAR, KINK, VERDICTS } Verdict;
static const char *const verdict_text[VERDICTS] = {
    "good",      "without input or output",   "with zero derivative", "without the next derivative",
    "too large", "with an element at a kink",
};

/* Draws other data until no element is near a kink, a few times. */
static bool is_smooth(Tester *t, Sample *s, Dual *d)
{
    for (int i = 0; i < TRIES; i++) {
        dual_init(t, d, *s);
        dual_run(t, d, draw_real, false);
        dual_check_adjoint(t, d, 1e-10);
        dual_move_inout(t, d, draw_real);
        if (check_differences(t, d))
            return true;
        sample_redraw(t, s);
    }
    return false;
}

static Verdict test_orders(Tester *t, Sample s, int orders)
{
    Dual d;

    for (int k = 1; k <= orders; k++) {
        int64_t before = t->elements;
        bool smooth = is_smooth(t, &s, &d);

        dual_check_text(t, &d);
        dual_run(t, &d, draw_real, true);
        dual_check_adjoint(t, &d, 1e-10);
        if (k == 1 && t->elements == before)
            return FLAT;
        if (!smooth)
            return KINK;
        t->orders[k]++;
        s = dual_next(t, &d, draw_real);
        if (k < orders && (d.reverse->nexpr > LARGE || !sample_is_of_use(&s)))
            return SHORT;
    }
    return GOOD_CASE;
}

static Verdict test_real(Tester *t, uint64_t seed, int orders)
{
    Knobs knobs = { .risk = -1, .stmts = orders > 1 ? 3 : 0 };
    Sample s;
    bool use = false;

    /* with other numbers an index may be outside, and what was 1.0 / 3 may be 1 / 3 */
    if (CATCH(t->arena->err, use = sample_real(t, seed, &knobs, &s); sample_run(t, &s, NULL, 0)) !=
        ST_OK)
        return err_clear(t->arena->err), NO_USE;
    return use ? test_orders(t, s, orders) : NO_USE;
}

static Verdict test_exact(Tester *t, uint64_t seed, int orders)
{
    Sample s;
    Dual d;

    if (!sample_exact(t, seed, &s))
        return NO_USE;
    for (int k = 1; k <= orders; k++) {
        int64_t before = t->elements;

        dual_init(t, &d, s);
        if (!check_exact(t, &d))
            return TOO_FAR;
        dual_check_adjoint(t, &d, 0);
        if (k == 1 && t->elements == before)
            return FLAT;
        t->orders[k]++;
        s = dual_next(t, &d, draw_small);
        if (k < orders && !sample_is_of_use(&s))
            return SHORT;
    }
    return GOOD_CASE;
}

/* All types and functions, numbers that are none, risks; every second text is damaged. */
static Verdict test_wild(Tester *t, uint64_t seed, int orders)
{
    Case *c = gen_text(t->arena, seed, &(Knobs){ .stmts = 3 });
    bool damaged = seed % 2 == 0;
    Err *err = t->arena->err;
    Sample s;
    Dual d;

    if (damaged)
        c->text = mutate(t->arena, seed, c->text);
    if (CATCH(err, case_parse(t->arena, c)) != ST_OK)
        return err_clear(err), NO_USE;
    s = (Sample){ c->prog, sample_data(t, c->prog, c->data) };
    if (!sample_is_of_use(&s))
        return NO_USE;
    for (int k = 1; k <= orders && sample_is_of_use(&s); k++) {
        Status st = CATCH(err, dual_init(t, &d, s));

        if ((st == ST_CHECK && strstr(err->msg, "into an inout buffer") != NULL) ||
            ((st == ST_RUN || st == ST_BIND) && (damaged || c->risky)))
            return err_clear(err), SHORT;
        if (st != ST_OK)
            err_jump(err);
        dual_check_text(t, &d);
        dual_run(t, &d, draw_real, false);
        s = dual_next(t, &d, draw_real);
        t->orders[k]++;
    }
    return GOOD_CASE;
}

typedef Verdict OneTest(Tester *, uint64_t seed, int orders);

typedef struct Tally {
    int64_t count[VERDICTS], failed;
} Tally;

static void one_case(Tester *t, OneTest *test, uint64_t seed, int orders, Tally *y)
{
    Arena a;
    Err err = { 0 };
    Verdict v = GOOD_CASE;
    Status st;

    arena_init(&a, &os_libc, &err);
    t->arena = &a;
    t->rng.state = seed;
    t->log = (Text){ .arena = &a };
    st = CATCH(&err, v = test(t, seed, orders));
    if (st == ST_OK || st == ST_LIMIT)
        y->count[st == ST_OK ? v : TOO_FAR]++;
    else if (y->failed++ < 5)
        printf("==== seed %" PRIu64 ": %s\n%s\n", seed, err.msg, t->log.n > 0 ? t->log.s : "");
    arena_free(&a);
}

/* n good cases, however many others it takes; *passed and *failed are added to. */
static void run(const char *name, OneTest *test, int64_t n, uint64_t seed, int orders,
                int64_t *passed, int64_t *failed)
{
    Tally y = { 0 };
    Tester t = { .arena = NULL };
    uint64_t last = seed + 10 * (uint64_t)n + 100;

    for (; y.count[GOOD_CASE] + y.failed < n && seed < last; seed++)
        one_case(&t, test, seed, orders, &y);
    printf("%s:", name);
    for (int v = 0; v < VERDICTS; v++)
        if (y.count[v] > 0)
            printf(" %" PRId64 " %s;", y.count[v], verdict_text[v]);
    printf(" %" PRId64 " elements, %" PRId64 " at a kink; derivatives of order 1, 2, 3: %" PRId64
           ", %" PRId64 ", %" PRId64 "\n",
           t.elements, t.kinks, t.orders[1], t.orders[2], t.orders[3]);
    if (seed == last || y.count[KINK] + y.count[TOO_FAR] > n / 20 + 1) {
        printf("%s: too few programs could be tested\n", name);
        y.failed++;
    }
    *passed += y.count[GOOD_CASE];
    *failed += y.failed;
}

static int is_program(const struct dirent *e)
{
    size_t n = strlen(e->d_name);

    return n > 5 && strcmp(e->d_name + n - 5, ".weft") == 0;
}

static void one_file(const char *dir, const char *name, int64_t *passed, int64_t *failed)
{
    Arena a;
    Err err = { 0 };
    Sample s;
    Text path;
    Tester t = { .arena = &a, .rng = { 1 } };
    Verdict v = GOOD_CASE;
    Status st;

    arena_init(&a, &os_libc, &err);
    path = t.log = (Text){ .arena = &a };
    st = CATCH(&err, text_f(&path, "%s/%s", dir, name); sample_file(&t, path.s, &s);
               v = test_orders(&t, s, 3));
    if (st == ST_OK && v == GOOD_CASE) {
        ++*passed;
    } else {
        ++*failed;
        printf("==== %s: %s\n%s\n", name, st == ST_OK ? verdict_text[v] : err.msg,
               t.log.n > 0 ? t.log.s : "");
    }
    arena_free(&a);
}

static void known(const char *dir, int64_t *passed, int64_t *failed)
{
    struct dirent **list;
    int n = scandir(dir, &list, is_program, alphasort);

    for (int i = 0; i < n; i++) {
        one_file(dir, list[i]->d_name, passed, failed);
        free(list[i]);
    }
    if (n >= 0)
        free(list);
    *failed += n <= 0;
    printf("known: %d programs of %s\n", n, dir);
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";
    int64_t n = argc > 2 ? strtoll(argv[2], NULL, 10) : 100, passed = 0, failed = 0;
    uint64_t seed = argc > 3 ? strtoull(argv[3], NULL, 10) : test_seed();
    bool all = strcmp(mode, "all") == 0;

    if (argc > 2 && (all || strcmp(mode, "known") == 0))
        known(argv[2], &passed, &failed);
    if (all || strcmp(mode, "real") == 0)
        run("real", test_real, all ? test_scale(5000) : n, seed, 1, &passed, &failed);
    if (all || strcmp(mode, "high") == 0)
        run("high", test_real, all ? test_scale(1000) : n, seed + 1000000, 3, &passed, &failed);
    if (all || strcmp(mode, "exact") == 0)
        run("exact", test_exact, all ? test_scale(1000) : n, seed, 3, &passed, &failed);
    if (all || strcmp(mode, "wild") == 0)
        run("wild", test_wild, all ? test_scale(2000) : n, seed, 2, &passed, &failed);
    if (passed + failed == 0) {
        fputs(usage, stderr);
        return 2;
    }
    printf("%" PRId64 " passed, %" PRId64 " failed\n", passed, failed);
    return failed > 0;
}
