/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Measures the machine once: runs the loops of emit/probe.h like a kernel, on one thread and on
 * all.  The result is kept as text in the cache directory.  A file that is damaged, or of another
 * machine, is ignored and measured again. */
#include "api/api_int.h"
#include "cost/cost.h"
#include "emit/emit.h"
#include "jit/jit.h"
#include "run/run.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum {
    FMA_F32,
    FMA_F64,
    READ,
    TRIAD,
    COPY,
    NONTEMPORAL,
    GATHER,
    FUNCTION, /* of CostCall c: f32 at FUNCTION + 2 * c, f64 after it */
    PROBES = FUNCTION + 2 * COST_CALLS
};
static const char *const symbol_of[FUNCTION] = { "probe_fma_f32", "probe_fma_f64", "probe_read",
                                             "probe_triad",   "probe_copy",    "probe_nontemporal",
                                             "probe_gather" };
static const int arrays_of[PROBES] = { [READ] = 1, [TRIAD] = 3, [COPY] = 2, [NONTEMPORAL] = 3 };

enum {
    LEAST_TRIES = 4,
    MOST_TRIES = 40,
    SINK = 16,
    LINE = CACHE_LINE / 4,
    CHAINS = 12,
    STEPS = 400000,
    CALLED = 1024, /* elements of each thread that functions are called for, */
    CALLS = 100    /* this many times a try */
};
#define MOST_TEXT ((int64_t)1 << 24)    /* bytes of a file */
#define MOVED ((int64_t)64 << 20)   /* bytes that one try of a stream moves, in caches */
#define GATHERED ((int64_t)8 << 20) /* by each thread; more when the table is large */
#define MOST_INDICES ((int64_t)1 << 20)
#define LEAST_MEMORY ((int64_t)64 << 20) /* of a working set that no cache holds */

typedef struct Probe {
    weft_ctx *ctx;
    const Target *target;
    JitModule *module;
    RunPhaseFn *fn[PROBES];
    Pool *pool[COST_THREADS];
    int threads[COST_THREADS];
    float *block;   /* one block for the arrays of streams, and for the table */
    int32_t *index; /* random; as many as MOST_INDICES for each thread */
    float *sink;
    int64_t floats; /* of the block */
    int64_t cache;  /* bytes of L3 */
    void *array[5];
    int64_t size[5];
} Probe;

/* The text of a file of the system, or nothing. */
Bytes api_read_quietly(weft_ctx *ctx, const char *path, int64_t most)
{
    jmp_buf trap, *outer = ctx->err.trap;
    Bytes text = { NULL, 0 };

    ctx->err.trap = &trap;
    if (setjmp(trap) == 0) {
        text = file_read(&ctx->scratch, path, most);
    } else if (ctx->err.code == ST_NOMEM) {
        ctx->err.trap = outer;
        err_jump(&ctx->err);
    } else {
        err_clear(&ctx->err);
        text = (Bytes){ NULL, 0 };
    }
    ctx->err.trap = outer;
    return text;
}

static const char *text_of(weft_ctx *ctx, Bytes b)
{
    Text t = { .arena = &ctx->scratch };

    if (b.n > 0)
        text_put(&t, (const char *)b.p, b.n);
    return b.n > 0 ? t.s : "";
}

static void name_cpu(weft_ctx *ctx, char out[COST_NAME])
{
    const char *text = text_of(ctx, api_read_quietly(ctx, "/proc/cpuinfo", MOST_TEXT));
    const char *s = strstr(text, "model name");

    s = s == NULL ? NULL : strchr(s, ':');
    snprintf(out, COST_NAME, "%.*s", s == NULL ? 7 : (int)strcspn(s + 2, "\n"),
             s == NULL ? "unknown" : s + 2);
    for (char *c = out; *c != 0; c++)
        *c = (unsigned char)*c < 32 ? ' ' : *c;
    if (out[0] == 0)
        snprintf(out, COST_NAME, "unknown");
}

/* "32K" or "1M" to bytes; 0 for anything else. */
static int64_t parse_size(const char *s)
{
    size_t n = strspn(s, "0123456789");
    int64_t v = 0;

    if (n == 0 || n > 9 || !num_parse_int(s, n, &v))
        return 0;
    return s[n] == 'K' ? v << 10 : s[n] == 'M' ? v << 20 : v;
}

