/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * A 64-bit hash for tables and fingerprints: not for security, the same on every machine. */
#include "base/base.h"

static uint64_t mix(uint64_t h)
{
    h ^= h >> 32;
    h *= 0xd6e8feb86659fd93u;
    h ^= h >> 32;
    h *= 0xd6e8feb86659fd93u;
    return h ^ h >> 32;
}

uint64_t hash_int(uint64_t seed, uint64_t v)
{
    return mix((seed ^ v) * 0x9e3779b97f4a7c15u + 1);
}

uint64_t hash_place(uint64_t h, uint64_t n)
{
    h >>= 32;
    return h * (n >> 32) + (h * (n & UINT32_MAX) >> 32);
}

uint64_t hash_bytes(uint64_t seed, const void *p, size_t n)
{
    const unsigned char *b = p;
    uint64_t h = hash_int(seed, n), w = 0;

    for (size_t i = 0; i < n; i++) {
        w = w << 8 | b[i];
        if (i % 8 == 7 || i + 1 == n) {
            h = hash_int(h, w);
            w = 0;
        }
    }
    return h;
}
