/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The policy of a target, and its fields by number and by name. */
#include "ir/policy.h"
#include "ir/loop.h"

#include <string.h>

const PolicyField policy_field[POLICY_NFIELD] = {
#define ROW(name, least, most, value, note) { #name, note, least, most },
    POLICY_FIELDS(ROW)
#undef ROW
};

static int least(int a, int b)
{
    return a < b ? a : b;
}

Policy policy_for(const VectorUnit *u)
{
    return (Policy){
#define VALUE(name, least, most, value, note) .name = value,
        POLICY_FIELDS(VALUE)
#undef VALUE
    };
}

int *policy_at(Policy *policy, int field)
{
    static const size_t offset[POLICY_NFIELD] = {
#define OFFSET(name, least, most, value, note) offsetof(Policy, name),
        POLICY_FIELDS(OFFSET)
#undef OFFSET
    };

    return (int *)(void *)((char *)policy + offset[field]);
}

int policy_find(const char *name, size_t n)
{
    for (int i = 0; i < POLICY_NFIELD; i++)
        if (strlen(policy_field[i].name) == n && memcmp(policy_field[i].name, name, n) == 0)
            return i;
    return -1;
}
