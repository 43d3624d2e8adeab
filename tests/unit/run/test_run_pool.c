/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * src/run/pool.c: how many threads there are, what happens when there are none to be had, many
 * callers at a time, calls in calls, and fork. */
#include "run/run_int.h"
#include "unit/test.h"
#include "unit/trap.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* An Os with a chosen environment that counts threads and blocks and refuses either. */
typedef struct Fake {
    Os os; /* first */
    const char *threads_text;
    int cpus;
    int threads_left; /* how many more are granted; -1: no limit */
    int asked, made, joined;
    atomic_int blocks;
    size_t refuse; /* blocks of at least this size; 0: none */
    void (*at_alloc)(struct Fake *);
    Pool *pool;
    pthread_t caller;
    int caller_cpu, helper_cpu; /* where they say they are */
    atomic_int left, left_from; /* helpers that were sent away, and from where */
} Fake;

static Fake *self(const Os *os)
{
    return (Fake *)(uintptr_t)os;
}

static void *fake_alloc(const Os *os, void *old, size_t size)
{
    Fake *f = self(os);
    void (*hook)(Fake *) = f->at_alloc;

    if (size == 0) {
        f->blocks -= old != NULL;
        return os_libc.alloc(&os_libc, old, 0);
    }
    if (f->refuse != 0 && size >= f->refuse)
        return NULL;
    f->at_alloc = NULL;
    if (hook != NULL)
        hook(f);
    f->blocks++;
    return os_libc.alloc(&os_libc, old, size);
}

static const char *fake_getenv(const Os *os, const char *name)
{
    return strcmp(name, "WEFT_NUM_THREADS") == 0 ? self(os)->threads_text : NULL;
}

static int fake_cpus(const Os *os)
{
    return self(os)->cpus;
}

static int fake_thread_new(const Os *os, pthread_t *thread, void *(*run)(void *), void *arg)
{
    Fake *f = self(os);
    int status = EAGAIN;

    f->asked++;
    if (f->threads_left != 0)
        status = os_libc.thread_new(&os_libc, thread, run, arg);
    if (status == 0) {
        f->threads_left -= f->threads_left > 0;
        f->made++;
    }
    return status;
}

static int fake_thread_join(const Os *os, pthread_t thread)
{
    self(os)->joined++;
    return os_libc.thread_join(&os_libc, thread);
}

static Fake fake_new(void)
{
    return (Fake){ .os = { .alloc = fake_alloc,
                           .getenv = fake_getenv,
                           .cpus = fake_cpus,
                           .cpu = os_libc.cpu,
                           .leave = os_libc.leave,
                           .thread_new = fake_thread_new,
                           .thread_join = fake_thread_join },
                   .cpus = 4,
                   .threads_left = -1 };
}

static bool is_clean(const Fake *f)
{
    return f->made == f->joined && f->blocks == 0;
}

static Pool *new_pool(const Os *os, int threads)
{
    Err err = { 0 };
    Pool *volatile p = NULL;

    CHECK_EQ(CATCH(&err, p = pool_new(os, &err, threads)), ST_OK);
    return p;
}

/* The phase of most tests: out[i] = i * i + salt, on 200 rows in 20 chunks. */
enum { ROWS = 200 };

static int64_t square(void *const *array, const int64_t *size, int64_t begin, int64_t end,
                      void *work)
{
    int64_t *out = array[0];

    (void)work;
    for (int64_t i = begin; i < end; i++)
        out[i] = i * i + size[0];
    return 0;
}

static const RunPhase squares = { .fn = square, .n = ROWS, .grain = 10 };

static bool run_squares(Pool *pool, int64_t salt)
{
    int64_t out[ROWS] = { 0 };
    void *array[] = { out };
    bool good = run_phases(pool, &squares, 1, array, &salt) == 0;

    for (int64_t i = 0; i < ROWS; i++)
        good &= out[i] == i * i + salt;
    return good;
}

/* ---- how many threads */

