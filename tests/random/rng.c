/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * The one source of chance: a seed gives the same case on every machine. */
#include "random/random.h"
#include "unit/test.h"

uint64_t rng_bits(Rng *r)
{
    return test_random(&r->state);
}

int rng_int(Rng *r, int lo, int hi)
{
    return lo + (int)(rng_bits(r) % (uint64_t)(hi - lo + 1));
}

bool rng_p(Rng *r, int percent)
{
    return rng_int(r, 0, 99) < percent;
}
