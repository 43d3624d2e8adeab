/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * src/base/num.c: numbers as text in every locale, and 16-bit floats. */
#include "base/base.h"
#include "unit/test.h"

#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double from_bits(uint64_t bits)
{
    double v;

    memcpy(&v, &bits, sizeof v);
    return v;
}

static void check_round_trip(double v)
{
    char text[NUM_TEXT];
    int n = num_print(text, v);
    double back = 0;

    CHECK_EQ(n, strlen(text));
    CHECK(n > 0 && n < NUM_TEXT);
    if (!num_parse(text, (size_t)n, &back))
        test_fail(__FILE__, __LINE__, "%s does not read", text);
    if (isnan(v))
        CHECK(isnan(back));
    else
        CHECK_SAME(back, v);
}

TEST(printed_numbers_read_back_the_same)
{
    int64_t rounds = test_scale(320000);
    uint64_t seed = 7;

    for (int64_t i = 0; i < rounds; i++) {
        uint64_t r = test_random(&seed);

        check_round_trip(from_bits(r));                        /* any bits */
        check_round_trip((double)(int64_t)(r >> 40) / 1024.0); /* short ones */
        if (i % 8 == 0)
            check_round_trip(from_bits(r >> 12));               /* subnormals */
        check_round_trip((double)(int64_t)(r % 1000000) / 1e4); /* decimals */
    }
}

TEST(printed_extremes_read_back_the_same)
{
    const double v[] = { 0.0,
                         -0.0,
                         DBL_MAX,
                         -DBL_MAX,
                         DBL_MIN,
                         -DBL_MIN,
                         DBL_TRUE_MIN,
                         DBL_EPSILON,
                         1.0 / 3,
                         0.1,
                         9007199254740993.0,
                         1e22,
                         1e23,
                         2.2250738585072011e-308,
                         (double)INFINITY,
                         (double)-INFINITY,
                         (double)NAN };

    for (size_t i = 0; i < sizeof v / sizeof *v; i++)
        check_round_trip(v[i]);
}

static const struct {
    double v;
    const char *text;
} shortest[] = {
    { 0.0, "0" },         { -0.0, "-0" },       { 1.0, "1" },
    { -2.5, "-2.5" },     { 0.1, "0.1" },       { 1.0 / 3, "0.3333333333333333" },
    { 1e22, "1e+22" },    { 1e-7, "1e-07" },    { 123456789012345.0, "123456789012345" },
    { 5e-324, "5e-324" }, { 1e-320, "1e-320" }, { DBL_MAX, "1.7976931348623157e+308" },
};

TEST(numbers_print_as_their_shortest_text)
{
    char text[NUM_TEXT];

    for (size_t i = 0; i < sizeof shortest / sizeof *shortest; i++) {
        num_print(text, shortest[i].v);
        CHECK_STR(text, shortest[i].text);
    }
    num_print(text, (double)INFINITY);
    CHECK_STR(text, "inf");
    num_print(text, (double)-INFINITY);
    CHECK_STR(text, "-inf");
    num_print(text, (double)NAN);
    CHECK_STR(text, "nan");
}

/* One digit fewer must not read back as the same number. */
TEST(no_shorter_text_would_do)
{
    int64_t rounds = test_scale(20000);
    uint64_t seed = 3;

    for (int64_t i = 0; i < rounds; i++) {
        double v = from_bits(test_random(&seed) >> (i % 3 ? 0 : 12)), back;
        char text[NUM_TEXT], fewer[64];
        int digits = 0;

        if (!isfinite(v))
            continue;
        num_print(text, v);
        for (const char *s = text; *s != 0 && *s != 'e'; s++)
            digits += *s >= '0' && *s <= '9';
        if (digits < 2)
            continue;
        snprintf(fewer, sizeof fewer, "%.*e", digits - 2, v);
        CHECK(num_parse(fewer, strlen(fewer), &back));
        if (back == v && strlen(text) > 0 && strspn(text, "-0.") == 0)
            test_fail(__FILE__, __LINE__, "%s would do for %s", fewer, text);
    }
}

static const char *const good_numbers[] = {
    "0",
    "1",
    "+1",
    "-1",
    "1.5",
    ".5",
    "5.",
    "1e5",
    "1E5",
    "1e+5",
    "1e-5",
    "1.5e5",
    "00.1",
    "-.5e1",
    "1e999",
    "1e-999",
    "12345678901234567890123456789",
};
static const char *const bad_numbers[] = {
    "",     "+",    "-",        ".",    "e",   "e5",  ".e5",   "1e",   "1e+",   "1e-",
    "1e5.", "1..2", "1,5",      " 1",   "1 ",  "1x",  "0x10",  "1e5x", "--1",   "+-1",
    "in",   "info", "infinity", "nano", "NaN", "Inf", "1_000", "1f",   "1e5e5", "1-2",
};

