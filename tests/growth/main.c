/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The command weft_growth: what each pass costs as programs grow.  A program of twice the size may
 * take 2.4 times the steps in every pass and 2.4 times the memory; a statement is lowered and emitted in
 * 100 kB, and in so many steps as take less than 2 ms.  Steps are counted, not timed, so that a busy
 * machine changes nothing. */
#include "growth/growth.h"

#include "api/api_int.h"
#include "emit/emit.h"
#include "grad/grad.h"
#include "lower/lower.h"
#include "unit/trap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char usage[] =
    "weft_growth [N [SHAPE]]     no pass grows faster than allowed from N statements to 2 N (400)\n"
    "weft_growth front           programs of 1 MB are parsed, checked, printed, differentiated\n"
    "weft_growth table [SHAPE] [MOST]  what each pass costs, from 250 statements to MOST (4000)\n";

enum { MOST_ROWS = 64, MEGABYTE = 1000000 };
static const double growth = 1.2; /* times that of the program: 2.4 for one of twice the size */
/* Up to MOST_STATEMENTS, or what the shape allows, a statement may take so much in all passes. */
enum { MOST_STATEMENTS = 4000 };
static const double statement_steps = 2e6, statement_bytes = 100e3;
/* What a pass may take whatever it does: less than half a millisecond, and two thousand steps a
 * statement, which is a thousandth of what all passes may take; of a shape that the language ends
 * early, less than 10 ms when it is as large as it may be.  All passes may take three times that.
 * Memory comes in megabytes. */
static const double floor_steps = 5e5, floor_statement = 2e3, floor_limited = 12e6;
static const double floor_bytes = 4 << 20;
static const double front_steps = 2e9, front_bytes = 1e9;

typedef struct Row { /* of one pass */
    const char *pass;
    double steps, ms, bytes; /* bytes: that it took, whether or not they were given back */
} Row;

typedef struct Table {
    Row row[MOST_ROWS];
    int n;
    double text; /* bytes of the program, */
    double size; /* and of what is lowered, its gradient perhaps */
    double peak; /* of all memory that was held at a time */
} Table;

typedef struct Clock {
    Arena *arena; /* of the program at hand */
    Table *to;
    double steps, ms, bytes; /* at the last stop */
} Clock;

static double cpu_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static void start(Clock *c, Arena *arena)
{
    c->arena = arena;
    c->bytes = (double)arena->total;
    c->steps = (double)growth_steps;
    c->ms = cpu_ms();
}

static void stop(Clock *c, const char *pass)
{
    c->to->row[c->to->n++] = (Row){ pass, (double)growth_steps - c->steps, cpu_ms() - c->ms,
                                    (double)c->arena->total - c->bytes };
    start(c, c->arena);
}

static Prog *front(Clock *c, Arena *a, const char *text, bool gradient)
{
    Text printed = { .arena = a };
    Prog *p;

    start(c, a);
    p = ir_parse(a, "growth.weft", text, strlen(text));
    stop(c, "parse");
    ir_check(p);
    stop(c, "check");
    if (gradient) {
        p = grad_reverse(a, p, &(GradOptions){ 0 });
        stop(c, "grad");
    }
    ir_print(&printed, p);
    stop(c, "print");
    c->to->size = (double)printed.n;
    return p;
}

/* All passes on one program, in the arena `trees`, where its garbage is collected. */
static void lower(Clock *c, Arena *a, Arena *trees, const Prog *p, const char *sched)
{
    static const Target target = { .unit = { VECTOR_LANES(8, 4), 16, VECTOR_CORE } };
    Aim aim = api_aim_at(a->err, &target, sched);
    Text printed = { .arena = a }, text = { .arena = a };
    Kernel k = { 0 };

    start(c, a);
    k.p = ir_copy_alone(a, trees, p);
    stop(c, "copy");
    k.phase = (Node **)k.p->phase;
    for (const Pass *s = api_pass; s->name != NULL; s++) {
        start(c, trees);
        api_run_pass(s, &k, &aim);
        stop(c, s->name);
        api_collect_garbage(&k);
    }
    start(c, a);
    ir_print(&printed, k.p);
    stop(c, "print after all");
    api_collect_garbage(&k); /* who prints the loops does not emit them too */
    start(c, a);
    emit_text(&text, &emit_dialect_c, k.p, k.phase, k.n, "");
    stop(c, "emit");
}

static bool measure(const Shape *s, int n, bool gradient, bool all, Table *out)
{
    Err err = { 0 };
    Arena arena, trees;
    Text text = { .arena = &arena };
    Clock c = { .to = out };
    Status status;

    *out = (Table){ .n = 0 };
    growth_peak = 0;
    arena_init(&arena, &growth_os, &err);
    arena_init(&trees, &growth_os, &err);
    s->write(&text, n);
    out->text = (double)text.n;
    status = CATCH(&err, {
        Prog *p = front(&c, &arena, text.s, gradient);

        if (all)
            lower(&c, &arena, &trees, p, s->sched);
    });
    if (status != ST_OK)
        printf("%s %d%s: refused after %s: %s\n", s->name, n, gradient ? " gradient" : "",
               out->n > 0 ? out->row[out->n - 1].pass : "nothing", err.msg);
    out->peak = (double)growth_peak;
    arena_free(&trees);
    arena_free(&arena);
    return status == ST_OK;
}

/* Steps of a program of n statements that are not judged. */
static double floor_of(const Shape *s, int n, bool gradient)
{
    int most = gradient ? s->most_grad : s->most;
    double few = most > 0 ? floor_limited * n / most : floor_statement * n;

    return few > floor_steps ? few : floor_steps;
}

static bool is_too_fast(const Row *once, const Row *twice, double factor, double few)
{
    return twice->steps > factor * once->steps && twice->steps > few;
}

