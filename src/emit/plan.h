/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * What an emitted program makes once for a structure, before it runs: transposes, the parts of long
 * rows and of sums, tables for searches.  The library makes the same arrays, and tests compare them
 * element by element.  Stands after simd.h.  All arrays are of int64_t. */
#ifndef WEFT_PLAN_H
#define WEFT_PLAN_H

#include <stdlib.h>
#include <string.h>

enum { WEFT_NOMEM = -1, WEFT_MISFIT = -2 }; /* a format cannot hold these entries */

/* Memory of a plan, or of one function: a list of blocks, freed together.  After a fault nothing
 * more is made. */
typedef struct weft_heap {
    void **last;
    int64_t fault;
} weft_heap;

/* n elements, with any content; NULL after a fault. */
static WEFT_USED int64_t *weft_take(weft_heap *h, int64_t n)
{
    int64_t bytes;
    void **block = 0;

    if (h->fault != 0)
        return 0;
    if (n >= 0 && !__builtin_mul_overflow(n, (int64_t)sizeof(int64_t), &bytes) &&
        !__builtin_add_overflow(bytes, 2 * (int64_t)sizeof(void *), &bytes))
        block = (void **)malloc((size_t)bytes);
    if (block == 0) {
        h->fault = WEFT_NOMEM;
        return 0;
    }
    block[0] = (void *)h->last;
    h->last = block;
    return (int64_t *)(void *)(block + 2);
}

static WEFT_USED int64_t *weft_take_filled(weft_heap *h, int64_t n, int64_t value)
{
    int64_t *a = weft_take(h, n);

    for (int64_t i = 0; i < n && a != 0; i++)
        a[i] = value;
    return a;
}

static WEFT_USED void weft_release(weft_heap *h)
{
    while (h->last != 0) {
        void **block = h->last;

        h->last = (void **)block[0];
        free(block);
    }
}

/* The last row that begins at entry e or before. */
static WEFT_USED int64_t weft_row_of(const int64_t *start, int64_t rows, int64_t e)
{
    int64_t lo = 0, hi = rows;

    while (hi - lo > 1) {
        int64_t mid = lo + (hi - lo) / 2;

        if (start[mid] <= e)
            lo = mid;
        else
            hi = mid;
    }
    return lo;
}

/* A coordinate of entries of which some are padding, to which weft_leave_out gives -1: those with a
 * coordinate that is not in 0..bound. */
static WEFT_USED int64_t *weft_keys(weft_heap *tmp, int64_t entries, const int64_t *coord)
{
    int64_t *key = weft_take(tmp, entries);

    for (int64_t e = 0; e < entries && key != 0; e++)
        key[e] = coord[e];
    return key;
}

static WEFT_USED void weft_leave_out(int64_t *key, int64_t entries, const int64_t *coord,
                                     int64_t bound)
{
    for (int64_t e = 0; e < entries && key != 0; e++)
        if (coord[e] < 0 || coord[e] >= bound)
            key[e] = -1;
}

/* Where rows of one width begin. */
static WEFT_USED int64_t *weft_even_starts(weft_heap *tmp, int64_t rows, int64_t width)
{
    int64_t *start = weft_take(tmp, rows + 1);

    for (int64_t i = 0; i <= rows && start != 0; i++)
        start[i] = i * width;
    return start;
}

/* The entries of rows (start NULL: of none), ordered by a coordinate below n; those with the same
 * one keep their order, and those with a negative one are left out.  Of each its number and, where
 * there are rows, its row. */
static WEFT_USED void weft_transpose(weft_heap *h, int64_t entries, const int64_t *coord, int64_t n,
                                     const int64_t *start, int64_t **out_start, int64_t **out_entry,
                                     int64_t **out_row)
{
    int64_t *at = *out_start = weft_take_filled(h, n + 1, 0), *entry, *row = 0, q = 0;

    entry = *out_entry = weft_take(h, entries);
    if (out_row != 0)
        row = *out_row = weft_take(h, entries);
    if (h->fault != 0)
        return;
    for (int64_t e = 0; e < entries; e++)
        if (coord[e] >= 0)
            at[coord[e] + 1]++;
    for (int64_t j = 0; j < n; j++)
        at[j + 1] += at[j];
    for (int64_t e = 0; e < entries; e++) {
        int64_t to;

        while (start != 0 && start[q + 1] <= e)
            q++;
        if (coord[e] < 0)
            continue;
        to = at[coord[e]]++;
        entry[to] = e;
        if (row != 0)
            row[to] = q;
    }
    for (int64_t j = n; j > 0; j--) /* each start is where the row before it has ended */
        at[j] = at[j - 1];
    at[0] = 0;
}

