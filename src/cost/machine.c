/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * A machine: its text, as it is kept in the cache directory, and rates between the points that
 * were measured.  One line a fact, in one order; the last line is a checksum of all before it. */
#include "cost/cost.h"

#include <math.h>
#include <string.h>

#define FORMAT 4 /* another number never reads an old file */

const char *const cost_stream_name[COST_STREAMS] = { "read", "triad", "copy", "nontemporal" };
const char *const cost_call_name[COST_CALLS] = { "div", "sqrt", "rsqrt", "exp",     "log",
                                                 "sin", "cos",  "tanh",  "sigmoid", "silu" };
static const char *const level_name[COST_LEVELS] = { "L1", "L2", "L3", "memory" };
static const char *const fma_name[2] = { "f32", "f64" };

/* A laptop of these years: what nobody measured has to be something. */
void cost_machine_default(Machine *m, const int64_t cache[COST_LEVELS - 1], int threads)
{
    static const double rate[COST_LEVELS] = { 100, 60, 40, 15 }, far[] = { 60, 40, 20, 5 };
    static const double call[2][COST_CALLS] = {
        { 1, 1, 0.8, 3, 2, 2, 2, 2, 2, 2 }, /* in lanes of f32 */
        { 0.5, 0.5, 0.1, 0.25, 0.05, 0.025, 0.025, 0.025, 0.2, 0.2 },
    };
    double all = threads, shared = fmin(threads, 4);

    *m = (Machine){ .threads = threads, .cpu = "unknown", .isa = "unknown" };
    memcpy(m->cache, cache, sizeof m->cache);
    for (int t = 0; t < COST_THREADS; t++) {
        m->clock[t] = 3;
        m->fma[0][t] = 50 * (t == COST_ALL ? all : 1);
        m->fma[1][t] = 25 * (t == COST_ALL ? all : 1);
        for (int c = 0; c < COST_CALLS; c++)
            for (int wide = 0; wide < 2; wide++)
                m->call[c][wide][t] = call[wide][c] * (t == COST_ALL ? all : 1);
        for (int l = 0; l < COST_LEVELS; l++)
            for (int s = 0; s < COST_STREAMS; s++)
                m->stream[l][s][t] = rate[l] * (t == COST_ONE ? 1 : l < 3 ? all : fmin(shared, 2));
    }
    for (int r = 0; r < COST_ROWS; r++)
        m->row[r] = (int64_t)64 << r;
    m->table[0] = cache[0] / 2;
    m->table[1] = cache[1] / 2;
    m->table[2] = cache[1] * 4;
    m->table[3] = cache[2] / 4;
    m->table[4] = cache[2];
    m->table[5] = cache[2] * 8;
    for (int i = 1; i < COST_TABLES; i++)
        m->table[i] = m->table[i] > m->table[i - 1] ? m->table[i] : 2 * m->table[i - 1];
    for (int r = 0; r < COST_ROWS; r++)
        for (int i = 0; i < COST_TABLES; i++) {
            double near = far[cost_level(m, (double)m->table[i], 1)] * fmin(1, 0.3 + 0.2 * r);

            m->gather[r][i][COST_ONE] = near;
            m->gather[r][i][COST_ALL] = near * shared;
        }
}

static void put_rates(Text *out, const double rate[COST_THREADS])
{
    text_f(out, " %.4g %.4g\n", rate[COST_ONE], rate[COST_ALL]);
}

