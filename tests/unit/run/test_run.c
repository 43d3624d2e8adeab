/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * src/run/phase.c and memory.c: phases run in order, on all rows once, with the same bits on any
 * number of threads; faults, scratch memory and executors. */
#include "run/run.h"
#include "fail/inject.h"
#include "unit/test.h"
#include "unit/trap.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const int widths[] = { 1, 2, 3, 7, 16 };
enum { WIDTHS = sizeof widths / sizeof widths[0] };

static Pool *new_pool(const Os *os, int threads)
{
    Err err = { 0 };
    Pool *volatile p = NULL;

    CHECK_EQ(CATCH(&err, p = pool_new(os, &err, threads)), ST_OK);
    CHECK_EQ(pool_threads(p), threads);
    return p;
}

/* y = A x for a CSR matrix: arrays start, coord, a, x, y. */
enum { ROWS = 2000, NNZ = 40000 };

typedef struct Csr {
    int64_t start[ROWS + 1];
    int32_t coord[NNZ];
    float a[NNZ], x[ROWS], y[ROWS];
} Csr;

static int64_t spmv(void *const *array, const int64_t *size, int64_t begin, int64_t end, void *work)
{
    const int64_t *start = array[0];
    const int32_t *coord = array[1];
    const float *a = array[2], *x = array[3];
    float *y = array[4];

    (void)size, (void)work;
    for (int64_t i = begin; i < end; i++) {
        float sum = 0;

        for (int64_t p = start[i]; p < start[i + 1]; p++)
            sum += a[p] * x[coord[p]];
        y[i] = sum;
    }
    return 0;
}

static float random_float(uint64_t *seed)
{
    return (float)(test_random(seed) % 2000000) * 1e-6f - 1;
}

/* Rows of 0 to 8 entries, and one that takes all that are left. */
static void fill(Csr *m)
{
    uint64_t seed = 7;
    int64_t left = NNZ;

    for (int64_t i = 0; i < ROWS; i++) {
        m->start[i + 1] = m->start[i] + (int64_t)(test_random(&seed) % 9);
        m->x[i] = random_float(&seed);
    }
    left -= m->start[ROWS];
    for (int64_t i = 700; i < ROWS; i++)
        m->start[i + 1] += left;
    for (int64_t p = 0; p < NNZ; p++) {
        m->coord[p] = (int32_t)(test_random(&seed) % ROWS);
        m->a[p] = random_float(&seed);
    }
}

TEST(the_same_bits_on_any_number_of_threads)
{
    Csr *m = calloc(1, sizeof *m);
    float *first = malloc(sizeof m->y);
    void *array[] = { m->start, m->coord, m->a, m->x, m->y };
    RunPhase phase = {
        .fn = spmv, .n = ROWS, .balance = m->start, .balance_bytes = 8, .grain = 50
    };

    fill(m);
    spmv(array, NULL, 0, ROWS, NULL);
    memcpy(first, m->y, sizeof m->y);
    for (int k = 0; k < WIDTHS; k++) {
        Pool *pool = new_pool(&os_libc, widths[k]);

        for (int round = 0; round < 5; round++) {
            memset(m->y, 0xff, sizeof m->y);
            CHECK_EQ(run_phases(pool, &phase, 1, array, NULL), 0);
            CHECK_EQ(memcmp(first, m->y, sizeof m->y), 0);
        }
        pool_free(pool);
    }
    free(first);
    free(m);
}

/* Writes down the ranges it is called with: the number of calls by row of the range's begin. */
static int64_t count_rows(void *const *array, const int64_t *size, int64_t begin, int64_t end,
                          void *work)
{
    atomic_int *times = array[0];

    (void)work;
    if (begin < 0 || end > size[0] || begin >= end)
        return 99;
    for (int64_t i = begin; i < end; i++)
        times[i]++;
    return 0;
}

TEST(every_row_runs_once)
{
    static atomic_int times[5000];
    void *array[] = { times };
    const int64_t ns[] = { 0, 1, 2, 15, 16, 17, 4999, 5000 };

    for (int k = 0; k < WIDTHS; k++) {
        Pool *pool = new_pool(&os_libc, widths[k]);

        for (size_t j = 0; j < sizeof ns / sizeof ns[0]; j++) {
            RunPhase phase = { .fn = count_rows, .n = ns[j], .grain = 3 };

            memset(times, 0, sizeof times);
            CHECK_EQ(run_phases(pool, &phase, 1, array, &ns[j]), 0);
            for (int64_t i = 0; i < 5000; i++)
                CHECK_EQ(times[i], i < ns[j]);
        }
        pool_free(pool);
    }
}