TEST(numbers_in_every_written_form_are_read)
{
    for (size_t i = 0; i < sizeof good_numbers / sizeof *good_numbers; i++) {
        double v = -77;

        if (!num_parse(good_numbers[i], strlen(good_numbers[i]), &v))
            test_fail(__FILE__, __LINE__, "refused: %s", good_numbers[i]);
        CHECK_SAME(v, strtod(good_numbers[i], NULL));
    }
}

TEST(what_is_no_number_is_refused)
{
    for (size_t i = 0; i < sizeof bad_numbers / sizeof *bad_numbers; i++) {
        double v = -77;

        if (num_parse(bad_numbers[i], strlen(bad_numbers[i]), &v))
            test_fail(__FILE__, __LINE__, "read: '%s'", bad_numbers[i]);
        CHECK_SAME(v, -77);
    }
}

TEST(signed_inf_and_nan_are_read)
{
    double v;

    CHECK(num_parse("inf", 3, &v) && v > DBL_MAX);
    CHECK(num_parse("+inf", 4, &v) && v > DBL_MAX);
    CHECK(num_parse("-inf", 4, &v) && v < -DBL_MAX);
    CHECK(num_parse("nan", 3, &v) && isnan(v));
    CHECK(num_parse("-nan", 4, &v) && isnan(v));
}

TEST(a_number_ends_where_its_length_says)
{
    double v;
    int64_t i;

    CHECK(num_parse("1234", 2, &v) && v == 12);
    CHECK(num_parse("1.5e7", 3, &v) && v == 1.5);
    CHECK(num_parse_int("1234", 2, &i) && i == 12);
    CHECK(!num_parse("1\0002", 3, &v));
}

TEST(a_number_of_a_thousand_digits_is_read_and_a_longer_one_refused)
{
    char text[1100];
    double v;

    memset(text, '0', sizeof text);
    text[0] = '7';
    text[1] = '.';
    CHECK(num_parse(text, 1024, &v) && v == 7);
    CHECK(!num_parse(text, 1025, &v));
    memset(text, '9', sizeof text);
    CHECK(num_parse(text, 300, &v) && v == 1e300);
}

/* A locale whose decimal point is a comma; the runner makes one for machines that have none. */
static bool set_comma_locale(void)
{
    static const char *const names[] = { "de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8",
                                         "fr_FR.utf8",  "de_DE",      "fr_FR" };

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (setlocale(LC_ALL, names[i]) != NULL && localeconv()->decimal_point[0] == ',')
            return true;
    setlocale(LC_ALL, "C");
    return false;
}

TEST(numbers_are_the_same_in_a_locale_with_a_decimal_comma)
{
    char text[NUM_TEXT], half[16];
    double v = 0, w = 0;
    bool reads, refuses;
    uint64_t seed = 5;

    if (!set_comma_locale())
        test_skip("no locale with a decimal comma is installed");
    snprintf(half, sizeof half, "%.1f", 0.5);
    num_print(text, -1234.5e-100);
    reads = num_parse("1234567.25", 10, &v);
    refuses = !num_parse("1,5", 3, &w);
    for (int i = 0; i < 1000; i++)
        check_round_trip(from_bits(test_random(&seed)));
    setlocale(LC_ALL, "C");
    CHECK_STR(half, "0,5"); /* the locale was really another */
    CHECK_STR(text, "-1.2345e-97");
    CHECK(reads && v == 1234567.25);
    CHECK(refuses);
}

static const struct {
    const char *text;
    int64_t v;
} integers[] = {
    { "0", 0 },
    { "-0", 0 },
    { "+7", 7 },
    { "007", 7 },
    { "-12", -12 },
    { "9223372036854775807", INT64_MAX },
    { "-9223372036854775808", INT64_MIN },
};
static const char *const bad_integers[] = {
    "",
    "+",
    "-",
    "1.0",
    "1e3",
    " 1",
    "1 ",
    "0x1",
    "--1",
    "1-",
    "9223372036854775808",
    "a",
    "1:",
    "1/",
    "-9223372036854775809",
    "99999999999999999999",
    "92233720368547758070",
    "\xff",
};

