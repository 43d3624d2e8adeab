/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Work on many entries in blocks, and the sort that conversion uses: stable, by columns of
 * integers, by digits from the least significant.  Columns that fit 31 bits together are one key;
 * otherwise columns are sorted one after the other, and a column that is in order costs one pass.
 * The result depends on the entries alone, and not on blocks or threads. */
#include "format/format_int.h"

#include <stdatomic.h>
#include <string.h>

enum { LEAST_DIGIT = 8, MOST_DIGIT = 17, NARROW_BITS = 31, MOST_BITS = 62 };

int64_t fmt_blocks(int64_t n)
{
    int64_t blocks = n / FMT_BLOCK + 1;

    return blocks < FMT_MOST_BLOCKS ? blocks : FMT_MOST_BLOCKS;
}

void fmt_each(const FmtRun *r, int64_t n, FmtTask *task, void *arg)
{
    if (r->pool != NULL && n > 1)
        r->pool->run(r->pool->with, n, task, arg);
    else
        for (int64_t b = 0; b < n; b++)
            task(arg, b);
}

FmtCol fmt_column(const FmtRun *r, int64_t lo, int64_t hi)
{
    FmtSpare *s = r->spare;
    FmtCol c = { .wide = lo < INT32_MIN || hi > INT32_MAX, .lo = lo, .hi = hi };

    if (s->n[c.wide] > 0)
        c.data = s->column[c.wide][--s->n[c.wide]];
    else
        c.data = arena_raw(r->scratch, s->cap + 1, c.wide ? sizeof(int64_t) : sizeof(int32_t));
    return c;
}

void fmt_give(const FmtRun *r, const FmtCol *c)
{
    FmtSpare *s = r->spare;

    if (c->data != NULL && s->n[c->wide] < FMT_SPARE)
        s->column[c->wide][s->n[c->wide]++] = c->data;
}

static int bits_of(const FmtCol *c)
{
    uint64_t most = (uint64_t)c->hi - (uint64_t)c->lo;
    int bits = 0;

    for (; most > 0; most >>= 1)
        bits++;
    return bits;
}

typedef struct Look { /* at rows: whether they fall; at a column: what is in it */
    const FmtSort *s;
    const FmtCol *col;
    int64_t blocks, lo[FMT_MOST_BLOCKS], hi[FMT_MOST_BLOCKS];
    _Atomic bool falls;
} Look;

static bool falls_at(const FmtSort *s, int64_t t)
{
    for (int k = 0; k < s->ncol; k++) {
        int64_t a = fmt_at(&s->col[k], t - 1), b = fmt_at(&s->col[k], t);

        if (a != b)
            return a > b;
    }
    return false;
}

static void look_for_falls(void *arg, int64_t b)
{
    Look *l = arg;
    int64_t t = fmt_cut(l->s->n, l->blocks, b), end = fmt_cut(l->s->n, l->blocks, b + 1);

    if (atomic_load_explicit(&l->falls, memory_order_relaxed))
        return;
    for (t += t == 0; t < end && !falls_at(l->s, t); t++)
        ;
    if (t < end)
        atomic_store_explicit(&l->falls, true, memory_order_relaxed);
}

static void look_for_range(void *arg, int64_t b)
{
    Look *l = arg;
    int64_t t = fmt_cut(l->s->n, l->blocks, b), end = fmt_cut(l->s->n, l->blocks, b + 1);

    l->lo[b] = INT64_MAX;
    l->hi[b] = INT64_MIN;
    for (; t < end; t++) {
        int64_t v = fmt_at(l->col, t);

        l->lo[b] = v < l->lo[b] ? v : l->lo[b];
        l->hi[b] = v > l->hi[b] ? v : l->hi[b];
    }
}

/* The numbers that are really in a column, for more than the bits of a key. */
static void tighten(const FmtRun *r, const FmtSort *s, FmtCol *c)
{
    Look l = { .s = s, .col = c, .blocks = fmt_blocks(s->n) };

    fmt_each(r, l.blocks, look_for_range, &l);
    c->lo = INT64_MAX;
    c->hi = INT64_MIN;
    for (int64_t b = 0; b < l.blocks; b++) {
        c->lo = l.lo[b] < c->lo ? l.lo[b] : c->lo;
        c->hi = l.hi[b] > c->hi ? l.hi[b] : c->hi;
    }
    if (c->lo == INT64_MIN)
        err_throw(r->scratch->err, ST_RUN,
                  "format %s: a value that does not fit 64 bits, or is divided by zero", r->name);
}

/* Bits of all columns, after what makes them fewer when they are too many. */
static int count_bits(const FmtRun *r, const FmtSort *s, FmtCol *col)
{
    int bits = 0;

    for (int k = 0; k < s->ncol; k++)
        bits += bits_of(&col[k]);
    if (bits <= MOST_BITS)
        return bits;
    bits = 0;
    for (int k = 0; k < s->ncol; k++) {
        tighten(r, s, &col[k]);
        bits += bits_of(&col[k]);
    }
    if (bits > MOST_BITS)
        err_throw(r->scratch->err, ST_LIMIT,
                  "format %s: more combinations of values than fit 64 bits", r->name);
    return bits;
}

