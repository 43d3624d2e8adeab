/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * A level that has one position for each distinct value, if the possible values are few enough for
 * a bit each: the number of a value is the number of bits set below it.  Nothing is sorted. */
#include "format/format_int.h"

#include <stdatomic.h>

enum { BITS_AN_ENTRY = 32, SMALL = 1 << 16 };

typedef struct Set {
    FmtWork *w;
    int64_t per;                          /* values under one parent */
    int64_t lo[IR_MAX_RANK], by[IR_MAX_RANK], range[IR_MAX_RANK]; /* of what is stored */
    int64_t words, blocks;
    _Atomic uint64_t *word;
    FmtCol before;               /* by word: bits before it */
    int64_t at[FMT_MOST_BLOCKS + 1]; /* the same by block of words */
} Set;

static int ones(uint64_t x)
{
    x -= x >> 1 & 0x5555555555555555;
    x = (x & 0x3333333333333333) + (x >> 2 & 0x3333333333333333);
    x = (x + (x >> 4)) & 0x0f0f0f0f0f0f0f0f;
    return (int)(x * 0x0101010101010101 >> 56);
}

/* value = sum (stored - lo) * by, below `per`; false: they are too many. */
static bool measure(Set *s)
{
    FmtWork *w = s->w;
    int64_t all, most;

    s->per = 1;
    for (int k = w->out->ncoord - 1; k >= 0; k--) {
        int64_t hi;

        if (w->axis->load[k] == NULL)
            continue;
        if (!fmt_range(&w->b->eval, w->axis->load[k], &s->lo[k], &hi) ||
            int_sub(hi, s->lo[k], &s->range[k]) || int_add(s->range[k], 1, &s->range[k]))
            return false;
        s->by[k] = s->per;
        if (int_mul(s->per, s->range[k], &s->per))
            return false;
    }
    if (int_mul(w->out->parents, s->per, &all) || int_mul(w->b->eval.n, BITS_AN_ENTRY, &most) ||
        int_add(most, SMALL, &most) || all > most)
        return false;
    s->words = all / 64 + 1; /* not speed: bits of a word */
    return true;
}

static void values(const Set *s, int64_t from, int64_t n, int64_t *out)
{
    const FmtBuild *b = s->w->b;
    int64_t v[FMT_RUN];

    for (int64_t t = 0; t < n; t++)
        out[t] = b->pos.data != NULL ? fmt_at(&b->pos, from + t) * s->per : 0;
    for (int k = 0; k < s->w->out->ncoord; k++)
        if (s->w->axis->load[k] != NULL) {
            fmt_eval_run(&b->eval, s->w->axis->load[k], from, n, v);
            for (int64_t t = 0; t < n; t++)
                out[t] += (v[t] - s->lo[k]) * s->by[k];
        }
}

/* Calls `see` on the values of all entries of a block, some at a time. */
static void each_run(Set *s, int64_t block,
                     void (*see)(Set *, int64_t from, int64_t n, const int64_t *v))
{
    const FmtBuild *b = s->w->b;
    int64_t from = fmt_cut(b->eval.n, b->blocks, block), v[FMT_RUN];
    int64_t end = fmt_cut(b->eval.n, b->blocks, block + 1);

    for (; from < end; from += FMT_RUN) {
        int64_t n = end - from < FMT_RUN ? end - from : FMT_RUN;

        values(s, from, n, v);
        see(s, from, n, v);
    }
}

static void mark_run(Set *s, int64_t from, int64_t n, const int64_t *v)
{
    (void)from;
    for (int64_t t = 0; t < n; t++) {
        _Atomic uint64_t *to = &s->word[v[t] >> 6];
        uint64_t bit = (uint64_t)1 << (v[t] & 63);

        if (!(atomic_load_explicit(to, memory_order_relaxed) & bit))
            atomic_fetch_or_explicit(to, bit, memory_order_relaxed);
    }
}

static void mark(void *arg, int64_t block)
{
    each_run(arg, block, mark_run);
}

static void count_words(void *arg, int64_t b)
{
    Set *s = arg;
    int64_t n = 0, end = fmt_cut(s->words, s->blocks, b + 1);

    for (int64_t x = fmt_cut(s->words, s->blocks, b); x < end; x++)
        n += ones(s->word[x]);
    s->at[b + 1] = n;
}

