/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Interned names and growing text, both in an arena. */
#include "base/base.h"

#include <stdio.h>
#include <string.h>

static const char **find_slot(const Names *t, const char *s, size_t n)
{
    uint64_t at = hash_bytes(0, s, n);

    for (;; at++) {
        const char **slot = &t->slot[at & (t->cap - 1)];

        if (*slot == NULL || (strncmp(*slot, s, n) == 0 && (*slot)[n] == 0))
            return slot;
    }
}

static void grow(Names *t)
{
    Names old = *t;
    uint32_t cap = old.cap == 0 ? 64 : old.cap * 2;

    t->slot = arena_array(t->arena, cap, sizeof *t->slot); /* may throw: the table stays whole */
    t->cap = cap;
    for (uint32_t i = 0; i < old.cap; i++)
        if (old.slot[i] != NULL)
            *find_slot(t, old.slot[i], strlen(old.slot[i])) = old.slot[i];
}

const char *name_intern(Names *t, const char *s, size_t n)
{
    const char **slot;
    char *copy;

    if (t->n * 2 >= t->cap)
        grow(t);
    slot = find_slot(t, s, n);
    if (*slot == NULL) {
        copy = arena_alloc(t->arena, n + 1);
        memcpy(copy, s, n);
        *slot = copy;
        t->n++;
    }
    return *slot;
}

static void reserve(Text *t, size_t more)
{
    size_t cap = t->cap == 0 ? 256 : t->cap;
    char *s;

    if (t->n + more + 1 <= t->cap)
        return;
    while (cap < t->n + more + 1)
        cap *= 2;
    s = arena_alloc(t->arena, cap);
    if (t->n > 0)
        memcpy(s, t->s, t->n);
    t->s = s;
    t->cap = cap;
}

void text_put(Text *t, const char *s, size_t n)
{
    reserve(t, n);
    if (n > 0)
        memcpy(t->s + t->n, s, n);
    t->n += n;
    t->s[t->n] = 0;
}

void text_str(Text *t, const char *s)
{
    text_put(t, s, strlen(s));
}

void text_char(Text *t, char c)
{
    text_put(t, &c, 1);
}

void text_f(Text *t, const char *fmt, ...)
{
    va_list ap, again;
    int n;

    va_start(ap, fmt);
    va_copy(again, ap);
    n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    reserve(t, (size_t)n);
    vsnprintf(t->s + t->n, (size_t)n + 1, fmt, again);
    va_end(again);
    t->n += (size_t)n;
}