/* from[index[i]] for i in 0..n. */
static WEFT_USED void weft_gather(weft_heap *h, int64_t n, const int64_t *from,
                                  const int64_t *index, int64_t **out)
{
    int64_t *to = *out = weft_take(h, n);

    for (int64_t i = 0; i < n && to != 0; i++)
        to[i] = from[index[i]];
}

/* Where piece q of 0..n begins, of so many. */
static WEFT_USED int64_t weft_piece(int64_t n, int64_t pieces, int64_t q)
{
    int64_t rest = n % pieces;

    return n / pieces * q + (q < rest ? q : rest);
}

typedef struct weft_long { /* rows with more than limit[0] entries, and the parts of them */
    int64_t *limit, *rows, *row, *first, *part_row, *shift, *start;
} weft_long;

static WEFT_USED int64_t weft_parts_of(int64_t entries, int64_t limit)
{
    return entries <= limit ? 0 : entries / limit + (entries % limit != 0);
}

/* n rows; `part` entries are worth a part, and all rows have about `most` parts at most. */
static WEFT_USED void weft_long_rows(weft_heap *h, int64_t n, const int64_t *start, int64_t part,
                                     int64_t most, weft_long *out)
{
    int64_t share = (start[n] - start[0]) / most, limit = share > part ? share : part;
    int64_t rows = 0, parts = 0, l = 0, q = 0, e = 0;

    for (int64_t i = 0; i < n; i++) {
        int64_t k = weft_parts_of(start[i + 1] - start[i], limit);

        rows += k > 0;
        parts += k;
    }
    out->limit = weft_take_filled(h, 1, limit);
    out->rows = weft_take_filled(h, 2, 0);
    out->row = weft_take(h, rows);
    out->first = weft_take(h, rows + 1);
    out->part_row = weft_take(h, parts);
    out->shift = weft_take(h, parts);
    out->start = weft_take(h, parts + 1);
    if (h->fault != 0)
        return;
    out->rows[1] = rows;
    for (int64_t i = 0; i < n; i++) {
        int64_t m = start[i + 1] - start[i], k = weft_parts_of(m, limit);

        if (k == 0)
            continue;
        out->row[l] = i;
        out->first[l++] = q;
        for (int64_t j = 0; j < k; j++, q++) {
            out->part_row[q] = i;
            out->shift[q] = start[i] - e;
            out->start[q] = e + weft_piece(m, k, j);
        }
        e += m;
    }
    out->first[l] = q;
    out->start[q] = e;
}

typedef struct weft_cut { /* a range, or entries, in pieces; of each the rows that it is in */
    int64_t *pieces, *row, *end, *start;
} weft_cut;

typedef struct weft_pieces_rule { /* how many elements, and how many pieces at least and at most */
    int64_t room, least, most;    /* for threads, */
    int64_t fine_room, fine_most; /* and for short chains */
    int64_t chain;
} weft_pieces_rule;

static WEFT_USED int64_t weft_clamp(int64_t k, int64_t least, int64_t most)
{
    return k < least ? least : k > most ? most : k;
}

/* How many pieces 0..n is cut into: of `least` iterations or more for threads, or more of them, so
 * that none adds up a long chain. */
static WEFT_USED int64_t weft_pieces(int64_t n, int64_t least, int64_t each,
                                     const weft_pieces_rule *r)
{
    int64_t most = weft_clamp(r->room / each, r->least, r->most);
    int64_t chain = least / 4 > r->chain ? least / 4 : r->chain;
    int64_t k = weft_clamp(n / least, 1, most);
    int64_t fine = weft_clamp(n / chain, 0, weft_clamp(r->fine_room / each, 0, r->fine_most));

    return n <= 0 ? 0 : fine > k ? fine : k;
}

/* What an iteration weighs, from which `least` follows: loops by their lengths, or by the rows that
 * they run over, on the average. */
static WEFT_USED double weft_trips(int64_t lo, int64_t hi)
{
    return hi - lo > 0 ? (double)(hi - lo) : 0;
}

static WEFT_USED double weft_average(int64_t all, int64_t rows)
{
    return rows > 0 ? (double)all / (double)rows : 0;
}

