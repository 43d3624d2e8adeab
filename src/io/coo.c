/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Puts the entries of a coordinate matrix in order: the last step of mtx.c.  A radix sort, as it is
 * linear, has no bad case that a file could aim at, and is stable: entries at the same place stay
 * in the order of the file until they are summed. */
#include "io/io_int.h"

#include <string.h>

enum { DIGIT = 11, DIGITS = 1 << DIGIT };

typedef struct Item {
    uint64_t key;
    int64_t p; /* which entry */
} Item;

typedef struct Sort {
    int64_t n;
    Item *item, *spare;
} Sort;

static bool is_sorted(const IoMatrix *a)
{
    for (int64_t p = 1; p < a->nnz; p++)
        if (a->row[p - 1] > a->row[p] || (a->row[p - 1] == a->row[p] && a->col[p - 1] >= a->col[p]))
            return false;
    return true;
}

static void sort_digit(Sort *s, int shift)
{
    int64_t start[DIGITS] = { 0 }, sum = 0;
    Item *from = s->item;

    for (int64_t i = 0; i < s->n; i++)
        start[from[i].key >> shift & (DIGITS - 1)]++;
    for (int d = 0; d < DIGITS; d++) {
        int64_t count = start[d];

        start[d] = sum;
        sum += count;
    }
    for (int64_t i = 0; i < s->n; i++)
        s->spare[start[from[i].key >> shift & (DIGITS - 1)]++] = from[i];
    s->item = s->spare;
    s->spare = from;
}

/* Stable by index[], whose entries are >= 0.  Keys in order need no pass, as many files are sorted,
 * nor do digits in which all keys agree. */
static void sort_by(Sort *s, const int64_t *index)
{
    uint64_t differ = 0, last = 0;
    bool sorted = true;

    for (int64_t i = 0; i < s->n; i++) {
        uint64_t key = (uint64_t)index[s->item[i].p];

        s->item[i].key = key;
        differ |= key ^ s->item[0].key;
        sorted = sorted && last <= key;
        last = key;
    }
    for (int shift = 0; shift < 64 && !sorted; shift += DIGIT)
        if ((differ >> shift & (DIGITS - 1)) != 0)
            sort_digit(s, shift);
}

/* a[i] becomes the old a[item[i].p]; entries of all arrays have eight bytes. */
static void permute(Sort *s, void *a)
{
    const uint64_t *from = a;
    uint64_t *to = (uint64_t *)s->spare;

    for (int64_t i = 0; i < s->n; i++)
        memcpy(&to[i], &from[s->item[i].p], sizeof *to);
    memcpy(a, to, (size_t)s->n * sizeof *to);
}

static void sort_entries(Arena *arena, IoMatrix *a)
{
    Arena scratch;
    Sort s = { .n = a->nnz };

    /* one block, so that a throw for want of memory leaves nothing behind */
    arena_init(&scratch, arena->os, arena->err);
    s.item = arena_array(&scratch, s.n + s.n, sizeof *s.item);
    s.spare = s.item + s.n;
    for (int64_t i = 0; i < s.n; i++)
        s.item[i].p = i;
    sort_by(&s, a->col);
    sort_by(&s, a->row);
    permute(&s, a->row);
    permute(&s, a->col);
    permute(&s, a->integer ? (void *)a->ival : (void *)a->val);
    arena_free(&scratch);
}

static void add_value(Err *err, IoMatrix *a, int64_t to, int64_t from)
{
    if (a->integer) {
        if (int_add(a->ival[to], a->ival[from], &a->ival[to]))
            err_throw(err, ST_PARSE,
                      "the entries at row %lld, column %lld have a sum outside 64 bits; "
                      "declare the field real",
                      (long long)a->row[to] + 1, (long long)a->col[to] + 1);
    } else if (!a->pattern) {
        a->val[to] += a->val[from];
    }
}

static void move_entry(IoMatrix *a, int64_t to, int64_t from)
{
    a->row[to] = a->row[from];
    a->col[to] = a->col[from];
    if (a->integer)
        a->ival[to] = a->ival[from];
    else
        a->val[to] = a->val[from];
}

static void sum_duplicates(Err *err, IoMatrix *a)
{
    int64_t n = 1;

    for (int64_t p = 1; p < a->nnz; p++) {
        if (a->row[p] == a->row[n - 1] && a->col[p] == a->col[n - 1])
            add_value(err, a, n - 1, p);
        else
            move_entry(a, n++, p);
    }
    a->nnz = n;
}

void io_coo_sort(Arena *arena, const char *file, IoMatrix *a)
{
    if (is_sorted(a))
        return;
    sort_entries(arena, a);
    err_place(arena->err, file, 0, 0, "", 0);
    sum_duplicates(arena->err, a);
}