static int64_t sum_rows(void *const *array, const int64_t *size, int64_t begin, int64_t end,
                        void *work)
{
    (void)size, (void)work;
    atomic_fetch_add((_Atomic int64_t *)array[0], end - begin);
    if (end > (int64_t)1 << 32)
        atomic_fetch_add((atomic_int *)array[1], 1);
    return 0;
}

TEST(ranges_past_2_to_the_32)
{
    _Atomic int64_t rows = 0;
    atomic_int high = 0;
    void *array[] = { &rows, &high };
    RunPhase phase = { .fn = sum_rows, .n = ((int64_t)1 << 33) + 5, .grain = 1 << 20 };
    Pool *pool = new_pool(&os_libc, 3);

    CHECK_EQ(run_phases(pool, &phase, 1, array, NULL), 0);
    CHECK_EQ(rows, phase.n);
    CHECK(high > 1000);
    pool_free(pool);
}

/* counts -> start by prefix sum, on one thread; then every row writes its entries. */
static int64_t count_entries(void *const *array, const int64_t *size, int64_t begin, int64_t end,
                             void *work)
{
    int64_t *start = array[0];

    (void)size, (void)work;
    for (int64_t i = begin; i < end; i++)
        start[i + 1] = i % 7 == 0 ? i % 100 : 0;
    return 0;
}

static int64_t prefix_sum(void *const *array, const int64_t *size, int64_t begin, int64_t end,
                          void *work)
{
    int64_t *start = array[0];

    (void)work;
    if (begin != 0 || end != size[0])
        return 1;
    for (int64_t i = 0; i < end; i++)
        start[i + 1] += start[i];
    return 0;
}

static int64_t fill_entries(void *const *array, const int64_t *size, int64_t begin, int64_t end,
                            void *work)
{
    const int64_t *start = array[0];
    int64_t *out = array[1];

    (void)size, (void)work;
    for (int64_t i = begin; i < end; i++)
        for (int64_t p = start[i]; p < start[i + 1]; p++)
            out[p] = i;
    return 0;
}

TEST(a_phase_sees_all_of_the_one_before_and_may_be_balanced_by_it)
{
    static int64_t start[1001], out[1000 * 100];
    void *array[] = { start, out };
    int64_t n = 1000;
    const RunPhase phase[] = {
        { .fn = count_entries, .n = n, .grain = 10 },
        { .fn = prefix_sum, .n = n, .serial = true },
        { .fn = fill_entries, .n = n, .balance = start, .balance_bytes = 8, .grain = 10 },
    };

    for (int k = 0; k < WIDTHS; k++) {
        Pool *pool = new_pool(&os_libc, widths[k]);
        int64_t p = 0;

        memset(start, 0, sizeof start);
        memset(out, 0xff, sizeof out);
        CHECK_EQ(run_phases(pool, phase, 3, array, &n), 0);
        for (int64_t i = 0; i < n; i++)
            for (int64_t e = 0; e < (i % 7 == 0 ? i % 100 : 0); e++)
                CHECK_EQ(out[p++], i);
        CHECK_EQ(start[n], p);
        pool_free(pool);
    }
}

TEST(no_phases_and_empty_phases_do_nothing)
{
    Pool *pool = new_pool(&os_libc, 2);
    RunPhase phase[] = { { .fn = NULL, .n = 0, .work_bytes = INT64_MAX }, { .fn = NULL, .n = -1 } };

    CHECK_EQ(run_phases(pool, NULL, 0, NULL, NULL), 0);
    CHECK_EQ(run_phases(pool, phase, 2, NULL, NULL), 0);
    pool_free(pool);
}

/* Row i has the fault array[0][i]; the rows of array[1] are marked as run. */
static int64_t fail_at(void *const *array, const int64_t *size, int64_t begin, int64_t end,
                       void *work)
{
    const int64_t *fault = array[0];
    atomic_int *ran = array[1];

    (void)size, (void)work;
    for (int64_t i = begin; i < end; i++) {
        ran[i] = 1;
        if (fault[i] != 0)
            return fault[i];
    }
    return 0;
}

static int64_t must_not_run(void *const *array, const int64_t *size, int64_t begin, int64_t end,
                            void *work)
{
    (void)size, (void)begin, (void)end, (void)work;
    atomic_fetch_add((atomic_int *)array[2], 1);
    return 0;
}