static WEFT_USED double weft_most(double a, double b)
{
    return b > a ? b : a;
}

/* Elements of n rows of `each`; `most` where that is not known, or too many. */
static WEFT_USED int64_t weft_elements(int64_t most, int64_t each, int64_t n)
{
    return n < 0 || __builtin_mul_overflow(each, n, &each) ? most : each;
}

/* start NULL: a range without rows. */
static WEFT_USED void weft_cut_range(weft_heap *h, int64_t n, int64_t k, int64_t rows,
                                     const int64_t *start, weft_cut *out)
{
    out->pieces = weft_take_filled(h, 2, 0);
    out->row = weft_take_filled(h, k, 0);
    out->end = weft_take_filled(h, k, 0);
    out->start = weft_take_filled(h, k + 1, 0);
    if (h->fault != 0)
        return;
    out->pieces[1] = k;
    for (int64_t q = 0; q < k; q++) {
        int64_t from = out->start[q], to = weft_piece(n, k, q + 1);

        out->start[q + 1] = to;
        if (start == 0)
            continue;
        out->row[q] = weft_row_of(start, rows, from);
        out->end[q] = to > from ? weft_row_of(start, rows, to - 1) + 1 : out->row[q];
    }
}

/* Of n rows, where the entries below begin that are below entries which begin at up. */
static WEFT_USED const int64_t *weft_starts_below(weft_heap *h, int64_t n, const int64_t *up,
                                                  const int64_t *start)
{
    int64_t *out = weft_take(h, n + 1);

    for (int64_t i = 0; h->fault == 0 && i <= n; i++)
        out[i] = start[up[i]];
    return out;
}

typedef struct weft_rows { /* rows in parts of about as many entries; each entry names a row of */
    int64_t rows, named;   /* another array */
    const int64_t *start, *name;
    int64_t *low, *high;           /* by row: the first and the last that its entries name */
    int64_t *parts;                /* 0, and their number */
    int64_t *first, *end;          /* by part: the same */
    int64_t *first_row, *part;     /* by part; by row */
} weft_rows;

static WEFT_USED int64_t weft_window(const weft_rows *r, int64_t row, int64_t end, int64_t *low,
                                     int64_t *high)
{
    *low = r->named;
    *high = 0;
    for (; row < end; row++) {
        *low = r->low[row] < *low ? r->low[row] : *low;
        *high = r->high[row] > *high ? r->high[row] : *high;
    }
    *low = *low < *high ? *low : *high;
    return *high - *low;
}

static WEFT_USED int64_t weft_end_row(const weft_rows *r, int64_t k, int64_t q)
{
    int64_t n = r->start[r->rows], from = weft_piece(n, k, q), to = weft_piece(n, k, q + 1);

    return q + 1 == k  ? r->rows
           : to > from ? weft_row_of(r->start, r->rows, to - 1) + 1
                       : weft_row_of(r->start, r->rows, from);
}

static WEFT_USED int64_t weft_windows(const weft_rows *r, int64_t k)
{
    int64_t all = 0, row = 0, low, high;

    for (int64_t q = 0; q < k; q++) {
        int64_t end = weft_end_row(r, k, q);

        all += weft_window(r, row, end, &low, &high);
        row = end > row ? end : row;
    }
    return all;
}

static WEFT_USED void weft_find_named(weft_rows *r)
{
    for (int64_t i = 0; i < r->rows; i++) {
        r->low[i] = r->named;
        r->high[i] = 0;
        for (int64_t e = r->start[i]; e < r->start[i + 1]; e++) {
            if (r->name[e] >= 0 && r->name[e] < r->low[i])
                r->low[i] = r->name[e];
            if (r->name[e] >= r->high[i])
                r->high[i] = r->name[e] + 1;
        }
    }
}

/* A power of two of parts, up to `most`, with `each` entries for each row of their arrays; but two
 * from `two` entries on. */
