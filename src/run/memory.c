/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Allocates blocks that start at a cache line, and long blocks that start at a large page, from an
 * allocator without alignment; copies and compares long blocks by all threads. */
#include "run/run.h"

#include <string.h>

enum { BLOCK = 1 << 16, FEW = 4 }; /* bytes at a time; blocks that are worth a thread */
enum { PAGE = 1 << 21, MANY = 4 }; /* a large page, and how many a block has to fill */

void *run_alloc(const Os *os, int64_t bytes)
{
    const uintptr_t line = bytes >= MANY * PAGE ? PAGE : CACHE_LINE;
    int64_t whole;
    char *block, *p;

    if (bytes < 0 || int_add(bytes, (int64_t)(line + sizeof(void *)), &whole) ||
        (uint64_t)whole > SIZE_MAX)
        return NULL;
    block = os->alloc(os, NULL, (size_t)whole);
    if (block == NULL)
        return NULL;
    p = block + sizeof(void *);
    p += (line - (uintptr_t)p % line) % line;
    ((void **)p)[-1] = block; /* what run_free gives back */
    if (line == PAGE)
        os->large(os, p, (size_t)bytes / PAGE * PAGE);
    return p;
}

void run_free(const Os *os, void *p)
{
    if (p != NULL)
        os->alloc(os, ((void **)p)[-1], 0);
}

static int64_t copy(void *const *array, const int64_t *size, int64_t begin, int64_t end, void *work)
{
    int64_t last = end * BLOCK < *size ? end * BLOCK : *size;

    (void)work;
    memcpy((char *)array[0] + begin * BLOCK, (const char *)array[1] + begin * BLOCK,
           (size_t)(last - begin * BLOCK));
    return 0;
}

static int64_t compare(void *const *array, const int64_t *size, int64_t begin, int64_t end,
                       void *work)
{
    int64_t last = end * BLOCK < *size ? end * BLOCK : *size;

    (void)work;
    return memcmp((const char *)array[0] + begin * BLOCK, (const char *)array[1] + begin * BLOCK,
                  (size_t)(last - begin * BLOCK)) != 0;
}

static int64_t on_blocks(Pool *pool, RunPhaseFn *fn, void *a, const void *b, int64_t bytes)
{
    RunPhase phase = { .fn = fn, .n = bytes / BLOCK + (bytes % BLOCK != 0), .grain = FEW };

    return run_phases(pool, &phase, 1, (void *[]){ a, (void *)b }, &bytes);
}

void run_copy(Pool *pool, void *to, const void *from, int64_t bytes)
{
    on_blocks(pool, copy, to, from, bytes);
}

static inline void gather_range(const RunGather *g, int64_t i, int64_t end, int bytes, int wide)
{
    for (; i < end; i++) {
        int64_t at = wide == 4 ? ((const int32_t *)g->index)[i] : ((const int64_t *)g->index)[i];

        memcpy((char *)g->to + i * bytes, (const char *)g->from + at * bytes, (size_t)bytes);
    }
}

static int64_t gather(void *const *array, const int64_t *size, int64_t begin, int64_t end,
                      void *work)
{
    const RunGather *g = array[0];

    (void)size, (void)work;
    if (g->bytes == 4 && g->index_bytes == 4)
        gather_range(g, begin, end, 4, 4);
    else if (g->bytes == 4)
        gather_range(g, begin, end, 4, 8);
    else
        gather_range(g, begin, end, 8, g->index_bytes);
    return 0;
}

void run_gather(Pool *pool, const RunGather *g)
{
    RunPhase phase = { .fn = gather, .n = g->n };

    run_phases(pool, &phase, 1, (void *[]){ (void *)g }, NULL);
}

bool run_is_same(Pool *pool, const void *a, const void *b, int64_t bytes)
{
    return on_blocks(pool, compare, (void *)a, b, bytes) == 0;
}
