/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Memory that dies together, in chunks that double up to a megabyte. */
#include "base/base.h"

#include <stdlib.h>
#include <string.h>

/* Under the address sanitizer, memory of a chunk that nobody has asked for may not be touched, and
 * a gap stays between two pieces, so that it sees an access past the end of one. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CHECKED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define CHECKED 1
#endif
#if defined(CHECKED)
#include <sanitizer/asan_interface.h>
enum { GAP = sizeof(max_align_t) };
#define HIDE(p, n) ASAN_POISON_MEMORY_REGION(p, n)
#define SHOW(p, n) ASAN_UNPOISON_MEMORY_REGION(p, n)
#else
enum { GAP = 0 };
#define HIDE(p, n) ((void)(p), (void)(n))
#define SHOW(p, n) ((void)(p), (void)(n))
#endif

struct Chunk {
    Chunk *next;
    size_t cap;
    max_align_t data[];
};

enum { FIRST_CHUNK = 4096, LARGEST_CHUNK = 1 << 20 };
enum { PAGE = 1 << 21, MANY = 2 }; /* a large page, and how many a chunk has to fill */

void arena_init(Arena *a, const Os *os, Err *err)
{
    *a = (Arena){ .os = os, .err = err };
}

void arena_free(Arena *a)
{
    for (Chunk *c = a->chunk; c != NULL;) {
        Chunk *next = c->next;

        SHOW(c->data, c->cap);
        a->os->alloc(a->os, c, 0);
        c = next;
    }
    arena_init(a, a->os, a->err);
}

/* Large arrays are written soon and once: a fault for each small page is what that costs most. */
static void ask_large(const Os *os, Chunk *c)
{
    char *p = (char *)c->data;
    size_t skip = (PAGE - (uintptr_t)p % PAGE) % PAGE;

    if (c->cap >= (size_t)MANY * PAGE + skip)
        os->large(os, p + skip, (c->cap - skip) / PAGE * PAGE);
}

static void add_chunk(Arena *a, size_t need)
{
    size_t cap = a->chunk == NULL ? FIRST_CHUNK : a->chunk->cap * 2;
    Chunk *c;

    if (cap > LARGEST_CHUNK)
        cap = LARGEST_CHUNK;
    if (cap < need)
        cap = need;
    c = a->os->alloc(a->os, NULL, sizeof *c + cap);
    if (c == NULL)
        err_throw(a->err, ST_NOMEM, "out of memory: %zu more bytes were needed", cap);
    c->cap = cap;
    ask_large(a->os, c);
    HIDE(c->data, cap);
    c->next = a->chunk;
    a->chunk = c;
    a->used = 0;
    a->total += cap;
}

static void *take(Arena *a, size_t size)
{
    const size_t align = _Alignof(max_align_t);
    size_t room;
    void *p;

    if (size > SIZE_MAX / 4)
        err_throw(a->err, ST_NOMEM, "out of memory: cannot allocate %zu bytes", size);
    room = (size + align - 1) / align * align + GAP;
    if (a->chunk == NULL || a->chunk->cap - a->used < room)
        add_chunk(a, room);
    p = (char *)a->chunk->data + a->used;
    a->used += room;
    SHOW(p, size);
    return p;
}

void *arena_alloc(Arena *a, size_t size)
{
    return memset(take(a, size), 0, size);
}

void *arena_raw(Arena *a, int64_t n, size_t elem)
{
    int64_t bytes;

    if (n < 0 || int_mul(n, (int64_t)elem, &bytes))
        err_throw(a->err, ST_NOMEM, "out of memory: an array of %lld elements", (long long)n);
    return take(a, (size_t)bytes);
}

void *arena_array(Arena *a, int64_t n, size_t elem)
{
    void *p = arena_raw(a, n, elem);

    return memset(p, 0, (size_t)n * elem);
}

void *arena_copy(Arena *a, const void *from, size_t size)
{
    void *p = arena_alloc(a, size);

    return size > 0 ? memcpy(p, from, size) : p;
}

void *arena_grow(Arena *a, void *old, int n, int *cap, size_t elem)
{
    void *p;

    if (n < *cap)
        return old;
    if (n >= 1 << 29)
        err_throw(a->err, ST_LIMIT, "more than %d elements in one list", n);
    *cap = n < 4 ? 4 : 2 * n;
    p = arena_array(a, *cap, elem);
    if (n > 0)
        memcpy(p, old, (size_t)n * elem);
    return p;
}

void array_sort(void *array, int64_t n, size_t elem, int (*order)(const void *, const void *))
{
    if (n > 0)
        qsort(array, (size_t)n, elem, order);
}
