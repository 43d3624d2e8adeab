/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Memory of results.  A large array that is allocated anew gets pages of zeros from the system, each
 * with a fault when it is written first; that takes longer than most kernels.  So blocks whose tensor
 * is gone are kept, up to a limit, and serve the next results of about their size.  Blocks of 2 MB
 * and more are in large pages.  The pool belongs to the process, as torch's memory does. */
#include "shim.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MOST_FREE = 256, PAGE = 1 << 12, HUGE = 1 << 21 };

typedef struct Block {
    void *data;
    size_t bytes;
    uint64_t since; /* when it became free */
} Block;

static struct {
    pthread_mutex_t lock;
    Block free[MOST_FREE];
    int n;
    size_t bytes, limit; /* of all that are free, and how much that may be */
    bool ready;          /* the limit is known */
    uint64_t now;
} pool = { .lock = PTHREAD_MUTEX_INITIALIZER };

void pool_before_fork(void)
{
    pthread_mutex_lock(&pool.lock);
}

void pool_after_fork(void)
{
    pthread_mutex_unlock(&pool.lock);
}

/* WEFT_POOL_MB, or an eighth of the machine's memory. */
static size_t limit_now(void)
{
    const char *text = getenv("WEFT_POOL_MB");
    char *end = NULL;
    long long mb = text == NULL ? -1 : strtoll(text, &end, 10);
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);

    if (mb >= 0 && end != text && *end == 0 && mb < (long long)(SIZE_MAX >> 21))
        return (size_t)mb << 20;
    return pages < 0 || page < 0 ? 0 : (size_t)pages / 8 * (size_t)page;
}

/* Sizes are in steps of an eighth, so that results whose size changes a little share blocks. */
static size_t class_of(size_t bytes)
{
    size_t step = bytes >= HUGE ? HUGE : PAGE;

    while (step < bytes / 8)
        step *= 2;
    return (bytes + step - 1) / step * step;
}

void weft_torch_large(void *data, uint64_t bytes)
{
#ifdef MADV_HUGEPAGE
    uintptr_t begin = ((uintptr_t)data + HUGE - 1) & ~(uintptr_t)(HUGE - 1);
    uintptr_t end = ((uintptr_t)data + bytes) & ~(uintptr_t)(HUGE - 1);

    if (end > begin)
        (void)madvise((void *)begin, end - begin, MADV_HUGEPAGE); /* a refusal is none of ours */
#else
    (void)data;
    (void)bytes;
#endif
}

/* Memory of the system; large blocks begin where a large page does. */
static void *map_block(size_t bytes)
{
    size_t more = bytes >= HUGE ? HUGE : 0, before;
    char *all = mmap(NULL, bytes + more, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (all == MAP_FAILED)
        return NULL;
    before = more == 0 ? 0 : (HUGE - (uintptr_t)all % HUGE) % HUGE;
    if (before > 0)
        munmap(all, before);
    if (more > before)
        munmap(all + before + bytes, more - before);
    weft_torch_large(all + before, bytes);
    return all + before;
}

/* Who holds the lock takes block i out of the list. */
static Block remove_at(int i)
{
    Block b = pool.free[i];

    pool.free[i] = pool.free[--pool.n];
    pool.bytes -= b.bytes;
    return b;
}

/* The smallest free block that is large enough and not much larger; of those the last one, whose
 * lines may still be in a cache.  -1: none. */
static int find_free(size_t bytes)
{
    int best = -1;

    for (int i = 0; i < pool.n; i++) {
        const Block *b = &pool.free[i], *c = best < 0 ? NULL : &pool.free[best];

        if (b->bytes < bytes || b->bytes > bytes + bytes / 4)
            continue;
        if (c == NULL || b->bytes < c->bytes || (b->bytes == c->bytes && b->since > c->since))
            best = i;
    }
    return best;
}

/* The block that has been free for longest, when blocks take more than `most` bytes or a place has
 * to be made; its data is NULL otherwise. */
static Block take_oldest(size_t most)
{
    int old = 0;

    if (pool.n == 0 || (pool.bytes <= most && pool.n < MOST_FREE))
        return (Block){ .data = NULL };
    for (int i = 1; i < pool.n; i++)
        if (pool.free[i].since < pool.free[old].since)
            old = i;
    return remove_at(old);
}

static void shrink(size_t most)
{
    Block b;

    do {
        pthread_mutex_lock(&pool.lock);
        b = take_oldest(most);
        pthread_mutex_unlock(&pool.lock);
        if (b.data != NULL)
            munmap(b.data, b.bytes);
    } while (b.data != NULL);
}

void *pool_take(size_t bytes, size_t *all)
{
    void *data = NULL;
    int i;

    if (bytes > SIZE_MAX / 4)
        return NULL;
    *all = class_of(bytes);
    pthread_mutex_lock(&pool.lock);
    if (!pool.ready)
        pool.limit = limit_now();
    pool.ready = true;
    i = pool.limit == 0 ? -1 : find_free(*all);
    if (i >= 0) {
        Block b = remove_at(i);

        data = b.data;
        *all = b.bytes;
    }
    pthread_mutex_unlock(&pool.lock);
    if (data == NULL)
        data = map_block(*all);
    if (data == NULL) { /* what is kept for later is needed now */
        shrink(0);
        data = map_block(*all);
    }
    return data;
}

/* Whoever drops the last reference of a tensor calls this, in any thread and at any time. */
void pool_give(void *data, void *all)
{
    size_t bytes = (size_t)(uintptr_t)all, limit;

    pthread_mutex_lock(&pool.lock);
    limit = pool.limit;
    if (bytes <= limit && pool.n < MOST_FREE) {
        pool.free[pool.n++] = (Block){ data, bytes, ++pool.now };
        pool.bytes += bytes;
        data = NULL;
    }
    pthread_mutex_unlock(&pool.lock);
    if (data != NULL)
        munmap(data, bytes);
    shrink(limit);
}

uint64_t weft_torch_pool(int64_t most)
{
    uint64_t bytes;

    if (most >= 0)
        shrink((size_t)most);
    pthread_mutex_lock(&pool.lock);
    bytes = pool.bytes;
    pthread_mutex_unlock(&pool.lock);
    return bytes;
}