TEST(integers_are_read_to_the_last_one_that_fits)
{
    int64_t v;

    for (size_t i = 0; i < sizeof integers / sizeof *integers; i++) {
        CHECK(num_parse_int(integers[i].text, strlen(integers[i].text), &v));
        CHECK_EQ(v, integers[i].v);
    }
    v = -77;
    for (size_t i = 0; i < sizeof bad_integers / sizeof *bad_integers; i++)
        if (num_parse_int(bad_integers[i], strlen(bad_integers[i]), &v))
            test_fail(__FILE__, __LINE__, "read: '%s'", bad_integers[i]);
    CHECK_EQ(v, -77);
}

/* ---- 16-bit floats */

typedef struct Half { /* one of the two formats, described without the code under test */
    float (*widen)(uint16_t);
    uint16_t (*narrow)(double);
    int mbits, bias;
} Half;

static const Half halves[] = { { num_f16, num_to_f16, 10, 15 }, { num_bf16, num_to_bf16, 7, 127 } };

/* The value by the definition of the format: (-1)^s 2^(e - bias) (1 + m / 2^mbits). */
static double defined(const Half *f, uint16_t h)
{
    int e = (h & 0x7fff) >> f->mbits, m = h & ((1 << f->mbits) - 1),
        top = (1 << (15 - f->mbits)) - 1;
    double unit = ldexp(1, (e == 0 ? 1 : e) - f->bias - f->mbits), v;

    if (e == top)
        v = m == 0 ? (double)INFINITY : (double)NAN;
    else
        v = unit * (m + (e == 0 ? 0 : 1 << f->mbits));
    return h & 0x8000 ? -v : v;
}

TEST(every_small_float_widens_to_its_value_and_comes_back)
{
    for (int f = 0; f < 2; f++)
        for (uint32_t h = 0; h < 65536; h++) {
            double want = defined(&halves[f], (uint16_t)h),
                   got = (double)halves[f].widen((uint16_t)h);
            uint16_t back = halves[f].narrow(got);

            if (isnan(want)) {
                CHECK(isnan(got) && isnan(defined(&halves[f], back)));
                CHECK_EQ(back >> 15, h >> 15);
                continue;
            }
            CHECK_SAME(got, want);
            CHECK_EQ(back, h);
        }
}

/* Between each two neighbours: the tie goes to the even one, anything off the tie to the nearer. */
TEST(narrowing_rounds_once_to_nearest_even)
{
    for (int f = 0; f < 2; f++) {
        const Half *half = &halves[f];
        uint32_t inf = 0x7fffu >> half->mbits << half->mbits;

        for (uint32_t h = 0; h < inf; h++) {
            double a = defined(half, (uint16_t)h);
            double b = h + 1 < inf ? defined(half, (uint16_t)(h + 1))
                                   : 2 * a - defined(half, (uint16_t)(h - 1));
            double tie = (a + b) / 2;
            uint32_t even = h % 2 == 0 ? h : h + 1;

            CHECK_EQ(half->narrow(tie), even);
            CHECK_EQ(half->narrow(-tie), even | 0x8000);
            CHECK_EQ(half->narrow(nextafter(tie, 0)), h);
            CHECK_EQ(half->narrow(nextafter(tie, (double)INFINITY)), h + 1);
        }
    }
}

TEST(narrowing_overflows_to_infinity_and_underflows_to_zero)
{
    for (int f = 0; f < 2; f++) {
        const Half *half = &halves[f];
        uint16_t inf = (uint16_t)(0x7fffu >> half->mbits << half->mbits);

        CHECK_EQ(half->narrow(DBL_MAX), inf);
        CHECK_EQ(half->narrow(-DBL_MAX), inf | 0x8000);
        CHECK_EQ(half->narrow((double)INFINITY), inf);
        CHECK_EQ(half->narrow((double)-INFINITY), inf | 0x8000);
        CHECK_EQ(half->narrow(DBL_TRUE_MIN), 0);
        CHECK_EQ(half->narrow(-DBL_TRUE_MIN), 0x8000);
        CHECK_EQ(half->narrow(0.0), 0);
        CHECK_EQ(half->narrow(-0.0), 0x8000);
    }
    CHECK_EQ(num_to_f16(65519.99), 0x7bff);
    CHECK_EQ(num_to_f16(65520.0), 0x7c00);
    /* 1 + 2^-11 + 2^-40 rounds up; by way of f32 it would be a tie and round to even, down */
    CHECK_EQ(num_to_f16(1 + ldexp(1, -11) + ldexp(1, -40)), 0x3c01);
}