static void check_threads(const char *text, int want)
{
    Fake f = fake_new();
    Pool *pool;

    f.threads_text = text;
    pool = new_pool(&f.os, 0);
    CHECK_EQ(pool_threads(pool), want);
    pool_free(pool);
    CHECK(is_clean(&f));
}

TEST(the_environment_or_the_cpus_give_the_number_of_threads)
{
    Fake f = fake_new();
    Pool *pool;

    check_threads(NULL, 4);
    check_threads("", 4);
    check_threads("1", 1);
    check_threads("3", 3);
    check_threads("1024", 1024);
    f.threads_text = "3";
    pool = new_pool(&f.os, 7); /* the caller's word comes first */
    CHECK_EQ(pool_threads(pool), 7);
    pool_free(pool);
    f.threads_text = NULL;
    f.cpus = 5000;
    pool = new_pool(&f.os, 0);
    CHECK_EQ(pool_threads(pool), POOL_MAX_THREADS);
    pool_free(pool);
}

static void check_refused(const char *text)
{
    Fake f = fake_new();
    Err err = { 0 };

    f.threads_text = text;
    CHECK_EQ(CATCH(&err, pool_new(&f.os, &err, 0)), ST_ARG);
    CHECK_HAS(err.msg, "WEFT_NUM_THREADS is \"");
    CHECK_HAS(err.msg, "set it to a number from 1 to 1024, or unset it to use all CPUs (4 here)");
    CHECK(strlen(err.msg) < 200);
    CHECK(is_clean(&f));
}

TEST(a_bad_number_of_threads_in_the_environment_is_an_error_with_the_remedy)
{
    const char *const bad[] = { "0",
                                "-1",
                                "1025",
                                "four",
                                "4.5",
                                " 4",
                                "4 ",
                                "4;ls",
                                "$(ls)",
                                "1e2",
                                "0x4",
                                "4\n",
                                "+",
                                "99999999999999999999",
                                "-99999999999999999999" };
    char *big = malloc(1 << 20);

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        check_refused(bad[i]);
    memset(big, '1', (1 << 20) - 1);
    big[(1 << 20) - 1] = 0;
    check_refused(big);
    free(big);
}

TEST(a_bad_number_of_threads_of_the_caller_is_an_error)
{
    Fake f = fake_new();
    Err err = { 0 };
    const int bad[] = { -1, 1025, INT32_MAX, INT32_MIN };

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        CHECK_EQ(CATCH(&err, pool_new(&f.os, &err, bad[i])), ST_ARG);
        CHECK_HAS(err.msg, "from 1 to 1024");
    }
    CHECK_EQ(CATCH(&err, pool_of_executor(&f.os, &err, 0, NULL, NULL)), ST_ARG);
    CHECK(is_clean(&f));
}

TEST(the_system_says_how_many_cpus_this_process_may_use)
{
    cpu_set_t old, one;
    int cpus = os_libc.cpus(&os_libc), pinned;

    CHECK(cpus >= 1);
    CHECK_EQ(sched_getaffinity(0, sizeof old, &old), 0);
    CPU_ZERO(&one);
    for (size_t i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++)
        if (CPU_ISSET(i, &old))
            CPU_SET(i, &one);
    if (sched_setaffinity(0, sizeof one, &one) != 0)
        test_skip("the affinity cannot be set");
    pinned = os_libc.cpus(&os_libc);
    sched_setaffinity(0, sizeof old, &old);
    CHECK_EQ(pinned, 1);
}

/* ---- threads and memory that are not to be had */