typedef struct Keys { /* columns first..end as one number, in the order so far */
    const FmtSort *s;
    const FmtCol *col;
    int first, end, bits, shift[8];
    FmtCol key;
    int64_t blocks;
    _Atomic bool falls;
} Keys;

static void set_shifts(Keys *k)
{
    for (int c = k->end - 1; c >= k->first; c--) {
        k->shift[c] = k->bits;
        k->bits += bits_of(&k->col[c]);
    }
}

static int64_t key_of(const Keys *k, int64_t row)
{
    int64_t key = 0;

    for (int c = k->first; c < k->end; c++)
        key |= (fmt_at(&k->col[c], row) - k->col[c].lo) << k->shift[c];
    return key;
}

static void make_keys(void *arg, int64_t b)
{
    Keys *k = arg;
    int64_t t = fmt_cut(k->s->n, k->blocks, b), end = fmt_cut(k->s->n, k->blocks, b + 1);
    int64_t last = t > 0 && t < end ? key_of(k, fmt_from(k->s, t - 1)) : 0;
    bool falls = false;

    for (; t < end; t++) {
        int64_t key = key_of(k, fmt_from(k->s, t));

        falls = falls || key < last;
        fmt_set(&k->key, t, key);
        last = key;
    }
    if (falls)
        atomic_store_explicit(&k->falls, true, memory_order_relaxed);
}

typedef struct Pass { /* one digit; wide: keys, order and counts are of 64 bits */
    int64_t n, blocks;
    int shift, bits;
    bool wide;
    const void *key, *order; /* order NULL: 0, 1, ... */
    void *to_key, *to_order; /* to_key NULL: nobody asks for them */
    void *count;             /* by block, then digit: how many; then, where the next goes */
} Pass;

static inline int64_t digit_at(const Pass *p, int64_t t, bool wide)
{
    return (fmt_get(p->key, wide, t) >> p->shift) & (((int64_t)1 << p->bits) - 1);
}

static inline char *counts_of(const Pass *p, int64_t b, bool wide)
{
    return (char *)p->count + ((b << p->bits) * (wide ? 8 : 4));
}

static inline void count_digits(const Pass *p, int64_t b, bool wide)
{
    int64_t end = fmt_cut(p->n, p->blocks, b + 1);
    void *count = counts_of(p, b, wide);

    memset(count, 0, (size_t)(wide ? 8 : 4) << p->bits);
    for (int64_t t = fmt_cut(p->n, p->blocks, b); t < end; t++) {
        int64_t d = digit_at(p, t, wide);

        fmt_put(count, wide, d, fmt_get(count, wide, d) + 1);
    }
}

static inline void move_digits(const Pass *p, int64_t b, bool wide)
{
    int64_t end = fmt_cut(p->n, p->blocks, b + 1);
    void *next = counts_of(p, b, wide);

    for (int64_t t = fmt_cut(p->n, p->blocks, b); t < end; t++) {
        int64_t d = digit_at(p, t, wide), to = fmt_get(next, wide, d);

        fmt_put(next, wide, d, to + 1);
        fmt_put(p->to_order, wide, to, p->order != NULL ? fmt_get(p->order, wide, t) : t);
        if (p->to_key != NULL)
            fmt_put(p->to_key, wide, to, fmt_get(p->key, wide, t));
    }
}

static void count_block(void *arg, int64_t b)
{
    const Pass *p = arg;

    if (p->wide)
        count_digits(p, b, true);
    else
        count_digits(p, b, false);
}

static void move_block(void *arg, int64_t b)
{
    const Pass *p = arg;

    if (p->wide)
        move_digits(p, b, true);
    else
        move_digits(p, b, false);
}

static void place_digits(const Pass *p)
{
    int64_t at = 0;

    for (int64_t d = 0; d < (int64_t)1 << p->bits; d++)
        for (int64_t b = 0; b < p->blocks; b++) {
            void *count = counts_of(p, b, p->wide);
            int64_t n = fmt_get(count, p->wide, d);

            fmt_put(count, p->wide, d, at);
            at += n;
        }
}

/* Digits as large as the number of entries pays for: each pass moves all of them. */
static int digit_bits(int64_t n, int bits)
{
    int most = LEAST_DIGIT, passes;

    while (most < MOST_DIGIT && n >> (most + 4) > 0)
        most++;
    passes = (bits + most - 1) / most;
    return (bits + passes - 1) / passes;
}

static void *order_room(const FmtRun *r, FmtSort *s, bool last, FmtCol *out)
{
    *out = fmt_column(r, 0, s->key.wide ? INT64_MAX : 0);
    if (last && s->keep != NULL && !s->key.wide) {
        fmt_give(r, out);
        out->data = arena_raw(s->keep, s->n, sizeof(int32_t));
        s->kept = true;
    }
    return out->data;
}

