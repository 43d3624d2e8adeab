/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright The Weft authors
 *
 * Processes that die by SIGKILL while they compile and publish: at each of their OS calls, and at
 * random times, also while the compiler runs.  What is left is an entry that is whole, or none; the
 * next process gets its answer without waiting for the dead. */
#include "jit/jit_test.h"

#include <signal.h>
#include <time.h>

/* The child that is to die; with at > 0 at its call of this number. */
static pid_t start_victim(Bed *b, int value, int64_t at)
{
    pid_t pid = fork();

    if (pid == 0) {
        Bed own = *b;
        JitModule *m;

        own.jit = NULL;
        inject_init(&own.inject, &os_libc);
        own.inject.getenv = bed_getenv;
        own.inject.no_sync = true;
        own.inject.piece = 4096;
        own.inject.kill_at = at;
        if (bed_again(&own) != ST_OK || bed_get(&own, value, &m) != ST_OK || bed_answer(m) != value)
            _exit(3);
        _exit(0);
    }
    CHECK(pid > 0);
    return pid;
}

static void check_after(Bed *b, int value)
{
    int64_t begin = os_libc.clock(&os_libc, CLOCK_MONOTONIC);
    int damaged;
    JitModule *m;

    bed_whole(b, &damaged);
    CHECK_EQ(damaged, 0);
    if (bed_get(b, value, &m) != ST_OK)
        test_fail(__FILE__, __LINE__, "kernel %d: %s", value, b->err.msg);
    CHECK_EQ(bed_answer(m), value);
    jit_release(m);
    CHECK(ms_since(begin) < 20000); /* nobody holds a lock */
    bed_use(b, value, JIT_ON_DISK);
}

/* One round: somebody dies, somebody looks.  True if it died. */
static bool one_kill(Bed *b, int value, int64_t at, int64_t us)
{
    pid_t pid = start_victim(b, value, at);
    int status = 0;

    if (us >= 0) {
        usleep((useconds_t)us);
        kill(pid, SIGKILL);
    }
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK(WIFSIGNALED(status) ? WTERMSIG(status) == SIGKILL : WEXITSTATUS(status) == 0);
    check_after(b, value);
    return WIFSIGNALED(status);
}

/* What the dead leave is swept after an hour; here it would only fill the memory. */
static void clean(Bed *b)
{
    bed_free(b);
    bed_remove(bed_path(b, "tmp"));
    bed_remove(bed_cache(b));
    CHECK(mkdir(bed_path(b, "tmp"), 0700) == 0);
    CHECK_EQ(bed_again(b), ST_OK);
}

static void kill_many(Bed *b, Share s, int64_t calls, int64_t us)
{
    uint64_t seed = (uint64_t)s.who + 1;
    int64_t n = s.n / s.of, died = 0;

    for (int64_t i = 0; i < n; i++) {
        bool timed = i % 3 == 0;
        int64_t random = (int64_t)(test_random(&seed) >> 1);

        died += timed ? one_kill(b, (int)i, 0, random % us)
                      : one_kill(b, (int)i, 1 + (i * s.of + s.who) % calls, -1);
        if (i % 50 == 49)
            clean(b);
    }
    CHECK(n < 20 || died > n / 3);
}

/* How many calls a victim makes, all in all. */
static int64_t count_calls(Bed *b)
{
    JitModule *m;

    b->inject.piece = 4096;
    b->inject.total = 0;
    CHECK_EQ(bed_get(b, 99999999, &m), ST_OK);
    jit_release(m);
    b->inject.piece = 0;
    return b->inject.total;
}

void worker_kill(Share s)
{
    Bed b;

    bed_init(&b, "kill", "");
    kill_many(&b, s, count_calls(&b), 4000);
    clean(&b);
    bed_free(&b);
}

void worker_kill_real(Share s)
{
    int64_t begin, took;
    JitModule *m;
    Bed b;

    bed_real(&b, "kill-real");
    begin = os_libc.clock(&os_libc, CLOCK_MONOTONIC);
    CHECK_EQ(bed_get(&b, 1000, &m), ST_OK);
    jit_release(m);
    took = (int64_t)(1000 * ms_since(begin));
    kill_many(&b, s, count_calls(&b), took);
    clean(&b);
    bed_free(&b);
}

TEST(whoever_dies_leaves_a_whole_entry_or_none)
{
    run_workers("kill", 4, test_scale(5000));
}

TEST(whoever_dies_beside_the_real_compiler_leaves_a_whole_entry_or_none)
{
    Bed b;

    bed_real(&b, "kill-real"); /* skips the test if there is no compiler */
    bed_free(&b);
    run_workers("kill-real", 4, test_scale(100));
}
