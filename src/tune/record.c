/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Records of what was found, as lines of text that can be read, sent and put together.  A line that
 * is not exactly what tune_record_print writes is no record: each ends in a sum over itself. */
#include "tune/tune.h"

#include <string.h>

static const char mark[] = "weft-tuned 1 ";

static bool is_plain(char c)
{
    return c >= ' ' && c < 127 && c != '"';
}

/* Letters of another kind would make a line that does not read. */
static void put_plain(Text *out, const char *s, bool blanks)
{
    for (; *s != 0; s++)
        text_char(out, !is_plain(*s) || (*s == ' ' && !blanks) ? '_' : *s);
}

void tune_record_print(Text *out, const TuneRecord *r)
{
    size_t begin = out->n;
    char us[2][NUM_TEXT];

    num_print(us[0], r->seconds * 1e6);
    num_print(us[1], r->default_s * 1e6);
    text_str(out, mark);
    put_plain(out, r->name[0] != 0 ? r->name : "_", false);
    text_f(out, " program=%016llx exact=%016llx kind=%016llx machine=%016llx threads=%d",
           (unsigned long long)r->key.program, (unsigned long long)r->key.exact,
           (unsigned long long)r->key.kind, (unsigned long long)r->key.machine, r->key.threads);
    text_f(out, " us=%s default_us=%s when=%lld schedule=\"", us[0], us[1], (long long)r->when);
    put_plain(out, r->schedule, true);
    text_char(out, '"');
    text_f(out, " sum=%016llx\n",
           (unsigned long long)hash_bytes(4, out->s + begin, out->n - begin));
}

typedef struct Line { /* what is left of it */
    const char *s;
    size_t n;
    bool good;
} Line;

static void skip(Line *l, const char *word)
{
    size_t n = strlen(word);

    l->good = l->good && l->n >= n && memcmp(l->s, word, n) == 0;
    if (!l->good)
        return;
    l->s += n;
    l->n -= n;
}

/* The bytes before the next of this letter, and that. */
static Line take(Line *l, char end)
{
    const char *at = l->good ? memchr(l->s, end, l->n) : NULL;
    Line word = { l->s, at == NULL ? 0 : (size_t)(at - l->s), at != NULL };

    l->good = l->good && at != NULL;
    if (l->good) {
        l->s += word.n + 1;
        l->n -= word.n + 1;
    }
    return word;
}

static uint64_t take_hash(Line *l, const char *key, char end)
{
    static const char digits[] = "0123456789abcdef";
    uint64_t v = 0;
    Line word;

    skip(l, key);
    word = take(l, end);
    l->good = l->good && word.n == 16;
    for (size_t i = 0; i < word.n && l->good; i++) {
        const char *d = memchr(digits, word.s[i], 16);

        l->good = d != NULL;
        v = v << 4 | (d != NULL ? (uint64_t)(d - digits) : 0);
    }
    return v;
}

static double take_number(Line *l, const char *key, double most)
{
    double v = 0;
    Line word;

    skip(l, key);
    word = take(l, ' ');
    l->good = l->good && num_parse(word.s, word.n, &v) && v >= 0 && v <= most;
    return v;
}

/* At most `most` letters. */
static Line take_text(Line *l, size_t most, char end)
{
    Line word = take(l, end);

    l->good = l->good && word.n <= most;
    for (size_t i = 0; i < word.n && l->good; i++)
        l->good = is_plain(word.s[i]);
    return word;
}

static bool has_sum(Line l)
{
    static const size_t tail = sizeof " sum=" - 1 + 16;
    Line end;
    uint64_t sum;

    if (l.n < tail)
        return false;
    end = (Line){ l.s + l.n - tail, tail + 1, true }; /* with the end of the line */
    sum = take_hash(&end, " sum=", '\n');
    return end.good && sum == hash_bytes(4, l.s, l.n - tail);
}

