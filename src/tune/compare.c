/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Are the results of a candidate those of the default schedule?  Bit for bit where the schedule has
 * no say in how sums are rounded, and within what rounding explains where it has. */
#include "tune/tune.h"

#include <math.h>
#include <string.h>

/* Of the largest element: some thousand roundings, which no order of a sum exceeds by chance. */
static double tolerance(Type t)
{
    return t == T_f64 ? 1e-11 : t == T_f32 ? 1e-4 : t == T_f16 ? 0.02 : 0.1;
}

static double element(const TuneArray *a, int64_t i)
{
    switch (a->type) {
    case T_f64: return ((const double *)a->data)[i];
    case T_f32: return ((const float *)a->data)[i];
    case T_f16: return num_f16(((const uint16_t *)a->data)[i]);
    default: return num_bf16(((const uint16_t *)a->data)[i]); /* no other type rounds */
    }
}

static double largest(const TuneArray *a)
{
    double most = 0;

    for (int64_t i = 0; i < a->n; i++) {
        double v = fabs(element(a, i));

        most = v > most && v < INFINITY ? v : most;
    }
    return most;
}

/* NaN is like NaN, an infinity like itself. */
static bool is_near(double a, double b, double room)
{
    if (isnan(a) || isnan(b))
        return isnan(a) && isnan(b);
    return a == b || fabs(a - b) <= room;
}

static const char *say_differs(Arena *arena, const TuneArray *want, const TuneArray *got, int64_t i)
{
    Text t = { .arena = arena };

    text_f(&t, "element %lld of %s", (long long)i, want->name);
    if (ir_type[want->type].floats)
        text_f(&t, " is %.9g and not %.9g", element(got, i), element(want, i));
    else
        text_str(&t, " is another");
    return t.s;
}

const char *tune_compare(Arena *arena, const TuneArray *want, const TuneArray *got, bool exact,
                         const double *bound)
{
    size_t bytes = ir_type[want->type].bytes;
    double room;
    Text t = { .arena = arena };

    if (want->n != got->n || want->type != got->type) {
        text_f(&t, "%s has %lld elements and not %lld", want->name, (long long)got->n,
               (long long)want->n);
        return t.s;
    }
    if (want->n == 0 || memcmp(want->data, got->data, (size_t)want->n * bytes) == 0)
        return NULL;
    exact = exact || !ir_type[want->type].floats;
    room = exact || bound != NULL ? 0 : tolerance(want->type) * largest(want);
    for (int64_t i = 0; i < want->n; i++) {
        const char *a = (const char *)want->data + (size_t)i * bytes,
                   *b = (const char *)got->data + (size_t)i * bytes;

        if (memcmp(a, b, bytes) != 0 &&
            (exact || !is_near(element(want, i), element(got, i), bound ? 2 * bound[i] : room)))
            return say_differs(arena, want, got, i);
    }
    return NULL;
}