/* By the keys that are in s->key, of so many bits.  own: its memory is a column of ours. */
static void sort_keys(const FmtRun *r, FmtSort *s, int bits, bool own, bool last)
{
    Pass p = { .n = s->n, .wide = s->key.wide };
    int digit = digit_bits(s->n, bits);

    p.blocks = ((s->n >> (digit + 2)) + 1) / 2 * 2; /* counts are no more than half of the keys */
    p.blocks = p.blocks < 1 ? 1 : p.blocks > FMT_MOST_BLOCKS ? FMT_MOST_BLOCKS : p.blocks;
    p.count = arena_raw(r->scratch, p.blocks << digit, p.wide ? 8 : 4);
    for (; p.shift < bits; p.shift += digit) {
        bool end = p.shift + digit >= bits;
        FmtCol key = { 0 }, order;

        p.bits = end ? bits - p.shift : digit;
        p.key = s->key.data;
        p.order = s->order.data;
        if (!(end && last && s->prefix == 0 && !s->whole))
            key = fmt_column(r, s->key.lo, s->key.hi);
        p.to_key = key.data;
        p.to_order = order_room(r, s, end && last, &order);
        fmt_each(r, p.blocks, count_block, &p);
        place_digits(&p);
        fmt_each(r, p.blocks, move_block, &p);
        if (own)
            fmt_give(r, &s->key);
        fmt_give(r, &s->order);
        s->key = key;
        s->order = order;
        own = true;
    }
}

/* A column that is its own key; whether it falls. */
static bool is_key(const FmtSort *s, const Keys *k, bool wide)
{
    const FmtCol *c = &k->col[k->first];

    return k->end == k->first + 1 && s->order.data == NULL && c->lo == 0 && c->wide == wide;
}

static bool does_fall(const FmtRun *r, const FmtCol *col, int ncol, int64_t n)
{
    FmtSort s = { .col = col, .ncol = ncol, .n = n };
    Look l = { .s = &s, .blocks = fmt_blocks(n) };

    fmt_each(r, l.blocks, look_for_falls, &l);
    return l.falls;
}

/* Columns first..end, after those that come later. */
static void sort_by(const FmtRun *r, FmtSort *s, const FmtCol *col, int first, int end, bool wide)
{
    Keys k = { .s = s, .col = col, .first = first, .end = end, .blocks = fmt_blocks(s->n) };

    set_shifts(&k);
    fmt_give(r, &s->key);
    s->key = (FmtCol){ 0 };
    if (is_key(s, &k, wide)) {
        if (!does_fall(r, &col[first], 1, s->n))
            return;
        s->key = col[first];
        s->key.hi = wide ? INT64_MAX : INT32_MAX;
        sort_keys(r, s, k.bits, false, first == 0);
    } else {
        k.key = fmt_column(r, 0, wide ? INT64_MAX : INT32_MAX);
        fmt_each(r, k.blocks, make_keys, &k);
        s->key = k.key;
        if (k.falls)
            sort_keys(r, s, k.bits, true, first == 0);
    }
}

/* After all columns have been sorted by, one by one: whole rows as keys. */
static void join_keys(const FmtRun *r, FmtSort *s, const FmtCol *col)
{
    Keys k = { .s = s, .col = col, .end = s->ncol, .blocks = fmt_blocks(s->n) };

    set_shifts(&k);
    fmt_give(r, &s->key);
    k.key = fmt_column(r, 0, INT64_MAX);
    fmt_each(r, k.blocks, make_keys, &k);
    s->key = k.key;
}

void fmt_sort(const FmtRun *r, FmtSort *s)
{
    FmtCol col[8];
    bool few, wide = s->n > INT32_MAX;

    memcpy(col, s->col, (size_t)s->ncol * sizeof *col);
    for (int k = 0; k < s->ncol; k++)
        if (col[k].lo == INT64_MIN)
            tighten(r, s, &col[k]);
    if (!does_fall(r, col, s->ncol, s->n))
        return;
    few = count_bits(r, s, col) <= NARROW_BITS && !wide;
    for (int k = 0; k < s->ncol; k++)
        wide = wide || (!few && bits_of(&col[k]) > NARROW_BITS);
    for (int k = few ? 0 : s->ncol - 1; k >= 0; k--)
        sort_by(r, s, col, k, few ? s->ncol : k + 1, wide);
    for (int k = s->prefix; k < s->ncol && (few || s->whole); k++)
        s->below += bits_of(&col[k]);
    if (!few && s->whole && s->ncol > 1)
        join_keys(r, s, col);
}

void fmt_sorted(const FmtRun *r, const FmtSort *s)
{
    fmt_give(r, &s->key);
    if (!s->kept)
        fmt_give(r, &s->order);
}
