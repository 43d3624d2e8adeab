/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The test harness.  A test registers itself:
 *
 *     TEST(an_empty_row_runs_no_iteration)
 *     {
 *         CHECK_EQ(count(row), 0);
 *     }
 *
 * A check that fails prints file:line with both values and leaves the test, also out of a helper
 * function.  test_main runs all tests in the order of file and line. */
#ifndef WEFT_TEST_H
#define WEFT_TEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct Test Test;
struct Test {
    const char *name, *file;
    int line;
    void (*run)(void);
    Test *next;
};

/* [-v | -t] [SUBSTRING]: runs the tests whose file:name has SUBSTRING; -v names each before it
 * runs, -t gives the processor time of each, with that of the compilers it ran.  Ends with the
 * line "N passed, N failed"; the exit code is 1 if one failed or none ran.  With
 * WEFT_TEST_SHARE="n WORD..." only every n-th runs of those whose file:name has one of the words
 * (of all tests, where no word is given). */
int test_main(int argc, char **argv);
void test_add(Test *);

/* n * WEFT_TEST_SCALE / 100 (unset: n), at least 1: for counts of random cases. */
int64_t test_scale(int64_t n);
/* The seed of random cases: WEFT_TEST_SEED (unset: 1, the same cases in every run). */
uint64_t test_seed(void);
/* DIR/name, where DIR is this process's own scratch folder, removed at the end.  The text stays. */
const char *test_path(const char *name);
/* The same random numbers in every run: splitmix64. */
uint64_t test_random(uint64_t *state);

_Noreturn void test_fail(const char *file, int line, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
_Noreturn void test_skip(const char *reason); /* leaves the test, which counts as skipped */

void check_eq(const char *file, int line, const char *what, int64_t a, int64_t b);
void check_str(const char *file, int line, const char *what, const char *a, const char *b);
void check_has(const char *file, int line, const char *what, const char *text, const char *part);
void check_near(const char *file, int line, const char *what, double a, double b, double tol);
void check_same(const char *file, int line, const char *what, double a, double b);

#define TEST(name)                                                       \
    static void name(void);                                              \
    static Test name##_test = { #name, __FILE__, __LINE__, name, NULL }; \
    __attribute__((constructor)) static void name##_add(void)            \
    {                                                                    \
        test_add(&name##_test);                                          \
    }                                                                    \
    static void name(void)

#define CHECK(cond) ((cond) ? (void)0 : test_fail(__FILE__, __LINE__, "not true: %s", #cond))
/* Integers and enums, as int64_t. */
#define CHECK_EQ(a, b) check_eq(__FILE__, __LINE__, #a " == " #b, (int64_t)(a), (int64_t)(b))
#define CHECK_STR(a, b) check_str(__FILE__, __LINE__, #a " is " #b, a, b)
/* The text has the part in it: for messages. */
#define CHECK_HAS(text, part) check_has(__FILE__, __LINE__, #text " has " #part, text, part)
/* |a - b| <= tol; NaN fails, equal infinities pass. */
#define CHECK_NEAR(a, b, tol) check_near(__FILE__, __LINE__, #a " ~ " #b, a, b, tol)
/* The same 64 bits, so that NaN equals itself and -0 is not 0. */
#define CHECK_SAME(a, b) check_same(__FILE__, __LINE__, #a " same as " #b, a, b)

#endif