static const char *cache_fact(weft_ctx *ctx, int i, const char *what)
{
    Text path = { .arena = &ctx->scratch };

    text_f(&path, "/sys/devices/system/cpu/cpu0/cache/index%d/%s", i, what);
    return text_of(ctx, api_read_quietly(ctx, path.s, MOST_TEXT));
}

static void find_caches(weft_ctx *ctx, int64_t out[COST_LEVELS - 1])
{
    for (int i = 0; i < COST_LEVELS - 1; i++)
        out[i] = 0;
    for (int i = 0; i < 8; i++) {
        const char *level = cache_fact(ctx, i, "level");
        int64_t bytes = parse_size(cache_fact(ctx, i, "size"));

        if (level[0] >= '1' && level[0] <= '3' && cache_fact(ctx, i, "type")[0] != 'I' && bytes > 0)
            out[level[0] - '1'] = bytes;
    }
    if (out[0] <= 0)
        out[0] = 32 << 10;
    if (out[1] <= out[0])
        out[1] = 16 * out[0];
    if (out[2] <= out[1])
        out[2] = 16 * out[1];
}

/* The guess, and the name of the machine. */
static void describe(weft_ctx *ctx, Machine *m)
{
    int64_t cache[COST_LEVELS - 1];
    int cpus = ctx->os->cpus(ctx->os);

    find_caches(ctx, cache);
    cost_machine_default(m, cache, cpus > POOL_MAX_THREADS ? POOL_MAX_THREADS : cpus);
    name_cpu(ctx, m->cpu);
    snprintf(m->isa, sizeof m->isa, "%s", target_name(api_target(ctx)));
}

static void name_probes(weft_ctx *ctx, const char *symbol[PROBES])
{
    for (int i = 0; i < PROBES; i++) {
        Text name = { .arena = &ctx->scratch };

        if (i < FUNCTION)
            text_str(&name, symbol_of[i]);
        else
            text_f(&name, "probe_%s_%s", cost_call_name[(i - FUNCTION) / 2],
                   (i - FUNCTION) % 2 == 0 ? "f32" : "f64");
        symbol[i] = name.s;
    }
}

static void load_probes(Probe *p)
{
    weft_ctx *ctx = p->ctx;
    const char *flag[16] = { "-O2", "-std=gnu11", "-ffp-contract=off" };
    Text source = { .arena = &ctx->scratch }, identity = { .arena = &ctx->scratch };
    const char *symbol[PROBES];
    JitRequest r = { .flag = flag, .nflag = 3, .symbol = symbol, .nsymbol = PROBES };

    text_f(&source, "/* weft: the machine */\n%s%s%s", p->target->dialect->prelude,
           emit_elementary_h, emit_probe_h);
    text_f(&identity, "weft %s, %s", weft_version(), target_name(p->target));
    for (int i = 0; p->target->flag[i] != NULL; i++)
        flag[r.nflag++] = p->target->flag[i];
    name_probes(ctx, symbol);
    r.source = source.s;
    r.nsource = source.n;
    r.identity = identity.s;
    p->module = jit_get(api_jit(ctx), &ctx->err, &r, NULL);
    for (int i = 0; i < PROBES; i++)
        *(void **)&p->fn[i] = jit_symbol(p->module, symbol[i]);
}

static void *need_block(Probe *p, int64_t bytes)
{
    void *block = run_alloc(p->ctx->os, bytes);

    if (block == NULL)
        err_throw(&p->ctx->err, ST_NOMEM, "out of memory: %lld more bytes were needed",
                  (long long)bytes);
    return block;
}

static void take_memory(Probe *p, const Machine *m)
{
    int64_t bytes = m->table[COST_TABLES - 1];
    uint64_t state = 1;

    bytes = bytes > 4 * LEAST_MEMORY ? bytes : 4 * LEAST_MEMORY;
    p->floats = bytes / 4;
    p->block = need_block(p, bytes);
    p->index = need_block(p, p->threads[COST_ALL] * MOST_INDICES * (int64_t)sizeof *p->index);
    p->sink = need_block(p, p->threads[COST_ALL] * SINK * (int64_t)sizeof *p->sink);
    for (int64_t i = 0; i < p->floats; i++)
        p->block[i] = 1;
    for (int64_t i = 0; i < p->threads[COST_ALL] * MOST_INDICES; i++) {
        state = hash_int(state, (uint64_t)i);
        p->index[i] = (int32_t)(state >> 33);
    }
}