void cost_machine_print(Text *out, const Machine *m)
{
    size_t begin = out->n;

    text_f(out, "weft-machine %d\ncpu %s\nisa %s\nthreads %d\nmeasured %d\n", FORMAT, m->cpu,
           m->isa, m->threads, m->measured);
    for (int l = 0; l + 1 < COST_LEVELS; l++)
        text_f(out, "cache %s %lld\n", level_name[l], (long long)m->cache[l]);
    text_f(out, "clock");
    put_rates(out, m->clock);
    for (int i = 0; i < 2; i++) {
        text_f(out, "fma %s", fma_name[i]);
        put_rates(out, m->fma[i]);
    }
    for (int c = 0; c < COST_CALLS; c++)
        for (int i = 0; i < 2; i++) {
            text_f(out, "call %s %s", cost_call_name[c], fma_name[i]);
            put_rates(out, m->call[c][i]);
        }
    for (int l = 0; l < COST_LEVELS; l++)
        for (int s = 0; s < COST_STREAMS; s++) {
            text_f(out, "stream %s %s", level_name[l], cost_stream_name[s]);
            put_rates(out, m->stream[l][s]);
        }
    for (int r = 0; r < COST_ROWS; r++)
        for (int t = 0; t < COST_TABLES; t++) {
            text_f(out, "gather %lld %lld", (long long)m->row[r], (long long)m->table[t]);
            put_rates(out, m->gather[r][t]);
        }
    text_f(out, "sum %016llx\n", (unsigned long long)hash_bytes(0, out->s + begin, out->n - begin));
}

typedef struct Reader { /* words of the text, one after the other; bad stays true */
    const char *s, *end;
    bool bad;
} Reader;

static bool is_blank(char c)
{
    return c == ' ' || c == '\n';
}

/* Takes the next word, which n says the length of; at the end of the text that is 0. */
static const char *word(Reader *r, size_t *n)
{
    const char *begin;

    while (r->s < r->end && is_blank(*r->s))
        r->s++;
    for (begin = r->s; r->s < r->end && !is_blank(*r->s);)
        r->s++;
    *n = (size_t)(r->s - begin);
    return begin;
}

static void expect(Reader *r, const char *want)
{
    size_t n;
    const char *s = word(r, &n);

    r->bad = r->bad || n != strlen(want) || memcmp(s, want, n) != 0;
}

static int64_t integer(Reader *r, int64_t least, int64_t most)
{
    size_t n;
    const char *s = word(r, &n);
    int64_t v = least;

    r->bad = r->bad || !num_parse_int(s, n, &v) || v < least || v > most;
    return v;
}

static void rates(Reader *r, double out[COST_THREADS])
{
    for (int t = 0; t < COST_THREADS; t++) {
        size_t n;
        const char *s = word(r, &n);

        r->bad = r->bad || !num_parse(s, n, &out[t]) || !(out[t] >= 1e-3 && out[t] <= 1e9);
    }
}

/* The rest of the line, of a name that may have blanks. */
static void line(Reader *r, const char *key, char out[COST_NAME])
{
    size_t n;

    expect(r, key);
    r->s += r->s < r->end && *r->s == ' ';
    n = r->bad ? 0 : strcspn(r->s, "\n");
    r->bad = r->bad || n == 0 || n >= COST_NAME;
    if (!r->bad)
        memcpy(out, r->s, n);
    out[r->bad ? 0 : n] = 0;
    r->s += r->bad ? 0 : n;
}

static void parse_tables(Reader *r, Machine *m)
{
    expect(r, "clock");
    rates(r, m->clock);
    for (int i = 0; i < 2; i++) {
        expect(r, "fma");
        expect(r, fma_name[i]);
        rates(r, m->fma[i]);
    }
    for (int c = 0; c < COST_CALLS; c++)
        for (int i = 0; i < 2; i++) {
            expect(r, "call");
            expect(r, cost_call_name[c]);
            expect(r, fma_name[i]);
            rates(r, m->call[c][i]);
        }
    for (int l = 0; l < COST_LEVELS; l++)
        for (int s = 0; s < COST_STREAMS; s++) {
            expect(r, "stream");
            expect(r, level_name[l]);
            expect(r, cost_stream_name[s]);
            rates(r, m->stream[l][s]);
        }
    for (int i = 0; i < COST_ROWS; i++)
        for (int t = 0; t < COST_TABLES; t++) {
            expect(r, "gather");
            m->row[i] = integer(r, i == 0 ? 1 : m->row[i - 1], INT64_MAX);
            m->table[t] = integer(r, t == 0 ? 1 : m->table[t - 1] + 1, INT64_MAX);
            rates(r, m->gather[i][t]);
        }
}