TEST(threads_start_when_there_is_work_and_end_with_the_pool)
{
    Fake f = fake_new();
    Pool *pool = new_pool(&f.os, 8);
    int64_t out[ROWS], salt = 0;
    void *array[] = { out };
    RunPhase small = squares, three = squares, serial = squares;

    small.grain = ROWS;
    CHECK_EQ(run_phases(pool, &small, 1, array, &salt), 0);
    CHECK_EQ(f.asked, 0);
    serial.serial = true;
    CHECK_EQ(run_phases(pool, &serial, 1, array, &salt), 0);
    CHECK_EQ(f.asked, 0);
    three.grain = ROWS / 3 + 1;
    CHECK_EQ(run_phases(pool, &three, 1, array, &salt), 0);
    CHECK_EQ(f.made, 2);
    CHECK(run_squares(pool, 1));
    CHECK_EQ(f.made, 7);
    for (int k = 0; k < 100; k++)
        CHECK(run_squares(pool, k));
    CHECK_EQ(f.made, 7);
    pool_free(pool);
    CHECK(is_clean(&f));
    pool_free(NULL);
}

TEST(a_pool_of_one_thread_starts_none)
{
    Fake f = fake_new();
    Pool *pool = new_pool(&f.os, 1);

    CHECK(run_squares(pool, 5));
    CHECK_EQ(f.asked, 0);
    pool_free(pool);
    CHECK(is_clean(&f));
}

TEST(a_refused_thread_leaves_fewer_and_is_not_asked_for_again)
{
    for (int granted = 0; granted < 7; granted++) {
        Fake f = fake_new();
        Pool *pool = new_pool(&f.os, 8);

        f.threads_left = granted;
        for (int k = 0; k < 50; k++)
            CHECK(run_squares(pool, k));
        CHECK_EQ(f.made, granted);
        CHECK_EQ(f.asked, granted + 1);
        pool_free(pool);
        CHECK(is_clean(&f));
    }
}

TEST(without_memory_for_a_team_the_caller_works_alone)
{
    Fake f = fake_new();
    Pool *pool = new_pool(&f.os, 8);

    f.refuse = 1;
    CHECK(run_squares(pool, 5));
    CHECK_EQ(f.asked, 0);
    f.refuse = 0;
    CHECK(run_squares(pool, 5));
    CHECK_EQ(f.made, 7);
    pool_free(pool);
    CHECK(is_clean(&f));
}

TEST(without_memory_there_is_no_pool)
{
    Fake f = fake_new();
    Err err = { 0 };

    f.refuse = 1;
    CHECK_EQ(CATCH(&err, pool_new(&f.os, &err, 2)), ST_NOMEM);
    CHECK_HAS(err.msg, "out of memory");
    CHECK(is_clean(&f));
}

static void call_first(Fake *f)
{
    run_squares(f->pool, 3);
}

TEST(of_two_first_calls_at_a_time_one_makes_the_team)
{
    Fake f = fake_new();

    f.pool = new_pool(&f.os, 3);
    f.at_alloc = call_first; /* another call, just when this one is about to make a team */
    CHECK(run_squares(f.pool, 4));
    CHECK_EQ(f.made, 2);
    CHECK(run_squares(f.pool, 5));
    CHECK_EQ(f.made, 2);
    pool_free(f.pool);
    CHECK(is_clean(&f));
}

/* In a child: the limit holds for everyone but root. */
static int run_without_threads(Fake *f, Pool *pool)
{
    struct rlimit none = { 0, 0 };
    bool good = true;

    alarm(20);
    if (setrlimit(RLIMIT_NPROC, &none) != 0 || (geteuid() == 0 && setuid(65534) != 0))
        return 77;
    for (int64_t k = 0; k < 20; k++)
        good &= run_squares(pool, k);
    return !good || f->asked != 1 || f->made != 0;
}

static int wait_for(pid_t pid)
{
    int status = 0;

    CHECK(pid > 0);
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status);
}

TEST(under_a_limit_of_processes_the_caller_works_alone)
{
    Fake f = fake_new();
    Pool *pool = new_pool(&f.os, 4);
    pid_t pid = fork();
    int status;

    if (pid == 0)
        _exit(run_without_threads(&f, pool));
    status = wait_for(pid);
    pool_free(pool);
    if (status == 77)
        test_skip("the limit cannot be set");
    CHECK_EQ(status, 0);
}

/* ---- who runs what */

typedef struct Meeting {
    atomic_int here, blocked;
    pthread_t caller;
} Meeting;