TEST(the_fault_of_the_lowest_chunk_is_returned_and_later_phases_are_skipped)
{
    static int64_t fault[500];
    static atomic_int ran[500];
    atomic_int later = 0;
    void *array[] = { fault, ran, &later };
    const RunPhase phase[] = { { .fn = fail_at, .n = 500, .grain = 5 },
                               { .fn = must_not_run, .n = 500, .grain = 5 } };
    uint64_t seed = 11;

    for (int64_t round = test_scale(1000); round > 0; round--) {
        Pool *pool = new_pool(&os_libc, widths[round % WIDTHS]);
        int64_t lowest = 500;

        memset(fault, 0, sizeof fault);
        memset(ran, 0, sizeof ran);
        for (int k = 0; k < 5; k++) {
            int64_t i = (int64_t)(test_random(&seed) % 500);

            fault[i] = 1000 + i;
            lowest = i < lowest ? i : lowest;
        }
        for (int again = 0; again < 4; again++)
            CHECK_EQ(run_phases(pool, phase, 2, array, NULL), 1000 + lowest);
        for (int64_t i = 0; i <= lowest; i++)
            CHECK_EQ(ran[i], 1); /* nothing before it is left out */
        CHECK_EQ(later, 0);
        pool_free(pool);
    }
}

/* Two chunks that wait for each other, a second at most, so that each has a thread of its own. */
typedef struct Meeting {
    atomic_int here;
    int64_t late, fault[2]; /* chunk `late` ends some time after the other */
} Meeting;

static void nap(int64_t us)
{
    nanosleep(&(struct timespec){ .tv_nsec = us * 1000 }, NULL);
}

static void meet(Meeting *m)
{
    m->here++;
    for (int k = 0; k < 10000 && m->here % 2 != 0; k++)
        nap(100);
}

static int64_t fail_together(void *const *array, const int64_t *size, int64_t begin, int64_t end,
                             void *work)
{
    Meeting *m = array[0];

    (void)size, (void)end, (void)work;
    meet(m);
    if (begin == m->late)
        nap(3000);
    return m->fault[begin];
}

TEST(the_lowest_fault_wins_whichever_comes_first)
{
    const RunPhase phase = { .fn = fail_together, .n = 2, .grain = 1 };
    Pool *pool = new_pool(&os_libc, 2);

    for (int64_t late = 0; late < 2; late++) {
        Meeting m = { .late = late, .fault = { 10, 20 } };
        void *array[] = { &m };

        CHECK_EQ(run_phases(pool, &phase, 1, array, NULL), 10);
        m.fault[0] = 0;
        CHECK_EQ(run_phases(pool, &phase, 1, array, NULL), 20);
        CHECK_EQ(m.here, 4);
    }
    pool_free(pool);
}

static int64_t scribble(void *const *array, const int64_t *size, int64_t begin, int64_t end,
                        void *work)
{
    int64_t *mark = work;

    (void)size, (void)end;
    *mark = begin + 5;
    meet(array[0]);
    nap(1000);
    return *mark != begin + 5;
}

TEST(two_threads_at_a_time_have_two_scratch_memories)
{
    const RunPhase phase = { .fn = scribble, .n = 2, .grain = 1, .work_bytes = 8 };
    Pool *pool = new_pool(&os_libc, 2);
    Meeting m = { 0 };
    void *array[] = { &m };

    for (int k = 0; k < 5; k++)
        CHECK_EQ(run_phases(pool, &phase, 1, array, NULL), 0);
    CHECK_EQ(m.here, 10);
    pool_free(pool);
}

/* Each thread counts in its own scratch, which must be all zero at first, on a line of its own. */
enum { SCRATCH = 100 };

static int64_t use_scratch(void *const *array, const int64_t *size, int64_t begin, int64_t end,
                           void *work)
{
    unsigned char *s = work;
    atomic_int *busy = array[0]; /* by line of the block */
    uintptr_t line = (uintptr_t)s / CACHE_LINE % 4096;
    int64_t fault = 0;

    (void)size, (void)begin, (void)end;
    if ((uintptr_t)s % CACHE_LINE != 0)
        return 1;
    if (busy[line]++ != 0)
        fault = 2; /* two threads in one scratch */
    for (int i = 0; i < SCRATCH; i++)
        if (s[i] != 0)
            fault = 3;
    memset(s, 0xee, SCRATCH);
    memset(s, 0, SCRATCH); /* as it was found */
    busy[line]--;
    return fault;
}

