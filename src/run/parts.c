/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Cuts rows and ranges into parts.  The cuts depend on the structure alone, so they are computed
 * once for each structure. */
#include "run/run.h"

static int64_t start_at(const void *start, int bytes, int64_t i)
{
    return bytes == 4 ? ((const int32_t *)start)[i] : ((const int64_t *)start)[i];
}

static int64_t parts_of(int64_t entries, int64_t limit)
{
    return entries <= limit ? 0 : entries / limit + (entries % limit != 0);
}

void run_count_parts(const void *start, int bytes, int64_t n, int64_t part, RunParts *out)
{
    int64_t before = start_at(start, bytes, 0);
    int64_t share = (start_at(start, bytes, n) - before) / RUN_MAX_PARTS;

    part = part > 0 ? part : RUN_PART;
    *out = (RunParts){ .limit = share > part ? share : part };
    for (int64_t i = 0; i < n; i++) {
        int64_t next = start_at(start, bytes, i + 1), k = parts_of(next - before, out->limit);

        out->rows += k > 0;
        out->parts += k;
        before = next;
    }
}

void run_fill_parts(const void *start, int bytes, int64_t n, RunParts *out)
{
    int64_t l = 0, q = 0, e = 0;

    for (int64_t i = 0; i < n; i++) {
        int64_t first = start_at(start, bytes, i), m = start_at(start, bytes, i + 1) - first;
        int64_t k = parts_of(m, out->limit);

        if (k == 0)
            continue;
        out->row[l] = i;
        out->first[l++] = q;
        for (int64_t j = 0; j < k; j++, q++) {
            out->part_row[q] = i;
            out->shift[q] = first - e;
            out->start[q] = e + run_piece(m, k, j);
        }
        e += m;
    }
    out->first[l] = q;
    out->start[q] = e;
}

static int64_t clamp(int64_t k, int64_t least, int64_t most)
{
    return k < least ? least : k > most ? most : k;
}

int64_t run_count_pieces(int64_t n, int64_t part, int64_t each)
{
    int64_t most = clamp(RUN_ROOM / each, RUN_LEAST_PIECES, RUN_MAX_PARTS);
    int64_t chain = part / 4 > RUN_CHAIN ? part / 4 : RUN_CHAIN;
    int64_t k = clamp(n / (part > 0 ? part : 1), 1, most);
    int64_t fine = clamp(n / chain, 0, clamp(RUN_FINE_ROOM / each, 0, RUN_MAX_PIECES));

    return n <= 0 ? 0 : fine > k ? fine : k;
}

/* The first n % pieces of them get one more. */
int64_t run_piece(int64_t n, int64_t pieces, int64_t q)
{
    int64_t rest = n % pieces;

    return n / pieces * q + (q < rest ? q : rest);
}

/* The last row that begins at e or before. */
static int64_t row_of(const void *start, int bytes, int64_t n, int64_t e)
{
    int64_t lo = 0, hi = n;

    while (hi - lo > 1) {
        int64_t mid = lo + (hi - lo) / 2;

        if (start_at(start, bytes, mid) <= e)
            lo = mid;
        else
            hi = mid;
    }
    return lo;
}

void run_rows_of(const void *start, int bytes, int64_t n, int64_t from, int64_t to,
                 int64_t *out_row, int64_t *out_end)
{
    *out_row = row_of(start, bytes, n, from);
    *out_end = to > from ? row_of(start, bytes, n, to - 1) + 1 : *out_row;
}

static int64_t name_at(const RunRows *r, int64_t e)
{
    return r->bytes == 4 ? ((const int32_t *)r->name)[e] : ((const int64_t *)r->name)[e];
}

/* What the entries of each row name. */
static void find_named(RunRows *r)
{
    for (int64_t i = 0; i < r->rows; i++) {
        r->low[i] = r->named;
        r->high[i] = 0;
        for (int64_t e = r->start[i]; e < r->start[i + 1]; e++) {
            int64_t v = name_at(r, e);

            if (v >= 0 && v < r->low[i])
                r->low[i] = v;
            if (v >= r->high[i])
                r->high[i] = v + 1;
        }
    }
}

/* The row that part q ends before, of k parts. */
static int64_t end_of(const RunRows *r, int64_t k, int64_t q)
{
    int64_t n = r->start[r->rows], row, end;

    if (q + 1 == k)
        return r->rows;
    run_rows_of(r->start, sizeof *r->start, r->rows, run_piece(n, k, q), run_piece(n, k, q + 1),
                &row, &end);
    return end;
}

/* What the entries of rows row..end name: the first, the last one and 1, and how many. */
static int64_t window(const RunRows *r, int64_t row, int64_t end, int64_t *low, int64_t *high)
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

/* Rows of the arrays of k parts. */
static int64_t windows(const RunRows *r, int64_t k)
{
    int64_t all = 0, row = 0, low, high;

    for (int64_t q = 0; q < k; q++) {
        int64_t end = end_of(r, k, q);

        all += window(r, row, end, &low, &high);
        row = end > row ? end : row;
    }
    return all;
}

void run_count_rows(RunRows *r, int64_t part)
{
    int64_t n = r->start[r->rows], k = r->rows > 0, room = n / RUN_ROW_ENTRIES;
    int64_t most = part > 0 ? n / part : r->rows > 0 ? room / r->rows : 0;

    find_named(r);
    if (n >= 2 * RUN_PART && room < 2 * r->named)
        room = 2 * r->named;
    while (0 < k && 2 * k <= most && k < RUN_ROW_PARTS)
        k *= 2;
    while (k > 1 && part == 0 && windows(r, k) > room)
        k /= 2;
    r->parts = k;
}

void run_fill_rows(RunRows *r)
{
    int64_t row = 0, made = 0;

    r->first_row[0] = 0;
    for (int64_t q = 0; q < r->parts; q++) {
        int64_t from = row, end = end_of(r, r->parts, q);

        while (row < end)
            r->part[row++] = made;
        if (row == from)
            continue;
        window(r, from, row, &r->first[made], &r->end[made]);
        r->first_row[++made] = row;
    }
    r->parts = made;
}