static bool parse(Arena *arena, Line l, TuneRecord *r)
{
    Line name, schedule;
    char *text;

    *r = (TuneRecord){ .when = 0 };
    if (!has_sum(l))
        return false;
    skip(&l, mark);
    name = take_text(&l, TUNE_NAME - 1, ' ');
    r->key.program = take_hash(&l, "program=", ' ');
    r->key.exact = take_hash(&l, "exact=", ' ');
    r->key.kind = take_hash(&l, "kind=", ' ');
    r->key.machine = take_hash(&l, "machine=", ' ');
    r->key.threads = (int)take_number(&l, "threads=", 1 << 20);
    r->seconds = take_number(&l, "us=", 1e15) / 1e6;
    r->default_s = take_number(&l, "default_us=", 1e15) / 1e6;
    r->when = (int64_t)take_number(&l, "when=", 1e15);
    skip(&l, "schedule=\"");
    schedule = take_text(&l, TUNE_TEXT, '"');
    if (!l.good)
        return false;
    memcpy(r->name, name.s, name.n);
    text = arena_alloc(arena, schedule.n + 1);
    memcpy(text, schedule.s, schedule.n);
    r->schedule = text;
    return true;
}

static int by_key(const TuneKey *a, const TuneKey *b)
{
    const uint64_t x[] = { a->program, a->exact, a->machine, (uint64_t)a->threads };
    const uint64_t y[] = { b->program, b->exact, b->machine, (uint64_t)b->threads };

    for (int i = 0; i < 4; i++)
        if (x[i] != y[i])
            return x[i] < y[i] ? -1 : 1;
    return 0;
}

/* A whole order, so that it does not matter which one was met first. */
static bool is_better(const TuneRecord *a, const TuneRecord *b)
{
    if (a->when != b->when)
        return a->when > b->when;
    if (a->seconds < b->seconds || a->seconds > b->seconds)
        return a->seconds < b->seconds;
    return strcmp(a->schedule, b->schedule) < 0;
}

void tune_records_put(TuneRecords *all, const TuneRecord *r)
{
    for (int i = 0; i < all->n; i++)
        if (by_key(&all->r[i].key, &r->key) == 0) {
            if (is_better(r, &all->r[i]))
                all->r[i] = *r;
            return;
        }
    all->r = arena_grow(all->arena, all->r, all->n, &all->cap, sizeof *all->r);
    all->r[all->n++] = *r;
}

/* What a write that was cut short has left stands before the next line: the last mark counts. */
static Line last_record(const char *s, size_t n)
{
    const size_t k = sizeof mark - 1;
    Line l = { s, n, true };

    for (size_t i = n < k ? 0 : n - k; i > 0; i--)
        if (memcmp(s + i, mark, k) == 0)
            return (Line){ s + i, n - i, true };
    return l;
}

void tune_records_add(TuneRecords *all, Bytes text)
{
    const char *s = (const char *)text.p, *end = s == NULL ? NULL : s + text.n;

    while (s < end) {
        const char *stop = memchr(s, '\n', (size_t)(end - s));
        size_t n = (size_t)((stop == NULL ? end : stop) - s);
        Line l = last_record(s, n);
        TuneRecord r;

        if (n > 0 && stop != NULL && parse(all->arena, l, &r))
            tune_records_put(all, &r);
        else
            all->damaged += n > 0;
        s = stop == NULL ? end : stop + 1;
    }
}

static int by_name(const void *a, const void *b)
{
    const TuneRecord *x = a, *y = b;
    int order = strcmp(x->name, y->name);

    return order != 0 ? order : by_key(&x->key, &y->key);
}

void tune_records_sort(TuneRecords *all)
{
    array_sort(all->r, all->n, sizeof *all->r, by_name);
}

static bool is_of(const TuneRecord *r, const TuneKey *key)
{
    return r->key.program == key->program && r->key.machine == key->machine &&
           r->key.threads == key->threads;
}

bool tune_records_know(const TuneRecords *all, const TuneKey *key)
{
    bool any = false;

    for (int i = 0; i < all->n; i++)
        any = any || is_of(&all->r[i], key);
    return any;
}

const TuneRecord *tune_records_find(const TuneRecords *all, const TuneKey *key)
{
    const TuneRecord *found = NULL;

    for (int i = 0; i < all->n; i++) {
        const TuneRecord *r = &all->r[i];

        if (!is_of(r, key))
            continue;
        if (r->key.exact == key->exact)
            return r;
        if (r->key.kind == key->kind && (found == NULL || is_better(r, found)))
            found = r;
    }
    return found;
}