/* Both chunks wait for each other, for a second at most, so both threads are in the phase. */
static int64_t meet(void *const *array, const int64_t *size, int64_t begin, int64_t end, void *work)
{
    Meeting *m = array[0];
    sigset_t now;

    (void)size, (void)begin, (void)end, (void)work;
    m->here++;
    for (int k = 0; k < 10000 && m->here < 2; k++)
        nanosleep(&(struct timespec){ .tv_nsec = 100000 }, NULL);
    pthread_sigmask(SIG_BLOCK, NULL, &now);
    if (!pthread_equal(pthread_self(), m->caller))
        m->blocked = sigismember(&now, SIGINT) == 1 && sigismember(&now, SIGSEGV) == 0 ? 1 : -1;
    return 0;
}

TEST(a_thread_of_the_pool_helps_and_takes_no_signals_but_its_own)
{
    Pool *pool = new_pool(&os_libc, 2);
    const RunPhase phase = { .fn = meet, .n = 2, .grain = 1 };

    for (int k = 0; k < 20; k++) {
        Meeting m = { .caller = pthread_self() };
        void *array[] = { &m };

        if (k % 2 == 1) /* asleep the next time */
            nanosleep(&(struct timespec){ .tv_nsec = 2000000 }, NULL);
        CHECK_EQ(run_phases(pool, &phase, 1, array, NULL), 0);
        CHECK_EQ(m.here, 2);
        CHECK_EQ(m.blocked, 1);
    }
    pool_free(pool);
}

static int fake_cpu(const Os *os)
{
    Fake *f = self(os);

    return pthread_equal(pthread_self(), f->caller) ? f->caller_cpu : f->helper_cpu;
}

static void fake_leave(const Os *os, int cpu)
{
    Fake *f = self(os);

    CHECK(!pthread_equal(pthread_self(), f->caller));
    f->left_from = cpu;
    f->left++;
}

/* Whether a helper was asked to leave its CPU before it worked; both threads are in the phase. */
static bool leaves(int cpus, int caller_cpu, int helper_cpu)
{
    const RunPhase phase = { .fn = meet, .n = 2, .grain = 1 };
    Fake f = fake_new();
    Meeting m = { .caller = pthread_self() };
    void *array[] = { &m };
    Pool *pool;

    f.os.cpu = fake_cpu;
    f.os.leave = fake_leave;
    f.cpus = cpus;
    f.caller = pthread_self();
    f.caller_cpu = caller_cpu;
    f.helper_cpu = helper_cpu;
    f.left_from = -1;
    pool = new_pool(&f.os, 2);
    CHECK_EQ(run_phases(pool, &phase, 1, array, NULL), 0);
    CHECK_EQ(m.here, 2);
    pool_free(pool);
    CHECK(is_clean(&f));
    CHECK_EQ(f.left_from, f.left > 0 ? caller_cpu : -1);
    return f.left > 0;
}

TEST(a_helper_leaves_the_cpu_of_the_caller)
{
    CHECK(leaves(4, 3, 3));
    CHECK(leaves(2, 0, 0));
    CHECK(!leaves(4, 3, 1)); /* is elsewhere already */
    CHECK(!leaves(1, 0, 0)); /* has nowhere to go */
}

/* What the system's table does: the thread may run where it could before, and is somewhere else
 * unless that was the only CPU. */
TEST(leaving_a_cpu_forbids_it_only_for_a_moment)
{
    cpu_set_t before, one, now;
    int cpu, cpus = os_libc.cpus(&os_libc);

    CHECK_EQ(sched_getaffinity(0, sizeof before, &before), 0);
    cpu = os_libc.cpu(&os_libc);
    CHECK(CPU_ISSET((size_t)cpu, &before));
    CPU_ZERO(&one);
    CPU_SET((size_t)cpu, &one);
    CHECK_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    os_libc.leave(&os_libc, cpu); /* there is no other */
    CHECK_EQ(os_libc.cpu(&os_libc), cpu);
    CHECK_EQ(sched_getaffinity(0, sizeof now, &now), 0);
    CHECK(CPU_EQUAL(&now, &one));
    CHECK_EQ(sched_setaffinity(0, sizeof before, &before), 0);
    os_libc.leave(&os_libc, cpu);
    CHECK_EQ(sched_getaffinity(0, sizeof now, &now), 0);
    CHECK(CPU_EQUAL(&now, &before));
    CHECK_EQ(os_libc.cpus(&os_libc), cpus);
}