static WEFT_USED void weft_cut_rows(weft_heap *h, int64_t each, int64_t two, int64_t most,
                                    weft_rows *r)
{
    int64_t row = 0, made = 0, k = r->rows > 0, n, room;

    r->low = weft_take(h, r->rows);
    r->high = weft_take(h, r->rows);
    if (h->fault != 0)
        return;
    weft_find_named(r);
    n = r->start[r->rows];
    room = n / each;
    while (0 < k && 2 * k <= room / r->rows && k < most)
        k *= 2;
    if (n >= two && room < 2 * r->named)
        room = 2 * r->named;
    while (k > 1 && weft_windows(r, k) > room)
        k /= 2;
    r->parts = weft_take_filled(h, 2, 0);
    r->first = weft_take_filled(h, k, 0);
    r->end = weft_take_filled(h, k, 0);
    r->first_row = weft_take_filled(h, k + 1, 0);
    r->part = weft_take(h, r->rows);
    if (h->fault != 0)
        return;
    for (int64_t q = 0; q < k; q++) {
        int64_t from = row, end = weft_end_row(r, k, q);

        while (row < end)
            r->part[row++] = made;
        if (row == from)
            continue;
        weft_window(r, from, row, &r->first[made], &r->end[made]);
        r->first_row[++made] = row;
    }
    r->parts[1] = made;
}

/* Positions of an axis under those of its parent: `width` under each, or, where that is less than
 * 0, as `start` says. */
typedef struct weft_span {
    int64_t parents, width;
    const int64_t *start;
} weft_span;

static WEFT_USED int64_t weft_first(const weft_span *s, int64_t q)
{
    return s->width >= 0 ? q * s->width : s->start[q];
}

/* The position that position p is under. */
static WEFT_USED int64_t weft_above(const weft_span *s, int64_t p)
{
    return s->width > 0 ? p / s->width : s->width == 0 ? 0 : weft_row_of(s->start, s->parents, p);
}

/* A table for searches: two places for each entry, those of a parent side by side, or none at all
 * where no parent has more than `few` entries. */
static WEFT_USED int64_t *weft_map_new(weft_heap *h, const weft_span *s, int64_t few)
{
    int many = 0;

    for (int64_t q = 0; q < s->parents && !many; q++)
        many = weft_first(s, q + 1) - weft_first(s, q) > few;
    return weft_take_filled(h, many ? 2 * weft_first(s, s->parents) : 0, -1);
}

static WEFT_USED void weft_map_put(int64_t *map, int64_t first, int64_t end, int64_t p, uint64_t h)
{
    uint64_t n = 2 * (uint64_t)(end - first), at = weft_place(h, n);

    for (map += 2 * first; map[at] >= 0;)
        at = at + 1 < n ? at + 1 : 0;
    map[at] = p;
}

/* Tuples of places that hang on place `k` of n before each of its positions, and the total: place
 * c hangs on place up[c].  The result is in h, what is counted on the way in tmp. */
static WEFT_USED int64_t *weft_tuples(weft_heap *h, weft_heap *tmp, int n, int k,
                                      const weft_span *span, const int *up)
{
    int64_t total = weft_first(&span[k], span[k].parents), *sum = weft_take_filled(h, total + 1, 1);
    int over = 0;

    for (int c = k + 1; c < n; c++) {
        const int64_t *below = up[c] == k ? weft_tuples(tmp, tmp, n, c, span, up) : 0;

        for (int64_t p = 0; p < total && sum != 0 && below != 0; p++)
            over |= __builtin_mul_overflow(
                sum[p], below[weft_first(&span[c], p + 1)] - below[weft_first(&span[c], p)],
                &sum[p]);
    }
    for (int64_t p = 0, before = 0; p <= total && sum != 0; p++) {
        int64_t here = p < total ? sum[p] : 0;

        sum[p] = before;
        over |= __builtin_add_overflow(before, here, &before);
    }
    if (over || tmp->fault != 0)
        h->fault = WEFT_NOMEM;
    return sum;
}

/* Integers of coordinates: what overflows, or is divided by 0, is 0; only padding does. */
static WEFT_USED int64_t weft_plan_add(int64_t a, int64_t b)
{
    return __builtin_add_overflow(a, b, &a) ? 0 : a;
}

static WEFT_USED int64_t weft_plan_sub(int64_t a, int64_t b)
{
    return __builtin_sub_overflow(a, b, &a) ? 0 : a;
}

static WEFT_USED int64_t weft_plan_mul(int64_t a, int64_t b)
{
    return __builtin_mul_overflow(a, b, &a) ? 0 : a;
}

static WEFT_USED int64_t weft_plan_div(int64_t a, int64_t b)
{
    if (b == 0 || (a == INT64_MIN && b == -1))
        return 0;
    return a / b - (a % b != 0 && (a % b < 0) != (b < 0));
}

static WEFT_USED int64_t weft_plan_mod(int64_t a, int64_t b)
{
    int64_t r = b == 0 || b == -1 ? 0 : a % b;

    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

#endif
