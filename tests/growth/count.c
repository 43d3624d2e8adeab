/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Counts what the library does: basic blocks of its code and bytes of its memory. */
#include "growth/growth.h"

#include <stdlib.h>
#include <string.h>

uint64_t growth_steps;
size_t growth_bytes, growth_peak;

/* Called at every basic block of the library, which is compiled so. */
void __sanitizer_cov_trace_pc(void);
void __sanitizer_cov_trace_pc(void)
{
    growth_steps++;
}

typedef struct Block {
    size_t size;
    max_align_t data[];
} Block;

static void *count_alloc(const Os *os, void *old, size_t size)
{
    Block *b = old == NULL ? NULL : (Block *)((char *)old - offsetof(Block, data));
    size_t had = b == NULL ? 0 : b->size;

    (void)os;
    if (size > 0 && (b = realloc(b, sizeof *b + size)) == NULL)
        return NULL;
    growth_bytes += size - had;
    growth_peak = growth_bytes > growth_peak ? growth_bytes : growth_peak;
    if (size == 0) {
        free(b);
        return NULL;
    }
    b->size = size;
    return b->data;
}

static void no_large(const Os *os, void *p, size_t n)
{
    (void)os, (void)p, (void)n;
}

const Os growth_os = { .alloc = count_alloc, .large = no_large };