/* The shortest try, in seconds, when several in a row have brought nothing; one part a thread. */
static double time_probe(Probe *p, int probe, int team)
{
    const Os *os = p->ctx->os;
    RunPhase phase = { .fn = p->fn[probe], .n = p->threads[team], .grain = 1 };
    double best = 0;

    for (int i = 0, vain = 0; i < MOST_TRIES && vain < LEAST_TRIES; i++) {
        int64_t begin = os->clock(os, CLOCK_MONOTONIC);
        double took;

        run_phases(p->pool[team], &phase, 1, p->array, p->size);
        took = (double)(os->clock(os, CLOCK_MONOTONIC) - begin + 1) / 1e9;
        vain = i > 0 && took > 0.99 * best ? vain + 1 : 0;
        best = i == 0 || took < best ? took : best;
    }
    return best;
}

/* A shift and an exclusive or take a cycle each, on every CPU of these years, and each of them
 * waits for the one before. */
static double measure_clock(Probe *p)
{
    enum { ROUNDS = 100000, CYCLES = 6 };
    const Os *os = p->ctx->os;
    int64_t best = INT64_MAX;

    for (int i = 0; i < MOST_TRIES; i++) {
        int64_t begin = os->clock(os, CLOCK_MONOTONIC), took;
        uint64_t x = (uint64_t)begin | 1;

        for (int k = 0; k < ROUNDS; k++) {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
        }
        p->sink[0] = (float)(x & 1);
        took = os->clock(os, CLOCK_MONOTONIC) - begin + 1;
        best = took < best ? took : best;
    }
    return (double)ROUNDS * CYCLES / (double)best;
}

static double measure_fma(Probe *p, int probe, int team)
{
    int64_t lanes = lanes_of(&p->target->unit, probe == FMA_F64 ? T_f64 : T_f32);
    double flops = 2.0 * CHAINS * (double)lanes * STEPS * p->threads[team];

    p->size[1] = STEPS;
    return flops / time_probe(p, probe, team) / 1e9;
}

/* Results of a function, of arguments from 0.25 to 4 that no two neighbours share, in L1. */
static double measure_call(Probe *p, int call, bool wide, int team)
{
    int64_t n = (int64_t)CALLED * p->threads[team];

    p->array[0] = p->block + 4 * n;
    p->array[1] = p->block;
    for (int64_t i = 0; i < n; i++) {
        double x = 0.25 + (double)(i * 37 % 1024) * (3.75 / 1024);

        if (wide)
            ((double *)p->array[1])[i] = x;
        else
            p->block[i] = (float)x;
    }
    p->size[0] = CALLED;
    p->size[1] = CALLS;
    return (double)(n * CALLS) / time_probe(p, FUNCTION + 2 * call + wide, team) / 1e9;
}

/* Over a working set of this many bytes, of all arrays and threads together. */
static double measure_stream(Probe *p, int probe, int64_t bytes, int team)
{
    int64_t n = bytes / 4 / arrays_of[probe] / p->threads[team];
    double moved;

    n -= n % (4 * LINE);
    p->size[0] = n;
    p->size[1] = MOVED / bytes > 1 ? MOVED / bytes : 1;
    for (int i = 0; i < 3; i++) /* a few lines apart: not at the same place of each page */
        p->array[i] =
            p->block + (arrays_of[probe] == 1 ? 0 : i) * (n * p->threads[team] + 5 * LINE);
    moved = (double)(4 * n * arrays_of[probe] * p->threads[team]) * (double)p->size[1];
    return moved / time_probe(p, probe, team) / 1e9;
}

/* The better of loads alone and of prefetching some rows ahead. */
static double measure_gather(Probe *p, int64_t row, int64_t table, int team)
{
    static const int ahead[] = { 0, 8 };
    /* what one try has brought into L3, the next one must not find there */
    int64_t bytes = table <= p->cache / 2 || 2 * p->cache < GATHERED ? GATHERED : 2 * p->cache;
    int64_t n = bytes / row < MOST_INDICES ? bytes / row : MOST_INDICES, rows = table / row;
    double best = 0;

    p->array[1] = p->block;
    p->size[2] = row / 4;
    p->size[3] = n;
    for (int64_t i = 0; i < p->threads[team] * n; i++)
        p->index[i] = (int32_t)(hash_int(7, (uint64_t)i) % (uint64_t)rows);
    for (size_t i = 0; i < sizeof ahead / sizeof *ahead; i++) {
        double rate;

        p->size[4] = ahead[i];
        rate = (double)(n * row * p->threads[team]) / time_probe(p, GATHER, team) / 1e9;
        best = rate > best ? rate : best;
    }
    return best;
}

