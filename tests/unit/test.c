/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The test harness behind test.h. */
#include "unit/test.h"

#include <ftw.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum Outcome { PASSED, FAILED, SKIPPED };

static Test *tests;
static const Test *running;
static jmp_buf leave;
static char scratch[256];

/* Constructors run in the linker's order; the list is kept in the order of file and line. */
void test_add(Test *t)
{
    Test **at = &tests;

    for (; *at != NULL; at = &(*at)->next) {
        int order = strcmp((*at)->file, t->file);

        if (order > 0 || (order == 0 && (*at)->line > t->line))
            break;
    }
    t->next = *at;
    *at = t;
}

_Noreturn void test_fail(const char *file, int line, const char *fmt, ...)
{
    va_list ap;

    printf("%s:%d: %s: ", file, line, running == NULL ? "outside a test" : running->name);
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    printf("\n");
    fflush(stdout);
    if (running == NULL)
        exit(1);
    longjmp(leave, FAILED);
}

_Noreturn void test_skip(const char *reason)
{
    printf("skipped: %s: %s\n", running->name, reason);
    longjmp(leave, SKIPPED);
}

void check_eq(const char *file, int line, const char *what, int64_t a, int64_t b)
{
    if (a != b)
        test_fail(file, line, "%s: %lld and %lld", what, (long long)a, (long long)b);
}

void check_str(const char *file, int line, const char *what, const char *a, const char *b)
{
    if (a == NULL || b == NULL || strcmp(a, b) != 0)
        test_fail(file, line, "%s:\n  %s\n  %s", what, a == NULL ? "(NULL)" : a,
                  b == NULL ? "(NULL)" : b);
}

void check_has(const char *file, int line, const char *what, const char *text, const char *part)
{
    if (text == NULL || strstr(text, part) == NULL)
        test_fail(file, line, "%s:\n  %s", what, text == NULL ? "(NULL)" : text);
}

void check_near(const char *file, int line, const char *what, double a, double b, double tol)
{
    double err = a == b ? 0 : fabs(a - b);

    if (!(err <= tol))
        test_fail(file, line, "%s: %.17g and %.17g differ by %.3g, allowed %.3g", what, a, b, err,
                  tol);
}

void check_same(const char *file, int line, const char *what, double a, double b)
{
    uint64_t x, y;

    memcpy(&x, &a, sizeof x);
    memcpy(&y, &b, sizeof y);
    if (x != y)
        test_fail(file, line, "%s: %.17g (%016llx) and %.17g (%016llx)", what, a,
                  (unsigned long long)x, b, (unsigned long long)y);
}

int64_t test_scale(int64_t n)
{
    const char *text = getenv("WEFT_TEST_SCALE");
    long percent = text == NULL ? 100 : strtol(text, NULL, 10);
    int64_t scaled = n / 100 * percent + n % 100 * percent / 100;

    return scaled < 1 ? 1 : scaled;
}

uint64_t test_seed(void)
{
    const char *text = getenv("WEFT_TEST_SEED");

    return text == NULL || text[0] == 0 ? 1 : strtoull(text, NULL, 10);
}

uint64_t test_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st, (void)kind, (void)at;
    return remove(path);
}

static void remove_scratch(void)
{
    nftw(scratch, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

const char *test_path(const char *name)
{
    static char paths[8][512]; /* the last eight stay valid */
    static unsigned next;
    char *path = paths[next++ % 8];

    if (scratch[0] == 0) {
        const char *tmp = getenv("TMPDIR");

        snprintf(scratch, sizeof scratch, "%s/weft-test-XXXXXX", tmp == NULL ? "/tmp" : tmp);
        if (mkdtemp(scratch) == NULL)
            test_fail(__FILE__, __LINE__, "cannot make the scratch folder %s", scratch);
        atexit(remove_scratch);
    }
    snprintf(path, sizeof paths[0], "%s/%s", scratch, name);
    return path;
}

static bool is_chosen(const Test *t, const char *part)
{
    char full[512];

    snprintf(full, sizeof full, "%s:%s", t->file, t->name);
    return part == NULL || strstr(full, part) != NULL;
}

/* Whether file:name has one of the words in it, with blanks between them; true without a word. */
static bool has_word(const char *full, const char *words)
{
    char word[64];
    int n = 0, count = 0;

    for (; sscanf(words, "%63s%n", word, &n) == 1; words += n, count++)
        if (strstr(full, word) != NULL)
            return true;
    return count == 0;
}

/* Whether the next of the chosen tests runs, by WEFT_TEST_SHARE. */
static bool in_share(const Test *t)
{
    static long met;
    const char *text = getenv("WEFT_TEST_SHARE");
    char full[512], *words = NULL;
    long share = text == NULL ? 1 : strtol(text, &words, 10);

    snprintf(full, sizeof full, "%s:%s", t->file, t->name);
    return share <= 1 || !has_word(full, words) || met++ % share == 0;
}

static enum Outcome run_one(const Test *t)
{
    running = t;
    switch (setjmp(leave)) {
    case 0: t->run(); return PASSED;
    case SKIPPED: return SKIPPED;
    default: return FAILED;
    }
}

/* Processor seconds of this process and of the compilers it waited for: unlike the time on the
 * clock they say the same on a machine that is busy with something else. */
static double processor_seconds(void)
{
    double total = 0;

    for (int k = 0; k < 2; k++) {
        struct rusage use;

        getrusage(k == 0 ? RUSAGE_SELF : RUSAGE_CHILDREN, &use);
        total += (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
                 1e-6 * (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec);
    }
    return total;
}

int test_main(int argc, char **argv)
{
    bool loud = argc > 1 && strcmp(argv[1], "-v") == 0;
    bool timed = argc > 1 && strcmp(argv[1], "-t") == 0;
    const char *part = argc > 1 + (loud || timed) ? argv[1 + (loud || timed)] : NULL;
    int count[3] = { 0 };

    for (const Test *t = tests; t != NULL; t = t->next) {
        double start = processor_seconds();

        if (!is_chosen(t, part) || !in_share(t))
            continue;
        if (loud)
            printf("%s\n", t->name);
        fflush(stdout); /* a test that crashes must not take the lines before it along */
        count[run_one(t)]++;
        if (timed)
            printf("%8.3f s  %s:%s\n", processor_seconds() - start, t->file, t->name);
    }
    running = NULL;
    printf("%d passed, %d failed", count[PASSED], count[FAILED]);
    if (count[SKIPPED] > 0)
        printf(", %d skipped", count[SKIPPED]);
    printf("\n");
    return count[FAILED] > 0 || count[PASSED] + count[SKIPPED] == 0;
}
