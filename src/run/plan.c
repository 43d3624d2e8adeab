/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * What is computed once for a structure: the entries of rows, ordered by a coordinate.  A counting
 * sort of blocks of entries side by side.  It is stable, so the result is one and the same for any
 * number of blocks:
 *
 *   count   how often each value is met in each block
 *   sum     how often in a share of the values, over all blocks
 *   place   where each block puts its first entry of each value; the starts
 *   scatter every block its entries */
#include "run/run_int.h"

#include <string.h>

enum { MUCH = 16 }; /* entries for each value and thread, from which counting costs nothing */

typedef struct Sort {
    const RunTranspose *t;
    int64_t entries, blocks;
    void *count;  /* by block, then value: entries met; then, where the next one goes */
    int64_t *sum; /* by share of the values: entries; then, those of earlier shares */
} Sort;

static inline int64_t get(const void *v, int bytes, int64_t i)
{
    return bytes == 4 ? ((const int32_t *)v)[i] : ((const int64_t *)v)[i];
}

static inline void put(void *v, int bytes, int64_t i, int64_t value)
{
    if (bytes == 4)
        ((int32_t *)v)[i] = (int32_t)value;
    else
        ((int64_t *)v)[i] = value;
}

/* Where part k of 0..n begins. */
static int64_t cut(int64_t n, int64_t parts, int64_t k)
{
    int64_t rest = n % parts;

    return n / parts * k + (k < rest ? k : rest);
}

static void *counts_of(const Sort *s, int64_t b)
{
    return (char *)s->count + b * s->t->n * s->t->out_bytes;
}

static inline void count_block(const Sort *s, int64_t b, int wide, int coord_bytes)
{
    void *count = counts_of(s, b);
    int64_t end = cut(s->entries, s->blocks, b + 1);

    memset(count, 0, (size_t)(s->t->n * wide));
    for (int64_t e = cut(s->entries, s->blocks, b); e < end; e++) {
        int64_t j = get(s->t->coord, coord_bytes, e);

        if (j >= 0)
            put(count, wide, j, get(count, wide, j) + 1);
    }
}

/* The last row that begins at e or before: the one that has entry e. */
static int64_t row_of(const RunTranspose *t, int64_t e)
{
    int64_t lo = 0, hi = t->rows;

    if (t->start == NULL)
        return t->width == 0 ? 0 : e / t->width;
    while (hi - lo > 1) {
        int64_t mid = lo + (hi - lo) / 2;

        if (get(t->start, t->start_bytes, mid) <= e)
            lo = mid;
        else
            hi = mid;
    }
    return lo;
}

static inline void scatter_block(const Sort *s, int64_t b, int wide, int coord_bytes)
{
    const RunTranspose *t = s->t;
    void *next = counts_of(s, b);
    int64_t e = cut(s->entries, s->blocks, b), end = cut(s->entries, s->blocks, b + 1);

    for (int64_t row = row_of(t, e); e < end; row++) {
        int64_t last = t->start != NULL ? get(t->start, t->start_bytes, row + 1)
                       : t->width > 0   ? (row + 1) * t->width
                                        : end;

        for (last = last < end ? last : end; e < last; e++) {
            int64_t j = get(t->coord, coord_bytes, e), to;

            if (j < 0)
                continue;
            to = get(next, wide, j);
            put(next, wide, j, to + 1);
            put(t->out_entry, wide, to, e);
            if (t->start != NULL || t->width > 0)
                put(t->out_row, wide, to, row);
        }
    }
}

/* The loops for each pair of types, in which the sizes are constants. */
static void count_any(const Sort *s, int64_t b)
{
    if (s->t->out_bytes == 4 && s->t->coord_bytes == 4)
        count_block(s, b, 4, 4);
    else if (s->t->out_bytes == 4)
        count_block(s, b, 4, 8);
    else
        count_block(s, b, 8, s->t->coord_bytes);
}

static void scatter_any(const Sort *s, int64_t b)
{
    if (s->t->out_bytes == 4 && s->t->coord_bytes == 4)
        scatter_block(s, b, 4, 4);
    else if (s->t->out_bytes == 4)
        scatter_block(s, b, 4, 8);
    else
        scatter_block(s, b, 8, s->t->coord_bytes);
}

