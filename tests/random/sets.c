/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Random `set` lines of schedules: every field of the policy is for speed alone, so that no value of
 * it may change a result. */
#include "random/random.h"
#include "sched/sched.h"

#include <string.h>

static int clamp(int64_t v, const PolicyField *field)
{
    return (int)(v < field->least ? field->least : v > field->most ? field->most : v);
}

/* Small values, which split and refuse, and values on both sides of the usual one. */
static int value_of(const PolicyField *field, int usual, uint64_t draw)
{
    const int64_t v[] = { field->least,          1,         2, 3, usual / 2, (int64_t)usual * 2,
                          (int64_t)usual + 1, usual - 1 };

    return clamp(v[draw % (sizeof v / sizeof *v)], field);
}

const char *random_sets(Arena *arena, const Policy *usual, uint64_t seed)
{
    Policy policy = *usual;
    Text t = { .arena = arena };

    for (uint64_t k = 0; k < 4; k++) {
        /* seeds in a row go through all fields */
        int i = (int)((seed * 5 + k * 17) % POLICY_NFIELD);
        const PolicyField *field = &policy_field[i];

        if (strcmp(field->name, "compensate") == 0) /* it is for accuracy */
            continue;
        text_f(&t, "%s%s%s %d", k > 0 ? "; " : "", i < POLICY_NWORD ? "" : "set ", field->name,
               value_of(field, *policy_at(&policy, i), seed / POLICY_NFIELD + k));
    }
    return t.s;
}
