/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Blocks that start at a cache line, from an allocator that knows no alignment. */
#include "run/run.h"

void *run_alloc(const Os *os, int64_t bytes)
{
    const uintptr_t line = RUN_LINE;
    int64_t whole;
    char *block, *p;

    if (bytes < 0 || int_add(bytes, RUN_LINE + (int64_t)sizeof(void *), &whole) ||
        (uint64_t)whole > SIZE_MAX)
        return NULL;
    block = os->alloc(os, NULL, (size_t)whole);
    if (block == NULL)
        return NULL;
    p = block + sizeof(void *);
    p += (line - (uintptr_t)p % line) % line;
    ((void **)p)[-1] = block; /* what run_free gives back */
    return p;
}

void run_free(const Os *os, void *p)
{
    if (p != NULL)
        os->alloc(os, ((void **)p)[-1], 0);
}