/* How many times the steps the larger program may take.  That of a gradient may be short, or long. */
static double factor_of(const Table *once, const Table *twice)
{
    double text = twice->text / once->text, size = twice->size / once->size;

    return growth * (text > size ? text : size);
}

/* Statements of usual length: a gradient may have few that are long. */
static double statements(const Table *t, int n)
{
    return n > t->size / 64 ? n : t->size / 64;
}

static Row total(const Table *t)
{
    Row sum = { .pass = "total" };

    for (int i = 0; i < t->n; i++) {
        sum.steps += t->row[i].steps;
        sum.ms += t->row[i].ms;
        sum.bytes += t->row[i].bytes;
    }
    return sum;
}

/* n, or what the shape allows. */
static int size_of(const Shape *s, int n, bool gradient)
{
    int most = gradient ? s->most_grad : s->most;

    return most != 0 && most < n ? most : n;
}

/* Whether the shape passes at n and 2 n; says what does not. */
static bool test(const Shape *s, int n, bool gradient)
{
    Table once, twice;
    Row all, half;
    double factor, few, many;
    bool good = true;

    n = size_of(s, 2 * n, gradient) / 2;
    if (!measure(s, n, gradient, true, &once) || !measure(s, 2 * n, gradient, true, &twice))
        return false;
    factor = factor_of(&once, &twice);
    few = floor_of(s, 2 * n, gradient);
    for (int i = 0; i < twice.n; i++) {
        const Row *a = &once.row[i], *b = &twice.row[i];

        if (!is_too_fast(a, b, factor, few))
            continue;
        printf("%s%s: pass %s takes %.0f thousand steps and %.1f MB for %d, %.0f and %.1f for %d\n",
               s->name, gradient ? " gradient" : "", b->pass, a->steps / 1e3, a->bytes / 1e6, n,
               b->steps / 1e3, b->bytes / 1e6, 2 * n);
        good = false;
    }
    all = total(&twice);
    half = total(&once);
    if (is_too_fast(&half, &all, factor, 3 * few) || twice.peak > factor * once.peak + floor_bytes) {
        printf("%s%s: all passes take %.0f million steps and %.1f MB for %d, %.0f and %.1f for %d\n",
               s->name, gradient ? " gradient" : "", half.steps / 1e6, once.peak / 1e6, n,
               all.steps / 1e6, twice.peak / 1e6, 2 * n);
        good = false;
    }
    many = statements(&twice, 2 * n);
    if (all.steps > statement_steps * many || twice.peak > statement_bytes * many + floor_bytes) {
        printf("%s%s: %d take %.0f million steps and %.1f MB\n", s->name,
               gradient ? " gradient" : "", 2 * n, all.steps / 1e6, twice.peak / 1e6);
        good = false;
    }
    return good;
}

/* Whether a program of a megabyte, or the largest of its shape, is read and printed soon enough. */
static bool test_front(const Shape *s, bool gradient)
{
    int n = size_of(s, 1000, gradient);
    Table t;
    Row all;

    if (!measure(s, n, gradient, false, &t))
        return false;
    if (n == 1000 && !measure(s, (int)(n * MEGABYTE / t.text), gradient, false, &t))
        return false;
    all = total(&t);
    if (all.steps <= front_steps && t.peak <= front_bytes)
        return true;
    printf("%s%s: %.0f bytes of text take %.0f million steps and %.1f MB\n", s->name,
           gradient ? " gradient" : "", t.text, all.steps / 1e6, t.peak / 1e6);
    return false;
}

static int test_all(int n, const char *only)
{
    int passed = 0, failed = 0;

    for (const Shape *s = growth_shape; s->name != NULL; s++)
        for (int gradient = 0; gradient < 2; gradient++)
            if ((gradient && s->most_grad < 0) || (only != NULL && strcmp(only, s->name) != 0))
                continue;
            else if (n > 0 ? test(s, n, gradient) : test_front(s, gradient))
                passed++;
            else
                failed++;
    printf("%d passed, %d failed\n", passed, failed);
    return failed > 0;
}

static void show(const Shape *s, bool gradient, int most)
{
    Table t;

    for (int n = 250; n <= most; n *= 2) {
        int size = size_of(s, n, gradient);

        if (!measure(s, size, gradient, true, &t))
            return;
        t.row[t.n++] = total(&t);
        for (int i = 0; i < t.n; i++)
            printf("%-12s %-8s %5d %8.0f  %-16s %12.3f M steps %9.2f ms %10.2f MB\n", s->name,
                   gradient ? "gradient" : "", size, t.text, t.row[i].pass, t.row[i].steps / 1e6,
                   t.row[i].ms, t.row[i].bytes / 1e6);
        printf("%-12s %-8s %5d peak %.1f MB\n", s->name, gradient ? "gradient" : "", size,
               t.peak / 1e6);
        if (size < n)
            return;
    }
}

int main(int argc, char **argv)
{
    const char *only = argc > 2 ? argv[2] : "all";
    int most = argc > 3 ? atoi(argv[3]) : 4000;

    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc == 1 || atoi(argv[1]) > 0)
        return test_all(argc == 1 ? 400 : atoi(argv[1]), argc > 2 ? argv[2] : NULL);
    if (strcmp(argv[1], "front") == 0)
        return test_all(0, NULL);
    if (strcmp(argv[1], "table") != 0) {
        fputs(usage, stderr);
        return 2;
    }
    for (const Shape *s = growth_shape; s->name != NULL; s++)
        for (int gradient = 0; gradient < 2; gradient++)
            if ((strcmp(only, "all") == 0 || strcmp(only, s->name) == 0) &&
                (!gradient || s->most_grad >= 0))
                show(s, gradient, most);
    return 0;
}