static int64_t count(void *const *array, const int64_t *size, int64_t begin, int64_t end,
                     void *work)
{
    (void)size, (void)work;
    for (int64_t b = begin; b < end; b++)
        count_any(array[0], b);
    return 0;
}

static int64_t scatter(void *const *array, const int64_t *size, int64_t begin, int64_t end,
                       void *work)
{
    (void)size, (void)work;
    for (int64_t b = begin; b < end; b++)
        scatter_any(array[0], b);
    return 0;
}

static int64_t sum(void *const *array, const int64_t *size, int64_t begin, int64_t end, void *work)
{
    const Sort *s = array[0];
    int wide = s->t->out_bytes;

    (void)size, (void)work;
    for (int64_t k = begin; k < end; k++) {
        int64_t lo = cut(s->t->n, s->blocks, k), hi = cut(s->t->n, s->blocks, k + 1), n = 0;

        for (int64_t b = 0; b < s->blocks; b++)
            for (int64_t j = lo; j < hi; j++)
                n += get(counts_of(s, b), wide, j);
        s->sum[k] = n;
    }
    return 0;
}

static int64_t add_up(void *const *array, const int64_t *size, int64_t begin, int64_t end,
                      void *work)
{
    const Sort *s = array[0];
    int64_t before = 0;

    (void)size, (void)work, (void)begin, (void)end;
    for (int64_t k = 0; k < s->blocks; k++) {
        int64_t n = s->sum[k];

        s->sum[k] = before;
        before += n;
    }
    put(s->t->out_start, s->t->out_bytes, s->t->n, before);
    return 0;
}

static int64_t place(void *const *array, const int64_t *size, int64_t begin, int64_t end,
                     void *work)
{
    const Sort *s = array[0];
    int wide = s->t->out_bytes;

    (void)size, (void)work;
    for (int64_t k = begin; k < end; k++) {
        int64_t hi = cut(s->t->n, s->blocks, k + 1), at = s->sum[k];

        for (int64_t j = cut(s->t->n, s->blocks, k); j < hi; j++) {
            put(s->t->out_start, wide, j, at);
            for (int64_t b = 0; b < s->blocks; b++) {
                void *next = counts_of(s, b);
                int64_t n = get(next, wide, j);

                put(next, wide, j, at);
                at += n;
            }
        }
    }
    return 0;
}

/* One for each thread, as long as counting is little work beside the entries; more where that costs
 * nothing, so that threads that are slower get less. */
static int64_t blocks_for(const Pool *pool, int64_t entries, int64_t n)
{
    int64_t threads = pool_threads(pool), most = entries / (n + 1) + 1;

    if (most > MUCH * threads)
        return entries > RUN_GRAIN ? 4 * threads : 1;
    return entries <= RUN_GRAIN ? 1 : most < threads ? most : threads;
}

static bool sort(Pool *pool, Sort *s)
{
    RunPhase each = { .n = s->blocks, .grain = 1 };
    RunPhase phase[] = { each, each, { .n = 1, .serial = true }, each, each };
    void *array[] = { s };

    phase[0].fn = count;
    phase[1].fn = sum;
    phase[2].fn = add_up;
    phase[3].fn = place;
    phase[4].fn = scatter;
    return run_phases(pool, phase, 5, array, NULL) == 0;
}

bool run_transpose(Pool *pool, const RunTranspose *t)
{
    Sort s = { .t = t, .entries = t->entries };
    int64_t bytes, sums;
    bool done;

    s.blocks = blocks_for(pool, s.entries, t->n);
    sums = s.blocks * (int64_t)sizeof *s.sum;
    if (int_mul(t->n, s.blocks * t->out_bytes, &bytes) || int_add(bytes, sums, &bytes))
        return false;
    s.sum = run_alloc(pool_os(pool), bytes);
    if (s.sum == NULL)
        return false;
    s.count = s.sum + s.blocks;
    done = sort(pool, &s);
    run_free(pool_os(pool), s.sum);
    return done;
}