static void measure_team(Probe *p, Machine *m, int team)
{
    static const int probe_of[COST_STREAMS] = { READ, TRIAD, COPY, NONTEMPORAL };
    int threads = p->threads[team];
    int64_t memory = 4 * m->cache[2] > LEAST_MEMORY ? 4 * m->cache[2] : LEAST_MEMORY;
    const int64_t set[COST_LEVELS] = { m->cache[0] / 2 * threads, m->cache[1] / 2 * threads,
                                       m->cache[2] / 4, memory };

    m->clock[team] = measure_clock(p);
    m->fma[0][team] = measure_fma(p, FMA_F32, team);
    m->fma[1][team] = measure_fma(p, FMA_F64, team);
    for (int c = 0; c < COST_CALLS; c++)
        for (int wide = 0; wide < 2; wide++)
            m->call[c][wide][team] = measure_call(p, c, wide, team);
    for (int l = 0; l < COST_LEVELS; l++)
        for (int s = 0; s < COST_STREAMS; s++)
            m->stream[l][s][team] = measure_stream(p, probe_of[s], set[l], team);
    for (int t = 0; t < COST_TABLES; t++)
        for (int r = 0; r < COST_ROWS; r++)
            m->gather[r][t][team] = measure_gather(p, m->row[r], m->table[t], team);
}

static void lift(double rate[COST_THREADS])
{
    rate[COST_ALL] = rate[COST_ALL] > rate[COST_ONE] ? rate[COST_ALL] : rate[COST_ONE];
}

/* All threads can do what one can: if they did not, others were at work too. */
static void lift_all(Machine *m)
{
    for (int i = 0; i < 2; i++)
        lift(m->fma[i]);
    for (int c = 0; c < COST_CALLS; c++)
        for (int i = 0; i < 2; i++)
            lift(m->call[c][i]);
    for (int l = 0; l < COST_LEVELS; l++)
        for (int s = 0; s < COST_STREAMS; s++)
            lift(m->stream[l][s]);
    for (int r = 0; r < COST_ROWS; r++)
        for (int t = 0; t < COST_TABLES; t++)
            lift(m->gather[r][t]);
}

static void measure_all(Probe *p, Machine *m)
{
    weft_ctx *ctx = p->ctx;

    p->target = api_target(ctx);
    p->cache = m->cache[2];
    load_probes(p);
    p->threads[COST_ONE] = 1;
    p->threads[COST_ALL] = m->threads;
    for (int t = 0; t < COST_THREADS; t++)
        p->pool[t] = pool_new(ctx->os, &ctx->err, p->threads[t]);
    take_memory(p, m);
    p->array[3] = p->index;
    p->array[4] = p->sink;
    for (int t = 0; t < COST_THREADS; t++)
        measure_team(p, m, t);
    lift_all(m);
    m->measured = true;
}

static void let_go(Probe *p)
{
    const Os *os = p->ctx->os;

    run_free(os, p->block);
    run_free(os, p->index);
    run_free(os, p->sink);
    for (int t = 0; t < COST_THREADS; t++)
        pool_free(p->pool[t]);
    if (p->module != NULL)
        jit_release(p->module);
}

/* Without a compiler the guess stays, and a warning says so. */
static void measure(weft_ctx *ctx, Machine *m)
{
    Probe p = { .ctx = ctx };
    jmp_buf trap, *outer = ctx->err.trap;

    ctx->err.trap = &trap;
    if (setjmp(trap) == 0)
        measure_all(&p, m);
    ctx->err.trap = outer;
    let_go(&p);
    if (ctx->err.code == ST_OK)
        return;
    if (ctx->err.code != ST_IO)
        err_jump(&ctx->err);
    snprintf(ctx->warning, sizeof ctx->warning, "the machine was not measured: %s", ctx->err.msg);
    err_clear(&ctx->err);
    ctx->err.trap = outer;
}