typedef struct Lanes {
    atomic_int times[8];
} Lanes;

static void take_lane(void *arg, int64_t lane)
{
    Lanes *l = arg;

    l->times[lane < 7 ? lane : 7]++;
    if (lane == 0)
        nanosleep(&(struct timespec){ .tv_nsec = 2000000 }, NULL);
}

TEST(each_lane_is_taken_once_however_many_threads_are_idle)
{
    Pool *pool = new_pool(&os_libc, 5);

    for (int k = 0; k < 20; k++) {
        Lanes l = { { 0 } };

        pool_run(pool, k % 2 == 0 ? 5 : 3, take_lane, &l);
        CHECK_EQ(l.times[0], 1);
        for (int i = 1; i < 5; i++)
            CHECK(l.times[i] <= (k % 2 == 0 || i < 3));
        CHECK_EQ(l.times[5] + l.times[6] + l.times[7], 0);
    }
    pool_free(pool);
}

/* The chunk that a helper has lasts, so the caller goes to sleep for it. */
static int64_t linger(void *const *array, const int64_t *size, int64_t begin, int64_t end,
                      void *work)
{
    Meeting *m = array[0];

    meet(array, size, begin, end, work);
    if (!pthread_equal(pthread_self(), m->caller))
        nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL);
    m->here += 10;
    return 0;
}

TEST(a_call_ends_after_the_last_of_its_helpers)
{
    Pool *pool = new_pool(&os_libc, 2);
    const RunPhase phase = { .fn = linger, .n = 2, .grain = 1 };

    for (int k = 0; k < 5; k++) {
        Meeting m = { .caller = pthread_self() };
        void *array[] = { &m };

        CHECK_EQ(run_phases(pool, &phase, 1, array, NULL), 0);
        CHECK_EQ(m.here, 22);
    }
    pool_free(pool);
}

static int64_t call_again(void *const *array, const int64_t *size, int64_t begin, int64_t end,
                          void *work)
{
    (void)work;
    for (int64_t i = begin; i < end; i++)
        if (!run_squares(array[0], size[0] + i))
            return 1;
    return 0;
}

static int64_t call_twice(void *const *array, const int64_t *size, int64_t begin, int64_t end,
                          void *work)
{
    const RunPhase phase = { .fn = call_again, .n = end - begin, .grain = 1 };

    (void)work;
    return run_phases(array[0], &phase, 1, array, size);
}

TEST(a_phase_may_call_the_pool_that_runs_it)
{
    for (int threads = 1; threads <= 5; threads++) {
        Pool *pool = new_pool(&os_libc, threads);
        void *array[] = { pool };
        const RunPhase phase = { .fn = call_twice, .n = 40, .grain = 4 };

        for (int64_t k = test_scale(50); k > 0; k--)
            CHECK_EQ(run_phases(pool, &phase, 1, array, &k), 0);
        pool_free(pool);
    }
}

/* ---- many callers */

typedef struct Caller {
    pthread_t thread;
    Pool *pool;
    int64_t calls, wrong;
    atomic_bool *stop; /* NULL: after `calls` */
} Caller;

static void *call_often(void *arg)
{
    Caller *c = arg;

    for (int64_t k = 0; c->stop == NULL ? k < c->calls : !*c->stop; k++)
        c->wrong += !run_squares(c->pool, k);
    return NULL;
}

static void start_callers(Caller *c, int n, Pool *pool, int64_t calls, atomic_bool *stop)
{
    for (int k = 0; k < n; k++) {
        c[k] = (Caller){ .pool = pool, .calls = calls, .stop = stop };
        CHECK_EQ(pthread_create(&c[k].thread, NULL, call_often, &c[k]), 0);
    }
}