TEST(scratch_memory_is_zero_aligned_and_of_one_thread)
{
    static atomic_int busy[4096];
    void *array[] = { busy };
    RunPhase phase[] = { { .fn = use_scratch, .n = 400, .grain = 1, .work_bytes = SCRATCH },
                         { .fn = use_scratch, .n = 3, .grain = 1, .work_bytes = SCRATCH + 1000 },
                         { .fn = use_scratch, .n = 400, .serial = true, .work_bytes = SCRATCH } };

    for (int k = 0; k < WIDTHS; k++) {
        Pool *pool = new_pool(&os_libc, widths[k]);

        for (int round = 0; round < 20; round++)
            CHECK_EQ(run_phases(pool, phase, 3, array, NULL), 0);
        pool_free(pool);
    }
}

static int64_t leave_dirt(void *const *array, const int64_t *size, int64_t begin, int64_t end,
                          void *work)
{
    unsigned char *s = work;

    (void)array, (void)size, (void)end;
    if (begin == 0 && s[0] != 0)
        return 1;
    memset(s, 0xee, SCRATCH);
    return 0;
}

TEST(scratch_memory_is_zero_again_in_the_next_phase)
{
    const RunPhase phase = { .fn = leave_dirt, .n = 4, .grain = 2, .work_bytes = SCRATCH };
    const RunPhase twice[] = { phase, phase };
    Pool *pool = new_pool(&os_libc, 1);

    CHECK_EQ(run_phases(pool, twice, 2, NULL, NULL), 0);
    pool_free(pool);
}

TEST(without_scratch_memory_nothing_runs)
{
    atomic_int ran = 0;
    void *array[] = { NULL, NULL, &ran };
    RunPhase phase[] = { { .fn = must_not_run, .n = 10, .grain = 1 },
                         { .fn = must_not_run, .n = 10, .grain = 1, .work_bytes = SCRATCH } };
    Inject j;
    Pool *pool;

    inject_init(&j, &os_libc);
    j.os.thread_new = os_libc.thread_new;
    j.os.thread_join = os_libc.thread_join;
    pool = new_pool(&j.os, 4);
    inject_at(&j, INJECT_ALLOC, j.calls[INJECT_ALLOC] + 1, false, ENOMEM);
    CHECK_EQ(run_phases(pool, phase, 2, array, NULL), RUN_NOMEM);
    CHECK_EQ(ran, 0);
    for (int64_t bytes = INT64_MAX; bytes > 1 << 20; bytes /= 2) {
        phase[1].work_bytes = bytes;
        inject_at(&j, INJECT_ALLOC, j.calls[INJECT_ALLOC] + 1, true, ENOMEM);
        CHECK_EQ(run_phases(pool, phase, 2, array, NULL), RUN_NOMEM);
        CHECK_EQ(ran, 0);
    }
    inject_at(&j, INJECT_NONE, 0, false, 0);
    phase[1].work_bytes = SCRATCH;
    CHECK_EQ(run_phases(pool, phase, 2, array, NULL), 0);
    CHECK_EQ(ran, 20);
    pool_free(pool);
    CHECK(inject_is_clean(&j));
}

TEST(blocks_start_at_a_cache_line)
{
    Inject j;

    inject_init(&j, &os_libc);
    for (int64_t bytes = 0; bytes < 300; bytes++) {
        void *p = run_alloc(&j.os, bytes);

        CHECK(p != NULL && (uintptr_t)p % CACHE_LINE == 0);
        memset(p, 1, (size_t)bytes);
        run_free(&j.os, p);
    }
    CHECK(run_alloc(&j.os, -1) == NULL);
    CHECK(run_alloc(&j.os, INT64_MAX) == NULL);
    inject_at(&j, INJECT_ALLOC, j.calls[INJECT_ALLOC] + 1, false, ENOMEM);
    CHECK(run_alloc(&j.os, 100) == NULL);
    run_free(&j.os, NULL);
    CHECK(inject_is_clean(&j));
}

/* An Os that notes which pages are to be large. */
typedef struct Pages {
    Os os; /* first */
    char *first;
    size_t bytes;
    int calls;
} Pages;

static void note_large(const Os *os, void *p, size_t n)
{
    Pages *pages = (Pages *)(uintptr_t)os;

    pages->first = p;
    pages->bytes = n;
    pages->calls++;
}