/* By CPU, registers and threads: several machines may share a home. */
static const char *path_of(weft_ctx *ctx, const Machine *m)
{
    const char *dir = jit_cache_dir(api_jit(ctx));
    Text path = { .arena = &ctx->scratch };
    uint64_t h = hash_int(hash_bytes(0, m->cpu, strlen(m->cpu)), (uint64_t)m->threads);

    if (dir == NULL)
        return NULL;
    h = hash_bytes(h, m->isa, strlen(m->isa));
    text_f(&path, "%s/machine-%016llx.txt", dir, (unsigned long long)h);
    return path.s;
}

static bool find(weft_ctx *ctx, const char *path, Machine *m)
{
    Machine kept;
    bool good = path != NULL && cost_machine_parse(api_read_quietly(ctx, path, MOST_TEXT), &kept) &&
                strcmp(kept.cpu, m->cpu) == 0 && strcmp(kept.isa, m->isa) == 0 &&
                kept.threads == m->threads && kept.measured;

    if (good)
        *m = kept;
    return good;
}

static void keep(weft_ctx *ctx, const char *path, const Machine *m)
{
    jmp_buf trap, *outer = ctx->err.trap;
    Text text = { .arena = &ctx->scratch };

    cost_machine_print(&text, m);
    ctx->err.trap = &trap;
    if (setjmp(trap) == 0) {
        file_write(&ctx->scratch, path, text.s, text.n);
    } else if (ctx->err.code == ST_IO) {
        snprintf(ctx->warning, sizeof ctx->warning, "what was measured is not kept: %s",
                 ctx->err.msg);
        err_clear(&ctx->err);
    } else {
        ctx->err.trap = outer;
        err_jump(&ctx->err);
    }
    ctx->err.trap = outer;
}

const Machine *api_machine_known(weft_ctx *ctx)
{
    if (ctx->machine != NULL)
        return ctx->machine;
    if (!ctx->guessed) {
        describe(ctx, &ctx->guess);
        find(ctx, path_of(ctx, &ctx->guess), &ctx->guess);
        ctx->guessed = true;
    }
    return &ctx->guess;
}

const Machine *api_machine(weft_ctx *ctx, bool again)
{
    const char *path;
    Text text = { .arena = NULL };
    Machine m, *copy;
    Box *box;

    if (ctx->machine != NULL && !again)
        return ctx->machine;
    describe(ctx, &m);
    path = path_of(ctx, &m);
    if (again || !find(ctx, path, &m)) {
        measure(ctx, &m);
        if (m.measured && path != NULL)
            keep(ctx, path, &m);
    }
    box = api_box(ctx);
    copy = arena_copy(&box->arena, &m, sizeof m);
    text.arena = &box->arena;
    cost_machine_print(&text, &m);
    box_drop(ctx->machine_box);
    ctx->machine_box = api_keep(ctx);
    ctx->machine = copy;
    ctx->machine_text = text.s;
    return copy;
}

static void fill(weft_ctx *ctx, const Machine *m, weft_machine *out)
{
    *out =
        (weft_machine){ .text = ctx->machine_text, .threads = m->threads, .measured = m->measured };
    memcpy(out->cache, m->cache, sizeof out->cache);
    for (int t = 0; t < COST_THREADS; t++) {
        out->fma_f32[t] = m->fma[0][t];
        out->fma_f64[t] = m->fma[1][t];
        for (int l = 0; l < COST_LEVELS; l++)
            out->triad[l][t] = m->stream[l][COST_TRIAD][t];
    }
}

weft_status weft_machine_get(weft_ctx *context, int again, weft_machine *out)
{
    weft_ctx *ctx = api_ctx_of(context, TAG_CTX);

    API_ENTER(ctx);
    api_need(ctx, out, "out");
    fill(ctx, api_machine(ctx, again != 0), out);
    return api_leave(ctx);
}

weft_status weft_machine_gather(weft_ctx *context, double row, double table, int threads,
                                double *out)
{
    weft_ctx *ctx = api_ctx_of(context, TAG_CTX);
    const Machine *m;

    API_ENTER(ctx);
    api_need(ctx, out, "out");
    m = api_machine(ctx, false);
    *out = cost_gather(m, row, table, threads > 0 ? threads : m->threads);
    return api_leave(ctx);
}
