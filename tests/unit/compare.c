/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The comparator behind compare.h. */
#include "unit/compare.h"

#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static const char *const type_name[] = { "f64", "f32", "i64" };
static const size_t type_size[] = { 8, 4, 8 };

__attribute__((format(printf, 1, 2))) static Verdict differs(const char *fmt, ...)
{
    Verdict v = { .ok = false, .worst = (double)INFINITY };
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(v.why, sizeof v.why, fmt, ap);
    va_end(ap);
    return v;
}

/* Elements, or -1 for what is no array at all. */
static int64_t count(Arr a)
{
    int64_t n = 1;

    if (a.rank < 0 || a.rank > 8)
        return -1;
    for (int k = 0; k < a.rank; k++) {
        if (a.shape[k] < 0)
            return -1;
        n *= a.shape[k];
    }
    return n > 0 && a.data == NULL ? -1 : n;
}

static Verdict same_form(Arr got, Arr want)
{
    if (got.type != want.type)
        return differs("type %s, wanted %s", type_name[got.type], type_name[want.type]);
    if (got.rank != want.rank)
        return differs("rank %d, wanted %d", got.rank, want.rank);
    if (count(got) < 0 || count(want) < 0)
        return differs("no array: NULL data, a negative extent or a rank over 8");
    for (int k = 0; k < got.rank; k++)
        if (got.shape[k] != want.shape[k])
            return differs("extent %d is %lld, wanted %lld", k, (long long)got.shape[k],
                           (long long)want.shape[k]);
    return (Verdict){ .ok = true };
}

static double value(Arr a, int64_t i)
{
    switch (a.type) {
    case ARR_F64: return ((const double *)a.data)[i];
    case ARR_F32: return (double)((const float *)a.data)[i];
    default: return (double)((const int64_t *)a.data)[i];
    }
}

Verdict cmp_bits(Arr got, Arr want)
{
    Verdict v = same_form(got, want);
    int64_t n = count(got);
    size_t size = type_size[got.type];
    const char *a = got.data, *b = want.data;

    for (int64_t i = 0; v.ok && i < n; i++, a += size, b += size)
        if (memcmp(a, b, size) != 0)
            return differs("element %lld of %lld is %.17g, wanted %.17g, bit for bit", (long long)i,
                           (long long)n, value(got, i), value(want, i));
    return v;
}

/* NaN when one is NaN.  Two integers that differ differ by 1 at least, though one double may stand
 * for both. */
static double error(Arr got, Arr want, int64_t i)
{
    double a = value(got, i), b = value(want, i);

    if (got.type == ARR_I64 && ((const int64_t *)got.data)[i] != ((const int64_t *)want.data)[i])
        return fmax(1, fabs(a - b));
    return a == b ? 0 : fabs(a - b);
}

Verdict cmp_abs(Arr got, Arr want, double tol)
{
    Verdict v = same_form(got, want);
    int64_t n = count(got);

    for (int64_t i = 0; v.ok && i < n; i++) {
        double err = error(got, want, i);

        if (!(err <= tol))
            return differs("element %lld of %lld is %.17g, wanted %.17g: off by %.3g, allowed %.3g",
                           (long long)i, (long long)n, value(got, i), value(want, i), err, tol);
        if (err > v.worst)
            v.worst = err;
    }
    return v;
}

Verdict cmp_rel(Arr got, Arr want, double tol)
{
    Verdict v = same_form(got, want);
    int64_t n = v.ok ? count(want) : 0;
    double scale = 0;

    for (int64_t i = 0; i < n; i++) {
        double a = fabs(value(want, i));

        if (a > scale && !isinf(a)) /* an infinity would allow everything */
            scale = a;
    }
    return v.ok ? cmp_abs(got, want, tol * scale) : v;
}
