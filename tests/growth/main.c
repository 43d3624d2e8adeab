/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The command weft_growth: what each pass costs as programs grow.  A program of twice the size may
 * take 2.4 times the CPU time and memory in every pass, and a statement at most 2 ms and 100 kB in
 * all of lowering.  Times are the least of several runs, which are repeated before a pass fails. */
#include "growth/growth.h"

#include "api/api_int.h"
#include "grad/grad.h"
#include "lower/lower.h"
#include "unit/trap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char usage[] =
    "weft_growth                 no pass grows faster than allowed\n"
    "weft_growth table [SHAPE] [MOST]  what each pass costs, from 250 statements to MOST (4000)\n";

enum { MOST_ROWS = 64, TRIES = 4 };
/* What is too little to tell: a pass has to take more to be judged. */
static const double floor_ms = 2, floor_bytes = 4 << 20;
static const double growth = 2.4, statement_ms = 2, statement_bytes = 100e3;

typedef struct Row { /* of one pass */
    const char *pass;
    double ms, bytes;
} Row;

typedef struct Table {
    Row row[MOST_ROWS];
    int n;
    double text; /* bytes of the program */
} Table;

typedef struct Clock {
    Arena *arena;
    Table *to;
    double ms, bytes; /* at the last stop */
} Clock;

static double cpu_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static void stop(Clock *c, const char *pass)
{
    c->to->row[c->to->n++] = (Row){ pass, cpu_ms() - c->ms, (double)c->arena->total - c->bytes };
    c->bytes = (double)c->arena->total;
    c->ms = cpu_ms();
}

static void front(Clock *c, const char *text, bool gradient, Prog **out)
{
    Text printed = { .arena = c->arena };
    Prog *p;

    c->ms = cpu_ms();
    p = ir_parse(c->arena, "growth.weft", text, strlen(text));
    stop(c, "parse");
    ir_check(p);
    stop(c, "check");
    if (gradient) {
        p = grad_reverse(c->arena, p, &(GradOptions){ 0 });
        stop(c, "grad");
    }
    ir_print(&printed, p);
    stop(c, "print");
    *out = ir_copy(c->arena, p);
    stop(c, "copy");
}

/* All passes on one program, each with its time and memory. */
static void lower(Arena *a, const char *text, bool gradient, Table *to)
{
    static const Isa isa = { .bytes = 32, .registers = 16 };
    Clock c = { .arena = a, .to = to };
    Aim aim = api_aim(&isa);
    Text printed = { .arena = a };
    Kernel k = { 0 };

    front(&c, text, gradient, &k.p);
    k.phase = (Node **)k.p->phase;
    for (const Pass *s = api_pass; s->name != NULL; s++) {
        api_run_pass(s, &k, &aim);
        stop(&c, s->name);
    }
    ir_print(&printed, k.p);
    stop(&c, "print after all");
}

static bool measure(const Shape *s, int n, bool gradient, Table *out)
{
    Err err = { 0 };
    Arena arena;
    Text text = { .arena = &arena };
    Status status;

    *out = (Table){ .n = 0 };
    arena_init(&arena, &os_libc, &err);
    s->write(&text, n);
    out->text = (double)text.n;
    status = CATCH(&err, lower(&arena, text.s, gradient, out));
    if (status != ST_OK)
        printf("%s %d%s: refused after %s: %s\n", s->name, n, gradient ? " gradient" : "",
               out->n > 0 ? out->row[out->n - 1].pass : "nothing", err.msg);
    arena_free(&arena);
    return status == ST_OK;
}

/* The least of both. */
static void keep_least(Table *t, const Table *more)
{
    for (int i = 0; i < t->n; i++) {
        t->row[i].ms = more->row[i].ms < t->row[i].ms ? more->row[i].ms : t->row[i].ms;
        t->row[i].bytes =
            more->row[i].bytes < t->row[i].bytes ? more->row[i].bytes : t->row[i].bytes;
    }
}

static bool is_too_fast(const Row *once, const Row *twice)
{
    return (twice->ms > floor_ms && twice->ms > growth * once->ms + floor_ms / 2) ||
           (twice->bytes > floor_bytes && twice->bytes > growth * once->bytes + floor_bytes / 2);
}

/* The first row that grows too fast, or NULL. */
static const Row *worst(const Table *once, const Table *twice)
{
    for (int i = 0; i < twice->n; i++)
        if (is_too_fast(&once->row[i], &twice->row[i]))
            return &twice->row[i];
    return NULL;
}

static Row total(const Table *t)
{
    Row sum = { "total", 0, 0 };

    for (int i = 0; i < t->n; i++) {
        sum.ms += t->row[i].ms;
        sum.bytes += t->row[i].bytes;
    }
    return sum;
}

/* Whether the shape passes at n and 2 n; says what does not. */
static bool test(const Shape *s, int n, bool gradient)
{
    Table once, twice, again;
    const Row *bad;
    Row all;

    if (!measure(s, n, gradient, &once) || !measure(s, 2 * n, gradient, &twice))
        return false;
    for (int i = 0; i < TRIES && worst(&once, &twice) != NULL; i++) {
        if (!measure(s, n, gradient, &again))
            return false;
        keep_least(&once, &again);
        if (!measure(s, 2 * n, gradient, &again))
            return false;
        keep_least(&twice, &again);
    }
    bad = worst(&once, &twice);
    all = total(&twice);
    if (bad != NULL)
        printf("%s%s: pass %s takes %.1f ms and %.1f MB for %d, %.1f ms and %.1f MB for %d\n",
               s->name, gradient ? " gradient" : "", bad->pass, once.row[bad - twice.row].ms,
               once.row[bad - twice.row].bytes / 1e6, n, bad->ms, bad->bytes / 1e6, 2 * n);
    if (all.ms > statement_ms * 2 * n || all.bytes > statement_bytes * 2 * n + floor_bytes) {
        printf("%s%s: %d take %.1f ms and %.1f MB\n", s->name, gradient ? " gradient" : "", 2 * n,
               all.ms, all.bytes / 1e6);
        return false;
    }
    return bad == NULL;
}

static int test_all(int n)
{
    int passed = 0, failed = 0;

    for (const Shape *s = growth_shape; s->name != NULL; s++)
        for (int gradient = 0; gradient < 2; gradient++)
            if (test(s, s->most != 0 && s->most < 2 * n ? s->most / 2 : n, gradient))
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
        int size = s->most != 0 && s->most < n ? s->most : n;

        if (!measure(s, size, gradient, &t))
            return;
        t.row[t.n++] = total(&t);
        for (int i = 0; i < t.n; i++)
            printf("%-12s %-8s %5d %8.0f  %-16s %9.2f ms %10.2f MB\n", s->name,
                   gradient ? "gradient" : "", size, t.text, t.row[i].pass, t.row[i].ms,
                   t.row[i].bytes / 1e6);
        fflush(stdout);
        if (size < n)
            return;
    }
}

int main(int argc, char **argv)
{
    const char *only = argc > 2 ? argv[2] : "all";
    int most = argc > 3 ? atoi(argv[3]) : 4000;

    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc == 1)
        return test_all(250);
    if (strcmp(argv[1], "table") != 0) {
        fputs(usage, stderr);
        return 2;
    }
    for (const Shape *s = growth_shape; s->name != NULL; s++)
        for (int gradient = 0; gradient < 2; gradient++)
            if (strcmp(only, "all") == 0 || strcmp(only, s->name) == 0)
                show(s, gradient, most);
    return 0;
}
