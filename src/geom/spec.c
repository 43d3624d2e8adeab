/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * What generators are told: "name=value" words against a table of parameters, and the random
 * numbers that follow from the seed. */
#include "geom/geom_int.h"

#include <math.h>
#include <string.h>

uint64_t geom_next(Random *r)
{
    uint64_t x = r->state += UINT64_C(0x9e3779b97f4a7c15);

    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

int64_t geom_below(Random *r, int64_t n)
{
    return (int64_t)(geom_next(r) % (uint64_t)n); /* the bias is below n / 2^64 */
}

double geom_unit(Random *r)
{
    return (double)(geom_next(r) >> 11) * 0x1p-53;
}

double geom_get(const Spec *s, const char *name)
{
    int i = 0;

    while (strcmp(s->param[i].name, name) != 0)
        i++;
    return s->param[i].value;
}

int64_t geom_whole(const Spec *s, const char *name)
{
    return (int64_t)geom_get(s, name);
}

/* Takes "name=value", of n characters. */
static void take(Spec *s, const char *word, size_t n)
{
    const char *sign = memchr(word, '=', n);
    Param *p = s->param;
    double v;

    while (p->name != NULL && (sign == NULL || strlen(p->name) != (size_t)(sign - word) ||
                               memcmp(p->name, word, (size_t)(sign - word)) != 0))
        p++;
    if (p->name == NULL)
        err_throw(s->arena->err, ST_ARG, "%s: %.*s is no parameter of this generator", s->text,
                  (int)(n > 40 ? 40 : n), word);
    if (!num_parse(sign + 1, n - (size_t)(sign + 1 - word), &v) ||
        !(v >= p->least && v <= p->most) || (p->whole && v != floor(v)))
        err_throw(s->arena->err, ST_ARG, "%s: %s must be %s, %g to %g", s->text, p->name,
                  p->whole ? "an integer" : "a number", p->least, p->most);
    p->value = v;
}

void geom_spec(Spec *s, Arena *arena, const char *text, const char *words, const Param *param)
{
    *s = (Spec){ .arena = arena, .text = text };
    memcpy(s->param, param, sizeof s->param);
    for (const char *w = words; w != NULL; w = strchr(w + 1, ':'))
        take(s, w + 1, strcspn(w + 1, ":"));
    for (const Param *p = s->param; p->name != NULL; p++)
        if (isnan(p->value))
            err_throw(arena->err, ST_ARG, "%s: %s= is missing", text, p->name);
    s->random.state = (uint64_t)geom_get(s, "seed");
}