/* What is stored at position p, for a value. */
static void store(const Set *s, int64_t value, int64_t p)
{
    FmtWork *w = s->w;

    for (int k = 0; k < w->out->ncoord; k++)
        if (w->axis->load[k] != NULL) {
            int64_t v = value / s->by[k] % s->range[k] + s->lo[k];

            if (fmt_is_outside(w, k, v))
                atomic_store(&w->bad, true);
            fmt_put(w->out->coord[k].data, w->out->coord[k].type == T_i64, p, v);
        }
}

static void number_words(void *arg, int64_t b)
{
    Set *s = arg;
    int64_t p = s->at[b], end = fmt_cut(s->words, s->blocks, b + 1);

    for (int64_t x = fmt_cut(s->words, s->blocks, b); x < end; x++) {
        uint64_t rest = s->word[x];

        fmt_set(&s->before, x, p);
        for (; rest != 0; rest &= rest - 1)
            store(s, x * 64 + ones((rest & (0 - rest)) - 1), p++); /* not speed: bits */
    }
}

static int64_t number_of(const Set *s, int64_t value)
{
    uint64_t below = s->word[value >> 6] & (((uint64_t)1 << (value & 63)) - 1);

    return fmt_at(&s->before, value >> 6) + ones(below);
}

static void find_starts(void *arg, int64_t b)
{
    Set *s = arg;
    Array *start = &s->w->out->start;
    int64_t blocks = fmt_blocks(start->n), end = fmt_cut(start->n, blocks, b + 1);

    for (int64_t q = fmt_cut(start->n, blocks, b); q < end; q++)
        fmt_put(start->data, start->type == T_i64, q, number_of(s, q * s->per));
}

static void place_run(Set *s, int64_t from, int64_t n, const int64_t *v)
{
    for (int64_t t = 0; t < n; t++)
        fmt_set(&s->w->to, from + t, number_of(s, v[t]));
}

static void place(void *arg, int64_t block)
{
    each_run(arg, block, place_run);
}

static void number_all(Set *s)
{
    FmtWork *w = s->w;
    const FmtRun *run = w->b->run;

    s->word = arena_array(run->scratch, s->words, sizeof *s->word);
    s->blocks = fmt_blocks(s->words);
    fmt_each(run, w->b->blocks, mark, s);
    fmt_each(run, s->blocks, count_words, s);
    for (int64_t b = 0; b < s->blocks; b++)
        s->at[b + 1] += s->at[b];
    w->out->total = s->at[s->blocks];
    fmt_set_total(w, w->axis->axis->extent == X_SEG ? -1 : w->out->total);
    s->before.wide = w->out->total > INT32_MAX;
    s->before.data = arena_raw(run->scratch, s->words, s->before.wide ? 8 : 4);
    for (int k = 0; k < w->out->ncoord; k++)
        if (w->axis->load[k] != NULL)
            w->out->coord[k] = fmt_coord_room(w, k, false);
    fmt_each(run, s->blocks, number_words, s);
}

bool fmt_place_bits(FmtWork *w)
{
    Set s = { .w = w };
    bool row = w->axis->axis->extent == X_SEG || (w->root && w->axis->extent == NULL);
    int64_t total;
    Text t = { .arena = w->b->arena };

    for (int k = 0; k < w->out->ncoord; k++)
        if (w->axis->load[k] != NULL)
            fmt_prepare(&w->b->eval, w->axis->load[k]);
    if (!row || w->last || !(w->axis->axis->flags & AX_UNIQUE) || !measure(&s))
        return false;
    number_all(&s);
    total = w->out->total;
    if (w->axis->axis->extent == X_SEG) {
        w->out->start = fmt_room(w, w->out->parents + 1, 0, total);
        fmt_each(w->b->run, fmt_blocks(w->out->parents + 1), find_starts, &s);
    }
    if (w->bad) {
        text_f(&t, "axis %s would store a coordinate outside its bound", w->out->name);
        fmt_refuse(w->b, ST_BIND, t.s);
    }
    fmt_to_room(w);
    fmt_each(w->b->run, w->b->blocks, place, &s);
    return true;
}