/* The text without its last line, if that is the checksum of it; else NULL. */
static const char *body_end(const char *s, size_t n)
{
    static const char key[] = "\nsum ";
    const size_t tail = sizeof key - 1 + 16 + 1;
    char want[32] = "";
    uint64_t sum;

    if (n < tail || memchr(s, 0, n) != NULL || memcmp(s + n - tail, key, sizeof key - 1) != 0)
        return NULL;
    sum = hash_bytes(0, s, n - tail + 1);
    for (int i = 0; i < 16; i++)
        want[i] = "0123456789abcdef"[sum >> (60 - 4 * i) & 15];
    return memcmp(s + n - 17, want, 16) == 0 && s[n - 1] == '\n' ? s + n - tail + 1 : NULL;
}

bool cost_machine_parse(Bytes text, Machine *out)
{
    const char *s = (const char *)text.p;
    Reader r = { s, s, false };
    Machine m = { .threads = 0 };
    size_t n;

    r.end = text.n == 0 ? NULL : body_end(s, text.n);
    if (r.end == NULL)
        return false;
    expect(&r, "weft-machine");
    integer(&r, FORMAT, FORMAT);
    line(&r, "cpu", m.cpu);
    line(&r, "isa", m.isa);
    expect(&r, "threads");
    m.threads = (int)integer(&r, 1, 1 << 20);
    expect(&r, "measured");
    m.measured = integer(&r, 0, 1) != 0;
    for (int l = 0; l + 1 < COST_LEVELS; l++) {
        expect(&r, "cache");
        expect(&r, level_name[l]);
        m.cache[l] = integer(&r, 1, INT64_C(1) << 50);
    }
    parse_tables(&r, &m);
    word(&r, &n);
    if (r.bad || n != 0)
        return false;
    *out = m;
    return true;
}

int cost_level(const Machine *m, double bytes, int threads)
{
    int l = 0;

    while (l + 1 < COST_LEVELS && bytes > (double)m->cache[l] * (l < 2 ? threads : 1))
        l++;
    return l;
}

/* From the rate of one thread to that of all, what is in between as a power of the threads. */
static double between(const double rate[COST_THREADS], int all, int threads)
{
    double gain = rate[COST_ALL] / rate[COST_ONE];

    if (threads <= 1 || all <= 1)
        return rate[COST_ONE];
    return rate[COST_ONE] * pow(gain, log(fmin(threads, all)) / log(all));
}

double cost_stream(const Machine *m, CostStream s, double bytes, int threads)
{
    return between(m->stream[cost_level(m, bytes, threads)][s], m->threads, threads);
}

double cost_fma(const Machine *m, Type type, int threads)
{
    return between(m->fma[type == T_f64], m->threads, threads);
}

double cost_call(const Machine *m, CostCall c, Type type, int threads)
{
    return between(m->call[c][type == T_f64], m->threads, threads);
}

/* Where v stands between the points, which ascend: the lower one, and how far it is to the next, in
 * logarithms.  Outside it is as at the end. */
static int locate(const int64_t *point, int n, double v, double *part)
{
    int i = 0;

    while (i + 2 < n && v >= (double)point[i + 1])
        i++;
    *part = log(fmax(v, 1) / (double)point[i]) / log((double)point[i + 1] / (double)point[i]);
    *part = fmin(fmax(*part, 0), 1);
    return i;
}

double cost_gather(const Machine *m, double row, double table, int threads)
{
    double pr, pt, sum = 0;
    int r = locate(m->row, COST_ROWS, row, &pr), t = locate(m->table, COST_TABLES, table, &pt);

    for (int i = 0; i < 2; i++)
        for (int k = 0; k < 2; k++)
            sum += (i ? pr : 1 - pr) * (k ? pt : 1 - pt) *
                   log(between(m->gather[r + i][t + k], m->threads, threads));
    sum = exp(sum);
    if (row < (double)m->row[0]) /* of each line that is fetched only this much is used */
        sum *= fmax(row, 1) / (double)m->row[0];
    return sum;
}