TEST(long_blocks_ask_for_large_pages_and_short_ones_do_not)
{
    enum { LARGE = 1 << 21 };
    static const struct {
        int64_t bytes;
        size_t asked;
    } cases[] = { { 0, 0 },
                  { 4 * LARGE - 1, 0 },
                  { 4 * LARGE, 4 * LARGE },
                  { 4 * LARGE + 1, 4 * LARGE },
                  { 6 * LARGE - 1, 5 * LARGE } };
    Inject j;

    inject_init(&j, &os_libc);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Pages pages = { .os = os_libc };
        char *p;

        pages.os.large = note_large;
        p = run_alloc(&pages.os, cases[i].bytes);
        CHECK(p != NULL && (uintptr_t)p % CACHE_LINE == 0);
        CHECK_EQ(pages.calls, cases[i].asked > 0);
        CHECK_EQ(pages.bytes, cases[i].asked);
        if (cases[i].asked > 0)
            CHECK(pages.first == p && (uintptr_t)p % LARGE == 0);
        run_free(&pages.os, p);
        p = run_alloc(&j.os, cases[i].bytes); /* the real hint, and all of the block is there */
        CHECK(p != NULL);
        memset(p, 1, (size_t)cases[i].bytes);
        run_free(&j.os, p);
    }
    CHECK(inject_is_clean(&j));
}

/* Executors: backwards on this thread, one thread a task, and one that does nothing. */
typedef struct Seen {
    int64_t calls, most;
} Seen;

static void backwards(void *ctx, int64_t n, void (*task)(void *arg, int64_t i), void *arg)
{
    Seen *seen = ctx;

    seen->calls++;
    seen->most = n > seen->most ? n : seen->most;
    while (n-- > 0)
        task(arg, n);
}

typedef struct One {
    void (*task)(void *arg, int64_t i);
    void *arg;
    int64_t i;
} One;

static void *run_one(void *arg)
{
    One *one = arg;

    one->task(one->arg, one->i);
    return NULL;
}

static void thread_each(void *ctx, int64_t n, void (*task)(void *arg, int64_t i), void *arg)
{
    pthread_t thread[16];
    One one[16];

    backwards(ctx, 0, task, arg);
    for (int64_t i = 0; i < n; i++) {
        one[i] = (One){ task, arg, i };
        if (pthread_create(&thread[i], NULL, run_one, &one[i]) != 0)
            thread[i] = pthread_self();
    }
    for (int64_t i = 0; i < n; i++)
        if (!pthread_equal(thread[i], pthread_self()))
            pthread_join(thread[i], NULL);
}

static void idle(void *ctx, int64_t n, void (*task)(void *arg, int64_t i), void *arg)
{
    (void)n;
    backwards(ctx, 0, task, arg);
}

TEST(an_executor_of_the_caller_gives_the_same_bits)
{
    RunExecutor *const executor[] = { backwards, thread_each, idle };
    Csr *m = calloc(1, sizeof *m);
    float *first = malloc(sizeof m->y);
    void *array[] = { m->start, m->coord, m->a, m->x, m->y };
    RunPhase phase = {
        .fn = spmv, .n = ROWS, .balance = m->start, .balance_bytes = 8, .grain = 50
    };
    Err err = { 0 };

    fill(m);
    spmv(array, NULL, 0, ROWS, NULL);
    memcpy(first, m->y, sizeof m->y);
    for (int k = 0; k < 3; k++) {
        Seen seen = { 0 };
        Pool *volatile pool = NULL;

        CHECK_EQ(CATCH(&err, pool = pool_of_executor(&os_libc, &err, 5, executor[k], &seen)),
                 ST_OK);
        memset(m->y, 0xff, sizeof m->y);
        CHECK_EQ(run_phases(pool, &phase, 1, array, NULL), 0);
        CHECK_EQ(memcmp(first, m->y, sizeof m->y), 0);
        CHECK_EQ(seen.calls, 1);
        CHECK(seen.most == 0 || seen.most == 5);
        pool_free(pool);
    }
    free(first);
    free(m);
}

TEST(an_executor_reports_the_lowest_fault_and_is_not_called_for_small_work)
{
    static int64_t fault[500];
    static atomic_int ran[500], busy[4096];
    void *array[] = { fault, ran }, *scratch[] = { busy };
    RunPhase phase = { .fn = fail_at, .n = 500, .grain = 5 };
    RunPhase use = { .fn = use_scratch, .n = 100, .grain = 1, .work_bytes = SCRATCH };
    Seen seen = { 0 };
    Err err = { 0 };
    Pool *volatile pool = NULL;

    CHECK_EQ(CATCH(&err, pool = pool_of_executor(&os_libc, &err, 16, thread_each, &seen)), ST_OK);
    fault[77] = 770;
    fault[300] = 3000;
    CHECK_EQ(run_phases(pool, &phase, 1, array, NULL), 770);
    CHECK_EQ(run_phases(pool, &use, 1, scratch, NULL), 0);
    CHECK_EQ(seen.calls, 2);
    phase.grain = 500;
    CHECK_EQ(run_phases(pool, &phase, 1, array, NULL), 770);
    CHECK_EQ(seen.calls, 2);
    pool_free(pool);
}
