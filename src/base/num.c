/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Numbers as text, the same in every locale; floor division; 16-bit floats. */
#include "base/base.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool int_div(int64_t a, int64_t b, int64_t *r)
{
    if (b == 0 || (a == INT64_MIN && b == -1))
        return true;
    *r = a / b - (a % b != 0 && (a % b < 0) != (b < 0));
    return false;
}

bool int_mod(int64_t a, int64_t b, int64_t *r)
{
    if (b == 0)
        return true;
    *r = b == -1 ? 0 : a % b;
    if (*r != 0 && (*r < 0) != (b < 0))
        *r += b;
    return false;
}

bool num_parse_int(const char *s, size_t n, int64_t *out)
{
    size_t i = n > 0 && (s[0] == '-' || s[0] == '+');
    bool minus = i == 1 && s[0] == '-';
    int64_t v = 0;

    if (i == n)
        return false;
    for (; i < n; i++) {
        int64_t d = s[i] - '0';

        if (d < 0 || d > 9 || int_mul(v, 10, &v) || int_add(v, minus ? -d : d, &v))
            return false;
    }
    *out = v;
    return true;
}

/* [digits] [. digits] [e [sign] digits], with a digit before the exponent. */
static bool is_decimal(const char *s, size_t n)
{
    size_t i = 0, digits = 0;

    for (; i < n && s[i] >= '0' && s[i] <= '9'; i++)
        digits++;
    if (i < n && s[i] == '.')
        for (i++; i < n && s[i] >= '0' && s[i] <= '9'; i++)
            digits++;
    if (digits == 0 || i == n)
        return digits > 0;
    if (s[i] != 'e' && s[i] != 'E')
        return false;
    i++;
    if (i < n && (s[i] == '+' || s[i] == '-'))
        i++;
    if (i == n)
        return false;
    for (; i < n; i++)
        if (s[i] < '0' || s[i] > '9')
            return false;
    return true;
}

/* What this thread's locale prints between 0 and 5 in 0.5. */
static size_t decimal_point(char out[8])
{
    int n = snprintf(out, 8, "%.1f", 0.5);

    memmove(out, out + 1, (size_t)n - 2);
    return (size_t)n - 2;
}

/* strtod wants the locale's decimal point in place of ours. */
static double read_decimal(const char *s, size_t n)
{
    char text[1088], point[8];
    const char *dot = memchr(s, '.', n);
    size_t head = dot == NULL ? n : (size_t)(dot - s), np = decimal_point(point);

    memcpy(text, s, head);
    text[head] = 0;
    if (dot != NULL) {
        memcpy(text + head, point, np);
        memcpy(text + head + np, dot + 1, n - head - 1);
        text[n - 1 + np] = 0;
    }
    return strtod(text, NULL);
}

bool num_parse(const char *s, size_t n, double *out)
{
    bool minus = n > 0 && s[0] == '-';

    if (minus || (n > 0 && s[0] == '+')) {
        s++;
        n--;
    }
    if (n == 3 && memcmp(s, "inf", 3) == 0)
        *out = (double)INFINITY;
    else if (n == 3 && memcmp(s, "nan", 3) == 0)
        *out = (double)NAN;
    else if (n <= 1024 && is_decimal(s, n))
        *out = read_decimal(s, n);
    else
        return false;
    if (minus)
        *out = -*out;
    return true;
}

/* Puts '.' where the locale put its decimal point. */
static int plain_point(char *s)
{
    int n = 0;

    for (int i = 0; s[i] != 0; i++) {
        bool known = strchr("0123456789+-e", s[i]) != NULL;

        if (known)
            s[n++] = s[i];
        else if (s[n - 1] != '.')
            s[n++] = '.';
    }
    s[n] = 0;
    return n;
}

int num_print(char out[NUM_TEXT], double v)
{
    int n = 0;
    double back;

    if (isnan(v))
        return snprintf(out, NUM_TEXT, "nan");
    if (isinf(v))
        return snprintf(out, NUM_TEXT, v < 0 ? "-inf" : "inf");
    /* 15 digits always survive a double, but a subnormal one holds fewer */
    for (int digits = fabs(v) < DBL_MIN ? 1 : 15; digits <= 17; digits++) {
        snprintf(out, NUM_TEXT, "%.*g", digits, v);
        n = plain_point(out);
        if (num_parse(out, (size_t)n, &back) && back == v)
            break;
    }
    return n;
}

float num_f16(uint16_t h)
{
    float sign = h & 0x8000 ? -1.0f : 1.0f;
    int exponent = h >> 10 & 31, mantissa = h & 1023;

    if (exponent == 31)
        return mantissa != 0 ? copysignf(NAN, sign) : sign * INFINITY;
    if (exponent == 0)
        return sign * ldexpf((float)mantissa, -24);
    return sign * ldexpf((float)(mantissa + 1024), exponent - 25);
}

float num_bf16(uint16_t h)
{
    uint32_t bits = (uint32_t)h << 16;
    float v;

    memcpy(&v, &bits, sizeof v);
    return v;
}

/* A 16-bit float with `mbits` bits of mantissa and least normal exponent `emin`, by scaling v so
 * that one unit in the last place is 1 and letting the hardware round to nearest even. */
static uint16_t to_small(double v, int mbits, int emin)
{
    uint16_t sign = signbit(v) ? 0x8000 : 0;
    int ebits = 15 - mbits, e;
    uint32_t inf = ((1u << ebits) - 1) << mbits;
    double scaled, a = fabs(v);

    if (isnan(v))
        return (uint16_t)(sign | inf | 1u << (mbits - 1));
    if (isinf(v) || a == 0)
        return (uint16_t)(sign | (a == 0 ? 0 : inf));
    frexp(a, &e);
    e = e - 1 < emin ? emin : e - 1;
    scaled = nearbyint(ldexp(a, mbits - e));
    if (e > -emin + 1 || (e == -emin + 1 && scaled >= ldexp(1, mbits + 1)))
        return (uint16_t)(sign | inf);
    /* the hidden bit of a normal number adds one to the exponent field */
    return (uint16_t)(sign | (((uint32_t)(e - emin) << mbits) + (uint32_t)scaled));
}

uint16_t num_to_f16(double v)
{
    return to_small(v, 10, -14);
}

uint16_t num_to_bf16(double v)
{
    return to_small(v, 7, -126);
}