static int64_t join_callers(Caller *c, int n)
{
    int64_t wrong = 0;

    for (int k = 0; k < n; k++) {
        pthread_join(c[k].thread, NULL);
        wrong += c[k].wrong;
    }
    return wrong;
}

TEST(eight_threads_call_at_the_same_time)
{
    const int widths[] = { 1, 2, 5 };

    for (int k = 0; k < 3; k++) {
        Fake f = fake_new();
        Pool *pool = new_pool(&f.os, widths[k]);
        Caller c[8];

        start_callers(c, 8, pool, test_scale(widths[k] == 2 ? 10000 : 1000), NULL);
        CHECK_EQ(join_callers(c, 8), 0);
        CHECK_EQ(f.made, widths[k] - 1);
        pool_free(pool);
        CHECK(is_clean(&f));
    }
}

/* ---- fork */

/* ThreadSanitizer's own tables know no threads that start in the child of a threaded process. */
static void skip_under_tsan(void)
{
#if defined __SANITIZE_THREAD__
    test_skip("ThreadSanitizer cannot start threads after a fork");
#elif defined __has_feature
#if __has_feature(thread_sanitizer)
    test_skip("ThreadSanitizer cannot start threads after a fork");
#endif
#endif
}

/* What a child does with its parent's pool; 0 when all is right.  It forks in its turn. */
static int use_in_child(Pool *pool, int depth)
{
    bool good = true;

    alarm(5); /* it must end before that */
    for (int64_t k = 0; k < 5; k++)
        good &= run_squares(pool, k);
    if (depth > 0) {
        int status = -1;
        pid_t pid = fork();

        if (pid == 0)
            _exit(use_in_child(pool, depth - 1));
        good &= pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
    }
    for (int64_t k = 0; k < 5; k++)
        good &= run_squares(pool, k);
    pool_free(pool);
    return !good;
}

TEST(a_child_may_be_forked_in_the_midst_of_calls)
{
    Pool *pool;
    atomic_bool stop = false;
    Caller c[3];
    int worst = 0;

    skip_under_tsan();
    pool = new_pool(&os_libc, 3);
    start_callers(c, 3, pool, 0, &stop);
    for (int64_t k = test_scale(1000); k > 0 && worst == 0; k--) {
        pid_t pid = fork();

        if (pid == 0)
            _exit(use_in_child(pool, k % 16 == 0));
        worst = wait_for(pid);
    }
    stop = true;
    CHECK_EQ(join_callers(c, 3), 0);
    CHECK_EQ(worst, 0);
    pool_free(pool);
}

TEST(a_child_may_free_a_pool_it_never_used_and_the_parent_goes_on)
{
    Fake f = fake_new();
    Pool *pool = new_pool(&f.os, 4);

    CHECK(run_squares(pool, 1));
    for (int k = 0; k < 5; k++) {
        pid_t pid = fork();

        if (pid == 0) {
            alarm(5);
            pool_free(pool);
            _exit(f.blocks != 0);
        }
        CHECK_EQ(wait_for(pid), 0);
        CHECK(run_squares(pool, k));
    }
    CHECK_EQ(f.made, 3);
    pool_free(pool);
    CHECK(is_clean(&f));
}

TEST(a_child_has_threads_of_its_own)
{
    Fake f = fake_new();
    Pool *pool;
    pid_t pid;

    skip_under_tsan();
    pool = new_pool(&f.os, 4);
    CHECK(run_squares(pool, 1));
    pid = fork();
    if (pid == 0) {
        bool good;

        alarm(5);
        good = run_squares(pool, 2) && f.made == 6 && run_squares(pool, 3) && f.made == 6;
        pool_free(pool);
        _exit(!good || f.joined != 3 || f.blocks != 0);
    }
    CHECK_EQ(wait_for(pid), 0);
    pool_free(pool);
    CHECK(is_clean(&f));
}
