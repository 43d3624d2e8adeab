/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The real numbers of text files, for mtx.c.  Reading them is most of the time a file takes, so
 * decimals of usual length go by one division or multiplication of doubles, with what that loses
 * kept in a second double; num_parse reads the others, and those that are too close to call. */
#include "io/io_int.h"

#include <float.h>
#include <math.h>

/* Decimals of 18 digits fit. */
static const uint64_t max_w = (uint64_t)1 << 62;

/* The word as w * 10^e; false when it is none, or too long for that. */
static bool scan_decimal(Bytes b, uint64_t *w, int *e)
{
    size_t i = 0, digits = 0;
    int point = 0, power = 0;
    bool minus;

    for (*w = 0; i < b.n; i++) {
        if (b.p[i] == '.' && point == 0) {
            point = 1;
        } else if (b.p[i] >= '0' && b.p[i] <= '9' && *w < max_w / 10) {
            *w = *w * 10 + (uint64_t)(b.p[i] - '0');
            *e -= point;
            digits++;
        } else {
            break;
        }
    }
    if (digits == 0 || i == b.n)
        return digits > 0;
    if (b.p[i] != 'e' && b.p[i] != 'E')
        return false;
    i++;
    minus = i < b.n && b.p[i] == '-';
    i += i < b.n && (b.p[i] == '-' || b.p[i] == '+');
    for (digits = i; i < b.n && b.p[i] >= '0' && b.p[i] <= '9' && power < 1000; i++)
        power = power * 10 + b.p[i] - '0';
    *e += minus ? -power : power;
    return i == b.n && i > digits;
}

/* a * b as a sum: the double nearest to it, and exactly what that lacks (Dekker 1971). */
static double multiply(double a, double b, double *rest)
{
    const double split = 134217729; /* 2^27 + 1: leaves halves whose products are exact */
    double a1 = split * a - (split * a - a), a2 = a - a1;
    double b1 = split * b - (split * b - b), b2 = b - b1, v = a * b;

    *rest = ((a1 * b1 - v) + a1 * b2 + a2 * b1) + a2 * b2;
    return v;
}

/* w * 10^e, or false when the last bit is in doubt.  Up to 2^53 and 10^22 both factors are exact,
 * so the result is rounded once.  Above, w has a second part, and the result is v plus something
 * small that is known up to `doubt`: both ends of that range must round to the same double. */
static bool scale(uint64_t w, int e, double *out)
{
    static const double powers[] = { 1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                     1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                     1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22 };
    double high = (double)w, low = (double)(int64_t)(w - (uint64_t)high), v, rest, doubt, power;

    if (e > 22 || e < -22)
        return false;
    power = powers[e < 0 ? -e : e];
    v = e < 0 ? high / power : high * power;
    *out = v;
    if (w <= (uint64_t)1 << DBL_MANT_DIG)
        return true;
    if (e < 0) {
        double back = multiply(v, power, &rest);

        rest = (((high - back) - rest) + low) / power;
        doubt = fabs(rest);
    } else {
        multiply(high, power, &rest);
        doubt = fabs(rest) + fabs(low * power);
        rest += low * power;
    }
    doubt *= 4 * DBL_EPSILON;
    *out = v + (rest + doubt);
    return *out == v + (rest - doubt);
}

static bool parse_fast(Bytes b, double *out)
{
    uint64_t w;
    int e = 0;

    /* doubles that are wider on the way would be rounded twice */
    return FLT_EVAL_METHOD == 0 && b.n <= 64 && scan_decimal(b, &w, &e) && scale(w, e, out);
}

/* Programs write infinities and NaNs in several ways; num_parse knows one of each. */
static bool parse_special(Bytes b, double *out)
{
    static const struct {
        const char *word;
        double v;
    } specials[] = {
        { "inf", (double)INFINITY },
        { "infinity", (double)INFINITY },
        { "nan", (double)NAN },
    };

    for (size_t k = 0; k < sizeof specials / sizeof *specials; k++) {
        if (io_is_word(b, specials[k].word)) {
            *out = specials[k].v;
            return true;
        }
    }
    return false;
}

bool io_real_parse(Bytes b, double *out)
{
    bool minus = b.n > 0 && b.p[0] == '-', sign = minus || (b.n > 0 && b.p[0] == '+');
    Bytes rest = { b.p + sign, b.n - sign };

    if (!parse_fast(rest, out) && !parse_special(rest, out))
        return num_parse((const char *)b.p, b.n, out);
    if (minus)
        *out = -*out;
    return true;
}
